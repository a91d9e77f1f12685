"""A page of a report: one self-contained HTML file, of runs, comparisons and studies alike."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import groupby
from numbers import Integral, Real
from pathlib import Path
from typing import ClassVar, NamedTuple

from optsched.files import written
from optsched.report.durations import short

REPORT = "report.html"
"""Name of the page in its folder."""

TEMPLATES = Path(__file__).parent / "templates"
MISSING = "\N{EN DASH}"


class Verdict(StrEnum):
    """Whether a claim holds."""

    HELD = "holds"
    IN_PART = "holds in part"
    NOT_HELD = "does not hold"


@dataclass(frozen=True, slots=True)
class Cell:
    """A value as it is shown, and what its column is sorted by.

    Parameters
    ----------
    text : str
        What is shown.
    key : float, int or str, optional
        What it is sorted by; a cell without comes last.
    note : str
        Shown small beside it: the published value beside the measured one, for instance.
    verdict : Verdict, optional
        Colours the text, which must say the same in words.
    """

    text: str
    key: float | int | str | None = None
    note: str = ""
    verdict: Verdict | None = None


Value = Cell | Verdict | str | bool | float | int | None
"""What may stand in a table or be a fact; none, nan and infinite numbers are shown as a dash."""


def cell(value: Value) -> Cell:
    """Return a value as a cell: thousands grouped, four digits, a dash for none."""
    if isinstance(value, Cell):
        return value
    if isinstance(value, Verdict):
        return Cell(value, list(Verdict).index(value), verdict=value)
    if isinstance(value, str):
        return Cell(value, value)
    if isinstance(value, bool):
        word = "yes" if value else "no"
        return Cell(word, word)
    if isinstance(value, Integral):
        return Cell(f"{value:,}", int(value))
    if isinstance(value, Real) and math.isfinite(value):
        number = float(value)
        return Cell(f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.4g}", number)
    return Cell(MISSING)


def share(value: float | None) -> Cell:
    """Return a share, from 0 to 1, in percent."""
    return cell(None) if value is None or math.isnan(value) else Cell(f"{100 * value:.4g}%", value)


def duration(seconds: float | None) -> Cell:
    """Return a duration in the unit that suits it; sorted by seconds."""
    if seconds is None or not math.isfinite(seconds):
        return cell(None)
    return Cell(short(seconds), float(seconds))


class Column(NamedTuple):
    """A column of a table: its place, from 0, its label, and whether it holds numbers."""

    place: int
    label: str
    numeric: bool


@dataclass(frozen=True)
class Table:
    """A table that the reader can sort by any column.

    Parameters
    ----------
    caption : str
        What it shows, and in which units.
    columns : sequence of str or of (str, str)
        The label of each column; ``(group, label)`` puts neighbours of one group under a common
        header, in a second level.
    rows : sequence of sequences of Value
        The cells of each row; the first names the row.
    """

    caption: str
    columns: Sequence[str | tuple[str, str]]
    rows: Sequence[Sequence[Value]]
    form: ClassVar[str] = "table"

    @cached_property
    def cells(self) -> list[list[Cell]]:
        """The rows as cells."""
        return [[cell(value) for value in row] for row in self.rows]

    @cached_property
    def numeric(self) -> list[bool]:
        """Whether a column holds numbers, and perhaps gaps; verdicts are none."""
        return [
            bool(known) and all(isinstance(c.key, float | int) and not c.verdict for c in known)
            for known in (
                [row[place] for row in self.cells if row[place].key is not None]
                for place in range(len(self.columns))
            )
        ]

    @property
    def levels(self) -> int:
        """How many levels the header has: 1 or 2."""
        return 1 + any(isinstance(column, tuple) for column in self.columns)

    @property
    def header(self) -> list[tuple[str, list[Column]]]:
        """The columns by group, in order; the group of those without is empty."""
        named = [c if isinstance(c, tuple) else ("", c) for c in self.columns]
        columns = [
            (group, Column(place, label, numeric))
            for place, ((group, label), numeric) in enumerate(zip(named, self.numeric))
        ]
        return [
            (group, [column for _, column in members])
            for group, members in groupby(columns, key=lambda pair: pair[0])
        ]


@dataclass(frozen=True)
class Figure:
    """A picture.

    Parameters
    ----------
    svg : str
        The SVG document. It is embedded as an image of its own, so that neither ids nor styles of
        several pictures meet, and nothing in it can run.
    alt : str
        What the picture says, with its numbers, for readers who do not see it.
    caption : str
        What is drawn.
    """

    svg: str
    alt: str
    caption: str
    form: ClassVar[str] = "figure"

    @property
    def source(self) -> str:
        """The picture as an address that holds it."""
        data = base64.b64encode(self.svg.encode()).decode("ascii")
        return f"data:image/svg+xml;base64,{data}"


@dataclass(frozen=True)
class Facts:
    """Names and values, in two columns where there is room."""

    items: Sequence[tuple[str, Value]]
    form: ClassVar[str] = "facts"

    @property
    def cells(self) -> list[tuple[str, Cell]]:
        """The names with their values as cells."""
        return [(name, cell(value)) for name, value in self.items]


@dataclass(frozen=True)
class Section:
    """A part of the page under its own heading: paragraphs (texts), facts, tables, figures."""

    title: str
    parts: Sequence[str | Facts | Table | Figure]


@dataclass(frozen=True)
class Page:
    """A report.

    Parameters
    ----------
    title : str
        What it is of.
    lead : str
        What was found, in one or two sentences.
    sections : sequence of Section
        The rest, in order.
    repeat : str or None
        The command that gives the same again; none if no command can.
    versions : mapping of str to str
        The versions of what it was made with.
    """

    title: str
    lead: str
    sections: Sequence[Section]
    repeat: str | None
    versions: Mapping[str, str]


def render(page: Page) -> str:
    """Return a page as one HTML document that refers to nothing outside of itself.

    All texts of the page are escaped.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template("page.html.j2").render(page=page).lstrip()


def write_page(page: Page, folder: Path) -> Path:
    """Write a page to ``report.html`` in a folder, and return its path.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    path = folder / REPORT
    with written(path) as temporary:
        temporary.write_text(render(page), encoding="utf-8", newline="\n")
    return path
