"""The numbers and tables of the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from optsched.report.page import MISSING, Cell, cell, duration
from optsched.studies.cells import spread
from optsched.studies.openb_2023.claims import HUNDREDS, NEAR
from optsched.studies.openb_2023.evaluation import of_part
from optsched.studies.openb_2023.plan import (
    ARRIVALS,
    BATCHES,
    BUSY,
    EXACT,
    FGD,
    FORECAST,
    LEAVING,
    LEFT_OUT,
    OF_SWITCHES,
    PUBLISHED,
    RULES,
    SWITCHES,
    WHOLE,
    part,
)
from optsched.studies.results import grouped
from optsched.studies.template import Record

HOUR = 3600

SIZES = {0: "all at once"}
"""What stands for the size of a batch."""


def values(frame: pd.DataFrame, *, quick: bool) -> Mapping[str, Any]:
    """Return the names that the template uses."""
    switches = switch_cases(of_part(frame, SWITCHES))
    arrivals = of_part(frame, ARRIVALS)
    return {
        "rules": [rule.name for rule in RULES],
        "lists": list(dict.fromkeys(arrivals["list"])),
        "published": PUBLISHED,
        "hundreds": HUNDREDS,
        "near": NEAR,
        "settings": {name: part(name, quick=quick) for name in (BUSY, ARRIVALS, BATCHES, LEAVING)},
        "whole": [whole_facts(rows) for _, rows in of_part(frame, WHOLE).groupby("list")],
        "ahead": ahead(of_part(frame, BUSY)),
        "arrived": {name: arrived(rows) for name, rows in arrivals.groupby("list", sort=False)},
        "looking_ahead": list(looking_ahead(of_part(frame, BATCHES))),
        "placed_records": list(problem_records(frame, "placed")),
        "fragmentation_records": list(problem_records(frame, "fragmentation")),
        "arrival_records": list(arrival_records(arrivals, {} if quick else PUBLISHED["allocated"])),
        "batch_records": list(batch_records(of_part(frame, BATCHES))),
        "leaving": leaving_facts(of_part(frame, LEAVING)),
        "leaving_records": list(leaving_records(of_part(frame, LEAVING))),
        "switch_records": list(switch_records(switches)),
        "switches": switch_facts(switches),
    }


def problems(frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the name of each kind of problem with an exact answer, and its rows."""
    for nodes, rows in of_part(frame, BUSY).groupby("nodes"):
        yield f"{nodes} nodes, partly busy", rows
    for name, rows in of_part(frame, WHOLE).groupby("list", sort=False):
        yield f"{rows['nodes'].iloc[0]:,} nodes, {name}", rows
    for name, rows in of_part(frame, ARRIVALS).groupby("list", sort=False):
        solved = rows["seed"].isin(rows.loc[rows["way"] == EXACT.name, "seed"])
        yield f"{rows['nodes'].iloc[0]:,} nodes, {name}, overload", rows[solved]


def problem_records(frame: pd.DataFrame, column: str) -> Iterator[Record]:
    """Yield the means of a column by way for each kind of problem, and how far they are proven."""
    for name, rows in problems(frame):
        exact = rows[rows["way"] == EXACT.name]
        means = rows.groupby("way")[column].mean()
        record: Record = {
            "problem": name,
            "draws": len(exact),
            "pods": spread(exact["jobs"], ",.0f"),
            **{way.name: _one_place(means.get(way.name)) for way in (*RULES, EXACT)},
        }
        if column == "placed":
            gaps = (exact["bound"] - exact["placed"]) / exact["placed"]
            record |= {
                "bound": _one_place(exact["bound"].mean()),
                "largest gap": Cell(f"{100 * gaps.max():.3f}%", gaps.max()),
                "proven": f"{int(exact['proven'].sum())} of {len(exact)}",
                "nominal time of exact": duration(exact["nominal_seconds"].mean()),
            }
        yield record


def arrival_records(
    rows: pd.DataFrame, artifact: Mapping[str, Mapping[str, float]]
) -> Iterator[Record]:
    """Yield what each way allocates of all GPUs, beside what it does in the artifact."""
    for (name, way), own in rows.groupby(["list", "way"], sort=False):
        published = artifact.get(str(name), {}).get(str(way))
        yield {
            "list": name,
            "way": way,
            "draws": len(own),
            "GPUs allocated, %": spread(100 * own["placed"] / own["gpus"], ".2f"),
            "published, %": MISSING if published is None else Cell(f"{published:.2f}", published),
            "GPUs unallocated": spread(own["gpus"] - own["placed"], ".0f"),
            "fragmentation": spread(own["fragmentation"], ".0f"),
            "pods placed": spread(own["pods"], ",.0f"),
        }


def arrived(rows: pd.DataFrame) -> Mapping[str, float]:
    """Return the mean number of GPUs left unallocated by way, and by the bound."""
    left = {
        str(way): float((own["gpus"] - own["placed"]).mean()) for way, own in rows.groupby("way")
    }
    return left | {"bound": float((rows["gpus"] - rows["bound"]).mean())}


def whole_facts(rows: pd.DataFrame) -> Mapping[str, Any]:
    """Return what FGD, the best rule and the exact solver place of a whole list."""
    placed = rows.set_index("way")["placed"]
    own = rows[rows["way"] == EXACT.name].iloc[0]
    rules = placed[[rule.name for rule in RULES]]
    return {
        "list": own["list"],
        "asked": own["asked"],
        "fgd": placed[FGD.name],
        "best": rules.max(),
        "best_rule": rules.idxmax(),
        "exact": own["placed"],
        "bound": own["bound"],
        "gap": (own["bound"] - own["placed"]) / own["placed"],
    }


def ahead(rows: pd.DataFrame) -> Mapping[str, float]:
    """Return by how much exact answers are better than rules on partly busy nodes."""
    placed = rows.pivot(index=["nodes", "seed"], columns="way", values="placed")
    exact = placed[EXACT.name]
    best = placed[[rule.name for rule in RULES]].max(axis=1)
    return {
        "fgd": float((exact / placed[FGD.name] - 1).mean()),
        "most": float((exact / placed[FGD.name] - 1).max()),
        "best": float((exact / best - 1).mean()),
        "behind": int((exact < best - 1e-9).sum()),
        "problems": len(placed),
    }


def batch_sizes(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the GPUs placed by nodes, way and size of a batch, each as a share of all at once.

    The size 0 stands for all pods at once, or for a rule.
    """
    keys = ["nodes", "seed"]
    whole = rows[(rows["way"] == EXACT.name) & rows["size"].isna()]
    best = whole.set_index(keys)["placed"]
    of_best = (
        rows["placed"].to_numpy() / best.loc[list(zip(rows["nodes"], rows["seed"]))].to_numpy()
    )
    sizes = rows["size"].fillna(0).astype(int)
    return rows.assign(of_best=of_best, size=sizes)


def batch_records(rows: pd.DataFrame) -> Iterator[Record]:
    """Yield the mean shares by nodes and way, with a column for each size of a batch."""
    found = batch_sizes(rows)
    sizes = [*sorted(set(found["size"]) - {0}), 0]
    for (nodes, way), own in found.groupby(["nodes", "way"], sort=False):
        record: Record = {"nodes": nodes, "way": way}
        rule = way not in (EXACT.name, FORECAST.name)
        for size in sizes:
            of_size = own[own["size"] == (0 if rule else size)]
            shown = of_size if not rule or size == sizes[0] else of_size[:0]
            record["batches of", SIZES.get(size, f"{size}")] = spread(100 * shown["of_best"], ".1f")
        yield record


def looking_ahead(rows: pd.DataFrame) -> Iterator[Mapping[str, Any]]:
    """Yield mean shares, in percent, of what is placed all at once, by number of nodes."""
    for nodes, own in batch_sizes(rows).groupby("nodes"):
        means = {
            (way, size): 100 * float(of_size["of_best"].mean())
            for (way, size), of_size in grouped(own, ["way", "size"])
        }
        sizes = sorted({size for way, size in means if way == FORECAST.name})
        yield {
            "nodes": nodes,
            "fgd": means[FGD.name, 0],
            "plain": {size: means[EXACT.name, size] for size in sizes},
            "forecast": {size: means[FORECAST.name, size] for size in sizes},
            "alone": means[EXACT.name, 1],
        }


def leaving_records(rows: pd.DataFrame) -> Iterator[Record]:
    """Yield the waits by way, means over the draws of nodes."""
    for way, own in rows.groupby("way", sort=False):
        yield {
            "way": way,
            "pods that wait, %": spread(100 * own["waited"], ".1f"),
            "mean wait, hours": spread(own["mean_wait"] / HOUR, ".2f"),
            "wait, 95th percentile, hours": spread(own["p95_wait"] / HOUR, ".2f"),
            "mean wait by GPUs, hours": spread(own["gpu_wait"] / HOUR, ".2f"),
            "decisions": spread(own["decisions"], ",.0f"),
            "nominal time": duration(own["nominal_seconds"].mean()),
        }


def leaving_facts(rows: pd.DataFrame) -> Mapping[str, Any]:
    """Return the way with the shortest mean wait, and mean waits in hours."""
    hours = rows.groupby("way", sort=False)["mean_wait"].mean() / HOUR
    exact, left_out = hours[EXACT.name], hours[LEFT_OUT.name]
    return {"least": hours.idxmin(), "hours": hours.min(), "exact": exact, "left_out": left_out}


def switch_cases(rows: pd.DataFrame) -> pd.DataFrame:
    """Return weight and switches of each way, and the proof, one row for each problem."""
    wide = rows.pivot(index=["case", "seed"], columns="way", values=["weight", "switches"])
    exact = rows[rows["way"] == EXACT.name].set_index(["case", "seed"])
    proof = exact[["nodes", "jobs", "most_weight", "least_switches", "proven", "nominal_seconds"]]
    return pd.concat([wide, pd.concat({"exact": proof}, axis=1)], axis=1)


def switch_records(cases: pd.DataFrame) -> Iterator[Record]:
    """Yield the switches of each way and the fewest possible, by kind of case."""
    rules = [way.name for way in OF_SWITCHES[:-1]]
    for number in dict.fromkeys(cases.index.get_level_values("case")):
        own = cases.loc[number]
        record: Record = {
            "case": number,
            "free nodes": _listed(own["exact", "nodes"]),
            "jobs": _listed(own["exact", "jobs"]),
        }
        for name in rules:
            short = own["weight", name] < own["weight", EXACT.name]
            record["switches", name] = ", ".join(
                f"{value:.0f}{'*' if less else ''}"
                for value, less in zip(own["switches", name], short)
            )
        yield record | {
            ("switches", "exact"): _listed(own["switches", EXACT.name]),
            ("switches", "fewest, proven"): _listed(own["exact", "least_switches"]),
            "nominal time of exact": duration(own["exact", "nominal_seconds"].max()),
        }


def switch_facts(cases: pd.DataFrame) -> Mapping[str, int]:
    """Count the cases in which the exact answer is proven, behind a rule, and ahead of each."""
    weight, switches = cases["weight"], cases["switches"]
    facts = {"cases": len(cases), "proven": int(cases["exact", "proven"].astype(bool).sum())}
    behind = 0
    for way in OF_SWITCHES[:-1]:
        more = weight[EXACT.name] > weight[way.name]
        less = weight[EXACT.name] < weight[way.name]
        equal = ~more & ~less
        fewer = switches[EXACT.name] < switches[way.name]
        further = switches[EXACT.name] > switches[way.name]
        behind += int((less | (equal & further)).sum())
        facts[way.name] = int((more | (equal & fewer)).sum())
    return facts | {"behind": behind}


def _listed(column: pd.Series[Any]) -> str:
    return ", ".join(f"{value:,.0f}" for value in column)


def _one_place(value: float | None) -> Cell:
    return cell(None) if value is None else Cell(f"{value:,.1f}", value)
