"""Invariants of a simulation, checked after every event with ``--check``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from optsched.schedule import State
from optsched.simulator._core import DUE

if TYPE_CHECKING:
    from optsched.simulator.engine import Engine

ROUNDING = 1e-6
"""Relative rounding error allowed in the conservation of work."""

STEPS = 64
"""Least differences of times, at the end of a job, that its work may be off by in addition."""


class InvariantError(AssertionError):
    """The simulator, a policy or an execution model broke an invariant: a bug, never bad input."""


class InvariantChecker:
    """Checks that nothing is held twice, no work or job is lost, and promises hold.

    A job with a reservation starts by the time that `Policy.promised` states, at the first tick
    from then on if the policy has ticks. All promises of the moment are void when a job runs beyond
    its estimated end or a decision is charged for: then others start later than the policy assumes.
    """

    def __init__(self) -> None:
        self.checks = 0
        self._last = -math.inf
        self._next_end = math.inf  # the first estimated end of the jobs that ran at the last check
        self._promised: dict[int, float] = {}  # at the last check
        self._void: set[int] = set()

    def check(self, engine: Engine) -> None:
        """Check the state of `engine` between two events; one error lists what is broken."""
        self.checks += 1
        system = engine.system
        found = system.machine.violations(engine.held)
        if system.now < self._last:
            found.append(f"time runs backwards, from {self._last:.15g} to {system.now:.15g}")
        self._last = system.now
        if sorted(system.running) != sorted(engine.held):
            found.append("the running jobs are not those that hold processors")
        if system.queue != sorted(set(system.queue)):
            found.append("the queue is out of order or holds a job twice")
        both = set(system.queue) & set(engine.held)
        found += [f"job row {job} waits and runs" for job in both]
        found += [
            f"job row {job} has {engine.core.work_left[job]} s of work left"
            for job in engine.held
            if engine.core.work_left[job] < -ROUNDING * engine.trace.runtime[job]
        ]
        found += self._broken_promises(engine)
        if found:
            raise InvariantError(f"at {system.now:.15g} s: " + "; ".join(found))

    def _broken_promises(self, engine: Engine) -> list[str]:
        system, policy, found = engine.system, engine.policy, []
        promised = policy.promised(system)
        estimates = system.running.by_estimated_end
        following = estimates[0][0] if estimates else math.inf
        if self._next_end < system.now or following <= system.now or engine.problem_solver.charged:
            self._void.update(self._promised, promised)
        self._next_end = following
        for job, at in {**self._promised, **promised}.items():
            start = system.start[job]
            if job in self._void:
                continue
            if start is not None and start > at + policy.interval:
                found.append(f"job row {job} started at {start:.15g}, but was promised {at:.15g}")
            is_waiting = engine.state[job] is State.WAITING and job in promised
            if is_waiting and at <= system.now and engine.core.clock[DUE] == math.inf:
                found.append(f"job row {job} waits, but was promised to start by {at:.15g}")
        self._promised = {job: at for job, at in promised.items() if system.start[job] is None}
        return found

    def check_end(self, engine: Engine) -> None:
        """Check, after the last event, that every job is accounted for and its work conserved."""
        found = []
        for job, state in enumerate(engine.state):
            if state in (State.UNSUBMITTED, State.RUNNING):
                found.append(f"job row {job} is {state.name.lower()} after the last event")
            if state is State.FINISHED:
                left = engine.core.work_left[job]
                coarse = STEPS * math.ulp(engine.core.end[job])
                if abs(left) > ROUNDING * max(1.0, engine.trace.runtime[job]) + coarse:
                    found.append(f"job row {job} finished with {left} s of work left")
        if found:
            raise InvariantError("at the end: " + "; ".join(found))
