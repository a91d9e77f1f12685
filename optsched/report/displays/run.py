"""Card of a run: its main figures, all figures to unfold, and its first picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from optsched.errors import InputError
from optsched.metrics.jobs import measures_of, unstated
from optsched.report import load
from optsched.report.card import Card
from optsched.report.page import Facts
from optsched.report.run_picture import run_pictures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from optsched.simulator.run import Run

MAIN = (
    *("jobs", "finished", "killed", "rejected", "waiting", "utilization", "makespan"),
    *("mean_wait", "median_wait", "p95_wait", "max_wait", "mean_bounded_slowdown"),
    *("problems", "unproven", "fallbacks", "wrong_answers"),
)
"""Figures of the summary that are shown at once."""


def html(run: Run) -> str:
    """Return a run as HTML."""
    summary = {key: value for key, value in run.summary.items() if _is_shown(value)}
    measures = measures_of(run.config)
    main, others = (
        [(measure.name, measure.text(summary[key])) for key, measure in stated]
        for stated in (
            [(key, measures.get(key) or unstated(key)) for key in keys if key in summary]
            for keys in (MAIN, [key for key in summary if key not in MAIN])
        )
    )
    try:
        title, lead, picture = load.subject(run), " ".join(run.mishaps), _picture(run)
    except InputError:  # of a folder without tables
        title, lead, picture = load.named(run.config["trace"], run.config), "", None
    return Card(title, lead, [Facts(main)], Facts(others), picture).html()


def _is_shown(value: Any) -> bool:
    """Return whether a figure is a single value, and no count of 0."""
    return not (value is None or isinstance(value, dict) or (type(value) is int and value == 0))


def _picture(run: Run) -> Figure | None:
    """Return the first picture of the page."""
    found = (picture for picture in run_pictures() if not picture.why_not(run))
    return next((picture.drawn(run) for picture in found), None)
