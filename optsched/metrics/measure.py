"""What the figures of a summary are: names, units, groups, meanings, and their classes."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from optsched.machines.machine import Machine
from optsched.numbers import HOUR, LARGEST, MISSING, digits, percent, spoken
from optsched.schedule import Schedule
from optsched.traces.trace import Trace


class Group(StrEnum):
    """Group of measures, in the order of pages."""

    JOBS = "Jobs"
    WAITS = "Waits and slowdowns"
    MACHINE = "Use of the machine"
    LARGE = "Large jobs"
    PLACEMENT = "Placement and fragmentation"
    EXECUTION = "Execution"
    EVALUATED = "Evaluated jobs"
    POLICY = "Policy"
    PROBLEMS = "Problems and solvers"
    OTHER = "Other figures"


@dataclass(frozen=True)
class Measure:
    """A figure of ``summary.json``, as readers see it.

    Parameters
    ----------
    name : str
        Name on pages, such as ``mean wait``.
    unit : str
        ``seconds``; ``share``, a number from 0 to 1 that is shown in percent; ``percent``;
        ``processor-seconds``, which are shown as hours; ``trace time``, an instant in seconds that
        is shown in full, as files state it; any other noun in the plural, such as
        ``jobs``; or empty for a number without a unit.
    group : Group
        The group that the measure is shown in.
    meaning : str
        Definition, one sentence.
    by : str
        What the keys are if the figure is a mapping, such as ``reason``; empty for a single value.
    """

    name: str
    unit: str
    group: Group
    meaning: str
    by: str = ""

    def text(self, value: Any) -> str:
        """Return a value with its unit: ``1.22 days``, ``41.8%``, ``2,000 jobs``; a dash for None.

        Examples
        --------
        >>> wait = Measure("mean wait", "seconds", Group.WAITS, "Mean of the waits.")
        >>> wait.text(105_400)
        '1.22 days'
        >>> Measure("begin", "trace time", Group.MACHINE, "Begin.").text(1_064_980_211)
        '1,064,980,211 s'
        """
        if value is None or (isinstance(value, float) and not math.isfinite(value)):
            return MISSING
        if isinstance(value, bool):
            return "yes" if value else "no"
        if not isinstance(value, int | float) or abs(value) > LARGEST:
            return str(value)
        if self.unit in _SPECIAL:
            return _SPECIAL[self.unit](value)
        unit = self.unit.removesuffix("s") if value == 1 else self.unit
        return f"{digits(value)} {unit}".rstrip()


_SPECIAL: Mapping[str, Callable[[float], str]] = {
    "seconds": spoken,
    "share": percent,
    "percent": lambda value: f"{value:.4g}%",
    "processor-seconds": lambda value: f"{digits(float(value) / HOUR)} processor-hours",
    "trace time": lambda value: f"{value:,.12g} s",
}
"""Functions that write values of some units."""


def measures_in(group: Group, **stated: tuple[str, ...]) -> dict[str, Measure]:
    """Return measures of a group by key, from name, unit, meaning and perhaps `Measure.by`."""
    return {key: Measure(name, unit, group, *more) for key, (name, unit, *more) in stated.items()}


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
