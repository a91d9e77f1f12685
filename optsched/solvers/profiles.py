"""Named solver profiles: a solver with options, a budget and a seed, in ``solvers/*.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from optsched.content import bundled
from optsched.errors import InputError
from optsched.solvers.result import Budget


@dataclass(frozen=True, slots=True)
class Profile:
    """A solver as a user configured it.

    Parameters
    ----------
    name : str
        Name of the profile: the stem of its file.
    solver : str
        Registered name of the solver.
    description : str
        What the profile is for.
    budget : Budget
        What a solve may spend if the user does not say.
    seed : int
        Seed of the solver's random choices if the user does not say.
    options : mapping
        Options of the solver.
    """

    name: str
    solver: str
    description: str = ""
    budget: Budget = field(default_factory=Budget)
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)


def profile_names() -> list[str]:
    """Return the names of the bundled profiles."""
    return sorted(path.stem for path in bundled("solvers").glob("*.toml"))


def load_profile(name: str | Path) -> Profile:
    """Return the bundled profile of that name, or the one in that TOML file.

    Raises
    ------
    InputError
        If the file is not a profile.
    """
    path = Path(name)
    if path.suffix != ".toml":
        path = bundled("solvers") / f"{name}.toml"
    try:
        table = tomllib.loads(path.read_text())
    except OSError as error:
        raise InputError(error.strerror or "cannot be read", file=path) from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"not TOML: {error}", file=path) from None
    unknown = set(table) - {"solver", "description", "budget", "seed", "options"}
    if unknown or not isinstance(table.get("solver"), str):
        mistakes = [f"unknown key {key!r}" for key in sorted(unknown)]
        if not isinstance(table.get("solver"), str):
            mistakes.append("solver: expected the name of a registered solver")
        raise InputError(*mistakes, file=path)
    try:
        budget = Budget(**table.get("budget", {}))
    except (TypeError, InputError) as error:
        raise InputError(f"budget: {error}", file=path) from None
    return Profile(
        name=path.stem,
        solver=table["solver"],
        description=table.get("description", ""),
        budget=budget,
        seed=table.get("seed", 0),
        options=table.get("options", {}),
    )
