"""Arrays of linear expressions: a statement of a model, read with symbols.

An expression is a sum of terms and a constant. Most terms are views of arrays, and so are their
sums and products: entries are copied once, into the arrays of the program.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import EllipsisType
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.arrays import Ints
from optsched.errors import InputError
from optsched.models.program import UNBOUNDED
from optsched.models.verification import Operand
from optsched.numbers import LARGEST

Shape = tuple[int, ...]
Kind = Literal["<=", ">=", "=="]

ZERO, ONE = np.zeros((), dtype=np.int64), np.ones((), dtype=np.int64)

BASIC = int, np.integer, slice, type(None), EllipsisType
"""Parts of a key whose result is a view."""


class Block(NamedTuple):
    """Coefficients times variables, summed over the axes behind those of the expression.

    Coefficients have the dimensions of the variables, some of length 1, or none. Strides show
    whether variables are a `view` of consecutive numbers.
    """

    coefficients: Ints
    variables: Ints
    name: str
    view: bool

    def times(self, factor: Ints, shape: Shape) -> Block:
        """Return the terms times numbers that are broadcast to the shape."""
        if factor.ndim:
            inner = (1,) * (self.variables.ndim - len(shape))
            outer = (1,) * (len(shape) - factor.ndim)
            factor = factor.reshape(outer + factor.shape + inner)
        if self.coefficients is not ONE:
            factor = product(self.coefficients, factor)
        return Block(factor, self.variables, self.name, self.view)

    def spread(self, shape: Shape, to: Shape) -> Block:
        """Return the terms broadcast to another shape."""
        outer, inner = (1,) * (len(to) - len(shape)), self.variables.shape[len(shape) :]
        coefficients = self.coefficients
        if coefficients.ndim:
            coefficients = coefficients.reshape(outer + coefficients.shape)
        variables = self.variables.reshape(outer + self.variables.shape)
        variables = np.broadcast_to(variables, to + inner)
        return Block(coefficients, variables, self.name, self.view)

    def picked(self, shape: Shape, key: Any) -> Block:
        """Return the terms of the places of a key."""
        key = key if isinstance(key, tuple) else (key,)
        is_view = self.view and all(isinstance(part, BASIC) for part in key)
        if any(part is Ellipsis for part in key):
            key += (slice(None),) * (self.variables.ndim - len(shape))
        coefficients = self.coefficients
        if coefficients.ndim:
            coefficients = np.asarray(np.broadcast_to(coefficients, self.variables.shape)[key])
        return Block(coefficients, np.asarray(self.variables[key]), self.name, is_view)

    def arranged(self, shape: Shape, order: Sequence[int]) -> Block:
        """Return the terms with the axes of the shape, or all of them, in another order."""
        axes = [*order, *range(len(order), self.variables.ndim)]
        coefficients = self.coefficients
        if coefficients.ndim:
            coefficients = coefficients.transpose(axes)
        return Block(coefficients, self.variables.transpose(axes), self.name, self.view)

    def summed(self, shape: Shape, axis: int) -> Block:
        """Return the sum of the terms over an axis, which becomes the last one."""
        return self.arranged(shape, [*range(axis), *range(axis + 1, self.variables.ndim), axis])

    def entries(self, shape: Shape) -> Entries:
        """Return the terms as entries."""
        coefficients = spread(self.coefficients, self.variables.shape).ravel()
        places = np.arange(math.prod(shape)).repeat(self.width(shape))
        return Entries(coefficients, self.variables.ravel(), self.name, places)

    def width(self, shape: Shape) -> int:
        """Return the number of variables at each place."""
        return math.prod(self.variables.shape[len(shape) :])

    def is_plain(self, shape: Shape) -> bool:
        """Return whether each place has the same number of different variables, none times 0."""
        return bool(self.width(shape) and self.coefficients.all() and self.differs(len(shape)))

    def differs(self, first: int) -> bool:
        """Return whether no variable occurs twice along the axes from the `first` one."""
        if not self.view:
            shape = self.variables.shape
            return ascends(self.variables.reshape(*shape[:first], math.prod(shape[first:])))
        reach = 0
        strides, lengths = self.variables.strides[first:], self.variables.shape[first:]
        for stride, length in sorted((abs(s), n) for s, n in zip(strides, lengths) if n > 1):
            if stride <= reach:
                return False
            reach += stride * (length - 1)
        return True

    def add_to(self, totals: Ints) -> None:
        """Add the coefficients to the totals of all variables."""
        variables = self.variables
        if not self.view or not self.differs(0):
            self.entries(()).add_to(totals)
        elif variables.size:
            first = int(variables[(0,) * variables.ndim])
            same = np.lib.stride_tricks.as_strided(
                totals[first:], variables.shape, variables.strides
            )
            same += self.coefficients


class Entries(NamedTuple):
    """Terms of any number of variables at each place, with the place of each in row-major order."""

    coefficients: Ints
    variables: Ints
    name: str
    places: Ints

    def times(self, factor: Ints, shape: Shape) -> Entries:
        """Return the terms times numbers that are broadcast to the shape."""
        at = spread(factor, shape).ravel()[self.places]
        return self._replace(coefficients=product(self.coefficients, at))

    def spread(self, shape: Shape, to: Shape) -> Entries:
        """Return the terms broadcast to another shape."""
        return self._at(shape, np.broadcast_to(places_of(shape), to))

    def picked(self, shape: Shape, key: Any) -> Entries:
        """Return the terms of the places of a key."""
        return self._at(shape, np.asarray(places_of(shape)[key]))

    def arranged(self, shape: Shape, order: Sequence[int]) -> Entries:
        """Return the terms with the axes in another order."""
        return self._at(shape, places_of(shape).transpose(order))

    def _at(self, shape: Shape, places: Ints) -> Entries:
        order = np.argsort(self.places, kind="stable")
        counts = np.bincount(self.places, minlength=math.prod(shape))
        chosen = places.ravel()
        many = counts[chosen]
        first = (np.cumsum(counts) - counts)[chosen] - (np.cumsum(many) - many)
        at = order[np.repeat(first, many) + np.arange(many.sum())]
        to = np.arange(chosen.size).repeat(many)
        return Entries(self.coefficients[at], self.variables[at], self.name, to)

    def summed(self, shape: Shape, axis: int) -> Entries:
        """Return the sum of the terms over an axis."""
        to = np.expand_dims(places_of(shape[:axis] + shape[axis + 1 :]), axis)
        return self.moved(np.broadcast_to(to, shape))

    def moved(self, to: Ints) -> Entries:
        """Return the terms with other places, given for each former one."""
        return self._replace(places=to.ravel()[self.places])

    def entries(self, shape: Shape) -> Entries:
        """Return the terms themselves."""
        return self

    def add_to(self, totals: Ints) -> None:
        """Add the coefficients to the totals of all variables."""
        _check_size(int(np.bincount(self.variables, np.abs(self.coefficients)).max(initial=0)))
        np.add.at(totals, self.variables, self.coefficients)


Term = Block | Entries


class Expression(Operand):
    """An array of linear expressions of the decisions of a statement.

    It is added to, multiplied by and compared with integers and arrays of integers, and indexed and
    broadcast as an array of numpy; comparisons give relations, not truth values.
    """

    def __init__(self, shape: Shape, terms: tuple[Term, ...], constant: Ints = ZERO) -> None:
        self.shape, self._terms, self._constant = shape, terms, constant

    @classmethod
    def of(cls, value: Any) -> Expression:
        """Return an expression unchanged, or numbers as a constant expression."""
        if isinstance(value, Expression):
            return value
        array = integers(value)
        return cls(array.shape, (), array)

    @classmethod
    def of_variables(cls, variables: Ints, name: str) -> Expression:
        """Return an array of consecutive variables, given by their numbers."""
        return cls(variables.shape, (Block(ONE, variables, name, True),))

    @property
    def names(self) -> str:
        """The names of its decisions, for messages."""
        return " and ".join(dict.fromkeys(term.name for term in self._terms)) or "a constant"

    def __repr__(self) -> str:
        return f"<Expression of {self.names}, shape {self.shape}>"

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a single expression has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Expression]:
        return (self[place] for place in range(len(self)))

    def __add__(self, other: Any) -> Expression:
        added = Expression.of(other)
        shape = _common(self.shape, added.shape)
        terms = self._spread(shape) + added._spread(shape)
        return Expression(shape, terms, total(self._constant, added._constant))

    def __mul__(self, other: Any) -> Expression:
        if isinstance(other, Expression):
            names = f"{self.names} and {other.names}"
            raise TypeError(f"a product of the decisions {names}; expected a linear expression")
        factor = integers(other)
        shape = _common(self.shape, factor.shape)
        terms = tuple(term.times(factor, shape) for term in self._spread(shape))
        constant = self._constant if self._constant is ZERO else product(self._constant, factor)
        return Expression(shape, terms, constant)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Expression:
        return self * -1

    def __sub__(self, other: Any) -> Expression:
        return self + (-other if isinstance(other, Expression) else -integers(other))

    def __rsub__(self, other: Any) -> Expression:
        return (-self).__add__(other)

    def __rmatmul__(self, left: Any) -> Expression:
        matrix = integers(left)
        if not self.shape or matrix.ndim not in (1, 2) or matrix.shape[-1] != len(self):
            raise ValueError(f"a product of the shapes {matrix.shape} and {self.shape}")
        inner = (1,) * (len(self.shape) - 1)
        if matrix.ndim == 1 or 2 * np.count_nonzero(matrix) > matrix.size:
            return (matrix.reshape(*matrix.shape, *inner) * self).sum(axis=matrix.ndim - 1)
        row, column = np.nonzero(matrix)
        factor = matrix[row, column].reshape(-1, *inner)
        return (factor * self[column]).sum_by(row, len(matrix))

    def __matmul__(self, right: Any) -> Expression:
        if isinstance(right, Expression):
            return self * right  # refused
        return self.T.__rmatmul__(integers(right).T).T

    def __getitem__(self, key: Any) -> Expression:
        places = np.asarray(np.broadcast_to(ZERO, self.shape)[key])  # of the same shape
        terms = tuple(term.picked(self.shape, key) for term in self._terms)
        constant = self._constant
        if constant.ndim:
            constant = np.asarray(np.broadcast_to(constant, self.shape)[key])
        return Expression(places.shape, terms, constant)

    @property
    def T(self) -> Expression:  # noqa: N802
        """The expressions with their axes in reverse order."""
        if len(self.shape) < 2:
            return self
        order = range(len(self.shape))[::-1]
        terms = tuple(term.arranged(self.shape, order) for term in self._terms)
        constant = self._constant
        if constant.ndim:
            constant = np.broadcast_to(constant, self.shape).T
        return Expression(self.shape[::-1], terms, constant)

    def sum(self, axis: int | None = None, out: None = None) -> Expression:
        """Return the sum of all expressions, or of those along an axis."""
        if axis is None:
            return self if not self.shape else self.sum(axis=-1).sum()
        axis = range(len(self.shape))[axis]  # negative ones count from the end
        left = self.shape[:axis] + self.shape[axis + 1 :]
        terms = tuple(term.summed(self.shape, axis) for term in self._terms)
        if self._constant is ZERO:
            return Expression(left, terms)
        constants = spread(self._constant, self.shape)
        _check_size(_largest(constants) * self.shape[axis])
        return Expression(left, terms, np.asarray(constants.sum(axis=axis)))

    def sum_by(self, group: Any, count: int | None = None) -> Expression:
        """Return the sums over the first axis by group.

        Groups are numbers from 0 to `count` - 1, or without `count` labels, in their order.
        """
        if count is None:
            labels, group = np.unique(np.asarray(group), return_inverse=True)
            count = len(labels)
        of, rest = integers(group), self.shape[1:]
        if of.shape != self.shape[:1] or (of.size and not 0 <= of.min() <= of.max() < count):
            raise ValueError(f"expected {len(self)} groups from 0 to {count - 1}")
        each = places_of(rest)
        to = of.reshape(-1, *[1] * len(rest)) * each.size + each
        terms = tuple(term.entries(self.shape).moved(to) for term in self._terms)
        constant = np.zeros((count, *rest), dtype=np.int64)
        if self._constant is not ZERO:
            _check_size(_largest(self._constant) * len(self))
            np.add.at(constant, of, np.broadcast_to(self._constant, self.shape))
        return Expression(constant.shape, terms, constant)

    def __le__(self, other: Any) -> Relation:
        return Relation(self - other, "<=")

    def __ge__(self, other: Any) -> Relation:
        return Relation(self - other, ">=")

    def __eq__(self, other: object) -> Relation:  # type: ignore[override]
        return Relation(self - other, "==")

    def _spread(self, shape: Shape) -> tuple[Term, ...]:
        if shape == self.shape:
            return self._terms
        return tuple(term.spread(self.shape, shape) for term in self._terms)

    def range(self, lower: Ints, upper: Ints) -> tuple[Ints, Ints]:
        """Return the least and the greatest values within the bounds of all variables."""
        least, most = (np.zeros(math.prod(self.shape), dtype=np.int64) for _ in range(2))
        for values, variables, _, places in (term.entries(self.shape) for term in self._terms):
            ends = product(values, lower[variables]), product(values, upper[variables])
            _check_size(sum(map(_largest, ends)) * max(1, len(values)))
            np.add.at(least, places, np.minimum(*ends))
            np.add.at(most, places, np.maximum(*ends))
        constant = spread(self._constant, self.shape)
        return least.reshape(self.shape) + constant, most.reshape(self.shape) + constant

    def coefficients(self, count: int) -> tuple[Ints, int]:
        """Return the coefficient of each of `count` variables, and the constant."""
        found = np.zeros(count, dtype=np.int64)
        for term in self._terms:
            term.add_to(found)
        _check_size(sum(_largest(term.coefficients) for term in self._terms))
        _check_size(_largest(found))
        return found, int(self._constant)

    def rows(self, kind: Kind) -> Rows:
        """Return the rows that compare each expression with 0."""
        bound = spread(-self._constant, self.shape).ravel()
        blocks = [term for term in self._terms if isinstance(term, Block)]
        several = len({block.name for block in blocks}) < len(self._terms)
        if not several and blocks and all(block.is_plain(self.shape) for block in blocks):
            width = sum(block.width(self.shape) for block in blocks)
            return Rows(self.shape, None, kind, bound, np.full(len(bound), width), blocks)
        merged = _merged([term.entries(self.shape) for term in self._terms])
        counts = np.bincount(merged.places, minlength=len(bound))
        holds = {"<=": bound >= 0, ">=": bound <= 0, "==": bound == 0}[kind]
        stated = np.flatnonzero((counts > 0) | ~holds)  # others hold, whatever is decided
        return Rows(self.shape, stated, kind, bound[stated], counts[stated], [merged])


class Rows(NamedTuple):
    """Rows of a requirement: those of all its places, or of the `places` stated."""

    shape: Shape
    places: Ints | None
    kind: Kind
    bound: Ints
    counts: Ints  # number of entries in each row
    terms: Sequence[Term]  # blocks, or entries in order if there are `places`

    @property
    def bounds(self) -> tuple[Ints, Ints]:
        """The lower and the upper bounds of the rows."""
        none = np.full_like(self.bound, UNBOUNDED)
        lower = -none if self.kind == "<=" else self.bound
        return lower, none if self.kind == ">=" else self.bound

    def fill(self, columns: Ints, values: Ints) -> None:
        """Write the entries to parts of the arrays of a program."""
        if self.places is not None:
            columns[...], values[...] = self.terms[0].variables, self.terms[0].coefficients
            return
        rows, at = (*self.shape, columns.size // max(1, len(self.bound))), 0
        columns, values = columns.reshape(rows), values.reshape(rows)
        for block in self.terms:
            assert isinstance(block, Block)
            end = at + block.width(self.shape)
            columns[..., at:end].reshape(block.variables.shape)[...] = block.variables
            values[..., at:end].reshape(block.variables.shape)[...] = block.coefficients
            at = end


@dataclass(frozen=True, eq=False)
class Relation:
    """A comparison of expressions with 0, a requirement of the program."""

    expression: Expression
    kind: Kind

    def __bool__(self) -> bool:
        raise TypeError(
            "a comparison of decisions is not true or false; pass it to require, and state "
            "a <= x <= b as two requirements"
        )


def integers(value: Any) -> Ints:
    """Return numbers as an int64 array."""
    array = np.asarray(value)
    if array.dtype.kind == "b" or not array.size:
        return array.astype(np.int64)
    if array.dtype.kind not in "iu" and not all(isinstance(n, int) for n in array.flat):
        raise TypeError(f"numbers of the type {array.dtype}; expected integers")
    _check_size(_largest(array))
    return array.astype(np.int64, copy=False)


def product(one: Ints, other: Ints) -> Ints:
    """Return a product without overflow."""
    _check_size(_largest(one) * _largest(other))
    return np.asarray(one * other)


def total(one: Ints, other: Ints) -> Ints:
    """Return a sum without overflow."""
    if one is ZERO or other is ZERO:
        return other if one is ZERO else one
    _check_size(_largest(one) + _largest(other))
    return np.asarray(one + other)


def _largest(numbers: NDArray[Any]) -> int:
    return max(-int(numbers.min()), int(numbers.max())) if numbers.size else 0


def _check_size(size: int) -> None:
    if size > LARGEST:
        raise InputError(f"a number of the program exceeds {LARGEST:,}")


def ascends(numbers: Ints) -> bool:
    """Return whether numbers ascend along the last axis, each once."""
    return bool((numbers[..., 1:] > numbers[..., :-1]).all())


def _common(one: Shape, other: Shape) -> Shape:
    return one if one == other or other == () else np.broadcast_shapes(one, other)


def spread(array: NDArray[Any], shape: Shape) -> NDArray[Any]:
    """Return an array broadcast to a shape."""
    return array if array.shape == shape else np.broadcast_to(array, shape)


def places_of(shape: Shape) -> Ints:
    """Return the number of each place in row-major order."""
    return np.arange(math.prod(shape)).reshape(shape)


def _merged(terms: list[Entries]) -> Entries:
    """Return entries in order of places and variables, with each variable once at a place."""
    coefficients, variables, places = (
        np.concatenate([np.empty(0, dtype=np.int64), *(term[part] for term in terms)])
        for part in (0, 1, 3)
    )
    key = places * (int(variables.max(initial=0)) + 1) + variables
    if not ascends(key):
        order = np.argsort(key, kind="stable")
        key = key[order]
        coefficients, variables, places = coefficients[order], variables[order], places[order]
        again = key[1:] == key[:-1]
        if again.any():
            first = np.flatnonzero(np.append(True, ~again))
            sizes = np.add.reduceat(np.abs(coefficients).astype(float), first)
            _check_size(int(sizes.max()))
            coefficients = np.add.reduceat(coefficients, first)
            variables, places = variables[first], places[first]
    kept = coefficients != 0
    if not kept.all():
        coefficients, variables, places = coefficients[kept], variables[kept], places[kept]
    return Entries(coefficients, variables, "", places)
