"""Tables of jobs on pages: the columns that say which job it is and whose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched.errors import one_line
from optsched.report.page import Cell, Value, duration

JOB = {
    "job_id": "int64",
    "submission_time": "float64",
    "requested_number_of_resources": "int64",
    "requested_time": "float64",
    "run_time": "float64",
    "user": "int64",
}
"""Columns of the table of jobs that are the same in all runs of a trace."""

OWNERS = {"user_name": "user", "account": "account", "qos": "QOS", "partition_name": "partition"}
"""Labels of the columns of names that the table of jobs has if the trace states any."""

NAMES = dict.fromkeys(OWNERS, "str")


def job_rows(
    jobs: Mapping[str, NDArray[Any]], shown: NDArray[np.int64]
) -> tuple[list[str], list[list[Value]]]:
    """Return labels and rows of the columns that say which jobs are shown.

    A user without a name is shown by number; accounts, QOS and partitions are shown if any of the
    jobs has one.

    `jobs`: the columns `JOB`, and those of `NAMES` that there are, shape (jobs,); `shown`: rows of
    the jobs to show, shape (rows,).
    """
    own = {name: jobs[name][shown].tolist() for name in (*JOB, *NAMES) if name in jobs}
    users = own.pop("user_name", [""] * len(shown))
    named = [name for name in NAMES if any(own.get(name, ()))]
    labels = ["job", "user", *(OWNERS[name] for name in named)]
    labels += ["submitted", "processors", "requested time", "run time"]
    begin = jobs["submission_time"].min()
    rows: list[list[Value]] = [
        [
            Cell(str(own["job_id"][row]), own["job_id"][row]),
            _owner(user, own["user"][row]),
            *(one_line(own[name][row] or "") or None for name in named),
            duration(own["submission_time"][row] - begin),
            own["requested_number_of_resources"][row],
            duration(own["requested_time"][row]),
            duration(own["run_time"][row]),
        ]
        for row, user in enumerate(users)
    ]
    return labels, rows


def user_cell(jobs: Mapping[str, NDArray[Any]], job: int) -> Value:
    """Return the user of a job, by name or number."""
    names = jobs.get("user_name")
    return _owner(None if names is None else names[job], int(jobs["user"][job]))


def _owner(name: str | None, number: int) -> Value:
    return one_line(name or "") or (Cell(str(number), number) if number >= 0 else None)
