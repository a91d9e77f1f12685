"""Algorithms 2 and 3 of Li et al. (2015), stated by looking at every bin, move and spot."""

import random
from math import prod
from typing import NamedTuple

import pytest
from hypothesis import given, settings

from optsched.boxes.box import Triple
from optsched.boxes.layer_shapes import layer_shape
from optsched.models import PartitionMKP
from optsched.models.partition_mkp import Place, Placement
from optsched.solvers.finding import find_solver
from optsched.testing import partition_mkps

Shelf = dict[int, Triple]
"""Shapes of jobs side by side along X."""

Layer = list[Shelf]
"""Shelves on top of each other along Z."""

Spot = tuple[Layer | None, Shelf | None]
"""A layer and a shelf of that layer, each None for a new one."""


def height(shelf: Shelf) -> int:
    return max(high for _, _, high in shelf.values())


def leader(shelf: Shelf) -> int:
    """Return the first of the highest jobs."""
    return min(job for job, (_, _, high) in shelf.items() if high == height(shelf))


class Bin(NamedTuple):
    """A partly filled bin: its extent, jobs that are several layers deep, and the other layers."""

    extent: Triple
    deep: Shelf
    layers: list[Layer]

    def held(self) -> Shelf:
        shelves = (shelf for layer in self.layers for shelf in layer)
        return self.deep | {job: shape for shelf in shelves for job, shape in shelf.items()}

    def remaining(self) -> int:
        """Return the number of routers without a box."""
        return prod(self.extent) - sum(map(prod, self.held().values()))

    def spot(self, shape: Triple) -> Spot | None:
        """Return the spot for a shape, or None if the shape does not fit.

        A shape deeper than one layer takes whole new layers. Any other shape goes onto the shelf,
        or onto a new shelf, of a used layer by which the shelves grow least; of equal spots, into
        the layer with the least remaining height; else into a new layer.
        """
        wide, deep, high = shape
        used = len(self.layers) + sum(layers for _, layers, _ in self.deep.values())
        new: Spot | None = (None, None) if used + deep <= self.extent[1] else None
        if deep > 1:
            return new
        ranked: list[tuple[tuple[int, int], Spot]] = []
        for layer in self.layers:
            free = self.extent[2] - sum(map(height, layer))
            if high <= free:
                ranked.append(((high, free - high), (layer, None)))
            for shelf in layer:
                gain, width = high - height(shelf), sum(other for other, _, _ in shelf.values())
                if gain <= free and width + wide <= self.extent[0]:
                    rank = (gain, free - gain) if gain > 0 else (0, -gain)
                    ranked.append((rank, (layer, shelf)))
        return min(ranked, key=lambda one: one[0], default=(None, new))[1]

    def put(self, job: int, shape: Triple) -> None:
        layer, shelf = self.spot(shape)
        if shape[1] > 1:
            shelf = self.deep
        elif layer is None:
            self.layers.append([shelf := {}])
        elif shelf is None:
            layer.append(shelf := {})
        shelf[job] = shape

    def without(self, job: int):
        """Return the bin once a job has left it; shelves and layers without a job are gone."""

        def rest(shelf: Shelf) -> Shelf:
            return {other: shape for other, shape in shelf.items() if other != job}

        layers = ([left for shelf in layer if (left := rest(shelf))] for layer in self.layers)
        return Bin(self.extent, rest(self.deep), [*filter(None, layers)])


class Choice(NamedTuple):
    """A bin for a job, ordered by preference: few idle routers, then little remaining capacity."""

    idle: int
    remaining: int
    bin: int
    shape: Triple


class Bins:
    """The partly filled bins of a problem."""

    def __init__(self, problem: PartitionMKP) -> None:
        self.problem = problem
        self.bins = [Bin(box.extent, {}, []) for box in problem.bins]

    def choices(self, routers: int) -> list[Choice]:
        """Return the bins that are large enough for a job in its order; they may be full."""
        ways = [(one, layer_shape(routers, one.extent, self.problem.grid)) for one in self.bins]
        return sorted(
            Choice(prod(shape) - routers, one.remaining(), number, shape)
            for number, (one, shape) in enumerate(ways)
            if shape is not None
        )

    def direct(self, routers: int, besides: int = -1) -> Choice | None:
        """Return the best bin but `besides` that accepts a job."""
        for choice in self.choices(routers):
            if choice.bin != besides and self.bins[choice.bin].spot(choice.shape):
                return choice
        return None

    def best_move(self, routers: int, direct: Choice | None) -> tuple | None:
        """Return the best move out of the first bin that has one: victim, home and host.

        Only bins that the job prefers to the one which accepts it directly are looked at. Moves are
        ordered by the increase of idle routers, then by the routers that move.
        """
        for home in self.choices(routers):
            if direct is not None and home >= direct:
                return None
            moves = []
            for victim, shape in self.bins[home.bin].held().items():
                idle = prod(shape) - self.problem.routers[victim]
                host = self.direct(self.problem.routers[victim], besides=home.bin)
                if host is None or (direct and home.idle + host.idle - idle >= direct.idle):
                    continue
                if self.bins[home.bin].without(victim).spot(home.shape):
                    moves.append((host.idle - idle, prod(shape), victim, home, host))
            if moves:
                return min(moves)[2:]
        return None

    def places(self) -> Placement:
        """Return the place of each job; the first highest job leads a shelf or a layer."""
        places: list[Place | None] = [None] * len(self.problem.routers)
        for number, one in enumerate(self.bins):
            for job in one.deep:
                places[job] = Place(number, job, job)
            for layer in one.layers:
                first = leader(min(layer, key=lambda shelf: (-height(shelf), leader(shelf))))
                for shelf in layer:
                    for job in shelf:
                        places[job] = Place(number, first, leader(shelf))
        return tuple(places)


def placed(problem: PartitionMKP, *, migrating: bool) -> Placement:
    """Return the placement by Algorithm 2, or by Algorithm 3, which moves jobs."""
    state = Bins(problem)
    for job, routers in enumerate(problem.routers):
        choice = state.direct(routers)
        move = state.best_move(routers, choice) if migrating else None
        if move is not None:
            victim, choice, host = move
            state.bins[choice.bin] = state.bins[choice.bin].without(victim)
            state.bins[host.bin].put(victim, host.shape)
        if choice is not None:
            state.bins[choice.bin].put(job, choice.shape)
    return state.places()


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
