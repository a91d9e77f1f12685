"""Decisions as optimisation problems: a package each, with data, formulation and verification.

The problems and their solutions are here by the names of their classes, ``models.WindowMKP`` for
instance; they are imported when they are first used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def __getattr__(name: str) -> Any:
    if not name.startswith("_"):
        for known, found in _classes():
            if known == name:
                return found
    raise AttributeError(f"module 'optsched.models' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({name for name, _ in _classes()})


def _classes() -> Iterator[tuple[str, type[Any]]]:
    """Yield the public classes of the registered models, and those that models have in common.

    Of a model they are those of the module of its problem, and those that its package exports.
    """
    import sys

    from optsched import registry

    names = [registry.models[model].__module__ for model in registry.models]
    for module in [sys.modules[name] for name in [*names, "optsched.models.problem"]]:
        package = sys.modules.get(module.__package__ or "")
        exported = {name: getattr(package, name) for name in getattr(package, "__all__", ())}
        for name, value in (vars(module) | exported).items():
            if not isinstance(value, type) or name.startswith("_"):
                continue
            if value.__module__ == module.__name__ or name in exported:
                yield name, value
