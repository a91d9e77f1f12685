"""The content of a node that is worth most at given prices of chunks, compiled.

Each resource has a multiplier, which is charged for what chunks need of it. Without limits on
resources, a device is an unbounded knapsack, in which what is left has a cost where losses count,
and a chunk without devices is worth having if its price is above the charge. The value of this
relaxation, plus the charge for all that is free, is an upper bound, by which a depth-first search
over contents is cut off. Losses for lack of a resource are counted by that search alone.

All bounds without losses are sums of numbers that are not negative, so their relative rounding
error is that of some thousand additions.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from optsched.arrays import Floats, Ints
from optsched.compiled import kernel
from optsched.models.node_placement.fields import WHOLE
from optsched.solvers.anytime import Progress
from optsched.solvers.node_placement._contents import (
    Losses,
    Priced,
    Scratch,
    begin,
    close_device,
    contents_found,
    cost_of_share,
    entries_of,
    found_for,
    keep,
    unusable,
    way_for,
)
from optsched.solvers.node_placement._device_filling import (
    Filling,
    charge_of,
    fill_devices,
    filling_for,
)
from optsched.solvers.node_placement._types import Content, Instance, ints

GAINS = 1e-12
WORTHLESS = 1e-9
"""Largest price at which chunks are left out of contents without losses; bounds count them."""

STEPS = 12
"""Most changes of multipliers for each node."""

QUICK_SEARCH = 300
SEARCH = 2_000
LONGEST_SEARCH = 2_000_000
"""Limits of the search for the best content, in the first steps, then, and finally."""

FEW_KINDS = 100
"""Number of kinds below which several contents of each become columns, and are worth more time."""

SEVERAL = 8

TASKS_PER_STEP = 8
"""Tasks whose losses take as long as a step of the search."""

SECONDS_PER_STEP = 2e-7
"""Nominal seconds of a step of pricing."""


class Pricing:
    """The best contents of all kinds of nodes at given prices."""

    values: Floats  # of the content found for each kind
    bounds: Floats  # of the best one
    counts: Ints  # chunks of each type in it

    def __init__(self, instance: Instance, losses: Losses, progress: Progress) -> None:
        self._instance, self._progress = instance, progress
        types, resources = instance.types.need.shape
        kinds, units = len(instance.nodes), instance.units
        useful = instance.kinds.whole + instance.kinds.num_parts
        devices = max(int(useful.max(initial=0)), losses.free.shape[1])
        self.values, self.bounds = np.zeros((2, kinds))
        self.counts = ints(kinds, types)
        found = found_for(instance, SEVERAL if kinds < FEW_KINDS else 1)
        self._found = found
        self._scratch = Scratch(
            instance.types,
            instance.kinds,
            losses,
            Priced(self.values, self.bounds, self.counts, found, np.zeros((kinds, resources))),
            prices=np.zeros(types),
            most=ints(types),
            items=ints(types),
            net=np.zeros(types),
            loss=np.zeros(types),
            best=np.zeros(units + 1),
            item_of=ints(units + 1),
            sizes=ints(units + 1),
            room=ints(devices + 1),
            row=ints(devices + 1),
            fill=np.zeros((devices + 1, units + 1)),
            last=ints(devices + 1, units + 1),
            group=np.zeros(devices + 1),
            last_group=ints(devices + 1),
            tail=np.zeros(devices + 1),
            used=np.zeros(resources),
            slope=np.zeros(resources),
            nearest=np.zeros(resources),
            rest=np.zeros(devices + 1),
            loose=np.zeros(types + 1),
            left=ints(devices),
            copies=ints(types),
            counts=ints(types),
            way=way_for(instance),
        )
        self._filling = filling_for(instance, entries_of(instance))
        self._own = np.flatnonzero(instance.exclusive)
        fits = instance.kinds.fits[:, self._own]
        self._filled = -(-fits // instance.fill[self._own])  # by one exclusive job
        self._owner = np.full(kinds, -1)

    def price(self, prices: Floats, todo: Ints, most: Ints, tolerance: float, limit: int) -> None:
        """Find the best contents of kinds of at most `most` chunks of each type, within limits."""
        instance, scratch = self._instance, self._scratch
        scratch.prices[:], scratch.most[:] = np.where(instance.exclusive, 0.0, prices), most
        fills = len(instance.nodes) < FEW_KINDS or limit > SEARCH
        steps = price_kinds(todo, tolerance, limit, fills, scratch, self._filling)
        self._progress.work += SECONDS_PER_STEP * steps
        self._owner[todo] = -1
        if len(self._own):
            worth = np.where(most[self._own] > 0, prices[self._own], 0.0) * self._filled[todo]
            best = worth.argmax(axis=1)
            worth = worth.max(axis=1)
            better = worth > self.values[todo]
            self._owner[todo[better]] = self._own[best[better]]
            self.values[todo] = np.maximum(self.values[todo], worth)
            self.bounds[todo] = np.maximum(self.bounds[todo], worth)
            for kind in todo[better].tolist():
                self.counts[kind] = instance.alone(kind, int(self._owner[kind])).counts

    def contents(self, kind: int) -> Iterator[Content]:
        """Yield the contents found for a kind, the best first."""
        if self._owner[kind] >= 0:
            yield self._instance.alone(kind, int(self._owner[kind]))
        yield from contents_found(self._instance, self._found, kind)


@kernel(allocates=False)
def copies(kind: int, number: int, s: Scratch) -> int:
    """Return the most chunks of a type on a node of a kind."""
    return int(min(s.kinds.fits[kind, number], s.most[number]))


@kernel(allocates=False)
def is_needless(kind: int, better: int, other: int, s: Scratch) -> bool:
    """Return whether chunks of one type can replace all of another on a node, at no loss."""
    types, prices = s.types, s.prices
    if types.devices[better] != types.devices[other] or prices[better] < prices[other]:
        return False
    for resource in range(types.need.shape[1]):
        if types.need[better, resource] > types.need[other, resource]:
            return False
    # enough of them, whatever else is there
    return bool(s.most[better] >= s.kinds.room[kind, better])


@kernel(allocates=False)
def find_items(costed: bool, kind: int, s: Scratch) -> int:
    """Collect the types that are worth a place on a node, and return their number."""
    types, number = s.types, 0
    for one in range(len(s.prices)):
        if (costed or s.prices[one] > WORTHLESS) and copies(kind, one, s) > 0:
            s.items[number] = one
            s.copies[number] = 1
            number += 1
    for a in range(number):
        one = s.items[a]
        for b in range(number if s.copies[a] and types.devices[one] > 0 else 0):
            other = s.items[b]
            less = types.share[other] - types.share[one]
            needless = b != a and (less == 0 or (less > 0 and not costed))
            if needless and is_needless(kind, one, other, s):
                s.copies[b] = 0
    kept = 0
    for a in range(number):
        if s.copies[a]:
            s.items[kept] = s.items[a]
            kept += 1
    return kept


@kernel(allocates=False)
def list_devices(costed: bool, kind: int, s: Scratch) -> None:
    """List the devices that chunks can use, those with the same worth of all rooms in one row."""
    kinds, losses = s.kinds, s.losses
    whole, useful = kinds.whole[kind], kinds.whole[kind] + kinds.num_parts[kind]
    for device in range(useful):
        s.room[device] = len(s.best) - 1
        if device >= whole:
            s.room[device] = kinds.parts[kind, device - whole]
        s.row[device] = 0
        if costed and device:
            alike = losses.free[kind, device] == losses.free[kind, device - 1]
            s.row[device] = s.row[device - 1] if alike else device
    s.room[useful] = 0


@kernel(allocates=False)
def fill_row(costed: bool, kind: int, row: int, room: int, sizes: int, s: Scratch) -> None:
    """Find the best worth of each room of a device up to `room`; with losses, it is in use."""
    losses = s.losses
    unit = WHOLE // (len(s.best) - 1)
    for units in range(room + 1):
        worth, last = 0.0, 0
        if costed:
            left = losses.free[kind, row] - (room - units) * unit
            worth = -np.inf if left == WHOLE else -cost_of_share(losses, kind, left)
        for j in range(sizes):
            size = s.sizes[j]
            if size > units:
                break
            if s.best[size] + s.fill[row, units - size] > worth + GAINS:
                worth, last = s.best[size] + s.fill[row, units - size], size
        s.fill[row, units], s.last[row, units] = worth, last


@kernel(allocates=False)
def fill_rows(kind: int, number: int, s: Scratch) -> int:
    """Find the best worth of devices, and of groups of whole ones; return how many are unused."""
    types, kinds, losses = s.types, s.kinds, s.losses
    costed, units = len(losses.part) > 0, len(s.best) - 1
    whole, sizes = kinds.whole[kind], 0
    for size in range(1, units + 1):
        if s.item_of[size] >= 0:
            s.sizes[sizes] = size
            sizes += 1
    for device in range(whole + kinds.num_parts[kind]):
        if s.row[device] == device:
            room = s.room[device] if costed else units
            fill_row(costed, kind, device, room, sizes, s)
    s.group[0] = s.tail[0] = 0.0
    for devices in range(1, whole + 1):
        s.group[devices] = s.group[devices - 1] + s.fill[0, units]
        s.last_group[devices] = -1
        for i in range(number):
            taken = types.devices[s.items[i]]
            if not 1 < taken <= devices:
                continue
            if s.net[i] + s.group[devices - taken] > s.group[devices] + GAINS:
                s.group[devices] = s.net[i] + s.group[devices - taken]
                s.last_group[devices] = i
        s.tail[devices] = s.group[devices]
        for unused in range(1, devices + 1 if costed else 0):
            cost = unused * WHOLE * losses.lost_whole[kind, whole]
            s.tail[devices] = max(s.tail[devices], s.group[devices - unused] - cost)
    best, unused = s.group[whole], 0
    for q in range(1, whole + 1 if costed else 0):
        worth = s.group[whole - q] - q * WHOLE * losses.lost_whole[kind, q]
        if worth > best:
            best, unused = worth, q
    return unused


@kernel(allocates=False)
def relax(kind: int, number: int, s: Scratch) -> tuple[float, float]:
    """Return the bound by the multipliers, and the price of the relaxed content, in `s.used`."""
    types, kinds, losses = s.types, s.kinds, s.losses
    prices, multipliers = s.prices, s.priced.multipliers[kind]
    units, resources = len(s.best) - 1, types.need.shape[1]
    bound = value = 0.0
    for resource in range(resources):
        bound += multipliers[resource] * kinds.free[kind, resource]
        s.used[resource] = 0.0
    for size in range(units + 1):
        s.best[size] = -np.inf
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
            there = copies(kind, one, s)
            bound += there * net
            value += there * prices[one]
            for resource in range(resources):
                s.used[resource] += there * types.need[one, resource]
    unused = fill_rows(kind, number, s)
    whole, useful = kinds.whole[kind], kinds.whole[kind] + kinds.num_parts[kind]
    single, devices = 0, whole - unused
    bound += s.group[devices]
    if unused:
        bound -= unused * WHOLE * losses.lost_whole[kind, unused]
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
    for device in range(useful, losses.devices[kind] if len(losses.part) else 0):
        bound -= cost_of_share(losses, kind, losses.free[kind, device])
    for device in range(useful):
        row, room = s.row[device], s.room[device]
        if device >= whole:
            bound += s.fill[row, room]
        elif device >= single:
            continue
        while s.last[row, room] > 0:
            one = s.items[s.item_of[s.last[row, room]]]
            value += prices[one]
            for resource in range(resources):
                s.used[resource] += types.need[one, resource]
            room -= s.last[row, room]
    return bound, value


@kernel(allocates=False)
def choose_multipliers(
    kind: int, number: int, lowest: float, tolerance: float, s: Scratch
) -> float:
    """Lower the bound by some steps along its slope; return the best, and set multipliers."""
    kinds, losses, multipliers = s.kinds, s.losses, s.priced.multipliers[kind]
    resources, best, feasible = len(multipliers), np.inf, lowest
    for resource in range(resources):
        s.nearest[resource] = multipliers[resource]
    for step in range(STEPS):
        bound, value = relax(kind, number, s)
        if bound < best:
            best = bound
            for resource in range(resources):
                s.nearest[resource] = multipliers[resource]
        fits, square = len(losses.part) == 0, 0.0
        for resource in range(resources):
            free, used = kinds.free[kind, resource], s.used[resource]
            fits &= used <= free
            s.slope[resource] = (free - used) / max(free, 1)
            if multipliers[resource] <= 0 and s.slope[resource] > 0:
                s.slope[resource] = 0.0
            square += s.slope[resource] * s.slope[resource]
        if fits:
            feasible = max(feasible, value)
        if square < GAINS or best - feasible <= tolerance:
            break
        target = max(feasible, best - 0.3 / (step + 1) * (best - lowest))
        for resource in range(resources):
            change = (bound - target) / square * s.slope[resource]
            change /= max(kinds.free[kind, resource], 1)
            multipliers[resource] = max(0.0, multipliers[resource] - change)
    for resource in range(resources):
        multipliers[resource] = s.nearest[resource]
    nearest, _ = relax(kind, number, s)
    return float(nearest)


@kernel(allocates=False)
def prepare_search(kind: int, number: int, s: Scratch) -> None:
    """Sort items by what they lose against the relaxed content, and bound what comes later."""
    types, kinds, losses = s.types, s.kinds, s.losses
    costed, whole = len(losses.part) > 0, kinds.whole[kind]
    useful = whole + kinds.num_parts[kind]
    largest, alone = len(s.best) - 1, 0.0
    if costed:
        largest = s.room[0]
    if useful:
        alone = s.fill[0, largest]
        if costed and whole:
            alone = max(alone, -WHOLE * losses.lost_whole[kind, whole])
    for i in range(number):
        one, net = s.items[i], s.net[i]
        loss = -net
        if types.devices[one] == 1:
            loss = alone - net - s.fill[0, largest - types.share[one]]
        elif types.devices[one] > 1:
            loss = types.devices[one] * alone - net
        j = i
        while j > 0 and s.loss[j - 1] > loss:
            s.loss[j], s.items[j], s.net[j] = s.loss[j - 1], s.items[j - 1], s.net[j - 1]
            j -= 1
        s.loss[j], s.items[j], s.net[j] = loss, one, net
    s.loose[number] = 0.0
    for i in range(number - 1, -1, -1):
        s.loose[i] = s.loose[i + 1]
        if types.devices[s.items[i]] == 0 and s.net[i] > 0:
            s.loose[i] += s.net[i] * copies(kind, s.items[i], s)
    s.rest[useful] = s.loose[0]
    for device in range(useful - 1, -1, -1):
        worth = s.fill[s.row[device], s.room[device]]
        s.rest[device] = s.rest[device + 1] + (max(worth, alone) if device < whole else worth)


@kernel(allocates=False)
def take(one: int, stage: int, first: int, sign: int, s: Scratch) -> None:
    """Take a chunk off the devices that are left, or give it back."""
    types = s.types
    if stage < 0:
        for device in range(first - types.devices[one], first):
            s.left[device] += sign * WHOLE
    elif types.devices[one] == 1:
        s.left[stage] += sign * types.share[one] * (WHOLE // (len(s.best) - 1))


@kernel(allocates=False)
def search(
    kind: int, number: int, base: float, tolerance: float, limit: int, s: Scratch
) -> tuple[float, int, bool]:
    """Return the value of the best content, the steps, and whether the search was cut off."""
    types, kinds, losses, found = s.types, s.kinds, s.losses, s.priced.found
    way, resources, whole = s.way, types.need.shape[1], kinds.whole[kind]
    devices, costed = whole + kinds.num_parts[kind], len(losses.part) > 0
    deepest, unused = len(way.stage) - 1, 0.0
    best, steps, top = 0.0, 0, 0
    if costed:
        best, unused = -np.inf, WHOLE * losses.lost_whole[kind, whole]
    begin(way, kinds.free[kind], whole, number)
    further = costed  # whether something is to come after the devices
    for i in range(number):
        s.copies[i] = 0
        further |= types.devices[s.items[i]] == 0  # of a negative net price may fit as well
    while top >= 0:
        stage, i, worth = way.stage[top], way.option[top], way.worth[top]
        cut, pushed = best + tolerance, False
        while i < number:
            one = s.items[i]
            there = copies(kind, one, s) - s.copies[i]
            bound, room, first = -np.inf, 0, way.first[top]
            if there <= 0:
                pass
            elif stage < 0:
                if types.devices[one] > 1 and first + types.devices[one] <= whole:
                    first += types.devices[one]
                    bound = s.tail[whole - first] + s.rest[whole]
            elif stage < devices:
                if types.devices[one] == 1 and types.share[one] <= way.room[top]:
                    room = way.room[top] - types.share[one]
                    bound = s.fill[s.row[stage], room] + s.rest[stage + 1]
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
                    way.value[top] = way.value[top - 1] + s.prices[one]
                    steps += 1
                    pushed = True
                    s.copies[i] += 1
                    if costed:
                        take(one, stage, first, -1, s)
                    break
            i += 1
        closed = False
        if not pushed and i == number and stage < devices:
            following = way.first[top] if stage < 0 else stage + 1
            cost, alike = 0.0, stage >= 0 and following < devices
            if alike:
                alike = s.row[following] == s.row[stage] and s.room[following] == s.room[stage]
            if costed and 0 <= stage < whole and way.first[top] < 0:
                cost = unused
            elif costed and stage >= 0:
                cost = cost_of_share(losses, kind, s.left[stage])
            if worth - cost + s.rest[following] + base > cut and (following < devices or further):
                close_device(way, top, following, s.room[following], alike, number, cost)
                top += 1
                closed = True
        if not pushed and not closed:
            if way.item[top] >= 0:
                s.copies[way.item[top]] -= 1
                if costed:
                    one = s.items[way.item[top]]
                    take(one, way.stage[top], way.first[top], 1, s)
            top -= 1
            continue
        if costed and way.stage[top] == devices:
            steps += 1 + len(losses.part) // TASKS_PER_STEP
            lost = unusable(losses, kind, way.free[top], s.left)
            if way.value[top] - lost > best:
                best = way.value[top] - lost
                keep(types, s.items, way, top, lost, found, kind)
        elif pushed and not costed and way.value[top] > best:
            best = way.value[top]
            keep(types, s.items, way, top, 0.0, found, kind)
        if steps > limit or top >= deepest:
            return best, steps, True
    return best, steps, False


@kernel(allocates=False)
def price_kind(kind: int, tolerance: float, limit: int, fills: bool, s: Scratch, f: Filling) -> int:
    """Price one kind of nodes; return the steps."""
    kinds, losses, priced, prices = s.kinds, s.losses, s.priced, s.prices
    costed, multipliers = len(losses.part) > 0, priced.multipliers[kind]
    priced.found.number[kind] = 0
    slack = lowest = 0.0
    for one in range(len(prices)):
        priced.counts[kind, one] = 0
        if prices[one] <= WORTHLESS and not costed:
            slack += prices[one] * copies(kind, one, s)
    if costed:
        for device in range(losses.devices[kind]):
            s.left[device] = losses.free[kind, device]
        lowest = -unusable(losses, kind, kinds.free[kind], s.left)
    priced.value[kind], priced.bound[kind] = lowest, slack
    number = find_items(costed, kind, s)
    if number == 0 and not costed:
        return 1
    list_devices(costed, kind, s)
    bound = choose_multipliers(kind, number, lowest, tolerance, s)
    prepare_search(kind, number, s)
    base = 0.0
    for resource in range(len(multipliers)):
        base += charge_of(kinds, kind, multipliers, resource)
    for device in range(
        kinds.whole[kind] + kinds.num_parts[kind], losses.devices[kind] if costed else 0
    ):
        base -= cost_of_share(losses, kind, losses.free[kind, device])
    value, steps, cut_off = search(kind, number, base, tolerance, limit, s)
    fills &= kinds.whole[kind] + kinds.num_parts[kind] > 0 and not costed
    for i in range(number):
        fills &= s.types.devices[s.items[i]] > 0
    if not cut_off:
        bound = min(bound, value + tolerance)
    elif fills:
        f.steps[0] = 0
        value, bound = fill_devices(kind, number, bound, value, s, f)
        steps += f.steps[0]
    priced.value[kind] = value
    priced.bound[kind] = max(value, bound) + slack
    if priced.found.number[kind]:
        place = (priced.found.number[kind] - 1) % priced.found.length.shape[1]
        for chunk in range(priced.found.length[kind, place]):
            priced.counts[kind, priced.found.type_of[kind, place, chunk]] += 1
    return int(steps)


@kernel(allocates=False)
def price_kinds(
    todo: Ints, tolerance: float, limit: int, fills: bool, s: Scratch, f: Filling
) -> int:
    """Price kinds of nodes; return the steps of the searches, some for each kind."""
    steps = 0
    for place in range(len(todo)):
        steps += STEPS + price_kind(todo[place], tolerance, limit, fills, s, f)
    return steps
