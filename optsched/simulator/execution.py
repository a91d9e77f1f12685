"""Execution models: how fast a job runs where it was placed, and what its neighbours do to it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from optsched.machines.machine import Allocation
from optsched.simulator.system import System


class ExecutionModel:
    """Every job runs at speed 1 wherever it is placed; a subclass changes that.

    A job has work left, the trace's run time in seconds at first, and a speed: work done per
    second. The engine integrates exactly between changes of speed.
    """

    name: ClassVar[str] = "rigid"

    def delay(self, job: int, allocation: Allocation, system: System) -> float:
        """Return the seconds from the start of `job` to the beginning of its work."""
        return 0.0

    def started(
        self, job: int, allocation: Allocation, system: System
    ) -> Iterable[tuple[int, float]]:
        """Return (job, speed) for every running job whose speed the start of `job` changes."""
        return ()

    def ended(
        self, job: int, allocation: Allocation, system: System
    ) -> Iterable[tuple[int, float]]:
        """Return (job, speed) for every running job whose speed the end of `job` changes."""
        return ()
