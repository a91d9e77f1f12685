"""Bins of a partition knapsack while they are filled: layers, shelves, and the room in them."""

from __future__ import annotations

from typing import NamedTuple

from optsched.boxes.box import Triple
from optsched.boxes.layer_shapes import layer_shape
from optsched.models.partition_mkp import PartitionMKP, Place, Placement
from optsched.models.torus_fields import LONGEST

Shape = Triple

NEVER = (LONGEST + 1) ** 2
"""Ranks behind every spot in a layer that is in use."""


class Shelf:
    """Rectangles side by side along X.

    Parameters
    ----------
    room : int
        Width that is left.
    """

    __slots__ = ("height", "room", "shapes")

    def __init__(self, room: int) -> None:
        self.room = room
        self.height = 0
        self.shapes: dict[int, Shape] = {}

    @property
    def leader(self) -> int:
        """The first of its highest jobs."""
        return min(job for job, shape in self.shapes.items() if shape[2] == self.height)

    def height_without(self, job: int) -> int:
        """Return the height of its other jobs."""
        return max((shape[2] for other, shape in self.shapes.items() if other != job), default=0)


class Layer:
    """Shelves on top of each other along Z.

    Parameters
    ----------
    room : int
        Height that is left.
    """

    __slots__ = ("room", "shelves")

    def __init__(self, room: int) -> None:
        self.room = room
        self.shelves: list[Shelf] = []


Spot = tuple[Layer | None, Shelf | None]
"""A layer and a shelf of it; none for new ones."""

NEW: Spot = (None, None)


class Filling:
    """A bin, and the jobs that have been put into it.

    Parameters
    ----------
    extent : (int, int, int)
        Routers in each dimension.
    """

    __slots__ = ("extent", "free", "held", "layers", "left")

    def __init__(self, extent: Triple) -> None:
        self.extent = extent
        self.free = extent[1]
        """Layers that no job is in."""
        self.left = extent[0] * extent[1] * extent[2]
        """Remaining capacity: routers in no box."""
        self.layers: list[Layer] = []
        self.held: dict[int, tuple[Shape, Spot]] = {}

    def spot(self, shape: Shape) -> Spot | None:
        """Return where there is room for a shape; none if nowhere.

        Whole layers if it takes more than one. Otherwise where the shelves of a layer in use gain
        the least height: on a shelf that is high enough, on one that becomes higher, or on a new
        one; of equal ones where the least height remains above. Else a new layer.
        """
        width, depth, height = shape
        if depth > 1:
            return NEW if depth <= self.free else None
        if width * height > self.left:
            return None
        found: Spot | None = NEW if self.free else None
        least = NEVER
        for layer in self.layers:
            room = layer.room
            if height <= room and (rank := height * LONGEST + room - height) < least:
                least, found = rank, (layer, None)
            for shelf in layer.shelves:
                if width <= shelf.room and (gain := height - shelf.height) <= room:
                    rank = -gain if gain <= 0 else gain * LONGEST + room - gain
                    if rank < least:
                        least, found = rank, (layer, shelf)
        return found

    def put(self, job: int, shape: Shape, spot: Spot) -> None:
        """Put a job where `spot` found room."""
        width, depth, height = shape
        layer, shelf = spot
        self.left -= width * depth * height
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
        layer.room -= max(0, height - shelf.height)
        shelf.height = max(shelf.height, height)
        shelf.room -= width
        shelf.shapes[job] = shape
        self.held[job] = shape, (layer, shelf)

    def take(self, job: int) -> None:
        """Take a job out again; a shelf is no higher than the jobs that stay on it."""
        (width, depth, height), (layer, shelf) = self.held.pop(job)
        self.left += width * depth * height
        if layer is None or shelf is None:
            self.free += depth
            return
        remaining = shelf.height_without(job)
        layer.room += shelf.height - remaining
        shelf.height = remaining
        shelf.room += width
        del shelf.shapes[job]
        if not shelf.shapes:
            layer.shelves.remove(shelf)
        if not layer.shelves:
            self.layers.remove(layer)
            self.free += 1

    def has_room_without(self, job: int, shape: Shape) -> bool:
        """Return whether a shape for which there is no room has some once a job is taken out."""
        width, depth, height = shape
        (freed, layers, high), (layer, shelf) = self.held[job]
        if width * depth * height > self.left + freed * layers * high:
            return False
        if layer is None or shelf is None:
            return depth <= self.free + layers
        if len(layer.shelves) == len(shelf.shapes) == 1:
            return depth <= self.free + 1
        if depth > 1:
            return False
        remaining = shelf.height_without(job)
        room = layer.room + shelf.height - remaining
        return height <= room or any(
            width <= other.room + freed * (other is shelf)
            and height - (remaining if other is shelf else other.height) <= room
            for other in layer.shelves
        )


class Choice(NamedTuple):
    """A bin for a job; they compare by preference: fewest idle routers, then the fullest bin."""

    idle: int
    left: int
    bin: int
    shape: Shape


class Fillings:
    """The bins of a problem while they are filled.

    Parameters
    ----------
    problem : PartitionMKP
        The problem.
    """

    def __init__(self, problem: PartitionMKP) -> None:
        self.fillings = [Filling(box.extent) for box in problem.bins]
        self._ways: dict[int, list[tuple[int, int, Shape]]] = {}

    def preferences(self, routers: int) -> list[Choice]:
        """Return the bins that are large enough for a job, full ones too, the best first."""
        fillings = self.fillings
        ways = self._ways_of(routers)
        return sorted(Choice(idle, fillings[b].left, b, shape) for idle, b, shape in ways)

    def direct(self, routers: int, besides: int = -1) -> tuple[Choice, Spot] | None:
        """Return the first bin in the order of preference that accepts a job, and where.

        Parameters
        ----------
        routers : int
            Routers that the job takes.
        besides : int
            A bin that it is not to go to.
        """
        fillings = self.fillings
        for choice in sorted(
            Choice(idle, left, b, shape)
            for idle, b, shape in self._ways_of(routers)
            if (left := fillings[b].left) >= routers + idle and b != besides
        ):
            spot = fillings[choice.bin].spot(choice.shape)
            if spot is not None:
                return choice, spot
        return None

    def _ways_of(self, routers: int) -> list[tuple[int, int, Shape]]:
        """Return idle routers, bin and shape for each bin that is large enough for a job."""
        ways = self._ways.get(routers)
        if ways is None:
            ways = self._ways[routers] = [
                (shape[0] * shape[1] * shape[2] - routers, number, shape)
                for number, filling in enumerate(self.fillings)
                if (shape := layer_shape(routers, filling.extent)) is not None
            ]
        return ways

    def places(self, jobs: int) -> Placement:
        """Return the place of each job; the first of the highest leads a shelf or a layer."""
        places: list[Place | None] = [None] * jobs
        for number, filling in enumerate(self.fillings):
            for job in filling.held:
                places[job] = Place(number, job, job)
            for layer in filling.layers:
                leaders = [(-shelf.height, shelf.leader) for shelf in layer.shelves]
                _, first = min(leaders)
                for (_, leader), shelf in zip(leaders, layer.shelves):
                    for job in shelf.shapes:
                        places[job] = Place(number, first, leader)
        return tuple(places)
