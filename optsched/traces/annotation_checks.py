"""Checks of the annotations of a trace whose jobs load files."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from optsched.errors import InputError
from optsched.traces.rackham import AFTER, BEFORE, LAST_FILE, RUNNING, differs
from optsched.traces.reading import mistake_in
from optsched.traces.trace import UNKNOWN, Trace

Check = tuple[str, NDArray[np.bool_], str]

HISTORY = ("history_start", "history_node")


def check_annotations(trace: Trace) -> None:
    """Check files, file sizes, categories, and the history of the jobs that run at the start.

    The trace has the annotation ``file``.
    """
    if "file_size" not in trace.annotations:
        _missing(trace, "file_size", "its files have no sizes; expected MB for each job")
    for name in ("file", "file_size", "category", *HISTORY):
        column = trace.annotations.get(name)
        if column is not None and column.dtype != np.int64:
            raise InputError("expected whole numbers", file=trace.path, field=name)
    for name, wrong, expected in _checks(trace):
        if wrong.any():
            job = int(np.flatnonzero(wrong)[0])
            column = trace.submit if name == "submit" else trace.annotations[name]
            raise mistake_in(trace, job, name, column[job], expected)


def _checks(trace: Trace) -> Iterator[Check]:
    """Yield the name of each column, a mask of the jobs with a wrong value, and what is allowed."""
    given = trace.annotations
    file, size = given["file"], given["file_size"]
    outside = (file < UNKNOWN) | (file > LAST_FILE)
    yield "file", outside, f"expected a number from 0 to {LAST_FILE:,}, or -1 for none"
    yield "file_size", size < 0, "expected MB from 0"
    yield "file_size", (file == UNKNOWN) & (size > 0), "expected 0 where there is no file"
    yield "file_size", differs(file, size), "expected the size that the file has in other jobs"
    if "category" not in given:
        return
    category = given["category"]
    wrong = (category < RUNNING) | (category > AFTER)
    yield "category", wrong, f"expected a whole number from {RUNNING} to {AFTER}"
    running, before = category == RUNNING, category == BEFORE
    if not running.any() or not before.any():
        return
    for name in HISTORY:
        if name not in given:
            expected = "expected for the jobs of category -2, which run at the start"
            _missing(trace, name, f"missing; {expected}")
        yield name, running & (given[name] < 0), "expected 0 or more for a job of category -2"
    opening = trace.submit[before].min()
    expected = f"expected a time before {opening} for a job of category -2, the start"
    yield "submit", running & (trace.submit >= opening), expected


def _missing(trace: Trace, name: str, text: str) -> None:
    raise InputError(f"trace {trace.name!r}: {text}", file=trace.path, field=name)
