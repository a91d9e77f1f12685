"""The contract of metrics: figures that a run has on some machines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from optsched.machines.machine import Machine
from optsched.schedule import Schedule
from optsched.traces.trace import Trace


class Metric(ABC):
    """Figures of a schedule on machines of some kind, added to the summary of the run.

    Attributes
    ----------
    name : str
        Set by the registry; ``run.metrics`` holds the metric under it.
    """

    name: ClassVar[str]

    @classmethod
    @abstractmethod
    def measure(
        cls, trace: Trace, machine: Machine, schedule: Schedule, large_from: int | None
    ) -> Metric | None:
        """Measure a schedule; None on machines of another kind.

        Parameters
        ----------
        trace : Trace
            The cleaned trace.
        machine : Machine
            The machine as it was at the end.
        schedule : Schedule
            When and where each job ran.
        large_from : int or None
            Jobs of at least this many processors are large; the tenth that needs most if None.
        """

    @abstractmethod
    def summary(self) -> dict[str, Any]:
        """Return the figures by name, JSON-able."""
