"""Jobs that Slurm accounted, as a trace: what both forms of ``sacct`` share, and the JSON.

Page: ``docs/formats/sacct.md``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from optsched.arrays import Floats, Ints
from optsched.errors import InputError, NoJobsError
from optsched.files import sha256_of
from optsched.numbers import LARGEST
from optsched.registry import readers
from optsched.sites.slurm_files import RecordFields, read_dump, text
from optsched.sites.slurm_notation import SHARED
from optsched.traces.formats import TraceFormat, stem
from optsched.traces.requests import QUANTITIES, TEXT_OF, numbered
from optsched.traces.swf import unusual
from optsched.traces.tables import shared_texts, waits
from optsched.traces.trace import UNKNOWN, Header, Trace

GPU = "gres/gpu"
"""Trackable resource of the GPUs of a job; those of one type have ``:`` and the type behind."""

STATUS = {"COMPLETED": 1, "CANCELLED": 5} | dict.fromkeys(
    (
        *("FAILED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY"),
        *("DEADLINE", "BOOT_FAIL", "LAUNCH_FAILED", "PREEMPTED", "REQUEUED", "REVOKED"),
    ),
    0,
)
"""Status in the Standard Workload Format of the states in which a job has ended."""

TIMES = ("submit", "eligible", "start", "end", "elapsed", "suspended")
"""Times of a record in seconds: instants since 1970, and how long a job ran and was suspended."""

AMOUNTS = ("processors", "requested_processors", "total_memory")
"""What a record says of the whole job: processors that it got and asked for, memory in MB."""

NUMBERLESS = "records without the number of a job, left out"
STEPS = "steps of jobs, left out"
SEVERAL_TASKS = "records of several waiting tasks of an array, each one job here"
PARTS = "parts of heterogeneous jobs, each one job here"
SHARES = "jobs that ask for shares of GPUs (mps, shard), which are not read"
"""What both readers count."""


def trace_of_records(
    # Job of each record: its number, or for instance ``26_3`` for a task of an array
    ids: Sequence[str],
    # `TIMES`, `AMOUNTS` and `optsched.traces.requests.QUANTITIES`; -1 is unknown, the highest
    # number is 2^53, shape (records,)
    numbers: Mapping[str, Ints],
    # Time limits in seconds; infinity is none, -1 unknown, shape (records,)
    limits: Floats,
    texts: Mapping[str, Sequence[str]],  # columns of `optsched.traces.requests.TEXTS`
    *,
    clusters: set[str],
    # Fields of the trace
    path: Path,
    sha256: str,
    oddities: Mapping[str, int],
) -> Trace:
    """Return the raw trace of accounted jobs, in the order of their records."""
    if not ids:
        raise NoJobsError("no jobs; expected a record of each", file=path)
    if len(clusters) > 1:
        named = ", ".join(sorted(clusters)[:3])
        raise InputError(f"jobs of clusters {named}; expected those of one", file=path)
    oddities = dict(oddities)
    # Slurm tells the runs of a requeued job, and jobs of one number, by the time of submission
    last = {key: row for row, key in enumerate(zip(ids, numbers["submit"].tolist()))}
    rows = sorted(last.values())
    what = "records of a job with a later record of the same submission, left out"
    oddities[what] = len(ids) - len(rows)
    ids = [ids[row] for row in rows]
    found: dict[str, Any] = {name: column[rows] for name, column in numbers.items()}
    _add_times(found, oddities)
    _add_memory(found, oddities)
    endless = np.isinf(limits[rows])
    found["requested_time"] = np.where(endless, UNKNOWN, limits[rows]).astype(np.int64)
    what = "jobs without a limit of their own (UNLIMITED, Partition_Limit)"
    oddities[what] = int(endless.sum())
    kept = {name: shared_texts([column[row] for row in rows]) for name, column in texts.items()}
    if "state" in kept:
        found["status"] = np.array([STATUS.get(state, UNKNOWN) for state in kept["state"].tolist()])
    kept = {name: column for name, column in kept.items() if any(column.tolist())}
    found |= {column: numbered(kept[name]) for column, name in TEXT_OF.items() if name in kept}
    label = None
    if all(job.isdigit() for job in ids):
        found["job_id"] = np.array([int(job) for job in ids])
    else:
        label = np.array(ids)
        found["job_id"] = np.arange(1, 1 + len(ids))
        oddities["jobs numbered in the order of the file, ids kept as labels"] = len(ids)
    submitted = found["submit"][found["submit"] != UNKNOWN]
    origin = int(submitted.min()) if len(submitted) else 0
    for name in ("submit", "eligible"):
        found[name] = np.where(found[name] == UNKNOWN, UNKNOWN, found[name] - origin)
    if (found["gpus"] <= 0).all():
        del found["gpus"]  # Slurm counts them only where it is configured to
    annotations = {name: found.pop(name) for name in QUANTITIES if name in found}
    header = [("Computer", cluster) for cluster in clusters]
    return Trace(
        **found,
        name=stem(path),
        path=path,
        sha256=sha256,
        header=Header((*header, ("UnixStartTime", str(origin)))),
        oddities=unusual(found) | oddities,
        label=label,
        annotations={name: one for name, one in annotations.items() if (one != UNKNOWN).any()},
        texts=kept,
    )


def gpus_of(resources: Mapping[str, int]) -> tuple[int, str]:
    """Return the number and the types of the GPUs among trackable resources.

    >>> gpus_of({"cpu": 4, "gres/gpu": 2, "gres/gpu:a100": 2}), gpus_of({"cpu": 4})
    ((2, 'a100'), (0, ''))
    """
    typed = {name: count for name, count in resources.items() if name.startswith(f"{GPU}:")}
    types = sorted(name.removeprefix(f"{GPU}:") for name in typed)
    return resources.get(GPU, sum(typed.values())), ",".join(types)


def asks_shares(resources: Mapping[str, int]) -> bool:
    """Return whether there are shares of GPUs among trackable resources.

    >>> asks_shares({"cpu": 1, "gres/shard:l40": 3}), asks_shares({"gres/gpu": 1})
    (True, False)
    """
    return any(name.split(":")[0].removeprefix("gres/") in SHARED for name in resources)


def _add_times(found: dict[str, Ints], oddities: dict[str, int]) -> None:
    """Replace the times of a record by wait and run time, and count those that are unknown."""
    start, end = found.pop("start"), found.pop("end")
    elapsed, suspended = found.pop("elapsed"), found.pop("suspended")
    never = (start == UNKNOWN) | (found["processors"] == 0)
    ended = end != UNKNOWN
    start = np.where(never, UNKNOWN, start)
    found["allocated_nodes"] = np.where(never, UNKNOWN, found["allocated_nodes"])
    found["wait"], early = waits(found["submit"], start)
    lasted = end - start - np.maximum(suspended, 0)
    runtime = np.where(elapsed == UNKNOWN, lasted, elapsed)
    backwards = ~never & ended & (runtime < 0)
    found["runtime"] = np.where(never | ~ended | backwards, UNKNOWN, runtime)
    unready = (found["eligible"] != UNKNOWN) & (found["eligible"] < found["submit"])
    found["eligible"] = np.where(unready, UNKNOWN, found["eligible"])
    for what, jobs in (
        ("ended without having started, whose run time is unknown", never & ended),
        ("had not started, whose run time is unknown", never & ~ended),
        ("had not ended, whose run time is unknown", ~never & ~ended),
        ("ended before they started, whose run time is unknown", backwards),
        ("were suspended, whose run time is without that time", suspended > 0),
        ("were eligible before they were submitted, whose eligible time is unknown", unready),
    ):
        oddities[f"jobs that {what}"] = int(jobs.sum())
    oddities["jobs that started before they were submitted, whose wait is unknown"] = early


def _add_memory(found: dict[str, Ints], oddities: dict[str, int]) -> None:
    """Divide a total of memory by the cores, where it is not known for each core or node."""
    total, cores = found.pop("total_memory"), found["requested_processors"]
    divided = (found["memory_per_core"] == UNKNOWN) & (found["memory_per_node"] == UNKNOWN)
    divided &= (total > 0) & (cores > 0)
    shares = -(-total // np.maximum(cores, 1))
    found["memory_per_core"] = np.where(divided, shares, found["memory_per_core"])
    what = "jobs whose memory is stated for the whole job, divided here by its cores"
    oddities[what] = int(divided.sum())


LICENCE = "license/"  # start of the names of licences among trackable resources

_INSTANTS = {"eligible": "eligible", "start": "start", "end": "end", "submit": "submission"}
_EXCLUSIVE = {"NODE": 1, "TOPO": 1, "NO": 0, "USER": 0, "MCS": 0}


def read_sacct_json(path: str | Path) -> Trace:
    """Read a raw trace from what ``sacct --json`` wrote, plain or gzipped."""
    path = Path(path)
    dump = read_dump(path, "jobs", written_by="sacct")
    every = dump.fields
    records = [record for record in every if record.count("job_id")]
    numbers, limits, texts = [*zip(*map(_job, records))] or ((), (), ())
    return trace_of_records(
        [str(record.count("job_id")) for record in records],
        {name: np.array([job[name] for job in numbers]) for name in (*numbers, {})[0]},
        np.array(limits),
        {name: [job[name] for job in texts] for name in (*texts, {})[0]},
        clusters={record.text("cluster") for record in records} - {""},
        path=path,
        sha256=sha256_of(path),
        oddities={
            f"errors that Slurm reports beside the records ({dump.errors})": bool(dump.errors),
            NUMBERLESS: len(every) - len(records),
            STEPS: sum(_steps(record) for record in records),
            SEVERAL_TASKS: sum(bool(record.text("array.task")) for record in records),
            PARTS: sum(record.count("het.job_id") > 0 for record in records),
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


def _job(record: RecordFields) -> tuple[dict[str, int], float, dict[str, str]]:
    """Return numbers, limit and texts of a record, as `trace_of_records` takes them."""
    got, asked = _resources(record, "tres.allocated"), _resources(record, "tres.requested")
    gpus, gpu_type = gpus_of(asked)
    array, task = record.count("array.job_id"), record.number("array.task_id")
    cores = asked.get("cpu") or record.count("required.CPUs") or UNKNOWN
    per_core, per_node = _memory(record, asked)
    limit = record.number("time.limit")
    exclusive = record.text("exclusive")
    numbers = {
        **{name: record.instant(f"time.{field}") or UNKNOWN for name, field in _INSTANTS.items()},
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
    return numbers, UNKNOWN if limit is None else 60 * limit, texts


def _steps(record: RecordFields) -> int:
    steps = record.value("steps") or []
    if not isinstance(steps, list):
        raise record.wrong("steps", "a list")
    return len(steps)


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
    """Return the memory in MB for each core and on each node, -1 where it is not stated."""
    if record.value("required.memory") is None:
        per_core = _known(record, "required.memory_per_cpu")
        # 0 on each node is all memory of the nodes, which is not known here
        return per_core, _known(record, "required.memory_per_node") or UNKNOWN
    # version 38: for each of those of which there are as many as make the total
    amount, total = record.count("required.memory"), asked.get("mem")
    if amount and amount * asked.get("cpu", 0) == total:
        return amount, UNKNOWN
    if amount and amount * asked.get("node", 0) == total:
        return UNKNOWN, amount
    return UNKNOWN, UNKNOWN
