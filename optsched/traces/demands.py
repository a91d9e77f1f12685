"""What each process of a job demands of shared resources, in a file beside that of the trace.

File format: ``docs/formats/demands.md``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from optsched.errors import InputError
from optsched.registry import readers
from optsched.stored import read_bytes
from optsched.traces.trace import COLUMNS, Trace

SUFFIX = ".demands.csv"
"""What the file of demands has after the full name of the trace."""

DIGITS = 15
"""Demands of so many digits are below 2^53."""

JOB_ID = "job_id"

_NAME = re.compile(r"[a-z_]+")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def demands_file(path: str | Path) -> Path:
    """Return the path of the demands of a trace.

    >>> demands_file("logs/a.swf.gz").name
    'a.swf.gz.demands.csv'
    """
    path = Path(path)
    return path.with_name(path.name + SUFFIX)


def split_demands(
    trace: Trace,
) -> tuple[dict[str, NDArray[np.int64]], dict[str, NDArray[Any]]]:
    """Return the annotations of a trace that are demands, and the others.

    A demand has a name of small letters and underscores that no trace format has a place for, and
    is a whole number from 0, of at most 15 digits, for each job.
    """
    stated = _stated()
    demands = {
        name: column
        for name, column in trace.annotations.items()
        if name not in stated
        and _NAME.fullmatch(name)
        and column.dtype.kind == "i"
        and ((column >= 0) & (column < 10**DIGITS)).all()
    }
    others = {name: column for name, column in trace.annotations.items() if name not in demands}
    return demands, others


def with_demands(trace: Trace, path: Path) -> Trace:
    """Return a raw trace with the demands that lie beside its file, as annotations.

    Parameters
    ----------
    trace : Trace
        The trace as its file states it.
    path : path
        That file.

    Returns
    -------
    Trace
        With an annotation for each resource; as it was if there is no file of demands.

    Raises
    ------
    InputError
        If the file of demands cannot be read, or does not state the demands of each job once; names
        line and field.
    """
    file = demands_file(path)
    if not os.path.lexists(file):
        return trace
    data, sha256 = read_bytes(file)
    lines = [line.strip() for line in data.removeprefix(_BYTE_ORDER_MARK).split(b"\n")]
    names = _names(lines[0], file)
    columns = np.array(_rows(lines, names, trace, file)).T
    annotations = {**trace.annotations, **dict(zip(names, columns))}
    return replace(trace, annotations=annotations, demands_sha256=sha256)


def encode_demands(
    demands: Mapping[str, NDArray[np.int64]], job_id: NDArray[np.int64], path: Path
) -> bytes:
    """Return the file of demands.

    Parameters
    ----------
    demands : mapping of str to array, shape (jobs,)
        Of each resource.
    job_id : array, shape (jobs,)
        The numbers of the jobs.
    path : path
        The file of the trace, for messages.

    Raises
    ------
    InputError
        If two jobs have the same number.
    """
    numbers, counts = np.unique(job_id, return_counts=True)
    if (counts > 1).any():
        raise _ambiguous(int(numbers[counts > 1][0]), path)
    rows = zip(job_id.tolist(), *(column.tolist() for column in demands.values()))
    lines = [",".join((JOB_ID, *demands)), *(",".join(map(str, row)) for row in rows)]
    return "".join(f"{line}\n" for line in lines).encode()


def _stated() -> set[str]:
    """Return the names of annotations that have a place in the file of some trace."""
    return {name for kind in readers for name in readers[kind].annotations}


def _names(header: bytes, file: Path) -> list[str]:
    """Return the names of the resources."""
    first, *names = header.decode("utf-8", errors="replace").split(",")
    if first != JOB_ID or not names:
        expected = f"expected '{JOB_ID},' and the names of resources, '{JOB_ID},bandwidth' for one"
        raise InputError(f"{_shown(header)}; {expected}", file=file, line=1)
    stated = _stated()
    for place, name in enumerate(names):
        mistake = None
        if not _NAME.fullmatch(name):
            mistake = "expected small letters and underscores"
        elif name in names[:place]:
            mistake = "is the name of a column before"
        elif name in (*COLUMNS, "label") or name in stated:
            mistake = "is the name of something else that traces state; expected another name"
        if mistake is not None:
            field = f"column {place + 2}"
            raise InputError(f"{_shown(name.encode())}; {mistake}", file=file, line=1, field=field)
    return names


def _rows(
    lines: Sequence[bytes], names: Sequence[str], trace: Trace, file: Path
) -> list[list[int]]:
    """Return the demands of each job, in the order of the trace."""
    row_of = {job: row for row, job in enumerate(trace.job_id.tolist())}
    if len(row_of) < len(trace):
        jobs, counts = np.unique(trace.job_id, return_counts=True)
        raise _ambiguous(int(jobs[counts > 1][0]), file)
    well_formed = re.compile(rb"\d{1,19}" + rb",\d{1,%d}" % DIGITS * len(names)).fullmatch
    rows: list[list[int]] = [[]] * len(trace)
    line_of: dict[int, int] = {}
    for number, line in enumerate(lines[1:], start=2):
        if not line:
            continue
        if not well_formed(line):
            _refuse(line, names, file, number)
        job, *demands = map(int, line.split(b","))
        mistake = None
        if job not in row_of:
            mistake = "the trace has no job of that number"
        elif job in line_of:
            mistake = f"is in line {line_of[job]} too; expected one line for each job"
        if mistake is not None:
            raise InputError(f"{job}; {mistake}", file=file, line=number, field=JOB_ID)
        line_of[job] = number
        rows[row_of[job]] = demands
    if len(line_of) < len(trace):
        missing = len(trace) - len(line_of)
        first = next(job for job in row_of if job not in line_of)
        mistake = f"{missing:,} of {len(trace):,} jobs are not in it, the first is job {first}"
        raise InputError(f"{mistake}; expected a line for each", file=file)
    return rows


def _refuse(line: bytes, names: Sequence[str], file: Path, number: int) -> NoReturn:
    """Say what is wrong with a line."""
    words = line.split(b",")
    if len(words) != len(names) + 1:
        mistake = f"{len(words)} columns; expected {len(names) + 1}, as in line 1"
        raise InputError(mistake, file=file, line=number)
    for name, word, digits in zip((JOB_ID, *names), words, (19, *[DIGITS] * len(names))):
        if not re.fullmatch(rb"\d{1,%d}" % digits, word):
            mistake = f"{_shown(word)}; expected a whole number from 0, of at most {digits} digits"
            raise InputError(mistake, file=file, line=number, field=name)
    raise AssertionError("a line of the right words is not refused")


def _ambiguous(job: int, file: Path) -> InputError:
    mistake = f"several jobs of the trace have the number {job}"
    expected = "expected each number once, demands go by it"
    return InputError(f"{mistake}; {expected}", file=file, field=JOB_ID)


def _shown(word: bytes) -> str:
    text = word.decode("utf-8", errors="replace")
    return repr(text if len(text) <= 30 else f"{text[:30]}...")
