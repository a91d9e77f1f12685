"""Traces as ``sacct -P`` writes them: a line of field names, then a line per record.

Whatever separates the names separates the fields; constraints and names of jobs may hold ``|``.

File format: ``docs/formats/sacct.md``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from optsched.arrays import Ints
from optsched.errors import InputError
from optsched.files import read_bytes
from optsched.numbers import LARGEST
from optsched.registry import readers
from optsched.sites.parts import repeated
from optsched.sites.slurm_files import NO_VALUE, UNSET, text
from optsched.sites.slurm_notation import megabytes, seconds, tres
from optsched.text_files import LONGEST_LINE, too_long
from optsched.traces import sacct
from optsched.traces.formats import BYTE_ORDER_MARK, MOST, TraceFormat, check_utf8, shown
from optsched.traces.tables import parsed_csv
from optsched.traces.trace import UNKNOWN, Trace

if TYPE_CHECKING:
    import pyarrow as pa

JOBS = ("JobID", "JobIDRaw")  # fields that identify a job, one of which is required

REQUIRED = ("Submit", "Start", "End")

SIZES = ("AllocCPUS", "NCPUS", "AllocTRES", "ReqCPUS", "ReqTRES")
"""Fields that state processors, one of which is required."""

TEXTS = {
    "user_name": "User",
    "account": "Account",
    "qos": "QOS",
    "partition_name": "Partition",
    "job_name": "JobName",
    "features": "Constraints",
    "licences": "Licenses",
    "reservation": "Reservation",
    "node_list": "NodeList",
}
"""Field of each column of texts that is taken as it is."""

NOWHERE = "None assigned"  # nodes of a job that has not started

_OTHERS = (
    *("Eligible", "Elapsed", "ElapsedRaw", "Suspended", "Timelimit", "TimelimitRaw", "State"),
    *("NNodes", "AllocNodes", "ReqMem", "Priority", "Cluster"),
)
_KNOWN = {*JOBS, *REQUIRED, *SIZES, *TEXTS.values(), *_OTHERS}
_BY_SMALL = {name.lower(): name for name in _KNOWN}
_JOB = re.compile(r"([0-9]{1,15})(?:_(?:([0-9]{1,15})|(\[.*\])))?(\+[0-9]+)?")
_NAMES = re.compile(r"\w+([^\w\s]{2,9}|[^\w\s,.]|\t)\w+(?:\1\w*)*")
_WIDTH = re.compile(r"%-?[0-9]+(?!\w)")  # the width of a field of ``sacct -o JobID%30``
_SEPARATOR = "\x1f"  # what stands for a delimiter of several signs while lines are split

_WHOLE = re.compile(r"[0-9]{1,15}")
_LOCAL = re.compile(r"[0-9-]+T[0-9:]+")
_READ = re.compile(r"(cpu|mem|node|gres/(gpu|mps|shard)(:[^=]*)?)=")

_Value = TypeVar("_Value")


class _Job(NamedTuple):
    """Array and task of a job, and whether it is several tasks or a part of a job."""

    array: int = UNKNOWN
    task: int = UNKNOWN
    several: bool = False
    part: bool = False


class _Memory(NamedTuple):
    """Memory in MB of the whole job, for each core, on each node."""

    total: int = UNKNOWN
    per_core: int = UNKNOWN
    per_node: int = UNKNOWN


def read_sacct_text(path: str | Path) -> Trace:
    """Read a raw trace from what ``sacct -P`` wrote, plain or gzipped."""
    path = Path(path)
    data, sha256 = read_bytes(path, MOST)
    data = data.removeprefix(BYTE_ORDER_MARK)
    if b"\n" not in data[: LONGEST_LINE + 1] and len(data) > LONGEST_LINE:
        raise too_long(path, 1)
    check_utf8(data, path, "what sacct -P writes")
    return _trace(_Table(data, path), sha256)


@readers.register("sacct-text")
class SacctText(TraceFormat):
    """Traces as ``sacct -P`` writes them."""

    suffixes = (".sacct",)
    read = staticmethod(read_sacct_text)

    @staticmethod
    def recognizes(first_bytes: bytes, path: Path) -> bool:
        """Return whether the first line names a job or all times, with a separator."""
        line = _first_line(first_bytes.removeprefix(BYTE_ORDER_MARK))
        found = _NAMES.fullmatch(_WIDTH.sub("", line))
        names = set() if found is None else {*map(_name, line.split(found[1]))}
        return not names.isdisjoint(JOBS) or names >= {*REQUIRED}


class _Table:
    """Lines of records as columns of texts, without steps and further lines of names."""

    def __init__(self, data: bytes, path: Path) -> None:
        self.path = path
        names, separator = _names(data, path)
        others = [name for name in names.values() if name and name not in _KNOWN]
        if len(separator) > 1:
            data = _with_single_signs(data, separator, path)
            separator = _SEPARATOR
        table = _parsed(data, names, separator, path)
        self._columns = {name: table.column(name).combine_chunks() for name in table.column_names}
        self._lines = np.arange(2, 2 + len(table))
        job = next(name for name in JOBS if name in self._columns)
        self.oddities = {
            f"fields that are not read ({', '.join(others)})": len(others),
            "further lines of field names, left out": self._leave_out(job, rf"^(?i:{job})(%|$)"),
            sacct.STEPS: self._leave_out(job, r"\."),
            # a job has a number of 32 bits
            sacct.NUMBERLESS: sum(
                self._leave_out(one, "^(0|[0-9]{16,})?$") for one in JOBS if one in self._columns
            ),
        }

    def __len__(self) -> int:
        return len(self._lines)

    def __contains__(self, field: str) -> bool:
        return field in self._columns

    def column(self, field: str, parse: Callable[[str], _Value], missing: _Value) -> list[_Value]:
        """Return the values that `parse` makes of a field, each different text parsed once."""
        if field not in self:
            return [missing] * len(self)
        encoded = self._columns[field].dictionary_encode()
        places = encoded.indices.to_numpy()
        found = []
        for place, value in enumerate(encoded.dictionary.to_pylist()):
            try:
                found.append(parse(value))
            except InputError as error:
                line = int(self._lines[(places == place).argmax()])
                mistake = error.mistakes[0]
                raise InputError(mistake, file=self.path, line=line, field=field) from None
        return [found[place] for place in places.tolist()]

    def numbers(self, field: str, parse: Callable[[str], int]) -> Ints:
        """Return the whole numbers of a field, -1 where it has no value."""
        parsed = self.column(field, lambda value: _of(parse, value), UNKNOWN)
        return np.array(parsed, dtype=np.int64)

    def _leave_out(self, field: str, pattern: str) -> int:
        """Leave out the lines in which a field matches a pattern, and return their number."""
        import pyarrow.compute as pc

        matching = pc.match_substring_regex(self._columns[field], pattern)
        kept = pc.invert(matching)
        self._columns = {name: column.filter(kept) for name, column in self._columns.items()}
        self._lines = self._lines[kept.to_numpy(zero_copy_only=False)]
        return len(matching) - len(kept.filter(kept))


def _trace(table: _Table, sha256: str) -> Trace:
    count = partial(table.numbers, parse=_count)
    jobs = table.column("JobID", _job, _Job())
    table.numbers("JobIDRaw", _count)
    ids = table.column("JobIDRaw" if "JobIDRaw" in table else "JobID", str, "")
    nothing: dict[str, int] = {}
    got = table.column("AllocTRES", _resources, nothing)
    asked = table.column("ReqTRES", _resources, nothing)
    memory = table.column("ReqMem", _memory, _Memory())
    texts = {name: table.column(field, text, "") for name, field in TEXTS.items() if field in table}
    gpus = [sacct.gpus_of(resources) for resources in asked]
    texts["gpu_type"] = [types for _, types in gpus]
    texts["state"] = table.column("State", lambda state: state.split(" ")[0], "")
    # older Slurm states processors of jobs that were cancelled before they started
    nowhere = table.column("NodeList", lambda nodes: 0 if nodes == NOWHERE else UNKNOWN, UNKNOWN)
    numbers = {
        **{field.lower(): table.numbers(field, _instant) for field in (*REQUIRED, "Eligible")},
        "elapsed": _first(count("ElapsedRaw"), table.numbers("Elapsed", _duration)),
        "suspended": table.numbers("Suspended", _duration),
        "processors": _first(
            np.array(nowhere), count("AllocCPUS"), count("NCPUS"), _amounts(got, "cpu")
        ),
        "requested_processors": _first(count("ReqCPUS"), _amounts(asked, "cpu")),
        "total_memory": _first(_amounts(asked, "mem"), np.array([m.total for m in memory])),
        "memory_per_core": np.array([m.per_core for m in memory]),
        "memory_per_node": np.array([m.per_node for m in memory]),
        "nodes": _amounts(asked, "node"),
        "allocated_nodes": _first(_amounts(got, "node"), count("AllocNodes"), count("NNodes")),
        "gpus": np.array([number for number, _ in gpus]),
        "priority": count("Priority"),
        "array_job": np.array([job.array for job in jobs]),
        "array_task": np.array([job.task for job in jobs]),
    }
    limit = "TimelimitRaw" if "TimelimitRaw" in table else "Timelimit"
    return sacct.trace_of_records(
        ids,
        numbers,
        np.array(table.column(limit, lambda value: _of(seconds, value), UNKNOWN), dtype=float),
        texts,
        clusters={*table.column("Cluster", text, "")} - {""},
        path=table.path,
        sha256=sha256,
        oddities={
            **table.oddities,
            sacct.SEVERAL_TASKS: sum(job.several for job in jobs),
            sacct.PARTS: sum(job.part for job in jobs),
            sacct.SHARES: sum(map(sacct.asks_shares, asked)),
            "jobs whose times name no zone, read as UTC": sum(
                table.column("Submit", lambda time: _LOCAL.fullmatch(time) is not None, False)
            ),
        },
    )


def _first_line(data: bytes) -> str:
    return data.split(b"\n", 1)[0].rstrip(b"\r").decode(errors="replace")


def _name(text: str) -> str:
    """Return the name of a field, whatever its case and without its width."""
    name = _WIDTH.sub("", text)
    return _BY_SMALL.get(name.lower(), name)


def _names(data: bytes, path: Path) -> tuple[dict[str, str], str]:
    """Return the fields by their texts in the first line, and what separates these."""
    line = _first_line(data)
    found = _NAMES.fullmatch(_WIDTH.sub("", line))
    separator = "|" if found is None else found[1]
    texts = line.split(separator)
    names = [_name(text) for text in texts]
    if twice := repeated(name for name in names if name):
        raise InputError("more than one field with this name", file=path, line=1, field=twice)
    missing = [name for name in REQUIRED if name not in names]
    missing += [" or ".join(several) for several in (JOBS, SIZES) if not {*several} & {*names}]
    if missing:
        expected = "expected what sacct -P -o writes with these and other fields"
        raise InputError(f"no field {', '.join(missing)}; {expected}", file=path, line=1)
    return dict(zip(texts, names)), separator


def _with_single_signs(data: bytes, delimiter: str, path: Path) -> bytes:
    """Return the lines with one sign in place of a delimiter of several."""
    signs, sign = delimiter.encode(), _SEPARATOR.encode()
    # a run of signs, of which each part may be the delimiter
    runs = re.finditer(rb"[%b]{%d,}" % (re.escape(signs), len(signs) + 1), data)
    unclear = (run for run in runs if run[0] != signs * (len(run[0]) // len(signs)))
    if found := next(unclear, None):
        line = data.count(b"\n", 0, found.start()) + 1
        expected = f"expected the delimiter {delimiter!r}, once or several times"
        raise InputError(f"{shown(found[0])}; {expected}", file=path, line=line)
    if sign in data:
        raise InputError("holds the control character 31; expected text", file=path)
    return data.replace(signs, sign)


def _parsed(data: bytes, names: dict[str, str], separator: str, path: Path) -> pa.Table:
    """Return the known columns, as texts."""
    import pyarrow as pa

    def wrong_row(row: Any) -> InputError:
        mistake = (
            f"{row.actual_columns} fields; expected {row.expected_columns}, as in line 1; "
            f"perhaps a value holds {separator!r}, or a line break"
        )
        return InputError(mistake, file=path, line=row.number)

    known = {text: name for text, name in names.items() if name in _KNOWN}
    parse = {"delimiter": separator, "quote_char": False}
    convert = {"column_types": dict.fromkeys(known, pa.string()), "include_columns": [*known]}
    table = parsed_csv(data, "what sacct -P writes", path, wrong_row, parse, convert)
    return table.rename_columns([*known.values()])


def _of(parse: Callable[[str], Any], value: str) -> Any:
    """Return the value that `parse` makes of a value, -1 for none."""
    return UNKNOWN if value in UNSET else parse(value)


def _first(*columns: Ints) -> Ints:
    """Return the values of the first column in which they are known."""
    first, *others = columns
    for other in others:
        first = np.where(first == UNKNOWN, other, first)
    return first


def _amounts(resources: list[dict[str, int]], name: str) -> Ints:
    return np.array([each.get(name, UNKNOWN) for each in resources])


def _job(value: str) -> _Job:
    found = _JOB.fullmatch(value)
    if found is None:
        raise InputError(f"{shown(value)}; expected a job such as 26, 26_3 or 26_[4-9]")
    number, task, several, part = found.groups()
    array = UNKNOWN if task is None and several is None else int(number)
    return _Job(array, UNKNOWN if task is None else int(task), several is not None, bool(part))


def _count(value: str) -> int:
    if not _WHOLE.fullmatch(value):
        raise InputError(f"{shown(value)}; expected a whole number from 0")
    return int(value)


def _duration(value: str) -> int:
    return int(seconds(value))


def _instant(value: str) -> int:
    """Return a time in seconds since 1970, -1 for 0, which Slurm writes for none."""
    if _WHOLE.fullmatch(value):
        return int(value) if 0 < int(value) < NO_VALUE else UNKNOWN
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        expected = "expected seconds since 1970, or a time such as 2026-01-31T08:00:00"
        raise InputError(f"{shown(value)}; {expected}") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(int(moment.timestamp()), UNKNOWN)


def _resources(value: str) -> dict[str, int]:
    """Return the trackable resources that are read, by name; memory in MB."""
    # the energy, for instance, may be a number of 20 digits
    found = tres(",".join(part for part in value.split(",") if _READ.match(part)))
    if max(found.values(), default=0) > LARGEST:
        raise InputError(f"{shown(value)}; expected numbers of at most 2^53")
    return found


def _memory(value: str) -> _Memory:
    """Return the memory of 4000M, the whole job, 4000Mc, each core, and 4000Mn, each node."""
    if value in UNSET or "?" in value:  # which Slurm writes for an amount that it does not know
        return _Memory()
    amount = megabytes(value.rstrip("cn"))
    if amount > LARGEST:
        raise InputError(f"{shown(value)}; expected at most 2^53 MB")
    if value.endswith("c"):
        return _Memory(per_core=amount)
    # 0 on each node is all memory of the nodes, which is not known here
    return _Memory(per_node=amount or UNKNOWN) if value.endswith("n") else _Memory(total=amount)
