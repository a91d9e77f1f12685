"""Franke et al. 1999: the numbers, tables and figures of the page, from the runs of plan.toml."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path, PurePath
from textwrap import fill
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from optsched.machines.machine import read_machine
from optsched.numbers import written
from optsched.report.style import GREY, LINES
from optsched.studies.claims import Claim, NotRunError, without_noise
from optsched.studies.figures import NARROW, WIDE, Column, specification_curve
from optsched.studies.intervals import Interval, Noise, mean_of, noise_floor
from optsched.traces.reading import read_trace
from optsched.traces.trace import Trace

from .workloads import Change, file_of, modeled, traces, workloads

# ---- The runs


def runs(plan: Mapping[str, Any], folders: Sequence[Path]) -> list[dict[str, Any]]:
    """Return a block for each workload of the blocks of the plan."""
    return [
        {key: value for key, value in run.items() if key != "workloads"}
        | {"trace": f"inputs/{file_of(one)}", "label": run.get("label", {}) | one}
        for run in plan["runs"]
        for one in workloads(plan["own"], run["workloads"])
    ]


def inputs(plan: Mapping[str, Any], folders: Sequence[Path]) -> dict[str, Trace]:
    """Draw the workloads, and cut the parts out of SDSC-BLUE."""
    sets = dict.fromkeys(name for run in plan["runs"] for name in run["workloads"])
    return traces(plan["own"], [*sets], folders)


NODES, LARGE, SLICE = 320, 33, 60
"""Nodes of the machine, the least size of a large job, and seconds of a time slice."""

LABELS = ["run", "trace", "kind", "interarrival", "service", "draw", "change", "part", "stand_in"]
LABELS += ["strategy", "queue", "sharing", "packing", "cost"]
STATED = ["job_memory", "variation", "shake", "shake_seed"]
FIGURES = ["jobs", "utilization", "makespan", "mean_wait", "mean_response", "mean_pause"]
FIGURES += ["large_mean_wait", "large_mean_response", "problems", "unproven", "heuristic_matched"]
FIGURES += ["paged_jobs"]


def prepare(results: pd.DataFrame, inputs: Path) -> pd.DataFrame:
    """Keep labels, settings and figures of runs, and add figures of the workloads."""
    frame = results.rename(columns={f"settings.{name}": name for name in STATED})
    cases = list(zip((PurePath(trace).name for trace in frame["trace"]), frame["machine"]))
    found = {one: offered_by(read_trace(inputs / one[0]), one[1]) for one in dict.fromkeys(cases)}
    added = pd.DataFrame([found[one] for one in cases], index=frame.index)
    return frame.reindex(columns=[*LABELS, *STATED, *FIGURES]).join(added)


def offered_by(trace: Trace, machine: str) -> dict[str, float]:
    """Return the load that a workload offers to a machine, and what else describes it.

    ``runtime_cv`` is the coefficient of variation of the run times, ``side_by_side`` the number of
    jobs of mean size for which the machine has nodes.
    """
    nodes = read_machine(machine).size
    seconds = float(trace.submit.max() - trace.submit.min())
    work = float((trace.processors * trace.runtime).sum())
    return {
        "days": seconds / 86_400,
        "offered": work / (nodes * seconds) if seconds else float("inf"),
        "mean_runtime": float(trace.runtime.mean()),
        "runtime_cv": float(trace.runtime.std() / trace.runtime.mean()),
        "side_by_side": nodes / float(trace.processors.mean()),
    }


# ---- Two strategies on the same workloads


class System(NamedTuple):
    """A strategy; of gang scheduling the level, and how it is done."""

    strategy: str
    queue: str = ""
    sharing: str = ""
    packing: str = ""
    cost: str = ""


FCFS, BACKFILLING, EASY = (System(name) for name in ("FCFS", "backfilling", "EASY"))
LEVELS = ("MPL 2", "MPL 3", "MPL 5")
ORDER, PASSING = "in order", "jobs pass"
WORKLOAD = ["interarrival", "service", "draw"]
KEPT_UP = 0.97
"""A strategy keeps up with a workload whose jobs arrive in at least this share of the makespan.
Where it does not, queues grow as long as jobs are submitted, and means say how long that was."""

METRICS = {
    "mean_response": "response",
    "mean_wait": "wait",
    "large_mean_response": "response, large jobs",
    "large_mean_wait": "wait, large jobs",
}
SHARINGS, EXACT = ("fill", "rows", "nodes", "turns"), "exact"


def gang(level: str, reading: str = "fill", queue: str = ORDER) -> System:
    """Return gang scheduling of a level under a reading."""
    queue = PASSING if reading == "passing" else queue
    sharing = reading if reading in SHARINGS else "fill"
    return System(level, queue, sharing, EXACT if reading == EXACT else "")


def named_system(name: str, reading: str) -> System:
    """Return the system that a claim names."""
    if name in LEVELS:
        return gang(name, reading)
    return EASY if (name, reading) == ("backfilling", "easy") else System(name)


class Runs(NamedTuple):
    """All runs, and those of modeled workloads by system, change of the workload and shake."""

    all: pd.DataFrame
    by: Mapping[tuple[Any, ...], pd.DataFrame]


def load(results: pd.DataFrame) -> Runs:
    """Fill in what runs do not state, and arrange those of modeled workloads."""
    by = [*System._fields, "change", "shake_seed"]
    frame = results.assign(**{name: results[name].fillna("").astype(object) for name in by[:-1]})
    frame["shake_seed"] = frame["shake_seed"].fillna(0).astype(int)
    frame["kept"] = frame["utilization"] / frame["offered"] >= KEPT_UP
    model = frame[(frame["kind"] == "model") & (frame["cost"] != "paging")]
    model = model.assign(**{name: model[name].astype(float) for name in WORKLOAD})
    model = model.set_index(WORKLOAD).sort_index(ascending=[False, True, True], kind="stable")
    return Runs(frame, dict(iter(model.groupby(by, sort=False))))


def of_system(runs: Runs, one: System, change: str = "", shake: int = 0) -> pd.DataFrame:
    """Return the runs of a system by workload."""
    try:
        return runs.by[(*one, change, shake)]
    except KeyError:
        raise NotRunError from None


def ratios(
    runs: Runs, one: System, other: System, metric: str, change: str = "", shake: int = 0
) -> pd.Series[float]:
    """Return the logarithm of a mean over that of another system, by workload.

    It is nan where one of both does not keep up, or a mean is 0.
    """
    own, base = (of_system(runs, name, change, shake) for name in (one, other))
    pair = own.merge(base, left_index=True, right_index=True, suffixes=("", "_0"))
    both = pair["kept"] & pair["kept_0"] & (pair[metric] > 0) & (pair[f"{metric}_0"] > 0)
    return np.log((pair[metric] / pair[f"{metric}_0"]).where(both))


def common(own: pd.Series[float]) -> pd.Series[float]:
    """Return the ratios of the workloads that are run with all draws, and kept up with in all."""
    draws = own.index.get_level_values("draw").nunique()
    known = own.dropna()
    return known[known.groupby(level=WORKLOAD[:2]).transform("size") == draws]


def percent(logarithm: Interval) -> Interval:
    """Return by how many percent a ratio differs from 1, given as a logarithm."""
    mean, low, high = (float(100 * np.expm1(end)) for end in logarithm[:3])
    return Interval(mean, low, high, logarithm.n, logarithm.kind)


def over_draws(own: pd.Series[float]) -> Interval:
    """Return the mean change in percent over the draws, each the mean of its workloads."""
    if own.empty:
        raise NotRunError
    return percent(mean_of(own.groupby(level="draw").mean()))


def change(runs: Runs, reading: str, *, one: str, other: str, metric: str) -> Interval:
    """Return by how many percent a mean differs from that of another strategy."""
    systems = [named_system(name, reading) for name in (one, other)]
    usual = systems == [named_system(name, "fill") for name in (one, other)]
    if usual and reading not in ("fill", "loaded"):
        raise NotRunError  # nothing else than under the main reading
    own = common(ratios(runs, *systems, metric))
    return over_draws(at_middle(own) if reading == "loaded" else own)


def at_middle(own: Any, service: float = 1.3) -> Any:
    """Return the runs of the workload on which most was varied, with a load of about 0.7."""
    factors = own.index.get_level_values("interarrival"), own.index.get_level_values("service")
    return own[(factors[0] == 1) & (factors[1] == service)]


def reached(runs: Runs, reading: str, *, one: str) -> Interval:
    """Return the highest utilization in percent that a level reaches, whatever is offered."""
    if reading in ("easy", "loaded"):
        raise NotRunError
    return highest(runs, gang(one, reading))


def highest(runs: Runs, system: System) -> Interval:
    """Return the highest utilization of a system in percent: the mean over the draws."""
    own = of_system(runs, system)
    several = own.groupby(level=WORKLOAD[:2])["run"].transform("size")
    by_draw = own[several == several.max()].groupby(level="draw")
    if by_draw["offered"].max().min() < 0.95:
        raise NotRunError
    return mean_of(100 * by_draw["utilization"].max())


def baseline(runs: Runs, reading: str, *, what: str, off: float) -> Interval:
    """Return by how many percent a figure of the baseline workload is off that of the paper."""
    own = of_system(runs, FCFS).xs((1.0, 1.0), level=WORKLOAD[:2])
    if what in ("large", "work"):
        values = [of_large(int(draw), jobs)[what] for draw, jobs in own["jobs"].items()]
    else:
        values = own[what].to_list()
    return mean_of(100 * (np.array(values) / off - 1))


@cache
def of_large(draw: int, jobs: int) -> dict[str, float]:
    """Return the share of the large jobs of the baseline, and of their work."""
    trace = modeled(1, 1, draw, Change(), jobs, NODES)
    large, work = trace.processors >= LARGE, trace.processors * trace.runtime
    return {"large": float(large.mean()), "work": float(work[large].sum() / work.sum())}


# ---- All choices together, on one workload

PASSES = "another system: jobs pass"
CHOICES = {
    PASSING: PASSES,
    "rows": "jobs run in their row alone",
    "nodes": "jobs on a node share it",
    "turns": "slices of 60 s",
    "best-fit": "packing: best fit",
    "colouring": "packing: coloring",
    EXACT: "packing: exact",
    "no-compaction": "rows are not compacted",
    "sizes powers of two": "sizes are powers of two",
    "shares of the paper's tables": "shares of the paper's tables",
    "EASY": "EASY as backfilling",
}
"""What may differ from the main reading, by the labels of runs."""


def columns(runs: Runs, level: str, metric: str) -> Iterator[Column]:
    """Yield the change of a level from backfilling under every combination of choices."""
    for *names, changed, shake in runs.by:
        system = System(*names)
        known = changed in ("", *CHOICES) and not shake and not system.cost.startswith("switch")
        if system.strategy != level or system.packing == "generic" or not known:
            continue
        for base in (BACKFILLING, EASY):
            own = at_middle(common(ratios(runs, system, base, metric, changed)))
            if own.empty:
                continue
            made = {CHOICES[one] for one in (*system[1:], changed, base.strategy) if one in CHOICES}
            yield Column(over_draws(own), frozenset(made))


# ---- Other workloads


FEW_DRAWS, FEWEST = 5, 3
"""Draws of the changed workloads, and draws that an interval needs."""

BESIDE = {
    "in order": gang("MPL 5"),
    "jobs pass": gang("MPL 5", queue=PASSING),
    "jobs pass, one row": System("MPL 1", PASSING, "rows"),
}
"""What is compared with backfilling on changed workloads."""


def changes(runs: Runs) -> pd.DataFrame:
    """Return the change of the mean response from backfilling on changed workloads.

    There is a row for each workload and system of `BESIDE`: its mean over the draws kept up with.
    """
    known = dict.fromkeys(changed for *_, changed, _ in runs.by if changed)
    loaded = [("", 1.0), ("", 1.6), ("all request the longest run time", 1.6)]
    rows = []
    for changed, service in [("", 1.3), *((name, 1.3) for name in known), *loaded]:
        own = of_system(runs, BACKFILLING, changed).xs((1.0, service), level=WORKLOAD[:2])
        own = own[own.index <= FEW_DRAWS][["offered", "runtime_cv", "side_by_side"]].mean()
        words = changed or "nothing"
        words += f", load {own['offered']:.2f}" if (changed, service) in loaded else ""
        for name, system in BESIDE.items():
            logs = at_middle(ratios(runs, system, BACKFILLING, "mean_response", changed), service)
            found = over_draws(logs[logs.index.get_level_values("draw") <= FEW_DRAWS].dropna())
            rows.append(
                {"changed": words, "load": own["offered"], "CV of run times": own["runtime_cv"]}
                | {"jobs side by side": own["side_by_side"], "level 5": name}
                | {"change, %": found.mean, "low": found.low, "high": found.high, "n": found.n}
            )
    return pd.DataFrame(rows)


def times(runs: Runs) -> pd.DataFrame:
    """Return the hours that jobs wait, pause and run on the workload with a load of about 0.7."""
    shown = {"FCFS": FCFS, "backfilling": BACKFILLING}
    shown |= {f"{level}, in order": gang(level) for level in LEVELS}
    shown |= {"one row, jobs pass": BESIDE["jobs pass, one row"]}
    shown |= {f"{level}, jobs pass": gang(level, queue=PASSING) for level in LEVELS}
    rows = {}
    for name, system in shown.items():
        own = of_system(runs, system).xs((1.0, 1.3), level=WORKLOAD[:2])
        means = own[own.index <= FEW_DRAWS][["mean_wait", "mean_response", "mean_runtime"]].mean()
        wait, response, run = means / 3600
        pause = max(response - wait - run, 0.0)
        row = {"wait": wait, "pause": pause, "run": run, "response": response}
        rows[name.replace("MPL", "level")] = row
    return pd.DataFrame(rows).T.rename_axis("hours")


def on_blue(runs: Runs, one: str, other: str, stand_in: str) -> Interval:
    """Return the change of the mean response on SDSC-BLUE, or on models of it: over its parts."""
    own = runs.all[(runs.all["kind"] == "blue") & (runs.all["stand_in"] == stand_in)]
    table = own.pivot(index=["part", "draw"], columns="strategy", values="mean_response")
    logs = np.log(table[one] / table[other]).groupby(level="part").mean()
    return percent(mean_of(logs))


# ---- Noise


def shaken(runs: Runs, one: System, metric: str, where: pd.Index[Any]) -> Noise:
    """Return the noise of the change from backfilling on some workloads of the first draw."""
    shakes = sorted({shake for *_, shake in runs.by if shake})
    logs = (ratios(runs, one, BACKFILLING, metric, shake=shake) for shake in shakes)
    return noise_floor([100 * np.expm1(own.reindex(where).mean()) for own in logs])


def floors(runs: Runs) -> Iterator[tuple[str, str, str, Noise]]:
    """Yield noise floors of level 5 and backfilling: queue, metric, what is drawn again."""
    for queue, metric in product((ORDER, PASSING), ("mean_response", "large_mean_wait")):
        own = gang("MPL 5", queue=queue)
        every = common(ratios(runs, own, BACKFILLING, metric))
        first = every.index[every.index.get_level_values("draw") == 1]
        one = at_middle(every.loc[first]).index
        yield queue, metric, "shake.one", shaken(runs, own, metric, one)
        yield queue, metric, "shake", shaken(runs, own, metric, first)
        yield queue, metric, "draw", noise_floor(100 * np.expm1(every.groupby("draw").mean()))


# ---- What the page needs

SHORT = {ORDER: "order", PASSING: "passing"}


def values(runs: Runs, claims: dict[str, Claim]) -> dict[str, Any]:
    """Return the values of the page by name."""
    main = common(ratios(runs, gang("MPL 5"), BACKFILLING, "mean_response"))
    offered = of_system(runs, BACKFILLING)["offered"]
    loads = offered.loc[main.index].groupby(level=[0, 1]).mean()
    time, turned = times(runs), changes(runs)
    middle = turned.iloc[0]
    found: dict[str, Any] = {
        "runs": len(runs.all),
        "jobs": int(runs.all["jobs"].sum()),
        "draws": main.index.get_level_values("draw").nunique(),
        "common": len(loads),
        "common.loads": (loads.min(), loads.max()),
        "kept-up": 100 * KEPT_UP,
        "load.middle": middle["load"],
        "cv.middle": middle["CV of run times"],
        "side.middle": round(middle["jobs side by side"]),
        "shake.seeds": max(shake for *_, shake in runs.by),
        "claims.judged": sum(bool(one.found) for one in claims.values()),
        "short": 100 * float((modeled(1, 1, 1, Change(), 10_000, NODES).runtime < SLICE).mean()),
        "first-fit": 100 * of_system(runs, gang("MPL 5", EXACT))["heuristic_matched"].mean(),
    }
    for name, row in time.iterrows():
        found |= {f"time.{name}.{part}": hours for part, hours in row.items()}
    for level, (queue, short) in product(LEVELS, SHORT.items()):
        own = ratios(runs, gang(level, queue=queue), BACKFILLING, "mean_response")
        first = own.xs(1, level="draw").dropna()
        shorter = offered.xs(1, level="draw")[first.index[first < 0]]
        found |= {
            f"{short}.{level[-1]}.below": len(shorter),
            f"{short}.{level[-1]}.of": len(first),
            f"{short}.{level[-1]}.from": shorter.min(),
            f"{short}.{level[-1]}": over_draws(common(own)),
            f"highest.{short}.{level[-1]}": highest(runs, gang(level, queue=queue)),
        }
    ordered = [own for names, own in runs.by.items() if names[1] == ORDER and not names[5]]
    found |= {f"highest.{one.strategy}": highest(runs, one) for one in (FCFS, BACKFILLING)}
    found["highest.any"] = 100 * max(own["utilization"].max() for own in ordered)
    waits = by_load(runs, gang("MPL 5"), "large_mean_wait")
    for name, row in (("low", 0), ("high", -1)):
        found[f"{name}.load"], found[f"{name}.draws"] = waits.index[row], waits["draws"].iloc[row]
        found[f"{name}.wait"] = Interval(*waits.iloc[row][[*Interval._fields]])
    found["high.gone"] = found["high.wait"].mean > 0
    response = by_load(runs, gang("MPL 5"), "mean_response")["mean"]
    found["response.rises"] = bool(response.is_monotonic_increasing)
    central = claims["response"]
    gains = {one.verdict() for one in claims.values() if "with FCFS" in one.group}
    found |= {
        "response.never": {central.verdict(one) for one in central.found} == {"does not hold"},
        "fcfs.hold": gains == {"holds"},
        "paging.most": 100 * runs.all.query("job_memory == 133").eval("paged_jobs / jobs").max(),
        "passing.reaches": highest(runs, gang("MPL 5", "passing")).low > 90,
        "order.5.never": not found["order.5.below"],
    }
    for name, metric, key, _ in CURVES:
        own = sorted(columns(runs, "MPL 5", metric), key=lambda one: one.found.mean)
        best = {PASSES, CHOICES["sizes powers of two"]}
        found[f"{name}.best"] = all(best <= one.choices for one in own[:4])
        found[f"{name}.worst"] = all(CHOICES["no-compaction"] in one.choices for one in own[-2:])
        verdicts = [claims[key].region.verdict(one.found) for one in own]
        alone = [v for v, one in zip(verdicts, own) if PASSES not in one.choices]
        passing = len(own) - len(alone)
        found |= {name: len(own), f"{name}.ordered": len(alone), f"{name}.passing": passing}
        found[f"{name}.apart"] = "holds" not in alone and verdicts.count("holds") == passing
        for verdict in ("holds", "does not hold"):
            found[f"{name}.{verdict.split()[0]}"] = verdicts.count(verdict)
    for row in turned.to_dict("records"):
        interval = Interval(*(row[end] for end in ("change, %", "low", "high", "n")), "t")
        found[f"{row['changed']}, {row['level 5']}"] = interval
    sure = turned[(turned["level 5"] == "jobs pass") & (turned["high"] < 0)]
    never = turned.loc[turned["level 5"] == "in order", "change, %"]
    found |= {
        "changes": len(never) - 1,
        "changes.order.never": bool((never > 0).all()),
        "side.large": round(sure["jobs side by side"].iloc[0]),
        "changes.passing.sure": [*sure["changed"]] == ["sizes times 8"],
    }
    for queue, metric, what, floor in floors(runs):
        found[f"noise.{SHORT[queue]}.{metric.split('_')[-1]}.{what}"] = floor
    for stand_in, one in product(("trace", "uniform", "observed"), ("MPL 3", "FCFS")):
        found[f"blue.{stand_in}.{one}"] = on_blue(runs, one, "backfilling", stand_in) * 0.01 + 1
    for packing in ("best-fit", "colouring", EXACT):
        one = gang("MPL 5")._replace(packing=packing)
        found[f"{packing}.response"] = own = packed(runs, one, gang("MPL 5"))
        found[f"{packing}.open"] = own.low < 0 < own.high
    found["exact.wait"] = packed(runs, gang("MPL 5", EXACT), gang("MPL 5"), "mean_wait")
    found["wait.middle"] = claims["large.wait.5"].found["loaded"]
    signs = ("nothing, jobs pass, one row", "sizes times 8, jobs pass")
    for name in (*signs, "wait.middle", "exact.response", "exact.wait"):
        found[f"{name}.shorter"] = found[name] * -1
    return found


CURVES = (
    ("readings", "mean_response", "response", (-20, 290)),
    ("readings-wait", "large_mean_wait", "large.wait.5", (-105, 60)),
)
"""The specification curves: figure, metric, claim, and ends of the axis."""


def tables(runs: Runs, claims: dict[str, Claim]) -> dict[str, pd.DataFrame | str]:
    """Return the tables of the page, and those of the data beside it."""
    noise = pd.DataFrame(
        {
            "level 5 compared with backfilling": f"{METRICS[metric]}, {queue}",
            "drawn again": AGAIN[what],
            "range, %": " to ".join(written(end, digits=0) for end in (floor.low, floor.high)),
            "smallest effect, points": written(floor.smallest, digits=0),
        }
        for queue, metric, what, floor in floors(runs)
    )
    return {
        "noise": noise,
        "times": times(runs),
        "packings": packings(runs),
        "costs": costs(runs),
        "memory": memory(runs),
        "changes": changes(runs),
        "figures-5-8": by_workload(runs),
    }


AGAIN = {
    "shake.one": "submissions, one workload",
    "shake": "submissions, mean of several",
    "draw": "all random numbers",
}


def brief(found: Interval) -> str:
    """Write a change in percent with its interval."""
    mean, low, high = (written(end, "%", 0) for end in found[:3])
    return mean if found.kind == "none" else f"{mean} ({low[:-1]} to {high})"


def in_times(found: Interval) -> str:
    """Write a change in percent as a ratio, with its interval."""
    mean, low, high = (without_noise(end, "times") for end in (found * 0.01 + 1)[:3])
    return mean if found.kind == "none" else f"{mean} ({low} to {high})"


def packed(runs: Runs, one: System, usual: System, metric: str = "mean_response") -> Interval:
    """Return the change of a mean between two ways of gang scheduling."""
    return over_draws(common(ratios(runs, one, usual, metric)))


def packings(runs: Runs) -> pd.DataFrame:
    """Return the effect of other packings, and how often first fit is as good."""
    rows = []
    for one in dict.fromkeys(System(*names[:5]) for names in runs.by):
        if one.packing:
            own = of_system(runs, one)[["heuristic_matched", "problems", "unproven"]]
            good, unproven = own["heuristic_matched"] * own["problems"], own["unproven"]
            rows.append(
                {"packing": one.packing, "level": one.strategy[-1], "queue": one.queue}
                | {"sharing": one.sharing}
                | {
                    METRICS[metric]: brief(packed(runs, one, one._replace(packing=""), metric))
                    for metric in ("mean_response", "mean_wait")
                }
                | {"decisions": int(own["problems"].sum())}
                | {"first fit as good, %": 100 * good.sum() / own["problems"].sum()}
                | {"proven, %": 100 * (1 - unproven.sum() / own["problems"].sum())}
            )
    return pd.DataFrame(rows)


def costs(runs: Runs) -> pd.DataFrame:
    """Return how many times as long a cost makes the mean response, by level."""
    names = {"no-compaction": "rows are not compacted"}
    names |= {f"switch-{s}": f"a switch takes {s} s of {SLICE} s" for s in (1, 5, 15)}
    rows = {
        words: {
            f"level {level[-1]}": in_times(
                packed(runs, gang(level)._replace(cost=cost), gang(level))
            )
            for level in LEVELS
        }
        for cost, words in names.items()
    }
    return pd.DataFrame(rows).T.rename_axis("mean response")


def memory(runs: Runs) -> pd.DataFrame:
    """Return the share of the jobs that page, by the memory that they need."""
    own = runs.all[runs.all["cost"] == "paging"]
    shares = (100 * own["paged_jobs"] / own["jobs"]).map(lambda one: written(one, "%", 0))
    own = own.assign(paged=shares, variation=own["variation"].fillna(0.0))
    table = own.pivot(index=["job_memory", "variation"], columns="strategy", values="paged")
    table.columns = [f"level {name[-1]}" for name in table.columns]
    return table.rename_axis(["MB a job", "variation"])


def by_workload(runs: Runs) -> pd.DataFrame:
    """Return the means of all runs without changes, costs and shakes, as in Figures 5 to 8."""
    own = [
        frame.reset_index()
        for (*_, packing, cost, changed, shake), frame in runs.by.items()
        if not (packing or cost or changed or shake)
    ]
    columns = [*WORKLOAD, "strategy", "queue", "sharing", "offered", "utilization", "kept"]
    return pd.concat(own)[[*columns, *METRICS]].round(4)


# ---- Figures

LOOKS = {
    "FCFS": (LINES[6], "s"),
    "backfilling": (LINES[1], "v"),
    "MPL 2": (LINES[4], "o"),
    "MPL 3": (LINES[0], "^"),
    "MPL 5": (LINES[2], "D"),
}
"""Color and marker of each strategy."""


def figures(runs: Runs, claims: dict[str, Claim], *, narrow: bool) -> dict[str, Figure]:
    """Draw the figures of the page, for a wide page or a phone."""
    curves = {
        name: specification_curve(
            columns(runs, "MPL 5", metric),
            [*CHOICES.values()],
            f"{METRICS[metric]}, level 5 compared with backfilling, %",
            limits=limits,
            claimed=claims[key].region,
            narrow=narrow,
        )
        for name, metric, key, limits in CURVES
    }
    return curves | {
        "utilization": draw_utilization(runs, narrow=narrow),
        "by-load": draw_by_load(runs, narrow=narrow),
        "times": draw_times(runs, narrow=narrow),
        "changes": draw_changes(runs, narrow=narrow),
        "figures-5-8": draw_means(runs, narrow=narrow),
    }


def panels(rows: int, columns: int, height: float, *, narrow: bool, **shared: bool) -> Any:
    """Return a figure with panels, one below the other if it is narrow."""
    figure = Figure((NARROW if narrow else WIDE, height), layout="constrained")
    if narrow:
        rows, columns = rows * columns, 1
    return figure, [*np.ravel(figure.subplots(rows, columns, **shared))]


def by_load(runs: Runs, one: System, metric: str) -> pd.DataFrame:
    """Return the change from backfilling by load, where three draws or more are kept up with.

    Columns are those of an interval, and the number of all draws.
    """
    own = ratios(runs, one, BACKFILLING, metric)
    loads = of_system(runs, BACKFILLING)["offered"].groupby(level=WORKLOAD[:2]).mean()
    rows = {
        loads[factors]: {**over_draws(logs.dropna())._asdict(), "draws": len(logs)}
        for factors, logs in own.groupby(level=WORKLOAD[:2])
        if len(logs) > 1 and logs.count() >= FEWEST
    }
    return pd.DataFrame(rows).T.sort_index()


def draw_by_load(runs: Runs, *, narrow: bool) -> Figure:
    """Draw the change of two means from backfilling by load."""
    figure, axes = panels(1, 2, 6.4 if narrow else 3.4, narrow=narrow, sharex=True)
    shown = {f"{level}, in order": (gang(level), LOOKS[level], "-") for level in LEVELS}
    shown["MPL 5, jobs pass"] = (gang("MPL 5", queue=PASSING), (LINES[3], "x"), "--")
    for panel, metric in zip(axes, ("mean_response", "large_mean_wait")):
        for name, (one, (color, marker), line) in shown.items():
            own = by_load(runs, one, metric).astype({"mean": float, "low": float, "high": float})
            factors = 1 + own[["mean", "low", "high"]] / 100
            ends = (factors["mean"] - factors["low"], factors["high"] - factors["mean"])
            look = {"color": color, "marker": marker, "linestyle": line, "markersize": 4}
            label = name.replace("MPL", "level")
            panel.errorbar(own.index, factors["mean"], yerr=ends, elinewidth=1, label=label, **look)
        panel.axhline(1, color=GREY, linewidth=1.0)
        panel.set(title=METRICS[metric], xlabel="load", yscale="log")
        ticks = (0.1, 0.2, 0.5, 1, 2, 5)
        panel.set_yticks(ticks, [f"{one:g}" for one in ticks])
        panel.set_yticks([], minor=True)
        panel.set_ylabel("times that of backfilling")
    axes[0].set_ylim(0.5, 8)
    axes[0].legend(loc="lower left", ncols=2)
    return figure


def draw_utilization(runs: Runs, *, narrow: bool) -> Figure:
    """Draw the utilization that is reached by what is offered, with the paper's 0.90."""
    figure, axes = panels(1, 2, 6.0 if narrow else 3.2, narrow=narrow, sharex=True, sharey=True)
    for panel, queue in zip(axes, SHORT):
        panel.plot([0.5, 1.0], [0.5, 1.0], color=GREY, linewidth=0.8)
        panel.axhline(0.9, color=GREY, linestyle=":", linewidth=1.2)
        for name, (color, marker) in LOOKS.items():
            one = gang(name, queue=queue) if name in LEVELS else System(name)
            own = of_system(runs, one).xs(1, level="draw")
            look = {"color": color, "marker": marker, "markersize": 3, "linewidth": 0}
            label = name.replace("MPL", "level")
            panel.plot(own["offered"], own["utilization"], label=label, **look)
        title = PASSES if queue == PASSING else "jobs in order (the paper)"
        panel.set(title=title, xlabel="load that is offered", ylabel="utilization", ylim=(0.5, 1.0))
    axes[0].legend(loc="lower right")
    return figure


def draw_times(runs: Runs, *, narrow: bool) -> Figure:
    """Draw where the time of jobs goes, a bar for each system."""
    table = times(runs)
    figure, (axes,) = panels(1, 1, 2.9, narrow=narrow)
    left = np.zeros(len(table))
    looks = {"wait": (LINES[0], ""), "pause": (LINES[5], "//"), "run": ("#CCCCCC", "")}
    for part, (color, hatch) in looks.items():
        look = {"color": color, "hatch": hatch, "edgecolor": "#222222", "linewidth": 0.4}
        axes.barh(table.index, table[part], left=left, label=part, **look)
        left += table[part].to_numpy()
    axes.invert_yaxis()
    axes.set_xlabel("hours of a job, mean")
    axes.grid(visible=False, axis="y")
    axes.legend(loc="lower right")
    return figure


def draw_changes(runs: Runs, *, narrow: bool) -> Figure:
    """Draw the change from backfilling on each changed workload."""
    table = changes(runs)
    names = [*dict.fromkeys(table["changed"])]
    places = {name: place for place, name in enumerate(names)}
    figure, (axes,) = panels(1, 1, 0.9 + (0.34 if narrow else 0.24) * len(names), narrow=narrow)
    shifts = dict(zip(BESIDE, ((LINES[2], "D", -0.2), (LINES[0], "o", 0.0), (GREY, "|", 0.2))))
    for name, (color, marker, shift) in shifts.items():
        own = table[table["level 5"] == name].dropna(subset="change, %")
        y = [places[one] + shift for one in own["changed"]]
        ends = own[["low", "high"]].sub(own["change, %"], axis=0).abs().fillna(0).to_numpy().T
        label = name if "row" in name else f"level 5, {name}"
        look = {"color": color, "marker": marker, "markersize": 4, "linestyle": "none"}
        factors = 1 + own["change, %"] / 100
        axes.errorbar(factors, y, xerr=ends / 100, label=label, elinewidth=1.2, **look)
    axes.axvline(1, color=GREY, linewidth=1.0)
    axes.set_xscale("log")
    axes.set_xticks([0.5, 1, 2, 4, 8], ["0.5", "1", "2", "4", "8"])
    axes.set_xticks([], minor=True)
    axes.set(ylim=(len(names) - 0.4, -0.6), xlabel="response, times backfilling's")
    axes.set_yticks(range(len(names)), [fill(name, 24) if narrow else name for name in names])
    figure.legend(loc="outside upper right", ncols=1 if narrow else 3)
    return figure


def draw_means(runs: Runs, *, narrow: bool) -> Figure:
    """Draw Figures 5 to 8 where jobs arrive as in the baseline."""
    figure, axes = panels(2, 2, 9.5 if narrow else 5.2, narrow=narrow, sharex=True)
    for number, (panel, (metric, title)) in enumerate(zip(axes, METRICS.items()), 5):
        for name, (color, marker) in LOOKS.items():
            one = gang(name) if name in LEVELS else System(name)
            own = of_system(runs, one).xs((1.0, 1), level=["interarrival", "draw"])
            look = {"color": color, "marker": marker, "markersize": 3, "linewidth": 1.0}
            hours = own[metric] / 3600
            panel.plot(own["utilization"], hours, label=name.replace("MPL", "level"), **look)
        panel.set(title=f"Figure {number}: {title}", ylabel="hours", yscale="log")
        panel.set_yticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
    for panel in axes[-1:] if narrow else axes[2:]:
        panel.set_xlabel("utilization")
    axes[0].legend(loc="upper left")
    return figure
