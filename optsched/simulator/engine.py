"""The event engine: submissions, ends and timers, and the decisions between these events."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

import numpy as np

from optsched import registry
from optsched.machines.machine import Machine
from optsched.numbers import counted
from optsched.schedule import Migration, Schedule, State
from optsched.simulator import _core
from optsched.simulator.compiled_decisions import (
    CompiledDecisions,
    CompiledRun,
    hear,
    stated,
    worth_compiling,
)
from optsched.simulator.execution import ExecutionModel, Speeds
from optsched.simulator.policy import Action, Migrate, Move, Policy, Share, Start, Wake, is_extended
from optsched.simulator.system import Holds, System
from optsched.simulator.user_code import refused

if TYPE_CHECKING:
    from optsched.simulator.problem_solver import ProblemSolver
    from optsched.simulator.system import Journal
    from optsched.traces.trace import Trace


NEVER = math.inf

# The attributes of an enumeration are slow.
WAITING, RUNNING = State.WAITING, State.RUNNING
FINISHED, KILLED = State.FINISHED, State.KILLED

PROGRESS_EVERY = 1000
"""Decisions between two calls of the progress callback."""

KILL_TOLERANCE = 1e-6
"""Seconds by which rounding may take a job beyond its time limit without its being killed."""


class EventOrder(StrEnum):
    """The order of the events of an instant.

    ``batched``: all ends, then all submissions, then one decision. ``one-by-one``: each event
    alone, submissions before ends, a decision after each.
    """

    BATCHED = "batched"
    ONE_BY_ONE = "one-by-one"


LIKE = {"int": 0, "float": 0.0}
"""Numbers of the types of the parameters of kernels."""


class _Kernels:
    """The kernels of the core, bound to a run when they are first called."""

    def __init__(self, run: CompiledRun) -> None:
        self._given = {"core": run.core, "way": run.way, "news": run.news}
        self._bind = run.bind

    def __getattr__(self, name: str) -> Callable[..., Any]:
        kernel = getattr(_core, name)
        taken = inspect.signature(kernel).parameters
        given = [self._given[one] for one in taken if one in self._given]
        numbers = [LIKE[taken[one].annotation] for one in taken if one not in self._given]
        bound = self._bind(kernel, *given, numbers=numbers)
        setattr(self, name, bound)
        return bound


@dataclass(eq=False, repr=False)
class Engine:
    """The event engine, which runs a cleaned trace on an empty machine under a policy.

    A running job has work left (seconds at speed 1). The execution model sets its speed, and the
    policy its share of the time. The core (`optsched.simulator._core`) predicts the end of a job at
    its start and at each change of speed or share, and orders all events; the engine keeps what a
    policy sees, and carries its actions out. Where the decision of the policy is a kernel and
    nothing reads the queue or the machine, the engine keeps neither: the core carries out the
    actions.
    """

    trace: Trace
    machine: Machine
    policy: Policy
    problem_solver: ProblemSolver
    execution: ExecutionModel | None = None
    order: EventOrder = EventOrder.BATCHED
    journal: Journal | None = None
    observe: Callable[[Engine], None] | None = None  # called at the end of each instant
    # called with the jobs that have left the queue and the time
    progress: Callable[[int, float], None] | None = None
    compiled_from: int | None = 0  # number of jobs, see `worth_compiling`

    def __post_init__(self) -> None:
        trace, jobs = self.trace, len(self.trace)
        self.system = System.before(trace, self.machine, self.problem_solver.pose)
        self.start = self.system.start
        self.state = [State.UNSUBMITTED] * jobs
        self._last_start = self.machine.last_starts(self.system.submit, self.system.requested_time)
        self.holds = Holds(trace, self.state, self.start) if self.machine.follows_requests else None
        submit, runtime, requested = (
            column.astype(np.float64)
            for column in (trace.submit, trace.runtime, trace.requested_time)
        )
        admitted = np.ones(jobs, dtype=np.bool_)
        self.core = core = _core.new_core(submit, runtime, requested, admitted)
        self._news = news = _core.new_news(jobs)
        # a number of a view takes half as long to read as one of an array
        self._counts, self._ended, self._submitted, self._overruns = (
            column.data for column in (news.counts, news.ended, news.submitted, core.overruns)
        )
        self.resources = [""] * jobs
        self.held = self.system.held
        self.migrations: list[Migration] = []
        self._last_migration: dict[int, int] = {}  # place in that list
        self.reasons: dict[int, str] = {}
        self._held_back: set[int] = set()
        # times of events that are kept here, with their jobs; heaps
        kinds = _core.LETS_GO, _core.EXPIRES, _core.WAKES_AT
        self._times: dict[int, list[tuple[float, int]]] = {kind: [] for kind in kinds}
        self._decisions: CompiledDecisions | None = None
        self._set_speeds: Callable[[int], object] | None = None
        self._loop: Callable[[int], int] | None = None
        self._is_followed = True
        self._handlers: dict[int, Callable[[], object]] = {}

    def prepare(self) -> None:
        """Let execution model and policy begin, and bind the kernels."""
        system, policy, execution = self.system, self.policy, self.execution
        if execution is not None:  # first: checks the columns that the policy reads too
            execution.begin(system, self.trace)
            self.core.requested[:] = system.requested_time  # the model may have raised it
        policy.begin(system)
        self._way = _core.Way(
            one_by_one=self.order is EventOrder.ONE_BY_ONE,
            tells=execution is not None or self._has_listeners(),
            watched=self.observe is not None,
            enforces=policy.enforces_limits,
            interval=float(policy.interval),
            tolerance=KILL_TOLERANCE,
        )
        run = CompiledRun(
            self.trace,
            self.machine,
            self.problem_solver,
            self.core,
            self._way,
            self._news,
            execution,
            is_alone=execution is None and not self._is_seen(),
            may_compile=worth_compiling(len(self.trace), self.compiled_from),
        )
        self._decisions = None if policy.compiled is None else policy.compiled(run)
        if self._decisions is None or not self._decisions.answers:
            self.problem_solver.prepare(policy.posed())
        self._is_followed = self._decisions is None or self._needs_view(run)
        if run.is_alone and self._decisions is not None:
            self._loop = self._decisions.run
        self._kernels = _Kernels(run)
        tally = self.core.tally
        if self._is_followed:
            self._handlers = {
                _core.DECIDE: self._decide,
                _core.ENDED: lambda: self._end(tally.item(_core.CHANGED)),
                _core.SUBMITTED: lambda: self._submit(tally.item(_core.CHANGED)),
                _core.LET_GO: self._let_go,
                _core.EXPIRED: self._expire,
                _core.WOKEN: partial(self._next_of, _core.WAKES_AT),
                _core.SETTLED: lambda: self.observe and self.observe(self),
            }
            return
        for job in range(len(self.trace)):  # those that can never start are rejected at once
            if not policy.admits(job, system):
                self.core.admitted[job] = False
                self.reasons[job] = system.machine.why_never(system.demands[job])
        self._handlers = {
            _core.DECIDE: self._decide_unseen if self._loop is None else self._report_progress,
            _core.OPEN: partial(self._complete_unseen, _core.OPEN),
            _core.WRONG: partial(self._complete_unseen, _core.WRONG),
            _core.STARTED: self._start_unseen,
            _core.ENDED: self._end_unseen,
            _core.SUBMITTED: lambda: None,
        }
        if self._set_speeds is not None:
            for event in (_core.STARTED, _core.ENDED):
                self._handlers[event] = partial(self._set_speeds, event)

    def run(self) -> None:
        """Process all events, until every job has ended, is rejected or can never start."""
        if not self._handlers:
            self.prepare()
        system, handlers, clock = self.system, self._handlers, self.core.clock.data
        advance = self._kernels.advance if self._loop is None else self._advance_alone
        while event := advance():
            system.now = clock[_core.NOW]
            handlers[event]()
        system.now = clock[_core.NOW]
        if self._decisions is not None:
            if self._news.counts[_core.FULL]:
                raise RuntimeError(
                    "a decision kernel has stated more actions than there is room for"
                )
            self._decisions.record(self.problem_solver)
        self._report_progress()

    def _advance_alone(self) -> int:
        """Have a kernel make the decisions too, up to a problem that it leaves open."""
        assert self._loop is not None
        return self._loop(PROGRESS_EVERY - self.decisions % PROGRESS_EVERY)

    def _has_listeners(self) -> bool:
        """Return whether something beside policy and execution model depends on single events."""
        return bool(
            self.journal is not None or self.observe is not None or self.holds or self._last_start
        )

    def _is_seen(self) -> bool:
        """Return whether something beside a decision kernel reads the queue or the machine."""
        return self._has_listeners() or is_extended(type(self.policy))

    def _needs_view(self, run: CompiledRun) -> bool:
        """Return whether something reads the queue or the machine while a kernel decides."""
        execution = self.execution
        if execution is None or self._is_seen():
            return self._is_seen()
        assert self._decisions is not None
        if vars(type(execution)).get("places_suffice", False):
            return not self._decisions.states_places
        if execution.compiled is not None and not is_extended(type(execution)):
            self._set_speeds = execution.compiled(run, self._decisions)
        return self._set_speeds is None

    @property
    def decisions(self) -> int:
        """Number of decisions so far."""
        return int(self.core.tally[_core.DECISIONS])

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings about what the policy assumes or the trace asks, and the run cannot follow."""
        found = []
        execution, assumed = self.execution, self.policy.execution
        if execution and assumed and not isinstance(execution, registry.executions[assumed]):
            found.append(
                f"policy {self.policy.name!r} decides for execution model {assumed!r}; the jobs "
                f"run under {execution.name!r}, so its estimates do not hold"
            )
        if absent := self.holds.absent if self.holds is not None else 0:
            where = f"{counted(absent, 'condition')} on jobs that are not in the trace"
            found.append(f"dependencies: {where}, taken as fulfilled")
        return tuple(found)

    def schedule(self) -> Schedule:
        """Return the schedule so far."""
        core = self.core
        resources: Sequence[str] = self.resources
        state = np.array(self.state, dtype=object)
        if not self._is_followed:
            assert self._decisions is not None
            resources = self._decisions.resources()
            state = np.where(core.overruns, State.KILLED, State.FINISHED).astype(object)
            state[np.isnan(core.end)] = State.WAITING
            state[~core.admitted] = State.REJECTED
        return Schedule(
            start=core.start,
            end=core.end,
            state=state,
            resources=resources,
            decisions=self.decisions,
            paused=core.paused,
            migrations=tuple(self.migrations),
            reasons=self.reasons,
        )

    def _change_speeds(self, speeds: Speeds) -> None:
        """Change the speeds of running jobs from now on."""
        for job, speed in speeds:
            self._kernels.set_speed(job, float(speed))
            if self.journal is not None:
                self.journal.record(self.system.now, "speed", job, speed)

    def _report_progress(self) -> None:
        if self.progress is not None:
            tally, queue = self.core.tally, self.system.queue
            waiting = len(queue) if self._is_followed else int(tally[_core.WAITING])
            self.progress(int(tally[_core.NEXT]) - waiting, self.system.now)

    def _decide(self) -> None:
        system, problem_solver, core = self.system, self.problem_solver, self.core
        tally, has_ticks = core.tally, self.policy.interval > 0
        if self.progress is not None and self.decisions % PROGRESS_EVERY == 1:
            self._report_progress()
        problem_solver.begin_decision(system.now)
        if not self._way.tells:
            self._hear()
        if has_ticks:
            tally[_core.WAITED] = len(system.queue)
        if self._decisions is None:
            self._decide_in_python()
        else:
            hear(self._news, system)
            self._complete(self._decisions, self._decisions.decide())
            self._carry_out(self._decisions)
        system.submitted.clear()
        system.ended.clear()
        system.rejected.clear()
        if problem_solver.charged:
            core.clock[_core.CHARGED] = problem_solver.charged
        if has_ticks:
            tally[_core.WAITING] = len(system.queue)

    def _decide_in_python(self) -> None:
        actions = self.policy.decide(self.system)
        for action in actions:
            try:
                self._execute(action)
            except Exception as error:
                parts = self.policy, self.execution, self.system
                found = refused(error, *parts, action, actions)
                if found is error:
                    raise
                raise found from error

    def _complete(self, decisions: CompiledDecisions, outcome: int) -> None:
        """Have the problems of a decision answered until it is made."""
        while outcome == _core.OPEN:
            self._carry_out(decisions)  # what was stated before is not charged for this problem
            decisions.answer(self.problem_solver)
            self.core.clock[_core.CHARGED] = self.problem_solver.charged
            outcome = decisions.decide()
        if outcome == _core.WRONG:
            raise RuntimeError("a decision kernel has made an infeasible decision")

    def _carry_out(self, decisions: CompiledDecisions) -> None:
        """Carry out the actions that a kernel has stated."""
        if not self._is_followed:
            while not self._kernels.act():
                self._handlers[_core.STARTED]()
            return
        for action in stated(self._news, decisions.place):
            self._execute(action)

    def _decide_unseen(self) -> None:
        """Have the kernel decide; the core carries out what it states."""
        if self.progress is not None and self.decisions % PROGRESS_EVERY == 1:
            self._report_progress()
        assert self._decisions is not None
        if outcome := self._decisions.decide():
            self._complete_unseen(outcome)

    def _complete_unseen(self, outcome: int) -> None:
        """Have the problems answered that a decision which is not `DONE` has left open."""
        assert self._decisions is not None
        self.problem_solver.begin_decision(self.system.now, self.decisions)
        self._complete(self._decisions, outcome)

    def _start_unseen(self) -> None:
        """Have the execution model set speeds after a start that the core carries out."""
        assert self._decisions is not None
        assert self.execution is not None
        tally = self.core.tally
        job, value = tally.item(_core.CHANGED), self._news.value.item(tally.item(_core.ACTED))
        self.held[job] = self._decisions.place(job, value)
        self._change_speeds(self.execution.started(job, self.held[job], self.system))

    def _end_unseen(self) -> None:
        """Have the execution model set speeds after an end."""
        assert self.execution is not None
        job = self.core.tally.item(_core.CHANGED)
        self._change_speeds(self.execution.ended(job, self.held.pop(job), self.system))

    def _hear(self) -> None:
        """Catch up with the events since the last decision."""
        for at in range(self._counts[_core.N_ENDED]):
            self._end(self._ended[at])
        for at in range(self._counts[_core.N_SUBMITTED]):
            self._submit(self._submitted[at])

    def _execute(self, action: Action) -> None:
        if isinstance(action, Start):
            self._start(*action)
        elif isinstance(action, Share):
            self._share(*action)
        elif isinstance(action, Move):
            self._move(action.places)
        elif isinstance(action, Migrate):
            self._migrate(*action)
        elif isinstance(action, Wake):
            self._wake_at(action.at)
        else:
            raise TypeError(f"{action!r} is no action")

    def _wake_at(self, time: float) -> None:
        if not time > self.system.now:
            raise ValueError(f"wake at {time:.15g} requested at {self.system.now:.15g}")
        self._await(_core.WAKES_AT, time)

    def _await(self, kind: int, time: float, job: int = _core.NO_JOB) -> None:
        """Have an event of a kind at a time."""
        heappush(self._times[kind], (time, job))
        self.core.clock[kind] = self._times[kind][0][0]

    def _next_of(self, kind: int) -> tuple[float, int]:
        """Return the time and the job of the next event of a kind, which takes place."""
        found = heappop(self._times[kind])
        self.core.clock[kind] = self._times[kind][0][0] if self._times[kind] else NEVER
        return found

    def _submit(self, job: int) -> None:
        system = self.system
        if not self.policy.admits(job, system):
            self._reject(job, system.machine.why_never(system.demands[job]))
            return
        at = self.holds.eligible(job) if self.holds else -NEVER
        if at is None or at > system.now:
            self._hold(job, at)
        else:
            self._enqueue(job)

    def _reject(self, job: int, reason: str) -> None:
        """Reject a job, and those that can start only after it."""
        self.state[job] = State.REJECTED
        self.reasons[job] = reason
        if self.journal is not None:
            self.journal.record(self.system.now, "rejected", job, reason)
        self._review_dependents(job)

    def _enqueue(self, job: int) -> None:
        """Put a job into the queue, unless it can no longer start."""
        if (last := self._last_start.get(job)) is not None:
            if last.at < self.system.now:
                self._reject(job, last.reason)
                return
            self._await(_core.EXPIRES, last.at, job)
        self.state[job] = WAITING
        self.system.queue.append(job)
        self.system.submitted.append(job)
        if self.journal is not None:
            self.journal.record(self.system.now, "waiting", job)

    def _expire(self) -> None:
        """Reject a job that still waits after the last time at which it could start."""
        at, job = self._next_of(_core.EXPIRES)
        if self.state[job] is State.WAITING:
            self.system.queue.remove(job)
            self.system.rejected.append(job)
            if job in self.system.submitted:  # the policy has not seen it
                self.system.submitted.remove(job)
            self._reject(job, self._last_start[job].reason)
            self._kernels.request_decision(at)

    def _hold(self, job: int, until: float | None) -> None:
        """Hold a job until a time, `NEVER` if not yet known; reject it if there is none."""
        if until is None:
            self._held_back.discard(job)
            self._reject(job, "a job that it depends on has ended otherwise")
            return
        if job not in self._held_back:
            self.state[job] = WAITING
            self._held_back.add(job)
            if self.journal is not None:
                self.journal.record(self.system.now, "held", job)
        if until < NEVER:
            self._await(_core.LETS_GO, max(until, self.system.now), job)

    def _let_go(self) -> None:
        """Put a job that was held into the queue, if it is still held."""
        _, job = self._next_of(_core.LETS_GO)
        if job in self._held_back:
            self._held_back.remove(job)
            self._enqueue(job)
            self.core.tally[_core.HAPPENED] = 1

    def _review_dependents(self, job: int) -> None:
        """Hold the jobs that depend on a job until the time that is known now."""
        if self.holds:
            for other in self.holds.dependents(job):
                if other in self._held_back:
                    self._hold(other, self.holds.eligible(other))

    def _start(self, job: int, place: object, limit: float | None) -> None:
        system, charged = self.system, self.problem_solver.charged
        system.queue.remove(job)
        if place is None:
            allocation = system.machine.allocate(system.demands[job])
        else:
            allocation = system.machine.claim(place, system.demands[job])
        begins = system.now + charged
        if charged:
            self.core.clock[_core.CHARGED] = charged
        self.held[job] = allocation
        self.start[job] = begins
        self.state[job] = RUNNING
        seconds = system.requested_time[job] if limit is None else limit
        system.running.add(job, begins + seconds)
        if self.journal is not None:
            self.journal.record(begins, "start", job, system.machine.place_text(allocation))
            if limit is not None:
                self.journal.record(begins, "limit", job, limit)
        if self.holds:
            self._review_dependents(job)
        self._kernels.begin(job, float(seconds))
        if self.execution is not None:
            if delay := self.execution.delay(job, allocation, system):
                self.core.works_since[job] += delay
            self._change_speeds(self.execution.started(job, allocation, system))
        self._kernels.predict_end(job)

    def _share(self, job: int, share: float) -> None:
        """Change the share of the time of a running job; one that had none so far starts now."""
        if not 0 <= share <= 1:
            raise ValueError(f"share {share} of job row {job}; expected from 0 to 1")
        self._kernels.set_share(job, float(share))
        self.start[job] = self.core.start.item(job)
        if self.journal is not None:
            self.journal.record(self.system.now, "share", job, share)

    def _move(self, places: Mapping[int, object]) -> None:
        """Move running jobs; all of them release their places before the first claims another."""
        system = self.system
        for job in places:
            system.machine.release(self.held[job])
        for job, place in places.items():
            self.held[job] = system.machine.claim(place, system.demands[job])
            if self.journal is not None:
                where = system.machine.place_text(self.held[job])
                self.journal.record(system.now, "move", job, where)

    def _migrate(self, places: Mapping[int, object], parked: frozenset[int]) -> None:
        """Stop running jobs and restart them elsewhere; all stop before the first restarts."""
        system, machine, now = self.system, self.system.machine, self.system.now
        source = {job: machine.resources(self.held[job]) for job in places}
        begun = [job for job in places if (self.start[job] or 0.0) < now]  # others lose nothing
        for job in places:
            self._kernels.count_work(job)
            machine.release(self.held[job])
        for job, place in places.items():
            self.held[job] = machine.claim(place, system.demands[job])
            if self.journal is not None:
                self.journal.record(now, "migrate", job, machine.place_text(self.held[job]))
        delays: Sequence[float] = [0.0] * len(begun)
        if self.execution is not None:
            delays = self.execution.migrated(begun, parked, system)
        for job, delay in zip(begun, delays, strict=True):
            delay += self.problem_solver.charged  # the job is stopped during the decision
            taken = machine.resources(self.held[job])
            # a job that is stopped during a restart has not spent the rest of that delay
            added = delay - max(0.0, self.core.works_since.item(job) - now)
            row = Migration(now, job, source[job], taken, job in parked, delay)
            at = self._last_migration.get(job, -1)
            if at >= 0 and self.migrations[at].time == now:  # one stop: no time in between
                earlier = self.migrations[at]
                row = row._replace(left=earlier.left, parked=row.parked or earlier.parked)
                self.migrations[at] = row
            else:
                self._last_migration[job] = len(self.migrations)
                self.migrations.append(row)
            self._kernels.stop_until(job, float(now + delay), float(added))
            system.running.put_off(job, added)

    def _end(self, job: int) -> None:
        system, allocation = self.system, self.held.pop(job)
        system.machine.release(allocation)
        system.running.remove(job)
        system.ended.append(job)
        self.resources[job] = system.machine.resources(allocation)
        self.state[job] = KILLED if self._overruns[job] else FINISHED
        if self.journal is not None:
            self.journal.record(system.now, self.state[job].name.lower(), job)
        if self.holds:
            self._review_dependents(job)
        if self.execution is not None:
            self._change_speeds(self.execution.ended(job, allocation, system))
