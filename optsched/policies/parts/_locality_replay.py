"""Replay of planning on a cluster by the published rules, compiled.

The readable statement is the engine with `Locality`, `FileLoading` and the rules of data placement.
Plans, resident files and verification are those of the kernels that the engine calls as well.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel
from optsched.machines._node_memory import drop, forget, residents, use
from optsched.models.data_placement._check import is_sound, load_times
from optsched.policies.parts._planned_cores import book, from_now
from optsched.solvers.data_placement._cores import unsorted_cores
from optsched.solvers.data_placement._plan import plan
from optsched.solvers.data_placement.score import Score

Times = NDArray[np.float64]
Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]

KILL_TOLERANCE = 1e-6
LEFT_OUT = -1

NEXT, RUNNING, STARTED, WAITING, ADDED, PLANNED, DECISIONS, PROBLEMS, OPENED = range(9)
"""Entries of `State.tally`: the next job to be submitted, running jobs, jobs started so far, jobs
in `State.waiting`, `State.added` and `State.planned`, decisions, problems, whether decisions have
begun."""


class Ends(NamedTuple):
    """The ends of the running jobs: a binary heap by time, then order of starting."""

    time: Times  # infinite behind the last
    order: Numbers
    job: Numbers


class Rule(NamedTuple):
    """The settings of the policy and its solver."""

    score: Score
    capacity: int
    backfill: bool
    short: bool
    at_every_event: bool
    throttle: float
    opens_at: float
    until_next: bool
    latest: int  # possible start in a plan


class Jobs(NamedTuple):
    """The jobs: times in seconds, arrays of shape (jobs,)."""

    submit: Times
    runtime: Times
    requested: Times
    processors: Numbers
    walltimes: Numbers
    files: Numbers
    loads: Numbers


class Held(NamedTuple):
    """What the jobs get: times, load times, and cores of nodes as bit masks."""

    start: Times
    end: Times
    killed: Flags
    node: Numbers
    cores: Numbers
    transfer: Times
    waiting: Times


class Problems(NamedTuple):
    """The problems posed and their answers."""

    time: Times
    decision: Numbers
    submitted: Numbers  # the last job submitted at this time, or -1
    jobs: Numbers
    objective: Numbers


class Cores(NamedTuple):
    """The cores of the nodes, as in `Cluster` and `PlannedCores`."""

    free: Numbers  # bit masks
    occupied: Flags
    limit: Times  # of the job on each core
    available: Times
    reserved: Times
    widest: Numbers
    sorted_keys: Numbers  # of the rules, as the last plan left them


class Planned(NamedTuple):
    """Planned starts, as in `PlannedStarts`."""

    next: Times  # one entry
    start: Times
    job: Numbers
    node: Numbers
    cores: Numbers


class State(NamedTuple):
    """State of a replay."""

    tally: Numbers
    jobs: Jobs
    held: Held
    cores: Cores
    files: Times  # the table of `NodeMemory`
    latest_start: Times
    ends: Ends
    waiting: Numbers
    added: Numbers
    planned: Planned
    due: Planned
    ran_before: Numbers
    problems: Problems


def new_state(
    jobs: Jobs,
    available: Times,
    starts: Times,
    places: Numbers,
    memory: tuple[Times, Times],
    transfer: Times,
    waiting: Times,
) -> State:
    """Return the state before the first event.

    The jobs that ran before the first decision have planned `starts`, and `places` of job, node and
    cores, shape (3, jobs); `available` has the time from which each core is free beside them.
    `memory` has the table and the latest starts of `NodeMemory`. The load times `transfer` and
    `waiting` are filled in.
    """
    (nodes, width), count = available.shape, len(jobs.submit)
    running = min(count, nodes * width) + 1
    most = 3 * count  # problems: at most one for each submission, each end and each added job

    def numbers(length: int, value: int = 0) -> Numbers:
        return np.full(length, value, dtype=np.int64)

    def planned() -> Planned:
        return Planned(np.full(1, np.inf), np.zeros(count), *(numbers(count) for _ in range(3)))

    state = State(
        numbers(OPENED + 1),
        jobs,
        Held(
            np.full(count, np.nan),
            np.full(count, np.nan),
            np.zeros(count, dtype=np.bool_),
            numbers(count),
            numbers(count),
            transfer,
            waiting,
        ),
        Cores(
            numbers(nodes, (1 << width) - 1),
            np.zeros(nodes, dtype=np.bool_),
            np.full((nodes, width), -np.inf),
            available,
            np.zeros((nodes, width)),
            numbers(2),
            unsorted_cores(nodes, width),
        ),
        *memory,
        Ends(np.full(running, np.inf), numbers(running), numbers(running)),
        numbers(count),
        numbers(count),
        planned(),
        planned(),
        places[0].copy(),
        Problems(np.zeros(most), *(numbers(most) for _ in Problems._fields[1:])),
    )
    for start, place in zip(starts, places.T):
        add_planned(state.planned, state.tally[PLANNED], start, *place)
        state.tally[PLANNED] += 1
    return state


@kernel(allocates=False)
def push(ends: Ends, count: int, time: float, order: int, job: int) -> None:
    """Add an end to the first `count`; `order` is above those of all others."""
    entry = count
    while entry > 0:
        parent = (entry - 1) >> 1
        if ends.time[parent] <= time:
            break
        ends.time[entry] = ends.time[parent]
        ends.order[entry] = ends.order[parent]
        ends.job[entry] = ends.job[parent]
        entry = parent
    ends.time[entry], ends.order[entry], ends.job[entry] = time, order, job


@kernel(allocates=False)
def pop(ends: Ends, count: int) -> int:
    """Remove the first of the first `count` ends; return its job."""
    found, last = ends.job[0], count - 1
    time, order, job = ends.time[last], ends.order[last], ends.job[last]
    ends.time[last] = np.inf
    entry, child = 0, 1
    while child < last:
        other = child + 1
        if ends.time[other] < ends.time[child] or (
            ends.time[other] == ends.time[child] and ends.order[other] < ends.order[child]
        ):
            child = other
        if ends.time[child] > time or (ends.time[child] == time and ends.order[child] > order):
            break
        ends.time[entry] = ends.time[child]
        ends.order[entry] = ends.order[child]
        ends.job[entry] = ends.job[child]
        entry, child = child, 2 * child + 1
    if last > 0:
        ends.time[entry], ends.order[entry], ends.job[entry] = time, order, job
    return int(found)


@kernel(allocates=False)
def begin(state: State, rule: Rule, now: float, job: int, node: int, bits: int) -> None:
    """Start a job, which first loads its file or waits for it."""
    jobs, held, cores, tally = state.jobs, state.held, state.cores, state.tally
    cores.free[node] &= ~bits
    cores.occupied[node] = True
    limit = now + jobs.requested[job]
    for core in range(cores.limit.shape[1]):
        if bits >> core & 1:
            cores.limit[node, core] = limit
    file, delay = jobs.files[job], 0.0
    if file >= 0:
        delay, loads = use(
            state.files,
            state.latest_start,
            rule.until_next,
            node,
            file,
            jobs.loads[job],
            limit - jobs.requested[job],  # rounded as in the engine
            limit,
        )
        if loads:
            held.transfer[job] = delay
        else:
            held.waiting[job] = delay
    elif rule.until_next:
        forget(state.files, state.latest_start, True, node, limit - jobs.requested[job])
    end = now + delay + jobs.runtime[job]
    if end > limit + KILL_TOLERANCE:
        end = limit
        held.killed[job] = True
    held.start[job] = now
    held.node[job] = node
    held.cores[job] = bits
    push(state.ends, tally[RUNNING], end, tally[STARTED], job)
    tally[RUNNING] += 1
    tally[STARTED] += 1


@kernel(allocates=False)
def finish(state: State, now: float) -> int:
    """End the jobs that end now; return their number."""
    held, cores, tally = state.held, state.cores, state.tally
    width = cores.limit.shape[1]
    ended = 0
    while state.ends.time[0] == now:
        job = pop(state.ends, tally[RUNNING])
        tally[RUNNING] -= 1
        ended += 1
        held.end[job] = now
        node, bits = held.node[job], held.cores[job]
        cores.free[node] |= bits
        cores.occupied[node] = cores.free[node] != (1 << width) - 1
        for core in range(width):
            if bits >> core & 1:
                cores.limit[node, core] = -np.inf
        if state.jobs.files[job] >= 0:
            drop(state.files, node, state.jobs.files[job], now)
    return ended


@kernel(allocates=False)
def add_planned(planned: Planned, count: int, start: float, job: int, node: int, bits: int) -> None:
    """Add a planned start to the first `count`."""
    planned.start[count] = start
    planned.job[count] = job
    planned.node[count] = node
    planned.cores[count] = bits
    planned.next[0] = min(planned.next[0], start)


@kernel(allocates=False)
def start_due(state: State, rule: Rule, now: float) -> None:
    """Start the jobs whose planned start has come, in planned order, if their cores are free."""
    tally, planned, due = state.tally, state.planned, state.due
    if now < planned.next[0]:
        return
    kept = late = 0
    planned.next[0] = np.inf
    for entry in range(tally[PLANNED]):
        start, job = planned.start[entry], planned.job[entry]
        node, bits = planned.node[entry], planned.cores[entry]
        if start <= now:
            add_planned(due, late, start, job, node, bits)
            late += 1
        else:
            add_planned(planned, kept, start, job, node, bits)
            kept += 1
    for entry in range(late):
        job, node, bits = due.job[entry], due.node[entry], due.cores[entry]
        if bits & ~state.cores.free[node]:
            add_planned(planned, kept, due.start[entry], job, node, bits)
            kept += 1
        else:
            begin(state, rule, now, job, node, bits)
    tally[PLANNED] = kept
    left = 0
    for entry in range(tally[WAITING]):
        job = state.waiting[entry]
        state.waiting[left] = job
        left += np.isnan(state.held.start[job])
    tally[WAITING] = left


@kernel
def pose(state: State, rule: Rule, now: float, queue: Numbers) -> bool:
    """Plan jobs on the cores that are not planned yet; return whether the plan is feasible."""
    tally, jobs, cores, planned = state.tally, state.jobs, state.cores, state.planned
    problems, count = state.problems, len(queue)
    rows = np.empty((count, 4), dtype=np.int64)
    columns = np.empty((4, count), dtype=np.int64)
    for row in range(count):
        job = queue[row]
        columns[0, row], columns[1, row] = jobs.processors[job], jobs.walltimes[job]
        columns[2, row], columns[3, row] = jobs.files[job], jobs.loads[job]
        for column in range(4):
            rows[row, column] = columns[column, row]
    processors, walltimes, files, loads = columns[0], columns[1], columns[2], columns[3]
    available = from_now(cores.available, now)
    nodes = len(available)
    reserved = np.zeros(available.shape, dtype=np.int64)
    if rule.backfill:
        reserved = from_now(cores.reserved, now)
    resident = residents(state.files, state.latest_start, now, rule.until_next)
    began = np.empty(nodes, dtype=np.bool_)
    for at in range(nodes):
        began[at] = state.latest_start[at] >= now
    answer = plan(
        cores.sorted_keys,
        available,
        reserved.copy(),
        cores.occupied,
        rows,
        resident,
        began,
        rule.until_next,
        rule.score,
        rule.capacity,
        rule.backfill,
        cores.widest.copy(),
        True,
        rule.short,
    )
    given = np.empty((3, count), dtype=np.int64)
    for row in range(count):
        for column in range(3):
            given[column, row] = answer[row, column]
    if not is_sound(available, reserved, processors, walltimes, True, rule.latest, given):
        return False
    node, start, bits = given[0], given[1], given[2]
    horizon = longest = 0
    for at in range(nodes):
        for core in range(available.shape[1]):
            horizon = max(horizon, available[at, core])
    for row in range(count):
        longest = max(longest, walltimes[row])
    horizon += longest
    times = load_times(nodes, walltimes, files, loads, resident, rule.until_next, began, given)
    objective = 0
    for row in range(count):
        objective += times[row] + (horizon if node[row] == LEFT_OUT else start[row])
    book(cores.available, cores.reserved, cores.widest, now, node, start, bits, walltimes)
    for row in range(count):
        if node[row] != LEFT_OUT:
            begins = now + start[row]
            add_planned(planned, tally[PLANNED], begins, queue[row], node[row], bits[row])
            tally[PLANNED] += 1
    last = tally[PROBLEMS]
    tally[PROBLEMS] += 1
    problems.time[last] = now
    problems.decision[last] = tally[DECISIONS]
    submitted = tally[NEXT] - 1
    problems.submitted[last] = submitted if jobs.submit[submitted] == now else -1
    problems.jobs[last] = count
    problems.objective[last] = objective
    return True


@kernel(allocates=False)
def take_added(state: State) -> None:
    """Append the added jobs to the waiting ones."""
    tally = state.tally
    for entry in range(tally[ADDED]):
        state.waiting[tally[WAITING] + entry] = state.added[entry]
    tally[WAITING] += tally[ADDED]
    tally[ADDED] = 0


@kernel(allocates=False)
def open_history(state: State) -> None:
    """Let the jobs that ran before the first decision be the first of the waiting ones."""
    tally = state.tally
    tally[OPENED] = 1
    left = 0
    for entry in range(tally[ADDED]):
        job = state.added[entry]
        ran = False
        for other in state.ran_before:
            ran = ran or other == job
        state.added[left] = job
        left += not ran
    tally[ADDED] = left
    for job in state.ran_before:
        state.waiting[tally[WAITING]] = job
        tally[WAITING] += 1


@kernel(allocates=False)
def forget_plans(state: State) -> None:
    """Drop all plans, so that only running jobs hold cores."""
    cores = state.cores
    for node in range(cores.limit.shape[0]):
        for core in range(cores.limit.shape[1]):
            cores.available[node, core] = cores.limit[node, core]
            cores.reserved[node, core] = 0.0
    cores.widest[0] = 0
    state.tally[PLANNED] = 0
    state.planned.next[0] = np.inf


@kernel(allocates=False)
def submit_jobs(state: State, now: float, ended: bool) -> bool:
    """Submit the jobs of this time; return whether there are any."""
    tally, submit = state.tally, state.jobs.submit
    first = tally[NEXT]
    while tally[NEXT] < len(submit) and submit[tally[NEXT]] == now:
        if ended:
            state.waiting[tally[WAITING]] = tally[NEXT]
            tally[WAITING] += 1
        else:
            state.added[tally[ADDED]] = tally[NEXT]
            tally[ADDED] += 1
        tally[NEXT] += 1
    return bool(tally[NEXT] > first)


@kernel
def replay(state: State, rule: Rule) -> bool:
    """Process all events; return whether all plans are feasible.

    There is a single call of `pose`, because a kernel is compiled again in each of its callers.
    """
    tally, submit = state.tally, state.jobs.submit
    wake_times, pending, latest = np.empty(64), 0, -np.inf  # the earliest is the last
    while True:
        now = state.ends.time[0]
        if tally[NEXT] < len(submit):
            now = min(now, submit[tally[NEXT]])
        if pending > 0:
            now = min(now, wake_times[pending - 1])
        if now == np.inf:
            return True
        ended = finish(state, now) > 0
        submitted = submit_jobs(state, now, ended)
        wakes = pending > 0 and wake_times[pending - 1] == now
        for woken in range(1 - (ended or submitted), 1 + wakes):
            # a wake causes a decision of its own, after that of the events
            if woken:
                pending -= 1
                submitted = ended = False
            tally[DECISIONS] += 1
            if now < rule.opens_at:
                continue
            if tally[OPENED] == 0:
                open_history(state)
            start_due(state, rule, now)
            since = now - rule.opens_at
            if rule.throttle == 0.0 or (since != 0.0 and since % rule.throttle == 0.0):
                complete = tally[WAITING] > 0 and ended
                if tally[ADDED] > 0 and (rule.at_every_event or tally[RUNNING] == 0):
                    take_added(state)
                    complete = True
                queue = state.added[: tally[ADDED]]
                if complete:
                    forget_plans(state)
                    queue = state.waiting[: tally[WAITING]]
                if (complete or submitted) and not pose(state, rule, now, queue):
                    return False
                if submitted and not complete:
                    take_added(state)
                start_due(state, rule, now)
            upcoming = state.planned.next[0]
            if now < upcoming < np.inf and upcoming != latest:
                latest = upcoming
                if pending == len(wake_times):
                    wake_times = np.append(wake_times, wake_times)
                place = pending
                while place > 0 and wake_times[place - 1] < upcoming:
                    wake_times[place] = wake_times[place - 1]
                    place -= 1
                wake_times[place] = upcoming
                pending += 1


@kernel
def runs_of(node: Numbers, cores: Numbers, width: int) -> tuple[Numbers, Numbers, Numbers]:
    """Return first, last and runs of `interval_text` for sets of cores of nodes of a width."""
    first = np.empty_like(node)
    last = np.empty_like(node)
    runs = np.empty((len(node) * ((width + 1) // 2), 2), dtype=np.int64)
    found = 0
    for job in range(len(node)):
        first[job] = found
        held = False
        for core in range(width + 1):
            before, held = held, cores[job] >> core & 1 == 1
            if held != before:
                runs[found, int(before)] = node[job] * width + core
                found += before
        last[job] = found
    return first, last, runs[:found]
