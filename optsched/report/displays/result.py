"""Card of a result: status, objective and bound, and the solution, drawn where it can be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from optsched.errors import InputError
from optsched.report.card import Card
from optsched.report.page import Facts, Value, duration, share
from optsched.report.solutions import find_picture
from optsched.report.style import asked, finished

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from optsched.solvers.result import Result


def html(result: Result) -> str:
    """Return a result as HTML."""
    problem = result.problem
    stopped = f", stopped by the {result.limit.value} limit" if result.limit else ""
    facts: list[tuple[str, Value]] = [
        ("status", f"{result.status.value}{stopped}"),
        ("objective", result.objective),
        ("bound", result.bound),
        ("gap", None if result.gap is None else share(result.gap)),
        ("time", duration(result.seconds)),
        ("verified", result.verified if result.solution is not None else None),
        *(("violation", str(violation)) for violation in result.violations),
    ]
    if problem is not None and result.solution is not None and result.verified:
        facts += problem.describe(result.solution)
    known = [(name, value) for name, value in facts if value is not None]
    posed = "" if problem is None else f" on {problem.name} {problem.size}"
    title = f"{result.solver} {result.version}".rstrip() + posed
    message = result.message or str(result.conflict or "")
    return Card(title, message, [Facts(known)], picture=_picture(result)).html()


def figure(result: Result, size: Any = None, title: bool = True) -> Figure:
    """Return the picture of the solution of a result, of a size in inches, with titles or without.

    Raises
    ------
    InputError
        If there is no verified solution of a known problem, or its model has no picture.
    """
    if result.problem is None or result.solution is None or not result.verified:
        raise InputError("no picture: expected a result of optsched.solve with a verified solution")
    draw = find_picture(result.problem.name)
    with asked(size, title):
        return finished(draw(result.problem, result.solution))


def _picture(result: Result) -> Figure | None:
    try:
        return figure(result)
    except InputError:
        return None
