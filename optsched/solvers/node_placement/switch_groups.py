"""Whole nodes on the fewest leaf switches by groups of jobs and leaves, and on few by a rule."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from optsched.errors import InputError
from optsched.models.node_placement import NodePlacement, Placements
from optsched.models.problem import Problem
from optsched.models.window_mkp import WindowMKP
from optsched.registry import solvers
from optsched.solvers.anytime import AnytimeSolver, Progress, StoppedError
from optsched.solvers.node_placement._groups import GroupSearch, prepare
from optsched.solvers.node_placement._whole_nodes import (
    Cells,
    Pool,
    PrioritySets,
    cells_of,
    filled,
    filled_by_priority,
    heaviest_set,
    placements,
    pools,
)
from optsched.solvers.solver import Heuristic
from optsched.solvers.window_mkp.branch_and_bound import BranchAndBound


def window(pool: Pool, radix: int) -> WindowMKP:
    """Return the knapsack with a slot for each block that chooses the jobs of a pool."""
    on_one_leaf = pool.span == "switch"  # then each job spans one switch
    profits = pool.weights * radix - 1 if on_one_leaf else pool.weights
    return WindowMKP(weights=pool.sizes, capacities=pool.block_room, profits=profits)


class PoolSearch:
    """Search for the best solution of a pool, in two stages."""

    def __init__(self, pool: Pool, radix: int, cells: Cells) -> None:
        self.pool = pool
        self._radix = radix
        self.cells = max(cells, filled_by_priority(pool), key=self._value)
        sizes, weights = pool.sizes.tolist(), pool.weights.tolist()
        heaviest = heaviest_set(sizes, weights, int(pool.room.sum()))
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

    def choose_jobs(self, progress: Progress, seed: int, seconds_per_work: float) -> None:
        """Find the greatest weight, and jobs that have it."""
        if self.pool.span == "anywhere":
            return  # the knapsack of all nodes has the answer
        progress.check()
        pool, price = self.pool, BranchAndBound.seconds_per_work / seconds_per_work
        slots = [-1] * len(pool.jobs)
        for job, leaf in self.cells:
            slots[job] = int(pool.blocks[leaf])
        answer = BranchAndBound().solve(
            window(pool, self._radix),
            budget=progress.rest(price=price),
            hint=tuple(slots),
            seed=seed,
        )
        progress.work += answer.work * price
        self._offer(self._in_blocks(np.array(answer.solution)))
        assert answer.bound is not None
        if pool.span == "switch":
            self.bound = min(self.bound, int(answer.bound))
        else:
            self._most_weight = min(self._most_weight, int(answer.bound))
            self.bound = self._most_weight * self._radix
        if answer.limit is not None:
            raise StoppedError(answer.limit)

    def cross_fewest(self, progress: Progress, seed: int) -> Iterator[None]:
        """Find the fewest switches for these; pause after each improvement."""
        pool = self.pool
        if pool.span == "switch":
            return  # the knapsack of leaves has the answer
        progress.check()
        nodes = int(pool.room.sum())
        sets = PrioritySets.of(pool.sizes, pool.weights, nodes, self._most_weight)
        search = GroupSearch(pool, sets, self.cells, seed)
        try:
            for _ in search.run(progress):
                self._take(search)
                yield
        finally:
            self._take(search)

    def _take(self, search: GroupSearch) -> None:
        self._offer(search.cells)
        self.bound = min(self.bound, self._most_weight * self._radix - search.bound)

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


@solvers.register("switch-groups")
@dataclass(frozen=True)
class SwitchGroups(AnytimeSolver):
    """Most weight, then fewest leaf switches, for jobs of whole nodes.

    Jobs and nodes are parted into pools that have nothing in common, of which each is solved alone.
    The greatest weight is that of a knapsack of all nodes, or of a knapsack with a slot for each
    block or leaf where one of these must hold a job. Then column generation over groups of jobs and
    leaves (`optsched.solvers.node_placement._groups`) finds the fewest switches of all job sets of
    that weight, and proves them.

    Problems in which chunks may share a node, or whose objective is another, are refused.

    Work is counted in iterations of the simplex method and nodes of integer programs.

    Examples
    --------
    Jobs of 2, 2, 3 and 4 nodes, of which leaves have 5 and 6:

    >>> from optsched.solvers.result import Budget
    >>> problem = NodePlacement(
    ...     ["cores"], free=[[8]] * 11, chunks=[2, 2, 3, 4], demand=[[8]] * 4,
    ...     then=("switches",), switches=["a"] * 5 + ["b"] * 6)
    >>> result = SwitchGroups().solve(problem, budget=Budget())
    >>> result.status, problem.measures(result.solution)
    (<Status.OPTIMAL: 'optimal'>, {'weight': 4, 'switches': 4, 'nodes': 11})
    """

    models = frozenset({"node-placement"})
    work_unit = "iterations"
    seconds_per_solve = 1e-3
    seconds_per_work = 2e-4
    default_work = 5000
    requires = "highspy"

    def prepare(self, problem: Problem[Any] | None = None) -> None:
        """Import HiGHS, and compile the kernels that `problem` needs, or load them."""
        import highspy  # noqa: F401

        prepare()
        if not isinstance(problem, NodePlacement):
            problem = NodePlacement(
                ["nodes"], [[1]], [1], [[1]], then=("switches",), switches=["a"]
            )
        with suppress(InputError):  # which `solve` raises
            for pool in pools(problem):
                if pool.span != "anywhere":
                    BranchAndBound().prepare(window(pool, problem.radices[0]))

    def search(
        self, problem: NodePlacement, progress: Progress, hint: Placements | None, seed: int
    ) -> None:
        """Search pool by pool for the greatest weight, then for the fewest switches.

        Raises
        ------
        InputError
            If the problem is not one of whole nodes, see `pools`.
        """
        searches = [
            PoolSearch(pool, problem.radices[0], {} if hint is None else cells_of(pool, hint))
            for pool in pools(problem)
        ]

        def note() -> None:
            progress.value = sum(one.value for one in searches)
            progress.prove(sum(one.bound for one in searches))

        note()
        try:
            for search in searches:
                search.choose_jobs(progress, seed, self.seconds_per_work)
                note()
            for search in searches:
                for _ in search.cross_fewest(progress, seed):
                    note()
        finally:
            note()
            progress.solution = placements(problem, [(one.pool, one.cells) for one in searches])


@solvers.register("leaf-best-fit")
@dataclass(frozen=True)
class LeafBestFit(Heuristic):
    """Best fit of whole nodes into leaf switches.

    A knapsack chooses the jobs of greatest weight that the free nodes hold together. Of these, the
    largest comes first. It gets the leaf with the fewest free nodes that holds it. If none does, it
    gets the leaf with the most free nodes, and its remaining nodes are placed likewise; if a block
    must hold it, in the block with the fewest free nodes that does. A job that fits in no block, or
    on no leaf if a leaf must hold it, is left out.

    Problems in which chunks may share a node, or whose objective is another than most weight and
    then fewest switches, are refused.

    Examples
    --------
    Jobs of 2, 2, 3 and 4 nodes, of which leaves have 5 and 6, span 5 switches in place of 4:

    >>> problem = NodePlacement(
    ...     ["cores"], free=[[8]] * 11, chunks=[2, 2, 3, 4], demand=[[8]] * 4,
    ...     then=("switches",), switches=["a"] * 5 + ["b"] * 6)
    >>> problem.measures(LeafBestFit().place(problem))
    {'weight': 4, 'switches': 5, 'nodes': 11}
    """

    models = frozenset({"node-placement"})
    work_unit = "jobs times nodes"
    seconds_per_work = 1e-8

    def place(self, problem: NodePlacement) -> Placements:
        """Return the placements by the rule.

        Raises
        ------
        InputError
            If the problem is not one of whole nodes, see `pools`.
        """
        return placements(problem, [(pool, filled_by_priority(pool)) for pool in pools(problem)])

    def effort(self, problem: NodePlacement) -> int:
        """Return the number of jobs times the number of nodes."""
        return len(problem.chunks) * len(problem.free)
