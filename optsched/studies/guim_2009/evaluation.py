"""Runs by workload and policy, and the figures of their evaluated jobs."""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.schedule import State
from optsched.studies.guim_2009.plan import SCHEDULERS, Workload, workloads
from optsched.studies.guim_2009.published import KILLED
from optsched.studies.results import check_results
from optsched.studies.student import Mean, mean_of

if TYPE_CHECKING:
    import pandas as pd

OF_FINISHED = {
    "bounded_slowdown": "bounded_slowdown",
    "wait": "waiting_time",
    "penalised_percent": "penalised_percent",
}
"""What is told of the evaluated jobs that finished, and the column of the jobs that has it."""

METRICS = (*(f"{kind}_{name}" for name in OF_FINISHED for kind in ("p95", "mean")), KILLED)
"""The figures of the evaluated jobs, by their names in a summary."""

PERCENTILES = (50, 75, 90, 95, 99)
BY_PERCENTILE = {
    name: {percentile: f"p{percentile}_{name}" for percentile in PERCENTILES}
    for name in OF_FINISHED
}
"""The percentiles that are told of each of them, and their columns."""

FIGURES = tuple(
    dict.fromkeys([*METRICS, *(name for own in BY_PERCENTILE.values() for name in own.values())])
)
"""All that is told of the evaluated jobs."""

SETTINGS = ("threshold", "goal", "choice", "limits")
"""Settings that tell schedulers apart."""

OF_RUN = ("utilization", "problems", "unproven", "fallbacks", "heuristic_matched")
"""Figures of the whole run."""

NEEDED = ("trace", "machine", "policy", "solver", "jobs", "folder", *OF_RUN)
"""Columns of the results that the evaluation reads."""


def prepare(results: pd.DataFrame, inputs: Path) -> pd.DataFrame:
    """Return the results of the sweep with the columns that the evaluation goes by.

    ``centre``, ``mix``, ``seed``, ``scheduler``, ``path`` (of the trace), ``evaluated`` (how many
    jobs are), and of these the `FIGURES`, in the order of tables.

    Raises
    ------
    InputError
        If runs have failed, or they are not those of this study.
    """
    import pandas as pd

    check_results(results, NEEDED)
    scheduler_of = {
        _key(one.policy, one.solver, one.settings): name for name, one in SCHEDULERS.items()
    }
    columns = {f"settings.{name}": name for name in SETTINGS}
    stated = results.reindex(columns=list(columns)).rename(columns=columns)
    own = [_workload(trace) for trace in results["trace"]]
    told = {
        "centre": [one.centre.name for one in own],
        "mix": [one.mix for one in own],
        "seed": [one.seed for one in own],
        "scheduler": [
            scheduler_of[_key(policy, solver, settings)]
            for policy, solver, settings in zip(
                results["policy"], results["solver"], stated.to_dict(orient="records")
            )
        ],
        "path": [str(inputs / one.file) for one in own],
    }
    measured = pd.DataFrame(
        [figures_of(pd.read_parquet(Path(folder) / "jobs.parquet")) for folder in results["folder"]]
    )
    runs = results[["run", "machine", "jobs", *OF_RUN]].reset_index(drop=True)
    frame = pd.concat([pd.DataFrame(told), runs, measured], axis=1)
    place = {name: number for number, name in enumerate(SCHEDULERS)}
    order = [_places()[one] for one in own]
    by = pd.DataFrame({"workload": order, "scheduler": frame["scheduler"].map(place)})
    return frame.loc[by.sort_values(["workload", "scheduler"]).index].reset_index(drop=True)


def figures_of(jobs: pd.DataFrame) -> dict[str, float]:
    """Return the `FIGURES` of the second half of the jobs, and how many these are.

    Slowdowns, waiting times and penalties are those of jobs that finished; nan if none has.
    """
    own = jobs.iloc[len(jobs) // 2 :]
    finished = own[own["final_state"] == State.FINISHED]
    killed = int((own["final_state"] == State.KILLED).sum())
    figures: dict[str, float] = {"evaluated": len(own), KILLED: killed}
    for name, own_column in OF_FINISHED.items():
        values = finished[own_column].to_numpy(dtype=float)
        known = len(values) > 0
        for percentile, column in BY_PERCENTILE[name].items():
            figures[column] = float(np.percentile(values, percentile)) if known else float("nan")
        figures[f"mean_{name}"] = float(values.mean()) if known else float("nan")
    return figures


def _workload(trace: str) -> Workload:
    known = {one.file: one for one in _places()}
    return known[PurePath(trace).name]


def _places() -> dict[Workload, int]:
    every = [*workloads(quick=False), *workloads(quick=True)]
    return {one: number for number, one in enumerate(every)}


def _key(policy: str, solver: str, settings: Any) -> tuple[Any, ...]:
    import pandas as pd

    told = (policy, solver, *(settings.get(name) for name in SETTINGS))
    return tuple(None if pd.isna(value) else value for value in told)


def centres(frame: pd.DataFrame) -> list[str]:
    """Return the logs that were run, in order."""
    return list(dict.fromkeys(frame["centre"]))


def mixes(frame: pd.DataFrame) -> list[str]:
    """Return the mixes that were run, in order."""
    return list(dict.fromkeys(frame["mix"]))


def part(frame: pd.DataFrame, centre: str, mix: str) -> pd.DataFrame:
    """Return the runs of a log with a mix."""
    return frame[(frame["centre"] == centre) & (frame["mix"] == mix)]


def by_draw(frame: pd.DataFrame, scheduler: str, metric: str) -> pd.Series[float]:
    """Return a metric of a scheduler, by centre, mix and seed."""
    own = frame[frame["scheduler"] == scheduler]
    return own.set_index(["centre", "mix", "seed"])[metric].astype(float).sort_index()


def mean(frame: pd.DataFrame, centre: str, mix: str, scheduler: str, metric: str) -> Mean:
    """Return the mean of a metric over the draws of the demands."""
    wanted = {"centre": centre, "mix": mix, "scheduler": scheduler}
    own = np.logical_and.reduce([frame[name].to_numpy() == value for name, value in wanted.items()])
    return mean_of(frame[metric].to_numpy()[own])


def change(frame: pd.DataFrame, one: str, other: str, metric: str) -> Mean:
    """Return a metric of a scheduler over that of another on the same draws.

    Killed jobs are summed over the workloads of a draw. Of other metrics it is the geometric mean
    over workloads and draws; where one of the two is 0 they are left out.

    Parameters
    ----------
    frame : pandas.DataFrame
        What `prepare` returns, or the rows of some workloads.
    one, other : str
        The schedulers.
    metric : str
        One of `METRICS`.

    Returns
    -------
    Mean
        Over the draws; nan if there is nothing to compare with.
    """
    above, below = by_draw(frame, one, metric), by_draw(frame, other, metric)
    if metric == KILLED:
        above, below = (killed.groupby(level="seed").sum() for killed in (above, below))
        return mean_of(above / below.where(below > 0))
    logarithms = (above.where(above > 0) / below.where(below > 0)).map(np.log)
    return Mean(*np.exp(mean_of(logarithms.groupby(level="seed").mean())).tolist())


def all_runs(frame: pd.DataFrame) -> pd.DataFrame:
    """Return workload, scheduler and figures of every run, one row each."""
    told = ["centre", "mix", "seed", "machine", "scheduler", "jobs", "evaluated"]
    return frame[[*told, *FIGURES, *OF_RUN]]
