"""Export of programs to other software: OR-Tools CP-SAT, HiGHS, LP, MPS and MiniZinc files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched.errors import InputError
from optsched.files import write_text
from optsched.models.linear_text import lp_text, mps_text
from optsched.models.minizinc import minizinc_model
from optsched.models.problem import Problem
from optsched.models.program import UNBOUNDED, Program

FORMATS = {
    ".lp": "lp",
    ".mps": "mps",
    ".mzn": "minizinc",
    ".pb.txt": "cp-sat",
    ".pbtxt": "cp-sat",
    ".txt": "knapsack",
}
"""Format of an export by the suffix of its file; the first that matches counts."""


def highs_model(program: Program) -> Any:
    """Return the program as a silent ``highspy.Highs``."""
    import highspy

    highs = highspy.Highs()
    highs.silent()
    passed = highs.passModel(
        program.num_variables,
        program.num_rows,
        len(program.values),
        int(highspy.MatrixFormat.kRowwise),
        int(highspy.ObjSense.kMaximize if program.sense == "max" else highspy.ObjSense.kMinimize),
        float(program.offset),
        program.objective.astype(float),
        _with_infinities(program.lower),
        _with_infinities(program.upper),
        _with_infinities(program.row_lower),
        _with_infinities(program.row_upper),
        program.row_start.astype(np.int32),
        program.columns.astype(np.int32),
        program.values.astype(float),
        np.ones(program.num_variables, dtype=np.int32),
    )
    if passed == highspy.HighsStatus.kError:
        raise ValueError("HiGHS does not accept the program")
    return highs


def cp_sat_model(program: Program, *, names: bool = False) -> Any:
    """Return the program as a ``cp_model.CpModel``; with `names`, variables and rows are named."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    proto = model.proto
    add_variable, add_row = proto.variables.add, proto.constraints.add
    for bounds in zip(program.lower.tolist(), program.upper.tolist()):
        add_variable().domain.extend(bounds)
    columns, values, start = (
        array.tolist() for array in (program.columns, program.values, program.row_start)
    )
    bounds_of_rows = zip(program.row_lower.tolist(), program.row_upper.tolist())
    for first, end, bounds in zip(start, start[1:], bounds_of_rows):
        row = add_row().linear
        row.vars.extend(columns[first:end])
        row.coeffs.extend(values[first:end])
        row.domain.extend(bounds)
    # the proto minimizes scaling_factor * (coeffs @ vars + offset)
    sign = -1 if program.sense == "max" else 1
    objective = proto.objective
    objective.vars.extend(range(program.num_variables))
    objective.coeffs.extend((sign * program.objective).tolist())
    objective.offset = float(sign * program.offset)
    objective.scaling_factor = float(sign)
    if names:
        for number, variable in enumerate(proto.variables):
            variable.name = program.variable_name(number)
        for number, constraint in enumerate(proto.constraints):
            constraint.name = program.row_name(number)
    return model


def export(problem: Problem[Any], path: str | Path, format: str | None = None) -> None:  # noqa: A002
    """Write the program of a problem for other software, with the names of variables and rows.

    Numbers are written to the last digit; the LP and MPS writer of OR-Tools keeps six, so that
    1,234,567 becomes 1,234,570.

    `path`: the file, which is written under a temporary name and renamed; `format`: CPLEX LP, free
    MPS, MiniZinc, the text form of CP-SAT's ``CpModelProto``, or, of `optsched.models.WindowMKP`
    alone, the literature's text format of multiple knapsacks; by default that of the suffix:
    ``.lp``, ``.mps``, ``.mzn``, ``.pb.txt`` or ``.pbtxt``, ``.txt``.
    """
    path = Path(path)
    if format is None:
        format = next((FORMATS[end] for end in FORMATS if path.name.endswith(end)), None)  # noqa: A001
    if format is None or format not in FORMATS.values():
        formats = list(dict.fromkeys(FORMATS.values()))
        known = f"{', '.join(formats[:-1])} or {formats[-1]}"
        known += ", or a file that ends in " + ", ".join(FORMATS)
        raise InputError(f"no known export format; expected {known}", file=path)
    try:
        if format == "knapsack":
            text = _knapsack(problem)
        elif format == "minizinc":
            text = minizinc_model(problem.formulate().program)
        elif format == "cp-sat":
            text = str(cp_sat_model(problem.formulate().program, names=True).proto)
        else:
            text = (lp_text if format == "lp" else mps_text)(problem.formulate().program)
    except InputError as error:
        raise error.within(path) from None
    write_text(path, text)


def _knapsack(problem: Problem[Any]) -> str:
    from optsched.models.window_mkp.files import window_mkp_text
    from optsched.models.window_mkp.problem import WindowMKP

    if not isinstance(problem, WindowMKP):
        raise InputError(f"{problem.name} has no text format; expected a window-mkp problem")
    return window_mkp_text(problem)


def _with_infinities(bounds: NDArray[np.int64]) -> NDArray[np.float64]:
    real = bounds.astype(float)
    real[bounds == UNBOUNDED] = np.inf
    real[bounds == -UNBOUNDED] = -np.inf
    return real
