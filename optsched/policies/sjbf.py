"""EASY backfilling, shortest candidate first, on nodes that share resources."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from optsched.errors import InputError
from optsched.models.threshold_allocation import Goal, ThresholdAllocation
from optsched.policies.parts.sharing import LARGEST_FACTOR, WEIGHED, Found, Sharing
from optsched.registry import policies
from optsched.simulator.actions import Action
from optsched.simulator.policy import Answers
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
    goal : {"paper", "penalty", "everybody"}
        What a place costs: as in the paper, the penalty of the job without a threshold, and nothing
        within one; the penalty of the job; what it adds for all jobs on its nodes. But for the
        first, the solver has to be one that weighs it.

    Raises
    ------
    InputError
        If the threshold is 0 and not from 1 to 1000.

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
        """Return what answers: with a goal of its own none of the rules, which have theirs."""
        return self.models if self.goal == "paper" else WEIGHED

    def place_head(self, job: int, system: System) -> Found:
        """Return where and when the first job of the queue goes."""
        if self.threshold:
            return self._weighed(job, self.found(job, self._first_start(job), system), system)
        latest = self._table.first_start(job)
        return self.found(job, self._table.problem(job, self._own_goal, latest=latest), system)

    def backfill(self, system: System) -> Iterator[Action]:
        """Start the candidates that find a place now, the shortest first."""
        candidates = sorted(system.queue[1:], key=system.requested_time.__getitem__)
        while candidates and system.machine.free:
            asked = [(job, self._threshold(job)) for job in candidates]
            candidates = [job for job, _ in self._table.have_room_now(asked)]
            for place, job in enumerate(candidates):
                found = self._place_now(job, system)
                if found is not None and not self.breaks_promise(job, *found):
                    yield self.start(job, *found, system)
                    candidates = candidates[place + 1 :]
                    break
            else:
                return

    def _place_now(self, job: int, system: System) -> Found | None:
        """Return where a job may start now."""
        if self.threshold:
            problem = self._first_start(job, latest=0)
        else:
            problem = self._table.problem(job, self._own_goal, latest=0)
        placement = system.pose(problem)
        if placement is None:
            return None
        return self._weighed(job, (problem, placement), system)

    def _weighed(self, job: int, found: Found, system: System) -> Found:
        """Return the place of least cost at the first start within a threshold."""
        if not self.threshold or self.goal == "paper":
            return found
        threshold, start = found[0].threshold, found[1].start
        problem = self._table.problem(job, self._own_goal, threshold, latest=start)
        placement = system.pose(problem)
        return found if placement is None else (problem, placement)

    def _first_start(self, job: int, latest: int | None = None) -> ThresholdAllocation:
        return self._table.problem(job, "start", self._threshold(job), latest)

    @property
    def _own_goal(self) -> Goal:
        return "everybody" if self.goal == "everybody" else "penalty"

    def _threshold(self, job: int) -> int | None:
        if not self.threshold:
            return None
        asked = math.floor(1000 * self.threshold + 0.5)
        return max(asked, self._table.least_threshold[job])
