"""The numbers and tables of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.report.page import Cell, cell, duration, share
from optsched.studies.cells import improved, span, spread
from optsched.studies.li_2015.claims import ALIKE, AROUND, AVOIDED, MORE, percent
from optsched.studies.li_2015.evaluation import BUFFERS, NODE_TIME, both, of, read_as, variants
from optsched.studies.li_2015.plan import (
    CEILING,
    FULL,
    LOGS,
    MODELED,
    OWN,
    PUBLISHED,
    READINGS,
    SMALL,
    TABLE,
    VARIANTS,
    Variant,
    jobs_of,
)
from optsched.studies.paired import improvement
from optsched.studies.results import ALL, by_workload
from optsched.studies.template import Record

if TYPE_CHECKING:
    import pandas as pd

WINDOWS = {*OWN, *(READINGS["proactive"][name] for name in OWN)}
"""The variants that Figures 5 to 7 may show."""

WAITS = {"mean_wait": "wait", "large_mean_wait": "wait of large jobs"}


def values(frame: pd.DataFrame, *, quick: bool) -> Mapping[str, Any]:
    """Return the names that the template uses."""
    machine = SMALL if quick else FULL
    parts = by_workload(frame)
    wanted = list(LOGS)[:1] if quick else list(LOGS)
    return {
        "level": PUBLISHED["utilization"],
        "ceiling": CEILING,
        "windows": OWN,
        "workloads": list(parts),
        "compared": variants(frame),
        "node_time": NODE_TIME,
        "percent": percent,
        "short": lambda seconds: duration(seconds).text,
        "of": lambda name, metric, workload=None: of(
            parts[workload] if workload else frame, name, metric
        ),
        "ratio": partial(ratio, frame),
        "running": lambda one, other: percent(both(frame, one, other, "useful")[0]),
        "around": AROUND,
        "alike": ALIKE,
        "more": MORE,
        "avoided": AVOIDED,
        "readings": list(READINGS),
        "same": partial(same_schedules, frame),
        "proactive": partial(_proactive, parts, read_as(frame, "proactive")),
        "window_records": [
            {
                "workload": workload,
                "migrates": reading,
                "window": window["depth"],
                **_window(read_as(own, reading), name),
            }
            for workload, own in parts.items()
            for reading in READINGS
            for name, window in OWN.items()
        ],
        "buffer_records": [
            {"workload": workload, "variant": name, **_buffer(own, name)}
            for workload, own in parts.items()
            for name, variant in VARIANTS.items()
            if "prepare" in variant.settings
        ],
        "variant_records": lambda workload: [
            _variant(parts[workload], name) for name in variants(frame)
        ],
        "node_time_records": [
            {"workload": workload, "variant": name}
            | {
                part: share(float(of(own, name, column).mean()))
                for part, column in NODE_TIME.items()
            }
            for workload, own in parts.items()
            for name in variants(frame)
            if name != CEILING
        ],
        "migration": migration_table(parts | {ALL: frame}),
        "changes": {base: change_table(frame, base) for base in TABLE["ablations"]},
        "searched": search_table(parts),
        "torus": "x".join(map(str, machine.routers)),
        "large": machine.large,
        "workload_records": [record for own in parts.values() for record in _workloads(own)],
        "absent": [LOGS[name]["file"] for name in wanted if name not in parts],
        "settings": _settings(frame),
    }


def same_schedules(frame: pd.DataFrame, one: str, other: str) -> bool:
    """Return whether two variants have the same waits and utilization in all runs."""
    return all(
        first.equals(second)
        for first, second in (both(frame, one, other, m) for m in ("mean_wait", "useful"))
    )


def ratio(frame: pd.DataFrame, one: str, other: str, metric: str) -> pd.Series[float]:
    """Return the ratio of a metric to that of another variant, by file."""
    first, second = both(frame, one, other, metric)
    return first / second.where(second > 0)


def _window(own: pd.DataFrame, name: str) -> Record:
    near = sum(of(own, name, f"recorded_held.{level}") for level in (85, 90, 95))
    return {
        ("utilization", "held"): _spread(of(own, name, "occupied")),
        ("utilization", "running"): _spread(of(own, name, "useful")),
        ("utilization", "85% or more"): share(float(np.mean(near))),
        ("utilization", "paper"): f"{PUBLISHED['utilization']:.0%}",
        "mean wait": duration(of(own, name, "mean_wait").mean()),
        ("a run", "problems"): float(of(own, name, "problems").mean()),
        ("a run", "migrations"): float(of(own, name, "migrations").mean()),
        ("a run", "nominal solving time"): duration(of(own, name, "nominal_seconds").mean()),
    }


def _proactive(
    parts: Mapping[str, pd.DataFrame],
    frame: pd.DataFrame,
    name: str,
    metric: str,
    workload: str | None = None,
) -> pd.Series[float]:
    """Return a metric of a variant of the paper's system under the proactive reading, by file."""
    return of(read_as(parts[workload], "proactive") if workload else frame, name, metric)


def _buffer(own: pd.DataFrame, name: str) -> Record:
    mean = {metric: float(of(own, name, metric).mean()) for metric in BUFFERS}
    return {
        ("large jobs a run", "detected"): mean["large_detected"],
        ("large jobs a run", "prepared for"): mean["prepared"],
        ("large jobs a run", "started in that box"): mean["prepared_starts"],
        "jobs ahead when detected": mean["large_mean_ahead"],
        ("buffer period from", "detection"): duration(mean["large_mean_buffer"]),
        ("buffer period from", "preparation"): duration(mean["prepared_mean_buffer"]),
    }


def _variant(own: pd.DataFrame, name: str) -> Record:
    return {
        "variant": name,
        ("utilization", "held"): _spread(of(own, name, "occupied")),
        ("utilization", "running"): _spread(of(own, name, "useful")),
        ("utilization", "paper"): f"{PUBLISHED['utilization']:.0%}" if name in WINDOWS else None,
        ("wait", "all jobs"): duration(of(own, name, "mean_wait").mean()),
        ("wait", "large jobs"): duration(of(own, name, "large_mean_wait").mean()),
        "large job as queue head": duration(of(own, name, "large_mean_drain").mean()),
        "bounded slowdown": float(of(own, name, "mean_bounded_slowdown").mean()),
        "migrations": float(of(own, name, "migrations").mean()),
        "makespan": duration(of(own, name, "makespan").mean()),
    }


def _spread(values: pd.Series[float]) -> Cell:
    known = values.dropna()
    ends = span(100 * known, ".3g")
    return replace(share(float(known.mean())), note=f"{ends}%" if ends else "")


def migration_table(parts: Mapping[str, pd.DataFrame]) -> list[Record]:
    """Return the effect of migration by workload, in the paper's system and on EASY on boxes."""
    return [
        {
            "workload": workload,
            "variant": f"{with_} over {without}",
            ("points", "running"): _points(own, with_, without, "useful"),
            ("points", "fragmented"): _points(own, with_, without, NODE_TIME["fragmented"]),
            **{
                ("improvement", what): _improved(own, without, with_, metric)
                for metric, what in WAITS.items()
            },
            "migrations": float(of(own, with_, "migrations").mean()),
            "their share of node time": _lost(own, with_),
        }
        for workload, own in parts.items()
        for with_, without in TABLE["migrated"].items()
    ]


def _points(frame: pd.DataFrame, one: str, other: str, metric: str) -> Cell:
    first, second = both(frame, one, other, metric)
    return spread(100 * (first - second), "+.1f")


def _improved(frame: pd.DataFrame, old: str, new: str, metric: str) -> Cell:
    before, after = both(frame, old, new, metric)
    known = before.notna() & after.notna() & (before > 0)
    if not known.any():
        return cell(None)
    jobs = [jobs_of(file) for file in before.index[known]]
    return improved(improvement(before[known], after[known], jobs))


def _lost(frame: pd.DataFrame, variant: str) -> Cell:
    """Return the node time that migrations take over that in which jobs run."""
    migrating, running = (
        of(frame, variant, NODE_TIME[part]).mean() for part in ("migrating", "running")
    )
    return share(migrating / running if running > 0 else None)


def change_table(frame: pd.DataFrame, base: str) -> list[Record]:
    """Return the effect of each single change of a variant, by workload."""
    parts = by_workload(frame)
    labels = {name: name for name in TABLE["ablations"][base]} | {CEILING: f"({CEILING})"}
    return [
        {"change": label}
        | {
            ("ratio of the", what): _times(ratio(frame, name, base, metric))
            for metric, what in WAITS.items()
        }
        | {
            ("ratio of the wait in", workload): _times(ratio(own, name, base, "mean_wait"))
            for workload, own in parts.items()
        }
        | {
            ("points", what): None if name == CEILING else _points(frame, name, base, metric)
            for what, metric in (("running", "useful"), ("held", "occupied"))
        }
        for name, label in labels.items()
    ]


def _times(found: pd.Series[float]) -> Cell:
    return spread(found, ".2f", "median")


def search_table(parts: Mapping[str, pd.DataFrame]) -> list[Record]:
    """Return the gain of each search within a budget, or detection, over the paper's heuristic."""
    return [
        {
            "variant": name,
            "in place of": base,
            "workload": workload,
            ("a run", "problems"): float(runs["problems"].mean()),
            ("a run", "fallbacks"): float(runs["fallbacks"].mean()),
            "proven": proven_share(runs, VARIANTS[name]),
            "heuristic as good": share(float(runs["heuristic_matched"].astype(float).mean())),
            "points, running": _points(own, name, base, "useful"),
            **{
                ("ratio of the", what): replace(
                    _times(ratio(own, name, base, metric)), note=_both(own, name, base, metric)
                )
                for metric, what in WAITS.items()
            },
            "ratio of the solving time": _times(ratio(own, name, base, "nominal_seconds")),
        }
        for name, base in TABLE["searched"].items()
        for workload, own in parts.items()
        if len(runs := own[own["variant"] == name])
    ]


def proven_share(runs: pd.DataFrame, variant: Variant) -> Cell:
    """Return the share of a solver's problems that it has proven, or the bound that is known.

    A run counts its problems, proofs and problems without an answer over all models. Heuristics
    prove nothing, and only migrations have no answer. So there are at least as many migrations as
    problems without an answer, and at most as many placements as there are others.
    """
    solver = variant.solver.get("solver", "")
    proofs = float((runs["problems"] - runs["unproven"]).sum())
    unanswered = float(runs["unanswered"].fillna(0).sum())
    if solver.startswith("migration="):
        return _bounded("at most", proofs, unanswered)
    if solver.startswith("partition-mkp="):
        word = "at least" if variant.settings["migrate"] else ""
        return _bounded(word, proofs, float(runs["problems"].sum()) - unanswered)
    return cell(None)


def _bounded(word: str, proofs: float, problems: float) -> Cell:
    shown = share(proofs / problems if problems else None)
    return replace(shown, text=f"{word} {shown.text}".strip()) if problems else shown


def _both(frame: pd.DataFrame, one: str, other: str, metric: str) -> str:
    first, second = both(frame, one, other, metric)
    return f"{duration(first.mean()).text} for {duration(second.mean()).text}"


def _workloads(own: pd.DataFrame) -> Sequence[Record]:
    runs = own[own["variant"] == CEILING].to_dict(orient="records")
    return [
        {
            "workload": _workload(run["file"], run["workload"]),
            "jobs": int(run["jobs"]),
            "days": float(run["days"]),
            "offered load": float(run["offered"]),
            "large jobs": int(run["large_jobs"]),
            "work of large jobs": share(run["large_work"]),
            "largest job": int(run["largest_job"]),
        }
        for run in runs
    ]


def _workload(file: str, workload: str) -> str:
    drawn = MODELED.get(file)
    return file.removesuffix(".swf.gz") if drawn is None else f"{workload}, seed {drawn.seed}"


def _settings(frame: pd.DataFrame) -> list[Record]:
    from optsched.executions.migration import MigrationDelay
    from optsched.policies.torus import TorusBoxes

    defaults = {
        "prepare": TorusBoxes.prepare,
        "worth": TorusBoxes.worth,
        "bandwidth": MigrationDelay.bandwidth,
    }
    names = list(TABLE["bases"]["at start"])
    records = []
    for name, variant in VARIANTS.items():
        solver = variant.solver.get("solver", "the paper's heuristics")
        if "work_limit" in variant.solver:
            solver += f", work of at most {variant.solver['work_limit']:g}"
        cost = "free" if "restart" in variant.settings else "300 s and 0.064 s a node"
        records.append(
            {"variant": name}
            | {one: variant.settings[one] for one in names}
            | {one: variant.settings.get(one, default) for one, default in defaults.items()}
            | {
                "convex": variant.convex,
                "cost of migration": cost if variant.settings["migrate"] else None,
                "solvers": solver,
                "runs": int((frame["variant"] == name).sum()),
            }
        )
    return records
