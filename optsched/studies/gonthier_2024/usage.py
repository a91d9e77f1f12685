"""The cluster over time: cores that run, load and wait, and the sessions of users."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from optsched.report.steps import Steps
from optsched.traces.trace import SECONDS_PER_DAY

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]

MARGIN = SECONDS_PER_DAY
"""Seconds that are shown before the first and after the last evaluated submission."""

BINS = 400

COLUMNS = (
    *("submission_time", "starting_time", "finish_time", "requested_number_of_resources"),
    *("transfer_time", "waiting_for_a_load", "run_time"),
)
"""The columns of ``jobs.parquet`` that are read."""


def over_time(
    jobs: pd.DataFrame, evaluated: NDArray[np.bool_], session: NDArray[np.int64]
) -> Mapping[str, Floats]:
    """Return the use of a cluster in bins of time, and its sessions.

    Parameters
    ----------
    jobs : DataFrame
        The columns `COLUMNS` of the jobs of a run.
    evaluated : bool array, shape (jobs,)
        The evaluated jobs.
    session : int64 array, shape (evaluated jobs,)
        The session of each.

    Returns
    -------
    mapping of str to float64 array
        Days from the first evaluated submission: ``days``, the edges of the bins, and
        ``session_day``, when each session begins. Mean numbers of cores in each bin: ``running``
        and ``queued``, these of evaluated jobs as ``evaluated_running`` and ``evaluated_queued``,
        and ``loading``. ``session_hours`` are the run times of the jobs of each session.
    """
    table = {name: jobs[name].to_numpy(np.float64, na_value=np.inf) for name in COLUMNS}
    submit, start = table["submission_time"], table["starting_time"]
    cores = table["requested_number_of_resources"]
    first, last = submit[evaluated].min(), submit[evaluated].max()
    edges = np.linspace(first - MARGIN, last + MARGIN, BINS + 1)
    delay = np.nan_to_num(table["transfer_time"] + table["waiting_for_a_load"])

    def mean(since: Floats, until: Floats, amounts: Floats) -> Floats:
        begin, end = edges[[0, -1]]
        stays = [np.clip(times, begin, end) for times in (since, until)]
        steps = Steps.from_stays(stays[0], stays[1], amounts, begin, end)
        return np.diff(steps.integral(edges)) / np.diff(edges)

    begins = np.full(session.max() + 1, np.inf)
    np.minimum.at(begins, session, submit[evaluated])
    counted = cores * evaluated
    return {
        "days": (edges - first) / SECONDS_PER_DAY,
        "running": mean(start, table["finish_time"], cores),
        "evaluated_running": mean(start, table["finish_time"], counted),
        "loading": mean(start, np.minimum(start + delay, table["finish_time"]), cores),
        "queued": mean(submit, start, cores),
        "evaluated_queued": mean(submit, start, counted),
        "session_day": (begins - first) / SECONDS_PER_DAY,
        "session_hours": np.bincount(session, table["run_time"][evaluated]) / 3600,
    }
