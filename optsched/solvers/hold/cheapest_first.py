"""A rule for hold: node by node, the cheapest claims first."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from optsched.models.hold import Hold, Release
from optsched.models.hold.room import Holding, groups, holding, room
from optsched.registry import solvers
from optsched.solvers.heuristic import Heuristic

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


@solvers.register("cheapest-first")
@dataclass(frozen=True)
class CheapestFirst(Heuristic):
    """Lift the claims on one node after the other, the one of least cost for each chunk first.

    If licences are short, the claims that free some are lifted first, the cheapest ones. Then, on
    each node, claims are taken in order of their cost until there is room for more chunks; the node
    with the least cost for each of these is chosen, and so on until the job fits. Last, each claim
    that is not needed is kept after all, the most expensive ones first. If one switch or block must
    hold the job, this is done for each of them, and the cheapest is taken.

    Examples
    --------
    >>> problem = Hold(
    ...     resources=["cores"], free=[[4], [1], [0]], chunks=2, demand=[4],
    ...     costs=[50, 30, 40], held=[[[1, 3]], [[2, 2]], [[2, 2]]])
    >>> CheapestFirst().place(problem)
    Release(lifted=(0,), nodes=(0, 1))
    """

    models = frozenset({"hold"})
    work_unit = "claims and nodes"
    seconds_per_work = 5e-5

    def place(self, problem: Hold) -> Release | None:
        """Return the release of the rule; None if all claims together do not suffice."""
        held = holding(problem)
        names, group_of = groups(problem)
        places = [np.flatnonzero(group_of == group) for group in range(len(names))]
        search = _Search(problem, held)
        answers = [answer for nodes in places if (answer := search.within(nodes)) is not None]
        return min(answers, key=problem.objective, default=None)

    def effort(self, problem: Hold) -> int:
        """Return the number of claims and nodes."""
        return len(problem.costs) + len(problem.free)


class _State:
    """The room of nodes while claims are lifted or kept one by one."""

    def __init__(self, problem: Hold, held: Holding) -> None:
        self.problem, self.held = problem, held
        self.lifted = np.zeros(len(problem.costs), dtype=bool)
        self.free = problem.free.copy()
        self.kept = np.bincount(held.node, minlength=len(self.free))
        self.room = room(problem, held, self.lifted)
        self.most = room(problem, held, ~self.lifted)
        order = np.argsort(held.claim, kind="stable")
        ends = np.searchsorted(held.claim[order], np.arange(len(problem.costs) + 1))
        self._rows_of = [order[a:b] for a, b in pairwise(ends)]
        self._needs = np.flatnonzero(problem.demand)

    def set(self, claim: int, *, lifted: bool) -> Ints:
        """Lift or keep a claim, and return its nodes."""
        rows = self._rows_of[claim]
        nodes, sign = self.held.node[rows], 1 if lifted else -1
        self.lifted[claim] = lifted
        self.free[nodes] += sign * self.held.amounts[rows]
        self.kept[nodes] -= sign
        self.room[nodes] = self.fitting(nodes, self.free[nodes], self.kept[nodes])
        return nodes

    def fitting(self, nodes: Ints, free: Ints, kept: Ints) -> Ints:
        """Return how many chunks nodes have room for, with amounts free and claims kept there."""
        problem, needs = self.problem, self._needs
        found = self.most[nodes]
        if len(needs):
            found = np.minimum(found, (free[:, needs] // problem.demand[needs]).min(axis=1))
        return np.where(kept > 0, 0, found) if problem.exclusive else found

    def has_licences(self) -> bool:
        """Whether the licences suffice."""
        return not self.short_licences().any()

    def short_licences(self) -> Flags:
        """Return which licences do not suffice."""
        problem = self.problem
        freed = problem.held_licences[self.lifted].sum(axis=0)
        return np.asarray(problem.licences + freed < problem.licences_of)


class _Search:
    """The rule on one problem."""

    def __init__(self, problem: Hold, held: Holding) -> None:
        self.problem, self.held = problem, held
        self.costs = problem.costs.tolist()
        cheapest = np.lexsort((held.claim, problem.costs[held.claim], held.node))
        ends = np.searchsorted(held.node[cheapest], np.arange(len(problem.free) + 1))
        self.rows_on = [cheapest[a:b] for a, b in pairwise(ends)]

    def within(self, nodes: Ints) -> Release | None:
        """Return a release with all chunks on some nodes; None if there is none."""
        problem, state = self.problem, _State(self.problem, self.held)
        if not self._free_licences(state) or state.most[nodes].sum() < problem.chunks:
            return None
        inside = {*nodes.tolist()}
        heap = [option for node in inside if (option := self._option(node, state)) is not None]
        heapify(heap)
        while state.room[nodes].sum() < problem.chunks:
            cost, node, _ = heappop(heap)
            option = self._option(node, state)
            if option is None or option[:2] > (cost, node):  # other nodes are better by now
                if option is not None:
                    heappush(heap, option)
                continue
            touched = {node}
            for claim in option[2]:
                touched |= {*state.set(claim, lifted=True).tolist()} & inside
            for each in touched:
                if (better := self._option(each, state)) is not None:
                    heappush(heap, better)
        for claim in sorted(
            np.flatnonzero(state.lifted).tolist(), key=lambda c: (-self.costs[c], c)
        ):
            state.set(claim, lifted=False)
            if state.room[nodes].sum() < problem.chunks or not state.has_licences():
                state.set(claim, lifted=True)
        at = np.repeat(nodes, state.room[nodes])[: problem.chunks]
        return Release(tuple(np.flatnonzero(state.lifted).tolist()), tuple(at.tolist()))

    def _free_licences(self, state: _State) -> bool:
        """Lift the cheapest claims until licences suffice, and return whether they do."""
        for claim in np.argsort(self.problem.costs, kind="stable").tolist():
            short = state.short_licences()
            if not short.any():
                break
            if self.problem.held_licences[claim, short].any():
                state.set(claim, lifted=True)
        return state.has_licences()

    def _option(self, node: int, state: _State) -> tuple[float, int, list[int]] | None:
        """Return the cost for each further chunk on a node, the node, and the claims to lift.

        These are the cheapest claims until the room grows. None if it cannot.
        """
        if state.room[node] == state.most[node]:
            return None
        rows = self.rows_on[node]
        rows = rows[~state.lifted[self.held.claim[rows]]]
        free = state.free[node] + self.held.amounts[rows].cumsum(axis=0)
        kept = len(rows) - 1 - np.arange(len(rows))
        rooms = state.fitting(np.full(len(rows), node), free, kept)
        first = int((rooms > state.room[node]).argmax())
        claims = self.held.claim[rows[: first + 1]].tolist()
        gained = int(rooms[first] - state.room[node])
        return sum(self.costs[claim] for claim in claims) / gained, node, claims
