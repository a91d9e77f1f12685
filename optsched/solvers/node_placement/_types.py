"""Types of chunks, classes of jobs and kinds of nodes: a node placement without names.

Chunks of a type need the same, on the same nodes; jobs of a class have as many chunks of one type,
and the same weight; nodes of a kind have the same use for all chunks. Column generation counts them
and does not tell them apart. Functions with ``@kernel`` take these tables, so that their cache
covers this file.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from optsched.arrays import Flags, Ints
from optsched.by_reference import by_reference
from optsched.models.fields import LARGEST_FIELD
from optsched.models.node_placement import NodePlacement
from optsched.models.node_placement.fields import WHOLE
from optsched.solvers.node_placement._node_state import (
    Devices,
    Needs,
    free_nodes,
    needs_of,
    numbered,
    room_for,
)

NO_DEVICE = -1
"""The first device of a chunk that needs none."""


def ints(*shape: int) -> Ints:
    """Return integers, all 0."""
    return np.zeros(shape, dtype=np.int64)


@by_reference
class Types(NamedTuple):
    """What a chunk of each type needs; devices in units of which all shares are multiples."""

    need: Ints  # of each resource, shape (types, resources)
    devices: Ints  # 0, 1, or a number of whole devices
    share: Ints  # units of each of these devices
    most: Ints  # chunks of the type that all jobs could have on one node


@by_reference
class Kinds(NamedTuple):
    """What is free on a node of each kind, as far as chunks can use it."""

    free: Ints  # of each resource, shape (kinds, resources)
    whole: Ints  # wholly free devices
    parts: Ints  # free units of the other devices, in descending order; shape (kinds, most parts)
    num_parts: Ints
    room: Ints  # for chunks of each type alone, up to one more than there are; (kinds, types)
    fits: Ints  # such chunks that there are


class Classes(NamedTuple):
    """Classes of jobs."""

    type_of: Ints
    chunks: Ints  # or nodes, if jobs of the type have nodes to themselves and fill each alike
    weights: Ints
    jobs: Ints  # number of jobs
    licences: Ints  # shape (classes, licences)


class Content(NamedTuple):
    """Chunks that a node of a kind can hold together."""

    kind: int
    counts: Ints  # of each type, or nodes of their own where `Classes` counts those
    chunks: tuple[tuple[int, Devices], ...]  # type and devices, as places in `device_order`
    cost: float = 0.0  # fragmentation left, if that matters, in devices


class Instance:
    """The types, classes and kinds of a node placement.

    Jobs of weight 0, and jobs that could not be placed on the empty nodes, are left out. Kinds are
    `exact` if all that is free on their nodes is equal, not only what chunks can use.
    """

    needs: Needs  # of each job
    units: int  # of a whole device
    types: Types
    classes: Classes
    kinds: Kinds
    nodes: Ints  # number of nodes of each kind
    exclusive: Flags  # whether jobs of a type have nodes to themselves
    limit: Ints  # most chunks of a job of a type on a node, 0 without a limit
    fill: Ints  # chunks of a type that count as one, where a job fills each of its nodes alike
    jobs_of: list[list[int]]  # of each class
    nodes_of: list[list[int]]  # of each kind
    weightless: list[list[int]]  # jobs of weight 0, those with chunks of one type together
    kind_of: Ints  # of each node, -1 if no chunk fits there
    label_of: Ints  # of each node
    pool_of: Ints  # label of the nodes of each kind
    type_of: Ints  # of the chunks of each job; -1 for jobs left out

    def __init__(self, problem: NodePlacement, exact: bool = False) -> None:
        self.problem = problem
        shares = {int(share) for share in problem.share if 0 < share < WHOLE}
        unit = math.gcd(WHOLE, *shares)
        self.units = WHOLE // unit
        reach = _reachable({share // unit for share in shares}, self.units)
        self._room = [
            [self.units if free == WHOLE else reach[free // unit] for free in row]
            for row in problem.devices
        ]
        whole = np.array([row.count(WHOLE) for row in problem.devices], dtype=np.int64)
        parts = [
            sorted((room for room in row if 0 < room < self.units), reverse=True)
            for row in self._room
        ]
        self.label_of = numbered(problem.kinds or [""] * len(problem.free))
        nodes, self.needs = free_nodes(problem), needs_of(problem)
        alone = self.needs.alone
        members: list[list[int]] = []
        columns: list[tuple[Ints, int, int]] = []  # room, most and limit of each type
        of_weight = np.flatnonzero(problem.weights).tolist()
        for jobs in _alike(problem, of_weight, alone):
            job, limit = jobs[0], _limit(problem, jobs[0])
            of_one = room_for(nodes, self.needs, job)
            placeable = [
                job
                for job in jobs
                if np.minimum(of_one, limit or problem.chunks[job]).sum() >= problem.chunks[job]
                and (problem.licences_of[job] <= problem.licences).all()
            ]
            if placeable:
                on_one_node = np.minimum(problem.chunks[placeable], limit or LARGEST_FIELD)
                most = int(on_one_node.max() if alone[job] else on_one_node.sum())
                members.append(placeable)
                columns.append((np.minimum(of_one, most + 1), most, limit))
        first = [jobs[0] for jobs in members]
        share = problem.share[first]
        room = np.array([alone for alone, _, _ in columns], dtype=np.int64)
        room = room.reshape(len(first), len(problem.free)).T
        self.exclusive = alone[first]
        self.limit = np.array([limit for _, _, limit in columns], dtype=np.int64)
        self.types = Types(
            need=np.ascontiguousarray(problem.demand[first]),
            devices=np.where(share == 0, 0, np.maximum(share // WHOLE, 1)),
            share=np.minimum(share, WHOLE) // unit,
            most=np.array([most for _, most, _ in columns], dtype=np.int64),
        )
        self.weightless = _alike(problem, np.flatnonzero(problem.weights == 0).tolist(), alone)
        self._classes(members, np.minimum(room, self.types.most))
        self._kinds(whole, parts, room, exact)

    def _classes(self, members: Sequence[list[int]], fits: Ints) -> None:
        problem = self.problem
        self.type_of = np.full(len(problem.chunks), -1, dtype=np.int64)
        jobs_of: dict[tuple[object, ...], list[int]] = {}
        self.fill = np.ones(len(members), dtype=np.int64)
        for number, jobs in enumerate(members):
            self.type_of[jobs] = number
            filled = {*fits[:, number].tolist()} - {0}
            if self.exclusive[number] and len(filled) == 1:
                self.fill[number] = filled.pop()  # then a class is a number of nodes
            for job in jobs:
                key = (
                    number,
                    -(-int(problem.chunks[job]) // int(self.fill[number])),
                    int(problem.weights[job]),
                    tuple(problem.licences_of[job].tolist()),
                )
                jobs_of.setdefault(key, []).append(job)
        self.jobs_of = list(jobs_of.values())
        columns = [np.array(column, dtype=np.int64) for column in zip(*(k[:3] for k in jobs_of))]
        of_type, chunks, weights = columns or [np.empty(0, dtype=np.int64)] * 3
        licences = np.array([key[3] for key in jobs_of], dtype=np.int64)
        self.classes = Classes(
            of_type,
            chunks,
            weights,
            np.array([len(jobs) for jobs in self.jobs_of], dtype=np.int64),
            licences.reshape(len(jobs_of), len(problem.licences)),
        )

    def _kinds(self, whole: Ints, parts: Sequence[Sequence[int]], room: Ints, exact: bool) -> None:
        problem = self.problem
        fits = np.minimum(room, self.types.most)
        free = problem.free if exact else self._useful(whole, parts, fits)
        nodes_of: dict[tuple[object, ...], list[int]] = {}
        for node in np.flatnonzero(fits.any(axis=1)).tolist():
            key = (free[node].tobytes(), whole[node], tuple(parts[node]), self.label_of[node])
            order = self.device_order(node) if exact else []
            devices = problem.devices[node] if exact else ()
            used = tuple(devices[device] for device in order)
            nodes_of.setdefault(
                (*key, room[node].tobytes(), used, tuple(sorted(devices))), []
            ).append(node)
        self.nodes_of = list(nodes_of.values())
        first = [nodes[0] for nodes in self.nodes_of]
        num_parts = np.array([len(parts[node]) for node in first], dtype=np.int64)
        table = np.zeros((len(first), max(num_parts, default=0)), dtype=np.int64)
        for kind, node in enumerate(first):
            table[kind, : num_parts[kind]] = parts[node]
        self.kinds = Kinds(
            free=np.ascontiguousarray(free[first]),
            whole=whole[first],
            parts=table,
            num_parts=num_parts,
            room=np.ascontiguousarray(room[first]),
            fits=np.ascontiguousarray(fits[first]),
        )
        self.pool_of = self.label_of[first]
        self.nodes = np.array([len(nodes) for nodes in self.nodes_of], dtype=np.int64)
        self.kind_of = np.full(len(problem.free), -1, dtype=np.int64)
        for kind, nodes in enumerate(self.nodes_of):
            self.kind_of[nodes] = kind

    def _useful(self, whole: Ints, parts: Sequence[Sequence[int]], fits: Ints) -> Ints:
        """Return the free resources of each node, cut to what chunks can use there at most."""
        free, types = self.problem.free, self.types
        on_devices = types.devices > 0
        least = int(types.share[on_devices].min(initial=self.units))
        places = whole * (self.units // least)
        places += np.array([sum(room // least for room in row) for row in parts], dtype=np.int64)
        allowed = fits > 0
        useful = free.copy()
        for resource in range(free.shape[1]):
            need = types.need[:, resource]
            largest = (allowed * np.where(on_devices, need, 0)).max(axis=1, initial=0)
            loose = fits.astype(float) @ np.where(on_devices, 0, need)
            used = places.astype(float) * largest + loose
            useful[:, resource] = np.where(used < free[:, resource], used, free[:, resource])
        return useful

    def device_order(self, node: int) -> list[int]:
        """Return the devices of a node: whole ones, then those of parts by falling room."""
        room = self._room[node]
        return sorted((d for d in range(len(room)) if room[d]), key=lambda d: -room[d])

    def alone(self, kind: int, number: int) -> Content:
        """Return the content of a node that an exclusive job fills with chunks of a type."""
        chunks = int(self.kinds.fits[kind, number])
        counts = np.zeros(len(self.types.most), dtype=np.int64)
        counts[number] = -(-chunks // self.fill[number])
        devices, share = int(self.types.devices[number]), int(self.types.share[number])
        places: Iterable[int] = [NO_DEVICE] * chunks
        if devices and share == self.units:
            places = range(0, chunks * devices, devices)
        elif devices:
            room = [self.units] * int(self.kinds.whole[kind])
            room += self.kinds.parts[kind, : self.kinds.num_parts[kind]].tolist()
            places = [d for d, free in enumerate(room) for _ in range(free // share)][:chunks]
        return Content(kind, counts, self.with_devices([number] * chunks, places))

    def with_devices(
        self, types: Iterable[int], first: Iterable[int]
    ) -> tuple[tuple[int, Devices], ...]:
        """Return chunks as a `Content` has them, by the first device of each."""
        width = self.types.devices.tolist()
        return tuple(
            (t, tuple(range(d, d + width[t])) if d >= 0 else ()) for t, d in zip(types, first)
        )


def _alike(problem: NodePlacement, jobs: Iterable[int], alone: Flags) -> list[list[int]]:
    """Return the jobs, those with chunks of one type together."""
    found: dict[tuple[object, ...], list[int]] = {}
    for job in jobs:
        kinds = problem.allowed[job]
        key = (
            problem.demand[job].tobytes(),
            int(problem.share[job]),
            None if kinds is None or problem.kinds is None else frozenset(kinds),
            _limit(problem, job),
            int(problem.chunks[job]) if alone[job] else 0,
        )
        found.setdefault(key, []).append(job)
    return list(found.values())


def _limit(problem: NodePlacement, job: int) -> int:
    """Return the most chunks of a job on a node; 0 if all of them may be there."""
    most = int(problem.most_per_node[job])
    return most if most < problem.chunks[job] else 0


def _reachable(shares: set[int], units: int) -> list[int]:
    """Return the largest sum of shares of at most 0, 1, ... `units`."""
    sums = 1
    for share in shares:
        for _ in range(units // share):
            sums |= sums << share
    largest, found = 0, []
    for total in range(units + 1):
        if sums >> total & 1:
            largest = total
        found.append(largest)
    return found
