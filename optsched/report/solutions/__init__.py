"""Pictures of solutions.

The picture of a model's solutions is one module here, named after the model with underscores for
its hyphens, with a function ``figure(problem, solution)``; nothing else is edited.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import TYPE_CHECKING, Any

from optsched.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

    from optsched.models.problem import Problem


def pictured() -> list[str]:
    """Return the names of the models whose solutions can be drawn."""
    return sorted(found.name.replace("_", "-") for found in pkgutil.iter_modules(__path__))


def find_picture(model: str) -> Callable[[Problem[Any], Any], Figure]:
    """Return the function that draws solutions of a model.

    Raises
    ------
    InputError
        If there is none.
    """
    if model not in pictured():
        there = f"there is one of {', '.join(pictured())}"
        raise InputError(f"no picture of solutions of {model}; {there}")
    module = import_module(f"{__name__}.{model.replace('-', '_')}")
    draw: Callable[[Problem[Any], Any], Figure] = module.figure
    return draw
