"""Increases of fragmentation by one more chunk on a node, kept while the node does not change."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optsched.compiled import kernel
from optsched.models.node_placement.fields import WHOLE
from optsched.solvers.node_placement._node_state import (
    Ints,
    Needs,
    Nodes,
    room_on,
    tightest,
)


class Known(NamedTuple):
    """What a chunk of one type adds on each node.

    Parameters
    ----------
    increase : ndarray of int, shape (nodes,)
        Increase of fragmentation, in thousandths of devices times chunks of the mix.
    device : ndarray of int, shape (nodes,)
        Device to use for a share, -1 if there is none.
    version : ndarray of int, shape (nodes,)
        Version of the node for which this holds, -1 for none.
    """

    increase: Ints
    device: Ints
    version: Ints


class Increases:
    """Increases of fragmentation, computed when asked for.

    Parameters
    ----------
    nodes : Nodes
        What is free; it changes while chunks are placed.
    needs : Needs
        What the jobs need.
    types : ndarray of int, shape (types, 2)
        A job of each type of the mix, and its number of chunks.
    """

    def __init__(self, nodes: Nodes, needs: Needs, types: Ints) -> None:
        self._nodes, self._needs, self._types = nodes, needs, types
        count = len(nodes.free)
        self._version = np.zeros(count, dtype=np.int64)
        self._unusable = np.array(
            [unusable(nodes, needs, types, node) for node in range(count)], dtype=np.int64
        )
        self._kept = np.empty(nodes.devices.shape[1], dtype=np.int64)
        self._known: dict[int, Known] = {}

    def least(self, job: int, room: Ints) -> tuple[int, int]:
        """Return the node with room where a chunk adds least, and the device for a share or -1."""
        known = self._known.get(job)
        if known is None:
            unknown = np.full((3, len(room)), -1, dtype=np.int64)
            known = self._known[job] = Known(*unknown)
        node = least(
            *(self._nodes, self._needs, self._types, job, room),
            *(self._version, self._unusable, known, self._kept),
        )
        return int(node), int(known.device[node])

    def update(self, node: int) -> None:
        """Note that a node has changed."""
        self._version[node] += 1
        self._unusable[node] = unusable(self._nodes, self._needs, self._types, node)

    def forget(self, job: int) -> None:
        """Free the memory of a type that is not asked for again."""
        self._known.pop(job, None)


@kernel(allocates=False)
def unusable(nodes: Nodes, needs: Needs, types: Ints, node: int) -> int:
    """Return the thousandths of free devices of a node that tasks cannot use, over all tasks."""
    free = 0
    for device in range(nodes.devices.shape[1]):
        free += nodes.devices[node, device]
    total = 0
    for one in range(len(types) if free > 0 else 0):
        job = types[one, 0]
        lost = free
        if room_on(nodes, needs, job, node, 1) > 0:
            lost, on_one = 0, min(needs.share[job], WHOLE)
            for device in range(nodes.devices.shape[1]):
                if nodes.devices[node, device] < on_one:
                    lost += nodes.devices[node, device]
        total += types[one, 1] * lost
    return total


@kernel(allocates=False)
def least(
    nodes: Nodes,
    needs: Needs,
    types: Ints,
    job: int,
    room: Ints,
    version: Ints,
    before: Ints,
    known: Known,
    kept: Ints,
) -> int:
    """Return the first node with room where a chunk of a job adds least to what is unusable."""
    best = -1
    for node in range(len(room)):
        if room[node] == 0:
            continue
        if known.version[node] != version[node]:
            after, device = _after(nodes, needs, types, job, node, kept)
            known.increase[node] = after - before[node]
            known.device[node] = device
            known.version[node] = version[node]
        if best < 0 or known.increase[node] < known.increase[best]:
            best = node
    return best


@kernel(allocates=False)
def _after(
    nodes: Nodes, needs: Needs, types: Ints, job: int, node: int, kept: Ints
) -> tuple[int, int]:
    """Return what is unusable with one more chunk of a job on a node, and the device of a share."""
    share, devices = needs.share[job], nodes.devices
    taken, owned = nodes.taken[node], nodes.owned[node]
    nodes.taken[node], nodes.owned[node] = True, needs.alone[job]
    for resource in range(nodes.free.shape[1]):
        nodes.free[node, resource] -= needs.demand[job, resource]
    for device in range(devices.shape[1]):
        kept[device] = devices[node, device]
    best = -1
    if 0 < share < WHOLE:
        # devices with equal free shares are alike: those of each share from the least on
        least_after, wanted = 0, share
        device = tightest(devices, node, wanted)
        while device >= 0:
            wanted = devices[node, device] + 1
            devices[node, device] -= share
            after = unusable(nodes, needs, types, node)
            devices[node, device] += share
            if best < 0 or after < least_after:
                best, least_after = device, after
            device = tightest(devices, node, wanted)
    else:
        left = share // WHOLE
        for device in range(devices.shape[1]):
            if left > 0 and devices[node, device] == WHOLE:
                devices[node, device] = 0
                left -= 1
        least_after = unusable(nodes, needs, types, node)
    for device in range(devices.shape[1]):
        devices[node, device] = kept[device]
    for resource in range(nodes.free.shape[1]):
        nodes.free[node, resource] += needs.demand[job, resource]
    nodes.taken[node], nodes.owned[node] = taken, owned
    return least_after, best
