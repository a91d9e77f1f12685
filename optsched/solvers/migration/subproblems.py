"""Questions whether moving some jobs makes room for the large one, and families of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.boxes._rows import fill, words_of
from optsched.boxes.box import Box, Triple
from optsched.models.migration import Migration, Plan
from optsched.solvers.migration._in_the_way import cheapest_boxes, meetings
from optsched.solvers.migration._packing import OPEN, YES, left_free, pack

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

NEVER = np.iinfo(np.int64).max
"""More than any cost."""

PORTION = 64
"""How many boxes of a family are looked at together at first."""


@dataclass(frozen=True, slots=True)
class Question:
    """Whether jobs fit into what is free once they have left and the large job is placed.

    Parameters
    ----------
    cost : int
        Of moving the jobs.
    place : tuple of int
        The box of the large job.
    jobs : int
        The jobs to move, as a bit mask.
    """

    is_family: ClassVar[bool] = False

    cost: int
    place: tuple[int, ...]
    jobs: int


class Answer(NamedTuple):
    """The answer of a question.

    Parameters
    ----------
    plan : Plan or None
        For a yes.
    is_open : bool
        Whether too few boxes were tried for an answer.
    needed : tuple of int
        For a no: jobs that do not fit, even without the others.
    tried : int
        Boxes tried.
    """

    plan: Plan | None
    is_open: bool
    needed: tuple[int, ...]
    tried: int


class Questions:
    """Asks and finds the questions of a migration.

    Parameters
    ----------
    problem : Migration
        The problem.
    """

    def __init__(self, problem: Migration) -> None:
        self.problem = problem
        grid = problem.grid
        self.side, self.wrap = grid.shape[2], grid.wrap
        self.sides = np.array(grid.shape)
        self.boxes = np.array(problem.running, dtype=np.int64).reshape(-1, 6)
        self.costs = np.array(problem.costs, dtype=np.int64)
        self.room = words_of(problem.room())
        self.free = words_of(grid.free_of([*problem.holes, *problem.running]))
        self.large = _table(problem.place_extents)
        self.extents = {job: problem.extents(job) for job in problem.movers}
        # by kind, the larger first
        kinds = sorted(set(self.extents.values()), key=lambda extents: (-_least(extents), extents))
        number = {extents: kind for kind, extents in enumerate(kinds)}
        self._kinds = np.full(len(problem.running), -1)
        for job, extents in self.extents.items():
            self._kinds[job] = number[extents]
        self._first = np.cumsum([0, *map(len, kinds)])
        self._shapes = _table([extent for extents in kinds for extent in extents])
        self._needs = np.array([_least(extents) for extents in kinds], dtype=np.int64)
        self.in_order = sorted(problem.movers, key=lambda job: (self._kinds[job], job))
        self._cheapest = sorted(problem.movers, key=problem.costs.__getitem__)
        self._floors: dict[int, int] = {}

    def may_fit(self) -> bool:
        """Return whether there are routers enough for all jobs that have to share them."""
        if not len(self.large):
            return False
        room = int(np.bitwise_count(self.room).sum())
        needed = int(self._needs[self._kinds[self.in_order]].sum())
        return int(self.large[0].prod()) + needed <= room

    def floor(self, jobs: int) -> int | None:
        """Return what a plan that moves some jobs costs at least, given as a bit mask.

        None if one of them cannot be moved at all. Known are the floors of jobs that had no box in
        a question.
        """
        known = [least for job, least in self._floors.items() if jobs >> job & 1]
        least = max(known, default=0)
        return least if least < NEVER else None

    def further(self, jobs: int) -> int | None:
        """Return the cost of the cheapest job that is not among some, given as a bit mask."""
        others = (self.problem.costs[job] for job in self._cheapest if not jobs >> job & 1)
        return next(others, None)

    def places(self) -> Family:
        """Return the questions of all places: the jobs in the way of each are to move."""
        return Family(self, self.large, self.room, 0, 0, None)

    def wider(self, question: Question, needed: Sequence[int]) -> Family:
        """Return the questions that a no leads to: further jobs are to move.

        Parameters
        ----------
        question : Question
            Its answer was no.
        needed : sequence of int
            Jobs that do not fit. One of them needs a box that meets further jobs.
        """
        if len(needed) == 1 and needed[0] not in self._floors:
            self._floors[needed[0]] = self._floor_of(needed[0])
        room = self.room.copy()
        fill(room, np.array(question.place), self.side, False)
        shapes = _table(sorted({shape for job in needed for shape in self.extents[job]}))
        return Family(self, shapes, room, question.cost, question.jobs, question.place)

    def _floor_of(self, job: int) -> int:
        """Return what moving a job costs, and with it those in the way of its cheapest box."""
        # its present box is the first of those with nothing in their way
        boxes = Family(self, self.shapes_of(job), self.room, 0, 1 << job, None).boxes(None, 2)
        return self.problem.costs[job] + int(boxes[1, 0]) if len(boxes) > 1 else NEVER

    def listed(self, jobs: int) -> list[int]:
        """Return the jobs of a bit mask, the largest first, those of the same shapes together."""
        return [job for job in self.in_order if jobs >> job & 1]

    def shapes_of(self, job: int) -> Ints:
        """Return the shapes that a job may take, the best first, shape (shapes, 3)."""
        kind = self._kinds[job]
        return self._shapes[self._first[kind] : self._first[kind + 1]]

    def ask(self, question: Question, most: int) -> Answer:
        """Answer a question, trying at most so many boxes."""
        jobs = self.listed(question.jobs)
        numbers = np.array(jobs, dtype=np.int64)
        words = left_free(
            self.free, self.boxes, numbers, np.array(question.place, dtype=np.int64), self.side
        )
        answer, tried, placed, needed = pack(
            words,
            numbers,
            self._kinds,
            self._first,
            self._shapes,
            self._needs,
            self.side,
            self.wrap,
            most,
        )
        if answer == YES:
            found = {job: Box(*box) for job, box in zip(jobs, placed.tolist())}
            moves = {j: box for j, box in found.items() if box != self.problem.running[j]}
            return Answer(self.problem.plan(moves, Box(*question.place)), False, (), tried)
        which = tuple(job for job, is_needed in zip(jobs, needed) if is_needed)
        return Answer(None, answer == OPEN, which, tried)


class Family:
    """Questions that move the jobs which the boxes of some shapes meet, the cheapest first.

    Parameters
    ----------
    asked : Questions
        The problem.
    shapes : int64 array, shape (shapes, 3)
        Of the boxes.
    room : uint64 array, shape (X, Y)
        The routers that they may take, rows along Z as bits.
    cost : int
        Of the jobs that are to move in any case.
    jobs : int
        These jobs, as a bit mask.
    place : tuple of int, optional
        The box of the large job; the boxes of the family are its places if left out.

    Attributes
    ----------
    cost : int or None
        No question to come costs less; none when there is none.
    is_wider : bool
        Whether its questions move more jobs than one that was asked.
    """

    is_family = True

    def __init__(
        self,
        asked: Questions,
        shapes: Ints,
        room: Words,
        cost: int,
        jobs: int,
        place: tuple[int, ...] | None,
    ) -> None:
        self._asked = asked
        self.shapes = shapes
        self._room = room
        self._base = cost
        self.jobs = jobs
        self._place = place
        self._others: Ints | None = None
        self.is_wider = place is not None
        self._after = np.array([-1, -1])
        self._size = 0
        self.cost: int | None = cost
        if self.is_wider:
            further = asked.further(jobs)
            self.cost = None if further is None else cost + further

    def cheapest(self, below: int | None, most: int = PORTION) -> list[Question]:
        """Return the next questions, and drop those that cost `below` or more.

        At most so many the first time, four times as many each further time.
        """
        self._size = self._size * 4 or most
        found = self.boxes(below, self._size + 1)
        self.cost = None
        if len(found) > self._size:
            self.cost = self._base + int(found[-1, 0])
            found = found[:-1]
            self._after = found[-1]
        return self._questions(found)

    def boxes(self, below: int | None, most: int) -> Ints:
        """Return costs and numbers of the next boxes, see `cheapest_boxes`."""
        asked = self._asked
        if self._others is None:
            others = [job for job in asked.problem.movers if not self.jobs >> job & 1]
            self._others = np.array(others, dtype=np.int64)
        return cheapest_boxes(  # type: ignore[no-any-return]
            self.shapes,
            asked.boxes[self._others],
            asked.costs[self._others],
            self._room,
            asked.side,
            asked.wrap,
            self.is_wider,
            self._after,
            NEVER if below is None else below - self._base,
            most,
        )

    def met_by(self, chosen: Ints) -> tuple[Ints, NDArray[np.bool_]]:
        """Return the boxes of these numbers, and which running jobs each of them meets.

        Parameters
        ----------
        chosen : int64 array, shape (boxes, 2)
            What `boxes` returns.

        Returns
        -------
        boxes : int64 array, shape (boxes, 6)
            Columns x, y, z, nx, ny, nz.
        met : bool array, shape (boxes, running jobs)
            Those that are to move in any case are left out.
        """
        asked = self._asked
        assert self._others is not None
        grid = (len(self.shapes), *asked.problem.torus)
        number, x, y, z = np.unravel_index(chosen[:, 1], grid)
        boxes = np.column_stack((x, y, z, self.shapes[number]))
        met = np.zeros((len(boxes), len(asked.boxes)), np.bool_)
        met[:, self._others] = meetings(boxes, asked.boxes[self._others], asked.sides)
        return boxes, met

    def _questions(self, chosen: Ints) -> list[Question]:
        boxes, met = self.met_by(chosen)
        masks = np.packbits(met, axis=1, bitorder="little")
        found = []
        for box, cost, row in zip(boxes.tolist(), chosen[:, 0].tolist(), masks):
            further = int.from_bytes(row.tobytes(), "little")
            if self._place is None:
                found.append(Question(cost, tuple(box), further))
            else:
                found.append(Question(self._base + cost, self._place, self.jobs | further))
        return found


def _table(extents: Sequence[Triple]) -> Ints:
    return np.array(extents, dtype=np.int64).reshape(-1, 3)


def _least(extents: Sequence[Triple]) -> int:
    return min(nx * ny * nz for nx, ny, nz in extents)
