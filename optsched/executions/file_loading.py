"""Jobs that load their input file before they work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from optsched.errors import InputError
from optsched.machines.cluster import Cluster, Cores
from optsched.registry import executions
from optsched.simulator.execution import ExecutionModel, ExecutionReport
from optsched.simulator.schedule import Schedule
from optsched.simulator.stretch import stretches, summarise_stretches
from optsched.simulator.system import System
from optsched.traces.reading import format_of
from optsched.traces.trace import Trace


@executions.register("file-loading")
@dataclass
class FileLoading(ExecutionModel):
    """A job works once its input file is in the memory of its node.

    It loads the file in ``size / bandwidth`` whole seconds, waits for the rest of a load that
    another job began, or finds the file there. All of that is within its limit.

    References
    ----------
    M. Gonthier, E. Larsson, L. Marchal, C. Nettelblad, S. Thibault, "Data-driven locality-aware
    batch scheduling", APDCM 2024, section III.
    """

    def begin(self, system: System, trace: Trace) -> None:
        """Find the file of each job, and how long it takes to load it."""
        machine = system.machine
        if not isinstance(machine, Cluster):
            raise InputError(f"execution model {self.name!r} is for clusters, not {machine.spec}")
        if "file" not in trace.annotations:
            raise InputError(
                f"trace {trace.name!r} has no input files; 'optsched trace annotate' infers them",
                file=trace.path,
            )
        wide = np.flatnonzero(trace.processors > machine.cores)
        if len(wide):
            _refuse_wide(trace, int(wide[0]), machine)
        self._file: list[int] = trace.annotations["file"].tolist()
        sizes = trace.annotations["file_size"]
        self._load: list[int] = (sizes // machine.bandwidth).tolist()
        self._until: dict[int, float] = {}
        self._transfer = np.zeros(len(trace))
        self._waiting = np.zeros(len(trace))

    def delay(self, job: int, allocation: Cores, system: System) -> float:
        """Return how long a job waits for its file."""
        file = self._file[job]
        if file < 0:
            return 0.0
        assert isinstance(system.machine, Cluster)
        until = self._until[job] = system.running.estimated_end(job)
        use = system.machine.files.use(
            allocation.node, file, self._load[job], until - system.requested_time[job], until
        )
        (self._transfer if use.loads else self._waiting)[job] = use.seconds
        return use.seconds

    def ended(self, job: int, allocation: Cores, system: System) -> tuple[()]:
        """Let the job use its file no longer."""
        if self._file[job] >= 0:
            assert isinstance(system.machine, Cluster)
            until = self._until.pop(job)
            system.machine.files.drop(allocation.node, self._file[job], until, system.now)
        return ()

    def report(self, trace: Trace, schedule: Schedule) -> ExecutionReport:
        """Return what each job waited for its file, and its stretch."""
        columns = {"transfer_time": self._transfer, "waiting_for_a_load": self._waiting}
        columns |= stretches(trace, schedule, np.array(self._load))
        return ExecutionReport(columns, summarise_stretches(trace, schedule, columns))


def _refuse_wide(trace: Trace, job: int, machine: Cluster) -> NoReturn:
    job_id = int(trace.job_id[job])
    line = None if trace.path is None else format_of(trace.path).line_of(trace.path, job_id)
    raise InputError(
        f"{trace.processors[job]} in job {job_id}; expected at most {machine.cores}, those of a "
        f"node of {machine.spec}; 'optsched trace annotate files --cores' cuts wider jobs",
        file=trace.path,
        line=line,
        field="cores",
    )
