"""The solver calls of a simulation: solve, verify, fall back, record, capture and charge."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optsched.class_file import home_of
from optsched.compilation import clock
from optsched.errors import InputError
from optsched.models.problem import ListsEquallyGood, Problem
from optsched.models.snapshot import Snapshot
from optsched.models.snapshot_file import save_snapshot
from optsched.numbers import LONGEST
from optsched.registry import models
from optsched.simulator.chosen_solvers import ChosenSolver, text_of
from optsched.solvers.comparison.claims import contradicted
from optsched.solvers.result import Budget, Result, Status
from optsched.solvers.solver import Solver
from optsched.solvers.solver_call import call_solver, prepare

if TYPE_CHECKING:
    import pandas as pd

TICK = 2.0**-20
"""Unit of nominal time in seconds, about a microsecond.

Being a power of two, it keeps times up to 2^33 s exact in binary after charges have been added, so
that the end of a job minus its start is its run time to the last digit."""


class Ties(StrEnum):
    """Whose answer is used where the solver's and the fallback's are equally good."""

    HEURISTIC = "heuristic"
    """The fallback's: runs of two solvers differ only where one of them gains."""

    SOLVER = "solver"
    """The solver's own."""

    RANDOM = "random"
    """Any of all equally good solutions, at random; the model must be able to list them."""


COLUMNS = (
    "time",
    "decision",
    "model",
    "size",
    "choice",
    "status",
    "objective",
    "heuristic",
    "bound",
    "work",
    "price",
    "fallback",
    "wrong",
    "message",
    "captured",
)


class ProblemSolver:
    """Solves the problems that a policy poses.

    Every solution passes `Problem.violations` before it is used. If the solver fails, gives a wrong
    answer, or finds no solution or a worse one than the fallback within its budget, the fallback
    decides, and the event is counted. `ties` says which of equally good solutions is used.

    Parameters
    ----------
    solvers : mapping of str to ChosenSolver
        The solver of each model.
    charge : bool
        Whether the nominal time of the solver (its ``seconds_per_solve`` and ``seconds_per_work``)
        delays the decision.
    ties : Ties
        Which of equally good solutions is used; random draws use the seed of the solver.
    capture : path, optional
        Folder for snapshots of the problems.
    capture_every : int
        Interval of the capture: every N-th problem of each model is written.
    origin : mapping
        Origin that captured snapshots state.

    Attributes
    ----------
    config : dict
        Solvers, budgets and fallbacks, for the record of the run.
    charged : float
        Nominal seconds charged for the present decision so far.
    rows : list of tuple
        One row per problem, in the order of `COLUMNS`.
    fallbacks : int
        Number of problems that the fallback decided.
    solver_seconds : float
        Wall-clock seconds spent in the solvers.

    Raises
    ------
    InputError
        If ties are to be broken at random and a model cannot list equally good solutions.
    """

    def __init__(
        self,
        solvers: Mapping[str, ChosenSolver],
        *,
        charge: bool = False,
        ties: Ties = Ties.HEURISTIC,
        capture: Path | None = None,
        capture_every: int = 1,
        origin: Mapping[str, Any] | None = None,
    ) -> None:
        self.solvers = solvers
        for model in solvers if ties is Ties.RANDOM else ():
            if not issubclass(models[model], ListsEquallyGood):
                reason = f"model {model!r} cannot list its equally good solutions"
                raise InputError(f"'random'; {reason}, expected heuristic or solver", field="ties")
        for chosen in solvers.values():
            prepare(chosen.solver, chosen.name)
            prepare(chosen.fallback, chosen.fallback.name)
        self.charge = charge
        self.ties = ties
        self._draws = {model: random.Random(one.seed) for model, one in solvers.items()}
        self.capture = capture
        self.capture_every = capture_every
        self.origin = dict(origin or {})
        self.config = {
            "solver": text_of(solvers),
            "solvers": {model: chosen.to_json() for model, chosen in solvers.items()},
            "charge_decisions": charge,
            "ties": str(ties),
        }
        self.charged = 0.0
        self.rows: list[tuple[Any, ...]] = []
        self.fallbacks = 0
        self.solver_seconds = 0.0
        self._now = 0.0
        self._decision = 0
        self._posed = 0
        self._posed_of = dict.fromkeys(solvers, 0)

    def begin_decision(self, now: float, number: int | None = None) -> None:
        """Begin a decision of the policy at `now` seconds, by default the next one by number."""
        self._now = now
        self._decision = self._decision + 1 if number is None else number
        self._posed = 0
        self.charged = 0.0

    def pose(self, problem: Problem[Any]) -> Any:
        """Return a verified solution of `problem`, None if neither solver nor fallback finds one.

        Raises
        ------
        InputError
            If both the solver and the fallback fail, or too many solutions are equally good to draw
            one of them.
        ValueError
            If the policy does not name the model of the problem.
        """
        chosen = self.solvers.get(getattr(problem, "name", ""))
        if chosen is None:
            what = problem.name if isinstance(problem, Problem) else type(problem).__name__
            known = " or ".join(self.solvers)
            raise ValueError(f"cannot pose {what!r}; the models of the policy are {known}")
        began = clock()
        result = call_solver(
            chosen.solver, problem, name=chosen.name, budget=chosen.budget, seed=chosen.seed
        )
        self.solver_seconds += clock() - began
        if result.work * chosen.solver.seconds_per_work > LONGEST:
            message = f"{chosen.name} claims work of {result.work:g}, which would take years"
            result = Result(chosen.name, Status.ERROR, message=message)
        nominal_time = _nominal_time(chosen.solver, result.work)
        if self.charge:
            self.charged += nominal_time
        heuristic = result
        if chosen.is_compared or result.status is Status.ERROR:
            fallback, seed = chosen.fallback, chosen.seed
            heuristic = call_solver(
                fallback, problem, name=fallback.name, budget=Budget(), seed=seed
            )
            result = contradicted(problem, result, heuristic)
        used, fell_back, message = _choose_result(problem, result, heuristic, self.ties)
        if self.ties is Ties.RANDOM and used.objective is not None:
            assert isinstance(problem, ListsEquallyGood)  # checked above for its model
            choices = problem.equally_good(used.objective)
            used = replace(used, solution=self._draws[problem.name].choice(choices))
        self.fallbacks += fell_back
        self._posed += 1
        captured = ""
        if self.capture is not None and self._posed_of[problem.name] % self.capture_every == 0:
            captured = self._write(problem, used, chosen)
        self._posed_of[problem.name] += 1
        self.rows.append(
            (
                self._now,
                self._decision,
                problem.name,
                problem.size,
                "" if used.objective is None else problem.choice(used.objective) or "",
                result.status.value,
                used.objective,
                heuristic.objective if chosen.is_compared else None,
                result.bound,
                result.work,
                nominal_time,
                fell_back,
                result.wrong or heuristic.wrong,
                message,
                captured,
            )
        )
        return used.solution

    @property
    def only_solves(self) -> bool:
        """Whether problems are neither charged for nor written, and ties are the fallback's."""
        return not self.charge and self.capture is None and self.ties is Ties.HEURISTIC

    def record(
        self,
        model: str,
        *,
        times: Sequence[float],
        decisions: Sequence[int],
        sizes: Sequence[str],
        objectives: Sequence[int | None],
        works: Sequence[int],
        statuses: Sequence[Status] | None = None,
        heuristics: Sequence[int | None] | None = None,
        bounds: Sequence[int | None] | None = None,
        fallbacks: Sequence[bool] | None = None,
    ) -> None:
        """Record problems that a decision kernel has solved, with the solver's results.

        Their models do not say what there is to choose (`Problem.choice`). By default all
        results are feasible, without the fallback's objective, without a bound, and
        not worse than the fallback's. `objectives` are those of the results used.
        """
        none: list[None] = [None] * len(times)
        fell_back = fallbacks or [False] * len(times)
        chosen = self.solvers[model]
        ends = {}
        for work, fell in set(zip(works, fell_back)):
            message = _worse(chosen.name, chosen.fallback.name) if fell else ""
            ends[work, fell] = (work, _nominal_time(chosen.solver, work), fell, False, message, "")
        self.fallbacks += sum(fell_back)
        self.rows += [
            (
                now,
                decision,
                model,
                size,
                "",
                status.value,
                objective,
                heuristic,
                bound,
                *ends[work, fell],
            )
            for now, decision, size, status, objective, heuristic, bound, work, fell in zip(
                times,
                decisions,
                sizes,
                statuses or [Status.FEASIBLE] * len(times),
                objectives,
                heuristics or none,
                bounds or none,
                works,
                fell_back,
                strict=True,
            )
        ]

    def _write(self, problem: Problem[Any], used: Result, chosen: ChosenSolver) -> str:
        """Write the snapshot of a problem, and return the file name."""
        assert self.capture is not None
        suffix = "" if self._posed == 1 else f"-{self._posed}"
        file = f"decision-{self._decision:07d}{suffix}.json"
        origin = self.origin | {
            "solver": chosen.name,
            "time": self._now,
            "decision": self._decision,
            "objective": used.objective,
        }
        if home := home_of(type(problem)):
            origin["model"] = home
        snapshot = Snapshot(problem, origin, options=chosen.options)
        save_snapshot(snapshot, self.capture / file)
        return file

    @property
    def compared(self) -> frozenset[str]:
        """The models whose problems the fallback solves beside the solver."""
        return frozenset(model for model, one in self.solvers.items() if one.is_compared)


def _nominal_time(solver: Solver, work: float) -> float:
    """Return the nominal time of a solver for its work on a problem, in whole ticks."""
    return math.ceil((solver.seconds_per_solve + work * solver.seconds_per_work) / TICK) * TICK


def _choose_result(
    problem: Problem[Any], result: Result, heuristic: Result, ties: Ties
) -> tuple[Result, bool, str]:
    """Return the result to use, whether the fallback decided in place of the solver, and a message.

    The solver's result is used if its objective is better than the heuristic's, and of two equally
    good results, if `ties` says so.
    """
    if result.status is Status.ERROR and heuristic.status is Status.ERROR:
        raise InputError(f"the fallback {heuristic.solver} failed: {heuristic.message}")
    if result.status is Status.ERROR:
        return heuristic, True, result.message
    if heuristic.solution is None or heuristic.status is Status.ERROR:
        return result, False, heuristic.message
    if result.solution is None:
        return heuristic, True, result.message or f"{result.solver}: {result.status.value}"
    assert result.objective is not None
    assert heuristic.objective is not None
    gain = result.objective - heuristic.objective
    if problem.sense == "min":
        gain = -gain
    if gain < 0:
        return heuristic, True, _worse(result.solver, heuristic.solver)
    own = gain > 0 or ties is Ties.SOLVER
    return (result if own else heuristic), False, ""


def _worse(solver: str, fallback: str) -> str:
    return f"{solver} found a worse solution than {fallback}"


def mishaps(decisions: pd.DataFrame) -> list[str]:
    """Return a message for each kind of mishap of the solvers of a run.

    Parameters
    ----------
    decisions : pandas.DataFrame
        One row per problem, with the columns `COLUMNS`.
    """
    if decisions.empty:
        return []
    wrong, failed = decisions["wrong"], decisions["status"] == Status.ERROR
    messages = []
    for which, singular, plural, consequence in (
        (wrong, "wrong answer", "wrong answers", "not used"),
        (failed & ~wrong, "failure of a solver", "failures of solvers", "the fallback decided"),
        (
            decisions["fallback"] & ~wrong & ~failed,
            "problem",
            "problems",
            "not solved within the budget, or not as well as by the fallback, which decided",
        ),
    ):
        rows = decisions[which]
        if len(rows):
            count = f"{len(rows):,} {singular if len(rows) == 1 else plural}, {consequence}"
            first = rows.iloc[0]
            messages.append(f"{count}; first at {first['time']:.15g} s: {first['message']}")
    return messages


def never_answered(decisions: pd.DataFrame) -> bool:
    """Return whether problems were posed and the solver failed on every one."""
    return not decisions.empty and bool((decisions["status"] == Status.ERROR).all())


class NoProblems:
    """Stand-in for `ProblemSolver` under a policy that poses no problems."""

    charged = 0.0
    fallbacks = 0
    solver_seconds = 0.0
    compared: frozenset[str] = frozenset()
    rows: tuple[tuple[Any, ...], ...] = ()

    def __init__(self) -> None:
        self.config: dict[str, Any] = {}
        self.solvers: Mapping[str, ChosenSolver] = {}

    def begin_decision(self, now: float, number: int | None = None) -> None:
        """Do nothing."""

    def pose(self, problem: Problem[Any]) -> Any:
        """Raise an error.

        Raises
        ------
        RuntimeError
            Always: the policy names no models.
        """
        raise RuntimeError("this policy names no models, so it cannot pose problems")
