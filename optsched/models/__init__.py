"""Decisions as optimisation problems: a package each, with data, formulation and verification.

The problems and their solutions are here by the names of their classes, ``models.WindowMKP`` for
instance; they are imported when they are first used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import ModuleType


def __getattr__(name: str) -> Any:
    if not name.startswith("_"):
        for module in _modules():
            found = vars(module).get(name)
            if isinstance(found, type) and found.__module__ == module.__name__:
                return found
    raise AttributeError(f"module 'optsched.models' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(
        name
        for module in _modules()
        for name, value in vars(module).items()
        if isinstance(value, type) and value.__module__ == module.__name__
    )


def _modules() -> Iterator[ModuleType]:
    """Yield the modules of the registered models, and that of what they have in common."""
    import sys

    from optsched import registry

    names = [registry.models[model].__module__ for model in registry.models]
    return (sys.modules[name] for name in [*names, "optsched.models.problem"])
