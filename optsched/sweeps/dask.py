"""Runs on the workers of a Dask cluster."""

from __future__ import annotations

import logging
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

from optsched.errors import InputError, MissingDependencyError
from optsched.sweeps.executing import Outcome, Task, execute, is_finished

CONNECT_SECONDS = 30
"""How long a scheduler may take to answer."""

RETRIES = 3
"""How often Dask repeats a run whose worker ends with an error of its own."""

VISIBLE_SECONDS = 10.0
"""How long a finished folder may take to be seen here, through a network file system."""

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
        try:
            self._client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise InputError(f"no Dask scheduler answers: {reason}", field=address) from None

    @property
    def slots(self) -> int:
        """How many runs the workers have under way at once, at present."""
        return sum(self._threads())

    def work_off(self, tasks: Sequence[Task]) -> Generator[Outcome, None, None]:
        """Yield the outcome of each task, in the order in which they end.

        Raises
        ------
        InputError
            If the scheduler is lost, or folders that workers write are not seen here.
        """
        from distributed import CancelledError, as_completed
        from distributed.comm.core import CommClosedError

        self._say_of_workers(max(task.run.threads for task in tasks))
        futures: dict[Any, Task] = {}
        client_log = logging.getLogger("distributed.client")
        level = client_log.level
        client_log.setLevel(logging.CRITICAL)  # a lost scheduler is told below, in one line
        try:
            for task in tasks:
                future = self._client.submit(execute, task, pure=False, retries=RETRIES)
                futures[future] = task
            for future in as_completed(list(futures), loop=self._client.loop):
                task = futures.pop(future)
                yield self._outcome(future, task)
        except (CancelledError, CommClosedError):
            lost = "the Dask scheduler was lost; the same command goes on from here"
            raise InputError(lost, field=self._address) from None
        finally:
            if futures and self._client.status == "running":
                self._client.cancel(list(futures))
            self._client.close()
            client_log.setLevel(level)

    def _outcome(self, future: Any, task: Task) -> Outcome:
        from distributed import CancelledError

        if future.status == "cancelled":
            raise CancelledError(future.key)
        error = future.exception()
        if error is not None:
            return Outcome(task.run.name, None, f"{type(error).__name__}: {error}")
        outcome: Outcome = future.result()
        if outcome.error is None:
            _await_folder(task)
        return outcome

    def _threads(self) -> list[int]:
        workers = self._client.scheduler_info()["workers"]
        return [worker["nthreads"] for worker in workers.values()]

    def _say_of_workers(self, solver_threads: int) -> None:
        threads = self._threads()
        if not threads:
            log.info("the Dask scheduler has no workers yet; runs begin when there are some")
        elif max(threads) > 1:
            better = "better several with one each: dask worker --nthreads 1 --nworkers N"
            log.info("a Dask worker with several threads does one run at a time; %s", better)
        if solver_threads > 1:
            log.info("solvers keep %d threads busy on each Dask worker", solver_threads)


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
