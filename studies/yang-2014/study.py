"""Yang et al. 2014: the numbers, tables and figures of the page, from the runs of plan.toml."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from optsched.documentation import markdown
from optsched.machines.machine import read_machine
from optsched.machines.torus import Torus
from optsched.numbers import parse_span, written
from optsched.studies.claims import NotRunError
from optsched.studies.figures import NARROW, WIDE, Column, specification_curve
from optsched.studies.intervals import (
    Interval,
    difference,
    exactly,
    noise_floor,
    reduction,
)
from optsched.text_files import read_toml
from optsched.traces.cleaning import clean
from optsched.traces.reading import read_trace

BLUE, INTREPID, MIRA = "SDSC-BLUE", "ANL-Intrepid", "ALCF-Mira"
METRICS = {"mean_wait": "mean wait", "mean_response": "mean response", "utilization": "utilization"}
EXACT, GREEDY = "branch-and-bound", "greedy"
MIDDLE, CELLS, WINDOW, INTERVAL = 0.3, 25, 5, 30
PAPER = {
    (one["log"], one["metric"]): one
    for one in read_toml(Path(__file__).with_name("published.toml"))["tables"]
}

DEFAULT, AT_EVENTS, EXCHANGE = "default, every 30 s", "default", "backfill, exchange"
CONTIGUOUS = "backfill, stated contiguous"
VARIANT = {"strict": "strict", "scatter": "backfill, scatter", "contiguous": CONTIGUOUS}
"""The variant of the runs behind a reading; that of all other readings is backfill."""

SAME_JOBS = ["log", "part", "alpha", "beta", "draw", "stated", "adjacency", "shake", "shake_seed"]
"""What a run and the run of Default beside it have in common."""

JOB_SIZES, SLOT_SIZES = "jobs_by_size.", "free_by_slot_size."


def prepare(results: pd.DataFrame, inputs: Path) -> pd.DataFrame:
    """Give columns short names, fill in what runs do not state, and add the sizes of jobs."""
    frame = results.rename(columns=lambda name: name.removeprefix("settings."))
    frame = frame.rename(columns={"config.jobs": "part", "charge_decisions": "charged"})
    frame = filled(frame)
    shares = {}
    for (file, machine, part), own in frame.groupby(["trace", "machine", "part"]):
        torus = read_machine(machine)
        assert isinstance(torus, Torus)
        sizes = read_clean(file).jobs(*parse_span(part)).processors / torus.nodes_per_router
        least = np.exp2(np.floor(np.log2(np.maximum(sizes, 1)))).astype(int)
        counts = pd.Series(least).value_counts(normalize=True)
        shares |= dict.fromkeys(own.index, counts)
    table = pd.DataFrame(shares).T.reindex(frame.index).fillna(0.0)
    return frame.join(table.add_prefix(JOB_SIZES))


@cache
def read_clean(file: str) -> Any:
    """Return a cleaned trace."""
    return clean(read_trace(file))


def filled(frame: pd.DataFrame) -> pd.DataFrame:
    """Fill in the values of settings that a run does not state."""
    usual = {"stated": "scattered", "ties": "heuristic", "adjacency": "line", "charged": False}
    usual |= {"shake": 0, "shake_seed": -1, "window": WINDOW, "interval": INTERVAL, "seed": -1}
    return frame.assign(
        **{
            name: frame[name].astype(object).fillna(value).astype(type(value))
            if name in frame
            else value
            for name, value in usual.items()
        }
    )


@dataclass(frozen=True, eq=False)  # looked up by identity
class Runs:
    """All runs, and those of the window beside Default (columns ending in _0) on the same jobs."""

    all: pd.DataFrame
    pairs: pd.DataFrame
    events: pd.DataFrame  # beside Default that decides at every event


def load(results: pd.DataFrame) -> Runs:
    """Pair the runs of the window with those of Default."""
    frame = filled(results)
    mine = frame[~frame["variant"].isin([DEFAULT, AT_EVENTS])]

    def beside(variant: str) -> pd.DataFrame:
        base = frame[frame["variant"] == variant].drop_duplicates(SAME_JOBS)
        return mine.merge(base, on=SAME_JOBS, suffixes=("", "_0"), validate="m:1")

    return Runs(frame, beside(DEFAULT), beside(AT_EVENTS))


# ---- Gains


@cache
def usual(
    runs: Runs, log: str, reading: str = "backfill", solver: str = EXACT, where: str = ""
) -> pd.DataFrame:
    """Return runs with the paper's window, free decisions, and ties as Greedy's, beside Default."""
    own = runs.events if reading in ("default", "events") else runs.pairs
    variant = VARIANT.get(reading, "backfill")
    own = own[(own["log"] == log) & (own["variant"] == variant) & (own["solver"] == solver)]
    own = own[own["interval"] == (0 if reading == "events" else INTERVAL)]
    own = own[(own["window"] == WINDOW) & ~own["charged"] & (own["ties"] == "heuristic")]
    own = own[(own["shake"] == 0) & (own["adjacency"] == "line")]
    own = own.query(where) if where else own
    if own.empty:
        raise NotRunError
    return own


@cache
def grid(runs: Runs, log: str, reading: str = "backfill", solver: str = EXACT) -> pd.DataFrame:
    """Return the runs behind a table of the paper: all cells of alpha and beta."""
    own = usual(runs, log, reading, solver, "alpha > 0")
    if own.groupby(["alpha", "beta"]).ngroups < CELLS:
        raise NotRunError
    return own


def cells(pairs: pd.DataFrame, metric: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a metric with Default and with the window: rows are parts, columns are cells."""
    means = pairs.groupby(["part", "beta", "alpha"])[[f"{metric}_0", metric]].mean().unstack([1, 2])
    return means[f"{metric}_0"].to_numpy(), means[metric].to_numpy()


def sign(metric: str) -> float:
    """Return the factor from a reduction to an improvement in percent."""
    return -100.0 if metric == "utilization" else 100.0


def improvement(pairs: pd.DataFrame, metric: str, weights: Any = None) -> Interval:
    """Return the improvement over Default in percent: the mean of all cells, or weighted.

    No time gets more than 100% shorter.
    """
    before, after = cells(pairs, metric)
    if weights is not None:
        return reduction(before, after, weights) * sign(metric)
    found = reduction(before, after, 1 / before.shape[1]) * sign(metric)
    return found if metric == "utilization" else found._replace(high=min(found.high, 100.0))


def apart(one: pd.DataFrame, other: pd.DataFrame, metric: str, than: str = "") -> Interval:
    """Return the mean improvement in some runs less that in others on the same parts, in points."""
    sides = zip(cells(one, metric), cells(other, than or metric))
    weights = np.repeat([1 / CELLS, -1 / CELLS], CELLS)
    return reduction(*map(np.hstack, sides), weights) * sign(metric)


def mean_step(table: np.ndarray) -> Any:
    """Return the mean of the 40 steps of a table, from one alpha or beta to the next."""
    return sum(np.diff(table, axis=axis).sum(axis=(0, 1)) for axis in (0, 1)) / 40


# ---- What claims.toml names: our numbers, and those of the paper


def gain(runs: Runs, reading: str, *, log: str, metric: str, cell: float | None = None) -> Interval:
    """Return the mean improvement of a table, or that of the cell with alpha = beta = `cell`."""
    if cell is None:
        return improvement(grid(runs, log, reading), metric)
    where = f"alpha == {cell} and beta == {cell}"
    return improvement(usual(runs, log, reading, EXACT, where), metric)


def step(runs: Runs, reading: str, *, log: str, metric: str) -> Interval:
    """Return by how much the improvement grows from one alpha or beta to the next."""
    weights = mean_step(np.eye(CELLS).reshape(5, 5, CELLS))
    return improvement(grid(runs, log, reading), metric, weights)


def over(runs: Runs, reading: str, *, log: str, than: str, metric: str) -> Interval:
    """Return by how much more one log gains than another."""
    return difference(*(gain(runs, reading, log=one, metric=metric) for one in (log, than)))


def response_over_wait(runs: Runs, reading: str, *, log: str) -> Interval:
    """Return by how much more the response improves than the wait."""
    own = grid(runs, log, reading)
    return apart(own, own, "mean_response", "mean_wait")


def exact_over_greedy(runs: Runs, reading: str, *, log: str, metric: str) -> Interval:
    """Return by how much more branch and bound gains than Greedy."""
    both = (grid(runs, log, reading, solver) for solver in (EXACT, GREEDY))
    return apart(*both, metric)


def large(runs: Runs, reading: str, *, log: str) -> Interval:
    """Return by how many percent large jobs wait longer than with Default."""
    known = "alpha > 0 and large_mean_wait_0 > 0"
    grid(runs, log, reading)
    return improvement(usual(runs, log, reading, EXACT, known), "large_mean_wait") * -1


def window(runs: Runs, reading: str, *, size: int, than: int) -> Interval:
    """Return by how many percent jobs wait less with a window of another size."""
    own = varied_windows(runs)
    own = own[(own["solver"] == EXACT) & ~own["charged"]]
    waits = own.pivot_table(index="part", columns="window", values="mean_wait")
    return reduction(waits[than], waits[size]) * 100


def exchange_misses(runs: Runs, reading: str) -> Interval:
    """Return the share of contested decisions in which Greedy with the exchange is not best."""
    own = runs.all[(runs.all["log"] == BLUE) & (runs.all["variant"] == EXCHANGE)]
    if own.empty:
        raise NotRunError
    return exactly(100 - 100 * found_best(own))


def found_best(own: pd.DataFrame) -> float:
    """Return the share of the contested decisions of runs in which the heuristic is best."""
    best = (own["contested"] * own["contested_matched"]).sum()
    return float(best / own["contested"].sum())


def microseconds(runs: Runs, reading: str) -> Interval:
    """Return the nominal time of a decision of branch and bound, the longest mean of a run."""
    own = runs.all[(runs.all["solver"] == EXACT) & (runs.all["window"] == WINDOW)]
    return exactly(1e6 * (own["nominal_seconds"] / own["problems"]).max())


def paper(log: str, metric: str, solver: str = "branch_and_bound") -> np.ndarray:
    """Return a table of the paper."""
    return np.array(PAPER[log, metric][solver])


def paper_gain(runs: Runs, *, log: str, metric: str, cell: float | None = None) -> float:
    """Return the mean of a table of the paper, or its last cell."""
    table = paper(log, metric)
    return float(table.mean() if cell is None else table[-1, -1])


def paper_step(runs: Runs, *, log: str, metric: str) -> float:
    """Return the mean step of a table of the paper."""
    return float(mean_step(paper(log, metric)[..., None])[0])


def paper_over(runs: Runs, *, log: str, than: str, metric: str) -> float:
    """Return by how much more one log gains than another in the paper."""
    return float((paper(log, metric) - paper(than, metric)).mean())


def paper_response_over_wait(runs: Runs, *, log: str) -> float:
    """Return by how much more the response improves than the wait in the paper."""
    return float((paper(log, "mean_response") - paper(log, "mean_wait")).mean())


def paper_exact_over_greedy(runs: Runs, *, log: str, metric: str) -> float:
    """Return by how much more branch and bound gains than Greedy in the paper."""
    return float((paper(log, metric) - paper(log, metric, "greedy")).mean())


# ---- All choices together, in one cell


def middle(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return the pairs where the most was varied: one cell of SDSC-BLUE, none shaken."""
    own = pairs[(pairs["log"] == BLUE) & (pairs["shake"] == 0) & (pairs["variant"] != EXCHANGE)]
    return own[(own["alpha"] == MIDDLE) & (own["beta"] == MIDDLE)]


def varied_windows(runs: Runs) -> pd.DataFrame:
    """Return the pairs in which windows are of several sizes."""
    own = middle(runs.pairs).query("variant == 'backfill' and ties == 'heuristic'")
    return own[(own["interval"] == INTERVAL) & (own["adjacency"] == "line")]


CHOICES: dict[str, Callable[[pd.Series], bool]] = {
    "Greedy decides": lambda run: run["solver"] == "greedy",
    "Greedy with exchange": lambda run: run["solver"] == "greedy-exchange",
    "depth-first search": lambda run: run["solver"] == "depth-first",
    "ties: the solver's own": lambda run: run["ties"] == "solver",
    "ties: at random": lambda run: run["ties"] == "random",
    "other jobs gain": lambda run: run["draw"] == 1,
    "deciding takes time": lambda run: run["charged"],
    "window every 10 s": lambda run: run["interval"] == 10,
    "window at every event": lambda run: run["interval"] == 0,
    "Default at every event": lambda run: run["variant_0"] == AT_EVENTS,
    "adjacent as in the torus": lambda run: run["adjacency"] == "torus",
    "the head may scatter": lambda run: run["variant"] == VARIANT["scatter"],
    "log times are contiguous": lambda run: run["variant"] == CONTIGUOUS,
    "nothing is backfilled": lambda run: run["variant"] == "strict",
}
"""What may differ from the main reading, and how to tell; rows of the figure."""


def columns(runs: Runs) -> tuple[Column, ...]:
    """Return the gain in mean wait under every combination of choices that was run on all parts.

    Best-first search, which gives the answers of branch and bound, would only repeat columns.
    """
    at_once = middle(runs.events).query("variant == 'backfill' and ties == 'heuristic'")
    at_once = at_once[(at_once["solver"] == EXACT) & ~at_once["charged"]]
    own = pd.concat([middle(runs.pairs).query("interval > 0"), at_once.query("interval != 10")])
    own = own[(own["window"] == WINDOW) & ~own["solver"].isin(["best-first", "cp-sat"])]
    by = [
        "variant",
        "variant_0",
        "solver",
        "interval",
        "charged",
        "ties",
        "seed",
        "draw",
        "adjacency",
    ]
    return tuple(
        Column(
            improvement(pairs, "mean_wait"),
            frozenset(name for name, so in CHOICES.items() if so(pairs.iloc[0])),
        )
        for _, pairs in own.groupby(by, dropna=False)
        if pairs["part"].nunique() == 8
    )


def floors(runs: Runs) -> Iterator[tuple[str, str, str, Any]]:
    """Yield the noise floor of the gain in one cell: log, what is drawn, metric, floor."""
    for log in (BLUE, INTREPID):
        own = runs.pairs[(runs.pairs["log"] == log) & (runs.pairs["alpha"] == MIDDLE)]
        own = own[(own["beta"] == MIDDLE) & (own["variant"] == "backfill")]
        own = own[(own["draw"] == 0) & (own["adjacency"] == "line") & (own["solver"] == EXACT)]
        for what, seed, rows in (
            ("ties", "seed", own[own["ties"] == "random"]),
            ("shaken", "shake_seed", own[own["shake"] > 0]),
        ):
            for metric in METRICS:
                if rows[seed].nunique() > 1:
                    gains = [improvement(one, metric).mean for _, one in rows.groupby(seed)]
                    yield log, what, metric, noise_floor(gains)


# ---- What the page needs


def values(runs: Runs, claims: dict[str, Any]) -> dict[str, Any]:
    """Return the values of the page by name."""
    exact, free = grid(runs, BLUE), usual(runs, BLUE, where="alpha == 0")
    wait = claims["wait.blue"]
    combined = columns(runs)
    means = np.array([one.found.mean for one in combined])
    alone = {next(iter(one.choices), ""): one.found for one in combined if len(one.choices) < 2}
    parts, sizes = gain_by_part(runs), sizes_of(runs)
    waits_0 = free.set_index("part")["mean_wait_0"].loc[parts.index].to_numpy()
    over_greedy = [cells(grid(runs, BLUE, solver=one), "mean_wait")[1] for one in (GREEDY, EXACT)]
    where = "part == '801:1200' and alpha == 0"
    short = {
        one: usual(runs, INTREPID, one, EXACT, where).iloc[0] for one in ("backfill", "events")
    }
    matched = found_best(exact)
    found = {
        "window": WINDOW,
        "interval": INTERVAL,
        "shares": (10, 50),
        "shares.most": 50,
        "cells": CELLS,
        "middle.share": 100 * MIDDLE,
        "shaken.minute": set(runs.all["shake"]) == {0, 60},
        "runs": len(runs.all),
        "jobs": int(runs.all["jobs"].sum()),
        "machine.blue": nodes(exact),
        "machine.intrepid": nodes(grid(runs, INTREPID)),
        "jobs.part": int(exact["jobs"].iloc[0]),
        "jobs.intrepid": int(grid(runs, INTREPID).drop_duplicates("part")["jobs"].sum()),
        "parts.blue": exact["part"].nunique(),
        "parts.intrepid": grid(runs, INTREPID)["part"].nunique(),
        "parts.worst": parts["30%"].min(),
        "parts.best": parts["30%"].max(),
        "parts.last.share": 100 * waits_0[-1] / waits_0.sum(),
        "parts.lose-then-gain": [*(parts["0%"] > 0)] == [False] * 4 + [True] * 4,
        "wait.blue.turns": wait.verdict("default") == "not decided",
        "claims.judged": sum(bool(one.found) for one in claims.values()),
        "greedy.wait.most": claims["greedy.wait.blue"].region.high,
        "use.intrepid.best.paper": paper(INTREPID, "utilization").max(),
        "use.never": all(
            one.mean < 0
            for key in ("blue", "intrepid")
            for one in claims[f"use.{key}"].found.values()
        ),
        "decisions": int(exact["problems"].sum()),
        "contested.share": 100 * exact["contested"].sum() / exact["problems"].sum(),
        "greedy.optimal": 100 * matched,
        "greedy.gap": 100 * exact["heuristic_gap"].mean(),
        "greedy.never-short.intrepid": bool(
            (grid(runs, INTREPID)["contested_matched"].dropna() == 1).all()
        ),
        "windows.longer": tuple(-claims[f"window.{one}"].main.mean for one in (20, 50)),
        "exact.wait": reduction(*over_greedy, 1 / CELLS) * 100,
        "curve": len(means),
        "curve.above": int((means > 0).sum()),
        "curve.sure": sum(one.found.low > 0 for one in combined),
        "middle": alone[""],
        "contiguous.middle": alone["log times are contiguous"],
        "contiguous.matters-most": alone["log times are contiguous"].mean
        == max(abs(one.mean) for what, one in alone.items() if what != "nothing is backfilled"),
        "torus.middle": alone["adjacent as in the torus"],
        "events.middle": alone["Default at every event"],
        "strict.times": 1 - alone["nothing is backfilled"].mean / 100,
        "free.all-contiguous": bool((free["contiguous_share"] == 1).all()),
        "free.contiguous.default": 100 * free["contiguous_share_0"].mean(),
        "short-part.default": short["backfill"]["mean_wait_0"],
        "short-part.window": short["backfill"]["mean_wait"],
        "short-part.events": short["events"]["mean_wait"],
        "short-part.default-at-events": short["events"]["mean_wait_0"],
        "sizes.classes": (1024, 8191),
        "sizes.paper": (1024, 2048, 4096),
        "sizes.cores": 100 * sizes.loc[1024:4096, INTREPID].sum(),
        "sizes.nodes": 100 * sizes.loc[4096:16384, INTREPID].sum(),
        "sizes.smallest": sizes.index[sizes[INTREPID] > 0].min(),
        "cores.per.node": 4,
        "mira.parts": grid(runs, MIRA)["part"].nunique(),
        "mira.wait": gain(runs, "backfill", log=MIRA, metric="mean_wait"),
        "mira.free": gain(runs, "backfill", log=MIRA, metric="mean_wait", cell=0.0),
    }
    short_names = {BLUE: "blue", INTREPID: "intrepid"}
    for log, what, metric, floor in floors(runs):
        found[f"noise.{what}.{metric.removeprefix('mean_')}.{short_names[log]}"] = floor
    return found


def nodes(own: pd.DataFrame) -> int:
    """Return the number of routers of the torus of some runs."""
    x, y, z = own["machine"].iloc[0].removeprefix("torus:").split("x")[:3]
    return int(x) * int(y) * int(z)


def sizes_of(runs: Runs) -> pd.DataFrame:
    """Return the share of the jobs of both logs by size in processors, as in Figure 5.

    A size stands for all up to the next power of two. Runs count Intrepid in nodes of four cores.
    """
    shares = {}
    for log, each in ((BLUE, 1), (INTREPID, 4)):
        own = grid(runs, log).drop_duplicates("part")
        own = own[[name for name in own if name.startswith(JOB_SIZES) and not name.endswith("_0")]]
        means = own.mean()
        shares[log] = {each * int(name.removeprefix(JOB_SIZES)): one for name, one in means.items()}
    table = pd.DataFrame(shares).fillna(0.0).sort_index()
    return table[(table > 0.0005).any(axis=1)].rename_axis("processors")


def gain_by_part(runs: Runs) -> pd.DataFrame:
    """Return the improvement of the mean wait on each part of SDSC-BLUE, by alpha = beta."""
    own = usual(runs, BLUE, where="alpha == beta")
    means = own.groupby(["part", "alpha"])[["mean_wait", "mean_wait_0"]].mean()
    table = (100 * (1 - means["mean_wait"] / means["mean_wait_0"])).unstack("alpha")
    table = table.loc[sorted(table.index, key=lambda part: int(part.split(":")[0]))]
    return table.rename(columns=lambda share: f"{100 * share:.0f}%")


def tables(runs: Runs, claims: dict[str, Any]) -> dict[str, pd.DataFrame | str]:
    """Return the tables of the page, and those of the data beside it."""
    parts = gain_by_part(runs)
    spans = [map(int, part.split(":")) for part in parts.index]
    parts.index = pd.Index([f"jobs {a:,} to {b:,}" for a, b in spans], name="alpha = beta")
    noise = pd.DataFrame(
        {
            "gain in": f"{log}, {METRICS[metric]}",
            "drawn again": {"ties": "random ties", "shaken": "submissions"}[what],
            "range, %": " to ".join(written(end, digits=1) for end in (floor.low, floor.high)),
            "smallest effect, points": written(floor.smallest, digits=1),
        }
        for log, what, metric, floor in floors(runs)
    )
    sizes = sizes_of(runs).map(lambda share: written(100 * share, "%", 0 if share > 0.1 else 1))
    found: dict[str, pd.DataFrame | str] = {
        "parts": markdown(parts, 0),
        "noise": noise,
        "sizes": sizes,
    }
    names = [f"{share}%" for share in range(10, 60, 10)]
    for (log, metric), one in PAPER.items():
        before, after = (side.mean(axis=0).reshape(5, 5) for side in cells(grid(runs, log), metric))
        both = np.array(one["branch_and_bound"]), sign(metric) * (1 - after / before)
        rows = [
            [" / ".join(written(number, digits=1) for number in pair) for pair in zip(*row)]
            for row in zip(*both)
        ]
        index = pd.Index(names, name="beta, alpha")
        found[f"table-{one['number']}"] = pd.DataFrame(rows, index, names)
    return found | {"windows": windows(runs), "improvements": improvements(runs)}


def windows(runs: Runs) -> pd.DataFrame:
    """Return the gain in mean wait by size of window, solver, and whether decisions take time."""
    own = varied_windows(runs)
    rows = [
        {"solver": solver, "charged": charged, "window": int(size)}
        | {"gain": found.mean, "low": found.low, "high": found.high, "interval": found.how}
        for (solver, charged, size), pairs in own.groupby(["solver", "charged", "window"])
        for found in [improvement(pairs, "mean_wait")]
    ]
    return pd.DataFrame(rows)


def improvements(runs: Runs) -> pd.DataFrame:
    """Return the improvement over Default of every metric, cell by cell."""
    by = ["log", "variant", "variant_0", "solver", "ties", "shake", "adjacency", "window"]
    by += ["interval", "charged", "beta", "alpha"]
    pairs = pd.concat([runs.pairs.query("interval > 0"), runs.events.query("interval == 0")])
    sides = [f"{metric}{side}" for metric in METRICS for side in ("_0", "")]
    means = pairs.groupby([*by, "part"])[sides].mean()
    rows = [
        dict(zip(by, key)) | {"metric": metric, "gain": found.mean, "low": found.low}
        | {"high": found.high, "interval": found.how}
        for key, own in means.groupby(by)
        for metric in METRICS
        for found in [reduction(own[f"{metric}_0"], own[metric]) * sign(metric)]
    ]  # fmt: skip
    return pd.DataFrame(rows).rename(columns={"variant_0": "over"})


def figures(runs: Runs, claims: dict[str, Any], *, narrow: bool) -> dict[str, Figure]:
    """Draw the figures of the page, for a wide page or a phone."""
    curve = specification_curve(
        columns(runs), [*CHOICES], "gain in mean wait, %", limits=(-62, 66), narrow=narrow
    )
    return {"readings": curve, "sizes": figure_5(sizes_of(runs), narrow=narrow)}


def figure_5(sizes: pd.DataFrame, *, narrow: bool) -> Figure:
    """Draw the sizes of the jobs of both logs."""
    figure = Figure((NARROW if narrow else WIDE, 2.4), layout="constrained")
    axes = figure.subplots()
    places = np.arange(len(sizes))
    for shift, (log, color, hatch) in zip(
        (-0.2, 0.2), ((BLUE, "#0072B2", ""), (INTREPID, "#E69F00", "//"))
    ):
        axes.bar(
            places + shift,
            100 * sizes[log],
            0.4,
            color=color,
            hatch=hatch,
            edgecolor="#222222",
            linewidth=0.4,
            label=log,
        )
    axes.set_xticks(places, [f"{size:,}" for size in sizes.index], rotation=60 if narrow else 0)
    axes.set(xlabel="processors of a job, up to the next size", ylabel="share of the jobs, %")
    axes.grid(visible=False, axis="x")
    axes.legend()
    return figure
