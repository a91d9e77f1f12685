"""Placement into the bins of a partition knapsack, job by job.

Algorithm 2 of Li et al. (2015), direct placement, and Algorithm 3, based on migration.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from optsched.arrays import Ints
from optsched.boxes._rows import Sides
from optsched.boxes.layer_shapes import find_layer_shape
from optsched.compiled import kernel
from optsched.models.partition_mkp import PartitionMKP, Place, Placement
from optsched.registry import solvers
from optsched.solvers.solver import Heuristic

NX, NZ, EMPTY, REMAINING, FIRST_LAYER, FIRST_JOB = range(6)
"""Columns of bins: sides, number of empty layers, routers without a box, first layer and job."""

FREE, FIRST_SHELF, NEXT = range(3)
"""Columns of layers: free height, first shelf, next layer."""

HEIGHT, LAYER = 1, 3
"""Columns of shelves beside `FREE`, the free width, and `NEXT`."""

WIDE, DEEP, HIGH, BIN, OF_SHELF, NEXT_JOB = range(6)
"""Columns of jobs: shape, bin, shelf if in a shared layer, next job of the bin."""

NEW, NOWHERE = -1, -2
"""Numbers of a layer or a shelf that is to be opened, and of one that does not exist."""

NEVER = 2**62

LARGE = 2**20
"""More than the routers of a bin."""


class State(NamedTuple):
    """Tables of the jobs placed so far; the columns of the first four tables are stated above."""

    bins: Ints
    layers: Ints
    shelves: Ints
    jobs: Ints
    opened: Ints  # number of layers and of shelves


@kernel(allocates=False)
def spot(state: State, b: int, shape: Ints) -> tuple[int, int]:
    """Return the layer and the shelf for a shape, `NOWHERE` if the shape does not fit.

    A shape deeper than one layer takes whole new layers. Any other shape goes onto the shelf, or
    onto a new shelf, of a used layer by which the shelves grow least; of equal spots, into the
    layer with the least remaining height; else into a new layer.
    """
    bins, layers, shelves = state.bins, state.layers, state.shelves
    wide, deep, high = shape
    if deep > 1:
        return (NEW if deep <= bins[b, EMPTY] else NOWHERE), NEW
    if wide * high > bins[b, REMAINING]:
        return NOWHERE, NEW
    in_layer, on_shelf = (NEW if bins[b, EMPTY] > 0 else NOWHERE), NEW
    least = NEVER
    layer = bins[b, FIRST_LAYER]
    while layer >= 0:
        free = layers[layer, FREE]
        if high <= free and high * LARGE + free - high < least:
            least = high * LARGE + free - high
            in_layer, on_shelf = layer, NEW
        shelf = layers[layer, FIRST_SHELF]
        while shelf >= 0:
            gain = high - shelves[shelf, HEIGHT]
            if wide <= shelves[shelf, FREE] and gain <= free:
                rank = -gain if gain <= 0 else gain * LARGE + free - gain
                if rank < least:
                    least = rank
                    in_layer, on_shelf = layer, shelf
            shelf = shelves[shelf, NEXT]
        layer = layers[layer, NEXT]
    return in_layer, on_shelf


@kernel(allocates=False)
def append(owners: Ints, owner: int, first: int, rows: Ints, link: int, row: int) -> None:
    """Append a row to the list that an owner has the first row of; links are in a column."""
    last = owners[owner, first]
    if last < 0:
        owners[owner, first] = row
    else:
        while rows[last, link] >= 0:
            last = rows[last, link]
        rows[last, link] = row


@kernel(allocates=False)
def remove(owners: Ints, owner: int, first: int, rows: Ints, link: int, row: int) -> None:
    """Remove a row from such a list."""
    before = owners[owner, first]
    if before == row:
        owners[owner, first] = rows[row, link]
    else:
        while rows[before, link] != row:
            before = rows[before, link]
        rows[before, link] = rows[row, link]


@kernel(allocates=False)
def put(state: State, job: int, b: int, shape: Ints, layer: int, shelf: int) -> None:
    """Put a job into a spot found by `spot`."""
    bins, layers, shelves, jobs, opened = state
    wide, deep, high = shape
    jobs[job, WIDE], jobs[job, DEEP], jobs[job, HIGH] = wide, deep, high
    jobs[job, BIN], jobs[job, OF_SHELF], jobs[job, NEXT_JOB] = b, NEW, bins[b, FIRST_JOB]
    bins[b, FIRST_JOB] = job
    bins[b, REMAINING] -= wide * deep * high
    if deep > 1:
        bins[b, EMPTY] -= deep
        return
    if layer == NEW:
        layer = opened[0]
        opened[0] += 1
        layers[layer, FREE], layers[layer, FIRST_SHELF] = bins[b, NZ], -1
        layers[layer, NEXT] = -1
        bins[b, EMPTY] -= 1
        append(bins, b, FIRST_LAYER, layers, NEXT, layer)
    if shelf == NEW:
        shelf = opened[1]
        opened[1] += 1
        shelves[shelf, FREE], shelves[shelf, HEIGHT] = bins[b, NX], 0
        shelves[shelf, NEXT], shelves[shelf, LAYER] = -1, layer
        append(layers, layer, FIRST_SHELF, shelves, NEXT, shelf)
    layers[layer, FREE] -= max(0, high - shelves[shelf, HEIGHT])
    shelves[shelf, HEIGHT] = max(shelves[shelf, HEIGHT], high)
    shelves[shelf, FREE] -= wide
    jobs[job, OF_SHELF] = shelf


@kernel(allocates=False)
def height_without(state: State, job: int) -> int:
    """Return the height of a job's shelf without the job, 0 if it is alone there."""
    bins, jobs, highest = state.bins, state.jobs, 0
    other = bins[jobs[job, BIN], FIRST_JOB]
    while other >= 0:
        if other != job and jobs[other, OF_SHELF] == jobs[job, OF_SHELF]:
            highest = max(highest, jobs[other, HIGH])
        other = jobs[other, NEXT_JOB]
    return highest


@kernel(allocates=False)
def take(state: State, job: int) -> None:
    """Remove a job from its bin, and lower its shelf to the highest remaining job."""
    bins, layers, shelves, jobs, _ = state
    b, shelf = jobs[job, BIN], jobs[job, OF_SHELF]
    remaining = height_without(state, job)
    bins[b, REMAINING] += jobs[job, WIDE] * jobs[job, DEEP] * jobs[job, HIGH]
    remove(bins, b, FIRST_JOB, jobs, NEXT_JOB, job)
    jobs[job, BIN] = -1
    if shelf < 0:
        bins[b, EMPTY] += jobs[job, DEEP]
        return
    layer = shelves[shelf, LAYER]
    layers[layer, FREE] += shelves[shelf, HEIGHT] - remaining
    shelves[shelf, HEIGHT] = remaining
    shelves[shelf, FREE] += jobs[job, WIDE]
    if remaining > 0:
        return
    remove(layers, layer, FIRST_SHELF, shelves, NEXT, shelf)
    if layers[layer, FIRST_SHELF] >= 0:
        return
    bins[b, EMPTY] += 1
    remove(bins, b, FIRST_LAYER, layers, NEXT, layer)


@kernel(allocates=False)
def fits_without(state: State, job: int, shape: Ints) -> bool:
    """Return whether a shape that does not fit into a job's bin would fit without the job."""
    bins, layers, shelves, jobs, _ = state
    wide, deep, high = shape
    b, own = jobs[job, BIN], jobs[job, OF_SHELF]
    left = jobs[job, WIDE] * jobs[job, DEEP] * jobs[job, HIGH]
    if wide * deep * high > bins[b, REMAINING] + left:
        return False
    if own < 0:
        return bool(deep <= bins[b, EMPTY] + jobs[job, DEEP])
    layer = shelves[own, LAYER]
    remaining = height_without(state, job)
    first = layers[layer, FIRST_SHELF]
    if remaining == 0 and shelves[first, NEXT] < 0:
        return bool(deep <= bins[b, EMPTY] + 1)
    if deep > 1:
        return False
    free = layers[layer, FREE] + shelves[own, HEIGHT] - remaining
    if high <= free:
        return True
    shelf = first
    while shelf >= 0:
        width = shelves[shelf, FREE] + (jobs[job, WIDE] if shelf == own else 0)
        height = remaining if shelf == own else shelves[shelf, HEIGHT]
        if wide <= width and high - height <= free:
            return True
        shelf = shelves[shelf, NEXT]
    return False


@kernel(allocates=False)
def direct(state: State, shapes: Ints, routers: int, besides: int) -> tuple[int, int, int]:
    """Return the most preferred bin but `besides` that accepts a job, or -1, and the spot.

    `shapes` has the shape of the job in each bin.
    """
    bins, found, in_layer, on_shelf, least = state.bins, -1, NOWHERE, NEW, NEVER
    for b in range(len(bins)):
        taken = shapes[b, 0] * shapes[b, 1] * shapes[b, 2]
        rank = (taken - routers) * LARGE + bins[b, REMAINING]
        if b != besides and 0 < taken <= bins[b, REMAINING] and rank < least:
            layer, shelf = spot(state, b, shapes[b])
            if layer != NOWHERE:
                found, in_layer, on_shelf, least = b, layer, shelf, rank
    return found, in_layer, on_shelf


@kernel
def placed(
    extents: Ints,  # sides of the bins, shape (bins, 3)
    # Routers of each kind of job, and kind of each job in the order of the queue
    sizes: Ints,
    kinds: Ints,
    # Routers of the torus in each dimension, and the longest sides of a box besides these
    sides: Sides,
    longest: Sides,
    migrating: bool,  # whether placed jobs may migrate: Algorithm 3, otherwise Algorithm 2
) -> Ints:
    """Return bin, and leaders of layer and shelf, of each job, -1 if it is not placed."""
    count, wanted = len(extents), len(kinds)
    bins = np.empty((count, 6), dtype=np.int64)
    for b in range(count):
        bins[b, NX], bins[b, NZ], bins[b, EMPTY] = extents[b, 0], extents[b, 2], extents[b, 1]
        bins[b, REMAINING] = extents[b, 0] * extents[b, 1] * extents[b, 2]
        bins[b, FIRST_LAYER], bins[b, FIRST_JOB] = -1, -1
    # each job is put once, and so is a victim of each
    layers = np.empty((2 * wanted, 3), dtype=np.int64)
    shelves = np.empty((2 * wanted, 4), dtype=np.int64)
    jobs = np.full((wanted, 6), -1)
    state = State(bins, layers, shelves, jobs, np.zeros(2, dtype=np.int64))
    shapes = np.empty((len(sizes), count, 3), dtype=np.int64)
    hopeless = np.zeros(len(sizes), dtype=np.bool_)  # until a job moves
    is_known = np.zeros(len(sizes), dtype=np.bool_)
    hosts = np.full(wanted, NOWHERE)  # bins that accept the placed jobs, -1 for none
    for job in range(wanted):
        kind = kinds[job]
        routers = sizes[kind]
        if hopeless[kind]:
            continue
        if not is_known[kind]:
            is_known[kind] = True
            for b in range(count):
                own = shapes[kind, b]
                find_layer_shape(routers, extents[b], sides, longest, own)
        home, layer, shelf = direct(state, shapes[kind], routers, -1)
        idle, most = NEVER, NEVER
        if home >= 0:
            own = shapes[kind, home]
            idle = own[0] * own[1] * own[2] - routers
            most = idle * LARGE + bins[home, REMAINING]
        victim, rank, at = -1, -1, -1
        while migrating and victim < 0:
            # the next bin that the job prefers to the one that accepts it
            following, other = NEVER, -1
            for b in range(count):
                taken = shapes[kind, b, 0] * shapes[kind, b, 1] * shapes[kind, b, 2]
                of_bin = (taken - routers) * LARGE + bins[b, REMAINING]
                is_next = of_bin > rank or (of_bin == rank and b > at)
                before_home = of_bin < most or (of_bin == most and b < home)
                if taken > 0 and is_next and before_home and of_bin < following:
                    following, other = of_bin, b
            if other < 0:
                break
            rank, at = following, other
            there = rank // LARGE
            least = NEVER  # of idle routers that a victim adds, then of its size
            one = bins[other, FIRST_JOB]
            while one >= 0:
                moved = jobs[one, WIDE] * jobs[one, DEEP] * jobs[one, HIGH]
                saved = moved - sizes[kinds[one]]
                if home < 0 or there - saved < idle:
                    own = shapes[kinds[one]]
                    if hosts[one] == NOWHERE:
                        hosts[one] = direct(state, own, sizes[kinds[one]], other)[0]
                    host = hosts[one]
                    if host >= 0:
                        increase = own[host, 0] * own[host, 1] * own[host, 2] - moved
                        of_one = increase * LARGE + moved
                        if (
                            (home < 0 or there + increase < idle)
                            and (of_one < least or (of_one == least and one < victim))
                            and fits_without(state, one, shapes[kind, other])
                        ):
                            least, victim = of_one, one
                one = jobs[one, NEXT_JOB]
        if victim >= 0:
            take(state, victim)
            host, own = hosts[victim], shapes[kinds[victim], hosts[victim]]
            layer, shelf = spot(state, host, own)
            put(state, victim, host, own, layer, shelf)
            hopeless[:] = False
            hosts[:] = NOWHERE
            home = at
            layer, shelf = spot(state, home, shapes[kind, home])
        if home < 0:
            hopeless[kind] = True
            continue
        put(state, job, home, shapes[kind, home], layer, shelf)
        for one in range(wanted):
            if hosts[one] >= 0:
                hosts[one] = NOWHERE
    # the first of the highest jobs leads a shelf, the first of the highest shelves a layer
    places = np.full((wanted, 3), -1)
    leader = np.full((2 * wanted, 2), -1)
    for job in range(wanted):
        shelf = jobs[job, OF_SHELF]
        if jobs[job, BIN] < 0 or shelf < 0 or leader[shelf, 1] >= 0:
            continue
        if jobs[job, HIGH] == shelves[shelf, HEIGHT]:
            leader[shelf, 1] = job
            first = leader[shelves[shelf, LAYER], 0]
            if first < 0 or jobs[job, HIGH] > jobs[first, HIGH]:
                leader[shelves[shelf, LAYER], 0] = job
    for job in range(wanted):
        shelf = jobs[job, OF_SHELF]
        if jobs[job, BIN] >= 0:
            places[job, 0] = jobs[job, BIN]
            places[job, 1] = job if shelf < 0 else leader[shelves[shelf, LAYER], 0]
            places[job, 2] = job if shelf < 0 else leader[shelf, 1]
    return places


class BinRule(Heuristic):
    """Base class of placements job by job, which may migrate or not; work is counted in jobs."""

    models = frozenset({"partition-mkp"})
    work_unit = "jobs"

    migrating: ClassVar[bool]

    def place(self, problem: PartitionMKP) -> Placement:
        """Return the placement of the jobs in the order of the queue."""
        routers, kinds = np.unique(np.array(problem.routers, np.int64), return_inverse=True)
        extents, grid = problem.bin_table[:, 3:], problem.grid
        places = placed(extents, routers, kinds, grid.shape, grid.longest, self.migrating).tolist()
        return tuple(None if place[0] < 0 else Place(*place) for place in places)

    def effort(self, problem: PartitionMKP) -> int:
        """Return the number of waiting jobs."""
        return len(problem.waiting)


@solvers.register("direct-placement")
@dataclass(frozen=True)
class DirectPlacement(BinRule):
    """Each job in turn, into the first bin that accepts it (Algorithm 2 of Li et al. 2015).

    Bins are tried in the order of the job's preference: the fewest idle routers, then the least
    remaining capacity, then the number. Work is counted in jobs.

    K. Li, M. Malawski, J. Nabrzyski, "Topology-aware scheduling on Blue Waters with proactive
    queue scanning and migration-based job placement", JSSPP 2015.

    >>> problem = PartitionMKP((8, 2, 1), ["4x2x1@0,0,0", "3x2x1@4,0,0"], waiting=[6])
    >>> DirectPlacement().place(problem)
    (Place(bin=1, layer=0, shelf=0),)
    """

    migrating = False
    seconds_per_work = 2e-5


@solvers.register("migration-based")
@dataclass(frozen=True)
class MigrationBased(BinRule):
    """Direct placement with migrations of placed jobs (Algorithm 3 of Li et al. 2015).

    For each job, the bins that it prefers to the one that accepts it directly, if any, are examined
    in the order of preference. A job there, placed in this decision, is a qualified victim if the
    incoming job fits without it, if another bin accepts it, and if the migration leaves fewer
    routers idle than direct placement. If no bin accepts the incoming job directly, the last
    condition is dropped. In the first bin with qualified victims, the one with the least increase
    of idle routers moves; of equal victims, the smallest, then the first. Work is counted in jobs.

    K. Li, M. Malawski, J. Nabrzyski, "Topology-aware scheduling on Blue Waters with proactive
    queue scanning and migration-based job placement", JSSPP 2015.

    The second job takes the layers of four where the first was, so that the third fits, too:

    >>> bins = ["4x2x1@0,0,0", "3x3x1@4,0,0"]
    >>> problem = PartitionMKP((8, 4, 1), bins, waiting=[8, 4, 4])
    >>> [place.bin for place in MigrationBased().place(problem)]
    [1, 0, 0]
    """

    migrating = True
    seconds_per_work = 5e-5
