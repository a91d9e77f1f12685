"""The partition knapsack: free boxes of a torus filled with waiting jobs, layer by layer.

Model page: ``models/partition-mkp/README.md``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from optsched.arrays import Ints
from optsched.boxes._rows import NONE, Sides, Wrap, run_of
from optsched.boxes.box import Box, Grid, Triple
from optsched.boxes.layer_shapes import find_layer_shape, layer_shape
from optsched.compiled import kernel
from optsched.errors import InputError
from optsched.fields import Fields, first_few
from optsched.models.fields import Integers, from_one
from optsched.models.problem import Violation, listed, named, wrong_length
from optsched.models.program import Formulation, Program, ProgramBuilder, formulations
from optsched.models.schema import declared, field, labels
from optsched.models.torus import Boxes, TorusProblem
from optsched.registry import models

__all__ = ["PartitionMKP", "Place", "Placement"]


BIN, LAYER, SHELF = 0, 1, 2
"""Columns of places."""


@kernel(allocates=False)
def leads(leader: int, job: int, shapes: Ints) -> bool:
    """Return whether a job may be led by another: one not lower, or itself if it holds layers."""
    if max(shapes[leader, 1], shapes[job, 1]) > 1 and leader != job:
        return False
    high, higher = shapes[job, 2], shapes[leader, 2]
    return higher > high or (higher == high and leader <= job)


@kernel
def is_feasible(
    bins: Ints,  # the bins: x, y, z, nx, ny, nz, shape (bins, 6)
    wrap: Wrap,
    # Routers of the torus in each dimension, and the longest sides of a box besides these
    sides: Sides,
    longest: Sides,
    routers: Ints,
    # Bin, layer and shelf of each job, -1 for a job that is not placed, shape (jobs, 3)
    places: Ints,
) -> bool:
    """Return whether all leaders lead, and the boxes of placed jobs are disjoint in their bins."""
    jobs = len(routers)
    shapes = np.zeros((jobs, 3), dtype=np.int64)
    for job in range(jobs):
        b = places[job, BIN]
        if b == -1:
            continue
        if not 0 <= b < len(bins):
            return False
        if not find_layer_shape(routers[job], bins[b, 3:], sides, longest, shapes[job]):
            return False
    for job in range(jobs):
        if places[job, BIN] == -1:
            continue
        layer, shelf = places[job, LAYER], places[job, SHELF]
        if not (0 <= layer < jobs and 0 <= shelf < jobs):
            return False
        for column in range(3):
            if places[shelf, column] != (shelf if column == SHELF else places[job, column]):
                return False
            if places[layer, column] != (places[job, BIN] if column == BIN else layer):
                return False
        if not (leads(shelf, job, shapes) and leads(layer, job, shapes)):
            return False
    # corners in the bins: whole layers first, then shared ones, both by number
    floor = np.zeros(len(bins), dtype=np.int64)
    corners = np.zeros((jobs, 3), dtype=np.int64)
    for shared in (False, True):
        for job in range(jobs):
            b = places[job, BIN]
            if b != -1 and places[job, LAYER] == job and (shapes[job, 1] == 1) == shared:
                corners[job, 1] = floor[b]
                floor[b] += shapes[job, 1]
    # shelves of a layer by height, then by number
    for job in range(jobs):
        if places[job, BIN] != -1 and places[job, SHELF] == job and shapes[job, 1] == 1:
            corners[job, 1] = corners[places[job, LAYER], 1]
            for other in range(jobs):
                is_shelf = places[other, BIN] != -1 and places[other, SHELF] == other
                is_beside = places[other, LAYER] == places[job, LAYER] and other != job
                if is_shelf and is_beside and leads(other, job, shapes):
                    corners[job, 2] += shapes[other, 2]
    # jobs of a shelf by number
    width = np.zeros(jobs, dtype=np.int64)
    taken = np.zeros((sides[0], sides[1]), dtype=np.uint64)
    at = np.zeros(3, dtype=np.int64)
    for job in range(jobs):
        b, shelf = places[job, BIN], places[job, SHELF]
        if b == -1:
            continue
        at[0], at[1], at[2] = width[shelf], corners[shelf, 1], corners[shelf, 2]
        width[shelf] += shapes[job, 0]
        for axis in range(3):
            length, side = shapes[job, axis], sides[axis]
            if at[axis] + length > bins[b, 3 + axis]:
                return False
            at[axis] = (bins[b, axis] + at[axis]) % side
            if length > side or (at[axis] > 0 and length == side):
                return False
            if at[axis] + length > side and not wrap[axis]:
                return False
        run = run_of(at[2], shapes[job, 2], sides[2])
        for x in range(at[0], at[0] + shapes[job, 0]):
            for y in range(at[1], at[1] + shapes[job, 1]):
                row = taken[x % sides[0], y % sides[1]]
                if row & run != NONE:
                    return False
                taken[x % sides[0], y % sides[1]] = row | run
    return True


class Place(NamedTuple):
    """The place of a job: a bin, a layer of the bin, and a shelf of the layer.

    Parameters
    ----------
    bin : int
        The bin, from 0.
    layer : int
        The leader of the layer, a job from 0: the leader of the first of the highest shelves. A job
        that holds whole layers leads these.
    shelf : int
        The leader of the shelf, a job from 0: the first of the highest jobs of the shelf.
    """

    bin: int
    layer: int
    shelf: int


UNPLACED = Place(-1, -1, -1)

Placement = tuple[Place | None, ...]
"""The place of each job in order; None for a job that is not placed."""


@models.register("partition-mkp")
@declared
class PartitionMKP(TorusProblem[Placement]):
    """0-1 multiple knapsack of a scan window of jobs into free boxes (Li et al. 2015, section 4).

    The weight of a job depends on the bin: the job holds a box of whole XZ layers, or a rectangle
    inside one layer. Inside a layer, rectangles stand on shelves.

    Raises
    ------
    InputError
        If a field is not as above, a bin overlaps another or a hole, or lengths do not match; the
        message lists all mistakes.

    Notes
    -----
    A solution is a tuple with the `Place` of each job, or None for a job that is not placed; the
    method `boxes` returns the boxes.

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
        Boxes(), "free boxes, which overlap neither each other nor a hole", symbol="A x B x C"
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
    waiting_jobs: Sequence[str | int] | None = labels("waiting", "a label for each waiting job")

    sense = "max"
    default_solver = "migration-based"

    @staticmethod
    def joint_mistakes(fields: Fields, *, on_file: bool) -> list[str]:
        """Return a mistake for each bin that overlaps another one or a hole."""
        bins, holes, grid = fields["bins"], fields["holes"], Grid(fields["torus"], fields["wrap"])
        if grid.are_disjoint(bins, holes):
            return []
        taken: dict[int, list[str]] = {}
        for one, other in np.argwhere(grid.meets(bins, [*bins, *holes])).tolist():
            if other < one:
                taken.setdefault(one, []).append(f"bin {other + 1} in {bins[other]}")
            elif other >= len(bins):
                taken.setdefault(one, []).append(f"a hole in {holes[other - len(bins)]}")
        wrong = [
            f"bins[{one}]: bin {one + 1} in {bins[one]} overlaps {' and '.join(others)}"
            for one, others in taken.items()
        ]
        return first_few("bins", wrong, "bins")

    @property
    def size(self) -> str:
        """Jobs x bins."""
        return f"{len(self.waiting)}x{len(self.bins)}"

    @cached_property
    def routers(self) -> tuple[int, ...]:
        """Number of routers of each job."""
        return tuple(map(self.routers_of, self.waiting))

    @cached_property
    def bin_table(self) -> Ints:
        """The bins as rows x, y, z, nx, ny, nz."""
        numbers = np.fromiter(chain.from_iterable(self.bins), np.int64, 6 * len(self.bins))
        return numbers.reshape(-1, 6)

    def idle(self, job: int, number: int) -> int | None:
        """Return the number of routers that a job leaves idle in a bin, None if it does not fit."""
        shape = layer_shape(self.routers[job], self.bins[number].extent, self.grid)
        return None if shape is None else shape[0] * shape[1] * shape[2] - self.routers[job]

    def boxes(self, solution: Placement) -> tuple[Box | None, ...]:
        """Return the box of each job, None for one that is not placed or does not fit its bin.

        From the first layer of a bin upwards come jobs with whole layers, by number, then shared
        layers, by the number of their leader. In a layer, shelves follow each other along Z, the
        highest first, and of equal shelves that of the lowest leader; on a shelf, jobs follow each
        other along X by number.
        """
        grid = self.grid
        inside: dict[int, list[_Job]] = {}
        for job, (need, place) in enumerate(zip(self.routers, solution)):
            if place is not None and 0 <= place.bin < len(self.bins):
                shape = layer_shape(need, self.bins[place.bin].extent, grid)
                if shape is not None:
                    inside.setdefault(place.bin, []).append(_Job(job, place, shape))
        boxes: list[Box | None] = [None] * len(solution)
        for number, jobs in inside.items():
            for job, corner, shape in _corners(jobs):
                x, y, z = (
                    (at + offset) % side
                    for at, offset, side in zip(self.bins[number].anchor, corner, self.torus)
                )
                boxes[job] = Box(x, y, z, *shape)
        return tuple(boxes)

    def objective(self, solution: Placement) -> int:
        """Return the profit of the placed jobs, equation (1)."""
        return sum(profit for profit, place in zip(self.profits, solution) if place is not None)

    def violations(self, solution: Placement) -> list[Violation]:
        """Check the leaders of layers and shelves, and the boxes of the places."""
        if found := wrong_length(solution, len(self.waiting)):
            return found
        boxes = self.boxes(solution)
        for job, (place, box) in enumerate(zip(solution, boxes), start=1):
            if place is None or box is not None:
                continue
            if not 0 <= place.bin < len(self.bins):
                found.append(Violation("bin", f"job {job} is put into bin {place.bin + 1}"))
                continue
            detail = f"job {job} takes {self.routers[job - 1]} routers, "
            detail += f"bin {place.bin + 1} is {self.bins[place.bin]}"
            found.append(Violation("size", detail))
        return found + _ill_led(solution, boxes) + _misplaced(self, solution, boxes)

    def passes_quick_check(self, solution: Placement) -> bool:
        """Check a placement by a kernel."""
        if type(solution) is not tuple or len(solution) != len(self.waiting):
            return False
        rows = [UNPLACED if place is None else place for place in solution]
        numbers = [*chain.from_iterable(rows)]
        if not ({*map(type, rows)} <= {Place} and {*map(type, numbers)} <= {int}):
            return False
        if numbers[:: len(UNPLACED)].count(UNPLACED.bin) > solution.count(None):
            return False
        places = np.array(numbers, dtype=np.int64).reshape(-1, 3)
        routers, grid = np.array(self.routers, dtype=np.int64), self.grid
        bins = self.bin_table
        return bool(is_feasible(bins, grid.wrap, grid.shape, grid.longest, routers, places))

    def solution_to_json(self, solution: Placement) -> dict[str, Any]:
        """Return bins, leaders of layers and shelves from 1, and boxes; null if not placed."""
        written: dict[str, Any] = {
            f"{field}_of_job": [None if place is None else place[n] + 1 for place in solution]
            for n, field in enumerate(Place._fields)
        }
        boxes = self.boxes(solution)
        written["box_of_job"] = [None if box is None else str(box) for box in boxes]
        return written

    def solution_from_json(self, fields: Mapping[str, Any]) -> Placement:
        """Return the placement written by `solution_to_json`; boxes are optional."""
        given = fields if isinstance(fields, Mapping) else {}
        names = [f"{field}_of_job" for field in Place._fields]
        places = _places([from_one(given.get(name)) for name in names])
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
        """Return the bins with their jobs and boxes, and the waiting jobs."""
        jobs = named(self.waiting_jobs, self.waiting)
        routers = "x".join(map(str, self.torus))
        lines = [("torus", f"{routers} routers, nodes on each: {self.nodes_per_router}")]
        if solution is None:
            return [*lines, ("bins", listed(map(str, self.bins))), ("waiting", listed(jobs))]
        boxes = self.boxes(solution)
        for number, box in enumerate(self.bins):
            inside = [
                f"{job} {at}"
                for job, place, at in zip(jobs, solution, boxes)
                if place is not None and place.bin == number
            ]
            if inside:
                lines.append((f"bin {number + 1}: {box}", ", ".join(inside)))
        left = (job for job, place in zip(jobs, solution) if place is None)
        return [*lines, ("not placed", listed(left))]


def _places(lists: Sequence[tuple[int | None, ...] | None]) -> Placement | None:
    """Return the places in lists of bins, layers and shelves; None if these do not match."""
    columns = [numbers for numbers in lists if numbers is not None]
    if len(columns) < len(lists) or len({*map(len, columns)}) > 1:
        return None
    places: list[Place | None] = []
    for numbers in zip(*columns):
        known = [number for number in numbers if number is not None]
        if 0 < len(known) < len(numbers):
            return None
        places.append(Place(*known) if known else None)
    return tuple(places)


class _Job(NamedTuple):
    number: int
    place: Place
    shape: Triple


def _corners(jobs: Sequence[_Job]) -> Iterator[tuple[int, Triple, Triple]]:
    """Yield the jobs of a bin, the offsets of their boxes from its anchor, and their shapes."""
    floor = 0
    layers: dict[int, dict[int, list[_Job]]] = {}
    for job in jobs:
        if job.shape[1] > 1:
            yield job.number, (0, floor, 0), job.shape
            floor += job.shape[1]
        else:
            shelves = layers.setdefault(job.place.layer, {})
            shelves.setdefault(job.place.shelf, []).append(job)
    for layer in sorted(layers):
        z = 0
        for height, _, shelf in sorted(
            (-max(job.shape[2] for job in shelf), leader, shelf)
            for leader, shelf in layers[layer].items()
        ):
            x = 0
            for job in shelf:
                yield job.number, (x, floor, z), job.shape
                x += job.shape[0]
            z -= height
        floor += 1


def _ill_led(places: Placement, boxes: Sequence[Box | None]) -> list[Violation]:
    """Return the violations of the rule for leaders of layers and shelves."""
    found = []
    for job, (place, box) in enumerate(zip(places, boxes)):
        if place is None or box is None:
            continue
        for noun, leader, expected in (
            ("shelf", place.shelf, place),
            ("layer", place.layer, (place.bin, place.layer, place.layer)),
        ):
            leads = boxes[leader] if 0 <= leader < len(places) else None
            if leads is None or places[leader] != expected:
                wrong = "leads none there"
            elif max(box.ny, leads.ny) > 1 and leader != job:
                wrong = "cannot share it: one of them has layers of its own"
            elif (leads.nz, -leader) < (box.nz, -job):
                wrong = "is lower, or behind it and not higher"
            else:
                continue
            detail = f"job {job + 1} is in the {noun} of job {leader + 1}, which {wrong}"
            found.append(Violation("leader", detail))
    return found


def _misplaced(
    problem: PartitionMKP, places: Placement, boxes: Sequence[Box | None]
) -> list[Violation]:
    """Return the violations of the boxes of jobs.

    A box must lie inside its bin, as whole layers or inside one layer, have enough routers for the
    job, share no router with another box, and be convex if boxes have to be.
    """
    found, grid = [], problem.grid
    placed = [
        (job, problem.bins[place.bin], box)
        for job, (place, box) in enumerate(zip(places, boxes))
        if place is not None and box is not None
    ]
    for job, home, box in placed:
        text = f"job {job + 1} in {box}"
        beyond = any(
            (at - b) % side + n > m
            for at, b, side, n, m in zip(box, home, grid.shape, box.extent, home.extent)
        )
        if beyond or grid.mistake(box):
            found.append(Violation("inside", f"{text} is not inside its bin {home}"))
        if box.ny > 1 and (box.nx, box.nz) != (home.nx, home.nz):
            found.append(Violation("layers", f"{text} takes parts of several layers of {home}"))
        if not grid.admits(box.extent):
            found.append(Violation("convex", f"{text} is not convex"))
        if box.volume < problem.routers[job]:
            found.append(Violation("size", f"{text} takes {problem.routers[job]} routers"))
    given = [box for _, _, box in placed]
    pairs = [] if grid.are_disjoint(given) else np.argwhere(grid.meets(given, given)).tolist()
    for one, other in pairs:
        if one < other:
            both = [f"job {placed[number][0] + 1} in {given[number]}" for number in (one, other)]
            found.append(Violation("overlap", f"{both[0]} shares routers with {both[1]}"))
    return found


WHOLE, STANDS, LEADS = range(3)
"""Kinds of variables: a job holds whole layers; stands on a leader's shelf; leads a shelf in a
leader's layer."""


class Variables(NamedTuple):
    """The variables of the program, sorted by bin, kind, leader and job.

    There are variables for possible pairs only: the job fits into the bin, follows its leader in
    the order of heights, and both fit side by side. The kind is `WHOLE` (w on the model's page),
    `STANDS` (x) or `LEADS` (z). A job that leads, or holds whole layers, is its own leader.
    """

    bin: Ints
    kind: Ints
    leader: Ints
    job: Ints

    def name(self, variable: int) -> str:
        """Return the name of a variable."""
        of_bin, kind, leader, job = (int(array[variable]) for array in self)
        symbol, of = (("w", ""), ("x", f"_shelf{leader + 1}"), ("z", f"_layer{leader + 1}"))[kind]
        return f"{symbol}_bin{of_bin + 1}{of}_job{job + 1}"

    def keys(self, jobs: int) -> Ints:
        """Return a unique number for each variable, ascending."""
        keys: Ints = ((self.bin * 3 + self.kind) * jobs + self.leader) * jobs + self.job
        return keys


@formulations.register("partition-mkp")
class PartitionFormulation(Formulation[PartitionMKP, Placement]):
    """Equations (1) to (7) of the model's page.

    Levels are those of the two-level packing model of Lodi, Martello and Vigo: the first of the
    highest jobs of a shelf leads the shelf, and the first of the highest shelves of a layer leads
    the layer. This breaks the symmetry between shelves and between layers.
    """

    @cached_property
    def program(self) -> Program:
        """The program, with variables in the order of `Variables`."""
        problem = self.problem
        of_bin, kind, leader, job = self.variables
        jobs, bins = len(problem.waiting), len(problem.bins)
        extents = np.array(problem.bins, dtype=np.int64).reshape(-1, 6)[:, 3:]
        wide, deep, high = self._shapes[of_bin, job].T
        whole, shelf, layer, leads = kind == WHOLE, kind == STANDS, kind == LEADS, leader == job
        # rows of a bin and a job, which either leads or stands on a shelf
        led, stands = of_bin * jobs + leader, of_bin * jobs + job
        profits = np.array(problem.profits, dtype=np.int64)
        builder = ProgramBuilder("max")
        v = builder.variables(
            self.variables.name, range(len(job)), objective=np.where(layer, 0, profits[job])
        )
        builder.ragged_rows("once_job{}", (jobs,), (1, v[~layer], job[~layer]), at_most=1)
        first = layer & leads
        builder.ragged_rows(
            "layers_bin{}",
            (bins,),
            (deep[whole], v[whole], of_bin[whole]),
            (1, v[first], of_bin[first]),
            at_most=extents[:, 1],
        )
        for name, here, size, most in (
            ("width_bin{}_job{}", shelf, wide, extents[of_bin, 0]),
            ("height_bin{}_job{}", layer, high, extents[of_bin, 2]),
        ):
            beside = here & ~leads
            first = here & leads & np.isin(led, led[beside])
            builder.ragged_rows(
                name,
                (bins, jobs),
                (size[beside], v[beside], led[beside]),
                ((size - most)[first], v[first], led[first]),
                at_most=0,
            )
        first = shelf & leads
        builder.ragged_rows(
            "stands_bin{}_job{}",
            (bins, jobs),
            (1, v[layer], stands[layer]),
            (-1, v[first], led[first]),
            equal=0,
        )
        return builder.build()

    def decode(self, x: Ints) -> Placement:
        """Return the places of a vector."""
        chosen = np.flatnonzero(x)
        rows = list(zip(*(array[chosen].tolist() for array in self.variables)))
        layer_of = {(b, job): leader for b, kind, leader, job in rows if kind == LEADS}
        places: list[Place | None] = [None] * len(self.problem.waiting)
        for b, kind, leader, job in rows:
            if kind != LEADS:
                places[job] = Place(b, layer_of.get((b, leader), leader), leader)
        return tuple(places)

    def encode(self, solution: Placement) -> Ints:
        """Return the 0-1 vector of a placement."""
        wanted = []
        for job, place in enumerate(solution):
            if place is not None:
                b, layer, shelf = place
                wanted.append((b, STANDS, shelf, job))
                if shelf == job:
                    wanted += [(b, LEADS, layer, job), (b, WHOLE, job, job)]
        jobs = len(solution)
        chosen = Variables(*np.array(wanted, dtype=np.int64).reshape(-1, 4).T)
        return np.isin(self.variables.keys(jobs), chosen.keys(jobs)).astype(np.int64)

    @cached_property
    def variables(self) -> Variables:
        """The variables of the program."""
        parts = [np.empty((4, 0), dtype=np.int64)]
        for number, (box, shapes) in enumerate(zip(self.problem.bins, self._shapes)):
            wide, deep, high = shapes.T
            whole = np.flatnonzero(deep > 1)
            parts.append(_part(number, WHOLE, whole, whole))
            inside = np.flatnonzero(deep == 1)
            inside = inside[np.argsort(-high[inside], kind="stable")]
            for kind, length, longest in (
                (STANDS, wide[inside], box.nx),
                (LEADS, high[inside], box.nz),
            ):
                fits = length[:, None] + length[None] <= longest
                ahead, behind = np.nonzero(np.triu(fits, 1) | np.eye(len(inside), dtype=bool))
                leader, job = inside[ahead], inside[behind]
                order = np.lexsort((job, leader))
                parts.append(_part(number, kind, leader[order], job[order]))
        return Variables(*np.concatenate(parts, axis=1))

    @cached_property
    def _shapes(self) -> Ints:
        """The shape of each job in each bin, 0 where it does not fit, shape (bins, jobs, 3)."""
        problem = self.problem
        shapes = [
            layer_shape(routers, box.extent, problem.grid) or (0, 0, 0)
            for box in problem.bins
            for routers in problem.routers
        ]
        return np.array(shapes, dtype=np.int64).reshape(len(problem.bins), len(problem.routers), 3)


def _part(number: int, kind: int, leader: Ints, job: Ints) -> Ints:
    return np.stack((np.full_like(job, number), np.full_like(job, kind), leader, job))
