"""Execution model of jobs that page if their node is short of memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from optsched.column_sets import ColumnSet, runs_of
from optsched.errors import InputError
from optsched.machines.machine import Allocation
from optsched.metrics.measure import Group, measures_in
from optsched.numbers import MOST_CAPACITY
from optsched.registry import executions
from optsched.schedule import Schedule, State
from optsched.settings import later
from optsched.simulator.execution import ExecutionModel, ExecutionReport, Speeds
from optsched.simulator.system import System
from optsched.traces.trace import Trace

KB = 1024
"""KB in a MB; traces are in KB, settings in MB."""

SLOWEST = 1000
"""Largest slowdown factor of a paging job."""

MOST_VARIATION = 100
"""Largest coefficient of variation of the memory of jobs."""


@executions.register("paging")
@dataclass
class Paging(ExecutionModel):
    """Jobs that share a node in time page if the sum of their memory exceeds the node's.

    All jobs on a node stay in memory between their time slices. While any of its nodes is short of
    memory, a job runs slower by the factor `slowdown`.

    Parameters
    ----------
    node_memory : float
        Memory of a node (a column of the matrix) for jobs, in MB; by default that of the paper's
        machine.
    job_memory : float
        Memory of a job on each of its nodes, in MB, where the trace does not state the used
        memory; by default the mean of the paper's workload.
    slowdown : float
        Factor by which a paging job is slower; by default that of three jobs of 45 MB in 128 MB.
    variation : float
        Coefficient of variation of the memory of jobs where the trace does not state it: with a
        value above 0, it is drawn from a gamma distribution with the mean `job_memory`.
    draw : int
        Seed of the drawn memory.

    Raises
    ------
    InputError
        If a memory is not above 0, the slowdown is below 1, the variation or the seed is negative,
        or a value is too large.

    References
    ----------
    H. Franke, J. Jann, J. Moreira, P. Pattnaik, M. Jette, "An evaluation of parallel job scheduling
    for ASCI Blue-Pacific", Supercomputing 1999, section 6 and Figure 9.
    """

    node_memory: float = 1536.0
    job_memory: float = 133.0
    slowdown: float = 3.5
    variation: float = later(0.0)
    draw: int = later(0)

    places_suffice: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name in ("node_memory", "job_memory"):
            if not 0 < getattr(self, name) <= MOST_CAPACITY:
                expected = f"expected MB above 0 and at most {MOST_CAPACITY:,}"
                raise InputError(f"{name} {getattr(self, name)}; {expected}")
        if not 1 <= self.slowdown <= SLOWEST:
            expected = f"expected a number from 1 to {SLOWEST:,}"
            raise InputError(f"slowdown {self.slowdown}; {expected}")
        if not 0 <= self.variation <= MOST_VARIATION:
            expected = f"expected a number from 0 to {MOST_VARIATION}"
            raise InputError(f"variation {self.variation}; {expected}")
        if self.draw < 0:
            raise InputError(f"draw {self.draw}; expected a whole number from 0")

    def begin(self, system: System, trace: Trace) -> None:
        """Look up the memory of the jobs, in whole KB."""
        known = trace.memory > 0
        memory = np.where(known, trace.memory, self._assumed(len(trace)))
        self._limit = round(self.node_memory * KB)
        # capped at just above a node's memory, so that sums fit into 64 bits
        counted = np.minimum(np.rint(memory), self._limit + 1)
        self._memory: list[int] = counted.astype(np.int64).tolist()
        self._used = np.zeros(system.machine.size, dtype=np.int64)
        self._short: ColumnSet = 0
        self._paged = np.zeros(len(trace), dtype=np.bool_)

    def _assumed(self, jobs: int) -> NDArray[np.float64]:
        """Return the memory in KB of jobs that do not state it, shape (jobs,)."""
        mean = np.full(jobs, self.job_memory * KB)
        if not self.variation:
            return mean
        shape = self.variation**-2
        return np.random.default_rng(self.draw).gamma(shape, mean / shape)

    def started(self, job: int, allocation: Allocation, system: System) -> Speeds:
        """Slow down the jobs on nodes that are short of memory because of the job."""
        if not system.machine.time_shared:
            return self._speeds([job] if self._memory[job] > self._limit else [], slow=True)
        turned = self._add(allocation.columns, self._memory[job])
        self._short |= turned
        slowed = [j for j, place in system.held.items() if place.columns & turned]
        if job not in slowed and allocation.columns & self._short:
            slowed.append(job)
        return self._speeds(slowed, slow=True)

    def ended(self, job: int, allocation: Allocation, system: System) -> Speeds:
        """Restore the speed of the jobs whose nodes are no longer short of memory."""
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

    measures = measures_in(
        Group.EXECUTION,
        paged_jobs=("jobs short of memory", "jobs", "Jobs that were ever short of memory."),
        paging_processor_hours=("time lost by paging", "processor-hours",
            "Processors times the time by which jobs ran longer for want of memory."),
    )  # fmt: skip

    def report(self, trace: Trace, schedule: Schedule) -> ExecutionReport:
        """Return the jobs that paged, and the seconds of run time that each lost."""
        finished = schedule.state == State.FINISHED
        paged = self._paged & (schedule.state != State.UNSUBMITTED)
        lost = np.where(finished & paged, schedule.run_time - trace.runtime, 0.0)
        return ExecutionReport(
            columns={"paged": paged.astype(np.int64), "paging_time": lost},
            figures={
                "paged_jobs": int(paged.sum()),
                "paging_processor_hours": float((lost * trace.processors).sum() / 3600),
            },
        )

    def _speeds(self, jobs: list[int], *, slow: bool) -> Speeds:
        if slow:
            self._paged[jobs] = True
        return [(job, 1.0 / self.slowdown if slow else 1.0) for job in jobs]

    def _add(self, columns: ColumnSet, memory: int) -> ColumnSet:
        """Add memory to nodes; return the nodes that begin or cease to be short of memory."""
        turned: ColumnSet = 0
        for start, stop in runs_of(columns):
            used = self._used[start:stop]
            before = used > self._limit
            used += memory
            for place in np.flatnonzero(before != (used > self._limit)).tolist():
                turned |= 1 << (start + place)
        return turned
