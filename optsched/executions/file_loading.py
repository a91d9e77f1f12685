"""Execution model of jobs that load an input file before they work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from optsched.arrays import Floats, Ints
from optsched.by_reference import by_reference
from optsched.compiled import kernel
from optsched.errors import InputError
from optsched.machines.cluster import Cluster, Cores, drop, forget, use
from optsched.metrics.stretch import MEASURES, stretches, summarise_stretches
from optsched.models.data_placement.fields import HEAVIEST
from optsched.numbers import LONGEST
from optsched.registry import executions
from optsched.schedule import Schedule
from optsched.simulator._core import CHANGED, NOW, STARTED, Core
from optsched.simulator.compiled_decisions import CompiledRun
from optsched.simulator.execution import ExecutionModel, ExecutionReport
from optsched.simulator.system import System
from optsched.traces.rackham import check_annotations
from optsched.traces.reading import mistake_in
from optsched.traces.trace import Trace


@by_reference
class Loading(NamedTuple):
    """The files of the jobs, and the memory of the nodes as in `NodeMemory`."""

    files: Ints
    loads: Ints
    transfer: Floats
    waiting: Floats
    table: Floats
    latest_start: Floats
    until_next: bool


@kernel(allocates=False)
def load(loading: Loading, job: int, node: int, start: float, until: float) -> float:
    """Begin the use of the file of a job that starts; return the seconds until it is there."""
    file = loading.files[job]
    table, latest_start, until_next = loading.table, loading.latest_start, loading.until_next
    if file < 0:
        if until_next:
            forget(table, latest_start, True, node, start)
        return 0.0
    seconds: float
    seconds, loads = use(
        table, latest_start, until_next, node, file, loading.loads[job], start, until
    )
    if loads:
        loading.transfer[job] = seconds
    else:
        loading.waiting[job] = seconds
    return seconds


@kernel(allocates=False)
def release(loading: Loading, job: int, node: int, now: float) -> None:
    """End the use of the file of a job."""
    if loading.files[job] >= 0:
        drop(loading.table, node, loading.files[job], now)


@kernel(allocates=False)
def follow(core: Core, loading: Loading, node: Ints, event: int) -> None:
    """Delay the job that starts, or end the use of its file; `node` has the node of each job."""
    job = core.tally[CHANGED]
    if event == STARTED:
        until = core.estimated_end[job]
        start = until - core.requested[job]  # rounded as in the engine
        core.works_since[job] += load(loading, job, node[job], start, until)
    else:
        release(loading, job, node[job], core.clock[NOW])


@executions.register("file-loading")
@dataclass
class FileLoading(ExecutionModel):
    """Jobs work once their input file is in the memory of their node.

    A job loads the file in ``size / bandwidth`` seconds, rounded up, waits for the rest of a load
    that another job began, or finds the file resident. This delay counts towards the walltime.

    Attributes
    ----------
    transfer, waiting : float64 array, shape (jobs,)
        Seconds for which each job loaded its file, and waited for a load that another job began.

    References
    ----------
    M. Gonthier, E. Larsson, L. Marchal, C. Nettelblad, S. Thibault, "Data-driven locality-aware
    batch scheduling", APDCM 2024, section III.
    """

    def begin(self, system: System, trace: Trace) -> None:
        """Find the file of each job, and the seconds to load it."""
        machine = system.machine
        if not isinstance(machine, Cluster):
            raise InputError(f"execution model {self.name!r} is for clusters, not {machine.spec}")
        if "file" not in trace.annotations:
            raise InputError(
                f"trace {trace.name!r} has no input files; "
                "'optsched trace annotate files TRACE' infers them",
                file=trace.path,
            )
        check_annotations(trace)

        files = machine.files
        self._loads = trace.annotations["file_size"] // machine.bandwidth
        _check_sizes(trace, machine, self._loads)
        self.transfer = np.zeros(len(trace))
        self.waiting = np.zeros(len(trace))
        self._loading = Loading(
            trace.annotations["file"],
            self._loads,
            self.transfer,
            self.waiting,
            files.table,
            files.latest_start,
            files.kept == "next",
        )

    def compiled(self, run: CompiledRun, decisions: Any) -> Callable[[int], object]:
        """Bind the kernel to a run; ``decisions.node`` has the node of each job."""
        return run.bind(follow, run.core, self._loading, decisions.node, numbers=(0,))

    def delay(self, job: int, allocation: Cores, system: System) -> float:
        """Return the seconds that a job waits for its file."""
        until = float(system.running.estimated_end(job))
        start = until - system.requested_time[job]
        return float(load(self._loading, job, allocation.node, start, until))

    def ended(self, job: int, allocation: Cores, system: System) -> tuple[()]:
        """End the use of the job's file."""
        release(self._loading, job, allocation.node, float(system.now))
        return ()

    measures = MEASURES

    def report(self, trace: Trace, schedule: Schedule) -> ExecutionReport:
        """Return the seconds that each job waited for its file, and its stretch."""
        columns = {"transfer_time": self.transfer, "waiting_for_a_load": self.waiting}
        columns |= stretches(trace, schedule, self._loads)
        figures = summarise_stretches(trace, schedule, columns, self._loads)
        return ExecutionReport(columns, figures)


def _check_sizes(trace: Trace, machine: Cluster, loads: Ints) -> None:
    """Check that each job fits on a node, and that no time is too long."""
    cores = (
        f"expected at most {machine.cores}, those of a node of {machine.spec}; "
        "'optsched trace annotate files TRACE --cores' splits larger jobs"
    )
    seconds = f"expected at most {LONGEST:,} s"
    load = f"expected at most {HEAVIEST:,} s of loading at {machine.bandwidth} MB/s"
    for field, column, most, expected in (
        ("cores", trace.processors, machine.cores, cores),
        ("walltime", trace.requested_time, LONGEST, seconds),
        ("data_size", loads, HEAVIEST, load),
    ):
        above = np.flatnonzero(column > most)
        if len(above):
            job = int(above[0])
            value = f"{column[job]}" if field == "cores" else f"{column[job]} s"
            raise mistake_in(trace, job, field, value, expected)
