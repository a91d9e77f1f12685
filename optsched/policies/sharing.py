"""Base of the policies for nodes that share resources: a reservation, raised limits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from optsched.models.threshold_allocation import Goal
from optsched.models.threshold_allocation.problem import GOALS
from optsched.simulator.compiled_decisions import CompiledDecisions, CompiledRun
from optsched.simulator.policy import Answers, Policy
from optsched.simulator.system import System

if TYPE_CHECKING:
    from optsched.policies._sharing_decisions import SharingDecisions

LARGEST_FACTOR = 1000
"""Largest penalty factor of a threshold."""

WEIGHED = {
    "threshold-allocation": Answers(
        "bottleneck-search", "less-consume-threshold", by_objective=True
    )
}
"""Solvers of problems with an objective that the published rules ignore."""


@dataclass
class Sharing(Policy):
    """Jobs start in the order of submission, with backfilling behind a blocked queue head.

    Place and start of each job are the solution of a `threshold-allocation` problem. The blocked
    head has a reservation: no other job may take its processors, or raise its penalty there above
    the threshold. The head starts at its first reserved start, or earlier.

    Parameters
    ----------
    limits : {"raised", "requested"}
        Walltime of a job: its requested time, raised by the penalty factor of its placement, or
        its requested time unchanged.
    """

    limits: Literal["raised", "requested"] = "raised"

    machines: ClassVar[frozenset[str]] = frozenset({"smp"})
    models: ClassVar[Mapping[str, Answers]] = {
        "threshold-allocation": Answers("less-consume", "less-consume-threshold")
    }
    execution: ClassVar[str | None] = "resource-sharing"

    def begin(self, system: System) -> None:
        """Forget any earlier run."""
        self._decisions: SharingDecisions | None = None

    def _bound(
        self,
        run: CompiledRun,
        factors: Sequence[int],
        goal: Goal,
        second_goal: Goal | None = None,
        *,
        by_slowdown: bool = False,
    ) -> CompiledDecisions:
        """Bind the decision kernel to a run, with empty nodes and without a reservation.

        Thresholds are in thousandths, ascending; none for no limit. The second goal is that of the
        place at the start found, if it is sought. `by_slowdown`: jobs choose the threshold with the
        least slowdown, and are ranked by penalty.
        """
        from optsched.policies._sharing import ASK
        from optsched.policies._sharing_decisions import SharingDecisions
        from optsched.policies._sharing_table import Rule

        rule = Rule(
            by_slowdown=by_slowdown,
            goal=GOALS.index(goal),
            second_goal=-1 if second_goal is None else GOALS.index(second_goal),
            answer=ASK,
            most_work=math.inf,
            raises=self.limits == "raised",
        )
        self._decisions = SharingDecisions(rule, factors, run)
        return self._decisions

    def promised(self, system: System) -> Mapping[int, float]:
        """Return the first reserved start of the queue head."""
        return {} if self._decisions is None else self._decisions.promised()
