"""The contract of metrics that apply to certain machines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from optsched.machines.machine import Machine
from optsched.metrics.measure import Measure
from optsched.schedule import Schedule
from optsched.traces.trace import Trace


class Metric(ABC):
    """A metric of schedules on certain machines; its figures are added to the summary of the run.

    Attributes
    ----------
    name : str
        The registered name, which is the key of the metric in ``run.metrics``.
    measures : mapping of str to Measure
        What the figures of the summary are, by key: name, unit, group and meaning.
    of_jobs : bool
        Whether the figures are of jobs, and so of the measured ones, as opposed to the machine.
    """

    name: ClassVar[str]
    measures: ClassVar[Mapping[str, Measure]] = {}
    of_jobs: ClassVar[bool] = False

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
            The machine in its state at the end.
        schedule : Schedule
            Starts, ends, states and resources of the jobs.
        large_from : int or None
            Number of processors from which a job is large; None for the largest tenth.
        """

    @abstractmethod
    def summary(self) -> dict[str, Any]:
        """Return the figures by name, JSON-able."""
