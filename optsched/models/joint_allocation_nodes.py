"""Nodes that are in the same state, and the configurations of jobs that they admit.

A configuration says how many processes of each job a node gets. Formulation and heuristics compute
with the tables here; verification has its own, in `optsched.models.joint_allocation_rules`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from optsched.models.joint_allocation_fields import COUNTABLE, NO_PENALTY

if TYPE_CHECKING:
    from optsched.models.joint_allocation import JointAllocation

Ints = NDArray[np.int64]
Profile = tuple[tuple[int, ...], ...]
"""From when on a node holds how many processes, with which demand of each resource."""


@dataclass(frozen=True, eq=False)
class NodeState:
    """What a node holds, window by window, until the last job of the set would end.

    Parameters
    ----------
    length, processes : int64 array, shape (windows,)
        Seconds of each window, and processes that are held in it.
    demand : int64 array, shape (windows, resources)
        Their demand.
    runs : int64 array, shape (windows, jobs)
        Whether each job would run in the window if it starts now: 0 or 1.
    limits : int64 array, shape (jobs,)
        Most penalised time of each job, in units.
    """

    problem: JointAllocation
    length: Ints
    processes: Ints
    demand: Ints
    runs: Ints
    limits: Ints

    def _penalties(self, configurations: Ints) -> Ints:
        """Return the penalty of each window in units of 1/L, shape (configurations, windows)."""
        problem, found = self.problem, np.zeros((len(configurations), len(self.length)), np.int64)
        for resource, capacity in enumerate(problem.capacity.tolist()):
            own = (configurations * problem.demands[:, resource]) @ self.runs.T
            beyond = np.maximum(own + self.demand[:, resource] - capacity, 0)
            found += beyond * (problem.unit // capacity)
        return found

    def penalised_times(self, configurations: Ints) -> Ints:
        """Return A of each job on the node, in units, shape (configurations, jobs)."""
        return (self._penalties(configurations) * self.length) @ self.runs

    def admits(self, configurations: Ints) -> NDArray[np.bool_]:
        """Return whether there is room, and no job of it loses too much, shape (configurations,).

        What is admitted still is with processes taken away: neither room nor penalties get worse.
        """
        active = configurations @ self.runs.T + self.processes
        fits: NDArray[np.bool_] = np.all(active <= self.problem.processors, axis=1)
        lost = self.penalised_times(configurations)
        within: NDArray[np.bool_] = np.all((configurations == 0) | (lost <= self.limits), axis=1)
        return fits & within

    def added(self, configurations: Ints) -> Ints:
        """Return the processor-time that everybody loses more, in units, (configurations,)."""
        active = configurations @ self.runs.T + self.processes
        alone = self._penalties(np.zeros_like(configurations[:1]))
        lost = active * self._penalties(configurations) - self.processes * alone
        return np.asarray(lost @ self.length, dtype=np.int64)


def nodes_by_state(problem: JointAllocation) -> list[tuple[NodeState, Ints]]:
    """Return the states that nodes are in, and the numbers of the nodes, by their first node."""
    alike: dict[Profile, list[int]] = {}
    until = int(problem.walltimes.max(initial=0))
    holdings: list[list[list[int]]] = [[] for _ in range(problem.nodes)]
    for row in problem.held[problem.held[:, 2] < until].tolist():
        holdings[row[0]].append(row)
    for node, rows in enumerate(holdings):
        alike.setdefault(_profile(rows, until, len(problem.capacity)), []).append(node)
    limits = most_penalised_times(problem)
    return [(_state(problem, profile, limits), np.array(nodes)) for profile, nodes in alike.items()]


def most_penalised_times(problem: JointAllocation) -> Ints:
    """Return the penalised time with which each job is at the threshold, in units, (jobs,)."""
    if problem.threshold is None:
        return np.full(len(problem.asked), COUNTABLE)
    share = (problem.threshold - NO_PENALTY) * problem.unit
    most = [share * walltime // NO_PENALTY for walltime in problem.walltimes.tolist()]
    return np.array([min(units, COUNTABLE) for units in most], dtype=np.int64)


def _profile(rows: list[list[int]], until: int, resources: int) -> Profile:
    """Return the levels of the holdings of a node; those that change nothing are left out."""
    levels: list[tuple[int, ...]] = []
    for at in sorted({0, *(at for row in rows for at in row[2:4] if at < until)}):
        active = [row for row in rows if row[2] <= at < row[3]]
        columns = zip(*((row[1], *(row[1] * demand for demand in row[4:])) for row in active))
        level = tuple(map(sum, columns)) or (0,) * (1 + resources)
        if not levels or levels[-1][1:] != level:
            levels.append((at, *level))
    return tuple(levels)


def _state(problem: JointAllocation, profile: Profile, limits: Ints) -> NodeState:
    levels = np.array(profile, dtype=np.int64)
    marks = np.unique(np.concatenate((levels[:, 0], problem.walltimes)))
    begin = marks[:-1]
    level = levels[np.searchsorted(levels[:, 0], begin, side="right") - 1]
    runs = (problem.walltimes > begin[:, None]).astype(np.int64)
    return NodeState(problem, np.diff(marks), level[:, 1], level[:, 2:], runs, limits)
