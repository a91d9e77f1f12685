"""EASY backfilling in SJBF order on nodes that share resources."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from optsched.errors import InputError
from optsched.models.threshold_allocation import Goal, ThresholdAllocation
from optsched.policies.parts.sharing import LARGEST_FACTOR, WEIGHED, Found, Sharing
from optsched.registry import policies
from optsched.simulator.actions import Action
from optsched.simulator.policy import Answers
from optsched.simulator.system import System

if TYPE_CHECKING:
    from optsched.machines.machine import Machine
    from optsched.schedule import Schedule
    from optsched.simulator.execution import ExecutionModel
    from optsched.simulator.problem_solver import ProblemSolver
    from optsched.traces.trace import Trace


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

    def factors(self) -> Sequence[int]:
        """Return the threshold in thousandths, if any."""
        return [math.floor(1000 * self.threshold + 0.5)] if self.threshold else []

    def place_head(self, job: int, system: System) -> Found:
        """Return place and start of the queue head."""
        latest = None if self.threshold else self._table.first_room(job)
        found = self.pose_head(job, self._problem(job, latest), system)
        return self._weighed(job, found, system)

    def backfill(self, system: System) -> Iterator[Action]:
        """Start the candidates that have a place now, the shortest first."""
        candidates = sorted(system.queue[1:], key=system.requested_time.__getitem__)
        while candidates and system.machine.free:
            candidates = [job for job, _ in self._table.placeable_now(candidates)]
            for place, job in enumerate(candidates):
                found = self.pose(self._problem(job, latest=0), system)
                if found is None:
                    continue
                found = self._weighed(job, found, system)
                if not self.breaks_reservation(job, found):
                    yield self.start(job, found, system)
                    candidates = candidates[place + 1 :]
                    break
            else:
                return

    def replay_run(
        self,
        trace: Trace,
        machine: Machine,
        problem_solver: ProblemSolver,
        execution: ExecutionModel | None,
    ) -> Schedule | None:
        """Replay a run."""
        run = (trace, machine, problem_solver, execution)
        if not self.threshold:
            return self.replay_sharing(*run, goal=self._own_goal)
        second = None if self.goal == "paper" else self._own_goal
        return self.replay_sharing(*run, goal="start", second_goal=second)

    def _weighed(self, job: int, found: Found, system: System) -> Found:
        """Return the place of least cost at the first start within a threshold."""
        if not self.threshold or self.goal == "paper":
            return found
        threshold, start = found.problem.threshold, found.placement.start
        problem = self._table.problem(job, self._own_goal, threshold, latest=start)
        return self.pose(problem, system) or found

    def _problem(self, job: int, latest: int | None) -> ThresholdAllocation:
        """Return the problem of the first start within the threshold, or of the least cost."""
        goal = "start" if self.threshold else self._own_goal
        (threshold,) = self._table.thresholds(job)
        return self._table.problem(job, goal, threshold, latest)

    @property
    def _own_goal(self) -> Goal:
        return "everybody" if self.goal == "everybody" else "penalty"
