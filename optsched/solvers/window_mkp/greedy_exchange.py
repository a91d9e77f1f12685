"""GREEDY with the exchanges of Martello and Toth (section III.B.2 of Yang et al. 2014)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from optsched.registry import solvers
from optsched.solvers.window_mkp.heuristic import WindowHeuristic

if TYPE_CHECKING:
    from optsched.models.window_mkp import Assignment, WindowMKP


@solvers.register("greedy-exchange")
@dataclass(frozen=True)
class GreedyExchange(WindowHeuristic):
    """GREEDY followed by two kinds of exchanges, each in one pass over all jobs.

    First, two jobs in different slots change places if a waiting job then fits into the slot that
    gains capacity; of the waiting jobs that fit, the one of most profit is placed. Second, each
    job, least efficient first, is replaced if waiting jobs that fit instead, tried in order, have
    more total profit. The rearrangement of all jobs that precedes these exchanges in Martello and
    Toth is not part of the paper's description and is omitted.

    Notes
    -----
    The reference implementation is `optsched.solvers.window_mkp.reference.greedy_exchange`. The
    time is O(n^2) for n jobs, plus O(n) for each job placed by an exchange.

    References
    ----------
    X. Yang, Z. Zhou, W. Tang, X. Zheng, J. Wang, Z. Lan, "Balancing job performance with system
    performance via locality-aware scheduling on torus-connected systems", IEEE Cluster 2014.

    S. Martello, P. Toth, "Heuristic algorithms for the multiple knapsack problem", Computing 27,
    93-112, 1981.

    Examples
    --------
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
