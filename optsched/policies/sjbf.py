"""EASY backfilling, shortest candidate first, on nodes that share resources."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from optsched.errors import InputError
from optsched.models.threshold_allocation import Goal, Placement, ThresholdAllocation
from optsched.policies.sharing import Sharing
from optsched.registry import policies
from optsched.simulator.actions import Action
from optsched.simulator.system import System


@policies.register("sjbf")
@dataclass
class SJBF(Sharing):
    """Shortest-job-backfilled-first with a resource selection policy, the solver.

    Without a threshold a job goes where it costs least at the first time at which enough processors
    are free (`less-consume`), or on the first of those (`first-fit`). With one it starts at the
    first time at which its penalty factor is no higher (`less-consume-threshold`); a threshold
    below the factor that a job has with the machine to itself is raised to that. Candidates for
    backfilling are tried by requested time, ties by submission.

    Parameters
    ----------
    threshold : float
        Most penalty factor of a job when it starts, from 1; 0 for none.
    goal : {"penalty", "everybody"}
        What a place costs without a threshold: the penalty of the job alone, as in the paper, or
        what it adds for all jobs on its nodes.

    Raises
    ------
    InputError
        If the threshold is a number below 1 other than 0, or there is one with another goal.

    References
    ----------
    F. Guim, I. Rodero, J. Corbalan, "The resource usage aware backfilling", JSSPP 2009, section 4.
    """

    threshold: float = 0.0
    goal: Literal["penalty", "everybody"] = "penalty"

    def __post_init__(self) -> None:
        if self.threshold and not 1 <= self.threshold < math.inf:
            raise InputError(f"threshold {self.threshold}; expected a factor from 1, or 0 for none")
        if self.threshold and self.goal != "penalty":
            raise InputError(f"goal {self.goal!r} with a threshold; expected one of them")

    def place_head(self, job: int, system: System) -> tuple[ThresholdAllocation, Placement]:
        """Return where and when the first job of the queue goes."""
        threshold = self._threshold(job)
        if threshold is None:
            latest = self._table.first_start(system.processors[job], system.now)
            problem = self._table.problem(job, system, self.goal, latest=latest)
        else:
            problem = self._table.problem(job, system, "start", threshold)
        return problem, system.pose(problem)

    def backfill(self, system: System) -> Iterator[Action]:
        """Start the candidates that find a place now, the shortest first."""
        candidates = sorted(system.queue[1:], key=system.requested_time.__getitem__)
        while candidates and system.machine.free:
            asked = [(job, self._threshold(job)) for job in candidates]
            candidates = [job for job, _ in self._table.have_room_now(asked, system.now)]
            for place, job in enumerate(candidates):
                found = self._place_now(job, system)
                if found is not None:
                    yield self.start(job, *found, system)
                    candidates = candidates[place + 1 :]
                    break
            else:
                return

    def _place_now(self, job: int, system: System) -> tuple[ThresholdAllocation, Placement] | None:
        """Return where a job may start now, off the reservation."""
        threshold = self._threshold(job)
        goal: Goal = self.goal if threshold is None else "start"
        problem = self._table.problem(job, system, goal, threshold, latest=0)
        placement = system.pose(problem)
        if placement is None or self.collides(problem, placement):
            return None
        return problem, placement

    def _threshold(self, job: int) -> int | None:
        if not self.threshold:
            return None
        asked = math.floor(1000 * self.threshold + 0.5)
        return max(asked, self._table.least_threshold[job])
