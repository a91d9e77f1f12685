"""The schedule of a trace: when and where each job ran."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class State(StrEnum):
    """State of a job, under Batsim's name for it if Batsim has one."""

    FINISHED = "COMPLETED_SUCCESSFULLY"
    KILLED = "COMPLETED_WALLTIME_REACHED"
    REJECTED = "REJECTED"
    WAITING = "WAITING"
    RUNNING = "RUNNING"
    UNSUBMITTED = "UNSUBMITTED"


class Migration(NamedTuple):
    """The stop of a running job and its restart in another place."""

    time: float  # in seconds
    job: int  # row in the trace
    # The processors that the job left and those that it took, as interval sets
    left: str
    taken: str
    parked: bool  # whether the job left its place before the new one was free
    delay: float  # seconds until it makes progress again, unless it is migrated again before


class Schedule(NamedTuple):
    """When and where each job of a trace ran.

    Parameters
    ----------
    start, end : float64 array, shape (jobs,)
        Start and end of each job in the trace's own seconds; nan if the job never started or ended.
    state : object array of str, shape (jobs,)
        Final state of each job, a value of `State`.
    resources : sequence of str
        The processors of each job as interval sets; of a job that migrated, the last ones.
    decisions : int
        Number of decisions of the policy.
    paused : float64 array, shape (jobs,), optional
        Seconds for which each job held processors and did not run, because of other jobs' turns,
        context switches or migrations; by default all 0.
    migrations : sequence of Migration
        The migrations in the order in which they took place.
    reasons : mapping of int to str
        Why jobs were rejected, by row in the trace, where the engine says it.
    """

    def __repr__(self) -> str:
        return f"<Schedule: {len(self.start):,} jobs, {self.decisions:,} decisions>"

    start: NDArray[np.float64]
    end: NDArray[np.float64]
    state: NDArray[np.object_]
    resources: Sequence[str]
    decisions: int
    paused: NDArray[np.float64] | None = None
    migrations: Sequence[Migration] = ()
    reasons: Mapping[int, str] = MappingProxyType({})

    def only(self, jobs: NDArray[np.bool_]) -> Schedule:
        """Return the schedule of some jobs, a mask, in which the others were never submitted."""
        paused = self.paused
        return self._replace(
            start=np.where(jobs, self.start, np.nan),
            end=np.where(jobs, self.end, np.nan),
            state=np.where(jobs, self.state, State.UNSUBMITTED),
            paused=None if paused is None else np.where(jobs, paused, 0.0),
            migrations=tuple(one for one in self.migrations if jobs[one.job]),
        )

    @property
    def run_time(self) -> NDArray[np.float64]:
        """Seconds for which each job ran, shape (jobs,): end minus start, less its pauses."""
        held = self.end - self.start
        return held if self.paused is None else held - self.paused
