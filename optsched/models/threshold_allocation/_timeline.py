"""Timeline of allocations, and the first starts of jobs within thresholds, compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel

Integers = NDArray[np.int64]


class Timeline(NamedTuple):
    """Starts and ends of allocations by node and time; of equal times, ends come first.

    What a node holds now is one event. `first` is the index of the first event of each node, shape
    (nodes + 1,), and last the number of events, of which the other arrays may have more. Each event
    has its time in seconds, the change of the number of processes, and that of the demand, shape
    (events, resources).
    """

    first: Integers
    time: Integers
    processes: Integers
    demand: Integers


class Job(NamedTuple):
    """A job and the identical nodes that it may use, as in the threshold-allocation problem."""

    processors: int
    asked: int
    walltime: int
    demand: Integers
    capacity: Integers
    scale: Integers


class Space(NamedTuple):
    """Space for a number of each resource, of each processor of a node, and of each limit."""

    level: Integers
    lost: Integers
    room: Integers


@kernel
def timeline(held: Integers, nodes: int) -> tuple[Integers, Integers, Integers, Integers]:
    """Return the parts of the `Timeline` of the allocations `held`."""
    events = 2 * len(held)
    first = np.empty(nodes + 1, dtype=np.int64)
    time = np.empty(events, dtype=np.int64)
    processes = np.empty(events, dtype=np.int64)
    demand = np.empty((events, held.shape[1] - 4), dtype=np.int64)
    count, order = np.empty(nodes, dtype=np.int64), np.empty(events, dtype=np.int64)
    write_timeline(held, Timeline(first, time, processes, demand), count, order)
    return first, time, processes, demand


@kernel(allocates=False)
def write_timeline(held: Integers, events: Timeline, count: Integers, order: Integers) -> None:
    """Write the timeline of the allocations `held`.

    `count` is space for a number for each node, and `order` for each event.
    """
    first, time, processes, demand = events
    rows, nodes, resources = len(held), len(count), demand.shape[1]
    first[:] = 0
    count[:] = 0
    for row in range(rows):
        node = held[row, 0]
        first[node + 1] += 1
        if held[row, 2] > 0:
            first[node + 1] += 1
        elif count[node] == 0:
            first[node + 1] += 1
            count[node] = 1
    for node in range(nodes):
        event = first[node]
        first[node + 1] += event
        if count[node] > 0:  # what is held now
            time[event], processes[event], order[event] = 0, 0, -1
            for r in range(resources):
                demand[event, r] = 0
        count[node] += event
    for end in range(1, -1, -1):
        for row in range(rows):
            node, at = held[row, 0], held[row, 2 + end]
            if at <= 0:
                now = first[node]
                processes[now] += held[row, 1]
                for r in range(resources):
                    demand[now, r] += held[row, 1] * held[row, 4 + r]
                continue
            place = count[node]
            while place > first[node] and time[place - 1] > at:
                time[place], order[place] = time[place - 1], order[place - 1]
                place -= 1
            time[place], order[place] = at, 2 * row + end
            count[node] += 1
    for event in range(first[nodes]):
        if order[event] < 0:
            continue
        row = order[event] >> 1
        change = held[row, 1] if order[event] & 1 == 0 else -held[row, 1]
        processes[event] = change
        for r in range(resources):
            demand[event, r] = change * held[row, 4 + r]


@kernel(allocates=False)
def add_room(
    events: Timeline, node: int, start: int, job: Job, limits: Integers, space: Space
) -> int:
    """Add the processes that a node takes within each limit, ascending, to `Space.room`.

    Returns the number of its processors that are free at the start.
    """
    first, time, processes, demands = events
    level, lost, room = space
    for r in range(len(level)):
        level[r] = 0
    for k in range(len(lost)):
        lost[k] = 0
    at, end, active, most, free = start, start + job.walltime, 0, len(lost), -1
    event, last = first[node], first[node + 1]
    while at < end and most > 0:
        while event < last and time[event] <= at:
            active += processes[event]
            for r in range(len(level)):
                level[r] += demands[event, r]
            event += 1
        until = end
        if event < last and time[event] < end:
            until = time[event]
        most = min(most, len(lost) - active)
        if free < 0:
            free = most
        for r in range(len(level)):
            for k in range(most, 0, -1):
                over = level[r] + k * job.demand[r] - job.capacity[r]
                if over <= 0:
                    break
                lost[k - 1] += (until - at) * job.scale[r] * over
        while most > 0 and lost[most - 1] > limits[-1]:
            most -= 1
        at = until
    for i in range(len(limits) - 1, -1, -1):
        while most > 0 and lost[most - 1] > limits[i]:
            most -= 1
        room[i] += most
    return free


@kernel(allocates=False)
def processors_free(events: Timeline, processors: int, start: int) -> int:
    """Return the number of processors of all nodes that are free at a time."""
    free = processors * (len(events.first) - 1)
    for event in range(events.first[-1]):
        if events.time[event] <= start:
            free -= events.processes[event]
    return free


@kernel(allocates=False)
def least_limit(
    events: Timeline,
    nodes: Integers,
    number: int,
    free: int,
    job: Job,
    limits: Integers,
    space: Space,
) -> int:
    """Return the number of the least limit within which a job can start now.

    A job can start if the nodes together hold all of its processes, each node at most as many as
    keep the penalized time within the limit; see
    `optsched.solvers.threshold_allocation.bottleneck_search`. For lower limits, no problem with
    ``latest=0`` needs to be solved. The first `number` of `nodes` have processors that are free
    now, `free` together. `limits` has the largest penalized times in units, ascending; their number
    means none.
    """
    room = space.room
    room[:] = 0
    for place in range(number):
        free -= add_room(events, nodes[place], 0, job, limits, space)
        if room[0] >= job.asked or room[-1] + free < job.asked:
            break
    least = len(limits)
    while least > 0 and room[least - 1] >= job.asked:
        least -= 1
    return least


@kernel(allocates=False)
def starts_within(
    events: Timeline,
    starts: Integers,
    free: Integers,
    number: int,
    job: Job,
    limits: Integers,
    space: Space,
    found: Integers,
) -> None:
    """Write the first start of a job within each limit to `found`; -1 without one.

    The first `number` of `starts` are possible, ascending, and `free` has the number of processors
    that are free at each. The limits are those of `least_limit`.
    """
    room, missing = space.room, len(limits)
    found[:] = -1
    for place in range(number):
        if missing == 0:
            break
        if free[place] < job.asked:
            continue
        room[:] = 0
        for node in range(len(events.first) - 1):
            add_room(events, node, starts[place], job, limits, space)
            if room[0] >= job.asked:
                break
        while missing > 0 and room[missing - 1] >= job.asked:
            missing -= 1
            found[missing] = starts[place]


@kernel(allocates=False)
def next_end(events: Timeline, after: int) -> int:
    """Return the first end of an allocation after a time, -1 without one."""
    found = -1
    for event in range(events.first[-1]):
        at = events.time[event]
        if at > after and events.processes[event] < 0 and (at < found or found < 0):
            found = at
    return found
