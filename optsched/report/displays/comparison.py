"""Card of a comparison: the finding, the solvers, and their gaps over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.numbers import counted
from optsched.report.card import Card
from optsched.report.comparison_page import finding
from optsched.report.comparison_plots import quality
from optsched.report.style import finished

if TYPE_CHECKING:
    from optsched.solvers.comparison import Comparison


def html(comparison: Comparison) -> str:
    """Return a comparison as HTML."""
    lead, tables = finding(comparison.record, comparison.results)
    solvers = ", ".join(solver["name"] for solver in comparison.config["solvers"])
    title = f"{solvers} on {counted(len(comparison.config['snapshots']), 'snapshot')}"
    picture = finished(quality(comparison))
    return Card(title, lead, tables, picture=picture).html()
