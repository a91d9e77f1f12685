"""The 0-1 program of a migration: its columns, its size, and its vectors.

Every column is a box of a job: first the places of the large job, then for each job that may be
moved its present box, which stands for staying, and the boxes that it may move to. A job's boxes
are in the order of its extents, those of one extent in row-major order of their anchors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.boxes.box import Box, Grid, Triple
from optsched.boxes.free_boxes import anchors
from optsched.errors import InputError
from optsched.models.program import UNBOUNDED, Program

if TYPE_CHECKING:
    from optsched.models.migration.problem import Migration

Ints = NDArray[np.int64]

MOST_ENTRIES = 20_000_000
"""A larger program is refused: no solver in use gets anywhere with it."""

LARGE = -1
"""Stands for the large job among the jobs of columns."""


class Columns(NamedTuple):
    """The columns of a program.

    Parameters
    ----------
    job : int64 array, shape (columns,)
        The job of each; -1 for the large one.
    box : int64 array, shape (columns, 6)
        Its box: x y z nx ny nz.
    first : int64 array, shape (movable jobs + 2,)
        Where the columns of the large job and of each job that may be moved begin, and the end.
        A job's first column is that for staying.
    """

    job: Ints
    box: Ints
    first: Ints


def measure(problem: Migration) -> tuple[int, int]:
    """Return the number of columns and a bound on the number of entries, without stating them."""
    room = problem.room()
    found: dict[Triple, int] = {}
    columns = entries = 0
    for job in (LARGE, *problem.movers):
        for extent in _extents(problem, job):
            if extent not in found:
                found[extent] = len(anchors(room, problem.grid, extent))
            columns += found[extent]
            # one in each router's row and one in the job's
            entries += found[extent] * (extent[0] * extent[1] * extent[2] + 1)
    return columns, entries


def columns_of(problem: Migration) -> Columns:
    """Return the columns.

    Raises
    ------
    InputError
        If the program had too many entries.
    """
    _, entries = measure(problem)
    if entries > MOST_ENTRIES:
        raise InputError(
            f"the program would have {entries} entries, more than {MOST_ENTRIES}; a short list "
            "of movable jobs or fewer shapes make it smaller, and position-search needs none"
        )
    room = problem.room()
    found: dict[Triple, Ints] = {}
    jobs, boxes, first = [], [], [0]
    for job in (LARGE, *problem.movers):
        parts = []
        if job != LARGE:
            parts.append(np.array([problem.running[job]]))
        for extent in _extents(problem, job):
            if extent not in found:
                at = anchors(room, problem.grid, extent)
                found[extent] = np.hstack((at, np.broadcast_to(extent, at.shape)))
            there = found[extent]
            parts.append(there[(there != parts[0]).any(axis=1)] if job != LARGE else there)
        boxes += parts
        count = sum(map(len, parts))
        jobs.append(np.full(count, job))
        first.append(first[-1] + count)
    whole = np.concatenate(boxes) if boxes else np.empty((0, 6), dtype=np.int64)
    return Columns(np.concatenate(jobs), whole, np.array(first))


def formulate(problem: Migration) -> Program:
    """Return the program of the model's page, equations (1) to (5)."""
    job, box, first = problem.columns
    count = len(job)
    entries = list(_routers(problem.grid, box))
    of_column = np.concatenate([numbers for numbers, _ in entries] or [np.empty(0, np.int64)])
    router = np.concatenate([cells for _, cells in entries] or [np.empty(0, np.int64)])
    wanted = np.bincount(router, minlength=problem.grid.routers)
    # a router that one column has cannot be given away twice
    shared = np.flatnonzero(wanted > 1)
    kept = wanted[router] > 1
    of_column, router = of_column[kept], router[kept]
    by_router = np.argsort(router, kind="stable")
    groups = len(first) - 1
    start = np.concatenate((first, first[-1] + np.cumsum(wanted[shared])))
    ones = np.ones(count, dtype=np.int64)
    cost = np.zeros(count, dtype=np.int64)
    moved = job != LARGE
    moved[first[1:-1]] = False
    cost[moved] = np.array(problem.costs, dtype=np.int64)[job[moved]]

    def variable_name(number: int) -> str:
        if job[number] == LARGE:
            return f"place_{_text(box[number])}"
        name = f"job{job[number] + 1}"
        return f"{name}_to_{_text(box[number])}" if moved[number] else f"{name}_stays"

    def row_name(number: int) -> str:
        if number == 0:
            return "place"
        if number < groups:
            return f"once_job{problem.movers[number - 1] + 1}"
        x, y, z = np.unravel_index(shared[number - groups], problem.torus)
        return f"router_{x}_{y}_{z}"

    return Program(
        sense="min",
        objective=cost,
        lower=np.zeros(count, dtype=np.int64),
        upper=ones,
        row_start=start,
        columns=np.concatenate((np.arange(count), of_column[by_router])),
        values=np.ones(start[-1], dtype=np.int64),
        row_lower=np.repeat((1, -UNBOUNDED), (groups, len(shared))),
        row_upper=np.ones(groups + len(shared), dtype=np.int64),
        variable_name=variable_name,
        row_name=row_name,
    )


def moves_of(problem: Migration, x: Ints) -> tuple[dict[int, Box], Box | None]:
    """Return the destinations of the jobs that a vector moves, and the place of the large job."""
    columns = problem.columns
    destinations: dict[int, Box] = {}
    place = None
    for number in np.flatnonzero(x)[::-1].tolist():  # of several boxes the first counts
        job, box = int(columns.job[number]), Box(*columns.box[number].tolist())
        if job == LARGE:
            place = box
        elif box == problem.running[job]:
            destinations.pop(job, None)
        else:
            destinations[job] = box
    return destinations, place


def vector(problem: Migration, destinations: Mapping[int, Box], place: Box | None) -> Ints:
    """Return the vector of moves and a place; the inverse of `moves_of`."""
    job, box, first = problem.columns
    x = np.zeros(len(job), dtype=np.int64)
    for start, end, mover in zip(first, first[1:], (LARGE, *problem.movers)):
        wanted = place if mover == LARGE else destinations.get(mover, problem.running[mover])
        if wanted is not None:
            x[start + np.flatnonzero((box[start:end] == wanted).all(axis=1))] = 1
    return x


def _extents(problem: Migration, job: int) -> tuple[Triple, ...]:
    return problem.place_extents if job == LARGE else problem.extents(job)


def _routers(grid: Grid, boxes: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Yield the numbers of boxes of one extent and those of their routers, an entry for each."""
    if not len(boxes):
        return
    changes = np.flatnonzero((boxes[1:, 3:] != boxes[:-1, 3:]).any(axis=1)) + 1
    for start, end in zip((0, *changes), (*changes, len(boxes))):
        nx, ny, nz = boxes[start, 3:].tolist()
        offsets = np.indices((nx, ny, nz)).reshape(3, -1).T
        at = (boxes[start:end, None, :3] + offsets) % grid.shape
        cells = (at[..., 0] * grid.shape[1] + at[..., 1]) * grid.shape[2] + at[..., 2]
        yield np.repeat(np.arange(start, end), len(offsets)), cells.ravel()


def _text(box: Ints) -> str:
    x, y, z, nx, ny, nz = box.tolist()
    return f"{nx}x{ny}x{nz}_at_{x}_{y}_{z}"
