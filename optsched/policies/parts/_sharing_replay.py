"""Replay of the policies for nodes that share resources, compiled.

The readable statement is the engine with `SJBF` or `RUA`, `ReservationTable`, `ResourceSharing` and
the solvers of threshold allocation, whose kernels are called here as well. What else would happen
(a solver without a place for a queue head, a wrong answer, space that does not suffice) sets
`FAILED`, and the engine runs the trace.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.by_reference import by_reference
from optsched.compiled import kernel
from optsched.models.threshold_allocation._check import added_penalty, checked_penalty
from optsched.models.threshold_allocation._timeline import (
    Timeline,
    least_limit,
    starts_within,
    write_timeline,
)
from optsched.models.threshold_allocation.presolve import NEVER
from optsched.policies.parts._reservation_table import JobNumbers
from optsched.solvers.threshold_allocation._bottleneck import (
    EVERYBODY,
    RESPONSE,
    START,
    best_placement,
)
from optsched.solvers.threshold_allocation._moving import first_fit_with_moves
from optsched.solvers.threshold_allocation._penalties import Job

Times = NDArray[np.float64]
Numbers = NDArray[np.int64]

FIRST_FIT, LESS_CONSUME, LESS_CONSUME_THRESHOLD, BOTTLENECK_SEARCH = range(4)
"""The values of `Rule.solver`."""

NO_JOB = -1

NO_LATEST = 10**12
"""Latest start of a problem without one: `LARGEST_FIELD`."""

NO_THRESHOLD = -1

LARGEST_EXACT = 2**53
"""Largest penalized walltime in units of which factors are exact quotients, as in Python."""

(
    RUNNING, QUEUED, NEXT, ENTRIES, RUNS, FREE, RESERVED, HEAD, HEAD_THRESHOLD, EVENTS,
    PREDICTIONS, WAKES, STAMP, HOPELESS, DECISIONS, PROBLEMS, FAILED,
) = range(17)  # fmt: skip
"""Entries of `State.tally`: running jobs, queued jobs, the next job to be submitted, entries of
`State.node`, entries of `State.runs`, free processors, rows of the reservation in `State.held`, job
and threshold of the last reservation, entries of the heap of ends, predictions so far, timers, last
stamp of `State.mark`, jobs in `State.hopeless`, decisions, problems, whether the replay has failed.
"""

RESERVED_START, WAKES_AT = range(2)
"""Entries of `State.times`: start of the last reservation, last timer."""


class Rule(NamedTuple):
    """Settings of the policy, the machine and the solver."""

    by_slowdown: bool  # rua; otherwise sjbf
    goal: int
    second_goal: int  # of the place at the first start within the threshold, or -1
    solver: int
    most_work: float  # of the bottleneck search
    raises: bool  # whether limits are raised by the penalty
    slows: bool  # whether jobs slow down on nodes that they share
    in_all: bool  # whether each process of a job runs for itself
    processors: int  # of a node
    unit: int


class Problems(NamedTuple):
    """The problems posed and their answers."""

    time: Times
    decision: Numbers
    submitted: Numbers  # the last job submitted at the time of the decision, or -1
    job: Numbers
    answered: Numbers  # whether there is a placement
    objective: Numbers  # of the placement used
    heuristic: Numbers  # of the fallback's placement
    bound: Numbers
    work: Numbers


@by_reference
class State(NamedTuple):
    """State of a replay: jobs, queue, nodes, events."""

    # of each job
    submit: Times
    asked: Numbers
    walltime: Numbers
    order: Times  # candidates are tried in this order, then by submission
    demand: Numbers  # shape (jobs, resources)
    thresholds: Numbers  # in thousandths, shape (jobs, thresholds)
    limits: Numbers  # in units, shape (jobs, thresholds)
    work_left: Times
    works_since: Times
    speed: Times
    ends_at: Times
    limit_at: Times
    overruns: NDArray[np.bool_]
    start: Times
    end: Times
    killed: NDArray[np.bool_]
    first: Numbers  # node[first[job]:last[job]] are its nodes
    last: Numbers
    first_run: Numbers  # runs[first_run[job]:last_run[job]] are its processors
    last_run: Numbers
    mark: Numbers
    node: Numbers
    processes: Numbers  # on each node of a job
    left: Times  # work left of the processes on each node of a job, if they run for themselves
    since_then: Times  # penalty of each node of a job since its work was counted
    runs: Numbers
    # sequences of jobs
    queue: Numbers
    candidates: Numbers  # the queue, in `order`
    running: Numbers  # in order of their starts
    by_limit: Numbers
    # of each node
    capacity: Numbers
    scale: Numbers
    used: Numbers  # shape (nodes, resources)
    penalty: Times
    free: NDArray[np.bool_]  # of each processor
    on_node: Numbers  # jobs in order of their starts, shape (nodes, processors)
    on_node_count: Numbers
    reserved: Numbers  # processes of the last reservation
    placed: Numbers  # processes of the last placement posed
    searched: Numbers
    offered: Numbers  # of the best threshold
    chosen: Numbers  # of the best candidate
    # the heap of predicted ends: time, number and job
    heap_time: Times
    heap_number: Numbers
    heap_job: Numbers
    wakes: Times
    tally: Numbers
    times: Times
    problems: Problems
    # scratch of a decision
    held: Numbers  # rows of the reservation, of running jobs, of a candidate
    events: Timeline  # space for the timeline of `held`
    event_order: Numbers
    event_count: Numbers
    starts: Numbers
    bound: Numbers
    tried: Numbers
    hopeless: Numbers  # jobs that were found to have no place now
    affected: Numbers
    new_speed: Times
    level: Numbers
    lost: Numbers
    room: Numbers
    offers: Numbers


class Found(NamedTuple):
    """Start of a placement (-1 without one), its penalized time and its threshold.

    Its processes are in `State.placed`, where the next problem overwrites them.
    """

    start: int
    lost: int
    number: int


def new_state(
    submit: Times,
    runtime: Times,
    order: Times,
    numbers_of: JobNumbers,
    scale: Numbers,
    nodes: int,
    processors: int,
    space: int,
) -> State:
    """Return the state before the first event, with space for problems and predicted ends."""
    asked, walltime, demand, thresholds, limits, capacity = numbers_of
    jobs, resources, size = len(submit), len(capacity), nodes * processors
    held, rows = int(asked[asked <= size].sum()), size + 2 * nodes

    def numbers(*shape: int) -> Numbers:
        return np.zeros(shape, dtype=np.int64)

    tally = numbers(17)
    tally[FREE], tally[HEAD] = size, NO_JOB
    return State(
        submit,
        asked,
        walltime,
        order,
        demand,
        thresholds,
        limits,
        work_left=runtime.copy(),
        works_since=np.zeros(jobs),
        speed=np.ones(jobs),
        ends_at=np.full(jobs, np.inf),
        limit_at=np.zeros(jobs),
        overruns=np.zeros(jobs, dtype=np.bool_),
        start=np.full(jobs, np.nan),
        end=np.full(jobs, np.nan),
        killed=np.zeros(jobs, dtype=np.bool_),
        first=numbers(jobs),
        last=numbers(jobs),
        first_run=numbers(jobs),
        last_run=numbers(jobs),
        mark=numbers(jobs),
        node=np.empty(held, dtype=np.int64),
        processes=np.empty(held, dtype=np.int64),
        left=np.empty(held),
        since_then=np.zeros(held),
        runs=np.empty((held, 2), dtype=np.int64),
        queue=numbers(jobs),
        candidates=numbers(jobs),
        running=numbers(size),
        by_limit=numbers(size),
        capacity=capacity,
        scale=scale,
        used=numbers(nodes, resources),
        penalty=np.zeros(nodes),
        free=np.ones(size, dtype=np.bool_),
        on_node=numbers(nodes, processors),
        on_node_count=numbers(nodes),
        reserved=numbers(nodes),
        placed=numbers(nodes),
        searched=numbers(nodes),
        offered=numbers(nodes),
        chosen=numbers(nodes),
        heap_time=np.empty(space),
        heap_number=np.empty(space, dtype=np.int64),
        heap_job=np.empty(space, dtype=np.int64),
        wakes=np.zeros(jobs + 1),
        tally=tally,
        times=np.full(2, -np.inf),
        problems=Problems(np.zeros(space), *(numbers(space) for _ in Problems._fields[1:])),
        held=numbers(rows, 4 + resources),
        events=Timeline(
            numbers(nodes + 1), numbers(2 * rows), numbers(2 * rows), numbers(2 * rows, resources)
        ),
        event_order=numbers(2 * rows),
        event_count=numbers(nodes),
        starts=numbers(size + 2),
        bound=numbers(jobs),
        tried=numbers(jobs),
        hopeless=numbers(jobs),
        affected=numbers(size),
        new_speed=np.zeros(size),
        level=numbers(resources),
        lost=numbers(processors),
        room=numbers(limits.shape[1]),
        offers=numbers(limits.shape[1]),
    )


@kernel(allocates=False)
def push_end(state: State, at: float, job: int) -> None:
    """Add a predicted end to the heap; entries with another time than `ends_at` are outdated."""
    tally, times = state.tally, state.heap_time
    tally[PREDICTIONS] += 1
    place = tally[EVENTS]
    if place == len(times):
        tally[FAILED] = 1
        return
    tally[EVENTS] += 1
    while place > 0 and times[(place - 1) // 2] > at:  # of equal times, the first number is first
        above = (place - 1) // 2
        times[place] = times[above]
        state.heap_number[place] = state.heap_number[above]
        state.heap_job[place] = state.heap_job[above]
        place = above
    times[place], state.heap_number[place], state.heap_job[place] = at, tally[PREDICTIONS], job


@kernel(allocates=False)
def pop_end(state: State) -> int:
    """Remove the first predicted end from the heap; return its job."""
    tally, times, number = state.tally, state.heap_time, state.heap_number
    found: int = state.heap_job[0]
    tally[EVENTS] -= 1
    end = tally[EVENTS]
    at, last, job = times[end], number[end], state.heap_job[end]
    place, below = 0, 1
    while below < end:
        right = below + 1
        if right < end and (
            times[right] < times[below]
            or (times[right] == times[below] and number[right] < number[below])
        ):
            below = right
        if times[below] > at or (times[below] == at and number[below] > last):
            break
        times[place], number[place] = times[below], number[below]
        state.heap_job[place] = state.heap_job[below]
        place, below = below, 2 * below + 1
    times[place], number[place], state.heap_job[place] = at, last, job
    return found


@kernel(allocates=False)
def predict_end(state: State, tolerance: float, job: int) -> None:
    """Predict the end of a job from its work left, its speed and its limit."""
    at, limit = state.works_since[job], state.limit_at[job]
    at += max(0.0, state.work_left[job]) / state.speed[job]
    state.overruns[job] = at > limit + tolerance
    if state.overruns[job]:
        at = limit
    if at != state.ends_at[job]:
        state.ends_at[job] = at
        push_end(state, at, job)


@kernel(allocates=False)
def count_work(state: State, now: float, job: int) -> None:
    """Count the work that a job has done up to now."""
    if now > state.works_since[job]:
        state.work_left[job] -= (now - state.works_since[job]) * state.speed[job]
        state.works_since[job] = now


@kernel(allocates=False)
def speed_in_all(state: State, now: float, job: int) -> float:
    """Count the work of a job's processes, and return the speed to end with the last of them.

    The same as `_Progress` of `ResourceSharing`.
    """
    done_in, remaining = now - state.works_since[job], 0.0
    for entry in range(state.first[job], state.last[job]):
        if done_in > 0:
            state.left[entry] -= done_in / (1.0 + state.since_then[entry])
        state.since_then[entry] = state.penalty[state.node[entry]]
        remaining = max(remaining, state.left[entry] * (1.0 + state.since_then[entry]))
    count_work(state, now, job)
    if min(state.work_left[job], remaining) > 0:
        return float(state.work_left[job] / remaining)
    return float(state.speed[job])


@kernel(allocates=False)
def change_speeds(
    state: State, rule: Rule, tolerance: float, now: float, sign: int, job: int
) -> None:
    """Add the demand of a job to its nodes, or remove it, and change the speeds that differ.

    The same as `ResourceSharing.started` with a sign of 1, and `ended` with -1.
    """
    tally, capacity, affected = state.tally, state.capacity, state.affected
    tally[STAMP] += 1
    stamp = tally[STAMP]
    found = 0
    if sign > 0:
        affected[0], found = job, 1
        state.mark[job] = stamp
    for entry in range(state.first[job], state.last[job]):
        node = state.node[entry]
        penalty = 0.0
        for r in range(len(capacity)):
            state.used[node, r] += sign * state.processes[entry] * state.demand[job, r]
            penalty += max(state.used[node, r] - capacity[r], 0) / capacity[r]
        if penalty == state.penalty[node]:
            continue
        state.penalty[node] = penalty
        for place in range(state.on_node_count[node]):
            other = state.on_node[node, place]
            if state.mark[other] != stamp:
                state.mark[other] = stamp
                affected[found] = other
                found += 1
    for place in range(found):
        other = affected[place]
        if rule.in_all:
            state.new_speed[place] = speed_in_all(state, now, other)
            continue
        worst = 0.0
        for entry in range(state.first[other], state.last[other]):
            worst = max(worst, state.penalty[state.node[entry]])
        state.new_speed[place] = 1.0 / (1.0 + worst)
    for place in range(found):
        other = affected[place]
        if rule.in_all or state.new_speed[place] != state.speed[other]:
            count_work(state, now, other)
            state.speed[other] = state.new_speed[place]
            predict_end(state, tolerance, other)


@kernel(allocates=False)
def remove(jobs: Numbers, length: int, job: int) -> None:
    """Remove a job from a sequence."""
    place = 0
    while jobs[place] != job:
        place += 1
    for later in range(place + 1, length):
        jobs[later - 1] = jobs[later]


@kernel(allocates=False)
def insert(jobs: Numbers, length: int, key: Times, job: int) -> None:
    """Insert a job into a sequence that is ordered by a key, then by job."""
    place = length
    while place > 0 and (
        key[jobs[place - 1]] > key[job]
        or (key[jobs[place - 1]] == key[job] and jobs[place - 1] > job)
    ):
        jobs[place] = jobs[place - 1]
        place -= 1
    jobs[place] = job


@kernel(allocates=False)
def end(state: State, rule: Rule, tolerance: float, now: float, job: int) -> None:
    """End a job."""
    tally = state.tally
    state.ends_at[job] = np.inf
    count_work(state, now, job)
    state.end[job] = now
    state.killed[job] = state.overruns[job]
    for run in range(state.first_run[job], state.last_run[job]):
        for processor in range(state.runs[run, 0], state.runs[run, 1]):
            state.free[processor] = True
    tally[FREE] += state.asked[job]
    for entry in range(state.first[job], state.last[job]):
        node = state.node[entry]
        remove(state.on_node[node], state.on_node_count[node], job)
        state.on_node_count[node] -= 1
    remove(state.running, tally[RUNNING], job)
    remove(state.by_limit, tally[RUNNING], job)
    tally[RUNNING] -= 1
    if rule.slows:
        change_speeds(state, rule, tolerance, now, -1, job)


@kernel(allocates=False)
def limit_of(state: State, rule: Rule, job: int, lost: int) -> int:
    """Return the seconds for which a job may run with a penalized time in units."""
    seconds: int = state.walltime[job]
    if rule.raises:
        seconds -= -lost // rule.unit
    return seconds


@kernel(allocates=False)
def claim(state: State, rule: Rule, job: int, processes: Numbers) -> bool:
    """Give a job the first free processors of its nodes; return whether there are enough."""
    tally, runs = state.tally, state.runs
    state.first[job], state.first_run[job] = tally[ENTRIES], tally[RUNS]
    for node in range(len(processes)):
        missing = processes[node]
        if missing == 0:
            continue
        state.node[tally[ENTRIES]], state.processes[tally[ENTRIES]] = node, missing
        state.left[tally[ENTRIES]] = state.work_left[job]
        tally[ENTRIES] += 1
        for processor in range(node * rule.processors, (node + 1) * rule.processors):
            if missing > 0 and state.free[processor]:
                state.free[processor] = False
                missing -= 1
                if tally[RUNS] > state.first_run[job] and runs[tally[RUNS] - 1, 1] == processor:
                    runs[tally[RUNS] - 1, 1] += 1
                else:
                    runs[tally[RUNS], 0], runs[tally[RUNS], 1] = processor, processor + 1
                    tally[RUNS] += 1
        if missing > 0:
            return False
        state.on_node[node, state.on_node_count[node]] = job
        state.on_node_count[node] += 1
    state.last[job], state.last_run[job] = tally[ENTRIES], tally[RUNS]
    tally[FREE] -= state.asked[job]
    return True


@kernel(allocates=False)
def start(
    state: State, rule: Rule, tolerance: float, now: float, job: int, processes: Numbers, lost: int
) -> None:
    """Start a job on its nodes, with a limit by its penalized time."""
    tally = state.tally
    remove(state.queue, tally[QUEUED], job)
    remove(state.candidates, tally[QUEUED], job)
    tally[QUEUED] -= 1
    if not claim(state, rule, job, processes):
        tally[FAILED] = 1
        return
    state.start[job] = state.works_since[job] = now
    state.limit_at[job] = now + limit_of(state, rule, job, lost)
    insert(state.by_limit, tally[RUNNING], state.limit_at, job)
    state.running[tally[RUNNING]] = job
    tally[RUNNING] += 1
    if rule.slows:
        change_speeds(state, rule, tolerance, now, 1, job)
    predict_end(state, tolerance, job)


@kernel(allocates=False)
def seconds_left(state: State, now: float, job: int) -> int:
    """Return the whole seconds until the limit of a running job, at least one."""
    return max(int(np.ceil(state.limit_at[job] - now)), 1)


@kernel(allocates=False)
def add_row(state: State, at: int, job: int, node: int, count: int, begin: int, until: int) -> None:
    """Write processes of a job on a node to a row of `State.held`."""
    row = state.held[at]
    row[0], row[1], row[2], row[3] = node, count, begin, until
    for r in range(len(state.capacity)):
        row[4 + r] = state.demand[job, r]


@kernel(allocates=False)
def add_running(state: State, now: float) -> int:
    """Write the rows of running jobs behind those of the reservation; return the number of rows."""
    rows: int = state.tally[RESERVED]
    for place in range(state.tally[RUNNING]):
        job = state.running[place]
        until = seconds_left(state, now, job)
        for entry in range(state.first[job], state.last[job]):
            add_row(state, rows, job, state.node[entry], state.processes[entry], 0, until)
            rows += 1
    return rows


@kernel(allocates=False)
def holdings(state: State, now: float) -> tuple[Numbers, Timeline]:
    """Return all rows as seen from now, and their timeline."""
    rows = add_running(state, now)
    held = state.held[:rows]
    first, time, processes, demand = state.events
    events = Timeline(first, time[: 2 * rows], processes[: 2 * rows], demand[: 2 * rows])
    write_timeline(held, events, state.event_count, state.event_order)
    return held, events


@kernel(allocates=False)
def copy(processes: Numbers, copied: Numbers) -> None:
    """Make the processes on each node equal to others."""
    for node in range(len(processes)):
        processes[node] = copied[node]


@kernel(allocates=False)
def reserve(state: State, job: int, processes: Numbers, begin: int, seconds: int) -> None:
    """Write the rows of the reservation."""
    rows = 0
    for node in range(len(processes)):
        if processes[node] > 0:
            add_row(state, rows, job, node, processes[node], begin, begin + seconds)
            rows += 1
    state.tally[RESERVED] = rows


@kernel(allocates=False)
def first_room(state: State, now: float, job: int) -> int:
    """Return the seconds until enough processors are free for a job, if no other starts."""
    missing = state.asked[job] - state.tally[FREE]
    place = 0
    while missing > 0:
        missing -= state.asked[state.by_limit[place]]
        place += 1
    return seconds_left(state, now, state.by_limit[place - 1]) if place > 0 else 0


@kernel(allocates=False)
def find_starts(state: State, now: float, latest: int) -> int:
    """Write now and the ends of allocations up to the latest start; return their number."""
    starts, found = state.starts, 1
    starts[0] = 0
    reserved = state.held[0, 3] if state.tally[RESERVED] > 0 else NO_LATEST + 1
    for place in range(state.tally[RUNNING] + 1):
        at = reserved
        if place < state.tally[RUNNING]:
            at = seconds_left(state, now, state.by_limit[place])
        if reserved < at:
            at, reserved = reserved, at  # the later one is next, if it is an end of its own
        if starts[found - 1] < at <= latest:
            starts[found] = at
            found += 1
    return found


@kernel(allocates=False)
def value(
    state: State,
    rule: Rule,
    held: Numbers,
    job: int,
    number: int,
    goal: int,
    latest: int,
    begin: int,
    processes: Numbers,
) -> tuple[int, int]:
    """Verify a placement; return its objective and penalized time, or fail."""
    machine = (held, rule.processors, state.capacity, state.scale)
    asking = (state.asked[job], state.walltime[job], state.demand[job], begin, processes)
    lost = checked_penalty(*machine, *asking, False)
    requested = state.walltime[job] * rule.unit
    threshold = state.thresholds[job, number]
    feasible = begin <= latest and 0 <= lost <= LARGEST_EXACT - requested
    if feasible and threshold != NO_THRESHOLD:
        feasible = 1000 * (requested + lost) <= threshold * requested
    if not feasible:
        state.tally[FAILED] = 1
    objective = lost
    if goal == START:
        objective = begin
    elif goal == RESPONSE:
        objective = begin * rule.unit + lost
    elif goal == EVERYBODY:
        objective = added_penalty(held, state.capacity, state.scale, *asking[1:])
    return objective, lost


@kernel(allocates=False)
def pose(
    state: State,
    rule: Rule,
    held: Numbers,
    events: Timeline,
    now: float,
    submitted: int,
    job: int,
    number: int,
    goal: int,
    earliest: int,
    latest: int,
) -> Found:
    """Solve, verify and record a problem, as `ProblemSolver.pose` does with the solver.

    Before the start `earliest` the job has no place within the threshold. The bottleneck search is
    compared with its fallback, whose placement is used if it is as good.
    """
    tally, problems, limit = state.tally, state.problems, state.limits[job, number]
    at = tally[PROBLEMS]
    if at == len(problems.time):
        tally[FAILED] = 1
        return Found(-1, 0, number)
    asking = Job(
        rule.processors,
        state.asked[job],
        state.walltime[job],
        state.demand[job],
        state.capacity,
        state.scale,
    )
    enough, later = 0, rule.solver >= LESS_CONSUME_THRESHOLD
    if rule.solver == FIRST_FIT:
        enough = -1
    elif later and state.thresholds[job, number] != NO_THRESHOLD:
        enough = limit
    rule_of_moves = (enough, limit, later)
    begin = first_fit_with_moves(
        events, asking, earliest if later else 0, latest, *rule_of_moves, state.placed
    )
    objective, lost = 0, 0
    if begin >= 0:
        objective, lost = value(state, rule, held, job, number, goal, latest, begin, state.placed)
    problems.heuristic[at] = objective
    problems.bound[at], problems.work[at] = 0, len(state.reserved)
    if rule.solver == BOTTLENECK_SEARCH:
        found = find_starts(state, now, latest)
        skipped = 0
        while skipped < found and state.starts[skipped] < earliest:
            skipped += 1
        starts = state.starts[skipped:found]
        best, other_begin, tried, _ = best_placement(
            events, asking, goal, rule.unit, limit, starts, NEVER, state.searched
        )
        tried += skipped
        if tried >= rule.most_work or (other_begin < 0) != (begin < 0):
            tally[FAILED] = 1
        if other_begin >= 0:
            claimed = best
            best, other_lost = value(
                state, rule, held, job, number, goal, latest, other_begin, state.searched
            )
            if claimed != best or best > objective:
                tally[FAILED] = 1
            problems.bound[at] = best
            if best < objective:
                objective, begin, lost = best, other_begin, other_lost
                copy(state.placed, state.searched)
        problems.work[at] = tried
    problems.time[at] = now
    problems.decision[at] = tally[DECISIONS]
    problems.submitted[at] = submitted
    problems.job[at] = job
    problems.answered[at] = begin >= 0
    problems.objective[at] = objective
    tally[PROBLEMS] += 1
    return Found(begin, lost, number)


@kernel(allocates=False)
def weighed(
    state: State,
    rule: Rule,
    held: Numbers,
    events: Timeline,
    now: float,
    submitted: int,
    job: int,
    found: Found,
) -> Found:
    """Return the place of least cost at the first start within a threshold, as `SJBF` does."""
    if rule.second_goal < 0:
        return found
    copy(state.offered, state.placed)
    goal, at = (found.number, rule.second_goal), (found.start, found.start)
    better = pose(state, rule, held, events, now, submitted, job, *goal, *at)
    if better.start >= 0:
        return better
    copy(state.placed, state.offered)
    return found


@kernel(allocates=False)
def find_offers(state: State, events: Timeline, job: int) -> None:
    """Write the first start of a job within each of its thresholds to `State.offers`."""
    space = (state.level, state.lost, state.room, state.offers)
    asking = (state.asked[job], state.walltime[job], state.demand[job], state.limits[job])
    starts_within(events, state.capacity, state.scale, *asking, *space)


@kernel(allocates=False)
def least_slowdown(
    state: State, rule: Rule, held: Numbers, events: Timeline, now: float, submitted: int, job: int
) -> Found:
    """Return the place and start of a job with the least slowdown, as `RUA` does."""
    best = Found(-1, 0, 0)
    find_offers(state, events, job)
    posed = (state, rule, held, events, now, submitted, job)
    if rule.goal == RESPONSE:
        return pose(*posed, 0, RESPONSE, state.offers[0], NO_LATEST)
    best_end = 0
    last = state.limits.shape[1]
    while last > 0:
        begin = state.offers[last - 1]
        first = last - 1
        while first > 0 and state.offers[first - 1] == begin:
            first -= 1
        if best.start >= 0 and begin + state.walltime[job] > best_end:
            break
        for number in range(first, last):
            found = pose(*posed, number, START, begin, NO_LATEST)
            if found.start >= 0:
                ends = found.start + state.walltime[job] - -found.lost // rule.unit
                if best.start < 0 or ends <= best_end:
                    best, best_end = found, ends
                    copy(state.offered, state.placed)
                break
        last = first
    copy(state.placed, state.offered)
    return best


@kernel(allocates=False)
def breaks_reservation(
    state: State, rule: Rule, now: float, job: int, found: Found, begin: int, at: float
) -> bool:
    """Return whether a job that starts now would make the reservation infeasible.

    See `ReservationTable.breaks_reservation`; the reservation begins in `begin` seconds, exactly
    `at`.
    """
    tally, head = state.tally, state.tally[HEAD]
    limit = limit_of(state, rule, job, found.lost)
    if now + limit <= at:
        return False
    shares = False
    for node in range(len(state.reserved)):
        shares = shares or (state.placed[node] > 0 and state.reserved[node] > 0)
    if not shares:
        return False
    if limit <= begin:
        return True
    if now + begin > at:
        limit += 1
    rows = add_running(state, now)
    for node in range(len(state.placed)):
        if state.placed[node] > 0:
            add_row(state, rows, job, node, state.placed[node], 0, limit)
            rows += 1
    held = state.held[tally[RESERVED] : rows]
    return not is_place(state, rule, held, head, tally[HEAD_THRESHOLD], begin, state.reserved)


@kernel(allocates=False)
def is_place(
    state: State, rule: Rule, held: Numbers, job: int, number: int, begin: int, processes: Numbers
) -> bool:
    """Return whether a placement is feasible, apart from starts that must be at an event."""
    machine = (held, rule.processors, state.capacity, state.scale)
    asking = (state.asked[job], state.walltime[job], state.demand[job], begin, processes)
    lost = checked_penalty(*machine, *asking, True)
    requested, threshold = state.walltime[job] * rule.unit, state.thresholds[job, number]
    if lost > LARGEST_EXACT - requested:
        state.tally[FAILED] = 1
        return False
    return lost >= 0 and (
        threshold == NO_THRESHOLD or 1000 * (requested + lost) <= threshold * requested
    )


@kernel(allocates=False)
def place_head(
    state: State, rule: Rule, held: Numbers, events: Timeline, now: float, submitted: int, job: int
) -> Found:
    """Return place and start of the queue head, or fail."""
    if rule.by_slowdown:
        found = least_slowdown(state, rule, held, events, now, submitted, job)
        if found.start < 0:
            state.tally[FAILED] = 1
        return found
    if state.thresholds[job, 0] == NO_THRESHOLD:
        earliest, latest = 0, first_room(state, now, job)
    else:
        find_offers(state, events, job)
        earliest, latest = state.offers[0], NO_LATEST
    posed = (state, rule, held, events, now, submitted, job)
    found = pose(*posed, 0, rule.goal, earliest, latest)
    if found.start < 0:
        state.tally[FAILED] = 1
        return found
    return weighed(state, rule, held, events, now, submitted, job, found)


@kernel(allocates=False)
def decide(state: State, rule: Rule, tolerance: float, now: float, submitted: int) -> None:
    """Start queue heads, reserve for the first that has to wait, backfill, as `Sharing.decide`."""
    tally, times = state.tally, state.times
    tally[DECISIONS] += 1
    tally[RESERVED] = 0
    while tally[QUEUED] > 0:
        head = state.queue[0]
        held, events = holdings(state, now)
        found = place_head(state, rule, held, events, now, submitted, head)
        if tally[FAILED]:
            return
        begin = found.start
        kept = False
        if tally[HEAD] == head and now + begin >= times[RESERVED_START] + 1:
            promised = max(0, int(np.ceil(times[RESERVED_START] - now)))
            number = tally[HEAD_THRESHOLD]
            kept = is_place(state, rule, held, head, number, promised, state.reserved)
            if kept:
                begin = promised
                machine = (held, rule.processors, state.capacity, state.scale)
                asking = (state.asked[head], state.walltime[head], state.demand[head])
                lost = checked_penalty(*machine, *asking, begin, state.reserved, True)
                found = Found(begin, lost, number)
                copy(state.placed, state.reserved)
        if begin == 0:
            start(state, rule, tolerance, now, head, state.placed, found.lost)
            if tally[FAILED]:
                return
            continue
        at = now + begin
        if tally[HEAD] == head:
            at = min(at, times[RESERVED_START])
        if not kept:
            tally[HEAD], tally[HEAD_THRESHOLD] = head, found.number
            times[RESERVED_START] = at
            copy(state.reserved, state.placed)
        elif at != times[WAKES_AT]:
            times[WAKES_AT] = at
            if tally[WAKES] == len(state.wakes):
                tally[FAILED] = 1
                return
            state.wakes[tally[WAKES]] = at
            tally[WAKES] += 1
        if tally[QUEUED] > 1 and tally[FREE] > 0:
            seconds = limit_of(state, rule, head, found.lost)
            reserve(state, head, state.reserved, begin, seconds)
            tally[HOPELESS] = 0  # starts leave no room that was not there before
            if rule.by_slowdown:
                backfill_by_penalty(state, rule, tolerance, now, submitted, begin, at)
            else:
                backfill_in_order(state, rule, tolerance, now, submitted, begin, at)
        return


@kernel(allocates=False)
def backfill_in_order(
    state: State,
    rule: Rule,
    tolerance: float,
    now: float,
    submitted: int,
    begin: int,
    at: float,
) -> None:
    """Start the candidates that have a place now, the shortest first, as `SJBF.backfill`.

    Each candidate is tried once, since starts leave no room that was not there before.
    """
    tally = state.tally
    held, events = holdings(state, now)
    place = 0
    while place < tally[QUEUED] and tally[FREE] > 0:
        job = state.candidates[place]
        place += 1
        if job == tally[HEAD] or not placeable_now(state, events, job):
            continue
        found = pose(state, rule, held, events, now, submitted, job, 0, rule.goal, 0, 0)
        if found.start >= 0:
            found = weighed(state, rule, held, events, now, submitted, job, found)
            if not tally[FAILED] and not breaks_reservation(
                state, rule, now, job, found, begin, at
            ):
                start(state, rule, tolerance, now, job, state.placed, found.lost)
                place -= 1
                held, events = holdings(state, now)
        if tally[FAILED]:
            return


@kernel(allocates=False)
def placeable_now(state: State, events: Timeline, job: int) -> bool:
    """Return whether a job has a place now within one of its thresholds.

    The number of the least such threshold is left in `State.bound`.
    """
    tally = state.tally
    if state.asked[job] > tally[FREE]:
        return False
    for place in range(tally[HOPELESS]):
        if asks_as_much(state, job, state.hopeless[place]):
            return False
    space = (state.level, state.lost, state.room)
    asking = (state.asked[job], state.walltime[job], state.demand[job], state.limits[job])
    number = least_limit(events, state.capacity, state.scale, tally[FREE], *asking, *space)
    state.bound[job] = number
    if number == state.limits.shape[1]:
        state.hopeless[tally[HOPELESS]] = job
        tally[HOPELESS] += 1
        return False
    return True


@kernel(allocates=False)
def asks_as_much(state: State, job: int, other: int) -> bool:
    """Return whether a job has no place now if another has none: it asks at least as much.

    What a node takes of a job within a limit shrinks with the walltime and the demand.
    """
    last = state.limits.shape[1] - 1
    asks = state.asked[job] >= state.asked[other] and state.walltime[job] >= state.walltime[other]
    asks = asks and state.limits[job, last] <= state.limits[other, last]
    for r in range(len(state.capacity)):
        asks = asks and state.demand[job, r] >= state.demand[other, r]
    return asks


@kernel(allocates=False)
def find_bounds(state: State, events: Timeline, number: int) -> int:
    """Keep those of the first jobs in `State.tried` that can start now, ordered by least rank.

    Ranks are penalty factor, requested time and submission, the last two as in `candidates`; the
    factor is above the thresholds within which the job cannot start now. Returns their number.
    """
    found = 0
    for place in range(number):
        job = state.tried[place]
        if placeable_now(state, events, job):
            state.tried[found] = job
            found += 1
    return found


@kernel(allocates=False)
def sort_by_bound(state: State, number: int) -> None:
    """Sort the first jobs in `State.tried` by the bound of their rank."""
    tried = state.tried
    for end_of_sorted in range(1, number):
        job = tried[end_of_sorted]
        place = end_of_sorted
        while place > 0 and is_before(state, job, tried[place - 1]):
            tried[place] = tried[place - 1]
            place -= 1
        tried[place] = job


@kernel(allocates=False)
def factor_above(state: State, job: int) -> float:
    """Return a lower bound of the penalty factor of a job that starts now."""
    number = state.bound[job]
    return state.thresholds[job, number - 1] / 1000 if number > 0 else 1.0


@kernel(allocates=False)
def is_before(state: State, job: int, other: int) -> bool:
    """Return whether the bound of a job's rank is below that of another's."""
    one, two = factor_above(state, job), factor_above(state, other)
    if one != two:
        return one < two
    if state.order[job] != state.order[other]:
        return bool(state.order[job] < state.order[other])
    return job < other


@kernel(allocates=False)
def backfill_by_penalty(
    state: State,
    rule: Rule,
    tolerance: float,
    now: float,
    submitted: int,
    begin: int,
    at: float,
) -> None:
    """Start jobs one by one, each time that with the least penalty factor, as `RUA.backfill`."""
    tally = state.tally
    number = tally[QUEUED] - 1
    for place in range(number):
        state.tried[place] = state.queue[place + 1]
    while tally[FREE] > 0:
        held, events = holdings(state, now)
        number = find_bounds(state, events, number)
        sort_by_bound(state, number)
        best_job, best_factor, best_lost = NO_JOB, 0.0, 0
        for place in range(number):
            job = state.tried[place]
            bound = factor_above(state, job)
            if best_job != NO_JOB and not is_below(state, bound, job, best_factor, best_job):
                break
            found = least_slowdown(state, rule, held, events, now, submitted, job)
            if tally[FAILED]:
                return
            if found.start != 0 or breaks_reservation(state, rule, now, job, found, begin, at):
                continue
            requested = state.walltime[job] * rule.unit
            factor = (requested + found.lost) / requested
            if best_job == NO_JOB or is_below(state, factor, job, best_factor, best_job):
                best_job, best_factor, best_lost = job, factor, found.lost
                copy(state.chosen, state.placed)
        if best_job == NO_JOB or tally[FAILED]:
            return
        start(state, rule, tolerance, now, best_job, state.chosen, best_lost)
        if tally[FAILED]:
            return
        kept = 0
        for place in range(number):
            if state.tried[place] != best_job:
                state.tried[kept] = state.tried[place]
                kept += 1
        number = kept


@kernel(allocates=False)
def is_below(state: State, factor: float, job: int, other_factor: float, other: int) -> bool:
    """Return whether a rank, by penalty factor, requested time and submission, is below another."""
    if factor != other_factor:
        return factor < other_factor
    if state.order[job] != state.order[other]:
        return bool(state.order[job] < state.order[other])
    return job < other


@kernel(allocates=False)
def replay(state: State, rule: Rule, tolerance: float) -> bool:
    """Process all events; return whether the engine would do the same."""
    tally, submit = state.tally, state.submit
    jobs, size = len(submit), len(state.free)
    while True:
        now = submit[tally[NEXT]] if tally[NEXT] < jobs else np.inf
        if tally[EVENTS] > 0:
            now = min(now, state.heap_time[0])
        wake = -1
        for place in range(tally[WAKES]):
            if state.wakes[place] <= now:
                now, wake = state.wakes[place], place
        if now == np.inf:
            return tally[FAILED] == 0
        happened = False
        while tally[EVENTS] > 0 and state.heap_time[0] == now:
            job = pop_end(state)
            if state.ends_at[job] == now:
                end(state, rule, tolerance, now, job)
                happened = True
        submitted = NO_JOB
        while tally[NEXT] < jobs and submit[tally[NEXT]] == now:
            submitted = tally[NEXT]
            tally[NEXT] += 1
            happened = True
            if state.asked[submitted] <= size:
                state.queue[tally[QUEUED]] = submitted
                insert(state.candidates, tally[QUEUED], state.order, submitted)
                tally[QUEUED] += 1
        if happened:
            decide(state, rule, tolerance, now, submitted)
        if wake >= 0:
            tally[WAKES] -= 1  # the decision may have added another, behind the former last one
            state.wakes[wake] = state.wakes[tally[WAKES]]
            decide(state, rule, tolerance, now, submitted)
        if tally[FAILED]:
            return False
