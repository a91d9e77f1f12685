"""Invariants of a simulation, checked after every event with ``--check``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from optsched.schedule import State

if TYPE_CHECKING:
    from optsched.simulator.engine import Engine

ROUNDING = 1e-6
"""Relative rounding error allowed in the conservation of work."""

STEPS = 64
"""Least differences of times, at the end of a job, that its work may be off by in addition."""


class InvariantError(AssertionError):
    """The simulator, a policy or an execution model broke an invariant: a bug, never bad input."""


class InvariantChecker:
    """Checks that no processor is held twice, no work is lost, and no job disappears.

    Attributes
    ----------
    checks : int
        Number of checks so far.
    """

    def __init__(self) -> None:
        self.checks = 0
        self._last = float("-inf")

    def check(self, engine: Engine) -> None:
        """Check the state of `engine` between two events.

        Raises
        ------
        InvariantError
            If an invariant does not hold; the message lists all such invariants.
        """
        self.checks += 1
        system = engine.system
        found = system.machine.violations(engine.held)
        if system.now < self._last:
            found.append(f"time runs backwards, from {self._last} to {system.now}")
        self._last = system.now
        if sorted(system.running) != sorted(engine.held):
            found.append("the running jobs are not those that hold processors")
        if list(system.queue) != sorted(set(system.queue)):
            found.append("the queue is out of order or holds a job twice")
        both = set(system.queue) & set(engine.held)
        found += [f"job row {job} waits and runs" for job in both]
        found += [
            f"job row {job} has {engine.work_left[job]} s of work left"
            for job in engine.held
            if engine.work_left[job] < -ROUNDING * engine.runtime[job]
        ]
        if found:
            raise InvariantError(f"at {system.now} s: " + "; ".join(found))

    def check_end(self, engine: Engine) -> None:
        """Check, after the last event, that every job is accounted for and its work conserved.

        Raises
        ------
        InvariantError
            As by `check`.
        """
        found = []
        for job, state in enumerate(engine.state):
            if state in (State.UNSUBMITTED, State.RUNNING):
                found.append(f"job row {job} is {state.name.lower()} after the last event")
            if state is State.FINISHED:
                left = engine.work_left[job]
                coarse = STEPS * math.ulp(engine.end[job] or 0.0)
                if abs(left) > ROUNDING * max(1.0, engine.runtime[job]) + coarse:
                    found.append(f"job row {job} finished with {left} s of work left")
        if found:
            raise InvariantError("at the end: " + "; ".join(found))
