"""The fields of a gang packing: a quick check that all is well, and a slow one of what is not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from optsched.column_sets import ColumnSet, column_set, interval_text
from optsched.models.fields import FieldChecks

WIDEST = 10**6
"""Most columns of a matrix, and most rows: a mask is as long as the matrix is wide."""

INTERVAL = re.compile(r"(\d{1,12})(?:-(\d{1,12}))?", re.ASCII)
"""A column, or the first and the last of an interval."""

ADMISSIONS = ("fcfs", "skip")


class Fields(NamedTuple):
    """What `GangPacking` is made of, see there."""

    columns: Any
    rows: Any
    running: Any
    rows_of_running: Any
    waiting: Any
    admission: Any
    rerow: Any
    running_jobs: Any
    waiting_jobs: Any


def is_fine(fields: Fields) -> bool:
    """Return whether the fields are plain and sound, so as to be kept as they are.

    Almost every problem of a simulation is, and this takes some microseconds.
    """
    columns, rows, running, in_rows, waiting = fields[:5]
    if (
        {type(columns), type(rows)} != {int}
        or not (0 < columns <= WIDEST and 0 < rows <= WIDEST)
        or {type(running), type(in_rows), type(waiting)} != {tuple}
        or not {*map(type, running), *map(type, in_rows), *map(type, waiting)} <= {int}
        or len(running) != len(in_rows)
        or fields.admission not in ADMISSIONS
        or type(fields.rerow) is not bool
        or not _are_labels(fields.running_jobs, len(running))
        or not _are_labels(fields.waiting_jobs, len(waiting))
    ):
        return False
    if waiting and not (min(waiting) >= 1 and max(waiting) <= columns):
        return False
    if running and not (
        min(running) > 0
        and max(running).bit_length() <= columns
        and min(in_rows) >= 0
        and max(in_rows) < rows
    ):
        return False
    held = [0] * rows
    for mask, row in zip(running, in_rows, strict=True):
        if held[row] & mask:
            return False
        held[row] |= mask
    return True


def check_fields(
    check: FieldChecks, fields: Fields, *, on_file: bool = False, whole: bool = True
) -> Fields:
    """Return the fields as plain integers and tuples; note every mistake in them.

    Parameters
    ----------
    check : FieldChecks
        Where mistakes are noted.
    fields : Fields
        As they were given.
    on_file : bool
        Whether they are as on file: column sets as texts, rows from 1.
    whole : bool
        Whether all fields were given, so that their lengths can be compared.
    """
    columns = _count(check, "columns", fields.columns)
    rows = _count(check, "rows", fields.rows)
    first_row = 1 if on_file else 0
    last_row = rows - 1 + first_row
    running = (_texts if on_file else _masks)(check, fields.running, columns)
    in_rows = _within(check, "rows_of_running", fields.rows_of_running, first_row, last_row, "row")
    waiting = _within(check, "waiting", fields.waiting, 1, columns, "size")
    running_jobs = check.labels("running_jobs", fields.running_jobs)
    waiting_jobs = check.labels("waiting_jobs", fields.waiting_jobs)
    if fields.admission not in ADMISSIONS:
        check.mistakes.append(f"admission: {fields.admission!r}; expected fcfs or skip")
    if not isinstance(fields.rerow, bool):
        check.mistakes.append(f"rerow: {fields.rerow!r}; expected true or false")
    if whole and running is not None:
        if in_rows is not None:
            check.same_length("rows_of_running", in_rows, "running", running)
        if running_jobs is not None:
            check.same_length("running_jobs", running_jobs, "running", running)
    if whole and waiting is not None and waiting_jobs is not None:
        check.same_length("waiting_jobs", waiting_jobs, "waiting", waiting)
    if not check.mistakes and running is not None and in_rows is not None:
        _disjoint(check, running, in_rows)
    return Fields(
        columns,
        rows,
        running,
        tuple(row - first_row for row in in_rows or ()),
        waiting,
        fields.admission,
        fields.rerow,
        running_jobs,
        waiting_jobs,
    )


def columns_on_file(text: str, columns: int) -> ColumnSet | None:
    """Return the set of a text such as ``0-3 7``; none if it is not such a text.

    Parameters
    ----------
    text : str
        Columns and intervals, ascending and apart, with one blank between them.
    columns : int
        How many columns there are.
    """
    runs: list[tuple[int, int]] = []
    end = 0
    for part in text.split(" "):
        interval = INTERVAL.fullmatch(part)
        if interval is None:
            return None
        start, stop = int(interval[1]), int(interval[2] or interval[1]) + 1
        if not end <= start < stop <= columns:
            return None
        runs.append((start, stop))
        end = stop
    return column_set(runs)


def _are_labels(labels: Any, count: int) -> bool:
    if labels is None:
        return True
    return type(labels) is tuple and len(labels) == count and {*map(type, labels)} <= {int, str}


def _count(check: FieldChecks, name: str, value: Any) -> int:
    if hasattr(value, "dtype") and value.dtype.kind in "iu" and value.ndim == 0:
        value = int(value)
    if type(value) is int and 0 < value <= WIDEST:
        return value
    check.mistakes.append(f"{name}: {value!r}; expected an integer from 1 to {WIDEST}")
    return WIDEST  # what depends on it is not wrong as well


def _whole_numbers(values: Any) -> tuple[Any, ...] | None:
    """Return numpy's integers as plain ones, the rest as it is; none if it is no sequence."""
    if hasattr(values, "tolist"):
        values = values.tolist()
    if not isinstance(values, Sequence) or isinstance(values, str | bytes):
        return None
    return tuple(int(v) if hasattr(v, "dtype") and v.dtype.kind in "iu" else v for v in values)


def _texts(check: FieldChecks, texts: Any, columns: int) -> tuple[int, ...] | None:
    """Return the masks of a list of column sets; note what is not such a set."""
    if not isinstance(texts, Sequence) or isinstance(texts, str):
        check.mistakes.append("running: expected a list of column sets such as '0-3 7'")
        return None
    masks = [columns_on_file(text, columns) if isinstance(text, str) else None for text in texts]
    expected = f"expected a column set such as '0-3 7' within 0-{columns - 1}"
    wrong = [
        f"running[{place}]: {text!r}; {expected}"
        for place, (text, mask) in enumerate(zip(texts, masks))
        if mask is None
    ]
    check.note("running", wrong)
    return tuple(mask or 0 for mask in masks)


def _masks(check: FieldChecks, values: Any, columns: int) -> tuple[int, ...] | None:
    masks = _whole_numbers(values)
    if masks is None:
        check.mistakes.append("running: expected a list of column sets")
        return None
    wrong = [
        f"running[{place}]: {_shown(mask)}; expected a mask of some of the {columns} columns"
        for place, mask in enumerate(masks)
        if type(mask) is not int or mask <= 0 or mask.bit_length() > columns
    ]
    check.note("running", wrong)
    return masks


def _shown(mask: Any) -> str:
    return repr(mask) if type(mask) is not int or mask <= 0 else f"columns {interval_text(mask)}"


def _within(
    check: FieldChecks, name: str, values: Any, least: int, most: int, noun: str
) -> tuple[int, ...] | None:
    numbers = _whole_numbers(values)
    if numbers is None:
        check.mistakes.append(f"{name}: expected a list of integers from {least} to {most}")
        return None
    wrong = [
        f"{name}[{place}]: {number!r}; expected a {noun} from {least} to {most}"
        for place, number in enumerate(numbers)
        if type(number) is not int or not least <= number <= most
    ]
    check.note(name, wrong)
    return numbers if not wrong else tuple(least for _ in numbers)


def _disjoint(check: FieldChecks, running: Sequence[int], rows: Sequence[int]) -> None:
    held: dict[int, int] = {}
    for place, (mask, row) in enumerate(zip(running, rows, strict=True)):
        shared = held.get(row, 0) & mask
        if shared:
            text = f"columns {interval_text(shared)} of row {row}"
            check.mistakes.append(f"running[{place}]: holds {text}, which another job holds")
        held[row] = held.get(row, 0) | mask
