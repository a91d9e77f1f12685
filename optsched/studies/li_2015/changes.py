"""What single changes are worth: of the paper's system, of EASY on boxes, of the solvers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from optsched.report.page import Cell, Table, Value, cell, duration, share
from optsched.studies.li_2015.evaluation import NODE_TIME, both, of, workloads
from optsched.studies.li_2015.plan import (
    ABLATIONS,
    CEILING,
    EASY,
    EASY_MIGRATION,
    EXACT,
    NEITHER,
    ONLY_BACKFILLING,
    ONLY_MIGRATION,
    SYSTEM,
    jobs_of,
)
from optsched.studies.paired import improvement, percent

if TYPE_CHECKING:
    import pandas as pd

WAITS = {"mean_wait": "wait", "large_mean_wait": "wait of large jobs"}

MIGRATED = {SYSTEM: ONLY_BACKFILLING, ONLY_MIGRATION: NEITHER, EASY_MIGRATION: EASY}
"""Variants with migration, and the same without it."""


def ratio(frame: pd.DataFrame, one: str, other: str, metric: str) -> pd.Series[float]:
    """Return how many times a metric is that of another variant, by file."""
    first, second = both(frame, one, other, metric)
    return first / second.where(second > 0)


def migration_table(frame: pd.DataFrame) -> Table:
    """Return what migration buys, by workload: in the paper's system and on EASY on boxes."""
    rows: list[list[Value]] = []
    for workload in (*workloads(frame), ""):
        own = frame[frame["workload"] == workload] if workload else frame
        for with_, without in MIGRATED.items():
            row: list[Value] = [workload or "all", f"{with_} over {without}"]
            row.append(_points(own, with_, without, "useful"))
            row.append(_points(own, with_, without, NODE_TIME["fragmented"]))
            row += [_improved(own, without, with_, metric) for metric in WAITS]
            row.append(float(of(own, with_, "migrations").mean()))
            row.append(_lost(own, with_))
            rows.append(row)
    return Table(
        "The same system with migration over that without it: points of utilisation (running), "
        "points of node time that are fragmented, and by how much less jobs wait (a plus is "
        "better), with the 95 % interval of a paired bootstrap over seeds and logs where there "
        "are three; migrations of a run, and the node time that they take of all that jobs ran.",
        [
            "workload",
            "variant",
            *(("points", what) for what in ("running", "fragmented")),
            *(("improvement", what) for what in WAITS.values()),
            "migrations",
            "their node time",
        ],
        rows,
    )


def _points(frame: pd.DataFrame, one: str, other: str, metric: str) -> Cell:
    first, second = both(frame, one, other, metric)
    gap = 100 * (first - second).dropna()
    if gap.empty:
        return cell(None)
    note = f"{gap.min():+.1f} to {gap.max():+.1f}" if len(gap) > 1 else ""
    return Cell(f"{gap.mean():+.1f}", float(gap.mean()), note=note)


def _improved(frame: pd.DataFrame, old: str, new: str, metric: str) -> Cell:
    before, after = both(frame, old, new, metric)
    known = before.notna() & after.notna() & (before > 0)
    if not known.any():
        return cell(None)
    jobs = [jobs_of(file) for file in before.index[known]]
    found = improvement(before[known], after[known], jobs)
    return Cell(f"{percent(found.mean)}%", found.mean, note=found.interval)


def _lost(frame: pd.DataFrame, variant: str) -> Cell:
    """Return the node time that migrations take over that in which jobs run."""
    migrating, running = (
        of(frame, variant, NODE_TIME[part]).mean() for part in ("migrating", "running")
    )
    return share(migrating / running if running > 0 else None)


def change_table(frame: pd.DataFrame, base: str) -> Table:
    """Return what each single change of a variant is worth, by workload."""
    names = workloads(frame)
    rows: list[list[Value]] = []
    for name in ABLATIONS[base]:
        row: list[Value] = [name]
        row += [_times(ratio(frame, name, base, metric)) for metric in WAITS]
        for workload in names:
            own = frame[frame["workload"] == workload]
            row.append(_times(ratio(own, name, base, "mean_wait")))
        row += [_points(frame, name, base, metric) for metric in ("useful", "occupied")]
        rows.append(row)
    anchors: list[Value] = ["(EASY on nodes)"]
    anchors += [_times(ratio(frame, CEILING, base, metric)) for metric in WAITS]
    for workload in names:
        own = frame[frame["workload"] == workload]
        anchors.append(_times(ratio(own, CEILING, base, "mean_wait")))
    rows.append([*anchors, None, None])
    return Table(
        f"{base}, with one thing changed at a time: waits as multiples of its own (below 1 is "
        "better), the median and the range over the files; points of utilisation in the mean, with "
        "the range. At the lower of the modelled loads, changes that are not variants of the "
        "comparison are run on the first seed only.",
        [
            "change",
            *(("times the", what) for what in WAITS.values()),
            *(("times the wait", name) for name in names),
            *(("points", what) for what in ("running", "held")),
        ],
        rows,
    )


def _times(found: pd.Series[float]) -> Cell:
    known = found[np.isfinite(found)]
    if known.empty:
        return cell(None)
    note = f"{known.min():.2f} to {known.max():.2f}" if len(known) > 1 else ""
    return Cell(f"{known.median():.2f}", float(known.median()), note=note)


def exact_table(frame: pd.DataFrame) -> Table:
    """Return what each exact model or detection buys over the paper's heuristic."""
    rows: list[list[Value]] = []
    for name, base in EXACT.items():
        for workload in workloads(frame):
            own = frame[(frame["workload"] == workload)]
            runs = own[own["variant"] == name]
            if runs.empty:
                continue
            row: list[Value] = [name, base, workload]
            row += [float(runs[metric].mean()) for metric in ("problems", "unproven", "fallbacks")]
            row.append(share(float(runs["heuristic_matched"].astype(float).mean())))
            row.append(_points(own, name, base, "useful"))
            row += [
                replace(_times(ratio(own, name, base, metric)), note=_both(own, name, base, metric))
                for metric in WAITS
            ]
            row.append(_times(ratio(own, name, base, "nominal_seconds")))
            rows.append(row)
    return Table(
        "The exact detector, and exact solvers with a budget of some 50 ms a placement and 200 ms "
        "a migration, in the place of the paper's heuristics: problems of a run, those answered "
        "without a proof (all of a heuristic's are) and those that the heuristic decided because "
        "the solver had nothing better within its budget; the share of problems where the "
        "heuristic finds as much, of the models that an exact solver answers (a dash: none); what "
        "it gains; and how many times the nominal solving time.",
        [
            "exact",
            "in the place of that of",
            "workload",
            *(("a run", what) for what in ("problems", "unproven", "fallbacks")),
            "heuristic as good",
            "points running",
            *(("times the", what) for what in WAITS.values()),
            "times the solving time",
        ],
        rows,
    )


def _both(frame: pd.DataFrame, one: str, other: str, metric: str) -> str:
    first, second = both(frame, one, other, metric)
    return f"{duration(first.mean()).text} for {duration(second.mean()).text}"
