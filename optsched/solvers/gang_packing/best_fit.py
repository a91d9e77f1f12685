"""Best fit after compaction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from optsched.registry import solvers
from optsched.solvers.gang_packing.placing import FitHeuristic, compacted, fitted

if TYPE_CHECKING:
    from optsched.models.gang_packing import GangPacking, Packing


@solvers.register("best-fit")
@dataclass(frozen=True)
class BestFit(FitHeuristic):
    """Compaction of running jobs, then best fit of waiting jobs.

    As `optsched.solvers.gang_packing.first_fit.FirstFit`, but a waiting job goes into the row in
    use with the fewest sufficient free columns; of equal rows, into that of lowest number.

    Examples
    --------
    >>> from optsched.models import GangPacking
    >>> problem = GangPacking(4, 2, [0b0001, 0b0011], rows_of_running=[0, 1], waiting=[2, 3])
    >>> BestFit().place(problem).rows_of_waiting
    (1, 0)
    """

    def place(self, problem: GangPacking) -> Packing:
        """Return the packing by best fit."""
        rows = compacted(problem)
        return problem.packing(rows, fitted(problem, rows, tightest=True))
