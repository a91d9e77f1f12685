"""GREEDY of Yang et al. (2014), alone (Algorithm 3) and with exchanges (section III.B.2)."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

from optsched.models.problem import Problem
from optsched.models.window_mkp import Assignment, WindowMKP
from optsched.registry import solvers
from optsched.solvers.heuristic import Heuristic


class WindowHeuristic(Heuristic):
    """A compiled heuristic of the window knapsack, whose work is counted in jobs times slots."""

    models = frozenset({"window-mkp"})
    work_unit = "jobs times slots"

    @abstractmethod
    def place(self, problem: WindowMKP) -> Assignment:
        """Return a feasible assignment."""

    def effort(self, problem: WindowMKP) -> int:
        """Return the number of jobs times the number of slots."""
        return len(problem.weights) * len(problem.capacities)

    def prepare(self, problem: Problem[Any] | None = None) -> None:
        """Compile the kernel, or load it from the cache."""
        self.place(WindowMKP(weights=[1], capacities=[1]))


@solvers.register("greedy")
@dataclass(frozen=True)
class Greedy(WindowHeuristic):
    """Greedy filling of one slot after another with the jobs that fit.

    Yang et al. call Algorithm 3 once for each slot and let it run over the jobs ``j = 1, ..., n``,
    but do not define the numbering of jobs and slots. This solver follows Martello and Toth, on
    whom they build: items are numbered by decreasing profit per weight, knapsacks by increasing
    capacity. If profit is weight, all jobs are equally efficient, and larger ones come first, then
    earlier ones. In that order the worked example of section III.C comes out as printed (C | A | B
    E, profit 15); in the order of the window it does not (C | A | B D, profit 14).

    The reference implementation is in ``tests/solvers/window_mkp/reference.py``.

    X. Yang, Z. Zhou, W. Tang, X. Zheng, J. Wang, Z. Lan, "Balancing job performance with system
    performance via locality-aware scheduling on torus-connected systems", IEEE Cluster 2014.

    S. Martello, P. Toth, "Heuristic algorithms for the multiple knapsack problem", Computing 27,
    93-112, 1981.

    >>> from optsched.models import WindowMKP
    >>> Greedy().place(WindowMKP(weights=[6, 4, 3, 1, 2], capacities=[3, 6, 6]))
    (1, 2, 0, -1, 2)
    """

    seconds_per_work = 2e-9

    def place(self, problem: WindowMKP) -> Assignment:
        """Return the placement by GREEDY."""
        from optsched.solvers.window_mkp._greedy import greedy

        return tuple(greedy(problem.weights, problem.profits, problem.capacities).tolist())


@solvers.register("greedy-exchange")
@dataclass(frozen=True)
class GreedyExchange(WindowHeuristic):
    """GREEDY followed by two kinds of exchanges, each in one pass over all jobs.

    First, two jobs in different slots change places if a waiting job then fits into the slot that
    gains capacity; of the waiting jobs that fit, the one of most profit is placed. Second, each
    job, least efficient first, is replaced if waiting jobs that fit instead, tried in order, have
    more total profit. The rearrangement of all jobs that precedes these exchanges in Martello and
    Toth is not part of the paper's description and is omitted.

    The time is O(n^2) for n jobs, plus O(n) for each job placed by an exchange. For the references
    and the reference implementation, see `Greedy`.

    >>> from optsched.models import WindowMKP
    >>> problem = WindowMKP(weights=[5, 4, 3, 3], capacities=[7, 8])
    >>> problem.objective(GreedyExchange().place(problem))
    15
    """

    seconds_per_work = 1e-8

    def place(self, problem: WindowMKP) -> Assignment:
        """Return the placement by GREEDY and the exchanges."""
        from optsched.solvers.window_mkp._greedy import greedy_exchange

        placement = greedy_exchange(problem.weights, problem.profits, problem.capacities)
        return tuple(placement.tolist())
