"""Base class of generic solvers.

A generic solver translates a `Program`, searches, and returns an `Outcome`. This module handles
hints, incumbents, the rounding of bounds and the final status.
"""

from __future__ import annotations

import logging
import math
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike

from optsched.arrays import Ints
from optsched.compilation import clock
from optsched.errors import InputError, StatementError, UnknownNameError
from optsched.models.problem import Problem
from optsched.models.program import UNBOUNDED, Formulation, Program
from optsched.settings import settings_of
from optsched.solvers import interruption
from optsched.solvers.result import INFINITE, Budget, Incumbent, Limit, Result, Status
from optsched.solvers.solver import OnIncumbent, Solver


class Post(Protocol):
    """Callback for an incumbent, or for a bound if the objective is None."""

    def __call__(
        self, objective: float | None, bound: float | None, seconds: float | None = None, /
    ) -> None:
        """Take objective, bound, and the seconds after which they were found, now by default."""


LARGEST_INT = 2**31 - 1
"""Largest count or seed that solvers accept."""

LONGEST_TIME = 1e9
"""Largest time limit that solvers accept, in seconds or deterministic seconds."""

ADVICE = "use cp-sat, which computes with integers"

STOP_INTERVAL = 0.05
"""Seconds between requests to stop, the first of which may precede the start of the search."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of a search, as the solver reports it.

    Parameters
    ----------
    claim : Status
        Claim of the solver; `OPTIMAL` may hold only within its tolerances and gap. `NO_SOLUTION`
        with a message is a refusal of the program.
    x : int64 array, shape (variables,), optional
        Best vector found.
    bound : float, optional
        Bound of the objective, not rounded.
    limit : Limit, optional
        Limit that stopped the search.
    work : float
        Work spent, in the solver's unit.
    message : str
        Cause of an `ERROR`; reason of a refusal, for `NO_SOLUTION`.
    """

    claim: Status
    x: Ints | None = None
    bound: float | None = None
    limit: Limit | None = None
    work: float = 0.0
    message: str = ""


class Search:
    """A search: its program, budget, starting point and incumbents.

    Attributes
    ----------
    formulation : Formulation
        Formulation of the problem.
    program : Program
        Program of the formulation, or an equivalent one of smaller numbers.
    divisor, constant : int
        Factor and constant term that turn the objective of `program` into that of the problem.
    magnitude : float
        Upper bound of the absolute objective, if the solver computes in floating point.
    largest : float
        Largest sum of absolute terms of the objective at which the solver's proof counts.
    sense : {"max", "min"}
        Direction of the objective.
    start : int64 array, shape (variables,), or None
        Feasible vector to start from.
    work : float or None
        Work limit, in the solver's unit.
    seed : int
        Seed of random choices, from 0 to 2**31 - 3.
    incumbents : list of Incumbent
        Improving solutions so far.
    callback_error : BaseException or None
        Exception raised by ``on_incumbent``.
    """

    formulation: Formulation[Any, Any]
    program: Program
    sense: Literal["max", "min"]
    divisor = 1
    constant = 0
    magnitude = 0.0
    largest = math.inf

    def __init__(self, budget: Budget, seed: int, on_incumbent: OnIncumbent | None) -> None:
        self.start: Ints | None = None
        self.work = budget.work
        self.seed = seed % (LARGEST_INT - 1)
        self.incumbents: list[Incumbent] = []
        self.callback_error: BaseException | None = None
        self._near: Ints | None = None
        self._tightest: int | None = None
        self._seconds = budget.seconds
        self._began = clock()
        self._on_incumbent = on_incumbent

    def begin(self, problem: Problem[Any], hint: Any, solver: GenericSolver | None = None) -> None:
        """Formulate `problem`, and take `hint` as the first incumbent.

        The program is divided for a `solver` that computes in floating point.
        """
        self.formulation, self.sense = problem.formulate(), problem.sense
        self.program = stated = self.formulation.program
        if solver is not None and solver.floating_point:
            # a gap is relative to the objective with its constant term
            self.program, self.divisor = stated.divided(offset=solver.relative_gap > 0)
            self.constant = stated.offset - self.program.offset * self.divisor
            self.magnitude = float(self.program.terms.sum())
            self.largest = solver.largest_objective
        if hint is not None:
            self.start = self.formulation.encode(hint)
            self.found(self.program.value(self.start), None)

    def value(self, x: Ints) -> int:
        """Return the objective of the problem at the vector `x`."""
        return self.program.value(x) * self.divisor + self.constant

    def seconds(self) -> float:
        """Return the seconds since the solver was called."""
        return clock() - self._began

    def seconds_left(self) -> float | None:
        """Return the remaining seconds, or None without a time limit; 0 after Ctrl-C."""
        if interruption.requested():
            return 0.0
        if self._seconds is None:
            return None
        return max(0.0, min(self._seconds, LONGEST_TIME) - self.seconds())

    def node_limit(self) -> int | None:
        """Return the work limit as a number of nodes, at least 1, or None without a limit."""
        return None if self.work is None else min(max(1, int(self.work)), LARGEST_INT)

    def nearer_limit(self, work: float) -> Limit:
        """Return the limit of which the larger share is spent."""
        of_time = 0.0 if self._seconds is None else self.seconds() / self._seconds
        of_work = 0.0 if self.work is None else work / self.work
        return Limit.WORK if of_work > of_time else Limit.TIME

    def better(self, one: float, other: float) -> bool:
        """Return whether the objective `one` is better than `other`."""
        return one > other if self.sense == "max" else one < other

    def valid_bound(self, bound: float | None) -> int | None:
        """Return the tightest bound of the problem that follows from a solver's bound.

        Objectives are integers, so a bound may be rounded down when maximizing and up when
        minimizing, after it is loosened by the tolerance of solvers: 1e-6, or 1e-9 of its size, or
        of the largest possible objective of a solver that computes in floating point. A bound that
        is an integer is exact.
        """
        if bound is None or not math.isfinite(bound):
            return None
        whole = bound
        if not isinstance(whole, int):
            tolerance = max(1e-6, 1e-9 * max(abs(bound), self.magnitude))
            loose = bound + tolerance if self.sense == "max" else bound - tolerance
            whole = math.floor(loose) if self.sense == "max" else math.ceil(loose)
        whole = whole * self.divisor + self.constant
        return whole if abs(whole) < INFINITE else None

    def found(self, objective: float, bound: float | None, seconds: float | None = None) -> None:
        """Record an incumbent, found after `seconds` or now, if it improves on the last one.

        Recorded objectives and bounds improve monotonically and never cross.
        """
        value = round(objective) * self.divisor + self.constant
        self._record(value, self.valid_bound(bound), seconds)

    def _record(self, value: int, limit: int | None, seconds: float | None = None) -> None:
        """Record an incumbent by the objective and a bound of the problem."""
        if limit is not None and self.better(value, limit):
            limit = value
        if self.incumbents:
            if not self.better(value, self.incumbents[-1].objective):
                return
            tightest = self._tightest
            if tightest is not None and (limit is None or self.better(limit, tightest)):
                limit = tightest
        incumbent = Incumbent(self.seconds() if seconds is None else seconds, value, limit)
        self.incumbents.append(incumbent)
        self._report(incumbent)

    def value_near(self, point: ArrayLike) -> int | None:
        """Return the objective of `program` at a rounded vector, or None if it is not feasible."""
        found = np.rint(point)
        if (np.abs(found) > UNBOUNDED).any():  # of an unbounded program
            return None
        x = found.astype(np.int64)
        if not self.program.admits(x):
            return None
        self._near = self._better_of(x, self._near)
        return self.program.value(x)

    def _better_of(self, one: Ints | None, other: Ints | None) -> Ints | None:
        """Return the vector of the better objective, the first one of two equally good."""
        if one is None or other is None:
            return other if one is None else one
        return other if self.better(self.value(other), self.value(one)) else one

    def bounded(self, bound: float | None) -> None:
        """Report a bound, if it is tighter than that of the last incumbent."""
        limit = self.valid_bound(bound)
        if limit is None or not self.incumbents:
            return
        best = self.incumbents[-1].objective
        if self.better(best, limit):
            limit = best
        if self._tightest is None or self.better(self._tightest, limit):
            self._report(Incumbent(self.seconds(), best, limit))

    def _report(self, incumbent: Incumbent) -> None:
        self._tightest = None if incumbent.bound is None else round(incumbent.bound)
        if self._on_incumbent is not None:
            try:
                self._on_incumbent(incumbent)
            except BaseException as error:
                self.callback_error = error
                raise

    def unbounded_or_infeasible(self, work: float) -> Outcome:
        """Return the outcome of a program that a solver calls unbounded or infeasible.

        A program whose objective is limited by the bounds of its variables is infeasible.
        """
        program = self.program
        gain = program.objective if program.sense == "max" else -program.objective
        without_limit = np.flatnonzero(
            ((gain > 0) & (program.upper == UNBOUNDED))
            | ((gain < 0) & (program.lower == -UNBOUNDED))
        )
        if not without_limit.size:
            return Outcome(Status.INFEASIBLE, work=work)
        name = program.variable_name(int(without_limit[0]))
        message = f"unbounded (or infeasible): nothing stops variable {name} from improving it"
        return Outcome(Status.ERROR, work=work, message=message)

    def checked(self, outcome: Outcome) -> Outcome:
        """Return `outcome`, or an error if it claims infeasibility in spite of a hint.

        A vector that is not feasible once it is rounded is a refusal, and a proof does not count if
        the objective is too large for the solver. After Ctrl-C, that was the limit: solvers see it
        as a time limit that has passed.
        """
        if outcome.claim is Status.INFEASIBLE and self.start is not None:
            message = "claims that there is no solution, but was given one"
            return Outcome(Status.ERROR, work=outcome.work, message=message)
        if outcome.x is not None and not self.program.admits(outcome.x):
            message = f"its answer breaks a row by less than its tolerance: {ADVICE}"
            return Outcome(Status.NO_SOLUTION, work=outcome.work, message=message)
        if outcome.claim is Status.OPTIMAL and outcome.x is not None:
            program = self.program
            size = float(np.abs(program.objective * outcome.x.astype(float)).sum())
            if size + abs(program.offset) > self.largest:
                message = f"the objective is beyond {self.largest:,}: {ADVICE}"
                return replace(outcome, claim=Status.FEASIBLE, bound=None, message=message)
        if outcome.limit is not None and interruption.requested():
            return replace(outcome, limit=Limit.INTERRUPT)
        return outcome

    def conclude(self, outcome: Outcome) -> tuple[Status, Ints | None, int | None]:
        """Return the status, the best vector and the bound that follow from `outcome`.

        The starting vector counts as found, and so does one that was looked at. The status is
        `OPTIMAL` if and only if the objective equals the rounded bound, whatever the solver claims.
        """
        if outcome.claim in (Status.ERROR, Status.INFEASIBLE):
            return outcome.claim, None, None
        bound = self.valid_bound(outcome.bound)
        x = self._better_of(self._better_of(outcome.x, self.start), self._near)
        if x is None:
            return Status.NO_SOLUTION, None, bound
        found, objective = self.program.value(x), self.value(x)
        if outcome.bound is not None and bound is not None:
            met = outcome.claim is Status.OPTIMAL or self.better(objective, bound)
            # a difference below 1 between integers is the solver's tolerance
            if met and abs(outcome.bound - found) < 1:
                bound = objective
        self._record(objective, bound)
        return Status.OPTIMAL if bound == objective else Status.FEASIBLE, x, bound


@dataclass(frozen=True)
class GenericSolver(Solver):
    """A solver of every problem with a formulation; a subclass implements the search.

    Parameters
    ----------
    relative_gap : float
        Relative gap at which the search stops.
    native : mapping of str to object
        Options of the solver itself, by the names that it gives them. In a profile, they stand
        beside the others.

    Attributes
    ----------
    set_by : mapping of str to str
        Native options that optsched sets, with what it sets them by.
    threads_by : str
        Native option that sets the number of threads.
    floating_point : bool
        Whether the solver computes in floating point, to a tolerance.
    largest_number : int
        Largest absolute number in rows and bounds of variables that such a solver may handle. From
        the double of 500,000 on, a tolerance of 1e-6 hides whole units.
    largest_objective : int
        Largest absolute objective that such a solver may handle; wrong optima were claimed from
        some multiple of it on.
    """

    relative_gap: float = 0.0
    native: Mapping[str, Any] = field(
        default_factory=dict, kw_only=True, hash=False, metadata={"native": True}
    )

    set_by: ClassVar[Mapping[str, str]] = {}
    threads_by: ClassVar[str] = "threads"
    _imports: ClassVar[Sequence[str]] = ()  # modules of the solver
    floating_point: ClassVar[bool] = True
    largest_number: ClassVar[int] = 500_000
    largest_objective: ClassVar[int] = 10**11

    def __post_init__(self) -> None:
        if not 0 <= self.relative_gap < 1:
            raise InputError(f"relative_gap: {self.relative_gap}; expected from 0 to below 1")
        for name in self.native:
            if name in self.set_by:
                raise InputError(f"option {name!r} of {self.name} is set by {self.set_by[name]}")
        if self.native and self.installed_version() is not None:
            self.check_native()

    @property
    def threads(self) -> int:
        """Number of threads, by default one."""
        return max(1, int(self.native.get(self.threads_by, 1)))

    def check_native(self) -> None:
        """Check the names and values of `native`.

        Raises
        ------
        InputError
            If the solver refuses an option.
        """
        self._set_native((), lambda *_: None, "it")

    def _set_native(
        self, known: Collection[str], put: Callable[[str, Any], object], brand: str
    ) -> None:
        """Set the native options by a function that fails for a value that the solver refuses."""
        for name, value in self.native.items():
            if name not in known:
                raise self.unknown_option(name, known)
            try:
                put(name, value)
            except Exception:
                expected = f"expected a value that {brand} accepts"
                raise self.refused_option(name, expected) from None

    def unknown_option(self, name: str, known: Collection[str]) -> UnknownNameError:
        """Return the error of an option that neither this class nor the solver itself has."""
        own = [option.name for option in settings_of(type(self))]
        own += [one for one in known if one not in self.set_by]
        return UnknownNameError(f"option of solver {self.name!r}", name, own)

    def refused_option(self, name: str, expected: str) -> InputError:
        """Return the error of a native option whose value the solver refuses."""
        value = self.native[name]
        return InputError(f"option {name!r} of solver {self.name!r}: {value!r}; {expected}")

    def prepare(self, problem: Problem[Any] | None = None) -> None:
        """Import the solver."""
        for module in self._imports:
            import_module(module)

    @abstractmethod
    def run(self, search: Search) -> Outcome:
        """Search, report incumbents to ``search.found``, and return the outcome."""

    def refusal(self, search: Search) -> Outcome | None:
        """Return the refusal of a program whose numbers are too large for the solver, or None."""
        if not self.floating_point:
            return None
        program = search.program
        parts = (program.row_lower, program.row_upper, program.lower, program.upper)
        numbers = np.abs(np.concatenate((program.values, *parts)))
        largest = numbers[numbers != UNBOUNDED].max(initial=0)
        if largest > self.largest_number:
            said = f"a row or a bound holds the number {largest:,}; above {self.largest_number:,}"
        elif (term := program.terms.max()) > self.largest_objective:
            said = f"a term of the objective reaches {term:,.0f}; above {self.largest_objective:,}"
        else:
            return None
        return Outcome(Status.NO_SOLUTION, message=f"{said} its tolerance hides units: {ADVICE}")

    def solve(
        self,
        problem: Problem[Any],
        *,
        budget: Budget,
        hint: Any = None,
        seed: int = 0,
        on_incumbent: OnIncumbent | None = None,
    ) -> Result:
        """Solve `problem`, with the parameters and the result of `Solver.solve`.

        The solution is at least as good as the hint. The status is ``error`` if the solver fails,
        and ``no-solution`` if the program is too large. Only `KeyboardInterrupt` and exceptions of
        `on_incumbent` are raised.
        """
        search = Search(budget, seed, on_incumbent)
        x = bound = None
        try:
            search.begin(problem, hint, self)
            outcome = _trivial_outcome(search.program)
            outcome = outcome or search.checked(self.refusal(search) or self.run(search))
            status, x, bound = search.conclude(outcome)
            solution = None if x is None else search.formulation.decode(x)
        except Exception as error:
            if error is search.callback_error:
                raise
            solution = None
            if isinstance(error, InputError) and not isinstance(error, StatementError):
                outcome = Outcome(Status.NO_SOLUTION, message=str(error))
            else:
                kind = "" if isinstance(error, InputError) else f"{type(error).__name__}: "
                outcome = Outcome(Status.ERROR, message=f"{kind}{error}")
            status = outcome.claim
        if solution is None and hint is not None and status is Status.NO_SOLUTION:
            status, solution = Status.FEASIBLE, hint
        return Result(
            solver=self.name,
            status=status,
            solution=solution,
            objective=None if x is None else search.value(x),
            bound=bound,
            limit=outcome.limit if status in (Status.FEASIBLE, Status.NO_SOLUTION) else None,
            seconds=search.seconds(),
            work=outcome.work,
            incumbents=tuple(search.incumbents),
            version=self.installed_version() or "",
            seed=seed,
            message=outcome.message,
        )


def own_log(name: str) -> Callable[[str], None] | None:
    """Return a function that logs the text of a solver line by line; None without ``-v``."""
    log = logging.getLogger("optsched")

    def say(text: str) -> None:
        for line in text.splitlines():
            log.debug("%s: %s", name, line)

    return say if log.isEnabledFor(logging.DEBUG) else None


def _trivial_outcome(program: Program) -> Outcome | None:
    lower, upper = program.row_lower, program.row_upper
    empty = (program.lower > program.upper).any() or (lower > upper).any()
    if empty or (not program.num_variables and ((lower > 0).any() or (upper < 0).any())):
        return Outcome(Status.INFEASIBLE)
    if not program.num_variables:
        return Outcome(Status.OPTIMAL, x=np.empty(0, dtype=np.int64), bound=program.offset)
    return None


def run_in_thread(
    run: Callable[[Post], object],
    stop: Callable[[], object],
    search: Search,
    abandon: Callable[[], object] | None = None,
) -> None:
    """Call `run` in a second thread while this one handles Ctrl-C and records incumbents.

    `run` searches without holding Python's global lock, and calls the `Post` that it gets with each
    incumbent or bound, which `search` records; `stop` makes it return soon, with what it has found.
    So does `abandon`, by default `stop`, after an exception, when nothing found is wanted.
    """
    posts: SimpleQueue[tuple[float | None, float | None, float] | None] = SimpleQueue()
    failures: list[BaseException] = []
    ended = Event()

    def post(objective: float | None, bound: float | None, seconds: float | None = None, /) -> None:
        now = search.seconds()
        posts.put((objective, bound, now if seconds is None else min(seconds, now)))

    def work() -> None:
        try:
            run(post)
        except BaseException as error:
            failures.append(error)
        finally:
            ended.set()
            posts.put(None)

    # no daemon: Python aborts if it ends while one of them is in compiled code
    thread = Thread(target=work)
    thread.start()
    try:
        while True:
            try:
                posted = posts.get(timeout=STOP_INTERVAL)
            except Empty:
                if interruption.requested():
                    stop()
                continue
            if posted is None:
                break
            objective, bound, seconds = posted
            if objective is None:
                search.bounded(bound)
            else:
                search.found(objective, bound, seconds)
    except BaseException:
        # not by join, which takes the thread for ended when Ctrl-C interrupts it
        while not ended.is_set():
            (abandon or stop)()
            ended.wait(STOP_INTERVAL)
        raise
    thread.join()
    if failures:
        raise failures[0]
