"""Posing problems inside a simulation: solve, verify, fall back, record, capture, charge."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optsched.models.problem import Problem
from optsched.models.snapshot import Snapshot
from optsched.models.snapshot_file import save_snapshot
from optsched.simulator.chosen_solvers import ChosenSolver, text_of
from optsched.solvers.result import Budget, Result, Status
from optsched.solvers.solver import Solver
from optsched.solvers.solving import verify

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
        Write every so-manieth problem of each model.
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
    failures : list of str
        Why, the first few.
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
            chosen.solver.prepare()
            chosen.fallback.prepare()
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
        self.failures: list[str] = []
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
        RuntimeError
            If the fallback fails too.
        """
        chosen = self.solvers[problem.name]
        began = time.perf_counter()
        result = _answer(problem, chosen.solver, chosen.budget, chosen.seed)
        self.solver_seconds += time.perf_counter() - began
        nominal = chosen.solver.seconds_per_solve + result.work * chosen.solver.seconds_per_work
        price = math.ceil(nominal / TICK) * TICK
        if self.charge:
            self.charged += price
        heuristic = result
        if chosen.is_compared or result.status is Status.ERROR:
            heuristic = _answer(problem, chosen.fallback, Budget(), chosen.seed)
        answer, fell_back = self._settle(problem, result, heuristic)
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
                captured,
            )
        )
        return answer.solution

    def _settle(
        self, problem: Problem[Any], result: Result, heuristic: Result
    ) -> tuple[Result, bool]:
        """Return the answer that counts, and whether the fallback had to decide.

        The solver's answer counts where it is better than the heuristic's. Where both are equally
        good the heuristic's does, so that solvers differ only by what they gain. A heuristic may
        find nothing where there is nothing or little to be found.
        """
        if heuristic.solution is None or heuristic.status is Status.ERROR:
            if result.status is not Status.ERROR:
                return result, False
            if heuristic.status is Status.ERROR:
                raise RuntimeError(
                    f"the fallback {heuristic.solver} has no answer: {heuristic.message}"
                )
            self._note_failure(result.message or f"{result.solver}: {result.status.value}")
            return heuristic, True
        if result.solution is None or result.status is Status.ERROR:
            self._note_failure(result.message or f"{result.solver}: {result.status.value}")
            return heuristic, True
        assert result.objective is not None
        assert heuristic.objective is not None
        gain = result.objective - heuristic.objective
        if problem.sense == "min":
            gain = -gain
        if gain < 0:
            self._note_failure(f"{result.solver} stopped with less than {heuristic.solver} finds")
        return (result, False) if gain > 0 else (heuristic, gain < 0)

    def _note_failure(self, reason: str) -> None:
        self.fallbacks += 1
        if len(self.failures) < 5:
            self.failures.append(f"at {self._now} s: {reason}")

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


def _answer(problem: Problem[Any], solver: Solver, budget: Budget, seed: int) -> Result:
    try:
        result = solver.solve(problem, budget=budget, seed=seed)
    except Exception as error:
        message = f"{solver.name} raised {type(error).__name__}: {error}"
        return Result(solver.name, Status.ERROR, message=message)
    return verify(problem, result)


class NothingPosed:
    """Stands in for `Posing` under a policy that poses no problem."""

    charged = 0.0
    fallbacks = 0
    solver_seconds = 0.0
    compared: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self.config: dict[str, Any] = {}
        self.failures: list[str] = []

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
