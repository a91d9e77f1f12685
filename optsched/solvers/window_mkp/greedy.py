"""GREEDY: the classic knapsack heuristic, slot by slot (Algorithm 3 of Yang et al. 2014)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from optsched.registry import solvers
from optsched.solvers.window_mkp.heuristic import WindowHeuristic

if TYPE_CHECKING:
    from optsched.models.window_mkp import Assignment, WindowMKP


@solvers.register("greedy")
@dataclass(frozen=True)
class Greedy(WindowHeuristic):
    """Fill the slots one after the other with the jobs that still fit.

    Yang et al. call Algorithm 3 once for each slot and let it run over the jobs ``j = 1, ..., n``,
    but do not say how jobs and slots are numbered. Martello and Toth, whom they follow, number the
    items by decreasing profit per weight and the knapsacks by increasing capacity, and so does this
    solver. Where profit is weight all jobs are equally good; then the larger goes first, and jobs
    of one size go in the order of the window. In that order the worked example of section III.C
    comes out as printed (C | A | B E, profit 15); in the plain order of the window it does not
    (C | A | B D, profit 14).

    Notes
    -----
    Stated in plain Python in `optsched.solvers.window_mkp.statement.greedy`.

    References
    ----------
    X. Yang, Z. Zhou, W. Tang, X. Zheng, J. Wang, Z. Lan, "Balancing job performance with system
    performance via locality-aware scheduling on torus-connected systems", IEEE Cluster 2014.

    S. Martello, P. Toth, "Heuristic algorithms for the multiple knapsack problem", Computing 27,
    93-112, 1981.

    Examples
    --------
    >>> from optsched.models import WindowMKP
    >>> Greedy().place(WindowMKP(weights=[6, 4, 3, 1, 2], capacities=[3, 6, 6]))
    (1, 2, 0, -1, 2)
    """

    seconds_per_work = 2e-9

    def place(self, problem: WindowMKP) -> Assignment:
        """Return the placement by GREEDY."""
        from optsched.solvers.window_mkp._greedy import greedy

        return tuple(greedy(problem.weights, problem.profits, problem.capacities).tolist())
