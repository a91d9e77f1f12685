"""Card of a comparison: the finding, the solvers, and their gaps over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.report.card import Card
from optsched.report.comparison_page import finding, title
from optsched.report.comparison_plots import quality
from optsched.report.style import finished

if TYPE_CHECKING:
    from optsched.solvers.comparison import Comparison


def html(comparison: Comparison) -> str:
    """Return a comparison as HTML."""
    lead, tables = finding(comparison.record, comparison.results)
    picture = finished(quality(comparison))
    return Card(title(comparison.config), lead, tables, picture=picture).html()
