"""The state of a simulation: what a policy sees, which jobs are held, and the journal of events."""

from __future__ import annotations

import hashlib
import math
import re
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.errors import InputError
from optsched.machines.machine import Allocation, Machine
from optsched.models.problem import Problem
from optsched.schedule import State
from optsched.traces.requests import OWNERS, columns_of
from optsched.traces.trace import UNKNOWN, Trace

if TYPE_CHECKING:
    import pandas as pd


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


NEVER = math.inf

COLUMNS = frozenset({"begin", "eligible", "dependency"})
"""Annotations and texts for which jobs are held."""

UNSUCCESSFUL = (0, 5)
"""Values of the status of a job in the log: failed, and cancelled."""

ENDED = (State.FINISHED, State.KILLED, State.REJECTED)

_KINDS = {kind: kind for kind in ("after", "afterany", "afterok", "afternotok")}
_KINDS |= {"aftercorr": "afterok", "afterburstbuffer": "afterany"}
_JOB = re.compile(r"([0-9]{1,18})(?:\+([0-9]{1,9}))?")


class _Condition(NamedTuple):
    """What must have become of a job before another is in the queue."""

    kind: str
    row: int
    delay: int = 0


class Holds:
    """The jobs of a trace that are not in the queue from their submission on.

    They wait for `begin` and for the jobs in `dependency`, in Slurm's form: ``afterok:130:131``,
    ``after:130+5`` (minutes), ``singleton``, with ``,`` for all and ``?`` for any of several. A job
    that the trace states neither for waits until `eligible`. Conditions on jobs that are not in the
    trace count as fulfilled.
    """

    def __init__(self, trace: Trace, state: Sequence[State], start: Sequence[float | None]) -> None:
        self._state, self._start = state, start  # of each job, which change
        self._failed = [status in UNSUCCESSFUL for status in trace.status.tolist()]
        self.absent = 0  # conditions on jobs that are not in the trace
        self._conditions: dict[int, list[_Condition]] = {}
        self._any: set[int] = set()
        self._dependents: dict[int, list[int]] = defaultdict(list)
        stated = _known(trace, "begin")
        self._begin = _known(trace, "eligible") | stated
        if "dependency" in trace.texts:
            self._read(trace, stated)

    def __bool__(self) -> bool:
        return bool(self._begin or self._conditions)

    def eligible(self, job: int) -> float | None:
        """Return from when on `job` is in the queue, `NEVER` if not yet known; None for never."""
        begin = self._begin.get(job, -NEVER)
        conditions = self._conditions.get(job)
        if not conditions:
            return begin
        found = [self._fulfilled(condition) for condition in conditions]
        possible = [at for at in found if at is not None]
        if job in self._any:
            return max(begin, min(possible)) if possible else None
        return max(begin, *possible) if len(possible) == len(found) else None

    def dependents(self, job: int) -> Sequence[int]:
        """Return the jobs that depend on `job`."""
        return self._dependents.get(job, ())

    def _fulfilled(self, condition: _Condition) -> float | None:
        """Return from when on a condition is fulfilled, `NEVER` if not yet, None if never."""
        kind, row, delay = condition
        state, start = self._state[row], self._start[row]
        if kind == "after" and start is not None:
            return start + delay
        if state not in ENDED:
            return NEVER
        is_ok = state is State.FINISHED and not self._failed[row]
        is_fulfilled = kind in ("after", "afterany") or is_ok == (kind == "afterok")
        return -NEVER if is_fulfilled else None

    def _read(self, trace: Trace, stated: Mapping[int, float]) -> None:
        """Read the dependencies of a trace, in which some jobs have stated begin times."""
        row_of = {number: row for row, number in enumerate(trace.job_id.tolist())}
        earlier: dict[tuple[int, int], list[int]] = defaultdict(list)
        names = zip(trace.user.tolist(), trace.executable.tolist())
        for job, (text, name) in enumerate(zip(trace.texts["dependency"].tolist(), names)):
            if text:
                try:
                    found, absent = _conditions(text, row_of, earlier[name])
                except InputError as error:
                    where = f"dependency of job {trace.job_id[job]}"
                    raise InputError(*error.mistakes, file=trace.path, field=where) from None
                self.absent += absent
                self._conditions[job] = [] if absent and "?" in text else found
                if "?" in text:
                    self._any.add(job)
                if job not in stated:
                    self._begin.pop(job, None)
                for condition in found:
                    self._dependents[condition.row].append(job)
            earlier[name].append(job)


def _known(trace: Trace, name: str) -> dict[int, float]:
    """Return the known values of an annotation by job."""
    values = trace.annotations.get(name, np.empty(0)).tolist()
    return {job: at for job, at in enumerate(values) if at != UNKNOWN}


def _conditions(
    text: str, row_of: Mapping[int, int], earlier: Sequence[int]
) -> tuple[list[_Condition], int]:
    """Return the conditions that a text states, and the number of those on unknown jobs."""
    found: list[_Condition] = []
    absent = 0
    for part in re.split(r"[,?]", re.sub(r"\([a-z]*\)", "", text)):
        if part == "singleton":
            found += [_Condition("afterany", row) for row in earlier]
            continue
        kind, *numbers = part.split(":")
        jobs = [_JOB.fullmatch(number) for number in numbers]
        if kind not in _KINDS or not jobs or None in jobs:
            raise InputError(f"{text!r}; expected jobs to wait for, afterok:130 for instance")
        for job in filter(None, jobs):
            if (row := row_of.get(int(job[1]))) is None:
                absent += 1
            else:
                found.append(_Condition(_KINDS[kind], row, 60 * int(job[2] or 0)))
    return found, absent


class Journal:
    """Events and actions in the order in which they took place."""

    def __init__(self) -> None:
        # time; event; row of the job; place, limit, speed or share, or the reason of a rejection
        self.entries: list[tuple[float, str, int, str]] = []

    def __repr__(self) -> str:
        return f"<Journal: {len(self.entries):,} entries>"

    def record(self, time: float, event: str, job: int, detail: object = "") -> None:
        """Add an entry."""
        self.entries.append((time, event, job, str(detail)))

    def digest(self) -> str:
        """Return the SHA-256 of the journal, equal for equal runs."""
        text = "".join(
            f"{float(time)!r} {event} {job} {detail}\n" for time, event, job, detail in self.entries
        )
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def frame(self) -> pd.DataFrame:
        """The journal as a data frame: time, event, job (row of the trace), detail."""
        import pandas as pd

        return pd.DataFrame(self.entries, columns=["time", "event", "job", "detail"])
