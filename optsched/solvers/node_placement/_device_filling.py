"""Contents of nodes with many devices, one device after the other, compiled.

On an empty node with many devices, a search for the best content hardly gets further than its
bound. Instead, the contents of one device are listed that lose little against the relaxation, and
devices are filled in turn. All but one resource are charged by multipliers; what is used of that
one is counted in steps, rounded down, so that the best sum is an upper bound. A content is found
beside it: for each device and each cell of what is used of two resources, the best way to get
there is kept, with what it uses exactly. More chunks of a type than there are may be used.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optsched.arrays import Floats, Ints
from optsched.by_reference import by_reference
from optsched.compiled import kernel
from optsched.solvers.node_placement._contents import Scratch
from optsched.solvers.node_placement._types import NO_DEVICE, Instance, Kinds, ints

MOST_FILLS = 400
"""Most contents of one device."""

LONGEST_FILL = 24
"""Most chunks in one of them."""

MOST_STEPS = 100_000
"""Steps of the search for them."""

GRID = 4_000
"""Steps of the resource that is not charged."""

CELLS = 80
"""Cells of each of two resources."""

LITTLE = 0.03
"""Share of the value of a node that the contents of a device may lose."""

PER_STEP = 25
"""Small steps that take as long as one of the search for the best content."""

NOTHING = -1e300


@by_reference
class Filling(NamedTuple):
    """Room for the contents of devices, and of the first devices of a node."""

    steps: Ints  # done, in those of the search, shape (1,)
    first: Ints  # the first device with as much room, shape (devices,)
    # contents of a device, for the first with as much room
    number: Ints  # shape (devices,)
    worth: Floats  # net price, shape (devices, fills)
    free_worth: Floats  # net price without the charge for one resource
    need: Ints  # of each resource, shape (devices, fills, resources)
    length: Ints
    item: Ints  # shape (devices, fills, chunks)
    # a content of a device under construction, shape (chunks + 1,)
    option: Ints
    room: Ints
    sum: Floats
    # most net price of the first devices, by steps of one resource, shape (devices + 1, steps)
    most: Floats
    # the best way to each cell, shape (devices + 1, cells)
    value: Floats
    used: Ints  # shape (devices + 1, cells, resources)
    before: Ints  # the cell that it comes from
    by: Ints  # the content of a device, or the item for several devices, after all contents
    # the chunks of a content of the node, shape (entries,)
    type_of: Ints
    device_of: Ints


def filling_for(instance: Instance, entries: int) -> Filling:
    """Return room for all kinds of an instance, and contents of so many chunks."""
    devices = int((instance.kinds.whole + instance.kinds.num_parts).max(initial=0))
    resources = instance.types.need.shape[1]
    cells = devices + 1, CELLS * CELLS
    return Filling(
        steps=ints(1),
        first=ints(devices),
        number=ints(devices),
        worth=np.zeros((devices, MOST_FILLS)),
        free_worth=np.zeros((devices, MOST_FILLS)),
        need=ints(devices, MOST_FILLS, resources),
        length=ints(devices, MOST_FILLS),
        item=ints(devices, MOST_FILLS, LONGEST_FILL),
        option=ints(LONGEST_FILL + 1),
        room=ints(LONGEST_FILL + 1),
        sum=np.zeros(LONGEST_FILL + 1),
        most=np.zeros((devices + 1, GRID + 1)),
        value=np.zeros(cells),
        used=ints(*cells, resources),
        before=ints(*cells),
        by=ints(*cells),
        type_of=ints(entries),
        device_of=ints(entries),
    )


@kernel(allocates=False)
def list_fills(
    number: int, device: int, charge: float, resource: int, gap: float, s: Scratch, f: Filling
) -> bool:
    """List the contents of a device that lose at most `gap`; return whether these are all."""
    types, items, net, fill, room = s.types, s.items, s.net, s.fill[0], s.room[device]
    resources = types.need.shape[1]
    found = 1
    f.worth[device, 0] = f.free_worth[device, 0] = 0.0
    f.length[device, 0] = 0
    for r in range(resources):
        f.need[device, 0, r] = 0
    top = steps = 0
    f.option[0], f.room[0], f.sum[0] = 0, room, 0.0
    complete = True
    while top >= 0:
        i, pushed = f.option[top], False
        while i < number:
            one = items[i]
            if types.devices[one] == 1 and types.share[one] <= f.room[top]:
                left = f.room[top] - types.share[one]
                if fill[room] - (f.sum[top] + net[i] + fill[left]) <= gap:
                    if top == LONGEST_FILL:
                        complete = False
                        break
                    f.option[top] = i + 1
                    top += 1
                    f.option[top], f.room[top], f.sum[top] = i, left, f.sum[top - 1] + net[i]
                    pushed = True
                    break
            i += 1
        if not pushed:
            top -= 1
            continue
        steps += 1
        if steps > MOST_STEPS:
            f.number[device] = found
            return False
        if fill[room] - f.sum[top] > gap:
            continue
        # the chunks on the way are the options taken, one before the next in each entry
        use = 0
        for entry in range(top):
            use += types.need[items[f.option[entry] - 1], resource]
        worth = f.sum[top]
        free_worth = worth + charge * use
        f.steps[0] += 1 + found // PER_STEP
        dominated, other = False, 1
        while other < found:
            less = use - f.need[device, other, resource]
            gain = f.free_worth[device, other] - free_worth
            if less >= 0 and gain >= -1e-9:
                dominated = True
                break
            if less <= 0 and gain <= 0:
                found -= 1
                copy_fill(f, device, found, other)
                continue
            other += 1
        if dominated:
            continue
        if found == MOST_FILLS:
            f.number[device] = found
            return False
        f.worth[device, found], f.free_worth[device, found] = worth, free_worth
        f.length[device, found] = top
        for r in range(resources):
            f.need[device, found, r] = 0
        for entry in range(top):
            item = f.option[entry] - 1
            f.item[device, found, entry] = item
            for r in range(resources):
                f.need[device, found, r] += types.need[items[item], r]
        found += 1
    f.number[device] = found
    return complete


@kernel(allocates=False)
def copy_fill(f: Filling, device: int, one: int, to: int) -> None:
    f.worth[device, to] = f.worth[device, one]
    f.free_worth[device, to] = f.free_worth[device, one]
    f.length[device, to] = f.length[device, one]
    for r in range(f.need.shape[2]):
        f.need[device, to, r] = f.need[device, one, r]
    for entry in range(f.length[device, one]):
        f.item[device, to, entry] = f.item[device, one, entry]


@kernel(allocates=False)
def bound_filling(
    kind: int, number: int, charge: float, resource: int, s: Scratch, f: Filling
) -> float:
    """Return the most that the devices are worth without the charge for one resource."""
    types, items, net = s.types, s.items, s.net
    whole, free = s.kinds.whole[kind], s.kinds.free[kind, resource]
    devices = whole + s.kinds.num_parts[kind]
    step = max(1, -(-free // GRID))
    steps = free // step
    for y in range(steps + 1):
        f.most[0, y] = 0.0
    for device in range(1, devices + 1):
        alike = f.first[device - 1]
        for y in range(steps + 1):
            f.most[device, y] = f.most[device - 1, y]
        f.steps[0] += f.number[alike] * steps // PER_STEP
        for fill in range(1, f.number[alike]):
            use = f.need[alike, fill, resource] // step
            worth = f.free_worth[alike, fill]
            for y in range(use, steps + 1):
                if f.most[device - 1, y - use] + worth > f.most[device, y]:
                    f.most[device, y] = f.most[device - 1, y - use] + worth
        if device > whole:
            continue
        for i in range(number):
            one = items[i]
            taken = types.devices[one]
            if not 1 < taken <= device:
                continue
            use = types.need[one, resource] // step
            worth = net[i] + charge * types.need[one, resource]
            for y in range(use, steps + 1):
                if f.most[device - taken, y - use] + worth > f.most[device, y]:
                    f.most[device, y] = f.most[device - taken, y - use] + worth
    return float(f.most[devices, steps])


@kernel(allocates=False)
def reach(
    kinds: Kinds,
    kind: int,
    one: int,
    other: int,
    device: int,
    cell: int,
    by: int,
    stage: int,
    worth: float,
    need: Ints,
    f: Filling,
) -> None:
    """Note a way to fill the devices up to `stage`, from a cell of those up to `device`."""
    resources = len(need)
    for r in range(resources):
        if f.used[device, cell, r] + need[r] > kinds.free[kind, r]:
            return
    place = (f.used[device, cell, one] + need[one]) // (kinds.free[kind, one] // CELLS + 1)
    if other != one:
        there = (f.used[device, cell, other] + need[other]) // (
            kinds.free[kind, other] // CELLS + 1
        )
        place = place * CELLS + there
    value = f.value[device, cell] + worth
    if value > f.value[stage, place]:
        f.value[stage, place] = value
        f.before[stage, place], f.by[stage, place] = cell, by
        for r in range(resources):
            f.used[stage, place, r] = f.used[device, cell, r] + need[r]


@kernel(allocates=False)
def fill_cells(kind: int, number: int, one: int, other: int, s: Scratch, f: Filling) -> None:
    """Find the best ways to fill the first devices, by cells of two resources."""
    types, kinds, items, net = s.types, s.kinds, s.items, s.net
    whole = kinds.whole[kind]
    devices = whole + kinds.num_parts[kind]
    cells = CELLS * CELLS
    for device in range(devices + 1):
        for cell in range(cells):
            f.value[device, cell] = NOTHING
    f.value[0, 0] = 0.0
    for r in range(types.need.shape[1]):
        f.used[0, 0, r] = 0
    for device in range(devices):
        alike, ways = f.first[device], 0
        for cell in range(cells):
            if f.value[device, cell] == NOTHING:
                continue
            ways += f.number[alike]
            for fill in range(f.number[alike]):
                worth, need = f.worth[alike, fill], f.need[alike, fill]
                reach(kinds, kind, one, other, device, cell, fill, device + 1, worth, need, f)
            for i in range(number):
                stage = device + types.devices[items[i]]
                if stage > device + 1 and stage <= whole:
                    by, need = MOST_FILLS + i, types.need[items[i]]
                    reach(kinds, kind, one, other, device, cell, by, stage, net[i], need, f)
        f.steps[0] += ways // PER_STEP


@kernel(allocates=False)
def trace_back(devices: int, cell: int, trims: bool, s: Scratch, f: Filling) -> int:
    """Write the content of a cell of all devices, and return its number of chunks."""
    types, items, counts, most = s.types, s.items, s.counts, s.most
    for i in range(len(counts)):
        counts[i] = 0
    length, stage = 0, devices
    while stage > 0:
        by, before = f.by[stage, cell], f.before[stage, cell]
        if by >= MOST_FILLS:
            one = items[by - MOST_FILLS]
            stage -= types.devices[one]
            chunks = 1
        else:
            stage -= 1
            one = NO_DEVICE
            chunks = f.length[f.first[stage], by]
        for chunk in range(chunks):
            if by < MOST_FILLS:
                one = items[f.item[f.first[stage], by, chunk]]
            if length < len(f.type_of) and not (trims and counts[one] >= most[one]):
                counts[one] += 1
                f.type_of[length], f.device_of[length] = one, stage
                length += 1
        cell = before
    return length


@kernel(allocates=False)
def fill_devices(
    kind: int, number: int, bound: float, value: float, s: Scratch, f: Filling
) -> tuple[float, float]:
    """Fill device after device; return the value of the best content, and a bound."""
    types, kinds, priced = s.types, s.kinds, s.priced
    multipliers, whole = priced.multipliers[kind], kinds.whole[kind]
    resources = len(multipliers)
    devices = whole + kinds.num_parts[kind]
    one = other = 0  # the resources that are charged most
    for resource in range(1, resources):
        charge = charge_of(kinds, kind, multipliers, resource)
        if charge > charge_of(kinds, kind, multipliers, one):
            one, other = resource, one
        elif other == one or charge > charge_of(kinds, kind, multipliers, other):
            other = resource
    complete, gap = True, LITTLE * bound
    for device in range(devices):
        f.first[device] = device
        if device and s.room[device] == s.room[device - 1]:
            f.first[device] = f.first[device - 1]
            continue
        complete &= list_fills(number, device, multipliers[one], one, gap, s, f)
    if complete:
        lower = bound_filling(kind, number, multipliers[one], one, s, f)
        for resource in range(resources):
            if resource != one:
                lower += charge_of(kinds, kind, multipliers, resource)
        bound = min(bound, max(lower, bound - gap))
    fill_cells(kind, number, one, other, s, f)
    trims = False
    for t in range(len(s.most)):
        trims |= s.most[t] < types.most[t]
    contents, reached = priced.found.length.shape[1], 0
    for cell in range(CELLS * CELLS):
        worth = f.value[devices, cell]
        if worth > NOTHING:
            reached += 1
            for resource in range(resources):
                worth += multipliers[resource] * f.used[devices, cell, resource]
            f.value[devices, cell] = worth
    found = min(contents, reached)
    for rank in range(found):
        best = 0
        for cell in range(CELLS * CELLS):
            if f.value[devices, cell] > f.value[devices, best]:
                best = cell
        f.value[devices, best] = NOTHING
        length = trace_back(devices, best, trims, s, f)
        if rank == 0:
            filled = 0.0
            for chunk in range(length):
                filled += s.prices[f.type_of[chunk]]
            if filled <= value:
                break
            value = filled
            priced.found.number[kind] = found
        place = found - 1 - rank
        priced.found.length[kind, place] = length
        for chunk in range(length):
            priced.found.type_of[kind, place, chunk] = f.type_of[chunk]
            priced.found.device_of[kind, place, chunk] = f.device_of[chunk]
    return value, bound


@kernel(allocates=False)
def charge_of(kinds: Kinds, kind: int, multipliers: Floats, resource: int) -> float:
    """Return the charge for all that is free of a resource."""
    return float(multipliers[resource] * kinds.free[kind, resource])
