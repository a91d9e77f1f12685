"""A process apart, in which solvers may hang or crash without harm."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from optsched.errors import InputError

LEAST_GRACE = 20.0
"""Seconds beyond its time limit that a solver has at least, to build its model for instance."""

LONGEST = 1e8
"""Seconds; timers take no more."""

Value = TypeVar("Value")

_is_apart = False
"""Whether this process is one that may be ended."""


class EndedError(RuntimeError):
    """The process apart was ended; the message says how, as the end of a sentence on the solver."""


def grace(seconds: float) -> float:
    """Return how long a solver may overrun a time limit: for as long again, but 20 s at least."""
    return max(LEAST_GRACE, seconds)


def begin(seconds: float | None) -> None:
    """Start the clock of a solve under a time limit, if this is a process apart.

    The kernel ends the process when limit and grace are over, whatever the solver is doing then.
    """
    if _is_apart and seconds is not None:
        signal.setitimer(signal.ITIMER_REAL, min(seconds + grace(seconds), LONGEST))


def end() -> None:
    """Stop that clock."""
    if _is_apart:
        signal.setitimer(signal.ITIMER_REAL, 0)


class Apart(Generic[Value]):
    """Calls a function in a process apart: a fork of this one, replaced when it has been ended.

    Arguments and results are pickled; the function itself, and all that it refers to, need not be.
    To be used in a ``with`` statement.

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
            self._process.kill()
            self._join()

    def __call__(self, *arguments: Any) -> Value:
        """Call the function.

        Raises
        ------
        EndedError
            If the process was ended before the function returned, or if what it returned cannot be
            passed on.
        InputError
            If the function raises it.
        """
        if self._process is None:
            self._start()
        try:
            self._connection.send(arguments)
            value = self._connection.recv()
        except (EOFError, ConnectionError):
            raise EndedError(self._join()) from None
        except Exception as error:
            raise EndedError(f"returned what cannot be read: {type(error).__name__}") from None
        if isinstance(value, EndedError | InputError):
            raise value
        returned: Value = value
        return returned

    def _start(self) -> None:
        forks = multiprocessing.get_context("fork")
        self._connection, other = forks.Pipe()
        self._process = forks.Process(
            target=_serve, args=(self._function, other, self._connection), daemon=True
        )
        self._process.start()
        other.close()

    def _join(self) -> str:
        """Wait for the process, and return how it was ended."""
        assert self._process is not None
        self._connection.close()
        self._process.join()
        code = self._process.exitcode
        self._process = None
        if code == -signal.SIGALRM:
            return "was ended: it took longer than its time limit and the grace beyond it"
        if code is not None and code < 0:
            return f"ended the process, by signal {-code} ({signal.Signals(-code).name})"
        return f"ended the process, with exit code {code}"


def _serve(function: Callable[..., Any], connection: Any, others_end: Any) -> None:
    global _is_apart
    others_end.close()  # or the end of the process that asks would not be noticed
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    _is_apart = True
    try:
        while True:
            arguments = connection.recv()
            try:
                value = function(*arguments)
            except InputError as error:
                value = InputError(
                    *error.mistakes, file=error.file, line=error.line, field=error.field
                )
            try:
                connection.send(value)
            except (AttributeError, TypeError, ValueError, ArithmeticError) as error:
                message = f"returned what cannot be passed on: {type(error).__name__}"
                connection.send(EndedError(message))
    except (EOFError, ConnectionError, KeyboardInterrupt):
        return  # nobody asks any longer
