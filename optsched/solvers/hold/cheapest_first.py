"""A rule for hold: node by node, the cheapest claims first, or a drain."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.models.hold import Hold, Release
from optsched.models.hold.room import (
    Holding,
    drainable,
    groups,
    holding,
    liftable,
    room,
)
from optsched.registry import solvers
from optsched.solvers.heuristic import Heuristic

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


@solvers.register("cheapest-first")
@dataclass(frozen=True)
class CheapestFirst(Heuristic):
    """Lift the claims on one node after the other, the one of least cost for each chunk first.

    If licences are short, the claims that free some are lifted first, the cheapest ones. Then, on
    each node, claims are taken in order of their cost until there is room for more chunks, with and
    without a drain of the node; the node with the least cost for each of these is chosen, and so on
    until the job fits. Last, each claim and each drain that is not needed is given up, the most
    expensive ones first. If one switch or block must hold the job, this is done for each of them,
    and the cheapest is taken. No claim is moved.

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
        """Return the release of the rule; None if all that may be lifted does not suffice."""
        held = holding(problem)
        names, group_of = groups(problem)
        places = [np.flatnonzero(group_of == group) for group in range(len(names))]
        search = _Search(problem, held)
        answers = [answer for nodes in places if (answer := search.within(nodes)) is not None]
        return min(answers, key=problem.objective, default=None)

    def effort(self, problem: Hold) -> int:
        """Return the number of claims and nodes."""
        return len(problem.costs) + len(problem.free)


class _Option(NamedTuple):
    """What makes room for more chunks on a node, in order of its cost for each of these."""

    cost: float
    node: int
    drains: bool
    claims: list[int]


class _State:
    """The room of nodes while claims are lifted and nodes are drained, or not, one by one."""

    def __init__(self, problem: Hold, held: Holding) -> None:
        self.problem, self.held = problem, held
        self.lifted = np.zeros(len(problem.costs), dtype=bool)
        self.drained = np.zeros(len(problem.free), dtype=bool)
        self.drainable = drainable(problem, held)
        self.liftable = liftable(problem)
        self.free = problem.free.copy()
        self.kept = np.bincount(held.node, minlength=len(self.free))
        self.room = room(problem, held, self.freed(np.arange(len(held.claim))))
        self.most = room(problem, held, self.liftable[held.claim] | self.drainable)
        self._rows_of = _places(held.claim, len(problem.costs))
        self._needs = np.flatnonzero(problem.demand)

    def freed(self, rows: Ints) -> Flags:
        """Return whether rows are free, as their claim is lifted or kept away."""
        held = self.held
        away = self.drainable[rows] & self.drained[held.node[rows]]
        return np.asarray(away | self.lifted[held.claim[rows]])

    def lift(self, claim: int, *, lifted: bool) -> Ints:
        """Lift or keep a claim, and return its nodes."""
        rows = self._rows_of[claim]
        before = self.freed(rows)
        self.lifted[claim] = lifted
        return self._update(rows[self.freed(rows) != before], freed=lifted)

    def drain(self, node: int, rows: Ints, *, drained: bool) -> Ints:
        """Drain a node, or not, with its rows, and return the node."""
        before = self.freed(rows)
        self.drained[node] = drained
        return self._update(rows[self.freed(rows) != before], freed=drained)

    def _update(self, rows: Ints, *, freed: bool) -> Ints:
        sign = 1 if freed else -1
        np.add.at(self.free, self.held.node[rows], sign * self.held.amounts[rows])
        np.add.at(self.kept, self.held.node[rows], -sign)
        nodes = np.unique(self.held.node[rows])
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
        self.drain_costs = [] if problem.drain_costs is None else problem.drain_costs.tolist()
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
            known = heappop(heap)
            option = self._option(known.node, state)
            if option is None or option[:2] > known[:2]:  # other nodes are better by now
                if option is not None:
                    heappush(heap, option)
                continue
            touched = {option.node}
            if option.drains:
                state.drain(option.node, self.rows_on[option.node], drained=True)
            for claim in option.claims:
                touched |= {*state.lift(claim, lifted=True).tolist()} & inside
            for each in touched:
                if (better := self._option(each, state)) is not None:
                    heappush(heap, better)
        self._give_up(state, nodes)
        at = np.repeat(nodes, state.room[nodes])[: problem.chunks]
        return Release(
            tuple(np.flatnonzero(state.lifted).tolist()),
            tuple(at.tolist()),
            tuple(np.flatnonzero(state.drained).tolist()),
        )

    def _give_up(self, state: _State, nodes: Ints) -> None:
        """Keep claims, and do not drain nodes, where the job fits on some nodes without."""
        lifted, drained = np.flatnonzero(state.lifted), np.flatnonzero(state.drained)
        done = [(-self.costs[claim], claim, -1) for claim in lifted.tolist()]
        done += [(-self.drain_costs[node], -1, node) for node in drained.tolist()]

        def put(claim: int, node: int, *, done: bool) -> None:
            if node < 0:
                state.lift(claim, lifted=done)
            else:
                state.drain(node, self.rows_on[node], drained=done)

        for _, claim, node in sorted(done):
            put(claim, node, done=False)
            if state.room[nodes].sum() < self.problem.chunks or not state.has_licences():
                put(claim, node, done=True)

    def _free_licences(self, state: _State) -> bool:
        """Lift the cheapest claims until licences suffice, and return whether they do."""
        for claim in np.argsort(self.problem.costs, kind="stable").tolist():
            short = state.short_licences()
            if not short.any():
                break
            if state.liftable[claim] and self.problem.held_licences[claim, short].any():
                state.lift(claim, lifted=True)
        return state.has_licences()

    def _option(self, node: int, state: _State) -> _Option | None:
        """Return what makes room for more chunks on a node at the least cost for each of them.

        These are the cheapest claims until the room grows, with a drain of the node or without.
        None if it cannot grow.
        """
        if state.room[node] == state.most[node]:
            return None
        rows = self.rows_on[node]
        rows = rows[~state.freed(rows)]
        away = state.drainable[rows]
        found = [self._claims(node, state, rows, drains=False)]
        if away.any():
            found.append(self._claims(node, state, rows, drains=True))
        return min((option for option in found if option is not None), default=None)

    def _claims(self, node: int, state: _State, rows: Ints, *, drains: bool) -> _Option | None:
        """Return the cheapest claims until the room of a node grows, with a drain or without."""
        amounts, claim = self.held.amounts[rows], self.held.claim[rows]
        away = state.drainable[rows] & drains
        lifts = state.liftable[claim] & ~away
        first = state.free[node] + amounts[away].sum(axis=0)
        free = np.vstack([first, first + amounts[lifts].cumsum(axis=0)])
        kept = np.count_nonzero(~away) - np.arange(len(free))
        rooms = state.fitting(np.full(len(free), node), free, kept)
        more = rooms > state.room[node]
        if not more.any():
            return None
        count = int(more.argmax())
        claims = claim[lifts][:count].tolist()
        cost = sum(self.costs[each] for each in claims)
        cost += self.drain_costs[node] if drains else 0
        return _Option(cost / int(rooms[count] - state.room[node]), node, drains, claims)


def _places(numbers: Ints, count: int) -> list[Ints]:
    """Return the places of each of the numbers from 0 to below `count`."""
    order = np.argsort(numbers, kind="stable")
    ends = np.searchsorted(numbers[order], np.arange(count + 1))
    return [order[a:b] for a, b in pairwise(ends)]
