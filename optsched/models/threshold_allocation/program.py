"""The integer program of a threshold allocation, and its vectors.

Variables, in this order: y[t], the job starts at the t-th time; x[t, n, k], it then has k processes
on node n, from 1; where the penalised time is in the objective, P, counted in steps, and w[n], node
n is one that loses most.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from optsched.errors import InputError
from optsched.models.program import Program
from optsched.models.statement import Statement
from optsched.models.threshold_allocation.problem import Placement

if TYPE_CHECKING:
    from optsched.models.threshold_allocation.problem import ThresholdAllocation

Ints = NDArray[np.int64]

MOST_ENTRIES = 1_000_000
"""A larger program is refused: generic solvers are lost long before."""


class _Choice:
    """What k processes on a node cost the job and everybody when it starts at some time."""

    def __init__(self, problem: ThresholdAllocation, start: int, node: int) -> None:
        end = start + problem.walltime
        rows = [
            (processes, max(begin, start), min(until, end), demand)
            for here, processes, begin, until, *demand in problem.held.tolist()
            if here == node and begin < end and until > start
        ]
        times = sorted({start, end, *(row[1] for row in rows), *(row[2] for row in rows)})
        self.windows = []
        for one, other in pairwise(times):
            inside = [row for row in rows if row[1] <= one and other <= row[2]]
            demand = [
                sum(processes * each[r] for processes, _, _, each in inside)
                for r in range(len(problem.capacity))
            ]
            self.windows.append((other - one, sum(row[0] for row in inside), demand))
        self.free = problem.processors - max(count for _, count, _ in self.windows)
        self._job = problem.demand.tolist()
        self._node = list(zip(problem.capacity.tolist(), problem.scale.tolist()))

    def _overload(self, demand: list[int], count: int) -> int:
        full = (level + count * each for level, each in zip(demand, self._job))
        return sum(max(0, total - most) * by for total, (most, by) in zip(full, self._node))

    def own(self, count: int) -> int:
        """Return the penalised time of the job in units."""
        return sum(length * self._overload(demand, count) for length, _, demand in self.windows)

    def added(self, count: int) -> int:
        """Return the penalised processor-time added for everybody in units."""
        return sum(
            length
            * ((held + count) * self._overload(demand, count) - held * self._overload(demand, 0))
            for length, held, demand in self.windows
        )


def _shape(problem: ThresholdAllocation) -> tuple[int, int, int]:
    """Return the numbers of starts, of nodes, and of processes that a node may have."""
    return len(problem.starts), problem.nodes, min(problem.processors, problem.asked)


def _most_penalised(problem: ThresholdAllocation) -> int | None:
    """Return the most units of penalised time within the threshold, equation (5)."""
    if problem.threshold is None:
        return None
    return (problem.threshold - 1000) * problem.walltime * problem.unit // 1000


def _costs(problem: ThresholdAllocation) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """Return what each choice costs the job and everybody in units, and whether it is allowed.

    Each is of the shape of `_shape`; choices that are not allowed cost nothing.
    """
    shape = _shape(problem)
    limit = _most_penalised(problem)
    own, added = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    allowed = np.zeros(shape, dtype=np.bool_)
    for t, start in enumerate(problem.starts.tolist()):
        for node in range(problem.nodes):
            choice = _Choice(problem, start, node)
            for k in range(min(choice.free, shape[2])):
                penalised = choice.own(k + 1)
                if limit is None or penalised <= limit:
                    own[t, node, k], added[t, node, k] = penalised, choice.added(k + 1)
                    allowed[t, node, k] = True
    return own, added, allowed


def _step(own: Ints) -> int:
    """Return the largest number of units that all penalised times are a multiple of.

    Smaller numbers in rows keep solvers in floating point exact.
    """
    return int(np.gcd.reduce(own, axis=None)) or 1


def formulate(problem: ThresholdAllocation) -> Program:
    """State the program of the model's page."""
    times, nodes, counts = shape = _shape(problem)
    entries = 4 * times * nodes * counts
    if entries > MOST_ENTRIES:
        raise InputError(
            f"the program would have some {entries} entries, more than {MOST_ENTRIES}; "
            "bottleneck-search needs none"
        )
    own, added, allowed = _costs(problem)
    starts = problem.starts.tolist()
    x = times + np.arange(own.size).reshape(shape)
    state = Statement()
    state.add("one_start", dict.fromkeys(range(times), 1), 1, 1)
    for t, start in enumerate(starts):
        processes = {v: k + 1 for k in range(counts) for v in x[t, :, k].tolist()}
        state.add(f"asked_{start}", processes | {t: -problem.asked}, 0, 0)
        for node in range(nodes):
            once = dict.fromkeys(x[t, node].tolist(), 1)
            state.add(f"once_{start}_{node}", once | {t: -1}, 0)
    names = [f"y_{start}" for start in starts]
    names += [
        f"x_{start}_{node}_{k + 1}"
        for start in starts
        for node in range(nodes)
        for k in range(counts)
    ]
    objective = [np.zeros(times, dtype=np.int64), np.zeros(own.size, dtype=np.int64)]
    upper = [np.ones(times, dtype=np.int64), allowed.ravel().astype(np.int64)]
    if problem.goal in ("start", "response"):
        objective[0] = problem.starts * (problem.unit if problem.goal == "response" else 1)
    elif problem.goal == "everybody":
        objective[1] = added.ravel()
    if _is_worst_counted(problem):
        step = _step(own)
        most = _state_worst(state, x, own // step)
        names += ["P", *(f"w_{node}" for node in range(nodes))]
        objective.append(np.array([step] + [0] * nodes))
        upper.append(np.array([most] + [1] * nodes))
    return Program(
        sense="min",
        objective=np.concatenate(objective),
        lower=np.zeros(len(names), dtype=np.int64),
        upper=np.concatenate(upper),
        **state.rows(),
        variable_name=names.__getitem__,
        row_name=state.names.__getitem__,
    )


def _is_worst_counted(problem: ThresholdAllocation) -> bool:
    return problem.goal in ("penalty", "response")


def _state_worst(state: Statement, x: Ints, lost: Ints) -> int:
    """State that P is what the node loses that loses most; return the most that it may be."""
    times, nodes, _ = x.shape
    penalised, most = times + x.size, int(lost.max())
    worst = [penalised + 1 + node for node in range(nodes)]
    state.add("one_worst", dict.fromkeys(worst, 1), 1, 1)
    for node in range(nodes):
        of_node = zip(x[:, node].ravel().tolist(), lost[:, node].ravel().tolist())
        terms = {v: -steps for v, steps in of_node if steps} | {penalised: 1}
        state.add(f"worst_{node}", terms, lower=0)
        state.add(f"no_more_{node}", terms | {worst[node]: most}, most)
    return most


def placement_of(problem: ThresholdAllocation, x: Ints) -> Placement:
    """Return the placement of a vector; of several starts the first counts."""
    times, nodes, counts = shape = _shape(problem)
    x = np.asarray(x)
    first = int(x[:times].argmax())
    chosen = x[times : times + times * nodes * counts].reshape(shape)
    return Placement(int(problem.starts[first]), chosen.sum(axis=0) @ np.arange(1, counts + 1))


def vector(problem: ThresholdAllocation, placement: Placement) -> Ints:
    """Return the vector of a feasible placement; the inverse of `placement_of`."""
    times, nodes, _ = shape = _shape(problem)
    time = int(problem.starts.searchsorted(placement.start))
    y = np.zeros(times, dtype=np.int64)
    x = np.zeros(shape, dtype=np.int64)
    used = np.flatnonzero(placement.processes)
    y[time] = x[time, used, placement.processes[used] - 1] = 1
    if not _is_worst_counted(problem):
        return np.concatenate((y, x.ravel()))
    own, _, _ = _costs(problem)
    lost = (x * own).sum(axis=(0, 2))
    w = np.zeros(nodes, dtype=np.int64)
    w[lost.argmax()] = 1
    return np.concatenate((y, x.ravel(), [lost.max() // _step(own)], w))
