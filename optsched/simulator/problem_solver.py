"""The solvers of a run, and their calls: solve, verify, fall back, record, capture and charge."""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optsched.compilation import clock
from optsched.errors import InputError, UnknownNameError
from optsched.models.problem import Problem
from optsched.models.snapshot import Snapshot
from optsched.models.snapshot_file import save_snapshot
from optsched.numbers import LONGEST
from optsched.registry import ClassInFile, home_of, models, origin_of
from optsched.registry import solvers as registered
from optsched.solvers.comparison.claims import contradicted
from optsched.solvers.finding import (
    Profile,
    classes_of,
    find_solver,
    label_of,
    solvers_of,
    supports,
    unsupported,
    version_of,
)
from optsched.solvers.result import Budget, Result, Status
from optsched.solvers.solver import Solver
from optsched.solvers.solver_call import call_solver, prepare

if TYPE_CHECKING:
    import pandas as pd

    from optsched.simulator.policy import Answers

Named = str | ClassInFile | Solver
"""A solver, given as an object, a class in a file, or a name."""

SolverChoice = Named | Mapping[str, Named] | None
"""A user's choice: one solver for all models that it solves, or one for each model that is named.

As text, ``MODEL=NAME,...`` (unless a file has that name). Other models keep the policy's solver."""


@dataclass(frozen=True)
class ChosenSolver:
    """The solver of the problems of one model."""

    name: str
    solver: Solver
    profile: Profile
    fallback: Solver  # decides when the solver does not
    budget: Budget  # for one problem
    seed: int
    options: Mapping[str, Any]  # by the policy's settings, see `Answers`
    is_named: bool  # whether a command can name the solver, as it was not built with options

    @property
    def is_compared(self) -> bool:
        """Whether the fallback solves each problem too, as it does unless the solver is a rule."""
        return self.fallback is not self.solver and not self.solver.is_rule

    def to_json(self) -> dict[str, Any]:
        """Return the entry of the solver in the record of a run."""
        return {
            "solver": self.name,
            "version": version_of(self.solver),
            "options": dict(self.profile.options),
            "budget": asdict(self.budget),
            "seed": self.seed,
            "fallback": self.fallback.name,
            "seconds_per_solve": self.solver.seconds_per_solve,
            "seconds_per_work": self.solver.seconds_per_work,
        }


def choose_solvers(
    models: Mapping[str, Answers],
    choice: SolverChoice = None,
    *,
    budget: Budget | None = None,
    seed: int | None = None,
) -> dict[str, ChosenSolver]:
    """Return the solver of each model of a policy: the user's choice, or the policy's own."""
    names: dict[str, Named] = {model: own.solver for model, own in models.items()}
    names |= _solvers_of_choice(models, choice)
    chosen = {}
    for model, given in names.items():
        fallback, options = models[model].fallback, models[model].options
        solver, profile = find_solver(given, model, options)
        fallback_solver = solver if given == fallback else find_solver(fallback, model, options)[0]
        _check_nominal_time(solver)
        if models[model].by_objective and solver.is_rule:
            raise InputError(
                f"solver {solver.name!r} is a rule, which ignores the objective that the settings "
                f"choose; expected one that optimizes it, such as {models[model].solver}"
            )
        own = profile.budget  # so that a run does not depend on the machine
        if budget is None and own == Budget():
            own = Budget(work=solver.default_work)
        chosen[model] = ChosenSolver(
            name=label_of(given, profile),
            solver=solver,
            profile=profile,
            fallback=fallback_solver,
            budget=budget or own,
            seed=profile.seed if seed is None else seed,
            options=options,
            is_named=not isinstance(given, Solver) or _is_plain(solver, profile),
        )
        log = logging.getLogger("optsched")
        log.debug("%s answers %s problems, limit: %s", chosen[model].name, model, budget or own)
    return chosen


def text_of(chosen: Mapping[str, ChosenSolver]) -> str:
    """Return the option that chooses these solvers: one name, or ``MODEL=NAME,...``."""
    names = [one.name for one in chosen.values()]
    if len(set(names)) == 1:
        return names[0]
    return ",".join(f"{model}={one.name}" for model, one in chosen.items())


def _is_plain(solver: Solver, profile: Profile) -> bool:
    """Return whether a solver without options is registered, or of a class in a file."""
    known = solver.name in registered and type(solver) in classes_of(solver.name)
    return not profile.options and (known or origin_of(type(solver)) is not None)


def _check_nominal_time(solver: Solver) -> None:
    for name in ("seconds_per_solve", "seconds_per_work"):
        value = getattr(solver, name)
        if not isinstance(value, int | float) or not 0 <= value < LONGEST:
            expected = f"expected a number from 0 to {LONGEST:g}"
            raise InputError(f"solver {solver.name!r} states {value!r} as its {name}; {expected}")


def _solvers_of_choice(models: Mapping[str, Answers], choice: SolverChoice) -> Mapping[str, Named]:
    if choice is None:
        return {}
    if isinstance(choice, str) and names_models(choice):
        choice = read_models(choice)
    if isinstance(choice, Mapping):
        for model in choice:
            if model not in models:
                raise UnknownNameError("model of the policy", str(model), models)
        return choice
    solver, _ = find_solver(choice)
    own = {model: choice for model in models if supports(solver, model)}
    if not own:
        raise unsupported(solver.name, *models, known=solvers_of(models))
    return own


def names_models(text: str, base: Path | None = None) -> bool:
    """Return whether a text is ``MODEL=NAME,...``, and not a file's name, from `base` on."""
    file = text.rpartition(":")[0] or text
    return "=" in text and not Path(base or "", file).is_file()


def read_models(text: str) -> dict[str, str]:
    """Return the solvers of ``MODEL=NAME,...``, by model."""
    read: dict[str, str] = {}
    for part in text.split(","):
        model, equals, name = part.partition("=")
        if not (model and equals and name) or model in read:
            expected = "expected a name, or MODEL=NAME,MODEL=NAME with each model once"
            raise InputError(f"{text!r}; {expected}", field="solver")
        read[model] = name
    return read


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
    *("time", "decision", "model", "size", "choice", "status", "objective", "heuristic", "bound"),
    *("work", "price", "fallback", "wrong", "message", "captured"),
)


class ProblemSolver:
    """Solves the problems that a policy poses.

    Every solution passes `Problem.violations` before it is used. If the solver fails, gives a wrong
    answer, or finds no solution or a worse one than the fallback within its budget, the fallback
    decides, and the event is counted. `ties` says which of equally good solutions is used. There
    are no solvers for a policy that poses no problems.
    """

    def __init__(
        self,
        solvers: Mapping[str, ChosenSolver],
        *,
        charge: bool = False,
        ties: Ties = Ties.HEURISTIC,
        capture: Path | str | None = None,
        capture_every: int = 1,
        origin: Mapping[str, Any] | None = None,
    ) -> None:
        self.solvers = solvers
        for model in solvers if ties is Ties.RANDOM else ():
            if models[model].equally_good is Problem.equally_good:
                reason = f"model {model!r} cannot list its equally good solutions"
                raise InputError(f"'random'; {reason}, expected heuristic or solver", field="ties")
        self.charge = charge  # whether the nominal time of solvers delays decisions
        self.ties = ties
        self._draws = {model: random.Random(one.seed) for model, one in solvers.items()}
        self.capture = None if capture is None else _empty_folder(Path(capture))
        self.capture_every = capture_every  # of each model
        self.origin = dict(origin or {})
        self.config: dict[str, Any] = {}  # of the problems, in the record of a run
        if solvers:
            self.config = {
                "solver": text_of(solvers),
                "solvers": {model: chosen.to_json() for model, chosen in solvers.items()},
                "charge_decisions": charge,
                "ties": str(ties),
            }
        self.charged = 0.0  # nominal seconds, for the present decision so far
        self.problems: dict[str, list[Any]] = {name: [] for name in COLUMNS}
        self.fallbacks = 0
        self.solver_seconds = 0.0
        self._unprepared = set(solvers)
        self._now = 0.0
        self._decision = 0
        self._posed = 0
        self._posed_of = dict.fromkeys(solvers, 0)

    def prepare(self, models: Iterable[str]) -> None:
        """Let solvers and fallbacks of models import and compile what they need, once."""
        for model in self._unprepared.intersection(models):
            chosen = self.solvers[model]
            prepare(chosen.solver, chosen.name)
            prepare(chosen.fallback, chosen.fallback.name)
            self._unprepared.remove(model)

    def begin_decision(self, now: float, number: int | None = None) -> None:
        """Begin a decision of the policy at `now` seconds, by default the next one by number."""
        self._now = now
        self._decision = self._decision + 1 if number is None else number
        self._posed = 0
        self.charged = 0.0

    def pose(self, problem: Problem[Any]) -> Any:
        """Return a verified solution, None if neither solver nor fallback finds one."""
        chosen = self.solvers.get(getattr(problem, "name", ""))
        if not self.solvers:
            raise RuntimeError("this policy names no models, so it cannot pose problems")
        if chosen is None:
            what = problem.name if isinstance(problem, Problem) else type(problem).__name__
            known = " or ".join(self.solvers)
            raise ValueError(f"cannot pose {what!r}; the models of the policy are {known}")
        self.prepare([problem.name])
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
            choices = problem.equally_good(used.objective)
            used = replace(used, solution=self._draws[problem.name].choice(choices))
        self.fallbacks += fell_back
        self._posed += 1
        captured = ""
        if self.capture is not None and self._posed_of[problem.name] % self.capture_every == 0:
            captured = self._write(problem, used, chosen)
        self._posed_of[problem.name] += 1
        row = (
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
        for column, value in zip(self.problems.values(), row):
            column.append(value)
        return used.solution

    @property
    def only_solves(self) -> bool:
        """Whether problems are neither charged for nor written, and ties are the fallback's."""
        return not self.charge and self.capture is None and self.ties is Ties.HEURISTIC

    def record(self, model: str, problems: Mapping[str, Sequence[Any]]) -> None:
        """Record problems that a decision kernel has solved, with the solver's results.

        By column: time, decision, size, status, objective, work and, where it has one, choice,
        heuristic, bound and fallback.
        """
        chosen = self.solvers[model]
        given = {"model": model, "choice": "", "wrong": False, "captured": "", "fallback": False}
        work, fell_back = problems["work"], problems.get("fallback", ())
        price = {one: _nominal_time(chosen.solver, one) for one in set(work)}
        worse = _worse(chosen.name, chosen.fallback.name)
        found = dict(problems) | {"price": [price[one] for one in work]}
        found["message"] = [worse if one else "" for one in fell_back] or [""] * len(work)
        for name, column in self.problems.items():
            column.extend(found[name] if name in found else repeat(given.get(name), len(work)))
        self.fallbacks += sum(fell_back)

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


def _empty_folder(folder: Path) -> Path:
    if not folder.is_dir():
        raise InputError("no such folder; expected an empty one to capture to", file=folder)
    if any(folder.iterdir()):
        raise InputError("is not empty; expected an empty folder to capture to", file=folder)
    return folder


def _nominal_time(solver: Solver, work: float) -> float:
    """Return the nominal time of a solver for its work on a problem, in whole ticks."""
    return math.ceil((solver.seconds_per_solve + work * solver.seconds_per_work) / TICK) * TICK


def _choose_result(
    problem: Problem[Any], result: Result, heuristic: Result, ties: Ties
) -> tuple[Result, bool, str]:
    """Return the result to use, whether the fallback decided for the solver, and a message."""
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
    """Return a message for each kind of mishap of solvers in the problems of a run."""
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
