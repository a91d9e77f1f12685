"""Execution model of jobs that run faster on contiguous nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from optsched.arrays import Flags
from optsched.compiled import kernel
from optsched.errors import InputError
from optsched.machines._line_nodes import Held
from optsched.machines.machine import Allocation
from optsched.machines.torus import Torus
from optsched.metrics.measure import Group, measures_in
from optsched.registry import executions
from optsched.schedule import Schedule, State
from optsched.settings import later
from optsched.simulator._core import CHANGED, STARTED, Core, Way, set_speed
from optsched.simulator.execution import ExecutionModel, ExecutionReport, Speeds
from optsched.simulator.system import System
from optsched.traces.trace import Trace

if TYPE_CHECKING:
    from optsched.simulator.compiled_decisions import CompiledDecisions, CompiledRun


@kernel(allocates=False)
def set_speeds(
    core: Core,
    way: Way,
    held: Held,
    sensitive: Flags,
    contiguous: Flags,
    stated: bool,
    speed: float,
    event: int,
) -> None:
    """Set the speed of a sensitive job that starts on other nodes than those that are stated."""
    job = core.tally[CHANGED]
    if event == STARTED and sensitive[job]:
        contiguous[job] = held.last[job] - held.first[job] == 1
        if contiguous[job] != stated:
            set_speed(core, way, job, speed)


@executions.register("contiguity")
@dataclass
class Contiguity(ExecutionModel):
    """Sensitive jobs take less time on contiguous nodes than on scattered ones.

    A sensitive job on contiguous nodes takes the share ``1 - alpha`` of its time on scattered ones.
    The paper does not say which of the two times the trace states.

    Parameters
    ----------
    alpha : float
        Share of the run time that a contiguous allocation saves, from 0 and below 1.
    beta : float
        Share of the jobs that are sensitive, from 0 to 1.
    draw : int
        Seed of the choice of sensitive jobs. With one seed, the jobs chosen at a smaller share are
        among those chosen at a larger one.
    stated : {"scattered", "contiguous"}
        The allocation whose run time the trace states. With ``contiguous``, a sensitive job takes
        ``1 / (1 - alpha)`` of it on scattered nodes, and requests no less: nobody would ask for a
        time at which the job is killed on all nodes but the best.
    adjacency : {"line", "torus"}
        Which nodes are adjacent. With ``line``, an allocation of one run of the line is contiguous.
        With ``torus``, an allocation is contiguous if links between its routers connect it: section
        II of the paper, "the adjacency of nodes' original positions in torus-connected system".

    Raises
    ------
    InputError
        If a share is out of range, or the seed is negative.

    References
    ----------
    X. Yang, Z. Zhou, W. Tang, X. Zheng, J. Wang, Z. Lan, "Balancing job performance with system
    performance via locality-aware scheduling on torus-connected systems", IEEE Cluster 2014,
    section V.
    """

    alpha: float = 0.3
    beta: float = 0.3
    draw: int = 0
    stated: Literal["scattered", "contiguous"] = later("scattered")
    adjacency: Literal["line", "torus"] = later("line")

    def __post_init__(self) -> None:
        if not 0 <= self.alpha < 1:
            raise InputError(f"alpha {self.alpha}; expected a share from 0 and below 1")
        if not 0 <= self.beta <= 1:
            raise InputError(f"beta {self.beta}; expected a share from 0 to 1")
        if self.draw < 0:
            raise InputError(f"draw {self.draw}; expected a seed from 0")

    def begin(self, system: System, trace: Trace) -> None:
        """Draw the sensitive jobs.

        Raises
        ------
        InputError
            If nodes are to be adjacent in a torus, and the machine is of another kind.
        """
        machine = system.machine
        self._is_contiguous: Callable[[Allocation], bool] = machine.is_contiguous
        if self.adjacency == "torus":
            if not isinstance(machine, Torus):
                raise InputError(
                    f"adjacency=torus of execution model {self.name!r} is for a machine of kind "
                    f"torus, not {machine.spec}"
                )
            self._is_contiguous = machine.is_connected
        jobs = len(trace)
        order = np.random.default_rng(self.draw).permutation(jobs)
        self._sensitive = np.zeros(jobs, np.bool_)
        self._sensitive[order[: round(self.beta * jobs)]] = True
        self._stated = self.stated == "contiguous"
        self._other_speed = 1.0 - self.alpha if self._stated else 1.0 / (1.0 - self.alpha)
        if self._stated:
            for job in np.flatnonzero(self._sensitive).tolist():
                scattered = float(trace.runtime[job]) / (1.0 - self.alpha)
                system.requested_time[job] = max(system.requested_time[job], scattered)
        self._contiguous = np.zeros(jobs, np.bool_)

    def started(self, job: int, allocation: Allocation, system: System) -> Speeds:
        """Let a sensitive job run faster on contiguous nodes, or slower on scattered ones."""
        if not self._sensitive[job]:
            return ()
        self._contiguous[job] = self._is_contiguous(allocation)
        return () if self._contiguous[job] == self._stated else ((job, self._other_speed),)

    def compiled(
        self, run: CompiledRun, decisions: CompiledDecisions
    ) -> Callable[[int], object] | None:
        """Bind the kernel of the speeds to a run whose decisions keep the nodes of a line."""
        if self.adjacency == "torus" or not isinstance(decisions.places, Held):
            return None
        jobs = self._sensitive, self._contiguous
        given = (run.core, run.way, decisions.places, *jobs, self._stated, self._other_speed)
        return run.bind(set_speeds, *given, numbers=(0,))

    measures = measures_in(
        Group.EXECUTION,
        sensitive_jobs=("sensitive jobs", "jobs", "Jobs that run faster on contiguous nodes."),
        sensitive_scattered=("sensitive jobs on scattered nodes", "jobs",
            "Sensitive jobs that finished on scattered nodes."),
        lost_processor_hours=("time lost on scattered nodes", "processor-hours",
            "Processors times the time by which sensitive jobs ran longer on scattered nodes."),
    )  # fmt: skip

    def report(self, trace: Trace, schedule: Schedule) -> ExecutionReport:
        """Return the sensitive jobs, and the seconds that each lost on scattered nodes."""
        sensitive = self._sensitive & (schedule.state != State.UNSUBMITTED)
        scattered = sensitive & ~self._contiguous & (schedule.state == State.FINISHED)
        saved = self.alpha if self.stated == "scattered" else self.alpha / (1.0 - self.alpha)
        lost = np.where(scattered, saved * trace.runtime, 0.0)
        return ExecutionReport(
            columns={"sensitive": sensitive.astype(np.int64), "lost_time": lost},
            figures={
                "sensitive_jobs": int(sensitive.sum()),
                "sensitive_scattered": int(scattered.sum()),
                "lost_processor_hours": float((lost * trace.processors).sum() / 3600),
            },
        )
