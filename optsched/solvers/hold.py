"""A rule for hold (`optsched.models.hold`): node by node, the cheapest claims first."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from optsched.arrays import Flags, Ints
from optsched.models.hold import Hold, Release
from optsched.models.hold.program import Holding, drainable, groups, holding, liftable, room
from optsched.registry import solvers
from optsched.solvers.solver import Heuristic


@solvers.register("cheapest-first")
@dataclass(frozen=True)
class CheapestFirst(Heuristic):
    """Lift the claims on one node after the other, the one of least cost for each chunk first.

    If licences are short, the claims that free some are lifted first, the cheapest ones. Then, on
    each node, claims are taken in order of their cost until there is room for more chunks; the node
    with the least cost for each of these is chosen, and so on until the job fits. Last, each claim
    that is not needed is kept after all, the most expensive ones first. If one switch or block must
    hold the job, this is done for each of them, and the cheapest is taken.

    If nodes may be drained, this is done a second time, in which only drained nodes have room, and
    the cost of a node includes its drain. No claim is moved.

    >>> problem = Hold(
    ...     resources=["cores"], free=[[4], [1], [0]], chunks=2, demand=[4],
    ...     costs=[50, 30, 40], held=[[[1, 3]], [[2, 2]], [[2, 2]]])
    >>> CheapestFirst().place(problem)
    Release(lifted=(0,), nodes=(0, 1), drained=(), moved=())
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
        answers = [
            answer
            for drains in (False, True)[: 1 + (problem.drain_costs is not None)]
            for nodes in places
            if (answer := search.within(nodes, drains=drains)) is not None
        ]
        return min(answers, key=problem.objective, default=None)

    def effort(self, problem: Hold) -> int:
        """Return the number of claims and nodes."""
        return len(problem.costs) + len(problem.free)


class _Option(NamedTuple):
    """What makes room for more chunks on a node, in order of its cost for each of these."""

    cost: float
    node: int
    claims: list[int]


class _State:
    """The room of nodes, if `drains` of drained ones, while claims are lifted one by one."""

    def __init__(self, problem: Hold, held: Holding, *, drains: bool) -> None:
        self.problem, self.held = problem, held
        self.lifted = np.zeros(len(problem.costs), dtype=bool)
        self.ready = np.full(len(problem.free), not drains)
        self.liftable = liftable(problem)
        # pending claims are away from all nodes on which there is room
        self.away = drainable(problem, held) & drains
        self.free = problem.free.copy()
        np.add.at(self.free, held.node[self.away], held.amounts[self.away])
        self.kept = np.bincount(held.node[~self.away], minlength=len(self.free))
        self.most = room(problem, held, self.liftable[held.claim] | self.away)
        self.fits = room(problem, held, self.away)
        claims = np.where(self.away, -1, held.claim)
        self._rows_of = _parts(np.argsort(claims, kind="stable"), claims, len(problem.costs))
        self._needs = np.flatnonzero(problem.demand)

    @property
    def room(self) -> Ints:
        """How many chunks each node has room for, shape (nodes,)."""
        return np.where(self.ready, self.fits, 0)

    def lift(self, claim: int, *, lifted: bool) -> Ints:
        """Lift or keep a claim, and return its nodes."""
        rows = self._rows_of[claim]
        nodes, sign = self.held.node[rows], 1 if lifted else -1
        self.lifted[claim] = lifted
        self.free[nodes] += sign * self.held.amounts[rows]
        self.kept[nodes] -= sign
        self.fits[nodes] = self.fitting(nodes, self.free[nodes], self.kept[nodes])
        return nodes

    def fitting(self, nodes: Ints, free: Ints, kept: Ints) -> Ints:
        """Return how many chunks nodes have room for, with amounts free and claims kept there."""
        problem, needs = self.problem, self._needs
        found = self.most[nodes]
        if len(needs):
            found = np.minimum(found, (free[:, needs] // problem.demand[needs]).min(axis=1))
        return np.where(kept > 0, 0, found) if problem.exclusive else found

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
        self.rows_on = _parts(cheapest, held.node, len(problem.free))

    def within(self, nodes: Ints, *, drains: bool) -> Release | None:
        """Return a release with all chunks on some nodes, all drained or none; None without one."""
        problem, state = self.problem, _State(self.problem, self.held, drains=drains)
        for claim in np.argsort(problem.costs, kind="stable").tolist():
            short = state.short_licences()
            if not short.any():
                break
            if state.liftable[claim] and problem.held_licences[claim, short].any():
                state.lift(claim, lifted=True)
        if state.short_licences().any() or state.most[nodes].sum() < problem.chunks:
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
            state.ready[option.node] = True
            touched = {option.node}
            for claim in option.claims:
                touched |= {*state.lift(claim, lifted=True).tolist()} & inside
            for each in touched:
                if (better := self._option(each, state)) is not None:
                    heappush(heap, better)
        self._give_up(state, nodes, drains=drains)
        at = np.repeat(nodes, state.room[nodes])[: problem.chunks]
        drained = np.flatnonzero(state.ready) if drains else nodes[:0]
        lifted = np.flatnonzero(state.lifted)
        return Release(tuple(lifted.tolist()), tuple(at.tolist()), tuple(drained.tolist()))

    def _give_up(self, state: _State, nodes: Ints, *, drains: bool) -> None:
        """Keep claims, and do not drain nodes, where the job fits on some nodes without."""
        done = [(-self.costs[claim], claim, -1) for claim in np.flatnonzero(state.lifted).tolist()]
        if drains:
            ready = np.flatnonzero(state.ready).tolist()
            done += [(-self.drain_costs[node], -1, node) for node in ready]

        def put(claim: int, node: int, *, done: bool) -> None:
            if node < 0:
                state.lift(claim, lifted=done)
            else:
                state.ready[node] = done

        for _, claim, node in sorted(done):
            put(claim, node, done=False)
            if state.room[nodes].sum() < self.problem.chunks or state.short_licences().any():
                put(claim, node, done=True)

    def _option(self, node: int, state: _State) -> _Option | None:
        """Return the way to more room on a node, None without: a drain, and the cheapest claims."""
        has = int(state.fits[node]) if state.ready[node] else 0
        if has == state.most[node]:
            return None
        rows = self.rows_on[node]
        claim = self.held.claim[rows]
        rows = rows[state.liftable[claim] & ~state.lifted[claim] & ~state.away[rows]]
        claim = self.held.claim[rows]
        steps = np.vstack([state.free[node], self.held.amounts[rows]]).cumsum(axis=0)
        kept = state.kept[node] - np.arange(len(steps))
        rooms = state.fitting(np.full(len(steps), node), steps, kept)
        count = int((rooms > has).argmax())
        claims = claim[:count].tolist()
        cost = sum(self.costs[each] for each in claims)
        cost += 0 if state.ready[node] else self.drain_costs[node]
        return _Option(cost / int(rooms[count] - has), node, claims)


def _parts(order: Ints, numbers: Ints, count: int) -> list[Ints]:
    """Return the places, in order, of each of the numbers from 0 to below `count`."""
    ends = np.searchsorted(numbers[order], np.arange(count + 1))
    return [order[a:b] for a, b in pairwise(ends)]
