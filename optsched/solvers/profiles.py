"""Solver profiles: a solver with options, budget and seed, in ``solvers/*.toml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, is_dataclass
from pathlib import Path
from typing import Any

from optsched import registry
from optsched.class_file import names_class
from optsched.content import bundled
from optsched.errors import InputError, UnknownNameError
from optsched.numbers import check_seed
from optsched.settings import settings_of
from optsched.solvers.dispatch import solver_with
from optsched.solvers.result import Budget
from optsched.solvers.solver import Solver
from optsched.text_files import read_toml

KEYS: Mapping[str, tuple[type[Any], str]] = {
    "solver": (str, "the name of a registered solver"),
    "description": (str, "a sentence"),
    "budget": (dict, "a table with seconds or work"),
    "seed": (int, "an integer"),
    "options": (dict, "a table of the solver's options"),
}
"""Type and meaning of the value of each key of a profile."""

LIMITS = ("seconds", "work")
"""Keys of the budget of a profile."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A named configuration of a solver."""

    name: str  # name of the profile: the stem of its file
    solver: str  # registered name of the solver
    description: str = ""  # purpose of the profile
    budget: Budget = field(default_factory=Budget)  # default budget of a solve
    seed: int = 0  # default seed of random choices
    options: Mapping[str, Any] = field(default_factory=dict)  # options of the solver


def profile_names() -> list[str]:
    """Return the names of the bundled profiles."""
    return sorted(path.stem for path in bundled("solvers").glob("*.toml"))


def load_profile(name: str | Path) -> Profile:
    """Return the bundled profile of a name, or the profile in a TOML file."""
    path = Path(name)
    if path.suffix != ".toml":
        path = bundled("solvers") / f"{name}.toml"
    table = read_toml(path)
    mistakes = [
        f"unknown key {key!r}; known: {', '.join(KEYS)}" for key in table if key not in KEYS
    ]
    mistakes += [
        f"{key}: {table[key]!r}; expected {meaning}"
        for key, (kind, meaning) in KEYS.items()
        if key in table and type(table[key]) is not kind
    ]
    if "solver" not in table:
        mistakes.append("solver: missing; expected the name of a registered solver")
    elif names_class(table["solver"]):
        mistakes.append(f"solver: {table['solver']!r}; expected the name of a registered solver")
    if mistakes:
        raise InputError(*mistakes, file=path)
    try:
        check_seed(table.get("seed", 0), "seed")
        limits = table.get("budget", {})
        for key in limits:
            if key not in LIMITS:
                raise UnknownNameError("key of budget", key, LIMITS)
        budget = Budget(**limits)
        options = table.get("options", {})
        solver_with(registry.solvers[table["solver"]], options)
    except InputError as error:
        raise error.within(path) from None
    return Profile(
        name=path.stem,
        solver=table["solver"],
        description=table.get("description", ""),
        budget=budget,
        seed=table.get("seed", 0),
        options=options,
    )


def options_of(solver: Solver) -> dict[str, Any]:
    """Return the options of a solver that differ from their defaults, and its native ones."""
    if not is_dataclass(solver):
        return {}
    values = {option: getattr(solver, option.name) for option in settings_of(type(solver))}
    changed = {option.name: value for option, value in values.items() if value != option.default}
    return changed | dict(getattr(solver, "native", {}))
