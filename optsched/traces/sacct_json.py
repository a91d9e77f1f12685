"""Traces as ``sacct --json`` writes them.

File format: ``docs/formats/sacct.md``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from optsched.binary_files import sha256_of
from optsched.numbers import LARGEST
from optsched.registry import readers
from optsched.sites.slurm_json import read_dump, text
from optsched.sites.slurm_record import RecordFields
from optsched.traces.formats import TraceFormat
from optsched.traces.sacct import (
    NUMBERLESS,
    PARTS,
    SEVERAL_TASKS,
    SHARES,
    STEPS,
    asks_shares,
    gpus_of,
    trace_of_records,
)
from optsched.traces.trace import UNKNOWN, Trace

LICENCE = "license/"
"""Start of the names of licences among trackable resources."""

_EXCLUSIVE = {"NODE": 1, "TOPO": 1, "NO": 0, "USER": 0, "MCS": 0}


class _Job(NamedTuple):
    """A record: `numbers`, limit and `texts` as for `trace_of_records`."""

    numbers: dict[str, int]
    limit: float
    texts: dict[str, str]
    several_tasks: bool
    part: bool


def read_sacct_json(path: str | Path) -> Trace:
    """Read a raw trace from what ``sacct --json`` wrote, plain or gzipped.

    Steps of jobs are left out, and counted.
    """
    path = Path(path)
    dump = read_dump(path, "jobs", written_by="sacct")
    every = [RecordFields(dump, place) for place in range(len(dump.records))]
    records = [record for record in every if record.count("job_id")]
    jobs = [_job(record) for record in records]
    names = jobs[0] if jobs else _Job({}, 0, {}, False, False)
    return trace_of_records(
        [str(record.count("job_id")) for record in records],
        {name: np.array([job.numbers[name] for job in jobs]) for name in names.numbers},
        np.array([job.limit for job in jobs]),
        {name: [job.texts[name] for job in jobs] for name in names.texts},
        clusters={record.text("cluster") for record in records} - {""},
        path=path,
        sha256=sha256_of(path),
        oddities={
            f"errors that Slurm reports beside the records ({dump.errors})": bool(dump.errors),
            NUMBERLESS: len(every) - len(records),
            STEPS: sum(_steps(record) for record in records),
            SEVERAL_TASKS: sum(job.several_tasks for job in jobs),
            PARTS: sum(job.part for job in jobs),
            SHARES: sum(asks_shares(_resources(each, "tres.requested")) for each in records),
        },
    )


@readers.register("sacct-json")
class SacctJson(TraceFormat):
    """Traces as ``sacct --json`` writes them."""

    suffixes = (".json",)
    read = staticmethod(read_sacct_json)

    @staticmethod
    def recognizes(first_bytes: bytes, path: Path) -> bool:
        """Return whether the text begins as a JSON object with fields that Slurm writes."""
        return re.match(rb'\s*\{\s*"', first_bytes) is not None and any(
            name in first_bytes for name in (b'"job_id"', b'"data_parser', b'"openapi/')
        )


def _job(record: RecordFields) -> _Job:
    got, asked = _resources(record, "tres.allocated"), _resources(record, "tres.requested")
    gpus, gpu_type = gpus_of(asked)
    array, task = record.count("array.job_id"), record.number("array.task_id")
    cores = asked.get("cpu") or record.count("required.CPUs") or UNKNOWN
    per_core, per_node = _memory(record, asked)
    limit = record.number("time.limit")
    exclusive = record.text("exclusive")
    numbers = {
        **{name: _instant(record, f"time.{name}") for name in ("eligible", "start", "end")},
        "submit": _instant(record, "time.submission"),
        "elapsed": _known(record, "time.elapsed"),
        "suspended": _known(record, "time.suspended"),
        "processors": got.get("cpu", UNKNOWN if record.count("allocation_nodes") else 0),
        "requested_processors": cores,
        "total_memory": asked.get("mem", UNKNOWN),
        "memory_per_core": per_core,
        "memory_per_node": per_node,
        "nodes": asked.get("node", UNKNOWN),
        "allocated_nodes": got.get("node", UNKNOWN),
        "gpus": gpus,
        "exclusive": _EXCLUSIVE.get(exclusive, UNKNOWN),
        "priority": _known(record, "priority"),
        "array_job": array or UNKNOWN,
        "array_task": int(task) if array and task not in (None, math.inf) else UNKNOWN,
    }
    licences = {
        name.removeprefix(LICENCE): count
        for name, count in asked.items()
        if name.startswith(LICENCE)
    }
    texts = {
        "user_name": record.text("user") or record.text("association.user"),
        "account": record.text("account"),
        "qos": record.text("qos"),
        "partition_name": record.text("partition"),
        "job_name": record.text("name"),
        "gpu_type": gpu_type,
        "features": record.text("constraints"),
        "licences": record.text("licenses")
        or ",".join(f"{name}:{count}" for name, count in licences.items()),
        "reservation": text(record.value("reservation.name")),  # 0 in version 38
        "state": (record.words("state.current") or ("",))[0],
        "node_list": record.text("nodes"),
    }
    several_tasks = bool(record.text("array.task"))
    return _Job(
        numbers,
        UNKNOWN if limit is None else 60 * limit,
        texts,
        several_tasks,
        record.count("het.job_id") > 0,
    )


def _steps(record: RecordFields) -> int:
    """Return the number of steps of a job."""
    steps = record.value("steps") or []
    if not isinstance(steps, list):
        raise record.wrong("steps", "a list")
    return len(steps)


def _instant(record: RecordFields, field: str) -> int:
    return record.instant(field) or UNKNOWN


def _known(record: RecordFields, field: str) -> int:
    """Return a whole number, -1 for no value."""
    return UNKNOWN if record.number(field) in (None, math.inf) else record.count(field)


def _resources(record: RecordFields, field: str) -> dict[str, int]:
    """Return trackable resources by name; memory in MB."""
    entries = record.value(field)
    expected = "a list of objects with type, name and count"
    if entries is None:
        return {}
    if not isinstance(entries, list):
        raise record.wrong(field, expected)
    found: dict[str, int] = {}
    for entry in entries:
        if not isinstance(entry, Mapping) or not isinstance(entry.get("type"), str):
            raise record.wrong(field, expected)
        kind, name, count = entry["type"], entry.get("name"), entry.get("count")
        if kind not in ("cpu", "mem", "node", "gres", "license"):
            continue  # the energy, for instance, may be -2
        if type(count) is not int or not 0 <= count <= LARGEST:
            raise record.wrong(field, expected)
        found[f"{kind}/{name}" if name else kind] = count
    return found


def _memory(record: RecordFields, asked: Mapping[str, int]) -> tuple[int, int]:
    """Return the memory in MB for each core and on each node, -1 where it is not stated.

    The amount of version 38 is for each of those of which there are as many as make the total.
    0 on each node is all memory of the nodes, which is not known here.
    """
    if record.value("required.memory") is None:
        per_core = _known(record, "required.memory_per_cpu")
        return per_core, _known(record, "required.memory_per_node") or UNKNOWN
    amount, total = record.count("required.memory"), asked.get("mem")
    if amount and amount * asked.get("cpu", 0) == total:
        return amount, UNKNOWN
    if amount and amount * asked.get("node", 0) == total:
        return UNKNOWN, amount
    return UNKNOWN, UNKNOWN
