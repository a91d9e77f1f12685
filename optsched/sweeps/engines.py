"""Execution of the runs of a sweep, in local processes or on the workers of a Dask cluster.

A folder of a run gets its name when it is complete and on the disk. Later damage, such as an
interrupted copy, leaves files that are missing, empty or truncated, which `fault` finds.

A worker process imports this module before its number of threads is set, so the module does not
import numpy or numba.
"""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

from optsched import compilation
from optsched.compilation import clock
from optsched.errors import InputError, optional_module
from optsched.text_files import parse_json

if TYPE_CHECKING:
    from optsched.folders import Keep
    from optsched.sweeps.sweep_file import PlannedRun, TraceFile
    from optsched.traces.trace import Trace

TRACES_KEPT = 4  # number of traces that a process keeps in memory for later runs

_one_at_a_time = threading.Lock()

_log = logging.getLogger("optsched")


class Work(Protocol):
    """Something that a process executes."""

    @property
    def name(self) -> str:
        """What tells it from others."""

    def write(self) -> dict[str, Any] | None:
        """Do it, write its files, and return its metrics, if it has any."""


@dataclass(frozen=True)
class Task:
    """A run to execute, the absolute path of its folder, and the files of the run to keep."""

    run: PlannedRun
    folder: str
    keep: Keep

    @property
    def name(self) -> str:
        """The name of the run."""
        return self.run.name

    def write(self) -> dict[str, Any]:
        """Simulate the run and write its folder, unless it is finished; return its metrics."""
        folder = Path(self.folder)
        if not is_finished(folder, self.keep):
            _simulate(self, folder)
        summary: dict[str, Any] = json.loads((folder / "summary.json").read_bytes())
        return summary


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run: metrics or the reason of a failure, and the wall-clock time."""

    name: str
    summary: dict[str, Any] | None
    error: str | None = None
    seconds: float = 0.0


def execute(work: Work) -> Outcome:
    """Do some work, and return its outcome.

    An error, be it in the config of a run or in the program, is an outcome too, so that it does not
    end the others.
    """
    began, summary, failure = clock(), None, None
    try:
        with _one_at_a_time:  # a second thread of a Dask worker would gain nothing
            summary = work.write()
    except InputError as error:
        failure = str(error)
    except Exception as error:
        failure = f"{type(error).__name__}: {error}"
    return Outcome(work.name, summary, failure, clock() - began)


def _simulate(task: Task, folder: Path) -> None:
    from optsched.files import written_folder
    from optsched.folders import RUN
    from optsched.report.saved import fill_run
    from optsched.simulator.simulate import simulate

    file, arguments = task.run.trace, task.run.arguments
    if "workload" in arguments:
        trace = _generated(file, arguments["jobs"][1], arguments.get("workload_seed", 0))
    else:
        trace = _read(file, arguments.get("unknown_negative", False))
        # record the path that the sweep file states: the same bytes wherever the file is
        trace = replace(trace, path=Path(task.run.values["trace"]), published=file.published)
    run = simulate(trace, **arguments)
    with written_folder(folder, RUN) as temporary:
        fill_run(run, temporary, plots=False, keep=task.keep)


@lru_cache(maxsize=TRACES_KEPT)
def _read(file: TraceFile, unknown_negative: bool) -> Trace:
    from optsched.traces.reading import read_trace
    from optsched.traces.requests import demands_file

    trace = read_trace(file.path, unknown_negative=unknown_negative)
    _check_unchanged(file.path, file.sha256, trace.sha256)
    _check_unchanged(demands_file(file.path), file.demands_sha256, trace.demands_sha256)
    return trace


@lru_cache(maxsize=TRACES_KEPT)
def _generated(spec: TraceFile, jobs: int, seed: int) -> Trace:
    from optsched.files import sha256_of
    from optsched.workloads.spec_file import generate_workload

    trace = generate_workload(Path(spec.path), jobs=jobs, seed=seed)
    _check_unchanged(spec.path, spec.sha256, sha256_of(spec.path))
    return trace


def _check_unchanged(file: str | Path, before: str | None, now: str | None) -> None:
    if before != now:
        raise InputError("was changed after the sweep began", file=file)


SUMMARY = "summary.json"
NEEDED: dict[Keep, tuple[str, ...]] = {"summary": ("run.json", SUMMARY, "timing.json")}
NEEDED["jobs"] = (*NEEDED["summary"], "jobs.parquet", "decisions.parquet")
NEEDED["all"] = (*NEEDED["jobs"], "jobs.csv")  # files of a finished run, by the value of ``keep``
DRAWN = (".svg", ".png", ".html")  # files that are never empty
PARQUET = b"PAR1"  # magic number at the beginning and the end of a Parquet file


def fault(folder: Path, keep: Keep) -> str | None:
    """Return the first fault of an existing folder of a run, None if the run is finished."""
    from optsched.folders import read_config, read_summary

    try:
        found = set(os.listdir(folder))
        for name in NEEDED[keep]:
            if name not in found:
                return f"{folder / name} is missing"
        read_config(folder)
        read_summary(folder)
        for name in sorted(found):
            if not _is_complete(folder / name):
                return f"{folder / name} is damaged"
    except InputError as error:
        return f"{error.file} is damaged"
    except OSError as error:
        return f"{error.filename or folder} cannot be read"
    return None


def is_finished(folder: Path, keep: Keep) -> bool:
    """Return whether a folder holds a run with at least the files of `keep`."""
    return folder.is_dir() and fault(folder, keep) is None


def read_object(path: Path) -> dict[str, Any] | None:
    """Return the JSON object of a file, None if the file is damaged."""
    try:
        read = parse_json(path.read_bytes())
    except InputError:
        return None
    return read if isinstance(read, dict) else None


def _is_complete(path: Path) -> bool:
    """Return whether a file passes a quick check for truncation."""
    if path.suffix == ".json":
        return read_object(path) is not None
    if path.suffix == ".parquet":
        with path.open("rb") as file:
            begins, size = file.read(4), file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 8))
            length, ends = int.from_bytes(file.read(4), "little"), file.read(4)
        return begins == ends == PARQUET and length <= size - 12
    if path.suffix == ".csv":
        summary = read_object(path.with_name(SUMMARY)) or {}
        return bool(path.read_bytes().count(b"\n") > summary.get("jobs", 0))
    return path.suffix not in DRAWN or path.stat().st_size > 0


THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
"""Environment variables for the number of threads of libraries; solvers have options for theirs."""


class LocalProcesses:
    """Executes tasks in local processes, as many at once."""

    def __init__(self, workers: int) -> None:
        self.slots = workers

    def execute_all(self, tasks: Sequence[Work]) -> Generator[Outcome, None, None]:
        """Yield the outcomes of tasks in the order in which the tasks end.

        When a worker process dies, of lack of memory for instance, the runs that were under way
        are repeated one by one, so that only the run that causes the death fails.
        """
        pending: deque[Work] = deque(tasks)
        while pending:
            suspects = deque((yield from _in_pool(pending, self.slots)))
            while suspects:
                for task in (yield from _in_pool(suspects, 1)):
                    died = "the process that ran it died, twice; was there enough memory?"
                    yield Outcome(task.name, None, died)


def _in_pool(pending: deque[Work], workers: int) -> Generator[Outcome, None, list[Work]]:
    """Execute tasks in new processes; if a process dies, return the tasks that were under way."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        sys.exit(1)  # a worker that imports a script without a guard; the caller gives advice
    context = multiprocessing.get_context("spawn")
    watched, held = context.Pipe(duplex=False)
    begun = context.Event()
    pool = ProcessPoolExecutor(
        workers, context, initializer=_begin, initargs=(watched, begun, compilation.announces())
    )
    under_way: dict[Future[Outcome], Work] = {}
    ended: SimpleQueue[Future[Outcome]] = SimpleQueue()
    task: Work | None = None
    try:
        while pending or under_way:
            while pending and len(under_way) < workers:
                task = pending.popleft()
                with _without_interrupts():
                    future = pool.submit(execute, task)
                    future.add_done_callback(ended.put)
                under_way[future] = task
                task = None
            future = ended.get()  # here an interrupt leaves no lock behind
            with _without_interrupts():
                outcome = future.result()
            del under_way[future]
            yield outcome
    except BrokenProcessPool:
        if not begun.is_set():
            raise InputError(f"the worker processes cannot start; {_advice()}") from None
        return [*under_way.values(), *([] if task is None else [task])]
    except BaseException:
        held.close()  # ends the workers in the middle of their runs
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        held.close()
        watched.close()
    return []


def _advice() -> str:
    """Return advice for a main program that worker processes cannot import."""
    script = getattr(sys.modules["__main__"], "__file__", None)
    if script is None or not os.path.exists(script):
        return "they import the script again, which standard input is not: save it as a file"
    return 'in a script, call optsched.sweep below if __name__ == "__main__":'


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Defer interrupts within a block, since an interrupt could leave a lock of the pool held."""
    deferred: list[int] = []
    handlers = {}
    # processes that start meanwhile ignore Ctrl-C and leave it to their parent
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) is not None:  # a handler set by Python
                    handlers[number] = signal.signal(number, lambda no, _: deferred.append(no))
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for interrupt in deferred:
            signal.raise_signal(interrupt)


def _begin(watched: Connection, begun: Event, announces: bool) -> None:
    """Initialize a worker, and make it end with its parent; it announces kernels like that."""
    begun.set()
    if announces:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("optsched: %(message)s"))
        compilation.log.addHandler(handler)
        compilation.log.setLevel(logging.INFO)
    for variable in THREADS:
        os.environ.setdefault(variable, "1")

    def end_with_parent() -> None:
        try:
            watched.recv()
        except EOFError:  # the parent has closed the other end of the pipe, or died
            os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()


CONNECT_SECONDS = 30  # time limit in seconds for the connection to a scheduler
RETRIES = 3  # number of times that Dask repeats a run whose worker fails

VISIBLE_SECONDS = 10.0
"""Time limit in seconds for a finished folder to appear here, through a network file system."""

LOGS = ("distributed", "distributed.client", "tornado.application")
"""Loggers that are silenced: they report a lost scheduler, and an interrupt as Dask begins to wait,
in tracebacks, optsched in one line."""


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
            _log.info("the Dask scheduler has no workers yet; runs begin when there are some")
        elif max(threads) > 1:
            better = "better start several with one each: dask worker --nthreads 1 --nworkers N"
            _log.info("a Dask worker with several threads executes one run at a time; %s", better)
        if solver_threads > 1:
            _log.info("solvers keep %d threads busy on each Dask worker", solver_threads)


@contextmanager
def _quiet() -> Iterator[None]:
    levels = {log: log.level for log in map(logging.getLogger, LOGS)}
    try:
        for log in levels:
            log.setLevel(logging.CRITICAL)
        yield
    finally:
        for log, level in levels.items():
            log.setLevel(level)


def _outcome(future: Any, task: Task) -> Outcome:
    """Return the outcome of a task after its folder has appeared here; a lost task raises."""
    from distributed import CancelledError

    if future.status == "cancelled":
        raise CancelledError(future.key)
    error = future.exception()
    if isinstance(error, CancelledError):
        raise error
    if error is not None:
        return Outcome(task.name, None, f"{type(error).__name__}: {error}")
    outcome: Outcome = future.result()
    if outcome.error is None:
        _await_folder(task)
    return outcome


def _await_folder(task: Task) -> None:
    """Wait until the folder that a worker wrote appears here, for `VISIBLE_SECONDS` at most."""
    folder, deadline = Path(task.folder), time.monotonic() + VISIBLE_SECONDS
    while not is_finished(folder, task.keep):
        if time.monotonic() > deadline:
            expected = "expected an output folder that this machine and all workers share"
            wrong = f"was finished by a Dask worker but is not here; {expected}"
            raise InputError(wrong, file=folder)
        time.sleep(0.1)


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
        return DaskCluster(address)
    threads, cores = max(run.threads for run in runs), compilation.cores()
    workers = min(max(1, cores // threads) if workers is None else workers, len(runs))
    if workers * threads > cores:
        _log.warning(
            "more threads than cores: %d x %d solver threads on %d", workers, threads, cores
        )
    return LocalProcesses(workers)
