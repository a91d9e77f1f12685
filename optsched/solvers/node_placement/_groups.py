"""Fewest leaf switches for jobs of whole nodes, by column generation over groups.

The pairs of a job and a leaf that it spans are the edges of a graph. In a cheapest solution it is a
forest: along a cycle, nodes can be exchanged until an edge is gone. So the number of pairs is that
of the jobs and the leaves less that of the *groups*, the trees of the forest. Conversely, jobs and
leaves are a group, or several, if the nodes of the leaves suffice: fill one leaf after the other
with one job after the other. So only sizes matter: a group is a number of jobs of each size, and of
leaves of each kind, which is a block and a number of nodes.

A linear program chooses fractions of groups and of job sets, and the groups and the set of least
reduced cost become its next columns. With prices pi of a job of each size and mu of a leaf of each
kind, both from 0, and with n leaves of a kind, every solution costs at least

    price of the cheapest set - sum of n mu + sum of the reduced costs of its groups,

where the reduced cost of a group is its jobs and leaves - 1 - its pi + its mu. Prices are integers
in units of 1 / `SCALE`, so the bound is exact, whatever the linear program was solved to. It also
names all groups that a solution of at most some cost can have. If these are few enough, an integer
program over them finds such a solution, or proves that there is none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from optsched.arrays import Ints
from optsched.compiled import kernel
from optsched.models.program import Program, ProgramBuilder
from optsched.solvers.anytime import Progress, StoppedError
from optsched.solvers.node_placement._relaxation import DUAL, Master, best_vector
from optsched.solvers.node_placement._whole_nodes import Cells, Pool, PrioritySets
from optsched.solvers.result import Limit

SCALE = 1 << 32
"""Units of a price that make one switch."""

NONE = -(1 << 60)
"""Value of a total that no selection has."""


class Selections(NamedTuple):
    """Selections of items."""

    counts: Ints  # items of each kind, shape (selections, kinds)
    totals: Ints  # their sizes together
    values: Ints  # and values


@kernel
def knapsack(sizes: Ints, values: Ints, counts: Ints, most: int) -> Ints:
    """Return the most value of items of the first kinds, by number and total size, or `NONE`."""
    tables = np.full((len(sizes) + 1, most + 1), NONE)
    tables[0, 0] = 0
    for kind in range(len(sizes)):
        size, value = sizes[kind], values[kind]
        for total in range(most + 1):
            best = tables[kind, total]
            for count in range(1, min(counts[kind], total // size) + 1):
                before = tables[kind, total - count * size]
                if before > NONE:
                    best = max(best, before + count * value)
            tables[kind + 1, total] = best
    return tables


@kernel
def selection(tables: Ints, sizes: Ints, values: Ints, total: int) -> Ints:
    """Return how many items of each kind make up the best selection of a total."""
    counts = np.zeros(len(sizes), np.int64)
    for kind in range(len(sizes) - 1, -1, -1):
        value = tables[kind + 1, total]
        count = 0
        while (
            tables[kind, total - count * sizes[kind]] == NONE
            or tables[kind, total - count * sizes[kind]] + count * values[kind] != value
        ):
            count += 1
        counts[kind] = count
        total -= count * sizes[kind]
    return counts


@kernel
def selections(
    tables: Ints, sizes: Ints, values: Ints, counts: Ints, least: Ints, most: int
) -> Selections:
    """Return all selections of at least the value for their total; only `most` + 1 if more."""
    kinds = len(sizes)
    # what is not written takes no memory
    found = np.empty((most + 1, kinds), np.int64)
    totals, worth = np.empty(most + 1, np.int64), np.empty(most + 1, np.int64)
    number = 0
    chosen = np.zeros(kinds + 1, np.int64)
    left, value = np.zeros(kinds + 1, np.int64), np.zeros(kinds + 1, np.int64)
    for total in range(len(least)):
        if tables[kinds, total] == NONE or tables[kinds, total] < least[total]:
            continue
        # depth first from the last kind; left[k] and value[k] are before kind k - 1 is chosen
        kind = kinds
        left[kind], value[kind], chosen[kind - 1] = total, 0, -1
        while kind <= kinds:
            if kind == 0:
                for k in range(kinds):
                    found[number, k] = chosen[k]
                totals[number], worth[number] = total, value[0]
                number += 1
                if number > most:
                    return Selections(found[:number], totals[:number], worth[:number])
                kind = 1
                continue
            k = kind - 1
            chosen[k] += 1
            if chosen[k] > counts[k] or chosen[k] * sizes[k] > left[kind]:
                kind += 1
                continue
            rest = left[kind] - chosen[k] * sizes[k]
            got = value[kind] + chosen[k] * values[k]
            if tables[k, rest] > NONE and got + tables[k, rest] >= least[total]:
                left[k], value[k] = rest, got
                kind = k
                if k > 0:
                    chosen[k - 1] = -1
    return Selections(found[:number], totals[:number], worth[:number])


@kernel
def matches(
    jobs: Selections, leaves: Selections, capacities: Ints, most_cost: int, limit: int
) -> Ints:
    """Return the pairs of selected jobs and a smallest selection of leaves that holds them."""
    smallest = np.zeros(len(leaves.totals), np.int64)
    for place in range(len(smallest)):
        for kind in range(len(capacities)):
            if leaves.counts[place, kind] and (
                smallest[place] == 0 or capacities[kind] < smallest[place]
            ):
                smallest[place] = capacities[kind]
    largest = 0
    for kind in range(len(capacities)):
        largest = max(largest, capacities[kind])
    pairs = np.empty((limit + 1, 2), np.int64)
    number = first = 0
    for one in range(len(jobs.totals)):
        total = jobs.totals[one]
        while first < len(smallest) and leaves.totals[first] < total:
            first += 1
        place = first
        while place < len(smallest) and leaves.totals[place] < total + largest:
            needed = leaves.totals[place] - smallest[place] < total
            if needed and -jobs.values[one] - leaves.values[place] <= most_cost:
                pairs[number, 0], pairs[number, 1] = one, place
                number += 1
                if number > limit:
                    return pairs[:number]
            place += 1
    return pairs[:number]


def prepare() -> None:
    """Compile the kernels, or load them from the cache."""
    sizes, values, counts = np.array([1, 2]), np.array([-1, -2]), np.array([1, 1])
    tables = knapsack(sizes, values, counts, 3)
    selection(tables, sizes, values, 3)
    found = selections(tables, sizes, values, counts, np.full(4, NONE), 9)
    matches(found, found, sizes, 9, 9)


PER_ROUND = 40
"""Most groups of a block that a round of pricing adds."""

WORK_PER_ROUND = 20
"""Simplex iterations that take as long as a round of pricing."""

TOLERANCE = SCALE // 10**6
"""Reduced cost from which a group is not worth a column."""

MOST_LISTED = 50_000
"""Most groups of a block that are listed."""

MOST_SLACK = 1_000_000
"""Most units of weight among which sets are priced."""

IMPOSSIBLE = 1 << 60
"""A value that no selection reaches."""


class Group(NamedTuple):
    """Number of jobs of each size, and of leaves of each kind, that are a group."""

    jobs: tuple[int, ...]
    leaves: tuple[int, ...]

    @property
    def cost(self) -> int:
        """Pairs of a job and a leaf that it spans."""
        return sum(self.jobs) + sum(self.leaves) - 1


class Block(NamedTuple):
    """Knapsacks of jobs and of leaves in a block at some prices."""

    kinds: Ints  # of leaves in the block
    gains: Ints  # of a job of each size
    costs: Ints  # of a leaf of each kind, negated
    jobs: Ints  # the tables of `knapsack`
    leaves: Ints


class GroupSearch:
    """Search for the fewest pairs of jobs and leaves among the job sets of greatest weight."""

    cells: Cells  # best solution so far
    bound: int  # fewest pairs, as far as proven

    def __init__(self, pool: Pool, sets: PrioritySets, cells: Cells, seed: int) -> None:
        self.cells = cells
        self._pool, self._sets, self._seed = pool, sets, seed
        room = pool.room
        kinds, self._kind_of, self._leaves = np.unique(
            np.stack([pool.blocks, room]), axis=1, return_inverse=True, return_counts=True
        )
        self._kind_of = self._kind_of.ravel()
        self._block_of, self._capacities = kinds
        # each job of a set spans so many leaves alone
        alone = -(-sets.sizes // room.max())
        self.bound = int(sets.always @ alone)
        self._groups: dict[Group, None] = {}
        self._least = 0  # reduced cost of a group at these prices
        self._prices = np.zeros(len(sets.sizes) + len(self._leaves), dtype=np.int64)
        self._most_groups = int(min(sets.most.sum(), self._leaves.sum()))

    def run(self, progress: Progress) -> Iterator[None]:
        """Search until `bound` is the number of `cells`; pause after each improvement."""
        if self._is_proven():
            return
        if self._sets.slack > MOST_SLACK:
            raise StoppedError(Limit.MEMORY)
        self._generate(progress)
        yield
        target = None
        groups: Iterable[Group] = self._groups
        while not self._is_proven():
            program = self._program([*groups], target)
            x, limit = best_vector(program, progress, self._seed)
            if x is not None:
                self.cells = min(self.cells, self._cells(groups, x), key=len)
            if limit is not None:
                raise StoppedError(limit)
            if x is None and target is not None:
                self.bound += 1
            yield
            target = self.bound
            groups = self._listed(target)
            progress.work += WORK_PER_ROUND

    def _is_proven(self) -> bool:
        return self.bound >= len(self.cells)

    def _generate(self, progress: Progress) -> None:
        """Solve the linear program, and raise `bound`; keep the prices of the best bound."""
        sizes, leaves = len(self._sets.sizes), len(self._leaves)
        unlimited = np.full(leaves, math.inf)
        lower = [*np.zeros(sizes), *-unlimited, 1]
        upper = [*np.full(sizes, math.inf), *self._leaves, 1]
        master = Master(progress, lower, upper, DUAL)

        def add(gains: list[int], columns: list[list[int]]) -> None:
            rows, entries = np.array(columns), [np.flatnonzero(column) for column in columns]
            values = [row[used] for row, used in zip(rows, entries)]
            master.add(gains, [math.inf] * len(gains), entries, values)

        def add_groups(groups: list[Group]) -> None:
            self._groups.update(dict.fromkeys(groups))
            add([-one.cost for one in groups], [[*one.jobs, *one.leaves] for one in groups])

        def add_set(jobs: Ints) -> None:
            known.add(tuple(jobs.tolist()))
            add([0], [[*(-jobs).tolist(), *[0] * leaves, 1]])

        known: set[tuple[int, ...]] = set()
        add_groups([*self._groups_of_cells()])
        add_set(self._set_of_cells())
        best = -IMPOSSIBLE
        while not self._is_proven():
            progress.check()
            if not master.solve():
                progress.check()
                raise ArithmeticError("HiGHS: no optimum of the linear program over groups")
            progress.work += master.iterations + WORK_PER_ROUND
            duals = np.concatenate((-master.duals[:sizes], master.duals[sizes:-1]))
            prices = np.rint(np.maximum(duals * SCALE, 0)).astype(np.int64)
            groups, least = self._cheapest_groups(prices)
            cheapest, _ = self._sets.cheapest(prices[:sizes])
            bound = self._constant(prices) + least * self._most_groups
            if bound > best:
                best, self._prices, self._least = bound, prices, least
                self.bound = max(self.bound, -(-bound // SCALE))
            new = [group for group in groups if group not in self._groups]
            add_groups(new)
            if tuple(cheapest.tolist()) not in known:
                add_set(cheapest)
            elif not new:
                break

    def _constant(self, prices: Ints) -> int:
        """Return what every solution costs at least, without the reduced costs of its groups."""
        of_jobs, of_leaves = np.split(prices, [len(self._sets.sizes)])
        return self._sets.cheapest(of_jobs)[1] - int(of_leaves @ self._leaves)

    def _blocks(self, prices: Ints) -> Iterator[Block]:
        """Yield the knapsacks of each block."""
        sets = self._sets
        gains = prices[: len(sets.sizes)] - SCALE
        dear = prices[len(sets.sizes) :] + SCALE
        wanted = int(sets.most @ sets.sizes)
        for block in np.unique(self._block_of):
            kinds = np.flatnonzero(self._block_of == block)
            capacities, leaves = self._capacities[kinds], self._leaves[kinds]
            costs = -dear[kinds]
            most = int(min(capacities @ leaves, wanted + capacities.max() - 1))
            yield Block(
                kinds,
                gains,
                costs,
                knapsack(sets.sizes, gains, sets.most, most),
                knapsack(capacities, costs, leaves, most),
            )

    def _cheapest_groups(self, prices: Ints) -> tuple[list[Group], int]:
        """Return groups of negative reduced cost, of different total sizes, and the least cost."""
        groups: list[Group] = []
        least = 0
        for block in self._blocks(prices):
            jobs, leaves = block.jobs[-1], block.leaves[-1]
            enough = np.maximum.accumulate(leaves[::-1])[::-1]
            reduced = np.where(jobs > NONE, -enough - jobs - SCALE, 0)
            reduced[0] = 0  # no jobs
            least = min(least, int(reduced.min()))
            for total in np.argsort(reduced, kind="stable")[:PER_ROUND].tolist():
                if reduced[total] >= -TOLERANCE:
                    break
                chosen = selection(block.jobs, self._sets.sizes, block.gains, total)
                held = total + int(leaves[total:].argmax())
                capacities = self._capacities[block.kinds]
                of_block = selection(block.leaves, capacities, block.costs, held)
                groups.append(self._group(chosen, block.kinds, of_block))
        return groups, least

    def _listed(self, cost: int) -> list[Group]:
        """Return all groups that a solution of at most a cost can have; stop if too many."""
        # all groups but one reduce the cost as much as they can
        rest = self._least * (self._most_groups - 1)
        reduced = cost * SCALE - self._constant(self._prices) - rest
        found: list[Group] = []
        for block in self._blocks(self._prices):
            capacities, leaves = self._capacities[block.kinds], self._leaves[block.kinds]
            window = int(capacities.max())  # leaves of no use are left out: totals differ by less
            least = -reduced - SCALE
            totals = range(block.jobs.shape[1])
            with_jobs = [block.leaves[-1, d : d + window].max() for d in totals]
            with_leaves = [block.jobs[-1, max(0, d - window + 1) : d + 1].max() for d in totals]
            jobs = selections(
                block.jobs,
                self._sets.sizes,
                block.gains,
                self._sets.most,
                _least_values(least, with_jobs),
                MOST_LISTED,
            )
            held = selections(
                block.leaves,
                capacities,
                block.costs,
                leaves,
                _least_values(least, with_leaves),
                MOST_LISTED,
            )
            pairs = matches(jobs, held, capacities, reduced + SCALE, MOST_LISTED)
            if max(len(jobs.totals), len(held.totals), len(pairs)) > MOST_LISTED:
                raise StoppedError(Limit.MEMORY)
            found += [
                self._group(jobs.counts[one], block.kinds, held.counts[other])
                for one, other in pairs.tolist()
            ]
        return found

    def _group(self, jobs: Ints, kinds: Ints, leaves: Ints) -> Group:
        of_kinds = np.zeros(len(self._leaves), dtype=np.int64)
        of_kinds[kinds] = leaves
        return Group(tuple(jobs.tolist()), tuple(of_kinds.tolist()))

    def _program(self, groups: list[Group], cost: int | None) -> Program:
        """Return the integer program over some groups, for a given cost or for the least."""
        sets = self._sets
        jobs = np.array([group.jobs for group in groups], dtype=np.int64)
        jobs = jobs.reshape(-1, len(sets.sizes)).T
        leaves = np.array([group.leaves for group in groups], dtype=np.int64)
        leaves = leaves.reshape(-1, len(self._leaves)).T
        costs = np.array([group.cost for group in groups], dtype=np.int64)
        builder = ProgramBuilder("min")
        x = builder.variables("x_{}", len(groups), objective=costs, upper=self._most_groups)
        out = [one.jobs for one in sets.optional]
        u = builder.variables("u_{}", len(out), upper=np.array(out, dtype=np.int64))
        kinds = np.array([one.kind for one in sets.optional], dtype=np.int64)
        for kind, most in enumerate(sets.most.tolist()):
            here, left_out = np.flatnonzero(jobs[kind]), np.flatnonzero(kinds == kind)
            terms = (jobs[kind, here], x[here]), (np.ones_like(left_out), u[left_out])
            builder.row(f"jobs_{kind}", *terms, at_least=most)
        for kind, most in enumerate(self._leaves.tolist()):
            here = np.flatnonzero(leaves[kind])
            builder.row(f"leaves_{kind}", (leaves[kind, here], x[here]), at_most=most)
        weights = np.array([one.weight for one in sets.optional], dtype=np.int64)
        builder.row("weight", (weights, u), at_most=sets.slack)
        if cost is not None:
            builder.row("cost", (costs, x), equal=cost)
        return builder.build()

    def _cells(self, groups: Iterable[Group], x: Ints) -> Cells:
        """Return the cells of chosen groups: leaf after leaf is filled with job after job."""
        pool, sets = self._pool, self._sets
        left_out = np.zeros_like(sets.most)
        chosen = x[: len(x) - len(sets.optional)]
        for (kind, _, _), number in zip(sets.optional, x[len(chosen) :].tolist()):
            left_out[kind] += number
        jobs_of = []
        for size, most in zip(sets.sizes.tolist(), (sets.most - left_out).tolist()):
            alike = np.flatnonzero(pool.sizes == size)
            heaviest_first = alike[np.argsort(-pool.weights[alike], kind="stable")]
            jobs_of.append(heaviest_first[:most].tolist())
        leaves_of = [np.flatnonzero(self._kind_of == k).tolist() for k in range(len(self._leaves))]
        room = pool.room
        cells: Cells = {}
        for group, number in zip(groups, chosen.tolist()):
            for _ in range(number):
                jobs = [mine.pop() for mine, n in zip(jobs_of, group.jobs) for _ in mine[:n]]
                leaves = [mine.pop() for mine, n in zip(leaves_of, group.leaves) for _ in range(n)]
                for job in jobs:
                    left = int(pool.sizes[job])
                    while left:
                        leaf = leaves[-1]
                        taken = min(left, int(room[leaf]))
                        cells[job, leaf] = taken
                        left -= taken
                        room[leaf] -= taken
                        if not room[leaf]:
                            leaves.pop()
        return cells

    def _set_of_cells(self) -> Ints:
        """Return the number of jobs of each size in the solution."""
        sizes = self._pool.sizes[sorted({job for job, _ in self.cells})]
        return np.array([np.count_nonzero(sizes == size) for size in self._sets.sizes])

    def _groups_of_cells(self) -> Iterator[Group]:
        """Yield the groups of the solution."""
        leaves_of: dict[int, list[int]] = {}
        jobs_on: dict[int, list[int]] = {}
        for job, leaf in self.cells:
            leaves_of.setdefault(job, []).append(leaf)
            jobs_on.setdefault(leaf, []).append(job)
        size_of = {size: kind for kind, size in enumerate(self._sets.sizes.tolist())}
        while leaves_of:
            jobs, leaves = [0] * len(size_of), [0] * len(self._leaves)
            reached = [leaves_of.popitem()]
            while reached:
                job, its_leaves = reached.pop()
                jobs[size_of[int(self._pool.sizes[job])]] += 1
                for leaf in its_leaves:
                    if leaf in jobs_on:
                        leaves[self._kind_of[leaf]] += 1
                        others = jobs_on.pop(leaf)
                        reached += [(j, leaves_of.pop(j)) for j in others if j in leaves_of]
            yield Group(tuple(jobs), tuple(leaves))


def _least_values(least: int, others: list[int]) -> Ints:
    """Return the least value of a selection of each total beside the best one of the others."""
    values = [IMPOSSIBLE if other == NONE else least - int(other) for other in others]
    return np.array([IMPOSSIBLE, *values[1:]])  # no selection of nothing
