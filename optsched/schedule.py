"""What the simulation of a trace decides: when and where each job ran."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class State(StrEnum):
    """What became of a job; the names are Batsim's where it has one."""

    FINISHED = "COMPLETED_SUCCESSFULLY"
    KILLED = "COMPLETED_WALLTIME_REACHED"
    REJECTED = "REJECTED"
    WAITING = "WAITING"
    RUNNING = "RUNNING"
    UNSUBMITTED = "UNSUBMITTED"


class Migration(NamedTuple):
    """A running job was stopped, and restarted in another place.

    Parameters
    ----------
    time : float
        Seconds.
    job : int
        Row of the job in the trace.
    left, taken : str
        The processors that it left and those that it took, as interval sets.
    parked : bool
        Whether it had to leave its place before it could have the other.
    delay : float
        Seconds until it makes progress again, unless it is migrated again before.
    """

    time: float
    job: int
    left: str
    taken: str
    parked: bool
    delay: float


class Schedule(NamedTuple):
    """When and where each job of a trace ran.

    Parameters
    ----------
    start, end : float64 array, shape (jobs,)
        In the trace's own seconds; nan if never.
    state : array of str, shape (jobs,)
        The value of the job's `State`.
    resources : sequence of str
        The processors each job held, as interval sets; of a job that migrated, those it held last.
    decisions : int
        How often the policy was asked.
    paused : float64 array, shape (jobs,), optional
        Seconds for which each job had its processors and did not run, because it was not its turn,
        to a context switch, or because it was migrated; all 0 if left out.
    migrations : sequence of Migration
        In the order in which they took place.
    """

    def __repr__(self) -> str:
        return f"<Schedule: {len(self.start):,} jobs, {self.decisions:,} decisions>"

    start: NDArray[np.float64]
    end: NDArray[np.float64]
    state: NDArray[np.str_]
    resources: Sequence[str]
    decisions: int
    paused: NDArray[np.float64] | None = None
    migrations: Sequence[Migration] = ()

    @property
    def run_time(self) -> NDArray[np.float64]:
        """Seconds for which each job ran, shape (jobs,): from start to end, less its pauses."""
        held = self.end - self.start
        return held if self.paused is None else held - self.paused
