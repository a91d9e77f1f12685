"""The numbers and tables of the page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.numbers import counted
from optsched.report.page import Cell, Value, cell, duration, share
from optsched.studies.paired import signed
from optsched.studies.systems.evaluation import (
    GAIN,
    POINTS,
    SAME,
    SECONDS,
    TIMES,
    gain,
    is_baseline,
    run_of,
    site_run,
    systems_of,
)
from optsched.studies.systems.figures import FARTHEST, SHOWN
from optsched.studies.systems.plan import DEMANDS, PLAIN_EASY, Key, World, unplanned, worlds
from optsched.studies.template import Record

if TYPE_CHECKING:
    import pandas as pd

DIMENSIONLESS = "mean_bounded_slowdown"
SHARES = (
    *("loss_of_capacity", "contiguous_share", "internal_fragmentation", "external_fragmentation"),
)
"""Own figures of worlds that are shown in percent."""

BEHIND = 0.05
"""A machine that takes this share longer than EASY on plain nodes may not keep up with jobs."""

EFFECT = 0.05
"""Smaller gains are no effect: equally good choices change as much."""

NOTHING = 0.0005
"""Smaller gains are shown as none."""


def values(frame: pd.DataFrame, *, quick: bool) -> Mapping[str, Any]:
    """Return the names that the template uses."""
    site = site_run(frame)
    every = {world.name: world for world in worlds(site)}
    return {
        "site": site,
        "worlds": every,
        "demands": DEMANDS,
        "farthest": FARTHEST,
        "behind": BEHIND,
        "effect": EFFECT,
        "unplanned": unplanned(),
        "pieces": int(frame["jobs"].max()),
        "better": int((frame[GAIN["mean_response"]] >= EFFECT).sum()),
        "worse": int((frame[GAIN["mean_response"]] <= -EFFECT).sum()),
        "best": [_best(frame, world) for world in every.values()],
        "remarks": lambda world: remarks(frame, world),
        "compared": [
            {
                "system": run["system"],
                "world": run["world"],
                "gains": [run[GAIN[metric]] for metric in SHOWN],
            }
            for run in _runs(frame[~is_baseline(frame)])
        ],
        "overall": overall_table(frame),
        "records_of": lambda world: world_table(frame, world),
        "traces": [_trace(frame, world) for world in every.values()],
    }


def _runs(frame: pd.DataFrame) -> list[dict[Any, Any]]:
    return frame.to_dict(orient="records")


def shortest(frame: pd.DataFrame, world: World, metric: str) -> Record | None:
    """Return the system with the shortest time in a world, and its gains, or None.

    The gains are those over its baseline, and over the system beside where that is no baseline.
    """
    own = systems_of(frame, world.name)
    if own[metric].isna().all():
        return None
    run = own.iloc[int(own[metric].argmin())]
    base = Key(run["base_world"], run["base"])
    yardsticks = [base] if base != Key(world.name, run["system"]) else []
    if (beside := _only_beside(world)) is not None:
        yardsticks.append(beside)
    gains = {key: float(gain(run_of(frame, key)[metric], run[metric])) for key in yardsticks}
    known = [(found, _named(key, world)) for key, found in gains.items() if not np.isnan(found)]
    return {"system": run["system"], "gains": known}


def _fastest(frame: pd.DataFrame, world: World, metric: str = "mean_response") -> Record:
    """Return the system with the shortest time of a world, with its gains."""
    found = shortest(frame, world, metric)
    gains = [f"{signed(own)}% over {other}" for own, other in found["gains"]] if found else []
    return {
        "world": world.name,
        "system": found["system"] if found else None,
        "gain": "; ".join(gains) or ("baseline" if found else None),
    }


def _best(frame: pd.DataFrame, world: World) -> Record:
    """Return the systems with the shortest times of a world, with their gains."""
    record: Record = {"world": world.name}
    for metric in ("mean_response", "mean_wait"):
        found = _fastest(frame, world, metric)
        record |= {(f"shortest {TIMES[metric]}", head): found[head] for head in ("system", "gain")}
    return record


def _only_beside(world: World) -> Key | None:
    """Return the system of another world that stands beside, unless it is the baseline."""
    return None if world.beside in world.baselines.values() else world.beside


def _named(key: Key, world: World) -> str:
    return key.system if key.world == world.name else f"{key.system} on {key.world}"


def remarks(frame: pd.DataFrame, world: World) -> Record:
    """Return the remarkable figures of a world, by the names that the template uses."""
    own = systems_of(frame, world.name)
    compared = own[~is_baseline(own)]
    gains = compared[list(GAIN.values())]
    better, worse = (gains > NOTHING).any(axis=1), (gains < -NOTHING).any(axis=1)
    nothing = (gains.fillna(0).abs() <= NOTHING).all(axis=1)
    over = own["makespan"] / run_of(frame, PLAIN_EASY)["makespan"] - 1
    return {
        "extremes": {
            TIMES[metric]: tuple(
                _with_gain(compared, metric, end) for end in (one.max(), one.min())
            )
            for metric in SHOWN
            for one in [compared[GAIN[metric]]]
            if one.notna().any()
        },
        "better": compared["system"][better & ~worse].tolist(),
        "worse": compared["system"][worse & ~better].tolist(),
        "mixed": int((better & worse).sum()),
        "compared": len(compared),
        "same": compared["system"][nothing].tolist(),
        "twins": _twins(own),
        "killed": _killed(own, compared),
        "left": _runs(own[own["rejected"] + own["waiting"] > 0]),
        "late": {name: late for name, late in zip(own["system"], over) if late > BEHIND},
        "beside": _beside(frame, world),
    }


def _twins(own: pd.DataFrame) -> list[list[str]]:
    """Return the systems of a world whose runs have the same figures, where there are several."""
    figures = own[[*TIMES, "utilization", "makespan", "killed"]].fillna(-1)
    alike = own.groupby([figures[name] for name in figures], sort=False)["system"]
    return [names.tolist() for _, names in alike if len(names) > 1]


def _with_gain(runs: pd.DataFrame, metric: str, value: float) -> str:
    """Return the first system with a gain, how many more have it too, and the gain."""
    apart = (runs[GAIN[metric]] - value).abs().sort_values(kind="stable")
    first, *more = runs["system"][apart.index[apart <= NOTHING]]
    others = f" and {counted(len(more), 'other')}" if more else ""
    return f"{first}{others} ({signed(value)}%)"


def _killed(own: pd.DataFrame, compared: pd.DataFrame) -> Record | None:
    """Return the fewest and the most killed jobs, if they differ, and gains on the same jobs."""
    ends = {
        name: {"jobs": run["killed"], "system": run["system"]}
        for name, run in (
            ("least", own.nsmallest(1, "killed").iloc[0]),
            ("most", own.nlargest(1, "killed").iloc[0]),
        )
    }
    if ends["least"]["jobs"] == ends["most"]["jobs"]:
        return None
    same = [
        {"system": run["system"], "gains": [run[name] for name in SAME.values()]}
        for run in _runs(compared)
    ]
    return {**ends, "of": own["jobs"].iloc[0], "same_jobs": same}


def _beside(frame: pd.DataFrame, world: World) -> Record | None:
    """Return the waits beside that of the system that is no baseline."""
    beside = _only_beside(world)
    if beside is None or not (wait := run_of(frame, beside)["mean_wait"]) > 0:
        return None
    waits = systems_of(frame, world.name).set_index("system")["mean_wait"]
    return {"name": _named(beside, world), "wait": wait, "waits": waits.to_dict()}


def overall_table(frame: pd.DataFrame) -> list[Record]:
    """Return the gain of every system over its baseline, and its costs."""
    heads: dict[tuple[str, str], str] = {
        **{("gain, %", TIMES[metric]): column for metric, column in GAIN.items()},
        ("gain, %", "utilization"): POINTS,
    }
    records = []
    for run, own in zip(_runs(frame), is_baseline(frame)):
        elsewhere = f" on {run['base_world']}" if run["base_world"] != run["world"] else ""
        record: Record = {
            "system": run["system"],
            "world": run["world"],
            "compared with": "baseline" if own else f"{run['base']}{elsewhere}",
            **{head: None if own else _gained(run[name]) for head, name in heads.items()},
            ("cost", "killed"): int(run["killed"]),
            ("cost", "problems"): int(run["problems"]),
            ("cost", "solver time"): duration(run[SECONDS]),
        }
        records.append(record)
    return records


def _gained(value: float) -> Cell:
    return cell(None) if np.isnan(value) else Cell(signed(value), value)


def world_table(frame: pd.DataFrame, world: World) -> list[Record]:
    """Return the figures of the systems of a world, with the gains small beside them."""
    beside = [] if world.beside is None else [_record(run_of(frame, world.beside), world, True)]
    own = _runs(systems_of(frame, world.name))
    return [*beside, *(_record(run, world, False) for run in own)]


def _record(run: Mapping[Any, Any] | pd.Series[Any], world: World, beside: bool) -> Record:
    itself = (run["world"], run["system"]) == (run["base_world"], run["base"])

    def time(metric: str) -> Cell:
        shown = cell(run[metric]) if metric == DIMENSIONLESS else duration(run[metric])
        found = run[GAIN[metric]]
        known = not (beside or itself or np.isnan(found))
        return replace(shown, note=f"{signed(found)}%" if known else "")

    def own(name: str) -> Value:
        value = None if beside else run[name]
        return share(value) if name in SHARES else value

    return {
        "system": f"{run['system']}, on {run['world']}" if beside else run["system"],
        **{head: time(metric) for metric, head in TIMES.items()},
        "utilization": share(run["utilization"]),
        "killed": int(run["killed"]),
        **{head: own(name) for name, head in world.own.items()},
        "problems": int(run["problems"]),
        "solver time": duration(run[SECONDS]),
    }


def _trace(frame: pd.DataFrame, world: World) -> Record:
    one = systems_of(frame, world.name).iloc[0]
    return {
        "world": world.name,
        "machine": world.machine,
        "execution": world.execution or "as logged",
        "jobs": int(one["jobs"]),
        "days": Cell(f"{one['days']:.3g}", one["days"]),
        "load": share(one["offered"]),
        "mean run time": duration(one["mean_runtime"]),
        "systems": len(world.systems),
    }
