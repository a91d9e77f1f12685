"""Base of the policies for nodes that share resources: a reservation, raised limits."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.errors import InputError
from optsched.executions.resource_sharing import ResourceSharing, demands
from optsched.machines.smp import Smp
from optsched.models.read_only import read_only
from optsched.models.threshold_allocation import Goal, Placement, ThresholdAllocation
from optsched.models.threshold_allocation.presolve import penalty_within
from optsched.models.threshold_allocation.problem import GOALS, units
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
    from optsched.policies.parts._sharing_table import JobNumbers
    from optsched.simulator._core import News
    from optsched.simulator.chosen_solvers import ChosenSolver
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

KNOWN = (FirstFit, LessConsume, LessConsumeThreshold, BottleneckSearch)
"""Solvers whose answers the decision kernel finds itself, by their number there."""

RECORDED = 10_000
"""Problems that the kernel answers before they are handed to the problem solver."""


class Goals(NamedTuple):
    """Goal of the first problem of a job, and that of the place at the start found, if posed."""

    first: Goal
    second: Goal | None = None


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
    replay_from: ClassVar[int] = 0
    by_slowdown: ClassVar[bool] = False
    """Whether jobs choose the threshold with the least slowdown, and are ranked by penalty."""

    @abstractmethod
    def factors(self) -> Sequence[int]:
        """Return the thresholds in thousandths, ascending; none for no limit."""

    @abstractmethod
    def goals(self) -> Goals:
        """Return the goals of the problems of a job."""

    def begin(self, system: System) -> None:
        """Begin with empty nodes, without a reservation; all problems go to the solver."""
        from optsched.simulator._core import new_news

        self._news = new_news(len(system.processors))
        self._nodes = NodesInUse(self, system, self._news)

    def decide(self, system: System) -> Iterable[Action]:
        """Hand what has happened to the decision kernel, and return the actions that it states."""
        from optsched.simulator._core import DONE, N_ACTIONS, N_ENDED, N_SUBMITTED, OPEN

        news = self._news
        news.now[0] = system.now
        for heard, count, jobs in (
            (news.ended, N_ENDED, system.ended),
            (news.submitted, N_SUBMITTED, system.submitted),
        ):
            heard[: len(jobs)] = jobs
            news.counts[count] = len(jobs)
        news.counts[N_ACTIONS] = 0
        outcome, stated = OPEN, 0
        while outcome == OPEN:
            outcome = self._nodes.decide()
            yield from self._nodes.actions(stated)
            stated = int(news.counts[N_ACTIONS])
            if outcome == OPEN:
                self._nodes.answer(system.pose)
        assert outcome == DONE  # the problem solver has verified the answers

    def promised(self, system: System) -> Mapping[int, float]:
        """Return the first reserved start of the queue head."""
        return self._nodes.promised()

    def replays(self, problem_solver: ProblemSolver, execution: ExecutionModel | None) -> bool:
        """Return whether the event core can run the policy: the execution model decides."""
        return execution is None or type(execution) is ResourceSharing

    def replay_run(
        self,
        trace: Trace,
        machine: Machine,
        problem_solver: ProblemSolver,
        execution: ExecutionModel | None,
    ) -> Schedule | None:
        """Run a trace on the event core."""
        from optsched.machines._interval_text import interval_text
        from optsched.machines.texts import Texts
        from optsched.simulator import _core
        from optsched.simulator.driving import drive

        system = System.before(trace, machine, problem_solver.pose)
        submit, runtime = trace.submit.astype(np.float64), trace.runtime.astype(np.float64)
        requested = trace.requested_time.astype(np.float64)
        admitted = trace.processors <= machine.size
        core, news = (
            _core.new_core(submit, runtime, requested, admitted),
            _core.new_news(len(trace)),
        )
        slows = isinstance(execution, ResourceSharing)
        if execution is not None:
            execution.begin(system, trace)
        way = _core.Way(False, slows, False, self.enforces_limits, self.interval, KILL_TOLERANCE)
        nodes = NodesInUse(self, system, news, problem_solver.solvers["threshold-allocation"])
        set_speeds = None
        if isinstance(execution, ResourceSharing):
            set_speeds = execution.set_speeds(core, way, nodes.places)
        at_submission = dict(zip(submit.tolist(), trace.submit.tolist()))  # the trace's own times

        def answer() -> None:
            nodes.record(problem_solver, at_submission)
            now = news.now.item()
            decision = int(core.tally[_core.DECISIONS])
            problem_solver.begin_decision(at_submission.get(now, now), decision)
            nodes.answer(problem_solver.pose)

        drive(core, way, news, nodes.decide, answer, set_speeds)
        nodes.record(problem_solver, at_submission)
        final = np.where(core.overruns, State.KILLED, State.FINISHED)
        final[~admitted] = State.REJECTED
        state = nodes.state
        return Schedule(
            start=core.start,
            end=core.end,
            state=final,
            resources=Texts(*interval_text(state.first_run, state.last_run, state.runs)),
            decisions=int(core.tally[_core.DECISIONS]),
            paused=core.paused,
        )


class NodesInUse:
    """The nodes of a run as the decision kernel keeps them, and what Python does for the kernel.

    Attributes
    ----------
    decide : callable
        The decision kernel, bound to the nodes and to the news.
    """

    def __init__(
        self, policy: Sharing, system: System, news: News, chosen: ChosenSolver | None = None
    ) -> None:
        from optsched.executions._shared_nodes import new_places
        from optsched.policies.parts import _sharing as compiled
        from optsched.policies.parts._sharing_table import Rule, new_state

        machine = system.machine
        assert isinstance(machine, Smp)
        self._system, self._news = system, news
        self._capacity = read_only(np.array(list(machine.capacity.values()), dtype=np.int64))
        unit, scale = units(self._capacity)
        self._given: dict[str, Any] = {
            "nodes": machine.nodes,
            "processors": machine.processors,
            "capacity": self._capacity,
            "resources": tuple(machine.capacity),
        }
        jobs = self._job_numbers(policy)
        goals = policy.goals()
        knows = chosen is not None and _is_known(chosen)
        self._chosen = chosen if knows else None
        work = None if chosen is None else chosen.budget.work
        self._rule = Rule(
            by_slowdown=policy.by_slowdown,
            goal=GOALS.index(goals.first),
            second_goal=-1 if goals.second is None else GOALS.index(goals.second),
            answer=KNOWN.index(type(chosen.solver)) if knows and chosen else compiled.ASK,
            most_work=math.inf if work is None else float(work),
            raises=policy.limits == "raised",
            processors=machine.processors,
            unit=unit,
        )
        shape = (machine.nodes, machine.processors)
        self.state = new_state(jobs, self._capacity, scale, *shape, RECORDED if knows else 1)
        self.places = new_places(jobs.asked, machine.size)
        self._held: tuple[int, NDArray[np.int64]] = (-1, jobs.demand)
        bound = (self.state, self.places, self._rule, news)
        self.decide: Callable[[], int] = compiled.decide.bound(*bound)

    def _job_numbers(self, policy: Sharing) -> JobNumbers:
        """Return the jobs, after checking the numbers of all problems of the run.

        Each threshold is at least the penalty factor of the job on an empty machine, with its
        processes spread evenly.
        """
        from optsched.policies.parts._sharing_table import JobNumbers

        system, (unit, _) = self._system, units(self._capacity)
        machine, factors = system.machine, policy.factors()
        assert isinstance(machine, Smp)
        demand = read_only(np.ascontiguousarray(demands(system, machine).T))
        asked = np.array(system.processors, dtype=np.int64)
        walltime = np.ceil(system.requested_time).astype(np.int64)
        excess = np.maximum(-(-asked // machine.nodes)[:, None] * demand - self._capacity, 0)
        least = 1000 + np.ceil(1000 * (excess / self._capacity).sum(axis=1)).astype(np.int64)
        thresholds = np.full((len(asked), 1), -1)
        if factors:
            thresholds = np.maximum(np.array(factors), least[:, None])
        self._check_numbers(walltime, demand, int(thresholds[np.argmax(least)][-1]))
        limits = np.array(
            [
                [penalty_within(None if one < 0 else one, seconds * unit) for one in own]
                for own, seconds in zip(thresholds.tolist(), walltime.tolist())
            ],
            dtype=np.int64,
        )
        order = walltime if policy.by_slowdown else np.array(system.requested_time)
        return JobNumbers(asked, walltime, demand, thresholds, limits, order.astype(np.float64))

    def _check_numbers(
        self, walltime: NDArray[np.int64], demand: NDArray[np.int64], threshold: int
    ) -> None:
        """Check the largest problem that can be posed, in place of every problem.

        At worst, the job has the largest numbers of all jobs, behind a running job and a
        reservation whose limits were raised on full nodes.
        """
        machine, most = self._system.machine, demand.max(axis=0)
        assert isinstance(machine, Smp)
        worst = self._given | {"asked": machine.size, "walltime": int(walltime.max())}
        worst["threshold"] = None if threshold < 0 else threshold
        alone = ThresholdAllocation(**worst, held=[], demand=most)
        full = Placement(0, np.full(machine.nodes, machine.processors))
        limit = alone.walltime - (-alone.penalised_time(full) // alone.unit)
        held = [[0, 1, 0, 2 * limit, *most.tolist()]]
        ThresholdAllocation(**worst, held=held, demand=demand.min(axis=0))

    def promised(self) -> dict[int, float]:
        """Return the first reserved start of the last queue head that had to wait."""
        reservation = self.state.reservation[0]
        return {int(reservation.job): float(reservation.start)} if reservation.job >= 0 else {}

    def answer(self, pose: Callable[[Any], Any]) -> None:
        """Pose the problem that the kernel has left open, if any, and hand it the answer.

        Raises
        ------
        InputError
            If the solver finds no place for the queue head, as rules that try a single start time
            may.
        """
        from optsched.policies.parts import _sharing as compiled
        from optsched.policies.parts._sharing_table import NO_LATEST

        state, system, search = self.state, self._system, self.state.search[0]
        asks, job = int(state.counts[0].asks), int(search.job)
        if asks == compiled.PLACE:
            raise InputError(
                f"no place for job {system.job_id[job]} within a factor of "
                f"{max(0, int(state.thresholds[job, -1])) / 1000:g}; expected a solver that tries "
                "later times, such as less-consume-threshold or bottleneck-search",
                field="solver",
            )
        if asks != compiled.ANSWER:
            return
        threshold, latest = int(state.thresholds[job, search.number]), int(search.latest)
        placement = pose(
            ThresholdAllocation.trusted(
                **self._given,
                held=self._held_now(),
                asked=system.processors[job],
                walltime=int(state.walltime[job]),
                demand=state.demand[job],
                threshold=None if threshold < 0 else threshold,
                goal=GOALS[search.goal],
                latest=None if latest == NO_LATEST else latest,
                job=system.job_id[job],
            )
        )
        search.answer = -1 if placement is None else placement.start
        if placement is not None:
            state.placed[:] = placement.processes

    def _held_now(self) -> NDArray[np.int64]:
        """Return the rows of all problems until the kernel looks again, as one array."""
        counts = self.state.counts[0]
        if self._held[0] != counts.looks:
            self._held = (int(counts.looks), read_only(self.state.held[: counts.rows].copy()))
        return self._held[1]

    def actions(self, first: int) -> Iterator[Action]:
        """Yield the actions that the kernel has stated, from the `first` on."""
        from optsched.simulator import _core

        news, state = self._news, self.state
        stated = slice(first, news.counts[_core.N_ACTIONS])
        limit = 0.0
        columns = (column[stated].tolist() for column in (news.kind, news.job, news.value))
        for kind, job, value in zip(*columns):
            if kind == _core.LIMIT:
                limit = value
            elif kind == _core.START:
                runs = state.runs[state.first_run[job] : state.last_run[job]].tolist()
                yield Start(job, tuple(map(tuple, runs)), limit)
            else:
                yield Wake(value)

    def record(self, problem_solver: ProblemSolver, at_submission: Mapping[float, float]) -> None:
        """Hand the problems that the kernel has answered to the problem solver."""
        counts, given, chosen = self.state.counts[0], self._given, self._chosen
        answered, number = slice(counts.problems), int(counts.problems)
        counts.problems = 0
        if chosen is None or not number:
            return
        found, missing = Status.FEASIBLE, Status.NO_SOLUTION
        if chosen.is_compared:
            found, missing = Status.OPTIMAL, Status.INFEASIBLE
        times, decisions, jobs, has, *numbers, works = (
            column[answered].tolist() for column in self.state.problems
        )
        objectives, heuristics, bounds = (
            [one if there else None for one, there in zip(column, has)] for column in numbers
        )
        processors, on = self._system.processors, f"{given['nodes']}x{given['processors']}"
        problem_solver.record(
            "threshold-allocation",
            times=[at_submission.get(time, time) for time in times],
            decisions=decisions,
            sizes=[f"{processors[job]} on {on}" for job in jobs],
            statuses=[found if there else missing for there in has],
            objectives=objectives,
            heuristics=heuristics if chosen.is_compared else None,
            bounds=bounds if chosen.is_compared else None,
            works=works,
        )


def _is_known(chosen: ChosenSolver) -> bool:
    """Return whether the decision kernel can answer as a solver does, without a time limit."""
    is_own = not chosen.is_compared or type(chosen.fallback) is LessConsumeThreshold
    return type(chosen.solver) in KNOWN and is_own and chosen.budget.seconds is None
