"""Free state of nodes while rules place job after job, and the kernels that read it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from optsched.arrays import Flags, Ints
from optsched.compiled import kernel
from optsched.models.fields import LARGEST_FIELD
from optsched.models.node_placement import NodePlacement, Placements
from optsched.models.node_placement.fields import (
    WHOLE,
    Limit,
    is_allowed,
    most_chunks,
    nodes_by_group,
    unit_of,
)
from optsched.models.node_placement.problem import first_alike

Devices = tuple[int, ...]

Chunk = tuple[int, Devices]
"""The node and the devices of a chunk."""


class Allotment(NamedTuple):
    """Chunks of a job for the parts of the nodes."""

    part_of: Ints  # part of each node, -1 where the job gets nothing
    chunks: Ints  # of each part, together all of the job

    def restrict(self, room: Ints) -> None:
        """Lower the room of each node to what is left for its part."""
        left = np.append(self.chunks, 0)  # nothing where the part is -1
        np.minimum(room, left[self.part_of], out=room)


def limited_jobs(problem: NodePlacement) -> Flags:
    """Return which jobs one switch or block must hold, or levels limit, shape (jobs,)."""
    limited: Flags = np.array(problem.span, dtype=str) != "anywhere"
    return limited | problem.most_groups.any(axis=1) | (problem.segments > 1).any(axis=1)


def limits_of(problem: NodePlacement, job: int, numbered: dict[str, Ints]) -> list[Limit]:
    """Return the limits of a job, a level of few groups first, and its span if it has any."""
    found = []
    for level, name in enumerate(problem.levels):
        most, segment = int(problem.most_groups[job, level]), int(problem.segments[job, level])
        if most or segment > 1:
            found.append(Limit(numbered[f"level {name}"], most, max(1, segment)))
    if found and problem.span[job] in numbered:
        found.append(Limit(numbered[problem.span[job]], 1, 1))
    return sorted(found, key=lambda one: int(one.group_of.max(initial=0)))


def allotment(limits: list[Limit], chunks: int, room: Ints) -> Allotment | None:
    """Return an allotment of the chunks of a job that keeps its limits, or None."""
    part_of = np.full(len(room), -1)
    counts: list[int] = []

    def fill(depth: int, nodes: Ints, wanted: int) -> None:
        if depth == len(limits):
            part_of[nodes] = len(counts)
            counts.append(wanted)
            return
        unit = unit_of(limits[depth:])
        groups = nodes_by_group(limits[depth], nodes)
        most = [most_chunks(limits[depth + 1 :], each, room) // unit * unit for each in groups]
        while wanted:
            enough = [place for place, one in enumerate(most) if one >= wanted]
            best = min(enough or range(len(most)), key=lambda place: abs(most[place] - wanted))
            share = min(most[best], wanted)
            fill(depth + 1, groups[best], share)
            wanted -= share
            most[best] = 0

    nodes = np.flatnonzero(room)
    if most_chunks(limits, nodes, room) < chunks:
        return None
    fill(0, nodes, chunks)
    found = Allotment(part_of, np.array(counts, dtype=np.int64))
    return found if _keeps(limits, found) else None


def _keeps(limits: list[Limit], found: Allotment) -> bool:
    """Return whether an allotment keeps the limits."""
    for group_of, most, segment in limits:
        groups = np.zeros(int(group_of.max(initial=0)) + 1, dtype=np.int64)
        for part, count in enumerate(found.chunks.tolist()):
            groups[group_of[found.part_of == part][0]] += count
        if (groups % segment).any() or (most and np.count_nonzero(groups) > most):
            return False
    return True


class Nodes(NamedTuple):
    """What is free on each node; it changes with each chunk that is placed."""

    free: Ints  # of each resource, shape (nodes, resources)
    devices: Ints  # thousandths, 0 for no device, shape (nodes, devices)
    taken: Flags  # whether jobs run or chunks are placed there
    owned: Flags  # whether it belongs to a job that shares it with no other


class Needs(NamedTuple):
    """What a chunk of each job needs."""

    demand: Ints  # of each resource, shape (jobs, resources)
    share: Ints  # thousandths of devices
    alone: Flags  # whether the job shares no node
    limit: Ints  # row of `may` that holds for the job
    may: Flags  # whether a node is of an allowed kind, shape (limits, nodes)


@dataclass
class Room:
    """The chunks of a kind of job that each node can hold, after so many changes of nodes."""

    of: Ints
    total: int = 0
    changes: int = 0


class NodeState:
    """The nodes of a problem, on which jobs are placed one by one."""

    def __init__(self, problem: NodePlacement) -> None:
        self._problem = problem
        self.nodes, self.needs = free_nodes(problem), needs_of(problem)
        self._licences = problem.licences.copy()
        self._group_of: dict[str, Ints] = {}
        for span, labels in ("switch", problem.switches), ("block", problem.blocks):
            if labels is not None:
                self._group_of[span] = numbered(labels)
        for name, groups in zip(problem.levels, problem.groups):
            self._group_of[f"level {name}"] = numbered(groups)
        self._alike = first_alike(problem)
        self._rooms: dict[tuple[int, int], Room] = {}
        self._changed = np.empty(int(problem.chunks.sum()), dtype=np.int64)  # nodes, in this order
        self._changes = 0
        self._allotted: Allotment | None = None  # of the job that is placed
        self._chunks: list[list[Chunk]] = [[] for _ in problem.chunks]

    def room(self, job: int) -> Ints | None:
        """Return the most chunks of a job on each node, or None if the job cannot be placed."""
        problem, chunks = self._problem, int(self._problem.chunks[job])
        if (problem.licences_of[job] > self._licences).any():
            return None
        known = self._known_room(job)
        if known.total < chunks:
            return None
        room = known.of.copy()
        self._allotted = None
        if limits := limits_of(problem, job, self._group_of):
            self._allotted = allotment(limits, chunks, room)
            if self._allotted is None:
                return None
            self._allotted.restrict(room)
            return room
        group_of = self._group_of.get(problem.span[job])
        if group_of is not None:
            in_group = np.zeros(group_of.max(initial=0) + 1, dtype=np.int64)
            np.add.at(in_group, group_of, room)
            room[in_group[group_of] < chunks] = 0
        return room if room.any() else None

    def _known_room(self, job: int) -> Room:
        """Return the room for jobs alike, renewed on the nodes that have changed since."""
        chunks = int(self._problem.chunks[job])
        most = min(chunks, int(self._problem.most_per_node[job]) or chunks)
        kind = self._alike[job], most
        if kind in self._rooms:
            known = self._rooms[kind]
            at = self._changed[known.changes : self._changes]
        else:
            if len(self._rooms) >= 1000:
                self._rooms.pop(next(iter(self._rooms)))
            known = self._rooms[kind] = Room(np.zeros(len(self.nodes.free), dtype=np.int64))
            at = np.arange(len(known.of))
        known.total += renew_room(self.nodes, self.needs, job, most, at, known.of)
        known.changes = self._changes
        return known

    def place(self, job: int, room: Ints, order: Iterable[int]) -> list[int]:
        """Place a job, as many chunks as there is room on node after node; return those used."""
        left, used = int(self._problem.chunks[job]), []
        for node in order:
            count = min(left, int(room[node]))
            if count == 0:  # its group has all that it is to get
                continue
            self.take(job, node, room, count)
            used.append(node)
            left -= count
            if left == 0:
                break
        return used

    def take(self, job: int, node: int, room: Ints, count: int, device: int = -1) -> None:
        """Place chunks on a node with room, by default on the tightest device."""
        if not self._chunks[job]:
            self._licences -= self._problem.licences_of[job]
            group_of = self._group_of.get(self._problem.span[job])
            if group_of is not None:
                room[group_of != group_of[node]] = 0
        room[node] -= count
        if self._allotted is not None:
            self._allotted.chunks[self._allotted.part_of[node]] -= count
            self._allotted.restrict(room)
        share = int(self._problem.share[job])
        free, devices, taken, owned = self.nodes
        free[node] -= count * self._problem.demand[job]
        taken[node] = True
        owned[node] |= self.needs.alone[job]
        self._changed[self._changes] = node
        self._changes += 1
        for _ in range(count):
            chosen = (device,) if device >= 0 else devices_for(devices[node].tolist(), share)
            for one in chosen:
                devices[node, one] -= min(share, WHOLE)
            self._chunks[job].append((node, chosen))

    def placements(self) -> Placements:
        """Return all chunks placed, those of a job in the order of nodes."""
        return placements_of(sorted(chunks, key=itemgetter(0)) for chunks in self._chunks)


def placements_of(jobs: Iterable[Iterable[Chunk]]) -> Placements:
    """Return the placements of the chunks of each job."""
    chunks = [tuple(chunks) for chunks in jobs]
    return Placements(
        tuple(tuple(node for node, _ in of_job) for of_job in chunks),
        tuple(tuple(devices for _, devices in of_job) for of_job in chunks),
    )


def devices_for(free: Sequence[int], share: int) -> Devices:
    """Return devices for a share: the tightest for a part of one; () if there are none."""
    if share >= WHOLE:
        whole = [device for device, left in enumerate(free) if left == WHOLE]
        return tuple(whole[: share // WHOLE]) if len(whole) >= share // WHOLE else ()
    fitting = [device for device, left in enumerate(free) if left >= share > 0]
    return (min(fitting, key=free.__getitem__),) if fitting else ()


def free_nodes(problem: NodePlacement) -> Nodes:
    """Return what is free before a job is placed."""
    widest = max(map(len, problem.devices), default=0)
    table = np.zeros((len(problem.devices), widest), dtype=np.int64)
    for row, devices in zip(table, problem.devices):
        row[: len(devices)] = devices
    taken = np.zeros(len(problem.free), dtype=bool)
    taken[list(problem.busy)] = True
    return Nodes(problem.free.copy(), table, taken, np.zeros_like(taken))


def needs_of(problem: NodePlacement) -> Needs:
    """Return what the jobs of a problem need."""
    rows: dict[tuple[str, ...] | None, int] = {}
    limit = [rows.setdefault(allowed, len(rows)) for allowed in problem.allowed]
    nodes = len(problem.free)
    may = np.array([is_allowed(problem.kinds, each, nodes) for each in rows], dtype=bool)
    may = may.reshape(len(rows), nodes)
    alone = np.zeros(len(problem.chunks), dtype=bool)
    alone[list(problem.exclusive)] = True
    return Needs(problem.demand, problem.share, alone, np.array(limit, dtype=np.int64), may)


def numbered(labels: Iterable[object]) -> Ints:
    """Return the number of each label, from 0, in the order of first appearance."""
    numbers: dict[object, int] = {}
    return np.array([numbers.setdefault(label, len(numbers)) for label in labels], dtype=np.int64)


def room_for(nodes: Nodes, needs: Needs, job: int, most: int = LARGEST_FIELD) -> Ints:
    """Return how many chunks of a job each node can hold, at most `most`."""
    room = np.zeros(len(nodes.free), dtype=np.int64)
    renew_room(nodes, needs, job, most, np.arange(len(room)), room)
    return room


@kernel(allocates=False)
def room_on(nodes: Nodes, needs: Needs, job: int, node: int, most: int) -> int:
    """Return how many chunks of a job a node can hold, at most `most`."""
    if nodes.owned[node] or (needs.alone[job] and nodes.taken[node]):
        return 0
    if not needs.may[needs.limit[job], node]:
        return 0
    for resource in range(nodes.free.shape[1]):
        needed = needs.demand[job, resource]
        if needed > nodes.free[node, resource]:
            return 0
        if needed > 0 and most > 1:
            most = min(most, nodes.free[node, resource] // needed)
    share = needs.share[job]
    if share > 0:
        on_one, found = min(share, WHOLE), 0
        for device in range(nodes.devices.shape[1]):
            if nodes.devices[node, device] >= on_one:
                found += nodes.devices[node, device] // on_one
        if share > WHOLE:
            found //= share // WHOLE
        most = min(most, found)
    return most


@kernel(allocates=False)
def renew_room(nodes: Nodes, needs: Needs, job: int, most: int, at: Ints, room: Ints) -> int:
    """Write how many chunks of a job each of some nodes can hold; return by how much all grow."""
    growth = 0
    for place in range(len(at)):
        node = at[place]
        now = room_on(nodes, needs, job, node, most)
        growth += now - room[node]
        room[node] = now
    return growth


@kernel(allocates=False)
def tightest(devices: Ints, node: int, share: int) -> int:
    """Return the first device of a node with the least free share that suffices, or -1."""
    best = -1
    for device in range(devices.shape[1]):
        free = devices[node, device]
        if free >= share and (best < 0 or free < devices[node, best]):
            best = device
    return best
