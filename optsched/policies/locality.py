"""Data-locality-aware scheduling on a cluster."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from optsched.errors import InputError
from optsched.executions.file_loading import FileLoading
from optsched.machines.cluster import Cluster, Cores
from optsched.machines.texts import Texts
from optsched.models.data_placement import DataPlacement
from optsched.models.fields import LARGEST_FIELD
from optsched.numbers import LONGEST
from optsched.policies.parts.planned_cores import PlannedCores
from optsched.policies.parts.planned_starts import PlannedStarts
from optsched.registry import policies
from optsched.schedule import Schedule, State
from optsched.settings import later
from optsched.simulator.actions import Action, Start, Wake
from optsched.simulator.chosen_solvers import choose_solvers
from optsched.simulator.policy import Answers, Policy
from optsched.simulator.system import System
from optsched.solvers.data_placement.rules import (
    EarliestFinishTime,
    FirstComeFirstServed,
    LocalityAndEvictionAware,
    LocalityAndEvictionMixed,
    LocalityAndEvictionOpportunistic,
    Rule,
)
from optsched.traces.rackham import BEFORE, RUNNING

if TYPE_CHECKING:
    from optsched.machines.machine import Machine
    from optsched.simulator.execution import ExecutionModel
    from optsched.simulator.problem_solver import ProblemSolver
    from optsched.traces.trace import Trace

REPLAYED = (
    FirstComeFirstServed,
    EarliestFinishTime,
    LocalityAndEvictionAware,
    LocalityAndEvictionOpportunistic,
    LocalityAndEvictionMixed,
)
"""Rules with a compiled replay."""

OF_RULES = ("backfill", "stop", "weight", "threshold", "loads", "evicted", "opportune")
"""Settings that are options of the rules."""


@policies.register("locality")
@dataclass
class Locality(Policy):
    """All waiting jobs have a planned place and start, chosen by the solver.

    Jobs are planned in the order of submission; `replan` says when the plan is recomputed. A job
    starts at its planned start.

    Parameters
    ----------
    backfill : {"none", "holes", "conservative"}
        Whether a job may start before one that was submitted earlier, on cores that are reserved
        for the earlier one. With ``holes``, the authors' backfilling, only now, on cores that are
        free now; with ``conservative`` at any time, without delay of earlier jobs.
    weight : int
        W, the weight of a second of loading against one of waiting (LEA, LEO, LEM).
    threshold : int
        Percentage of busy nodes from which on LEM saves loads.
    replan : {"authors", "events"}
        Times of a complete replan. ``authors``: when a job has ended while others waited, as in
        the authors' program; newly submitted jobs are added to the plan. ``events``: at every
        submission and end, as in the paper. ``conservative`` profiles are always rebuilt.
    stop : {"full", "short"}
        End of planning: when no free core is unreserved, or when fewer are than the next job
        requests, which saves time in the authors' last program.
    loads : {"now", "start"}
        Time from which the rest of a load in progress is counted: the decision, as in the authors'
        program, or the start of the job, as in the paper.
    evicted : {"unused", "memory"}
        Files of which a job evicts a part (LEA, LEO, LEM): those that no job uses any longer, as in
        the authors' program, or all in memory, as in the paper.
    opportune : {"scan", "node"}
        Nodes that LEO scores as EFT does: the first on which the job can start now and all behind
        it, as in the authors' program, or those on which it can start now, as in the paper.
    throttle : float
        Interval of planning in seconds, if above 0: only events at its multiples cause a plan, as
        in the program of the authors' published results (30). Jobs submitted at other times wait
        for such an event.

    Raises
    ------
    InputError
        If a number is negative, or too large.

    References
    ----------
    M. Gonthier, E. Larsson, L. Marchal, C. Nettelblad, S. Thibault, "Data-driven locality-aware
    batch scheduling", APDCM 2024, section IV.
    """

    backfill: Literal["none", "holes", "conservative"] = "none"
    weight: int = 500
    threshold: int = 100
    replan: Literal["authors", "events"] = "authors"
    stop: Literal["full", "short"] = "full"
    loads: Literal["now", "start"] = later("now")
    evicted: Literal["unused", "memory"] = later("unused")
    opportune: Literal["scan", "node"] = later("scan")
    throttle: float = 0.0

    machines: ClassVar[frozenset[str]] = frozenset({"cluster"})
    models: ClassVar[Mapping[str, Answers]] = {"data-placement": Answers("lea", "fcfs")}
    execution: ClassVar[str | None] = "file-loading"

    def __post_init__(self) -> None:
        LocalityAndEvictionMixed(weight=self.weight, threshold=self.threshold)  # checks them
        if not 0 <= self.throttle <= LONGEST:
            raise InputError(f"throttle {self.throttle}; expected seconds from 0 to {LONGEST:,}")

    def _options(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in OF_RULES}

    def posed(self) -> Mapping[str, Answers]:
        """Return the model, with the options of the rules."""
        return {
            model: answers._replace(options=self._options())
            for model, answers in self.models.items()
        }

    def begin(self, system: System) -> None:
        """Begin with an empty plan."""
        machine = system.machine
        assert isinstance(machine, Cluster)
        self._cores = PlannedCores(machine)
        self._planned = PlannedStarts()
        self._places: dict[int, Cores] = {}
        self._waiting: dict[int, None] = {}  # in the order of planning
        self._added: dict[int, None] = {}  # to be added to the plan
        self._wakes_at = -math.inf
        jobs = len(system.processors)
        unknown = np.full(jobs, -1, dtype=np.int64)
        self._job_ids = np.array(system.job_id, dtype=np.int64)
        self._processors = np.array(system.processors, dtype=np.int64)
        self._walltimes = np.ceil(system.requested_time).astype(np.int64)
        self._files = system.annotations.get("file", unknown)
        sizes = system.annotations.get("file_size", np.zeros_like(unknown))
        self._loads = sizes // machine.bandwidth
        self._capacity = machine.memory // machine.bandwidth
        # the columns of all jobs are checked here, in place of those of every plan
        columns = (self._processors, self._walltimes, self._files, self._loads)
        idle = np.zeros((machine.nodes, machine.cores), dtype=np.int64)
        DataPlacement(idle, *columns, capacity=self._capacity)
        self._opens_at, self._running_before = history(system)
        self._opened = False

    def admits(self, job: int, system: System) -> bool:
        """Return whether one node has enough cores."""
        assert isinstance(system.machine, Cluster)
        return system.processors[job] <= system.machine.cores

    def decide(self, system: System) -> Iterable[Action]:
        """Start the jobs planned for now, plan, and start the jobs that are then due."""
        (self._waiting if system.ended else self._added).update(dict.fromkeys(system.submitted))
        if system.now < self._opens_at:
            return
        for job in system.ended:
            self._cores.end(self._places.pop(job))
        if not self._opened:
            self._open(system)
        yield from self._start_due(system)
        since = system.now - self._opens_at
        if not self.throttle or (since and since % self.throttle == 0):
            self._replan(system)
            yield from self._start_due(system)
        upcoming = self._planned.next
        if system.now < upcoming < math.inf and upcoming != self._wakes_at:
            self._wakes_at = upcoming
            yield Wake(upcoming)

    def replays(self, problem_solver: ProblemSolver, execution: ExecutionModel | None) -> bool:
        """Return whether jobs load files, and a published rule plans as the policy is set."""
        model = "data-placement"
        rule = problem_solver.solvers[model].solver
        if type(execution) is not FileLoading or type(rule) not in REPLAYED:
            return False
        return rule == choose_solvers(self.posed(), {model: rule.name})[model].solver

    def replay_run(
        self,
        trace: Trace,
        machine: Machine,
        problem_solver: ProblemSolver,
        execution: ExecutionModel | None,
    ) -> Schedule | None:
        """Replay a run by a rule, unless it asks for what no kernel computes."""
        from optsched.machines._interval_text import interval_text
        from optsched.policies.parts import _locality_replay as compiled

        rule = problem_solver.solvers["data-placement"].solver
        if type(machine) is not Cluster or self.backfill == "conservative":
            return None
        assert isinstance(rule, Rule)
        assert isinstance(execution, FileLoading)
        system = System.before(trace, machine, problem_solver.pose)
        execution.begin(system, trace)
        self.begin(system)
        given = compiled.Rule(
            score=rule.score(),
            capacity=self._capacity,
            backfill=rule.backfill == "holes",
            short=rule.stop == "short",
            at_every_event=self.replan == "events",
            throttle=float(self.throttle),
            opens_at=float(self._opens_at),
            until_next=machine.files.kept == "next",
            latest=LARGEST_FIELD,
        )
        times = (trace.submit, trace.runtime, trace.requested_time)
        jobs = compiled.Jobs(
            *np.array(times, dtype=np.float64),
            *np.array((self._processors, self._walltimes, self._files, self._loads)),
        )
        self._plan_history(system, self._opens_at)
        memory = (machine.files.table, machine.files.latest_start)
        state = compiled.new_state(
            jobs,
            self._cores.available,
            *self._planned.rows,
            memory,
            execution.transfer,
            execution.waiting,
        )
        if not compiled.replay(state, given):
            raise RuntimeError("the replay of planning by a rule has found an infeasible plan")
        columns = (column[: state.tally[compiled.PROBLEMS]].tolist() for column in state.problems)
        posed, decisions, submitted, sizes, objectives = columns
        problem_solver.record(
            "data-placement",
            times=[system.submit[s] if s >= 0 else t for s, t in zip(submitted, posed)],
            decisions=decisions,
            sizes=[f"{size}x{machine.nodes}x{machine.cores}" for size in sizes],
            objectives=objectives,
            works=[machine.nodes * size for size in sizes],
        )
        held = state.held
        runs = compiled.runs_of(held.node, held.cores, machine.cores)
        final_state = np.where(held.killed, State.KILLED, State.FINISHED)
        final_state[np.isnan(held.start)] = State.WAITING
        return Schedule(
            start=held.start,
            end=held.end,
            state=final_state,
            resources=Texts(*interval_text(*runs)),
            decisions=int(state.tally[compiled.DECISIONS]),
        )

    def _replan(self, system: System) -> None:
        """Replan all waiting jobs, or add the submitted jobs to the plan.

        All jobs are replanned in any case if no job runs, since no end would cause a replan.
        """
        always = self.replan == "events" or self.backfill == "conservative"
        if self._added and (always or not system.running):
            self._waiting |= self._added
            self._added.clear()
            complete = True
        else:
            complete = bool(self._waiting and system.ended)
        if complete:
            self._cores.forget_plans()
            self._planned.clear()
            self._plan(self._waiting, system)
        elif system.submitted:
            self._plan(self._added, system)
            self._waiting |= self._added
            self._added.clear()

    def _open(self, system: System) -> None:
        """Let the jobs that ran before the first decision be the first of the waiting ones."""
        self._opened = True
        self._plan_history(system, system.now)
        for job in self._running_before:
            self._waiting[job] = self._added.pop(job)

    def _plan_history(self, system: System, now: float) -> None:
        """Plan the jobs that ran before the first decision, at `now`, on their nodes."""
        assert isinstance(system.machine, Cluster)
        for job, node in self._running_before.items():
            processors = system.processors[job]
            start, place = self._cores.earliest(node % system.machine.nodes, processors, now)
            self._cores.hold(place, start + system.requested_time[job])
            self._planned.add_place(job, place, start)

    def _start_due(self, system: System) -> Iterator[Action]:
        """Start the jobs whose planned start has come, in planned order.

        With charged decisions jobs start late, and a job planned behind such a job waits for its
        end.
        """
        machine = system.machine
        assert isinstance(machine, Cluster)
        for job, place in self._planned.pop_due(system.now, machine.is_free):
            del self._waiting[job]
            self._places[job] = place
            yield Start(job, place)
            self._cores.start(place, system.running.estimated_end(job))

    def _plan(self, waiting: Collection[int], system: System) -> None:
        """Pose the planning of jobs on the cores that are not planned yet."""
        rows = np.fromiter(waiting, dtype=np.int64, count=len(waiting))
        machine, now = system.machine, system.now
        assert isinstance(machine, Cluster)
        walltimes = self._walltimes[rows]
        reserved = None
        if self.backfill == "holes":
            reserved = self._cores.reserved_from(now)
        stated = {
            "available": self._cores.available_from(now),
            "processors": self._processors[rows],
            "walltimes": walltimes,
            "files": self._files[rows],
            "loads": self._loads[rows],
            "resident": machine.files.residents(now),
            "reserved": reserved if reserved is not None and reserved.any() else None,
            "occupied": machine.nodes_in_use(),
            "priorities": np.ones_like(walltimes),
            "load_weight": 1,
            "capacity": self._capacity,
            "partial": True,
            "noticed": self._cores.widest_hole if self.backfill == "holes" else None,
            "kept": machine.files.kept,
            "started": machine.files.started(now),
            "jobs": tuple(self._job_ids[rows].tolist()),
        }
        for value in stated.values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
        problem = DataPlacement.trusted(**stated)
        plan = system.pose(problem)
        self._cores.book(plan, walltimes, now)
        self._planned.add(rows, plan, now)


def history(system: System) -> tuple[float, dict[int, int]]:
    """Return the time of the first decision, and the nodes of the jobs that run at that time.

    The time is the submission of the first job after the history, or of the first job of all. The
    running jobs are in the order of their starts.
    """
    category = system.annotations.get("category")
    if category is None or not (category == BEFORE).any():
        return system.submit[0], {}
    first = int(np.flatnonzero(category == BEFORE)[0])
    running = np.flatnonzero(category == RUNNING)
    if not len(running):
        return system.submit[first], {}
    begun = np.argsort(system.annotations["history_start"][running], kind="stable")
    running = running[begun]
    nodes = system.annotations["history_node"][running]
    return system.submit[first], dict(zip(running.tolist(), nodes.tolist()))
