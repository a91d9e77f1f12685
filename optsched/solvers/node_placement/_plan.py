"""Placements under construction: from contents of nodes to the chunks of jobs, and back."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from optsched.arrays import Ints
from optsched.models.node_placement import Placements
from optsched.models.node_placement.fields import WHOLE
from optsched.solvers.node_placement._node_state import (
    Chunk,
    devices_for,
    free_nodes,
    placements_of,
    room_for,
)
from optsched.solvers.node_placement._types import Content, Instance


class PartialPlacement:
    """The nodes and devices of the jobs placed so far, and what is free."""

    value: int  # weight placed

    def __init__(self, instance: Instance) -> None:
        problem = self._problem = instance.problem
        self._instance = instance
        self.value = 0
        self._nodes = free_nodes(problem)
        self._alone = instance.needs.alone
        self._licences = problem.licences.copy()
        self._chunks: list[list[Chunk]] = [[] for _ in problem.chunks]

    def take(self, solution: Placements) -> None:
        """Place jobs as a solution does."""
        for job, (nodes, devices) in enumerate(zip(solution.nodes, solution.devices)):
            if nodes:
                self._place(job, zip(nodes, devices))

    def place_contents(self, held: Mapping[int, Content], most: Ints | None = None) -> None:
        """Place jobs in contents of nodes, at most so many of each class, the dearest first."""
        instance = self._instance
        room: dict[int, list[Chunk]] = {}  # by type
        for node, content in held.items():
            order = instance.device_order(node)
            for number, places in content.chunks:
                chunk = node, tuple(order[place] for place in places)
                room.setdefault(number, []).append(chunk)
        for number in self._dearest_first():
            of_type = int(instance.classes.type_of[number])
            for job in instance.jobs_of[number][: None if most is None else most[number]]:
                chosen = self._chosen(job, of_type, room.get(of_type, []))
                if chosen is None:
                    break
                self._place(job, chosen)

    def _dearest_first(self) -> list[int]:
        """Return the classes by falling weight of a chunk, large jobs before small ones."""
        classes = self._instance.classes
        order = np.lexsort((-classes.chunks, -classes.weights / classes.chunks))
        return [int(number) for number in order]

    def _chosen(self, job: int, of_type: int, room: list[Chunk]) -> list[Chunk] | None:
        """Return chunks for a job and take them from `room`, or None if there are too few."""
        chunks, limit = int(self._problem.chunks[job]), int(self._instance.limit[of_type])
        if len(room) < chunks or (self._problem.licences_of[job] > self._licences).any():
            return None
        if not limit and not self._alone[job]:
            chosen = room[-chunks:]
            del room[-chunks:]
            return chosen
        at: dict[int, list[Chunk]] = {}
        for node, devices in room:
            at.setdefault(node, []).append((node, devices))
        spread = _whole_nodes if self._alone[job] else _level
        counts = spread({node: len(there) for node, there in at.items()}, chunks, limit)
        if counts is None:
            return None
        chosen = [chunk for node, count in counts.items() for chunk in at[node][:count]]
        for node, count in counts.items():
            at[node] = [] if self._alone[job] else at[node][count:]
        room[:] = [chunk for there in at.values() for chunk in there]
        return chosen

    def fill(self, groups: Iterable[Sequence[int]]) -> None:
        """Place further jobs, group after group of equal ones, into the fullest nodes."""
        for jobs in groups:
            waiting = [job for job in jobs if not self._chunks[job]]
            if waiting:
                self._fill_with(waiting)

    def fill_up(self) -> None:
        """Place further jobs of positive weight."""
        self.fill(self._instance.jobs_of[number] for number in self._dearest_first())

    def _fill_with(self, jobs: Sequence[int]) -> None:
        problem, own = self._problem, self._alone[jobs[0]]
        most = int(problem.chunks.sum())
        fits = room_for(self._nodes, self._instance.needs, jobs[0], most)
        nodes = np.flatnonzero(fits)
        free = self._nodes.free[nodes].sum(axis=1)
        room = self._nodes.devices[nodes].sum(axis=1)
        order = nodes[np.lexsort((free, room))].tolist()
        left = dict(zip(order, fits[order].tolist()))
        too_many = len(problem.chunks) * int(problem.chunks.max()) + 1
        for job in jobs:
            needed, limit = int(problem.chunks[job]), int(problem.most_per_node[job])
            if needed >= too_many or (problem.licences_of[job] > self._licences).any():
                continue
            counts: dict[int, int] = {}
            missing = needed
            for node in order:
                counts[node] = min(left[node], missing, limit or missing)
                missing -= counts[node]
                if not missing:
                    break
            if missing:
                too_many = needed
                continue
            for node, count in counts.items():
                left[node] = 0 if own else left[node] - count
            order[: len(counts)] = [node for node in counts if left[node]]
            self._place(job, self._with_devices(job, counts))

    def _with_devices(self, job: int, counts: Mapping[int, int]) -> Iterable[Chunk]:
        """Yield chunks on devices with the least room that do, by the number on each node."""
        share = int(self._problem.share[job])
        for node, count in counts.items():
            room = self._nodes.devices[node].tolist()
            for _ in range(count):
                devices = devices_for(room, share)
                for device in devices:
                    room[device] -= min(share, WHOLE)
                yield node, devices

    def _place(self, job: int, chunks: Iterable[Chunk]) -> None:
        problem = self._problem
        free, room, taken, owned = self._nodes
        share = min(int(problem.share[job]), WHOLE)
        self._chunks[job] = sorted(chunks)
        for node, devices in self._chunks[job]:
            free[node] -= problem.demand[job]
            for device in devices:
                room[node, device] -= share
            taken[node] = True
            owned[node] = self._alone[job]
        self._licences -= problem.licences_of[job]
        self.value += int(problem.weights[job])

    def contents(self) -> dict[int, Content]:
        """Return the content of each node that has chunks of jobs of positive weight."""
        instance = self._instance
        held: dict[int, list[Chunk]] = {}  # with the types in place of the nodes
        place_of: dict[int, dict[int, int]] = {}
        for job, chunks in enumerate(self._chunks):
            number = int(instance.type_of[job])
            if number < 0:
                continue
            for node, devices in chunks:
                if node not in place_of:
                    order = instance.device_order(node)
                    place_of[node] = {device: place for place, device in enumerate(order)}
                places = tuple(place_of[node][device] for device in devices)
                held.setdefault(node, []).append((number, places))
        return {node: self._content(node, chunks) for node, chunks in held.items()}

    def _content(self, node: int, chunks: list[Chunk]) -> Content:
        instance = self._instance
        counts = np.bincount([one for one, _ in chunks], minlength=len(instance.types.most))
        number = chunks[0][0]
        if instance.exclusive[number]:
            counts[number] = -(-counts[number] // instance.fill[number])
        return Content(int(instance.kind_of[node]), counts, tuple(chunks))

    def placements(self) -> Placements:
        return placements_of(self._chunks)


def _whole_nodes(free: Mapping[int, int], chunks: int, limit: int) -> dict[int, int] | None:
    """Return chunks by node for a job that takes whole nodes, or None if they are too few."""
    room = {node: min(count, limit or count) for node, count in free.items()}
    counts: dict[int, int] = {}
    for node in sorted(room, key=lambda node: -room[node]):
        holding = [other for other in room if other not in counts and room[other] >= chunks]
        if holding:
            counts[min(holding, key=lambda other: room[other])] = chunks
            return counts
        counts[node] = room[node]
        chunks -= room[node]
    return None


def _level(free: Mapping[int, int], chunks: int, limit: int) -> dict[int, int] | None:
    """Return chunks by node, at most `limit` on each, or None if they do not fit."""
    heap = [(-count, node) for node, count in free.items() if count]
    heapq.heapify(heap)
    counts: dict[int, int] = {}
    for _ in range(chunks):
        if not heap:
            return None
        count, node = heapq.heappop(heap)
        counts[node] = counts.get(node, 0) + 1
        if counts[node] < limit and count < -1:
            heapq.heappush(heap, (count + 1, node))
    return counts
