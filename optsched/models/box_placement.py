"""Box placement: free boxes of a three-dimensional torus for waiting jobs.

Model page: ``models/box-placement/README.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property, partial
from itertools import chain
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.boxes.box import Box, Grid, Triple
from optsched.boxes.box import shapes as ranked_shapes
from optsched.boxes.free_boxes import anchors as free_anchors
from optsched.compiled import kernel
from optsched.errors import InputError
from optsched.fields import Choice, Fields, Integer
from optsched.models.fields import Integers
from optsched.models.problem import Violation, listed, named, wrong_length
from optsched.models.program import UNBOUNDED, Formulation, Program, formulations
from optsched.models.schema import declared, field, labels
from optsched.models.torus import Boxes, TorusProblem, boxes_of_texts, overlaps
from optsched.registry import models

__all__ = ["BoxPlacement", "Placement"]

MOST = 40_000_000
"""Most routers of all candidates together, a limit on the entries of the program."""


class Candidates(NamedTuple):
    """The boxes that jobs may get, one variable of the program each.

    Jobs of equal size and profit form a *class*. They have the same candidates, so one variable for
    a candidate and a row that counts the jobs of the class replace a variable for each job.
    Candidates are sorted by class, then by shape in rank order, then by anchor in row-major order.
    """

    grid: Grid
    jobs: tuple[tuple[int, ...], ...]  # the jobs of each class, in the order of the queue
    class_of: NDArray[np.int64]
    shapes: NDArray[np.int64]
    # Candidates ``start[p]`` to ``start[p + 1]`` are those of piece p, shape (pieces + 1,)
    start: NDArray[np.int64]
    at: NDArray[np.int64]  # the number of each anchor in row-major order, shape (candidates,)

    def piece(self, candidate: int) -> int:
        """Return the piece that a candidate belongs to."""
        return int(np.searchsorted(self.start, candidate, side="right")) - 1

    def box(self, candidate: int) -> Box:
        """Return the box of a candidate."""
        _, sy, sz = self.grid.shape
        x, rest = divmod(int(self.at[candidate]), sy * sz)
        return Box(x, *divmod(rest, sz), *self.shapes[self.piece(candidate)].tolist())

    def number(self, of_class: int, box: Box) -> int:
        """Return the number of the candidate with a given box."""
        _, sy, sz = self.grid.shape
        same = (self.class_of == of_class) & (self.shapes == box.extent).all(axis=1)
        for piece in np.flatnonzero(same):
            low, high = self.start[piece], self.start[piece + 1]
            at = (box.x * sy + box.y) * sz + box.z
            place = low + np.searchsorted(self.at[low:high], at)
            if place < high and self.at[place] == at:
                return int(place)
        raise InputError(f"{box} is no candidate of job {self.jobs[of_class][0] + 1}")

    def report(self) -> str:
        """Return the number of candidates and the size of the program as text."""
        entries, needed = covered(*self.as_arrays())
        rows = len(self.jobs) + np.count_nonzero(needed)
        total = len(self.at) + int(entries[needed].sum())
        return f"{len(self.at)} boxes in {rows} rows, {total} entries"

    def as_arrays(self) -> tuple[NDArray[np.int64], ...]:
        """Return the grid and the candidates as arguments of the kernels."""
        several = np.array([len(jobs) > 1 for jobs in self.jobs], dtype=np.int64)
        sides = np.array(self.grid.shape, dtype=np.int64)
        return sides, several, self.class_of, self.shapes, self.start, self.at


def candidates_of(
    grid: Grid,
    free: NDArray[np.bool_],
    queue: Iterable[tuple[int, int]],
    admitted: Callable[[int], Iterable[Triple]],
    *,
    corners: bool,
) -> Candidates:
    """Return the candidates of a queue of jobs, each with its size and profit.

    A job may have the shapes that `admitted` returns for its size, the best first; with `corners`,
    it gets only boxes that cannot slide, if it has any.
    """
    classes: dict[tuple[int, int], list[int]] = {}
    for job, same in enumerate(queue):
        classes.setdefault(same, []).append(job)
    anchors = _Anchors(grid, free, corners)
    pieces: list[tuple[int, Triple, NDArray[np.int64]]] = []
    routers = 0
    for number, (size, _) in enumerate(classes):
        found = anchors.of(admitted(size))
        for shape, at in found:
            routers += math.prod(shape) * len(at)
            pieces.append((number, shape, at))
        if routers > MOST:
            raise InputError(
                f"the first {number + 1} of {len(classes)} kinds of jobs have boxes of {routers} "
                f"routers; expected at most {MOST}: fewer shapes or anchors = corners thin them"
            )
    return Candidates(
        grid,
        tuple(map(tuple, classes.values())),
        np.array([number for number, _, _ in pieces], dtype=np.int64),
        np.array([shape for _, shape, _ in pieces], dtype=np.int64).reshape(-1, 3),
        np.cumsum([0, *(len(at) for _, _, at in pieces)], dtype=np.int64),
        np.concatenate([np.empty(0, dtype=np.int64), *(at for _, _, at in pieces)]),
    )


class _Anchors:
    """Anchors of free boxes by shape, each shape searched once."""

    def __init__(self, grid: Grid, free: NDArray[np.bool_], corners: bool) -> None:
        self.grid, self.free, self.corners = grid, free, corners
        self.routers = np.count_nonzero(free)
        self.everywhere, self.cornered = cache(self._everywhere), cache(self._cornered)

    def of(self, shapes: Iterable[Triple]) -> list[tuple[Triple, NDArray[np.int64]]]:
        """Return the anchors of a job with given shapes, by shape."""
        shapes = [shape for shape in shapes if math.prod(shape) <= self.routers]
        if self.corners:
            found = [(shape, at) for shape in shapes if len(at := self.cornered(shape))]
            if found:
                return found
        return [(shape, at) for shape in shapes if len(at := self.everywhere(shape))]

    def _everywhere(self, shape: Triple) -> NDArray[np.int64]:
        """Return the anchors of free boxes of a shape, as ascending numbers of routers."""
        x, y, z = free_anchors(self.free, self.grid, shape).T
        numbers: NDArray[np.int64] = (x * self.grid.shape[1] + y) * self.grid.shape[2] + z
        return numbers

    def _cornered(self, shape: Triple) -> NDArray[np.int64]:
        """Return the anchors of free boxes of a shape that cannot slide.

        A box can slide in a dimension if it is still free with a router more at both ends.
        """
        at = self.everywhere(shape)
        where = np.unravel_index(at, self.grid.shape)
        slides = np.zeros(len(at), dtype=np.bool_)
        for axis, (length, side, wraps) in enumerate(zip(shape, self.grid.shape, self.grid.wrap)):
            longer = min(length + 2, side) if wraps else length + 2
            if length == side or longer > side:
                continue
            is_ring = wraps and longer == side  # whose boxes are at 0
            below: list[Any] = [*where]
            below[axis] = 0 if is_ring else (where[axis] - 1) % side
            wider = self.everywhere((*shape[:axis], longer, *shape[axis + 1 :]))
            slides |= np.isin(np.ravel_multi_index(below, self.grid.shape), wider)
        return at[~slides]


@kernel
def covered(sides: Any, several: Any, class_of: Any, shapes: Any, start: Any, at: Any) -> Any:
    """Return the number of boxes that cover each router, and whether the router needs a row.

    A router needs a row if two of its boxes could be chosen together. Parameters are those of
    `Candidates`; `several` is the mask of the classes with more than one job.
    """
    sy, sz = sides[1], sides[2]
    routers = sides[0] * sy * sz
    count = np.zeros(routers, dtype=np.int64)
    first = np.zeros(routers, dtype=np.int64)
    needed = np.zeros(routers, dtype=np.bool_)
    for piece in range(len(class_of)):
        of_class = class_of[piece]
        for box in range(start[piece], start[piece + 1]):
            x, y, z = at[box] // (sy * sz), at[box] // sz % sy, at[box] % sz
            for i in range(x, x + shapes[piece, 0]):
                for j in range(y, y + shapes[piece, 1]):
                    row = (i % sides[0] * sy + j % sy) * sz
                    for k in range(z, z + shapes[piece, 2]):
                        router = row + (k if k < sz else k - sz)
                        if count[router] == 0:
                            first[router] = of_class
                        elif first[router] != of_class or several[of_class]:
                            needed[router] = True
                        count[router] += 1
    return count, needed


@kernel
def list_boxes(
    sides: Any, class_of: Any, shapes: Any, start: Any, at: Any, position: Any, columns: Any
) -> None:
    """Write the boxes that cover each router into `columns`, from its entry of `position` on.

    A negative entry of `position` skips the router.
    """
    sy, sz = sides[1], sides[2]
    for piece in range(len(class_of)):
        for box in range(start[piece], start[piece + 1]):
            x, y, z = at[box] // (sy * sz), at[box] // sz % sy, at[box] % sz
            for i in range(x, x + shapes[piece, 0]):
                for j in range(y, y + shapes[piece, 1]):
                    row = (i % sides[0] * sy + j % sy) * sz
                    for k in range(z, z + shapes[piece, 2]):
                        router = row + (k if k < sz else k - sz)
                        if position[router] >= 0:
                            columns[position[router]] = box
                            position[router] += 1


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

    def admitted(self, size: int) -> tuple[Triple, ...]:
        """Return the shapes that a job of `size` nodes may have, the best first."""
        return ranked_shapes(self.routers_of(size), self.grid, self.links)[: self.shapes]

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
                detail = f"job {job + 1} of {self.routers_of(sizes[job])} routers in {box}"
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


@formulations.register("box-placement")
class BoxFormulation(Formulation[BoxPlacement, Placement]):
    """Equations (1) to (4) of the model's page: set packing with a variable for each candidate.

    A kernel writes the rows of routers, which may have tens of millions of entries.
    """

    @cached_property
    def program(self) -> Program:
        """The program, with a variable for each candidate in the order of `Candidates`."""
        boxes = self.problem.candidates
        arrays = sides, _, class_of, _, start, at = boxes.as_arrays()
        count, needed = covered(*arrays)
        routers = np.flatnonzero(needed)
        classes, in_router_rows = len(boxes.jobs), int(count[routers].sum())
        row_start = np.zeros(classes + len(routers) + 1, dtype=np.int64)
        class_of_box = np.repeat(class_of, np.diff(start))
        row_start[1 : classes + 1] = np.bincount(class_of_box, minlength=classes)
        row_start[classes + 1 :] = count[routers]
        row_start = row_start.cumsum()
        columns = np.arange(len(at) + in_router_rows)  # candidates are listed class by class
        position = np.full(len(needed), -1, dtype=np.int64)
        position[routers] = row_start[classes:-1]
        list_boxes(sides, class_of, boxes.shapes, start, at, position, columns)
        profits = np.array([self.problem.profits[jobs[0]] for jobs in boxes.jobs], dtype=np.int64)
        row_upper = np.ones(classes + len(routers), dtype=np.int64)
        row_upper[:classes] = [len(jobs) for jobs in boxes.jobs]

        def variable_name(candidate: int) -> str:
            job = boxes.jobs[int(class_of[boxes.piece(candidate)])][0] + 1
            box = boxes.box(candidate)
            return f"x_job{job}_{box.nx}x{box.ny}x{box.nz}_at_{box.x}_{box.y}_{box.z}"

        def row_name(row: int) -> str:
            if row < classes:
                return f"once_job{boxes.jobs[row][0] + 1}"
            x, y, z = np.unravel_index(int(routers[row - classes]), boxes.grid.shape)
            return f"router_{x}_{y}_{z}"

        return Program(
            sense="max",
            objective=profits[class_of_box],
            lower=np.zeros(len(at), dtype=np.int64),
            upper=np.ones(len(at), dtype=np.int64),
            row_start=row_start,
            columns=columns,
            values=np.ones(len(columns), dtype=np.int64),
            row_lower=np.full(len(row_upper), -UNBOUNDED),
            row_upper=row_upper,
            variable_name=variable_name,
            row_name=row_name,
        )

    def decode(self, x: NDArray[np.int64]) -> Placement:
        """Return the box of each job; of equal jobs the first are placed, in the order of boxes."""
        found = self.problem.candidates
        boxes: list[Box | None] = [None] * len(self.problem.waiting)
        unplaced = [iter(jobs) for jobs in found.jobs]
        for candidate in np.flatnonzero(x).tolist():
            job = next(unplaced[found.class_of[found.piece(candidate)]], None)
            if job is not None:  # skip boxes beyond the number of jobs of the class
                boxes[job] = found.box(candidate)
        return tuple(boxes)

    def encode(self, solution: Placement) -> NDArray[np.int64]:
        """Return the 0-1 vector of a placement, which does not distinguish equal jobs."""
        found = self.problem.candidates
        class_of_job = {job: number for number, jobs in enumerate(found.jobs) for job in jobs}
        x = np.zeros(len(found.at), dtype=np.int64)
        for job, box in enumerate(solution):
            if box is not None:
                x[found.number(class_of_job[job], box)] = 1
        return x
