"""Free state of nodes while rules place job after job, and the kernels that read it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel
from optsched.models.node_placement import NodePlacement, Placements
from optsched.models.node_placement.fields import WHOLE
from optsched.models.node_placement.problem import first_alike
from optsched.solvers.node_placement._allotment import Allotment, allotment, limits_of

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

MOST_ROOMS = 1000
"""Most kinds of jobs whose room is kept."""


class Nodes(NamedTuple):
    """What is free on each node; it changes with each chunk that is placed.

    Parameters
    ----------
    free : ndarray of int, shape (nodes, resources)
        Free amount of each resource.
    devices : ndarray of int, shape (nodes, most devices of a node)
        Free thousandths of each device, 0 where a node has no further device.
    taken : ndarray of bool, shape (nodes,)
        Whether other jobs run on the node, or a chunk is placed there.
    owned : ndarray of bool, shape (nodes,)
        Whether the node belongs to a job that shares it with no other.
    """

    free: Ints
    devices: Ints
    taken: Flags
    owned: Flags


class Needs(NamedTuple):
    """What a chunk of each job needs.

    Parameters
    ----------
    demand : ndarray of int, shape (jobs, resources)
        Amount of each resource.
    share : ndarray of int, shape (jobs,)
        Thousandths of devices.
    alone : ndarray of bool, shape (jobs,)
        Whether the job shares its nodes with no other.
    limit : ndarray of int, shape (jobs,)
        Row of `may` that holds for the job.
    may : ndarray of bool, shape (limits, nodes)
        Whether the kind of each node is allowed.
    """

    demand: Ints
    share: Ints
    alone: Flags
    limit: Ints
    may: Flags


@dataclass
class Room:
    """The chunks of a kind of job that each node can hold, after so many changes of nodes."""

    of: Ints
    total: int = 0
    changes: int = 0


class NodeState:
    """The nodes of a problem, on which jobs are placed one by one.

    Parameters
    ----------
    problem : NodePlacement
        The problem, which does not change.

    Attributes
    ----------
    nodes : Nodes
        What is free.
    needs : Needs
        What the jobs need.
    """

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
        self._at: list[list[int]] = [[] for _ in problem.chunks]
        self._devices_of: list[list[tuple[int, ...]]] = [[] for _ in problem.chunks]

    def room(self, job: int) -> Ints | None:
        """Return the most chunks of a job on each node, or None if the job cannot be placed.

        If one switch or block must hold the job, only nodes of those that can have room. If levels
        limit its groups, only nodes of its allotment have. As chunks are equal, each takes exactly
        1 of the room of its node, whichever device it gets.
        """
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
            if len(self._rooms) >= MOST_ROOMS:
                self._rooms.pop(next(iter(self._rooms)))
            known = self._rooms[kind] = Room(np.zeros(len(self.nodes.free), dtype=np.int64))
            at = np.arange(len(known.of))
        known.total += renew_room(self.nodes, self.needs, job, most, at, known.of)
        known.changes = self._changes
        return known

    def place(self, job: int, room: Ints, order: Iterable[int]) -> list[int]:
        """Place a job, as many chunks as there is room on one node after the other.

        Parameters
        ----------
        job : int
            The job.
        room : ndarray of int, shape (nodes,)
            Its room; less as chunks are placed. Once the first node has chosen a switch or block
            that must hold the job, there is no room elsewhere.
        order : iterable of int
            Nodes with room; read no further than needed.

        Returns
        -------
        list of int
            The nodes used.
        """
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
        """Place chunks on a node with room for them.

        A share goes to `device` if that is given, otherwise to the device with the least free share
        that suffices. Whole devices are the free ones of lowest numbers.
        """
        if not self._at[job]:
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
        self._at[job] += [node] * count
        for _ in range(count):
            chosen: tuple[int, ...] = ()
            if share >= WHOLE:
                whole = np.flatnonzero(devices[node] == WHOLE)[: share // WHOLE]
                devices[node, whole] = 0
                chosen = tuple(whole.tolist())
            elif share:
                best = device if device >= 0 else int(tightest(devices, node, share))
                devices[node, best] -= share
                chosen = (best,)
            self._devices_of[job].append(chosen)

    def placements(self) -> Placements:
        """Return all chunks placed, those of a job in the order of nodes."""
        nodes, devices = [], []
        for at, chosen in zip(self._at, self._devices_of):
            order = sorted(range(len(at)), key=at.__getitem__)
            nodes.append(tuple(at[chunk] for chunk in order))
            devices.append(tuple(chosen[chunk] for chunk in order))
        return Placements(tuple(nodes), tuple(devices))


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
    may = np.ones((len(rows), len(problem.free)), dtype=bool)
    for allowed, row in rows.items():
        if allowed is not None and problem.kinds is not None:
            may[row] = [kind in allowed for kind in problem.kinds]
    alone = np.zeros(len(problem.chunks), dtype=bool)
    alone[list(problem.exclusive)] = True
    return Needs(problem.demand, problem.share, alone, np.array(limit, dtype=np.int64), may)


def numbered(labels: Iterable[object]) -> Ints:
    """Return the number of each label, from 0, in the order of first appearance."""
    numbers: dict[object, int] = {}
    return np.array([numbers.setdefault(label, len(numbers)) for label in labels], dtype=np.int64)


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
