"""The content of a node that is worth most beyond the fragmentation it leaves, compiled.

The free shares that a task cannot use fall into parts by devices, but for tasks that lack a
resource after placement. Without these, and with a multiplier for each resource, each device is a
knapsack of its own, in which what is left has a cost. The value of this relaxation is an upper
bound, by which a search over contents is cut off; that search counts all of the fragmentation.

Worths are in devices, in the mean over the tasks of the mix.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.by_reference import by_reference
from optsched.compiled import kernel
from optsched.models.node_placement.fields import WHOLE
from optsched.solvers.node_placement._depth_first import (
    Found,
    Way,
    begin,
    close_device,
    keep,
)
from optsched.solvers.node_placement._multipliers import STEPS, descend, find_slope
from optsched.solvers.node_placement._types import Types

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TINY = 1e-12


@by_reference
class Mix(NamedTuple):
    """Tasks that count in the fragmentation."""

    need: Ints  # of each resource, shape (tasks, resources)
    on_one: Ints  # thousandths of one device
    whole: Ints  # wholly free devices, 0 for a share
    part: Floats  # of the mix


@by_reference
class Spots(NamedTuple):
    """Nodes with the same content, before and after, for all purposes."""

    free: Ints  # of each resource, shape (spots, resources)
    device: Ints  # free thousandths: of wholly free devices, others, useless; (spots, devices)
    whole: Ints  # numbers of these
    useful: Ints
    devices: Ints
    room: Ints  # units of each device that chunks can take
    copies: Ints  # most chunks of each type, shape (spots, types)
    enough: NDArray[np.bool_]  # whether no more would fit on an empty node
    fits: NDArray[np.bool_]  # whether a task fits before, shape (spots, tasks)
    size: Ints  # number of different shares that tasks ask, up to each; shape (WHOLE + 1,)
    lost: Floats  # part of the mix that cannot use a share with so many sizes; (spots, sizes)
    lost_whole: Floats  # or any of so many whole devices, shape (spots, devices + 1)


@by_reference
class Scratch(NamedTuple):
    """Room for the pricing of one spot."""

    items: Ints  # types that fit, shape (types,)
    net: Floats  # price less the charge for resources, of each item
    order: Floats
    best: Floats  # net price of an item of so many units, shape (units + 1,)
    item_of: Ints
    sizes: Ints
    fill: Floats  # best worth of so many free units of each device, shape (devices + 1, units + 1)
    last: Ints  # units of the last item in it, or 0
    group: Floats  # best worth of so many used whole devices, shape (devices + 1,)
    last_group: Ints
    tail: Floats  # best worth of so many whole devices
    rest: Floats  # best worth of the devices from each on, and of chunks without devices
    loose: Floats
    used: Floats  # of each resource
    slope: Floats
    nearest: Floats
    left: Ints  # of each device, at the end of the way
    copies: Ints  # of each item on the way
    way: Way


@by_reference
class Costed(NamedTuple):
    """The best contents of each spot."""

    value: Floats  # price less fragmentation, shape (spots,)
    bound: Floats
    found: Found
    cost: Floats  # fragmentation, shape (spots, contents)
    multipliers: Floats  # shape (spots, resources)


@kernel(allocates=False)
def cost_of_share(spots: Spots, spot: int, left: int) -> float:
    """Return what is lost of a device with so many free thousandths, if no resource is short."""
    return float(left * spots.lost[spot, spots.size[left]])


@kernel(allocates=False)
def unusable(mix: Mix, spots: Spots, spot: int, free: Ints, left: Ints) -> float:
    """Return the free thousandths that tasks cannot use, with so much left of a spot."""
    devices, total, whole, lost = spots.devices[spot], 0, 0, 0.0
    for device in range(devices):
        total += left[device]
        whole += left[device] == WHOLE
    for task in range(len(mix.part) if total else 0):
        fits = spots.fits[spot, task] and mix.whole[task] <= whole
        for resource in range(len(free)):
            fits &= mix.need[task, resource] <= free[resource]
        if not fits:
            lost += mix.part[task] * total
            continue
        for device in range(devices):
            if left[device] < mix.on_one[task]:
                lost += mix.part[task] * left[device]
    return lost


@kernel(allocates=False)
def fill_device(spots: Spots, spot: int, device: int, sizes: int, unit: int, s: Scratch) -> None:
    """Find the best worth of each room of a device; of a whole one, it is used."""
    room = spots.room[spot, device]
    extra = spots.device[spot, device] - room * unit
    for units in range(room + 1):
        worth = -cost_of_share(spots, spot, extra + units * unit)
        last = 0
        if extra + units * unit == WHOLE:
            worth = -np.inf
        for j in range(sizes):
            size = s.sizes[j]
            if size > units:
                break
            if s.best[size] + s.fill[device, units - size] > worth:
                worth, last = s.best[size] + s.fill[device, units - size], size
        s.fill[device, units], s.last[device, units] = worth, last


@kernel(allocates=False)
def relax(
    types: Types,
    spots: Spots,
    spot: int,
    prices: Floats,
    number: int,
    unit: int,
    multipliers: Floats,
    s: Scratch,
) -> float:
    """Return the bound by the multipliers; what the relaxed content uses is in `s.used`."""
    resources = types.need.shape[1]
    whole, useful = spots.whole[spot], spots.useful[spot]
    bound = 0.0
    for resource in range(resources):
        bound += multipliers[resource] * spots.free[spot, resource]
        s.used[resource] = 0.0
    for size in range(len(s.best)):
        s.best[size], s.item_of[size] = -np.inf, -1
    for i in range(number):
        one = s.items[i]
        net = prices[one]
        for resource in range(resources):
            net -= multipliers[resource] * types.need[one, resource]
        s.net[i] = net
        if types.devices[one] == 1 and net > s.best[types.share[one]]:
            s.best[types.share[one]], s.item_of[types.share[one]] = net, i
        elif types.devices[one] == 0 and net > 0:
            bound += spots.copies[spot, one] * net
            for resource in range(resources):
                s.used[resource] += spots.copies[spot, one] * types.need[one, resource]
    sizes = 0
    for size in range(1, len(s.best)):
        if s.item_of[size] >= 0:
            s.sizes[sizes] = size
            sizes += 1
    for device in range(useful):
        if device and spots.device[spot, device] == spots.device[spot, device - 1]:
            for units in range(spots.room[spot, device] + 1):
                s.fill[device, units] = s.fill[device - 1, units]
                s.last[device, units] = s.last[device - 1, units]
        else:
            fill_device(spots, spot, device, sizes, unit, s)
    units = len(s.best) - 1
    s.group[0], s.tail[0] = 0.0, 0.0
    for devices in range(1, whole + 1):
        s.group[devices], s.last_group[devices] = s.group[devices - 1] + s.fill[0, units], -1
        for i in range(number):
            taken = types.devices[s.items[i]]
            if 1 < taken <= devices and s.net[i] + s.group[devices - taken] > s.group[devices]:
                s.group[devices] = s.net[i] + s.group[devices - taken]
                s.last_group[devices] = i
        s.tail[devices] = -np.inf
        for unused in range(devices + 1):
            cost = unused * WHOLE * spots.lost_whole[spot, whole]
            s.tail[devices] = max(s.tail[devices], s.group[devices - unused] - cost)
    best, unused = -np.inf, 0
    for q in range(whole + 1):
        worth = s.group[whole - q] - q * WHOLE * spots.lost_whole[spot, q]
        if worth > best:
            best, unused = worth, q
    bound += best
    single, devices = 0, whole - unused
    while devices > 0:
        i = s.last_group[devices]
        if i < 0:
            single += 1
            devices -= 1
            continue
        for resource in range(resources):
            s.used[resource] += types.need[s.items[i], resource]
        devices -= types.devices[s.items[i]]
    for device in range(spots.devices[spot]):
        if device >= useful:
            bound -= cost_of_share(spots, spot, spots.device[spot, device])
            continue
        if device >= whole:
            bound += s.fill[device, spots.room[spot, device]]
        elif device >= single:
            continue
        room = spots.room[spot, device]
        while s.last[device, room] > 0:
            one = s.items[s.item_of[s.last[device, room]]]
            for resource in range(resources):
                s.used[resource] += types.need[one, resource]
            room -= s.last[device, room]
    return bound


@kernel(allocates=False)
def find_items(types: Types, spots: Spots, spot: int, prices: Floats, s: Scratch) -> int:
    """Collect the types that fit, but for those that others replace at no loss; return how many."""
    number = 0
    for one in range(len(prices)):
        if spots.copies[spot, one] > 0:
            s.items[number], s.copies[number] = one, 1
            number += 1
    for a in range(number):
        one = s.items[a]
        for b in range(number if s.copies[a] and spots.enough[spot, one] else 0):
            other = s.items[b]
            needless = b != a and prices[one] >= prices[other]
            needless &= types.devices[one] == types.devices[other] != 0
            needless &= types.share[one] == types.share[other]
            for resource in range(types.need.shape[1]):
                needless &= types.need[one, resource] <= types.need[other, resource]
            if needless:
                s.copies[b] = 0
    kept = 0
    for a in range(number):
        if s.copies[a]:
            s.items[kept] = s.items[a]
            kept += 1
    return kept


@kernel(allocates=False)
def choose_multipliers(
    types: Types,
    spots: Spots,
    spot: int,
    prices: Floats,
    number: int,
    unit: int,
    lowest: float,
    multipliers: Floats,
    s: Scratch,
) -> float:
    """Lower the bound by some steps along its slope; return the best, and set its multipliers.

    No value is below `lowest`.
    """
    resources = types.need.shape[1]
    best = np.inf
    for resource in range(resources):
        s.nearest[resource] = multipliers[resource]
    for step in range(STEPS):
        bound = relax(types, spots, spot, prices, number, unit, multipliers, s)
        if bound < best:
            best = bound
            for resource in range(resources):
                s.nearest[resource] = multipliers[resource]
        square = find_slope(spots.free[spot], s.used, multipliers, s.slope)
        if square < TINY:
            break
        length = 0.3 / (step + 1) * (best - lowest) + bound - best
        descend(spots.free[spot], s.slope, length / square, multipliers)
    for resource in range(resources):
        multipliers[resource] = s.nearest[resource]
    return float(relax(types, spots, spot, prices, number, unit, multipliers, s))


@kernel(allocates=False)
def sort_items(types: Types, number: int, s: Scratch) -> None:
    """Sort the items by the net price of a unit of devices, the dearest first."""
    units = len(s.best) - 1
    for i in range(number):
        one, net = s.items[i], s.net[i]
        size = units * types.devices[one] if types.devices[one] > 1 else types.share[one]
        rank = net / max(1, size * types.devices[one])
        j = i
        while j > 0 and s.order[j - 1] < rank:
            s.order[j], s.items[j], s.net[j] = s.order[j - 1], s.items[j - 1], s.net[j - 1]
            j -= 1
        s.order[j], s.items[j], s.net[j] = rank, one, net


@kernel(allocates=False)
def search(
    types: Types,
    mix: Mix,
    spots: Spots,
    spot: int,
    prices: Floats,
    number: int,
    unit: int,
    base: float,
    tolerance: float,
    limit: int,
    s: Scratch,
    costed: Costed,
) -> tuple[float, int, bool]:
    """Search depth first for the best content; return its value, the steps, and if it was cut off.

    Contents that are better by at most `tolerance` are not looked for.
    """
    way, resources = s.way, types.need.shape[1]
    whole, devices = spots.whole[spot], spots.useful[spot]
    deepest, empty = len(way.stage) - 1, WHOLE * spots.lost_whole[spot, whole]
    best, steps, top = -np.inf, 0, 0
    for i in range(number):
        s.copies[i] = 0
    for device in range(spots.devices[spot]):
        s.left[device] = spots.device[spot, device]
    begin(way, spots.free[spot], whole, number)
    while top >= 0:
        stage, i, worth = way.stage[top], way.option[top], way.worth[top]
        cut, pushed = best + tolerance, False
        while i < number:
            one = s.items[i]
            room, first, bound = 0, way.first[top], -np.inf
            there = spots.copies[spot, one] - s.copies[i]
            if there <= 0:
                pass
            elif stage < 0:
                if types.devices[one] > 1 and first + types.devices[one] <= whole:
                    first += types.devices[one]
                    bound = s.tail[whole - first] + s.rest[whole]
            elif stage < devices:
                if types.devices[one] == 1 and types.share[one] <= way.room[top]:
                    room = way.room[top] - types.share[one]
                    bound = s.fill[stage, room] + s.rest[stage + 1]
                    if first < 0:
                        first = i
            elif types.devices[one] == 0:
                bound = max(0.0, s.net[i]) * (there - 1) + s.loose[i + 1]
            if worth + s.net[i] + bound + base > cut:
                fits = True
                for resource in range(resources):
                    fits &= types.need[one, resource] <= way.free[top, resource]
                if fits:
                    way.option[top] = i + 1
                    top += 1
                    way.stage[top], way.room[top], way.first[top] = stage, room, first
                    way.option[top] = way.item[top] = i
                    for resource in range(resources):
                        needs = types.need[one, resource]
                        way.free[top, resource] = way.free[top - 1, resource] - needs
                    way.worth[top] = worth + s.net[i]
                    way.value[top] = way.value[top - 1] + prices[one]
                    pushed = True
                    s.copies[i] += 1
                    take(types, one, stage, first, unit, -1, s)
                    break
            i += 1
        if not pushed and i == number and stage < devices:
            following = way.first[top] if stage < 0 else stage + 1
            cost = 0.0
            if stage >= whole:
                cost = cost_of_share(spots, spot, s.left[stage])
            elif stage >= 0:
                cost = empty if way.first[top] < 0 else cost_of_share(spots, spot, s.left[stage])
            if worth - cost + s.rest[following] + base > cut:
                room, alike = 0, False
                if following < devices:
                    room = spots.room[spot, following]
                    alike = stage >= 0
                    alike &= spots.device[spot, following] == spots.device[spot, stage]
                close_device(way, top, following, room, alike, number, cost)
                top += 1
                pushed = True
        if not pushed:
            if way.item[top] >= 0:
                one = s.items[way.item[top]]
                s.copies[way.item[top]] -= 1
                take(types, one, way.stage[top], way.first[top], unit, 1, s)
            top -= 1
            continue
        steps += 1
        if way.stage[top] == devices:
            steps += len(mix.part) // 8
            cost = unusable(mix, spots, spot, way.free[top], s.left)
            if way.value[top] - cost > best:
                best = way.value[top] - cost
                place = keep(types, s.items, way, top, costed.found, spot)
                costed.cost[spot, place] = cost
        if steps > limit or top >= deepest:
            return best, steps, True
    return best, steps, False


@kernel(allocates=False)
def take(types: Types, one: int, stage: int, first: int, unit: int, sign: int, s: Scratch) -> None:
    """Take a chunk off the devices that are left, or give it back."""
    if stage < 0:
        for device in range(first - types.devices[one], first):
            s.left[device] += sign * WHOLE
    elif types.devices[one] == 1:
        s.left[stage] += sign * types.share[one] * unit


@kernel(allocates=False)
def price_spot(
    types: Types,
    mix: Mix,
    spots: Spots,
    spot: int,
    prices: Floats,
    unit: int,
    tolerance: float,
    limit: int,
    s: Scratch,
    costed: Costed,
) -> int:
    """Price one spot; return the steps."""
    number = find_items(types, spots, spot, prices, s)
    resources, devices = types.need.shape[1], spots.devices[spot]
    for device in range(devices):
        s.left[device] = spots.device[spot, device]
    empty = -unusable(mix, spots, spot, spots.free[spot], s.left)
    costed.found.number[spot] = 0
    multipliers = costed.multipliers[spot]
    bound = choose_multipliers(types, spots, spot, prices, number, unit, empty, multipliers, s)
    sort_items(types, number, s)
    s.loose[number] = 0.0
    for i in range(number - 1, -1, -1):
        s.loose[i] = s.loose[i + 1]
        if types.devices[s.items[i]] == 0:
            s.loose[i] += max(0.0, s.net[i]) * spots.copies[spot, s.items[i]]
    whole, useful = spots.whole[spot], spots.useful[spot]
    empty_cost = WHOLE * spots.lost_whole[spot, whole]
    s.rest[useful] = s.loose[0]
    for device in range(useful - 1, -1, -1):
        worth = s.fill[device, spots.room[spot, device]]
        if device < whole:
            worth = max(worth, -empty_cost)
        s.rest[device] = s.rest[device + 1] + worth
    base = 0.0
    for resource in range(resources):
        base += multipliers[resource] * spots.free[spot, resource]
    for device in range(useful, devices):
        base -= cost_of_share(spots, spot, spots.device[spot, device])
    value, steps, cut_off = search(
        types, mix, spots, spot, prices, number, unit, base, tolerance, limit, s, costed
    )
    if not cut_off:
        bound = min(bound, value + tolerance)
    costed.value[spot], costed.bound[spot] = value, max(value, bound)
    return int(steps)


@kernel(allocates=False)
def price_spots(
    types: Types,
    mix: Mix,
    spots: Spots,
    todo: Ints,
    prices: Floats,
    unit: int,
    tolerance: float,
    limit: int,
    s: Scratch,
    costed: Costed,
) -> int:
    """Price spots; return the steps of the searches, some for each spot."""
    steps = 0
    for place in range(len(todo)):
        steps += STEPS + price_spot(
            types, mix, spots, todo[place], prices, unit, tolerance, limit, s, costed
        )
    return steps
