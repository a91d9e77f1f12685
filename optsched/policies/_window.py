"""The decisions of `window`, compiled.

Problems that the plain search of the solver does not settle are left open.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optsched.by_reference import Record, by_reference, record
from optsched.compiled import kernel
from optsched.machines._ascending import add, delete, enter, position
from optsched.machines._line_nodes import Held, give, new_held, take
from optsched.policies._running import leave, shadow_of
from optsched.simulator import _core
from optsched.simulator._core import News, Numbers, Times, tell, zeroed
from optsched.solvers.window_mkp.branch_and_bound import depth_first
from optsched.solvers.window_mkp.greedy import greedy

ASK, GREEDY, SEARCH = range(3)
"""The values of `Rule.answer`: all problems are left to the solver; GREEDY; the plain search of
branch and bound, from the answer of GREEDY."""

NOWHERE = -1
"""The slot of a job that is not placed, and the start of a slot that is not there."""

COUNTS = record(
    "waiting running free decisions problems jobs slots awaited first stop extra", "charged shadow"
)
"""Waiting and running jobs, free nodes, decisions, problems answered; of the present problem: its
jobs, its slots, whether it has been left open; of the reservation: its nodes from the first up to
the stop, and the nodes that other jobs may hold beyond its time. Seconds charged for the present
decision; time of the reservation."""


class Rule(NamedTuple):
    """The settings of the policy."""

    window: int
    repeats: bool  # windows, until one starts no job
    backfills: bool
    scatters: bool
    answer: int


@by_reference
class Problems(NamedTuple):
    """The problems that the kernel has answered."""

    time: Times
    decision: Numbers
    jobs: Numbers
    slots: Numbers
    total: Numbers  # nodes of its jobs
    objective: Numbers
    by_greedy: Numbers
    work: Numbers


@by_reference
class State(NamedTuple):
    """What the policy knows: the jobs, the queue and the nodes."""

    processors: Numbers
    requested: Times
    estimated_end: Times
    queue: Numbers  # in order of submission
    running: Numbers  # by estimated end
    held: Held
    later: Held  # the same, at the time of a reservation
    most_nodes: Numbers  # of the plain search, by the number of jobs
    problems: Problems
    counts: Record
    # the present problem
    jobs: Numbers
    weights: Numbers
    starts: Numbers  # first free node of each slot
    capacities: Numbers
    left: Numbers  # of the capacities
    answer: Numbers


def new_state(
    processors: Numbers, requested: Times, nodes: int, rule: Rule, most_nodes: Numbers
) -> State:
    """Return the state before the first decision; `most_nodes` ends with that of a whole window."""
    jobs, window = len(processors), len(most_nodes)
    runs = jobs
    if rule.scatters:
        runs = int(np.minimum(processors[processors <= nodes], (nodes + 1) // 2).sum())
    held = new_held(jobs, nodes, runs)
    # at most one decision for each submission, end and start, and one problem more for each start
    most = 4 * jobs + 1

    counts, at_once = np.zeros(1, dtype=COUNTS), np.zeros((6, window), dtype=np.int64)
    counts["free"] = nodes
    return zeroed(
        State,
        jobs,
        processors=processors,
        requested=requested,
        held=held,
        later=new_held(0, nodes, 0)._replace(runs=held.runs, first=held.first, last=held.last),
        most_nodes=most_nodes,
        problems=zeroed(Problems, most),
        counts=counts,
        **dict(zip(("jobs", "weights", "starts", "capacities", "left", "answer"), at_once)),
    )


@kernel(allocates=False)
def hear(state: State, news: News) -> None:
    """Free the nodes of the ended jobs, and enqueue the submitted ones."""
    counts, count = state.counts[0], news.counts
    for at in range(count[_core.N_ENDED]):
        job = news.ended[at]
        give(state.held, job)
        leave(state.running, counts.running, state.estimated_end, job)
        counts.running -= 1
        counts.free += state.processors[job]
    for at in range(count[_core.N_SUBMITTED]):
        add(state.queue, counts.waiting, news.submitted[at])
        counts.waiting += 1
    counts.decisions += 1
    counts.charged = 0.0


@kernel(allocates=False)
def begin(state: State, news: News, job: int) -> None:
    """Start a waiting job, which has no nodes yet."""
    counts = state.counts[0]
    delete(state.queue, counts.waiting, position(state.queue, counts.waiting, job))
    counts.waiting -= 1
    state.estimated_end[job] = news.now[0] + counts.charged + state.requested[job]
    enter(state.running, counts.running, state.estimated_end, job)
    counts.running += 1
    counts.free -= state.processors[job]
    state.held.first[job] = state.held.last[job] = state.held.counts[0].runs
    tell(news, _core.START, job, 0.0)


@kernel(allocates=False)
def begin_at(state: State, news: News, job: int, first: int) -> None:
    """Start a waiting job on consecutive nodes."""
    begin(state, news, job)
    take(state.held, job, first, first + state.processors[job])


@kernel(allocates=False)
def largest_slot(held: Held) -> int:
    """Return the first of the largest slots; 0 without one."""
    largest = 0
    for slot in range(held.counts[0].slots):
        length = held.free_stop[slot] - held.free_start[slot]
        if length > held.free_stop[largest] - held.free_start[largest]:
            largest = slot
    return largest


@kernel(allocates=False)
def largest_length(held: Held) -> int:
    """Return the number of nodes of the largest slot."""
    if held.counts[0].slots == 0:
        return 0
    slot = largest_slot(held)
    return int(held.free_stop[slot] - held.free_start[slot])


@kernel(allocates=False)
def scatter(state: State, news: News) -> None:
    """Start queue heads that no slot can hold, on nodes of the largest slots."""
    counts, held = state.counts[0], state.held
    while counts.waiting > 0:
        job = state.queue[0]
        missing = state.processors[job]
        if missing <= largest_length(held) or missing > counts.free:
            return
        begin(state, news, job)
        while missing > 0:
            slot = largest_slot(held)
            first, stop = held.free_start[slot], held.free_stop[slot]
            take(held, job, first, min(stop, first + missing))
            missing -= stop - first


@kernel(allocates=False)
def find_problem(state: State, rule: Rule) -> bool:
    """Find the jobs of the window that fit, and as many of the largest slots that hold one."""
    counts, held, capacities, starts = state.counts[0], state.held, state.capacities, state.starts
    longest = smallest = largest_length(held)
    jobs = slots = 0
    for place in range(min(rule.window, counts.waiting)):
        weight = state.processors[state.queue[place]]
        if weight <= longest:
            state.jobs[jobs], state.weights[jobs] = state.queue[place], weight
            smallest = min(smallest, weight)
            jobs += 1
    for slot in range(held.counts[0].slots if jobs else 0):
        length = held.free_stop[slot] - held.free_start[slot]
        if length < smallest:
            continue
        capacities[slots], starts[slots] = length, held.free_start[slot]
        slots += 1
        if slots > jobs:
            least = 0
            for other in range(slots):
                if capacities[other] <= capacities[least]:
                    least = other
            delete(capacities, slots, least)
            delete(starts, slots, least)
            slots -= 1
    counts.jobs, counts.slots = jobs, slots
    return jobs > 0


@kernel
def find_answer(state: State, rule: Rule, now: float) -> bool:
    """Answer the problem as the solver does, if the kernel can; return whether it has."""
    if rule.answer == ASK:
        return False
    counts, problems = state.counts[0], state.problems
    weights, capacities = state.weights[: counts.jobs], state.capacities[: counts.slots]
    placement = greedy(weights, weights, capacities)
    total = by_greedy = 0
    for at in range(len(weights)):
        total += weights[at]
        by_greedy += weights[at] if placement[at] != NOWHERE else 0
    value, work = by_greedy, len(weights) * len(capacities)
    if rule.answer == SEARCH:
        most = state.most_nodes[len(weights)]
        value, bound, work = depth_first(weights, weights, capacities, placement, value, most)
        if value < bound:
            return False
    for at in range(len(weights)):
        state.answer[at] = placement[at]
    at = counts.problems
    problems.time[at], problems.decision[at] = now, counts.decisions
    problems.jobs[at], problems.slots[at] = len(weights), len(capacities)
    problems.total[at], problems.objective[at] = total, value
    problems.by_greedy[at], problems.work[at] = by_greedy, work
    counts.problems += 1
    return True


@kernel(allocates=False)
def is_feasible(state: State) -> bool:
    """Return whether an answer has no violations, as `WindowMKP.violations` defines them."""
    counts, left = state.counts[0], state.left
    for slot in range(counts.slots):
        left[slot] = state.capacities[slot]
    for at in range(counts.jobs):
        slot = state.answer[at]
        if slot == NOWHERE:
            continue
        if not 0 <= slot < counts.slots:
            return False
        left[slot] -= state.weights[at]
        if left[slot] < 0:
            return False
    return True


@kernel(allocates=False)
def place(state: State, news: News) -> bool:
    """Start the placed jobs, from the low end of each slot; return whether there are any."""
    counts, placed = state.counts[0], False
    for at in range(counts.jobs):
        slot = state.answer[at]
        if slot != NOWHERE:
            begin_at(state, news, state.jobs[at], state.starts[slot])
            state.starts[slot] += state.weights[at]
            placed = True
    return placed


@kernel(allocates=False)
def reserve_slot(state: State, now: float, job: int) -> None:
    """Reserve the end of the smallest slot that first holds a job, that with fewer nodes free."""
    counts, held, line, size = state.counts[0], state.held, state.later, state.processors[job]
    line.counts[0].slots = held.counts[0].slots
    for slot in range(held.counts[0].slots):
        line.free_start[slot], line.free_stop[slot] = held.free_start[slot], held.free_stop[slot]
    counts.shadow, counts.extra, counts.first, counts.stop = np.inf, len(held.free_start), 0, 0
    place, found = 0, NOWHERE
    while found == NOWHERE:
        if place == counts.running:
            return  # a job larger than the machine
        first, end = place, state.estimated_end[state.running[place]]
        while place < counts.running and state.estimated_end[state.running[place]] == end:
            give(line, state.running[place])
            place += 1
        found = released_slot(state, first, place, size)
    slot = position(line.free_start, line.counts[0].slots, found)
    low, high = found, line.free_stop[slot] - size
    if free_within(held, high, high + size) < free_within(held, low, low + size):
        low = high
    counts.shadow, counts.first, counts.stop = max(end, now), low, low + size


@kernel(allocates=False)
def released_slot(state: State, first: int, stop: int, size: int) -> int:
    """Return the start of the smallest slot of some nodes that running jobs have released."""
    held, line = state.held, state.later
    found, least = NOWHERE, 0
    for place in range(first, stop):
        job = state.running[place]
        for run in range(held.first[job], held.last[job]):
            slot = position(line.free_start, line.counts[0].slots, held.runs[run, 0])
            start = line.free_start[slot]
            length = line.free_stop[slot] - start
            if length < size or (found != NOWHERE and length > least):
                continue
            if found == NOWHERE or length < least or start < found:
                found, least = start, length
    return int(found)


@kernel(allocates=False)
def free_within(held: Held, first: int, stop: int) -> int:
    """Return how many of some consecutive nodes are free."""
    free = 0
    for slot in range(held.counts[0].slots):
        free += max(0, min(stop, held.free_stop[slot]) - max(first, held.free_start[slot]))
    return int(free)


@kernel(allocates=False)
def smallest_slot(held: Held, size: int, first: int, stop: int) -> int:
    """Return the start of the smallest slot of some nodes, without those from `first` to `stop`."""
    found, least = NOWHERE, 0
    for slot in range(held.counts[0].slots):
        low, high = held.free_start[slot], held.free_stop[slot]
        below, above = min(high, first) - low, high - max(low, stop)
        if below >= size and (found == NOWHERE or below < least):
            found, least = low, below
        if above >= size and (found == NOWHERE or above < least):
            found, least = high - above, above
    return int(found)


@kernel(allocates=False)
def backfill(state: State, rule: Rule, news: News) -> None:
    """Start jobs behind the blocked queue head in the smallest slots, without delay of the head."""
    counts, queue, processors = state.counts[0], state.queue, state.processors
    longest, now = largest_length(state.held), news.now[0]
    if counts.waiting == 0 or processors[queue[0]] <= longest:  # left to the next window
        return
    place = 1
    while place < counts.waiting and processors[queue[place]] > longest:
        place += 1
    if place == counts.waiting:
        return
    if rule.scatters:  # by number only: the reservation of EASY
        missing, end = processors[queue[0]] - counts.free, state.estimated_end
        shadow, extra = shadow_of(state.running, counts.running, end, processors, missing, now)
        counts.shadow, counts.first, counts.stop, counts.extra = shadow, 0, 0, extra
    else:
        reserve_slot(state, now, queue[0])
    while place < counts.waiting and longest > 0:
        job, found = queue[place], NOWHERE
        size, in_time = processors[job], state.requested[job] <= counts.shadow - now
        if in_time and size <= longest:
            found = smallest_slot(state.held, size, 0, 0)
        elif size <= min(longest, counts.extra):
            found = smallest_slot(state.held, size, counts.first, counts.stop)
        if found == NOWHERE:
            place += 1
            continue
        counts.extra -= 0 if in_time else size
        begin_at(state, news, job, found)
        longest = largest_length(state.held)


@kernel
def decide(state: State, rule: Rule, news: News) -> int:
    """Start the jobs that the answers place, `State.answer` after `OPEN`, then backfill."""
    counts = state.counts[0]
    if not counts.awaited:
        hear(state, news)
        if rule.scatters:
            scatter(state, news)
    while counts.awaited or find_problem(state, rule):
        if not counts.awaited and not find_answer(state, rule, news.now[0]):
            counts.awaited = 1
            return _core.OPEN
        counts.awaited = 0
        if not is_feasible(state):
            return _core.WRONG
        if not place(state, news) or not rule.repeats:
            break
    if rule.scatters:
        scatter(state, news)
    if rule.backfills:
        backfill(state, rule, news)
    return _core.DONE
