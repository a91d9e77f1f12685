"""Gonthier et al. 2024: the numbers, tables and figures of the page, from the runs of plan.toml."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from optsched.documentation import markdown
from optsched.numbers import written
from optsched.report import style
from optsched.studies.claims import FAILS, HOLDS, NotRunError, without_noise
from optsched.studies.figures import NARROW, WIDE, Column, specification_curve
from optsched.studies.intervals import (
    Interval,
    Noise,
    mean_of,
    noise_floor,
    reduction,
    units_needed,
)
from optsched.text_files import read_toml

from .prepared import SESSIONS, SINGLE, prepare
from .workloads import (
    DAY,
    HIGH,
    INTERLEAVED,
    LOADS,
    LOW,
    OF_LOG,
    SCHEDULERS,
    SHAKEN,
    TO_SHAKE,
    WEEKS,
    WORKLOADS,
    Workload,
    in_form,
    inputs,
    runs,
    shaken_of,
)

__all__ = ["inputs", "prepare", "runs"]

PUBLISHED = read_toml(Path(__file__).with_name("published.toml"))
GAINING = ["EFT", "LEA", "LEO", "LEM"]
"""The schedulers that are compared with FCFS, in the order of the paper's tables."""

ALIKE = 0.01
"""Stretches no further apart than this, relatively, are equal, as in Figure 2."""

FILES, CORE, QUEUES = SUMS = ("file_time", "core_time", "mean_queue_time")
"""The paper's transfer time, in which jobs wait for files that they or others load, and others."""

Runs = Mapping[str, Mapping[str, Any]]
"""The runs by workload and scheduler."""


def load(results: pd.DataFrame) -> Runs:
    """Return the runs by workload and scheduler."""
    found: dict[str, dict[str, Any]] = {}
    for row in results.to_dict("records"):
        found.setdefault(row["workload"], {})[row["scheduler"]] = row
    return found


# ---- One scheduler on one workload, compared with FCFS in the same form


def times(own: Mapping[str, Any], name: str, base: str = "") -> NDArray[np.float64]:
    """Return how many times as long the stretch of each session is with FCFS."""
    before, after = (own[one][SESSIONS] for one in (base or SCHEDULERS[name].base, name))
    return np.asarray(before, dtype=float) / np.asarray(after, dtype=float)


SHARES: dict[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
    "not worse": lambda ratios: ratios >= 1,
    "faster": lambda ratios: ratios > 1 + ALIKE,
    "slower": lambda ratios: ratios < 1 - ALIKE,
    "equal": lambda ratios: abs(ratios - 1) <= ALIKE,
    "three times": lambda ratios: ratios > 3,
    "four times": lambda ratios: ratios > 4,
    "lost": lambda ratios: np.maximum(1 - ratios, 0),
}
"""Of each session, whether it counts; and what it loses, where an improvement of 0.9 loses 0.1."""


def measured(own: Mapping[str, Any], name: str, what: float | str) -> float:
    """Return a share, the logarithm of a mean or quantile of improvements, or what is saved."""
    if what in SUMS:
        return float(1 - own[name][what] / own[SCHEDULERS[name].base][what])
    if what == "mean by backfilling":
        return float(np.log(times(own, name, name.replace("-BF", "")).mean()))
    ratios = times(own, name)
    if isinstance(what, str) and what != "mean":
        return float(SHARES[what](ratios).mean())
    return float(np.log(ratios.mean() if what == "mean" else np.quantile(ratios, what)))


def is_log(what: float | str) -> bool:
    """Return whether a quantity is a logarithm, so that gains in percent are averaged in it."""
    return isinstance(what, float) or what.startswith("mean ") or what == "mean"


# ---- Means over logs: what claims.toml names

INSTEAD = {
    "better": {"": "not worse", "faster": "faster"},
    "three times": {"fourfold": "four times"},
    0.5: {"means": "mean"},
    "faster": {"means": "mean"},
}
"""What a reading takes in place of a quantity."""


def number(
    found: Runs,
    reading: str,
    *,
    what: float | str,
    names: Sequence[str],
    over: Sequence[str] = ("",),
    load: float | None = None,
    saturated: bool = False,
) -> Interval:
    """Return the mean over the logs of a quantity, in percent or points.

    It is one of `SHARES`, ``better``, one of `SUMS`, a quantile of the improvements, or their
    ``mean``. Of several schedulers `names`, the one with the lowest interval counts; the quantity
    of each of `over` is subtracted (``-BF``: of the same with backfilling). `load` chooses the
    clusters; `saturated` takes how much more it is on the saturated than on the underused one.
    """
    instead = INSTEAD.get(what, {})
    what = instead.get(reading, instead.get("", what))
    pairs = [(one, one + other if other == "-BF" else other) for one in names for other in over]
    where = [*(DAY,) * (reading != "weeks"), *WEEKS]
    where = [one for one in where if load in (None, one.load)]
    if saturated:
        where = [one for one in where if one.load is not None]
    ending = ", as written" if reading == "written" else ""
    options: dict[str, Any] = {"summed": reading == "sums", "saturated": saturated}
    each = [
        over_logs(found, where, what, one + ending, other and other + ending, **options)
        for one, other in pairs
    ]
    return min(each, key=lambda one: one.low)


def as_times(found: Runs, reading: str, **what: Any) -> Interval:
    """Return how many times as fast sessions are; or, of a sum, how much is left of it."""
    gain = number(found, reading, **what) * 0.01
    if what["what"] not in SUMS:
        return gain + 1
    left = gain * -1 + 1
    return left._replace(low=max(left.low, 0.0))


def over_logs(
    found: Runs,
    where: Sequence[Workload],
    what: float | str,
    name: str,
    other: str = "",
    *,
    summed: bool = False,
    saturated: bool = False,
) -> Interval:
    """Return the mean over the logs, in percent or points; the clusters of a log count as one."""
    both = [name, other] if other else [name]
    needed = {*both, *(SCHEDULERS[one].base for one in both)}
    if not all(needed <= {*found.get(one.name, {})} for one in where):
        raise NotRunError
    logs = [[one for one in where if one.log == log] for log in dict.fromkeys(w.log for w in where)]
    weights = [1.0, -1.0][: len(both)]
    if summed:
        before, after = (
            [[total(found, own, of(one), str(what)) for one in both] for own in logs]
            for of in (lambda one: SCHEDULERS[one].base, str)
        )
        return reduction(before, after, weights) * 100
    signs = {None: 1.0, LOW: -2.0, HIGH: 2.0} if saturated else {}
    each = [
        np.mean(
            [
                signs.get(one.load, 1.0) * weight * measured(found[one.name], scheduler, what)
                for one in own
                for scheduler, weight in zip(both, weights)
            ]
        )
        * len(both)
        for own in logs
    ]
    return bounded(mean_of(each), what, alone=not other and not saturated)


def bounded(one: Interval, what: float | str, *, alone: bool) -> Interval:
    """Return a mean of logarithms or of shares in percent; shares stay between 0 and 100%."""
    if is_log(what):
        mean, low, high = (100 * np.expm1(one[:3])).tolist()
        return one._replace(mean=mean, low=low, high=high)
    one = one * 100
    if what in SHARES and alone:
        return one._replace(low=max(one.low, 0.0), high=min(one.high, 100.0))
    return one


def total(found: Runs, where: Sequence[Workload], name: str, metric: str) -> float:
    """Return a sum over the clusters of a log."""
    each = [found[one.name][name] for one in where]
    return float(sum(one[metric] * (one["evaluated"] if metric == QUEUES else 1) for one in each))


# ---- All choices together

CHOICES = {
    "written": "as the paper is written",
    "files": "files shared by any jobs",
    "backfilling": "with backfilling",
    "mean": "mean, not median",
    "low": "underused alone",
    "high": "saturated alone",
    "weeks": "without the day",
    "logs": "three logs alone",
}
"""What may differ from the main reading, in the words of the figure."""


def columns(found: Runs, what: float | str) -> Iterator[Column]:
    """Yield the gain of sessions with LEM, or what it saves, under each combination of choices.

    A combination that was not run on all of its workloads is left out.
    """
    three = [one for log in INTERLEAVED for one in OF_LOG[log]]
    others = [one for own in INTERLEAVED.values() for one in own]
    pools = {(): [DAY, *WEEKS], ("weeks",): WEEKS, ("logs",): three, ("logs", "files"): others}
    loads = {"": None, "low": LOW, "high": HIGH}
    measures = ("", "mean") if is_log(what) else ("",)
    for chosen in product(("", "written"), ("", "backfilling"), measures, loads, pools):
        form, backfilled, measure, load, pool = chosen
        if load and not pool:  # the day has no load of its own
            continue
        where = [one for one in pools[pool] if loads[load] in (None, one.load)]
        name = "LEM" + "-BF" * bool(backfilled) + ", as written" * bool(form)
        choices = {form, backfilled, measure, load, *pool} - {""}
        with suppress(NotRunError):
            found_one = over_logs(found, where, measure or what, name)
            yield Column(found_one, frozenset(CHOICES[choice] for choice in choices))


# ---- The noise floor

NOISE: dict[str, float | str] = {"median session": 0.5, "sessions not worse": "not worse"}
NOISE |= {"time of files": FILES}


def floors(found: Runs, where: Sequence[Workload], name: str) -> dict[str, Noise]:
    """Return the noise floor of means over the logs of some workloads."""
    drawn = [[shaken_of(one, seed) for one in where] for seed in SHAKEN["seeds"]]
    return {
        label: noise_floor([over_logs(found, each, what, name).mean for each in drawn])
        for label, what in NOISE.items()
    }


def noise(found: Runs) -> pd.DataFrame:
    """Return the noise floors of each workload, and of the mean over their logs."""
    return pd.DataFrame(
        {
            "workload": "mean of all" if len(where) > 1 else where[0].name,
            "scheduler": name,
            "number": label,
            "from": floor.low,
            "to": floor.high,
            "smallest effect": floor.smallest,
        }
        for where in (*([one] for one in TO_SHAKE), TO_SHAKE)
        for name in SHAKEN["schedulers"][1:]
        for label, floor in floors(found, where, name).items()
    )


def noise_short(found: Runs) -> pd.DataFrame:
    """Return the smallest effects that could be seen: on the noisiest workload, and in the mean."""
    table = noise(found)
    each = table.groupby(["scheduler", "number"], sort=False)["smallest effect"]
    return pd.DataFrame(
        {
            "number": f"{name}, {label}",
            "on one workload, up to": written(own.iloc[:-1].max(), digits=1),
            "in the mean": written(own.iloc[-1], digits=1),
        }
        for (name, label), own in each
    )


# ---- The authors' day, and their weeks


def day(found: Runs) -> pd.DataFrame:
    """Return the results on the authors' day, ours and theirs, a row for each of their numbers."""
    rows = []
    for name, theirs in PUBLISHED["day"].items():
        run = found[DAY.name][name]
        for metric, text in theirs.items():
            digits = len(text.partition(".")[2])
            ours = float(run.get(f"single.{metric}", run[metric]))
            summed = metric == CORE or f"single.{metric}" in SINGLE
            near = abs(ours / float(text) - 1) <= PUBLISHED["single_precision"]
            rows.append(
                {
                    "scheduler": name,
                    "result": metric.replace("_", " "),
                    "authors": text,
                    "here": f"{ours:.{digits}f}",
                    "equal": "yes" if (near if summed else ours == float(text)) else "no",
                }
            )
    return pd.DataFrame(rows)


FIELDS = [
    *("sessions", "whisker_low", "box_low", "median", "box_high", "whisker_high", "mean"),
    *("not_worse", "faster", "slower", "speedup", "slowdown"),
]
QUANTILES = (0.125, 0.25, 0.5, 0.75, 0.875)
"""Whiskers, box and median of Figures 8 and 10."""


def described(ratios: NDArray[np.float64]) -> list[float]:
    """Return `FIELDS` of improvements: quantiles and mean, shares, means of faster and slower."""
    faster, slower = SHARES["faster"](ratios), SHARES["slower"](ratios)
    shares = [float(which.mean()) for which in (SHARES["not worse"](ratios), faster, slower)]
    each = [float(ratios[own].mean()) if own.any() else np.nan for own in (faster, slower)]
    quantiles = np.quantile(ratios, QUANTILES).tolist()
    return [len(ratios), *quantiles, float(ratios.mean()), *shares, *each]


def authors_weeks() -> dict[tuple[str, str], dict[str, float]]:
    """Return `FIELDS` from the authors' results of single jobs, by week and scheduler."""
    weeks = PUBLISHED["per_job"].items()
    return {
        (week, name): dict(zip(FIELDS, row)) for week, own in weeks for name, row in own.items()
    }


# ---- Values, tables, figures


def values(found: Runs, claims: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers of the page beside those of the claims."""
    rows = [run for own in found.values() for run in own.values()]
    here, table = found[DAY.name], day(found)
    stretch = {name: run["mean_stretch"] for name, run in here.items()}

    def change(name: str, base: str) -> float:
        return 100 * (stretch[name] / stretch[base] - 1)

    all_ = [DAY, *WEEKS]
    low, high = ([one for one in WEEKS if one.load == load] for load in LOADS)
    authors = pd.DataFrame([own for (_, name), own in authors_weeks().items() if name == "LEM"])
    values: dict[str, Any] = {
        "runs": len(rows),
        "jobs": sum(run["jobs"] for run in rows),
        "logs": claims["lem.median"].main.n,
        "weeks": len(OF_LOG),
        "weeks.paper": PUBLISHED["weeks"],
        "weeks.authors": len(PUBLISHED["per_job"]),
        "load.low": LOW,
        "load.high": HIGH,
        "alike": 100 * ALIKE,
        "throttle": PUBLISHED["throttle"],
        "day.results": table["scheduler"].nunique(),
        "day.numbers": len(table),
        "day.lem.results": sum("LEM" in name for name in PUBLISHED["day"]),
        "day.lem.80.results": sum("80 %" in name for name in PUBLISHED["day"]),
        "day.all-equal": bool((table["equal"] == "yes").all()),
        "day.jobs": here["FCFS"]["submitted"],
        "day.evaluated": here["FCFS"]["evaluated"],
        "day.sessions": len(here["FCFS"][SESSIONS]),
        "day.fcfs": stretch["FCFS"],
        "day.fcfs.single": here["FCFS"]["single.mean_stretch"],
        "day.fcfs.ticks": stretch["FCFS, every 30 s"],
        "day.ticks.worst": all(
            stretch[f"{name}, every 30 s"] > stretch["FCFS, every 30 s"] for name in GAINING
        ),
        "day.lea": change("LEA", "FCFS"),
        "day.lea.written": change("LEA, as written", "FCFS, as written"),
        "day.lem": change("LEM", "FCFS"),
        "day.lem.80": change("LEM (80 %)", "FCFS"),
        "day.stop.lea": change("LEA, final code", "LEA"),
        "day.stop.lem": change("LEM, final code", "LEM"),
        "authors.lem.better": 100 * np.average(authors["not_worse"], weights=authors["sessions"]),
        "authors.lem.faster": 100 * np.average(authors["faster"], weights=authors["sessions"]),
        "lea.files": over_logs(found, all_, FILES, "LEA"),
        "lem.median.logs": units_needed(claims["lem.median"].main + -7.5),
        "lem.files.day": 100 * measured(here, "LEM", FILES),
        "lem.files.most": 100 * max(measured(found[one.name], "LEM", FILES) for one in WEEKS),
        "lem.median.none": all(
            abs(measured(found[one.name], "LEM", 0.5)) <= ALIKE for one in [DAY, *low, high[0]]
        ),
        "lea.files.more": claims["files.lea"].verdict() == HOLDS,
        "low.lem.median": over_logs(found, low, 0.5, "LEM"),
        "high.lem.median": over_logs(found, high, 0.5, "LEM"),
        "bf.lem.median": over_logs(found, all_, 0.5, "LEM-BF"),
        "killed": tuple(
            100 * found[name]["FCFS"]["killed"] / found[name]["FCFS"]["submitted"]
            for name in ("SDSC-BLUE, load 0.7", "CTC, load 0.7")
        ),
        "noise.seeds": len(SHAKEN["seeds"]),
        "noise.shake": SHAKEN["shake"],
        "noise.most.median": max(
            floors(found, [one], "LEM")["median session"].smallest for one in TO_SHAKE
        ),
    }
    region, curve = claims["lem.median"].region, list(columns(found, 0.5))
    medians = [one.found for one in curve if CHOICES["mean"] not in one.choices]
    means = [one.found.mean for one in curve if CHOICES["mean"] in one.choices]
    values |= {
        "curve": len(curve),
        "curve.medians": len(medians),
        "curve.medians.hold": sum(region.verdict(one) == HOLDS for one in medians),
        "curve.medians.fail": sum(region.verdict(one) == FAILS for one in medians),
        "curve.means": len(means),
        "curve.means.all-above": min(means) > region.low,
        "curve.files": len(list(columns(found, FILES))),
    }
    for name in SHAKEN["schedulers"][1:]:
        for what, floor in floors(found, TO_SHAKE, name).items():
            values[f"noise.{name.lower()}.{what.split()[0]}"] = floor
    return values


def by_log(found: Runs) -> str:
    """Return the median gain with LEM and the time of files saved, by workload."""
    rows = [
        {
            "workload": one.name,
            "LEM: median gain": without_noise(
                100 * np.expm1(measured(found[one.name], "LEM", 0.5)), "%"
            ),
            "LEM: files": without_noise(100 * measured(found[one.name], "LEM", FILES), "%"),
            "LEA: files": without_noise(100 * measured(found[one.name], "LEA", FILES), "%"),
        }
        for one in (DAY, *WEEKS)
    ]
    return markdown(pd.DataFrame(rows))


def of_weeks() -> str:
    """Return how LEM did in the authors' weeks."""
    rows = [
        {
            "week": week,
            "median gain": written(100 * (own["median"] - 1), "%"),
            "not worse": written(100 * own["not_worse"], "%"),
            "faster": written(100 * own["faster"], "%"),
        }
        for (week, name), own in authors_weeks().items()
        if name == "LEM"
    ]
    return markdown(pd.DataFrame(rows))


def reductions(found: Runs) -> pd.DataFrame:
    """Return the time of files and the core time that each scheduler saves, by workload."""
    rows = [
        [
            *(what.replace("_", " "), name, "yes" if ending else "no"),
            *(100 * measured(own, one + ending, what) for one in GAINING),
        ]
        for what, (name, own), ending in product((FILES, CORE), found.items(), ("", "-BF"))
        if {one + ending for one in GAINING} <= {*own}
    ]
    table = PUBLISHED["reductions"]
    for key, what, ending, where in (
        ("table_i", "file time", "no", "the paper, week 40 (Table I)"),
        ("saturated", "file time", "no", "the paper, week 43 (V.E)"),
        ("table_ii", "file time", "no", "the paper (Table II)"),
        ("table_iii", "core time", "no", "the paper (Table III)"),
        ("backfilled_transfer", "file time", "yes", "the authors' result files"),
        ("backfilled_core_time", "core time", "yes", "the authors' result files"),
    ):
        rows.append([what, where, ending, *(100 * one for one in table[key])])
    return pd.DataFrame(rows, columns=["saved, %", "workload", "backfilling", *GAINING])


def sessions(found: Runs) -> pd.DataFrame:
    """Return the improvement of sessions in every run, and in the authors' weeks."""
    rows = [
        {"workload": workload, "scheduler": name} | dict(zip(FIELDS, described(times(own, name))))
        for workload, own in found.items()
        for name in own
        if WORKLOADS[workload].seed is None
    ]
    for (week, name), own in authors_weeks().items():
        rows.append({"workload": f"the authors' week {week}", "scheduler": name} | own)
    return pd.DataFrame(rows)


DIFFERENCES = {
    "replan=events": "all jobs are replanned at every event",
    "loads=start": "a load counts from the start of its job",
    "evicted=memory": "all files in memory count as evicted",
    "opportune=node": "LEO decides node by node",
    "kept=next": "a file stays until the next start alone",
    "full profile": "backfilling in full profiles",
    "as written": "all of these, without backfilling",
    "full profile, as written": "all of these",
    "every 30 s": "plans every 30 s (later program)",
}
"""What the paper has otherwise than the authors' program, alone and together, and their ticks."""


def differences(found: Runs) -> pd.DataFrame:
    """Return the mean stretch on the day with each difference from the authors' program."""
    own = found[DAY.name]
    rows = {"as in the program of 2022": {s: own[s]["mean_stretch"] for s in ("FCFS", *GAINING)}}
    for form, words in DIFFERENCES.items():
        rows[words] = {
            SCHEDULERS[name].solver.upper(): own[name]["mean_stretch"] for name in in_form(form)
        }
    table = pd.DataFrame(rows).T[["FCFS", *GAINING]]
    return table.rename_axis("Rackham day, mean stretch").map(lambda one: written(one, digits=2))


def workloads(found: Runs) -> pd.DataFrame:
    """Return the workloads and how they fare with FCFS."""
    heads = {"submitted": "jobs", "evaluated": "evaluated", "files": "their files"}
    heads |= {"load": "load", "mean_stretch": "mean stretch, FCFS", "killed": "killed"}
    rows = {
        f"{name} ({one.nodes} nodes)": {
            head: written(found[name]["FCFS"][column], digits=2 * (column == "load"))
            for column, head in heads.items()
        }
        | {"sessions": len(found[name]["FCFS"][SESSIONS])}
        for name, one in WORKLOADS.items()
        if name in found and one.seed is None
    }
    return pd.DataFrame(rows).T.rename_axis("workload")


def tables(found: Runs, claims: Mapping[str, Any]) -> dict[str, pd.DataFrame | str]:
    """Return the tables of the page, and those of the data beside it."""
    return {
        "by-log": by_log(found),
        "authors-weeks": of_weeks(),
        "day": day(found),
        "differences": differences(found),
        "reductions": reductions(found),
        "noise": noise(found),
        "noise-short": markdown(noise_short(found)),
        "workloads": workloads(found),
        "sessions": sessions(found),
    }


def figures(found: Runs, claims: Mapping[str, Any], *, narrow: bool) -> dict[str, Figure]:
    """Draw the figures of the page, for a wide page or a phone."""
    options: dict[str, Any] = {"narrow": narrow, "claimed": claims["lem.median"].region}
    curve = specification_curve(
        columns(found, 0.5), [*CHOICES.values()], "gain of sessions with LEM, %",
        limits=(-15, 65), **options,
    )  # fmt: skip
    options["claimed"] = claims["lem.files"].region
    files = specification_curve(
        columns(found, FILES), [one for one in CHOICES.values() if "mean" not in one],
        "time of files saved with LEM, %", limits=(-5, 15), **options,
    )  # fmt: skip
    both = {"readings": curve, "readings-files": files}
    return both | {"sessions": improvement_figure(found, narrow=narrow)}


def improvement_figure(found: Runs, *, narrow: bool) -> Figure:
    """Draw the improvement of sessions by LEM and LEA on each workload, as Figure 8."""
    both = ("LEM", "LEA")
    runs_of = {one.name: found[one.name] for one in (DAY, *WEEKS)}
    rows = {f"authors' week {week}": own for week, own in PUBLISHED["per_job"].items()}
    rows = {
        label: {name: described(times(own, name)) for name in both}
        for label, own in runs_of.items()
    } | rows
    figure = Figure((NARROW if narrow else WIDE, 4.6), layout="constrained")
    axes = figure.subplots()
    for place, (_, own) in enumerate(rows.items()):
        for shift, color, marker, (name, one) in zip(
            (-0.17, 0.17), ("#0072B2", "#D55E00"), "os", ((name, own[name]) for name in both)
        ):
            y = place + shift
            axes.plot([one[1], one[5]], [y, y], color=color, linewidth=1.0)
            axes.plot([one[2], one[4]], [y, y], color=color, linewidth=4.0, solid_capstyle="butt")
            label = name if place == 0 else None
            look: dict[str, Any] = {"markerfacecolor": "#FFFFFF", "markersize": 5}
            axes.plot([one[3]], [y], marker, color=color, label=label, linewidth=1, **look)
    axes.axvline(1, **style.RULE)
    axes.set_xscale("log", base=2)
    axes.set_xlim(0.18, 16)
    ticks = (0.25, 0.5, 1, 2, 4, 8, 16)
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_yticks(range(len(rows)), [*rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("times as fast as with FCFS" + ("" if narrow else " (logarithmic)"))
    axes.legend(loc="lower right")
    return figure
