"""Summary of a run for a terminal: its main figures, in groups and with units."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from optsched.errors import InputError
from optsched.metrics.jobs import MEASURES
from optsched.numbers import counted, percent
from optsched.report.figure_groups import compact
from optsched.report.folder_files import read_object
from optsched.report.page import duration
from optsched.report.run_folder import FOLDER
from optsched.traces.trace import CleaningReport


def summary_lines(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return label and text of each line, from the summary of a run, which has all figures."""
    outcomes = ("finished", "killed", "rejected", "waiting", "dropped")
    jobs = [f"{summary[key]:,} {MEASURES[key].name}" for key in outcomes if summary.get(key)]
    lines = [("jobs", f"{summary['jobs']:,}: {', '.join(jobs)}" if jobs else "0")]
    if summary["utilization"] is not None:
        span = duration(summary["makespan"]).text
        lines.append(("utilization", f"{percent(summary['utilization'])} over {span}"))
    lines += [
        (measure.replace("_", " "), amounts)
        for measure in ("wait", "response", "bounded_slowdown")
        if (amounts := _amounts(summary, f"{{}}_{measure}"))
    ]
    if summary.get("large_jobs"):
        wait = _amounts(summary, "large_{}_wait")
        large_from = counted(summary["large_from"], "processor")
        large = f"{summary['large_jobs']:,} of {large_from} or more"
        lines.append(("large jobs", f"{large}; wait {wait}"))
    if summary.get("problems"):
        lines.append(("problems", _problems(summary)))
    return lines


def cleaning_notes(config: Mapping[str, Any], summary: Mapping[str, Any]) -> list[str]:
    """Return a line for each count of cleaning; none if it changed nothing."""
    report = None if summary["cleaning"] is None else CleaningReport.from_json(summary["cleaning"])
    if report is None or not report.counts():
        return []
    of_whole = "" if config["jobs"] is None else " of the whole trace"
    return [f"cleaning{of_whole}: {line.strip()}" for line in report.lines()]


def policy_of_run(folder: Path) -> str | None:
    """Return the name of the policy of the run in a folder, None if there is no such run."""
    try:
        return str(read_object(folder / FOLDER.marker, {"policy": str})["policy"])
    except InputError:
        return None


def _amounts(summary: Mapping[str, Any], form: str) -> str:
    """Return mean, quantiles and maximum of a measure, those that the summary has."""
    places = {"mean": "mean", "median": "median", "p95": "95%", "max": "longest"}
    keys = {form.format(place): name for place, name in places.items()}
    return ", ".join(
        f"{name} {compact(MEASURES[key], summary[key]).text}"
        for key, name in keys.items()
        if summary.get(key) is not None
    )


def _problems(summary: Mapping[str, Any]) -> str:
    posed, unproven = summary["problems"], summary["unproven"]
    parts = [f"{posed:,}", f"{posed - unproven:,} proven"]
    if summary["fallbacks"]:
        parts.append(f"{summary['fallbacks']:,} decided by the fallback")
    if summary["wrong_answers"]:
        parts.append(counted(summary["wrong_answers"], "wrong answer"))
    return ", ".join(parts)
