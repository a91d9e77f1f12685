"""A rule for hold: node by node, the cheapest claims first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
    seconds_per_work = 1e-5

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


class _Search:
    """The rule on one problem."""

    def __init__(self, problem: Hold, held: Holding) -> None:
        self.problem, self.held = problem, held
        self.costs = problem.costs.tolist()
        self.most = room(problem, held, np.ones(len(self.costs), dtype=bool)).tolist()
        cheapest = np.lexsort((held.claim, problem.costs[held.claim], held.node))
        ends = np.searchsorted(held.node[cheapest], np.arange(len(problem.free) + 1))
        self.rows_on = [cheapest[a:b] for a, b in pairwise(ends)]

    def within(self, nodes: Ints) -> Release | None:
        """Return a release with all chunks on some nodes; None if there is none."""
        problem = self.problem
        lifted = self._for_licences()
        if lifted is None:
            return None
        rooms = room(problem, self.held, lifted)
        options = {node: self._option(node, rooms[node], lifted) for node in nodes.tolist()}
        while rooms[nodes].sum() < problem.chunks:
            found = [(option, node) for node, option in options.items() if option is not None]
            if not found:
                return None
            (_, claims), _ = min(found, key=lambda each: (each[0][0], each[1]))
            lifted[list(claims)] = True
            touched = {*self.held.node[np.isin(self.held.claim, claims)].tolist()} & options.keys()
            rooms = room(problem, self.held, lifted)
            options |= {node: self._option(node, rooms[node], lifted) for node in touched}
        for claim in sorted(np.flatnonzero(lifted).tolist(), key=lambda c: (-self.costs[c], c)):
            lifted[claim] = False
            fits = room(problem, self.held, lifted)[nodes].sum() >= problem.chunks
            lifted[claim] = not (fits and self._has_licences(lifted))
        rooms = room(problem, self.held, lifted)
        at = np.repeat(nodes, rooms[nodes])[: problem.chunks]
        return Release(tuple(np.flatnonzero(lifted).tolist()), tuple(at.tolist()))

    def _has_licences(self, lifted: Flags) -> bool:
        problem = self.problem
        free = problem.licences + problem.held_licences[lifted].sum(axis=0)
        return bool((free >= problem.licences_of).all())

    def _for_licences(self) -> Flags | None:
        """Return the claims to lift for licences; None if all claims do not free enough."""
        problem = self.problem
        lifted = np.zeros(len(self.costs), dtype=bool)
        for claim in np.argsort(problem.costs, kind="stable").tolist():
            if self._has_licences(lifted):
                break
            free = problem.licences + problem.held_licences[lifted].sum(axis=0)
            lifted[claim] = bool(problem.held_licences[claim, free < problem.licences_of].any())
        return lifted if self._has_licences(lifted) else None

    def _option(self, node: int, present: int, lifted: Flags) -> tuple[float, Sequence[int]] | None:
        """Return the cost for each further chunk on a node, and the claims; None if there is none.

        These are the cheapest claims until the room grows.
        """
        problem, held = self.problem, self.held
        rows = self.rows_on[node]
        if present == self.most[node]:
            return None
        kept = rows[~lifted[held.claim[rows]]]
        free = problem.free[node] + held.amounts[rows][lifted[held.claim[rows]]].sum(axis=0)
        needs = problem.demand > 0
        cost = 0
        claims = []
        for place, row in enumerate(kept):
            claim = int(held.claim[row])
            claims.append(claim)
            cost += self.costs[claim]
            free = free + held.amounts[row]
            if problem.exclusive and place < len(kept) - 1:
                continue
            fits = int((free[needs] // problem.demand[needs]).min(initial=problem.chunks))
            gained = min(fits, self.most[node]) - present
            if gained > 0:
                return cost / gained, claims
        return None
