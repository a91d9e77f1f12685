"""First fit: the first place with enough room, nothing else weighed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from optsched.models.problem import Problem
from optsched.registry import solvers
from optsched.solvers.heuristic import Heuristic


@solvers.register("first-fit")
@dataclass(frozen=True)
class FirstFit(Heuristic):
    """Put each job into the first place where it fits.

    In gang packing, compact the rows, and put each waiting job into the first row where it fits,
    see `optsched.solvers.gang_packing.placing.first_fit`. In threshold allocation, start the job at
    the earliest time at which enough processors are free for all of its walltime, on the first
    nodes that have some; what it loses there is not weighed, and if that exceeds the threshold
    there is no answer.

    References
    ----------
    H. Franke, J. Jann, J. E. Moreira, P. Pattnaik, M. A. Jette, "An evaluation of parallel job
    scheduling for ASCI Blue-Pacific", SC 1999.

    Y. Zhang, H. Franke, J. E. Moreira, A. Sivasubramaniam, "Improving parallel job scheduling by
    combining gang scheduling and backfilling techniques", IPDPS 2000.

    F. Guim, I. Rodero, J. Corbalan, "The resource usage aware backfilling", JSSPP 2009, section 4.

    Examples
    --------
    >>> from optsched.models import GangPacking
    >>> problem = GangPacking(4, 2, running=[0b0011], rows_of_running=[0], waiting=[1, 2])
    >>> FirstFit().place(problem).rows_of_waiting
    (0, 1)
    """

    models = frozenset({"gang-packing", "threshold-allocation"})
    is_rule = True
    work_unit = "jobs times rows, or nodes"
    seconds_per_work = 1e-7

    def place(self, problem: Any) -> Any:
        """Return the packing, or the placement if there is one, by first fit."""
        if problem.name == "threshold-allocation":
            from optsched.solvers.threshold_allocation.moving import placed_by_moving

            return placed_by_moving(problem, enough=None)
        from optsched.solvers.gang_packing.placing import first_fit

        return first_fit(problem)

    def prepare(self, problem: Problem[Any] | None = None) -> None:
        """Compile the kernels of threshold allocation, or load them, for such a problem only."""
        if problem is not None and problem.name == "threshold-allocation":
            from optsched.solvers.threshold_allocation.moving import compile_kernels

            compile_kernels()

    def effort(self, problem: Any) -> int:
        """Return jobs times rows, or the number of nodes."""
        if problem.name == "threshold-allocation":
            return int(problem.nodes)
        return (len(problem.running) + len(problem.waiting)) * int(problem.rows)
