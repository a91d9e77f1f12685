"""Search for the placement of greatest weight: relaxation, dives and integer programs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

import numpy as np

from optsched.models.node_placement import Placements
from optsched.solvers.node_placement._effort import Effort
from optsched.solvers.node_placement._job_choice import JobChoice
from optsched.solvers.node_placement._master import Contents, Floats, Prices
from optsched.solvers.node_placement._plan import Plan
from optsched.solvers.node_placement._relaxation import QUICK_SEARCH, Pricing, Relaxation
from optsched.solvers.node_placement._rounding import choose_columns, dive
from optsched.solvers.node_placement._types import Instance, Ints

SHARE = 0.15
"""Share of the columns with fractions that a dive fixes in each step."""

GAP = 1e-5
"""Relative gap at which the relaxation is exact enough to round it."""

RELAXING = 0.6
"""Share of the budget after which the relaxation is rounded as it is."""

INTEGER = 0.8
"""Share of the budget after which the integer program over all contents ends."""

FEW_KINDS = 200
"""Most kinds of nodes for which the relaxation is rounded several times."""

CHOOSING = 0.8
"""Share of the budget after which no further jobs are chosen."""

CHOICES_PER_DIVE = 3

SLACK = 0.002
"""Share of the room that is left when a choice is rounded before its rows are found."""

SECONDS_PER_PLAN = 5e-6
"""Nominal seconds of making a placement of contents, for each job and node."""


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
        """Round the relaxation by a dive; pause then."""
        if not self.proven and self._effort.spent() < 1 and self._all.solve():
            self._offer(dive(self._all, SHARE))
            yield

    def choose(self) -> Iterator[None]:
        """Choose the jobs of several chunks, and others; pause after each dive.

        The bound is the weight of the best choice that the rows so far allow. If the relaxation
        does not place all of its jobs, its prices are further rows. In between, choices that leave
        some slack are rounded, and the last one without.
        """
        every, classes = self._all, self._instance.classes
        if self.proven or (classes.chunks == 1).all():
            return
        first, none = every.prices, np.zeros_like(classes.jobs)
        choice = JobChoice(self._instance, self._effort)
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
                self._round_choice(jobs)
                yield
                break
            number += 1
            if number % CHOICES_PER_DIVE == 0:
                self._round_choice(choice.solve(SLACK, CHOOSING))
                yield
        every.limit_jobs(none, classes.jobs)
        every.start_at(first)
        every.solve()

    def _round_choice(self, jobs: Ints | None) -> None:
        """Round the relaxation with no other jobs than a choice."""
        if jobs is None:
            return
        self._all.limit_jobs(np.zeros_like(jobs), jobs)
        if self._all.solve():
            self._offer(dive(self._all, SHARE))

    def combine(self) -> Iterator[None]:
        """Search the integer program over all contents, for few kinds of nodes; pause then."""
        if self._few and not self.proven and self._effort.spent() < 1 and self._all.solve():
            self._offer(choose_columns(self._all, INTEGER) or Counter())
            yield

    def _offer(self, chosen: Counter[int]) -> None:
        """Place the contents, by number."""
        unused = [list(nodes) for nodes in self._instance.nodes_of]
        every = self._all.contents.all
        held = {
            unused[every[number].kind].pop(): every[number]
            for number, times in chosen.items()
            for _ in range(times)
        }
        problem = self._instance.problem
        self._effort.work += SECONDS_PER_PLAN * (len(problem.chunks) + len(problem.free))
        plan = Plan(self._instance)
        plan.place_contents(held)
        plan.fill_up()
        if plan.value > self.plan.value:
            self.plan = plan

    def placements(self) -> Placements:
        """Return the best placement, with jobs of weight 0 where they fit."""
        self.plan.fill(self._instance.weightless)
        return self.plan.placements()
