"""Which solver answers which of a policy's models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optsched.class_file import ClassInFile, names_file
from optsched.errors import InputError, UnknownNameError
from optsched.solvers.asking import version_of
from optsched.solvers.profiles import Profile
from optsched.solvers.result import Budget
from optsched.solvers.solver import Solver
from optsched.solvers.solving import find_solver

if TYPE_CHECKING:
    from optsched.simulator.policy import Answers

LONGEST = 1e9
"""Seconds, some thirty years: no decision takes longer."""

Named = str | ClassInFile | Solver
"""A solver: itself, its class, or a name."""

Asked = Named | Mapping[str, Named] | None
"""A solver for all models it answers, or one for each of some models, ``MODEL=NAME,...`` as text
(unless a file has that name); the policy's own for the rest."""


@dataclass(frozen=True)
class ChosenSolver:
    """The solver that answers the problems of one model.

    Parameters
    ----------
    name : str
        Of the solver or the profile.
    solver : Solver
        The solver.
    profile : Profile
        Its options, budget and seed.
    fallback : Solver
        The heuristic that decides when the solver does not.
    budget : Budget
        For one problem.
    seed : int
        Of the solver's random choices.
    """

    name: str
    solver: Solver
    profile: Profile
    fallback: Solver
    budget: Budget
    seed: int

    @property
    def is_compared(self) -> bool:
        """Whether a heuristic answers beside the solver: beside itself and a rule it does not."""
        return self.fallback is not self.solver and not self.solver.is_rule

    def to_json(self) -> dict[str, Any]:
        """Return what the record of a run says of it."""
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
    asked: Asked = None,
    *,
    budget: Budget | None = None,
    seed: int | None = None,
) -> dict[str, ChosenSolver]:
    """Return the solver for each model of a policy.

    Parameters
    ----------
    models : mapping of str to Answers
        The models, and what answers when nothing is asked for.
    asked : str, Solver or mapping, optional
        What the user asks for, see `Asked`.
    budget : Budget, optional
        For one problem; the profile's, or the solver's default work, if left out, so that a run
        does not depend on the machine.
    seed : int, optional
        Seed of random choices; the profile's own if left out.

    Raises
    ------
    InputError
        If there is no such solver or model, the solver answers none of the models, or it does not
        state what its work costs.
    """
    names: dict[str, Named] = {model: own.solver for model, own in models.items()}
    names |= _asked_for(models, asked)
    chosen = {}
    for model, given in names.items():
        solver, profile = find_solver(given, model)
        fallback = models[model].fallback
        spare = solver if given == fallback else find_solver(fallback, model)[0]
        _check_prices(solver)
        for one in (solver, spare):
            if not answers(one, model):
                raise InputError(f"solver {one.name!r} does not answer {model!r} problems")
        if models[model].by_objective and solver.is_rule:
            raise InputError(
                f"solver {solver.name!r} is a rule, which does not look at what the settings ask "
                f"for; expected one that does, such as {models[model].solver}"
            )
        own = profile.budget
        if budget is None and own == Budget():
            own = Budget(work=solver.default_work)
        chosen[model] = ChosenSolver(
            name=given if isinstance(given, str) else profile.name,
            solver=solver,
            profile=profile,
            fallback=spare,
            budget=budget or own,
            seed=profile.seed if seed is None else seed,
        )
    return chosen


def text_of(chosen: Mapping[str, ChosenSolver]) -> str:
    """Return what asks for these solvers: one name, or ``MODEL=NAME,...`` if they differ."""
    names = [one.name for one in chosen.values()]
    if len(set(names)) == 1:
        return names[0]
    return ",".join(f"{model}={one.name}" for model, one in chosen.items())


def answers(solver: Solver, model: str) -> bool:
    """Return whether a solver answers problems of a model."""
    return solver.models is None or model in solver.models


def _check_prices(solver: Solver) -> None:
    for name in ("seconds_per_solve", "seconds_per_work"):
        value = getattr(solver, name)
        if not isinstance(value, int | float) or not 0 <= value < LONGEST:
            expected = f"expected a number from 0 to {LONGEST:g}"
            raise InputError(f"solver {solver.name!r} states {value!r} as its {name}; {expected}")


def _asked_for(models: Mapping[str, Answers], asked: Asked) -> Mapping[str, Named]:
    if asked is None:
        return {}
    if isinstance(asked, str) and names_models(asked):
        asked = read_models(asked)
    if isinstance(asked, Mapping):
        for model in asked:
            if model not in models:
                raise UnknownNameError("model of the policy", str(model), models)
        return asked
    solver, _ = find_solver(asked)
    own = {model: asked for model in models if answers(solver, model)}
    if not own:
        wanted = " or ".join(map(repr, models))
        raise InputError(f"solver {solver.name!r} does not answer {wanted} problems")
    return own


def names_models(text: str, base: Path | None = None) -> bool:
    """Return whether a text is ``MODEL=NAME,...``, not a file with such a name.

    Parameters
    ----------
    text : str
        What the user asks for.
    base : path, optional
        The folder that a relative path starts from; the current one if left out.
    """
    file = text.rpartition(":")[0] if names_file(text) else text
    return "=" in text and not Path(base or "", file).is_file()


def read_models(text: str) -> dict[str, str]:
    """Return the solvers of ``MODEL=NAME,...``, by model.

    Raises
    ------
    InputError
        If the text is not of that form.
    """
    read: dict[str, str] = {}
    for part in text.split(","):
        model, equals, name = part.partition("=")
        if not (model and equals and name) or model in read:
            expected = "expected a name, or MODEL=NAME,MODEL=NAME with each model once"
            raise InputError(f"{text!r}; {expected}", field="solver")
        read[model] = name
    return read
