"""Fitting of jobs on a torus: into bins, as in the paper, or into any free box."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched.boxes.box import Box, Triple, shapes
from optsched.boxes.free_boxes import disjoint_bins, first_fit, fullest_box, holds
from optsched.boxes.layer_shapes import largest_layered_box, layered_bins
from optsched.machines.torus import Torus
from optsched.models.box_placement import BoxPlacement
from optsched.models.fields import read_only
from optsched.models.partition_mkp import PartitionMKP
from optsched.models.problem import Problem
from optsched.models.torus import routers_for
from optsched.simulator.system import System

Free = NDArray[np.bool_]


@dataclass
class BoxReservation:
    """Reservation of a box for a blocked job."""

    earliest: float  # estimated end at which a large enough box is free
    choose: Callable[[], Box]

    @cached_property
    def box(self) -> Box:
        """Box reserved for the job."""
        return self.choose()


class Fitting(ABC):
    """Way of fitting jobs into the free routers of a torus, with the problem of placing them."""

    def __init__(self, torus: Torus) -> None:
        self.torus = torus
        self._changes = -1
        self._fits_now: dict[int, bool] = {}
        self._earliest = 0.0  # of the last reservation

    def routers(self, nodes: int) -> int:
        """Return the number of routers that a job of `nodes` nodes needs."""
        return routers_for(nodes, self.torus.nodes_per_router)

    def fields(self, kept: Sequence[Box] = ()) -> dict[str, Any]:
        """Return the fields of the torus in the models; the routers of `kept` count as held.

        The problems of a decision are made of a machine's own boxes and jobs, without a check.
        """
        torus = self.torus
        return {
            "torus": torus.shape,
            "wrap": torus.grid.wrap,
            "nodes_per_router": torus.nodes_per_router,
            "holes": (*torus.holes, *kept),
            "links": torus.links,
            "convex": torus.grid.convex,
        }

    def free_parts(self, boxes: Sequence[Box]) -> list[Box]:
        """Return the free routers of boxes, as boxes."""
        torus, parts = self.torus, list[Box]()
        for box in boxes:
            inside = np.zeros(torus.shape, np.bool_)
            inside[torus.grid.routers_of(box)] = True
            parts += disjoint_bins(inside & torus.boxes.free, torus.grid)
        return parts

    def fits_now(self, routers: int) -> bool:
        """Return whether a box that is free now holds a job of `routers` routers."""
        boxes = self.torus.boxes
        if self._changes != boxes.changes:
            self._changes = boxes.changes
            self._fits_now.clear()
        if routers not in self._fits_now:
            self._fits_now[routers] = self.fits(boxes.free, routers)
        return self._fits_now[routers]

    def reserve(self, system: System, routers: int) -> BoxReservation:
        """Return the reservation of a job of `routers` routers (section 6 of Li, steps 1 to 3).

        Running jobs end at their estimated ends, all of one instant together. Free routers only
        increase, so the first instant at which the job fits is found by bisection, from the first
        one with enough free routers on.
        """
        from optsched.boxes.layer_shapes import write

        now = self.torus.boxes.free.copy()
        held_until = np.where(now, -np.inf, np.inf)
        running, boxes = system.running.by_estimated_end, system.held
        sides = chain.from_iterable([boxes[job] for _, job in running])
        held = np.fromiter(sides, np.int64, 6 * len(running)).reshape(-1, 6)
        until = np.array([end for end, _ in running])
        write(held_until, held, until)
        released = held[:, 3:].prod(axis=1).cumsum()
        least = int(np.searchsorted(released, routers - np.count_nonzero(now)))
        ends = sorted(set(until[least:].tolist()))

        def is_free(end: float) -> bool:
            return self.fits(held_until <= end, routers)

        low, high = 0, len(ends)
        guess = bisect_left(ends, self._earliest)
        for at in (guess, guess - 1):  # mostly, the job fits as early as the last one
            if low <= at < high:
                low, high = (low, at) if is_free(ends[at]) else (at + 1, high)
        first = bisect_left(ends, True, low, high, key=is_free)
        if first == len(ends):
            raise ValueError(f"no box of {routers} routers, even when all running jobs have ended")
        self._earliest = ends[first]
        then = held_until <= self._earliest
        return BoxReservation(
            earliest=self._earliest,
            choose=lambda: self.reserved(now, then, routers),
        )

    @abstractmethod
    def shapes(self, routers: int) -> tuple[Triple, ...]:
        """Return the shapes of a job of `routers` routers, the best first."""

    @abstractmethod
    def fits(self, free: Free, routers: int) -> bool:
        """Return whether a free box holds a job of `routers` routers."""

    def reserved(self, free: Free, free_then: Free, routers: int) -> Box:
        """Return the box to reserve for a job that fits later, by what is free now and then."""
        # the best shape that is free then, where the fewest routers are free now
        grid = self.torus.grid
        first = first_fit(free_then, grid, self.shapes(routers))
        assert first is not None
        return fullest_box(free, grid, first.extent, free_then)

    @abstractmethod
    def may_place(self, routers: int) -> bool:
        """Return whether jobs, of which the smallest needs `routers` routers, may be placed now."""

    @abstractmethod
    def problem(
        self, system: System, jobs: Sequence[int], profits: Sequence[int], kept: Sequence[Box]
    ) -> Problem[Any] | None:
        """Return the problem of placing waiting jobs beside `kept` boxes; None if no job fits.

        Running jobs may hold routers of these boxes.
        """

    @abstractmethod
    def boxes(self, problem: Any, solution: Any) -> Sequence[Box | None]:
        """Return the box of each job in a solution; None for a job that is not placed."""


class InBins(Fitting):
    """Fitting into disjoint bins, each the largest free box beside the earlier ones."""

    def __init__(self, torus: Torus, layered: bool) -> None:
        super().__init__(torus)
        self.layered = layered  # bins are found by the paper's layers, else exactly

    def shapes(self, routers: int) -> tuple[Triple, ...]:
        """Return all shapes."""
        return shapes(routers, self.torus.grid, self.torus.links)

    def fits(self, free: Free, routers: int) -> bool:
        """Return whether the largest bin has at least `routers` routers."""
        if not self.layered:
            return holds(free, self.torus.grid, routers)
        return largest_layered_box(free, self.torus.grid, routers) is not None

    def reserved(self, free: Free, free_then: Free, routers: int) -> Box:
        """Return the box to reserve; by layers a whole bin, since a part might not be found."""
        if not self.layered:
            return super().reserved(free, free_then, routers)
        partition = largest_layered_box(free_then, self.torus.grid)
        assert partition is not None
        return partition

    def may_place(self, routers: int) -> bool:
        """Return whether there is a bin."""
        return self.fits_now(routers)

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
        return PartitionMKP.trusted(
            bins=bins,
            waiting=tuple([system.processors[job] for job in jobs]),
            profits=tuple(profits),
            **self.fields(),
            waiting_jobs=tuple([system.job_id[job] for job in jobs]),
        )

    def boxes(self, problem: PartitionMKP, solution: Any) -> Sequence[Box | None]:
        """Return the box of each job inside its bin."""
        return problem.boxes(solution)


class InBoxes(Fitting):
    """Fitting into any free box of the `best` shapes of a job."""

    def __init__(self, torus: Torus, best: int) -> None:
        super().__init__(torus)
        self.best = best

    def shapes(self, routers: int) -> tuple[Triple, ...]:
        """Return the best shapes."""
        return shapes(routers, self.torus.grid, self.torus.links)[: self.best]

    def fits(self, free: Free, routers: int) -> bool:
        """Return whether one of the best shapes is free somewhere."""
        return first_fit(free, self.torus.grid, self.shapes(routers)) is not None

    def may_place(self, routers: int) -> bool:
        """Return True: the solver finds the boxes."""
        return True

    def problem(
        self, system: System, jobs: Sequence[int], profits: Sequence[int], kept: Sequence[Box]
    ) -> BoxPlacement | None:
        """Return the problem of placing the jobs into free boxes."""
        running = sorted(system.held)
        return BoxPlacement.trusted(
            running=tuple([system.held[job] for job in running]),
            waiting=read_only(np.array([system.processors[job] for job in jobs], np.int64)),
            profits=read_only(np.array(profits, np.int64)),
            shapes=self.best,
            anchors="all",
            **self.fields(self.free_parts(kept)),
            running_jobs=tuple([system.job_id[job] for job in running]),
            waiting_jobs=tuple([system.job_id[job] for job in jobs]),
        )

    def boxes(self, problem: BoxPlacement, solution: Any) -> Sequence[Box | None]:
        """Return the boxes, which are the solution."""
        return solution
