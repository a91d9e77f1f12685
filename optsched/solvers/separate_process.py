"""A separate process, in which solvers may hang or crash without harm."""

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
"""Least overrun of a time limit, in seconds, that a solver is allowed, to build its model say."""

PREPARATION = 600.0
"""Seconds that a solver has for imports and compilation."""

FAREWELL = 1.0
"""Seconds that a process has to remove its files and to end its child processes."""

Value = TypeVar("Value")

_to_parent: Connection | None = None
"""Connection of a separate process to its parent; None in any other process."""


class EndedError(RuntimeError):
    """End of a separate process; the message completes a sentence about the solver."""


@dataclass(frozen=True)
class _Allowed:
    """Message of a separate process: its allowed seconds of silence, None for no limit."""

    seconds: float | None
    limit: str


def allow_solve(seconds: float | None) -> None:
    """Let the parent end this process after twice the time limit of a solve, at least 20 s more."""
    allowed = None if seconds is None else seconds + max(LEAST_GRACE, seconds)
    allow(allowed, "its time limit and the grace beyond it")


def allow(seconds: float | None, limit: str = "") -> None:
    """Let the parent end this process, if it is a separate one, after some seconds of silence.

    The clock runs in the parent, out of reach of the solver; without seconds, it is stopped.
    """
    if _to_parent is not None:
        longest = 2e6  # of a poll
        _to_parent.send(_Allowed(None if seconds is None else min(seconds, longest), limit))


class SeparateProcess(Generic[Value]):
    """A context manager that calls a function in a fork of this process.

    A process that has been ended is replaced at the next call. Arguments and results are pickled;
    the function itself, and the objects that it refers to, are not. Output of the process goes to
    stderr. The process leads its own process group, so that its child processes end with it.
    """

    def __init__(self, function: Callable[..., Value]) -> None:
        self._function = function
        self._process: multiprocessing.process.BaseProcess | None = None
        self._connection: Any = None

    def __enter__(self) -> SeparateProcess[Value]:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._end()

    def __call__(self, *arguments: Any) -> Value:
        """Call the function."""
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

    def interrupt(self) -> None:
        """Send Ctrl-C to the process: a solve that notes it returns its best solution soon."""
        if self._process is not None and self._process.pid is not None:
            os.kill(self._process.pid, signal.SIGINT)

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
            except BaseException as error:  # unpickling runs code of the solver
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
        """End the process and its child processes, and return a message with the cause."""
        process = self._process
        assert process is not None
        assert process.pid is not None
        self._process = None
        try:
            process.terminate()  # before the connection is closed, which would end it, too
            wait([process.sentinel], FAREWELL)
        finally:
            self._connection.close()
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.kill()  # in case it does not lead a group yet
            process.join()
        code = process.exitcode
        if code is not None and code < 0:
            return f"ended the process, by signal {-code} ({signal.Signals(-code).name})"
        return f"ended the process, with exit code {code}"


def _serve(function: Callable[..., Any], connection: Connection, others_end: Connection) -> None:
    global _to_parent
    try:
        _prepare_process()
        others_end.close()  # otherwise the end of the parent would go unnoticed
        _to_parent = connection
        while True:
            arguments = connection.recv()
            connection.send_bytes(_pickled(_returned(function, arguments)))
    except (EOFError, ConnectionError, KeyboardInterrupt):
        return  # the parent is gone


def _prepare_process() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    with suppress(OSError):
        os.setpgid(0, 0)
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG: when the parent ends
    if sys.__stdout__ is not None and sys.__stderr__ is not None:  # None if closed
        sys.stdout = sys.stderr
        with suppress(OSError):
            os.dup2(2, 1)


def _stop(_number: int, _frame: object) -> None:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, 2 * FAREWELL)  # the solver may catch the exception
    raise KeyboardInterrupt


def _returned(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    try:
        return function(*arguments)
    except InputError as error:
        return InputError(*error.mistakes, file=error.file, line=error.line, field=error.field)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        logging.getLogger("optsched").debug("a separate process failed", exc_info=True)
        return EndedError(f"failed: {type(error).__name__}")


def _pickled(value: Any) -> Any:
    try:
        return ForkingPickler.dumps(value)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        message = f"returned what cannot be passed on: {type(error).__name__}"
        return ForkingPickler.dumps(EndedError(message))
