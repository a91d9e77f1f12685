"""Jobs that Slurm accounted, as a trace: what both forms of ``sacct`` have in common.

Page: ``docs/formats/sacct.md``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched.errors import InputError
from optsched.sites.slurm_amounts import SHARED
from optsched.traces.formats import stem
from optsched.traces.header import Header
from optsched.traces.requests import QUANTITIES, TEXT_OF, numbered
from optsched.traces.swf import unusual
from optsched.traces.tables import shared_texts, waits
from optsched.traces.trace import UNKNOWN, Trace

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

Column = NDArray[np.int64]


def trace_of_records(
    # Job of each record: its number, or for instance ``26_3`` for a task of an array
    ids: Sequence[str],
    # `TIMES`, `AMOUNTS` and `optsched.traces.requests.QUANTITIES`; -1 is unknown, the highest
    # number is 2^53, shape (records,)
    numbers: Mapping[str, Column],
    # Time limits in seconds; infinity is none, -1 unknown, shape (records,)
    limits: NDArray[np.float64],
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
        raise InputError("no jobs; expected a record of each", file=path)
    if len(clusters) > 1:
        named = ", ".join(sorted(clusters)[:3])
        raise InputError(f"jobs of clusters {named}; expected those of one", file=path)
    oddities = dict(oddities)
    rows = _last_records(ids, numbers["submit"])
    oddities["records of a job with a later record of the same submission, left out"] = len(
        ids
    ) - len(rows)
    ids = [ids[row] for row in rows]
    found: dict[str, Any] = {name: column[rows] for name, column in numbers.items()}
    _add_times(found, oddities)
    _add_memory(found, oddities)
    found["requested_time"] = _requested(limits[rows], oddities)
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
        del found["gpus"]  # Slurm counts them only where it was told to
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
        annotations={
            name: column for name, column in annotations.items() if (column != UNKNOWN).any()
        },
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


def _last_records(ids: Sequence[str], submit: Column) -> list[int]:
    """Return the rows of the last record of each submission, in order.

    Slurm tells the runs of a requeued job, and jobs of one number, by the time of submission.
    """
    last = {key: row for row, key in enumerate(zip(ids, submit.tolist()))}
    return sorted(last.values())


def _add_times(found: dict[str, Column], oddities: dict[str, int]) -> None:
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


def _add_memory(found: dict[str, Column], oddities: dict[str, int]) -> None:
    """Divide a total of memory by the cores, where it is not known for each core or node."""
    total, cores = found.pop("total_memory"), found["requested_processors"]
    divided = (found["memory_per_core"] == UNKNOWN) & (found["memory_per_node"] == UNKNOWN)
    divided &= (total > 0) & (cores > 0)
    shares = -(-total // np.maximum(cores, 1))
    found["memory_per_core"] = np.where(divided, shares, found["memory_per_core"])
    what = "jobs whose memory is stated for the whole job, divided here by its cores"
    oddities[what] = int(divided.sum())


def _requested(limits: NDArray[np.float64], oddities: dict[str, int]) -> Column:
    """Return the time limits as requested times."""
    endless = np.isinf(limits)
    what = "jobs without a limit of their own (UNLIMITED, Partition_Limit)"
    oddities[what] = int(endless.sum())
    return np.where(endless, UNKNOWN, limits).astype(np.int64)
