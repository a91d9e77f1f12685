"""The figures of the evaluated jobs of each run, and the published ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from optsched.machines.machine import read_machine
from optsched.schedule import State
from optsched.studies.guim_2009.plan import CENTRES, CONTENT, runs
from optsched.studies.offered import offered_by, with_figures
from optsched.studies.results import check_results, labelled
from optsched.studies.student import Mean, mean_of
from optsched.text_files import read_toml
from optsched.traces.bandwidth import LEVELS

if TYPE_CHECKING:
    import pandas as pd

    from optsched.traces.trace import Trace

_PUBLISHED = read_toml(CONTENT / "published.toml")
PUBLISHED = _PUBLISHED["tables"]
TABULATED = _PUBLISHED["policies"]
LCT = [name for name in TABULATED if name.startswith("LCT")]
"""Tables 1 to 7, the policies that are their columns, and those of them with a threshold, from the
least on."""

KILLED = "killed"

OF_FINISHED = {
    "bounded_slowdown": "bounded_slowdown",
    "wait": "waiting_time",
    "penalised_percent": "penalised_percent",
}
"""Figures of the evaluated jobs that finished, and the columns of the jobs that have them."""

METRICS = (*(f"{kind}_{name}" for name in OF_FINISHED for kind in ("p95", "mean")), KILLED)
"""The figures of the evaluated jobs, by their names in a summary."""

PERCENTILES = (50, 75, 90, 95, 99)
BY_PERCENTILE = {name: {p: f"p{p}_{name}" for p in PERCENTILES} for name in OF_FINISHED}
"""The column of each percentile."""

FIGURES = tuple(
    dict.fromkeys([*METRICS, *(name for own in BY_PERCENTILE.values() for name in own.values())])
)
"""All figures of the evaluated jobs."""

OF_RUN = ("utilization", "problems", "unproven", "fallbacks", "heuristic_matched")
"""Figures of the whole run."""


def prepare(results: pd.DataFrame, inputs: Path) -> pd.DataFrame:
    """Add ``centre``, ``mix``, ``seed``, ``scheduler``, figures of the trace, and `FIGURES`."""
    import pandas as pd

    check_results(results, ("trace", "machine", "policy", "solver", "jobs", "folder", *OF_RUN))
    planned = runs(quick=False) | runs(quick=True)
    frame = labelled(results, planned, ("centre", "mix", "seed", "scheduler"))
    frame = with_figures(frame, inputs, figures_of_trace)
    jobs = (pd.read_parquet(Path(folder) / "jobs.parquet") for folder in frame["folder"])
    return frame.assign(**pd.DataFrame(map(figures_of, jobs)))


def figures_of_trace(trace: Trace, machine: str) -> dict[str, float]:
    """Return the load of a trace, its largest job, its mean demand, and who has which demand."""
    demand, work = trace.annotations["bandwidth"], trace.processors * trace.runtime
    shares = {f"demand_{level}": float((demand == mb).mean()) for level, mb in LEVELS.items()}
    return shares | {
        "load": offered_by(trace, read_machine(machine).size).load,
        "largest_job": int(trace.processors.max()),
        "mean_demand": float((work * demand).sum()) / float(work.sum()),
    }


def figures_of(jobs: pd.DataFrame) -> dict[str, float]:
    """Compute the `FIGURES` of the second half of the jobs, and their number, ``evaluated``.

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


def by_draw(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each centre, mix and seed, a column for each metric and scheduler."""
    labels = ["centre", "mix", "seed"]
    return frame.pivot(index=labels, columns="scheduler", values=[*METRICS]).astype(float)


def mean(frame: pd.DataFrame, centre: str, mix: str, scheduler: str, metric: str) -> Mean:
    """Return the mean of a metric over the draws of the demands."""
    wanted = {"centre": centre, "mix": mix, "scheduler": scheduler}
    own = np.logical_and.reduce([frame[name].to_numpy() == value for name, value in wanted.items()])
    return mean_of(frame[metric].to_numpy()[own])


def change(draws: pd.DataFrame, one: str, other: str, metric: str) -> Mean:
    """Return a metric of a scheduler over that of another on the same draws, of `by_draw`.

    The mean is over the draws; nan if there is nothing to compare with. Killed jobs are summed over
    the workloads of a draw. Of other metrics it is the geometric mean over workloads and draws;
    where one of the two is 0 they are left out.
    """
    above, below = draws[metric, one], draws[metric, other]
    if metric == KILLED:
        above, below = (killed.groupby(level="seed").sum() for killed in (above, below))
        return mean_of(above / below.where(below > 0))
    logarithms = (above.where(above > 0) / below.where(below > 0)).map(np.log)
    return Mean(*np.exp(mean_of(logarithms.groupby(level="seed").mean())).tolist())


def all_runs(frame: pd.DataFrame) -> pd.DataFrame:
    """Return workload, scheduler and figures of every run, one row each."""
    labels = ["centre", "mix", "seed", "machine", "scheduler", "jobs", "evaluated"]
    return frame[[*labels, *FIGURES, *OF_RUN]]


def published(metric: str, centre: str, mix: str, policy: str) -> float | None:
    """Return a published number: nan if it is lost, None if there is none."""
    table = next(one for one in PUBLISHED if one["metric"] == metric)
    if centre not in CENTRES:
        return None
    row = table[centre][_PUBLISHED["mixes"].index(mix)]
    return float(row[TABULATED.index(policy)])
