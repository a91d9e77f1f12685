"""Base of the policies for nodes that share resources: a reservation, raised limits."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

import numpy as np

from optsched.errors import InputError
from optsched.executions.resource_sharing import ResourceSharing
from optsched.machines.smp import Smp
from optsched.models.node_allocations import COUNTABLE
from optsched.models.threshold_allocation import Goal, Placement, ThresholdAllocation
from optsched.models.threshold_allocation.problem import GOALS, units
from optsched.policies.parts.reservation_table import ReservationTable, is_place
from optsched.schedule import Schedule, State
from optsched.simulator.actions import Action, Start, Wake
from optsched.simulator.engine import KILL_TOLERANCE
from optsched.simulator.policy import Answers, Policy
from optsched.simulator.problem_solver import ProblemSolver
from optsched.simulator.system import System
from optsched.solvers.result import Status
from optsched.solvers.threshold_allocation.bottleneck_search import BottleneckSearch
from optsched.solvers.threshold_allocation.moving_rules import (
    FirstFit,
    LessConsume,
    LessConsumeThreshold,
)

if TYPE_CHECKING:
    from optsched.machines.machine import Machine
    from optsched.policies.parts._sharing_replay import Problems
    from optsched.simulator.execution import ExecutionModel
    from optsched.traces.trace import Trace

LARGEST_FACTOR = 1000
"""Largest penalty factor of a threshold."""

WEIGHED = {
    "threshold-allocation": Answers(
        "bottleneck-search", "less-consume-threshold", by_objective=True
    )
}
"""Solvers of problems with an objective that the published rules ignore."""

REPLAYED = (FirstFit, LessConsume, LessConsumeThreshold, BottleneckSearch)
"""Solvers of which a replay has kernels, in the order of `_sharing_replay`."""

FEW_RESOURCES = 7
"""Most resources of a replay: numpy, too, adds the penalties of so few in their order."""

MOST_POSED = 100
"""Most problems for each job that a replay records."""

MOST_REPLAYED = 1_000_000
"""Most jobs of a replay, which limits the memory for these records."""


class Found(NamedTuple):
    """Place and start of a job: the solution of a problem."""

    problem: ThresholdAllocation
    placement: Placement

    @property
    def starts_now(self) -> bool:
        """Whether the job can start now."""
        return self.placement.start == 0

    @property
    def penalized_walltime(self) -> int:
        """Requested time of the job in whole seconds, raised by the penalty of the place."""
        problem = self.problem
        return problem.walltime + -(-problem.penalised_time(self.placement) // problem.unit)

    @property
    def end(self) -> int:
        """Seconds until the end of the penalized requested time."""
        return self.placement.start + self.penalized_walltime


class HeadReservation(NamedTuple):
    """Reservation of the queue head: a start in seconds, and a place."""

    job: int
    start: float
    found: Found


@dataclass
class Sharing(Policy):
    """Jobs start in the order of submission, with backfilling behind a blocked queue head.

    Place and start of each job are the solution of a `threshold-allocation` problem. The blocked
    head has a reservation: no other job may take its processors, or raise its penalty there above
    the threshold. The head starts at its first reserved start, or earlier.

    Parameters
    ----------
    limits : {"raised", "requested"}
        Walltime of a job: its requested time, raised by the penalty factor of its placement, or
        its requested time unchanged.
    """

    limits: Literal["raised", "requested"] = "raised"

    machines: ClassVar[frozenset[str]] = frozenset({"smp"})
    models: ClassVar[Mapping[str, Answers]] = {
        "threshold-allocation": Answers("less-consume", "less-consume-threshold")
    }
    execution: ClassVar[str | None] = "resource-sharing"
    replay_from: ClassVar[int] = 30_000

    def begin(self, system: System) -> None:
        """Begin with an empty table, without a reservation."""
        self._table = ReservationTable(system, self.factors())
        self._reservation: HeadReservation | None = None
        self._wakes_at = -math.inf

    @abstractmethod
    def factors(self) -> Sequence[int]:
        """Return the thresholds in thousandths, ascending; none for no limit."""

    @abstractmethod
    def place_head(self, job: int, system: System) -> Found:
        """Return place and start of the queue head."""

    @abstractmethod
    def backfill(self, system: System) -> Iterator[Action]:
        """Start jobs behind the queue head, which has a reservation."""

    def decide(self, system: System) -> Iterable[Action]:
        """Start queue heads, reserve for the first that has to wait, backfill later jobs."""
        for job in system.ended:
            self._table.end(job)
        self._table.forget_reservation()
        queue = system.queue
        while queue:
            head = queue[0]
            found = self.place_head(head, system)
            kept = self._kept(head, found, system)
            found = found if kept is None else kept
            if not found.starts_now:
                break
            yield self.start(head, found, system)
        else:
            return
        start = system.now + found.placement.start
        if self._reservation is not None and self._reservation.job == head:
            start = min(start, self._reservation.start)
        if kept is None:
            self._reservation = HeadReservation(head, start, found)
        elif start != self._wakes_at:
            self._wakes_at = start
            yield Wake(start)
        if len(queue) > 1 and system.machine.free:
            threshold, placement = found.problem.threshold, found.placement
            self._table.reserve(head, threshold, placement, self.limit(found), start)
            yield from self.backfill(system)

    def promised(self, system: System) -> Mapping[int, float]:
        """Return the first reserved start of the queue head."""
        reserved = self._reservation
        return {} if reserved is None else {reserved.job: reserved.start}

    def _kept(self, job: int, found: Found, system: System) -> Found | None:
        """Return the reserved place and start of a job, if the new ones are later.

        Solvers start jobs at ends of running jobs only. If a running job ends early, its estimated
        end, and with it the reserved start, is no longer among these times.
        """
        reserved = self._reservation
        if reserved is None or reserved.job != job:
            return None
        if system.now + found.placement.start < reserved.start + 1:
            return None
        start = max(0, math.ceil(reserved.start - system.now))
        same = self._table.problem(job, "start", reserved.found.problem.threshold)
        kept = Found(same, Placement(start, reserved.found.placement.processes))
        return kept if is_place(*kept) else None

    def breaks_reservation(self, job: int, found: Found) -> bool:
        """Return whether a job that starts now would make the reservation infeasible."""
        return self._table.breaks_reservation(job, found.placement, self.limit(found))

    def limit(self, found: Found) -> int:
        """Return the seconds for which a job may run at a place."""
        requested = self.limits == "requested"
        return found.problem.walltime if requested else found.penalized_walltime

    def pose(self, problem: ThresholdAllocation, system: System) -> Found | None:
        """Pose a problem; return the place found, None without one."""
        placement = system.pose(problem)
        return None if placement is None else Found(problem, placement)

    def pose_head(self, job: int, problem: ThresholdAllocation, system: System) -> Found:
        """Pose a problem of the queue head; return the place found, which must exist.

        Raises
        ------
        InputError
            If the solver finds no place, as rules that try a single start time may.
        """
        found = self.pose(problem, system)
        if found is None:
            raise InputError(
                f"no place for job {system.job_id[job]} within a factor of "
                f"{(problem.threshold or 0) / 1000:g}; expected a solver that tries later times, "
                "such as less-consume-threshold or bottleneck-search",
                field="solver",
            )
        return found

    def start(self, job: int, found: Found, system: System) -> Start:
        """Return the action that starts a job at a place, and record the start in the table."""
        assert isinstance(system.machine, Smp)
        limit, processes = self.limit(found), found.placement.processes
        self._table.start(job, processes, system.now + limit)
        return Start(job, system.machine.place(processes), float(limit))

    def replays(self, problem_solver: ProblemSolver, execution: ExecutionModel | None) -> bool:
        """Return whether a replay has the solver, without a time limit, and the execution model."""
        chosen = problem_solver.solvers["threshold-allocation"]
        return (
            type(chosen.solver) in REPLAYED
            and (not chosen.is_compared or type(chosen.fallback) is LessConsumeThreshold)
            and chosen.budget.seconds is None
            and (execution is None or type(execution) is ResourceSharing)
        )

    def replay_sharing(
        self,
        trace: Trace,
        machine: Machine,
        problem_solver: ProblemSolver,
        execution: ExecutionModel | None,
        *,
        goal: Goal,
        second_goal: Goal | None = None,
        by_slowdown: bool = False,
    ) -> Schedule | None:
        """Replay a run, unless numbers are too large or the engine would report an error.

        Parameters
        ----------
        goal, second_goal : Goal
            Goal of a first problem of a job, and that of the problem of its place at the start
            found, if that problem is posed.
        by_slowdown : bool
            Whether jobs choose the threshold with the least slowdown, as `RUA` does.
        """
        from optsched.machines._interval_text import interval_text
        from optsched.machines.texts import Texts
        from optsched.policies.parts import _sharing_replay as compiled

        if type(machine) is not Smp or len(machine.capacity) > FEW_RESOURCES:
            return None
        system = System.before(trace, machine, problem_solver.pose)
        if execution is not None:
            execution.begin(system, trace)
        self.begin(system)
        jobs = self._table.jobs
        unit, scale = units(jobs.capacity)
        most = int(jobs.thresholds.max(initial=1000)) * int(jobs.walltime.max()) * unit
        if most >= COUNTABLE or len(trace) > MOST_REPLAYED:
            return None
        chosen = problem_solver.solvers["threshold-allocation"]
        rule = compiled.Rule(
            by_slowdown=by_slowdown,
            goal=GOALS.index(goal),
            second_goal=-1 if second_goal is None else GOALS.index(second_goal),
            solver=REPLAYED.index(type(chosen.solver)),
            most_work=math.inf if chosen.budget.work is None else float(chosen.budget.work),
            raises=self.limits == "raised",
            slows=execution is not None,
            in_all=isinstance(execution, ResourceSharing) and execution.worst_node == "in-all",
            processors=machine.processors,
            unit=unit,
        )
        order = jobs.walltime if by_slowdown else trace.requested_time
        state = compiled.new_state(
            trace.submit.astype(np.float64),
            trace.runtime.astype(np.float64),
            order.astype(np.float64),
            jobs,
            scale,
            machine.nodes,
            machine.processors,
            MOST_POSED * (len(trace) + 10),
        )
        if not compiled.replay(state, rule, KILL_TOLERANCE):
            return None
        posed = int(state.tally[compiled.PROBLEMS])
        self._record(trace, machine, problem_solver, state.problems, posed)
        final_state = np.where(state.killed, State.KILLED, State.FINISHED)
        final_state[np.isnan(state.start)] = State.REJECTED
        return Schedule(
            start=state.start,
            end=state.end,
            state=final_state,
            resources=Texts(*interval_text(state.first_run, state.last_run, state.runs)),
            decisions=int(state.tally[compiled.DECISIONS]),
            paused=np.zeros(len(trace)),
        )

    def _record(
        self,
        trace: Trace,
        machine: Smp,
        problem_solver: ProblemSolver,
        problems: Problems,
        number: int,
    ) -> None:
        """Record the problems of a replay as the problem solver would."""
        chosen = problem_solver.solvers["threshold-allocation"]
        found, missing = Status.FEASIBLE, Status.NO_SOLUTION
        if chosen.is_compared:
            found, missing = Status.OPTIMAL, Status.INFEASIBLE
        times, decisions, submitted, jobs, answered, *numbers, works = (
            column[:number].tolist() for column in problems
        )
        objectives, heuristics, bounds = (
            [number if has else None for number, has in zip(column, answered)] for column in numbers
        )
        none: list[None] = [None] * number
        at_submission = trace.submit.tolist()  # of the type of the trace's own times
        asked, on = trace.processors.tolist(), f"{machine.nodes}x{machine.processors}"
        problem_solver.record(
            "threshold-allocation",
            times=[at_submission[s] if s >= 0 else t for s, t in zip(submitted, times)],
            decisions=decisions,
            sizes=[f"{asked[job]} on {on}" for job in jobs],
            statuses=[found if has else missing for has in answered],
            objectives=objectives,
            heuristics=heuristics if chosen.is_compared else none,
            bounds=bounds if chosen.is_compared else none,
            works=works,
        )
