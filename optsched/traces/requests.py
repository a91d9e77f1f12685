"""What a job asks for beyond processors and time: columns of numbers and of texts by fixed names.

Columns of numbers are annotations of a trace, columns of texts are in `Trace.texts`. Any trace may
lack any of them. Page: ``docs/formats/requests.md``. Demands of the processes of jobs on shared
resources are in a file beside that of the trace: ``docs/formats/demands.md``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.arrays import Ints
from optsched.errors import InputError
from optsched.files import read_bytes
from optsched.numbers import MOST_CAPACITY
from optsched.registry import readers
from optsched.traces.formats import BYTE_ORDER_MARK, refuse_word, shown
from optsched.traces.trace import COLUMNS, UNKNOWN, Trace


class Quantity(NamedTuple):
    """Column of numbers; -1 is unknown."""

    name: str  # name of the annotation
    meaning: str  # what the number says of a job
    unit: str = ""  # unit, empty for a count
    highest: int | None = None  # highest number; by default that of int64, of seconds 2^53


class Text(NamedTuple):
    """Column of texts; the empty text is unknown."""

    name: str  # name in `Trace.texts`
    meaning: str  # what the text says of a job
    # Column of a trace that holds numbers of these texts, if there is one; else empty
    numbers: str = ""


SECONDS = "s"

QUANTITIES = {
    quantity.name: quantity
    for quantity in (
        Quantity("nodes", "least number of nodes"),
        Quantity("tasks", "tasks (processes) of the job"),
        Quantity("cores_per_task", "cores of each task"),
        Quantity("tasks_per_node", "most tasks on a node"),
        Quantity("memory_per_node", "memory on each node", "MB"),
        Quantity("memory_per_core", "memory for each core", "MB"),
        Quantity("gpus", "GPUs of the whole job"),
        Quantity("gpus_per_node", "GPUs on each node"),
        Quantity("gpus_per_task", "GPUs of each task"),
        Quantity("exclusive", "1 if no other job may use its nodes, else 0", highest=1),
        Quantity("array_job", "number of the array that the job belongs to"),
        Quantity("array_task", "index of the job in its array"),
        Quantity("priority", "priority that the scheduler gave it, the higher the sooner"),
        Quantity("begin", "time before which the user does not want it to start", SECONDS),
        Quantity(
            "eligible",
            "time from which it could start: submitted, its begin time and dependencies reached",
            SECONDS,
        ),
        Quantity("allocated_nodes", "nodes that it got"),
    )
}
"""Columns of numbers by name. Times have the origin of the submit times."""

TEXTS = {
    text.name: text
    for text in (
        Text("user_name", "user", "user"),
        Text("account", "account that is charged", "group"),
        Text("qos", "quality of service", "queue"),
        Text("partition_name", "partition, or partitions with commas", "partition"),
        Text("job_name", "name that the user gave it", "executable"),
        Text("gpu_type", "type of its GPUs"),
        Text("features", "features that its nodes must have, `ib&skylake` for instance"),
        Text("licences", "licences, `matlab:4` for instance"),
        Text("dependency", "jobs that it waits for, `afterok:130` for instance"),
        Text("reservation", "reservation that it runs in"),
        Text("state", "last state in the log, `COMPLETED` for instance"),
        Text("node_list", "nodes that it got, `c[01-04]` for instance"),
    )
}
"""Columns of texts by name."""

TEXT_OF = {text.numbers: text.name for text in TEXTS.values() if text.numbers}
"""Name of the column of texts that a column of numbers numbers."""

OWNERS = ("user", "group", "queue", "partition")
"""Columns of a trace that number the owner of a job."""


def numbered(texts: NDArray[np.object_]) -> Ints:
    """Return the numbers of texts, from 1 as they first appear; -1 for the empty text.

    >>> numbered(np.array(["b", "", "a", "b"], dtype=object)).tolist()
    [1, -1, 2, 1]
    """
    values = texts.tolist()
    numbers = {text: number for number, text in enumerate(dict.fromkeys(filter(None, values)), 1)}
    return np.array([numbers.get(text, UNKNOWN) for text in values], dtype=np.int64)


def columns_of(trace: Trace) -> dict[str, NDArray[Any]]:
    """Return the columns that say what jobs ask for, for `Machine.demands`.

    The requested time is the one that the trace states, where cleaning has raised it for a job that
    ran somewhat longer. The column ``unix_time`` is the submission in seconds since 1970; a trace
    that does not say when it begins is taken to begin at 0.
    """
    stated = np.where(trace.stated_time > 0, trace.stated_time, trace.requested_time)
    requested = np.minimum(stated, trace.requested_time)
    asked = {
        "processors": trace.processors,
        "requested_time": requested,
        "unix_time": trace.submit + (trace.header.unix_start_time or 0),
    }
    return asked | dict(trace.annotations) | dict(trace.texts)


SUFFIX = ".demands.csv"  # ending of the name of a demands file, after the full name of the trace
DIGITS = 15  # most digits of a job number, so that it is below 2^53

JOB_ID = "job_id"

_NAME = re.compile(r"[a-z_]+")
_NUMBER = rb"\d{1,%d}" % DIGITS


def demands_file(path: str | Path) -> Path:
    """Return the path of the demands file of a trace, beside the file that `path` leads to.

    >>> demands_file("logs/a.swf.gz").name
    'a.swf.gz.demands.csv'
    """
    path = Path(path)
    beside = path.with_name(path.name + SUFFIX)
    if path.is_symlink() and not os.path.lexists(beside):
        target = Path(os.path.realpath(path))
        return target.with_name(target.name + SUFFIX)
    return beside


def split_demands(trace: Trace) -> tuple[dict[str, Ints], dict[str, NDArray[Any]]]:
    """Return the annotations of a trace that are demands, and the other annotations.

    A demand is a whole number from 0 to 10^9 for each job, and has a name of small letters and
    underscores that neither a trace format nor a request uses.
    """
    stated = _stated()
    demands = {
        name: column
        for name, column in trace.annotations.items()
        if name not in stated
        and _NAME.fullmatch(name)
        and column.dtype.kind == "i"
        and ((column >= 0) & (column <= MOST_CAPACITY)).all()
    }
    others = {name: column for name, column in trace.annotations.items() if name not in demands}
    return demands, others


def with_demands(trace: Trace, path: Path) -> Trace:
    """Return a raw trace with the demands in the file beside its own, as annotations.

    The trace is unchanged if there is no demands file.
    """
    file = demands_file(path)
    if not os.path.lexists(file):
        return trace
    data, sha256 = read_bytes(file)
    lines = BytesIO(data.removeprefix(BYTE_ORDER_MARK))
    names = _names(next(lines, b"").strip(), trace, file)
    demands = dict(zip(names, _columns(lines, names, trace, file)))
    annotations = {**trace.annotations, **demands}
    return replace(trace, annotations=annotations, demands_sha256=sha256)


def check_demands(trace: Trace, sha256: str) -> None:
    """Check that the demands of a trace were read from a file with a given SHA-256."""
    if trace.demands_sha256 != sha256:
        has = f"has SHA-256 {trace.demands_sha256}" if trace.demands_sha256 else "no such file"
        file = None if trace.path is None else demands_file(trace.path)
        raise InputError(f"{has}; expected demands of SHA-256 {sha256}", file=file)


def encode_demands(demands: Mapping[str, Ints], job_id: Ints, path: Path) -> bytes:
    """Return the bytes of a demands file: the demand of one process of each job, by resource."""
    _check_numbers(job_id, path)
    rows = zip(job_id.tolist(), *(column.tolist() for column in demands.values()))
    lines = [",".join((JOB_ID, *demands)), *(",".join(map(str, row)) for row in rows)]
    return "".join(f"{line}\n" for line in lines).encode()


def _stated() -> set[str]:
    """Return the names of annotations with a meaning of their own: requests, and of a format."""
    return {*QUANTITIES, *(name for kind in readers for name in readers[kind].annotations)}


def _names(header: bytes, trace: Trace, file: Path) -> list[str]:
    first, *names = header.decode("utf-8", errors="replace").split(",")
    if first != JOB_ID or not names:
        expected = f"expected '{JOB_ID},' and the names of resources, '{JOB_ID},bandwidth' for one"
        raise InputError(f"{shown(header)}; {expected}", file=file, line=1)
    stated = _stated()
    for place, name in enumerate(names):
        mistake = None
        if not _NAME.fullmatch(name):
            mistake = "expected small letters and underscores"
        elif name in names[:place]:
            mistake = "is the name of an earlier column"
        elif name in (*COLUMNS, "label", *trace.annotations) or name in stated:
            mistake = "is the name of a column of traces; expected another name"
        if mistake is not None:
            field = f"column {place + 2}"
            raise InputError(f"{shown(name.encode())}; {mistake}", file=file, line=1, field=field)
    return names


def _columns(lines: Iterable[bytes], names: Sequence[str], trace: Trace, file: Path) -> Ints:
    """Return the demands that the lines from the second state, shape (resources, jobs)."""
    _check_numbers(trace.job_id, file)
    jobs, order = np.unique(trace.job_id, return_index=True)
    stripped = ((number, line.strip()) for number, line in enumerate(lines, start=2))
    filled = [(number, line) for number, line in stripped if line]
    well_formed = re.compile(rb",".join(_NUMBER for _ in (JOB_ID, *names))).fullmatch
    for number, line in filled:
        if not well_formed(line):
            words = line.split(b",")
            if len(words) != len(names) + 1:
                mistake = f"{len(words)} columns; expected {len(names) + 1}, as in line 1"
                raise InputError(mistake, file=file, line=number)
            named = zip((JOB_ID, *names), words)
            checks = ((name, _NUMBER, _expected(name), word) for name, word in named)
            refuse_word(checks, file, number)
    numbers = np.fromstring(b",".join(line for _, line in filled), dtype=np.int64, sep=",")
    job_id, *columns = numbers.reshape(-1, 1 + len(names)).T
    for name, column in zip(names, columns):
        above = np.flatnonzero(column > MOST_CAPACITY)
        if len(above):
            row = above[0]
            mistake = f"{column[row]}; expected {_expected(name)}"
            raise InputError(mistake, file=file, line=filled[row][0], field=name)
    place = np.searchsorted(jobs, job_id).clip(max=len(jobs) - 1)
    unknown = np.flatnonzero(jobs[place] != job_id)
    if len(unknown):
        mistake, row = "the trace has no job with this number", unknown[0]
        raise InputError(f"{job_id[row]}; {mistake}", file=file, line=filled[row][0], field=JOB_ID)
    _, first, group = np.unique(place, return_index=True, return_inverse=True)
    again = np.flatnonzero(first[group] != np.arange(len(place)))
    if len(again):
        row = again[0]
        mistake = f"is in line {filled[first[group[row]]][0]} too; expected one line for each job"
        raise InputError(f"{job_id[row]}; {mistake}", file=file, line=filled[row][0], field=JOB_ID)
    if len(place) < len(trace):
        missing = np.delete(trace.job_id, order[place])
        mistake = f"{len(missing):,} of {len(trace):,} jobs are not in it, job {missing[0]} first"
        raise InputError(f"{mistake}; expected a line for each", file=file)
    demands = np.empty((len(names), len(trace)), dtype=np.int64)
    demands[:, order[place]] = columns
    return demands


def _expected(name: str) -> str:
    of_job = f"from 0, of at most {DIGITS} digits"
    return f"a whole number {of_job if name == JOB_ID else f'from 0 to {MOST_CAPACITY:,}'}"


def _check_numbers(job_id: Ints, file: Path) -> None:
    jobs, counts = np.unique(job_id, return_counts=True)
    wrong = jobs[(counts > 1) | (jobs < 0) | (jobs >= 10**DIGITS)]
    if len(wrong):
        expected = f"expected each number once, from 0 and of at most {DIGITS} digits"
        mistake = f"demands are stored by job number, and the trace has jobs of number {wrong[0]}"
        raise InputError(f"{mistake}; {expected}", file=file, field=JOB_ID)
