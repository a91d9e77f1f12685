"""Runs on the workers of a Dask cluster."""

from __future__ import annotations

import logging
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from optsched.errors import InputError, optional_module
from optsched.sweeps.executing import Outcome, Task, execute
from optsched.sweeps.run_check import is_finished

CONNECT_SECONDS = 30
"""Time limit in seconds for the connection to a scheduler."""

RETRIES = 3
"""Number of times that Dask repeats a run whose worker fails."""

VISIBLE_SECONDS = 10.0
"""Time limit in seconds for a finished folder to appear here, through a network file system."""

LOGS = ("distributed", "distributed.client", "tornado.application")
"""Loggers that are silenced: they report a lost scheduler, and an interrupt as Dask begins to wait,
in tracebacks, optsched in one line."""

log = logging.getLogger("optsched")


class DaskCluster:
    """Executes tasks on the workers of a Dask scheduler.

    The workers must share the output folder and the traces with the machine that the sweep is
    started on. If a worker dies, another worker repeats its runs. The number of workers when the
    last run ended, of which each executes one run at a time, is `slots`.
    """

    def __init__(self, address: str) -> None:
        distributed = optional_module("distributed", "engine 'dask'", "dask")
        self._address = address
        self.slots = 0
        try:
            self._client = distributed.Client(
                address, timeout=CONNECT_SECONDS, set_as_default=False
            )
        except (OSError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise InputError(f"no Dask scheduler answers: {reason}", field=address) from None

    def execute_all(self, tasks: Sequence[Task]) -> Generator[Outcome, None, None]:
        """Yield the outcomes of tasks in the order in which the tasks end."""
        from distributed import CancelledError, as_completed

        self._count_workers(max(task.run.threads for task in tasks))
        futures: dict[Any, Task] = {}
        with _quiet():
            try:
                for task in tasks:
                    future = self._client.submit(execute, task, pure=False, retries=RETRIES)
                    futures[future] = task
                for future in as_completed(list(futures), loop=self._client.loop):
                    task = futures.pop(future)
                    if self._client.status == "running":
                        self.slots = len(self._client.nthreads())
                    yield _outcome(future, task)
            except (CancelledError, OSError):  # no connection is an OSError too
                lost = "the Dask scheduler was lost; the same command goes on from here"
                raise InputError(lost, field=self._address) from None
            finally:
                if futures and self._client.status == "running":
                    with suppress(OSError):
                        self._client.cancel(list(futures))
                self._client.close()

    def _count_workers(self, solver_threads: int) -> None:
        """Count the workers, and log an unusual number of workers or threads."""
        threads = self._client.nthreads().values()
        self.slots = len(threads)
        if not threads:
            log.info("the Dask scheduler has no workers yet; runs begin when there are some")
        elif max(threads) > 1:
            better = "better start several with one each: dask worker --nthreads 1 --nworkers N"
            log.info("a Dask worker with several threads executes one run at a time; %s", better)
        if solver_threads > 1:
            log.info("solvers keep %d threads busy on each Dask worker", solver_threads)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence Dask's own messages within a block."""
    logs = [logging.getLogger(name) for name in LOGS]
    levels = [one.level for one in logs]
    try:
        for one in logs:
            one.setLevel(logging.CRITICAL)
        yield
    finally:
        for one, level in zip(logs, levels):
            one.setLevel(level)


def _outcome(future: Any, task: Task) -> Outcome:
    """Return the outcome of a task after its folder has appeared here; a lost task raises."""
    from distributed import CancelledError

    if future.status == "cancelled":
        raise CancelledError(future.key)
    error = future.exception()
    if isinstance(error, CancelledError):
        raise error
    if error is not None:
        return Outcome(task.run.name, None, f"{type(error).__name__}: {error}")
    outcome: Outcome = future.result()
    if outcome.error is None:
        _await_folder(task)
    return outcome


def _await_folder(task: Task) -> None:
    """Wait until the folder that a worker wrote appears here, for `VISIBLE_SECONDS` at most."""
    folder = Path(task.folder)
    deadline = time.monotonic() + VISIBLE_SECONDS
    while not is_finished(folder, task.keep):
        if time.monotonic() > deadline:
            raise InputError(
                "was finished by a Dask worker but is not here; expected an output folder that "
                "this machine and all workers share",
                file=folder,
            )
        time.sleep(0.1)
