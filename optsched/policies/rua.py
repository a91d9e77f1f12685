"""Resource-usage-aware backfilling."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import ClassVar, Literal

from optsched.errors import InputError
from optsched.models.threshold_allocation import Goal
from optsched.numbers import parse_number
from optsched.policies.parts.sharing import LARGEST_FACTOR, WEIGHED, Found, Sharing
from optsched.registry import policies
from optsched.simulator.actions import Action
from optsched.simulator.policy import Answers
from optsched.simulator.system import System


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

    def place_head(self, job: int, system: System) -> Found:
        """Return place and start of the queue head."""
        offers = []
        *smaller, largest = self._thresholds(job)
        for threshold in smaller:
            found = self._offer(job, system, threshold)
            if found is not None:
                offers.append(found)
                # larger thresholds allow a start now too, without less penalty
                if found.starts_now:
                    return _least_slowdown(offers)
        problem = self._table.problem(job, self._goal, largest)
        return _least_slowdown([*offers, self.pose_head(job, problem, system)])

    def backfill(self, system: System) -> Iterator[Action]:
        """Start jobs one by one, each time that with the least penalty factor."""
        while system.machine.free:
            ready = [
                (found.problem.factor(found.placement), found.problem.walltime, job, found)
                for job, found in self._ready(system)
            ]
            if not ready:
                break
            *_, job, found = min(ready, key=lambda one: one[:3])
            yield self.start(job, found, system)

    def _ready(self, system: System) -> Iterator[tuple[int, Found]]:
        """Yield the jobs behind the queue head whose least slowdown is that of a start now.

        A later start can only have less slowdown if the delay is at most the penalized time of a
        start now.
        """
        largest = [(job, self._thresholds(job)[-1]) for job in system.queue[1:]]
        fit = self._table.placeable_now(largest)
        pairs = [(job, threshold) for job, _ in fit for threshold in self._thresholds(job)]
        placeable = self._table.placeable_now(pairs)
        for job, within in groupby(placeable, key=itemgetter(0)):
            at_once = (self._offer(job, system, one, latest=0) for _, one in within)
            now = next(filter(None, at_once), None)
            if now is None:
                continue
            latest = now.penalized_walltime - now.problem.walltime
            later = self._thresholds(job)
            if self.choice == "thresholds":
                later = later[: later.index(now.problem.threshold)]
            offers = [self._offer(job, system, one, latest) for one in later if latest]
            found = _least_slowdown([*filter(None, offers), now])
            if found.starts_now and not self.breaks_reservation(job, found):
                yield job, found

    def _offer(
        self, job: int, system: System, threshold: int | None, latest: int | None = None
    ) -> Found | None:
        """Return the place and start that a threshold allows."""
        return self.pose(self._table.problem(job, self._goal, threshold, latest), system)

    @property
    def _goal(self) -> Goal:
        return "response" if self.choice == "response" else "start"

    def _thresholds(self, job: int) -> Sequence[int | None]:
        """Return the thresholds to try, in thousandths, at least the factor on an empty machine."""
        least = self._table.least_threshold[job]
        thresholds = sorted({max(factor, least) for factor in self._factors})
        return thresholds[-1:] if self.choice == "response" else thresholds


def _least_slowdown(offers: list[Found]) -> Found:
    """Return the offer with the least slowdown, the first one on ties.

    The job and its wait so far are the same in all offers, so the earliest end is the least.
    """
    return min(offers, key=lambda one: one.placement.start + one.penalized_walltime)
