"""Card of a problem: its data in the terms of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from optsched.report.card import Card
from optsched.report.page import Facts

if TYPE_CHECKING:
    from optsched.models.problem import Problem


def html(problem: Problem[Any]) -> str:
    """Return a problem as HTML."""
    aim = {"max": "maximize", "min": "minimize"}[problem.sense]
    facts = [*problem.describe(), ("objective", f"to {aim}")]
    return Card(f"{problem.name} {problem.size}", "", [Facts(facts)]).html()
