"""Improvements over the Default scheduler, cell by cell of the paper's tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from optsched.errors import InputError
from optsched.studies.paired import Improvement, improvement
from optsched.studies.yang_2014.plan import BLUE, LOGS, MAIN, VARIANTS

if TYPE_CHECKING:
    import pandas as pd

METRICS = {
    "utilization": "system utilisation",
    "mean_wait": "mean wait",
    "mean_response": "mean response",
}
"""The metrics of the paper, by their names in a summary."""

MORE_IS_BETTER = frozenset({"utilization"})

PAIRED_BY = ["jobs_run", "alpha", "beta", "draw"]
"""What a run and the Default run that it is compared with have in common, besides the log."""


def prepare(results: pd.DataFrame) -> pd.DataFrame:
    """Return the results of the sweep with the columns that the evaluation goes by.

    ``log``, ``jobs_run``, ``variant`` (``default``, or a key of `VARIANTS`), ``solver``,
    ``window``, ``alpha``, ``beta``, ``draw``, ``charged``, and the metrics.

    Raises
    ------
    InputError
        If runs have failed: nothing can be said then.
    """
    failed = results["error"].dropna()
    if len(failed):
        raise InputError(f"{len(failed)} runs of the study failed; the first: {failed.iloc[0]}")
    frame = results.rename(
        columns={"config.jobs": "jobs_run", "charge_decisions": "charged"}
        | {name: name.removeprefix("settings.") for name in results.columns if "." in name}
        | {"config.jobs": "jobs_run"}
    )
    log_of = {log.file: log.name for log in LOGS}
    frame["log"] = [log_of[PurePath(trace).name] for trace in frame["trace"]]
    variant_of = {tuple(setting.values()): name for name, setting in VARIANTS.items()}
    frame["variant"] = [
        variant_of.get((backfill, scatter), "default")
        for backfill, scatter in zip(frame["backfill"], frame["scatter"])
    ]
    frame["window"] = frame["window"].where(
        frame["variant"] == "default", frame["window"].fillna(5)
    )
    frame["charged"] = frame["charged"].fillna(False).astype(bool)
    return frame


def compared(frame: pd.DataFrame, **wanted: Any) -> pd.DataFrame:
    """Return the runs of that description beside the Default runs on the same jobs.

    Parameters
    ----------
    frame : pandas.DataFrame
        What `prepare` returns.
    wanted
        Values of its columns.

    Returns
    -------
    pandas.DataFrame
        One row per run, in order; metrics of the Default run end in ``_default``.
    """
    mine = frame[frame["variant"] != "default"]
    for name, value in wanted.items():
        mine = mine[mine[name] == value]
    default = frame[frame["variant"] == "default"].drop_duplicates(["log", *PAIRED_BY])
    return mine.merge(default, on=["log", *PAIRED_BY], suffixes=("", "_default"), validate="m:1")


def varied(frame: pd.DataFrame) -> tuple[float, pd.DataFrame]:
    """Return alpha and beta where window and solver are varied, and those runs by Default's."""
    middle = float(frame.loc[frame["charged"], "alpha"].iloc[0])
    return middle, compared(frame, log=BLUE.name, variant=MAIN, alpha=middle, beta=middle)


def grouped(frame: pd.DataFrame, by: list[str]) -> Iterator[tuple[tuple[Any, ...], pd.DataFrame]]:
    """Yield the rows that agree in all of these columns, with their values, in order."""
    for key, own in frame.groupby(by, sort=True):
        yield tuple(key), own


def gain(pairs: pd.DataFrame, metric: str) -> Improvement:
    """Return the improvement of a metric over the Default, of all runs together."""
    return improvement(
        pairs[f"{metric}_default"], pairs[metric], more_is_better=metric in MORE_IS_BETTER
    )


def cells(
    frame: pd.DataFrame, metric: str, **wanted: Any
) -> Mapping[tuple[float, float], Improvement]:
    """Return the improvements of a metric by (beta, alpha)."""
    pairs = compared(frame, **wanted)
    return {
        (beta, alpha): gain(own, metric) for (beta, alpha), own in grouped(pairs, ["beta", "alpha"])
    }


def all_cells(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the improvement of every metric in every cell, one row each."""
    import pandas as pd

    by = ["log", "variant", "solver", "window", "charged", "beta", "alpha"]
    pairs = compared(frame)
    rows = [
        dict(zip(by, key)) | {"metric": metric} | gain(own, metric)._asdict()
        for key, own in grouped(pairs, by)
        for metric in METRICS
    ]
    return pd.DataFrame(rows)
