"""Questions whether moving some jobs makes room for the large one, and families of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.boxes._rows import words_of
from optsched.boxes.box import Box, Triple
from optsched.models.migration import Migration, Plan
from optsched.solvers.migration._in_the_way import cheapest_boxes, meetings
from optsched.solvers.migration._packing import OPEN, YES, fill, pack

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

NEVER = np.iinfo(np.int64).max
"""More than any cost."""

PORTION = 64
"""How many boxes of a family are looked at together at first."""


@dataclass(frozen=True, slots=True)
class Question:
    """Do these jobs fit into what is free, once they have left and the large job is placed?

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
        self.shapes = {job: _table(extents) for job, extents in self.extents.items()}
        self.needs = {
            job: min(nx * ny * nz for nx, ny, nz in extents)
            for job, extents in self.extents.items()
        }
        self.asked: set[tuple[tuple[int, ...], int]] = set()

    def may_fit(self) -> bool:
        """Return whether there are routers enough for all jobs that have to share them."""
        if not len(self.large):
            return False
        room = int(np.bitwise_count(self.room).sum())
        return int(self.large[0].prod()) + sum(self.needs.values()) <= room

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
        room = self.room.copy()
        fill(room, np.array(question.place), self.side, False)
        shapes = _table(sorted({shape for job in needed for shape in self.extents[job]}))
        return Family(self, shapes, room, question.cost, question.jobs, question.place)

    def ask(self, question: Question, most: int) -> Answer:
        """Answer a question, trying at most so many boxes."""
        jobs = [job for job in self.problem.movers if question.jobs >> job & 1]
        # the largest first, and equal ones together
        jobs.sort(key=lambda job: (-self.needs[job], self.extents[job], job))
        words = self.free.copy()
        for job in jobs:
            fill(words, self.boxes[job], self.side, True)
        fill(words, np.array(question.place), self.side, False)
        first = np.cumsum([0, *(len(self.shapes[job]) for job in jobs)])
        same = [
            one >= 0 and self.extents[one] == self.extents[other]
            for one, other in zip([-1, *jobs], jobs)
        ]
        shapes = np.concatenate([self.shapes[job] for job in jobs] or [_table(())])
        answer, tried, placed, needed = pack(
            words, first, shapes, np.array(same, dtype=np.bool_), self.side, self.wrap, most
        )
        if answer == YES:
            found = {job: Box(*box) for job, box in zip(jobs, placed.tolist())}
            # a job of no cost may have come back to where it was
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
        self._shapes = shapes
        self._room = room
        self._base = cost
        self._jobs = jobs
        self._place = place
        self._others = np.array(
            [job for job in asked.problem.movers if not jobs >> job & 1], dtype=np.int64
        )
        self.is_wider = place is not None
        self._after = np.array([-1, -1])
        self._size = PORTION
        self.cost: int | None = cost
        if self.is_wider:
            further = asked.costs[self._others]
            self.cost = cost + int(further.min()) if len(further) else None

    def cheapest(self, below: int | None) -> list[Question]:
        """Return the next questions, and drop those that cost `below` or more."""
        asked = self._asked
        found = cheapest_boxes(
            self._shapes,
            asked.boxes[self._others],
            asked.costs[self._others],
            self._room,
            asked.side,
            asked.wrap,
            self.is_wider,
            self._after,
            NEVER if below is None else below - self._base,
            self._size + 1,
        )
        self.cost = None
        if len(found) > self._size:
            self.cost = self._base + int(found[-1, 0])
            found = found[:-1]
            self._after = found[-1]
            self._size *= 4
        return self._questions(found)

    def _questions(self, chosen: Ints) -> list[Question]:
        asked = self._asked
        grid = (len(self._shapes), *asked.problem.torus)
        number, x, y, z = np.unravel_index(chosen[:, 1], grid)
        boxes = np.column_stack((x, y, z, self._shapes[number]))
        met = meetings(boxes, asked.boxes[self._others], asked.sides)
        found = []
        for box, cost, row in zip(boxes.tolist(), chosen[:, 0].tolist(), met):
            further = sum(1 << job for job in self._others[row].tolist())
            if self._place is None:
                found.append(Question(cost, tuple(box), further))
            elif (self._place, self._jobs | further) not in asked.asked:
                asked.asked.add((self._place, self._jobs | further))
                question = Question(self._base + cost, self._place, self._jobs | further)
                found.append(question)
        return found


def _table(extents: Sequence[Triple]) -> Ints:
    return np.array(extents, dtype=np.int64).reshape(-1, 3)
