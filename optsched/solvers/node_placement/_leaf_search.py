"""Search for the fewest leaf switches, and idle nodes, of jobs that share nodes."""

from __future__ import annotations

import math

import numpy as np

from optsched.models.node_placement import NodePlacement, Placements
from optsched.models.node_placement.problem import first_alike
from optsched.solvers.node_placement._effort import Effort
from optsched.solvers.node_placement._leaf_moves import (
    NOWHERE,
    Placed,
    Scratch,
    Site,
    put,
    search,
    value_of,
)
from optsched.solvers.node_placement._limited_jobs import limited_jobs
from optsched.solvers.node_placement._node_state import free_nodes, needs_of, numbered

MOST_DEVICES = 62
"""Most devices of a node, which are bits of an integer."""

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
        and max(map(len, problem.devices), default=0) <= MOST_DEVICES
        and max(jobs * leaves, types * len(problem.free)) <= MOST_CELLS
    )


class LeafSearch:
    """Large neighbourhood search from a placement, see `_leaf_moves`.

    Parameters
    ----------
    problem : NodePlacement
        A problem that `can_search` accepts.
    start : Placements
        Feasible placements; jobs of weight 0 are left out.
    effort : Effort
        Limits of the search.
    seed : int
        Seed of random choices.

    Attributes
    ----------
    value : int
        Objective of the best placement so far, its fragmentation left out.
    """

    def __init__(
        self, problem: NodePlacement, start: Placements, effort: Effort, seed: int
    ) -> None:
        self._effort = effort
        nodes, jobs, chunks = len(problem.free), len(problem.chunks), int(problem.chunks.sum())
        leaf_of = numbered(problem.switches or ("",) * nodes)
        in_leaf = np.bincount(leaf_of)
        type_of = numbered(first_alike(problem))
        on_nodes = int(type_of.max(initial=-1)) + 1, nodes
        self._nodes, self._needs = free_nodes(problem), needs_of(problem)
        free = [*self._nodes.free.sum(axis=0), self._nodes.devices.sum(), 1]
        scale = {"switches": 0, "nodes": 0}
        for place, name in enumerate(problem.then):
            if name in scale:
                scale[name] = math.prod(problem.radices[place + 1 :])
        first = np.cumsum([0, *problem.chunks])
        self._site = Site(
            leaf_of,
            np.argsort(leaf_of, kind="stable"),
            np.cumsum([0, *in_leaf]),
            self._nodes.taken.copy(),
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
        self._placed = Placed(
            np.full(chunks, NOWHERE),
            np.zeros(chunks, dtype=np.int64),
            np.zeros((jobs, len(in_leaf)), dtype=np.int64),
            np.zeros(nodes, dtype=np.int64),
            problem.chunks.copy(),
            problem.licences.copy(),
            np.zeros(3, dtype=np.int64),
            np.zeros(nodes, dtype=np.int64),
        )
        state = self._site, self._nodes, self._needs, self._placed
        for job in np.flatnonzero(problem.weights).tolist():
            chosen = zip(start.nodes[job], start.devices[job])
            for chunk, (node, devices) in enumerate(chosen, int(first[job])):
                put(*state, chunk, node, sum(1 << device for device in devices))
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
            self._placed.node.copy(),
            self._placed.devices.copy(),
            np.array([seed % 2**63], dtype=np.uint64),
            np.zeros(1, dtype=np.int64),
        )
        self.value = int(value_of(self._site, self._placed))

    def run(self, until: float, patience: int, enough: int) -> None:
        """Search until a share of the budget, or so many attempts in vain, or an objective."""
        scratch, vain = self._scratch, 0
        while self.value < enough and vain < patience and self._effort.spent() < until:
            before, steps = self.value, int(scratch.steps[0])
            self.value = int(
                search(
                    *(self._site, self._nodes, self._needs, self._placed, scratch),
                    *(before, ATTEMPTS),
                )
            )
            looked_at = int(scratch.steps[0]) - steps
            self._effort.work += SECONDS_PER_ATTEMPT * ATTEMPTS + SECONDS_PER_STEP * looked_at
            vain = vain + ATTEMPTS if self.value == before else 0

    def placements(self) -> Placements:
        """Return the best placement so far."""
        at: list[tuple[int, ...]] = []
        devices: list[tuple[tuple[int, ...], ...]] = []
        for first, chunks in zip(self._site.start.tolist(), self._site.chunks.tolist()):
            mine = slice(first, first + chunks)
            nodes = self._scratch.best_node[mine].tolist()
            chosen = sorted(zip(nodes, self._scratch.best_devices[mine].tolist()))
            placed = [(node, bits) for node, bits in chosen if node != NOWHERE]
            at.append(tuple(node for node, _ in placed))
            devices.append(tuple(_places(bits) for _, bits in placed))
        return Placements(tuple(at), tuple(devices))


def _places(bits: int) -> tuple[int, ...]:
    return tuple(place for place in range(bits.bit_length()) if bits >> place & 1)
