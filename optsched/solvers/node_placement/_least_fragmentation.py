"""Search for the placement of least fragmentation among those of some weight."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from optsched.models.node_placement import Placements
from optsched.solvers.node_placement._effort import Effort
from optsched.solvers.node_placement._fragmentation_relaxation import Relaxation
from optsched.solvers.node_placement._plan import Plan
from optsched.solvers.node_placement._spots import Column, Nodes, Pricing
from optsched.solvers.node_placement._types import Instance, Ints

RELAXING = 0.4
"""Most of the budget left that the relaxation may take."""

ROUNDING = 0.25
"""Most of the budget left that the nodes may take for which it does not decide."""

WHOLE = 1e-6
"""Distance from an integer that counts as one."""

FEW_SPOTS = 200
"""Most spots for which the integer program over all contents is searched."""

INTEGER = 0.5
"""Most of the budget left that this program may take."""

EMPTIED, FEWEST_EMPTIED = 60, 10
"""Nodes that are emptied and packed anew together, at first and at least."""

GROWTH = 1.2
"""Growth of that number where packing is in vain; it shrinks where that takes too long."""

ROUNDS = 3
"""Rounds of pricing for them."""

KNOWN = 20
"""Contents known before that are considered again for each node, the best by the duals."""

SHARE = 0.1
"""Most of the budget left that the integer program of some nodes may take."""

LEAST_LOSS = 0.1
"""Chance that a node without loss is emptied, relative to one of the mean loss."""


class FragmentationSearch:
    """Search for less fragmentation at no less weight.

    Jobs have no nodes to themselves and span what they like.

    Parameters
    ----------
    instance : Instance
        Types, classes and kinds.
    effort : Effort
        Limits of the search.
    start : Placements
        First placement.

    Attributes
    ----------
    plan : Plan
        Best placement so far.
    weight : int
        Weight that jobs have at least: that of the first placement.
    bound : int
        Lower bound of the fragmentation of placements of that weight, without jobs of weight 0.
    """

    def __init__(self, instance: Instance, effort: Effort, start: Placements) -> None:
        self._instance, self._effort = instance, effort
        self._nodes = nodes = Nodes(instance)
        self._pricing = Pricing(nodes, effort)
        self.bound = 0
        taken = Plan(instance)
        taken.take(start)
        held = taken.contents()
        self._held = {
            node: nodes.column(spot, held[node]) if node in held else nodes.empty(spot)
            for node, spot in nodes.spot_of.items()
        }
        self.weight = taken.value
        placed = [[job for job in jobs if start.nodes[job]] for jobs in instance.jobs_of]
        self._jobs = np.array(list(map(len, placed)), dtype=np.int64)
        self.plan = self._plan(self._held, self._jobs)
        self._known: dict[int, list[Column]] = defaultdict(list)  # of each spot, the best first
        self._all = self._relaxation(nodes.number, np.zeros_like(instance.types.most))
        # what nodes leave unusable on which no chunk fits
        self._rest = self._measure(self.plan) - round(nodes.scale * _cost(self._held))

    def run(self, seed: int) -> Iterator[None]:
        """Search until the fragmentation is proven, or to the end of the budget; pause at times."""
        if self.plan.value < self.weight:
            return  # contents do not tell which chunks of one job may share no node
        self._relax()
        yield
        if not self._all.solved:
            return
        if not self._is_over():
            self._round(self._until(ROUNDING))
            yield
        nodes = np.array(list(self._held))
        if len(self._nodes.number) <= FEW_SPOTS and not self._is_over():
            self._pack_anew(nodes.tolist(), self._until(INTEGER))
            yield
        rng = np.random.default_rng(seed)
        number: float = EMPTIED
        while number < len(nodes) and not self._is_over():
            loss = np.maximum(0.0, [self._all.loss(self._held[node]) for node in nodes.tolist()])
            loss += LEAST_LOSS * loss.mean() + 1e-9
            emptied = rng.choice(nodes, int(number), replace=False, p=loss / loss.sum())
            helps, optimal = self._pack_anew(sorted(emptied.tolist()), self._until(SHARE))
            if not helps:
                number = max(FEWEST_EMPTIED, number * (GROWTH if optimal else 1 / GROWTH))
            yield

    @property
    def proven(self) -> bool:
        """Whether no placement leaves less."""
        return self._rest + round(self._nodes.scale * _cost(self._held)) <= self.bound

    def _is_over(self) -> bool:
        return self.proven or self._effort.spent() >= 1

    def _until(self, share: float) -> float:
        """Return the share of the budget that is spent after a share of what is left."""
        spent = self._effort.spent()
        return spent + share * (1 - spent)

    def _relaxation(self, number: Ints, supply: Ints) -> Relaxation:
        """Return the relaxation for so many nodes of each spot."""
        return Relaxation(self._nodes, self._pricing, self._effort, number, supply, self.weight)

    def _relax(self) -> None:
        """Raise the bound to that of the relaxation, as far as the budget goes."""
        self._all.add(self._held.values())
        self._all.add(map(self._nodes.empty, range(len(self._nodes.number))))
        until = self._until(RELAXING)
        self._all.start_even(_cost(self._held))
        self._all.tighten(until)
        if not self._all.solved:
            return
        for column in sorted(self._all.columns, key=self._all.loss):
            self._known[column.spot].append(column)
        if math.isfinite(self._all.bound):
            bound = self._nodes.scale * self._all.bound
            least = math.ceil(bound - max(1e-6, 1e-9 * self._all.magnitude * self._nodes.scale))
            self.bound = max(self.bound, self._rest + least)

    def _round(self, until: float) -> None:
        """Take the integer part of the relaxation, and search for contents of the other nodes."""
        every, nodes = self._all, self._nodes
        if not every.solve():
            return
        number, supply = nodes.number.copy(), np.zeros_like(self._instance.types.most)
        fixed = []
        for place in np.flatnonzero(every.taken >= 1 - WHOLE).tolist():
            column, times = every.columns[place], int(every.taken[place] + WHOLE)
            fixed += [column] * times
            number[column.spot] -= times
            supply += times * column.content.counts
        taken = (every.columns[place] for place in np.flatnonzero(every.taken > WHOLE).tolist())
        some = self._with_known(number, supply, (one for one in taken if number[one.spot]))
        found = some.solve_integer(until)
        if found is not None:
            self._offer(found[0], [*fixed, *found[1]], self._held)

    def _with_known(self, number: Ints, supply: Ints, columns: Iterable[Column]) -> Relaxation:
        """Return the relaxation for some nodes, with some columns, known ones and better ones."""
        some = self._relaxation(number, supply)
        some.add(columns)
        for spot in np.flatnonzero(number).tolist():
            some.add(self._known[spot][: KNOWN * int(number[spot])])
            some.add([self._nodes.empty(spot)])
        some.start_at(self._all.prices)
        some.tighten(1.0, ROUNDS)
        return some

    def _pack_anew(self, emptied: Sequence[int], until: float) -> tuple[bool, bool]:
        """Pack some nodes while the others keep what they hold.

        Return whether that helps, and whether the integer program was solved.
        """
        old = {node: self._held[node] for node in emptied}
        supply = np.zeros_like(self._instance.types.most)
        for node in self._held.keys() - old:
            supply += self._held[node].content.counts
        spots = [column.spot for column in old.values()]
        number = np.bincount(spots, minlength=len(self._nodes.number))
        some = self._with_known(number, supply, old.values())
        found = some.solve_integer(until, (self._jobs, old.values()))
        if found is None:
            return False, False
        jobs, chosen, optimal = found
        helps = self._offer(jobs, chosen, old)
        if helps:
            for column in some.columns:
                self._known[column.spot].append(column)
        return helps, optimal

    def _offer(self, jobs: Ints, chosen: Sequence[Column], emptied: dict[int, Column]) -> bool:
        """Replace the contents of nodes by others, if that leaves less unusable."""
        if sum(column.cost for column in chosen) >= _cost(emptied) - 1e-9:
            return False
        of_spot: dict[int, list[int]] = {}
        for node, column in emptied.items():
            of_spot.setdefault(column.spot, []).append(node)
        held = self._held | {of_spot[column.spot].pop(): column for column in chosen}
        plan = self._plan(held, jobs)
        if plan.value < self.weight:
            return False  # chunks of one job that may not share a node
        self._jobs, self._held, self.plan = jobs, held, plan
        return True

    def _plan(self, held: dict[int, Column], jobs: Ints) -> Plan:
        """Return the placement of so many jobs of each class in contents of nodes."""
        plan = Plan(self._instance)
        plan.place_contents({node: column.content for node, column in held.items()}, jobs)
        return plan

    def _measure(self, plan: Plan) -> int:
        return self._instance.problem.measures(plan.placements())["fragmentation"]


def _cost(held: dict[int, Column]) -> float:
    return sum(column.cost for column in held.values())
