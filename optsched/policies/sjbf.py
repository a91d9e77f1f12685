"""EASY backfilling in SJBF order on nodes that share resources."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from optsched.errors import InputError
from optsched.models.threshold_allocation import Goal
from optsched.policies.sharing import LARGEST_FACTOR, WEIGHED, Sharing
from optsched.registry import policies
from optsched.simulator.compiled_decisions import CompiledDecisions, CompiledRun
from optsched.simulator.policy import Answers


@policies.register("sjbf")
@dataclass
class SJBF(Sharing):
    """Shortest-job-backfilled-first with a resource selection policy, the solver.

    Without a threshold a job starts at the first time at which enough processors are free, on
    those of the least cost (`less-consume`) or on the first ones (`first-fit`). With a threshold it
    starts at the first time at which its penalty factor is within the threshold
    (`less-consume-threshold`); a threshold below the factor of the job on an empty machine is
    raised to that factor. Candidates for backfilling are tried by requested time, ties by
    submission.

    Parameters
    ----------
    threshold : float
        Largest penalty factor of a job at its start, from 1; 0 for no threshold.
    goal : {"paper", "penalty", "everybody"}
        Cost of a place. ``paper``: the penalty of the job without a threshold, nothing with one.
        ``penalty``: the penalty of the job. ``everybody``: the penalty added to all jobs on the
        nodes. All but ``paper`` need a solver that minimizes the cost.

    Raises
    ------
    InputError
        If the threshold is neither 0 nor from 1 to 1000.

    References
    ----------
    F. Guim, I. Rodero, J. Corbalan, "The resource usage aware backfilling", JSSPP 2009, section 4.
    """

    threshold: float = 0.0
    goal: Literal["paper", "penalty", "everybody"] = "paper"

    def __post_init__(self) -> None:
        if self.threshold and not 1 <= self.threshold <= LARGEST_FACTOR:
            expected = f"expected a factor from 1 to {LARGEST_FACTOR}, or 0 for none"
            raise InputError(f"threshold {self.threshold:g}; {expected}")

    def posed(self) -> Mapping[str, Answers]:
        """Return the models posed; the published rules do not minimize other goals."""
        return self.models if self.goal == "paper" else WEIGHED

    def compiled(self, run: CompiledRun) -> CompiledDecisions:
        """Bind the decision kernel; with a threshold, the start comes before the cost."""
        cost: Goal = "everybody" if self.goal == "everybody" else "penalty"
        if not self.threshold:
            return self._bound(run, [], cost)
        factors = [math.floor(1000 * self.threshold + 0.5)]
        return self._bound(run, factors, "start", None if self.goal == "paper" else cost)
