"""Execution models: how fast a job runs where it was placed, and what its neighbours do to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, NamedTuple

from numpy.typing import NDArray

from optsched.machines.machine import Allocation
from optsched.schedule import Schedule
from optsched.simulator.system import System
from optsched.traces.trace import Trace


class ExecutionReport(NamedTuple):
    """What an execution model has to say of a run.

    Parameters
    ----------
    columns : mapping of str to array, shape (jobs,)
        Columns of the table of jobs.
    figures : mapping
        Figures of the summary, JSON-able.
    notes : tuple of str
        What the user may not have meant.
    """

    columns: Mapping[str, NDArray[Any]] = {}
    figures: Mapping[str, Any] = {}
    notes: tuple[str, ...] = ()


class ExecutionModel:
    """Every job runs at speed 1 wherever it is placed; a subclass changes that.

    A job has work left, the trace's run time in seconds at first, and a speed: work done per
    second. The engine integrates exactly between changes of speed. A subclass that is named on the
    command line is a dataclass whose fields are its settings, registered with
    ``@executions.register(name)``.

    Attributes
    ----------
    name : str
        The registered name; of a model that is not registered, the name of its class.
    """

    name: ClassVar[str] = "rigid"

    def __init_subclass__(cls) -> None:
        """Name a model after its class, until it is registered under a name."""
        super().__init_subclass__()
        cls.name = cls.__name__

    def begin(self, system: System, trace: Trace) -> None:
        """Make ready to run a trace; whatever is remembered of an earlier run is forgotten."""

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

    def migrated(self, job: int, allocation: Allocation, parked: bool, system: System) -> float:
        """Return the seconds that `job` loses by its migration, from its stop to its next progress.

        Parameters
        ----------
        job : int
            A running job.
        allocation : Allocation
            What it holds now.
        parked : bool
            Whether it had to leave its place before it could have the other.
        system : System
            The state after the migration.
        """
        return 0.0

    def report(self, trace: Trace, schedule: Schedule) -> ExecutionReport:
        """Return what there is to say of the run after its end."""
        return ExecutionReport()
