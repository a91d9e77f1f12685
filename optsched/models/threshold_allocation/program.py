"""The integer program of a threshold allocation."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from optsched.models.program import (
    Formulation,
    Program,
    ProgramBuilder,
    check_entries,
    formulations,
)
from optsched.models.threshold_allocation.problem import (
    Placement,
    ThresholdAllocation,
    most_penalized,
)

Ints = NDArray[np.int64]

MOST_ENTRIES = 1_000_000
"""Most entries of the program; generic solvers fail on much smaller ones."""


@formulations.register("threshold-allocation")
class ThresholdFormulation(Formulation[ThresholdAllocation, Placement]):
    """The formulation on the model's page.

    ``y[t]`` is 1 if the job starts at the t-th time, and ``x[t, n, k]`` if it then has k >= 1
    processes on node n. If penalized time is in the objective, ``P`` is that time in steps, and
    ``w[n]`` is 1 for one node with the largest penalized time.
    """

    @cached_property
    def program(self) -> Program:
        """The program, with variables y, x, P and w."""
        problem = self.problem
        times, nodes, counts = self._shape
        check_entries(4 * times * nodes * counts, MOST_ENTRIES, "bottleneck-search needs none")
        _, added, allowed = self._costs
        starts = problem.starts.tolist()
        waiting = {"start": 1, "response": problem.unit}.get(problem.goal, 0)
        builder = ProgramBuilder("min")
        y = builder.variables("y_{}", starts, objective=problem.starts * waiting)
        x = builder.variables(
            "x_{}_{}_{}",
            starts,
            range(nodes),
            counts,
            upper=allowed,
            objective=added if problem.goal == "everybody" else 0,
        )
        processes = np.arange(1, counts + 1)[:, None]
        builder.row("one_start", (1, y), equal=1)
        for t, start in enumerate(starts):
            placed = (processes, x[t].T), (-problem.asked, y[t])
            builder.row(f"asked_{start}", *placed, equal=0)
            once = (1, x[t]), (-1, y[t])
            builder.rows(f"once_{start}_{{}}", *once, over=(range(nodes),), at_most=0)
        if self._counts_worst:
            self._state_worst(builder, x)
        return builder.build()

    def _state_worst(self, builder: ProgramBuilder, x: Ints) -> None:
        """Add the rows by which P is the largest penalized time of a node."""
        own, nodes = self._costs[0], self.problem.nodes
        lost = own // _step(own)
        most = int(lost.max())
        penalized = builder.variable("P", upper=most, objective=_step(own))
        worst = builder.variables("w_{}", range(nodes))
        builder.row("one_worst", (1, worst), equal=1)
        for node in range(nodes):
            loses = lost[:, node] > 0
            terms = (-lost[:, node][loses], x[:, node][loses]), (1, penalized)
            builder.row(f"worst_{node}", *terms, at_least=0)
            builder.row(f"no_more_{node}", *terms, (most, worst[node]), at_most=most)

    def decode(self, x: Ints) -> Placement:
        """Return the first start of a vector, and the processes on each node."""
        times, nodes, counts = self._shape
        x = np.asarray(x)
        first = int(x[:times].argmax())
        chosen = x[times : times + times * nodes * counts].reshape(self._shape)
        processes = chosen.sum(axis=0) @ np.arange(1, counts + 1)
        return Placement(int(self.problem.starts[first]), processes)

    def encode(self, solution: Placement) -> Ints:
        """Return the vector of a placement."""
        times, nodes, _ = self._shape
        time = int(self.problem.starts.searchsorted(solution.start))
        y = np.zeros(times, dtype=np.int64)
        x = np.zeros(self._shape, dtype=np.int64)
        used = np.flatnonzero(solution.processes)
        y[time] = x[time, used, solution.processes[used] - 1] = 1
        if not self._counts_worst:
            return np.concatenate((y, x.ravel()))
        own = self._costs[0]
        lost = (x * own).sum(axis=(0, 2))
        w = np.zeros(nodes, dtype=np.int64)
        w[lost.argmax()] = 1
        return np.concatenate((y, x.ravel(), [lost.max() // _step(own)], w))

    @property
    def _shape(self) -> tuple[int, int, int]:
        """Number of starts, of nodes, and of the largest processes on a node."""
        problem = self.problem
        return len(problem.starts), problem.nodes, min(problem.processors, problem.asked)

    @property
    def _counts_worst(self) -> bool:
        return self.problem.goal in ("penalty", "response")

    @cached_property
    def _costs(self) -> tuple[Ints, Ints, NDArray[np.bool_]]:
        """Cost of each choice to the job, cost to all jobs, and whether the choice is allowed.

        Every array has shape `_shape`. Costs are in units, and 0 for choices that are not allowed.
        """
        problem, shape = self.problem, self._shape
        limit = most_penalized(problem)
        own, added = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
        allowed = np.zeros(shape, dtype=np.bool_)
        for t, start in enumerate(problem.starts.tolist()):
            for node in range(problem.nodes):
                choice = _Choice(problem, start, node)
                for k in range(min(choice.free, shape[2])):
                    penalized = choice.own(k + 1)
                    if penalized <= limit:
                        own[t, node, k], added[t, node, k] = penalized, choice.added(k + 1)
                        allowed[t, node, k] = True
        return own, added, allowed


class _Choice:
    """Cost of processes on a node, to the job and to all jobs, for one start."""

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
        """Return the penalized time of the job in units."""
        return sum(length * self._overload(demand, count) for length, _, demand in self.windows)

    def added(self, count: int) -> int:
        """Return the penalized processor time added for all jobs in units."""
        return sum(
            length
            * ((held + count) * self._overload(demand, count) - held * self._overload(demand, 0))
            for length, held, demand in self.windows
        )


def _step(own: Ints) -> int:
    """Return the greatest common divisor of all penalized times.

    Division by it makes numbers in rows smaller, which keeps floating-point solvers exact.
    """
    return int(np.gcd.reduce(own, axis=None)) or 1
