"""The partition knapsack: waiting jobs into free boxes of a torus, layer by layer.

Model page: ``models/partition-mkp/README.md``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from optsched.boxes.box import Box, Grid, Triple
from optsched.boxes.layer_shapes import layer_shape
from optsched.errors import InputError
from optsched.models.fields import FieldChecks
from optsched.models.partition_mkp.solution import (
    Place,
    Placement,
    check_bins,
    ill_led,
    misplaced,
    stacked,
)
from optsched.models.problem import Problem, Violation
from optsched.models.torus_fields import (
    LONGEST,
    OPTIONAL,
    TorusFields,
    check_boxes,
    check_torus,
    routers_for,
)
from optsched.registry import models


@models.register("partition-mkp")
@dataclass(frozen=True, eq=False, init=False)
class PartitionMKP(Problem[Placement]):
    """0-1 multiple knapsack of a scan window of jobs into free boxes (Li et al. 2015, section 4).

    The weight of a job depends on the bin: it takes whole XZ layers of it, or a rectangle inside
    one, and has this box to itself. Inside a layer rectangles stand on shelves.

    Parameters
    ----------
    torus : (int, int, int)
        Routers in each dimension.
    bins : sequence of Box or str
        Free boxes, apart from each other; ``2x24x4@3,0,22`` as text.
    waiting : array_like of int, shape (jobs,)
        Size of each waiting job, in nodes, in the order of the queue.
    profits : array_like of int, shape (jobs,), optional
        What placing each job is worth; its size if left out.
    waiting_jobs : sequence, optional
        A label for each job, for people.
    wrap, nodes_per_router, holes, links
        See `optsched.models.torus_fields.TorusFields`.

    Raises
    ------
    InputError
        If a field is not as above, a bin overlaps another or a hole, or lengths do not match; all
        mistakes at once.

    Notes
    -----
    A solution is a tuple with the `Place` of each job, none for a job that is not placed;
    `boxes` gives the routers.

    References
    ----------
    K. Li, M. Malawski, J. Nabrzyski, "Topology-aware scheduling on Blue Waters with proactive
    queue scanning and migration-based job placement", JSSPP 2015.

    Examples
    --------
    >>> problem = PartitionMKP((8, 2, 1), ["4x2x1@0,0,0", "3x2x1@4,0,0"], waiting=[6])
    >>> problem.idle(0, 0), problem.idle(0, 1)
    (2, 0)
    >>> solution = (Place(bin=1, layer=0, shelf=0),)
    >>> problem.violations(solution), str(problem.boxes(solution)[0])
    ([], '3x2x1@4,0,0')
    """

    torus: Triple
    bins: tuple[Box, ...]
    waiting: tuple[int, ...]
    profits: tuple[int, ...]
    waiting_jobs: Sequence[str | int] | None
    wrap: tuple[bool, bool, bool]
    nodes_per_router: int
    holes: tuple[Box, ...]
    links: Triple

    sense = "max"
    default_solver = "migration-based"

    def __init__(
        self,
        torus: Any,
        bins: Sequence[Any],
        waiting: Any,
        profits: Any = None,
        waiting_jobs: Sequence[str | int] | None = None,
        wrap: Any = (True, True, True),
        nodes_per_router: int = 1,
        holes: Sequence[Any] = (),
        links: Any = (1, 1, 1),
    ) -> None:
        check = FieldChecks(self.name)
        machine = check_torus(check, TorusFields(torus, wrap, nodes_per_router, holes, links))
        free = check_boxes(check, "bins", bins, None if check.mistakes else machine.grid)
        if not check.mistakes:
            check_bins(check, free, machine.holes, machine.grid)
        sizes = check.integers("waiting", waiting, at_least=1)
        worth = sizes
        if profits is not None:
            worth = check.integers("profits", profits, at_least=0)
            check.same_length("profits", worth, "waiting", sizes)
        labels = check.labels("waiting_jobs", waiting_jobs)
        if labels is not None:
            check.same_length("waiting_jobs", labels, "waiting", sizes)
        check.done()
        self.__dict__.update(
            machine._asdict(),
            bins=free,
            waiting=tuple(sizes.tolist()),
            profits=tuple(worth.tolist()),
            waiting_jobs=labels,
        )

    @property
    def size(self) -> str:
        """Jobs x bins."""
        return f"{len(self.waiting)}x{len(self.bins)}"

    @property
    def grid(self) -> Grid:
        """The routers and their links."""
        return Grid(self.torus, self.wrap)

    @cached_property
    def routers(self) -> tuple[int, ...]:
        """Routers that each job takes."""
        return tuple(routers_for(size, self.nodes_per_router) for size in self.waiting)

    def idle(self, job: int, number: int) -> int | None:
        """Return how many routers a job leaves idle in a bin; none if it does not fit there."""
        shape = layer_shape(self.routers[job], self.bins[number].extent)
        return None if shape is None else shape[0] * shape[1] * shape[2] - self.routers[job]

    def boxes(self, solution: Placement) -> tuple[Box | None, ...]:
        """Return the box of each job, none for one that is not placed; see `stacked`."""
        return stacked(self.grid, self.bins, self.routers, solution)

    def objective(self, solution: Placement) -> int:
        """Return the profit of the placed jobs, equation (1)."""
        return sum(profit for profit, place in zip(self.profits, solution) if place is not None)

    def violations(self, solution: Placement) -> list[Violation]:
        """Check the leaders, and the boxes that follow from the places."""
        if len(solution) != len(self.waiting):
            jobs = len(self.waiting)
            return [Violation("once", f"{len(solution)} entries for {jobs} jobs")]
        boxes, found = self.boxes(solution), []
        for job, (place, box) in enumerate(zip(solution, boxes), start=1):
            if place is None or box is not None:
                continue
            if not 0 <= place.bin < len(self.bins):
                found.append(Violation("bin", f"job {job} is put into bin {place.bin + 1}"))
                continue
            detail = f"job {job} takes {self.routers[job - 1]} routers, "
            detail += f"bin {place.bin + 1} is {self.bins[place.bin]}"
            found.append(Violation("size", detail))
        found += ill_led(solution, boxes)
        return found + misplaced(self.grid, self.bins, self.routers, solution, boxes)

    def to_json(self) -> dict[str, Any]:
        """Return the fields; boxes as text, profits where they differ from the sizes."""
        machine = TorusFields(*(getattr(self, name) for name in TorusFields._fields))
        fields = machine.to_json()
        fields |= {"bins": [str(box) for box in self.bins], "waiting": list(self.waiting)}
        if self.profits != self.waiting:
            fields["profits"] = list(self.profits)
        if self.waiting_jobs is not None:
            fields["waiting_jobs"] = list(self.waiting_jobs)
        return fields

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> PartitionMKP:
        """Build the problem from a snapshot's fields."""
        required, of_jobs = ("torus", "bins", "waiting"), ("profits", "waiting_jobs")
        check = FieldChecks(cls.name)
        check.names(fields, required=required, optional=(*of_jobs, *OPTIONAL))
        blank: dict[str, Any] = {"torus": (LONGEST,) * 3, "bins": (), "waiting": ()}
        comparable = of_jobs if "waiting" in fields else ()
        read = (*required, *comparable, *OPTIONAL)
        known = {name: fields[name] for name in read if name in fields}
        try:
            problem = cls(**blank | known)
        except InputError as error:
            check.mistakes += error.mistakes
        check.done()
        return problem

    def solution_to_json(self, solution: Placement) -> dict[str, Any]:
        """Return bins, leaders of layers and shelves from 1, and boxes; null for none."""
        written: dict[str, Any] = {
            f"{field}_of_job": [None if place is None else place[n] + 1 for place in solution]
            for n, field in enumerate(Place._fields)
        }
        boxes = self.boxes(solution)
        written["box_of_job"] = [None if box is None else str(box) for box in boxes]
        return written

    def solution_from_json(self, fields: Mapping[str, Any]) -> Placement:
        """Return the placement written by `solution_to_json`; its boxes may be left out."""
        given = fields if isinstance(fields, Mapping) else {}
        names = [f"{field}_of_job" for field in Place._fields]
        lists = [given.get(name) for name in names]
        places = _places(lists)
        if places is None:
            expected = "expected lists of one length, numbers from 1 or null for the same jobs"
            raise InputError(f"{', '.join(names)}: {expected}", field=self.name)
        written = given.get("box_of_job")
        boxes = self.solution_to_json(places)["box_of_job"]
        if written is not None and written != boxes:
            expected = f"by their places they are {boxes}"
            raise InputError(f"box_of_job: {written!r}; {expected}", field=self.name)
        return places

    def describe(self, solution: Placement | None = None) -> list[tuple[str, str]]:
        """Return the bins with the jobs and boxes in them, and the jobs that wait."""
        jobs = self.waiting_jobs or [str(job + 1) for job in range(len(self.waiting))]
        named = [f"{job} ({size})" for job, size in zip(jobs, self.waiting)]
        routers = "x".join(map(str, self.torus))
        lines = [("torus", f"{routers} routers, nodes on each: {self.nodes_per_router}")]
        if solution is None:
            lines.append(("bins", " ".join(map(str, self.bins)) or "-"))
            return [*lines, ("waiting", " ".join(named) or "-")]
        boxes = self.boxes(solution)
        for number, box in enumerate(self.bins):
            inside = [
                f"{job} {at}"
                for job, place, at in zip(named, solution, boxes)
                if place is not None and place.bin == number
            ]
            if inside:
                lines.append((f"bin {number + 1}: {box}", ", ".join(inside)))
        left = [job for job, place in zip(named, solution) if place is None]
        return [*lines, ("not placed", " ".join(left) or "-")]


def _places(lists: Sequence[Any]) -> Placement | None:
    """Return the places in three lists with numbers from 1; none if they are no such lists."""
    if not all(isinstance(numbers, list) for numbers in lists) or len({*map(len, lists)}) > 1:
        return None
    places: list[Place | None] = []
    for numbers in zip(*lists):
        if numbers == (None, None, None):
            places.append(None)
        elif all(type(number) is int and number >= 1 for number in numbers):
            places.append(Place(*(number - 1 for number in numbers)))
        else:
            return None
    return tuple(places)
