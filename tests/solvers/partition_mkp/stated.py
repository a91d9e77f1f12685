"""Algorithms 2 and 3 of Li et al. (2015), with an object for each bin, layer and shelf."""

from __future__ import annotations

from typing import NamedTuple

from optsched.boxes.box import Triple
from optsched.boxes.layer_shapes import layer_shape
from optsched.models.partition_mkp import PartitionMKP, Place, Placement
from optsched.models.torus import LONGEST_SIDE

Shape = Triple

NEVER = (LONGEST_SIDE + 1) ** 2
"""Rank beyond that of every spot in a used layer."""


class Shelf:
    """Rectangles side by side along X, with a free width."""

    __slots__ = ("free", "height", "shapes")

    def __init__(self, free: int) -> None:
        self.free = free
        self.height = 0
        self.shapes: dict[int, Shape] = {}

    @property
    def leader(self) -> int:
        """First of the highest jobs."""
        return min(job for job, shape in self.shapes.items() if shape[2] == self.height)

    def height_without(self, job: int) -> int:
        """Return the height of the shelf without a job."""
        return max((shape[2] for other, shape in self.shapes.items() if other != job), default=0)


class Layer:
    """Shelves on top of each other along Z, with a free height."""

    __slots__ = ("free", "shelves")

    def __init__(self, free: int) -> None:
        self.free = free
        self.shelves: list[Shelf] = []


Spot = tuple[Layer | None, Shelf | None]
"""A layer and a shelf of that layer, each None for a new one."""

NEW: Spot = (None, None)


class Bin:
    """A partly filled bin; its extent is the number of routers in each dimension."""

    __slots__ = ("extent", "free", "held", "layers", "remaining")

    def __init__(self, extent: Triple) -> None:
        self.extent = extent
        self.free = extent[1]
        """Number of empty layers."""
        self.remaining = extent[0] * extent[1] * extent[2]
        """Remaining capacity: number of routers without a box."""
        self.layers: list[Layer] = []
        self.held: dict[int, tuple[Shape, Spot]] = {}

    def spot(self, shape: Shape) -> Spot | None:
        """Return the spot for a shape, or None if the shape does not fit.

        A shape deeper than one layer takes whole new layers. Any other shape goes onto the shelf,
        or onto a new shelf, of a used layer by which the shelves grow least; of equal spots, into
        the layer with the least remaining height; else into a new layer.
        """
        width, depth, height = shape
        if depth > 1:
            return NEW if depth <= self.free else None
        if width * height > self.remaining:
            return None
        found: Spot | None = NEW if self.free else None
        least = NEVER
        for layer in self.layers:
            free = layer.free
            if height <= free and (rank := height * LONGEST_SIDE + free - height) < least:
                least, found = rank, (layer, None)
            for shelf in layer.shelves:
                if width <= shelf.free and (gain := height - shelf.height) <= free:
                    rank = -gain if gain <= 0 else gain * LONGEST_SIDE + free - gain
                    if rank < least:
                        least, found = rank, (layer, shelf)
        return found

    def put(self, job: int, shape: Shape, spot: Spot) -> None:
        """Put a job into a spot found by `spot`."""
        width, depth, height = shape
        layer, shelf = spot
        self.remaining -= width * depth * height
        if depth > 1:
            self.free -= depth
            self.held[job] = shape, NEW
            return
        if layer is None:
            layer = Layer(self.extent[2])
            self.layers.append(layer)
            self.free -= 1
        if shelf is None:
            shelf = Shelf(self.extent[0])
            layer.shelves.append(shelf)
        layer.free -= max(0, height - shelf.height)
        shelf.height = max(shelf.height, height)
        shelf.free -= width
        shelf.shapes[job] = shape
        self.held[job] = shape, (layer, shelf)

    def take(self, job: int) -> None:
        """Remove a job, and lower its shelf to the highest remaining job."""
        (width, depth, height), (layer, shelf) = self.held.pop(job)
        self.remaining += width * depth * height
        if layer is None or shelf is None:
            self.free += depth
            return
        remaining = shelf.height_without(job)
        layer.free += shelf.height - remaining
        shelf.height = remaining
        shelf.free += width
        del shelf.shapes[job]
        if not shelf.shapes:
            layer.shelves.remove(shelf)
        if not layer.shelves:
            self.layers.remove(layer)
            self.free += 1

    def fits_without(self, job: int, shape: Shape) -> bool:
        """Return whether a shape that does not fit would fit if a job were removed."""
        width, depth, height = shape
        (freed, layers, high), (layer, shelf) = self.held[job]
        if width * depth * height > self.remaining + freed * layers * high:
            return False
        if layer is None or shelf is None:
            return depth <= self.free + layers
        if len(layer.shelves) == len(shelf.shapes) == 1:
            return depth <= self.free + 1
        if depth > 1:
            return False
        remaining = shelf.height_without(job)
        free = layer.free + shelf.height - remaining
        return height <= free or any(
            width <= other.free + freed * (other is shelf)
            and height - (remaining if other is shelf else other.height) <= free
            for other in layer.shelves
        )


class Choice(NamedTuple):
    """A bin for a job, ordered by preference: few idle routers, then little remaining capacity."""

    idle: int
    remaining: int
    bin: int
    shape: Shape


class Bins:
    """The partly filled bins of a problem."""

    def __init__(self, problem: PartitionMKP) -> None:
        self.bins = [Bin(box.extent) for box in problem.bins]
        self._grid = problem.grid
        self._ways: dict[int, list[tuple[int, int, Shape]]] = {}

    def preferred(self, routers: int, to: Choice | None) -> list[Choice]:
        """Return the bins that a job prefers to a choice, if any, in order of preference.

        The bins are large enough for the job, but may be full.
        """
        bins = self.bins
        choices = [(idle, bins[b].remaining, b, shape) for idle, b, shape in self._ways_of(routers)]
        better = choices if to is None else [choice for choice in choices if choice < to]
        return [Choice(*choice) for choice in sorted(better)]

    def direct(self, routers: int, besides: int = -1) -> tuple[Choice, Spot] | None:
        """Return the best bin but `besides` that accepts a job, with the spot, or None."""
        bins = self.bins
        for choice in sorted(
            (idle, remaining, b, shape)
            for idle, b, shape in self._ways_of(routers)
            if (remaining := bins[b].remaining) >= routers + idle and b != besides
        ):
            spot = bins[choice[2]].spot(choice[3])
            if spot is not None:
                return Choice(*choice), spot
        return None

    def _ways_of(self, routers: int) -> list[tuple[int, int, Shape]]:
        """Return idle routers, number and shape for each bin that is large enough for a job."""
        ways = self._ways.get(routers)
        if ways is None:
            ways = self._ways[routers] = [
                (shape[0] * shape[1] * shape[2] - routers, number, shape)
                for number, knapsack in enumerate(self.bins)
                if (shape := layer_shape(routers, knapsack.extent, self._grid)) is not None
            ]
        return ways

    def places(self, jobs: int) -> Placement:
        """Return the place of each job; the first highest job leads a shelf or a layer."""
        places: list[Place | None] = [None] * jobs
        for number, knapsack in enumerate(self.bins):
            for job in knapsack.held:
                places[job] = Place(number, job, job)
            for layer in knapsack.layers:
                leaders = [(-shelf.height, shelf.leader) for shelf in layer.shelves]
                _, first = min(leaders)
                for (_, leader), shelf in zip(leaders, layer.shelves):
                    for job in shelf.shapes:
                        places[job] = Place(number, first, leader)
        return tuple(places)


class Move(NamedTuple):
    """A migration of a job to another bin, ordered by cost.

    `increase` is that of the idle routers of the victim, `moved` its routers in the old bin. `home`
    is the old bin, for the incoming job, and `host` the new one.
    """

    increase: int
    moved: int
    victim: int
    home: Choice
    host: Choice


class Migrating:
    """State of migration-based placement: the bins, and a cache of hosts of their jobs."""

    def __init__(self, problem: PartitionMKP) -> None:
        self._problem = problem
        self._bins = Bins(problem)
        self._hosts: dict[int, Choice] = {}
        self._stuck: set[int] = set()

    def place(self) -> Placement:
        # sizes that do not fit until a job moves
        hopeless: set[int] = set()
        for job, routers in enumerate(self._problem.routers):
            if routers in hopeless:
                continue
            direct = self._bins.direct(routers)
            choice = direct and direct[0]
            move = self._best_move(routers, choice)
            if move is not None:
                self._bins.bins[move.home.bin].take(move.victim)
                self._put(move.victim, move.host)
                self._stuck.clear()
                hopeless.clear()
                choice = move.home
            if choice is None:
                hopeless.add(routers)
            else:
                self._put(job, choice)
        return self._bins.places(len(self._problem.routers))

    def _put(self, job: int, choice: Choice) -> None:
        knapsack = self._bins.bins[choice.bin]
        spot = knapsack.spot(choice.shape)
        assert spot is not None
        knapsack.put(job, choice.shape, spot)
        self._hosts.clear()

    def _best_move(self, routers: int, direct: Choice | None) -> Move | None:
        """Return the best move out of the first bin that has one, or None.

        Only bins that the job prefers to the bin which accepts it directly are examined.
        """
        for home in self._bins.preferred(routers, direct):
            knapsack = self._bins.bins[home.bin]
            best: Move | None = None
            for victim, (shape, _) in knapsack.held.items():
                moved = shape[0] * shape[1] * shape[2]
                idle = moved - self._problem.routers[victim]
                if direct is not None and home.idle - idle >= direct.idle:
                    continue
                host = self._host(victim, home.bin)
                if host is None or (
                    direct is not None and home.idle + host.idle - idle >= direct.idle
                ):
                    continue
                found = Move(host.idle - idle, moved, victim, home, host)
                if (best is None or found < best) and knapsack.fits_without(victim, home.shape):
                    best = found
            if best is not None:
                return best
        return None

    def _host(self, victim: int, home: int) -> Choice | None:
        """Return the most preferred bin other than `home` that accepts a job, or None."""
        if victim not in self._hosts and victim not in self._stuck:
            direct = self._bins.direct(self._problem.routers[victim], besides=home)
            if direct is None:
                self._stuck.add(victim)
            else:
                self._hosts[victim] = direct[0]
        return self._hosts.get(victim)


def place_directly(problem: PartitionMKP) -> Placement:
    """Return the placement by Algorithm 2."""
    bins = Bins(problem)
    hopeless: set[int] = set()
    for job, routers in enumerate(problem.routers):
        if routers not in hopeless:
            direct = bins.direct(routers)
            if direct is None:
                hopeless.add(routers)
                continue
            choice, spot = direct
            bins.bins[choice.bin].put(job, choice.shape, spot)
    return bins.places(len(problem.routers))
