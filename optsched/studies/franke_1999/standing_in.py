"""Does a fitted model stand in for the trace? SDSC-BLUE, and what its model generates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.report.page import Cell, Table, Value, duration
from optsched.studies.franke_1999.evaluation import METRICS, STRATEGIES
from optsched.studies.franke_1999.plan import STANDING_IN
from optsched.studies.judging import Judgement, judge
from optsched.studies.results import grouped

if TYPE_CHECKING:
    import pandas as pd

NEAR = 1.5
"""A model stands in for a trace where it gives means within so many times, up or down."""

TRACE, *MODELS = STANDING_IN


def ratios(frame: pd.DataFrame, stand_in: str) -> pd.DataFrame:
    """Return the means of a stand-in over those of the trace: a row per part and strategy."""
    own = frame[frame["kind"] == "blue"].set_index(["first", "strategy"]).sort_index()
    columns = ["offered", "utilization", *METRICS]
    of = {name: own[own["stand_in"] == name][columns] for name in (TRACE, stand_in)}
    return of[stand_in] / of[TRACE]


def judgement(frame: pd.DataFrame, stand_in: str) -> Judgement:
    """Judge whether the model gives the trace's mean response times."""
    found = ratios(frame, stand_in)["mean_response"]
    near = (found <= NEAR) & (found >= 1 / NEAR)
    told = f"{found.median():.2f} times that of the trace in the median"
    return judge(near, f"{told}; within {NEAR:g} times in {{so}} of {{of}}")


def by_part(frame: pd.DataFrame) -> Table:
    """Return response times of the trace and its stand-ins, part by part."""
    own = frame[frame["kind"] == "blue"]
    names = [name for name in STRATEGIES if name in set(own["strategy"])]
    rows: list[list[Value]] = []
    for (first,), part in grouped(own, ["first"]):
        for stand_in in STANDING_IN:
            runs = part[part["stand_in"] == stand_in].set_index("strategy")
            load = float(runs["offered"].iloc[0])
            row: list[Value] = [f"from job {first:,.0f}", stand_in, Cell(f"{load:.2f}", load)]
            for metric in ("mean_response", "mean_wait"):
                times = runs[metric].to_dict()
                row += [duration(times[name]) for name in names]
            rows.append(row)
    groups = [("response", name) for name in names] + [("wait", name) for name in names]
    return Table(
        "Parts of SDSC-BLUE with perfect estimates, and what a model fitted to each part "
        "generates: sizes uniform within a class, as in the paper, or as observed.",
        ["part", "workload", "offered load", *groups],
        rows,
    )


def order_kept(frame: pd.DataFrame, stand_in: str) -> Judgement:
    """Judge whether the stand-in ranks the strategies as the trace does."""
    own = frame[frame["kind"] == "blue"]
    kept = []
    for _, part in grouped(own, ["first"]):
        ranks = [
            np.argsort(
                part[part["stand_in"] == name].sort_values("strategy")["mean_response"].to_numpy()
            ).tolist()
            for name in (TRACE, stand_in)
        ]
        kept.append(ranks[0] == ranks[1])
    return judge(kept, "the same order of the strategies by mean response in {so} of {of} parts")
