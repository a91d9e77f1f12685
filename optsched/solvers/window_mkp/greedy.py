"""GREEDY, a knapsack heuristic slot by slot (Algorithm 3 of Yang et al. 2014)."""

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
    """Greedy filling of one slot after another with the jobs that fit.

    Yang et al. call Algorithm 3 once for each slot and let it run over the jobs ``j = 1, ..., n``,
    but do not define the numbering of jobs and slots. This solver follows Martello and Toth, on
    whom they build: items are numbered by decreasing profit per weight, knapsacks by increasing
    capacity. If profit is weight, all jobs are equally efficient, and larger ones come first, then
    earlier ones. In that order the worked example of section III.C comes out as printed (C | A | B
    E, profit 15); in the order of the window it does not (C | A | B D, profit 14).

    Notes
    -----
    The reference implementation is `optsched.solvers.window_mkp.reference.greedy`.

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
