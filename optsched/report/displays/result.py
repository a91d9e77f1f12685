"""Card of a result: status, objective and bound, and the solution, drawn where it can be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.report.card import Card
from optsched.report.page import Facts, Value, duration, share
from optsched.report.solutions import find_picture, pictured

if TYPE_CHECKING:
    from optsched.report.drawing import Drawing
    from optsched.solvers.result import Result


def html(result: Result) -> str:
    """Return a result as HTML."""
    problem = result.problem
    stopped = f", stopped by the {result.limit.value} limit" if result.limit else ""
    facts: list[tuple[str, Value]] = [
        ("status", f"{result.status.value}{stopped}"),
        ("objective", result.objective),
        ("bound", result.bound),
        ("gap", share(result.gap)),
        ("time", duration(result.seconds)),
        ("verified", result.verified),
        *(("violation", str(violation)) for violation in result.violations),
    ]
    if problem is not None and result.solution is not None and result.verified:
        facts += problem.describe(result.solution)
    posed = "" if problem is None else f" on {problem.name} {problem.size}"
    title = f"{result.solver} {result.version}".rstrip() + posed
    return Card(title, result.message, [Facts(facts)], picture=_picture(result)).html()


def _picture(result: Result) -> Drawing | None:
    problem = result.problem
    if problem is None or result.solution is None or not result.verified:
        return None
    if problem.name not in pictured():
        return None
    return find_picture(problem.name)(problem, result.solution)  # type: ignore[return-value]
