"""Direct placement into boxes: job after job, each where it leaves the free routers compact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.boxes.box import Box, Triple
from optsched.boxes.free_boxes import words_of
from optsched.registry import solvers
from optsched.solvers.heuristic import Heuristic

if TYPE_CHECKING:
    from optsched.models.box_placement import BoxPlacement, Placement


@solvers.register("direct-placement")
@dataclass(frozen=True)
class DirectPlacement(Heuristic):
    """Place each job, in the order of the queue, in its first shape that is free somewhere.

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
    """Place the waiting jobs in the order of the queue, each into the first shape that is free.

    Algorithm 2 of Li et al. 2015 without bins: the shapes of a job, the best-ranked first, take the
    place of bins by preference. Of the places that are admitted for a shape and free, the box goes
    where most faces of its routers are next to a router in use or at a border; of equal ones, to
    the first in row-major order. A job without a place stays out, and the next is tried.

    Parameters
    ----------
    problem : BoxPlacement
        The problem.
    largest_first : bool
        Whether large jobs are placed before small ones instead; of equal ones that which queues
        first.

    Examples
    --------
    >>> from optsched.models import BoxPlacement
    >>> problem = BoxPlacement((4, 2, 1), running=["1x2x1@1,0,0"], waiting=[2, 5, 4])
    >>> place_directly(problem)
    (Box(x=0, y=0, z=0, nx=1, ny=2, nz=1), None, Box(x=2, y=0, z=0, nx=2, ny=2, nz=1))
    """
    sizes = problem.waiting.tolist()
    order = sorted(range(len(sizes)), key=lambda job: -sizes[job] if largest_first else job)
    places = _Places(problem)
    placement: list[Box | None] = [None] * len(sizes)
    without: set[int] = set()
    for job in order:
        routers = problem.routers(sizes[job])
        if routers <= places.left and routers not in without:
            placement[job] = places.taken_by(problem.admitted(sizes[job]))
            if placement[job] is None:
                without.add(routers)
    return tuple(placement)


class _Places:
    """The places that are free, fewer with each box, so that a shape without one has none again."""

    def __init__(self, problem: BoxPlacement) -> None:
        self.side = problem.grid.shape[2]
        self.wrap = problem.grid.wrap
        self.corners = problem.anchors == "corners"
        self.words = words_of(problem.free, problem.grid)
        self.left = int(problem.free.sum())
        self._at_first = self.words.copy()
        self._cornered: dict[Triple, Any] = {}
        self._gone: set[tuple[Triple, bool]] = set()

    def taken_by(self, shapes: tuple[Triple, ...]) -> Box | None:
        """Return the box of a job with some shapes, which it takes; none if there is no place."""
        from optsched.boxes._rows import fill
        from optsched.solvers.box_placement import _direct as compiled

        corners = self.corners and any(self._corners(shape) is not None for shape in shapes)
        for shape in shapes:
            if (shape, corners) in self._gone or (corners and self._corners(shape) is None):
                continue
            at = compiled.free_at(self.words, shape, self.side, self.wrap)
            if corners:
                at &= self._corners(shape)
            place = compiled.busiest(self.words, at, shape, self.side, self.wrap)
            if place[0] >= 0:
                box = Box(*(*place, *shape))
                fill(self.words, np.array(box), self.side, False)
                self.left -= box.volume
                return box
            self._gone.add((shape, corners))
        return None

    def _corners(self, shape: Triple) -> Any:
        """Return where a box of that shape could not slide when all was as given; none if nowhere.

        What a job is admitted to does not depend on jobs that are placed before it.
        """
        from optsched.solvers.box_placement import _direct as compiled

        if shape not in self._cornered:
            at = compiled.cornered(self._at_first, shape, self.side, self.wrap)
            self._cornered[shape] = at if at.any() else None
        return self._cornered[shape]
