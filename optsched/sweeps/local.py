"""Runs in processes of this machine.

This module is the first that a worker process imports, so nothing heavy is imported here.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
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

from optsched.errors import InputError
from optsched.sweeps.executing import Outcome, Task, execute

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
"""Environment variables by which libraries start threads of their own; solvers have options."""


def cores() -> int:
    """Return how many cores this process may use; a batch system may have given it a few."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class LocalProcesses:
    """Executes tasks in processes of this machine.

    Parameters
    ----------
    workers : int
        How many runs are under way at once.
    """

    def __init__(self, workers: int) -> None:
        self.slots = workers

    def work_off(self, tasks: Sequence[Task]) -> Generator[Outcome, None, None]:
        """Yield the outcome of each task, in the order in which they end.

        When a worker process dies, of lack of memory for instance, the runs that were under way
        are repeated one by one, so that the one to blame is found and no other is lost.

        Raises
        ------
        InputError
            If worker processes cannot even start.
        """
        left = deque(tasks)
        while left:
            suspects = deque((yield from _in_pool(left, self.slots)))
            while suspects:
                for task in (yield from _in_pool(suspects, 1)):
                    died = "the process that ran it died, twice; was there enough memory?"
                    yield Outcome(task.run.name, None, died)


def _in_pool(left: deque[Task], workers: int) -> Generator[Outcome, None, list[Task]]:
    """Work off tasks in new processes; return those that were under way when one of these died."""
    context = multiprocessing.get_context("spawn")
    watched, held = context.Pipe(duplex=False)
    begun = context.Event()
    pool = ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(watched, begun))
    under_way: dict[Future[Outcome], Task] = {}
    ended: SimpleQueue[Future[Outcome]] = SimpleQueue()
    task = None
    try:
        while left or under_way:
            while left and len(under_way) < workers:
                task = left.popleft()
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
            guard = 'in a script, call optsched.sweep below if __name__ == "__main__":'
            raise InputError(f"the worker processes end before they begin; {guard}") from None
        return [*under_way.values(), *([] if task is None else [task])]
    except BaseException:
        held.close()  # ends the workers in the middle of their runs
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        held.close()
        watched.close()
    return []


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Put interrupts off: one within a lock of the pool's would leave that locked for good.

    Processes that begin meanwhile leave Ctrl-C to their parent for good.
    """
    came: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        came.append(number)

    handlers = {}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) is not None:  # one that Python knows
                    handlers[number] = signal.signal(number, note)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for late in came:
            signal.raise_signal(late)


def _begin(watched: Connection, begun: Event) -> None:
    """Prepare a worker, which is not to outlive its parent."""
    begun.set()
    for variable in THREADS:
        os.environ.setdefault(variable, "1")
    threading.Thread(target=_end_with_parent, args=(watched,), daemon=True).start()


def _end_with_parent(watched: Connection) -> None:
    """End this process when the other end of the pipe is closed, by the parent or its death."""
    try:
        watched.recv()
    except EOFError:
        os._exit(1)
