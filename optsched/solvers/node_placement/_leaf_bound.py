"""Least number of leaf switches of jobs that share nodes, by Lagrangian relaxation.

At prices of chunks from 0, a node holds no more than its best content is worth. With several such
price vectors, each with a multiplier for each leaf, a chunk pays a rent on each leaf. Whatever the
multipliers are, all placements of at least a weight span as many switches as

    the least sum, over jobs of that weight, of leaves and rents - multipliers x worth of leaves.

For one job, that is easy: all its leaves but one are full. Without rents, it is the number of
leaves that the job needs alone. Multipliers follow the slope of the bound. Jobs that are left out
may be fractions here.

The price vectors are the prices that bound the weight; the need for each resource; whether this is
more than half of what any node has; and each of these for those chunks alone that need another
resource, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from optsched.arrays import Flags, Floats, Ints
from optsched.compiled import kernel
from optsched.solvers.anytime import Progress
from optsched.solvers.node_placement._node_state import numbered
from optsched.solvers.node_placement._packing import Packing
from optsched.solvers.node_placement._types import Instance


@kernel(allocates=False)
def cheapest(
    rents: Floats, room: Ints, chunks: int, order: Ints, cost: Floats, taken: Flags, used: Ints
) -> float:
    """Return the least leaves plus rents for a job, and write its chunks on each leaf to `used`."""
    # all leaves of a job but the dearest are full: they are looked at by rising rents
    for place in range(1, len(order)):
        leaf, at = order[place], place
        while at > 0 and rents[order[at - 1]] > rents[leaf]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = leaf
    for held in range(chunks):
        cost[held] = np.inf
    cost[0] = 0.0
    best, last, before = np.inf, 0, 0
    for place in range(len(order)):
        leaf = order[place]
        full, rent = room[leaf], rents[leaf]
        used[leaf] = 0
        if full == 0:
            continue
        for held in range(max(0, chunks - full), chunks):
            total = cost[held] + 1.0 + rent * (chunks - held)
            if total < best:
                best, last, before = total, place, held
        for held in range(chunks - 1, full - 1, -1):
            total = cost[held - full] + 1.0 + rent * full
            taken[place, held] = total < cost[held]
            cost[held] = min(cost[held], total)
    used[order[last]] = chunks - before
    for place in range(last - 1, -1, -1):
        leaf = order[place]
        if 0 < room[leaf] <= before and taken[place, before]:
            used[leaf] = room[leaf]
            before -= room[leaf]
    return best


@kernel(allocates=False)
def cheapest_of_all(
    rents: Floats,
    room: Ints,
    type_of: Ints,
    chunks: Ints,
    order: Ints,
    cost: Floats,
    taken: Flags,
    least: Floats,
    used: Ints,
) -> None:
    """Write the least cost of a job of each class, and its chunks on each leaf."""
    for job in range(len(chunks)):
        of = type_of[job]
        least[job] = cheapest(rents[of], room[of], chunks[job], order[of], cost, taken, used[job])


MOST_VECTORS = 40
"""Most price vectors beside those that bound the weight."""

STEPS = 600
"""Most steps along the slope."""

PATIENCE = 12
"""Steps in vain after which steps become shorter."""

SHORTER = 1.5

SHORTEST = 0.02
"""Share of the way to the target that steps make at least."""

TOLERANCE = 1e-6
"""What rounding may add to the bound."""

SECONDS_PER_STEP = 2e-4
SECONDS_PER_ENTRY = 2e-9
"""Nominal seconds of a step, and for each chunk of each class and each leaf."""


class Row(NamedTuple):
    """A limit of what jobs left out gain together, for placements of at least a weight."""

    gains: Floats  # of a job of each class, from 0
    most: float


class LeafBound:
    """Lower bound of the leaf switches that jobs span, at the weight that bounds a packing."""

    bound: int  # fewest switches, as far as proven

    def __init__(
        self, instance: Instance, packing: Packing, progress: Progress, until: float
    ) -> None:
        self._classes, self._progress = instance.classes, progress
        leaf_of = numbered(instance.problem.switches or [""] * len(instance.kind_of))
        used = instance.kind_of >= 0
        of_kind = np.zeros((leaf_of.max(initial=0) + 1, len(instance.nodes)), dtype=np.int64)
        np.add.at(of_kind, (leaf_of[used], instance.kind_of[used]), 1)
        on_node = -(-instance.kinds.fits // instance.fill)
        on_node = np.where(instance.limit, np.minimum(on_node, instance.limit), on_node)
        self._room = np.ascontiguousarray((of_kind @ on_node).T)
        self._rows = [*_rows(instance, packing)]
        vectors: list[Floats] = []
        worth: list[Floats] = []
        for vector in (packing.relaxation.prices.chunks, *_vectors(instance)):
            known = any((vector == other).all() for other in vectors)
            if vector.any() and not known and progress.spent() < until:
                vectors.append(vector)
                worth.append(of_kind @ packing.worth_of_nodes(vector))
        of_leaf = np.array(worth).reshape(len(worth), len(of_kind))
        scale = np.maximum(TOLERANCE, of_leaf.max(axis=1, keepdims=True))
        self._vectors = np.array(vectors).reshape(len(worth), len(self._room)) / scale
        self._worth = of_leaf / scale
        self._multipliers = np.zeros_like(self._worth)
        self.bound = 0

    def raise_to(self, target: int, until: float) -> None:
        """Raise the bound towards a number of switches, as far as a share of the budget allows."""
        classes, room = self._classes, self._room
        leaves, most = room.shape[1], int(classes.chunks.max())
        order = np.tile(np.arange(leaves), (len(room), 1))
        cost, taken = np.empty(most), np.empty((leaves, most), dtype=np.bool_)
        least = np.empty(len(classes.chunks))
        used = np.empty((len(least), leaves), dtype=np.int64)
        entries = leaves * int(classes.chunks.sum())
        best, factor, since = -math.inf, 1.0, 0
        at = self._multipliers
        for _ in range(STEPS):
            rents = np.ascontiguousarray(self._vectors.T @ at)
            cheapest_of_all(
                *(rents, room, classes.type_of, classes.chunks, order, cost, taken, least, used)
            )
            self._progress.work += SECONDS_PER_STEP + SECONDS_PER_ENTRY * entries
            value, jobs = self._of_cheapest_jobs(least)
            value -= float((at * self._worth).sum())
            self.bound = max(self.bound, math.ceil(value - TOLERANCE))
            if self.bound >= target or self._progress.spent() >= until:
                break
            since += 1
            if value > best:
                since = 0 if value > best + factor * TOLERANCE else since
                best, self._multipliers = value, at
            elif since >= PATIENCE:
                factor, since, at = factor / SHORTER, 0, self._multipliers
                if factor < SHORTEST:
                    break
            chunks = np.zeros(room.shape)
            np.add.at(chunks, classes.type_of, used * jobs[:, None])
            slope = self._vectors @ chunks - self._worth
            slope[(at <= 0) & (slope < 0)] = 0.0
            square = float((slope * slope).sum())
            if square == 0:
                break
            at = np.maximum(0.0, at + factor * (target - value) / square * slope)

    def _of_cheapest_jobs(self, least: Floats) -> tuple[float, Floats]:
        """Return the least cost of jobs that have the weight, and their number of each class."""
        jobs = self._classes.jobs
        found: list[tuple[float, Floats]] = []
        for gains, most in self._rows:
            dearest = np.argsort(-least / np.maximum(gains, TOLERANCE), kind="stable")
            sums = np.cumsum((gains * jobs)[dearest])
            whole = sums <= most
            out = np.where(whole, jobs[dearest], 0.0)
            if not whole.all():
                place = int(whole.argmin())
                before = float(sums[place - 1]) if place else 0.0
                out[place] = (most - before) / gains[dearest[place]]
            left = jobs.astype(float)
            left[dearest] -= out
            found.append((float(left @ least), left))
        return max(found, key=lambda one: one[0])


def _rows(instance: Instance, packing: Packing) -> Iterator[Row]:
    """Yield what placements of the greatest weight can leave out, by weights and by prices.

    At prices of chunks and licences, the weight is at most the worth of all room plus what jobs
    gain beyond the prices that they pay.
    """
    classes = instance.classes
    weights = classes.weights.astype(float)
    all_gain = float(weights @ classes.jobs)
    yield Row(weights, all_gain - packing.bound)
    best: Row | None = None
    for prices, room in packing.relaxation.rows:
        gains = np.maximum(0.0, prices.gains(classes))
        most = room + float(gains @ classes.jobs) - packing.bound
        most = max(0.0, most) + max(TOLERANCE, 1e-9 * room)
        if best is None or most < best.most:
            best = Row(gains, most)
    if best is not None:
        yield best


def _vectors(instance: Instance) -> Iterator[Floats]:
    """Yield price vectors that follow from what chunks need."""
    types, kinds = instance.types, instance.kinds
    devices = types.devices * types.share
    needs = np.column_stack((types.need, devices)).astype(float)
    largest = [*kinds.free.max(axis=0, initial=0).tolist(), instance.units]
    filters = [np.ones(len(needs)), *(needs > 0).T.astype(float)]
    vectors = (
        chosen * vector
        for need, most in zip(needs.T, largest)
        for vector in (need, (2 * need > most).astype(float))
        for chosen in filters
    )
    for vector, _ in zip(vectors, range(MOST_VECTORS)):
        yield vector
