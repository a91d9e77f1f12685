"""Posing problems inside a simulation: solve, verify, fall back, record, capture, charge."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optsched.errors import InputError
from optsched.models.problem import Problem
from optsched.models.snapshot import Snapshot
from optsched.models.snapshot_file import save_snapshot
from optsched.solvers.result import Budget, Result, Status
from optsched.solvers.solver import Solver
from optsched.solvers.solving import find_solver, verify

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
    """Has a solver answer the problems of a policy.

    No answer is believed before `Problem.violations` has passed it. When the solver fails, answers
    wrongly, or finds nothing within its budget or less than the fallback does, the fallback decides
    and the event is counted. Where both are equally good the fallback's answer is taken too.

    Parameters
    ----------
    model : str
        The kind of problem that the policy poses.
    solver : str or Solver
        Name of a solver or a profile, or a solver.
    fallback : str
        Name of the heuristic that decides when the solver does not.
    budget : Budget, optional
        For one problem. The profile's, or the solver's default work, if left out, so that a run
        does not depend on the machine.
    seed : int, optional
        Seed of the solver's random choices; the profile's own if left out.
    charge : bool
        Whether the nominal time of the solver (its ``seconds_per_solve`` and ``seconds_per_work``)
        delays what is decided.
    capture : path, optional
        Folder that the problems are written to.
    capture_every : int
        Write every so-manieth problem.
    origin : mapping
        What captured snapshots say of where they came from.

    Attributes
    ----------
    config : dict
        Solver, budget and fallback, for the record.
    charged : float
        Simulated seconds that the present decision has cost so far.
    rows : list of tuple
        One row per problem, in the order of `COLUMNS`.
    fallbacks : int
        How often the fallback decided.
    failures : list of str
        Why, the first few.
    solver_seconds : float
        Wall-clock seconds spent in the solver.
    """

    def __init__(
        self,
        model: str,
        solver: str | Solver,
        fallback: str,
        *,
        budget: Budget | None = None,
        seed: int | None = None,
        charge: bool = False,
        capture: Path | None = None,
        capture_every: int = 1,
        origin: Mapping[str, Any] | None = None,
    ) -> None:
        self.solver, profile = find_solver(solver)
        solver = solver if isinstance(solver, str) else profile.name
        self.fallback = self.solver if solver == fallback else find_solver(fallback)[0]
        for chosen in (self.solver, self.fallback):
            if chosen.models is not None and model not in chosen.models:
                raise InputError(f"solver {chosen.name!r} does not answer {model!r} problems")
            chosen.prepare()
        if budget is None and profile.budget == Budget():
            budget = Budget(work=self.solver.default_work)
        self.budget = budget or profile.budget
        self.seed = profile.seed if seed is None else seed
        self.charge = charge
        self.capture = capture
        self.capture_every = capture_every
        self.origin = dict(origin or {}) | {"solver": solver}
        self.config = {
            "solver": solver,
            "solver_version": self.solver.installed_version(),
            "solver_options": dict(profile.options),
            "budget": asdict(self.budget),
            "seed": self.seed,
            "fallback": fallback,
            "charge_decisions": charge,
            "seconds_per_solve": self.solver.seconds_per_solve,
            "seconds_per_work": self.solver.seconds_per_work,
        }
        self.charged = 0.0
        self.rows: list[tuple[Any, ...]] = []
        self.fallbacks = 0
        self.failures: list[str] = []
        self.solver_seconds = 0.0
        self._now = 0.0
        self._decision = 0
        self._posed = 0

    def begin_decision(self, now: float) -> None:
        """Note that the policy decides, at `now` seconds."""
        self._now = now
        self._decision += 1
        self._posed = 0
        self.charged = 0.0

    def pose(self, problem: Problem[Any]) -> Any:
        """Return a verified solution of `problem`.

        Raises
        ------
        RuntimeError
            If the fallback has no valid answer either.
        """
        began = time.perf_counter()
        result = self._answer(problem, self.solver, self.budget)
        self.solver_seconds += time.perf_counter() - began
        nominal = self.solver.seconds_per_solve + result.work * self.solver.seconds_per_work
        price = math.ceil(nominal / TICK) * TICK
        if self.charge:
            self.charged += price
        heuristic = result
        if self.fallback is not self.solver or _failed(result):
            heuristic = self._answer(problem, self.fallback, Budget())
        answer, fell_back = self._settle(problem, result, heuristic)
        self._posed += 1
        captured = ""
        if self.capture is not None and len(self.rows) % self.capture_every == 0:
            captured = self._write(problem, answer)
        self.rows.append(
            (
                self._now,
                self._decision,
                problem.name,
                problem.size,
                result.status.value,
                answer.objective,
                heuristic.objective,
                result.bound,
                result.work,
                price,
                fell_back,
                captured,
            )
        )
        return answer.solution

    def _answer(self, problem: Problem[Any], solver: Solver, budget: Budget) -> Result:
        try:
            result = solver.solve(problem, budget=budget, seed=self.seed)
        except Exception as error:
            message = f"{solver.name} raised {type(error).__name__}: {error}"
            return Result(solver.name, Status.ERROR, message=message)
        return verify(problem, result)

    def _settle(
        self, problem: Problem[Any], result: Result, heuristic: Result
    ) -> tuple[Result, bool]:
        """Return the answer that counts, and whether the fallback had to decide.

        The solver's answer counts where it is better than the heuristic's. Where both are equally
        good the heuristic's does, so that solvers differ only by what they gain.
        """
        if _failed(heuristic):
            if _failed(result):
                raise RuntimeError(
                    f"the fallback {self.fallback.name} has no answer: {heuristic.message}"
                )
            return result, False
        if _failed(result):
            self._note_failure(result.message or f"{result.solver}: {result.status.value}")
            return heuristic, True
        assert result.objective is not None
        assert heuristic.objective is not None
        gain = result.objective - heuristic.objective
        if problem.sense == "min":
            gain = -gain
        if gain < 0:
            self._note_failure(f"{result.solver} stopped with less than {self.fallback.name} finds")
        return (result, False) if gain > 0 else (heuristic, gain < 0)

    def _note_failure(self, reason: str) -> None:
        self.fallbacks += 1
        if len(self.failures) < 5:
            self.failures.append(f"at {self._now} s: {reason}")

    def _write(self, problem: Problem[Any], answer: Result) -> str:
        """Write a problem to a file that bears the number of the decision."""
        assert self.capture is not None
        among_others = "" if self._posed == 1 else f"-{self._posed}"
        file = f"decision-{self._decision:07d}{among_others}.json"
        origin = self.origin | {
            "time": self._now,
            "decision": self._decision,
            "objective": answer.objective,
        }
        save_snapshot(Snapshot(problem, origin=origin), self.capture / file)
        return file

    @property
    def frame(self) -> pd.DataFrame:
        """One row per problem, with the columns of `COLUMNS`."""
        import pandas as pd

        return pd.DataFrame(self.rows, columns=list(COLUMNS))


def _failed(result: Result) -> bool:
    return result.solution is None or result.status is Status.ERROR


class NothingPosed:
    """Stands in for `Posing` under a policy that poses no problem."""

    charged = 0.0
    fallbacks = 0
    solver_seconds = 0.0

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
        raise RuntimeError("this policy names no model, so it cannot pose problems")

    @property
    def frame(self) -> pd.DataFrame:
        """An empty table."""
        import pandas as pd

        return pd.DataFrame(columns=list(COLUMNS))
