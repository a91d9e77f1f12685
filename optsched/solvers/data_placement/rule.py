"""Base class of the published rules for data placement: list scheduling by a score."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from optsched.models.data_placement import DataPlacement
from optsched.models.data_placement.solution import Plan
from optsched.solvers.data_placement.score import Score
from optsched.solvers.heuristic import Heuristic


class Rule(Heuristic):
    """List scheduling in queue order, each job on the node with the least score.

    Work is counted in jobs times nodes.
    """

    models = frozenset({"data-placement"})
    work_unit = "jobs x nodes"
    seconds_per_work = 5e-9
    is_rule = True

    @abstractmethod
    def score(self, problem: DataPlacement) -> Score:
        """Return the score of the rule."""

    def place(self, problem: DataPlacement) -> Plan:
        """Return the plan of the rule."""
        holes = np.zeros_like(problem.available) if problem.reserved is None else problem.reserved
        jobs = (problem.processors, problem.walltimes, problem.files, problem.loads)
        given = (problem.available, holes.copy(), problem.occupied, np.column_stack(jobs))
        memory = (problem.resident, problem.started, problem.kept == "next")
        rule = (*memory, self.score(problem), problem.capacity)
        if problem.backfill == "conservative":
            from optsched.solvers.data_placement._conservative import plan_conservatively

            return Plan(*plan_conservatively(*given, *rule, problem.partial).T)
        from optsched.solvers.data_placement._plan import plan

        backfill = problem.backfill == "holes"
        ends = (problem.partial, problem.stop == "short")
        return Plan(*plan(*given, *rule, backfill, widest_noticed(problem, holes), *ends).T)

    def effort(self, problem: DataPlacement) -> int:
        """Return the number of jobs times the number of nodes."""
        return len(problem.available) * len(problem.processors)


def widest_noticed(problem: DataPlacement, holes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the cores and the node of the widest known hole."""
    if problem.noticed is not None:
        return np.array(problem.noticed)
    cores = np.count_nonzero(holes, axis=1)
    return np.array([cores.max(), cores.argmax()])
