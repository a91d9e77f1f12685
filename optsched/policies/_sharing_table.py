"""What is held on nodes that share resources, as seen from now, and the reservation, compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.by_reference import Record, by_reference, record
from optsched.compiled import kernel
from optsched.executions._shared_nodes import Places
from optsched.machines._ascending import delete, enter, insert, place_of, remove
from optsched.models.threshold_allocation._check import BROKEN, checked_penalty
from optsched.models.threshold_allocation._timeline import (
    Job,
    Space,
    Timeline,
    add_event,
)
from optsched.simulator._core import LIMIT, N_ENDED, N_SUBMITTED, START, News, tell

Times = NDArray[np.float64]
Numbers = NDArray[np.int64]

NO_JOB = -1

NO_LATEST = 10**12
"""Latest start of a problem without one: `LARGEST_FIELD`."""


COUNTS = record(
    "running queued entries runs free starts rows reserved looks decisions problems asks backfills"
)
"""Running and queued jobs, entries of `Places.node` and of `State.runs`, free processors,
`State.starts`; rows of `State.held`, those of the reservation among them, how often they were
written; decisions, problems on record, what the kernel asks for, whether jobs are backfilled."""

RESERVATION = record("job number begin", "start wakes_at")
"""Job and threshold of the last reservation, seconds until its start, its start, last timer."""

SEARCH = record(
    "job posed goal number earliest latest answer penalty first last place start lost at ends"
)
"""Search for the place of a job: problems posed; goal, threshold and range of starts of the present
one; start and penalized time of its answer; the first and the last of the thresholds with the same
first start, and the next start to be tested, in `State.starts`; start, penalized time and threshold
of the best answer, and its end in seconds."""

ROUND = record("place tried hopeless best lost", "factor")
"""Round of backfilling: the next candidate, jobs in `State.tried` and in `State.hopeless`; the job
with the least penalty factor so far, its penalized time and its factor."""


class Rule(NamedTuple):
    """Settings of the policy, the machine and the solver."""

    by_slowdown: bool  # rua; otherwise sjbf
    goal: int
    second_goal: int  # of the place at the first start within the threshold, or -1
    answer: int  # how problems are answered
    most_work: float  # of the bottleneck search
    raises: bool  # whether limits are raised by the penalty


@by_reference
class Problems(NamedTuple):
    """The problems posed and their answers."""

    time: Times
    decision: Numbers
    job: Numbers
    answered: Numbers  # whether there is a placement
    objective: Numbers  # of the placement used
    heuristic: Numbers  # of the fallback's placement
    bound: Numbers
    work: Numbers


@by_reference
class Nodes(NamedTuple):
    """The machine: nodes, processors of each, capacities of each, units as in the problem."""

    nodes: int
    processors: int
    capacity: Numbers
    scale: Numbers
    unit: int


class JobNumbers(NamedTuple):
    """The jobs of a run, with what the state keeps of each."""

    asked: Numbers
    walltime: Numbers  # whole seconds
    demand: Numbers  # of one process, shape (jobs, resources)
    thresholds: Numbers  # in thousandths, -1 for no limit, shape (jobs, thresholds)
    limits: Numbers  # penalized times within these in units, of that shape
    order: Times  # of candidates


@by_reference
class State(NamedTuple):
    """What the policy knows: jobs, queue, nodes and the reservation."""

    # of each job, see `JobNumbers`
    asked: Numbers
    walltime: Numbers
    demand: Numbers
    thresholds: Numbers
    limits: Numbers
    order: Times
    limit_at: Times
    first_run: Numbers  # runs[first_run[job]:last_run[job]] are its processors
    last_run: Numbers
    runs: Numbers
    # sequences of jobs
    queue: Numbers
    candidates: Numbers  # the queue, in `order`
    by_limit: Numbers  # running jobs
    nodes: Nodes
    # of each node
    free: NDArray[np.bool_]  # each processor
    free_on: Numbers  # free processors
    on_node: Numbers  # jobs by limit, shape (nodes, processors)
    processes_of: Numbers  # of these jobs
    on_node_count: Numbers
    reserved: Numbers  # processes of the last reservation
    placed: Numbers  # processes of the last answer
    searched: Numbers
    offered: Numbers  # of the best answer for a job
    chosen: Numbers  # of the best candidate
    counts: Record
    reservation: Record
    search: Record
    round: Record
    problems: Problems
    # scratch of a decision
    held: Numbers  # rows of the reservation, of running jobs, of a candidate
    events: Timeline  # of `held`
    starts: Numbers  # now and the ends of allocations
    free_at: Numbers  # processors that are free at each
    bound: Numbers
    tried: Numbers
    hopeless: Numbers  # jobs that were found to have no place now
    space: Space


def new_state(jobs: JobNumbers, machine: Nodes, recorded: int) -> State:
    """Return the state before the first decision, with space for a number of recorded problems."""
    nodes, processors, capacity, *_ = machine
    count, resources, size = len(jobs.asked), len(capacity), nodes * processors
    thresholds, rows = jobs.limits.shape[1], size + 2 * nodes

    def numbers(*shape: int) -> Numbers:
        return np.zeros(shape, dtype=np.int64)

    counts, reservation = np.zeros(1, dtype=COUNTS), np.zeros(1, dtype=RESERVATION)
    counts["free"], reservation["job"], reservation["wakes_at"] = size, NO_JOB, -np.inf
    events = (numbers(2 * rows), numbers(2 * rows), numbers(2 * rows, resources))
    return State(
        *jobs,
        limit_at=np.zeros(count),
        first_run=numbers(count),
        last_run=numbers(count),
        runs=np.empty((int(jobs.asked[jobs.asked <= size].sum()), 2), dtype=np.int64),
        queue=numbers(count),
        candidates=numbers(count),
        by_limit=numbers(size),
        nodes=machine,
        free=np.ones(size, dtype=np.bool_),
        free_on=np.full(nodes, processors),
        on_node=numbers(nodes, processors),
        processes_of=numbers(nodes, processors),
        on_node_count=numbers(nodes),
        reserved=numbers(nodes),
        placed=numbers(nodes),
        searched=numbers(nodes),
        offered=numbers(nodes),
        chosen=numbers(nodes),
        counts=counts,
        reservation=reservation,
        search=np.zeros(1, dtype=SEARCH),
        round=np.zeros(1, dtype=ROUND),
        problems=Problems(np.zeros(recorded), *numbers(len(Problems._fields) - 1, recorded)),
        held=numbers(rows, 4 + resources),
        events=Timeline(numbers(nodes + 1), *events),
        starts=numbers(size + 2),
        free_at=numbers(size + 2),
        bound=numbers(count),
        tried=numbers(count),
        hopeless=numbers(count),
        space=Space(numbers(resources), numbers(processors), numbers(thresholds)),
    )


@kernel(allocates=False)
def copy(processes: Numbers, copied: Numbers) -> None:
    """Make the processes on each node equal to others."""
    for node in range(len(processes)):
        processes[node] = copied[node]


@kernel(allocates=False)
def hear(state: State, places: Places, news: News) -> None:
    """Let the ended jobs go, and enqueue the submitted ones; drop the rows of the reservation."""
    counts = state.counts[0]
    for at in range(news.counts[N_ENDED]):
        job = news.ended[at]
        for run in range(state.first_run[job], state.last_run[job]):
            for processor in range(state.runs[run, 0], state.runs[run, 1]):
                state.free[processor] = True
        for entry in range(places.first[job], places.last[job]):
            leave_node(state, places.node[entry], job)
        counts.free += state.asked[job]
        remove(state.by_limit, counts.running, job)
        counts.running -= 1
    for at in range(news.counts[N_SUBMITTED]):
        job = news.submitted[at]
        state.queue[counts.queued] = job
        enter(state.candidates, counts.queued, state.order, job)
        counts.queued += 1
    counts.decisions += 1
    counts.reserved = counts.backfills = 0


@kernel(allocates=False)
def enter_node(state: State, node: int, job: int, count: int) -> None:
    """Put processes of a job on a node."""
    jobs, number = state.on_node[node], state.on_node_count[node]
    place = place_of(jobs, 0, number, state.limit_at, job)
    insert(jobs, number, place, job)
    insert(state.processes_of[node], number, place, count)
    state.on_node_count[node] += 1
    state.free_on[node] -= count


@kernel(allocates=False)
def leave_node(state: State, node: int, job: int) -> None:
    """Take the processes of a job off a node."""
    jobs, number = state.on_node[node], state.on_node_count[node]
    place = place_of(jobs, 0, number, state.limit_at, job)
    state.free_on[node] += state.processes_of[node, place]
    delete(jobs, number, place)
    delete(state.processes_of[node], number, place)
    state.on_node_count[node] -= 1


@kernel(allocates=False)
def claim(state: State, places: Places, job: int, processes: Numbers) -> None:
    """Give a job the first free processors of its nodes."""
    counts, runs, width = state.counts[0], state.runs, state.nodes.processors
    entry, first = counts.entries, counts.runs
    run, places.first[job], state.first_run[job] = first, entry, first
    for node in range(len(processes)):
        missing = processes[node]
        if missing == 0:
            continue
        places.node[entry], places.processes[entry] = node, missing
        enter_node(state, node, job, missing)
        entry += 1
        for processor in range(node * width, (node + 1) * width):
            if missing > 0 and state.free[processor]:
                state.free[processor] = False
                missing -= 1
                if run > first and runs[run - 1, 1] == processor:
                    runs[run - 1, 1] += 1
                else:
                    runs[run, 0], runs[run, 1] = processor, processor + 1
                    run += 1
    counts.entries = places.last[job] = entry
    counts.runs = state.last_run[job] = run
    counts.free -= state.asked[job]


@kernel(allocates=False)
def limit_of(state: State, rule: Rule, job: int, lost: int) -> int:
    """Return the seconds for which a job may run with a penalized time in units."""
    seconds: int = state.walltime[job]
    if rule.raises:
        seconds -= -lost // state.nodes.unit
    return seconds


@kernel(allocates=False)
def start(
    state: State,
    places: Places,
    rule: Rule,
    news: News,
    job: int,
    processes: Numbers,
    lost: int,
) -> None:
    """Start a job on its nodes, with a limit by its penalized time."""
    counts, limit = state.counts[0], limit_of(state, rule, job, lost)
    remove(state.queue, counts.queued, job)
    remove(state.candidates, counts.queued, job)
    counts.queued -= 1
    state.limit_at[job] = news.now[0] + limit
    claim(state, places, job, processes)
    enter(state.by_limit, counts.running, state.limit_at, job)
    counts.running += 1
    tell(news, LIMIT, job, float(limit))
    tell(news, START, job, 0.0)


@kernel(allocates=False)
def seconds_left(state: State, now: float, job: int) -> int:
    """Return the whole seconds until the limit of a running job, at least one."""
    return max(int(np.ceil(state.limit_at[job] - now)), 1)


@kernel(allocates=False)
def add_row(state: State, at: int, job: int, node: int, count: int, begin: int, until: int) -> None:
    """Write processes of a job on a node to a row of `State.held`."""
    row, demand = state.held[at], state.demand[job]
    row[0], row[1], row[2], row[3] = node, count, begin, until
    for r in range(len(demand)):
        row[4 + r] = demand[r]


@kernel(allocates=False)
def add_rows(state: State, at: int, job: int, processes: Numbers, begin: int, until: int) -> int:
    """Write the rows of a job on its nodes from a row on; return the number of rows then."""
    for node in range(len(processes)):
        if processes[node] > 0:
            add_row(state, at, job, node, processes[node], begin, until)
            at += 1
    return at


@kernel(allocates=False)
def look(state: State, now: float) -> None:
    """Write the rows of running jobs behind those of the reservation, and the timeline of all.

    The jobs on a node are in order of their limits, so that its events need no sorting.
    """
    counts, job = state.counts[0], state.reservation[0].job
    first, time, processes, demand = state.events
    begin, until = state.held[0, 2], state.held[0, 3]
    row, event, resources = counts.reserved, 0, demand.shape[1]
    counts.looks += 1
    for node in range(len(state.free_on)):
        on_node = event
        first[node] = on_node
        if state.on_node_count[node] > 0:
            time[event] = processes[event] = 0
            for r in range(resources):
                demand[event, r] = 0
            event += 1
        for place in range(state.on_node_count[node]):
            other, count = state.on_node[node, place], state.processes_of[node, place]
            left = seconds_left(state, now, other)
            held = state.held[row]
            held[0], held[1], held[2], held[3] = node, count, 0, left
            time[event], processes[event] = left, -count
            processes[on_node] += count
            for r in range(resources):
                own = state.demand[other, r]
                held[4 + r], demand[event, r] = own, -count * own
                demand[on_node, r] += count * own
            row += 1
            event += 1
        if counts.reserved > 0 and state.reserved[node] > 0:
            count = state.reserved[node]
            add_event(state.events, on_node, event, begin, count, state.demand[job])
            add_event(state.events, on_node, event + 1, until, -count, state.demand[job])
            event += 2
    first[len(state.free_on)] = event
    counts.rows = row
    list_starts(state, now)


@kernel(allocates=False)
def list_starts(state: State, now: float) -> None:
    """Write now and the ends of allocations, and the processors that are free at each."""
    counts, starts, place, last = state.counts[0], state.starts, 0, 0
    free, begins, ends, reserved = counts.free, NO_LATEST, NO_LATEST, 0
    if counts.reserved > 0:
        begins, ends = state.held[0, 2], state.held[0, 3]
        reserved = state.asked[state.reservation[0].job]
    until = ends
    starts[0], state.free_at[0] = 0, free
    for _ in range(counts.running + (reserved > 0)):
        at = ends
        if place < counts.running:
            at = min(ends, seconds_left(state, now, state.by_limit[place]))
        if at == ends:
            ends = NO_LATEST
        else:
            free += state.asked[state.by_limit[place]]
            place += 1
        last += starts[last] < at
        starts[last], state.free_at[last] = at, free
        if begins <= at < until:
            state.free_at[last] -= reserved
    counts.starts = last + 1


@kernel(allocates=False)
def job_of(state: State, job: int) -> Job:
    """Return a job as the kernels of the model take it."""
    asked, walltime, nodes = state.asked[job], state.walltime[job], state.nodes
    return Job(nodes.processors, asked, walltime, state.demand[job], nodes.capacity, nodes.scale)


@kernel(allocates=False)
def penalty_at(
    state: State, held: Numbers, job: int, number: int, begin: int, processes: Numbers
) -> int:
    """Return the penalized time of a placement at any start, `BROKEN` if it is not feasible."""
    lost = checked_penalty(held, job_of(state, job), begin, processes, True)
    return lost if lost <= state.limits[job, number] else BROKEN


@kernel(allocates=False)
def first_room(state: State, now: float, job: int) -> int:
    """Return the seconds until enough processors are free for a job, if no other starts."""
    missing = state.asked[job] - state.counts[0].free
    place = 0
    while missing > 0:
        missing -= state.asked[state.by_limit[place]]
        place += 1
    return seconds_left(state, now, state.by_limit[place - 1]) if place > 0 else 0


@kernel(allocates=False)
def keep_promise(state: State, now: float) -> bool:
    """Take the reserved place and start of the job that is sought, if the new ones are later.

    Solvers start jobs at ends of running jobs only. If a running job ends early, its estimated end,
    and with it the reserved start, is no longer among these times.
    """
    search, reservation = state.search[0], state.reservation[0]
    if reservation.job != search.job or now + search.start < reservation.start + 1:
        return False
    begin, held = max(0, int(np.ceil(reservation.start - now))), state.held[: state.counts[0].rows]
    lost = penalty_at(state, held, search.job, reservation.number, begin, state.reserved)
    if lost == BROKEN:
        return False
    search.start, search.lost, search.at = begin, lost, reservation.number
    copy(state.offered, state.reserved)
    return True


@kernel(allocates=False)
def breaks_reservation(state: State, rule: Rule, now: float) -> bool:
    """Return whether the job that is sought would make the reserved place infeasible from now on.

    A placement avoids the reservation for the walltime of the job only. With a raised limit, it may
    overlap the reservation, or raise the penalty there above the threshold.
    """
    search, reservation, counts = state.search[0], state.reservation[0], state.counts[0]
    limit, begin = limit_of(state, rule, search.job, search.lost), reservation.begin
    if now + limit <= reservation.start:
        return False
    shares = False
    for node in range(len(state.reserved)):
        shares = shares or (state.offered[node] > 0 and state.reserved[node] > 0)
    if not shares:
        return False
    if limit <= begin:
        return True
    if now + begin > reservation.start:  # a later event may round the start to less
        limit += 1
    rows = add_rows(state, counts.rows, search.job, state.offered, 0, limit)
    held, head = state.held[counts.reserved : rows], reservation.job
    lost = penalty_at(state, held, head, reservation.number, begin, state.reserved)
    return lost == BROKEN
