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

from optsched.report import style
from optsched.studies.claims import FAILS, HOLDS, NotRunError, Region, markdown, written
from optsched.studies.figures import NARROW, WIDE, Column, claims_panel, specification_curve
from optsched.studies.intervals import (
    Interval,
    Noise,
    mean_of,
    noise_floor,
    reduction,
    units_needed,
)
from optsched.text_files import read_toml

from .prepared import QUEUE, SESSIONS, SINGLE, prepare
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

    Parameters
    ----------
    what : float or str
        One of `SHARES`, ``better``, one of `SUMS`, a quantile of the improvements, or their
        ``mean``.
    names : sequence of str
        Schedulers. Of several, it is the number of the one with the lowest interval.
    over : sequence of str
        Those whose quantity is subtracted, each by itself; ``-BF`` for the same with backfilling.
    load : float
        The clusters that count, by default all.
    saturated : bool
        Whether to take what is more on the saturated cluster of a log than on its underused one.

    Raises
    ------
    NotRunError
        If a scheduler has not been run on all workloads.
    """
    instead = INSTEAD.get(what, {})
    what = instead.get(reading, instead.get("", what))
    pairs = [(one, one + other if other == "-BF" else other) for one in names for other in over]
    where = [*(DAY,) * (reading != "weeks"), *WEEKS]
    where = [one for one in where if load in (None, one.load)]
    if saturated:
        where = [one for one in where if one.load is not None]
    ending = ", as written" if reading == "written" else ""
    return weakest(
        [
            over_logs(
                found, where, what, one + ending, other and other + ending,
                summed=reading == "sums", saturated=saturated,
            )
            for one, other in pairs
        ]
    )  # fmt: skip


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


def weakest(found: Sequence[Interval]) -> Interval:
    """Return the interval that decides whether all are above a bound."""
    return min(found, key=lambda one: one.low)


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
    logs = {"": [DAY, *WEEKS], "weeks": WEEKS, "logs": three}
    measures = ("", "mean") if is_log(what) else ("",)
    every = product(
        ["", "written", "files"], ["", "backfilling"], measures, ["", "low", "high"], logs
    )
    for chosen in every:
        form, backfilled, measure, loaded, which = chosen
        where = [
            one for one in logs[which] if not loaded or one.load == (LOW, HIGH)[loaded == "high"]
        ]
        if form == "files":
            where = [
                one
                for own in INTERLEAVED.values()
                for one in own
                if one.load in {w.load for w in where}
            ]
        if (form == "files" and which != "logs") or (loaded and not which):
            continue  # the day was not run with other files, and has no load of its own
        name = "LEM" + "-BF" * bool(backfilled) + ", as written" * (form == "written")
        with suppress(NotRunError):
            one = over_logs(found, where, measure or what, name)
            yield Column(one, frozenset(CHOICES[choice] for choice in chosen if choice))


# ---- The noise floor

NOISE: dict[str, float | str] = {"median session": 0.5, "sessions not worse": "not worse", "time of files": FILES}  # fmt: skip


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


def of_authors_weeks(name: str, field: str) -> float:
    """Return a share of the sessions of the authors' weeks together, in percent."""
    own = [one for (_, scheduler), one in authors_weeks().items() if scheduler == name]
    total = sum(one["sessions"] for one in own)
    return 100 * sum(one["sessions"] * one[field] for one in own) / total


# ---- Values, tables, figures


def values(found: Runs, claims: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers of the page beside those of the claims."""
    rows = {run["run"]: run for own in found.values() for run in own.values()}
    here, table = found[DAY.name], day(found)
    stretch = {name: run["mean_stretch"] for name, run in here.items()}

    def change(name: str, base: str) -> float:
        return 100 * (stretch[name] / stretch[base] - 1)

    where = {"low": [one for one in WEEKS if one.load == LOW]}
    where["high"] = [one for one in WEEKS if one.load == HIGH]
    values: dict[str, Any] = {
        "runs": len(rows),
        "jobs": sum(run["jobs"] for run in rows.values()),
        "logs": len(OF_LOG) + 1,
        "weeks": len(OF_LOG),
        "weeks.paper": PUBLISHED["weeks"],
        "weeks.authors": len(PUBLISHED["per_job"]),
        "loads": LOADS,
        "load.low": LOW,
        "load.high": HIGH,
        "alike": 100 * ALIKE,
        "throttle": PUBLISHED["throttle"],
        "day.results": table["scheduler"].nunique(),
        "day.numbers": len(table),
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
        "authors.lem.better": of_authors_weeks("LEM", "not_worse"),
        "authors.lem.faster": of_authors_weeks("LEM", "faster"),
        "lea.median": over_logs(found, [DAY, *WEEKS], 0.5, "LEA"),
        "lea.files": over_logs(found, [DAY, *WEEKS], FILES, "LEA"),
        "lem.median.logs": units_needed(claims["lem.median"].main + -7.5),
        "lea.files.more": claims["files.lea"].verdict() == HOLDS,
        "low.lem.median": over_logs(found, where["low"], 0.5, "LEM"),
        "high.lem.median": over_logs(found, where["high"], 0.5, "LEM"),
        "bf.lem.median": over_logs(found, [DAY, *WEEKS], 0.5, "LEM-BF"),
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
    values |= of_curve("curve", list(columns(found, 0.5)), claims["lem.median"].region)
    values |= of_curve("curve.files", list(columns(found, FILES)), claims["lem.files"].region)
    for name in SHAKEN["schedulers"][1:]:
        for what, floor in floors(found, TO_SHAKE, name).items():
            values[f"noise.{name.lower()}.{what.split()[0]}"] = floor
    plans = queues(found)
    values["queues"] = int(plans["queues"].sum() / plans["a second of loading counts"].nunique())
    short = plans[plans["jobs of a queue"] == "1 to 12"].set_index("a second of loading counts")
    values["queues.proven"] = short.loc[1, "proven, %"]
    for weight, name in ((1, "once"), (LEA_WEIGHT, "much")):
        for rule in RULES:
            excess = float(short.loc[weight, f"{rule.upper()} above best, %"])
            values |= {f"queues.{name}.{rule}": excess, f"queues.{name}.{rule}.near": excess < 0.1}
    return values


def of_curve(name: str, curve: Sequence[Column], region: Region) -> dict[str, Any]:
    """Return how many combinations of choices a curve has, and the verdicts under them."""
    mean = CHOICES["mean"]
    found: dict[str, Any] = {name: len(curve)}
    for kind, own in (
        ("medians", [one for one in curve if mean not in one.choices]),
        ("means", [one for one in curve if mean in one.choices]),
    ):
        verdicts = [region.verdict(one.found) for one in own]
        found |= {
            f"{name}.{kind}": len(own),
            f"{name}.{kind}.hold": verdicts.count(HOLDS),
            f"{name}.{kind}.fail": verdicts.count(FAILS),
            f"{name}.{kind}.above": sum(one.found.mean >= region.low for one in own),
            f"{name}.{kind}.most": max((one.found.mean for one in own), default=np.nan),
        }
    return found


def by_log(found: Runs) -> pd.DataFrame:
    """Return the median gain with LEM and the time of files saved, by workload."""
    rows = []
    for one in (DAY, *WEEKS):
        own = found[one.name]
        rows.append(
            {"workload": one.name}
            | {
                f"{name}: {head}": written(value, "%")
                for name, head, value in (
                    ("LEM", "median", 100 * (np.median(times(own, "LEM")) - 1)),
                    ("LEM", "files", 100 * measured(own, "LEM", FILES)),
                    ("LEA", "files", 100 * measured(own, "LEA", FILES)),
                )
            }
        )
    return pd.DataFrame(rows)


def reductions(found: Runs) -> pd.DataFrame:
    """Return what each scheduler saves of the time of files and of core time, by workload."""
    rows = []
    for metric, (one, ending) in product((FILES, CORE), product(WORKLOADS.values(), ("", "-BF"))):
        own = found.get(one.name, {})
        if one.seed is not None or not {name + ending for name in GAINING} <= {*own}:
            continue
        row = {"saved, %": metric.replace("_", " "), "workload": one.name}
        row |= {"backfilling": "yes" if ending else "no"}
        shares = {n: 100 * measured(own, n + ending, metric) for n in GAINING}
        rows.append(row | shares)
    table = PUBLISHED["reductions"]
    for metric, ending, key, where in (
        (FILES, "no", "table_i", "the paper, week 40 (Table I)"),
        (FILES, "no", "saturated", "the paper, week 43 (V.E)"),
        (FILES, "no", "table_ii", "the paper (Table II)"),
        (CORE, "no", "table_iii", "the paper (Table III)"),
        (FILES, "yes", "backfilled_transfer", "the authors' result files"),
        (CORE, "yes", "backfilled_core_time", "the authors' result files"),
    ):
        row = {"saved, %": metric.replace("_", " "), "workload": where, "backfilling": ending}
        rows.append(row | {name: 100 * one for name, one in zip(GAINING, table[key])})
    return pd.DataFrame(rows)


def sessions(found: Runs) -> pd.DataFrame:
    """Return the improvement of sessions in every run, and in the authors' weeks."""
    rows = [
        {"workload": workload, "scheduler": name, "base": SCHEDULERS[name].base}
        | dict(zip(FIELDS, described(times(own, name))))
        for workload, own in found.items()
        for name in own
        if WORKLOADS[workload].seed is None
    ]
    rows += [
        {"workload": f"the authors' week {week}", "scheduler": name, "base": SCHEDULERS[name].base}
        | one
        for (week, name), one in authors_weeks().items()
    ]
    return pd.DataFrame(rows)


DIFFERENCES = {
    "replan=events": "all is planned anew at every event",
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


QUEUE_SIZES = {"1 to 12": (1, 12), "13 to 100": (13, 100), "more than 100": (101, np.inf)}
RULES = ("fcfs", "eft", "lea", "leo", "lem")
LEA_WEIGHT = 500
"""Seconds of waiting that LEA weighs as one of loading."""


def queues(found: Runs) -> pd.DataFrame:
    """Return how far the plans of the rules are from the best ones, on queues of the day."""
    run = found[DAY.name]["FCFS"]
    own = pd.DataFrame({c.removeprefix(QUEUE): run[c] for c in run if c.startswith(QUEUE)})
    rows = []
    for weight, each in own.groupby("load_weight"):
        for size, (fewest, most) in QUEUE_SIZES.items():
            those = each[each["jobs"].between(fewest, most)]
            best, bound = those["best"], those["bound"]
            if those.empty:
                continue
            rows.append(
                {
                    "a second of loading counts": weight,
                    "jobs of a queue": size,
                    "queues": len(those),
                    "proven, %": 100 * (best <= bound).mean(),
                    "bound / best known": bound.sum() / best.sum(),
                }
                | {
                    f"{rule.upper()} above best, %": 100 * (those[rule].sum() / best.sum() - 1)
                    for rule in RULES
                }
            )
    return pd.DataFrame(rows)


def workloads(found: Runs) -> pd.DataFrame:
    """Return the workloads and how they fare with FCFS."""
    rows = []
    for name, one in WORKLOADS.items():
        if name in found and one.seed is None:
            run = found[name]["FCFS"]
            rows.append(
                {
                    "workload": name,
                    "nodes": one.nodes,
                    "jobs": run["submitted"],
                    "evaluated": run["evaluated"],
                    "their files": run["files"],
                    "sessions": len(run[SESSIONS]),
                    "load": written(run["load"], digits=2),
                    "mean stretch, FCFS": written(run["mean_stretch"]),
                    "killed, %": 100 * run["killed"] / run["submitted"],
                }
            )
    return pd.DataFrame(rows)


def tables(found: Runs, claims: Mapping[str, Any]) -> dict[str, pd.DataFrame | str]:
    """Return the tables of the page, and those of the data beside it."""
    weeks = [
        {"week": week}
        | {
            head: written(100 * (one[field] - less), "%")
            for one in [authors_weeks()[week, "LEM"]]
            for head, field, less in (
                ("median gain", "median", 1),
                ("not worse", "not_worse", 0),
                ("faster", "faster", 0),
            )
        }
        for week in PUBLISHED["per_job"]
    ]
    return {
        "by-log": by_log(found),
        "authors-weeks": markdown(pd.DataFrame(weeks)),
        "day": day(found),
        "differences": differences(found),
        "reductions": reductions(found),
        "noise": noise(found),
        "noise-short": markdown(noise_short(found)),
        "queues": queues(found),
        "workloads": workloads(found),
        "sessions": sessions(found),
    }


def figures(found: Runs, claims: Mapping[str, Any], *, narrow: bool) -> dict[str, Figure]:
    """Draw the figures of the page, for a wide page or a phone."""
    panel = claims_panel(claims, narrow=narrow)
    shares = panel.axes[1]  # all numbers are of one size there
    shares.set_xscale("linear")
    shares.set_xlim(0, 100)
    shares.set_xticks(range(0, 100, 25))
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
    return {"claims": panel, **both, "sessions": improvement_figure(found, narrow=narrow)}


def improvement_figure(found: Runs, *, narrow: bool) -> Figure:
    """Draw the improvement of sessions by LEM and LEA on each workload, as Figure 8."""
    rows: list[tuple[str, dict[str, Sequence[float]]]] = []
    for one in (DAY, *WEEKS):
        own = found[one.name]
        rows.append((one.name, {n: described(times(own, n)) for n in ("LEM", "LEA")}))
    for week in PUBLISHED["per_job"]:
        own = {name: PUBLISHED["per_job"][week][name] for name in ("LEM", "LEA")}
        rows.append((f"authors' week {week}", own))
    figure = Figure((NARROW if narrow else WIDE, 4.6), layout="constrained")
    axes = figure.subplots()
    for place, (_, own) in enumerate(rows):
        for shift, color, marker, (name, one) in zip(
            (-0.17, 0.17), ("#0072B2", "#D55E00"), "os", own.items()
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
    axes.set_yticks(range(len(rows)), [name for name, _ in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("times as fast as with FCFS" + ("" if narrow else " (logarithmic)"))
    axes.legend(loc="lower right")
    return figure
