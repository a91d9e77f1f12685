"""First fit: compaction of running jobs, then first fit of waiting jobs."""

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
    """Compaction of running jobs, then first fit of waiting jobs.

    If running jobs may change their rows, the rows are compacted first (`compacted`), as in the
    compaction step of gang schedulers of this family. Then each waiting job, in the order of the
    queue, goes into the first row in use with enough free columns, else into the first empty row.
    Under ``fcfs``, placement ends at the first job that does not fit; under ``skip``, the next job
    is tried.

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
