"""Runs on the workers of a Dask cluster."""

from __future__ import annotations

import logging
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from optsched.errors import InputError, MissingDependencyError
from optsched.sweeps.executing import Outcome, Task, execute
from optsched.sweeps.finished import is_finished

CONNECT_SECONDS = 30
"""How long a scheduler may take to answer."""

RETRIES = 3
"""How often Dask repeats a run whose worker ends with an error of its own."""

VISIBLE_SECONDS = 10.0
"""How long a finished folder may take to be seen here, through a network file system."""

LOGS = ("distributed", "distributed.client")
"""Silenced meanwhile: they tell of a lost scheduler in tracebacks, we do in one line."""

log = logging.getLogger("optsched")


class DaskCluster:
    """Executes tasks on the workers of a Dask scheduler.

    The workers write into the same folder as everybody, so they need to share it, and the traces,
    with the machine that the sweep is started on. What a worker had under way when it died is
    done again by another.

    Parameters
    ----------
    address : str
        Of the scheduler, ``tcp://host:8786`` for instance.

    Attributes
    ----------
    slots : int
        How many workers there were when a run ended last: each does one run at a time.

    Raises
    ------
    MissingDependencyError
        If Dask is not installed.
    InputError
        If no scheduler answers at that address.
    """

    def __init__(self, address: str) -> None:
        try:
            from distributed import Client
        except ImportError:
            raise MissingDependencyError(
                "engine 'dask' needs the package 'distributed', which is not installed; "
                "pip install 'optsched[dask]'"
            ) from None
        self._address = address
        self.slots = 0
        try:
            self._client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise InputError(f"no Dask scheduler answers: {reason}", field=address) from None

    def work_off(self, tasks: Sequence[Task]) -> Generator[Outcome, None, None]:
        """Yield the outcome of each task, in the order in which they end.

        Raises
        ------
        InputError
            If the scheduler is lost, or folders that workers write are not seen here.
        """
        from distributed import CancelledError, as_completed

        self._look_at_workers(max(task.run.threads for task in tasks))
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

    def _look_at_workers(self, solver_threads: int) -> None:
        """Count the workers, and say what the user may not expect of them."""
        threads = self._client.nthreads().values()
        self.slots = len(threads)
        if not threads:
            log.info("the Dask scheduler has no workers yet; runs begin when there are some")
        elif max(threads) > 1:
            better = "better several with one each: dask worker --nthreads 1 --nworkers N"
            log.info("a Dask worker with several threads does one run at a time; %s", better)
        if solver_threads > 1:
            log.info("solvers keep %d threads busy on each Dask worker", solver_threads)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence Dask's own messages for a while."""
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
    """Return what became of a task, once its folder is here.

    Raises
    ------
    CancelledError
        If the scheduler knows the task no more.
    """
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
    """Wait until the folder that a worker wrote is seen here too.

    Raises
    ------
    InputError
        If it is not.
    """
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
