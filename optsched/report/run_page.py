"""Page of a run: scenario, results, and the jobs with the longest waits."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched import registry
from optsched.docstrings import first_line
from optsched.errors import InputError
from optsched.numbers import LARGEST, counted
from optsched.report import load
from optsched.report.durations import spoken
from optsched.report.folder_files import (
    Expected,
    checked,
    read_columns,
    read_frame,
    read_object,
    read_pictures,
    read_table,
)
from optsched.report.job_rows import JOB, NAMES, job_rows
from optsched.report.page import Cell, Facts, Page, Section, Table, Value, cell, duration, share
from optsched.report.run_picture import RunFacts, captioned, run_pictures
from optsched.schedule import State
from optsched.simulator.problem_solver import Ties, mishaps
from optsched.traces.cleaning_report import CleaningReport

ROWS = 20
"""Rows of a table of the worst jobs."""

MOST_REASONS, OF_REASON = 10, 10
"""Most reasons why jobs never started, and most jobs of each."""

NUMBER = (int, float, type(None))
CONFIG: Expected = {
    "trace": str,
    "machine": str,
    "policy": str,
    "settings": dict,
    "event_order": str,
    "jobs": (list, type(None)),
    "repeat": (str, type(None)),
    "versions": dict,
}
POSING: Expected = {"solver": str, "solvers": dict, "charge_decisions": bool}
SOLVER: Expected = {
    "solver": str,
    "version": (str, type(None)),
    "budget": dict,
    "seed": int,
    "fallback": str,
}
BUDGET: Expected = dict.fromkeys(("seconds", "work"), NUMBER)
CLEANING: Expected = {field.name: int for field in fields(CleaningReport)}
COUNTS = (
    *("jobs", "finished", "killed", "rejected", "waiting"),
    *("decisions", "problems", "unproven", "fallbacks"),
)
TIMES = {
    "wait": ("mean_wait", "median_wait", "p95_wait", "max_wait"),
    "response": ("mean_response", "", "", ""),
}
RATIOS = {
    "slowdown": ("mean_slowdown", "", "", ""),
    "bounded slowdown": ("mean_bounded_slowdown", "", "p95_bounded_slowdown", ""),
}
_MEANS = [name for names in (TIMES | RATIOS).values() for name in names if name]
SUMMARY: Expected = (
    dict.fromkeys(COUNTS, int)
    | dict.fromkeys(("dropped", "utilization", "makespan", *_MEANS), NUMBER)
    | {"cleaning": (dict, type(None))}
)
DURATIONS = {
    *("large_mean_wait", "large_max_wait", "large_mean_response", "mean_pause"),
    *("mean_queue_time", "max_queue_time", "mean_flow", "max_flow"),
    *("transfer_time", "waiting_for_a_load", "core_time"),
    *("mean_migration_delay", "nominal_seconds"),
    *("large_mean_buffer", "prepared_mean_buffer", "mean_delay"),
}
"""Figures in seconds that no metric states."""
SHARES = {"contiguous_share", "heuristic_matched", "heuristic_gap", "contested_matched"}
"""Figures that are shares and that no metric states."""
LABELS = {
    "large_from": "least size of a large job",
    "large_mean_wait": "mean wait of large jobs",
    "large_max_wait": "longest wait of large jobs",
    "large_mean_response": "mean response of large jobs",
    "large_at_head": "large jobs as queue head",
    "large_mean_drain": "mean time as queue head",
    "large_max_drain": "longest time as queue head",
    "large_detected": "large jobs detected in the window",
    "large_mean_buffer": "mean buffer period of large jobs",
    "large_mean_ahead": "jobs before a detected large job, mean",
    "prepared": "large jobs prepared",
    "prepared_starts": "starts in the prepared box",
    "prepared_mean_buffer": "mean time from preparation to start",
    "started_late": "jobs started later than logged",
    "mean_delay": "mean delay from the logged start",
    "without_logged_wait": "jobs without a logged wait",
    "occupied": "nodes held, recorded",
    "useful": "nodes running, recorded",
    "node_time": "node time, {}",
    "recorded_node_time": "recorded node time, {}",
    "recorded_held": "recorded time, held from {}%",
    "recorded_running": "recorded time, running from {}%",
    "free_by_slot_size": "free node time, slots from {}",
    "rejected_because": "rejected, as {}",
    "mean_queue_time": "mean wait, evaluated",
    "max_queue_time": "longest wait, evaluated",
    "mean_flow": "mean response, evaluated",
    "max_flow": "longest response, evaluated",
    "penalised_jobs": "penalized jobs",
    "mean_penalised_percent": "mean penalty, % of the run time",
    "p95_penalised_percent": "95th percentile of the penalty, %",
    "penalised_processor_hours": "penalized processor-hours",
    "nominal_seconds": "nominal solving time",
    "heuristic_matched": "heuristic as good as solver",
    "heuristic_gap": "gap of the heuristic otherwise",
    "one_job": "problems with one job",
    "all_placed": "problems with all jobs placed",
    "contested": "contested problems",
    "contested_matched": "heuristic as good in contested ones",
}
"""Labels of figures, where the name with blanks would say too little.

Those with a place are of groups of shares; a class of a histogram is named by its lower end.
"""
SHOWN: dict[str, Callable[[Any], Cell]] = {
    "number": cell,
    "seconds": duration,
    "share": share,
    "shares": share,
}
"""Functions that show the figures of metrics, by kind."""
FIGURE_NAME = re.compile(r"[^\x00-\x1f\x7f\",]+")
JOBS = JOB | {
    "workload_name": "str",
    "final_state": "str",
    "starting_time": "float64",
    "finish_time": "float64",
    "waiting_time": "float64",
    "bounded_slowdown": "float64",
}
DECISIONS = {"model": "str", "size": "str", "status": "str", "work": "float64", "fallback": "bool"}
MISHAPS = {
    "time": "float64",
    "status": "str",
    "fallback": "bool",
    "wrong": "bool",
    "message": "str",
}

STATES = {
    State.FINISHED: "finished",
    State.KILLED: "killed at its limit",
    State.RUNNING: "running at the end",
}


def page(folder: Path) -> Page:
    """Return the page of a run folder, from its files alone.

    Wall-clock figures are left out, so that a repeated run has the same page.

    Raises
    ------
    InputError
        If a file is missing or damaged.
    """
    config = read_config(folder)
    summary = read_summary(folder)
    jobs = read_columns(folder / "jobs.parquet", JOBS, NAMES | {"reason": "str"})
    read_table(folder / "decisions.parquet", DECISIONS)  # a check, as it may not be needed
    pictures = read_pictures(folder, [picture.name for picture in run_pictures()])
    trace = next(iter(jobs["workload_name"]), config["trace"])
    sections = [
        Section("Result", [_counts(summary), _measures(summary), *_others(summary)]),
        Section("Scenario", _facts(config, summary)),
        Section("Pictures", captioned(pictures, RunFacts(config, summary, jobs))),
        Section("Decisions", _decisions(folder, config, summary)),
        Section("The jobs that never started", _never_started(jobs)),
        Section("The jobs that fared worst", _worst(jobs)),
        Section("Cleaning", _cleaning(config, summary)),
    ]
    return Page(
        title=load.named(trace, config),
        lead=_alarm(folder, summary) + _lead(summary),
        sections=[section for section in sections if section.parts],
        repeat=config["repeat"],
        versions=config["versions"],
    )


def read_config(folder: Path) -> dict[str, Any]:
    """Return the content of ``run.json`` of a run folder.

    Raises
    ------
    InputError
        If the file is missing or damaged.
    """
    file = folder / "run.json"
    config = read_object(file, CONFIG)
    if "solver" in config:
        checked(config, POSING, file)
        for model, chosen in config["solvers"].items():
            checked(chosen, SOLVER, file, f"solvers {model}")
            checked(chosen["budget"], BUDGET, file, f"solvers {model} budget")
    if config["jobs"] is not None and list(map(type, config["jobs"])) != [int, int]:
        wrong = f"{config['jobs']!r:.40}; expected two integers or null"
        raise InputError(wrong, file=file, field="jobs")
    return config


def read_summary(folder: Path) -> dict[str, Any]:
    """Return the content of ``summary.json`` of a run folder.

    Raises
    ------
    InputError
        If the file is missing or damaged.
    """
    file = folder / "summary.json"
    summary = read_object(file, SUMMARY)
    if summary["cleaning"] is not None:
        checked(summary["cleaning"], CLEANING, file, "cleaning")
    types: dict[str, Any] = {"wrong_answers": int}
    types |= {name: dict if kind == "shares" else NUMBER for name, kind in _figures().items()}
    checked(summary, {name: kind for name, kind in types.items() if name in summary}, file)
    for name, value in summary.items():
        if not FIGURE_NAME.fullmatch(name):
            raise InputError(f"{name!r:.40} is not the name of a figure", file=file)
        if types.get(name) is dict:
            checked(value, dict.fromkeys(value, NUMBER), file, name)
        for part in value.values() if types.get(name) is dict else [value]:
            if type(part) is int and abs(part) > LARGEST:
                wrong = f"{part!r:.40}; expected a number of at most 2^53"
                raise InputError(wrong, file=file, field=name)
    return summary


def _alarm(folder: Path, summary: Mapping[str, Any]) -> str:
    """Return a sentence on the wrong answers of solvers; empty without any."""
    if not summary.get("wrong_answers"):
        return ""
    [wrong, *_] = mishaps(read_frame(folder / "decisions.parquet", MISHAPS))
    return f"{wrong.rstrip('.')}. "


def _lead(summary: Mapping[str, Any]) -> str:
    """Return the finding in a few sentences."""
    words = f"{summary['finished']:,} of {counted(summary['jobs'], 'job')} finished"
    if summary["mean_wait"] is not None:
        words += f", after a mean wait of {spoken(summary['mean_wait'])}"
        words += f" and with a mean bounded slowdown of {summary['mean_bounded_slowdown']:,.3g}"
    if summary["utilization"] is not None:
        words += f"; {summary['utilization']:.1%} of the machine was in use"
        words += f" over {spoken(summary['makespan'])}"
    words += "."
    if summary["problems"]:
        proven = summary["problems"] - summary["unproven"]
        words += f" {proven:,} of {counted(summary['problems'], 'problem')} solved with a proof."
    others = [
        f"{summary[name]:,} {what}"
        for name, what in (
            ("killed", "killed at their limit"),
            ("rejected", "rejected, as they can never start"),
            ("waiting", "never started"),
        )
        if summary[name]
    ]
    if others:
        words += f" Jobs that did not finish: {', '.join(others)}."
    return words


def _counts(summary: Mapping[str, Any]) -> Facts:
    names = ("jobs", "finished", "killed", "rejected", "waiting")
    return Facts(
        [
            *((name, summary[name]) for name in names),
            ("dropped by cleaning", summary["dropped"]),
            ("utilization", share(summary["utilization"])),
            ("makespan", duration(summary["makespan"])),
        ]
    )


def _measures(summary: Mapping[str, Any]) -> Table:
    rows: list[list[Value]] = [
        [what, *(make(summary[name] if name else None) for name in names)]
        for measures, make in ((TIMES, duration), (RATIOS, cell))
        for what, names in measures.items()
    ]
    return Table(
        "Over finished jobs; slowdowns are ratios, bounded with 10 s.",
        ["measure", "mean", "median", "95th percentile", "highest"],
        rows,
    )


def _others(summary: Mapping[str, Any]) -> list[str | Facts]:
    """Return the figures that a machine, execution model or policy adds to the common ones."""
    items: list[tuple[str, Value]] = []
    for name, value in summary.items():
        if name not in SUMMARY:
            items += _flat(_label(name), value, _shown(name))
    return [Facts(items)] if items else []


def _flat(label: str, value: Any, show: Callable[[Any], Cell]) -> Iterator[tuple[str, Cell]]:
    if isinstance(value, dict):
        grouped = label if "{}" in label else f"{label}: {{}}"
        for name, part in value.items():
            own = _shown(name) if show is cell else show
            yield from _flat(grouped.format(_label(name)), part, own)
    elif isinstance(value, list):
        yield label, cell(", ".join(map(str, value)))
    else:
        exact = isinstance(value, int | float) and abs(value) <= LARGEST
        yield label, show(value) if exact else cell(value)


def _label(name: str) -> str:
    return LABELS.get(name, name.replace("_", " "))


def _shown(name: str) -> Callable[[Any], Cell]:
    """Return the function that shows a figure."""
    if name in DURATIONS:
        return duration
    return share if name in SHARES else SHOWN[_figures().get(name, "number")]


def _figures() -> dict[str, str]:
    """Return the kinds of the figures of all metrics, by name."""
    return {k: kind for metric in registry.metrics.values() for k, kind in metric.figures.items()}


def _facts(config: Mapping[str, Any], summary: Mapping[str, Any]) -> list[str | Facts]:
    policy = config["policy"]
    about = first_line(registry.policies[policy]) if policy in registry.policies else ""
    span = config["jobs"]
    items: list[tuple[str, Value]] = [
        ("trace", config["trace"]),
        ("jobs", "all" if span is None else " to ".join(f"{end:,}" for end in span)),
        ("machine", config["machine"]),
        ("policy", policy),
        ("settings of the policy", settings_in_words(config["settings"])),
        ("event order", config["event_order"]),
        ("decisions", summary["decisions"]),
    ]
    if config.get("execution"):
        items += [
            ("execution model", config["execution"]),
            ("settings of the execution model", settings_in_words(config["execution_settings"])),
        ]
    if "solver" in config:
        for model, chosen in config["solvers"].items():
            items += [
                (f"solver of {model}", Cell(chosen["solver"], note=chosen["version"] or "")),
                ("budget of one problem", _limits(chosen["budget"])),
                ("seed", chosen["seed"]),
                ("fallback of the solver", chosen["fallback"]),
            ]
        items.append(("decisions are charged", config["charge_decisions"]))
        items.append(("of equally good answers", config.get("ties", Ties.HEURISTIC)))
    return [*([f"{policy}: {about.replace('`', '')}"] if about else []), Facts(items)]


def settings_in_words(settings: Mapping[str, Any]) -> str:
    """Return settings with their values as a list in words."""

    def shown(value: Any) -> str:
        if isinstance(value, bool):
            return cell(value).text
        return f"{value:.10g}" if isinstance(value, float) else str(value)

    return ", ".join(f"{name} = {shown(value)}" for name, value in settings.items()) or "none"


def _limits(budget: Mapping[str, float | None]) -> str:
    limits = [
        f"{budget[name]:,.10g} {unit}"
        for name, unit in (("seconds", "s"), ("work", "units of work"))
        if budget[name] is not None
    ]
    return " or ".join(limits) or "none"


def _decisions(
    folder: Path, config: Mapping[str, Any], summary: Mapping[str, Any]
) -> list[str | Table]:
    if "solver" not in config:
        return []
    problems = summary["problems"]
    if not problems:
        return ["The policy posed no problem."]
    proven = problems - summary["unproven"]
    share_proven = "all" if proven == problems else f"{proven:,} ({proven / problems:.1%})"
    words = f"{counted(problems, 'problem')} posed to {config['solver']}: {share_proven}"
    heuristics = dict.fromkeys(
        chosen["fallback"]
        for chosen in config["solvers"].values()
        if summary["fallbacks"] or chosen["fallback"] != chosen["solver"]
    )
    words += " solved with a proof"
    if heuristics:
        words += f"; {summary['fallbacks']:,} decided by {' or '.join(heuristics)} in its place"
    words += "."
    decisions = read_frame(folder / "decisions.parquet", DECISIONS)
    rows: list[list[Value]] = [
        [
            str(model),
            str(status),
            len(own),
            share(len(own) / problems),
            int(own["fallback"].sum()),
            own["size"].nunique(),
            float(own["work"].median()),
            float(own["work"].max()),
        ]
        for (model, status), own in decisions.groupby(["model", "status"])
    ]
    columns = ["model", "status", "problems", "share", "decided by the fallback"]
    columns += ["different sizes", "median work", "highest work"]
    return [words, Table("Problems by status; work in the unit of the solver.", columns, rows)]


def _worst(jobs: Mapping[str, NDArray[Any]]) -> list[str | Table]:
    """Return the jobs with the longest waits, and those with the highest bounded slowdown."""
    tables: list[str | Table] = []
    for measure, least, caption in (
        ("waiting_time", 0, "The jobs with the longest waits"),
        ("bounded_slowdown", 1, "The jobs with the highest bounded slowdown"),
    ):
        values = jobs[measure]
        known = np.count_nonzero(~np.isnan(values))
        behind = np.flatnonzero(values > least)
        if len(behind) > ROWS:  # a sort of all would take seconds for millions of jobs
            least_shown = np.partition(values[behind], -ROWS)[-ROWS]
            behind = behind[values[behind] >= least_shown]
        worst = behind[np.argsort(-values[behind], kind="stable")][:ROWS]
        if len(worst):
            caption += f": {len(worst):,} of {known:,}. Submission since the first one."
            columns, rows = job_rows(jobs, worst)
            for job, row in zip(worst.tolist(), rows):
                wait, slowdown = jobs["waiting_time"][job], jobs["bounded_slowdown"][job]
                state = jobs["final_state"][job]
                row += [duration(wait), slowdown, STATES.get(state, state)]
            columns += ["wait", "bounded slowdown", "final state"]
            tables.append(Table(caption, columns, rows))
    return tables


def _never_started(jobs: Mapping[str, NDArray[Any]]) -> list[str | Table]:
    """Return the first of the jobs that never started, by reason."""
    never = np.flatnonzero(np.isin(jobs["final_state"], (State.REJECTED, State.WAITING)))
    if not len(never):
        return []
    reasons = jobs.get("reason", np.full(len(jobs["job_id"]), "no reason on file", dtype=object))
    counts = Counter(reasons[never].tolist()).most_common()
    words = "By reason, in order of submission. All are in jobs.parquet, with the column reason."
    if len(counts) > MOST_REASONS:
        words += f" The page has the {MOST_REASONS} most frequent of {len(counts):,} reasons."
    tables = []
    for reason, number in counts[:MOST_REASONS]:
        shown = never[reasons[never] == reason][:OF_REASON]
        caption = f"{reason[:1].upper()}{reason[1:]}: {len(shown):,} of {counted(number, 'job')}."
        tables.append(Table(f"{caption} Submission since the first one.", *job_rows(jobs, shown)))
    return [words, *tables]


def _cleaning(config: Mapping[str, Any], summary: Mapping[str, Any]) -> list[str | Facts]:
    if summary["cleaning"] is None:
        return []
    report = CleaningReport(**{name: summary["cleaning"][name] for name in CLEANING})
    changes = report.counts()
    text = f"{counted(report.jobs_read, 'job')} read; "
    text += "jobs dropped or changed:" if changes else "no job dropped or changed."
    if config["jobs"]:
        text = f"Of the whole trace, of which a part was run: {text}"
    return [text, *([Facts([(what, count) for count, what in changes])] if changes else [])]
