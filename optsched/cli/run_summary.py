"""Summary of a run for a terminal: its main figures, in groups and with units."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from optsched.errors import InputError
from optsched.numbers import counted, percent
from optsched.report.folder_files import read_object
from optsched.report.page import cell, duration
from optsched.report.run_folder import FOLDER
from optsched.traces.cleaning_report import CleaningReport


def summary_lines(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return label and text of each line, from the summary of a run, which has all figures."""
    outcomes = {"finished": "finished", "killed": "killed", "rejected": "rejected"}
    outcomes |= {"waiting": "never started", "dropped": "dropped by cleaning"}
    jobs = [f"{summary[key]:,} {word}" for key, word in outcomes.items() if summary.get(key)]
    lines = [("jobs", f"{summary['jobs']:,}: {', '.join(jobs)}" if jobs else "0")]
    if summary["utilization"] is not None:
        span = duration(summary["makespan"]).text
        lines.append(("utilization", f"{percent(summary['utilization'])} over {span}"))
    lines += _distribution("wait", summary, "wait", duration)
    lines += _distribution("response", summary, "response", duration)
    lines += _distribution("bounded slowdown", summary, "bounded_slowdown", cell)
    if summary.get("large_jobs"):
        wait = ", ".join(_amounts(summary, "large_{}_wait", duration))
        large = f"{summary['large_jobs']:,} of {summary['large_from']:,} processors or more"
        lines.append(("large jobs", f"{large}; wait {wait}"))
    if summary.get("problems"):
        lines.append(("problems", _problems(summary)))
    return lines


def cleaning_notes(config: Mapping[str, Any], summary: Mapping[str, Any]) -> list[str]:
    """Return a line for each count of cleaning; none if the trace was clean already."""
    if summary["cleaning"] is None:
        return []
    of_whole = "" if config["jobs"] is None else " of the whole trace"
    lines = CleaningReport.from_json(summary["cleaning"]).lines()
    return [f"cleaning{of_whole}: {line.strip()}" for line in lines]


def policy_of_run(folder: Path) -> str | None:
    """Return the name of the policy of the run in a folder, None if there is no such run."""
    try:
        return str(read_object(folder / FOLDER.marker, {"policy": str})["policy"])
    except InputError:
        return None


def _distribution(
    label: str, summary: Mapping[str, Any], measure: str, show: Any
) -> list[tuple[str, str]]:
    amounts = _amounts(summary, f"{{}}_{measure}", show)
    return [(label, ", ".join(amounts))] if amounts else []


def _amounts(summary: Mapping[str, Any], key: str, show: Any) -> list[str]:
    """Return mean, quantiles and maximum of a measure, those that the summary has."""
    places = {"mean": "mean", "median": "median", "p95": "95%", "max": "longest"}
    known = {name: summary.get(key.format(place)) for place, name in places.items()}
    return [f"{name} {show(value).text}" for name, value in known.items() if value is not None]


def _problems(summary: Mapping[str, Any]) -> str:
    posed, unproven = summary["problems"], summary["unproven"]
    parts = [f"{posed:,}", f"{posed - unproven:,} proven"]
    if summary["fallbacks"]:
        parts.append(f"{summary['fallbacks']:,} decided by the fallback")
    if summary["wrong_answers"]:
        parts.append(counted(summary["wrong_answers"], "wrong answer"))
    return ", ".join(parts)
