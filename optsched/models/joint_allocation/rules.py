"""What the maths say of a set of jobs that start together: room, penalties, what they add."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.models.problem import Violation

if TYPE_CHECKING:
    from optsched.models.joint_allocation.problem import JointAllocation, JointPlacement

Ints = NDArray[np.int64]


class SharedWindows(NamedTuple):
    """The shared windows of the nodes that started jobs use, until the last of these jobs ends.

    Parameters
    ----------
    node, begin, length : int64 array, shape (windows,)
        The node of each, when it begins, and its seconds.
    processes, held : int64 array, shape (windows,)
        Processes in it, and those of holdings alone.
    penalty, penalty_held : int64 array, shape (windows,)
        Its penalty in units of 1/L, and what it would be with the holdings alone.
    """

    node: Ints
    begin: Ints
    length: Ints
    processes: Ints
    held: Ints
    penalty: Ints
    penalty_held: Ints


def shared_windows(problem: JointAllocation, placement: JointPlacement) -> SharedWindows:
    """Return the shared windows of a placement.

    Between two neighbouring events of a node, starts and ends of holdings and of jobs, nothing
    changes.
    """
    processes = placement.processes
    job, on = np.nonzero(processes)
    until = int(problem.walltimes[job].max(initial=0))
    used = np.asarray(processes.any(axis=0))
    there = (problem.held[:, 2] < until) & used[problem.held[:, 0]]
    rows = problem.held[there]
    node = np.concatenate((rows[:, 0], on))
    count = np.concatenate((rows[:, 1], processes[job, on]))
    begin = np.concatenate((rows[:, 2], np.zeros_like(job)))
    end = np.concatenate((np.minimum(rows[:, 3], until), problem.walltimes[job]))
    demand = count[:, None] * np.concatenate((rows[:, 4:], problem.demands[job]))
    of_held = np.arange(len(node)) < len(rows)

    at = np.concatenate((begin, end))
    node = np.concatenate((node, node))
    order = np.lexsort((at, node))
    at, node = at[order], node[order]

    def level(change: Ints) -> Ints:
        # what begins on a node also ends there, so one sum runs through all nodes
        return np.concatenate((change, -change))[order].cumsum(axis=0)

    length = np.zeros_like(at)
    length[:-1] = np.where(node[1:] == node[:-1], at[1:] - at[:-1], 0)
    inside = length > 0
    columns = (
        level(count),
        level(count * of_held),
        _penalties(problem, level(demand)),
        _penalties(problem, level(demand * of_held[:, None])),
    )
    return SharedWindows(*(column[inside] for column in (node, at, length, *columns)))


def _penalties(problem: JointAllocation, demand: Ints) -> Ints:
    """Return equation (2) of the page for demands (windows, resources), in units of 1/L."""
    scale = problem.unit // problem.capacity
    return np.asarray(np.maximum(demand - problem.capacity, 0) @ scale, dtype=np.int64)


def penalised_times(problem: JointAllocation, placement: JointPlacement) -> Ints:
    """Return P_j of each job in units, equations (3) and (4) of the page, shape (jobs,)."""
    windows = shared_windows(problem, placement)
    lost = windows.length * windows.penalty
    times = np.zeros(len(problem.asked), dtype=np.int64)
    for job, walltime in enumerate(problem.walltimes.tolist()):
        of_node = np.zeros(problem.nodes, dtype=np.int64)
        during = windows.begin < walltime
        np.add.at(of_node, windows.node[during], lost[during])
        times[job] = of_node[placement.processes[job] > 0].max(initial=0)
    return times


def added_penalty(problem: JointAllocation, placement: JointPlacement) -> int:
    """Return the processor-time that everybody loses more, equation (8) of the page, in units."""
    windows = shared_windows(problem, placement)
    added = windows.processes * windows.penalty - windows.held * windows.penalty_held
    return int(windows.length @ added)


def broken(problem: JointAllocation, placement: JointPlacement) -> list[Violation]:
    """Return what is wrong with a placement, equations (5) to (7) and (10) of the page."""
    processes = placement.processes
    shape = (len(problem.asked), problem.nodes)
    if processes.shape != shape or (processes.size and processes.min() < 0):
        expected = f"expected numbers of processes from 0, {shape[0]} jobs x {shape[1]} nodes"
        return [Violation("processes", expected)]
    found: list[Violation] = []
    for job, (placed, asked) in enumerate(zip(processes.sum(axis=1), problem.asked), start=1):
        if placed not in (0, asked):
            detail = f"{placed} processes of job {job} are placed, {asked} asked"
            found.append(Violation("asked", detail))
        elif placed == 0 and problem.goal == "penalty":
            found.append(Violation("all", f"job {job} does not start"))
    if processes.max(initial=0) > problem.processors:
        found.append(Violation("free", f"a job has more than {problem.processors} on a node"))
        return found
    windows = shared_windows(problem, placement)
    over = np.flatnonzero(windows.processes > problem.processors)
    nodes, first = np.unique(windows.node[over], return_index=True)
    found += [
        Violation(
            "free", f"{windows.processes[w]} processes on node {node} at {windows.begin[w]} s"
        )
        for node, w in zip(nodes.tolist(), over[first].tolist())
    ]
    if problem.threshold is None or found:
        return found
    for job, lost in enumerate(penalised_times(problem, placement).tolist()):
        requested = int(problem.walltimes[job]) * problem.unit
        if 1000 * (requested + lost) > problem.threshold * requested:
            factor = f"{(requested + lost) / requested:.4f}, above {problem.threshold / 1000:.3f}"
            found.append(Violation("threshold", f"the factor of job {job + 1} is {factor}"))
    return found
