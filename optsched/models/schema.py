"""Declarations of the fields of problems, each in the body of its class.

A declaration defines the constructor, the checks and messages, reading and writing of snapshots,
the JSON Schema of snapshots, and the table on the model's page.

Each value is read by its kind, and all mistakes are reported together. Kinds of values that a
simulation makes, thousands of times in a run, begin with a quick check of plain types.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from textwrap import indent
from typing import Any, NamedTuple, TypeVar

import numpy as np

from optsched.documentation import markdown_table
from optsched.errors import InputError, UnknownNameError
from optsched.fields import Fields, Kind, WrongValueError
from optsched.files import json_text
from optsched.models.fields import Amounts, Labels, read_only, same_length

C = TypeVar("C", bound=type[Any])


class Declared(NamedTuple):
    """The declaration of a field; see `field` for the attributes."""

    name: str
    kind: Kind
    meaning: str
    symbol: str
    default: Any
    filled: Callable[[Fields], Any] | None
    always: bool

    @property
    def is_required(self) -> bool:
        """Whether the field has no default."""
        return self.default is dataclasses.MISSING

    @property
    def may_be_null(self) -> bool:
        """Whether the field may be None, with the same meaning as leaving it out."""
        return self.default is None

    @property
    def on_file(self) -> str:
        """Description of the field on file, with its default; Markdown."""
        if self.is_required:
            return self.kind.on_file
        if self.may_be_null:
            return f"{self.kind.on_file}; optional"
        default = json_text(self.kind.write(self.default)).strip('"')
        return f"{self.kind.on_file}; `{default}` if left out"


def field(
    kind: Kind,
    meaning: str,
    *,
    symbol: str = "",
    default: Any = dataclasses.MISSING,
    filled: Callable[[Fields], Any] | None = None,
    each: Any = dataclasses.MISSING,
    always: bool = False,
    kw_only: bool = False,
) -> Any:
    """Declare a field in the body of a class decorated with `declared`.

    Parameters
    ----------
    kind : Kind
        The kind of field, which checks, reads and writes values.
    meaning : str
        Meaning of the field for the model's page; Markdown.
    symbol : str
        Symbol of the field in the equations of the model's page.
    default : object, optional
        The default; a field without one is required.
    filled : callable, optional
        Function of the fields declared before that returns the value in place of None.
    each : object, optional
        Value in place of None of every entry of a list or table whose kind has `like`.
    always : bool
        Whether the field is written to file even with its default value.
    kw_only : bool
        Whether the constructor accepts the field as a keyword only.
    """

    def every(fields: Fields) -> Any:
        rows = len(fields[kind.like or ""])
        if isinstance(each, int):
            table = (rows, len(fields[kind.of])) if isinstance(kind, Amounts) else rows
            return read_only(np.full(table, each, dtype=np.int64))
        return (each,) * rows

    if each is not dataclasses.MISSING:
        default, filled = None, every
    about = {"kind": kind, "meaning": meaning, "symbol": symbol, "filled": filled, "always": always}
    return dataclasses.field(default=default, kw_only=kw_only, metadata=about)


def labels(like: str, meaning: str, *, as_text: bool = False) -> Any:
    """Declare an optional field with a label for each value of another list."""
    return field(Labels(like, as_text=as_text), meaning, default=None)


class Schema:
    """The fields of a model, a dataclass, in the order of their declaration with `field`."""

    def __init__(self, model: type[Any]) -> None:
        self.model = model
        self.fields = tuple(
            Declared(name=f.name, default=f.default, **f.metadata)
            for f in dataclasses.fields(model)
        )
        before: list[str] = []
        for f in self.fields:
            resources = f.kind.of if isinstance(f.kind, Amounts) else None
            for other in filter(None, (f.kind.like, resources)):
                if other not in before:
                    raise UnknownNameError(f"earlier field of {f.name}", other, before)
            before.append(f.name)
        self._steps = [
            (f.name, f.kind.read, f.kind.like, f.may_be_null, f.filled) for f in self.fields
        ]

    def validated(self, given: Mapping[str, Any]) -> Fields:
        """Return the arguments of the constructor in their stored form."""
        return self._read(Fields(given), [])

    def from_file(self, given: Mapping[str, Any]) -> Fields:
        """Return the fields of a snapshot in their stored form."""
        known = {f.name: f.is_required for f in self.fields}
        mistakes = [f"{name}: missing" for name in known if known[name] and name not in given]
        mistakes += [
            f"{name}: {UnknownNameError('field', name, known)}"
            for name in given
            if name not in known
        ]
        defaults = {f.name: f.default for f in self.fields if not f.is_required}
        return self._read(Fields(defaults | {**given}, on_file=True), mistakes)

    def to_file(self, problem: Any) -> dict[str, Any]:
        """Return the fields of a problem in the form of a file."""
        values = vars(problem)
        return {
            f.name: None if values[f.name] is None else f.kind.write(values[f.name])
            for f in self.fields
            if f.is_required or f.always or not _is_default(f, values)
        }

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the fields on file."""
        return {
            "type": "object",
            "properties": {f.name: _property(f) for f in self.fields},
            "required": [f.name for f in self.fields if f.is_required],
        }

    def table(self) -> str:
        """Return the table of the fields on the model's page, Markdown."""
        rows = [("symbol", "field", "on file", "meaning")]
        for f in self.fields:
            rows.append((f.symbol, f"`{f.name}`", f.on_file, f.meaning))
            rows += [(symbol, "", "", meaning) for symbol, meaning in f.kind.parts()]
        return markdown_table(rows)

    def parameters(self) -> str:
        """Return the section Parameters of the class's docstring, numpydoc."""
        lines = ["Parameters", "----------"]
        for f in sorted(self.fields, key=lambda f: self.model.__dataclass_fields__[f.name].kw_only):
            optional = "" if f.is_required else ", optional"
            lines += [f"{f.name} : {f.kind.in_python}{optional}", f"    {f.meaning}"]
        return "\n".join(lines)

    def _read(self, fields: Fields, mistakes: list[str]) -> Fields:
        given = fields.given
        for name, read, like, may_be_null, filled in self._steps:
            if name not in given:
                continue
            value = given[name]
            if value is None and may_be_null:
                if filled is None or not mistakes:
                    fields[name] = None if filled is None else filled(fields)
                continue
            try:
                fields[name] = value = read(value, fields)
            except WrongValueError as error:
                mistakes += [f"{name}{mistake}" for mistake in error.mistakes]
                if error.mistakes[0].startswith(":"):  # its length does not matter
                    fields.given = {key: one for key, one in fields.given.items() if key != name}
            if like is not None and (mistakes or len(value) != len(fields[like])):
                mistakes += same_length(name, fields, like)
        mistakes = mistakes or self.model.joint_mistakes(fields, on_file=fields.on_file)
        if mistakes:
            raise InputError(*mistakes, field=self.model.name)
        return fields


def declared(cls: C) -> C:
    """Make a class whose fields are declared with `field` a frozen dataclass with a schema."""
    made: Any = dataclasses.dataclass(frozen=True, eq=False, repr=False)(cls)
    made.schema = schema = Schema(made)
    of_init = inspect.signature(made.__init__)
    signature = of_init.replace(parameters=[*of_init.parameters.values()][1:])
    validated = schema.validated
    in_order = tuple(n for n, p in signature.parameters.items() if p.kind is not p.KEYWORD_ONLY)
    defaults = {f.name: f.default for f in schema.fields if not f.is_required}
    names = {f.name for f in schema.fields}

    def __init__(self: Any, *values: Any, **named: Any) -> None:  # noqa: N807
        given = defaults | named
        if values:
            given |= zip(in_order, values)
        is_clear = not values or named.keys().isdisjoint(in_order[: len(values)])
        if given.keys() != names or len(values) > len(in_order) or not is_clear:
            signature.bind(*values, **named)  # raises TypeError
        # faster than setting the attributes of a frozen dataclass one by one
        self.__dict__.update(validated(given))

    made.__init__ = __init__
    made.__signature__ = signature
    head, mark, rest = (made.__doc__ or "").partition("\n    Raises\n")
    parameters = indent(schema.parameters(), "    ")
    made.__doc__ = f"{head}\n\n{parameters}\n{mark}{rest}"
    return made  # type: ignore[no-any-return]


def _is_default(declared: Declared, values: Mapping[str, Any]) -> bool:
    value, default = values[declared.name], declared.default
    if declared.filled is not None:
        fields = Fields()
        fields.update(values)
        default = declared.filled(fields)
    if isinstance(value, np.ndarray):
        return default is not None and np.array_equal(value, default)
    return bool(value == default)


def _property(declared: Declared) -> dict[str, Any]:
    schema = {"description": declared.meaning} | declared.kind.json_schema()
    if declared.may_be_null:
        about = {"description": schema.pop("description")}
        schema = about | {"anyOf": [schema, {"type": "null"}]}
    elif not declared.is_required:
        schema["default"] = declared.kind.write(declared.default)
    return schema
