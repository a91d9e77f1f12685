"""The work of a search, as a share of its budget."""

from __future__ import annotations

import math

from optsched.solvers import interruption
from optsched.solvers.progress import Progress
from optsched.solvers.result import Budget, Limit

LEAST = 1e-6
"""Limit of a solver when none is left."""


class StoppedError(Exception):
    """Signal that a limit is reached."""

    def __init__(self, limit: Limit) -> None:
        super().__init__(limit)
        self.limit = limit


class Effort:
    """The work that a search has done, in the unit of its solver, and its limits."""

    def __init__(self, budget: Budget, progress: Progress) -> None:
        self.work = 0.0
        self._budget = budget
        self._progress = progress

    def spent(self) -> float:
        """Return the larger share that is spent of a limit, 0 without limits; 1 after Ctrl-C."""
        if interruption.requested():
            return 1.0
        of_work = self.work / self._budget.work if self._budget.work else 0.0
        seconds = self._budget.seconds
        return max(of_work, self._progress.seconds() / seconds if seconds else 0.0)

    def after(self, share: float) -> float:
        """Return the share of the budget that is spent after a share of what is left."""
        spent = self.spent()
        return spent + share * (1 - spent)

    def check(self) -> None:
        """Raise `StoppedError` if a limit is reached."""
        limit = self.limit()
        if limit is not None:
            raise StoppedError(limit)

    def limit(self) -> Limit | None:
        """Return the limit that is reached, or None."""
        return self._progress.exhausted(self.work)

    def seconds_left(self, until: float = 1.0) -> float:
        """Return the seconds until that share of the time limit, infinite without a limit."""
        if interruption.requested():
            return 0.0
        if self._budget.seconds is None:
            return math.inf
        return max(0.0, until * self._budget.seconds - self._progress.seconds())

    def work_left(self, until: float = 1.0) -> float:
        """Return the work until that share of the work limit, infinite without a limit."""
        if self._budget.work is None:
            return math.inf
        return max(0.0, until * self._budget.work - self.work)

    def budget(self, share: float = 1.0, price: float = 1.0) -> Budget:
        """Return a share of what is left, for a solver whose unit of work has a price."""
        seconds, work = share * self.seconds_left(), share * self.work_left() / price
        return Budget(
            None if math.isinf(seconds) else max(LEAST, seconds),
            None if math.isinf(work) else max(LEAST, work),
        )
