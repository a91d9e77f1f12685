"""Data of a Gantt chart that the reader of a page can zoom: ``templates/gantt.js`` draws it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.errors import one_line
from optsched.files import json_text, write_text
from optsched.folders import CHARTS, Expected, checked, read_object
from optsched.numbers import counted
from optsched.report.style import FILLS, dark

MOST = 10_000
"""Most jobs that start in the period of a chart, and most intervals of processors of these."""

AT_ONCE = 600
"""Most of them that the chart shows before it is zoomed."""

COLUMNS = {"allocated_resources": "str"}
"""Columns of the table of jobs that a chart needs beside those of the page."""


CHART: Expected = {
    "name": str,
    "about": str,
    **dict.fromkeys(("period", "view", "job", "users", "user", "processors", "wait"), list),
    **dict.fromkeys(("begin", "length", "places", "fills", "dark"), list),
}


class Shown(NamedTuple):
    """Period of a chart, and its part in view before it is zoomed.

    Both are in seconds since the first submission.
    """

    period: tuple[float, float]
    view: tuple[float, float]


def chart_data(
    jobs: Mapping[str, NDArray[Any]], most: int = MOST, shown: Shown | None = None
) -> dict[str, Any] | None:
    """Return a period of a run, JSON-able; None if the places of jobs are not on file.

    By default it is the busiest period: that of the most work (processors times time held) by
    length, of all with as many successive starts as `most` allows; the whole run, if it has no
    more. Times are in seconds since the first submission. A job has an entry in each list;
    ``places`` are interval sets.

    `jobs`: columns of the table of jobs: ``job_id``, ``user``, ``submission_time``,
    ``requested_number_of_resources``, ``starting_time``, ``finish_time``, `COLUMNS`, and
    ``user_name`` if the trace has names, shape (jobs,); `most`: most jobs, and most intervals of
    processors, that start in the busiest period; `shown`: another period, and its view.
    """
    if "allocated_resources" not in jobs:
        return None
    rows = np.flatnonzero(np.isfinite(jobs["starting_time"] + jobs["submission_time"]))
    if not len(rows):
        return None
    rows = rows[np.argsort(jobs["starting_time"][rows], kind="stable")]
    zero = np.nanmin(jobs["submission_time"])
    begin, end = jobs["starting_time"][rows] - zero, jobs["finish_time"][rows] - zero
    last = end[np.isfinite(end)].max(initial=begin[-1])
    end = np.where(np.isfinite(end), end, last)  # of jobs that still run
    places = [text or "" for text in jobs["allocated_resources"][rows]]
    intervals = np.array([text.count(" ") + 1 for text in places])
    work = (end - begin) * jobs["requested_number_of_resources"][rows]
    if shown is None:
        period = _busiest(begin, last, intervals, work, most)
        held = (begin < period[1]) & (end >= period[0])
        view = _busiest(begin[held], period[1], intervals[held], work[held], AT_ONCE)
    else:
        period, view = shown
    inside = np.flatnonzero((begin < period[1]) & (end >= period[0]))
    own = rows[inside]
    names = jobs.get("user_name", np.full(len(jobs["user"]), "", dtype=object))[own]
    users = [one_line(name or "") or str(user) for name, user in zip(names, jobs["user"][own])]
    known = {user: place for place, user in enumerate(dict.fromkeys(users))}
    started = int(((begin >= period[0]) & (begin < period[1])).sum())
    which = "The busiest period" if shown is None else "A part of the time"
    part = f"{which}: {started:,} of {counted(len(rows), 'job')}"
    return {
        "about": part if len(inside) < len(rows) else f"All {counted(len(rows), 'job')}",
        "period": _seconds(np.array(period)),
        "view": _seconds(np.array([max(view[0], period[0]), view[1]])),
        "job": jobs["job_id"][own].tolist(),
        "users": [*known],
        "user": [known[user] for user in users],
        "processors": jobs["requested_number_of_resources"][own].tolist(),
        "wait": _seconds(jobs["starting_time"][own] - jobs["submission_time"][own]),
        "begin": _seconds(begin[inside]),
        "length": _seconds((end - begin)[inside]),
        "places": [places[row] for row in inside.tolist()],
        "fills": list(FILLS),
        "dark": [dark(fill) for fill in FILLS],
    }


def write_charts(charts: Sequence[Mapping[str, Any]], folder: Path) -> None:
    """Write the data of charts, which have names, to `CHARTS` in a folder."""
    write_text(folder / CHARTS, json_text({"charts": charts}) + "\n")


def read_charts(folder: Path) -> list[dict[str, Any]]:
    """Return the data of the charts in a folder; none without `CHARTS`."""
    file = folder / CHARTS
    if not file.exists():
        return []
    charts = read_object(file, {"charts": list})["charts"]
    return [checked(chart, CHART, file, "charts") for chart in charts]


def _busiest(
    begin: NDArray[np.float64],
    last: float,
    intervals: NDArray[np.int64],
    work: NDArray[np.float64],
    most: int,
) -> tuple[float, float]:
    """Return the period with the most work by length; all of them start with a job, by time."""
    counts, works = (np.concatenate(([0], np.cumsum(of))) for of in (intervals, work))
    if counts[-1] <= most:
        return float(begin[0]), max(float(last), float(begin[0]) + 1)
    after = np.maximum(np.searchsorted(counts, counts[:-1] + most, side="right") - 1, 1)
    whole = after < len(begin)  # the others are cut off by the end of the run
    first = np.flatnonzero(whole)
    length = np.maximum(begin[after[whole]] - begin[first], 1.0)
    busiest = int(np.argmax((works[after[whole]] - works[first]) / length))
    return float(begin[first[busiest]]), float(begin[after[first[busiest]]])


def _seconds(times: NDArray[np.float64]) -> list[float | int]:
    """Return times to the millisecond, whole ones as integers."""
    return [int(time) if time == int(time) else round(time, 3) for time in times.tolist()]
