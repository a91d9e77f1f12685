"""Runs of the same jobs side by side: their figures, and the waits job by job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.errors import InputError
from optsched.folders import read_columns, read_config, read_summary
from optsched.report.page import JOB, NAMES
from optsched.report.style import STROKES

if TYPE_CHECKING:
    import pandas as pd

Columns = Mapping[str, NDArray[Any]]

OUTCOME = {
    "final_state": "str",
    "starting_time": "float64",
    "finish_time": "float64",
    "waiting_time": "float64",
}
"""Columns of the table of jobs that a policy decides."""

MOST_RUNS = len(STROKES)
"""Most runs of a comparison: each has a stroke of its own in the pictures."""

FIGURES = (
    *("mean_wait", "median_wait", "p95_wait", "mean_bounded_slowdown", "p95_bounded_slowdown"),
    *("utilization", "rejected", "waiting", "large_mean_wait", "mean_switches"),
)
"""Figures of ``summary.json`` in the table."""


class ComparedRun(NamedTuple):
    """A run of a comparison: name, path of its folder, files of the folder, and outcome by job."""

    name: str
    path: str
    config: Mapping[str, Any]
    summary: Mapping[str, Any]
    outcome: Columns

    @property
    def waits(self) -> NDArray[np.float64]:
        """Wait of each job in seconds; nan for jobs without a start."""
        return self.outcome["waiting_time"]


class Pairs(NamedTuple):
    """Waits of the jobs that started both under the baseline and in another run.

    `less`, `equal` and `more` are the shares of these jobs that wait less than under the baseline,
    as long, and longer; `difference` is the mean of wait less wait under the baseline, in seconds.
    All are nan without such jobs. `only_baseline` and `only_here` count the other started jobs.
    """

    jobs: int
    less: float
    equal: float
    more: float
    difference: float
    only_baseline: int
    only_here: int


@dataclass(frozen=True)
class RunComparison:
    """Runs of the same jobs; the first one is the baseline."""

    runs: Sequence[ComparedRun]  # two runs or more
    # The columns `JOB` of the jobs, and those of `NAMES` that a run has, shape (jobs,)
    jobs: Columns

    @cached_property
    def span(self) -> tuple[float, float]:
        """First submission, and last submission, start or end of a job under any policy."""
        submit = self.jobs["submission_time"]
        begin = end = float(submit.min())
        for run in self.runs:
            for times in (submit, run.outcome["starting_time"], run.outcome["finish_time"]):
                end = max(end, float(np.max(times[np.isfinite(times)], initial=end)))
        return begin, max(end, begin + 1.0)

    @property
    def table(self) -> pd.DataFrame:
        """One row per run: name, policy, `FIGURES`, and the fields of `Pairs`."""
        import pandas as pd

        baseline = self.runs[0].waits
        rows = [
            {"run": run.name, "policy": run.config["policy"]}
            | {name: run.summary.get(name) for name in FIGURES}
            | {
                f"paired_{name}": value
                for name, value in pair(baseline, run.waits)._asdict().items()
            }
            for run in self.runs
        ]
        return pd.DataFrame(rows)


def pair(baseline: NDArray[np.float64], waits: NDArray[np.float64]) -> Pairs:
    """Return the waits of a run beside those under the baseline; nan for jobs without a start."""
    here, there = np.isfinite(waits), np.isfinite(baseline)
    both = here & there
    more = waits[both] - baseline[both]
    shares = [float(of.mean()) if len(more) else np.nan for of in (more < 0, more == 0, more > 0)]
    less, equal, longer = shares
    difference = float(more.mean()) if len(more) else np.nan
    only = int((there & ~here).sum()), int((here & ~there).sum())
    return Pairs(len(more), less, equal, longer, difference, *only)


def read_runs(folders: Mapping[str, Path]) -> RunComparison:
    """Read run folders by name, and check that they are runs of the same jobs."""
    if not 2 <= len(folders) <= MOST_RUNS:
        only = f"{len(folders)} runs" if len(folders) != 1 else "one run"
        raise InputError(f"{only} to compare; expected 2 to {MOST_RUNS}")
    runs: list[ComparedRun] = []
    first: Columns = {}
    names: dict[str, NDArray[Any]] = {}
    for name, folder in folders.items():
        config, summary, table = read_config(folder), read_summary(folder), folder / "jobs.parquet"
        if not table.is_file():
            reason = "holds no jobs.parquet; expected a run that keeps its jobs"
            raise InputError(reason, file=folder)
        columns = read_columns(table, JOB | OUTCOME, NAMES)
        jobs = {column: columns[column] for column in JOB}
        outcome = {column: columns[column] for column in OUTCOME}
        if runs:
            difference = _difference(config, jobs, runs[0].config, first)
            if difference:
                raise InputError(f"{difference}, as in {runs[0].path}", file=folder)
        else:
            first = jobs
        names |= {name: columns[name] for name in NAMES if name in columns}
        runs.append(ComparedRun(name, str(folder), config, summary, outcome))
    return RunComparison(runs, {**first, **names})


def _difference(
    config: Mapping[str, Any], jobs: Columns, expected_config: Mapping[str, Any], expected: Columns
) -> str:
    """Return how a run is not of the expected jobs; empty if it is."""
    same = all(np.array_equal(jobs[name], expected[name]) for name in JOB)
    demands = [of.get("demands_sha256") for of in (config, expected_config)]
    if same and demands[0] == demands[1]:
        return ""
    if same:
        return "the jobs have other demands; expected the same"
    if config.get("trace_sha256") != expected_config.get("trace_sha256"):
        names = config["trace"], expected_config["trace"]
        other = "another file of that name" if names[0] == names[1] else names[1]
        return f"is of the trace {names[0]}; expected {other}"
    spans = [_span(of["jobs"]) for of in (config, expected_config)]
    if spans[0] != spans[1]:
        return f"is of {spans[0]} of the trace; expected {spans[1]}"
    numbers = len(jobs["job_id"]), len(expected["job_id"])
    if numbers[0] != numbers[1]:
        return f"has {numbers[0]:,} jobs; expected {numbers[1]:,}"
    name = next(name for name in JOB if not np.array_equal(jobs[name], expected[name]))
    row = int(np.flatnonzero(jobs[name] != expected[name])[0])
    job, values = jobs["job_id"][row], (jobs[name][row], expected[name][row])
    return f"{name} of job {job} is {values[0]:.10g}; expected {values[1]:.10g}"


def _span(jobs: Sequence[int] | None) -> str:
    return "all jobs" if jobs is None else f"the jobs {jobs[0]:,} to {jobs[1]:,}"
