"""What notebooks show of runs, results, problems and comparisons: cards, as HTML without scripts.

`optsched.registry.display_of` finds the function of a kind of object by its name.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from optsched.errors import InputError
from optsched.metrics.jobs import measures_of, unstated
from optsched.numbers import counted
from optsched.report import load
from optsched.report.page import Facts, Table, Value, duration, environment, share
from optsched.report.pictures import run_pictures
from optsched.report.style import asked, finished, png
from optsched.solvers.result import Limit, Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from optsched.models.problem import Problem
    from optsched.simulator.run import Run
    from optsched.solvers.comparison import Comparison

MAIN = (
    *("jobs", "finished", "killed", "rejected", "waiting", "utilization", "makespan"),
    *("mean_wait", "median_wait", "p95_wait", "max_wait", "mean_bounded_slowdown"),
    *("problems", "unproven", "fallbacks", "wrong_answers"),
)
"""Figures of the summary that are shown at once."""


@dataclass(frozen=True)
class Card:
    """What a notebook shows of an object."""

    title: str  # the object in a few words
    lead: str = ""  # a sentence or two on it; may be empty
    parts: Sequence[Facts | Table] = ()  # names and values, and tables
    folded: Facts | None = None  # further names and values, to unfold
    picture: Figure | None = None

    @property
    def source(self) -> str:
        """The picture as a data URL; empty without one."""
        if self.picture is None:
            return ""
        return f"data:image/png;base64,{base64.b64encode(png(self.picture)).decode()}"

    def html(self) -> str:
        """Return the card as HTML, with all texts escaped."""
        return environment().get_template("card.html.j2").render(card=self)


def comparison(shown: Comparison) -> str:
    """Return a comparison as HTML: the finding, the solvers, and their gaps over time."""
    from optsched.report.comparison_page import finding
    from optsched.report.comparison_plots import quality

    lead, tables = finding(shown.record, shown.results)
    solvers = ", ".join(solver["name"] for solver in shown.config["solvers"])
    title = f"{solvers} on {counted(len(shown.config['snapshots']), 'snapshot')}"
    picture = finished(quality(shown))
    return Card(title, lead, tables, picture=picture).html()


def problem(shown: Problem[Any]) -> str:
    """Return a problem as HTML: its data in the terms of the model."""
    aim = {"max": "maximize", "min": "minimize"}[shown.sense]
    facts = [*shown.describe(), ("objective", f"to {aim}")]
    return Card(f"{shown.name} {shown.size}", "", [Facts(facts)]).html()


def answer(shown: Result) -> list[tuple[str, Value]]:
    """Return the status, objective, bound, gap and time of a result, each with its label."""
    stopped = f", stopped by the {shown.limit} limit" if shown.limit else ""
    return [
        ("status", shown.status + (", interrupted" if shown.limit is Limit.INTERRUPT else stopped)),
        ("objective", shown.objective),
        ("bound", shown.bound),
        ("gap", None if shown.gap is None else share(shown.gap)),
        ("time", duration(shown.seconds)),
        ("verified", shown.verified if shown.solution is not None else None),
    ]


def result(shown: Result) -> str:
    """Return a result as HTML: status, objective, bound, and the solution, drawn if it can be."""
    problem = shown.problem
    facts = [*answer(shown), *(("violation", str(violation)) for violation in shown.violations)]
    if problem is not None and shown.solution is not None and shown.verified:
        facts += problem.describe(shown.solution)
    known = [(name, value) for name, value in facts if value is not None]
    posed = "" if problem is None else f" on {problem.name} {problem.size}"
    title = f"{shown.solver} {shown.version}".rstrip() + posed
    message = shown.message or str(shown.conflict or "")
    try:
        picture = figure(shown)
    except InputError:
        picture = None
    return Card(title, message, [Facts(known)], picture=picture).html()


def figure(shown: Result, size: Any = None, title: bool = True) -> Figure:
    """Return the picture of a solution, of a size in inches, with or without titles."""
    if shown.problem is None or shown.solution is None or not shown.verified:
        raise InputError("no picture: expected a result of optsched.solve with a verified solution")
    from optsched.report.solutions import find_picture

    draw = find_picture(shown.problem.name)
    with asked(size, title):
        return finished(draw(shown.problem, shown.solution))


def run(shown: Run) -> str:
    """Return a run as HTML: its main figures, all others to unfold, and its first picture."""
    summary = {
        key: value
        for key, value in shown.summary.items()
        if not (value is None or isinstance(value, dict) or (type(value) is int and value == 0))
    }
    measures = measures_of(shown.config)
    main, others = (
        [(measure.name, measure.text(summary[key])) for key, measure in stated]
        for stated in (
            [(key, measures.get(key) or unstated(key)) for key in keys if key in summary]
            for keys in (MAIN, [key for key in summary if key not in MAIN])
        )
    )
    try:
        title, lead = load.subject(shown), " ".join(shown.mishaps)
        drawn = (one.drawn(shown) for one in run_pictures() if not one.why_not(shown))
        picture = next(drawn, None)
    except InputError:  # of a folder without tables
        title, lead, picture = load.named(shown.config["trace"], shown.config), "", None
    return Card(title, lead, [Facts(main)], Facts(others), picture).html()
