"""Declarations of the fields of problems, each in the body of its class.

A declaration defines the constructor, the checks and messages, reading and writing of snapshots,
the JSON Schema of snapshots, and the table on the model's page.

Valid values of plain types, such as almost all values of a simulation, pass a quick check. If a
value does not, all fields are read by a slow path that notes every mistake.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from textwrap import indent
from typing import Any, NamedTuple, TypeVar

import numpy as np

from optsched.errors import UnknownNameError
from optsched.json_text import json_text
from optsched.models.fields import LARGEST_FIELD, FieldChecks, plain, plain_sequence
from optsched.models.read_only import read_only

Fields = dict[str, Any]
"""Fields that have been read, by name; a field may depend on fields declared before."""

C = TypeVar("C", bound=type[Any])

DOUBTFUL: Any = object()
"""Marker of a value that does not pass the quick check."""

HEAD = 16
"""Number of elements up to which Python is faster than numpy."""


class Reading(FieldChecks):
    """Fields of the slow path, with their mistakes; `on_file` if they come from a file."""

    def __init__(self, kind: str, *, on_file: bool) -> None:
        super().__init__(kind)
        self.on_file = on_file
        self.fields: Fields = {}

    def wrong(self, name: str, mistake: str) -> None:
        """Note that a field cannot be read, so that no other field is compared with it."""
        self.mistakes.append(f"{name}: {mistake}")
        self.unread.add(name)

    def compare_length(self, name: str, other: str | None) -> None:
        """Note a difference in the lengths of two lists, if both could be read."""
        if other is None or self.fields.get(name) is None or {name, other} & self.unread:
            return
        self.same_length(name, self.fields[name], other, self.fields[other])


class Kind(ABC):
    """Base class of the kinds of fields.

    Attributes
    ----------
    on_file, in_python : str
        Description of a value on file and in Python.
    expected : str
        Description of the valid values in messages: "expected ...".
    blank : object
        Substitute for a value that could not be read, which leads to no further mistakes.
    like : str or None
        Name of a list, declared before, with the same length.
    """

    on_file = ""
    in_python = ""
    expected = ""
    blank: Any = ()
    like: str | None = None

    @abstractmethod
    def accept(self, value: Any, fields: Fields) -> Any:
        """Return a valid value of Python in its stored form, or `DOUBTFUL`."""

    def read(self, name: str, value: Any, reading: Reading) -> Any:
        """Return a value in its stored form, and note its mistakes."""
        read = self.accept(value, reading.fields)
        if read is DOUBTFUL:
            reading.wrong(name, f"{value!r}; {self.expected}")
            return self.blank
        return read

    def write(self, value: Any) -> Any:
        """Return a stored value in the form of a file."""
        if isinstance(value, np.ndarray):
            return value.tolist()
        return list(value) if isinstance(value, tuple) else value

    @abstractmethod
    def json_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the value on file."""

    def parts(self) -> Sequence[tuple[str, str]]:
        """Return (symbol, meaning) of the parts of a value, for the model's page."""
        return ()


class Limit(NamedTuple):
    """Upper limit of an integer that depends on fields declared before, those in `needs`.

    `most` returns the limit from all fields read so far; the text for messages has {} for it.
    """

    needs: tuple[str, ...]
    most: Callable[[Fields], int]
    text: str


class Integer(Kind):
    """An integer from `least` to `most`, or without upper limit; described as `expected`."""

    in_python = "int"

    def __init__(
        self,
        least: int = 0,
        most: int | None = None,
        expected: str | None = None,
        limit: Limit | None = None,
    ) -> None:
        self.least, self.limit = least, limit
        self.most = math.inf if most is None else most
        self.blank = least if most is None else most
        self.bounds = {"minimum": least} | ({} if most is None else {"maximum": most})
        is_open = most is None or most == LARGEST_FIELD
        self.on_file = f"integer from {least}" if is_open else f"integer, {least} to {most:,}"
        to = "" if most is None else f" to {most}"
        self.expected = expected or f"expected an integer from {least}{to}"

    def accept(self, value: Any, fields: Fields) -> Any:
        if type(value) is not int or not self.least <= value <= self.most:
            return DOUBTFUL
        return value if self.limit is None or value <= self.limit.most(fields) else DOUBTFUL

    def read(self, name: str, value: Any, reading: Reading) -> Any:
        value = plain(value)
        if type(value) is not int or not self.least <= value <= self.most:
            reading.wrong(name, f"{value!r}; {self.expected}")
            return self.blank
        if self.limit is not None and not reading.unread & {*self.limit.needs}:
            most = self.limit.most(reading.fields)
            if value > most:
                reading.wrong(name, f"{value}; expected at most {self.limit.text.format(most)}")
        return value

    def json_schema(self) -> dict[str, Any]:
        return {"type": "integer", **self.bounds}


class Integers(Kind):
    """A list of integers from `least`, stored as a read-only int64 array or as a tuple."""

    def __init__(
        self,
        least: int = 0,
        *,
        like: str | None = None,
        limit: Limit | None = None,
        as_tuple: bool = False,
    ) -> None:
        self.least, self.like, self.limit, self.as_tuple = least, like, limit, as_tuple
        self.on_file = f"list of integers from {least}"
        self.in_python = "sequence of int" if as_tuple else "array_like of int"
        self.blank = () if as_tuple else np.empty(0, np.int64)

    def accept(self, value: Any, fields: Fields) -> Any:
        most = LARGEST_FIELD if self.limit is None else self.limit.most(fields)
        if type(value) in (list, tuple):
            if not {*map(type, value)} <= {int}:
                return DOUBTFUL
            if value and not (min(value) >= self.least and max(value) <= most):
                return DOUBTFUL
        elif not is_table(value, 1, self.least, most):
            return DOUBTFUL
        if self.like is not None and len(value) != len(fields[self.like]):
            return DOUBTFUL
        if isinstance(value, np.ndarray):
            return tuple(value.tolist()) if self.as_tuple else read_only(value)
        return tuple(value) if self.as_tuple else read_only(np.array(value, np.int64))

    def read(self, name: str, value: Any, reading: Reading) -> Any:
        array = reading.integers(name, value, at_least=self.least)
        if self.limit is not None and not reading.unread & {*self.limit.needs}:
            most = self.limit.most(reading.fields)
            expected = f"expected at most {self.limit.text.format(most)}"
            above = np.flatnonzero(array > most).tolist()
            reading.note(name, [f"{name}[{i}]: {array[i]}; {expected}" for i in above])
        return tuple(array.tolist()) if self.as_tuple else array

    def json_schema(self) -> dict[str, Any]:
        most = LARGEST_FIELD
        if self.limit is not None and not self.limit.needs:
            most = self.limit.most({})
        return {
            "type": "array",
            "items": {"type": "integer", "minimum": self.least, "maximum": most},
        }


class Choice(Kind):
    """One of several texts."""

    def __init__(self, *choices: str) -> None:
        self.choices, self.blank = choices, choices[0]
        self.on_file = _listed([f"`{choice}`" for choice in choices])
        self.in_python = f"{{{', '.join(map(repr, choices))}}}".replace("'", '"')
        self.expected = f"expected {_listed(choices)}"

    def accept(self, value: Any, fields: Fields) -> Any:
        return value if isinstance(value, str) and value in self.choices else DOUBTFUL

    def json_schema(self) -> dict[str, Any]:
        return {"enum": list(self.choices)}


class Flag(Kind):
    """A truth value."""

    on_file = "true or false"
    in_python = "bool"
    expected = "expected true or false"
    blank = False

    def accept(self, value: Any, fields: Fields) -> Any:
        return value if type(value) is bool else DOUBTFUL

    def json_schema(self) -> dict[str, Any]:
        return {"type": "boolean"}


class Label(Kind):
    """A text or an integer as a label; described as `expected` in messages."""

    on_file = "text or integer"
    in_python = "str or int"
    blank = None

    def __init__(self, expected: str = "expected a text or an integer") -> None:
        self.expected = expected

    def accept(self, value: Any, fields: Fields) -> Any:
        return value if type(value) in (int, str) else DOUBTFUL

    def json_schema(self) -> dict[str, Any]:
        return {"type": ["integer", "string"]}


class Labels(Kind):
    """A label, text or integer, for each value of another list; with `as_text`, all as texts."""

    on_file = "list of texts or integers"
    in_python = "sequence"
    blank = None

    def __init__(self, like: str, *, as_text: bool = False) -> None:
        self.like = self.of = like
        self.as_text = as_text
        self.kinds = {str} if as_text else {int, str}

    def accept(self, value: Any, fields: Fields) -> Any:
        if type(value) not in (list, tuple) or not {*map(type, value)} <= self.kinds:
            return DOUBTFUL
        return tuple(value) if len(value) == len(fields[self.of]) else DOUBTFUL

    def read(self, name: str, value: Any, reading: Reading) -> Any:
        labels = plain_sequence(value)
        if labels is None or not {*map(type, labels)} <= {int, str}:
            reading.mistakes.append(f"{name}: expected a list of labels, texts or integers")
            return None
        return tuple(map(str, labels)) if self.as_text else labels

    def json_schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": ["integer", "string"]}}


class JobNumbers(Kind):
    """Distinct numbers of jobs in ascending order, from 1 on file and 0 in Python.

    Parameters
    ----------
    of : str
        The field that has a value for each of these jobs.
    noun : str
        What such a job is called.
    """

    in_python = "sequence of int, from 0"

    def __init__(self, of: str, noun: str) -> None:
        self.of, self.noun = of, noun
        self.on_file = f"list of distinct numbers of {noun}s, from 1"

    def accept(self, value: Any, fields: Fields) -> Any:
        if type(value) not in (list, tuple) or not {*map(type, value)} <= {int}:
            return DOUBTFUL
        if value and not (min(value) >= 0 and max(value) < len(fields[self.of])):
            return DOUBTFUL
        if len({*value}) < len(value):
            return DOUBTFUL
        return tuple(sorted(value))

    def read(self, name: str, value: Any, reading: Reading) -> Any:
        given = plain(value)
        if not isinstance(given, list | tuple) or not {*map(type, given)} <= {int}:
            reading.wrong(name, f"expected a {self.on_file}")
            return self.blank
        most, known = LARGEST_FIELD, ""
        if self.of not in reading.unread:
            most = len(reading.fields[self.of])
            known = f" to {most}"
        jobs = [job - reading.on_file for job in given]
        wrong = [
            f"{name}[{place}]: {job + 1}; expected a {self.noun}, from 1{known}"
            for place, job in enumerate(jobs)
            if not 0 <= job < most
        ]
        wrong += [
            f"{name}[{place}]: {job + 1} again; expected every {self.noun} once"
            for place, job in enumerate(jobs)
            if job in jobs[:place]
        ]
        reading.note(name, wrong)
        return tuple(sorted(set(jobs)))

    def write(self, value: Any) -> Any:
        return [job + 1 for job in value]

    def json_schema(self) -> dict[str, Any]:
        items = {"type": "integer", "minimum": 1}
        return {"type": "array", "items": items, "uniqueItems": True}


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
    always : bool
        Whether the field is written to file even with its default value.
    kw_only : bool
        Whether the constructor accepts the field as a keyword only.
    """
    about = {"kind": kind, "meaning": meaning, "symbol": symbol, "filled": filled, "always": always}
    return dataclasses.field(default=default, kw_only=kw_only, metadata=about)


def labels(like: str, meaning: str) -> Any:
    """Declare an optional field with a label for each value of another list."""
    return field(Labels(like), meaning, default=None)


class Schema:
    """The fields of a model, a dataclass, in the order of their declaration with `field`."""

    def __init__(self, model: type[Any]) -> None:
        self.model = model
        self.fields = tuple(
            Declared(name=f.name, default=f.default, **f.metadata)
            for f in dataclasses.fields(model)
        )
        self._rule = model.joint_mistakes
        self._steps = [(f.name, _or_default(f)) for f in self.fields]

    def validated(self, given: Mapping[str, Any]) -> Fields:
        """Return the arguments of the constructor in their stored form.

        Raises
        ------
        InputError
            If there are mistakes; the message lists all of them.
        """
        fields = self.accept(given)
        if fields is not None:
            return fields
        return self._read(Reading(self.model.name, on_file=False), given)

    def accept(self, given: Mapping[str, Any]) -> Fields | None:
        """Return the fields in their stored form if all pass the quick check; otherwise None."""
        fields: Fields = {}
        for name, accept in self._steps:
            value = accept(given[name], fields)
            if value is DOUBTFUL:
                return None
            fields[name] = value
        return None if self._rule(fields, on_file=False) else fields

    def from_file(self, fields: Mapping[str, Any]) -> Fields:
        """Return the fields of a snapshot in their stored form.

        Raises
        ------
        InputError
            If there are mistakes; the message lists all of them.
        """
        reading = Reading(self.model.name, on_file=True)
        known = {f.name: f.is_required for f in self.fields}
        reading.mistakes += [
            f"{name}: missing" for name in known if known[name] and name not in fields
        ]
        reading.mistakes += [
            f"{name}: {UnknownNameError('field', name, known)}"
            for name in fields
            if name not in known
        ]
        return self._read(reading, fields)

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
        lines = ["| symbol | field | on file | meaning |", "|---|---|---|---|"]
        for f in self.fields:
            lines.append(markdown_row(f.symbol, f"`{f.name}`", f.on_file, f.meaning))
            lines += [markdown_row(symbol, "", "", meaning) for symbol, meaning in f.kind.parts()]
        return "\n".join(lines)

    def parameters(self) -> str:
        """Return the section Parameters of the class's docstring, numpydoc."""
        lines = ["Parameters", "----------"]
        for f in sorted(self.fields, key=lambda f: self.model.__dataclass_fields__[f.name].kw_only):
            optional = "" if f.is_required else ", optional"
            lines += [f"{f.name} : {f.kind.in_python}{optional}", f"    {f.meaning}"]
        return "\n".join(lines)

    def _read(self, reading: Reading, given: Mapping[str, Any]) -> Fields:
        fields = reading.fields
        for f in self.fields:
            value = given.get(f.name, None if f.is_required else f.default)
            if f.name not in given and f.is_required:
                fields[f.name] = f.kind.blank
                reading.unread.add(f.name)
            elif value is None and f.may_be_null:
                fields[f.name] = None
            else:
                fields[f.name] = f.kind.read(f.name, value, reading)
                reading.compare_length(f.name, f.kind.like)
        reading.done()
        for f in self.fields:
            if fields[f.name] is None and f.filled is not None:
                fields[f.name] = f.filled(fields)
        reading.mistakes += self._rule(fields, on_file=reading.on_file)
        reading.done()
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
    count = len(schema.fields)

    def __init__(self: Any, *values: Any, **named: Any) -> None:  # noqa: N807
        given = defaults | named
        if values:
            given |= zip(in_order, values)
        is_clear = not values or named.keys().isdisjoint(in_order[: len(values)])
        if len(given) != count or len(values) > len(in_order) or not is_clear:
            signature.bind(*values, **named)  # raises TypeError
        # faster than setting the attributes of a frozen dataclass one by one
        try:
            self.__dict__.update(validated(given))
        except KeyError:  # one name in place of another
            signature.bind(*values, **named)
            raise

    made.__init__ = __init__
    made.__signature__ = signature
    head, mark, rest = (made.__doc__ or "").partition("\n    Raises\n")
    parameters = indent(schema.parameters(), "    ")
    made.__doc__ = f"{head}\n\n{parameters}\n{mark}{rest}"
    return made  # type: ignore[no-any-return]


def _or_default(declared: Declared) -> Callable[[Any, Fields], Any]:
    """Return the quick check of a field, which accepts None if the field may be null."""
    accept, filled = declared.kind.accept, declared.filled
    if not declared.may_be_null:
        return accept
    if filled is None:
        return lambda value, fields: None if value is None else accept(value, fields)
    return lambda value, fields: filled(fields) if value is None else accept(value, fields)


def _is_default(declared: Declared, values: Mapping[str, Any]) -> bool:
    value, default = values[declared.name], declared.default
    if declared.filled is not None:
        default = declared.filled(dict(values))
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


def markdown_row(*cells: str) -> str:
    """Return a row of a Markdown table."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _listed(words: Sequence[str]) -> str:
    return " or ".join(part for part in (", ".join(words[:-1]), words[-1]) if part)


def is_table(value: Any, dimensions: int, least: int, most: int = LARGEST_FIELD) -> bool:
    """Return whether a value is an int64 array with given dimensions and bounds."""
    if not isinstance(value, np.ndarray) or value.dtype != np.int64 or value.ndim != dimensions:
        return False
    if dimensions == 1 and len(value) <= HEAD:
        numbers = value.tolist()
        return not numbers or (min(numbers) >= least and max(numbers) <= most)
    return not value.size or bool(value.min() >= least and value.max() <= most)
