"""Base of the policies for nodes that share resources: a reservation, raised limits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from optsched.arrays import Ints
from optsched.errors import InputError
from optsched.executions._shared_nodes import new_places
from optsched.executions.resource_sharing import demands
from optsched.machines.nodes import Run
from optsched.machines.smp import Smp
from optsched.machines.texts import Texts, interval_text
from optsched.models.fields import read_only
from optsched.models.threshold_allocation import Goal, ThresholdAllocation
from optsched.models.threshold_allocation.problem import GOALS, units
from optsched.models.threshold_allocation.timeline import penalty_within
from optsched.policies import _sharing
from optsched.policies._sharing_table import NO_LATEST, Nodes, Rule, new_state
from optsched.simulator.compiled_decisions import CompiledDecisions, CompiledRun, answered
from optsched.simulator.policy import Answers, Policy
from optsched.simulator.problem_solver import ChosenSolver, ProblemSolver
from optsched.simulator.system import System
from optsched.solvers.result import Status
from optsched.solvers.threshold_allocation import (
    BottleneckSearch,
    FirstFit,
    LessConsume,
    LessConsumeThreshold,
)

KNOWN = (FirstFit, LessConsume, LessConsumeThreshold, BottleneckSearch)
"""Solvers whose answers the decision kernel finds itself, by their number there."""

RECORDED = 10_000
"""Problems that the kernel answers before they are handed to the problem solver."""


class SharingDecisions(CompiledDecisions):
    """The nodes of a run as the decision kernel keeps them."""

    def __init__(self, rule: Rule, factors: Sequence[int], run: CompiledRun) -> None:
        machine, problem_solver = run.machine, run.problem_solver
        assert isinstance(machine, Smp)
        self._machine, self._run = machine, run
        self._chosen = problem_solver.solvers["threshold-allocation"]
        self.answers = problem_solver.only_solves and _is_known(self._chosen)
        if self.answers:
            work = self._chosen.budget.work
            rule = rule._replace(
                answer=KNOWN.index(type(self._chosen.solver)),
                most_work=math.inf if work is None else float(work),
            )
        self._rule = rule
        self._capacity = read_only(np.array(list(machine.capacity.values()), dtype=np.int64))
        unit, scale = units(self._capacity)
        self._given: dict[str, Any] = {
            "nodes": machine.nodes,
            "processors": machine.processors,
            "capacity": self._capacity,
            "resources": tuple(machine.capacity),
        }
        jobs = self._job_numbers(factors)
        nodes = Nodes(machine.nodes, machine.processors, self._capacity, scale, unit)
        self._state = new_state(jobs, nodes, RECORDED if self.answers else 1)
        self._counts, self._search = self._state.counts[0], self._state.search[0]
        self.places = new_places(jobs["asked"], machine.size)
        self._held: tuple[int, Ints] = (-1, jobs["demand"])
        self.decide = run.bind(_sharing.decide, self._state, self.places, rule, run.news)
        self.resources()  # loads the kernels

    def _job_numbers(self, factors: Sequence[int]) -> dict[str, NDArray[Any]]:
        """Return the jobs, after checking the numbers of all problems of the run."""
        trace, machine, (unit, _) = self._run.trace, self._machine, units(self._capacity)
        demand = read_only(np.ascontiguousarray(demands(trace, machine).T))
        asked = trace.processors.astype(np.int64)
        walltime = np.ceil(trace.requested_time).astype(np.int64)
        excess = np.maximum(-(-asked // machine.nodes)[:, None] * demand - self._capacity, 0)
        least = 1000 + np.ceil(1000 * (excess / self._capacity).sum(axis=1)).astype(np.int64)
        thresholds = np.full((len(asked), 1), -1)
        if factors:  # each at least that of the job alone, with its processes spread evenly
            thresholds = np.maximum(np.array(factors), least[:, None])
        self._check_numbers(walltime, demand, int(thresholds[np.argmax(least)][-1]))
        limits = np.array(
            [
                [penalty_within(None if one < 0 else one, seconds * unit) for one in own]
                for own, seconds in zip(thresholds.tolist(), walltime.tolist())
            ],
            dtype=np.int64,
        )
        by = walltime if self._rule.by_slowdown else trace.requested_time
        names = ("asked", "walltime", "demand", "thresholds", "limits", "order")
        return dict(zip(names, (asked, walltime, demand, thresholds, limits, by.astype(float))))

    def _check_numbers(self, walltime: Ints, demand: Ints, threshold: int) -> None:
        """Check the largest problem that can be posed, in place of every problem."""
        # at worst behind a running job and a reservation, with limits raised on full nodes
        machine, most, (unit, scale) = self._machine, demand.max(axis=0), units(self._capacity)
        worst = self._given | {"asked": machine.size, "walltime": int(walltime.max())}
        worst["threshold"] = None if threshold < 0 else threshold
        alone = ThresholdAllocation(**worst, held=[], demand=most)
        excess = np.maximum(machine.processors * most - self._capacity, 0)
        limit = alone.walltime - (-alone.walltime * int((scale * excess).sum()) // unit)
        held = [[0, 1, 0, 2 * limit, *most.tolist()]]
        ThresholdAllocation(**worst, held=held, demand=demand.min(axis=0))

    def promised(self) -> dict[int, float]:
        """Return the first reserved start of the last queue head that had to wait."""
        reservation = self._state.reservation[0]
        return {int(reservation.job): float(reservation.start)} if reservation.job >= 0 else {}

    def answer(self, problem_solver: ProblemSolver) -> None:
        """Pose the problem that the kernel has left open, if any, and hand it the answer."""
        self.record(problem_solver)
        state, search, trace = self._state, self._search, self._run.trace
        job = int(search.job)
        if self._counts.asks == _sharing.PLACE:
            raise InputError(
                f"no place for job {trace.job_id[job]} within a factor of "
                f"{max(0, int(state.thresholds[job, -1])) / 1000:g}; expected a solver that tries "
                "later times, such as less-consume-threshold or bottleneck-search",
                field="solver",
            )
        if self._counts.asks != _sharing.ANSWER:
            return
        threshold, latest = int(state.thresholds[job, search.number]), int(search.latest)
        placement = problem_solver.pose(
            ThresholdAllocation.trusted(
                **self._given,
                held=self._held_now(),
                asked=int(state.asked[job]),
                walltime=int(state.walltime[job]),
                demand=state.demand[job],
                threshold=None if threshold < 0 else threshold,
                goal=GOALS[search.goal],
                latest=None if latest == NO_LATEST else latest,
                job=trace.job_id.item(job),
            )
        )
        search.answer = -1 if placement is None else placement.start
        if placement is not None:
            state.placed[:] = placement.processes

    def _held_now(self) -> Ints:
        """Return the rows of all problems until the kernel looks again, as one array."""
        if self._held[0] != self._counts.looks:
            held = self._state.held[: self._counts.rows].copy()
            self._held = int(self._counts.looks), read_only(held)
        return self._held[1]

    def place(self, job: int, value: float) -> tuple[Run, ...]:
        """Return the processors of a job."""
        state = self._state
        return tuple(map(tuple, state.runs[state.first_run[job] : state.last_run[job]].tolist()))

    def resources(self) -> Sequence[str]:
        """Return the processors that each job held, as interval sets."""
        state = self._state
        return Texts(*interval_text(state.first_run, state.last_run, state.runs))

    def record(self, problem_solver: ProblemSolver) -> None:
        """Hand the problems that the kernel has answered to the problem solver."""
        if not (columns := answered(self._state)):
            return
        given, chosen = self._given, self._chosen
        found, missing = Status.FEASIBLE.value, Status.NO_SOLUTION.value
        if chosen.is_compared:
            found, missing = Status.OPTIMAL.value, Status.INFEASIBLE.value
        times, decisions, jobs, has, *numbers, works = columns
        values = ([one if there else None for one, there in zip(column, has)] for column in numbers)
        names = ("objective", "heuristic", "bound") if chosen.is_compared else ("objective",)
        asked, on = self._state.asked.tolist(), f"{given['nodes']}x{given['processors']}"
        problem_solver.record(
            "threshold-allocation",
            {
                "time": times,
                "decision": decisions,
                "size": [f"{asked[job]} on {on}" for job in jobs],
                "status": [found if there else missing for there in has],
                "work": works,
            }
            | dict(zip(names, values)),
        )


def _is_known(chosen: ChosenSolver) -> bool:
    """Return whether the decision kernel can answer as a solver does, without a time limit."""
    is_own = not chosen.is_compared or type(chosen.fallback) is LessConsumeThreshold
    return type(chosen.solver) in KNOWN and is_own and chosen.budget.seconds is None


LARGEST_FACTOR = 1000
"""Largest penalty factor of a threshold."""

WEIGHED = {
    "threshold-allocation": Answers(
        "bottleneck-search", "less-consume-threshold", by_objective=True
    )
}
"""Solvers of problems with an objective that the published rules ignore."""


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

    def begin(self, system: System) -> None:
        """Forget any earlier run."""
        self._decisions: SharingDecisions | None = None

    def _bound(
        self,
        run: CompiledRun,
        factors: Sequence[int],
        goal: Goal,
        second_goal: Goal | None = None,
        *,
        by_slowdown: bool = False,
    ) -> CompiledDecisions:
        """Bind the decision kernel to a run; thresholds are in thousandths, none for no limit."""
        rule = Rule(
            by_slowdown=by_slowdown,
            goal=GOALS.index(goal),
            second_goal=-1 if second_goal is None else GOALS.index(second_goal),
            answer=_sharing.ASK,
            most_work=math.inf,
            raises=self.limits == "raised",
        )
        self._decisions = SharingDecisions(rule, factors, run)
        return self._decisions

    def promised(self, system: System) -> Mapping[int, float]:
        """Return the first reserved start of the queue head."""
        return {} if self._decisions is None else self._decisions.promised()
