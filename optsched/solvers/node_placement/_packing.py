"""Search for the placement of greatest weight: relaxation, dives and integer programs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from optsched.models.node_placement import Placements
from optsched.solvers.node_placement._effort import Effort
from optsched.solvers.node_placement._job_choice import JobChoice
from optsched.solvers.node_placement._master import Contents, Floats, Prices
from optsched.solvers.node_placement._plan import Plan
from optsched.solvers.node_placement._relaxation import QUICK_SEARCH, Pricing, Relaxation
from optsched.solvers.node_placement._rounding import choose_columns, dive
from optsched.solvers.node_placement._types import Content, Instance, Ints

SHARES = (0.15, 0.02, 0.05)
"""Shares of the columns with fractions that dives fix in each step."""

GAP = 1e-5
"""Relative gap at which the relaxation is exact enough to round it."""

RELAXING = 0.6
"""Share of the budget after which the relaxation is rounded as it is."""

DIVING = 0.75
"""Share of the budget after which no further dive starts."""

INTEGER = 0.8
"""Share of the budget after which the integer program over all contents ends."""

FEW_KINDS = 200
"""Most kinds of nodes for which the relaxation is rounded several times."""

CHOOSING = 0.8
"""Share of the budget after which no further jobs are chosen."""

CHOICES_PER_DIVE = 3

SLACK = 0.002
SLACKS = (0.0, 0.0005, 0.001, 0.002, 0.003, 0.005, 0.01)
"""Shares of the room that are left when a choice is rounded: before its rows are found, and then.
"""

SECONDS_PER_PLAN = 5e-6
"""Nominal seconds of making a placement of contents, for each job and node."""

EMPTIED = 150
"""Nodes that are emptied and packed anew together."""

FEWEST_EMPTIED = 40

GAP_OF_SOME = 2e-6

SHARE_OF_PROGRAM = 0.1
"""Most of the budget left that the integer program of some nodes may take."""

PATIENCE = 20
"""Attempts in vain after which twice as many nodes are emptied."""

LEAST_LOSS = 0.1
"""Chance that a node without loss is emptied, relative to one of the mean loss."""


class Packing:
    """Search for the placement of greatest weight, where switches and blocks do not matter.

    Parameters
    ----------
    instance : Instance
        Types, classes and kinds.
    effort : Effort
        Limits of the search.
    start : Plan
        A first placement.

    Attributes
    ----------
    plan : Plan
        Best placement so far.
    bound : int
        Upper bound of the weight.
    """

    def __init__(self, instance: Instance, effort: Effort, start: Plan) -> None:
        self._instance, self._effort = instance, effort
        self.plan = start
        classes = instance.classes
        self._unit = math.gcd(*classes.weights.tolist())  # of any sum of weights
        self.bound = int(classes.weights @ classes.jobs)
        number = len(instance.types.most)
        self._pricing = pricing = Pricing(instance, effort)
        contents = Contents(number)
        nothing = np.zeros(number, dtype=np.int64)
        self._all = Relaxation(instance, contents, pricing, effort, instance.nodes, nothing)
        self._few = len(instance.nodes) <= FEW_KINDS
        self._shares = SHARES if self._few else SHARES[:1]

    @property
    def proven(self) -> bool:
        """Whether no placement has more weight."""
        return self.plan.value >= self.bound

    @property
    def prices(self) -> Prices:
        """Prices of the relaxation that bound the weight."""
        return self._all.prices

    @property
    def rows(self) -> list[tuple[Prices, float]]:
        """Prices, and an upper bound of what all chunks and licences are worth at these."""
        return self._all.rows

    def worth_of_nodes(self, prices: Floats) -> Floats:
        """Return an upper bound of what the chunks on a node of each kind are worth."""
        every = np.arange(len(self._instance.nodes))
        self._pricing.price(prices, every, self._instance.types.most, 0.0, QUICK_SEARCH)
        return self._pricing.bounds.copy()

    def relax(self) -> None:
        """Lower the bound to that of the relaxation, as far as the budget goes."""
        for content in self.plan.contents().values():
            self._all.add(content)
        self._all.tighten(GAP, RELAXING)
        self.bound = self._whole(self._all.bound)

    def _whole(self, bound: float) -> int:
        """Return the largest weight that a bound allows, at most the bound so far."""
        if math.isinf(bound):
            return self.bound
        whole = math.floor(bound + max(1e-6, 1e-9 * abs(bound)))
        return min(self.bound, whole // self._unit * self._unit)

    def round(self) -> Iterator[None]:
        """Round the relaxation by dives; pause after each."""
        nodes = np.flatnonzero(self._instance.kind_of >= 0).tolist()
        for share in self._shares:
            if self.proven or self._effort.spent() >= DIVING or not self._all.solve():
                break
            self._offer(dive(self._all, share), {}, nodes)
            yield

    def choose(self) -> Iterator[None]:
        """Choose the jobs of several chunks, and others; pause after each dive.

        The bound is the weight of the best choice that the rows so far allow. If the relaxation
        does not place all of its jobs, its prices are further rows. In between and then, choices
        that leave some slack are rounded.
        """
        every, classes = self._all, self._instance.classes
        if (classes.chunks == 1).all():
            return
        first, none = every.prices, np.zeros_like(classes.jobs)
        choice = JobChoice(self._instance, self._effort)
        rounded: Counter[bytes] = Counter()
        number = 0
        while True:
            jobs = choice.solve(0.0, CHOOSING)
            self.bound = self._whole(choice.bound)
            if jobs is None or self.proven or self._effort.spent() >= CHOOSING:
                break
            if choice.add(every.rows, jobs):
                continue
            every.limit_jobs(none, jobs)
            every.start_at(first)
            every.tighten(GAP, CHOOSING)
            if not choice.add(every.rows, jobs):
                break
            number += 1
            if number % CHOICES_PER_DIVE == 0:
                self._round_choice(choice.solve(SLACK, CHOOSING), rounded)
                yield
        for slack in SLACKS:
            if self.proven or self._effort.spent() >= CHOOSING:
                break
            self._round_choice(choice.solve(slack, CHOOSING), rounded)
            yield
        every.limit_jobs(none, classes.jobs)
        every.start_at(first)
        every.solve()

    def _round_choice(self, jobs: Ints | None, rounded: Counter[bytes]) -> None:
        """Round the relaxation with no other jobs than a choice, another way each time."""
        if jobs is None:
            return
        self._all.limit_jobs(np.zeros_like(jobs), jobs)
        if self._all.solve():
            nodes = np.flatnonzero(self._instance.kind_of >= 0).tolist()
            share = SHARES[rounded[jobs.tobytes()] % len(SHARES)]
            self._offer(dive(self._all, share), {}, nodes)
        rounded[jobs.tobytes()] += 1

    def combine(self) -> Iterator[None]:
        """Search the integer program over all contents, for few kinds of nodes; pause then."""
        if self._few and not self.proven and self._effort.spent() < 1 and self._all.solve():
            nodes = np.flatnonzero(self._instance.kind_of >= 0).tolist()
            self._offer(choose_columns(self._all, INTEGER) or Counter(), {}, nodes)
            yield

    def improve(self, seed: int) -> Iterator[None]:
        """Empty some nodes and pack them anew, time and again; pause after each.

        The more a content costs against the prices of the relaxation, the likelier it is taken off
        its node.
        """
        rng = np.random.default_rng(seed)
        nodes = np.flatnonzero(self._instance.kind_of >= 0)
        number, vain = min(EMPTIED, len(nodes) // 2), 0
        while (
            FEWEST_EMPTIED <= number < len(nodes) and not self.proven and self._effort.spent() < 1
        ):
            before = self.plan.value
            held = self.plan.contents()
            loss = np.maximum(0.0, [self._loss(node, held.get(node)) for node in nodes.tolist()])
            loss += LEAST_LOSS * loss.mean() + 1e-9
            emptied = rng.choice(nodes, number, replace=False, p=loss / loss.sum())
            self._pack_anew(held, sorted(emptied.tolist()), float(rng.choice(SHARES)))
            vain = 0 if self.plan.value > before else vain + 1
            if vain == PATIENCE:
                number, vain = 2 * number, 0
            yield

    def _loss(self, node: int, content: Content | None) -> float:
        """Return what the content of a node is worth below the best one, by the relaxation."""
        master = self._all.master
        worth = 0.0 if content is None else float(content.counts @ master.prices.chunks)
        return float(master.nodes_worth[self._instance.kind_of[node]]) - worth

    def _pack_anew(self, held: dict[int, Content], emptied: Sequence[int], share: float) -> None:
        """Pack some nodes while the others keep what they hold."""
        instance, every = self._instance, self._all
        kinds = instance.kind_of[emptied]
        nodes = np.bincount(kinds, minlength=len(instance.nodes))
        old = [held.pop(node) for node in emptied if node in held]
        supply = np.zeros(len(instance.types.most), dtype=np.int64)
        for content in held.values():
            supply += content.counts
        some = Relaxation(instance, every.contents, self._pricing, self._effort, nodes, supply)
        for content in old:
            some.add(content)
        some.start_at(every.prices)
        some.tighten(GAP_OF_SOME, 1.0)
        if some.solve():
            self._offer(dive(some, share), held, emptied)
        if some.solve():
            spent = self._effort.spent()
            until = spent + SHARE_OF_PROGRAM * (1 - spent)
            self._offer(choose_columns(some, until) or Counter(), held, emptied)

    def _offer(
        self, chosen: Counter[int], held: Mapping[int, Content], nodes: Iterable[int]
    ) -> None:
        """Place the contents, by number, on some nodes, beside what other nodes hold."""
        unused: dict[int, list[int]] = {}
        for node in nodes:
            unused.setdefault(int(self._instance.kind_of[node]), []).append(node)
        every = self._all.contents.all
        filled = {
            unused[every[number].kind].pop(): every[number]
            for number, times in chosen.items()
            for _ in range(times)
        }
        problem = self._instance.problem
        self._effort.work += SECONDS_PER_PLAN * (len(problem.chunks) + len(problem.free))
        plan = Plan(self._instance)
        plan.place_contents({**held, **filled})
        plan.fill_up()
        if plan.value > self.plan.value:
            self.plan = plan

    def placements(self) -> Placements:
        """Return the best placement, with jobs of weight 0 where they fit."""
        self.plan.fill(self._instance.weightless)
        return self.plan.placements()
