"""Direct placement into boxes, job by job, with as many contacts as possible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from optsched.boxes.box import Box, Triple
from optsched.boxes.free_boxes import words_of
from optsched.models.box_placement import BoxPlacement, Placement
from optsched.registry import solvers
from optsched.solvers.heuristic import Heuristic


@solvers.register("direct-placement")
@dataclass(frozen=True)
class DirectPlacement(Heuristic):
    """Each waiting job in queue order, into its first shape that is free.

    Algorithm 2 of Li et al. 2015 without bins, see `place_directly`. Work is counted in jobs.

    References
    ----------
    K. Li, M. Malawski, J. Nabrzyski, "Topology-aware scheduling on Blue Waters with proactive
    queue scanning and migration-based job placement", JSSPP 2015.
    """

    models = frozenset({"box-placement"})
    work_unit = "jobs"
    seconds_per_work = 2e-5

    def place(self, problem: BoxPlacement) -> Placement:
        """Return the placement by Algorithm 2."""
        return place_directly(problem)

    def effort(self, problem: BoxPlacement) -> int:
        """Return the number of waiting jobs."""
        return len(problem.waiting)


def place_directly(problem: BoxPlacement, *, largest_first: bool = False) -> Placement:
    """Place the waiting jobs in the order of the queue, each into its first shape that is free.

    This is Algorithm 2 of Li et al. 2015 without bins: the ranked shapes of a job replace the
    preferred bins. Of the free candidates of a shape, the one with the most contacts is chosen,
    that is router faces next to a used router or a border; of equal ones, the first in row-major
    order. A job that does not fit is skipped. If `largest_first`, jobs are placed by decreasing
    size instead; of equal sizes, in the order of the queue.

    >>> from optsched.models import BoxPlacement
    >>> problem = BoxPlacement((4, 2, 1), running=["1x2x1@1,0,0"], waiting=[2, 5, 4])
    >>> place_directly(problem)
    (Box(x=0, y=0, z=0, nx=1, ny=2, nz=1), None, Box(x=2, y=0, z=0, nx=2, ny=2, nz=1))
    """
    sizes = problem.waiting.tolist()
    order = sorted(range(len(sizes)), key=lambda job: -sizes[job] if largest_first else job)
    anchors = _FreeAnchors(problem)
    placement: list[Box | None] = [None] * len(sizes)
    without: set[int] = set()
    for job in order:
        routers = problem.routers(sizes[job])
        if routers <= anchors.free and routers not in without:
            placement[job] = anchors.take(problem.admitted(sizes[job]))
            if placement[job] is None:
                without.add(routers)
    return tuple(placement)


class _FreeAnchors:
    """Free anchors of shapes; a shape that has failed is not tried again."""

    def __init__(self, problem: BoxPlacement) -> None:
        self.side = problem.grid.shape[2]
        self.wrap = problem.grid.wrap
        self.corners = problem.anchors == "corners"
        self.words = words_of(problem.free, problem.grid)
        self.free = int(problem.free.sum())
        self._initial = self.words.copy()
        self._corner_anchors: dict[Triple, Any] = {}
        self._failed: set[tuple[Triple, bool]] = set()

    def take(self, shapes: tuple[Triple, ...]) -> Box | None:
        """Take and return a box of the first shape that is free, or return None."""
        from optsched.boxes._rows import fill
        from optsched.solvers.box_placement import _direct as compiled

        corners = self.corners and any(self._corners(shape) is not None for shape in shapes)
        for shape in shapes:
            if (shape, corners) in self._failed or (corners and self._corners(shape) is None):
                continue
            at = compiled.free_at(self.words, shape, self.side, self.wrap)
            if corners:
                at &= self._corners(shape)
            place = compiled.busiest(self.words, at, shape, self.side, self.wrap)
            if place[0] >= 0:
                box = Box(*(*place, *shape))
                fill(self.words, np.array(box), self.side, False)
                self.free -= box.volume
                return box
            self._failed.add((shape, corners))
        return None

    def _corners(self, shape: Triple) -> Any:
        """Return the anchors of a shape in corners of the initial state, or None without any.

        The admitted boxes of a job do not depend on jobs placed in this decision.
        """
        from optsched.solvers.box_placement import _direct as compiled

        if shape not in self._corner_anchors:
            at = compiled.cornered(self._initial, shape, self.side, self.wrap)
            self._corner_anchors[shape] = at if at.any() else None
        return self._corner_anchors[shape]
