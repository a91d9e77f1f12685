"""What is held on nodes that share resources, as seen from now, and the reservation, compiled."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from optsched.arrays import Flags, Floats, Ints
from optsched.by_reference import Record, by_reference, record
from optsched.compiled import kernel
from optsched.executions._shared_nodes import Places
from optsched.machines._ascending import delete, enter, insert, place_of, remove
from optsched.models.threshold_allocation.timeline import (
    BROKEN,
    Job,
    Space,
    Timeline,
    add_event,
    checked_penalty,
)
from optsched.simulator import _core
from optsched.simulator._core import News, tell, zeroed

NO_JOB = -1

NO_LATEST = 10**12
"""Latest start of a problem without one: `LARGEST_FIELD`."""


COUNTS = record(
    "running queued entries runs free starts rows looks decisions problems asks backfills"
)
"""Running and queued jobs, entries of `Places.node` and of `State.runs`, free processors,
`State.starts`; rows of `State.held`, how often `State.events` were changed; decisions, problems on
record, what the kernel asks for, whether jobs are backfilled behind the reservation."""

RESERVATION = record("job number begin until", "start wakes_at")
"""Job and threshold of the last reservation, seconds until its start and its end, its start, last
timer."""

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

    time: Floats
    decision: Ints
    job: Ints
    answered: Ints  # whether there is a placement
    objective: Ints  # of the placement used
    heuristic: Ints  # of the fallback's placement
    bound: Ints
    work: Ints


@by_reference
class Nodes(NamedTuple):
    """The machine: nodes, processors of each, capacities of each, units as in the problem."""

    nodes: int
    processors: int
    capacity: Ints
    scale: Ints
    unit: int


@by_reference
class State(NamedTuple):
    """What the policy knows: jobs, queue, nodes and the reservation."""

    # of each job
    asked: Ints
    walltime: Ints  # whole seconds
    demand: Ints  # of one process, shape (jobs, resources)
    thresholds: Ints  # in thousandths, -1 for no limit, shape (jobs, thresholds)
    limits: Ints  # penalized times within these in units, of that shape
    order: Floats  # of candidates
    limit_at: Floats
    first_run: Ints  # runs[first_run[job]:last_run[job]] are its processors
    last_run: Ints
    runs: Ints
    # sequences of jobs
    queue: Ints
    candidates: Ints  # the queue, in `order`
    by_limit: Ints  # running jobs
    nodes: Nodes
    # of each node
    free: Flags  # each processor
    free_on: Ints  # free processors
    on_node: Ints  # jobs by limit, shape (nodes, processors)
    processes_of: Ints  # of these jobs
    on_node_count: Ints
    reserved: Ints  # processes of the last reservation
    placed: Ints  # processes of the last answer
    searched: Ints
    offered: Ints  # of the best answer for a job
    chosen: Ints  # of the best candidate
    counts: Record
    reservation: Record
    search: Record
    round: Record
    problems: Problems
    # scratch of a decision
    held: Ints  # rows of the reservation, of running jobs, of a candidate
    events: Timeline  # of all that is held
    everywhere: Ints  # a process on each node
    starts: Ints  # now and the ends of allocations
    free_at: Ints  # processors that are free at each
    bound: Ints  # number of the least threshold within which a job can start now
    bound_at: Ints  # `counts.looks` at that time
    tried: Ints  # jobs to be backfilled, by least rank
    hopeless: Ints  # jobs that were found to have no place now
    space: Space


PLACEMENTS = ("reserved", "placed", "searched", "offered", "chosen")
"""Fields of `State` with a number of processes for each node."""


def new_state(jobs: dict[str, Any], machine: Nodes, recorded: int) -> State:
    """Return the state before the first decision, with space for a number of recorded problems.

    `jobs`: the numbers of each job, the first six fields of `State`.
    """
    nodes, processors, capacity, *_ = machine
    asked, resources, size = jobs["asked"], len(capacity), nodes * processors
    thresholds, rows = jobs["limits"].shape[1], size + 2 * nodes

    def numbers(*shape: int) -> Ints:
        return np.zeros(shape, dtype=np.int64)

    counts, reservation = np.zeros(1, dtype=COUNTS), np.zeros(1, dtype=RESERVATION)
    counts["free"], reservation["job"], reservation["wakes_at"] = size, NO_JOB, -np.inf
    each = processors + 3  # events: now, ends of jobs, start and end of the reservation
    first, space = each * np.arange(nodes), each * nodes
    events = (numbers(nodes), numbers(space), numbers(space), numbers(space, resources))
    return zeroed(
        State,
        len(asked),
        **jobs,
        runs=np.empty((int(asked[asked <= size].sum()), 2), dtype=np.int64),
        by_limit=numbers(size),
        nodes=machine,
        free=np.ones(size, dtype=np.bool_),
        free_on=np.full(nodes, processors),
        on_node=numbers(nodes, processors),
        processes_of=numbers(nodes, processors),
        on_node_count=numbers(nodes),
        **{name: numbers(nodes) for name in PLACEMENTS},
        counts=counts,
        reservation=reservation,
        search=np.zeros(1, dtype=SEARCH),
        round=np.zeros(1, dtype=ROUND),
        problems=zeroed(Problems, recorded),
        held=numbers(rows, 4 + resources),
        events=Timeline(first, *events),
        everywhere=np.ones(nodes, dtype=np.int64),
        starts=numbers(size + 2),
        free_at=numbers(size + 2),
        space=Space(numbers(resources), numbers(processors), numbers(thresholds)),
    )


@kernel(allocates=False)
def copy(processes: Ints, copied: Ints) -> None:
    """Make the processes on each node equal to others."""
    for node in range(len(processes)):
        processes[node] = copied[node]


@kernel(allocates=False)
def hear(state: State, places: Places, news: News) -> None:
    """Let the ended jobs go, and enqueue the submitted ones; drop the reservation."""
    counts = state.counts[0]
    for at in range(news.counts[_core.N_ENDED]):
        job = news.ended[at]
        for run in range(state.first_run[job], state.last_run[job]):
            for processor in range(state.runs[run, 0], state.runs[run, 1]):
                state.free[processor] = True
        for entry in range(places.first[job], places.last[job]):
            leave_node(state, places.node[entry], job)
        counts.free += state.asked[job]
        remove(state.by_limit, counts.running, job)
        counts.running -= 1
    for at in range(news.counts[_core.N_SUBMITTED]):
        job = news.submitted[at]
        state.queue[counts.queued] = job
        enter(state.candidates, counts.queued, state.order, job)
        counts.queued += 1
    counts.decisions += 1
    counts.backfills = 0


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
def claim(state: State, places: Places, job: int, processes: Ints) -> None:
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
    state: State, places: Places, rule: Rule, news: News, job: int, processes: Ints, lost: int
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
    look(state, news.now[0], processes)
    tell(news, _core.LIMIT, job, float(limit))
    tell(news, _core.START, job, 0.0)


@kernel(allocates=False)
def seconds_left(state: State, now: float, job: int) -> int:
    """Return the whole seconds until the limit of a running job, at least one."""
    return max(int(np.ceil(state.limit_at[job] - now)), 1)


@kernel(allocates=False)
def write_row(
    state: State, at: int, job: int, node: int, processes: int, begin: int, until: int
) -> None:
    """Write a row of `State.held`: processes of a job on a node, and their time."""
    row = state.held[at]
    row[0], row[1], row[2], row[3] = node, processes, begin, until
    for r in range(len(row) - 4):
        row[4 + r] = state.demand[job, r]


@kernel(allocates=False)
def add_rows(state: State, at: int, job: int, processes: Ints, begin: int, until: int) -> int:
    """Write the rows of a job on its nodes from a row on; return the number of rows then."""
    for node in range(len(processes)):
        if processes[node] > 0:
            write_row(state, at, job, node, processes[node], begin, until)
            at += 1
    return at


@kernel(allocates=False)
def list_held(state: State, now: float, processes: Ints) -> None:
    """Write the rows of the reservation, and of running jobs on the nodes of a placement."""
    reservation, row = state.reservation[0], 0
    if state.counts[0].backfills:
        until = reservation.until
        row = add_rows(state, 0, reservation.job, state.reserved, reservation.begin, until)
    list_running(state, now, row, processes)


@kernel(allocates=False)
def list_running(state: State, now: float, row: int, processes: Ints) -> None:
    """Write the rows of running jobs on the nodes of a placement, from a row on."""
    for node in range(len(processes)):
        if processes[node] == 0:
            continue
        for place in range(state.on_node_count[node]):
            job = state.on_node[node, place]
            left = seconds_left(state, now, job)
            write_row(state, row, job, node, state.processes_of[node, place], 0, left)
            row += 1
    state.counts[0].rows = row


@kernel(allocates=False)
def look(state: State, now: float, processes: Ints) -> None:
    """Write the timeline of the nodes of a placement, whose jobs are in order of their limits."""
    first, last, time, taken, demand = state.events
    resources, reservation = demand.shape[1], state.reservation[0]
    for node in range(len(processes)):
        if processes[node] == 0:
            continue
        held = first[node]
        time[held] = taken[held] = 0
        for r in range(resources):
            demand[held, r] = 0
        event = held + 1
        for place in range(state.on_node_count[node]):
            job, count = state.on_node[node, place], state.processes_of[node, place]
            time[event], taken[event] = seconds_left(state, now, job), -count
            taken[held] += count
            for r in range(resources):
                own = count * state.demand[job, r]
                demand[event, r] = -own
                demand[held, r] += own
            event += 1
        if state.counts[0].backfills and state.reserved[node] > 0:
            own_demand, count = state.demand[reservation.job], state.reserved[node]
            add_event(state.events, held, event, reservation.begin, count, own_demand)
            add_event(state.events, held, event + 1, reservation.until, -count, own_demand)
            event += 2
        last[node] = event
    list_starts(state, now)


@kernel(allocates=False)
def list_starts(state: State, now: float) -> None:
    """Write now and the ends of allocations, and the processors that are free at each."""
    counts, starts, place, last = state.counts[0], state.starts, 0, 0
    free, begins, ends, reserved = counts.free, NO_LATEST, NO_LATEST, 0
    if counts.backfills:
        reservation = state.reservation[0]
        begins, ends = reservation.begin, reservation.until
        reserved = state.asked[reservation.job]
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
    counts.looks += 1


@kernel(allocates=False)
def job_of(state: State, job: int) -> Job:
    """Return a job as the kernels of the model take it."""
    asked, walltime, nodes = state.asked[job], state.walltime[job], state.nodes
    return Job(nodes.processors, asked, walltime, state.demand[job], nodes.capacity, nodes.scale)


@kernel(allocates=False)
def lost_in_reserved(state: State, job: int, number: int, begin: int) -> int:
    """Return the penalized time of a job in the reserved place, `BROKEN` if it is not feasible."""
    held = state.held[: state.counts[0].rows]
    lost = checked_penalty(held, job_of(state, job), begin, state.reserved, True)
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
    begin = max(0, int(np.ceil(reservation.start - now)))
    list_running(state, now, 0, state.reserved)
    lost = lost_in_reserved(state, search.job, reservation.number, begin)
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
    list_running(state, now, 0, state.reserved)
    counts.rows = add_rows(state, counts.rows, search.job, state.offered, 0, limit)
    return bool(lost_in_reserved(state, reservation.job, reservation.number, begin) == BROKEN)
