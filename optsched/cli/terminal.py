"""Output of commands: data on stdout, messages and progress on stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from optsched import compilation
from optsched.errors import one_line
from optsched.json_text import json_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from optsched.errors import InputError

WIDE = 200
"""Width in characters of a table that is not printed on a terminal."""


def say(message: str) -> None:
    """Print a message on stderr, in one line."""
    print(one_line(message), file=sys.stderr)


def say_error(error: InputError) -> None:
    """Print an error in the user's input on stderr."""
    print(f"optsched: {error}", file=sys.stderr)


def print_line(text: object) -> None:
    """Print a line on stdout."""
    print(one_line(str(text)))


def print_json(value: Any) -> None:
    """Print one JSON object on stdout."""
    print(json_text(value, indent=2))


def print_lines(lines: Sequence[tuple[str, Any]]) -> None:
    """Print (label, value) lines on stdout, with the values aligned."""
    width = max((len(label) for label, _ in lines), default=0)
    for label, value in lines:
        print_line(f"{label:<{width}}  {value}")


def print_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table on stdout, with numbers aligned to the right."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        console = Console(highlight=False, markup=False, width=WIDE)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, name in enumerate(columns):
        numeric = all(isinstance(row[number], int | float | None) for row in rows)
        table.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(one_line(figure(value)) for value in row))
    console.print(table)


def figure(value: Any) -> str:
    """Return a value as text for people: thousands grouped, four digits, a dash for None."""
    if value is None or (isinstance(value, float) and value != value):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return str(value)


def pace(rate: float, unit: str) -> str:
    """Return a rate per second as text, per minute if it is below 1."""
    time = "s" if rate >= 1 else "min"
    number = rate if rate >= 1 else 60 * rate
    return f"{number:,.{0 if number >= 10 else 1}f} {unit}/{time}"


@contextmanager
def progress_bar(what: str, total: int, unit: str) -> Iterator[Callable[[int], None]]:
    """Show progress with rate and remaining time on stderr, if stderr is a terminal.

    Yields
    ------
    callable
        Function to call with the number of units done so far.
    """
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    with _bars() as bars:
        task = bars.add_task(what, total=total, unit=unit)
        yield lambda done: bars.update(task, completed=done)
        bars.remove_task(task)


def show_compilation() -> None:
    """Show the compilation of kernels with a bar, if stderr is a terminal."""
    if sys.stderr.isatty():
        compilation.show(_show_compiled)


def _show_compiled(done: int, total: int) -> None:
    if not _compiling:
        stack = ExitStack()
        bars = stack.enter_context(_bars())
        task = bars.add_task("compiling, once on this machine", total=total, unit="kernels")
        stack.callback(bars.remove_task, task)
        _compiling.append((stack, bars, task))
    stack, bars, task = _compiling[0]
    bars.update(task, completed=done, total=total)
    if done == total:
        _compiling.clear()
        stack.close()


_shown: list[Any] = []
"""The bars on the terminal, if any: there is one display for all."""

_compiling: list[tuple[ExitStack, Any, Any]] = []
"""The bar of the compilation, while it is shown."""


@contextmanager
def _bars() -> Iterator[Any]:
    """Yield the display of bars, which is opened if there is none yet."""
    if _shown:
        yield _shown[0]
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, Task, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class Rate(TextColumn):
        """Units per second, empty before the first unit is done."""

        def render(self, task: Task) -> Text:
            return Text("" if task.speed is None else pace(task.speed, task.fields["unit"]))

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f}/{task.total:,.0f} {task.fields[unit]}"),
        Rate(""),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        _shown.append(bars)
        try:
            yield bars
        finally:
            _shown.clear()
