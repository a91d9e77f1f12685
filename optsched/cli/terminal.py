"""Output of commands: data on stdout, messages and progress on stderr, as many as are wanted."""

from __future__ import annotations

import logging
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Annotated, Any

from cyclopts import App, Group, Parameter

from optsched import compilation
from optsched.errors import InputError, one_line

WIDE = 200  # width in characters of a table that is not printed on a terminal

PROSE = 24
"""Width in characters beyond which a cell may be wrapped between words, to no less than that."""

NARROWEST = 20  # least width in characters of a value beside its label


_quiet = False  # whether notes and progress are kept off stderr


def shows_progress() -> bool:
    """Return whether progress is shown: on a terminal, unless the user wants quiet."""
    return sys.stderr.isatty() and not _quiet


def say(message: str) -> None:
    """Print a message on stderr, in one line."""
    print(one_line(message), file=sys.stderr)


def say_note(*messages: str) -> None:
    """Print messages that are no warnings on stderr, unless the user wants quiet."""
    for message in () if _quiet else messages:
        say(message)


def warn(*messages: object) -> None:
    """Print messages on stderr, each in one line after the name of the program."""
    for message in messages:
        say(f"optsched: {message}")


def say_error(error: InputError) -> None:
    """Print an error in the user's input on stderr."""
    print(f"optsched: {error}", file=sys.stderr)


def print_line(text: object) -> None:
    """Print a line on stdout."""
    print(one_line(str(text)))


def print_json(value: Any) -> None:
    """Print one JSON object on stdout."""
    from optsched.files import json_text

    print(json_text(value, indent=2))


def labelled(label: str, texts: Iterable[Any]) -> list[tuple[str, Any]]:
    """Return (label, value) lines of several values, of which the first has the label."""
    return [("" if place else label, text) for place, text in enumerate(texts)]


def print_lines(lines: Sequence[tuple[str, Any]]) -> None:
    """Print (label, value) lines on stdout, with the values aligned, and wrapped on a terminal."""
    indent = 2 + max((len(label) for label, _ in lines), default=0)
    columns = _columns_of_terminal()
    for label, value in lines:
        text = one_line(str(value))
        if columns is None:
            print_line(f"{label:<{indent}}{text}")
            continue
        width = max(columns - indent, NARROWEST)
        parts = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
        for number, part in enumerate(parts or [""]):
            print(f"{'' if number else one_line(label):<{indent}}{part}")


def print_hanging(line: str, indent: int) -> None:
    """Print a line on stdout; a terminal that is too narrow shows the rest indented below it."""
    columns = _columns_of_terminal()
    text = one_line(line)
    if columns is not None and len(text) > columns:
        rest = " " * indent
        text = textwrap.fill(text, columns, subsequent_indent=rest, break_long_words=False)
    print(text)


def _columns_of_terminal() -> int | None:
    """Return the columns of the terminal that stdout is, None if it is none."""
    from rich.console import Console

    console = Console()
    return console.width if console.is_terminal else None


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], spare: Sequence[str] = ()
) -> None:
    """Print a table on stdout, with numbers aligned to the right.

    Words are never broken on a terminal. Prose is wrapped; if the table is still too wide, columns
    are left out, which a line on stderr tells, or else each row becomes lines of its own.

    `columns`: labels of the columns; `rows`: values; those of `Cell` are numbers if their keys are;
    `spare`: columns to leave out where the terminal is too narrow, the first one first.
    """
    from rich.console import Console
    from rich.table import Table

    width = _columns_of_terminal()
    texts = [[one_line(figure(value)) for value in row] for row in rows]
    shown = list(range(len(columns)))
    least = [  # the width of a cell, or for prose that of some words
        max(
            len(text) if len(text) <= PROSE else max(PROSE, *map(len, text.split()))
            for text in column
        )
        for column in zip(columns, *texts, strict=True)
    ]

    def fits() -> bool:
        return width is None or sum(least[n] + 2 for n in shown) - 2 <= width

    left_out = []
    for name in spare:
        if name in columns and not fits():
            left_out.append(name)
            shown.remove(list(columns).index(name))
    if not fits():
        for number, row in enumerate(texts):
            if number:
                print()
            print_lines([pair for pair in zip(columns, row) if pair[1]])
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for number in shown:
        numeric = all(_is_number(row[number]) for row in rows)
        can_wrap = any(len(row[number]) > least[number] for row in texts)
        table.add_column(
            columns[number],
            justify="right" if numeric else "left",
            overflow="fold",
            min_width=least[number],
            no_wrap=width is not None and not can_wrap,
        )
    for row in texts:
        table.add_row(*(row[number] for number in shown))
    Console(highlight=False, markup=False, width=WIDE if width is None else width).print(table)
    if left_out:
        say_note(f"left out, as the terminal is narrow: {', '.join(left_out)}")


def _is_number(value: Any) -> bool:
    from optsched.report.page import Cell

    if isinstance(value, Cell):
        return value.key is None or isinstance(value.key, int | float)
    return isinstance(value, int | float | None)


def figure(value: Any) -> str:
    """Return a value as text for people: thousands grouped, four digits, a dash for None."""
    from optsched.numbers import digits
    from optsched.report.page import Cell

    if isinstance(value, Cell):
        return value.text if value.key is not None else "-"
    if value is None or (isinstance(value, float) and value != value):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return digits(value) if isinstance(value, int | float) else str(value)


def show_cursor() -> None:
    """Show the cursor on the terminal of stderr."""
    from rich.console import Console

    Console(stderr=True).show_cursor()


def pace(rate: float, unit: str) -> str:
    """Return a rate per second as text, per minute if it is below 1."""
    time = "s" if rate >= 1 else "min"
    number = rate if rate >= 1 else 60 * rate
    return f"{number:,.{0 if number >= 10 else 1}f} {unit}/{time}"


@contextmanager
def progress_bar(what: str, total: int, unit: str) -> Iterator[Callable[..., None]]:
    """Show progress with rate and remaining time on stderr, if stderr is a terminal.

    The context is a function to call with the number of units done so far, and with that of all if
    it has changed.
    """
    if not shows_progress():
        yield lambda done, total=total: None
        return
    with _bars() as bars:
        # what tells nothing until its end has a bar without a length
        task = bars.add_task(what, total=None, unit=unit, of=total)
        yield lambda done, total=total: bars.update(task, completed=done, total=total, of=total)
        bars.remove_task(task)


def _show_compiled(done: int, total: int) -> None:
    if not _compiling:
        stack = ExitStack()
        advance = stack.enter_context(progress_bar("compiling", total, "kernels"))
        _compiling.append((stack, advance))
    stack, advance = _compiling[0]
    advance(done, total)
    if done == total:
        _compiling.clear()
        stack.close()


_shown: list[Any] = []  # the bars on the terminal, if any: there is one display for all

_compiling: list[tuple[ExitStack, Callable[..., None]]] = []
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

    class Count(TextColumn):
        """Units done and in all, or these alone while it is unknown how many are done."""

        def render(self, task: Task) -> Text:
            done = "" if task.total is None else f"{task.completed:,.0f}/"
            return Text(f"{done}{task.fields['of']:,} {task.fields['unit']}")

    columns = (BarColumn(), Count(""), Rate(""), TimeRemainingColumn())
    named = TextColumn("{task.description}")
    with Progress(named, *columns, console=Console(stderr=True), transient=True) as bars:
        _shown.append(bars)
        try:
            yield bars
        finally:
            _shown.clear()


Words = Annotated[str, Parameter(show=False, allow_leading_hyphen=True)]
VERBOSE = "Say what is read, which solvers run, and which kernels are compiled."
QUIET = "Print only errors and warnings: no notes, no progress."
GROUP = Group("Options of all commands", sort_key=9)


def add_options(app: App) -> None:
    """Add ``-v`` and ``-q`` to an application; they are parsed before its command is."""

    def launch(
        *words: Words,
        verbose: Annotated[
            bool, Parameter(alias="-v", negative=(), group=GROUP, help=VERBOSE)
        ] = False,
        quiet: Annotated[bool, Parameter(alias="-q", negative=(), group=GROUP, help=QUIET)] = False,
    ) -> Any:
        if verbose and quiet:
            raise InputError("excludes --quiet", field="--verbose")
        global _quiet
        level = logging.DEBUG if verbose else logging.WARNING if quiet else logging.INFO
        logging.getLogger("optsched").setLevel(level)
        _quiet = quiet
        if sys.stderr.isatty() and not quiet:
            compilation.show(_show_compiled)
        return app(words, exit_on_error=False, print_error=False, result_action="return_value")

    app.meta.suppress_keyboard_interrupt = app.suppress_keyboard_interrupt
    app.meta.default(launch)
