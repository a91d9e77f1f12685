"""Box placement: free boxes of a three-dimensional torus for waiting jobs.

Model page: ``models/box-placement/README.md``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, cached_property, partial
from itertools import chain
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from optsched.boxes.box import Box, Triple
from optsched.boxes.box import shapes as ranked_shapes
from optsched.errors import InputError
from optsched.fields import Choice, Fields, Integer
from optsched.models.box_placement.candidates import Candidates, candidates_of
from optsched.models.fields import Integers
from optsched.models.problem import Violation, listed, named, wrong_length
from optsched.models.schema import declared, field, labels
from optsched.models.torus import Boxes, TorusProblem, boxes_of_texts, overlaps, routers_for
from optsched.registry import models

Placement = tuple[Box | None, ...]
"""The box of each waiting job in order; None for a job that is not placed."""

TAKEN = -1
"""Holder of unavailable routers."""


@models.register("box-placement")
@declared
class BoxPlacement(TorusProblem[Placement]):
    """Boxes of a torus for waiting jobs: any admitted shape at any free anchor.

    Raises
    ------
    InputError
        If a box is not on the torus, running jobs overlap each other or a hole, a size is below 1,
        a profit is below 0, or lengths do not match; the message lists all mistakes.

    Notes
    -----
    The model is the placement of Li et al. 2015 without bins. A solution is a tuple with the box of
    each waiting job, or None for a job that is not placed.

    References
    ----------
    K. Li, M. Malawski, J. Nabrzyski, "Topology-aware scheduling on Blue Waters with proactive queue
    scanning and migration-based job placement", JSSPP 2014, LNCS 8828, 2015.

    Examples
    --------
    >>> problem = BoxPlacement((4, 2, 1), running=["1x2x1@1,0,0"], waiting=[4, 2])
    >>> problem.objective((Box(2, 0, 0, 2, 2, 1), Box(0, 0, 0, 1, 2, 1)))
    6
    >>> problem.violations((Box(3, 0, 0, 2, 2, 1), Box(0, 0, 0, 1, 2, 1)))
    [Violation(constraint='overlap', detail='job 2 in 1x2x1@0,0,0 overlaps job 1')]
    """

    running: tuple[Box, ...] = field(
        Boxes(), "boxes of the running jobs; they overlap neither each other nor a hole"
    )
    waiting: NDArray[np.int64] = field(
        Integers(1), "size of each waiting job in nodes, in the order of the queue", symbol="s_j"
    )
    profits: NDArray[np.int64] = field(
        Integers(0, like="waiting"),
        "profit of placing each job; p_j = s_j if left out",
        symbol="p_j",
        default=None,
        filled=lambda fields: fields["waiting"],
    )
    shapes: int | None = field(
        Integer(1, expected="expected an integer from 1, or null"),
        "number of its best-ranked shapes that a job may have; all if left out",
        symbol="k",
        default=None,
    )
    anchors: Literal["all", "corners"] = field(
        Choice("all", "corners"),
        "`all`: a job may have any free box; `corners`: only boxes that cannot slide, see below",
        default="all",
        always=True,
    )
    running_jobs: Sequence[str | int] | None = labels("running", "a label for each running job")
    waiting_jobs: Sequence[str | int] | None = labels("waiting", "a label for each waiting job")

    sense = "max"
    default_solver = "box-search"

    @staticmethod
    def joint_mistakes(fields: Fields, *, on_file: bool) -> list[str]:
        """Return a mistake for each running job that overlaps another one or a hole."""
        return overlaps(fields, "running")

    @property
    def size(self) -> str:
        """Waiting jobs x free routers."""
        beside_holes = np.count_nonzero(self.grid.free_of(self.holes))
        return f"{len(self.waiting)}x{beside_holes - sum(box.volume for box in self.running)}"

    @cached_property
    def free(self) -> NDArray[np.bool_]:
        """Mask of the routers that no hole and no running job occupies, shape of the torus."""
        from optsched.boxes.layer_shapes import write

        held = [*self.holes, *self.running]
        boxes = np.fromiter(chain.from_iterable(held), np.int64, 6 * len(held)).reshape(-1, 6)
        free = np.ones(self.torus, dtype=np.bool_)
        write(free, boxes, np.zeros(len(boxes), dtype=np.bool_))  # faster than box by box
        free.flags.writeable = False
        return free

    def routers(self, size: int) -> int:
        """Return the number of routers that a job of `size` nodes holds."""
        return routers_for(size, self.nodes_per_router)

    def admitted(self, size: int) -> tuple[Triple, ...]:
        """Return the shapes that a job of `size` nodes may have, the best first."""
        ranked = ranked_shapes(self.routers(size), self.grid, self.links)
        return ranked[: self.shapes]

    @cached_property
    def candidates(self) -> Candidates:
        """The candidate boxes of all jobs.

        Raises
        ------
        InputError
            If the candidates have too many routers.
        """
        queue = zip(self.waiting.tolist(), self.profits.tolist())
        corners = self.anchors == "corners"
        return candidates_of(self.grid, self.free, queue, self.admitted, corners=corners)

    def objective(self, solution: Placement) -> int:
        """Return the profit of the placed jobs, equation (1)."""
        profits = self.profits.tolist()
        return sum(profits[job] for job, box in enumerate(solution) if box is not None)

    def violations(self, solution: Placement) -> list[Violation]:
        """Check that boxes are on the torus, admitted, free and disjoint."""
        if found := wrong_length(solution, len(self.waiting)):
            return found
        holder = np.where(self.free, 0, TAKEN)
        sizes = self.waiting.tolist()
        has_corner = cache(partial(_has_corner, self))
        for job, box in enumerate(solution):
            if box is None:
                continue
            mistake = self.grid.mistake(box)
            if mistake:
                found.append(Violation("box", f"job {job + 1} in {box}: {mistake}"))
                continue
            shapes = self.admitted(sizes[job])
            if box.extent not in shapes:
                detail = f"job {job + 1} of {self.routers(sizes[job])} routers in {box}"
                found.append(Violation("shape", detail))
            elif (
                self.anchors == "corners" and _can_slide(self, box) and any(map(has_corner, shapes))
            ):
                # a job that has no box that cannot slide may have any free box
                found.append(Violation("anchor", f"job {job + 1} in {box} can slide"))
            inside = self.grid.routers_of(box)
            for other in np.unique(holder[inside]).tolist():
                if other == TAKEN:
                    found.append(Violation("free", f"job {job + 1} in {box} on routers in use"))
                elif other:
                    detail = f"job {job + 1} in {box} overlaps job {other}"
                    found.append(Violation("overlap", detail))
            holder[inside] = np.where(holder[inside] == 0, job + 1, holder[inside])
        return found

    def solution_to_json(self, solution: Placement) -> dict[str, Any]:
        """Return each job's box as text; null for a job that is not placed."""
        return {"box_of_job": [None if box is None else str(box) for box in solution]}

    def solution_from_json(self, fields: Mapping[str, Any]) -> Placement:
        """Return the placement written by `solution_to_json`."""
        boxes = boxes_of_texts(fields.get("box_of_job") if isinstance(fields, Mapping) else None)
        if boxes is None:
            expected = "expected a list of boxes such as '2x4x4@3,0,22', or null"
            raise InputError(expected, field="box_of_job")
        return boxes

    def describe(self, solution: Placement | None = None) -> list[tuple[str, str]]:
        """Return the torus and the number of candidates, or the boxes of the jobs."""
        jobs = named(self.waiting_jobs, self.waiting)
        free = np.count_nonzero(self.free)
        torus = "x".join(map(str, self.grid.shape))
        lines = [("torus", f"{torus}, {free} of {self.grid.routers} routers free")]
        if solution is None:
            lines.append(("waiting", listed(jobs)))
            try:
                text = self.candidates.report()
            except InputError as error:
                text = error.mistakes[0]
            return [*lines, ("candidates", text)]
        lines += [(f"job {job}", str(box)) for job, box in zip(jobs, solution) if box is not None]
        waiting = (job for job, box in zip(jobs, solution) if box is None)
        return [*lines, ("not placed", listed(waiting))]


# the rule for anchors, written from the mathematics for verification alone


def _can_slide(problem: BoxPlacement, box: Box) -> bool:
    """Return whether a box can slide in some dimension.

    A box can slide if neither of its two faces touches an unavailable router or a border. A box as
    long as the torus has no faces in that dimension.
    """
    grid = problem.grid
    for axis, (side, wraps) in enumerate(zip(grid.shape, grid.wrap)):
        length = box.extent[axis]
        if length == side:
            continue
        beside = [box.anchor[axis] - 1, box.anchor[axis] + length]
        if not wraps and not (beside[0] >= 0 and beside[1] < side):
            continue
        inside = list(grid.routers_of(box))
        along = [-1 if other == axis else 1 for other in range(3)]
        inside[axis] = np.array(beside).reshape(along) % side
        if problem.free[tuple(inside)].all():
            return True
    return False


def _has_corner(problem: BoxPlacement, shape: Triple) -> bool:
    """Return whether some free box of a shape cannot slide.

    All anchors are checked together: ``_counts(problem, extent)[x, y, z]`` is the number of
    unavailable routers in the box of that extent at (x, y, z).
    """
    grid = problem.grid
    admitted = np.ones(grid.shape, dtype=np.bool_)
    for axis, (length, side, wraps) in enumerate(zip(shape, grid.shape, grid.wrap)):
        at = np.arange(side).reshape([-1 if other == axis else 1 for other in range(3)])
        if length == side:
            admitted &= at == 0
            continue
        if wraps and problem.free.all():
            return False
        face = (*shape[:axis], 1, *shape[axis + 1 :])
        held = _counts(problem, face) > 0
        touched = np.roll(held, 1, axis) | np.roll(held, -length, axis)
        if not wraps:
            admitted &= at + length <= side
            touched |= (at == 0) | (at + length == side)
        admitted &= touched
    return bool((admitted & (_counts(problem, shape) == 0)).any())


def _counts(problem: BoxPlacement, extent: tuple[int, ...]) -> NDArray[np.int64]:
    counts = (~problem.free).astype(np.int64)
    for axis, length in enumerate(extent):
        side = counts.shape[axis]
        beyond = np.take(counts, np.arange(side + length - 1) % side, axis)
        sums = np.insert(beyond.cumsum(axis), 0, 0, axis)
        counts = np.take(sums, np.arange(side) + length, axis) - np.take(
            sums, np.arange(side), axis
        )
    return counts
