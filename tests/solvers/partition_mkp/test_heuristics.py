"""Algorithms 2 and 3: as stated, feasible, and never better than the optimum."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings

from optsched.models import PartitionMKP
from optsched.solvers.finding import find_solver
from optsched.testing import partition_mkps

from .stated import placed

NAMES = ("direct-placement", "migration-based")


def place(name, problem):
    return find_solver(name, problem.name)[0].place(problem)


def bins_of(name, problem):
    return [None if place is None else place.bin + 1 for place in place(name, problem)]


def idle(problem, solution):
    boxes = problem.boxes(solution)
    return sum(box.volume - n for box, n in zip(boxes, problem.routers) if box is not None)


def slabs(seed, jobs=60, largest=8):
    """Return a window for a torus that is cut into bins of all forms; more jobs than room."""
    rng = random.Random(seed)
    boxes = [(0, 0, 0, 12, 12, 12)]
    while len(boxes) < 12:
        box = boxes.pop(rng.randrange(len(boxes)))
        axis = rng.randrange(3)
        cut = rng.randrange(1, max(2, box[3 + axis]))
        low, high = list(box), list(box)
        low[3 + axis] = cut
        high[axis], high[3 + axis] = box[axis] + cut, box[3 + axis] - cut
        boxes += [low, high] if high[3 + axis] else [box]
    sizes = [int(2 ** rng.uniform(0, largest)) for _ in range(jobs)]
    return PartitionMKP((12, 12, 12), rng.sample(boxes, 10), sizes)


def as_stated(problem):
    for name in NAMES:
        solution = place(name, problem)
        assert solution == placed(problem, migrating=name == "migration-based")
        assert problem.violations(solution) == []


@settings(max_examples=200, deadline=None)
@given(problem=partition_mkps(max_jobs=12, max_bins=4))
def test_answers_are_those_stated(problem):
    as_stated(problem)


@pytest.mark.parametrize("seed", range(4))
def test_answers_to_larger_windows_are_those_stated(seed):
    as_stated(slabs(seed))
    as_stated(slabs(seed, jobs=120, largest=5))


def test_figure_4_a_victim_makes_room():
    problem = PartitionMKP((8, 4, 1), ["4x2x1@0,0,0", "3x3x1@4,0,0"], waiting=[8, 4, 4])
    assert bins_of("direct-placement", problem) == [1, 2, None]
    assert bins_of("migration-based", problem) == [2, 1, 1]
    # the victim leaves one router idle, the incoming job would have left two
    assert [idle(problem, place(name, problem)) for name in NAMES] == [2, 1]
