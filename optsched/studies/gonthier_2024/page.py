"""The numbers and tables of the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.report.page import Cell, Verdict, duration, share
from optsched.studies.gonthier_2024.claims import (
    FEW,
    NONE,
    WITH_BACKFILLING,
    WITH_FILES,
    compared,
    saved_by_log,
)
from optsched.studies.gonthier_2024.evaluation import (
    DAY_RESULTS,
    FILE_TIME,
    PER_JOB,
    QUEUE,
    REDUCTIONS,
    SESSIONS,
    SINGLE,
    SINGLE_PRECISION,
    THROTTLE,
    WEEKS,
    Improvement,
    arrays_of,
    improvement,
    of,
    read_as,
    reduction,
    run_of,
)
from optsched.studies.gonthier_2024.plan import (
    AS_WRITTEN,
    AUTHORS,
    DAY,
    FILES,
    HIGH,
    INTERLEAVED,
    LOADS,
    LOGS,
    LOW,
    OF_LOG,
    READINGS,
    SAMPLE,
    SCHEDULERS,
    THROTTLED,
    WORKLOADS,
    Reading,
    in_form,
)
from optsched.studies.gonthier_2024.queues import BUDGET, EVERY, LOAD_WEIGHTS, RULES
from optsched.studies.gonthier_2024.usage import BINS
from optsched.studies.judging import Judgement
from optsched.studies.results import by_workload
from optsched.studies.template import Record

if TYPE_CHECKING:
    import pandas as pd

    from optsched.studies.judging import Claim

GAINING = ["EFT", "LEA", "LEO", "LEM"]
"""The schedulers that are compared with FCFS, in the order of the paper's tables."""

FORMS = (
    *("no backfilling", "replan=events", "as written", "holes", "holes, replan=events"),
    *("full profile", "full profile, as written"),
    *(f"every {THROTTLE} s", f"holes, every {THROTTLE} s"),
)
"""The forms of all five schedulers, in the order of the table of variants."""

DIFFERENCES = (
    *("replan=events", "loads=start", "evicted=memory", "opportune=node", "kept=next"),
    *("full profile", "as written", "full profile, as written"),
)
"""What the paper has otherwise than the authors' program, one at a time and all together."""

QUEUES = {"1 to 12": (1, 12), "13 to 100": (13, 100), "more than 100": (101, np.inf)}
"""Numbers of jobs of queues that are shown together."""

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
    every, frame = frame, read_as(frame)
    parts = by_workload(frame)
    there = list(parts)
    varied = next((name for name in (DAY.name, SAMPLE.name) if name in there), None)
    runs = by_workload(every)
    written = read_as(every, READINGS[AS_WRITTEN])
    own_runs = compared(every)
    return {
        "workloads": there,
        "improvement": partial(improvement, frame),
        "reduction": partial(reduction, frame),
        "saved_by_log": partial(saved_by_log, frame),
        "written": partial(improvement, written),
        "written_reduction": partial(reduction, written),
        "of": partial(of, frame),
        "of_day": partial(run_of, every, DAY.name),
        "printed": DAY_RESULTS["FCFS"]["mean_stretch"],
        "in_single_precision": partial(as_printed, metric="mean_stretch"),
        "of_published_weeks": of_published_weeks,
        "published_weeks": len(PER_JOB),
        "stops": stops(every) if DAY.name in there else [],
        "gaining": GAINING,
        "compared": {where: list(read) for where, read in own_runs.items()},
        "compared_on": {
            where: list(by_workload(read[AUTHORS])) for where, read in own_runs.items()
        },
        "with_backfilling": WITH_BACKFILLING,
        "with_files": WITH_FILES,
        "files": FILES,
        "turned": turned,
        "throttle": THROTTLE,
        "weeks": WEEKS,
        "single_precision": SINGLE_PRECISION,
        "negligible": NONE,
        "few": FEW,
        "loads": LOADS,
        "day": day_table(every) if DAY.name in there else [],
        "varied": varied,
        "differences": differences_table(every, varied) if varied else [],
        "variants": variants_table(every, varied) if varied else [],
        "shared_files": shared_files_table(every),
        "queues": queue_table(every),
        "load_weights": LOAD_WEIGHTS,
        "every": EVERY,
        "budget": BUDGET.work,
        "usage_bins": BINS,
        "reductions": reduction_tables(frame),
        "sessions": partial(session_table, every),
        "workload_records": [
            _workload(one, runs[one.name]) for one in WORKLOADS if one.name in runs
        ],
        "absent": [] if quick else _absent(there),
    }


def turned(claims: Iterable[Claim], other: str = AS_WRITTEN) -> dict[str, Any]:
    """Return how many verdicts differ between the authors' program and another reading.

    ``claims`` is how many are judged under both readings on the same workloads, ``differ`` how many
    verdicts are not the same, and ``opposite`` has the texts of those that hold under one and do
    not under the other.
    """
    pairs = {
        claim.text: [claim.judgements[name].verdict for name in (AUTHORS, other)]
        for claim in claims
        if {AUTHORS, other} <= claim.judgements.keys()
    }
    opposite = {Verdict.HELD, Verdict.NOT_HELD}
    counts = Counter(program for program, _ in pairs.values())
    written = Counter(text for _, text in pairs.values())
    return {
        "claims": len(pairs),
        "differ": sum(program != text for program, text in pairs.values()),
        "opposite": {text: pair for text, pair in pairs.items() if {*pair} == opposite},
        "held": (counts[Verdict.HELD], written[Verdict.HELD]),
        "not_held": (counts[Verdict.NOT_HELD], written[Verdict.NOT_HELD]),
    }


def stops(frame: pd.DataFrame) -> list[tuple[str, float, Improvement]]:
    """Return the change on the day where a pass stops early, which the paper leaves open.

    It is the change of the mean stretch, and the improvement of sessions, by scheduler.
    """
    own = frame[frame["workload"] == DAY.name]
    return [
        (
            name,
            float(run_of(own, DAY.name, late)["mean_stretch"] / before - 1),
            improvement(own, late, name),
        )
        for late in in_form("final code")
        for name in [late.removesuffix(", final code")]
        for before in [run_of(own, DAY.name, name)["mean_stretch"]]
    ]


def of_published_weeks(name: str) -> dict[str, float]:
    """Return shares of the sessions of a scheduler in the authors' results of single jobs.

    They are ``not_worse`` and ``faster``, of the sessions of all weeks together.
    """
    weeks = [own[name] for own in PER_JOB.values()]
    sessions = sum(one.sessions for one in weeks)
    return {
        of: sum(one.sessions * getattr(one, of) for one in weeks) / sessions
        for of in ("not_worse", "faster")
    }


def day_table(frame: pd.DataFrame) -> list[Record]:
    """Return the results on the authors' day, with theirs beside."""
    records = []
    for name, published in DAY_RESULTS.items():
        run = run_of(frame, DAY.name, name)
        numbers = {}
        for metric, value in published.items():
            digits, ours = len(value.partition(".")[2]), as_printed(run, metric)
            numbers[metric.replace("_", " ")] = Cell(
                f"{ours:,.{digits}f}", ours, note=f"authors {value}"
            )
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


def differences_table(frame: pd.DataFrame, workload: str) -> list[Record]:
    """Return the mean stretch with each difference of the paper from the authors' program."""
    of_form = {form: dict(zip(_solvers(form), in_form(form))) for form in DIFFERENCES}
    records = []
    for name in SOLVERS:
        program = run_of(frame, workload, name)["mean_stretch"]
        record: Record = {"scheduler": name, "authors' program": program}
        for form, names in of_form.items():
            record[form] = None
            if name in names:
                found = run_of(frame, workload, names[name])["mean_stretch"]
                record[form] = Cell(f"{found:.4g}", found, note=f"{found / program - 1:+.1%}")
        records.append(record)
    return records


def _solvers(form: str) -> list[str]:
    """Return the solvers of a form, in capitals."""
    return [SCHEDULERS[name].solver.upper() for name in in_form(form)]


def shared_files_table(frame: pd.DataFrame) -> list[Record]:
    """Return the gains of LEA and LEM by the way of sharing files, where both were run."""
    records = []
    parts = by_workload(frame)
    for log, weeks in INTERLEAVED.items():
        for one in [*OF_LOG[log], *weeks]:
            if one.name not in parts:
                continue
            own = parts[one.name]
            first = own.iloc[0]
            records.append(
                {
                    "workload": f"{log}, load {one.load:g}",
                    "a file is shared": one.sharing,
                    "files": int(first["files"]),
                    "reused": share(1 - first["files"] / first["evaluated"]),
                }
                | {
                    (name, head): value
                    for name in ("LEA", "LEM")
                    for found in [improvement(own, name)]
                    for head, value in (
                        ("transfer time saved", share(reduction(own, name, FILE_TIME))),
                        ("median", found.median),
                        ("faster", share(float(f"{found.faster:.3g}"))),
                        ("slower", share(float(f"{found.slower:.3g}"))),
                    )
                }
            )
    return records


def queue_table(frame: pd.DataFrame) -> list[Record]:
    """Return how far the plans of the rules are from the best ones, on queues of the day."""
    found = arrays_of(frame, DAY.name, QUEUE)
    if not found:
        return []
    records = []
    for weight in LOAD_WEIGHTS:
        for size, (fewest, most) in QUEUES.items():
            those = found["load_weight"] == weight
            those &= (found["jobs"] >= fewest) & (found["jobs"] <= most)
            best, bound = found["best"][those], found["bound"][those]
            if not len(best):
                continue
            proven = best <= bound
            records.append(
                {
                    "a second of loading counts": weight,
                    "jobs of a queue": size,
                    "queues": len(best),
                    "proven": share(float(f"{proven.mean():.3g}")),
                    "bound / best known": float(bound.sum() / best.sum()),
                    "nominal s": float(np.median(found["seconds"][those])),
                }
                | {
                    (head, rule.upper()): value
                    for head, function in (("above the best known", _excess), ("as good", _best))
                    for rule in RULES
                    for value in [function(found[rule][those], best)]
                }
            )
    return records


def _excess(cost: Any, best: Any) -> Cell:
    return share(float(f"{cost.sum() / best.sum() - 1:.3g}"))


def _best(cost: Any, best: Any) -> Cell:
    return share(float(f"{(cost == best).mean():.3g}"))


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


def session_table(frame: pd.DataFrame, ending: str, reading: str = AUTHORS) -> list[Record]:
    """Return the quantiles of the improvement of sessions, and those of published weeks."""
    own = read_as(frame, READINGS[reading])
    parts = by_workload(own[own["workload"].isin(_with(own, "EFT" + ending))], together=True)
    if reading == AUTHORS:
        late = read_as(frame, Reading([DAY], THROTTLED))
        parts |= {f"{DAY.name}, every {THROTTLE} s": late} if len(late) else {}
    found = {
        (part, name): improvement(own, name + ending)
        for part, own in parts.items()
        for name in GAINING
    }
    if reading == AUTHORS and len(parts) > 2:
        found |= {
            (f"published, week {week}", name): own[name + ending]
            for week, own in PER_JOB.items()
            for name in GAINING
        }
    return [
        {"workload": part, "scheduler": name + ending, **_quantiles(one)}
        for (part, name), one in found.items()
    ]


def _with(frame: pd.DataFrame, scheduler: str) -> list[str]:
    """Return the workloads that were run with a scheduler."""
    return list(frame["workload"][frame["scheduler"] == scheduler])


def _quantiles(one: Improvement) -> dict[Any, Any]:
    improvements = {
        "12.5%": one.whisker_low,
        "25%": one.box_low,
        "median": one.median,
        "75%": one.box_high,
        "87.5%": one.whisker_high,
        "mean": one.mean,
    }
    shares = {"not worse": one.not_worse, "faster": one.faster, "slower": one.slower}
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
