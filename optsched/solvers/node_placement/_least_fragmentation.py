"""Search for the placement of least fragmentation among those of some weight."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from optsched.models.node_placement import Placements
from optsched.solvers.node_placement._effort import Effort
from optsched.solvers.node_placement._fragmentation_relaxation import Relaxation
from optsched.solvers.node_placement._plan import Plan
from optsched.solvers.node_placement._spots import Column, Nodes, Pricing
from optsched.solvers.node_placement._types import Instance, Ints

RELAXING = 0.4
"""Most of the budget left that the relaxation may take."""

INTEGER = 0.5
"""Most of the budget left that this program may take."""


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
        nothing = np.zeros_like(instance.types.most)
        self._all = Relaxation(nodes, self._pricing, effort, nodes.number, nothing, self.weight)
        # what nodes leave unusable on which no chunk fits
        self._rest = self._measure(self.plan) - round(nodes.scale * _cost(self._held))

    def run(self) -> Iterator[None]:
        """Search for less; pause after the relaxation, and after the integer program."""
        if self.plan.value < self.weight:
            return  # contents do not tell which chunks of one job may share no node
        self._relax()
        yield
        if self._all.solved and not self.proven and self._effort.spent() < 1:
            found = self._all.solve_integer(self._until(INTEGER), (self._jobs, self._held.values()))
            if found is not None:
                self._offer(*found[:2])
            yield

    @property
    def proven(self) -> bool:
        """Whether no placement leaves less."""
        return self._rest + round(self._nodes.scale * _cost(self._held)) <= self.bound

    def _until(self, share: float) -> float:
        """Return the share of the budget that is spent after a share of what is left."""
        spent = self._effort.spent()
        return spent + share * (1 - spent)

    def _relax(self) -> None:
        """Raise the bound to that of the relaxation, as far as the budget goes."""
        self._all.add(self._held.values())
        self._all.add(map(self._nodes.empty, range(len(self._nodes.number))))
        until = self._until(RELAXING)
        self._all.start_even(_cost(self._held))
        self._all.tighten(until)
        if not self._all.solved:
            return
        if math.isfinite(self._all.bound):
            bound = self._nodes.scale * self._all.bound
            least = math.ceil(bound - max(1e-6, 1e-9 * self._all.magnitude * self._nodes.scale))
            self.bound = max(self.bound, self._rest + least)

    def _offer(self, jobs: Ints, chosen: Sequence[Column]) -> None:
        """Replace the contents of nodes by others, if that leaves less unusable."""
        if sum(column.cost for column in chosen) >= _cost(self._held) - 1e-9:
            return
        of_spot = [list(nodes) for nodes in self._nodes.of_spot]
        held = {of_spot[column.spot].pop(): column for column in chosen}
        plan = self._plan(held, jobs)
        if plan.value >= self.weight:  # otherwise chunks of one job that may not share a node
            self._jobs, self._held, self.plan = jobs, held, plan

    def _plan(self, held: dict[int, Column], jobs: Ints) -> Plan:
        """Return the placement of so many jobs of each class in contents of nodes."""
        plan = Plan(self._instance)
        plan.place_contents({node: column.content for node, column in held.items()}, jobs)
        return plan

    def _measure(self, plan: Plan) -> int:
        return self._instance.problem.measures(plan.placements())["fragmentation"]


def _cost(held: dict[int, Column]) -> float:
    return sum(column.cost for column in held.values())
