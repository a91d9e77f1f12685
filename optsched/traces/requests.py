"""What a job asks for beyond processors and time: columns of numbers and of texts by fixed names.

Columns of numbers are annotations of a trace, columns of texts are in `Trace.texts`. Any trace may
lack any of them. Page: ``docs/formats/requests.md``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.traces.trace import UNKNOWN, Trace


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


def numbered(texts: NDArray[np.object_]) -> NDArray[np.int64]:
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
