"""The decisions of gang scheduling, compiled.

Problems that the solver would have to search for are left open. Running jobs keep their columns, so
those in at least one row, in at least two, and so on (`State.levels`) change only with starts and
ends.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optsched.by_reference import Record, by_reference, record
from optsched.compiled import kernel
from optsched.machines._ascending import insert, place_of
from optsched.machines._ascending import remove as drop
from optsched.machines.matrix import (
    NONE,
    ONE,
    WORD,
    Words,
    add,
    copy,
    move_lowest,
    overlap,
    remove,
    size,
)
from optsched.simulator import _core
from optsched.simulator._core import News, Numbers, Times, tell, zeroed
from optsched.solvers.gang_packing._root_bound import (
    Matrix,
    RowQueue,
    empty_queue,
    root_bound,
    words_of_sums,
)
from optsched.solvers.gang_packing.fit_rules import NOT_PLACED, Rows, compact, empty_rows, fit

SHARINGS = ("rows", "fill", "nodes", "turns")

BY_ROWS, FILLED, BY_NODES, BY_TURNS = range(4)
"""The values of `Rule.sharing`, see `optsched.policies.gang.Gang`."""

FIRST_FIT, BEST_FIT, PROVEN_FIT, ASK = range(4)
"""The values of `Rule.answer`: those of `optsched.solvers.gang_packing.fit_rules.QuickAnswer`, and
one with which all problems are left to the solver."""

COUNTS = record(
    "running head tail levels decisions problems candidates spare changed awaited turn",
    "turn_ends wakes_at",
)
"""Running jobs, head and end of the queue in `State.queue`, the most jobs that share a column,
decisions, problems answered; of the present decision: candidates, whether a row might be spared,
whether jobs have ended, started or moved, whether the present problem has been left open; the row
on turn, the end of its turn, last timer."""


class Rule(NamedTuple):
    """The settings of the policy."""

    columns: int
    rows: int
    skips: bool
    sharing: int
    compacts: bool
    window: int
    useful: float  # part of a time slice after the context switch
    time_slice: float
    answer: int


@by_reference
class Problems(NamedTuple):
    """The problems that the kernel has answered."""

    time: Times
    decision: Numbers
    running: Numbers
    waiting: Numbers
    objective: Numbers  # of the solver
    by_first_fit: Numbers  # objective of the fallback


@by_reference
class State(NamedTuple):
    """What the policy knows: the jobs, the queue and the matrix."""

    processors: Numbers
    share: Times
    row: Numbers  # -1 before the start
    columns: Words  # of each job
    running: Numbers  # in order of their starts
    queue: Numbers
    counts: Record
    rows: Rows
    levels: Words  # columns held in at least one row, in at least two, ...
    problems: Problems
    # scratch of a decision
    candidates: Numbers
    sizes: Numbers  # of the candidates
    answer: Numbers  # the new row of each running job, then of each candidate
    other: Numbers  # the row of each candidate by best fit
    used: Numbers  # columns used in each row with the candidates placed so far
    turns: Numbers  # of each running job
    left: Words
    fitting: Words
    union: Words  # shape of `rows.held`


def new_state(processors: Numbers, rule: Rule) -> State:
    """Return the state before the first decision; an array of shape (jobs,)."""
    jobs = len(processors)
    rows, words = min(rule.rows, jobs), -(-rule.columns // WORD)
    most = 3 * jobs + 1  # problems: at most one for each submission, each end and each start

    def sets(*shape: int) -> Words:
        return np.zeros((*shape, words), dtype=np.uint64)

    counts = np.zeros(1, dtype=COUNTS)
    counts["turn"], counts["turn_ends"] = NOT_PLACED, np.inf
    return zeroed(
        State,
        jobs,
        processors=processors,
        share=np.ones(jobs),
        row=np.full(jobs, NOT_PLACED),
        columns=sets(jobs),
        counts=counts,
        rows=empty_rows(rows, jobs, words),
        levels=sets(rows),
        problems=zeroed(Problems, most),
        used=np.zeros(rows, dtype=np.int64),
        left=sets(),
        fitting=sets(),
        union=sets(rows),
    )


def matrix_of(rule: Rule, jobs: int) -> Matrix:
    """Return the matrix of a run of so many jobs."""
    return Matrix(rule.columns, min(rule.rows, jobs), rule.skips, rule.compacts)


def new_queue(rule: Rule, jobs: int) -> RowQueue:
    """Return the waiting jobs whose bound is computed: none if no answer has to be proven."""
    if rule.answer != PROVEN_FIT:
        return empty_queue(Matrix(0, 0, rule.skips, rule.compacts), 0)
    return empty_queue(matrix_of(rule, jobs), jobs)


def words_of(rule: Rule, jobs: int) -> int:
    """Return the number of words of 64 columns or sums that a run of so many jobs takes."""
    words = jobs * -(-rule.columns // WORD)
    if rule.answer != PROVEN_FIT:
        return words
    matrix = matrix_of(rule, jobs)
    return words + (matrix.rows + 3) * words_of_sums(matrix)


@kernel(allocates=False)
def raise_levels(state: State, columns: Words) -> None:
    """Count a job on its columns; `state.left` is changed."""
    levels, left = state.levels, state.left
    copy(left, columns)
    level, more = 0, True
    while more:
        if level == state.counts[0].levels:
            state.counts[0].levels += 1
        more = False
        for word in range(len(left)):
            both = levels[level, word] & left[word]
            levels[level, word] |= left[word]
            left[word] = both
            more = more or both != NONE
        level += 1


@kernel(allocates=False)
def lower_levels(state: State, columns: Words) -> None:
    """Count a job no more on its columns; `state.left` is changed."""
    levels, left = state.levels, state.left
    copy(left, columns)
    for level in range(state.counts[0].levels - 1, -1, -1):
        some = NONE
        for word in range(len(left)):
            both = levels[level, word] & left[word]
            levels[level, word] ^= both
            left[word] ^= both
            some |= levels[level, word]
        if some == NONE:
            state.counts[0].levels = level


@kernel(allocates=False)
def hear(state: State, rule: Rule, news: News) -> None:
    """Let the ended jobs go, enqueue the submitted ones, and find the candidates."""
    counts, running, count = state.counts[0], state.running, news.counts
    for at in range(count[_core.N_ENDED]):
        job = news.ended[at]
        remove(state.rows.held[state.row[job]], state.columns[job])
        state.rows.number[state.row[job]] -= state.processors[job]
        lower_levels(state, state.columns[job])
        drop(running, counts.running, job)
        counts.running -= 1
    waited, ended = counts.head < counts.tail, count[_core.N_ENDED] > 0
    for at in range(count[_core.N_SUBMITTED]):
        state.queue[counts.tail] = news.submitted[at]
        counts.tail += 1
    counts.decisions += 1
    counts.changed = ended
    counts.candidates = counts.spare = 0
    if rule.sharing == BY_TURNS and not ended and count[_core.N_SUBMITTED] == 0:
        return  # a turn ends
    if rule.skips or ended or not waited:
        counts.candidates = find_candidates(state, rule)
    if rule.compacts and ended:
        used = used_rows(state)
        counts.spare = used > counts.levels and used > -(-total_held(state) // rule.columns)


@kernel(allocates=False)
def find_candidates(state: State, rule: Rule) -> int:
    """Find the waiting jobs that may get a place now, by sizes alone; return their number."""
    counts, queue, processors = state.counts[0], state.queue, state.processors
    free = rule.rows * rule.columns - total_held(state)
    found = 0
    for place in range(counts.head, min(counts.head + rule.window, counts.tail)):
        needed = processors[queue[place]]
        if needed <= free:
            state.candidates[found], state.sizes[found] = queue[place], needed
            found += 1
            if not rule.skips:
                free -= needed
        elif not rule.skips:
            break
    return found


@kernel(allocates=False)
def move(state: State, rule: Rule) -> None:
    """Move running jobs to fuller rows, if they may."""
    rows, running = state.rows, state.counts[0].running
    for place in range(running):
        state.answer[place] = state.row[state.running[place]]
    if rule.compacts:
        size, jobs = state.processors, state.running
        compact(rows, rule.columns, state.columns, size, jobs, running, state.answer)


@kernel(allocates=False)
def place_candidates(state: State, rule: Rule, tightest: bool, row: Numbers) -> int:
    """Choose rows of candidates by best or first fit; return the objective."""
    used = state.used
    for one in range(len(used)):
        used[one] = state.rows.number[one]
    fit(used, rule.columns, rule.skips, tightest, state.sizes, state.counts[0].candidates, row)
    objective = 0
    for one in range(len(used)):
        objective += (rule.rows + 1) * used[one] - (used[one] > 0)
    return int(objective)


@kernel(allocates=False)
def bound(state: State, rule: Rule, queue: RowQueue, rows: Numbers) -> int:
    """Return the bound of row search, whose first packing has these rows of the candidates."""
    counts = state.counts[0]
    found, steps = counts.candidates, 0
    for candidate in range(found):
        queue.size[candidate] = state.sizes[candidate]
        if rows[candidate] != NOT_PLACED:
            steps += queue.size[candidate] if rule.skips else 1
    fewest = 0
    if rule.compacts:
        fewest = counts.levels
        for level in range(fewest):
            queue.free[fewest - 1 - level] = rule.columns - size(state.levels[level])
    else:
        number = state.rows.number
        for row in range(len(number)):
            if number[row] == 0:
                continue
            free = rule.columns - number[row]
            place = fewest
            while place > 0 and queue.free[place - 1] < free:
                queue.free[place] = queue.free[place - 1]
                place -= 1
            queue.free[place] = free
            fewest += 1
    matrix = Matrix(rule.columns, len(state.rows.number), rule.skips, rule.compacts)
    most, used = root_bound(queue, matrix, fewest, found, steps)
    placed = most if rule.skips else 0
    for candidate in range(0 if rule.skips else most):
        placed += queue.size[candidate]
    return int((rule.rows + 1) * (total_held(state) + placed) - used)


@kernel(allocates=False)
def find_answer(state: State, rule: Rule, queue: RowQueue, now: float) -> bool:
    """Answer the present problem as the solver does; return False if it has to search."""
    if rule.answer == ASK:
        return False
    move(state, rule)
    counts, problems = state.counts[0], state.problems
    found, at = counts.candidates, counts.problems
    answer, other = state.answer[counts.running :], state.other
    by_first_fit = own = place_candidates(state, rule, False, answer)
    tries_best = rule.answer == BEST_FIT
    if rule.answer == PROVEN_FIT:
        for candidate in range(found):
            tries_best = tries_best or answer[candidate] == NOT_PLACED
    better = False
    if tries_best:
        own = place_candidates(state, rule, True, other)
        better = own > by_first_fit
        if rule.answer == PROVEN_FIT and not better:
            own = by_first_fit
    if rule.answer == PROVEN_FIT and bound(state, rule, queue, other if better else answer) != own:
        return False
    if better:
        for candidate in range(found):
            answer[candidate] = other[candidate]
    problems.time[at], problems.decision[at] = now, counts.decisions
    problems.running[at], problems.waiting[at] = counts.running, found
    problems.objective[at], problems.by_first_fit[at] = own, by_first_fit
    counts.problems += 1
    return True


@kernel(allocates=False)
def hold_running(state: State) -> None:
    """Hold the columns of running jobs in the rows of the answer."""
    held, number = state.rows.held, state.rows.number
    for row in range(len(number)):
        remove(held[row], held[row])
        number[row] = 0
    for place in range(state.counts[0].running):
        job, row = state.running[place], state.answer[place]
        add(held[row], state.columns[job])
        number[row] += state.processors[job]


@kernel(allocates=False)
def choose_columns(state: State, rule: Rule, job: int, row: int) -> None:
    """Choose free columns of a row: those held in the fewest rows first, as `columns_for` does."""
    levels, left, fitting = state.levels, state.left, state.fitting
    for word in range(len(left)):
        left[word] = ~state.rows.held[row, word]
    if rule.columns % WORD:
        left[-1] &= (ONE << np.uint64(rule.columns % WORD)) - ONE
    needed = state.processors[job]
    for level in range(state.counts[0].levels + 1):
        copy(fitting, left)
        if level < state.counts[0].levels:
            remove(fitting, levels[level])
        remove(left, fitting)
        number = size(fitting)
        if number >= needed:
            move_lowest(fitting, needed, state.columns[job])
            break
        add(state.columns[job], fitting)
        needed -= number


@kernel(allocates=False)
def is_feasible(state: State, rule: Rule, found: int) -> bool:
    """Return whether an answer has no violations, as `GangPacking.violations` defines them."""
    running, union = state.counts[0].running, state.union
    union[:] = NONE
    one_left = False
    for place in range(running + found):
        job = state.running[place] if place < running else state.candidates[place - running]
        row, columns = state.answer[place], state.columns[job]
        if row == NOT_PLACED and place >= running:
            one_left = True
            continue
        if place >= running:  # the columns of the others are as they were found
            if (one_left and not rule.skips) or size(columns) != state.processors[job]:
                return False
            if rule.columns % WORD and columns[-1] >> np.uint64(rule.columns % WORD):
                return False
        elif not rule.compacts and row != state.row[job]:
            return False
        if not 0 <= row < len(union) or overlap(union[row], columns):
            return False
        add(union[row], columns)
    return True


@kernel(allocates=False)
def used_rows(state: State) -> int:
    """Return the number of rows with a job."""
    used = 0
    for row in range(len(state.rows.number)):
        used += state.rows.number[row] > 0
    return used


@kernel(allocates=False)
def total_held(state: State) -> int:
    """Return the number of columns held, summed over the rows."""
    total = 0
    for row in range(len(state.rows.number)):
        total += state.rows.number[row]
    return total


@kernel(allocates=False)
def count_turns(state: State) -> None:
    """Count the rows in which each running job runs if jobs fill rows in which they are idle."""
    running, turns, order, busy = state.running, state.turns, state.rows.order, state.left
    for place in range(state.counts[0].running):
        turns[place] = 0
        insert(order, place, place_of(order, 0, place, running, place), place)
    for row in range(len(state.rows.number)):
        if state.rows.number[row] == 0:
            continue
        copy(busy, state.rows.held[row])
        for entry in range(state.counts[0].running):
            place = order[entry]
            job = running[place]
            if state.row[job] == row:
                turns[place] += 1
            elif not overlap(busy, state.columns[job]):
                add(busy, state.columns[job])
                turns[place] += 1


@kernel(allocates=False)
def set_share(state: State, news: News, job: int, part: float) -> None:
    """Give a job a part of the time, if it has another one."""
    if part != state.share[job]:
        state.share[job] = part
        tell(news, _core.SHARE, job, part)


@kernel(allocates=False)
def share(state: State, rule: Rule, news: News) -> None:
    """Share the time among the running jobs."""
    used = used_rows(state)
    if rule.sharing == FILLED and used > 1:
        count_turns(state)
    for place in range(state.counts[0].running):
        job, part = state.running[place], 1.0
        if rule.sharing == BY_NODES:
            load = 1
            while load < state.counts[0].levels and overlap(state.levels[load], state.columns[job]):
                load += 1
            if load > 1:
                part = rule.useful / load
        elif used > 1:
            if rule.sharing == BY_ROWS:
                part = rule.useful / used
            elif state.turns[place] < used:
                part = rule.useful * state.turns[place] / used
        set_share(state, news, job, part)


@kernel(allocates=False)
def next_turn(state: State, rule: Rule, now: float) -> None:
    """Find the row on turn: each row in use has a time slice, which is over once it is empty."""
    counts, number = state.counts[0], state.rows.number
    last = counts.turn
    if last != NOT_PLACED and number[last] > 0:
        if now < counts.turn_ends:
            return
        over = (now - counts.turn_ends) % rule.time_slice
        if over > 0.0:  # the row was alone until now
            counts.turn_ends = now - over + rule.time_slice
            return
    counts.turn_ends = now + rule.time_slice
    counts.turn = NOT_PLACED
    for step in range(1, len(number) + 1):
        row = (last + step) % len(number)
        if number[row] > 0:
            counts.turn = row
            return


@kernel(allocates=False)
def take_turns(state: State, rule: Rule, news: News) -> None:
    """Let the jobs of the row on turn run, until its turn ends."""
    counts, several = state.counts[0], used_rows(state) > 1
    next_turn(state, rule, news.now[0])
    for place in range(counts.running):
        job, part = state.running[place], 0.0
        if state.row[job] == counts.turn:
            part = rule.useful if several else 1.0
        set_share(state, news, job, part)
    if several and counts.turn_ends != counts.wakes_at:
        counts.wakes_at = counts.turn_ends
        tell(news, _core.WAKE, 0, counts.turn_ends)


@kernel(allocates=False)
def place(state: State, rule: Rule, news: News) -> bool:
    """Move and start jobs by the answer to a problem; return whether all candidates start."""
    counts, queue, answer = state.counts[0], state.queue, state.answer
    running = counts.running
    for at in range(running):
        job = state.running[at]
        if state.row[job] != answer[at]:
            counts.changed = 1
            tell(news, _core.MOVE, job, answer[at])
        state.row[job] = answer[at]
    for candidate in range(counts.candidates):
        job, row = state.candidates[candidate], answer[running + candidate]
        if row != NOT_PLACED:
            state.row[job] = row
            state.running[counts.running] = job
            counts.running += 1
            counts.changed = 1
            tell(news, _core.START, job, row)
    head = behind = min(counts.head + rule.window, counts.tail)
    for at in range(behind - 1, counts.head - 1, -1):
        if state.row[queue[at]] == NOT_PLACED:
            head -= 1
            queue[head] = queue[at]
    counts.head = head
    return bool(counts.running - running == counts.candidates)


@kernel(allocates=False)
def decide(state: State, rule: Rule, queue: RowQueue, news: News) -> int:
    """Compact and schedule, by rows and columns in `state` after `OPEN`; then share the time."""
    counts = state.counts[0]
    if not counts.awaited:
        hear(state, rule, news)
    while counts.candidates > 0 or counts.spare:
        if counts.awaited:
            hold_running(state)
        elif not find_answer(state, rule, queue, news.now[0]):
            counts.awaited = 1
            return _core.OPEN
        for candidate in range(counts.candidates):
            job, row = state.candidates[candidate], state.answer[counts.running + candidate]
            if row != NOT_PLACED:
                if not counts.awaited:
                    choose_columns(state, rule, job, row)
                add(state.rows.held[row], state.columns[job])
                state.rows.number[row] += state.processors[job]
                raise_levels(state, state.columns[job])
        if not is_feasible(state, rule, counts.candidates):
            return _core.WRONG
        counts.awaited = counts.spare = 0
        if not place(state, rule, news):
            break
        # if all are placed, jobs behind the window may fit, too
        counts.candidates = find_candidates(state, rule)
    if rule.sharing == BY_TURNS:
        take_turns(state, rule, news)
    elif counts.changed:
        share(state, rule, news)
    return _core.DONE
