"""Page of a run: scenario, results, and the jobs with the longest waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched import folders, registry
from optsched.documentation import first_line, parameters
from optsched.metrics.jobs import measures_of
from optsched.metrics.measure import Group, Measure
from optsched.numbers import counted, spoken
from optsched.registry import Registry
from optsched.report import load
from optsched.report.page import (
    JOB,
    NAMES,
    OUTCOME,
    Cell,
    Facts,
    Fold,
    Heading,
    Label,
    Page,
    Part,
    Section,
    Table,
    Value,
    by_group,
    cell,
    duration,
    job_table,
    share,
)
from optsched.report.pictures import RunFacts, captioned, run_pictures
from optsched.report.pictures.gantt import COLUMNS
from optsched.schedule import State
from optsched.simulator.problem_solver import Ties, mishaps
from optsched.solvers.finding import classes_of
from optsched.traces.trace import CleaningReport

ROWS = 20  # rows of a table of the worst jobs
MOST_REASONS, OF_REASON = 10, 10  # most reasons why jobs never started, and most jobs of each


IN_RESULT = [group for group in Group if group != Group.PROBLEMS]
"""Groups of figures shown apart from the decisions."""

JOBS = {**JOB, **OUTCOME, "workload_name": "str", "bounded_slowdown": "float64"}
DECISIONS = {"model": "str", "size": "str", "status": "str", "work": "float64", "fallback": "bool"}
STATES = {
    State.FINISHED: "finished",
    State.KILLED: "killed at its limit",
    State.RUNNING: "running at the end",
}


def page(folder: Path) -> Page:
    """Return the page of a run folder, from its files alone.

    Wall-clock figures are left out, so that a repeated run has the same page.
    """
    config = folders.read_config(folder)
    summary = folders.read_summary(folder)
    jobs = folders.read_columns(folder / "jobs.parquet", JOBS, NAMES | COLUMNS | {"reason": "str"})
    folders.read_table(folder / "decisions.parquet", DECISIONS)  # a check, as it may not be needed
    measures = measures_of(config)
    pictures = folders.read_pictures(folder, [picture.name for picture in run_pictures()])
    trace = next(iter(jobs["workload_name"]), config["trace"])
    sections = [
        Section("Result", by_group({**summary, "cleaning": None}, measures, IN_RESULT)),
        Section("Scenario", _facts(config)),
        Section("Pictures", captioned(pictures, RunFacts(config, summary, jobs))),
        Section("Decisions", _decisions(folder, config, summary, measures)),
        Section("The jobs that never started", _never_started(jobs)),
        Section("The jobs that fared worst", _worst(jobs)),
        Section("Cleaning", _cleaning(config, summary)),
    ]
    found = _alarm(folder, config, summary) + _lead(config, summary)
    return Page(
        title=load.named(trace, config),
        lead=f"{found} {lost(summary)}".rstrip(),
        sections=[section for section in sections if section.parts],
        repeat=config["repeat"],
        versions=config["versions"],
    )


def _alarm(folder: Path, config: Mapping[str, Any], summary: Mapping[str, Any]) -> str:
    """Return sentences on wrong answers and failures of solvers; empty without any."""
    words = ""
    if summary.get("wrong_answers"):
        kinds = {"time": "float64", "status": "str", "fallback": "bool", "wrong": "bool"}
        kinds["message"] = "str"
        [wrong, *_] = mishaps(folders.read_frame(folder / "decisions.parquet", kinds))
        words = f"{wrong.rstrip('.')}. "
    if summary["fallbacks"]:
        fallbacks = dict.fromkeys(one["fallback"] for one in config["solvers"].values())
        words += f"{config['solver']} failed or ran out of budget on {summary['fallbacks']:,} of"
        words += f" {counted(summary['problems'], 'problem')}, which {' or '.join(fallbacks)}"
        words += " decided in its place. "
    return words


def _proves(config: Mapping[str, Any]) -> bool:
    """Return whether a solver of the run may prove what it finds, which heuristics never do."""
    for name in {one["solver"] for one in config["solvers"].values()}:
        if name not in registry.solvers or any(cls.exact for cls in classes_of(name)):
            return True
    return False


def _lead(config: Mapping[str, Any], summary: Mapping[str, Any]) -> str:
    words = f"{summary['finished']:,} of {counted(summary['jobs'], 'job')} finished"
    if summary["mean_wait"] is not None:
        words += f", after a mean wait of {spoken(summary['mean_wait'])}"
        words += f" and with a mean bounded slowdown of {summary['mean_bounded_slowdown']:,.3g}"
    if summary["utilization"] is not None:
        words += f"; {summary['utilization']:.1%} of the machine was in use"
        words += f" over {spoken(summary['makespan'])}"
    words += "."
    if summary["problems"] and _proves(config):
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


def lost(summary: Mapping[str, Any]) -> str:
    """Return a sentence on the jobs of the trace that cleaning dropped; empty without any."""
    counts = summary["cleaning"]
    return "" if counts is None else CleaningReport.from_json(counts).lost()


def _facts(config: Mapping[str, Any]) -> list[Part]:
    policy = config["policy"]
    about = first_line(registry.policies[policy]) if policy in registry.policies else ""
    span = config["jobs"]
    items: list[tuple[str, Value]] = [
        ("trace", config["trace"]),
        ("jobs", "all" if span is None else " to ".join(f"{end:,}" for end in span)),
        ("machine", config["machine"]),
        ("policy", policy),
        ("event order", config["event_order"]),
    ]
    if config.get("measure"):
        first, last = config["measure"]
        items.append(("measured, of these jobs", f"{first:,} to {last:,}"))
    for name, what in (
        ("workload_seed", "seed of the workload"),
        ("load", "load, times"),
        ("shake", "submissions put off by up to, s"),
        ("shake_seed", "seed of that"),
        ("execution", "execution model"),
    ):
        if config.get(name) is not None:
            items.append((what, config[name]))
    if "solver" in config:
        for model, chosen in config["solvers"].items():
            items += [
                (f"solver of {model}", Cell(chosen["solver"], note=chosen["version"] or "")),
                ("budget of one problem", limits_in_words(chosen["budget"])),
                ("seed", chosen["seed"]),
                ("fallback of the solver", chosen["fallback"]),
            ]
        items.append(("decisions are charged", config["charge_decisions"]))
        items.append(("of equally good answers", config.get("ties", Ties.HEURISTIC)))
    parts: list[Part] = [f"{policy}: {about.replace('`', '')}"] if about else []
    parts.append(Facts(items))
    if config["settings"]:
        parts += _settings("policy", registry.policies, policy, config["settings"])
    if config.get("execution") and config.get("execution_settings"):
        model, settings = config["execution"], config["execution_settings"]
        parts += _settings("execution model", registry.executions, model, settings)
    return parts


def _settings(
    noun: str, known: Registry[Any], name: str, settings: Mapping[str, Any]
) -> list[Part]:
    """Return settings with their values and, of a registered class, their meanings to unfold."""
    meanings: dict[str, str] = {}
    for base in reversed(known[name].__mro__) if name in known else ():
        meanings |= {one: text.replace("`", "") for one, text in parameters(base).items()}
    defined = [(one, meanings[one]) for one in settings if one in meanings]
    facts = Facts([(one, _setting(value)) for one, value in settings.items()], meanings)
    folded = Fold("Definitions of these settings", [Facts(defined, as_text=True)])
    return [Heading(f"Settings of the {noun}"), facts, *([folded] if defined else [])]


def settings_in_words(settings: Mapping[str, Any]) -> str:
    """Return settings with their values as a list in words."""
    return ", ".join(f"{name} = {_setting(value)}" for name, value in settings.items()) or "none"


def _setting(value: Any) -> str:
    if isinstance(value, bool):
        return cell(value).text
    if value is None:
        return "none"
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def limits_in_words(budget: Mapping[str, float | None]) -> str:
    """Return the limits of a budget in words."""
    limits = [
        f"{budget[name]:,.10g} {unit}"
        for name, unit in (("seconds", "s"), ("work", "units of work"))
        if budget[name] is not None
    ]
    return " or ".join(limits) or "none"


def _decisions(
    folder: Path,
    config: Mapping[str, Any],
    summary: Mapping[str, Any],
    measures: Mapping[str, Measure],
) -> list[Part]:
    if "solver" not in config:
        return []
    problems = summary["problems"]
    if not problems:
        return ["The policy posed no problem."]
    words = f"{counted(problems, 'problem')} posed to {config['solver']}"
    counts = dict(summary)
    if _proves(config):
        proven = problems - summary["unproven"]
        share_proven = "all" if proven == problems else f"{proven:,} ({proven / problems:.1%})"
        words += f": {share_proven} solved with a proof"
    else:
        del counts["unproven"]
    decisions = folders.read_frame(folder / "decisions.parquet", DECISIONS)
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
    table = Table("Problems by status; work in the unit of the solver.", columns, rows)
    return [f"{words}.", *by_group(counts, measures, [Group.PROBLEMS]), table]


def _worst(jobs: Mapping[str, NDArray[Any]]) -> list[Part]:
    """Return the jobs with the longest waits, and those with the highest bounded slowdown."""
    tables: list[Part] = []
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
            states = jobs["final_state"][worst].tolist()
            more: dict[Label, Iterable[Value]] = {
                "wait": map(duration, jobs["waiting_time"][worst].tolist()),
                "bounded slowdown": jobs["bounded_slowdown"][worst].tolist(),
                "final state": [STATES.get(state, state) for state in states],
            }
            tables.append(job_table(f"{caption}: {len(worst):,} of {known:,}.", jobs, worst, more))
    return tables


def _never_started(jobs: Mapping[str, NDArray[Any]]) -> list[Part]:
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
        tables.append(job_table(caption, jobs, shown))
    return [words, *tables]


def _cleaning(config: Mapping[str, Any], summary: Mapping[str, Any]) -> list[Part]:
    if summary["cleaning"] is None:
        return []
    report = CleaningReport.from_json(summary["cleaning"])
    changes = report.counts()
    text = "Of the whole trace, of which a part was run: " if config["jobs"] else ""
    text += f"{counted(report.jobs_read, 'job')} read; "
    text += "jobs dropped or changed:" if changes else "no job dropped or changed."
    listed = [Facts([(what, count) for count, what in changes])] if changes else []
    return [text, *listed, *(f"{text}." for text in ignored(config))]


def ignored(config: Mapping[str, Any]) -> list[str]:
    """Return the statements of the trace that the run ignored; empty for older runs."""
    found = config.get("ignored", [])
    return [text for text in found if isinstance(text, str)]
