"""Workloads of Gonthier et al. 2024: jobs with input files, some running at the start.

File format: ``docs/formats/rackham.md``.

References
----------
M. Gonthier et al., "Data-driven locality-aware batch scheduling", APDCM 2024, section V.B.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from optsched.arrays import Flags, Ints
from optsched.errors import InputError
from optsched.files import read_bytes
from optsched.numbers import LONGEST, MOST_PROCESSORS
from optsched.registry import readers
from optsched.traces.formats import BYTE_ORDER_MARK, TraceFormat, refuse_word, say_left_out, stem
from optsched.traces.reading import mistake_in
from optsched.traces.requests import DIGITS, numbered
from optsched.traces.trace import UNKNOWN, Trace

LAST_FILE = 10**12

RUNNING, WAITING, BEFORE, EVALUATED, AFTER = -2, -1, 0, 1, 2
"""Categories of jobs; the key is ``workload`` in the file."""

MB_PER_GB = 1000

USER = "user"


class Field(NamedTuple):
    """Number of a line: the word before it, the range of its values, and the form of its word."""

    keyword: str
    lowest: int
    highest: int = 10**DIGITS - 1
    pattern: bytes = rb"-?\d{1,%d}" % DIGITS

    @property
    def expected(self) -> str:
        """Valid values of the number, for messages."""
        if self.highest < 10**DIGITS - 1:
            return f"a whole number from {self.lowest} to {self.highest:,}"
        if self.keyword == "data_size":
            return f"a decimal number of at least 0 and below 10^{DIGITS - 3}"
        return f"a whole number of at least {self.lowest} and at most {DIGITS} digits"


FIELDS = (
    Field("id", 0),
    Field("subtime", 0),
    Field("delay", 1, LONGEST),
    Field("walltime", 1, LONGEST),
    Field("cores", 1, MOST_PROCESSORS),
    Field(USER, UNKNOWN, pattern=rb"\S+"),
    Field("data", 0, LAST_FILE),
    Field("data_size", 0, pattern=rb"\d{1,%d}(?:\.\d*)?" % (DIGITS - 3)),
    Field("workload", RUNNING, AFTER),
    Field("start_time_from_history", UNKNOWN),
    Field("start_node_from_history", 0),
)

_WRITTEN = {"job_id", "submit", "runtime", "requested_time", "processors", "user", "stated_time"}
_ANNOTATIONS = frozenset({"file", "file_size", "category", "history_start", "history_node"})
_WRITTEN |= _ANNOTATIONS
_LINE = re.compile(
    rb"\{\s+%b\s+\}"
    % rb"\s+".join(rb"%b:\s+(%b)" % (field.keyword.encode(), field.pattern) for field in FIELDS)
)
_WORDS = 2 + 2 * len(FIELDS)


def read_rackham(path: str | Path) -> Trace:
    """Read a raw trace in the format of Gonthier et al., plain or gzipped."""
    path = Path(path)
    data, sha256 = read_bytes(path)
    data = data.removeprefix(BYTE_ORDER_MARK)
    rows = _rows(data, path)
    if not rows:
        raise InputError("no jobs; expected one on each line", file=path)
    words = dict(zip((field.keyword for field in FIELDS), zip(*rows)))
    users, sizes = _users(words.pop(USER)), words.pop("data_size")
    columns = {keyword: np.array([*map(int, column)]) for keyword, column in words.items()}
    columns["data_size"] = np.array([round(float(size) * MB_PER_GB) for size in sizes])
    columns[USER] = users
    if mistake := _first_mistake(columns):
        row, keyword, text = mistake
        filled = (number for number, line in enumerate(BytesIO(data), start=1) if line.strip())
        line = next(islice(filled, row, None))
        raise InputError(text, file=path, line=line, field=keyword)
    elapsed = _elapsed(columns)
    file = np.where(columns["data"] > 0, columns["data"], UNKNOWN)
    annotations = {
        "file": file,
        "file_size": np.where(file > 0, columns["data_size"], 0),
        "category": columns["workload"],
        "history_start": columns["start_time_from_history"],
        "history_node": columns["start_node_from_history"] - 1,
    }
    for name in ("history_start", "history_node"):
        if (annotations[name] == UNKNOWN).all():
            del annotations[name]
    return Trace(
        job_id=columns["id"],
        submit=columns["subtime"],
        runtime=np.maximum(columns["delay"] - elapsed, 1),
        requested_time=np.maximum(columns["walltime"] - elapsed, 1),
        processors=columns["cores"],
        stated_time=columns["walltime"],
        user=columns[USER],
        name=stem(path),
        path=path,
        sha256=sha256,
        oddities=_oddities(columns, elapsed),
        annotations=annotations,
        limits_hold=True,
    )


def _encode(trace: Trace, path: Path) -> bytes:
    if not {"file", "file_size"} <= trace.annotations.keys():
        wrong = "the jobs have no input files, which this format requires"
        expected = "`optsched trace annotate files TRACE` infers them"
        raise InputError(f"{wrong}; {expected}", file=path)
    if not trace.limits_hold and (trace.runtime > trace.requested_time).any():
        expected = "expected a cleaned trace"
        raise InputError(f"jobs run longer than requested and would be cut; {expected}", file=path)
    columns = _stated(trace, path)
    if mistake := _first_mistake(columns):
        row, keyword, text = mistake
        raise InputError(f"the job in row {row + 1}: {text}", file=path, field=keyword)
    texts: dict[str, Sequence[Any]] = {name: column.tolist() for name, column in columns.items()}
    texts["data_size"] = [
        f"{size // MB_PER_GB}.{size % MB_PER_GB:03d}000" for size in texts["data_size"]
    ]
    template = " ".join(f"{field.keyword}: %s" for field in FIELDS)
    jobs = zip(*(texts[field.keyword] for field in FIELDS))
    text = "".join(f"{{ {template % job} }}\n" for job in jobs)
    say_left_out(trace, "this format", _WRITTEN)
    return text.encode()


@readers.register("rackham")
class RackhamWorkload(TraceFormat):
    """Workloads of Gonthier et al. 2024."""

    suffixes = (".rackham",)
    read = staticmethod(read_rackham)
    annotations = _ANNOTATIONS
    encode = staticmethod(_encode)

    @staticmethod
    def recognizes(first_bytes: bytes, path: Path) -> bool:
        """Return whether the text begins with ``{ id:``."""
        return re.match(rb"\s*\{\s+id:", first_bytes.removeprefix(BYTE_ORDER_MARK)) is not None

    @staticmethod
    def line_of(path: Path, job_id: int) -> int | None:
        """Return the line of a job."""
        word = str(job_id).encode()
        for number, line in enumerate(BytesIO(read_bytes(path)[0]), start=1):
            if (match := _LINE.fullmatch(line.strip())) and match[1] == word:
                return number
        return None


def _rows(data: bytes, path: Path) -> list[tuple[bytes, ...]]:
    """Return the values of each line that is not empty, as words."""
    rows = []
    for number, line in enumerate(BytesIO(data), start=1):
        if match := _LINE.fullmatch(line.strip()):
            rows.append(match.groups())
        elif line.strip():
            _refuse(line.split(), path, number)
    return rows


def _refuse(words: Sequence[bytes], path: Path, line: int) -> NoReturn:
    if len(words) != _WORDS:
        expected = f"expected {_WORDS}, from '{{ id:' to '}}'"
        raise InputError(f"{len(words)} words; {expected}", file=path, line=line)
    places = (0, *range(1, _WORDS - 1, 2), _WORDS - 1)
    frame = ("{", *(f"{field.keyword}:" for field in FIELDS), "}")
    checks = [
        (f"word {place + 1}", re.escape(word).encode(), f"'{word}'", words[place])
        for place, word in zip(places, frame)
    ]
    checks += [
        (field.keyword, field.pattern, field.expected, word)
        for field, word in zip(FIELDS, words[2::2])
    ]
    refuse_word(checks, path, line)


def _users(words: Sequence[bytes]) -> Ints:
    """Return the users as numbers: their names if all are numbers, else in order of appearance."""
    if all(re.fullmatch(rb"-1|\d{1,%d}" % DIGITS, word) for word in set(words)):
        return np.array([*map(int, words)])
    return numbered(np.array(words, dtype=object))


def _start(columns: Mapping[str, Ints]) -> int:
    """Return the start of the simulation: the submission of the first job of category 0."""
    return int(columns["subtime"][columns["workload"] == BEFORE].min())


def _elapsed(columns: Mapping[str, Ints]) -> Ints:
    """Return the seconds that each job has run when the simulation starts."""
    running = columns["workload"] == RUNNING
    elapsed = np.zeros(len(running), dtype=np.int64)
    if running.any():
        elapsed[running] = _start(columns) - columns["start_time_from_history"][running]
    return elapsed


def _first_mistake(columns: Mapping[str, Ints]) -> tuple[int, str, str] | None:
    """Return the row, the keyword and the text of the first mistake; None without mistakes."""
    checks: list[tuple[str, Flags, str]] = []
    for field in FIELDS:
        column = columns[field.keyword]
        wrong = (column < field.lowest) | (column > field.highest)
        checks.append((field.keyword, wrong, f"expected {field.expected}"))
    checks.append(("id", differs(columns["id"]), "another job has that number"))
    sized = np.where(columns["data"] > 0, columns["data_size"], 0)
    expected = "expected the size that the file has in other jobs, in GB"
    checks.append(("data_size", differs(columns["data"], sized), expected))
    running = columns["workload"] == RUNNING
    if not (columns["workload"] == BEFORE).any():
        expected = "expected a job of workload 0 too, with which the simulation starts"
        checks.append(("workload", running, expected))
    elif running.any():
        began, start = columns["start_time_from_history"], _start(columns)
        late = running & (columns["subtime"] >= start)
        expected = f"expected a time before {start} for a running job, the start of the simulation"
        checks.append(("subtime", late, expected))
        expected = f"expected 0 to {start} for a running job, the start of the simulation"
        outside = running & ((began < 0) | (began > start))
        checks.append(("start_time_from_history", outside, expected))
        nowhere = running & (columns["start_node_from_history"] < 1)
        checks.append(("start_node_from_history", nowhere, "expected a node for a running job"))
    for keyword, wrong, expected in checks:
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            value = columns[keyword][row]
            found = value / MB_PER_GB if keyword == "data_size" else value
            return row, keyword, f"{found}; {expected}"
    return None


def differs(keys: Ints, values: Ints | None = None) -> Flags:
    """Return a mask of the rows whose value differs from that of an earlier row with the same key.

    Without values, every repeated key differs.
    """
    if values is None:
        values = np.arange(len(keys))
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    different: Flags = values != values[first[group]]
    return different


def _oddities(columns: dict[str, Ints], elapsed: Ints) -> dict[str, int]:
    delay, walltime = columns["delay"], columns["walltime"]
    running = columns["workload"] == RUNNING
    over = running & (np.minimum(delay, walltime) <= elapsed)
    odd = {
        "jobs with a run time above their walltime, at which they end": delay > walltime,
        "running jobs, whose times are those that remain at the start": running,
        "running jobs that were over by the start, and have 1 s left": over,
        "sizes of no file, left out": (columns["data"] == 0) & (columns["data_size"] > 0),
        "jobs submitted before the job above": np.diff(columns["subtime"]) < 0,
    }
    return {what: int(which.sum()) for what, which in odd.items()}


def _stated(trace: Trace, path: Path) -> dict[str, Ints]:
    """Return the columns of the file as whole numbers, with the history of running jobs."""
    unknown = np.broadcast_to(np.int64(UNKNOWN), len(trace))
    evaluated = np.broadcast_to(np.int64(EVALUATED), len(trace))
    given = trace.annotations
    columns = {
        "id": trace.job_id,
        "subtime": trace.submit,
        "delay": trace.runtime,
        "walltime": trace.requested_time,
        "cores": trace.processors,
        USER: trace.user,
        "data": np.where(given["file"] == UNKNOWN, 0, given["file"]),
        "data_size": given["file_size"],
        "workload": given.get("category", evaluated),
        "start_time_from_history": given.get("history_start", unknown),
        "start_node_from_history": given.get("history_node", unknown) + 1,
    }
    whole: dict[str, Ints] = {}
    for keyword, column in columns.items():
        whole[keyword] = column.astype(np.int64)
        if (whole[keyword] != column).any():
            row = int(np.flatnonzero(whole[keyword] != column)[0])
            text = f"the job in row {row + 1}: {column[row]}; expected a whole number"
            raise InputError(text, file=path, field=keyword)
    if (whole["workload"] == BEFORE).any():
        elapsed = np.maximum(_elapsed(whole), 0)
        whole["delay"], whole["walltime"] = whole["delay"] + elapsed, whole["walltime"] + elapsed
    return whole


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


def _checks(trace: Trace) -> Iterator[tuple[str, Flags, str]]:
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
