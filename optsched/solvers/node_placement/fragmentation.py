"""Least fragmentation: the rule of Weng et al. (ATC 2023)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from optsched.compiled import kernel
from optsched.errors import InputError
from optsched.models.node_placement import NodePlacement
from optsched.models.node_placement.fields import WHOLE
from optsched.models.node_placement.problem import first_alike, task_types
from optsched.registry import solvers
from optsched.solvers.node_placement._node_state import (
    Ints,
    Needs,
    Nodes,
    NodeState,
    room_on,
    tightest,
)
from optsched.solvers.node_placement.fit_rules import Rule


class Known(NamedTuple):
    """What a chunk of one type adds on each node."""

    increase: Ints  # of fragmentation, in thousandths of devices times chunks
    device: Ints  # to use for a share, -1 if there is none
    version: Ints  # of the node for which this holds, -1 for none


class Increases:
    """Increases of fragmentation by a chunk, computed when asked for."""

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


@solvers.register("least-fragmentation")
@dataclass(frozen=True)
class LeastFragmentation(Rule):
    """Each chunk on the node and device whose use adds least to the expected fragmentation (FGD).

    The expected fragmentation is that of `optsched.models.node_placement.fragmentation`: the free
    shares of devices that a task of the mix cannot use, where the mix are the jobs of the problem.
    For a share of a device, each device of a node is tried; of equal ones that with the least free
    share is used, then that of lowest number. Of equal nodes, the first is used, so the rule is
    first fit where no job needs devices. The authors' simulator maps the increase to an integer
    score from 0 to 100, so that more nodes are equal there.

    Parameters
    ----------
    order : {"queue", "largest"}
        See `Rule`.
    types : int
        Most types of tasks in the mix, the most frequent ones.

    Raises
    ------
    InputError
        If `types` is less than 1.

    Examples
    --------
    The first job leaves the whole device to the second one:

    >>> problem = NodePlacement(
    ...     resources=["cores"], free=np.array([[8], [8]]), devices=[[1000], [700]],
    ...     chunks=[1, 1], demand=np.array([[1], [1]]), share=[500, 1000])
    >>> LeastFragmentation().place(problem)
    Placements(nodes=((1,), (0,)), devices=(((0,),), ((0,),)))
    """

    types: int = 40

    seconds_per_work = 5e-8

    def __post_init__(self) -> None:
        if self.types < 1:
            raise InputError(f"types {self.types}; expected a whole number from 1")

    def place_all(self, problem: NodePlacement, state: NodeState, jobs: Ints) -> None:
        """Place each chunk where the expected fragmentation grows least."""
        types = np.array(task_types(problem, self.types), dtype=np.int64).reshape(-1, 2)
        increases = Increases(state.nodes, state.needs, types)
        first = first_alike(problem)
        waiting = Counter(first)
        for job in jobs.tolist():
            room, left = state.room(job), int(problem.chunks[job])
            while room is not None and left:
                node, device = increases.least(first[job], room)
                state.take(job, node, room, 1, device)
                increases.update(node)
                left -= 1
            waiting[first[job]] -= 1
            if not waiting[first[job]]:
                increases.forget(first[job])
