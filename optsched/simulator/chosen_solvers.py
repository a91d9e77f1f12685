"""The solver of each of a policy's models."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optsched.errors import InputError, UnknownNameError
from optsched.numbers import LONGEST
from optsched.registry import ClassInFile
from optsched.solvers.finding import (
    Profile,
    find_solver,
    label_of,
    solvers_of,
    supports,
    unsupported,
    version_of,
)
from optsched.solvers.result import Budget
from optsched.solvers.solver import Solver

if TYPE_CHECKING:
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
