"""Verification of an answer by the statement of its model, read with numbers.

This reading shares nothing with the reading with symbols, `optsched.models.linear`, but the
statement. It computes in 64-bit integers where bounds show that nothing overflows, otherwise in
Python's integers, which have no size.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from optsched.errors import InputError
from optsched.models.export import PORTABLE_NAME
from optsched.models.problem import Violation

LARGEST = 2**62
"""Bound up to which numbers and their sums and products are computed in 64 bits."""

SHOWN = 20
"""Most violations of one requirement that are listed one by one."""

NAME = re.compile(r"(?!.*[_ ]\d+$)[A-Za-z][A-Za-z0-9]*([_ ][A-Za-z0-9]+)*")
"""Names of decisions and requirements; numbers of places follow, each after an underscore."""

COMPARED = {
    "<=": (np.less_equal, "at most"),
    ">=": (np.greater_equal, "at least"),
    "==": (np.equal, "exactly"),
}


REFUSED = (
    "decisions are added, multiplied by data and compared with <=, >= or ==; "
    "expected no other operation on them"
)


class Operand:
    """What no reading of a statement does with an array of decisions."""

    __array_ufunc__ = None  # numpy leaves operators to the class

    def _refused(self, *_: Any) -> Any:
        raise TypeError(REFUSED)

    __lt__ = __gt__ = __ne__ = __bool__ = __pow__ = __truediv__ = __floordiv__ = _refused
    __mod__ = __rpow__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __abs__ = _refused


class Numbers(Operand):
    """An array of integers, with the operations of an expression."""

    def __init__(
        self, values: Any, most: int | None = None, labels: Sequence[Any] | None = None
    ) -> None:
        array: NDArray[Any] = np.asarray(values)
        if most is None:
            array, most = _sized(array)
        # a bound of the absolute values, and names of the places of the first axis
        self.values, self._most, self.labels = array, most, labels

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return self.values.shape

    @property
    def T(self) -> Numbers:  # noqa: N802
        """The numbers with their axes in reverse order."""
        return Numbers(self.values.T, self._most)

    def __repr__(self) -> str:
        return repr(self.values.tolist())

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Numbers]:
        return (self[place] for place in range(len(self)))

    def __getitem__(self, key: Any) -> Numbers:
        return Numbers(self.values[key], self._most)

    def __add__(self, other: Any) -> Numbers:
        added = numbers(other)
        return _computed(operator.add, self, added, self._most + added._most)

    def __sub__(self, other: Any) -> Numbers:
        taken = numbers(other)
        return _computed(operator.sub, self, taken, self._most + taken._most)

    def __rsub__(self, other: Any) -> Numbers:
        return numbers(other) - self

    def __mul__(self, other: Any) -> Numbers:
        factor = _data(other)
        return _computed(operator.mul, self, factor, self._most * factor._most)

    def __matmul__(self, other: Any) -> Numbers:
        return _multiplied(self, _data(other))

    def __rmatmul__(self, other: Any) -> Numbers:
        return _multiplied(_data(other), self)

    def __neg__(self) -> Numbers:
        return Numbers(-self.values, self._most)

    __radd__, __rmul__ = __add__, __mul__

    def sum(self, axis: int | None = None, out: None = None) -> Numbers:
        """Return the sum of all numbers, or of those along an axis."""
        most = self._most * max(1, self.values.size if axis is None else self.shape[axis])
        values = self.values if most <= LARGEST else self.values.astype(object)
        return Numbers(values.sum(axis=axis), most, self.labels if axis not in (0, None) else None)

    def sum_by(self, group: Any, count: int | None = None) -> Numbers:
        """Return the sums over the first axis by group.

        Groups are numbers from 0 to `count` - 1, or without `count` labels, in their order.
        """
        of = np.asarray(group).tolist()
        labels = sorted({*of}) if count is None else range(count)
        place = {label: number for number, label in enumerate(labels)}
        most = self._most * max(1, len(self))
        values = self.values if most <= LARGEST else self.values.astype(object)
        sums = np.zeros((len(labels), *self.shape[1:]), dtype=values.dtype)
        np.add.at(sums, [place[label] for label in of], values)
        return Numbers(sums, most, labels if count is None else None)

    def __le__(self, other: Any) -> Comparison:
        return Comparison(self.values, "<=", numbers(other).values, self.labels)

    def __ge__(self, other: Any) -> Comparison:
        return Comparison(self.values, ">=", numbers(other).values, self.labels)

    def __eq__(self, other: object) -> Comparison:  # type: ignore[override]
        return Comparison(self.values, "==", numbers(other).values, self.labels)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two arrays of numbers, and how the first should compare with the second."""

    left: NDArray[Any]
    kind: Literal["<=", ">=", "=="]
    right: NDArray[Any]
    labels: Sequence[Any] | None = None

    def __bool__(self) -> bool:
        raise TypeError("a comparison of decisions is not true or false; pass it to require")

    @property
    def excess(self) -> NDArray[Any]:
        """The amounts by which pairs do not compare so, in integers of Python."""
        left, right = np.asarray(self.left, object), np.asarray(self.right, object)
        off = right - left if self.kind == ">=" else left - right
        return np.asarray(abs(off) if self.kind == "==" else np.maximum(off, 0))

    def failures(self, name: str, allowed: NDArray[Any] | None = None) -> list[Violation]:
        """Return a violation for each of the first pairs that are off by more than is allowed."""
        compare, words = COMPARED[self.kind]
        holds = np.asarray(compare(self.left, self.right), dtype=bool)
        if allowed is not None and not holds.all():
            holds |= np.asarray(self.excess <= allowed, dtype=bool)
        if holds.all():
            return []
        less = np.broadcast_to(0 if allowed is None else allowed, holds.shape)
        left, right = (np.broadcast_to(side, holds.shape) for side in (self.left, self.right))
        places = np.argwhere(~holds)
        found = [
            Violation(
                at_index(name, index, self.labels),
                f"{left[index]}; {words} {right[index]}"
                + (f", or {less[index]} off, as it is now" if less[index] else ""),
            )
            for index in map(tuple, places[:SHOWN].tolist())
        ]
        more = len(places) - SHOWN
        return [*found, *([Violation(name, f"{more:,} more such")] if more > 0 else [])]


class Verification:
    """Reading of a statement with the values of an answer."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        self._answer = answer
        self.values: dict[str, NDArray[np.int64]] = {}  # as int64 arrays, in the statement's order
        self.derived: dict[str, NDArray[np.int64]] = {}  # the values of `some`
        self.found: list[Violation] = []
        self.objective = 0
        self._required: set[str] = set()

    def integer(self, name: str, *shape: int, lower: Any = 0, upper: Any) -> Numbers:
        """Return the values of an array of decisions, and check their bounds."""
        if name not in self._answer:
            raise InputError("missing", field=name)
        try:
            array = np.asarray(self._answer[name])
        except (ValueError, OverflowError):
            array = np.array(None)
        is_list = not isinstance(self._answer[name], np.ndarray)
        if is_list and array.size and array.dtype.kind != "i":
            raise InputError("expected integers, in lists of one length", field=name)
        if array.shape != shape and (array.size or 0 not in shape):
            given, expected = (" x ".join(map(str, s)) or "one" for s in (array.shape, shape))
            raise InputError(f"{given} values; expected {expected}", field=name)
        if array.size and array.dtype.kind != "i":
            raise InputError("expected integers", field=name)
        self.values[name] = array.astype(np.int64).reshape(shape)
        found = Numbers(self.values[name])
        self.found += (found >= lower).failures(name) + (found <= upper).failures(name)
        return found

    def binary(self, name: str, *shape: int, lower: Any = 0, upper: Any = 1) -> Numbers:
        """Return the values of an array of decisions that are 0 or 1."""
        return self.integer(name, *shape, lower=lower, upper=upper)

    def some(self, name: str, amount: Numbers) -> Numbers:
        """Return 1 where an amount is above 0, otherwise 0."""
        self.derived[name] = np.asarray(amount.values > 0).astype(np.int64)
        return Numbers(self.derived[name], 1)

    def require(self, name: str, relation: Any) -> None:
        """Check a requirement."""
        self.found += self._compared(name, relation).failures(name)

    def _compared(self, name: str, relation: Any) -> Comparison:
        """Return the comparison of a requirement, which may be one of data alone."""
        check_name(name, self._required)
        self._required.add(name)
        if isinstance(relation, Comparison):
            return relation
        return numbers(truths(name, relation)) == 1

    def maximize(self, value: Any) -> None:
        """Note the value of the objective."""
        self.objective = int(numbers(value).values.item())

    minimize = maximize

    def done(self) -> None:
        """Refuse values that the statement does not name."""
        unknown = [f"{name}: no such decisions" for name in self._answer if name not in self.values]
        if unknown:
            raise InputError(*unknown)


def check_name(name: str, taken: Container[str]) -> None:
    """Refuse the name of decisions or of a requirement that is taken, or cannot be exported."""
    if name in taken:
        raise ValueError(f"{name!r} is stated twice")
    if not NAME.fullmatch(name) or not PORTABLE_NAME.fullmatch(f"{name.replace(' ', '_')}_"):
        words = "expected words of letters and digits, joined by underscores"
        raise ValueError(f"{name!r} cannot be the name of decisions or requirements; {words}")


def truths(name: str, relation: Any) -> NDArray[np.bool_]:
    """Return the truth values that a comparison of data has given."""
    if isinstance(relation, list | tuple):
        raise TypeError(f"{name}: several requirements; expected a name for each")
    array = np.asarray(relation)
    if array.dtype.kind != "b":
        raise TypeError(f"{name}: no comparison; expected <=, >= or == between decisions or data")
    return array


def at_index(name: str, index: Sequence[int], labels: Sequence[Any] | None = None) -> str:
    """Return a name with an index, which counts from 1, or begins with one of the labels."""
    places = [str(i + 1) for i in index]
    if labels is not None and index[0] < len(labels):
        places[0] = str(labels[index[0]])
    return f"{name}[{','.join(places)}]" if places else name


def numbers(value: Any) -> Numbers:
    """Return integers, or truth values as 0 and 1, with their operations."""
    return value if isinstance(value, Numbers) else Numbers(value)


def _data(value: Any) -> Numbers:
    if isinstance(value, Numbers):
        raise TypeError("a product of decisions; expected a linear expression")
    return Numbers(value)


def _computed(
    compute: Callable[[Any, Any], Any], one: Numbers, other: Numbers, most: int
) -> Numbers:
    left, right = one.values, other.values
    if most > LARGEST:
        left, right = left.astype(object), right.astype(object)
    values = compute(left, right)
    labels = one.labels or other.labels
    return Numbers(values, most, labels if np.shape(values)[:1] == (len(labels or ()),) else None)


def _multiplied(one: Numbers, other: Numbers) -> Numbers:
    most = one._most * other._most * max(1, one.shape[-1])
    return _computed(operator.matmul, one, other, most)


def _sized(array: NDArray[Any]) -> tuple[NDArray[Any], int]:
    """Return integers of 64 bits, or of Python where one is larger, and the largest size."""
    if array.dtype.kind == "b" or not array.size:
        return array.astype(np.int64), 1
    if array.dtype.kind not in "iu" and not all(isinstance(n, int) for n in array.flat):
        raise TypeError(f"numbers of the type {array.dtype}; expected integers")
    most = max(int(array.max()), -int(array.min()))
    return array.astype(np.int64 if most <= LARGEST else object, copy=False), most
