"""The integer program: any pure integer linear program, of no scheduler in particular.

Model page: ``models/integer-program/README.md``.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.errors import InputError
from optsched.fields import LARGEST_FIELD, Choice, Fields, Integer, first_few, plain_sequence
from optsched.models.export import PORTABLE_NAME
from optsched.models.fields import Integers, Labels, Row, RowBounds, Rows, numbered
from optsched.models.problem import Problem, Violation, listed
from optsched.models.program import UNBOUNDED, Formulation, Program, formulations
from optsched.models.schema import declared, field
from optsched.models.snapshot import SCALE, Snapshot
from optsched.numbers import LARGEST
from optsched.registry import models

__all__ = ["BinPacking", "IntegerProgram", "Values"]


class BinPacking(NamedTuple):
    """Items that go into as few bins as possible."""

    sizes: Sequence[int]  # size of each item, from 0
    capacity: int
    bins: int  # number of bins that there are

    def fields(self) -> dict[str, Any]:
        """Return the fields of its integer program, names aside.

        Variables tell for each item in turn whether it is in each bin, and then which bins are
        used. Rows are the capacities of bins, one bin for each item, and the order of used bins.
        """
        items, bins = len(self.sizes), self.bins
        used = range(items * bins, items * bins + bins)
        rows = [
            {j * bins + i: size for j, size in enumerate(self.sizes) if size}
            | ({used[i]: -self.capacity} if self.capacity else {})
            for i in range(bins)
        ]
        rows += [{j * bins + i: 1 for i in range(bins)} for j in range(items)]
        rows += [{one: 1, one + 1: -1} for one in used[:-1]]
        order = max(0, bins - 1)
        return {
            "sense": "min",
            "coefficients": [0] * (items * bins) + [1] * bins,
            "rows": rows,
            "at_least": [None] * bins + [1] * items + [0] * order,
            "at_most": [0] * bins + [1] * items + [None] * order,
        }

    def names(self) -> dict[str, list[str]]:
        """Return the names of the variables and rows of the program."""
        bins, items = range(1, self.bins + 1), range(1, len(self.sizes) + 1)
        used = [f"used_bin{i}" for i in bins]
        rows = [f"capacity_bin{i}" for i in bins] + [f"once_item{j}" for j in items]
        return {
            "variable_names": [f"x_item{j}_bin{i}" for j in items for i in bins] + used,
            "row_names": rows + [f"order_bin{i}" for i in bins[:-1]],
        }

    def values(self, bin_of_item: Sequence[int]) -> tuple[int, ...]:
        """Return the vector of the program that puts each item into a bin, used in order from 0."""
        x = [0] * ((len(self.sizes) + 1) * self.bins)
        for item, (b, size) in enumerate(zip(bin_of_item, self.sizes)):
            x[item * self.bins + b] = 1
            if size:
                x[len(self.sizes) * self.bins + b] = 1
        return tuple(x)

    def bin_of_item(self, values: Sequence[int]) -> list[int]:
        """Return the bin of each item in a feasible vector of the program, from 0."""
        bins = self.bins
        return [values[j * bins : (j + 1) * bins].index(1) for j in range(len(self.sizes))]

    def describe(self, values: Sequence[int]) -> list[tuple[str, str]]:
        """Return the items in each bin, with their sizes, of a feasible vector of the program."""
        inside: list[list[str]] = [[] for _ in range(self.bins)]
        for item, b in enumerate(self.bin_of_item(values)):
            inside[b].append(f"item{item + 1} ({self.sizes[item]})")
        return [(f"bin {i}", " ".join(items)) for i, items in enumerate(inside, 1) if items]


Values = tuple[int, ...]
"""The value of each variable, in order."""


@models.register("integer-program")
@declared
class IntegerProgram(Problem[Values]):
    """Pure integer linear program with bounded variables.

    Raises
    ------
    InputError
        If a row names a variable that does not exist, a lower bound exceeds an upper one, a name is
        given twice, a row or the objective may exceed 2^53, or lengths do not match; the message
        lists all mistakes.

    Notes
    -----
    A solution is a tuple with the value of each variable.

    Examples
    --------
    >>> rows = [{0: 2, 1: 3, 2: 4}]
    >>> problem = IntegerProgram("max", [3, 4, 6], rows=rows, at_most=[6])
    >>> problem.objective((1, 0, 1))
    9
    >>> problem.violations((1, 1, 1))
    [Violation(constraint='row', detail='r1 is 9; expected at most 6')]
    """

    sense: Literal["max", "min"] = field(
        Choice("max", "min"), "whether the objective is maximized or minimized"
    )
    coefficients: NDArray[np.int64] = field(
        Integers(-LARGEST_FIELD), "objective coefficient of each variable", symbol="n, c_j"
    )
    lower: NDArray[np.int64] = field(
        Integers(-LARGEST_FIELD, like="coefficients"),
        "lower bound of each variable; 0 if left out",
        symbol="l_j",
        each=0,
    )
    upper: NDArray[np.int64] = field(
        Integers(-LARGEST_FIELD, like="coefficients"),
        "upper bound of each variable; 1 if left out",
        symbol="u_j",
        each=1,
    )
    offset: int = field(
        Integer(-LARGEST_FIELD, LARGEST_FIELD),
        "constant term of the objective",
        symbol="d",
        default=0,
    )
    variable_names: tuple[str, ...] = field(
        Labels("coefficients", as_text=True),
        "name of each variable; `x1`, `x2`, ... if left out",
        default=None,
        filled=lambda fields: numbered("x", len(fields["coefficients"])),
    )
    rows: tuple[Row, ...] = field(
        Rows(), "coefficients of each row, other than 0", symbol="m, a_ij", kw_only=True
    )
    at_least: tuple[int | None, ...] = field(
        RowBounds(),
        "lower bound of each row, null for none; none at all if left out",
        symbol="b_i",
        each=None,
        kw_only=True,
    )
    at_most: tuple[int | None, ...] = field(
        RowBounds(),
        "upper bound of each row, null for none; none at all if left out",
        symbol="B_i",
        each=None,
        kw_only=True,
    )
    row_names: tuple[str, ...] = field(
        Labels("rows", as_text=True),
        "name of each row; `r1`, `r2`, ... if left out",
        default=None,
        filled=lambda fields: numbered("r", len(fields["rows"])),
        kw_only=True,
    )

    @classmethod
    def of(cls, program: Program) -> IntegerProgram:
        """Return a program as a problem."""
        entries = [*zip(program.columns.tolist(), program.values.tolist())]
        at_least, at_most = (
            [None if abs(bound) == UNBOUNDED else bound for bound in bounds.tolist()]
            for bounds in (program.row_lower, program.row_upper)
        )
        return cls(
            program.sense, program.objective, program.lower, program.upper, program.offset,
            rows=[dict(entries[low:high]) for low, high in pairwise(program.row_start.tolist())],
            at_least=at_least, at_most=at_most,
        )  # fmt: skip

    @staticmethod
    def joint_mistakes(fields: Fields, *, on_file: bool) -> list[str]:
        """Return the mistakes in bounds and names, and the sums beyond 2^53."""
        found: list[str] = []
        for lower, upper in (("lower", "upper"), ("at_least", "at_most")):
            crossed = [
                f"{lower}[{place}]: {least}; expected at most {most}, its {upper}"
                for place, (least, most) in enumerate(zip(fields[lower], fields[upper]))
                if least is not None and most is not None and least > most
            ]
            found += first_few(lower, crossed)
        for names in ("variable_names", "row_names"):
            twice = [
                f"{names}: {name!r} twice; expected different names"
                for name, count in Counter(fields[names]).items()
                if count > 1
            ]
            found += first_few(names, twice)
        largest = np.maximum(np.abs(fields["lower"]), np.abs(fields["upper"])).tolist()
        sums = [("coefficients", dict(enumerate(fields["coefficients"].tolist())))]
        sums += [(f"rows[{place}]", row) for place, row in enumerate(fields["rows"])]
        large = [
            f"{name}: may exceed 2^53 within the bounds of the variables; expected smaller numbers"
            for name, row in sums
            if sum(abs(a) * largest[number] for number, a in row.items()) > LARGEST
        ]
        return found + first_few("rows", large)

    @property
    def size(self) -> str:
        """Variables x rows."""
        return f"{len(self.coefficients)}x{len(self.rows)}"

    @property
    def solver(self) -> str:
        """The default solver: ``bin-search`` if the program is one of bin packing."""
        return self.default_solver if self.packing is None else "bin-search"

    @cached_property
    def packing(self) -> BinPacking | None:
        """The bin packing problem whose program this is, or None; names do not matter."""
        bins = int(self.coefficients.sum())
        items, rest = divmod(len(self.coefficients) - bins, max(1, bins))
        if rest or items < 1 or not 0 < bins <= len(self.rows):
            return None
        first = self.rows[0]
        sizes = [first.get(j * bins, 0) for j in range(items)]
        packing = BinPacking(sizes, -first.get(items * bins, 0), bins)
        if min(packing.capacity, *sizes) < 0:
            return None
        stated = IntegerProgram(**packing.fields())
        parts = ("sense", "offset", "rows", "at_least", "at_most")
        same = all(getattr(self, part) == getattr(stated, part) for part in parts)
        arrays = ("coefficients", "lower", "upper")
        same &= all(np.array_equal(getattr(self, a), getattr(stated, a)) for a in arrays)
        return packing if same else None

    def objective(self, solution: Values) -> int:
        """Return the value of the objective, equation (1)."""
        terms = zip(self.coefficients.tolist(), solution, strict=True)
        return int(self.offset + sum(coefficient * value for coefficient, value in terms))

    def violations(self, solution: Values) -> list[Violation]:
        """Check the form, the bounds (3) of all variables, and all rows (2)."""
        values = plain_sequence(solution)
        if values is None or not {*map(type, values)} <= {int}:
            return [Violation("form", "expected a sequence of integers")]
        if len(values) != len(self.coefficients):
            given = f"{len(values)} values for {len(self.coefficients)} variables"
            return [Violation("form", given)]
        bounds = zip(self.variable_names, values, self.lower.tolist(), self.upper.tolist())
        found = [
            Violation("bounds", f"{name} is {value}; expected {lower} to {upper}")
            for name, value, lower, upper in bounds
            if not lower <= value <= upper
        ]
        limits = zip(self.row_names, self.rows, self.at_least, self.at_most)
        for name, row, at_least, at_most in limits:
            total = sum(coefficient * values[number] for number, coefficient in row.items())
            if at_least is not None and total < at_least:
                found.append(Violation("row", f"{name} is {total}; expected at least {at_least}"))
            if at_most is not None and total > at_most:
                found.append(Violation("row", f"{name} is {total}; expected at most {at_most}"))
        return found

    def to_json(self) -> dict[str, Any]:
        """Return the fields, with the rows by names of variables."""
        names = self.variable_names
        rows = [{names[number]: a for number, a in row.items()} for row in self.rows]
        return super().to_json() | {"rows": rows}

    def solution_to_json(self, solution: Values) -> dict[str, Any]:
        """Return the value of each variable."""
        return {"values": list(solution)}

    def solution_from_json(self, fields: Mapping[str, Any]) -> Values:
        """Return the values written by `solution_to_json`."""
        values = fields.get("values") if isinstance(fields, Mapping) else None
        if not isinstance(values, list) or not {*map(type, values)} <= {int}:
            raise InputError("expected a list of integers", field="values")
        return tuple(values)

    def describe(self, solution: Values | None = None) -> list[tuple[str, str]]:
        """Return the sense and the numbers of things, or the values other than 0.

        Of bin packing, it is the items in each bin.
        """
        if solution is None:
            binary = int(((self.lower >= 0) & (self.upper <= 1)).sum())
            entries = sum(map(len, self.rows))
            return [
                ("objective", "maximized" if self.sense == "max" else "minimized"),
                ("variables", f"{len(self.coefficients):,}, {binary:,} of them binary"),
                ("rows", f"{len(self.rows):,}, with {entries:,} entries"),
            ]
        if self.packing is not None:
            return self.packing.describe(solution)
        chosen = (
            name if value == 1 else f"{name}={value}"
            for name, value in zip(self.variable_names, solution)
            if value
        )
        return [("not 0", listed(chosen))]


@formulations.register("integer-program")
class IntegerProgramFormulation(Formulation[IntegerProgram, Values]):
    """Equations (1) to (3) of the model's page, as they are."""

    @cached_property
    def program(self) -> Program:
        """The program, its rows compressed."""
        problem = self.problem
        lengths = [len(row) for row in problem.rows]
        return Program(
            problem.sense,
            objective=problem.coefficients,
            lower=problem.lower,
            upper=problem.upper,
            row_start=np.concatenate(([0], np.cumsum(lengths, dtype=np.int64))),
            columns=np.array([v for row in problem.rows for v in row], dtype=np.int64),
            values=np.array([a for row in problem.rows for a in row.values()], dtype=np.int64),
            row_lower=_limits(problem.at_least, -UNBOUNDED),
            row_upper=_limits(problem.at_most, UNBOUNDED),
            offset=problem.offset,
            variable_name=_portable(problem.variable_names, "x").__getitem__,
            row_name=_portable(problem.row_names, "r").__getitem__,
        )

    def decode(self, x: NDArray[np.int64]) -> Values:
        """Return the value of each variable."""
        return tuple(np.asarray(x).tolist())

    def encode(self, solution: Values) -> NDArray[np.int64]:
        """Return the values as a vector."""
        return np.array(solution, dtype=np.int64)


def _limits(bounds: Sequence[int | None], none: int) -> NDArray[np.int64]:
    return np.array([none if bound is None else bound for bound in bounds], dtype=np.int64)


def _portable(names: Sequence[str], prefix: str) -> Sequence[str]:
    """Return the names if every LP reader accepts all of them, otherwise numbered ones."""
    return names if all(map(PORTABLE_NAME.fullmatch, names)) else numbered(prefix, len(names))


INFINITE = 1e20
"""Bound that files write for no bound."""

INFINITY = re.compile(r"inf(inity)?", re.IGNORECASE)

Number = int | Decimal


MOST_DECIMALS = 6
"""Most decimals of a number in a file."""


def factor_of(numbers: Iterable[int | Decimal]) -> int:
    """Return the least power of ten that makes all numbers integers.

    >>> factor_of([Decimal("600.1"), Decimal("40"), Decimal("18.60")])
    10
    """
    decimals = 0
    for number in numbers:
        if isinstance(number, int) and abs(number) * 10**decimals <= LARGEST_FIELD:
            continue  # almost all numbers
        number = Decimal(number)
        exponent = number.normalize().as_tuple().exponent
        if not isinstance(exponent, int) or -exponent > MOST_DECIMALS:
            raise InputError(f"{number:f}; expected at most {MOST_DECIMALS} decimals")
        decimals = max(decimals, -exponent)
        if abs(number) * 10**decimals > LARGEST_FIELD:
            raise InputError(f"{number:f}; expected a number of at most {LARGEST_FIELD}")
    return int(10**decimals)


def whole_row(
    row: Mapping[int, Number], least: Number | None, most: Number | None
) -> tuple[dict[int, int], int | None, int | None]:
    """Return a row and its bounds times what makes their numbers integers, without zeros."""
    factor = factor_of([*row.values(), *(b for b in (least, most) if b is not None)])
    lower, upper = (None if bound is None else int(factor * bound) for bound in (least, most))
    return {number: int(factor * a) for number, a in row.items() if a}, lower, upper


def origin_of(path: Path, factor: int) -> dict[str, Any]:
    """Return the origin of a file's program whose objective was multiplied by a factor."""
    return {"file": path.name} | ({SCALE: factor} if factor > 1 else {})


@dataclasses.dataclass(slots=True)
class StatedVariable:
    """A variable: its number, its bounds, None where the file states none, and its type."""

    number: int
    lower: float | None = None
    upper: float | None = None
    integer: bool = False


@dataclasses.dataclass(slots=True)
class StatedRow:
    """A row: its coefficients by number of the variable, and its bounds."""

    entries: dict[int, float]
    lower: float = -math.inf
    upper: float = math.inf


@dataclasses.dataclass(slots=True)
class StatedProgram:
    """What a file states; rows and variables in the order in which it names them first."""

    sense: Literal["max", "min"] = "min"
    offset: float = 0.0
    objective: dict[int, float] = dataclasses.field(default_factory=dict)
    variables: dict[str, StatedVariable] = dataclasses.field(default_factory=dict)
    rows: dict[str, StatedRow] = dataclasses.field(default_factory=dict)

    def snapshot(self, path: Path) -> Snapshot:
        """Return the program as a snapshot.

        Rows whose numbers are not integers are multiplied by a power of ten, and so is the
        objective; the origin of the snapshot tells the latter.
        """
        continuous = [
            f"variable {name} is continuous; expected integer variables only"
            for name, variable in self.variables.items()
            if not variable.integer
        ]
        mistakes = first_few("variables", continuous, "variables")
        mistakes += first_few("bounds", list(self._unbounded()), "bounds")
        if mistakes:
            raise InputError(*mistakes)
        rows = []
        place = "the objective"
        try:
            costs = {number: _exact(cost) for number, cost in self.objective.items()}
            offset = _exact(self.offset)
            factor = factor_of([*costs.values(), offset])
            for name, row in self.rows.items():
                place = f"row {name}"
                entries = {number: _exact(a) for number, a in row.entries.items() if a}
                bounds = [None if abs(b) >= INFINITE else _exact(b) for b in (row.lower, row.upper)]
                rows.append(whole_row(entries, *bounds))
        except InputError as error:
            raise InputError(*error.mistakes, field=place) from None
        problem = IntegerProgram(
            self.sense,
            [int(factor * costs.get(number, 0)) for number in range(len(self.variables))],
            [math.ceil(one.lower or 0) for one in self.variables.values()],
            [math.floor(one.upper or 0) for one in self.variables.values()],
            int(factor * offset),
            list(self.variables),
            rows=[row for row, _, _ in rows],
            at_least=[least for _, least, _ in rows],
            at_most=[most for _, _, most in rows],
            row_names=list(self.rows),
        )
        return Snapshot(problem, origin_of(path, factor))

    def _unbounded(self) -> Iterator[str]:
        expected = "expected both, at most 10^12 in size"
        for name, variable in self.variables.items():
            lower, upper = variable.lower, variable.upper
            if upper is None or abs(upper) >= INFINITE:
                yield f"variable {name} has no upper bound; {expected}"
            elif lower is None and upper < 0:
                stated = f"has the upper bound {upper:g} and no lower one"
                yield f"variable {name} {stated}, which readers take for 0 or none; {expected}"
            if lower is not None and abs(lower) >= INFINITE:
                yield f"variable {name} has no lower bound; {expected}"


def _exact(number: float) -> Number:
    """Return a number as an integer, or as the shortest decimal: the one in the file."""
    return int(number) if number.is_integer() else Decimal(repr(number))
