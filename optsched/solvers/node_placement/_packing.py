"""Search for the placement of greatest weight: relaxation, dives and integer programs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np

from optsched.models.node_placement import Placements
from optsched.solvers.node_placement._effort import Effort
from optsched.solvers.node_placement._master import Contents
from optsched.solvers.node_placement._plan import Plan
from optsched.solvers.node_placement._relaxation import Pricing, Relaxation
from optsched.solvers.node_placement._rounding import choose_columns, dive
from optsched.solvers.node_placement._types import Content, Instance

SHARES = (0.15, 0.02, 0.05)
"""Shares of the columns with fractions that dives fix in each step."""

GAP = 1e-5
"""Relative gap at which the relaxation is exact enough to round it."""

RELAXING = 0.6
"""Share of the budget after which the relaxation is rounded as it is."""

DIVING = 0.75
"""Share of the budget after which no further dive starts."""


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
        contents, pricing = Contents(number), Pricing(instance, effort)
        nothing = np.zeros(number, dtype=np.int64)
        self._all = Relaxation(instance, contents, pricing, effort, instance.nodes, nothing)

    @property
    def proven(self) -> bool:
        """Whether no placement has more weight."""
        return self.plan.value >= self.bound

    def relax(self) -> None:
        """Lower the bound to that of the relaxation, as far as the budget goes."""
        for content in self.plan.contents().values():
            self._all.add(content)
        self._all.tighten(GAP, RELAXING)
        bound = self._all.bound
        if not math.isinf(bound):
            whole = math.floor(bound + max(1e-6, 1e-9 * bound))
            self.bound = min(self.bound, whole // self._unit * self._unit)

    def round(self) -> Iterator[None]:
        """Round the relaxation in several ways; pause after each."""
        for share in SHARES:
            if self.proven or self._effort.spent() >= DIVING or not self._all.solve():
                break
            self._offer(dive(self._all, share))
            yield
        if not self.proven and self._effort.spent() < 1 and self._all.solve():
            self._offer(choose_columns(self._all, 1.0) or Counter())
            yield

    def _offer(self, chosen: Counter[int]) -> None:
        """Place the contents, by number, on nodes of their kinds."""
        unused = [iter(nodes) for nodes in self._instance.nodes_of]
        every = self._all.contents.all
        held = {
            next(unused[every[number].kind]): every[number]
            for number, times in chosen.items()
            for _ in range(times)
        }
        self._place(held)

    def _place(self, held: Mapping[int, Content]) -> None:
        plan = Plan(self._instance)
        plan.place_contents(held)
        plan.fill_up()
        if plan.value > self.plan.value:
            self.plan = plan

    def placements(self) -> Placements:
        """Return the best placement, with jobs of weight 0 where they fit."""
        self.plan.fill(self._instance.weightless)
        return self.plan.placements()
