"""The partition knapsack: waiting jobs into free boxes of a torus, layer by layer.

Model page: ``models/partition-mkp/README.md``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from optsched.boxes.box import Box, Grid
from optsched.boxes.layer_shapes import layer_shape
from optsched.errors import InputError
from optsched.models.partition_mkp.solution import (
    Place,
    Placement,
    ill_led,
    misplaced,
    overlapping_bins,
    stacked,
)
from optsched.models.problem import Violation
from optsched.models.schema import Fields, Integers, Labels, declared, field
from optsched.models.torus_fields import Boxes, TorusProblem, routers_for
from optsched.registry import models


@models.register("partition-mkp")
@declared
class PartitionMKP(TorusProblem[Placement]):
    """0-1 multiple knapsack of a scan window of jobs into free boxes (Li et al. 2015, section 4).

    The weight of a job depends on the bin: it takes whole XZ layers of it, or a rectangle inside
    one, and has this box to itself. Inside a layer rectangles stand on shelves.

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

    bins: tuple[Box, ...] = field(
        Boxes(), "free boxes, apart from each other and from the holes", symbol="A x B x C"
    )
    waiting: tuple[int, ...] = field(
        Integers(1, as_tuple=True),
        "size of each waiting job in nodes, in the order of the queue; n_j is in routers, "
        "rounded up",
        symbol="n_j",
    )
    profits: tuple[int, ...] = field(
        Integers(0, like="waiting", as_tuple=True),
        "profit of placing each job; its size in nodes if left out",
        symbol="p_j",
        default=None,
        filled=lambda fields: fields["waiting"],
    )
    waiting_jobs: Sequence[str | int] | None = field(
        Labels("waiting"), "a label for each waiting job", default=None
    )

    sense = "max"
    default_solver = "migration-based"

    @staticmethod
    def joint_mistakes(fields: Fields, *, on_file: bool) -> list[str]:
        """Return the bins that overlap another one or a hole."""
        grid = Grid(fields["torus"], fields["wrap"])
        return overlapping_bins(fields["bins"], fields["holes"], grid)

    @property
    def size(self) -> str:
        """Jobs x bins."""
        return f"{len(self.waiting)}x{len(self.bins)}"

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
