"""Depth-first search for contents of a node: the way to a content, and those found, compiled.

The search takes chunks of the wholly free devices first, then fills device after device, and then
takes chunks without devices. Its callers say what it looks for, and what cuts it off. They take the
chunks themselves: a call for each would cost them a tenth of their time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.by_reference import by_reference
from optsched.compiled import kernel
from optsched.solvers.node_placement._types import NO_DEVICE, Content, Instance, Ints, Types

Floats = NDArray[np.float64]

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
    worth: Floats  # sum of net prices
    value: Floats  # sum of prices


@by_reference
class Found(NamedTuple):
    """The contents found for each group of like nodes; the best is the last one found.

    Those before it are kept in turn.
    """

    number: Ints  # found in all, shape (groups,)
    length: Ints  # chunks, shape (groups, contents)
    type_of: Ints  # of each chunk, shape (groups, contents, entries)
    device_of: Ints


def entries_of(instance: Instance) -> int:
    """Return the number of entries that a content may take."""
    devices = int((instance.kinds.whole + instance.kinds.num_parts).max(initial=0))
    chunks = int(np.minimum(instance.kinds.fits, DEEPEST).sum(axis=1).max(initial=0))
    return min(chunks + devices + 3, DEEPEST)


def way_for(instance: Instance) -> Way:
    """Return room for the ways to contents of all nodes of an instance."""
    entries, resources = entries_of(instance), instance.types.need.shape[1]
    stage, room, first, option, item = np.zeros((5, entries), dtype=np.int64)
    free = np.zeros((entries, resources), dtype=np.int64)
    return Way(stage, room, first, option, item, free, *np.zeros((2, entries)))


def found_for(instance: Instance, groups: int, contents: int) -> Found:
    """Return room for so many contents of each group."""
    type_of, device_of = np.zeros((2, groups, contents, entries_of(instance)), dtype=np.int64)
    length = np.zeros((groups, contents), dtype=np.int64)
    return Found(np.zeros(groups, dtype=np.int64), length, type_of, device_of)


def contents_found(
    instance: Instance, found: Found, group: int, kind: int
) -> Iterator[tuple[int, Content]]:
    """Yield the contents found for a group of nodes of a kind and their places, the best first."""
    number, contents = int(found.number[group]), found.length.shape[1]
    for one in range(number - 1, max(-1, number - 1 - contents), -1):
        place = one % contents
        length = int(found.length[group, place])
        of_type = found.type_of[group, place, :length]
        counts = np.bincount(of_type, minlength=len(instance.types.most))
        devices = found.device_of[group, place, :length]
        chunks = instance.with_devices(of_type.tolist(), devices.tolist())
        yield place, Content(kind, counts, chunks)


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
    """Close a device at a cost, and go on to a stage, whose device has `room`.

    If the two devices are `alike`, they are filled in the order of their first items.
    """
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
def keep(types: Types, items: Ints, way: Way, top: int, found: Found, group: int) -> int:
    """Keep the content at the end of the way, and return its place."""
    place = found.number[group] % found.length.shape[1]
    found.number[group] += 1
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
        found.type_of[group, place, length] = one
        found.device_of[group, place, length] = device
        length += 1
    found.length[group, place] = length
    return int(place)
