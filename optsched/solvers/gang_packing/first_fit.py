"""First fit: rows compacted, waiting jobs into the first row with room."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from optsched.registry import solvers
from optsched.solvers.gang_packing.placing import FitHeuristic, compacted, fitted

if TYPE_CHECKING:
    from optsched.models.gang_packing import GangPacking, Packing


@solvers.register("first-fit")
@dataclass(frozen=True)
class FirstFit(FitHeuristic):
    """Compact the rows, and put each waiting job into the first row where it fits.

    If running jobs may change their rows, jobs of thin rows move to full ones first (`compacted`),
    as in the compaction step of gang schedulers of this family. Then the waiting jobs, in the order
    of the queue, go into the row in use with the lowest number that has enough free columns, else
    into the empty row with the lowest number. Under ``fcfs`` the first that fits nowhere ends it;
    under ``skip`` the next is tried.

    References
    ----------
    H. Franke, J. Jann, J. E. Moreira, P. Pattnaik, M. A. Jette, "An evaluation of parallel job
    scheduling for ASCI Blue-Pacific", SC 1999.

    Y. Zhang, H. Franke, J. E. Moreira, A. Sivasubramaniam, "Improving parallel job scheduling by
    combining gang scheduling and backfilling techniques", IPDPS 2000.

    Examples
    --------
    >>> from optsched.models import GangPacking
    >>> problem = GangPacking(4, 2, running=[0b0011], rows_of_running=[0], waiting=[1, 2])
    >>> FirstFit().place(problem).rows_of_waiting
    (0, 1)
    """

    is_rule = True

    def place(self, problem: GangPacking) -> Packing:
        """Return the packing by first fit."""
        rows = compacted(problem)
        return problem.packing(rows, fitted(problem, rows, tightest=False))
