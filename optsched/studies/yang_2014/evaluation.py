"""Improvements over the Default scheduler, cell by cell of the paper's tables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from optsched.studies.paired import Improvement, improvement
from optsched.studies.results import check_results, grouped
from optsched.studies.yang_2014.plan import BLUE, CONTENT, INTERVAL, SHOWN, TABLE, VARIANTS, WINDOW
from optsched.text_files import read_toml

if TYPE_CHECKING:
    import pandas as pd

_PUBLISHED = read_toml(CONTENT / "published.toml")
SHARES: list[float] = _PUBLISHED["shares"]
"""The values of alpha (columns) and of beta (rows)."""

PUBLISHED: Mapping[str, Mapping[str, Any]] = {one["number"]: one for one in _PUBLISHED["tables"]}
"""Tables I to VI, by number."""

METRICS = {
    "utilization": "system utilization",
    "mean_wait": "mean wait",
    "mean_response": "mean response",
}
"""The metrics of the paper, by their names in a summary."""

MORE_IS_BETTER = frozenset({"utilization"})

PAIRED_BY = ["log", "part", "alpha", "beta", "draw"]
"""Columns that are equal in a run and in the Default run that it is compared with."""

NEEDED = (
    *("trace", "config.jobs", "solver", "charge_decisions", "error", "jobs"),
    *(f"settings.{name}" for name in ("alpha", "beta", "draw", "window", "interval")),
    *("settings.backfill", "settings.scatter", *METRICS, "large_mean_wait"),
)
"""Columns of the results that the evaluation reads."""


def prepare(results: pd.DataFrame, inputs: Path) -> pd.DataFrame:
    """Add ``log``, ``part``, ``variant`` (``default``, or a key of `VARIANTS`) and ``charged``.

    The settings lose their prefix, and the window of the paper is filled in.
    """
    check_results(results, NEEDED)
    names = {name: name.removeprefix("settings.") for name in results.columns}
    names |= {"config.jobs": "part", "charge_decisions": "charged"}
    frame = results.rename(columns=names)
    log_of = {log["file"]: name for name, log in TABLE["logs"].items()}
    frame["log"] = [log_of[PurePath(trace).name] for trace in frame["trace"]]
    variant_of = {tuple(setting.values()): name for name, setting in VARIANTS.items()}
    frame["variant"] = [
        variant_of.get((backfill, scatter), "default")
        for backfill, scatter in zip(frame["backfill"], frame["scatter"])
    ]
    mine = frame["variant"] != "default"
    for name, usual in (("window", WINDOW), ("interval", INTERVAL)):
        frame.loc[mine, name] = frame.loc[mine, name].fillna(usual)
    frame["charged"] = frame["charged"].fillna(False).astype(bool)
    return frame


def published(number: str, solver: str = "branch_and_bound") -> dict[tuple[float, float], float]:
    """Return a published table by (beta, alpha), in percent."""
    rows = PUBLISHED[number][solver]
    return {
        (beta, alpha): value for beta, row in zip(SHARES, rows) for alpha, value in zip(SHARES, row)
    }


def grid(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the runs behind the tables: sensitive jobs, the paper's window, free decisions."""
    usual = (frame["window"] == WINDOW) & (frame["interval"] == INTERVAL) & ~frame["charged"]
    return frame[(frame["alpha"] > 0) & (usual | (frame["variant"] == "default"))]


def compared(frame: pd.DataFrame, **wanted: Any) -> pd.DataFrame:
    """Return the runs with the wanted values beside the Default runs on the same jobs.

    Metrics of the Default run end in ``_default``.
    """
    mine = frame[frame["variant"] != "default"]
    for name, value in wanted.items():
        mine = mine[mine[name] == value]
    default = frame[frame["variant"] == "default"].drop_duplicates(PAIRED_BY)
    return mine.merge(default, on=PAIRED_BY, suffixes=("", "_default"), validate="m:1")


def gain(pairs: pd.DataFrame, metric: str) -> Improvement:
    """Return the improvement of a metric over the Default, of all runs together."""
    return improvement(
        pairs[f"{metric}_default"],
        pairs[metric],
        pairs["log"] + " " + pairs["part"],
        more_is_better=metric in MORE_IS_BETTER,
    )


def contributions(pairs: pd.DataFrame, metric: str) -> pd.Series[float]:
    """Return what each part contributes to the improvement of each cell, for one log.

    The index is beta, alpha and part; the mean over the parts is the improvement of the cell.
    """
    means = pairs.groupby(["beta", "alpha", "part"])[[metric, f"{metric}_default"]].mean()
    default = means[f"{metric}_default"]
    usual = default.groupby(level=["beta", "alpha"]).transform("mean")
    sign = 1.0 if metric in MORE_IS_BETTER else -1.0
    return sign * (means[metric] - default) / usual


def cells(
    frame: pd.DataFrame, metric: str, **wanted: Any
) -> Mapping[tuple[float, float], Improvement]:
    """Return the improvements of a metric by (beta, alpha)."""
    pairs = compared(frame, **wanted)
    return {
        (beta, alpha): gain(own, metric) for (beta, alpha), own in grouped(pairs, ["beta", "alpha"])
    }


def replaced(frame: pd.DataFrame, metric: str, old: str, new: str, **wanted: Any) -> Improvement:
    """Return the improvement of a metric when one solver takes the place of another."""
    pairs = _beside(frame, old, new, **wanted)
    parts = pairs["log"] + " " + pairs["part"]
    return improvement(pairs[f"{metric}_old"], pairs[f"{metric}_new"], parts)


def scattering(frame: pd.DataFrame, metric: str, old: str, new: str, **wanted: Any) -> float:
    """Return by how much a metric differs between two solvers in a run: the mean, up or down."""
    pairs = _beside(frame, old, new, **wanted)
    return float((pairs[f"{metric}_new"] / pairs[f"{metric}_old"] - 1).abs().mean())


def _beside(frame: pd.DataFrame, old: str, new: str, **wanted: Any) -> pd.DataFrame:
    by = [*PAIRED_BY, "variant", "window", "interval", "charged"]
    one, other = (compared(frame, solver=solver, **wanted) for solver in (old, new))
    return one.merge(other, on=by, suffixes=("_old", "_new"), validate="1:1")


def varied(frame: pd.DataFrame) -> tuple[float, pd.DataFrame]:
    """Return alpha and beta where window and solver are varied, and all runs there."""
    middle = float(frame.loc[frame["charged"], "alpha"].iloc[0])
    at = (frame["log"] == BLUE) & (frame["alpha"] == middle) & (frame["beta"] == middle)
    return middle, frame[at & frame["variant"].isin([SHOWN, "default"])]


def all_runs(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the improvement of every metric in every cell, one row each."""
    import pandas as pd

    by = ["log", "variant", "solver", "window", "interval", "charged", "beta", "alpha"]
    pairs = compared(frame)
    rows = [
        dict(zip(by, key)) | {"metric": metric} | gain(own, metric)._asdict()
        for key, own in grouped(pairs, by)
        for metric in METRICS
    ]
    return pd.DataFrame(rows)
