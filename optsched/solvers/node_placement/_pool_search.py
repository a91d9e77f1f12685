"""Most weight, then fewest leaf switches, in one pool of nodes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from optsched.models.window_mkp import WindowMKP
from optsched.solvers.node_placement._effort import Effort, StoppedError
from optsched.solvers.node_placement._groups import GroupSearch
from optsched.solvers.node_placement._leaf_filling import filled, filled_by_priority
from optsched.solvers.node_placement._priority_sets import PrioritySets, heaviest_set
from optsched.solvers.node_placement._whole_nodes import Cells, Pool
from optsched.solvers.result import Budget
from optsched.solvers.window_mkp.branch_and_bound import BranchAndBound

LEAST_SECONDS = 1e-6
"""Time limit of a knapsack when none is left."""


def window(pool: Pool, radix: int) -> WindowMKP:
    """Return the knapsack with a slot for each block that chooses the jobs of a pool.

    On one leaf each, jobs span as many switches as there are jobs. So the profit of a job is then
    its part of the objective; otherwise it is its weight.
    """
    on_one_leaf = pool.span == "switch"
    profits = pool.weights * radix - 1 if on_one_leaf else pool.weights
    return WindowMKP(weights=pool.sizes, capacities=pool.block_room, profits=profits)


class PoolSearch:
    """Search for the best solution of a pool, in two stages.

    Parameters
    ----------
    pool : Pool
        Jobs and nodes.
    radix : int
        Value of a unit of weight, in switches: more than a solution can span.
    cells : dict
        A solution to start from, which may be empty.

    Attributes
    ----------
    cells : dict
        Best solution so far.
    bound : int
        Upper bound of `value`.
    """

    def __init__(self, pool: Pool, radix: int, cells: Cells) -> None:
        self.pool = pool
        self._radix = radix
        self.cells = max(cells, filled_by_priority(pool), key=self._value)
        heaviest = heaviest_set(pool.sizes, pool.weights, int(pool.room.sum()))
        self._most_weight = int(pool.weights[heaviest].sum())
        self.bound = self._most_weight * radix

    @property
    def value(self) -> int:
        """Part of the objective that the pool contributes."""
        return self._value(self.cells)

    def _value(self, cells: Cells) -> int:
        return self.pool.weight(cells) * self._radix - len(cells)

    def _offer(self, cells: Cells) -> None:
        self.cells = max(self.cells, cells, key=self._value)

    def choose_jobs(self, effort: Effort, seed: int, seconds_per_work: float) -> None:
        """Find the greatest weight, and jobs that have it.

        Raises
        ------
        StoppedError
            If a limit is reached first.
        """
        if self.pool.span == "anywhere":
            return  # the knapsack of all nodes has the answer
        effort.check()
        pool, price = self.pool, BranchAndBound.seconds_per_work / seconds_per_work
        work, seconds = effort.work_left(), effort.seconds_left()
        slots = [-1] * len(pool.jobs)
        for job, leaf in self.cells:
            slots[job] = int(pool.blocks[leaf])
        answer = BranchAndBound().solve(
            window(pool, self._radix),
            budget=Budget(
                seconds=None if np.isinf(seconds) else max(LEAST_SECONDS, seconds),
                work=None if np.isinf(work) else work / price,
            ),
            hint=tuple(slots),
            seed=seed,
        )
        effort.work += answer.work * price
        self._offer(self._in_blocks(np.array(answer.solution)))
        assert answer.bound is not None
        if pool.span == "switch":
            self.bound = min(self.bound, int(answer.bound))
        else:
            self._most_weight = min(self._most_weight, int(answer.bound))
            self.bound = self._most_weight * self._radix
        if answer.limit is not None:
            raise StoppedError(answer.limit)

    def cross_fewest(self, effort: Effort, seed: int) -> Iterator[None]:
        """Find the fewest switches, once the jobs are chosen; pause after each improvement.

        Raises
        ------
        StoppedError
            If a limit is reached first.
        """
        pool = self.pool
        if pool.span == "switch":
            return  # the knapsack of leaves has the answer
        effort.check()
        nodes = int(pool.room.sum())
        sets = PrioritySets.of(pool.sizes, pool.weights, nodes, self._most_weight)
        search = GroupSearch(pool, sets, self.cells, seed)
        try:
            for _ in search.run(effort):
                self._offer(search.cells)
                self._lower(search.bound)
                yield
        finally:
            self._offer(search.cells)
            self._lower(search.bound)

    def _lower(self, switches: int) -> None:
        self.bound = min(self.bound, self._most_weight * self._radix - switches)

    def _in_blocks(self, blocks: np.ndarray) -> Cells:
        """Return the cells of jobs in given blocks, -1 for none, each block filled by the rule."""
        pool = self.pool
        cells: Cells = {}
        for block in np.unique(blocks[blocks >= 0]):
            jobs, leaves = np.flatnonzero(blocks == block), np.flatnonzero(pool.blocks == block)
            one_block = np.zeros_like(leaves)
            there = filled(pool.sizes[jobs], pool.room[leaves], one_block)
            cells |= {(int(jobs[job]), int(leaves[leaf])): n for (job, leaf), n in there.items()}
        return cells
