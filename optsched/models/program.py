"""A solver-neutral integer linear program, its building, and formulations of problems as one."""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from array import array
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from itertools import repeat
from typing import Any, ClassVar, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from optsched.arrays import Floats, Ints
from optsched.errors import InputError
from optsched.registry import models


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """Integer linear program: optimize ``objective @ x + offset`` subject to rows and bounds.

    Rows are ``row_lower <= A x <= row_upper``, and bounds ``lower <= x <= upper``. All numbers are
    integers, and all variables are integer; with bounds 0 and 1 they are binary. The matrix ``A``
    is stored by rows (compressed sparse rows, as in scipy).

    Parameters
    ----------
    sense : {"max", "min"}
        Direction of the objective.
    objective : int64 array, shape (variables,)
        Objective coefficients.
    lower, upper : int64 array, shape (variables,)
        Bounds of the variables.
    row_start : int64 array, shape (rows + 1,)
        Row ``r`` has its entries at positions ``row_start[r]`` to ``row_start[r + 1]``.
    columns : int64 array, shape (entries,)
        The variable of each entry.
    values : int64 array, shape (entries,)
        The coefficient of each entry.
    row_lower, row_upper : int64 array, shape (rows,)
        Bounds of the rows; `UNBOUNDED` (negative for `row_lower`) for no bound.
    offset : int
        Constant term of the objective.
    variable_name, row_name : callable, optional
        Name of a variable or row by its number, for exports; ``x<number>`` and ``r<number>`` by
        default.
    """

    sense: Literal["max", "min"]
    objective: Ints
    lower: Ints
    upper: Ints
    row_start: Ints
    columns: Ints
    values: Ints
    row_lower: Ints
    row_upper: Ints
    offset: int = 0
    variable_name: Callable[[int], str] = "x{}".format
    row_name: Callable[[int], str] = "r{}".format

    @property
    def num_variables(self) -> int:
        """Number of variables."""
        return len(self.objective)

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return len(self.row_lower)

    def value(self, x: Ints) -> int:
        """Return the objective of the vector `x`, shape (variables,), offset included."""
        return int(self.objective @ x) + self.offset

    def admits(self, x: Ints) -> bool:
        """Return whether the vector `x` is within all bounds of variables and rows, exactly."""
        if (x < self.lower).any() or (x > self.upper).any():
            return False
        rows = np.repeat(np.arange(self.num_rows), np.diff(self.row_start))
        activity = np.zeros(self.num_rows, dtype=np.int64)
        np.add.at(activity, rows, self.values * x[self.columns])
        return not ((activity < self.row_lower) | (activity > self.row_upper)).any()

    @property
    def terms(self) -> Floats:
        """Largest absolute terms of the objective; a variable without a bound counts as 1.

        The constant term is the last one. The shape is (variables + 1,).
        """
        sizes = np.abs((self.lower, self.upper)).astype(float)
        sizes[sizes == UNBOUNDED] = 1
        terms: Floats = np.append(self.objective * sizes.max(axis=0), self.offset)
        return np.abs(terms)

    def divided(self, *, offset: bool) -> tuple[Program, int]:
        """Return an equivalent program of smaller numbers, and the divisor of its objective.

        Each row and the objective are divided by the greatest common divisors of their
        coefficients; bounds of rows are rounded to the last integers within. The constant term of
        the objective is left out, unless `offset`.
        """
        constant = self.offset if offset else 0
        divisor = math.gcd(int(np.gcd.reduce(self.objective)), constant) or 1
        lengths = np.diff(self.row_start)
        divisors = np.ones(self.num_rows, dtype=np.int64)
        if len(self.values):
            of_rows = np.gcd.reduceat(np.abs(self.values), self.row_start[:-1][lengths > 0])
            divisors[lengths > 0] = np.maximum(of_rows, 1)
        lower, upper = self.row_lower, self.row_upper
        program = replace(
            self,
            objective=self.objective // divisor,
            offset=constant // divisor,
            values=self.values // np.repeat(divisors, lengths),
            row_lower=np.where(lower == -UNBOUNDED, lower, -(-lower // divisors)),
            row_upper=np.where(upper == UNBOUNDED, upper, upper // divisors),
        )
        return program, divisor


UNBOUNDED = np.iinfo(np.int64).max
"""No upper bound in ``row_upper``; negated, no lower bound in ``row_lower``."""


Axis = int | Sequence[int] | Sequence[str]
"""An index set: a sequence of labels, or the length n of the labels 1 to n."""

Name = str | Callable[..., str]
"""A template with ``{}`` for the label of each axis, or a function of the labels."""


class ProgramBuilder:
    """Builds a program from blocks of variables and families of rows.

    A *term* of a row is a pair of coefficients and numbers of variables; coefficients are broadcast
    to the shape of the numbers. No variable may be in two terms of a row.

    Parameters
    ----------
    sense : {"max", "min"}
        Direction of the objective.

    Attributes
    ----------
    variable_name : callable
        Name of a variable by its number.

    Examples
    --------
    Jobs of 6, 4 and 3 nodes into slots of 3 and 6:

    >>> weights = np.array([6, 4, 3])
    >>> builder = ProgramBuilder("max")
    >>> x = builder.variables("x_job{}_slot{}", 3, 2, objective=weights[:, None])
    >>> builder.rows("capacity_slot{}", (weights, x.T), at_most=[3, 6])
    >>> builder.rows("once_job{}", (1, x), at_most=1)
    >>> program = builder.build()
    >>> program.variable_name(5), program.row_name(1), program.row_upper.tolist()
    ('x_job3_slot2', 'capacity_slot2', [3, 6, 1, 1, 1])
    """

    def __init__(self, sense: Literal["max", "min"]) -> None:
        self._sense: Literal["max", "min"] = sense
        self._objective, self._lower, self._upper = array("q"), array("q"), array("q")
        self._start, self._columns, self._values = array("q", [0]), array("q"), array("q")
        self._row_lower, self._row_upper = array("q"), array("q")
        self.variable_name, self._row_name = BlockNames(), BlockNames()

    @property
    def num_variables(self) -> int:
        """Number of variables added so far."""
        return len(self._objective)

    def variables(
        self,
        name: Name,
        *axes: Axis,
        lower: ArrayLike = 0,
        upper: ArrayLike = 1,
        objective: ArrayLike = 0,
    ) -> Ints:
        """Add a block of variables, one for each combination of labels.

        Parameters
        ----------
        name : str or callable
            Names of the variables, from the label of each axis.
        *axes : int or sequence
            The index sets.
        lower, upper, objective : array_like of int
            Bounds and objective coefficients, broadcast to the shape of the block.

        Returns
        -------
        int64 array, shape (lengths of the axes)
            Numbers of the variables.
        """
        shape = tuple(axis if isinstance(axis, int) else len(axis) for axis in axes)
        numbers = len(self._objective) + np.arange(math.prod(shape)).reshape(shape)
        _extend(self._objective, objective, shape)
        _extend(self._lower, lower, shape)
        _extend(self._upper, upper, shape)
        self.variable_name.add(numbers.size, name, axes)
        return numbers

    def variable(self, name: str, *, lower: int = 0, upper: int = 1, objective: int = 0) -> int:
        """Add one variable, and return its number."""
        self._objective.append(objective)
        self._lower.append(lower)
        self._upper.append(upper)
        self.variable_name.add(1, name)
        return len(self._objective) - 1

    def rows(
        self,
        name: Name,
        *terms: tuple[ArrayLike, ArrayLike],
        over: Sequence[Axis] = (),
        at_least: ArrayLike = -UNBOUNDED,
        at_most: ArrayLike = UNBOUNDED,
        equal: ArrayLike | None = None,
    ) -> None:
        """Add a family of rows of equal length.

        Parameters
        ----------
        name : str or callable
            Names of the rows, from the label of each axis.
        *terms : (coefficients, variables)
            The last axis of the variables is summed over; the axes before it are those of the
            family, and are broadcast against those of the other terms.
        over : sequence of int or sequence, optional
            The index sets of the family; by default 1, 2, ... along each axis.
        at_least, at_most, equal : array_like of int
            Bounds of the rows, broadcast to the shape of the family; `equal` sets both.
        """
        numbers = [np.atleast_1d(variables) for _, variables in terms]
        shape = np.broadcast_shapes(*(block.shape[:-1] for block in numbers))
        spread = [np.broadcast_to(block, (*shape, block.shape[-1])) for block in numbers]
        columns = np.concatenate(spread, axis=-1)
        values = [np.broadcast_to(c, block.shape) for (c, _), block in zip(terms, spread)]
        count, width = math.prod(shape), columns.shape[-1]
        _extend(self._start, len(self._columns) + width * np.arange(1, count + 1), (count,))
        _extend(self._columns, columns, columns.shape)
        _extend(self._values, np.concatenate(values, axis=-1), columns.shape)
        _extend(self._row_lower, at_least if equal is None else equal, shape)
        _extend(self._row_upper, at_most if equal is None else equal, shape)
        self._row_name.add(count, name, tuple(over) or shape)

    def paired_rows(
        self, name: Name, over: Axis, *terms: tuple[ArrayLike, Ints], **bounds: ArrayLike
    ) -> None:
        """Add a family of rows that each have one variable of each term, or its only one.

        `bounds` are those of `rows`.
        """
        count = over if isinstance(over, int) else len(over)
        columns = [
            (np.broadcast_to(a, count)[:, None], np.broadcast_to(x, count)[:, None])
            for a, x in terms
        ]
        self.rows(name, *columns, over=(over,), **bounds)

    def row(
        self,
        name: str,
        *terms: tuple[Any, Any],
        at_least: int = -UNBOUNDED,
        at_most: int = UNBOUNDED,
        equal: int | None = None,
    ) -> None:
        """Add one row.

        Parameters
        ----------
        name : str
            Name of the row.
        *terms : (coefficients, variables)
            Two numbers, two arrays of any shape, or a coefficient and a list of variables.
        at_least, at_most, equal : int
            Bounds of the row; `equal` sets both.
        """
        for coefficients, variables in terms:
            # no arrays for a few numbers: some programs add tens of thousands of single rows
            if isinstance(variables, int):
                self._columns.append(variables)
                self._values.append(coefficients)
            elif isinstance(variables, list):
                self._columns.extend(variables)
                self._values.extend(repeat(coefficients, len(variables)))
            else:
                _extend(self._columns, variables, variables.shape)
                _extend(self._values, coefficients, variables.shape)
        self._start.append(len(self._columns))
        self._row_lower.append(at_least if equal is None else equal)
        self._row_upper.append(at_most if equal is None else equal)
        self._row_name.add(1, name)

    def ragged_rows(
        self,
        name: Name,
        over: Sequence[Axis],
        *entries: tuple[ArrayLike, Ints, Ints],
        at_least: ArrayLike = -UNBOUNDED,
        at_most: ArrayLike = UNBOUNDED,
        equal: ArrayLike | None = None,
    ) -> None:
        """Add a family of rows of different lengths, given by the entries of the rows.

        A row without entries is left out. The entries of a row keep their order. Other parameters
        are those of `rows`.

        Parameters
        ----------
        *entries : (coefficients, variables, rows)
            Variables, and the row of each in row-major order of the family, both of shape
            (entries,); coefficients are broadcast to that shape.
        """
        shape = tuple(axis if isinstance(axis, int) else len(axis) for axis in over)
        of_row = np.concatenate([rows for _, _, rows in entries])
        order = np.argsort(of_row, kind="stable")
        counts = np.bincount(of_row, minlength=math.prod(shape))
        stated = np.flatnonzero(counts)
        starts = len(self._columns) + np.cumsum(counts[stated])
        columns = np.concatenate([variables for _, variables, _ in entries])[order]
        values = [np.broadcast_to(c, variables.shape) for c, variables, _ in entries]
        _extend(self._start, starts, starts.shape)
        _extend(self._columns, columns, columns.shape)
        _extend(self._values, np.concatenate(values)[order], columns.shape)
        for bounds, given in ((self._row_lower, at_least), (self._row_upper, at_most)):
            bound = np.broadcast_to(given if equal is None else equal, shape).ravel()[stated]
            _extend(bounds, bound, bound.shape)
        self._row_name.add(len(stated), name, over, stated)

    def build(self, offset: int = 0) -> Program:
        """Return the program, with the constant `offset` in its objective."""
        of = partial(np.array, dtype=np.int64)
        return Program(
            self._sense, of(self._objective), of(self._lower), of(self._upper), of(self._start),
            of(self._columns), of(self._values), of(self._row_lower), of(self._row_upper),
            offset, self.variable_name, self._row_name,
        )  # fmt: skip


class BlockNames:
    """Names of variables or rows, formatted on request."""

    def __init__(self) -> None:
        self._first = [0]
        self._blocks: list[tuple[Name, Sequence[Axis], Ints | None]] = []

    def add(
        self, count: int, name: Name, axes: Sequence[Axis] = (), places: Ints | None = None
    ) -> None:
        """Add the names of a block, or of some places of a block in row-major order."""
        self._first.append(self._first[-1] + count)
        self._blocks.append((name, axes, places))

    def _block(self, number: int) -> tuple[Name, Sequence[Axis], Ints | None, int]:
        """Return the block of a number, and its place there."""
        block = bisect_right(self._first, number, hi=len(self._blocks)) - 1
        return *self._blocks[block], number - self._first[block]

    def family(self, number: int) -> str:
        """Return the name of the block of a number, or its own if the block has no axes."""
        name, axes, _, place = self._block(number)
        if callable(name) and not axes:
            return str(getattr(name, "family", name)(place))
        if not axes or callable(name):
            return self(number)
        return name.replace("{}", "").rstrip("_")

    def __call__(self, number: int) -> str:
        """Return the name of a number."""
        name, axes, places, place = self._block(number)
        if callable(name) and not axes:
            return name(place)
        if places is not None:
            place = int(places[place])
        labels: list[int | str] = []
        for axis in reversed(axes):
            place, at = divmod(place, axis if isinstance(axis, int) else len(axis))
            labels.append(at + 1 if isinstance(axis, int) else axis[at])
        if callable(name):
            return name(*labels[::-1])
        return name.format(*labels[::-1]) if axes else name


def _extend(numbers: array[int], values: ArrayLike, shape: tuple[int, ...]) -> None:
    spread = np.ascontiguousarray(np.broadcast_to(np.asarray(values, dtype=np.int64), shape))
    if spread.size:  # an empty buffer cannot be cast
        numbers.frombytes(spread.data.cast("B"))


P = TypeVar("P")
Solution = TypeVar("Solution")


class Formulation(ABC, Generic[P, Solution]):
    """A formulation of a problem as a program, with the translation of solutions.

    A subclass is registered for its model with ``@formulations.register(model)``.

    Parameters
    ----------
    problem : Problem
        The problem to formulate.
    """

    name: ClassVar[str]
    most_entries: ClassVar[int] = 20_000_000  # no solver handles a larger program

    def __init__(self, problem: P) -> None:
        self.problem = problem

    @classmethod
    def check_entries(cls, entries: int, advice: str) -> None:
        """Refuse a program with more than `most_entries`, before it is built."""
        if entries > cls.most_entries:
            more = f"some {entries:,} entries, more than {cls.most_entries:,}"
            raise InputError(f"the program would have {more}; {advice}")

    @property
    @abstractmethod
    def program(self) -> Program:
        """The problem as an integer linear program; best as a ``functools.cached_property``.

        Raises
        ------
        InputError
            If the program is too large.
        """

    @abstractmethod
    def decode(self, x: Ints) -> Solution:
        """Return the solution of a vector of the program.

        Parameters
        ----------
        x : int64 array, shape (variables,)
            The vector, within the bounds of the variables; it may violate rows.
        """

    @abstractmethod
    def encode(self, solution: Solution) -> Ints:
        """Return the vector of a feasible solution; the inverse of `decode`."""


F = TypeVar("F", bound=type[Formulation[Any, Any]])


class Formulations(dict[str, type[Formulation[Any, Any]]]):
    """The registered formulations, by the name of the model.

    A formulation is registered in the module that defines its problem or, of a large model, in the
    module ``program`` beside that module, which is imported at its first use.
    """

    def register(self, name: str) -> Callable[[F], F]:
        """Return a decorator that registers a class as the formulation of a model."""

        def file_under(cls: F) -> F:
            holder = self.get(name, cls)
            if holder.__qualname__ != cls.__qualname__:
                raise ValueError(f"the formulation of {name!r} is already {holder.__qualname__}")
            cls.name = name
            self[name] = cls
            return cls

        return file_under

    def __contains__(self, name: object) -> bool:
        try:
            self[name]  # type: ignore[index]
        except InputError:
            return False
        return True

    def __missing__(self, name: str) -> type[Formulation[Any, Any]]:
        package = sys.modules[models[name].__module__].__package__
        if package and find_spec(f"{package}.program"):
            import_module(f"{package}.program")
        if found := self.get(name):
            return found
        raise InputError(f"model {name!r} has no formulation")


formulations = Formulations()
