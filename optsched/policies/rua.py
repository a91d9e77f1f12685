"""Resource-usage-aware backfilling."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import ClassVar, Literal

from optsched.errors import InputError
from optsched.models.threshold_allocation import Goal, Placement, ThresholdAllocation
from optsched.numbers import parse_number
from optsched.policies.parts.sharing import (
    LARGEST_FACTOR,
    WEIGHED,
    Found,
    Sharing,
    penalised_walltime,
)
from optsched.registry import policies
from optsched.simulator.actions import Action
from optsched.simulator.policy import Answers
from optsched.simulator.system import System


@policies.register("rua")
@dataclass
class RUA(Sharing):
    """Each job where its slowdown is least, and jobs that suffer least backfilled first.

    A job is offered the place and start that each threshold allows, and takes the one with the
    least slowdown: waiting time and penalised requested time over the requested time. Of the jobs
    behind the first of the queue that would start now, the one with the least penalty factor
    starts, of equal ones the shortest; then all are looked at again.

    Parameters
    ----------
    thresholds : str
        Penalty factors, from 1, with commas between them.
    choice : {"thresholds", "response"}
        Whether a job is offered one place for each threshold, or the solver is asked for the place
        and start with the least slowdown of all within the largest threshold.

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
        """Return what answers: the least slowdown is found by none of the rules."""
        return WEIGHED if self.choice == "response" else self.models

    def place_head(self, job: int, system: System) -> Found:
        """Return where and when the first job of the queue goes."""
        offers = []
        *smaller, largest = self._thresholds(job)
        for threshold in smaller:
            found = self._offer(job, system, threshold)
            if found is not None:
                offers.append(found)
                # larger ones let it start now too, with no less penalty
                if found[1].start == 0:
                    return _least_slowdown(offers)
        problem = self._table.problem(job, self._goal, largest)
        return _least_slowdown([*offers, self.found(job, problem, system)])

    def backfill(self, system: System) -> Iterator[Action]:
        """Start jobs one by one, each time the one with the least penalty factor."""
        while system.machine.free:
            ready = [
                (problem.factor(placement), problem.walltime, job, problem, placement)
                for job, problem, placement in self._ready(system)
            ]
            if not ready:
                break
            *_, job, problem, placement = min(ready, key=lambda one: one[:3])
            yield self.start(job, problem, placement, system)

    def _ready(self, system: System) -> Iterator[tuple[int, ThresholdAllocation, Placement]]:
        """Yield the jobs behind the first of the queue whose place with the least slowdown is now.

        A later start can only have less slowdown if it is no later than what the penalty of a start
        now costs.
        """
        largest = [(job, self._thresholds(job)[-1]) for job in system.queue[1:]]
        fit = self._table.have_room_now(largest)
        asked = [(job, threshold) for job, _ in fit for threshold in self._thresholds(job)]
        there_is_room = self._table.have_room_now(asked)
        for job, within in groupby(there_is_room, key=itemgetter(0)):
            at_once = (self._offer(job, system, one, latest=0) for _, one in within)
            now = next(filter(None, at_once), None)
            if now is None:
                continue
            latest = penalised_walltime(*now) - now[0].walltime
            later = self._thresholds(job)
            if self.choice == "thresholds":
                later = later[: later.index(now[0].threshold)]
            offers = [self._offer(job, system, one, latest) for one in later if latest]
            found = _least_slowdown([*filter(None, offers), now])
            if found[1].start == 0 and not self.breaks_promise(job, *found):
                yield job, *found

    def _offer(
        self, job: int, system: System, threshold: int | None, latest: int | None = None
    ) -> Found | None:
        """Return the place and start that a threshold allows."""
        problem = self._table.problem(job, self._goal, threshold, latest)
        placement = system.pose(problem)
        return None if placement is None else (problem, placement)

    @property
    def _goal(self) -> Goal:
        return "response" if self.choice == "response" else "start"

    def _thresholds(self, job: int) -> Sequence[int | None]:
        """Return those to ask for, in thousandths; none below the factor on an empty machine."""
        least = self._table.least_threshold[job]
        thresholds = sorted({max(factor, least) for factor in self._factors})
        return thresholds[-1:] if self.choice == "response" else thresholds


def _least_slowdown(offers: list[Found]) -> Found:
    """Return the offer with the least slowdown, of equal ones the first.

    The job and what it has waited are the same in all of them, so it is the one with the first end.
    """
    return min(offers, key=lambda one: one[1].start + penalised_walltime(*one))
