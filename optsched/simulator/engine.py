"""The event engine: submissions, ends and timers, and the decisions between these events."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from heapq import heappop, heappush
from typing import TYPE_CHECKING

import numpy as np

from optsched.machines.machine import Machine
from optsched.numbers import counted
from optsched.schedule import Migration, Schedule, State
from optsched.simulator.actions import Action, Migrate, Move, Share, Start, Wake
from optsched.simulator.execution import ExecutionModel
from optsched.simulator.failures import refused
from optsched.simulator.holds import Holds
from optsched.simulator.system import System

if TYPE_CHECKING:
    from optsched.simulator.journal import Journal
    from optsched.simulator.policy import Policy
    from optsched.simulator.problem_solver import NoProblems, ProblemSolver
    from optsched.traces.trace import Trace


NEVER = math.inf

ONCE = (None,)

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


@dataclass(eq=False, repr=False)
class Engine:
    """The event engine, which runs a cleaned trace on an empty machine under a policy.

    A running job has work left (seconds at speed 1). The execution model sets its speed, and the
    policy its share of the time. The end of a job is predicted at its start and at each change of
    speed or share; an outdated prediction is recognized by its time and skipped.

    Parameters
    ----------
    execution : ExecutionModel, optional
        The model that sets the speeds of jobs; by default every job runs at speed 1.
    order : EventOrder
        The order of the events of an instant.
    journal : Journal, optional
        Records every event and action.
    observe : callable, optional
        Called with the engine whenever the events and decisions of an instant are done.
    progress : callable, optional
        Called every `PROGRESS_EVERY` decisions and at the end, with the number of jobs that have
        left the queue and the simulated time.

    Attributes
    ----------
    start, end : list of float or None
        Start and end of each job in seconds.
    state : list of State
        State of each job.
    resources : list of str
        The processors that each job held, as interval sets.
    paused : list of float
        Seconds for which each job held processors and did not run, because of its share of the
        time or of a migration.
    migrations : list of Migration
        The migrations so far.
    reasons : dict of int to str
        Why jobs were rejected.
    decisions : int
        Number of decisions so far.
    due : float
        When the next decision is due; infinite if none is.
    """

    trace: Trace
    machine: Machine
    policy: Policy
    problem_solver: ProblemSolver | NoProblems
    execution: ExecutionModel | None = None
    order: EventOrder = EventOrder.BATCHED
    journal: Journal | None = None
    observe: Callable[[Engine], None] | None = None
    progress: Callable[[int, float], None] | None = None

    def __post_init__(self) -> None:
        trace = self.trace
        self.system = System.before(trace, self.machine, self.problem_solver.pose)
        jobs = len(trace)
        self.runtime: list[float] = trace.runtime.tolist()
        self.start = self.system.start
        self.end: list[float | None] = [None] * jobs
        self.state = [State.UNSUBMITTED] * jobs
        self.resources = [""] * jobs
        self.decisions = 0
        self.held = self.system.held
        self.work_left = self.runtime.copy()
        self.speed = [1.0] * jobs
        self.share = [1.0] * jobs
        self.paused = [0.0] * jobs
        self.migrations: list[Migration] = []
        self._last_migration: dict[int, int] = {}  # place in that list
        self.reasons: dict[int, str] = {}
        self._works_since = [0.0] * jobs
        self._ends_at = [NEVER] * jobs
        self._killed_at = [NEVER] * jobs
        self._ends: list[tuple[float, int, int]] = []
        self._predictions = 0
        self._overruns: set[int] = set()
        self._next = 0
        self.due = NEVER
        self._wakes: list[float] = []
        self._eligible: list[tuple[float, int]] = []
        self._held_back: set[int] = set()
        self._last_start = self.machine.last_starts(self.system.submit, self.system.requested_time)
        self._expiring: list[tuple[float, int]] = []
        self.holds = Holds(trace, self.state, self.start) if self.machine.follows_requests else None
        self._busy_until = -NEVER

    def run(self) -> None:
        """Process all events, until every job has ended, is rejected or can never start."""
        system, ends, submit = self.system, self._ends, self.system.submit
        one_by_one = self.order is EventOrder.ONE_BY_ONE
        events = self._one_by_one if one_by_one else self._batched
        at_every_event = self.policy.interval == 0
        jobs = len(submit)
        if self.execution is not None:  # first: checks the columns that the policy reads too
            self.execution.begin(system, self.trace)
        self.policy.begin(system)
        while True:
            submission = submit[self._next] if self._next < jobs else NEVER
            end = ends[0][0] if ends else NEVER
            wake = self._wakes[0] if self._wakes else NEVER
            eligible = self._eligible[0][0] if self._eligible else NEVER
            now = min(submission, end, wake, eligible, self.due)
            if self._expiring and self._expiring[0][0] < now:
                self._expire(*heappop(self._expiring))
                continue
            system.now = now
            if now == NEVER:
                break
            for _ in events(now):
                self._request_decision(now)
                if at_every_event and self.due == now:
                    self._decide()
            if wake == now:
                heappop(self._wakes)
                self._request_decision(now)
            if self.due == now:
                self._decide()
            if self.observe is not None:
                self.observe(self)
        self._report_progress()

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings about what the trace asks and the run cannot follow."""
        absent = self.holds.absent if self.holds is not None else 0
        if not absent:
            return ()
        where = f"{counted(absent, 'condition')} on jobs that are not in the trace"
        return (f"dependencies: {where}, taken as fulfilled",)

    def schedule(self) -> Schedule:
        """Return the schedule so far."""
        return Schedule(
            start=np.array(self.start, dtype=np.float64),
            end=np.array(self.end, dtype=np.float64),
            state=np.array(self.state, dtype=object),
            resources=self.resources,
            decisions=self.decisions,
            paused=np.array(self.paused, dtype=np.float64),
            migrations=tuple(self.migrations),
            reasons=self.reasons,
        )

    def set_speed(self, job: int, speed: float) -> None:
        """Change the speed of a running job from now on."""
        self._count_work(job)
        self.speed[job] = speed
        if self.journal is not None:
            self.journal.record(self.system.now, "speed", job, speed)
        self._predict_end(job)

    def set_share(self, job: int, share: float) -> None:
        """Change a running job's share of the time from now on.

        A job whose share has been 0 since it got its processors starts now.
        """
        if not 0 <= share <= 1:
            raise ValueError(f"share {share} of job row {job}; expected from 0 to 1")
        self._count_work(job)
        if not self.share[job] and share and self.work_left[job] == self.runtime[job]:
            self.start[job] = self._works_since[job]
            self.paused[job] = 0.0
        self.share[job] = share
        if self.journal is not None:
            self.journal.record(self.system.now, "share", job, share)
        self._predict_end(job)

    def _batched(self, now: float) -> Iterable[None]:
        """Process the ends, then the submissions of an instant; return one item if any."""
        ends, submit = self._ends, self.system.submit
        happened = False
        while ends and ends[0][0] == now:
            happened = self._end(now, heappop(ends)[2]) or happened
        while self._next < len(submit) and submit[self._next] == now:
            self._submit(self._next)
            happened = True
        while self._eligible and self._eligible[0][0] == now:
            happened = self._let_go(heappop(self._eligible)[1]) or happened
        return ONCE if happened else ()

    def _one_by_one(self, now: float) -> Iterable[None]:
        """Process the events of an instant, submissions first; yield after each.

        A job that ends at its estimated end releases its processors before the first event, since
        the scheduler could rely on them from now on.
        """
        ends, submit = self._ends, self.system.submit
        due = []
        while ends and ends[0][0] == now:
            job = heappop(ends)[2]
            on_estimate = job in self.held and self.system.running.estimated_end(job) == now
            if not on_estimate or self._end(now, job):
                due.append((job, on_estimate))
        while self._next < len(submit) and submit[self._next] == now:
            self._submit(self._next)
            yield
        for job, on_estimate in due:
            if on_estimate or self._end(now, job):
                yield
        while self._eligible and self._eligible[0][0] == now:
            if self._let_go(heappop(self._eligible)[1]):
                yield

    def _request_decision(self, at: float) -> None:
        """Schedule a decision, after the present one has been charged for, and at a tick if any."""
        if self._busy_until > at:
            at = self._busy_until
        interval = self.policy.interval
        if interval:
            tick = math.ceil(at / interval)
            while tick * interval < at:  # the quotient was rounded down
                tick += 1
            at = tick * interval
        if at < self.due:
            self.due = at

    def _report_progress(self) -> None:
        if self.progress is not None:
            self.progress(self._next - len(self.system.queue), self.system.now)

    def _decide(self) -> None:
        system, problem_solver = self.system, self.problem_solver
        if self.decisions % PROGRESS_EVERY == 0:
            self._report_progress()
        self.due = NEVER
        self.decisions += 1
        problem_solver.begin_decision(system.now)
        waiting = len(system.queue)
        actions = self.policy.decide(system)
        for action in actions:
            try:
                self._execute(action)
            except Exception as error:
                found = refused(error, self.policy, self.execution, system, action, actions)
                if found is error:
                    raise
                raise found from error
        system.submitted.clear()
        system.ended.clear()
        system.rejected.clear()
        if problem_solver.charged:
            self._busy_until = system.now + problem_solver.charged
        if self.policy.interval and 0 < len(system.queue) < waiting:
            # the jobs just started change the decision at the next tick
            self._request_decision(system.now + self.policy.interval / 2)

    def _execute(self, action: Action) -> None:
        if isinstance(action, Start):
            self._start(*action)
        elif isinstance(action, Share):
            self.set_share(*action)
        elif isinstance(action, Move):
            self._move(action.places)
        elif isinstance(action, Migrate):
            self._migrate(*action)
        elif isinstance(action, Wake):
            if not action.at > self.system.now:
                raise ValueError(f"wake at {action.at} requested at {self.system.now}")
            heappush(self._wakes, action.at)
        else:
            raise TypeError(f"{action!r} is no action")

    def _submit(self, job: int) -> None:
        system = self.system
        self._next += 1
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
            heappush(self._expiring, (last.at, job))
        self.state[job] = State.WAITING
        self.system.queue.append(job)
        self.system.submitted.append(job)
        if self.journal is not None:
            self.journal.record(self.system.now, "waiting", job)

    def _expire(self, at: float, job: int) -> None:
        """Reject a job that still waits after the last time at which it could start."""
        if self.state[job] is State.WAITING:
            self.system.now = at
            self.system.queue.remove(job)
            self.system.rejected.append(job)
            if job in self.system.submitted:  # the policy has not seen it
                self.system.submitted.remove(job)
            self._reject(job, self._last_start[job].reason)
            self._request_decision(at)

    def _hold(self, job: int, until: float | None) -> None:
        """Hold a job until a time, `NEVER` if not yet known; reject it if there is none."""
        if until is None:
            self._held_back.discard(job)
            self._reject(job, "a job that it depends on has ended otherwise")
            return
        if job not in self._held_back:
            self.state[job] = State.WAITING
            self._held_back.add(job)
            if self.journal is not None:
                self.journal.record(self.system.now, "held", job)
        if until < NEVER:
            heappush(self._eligible, (max(until, self.system.now), job))

    def _let_go(self, job: int) -> bool:
        """Put a job that was held into the queue; return whether it is still held."""
        if job not in self._held_back:
            return False
        self._held_back.remove(job)
        self._enqueue(job)
        return True

    def _review_dependents(self, job: int) -> None:
        """Hold the jobs that depend on a job until the time that is known now."""
        if self.holds:
            for other in self.holds.dependents(job):
                if other in self._held_back:
                    self._hold(other, self.holds.eligible(other))

    def _start(self, job: int, place: object, limit: float | None) -> None:
        system = self.system
        system.queue.remove(job)
        if place is None:
            allocation = system.machine.allocate(system.demands[job])
        else:
            allocation = system.machine.claim(place, system.demands[job])
        begins = system.now + self.problem_solver.charged
        self.held[job] = allocation
        self.start[job] = begins
        self.state[job] = State.RUNNING
        self._works_since[job] = begins
        estimated_end = begins + (system.requested_time[job] if limit is None else limit)
        if self.policy.enforces_limits:
            self._killed_at[job] = estimated_end
        system.running.add(job, estimated_end)
        if self.journal is not None:
            self.journal.record(begins, "start", job, system.machine.place_text(allocation))
            if limit is not None:
                self.journal.record(begins, "limit", job, limit)
        self._review_dependents(job)
        if self.execution is not None:
            self._works_since[job] += self.execution.delay(job, allocation, system)
            for changed, speed in self.execution.started(job, allocation, system):
                self.set_speed(changed, speed)
        self._predict_end(job)

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
            self._count_work(job)
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
            added = delay - max(0.0, self._works_since[job] - now)
            row = Migration(now, job, source[job], taken, job in parked, delay)
            at = self._last_migration.get(job, -1)
            if at >= 0 and self.migrations[at].time == now:  # one stop: no time in between
                earlier = self.migrations[at]
                row = row._replace(left=earlier.left, parked=row.parked or earlier.parked)
                self.migrations[at] = row
            else:
                self._last_migration[job] = len(self.migrations)
                self.migrations.append(row)
            self._works_since[job] = now + delay
            self.paused[job] += added
            self._killed_at[job] += added
            system.running.put_off(job, added)
            self._predict_end(job)

    def _count_work(self, job: int) -> None:
        """Count the work that a job has done up to now: 0 during its start-up delay."""
        now, since = self.system.now, self._works_since[job]
        if now > since:
            share = self.share[job]
            self.work_left[job] -= (now - since) * share * self.speed[job]
            if share != 1.0:
                self.paused[job] += (now - since) * (1.0 - share)
            self._works_since[job] = now

    def _predict_end(self, job: int) -> None:
        # rounding may bring the work left below 0: such a job ends now, not earlier
        work, speed = max(0.0, self.work_left[job]), self.share[job] * self.speed[job]
        ends_at = self._works_since[job] + work / speed if speed else NEVER
        killed_at = self._killed_at[job]
        if ends_at > killed_at + KILL_TOLERANCE:
            ends_at = killed_at
            self._overruns.add(job)
        elif self._overruns:
            self._overruns.discard(job)
        if ends_at != self._ends_at[job]:
            self._ends_at[job] = ends_at
            if ends_at == NEVER:
                return
            self._predictions += 1
            heappush(self._ends, (ends_at, self._predictions, job))

    def _end(self, now: float, job: int) -> bool:
        """End a job unless the prediction is outdated; return whether the job ended."""
        if self._ends_at[job] != now:
            return False
        system = self.system
        self._ends_at[job] = NEVER
        self._count_work(job)
        allocation = self.held.pop(job)
        system.machine.release(allocation)
        system.running.remove(job)
        system.ended.append(job)
        self.end[job] = now
        self.resources[job] = system.machine.resources(allocation)
        self.state[job] = State.KILLED if job in self._overruns else State.FINISHED
        if self.journal is not None:
            self.journal.record(now, self.state[job].name.lower(), job)
        self._review_dependents(job)
        if self.execution is not None:
            for changed, speed in self.execution.ended(job, allocation, system):
                self.set_speed(changed, speed)
        return True
