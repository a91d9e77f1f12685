"""The workers that execute the runs of a sweep: local processes or a Dask cluster."""

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
    """Contract of the workers of a sweep."""

    @property
    def slots(self) -> int:
        """The number of runs that are executed at once."""

    def execute_all(self, tasks: Sequence[Task]) -> Generator[Outcome, None, None]:
        """Yield the outcomes of tasks in the order in which the tasks end.

        If the generator is closed early, runs under way are aborted.
        """


def check_engine(engine: str, workers: int | None, address: str | None) -> None:
    """Check an engine and its options before any run."""
    names = get_args(EngineName)
    if engine not in names:
        raise InputError(f"{engine!r}; expected {' or '.join(names)}", field="engine")
    if workers is not None and (type(workers) is not int or workers < 1):
        raise InputError(f"{workers!r}; expected a whole number from 1", field="workers")
    if engine == "local" and address is not None:
        raise InputError("is of the engine dask; the engine is local", field="address")
    if engine == "dask" and workers is not None:
        started = "Dask workers are started separately"
        raise InputError(f"is of the engine local; {started}", field="workers")
    if engine == "dask" and address is None:
        expected = "expected that of a Dask scheduler, tcp://host:8786 for instance"
        raise InputError(f"missing; {expected}", field="address")


def start_engine(
    runs: Sequence[PlannedRun], workers: int | None, address: str | None = None
) -> Engine:
    """Return the engine for one run at least: Dask workers at an address, or local processes."""
    if address is not None:
        from optsched.sweeps.dask import DaskCluster

        return DaskCluster(address)
    from optsched.cores import cores
    from optsched.sweeps.local import LocalProcesses

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
