"""Kinds of fields of problems: lists of integers, labels and texts, and tables of amounts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from optsched.arrays import Ints
from optsched.column_sets import COLUMNS, ColumnSet, columns_on_file, interval_text
from optsched.fields import LARGEST_FIELD as LARGEST_FIELD
from optsched.fields import (
    Each,
    Fields,
    Kind,
    Limit,
    Of,
    Table,
    WrongValueError,
    first_few,
    plain,
    plain_sequence,
)
from optsched.numbers import counted

Value = TypeVar("Value")


def cache_last(function: Callable[..., Value]) -> Callable[..., Value]:
    """Cache the last value of a function whose first argument is a read-only array.

    Between two events, a simulation poses many problems with the same array.

    >>> total = cache_last(lambda array: print("adding") or array.sum())
    >>> array = np.arange(4)
    >>> array.flags.writeable = False
    >>> total(array) + total(array)
    adding
    np.int64(12)
    """
    last: tuple[Any, tuple[Any, ...], Any] = (None, (), None)

    @wraps(function)
    def cached(array: NDArray[Any], *arguments: Any) -> Value:
        nonlocal last
        value: Value
        known, given, value = last
        if array is not known or arguments != given:
            value = function(array, *arguments)
            if isinstance(array, np.ndarray) and not array.flags.writeable:
                last = array, arguments, value
        return value

    return cached


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array itself if it is read-only, otherwise a read-only copy."""
    if array.flags.writeable:
        array = array.copy()
        array.flags.writeable = False
    return array


def integer_schema(least: int = 0, most: int = LARGEST_FIELD) -> dict[str, Any]:
    """Return the JSON Schema of an integer."""
    return {"type": "integer", "minimum": least, "maximum": most}


HEAD = 16
"""Number of elements up to which Python is faster than numpy."""


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
        self.expected = f"expected a list of integers of at least {least}"

    def read(self, value: Any, fields: Fields) -> Any:
        array = read_only(value) if is_table(value, 1, self.least) else self._array(value)
        if self.limit is not None:
            most = self.limit.known(fields)
            if most is not None and len(array) and array.max() > most:
                above = np.flatnonzero(array > most).tolist()
                wrong = [f"[{i}]: {self.limit.refused(array[i], most)}" for i in above]
                raise WrongValueError(inside=first_few("", wrong))
        return tuple(array.tolist()) if self.as_tuple else array

    def _array(self, value: Any) -> Ints:
        sound = type(value) in (list, tuple) and {*map(type, value)} <= {int}
        if sound and (not value or (min(value) >= self.least and max(value) <= LARGEST_FIELD)):
            return _frozen(np.array(value, np.int64))
        try:
            array = np.asarray(value)
        except ValueError:  # lists of different lengths
            array = np.empty((0, 0))
        if array.ndim != 1:
            raise WrongValueError(self.expected)
        wrong = [
            f"[{place}]: {one!r}; expected an integer {expected}"
            for place, one in enumerate(array.tolist() if array is value else value)
            if (expected := _not_expected(one, self.least))
        ]
        if wrong or (array.size and array.dtype.kind not in "iu"):
            raise WrongValueError(self.expected, inside=first_few("", wrong))
        return _frozen(array.astype(np.int64))

    def json_schema(self) -> dict[str, Any]:
        most = LARGEST_FIELD
        if self.limit is not None and not self.limit.needs:
            most = self.limit.most(Fields())
        return {"type": "array", "items": integer_schema(self.least, most)}


class Numbers(Each):
    """Numbers of rows, jobs or nodes, or sizes, each a `noun`; distinct ones are kept in order."""

    def __init__(
        self,
        noun: str,  # name of such a number in messages
        # The smallest number in Python and on file
        least: int = 0,
        first: int = 1,
        *,
        # The list that is numbered; each number counts once, and they are stored in order
        of: str = "",
        # The field with the largest number on file, at most `MOST_COLUMNS`, in place of `of`
        within: str = "",
        like: str | None = None,  # name of a list, declared before, with the same length
        distinct: bool = False,  # whether a number that is there again is a mistake
    ) -> None:
        self.noun, self.least, self.first, self.of, self.within = noun, least, first, of, within
        self.distinct = distinct
        numbers = f"{'distinct ' if distinct else ''}numbers of {noun}s, from {first}"
        super().__init__(like, f"list of {numbers if of else f'integers, {first} to `{within}`'}")
        self.in_python = f"sequence of int, from {least}"
        self.items = {"type": "integer", "minimum": first} | (
            {"maximum": MOST_COLUMNS} if within else {}
        )

    def read(self, value: Any, fields: Fields) -> Any:
        least, most = self._limits(fields)
        if type(value) in (list, tuple) and {*map(type, value)} <= {int} and not self.of:
            shift = self.least - least
            if not value or (min(value) >= least and max(value) <= most):
                return tuple(number + shift for number in value) if shift else tuple(value)
        if self.within and plain_sequence(value) is None:
            raise WrongValueError(f"expected a list of integers from {least} to {most}")
        numbers: tuple[int, ...] = super().read(value, fields)
        first: dict[int, int] = {}
        again = [place for place, n in enumerate(numbers) if first.setdefault(n, place) != place]
        if self.distinct and again:
            every = f"again; expected every {self.noun} once"
            wrong = [f"[{i}]: {numbers[i] - self.least + least} {every}" for i in again]
            raise WrongValueError(inside=first_few("", wrong))
        return tuple(sorted(first)) if self.of else numbers

    def reader(self, fields: Fields) -> Callable[[Any], Any]:
        least, most = self._limits(fields)
        to = "" if most == LARGEST_FIELD else f" to {most}"

        def read(number: Any) -> int:
            if type(number) is not int or not least <= number <= most:
                raise WrongValueError(f"{number!r}; expected a {self.noun} from {least}{to}")
            return number - least + self.least

        return read

    def _limits(self, fields: Fields) -> tuple[int, int]:
        """Return the smallest and the largest number where the value comes from."""
        least = self.first if fields.on_file else self.least
        if self.within:
            most = fields.get(self.within, MOST_COLUMNS) - self.first + least
        else:
            count = fields.count(self.of)
            most = LARGEST_FIELD if count is None else count - 1 + least
        return least, most

    def write(self, value: Any) -> Any:
        return [number - self.least + self.first for number in value]

    def json_schema(self) -> dict[str, Any]:
        return super().json_schema() | ({"uniqueItems": True} if self.distinct else {})


class Texts(Kind):
    """Distinct texts, or some of several choices; with `like`, one for each value of a list."""

    in_python = "sequence of str"

    def __init__(self, *choices: str, like: str | None = None) -> None:
        self.choices, self.like = choices, like
        listed = ", ".join(f"`{choice}`" for choice in choices)
        one_of = f", each one of {listed}" if choices else ""
        self.on_file = f"list of {'' if like else 'distinct '}texts{one_of}"
        self.expected = f"expected a {self.on_file}".replace("`", "")

    def read(self, value: Any, fields: Fields) -> Any:
        texts = plain_sequence(value)
        if texts is None or (not self.choices and not {*map(type, texts)} <= {str}):
            raise WrongValueError(self.expected) if self.choices else self.refused(value)
        wrong = [
            f"[{place}]: {text!r}; expected one of {', '.join(self.choices)}"
            for place, text in enumerate(texts)
            if self.choices and not (isinstance(text, str) and text in self.choices)
        ]
        if not wrong and self.like is None and len({*texts}) < len(texts):
            wrong = [f": {list(texts)}; expected each text at most once"]
        if wrong:
            raise WrongValueError(inside=first_few("", wrong))
        return texts

    def json_schema(self) -> dict[str, Any]:
        item = {"enum": list(self.choices)} if self.choices else {"type": "string"}
        schema = {"type": "array", "items": item}
        return schema if self.like else schema | {"uniqueItems": True}


def label(expected: str = "a text or an integer") -> Of:
    """Return the kind of a label."""
    return Of(int, str, expected=expected, on_file="text or integer")


class Labels(Kind):
    """A label, text or integer, for each value of another list; with `as_text`, all as texts."""

    on_file = "list of texts or integers"
    in_python = "sequence"

    def __init__(self, like: str, *, as_text: bool = False) -> None:
        self.like, self.as_text = like, as_text

    def read(self, value: Any, fields: Fields) -> Any:
        labels = plain_sequence(value)
        if labels is None or not {*map(type, labels)} <= {int, str}:
            raise WrongValueError("expected a list of labels, texts or integers")
        as_given = not self.as_text or {*map(type, labels)} <= {str}
        return labels if as_given else tuple(map(str, labels))

    def json_schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": ["integer", "string"]}}


class LabelSets(Each):
    """For each value of `like`, a list of labels in the field `of`, or None for all of them."""

    in_python = "sequence of sequence of str, or None"
    items: Mapping[str, Any] = {
        "anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]
    }

    def __init__(self, of: str, like: str) -> None:
        super().__init__(like, f"list of lists of texts in `{of}`, or null")
        self.of = of

    def reader(self, fields: Fields) -> Callable[[Any], Any]:
        known = {*(fields[self.of] or ())} if self.of in fields else None

        def read(row: Any) -> Any:
            if row is None:
                return None
            if not isinstance(row, list | tuple) or not all(isinstance(text, str) for text in row):
                raise WrongValueError(f"{row!r}; expected a list of texts, or null")
            for text in row:
                if known is not None and text not in known:
                    raise WrongValueError(f"{text!r}; expected a text in {self.of}")
            return tuple(row)

        return read


class Amounts(Kind):
    """A row of integers from 0 for each value of `like`, with a column for each value of `of`.

    Without `like` the number of rows is free.
    """

    def __init__(self, of: str, *, like: str | None = None) -> None:
        self.of, self.like = of, like
        self.on_file = f"list of lists of integers from 0, one for each of `{of}`"
        self.in_python = f"array_like of int, shape ({like or 'rows'}, {of})"
        self.expected = f"expected a {self.on_file}"

    def read(self, value: Any, fields: Fields) -> Any:
        columns = fields.count(self.of)
        if is_table(value, 2, 0) and value.shape[1] == columns:
            return read_only(value)
        rows = plain_sequence(value)
        if rows is None:
            raise WrongValueError(self.expected)
        wrong = [
            f"[{place}]{mistake}"
            for place, row in enumerate(rows)
            for mistake in self._mistakes(row, columns)
        ]
        if wrong:
            raise WrongValueError(inside=first_few("", wrong))
        width = len(rows[0]) if columns is None and rows else columns or 0
        return read_only(np.array(rows, dtype=np.int64).reshape(len(rows), width))

    def _mistakes(self, row: Any, columns: int | None) -> list[str]:
        if not isinstance(row, list | tuple):
            return [f": {row!r}; expected a list of integers from 0"]
        if columns is not None and len(row) != columns:
            values = counted(len(row), "value")
            return [f": {values}; expected {columns}, one for each of {self.of}"]
        return [
            f"[{place}]: {amount!r}; expected an integer from 0 to {LARGEST_FIELD}"
            for place, amount in enumerate(map(plain, row))
            if type(amount) is not int or not 0 <= amount <= LARGEST_FIELD
        ][:1]

    def json_schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "array", "items": integer_schema()}}


class AmountRows(Each):
    """For each value of `like`, rows of a number, and an amount of each of `of`.

    The number is a node of `nodes`, from 0, and no node is in two rows of a value; without `nodes`
    it is a number of chunks, from 1.
    """

    in_python = "sequence of sequences of (int, ...)"
    items: Mapping[str, Any] = {
        "type": "array",
        "items": {"type": "array", "items": integer_schema(), "minItems": 1},
    }

    def __init__(self, of: str, like: str, nodes: str = "") -> None:
        self.of, self.nodes = of, nodes
        row, numbers = ("node", "nodes from 0") if nodes else ("chunks", "a number from 1")
        amounts = f"an amount for each of `{of}`"
        super().__init__(like, f"list of lists of `[{row}, amount, ...]`: {numbers}, {amounts}")

    def reader(self, fields: Fields) -> Callable[[Any], Any]:
        columns, nodes = fields.count(self.of), fields.count(self.nodes)
        number = "node" if self.nodes else "number of chunks"
        least = 0 if self.nodes else 1
        most = LARGEST_FIELD if nodes is None else nodes - 1

        def mistake(row: Any) -> str:
            if not isinstance(row, list | tuple) or {*map(type, row)} != {int}:
                columns_too = "amounts" if columns is None else f"{columns} amounts"
                return f"a {number} and {columns_too}"
            if columns is not None and len(row) != 1 + columns:
                return f"a {number} and {columns} amounts"
            if not least <= row[0] <= most:
                return f"a {number} from {least} to {most}"
            if min(row) < 0 or max(row) > LARGEST_FIELD:
                return f"amounts from 0 to {LARGEST_FIELD}"
            return ""

        def read(rows: Any) -> tuple[Any, ...]:
            if not isinstance(rows, list | tuple):
                raise WrongValueError(f"{rows!r}; expected a list of rows")
            for row in rows:
                if wrong := mistake(row):
                    raise WrongValueError(f"{row!r}; expected {wrong}")
            if self.nodes and len({row[0] for row in rows}) < len(rows):
                raise WrongValueError("expected each node at most once")
            return tuple(map(tuple, rows))

        return read

    def write(self, value: Any) -> Any:
        return [[list(row) for row in rows] for rows in value]


class Records(Kind):
    """Rows of integers in named columns: an array in Python, objects on file.

    The last column, `many`, may be a list with an integer for each value of the field `of`.
    """

    on_file = "list of objects"
    columns: Mapping[str, tuple[int, int]] = {}  # least and largest integer of each column
    many = of = ""

    def __init__(self) -> None:
        self.names = [*self.columns, *filter(None, [self.many])]
        self.expected = f"expected a list of objects with {', '.join(self.names)}"

    @abstractmethod
    def is_sound(self, value: Any, fields: Fields) -> bool:
        """Return True only if the value is an array without a mistake; a quick check."""

    @abstractmethod
    def joint(self, row: Sequence[int], fields: Fields, seen: set[Any]) -> Iterable[str]:
        """Yield what is wrong with the numbers of a row together; `seen` is kept between rows."""

    def read(self, value: Any, fields: Fields) -> Any:
        if self.is_sound(value, fields):
            return read_only(value)
        entries, count = plain(value), fields.count(self.of) if self.many else 0
        if not isinstance(entries, list | tuple):
            raise WrongValueError(self.expected)
        rows, seen = [*map(self._row, entries)], set[Any]()
        wrong = [
            f"[{place}]{mistake}"
            for place, row in enumerate(rows)
            for mistake in self._mistakes(row, count) or self.joint(row or (), fields, seen)
        ]
        if wrong:
            raise WrongValueError(inside=first_few("", wrong))
        if count is None:  # which is a mistake of another field
            rows, count = [], 0
        return read_only(np.array(rows, dtype=np.int64).reshape(-1, len(self.columns) + count))

    def _row(self, entry: Any) -> Sequence[Any] | None:
        """Return an object as a row, and a row as it is; None for anything else."""
        if isinstance(entry, Mapping):
            many = entry.get(self.many, ())
            if entry.keys() != {*self.names} or not isinstance(many, list | tuple):
                return None
            return [*(entry[name] for name in self.columns), *many]
        more = len(entry) - len(self.columns) if isinstance(entry, list | tuple) else -1
        return entry if more == 0 or (more > 0 and self.many) else None

    def _mistakes(self, row: Sequence[Any] | None, count: int | None) -> list[str]:
        if row is None:
            return [f": expected an object with {', '.join(self.names)}"]
        limits = [(f".{name}", *of) for name, of in self.columns.items()]
        many = len(row) - len(limits)
        if count in (None, many):
            limits += [(f".{self.many}[{place}]", 0, LARGEST_FIELD) for place in range(many)]
        wrong = [
            f"{name}: {number!r}; expected an integer from {least} to {most}"
            for number, (name, least, most) in zip(row, limits)
            if type(number) is not int or not least <= number <= most
        ]
        if count not in (None, many):
            given = f".{self.many}: {counted(many, 'value')}"
            wrong.append(f"{given}; expected {count}, one for each of {self.of}")
        return wrong

    def write(self, value: Any) -> Any:
        rows = [(row, row[len(self.columns) :]) for row in value.tolist()]
        return [dict(zip(self.names, [*row[: len(self.columns)], many])) for row, many in rows]

    def json_schema(self) -> dict[str, Any]:
        columns: dict[str, Any] = {n: integer_schema(*of) for n, of in self.columns.items()}
        row: dict[str, Any] = {"prefixItems": [*columns.values()]}
        row |= {"minItems": len(columns), "maxItems": len(columns)}
        if self.many:
            row = {"items": integer_schema(), "minItems": len(columns)}
            columns[self.many] = {"type": "array", "items": integer_schema()}
        entry: dict[str, Any] = {"type": "object", "properties": columns, "required": [*columns]}
        entry["additionalProperties"] = False
        return {"type": "array", "items": {"anyOf": [entry, {"type": "array", **row}]}}


MOST_COLUMNS = 10**6
"""Most columns, and most rows, of a matrix; a mask has a bit for each column."""


class ColumnSets(Each):
    """Sets of columns: bit masks in Python, intervals on file."""

    on_file = 'list of column sets such as `"0-3 7"`'
    in_python = "sequence of int, bit masks: bit c stands for column c"
    expected = "expected a list of column sets such as '0-3 7'"
    items: Mapping[str, Any] = {"type": "string", "pattern": f"^{COLUMNS.pattern}$"}

    def read(self, value: Any, fields: Fields) -> Any:
        if type(value) in (list, tuple) and {*map(type, value)} <= {int} and not fields.on_file:
            columns = fields.get("columns", MOST_COLUMNS)
            if not value or (min(value) > 0 and max(value).bit_length() <= columns):
                return tuple(value)
        return super().read(value, fields)

    def reader(self, fields: Fields) -> Callable[[Any], Any]:
        columns = fields.get("columns", MOST_COLUMNS)

        def of_text(text: Any) -> ColumnSet:
            columns_of = columns_on_file(text, columns) if isinstance(text, str) else None
            if not columns_of:
                within = f"within 0-{columns - 1}"
                raise WrongValueError(f"{text!r}; expected a column set such as '0-3 7' {within}")
            return columns_of

        def of_mask(mask: Any) -> ColumnSet:
            if type(mask) is not int or mask <= 0 or mask.bit_length() > columns:
                raise WrongValueError(
                    f"{_shown(mask)}; expected a mask of some of the {columns} columns"
                )
            return mask

        return of_text if fields.on_file else of_mask

    def write(self, value: Any) -> Any:
        return [interval_text(mask) for mask in value]


def _shown(mask: Any) -> str:
    return f"columns {interval_text(mask)}" if type(mask) is int and mask > 0 else repr(mask)


Row = Mapping[int, int]
"""A row of a program: its coefficients other than 0, by number of the variable from 0."""


def numbered(prefix: str, count: int) -> tuple[str, ...]:
    """Return the names of `count` variables or rows without names of their own."""
    return tuple(f"{prefix}{number}" for number in range(1, count + 1))


class Rows(Each):
    """The rows of a program, sparse: on file by names of variables, in Python by their numbers."""

    on_file = "list of objects: integer coefficients by name of the variable"
    in_python = "sequence of mappings from number of the variable, from 0, to coefficient"
    expected = "expected a list of rows"
    items: Mapping[str, Any] = {
        "type": "object",
        "additionalProperties": integer_schema(-LARGEST_FIELD),
    }

    def reader(self, fields: Fields) -> Callable[[Any], Any]:
        count = fields.count("coefficients")
        unsure = count is None or "variable_names" not in fields
        names = fields.get("variable_names") or numbered("x", count or 0)
        keys = names if fields.on_file else range(count or 0)
        known = {key: number for number, key in enumerate(keys)}
        expected = "one of the variable_names" if fields.on_file else f"0 to {(count or 0) - 1}"

        def read(given: Any) -> Row:
            if not isinstance(given, Mapping):
                raise WrongValueError(f"{given!r}; expected coefficients by variable")
            row, wrong = {}, []
            for variable, coefficient in given.items():
                number, amount = known.get(plain(variable)), plain(coefficient)
                if number is None and not unsure:
                    wrong.append(f": {variable!r}; expected {expected}")
                if type(amount) is not int or not 0 < abs(amount) <= LARGEST_FIELD:
                    amounts = f"an integer other than 0, at most {LARGEST_FIELD}"
                    wrong.append(f", {variable}: {coefficient!r}; expected {amounts}")
                elif number is not None:
                    row[number] = amount
            if wrong:
                raise WrongValueError(inside=wrong)
            return row

        return read


class RowBounds(Each):
    """A bound of each row, or None for no bound."""

    on_file = "list of integers or null"
    in_python = "sequence of int or None"
    like = "rows"
    items: Mapping[str, Any] = integer_schema(-LARGEST_FIELD) | {"type": ["integer", "null"]}

    def reader(self, fields: Fields) -> Callable[[Any], Any]:
        def read(bound: Any) -> int | None:
            if bound is None or (type(bound) is int and abs(bound) <= LARGEST_FIELD):
                return bound
            integer = f"an integer from {-LARGEST_FIELD} to {LARGEST_FIELD}"
            raise WrongValueError(f"{bound!r}; expected {integer}, or null")

        return read


class FieldChecks(Table):
    """Collects the mistakes in fields of a `kind` of problem; `done` raises them together."""

    def __init__(self, kind: str) -> None:
        super().__init__({})
        self.kind = kind

    def integers(self, name: str, values: Any, *, at_least: int) -> Ints:
        """Return `values` as a read-only int64 array, shape (n,), and note the mistakes."""
        self.table = {name: values}
        array: Ints = self.read(name, Integers(at_least), instead=np.empty(0, int))
        return array

    def done(self, field: str | None = None) -> None:
        """Raise all mistakes noted so far.

        Raises
        ------
        InputError
            If any mistake has been noted.
        """
        super().done(field or self.kind)


def same_length(name: str, fields: Fields, other: str) -> list[str]:
    """Return the mistake of two lists that belong together and differ in length."""
    given, wanted = fields.count(name), fields.count(other)
    if given is None or wanted is None or given == wanted:
        return []
    return [f"{name}: {counted(given, 'value')}; expected {wanted}, one for each of {other}"]


def from_one(values: Any) -> tuple[int | None, ...] | None:
    """Return a list of numbers from 1 or null as numbers from 0 or None; None for other values."""
    if not isinstance(values, list):
        return None
    if not all(value is None or (type(value) is int and value >= 1) for value in values):
        return None
    return tuple(None if value is None else value - 1 for value in values)


def is_table(value: Any, dimensions: int, least: int) -> bool:
    """Return whether a value is an int64 array with given dimensions and bounds."""
    if type(value) is not np.ndarray or value.dtype != _INT64 or value.ndim != dimensions:
        return False
    if dimensions == 1 and len(value) <= HEAD:
        numbers = value.tolist()
        return not numbers or (min(numbers) >= least and max(numbers) <= LARGEST_FIELD)
    return not value.size or bool(value.min() >= least and value.max() <= LARGEST_FIELD)


_INT64 = np.dtype(np.int64)


def _frozen(array: Ints) -> Ints:
    array.flags.writeable = False
    return array


def _not_expected(value: Any, at_least: int) -> str:
    """Return the expected range of a wrong integer, an empty text if `value` is valid."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < at_least:
        return f"of at least {at_least}"
    return f"of at most {LARGEST_FIELD}" if value > LARGEST_FIELD else ""
