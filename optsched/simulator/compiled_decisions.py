"""The contract between the engine and a policy whose decision is a kernel."""

from __future__ import annotations

import ctypes
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import cache, partial
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from optsched.compiled import Kernel
from optsched.kernel_cache import NotOnDiskError, only_loading
from optsched.machines.machine import Machine
from optsched.simulator import _core
from optsched.simulator._core import Core, News, Way
from optsched.simulator.execution import ExecutionModel
from optsched.simulator.policy import Action, Move, Share, Start, Wake
from optsched.simulator.problem_solver import ProblemSolver
from optsched.simulator.system import System
from optsched.traces.trace import Trace

SEARCHES = r"optsched\.(models|solvers)\.(?!gang_packing\.fit_rules)"
"""Modules of kernels that take too long in plain Python."""

PATIENCE = 20.0
"""Seconds of a processor that a kernel may take in plain Python before it is compiled."""


COMPILED_FROM = 20_000
"""Number of jobs from which compiling the event core takes less time than running it in Python."""

_jobs_of_runs: list[int] = []  # of this process


def worth_compiling(jobs: int, compiled_from: int | None = None) -> bool:
    """Count a run, and return whether kernels that are not on disk are worth compiling for it.

    By default, the jobs of all runs of the process so far count.
    """
    _jobs_of_runs[:] = [sum(_jobs_of_runs) + jobs]
    if compiled_from is not None:
        return jobs >= compiled_from
    return sum(_jobs_of_runs) >= COMPILED_FROM


class CompiledRun(NamedTuple):
    """What the kernels of a policy or an execution model are bound to in a run."""

    trace: Trace
    machine: Machine
    problem_solver: ProblemSolver
    core: Core
    way: Way
    news: News
    execution: ExecutionModel | None
    is_alone: bool
    """Whether nothing but the policy hears of events and decisions."""
    may_compile: bool
    """Whether kernels that are not on disk are worth compiling at once."""

    def bind(self, kernel: Kernel, *given: Any, numbers: Sequence[Any] = ()) -> Callable[..., Any]:
        """Return a kernel with its first arguments given, see `Kernel.bound`.

        One that is not on disk, and not worth compiling at once, runs in plain Python until that
        has taken `PATIENCE`.
        """
        try:
            with nullcontext() if self.may_compile else only_loading():
                return kernel.bound(*given, numbers=numbers)
        except NotOnDiskError:
            return _Plain(kernel, given, numbers)


class _Plain:
    """A kernel in plain Python, until that has taken some seconds."""

    def __init__(self, kernel: Kernel, given: Sequence[Any], numbers: Sequence[Any]) -> None:
        self._call: Callable[..., Any] = partial(kernel.plain(SEARCHES), *map(_readable, given))
        self._left = PATIENCE
        self._compiled = partial(kernel.bound, *given, numbers=numbers)

    def __call__(self, *numbers: Any) -> Any:
        began = time.thread_time()
        with np.errstate(over="ignore"):  # sets of bits
            result = self._call(*numbers)
        self._left -= time.thread_time() - began
        if self._left < 0:
            self._call, self._left = self._compiled(), math.inf
        return result


class _Fields(ctypes.Structure):
    """The memory of a record; Python reads a field of it 50 times as fast."""

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a field; an integer takes truth values and the whole part of a number."""
        try:
            super().__setattr__(name, value)
        except TypeError:
            super().__setattr__(name, int(value))


@cache
def _fields_of(record: np.dtype[np.void]) -> type[_Fields]:
    assert record.names is not None
    kinds = {"i": ctypes.c_int64, "f": ctypes.c_double}
    fields = [(name, kinds[record[name].kind]) for name in record.names]
    return type("Fields", (_Fields,), {"_fields_": fields})


def _readable(given: Any) -> Any:
    """Return a named tuple with `_Fields` for records."""
    if isinstance(given, Kernel):
        return given.plain(SEARCHES)
    if isinstance(given, tuple):
        return getattr(given, "_make", tuple)(map(_readable, given))
    if isinstance(given, np.ndarray) and given.dtype.names:
        return (_fields_of(given.dtype) * len(given)).from_buffer(given.data)
    return given


class CompiledDecisions(ABC):
    """The decisions of a policy in one run, made by a kernel.

    The kernel hears of events in `News` and states its actions there.

    Attributes
    ----------
    decide : callable
        The kernel, bound to its own state and the news. It returns `DONE`; `OPEN` where a problem
        has to be answered before it is called again; or `WRONG`.
    run : callable or None
        `optsched.simulator._core.loop` with the kernel, where the policy is alone. It takes the
        most decisions, or 0 to go on with the one that was left open. It returns `DECIDE` after
        these, or the result of a decision or of `advance` that ends it.
    answers : bool
        Whether the kernel answers problems as the solver would, which may then not be needed.
    states_places : bool
        Whether `place` states where each job starts.
    places : named tuple or None
        The nodes of each job that has started, as arrays for the kernel of an execution model, if
        the decisions keep them.
    """

    decide: Callable[[], int]
    run: Callable[[int], int] | None = None
    answers: bool = False
    states_places: bool = True
    places: Any = None

    def _bind_kernel(self, run: CompiledRun, decide: Kernel, *given: Any) -> None:
        """Bind a kernel, which is given the news last, as `decide`; in a loop where alone."""
        if run.is_alone:
            core = run.core, run.way, run.news
            self.run = run.bind(_core.loop, *core, decide, given, numbers=(0,))
            self.decide = partial(self.run, 0)
            self.resources()  # loads the kernels
        else:
            self.decide = run.bind(decide, *given, run.news)

    def answer(self, problem_solver: ProblemSolver) -> None:
        """Answer the problem that the kernel has left open, in the state of the kernel."""
        raise NotImplementedError

    def record(self, problem_solver: ProblemSolver) -> None:  # noqa: B027 (most have none)
        """Record the problems that the kernel itself has answered since the last call."""

    @abstractmethod
    def place(self, job: int, value: float) -> Any:
        """Return the place of a job that starts or moves, in the machine's terms, by its action.

        None for a start leaves the choice to the machine.
        """

    @abstractmethod
    def resources(self) -> Sequence[str]:
        """Return the processors that each job held, as interval sets."""


def answered(state: Any) -> list[list[Any]]:
    """Return the columns of the problems that a kernel has answered since the last call, if any."""
    number = state.counts["problems"].item()
    state.counts["problems"] = 0
    return [column[:number].tolist() for column in state.problems] if number else []


def hear(news: News, system: System) -> None:
    """Tell a kernel what has happened since the last decision."""
    news.now[0], news.counts[_core.N_ACTIONS] = system.now, 0
    for heard, count, jobs in (
        (news.ended, _core.N_ENDED, system.ended),
        (news.submitted, _core.N_SUBMITTED, system.submitted),
        (news.rejected, _core.N_REJECTED, system.rejected),
    ):
        heard[: len(jobs)] = jobs
        news.counts[count] = len(jobs)


def stated(news: News, place: Callable[[int, float], Any]) -> Iterator[Action]:
    """Yield the actions that a kernel has stated; moves that follow each other are one."""
    count = slice(news.counts.item(_core.N_ACTIONS))
    news.counts[_core.N_ACTIONS] = 0
    limits: dict[int, float] = {}
    columns = (column[count].tolist() for column in (news.kind, news.job, news.value))
    for kind, group in groupby(zip(*columns), itemgetter(0)):
        if kind == _core.MOVE:
            yield Move({job: place(job, value) for _, job, value in group})
            continue
        for _, job, value in group:
            if kind == _core.START:
                yield Start(job, place(job, value), limits.get(job))
            elif kind == _core.LIMIT:
                limits[job] = value
            else:
                yield Share(job, value) if kind == _core.SHARE else Wake(value)
