"""The state of a simulation that a policy sees."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched.machines.machine import Allocation, Machine
from optsched.models.problem import Problem
from optsched.simulator.queue import Queue
from optsched.traces.trace import UNKNOWN


class RunningJobs:
    """The running jobs in order of their estimated ends.

    Attributes
    ----------
    by_estimated_end : list of (float, int)
        Estimated end in seconds (start plus requested time) and job; read-only.
    """

    __slots__ = ("_estimated_end", "by_estimated_end")

    def __init__(self) -> None:
        self.by_estimated_end: list[tuple[float, int]] = []
        self._estimated_end: dict[int, float] = {}

    def __len__(self) -> int:
        return len(self._estimated_end)

    def __iter__(self) -> Iterator[int]:
        return iter(self._estimated_end)

    def __contains__(self, job: object) -> bool:
        return job in self._estimated_end

    def estimated_end(self, job: int) -> float:
        """Return the estimated end of `job` in seconds: its latest possible end."""
        return self._estimated_end[job]

    def add(self, job: int, estimated_end: float) -> None:
        """Add a job that starts."""
        self._estimated_end[job] = estimated_end
        insort(self.by_estimated_end, (estimated_end, job))

    def remove(self, job: int) -> None:
        """Remove a job that ends."""
        entry = (self._estimated_end.pop(job), job)
        del self.by_estimated_end[bisect_left(self.by_estimated_end, entry)]

    def put_off(self, job: int, seconds: float) -> None:
        """Postpone the estimated end of a job."""
        estimated_end = self._estimated_end[job] + seconds
        self.remove(job)
        self.add(job, estimated_end)


class System:
    """The state of a simulation that a policy sees, without the run times of jobs.

    Attributes
    ----------
    now : float
        Simulated time, in the trace's own seconds.
    machine : Machine
        The machine, with its present allocations.
    queue : Queue
        The waiting jobs in order of submission. A job is its row in the trace, from 0.
    running : RunningJobs
        The running jobs.
    held : mapping of int to Allocation
        The allocation of each running job.
    start : list of float or None
        Start of each job in seconds.
    submitted, ended : list of int
        The jobs that were submitted and that ended since the last decision, in order.
    job_id : list of int
        Number of each job in the trace file.
    submit : list of float
        Submission time of each job of the trace, in seconds.
    processors : list of int
        Processors of each job.
    requested_time : list of float
        Requested time of each job, in seconds.
    annotations : mapping of str to array, shape (jobs,)
        Further columns of the trace, such as the bandwidth or the file of a job.
    pose : callable
        ``pose(problem) -> solution``: solves a problem with the solver of the run, or with the
        fallback if the solver fails. The solution is verified.
    """

    __slots__ = (
        "_owners",
        "annotations",
        "ended",
        "held",
        "job_id",
        "machine",
        "now",
        "pose",
        "processors",
        "queue",
        "requested_time",
        "running",
        "start",
        "submit",
        "submitted",
    )

    def __init__(
        self,
        machine: Machine,
        job_id: list[int],
        submit: list[float],
        processors: list[int],
        requested_time: list[float],
        pose: Callable[[Problem[Any]], Any],
        annotations: Mapping[str, NDArray[Any]] = MappingProxyType({}),
        owners: Mapping[str, NDArray[np.int64]] = MappingProxyType({}),
    ) -> None:
        self.now = 0.0
        self.machine = machine
        self.queue = Queue()
        self.running = RunningJobs()
        self.held: dict[int, Allocation] = {}
        self.submitted: list[int] = []
        self.ended: list[int] = []
        self.start: list[float | None] = [None] * len(job_id)
        self.job_id = job_id
        self.submit = submit
        self.processors = processors
        self.requested_time = requested_time
        self.pose = pose
        self.annotations = annotations
        self._owners = owners

    def user_of(self, job: int) -> int | None:
        """Return the trace's number of the user of `job`, None if the trace does not state it."""
        return self._owner("user", job)

    def group_of(self, job: int) -> int | None:
        """Return the trace's number of the group of `job`, None if the trace does not state it."""
        return self._owner("group", job)

    def queue_of(self, job: int) -> int | None:
        """Return the number of the queue of `job`, None if the trace does not state it."""
        return self._owner("queue", job)

    def partition_of(self, job: int) -> int | None:
        """Return the number of the partition of `job`, None if the trace does not state it."""
        return self._owner("partition", job)

    def _owner(self, column: str, job: int) -> int | None:
        if column not in self._owners:
            return None
        number = int(self._owners[column][job])
        return None if number == UNKNOWN else number
