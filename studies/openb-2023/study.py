"""Weng et al. 2023: the numbers, tables and figures of the page, from the answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from optsched.numbers import written
from optsched.report import style
from optsched.studies.claims import NotRunError
from optsched.studies.figures import NARROW, WIDE, Column, specification_curve
from optsched.studies.intervals import Interval, mean_of, noise_floor
from optsched.text_files import read_toml

from .answers import EXACT, FEW_TYPES, FGD, FORECAST, IN_ORDER, LEFT_OUT, OF_SWITCHES, RULES, TABLE
from .answers import cases as cases
from .answers import files as files

ALLOCATED = read_toml(Path(__file__).with_name("published.toml"))["allocated"]
PACKING = ["first fit", "best fit", "GPU packing"]
CHOICES = {"listed": "the first of equal nodes", "few": "FGD knows 40 types"}
GPUS, HOUR = 6212, 3600


def of_part(runs: pd.DataFrame, part: str, **labels: Any) -> pd.DataFrame:
    """Return the rows of a part, and with these labels."""
    own = runs[runs["part"] == part]
    for name, label in labels.items():
        own = own[own[name] == label]
    if own.empty:
        raise NotRunError
    return own


def by_way(own: pd.DataFrame, column: str = "placed", index: Any = "seed") -> pd.DataFrame:
    """Return a column: a row for each draw, a column for each way."""
    return own.pivot(index=index, columns="way", values=column)


# ---- What claims.toml names: a draw is an order in which pods arrive


def drawn(runs: pd.DataFrame, pods: str, reading: str, column: str = "placed") -> pd.DataFrame:
    """Return a column of the draws of a list, a column for each rule."""
    own = of_part(runs, "arrivals" if "listed" in reading else "ties", list=pods)
    own = own[own["order"].isna() | (own["order"] == own["seed"])]
    wide = by_way(own, column)
    return wide.assign(**{FGD.name: wide[FEW_TYPES.name]}) if "few" in reading else wide


def left(runs: pd.DataFrame, reading: str, *, pods: str) -> Interval:
    """Return the GPUs that the best of the packing rules leaves."""
    return mean_of(GPUS - drawn(runs, pods, reading)[PACKING].max(axis=1))


def more(runs: pd.DataFrame, reading: str, *, pods: str, rule: str) -> Interval:
    """Return how many more GPUs FGD allocates than a rule."""
    own = drawn(runs, pods, reading)
    return mean_of(own[FGD.name] - own[rule])


def less_fragmentation(runs: pd.DataFrame, reading: str, *, pods: str) -> Interval:
    """Return by how much less fragmentation FGD leaves than the best of the other rules."""
    own = drawn(runs, pods, reading, "fragmentation")
    return mean_of(own[PACKING].min(axis=1) - own[FGD.name])


def as_published(runs: pd.DataFrame, reading: str, *, pods: str) -> Interval:
    """Return how many more GPUs FGD allocates than in the artifact."""
    return mean_of(drawn(runs, pods, reading)[FGD.name]) + -published(pods, FGD.name)


def published(pods: str, rule: str) -> float:
    """Return the GPUs that a rule allocates in the artifact."""
    return float(ALLOCATED[pods][rule]) * GPUS / 100


def paper_left(runs: pd.DataFrame, *, pods: str) -> float:
    """Return the GPUs that the best of the packing rules leaves in the artifact."""
    return GPUS - max(published(pods, rule) for rule in PACKING if rule in ALLOCATED[pods])


def paper_more(runs: pd.DataFrame, *, pods: str, rule: str) -> float:
    """Return how many more GPUs FGD allocates than a rule in the artifact."""
    return published(pods, FGD.name) - published(pods, rule)


# ---- What the page needs


def of_best(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the GPUs placed in batches, in percent of all at once; a row for each draw and size.

    The size 0 stands for all pods at once, or for a rule, which decides pod by pod.
    """
    own = of_part(runs, "batches").assign(size=lambda rows: rows["size"].fillna(0).astype(int))
    wide = own.pivot(index=["nodes", "seed"], columns=["way", "size"], values="placed")
    return 100 * wide.div(wide[EXACT.name, 0], axis=0)


def switch_facts(runs: pd.DataFrame) -> dict[str, int]:
    """Count problems on leaf switches: exact answers proven, ahead of each rule, and behind one.

    More weight is better, and with the same weight fewer switches.
    """
    own = of_part(runs, "switches")
    at = ["case", "seed"]
    weight, switches = by_way(own, "weight", at), by_way(own, "switches", at)
    facts = {"all": len(weight), "proven": int(own["proven"].fillna(False).astype(bool).sum())}
    behind = 0
    for rule in (way.name for way in OF_SWITCHES[:-1]):
        gain = weight[EXACT.name] - weight[rule]
        saved = (switches[rule] - switches[EXACT.name]).where(gain == 0, 0)
        facts[rule] = int(((gain > 0) | (saved > 0)).sum())
        behind += int(((gain < 0) | (saved < 0)).sum())
    return facts | {"behind": behind}


def values(runs: pd.DataFrame, claims: dict[str, Any]) -> dict[str, Any]:
    """Return the values of the page by name."""
    busy = by_way(of_part(runs, "busy"), index=["nodes", "seed"])
    rules, parts = [rule.name for rule in RULES], TABLE["parts"]
    exact = busy[EXACT.name]
    best = busy[rules].max(axis=1)
    leads = [claims[f"packing.{pods}"].found for pods in ALLOCATED]
    found: dict[str, Any] = {
        "answers": len(runs),
        "gpus": GPUS,
        "pods": int(of_part(runs, "whole")["jobs"].max()),
        "draws": of_part(runs, "arrivals")["seed"].nunique(),
        "draws.exact": parts["arrivals"]["exact"],
        "load": 100 * parts["arrivals"]["load"],
        "busy.load": 100 * parts["busy"]["load"],
        "leaving.pods": parts["leaving"]["pods"],
        "leaving.nodes": parts["leaving"]["nodes"],
        "nodes.all": int(of_part(runs, "whole")["nodes"].max()),
        "nodes": int(of_part(runs, "arrivals")["nodes"].max()),
        "lists": len(ALLOCATED),
        "packing": len(PACKING),
        "few.types": FEW_TYPES.options["types"],
        "few.loses": all(one["few"].high < 0 for one in leads),
        "margin": claims["same.default"].region.high,
        "same.share": 100 * abs(claims["same.default"].main.mean) / GPUS,
        "paper.left.packing": GPUS - published("default", "GPU packing"),
        "samples": len(busy),
        "ahead.fgd": mean_of(100 * (exact / busy[FGD.name] - 1)),
        "listed.less": all(one["listed"].mean < one["random"].mean for one in leads),
        "ahead.best": mean_of(100 * (exact / best - 1)),
        "ahead.never-behind": bool((exact >= best - 1e-9).all()),
    }
    for name, own in of_part(runs, "whole").groupby("list"):
        placed = own.set_index("way")["placed"]
        found |= {f"whole.{name}.{way}": value for way, value in placed.items()}
        found |= {f"whole.{name}.{one}": own[one].max() for one in ("asked", "bound")}
        found[f"whole.{name}.fgd-best"] = placed[rules].idxmax() == FGD.name
    for name, own in of_part(runs, "arrivals").groupby("list"):
        every = drawn(runs, name, "random").join(by_way(own)[EXACT.name])
        found |= {f"left.{name}.{way}": mean_of(GPUS - v.dropna()) for way, v in every.items()}
        found[f"left.{name}.bound"] = float((GPUS - own["bound"]).mean())
        ties = by_way(of_part(runs, "ties", list=name, seed=1), index="order")
        for rule, key in (("GPU packing", "packing"), ("best fit", "best")):
            found[f"noise.{key}.{name}"] = noise_floor(ties[FGD.name] - ties[rule])
    for key, beyond in (("packing", False), ("best", True)):
        pairs = [(claims[f"{key}.{one}"].main, found[f"noise.{key}.{one}"]) for one in ALLOCATED]
        found[f"noise.{key}"] = all((abs(m.mean) > n.smallest) == beyond for m, n in pairs)
    batches, means = of_best(runs).loc[150], of_best(runs).groupby("nodes").mean()
    found |= {f"batch.150.{way}.{size}": mean for (way, size), mean in means.loc[150].items()}
    found["draws.150"] = len(batches)
    found["batches.behind"] = bool((means[EXACT.name, 16] < means[FGD.name, 0]).all())
    ahead = {size: batches[FORECAST.name, size] > batches[FGD.name, 0] for size in (16, 64)}
    found |= {"forecast.ahead": ahead[64].all().item(), "forecast.16.ahead": int(ahead[16].sum())}
    for way, own in of_part(runs, "leaving").groupby("way"):
        found[f"wait.{way}"] = mean_of(own["mean_wait"] / HOUR)
    waits = by_way(of_part(runs, "leaving"), "mean_wait") / HOUR
    found["wait.shortest"] = waits.mean().idxmin() == FGD.name
    found["wait.more"] = mean_of(waits[EXACT.name] - waits[FGD.name])
    found["wait.left-out"] = mean_of(waits[LEFT_OUT.name] - waits[FGD.name])
    facts = switch_facts(runs)
    found["switches.never-behind"] = facts["behind"] == 0
    return found | {f"switches.{name}": count for name, count in facts.items()}


def tables(runs: pd.DataFrame, claims: dict[str, Any]) -> dict[str, Any]:
    """Return the tables of the page, and those of the data beside it."""
    three = (runs["part"] == "arrivals") & (runs["seed"] <= TABLE["parts"]["arrivals"]["exact"])
    solved = runs[runs["part"].isin(["busy", "whole"]) | three]
    at, both = ["part", "list", "nodes"], ["placed", "fragmentation"]
    wide = solved.pivot_table(index=at, columns="way", values=both, sort=False).round(1)
    proof = solved.groupby(at, sort=False)[["bound"]].mean().round(1)
    lists = [*TABLE["lists"]]
    short = {name: drawn(runs, name, "random") for name in lists}
    for name, own in short.items():
        own[EXACT.name] = by_way(of_part(runs, "arrivals", list=name))[EXACT.name]
    shown = []
    for way in (*(rule.name for rule in IN_ORDER), FEW_TYPES.name, EXACT.name):
        row = {"rule": way}
        for name in lists:
            paper = ALLOCATED[name].get(way)
            beside = "" if paper is None else f" ({GPUS * (1 - paper / 100):,.0f})"
            row[name] = written(GPUS - short[name][way].mean(), digits=0) + beside
        shown.append(row)
    leaving = of_part(runs, "leaving").groupby("way", sort=False)
    columns = ["waited", "mean_wait", "p95_wait", "gpu_wait", "decisions", "nominal_seconds"]
    own, at = of_part(runs, "switches"), ["case", "seed"]
    switched, weight = by_way(own, "switches", at), by_way(own, "weight", at)
    less = weight.lt(weight[EXACT.name], axis=0)
    switched = switched.astype(int).astype(str) + less.replace({True: "*", False: ""})
    return {
        "left": pd.DataFrame(shown),
        "batches": batches_table(runs),
        "placed": wide["placed"].join(proof),
        "fragmentation": wide["fragmentation"],
        "leaving": leaving[columns].mean().round(3).rename_axis("way"),
        "switches": switched.reset_index(),
        "answers": runs,
    }


def batches_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the means of `of_best` as a table, with words for the size 0."""
    means = of_best(runs).groupby("nodes").mean().T.round(1).add_suffix(" nodes").dropna()
    table = means.reset_index()
    whole = table["way"].map(lambda way: "all at once" if way == EXACT.name else "pod by pod")
    return table.assign(size=table["size"].astype(str).where(table["size"] > 0, whole))


def figures(runs: pd.DataFrame, claims: dict[str, Any], *, narrow: bool) -> dict[str, Figure]:
    """Draw what looking ahead is worth, for a wide page or a phone."""
    curve = []
    for reading in ("random", "listed", "few", "few, listed"):
        chosen = frozenset(words for key, words in CHOICES.items() if key in reading)
        for pods in ALLOCATED:
            other = chosen | ({"list gpuspec33"} if pods != "default" else set())
            curve.append(Column(more(runs, reading, pods=pods, rule="GPU packing"), other))
    choices = [*CHOICES.values(), "list gpuspec33"]
    label, limits = "GPUs more than GPU packing", (-140, 40)
    readings = specification_curve(curve, choices, label, limits=limits, narrow=narrow)
    own = of_best(runs)
    sizes = TABLE["parts"]["batches"]["sizes"]
    figure = Figure((NARROW if narrow else WIDE, 4.6 if narrow else 2.6), layout="constrained")
    panels = figure.subplots(*((2, 1) if narrow else (1, 2)), sharey=True)
    for panel, (nodes, rows) in zip(panels, own.groupby("nodes")):
        for way, colour, mark in ((EXACT, 0, "o"), (FORECAST, 2, "s")):
            line = rows[way.name].mean().drop(0, errors="ignore")
            look = {"color": style.LINES[colour], "label": way.name, "markersize": 4}
            panel.plot(line.index, line, f"{mark}-", **look)
        level = rows[FGD.name, 0].mean()
        panel.axhline(level, color=style.LINES[1], linestyle="--", label="FGD, pod by pod")
        panel.set_xscale("log", base=2)
        panel.set_xticks(sizes, list(map(str, sizes)))
        panel.set(title=f"{nodes} nodes", xlabel="pods in a batch", ylabel="GPUs placed, %")
    named = panels[0].get_legend_handles_labels()
    figure.legend(*named, loc="outside lower center", ncols=2 if narrow else 3)
    return {"batches": figure, "readings": readings}
