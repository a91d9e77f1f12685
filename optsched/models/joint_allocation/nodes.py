"""Nodes that are in the same state, and the configurations of jobs that they admit.

A configuration says how many processes of each job a node gets. Formulation and heuristics compute
with the tables here; verification has its own, in `optsched.models.joint_allocation.rules`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.models.holdings import COUNTABLE, NO_PENALTY

if TYPE_CHECKING:
    from optsched.models.joint_allocation.problem import JointAllocation

Ints = NDArray[np.int64]
Profile = tuple[tuple[int, ...], ...]
"""From when on a node holds how many processes, with which demand of each resource."""


@dataclass(frozen=True, eq=False)
class NodeStates:
    """What nodes hold, window by window, until the last job of the set would end.

    There may be several states, or just one: then the first axis is missing here and below. States
    with fewer windows than others have windows of length 0 at their end.

    Parameters
    ----------
    length, processes : int64 array, shape (states, windows)
        Seconds of each window, and processes that are held in it.
    demand : int64 array, shape (states, windows, resources)
        Their demand.
    runs : int64 array, shape (states, windows, jobs)
        Whether each job would run in the window if it starts now: 0 or 1.
    """

    problem: JointAllocation
    length: Ints
    processes: Ints
    demand: Ints
    runs: Ints

    def __getitem__(self, state: Any) -> NodeStates:
        """Return one state, or those of an array of numbers."""
        columns = (self.length, self.processes, self.demand, self.runs)
        return NodeStates(self.problem, *(column[state] for column in columns))

    def _active(self, configurations: Ints) -> Ints:
        """Return the processes in each window, shape (states, configurations, windows)."""
        return configurations @ self.runs.swapaxes(-1, -2) + self.processes[..., None, :]

    def _penalties(self, configurations: Ints) -> Ints:
        """Return the penalties in units of 1/L, shape (states, configurations, windows)."""
        problem = self.problem
        shape = (*configurations.shape[:-1], self.length.shape[-1])
        found = np.zeros(shape, dtype=np.int64)
        for resource, capacity in enumerate(problem.capacity.tolist()):
            own = (configurations * problem.demands[:, resource]) @ self.runs.swapaxes(-1, -2)
            beyond = np.maximum(own + self.demand[..., None, :, resource] - capacity, 0)
            found += beyond * (problem.unit // capacity)
        return found

    def penalised_times(self, configurations: Ints) -> Ints:
        """Return A of each job, in units.

        Parameters
        ----------
        configurations : int64 array, shape (states, configurations, jobs)
            Processes of each job.

        Returns
        -------
        int64 array, shape (states, configurations, jobs)
        """
        lost = self._penalties(configurations) * self.length[..., None, :]
        return np.asarray(lost @ self.runs, dtype=np.int64)

    def admits(self, configurations: Ints, lost: Ints) -> NDArray[np.bool_]:
        """Return whether there is room, and no job of it loses too much.

        What is admitted still is with processes taken away: neither room nor penalties get worse.

        Parameters
        ----------
        configurations : int64 array, shape (states, configurations, jobs)
            Processes of each job.
        lost : int64 array, shape (states, configurations, jobs)
            Their `penalised_times`.

        Returns
        -------
        bool array, shape (states, configurations)
        """
        limits = most_penalised_times(self.problem)
        fits: NDArray[np.bool_] = np.all(
            self._active(configurations) <= self.problem.processors, axis=-1
        )
        within: NDArray[np.bool_] = np.all((configurations == 0) | (lost <= limits), axis=-1)
        return fits & within

    def added(self, configurations: Ints) -> Ints:
        """Return the processor-time that everybody loses more, in units.

        Parameters
        ----------
        configurations : int64 array, shape (states, configurations, jobs)
            Processes of each job.

        Returns
        -------
        int64 array, shape (states, configurations)
        """
        nothing = np.zeros_like(configurations[..., :1, :])
        alone = self.processes[..., None, :] * self._penalties(nothing)
        lost = self._active(configurations) * self._penalties(configurations) - alone
        return np.asarray((lost * self.length[..., None, :]).sum(axis=-1), dtype=np.int64)


class FreeNodes(NamedTuple):
    """The nodes with a processor that is free now.

    Parameters
    ----------
    nodes : int64 array, shape (nodes,)
        Their numbers, ascending.
    states : NodeStates
        The states that they are in.
    state : int64 array, shape (nodes,)
        The number of the state of each.
    """

    nodes: Ints
    states: NodeStates
    state: Ints


def free_nodes(problem: JointAllocation) -> FreeNodes:
    """Return the nodes with a processor that is free now, and their states."""
    until = int(problem.walltimes.max(initial=0))
    held_now = np.zeros(problem.nodes, dtype=np.int64)
    now = problem.held[problem.held[:, 2] == 0]
    np.add.at(held_now, now[:, 0], now[:, 1])
    nodes = np.flatnonzero(held_now < problem.processors)
    holdings: dict[int, list[list[int]]] = {node: [] for node in nodes.tolist()}
    for row in problem.held[problem.held[:, 2] < until].tolist():
        if row[0] in holdings:
            holdings[row[0]].append(row)
    profiles = [_profile(rows, until, len(problem.capacity)) for rows in holdings.values()]
    number: dict[Profile, int] = {}
    state = [number.setdefault(profile, len(number)) for profile in profiles]
    return FreeNodes(nodes, _states(problem, list(number)), np.array(state, dtype=np.int64))


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


def _states(problem: JointAllocation, profiles: list[Profile]) -> NodeStates:
    jobs, resources = len(problem.asked), len(problem.capacity)
    ends = set(problem.walltimes.tolist())
    marks = [sorted({*ends, *(level[0] for level in profile)}) for profile in profiles]
    shape = (len(profiles), max(map(len, marks), default=1) - 1)
    length, processes = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    demand = np.zeros((*shape, resources), np.int64)
    runs = np.zeros((*shape, jobs), np.int64)
    for state, (profile, at) in enumerate(zip(profiles, marks)):
        levels, here = np.array(profile, dtype=np.int64), slice(len(at) - 1)
        begin = np.array(at[:-1], dtype=np.int64)
        level = levels[np.searchsorted(levels[:, 0], begin, side="right") - 1]
        length[state, here] = np.diff(at)
        processes[state, here], demand[state, here] = level[:, 1], level[:, 2:]
        runs[state, here] = problem.walltimes > begin[:, None]
    return NodeStates(problem, length, processes, demand, runs)
