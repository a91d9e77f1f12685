"""Cheapest boxes of a torus by the cost of the jobs that they overlap, compiled."""

from __future__ import annotations

import numpy as np

from optsched.arrays import Flags, Ints, Words
from optsched.boxes._rows import NONE, ONE, Wrap, find_anchors, lowest
from optsched.compiled import kernel


@kernel(allocates=False)
def anchor_runs(at: int, length: int, shape: int, side: int, ring: bool, runs: Ints) -> int:
    """Write the runs, start and stop, of anchors whose boxes overlap a given one; return how many.

    The boxes are `shape` long, the given one `length`.
    """
    low, high = at - shape + 1, at + length
    if not ring:
        runs[0, 0], runs[0, 1] = max(low, 0), high
        return 1
    if high - low >= side:
        runs[0, 0], runs[0, 1] = 0, side
        return 1
    if low < 0:
        low, high = low + side, high + side
    runs[0, 0], runs[0, 1] = low, min(high, side)
    if high <= side:
        return 1
    runs[1, 0], runs[1, 1] = 0, high - side
    return 2


@kernel
def sum_up(shape: Ints, boxes: Ints, values: Ints, side: int, wrap: Wrap, table: Ints) -> None:
    """Fill a table with the total value of the jobs that a box at each anchor overlaps.

    The anchors of the boxes that overlap a job form a box themselves. The value of the job is added
    at the corners of that box in a table of differences, of which prefix sums are taken. The table
    has shape (X + 1, Y + 1, Z + 1); entries beyond the torus are undefined.
    """
    sx, sy = table.shape[0] - 1, table.shape[1] - 1
    runs = np.empty((3, 2, 2), dtype=np.int64)
    for x in range(sx + 1):
        for y in range(sy + 1):
            for z in range(side + 1):
                table[x, y, z] = 0
    for job in range(len(boxes)):
        box = boxes[job]
        in_x = anchor_runs(box[0], box[3], shape[0], sx, wrap[0], runs[0])
        in_y = anchor_runs(box[1], box[4], shape[1], sy, wrap[1], runs[1])
        in_z = anchor_runs(box[2], box[5], shape[2], side, wrap[2], runs[2])
        for x in range(in_x):
            for y in range(in_y):
                for z in range(in_z):
                    for corner in range(8):
                        i, j, k = corner >> 2, corner >> 1 & 1, corner & 1
                        sign = 1 - 2 * ((i + j + k) & 1)
                        table[runs[0, x, i], runs[1, y, j], runs[2, z, k]] += sign * values[job]
    for x in range(sx):
        for y in range(sy):
            total = np.int64(0)
            for z in range(side):
                total += table[x, y, z]
                table[x, y, z] = total
            if y > 0:
                for z in range(side):
                    table[x, y, z] += table[x, y - 1, z]
        if x > 0:
            for y in range(sy):
                for z in range(side):
                    table[x, y, z] += table[x - 1, y, z]


@kernel(allocates=False)
def comes_before(cost: int, number: int, other_cost: int, other_number: int) -> bool:
    """Return whether a box precedes another by cost, then by number."""
    return cost < other_cost or (cost == other_cost and number < other_number)


@kernel(allocates=False)
def swap(heap: Ints, one: int, other: int) -> None:
    for column in range(2):
        heap[one, column], heap[other, column] = heap[other, column], heap[one, column]


@kernel(allocates=False)
def sift_down(heap: Ints, count: int) -> None:
    """Restore a max-heap after its top was replaced."""
    place = 0
    while 2 * place + 1 < count:
        child = 2 * place + 1
        if child + 1 < count and comes_before(
            heap[child, 0], heap[child, 1], heap[child + 1, 0], heap[child + 1, 1]
        ):
            child += 1
        if not comes_before(heap[place, 0], heap[place, 1], heap[child, 0], heap[child, 1]):
            break
        swap(heap, place, child)
        place = child


@kernel
def cheapest_boxes(
    shapes: Ints,
    boxes: Ints,
    costs: Ints,
    free: Words,  # routers that boxes may take, rows along Z as bits, shape (X, Y)
    side: int,
    wrap: Wrap,
    overlapping: bool,  # whether to skip boxes that overlap no job
    after: Ints,  # cost and number up to which boxes are skipped, shape (2,)
    below: int,  # cost from which on boxes are skipped
    most: int,  # largest number of boxes
) -> Ints:
    """Return cost and number, row-major over shape and anchor, of the boxes over cheapest jobs."""
    sx, sy = free.shape
    heap = np.empty((most, 2), dtype=np.int64)
    count = 0
    table = np.empty((sx + 1, sy + 1, side + 1), dtype=np.int64)
    met = np.ones_like(table)
    by_count = overlapping and len(costs) > 0 and costs.min() == 0
    starts = np.empty((sx, sy), dtype=np.uint64)
    room = np.empty((2 * sx, 2 * sy), dtype=np.uint64)
    for shape_number in range(len(shapes)):
        shape = shapes[shape_number]
        if not find_anchors(free, shape[0], shape[1], shape[2], side, wrap, starts, room):
            continue
        sum_up(shape, boxes, costs, side, wrap, table)
        if by_count:
            sum_up(shape, boxes, np.ones_like(costs), side, wrap, met)
        for x in range(sx):
            for y in range(sy):
                word = starts[x, y]
                while word != NONE:
                    z = lowest(word)
                    word &= word - ONE
                    cost = table[x, y, z]
                    if cost >= below or (count == most and cost > heap[0, 0]):
                        continue
                    if overlapping and (cost == 0 if not by_count else met[x, y, z] == 0):
                        continue
                    number = ((shape_number * sx + x) * sy + y) * side + z
                    if not comes_before(after[0], after[1], cost, number):
                        continue
                    if count < most:
                        place = count
                        count += 1
                        while place and comes_before(
                            heap[(place - 1) // 2, 0], heap[(place - 1) // 2, 1], cost, number
                        ):
                            heap[place] = heap[(place - 1) // 2]
                            place = (place - 1) // 2
                        heap[place, 0], heap[place, 1] = cost, number
                    elif comes_before(cost, number, heap[0, 0], heap[0, 1]):
                        heap[0, 0], heap[0, 1] = cost, number
                        sift_down(heap, count)
    for end in range(count - 1, 0, -1):
        swap(heap, 0, end)
        sift_down(heap, end)
    return heap[:count].copy()


@kernel(allocates=False)
def share_a_router(one: Ints, other: Ints, sides: Ints) -> bool:
    """Return whether two boxes have a router in common."""
    for axis in range(3):
        ahead = other[axis] - one[axis]
        behind = -ahead
        if ahead < 0:
            ahead += sides[axis]
        elif behind < 0:
            behind += sides[axis]
        if ahead >= one[3 + axis] and behind >= other[3 + axis]:
            return False
    return True


@kernel(allocates=False)
def mark_overlaps(boxes: Ints, others: Ints, sides: Ints, found: Flags) -> None:
    """Mark the pairs of boxes with a router in common in `found`, shape (boxes, others)."""
    for one in range(len(boxes)):
        for other in range(len(others)):
            found[one, other] = share_a_router(boxes[one], others[other], sides)


@kernel(allocates=False)
def least_pair(places: Ints, hosts: Ints, sides: Ints) -> tuple[int, int]:
    """Return the first disjoint place and host with the fewest routers together, or (-1, -1)."""
    chosen, its_host, least = -1, -1, np.inf
    for place in range(len(places)):
        volume = places[place, 3] * places[place, 4] * places[place, 5]
        for host in range(len(hosts)):
            total = volume + hosts[host, 3] * hosts[host, 4] * hosts[host, 5]
            if total >= least:
                break  # hosts are in order of their routers
            if not share_a_router(places[place], hosts[host], sides):
                chosen, its_host, least = place, host, total
                break
    return chosen, its_host
