"""Plans moved to lighter nodes, and to nodes in use, at equal objective.

The weight of a node says how dear it is to its site; a node with much memory has a high one. Slurm
takes nodes of low weight first. Among those of equal weight, nodes that are in use already leave
others idle for jobs that need whole ones. Both are no part of the problem: solvers choose among
nodes alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from optsched.models.node_placement.problem import NodePlacement, Placements
from optsched.sites.parts import Ints


def on_lighter_nodes(problem: NodePlacement, placements: Placements, weights: Ints) -> Placements:
    """Return placements of the same jobs, with the chunks on nodes of as low a weight as is found.

    Among nodes of equal weight, as few idle ones as are found are taken. Jobs are moved one at a
    time, while one of them finds better nodes, to no more leaf switches. Jobs with limits on groups
    of nodes, and those with devices, stay where they are. The objective is at least that of the
    placements given.
    """
    state = _State(problem, placements, weights)
    jobs = [job for job, at in enumerate(placements.nodes) if at]
    while sum(map(state.move, jobs)):
        pass
    found = Placements(tuple(state.at), placements.devices)
    if problem.violations(found) or problem.objective(found) < problem.objective(placements):
        return placements
    return found


class _State:
    """Nodes of the jobs, and what they leave free."""

    def __init__(self, problem: NodePlacement, placements: Placements, weights: Ints) -> None:
        self.problem, self.weights = problem, weights
        self.at = list(placements.nodes)
        self.free = problem.free.copy()
        self.jobs = np.zeros(len(weights), dtype=np.int64)  # on each node
        self.jobs[list(problem.busy)] = 1
        self.is_closed = np.zeros(len(weights), dtype=bool)  # as its job shares it with none
        self.exclusive = {*problem.exclusive}
        self.nodes = np.arange(len(weights))
        groups = {"switch": problem.switches, "block": problem.blocks}
        self.group = {name: _numbered(names) for name, names in groups.items() if names is not None}
        self.pools = {
            name: [np.flatnonzero(of == one) for one in range(of.max(initial=-1) + 1)]
            for name, of in self.group.items()
        }
        self.kinds = np.array(problem.kinds if problem.kinds is not None else [""] * len(weights))
        for job, at in enumerate(self.at):
            self._take(job, at, 1)

    def move(self, job: int) -> bool:
        """Move a job to lighter nodes if there are any; return whether it was moved."""
        problem, at = self.problem, self.at[job]
        if problem.share[job] or (problem.most_groups[job] | problem.segments[job]).any():
            return False
        self._take(job, at, -1)
        cost, room = self._cost(at), self._room(job)
        best = at
        if cost > (len(at) * self.weights.min(), 0):
            found = [self._filled(job, nodes, room) for nodes in self._pools(job)]
            best = min((at, *map(tuple, filter(None, found))), key=self._cost)
        moves = self._cost(best) < cost
        self.at[job] = tuple(sorted(best)) if moves else at
        self._take(job, self.at[job], 1)
        return moves

    def _cost(self, at: Sequence[int]) -> tuple[int, int]:
        """Return the weight of the nodes of chunks, and how many of the nodes are idle."""
        return int(self.weights[list(at)].sum()), sum(not self.jobs[node] for node in {*at})

    def _take(self, job: int, at: Sequence[int], sign: int) -> None:
        for node in at:
            self.free[node] -= sign * self.problem.demand[job]
        there = [*{*at}]
        self.jobs[there] += sign
        if job in self.exclusive:
            self.is_closed[there] = sign > 0

    def _room(self, job: int) -> Ints:
        """Return the most chunks of a job on each node, which the job has left."""
        problem = self.problem
        most = int(problem.most_per_node[job]) or int(problem.chunks[job])
        needs = problem.demand[job]
        some = needs > 0
        room = np.full(len(self.weights), most)
        if some.any():
            room = np.minimum(most, (self.free[:, some] // needs[some]).min(axis=1))
        closed = self.jobs > 0 if job in self.exclusive else self.is_closed
        allowed = problem.allowed[job]
        if allowed is not None:
            closed = closed | ~np.isin(self.kinds, allowed)
        return np.where(closed, 0, room)

    def _pools(self, job: int) -> Iterator[Ints]:
        """Yield sets of nodes in which a job spans no more groups than now."""
        name = "block" if self.problem.span[job] == "block" else "switch"
        if name not in self.group:
            yield self.nodes
            return
        at, group = list(self.at[job]), self.group[name]
        own = np.unique(group[at])
        yield np.flatnonzero(np.isin(group, own))
        leaf = self.group.get("switch", group)
        if len(own) == 1 and len(np.unique(leaf[at])) == 1:
            yield from self.pools[name]

    def _filled(self, job: int, nodes: Ints, room: Ints) -> list[int]:
        """Return nodes that hold the chunks of a job, the best first; none if there is no room."""
        left = int(self.problem.chunks[job])
        found: list[int] = []
        nodes = nodes[np.lexsort((self.jobs[nodes] == 0, self.weights[nodes]))]
        for node in nodes[room[nodes] > 0].tolist():
            found += [node] * min(left, int(room[node]))
            left = int(self.problem.chunks[job]) - len(found)
            if not left:
                return found
        return []


def _numbered(groups: Sequence[str]) -> Ints:
    """Return the number of the group of each node, in the order of their names."""
    numbers: Ints = np.unique(np.array(groups), return_inverse=True)[1].ravel()
    return numbers
