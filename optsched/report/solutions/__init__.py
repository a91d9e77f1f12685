"""Pictures of solutions.

The picture of a model is a module here, named after the model with underscores for hyphens, with a
function ``figure(problem, solution)``. No list of the modules needs an edit.
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
    """Return the function that draws solutions of a model."""
    if model not in pictured():
        expected = f"expected {', '.join(pictured())}"
        raise InputError(f"no picture of solutions of {model}; {expected}")
    module = import_module(f"{__name__}.{model.replace('-', '_')}")
    draw: Callable[[Problem[Any], Any], Figure] = module.figure
    return draw
