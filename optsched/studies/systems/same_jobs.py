"""Gains on the jobs that finish both with a system and with its baseline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from optsched.schedule import State

if TYPE_CHECKING:
    import pandas as pd

TIMES_OF_JOBS = {"mean_wait": "waiting_time", "mean_response": "turnaround_time"}
"""Means that are compared on the same jobs, and the column of the jobs that has the times."""

SAME = {metric: f"{metric}_gain_same_jobs" for metric in TIMES_OF_JOBS}
"""The columns with the relative gains on the jobs that finish with both."""


def means_of_both(
    before: pd.DataFrame, after: pd.DataFrame
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the means of `TIMES_OF_JOBS` in two runs, over the jobs that finish in both.

    Parameters
    ----------
    before, after : pandas.DataFrame
        The jobs of the runs, of one trace and in its order.
    """
    both = (before["final_state"] == State.FINISHED) & (after["final_state"] == State.FINISHED)
    columns = list(TIMES_OF_JOBS.values())
    old, new = (jobs.loc[both, columns].mean().to_numpy(dtype=float) for jobs in (before, after))
    return old, new


def jobs_of(folder: str) -> pd.DataFrame:
    """Return state and times of the jobs of a run."""
    import pandas as pd

    columns = ["final_state", *TIMES_OF_JOBS.values()]
    return pd.read_parquet(Path(folder) / "jobs.parquet", columns=columns)
