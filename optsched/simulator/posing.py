"""Posing problems inside a simulation: solve, verify, fall back, record, capture, charge."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optsched.errors import InputError
from optsched.models.problem import Problem
from optsched.models.snapshot import Snapshot
from optsched.models.snapshot_file import save_snapshot
from optsched.simulator.chosen_solvers import LONGEST, ChosenSolver, text_of
from optsched.solvers.comparison.claims import contradicted
from optsched.solvers.result import Budget, Result, Status
from optsched.solvers.solver_call import call_solver, prepare

if TYPE_CHECKING:
    import pandas as pd

TICK = 2.0**-20
"""Seconds; prices are whole numbers of it, about a microsecond. A power of two, so that times up to
2^33 s are exact in binary with charges added to them, and a job's end minus its start is its run
time to the last digit."""

COLUMNS = (
    "time",
    "decision",
    "model",
    "size",
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


class Posing:
    """Has solvers answer the problems of a policy.

    No answer is believed before `Problem.violations` has passed it. When the solver fails, answers
    wrongly, or finds nothing within its budget or less than the fallback does, the fallback decides
    and the event is counted. Where both are equally good the fallback's answer is taken too.

    Parameters
    ----------
    solvers : mapping of str to ChosenSolver
        What answers the problems of each model.
    charge : bool
        Whether the nominal time of the solver (its ``seconds_per_solve`` and ``seconds_per_work``)
        delays what is decided.
    capture : path, optional
        Folder that the problems are written to.
    capture_every : int
        Write every N-th problem of each model.
    origin : mapping
        What captured snapshots say of where they came from.

    Attributes
    ----------
    config : dict
        Solvers, budgets and fallbacks, for the record.
    charged : float
        Simulated seconds that the present decision has cost so far.
    rows : list of tuple
        One row per problem, in the order of `COLUMNS`.
    fallbacks : int
        How often the fallback decided.
    solver_seconds : float
        Wall-clock seconds spent in the solvers.
    """

    def __init__(
        self,
        solvers: Mapping[str, ChosenSolver],
        *,
        charge: bool = False,
        capture: Path | None = None,
        capture_every: int = 1,
        origin: Mapping[str, Any] | None = None,
    ) -> None:
        self.solvers = solvers
        for chosen in solvers.values():
            prepare(chosen.solver, chosen.name)
            prepare(chosen.fallback, chosen.fallback.name)
        self.charge = charge
        self.capture = capture
        self.capture_every = capture_every
        self.origin = dict(origin or {})
        self.config = {
            "solver": text_of(solvers),
            "solvers": {model: chosen.to_json() for model, chosen in solvers.items()},
            "charge_decisions": charge,
        }
        self.charged = 0.0
        self.rows: list[tuple[Any, ...]] = []
        self.fallbacks = 0
        self.solver_seconds = 0.0
        self._now = 0.0
        self._decision = 0
        self._posed = 0
        self._posed_of = dict.fromkeys(solvers, 0)

    def begin_decision(self, now: float) -> None:
        """Note that the policy decides, at `now` seconds."""
        self._now = now
        self._decision += 1
        self._posed = 0
        self.charged = 0.0

    def pose(self, problem: Problem[Any]) -> Any:
        """Return a verified solution of `problem`; none if neither solver nor fallback has one.

        Raises
        ------
        InputError
            If the fallback fails too.
        """
        chosen = self.solvers[problem.name]
        began = time.perf_counter()
        result = call_solver(
            chosen.solver, problem, name=chosen.name, budget=chosen.budget, seed=chosen.seed
        )
        self.solver_seconds += time.perf_counter() - began
        per_solve, per_work = chosen.solver.seconds_per_solve, chosen.solver.seconds_per_work
        if result.work * per_work > LONGEST:
            message = f"{chosen.name} claims work of {result.work:g}, which would take years"
            result = Result(chosen.name, Status.ERROR, message=message)
        price = math.ceil((per_solve + result.work * per_work) / TICK) * TICK
        if self.charge:
            self.charged += price
        heuristic = result
        if chosen.is_compared or result.status is Status.ERROR:
            spare = chosen.fallback
            heuristic = call_solver(
                spare, problem, name=spare.name, budget=Budget(), seed=chosen.seed
            )
            result = contradicted(problem, result, heuristic)
        answer, fell_back, message = _settle(problem, result, heuristic)
        self.fallbacks += fell_back
        self._posed += 1
        captured = ""
        if self.capture is not None and self._posed_of[problem.name] % self.capture_every == 0:
            captured = self._write(problem, answer, chosen.name)
        self._posed_of[problem.name] += 1
        self.rows.append(
            (
                self._now,
                self._decision,
                problem.name,
                problem.size,
                result.status.value,
                answer.objective,
                heuristic.objective if chosen.is_compared else None,
                result.bound,
                result.work,
                price,
                fell_back,
                result.wrong or heuristic.wrong,
                message,
                captured,
            )
        )
        return answer.solution

    def _write(self, problem: Problem[Any], answer: Result, solver: str) -> str:
        """Write a problem to a file that bears the number of the decision."""
        assert self.capture is not None
        among_others = "" if self._posed == 1 else f"-{self._posed}"
        file = f"decision-{self._decision:07d}{among_others}.json"
        origin = self.origin | {
            "solver": solver,
            "time": self._now,
            "decision": self._decision,
            "objective": answer.objective,
        }
        save_snapshot(Snapshot(problem, origin=origin), self.capture / file)
        return file

    @property
    def compared(self) -> frozenset[str]:
        """The models whose problems a heuristic answers beside the solver."""
        return frozenset(model for model, one in self.solvers.items() if one.is_compared)

    @property
    def frame(self) -> pd.DataFrame:
        """One row per problem, with the columns of `COLUMNS`."""
        import pandas as pd

        return pd.DataFrame(self.rows, columns=list(COLUMNS))


def _settle(problem: Problem[Any], result: Result, heuristic: Result) -> tuple[Result, bool, str]:
    """Return the answer that counts, whether the fallback had to decide, and what went wrong.

    The solver's answer counts where it is better than the heuristic's. Where both are equally
    good the heuristic's does, so that solvers differ only by what they gain. A heuristic may
    find nothing where there is nothing or little to be found.
    """
    if result.status is Status.ERROR and heuristic.status is Status.ERROR:
        raise InputError(f"the fallback {heuristic.solver} has no answer: {heuristic.message}")
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
        message = f"{result.solver} stopped with less than {heuristic.solver} finds"
        return heuristic, True, message
    return (result if gain > 0 else heuristic), False, ""


def mishaps(decisions: pd.DataFrame) -> list[str]:
    """Say what went wrong with the solvers of a run, in a sentence for each kind of mishap.

    Parameters
    ----------
    decisions : pandas.DataFrame
        One row per problem, see `Posing.frame`.
    """
    if decisions.empty:
        return []
    wrong, failed = decisions["wrong"], decisions["status"] == Status.ERROR
    told = []
    for which, one, many, what in (
        (wrong, "wrong answer", "wrong answers", "not used"),
        (failed & ~wrong, "failure of a solver", "failures of solvers", "the fallback decided"),
        (
            decisions["fallback"] & ~wrong & ~failed,
            "problem",
            "problems",
            "not answered within the budget, or not as well as by the fallback, which decided",
        ),
    ):
        own = decisions[which]
        if len(own):
            count = f"{len(own):,} {one if len(own) == 1 else many}"
            first = own.iloc[0]
            told.append(f"{count}, {what}; first at {first['time']:.15g} s: {first['message']}")
    return told


def never_answered(decisions: pd.DataFrame) -> bool:
    """Return whether problems were posed and the solver failed at all of them."""
    return not decisions.empty and bool((decisions["status"] == Status.ERROR).all())


class NothingPosed:
    """Stands in for `Posing` under a policy that poses no problem."""

    charged = 0.0
    fallbacks = 0
    solver_seconds = 0.0
    compared: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self.config: dict[str, Any] = {}
        self.solvers: Mapping[str, ChosenSolver] = {}

    def begin_decision(self, now: float) -> None:
        """Note nothing."""

    def pose(self, problem: Problem[Any]) -> Any:
        """Refuse.

        Raises
        ------
        RuntimeError
            Always.
        """
        raise RuntimeError("this policy names no models, so it cannot pose problems")

    @property
    def frame(self) -> pd.DataFrame:
        """An empty table."""
        import pandas as pd

        return pd.DataFrame(columns=list(COLUMNS))
