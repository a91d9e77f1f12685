"""Free processors of nodes, and what a job loses on them when it starts at some time: compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel
from optsched.models.threshold_allocation._timeline import Timeline
from optsched.models.threshold_allocation.presolve import NEVER

Integers = NDArray[np.int64]


class Job(NamedTuple):
    """What is asked of nodes that are alike.

    Parameters
    ----------
    processors : int
        Of each node.
    asked, walltime : int
        Processes, and the seconds of each.
    demand, capacity, scale : int64 array, shape (resources,)
        As in the threshold-allocation problem.
    """

    processors: int
    asked: int
    walltime: int
    demand: Integers
    capacity: Integers
    scale: Integers


@kernel
def free_processors(events: Timeline, processors: int, start: int, end: int) -> Integers:
    """Return the processors of each node that are free from start to end, shape (nodes,)."""
    nodes = len(events.first) - 1
    free = np.empty(nodes, dtype=np.int64)
    for node in range(nodes):
        active = most = 0
        for event in range(events.first[node], events.first[node + 1]):
            if events.time[event] >= end:
                break
            active += events.processes[event]
            if events.time[event] <= start or active > most:
                most = active
        free[node] = processors - most
    return free


@kernel
def penalised_times(events: Timeline, job: Job, start: int, free: Integers) -> Integers:
    """Return what a job loses with 1, 2, ... processes on a node, shape (nodes, processors).

    In units, equation (4) of the model's page; `NEVER` for more than are free.
    """
    lost: Integers = _costs(events, job, start, free, False)[0]
    return lost


@kernel
def added_penalties(events: Timeline, job: Job, start: int, free: Integers) -> Integers:
    """Return what each further process on a node adds for everybody, shape (nodes, processors).

    In units, equation (6) of the model's page, process by process.
    """
    added: Integers = _costs(events, job, start, free, True)[1]
    return added


@kernel
def _costs(
    events: Timeline, job: Job, start: int, free: Integers, everybody: bool
) -> tuple[Integers, Integers]:
    nodes, resources = len(free), len(job.demand)
    end = start + job.walltime
    lost = np.full((nodes, job.processors), NEVER)
    added = np.full((nodes, job.processors) if everybody else (0, 0), NEVER)
    level = np.empty(resources, dtype=np.int64)
    for node in range(nodes):
        most = free[node]
        if most == 0:
            continue
        lost[node, :most] = 0
        if everybody:
            added[node, :most] = 0
        level[:] = 0
        active = 0
        event, last = events.first[node], events.first[node + 1]
        at = start
        while at < end:
            while event < last and events.time[event] <= at:
                active += events.processes[event]
                for r in range(resources):
                    level[r] += events.demand[event, r]
                event += 1
            until = end
            if event < last and events.time[event] < end:
                until = events.time[event]
            length = until - at
            at = until
            for r in range(resources):
                room = job.capacity[r] - level[r]
                if most * job.demand[r] <= room:
                    continue
                weight = length * job.scale[r]
                for k in range(1, most + 1):
                    over = k * job.demand[r] - room
                    if over > 0:
                        lost[node, k - 1] += weight * over
                if everybody:
                    before = active * max(0, -room)
                    for k in range(1, most + 1):
                        now = (active + k) * max(0, k * job.demand[r] - room)
                        added[node, k - 1] += weight * (now - before)
                        before = now
    return lost, added


@kernel
def take_cheapest(costs: Integers, asked: int) -> tuple[Integers, int]:
    """Return how many processes each node has of the cheapest, and what the last one costs.

    Parameters
    ----------
    costs : int64 array, shape (nodes, processors)
        Of each further process; they do not fall along a node, and end with `NEVER`.
    asked : int
        Processes wanted.

    Returns
    -------
    processes : int64 array, shape (nodes,)
        Of equal costs those on nodes of lower number.
    last : int
        The highest cost among them; `NEVER` if there are not enough.
    """
    nodes, processors = costs.shape
    processes = np.zeros(nodes, dtype=np.int64)
    last = np.partition(costs.ravel(), asked - 1)[asked - 1]
    if last == NEVER:
        return processes, last
    left = asked
    for node in range(nodes):
        while processes[node] < processors and costs[node, processes[node]] < last:
            processes[node] += 1
            left -= 1
    for node in range(nodes):
        while left > 0 and processes[node] < processors and costs[node, processes[node]] == last:
            processes[node] += 1
            left -= 1
    return processes, last
