"""Three-dimensional torus of routers: ``torus:XxYxZ``."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from optsched.arrays import Floats, Ints
from optsched.boxes.box import EQUAL_LINKS, Box, Grid, Links, Triple, bisection, box_of_text
from optsched.compiled import kernel
from optsched.errors import InputError, UnknownNameError
from optsched.machines.machine import check_counts
from optsched.machines.nodes import FreeRuns, Nodes
from optsched.machines.orderings import ORDERINGS, ordering
from optsched.machines.texts import Texts, interval_runs, text_of_box
from optsched.registry import machines


@kernel
def hops_of_allocations(
    coordinates: Ints, shape: Ints, nodes_per_router: int, first: Ints, last: Ints, runs: Ints
) -> tuple[Floats, Ints]:
    """Return the mean and the largest number of hops between two nodes of each allocation.

    The coordinates of the routers, shape (routers, 3), are by position on the line. The nodes of a
    router are consecutive on the line and 0 hops apart. Rows ``runs[first[a]:last[a]]``, each a
    start and a stop, are the runs of nodes of allocation a. The mean is over pairs of different
    nodes, 0 for a single node.
    """
    count = np.zeros((3, shape.max()), dtype=np.int64)
    held = np.empty((len(coordinates) + len(runs), 3), dtype=np.int64)
    mean = np.zeros(len(first))
    largest = np.zeros(len(first), dtype=np.int64)
    for allocation in range(len(first)):
        count[:] = 0
        nodes, routers = 0, 0
        for start, stop in runs[first[allocation] : last[allocation]]:
            nodes += stop - start
            for router in range(start // nodes_per_router, (stop - 1) // nodes_per_router + 1):
                begin = max(start, router * nodes_per_router)
                end = min(stop, (router + 1) * nodes_per_router)
                for axis in range(3):
                    count[axis, coordinates[router, axis]] += end - begin
                held[routers] = coordinates[router]
                routers += 1
        if routers <= 1:
            continue
        total, most = 0, 0
        for axis in range(3):
            total += hops_along_ring(count[axis, : shape[axis]], nodes)
            most += farthest_on_ring(count[axis, : shape[axis]])
        mean[allocation] = 2 * total / (nodes * (nodes - 1))
        largest[allocation] = farthest_pair(held[:routers], shape, most)
    return mean, largest


@kernel
def hops_along_ring(count: Ints, nodes: int) -> int:
    """Return the sum of the hops in one dimension over all pairs of nodes.

    Of the half rings (``length // 2`` routers from each router on), twice as many separate two
    nodes as there are hops between the nodes. So counting the nodes in each half ring is enough.
    """
    length = len(count)
    half = length // 2
    inside = count[:half].sum()
    twice = 0
    for start in range(length):
        twice += inside * (nodes - inside)
        inside += count[(start + half) % length] - count[start]
    return twice // 2


@kernel
def farthest_on_ring(count: Ints) -> int:
    """Return the largest number of hops between two routers of a ring that hold a node."""
    length = len(count)
    used = np.flatnonzero(count)
    best, ahead = 0, 0
    for behind in range(len(used)):
        ahead = max(ahead, behind)
        while ahead + 1 < behind + len(used):
            turn, place = divmod(ahead + 1, len(used))
            if turn * length + used[place] - used[behind] > length // 2:
                break
            ahead += 1
        turn, place = divmod(ahead, len(used))
        best = max(best, turn * length + used[place] - used[behind])
    return best


@kernel
def hops_between(one: Ints, other: Ints, shape: Ints) -> int:
    """Return the hops of a shortest path between two routers."""
    hops = 0
    for axis in range(3):
        apart = abs(one[axis] - other[axis])
        hops += min(apart, shape[axis] - apart)
    return hops


@kernel
def farthest_pair(held: Ints, shape: Ints, most: int) -> int:
    """Return the largest number of hops between two routers.

    Neighbors on the line are mostly neighbors on the torus. So the routers are cut into pieces
    along the line, and only pairs of pieces whose bounding boxes are far enough apart are compared.

    The routers are rows of `held`, in order of the line. The search ends at a pair that attains
    `most`, an upper bound on the result.
    """
    best, end = 0, 0
    for _ in range(2):  # from any router to the farthest one, and from there again
        begin = end
        for router in range(len(held)):
            hops = hops_between(held[begin], held[router], shape)
            if hops > best:
                best, end = hops, router
    length = int(math.sqrt(len(held)))
    pieces = (len(held) + length - 1) // length
    low = np.empty((pieces, 3), dtype=np.int64)
    high = np.empty((pieces, 3), dtype=np.int64)
    for piece in range(pieces):
        if best == most:
            return best
        low[piece] = high[piece] = held[piece * length]
        for router in held[piece * length : (piece + 1) * length]:
            for axis in range(3):
                low[piece, axis] = min(low[piece, axis], router[axis])
                high[piece, axis] = max(high[piece, axis], router[axis])
        for other in range(piece + 1):
            if hops_between_boxes(low, high, piece, other, shape) > best:
                for one in held[piece * length : (piece + 1) * length]:
                    for router in held[other * length : (other + 1) * length]:
                        best = max(best, hops_between(one, router, shape))
    return best


@kernel
def hops_between_boxes(low: Ints, high: Ints, one: int, other: int, shape: Ints) -> int:
    """Return an upper bound on the hops between a router of one box and a router of another."""
    hops = 0
    for axis in range(3):
        centers = abs(low[one, axis] + high[one, axis] - low[other, axis] - high[other, axis])
        centers = min(centers, 2 * shape[axis] - centers)  # twice the distance of the centers
        widths = high[one, axis] - low[one, axis] + high[other, axis] - low[other, axis]
        hops += min((centers + widths) // 2, shape[axis] // 2)
    return hops


@kernel
def are_connected(neighbors: Ints, nodes_per_router: int, runs: Ints) -> bool:
    """Return whether the routers of an allocation are connected by links between them.

    Links lead to the routers ``neighbors[r]`` of router r, shape (routers, 6), by position on the
    line. Rows of `runs`, each a start and a stop, are the runs of nodes of the allocation; a router
    belongs to it with any of its nodes. The search floods the routers from the first one, in steps
    proportional to the size of the allocation.
    """
    unreached = np.zeros(len(neighbors), dtype=np.bool_)
    routers = 0
    for start, stop in runs:
        for router in range(start // nodes_per_router, (stop - 1) // nodes_per_router + 1):
            if not unreached[router]:
                unreached[router] = True
                routers += 1
    stack = np.empty(routers, dtype=np.int64)
    stack[0] = runs[0, 0] // nodes_per_router
    unreached[stack[0]] = False
    height, reached = 1, 1
    while height:
        height -= 1
        for neighbor in neighbors[stack[height]]:
            if unreached[neighbor]:
                unreached[neighbor] = False
                stack[height] = neighbor
                height += 1
                reached += 1
    return reached == routers


class BoxAllocations:
    """Free routers of a torus on which jobs hold boxes.

    The mask `free`, of the shape of the grid, is True for routers that lie in no hole and that no
    job holds. It is read-only for callers; `changes` counts its changes.
    """

    def __init__(self, grid: Grid, holes: Iterable[Box]) -> None:
        self._grid = grid
        self._usable = grid.free_of(holes)
        self.free = self._usable.copy()
        self.changes = 0

    def claim(self, box: Box) -> None:
        """Take a box for a job."""
        mistake = self._grid.mistake(box)
        if mistake:
            raise ValueError(f"box {box}: {mistake}")
        if not self._grid.admits(box.extent):
            raise ValueError(f"box {box} is not convex")
        routers = self._grid.routers_of(box)
        if not self.free[routers].all():
            raise ValueError(f"box {box} is not free")
        self.free[routers] = False
        self.changes += 1

    def release(self, box: Box) -> None:
        """Take back the box of a job."""
        self.free[self._grid.routers_of(box)] = True
        self.changes += 1

    def violations(self, held: Mapping[int, Box]) -> list[str]:
        """Compare the free routers with the boxes that the running jobs hold."""
        grid = self._grid
        holders = np.zeros(grid.shape, np.int64)
        found = []
        for job, box in held.items():
            routers = grid.routers_of(box)
            if holders[routers].any():
                others = [str(other) for other in held if grid.overlap(held[other], box)]
                found.append(f"jobs {' and '.join(others)} share routers of {box}")
            if not self._usable[routers].all():
                found.append(f"job {job} holds a hole in {box}")
            holders[routers] += 1
        lost = self._usable & (holders == 0) & ~self.free
        invented = self.free & (~self._usable | (holders > 0))
        for wrong, what in ((lost, "lost"), (invented, "free and held")):
            if wrong.any():
                first = tuple(np.argwhere(wrong)[0].tolist())
                found.append(f"{int(wrong.sum())} routers are {what}, {first} first")
        return found


MOST_TORUS_NODES = 2**20
"""Most nodes; about ten times those of the largest torus ever built."""

FASTEST = 10**6
"""Highest speed of a link, relative to the others."""

SPECIFICATION = re.compile(r"([0-9]{1,18}(?:x[0-9]{1,18}){2,3})((?::[^:]*)*)")

OPTIONS = ("ordering", "wrap", "links", "holes", "convex")

ALL = (True, True, True)


class Locality(NamedTuple):
    """Locality of allocations, arrays of shape (allocations,).

    The hops between two nodes are those of a shortest path between their routers; nodes of one
    router are 0 hops apart.
    """

    # Number of runs of adjacent positions; an allocation of one run is contiguous
    runs: Ints
    mean_hops: Floats  # mean over the pairs of different nodes; 0 for a single node
    max_hops: Ints  # the largest number of hops between two nodes
    # `mean_hops` over the mean hops between all nodes of the machine; 0 on one router
    dispersal: Floats


@machines.register("torus")
class Torus(Nodes):
    """3-D torus of routers; jobs hold boxes of routers, or nodes of a line through all routers.

    The policy decides which of the two. Node ``p`` of the line is on the router at position
    ``p // nodes_per_router`` of the processor ordering. A job in a box holds all nodes of the
    routers of the box.

    >>> machine = Torus((8, 12, 12))
    >>> machine.size, machine.spec
    (1152, 'torus:8x12x12:hilbert')
    >>> machine.coordinates[:4].tolist()
    [[0, 0, 0], [0, 0, 1], [0, 1, 1], [0, 1, 0]]
    >>> machine.resources(machine.claim(Box(0, 0, 0, 1, 2, 2), processors=3))
    '0-3'
    """

    usage = (
        "torus:XxYxZ[xNODES][:ORDERING][:wrap=AXES][:links=X,Y,Z][:holes=BOX+BOX...][:convex=true]"
    )

    def __init__(
        self,
        shape: Sequence[int],  # routers in each dimension
        nodes_per_router: int = 1,  # nodes on each router
        ordering: str = "hilbert",  # processor ordering of the routers
        wrap: Sequence[bool] = ALL,  # whether the links of each dimension wrap around
        # Speed of a link of each dimension, relative to the others
        links: Sequence[int] = EQUAL_LINKS,
        # Unavailable routers, such as service nodes and failed ones. A torus with holes
        # cannot serve as a line: only policies that place boxes run on it.
        holes: Sequence[Box | str] = (),
        # Whether the boxes of jobs have to be convex, so that shortest paths between
        # routers of a job stay inside its box: a side is a whole ring, or at most half of
        # it, rounded up
        convex: bool = False,
    ) -> None:
        self.shape = _triple(shape, "shape")
        self.links: Links = _triple(links, "links")
        if max(self.links) > FASTEST:
            raise InputError(f"{links!r}; expected at most {FASTEST:,}", field="links")
        check_counts({"nodes_per_router": nodes_per_router})
        if not isinstance(ordering, str) or ordering not in ORDERINGS:
            raise UnknownNameError("ordering", str(ordering), ORDERINGS)
        if not isinstance(wrap, list | tuple) or [type(axis) for axis in wrap] != [bool] * 3:
            raise InputError(f"{wrap!r}; expected three times true or false", field="wrap")
        nodes = math.prod(self.shape) * nodes_per_router
        if nodes > MOST_TORUS_NODES:
            raise InputError(f"torus of {nodes:,} nodes; expected at most {MOST_TORUS_NODES:,}")
        if type(convex) is not bool:
            raise InputError(f"{convex!r}; expected true or false", field="convex")
        self.grid = Grid(self.shape, (wrap[0], wrap[1], wrap[2]), convex)
        if not isinstance(holes, list | tuple):
            raise InputError(f"{holes!r}; expected a list of boxes", field="holes")
        self.holes = tuple(_hole(hole, self.grid) for hole in holes)
        self.nodes_per_router = nodes_per_router
        self.ordering = ordering
        self.boxes = BoxAllocations(self.grid, self.holes)  # the routers that are free for boxes
        self.holds_boxes = False  # whether jobs hold boxes, and not nodes of the line
        usable = int(self.boxes.free.sum()) * nodes_per_router
        if not usable:
            raise InputError("no router is left", field="holes")
        super().__init__(usable)

    @classmethod
    def from_spec(cls, text: str) -> Self:
        """Build ``torus:<text>``."""
        match = SPECIFICATION.fullmatch(text)
        options = None if match is None else _options(match[2].split(":")[1:])
        if match is None or options is None:
            raise InputError(f"machine 'torus:{text}'; expected {cls.usage}")
        *shape, nodes_per_router = [int(number) for number in f"{match[1]}x1".split("x")][:4]
        return cls(shape, nodes_per_router, **options)

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> Self:
        """Build the machine from ``shape`` and optionally the other parameters, by name."""
        if "shape" not in table or not {"shape", "nodes_per_router", *OPTIONS}.issuperset(table):
            expected = f"expected shape, and perhaps nodes_per_router, {', '.join(OPTIONS)}"
            raise InputError(f"keys {sorted(table)}; {expected}")
        return cls(**table)

    @property
    def spec(self) -> str:
        """Specification that builds an equal machine."""
        numbers = [*self.shape, self.nodes_per_router][: 3 + (self.nodes_per_router > 1)]
        text = f"torus:{'x'.join(map(str, numbers))}:{self.ordering}"
        if self.grid.wrap != ALL:
            axes = "".join(axis for axis, wraps in zip("xyz", self.grid.wrap) if wraps)
            text += f":wrap={axes or 'none'}"
        if self.links != EQUAL_LINKS:
            text += f":links={','.join(map(str, self.links))}"
        if self.holes:
            text += f":holes={'+'.join(map(str, self.holes))}"
        return text + (":convex=true" if self.grid.convex else "")

    def kinds(self) -> frozenset[str]:
        """Return the kinds of machine that this one can serve as; with holes, not a line."""
        return frozenset({"torus"}) if self.holes else super().kinds()

    @cached_property
    def coordinates(self) -> Ints:
        """Coordinates of the routers, by position in the ordering, shape (routers, 3)."""
        return ordering(self.ordering, self.shape)

    @cached_property
    def position_of(self) -> Ints:
        """Position in the ordering of each router, shape of the torus."""
        positions = np.empty(self.shape, np.int64)
        positions[tuple(self.coordinates.T)] = np.arange(len(self.coordinates))
        return positions

    @cached_property
    def neighbors(self) -> Ints:
        """Positions of the routers that links lead to, by position, shape (routers, 6).

        At the end of a dimension that does not wrap around, the link leads to the router itself.
        """
        linked = []
        for axis, (side, wraps) in enumerate(zip(self.shape, self.grid.wrap)):
            for step in (-1, 1):
                there = self.coordinates.copy()
                there[:, axis] += step
                there[:, axis] = (
                    there[:, axis] % side if wraps else there[:, axis].clip(0, side - 1)
                )
                linked.append(self.position_of[tuple(there.T)])
        return np.stack(linked, axis=1)

    def claim(self, place: Any, processors: int) -> Any:
        """Allocate the box, or the runs of the line, that a policy chose."""
        if not isinstance(place, Box):
            return super().claim(place, processors)
        self._hold_boxes()
        nodes = place.volume * self.nodes_per_router
        if nodes < processors:
            raise ValueError(f"a box of {nodes} nodes for a job of {processors}")
        self.boxes.claim(place)
        self.free -= nodes
        return place

    def release(self, allocation: Any) -> None:
        """Free the allocation of a job."""
        if not isinstance(allocation, Box):
            super().release(allocation)
            return
        self.boxes.release(allocation)
        self.free += allocation.volume * self.nodes_per_router

    def is_contiguous(self, allocation: Any) -> bool:
        """Return whether an allocation is a box, or one run of the line."""
        return isinstance(allocation, Box) or super().is_contiguous(allocation)

    def is_connected(self, allocation: Any) -> bool:
        """Return whether links of the torus connect the routers of an allocation with each other.

        An allocation of one run need not be connected, where the ordering has steps of more than
        one hop.

        >>> torus = Torus((4, 4, 4), ordering="row-major")
        >>> torus.is_connected(((0, 1), (12, 13))), torus.is_connected(((0, 1), (5, 6)))
        (True, False)
        """
        if isinstance(allocation, Box):
            return True

        return bool(are_connected(self.neighbors, self.nodes_per_router, np.array(allocation)))

    def resources(self, allocation: Any) -> str:
        """Return the nodes of an allocation as an interval set of positions on the line."""
        if isinstance(allocation, Box):
            return self.nodes_text(allocation)
        return super().resources(allocation)

    def place_text(self, allocation: Any) -> str:
        """Return the text of a box, or the nodes of an allocation on the line."""
        return str(allocation) if isinstance(allocation, Box) else self.resources(allocation)

    def job_measures(self, resources: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Measure allocations: boxes, or the fields of `Locality` on the line.

        Boxes have ``box``, ``2x24x4@3,0,22`` for instance; ``held_nodes``, the nodes on its
        routers; ``half_perimeter``, the sum of its sides in routers; ``bisection``, the speed of
        all links between its halves, see `optsched.boxes.box.bisection`.
        """
        if not self.holds_boxes:
            return self.locality(resources)._asdict()
        boxes = self.boxes_of(resources)
        extents = boxes[:, 3:]
        speeds = [bisection((a, b, c), self.grid, self.links) for a, b, c in extents.tolist()]
        return {
            "box": np.array([str(Box(*box)) for box in boxes.tolist()], dtype=object),
            "held_nodes": extents.prod(axis=1) * self.nodes_per_router,
            "half_perimeter": extents.sum(axis=1),
            "bisection": np.array(speeds, dtype=np.float64),
        }

    def locality(self, allocations: Sequence[str]) -> Locality:
        """Measure the locality of allocations.

        `allocations`: positions as interval sets, ``1-3 5 7`` for instance; not empty.

        >>> measured = Torus((4, 4, 4), ordering="row-major").locality(["0-3", "0 63"])
        >>> measured.runs.tolist(), measured.max_hops.tolist()
        ([1, 2], [2, 3])
        """
        import pandas as pd

        # the jobs of a trace often hold the same nodes
        which, texts = pd.factorize(np.array(allocations, dtype=object))
        stored = Texts.of(texts.tolist())
        first, last, runs = interval_runs(stored.text, stored.offset)
        # the last allocation is the whole machine, for comparison
        whole = [[0, self.size]]
        mean, largest = hops_of_allocations(
            self.coordinates,
            np.array(self.shape),
            self.nodes_per_router,
            np.append(first, len(runs)),
            np.append(last, len(runs) + 1),
            np.append(runs, whole, axis=0),
        )
        of_machine = mean[-1] or 1.0
        return Locality(
            runs=(last - first)[which],
            mean_hops=mean[which],
            max_hops=largest[which],
            dispersal=mean[which] / of_machine,
        )

    def boxes_of(self, allocations: Sequence[str]) -> Ints:
        """Return the smallest boxes around allocations, shape (allocations, 6): x y z nx ny nz.

        Allocations are interval sets of positions, ``0-3 16-19`` for instance, each of all nodes of
        a box.
        """
        jobs = len(allocations)
        boxes = np.zeros((jobs, 6), np.int64)
        if not jobs:
            return boxes
        stored = Texts.of(allocations)
        first, last, runs = interval_runs(stored.text, stored.offset)
        starts, stops = (runs // self.nodes_per_router).T  # whole routers, so both divide
        lengths = stops - starts
        job_of_run = np.repeat(np.arange(jobs), last - first)
        job = np.repeat(job_of_run, lengths)
        before = np.repeat(np.cumsum(lengths) - lengths, lengths)
        position = np.repeat(starts, lengths) + np.arange(len(job)) - before
        coordinates = self.coordinates[position]
        for axis, side in enumerate(self.shape):
            there = np.zeros((jobs, side), np.bool_)
            there[job, coordinates[:, axis]] = True
            begins = there & ~np.roll(there, 1, axis=1)
            boxes[:, axis] = np.where(begins.any(axis=1), begins.argmax(axis=1), 0)
            boxes[:, 3 + axis] = there.sum(axis=1)
        return boxes

    def nodes_text(self, box: Box) -> str:
        """Return the nodes of a box as an interval set of positions on the line."""
        text = text_of_box(self.position_of, np.array(box), self.nodes_per_router)
        return str(text.tobytes(), "ascii")

    def violations(self, held: Mapping[int, Any]) -> list[str]:
        """Compare the free routers, or nodes of the line, with those that running jobs hold."""
        if not self.holds_boxes:
            return super().violations(held)
        found = self.boxes.violations(held)
        free = int(self.boxes.free.sum()) * self.nodes_per_router
        if free != self.free:
            found.append(f"{self.free} nodes counted free, {free} are")
        return found

    def _hold_boxes(self) -> None:
        """Switch from a line to boxes; the jobs of a run hold either boxes or nodes of the line."""
        if not self.holds_boxes:
            if self.free != self.size:
                raise ValueError("a box for a job on a torus that is used as a line")
            self.holds_boxes = True
            self.slots = FreeRuns(0)


def _options(parts: Sequence[str]) -> dict[str, Any] | None:
    """Return the options of a specification by name; None if an option is not well-formed."""
    options: dict[str, Any] = {}
    for part in parts:
        name, equals, value = part.partition("=")
        if not equals:
            name, value = "ordering", part
        if name in options or name not in OPTIONS:
            return None
        if name == "wrap":
            axes = set(value) <= set("xyz") and len(set(value)) == len(value)
            if value != "none" and not (value and axes):
                return None
            options[name] = tuple(axis in value and value != "none" for axis in "xyz")
        elif name == "links":
            speeds = value.split(",")
            if not all(speed.isascii() and speed.isdigit() for speed in speeds):
                return None
            options[name] = tuple(int(speed[:19]) for speed in speeds)
        elif name == "convex":
            if value not in ("true", "false"):
                return None
            options[name] = value == "true"
        else:
            options[name] = value.split("+") if name == "holes" else value
    return options


def _hole(hole: Box | str, grid: Grid) -> Box:
    box = box_of_text(hole) if isinstance(hole, str) else hole
    mistake = "expected a box such as 1x1x4@0,3,0"
    if isinstance(box, Box):
        mistake = grid.mistake(box)
        if not mistake:
            return box
    raise InputError(f"{str(hole)!r}; {mistake}", field="holes")


def _triple(numbers: Any, field: str) -> Triple:
    three = isinstance(numbers, list | tuple) and [*map(type, numbers)] == [int] * 3
    if not three or min(numbers) < 1:
        raise InputError(f"{numbers!r}; expected three whole numbers from 1", field=field)
    return numbers[0], numbers[1], numbers[2]
