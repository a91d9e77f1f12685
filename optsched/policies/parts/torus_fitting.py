"""Where jobs fit on a torus: in bins, as the paper has it, or in any free box."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched.boxes.box import Box, Triple
from optsched.boxes.free_boxes import anchors, disjoint_bins, first_fit, holds
from optsched.boxes.layered import largest_layered_box, layered_bins
from optsched.boxes.shapes import shapes
from optsched.machines.torus import Torus
from optsched.models.box_placement import BoxPlacement
from optsched.models.partition_mkp import PartitionMKP
from optsched.models.problem import Problem
from optsched.models.torus_fields import routers_for
from optsched.simulator.system import System

Free = NDArray[np.bool_]


def fields_of(torus: Torus, kept: Sequence[Box] = ()) -> dict[str, Any]:
    """Return a torus as the models have it; `kept` are routers that are not to be used."""
    return {
        "torus": torus.shape,
        "wrap": torus.grid.wrap,
        "nodes_per_router": torus.nodes_per_router,
        "holes": (*torus.holes, *kept),
        "links": torus.links,
    }


class Fitting(ABC):
    """Says whether jobs fit into what is free, and poses the problem of placing them.

    Parameters
    ----------
    torus : Torus
        The machine.
    """

    def __init__(self, torus: Torus) -> None:
        self.torus = torus

    def routers(self, nodes: int) -> int:
        """Return how many routers a job of so many nodes takes."""
        return routers_for(nodes, self.torus.nodes_per_router)

    @abstractmethod
    def shapes(self, routers: int) -> tuple[Triple, ...]:
        """Return the shapes that a job of so many routers may have, the best first."""

    @abstractmethod
    def fits(self, free: Free, routers: int) -> bool:
        """Return whether a box that is free holds a job of so many routers."""

    def reserved(self, free: Free, free_then: Free, routers: int) -> Box:
        """Return the box to keep for a job of so many routers that fits at a later time.

        It is one of the best shape that is free then, where the fewest routers are free now.

        Parameters
        ----------
        free, free_then : bool array, shape of the torus
            Which routers are free now, and at that time.
        routers : int
            Routers that the job takes.
        """
        for shape in self.shapes(routers):
            at = anchors(free_then, self.torus.grid, shape)
            if len(at):
                free_now = _sums(free, shape)[tuple(at.T)]
                x, y, z = at[int(free_now.argmin())].tolist()
                return Box(x, y, z, *shape)
        raise AssertionError("a job fits, but has no box")

    @abstractmethod
    def problem(
        self, system: System, jobs: Sequence[int], profits: Sequence[int], kept: Sequence[Box]
    ) -> Problem[Any] | None:
        """Return the problem of placing waiting jobs now; none if none of them fits.

        Parameters
        ----------
        system : System
            The state.
        jobs : sequence of int
            Waiting jobs, in the order of the queue.
        profits : sequence of int
            What placing each is worth.
        kept : sequence of Box
            Free routers that they may not have.
        """

    @abstractmethod
    def boxes(self, problem: Any, solution: Any) -> Sequence[Box | None]:
        """Return the box of each job in a solution; none for those that are not placed."""


class InBins(Fitting):
    """Free space as disjoint bins: the largest free box again and again.

    Parameters
    ----------
    torus : Torus
        The machine.
    layered : bool
        Whether bins are found by the paper's layers, or exactly.
    """

    def __init__(self, torus: Torus, layered: bool) -> None:
        super().__init__(torus)
        self.layered = layered

    def shapes(self, routers: int) -> tuple[Triple, ...]:
        """Return all shapes."""
        return shapes(routers, self.torus.grid, self.torus.links)

    def fits(self, free: Free, routers: int) -> bool:
        """Return whether the largest bin has as many routers."""
        if not self.layered:
            return holds(free, self.torus.grid, routers)
        largest = largest_layered_box(free, self.torus.grid)
        return largest is not None and largest.volume >= routers

    def reserved(self, free: Free, free_then: Free, routers: int) -> Box:
        """Return the box to keep; by layers the whole partition, since a part may not be found."""
        if not self.layered:
            return super().reserved(free, free_then, routers)
        partition = largest_layered_box(free_then, self.torus.grid)
        assert partition is not None
        return partition

    def problem(
        self, system: System, jobs: Sequence[int], profits: Sequence[int], kept: Sequence[Box]
    ) -> PartitionMKP | None:
        """Return the multiple knapsack of the jobs that the largest bin holds."""
        torus = self.torus
        free = torus.boxes.free
        if kept:
            free = free & torus.grid.free_of(kept)
        least = min(self.routers(system.processors[job]) for job in jobs)
        find = layered_bins if self.layered else disjoint_bins
        bins = find(free, torus.grid, least)
        if not bins:
            return None
        return PartitionMKP(
            bins=bins,
            waiting=[system.processors[job] for job in jobs],
            profits=profits,
            **fields_of(torus),
            waiting_jobs=[system.job_id[job] for job in jobs],
        )

    def boxes(self, problem: PartitionMKP, solution: Any) -> Sequence[Box | None]:
        """Return the box of each job inside its bin."""
        return problem.boxes(solution)


class InBoxes(Fitting):
    """Any free box of the best shapes.

    Parameters
    ----------
    torus : Torus
        The machine.
    shapes : int
        How many of the best shapes a job may have.
    """

    def __init__(self, torus: Torus, shapes: int) -> None:
        super().__init__(torus)
        self.best = shapes

    def shapes(self, routers: int) -> tuple[Triple, ...]:
        """Return the best shapes."""
        return shapes(routers, self.torus.grid, self.torus.links)[: self.best]

    def fits(self, free: Free, routers: int) -> bool:
        """Return whether one of the best shapes is free somewhere."""
        return first_fit(free, self.torus.grid, self.shapes(routers)) is not None

    def problem(
        self, system: System, jobs: Sequence[int], profits: Sequence[int], kept: Sequence[Box]
    ) -> BoxPlacement | None:
        """Return the placement of the jobs into boxes that are free."""
        running = sorted(system.held)
        return BoxPlacement(
            running=[system.held[job] for job in running],
            waiting=[system.processors[job] for job in jobs],
            profits=profits,
            shapes=self.best,
            **fields_of(self.torus, kept),
            running_jobs=[system.job_id[job] for job in running],
            waiting_jobs=[system.job_id[job] for job in jobs],
        )

    def boxes(self, problem: BoxPlacement, solution: Any) -> Sequence[Box | None]:
        """Return the solution, which is boxes."""
        boxes: Sequence[Box | None] = solution
        return boxes


def _sums(free: Free, shape: Triple) -> NDArray[np.int64]:
    """Return the free routers in the box of a shape at each anchor, which may wrap around."""
    total = free.astype(np.int64)
    for axis, length in enumerate(shape):
        around = np.concatenate((total, total), axis=axis).cumsum(axis=axis)
        around = np.insert(around, 0, 0, axis=axis)
        side = total.shape[axis]
        ends = np.take(around, np.arange(length, length + side), axis=axis)
        total = ends - np.take(around, np.arange(side), axis=axis)
    return total
