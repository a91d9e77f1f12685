"""Migration: a box for a large job on a torus, by moving running jobs at the least cost.

Model page: ``models/migration/README.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache, cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np

from optsched.arrays import Flags, Ints
from optsched.boxes.box import Box, Triple, box_of_text
from optsched.boxes.free_boxes import anchors
from optsched.errors import InputError
from optsched.fields import Integer
from optsched.models.fields import label
from optsched.models.problem import Solution, Violation
from optsched.models.program import Formulation, Program, ProgramBuilder, formulations
from optsched.models.schema import declared, field
from optsched.models.torus import MOST_IN_ALL, MigratingProblem, Step, destinations_of
from optsched.registry import models

__all__ = ["Migration", "Plan", "Step"]


class Plan(NamedTuple):
    """The steps of a migration in order, and the box of the large job.

    Parameters
    ----------
    steps : tuple of Step
        Moves and parkings in order.
    place : Box or None
        The box of the large job, which starts after all steps; None in an infeasible plan.
    """

    steps: tuple[Step, ...]
    place: Box | None

    @property
    def destinations(self) -> dict[int, Box]:
        """The new box of each moved job."""
        return destinations_of(self.steps)


@models.register("migration")
@declared
class Migration(MigratingProblem[Plan]):
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

    incoming: int = field(Integer(1, MOST_IN_ALL), "nodes of the large job, in whole routers")
    incoming_job: str | int | None = field(label(), "a label for the large job", default=None)

    sense = "min"
    default_solver = "position-search"

    @property
    def size(self) -> str:
        """Running jobs, routers of the large job and torus: ``212+550@24x24x24``."""
        sides = "x".join(map(str, self.torus))
        return f"{len(self.running)}+{self.routers_of(self.incoming)}@{sides}"

    @cached_property
    def place_extents(self) -> tuple[Triple, ...]:
        """The extents that the large job may have, the best first."""
        return self.admitted(self.incoming)

    def choices(self) -> Iterator[tuple[int, tuple[Triple, ...], Box | None]]:
        """Yield the large job and the movable ones: number, extents, and the present box."""
        yield len(self.running), self.place_extents, None
        for job in self.movers:
            yield job, self.extents(job), self.running[job]

    def named(self, job: int) -> str:
        """Return the name of a job, of `HOLE` or of `ENDING` for messages."""
        if job == len(self.running):
            return "the large job" if self.incoming_job is None else f"job {self.incoming_job}"
        return self.name_of_running(job)

    def plan(self, destinations: Mapping[int, Box], place: Box | None) -> Plan:
        """Return the plan of moves, with the steps in the order of `ordered`.

        Parameters
        ----------
        destinations : mapping of int to Box
            The new box of each job to move.
        place : Box or None
            The box of the large job.
        """
        return Plan(self.steps(destinations), place)

    def objective(self, solution: Plan) -> int:
        """Return the cost of the moved jobs; parking is free of charge."""
        return self.cost_of(solution.steps)

    def violations(self, solution: Plan) -> list[Violation]:
        """Execute the plan step by step, and check every step."""
        holder, found = self.executed(solution.steps)
        if solution.place is None:
            return [*found, Violation("place", "the large job has no box")]
        return found + self.placed(holder, len(self.running), solution.place, self.incoming)

    def solution_to_json(self, solution: Plan) -> dict[str, Any]:
        """Return the steps in order, jobs from 1, and the box of the large job."""
        place = None if solution.place is None else str(solution.place)
        return {"steps": self.steps_to_json(solution.steps), "place": place}

    def solution_from_json(self, fields: Mapping[str, Any]) -> Plan:
        """Return the plan written by `solution_to_json`."""
        given = fields if isinstance(fields, Mapping) else {}
        mistakes: list[str] = []
        steps = self.steps_from_json(given.get("steps"), mistakes)
        text = given.get("place")
        place = box_of_text(text) if isinstance(text, str) else None
        if place is None and text is not None:
            mistakes.append(f"place: {text!r}; expected a box such as '2x4x4@3,0,22'")
        if mistakes:
            raise InputError(*mistakes, field=self.name)
        return Plan(steps, place)

    def describe(self, solution: Plan | None = None) -> list[tuple[str, str]]:
        """Return the problem with the size of its program, or a plan step by step."""
        if solution is None:
            shapes = f"{self.incoming} nodes, shapes: {len(self.place_extents)}"
            return [*self.describe_torus(), ("large job", shapes), self.describe_program()]
        place = "-" if solution.place is None else str(solution.place)
        start = f"{self.named(len(self.running))} ({self.incoming}) in {place}"
        return [*self.describe_steps(solution.steps), ("start", start)]


class BoxVariables(NamedTuple):
    """The variables of a program: the job of each, and a candidate box of the job.

    Variables are in the order of `MigratingProblem.choices`. The first variable of a running job is
    its present box, which stands for staying; the others of a job are in the order of its extents,
    and those of one extent in row-major order of their anchors. A box is a row x y z nx ny nz.
    """

    job: Ints
    box: Ints
    stays: Flags


P = TypeVar("P", bound=MigratingProblem[Any])


class MovingFormulation(Formulation[P, Solution]):
    """Base class of the formulations of migrating problems: every variable is a box of a job."""

    @cached_property
    def variables(self) -> BoxVariables:
        """The variables for boxes, the first ones of the program."""
        problem = self.problem
        advice = "a short list of movable jobs or fewer shapes make it smaller"
        self.check_entries(problem.program_size()[1], advice)
        rooms = {True: problem.place_room(), False: problem.room()}

        @cache
        def candidates(extent: Triple, starts: bool) -> Ints:
            at = anchors(rooms[starts], problem.grid, extent)
            return np.hstack((at, np.broadcast_to(extent, at.shape)))

        jobs, boxes = [np.empty(0, np.int64)], [np.empty((0, 6), np.int64)]
        stays = [np.empty(0, np.bool_)]
        for job, extents, present in problem.choices():
            parts = [] if present is None else [np.array([present])]
            for extent in extents:
                there = candidates(extent, present is None)
                parts.append(there if present is None else there[(there != present).any(axis=1)])
            count = sum(map(len, parts))
            boxes += parts
            jobs.append(np.full(count, job))
            stays.append((np.arange(count) == 0) & (present is not None))
        return BoxVariables(np.concatenate(jobs), np.concatenate(boxes), np.concatenate(stays))

    def add_boxes(self, builder: ProgramBuilder, start: str) -> Ints:
        """Add the variables, with the costs of moves.

        The name of a job to start begins with `start`, which has ``{}`` for its number from 1.
        """
        found, running = self.variables, len(self.problem.running)
        moves = (found.job < running) & ~found.stays
        cost = np.zeros(len(found.job), dtype=np.int64)
        cost[moves] = np.array(self.problem.costs, dtype=np.int64)[found.job[moves]]

        def name(variable: int) -> str:
            x, y, z, nx, ny, nz = found.box[variable].tolist()
            box, job = f"{nx}x{ny}x{nz}_at_{x}_{y}_{z}", int(found.job[variable])
            if job >= running:
                return f"{start.format(job - running + 1)}_{box}"
            return f"job{job + 1}_stays" if found.stays[variable] else f"job{job + 1}_to_{box}"

        return builder.variables(name, range(len(found.job)), objective=cost)

    def add_box_rows(self, builder: ProgramBuilder, v: Ints) -> None:
        """Add the rows by which each running job is in one box, and no router in two."""
        found, grid = self.variables, self.problem.grid
        kept = found.job < len(self.problem.running)
        once = (1, v[kept], found.job[kept])
        builder.ragged_rows("once_job{}", (len(self.problem.running),), once, equal=1)
        boxes, taken, router = found.box, [v[:0]], [v[:0]]
        changes = np.flatnonzero((boxes[1:, 3:] != boxes[:-1, 3:]).any(axis=1)) + 1
        for alike in filter(len, np.split(np.arange(len(boxes)), changes)):
            offsets = np.indices(boxes[alike[0], 3:].tolist()).reshape(3, -1).T
            at = (boxes[alike, None, :3] + offsets) % grid.shape
            taken.append(np.repeat(alike, len(offsets)))
            router.append(np.ravel_multi_index(tuple(np.moveaxis(at, -1, 0)), grid.shape).ravel())
        entries, routers = np.concatenate(taken), np.concatenate(router)
        # a router with a single variable needs no row
        shared = (np.bincount(routers, minlength=grid.routers) > 1)[routers]
        sides = [range(side) for side in grid.shape]
        apart = (1, v[entries[shared]], routers[shared])
        builder.ragged_rows("router_{}_{}_{}", sides, apart, at_most=1)

    def chosen(self, x: Ints) -> tuple[dict[int, Box], list[tuple[int, Box]]]:
        """Return the new boxes of jobs that a vector moves, and the boxes of jobs that start.

        Of several boxes of a running job, the first one wins.
        """
        running, found = self.problem.running, self.variables
        destinations: dict[int, Box] = {}
        starts, settled = [], set()
        ones = np.flatnonzero(x[: len(found.job)])
        for job, row in zip(found.job[ones].tolist(), found.box[ones].tolist()):
            box = Box(*row)
            if job >= len(running):
                starts.append((job, box))
            elif job not in settled:
                settled.add(job)
                if box != running[job]:
                    destinations[job] = box
        return destinations, starts

    def vector(self, boxes: Iterable[tuple[int, Box]]) -> Ints:
        """Return the vector in which the variables of given jobs and boxes are 1."""
        wanted = {(job, *box) for job, box in boxes}
        rows = np.column_stack((self.variables.job, self.variables.box)).tolist()
        return np.fromiter((tuple(row) in wanted for row in rows), np.int64, len(rows))


@formulations.register("migration")
class MigrationFormulation(MovingFormulation[Migration, Plan]):
    """Equations (1) to (5) of the model's page.

    The boxes of the large job are first, then for each movable job its present box, which stands
    for staying, and its possible new boxes.
    """

    @cached_property
    def program(self) -> Program:
        """The program."""
        builder = ProgramBuilder("min")
        v = self.add_boxes(builder, "place")
        is_place = self.variables.job == len(self.problem.running)
        builder.row("place", (1, v[is_place]), equal=1)
        self.add_box_rows(builder, v)
        return builder.build()

    def decode(self, x: Ints) -> Plan:
        """Return the moves of a vector, in the order of `Migration.plan`."""
        destinations, starts = self.chosen(x)
        return self.problem.plan(destinations, starts[0][1] if starts else None)

    def encode(self, solution: Plan) -> Ints:
        """Return the 0-1 vector of a plan, which does not state the order of the moves."""
        boxes = dict(enumerate(self.problem.running)) | solution.destinations
        if solution.place is not None:
            boxes[len(self.problem.running)] = solution.place
        return self.vector(boxes.items())
