"""The content of a node that is worth most at given prices of chunks, compiled.

Each resource has a multiplier, which is charged for what chunks need of it. Without limits on
resources, a device is an unbounded knapsack, and a chunk without devices is worth having if its
price is above the charge. The value of this relaxation, plus the charge for all that is free, is an
upper bound, by which a depth-first search over contents is cut off.

All bounds are sums of numbers that are not negative, so their relative rounding error is that of
some thousand additions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.by_reference import by_reference
from optsched.compiled import kernel
from optsched.solvers.node_placement._depth_first import (
    Found,
    Way,
    begin,
    close_device,
    found_for,
    keep,
    way_for,
)
from optsched.solvers.node_placement._device_filling import (
    CELLS,
    LITTLE,
    NOTHING,
    Filling,
    bound_filling,
    fill_cells,
    list_fills,
    trace_back,
)
from optsched.solvers.node_placement._multipliers import STEPS, descend, find_slope
from optsched.solvers.node_placement._types import Instance, Ints, Kinds, Types

Floats = NDArray[np.float64]

GAINS = 1e-12
WORTHLESS = 1e-9
"""Largest price at which chunks are left out of contents; bounds count them."""


@by_reference
class Scratch(NamedTuple):
    """Room for the pricing of one node."""

    items: Ints  # types that are worth a place, shape (types,)
    net: Floats  # price less the charge for resources, of each item
    loss: Floats
    best: Floats  # net price of an item of so many units, shape (units + 1,)
    item_of: Ints  # that item, or -1
    sizes: Ints
    fill: Floats  # best net price of a device with so many free units
    last: Ints  # units of the last item in it, or 0
    group: Floats  # best net price of so many wholly free devices, shape (devices + 1,)
    last_group: Ints
    used: Floats  # of each resource, by the relaxed content
    slope: Floats
    nearest: Floats  # best multipliers so far
    device: Ints  # free units of each device
    rest: Floats  # best net price of the devices from each on, and of chunks without devices
    loose: Floats  # of the items from each on that need no device
    copies: Ints  # of each item on the way
    counts: Ints  # of each type
    way: Way


@by_reference
class Priced(NamedTuple):
    """The best contents of each kind."""

    value: Floats  # shape (kinds,)
    bound: Floats
    counts: Ints  # of the best content, shape (kinds, types)
    found: Found
    multipliers: Floats  # for the next pricing, shape (kinds, resources)


def scratch_for(instance: Instance) -> Scratch:
    """Return scratch for all kinds of an instance."""
    types, kinds = instance.types, instance.kinds
    number, resources = types.need.shape
    devices = int((kinds.whole + kinds.num_parts).max(initial=0))

    def ints(*shape: int) -> Ints:
        return np.zeros(shape, dtype=np.int64)

    return Scratch(
        items=ints(number),
        net=np.zeros(number),
        loss=np.zeros(number),
        best=np.zeros(instance.units + 1),
        item_of=ints(instance.units + 1),
        sizes=ints(instance.units + 1),
        fill=np.zeros(instance.units + 1),
        last=ints(instance.units + 1),
        group=np.zeros(devices + 1),
        last_group=ints(devices + 1),
        used=np.zeros(resources),
        slope=np.zeros(resources),
        nearest=np.zeros(resources),
        device=ints(devices + 1),
        rest=np.zeros(devices + 2),
        loose=np.zeros(number + 1),
        copies=ints(number),
        counts=ints(number),
        way=way_for(instance),
    )


def priced_for(instance: Instance, contents: int) -> Priced:
    """Return room for so many contents of each kind."""
    kinds, (types, resources) = len(instance.nodes), instance.types.need.shape
    return Priced(
        value=np.zeros(kinds),
        bound=np.zeros(kinds),
        counts=np.zeros((kinds, types), dtype=np.int64),
        found=found_for(instance, kinds, contents),
        multipliers=np.zeros((kinds, resources)),
    )


@kernel(allocates=False)
def copies(types: Types, kinds: Kinds, kind: int, most: Ints, number: int) -> int:
    """Return the most chunks of a type on a node of a kind."""
    return int(min(kinds.fits[kind, number], most[number]))


@kernel(allocates=False)
def is_needless(
    types: Types, kinds: Kinds, kind: int, prices: Floats, most: Ints, better: int, other: int
) -> bool:
    """Return whether chunks of one type can replace all of another on a node, at no loss."""
    if types.devices[better] != types.devices[other] or prices[better] < prices[other]:
        return False
    if types.share[better] > types.share[other]:
        return False
    for resource in range(types.need.shape[1]):
        if types.need[better, resource] > types.need[other, resource]:
            return False
    # enough of them, whatever else is there
    return bool(most[better] >= kinds.room[kind, better])


@kernel(allocates=False)
def find_items(
    types: Types, kinds: Kinds, kind: int, prices: Floats, most: Ints, s: Scratch
) -> int:
    """Collect the types that are worth a place on a node, and return their number."""
    number = 0
    for one in range(len(prices)):
        if prices[one] > WORTHLESS and copies(types, kinds, kind, most, one) > 0:
            s.items[number] = one
            s.copies[number] = 1
            number += 1
    for a in range(number):
        if s.copies[a] and types.devices[s.items[a]] > 0:
            for b in range(number):
                one, other = s.items[a], s.items[b]
                if b != a and is_needless(types, kinds, kind, prices, most, one, other):
                    s.copies[b] = 0
    kept = 0
    for a in range(number):
        if s.copies[a]:
            s.items[kept] = s.items[a]
            kept += 1
    return kept


@kernel(allocates=False)
def relax(
    types: Types,
    kinds: Kinds,
    kind: int,
    prices: Floats,
    most: Ints,
    number: int,
    multipliers: Floats,
    s: Scratch,
) -> tuple[float, float]:
    """Return the bound by the multipliers, and the value of the relaxed content, in `s.used`."""
    units, resources = len(s.best) - 1, types.need.shape[1]
    bound = value = 0.0
    for resource in range(resources):
        bound += multipliers[resource] * kinds.free[kind, resource]
        s.used[resource] = 0.0
    for size in range(units + 1):
        s.best[size] = 0.0
        s.item_of[size] = -1
    for i in range(number):
        one = s.items[i]
        net = prices[one]
        for resource in range(resources):
            net -= multipliers[resource] * types.need[one, resource]
        s.net[i] = net
        if types.devices[one] == 1 and net > s.best[types.share[one]]:
            s.best[types.share[one]] = net
            s.item_of[types.share[one]] = i
        elif types.devices[one] == 0 and net > 0:
            there = copies(types, kinds, kind, most, one)
            bound += there * net
            value += there * prices[one]
            for resource in range(resources):
                s.used[resource] += there * types.need[one, resource]
    sizes = 0
    for size in range(1, units + 1):
        if s.item_of[size] >= 0:
            s.sizes[sizes] = size
            sizes += 1
    s.fill[0] = 0.0
    for room in range(1, units + 1):
        s.fill[room] = s.fill[room - 1]
        s.last[room] = 0
        for j in range(sizes):
            size = s.sizes[j]
            if size > room:
                break
            if s.best[size] + s.fill[room - size] > s.fill[room] + GAINS:
                s.fill[room] = s.best[size] + s.fill[room - size]
                s.last[room] = size
    whole = kinds.whole[kind]
    s.group[0] = 0.0
    for devices in range(1, whole + 1):
        s.group[devices] = s.group[devices - 1] + s.fill[units]
        s.last_group[devices] = -1
        for i in range(number):
            taken = types.devices[s.items[i]]
            if not 1 < taken <= devices:
                continue
            if s.net[i] + s.group[devices - taken] > s.group[devices] + GAINS:
                s.group[devices] = s.net[i] + s.group[devices - taken]
                s.last_group[devices] = i
    bound += s.group[whole]
    single, devices = 0, whole
    while devices > 0:
        i = s.last_group[devices]
        if i < 0:
            single += 1
            devices -= 1
            continue
        value += prices[s.items[i]]
        for resource in range(resources):
            s.used[resource] += types.need[s.items[i], resource]
        devices -= types.devices[s.items[i]]
    for part in range(-1, kinds.num_parts[kind]):
        times, room = single, units
        if part >= 0:
            times, room = 1, kinds.parts[kind, part]
            bound += s.fill[room]
        while times and room > 0:
            if s.last[room] == 0:
                room -= 1
                continue
            one = s.items[s.item_of[s.last[room]]]
            value += times * prices[one]
            for resource in range(resources):
                s.used[resource] += times * types.need[one, resource]
            room -= s.last[room]
    return bound, value


@kernel(allocates=False)
def choose_multipliers(
    types: Types,
    kinds: Kinds,
    kind: int,
    prices: Floats,
    most: Ints,
    number: int,
    tolerance: float,
    multipliers: Floats,
    s: Scratch,
) -> float:
    """Lower the bound by some steps along its slope; return the best, and set its multipliers."""
    resources = types.need.shape[1]
    best, feasible = np.inf, 0.0
    for resource in range(resources):
        s.nearest[resource] = multipliers[resource]
    for step in range(STEPS):
        bound, value = relax(types, kinds, kind, prices, most, number, multipliers, s)
        if bound < best:
            best = bound
            for resource in range(resources):
                s.nearest[resource] = multipliers[resource]
        square = find_slope(kinds.free[kind], s.used, multipliers, s.slope)
        fits = True
        for resource in range(resources):
            fits &= s.used[resource] <= kinds.free[kind, resource]
        if fits:
            feasible = max(feasible, value)
        if square < GAINS or best - feasible <= tolerance:
            break
        target = max(feasible, best * (1 - 0.3 / (step + 1)))
        descend(kinds.free[kind], s.slope, (bound - target) / square, multipliers)
    for resource in range(resources):
        multipliers[resource] = s.nearest[resource]
    nearest, _ = relax(types, kinds, kind, prices, most, number, multipliers, s)
    return float(nearest)


@kernel(allocates=False)
def sort_items(types: Types, number: int, s: Scratch) -> None:
    """Sort the items by what taking one loses against the relaxed content."""
    units = len(s.best) - 1
    for i in range(number):
        one, net = s.items[i], s.net[i]
        loss = -net
        if types.devices[one] == 1:
            loss = s.fill[units] - net - s.fill[units - types.share[one]]
        elif types.devices[one] > 1:
            loss = types.devices[one] * s.fill[units] - net
        j = i
        while j > 0 and s.loss[j - 1] > loss:
            s.loss[j], s.items[j], s.net[j] = s.loss[j - 1], s.items[j - 1], s.net[j - 1]
            j -= 1
        s.loss[j], s.items[j], s.net[j] = loss, one, net


@kernel(allocates=False)
def search(
    types: Types,
    kinds: Kinds,
    kind: int,
    prices: Floats,
    most: Ints,
    number: int,
    base: float,
    tolerance: float,
    limit: int,
    s: Scratch,
    found: Found,
) -> tuple[float, int, bool]:
    """Search depth first for the best content; return its value, the nodes, and if it was cut off.

    Contents that are better by at most `tolerance` are not looked for.
    """
    way, resources, whole = s.way, types.need.shape[1], kinds.whole[kind]
    devices = whole + kinds.num_parts[kind]
    deepest = len(way.stage) - 2
    several = max(0.0, s.group[whole] - whole * s.fill[len(s.best) - 1])
    best, nodes, top = 0.0, 0, 0
    begin(way, kinds.free[kind], whole, number)
    without_devices = False  # those of a negative net price may fit as well
    for i in range(number):
        s.copies[i] = 0
        without_devices |= types.devices[s.items[i]] == 0
    while top >= 0:
        stage, i, worth = way.stage[top], way.option[top], way.worth[top]
        cut, pushed = best + tolerance, False
        while i < number:
            one = s.items[i]
            there = copies(types, kinds, kind, most, one) - s.copies[i]
            bound, room, first = -1.0, 0, way.first[top]
            if there <= 0:
                pass
            elif stage < 0:
                if types.devices[one] > 1 and first + types.devices[one] <= whole:
                    first += types.devices[one]
                    bound = worth + s.net[i] + s.rest[first] + base
                    if first < whole:
                        bound += several
            elif stage < devices:
                if types.devices[one] == 1 and types.share[one] <= way.room[top]:
                    room = way.room[top] - types.share[one]
                    bound = worth + s.net[i] + s.fill[room] + s.rest[stage + 1] + base
                    if first < 0:
                        first = i
            elif types.devices[one] == 0:
                copy = max(0.0, s.net[i]) * (there - 1)
                bound = worth + s.net[i] + copy + s.loose[i + 1] + base
            if bound > cut:
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
                    nodes += 1
                    pushed = True
                    s.copies[i] += 1
                    break
            i += 1
        if pushed:
            if way.value[top] > best:
                best = way.value[top]
                keep(types, s.items, way, top, found, kind)
            if nodes > limit or top > deepest - 1:
                return best, nodes, True
            continue
        if i == number and stage < devices:
            following = way.first[top] if stage < 0 else stage + 1
            if worth + s.rest[following] + base > cut and (following < devices or without_devices):
                alike = stage >= 0 and following < devices
                alike = alike and s.device[following] == s.device[stage]
                close_device(way, top, following, s.device[following], alike, number, 0.0)
                top += 1
                if top > deepest - 1:
                    return best, nodes, True
                continue
        if way.item[top] >= 0:
            s.copies[way.item[top]] -= 1
        top -= 1
    return best, nodes, False


@kernel(allocates=False)
def prepare_search(
    types: Types, kinds: Kinds, kind: int, most: Ints, number: int, s: Scratch
) -> None:
    """Compute what the devices from each on, and chunks without devices, are worth at most."""
    whole, parts = kinds.whole[kind], kinds.num_parts[kind]
    devices = whole + parts
    units = len(s.best) - 1
    s.loose[number] = 0.0
    for i in range(number - 1, -1, -1):
        s.loose[i] = s.loose[i + 1]
        one = s.items[i]
        if types.devices[one] == 0 and s.net[i] > 0:
            s.loose[i] += s.net[i] * copies(types, kinds, kind, most, one)
    s.device[devices] = 0
    s.rest[devices] = s.loose[0]
    for device in range(devices - 1, -1, -1):
        s.device[device] = units if device < whole else kinds.parts[kind, device - whole]
        s.rest[device] = s.rest[device + 1] + s.fill[s.device[device]]


@kernel(allocates=False)
def fill_devices(
    types: Types,
    kinds: Kinds,
    kind: int,
    prices: Floats,
    most: Ints,
    number: int,
    bound: float,
    value: float,
    multipliers: Floats,
    s: Scratch,
    f: Filling,
    priced: Priced,
) -> tuple[float, float]:
    """Fill device after device; return the value of the best content, and a bound.

    Contents that are found replace those in `priced` if they are worth more than `value`.
    """
    resources, whole = types.need.shape[1], kinds.whole[kind]
    devices = whole + kinds.num_parts[kind]
    one = other = 0  # the resources that are charged most
    for resource in range(resources):
        if charge_of(kinds, kind, multipliers, resource) > charge_of(kinds, kind, multipliers, one):
            one = resource
    if resources > 1 and one == 0:
        other = 1
    for resource in range(resources):
        if resource != one and charge_of(kinds, kind, multipliers, resource) > charge_of(
            kinds, kind, multipliers, other
        ):
            other = resource
    complete, gap = True, LITTLE * bound
    for device in range(devices):
        f.first[device] = device
        if device and s.device[device] == s.device[device - 1]:
            f.first[device] = f.first[device - 1]
            continue
        complete &= list_fills(
            types, s.items, number, s.net, s.fill, device, s.device[device],
            multipliers[one], one, gap, f,
        )  # fmt: skip
    if complete:
        lower = bound_filling(
            types, s.items, number, s.net, multipliers[one], whole, devices,
            kinds.free[kind, one], one, f,
        )  # fmt: skip
        for resource in range(resources):
            if resource != one:
                lower += charge_of(kinds, kind, multipliers, resource)
        bound = min(bound, max(lower, bound - gap))
    fill_cells(types, kinds, kind, s.items, number, s.net, one, other, f)
    trims = False
    for t in range(len(most)):
        trims |= most[t] < types.most[t]
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
        length = trace_back(types, s.items, devices, best, most, trims, s.counts, f)
        if rank == 0:
            filled = 0.0
            for chunk in range(length):
                filled += prices[f.type_of[chunk]]
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


@kernel(allocates=False)
def price_kind(
    types: Types,
    kinds: Kinds,
    kind: int,
    prices: Floats,
    most: Ints,
    tolerance: float,
    limit: int,
    fills: bool,
    s: Scratch,
    f: Filling,
    priced: Priced,
) -> int:
    """Price one kind of nodes; return the steps."""
    priced.found.number[kind] = 0
    priced.value[kind] = priced.bound[kind] = 0.0
    slack = 0.0  # for types of hardly any price
    for one in range(len(prices)):
        priced.counts[kind, one] = 0
        if prices[one] <= WORTHLESS:
            slack += prices[one] * copies(types, kinds, kind, most, one)
    number = find_items(types, kinds, kind, prices, most, s)
    if number == 0:
        priced.bound[kind] = slack
        return 1
    multipliers = priced.multipliers[kind]
    bound = choose_multipliers(types, kinds, kind, prices, most, number, tolerance, multipliers, s)
    sort_items(types, number, s)
    prepare_search(types, kinds, kind, most, number, s)
    base = 0.0
    for resource in range(types.need.shape[1]):
        base += multipliers[resource] * kinds.free[kind, resource]
    value, nodes, cut_off = search(
        types, kinds, kind, prices, most, number, base, tolerance, limit, s, priced.found
    )
    fills &= kinds.whole[kind] + kinds.num_parts[kind] > 0
    for i in range(number):
        fills &= types.devices[s.items[i]] > 0
    if not cut_off:
        bound = min(bound, value + tolerance)
    elif fills:
        f.steps[0] = 0
        value, bound = fill_devices(
            types, kinds, kind, prices, most, number, bound, value, multipliers, s, f, priced
        )
        nodes += f.steps[0]
    priced.value[kind] = value
    priced.bound[kind] = bound + slack
    if priced.found.number[kind]:
        place = (priced.found.number[kind] - 1) % priced.found.length.shape[1]
        for chunk in range(priced.found.length[kind, place]):
            priced.counts[kind, priced.found.type_of[kind, place, chunk]] += 1
    return int(nodes)


@kernel(allocates=False)
def price_kinds(
    types: Types,
    kinds: Kinds,
    todo: Ints,
    prices: Floats,
    most: Ints,
    tolerance: float,
    limit: int,
    fills: bool,
    s: Scratch,
    f: Filling,
    priced: Priced,
) -> int:
    """Price kinds of nodes; return the steps of the searches, some for each kind.

    Where the search of a kind is cut off after `limit` steps, its devices are filled in turn if
    `fills` and all chunks need some; the bound is then that of this, or of the relaxation.
    """
    steps = 0
    for place in range(len(todo)):
        steps += STEPS + price_kind(
            types, kinds, todo[place], prices, most, tolerance, limit, fills, s, f, priced
        )
    return steps
