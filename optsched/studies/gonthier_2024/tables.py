"""The tables of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.report.page import Cell, Table, Value, Verdict, cell, duration, share
from optsched.studies.gonthier_2024.claims import DAY_THROTTLED, FEW, NONE, as_throttled, claims
from optsched.studies.gonthier_2024.evaluation import (
    ALL,
    FILE_TIME,
    SESSIONS,
    SINGLE,
    improvement,
    reduction,
    run_of,
    schedulers,
    workloads,
)
from optsched.studies.gonthier_2024.improvement import Improvement
from optsched.studies.gonthier_2024.inputs import offered
from optsched.studies.gonthier_2024.plan import (
    ANEW,
    AS_WRITTEN,
    CONSERVATIVE,
    DAY,
    EFT,
    FCFS,
    HIGH,
    HOLES,
    LEA,
    LEM,
    LEO,
    LOGS,
    LOW,
    MAIN,
    THROTTLED,
    WORKLOADS,
)
from optsched.studies.gonthier_2024.published import (
    BACKFILLED_CORE_TIME,
    BACKFILLED_TRANSFER,
    DAY_RESULTS,
    PER_JOB,
    SATURATED,
    SINGLE_PRECISION,
    TABLE_I,
    TABLE_II,
    TABLE_III,
    THROTTLE,
    DayResult,
    Reductions,
)
from optsched.traces.rackham import EVALUATED
from optsched.traces.reading import read_trace

if TYPE_CHECKING:
    import pandas as pd

GAINING = (EFT, LEA, LEO, LEM)
"""What is compared with FCFS, in the order of the paper's tables."""


def claims_table(frame: pd.DataFrame) -> Table:
    """Return the verdict on each claim, in all workloads and in each."""
    shown = [ALL, *workloads(frame), *as_throttled(frame)]
    rows: list[list[Value]] = []
    for claim in claims(frame):
        row: list[Value] = [claim.text, claim.published]
        for name in shown:
            judged = claim.judgements.get(name)
            row.append(judged and replace(cell(judged.verdict), note=judged.why))
        rows.append(row)
    return Table(
        "In all workloads, and in each. Held in a workload: so in at least nine of ten comparisons "
        "that the claim makes; in part: in half of them. Over all: held in nine of ten workloads, "
        f"or in half of them; {DAY_THROTTLED} does not count there. A session is faster or slower "
        f"if its stretch differs by more than 1 %; medians within {NONE:.0%} are the same, shares "
        f"of sessions within {FEW:.0%} close. Underused: load {LOW:g}; saturated: load {HIGH:g}.",
        ["claim", "published", *shown],
        rows,
    )


def day_table(frame: pd.DataFrame) -> Table:
    """Return the results on the authors' day beside theirs."""
    rows: list[list[Value]] = []
    for name, published in DAY_RESULTS.items():
        run = run_of(frame, DAY.name, name)
        verdict, why = compare_with_authors(run, published)
        row: list[Value] = [name, replace(cell(verdict), note=why)]
        for metric, value in published._asdict().items():
            digits, ours = len(value.partition(".")[2]), as_printed(run, metric)
            row.append(Cell(f"{ours:,.{digits}f}", ours, note=value))
        rows.append(row)
    names = [name.replace("_", " ") for name in DayResult._fields]
    return Table(
        "The authors' published day, decisions at every event; below each number the authors'. "
        "LEM saves loads once all nodes, or 80 % of them, run a job. Final code: a pass stops "
        "when no cores are left that are free now. Held: the same seconds and counts. Means "
        "and core time are sums in single precision, as the authors keep them, in an order that is "
        f"not known: the same to {SINGLE_PRECISION:g}.",
        ["scheduler", "equal", *names],
        rows,
    )


def compare_with_authors(run: Mapping[str, Any], published: DayResult) -> tuple[Verdict, str]:
    """Return whether a run equals what the authors printed, and the largest difference if not."""
    worst, where = 0.0, ""
    for metric, value in published._asdict().items():
        theirs, ours = float(value), as_printed(run, metric)
        apart = abs(ours / theirs - 1)
        summed = metric == "core_time" or f"single.{metric}" in SINGLE
        same = apart <= SINGLE_PRECISION if summed else ours == theirs
        if not same and apart > worst:
            worst, where = apart, metric.replace("_", " ")
    if not where:
        return Verdict.HELD, ""
    return Verdict.NOT_HELD, f"{where} {worst:.2g} apart"


def as_printed(run: Mapping[str, Any], metric: str) -> float:
    """Return a figure as the authors' program has it: means of sums in single precision."""
    return float(run.get(f"single.{metric}", run[metric]))


VARIED = (
    ("mean_stretch", "mean stretch"),
    ("mean_bounded_stretch", "bounded stretch"),
    (FILE_TIME, "transfer time"),
    ("data_reuse", "files found"),
    ("core_time", "core time"),
)


def variants_table(frame: pd.DataFrame, workload: str) -> Table:
    """Return what backfilling and the times of planning do, where all variants were run."""
    plain = list(MAIN)[: len(CONSERVATIVE)]
    forms = {
        "no backfilling": plain,
        "all anew": list(ANEW)[: len(plain)],
        "as written": list(AS_WRITTEN)[: len(plain)],
        "holes": [name + HOLES for name in plain],
        "holes, all anew": list(ANEW)[len(plain) :],
        "holes, as written": list(AS_WRITTEN)[len(plain) :],
        "full profile": list(CONSERVATIVE),
        f"every {THROTTLE} s": list(THROTTLED)[: len(plain)],
        f"holes, every {THROTTLE} s": list(THROTTLED)[len(plain) :],
    }
    rows: list[list[Value]] = []
    for place, name in enumerate(plain):
        for form, names in forms.items():
            run = run_of(frame, workload, names[place])
            rows.append([name, form, *(_shown(metric, run[metric]) for metric, _ in VARIED)])
    return Table(
        f"{workload}: what backfilling does, and when plans are made. All anew: at every "
        "submission and end, as the paper says and full profiles always are; else an end makes a "
        "new plan if jobs wait, and submissions are added to it, as in the authors' program. As "
        "written: with the memory of section III, too, where a file stays until the next start on "
        "its node. "
        "Holes: their backfilling, only now, on cores reserved for later; full profile: any gap in "
        f"the plan. Every {THROTTLE} s, as in their weekly results: plans are made at ticks only, "
        "for what happens in that second, and a pass stops as in their final code.",
        ["scheduler", "variant", *(label for _, label in VARIED)],
        rows,
    )


def _shown(metric: str, value: float) -> Value:
    return duration(value) if metric.endswith("_time") else cell(value)


def reduction_tables(frame: pd.DataFrame) -> list[Table]:
    """Return Tables I to III in form: what the schedulers save of transfer time and core time."""
    low = [one.name for one in WORKLOADS if one.load == LOW]
    high = [one.name for one in WORKLOADS if one.load == HIGH]
    there = workloads(frame)
    parts = [
        ("Table I. Transfer time on underused clusters", FILE_TIME, low, TABLE_I, None),
        ("Transfer time on saturated clusters", FILE_TIME, high, SATURATED, None),
        ("Table II. Transfer time", FILE_TIME, there, TABLE_II, BACKFILLED_TRANSFER),
        ("Table III. Core time", "core_time", there, TABLE_III, BACKFILLED_CORE_TIME),
    ]
    tables = []
    for title, metric, names, published, backfilled in parts:
        shown = [name for name in there if name in names]
        if not shown:
            continue
        pooled = frame[frame["workload"].isin(shown)]
        chosen = {ALL: pooled} if len(shown) > 1 else {}
        chosen |= {name: pooled[pooled["workload"] == name] for name in shown}
        rows: list[list[Value]] = [
            [name, *_reduced(own, metric, ""), *_reduced(own, metric, HOLES)]
            for name, own in chosen.items()
        ]
        rows.append(["published", *_published(published), *_published(backfilled)])
        tables.append(
            Table(
                f"{title}: reduction relative to FCFS, and with backfilling to FCFS-BF. Transfer "
                "time is what jobs wait for files, loaded by them or by others; so the published "
                "numbers follow from the authors' result files.",
                [
                    "workload",
                    *(("without backfilling", name) for name in GAINING),
                    *(("with backfilling", name) for name in GAINING),
                ],
                rows,
            )
        )
    return tables


def _reduced(own: pd.DataFrame, metric: str, ending: str) -> list[Value]:
    return [share(reduction(own, name + ending, metric)) for name in GAINING]


def _published(values: Reductions | None) -> list[Value]:
    return [None] * len(GAINING) if values is None else [share(value) for value in values]


def session_table(frame: pd.DataFrame, ending: str, caption: str) -> Table:
    """Return the quantiles of the improvement of sessions, beside those of published weeks."""
    names = workloads(frame)
    parts = {ALL: frame} if len(names) > 1 else {}
    parts |= {name: frame[frame["workload"] == name] for name in names} | as_throttled(frame)
    rows: list[list[Value]] = []
    for part, own in parts.items():
        rows += [
            [part, name + ending, *_quantiles(improvement(own, name + ending))] for name in GAINING
        ]
    if len(names) > 1:
        rows += [
            [f"published, week {week}", name + ending, *_quantiles(found[name + ending])]
            for week, found in PER_JOB.items()
            for name in GAINING
        ]
    return Table(
        caption,
        [
            *("workload", "scheduler", "sessions"),
            *(("improvement", label) for label in ("12.5%", "25%", "median", "75%", "87.5%")),
            ("improvement", "mean"),
            *(("sessions are", label) for label in ("not worse", "faster", "slower")),
            *(("mean improvement of", label) for label in ("faster", "slower")),
        ],
        rows,
    )


def _quantiles(one: Improvement) -> list[Value]:
    row: list[Value] = [one.sessions]
    row += [one.whisker_low, one.box_low, one.median, one.box_high, one.whisker_high, one.mean]
    row += [share(float(f"{value:.3g}")) for value in (one.better, one.faster, one.slower)]
    return [*row, one.speedup, one.slowdown]


def workload_table(frame: pd.DataFrame, absent: Sequence[str]) -> Table:
    """Return what was run: jobs, files, sessions and loads of each workload."""
    rows: list[list[Value]] = []
    for one in WORKLOADS:
        own = frame[frame["workload"] == one.name]
        if own.empty:
            continue
        trace = read_trace(own["path"].iloc[0])
        counts = trace.annotations["category"] == EVALUATED
        files = np.unique(trace.annotations["file"][counts])
        sessions = len(own[SESSIONS].iloc[0])
        rule = "consecutive jobs" if one.consecutive else "5 minutes"
        row: list[Value] = [one.name, one.machine, len(trace), int(counts.sum())]
        row += [len(files), sessions, rule, offered(trace, one.nodes)]
        fcfs = run_of(frame, one.name, FCFS)
        row += [fcfs["mean_stretch"], share(fcfs["killed"] / len(trace)), len(schedulers(own))]
        rows.append(row)
    left_out = f" Not run, as the logs were not there: {', '.join(absent)}." if absent else ""
    return Table(
        "The workloads. Load: what the evaluated jobs ask of the cluster if each of them loads its "
        "file, over the days in which they are submitted. With FCFS: the mean stretch, and the "
        "share of all jobs that are cut at their requested time, within which they load too."
        f"{left_out}",
        [
            *("workload", "cluster", "jobs", "evaluated", "their files", "sessions"),
            *("a session is", "load", ("FCFS", "mean stretch"), ("FCFS", "cut"), "schedulers"),
        ],
        rows,
    )


def absent_logs(frame: pd.DataFrame) -> list[str]:
    """Return the files of the logs that were not there."""
    there = set(frame["workload"])
    absent = [] if DAY.name in there else ["the authors' day"]
    return absent + [log.file for log in LOGS if f"{log.name}, load {LOW:g}" not in there]
