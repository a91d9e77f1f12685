"""Migration: a box for a large job on a torus, by moving running jobs at the least cost.

Model page: ``models/migration/README.md``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.boxes.box import Box, Grid, Triple, box_of_text
from optsched.boxes.free_boxes import anchors
from optsched.boxes.shapes import shapes as ranked_shapes
from optsched.errors import InputError
from optsched.models.fields import LARGEST_FIELD
from optsched.models.migration.job_fields import Movable, wrong_endings, wrong_jobs
from optsched.models.migration.solution import Plan, Step, ordered
from optsched.models.problem import Violation
from optsched.models.schema import Fields, Integer, Integers, Label, declared, field, labels
from optsched.models.torus_fields import (
    LONGEST_SIDE,
    MOST_NODES,
    Boxes,
    TorusProblem,
    overlaps,
    routers_for,
)
from optsched.registry import models

if TYPE_CHECKING:
    from numpy.typing import NDArray

FREE, HOLE, LARGE, ENDING = -1, -2, -3, -4
"""Holders of routers besides running jobs."""

PARKED = "parked"
"""The box, on file, of a step that parks a job."""

MOST_IN_ALL = MOST_NODES * LONGEST_SIDE**3
"""Number of nodes of the largest torus."""


@models.register("migration")
@declared
class Migration(TorusProblem[Plan]):
    """A large job that needs a box, and running jobs that may be moved to free one.

    Raises
    ------
    InputError
        If running jobs overlap each other, an ending one or a hole, do not fit into their boxes or
        cost more than 10^12 node-seconds, or lengths do not match; the message lists all mistakes.

    References
    ----------
    K. Li, M. Malawski, J. Nabrzyski, "Topology-aware scheduling on Blue Waters with proactive queue
    scanning and migration-based job placement", JSSPP 2015, section 6.

    Examples
    --------
    >>> problem = Migration((4, 1, 1), ["1x1x1@1,0,0"], [1], [60], 2, wrap=(False,) * 3)
    >>> problem.violations(Plan((), Box(2, 0, 0, 2, 1, 1)))
    []
    >>> problem.violations(Plan((), Box(0, 0, 0, 2, 1, 1)))
    [Violation(constraint='overlap', detail='the large job in 2x1x1@0,0,0 meets job 1')]
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
    incoming: int = field(Integer(1, MOST_IN_ALL), "nodes of the large job, in whole routers")
    movable: tuple[int, ...] | None = field(
        Movable(), "running jobs that may be moved; all if left out", symbol="M", default=None
    )
    ending: tuple[Box, ...] = field(
        Boxes(),
        "boxes of jobs that end before the large job starts: the large job may take their routers, "
        "moved jobs may not; they overlap neither a running job nor a hole",
        symbol="E",
        default=(),
        kw_only=True,
    )
    shapes: int | None = field(
        Integer(1, LARGEST_FIELD),
        "number of best-ranked shapes that the large job and moved jobs may have, all if left out; "
        "a running job may keep its present shape in any case",
        default=None,
    )
    running_jobs: Sequence[str | int] | None = labels("running", "a label for each running job")
    incoming_job: str | int | None = field(Label(), "a label for the large job", default=None)

    sense = "min"
    default_solver = "position-search"

    @staticmethod
    def joint_mistakes(fields: Fields, *, on_file: bool) -> list[str]:
        """Return a mistake for each running job with an overlap, a small box or a large cost."""
        return [*wrong_jobs(fields), *overlaps(fields, "running"), *wrong_endings(fields)]

    @property
    def size(self) -> str:
        """Running jobs, routers of the large job and torus: ``212+550@24x24x24``."""
        sides = "x".join(map(str, self.torus))
        return f"{len(self.running)}+{self.routers}@{sides}"

    @property
    def routers(self) -> int:
        """Number of routers of the large job."""
        return routers_for(self.incoming, self.nodes_per_router)

    @cached_property
    def costs(self) -> tuple[int, ...]:
        """Cost of moving each running job, in node-seconds."""
        return tuple(size * elapsed for size, elapsed in zip(self.sizes, self.elapsed))

    @cached_property
    def movers(self) -> tuple[int, ...]:
        """The running jobs that may be moved."""
        return tuple(range(len(self.running))) if self.movable is None else self.movable

    @cached_property
    def place_extents(self) -> tuple[Triple, ...]:
        """The extents that the large job may have, the best first."""
        return ranked_shapes(self.routers, self.grid, self.links)[: self.shapes]

    def extents(self, job: int) -> tuple[Triple, ...]:
        """Return the extents that a running job may have, the best first, the present one last."""
        routers = routers_for(self.sizes[job], self.nodes_per_router)
        present = self.running[job].extent
        return extents_of(routers, present, self.grid, self.links, self.shapes)

    def place_room(self) -> NDArray[np.bool_]:
        """Return the mask of routers that the large job may take, shape `torus`.

        They are free, or held by movable or ending jobs.
        """
        kept = set(range(len(self.running))) - set(self.movers)
        return self.grid.free_of([*self.holes, *(self.running[job] for job in sorted(kept))])

    def room(self) -> NDArray[np.bool_]:
        """Return the mask of routers that are free or held by movable jobs, shape `torus`."""
        return self.place_room() & self.grid.free_of(self.ending)

    def plan(self, destinations: Mapping[int, Box], place: Box | None) -> Plan:
        """Return the plan of moves, with the steps in the order of `ordered`.

        Parameters
        ----------
        destinations : mapping of int to Box
            The new box of each job to move.
        place : Box or None
            The box of the large job.
        """
        return Plan(ordered(self.grid, self.running, self.costs, destinations), place)

    def program_size(self) -> tuple[int, int]:
        """Return the number of variables of the program, and an upper bound on its entries.

        A variable is a box that a job may get, with an entry for each router of the box and one for
        the job.
        """
        moved = [*chain.from_iterable(map(self.extents, self.movers))]
        variables = entries = 0
        for room, extents in ((self.place_room(), self.place_extents), (self.room(), moved)):
            count = {extent: len(anchors(room, self.grid, extent)) for extent in set(extents)}
            variables += sum(count[extent] for extent in extents)
            entries += sum(count[extent] * (math.prod(extent) + 1) for extent in extents)
        return variables, entries

    def objective(self, solution: Plan) -> int:
        """Return the cost of the moved jobs; parking is free of charge."""
        moved = {job for job, box in solution.steps if box is not None}
        return sum(self.sizes[job] * self.elapsed[job] for job in moved)

    def violations(self, solution: Plan) -> list[Violation]:
        """Execute the plan step by step, and check every step."""
        holder = np.full(self.torus, FREE)
        for hole in self.holes:
            holder[self.grid.routers_of(hole)] = HOLE
        for box in self.ending:
            holder[self.grid.routers_of(box)] = ENDING
        for job, box in enumerate(self.running):
            holder[self.grid.routers_of(box)] = job
        found = []
        parked, moved = set(), set()
        for number, (job, to) in enumerate(solution.steps, start=1):
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
            found += self._misplaced(name, holder, to, self.sizes[job], self.running[job].extent)
            if not self.grid.mistake(to):
                holder[self.grid.routers_of(to)] = job
        found += [
            Violation("parked", f"{self.named(job)} is not restarted")
            for job in sorted(parked - moved)
        ]
        if solution.place is None:
            return [*found, Violation("place", "the large job has no box")]
        holder[holder == ENDING] = FREE
        name = self.named(LARGE)
        return found + self._misplaced(name, holder, solution.place, self.incoming, None)

    def _misplaced(
        self, name: str, holder: NDArray[np.int64], box: Box, size: int, present: Triple | None
    ) -> list[Violation]:
        """Return the violations of a job's box at the present step."""
        mistake = self.grid.mistake(box)
        if mistake:
            return [Violation("grid", f"{name} in {box}: {mistake}")]
        found = []
        ranked = ranked_shapes(-(-size // self.nodes_per_router), self.grid, self.links)
        if box.extent not in ranked[: self.shapes] and box.extent != present:
            found.append(Violation("shape", f"{name} in {box}, not a shape that it may take"))
        others = sorted(set(holder[self.grid.routers_of(box)].ravel().tolist()) - {FREE})
        if others:
            overlapped = " and ".join(self.named(other) for other in others)
            found.append(Violation("overlap", f"{name} in {box} meets {overlapped}"))
        return found

    def named(self, job: int) -> str:
        """Return the name of a running job, of `HOLE`, `ENDING` or `LARGE` for messages."""
        if job == HOLE:
            return "a hole"
        if job == ENDING:
            return "a job that ends"
        if job == LARGE:
            return "the large job" if self.incoming_job is None else f"job {self.incoming_job}"
        return f"job {job + 1 if self.running_jobs is None else self.running_jobs[job]}"

    def solution_to_json(self, solution: Plan) -> dict[str, Any]:
        """Return the steps in order, jobs from 1, and the box of the large job."""
        return {
            "steps": [
                [job + 1, PARKED if box is None else str(box)] for job, box in solution.steps
            ],
            "place": None if solution.place is None else str(solution.place),
        }

    def solution_from_json(self, fields: Mapping[str, Any]) -> Plan:
        """Return the plan written by `solution_to_json`.

        Raises
        ------
        InputError
            If the steps or the place are not of that form; with both mistakes at once.
        """
        given = fields if isinstance(fields, Mapping) else {}
        written, text = given.get("steps"), given.get("place")
        mistakes = []
        steps = [_step(step) for step in written] if isinstance(written, list) else [None]
        if None in steps:
            expected = f"expected a list of steps such as [3, '2x4x4@3,0,22'] or [3, {PARKED!r}]"
            mistakes.append(f"steps: {expected}")
        place = box_of_text(text) if isinstance(text, str) else None
        if place is None and text is not None:
            mistakes.append(f"place: {text!r}; expected a box such as '2x4x4@3,0,22'")
        if mistakes:
            raise InputError(*mistakes, field=self.name)
        return Plan(tuple(step for step in steps if step is not None), place)

    def describe(self, solution: Plan | None = None) -> list[tuple[str, str]]:
        """Return the problem with the size of its program, or a plan step by step."""
        if solution is not None:
            return self._steps_of(solution)
        held = sum(box.volume for box in self.running)
        usable = int(self.grid.free_of(self.holes).sum())
        share = held / usable if usable else 0.0
        ends = [("ending", f"{len(self.ending)} jobs")] if self.ending else []
        variables, entries = self.program_size()
        sides = "x".join(map(str, self.torus))
        return [
            ("torus", f"{sides}, nodes per router: {self.nodes_per_router}"),
            ("running", f"{len(self.running)} jobs on {share:.1%} of {usable} routers"),
            ("movable", f"{len(self.movers)} jobs"),
            *ends,
            ("large job", f"{self.incoming} nodes, shapes: {len(self.place_extents)}"),
            ("program", f"{variables} variables, up to {entries} entries"),
        ]

    def _steps_of(self, plan: Plan) -> list[tuple[str, str]]:
        lines = []
        parked = set()
        for number, (job, box) in enumerate(plan.steps, start=1):
            name = f"{self.named(job)} ({self.sizes[job]})"
            if box is None:
                text = f"park {name}, give back {self.running[job]}"
                parked.add(job)
            elif job in parked:
                text = f"restart {name} in {box}"
            else:
                text = f"move {name} from {self.running[job]} to {box}"
            lines.append((f"step {number}", text))
        place = "-" if plan.place is None else str(plan.place)
        return [*lines, ("start", f"{self.named(LARGE)} ({self.incoming}) in {place}")]


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
