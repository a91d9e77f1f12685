"""A closer look at a few runs, job by job and decision by decision, of which a sweep keeps sums."""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.simulator.simulate import simulate
from optsched.studies.franke_1999.plan import CHANGED, MPLS, TURNS

if TYPE_CHECKING:
    import pandas as pd

    from optsched.simulator.run import Run

TIME_SLICE = 60.0
"""Length of a turn in seconds; shorter jobs end within their first."""


FIGURES = (
    *("short_share", "short_response"),
    *("several", "contested", "missed", "missed_of_several"),
)
"""The columns that are added; nan for other runs."""


def add_closer_looks(frame: pd.DataFrame, inputs: Path) -> pd.DataFrame:
    """Repeat a few runs, and add the figures that are not in a summary.

    Of gang scheduling by rows and by turns on the baseline, with the most rows: the figures of
    `_short_jobs`. Of packings by row search on the workload that is changed: those of `_decisions`.
    """
    import pandas as pd

    gang = (frame["policy"] == "gang") & (frame["change"] == "") & (frame["interarrival"] == 1)
    gang &= frame["compact"] & (frame["context_switch"] == 0) & frame["execution"].isna()
    shares = frame["sharing"].isin(["rows", TURNS]) & (frame["admission"] == "fcfs")
    baseline = gang & (frame["service"] == 1) & (frame["mpl"] == max(MPLS)) & shares
    packed = gang & (frame["service"] == CHANGED["service"]) & (frame["mpl"] == MPLS[1])
    looks = {
        _short_jobs: baseline & (frame["solver"] == "first-fit"),
        _decisions: packed & (frame["solver"] == "row-search"),
    }
    rows = {
        row: look(_again(frame.loc[row], inputs))
        for look, chosen in looks.items()
        for row in frame.index[chosen]
    }
    found = pd.DataFrame.from_dict(rows, orient="index").reindex(columns=list(FIGURES))
    return frame.join(found.astype(float))


def _again(run: pd.Series[Any], inputs: Path) -> Run:
    settings = {"mpl": int(run["mpl"]), "admission": run["admission"], "sharing": run["sharing"]}
    trace = inputs / PurePath(run["trace"]).name
    return simulate(trace, run["machine"], "gang", solver=run["solver"], settings=settings)


def _short_jobs(run: Run) -> dict[str, float]:
    """Return the share of jobs shorter than a turn, and the median of their response times in s."""
    short = run.trace.runtime < TIME_SLICE
    response = (run.end - run.trace.submit)[short]
    return {
        "short_share": float(short.mean()),
        "short_response": float(np.median(response)) if len(response) else np.nan,
    }


def _decisions(run: Run) -> dict[str, int]:
    """Count decisions in which there was something to decide, and those that first fit missed.

    ``several``: with more than one waiting job for which enough nodes are free, in all rows
    together. ``contested``: before it searches, row search has not proven that first fit is best.
    """
    decisions = run.decisions
    missed = decisions["objective"] != decisions["heuristic"]
    several = decisions["size"].str.extract(r"\+(\d+)x", expand=False).astype(int) > 1
    contested = missed | (decisions["work"] > 0)
    return {
        "several": int(several.sum()),
        "contested": int(contested.sum()),
        "missed": int(missed.sum()),
        "missed_of_several": int((missed & several).sum()),
    }
