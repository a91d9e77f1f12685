"""The decisions of gang scheduling, compiled.

Problems that the solver would have to search for are left open. Running jobs keep their columns, so
those in at least one row, in at least two, and so on (`State.levels`) change only with starts and
ends.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.by_reference import by_reference
from optsched.compiled import kernel
from optsched.machines._ascending import insert, place_of
from optsched.machines._ascending import remove as drop
from optsched.machines._column_words import (
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
from optsched.simulator._core import (
    DONE,
    MOVE,
    N_ENDED,
    N_SUBMITTED,
    OPEN,
    SHARE,
    START,
    WAKE,
    WRONG,
    News,
    tell,
)
from optsched.solvers.gang_packing._root_bound import (
    Matrix,
    Queue,
    empty_queue,
    root_bound,
    words_of_sums,
)

Times = NDArray[np.float64]
Numbers = NDArray[np.int64]

NOT_PLACED = -1

SHARINGS = ("rows", "fill", "nodes", "turns")

BY_ROWS, FILLED, BY_NODES, BY_TURNS = range(4)
"""The values of `Rule.sharing`, see `optsched.policies.gang.Gang`."""

FIRST_FIT, BEST_FIT, PROVEN_FIT, ASK = range(4)
"""The values of `Rule.answer`: those of `optsched.solvers.gang_packing.fit_rules.QuickAnswer`, and
one with which all problems are left to the solver."""

(
    RUNNING, HEAD, TAIL, LEVELS, DECISIONS, PROBLEMS, CANDIDATES, SPARE, CHANGED, AWAITED, TURN
) = range(11)  # fmt: skip
"""Entries of `State.tally`: running jobs, head and end of the queue in `State.queue`, the most jobs
that share a column, decisions, problems; of the present decision: candidates, whether a row might
be spared, whether jobs have ended, started or moved, whether the present problem has been left
open; the row on turn."""

TURN_ENDS, WAKES_AT = range(2)
"""Entries of `State.times`: end of the present turn, last timer."""


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
    """The problems posed and their answers."""

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
    tally: Numbers
    times: Times
    held: Words  # columns held in each row
    number: Numbers  # of columns held in each row
    levels: Words  # columns held in at least one row, in at least two, ...
    problems: Problems
    # scratch of a decision
    fullest: Numbers  # the rows, the fullest first
    sources: Numbers  # the rows in that order before compaction
    first: Numbers  # order[first[row]:first[row + 1]] are the jobs of a row, as places in `running`
    order: Numbers
    candidates: Numbers
    answer: Numbers  # the new row of each running job, then of each candidate
    other: Numbers  # the row of each candidate by best fit
    used: Numbers  # columns used in each row with the candidates placed so far
    turns: Numbers  # of each running job
    left: Words
    fitting: Words
    union: Words  # shape of `held`


def new_state(processors: Numbers, rule: Rule) -> State:
    """Return the state before the first decision; an array of shape (jobs,)."""
    jobs = len(processors)
    rows, words = min(rule.rows, jobs), -(-rule.columns // WORD)
    most = 3 * jobs + 1  # problems: at most one for each submission, each end and each start

    def numbers(length: int) -> Numbers:
        return np.zeros(length, dtype=np.int64)

    def sets(*shape: int) -> Words:
        return np.zeros((*shape, words), dtype=np.uint64)

    tally = numbers(11)
    tally[TURN] = NOT_PLACED
    return State(
        processors,
        share=np.ones(jobs),
        row=np.full(jobs, NOT_PLACED),
        columns=sets(jobs),
        running=numbers(jobs),
        queue=numbers(jobs),
        tally=tally,
        times=np.array([np.inf, 0.0]),
        held=sets(rows),
        number=numbers(rows),
        levels=sets(rows),
        problems=Problems(np.zeros(most), *(numbers(most) for _ in Problems._fields[1:])),
        fullest=np.arange(rows),
        sources=numbers(rows),
        first=numbers(rows + 1),
        order=numbers(jobs),
        candidates=numbers(jobs),
        answer=numbers(jobs),
        other=numbers(jobs),
        used=numbers(rows),
        turns=numbers(jobs),
        left=sets(),
        fitting=sets(),
        union=sets(rows),
    )


def matrix_of(rule: Rule, jobs: int) -> Matrix:
    """Return the matrix of a run of so many jobs."""
    return Matrix(rule.columns, min(rule.rows, jobs), rule.skips, rule.compacts)


def new_queue(rule: Rule, jobs: int) -> Queue:
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
        if level == state.tally[LEVELS]:
            state.tally[LEVELS] += 1
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
    for level in range(state.tally[LEVELS] - 1, -1, -1):
        some = NONE
        for word in range(len(left)):
            both = levels[level, word] & left[word]
            levels[level, word] ^= both
            left[word] ^= both
            some |= levels[level, word]
        if some == NONE:
            state.tally[LEVELS] = level


@kernel(allocates=False)
def hear(state: State, rule: Rule, news: News) -> None:
    """Let the ended jobs go, enqueue the submitted ones, and find the candidates."""
    tally, running, count = state.tally, state.running, news.counts
    for at in range(count[N_ENDED]):
        job = news.ended[at]
        remove(state.held[state.row[job]], state.columns[job])
        state.number[state.row[job]] -= state.processors[job]
        lower_levels(state, state.columns[job])
        drop(running, tally[RUNNING], job)
        tally[RUNNING] -= 1
    waited, ended = tally[HEAD] < tally[TAIL], count[N_ENDED] > 0
    for at in range(count[N_SUBMITTED]):
        state.queue[tally[TAIL]] = news.submitted[at]
        tally[TAIL] += 1
    tally[DECISIONS] += 1
    tally[CHANGED] = ended
    tally[CANDIDATES] = tally[SPARE] = 0
    begin_problem(state, news.now[0])
    if rule.sharing == BY_TURNS and not ended and count[N_SUBMITTED] == 0:
        return  # a turn ends
    if rule.skips or ended or not waited:
        tally[CANDIDATES] = find_candidates(state, rule)
    if rule.compacts and ended:
        used = used_rows(state)
        tally[SPARE] = used > tally[LEVELS] and used > -(-total_held(state) // rule.columns)


@kernel(allocates=False)
def find_candidates(state: State, rule: Rule) -> int:
    """Find the waiting jobs that may get a place now, by sizes alone; return their number."""
    tally, queue, processors = state.tally, state.queue, state.processors
    free = rule.rows * rule.columns - total_held(state)
    found = 0
    for place in range(tally[HEAD], min(tally[HEAD] + rule.window, tally[TAIL])):
        needed = processors[queue[place]]
        if needed <= free:
            state.candidates[found] = queue[place]
            found += 1
            if not rule.skips:
                free -= needed
        elif not rule.skips:
            break
    return found


@kernel(allocates=False)
def sort_rows(state: State) -> None:
    """Sort the rows: the fullest first, of equal ones that of lowest number."""
    fullest, count = state.fullest, state.number
    for place in range(1, len(fullest)):
        row = fullest[place]
        while place > 0 and (
            count[fullest[place - 1]] < count[row]
            or (count[fullest[place - 1]] == count[row] and fullest[place - 1] > row)
        ):
            fullest[place] = fullest[place - 1]
            place -= 1
        fullest[place] = row


@kernel(allocates=False)
def sort_running_by_row(state: State) -> None:
    """Sort the places of running jobs by row; in a row the first started is first."""
    first, running, row = state.first, state.running, state.row
    first[:] = 0
    for place in range(state.tally[RUNNING]):
        first[row[running[place]] + 1] += 1
    for r in range(1, len(first)):
        first[r] += first[r - 1]
    for place in range(state.tally[RUNNING]):
        at = row[running[place]]
        state.order[first[at]] = place
        first[at] += 1
    for r in range(len(first) - 1, 0, -1):
        first[r] = first[r - 1]
    first[0] = 0


@kernel(allocates=False)
def compact(state: State, rule: Rule) -> None:
    """Move running jobs to fuller rows, as `compacted` of the rules of gang packing does."""
    running, answer, fullest = state.running, state.answer, state.fullest
    for place in range(state.tally[RUNNING]):
        answer[place] = state.row[running[place]]
    if not rule.compacts:
        return
    sort_rows(state)
    sort_running_by_row(state)
    for rank in range(len(fullest)):
        state.sources[rank] = fullest[rank]
    for turn in range(len(fullest) - 1, -1, -1):
        row = state.sources[turn]
        for entry in range(state.first[row], state.first[row + 1]):
            place = state.order[entry]
            job = running[place]
            needed = state.processors[job]
            for rank in range(len(fullest)):
                target = fullest[rank]
                if target == row:
                    break
                room = rule.columns - state.number[target]
                if room >= needed and not overlap(state.held[target], state.columns[job]):
                    answer[place] = target
                    add(state.held[target], state.columns[job])
                    remove(state.held[row], state.columns[job])
                    state.number[target] += needed
                    state.number[row] -= needed
                    sort_rows(state)
                    break


@kernel(allocates=False)
def fit(state: State, rule: Rule, tightest: bool, chosen_row: Numbers) -> int:
    """Choose rows of candidates by best or first fit, as `fitted` does; return the objective."""
    used = state.used
    for row in range(len(used)):
        used[row] = state.number[row]
    found = state.tally[CANDIDATES]
    for candidate in range(found):
        chosen_row[candidate] = NOT_PLACED
    for candidate in range(found):
        needed = state.processors[state.candidates[candidate]]
        chosen, empty = NOT_PLACED, NOT_PLACED
        for row in range(len(used)):
            if used[row] == 0:
                if empty == NOT_PLACED:
                    empty = row
            elif used[row] + needed <= rule.columns:
                if chosen == NOT_PLACED or used[row] > used[chosen]:
                    chosen = row
                if not tightest:
                    break
        if chosen == NOT_PLACED:
            chosen = empty
        if chosen != NOT_PLACED:
            chosen_row[candidate] = chosen
            used[chosen] += needed
        elif not rule.skips:
            break
    objective = 0
    for row in range(len(used)):
        objective += (rule.rows + 1) * used[row] - (used[row] > 0)
    return int(objective)


@kernel(allocates=False)
def bound(state: State, rule: Rule, queue: Queue, rows: Numbers) -> int:
    """Return the bound of row search, whose first packing has these rows of the candidates."""
    tally = state.tally
    found, steps = tally[CANDIDATES], 0
    for candidate in range(found):
        queue.size[candidate] = state.processors[state.candidates[candidate]]
        if rows[candidate] != NOT_PLACED:
            steps += queue.size[candidate] if rule.skips else 1
    fewest = 0
    if rule.compacts:
        fewest = tally[LEVELS]
        for level in range(fewest):
            queue.free[fewest - 1 - level] = rule.columns - size(state.levels[level])
    else:
        for row in range(len(state.number)):
            if state.number[row] == 0:
                continue
            free = rule.columns - state.number[row]
            place = fewest
            while place > 0 and queue.free[place - 1] < free:
                queue.free[place] = queue.free[place - 1]
                place -= 1
            queue.free[place] = free
            fewest += 1
    matrix = Matrix(rule.columns, len(state.number), rule.skips, rule.compacts)
    placed, used = root_bound(queue, matrix, fewest, found, steps)
    return int((rule.rows + 1) * (total_held(state) + placed) - used)


@kernel(allocates=False)
def find_answer(state: State, rule: Rule, queue: Queue) -> bool:
    """Answer the present problem as the solver does; return False if it has to search."""
    tally, problems = state.tally, state.problems
    found, at = tally[CANDIDATES], tally[PROBLEMS]
    problems.running[at] = tally[RUNNING]
    problems.waiting[at] = found
    if rule.answer == ASK:
        return False
    compact(state, rule)
    answer, other = state.answer[tally[RUNNING] :], state.other
    by_first_fit = own = fit(state, rule, False, answer)
    tries_best = rule.answer == BEST_FIT
    if rule.answer == PROVEN_FIT:
        for candidate in range(found):
            tries_best = tries_best or answer[candidate] == NOT_PLACED
    better = False
    if tries_best:
        own = fit(state, rule, True, other)
        better = own > by_first_fit
        if rule.answer == PROVEN_FIT and not better:
            own = by_first_fit
    if rule.answer == PROVEN_FIT and bound(state, rule, queue, other if better else answer) != own:
        return False
    if better:
        for candidate in range(found):
            answer[candidate] = other[candidate]
    problems.objective[at] = own
    problems.by_first_fit[at] = by_first_fit
    return True


@kernel(allocates=False)
def hold_running(state: State) -> None:
    """Hold the columns of running jobs in the rows of the answer."""
    for row in range(len(state.number)):
        remove(state.held[row], state.held[row])
        state.number[row] = 0
    for place in range(state.tally[RUNNING]):
        job, row = state.running[place], state.answer[place]
        add(state.held[row], state.columns[job])
        state.number[row] += state.processors[job]


@kernel(allocates=False)
def choose_columns(state: State, rule: Rule, job: int, row: int) -> None:
    """Choose free columns of a row: those held in the fewest rows first, as `columns_for` does."""
    levels, left, fitting = state.levels, state.left, state.fitting
    for word in range(len(left)):
        left[word] = ~state.held[row, word]
    if rule.columns % WORD:
        left[-1] &= (ONE << np.uint64(rule.columns % WORD)) - ONE
    needed = state.processors[job]
    for level in range(state.tally[LEVELS] + 1):
        copy(fitting, left)
        if level < state.tally[LEVELS]:
            remove(fitting, levels[level])
        remove(left, fitting)
        number = size(fitting)
        if number >= needed:
            move_lowest(fitting, needed, state.columns[job])
            break
        add(state.columns[job], fitting)
        needed -= number


@kernel(allocates=False)
def hold(state: State, job: int, row: int) -> None:
    """Hold the columns of a job that starts."""
    add(state.held[row], state.columns[job])
    state.number[row] += state.processors[job]
    raise_levels(state, state.columns[job])


@kernel(allocates=False)
def is_feasible(state: State, rule: Rule, found: int) -> bool:
    """Return whether an answer has no violations, as `GangPacking.violations` defines them."""
    running, union = state.tally[RUNNING], state.union
    union[:] = NONE
    one_left = False
    for place in range(running + found):
        job = state.running[place] if place < running else state.candidates[place - running]
        row, columns = state.answer[place], state.columns[job]
        if row == NOT_PLACED and place >= running:
            one_left = True
            continue
        if place >= running:
            if one_left and not rule.skips:
                return False
        elif not rule.compacts and row != state.row[job]:
            return False
        if not 0 <= row < len(union) or size(columns) != state.processors[job]:
            return False
        if rule.columns % WORD and columns[-1] >> np.uint64(rule.columns % WORD):
            return False
        if overlap(union[row], columns):
            return False
        add(union[row], columns)
    return True


@kernel(allocates=False)
def used_rows(state: State) -> int:
    """Return the number of rows with a job."""
    used = 0
    for row in range(len(state.number)):
        used += state.number[row] > 0
    return used


@kernel(allocates=False)
def total_held(state: State) -> int:
    """Return the number of columns held, summed over the rows."""
    total = 0
    for row in range(len(state.number)):
        total += state.number[row]
    return total


@kernel(allocates=False)
def count_turns(state: State) -> None:
    """Count the rows in which each running job runs if jobs fill rows in which they are idle."""
    running, turns, order, busy = state.running, state.turns, state.order, state.left
    for place in range(state.tally[RUNNING]):
        turns[place] = 0
        insert(order, place, place_of(order, 0, place, running, place), place)
    for row in range(len(state.number)):
        if state.number[row] == 0:
            continue
        copy(busy, state.held[row])
        for entry in range(state.tally[RUNNING]):
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
        tell(news, SHARE, job, part)


@kernel(allocates=False)
def share(state: State, rule: Rule, news: News) -> None:
    """Share the time among the running jobs."""
    used = used_rows(state)
    if rule.sharing == FILLED and used > 1:
        count_turns(state)
    for place in range(state.tally[RUNNING]):
        job, part = state.running[place], 1.0
        if rule.sharing == BY_NODES:
            load = 1
            while load < state.tally[LEVELS] and overlap(state.levels[load], state.columns[job]):
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
    """Find the row on turn: the rows in use, one after the other, each for a time slice.

    A row that is alone in use has one turn after the other. If the row on turn becomes empty, the
    turn of the next one begins at once.
    """
    tally, times, number = state.tally, state.times, state.number
    last = tally[TURN]
    if last != NOT_PLACED and number[last] > 0:
        if now < times[TURN_ENDS]:
            return
        over = (now - times[TURN_ENDS]) % rule.time_slice
        if over > 0.0:  # the row was alone until now
            times[TURN_ENDS] = now - over + rule.time_slice
            return
    times[TURN_ENDS] = now + rule.time_slice
    tally[TURN] = NOT_PLACED
    for step in range(1, len(number) + 1):
        row = (last + step) % len(number)
        if number[row] > 0:
            tally[TURN] = row
            return


@kernel(allocates=False)
def take_turns(state: State, rule: Rule, news: News) -> None:
    """Let the jobs of the row on turn run, until its turn ends."""
    tally, times, several = state.tally, state.times, used_rows(state) > 1
    next_turn(state, rule, news.now[0])
    for place in range(tally[RUNNING]):
        job, part = state.running[place], 0.0
        if state.row[job] == tally[TURN]:
            part = rule.useful if several else 1.0
        set_share(state, news, job, part)
    if several and times[TURN_ENDS] != times[WAKES_AT]:
        times[WAKES_AT] = times[TURN_ENDS]
        tell(news, WAKE, 0, times[TURN_ENDS])


@kernel(allocates=False)
def place(state: State, rule: Rule, news: News) -> bool:
    """Move and start jobs by the answer to a problem; return whether all candidates start."""
    tally, queue, answer = state.tally, state.queue, state.answer
    running = tally[RUNNING]
    for at in range(running):
        job = state.running[at]
        if state.row[job] != answer[at]:
            tally[CHANGED] = 1
            tell(news, MOVE, job, answer[at])
        state.row[job] = answer[at]
    for candidate in range(tally[CANDIDATES]):
        job, row = state.candidates[candidate], answer[running + candidate]
        if row != NOT_PLACED:
            state.row[job] = row
            state.running[tally[RUNNING]] = job
            tally[RUNNING] += 1
            tally[CHANGED] = 1
            tell(news, START, job, row)
    head = behind = min(tally[HEAD] + rule.window, tally[TAIL])
    for at in range(behind - 1, tally[HEAD] - 1, -1):
        if state.row[queue[at]] == NOT_PLACED:
            head -= 1
            queue[head] = queue[at]
    tally[HEAD] = head
    return bool(tally[RUNNING] - running == tally[CANDIDATES])


@kernel(allocates=False)
def begin_problem(state: State, now: float) -> None:
    """State the time of the next problem, if there will be one."""
    at = state.tally[PROBLEMS]
    state.problems.time[at] = now
    state.problems.decision[at] = state.tally[DECISIONS]


@kernel(allocates=False)
def decide(state: State, rule: Rule, queue: Queue, news: News) -> int:
    """Compact and schedule, then share the time among the jobs.

    Called again after `OPEN`, it takes the rows in `State.answer`, and the columns of the
    candidates in `State.columns`, for the answer to the open problem.
    """
    tally = state.tally
    if not tally[AWAITED]:
        hear(state, rule, news)
    while tally[CANDIDATES] > 0 or tally[SPARE]:
        if tally[AWAITED]:
            hold_running(state)
        elif not find_answer(state, rule, queue):
            tally[AWAITED] = 1
            return OPEN
        for candidate in range(tally[CANDIDATES]):
            job, row = state.candidates[candidate], state.answer[tally[RUNNING] + candidate]
            if row != NOT_PLACED:
                if not tally[AWAITED]:
                    choose_columns(state, rule, job, row)
                hold(state, job, row)
        if not is_feasible(state, rule, tally[CANDIDATES]):
            return WRONG
        tally[AWAITED] = tally[SPARE] = 0
        all_start = place(state, rule, news)
        tally[PROBLEMS] += 1
        begin_problem(state, news.now[0])
        if not all_start:
            break
        # if all are placed, jobs behind the window may fit, too
        tally[CANDIDATES] = find_candidates(state, rule)
    if rule.sharing == BY_TURNS:
        take_turns(state, rule, news)
    elif tally[CHANGED]:
        share(state, rule, news)
    return DONE
