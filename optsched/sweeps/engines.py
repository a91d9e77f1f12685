"""What executes the runs of a sweep, and how many of them at once."""

from __future__ import annotations

import logging
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Literal, Protocol, get_args

from optsched.errors import InputError

if TYPE_CHECKING:
    from optsched.sweeps.executing import Outcome, Task
    from optsched.sweeps.planned_run import PlannedRun

EngineName = Literal["local", "dask"]


class Engine(Protocol):
    """Executes tasks somewhere."""

    @property
    def slots(self) -> int:
        """How many runs it has under way at once, at present."""

    def work_off(self, tasks: Sequence[Task]) -> Generator[Outcome, None, None]:
        """Yield the outcome of each task once, in the order in which they end.

        Closed early, it sees to it that what is under way is given up.
        """


def check_engine(engine: str, workers: int | None, address: str | None) -> None:
    """Refuse what does not belong to an engine, before any work.

    Raises
    ------
    InputError
        If there is no such engine, its address is missing, or it has no use for an option.
    """
    names = get_args(EngineName)
    if engine not in names:
        raise InputError(f"{engine!r}; expected {' or '.join(names)}", field="engine")
    if workers is not None and (type(workers) is not int or workers < 1):
        raise InputError(f"{workers!r}; expected a whole number from 1", field="workers")
    if engine == "local" and address is not None:
        raise InputError("is of the engine dask; the engine is local", field="address")
    if engine == "dask" and workers is not None:
        raise InputError("is of the engine local; Dask workers are started apart", field="workers")
    if engine == "dask" and address is None:
        expected = "expected that of a Dask scheduler, tcp://host:8786 for instance"
        raise InputError(f"missing; {expected}", field="address")


def start_engine(
    runs: Sequence[PlannedRun], engine: str, workers: int | None, address: str | None
) -> Engine:
    """Return the engine for these runs.

    Parameters
    ----------
    runs : sequence of PlannedRun
        What is to be executed, at least one.
    engine : {"local", "dask"}
        Which engine.
    workers : int, optional
        How many local processes. If left out, as many as there are cores for when each of them
        keeps the threads of the most threaded solver busy.
    address : str, optional
        Of the Dask scheduler.

    Raises
    ------
    InputError
        If no scheduler answers there, or Dask is not installed.
    """
    if address is not None:
        from optsched.sweeps.dask import DaskCluster

        return DaskCluster(address)
    from optsched.sweeps.local import LocalProcesses, cores

    threads = max(run.threads for run in runs)
    if workers is None:
        workers = max(1, cores() // threads)
    workers = min(workers, len(runs))
    if workers * threads > cores():
        log = logging.getLogger("optsched")
        log.warning(
            "more threads than cores: %d x %d solver threads on %d", workers, threads, cores()
        )
    return LocalProcesses(workers)
