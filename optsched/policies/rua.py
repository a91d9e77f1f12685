"""Resource-usage-aware backfilling."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from optsched.errors import InputError
from optsched.models.threshold_allocation import Goal, ThresholdAllocation
from optsched.numbers import parse_number
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

    def factors(self) -> Sequence[int]:
        """Return the thresholds in thousandths; the solver chooses within the largest one."""
        return self._factors[-1:] if self.choice == "response" else self._factors

    def place_head(self, job: int, system: System) -> Found:
        """Return place and start of the queue head."""
        found = self._least_slowdown(job, system)
        largest = self._table.thresholds(job)[-1]
        return found or self.pose_head(job, self._problem(job, largest), system)

    def backfill(self, system: System) -> Iterator[Action]:
        """Start jobs one by one, each time that with the least penalty factor."""
        while system.machine.free:
            best = None
            for bound in sorted(self._bounds(system)):
                if best is not None and best[0] <= bound:
                    break
                _, walltime, job = bound
                found = self._least_slowdown(job, system)
                if found is None or not found.starts_now or self.breaks_reservation(job, found):
                    continue
                rank = (found.problem.factor(found.placement), walltime, job)
                if best is None or rank < best[0]:
                    best = rank, found
            if best is None:
                break
            (*_, job), found = best
            yield self.start(job, found, system)

    def replay_run(
        self,
        trace: Trace,
        machine: Machine,
        problem_solver: ProblemSolver,
        execution: ExecutionModel | None,
    ) -> Schedule | None:
        """Replay a run."""
        run = (trace, machine, problem_solver, execution)
        return self.replay_sharing(*run, goal=self._goal, by_slowdown=True)

    def _bounds(self, system: System) -> Iterator[tuple[float, int, int]]:
        """Yield lower bounds of the ranks of the jobs behind the queue head that can start now.

        Jobs are ranked by penalty factor, requested time and submission. The factor of a job is
        above the thresholds within which the job cannot start now.
        """
        for job, number in self._table.placeable_now(system.queue[1:]):
            above = self._table.thresholds(job)[number - 1] if number else None
            yield (above or 1000) / 1000, self._table.walltimes[job], job

    def _least_slowdown(self, job: int, system: System) -> Found | None:
        """Return the place and start with the least slowdown.

        The job and its wait so far are the same in all offers, so the earliest end is the least; on
        ties, the offer of the least threshold. Of thresholds with the same first start, larger ones
        do not offer less penalty, so they are tried only if the solver finds no place.
        """
        thresholds = self._table.thresholds(job)
        if self.choice == "response":
            return self._offer(job, system, thresholds[0])
        with_start: dict[int, list[int | None]] = {}
        for threshold, start in zip(thresholds, self._table.first_starts(job)):
            with_start.setdefault(start, []).append(threshold)
        best: Found | None = None
        for start in reversed(with_start):
            if best is not None and start + self._table.walltimes[job] > best.end:
                break
            offers = (self._offer(job, system, one) for one in with_start[start])
            found = next(filter(None, offers), None)
            if found is not None and (best is None or found.end <= best.end):
                best = found
        return best

    def _offer(self, job: int, system: System, threshold: int | None) -> Found | None:
        """Return the place and start that a threshold allows."""
        return self.pose(self._problem(job, threshold), system)

    def _problem(self, job: int, threshold: int | None) -> ThresholdAllocation:
        return self._table.problem(job, self._goal, threshold)

    @property
    def _goal(self) -> Goal:
        return "response" if self.choice == "response" else "start"
