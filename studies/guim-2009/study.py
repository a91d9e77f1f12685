"""Guim et al. 2009: the numbers, tables and figures of the page, from the runs of plan.toml."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from optsched.metrics.jobs import bounded_slowdown
from optsched.numbers import written
from optsched.schedule import State
from optsched.studies.claims import Claim, NotRunError
from optsched.studies.figures import NARROW, WIDE, Column, specification_curve
from optsched.studies.intervals import Interval, mean_of, noise_floor
from optsched.text_files import read_toml
from optsched.traces.catalogue import find_log
from optsched.traces.reading import read_trace
from optsched.traces.trace import Trace
from optsched.traces.transformations import drawn

NAMES = (
    "bounded_slowdown",
    "wait",
    "penalised_percent",
    "penalised_slowdown",
    "requested_slowdown",
)
KINDS = ("p95", "mean")
CENTRES, MIXES, BANDWIDTH, PROCESSORS = ("CTC", "SDSC"), ("HIGH", "MED", "LOW"), 6000, 4
LOW_END, HIGH_END, CHOSEN = 1700, 1800, 2000
ENDS = (LOW_END, HIGH_END)
KILLED, SLOWDOWN, PENALTY = "killed", "p95_bounded_slowdown", "mean_penalised_percent"
_PUBLISHED = read_toml(Path(__file__).with_name("published.toml"))
PAPER = {one["metric"]: one for one in _PUBLISHED["tables"]}
COLUMNS = _PUBLISHED["policies"]


# ---- The runs


def workloads(plan: Mapping[str, Any], run: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    """Yield centre, mix, part and amount of each workload of a block."""
    own = plan["own"]
    mixes = [mix for mix in run["mix"] if mix in own.get("mixes", run["mix"])]
    highs = [high for high in run["high"] if high in own.get("highs", run["high"])]
    several = run["centre"] if isinstance(run["centre"], list) else [run["centre"]]
    yield from product(several, mixes, own["parts"], highs)


def file_of(centre: str, mix: str, part: int, high: int) -> str:
    """Return the name of the trace of a workload."""
    return f"{centre.partition(' ')[0]}-{mix}-{part}-{high}.swf.gz"


def runs(plan: Mapping[str, Any], folders: Sequence[Path]) -> list[dict[str, Any]]:
    """Return a block for each workload of the blocks of the plan."""
    return [
        {key: value for key, value in run.items() if key not in ("mix", "high")}
        | {"centre": centre, "trace": f"inputs/{file_of(centre, mix, part, high)}"}
        | {"label": {"mix": mix, "part": str(part), "high": str(high)}}
        for run in plan["runs"]
        for centre, mix, part, high in workloads(plan, run)
    ]


def inputs(plan: Mapping[str, Any], folders: Sequence[Path]) -> dict[str, Trace]:
    """Draw the demands of the jobs of each part of each log."""
    jobs, logs = plan["own"]["jobs"], plan["own"]["logs"]
    whole = {name: read_trace(find_log(file, folders)) for name, file in logs.items()}
    needed = {file_of(*one): one for run in plan["runs"] for one in workloads(plan, run)}
    return {
        file: drawn(
            whole[file.partition("-")[0]].jobs((part - 1) * jobs + 1, part * jobs),
            mix,
            part,
            {"high": high},
        )
        for file, (_, mix, part, high) in needed.items()
    }


FIGURES = ("killed", "killed_with_slack", *(f"{kind}_{name}" for name in NAMES for kind in KINDS))
LABELS = (
    "centre",
    "scheduler",
    "limits",
    "worst",
    "mix",
    "part",
    "high",
    "ties",
    "seed",
    "shake",
    "shake_seed",
)


def prepare(results: pd.DataFrame, inputs: Path) -> pd.DataFrame:
    """Keep labels, and the figures of the measured jobs."""
    jobs = (pd.read_parquet(Path(folder) / "jobs.parquet") for folder in results["folder"])
    frame = results.assign(**pd.DataFrame(map(figures_of, jobs), index=results.index))
    stated = ("run", "trace", "machine", "folder", *LABELS, "problems")
    return frame[[name for name in (*stated, *FIGURES) if name in frame]]


def figures_of(jobs: pd.DataFrame) -> dict[str, float]:
    """Compute the figures of the measured jobs; slowdowns, waits and penalties of finished ones."""
    own = jobs[jobs["measured"] > 0]
    finished = own[own["final_state"] == State.FINISHED]
    killed = own[own["final_state"] == State.KILLED]
    found = {
        "killed": len(killed),
        "killed_with_slack": int((killed["requested_time"] > killed["run_time"]).sum()),
    }
    columns = {
        "bounded_slowdown": slowdown(finished, "run_time"),
        "penalised_slowdown": finished["bounded_slowdown"],
        "requested_slowdown": slowdown(finished, "requested_time"),
        "wait": finished["waiting_time"],
        "penalised_percent": finished["penalised_percent"],
    }
    for name, column in columns.items():
        values = np.asarray(column, dtype=float)
        found[f"p95_{name}"] = float(np.percentile(values, 95))
        found[f"mean_{name}"] = float(values.mean())
    return found


def slowdown(jobs: pd.DataFrame, over: str) -> np.ndarray:
    """Return the bounded slowdown over a column of times."""
    response, time = (jobs[name].to_numpy(float) for name in ("turnaround_time", over))
    return bounded_slowdown(response - time, time)


# ---- Sums over mixes, by part


class Reading(NamedTuple):
    """One way to read what the paper leaves open.

    Whose limits are raised is that of RUA alone, unless `limits` states it for everybody.
    """

    high: int = LOW_END
    worst: str = "in-all"
    limits: str = ""
    instead: Mapping[str, str] = {}
    centres: Mapping[str, str] = {}


AT_2000 = Reading(CHOSEN, "at-each-instant")
REQUESTED = {"bounded_slowdown": "requested_slowdown"}
SLACK = {KILLED: "killed_with_slack"}
READINGS = {
    "low": Reading(),
    "high": Reading(HIGH_END),
    "chosen": AT_2000,
    "raised": AT_2000._replace(limits="raised"),
}
BOTH_ENDS: Mapping[str, Mapping[str, Any]] = {
    "both": {},
    "all": {"limits": "raised"},
    "slack": {"instead": SLACK},
    "requested": {"instead": REQUESTED},
}
"""Readings at both ends of what Table 6 allows, each with what it changes."""


class Runs(NamedTuple):
    """All runs, and the usual ones: a row for each part of a log, a column for each mix.

    They are found by the amount of high demands, the rule for a job's worst node, the limits, the
    scheduler and the center.
    """

    all: pd.DataFrame
    by: dict[tuple[Any, ...], pd.DataFrame]


def load(results: pd.DataFrame) -> Runs:
    """Fill in what runs do not state, and arrange the usual ones."""
    unstated = {"ties": "", "seed": -1, "shake": 0, "shake_seed": -1}
    own = {
        name: results[name].fillna(unstated[name]) if name in results else unstated[name]
        for name in unstated
    }
    frame = results.assign(
        **own, part=results["part"].astype(int), high=results["high"].astype(int)
    )
    by = ["high", "worst", "limits", "scheduler", "centre"]
    frame = frame.set_index([*by, "mix", "part"]).sort_index()
    groups = usual(frame).groupby(by)
    return Runs(frame, {key: own.droplevel(by).unstack("mix") for key, own in groups})


def usual(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs that are neither shaken nor have random ties."""
    return runs[(runs["shake"] == 0) & (runs["ties"] != "random")]


def is_first_fit(scheduler: str, high: int) -> bool:
    """Return whether a threshold allows the penalty of a full node of high demands.

    Then no process is moved, no job waits for less penalty, and the runs are those of First Fit.
    """
    name, _, threshold = scheduler.partition("=")
    exact = "," in threshold
    return name == "LCT" and not exact and float(threshold) >= PROCESSORS * high / BANDWIDTH


def sums(
    runs: Runs,
    scheduler: str,
    metric: str,
    reading: Reading,
    centres: Sequence[str] = CENTRES,
    mixes: Sequence[str] = MIXES,
) -> np.ndarray:
    """Return a metric of each part of the logs, summed over mixes of demands."""
    for name, other in reading.instead.items():
        metric = metric.replace(name, other)
    scheduler = "FF" if is_first_fit(scheduler, reading.high) else scheduler
    limits = reading.limits or ("raised" if scheduler.startswith("RUA") else "requested")
    found = []
    for centre in centres:
        place = reading.centres.get(centre, centre)
        try:
            own = runs.by[reading.high, reading.worst, limits, scheduler, place]
            table = own[[(metric, mix) for mix in mixes]].to_numpy(float)
        except KeyError:
            raise NotRunError from None
        if np.isnan(table).any():
            raise NotRunError
        found.append(table.sum(axis=1))
    return np.concatenate(found)


def times_at(
    runs: Runs,
    reading: Reading,
    one: str,
    other: str | Sequence[str],
    metric: str,
    centres: Sequence[str] = CENTRES,
    mixes: Sequence[str] = MIXES,
) -> Interval:
    """Return how many times another scheduler's a metric is: the mean over parts.

    Of several others, the least number is taken in each part.
    """
    others = [other] if isinstance(other, str) else other
    new, *old = (sums(runs, name, metric, reading, centres, mixes) for name in (one, *others))
    least = np.min(old, axis=0)
    if not least.all():
        raise NotRunError  # nothing is no multiple of nothing
    found = mean_of(np.round(new / least, 8))  # sums of equal numbers may differ
    return found._replace(low=max(found.low, 0.0))


def in_percent(times: Interval) -> Interval:
    """Return a ratio as a change in percent."""
    return (times + -1) * 100


def spanning(one: Interval, other: Interval) -> Interval:
    """Return an interval that holds two; between them lies the number that is lost."""
    mean, low, high = (
        (one.mean + other.mean) / 2,
        min(one.low, other.low),
        max(one.high, other.high),
    )
    return Interval(mean, low, high, one.n, one.kind)


# ---- What claims.toml names: our numbers, and those of the paper


def times(runs: Runs, reading: str, **what: Any) -> Interval:
    """Return how many times another's a metric is; at both ends, an interval that spans the two."""
    if reading not in BOTH_ENDS:
        return times_at(runs, READINGS[reading], **what)
    ends = (Reading(high, **BOTH_ENDS[reading]) for high in ENDS)
    return spanning(*(times_at(runs, end, **what) for end in ends))


def paper_times(
    runs: Runs,
    *,
    one: str,
    other: str | Sequence[str],
    metric: str,
    centres: Sequence[str] = CENTRES,
    mixes: Sequence[str] = MIXES,
) -> float:
    """Return the same of the paper's tables, over the mixes that are legible for both."""
    names = [one, *([other] if isinstance(other, str) else other)]
    rows = [MIXES.index(mix) for mix in mixes]
    found = []
    for centre in centres:
        table = pd.DataFrame(PAPER[metric][centre], columns=COLUMNS).iloc[rows][names].dropna()
        total = table.sum()
        found.append(total.iloc[0] / total.iloc[1:].min())
    return float(np.mean(found))


# ---- Which amount fits Table 6, and all readings together


def mean(runs: Runs, scheduler: str, metric: str, reading: Reading, centre: str, mix: str) -> float:
    """Return the mean of a metric over the parts of a log."""
    return float(sums(runs, scheduler, metric, reading, (centre,), (mix,)).mean())


def misfit(
    runs: Runs, high: int, centres: Sequence[str], schedulers: Sequence[str] = ("FF",)
) -> float:
    """Return by what factor mean penalties differ from Table 6 with HIGH and MED.

    It is the root of the mean square of the logarithms.
    """
    logs = [
        np.log(
            mean(runs, scheduler, PENALTY, Reading(high), centre, mix)
            / PAPER[PENALTY][centre][MIXES.index(mix)][COLUMNS.index(scheduler)]
        )
        for centre, mix, scheduler in product(centres, MIXES[:2], schedulers)
    ]
    return float(np.exp(np.sqrt(np.mean(np.square(logs)))))


def scanned(runs: Runs, mix: str = "HIGH") -> list[int]:
    """Return the amounts of the scan that were run with a mix."""
    own = runs.all.xs(("in-all", "raised", "RUA", "SDSC", mix), level=[1, 2, 3, 4, 5])
    return sorted(set(own.index.get_level_values("high")))


def killed_at(runs: Runs, reading: Reading, centre: str, mix: str = "HIGH") -> Interval:
    """Return how many times First Fit's killed jobs RUA has at a center."""
    return times_at(runs, reading, "RUA", "FF", KILLED, (centre,), (mix,))


BELOW, ABOVE = "up to 1,725 MB/s", "from 1,726 MB/s on"
INSTANT, RAISED, NOBODY = "worst node at each instant", "all limits raised", "no limit raised"
MEDIUM, HEADER, WITH_SLACK = (
    "MED in place of HIGH",
    "a CTC of 340 processors",
    "jobs with slack alone",
)
CHOICES = (BELOW, ABOVE, MEDIUM, INSTANT, RAISED, NOBODY, HEADER, WITH_SLACK)
TURN = 1725
"""What may differ, and the largest amount whose penalty the least threshold of RUA allows."""


def columns(runs: Runs) -> Iterator[Column]:
    """Yield RUA's killed jobs in CTC over First Fit's under all combinations that were run."""
    rules = {"in-all": None, "at-each-instant": INSTANT}
    limits = {"": None, "raised": RAISED, "requested": NOBODY}
    sizes: dict[str, Any] = {"": {}, HEADER: {"CTC": "CTC of 340"}}
    jobs: dict[str, Any] = {"": {}, WITH_SLACK: SLACK}
    highs = scanned(runs)
    for high, worst, raised, size, own, mix in product(
        highs, rules, limits, sizes, jobs, MIXES[:2]
    ):
        if own and high not in (*ENDS, CHOSEN):
            continue
        reading = Reading(high, worst, raised, jobs[own], sizes[size])
        try:
            found = killed_at(runs, reading, "CTC", mix)
        except NotRunError:
            continue
        made = {BELOW if high <= TURN else ABOVE, rules[worst], limits[raised], size, own}
        made |= {MEDIUM} if mix == "MED" else set()
        yield Column(found, frozenset(one for one in made if one))


def floors(runs: Runs) -> Iterator[tuple[str, str, str, Any]]:
    """Yield the noise floor of a change from First Fit: log, scheduler, metric, floor."""
    shaken = runs.all[runs.all["shake"] > 0].set_index("shake_seed", append=True)
    for centre, scheduler, metric in product(CENTRES, ("LC", "RUA"), (KILLED, PENALTY, SLOWDOWN)):
        own = shaken.xs(centre, level="centre")[metric]
        new, old = (
            own.xs(name, level="scheduler").groupby(["shake_seed", "part"]).sum().unstack("part")
            for name in (scheduler, "FF")
        )
        yield centre, scheduler, metric, noise_floor(100 * (new / old - 1).mean(axis=1))


# ---- What the page needs


def values(runs: Runs, claims: dict[str, Claim]) -> dict[str, Any]:
    """Return the values of the page by name."""
    low, high = READINGS["low"], READINGS["high"]
    highs, mixed = scanned(runs), scanned(runs, "MED")
    fits = {
        name: {one: misfit(runs, one, centres) for one in mixed}
        for name, centres in (("ctc", ("CTC",)), ("sdsc", ("SDSC",)), ("all", CENTRES))
    }
    best = {name: min(fit, key=lambda one: fit[one]) for name, fit in fits.items()}
    curve = [*columns(runs)]
    verdicts = [claims["rua.killed.ctc"].region.verdict(one.found) for one in curve]
    plain = [one for one in curve if not one.choices & {WITH_SLACK, RAISED, NOBODY}]
    below, above = (
        [one.found.mean for one in plain if side in one.choices] for side in (BELOW, ABOVE)
    )
    slack, killed = (sums(runs, "FF", one, high) for one in (SLACK[KILLED], KILLED))
    raised = [killed_at(runs, Reading(one, limits="raised"), "CTC") for one in ENDS]
    quarter = claims["lc.killed"]
    shares = parts(runs, low)["CTC"]

    def first_fit(metric: str, reading: Reading = low, centre: str = "CTC") -> float:
        return mean(runs, "FF", metric, reading, centre, "HIGH")

    requested = low._replace(instead=REQUESTED)
    found: dict[str, Any] = {
        "runs": len(runs.all),
        "jobs": len(runs.all) * 20_000,
        "parts": len(shares),
        "parts.all": claims["rua.penalty"].main.n,
        "ends": ENDS,
        "low.end": LOW_END,
        "high.end": HIGH_END,
        "chosen": CHOSEN,
        "turn": TURN,
        "claims.judged": sum(bool(one.found) for one in claims.values()),
        "claims.opposed": sum(
            {one.verdict(end) for end in ("low", "high")} == {"holds", "does not hold"}
            for one in claims.values()
            if one.found
        ),
        "lc.killed.never": {quarter.verdict(one) for one in quarter.found} == {"does not hold"},
        "rua.fewer": claims["rua.lc.killed"].verdict() == "holds"
        and all(killed_at(runs, Reading(end), at).high < 1 for end, at in product(ENDS, CENTRES)),
        "third.most": 100 * claims["rua.killed.ctc"].region.high,
        "parts.ctc.low": (shares.min(), shares.max()),
        "scan.n": len(highs),
        "scan.others": len(highs) - 2,
        "scan.range": (highs[0], highs[-1]),
        "best.ctc": best["ctc"],
        "best.sdsc": best["sdsc"],
        "best.all": best["all"],
        "misfit.ctc": fits["ctc"][best["ctc"]],
        "misfit.sdsc": fits["sdsc"][best["sdsc"]],
        "misfit.chosen": fits["all"][CHOSEN],
        "factor.turn": PROCESSORS * TURN / BANDWIDTH,
        "turn.between": best["ctc"] < TURN < best["sdsc"],
        "turn.at.ctc": 100 * killed_at(runs, Reading(TURN), "CTC").mean,
        "turn.at.sdsc": 100 * killed_at(runs, Reading(TURN), "SDSC").mean,
        "turn.after.ctc": 100 * killed_at(runs, Reading(TURN + 1), "CTC").mean,
        "turn.after.sdsc": 100 * killed_at(runs, Reading(TURN + 1), "SDSC").mean,
        "high.for-1.25": 1.25 * BANDWIDTH / PROCESSORS,
        "high.for-1.5": 1.5 * BANDWIDTH / PROCESSORS,
        "thresholds.are-first-fit": is_first_fit("LCT=1.25", HIGH_END),
        "curve": len(curve),
        "curve.holds": verdicts.count("holds"),
        "curve.fails": verdicts.count("does not hold"),
        "curve.apart": max(below) < min(above),
        **{
            f"{name}.times": tuple(
                100 * killed_at(runs, Reading(one, instead=own), "CTC").mean for one in ENDS
            )
            for name, own in (("slack", SLACK), ("all", {}))
        },
        "lc.killed.percent": 100 * quarter.main.mean,
        "raised.high.more": 100 * raised[1].mean - 100,
        "slack.none": 100 * (1 - slack.sum() / killed.sum()),
        "raised.low": raised[0],
        "raised.high": raised[1],
        "raised.as-few": all(one.high > 1 for one in raised),
        "raised.ff.sdsc": sum(
            sums(runs, "FF", KILLED, Reading(one, limits="raised"), ("SDSC",), MIXES[:2]).sum()
            for one in ENDS
        ),
        "killed.ctc": first_fit(KILLED),
        "penalty.p95.low": first_fit("p95_penalised_percent"),
        "penalty.p95.high": first_fit("p95_penalised_percent", high),
        "slowdown.ctc": first_fit(SLOWDOWN),
        "slowdown.sdsc": first_fit(SLOWDOWN, centre="SDSC"),
        "slowdown.ctc.paper": PAPER[SLOWDOWN]["CTC"][0][0],
        "slowdown.sdsc.paper": PAPER[SLOWDOWN]["SDSC"][0][0],
        "slowdown.ctc.requested": first_fit(SLOWDOWN, requested),
        "slowdown.sdsc.requested": first_fit(SLOWDOWN, requested, "SDSC"),
        "instant.most": most_by_node(runs),
        "exact.same": same(runs, "LC, exact", "LC", "raised"),
    }
    for name, metric, sign in (("killed.fall", KILLED, -1), ("slowdown", SLOWDOWN, 1)):
        own = times_at(runs, READINGS["raised"], "RUA, exact", "RUA", metric)
        found[f"exact.{name}"] = in_percent(own) * sign
    shaken = {one[:3]: one[3] for one in floors(runs)}["SDSC", "RUA", SLOWDOWN]
    found |= {"slowdown.shaken.low": -shaken.low, "slowdown.shaken.high": shaken.high}
    for metric in (KILLED, PENALTY, SLOWDOWN):
        short = TITLES[metric].partition(",")[0].split()[0]
        ties = times_at(runs, READINGS["raised"], "LC, other ties", "LC, exact", metric)
        found[f"ties.{short}"] = in_percent(ties)
        found |= {
            f"noise.{centre}.{scheduler}.{short}".lower(): floor
            for centre, scheduler, one, floor in floors(runs)
            if one == metric
        }
    return found


def parts(runs: Runs, reading: Reading) -> dict[str, np.ndarray]:
    """Return RUA's killed jobs in percent of First Fit's, in each part, with HIGH."""
    return {
        centre: 100
        * sums(runs, "RUA", KILLED, reading, (centre,), ("HIGH",))
        / sums(runs, "FF", KILLED, reading, (centre,), ("HIGH",))
        for centre in CENTRES
    }


def most_by_node(runs: Runs) -> float:
    """Return by how many percent the other rule of the worst node changes killed jobs, at most."""
    other = {one: Reading(one, "at-each-instant") for one in ENDS}
    cases = product(ENDS, ("FF", "LC", "RUA"), CENTRES, MIXES[:2])
    return max(
        100 * abs(mean(runs, name, KILLED, other[one], *at) / own - 1)
        for one, name, *at in cases
        if (own := mean(runs, name, KILLED, Reading(one), *at))
    )


def same(runs: Runs, one: str, other: str, limits: str = "requested") -> bool:
    """Return whether two schedulers have the same figures in all runs with 2,000 MB/s."""
    own = usual(runs.all).loc[(CHOSEN, AT_2000.worst, limits)][[*FIGURES]]
    both = (
        own.loc[name].drop("CTC of 340", level="centre", errors="ignore") for name in (one, other)
    )
    return bool(np.allclose(*both, rtol=1e-8))


TITLES = {
    KILLED: "killed jobs",
    "mean_penalised_percent": "penalty, mean, %",
    "p95_penalised_percent": "penalty, 95th percentile, %",
    SLOWDOWN: "slowdown, 95th percentile",
    "mean_bounded_slowdown": "slowdown, mean",
    "p95_wait": "wait, 95th percentile, s",
    "mean_wait": "wait, mean, s",
}
"""The metrics, in words."""


def tables(runs: Runs, claims: dict[str, Claim]) -> dict[str, pd.DataFrame | str]:
    """Return the tables of the page, and those of the data beside it."""
    found: dict[str, pd.DataFrame | str] = {"scan": scan(runs), "noise": noise(runs)}
    for metric, one in PAPER.items():
        found[f"table-{one['number']}"] = beside_paper(runs, metric)
    found["figures-8-9"] = rua(runs)
    found["exact"] = pd.DataFrame(
        {"in place of": other, "scheduler": one, "metric": TITLES[metric], "change, %": own.mean}
        | {"low": own.low, "high": own.high, "interval": own.how}
        for one, other in (
            ("LC, exact", "LC"), ("LC, exact for all", "LC"), ("LC, other ties", "LC, exact"),
            ("LCT=1.15, least penalty", "LCT=1.15"), ("RUA, exact", "RUA"),
        )
        for metric in TITLES
        for own in [in_percent(times_at(runs, READINGS["raised"], one, other, metric))]
    )  # fmt: skip
    found["all"] = (
        usual(runs.all)[[*FIGURES]].groupby(level=[0, 1, 2, 3, 4, 5]).mean().reset_index()
    )
    return found


def scan(runs: Runs) -> pd.DataFrame:
    """Return RUA's killed jobs in percent of First Fit's with HIGH, and the fit of Table 6."""
    rows = {}
    for high in scanned(runs):
        own = {
            centre: written(100 * killed_at(runs, Reading(high), centre).mean, "%", 0)
            for centre in CENTRES
        }
        try:
            fits = " / ".join(
                written(misfit(runs, high, (centre,)), digits=2) for centre in CENTRES
            )
        except NotRunError:
            fits = ""
        rows[f"{high:,}"] = own | {"Table 6: CTC / SDSC": fits}
    return pd.DataFrame(rows).T.rename_axis("MB/s")


def noise(runs: Runs) -> pd.DataFrame:
    """Return the noise floors as a table."""
    return pd.DataFrame(
        {
            "log": centre,
            "First Fit to": {"LC": "LessConsume"}.get(scheduler, scheduler),
            "change of": TITLES[metric].partition(",")[0],
            "from … to, %": f"{written(floor.low)}&nbsp;…&nbsp;{written(floor.high)}",
            "smallest effect seen": written(floor.smallest),
        }
        for centre, scheduler, metric, floor in floors(runs)
    )


def beside_paper(runs: Runs, metric: str) -> pd.DataFrame:
    """Return a table of the paper with ours at both ends, and with 2,000 MB/s."""
    rows = []
    for centre, mix in product(CENTRES, MIXES):
        numbers = PAPER[metric][centre][MIXES.index(mix)]
        label = {"center": centre, "mix": mix}
        rows.append(label | {"": "paper"} | dict(zip(COLUMNS, map(written, numbers))))
        for name, reading in (("1,700", "low"), ("1,800", "high"), ("2,000", "chosen")):
            own = (
                mean(runs, scheduler, metric, READINGS[reading], centre, mix)
                for scheduler in COLUMNS
            )
            rows.append(label | {"": name} | dict(zip(COLUMNS, map(written, own))))
    return pd.DataFrame(rows)


def rua(runs: Runs) -> pd.DataFrame:
    """Return the numbers of Figures 8 and 9 at both ends."""
    return pd.DataFrame(
        {"center": centre, "mix": mix, "metric": TITLES[metric]}
        | {
            f"{scheduler}, {high:,}": written(
                mean(runs, scheduler, metric, Reading(high), centre, mix)
            )
            for high in ENDS
            for scheduler in ("FF", "LC", "RUA")
        }
        for centre, metric, mix in product(
            CENTRES, (SLOWDOWN, "p95_wait", "p95_penalised_percent", PENALTY, KILLED), MIXES
        )
    )


def figures(runs: Runs, claims: dict[str, Claim], *, narrow: bool) -> dict[str, Figure]:
    """Draw the figures of the page, for a wide page or a phone."""
    curve = specification_curve(
        columns(runs),
        [*CHOICES],
        "RUA's killed jobs in CTC over First Fit's",
        limits=(-0.02, 1.82),
        claimed=claims["rua.killed.ctc"].region,
        unit="times",
        narrow=narrow,
    )
    return {"scan": draw_scan(runs, narrow=narrow), "readings": curve}


def draw_scan(runs: Runs, *, narrow: bool) -> Figure:
    """Draw killed jobs and mean penalties by the amount of a high demand, with the paper's."""
    figure = Figure((NARROW if narrow else WIDE, 5.6 if narrow else 3.1), layout="constrained")
    killed, fit = figure.subplots(2, 1) if narrow else figure.subplots(1, 2)
    looks = {"CTC": ("#0072B2", "o", 1 / 3), "SDSC": ("#D55E00", "s", 1 / 5)}
    for centre, (color, marker, paper) in looks.items():
        highs = scanned(runs)
        own = np.array([parts(runs, Reading(high))[centre] for high in highs])
        killed.fill_between(highs, own.min(axis=1), own.max(axis=1), color=color, alpha=0.2, lw=0)
        killed.plot(highs, own.mean(axis=1), marker=marker, color=color, markersize=4, label=centre)
        killed.axhline(100 * paper, color=color, linestyle=":", linewidth=1.2)
        for mix, style in (("HIGH", "-"), ("MED", "--")):
            highs = scanned(runs, mix)
            own = [mean(runs, "FF", PENALTY, Reading(high), centre, mix) for high in highs]
            of_paper = PAPER[PENALTY][centre][MIXES.index(mix)][0]
            fit.plot(
                highs, np.array(own) / of_paper, style, marker=marker, color=color, markersize=4,
                label=f"{centre}, {mix}",
            )  # fmt: skip
    for axes in (killed, fit):
        axes.axvline(TURN, color="#666666", linewidth=1.0)
        axes.axvspan(LOW_END, HIGH_END, color="#EEDD88", alpha=0.5, lw=0, zorder=0)
        axes.set(xlabel="high demand, MB/s for each process")
    fit.axhline(1, color="#666666", linewidth=1.0)
    killed.set(ylabel="RUA's killed jobs, % of First Fit's", ylim=(-3, 62))
    fit.set(ylabel="mean penalty, here over paper", ylim=(0, 3))
    killed.legend(loc="upper left")
    fit.legend(loc="lower right")
    return figure
