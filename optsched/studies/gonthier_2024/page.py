"""The numbers and tables of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from optsched.report.page import Cell, Verdict, duration, share
from optsched.studies.gonthier_2024.claims import DAY_THROTTLED, FEW, NONE, as_throttled
from optsched.studies.gonthier_2024.evaluation import (
    DAY_RESULTS,
    FILE_TIME,
    PER_JOB,
    REDUCTIONS,
    SESSIONS,
    SINGLE,
    SINGLE_PRECISION,
    THROTTLE,
    WEEKS,
    Improvement,
    improvement,
    of,
    reduction,
    run_of,
)
from optsched.studies.gonthier_2024.plan import (
    DAY,
    HIGH,
    LOADS,
    LOGS,
    LOW,
    OF_LOG,
    SAMPLE,
    WORKLOADS,
    in_form,
)
from optsched.studies.judging import Judgement
from optsched.studies.results import ALL, by_workload
from optsched.studies.template import Record

if TYPE_CHECKING:
    import pandas as pd

GAINING = ["EFT", "LEA", "LEO", "LEM"]
"""The schedulers that are compared with FCFS, in the order of the paper's tables."""

FORMS = (
    *("no backfilling", "all replanned", "as written"),
    *("holes", "holes, all replanned", "holes, as written"),
    *("full profile", f"every {THROTTLE} s", f"holes, every {THROTTLE} s"),
)
"""The forms of all five schedulers, in the order of the table of variants."""

SOLVERS = ["FCFS", *GAINING]

REDUCED = {
    "Table I. Transfer time on underused clusters": (FILE_TIME, LOW, "table_i", ""),
    "Transfer time on saturated clusters": (FILE_TIME, HIGH, "saturated", ""),
    "Table II. Transfer time": (FILE_TIME, None, "table_ii", "backfilled_transfer"),
    "Table III. Core time": ("core_time", None, "table_iii", "backfilled_core_time"),
}
"""The metric of each table, the load it is restricted to, and the published reductions without and
with backfilling."""


def values(frame: pd.DataFrame, *, quick: bool) -> Mapping[str, Any]:
    """Return the names that the template uses."""
    parts = by_workload(frame)
    there = list(parts)
    varied = next((name for name in (DAY.name, SAMPLE.name) if name in there), None)
    return {
        "workloads": there,
        "improvement": partial(improvement, frame),
        "reduction": partial(reduction, frame),
        "of": partial(of, frame),
        "of_day": partial(run_of, frame, DAY.name),
        "gaining": GAINING,
        "judged_in": [ALL, *there, *as_throttled(frame)],
        "day_throttled": DAY_THROTTLED,
        "throttle": THROTTLE,
        "weeks": WEEKS,
        "single_precision": SINGLE_PRECISION,
        "negligible": NONE,
        "few": FEW,
        "loads": LOADS,
        "day": day_table(frame) if DAY.name in there else [],
        "varied": varied,
        "variants": variants_table(frame, varied) if varied else [],
        "reductions": reduction_tables(frame),
        "sessions": partial(session_table, frame),
        "workload_records": [
            _workload(one, parts[one.name]) for one in WORKLOADS if one.name in parts
        ],
        "absent": [] if quick else _absent(there),
    }


def day_table(frame: pd.DataFrame) -> list[Record]:
    """Return the results on the authors' day, with theirs below."""
    records = []
    for name, published in DAY_RESULTS.items():
        run = run_of(frame, DAY.name, name)
        numbers = {}
        for metric, value in published.items():
            digits, ours = len(value.partition(".")[2]), as_printed(run, metric)
            numbers[metric.replace("_", " ")] = Cell(f"{ours:,.{digits}f}", ours, note=value)
        equal = compare_with_authors(run, published).shown
        records.append({"scheduler": name, "equal": equal} | numbers)
    return records


def compare_with_authors(run: Mapping[str, Any], published: Mapping[str, str]) -> Judgement:
    """Return whether a run equals what the authors printed, and the largest difference if not."""
    worst, where = 0.0, ""
    for metric, value in published.items():
        theirs, ours = float(value), as_printed(run, metric)
        apart = abs(ours / theirs - 1)
        summed = metric == "core_time" or f"single.{metric}" in SINGLE
        same = apart <= SINGLE_PRECISION if summed else ours == theirs
        if not same and apart > worst:
            worst, where = apart, metric.replace("_", " ")
    if not where:
        return Judgement(Verdict.HELD, "")
    return Judgement(Verdict.NOT_HELD, f"{where} {worst:.2g} apart")


def as_printed(run: Mapping[str, Any], metric: str) -> float:
    """Return a figure as the authors' program prints it: means of sums in single precision."""
    return float(run.get(f"single.{metric}", run[metric]))


def variants_table(frame: pd.DataFrame, workload: str) -> list[Record]:
    """Return the effect of backfilling and of the times of planning, where all forms were run."""
    names = {form: in_form(form) for form in FORMS}
    return [
        {
            "scheduler": solver,
            "variant": form,
            "mean stretch": run["mean_stretch"],
            "bounded stretch": run["mean_bounded_stretch"],
            "transfer time": duration(run[FILE_TIME]),
            "files found": run["data_reuse"],
            "core time": duration(run["core_time"]),
        }
        for place, solver in enumerate(SOLVERS)
        for form in FORMS
        for run in [run_of(frame, workload, names[form][place])]
    ]


def reduction_tables(frame: pd.DataFrame) -> list[Record]:
    """Return Tables I to III in form: the savings of transfer time and core time."""
    tables = []
    for title, (metric, load, *published) in REDUCED.items():
        wanted = {one.name for one in WORKLOADS if load is None or one.load == load}
        shown = by_workload(frame[frame["workload"].isin(wanted)], together=True)
        if not shown:
            continue
        records = [
            {"workload": name}
            | _by_backfilling(
                [reduction(own, one + ending, metric) for one in GAINING] for ending in ("", "-BF")
            )
            for name, own in shown.items()
        ]
        theirs = (REDUCTIONS.get(name, [None] * len(GAINING)) for name in published)
        records.append({"workload": "published"} | _by_backfilling(theirs))
        tables.append({"title": title, "records": records})
    return tables


def _by_backfilling(shares: Any) -> dict[Any, Any]:
    groups = ("without backfilling", "with backfilling")
    return {
        (group, name): share(value)
        for group, own in zip(groups, shares)
        for name, value in zip(GAINING, own)
    }


def session_table(frame: pd.DataFrame, ending: str) -> list[Record]:
    """Return the quantiles of the improvement of sessions, and those of published weeks."""
    parts = by_workload(frame, together=True)
    found = {
        (part, name): improvement(own, name + ending)
        for part, own in (parts | as_throttled(frame)).items()
        for name in GAINING
    }
    if len(parts) > 1:
        found |= {
            (f"published, week {week}", name): own[name + ending]
            for week, own in PER_JOB.items()
            for name in GAINING
        }
    return [
        {"workload": part, "scheduler": name + ending, **_quantiles(one)}
        for (part, name), one in found.items()
    ]


def _quantiles(one: Improvement) -> dict[Any, Any]:
    improvements = {
        "12.5%": one.whisker_low,
        "25%": one.box_low,
        "median": one.median,
        "75%": one.box_high,
        "87.5%": one.whisker_high,
        "mean": one.mean,
    }
    shares = {"not worse": one.better, "faster": one.faster, "slower": one.slower}
    return {
        "sessions": one.sessions,
        **{("improvement", head): value for head, value in improvements.items()},
        **{("sessions are", head): share(float(f"{v:.3g}")) for head, v in shares.items()},
        ("mean improvement of", "faster"): one.speedup,
        ("mean improvement of", "slower"): one.slowdown,
    }


def _workload(one: Any, own: pd.DataFrame) -> Record:
    first, fcfs = own.iloc[0], run_of(own, one.name, "FCFS")
    return {
        "workload": one.name,
        "cluster": one.machine,
        "jobs": int(first["submitted"]),
        "evaluated": int(first["evaluated"]),
        "their files": int(first["files"]),
        "sessions": len(own[SESSIONS].iloc[0]),
        "a session is": "consecutive jobs" if one.consecutive else "5 minutes",
        "load": float(first["load"]),
        ("FCFS", "mean stretch"): fcfs["mean_stretch"],
        ("FCFS", "cut"): share(fcfs["killed"] / first["submitted"]),
        "schedulers": own["scheduler"].nunique(),
    }


def _absent(there: Sequence[str]) -> list[str]:
    """Return the logs that were not there."""
    absent = [] if DAY.name in there else ["the authors' day"]
    return absent + [LOGS[log]["file"] for log, own in OF_LOG.items() if own[0].name not in there]
