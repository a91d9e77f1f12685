"""Optimization models of decisions, each with data, verification and formulation.

The classes of problems and solutions are attributes of this module, ``models.WindowMKP`` for
instance, and are imported at their first use.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return __dir__()
    if not name.startswith("_"):
        for known, found in _classes():
            if known == name:
                return found
    raise AttributeError(f"module 'optsched.models' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({name for name, _ in _classes()})


def _classes() -> Iterator[tuple[str, type[Any]]]:
    """Yield the public classes of registered models, and the classes that models share.

    The classes of a model are those that the module of its problem exports in ``__all__``, or
    defines.
    """
    import sys

    from optsched import registry

    names = [registry.models[model].__module__ for model in registry.models]
    for module in [sys.modules[name] for name in [*names, "optsched.models.problem"]]:
        public = getattr(module, "__all__", None)
        for name, value in vars(module).items():
            if not isinstance(value, type) or name.startswith("_"):
                continue
            if value.__module__ == module.__name__ if public is None else name in public:
                yield name, value
