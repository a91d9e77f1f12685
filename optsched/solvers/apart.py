"""A process apart, in which solvers may hang or crash without harm."""

from __future__ import annotations

import ctypes
import logging
import multiprocessing
import os
import pickle
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import ForkingPickler
from typing import Any, Generic, TypeVar

from optsched.errors import InputError

LEAST_GRACE = 20.0
"""Seconds beyond its time limit that a solver has at least, to build its model for instance."""

PREPARATION = 600.0
"""Seconds that a solver has to import and compile what it needs."""

FAREWELL = 1.0
"""Seconds that a process has to remove its files and to end the programs that it started."""

LONGEST = 2e6
"""Seconds; a poll takes no more."""

PR_SET_PDEATHSIG = 1
"""What asks Linux for a signal when the parent ends."""

Value = TypeVar("Value")

_to_parent: Connection | None = None
"""Where a process apart reports what it does next; none in any other process."""


class EndedError(RuntimeError):
    """The process apart was ended; the message says how, as the end of a sentence on the solver."""


@dataclass(frozen=True)
class _Allowed:
    """A process apart says for how many seconds it may be silent now; none stands for any time."""

    seconds: float | None
    limit: str


def grace(seconds: float) -> float:
    """Return how long a solver may overrun a time limit: for as long again, but 20 s at least."""
    return max(LEAST_GRACE, seconds)


def allow_preparation() -> None:
    """Have the parent end this process, if it is one apart, when preparation takes too long.

    The clock is the parent's, out of reach of the solver.
    """
    _allow(PREPARATION, f"the {PREPARATION:g} s for preparation")


def allow_solve(seconds: float | None) -> None:
    """Have the parent end this process when the time limit of a solve and its grace are over."""
    allowed = None if seconds is None else seconds + grace(seconds)
    _allow(allowed, "its time limit and the grace beyond it")


def allow_any_time() -> None:
    """Stop the parent's clock."""
    _allow(None)


def _allow(seconds: float | None, limit: str = "") -> None:
    if _to_parent is not None:
        _to_parent.send(_Allowed(None if seconds is None else min(seconds, LONGEST), limit))


class Apart(Generic[Value]):
    """Calls a function in a process apart: a fork of this one, replaced when it has been ended.

    Arguments and results are pickled; the function itself, and all that it refers to, need not be.
    What the process prints goes to stderr. It leads a process group of its own, so that the
    programs that it started end with it. To be used in a ``with`` statement.

    Parameters
    ----------
    function : callable
        What is called.
    """

    def __init__(self, function: Callable[..., Value]) -> None:
        self._function = function
        self._process: multiprocessing.process.BaseProcess | None = None
        self._connection: Any = None

    def __enter__(self) -> Apart[Value]:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._end()

    def __call__(self, *arguments: Any) -> Value:
        """Call the function.

        Raises
        ------
        EndedError
            If the process was ended before the function returned, if the function failed, or if
            what it returned cannot be passed on.
        InputError
            If the function raises it.
        """
        if self._process is None:
            self._start()
        try:
            self._connection.send(arguments)
            value = self._receive()
        except (EOFError, ConnectionError):
            raise EndedError(self._end()) from None
        if isinstance(value, EndedError | InputError):
            raise value
        returned: Value = value
        return returned

    def _receive(self) -> Any:
        allowed = _Allowed(None, "")
        while True:
            if not self._connection.poll(allowed.seconds):
                self._end()
                raise EndedError(f"was ended: it took longer than {allowed.limit}")
            message = self._connection.recv_bytes()
            try:
                value = pickle.loads(message)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # a solver's classes say how they are read
                name = type(error).__name__
                raise EndedError(f"returned what cannot be read: {name}") from None
            if not isinstance(value, _Allowed):
                return value
            allowed = value

    def _start(self) -> None:
        forks = multiprocessing.get_context("fork")
        self._connection, other = forks.Pipe()
        self._process = forks.Process(
            target=_serve, args=(self._function, other, self._connection), daemon=True
        )
        self._process.start()
        other.close()

    def _end(self) -> str:
        """End the process and the programs that it started, and return how it ended."""
        process = self._process
        assert process is not None
        assert process.pid is not None
        self._process = None
        try:
            process.terminate()  # before its connection ends, or it would be on its way out
            wait([process.sentinel], FAREWELL)
        finally:
            self._connection.close()
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.kill()  # had it not come to lead a group yet
            process.join()
        code = process.exitcode
        if code is not None and code < 0:
            return f"ended the process, by signal {-code} ({signal.Signals(-code).name})"
        return f"ended the process, with exit code {code}"


def _serve(function: Callable[..., Any], connection: Connection, others_end: Connection) -> None:
    global _to_parent
    try:
        _prepare_process()
        others_end.close()  # or the end of the process that asks would not be noticed
        _to_parent = connection
        while True:
            arguments = connection.recv()
            connection.send_bytes(_pickled(_returned(function, arguments)))
    except (EOFError, ConnectionError, KeyboardInterrupt):
        return  # nobody asks any longer


def _prepare_process() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    with suppress(OSError):
        os.setpgid(0, 0)
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if sys.__stdout__ is not None and sys.__stderr__ is not None:  # the caller may close them
        sys.stdout = sys.stderr
        with suppress(OSError):
            os.dup2(2, 1)


def _stop(_number: int, _frame: object) -> None:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, 2 * FAREWELL)  # the solver may catch what is raised
    raise KeyboardInterrupt


def _returned(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    try:
        return function(*arguments)
    except InputError as error:
        return InputError(*error.mistakes, file=error.file, line=error.line, field=error.field)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        logging.getLogger("optsched").debug("a process apart failed", exc_info=True)
        return EndedError(f"failed: {type(error).__name__}")


def _pickled(value: Any) -> Any:
    try:
        return ForkingPickler.dumps(value)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        message = f"returned what cannot be passed on: {type(error).__name__}"
        return ForkingPickler.dumps(EndedError(message))
