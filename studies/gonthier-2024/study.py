"""Gonthier et al. 2024: the numbers, tables and figures of the page, from the runs of plan.toml."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from optsched.report import style
from optsched.studies.claims import FAILS, HOLDS, NotRunError, Region, markdown, written
from optsched.studies.figures import NARROW, WIDE, Column, claims_panel, specification_curve
from optsched.studies.intervals import Interval, Noise, mean_of, noise_floor, reduction, units_needed
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

SHARE_UNIT = "percent of the sessions"
FILES, CORE, QUEUES = "file_time", "core_time", "mean_queue_time"
"""The paper's transfer time, in which jobs wait for files that they or others load, and others."""

Runs = Mapping[str, Mapping[str, Any]]
"""The runs by workload and scheduler."""


def load(results: pd.DataFrame) -> Runs:
    """Return the runs by workload and scheduler."""
    found: dict[str, dict[str, Any]] = {}
    for row in results.to_dict("records"):
        found.setdefault(row["workload"], {})[row["scheduler"]] = row
    return found


# ---- Sessions of one workload


def base_of(scheduler: str) -> str:
    """Return FCFS in the same form, with the same backfilling."""
    return SCHEDULERS[scheduler].base


def times(own: Mapping[str, Any], scheduler: str, base: str = "") -> NDArray[np.float64]:
    """Return how many times as long the stretch of each session is with FCFS."""
    before, after = (own[one][SESSIONS] for one in (base or base_of(scheduler), scheduler))
    return np.asarray(before, dtype=float) / np.asarray(after, dtype=float)


SHARES: dict[str, Callable[[NDArray[np.float64]], NDArray[np.bool_]]] = {
    "not worse": lambda ratios: ratios >= 1,
    "faster": lambda ratios: ratios > 1 + ALIKE,
    "slower": lambda ratios: ratios < 1 - ALIKE,
    "equal": lambda ratios: abs(ratios - 1) <= ALIKE,
    "three times": lambda ratios: ratios > 3,
    "four times": lambda ratios: ratios > 4,
}


def saved_share(own: Mapping[str, Any], scheduler: str, metric: str) -> float:
    """Return the share by which a scheduler lowers a sum, relative to FCFS in the same form."""
    return float(1 - own[scheduler][metric] / own[base_of(scheduler)][metric])


def log_gain(ratios: NDArray[np.float64], at: float | str) -> float:
    """Return the logarithm of the mean or of a quantile of improvements."""
    return float(np.log(ratios.mean() if at == "mean" else np.quantile(ratios, at)))


# ---- Means over logs

MAIN, WRITTEN, SUMS, WEEKS = "program", "written", "sums", "weeks"
FASTER, MEANS, FOURFOLD = "faster", "means", "fourfold"
SUMMED = (FILES, CORE, QUEUES)


class Part(NamedTuple):
    """The runs of a reading on one workload, under the names of the schedulers of the paper."""

    workload: Workload
    own: Mapping[str, Any]
    ending: str

    def name(self, scheduler: str) -> str:
        """Return the name of a scheduler in this reading."""
        return scheduler + self.ending


def parts(
    found: Runs,
    reading: str,
    names: Sequence[str],
    *,
    load: float | None = None,
    among: Sequence[str] | None = None,
) -> dict[str, list[Part]]:
    """Return the workloads of each log, all of which have been run with these schedulers.

    Raises
    ------
    NotRunError
        If one has not.
    """
    ending = ", as written" if reading == WRITTEN else ""
    wanted = [one for one in (DAY, *(one for own in OF_LOG.values() for one in own))]
    if reading == WEEKS:
        wanted.remove(DAY)
    if among is not None:
        wanted = [WORKLOADS[name] for name in among]
    by_log: dict[str, list[Part]] = {}
    for one in wanted:
        if load in (None, one.load):
            own = found.get(one.name, {})
            if not {name + ending for name in names} <= {*own}:
                raise NotRunError
            by_log.setdefault(one.log, []).append(Part(one, own, ending))
    return by_log


def over_logs(
    by_log: Mapping[str, Sequence[Part]], quantity: Callable[[Part], float]
) -> Interval:
    """Return the mean over the logs of a quantity; the clusters of a log count as one."""
    return mean_of([np.mean([quantity(part) for part in own]) for own in by_log.values()])


def in_percent(found: Interval) -> Interval:
    """Return an interval of logarithms of improvements as gains in percent."""
    mean, low, high = (100 * np.expm1(found[:3])).tolist()
    return found._replace(mean=mean, low=low, high=high)


def weakest(found: Sequence[Interval]) -> Interval:
    """Return the interval that decides whether all are above a bound."""
    return min(found, key=lambda one: one.low)


# ---- What claims.toml names: our numbers


def share(
    found: Runs, reading: str, *, names: Sequence[str], what: str, load: float | None = None
) -> Interval:
    """Return the share of the sessions that are better, faster, slower or equal, in percent.

    Of several schedulers it is that of the one with the smallest.
    """
    if what == "better":
        what = "faster" if reading == FASTER else "not worse"
    if what == "three times" and reading == FOURFOLD:
        what = "four times"
    among = parts(found, reading, [*names, *map(base_of, names)], load=load)
    return weakest([_share(among, name, what) for name in names])


def _share(among: Mapping[str, Sequence[Part]], name: str, what: str) -> Interval:
    one = over_logs(among, lambda p: SHARES[what](times(p.own, p.name(name))).mean()) * 100
    return one._replace(low=max(one.low, 0.0), high=min(one.high, 100.0))


def gain(
    found: Runs, reading: str, *, name: str, at: float | str = 0.5, load: float | None = None
) -> Interval:
    """Return the gain of sessions in percent: a quantile of the sessions, or their mean."""
    at = "mean" if reading == MEANS else at
    among = parts(found, reading, [name, base_of(name)], load=load)
    return in_percent(over_logs(among, lambda p: log_gain(times(p.own, p.name(name)), at)))


def gain_over(
    found: Runs,
    reading: str,
    *,
    name: str,
    others: Sequence[str],
    at: float | str = 0.5,
    load: float | None = None,
) -> Interval:
    """Return by how much sessions gain more with a scheduler than with the others, in percent."""
    at = "mean" if reading == MEANS else at
    among = parts(found, reading, ["FCFS", name, *others], load=load)

    def more(other: str) -> Callable[[Part], float]:
        return lambda p: log_gain(times(p.own, p.name(name)), at) - log_gain(
            times(p.own, p.name(other)), at
        )

    return weakest([in_percent(over_logs(among, more(other))) for other in others])


def loses_less(found: Runs, reading: str, *, name: str, than: str) -> Interval:
    """Return the area between two distributions of the improvement below 1, in points.

    It is the difference of the mean losses of a session, where an improvement of 0.9 loses 0.1.
    """
    among = parts(found, reading, ["FCFS", name, than])

    def loss(part: Part, of: str) -> float:
        return float(np.maximum(1 - times(part.own, part.name(of)), 0).mean())

    return over_logs(among, lambda p: loss(p, than) - loss(p, name)) * 100


def saved(found: Runs, reading: str, *, names: Sequence[str], metric: str) -> Interval:
    """Return the share by which schedulers lower a sum, in percent; of several, the smallest."""
    among = parts(found, reading, [*names, *map(base_of, names)])
    return weakest([_saved(among, reading, {name: 1.0}, metric) for name in names])


def saved_over(
    found: Runs, reading: str, *, metric: str, name: str, others: Sequence[str]
) -> Interval:
    """Return by how many points more a scheduler lowers a sum than the others."""
    among = parts(found, reading, [*{name, *others, base_of(name), *map(base_of, others)}])
    each = ({name: 1.0, other: -1.0} for other in others)
    return weakest([_saved(among, reading, weights, metric) for weights in each])


def saved_over_backfilled(
    found: Runs, reading: str, *, metric: str, names: Sequence[str]
) -> Interval:
    """Return by how many points schedulers lower a sum more without backfilling."""
    return weakest(
        [saved_over(found, reading, metric=metric, name=n, others=[f"{n}-BF"]) for n in names]
    )


def _saved(
    among: Mapping[str, Sequence[Part]], reading: str, weights: Mapping[str, float], metric: str
) -> Interval:
    """Return what schedulers save, each times its weight, in percent.

    It is the mean over the logs, or what they save of the sum over all logs.
    """
    if reading != SUMS:
        each = weights.items()
        return (
            over_logs(
                among, lambda p: sum(w * saved_share(p.own, p.name(n), metric) for n, w in each)
            )
            * 100
        )

    def total(own: Sequence[Part], name: str) -> float:
        each = (p.own[p.name(name)] for p in own)
        return float(sum(one[metric] * (one["evaluated"] if metric == QUEUES else 1) for one in each))

    before, after = (
        [[total(own, of(name)) for name in weights] for own in among.values()]
        for of in (base_of, str)
    )
    return reduction(before, after, [*weights.values()]) * 100


def more_saturated(
    found: Runs,
    reading: str,
    *,
    names: Sequence[str],
    metric: str = "",
) -> Interval:
    """Return what is gained more on the saturated cluster of a log than on its underused one.

    It is the median gain of sessions in percent, or what is saved of a metric, in points.
    """
    at = "mean" if reading == MEANS else 0.5
    among = parts(found, reading, ["FCFS", *names])
    among = {log: own for log, own in among.items() if log in OF_LOG}

    def of(part: Part, name: str) -> float:
        if metric:
            return saved_share(part.own, part.name(name), metric)
        return log_gain(times(part.own, part.name(name)), at)

    def more(name: str) -> Interval:
        each = [{p.workload.load: of(p, name) for p in own} for own in among.values()]
        one = mean_of([by[HIGH] - by[LOW] for by in each])
        return one * 100 if metric else in_percent(one)

    return weakest([more(name) for name in names])


def less_backfilled(found: Runs, reading: str, *, names: Sequence[str]) -> Interval:
    """Return how many more sessions are faster than FCFS without backfilling, in points.

    By means it is how much larger the mean improvement is, in percent.
    """
    among = parts(found, reading, ["FCFS", "FCFS-BF", *names, *(f"{name}-BF" for name in names)])

    def of(part: Part, name: str) -> float:
        ratios = times(part.own, part.name(name))
        return log_gain(ratios, "mean") if reading == MEANS else SHARES["faster"](ratios).mean()

    each = [over_logs(among, lambda p, n=n: of(p, n) - of(p, f"{n}-BF")) for n in names]
    return weakest([in_percent(one) if reading == MEANS else one * 100 for one in each])


def gain_by_backfilling(
    found: Runs, reading: str, *, names: Sequence[str], others: Sequence[str]
) -> Interval:
    """Return by how much backfilling improves the mean session more with some than with others."""
    both = [one + ending for one in (*names, *others) for ending in ("", "-BF")]
    among = parts(found, reading, both)

    def of(part: Part, name: str) -> float:
        return log_gain(times(part.own, part.name(f"{name}-BF"), part.name(name)), "mean")

    each = [
        over_logs(among, lambda p, o=one, n=other: of(p, o) - of(p, n))
        for one, other in product(names, others)
    ]
    return weakest([in_percent(one) for one in each])


def slower_over(found: Runs, reading: str, *, name: str, than: str, load: float) -> Interval:
    """Return how many more sessions are slower with a scheduler than with another, in points."""
    among = parts(found, reading, ["FCFS", name, than], load=load)

    def of(part: Part, one: str) -> float:
        return float(SHARES["slower"](times(part.own, part.name(one))).mean())

    return over_logs(among, lambda p: of(p, name) - of(p, than)) * 100


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


def columns(found: Runs, name: str, metric: str = "") -> Iterator[Column]:
    """Yield the gain of sessions, or what is saved of a metric, under each combination of choices.

    A combination that was not run on all of its workloads is left out.
    """
    logs = {
        "": [DAY.name, *(one.name for own in OF_LOG.values() for one in own)],
        "weeks": [one.name for own in OF_LOG.values() for one in own],
        "logs": [one.name for log in INTERLEAVED for one in OF_LOG[log]],
    }
    measures = ("",) if metric else ("", "mean")
    every = product(("", "written", "files"), ("", "backfilling"), measures, ("", "low", "high"), logs)
    for form, backfilled, measure, load, where in every:
        scheduler = name + ("-BF" if backfilled else "")
        among = logs[where]
        if load:
            among = [one for one in among if WORKLOADS[one].load == (LOW if load == "low" else HIGH)]
        if form == "files":
            if where != "logs":
                continue
            among = [f"{one}, interleaved" for one in among]
        if load and not where:
            continue  # the day has no load of its own
        try:
            by_log = parts(
                found,
                WRITTEN if form == "written" else MAIN,
                [scheduler, base_of(scheduler)],
                among=among,
            )
        except NotRunError:
            continue

        def of(part: Part) -> float:
            own = part.name(scheduler)
            if metric:
                return saved_share(part.own, own, metric)
            return log_gain(times(part.own, own), "mean" if measure else 0.5)

        one = over_logs(by_log, of)
        chosen = {form, backfilled, measure, load, where} - {""}
        yield Column(
            one * 100 if metric else in_percent(one), frozenset(CHOICES[c] for c in chosen)
        )


# ---- The noise floor

NOISE = {"median": "median session", "better": "sessions not worse", "files": "time of files"}


def numbers(by_log: Sequence[Sequence[Mapping[str, Any]]], name: str) -> dict[str, float]:
    """Return the means over logs, of which each has runs on one or two clusters."""

    def mean(of: Callable[[Mapping[str, Any]], float]) -> float:
        return float(np.mean([np.mean([of(run) for run in own]) for own in by_log]))

    return {
        "median": 100 * np.expm1(mean(lambda run: log_gain(times(run, name), 0.5))),
        "better": 100 * mean(lambda run: SHARES["not worse"](times(run, name)).mean()),
        "files": 100 * mean(lambda run: saved_share(run, name, FILES)),
    }


def floors(found: Runs, logs: Sequence[Sequence[Workload]], name: str) -> dict[str, Noise]:
    """Return the noise floor of the means over some logs, each a list of workloads."""
    drawn = [
        numbers([[found[shaken_of(one, seed).name] for one in own] for own in logs], name)
        for seed in SHAKEN["seeds"]
    ]
    return {what: noise_floor([one[what] for one in drawn]) for what in NOISE}


def shaken_logs() -> list[list[Workload]]:
    """Return the workloads of each log that was shaken."""
    return [OF_LOG.get(log, [DAY]) for log in SHAKEN["logs"]]


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
    return {(week, name): dict(zip(FIELDS, row)) for week, own in weeks for name, row in own.items()}


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
        "lea.median": gain(found, MAIN, name="LEA"),
        "lea.files": saved(found, MAIN, names=["LEA"], metric=FILES),
        "lem.slower": share(found, MAIN, names=["LEM"], what="slower"),
        "lem.median.logs": units_needed(claims["lem.median"].main + -7.5),
        "open.wide": all(
            claims[key].main.low < claims[key].main.mean * 2 for key in ("lem.median", "lem.files")
        ),
        "bf.lem.median": gain(found, MAIN, name="LEM-BF"),
        "killed": tuple(
            100 * found[name]["FCFS"]["killed"] / found[name]["FCFS"]["submitted"]
            for name in ("SDSC-BLUE, load 0.7", "CTC, load 0.7")
        ),
        "noise.seeds": len(SHAKEN["seeds"]),
        "noise.shake": SHAKEN["shake"],
        "noise.most.median": max(
            floors(found, [[one]], "LEM")["median"].smallest for own in shaken_logs() for one in own
        ),
    }
    values |= of_curve("curve", list(columns(found, "LEM")), claims["lem.median"].region)
    values |= of_curve("curve.files", list(columns(found, "LEM", FILES)), claims["lem.files"].region)
    for name in SHAKEN["schedulers"][1:]:
        for what, floor in floors(found, shaken_logs(), name).items():
            values[f"noise.{name.lower()}.{what}"] = floor
    table = queues(found).set_index(["a second of loading counts", "jobs of a queue"])
    for weight, name in ((1, "once"), (500, "500")):
        row = table.loc[weight, "1 to 12"]
        values |= {
            f"queues.{name}.{rule}": row[f"{rule.upper()} above best, %"] for rule in RULES
        }
        values |= {f"queues.{name}.proven": row["proven, %"], "queues": row["queues"]}
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
    for one in (DAY, *(one for own in OF_LOG.values() for one in own)):
        own = found[one.name]
        rows.append(
            {"workload": one.name}
            | {
                f"{name}: {head}": written(value, "%")
                for name, head, value in (
                    ("LEM", "median", 100 * (np.median(times(own, "LEM")) - 1)),
                    ("LEM", "files", 100 * saved_share(own, "LEM", FILES)),
                    ("LEA", "files", 100 * saved_share(own, "LEA", FILES)),
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
        shares = {n: 100 * saved_share(own, n + ending, metric) for n in GAINING}
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
        {"workload": workload, "scheduler": name, "base": base_of(name)}
        | dict(zip(FIELDS, described(times(own, name))))
        for workload, own in found.items()
        for name in own
        if WORKLOADS[workload].seed is None
    ]
    rows += [
        {"workload": f"the authors' week {week}", "scheduler": name, "base": base_of(name)} | one
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


def shared_files(found: Runs) -> pd.DataFrame:
    """Return the gains by the way of sharing files, where both were run."""
    rows = []
    for log, weeks in INTERLEAVED.items():
        for one in (*OF_LOG[log], *weeks):
            own = found[one.name]
            row = {"workload": f"{log}, load {one.load:g}"}
            row |= {"a file is shared by": "jobs in a row" if one.sharing == "consecutive" else "any"}
            row |= {"reused, %": 100 * (1 - own["FCFS"]["files"] / own["FCFS"]["evaluated"])}
            for name in ("LEA", "LEM"):
                row |= {
                    f"{name}: median gain, %": 100 * (np.median(times(own, name)) - 1),
                    f"{name}: time of files saved, %": 100 * saved_share(own, name, FILES),
                }
            rows.append(row)
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


def noise(found: Runs) -> pd.DataFrame:
    """Return the noise floors of each workload, and of the mean over their logs."""
    each = {one.name: [[one]] for own in shaken_logs() for one in own} | {"mean": shaken_logs()}
    return pd.DataFrame(
        {
            "workload": where,
            "scheduler": name,
            "number": NOISE[what],
            "from": written(floor.low, digits=1),
            "to": written(floor.high, digits=1),
            "smallest effect to be seen": written(floor.smallest, digits=1),
        }
        for where, logs in each.items()
        for name in SHAKEN["schedulers"][1:]
        for what, floor in floors(found, logs, name).items()
    )


def noise_short(found: Runs) -> pd.DataFrame:
    """Return the smallest effects that could be seen: on the noisiest workload, and in the mean."""
    each = [floors(found, [[one]], name) for name in SHAKEN["schedulers"][1:] for own in shaken_logs() for one in own]
    half = len(each) // 2
    return pd.DataFrame(
        {
            "number": f"{name}, {NOISE[what]}",
            "on one workload, up to": written(max(one[what].smallest for one in own), digits=1),
            "in the mean": written(floors(found, shaken_logs(), name)[what].smallest, digits=1),
        }
        for name, own in zip(SHAKEN["schedulers"][1:], (each[:half], each[half:]))
        for what in NOISE
    )


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
        "files": shared_files(found),
        "noise": noise(found),
        "noise-short": markdown(noise_short(found)),
        "queues": queues(found),
        "workloads": workloads(found),
        "sessions": sessions(found),
    }


def figures(found: Runs, claims: Mapping[str, Any], *, narrow: bool) -> dict[str, Figure]:
    """Draw the figures of the page, for a wide page or a phone."""
    panel = claims_panel(claims, narrow=narrow, limits={SHARE_UNIT: (0, 100)})
    shares = panel.axes[1]  # all numbers are of one size there
    shares.set_xscale("linear")
    shares.set_xlim(0, 100)
    shares.set_xticks(range(0, 100, 25))
    options: dict[str, Any] = {"narrow": narrow, "claimed": claims["lem.median"].region}
    curve = specification_curve(
        columns(found, "LEM"), [*CHOICES.values()], "gain of sessions with LEM, %",
        limits=(-15, 65), **options,
    )  # fmt: skip
    options["claimed"] = claims["lem.files"].region
    files = specification_curve(
        columns(found, "LEM", FILES), [one for one in CHOICES.values() if "mean" not in one],
        "time of files saved with LEM, %", limits=(-5, 15), **options,
    )  # fmt: skip
    both = {"readings": curve, "readings-files": files}
    return {"claims": panel, **both, "sessions": improvement_figure(found, narrow=narrow)}


def improvement_figure(found: Runs, *, narrow: bool) -> Figure:
    """Draw the improvement of sessions by LEM and LEA on each workload, as Figure 8."""
    rows: list[tuple[str, dict[str, Sequence[float]]]] = []
    for one in (DAY, *(one for own in OF_LOG.values() for one in own)):
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
