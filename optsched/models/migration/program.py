"""The 0-1 program of a migration.

Every variable is a box of a job: first the boxes of the large job, then for each movable job its
present box, which stands for staying, and its possible new boxes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.boxes.box import Box, Grid, Triple
from optsched.boxes.free_boxes import anchors
from optsched.models.migration.problem import Migration, Plan
from optsched.models.program import (
    Formulation,
    Program,
    ProgramBuilder,
    check_entries,
    formulations,
)
from optsched.models.torus import MigratingProblem

Ints = NDArray[np.int64]

MOST_ENTRIES = 20_000_000
"""Most entries of the program, as no solver handles a larger one."""


class BoxVariables(NamedTuple):
    """The variables of a program: the job of each, and a candidate box of the job.

    Variables are in the order of `MigratingProblem.choices`. The first variable of a running job is
    its present box, which stands for staying; the others of a job are in the order of its extents,
    and those of one extent in row-major order of their anchors. A box is a row x y z nx ny nz.
    """

    job: Ints
    box: Ints
    stays: NDArray[np.bool_]

    def name(self, variable: int, running: int, start: str) -> str:
        """Return the name of a variable.

        `running`: number of running jobs; `start`: beginning of the name for a job to start, with
        ``{}`` for its number from 1.
        """
        x, y, z, nx, ny, nz = self.box[variable].tolist()
        box, job = f"{nx}x{ny}x{nz}_at_{x}_{y}_{z}", int(self.job[variable])
        if job >= running:
            return f"{start.format(job - running + 1)}_{box}"
        return f"job{job + 1}_stays" if self.stays[variable] else f"job{job + 1}_to_{box}"

    def chosen(self, x: Ints) -> list[tuple[int, Box]]:
        """Return job and box of the variables that are 1 in a vector, in order."""
        ones = np.flatnonzero(x)
        boxes = [Box(*row) for row in self.box[ones].tolist()]
        return list(zip(self.job[ones].tolist(), boxes))

    def vector(self, boxes: Iterable[tuple[int, Box]]) -> Ints:
        """Return the vector in which the variables of given jobs and boxes are 1."""
        wanted = {(job, *box) for job, box in boxes}
        rows = np.column_stack((self.job, self.box)).tolist()
        return np.fromiter((tuple(row) in wanted for row in rows), np.int64, len(rows))

    def add_router_rows(self, builder: ProgramBuilder, v: Ints, grid: Grid) -> None:
        """Add the rows by which no router is in two boxes; `v` has the numbers of the variables."""
        entries = list(_routers(grid, self.box))
        taken = np.concatenate([numbers for numbers, _ in entries] or [v[:0]])
        router = np.concatenate([cells for _, cells in entries] or [v[:0]])
        # a router with a single variable needs no row
        shared = (np.bincount(router, minlength=grid.routers) > 1)[router]
        sides = [range(side) for side in grid.shape]
        apart = (1, v[taken[shared]], router[shared])
        builder.ragged_rows("router_{}_{}_{}", sides, apart, at_most=1)


def box_variables(problem: MigratingProblem[Any]) -> BoxVariables:
    """Return the variables of a problem."""
    advice = "a short list of movable jobs or fewer shapes make it smaller"
    check_entries(problem.program_size()[1], MOST_ENTRIES, advice)
    rooms = {True: problem.place_room(), False: problem.room()}

    @cache
    def candidates(extent: Triple, starts: bool) -> Ints:
        at = anchors(rooms[starts], problem.grid, extent)
        return np.hstack((at, np.broadcast_to(extent, at.shape)))

    jobs, boxes, stays = [], [], []
    for job, extents, present in problem.choices():
        parts = [] if present is None else [np.array([present])]
        for extent in extents:
            there = candidates(extent, present is None)
            parts.append(there if present is None else there[(there != present).any(axis=1)])
        count = sum(map(len, parts))
        boxes += parts
        jobs.append(np.full(count, job))
        stays.append((np.arange(count) == 0) & (present is not None))
    of_job, stay = (
        np.concatenate([empty, *found])
        for empty, found in ((np.empty(0, np.int64), jobs), (np.empty(0, np.bool_), stays))
    )
    return BoxVariables(of_job, np.concatenate([np.empty((0, 6), np.int64), *boxes]), stay)


def _routers(grid: Grid, boxes: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Yield numbers of boxes and of their routers, an entry each, for boxes of one extent."""
    if not len(boxes):
        return
    changes = np.flatnonzero((boxes[1:, 3:] != boxes[:-1, 3:]).any(axis=1)) + 1
    for start, end in zip((0, *changes), (*changes, len(boxes))):
        nx, ny, nz = boxes[start, 3:].tolist()
        offsets = np.indices((nx, ny, nz)).reshape(3, -1).T
        at = (boxes[start:end, None, :3] + offsets) % grid.shape
        cells = (at[..., 0] * grid.shape[1] + at[..., 1]) * grid.shape[2] + at[..., 2]
        yield np.repeat(np.arange(start, end), len(offsets)), cells.ravel()


@formulations.register("migration")
class MigrationFormulation(Formulation[Migration, Plan]):
    """Equations (1) to (5) of the model's page."""

    @cached_property
    def program(self) -> Program:
        """The program, with variables in the order that the module's docstring states."""
        problem, found = self.problem, self.variables
        running = len(problem.running)
        is_place = found.job == running
        moves = ~is_place & ~found.stays
        cost = np.zeros(len(found.job), dtype=np.int64)
        cost[moves] = np.array(problem.costs, dtype=np.int64)[found.job[moves]]
        builder = ProgramBuilder("min")

        def name(variable: int) -> str:
            return found.name(variable, running, "place")

        v = builder.variables(name, range(len(found.job)), objective=cost)
        builder.row("place", (1, v[is_place]), equal=1)
        once = (1, v[~is_place], found.job[~is_place])
        builder.ragged_rows("once_job{}", (running,), once, equal=1)
        found.add_router_rows(builder, v, problem.grid)
        return builder.build()

    def decode(self, x: Ints) -> Plan:
        """Return the moves of a vector, in the order of `Migration.plan`."""
        destinations: dict[int, Box] = {}
        place = None
        running = self.problem.running
        for job, box in reversed(self.variables.chosen(x)):  # the first of several boxes wins
            if job == len(running):
                place = box
            elif box == running[job]:
                destinations.pop(job, None)
            else:
                destinations[job] = box
        return self.problem.plan(destinations, place)

    def encode(self, solution: Plan) -> Ints:
        """Return the 0-1 vector of a plan, which does not state the order of the moves."""
        boxes = dict(enumerate(self.problem.running)) | solution.destinations
        if solution.place is not None:
            boxes[len(self.problem.running)] = solution.place
        return self.variables.vector(boxes.items())

    @cached_property
    def variables(self) -> BoxVariables:
        """The variables of the program."""
        return box_variables(self.problem)
