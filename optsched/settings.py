"""Settings, the fields of a policy or solver, given as text or values."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from itertools import chain
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from optsched.errors import InputError, UnknownNameError
from optsched.numbers import LARGEST, parse_integer, parse_number

T = TypeVar("T")

TRUTH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def settings_of(cls: type[Any]) -> list[Field[Any]]:
    """Return the settings of a dataclass, in order, and no settings of any other class."""
    every = fields(cls) if is_dataclass(cls) else ()
    return [field for field in every if field.init and not field.metadata.get("native")]


def values_of(configured: Any) -> dict[str, Any]:
    """Return the values of the settings of a policy, an execution model or a solver, by name."""
    return {field.name: getattr(configured, field.name) for field in settings_of(type(configured))}


def later(default: Any) -> Any:
    """Return the field of a setting that a later version adds, with what all runs did before.

    Runs at its default keep the names that they had in sweeps before there was the setting.
    """
    return dataclasses.field(default=default, metadata={"later": True})


def naming_values_of(configured: Any) -> dict[str, Any]:
    """Return the values of the settings that are part of the name of a run."""
    return {
        one.name: value
        for one in settings_of(type(configured))
        for value in [getattr(configured, one.name)]
        if not (one.metadata.get("later") and value == one.default)
    }


def configure(cls: type[T], settings: Mapping[str, Any], noun: str) -> T:
    """Build a dataclass from settings; a text is read as the type of its field.

    Fields are int, float, bool, str or a Literal of strings, or one of these ``| None``, for which
    the text "None" stands for None. A class that is not a dataclass has no settings. Messages call
    the owner of the settings by `noun`, ``policy 'window'`` for instance.
    """
    types = _types(cls)
    known = [field.name for field in settings_of(cls)]
    for name in known:
        if _plain(types[name]) is None:
            expected = "expected int, float, bool, str or a Literal, or one of these | None"
            raise InputError(f"{name} of {noun} has the type {types[name]}; {expected}")
    values = {}
    for name, value in settings.items():
        if name not in known:
            raise UnknownNameError(f"setting of {noun}", name, known)
        values[name] = _read(value, types[name], f"{name} of {noun}")
    for field in settings_of(cls):
        if field.name not in values and field.default is field.default_factory is MISSING:
            raise InputError(f"setting {field.name!r} of {noun} is missing; it has no default")
    return cls(**values)


def configure_parts(parts: Mapping[str, type[Any]], settings: Mapping[str, Any]) -> list[Any]:
    """Build several dataclasses, by the noun of `configure`, from one set of settings."""
    known = {noun: [field.name for field in settings_of(cls)] for noun, cls in parts.items()}
    for name in settings:
        owners = [noun for noun, names in known.items() if name in names]
        if not owners:
            everything = [*chain.from_iterable(known.values())]
            raise UnknownNameError(f"setting of {' and '.join(parts)}", name, everything)
        if len(owners) > 1:
            raise InputError(f"setting {name!r} is one of {' and of '.join(owners)}")
    return [
        configure(cls, {name: settings[name] for name in settings if name in known[noun]}, noun)
        for noun, cls in parts.items()
    ]


def read_settings(assignments: Sequence[str]) -> dict[str, str]:
    """Return ``KEY=VALUE`` texts as a dictionary."""
    settings: dict[str, str] = {}
    for text in assignments:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise InputError(f"setting {text!r}; expected KEY=VALUE")
        if name in settings:
            raise InputError(f"setting {name!r} is given twice")
        settings[name] = value
    return settings


def has_plain_settings(cls: type[Any]) -> bool:
    """Return whether the settings of a class can be stated as text, see `configure`."""
    types = _types(cls)
    return all(_plain(types[field.name]) is not None for field in settings_of(cls))


_types: Callable[[type[Any]], dict[str, Any]] = cache(get_type_hints)  # type: ignore[assignment]
"""The types of the fields of a class; a short run would spend half of its time on them."""


def _plain(wanted: Any) -> Any:
    """Return the type of a setting without ``| None``; None for a type that no text states."""
    if get_origin(wanted) in (Union, UnionType):
        others = [one for one in get_args(wanted) if one is not NoneType]
        wanted = others[0] if len(others) == 1 else None
    is_plain = wanted in (int, float, bool, str) or get_origin(wanted) is Literal
    return wanted if is_plain else None


def _read(value: Any, wanted: Any, place: str) -> Any:
    if wanted is not (inner := _plain(wanted)):
        return None if value is None or value == "None" else _read(value, inner, place)
    if get_origin(wanted) is Literal:
        if value not in get_args(wanted):
            choices = ", ".join(get_args(wanted))
            raise InputError(f"{place}: {value!r}; expected one of {choices}")
        return value
    if wanted is bool:
        if isinstance(value, bool):
            return value
        if str(value).lower() in TRUTH:
            return TRUTH[str(value).lower()]
        raise InputError(f"{place}: {value!r}; expected yes or no")
    if wanted in (int, float) and not isinstance(value, bool):
        try:
            number = _number(value, wanted)
        except (TypeError, ValueError, OverflowError):
            pass
        else:
            if abs(number) <= LARGEST:
                return number
            raise InputError(f"{place}: {value!r}; expected a number of at most 2^53")
    if wanted is str and isinstance(value, str):
        return value
    expected = {int: "a whole number", float: "a number", str: "text"}[wanted]
    raise InputError(f"{place}: {value!r}; expected {expected}")


def _number(value: Any, wanted: type[int] | type[float]) -> int | float:
    if isinstance(value, str):
        value = parse_integer(value) if wanted is int else parse_number(value)
    number = wanted(value)
    if number != value if wanted is int else math.isnan(number):
        raise ValueError(value)
    return number
