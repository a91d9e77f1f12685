"""Problems on a torus: kinds of fields, running jobs that may be migrated, and their steps.

The models `migration` and `reconfiguration` share the running jobs, and all models of a torus the
kinds.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.boxes.box import TEXT, Box, Grid, Triple, box_of_text
from optsched.boxes.box import shapes as ranked_shapes
from optsched.boxes.free_boxes import anchors
from optsched.fields import (
    LARGEST_FIELD,
    Each,
    Fields,
    Integer,
    Kind,
    WrongValueError,
    first_few,
    flag,
    plain,
    plain_sequence,
)
from optsched.models.fields import Integers, Labels, Numbers, integer_schema
from optsched.models.problem import Problem, Solution, Violation
from optsched.models.schema import declared, field

LONGEST_SIDE = 64
"""Most routers along a dimension, so that a row fits into a machine word."""

FASTEST = 10**6

MOST_NODES = 10**6
"""Largest number of nodes on a router."""

MOST_IN_ALL = MOST_NODES * LONGEST_SIDE**3
"""Number of nodes of the largest torus."""


class Three(Kind):
    """An integer from 1, or a flag, for each of three dimensions."""

    def __init__(self, of: type[int] | type[bool], most: int = 1, expected: str = "") -> None:
        self.of, self.most, self.expected = of, most, f"expected {expected}"
        self.on_file = (
            "three times true or false" if of is bool else f"three integers, 1 to {most:,}"
        )
        self.in_python = f"({', '.join([of.__name__] * 3)})"

    def read(self, value: Any, fields: Fields) -> Any:
        value = plain(value)
        sound = type(value) in (list, tuple) and [*map(type, value)] == [self.of] * 3
        if not sound or (self.of is int and not 1 <= min(value) <= max(value) <= self.most):
            raise self.refused(value)
        return tuple(value)

    def json_schema(self) -> dict[str, Any]:
        item = integer_schema(1, self.most) if self.of is int else {"type": "boolean"}
        return {"type": "array", "items": item, "minItems": 3, "maxItems": 3}


class Boxes(Each):
    """Boxes of a torus, written as texts."""

    on_file = 'list of boxes such as `"2x4x4@3,0,22"`'
    in_python = "sequence of Box or str"
    expected = "expected a list of boxes such as '2x4x4@3,0,22'"
    items: Mapping[str, Any] = {
        "anyOf": [
            {"type": "string", "pattern": f"^{TEXT.pattern}$".replace(r"\d", "[0-9]")},
            {"type": "array", "items": {"type": "integer"}, "minItems": 6, "maxItems": 6},
        ]
    }

    def reader(self, fields: Fields) -> Callable[[Any], Any]:
        known = "torus" in fields and "wrap" in fields
        mistake = Grid(fields["torus"], fields["wrap"]).mistake if known else lambda box: ""

        def read(value: Any) -> Box:
            box = _box(value)
            wrong = "expected a box such as '2x4x4@3,0,22'" if box is None else mistake(box)
            if box is None or wrong:
                raise WrongValueError(f"{value!r}; {wrong}")
            return box

        return read

    def write(self, value: Any) -> Any:
        return [str(box) for box in value]


@declared
class TorusProblem(Problem[Solution]):
    """Base class of the problems on a torus."""

    torus: Triple = field(
        Three(int, LONGEST_SIDE, f"three integers from 1 to {LONGEST_SIDE}"),
        "routers in each dimension",
    )
    wrap: tuple[bool, bool, bool] = field(
        Three(bool, expected="three times true or false"),
        "whether each dimension wraps around (a ring) or not (a line)",
        default=(True, True, True),
        kw_only=True,
    )
    nodes_per_router: int = field(
        Integer(1, MOST_NODES, "expected an integer from 1"),
        "nodes on each router; a job holds whole routers",
        default=1,
        kw_only=True,
    )
    holes: tuple[Box, ...] = field(
        Boxes(),
        "unavailable routers, as boxes that may overlap each other: service nodes, failed nodes, "
        "reservations",
        default=(),
        kw_only=True,
    )
    links: Triple = field(
        Three(int, FASTEST, "three integers from 1"),
        "speed of a link of each dimension, for the bisection of shapes",
        default=(1, 1, 1),
        kw_only=True,
    )
    convex: bool = field(
        flag(),
        "whether boxes have to be convex: each side is a whole ring, or at most half of it, "
        "rounded up, so that shortest paths stay inside",
        default=False,
        kw_only=True,
    )

    @property
    def torus_fields(self) -> dict[str, Any]:
        """The fields that all models of a torus share, for another problem on the same torus."""
        return {f.name: getattr(self, f.name) for f in TorusProblem.schema.fields}

    @property
    def grid(self) -> Grid:
        """The routers and their links."""
        return Grid(self.torus, self.wrap, self.convex)

    def routers_of(self, size: int) -> int:
        """Return the number of routers that hold a job of `size` nodes."""
        return routers_for(size, self.nodes_per_router)


def overlaps(fields: Fields, name: str) -> list[str]:
    """Return a mistake for each running job whose box in field `name` overlaps a job or a hole."""
    grid, holes = Grid(fields["torus"], fields["wrap"]), fields["holes"]
    boxes, labels = fields[name], fields["running_jobs"]
    if grid.are_disjoint(boxes, holes):
        return []
    holder: dict[int, str] = {}
    for hole in holes:
        holder.update(dict.fromkeys(grid.cells(hole).tolist(), "a hole"))
    wrong = []
    for place, box in enumerate(boxes):
        label = f"job {labels[place] if labels is not None else place + 1}"
        cells = grid.cells(box).tolist()
        others = sorted({holder[cell] for cell in cells if cell in holder})
        if others:
            wrong.append(f"{name}[{place}]: {label} in {box} overlaps {' and '.join(others)}")
        holder.update(dict.fromkeys(cells, label))
    return first_few(name, wrong, "jobs")


def routers_for(nodes: int, nodes_per_router: int) -> int:
    """Return the number of routers that hold `nodes` nodes."""
    return math.ceil(nodes / nodes_per_router)


def boxes_of_texts(written: Any) -> tuple[Box | None, ...] | None:
    """Return the boxes of a list of texts or nulls; None for anything else."""
    boxes: list[Box | None] = []
    for text in written if isinstance(written, list) else [0]:
        box = box_of_text(text) if isinstance(text, str) else None
        if box is None and text is not None:
            return None
        boxes.append(box)
    return tuple(boxes)


def _box(value: Any) -> Box | None:
    if type(value) is Box and {*map(type, value)} == {int}:
        return value
    if isinstance(value, str):
        return box_of_text(value)
    numbers = plain_sequence(value)
    if numbers is not None and len(numbers) == 6 and {*map(type, numbers)} == {int}:
        return Box(*numbers)
    return None


FREE, HOLE, ENDING = -1, -2, -3
"""Holders of routers besides jobs with a number."""

PARKED = "parked"
"""The box, on file, of a step that parks a job."""


class Step(NamedTuple):
    """A step of a plan.

    Parameters
    ----------
    job : int
        The running job, from 0.
    box : Box or None
        The new box of the job. None if the job is parked: stopped, with its routers released, until
        a later step restarts it.
    """

    job: int
    box: Box | None


def destinations_of(steps: Sequence[Step]) -> dict[int, Box]:
    """Return the new box of each job that steps move."""
    return {step.job: step.box for step in steps if step.box is not None}


def ordered(
    grid: Grid, running: Sequence[Box], costs: Sequence[int], destinations: Mapping[int, Box]
) -> tuple[Step, ...]:
    """Return the steps that move jobs to their destinations, in a feasible order.

    A move waits for every job that still holds a part of the destination. If moves wait for each
    other in a cycle, the cheapest job of the cycle is parked (of equally cheap jobs the one with
    the lowest number), until no cycle remains. Of the steps that are possible next, moves precede
    parkings, and low numbers precede high ones. No step waits for the large job, which starts last.
    Running boxes and costs are those of all running jobs, destinations of those to move.

    Two jobs that exchange their boxes; the second costs less:

    >>> boxes = (Box(0, 0, 0, 1, 1, 1), Box(1, 0, 0, 1, 1, 1))
    >>> line = Grid((3, 1, 1), (False,) * 3)
    >>> steps = ordered(line, boxes, [7, 5], dict(enumerate(boxes[::-1])))
    >>> [(step.job, str(step.box)) for step in steps]
    [(1, 'None'), (0, '1x1x1@1,0,0'), (1, '1x1x1@0,0,0')]
    """
    jobs = sorted(destinations)
    waiting = [
        (leaving, job)
        for job in jobs
        for leaving in jobs
        if leaving != job and grid.overlap(destinations[job], running[leaving])
    ]
    if not waiting:
        return tuple(Step(job, destinations[job]) for job in jobs)

    import networkx as nx

    parked = []
    released = nx.DiGraph(waiting)
    with suppress(nx.NetworkXNoCycle):
        while True:
            cycle = [job for job, _ in nx.find_cycle(released)]
            job = min(cycle, key=lambda number: (costs[number], number))
            parked.append(job)
            released.remove_edges_from(list(released.out_edges(job)))
    # parking is a separate step, which other jobs wait for in place of the move
    steps = nx.DiGraph()
    steps.add_nodes_from((False, job) for job in jobs)
    for job in parked:
        steps.add_edge((True, job), (False, job))
    steps.add_edges_from(((leaving in parked, leaving), (False, job)) for leaving, job in waiting)
    in_order = nx.lexicographical_topological_sort(steps)
    return tuple(Step(job, None if parking else destinations[job]) for parking, job in in_order)


@declared
class MigratingProblem(TorusProblem[Solution]):
    """Base class of the problems that start jobs on a torus, and may move running ones for them.

    Jobs have numbers: running jobs from 0, then the jobs to start.
    """

    running: tuple[Box, ...] = field(
        Boxes(), "box of each running job; they overlap neither each other nor a hole", symbol="B_j"
    )
    sizes: tuple[int, ...] = field(
        Integers(1, like="running", as_tuple=True),
        "nodes that each running job needs, at most those of its box",
    )
    elapsed: tuple[int, ...] = field(
        Integers(0, like="running", as_tuple=True),
        "seconds that each running job has run; moving a job costs its size times this number",
    )
    movable: tuple[int, ...] | None = field(
        Numbers("running job", of="running", distinct=True),
        "running jobs that may be moved; all if left out",
        symbol="M",
        default=None,
        kw_only=True,
    )
    ending: tuple[Box, ...] = field(
        Boxes(),
        "boxes of jobs that end after the moves, before the jobs to start do: these may take their "
        "routers, moved jobs may not; they overlap neither a running job nor a hole",
        symbol="E",
        default=(),
        kw_only=True,
    )
    shapes: int | None = field(
        Integer(1, LARGEST_FIELD),
        "number of best-ranked shapes that a job may get, all if left out; a running job may keep "
        "its present shape in any case",
        default=None,
        kw_only=True,
    )
    running_jobs: Sequence[str | int] | None = field(
        Labels("running"), "a label for each running job", default=None, kw_only=True
    )

    @staticmethod
    def joint_mistakes(fields: Fields, *, on_file: bool) -> list[str]:
        """Return the mistakes in running jobs and in boxes of ending jobs."""
        running, held = fields["running"], fields["nodes_per_router"]
        names = fields["running_jobs"] or range(1, len(running) + 1)
        jobs = [*enumerate(zip(running, fields["sizes"], fields["elapsed"], names))]
        small = [
            f"sizes[{place}]: job {name} of {size} nodes has {box.volume * held} in {box} "
            f"(nodes_per_router: {held})"
            for place, (box, size, _, name) in jobs
            if size > box.volume * held
        ]
        dear = [
            f"elapsed[{place}]: job {name} costs {size * elapsed} node-seconds; "
            f"expected at most {LARGEST_FIELD}"
            for place, (_, size, elapsed, name) in jobs
            if size * elapsed > LARGEST_FIELD
        ]
        grid = Grid(fields["torus"], fields["wrap"])
        others = grid.free_of([*running, *fields["holes"]])
        wrong = [
            f"ending[{place}]: {box} overlaps a running job or a hole"
            for place, box in enumerate(fields["ending"])
            if not others[grid.routers_of(box)].all()
        ]
        return [
            *first_few("sizes", small), *first_few("elapsed", dear),
            *overlaps(fields, "running"), *first_few("ending", wrong),
        ]  # fmt: skip

    @cached_property
    def costs(self) -> tuple[int, ...]:
        """Cost of moving each running job, in node-seconds."""
        return tuple(size * elapsed for size, elapsed in zip(self.sizes, self.elapsed))

    @cached_property
    def movers(self) -> tuple[int, ...]:
        """The running jobs that may be moved."""
        return tuple(range(len(self.running))) if self.movable is None else self.movable

    def admitted(self, size: int) -> tuple[Triple, ...]:
        """Return the extents that a job of `size` nodes may get, the best first."""
        return ranked_shapes(self.routers_of(size), self.grid, self.links)[: self.shapes]

    def extents(self, job: int) -> tuple[Triple, ...]:
        """Return the extents that a running job may have, the best first, the present one last."""
        routers = self.routers_of(self.sizes[job])
        return extents_of(routers, self.running[job].extent, self.grid, self.links, self.shapes)

    @abstractmethod
    def choices(self) -> Iterator[tuple[int, tuple[Triple, ...], Box | None]]:
        """Yield the jobs that get a box, those to start first: number, extents, present box."""

    @abstractmethod
    def named(self, job: int) -> str:
        """Return the name of a job, of `HOLE` or of `ENDING` for messages."""

    def name_of_running(self, job: int) -> str:
        """Return the name of a running job, of `HOLE` or of `ENDING` for messages."""
        if job in (HOLE, ENDING):
            return "a hole" if job == HOLE else "a job that ends"
        return f"job {job + 1 if self.running_jobs is None else self.running_jobs[job]}"

    def place_room(self) -> NDArray[np.bool_]:
        """Return the mask of routers that jobs to start may take, shape `torus`."""
        kept = set(range(len(self.running))) - set(self.movers)
        return self.grid.free_of([*self.holes, *(self.running[job] for job in sorted(kept))])

    def room(self) -> NDArray[np.bool_]:
        """Return the mask of routers that moved jobs may take, shape `torus`."""
        return self.place_room() & self.grid.free_of(self.ending)

    def steps(self, destinations: Mapping[int, Box]) -> tuple[Step, ...]:
        """Return the steps that move jobs to their new boxes, in the order of `ordered`."""
        return ordered(self.grid, self.running, self.costs, destinations)

    def program_size(self) -> tuple[int, int]:
        """Return the number of variables of the program, and an upper bound on its entries."""
        choices = list(self.choices())
        variables = entries = 0
        for room, starts in ((self.place_room(), True), (self.room(), False)):
            extents = [e for _, own, present in choices if (present is None) == starts for e in own]
            count = {extent: len(anchors(room, self.grid, extent)) for extent in set(extents)}
            variables += sum(count[extent] for extent in extents)
            entries += sum(count[extent] * (math.prod(extent) + 1) for extent in extents)
        return variables, entries

    def cost_of(self, steps: Sequence[Step]) -> int:
        """Return the cost of the moved jobs; parking is free of charge."""
        moved = {job for job, box in steps if box is not None}
        return sum(self.sizes[job] * self.elapsed[job] for job in moved)

    def executed(self, steps: Sequence[Step]) -> tuple[NDArray[np.int64], list[Violation]]:
        """Execute steps, then end jobs; return the holder of each router, and the violations."""
        holder = np.full(self.torus, FREE)
        for hole in self.holes:
            holder[self.grid.routers_of(hole)] = HOLE
        for box in self.ending:
            holder[self.grid.routers_of(box)] = ENDING
        for job, box in enumerate(self.running):
            holder[self.grid.routers_of(box)] = job
        found = []
        parked, moved = set(), set()
        for number, (job, to) in enumerate(steps, start=1):
            if not 0 <= job < len(self.running):
                found.append(Violation("job", f"step {number} is of job {job + 1}"))
                continue
            name = self.named(job)
            if self.movable is not None and job not in self.movable:
                found.append(Violation("movable", f"{name} may not be moved"))
            if job in moved or (to is None and job in parked):
                found.append(Violation("once", f"{name} again, in step {number}"))
                continue
            holder[holder == job] = FREE
            if to is None:
                parked.add(job)
                continue
            moved.add(job)
            if to == self.running[job]:
                found.append(Violation("move", f"{name} is moved to where it was"))
            present = self.running[job].extent
            found += self.placed(holder, job, to, self.sizes[job], present)
        found += [
            Violation("parked", f"{self.named(job)} is not restarted")
            for job in sorted(parked - moved)
        ]
        holder[holder == ENDING] = FREE
        return holder, found

    def placed(
        self,
        # The job that holds each router, `FREE` or `HOLE`; the box is written into it
        holder: NDArray[np.int64],
        job: int,
        box: Box,  # the box, of the extent `present` or of a shape that the job may get
        size: int,  # nodes of the job
        present: Triple | None = None,  # extent of the present box of a running job
    ) -> list[Violation]:
        """Give a job of `size` nodes a box, and return the violations."""
        name, mistake = self.named(job), self.grid.mistake(box)
        if mistake:
            return [Violation("grid", f"{name} in {box}: {mistake}")]
        found = []
        ranked = ranked_shapes(-(-size // self.nodes_per_router), self.grid, self.links)
        if box.extent not in ranked[: self.shapes] and box.extent != present:
            found.append(Violation("shape", f"{name} in {box}, not a shape that it may take"))
        inside = self.grid.routers_of(box)
        others = sorted(set(holder[inside].ravel().tolist()) - {FREE})
        if others:
            overlapped = " and ".join(self.named(other) for other in others)
            found.append(Violation("overlap", f"{name} in {box} meets {overlapped}"))
        holder[inside] = job
        return found

    def describe_torus(self) -> list[tuple[str, str]]:
        """Return the torus and its running jobs as lines."""
        held = sum(box.volume for box in self.running)
        usable = int(self.grid.free_of(self.holes).sum())
        share = held / usable if usable else 0.0
        sides = "x".join(map(str, self.torus))
        return [
            ("torus", f"{sides}, nodes per router: {self.nodes_per_router}"),
            ("running", f"{len(self.running)} jobs on {share:.1%} of {usable} routers"),
            ("movable", f"{len(self.movers)} jobs"),
            *([("ending", f"{len(self.ending)} jobs")] if self.ending else []),
        ]

    def describe_program(self) -> tuple[str, str]:
        """Return the size of the program as a line."""
        variables, entries = self.program_size()
        return ("program", f"{variables} variables, up to {entries} entries")

    def describe_steps(self, steps: Sequence[Step]) -> list[tuple[str, str]]:
        """Return steps as lines."""
        lines = []
        parked = set()
        for number, (job, box) in enumerate(steps, start=1):
            name = f"{self.named(job)} ({self.sizes[job]})"
            if box is None:
                text = f"park {name}, give back {self.running[job]}"
                parked.add(job)
            elif job in parked:
                text = f"restart {name} in {box}"
            else:
                text = f"move {name} from {self.running[job]} to {box}"
            lines.append((f"step {number}", text))
        return lines

    @staticmethod
    def steps_to_json(steps: Sequence[Step]) -> list[list[int | str]]:
        """Return steps in order, jobs from 1."""
        return [[job + 1, PARKED if box is None else str(box)] for job, box in steps]

    @staticmethod
    def steps_from_json(written: Any, mistakes: list[str]) -> tuple[Step, ...]:
        """Return the steps written by `steps_to_json`; note the mistake of another form."""
        steps = [_step(step) for step in written] if isinstance(written, list) else [None]
        if None in steps:
            expected = f"expected a list of steps such as [3, '2x4x4@3,0,22'] or [3, {PARKED!r}]"
            mistakes.append(f"steps: {expected}")
        return tuple(step for step in steps if step is not None)


def extents_of(
    routers: int, present: Triple, grid: Grid, links: Triple, most: int | None
) -> tuple[Triple, ...]:
    """Return the `most` best extents of a job, and its present one last unless among them."""
    ranked = ranked_shapes(routers, grid, links)[:most]
    return ranked if present in ranked else (*ranked, present)


def _step(written: Any) -> Step | None:
    if not isinstance(written, list) or len(written) != 2 or type(written[0]) is not int:
        return None
    if written[1] == PARKED:
        return Step(written[0] - 1, None)
    box = box_of_text(written[1]) if isinstance(written[1], str) else None
    return None if box is None else Step(written[0] - 1, box)
