"""The 0-1 program of a migration.

Every variable is a box of a job: first the boxes of the large job, then for each movable job its
present box, which stands for staying, and its possible new boxes. Boxes of a job are in the order
of its extents, and boxes of one extent in row-major order of their anchors.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.boxes.box import Box, Grid, Triple
from optsched.boxes.free_boxes import anchors
from optsched.models.formulation import Formulation, check_entries, formulations
from optsched.models.migration.problem import LARGE, Migration
from optsched.models.migration.solution import Plan
from optsched.models.program import Program
from optsched.models.program_builder import ProgramBuilder

Ints = NDArray[np.int64]

MOST_ENTRIES = 20_000_000
"""Most entries of the program, as no solver handles a larger one."""


class Variables(NamedTuple):
    """The variables of the program: the job of each, or `LARGE`, and a candidate box of the job.

    A box is a row x y z nx ny nz; the job `stays` if the box is its present one.
    """

    job: Ints
    box: Ints
    stays: NDArray[np.bool_]

    def name(self, variable: int) -> str:
        """Return the name of a variable."""
        x, y, z, nx, ny, nz = self.box[variable].tolist()
        box = f"{nx}x{ny}x{nz}_at_{x}_{y}_{z}"
        if self.job[variable] == LARGE:
            return f"place_{box}"
        name = f"job{self.job[variable] + 1}"
        return f"{name}_stays" if self.stays[variable] else f"{name}_to_{box}"


@formulations.register("migration")
class MigrationFormulation(Formulation[Migration, Plan]):
    """Equations (1) to (5) of the model's page."""

    @cached_property
    def program(self) -> Program:
        """The program, with variables in the order that the module's docstring states."""
        problem = self.problem
        job, box, stays = self.variables
        moves = (job != LARGE) & ~stays
        cost = np.zeros(len(job), dtype=np.int64)
        cost[moves] = np.array(problem.costs, dtype=np.int64)[job[moves]]
        builder = ProgramBuilder("min")
        v = builder.variables(self.variables.name, range(len(job)), objective=cost)
        builder.row("place", (1, v[job == LARGE]), equal=1)
        movers = v[job != LARGE]
        once = (1, movers, job[movers])
        builder.ragged_rows("once_job{}", (len(problem.running),), once, equal=1)
        entries = list(_routers(problem.grid, box))
        taken = np.concatenate([numbers for numbers, _ in entries] or [v[:0]])
        router = np.concatenate([cells for _, cells in entries] or [v[:0]])
        # a router with a single variable needs no row
        shared = (np.bincount(router, minlength=problem.grid.routers) > 1)[router]
        sides = [range(side) for side in problem.torus]
        apart = (1, taken[shared], router[shared])
        builder.ragged_rows("router_{}_{}_{}", sides, apart, at_most=1)
        return builder.build()

    def decode(self, x: Ints) -> Plan:
        """Return the moves of a vector, in the order of `Migration.plan`."""
        destinations: dict[int, Box] = {}
        place = None
        for number in np.flatnonzero(x)[::-1].tolist():  # reversed: the first of several boxes wins
            job, box = int(self.variables.job[number]), Box(*self.variables.box[number].tolist())
            if job == LARGE:
                place = box
            elif box == self.problem.running[job]:
                destinations.pop(job, None)
            else:
                destinations[job] = box
        return self.problem.plan(destinations, place)

    def encode(self, solution: Plan) -> Ints:
        """Return the 0-1 vector of a plan, which does not state the order of the moves."""
        boxes = dict(enumerate(self.problem.running)) | solution.destinations
        wanted = np.array([*boxes.values(), solution.place or (-1,) * 6])
        job, box, _ = self.variables
        of_job = np.where(job == LARGE, len(boxes), job)
        x: Ints = (box == wanted[of_job]).all(axis=1).astype(np.int64)
        return x

    @cached_property
    def variables(self) -> Variables:
        """The variables of the program."""
        problem = self.problem
        advice = "a short list of movable jobs or fewer shapes make it smaller, and position-search"
        check_entries(problem.program_size()[1], MOST_ENTRIES, f"{advice} needs none")
        rooms = {True: problem.place_room(), False: problem.room()}

        @cache
        def candidates(extent: Triple, of_large: bool) -> Ints:
            at = anchors(rooms[of_large], problem.grid, extent)
            return np.hstack((at, np.broadcast_to(extent, at.shape)))

        jobs, boxes, stays = [], [], []
        for job in (LARGE, *problem.movers):
            parts = [] if job == LARGE else [np.array([problem.running[job]])]
            for extent in problem.place_extents if job == LARGE else problem.extents(job):
                there = candidates(extent, job == LARGE)
                parts.append(there[(there != parts[0]).any(axis=1)] if job != LARGE else there)
            count = sum(map(len, parts))
            boxes += parts
            jobs.append(np.full(count, job))
            stays.append((np.arange(count) == 0) & (job != LARGE))
        whole = np.concatenate(boxes) if boxes else np.empty((0, 6), dtype=np.int64)
        return Variables(np.concatenate(jobs), whole, np.concatenate(stays))


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
