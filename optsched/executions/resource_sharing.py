"""Execution model of jobs that share the resources of their nodes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from optsched.errors import InputError
from optsched.fields import LARGEST_FIELD
from optsched.machines.nodes import Run
from optsched.machines.smp import Smp
from optsched.metrics.measure import Group, measures_in
from optsched.models.threshold_allocation.problem import COUNTABLE, NO_PENALTY
from optsched.numbers import LONGEST, MOST_CAPACITY
from optsched.registry import executions
from optsched.schedule import Schedule, State
from optsched.settings import later
from optsched.simulator.execution import ExecutionModel, ExecutionReport, Speeds
from optsched.simulator.system import System
from optsched.traces.reading import mistake_in
from optsched.traces.requests import split_demands
from optsched.traces.trace import Trace

if TYPE_CHECKING:
    from optsched.executions._shared_nodes import Places, SharedNodes
    from optsched.simulator.compiled_decisions import CompiledDecisions, CompiledRun


def demands(trace_or_system: Any, machine: Smp) -> NDArray[np.int64]:
    """Return the demand of a process of each job, 0 if not stated, shape (resources, jobs)."""
    annotations = trace_or_system.annotations
    none = np.zeros(len(trace_or_system.processors), dtype=np.int64)
    rows = [annotations.get(name, none) for name in machine.capacity]
    return np.array(rows, dtype=np.int64).reshape(len(rows), len(none))


@executions.register("resource-sharing")
@dataclass
class ResourceSharing(ExecutionModel):
    """Jobs slow down on nodes whose demand exceeds the capacity, to the speed of the worst node.

    The penalty of a node is the sum over its resources of ``max(demand, capacity) / capacity - 1``
    (equations 1 and 2), for as long as the same processes share the node: a shared window. The
    processes on a node run at speed ``1 / (1 + penalty)``.

    Parameters
    ----------
    worst_node : {"at-each-instant", "in-all"}
        The node that counts for a job on several nodes. At each instant: all processes keep step,
        as slow as those on the node with the largest penalty then. In all: each process runs for
        itself, and the job ends with the last one, on the node that adds most time, which is the
        rule of the paper; a process that is done keeps its processor and its demand until then.

    References
    ----------
    F. Guim, I. Rodero, J. Corbalan, "The resource usage aware backfilling", JSSPP 2009, section
    3.3.
    """

    worst_node: Literal["at-each-instant", "in-all"] = later("at-each-instant")

    def begin(self, system: System, trace: Trace) -> None:
        """Look up the demands of the jobs."""
        machine = system.machine
        if not isinstance(machine, Smp):
            raise InputError(
                f"execution model {self.name!r} is for nodes that share resources (smp), "
                f"not {machine.spec}"
            )
        if not set(machine.capacity) & set(trace.annotations):
            names = ", ".join(machine.capacity)
            raise InputError(
                f"trace {trace.name!r} states no demands of {names}, which {machine.spec} has; "
                "'optsched trace annotate bandwidth' draws demands",
                file=trace.path,
            )
        from optsched.executions._shared_nodes import new_shared_nodes

        _check_demands(trace, machine)
        _check_times(trace)
        demanded = demands(trace, machine)
        _check_penalties(trace, machine, demanded)
        self._notes = tuple(_unmatched(trace, machine))
        capacity = np.array(list(machine.capacity.values()), dtype=np.int64)
        self._new_nodes: Callable[[Places], SharedNodes] = partial(
            new_shared_nodes,
            trace.runtime.astype(np.float64),
            np.ascontiguousarray(demanded.T),
            capacity,
            (machine.nodes, machine.processors),
        )
        self._change: Callable[..., int] | None = None
        self._asked = trace.processors

    def started(self, job: int, allocation: tuple[Run, ...], system: System) -> Speeds:
        """Slow down the job, and the jobs on nodes that the job saturates."""
        from optsched.executions._shared_nodes import change_speeds, new_places

        assert isinstance(system.machine, Smp)
        begins = system.start[job]
        assert begins is not None
        if self._change is None:
            self._places = new_places(self._asked, system.machine.size)
            self._nodes = self._new_nodes(self._places)
            given = (self._nodes, self._places, self.worst_node == "in-all")
            self._change = change_speeds.bound(*given, numbers=(False, 0.0, 0.0, 0))
        places, counts = self._places, self._nodes.counts[0]
        nodes, processes = system.machine.processes(allocation)
        first, last = counts.entries, counts.entries + len(nodes)
        places.first[job], places.last[job] = first, last
        places.node[first:last], places.processes[first:last] = nodes, processes
        counts.entries = last
        return self._changed(True, float(begins), float(system.now), job)

    def ended(self, job: int, allocation: tuple[Run, ...], system: System) -> Speeds:
        """Speed up the jobs that shared a node with the job."""
        return self._changed(False, 0.0, float(system.now), job)

    def _changed(self, *event: Any) -> Speeds:
        """Return the jobs whose speed a start or an end changes, with their new speeds."""
        assert self._change is not None
        found = slice(self._change(*event))
        nodes = self._nodes
        return zip(nodes.affected[found].tolist(), nodes.new_speed[found].tolist())

    def compiled(
        self, run: CompiledRun, decisions: CompiledDecisions
    ) -> Callable[[int], object] | None:
        """Bind the kernel of the speeds to a run whose decisions keep the places of jobs."""
        from optsched.executions._shared_nodes import set_speeds

        if decisions.places is None:
            return None
        nodes, places = self._new_nodes(decisions.places), decisions.places
        given = (run.core, run.way, nodes, places, self.worst_node == "in-all")
        return run.bind(set_speeds, *given, numbers=(0,))

    measures = measures_in(
        Group.EXECUTION,
        penalised_jobs=("penalized jobs", "jobs",
            "Jobs that ran longer because jobs on their nodes share a resource."),
        mean_penalised_percent=("mean penalty of the run time", "percent",
            "Mean over the finished jobs of the added run time, in percent of that of the trace."),
        p95_penalised_percent=("95th percentile of the penalty", "percent",
            "Added run time, in percent of that of the trace, that 95% of the finished jobs do not"
            " exceed."),
        penalised_processor_hours=("time lost by sharing", "processor-hours",
            "Processors times the time by which jobs ran longer because of sharing."),
    )  # fmt: skip

    def report(self, trace: Trace, schedule: Schedule) -> ExecutionReport:
        """Return the seconds that sharing added to each job's run time, and their share."""
        finished = schedule.state == State.FINISHED
        added = np.where(finished, schedule.run_time - trace.runtime, np.nan)
        added[finished & (added < 1e-6)] = 0.0  # rounding of times
        percent = 100.0 * added / trace.runtime
        figures: dict[str, Any] = {
            "penalised_jobs": int((added > 0).sum()),
            "mean_penalised_percent": float(percent[finished].mean()) if finished.any() else None,
            "p95_penalised_percent": (
                float(np.percentile(percent[finished], 95)) if finished.any() else None
            ),
            "penalised_processor_hours": float(np.nansum(added * trace.processors) / 3600),
        }
        columns = {"penalised_time": added, "penalised_percent": percent}
        return ExecutionReport(columns, figures, self._notes)


def _unmatched(trace: Trace, machine: Smp) -> Iterator[str]:
    """Yield a message on resources that only the machine has, or that only the jobs demand."""
    demanded = [name for name, column in split_demands(trace)[0].items() if column.any()]
    unknown = [name for name in machine.capacity if name not in trace.annotations]
    alone = [name for name in demanded if name not in machine.capacity]
    if unknown:
        stated = f"it states {', '.join(demanded)}" if demanded else "it states no demand"
        names = ", ".join(unknown)
        yield f"trace {trace.name!r} has no demands of {names}, which {machine.spec} has; {stated}"
    if alone:
        names = ", ".join(alone)
        yield f"{machine.spec} has no {names}, which jobs of {trace.name!r} demand; not shared"


def _check_demands(trace: Trace, machine: Smp) -> None:
    """Check the values of the annotations that are taken for demands."""
    for name in machine.capacity:
        column = trace.annotations.get(name, np.zeros(1, dtype=np.int64))
        if column.dtype.kind not in "iu":
            raise InputError("expected whole numbers", file=trace.path, field=name)
        wrong = np.flatnonzero((column < 0) | (column > MOST_CAPACITY))
        if len(wrong):
            job = int(wrong[0])
            expected = f"expected a demand from 0 to {MOST_CAPACITY:,}"
            raise mistake_in(trace, job, name, column[job], expected)


def _check_times(trace: Trace) -> None:
    """Check that no requested time is too long."""
    above = np.flatnonzero(trace.requested_time > LONGEST)
    if len(above):
        job = int(above[0])
        value, expected = f"{trace.requested_time[job]:.0f} s", f"expected at most {LONGEST:,} s"
        raise mistake_in(trace, job, "requested time", value, expected)


def _check_penalties(trace: Trace, machine: Smp, demanded: NDArray[np.int64]) -> None:
    """Check that the numbers of every `threshold-allocation` problem of the run stay in range.

    The check takes the largest demand on each resource and the longest time for all processes of a
    node, which bounds the raised limits, the planning horizon, and all penalties.
    """
    capacity = [*machine.capacity.values()]
    unit = math.lcm(*capacity)
    most = [int(row.max()) for row in demanded]
    walltime = math.ceil(trace.requested_time.max())
    penalty = sum(
        max(machine.processors * demand - own, 0) * (unit // own)
        for demand, own in zip(most, capacity)
    )
    limit = walltime + -(-walltime * penalty // unit)
    ahead = 3 * limit  # a running job, a reservation behind it, and a job behind that
    each = 1 + sum(demand * (unit // own) for demand, own in zip(most, capacity))
    everybody = machine.nodes * (machine.processors**2 * each * walltime + ahead * (unit + 2))
    factor = NO_PENALTY * (unit + penalty) // unit + 1
    if max(ahead, factor) > LARGEST_FIELD or everybody >= COUNTABLE:
        demands_of = ", ".join(f"{name} {most}" for name, most in zip(machine.capacity, most))
        raise InputError(
            f"demands of up to {demands_of} and walltimes of up to {walltime:,} s make penalties "
            f"on {machine.spec} too large to be counted; expected coarser units",
            file=trace.path,
        )
