"""Large neighbourhood search for few switches and idle nodes of jobs that share nodes; compiled.

Some chunks are taken off their nodes: all those on two or three leaves, or all those of some jobs
on a leaf. Job after job, they are then placed again: on leaves where the job is already, else on
the leaf with the least room that holds the rest, else on that with the most. A leaf is passed over
now and then, so that every attempt differs. Jobs that wait are tried beside. An attempt after which
less weight is placed, or the objective is less, is taken back.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from optsched.arrays import Flags, Floats, Ints, Words
from optsched.by_reference import by_reference
from optsched.compiled import kernel
from optsched.models.node_placement import NodePlacement, Placements
from optsched.models.node_placement.fields import WHOLE
from optsched.models.node_placement.problem import first_alike
from optsched.solvers.anytime import Progress
from optsched.solvers.node_placement._node_state import (
    Needs,
    Nodes,
    free_nodes,
    limited_jobs,
    needs_of,
    numbered,
    placements_of,
    room_on,
    tightest,
)

PASSED_OVER = 20
"""One of so many leaves is passed over."""

MOST_LEAVES = 3
"""Most leaves that are emptied together."""

MOST_JOBS = 6
"""Most jobs of a leaf that are taken off all leaves, and jobs that wait and are tried beside."""

UNLIMITED = 1 << 40
"""More chunks than jobs have."""

NOWHERE = -1


@by_reference
class Site(NamedTuple):
    """Nodes and jobs, as far as they do not change."""

    leaf_of: Ints  # of each node
    order: Ints  # nodes, those of a leaf together
    first: Ints  # place of the first node of each leaf in `order`, shape (leaves + 1,)
    busy: Flags
    worth: Floats  # of a unit of each resource, and of a thousandth of a device
    chunks: Ints  # of each job
    start: Ints  # number of its first chunk
    limit: Ints  # most on a node, 0 without
    weights: Ints
    licences_of: Ints
    job_of: Ints  # of each chunk
    type_of: Ints  # of each job: jobs of a type have as much room on every node
    scale: Ints  # of weight, switches and idle nodes in the objective


@by_reference
class Placed(NamedTuple):
    """Where chunks are."""

    node: Ints  # of each chunk, or -1
    devices: Ints  # as bits
    on_leaf: Ints  # chunks of each job on each leaf, shape (jobs, leaves)
    on_node: Ints  # chunks on each node
    missing: Ints  # chunks of each job that are not placed
    licences: Ints  # free ones
    measures: Ints  # weight, switches, idle nodes used
    version: Ints  # of each node: more with every chunk put there or taken off


@by_reference
class Scratch(NamedTuple):
    """Room for the search, and the best placement."""

    of_node: Ints  # room for chunks of a job
    of_leaf: Ints
    known: Ints  # room for chunks of each type on each node, shape (types, nodes)
    seen: Ints  # version of the node for which it is known
    touched: Ints  # jobs that an attempt changes
    marked: Flags  # whether a job is one of these
    keys: Floats  # which order them
    node: Ints  # of each of their chunks before
    devices: Ints
    best_node: Ints
    best_devices: Ints
    random: Words  # state of random numbers, shape (1,)
    steps: Ints  # nodes looked at, shape (1,)


@by_reference
class State(NamedTuple):
    """The whole state of a search."""

    site: Site
    nodes: Nodes
    needs: Needs
    placed: Placed
    scratch: Scratch


@kernel(allocates=False)
def value_of(s: State) -> int:
    measures, scale = s.placed.measures, s.site.scale
    value: int = measures[0] * scale[0] - measures[1] * scale[1] - measures[2] * scale[2]
    return value


@kernel(allocates=False)
def drawn(scratch: Scratch, below: int) -> int:
    """Return a random number from 0, of a linear congruential generator (Knuth's)."""
    state = scratch.random
    state[0] = state[0] * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
    return int(state[0] >> np.uint64(33)) % below


@kernel(allocates=False)
def take(s: State, chunk: int, sign: int) -> None:
    """Take what a chunk needs off its node, or give it back with -1."""
    site, nodes, needs, placed = s.site, s.nodes, s.needs, s.placed
    job, node, devices = site.job_of[chunk], placed.node[chunk], placed.devices[chunk]
    for resource in range(nodes.free.shape[1]):
        nodes.free[node, resource] -= sign * needs.demand[job, resource]
    for device in range(nodes.devices.shape[1]):
        if devices >> device & 1:
            nodes.devices[node, device] -= sign * min(needs.share[job], WHOLE)
    measures, leaf, all_chunks = placed.measures, site.leaf_of[node], site.chunks[job]
    before = placed.missing[job]
    after = before - sign
    placed.missing[job] = after
    if (before == 0) != (after == 0):
        measures[0] += sign * site.weights[job]
    if (before == all_chunks) != (after == all_chunks):
        for licence in range(len(placed.licences)):
            placed.licences[licence] -= sign * site.licences_of[job, licence]
    spanned = placed.on_leaf[job, leaf] > 0
    placed.on_leaf[job, leaf] += sign
    if spanned != (placed.on_leaf[job, leaf] > 0):
        measures[1] += sign
    used = placed.on_node[node] > 0
    placed.on_node[node] += sign
    uses = placed.on_node[node] > 0
    if used != uses and not site.busy[node]:
        measures[2] += sign
    placed.version[node] += 1
    nodes.taken[node] = uses or site.busy[node]
    nodes.owned[node] = uses and needs.alone[job]


@kernel(allocates=False)
def put(s: State, chunk: int, node: int, devices: int) -> None:
    """Place a chunk on a node, on given devices or, if these are 0, on the tightest ones."""
    share, free = s.needs.share[s.site.job_of[chunk]], s.nodes.devices
    if devices == 0 and 0 < share < WHOLE:
        devices = 1 << tightest(free, node, share)
    elif devices == 0:
        left = share // WHOLE
        for device in range(free.shape[1]):
            if left > 0 and free[node, device] == WHOLE:
                devices |= 1 << device
                left -= 1
    s.placed.node[chunk], s.placed.devices[chunk] = node, devices
    take(s, chunk, 1)


@kernel(allocates=False)
def take_off(s: State, number: int, job: int, leaf: int) -> int:
    """Take the chunks of a job off a leaf, or all with -1; return the number of jobs touched."""
    site, placed, scratch = s.site, s.placed, s.scratch
    first = site.start[job]
    if not scratch.marked[job]:
        scratch.marked[job] = True
        scratch.touched[number] = job
        number += 1
        for chunk in range(first, first + site.chunks[job]):
            scratch.node[chunk] = placed.node[chunk]
            scratch.devices[chunk] = placed.devices[chunk]
    for chunk in range(first, first + site.chunks[job]):
        node = placed.node[chunk]
        if node >= 0 and (leaf < 0 or site.leaf_of[node] == leaf):
            take(s, chunk, -1)
            placed.node[chunk] = NOWHERE
    return number


@kernel(allocates=False)
def put_back(s: State, number: int) -> None:
    """Place all chunks of the jobs touched where they were."""
    site, placed, scratch = s.site, s.placed, s.scratch
    for place in range(number):
        job = scratch.touched[place]
        for chunk in range(site.start[job], site.start[job] + site.chunks[job]):
            if placed.node[chunk] >= 0:
                take(s, chunk, -1)
    for place in range(number):
        job = scratch.touched[place]
        for chunk in range(site.start[job], site.start[job] + site.chunks[job]):
            placed.node[chunk] = scratch.node[chunk]
            placed.devices[chunk] = scratch.devices[chunk]
            if placed.node[chunk] >= 0:
                take(s, chunk, 1)


@kernel(allocates=False)
def write_rooms(s: State, job: int) -> int:
    """Write the room of nodes and leaves for the missing chunks of a job; return the sum."""
    site, placed, scratch = s.site, s.placed, s.scratch
    limit, first, left = site.limit[job], site.start[job], placed.missing[job]
    most = min(left, limit) if limit > 0 else left
    room, total, of = scratch.of_node, 0, site.type_of[job]
    for node in range(len(room)):
        if scratch.seen[of, node] != placed.version[node]:
            scratch.seen[of, node] = placed.version[node]
            scratch.known[of, node] = room_on(s.nodes, s.needs, job, node, UNLIMITED)
        room[node] = min(most, scratch.known[of, node])
    if limit > 0 and left < site.chunks[job]:
        for chunk in range(first, first + site.chunks[job]):
            there, node = 0, placed.node[chunk]
            for other in range(first, first + site.chunks[job]):
                there += node >= 0 and placed.node[other] == node
            if there > 0:
                room[node] = min(room[node], limit - there)
    for leaf in range(len(scratch.of_leaf)):
        in_leaf = 0
        for place in range(site.first[leaf], site.first[leaf + 1]):
            in_leaf += room[site.order[place]]
        scratch.of_leaf[leaf] = in_leaf
        total += in_leaf
    scratch.steps[0] += len(room)
    return total


@kernel(allocates=False)
def chosen_leaf(s: State, job: int, patient: bool) -> int:
    """Return the best leaf for the missing chunks of a job, or -1 if all are passed over."""
    placed, scratch = s.placed, s.scratch
    best, left, room = NOWHERE, placed.missing[job], scratch.of_leaf
    for leaf in range(len(room)):
        if room[leaf] == 0 or (patient and drawn(scratch, PASSED_OVER) == 0):
            continue
        if best < 0:
            best = leaf
            continue
        there, before = placed.on_leaf[job, leaf] > 0, placed.on_leaf[job, best] > 0
        holds, held = room[leaf] >= left, room[best] >= left
        if there != before:
            better = there
        elif holds != held:
            better = holds
        elif holds:
            better = room[leaf] < room[best]
        else:
            better = room[leaf] > room[best]
        if better:
            best = leaf
    return best


@kernel(allocates=False)
def fullest_node(s: State, leaf: int) -> int:
    """Return the node of a leaf with the least left that has room, or -1."""
    site, nodes, scratch = s.site, s.nodes, s.scratch
    best, least, resources = NOWHERE, 0.0, nodes.free.shape[1]
    for place in range(site.first[leaf], site.first[leaf + 1]):
        node = site.order[place]
        if scratch.of_node[node] == 0:
            continue
        left = 0.0
        for resource in range(resources):
            left += site.worth[resource] * nodes.free[node, resource]
        for device in range(nodes.devices.shape[1]):
            left += site.worth[resources] * nodes.devices[node, device]
        if site.scale[2] > 0 and not nodes.taken[node]:
            left += site.worth[resources + 1]
        if best < 0 or left < least:
            best, least = node, left
    return best


@kernel(allocates=False)
def place_rest(s: State, job: int) -> None:
    """Place the missing chunks of a job if there is room for all of them."""
    site, placed, scratch = s.site, s.placed, s.scratch
    if placed.missing[job] == site.chunks[job]:
        for licence in range(len(placed.licences)):
            if site.licences_of[job, licence] > placed.licences[licence]:
                return
    if write_rooms(s, job) < placed.missing[job]:
        return
    chunk, patient = site.start[job], True
    while placed.missing[job] > 0:
        leaf = chosen_leaf(s, job, patient)
        if leaf < 0:
            patient = False
            continue
        scratch.of_leaf[leaf] = 0
        node = fullest_node(s, leaf)
        while node >= 0 and placed.missing[job] > 0:
            for _ in range(min(placed.missing[job], scratch.of_node[node])):
                while placed.node[chunk] >= 0:
                    chunk += 1
                put(s, chunk, node, 0)
            scratch.of_node[node] = 0
            node = fullest_node(s, leaf)


@kernel(allocates=False)
def another_leaf(s: State, job: int, leaf: int) -> int:
    """Return a random leaf where a job is beside one, or that one."""
    on_leaf = s.placed.on_leaf[job]
    leaves = len(on_leaf)
    first = drawn(s.scratch, leaves)
    for step in range(leaves):
        other: int = (first + step) % leaves
        if other != leaf and on_leaf[other] > 0:
            return other
    return leaf


@kernel(allocates=False)
def empty_leaves(s: State) -> int:
    """Take chunks off random leaves, which jobs lead to; return the number of jobs touched."""
    site, placed, scratch = s.site, s.placed, s.scratch
    jobs, leaves = placed.on_leaf.shape
    whole = drawn(scratch, 3) == 0  # some jobs off all leaves
    number, leaf = 0, drawn(scratch, leaves)
    for _ in range(1 if whole else 2 + drawn(scratch, MOST_LEAVES - 1)):
        first, taken, following = drawn(scratch, jobs), 0, leaf
        for step in range(jobs):
            job = (first + step) % jobs
            if placed.on_leaf[job, leaf] == 0 or (whole and taken == MOST_JOBS):
                continue
            taken += 1
            if following == leaf and not whole:
                following = another_leaf(s, job, leaf)
            number = take_off(s, number, job, NOWHERE if whole else leaf)
        leaf = drawn(scratch, leaves) if following == leaf else following
    for _ in range(MOST_JOBS):
        job = drawn(scratch, jobs)
        if site.weights[job] > 0 and placed.missing[job] == site.chunks[job]:
            number = take_off(s, number, job, NOWHERE)
    return number


@kernel(allocates=False)
def shuffle(s: State, number: int) -> None:
    """Bring the jobs touched in a random order, or one by what they need, large jobs first."""
    site, needs, placed, scratch = s.site, s.needs, s.placed, s.scratch
    resources, by = needs.demand.shape[1], drawn(scratch, 3)
    keys, touched = scratch.keys, scratch.touched
    for place in range(number):
        job = touched[place]
        need = site.worth[resources] * needs.share[job]
        for resource in range(resources):
            need += site.worth[resource] * needs.demand[job, resource]
        keys[place] = 1 + drawn(scratch, 1000)
        if by == 1:
            keys[place] *= need * placed.missing[job]
        elif by == 2:
            keys[place] *= need
    for place in range(1, number):
        job, key, at = touched[place], keys[place], place
        while at > 0 and keys[at - 1] < key:
            keys[at], touched[at] = keys[at - 1], touched[at - 1]
            at -= 1
        keys[at], touched[at] = key, job


@kernel(allocates=False)
def search(s: State, best: int, attempts: int) -> int:
    """Make some attempts; return the best objective, whose placement is in the scratch."""
    placed, scratch = s.placed, s.scratch
    for _ in range(attempts):
        before, weight = value_of(s), placed.measures[0]
        number = empty_leaves(s)
        shuffle(s, number)
        for place in range(number):
            place_rest(s, scratch.touched[place])
        after, complete = value_of(s), placed.measures[0] >= weight
        for place in range(number):
            job = scratch.touched[place]
            complete &= placed.missing[job] == 0 or placed.missing[job] == s.site.chunks[job]
            scratch.marked[job] = False
        if not complete or after < before:
            put_back(s, number)
        elif after > best:
            best = after
            for chunk in range(len(placed.node)):
                scratch.best_node[chunk] = placed.node[chunk]
                scratch.best_devices[chunk] = placed.devices[chunk]
    return best


MOST_CELLS = 5_000_000
"""Most pairs of a job and a leaf, and of a type of chunks and a node, of which tables are kept."""

ATTEMPTS = 20
"""Attempts between looks at the clock."""

SECONDS_PER_STEP = 8e-9
SECONDS_PER_ATTEMPT = 5e-6
"""Nominal seconds for each node that is looked at, and of an attempt."""


def can_search(problem: NodePlacement) -> bool:
    """Return whether a problem is small enough, and groups of nodes limit none of its jobs."""
    jobs, leaves = len(problem.chunks), len({*(problem.switches or ("",))})
    types = len({*first_alike(problem)})
    return (
        not limited_jobs(problem).any()
        and max(map(len, problem.devices), default=0) <= 62  # bits of an integer
        and max(jobs * leaves, types * len(problem.free)) <= MOST_CELLS
    )


class LeafSearch:
    """Large neighbourhood search from a placement that `can_search` accepts."""

    value: int  # objective of the best placement so far, without its fragmentation

    def __init__(
        self, problem: NodePlacement, start: Placements, progress: Progress, seed: int
    ) -> None:
        self._progress = progress
        nodes, jobs, chunks = len(problem.free), len(problem.chunks), int(problem.chunks.sum())
        leaf_of = numbered(problem.switches or ("",) * nodes)
        in_leaf = np.bincount(leaf_of)
        type_of = numbered(first_alike(problem))
        on_nodes = int(type_of.max(initial=-1)) + 1, nodes
        at_first = free_nodes(problem)
        free = [*at_first.free.sum(axis=0), at_first.devices.sum(), 1]
        scale = {"switches": 0, "nodes": 0}
        for place, name in enumerate(problem.then):
            if name in scale:
                scale[name] = math.prod(problem.radices[place + 1 :])
        first = np.cumsum([0, *problem.chunks])
        self._site = Site(
            leaf_of,
            np.argsort(leaf_of, kind="stable"),
            np.cumsum([0, *in_leaf]),
            at_first.taken.copy(),
            1 / np.maximum(np.array(free, dtype=float), 1),
            problem.chunks,
            first[:-1],
            problem.most_per_node,
            problem.weights,
            problem.licences_of,
            np.repeat(np.arange(jobs), problem.chunks),
            type_of,
            np.array([math.prod(problem.radices), *scale.values()]),
        )
        placed = Placed(
            np.full(chunks, NOWHERE),
            np.zeros(chunks, dtype=np.int64),
            np.zeros((jobs, len(in_leaf)), dtype=np.int64),
            np.zeros(nodes, dtype=np.int64),
            problem.chunks.copy(),
            problem.licences.copy(),
            np.zeros(3, dtype=np.int64),
            np.zeros(nodes, dtype=np.int64),
        )
        self._scratch = Scratch(
            np.zeros(nodes, dtype=np.int64),
            np.zeros(len(in_leaf), dtype=np.int64),
            np.zeros(on_nodes, dtype=np.int64),
            np.full(on_nodes, -1),
            np.zeros(jobs, dtype=np.int64),
            np.zeros(jobs, dtype=np.bool_),
            np.zeros(jobs),
            np.full(chunks, NOWHERE),
            np.zeros(chunks, dtype=np.int64),
            np.full(chunks, NOWHERE),
            np.zeros(chunks, dtype=np.int64),
            np.array([seed % 2**63], dtype=np.uint64),
            np.zeros(1, dtype=np.int64),
        )
        self._state = State(self._site, at_first, needs_of(problem), placed, self._scratch)
        for job in np.flatnonzero(problem.weights).tolist():
            chosen = zip(start.nodes[job], start.devices[job])
            for chunk, (node, devices) in enumerate(chosen, int(first[job])):
                put(self._state, chunk, node, sum(1 << device for device in devices))
        self._scratch.best_node[:], self._scratch.best_devices[:] = placed.node, placed.devices
        self.value = int(value_of(self._state))

    def run(self, until: float, patience: int, enough: int) -> None:
        """Search until a share of the budget, or so many attempts in vain, or an objective."""
        scratch, vain = self._scratch, 0
        while self.value < enough and vain < patience and self._progress.spent() < until:
            before, steps = self.value, int(scratch.steps[0])
            self.value = int(search(self._state, before, ATTEMPTS))
            looked_at = int(scratch.steps[0]) - steps
            self._progress.work += SECONDS_PER_ATTEMPT * ATTEMPTS + SECONDS_PER_STEP * looked_at
            vain = vain + ATTEMPTS if self.value == before else 0

    def placements(self) -> Placements:
        """Return the best placement so far."""
        scratch, site = self._scratch, self._site
        chosen = list(zip(scratch.best_node.tolist(), scratch.best_devices.tolist()))
        of_jobs = (
            sorted(chosen[first : first + chunks])
            for first, chunks in zip(site.start.tolist(), site.chunks.tolist())
        )
        return placements_of(
            [(node, _places(bits)) for node, bits in of_job if node != NOWHERE]
            for of_job in of_jobs
        )


def _places(bits: int) -> tuple[int, ...]:
    return tuple(place for place in range(bits.bit_length()) if bits >> place & 1)
