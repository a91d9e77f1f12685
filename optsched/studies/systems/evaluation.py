"""Runs by world and system, and what each gains over its baseline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optsched.errors import InputError
from optsched.studies.results import check_results
from optsched.studies.systems.same_jobs import SAME, jobs_of, means_of_both
from optsched.studies.systems.site import BLUE, SAMPLE, Site
from optsched.studies.systems.worlds import Key, System, World, worlds

if TYPE_CHECKING:
    import pandas as pd

TIMES = {
    "mean_wait": "mean wait",
    "p95_wait": "wait, 95%",
    "mean_bounded_slowdown": "bounded slowdown",
    "mean_response": "mean response",
    "large_mean_wait": "wait of large jobs",
}
"""What a system shortens or lengthens, by its name in a summary, and how it is called."""

GAIN = {metric: f"{metric}_gain" for metric in TIMES}
"""The columns with the relative gains."""

POINTS = "utilization_gain"
"""The column with what is gained of the machine, as a share of it."""

OF_RUN = (
    *("jobs", "finished", "killed", "rejected", "waiting", "large_jobs", "utilization", "makespan"),
    *("problems", "unproven", "fallbacks"),
)
SECONDS = "nominal_seconds"
"""Of the solvers; a run without problems has none."""

NEEDED = ("trace", "machine", "policy", "folder", *TIMES, *OF_RUN)
"""Columns of the results that the evaluation reads."""


def prepare(results: pd.DataFrame, inputs: Path) -> pd.DataFrame:
    """Return the results of the sweep with the columns that the evaluation goes by.

    ``world``, ``system``, ``base_world`` and ``base`` (the baseline), ``path`` (of the trace), the
    figures, and the gains, in the order of tables.

    Raises
    ------
    InputError
        If runs have failed, or they are not those of this study.
    """
    import pandas as pd

    check_results(results, NEEDED)
    site = site_run(results)
    known = _planned(site)
    stated = [name for name in map(str, results) if name.startswith("settings.")]
    rows = results.to_dict(orient="records")
    keys = [_key(row, {name.partition(".")[2]: row[name] for name in stated}) for row in rows]
    for row, key in zip(rows, keys):
        if key not in known:
            told = f"{row['policy']} on {row['machine']} is not part of this study"
            raise InputError(f"{told}; expected its runs, of policies that are registered")
    there = {Key(known[key][0].name, known[key][1]) for key in keys}
    needed = [base for one in worlds(site) for base in one.baselines.values()]
    if lost := [base for base in needed if base not in there]:
        raise InputError(f"no run of {lost[0].system} on {lost[0].world}; expected the baselines")
    frame = results.assign(
        world=[known[key][0].name for key in keys],
        system=[known[key][1] for key in keys],
        base_world=[known[key][0].baselines[known[key][1]].world for key in keys],
        base=[known[key][0].baselines[known[key][1]].system for key in keys],
        path=[str(inputs / known[key][0].trace) for key in keys],
    )
    place = {key: number for number, key in enumerate(known)}
    order = pd.Series([place[key] for key in keys]).sort_values().index
    frame = frame.iloc[order].reset_index(drop=True)
    figures = (*OF_RUN, *TIMES, SECONDS, *(name for one in worlds(site) for name in one.own))
    for name in dict.fromkeys(figures):
        frame[name] = frame[name].astype(float) if name in frame else np.nan
    every = frame["large_jobs"] == frame["finished"]
    frame = frame.assign(large_mean_wait=frame["large_mean_wait"].mask(every))
    return with_same_jobs(with_gains(frame))


def with_gains(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the runs with what each gains over its baseline.

    Of the `TIMES` it is by which share they are shorter; of utilisation the difference. So more is
    better, and a baseline gains nothing over itself.
    """
    base = _bases(frame)
    gains = {GAIN[name]: gain(base[name].to_numpy(), frame[name].to_numpy()) for name in TIMES}
    points = frame["utilization"].to_numpy() - base["utilization"].to_numpy()
    return frame.assign(**gains, **{POINTS: points})


def with_same_jobs(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the runs with what each gains on the jobs that finish with its baseline, too.

    Where all jobs finish with both, that is its gain.
    """
    found = frame[[GAIN[metric] for metric in SAME]].to_numpy(copy=True)
    base = _bases(frame)
    lost = (frame["finished"] < frame["jobs"]).to_numpy() | (
        base["finished"] < base["jobs"]
    ).to_numpy()
    for row in np.flatnonzero(lost):
        jobs = (jobs_of(runs["folder"].iloc[row]) for runs in (base, frame))
        found[row] = gain(*means_of_both(*jobs))
    return frame.assign(**dict(zip(SAME.values(), found.T)))


def _bases(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the baseline of each run, in the order of the runs."""
    row_of = {key: row for row, key in enumerate(zip(frame["world"], frame["system"]))}
    return frame.iloc[[row_of[key] for key in zip(frame["base_world"], frame["base"])]]


def gain(before: ArrayLike, after: ArrayLike) -> NDArray[np.float64]:
    """Return by which share times are shorter: 0.1 is ten percent.

    Where there was nothing to shorten it is 0 if that is still so, else nan.
    """
    old, new = np.asarray(before, dtype=float), np.asarray(after, dtype=float)
    known = np.where(old > 0, old, np.nan)
    return np.where((old == 0) & (new == 0), 0.0, 1 - new / known)


def site_run(frame: pd.DataFrame) -> Site:
    """Return the log that was run, and its machine."""
    machines = {one.machine for one in worlds(SAMPLE)}
    return SAMPLE if machines & set(frame["machine"]) else BLUE


def systems_of(frame: pd.DataFrame, world: str) -> pd.DataFrame:
    """Return the runs of a world, in order."""
    return frame[frame["world"] == world]


def run_of(frame: pd.DataFrame, key: Key) -> pd.Series[Any]:
    """Return the run of a system."""
    return frame[(frame["world"] == key.world) & (frame["system"] == key.system)].iloc[0]


def is_baseline(frame: pd.DataFrame) -> pd.Series[bool]:
    """Return which runs are compared with themselves."""
    return (frame["world"] == frame["base_world"]) & (frame["system"] == frame["base"])


def all_systems(frame: pd.DataFrame) -> pd.DataFrame:
    """Return world, system, baseline, figures and gains of every run, one row each."""
    told = ["world", "system", "base_world", "base", "machine", "execution"]
    own = dict.fromkeys(name for one in worlds(site_run(frame)) for name in one.own)
    return frame[[*told, *OF_RUN, SECONDS, *TIMES, *GAIN.values(), POINTS, *SAME.values(), *own]]


def _planned(site: Site) -> dict[tuple[Any, ...], tuple[World, str]]:
    """Return world and system of each run that is planned, in order."""
    return {
        _key(_stated(world, system), {**world.settings, **system.settings}): (world, name)
        for world in worlds(site)
        for name, system in world.systems.items()
    }


def _stated(world: World, system: System) -> dict[str, Any]:
    return {
        "machine": world.machine,
        "execution": world.execution,
        "policy": system.policy,
        "solver": system.solver,
    }


def _key(row: Any, settings: Any) -> tuple[Any, ...]:
    """Return what tells runs apart: the settings that are stated, and what they run on."""
    import pandas as pd

    named = ("machine", "execution", "policy", "solver")
    told = (None if pd.isna(row.get(name)) else row[name] for name in named)
    return (*told, frozenset((key, value) for key, value in settings.items() if not pd.isna(value)))
