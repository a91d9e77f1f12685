"""Resource-usage-aware backfilling."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from optsched.errors import InputError
from optsched.numbers import parse_number
from optsched.policies.sharing import LARGEST_FACTOR, WEIGHED, Sharing
from optsched.registry import policies
from optsched.simulator.compiled_decisions import CompiledDecisions, CompiledRun
from optsched.simulator.policy import Answers


@policies.register("rua")
@dataclass
class RUA(Sharing):
    """Each job is placed for the least slowdown, and the least penalty is backfilled first.

    A job has the choice of a place and start for each threshold, and takes the one with the least
    slowdown: wait plus penalized requested time, over the requested time. Of the jobs behind the
    queue head that would start now, the one with the least penalty factor starts, the shortest one
    on ties; then all are tried again.

    Parameters
    ----------
    thresholds : str
        Penalty factors, from 1, separated by commas.
    choice : {"thresholds", "response"}
        Whether a job chooses among one place for each threshold, or the solver minimizes the
        slowdown over all places and starts within the largest threshold.

    Raises
    ------
    InputError
        If a threshold is not a number from 1.

    References
    ----------
    F. Guim, I. Rodero, J. Corbalan, "The resource usage aware backfilling", JSSPP 2009, section 5.
    """

    thresholds: str = "1.15,1.20,1.25,1.5"
    choice: Literal["thresholds", "response"] = "thresholds"

    models: ClassVar[Mapping[str, Answers]] = {
        "threshold-allocation": Answers("less-consume-threshold", "less-consume-threshold")
    }

    def __post_init__(self) -> None:
        try:
            factors = [parse_number(text) for text in self.thresholds.split(",")]
        except ValueError:
            factors = []
        if not factors or not all(1 <= factor <= LARGEST_FACTOR for factor in factors):
            raise InputError(
                f"thresholds {self.thresholds!r}; expected factors from 1 to {LARGEST_FACTOR} "
                "such as 1.15,1.5"
            )
        self._factors = sorted({math.floor(1000 * factor + 0.5) for factor in factors})

    def posed(self) -> Mapping[str, Answers]:
        """Return the models posed; the published rules do not minimize slowdown."""
        return WEIGHED if self.choice == "response" else self.models

    def compiled(self, run: CompiledRun) -> CompiledDecisions:
        """Bind the decision kernel; the least response is sought within the largest threshold."""
        if self.choice == "response":
            return self._bound(run, self._factors[-1:], "response", by_slowdown=True)
        return self._bound(run, self._factors, "start", by_slowdown=True)
