"""Integer programs in MPS and LP files, as snapshots. HiGHS reads them."""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from optsched.errors import InputError
from optsched.models.fields import SHOWN, first_few
from optsched.models.integer_program.problem import IntegerProgram
from optsched.models.integer_program.scaling import factor_of
from optsched.models.snapshot import SCALE, Snapshot

FORMATS = {".lp": "LP", ".mps": "MPS"}
"""Name of the format by the suffix of its files."""

LAST = {".lp": "end", ".mps": "ENDATA"}
"""Last line of a complete file by its suffix."""

IN_COMMENT = re.compile(r"^\*\s*SENSE:\s*Max", re.IGNORECASE | re.MULTILINE)
"""The sense as PuLP writes it."""

INFINITE = 1e20
"""Bound that files write for no bound."""


def parse_program_file(data: bytes, path: Path, suffix: str) -> Snapshot:
    """Return the integer program of an LP or MPS file, decompressed.

    Rows whose numbers are not integers are multiplied by a power of ten, and so is the objective;
    the origin of the snapshot tells the latter.

    Raises
    ------
    InputError
        If HiGHS cannot read the file, a variable is continuous or has no bounds, or a number has
        too many decimals; the message lists all mistakes.
    """
    model = _read(data, path, suffix)
    lp = model.lp_
    mistakes = []
    if model.hessian_.dim_:
        mistakes.append("the objective is quadratic; expected a linear one")
    names = list(lp.col_names_) or [f"x{number + 1}" for number in range(lp.num_col_)]
    rows = list(lp.row_names_) or [f"r{number + 1}" for number in range(lp.num_row_)]
    # the types of variables are left out if all are continuous
    types = [kind.name for kind in lp.integrality_] or ["kContinuous"] * lp.num_col_
    mistakes += _listed(
        [
            f"variable {name} is {kind[1:].lower()}; expected integer variables only"
            for name, kind in zip(names, types)
            if kind != "kInteger"
        ],
        "variables",
    )
    mistakes += _listed(
        [
            f"variable {name} has no {side} bound; expected both, at most 10^12 in size"
            for side, bounds in (("lower", lp.col_lower_), ("upper", lp.col_upper_))
            for name, bound in zip(names, bounds)
            if abs(bound) >= INFINITE
        ],
        "bounds",
    )
    if mistakes:
        raise InputError(*mistakes, file=path)
    scaled_rows, at_least, at_most = [], [], []
    try:
        coefficients = [_exact(cost) for cost in lp.col_cost_]
        offset = _exact(lp.offset_)
        place = "the objective"
        factor = factor_of([*coefficients, offset])
        bounds = zip(rows, _rows(lp), lp.row_lower_, lp.row_upper_)
        for name, row, least, most in bounds:
            place = f"row {name}"
            limits = [None if abs(b) >= INFINITE else _exact(b) for b in (least, most)]
            of_row = factor_of([*row.values(), *(b for b in limits if b is not None)])
            scaled_rows.append({number: int(of_row * a) for number, a in row.items() if a})
            scaled = [None if bound is None else int(of_row * bound) for bound in limits]
            at_least.append(scaled[0])
            at_most.append(scaled[1])
    except InputError as error:
        raise InputError(*error.mistakes, file=path, field=place) from None
    try:
        problem = IntegerProgram(
            "max" if lp.sense_.name == "kMaximize" else "min",
            [int(factor * cost) for cost in coefficients],
            [math.ceil(bound) for bound in lp.col_lower_],
            [math.floor(bound) for bound in lp.col_upper_],
            int(factor * offset),
            names,
            rows=scaled_rows,
            at_least=at_least,
            at_most=at_most,
            row_names=rows,
        )
    except InputError as error:
        raise error.within(path) from None
    origin = {"file": path.name}
    return Snapshot(problem, origin if factor == 1 else origin | {SCALE: factor})


def _read(data: bytes, path: Path, suffix: str) -> Any:
    """Return the model that HiGHS reads from a file; it takes the format from the suffix."""
    import highspy

    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(f"not text; expected {FORMATS[suffix]}", file=path) from None
    last = LAST[suffix]
    if not re.search(rf"^\s*{last}\s*$", text, re.IGNORECASE | re.MULTILINE):  # HiGHS needs none
        raise InputError(f"has no line {last!r}, with which {FORMATS[suffix]} ends", file=path)
    if suffix == ".mps" and IN_COMMENT.search(text) and "OBJSENSE" not in text:
        problem = "is maximized by a comment (*SENSE) alone, which no reader of MPS heeds"
        raise InputError(f"{problem}; expected a section OBJSENSE", file=path)
    with tempfile.TemporaryDirectory(prefix="optsched-") as folder:
        file, log = Path(folder) / f"program{suffix}", Path(folder) / "log"
        file.write_bytes(data)
        highs = highspy.Highs()
        highs.setOptionValue("log_to_console", False)
        highs.setOptionValue("log_file", str(log))
        status = highs.readModel(str(file))
        told = log.read_text(errors="replace").replace(str(file), path.name)
    if status != highspy.HighsStatus.kOk:
        lines = [line.partition(":") for line in told.splitlines()]
        reasons = [text.strip() for word, _, text in lines if word in ("ERROR", "WARNING")]
        reason = "; ".join(reasons[:SHOWN]) or "no reason given"
        raise InputError(f"HiGHS does not read it as {FORMATS[suffix]}: {reason}", file=path)
    return highs.getModel()


def _rows(lp: Any) -> list[dict[int, int | Decimal]]:
    """Return the rows of a model whose matrix is stored by columns."""
    rows: list[dict[int, int | Decimal]] = [{} for _ in range(lp.num_row_)]
    matrix = lp.a_matrix_
    of_entry = np.repeat(np.arange(lp.num_col_), np.diff(matrix.start_)).tolist()
    for column, row, value in zip(of_entry, matrix.index_, matrix.value_):
        rows[row][column] = _exact(value)
    return rows


def _exact(number: float) -> int | Decimal:
    """Return a number as an integer, or as the shortest decimal: the one in the file."""
    number = float(number)
    return int(number) if number.is_integer() else Decimal(repr(number))


def _listed(mistakes: Sequence[str], noun: str) -> list[str]:
    return first_few(noun, mistakes, noun)
