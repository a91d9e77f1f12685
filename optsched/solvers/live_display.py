"""Live display of a solve: objective, bound and gap, on a terminal, in a notebook or as lines."""

from __future__ import annotations

import html
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from optsched.compilation import clock
from optsched.numbers import percent
from optsched.solvers.result import Incumbent, relative_gap

if TYPE_CHECKING:
    from rich.table import Table

    from optsched.solvers.solver import OnIncumbent

COLUMNS = ("seconds", "objective", "bound", "gap")


@contextmanager
def shown() -> Iterator[OnIncumbent]:
    """Show a search from now on, and yield the function that takes what it reports.

    A terminal shows a table on stderr, which disappears at the end; a notebook shows one in the
    cell, which stays. Elsewhere, each incumbent is a line on stderr.
    """
    search = _Search()
    ipython = sys.modules.get("IPython")
    if ipython is not None and hasattr(ipython.get_ipython(), "kernel"):  # a notebook
        yield from _in_cell(search)
    elif sys.stderr is not None and sys.stderr.isatty():
        from rich.console import Console
        from rich.live import Live

        console = Console(stderr=True)
        with Live(get_renderable=search.table, console=console, transient=True):
            yield search.add
    else:
        yield search.say


class _Search:
    """What a search has reported: its last incumbents, and the tightest bound."""

    def __init__(self) -> None:
        self._began = clock()
        self._found: deque[Incumbent] = deque(maxlen=8)
        self._last: Incumbent | None = None

    def add(self, report: Incumbent) -> None:
        """Add an incumbent, or a tighter bound of the last one."""
        if self._last is None or report.objective != self._last.objective:
            self._found.append(report)
        self._last = report

    def say(self, report: Incumbent) -> None:
        """Print a report as a line on stderr."""
        words = zip(COLUMNS[1:], _cells(report)[1:])
        line = "  ".join(f"{name} {text}" for name, text in words)
        print(f"{report.seconds:.2f} s  {line}", file=sys.stderr)

    def rows(self) -> list[list[str]]:
        """Return the incumbents, and the state of the search now."""
        now = f"{clock() - self._began:.1f}"
        last = ["-"] * 3 if self._last is None else _cells(self._last)[1:]
        return [*map(_cells, self._found), [now, *last]]

    def table(self) -> Table:
        """Return the rows as a table for a terminal."""
        from rich.table import Table

        table = Table(box=None, pad_edge=False, header_style="bold")
        for name in COLUMNS:
            table.add_column(name, justify="right", min_width=8)
        for row in self.rows():
            table.add_row(*row)
        return table

    def __repr__(self) -> str:
        return "\n".join("  ".join(row) for row in [list(COLUMNS), *self.rows()])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in COLUMNS)
        rows = ("".join(f"<td>{html.escape(text)}</td>" for text in row) for row in self.rows())
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cells(report: Incumbent) -> list[str]:
    seconds, objective, bound = report
    gap = relative_gap(objective, bound)
    texts = ["-" if value is None else f"{value:,.10g}" for value in (objective, bound)]
    return [f"{seconds:.2f}", *texts, "-" if gap is None else percent(gap)]


def _in_cell(search: _Search) -> Iterator[OnIncumbent]:
    import IPython.display

    show: Any = IPython.display.display  # untyped
    cell = show(search, display_id=True)
    updated = clock()

    def add(report: Incumbent) -> None:
        nonlocal updated
        search.add(report)
        if clock() - updated >= 0.25:  # seconds
            cell.update(search)
            updated = clock()

    try:
        yield add
    finally:
        cell.update(search)
