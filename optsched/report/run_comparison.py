"""Comparison of runs of the same jobs: their figures, the waits job by job, and the page."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched import folders
from optsched.errors import InputError
from optsched.metrics.jobs import MEASURES
from optsched.numbers import counted, short, spoken
from optsched.report import run_page
from optsched.report.load import span_of
from optsched.report.page import (
    JOB,
    NAMES,
    OUTCOME,
    Cell,
    Figure,
    Label,
    Page,
    Row,
    Section,
    Table,
    Value,
    cell,
    compact,
    duration,
    figures,
    job_table,
    share,
    user_cell,
)
from optsched.report.pictures.gantt import read_charts
from optsched.report.style import STROKES

if TYPE_CHECKING:
    import pandas as pd

Columns = Mapping[str, NDArray[Any]]

MOST_RUNS = len(STROKES)  # most runs of a comparison: each has a stroke of its own in the pictures

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
        names = "starting_time", "finish_time"
        times = (run.outcome[name] for run in self.runs for name in names)
        return span_of(float(submit.min()), submit, *times)

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


def read_runs(places: Mapping[str, Path]) -> RunComparison:
    """Read run folders by name, and check that they are runs of the same jobs."""
    if not 2 <= len(places) <= MOST_RUNS:
        only = f"{len(places)} runs" if len(places) != 1 else "one run"
        raise InputError(f"{only} to compare; expected 2 to {MOST_RUNS}")
    runs: list[ComparedRun] = []
    first: Columns = {}
    names: dict[str, NDArray[Any]] = {}
    for name, folder in places.items():
        config, summary = folders.read_config(folder), folders.read_summary(folder)
        table = folder / "jobs.parquet"
        if not table.is_file():
            reason = "holds no jobs.parquet; expected a run that keeps its jobs"
            raise InputError(reason, file=folder)
        columns = folders.read_columns(table, JOB | OUTCOME, NAMES)
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
    here, there = (
        "all jobs" if jobs is None else f"the jobs {jobs[0]:,} to {jobs[1]:,}"
        for jobs in (config["jobs"], expected_config["jobs"])
    )
    if here != there:
        return f"is of {here} of the trace; expected {there}"
    numbers = len(jobs["job_id"]), len(expected["job_id"])
    if numbers[0] != numbers[1]:
        return f"has {numbers[0]:,} jobs; expected {numbers[1]:,}"
    name = next(name for name in JOB if not np.array_equal(jobs[name], expected[name]))
    row = int(np.flatnonzero(jobs[name] != expected[name])[0])
    job, values = jobs["job_id"][row], (jobs[name][row], expected[name][row])
    return f"{name} of job {job} is {values[0]:.10g}; expected {values[1]:.10g}"


PICTURES = ("waits", "load", "gantt")
ROWS = 10  # most rows of a table of gains or losses, and of users

HEADS = {
    "mean_wait": ("wait", "mean"),
    "median_wait": ("wait", "median"),
    "p95_wait": ("wait", "95th percentile"),
    "mean_bounded_slowdown": ("bounded slowdown", "mean"),
    "p95_bounded_slowdown": ("bounded slowdown", "95th percentile"),
}
"""Figures under a common head; all others have the names of their measures."""

AS_LOGGED = "as-logged"  # policy that takes the waits from the log
COUNTS = ("rejected", "waiting")  # figures whose change is a number of jobs
OPTIONAL = (*FIGURES, "large_from")  # figures whose type is checked where there are any

ABOUT: folders.Expected = {"paths": list, "runs": list, "versions": dict}
RUN: folders.Expected = {"name": str, "path": str, "config": dict, "summary": dict}


def wait_column(name: str) -> str:
    """Return the column of ``jobs.parquet`` with the waits of a run."""
    return f"wait.{name}"


def page(folder: Path) -> Page:
    """Return the page of the folder of a comparison of runs, from its files alone."""
    file = folder / "runs.json"
    about = folders.read_object(file, ABOUT)
    for run in about["runs"]:
        folders.checked(run, RUN, file, "runs")
        folders.checked(run["config"], folders.CONFIG, file, "runs config")
        folders.checked(run["summary"], folders.SUMMARY, file, "runs summary")
        known = {name: folders.NUMBER for name in OPTIONAL if name in run["summary"]}
        folders.checked(run["summary"], known, file, "runs summary")
    columns = [wait_column(run["name"]) for run in about["runs"]]
    if len(set(columns)) < 2 or len(set(columns)) < len(columns):
        raise InputError("expected two runs or more, with different names", file=file, field="runs")
    kinds = JOB | dict.fromkeys(columns, "float64")
    jobs = folders.read_columns(folder / "jobs.parquet", kinds, NAMES)
    if not len(jobs["job_id"]):
        raise InputError("holds no job", file=folder / "jobs.parquet")
    outcomes = [{"waiting_time": jobs[column]} for column in columns]
    runs = [ComparedRun(**run, outcome=outcome) for run, outcome in zip(about["runs"], outcomes)]
    words = ["optsched", "compare", *map(str, about["paths"]), *_period(about, file)]
    repeat = shlex.join([*words, "-o", "DIR"])
    return page_of(RunComparison(runs, jobs), folder, repeat, about["versions"])


def _period(about: Mapping[str, Any], file: Path) -> list[str]:
    """Return the words that state the period of the Gantt charts; none in an older folder."""
    days = about.get("days")
    if days is None:
        return []
    if not isinstance(days, list) or [type(day) for day in days] != [float, float]:
        raise InputError(f"{days!r:.40}; expected two numbers or null", file=file, field="days")
    return ["--days", ":".join(f"{day:.10g}" for day in days)]


def page_of(
    comparison: RunComparison, folder: Path, repeat: str | None, versions: Mapping[str, str]
) -> Page:
    """Return the page of a comparison with the pictures in a folder, and the command to repeat it.

    The folder may have the data of Gantt charts to zoom. Of the outcomes of the runs, only the
    waits are needed.
    """
    runs, jobs = comparison.runs, comparison.jobs
    baseline, *others = runs
    return Page(
        title=f"{len(runs)} runs of {counted(len(jobs['job_id']), 'job')}"
        f" of {PurePath(baseline.config['trace']).name}",
        lead=" ".join(filter(None, (_lead(runs), _lost(runs)))),
        summary=_cautions(runs),
        sections=[
            Section("Result", [_figures(runs)]),
            Section("Pictures", _pictures(folder, runs)),
            Section("Job by job", [_paired(runs, jobs), *_most_different(runs, jobs)]),
            *([Section("Users", [users])] if (users := _users(runs, jobs)) is not None else []),
            *(
                Section(f"{run.name} beside {baseline.name}", _extremes(jobs, baseline, run))
                for run in others
            ),
            Section("The runs", [_scenarios(runs)]),
        ],
        repeat=repeat,
        versions=versions,
    )


def _lead(runs: Sequence[ComparedRun]) -> str:
    """Return the finding: the run with the lowest mean wait, beside the baseline."""
    baseline = runs[0]
    known = [run for run in runs if run.summary["mean_wait"] is not None]
    if not known or baseline not in known:
        return f"Under {baseline.name}, the baseline, no job finished."
    best = min(known, key=lambda run: run.summary["mean_wait"])
    wait, base = best.summary["mean_wait"], baseline.summary["mean_wait"]
    if wait == base:
        return f"No mean wait is below that of {baseline.name}, the baseline: {spoken(base)}."
    pairs = pair(baseline.waits, best.waits)
    return (
        f"The mean wait is lowest under {best.name}: {spoken(wait)}, compared with {spoken(base)}"
        f" under {baseline.name}, the baseline ({wait / base - 1:+.1%})."
        f" {pairs.less:.1%} of the jobs wait less, {pairs.more:.1%} wait more."
    )


def _lost(runs: Sequence[ComparedRun]) -> str:
    """Return sentences on the jobs of the trace that no run has, and on what that means."""
    words = run_page.lost(runs[0].summary)
    if words and any(run.config["policy"] == AS_LOGGED for run in runs):
        words += f" In reality those jobs were there too, so {AS_LOGGED} shows a fuller machine,"
        words += " and other policies look better than they are."
    return words


def _cautions(runs: Sequence[ComparedRun]) -> list[str]:
    """Return sentences that name differences between the runs, which limit the comparison."""
    words = []
    if len({run.summary["finished"] + run.summary["killed"] for run in runs}) > 1:
        words.append(
            "Not all runs ran the same jobs: the means of each are over its own finished jobs, and"
            " the comparison job by job is over those that started in both."
        )
    words += dict.fromkeys(f"{one}." for run in runs for one in run_page.ignored(run.config))
    if len({run.config["machine"] for run in runs}) > 1:
        words.append("The runs are on different machines, see the last table.")
    if len({str(run.config["versions"].get("optsched")) for run in runs}) > 1:
        words.append("The runs were made with different versions of optsched.")
    what = "one trace" if runs[0].config["jobs"] is None else "one part of a trace"
    words.append(
        f"Each run is of {what}, once, so a difference may be due to chance: a single different"
        " start changes all that follows. Compare other parts of the trace before you call it an"
        " effect: optsched compare SWEEP --over jobs does, for a sweep with a list of jobs."
    )
    return words


def _figures(runs: Sequence[ComparedRun]) -> Table:
    """Return the main figures of the runs, each with its change from the baseline."""
    heads = {name: HEADS.get(name) or MEASURES[name].name for name in FIGURES}
    [size, *more] = {run.summary.get("large_from") for run in runs}
    if size is None or more:  # they are the waits of other jobs
        del heads["large_mean_wait"]
    else:
        heads["large_mean_wait"] = f"mean wait of jobs from {size:,} processors"
    for name in ("waiting", "mean_switches"):
        if not any(run.summary.get(name) for run in runs):
            del heads[name]
    base = runs[0].summary
    rows: list[list[Value]] = []
    for run in runs:
        row: list[Value] = [Cell(run.name, run.name, note="baseline" if run is runs[0] else "")]
        for name in heads:
            value = run.summary.get(name)
            change = "" if run is runs[0] else _change(name, value, base.get(name))
            row.append(replace(compact(MEASURES[name], value), note=change))
        rows.append(row)
    caption = "Over the finished jobs of each run, with the change from the baseline."
    caption += " Slowdowns are ratios, bounded with 10 s."
    return Table(caption, ["run", *heads.values()], rows)


def _change(name: str, value: float | None, base: float | None) -> str:
    """Return the change of a figure, relative or of a count; empty if there is nothing to say."""
    if value is None or base is None:
        return ""
    if name in COUNTS:
        return f"{value - base:+,}" if value != base else ""
    if not base:
        return ""
    change = f"{value / base - 1:+,.1%}"
    if value and change == "-100.0%":
        return "> -100%"
    return "±0.0%" if change[1:] == "0.0%" else change


def _pictures(folder: Path, runs: Sequence[ComparedRun]) -> list[Figure]:
    waited = []
    for run in runs:
        all_waits = np.nan_to_num(run.waits, nan=np.inf)
        waited.append(
            f"{run.name}: {np.count_nonzero(all_waits == 0) / len(all_waits):.1%} at once"
        )
        for part, name in ((0.5, "half"), (0.95, "95%")):
            within = float(np.quantile(all_waits, part, method="inverted_cdf"))
            if 0 < within < np.inf:
                waited[-1] += f", {name} within {spoken(within)}"
    used = [
        f"{run.name} {run.summary['utilization']:.1%}"
        for run in runs
        if run.summary["utilization"] is not None
    ]
    about = {
        "waits": (
            "The share of all jobs that waited no longer than a given time; jobs that never start"
            " are counted.",
            f"Distribution of the waits. {'; '.join(waited)}.",
        ),
        "load": (
            "Processors in use, waiting jobs, and the mean wait of the jobs submitted at a time.",
            f"Load over time. Utilization: {', '.join(used) or 'unknown'}.",
        ),
        "gantt": (
            "The jobs on the processors in the same time under each policy. A job has the same"
            " color in all charts; other jobs may have it too.",
            f"Gantt charts, processors against time, of {', '.join(run.name for run in runs)}.",
        ),
    }
    pictures = folders.read_pictures(folder, PICTURES)
    return figures(pictures, about, "comparison", {"gantt": read_charts(folder)})


def _paired(runs: Sequence[ComparedRun], jobs: Columns) -> Table:
    baseline, *others = runs
    rows: list[Row] = []
    for run in others:
        pairs = pair(baseline.waits, run.waits)
        before, after = _mean_waits_of_users(jobs, [baseline, run])
        row: Row = {
            "run": run.name,
            "jobs started in both": pairs.jobs,
            ("wait beside the baseline", "less"): share(pairs.less),
            ("wait beside the baseline", "equal"): share(pairs.equal),
            ("wait beside the baseline", "more"): share(pairs.more),
            ("wait beside the baseline", "mean difference"): _signed(pairs.difference),
            ("users whose mean wait is", "shorter"): int((after < before).sum()),
            ("users whose mean wait is", "longer"): int((after > before).sum()),
            ("jobs started only", "in the baseline"): pairs.only_baseline,
            ("jobs started only", "in this run"): pairs.only_here,
        }
        rows.append(row)
    caption = f"Waits of the same jobs in each run and in {baseline.name}, the baseline."
    return Table.of(caption, rows)


def _mean_waits_of_users(jobs: Columns, runs: Sequence[ComparedRun]) -> NDArray[np.float64]:
    """Return mean waits over jobs that start in all runs, (runs, known users); nan without any."""
    waits = np.array([run.waits for run in runs])
    users = np.unique(jobs["user"][jobs["user"] >= 0])
    counts = np.isfinite(waits).all(axis=0) & (jobs["user"] >= 0)
    of = np.searchsorted(users, jobs["user"][counts])
    number = np.bincount(of, minlength=len(users))
    total = np.array([np.bincount(of, own[counts], len(users)) for own in waits])
    return np.where(number > 0, total, np.nan) / np.maximum(number, 1)


def _users(runs: Sequence[ComparedRun], jobs: Columns) -> Table | None:
    """Return the mean waits of the users with the most work; None if no user is known."""
    known = jobs["user"] >= 0
    users, first, of = np.unique(jobs["user"][known], return_index=True, return_inverse=True)
    if not len(users):
        return None
    seconds = jobs["requested_number_of_resources"] * jobs["run_time"]
    work = np.bincount(of, seconds[known])
    means = _mean_waits_of_users(jobs, runs)
    place = np.flatnonzero(known)[first]
    rows: list[Row] = []
    for user in np.argsort(-work, kind="stable")[:ROWS].tolist():
        row: Row = {
            "user": user_cell(jobs, place[user]),
            "jobs": int((of == user).sum()),
            "share of the work": share(work[user] / seconds.sum()),
        }
        for run, mean in zip(runs, means[:, user].tolist()):
            both = run is not runs[0] and np.isfinite(mean)
            change = _change("mean_wait", mean, means[0, user]) if both else ""
            row["mean wait", run.name] = replace(duration(mean), note=change)
        rows.append(row)
    caption = f"The users with the most work: {len(rows)} of {len(users):,}. Work is processors"
    caption += " times run time; waits are means over jobs that started in all runs, with the"
    caption += f" change from {runs[0].name}, the baseline."
    return Table.of(caption, rows)


def _most_different(runs: Sequence[ComparedRun], jobs: Columns) -> list[Table]:
    """Return the jobs whose waits differ most between any two of several runs."""
    if len(runs) == 2:
        return []  # they are the largest gains and losses
    waits = np.array([run.waits for run in runs])
    apart = np.ptp(waits, axis=0)  # nan unless the job starts in all runs
    shown = np.argsort(-np.nan_to_num(apart, nan=-1.0), kind="stable")[:ROWS]
    shown = shown[apart[shown] > 0]
    if not len(shown):
        return []
    more: dict[Label, Iterable[Value]] = {
        ("wait under", run.name): map(duration, run.waits[shown].tolist()) for run in runs
    }
    more["largest difference"] = map(duration, apart[shown].tolist())
    caption = "The jobs whose waits differ most between any two runs."
    return [job_table(caption, jobs, shown, more)]


def _extremes(jobs: Columns, baseline: ComparedRun, run: ComparedRun) -> list[str | Table]:
    """Return the jobs whose waits became much shorter, and those whose became much longer."""
    more = run.waits - baseline.waits  # nan unless the job started in both
    tables: list[str | Table] = []
    for what, sign in (("gains", 1), ("losses", -1)):
        changed = np.flatnonzero(sign * more < 0)
        largest = changed[np.argsort(sign * more[changed], kind="stable")][:ROWS]
        if not len(largest):
            word = "less" if sign > 0 else "more"
            tables.append(f"No job waits {word} than under the baseline.")
            continue
        caption = f"The largest {what}: {len(largest):,} of {len(changed):,} jobs."
        columns: dict[Label, Iterable[Value]] = {
            ("wait", "in the baseline"): map(duration, baseline.waits[largest].tolist()),
            ("wait", "here"): map(duration, run.waits[largest].tolist()),
            "difference": map(_signed, more[largest].tolist()),
        }
        tables.append(job_table(caption, jobs, largest, columns))
    return tables


def _signed(seconds: float) -> Cell:
    if not np.isfinite(seconds):
        return cell(None)
    sign = "+" if seconds > 0 else "-" if seconds < 0 else ""
    return Cell(f"{sign}{short(abs(seconds))}", float(seconds))


def _scenarios(runs: Sequence[ComparedRun]) -> Table:
    rows: list[Row] = [
        {
            "run": run.name,
            "policy": run.config["policy"],
            "settings": run_page.settings_in_words(run.config["settings"]),
            "solver": run.config.get("solver"),
            "machine": run.config["machine"],
            "execution model": run.config.get("execution"),
            "event order": run.config["event_order"],
            "folder": run.path,
        }
        for run in runs
    ]
    return Table.of("What each run is.", rows)
