"""Contents of nodes as they are searched depth first, and what they leave unusable; compiled.

The search takes chunks of the wholly free devices first, then fills device after device, and then
takes chunks without devices.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from optsched.arrays import Flags, Floats, Ints
from optsched.by_reference import by_reference
from optsched.compiled import kernel
from optsched.models.node_placement.fields import WHOLE
from optsched.models.node_placement.problem import task_types
from optsched.solvers.node_placement._types import NO_DEVICE, Content, Instance, Kinds, Types, ints

DEEPEST = 512
"""Most chunks, and devices closed, on the way to a content."""


@by_reference
class Way(NamedTuple):
    """The way to a content: the start, then one entry for each chunk or closed device."""

    stage: Ints  # -1 for chunks of whole devices, then the device, or one more than there are
    room: Ints  # free units of the device
    first: Ints  # its first item, or -1; the devices taken so far in stage -1
    option: Ints  # the item to try next
    item: Ints  # that of the chunk, -1 for a closed device
    free: Ints  # of each resource, shape (entries, resources)
    worth: Floats  # sum of net prices, less the costs of closed devices
    value: Floats  # sum of prices


@by_reference
class Found(NamedTuple):
    """The contents found for each kind; the best is the last one. Those before are kept in turn."""

    number: Ints  # found in all, shape (kinds,)
    length: Ints  # chunks, shape (kinds, contents)
    type_of: Ints  # of each chunk, shape (kinds, contents, entries)
    device_of: Ints
    cost: Floats  # what the content leaves unusable, shape (kinds, contents)


@by_reference
class Losses(NamedTuple):
    """What tasks, the types of chunks, cannot use of a node, in devices; empty if that is free."""

    need: Ints  # of each resource, shape (tasks, resources)
    on_one: Ints  # thousandths of one device
    whole: Ints  # wholly free devices, 0 for a share
    part: Floats  # of all tasks
    devices: Ints  # of each kind, useless ones, too
    free: Ints  # thousandths of each device: wholly free ones, others, useless; (kinds, devices)
    fits: Flags  # whether a task fits at first, shape (kinds, tasks)
    size: Ints  # number of different shares that tasks ask for, up to each; shape (WHOLE + 1,)
    lost: Floats  # part of the tasks that cannot use a share with so many sizes; (kinds, sizes)
    lost_whole: Floats  # or any of so many whole devices, shape (kinds, devices + 1)


@by_reference
class Priced(NamedTuple):
    """The best contents of each kind."""

    value: Floats  # price less losses, shape (kinds,)
    bound: Floats
    counts: Ints  # of the best content, shape (kinds, types)
    found: Found
    multipliers: Floats  # for the next pricing, shape (kinds, resources)


@by_reference
class Scratch(NamedTuple):
    """What nodes are priced by, what is found, and room for the pricing of one node."""

    types: Types
    kinds: Kinds
    losses: Losses
    priced: Priced
    prices: Floats  # of a chunk of each type
    most: Ints  # chunks of each type
    items: Ints  # types that are worth a place, shape (types,)
    net: Floats  # price less the charge for resources, of each item
    loss: Floats
    best: Floats  # net price of an item of so many units, shape (units + 1,)
    item_of: Ints  # that item, or -1
    sizes: Ints
    room: Ints  # free units of each device that chunks can use
    row: Ints  # the row of the next two for each device
    fill: Floats  # best worth of so many free units, shape (devices + 1, units + 1)
    last: Ints  # units of the last item in it, or 0
    group: Floats  # best worth of so many wholly free devices in use, shape (devices + 1,)
    last_group: Ints
    tail: Floats  # best worth of so many of them, in use or not
    used: Floats  # of each resource, by the relaxed content
    slope: Floats
    nearest: Floats  # best multipliers so far
    rest: Floats  # best worth of the devices from each on, and of chunks without devices
    loose: Floats  # of the items from each on that need no device
    left: Ints  # thousandths of each device, at the end of the way
    copies: Ints  # of each item on the way
    counts: Ints  # of each type
    way: Way


def no_losses() -> Losses:
    """Return losses that cost nothing."""
    nothing, table, rows = ints(0), ints(0, 0), np.zeros((0, 0))
    flags = np.zeros((0, 0), dtype=np.bool_)
    return Losses(table, nothing, nothing, np.zeros(0), nothing, table, flags, nothing, rows, rows)


def losses_of(instance: Instance) -> Losses:
    """Return the losses for an instance whose kinds are exact."""
    problem = instance.problem
    mix = task_types(problem)
    jobs = np.array([task.job for task in mix], dtype=np.int64)
    chunks = np.array([task.chunks for task in mix], dtype=np.float64)
    first = [nodes[0] for nodes in instance.nodes_of]
    share = problem.share[jobs]
    need, on_one = np.ascontiguousarray(problem.demand[jobs]), np.minimum(share, WHOLE)
    part = chunks / device_scale(instance)
    devices = np.array([len(problem.devices[node]) for node in first], dtype=np.int64)
    most = int(devices.max(initial=0))
    free = ints(len(first), most)
    for kind, node in enumerate(first):
        useful = instance.device_order(node)
        useless = sorted({*range(devices[kind])}.difference(useful))
        row = [problem.devices[node][device] for device in (*useful, *useless)]
        free[kind, : len(row)] = row
    needs = instance.needs
    fits = np.all(problem.free[first][:, None, :] >= need[None], axis=2)
    fits &= needs.may[needs.limit[jobs]][:, first].T
    sizes = np.unique(on_one)
    size = np.searchsorted(sizes, np.arange(WHOLE + 1), side="right")
    never = np.where(fits, 0.0, part).sum(axis=1)[:, None]
    usable = np.where(fits, part, 0.0)
    too_large = np.arange(len(sizes) + 1)[:, None] <= np.searchsorted(sizes, on_one)
    too_many = np.arange(most + 1)[:, None] < share // WHOLE
    lost, lost_whole = (never + usable @ table.T for table in (too_large, too_many))
    return Losses(
        *(need, on_one, share // WHOLE, part, devices, free, fits, size),
        *map(np.ascontiguousarray, (lost, lost_whole)),
    )


def device_scale(instance: Instance) -> float:
    """Return the fragmentation, as the problem measures it, of an unusable device."""
    problem = instance.problem
    return WHOLE * float(max(1, problem.chunks[problem.share > 0].sum()))


def entries_of(instance: Instance) -> int:
    """Return the number of entries that a content may take."""
    devices = int((instance.kinds.whole + instance.kinds.num_parts).max(initial=0))
    chunks = int(np.minimum(instance.kinds.fits, DEEPEST).sum(axis=1).max(initial=0))
    return min(chunks + devices + 3, DEEPEST)


def way_for(instance: Instance) -> Way:
    """Return room for the ways to contents of all nodes of an instance."""
    entries, resources = entries_of(instance), instance.types.need.shape[1]
    stage, room, first, option, item = ints(5, entries)
    free = ints(entries, resources)
    return Way(stage, room, first, option, item, free, *np.zeros((2, entries)))


def found_for(instance: Instance, contents: int) -> Found:
    """Return room for so many contents of each kind."""
    shape = len(instance.nodes), contents
    type_of, device_of = ints(2, *shape, entries_of(instance))
    return Found(ints(shape[0]), ints(*shape), type_of, device_of, np.zeros(shape))


def contents_found(instance: Instance, found: Found, kind: int) -> Iterator[Content]:
    """Yield the contents found for a kind, the best first."""
    number, contents = int(found.number[kind]), found.length.shape[1]
    for one in range(number - 1, max(-1, number - 1 - contents), -1):
        place = one % contents
        length = int(found.length[kind, place])
        of_type = found.type_of[kind, place, :length]
        counts = np.bincount(of_type, minlength=len(instance.types.most))
        devices = found.device_of[kind, place, :length]
        chunks = instance.with_devices(of_type.tolist(), devices.tolist())
        yield Content(kind, counts, chunks, float(found.cost[kind, place]))


@kernel(allocates=False)
def begin(way: Way, free: Ints, whole: int, number: int) -> None:
    """Begin a way with all that is free on a node with wholly free devices, of so many items."""
    way.stage[0], way.room[0], way.first[0], way.item[0] = -1, 0, 0, -1
    way.option[0] = 0 if whole else number
    way.worth[0] = way.value[0] = 0.0
    for resource in range(len(free)):
        way.free[0, resource] = free[resource]


@kernel(allocates=False)
def close_device(
    way: Way, top: int, following: int, room: int, alike: bool, number: int, cost: float
) -> None:
    """Close a device at a cost, and go on to a stage, whose device has `room`."""
    option = 0
    if alike:
        option = way.first[top] if way.first[top] >= 0 else number
    way.option[top] = number + 1
    way.stage[top + 1], way.room[top + 1], way.first[top + 1] = following, room, -1
    way.option[top + 1], way.item[top + 1] = option, -1
    for resource in range(way.free.shape[1]):
        way.free[top + 1, resource] = way.free[top, resource]
    way.worth[top + 1], way.value[top + 1] = way.worth[top] - cost, way.value[top]


@kernel(allocates=False)
def keep(
    types: Types, items: Ints, way: Way, top: int, cost: float, found: Found, kind: int
) -> None:
    """Keep the content at the end of the way."""
    place = found.number[kind] % found.length.shape[1]
    found.number[kind] += 1
    length = taken = 0
    for entry in range(1, top + 1):
        if way.item[entry] < 0:
            continue
        one = items[way.item[entry]]
        device = NO_DEVICE
        if way.stage[entry] < 0:
            device = taken
            taken += types.devices[one]
        elif types.devices[one] == 1:
            device = way.stage[entry]
        found.type_of[kind, place, length] = one
        found.device_of[kind, place, length] = device
        length += 1
    found.length[kind, place] = length
    found.cost[kind, place] = cost


@kernel(allocates=False)
def cost_of_share(losses: Losses, kind: int, left: int) -> float:
    """Return what is lost of a device with so many free thousandths, if no resource is short."""
    return float(left * losses.lost[kind, losses.size[left]])


@kernel(allocates=False)
def unusable(losses: Losses, kind: int, free: Ints, left: Ints) -> float:
    """Return what tasks cannot use of a node with so much left of each device."""
    total, whole, lost = 0, 0, 0.0
    for device in range(losses.devices[kind]):
        total += left[device]
        whole += left[device] == WHOLE
    for task in range(len(losses.part) if total else 0):
        fits = losses.fits[kind, task] and losses.whole[task] <= whole
        for resource in range(len(free)):
            fits &= losses.need[task, resource] <= free[resource]
        if not fits:
            lost += losses.part[task] * total
            continue
        for device in range(losses.devices[kind]):
            if left[device] < losses.on_one[task]:
                lost += losses.part[task] * left[device]
    return lost


def with_cost(instance: Instance, losses: Losses, content: Content) -> Content:
    """Return a content with the cost of what it leaves unusable."""
    types, unit = instance.types, WHOLE // instance.units
    free, left = instance.kinds.free[content.kind].copy(), losses.free[content.kind].copy()
    for number, places in content.chunks:
        free -= types.need[number]
        for place in places:
            left[place] -= types.share[number] * unit
    return content._replace(cost=float(unusable(losses, content.kind, free, left)))
