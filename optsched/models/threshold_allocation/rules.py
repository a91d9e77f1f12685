"""What the maths say of a placement: how full and how overloaded its nodes are at each time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.models.problem import Violation

if TYPE_CHECKING:
    from optsched.models.threshold_allocation.problem import Placement, ThresholdAllocation

Ints = NDArray[np.int64]


class SharedWindows(NamedTuple):
    """The shared windows within a job's walltime on the nodes that it uses, in their order.

    Parameters
    ----------
    node, length : int64 array, shape (windows,)
        The node of each, and its seconds.
    processes : int64 array, shape (windows,)
        Processes in it, the job's included.
    demand : int64 array, shape (windows, resources)
        Demand in it, the job's included.
    penalised : int
        P, the units that the job loses on the worst of its nodes, equation (4) of the model's page.
    """

    node: Ints
    length: Ints
    processes: Ints
    demand: Ints
    penalised: int


def shared_windows(problem: ThresholdAllocation, placement: Placement) -> SharedWindows:
    """Return the shared windows of a placement; of one that cannot change, found once."""
    known = problem.__dict__.get("_known_windows")
    if known is not None and known[0] is placement:
        windows: SharedWindows = known[1]
        return windows
    windows = _found(problem, placement)
    if not placement.processes.flags.writeable:
        problem.__dict__["_known_windows"] = (placement, windows)
    return windows


def _found(problem: ThresholdAllocation, placement: Placement) -> SharedWindows:
    """Return the shared windows.

    Between two neighbouring events of a node, the starts and ends of what it holds, the job itself
    included, nothing changes.
    """
    held, start, walltime = problem.held, placement.start, problem.walltime
    is_used = placement.processes != 0
    used = np.flatnonzero(is_used)
    there = (held[:, 2] < start + walltime) & (held[:, 3] > start) & is_used[held[:, 0]]
    own = np.empty((len(used), held.shape[1]), dtype=np.int64)
    own[:, 0], own[:, 1] = used, placement.processes[used]
    own[:, 2], own[:, 3], own[:, 4:] = start, start + walltime, problem.demand
    rows = np.concatenate((own, held[there]))
    # the walltime on one node after the other, as one line; what begins on a node also ends there
    line = (is_used.cumsum() - 1)[rows[:, 0]] * walltime - start
    begins = line + np.maximum(rows[:, 2], start)
    ends = line + np.minimum(rows[:, 3], start + walltime)
    events = np.concatenate((begins, ends))
    order = events.argsort()
    events = events[order]
    # processes in the first column, demands in the others
    change = rows[:, 3:] * rows[:, 1:2]
    change[:, 0] = rows[:, 1]
    active = np.concatenate((change, -change))[order].cumsum(axis=0)
    length = events[1:] - events[:-1]
    inside = length.nonzero()[0]
    length, place = length[inside], events[inside] // walltime
    demand = active[inside, 1:]
    lost = length * penalties(problem, demand)
    # every node has windows, one after the other
    on_nodes = np.add.reduceat(lost, place.searchsorted(np.arange(len(used))))
    penalised = int(on_nodes.max(initial=0))
    return SharedWindows(used[place], length, active[inside, 0], demand, penalised)


def penalties(problem: ThresholdAllocation, demand: Ints) -> Ints:
    """Return the penalties of windows with a demand (windows, resources), in units of 1/L."""
    return np.asarray(np.maximum(demand - problem.capacity, 0) @ problem.scale, dtype=np.int64)


def added_penalty(problem: ThresholdAllocation, placement: Placement) -> int:
    """Return the penalised processor-time that the job adds for everybody, equation (6)."""
    windows = shared_windows(problem, placement)
    own = placement.processes[windows.node]
    with_job = penalties(problem, windows.demand)
    without = penalties(problem, windows.demand - own[:, None] * problem.demand)
    added = windows.processes * with_job - (windows.processes - own) * without
    return int(windows.length @ added)


def broken(problem: ThresholdAllocation, placement: Placement) -> list[Violation]:
    """Return what is wrong with a placement, equations (1), (2), (3) and (5) of the page."""
    start, processes = placement
    if processes.shape != (problem.nodes,) or (processes.size and processes.min() < 0):
        expected = f"expected a number of processes, 0 or more, for each of {problem.nodes} nodes"
        return [Violation("processes", expected)]
    found: list[Violation] = []
    if start != 0 and not (start > 0 and (problem.held[:, 3] == start).any()):
        found.append(Violation("start", f"{start} s is neither now nor the end of a holding"))
    if problem.latest is not None and start > problem.latest:
        found.append(Violation("start", f"{start} s is after the latest, {problem.latest} s"))
    total = int(processes.sum())
    if total != problem.asked:
        found.append(Violation("asked", f"{total} processes are placed, {problem.asked} asked"))
    windows = shared_windows(problem, placement)
    over = windows.processes > problem.processors
    if over.any():
        found += [
            Violation("free", f"more than {problem.processors} processes on node {node} at a time")
            for node in np.unique(windows.node[over]).tolist()
        ]
    if problem.threshold is not None:
        requested = problem.walltime * problem.unit
        if 1000 * (requested + windows.penalised) > problem.threshold * requested:
            factor = (requested + windows.penalised) / requested
            most = problem.threshold / 1000
            found.append(Violation("threshold", f"the factor is {factor:.4f}, above {most:.3f}"))
    return found
