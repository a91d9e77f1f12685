"""Execution models: the speed of a job in its allocation and beside its neighbors."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from numpy.typing import NDArray

from optsched.machines.machine import Allocation
from optsched.metrics.measure import Measure
from optsched.schedule import Schedule
from optsched.simulator.system import System
from optsched.traces.trace import Trace

Speeds = Iterable[tuple[int, float]]
"""Running jobs, each with its new speed in seconds of work per second of simulated time."""


class ExecutionReport(NamedTuple):
    """Figures and notes of an execution model about a run.

    Parameters
    ----------
    columns : mapping of str to array, shape (jobs,)
        Additional columns of the table of jobs.
    figures : mapping
        Additional figures of the summary, JSON-able.
    notes : tuple of str
        Warnings about settings that the user may not have intended.
    """

    columns: Mapping[str, NDArray[Any]] = {}
    figures: Mapping[str, Any] = {}
    notes: tuple[str, ...] = ()


class ExecutionModel:
    """Base class of execution models: every job runs at speed 1 in any allocation.

    A job has work left, at first its run time in the trace, and a speed: seconds of work done per
    second of simulated time. The engine integrates exactly between changes of speed. A subclass
    that is named on the command line is a dataclass whose fields are its settings, registered with
    ``@executions.register(name)``.

    Attributes
    ----------
    name : str
        The registered name, or the name of the class if the model is not registered.
    measures : mapping of str to Measure
        What the figures of `report` are, by key.
    places_suffice : bool
        Whether the model delays no job, and `started` and `ended` read no more of a system than its
        time, the places of running jobs (`held`), and what never changes. Where a class says so of
        itself, the engine can call it without keeping more; a subclass says it again.
    compiled : callable or None
        Method ``compiled(run, decisions)`` that binds a kernel ``set_speeds(event)`` to a run whose
        decisions are a kernel too, see `optsched.simulator.compiled_decisions`. The kernel sets
        delays and speeds after each start (`STARTED`) and end (`ENDED`) of the job in
        ``core.tally[CHANGED]``. None is returned for decisions that do not keep what the kernel
        needs, such as the places of jobs. A subclass that overrides another method does not use it.
    """

    name: ClassVar[str] = "rigid"
    places_suffice: ClassVar[bool] = False
    compiled: ClassVar[Callable[..., Any] | None] = None
    measures: ClassVar[Mapping[str, Measure]] = {}

    def __init_subclass__(cls) -> None:
        """Name a model after its class until it is registered."""
        super().__init_subclass__()
        cls.name = cls.__name__

    def begin(self, system: System, trace: Trace) -> None:
        """Prepare for a run of `trace`, and forget any earlier run."""

    def delay(self, job: int, allocation: Allocation, system: System) -> float:
        """Return the seconds from the start of `job` to the beginning of its work.

        The job is already in ``system.running`` and ``system.held``.
        """
        return 0.0

    def started(self, job: int, allocation: Allocation, system: System) -> Speeds:
        """Return the running jobs whose speed the start of `job` changes, each with its new speed.

        The job, which may be among them, is already in ``system.running`` and ``system.held``. A
        speed is in seconds of work per second of simulated time.
        """
        return ()

    def ended(self, job: int, allocation: Allocation, system: System) -> Speeds:
        """Return the running jobs whose speed the end of `job` changes, each with its new speed.

        The job is no longer in ``system.running`` and ``system.held``, and its `allocation` is
        free. A speed is in seconds of work per second of simulated time.
        """
        return ()

    def migrated(
        self, jobs: Sequence[int], parked: Collection[int], system: System
    ) -> Sequence[float]:
        """Return the seconds that jobs lose by migrating together, from stop to next progress.

        Parameters
        ----------
        jobs : sequence of int
            The running jobs that one action migrates, but for those that had not begun.
        parked : collection of int
            Jobs that left their place before the new one was free.
        system : System
            The state after the migration.
        """
        return [0.0] * len(jobs)

    def report(self, trace: Trace, schedule: Schedule) -> ExecutionReport:
        """Return additional columns, figures and notes of a finished run."""
        return ExecutionReport()
