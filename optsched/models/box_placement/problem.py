"""Box placement: waiting jobs into free boxes of a three-dimensional torus.

Model page: ``models/box-placement/README.md``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optsched.boxes.box import Box, Grid, Triple, box_of_text
from optsched.boxes.shapes import shapes as ranked_shapes
from optsched.errors import InputError
from optsched.models.box_placement.candidates import Candidates, candidates_of
from optsched.models.fields import FieldChecks
from optsched.models.problem import Problem, Violation
from optsched.models.torus_fields import (
    LONGEST,
    OPTIONAL,
    TorusFields,
    check_apart,
    check_boxes,
    check_torus,
    routers_for,
)
from optsched.registry import models

Placement = tuple[Box | None, ...]
"""The box of each waiting job in order; none for a job that is not placed."""

ANCHORS = ("all", "corners")

TAKEN = -1
"""Stands for the holder of routers that are not free."""


@models.register("box-placement")
@dataclass(frozen=True, eq=False, init=False)
class BoxPlacement(Problem[Placement]):
    """Boxes of a torus for waiting jobs: any admitted shape at any free place, exactly.

    Parameters
    ----------
    torus : (int, int, int)
        Routers in each dimension.
    running : sequence of Box
        The boxes of the running jobs.
    waiting : array_like of int, shape (jobs,)
        Size of each waiting job in nodes, in the order of the queue.
    profits : array_like of int, shape (jobs,), optional
        Profit of placing each job; its size if left out.
    shapes : int, optional
        How many of its shapes, the best-ranked ones, a job may have; all if left out.
    anchors : {"all", "corners"}
        Whether a job may lie anywhere, or only in boxes that cannot slide: in each dimension in
        which the box is shorter than the torus, one of its two faces is next to a router that is
        not free, or at the border of a dimension that does not wrap around. A job with no such box
        at all may lie anywhere.
    running_jobs, waiting_jobs : sequence, optional
        A label for each job, for people.
    wrap, nodes_per_router, holes, links
        See `optsched.models.torus_fields.TorusFields`.

    Raises
    ------
    InputError
        If a box is not on the torus, running jobs overlap each other or a hole, a size is below 1,
        a profit below 0, or lengths do not match; all mistakes at once.

    Notes
    -----
    It is the placement of Li et al. 2015 without their bins. A solution is a tuple with the box of
    each waiting job, and None for a job that is not placed.

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

    torus: Triple
    running: tuple[Box, ...]
    waiting: NDArray[np.int64]
    profits: NDArray[np.int64]
    shapes: int | None
    anchors: Literal["all", "corners"]
    running_jobs: Sequence[str | int] | None
    waiting_jobs: Sequence[str | int] | None
    wrap: tuple[bool, bool, bool]
    nodes_per_router: int
    holes: tuple[Box, ...]
    links: Triple

    sense = "max"
    default_solver = "box-search"

    def __init__(
        self,
        torus: Any,
        running: Sequence[Box | str],
        waiting: ArrayLike,
        profits: ArrayLike | None = None,
        shapes: int | None = None,
        anchors: str = "all",
        running_jobs: Sequence[str | int] | None = None,
        waiting_jobs: Sequence[str | int] | None = None,
        wrap: Any = (True, True, True),
        nodes_per_router: int = 1,
        holes: Sequence[Any] = (),
        links: Any = (1, 1, 1),
    ) -> None:
        check = FieldChecks(self.name)
        fields = check_torus(check, TorusFields(torus, wrap, nodes_per_router, holes, links))
        read = not any(mistake.startswith(("torus:", "wrap:")) for mistake in check.mistakes)
        boxes = check_boxes(check, "running", running, fields.grid if read else None)
        sizes = check.integers("waiting", waiting, at_least=1)
        worth = sizes
        if profits is not None:
            worth = check.integers("profits", profits, at_least=0)
            check.same_length("profits", worth, "waiting", sizes)
        if shapes is not None and (type(shapes) is not int or shapes < 1):
            check.mistakes.append(f"shapes: {shapes!r}; expected an integer from 1, or null")
        if anchors not in ANCHORS:
            check.mistakes.append(f"anchors: {anchors!r}; expected all or corners")
        of_running = check.labels("running_jobs", running_jobs)
        of_waiting = check.labels("waiting_jobs", waiting_jobs)
        if of_running is not None:
            check.same_length("running_jobs", of_running, "running", boxes)
        if of_waiting is not None:
            check.same_length("waiting_jobs", of_waiting, "waiting", sizes)
        if not check.mistakes:
            check_apart(check, "running", boxes, of_running, fields)
        check.done()
        for field, value in (
            *fields._asdict().items(),
            ("running", boxes),
            ("waiting", sizes),
            ("profits", worth),
            ("shapes", shapes),
            ("anchors", anchors),
            ("running_jobs", of_running),
            ("waiting_jobs", of_waiting),
        ):
            object.__setattr__(self, field, value)

    @property
    def size(self) -> str:
        """Waiting jobs x free routers."""
        return f"{len(self.waiting)}x{np.count_nonzero(self.free)}"

    @property
    def grid(self) -> Grid:
        """The routers and their links."""
        return Grid(self.torus, self.wrap)

    @cached_property
    def free(self) -> NDArray[np.bool_]:
        """Whether each router is free: no hole, and no running job's; shape of the torus."""
        free = self.grid.free_of((*self.holes, *self.running))
        free.flags.writeable = False
        return free

    def routers(self, size: int) -> int:
        """Return how many routers a job of so many nodes takes."""
        return routers_for(size, self.nodes_per_router)

    def admitted(self, size: int) -> tuple[Triple, ...]:
        """Return the shapes that a job of so many nodes may have, the best first."""
        ranked = ranked_shapes(self.routers(size), self.grid, self.links)
        return ranked[: self.shapes]

    @cached_property
    def candidates(self) -> Candidates:
        """The boxes that jobs choose from.

        Raises
        ------
        InputError
            If they are too many.
        """
        queue = zip(self.waiting.tolist(), self.profits.tolist())
        corners = self.anchors == "corners"
        return candidates_of(self.grid, self.free, queue, self.admitted, corners=corners)

    def objective(self, solution: Placement) -> int:
        """Return the profit of the placed jobs, equation (1)."""
        profits = self.profits.tolist()
        return sum(profits[job] for job, box in enumerate(solution) if box is not None)

    def violations(self, solution: Placement) -> list[Violation]:
        """Check that boxes are on the torus, admitted, free, and apart from each other."""
        if len(solution) != len(self.waiting):
            jobs = len(self.waiting)
            return [Violation("once", f"{len(solution)} entries for {jobs} jobs")]
        found = []
        holder = np.where(self.free, 0, TAKEN)
        sizes = self.waiting.tolist()
        rule = _AnchorRule(self)
        for job, box in self._placed(solution):
            mistake = self.grid.mistake(box)
            if mistake:
                found.append(Violation("box", f"job {job + 1} in {box}: {mistake}"))
                continue
            if box.extent not in self.admitted(sizes[job]):
                detail = f"job {job + 1} of {self.routers(sizes[job])} routers in {box}"
                found.append(Violation("shape", detail))
            elif not rule.admits(sizes[job], box):
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

    def to_json(self) -> dict[str, Any]:
        """Return the fields; boxes as texts, profits where they differ from the sizes."""
        machine = TorusFields(*(getattr(self, name) for name in TorusFields._fields))
        fields = machine.to_json()
        fields |= {"running": [str(box) for box in self.running], "waiting": self.waiting.tolist()}
        if not np.array_equal(self.profits, self.waiting):
            fields["profits"] = self.profits.tolist()
        if self.shapes is not None:
            fields["shapes"] = self.shapes
        fields["anchors"] = self.anchors
        if self.running_jobs is not None:
            fields["running_jobs"] = list(self.running_jobs)
        if self.waiting_jobs is not None:
            fields["waiting_jobs"] = list(self.waiting_jobs)
        return fields

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> BoxPlacement:
        """Build the problem from a snapshot's fields."""
        required = ("torus", "running", "waiting")
        own = ("profits", "shapes", "anchors", "running_jobs", "waiting_jobs")
        check = FieldChecks(cls.name)
        check.names(fields, required=required, optional=(*OPTIONAL, *own))
        known = {name: fields[name] for name in (*required, *own, *OPTIONAL) if name in fields}
        for name in ("running", "waiting"):
            if name not in fields:  # their labels and profits have nothing to be compared with
                known = {key: value for key, value in known.items() if key != f"{name}_jobs"}
                known[name] = []
        if "waiting" not in fields:
            known.pop("profits", None)
        known.setdefault("torus", [LONGEST] * 3)
        try:
            problem = cls(**known)
        except InputError as error:
            check.mistakes += error.mistakes
        check.done()
        return problem

    def solution_to_json(self, solution: Placement) -> dict[str, Any]:
        """Return each job's box as text; null for a job that is not placed."""
        return {"box_of_job": [None if box is None else str(box) for box in solution]}

    def solution_from_json(self, fields: Mapping[str, Any]) -> Placement:
        """Return the placement written by `solution_to_json`."""
        texts = fields.get("box_of_job") if isinstance(fields, Mapping) else None
        boxes: list[Box | None] = []
        for text in texts if isinstance(texts, list) else [0]:
            box = box_of_text(text) if isinstance(text, str) else None
            if box is None and text is not None:
                expected = "expected a list of boxes such as '2x4x4@3,0,22', or null"
                raise InputError(expected, field="box_of_job")
            boxes.append(box)
        return tuple(boxes)

    def describe(self, solution: Placement | None = None) -> list[tuple[str, str]]:
        """Return the torus and how many candidates there are, or the boxes of the jobs."""
        jobs = self.waiting_jobs or [str(job + 1) for job in range(len(self.waiting))]
        named = [f"{job} ({size})" for job, size in zip(jobs, self.waiting)]
        free = np.count_nonzero(self.free)
        torus = "x".join(map(str, self.grid.shape))
        lines = [("torus", f"{torus}, {free} of {self.grid.routers} routers free")]
        if solution is None:
            lines.append(("waiting", " ".join(named) or "-"))
            try:
                text = self.candidates.report()
            except InputError as error:
                text = error.mistakes[0]
            return [*lines, ("candidates", text)]
        lines += [(f"job {named[job]}", str(box)) for job, box in self._placed(solution)]
        left = [name for name, box in zip(named, solution) if box is None]
        return [*lines, ("not placed", " ".join(left) or "-")]

    @staticmethod
    def _placed(solution: Placement) -> Iterator[tuple[int, Box]]:
        return ((job, box) for job, box in enumerate(solution) if box is not None)


class _AnchorRule:
    """The rule for anchors, from the maths: neither program nor solvers share code with it."""

    def __init__(self, problem: BoxPlacement) -> None:
        self._problem = problem
        self._cornered: dict[Triple, bool] = {}

    def admits(self, size: int, box: Box) -> bool:
        """Return whether a job of so many nodes may lie in a box.

        Under ``corners`` it may lie where it cannot slide; anywhere if no free box of an admitted
        shape is such a one.
        """
        if self._problem.anchors == "all" or not _can_slide(self._problem, box):
            return True
        for shape in self._problem.admitted(size):
            if shape not in self._cornered:
                self._cornered[shape] = _has_corner(self._problem, shape)
            if self._cornered[shape]:
                return False
        return True


def _can_slide(problem: BoxPlacement, box: Box) -> bool:
    """Return whether, in some dimension, nothing is next to the two faces of a box.

    That is no router that is not free, and no border. A box as long as the torus has no faces in
    that dimension.
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
    """Return whether some free box of a shape cannot slide, by counting routers in use.

    All anchors are looked at together: ``counts(extent)[x, y, z]`` is how many routers in use the
    box of that extent at (x, y, z) holds.
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
