"""The integer program of a threshold allocation."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from optsched.arrays import Flags, Ints
from optsched.models.program import Formulation, Program, ProgramBuilder, formulations
from optsched.models.threshold_allocation.problem import (
    Placement,
    ThresholdAllocation,
    most_penalized,
)


@formulations.register("threshold-allocation")
class ThresholdFormulation(Formulation[ThresholdAllocation, Placement]):
    """The formulation on the model's page.

    ``y[t]`` is 1 if the job starts at the t-th time, and ``x[t, n, k]`` if it then has k >= 1
    processes on node n. If penalized time is in the objective, ``P`` is that time in steps, and
    ``w[n]`` is 1 for one node with the largest penalized time.
    """

    most_entries = 1_000_000  # generic solvers fail on much smaller programs

    @cached_property
    def program(self) -> Program:
        """The program, with variables y, x, P and w."""
        problem = self.problem
        times, nodes, counts = self._shape
        self.check_entries(4 * times * nodes * counts, "bottleneck-search needs none")
        own, added, allowed = self._costs
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
        return builder.build()

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
    def _costs(self) -> tuple[Ints, Ints, Flags]:
        """Cost of each choice to the job, cost to all jobs, and whether the choice is allowed.

        Every array has shape `_shape`. Costs are in units, and 0 for choices that are not allowed.
        """
        own, added = np.empty((2, *self._shape), dtype=np.int64)
        allowed = np.empty(self._shape, dtype=np.bool_)
        for t, start in enumerate(self.problem.starts.tolist()):
            for node in range(self.problem.nodes):
                own[t, node], added[t, node], allowed[t, node] = self._costs_on(node, start)
        allowed &= own <= most_penalized(self.problem)
        own[~allowed] = added[~allowed] = 0
        return own, added, allowed

    def _costs_on(self, node: int, start: int) -> tuple[Ints, Ints, Flags]:
        """Return the `_costs` of a node and a start without the limit, shape (processes,)."""
        problem, until = self.problem, start + self.problem.walltime
        held = problem.held[problem.held[:, 0] == node]
        held = held[(held[:, 2] < until) & (held[:, 3] > start)]
        begin, end = held[:, 2].clip(min=start), held[:, 3].clip(max=until)
        times = np.unique([start, until, *begin, *end])
        inside = (begin <= times[:-1, None]) & (times[1:, None] <= end)  # (windows, held)
        there, used = inside @ held[:, 1], inside @ (held[:, 1:2] * held[:, 4:])
        counts = np.arange(self._shape[2] + 1)
        demand = used[:, None] + counts[:, None] * problem.demand
        lost = np.maximum(demand - problem.capacity, 0) @ problem.scale  # (windows, counts)
        with_job, without = (there[:, None] + counts) * lost, there[:, None] * lost[:, :1]
        length, free = np.diff(times), problem.processors - there.max()
        return (length @ lost)[1:], (length @ (with_job - without))[1:], counts[1:] <= free


def _step(own: Ints) -> int:
    """Return the divisor of all penalized times that keeps floating-point solvers exact."""
    return int(np.gcd.reduce(own, axis=None)) or 1
