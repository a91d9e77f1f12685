"""The speeds of jobs on nodes that share resources, compiled: the rule of `ResourceSharing`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optsched.arrays import Floats, Ints
from optsched.by_reference import Record, by_reference, record
from optsched.compiled import kernel
from optsched.simulator._core import CHANGED, NOW, STARTED, Core, Way, set_speed

COUNTS = record("entries stamp affected")
"""Entries of `Places.node`, last stamp of `SharedNodes.mark`, jobs that may change their speed."""


@by_reference
class Places(NamedTuple):
    """The nodes of each job that has started."""

    first: Ints  # node[first[job]:last[job]] are its nodes, in order
    last: Ints
    node: Ints
    processes: Ints  # on each of these nodes


@by_reference
class SharedNodes(NamedTuple):
    """Nodes, the demand on them, and the speeds of their jobs."""

    demand: Ints  # of one process, shape (jobs, resources)
    capacity: Ints
    used: Ints  # shape (nodes, resources)
    penalty: Floats  # of each node
    on_node: Ints  # jobs in order of their starts, shape (nodes, processors)
    on_node_count: Ints
    speed: Floats
    # of jobs whose processes run for themselves
    since: Floats
    work_left: Floats  # as the engine counts it
    left: Floats  # of the processes on each node of a job; below 0 if they are done
    since_then: Floats  # penalty of each node of a job since its work was counted
    # the jobs whose speed changes
    affected: Ints
    new_speed: Floats
    mark: Ints
    counts: Record


def new_places(asked: Ints, size: int) -> Places:
    """Return no places, with space for those of all jobs that are no larger than the machine."""
    jobs, space = len(asked), int(asked[asked <= size].sum())
    first, last = np.zeros(jobs, dtype=np.int64), np.zeros(jobs, dtype=np.int64)
    return Places(first, last, *np.empty((2, space), dtype=np.int64))


def new_shared_nodes(
    runtime: Floats, demand: Ints, capacity: Ints, shape: tuple[int, int], places: Places
) -> SharedNodes:
    """Return empty nodes; `shape` has their number, and that of the processors of each."""
    jobs, (nodes, processors) = len(runtime), shape
    return SharedNodes(
        demand,
        capacity,
        used=np.zeros((nodes, len(capacity)), dtype=np.int64),
        penalty=np.zeros(nodes),
        on_node=np.zeros(shape, dtype=np.int64),
        on_node_count=np.zeros(nodes, dtype=np.int64),
        speed=np.ones(jobs),
        since=np.zeros(jobs),
        work_left=runtime.astype(np.float64),
        left=np.empty(len(places.node)),
        since_then=np.empty(len(places.node)),
        affected=np.zeros(nodes * processors, dtype=np.int64),
        new_speed=np.zeros(nodes * processors),
        mark=np.zeros(jobs, dtype=np.int64),
        counts=np.zeros(1, dtype=COUNTS),
    )


@kernel(allocates=False)
def speed_in_all(shared: SharedNodes, places: Places, now: float, job: int) -> float:
    """Count the work of a job's processes, and return the speed to end with the last of them.

    Where rounding leaves a job that is done with no time or no work, its speed stays.
    """
    done_in, remaining = now - shared.since[job], 0.0
    for entry in range(places.first[job], places.last[job]):
        if done_in > 0:
            shared.left[entry] -= done_in / (1.0 + shared.since_then[entry])
        shared.since_then[entry] = shared.penalty[places.node[entry]]
        remaining = max(remaining, shared.left[entry] * (1.0 + shared.since_then[entry]))
    if done_in > 0:
        shared.work_left[job] -= done_in * shared.speed[job]
        shared.since[job] = now
    if min(shared.work_left[job], remaining) > 0:
        return float(shared.work_left[job] / remaining)
    return float(shared.speed[job])


@kernel(allocates=False)
def arrive(shared: SharedNodes, places: Places, begins: float, job: int) -> None:
    """Put a job that starts on its nodes."""
    shared.since[job] = begins
    for entry in range(places.first[job], places.last[job]):
        node = places.node[entry]
        shared.left[entry], shared.since_then[entry] = shared.work_left[job], 0.0
        shared.on_node[node, shared.on_node_count[node]] = job
        shared.on_node_count[node] += 1


@kernel(allocates=False)
def depart(shared: SharedNodes, places: Places, job: int) -> None:
    """Take a job that has ended from its nodes."""
    for entry in range(places.first[job], places.last[job]):
        on_node = shared.on_node[places.node[entry]]
        place = 0
        while on_node[place] != job:
            place += 1
        shared.on_node_count[places.node[entry]] -= 1
        for later in range(place, shared.on_node_count[places.node[entry]]):
            on_node[later] = on_node[later + 1]


@kernel(allocates=False)
def change_demand(shared: SharedNodes, places: Places, sign: int, job: int) -> None:
    """Add the demand of a job to its nodes, or remove it; find the jobs that this may slow down.

    These are the job itself if it starts, and those on nodes whose penalty changes.
    """
    counts, capacity, affected = shared.counts[0], shared.capacity, shared.affected
    counts.stamp += 1
    stamp, found = counts.stamp, 0
    if sign > 0:
        affected[0], found = job, 1
        shared.mark[job] = stamp
    for entry in range(places.first[job], places.last[job]):
        node = places.node[entry]
        penalty = 0.0
        for r in range(len(capacity)):
            shared.used[node, r] += sign * places.processes[entry] * shared.demand[job, r]
            penalty += max(shared.used[node, r] - capacity[r], 0) / capacity[r]
        if penalty == shared.penalty[node]:
            continue
        shared.penalty[node] = penalty
        for place in range(shared.on_node_count[node]):
            other = shared.on_node[node, place]
            if shared.mark[other] != stamp:
                shared.mark[other] = stamp
                affected[found] = other
                found += 1
    counts.affected = found


@kernel(allocates=False)
def change_speeds(
    shared: SharedNodes,
    places: Places,
    in_all: bool,
    starts: bool,
    begins: float,
    now: float,
    job: int,
) -> int:
    """Let a job start or end; return the number of jobs in `affected`, with their new speeds.

    A job that starts begins its work at `begins`. `in_all`: each process runs for itself.
    """
    if starts:
        arrive(shared, places, begins, job)
        change_demand(shared, places, 1, job)
    else:
        depart(shared, places, job)
        change_demand(shared, places, -1, job)
    found = 0
    for place in range(shared.counts[0].affected):
        other = shared.affected[place]
        if in_all:
            speed = speed_in_all(shared, places, now, other)
        else:
            worst = 0.0  # all processes are as slow as those on the worst node
            for entry in range(places.first[other], places.last[other]):
                worst = max(worst, shared.penalty[places.node[entry]])
            speed = 1.0 / (1.0 + worst)
            if speed == shared.speed[other]:
                continue
        shared.speed[other] = shared.new_speed[found] = speed
        shared.affected[found] = other
        found += 1
    return found


@kernel(allocates=False)
def set_speeds(
    core: Core, way: Way, shared: SharedNodes, places: Places, in_all: bool, event: int
) -> None:
    """Set the speeds after the start or the end of a job."""
    job, now = core.tally[CHANGED], core.clock[NOW]
    times = (core.start[job], now)
    for place in range(change_speeds(shared, places, in_all, event == STARTED, *times, job)):
        set_speed(core, way, shared.affected[place], shared.new_speed[place])
