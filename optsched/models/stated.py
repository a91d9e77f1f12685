"""Models of one statement: a function that is read with symbols, and with the numbers of an answer.

The first reading gives the program of generic solvers, `optsched.models.linear`; the second gives
violations and objective of an answer, `optsched.models.verification`.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import re
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import numpy as np
from numpy.typing import NDArray

from optsched.arrays import Ints
from optsched.errors import InputError, StatementError
from optsched.fields import Kind
from optsched.models.export import PORTABLE_NAME
from optsched.models.linear import Entries, Expression, Relation, Rows, integers
from optsched.models.problem import Problem, Violation
from optsched.models.program import BlockNames, Formulation, Program, formulations
from optsched.models.schema import declared, field
from optsched.models.verification import Verification, at_index, check_name, truths
from optsched.registry import models

Statement = Callable[..., object]

MODEL_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

TAKEN = ("name", "kind", "format", "origin", "known", "options")
"""Names that no field can have, beside those of a problem: they stand beside fields on file."""

SHOWN = 20
"""Most values of an answer that are described."""

CHECKED = {np.add, np.subtract, np.multiply, np.matmul, np.power}
"""Operations on data whose results may be too large for 64 bits."""


class Data(NDArray[Any]):
    """An array of a field in a statement, whose arithmetic is refused where it would overflow."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        arrays = [np.asarray(i) if isinstance(i, Data) else i for i in inputs]
        with np.errstate(divide="raise", invalid="raise"):
            found = getattr(ufunc, method)(*arrays, **options)
        if ufunc in CHECKED and np.asarray(found).dtype.kind in "iu":
            numbers = [
                np.asarray(a, float) if np.asarray(a).dtype.kind in "iu" else a for a in arrays
            ]
            if np.any(np.abs(getattr(ufunc, method)(*numbers, **options)) > 2.0**62):
                raise InputError(f"the data make a number beyond 64 bits ({ufunc.__name__})")
        return as_data(found)

    def __getitem__(self, key: Any) -> Any:
        return as_data(super().__getitem__(key))


def as_data(value: Any) -> Any:
    """Return an array as data, and an integer of numpy as one of Python, which has no size."""
    if isinstance(value, np.ndarray):
        return value.view(Data)
    return int(value) if isinstance(value, np.integer) else value


class Values(dict[str, Ints]):
    """An answer: the values of each array of decisions, by name."""

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        super().__init__({name: np.asarray(values) for name, values in arrays.items()})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Values) or self.keys() != other.keys():
            return False
        return all(np.array_equal(values, other[name]) for name, values in self.items())

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={values.tolist()}" for name, values in self.items())
        return f"Values({inside})"


class Symbols:
    """Reading of a statement with symbols: the variables, rows and objective of a program."""

    def __init__(self, base: Program | None = None) -> None:
        self.variables: dict[str, Ints] = {}  # numbers of the variables of each array
        # numbers of the variables of `some`, which no answer states, and the places that have one
        self.derived: dict[str, tuple[Ints, Ints]] = {}
        self.sense: Literal["max", "min"] = "max" if base is None else base.sense
        self._bounds: dict[str, tuple[Ints, Any, Any]] = {}
        self._rows: dict[str, Rows] = {}
        self._objective: Expression | None = None
        self._base = base
        self._count = 0 if base is None else base.num_variables

    def integer(self, name: str, *shape: int, lower: Any = 0, upper: Any) -> Expression:
        """Add an array of integer decisions; the bounds are broadcast to its shape."""
        self.variables[name] = numbers = self._added(name, shape, lower, upper)
        return Expression.of_variables(numbers, name)

    def binary(self, name: str, *shape: int, lower: Any = 0, upper: Any = 1) -> Expression:
        """Add an array of decisions that are 0 or 1."""
        return self.integer(name, *shape, lower=lower, upper=upper)

    def some(self, name: str, amount: Expression) -> Expression:
        """Return 1 where an amount is above 0, otherwise 0; by a variable and two rows for each."""
        least, most = amount.range(*self._all_bounds())
        where = np.flatnonzero(most > 0)
        everywhere = where.size == most.size
        numbers = self._added(name, amount.shape if everywhere else where.shape, 0, 1)
        self.derived[name] = numbers, where
        some = Expression.of_variables(numbers, name)
        if not everywhere:  # the others are 0
            ones = np.ones(len(where), dtype=np.int64)
            some = Expression(amount.shape, (Entries(ones, numbers, name, where),))
        Symbols.require(self, f"{name} if", amount <= most * some)
        Symbols.require(self, f"{name} only if", amount >= least + (1 - least) * some)
        return some

    def complete(self, x: Ints, derived: Mapping[str, Ints]) -> None:
        """Set the variables of `some` in a vector to the values that verification derived."""
        for name, (numbers, where) in self.derived.items():
            x[numbers.ravel()] = derived[name].ravel()[where]

    def require(self, name: str, relation: Any) -> None:
        """Add a row for each comparison of a relation."""
        check_name(name, self._rows)
        if not isinstance(relation, Relation):  # of data alone
            relation = Expression.of(truths(name, relation)) == 1
        self._rows[name] = relation.expression.rows(relation.kind)

    def maximize(self, value: Any) -> None:
        """Let the objective be maximized."""
        self._optimize("max", value)

    def minimize(self, value: Any) -> None:
        """Let the objective be minimized."""
        self._optimize("min", value)

    def _optimize(self, sense: Literal["max", "min"], value: Any) -> None:
        if self._objective is not None:
            raise ValueError("the objective is stated twice")
        objective = Expression.of(value)
        if objective.shape:
            shape = " x ".join(map(str, objective.shape))
            raise ValueError(f"an objective of {shape} values; expected one, as their sum")
        self.sense, self._objective = sense, objective

    def program(self) -> Program:
        """Return the program."""
        base, rows = self._base or EMPTY, [*self._rows.values()]
        goal = Expression.of(0) if self._objective is None else self._objective
        objective, offset = goal.coefficients(self._count)
        objective[: base.num_variables] += base.objective
        lower, upper = self._all_bounds()
        names, row_names = BlockNames(), BlockNames()
        names.add(base.num_variables, base.variable_name)
        row_names.add(base.num_rows, base.row_name)
        for name, (numbers, _, _) in self._bounds.items():
            names.add(numbers.size, template(name, numbers.shape), numbers.shape)
        for name, part in zip(self._rows, rows):
            row_names.add(len(part.bound), template(name, part.shape), part.shape, part.places)
        counts = [np.diff(base.row_start), *(part.counts for part in rows)]
        start = np.concatenate([[0], *counts]).cumsum()
        row_lower, row_upper = map(
            np.concatenate, zip((base.row_lower, base.row_upper), *(part.bounds for part in rows))
        )
        columns, values = (np.empty(start[-1], dtype=np.int64) for _ in range(2))
        at = len(base.values)
        columns[:at], values[:at] = base.columns, base.values
        for part in rows:
            end = at + int(part.counts.sum())
            part.fill(columns[at:end], values[at:end])
            at = end
        return Program(
            self.sense, objective, lower, upper, start, columns, values, row_lower, row_upper,
            base.offset + offset, names, row_names,
        )  # fmt: skip

    def _added(self, name: str, shape: tuple[int, ...], lower: Any, upper: Any) -> Ints:
        check_name(name, self._bounds)
        lower, upper = integers(lower), integers(upper)
        if np.broadcast_shapes(shape, lower.shape, upper.shape) != shape:
            raise ValueError(f"{name}: bounds of another shape than {shape}")
        if np.any(lower > upper):
            raise InputError(f"{name}: a lower bound is above its upper bound")
        numbers = np.arange(self._count, self._count + math.prod(shape)).reshape(shape)
        self._bounds[name] = numbers, lower, upper
        self._count += numbers.size
        return numbers

    def _all_bounds(self) -> tuple[Ints, Ints]:
        base = self._base or EMPTY
        lower, upper = [base.lower], [base.upper]
        for numbers, *bounds in self._bounds.values():
            for found, bound in zip((lower, upper), bounds):
                found.append(np.broadcast_to(bound, numbers.shape).ravel())
        return np.concatenate(lower), np.concatenate(upper)


NONE = np.empty(0, dtype=np.int64)
EMPTY = Program("max", NONE, NONE, NONE, np.zeros(1, dtype=np.int64), NONE, NONE, NONE, NONE)


def template(name: str, shape: tuple[int, ...]) -> str:
    """Return the template of the names of an array; ``free``, a word of LP files, is ``free_``."""
    text = name.replace(" ", "_") + "_{}" * len(shape)
    return text if PORTABLE_NAME.fullmatch(text.replace("{}", "1")) else f"{text}_"


def read(statement: Statement, reading: Any, *values: Any, **fields: Any) -> None:
    """Call a statement with a reading; what it prints goes to stderr."""
    code = getattr(statement, "__code__", None)
    file, line = getattr(statement, "place", ("" if code is None else code.co_filename, None))
    try:
        with redirect_stdout(sys.stderr):
            returned = statement(reading, *values, **fields)
        if returned is not None:
            line = line or (code and code.co_firstlineno)
            raise TypeError("a statement returns nothing; expected require, maximize or minimize")
    except (Exception, SystemExit) as error:
        if isinstance(error, InputError) and (error.field or error.file):
            raise
        frames = traceback.extract_tb(error.__traceback__)
        at = next((one.lineno for one in frames[::-1] if one.filename == file), None)
        mistakes: tuple[str, ...] = (f"{type(error).__name__}: {' '.join(str(error).split())}",)
        if isinstance(error, InputError):
            mistakes = error.mistakes
        raise StatementError(*mistakes, file=Path(file).name, line=line or at) from error


class Stated(Problem[Mapping[str, Any]]):
    """A problem of a model of one statement; made by `model`."""

    statement: Statement

    @cached_property
    def symbols(self) -> Symbols:
        """The statement, read with symbols."""
        reading = Symbols()
        self._read(reading)
        return reading

    def _read(self, reading: Symbols | Verification) -> None:
        values = vars(self)
        fields = {f.name: as_data(values[f.name]) for f in self.schema.fields}
        read(type(self).statement, reading, **fields)

    def verified(self, solution: Any) -> Verification:
        """Return the statement, read with the values of an answer."""
        if not isinstance(solution, Mapping):
            raise InputError(
                f"a {type(solution).__name__}; expected values by name", field="answer"
            )
        reading = Verification(solution)
        self._read(reading)
        reading.done()
        return reading

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: vars(self)[f.name] for f in self.schema.fields}

    @property
    def sense(self) -> Literal["max", "min"]:  # type: ignore[override]
        """Direction of the objective."""
        return self.symbols.sense

    @property
    def size(self) -> str:
        """Lengths of the lists on which the other ones depend."""
        lists = (f.name for f in self.schema.fields if f.kind.like is None)
        values = [vars(self)[name] for name in lists]
        sizes = [len(value) for value in values if isinstance(value, tuple | np.ndarray)]
        return "x".join(map(str, sizes)) or "1"

    def objective(self, solution: Mapping[str, Any]) -> int:
        """Return the objective value of values by name."""
        return self.verified(solution).objective

    def violations(self, solution: Mapping[str, Any]) -> list[Violation]:
        """Return every bound and requirement that values by name break."""
        try:
            return self.verified(solution).found
        except StatementError:
            raise
        except InputError as error:
            return [Violation("form", line) for line in error.lines()]

    def solution_to_json(self, solution: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values by name, as nested lists."""
        return {name: np.asarray(values).tolist() for name, values in solution.items()}

    def solution_from_json(self, fields: Mapping[str, Any]) -> Values:
        """Return the values written by `solution_to_json`."""
        return Values(self.verified(fields).values)

    def describe(self, solution: Mapping[str, Any] | None = None) -> list[tuple[str, str]]:
        """Return the fields, or the values other than 0."""
        if solution is None:
            given = ((f.name, vars(self)[f.name]) for f in self.schema.fields)
            return [(name.replace("_", " "), _shown(value)) for name, value in given]
        return [(name, _chosen(np.asarray(values))) for name, values in solution.items()]


class StatedFormulation(Formulation[Stated, Mapping[str, Any]]):
    """The program that the statement of a model gives."""

    @cached_property
    def program(self) -> Program:
        """The program."""
        return self.problem.symbols.program()

    def decode(self, x: Ints) -> Values:
        """Return the values by name."""
        return Values({name: x[at] for name, at in self.problem.symbols.variables.items()})

    def encode(self, solution: Mapping[str, Any]) -> Ints:
        """Return the vector of values by name."""
        symbols, verified = self.problem.symbols, self.problem.verified(solution)
        x = np.zeros(self.program.num_variables, dtype=np.int64)
        for name, at in symbols.variables.items():
            x[at] = verified.values[name]
        symbols.complete(x, verified.derived)
        return x


def model(name: str) -> Callable[[Statement], type[Stated]]:
    """Return a decorator that makes a registered model of its statement.

    The statement is a function of a reading and of the fields of a problem; the annotation of a
    field is its kind, or a `field` with its meaning. It states decisions, requirements and the
    objective with the methods of the reading: ``integer`` and ``binary``, ``require``, ``maximize``
    and ``minimize``.

    Parameters
    ----------
    name : str
        Name of the model.

    Notes
    -----
    For example::

        @optsched.model("power-cap")
        def power_cap(state, nodes: Integers(1), watts: Integers(0, like="nodes"), cap: Integer()):
            start = state.binary("start", len(nodes))
            state.maximize(nodes @ start)
            state.require("power", watts @ start <= cap)
    """
    if not isinstance(name, str) or not MODEL_NAME.fullmatch(name):
        expected = 'expected lower-case words joined by hyphens, as in @optsched.model("power-cap")'
        raise InputError(f"{name!r} as the name of a model; {expected}")

    def stated(statement: Statement) -> type[Stated]:
        try:
            signature = inspect.signature(statement, eval_str=True)
        except NameError as error:  # annotations of the future are texts
            expected = "expected kinds that are names of the module, not of a function in it"
            raise InputError(f"{error}; {expected}", field=f"model {name}") from None
        parameters = list(signature.parameters.values())[1:]
        fields = {p.name: _field(statement.__name__, p) for p in parameters}
        body = fields | {
            "statement": staticmethod(statement),
            "__annotations__": dict.fromkeys(fields, Any),
            "__doc__": inspect.getdoc(statement),
            "__module__": statement.__module__,
            "__qualname__": statement.__qualname__,
        }
        made: type[Stated] = declared(type(statement.__name__, (Stated,), body))
        place = {"__module__": made.__module__, "__qualname__": f"{made.__qualname__}Formulation"}
        formulation = type(f"{made.__name__}Formulation", (StatedFormulation,), place)
        models.register(name)(made)
        holder: object = models[name]
        if holder is not made:
            raise InputError(f"{name} is a model of optsched; expected another name")
        formulations.register(name)(formulation)
        return made

    return stated


def _field(of: str, parameter: inspect.Parameter) -> Any:
    given = [parameter.annotation]
    if get_origin(parameter.annotation) is Annotated:
        given = list(get_args(parameter.annotation)[1:])
    if parameter.name in {*dir(Stated), *TAKEN}:
        raise InputError(f"{of}: {parameter.name} is taken; expected another name of the field")
    for kind in given:
        if isinstance(kind, dataclasses.Field):
            made = kind
        elif isinstance(kind, Kind):
            meaning = next((text for text in given if isinstance(text, str)), "")
            made = field(kind, meaning or parameter.name.replace("_", " "))
        else:
            continue
        if parameter.default is not parameter.empty:
            made.default = parameter.default
        return made
    expected = "expected a kind of field as its annotation, Integers(0) for instance"
    raise TypeError(f"{of}: {parameter.name}: {expected}")


def _shown(value: Any) -> str:
    if isinstance(value, tuple | np.ndarray):
        return _first([str(v) for v in value[: SHOWN + 1]])
    return "-" if value is None else str(value)


def _first(texts: list[str]) -> str:
    return " ".join([*texts[:SHOWN], *(["..."] if len(texts) > SHOWN else [])]) or "-"


def _chosen(values: Ints) -> str:
    """Return the places of values other than 0, and the values other than 1."""
    if not values.ndim:
        return str(values)
    texts = []
    for index in map(tuple, np.argwhere(values)[: SHOWN + 1].tolist()):
        number = "" if values[index] == 1 else f"={values[index]}"
        texts.append(at_index("", index)[1:-1] + number)
    return _first(texts)
