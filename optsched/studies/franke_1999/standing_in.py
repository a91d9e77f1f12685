"""Does a fitted model stand in for the trace? SDSC-BLUE, and what its model generates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.report.page import Cell, Table, Value, duration
from optsched.studies.franke_1999.evaluation import STRATEGIES
from optsched.studies.franke_1999.plan import STANDING_IN
from optsched.studies.judging import Judgement, judge
from optsched.studies.results import grouped

if TYPE_CHECKING:
    import pandas as pd

NEAR = 1.5
"""A model stands in for a trace where it gives means within so many times, up or down."""

TRACE, *MODELS = STANDING_IN
BY = ["first", "strategy"]


def of_trace(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the runs of the parts of the trace, by part and strategy."""
    own = frame[(frame["kind"] == "blue") & (frame["stand_in"] == TRACE)]
    return own.set_index(BY).sort_index()


def of_model(frame: pd.DataFrame, stand_in: str) -> pd.DataFrame:
    """Return the medians over the seeds of what stands in for the parts, by part and strategy."""
    own = frame[(frame["kind"] == "blue") & (frame["stand_in"] == stand_in)]
    return own.groupby(BY)[["offered", "mean_response", "mean_wait"]].median().sort_index()


def judgement(frame: pd.DataFrame, stand_in: str) -> Judgement:
    """Judge whether the model gives the trace's mean response times."""
    found = of_model(frame, stand_in)["mean_response"] / of_trace(frame)["mean_response"]
    near = (found <= NEAR) & (found >= 1 / NEAR)
    told = f"{found.median():.2f} times that of the trace in the median"
    return judge(near, f"{told}; within {NEAR:g} times in {{so}} of {{of}}")


def order_kept(frame: pd.DataFrame, stand_in: str) -> Judgement:
    """Judge whether the stand-in ranks the strategies as the trace does."""
    ranks = [
        table["mean_response"].unstack().rank(axis=1)
        for table in (of_trace(frame), of_model(frame, stand_in))
    ]
    kept = (ranks[0] == ranks[1]).all(axis=1)
    return judge(kept, "the same order of the strategies by mean response in {so} of {of} parts")


def by_part(frame: pd.DataFrame) -> Table:
    """Return response times of the trace and its stand-ins, part by part."""
    own = frame[frame["kind"] == "blue"]
    names = [name for name in STRATEGIES if name in set(own["strategy"])]
    rows: list[list[Value]] = []
    for (first,), part in grouped(own, ["first"]):
        for stand_in in STANDING_IN:
            runs = part[part["stand_in"] == stand_in]
            load = float(runs["offered"].median())
            row: list[Value] = [f"from job {first:,.0f}", stand_in, Cell(f"{load:.2f}", load)]
            for metric in ("mean_response", "mean_wait"):
                row += [_spread(runs[runs["strategy"] == name][metric]) for name in names]
            rows.append(row)
    groups = [("response", name) for name in names] + [("wait", name) for name in names]
    return Table(
        "Parts of SDSC-BLUE with perfect estimates, and what a model fitted to each part "
        "generates: sizes uniform within a class, as in the paper, or as observed. Medians over "
        "the seeds of what is generated, lowest and highest beside them.",
        ["part", "workload", "offered load", *groups],
        rows,
    )


def _spread(times: pd.Series[float]) -> Cell:
    middle = duration(float(times.median()))
    if len(times) == 1:
        return middle
    note = f"{duration(times.min()).text} to {duration(times.max()).text}"
    return Cell(middle.text, middle.key, note=note)
