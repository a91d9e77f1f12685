"""Jobs that slow down where the memory of a node does not hold them all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched.column_sets import ColumnSet, runs_of
from optsched.errors import InputError
from optsched.machines.machine import Allocation
from optsched.numbers import MOST_CAPACITY
from optsched.registry import executions
from optsched.schedule import Schedule, State
from optsched.simulator.execution import ExecutionModel, ExecutionReport
from optsched.simulator.system import System
from optsched.traces.trace import Trace

KB = 1024
"""KB of a MB: a trace states KB, the settings MB."""

SLOWEST = 1000
"""How many times as long a job may take while it pages."""


@executions.register("paging")
@dataclass
class Paging(ExecutionModel):
    """Jobs that share a node in time page when their memory together exceeds the node's.

    All jobs on a node stay in its memory, whether it is their turn or not. A job with processes on
    a node that is short of memory takes `slowdown` times as long as long as that lasts.

    Parameters
    ----------
    node_memory : float
        Memory of a node (a column of the matrix) for jobs, in MB; that of the paper's machine by
        default.
    job_memory : float
        Memory of a job on each of its nodes, in MB, where the trace does not state what it used;
        the mean of the paper's workload by default.
    slowdown : float
        How many times as long a job takes while it pages; as three jobs of 45 MB did in 128 MB by
        default.

    Raises
    ------
    InputError
        If a memory is not above 0 or the slowdown is below 1, or one of them is too large.

    References
    ----------
    H. Franke, J. Jann, J. Moreira, P. Pattnaik, M. Jette, "An evaluation of parallel job scheduling
    for ASCI Blue-Pacific", Supercomputing 1999, section 6 and Figure 9.
    """

    node_memory: float = 1536.0
    job_memory: float = 133.0
    slowdown: float = 3.5

    def __post_init__(self) -> None:
        for name in ("node_memory", "job_memory"):
            if not 0 < getattr(self, name) <= MOST_CAPACITY:
                expected = f"expected MB above 0 and at most {MOST_CAPACITY:,}"
                raise InputError(f"{name} {getattr(self, name)}; {expected}")
        if not 1 <= self.slowdown <= SLOWEST:
            expected = f"expected a number from 1 to {SLOWEST:,}"
            raise InputError(f"slowdown {self.slowdown}; {expected}")

    def begin(self, system: System, trace: Trace) -> None:
        """Look up what memory the jobs need, in whole KB."""
        known = trace.memory > 0
        memory = np.where(known, trace.memory, self.job_memory * KB)
        self._limit = round(self.node_memory * KB)
        # more than a node has is all the same, and sums of it stay in 64 bits
        counted = np.minimum(np.rint(memory), self._limit + 1)
        self._memory: list[int] = counted.astype(np.int64).tolist()
        self._used = np.zeros(system.machine.size, dtype=np.int64)
        self._short: ColumnSet = 0
        self._paged = np.zeros(len(trace), dtype=np.bool_)

    def started(
        self, job: int, allocation: Allocation, system: System
    ) -> Iterable[tuple[int, float]]:
        """Slow down the job, and those on nodes that it makes short of memory."""
        if not system.machine.time_shared:
            return self._speeds([job] if self._memory[job] > self._limit else [], slow=True)
        turned = self._add(allocation.columns, self._memory[job])
        self._short |= turned
        slowed = [j for j, place in system.held.items() if place.columns & turned]
        if job not in slowed and allocation.columns & self._short:
            slowed.append(job)
        return self._speeds(slowed, slow=True)

    def ended(
        self, job: int, allocation: Allocation, system: System
    ) -> Iterable[tuple[int, float]]:
        """Let the jobs go on that the job alone kept short of memory."""
        if not system.machine.time_shared:
            return ()
        turned = self._add(allocation.columns, -self._memory[job])
        self._short &= ~turned
        eased = [
            other
            for other, place in system.held.items()
            if place.columns & turned and not place.columns & self._short
        ]
        return self._speeds(eased, slow=False)

    def report(self, trace: Trace, schedule: Schedule) -> ExecutionReport:
        """Return who paged, and the seconds of run time that each lost."""
        finished = schedule.state == State.FINISHED
        lost = np.where(finished & self._paged, schedule.run_time - trace.runtime, 0.0)
        columns: dict[str, NDArray[Any]] = {
            "paged": self._paged.astype(np.int64),
            "paging_time": lost,
        }
        figures: Mapping[str, Any] = {
            "paged_jobs": int(self._paged.sum()),
            "paging_processor_hours": float((lost * trace.processors).sum() / 3600),
        }
        return ExecutionReport(columns, figures)

    def _speeds(self, jobs: list[int], *, slow: bool) -> list[tuple[int, float]]:
        if slow:
            self._paged[jobs] = True
        return [(job, 1.0 / self.slowdown if slow else 1.0) for job in jobs]

    def _add(self, columns: ColumnSet, memory: int) -> ColumnSet:
        """Count memory on nodes; return those that are short now and were not, or the reverse."""
        turned: ColumnSet = 0
        for start, stop in runs_of(columns):
            used = self._used[start:stop]
            before = used > self._limit
            used += memory
            for place in np.flatnonzero(before != (used > self._limit)).tolist():
                turned |= 1 << (start + place)
        return turned
