"""Node placements in which every chunk has a node to itself, as pools of nodes that are alike.

The job sets of the greatest weight are those of a knapsack of all nodes. A rule fills leaves.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from optsched.arrays import Flags, Ints
from optsched.errors import InputError
from optsched.models.node_placement import NodePlacement, Placements
from optsched.models.node_placement.fields import WHOLE
from optsched.solvers.node_placement._node_state import (
    devices_for,
    free_nodes,
    needs_of,
    placements_of,
    room_for,
)

Cells = dict[tuple[int, int], int]
"""Number of nodes that a job of a pool has on a leaf of the pool, for the pairs that have some."""


@dataclass(frozen=True, eq=False)
class Pool:
    """Jobs that may use the same nodes, all of which are alike but for their leaf and block."""

    jobs: tuple[int, ...]  # their numbers in the problem
    sizes: Ints  # nodes of each
    weights: Ints
    span: str  # what holds all nodes of a job
    nodes: tuple[tuple[int, ...], ...]  # of each leaf
    blocks: Ints  # number of the part of the leaves that one job can span

    @property
    def room(self) -> Ints:
        """Number of nodes of each leaf."""
        return np.array([len(nodes) for nodes in self.nodes], dtype=np.int64)

    @property
    def block_room(self) -> Ints:
        """Number of nodes of each block."""
        return np.bincount(self.blocks, self.room).astype(np.int64)

    def weight(self, cells: Cells) -> int:
        """Return the weight of the jobs that are placed."""
        return sum(int(self.weights[job]) for job in {job for job, _ in cells})


def pools(problem: NodePlacement) -> list[Pool]:
    """Return the pools of a problem, without jobs that fit nowhere and jobs of weight 0."""
    if problem.then != ("switches",):
        raise _refusal(f"then is {', '.join(problem.then) or 'empty'}")
    if problem.licences_of.any():
        raise _refusal("jobs need licences")
    if has_limits(problem):
        raise _refusal("levels limit the groups of jobs")
    by_nodes: dict[bytes, list[int]] = {}
    nodes, needs = free_nodes(problem), needs_of(problem)
    for alike in alike_jobs(problem, np.flatnonzero(problem.weights).tolist()):
        fitting = room_for(nodes, needs, alike[0], 2)
        wide = [job for job in alike if problem.chunks[job] > 1]
        if wide and problem.most_per_node[wide[0]] != 1 and fitting.max(initial=0) > 1:
            node = int(fitting.argmax())
            raise _refusal(f"two chunks of job {wide[0] + 1} fit on node {node}")
        most = _most_in_span(problem, alike[0], fitting > 0)
        jobs = [job for job in alike if problem.chunks[job] <= most]
        if jobs:
            by_nodes.setdefault((fitting > 0).tobytes(), []).extend(jobs)
    found = []
    taken = np.zeros(len(problem.free), dtype=np.int64)
    for key, jobs in by_nodes.items():
        mine = np.frombuffer(key, dtype=np.bool_)
        if (shared := np.flatnonzero(mine & (taken > 0))).size:
            other = int(taken[shared[0]])
            raise _refusal(f"jobs {other} and {jobs[0] + 1} have some of their nodes in common")
        taken[mine] = jobs[0] + 1
        found.append(_pool(problem, jobs, np.flatnonzero(mine)))
    return found


def has_limits(problem: NodePlacement) -> bool:
    """Return whether levels limit the groups of some jobs."""
    return bool(problem.most_groups.any() or (problem.segments > 1).any())


def placements(problem: NodePlacement, cells: Iterable[tuple[Pool, Cells]]) -> Placements:
    """Return the placements of the cells of each pool, each leaf filled in the order of nodes."""
    nodes: list[list[int]] = [[] for _ in problem.chunks]
    for pool, its_cells in cells:
        unused = [iter(there) for there in pool.nodes]
        for (job, leaf), number in sorted(its_cells.items()):
            nodes[pool.jobs[job]] += [next(unused[leaf]) for _ in range(number)]
    return on_nodes(problem, nodes)


def on_nodes(problem: NodePlacement, nodes: Iterable[Iterable[int]]) -> Placements:
    """Return the placements of jobs that have a chunk on each of their nodes."""
    return placements_of(
        [(node, devices_for(problem.devices[node], share)) for node in sorted(there)]
        for there, share in zip(nodes, problem.share.tolist())
    )


def cells_of(pool: Pool, solution: Placements) -> Cells:
    """Return the cells of the jobs of a pool in a feasible solution."""
    leaf_of = {node: leaf for leaf, nodes in enumerate(pool.nodes) for node in nodes}
    cells: Cells = {}
    for number, job in enumerate(pool.jobs):
        for node in solution.nodes[job]:
            key = number, leaf_of[node]
            cells[key] = cells.get(key, 0) + 1
    return cells


def _refusal(reason: str) -> InputError:
    return InputError(f"solves problems of whole nodes whose then is switches alone; here {reason}")


def alike_jobs(problem: NodePlacement, jobs: Iterable[int]) -> list[list[int]]:
    """Return jobs in lists of those alike but for chunks and weight."""
    alone = {*problem.exclusive}
    lists: dict[tuple[object, ...], list[int]] = {}
    for job in jobs:
        needs = problem.demand[job].tobytes(), int(problem.share[job])
        limits = int(problem.most_per_node[job]), problem.allowed[job], problem.span[job]
        lists.setdefault((needs, limits, job in alone), []).append(job)
    return [*lists.values()]


def _fit_together(free: tuple[int, ...], one: int, other: int) -> bool:
    """Return whether the shares of two chunks fit on the devices of a node."""
    larger, smaller = max(one, other), min(one, other)
    chosen = devices_for(free, larger)
    if not chosen:
        return False
    # the tightest device for the larger share leaves most to the smaller one, unless they share it
    rest = list(free)
    for device in chosen:
        rest[device] -= min(larger, WHOLE)
    if smaller == 0 or devices_for(rest, smaller):
        return True
    return larger < WHOLE and max(free) >= larger + smaller


def _most_in_span(problem: NodePlacement, job: int, usable: Flags) -> int:
    """Return the most nodes that a job can have if it is placed alone."""
    labels = {"switch": problem.switches, "block": problem.blocks}.get(problem.span[job])
    if labels is None or not usable.any():
        return int(usable.sum())
    return int(np.unique(np.array(labels)[usable], return_counts=True)[1].max())


def _pool(problem: NodePlacement, jobs: list[int], nodes: Ints) -> Pool:
    """Return the pool of jobs on nodes, once it is sure that no two of them share a node."""
    for job in jobs:
        if problem.span[job] != problem.span[jobs[0]]:
            raise _refusal(f"jobs {jobs[0] + 1} and {job + 1} share nodes and differ in their span")
    alone = {*problem.exclusive}
    sharing = [job for job in jobs if job not in alone]
    if len(sharing) > 1 and (fit := shareable(problem, sharing, nodes)).size:
        raise _refusal(f"chunks of two jobs may fit on node {fit[0]}")
    span = problem.span[jobs[0]]
    switches = problem.switches
    assert switches is not None
    of_block = {"switch": switches, "block": problem.blocks}.get(span)
    leaves: dict[tuple[str, str], list[int]] = {}
    for node in nodes.tolist():
        block = "" if of_block is None else of_block[node]
        leaves.setdefault((block, switches[node]), []).append(node)
    names = sorted(leaves)
    _, blocks = np.unique([block for block, _ in names], return_inverse=True)
    return Pool(
        tuple(jobs),
        problem.chunks[jobs],
        problem.weights[jobs],
        span,
        tuple(tuple(leaves[name]) for name in names),
        blocks,
    )


def shareable(problem: NodePlacement, jobs: list[int], nodes: Ints) -> Ints:
    """Return the nodes without a resource, or devices, of which no two jobs' chunks fit."""
    least = np.sort(problem.demand[jobs], axis=0)[:2].sum(axis=0)
    full = (least > problem.free[nodes]).any(axis=1)
    one, other = sorted(problem.share[jobs].tolist())[:2]
    if one > 0:
        full |= [not _fit_together(problem.devices[node], one, other) for node in nodes]
    shareable: Ints = nodes[~full]
    return shareable


def heaviest_set(sizes: Iterable[int], weights: Iterable[int], nodes: int) -> list[int]:
    """Return jobs of the greatest weight that have at most a number of nodes in all."""
    best = np.zeros(nodes + 1, dtype=np.int64)
    taken = []
    sizes = list(sizes)
    for size, weight in zip(sizes, weights):
        before = best
        best = _with_job(before, size, weight)
        taken.append(best > before)
    jobs = []
    for job in range(len(taken) - 1, -1, -1):
        if taken[job][nodes]:
            jobs.append(job)
            nodes -= sizes[job]
    return jobs[::-1]


class Optional(NamedTuple):
    """Jobs of one size and one weight that may be left out."""

    kind: int  # place of the size among the sizes
    weight: int
    jobs: int


@dataclass(frozen=True, eq=False)
class PrioritySets:
    """Job sets of at least a weight in all nodes; of jobs of one size, the heaviest come first."""

    sizes: Ints  # of jobs in one of the sets, ascending
    most: Ints  # jobs of each size in a set
    optional: tuple[Optional, ...]  # those of them that are not in all sets
    slack: int  # most weight of optional jobs that are left out

    @classmethod
    def of(cls, sizes: Ints, weights: Ints, nodes: int, weight: int) -> PrioritySets:
        """Return the sets of jobs that have at least a `weight` and at most a number of `nodes`."""
        by_size = {
            size: np.sort(weights[sizes == size])[::-1].tolist()
            for size in np.unique(sizes).tolist()
        }
        ranges = {
            size: numbers
            for size, numbers in _numbers(by_size, nodes, weight).items()
            if numbers[-1]
        }
        optional: list[Optional] = []
        slack = -weight
        for kind, (size, numbers) in enumerate(ranges.items()):
            slack += sum(by_size[size][: numbers[-1]])
            values, counts = np.unique(by_size[size][numbers[0] : numbers[-1]], return_counts=True)
            optional += map(Optional, [kind] * len(values), values.tolist(), counts.tolist())
        unit = math.gcd(*(one.weight for one in optional)) or 1
        return cls(
            np.array([*ranges], dtype=np.int64),
            np.array([numbers[-1] for numbers in ranges.values()], dtype=np.int64),
            tuple(one._replace(weight=one.weight // unit) for one in optional),
            slack // unit,
        )

    @property
    def always(self) -> Ints:
        """Jobs of each size that are in all sets."""
        always = self.most.copy()
        for kind, _, jobs in self.optional:
            always[kind] -= jobs
        return always

    def cheapest(self, prices: Ints) -> tuple[Ints, int]:
        """Return the jobs of each size of the set of least price, and that price."""
        jobs = [one for one in self.optional for _ in range(one.jobs)]
        weights = [one.weight for one in jobs]
        saved = [int(prices[one.kind]) for one in jobs]
        numbers = self.most.copy()
        for left_out in heaviest_set(weights, saved, self.slack):
            numbers[jobs[left_out].kind] -= 1
        return numbers, int(prices @ numbers)


def _numbers(by_size: dict[int, list[int]], nodes: int, weight: int) -> dict[int, list[int]]:
    """Return, for each size, the numbers of jobs with which a set can have the `weight`."""
    nothing = np.zeros(nodes + 1, dtype=np.int64)
    after = [nothing]  # most weight of the larger sizes, by nodes
    for size, weights in list(by_size.items())[:0:-1]:
        after.append(_with_jobs(after[-1], size, weights))
    found: dict[int, list[int]] = {}
    before = nothing
    for size, weights in by_size.items():
        larger = after.pop()
        found[size] = []
        for jobs in range(min(len(weights), nodes // size) + 1):
            rest = nodes - jobs * size
            others = int((before[: rest + 1] + larger[rest::-1]).max())
            if others + sum(weights[:jobs]) >= weight:
                found[size].append(jobs)
        before = _with_jobs(before, size, weights)
    return found


def _with_jobs(best: Ints, size: int, weights: list[int]) -> Ints:
    for weight in weights:
        best = _with_job(best, size, weight)
    return best


def _with_job(best: Ints, size: int, weight: int) -> Ints:
    """Return the table of a knapsack, by capacity, with one more job."""
    more = best.copy()
    if size < len(best):
        more[size:] = np.maximum(more[size:], best[: len(best) - size] + weight)
    return more


def filled(sizes: Ints, room: Ints, blocks: Ints) -> Cells:
    """Return the cells of jobs on leaves, the largest job first."""
    free = room.copy()
    cells: Cells = {}
    for job in np.argsort(-sizes, kind="stable").tolist():
        left = int(sizes[job])
        leaves = np.arange(len(free))
        if not (free >= left).any():
            in_block = np.bincount(blocks, free).astype(np.int64)
            holding = np.flatnonzero(in_block >= left)
            if not holding.size:
                continue
            leaves = np.flatnonzero(blocks == holding[in_block[holding].argmin()])
        while left:
            there = free[leaves]
            enough = np.flatnonzero(there >= left)
            leaf = int(leaves[enough[there[enough].argmin()] if enough.size else there.argmax()])
            cells[job, leaf] = min(left, int(free[leaf]))
            free[leaf] -= cells[job, leaf]
            left -= cells[job, leaf]
    return cells


def filled_by_priority(pool: Pool) -> Cells:
    """Return the cells of the jobs of greatest weight that fit into all nodes together."""
    jobs = heaviest_set(pool.sizes.tolist(), pool.weights.tolist(), int(pool.room.sum()))
    cells = filled(pool.sizes[jobs], pool.room, pool.blocks)
    return {(jobs[job], leaf): nodes for (job, leaf), nodes in cells.items()}


@dataclass(frozen=True)
class AlikeNodes:
    """A problem whose nodes stand for those of another to which the same jobs and groups go."""

    whole: NodePlacement  # in which a node holds one chunk at most
    problem: NodePlacement  # in which a node has a unit for each node it stands for
    nodes: tuple[tuple[int, ...], ...]  # for which each stands

    def counted(self, solution: Placements) -> Placements:
        """Return the placements of the smaller problem for those of the whole one."""
        of_node = {node: place for place, nodes in enumerate(self.nodes) for node in nodes}
        at = tuple(tuple(sorted(of_node[node] for node in nodes)) for nodes in solution.nodes)
        return Placements(at, tuple(((),) * len(nodes) for nodes in at))

    def spread(self, solution: Placements) -> Placements:
        """Return the placements of the whole problem, alike nodes filled in their order."""
        unused = [iter(nodes) for nodes in self.nodes]
        at = ([next(unused[place]) for place in nodes] for nodes in solution.nodes)
        return on_nodes(self.whole, at)


def alike_nodes(problem: NodePlacement) -> AlikeNodes | None:
    """Return the smaller problem; None if a node may hold two chunks or idle nodes matter."""
    if {*problem.then} - {"switches"}:
        return None
    fits = np.zeros((len(problem.chunks), len(problem.free)), dtype=bool)
    free, needs = free_nodes(problem), needs_of(problem)
    for jobs in alike_jobs(problem, range(len(problem.chunks))):
        most = room_for(free, needs, jobs[0], 2)
        several = problem.most_per_node[jobs[0]] != 1 and problem.chunks[jobs].max() > 1
        if several and most.max(initial=0) > 1:
            return None
        fits[jobs] = most > 0
    groups = [labels for labels in (problem.switches, problem.blocks) if labels is not None]
    keys = zip(map(bytes, np.packbits(fits, axis=0).T), *groups, *problem.groups)
    cells: dict[tuple[object, ...], list[int]] = {}
    for node, key in enumerate(keys):
        cells.setdefault(key, []).append(node)
    sharing = np.ones(len(fits), dtype=bool)
    sharing[list(problem.exclusive)] = False
    for nodes in cells.values():
        there = np.flatnonzero(fits[:, nodes[0]] & sharing).tolist()
        if len(there) > 1 and shareable(problem, there, np.array(nodes)).size:
            return None
    first = [nodes[0] for nodes in cells.values()]
    names = [str(node) for node in first]

    def of_first(labels: object) -> list[str] | None:
        return None if labels is None else [labels[node] for node in first]  # type: ignore[index]

    smaller = NodePlacement(
        ["nodes"],
        np.array([[len(nodes)] for nodes in cells.values()], dtype=np.int64).reshape(-1, 1),
        problem.chunks,
        np.ones((len(fits), 1), dtype=np.int64),
        weights=problem.weights,
        then=problem.then,
        kinds=names,
        allowed=[[names[place] for place in np.flatnonzero(row[first])] for row in fits],
        switches=of_first(problem.switches),
        blocks=of_first(problem.blocks),
        span=problem.span,
        licences=problem.licences,
        licences_of=problem.licences_of,
        levels=problem.levels,
        groups=[of_first(labels) for labels in problem.groups],
        most_groups=problem.most_groups,
        segments=problem.segments,
    )
    return AlikeNodes(problem, smaller, tuple(map(tuple, cells.values())))
