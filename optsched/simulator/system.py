"""The state of a simulation that a policy sees."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched.machines.machine import Allocation, Machine
from optsched.models.problem import Problem
from optsched.traces.requests import OWNERS, columns_of
from optsched.traces.trace import UNKNOWN, Trace


class Queue(list[int]):
    """The waiting jobs in order of submission; a job is its row in the trace. Policies read it.

    Rows are in order of submission, so a job is found by bisection.
    """

    __slots__ = ()

    def append(self, job: int) -> None:
        """Add a job; one that was held may come before others."""
        if self and job < self[-1]:
            insort(self, job)
        else:
            super().append(job)

    def remove(self, job: int) -> None:
        """Remove a job that starts, which must wait."""
        position = bisect_left(self, job)
        if position == len(self) or self[position] != job:
            raise ValueError(f"job row {job} does not wait")
        del self[position]


class RunningJobs:
    """The running jobs in order of their estimated ends."""

    __slots__ = ("_estimated_end", "by_estimated_end")

    def __init__(self) -> None:
        # start plus requested time, and job; read-only
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


@dataclass(eq=False, repr=False, slots=True)
class System:
    """The state of a simulation that a policy sees, without the run times of jobs.

    Attributes
    ----------
    machine : Machine
        The machine, with its present allocations.
    job_id : list of int
        Number of each job in the trace file.
    submit : list of float
        Submission time of each job of the trace, in seconds.
    processors : list of int
        Processors of each job.
    demands : sequence of int
        What each job asks, in the machine's own terms (`Machine.demands`): its processors, unless
        the machine has more than these.
    requested_time : list of float
        Requested time of each job, in seconds.
    pose : callable
        ``pose(problem) -> solution``: solves a problem with the solver of the run, or with the
        fallback if the solver fails. The solution is verified.
    annotations, texts, owners : mapping of str to array, shape (jobs,)
        Further columns of the trace, such as the bandwidth or the file of a job, columns of texts,
        such as its features, and columns that number the owner of a job.
    logged_wait : array, shape (jobs,)
        Wait of each job in seconds that the trace states, -1 for none.
    now : float
        Simulated time, in the trace's own seconds.
    queue : Queue
        The waiting jobs in order of submission. A job is its row in the trace, from 0.
    running : RunningJobs
        The running jobs.
    held : mapping of int to Allocation
        The allocation of each running job.
    submitted, ended : list of int
        The jobs that came into the queue and that ended since the last decision, in order. A job
        comes into the queue when it is submitted, unless it is held.
    rejected : list of int
        The jobs that left the queue since the last decision because they can no longer start.
    start : list of float or None
        Start of each job in seconds.
    """

    machine: Machine
    job_id: list[int]
    submit: list[float]
    processors: list[int]
    requested_time: list[float]
    pose: Callable[[Problem[Any]], Any]
    demands: Sequence[int] = ()
    annotations: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    texts: Mapping[str, NDArray[np.object_]] = field(default_factory=dict)
    owners: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    logged_wait: NDArray[Any] = field(default_factory=lambda: np.empty(0))
    now: float = field(default=0.0, init=False)
    queue: Queue = field(default_factory=Queue, init=False)
    running: RunningJobs = field(default_factory=RunningJobs, init=False)
    held: dict[int, Allocation] = field(default_factory=dict, init=False)
    submitted: list[int] = field(default_factory=list, init=False)
    ended: list[int] = field(default_factory=list, init=False)
    rejected: list[int] = field(default_factory=list, init=False)
    start: list[float | None] = field(init=False)

    def __post_init__(self) -> None:
        self.start = [None] * len(self.job_id)

    @classmethod
    def before(cls, trace: Trace, machine: Machine, pose: Callable[[Problem[Any]], Any]) -> System:
        """Return the system before the first event of a trace."""
        return cls(
            machine,
            job_id=trace.job_id.tolist(),
            submit=trace.submit.tolist(),
            processors=trace.processors.tolist(),
            requested_time=trace.requested_time.tolist(),
            pose=pose,
            demands=machine.demands(columns_of(trace)),
            annotations=trace.annotations,
            texts=trace.texts,
            owners={name: getattr(trace, name) for name in OWNERS},
            logged_wait=trace.wait,
        )

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
        if column not in self.owners:
            return None
        number = int(self.owners[column][job])
        return None if number == UNKNOWN else number
