"""All systems: the same jobs in every world, what each system gains, and what is chance."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from itertools import count
from math import isqrt, nan
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import pandas as pd

from optsched.errors import InputError
from optsched.machines.machine import read_machine
from optsched.metrics.jobs import least_large
from optsched.numbers import written
from optsched.schedule import State
from optsched.simulator.simulate import prepare_trace
from optsched.studies.claims import NotRunError, with_interval, without_noise
from optsched.studies.intervals import Interval, Noise, mean_of, noise_floor
from optsched.traces.catalogue import find_log
from optsched.traces.cleaning import clean
from optsched.traces.reading import read_trace
from optsched.traces.trace import Trace
from optsched.traces.transformations import drawn, infer_files, shaken, split_jobs, submitted

SHAKEN_PIECES = "{}-shaken-{}"
"""How the name of a trace of pieces is changed by a seed."""

# ---- What is run


@cache
def users_jobs(trace: str, most: int) -> tuple[Trace, dict[str, Any]]:
    """Return the first jobs of a trace of the user's, and what `own.site` would say of it."""
    log = prepare_trace(trace)
    jobs = log.jobs(1, min(most, len(log)))
    size = log.header.max_procs or int(log.processors.max())
    site = {"file": PurePath(log.name).name, "processors": size, "large_from": least_large(jobs)}
    return jobs, site


def words(plan: dict[str, Any]) -> dict[str, Any]:
    """Return the values of the braces in plan.toml; machines may be a little larger."""
    own = plan["own"]
    site = users_jobs(own["trace"], own["site"]["jobs"])[1] if own["trace"] else own["site"]
    size, shapes = site["processors"], own["shapes"]
    smp, cores = shapes["smp"], shapes["cluster"]
    return {
        "log": PurePath(site["file"]).name.removesuffix(".gz").removesuffix(".swf"),
        "processors": size,
        "large_from": site["large_from"],
        "large_boxes": max(1, size // shapes["large_boxes"]),
        "torus": "torus:" + "x".join(map(str, torus_of(size))),
        "smp": f"smp:{-(-size // smp)}x{smp}",
        "cluster": f"cluster:{-(-size // cores)}x{cores}",
        "cores": cores,
    }


def torus_of(processors: int) -> tuple[int, int, int]:
    """Return the sides of the smallest torus that has these processors and no flat shape.

    No side is more than twice as long as another, and their sum is the least.
    """
    for size in count(processors):
        shapes = [
            (a, b, size // a // b)
            for a in range(1, round(size ** (1 / 3)) + 1)
            if size % a == 0
            for b in range(a, isqrt(size // a) + 1)
            if size // a % b == 0 and size // a // b <= 2 * a
        ]
        if shapes:
            return min(shapes, key=sum)
    raise AssertionError("unreachable: a cube is such a torus")


def inputs(plan: dict[str, Any], folders: Sequence[Path]) -> dict[str, Trace]:
    """Make the traces: the first jobs of the log, with demands, and in pieces with files.

    Pieces of a job come together, and keep their file, in shaken traces too.
    """
    own, log = plan["own"], words(plan)["log"]
    site, demands, cores = own["site"], own["demands"], own["shapes"]["cluster"]
    if own["trace"]:
        jobs = users_jobs(own["trace"], site["jobs"])[0]
    else:
        jobs = read_trace(find_log(site["file"], folders)).jobs(1, site["jobs"])
    pieces = infer_files(split_jobs(jobs, cores).trace)
    made = {
        f"{log}.swf.gz": jobs,
        f"{log}-demands.swf.gz": drawn(jobs, demands["mix"], demands["seed"]),
        f"{log}-pieces.rackham.gz": pieces,
    }
    whole = clean(jobs)
    for seed in plan["lists"]["seeds"]:
        later = shaken(whole, own["shake"], seed) - whole.submit
        of_pieces = np.repeat(later, -(-whole.processors // cores))
        moved = submitted(pieces, pieces.submit + of_pieces)[0]
        made[SHAKEN_PIECES.format(f"{log}-pieces", seed) + ".rackham.gz"] = moved
    return made


def runs(plan: dict[str, Any], folders: Sequence[Path]) -> list[dict[str, Any]]:
    """Fill in the braces of the worlds, and repeat their blocks with shaken submissions."""
    known, blocks, seeds = words(plan), [], plan["lists"]["seeds"]
    for block in plan["runs"]:
        for world in np.atleast_1d(block["world"]).tolist():
            own = {"world": world} | filled_in(plan["axes"]["world"][world], known)
            again = [{"shake": plan["own"]["shake"], "shake_seed": seeds}]
            name, pieces, end = own["trace"].partition("-pieces")
            if pieces:
                files = [SHAKEN_PIECES.format(name + pieces, seed) + end for seed in seeds]
                again = [{"trace": file} for file in files]
            blocks += [
                block | own | more for more in ({}, *again) if not (more and "ties" in block)
            ]
    return blocks


def filled_in(table: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """Fill in the braces of a table; those alone in a text become what they stand for."""
    found = {}
    for key, value in table.items():
        if isinstance(value, dict):
            found[key] = filled_in(value, known)
        elif isinstance(value, str):
            found[key] = known.get(value.strip("{}"), value.format(**known))
        else:
            found[key] = value
    return found


# ---- What each run gains

AS_LOGGED = -1
"""The seed of runs whose submissions are those of the log."""

TIMES = {"mean_response": "turnaround_time", "mean_wait": "waiting_time"}
"""Means that are compared on the same jobs, and the columns of jobs.parquet."""

SAME = "{}_gain_same_jobs"
"""The columns with the gains on the jobs that finish with the baseline, too."""


def base_of(world: str, system: str) -> tuple[str, str]:
    """Return world and system that a system is compared with: time slices with plain nodes."""
    if world == "boxes of a torus":
        return world, system.removesuffix(", migrating")
    if world == "input files":
        return world, "files, fcfs"
    return "plain nodes" if world == "time slices" else world, "easy"


def beside(frame: pd.DataFrame) -> list[int | None]:
    """Return the row of the baseline of each run on the same jobs, shaken alike; None without it.

    Random ties have no effect on a baseline, so it is run once.
    """
    keys = [*zip(frame["world"], frame["system"], frame["shake_seed"])]
    rows = {key: row for row, key in enumerate(keys) if frame["ties"].iloc[row] != "random"}
    return [rows.get((*base_of(world, system), seed)) for world, system, seed in keys]


def prepare(results: pd.DataFrame, inputs: Path) -> pd.DataFrame:
    """Add the load of each trace, and the gains on the jobs that finish with the baseline, too."""
    rows = [*zip(results["trace"], results["machine"])]
    loads = {
        pair: load_of(inputs / PurePath(pair[0]).name, pair[1]) for pair in dict.fromkeys(rows)
    }
    of_pieces = results["trace"].str.extract(r"-shaken-(\d+)\.", expand=False).astype(float)
    seeds = results.get("shake_seed", pd.Series(np.nan, results.index)).fillna(of_pieces)
    frame = results.join(pd.DataFrame([loads[pair] for pair in rows], results.index))
    ties = frame.get("ties", pd.Series(None, frame.index, dtype=object))
    frame = frame.assign(shake_seed=seeds.fillna(AS_LOGGED).astype(int), ties=ties)
    gains = np.full((len(frame), len(TIMES)), np.nan)
    for row, base in enumerate(beside(frame)):
        if base is not None and killed(frame.iloc[[base, row]]):
            gains[row] = gain(*means_of_both(*map(jobs_of, frame["folder"].iloc[[base, row]])))
    return frame.assign(**{SAME.format(one): gains[:, place] for place, one in enumerate(TIMES)})


def load_of(file: Path, machine: str) -> dict[str, float]:
    """Return the days of a trace, the load that it offers to a machine, and the mean run time."""
    trace = read_trace(file)
    seconds = float(trace.submit.max() - trace.submit.min())
    work = float((trace.processors * trace.runtime).sum())
    offered = work / (read_machine(machine).size * seconds)
    return {"days": seconds / 86_400, "offered": offered, "mean_runtime": trace.runtime.mean()}


def killed(runs: pd.DataFrame) -> bool:
    """Return whether jobs do not finish in one of the runs."""
    return bool((runs["finished"] < runs["jobs"]).any())


def jobs_of(folder: str) -> pd.DataFrame:
    """Return state and times of the jobs of a run."""
    return pd.read_parquet(Path(folder) / "jobs.parquet", columns=["final_state", *TIMES.values()])


def means_of_both(before: pd.DataFrame, after: pd.DataFrame) -> list[np.ndarray]:
    """Return the means of the times in two runs of a trace, over jobs that finish in both."""
    both = (before["final_state"] == State.FINISHED) & (after["final_state"] == State.FINISHED)
    return [jobs.loc[both, [*TIMES.values()]].mean().to_numpy() for jobs in (before, after)]


def gain(before: Any, after: Any) -> Any:
    """Return by which share times are shorter; nan where there was nothing to shorten."""
    before = np.asarray(before, dtype=float)
    return 1 - np.asarray(after, dtype=float) / np.where(before > 0, before, np.nan)


METRICS = {
    "mean_response": "mean response",
    "mean_wait": "mean wait",
    "mean_bounded_slowdown": "bounded slowdown",
    "p95_wait": "wait, 95th percentile",
    "large_mean_wait": "wait of large jobs",
}
"""Times whose gains are computed, by their names in a summary, and their headings."""

OWN = {
    "plain nodes": {"loss_of_capacity": "loss of capacity", "contiguous_share": "contiguous"},
    "contiguous nodes": {
        "loss_of_capacity": "loss of capacity",
        "contiguous_share": "contiguous",
        "lost_processor_hours": "lost processor hours",
    },
    "time slices": {"mean_pause": "mean pause, s"},
    "boxes of a torus": {
        "migrations": "migrations",
        "migration_processor_hours": "processor hours migrating",
        "internal_fragmentation": "internal fragmentation",
        "external_fragmentation": "external fragmentation",
    },
    "shared bandwidth": {
        "penalised_jobs": "penalized jobs",
        "mean_penalised_percent": "penalized run time, %",
        "penalised_processor_hours": "penalized processor hours",
    },
    "input files": {
        "transfer_time": "transfer time, s",
        "waiting_for_a_load": "waiting for a load, s",
        "data_reuse": "data reuse",
    },
}
"""Figures that only one world has, and their headings."""


def load(results: pd.DataFrame) -> pd.DataFrame:
    """Add the name of each baseline and the gains over it, in percent; those of a baseline are 0.

    Where the jobs that finish differ, responses and waits are those of the jobs that finish with
    both. A mean over large jobs says nothing where all jobs are large.
    """
    all_large = results["large_jobs"] == results["finished"]
    frame = results.assign(large_mean_wait=results["large_mean_wait"].mask(all_large))
    rows = beside(frame)
    if None in rows:
        world, system, *_ = frame[["world", "system"]].iloc[rows.index(None)]
        raise InputError(f"no run of the baseline of {system}, {world}; expected one")
    base = frame.iloc[rows]
    lost = (frame["finished"] < frame["jobs"]) | (base["finished"] < base["jobs"]).to_numpy()
    for metric in METRICS:
        found = pd.Series(100 * gain(base[metric], frame[metric]), frame.index)
        if (same := frame.get(SAME.format(metric))) is not None:
            found = (100 * same).fillna(found.mask(lost))
        frame["gain." + metric] = found
    points = 100 * (frame["utilization"].to_numpy() - base["utilization"].to_numpy())
    return frame.assign(over=base["system"].to_numpy(), **{"gain.utilization": points})


def draws(runs: pd.DataFrame, world: str, system: str, ties: str | None = None) -> pd.DataFrame:
    """Return the runs of a system: as logged, then shaken; or with random ties."""
    own = runs[(runs["world"] == world) & (runs["system"] == system)]
    own = own[own["ties"].isna() if ties is None else own["ties"] == ties]
    if own.empty:
        raise NotRunError
    return own.sort_values("shake_seed")


# ---- What claims.toml names

READINGS = {"response": "mean_response", "wait": "mean_wait", "slowdown": "mean_bounded_slowdown"}


def shorter(
    runs: pd.DataFrame, reading: str, *, world: str, system: str, than: str = ""
) -> Interval:
    """Return by how much times are shorter than with the baseline: the mean of all draws.

    With `than` it is the baseline that is shorter. In a single run it is what that of the log
    shows, with the smallest effect that such a run can show to either side.
    """
    own = draws(runs, world, system)
    gains = own["gain." + READINGS.get(reading, "mean_response")].to_numpy()
    gains = -100 * gains / (100 - gains) if than else gains
    if reading != "single":
        return mean_of(gains)
    floor = noise_floor(gains[1:])
    return Interval(gains[0], gains[0] - floor.smallest, gains[0] + floor.smallest, floor.n, "t")


# ---- What the page needs


def yardstick(runs: pd.DataFrame, world: str) -> pd.DataFrame:
    """Return the gains in response of the systems of a world over one baseline for all of them.

    That is EASY on plain nodes where systems of a world have baselines of their own. A row is a
    draw, a column a system.
    """
    own = runs[(runs["world"] == world) & runs["ties"].isna()]
    gains = own.pivot(index="shake_seed", columns="system", values="gain.mean_response")
    if world == "boxes of a torus":
        easy = draws(runs, "plain nodes", "easy").set_index("shake_seed")["mean_response"]
        times = own.pivot(index="shake_seed", columns="system", values="mean_response")
        gains = 100 * (1 - times.div(easy, axis=0))
    return gains


def best(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the system of each world with the shortest responses, and those not told from it."""
    rows = []
    for world in OWN:
        gains = yardstick(runs, world)
        first = gains.mean().idxmax()
        apart = {one: mean_of(gains[first] - gains[one]) for one in gains if one != first}
        alike = [one for one in gains.mean().sort_values(ascending=False).index if one in apart]
        alike = [one for one in alike if not apart[one].low > 0]
        own = mean_of(gains[first]) * -0.01 + 1
        rows.append(
            {"world": world, "shortest responses": shown(first)}
            | {"times as long": with_interval(own, "times") if own.half else "–"}
            | {"not told from it": "; ".join(map(shown, alike))}
        )
    return pd.DataFrame(rows)


def shown(system: str) -> str:
    """Return the name of a system as the page writes it."""
    return re.sub(
        r"\b(easy|fcfs)\b", lambda found: found[0].upper(), system.removeprefix("files, ")
    )


def noise(claims: dict[str, Any]) -> pd.DataFrame:
    """Return the effect of each system in a single run, and the smallest that it could show."""
    rows = [
        {"group": one.group, "system": one.text, "as logged, %": one.found["single"].mean}
        | {"mean of draws, %": one.main.mean, "smallest effect, points": one.found["single"].half}
        for one in claims.values()
    ]
    return pd.DataFrame(rows).round(2)


def floors(runs: pd.DataFrame, claims: dict[str, Any]) -> pd.DataFrame:
    """Return the smallest effects of a single run, by group of claims, and with random ties."""
    rows = []
    for group, own in noise(claims).groupby("group", sort=False):
        least = own["smallest effect, points"]
        ends = dict.fromkeys(without_noise(one, "points") for one in (least.min(), least.max()))
        rows.append(
            {
                "gain": group,
                "drawn again": "submissions",
                "smallest effect, points": " to ".join(ends),
            }
        )
    for world in ("plain nodes", "contiguous nodes"):
        size = written(ties(runs, world).smallest)
        what = f"{world.capitalize()}: window, backfilled"
        rows.append({"gain": what, "drawn again": "ties", "smallest effect, points": size})
    return pd.DataFrame(rows)


def ties(runs: pd.DataFrame, world: str) -> Noise:
    """Return the noise floor of the window with random ties."""
    return noise_floor(draws(runs, world, "window, backfilled", "random")["gain.mean_response"])


def gains_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the mean gains of each system over its baseline, over all draws."""
    names = {
        f"gain.{one}": head for one, head in (METRICS | {"utilization": "utilization"}).items()
    }
    own = runs[runs["ties"].isna() & ~is_baseline(runs)]
    means = own.groupby(["world", "system", "over"], sort=False)[[*names]].mean().round(1)
    return means.rename(columns=names).reset_index()


def spelled(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with the names of systems as the page writes them."""
    names = table.columns.intersection(["system", "over"])
    return table.assign(**{name: table[name].map(shown) for name in names})


def is_baseline(runs: pd.DataFrame) -> Any:
    """Return a mask of the runs that are their own baselines."""
    pairs = zip(runs["world"], runs["system"])
    return np.array([base_of(*pair) == pair for pair in pairs])


def logged(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs on the jobs as logged."""
    return runs[runs["ties"].isna() & (runs["shake_seed"] == AS_LOGGED)]


def figures_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the figures of each system on the jobs as logged."""
    own, hour = logged(runs), 3600
    return pd.DataFrame(
        {
            "world": own["world"],
            "system": own["system"],
            "mean response, h": (own["mean_response"] / hour).round(3),
            "mean wait, h": (own["mean_wait"] / hour).round(3),
            "wait, 95th percentile, h": (own["p95_wait"] / hour).round(2),
            "bounded slowdown": own["mean_bounded_slowdown"].round(2),
            "utilization, %": (100 * own["utilization"]).round(2),
            "killed": own["killed"].astype(int),
            "problems": own["problems"].astype(int),
            "solver, nominal s": own["nominal_seconds"].round(3),
        }
    )


def own_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the figures that only one world has, on the jobs as logged, one a row."""
    rows = [
        {"world": run["world"], "system": run["system"], "figure": head, "value": run[name]}
        for _, run in logged(runs).iterrows()
        for name, head in OWN[run["world"]].items()
    ]
    return pd.DataFrame(rows)


RUN_TIMES = {
    "plain nodes": "as logged",
    "contiguous nodes": "shorter on adjacent nodes",
    "time slices": "as logged, in slices",
    "boxes of a torus": "longer if a job is moved",
    "shared bandwidth": "longer if bandwidth is short",
    "input files": "with the loading of files",
}


def worlds(runs: pd.DataFrame) -> pd.DataFrame:
    """Return run times, machine and systems of each world."""
    own = logged(runs).groupby("world", sort=False)
    machines = own["machine"].first()
    times = [RUN_TIMES[world] for world in machines.index]
    return pd.DataFrame(
        {"run times": times, "machine": machines, "systems": own.size()}
    ).rename_axis("world")


def tables(runs: pd.DataFrame, claims: dict[str, Any]) -> dict[str, Any]:
    """Return the tables of the page, and those of the data beside it."""
    return {
        "best": best(runs),
        "floors": floors(runs, claims),
        "worlds": worlds(runs),
        "noise": noise(claims),
        "gains": spelled(gains_table(runs)),
        "systems": spelled(figures_table(runs)),
        "own": spelled(own_table(runs)),
    }


def values(runs: pd.DataFrame, claims: dict[str, Any]) -> dict[str, Any]:
    """Return the values of the page by name."""
    plain, single = logged(runs), [one.found["single"] for one in claims.values()]
    first = plain.iloc[0]
    found: dict[str, Any] = {
        "runs": len(runs),
        "worlds": len(OWN),
        "draws": int(runs["shake_seed"].max()) + 1,
        "draws.all": int(runs["shake_seed"].max()) + 2,
        "shake": (0, int(runs["shake"].max())),
        "jobs": int(first["jobs"]),
        "days": first["days"],
        "load": 100 * first["offered"],
        "pieces": int(plain["jobs"].max()),
        "single.open": sum(one.verdict("single") == "not decided" for one in claims.values()),
    }
    for row in plain.itertuples():
        name = f"{row.world}.{row.system}"
        found[f"killed.{name}"] = int(row.killed)
    for world in OWN:
        gains = yardstick(runs, world)
        found |= {f"yardstick.{world}.{one}": mean_of(gains[one]) for one in gains}
        found |= {f"times.{world}.{one}": 1 - gains[one].mean() / 100 for one in gains}
    own = gains_table(runs).set_index(["world", "system"])
    for (world, system), row in own.iterrows():
        found |= {f"{head}.{world}.{system}": row[head] for head in METRICS.values()}
    first = [one for one in claims.values() if one.group == claims["conservative"].group]
    lucky = [one.found["single"].mean > one.main.mean for one in first]
    worst = max(claims.values(), key=lambda one: one.found["single"].half)
    losers = own[[one.startswith(("window", "gang")) for one in own.index.get_level_values(1)]]
    aware = ("sjbf-less-consume", "sjbf-threshold", "rua")
    rules = [claims[f"shared-{key}"].main.mean for key in aware]
    files = {key: one for key, one in claims.items() if key.startswith("files")}
    gains = {key: one.main.mean for key, one in files.items()}
    floors_of_files = sorted(one.found["single"].half for one in files.values())
    plain = [one for one in first if one.text != "window, backfilled"]
    ordered = [one for one in first if one.text.endswith(", backfilled") and one in plain]
    won = [one.main.mean for one in ordered if one.verdict() == "holds"]
    lost = [one.text for one in ordered if one.verdict() == "does not hold"]
    single = [one.found["single"].half for one in plain]
    halves = [one.main.half for one in plain]
    return found | {
        "logged.lucky": sum(lucky),
        "logged.plain": len(lucky),
        "single.worst": worst is claims["boxes-easy-on-boxes-migrating"],
        "shake.minute": set(runs["shake"].dropna()) == {60},
        "halves": (min(halves), max(halves)),
        "floors.plain": (min(single), max(single)),
        "floors.files.most": floors_of_files[-1],
        "floors.files.small": floors_of_files[-2] < 0.5,
        "orders.won": (min(won, default=nan), max(won, default=nan)),
        "orders.lost": lost == ["f4, backfilled", "unicef, backfilled"],
        "shared.rules": (min(rules), max(rules)),
        "f1.either": round(claims["f1"].main.mean) == round(claims["f1-backfilled"].main.mean),
        "window-gang.never": bool((losers["mean response"] < 0).all()),
        "conservative.slowdown": claims["conservative"].verdict("slowdown") == "not decided",
        "contiguous.loss": claims["contiguous-window-backfilled"].main * -1,
        "boxes.easy.open": claims["boxes-easy-on-boxes-migrating"].verdict() == "not decided",
        "boxes.times": tuple(
            found[f"times.boxes of a torus.{one}"] for one in ("exact", "layered")
        ),
        "killed.none": found["killed.shared bandwidth.sjbf, first-fit"] == 0,
        "files.small": all(0 < gains[f"files-{one}"] < 0.5 for one in ("eft", "leo", "lem")),
        "files.conservative": (
            min(gain for key, gain in gains.items() if "conservative" in key),
            max(gain for key, gain in gains.items() if "conservative" in key),
        ),
        "eft.is-lem": claims["files-eft"].found == claims["files-lem"].found,
    }
