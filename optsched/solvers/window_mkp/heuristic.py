"""Base class of the heuristics of the window knapsack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from optsched.models.problem import Problem
from optsched.solvers.heuristic import Heuristic

if TYPE_CHECKING:
    from optsched.models.window_mkp import WindowMKP


class WindowHeuristic(Heuristic):
    """A compiled heuristic of the window knapsack, whose work is counted in jobs times slots."""

    models = frozenset({"window-mkp"})
    work_unit = "jobs times slots"

    def effort(self, problem: WindowMKP) -> int:
        """Return the number of jobs times the number of slots."""
        return len(problem.weights) * len(problem.capacities)

    def prepare(self, problem: Problem[Any] | None = None) -> None:
        """Compile the kernel, or load it from the cache."""
        from optsched.models.window_mkp import WindowMKP

        self.place(WindowMKP(weights=[1], capacities=[1]))
