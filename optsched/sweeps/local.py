"""Execution of runs in local processes.

A worker process imports this module first, so the module imports nothing heavy.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from queue import SimpleQueue
from types import FrameType

from optsched.compilation import announces, log
from optsched.errors import InputError
from optsched.sweeps.executing import Outcome, Task, execute

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
"""Environment variables for the number of threads of libraries; solvers have options for theirs."""


class LocalProcesses:
    """Executes tasks in local processes, as many at once."""

    def __init__(self, workers: int) -> None:
        self.slots = workers

    def execute_all(self, tasks: Sequence[Task]) -> Generator[Outcome, None, None]:
        """Yield the outcomes of tasks in the order in which the tasks end.

        When a worker process dies, of lack of memory for instance, the runs that were under way
        are repeated one by one, so that only the run that causes the death fails.
        """
        pending = deque(tasks)
        while pending:
            suspects = deque((yield from _in_pool(pending, self.slots)))
            while suspects:
                for task in (yield from _in_pool(suspects, 1)):
                    died = "the process that ran it died, twice; was there enough memory?"
                    yield Outcome(task.run.name, None, died)


def _in_pool(pending: deque[Task], workers: int) -> Generator[Outcome, None, list[Task]]:
    """Execute tasks in new processes; if a process dies, return the tasks that were under way."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        sys.exit(1)  # a worker that imports a script without a guard; the caller gives advice
    context = multiprocessing.get_context("spawn")
    watched, held = context.Pipe(duplex=False)
    begun = context.Event()
    pool = ProcessPoolExecutor(
        workers, context, initializer=_begin, initargs=(watched, begun, announces())
    )
    under_way: dict[Future[Outcome], Task] = {}
    ended: SimpleQueue[Future[Outcome]] = SimpleQueue()
    task = None
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
    """Defer interrupts within a block, since an interrupt could leave a lock of the pool held.

    Processes that start within the block ignore Ctrl-C and leave it to their parent.
    """
    deferred: list[int] = []

    def defer(number: int, _frame: FrameType | None) -> None:
        deferred.append(number)

    handlers = {}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) is not None:  # a handler set by Python
                    handlers[number] = signal.signal(number, defer)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for interrupt in deferred:
            signal.raise_signal(interrupt)


def _begin(watched: Connection, begun: Event, announces: bool) -> None:
    """Initialize a worker, and make it end with its parent.

    Where the parent announces the compilation of kernels, so does a worker that is first to do it.
    """
    begun.set()
    if announces:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("optsched: %(message)s"))
        log.addHandler(handler)
        log.setLevel(logging.INFO)
    for variable in THREADS:
        os.environ.setdefault(variable, "1")
    threading.Thread(target=_end_with_parent, args=(watched,), daemon=True).start()


def _end_with_parent(watched: Connection) -> None:
    """End this process when the parent closes the other end of the pipe, or dies."""
    try:
        watched.recv()
    except EOFError:
        os._exit(1)
