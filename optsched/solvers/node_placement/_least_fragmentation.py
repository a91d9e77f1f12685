"""Search for the placement of least fragmentation among those of some weight."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from optsched.models.node_placement import NodePlacement, Placements
from optsched.models.node_placement.fields import WHOLE
from optsched.solvers.node_placement._contents import losses_of, scale_of, with_cost
from optsched.solvers.node_placement._effort import Effort
from optsched.solvers.node_placement._plan import Plan
from optsched.solvers.node_placement._relaxation import Prices, Relaxation
from optsched.solvers.node_placement._types import Content, Instance, Ints

RELAXING = 0.4
"""Most of the budget left that the relaxation may take."""

INTEGER = 0.5
"""Most of the budget left that the integer program over all contents may take."""

GAP = 1e-6
"""Relative gap at which the bound is near enough."""


class FragmentationSearch:
    """Search for less fragmentation at no less weight.

    Jobs have no nodes to themselves and span what they like.

    Attributes
    ----------
    plan : Plan
        Best placement so far.
    weight : int
        Weight that jobs have at least: that of the first placement.
    bound : int
        Lower bound of the fragmentation of placements of that weight, without jobs of weight 0.
    """

    def __init__(self, problem: NodePlacement, effort: Effort, start: Placements) -> None:
        self._effort = effort
        self._instance = instance = Instance(problem, exact=True)
        self._losses = losses_of(instance)
        self._scale = scale_of(instance)
        self.bound = 0
        taken = Plan(instance)
        taken.take(start)
        held, nothing = taken.contents(), np.zeros_like(instance.types.most)
        self._held = {
            node: with_cost(instance, self._losses, held.get(node, Content(kind, nothing, ())))
            for kind, nodes in enumerate(instance.nodes_of)
            for node in nodes
        }
        self.weight = taken.value
        placed = [[job for job in jobs if start.nodes[job]] for jobs in instance.jobs_of]
        self._jobs = np.array(list(map(len, placed)), dtype=np.int64)
        self.plan = self._plan(self._held, self._jobs)
        # what nodes leave unusable on which no chunk fits
        measured = problem.measures(self.plan.placements())["fragmentation"]
        self._rest = measured - round(self._scale * _cost(self._held))

    def run(self) -> Iterator[None]:
        """Search for less; pause after the relaxation, and after the integer program."""
        if self.plan.value < self.weight or self.proven:
            return  # contents do not tell which chunks of one job may share no node
        relaxation = Relaxation(self._instance, self._effort, self._losses, self.weight)
        self._relax(relaxation)
        yield
        if not self.proven and self._effort.spent() < 1 and relaxation.solve():
            until = self._effort.after(INTEGER)
            found = relaxation.solve_integer(until, self._jobs, self._held.values())
            if found is not None:
                self._offer(found[0], relaxation.spread(found[1]))
            yield

    @property
    def proven(self) -> bool:
        """Whether no placement leaves less."""
        return self._rest + round(self._scale * _cost(self._held)) <= self.bound

    def _relax(self, relaxation: Relaxation) -> None:
        """Raise the bound to that of the relaxation, as far as the budget goes."""
        instance, until = self._instance, self._effort.after(RELAXING)
        nothing = np.zeros_like(instance.types.most)
        empty = (Content(kind, nothing, ()) for kind in range(len(instance.nodes)))
        for content in (*self._held.values(), *empty):
            relaxation.add(with_cost(instance, self._losses, content))
        # at first, all devices that chunks take have one price
        free = float(instance.nodes @ self._losses.free.sum(axis=1)) / WHOLE
        devices = instance.types.devices * instance.types.share / instance.units
        price = -_cost(self._held) / max(free, 1.0)
        no_licences = np.zeros(len(instance.problem.licences))
        relaxation.start_at(Prices(price * devices, 0.0, no_licences))
        relaxation.tighten(GAP, until)
        bound = -self._scale * relaxation.bound
        error = max(1e-6, 1e-9 * relaxation.magnitude * self._scale)
        self.bound = max(self.bound, self._rest + math.ceil(bound - error))

    def _offer(self, jobs: Ints, held: dict[int, Content]) -> None:
        """Replace the contents of nodes by others, if that leaves less unusable."""
        if _cost(held) >= _cost(self._held) - 1e-9:
            return
        plan = self._plan(held, jobs)
        if plan.value >= self.weight:  # otherwise chunks of one job that may not share a node
            self._jobs, self._held, self.plan = jobs, held, plan

    def _plan(self, held: dict[int, Content], jobs: Ints) -> Plan:
        """Return the placement of so many jobs of each class in contents of nodes."""
        plan = Plan(self._instance)
        plan.place_contents(held, jobs)
        return plan


def _cost(held: dict[int, Content]) -> float:
    return sum(content.cost for content in held.values())
