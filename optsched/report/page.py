"""Pages of reports, each one self-contained HTML file, and the parts that they share."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, count, groupby
from numbers import Integral, Real
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.errors import one_line
from optsched.files import json_text, write_text
from optsched.folders import REPORT
from optsched.metrics.jobs import unstated
from optsched.metrics.measure import Group, Measure
from optsched.numbers import MISSING, digits, percent, short
from optsched.report.style import with_dark_variant

if TYPE_CHECKING:
    from jinja2 import Environment


TEMPLATES = Path(__file__).parent / "templates"
REPEAT = "How to repeat this"  # title of the section with the command
LONG = 50  # most rows of a table that is shown in full; longer ones are folded, and scroll in a box


@dataclass(frozen=True, slots=True)
class Cell:
    """Value as shown in a table, with its sort key.

    Cells without a key come last. The note stands in small type beside the value.
    """

    text: str
    key: float | int | str | None = None
    note: str = ""


Value = Cell | str | bool | float | int | None
"""Value of a table or a fact; None, nan and infinite numbers are shown as a dash."""


def cell(value: Value) -> Cell:
    """Return a value as a cell: thousands grouped, four digits, a dash for None."""
    if isinstance(value, Cell):
        return value
    if isinstance(value, str):
        return Cell(value, value)
    if isinstance(value, bool):
        word = "yes" if value else "no"
        return Cell(word, word)
    if isinstance(value, Integral):
        return Cell(digits(value), int(value))
    if isinstance(value, Real) and math.isfinite(value):
        return Cell(digits(float(value)), float(value))
    return Cell(MISSING)


def share(value: float | None) -> Cell:
    """Return a share, from 0 to 1, in percent."""
    if value is None or not math.isfinite(value):
        return cell(None)
    return Cell(percent(value), value)


def duration(seconds: float | None) -> Cell:
    """Return a duration in a suitable unit; sorted by seconds."""
    if seconds is None or not math.isfinite(seconds):
        return cell(None)
    return Cell(short(seconds), float(seconds))


class Column(NamedTuple):
    """Column of a table: its place, from 0, its label, and whether it holds numbers."""

    place: int
    label: str
    numeric: bool


Label = str | tuple[str, str]
"""Label of a column; ``(group, label)`` puts adjacent columns of a group under a common header."""

Row = dict[Label, Value]


@dataclass(frozen=True)
class Table:
    """Table that the reader can sort by any column."""

    caption: str  # description of the content, with its units
    columns: Sequence[Label]
    rows: Sequence[Sequence[Value]]  # cells of each row; the first one names the row
    form: ClassVar[str] = "table"

    @classmethod
    def of(cls, caption: str, rows: Sequence[Row]) -> Table:
        """Return a table of one row or more, all with the same labels."""
        return cls(caption, [*rows[0]], [[*row.values()] for row in rows])

    @cached_property
    def cells(self) -> list[list[Cell]]:
        """Rows as cells."""
        return [[cell(value) for value in row] for row in self.rows]

    @cached_property
    def numeric(self) -> list[bool]:
        """Whether each column holds only numbers and gaps."""
        return [
            bool(known) and all(isinstance(c.key, float | int) for c in known)
            for known in (
                [row[place] for row in self.cells if row[place].key is not None]
                for place in range(len(self.columns))
            )
        ]

    @property
    def long(self) -> bool:
        """Whether the table is folded."""
        return len(self.rows) > LONG

    @property
    def levels(self) -> int:
        """Number of levels of the header: 1 or 2."""
        return 1 + any(isinstance(column, tuple) for column in self.columns)

    @property
    def header(self) -> list[tuple[str, list[Column]]]:
        """Columns by group, in order; columns without a group have the group ``""``."""
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
    """Picture of a page.

    The SVG document is embedded as a separate image, so that ids and styles of pictures do not
    clash, and scripts do not run. `alt` is a description with the numbers of the picture, for
    readers who cannot see it. `name` is that of its file, without the suffix. With the data of
    `charts`, those of `optsched.report.pictures.gantt`, the reader can zoom: they replace the
    picture, below each other, and show the same time. Each of several has a ``name`` more. A phone
    shows the `narrow` picture, if there is one.
    """

    name: str
    svg: str
    alt: str
    caption: str
    charts: Sequence[Mapping[str, object]] = ()
    narrow: str = ""
    form: ClassVar[str] = "figure"

    @property
    def sources(self) -> list[str]:
        """Pictures as data URLs, with dark colors where the reader prefers them; wide, narrow."""
        shown = [with_dark_variant(one).encode() for one in (self.svg, self.narrow) if one]
        coded = [base64.b64encode(one).decode("ascii") for one in shown]
        return [f"data:image/svg+xml;base64,{one}" for one in coded]

    @property
    def data(self) -> str:
        """Data of the charts as JSON without ``<``, which would end its element."""
        return json_text(self.charts).replace("<", "\\u003c")


def figures(
    pictures: Mapping[str, str],
    about: Mapping[str, tuple[str, str]],
    of: str,
    charts: Mapping[str, Sequence[Mapping[str, Any]]] = MappingProxyType({}),
) -> list[Figure]:
    """Return pictures by name, with what is known `about` them: the caption, and `Figure.alt`.

    The name of any other is its own caption.
    """
    return [
        Figure(name, svg, alt, caption, charts.get(name, ()))
        for name, svg in pictures.items()
        for caption, alt in [about.get(name, (f"{name}.", f"Picture of the {of}: {name}."))]
    ]


@dataclass(frozen=True)
class Facts:
    """Names and values, in several columns on a wide page; in one if the values are texts.

    `meanings` has sentences on some of the names, for readers who point at them.
    """

    items: Sequence[tuple[str, Value]]
    meanings: Mapping[str, str] = field(default_factory=dict)
    as_text: bool = False
    form: ClassVar[str] = "facts"

    @property
    def cells(self) -> list[tuple[str, Cell]]:
        """Names with their values as cells."""
        return [(name, cell(value)) for name, value in self.items]


@dataclass(frozen=True)
class Heading:
    """Heading of the following parts of a section."""

    title: str
    form: ClassVar[str] = "heading"


@dataclass(frozen=True)
class Fold:
    """Parts that the reader unfolds; `label` is what is seen of them."""

    label: str
    parts: Sequence[Part]
    form: ClassVar[str] = "fold"


Part = str | Facts | Table | Figure | Heading | Fold  # part of a section; a text is a paragraph


@dataclass(frozen=True)
class Section:
    """Section of a page: a heading, and parts."""

    title: str
    parts: Sequence[Part]


@dataclass(frozen=True)
class Page:
    """Page of a report.

    `lead` is the finding, in one or two sentences; `summary` are further paragraphs before the
    first section; `repeat` is the command that repeats the result, None if no command can;
    `versions` are those of the software that made it. The sections of `appendix` come after the
    command.
    """

    title: str
    lead: str
    sections: Sequence[Section]
    repeat: str | None
    versions: Mapping[str, str]
    summary: Sequence[str] = ()
    appendix: Sequence[Section] = ()

    @cached_property
    def contents(self) -> list[tuple[str, Section]]:
        """The sections with their anchors, in order; that with the command has no parts."""
        sections = [*self.sections, Section(REPEAT, ()), *self.appendix]
        anchor = anchors()
        return [(anchor(section.title), section) for section in sections]


def anchors(taken: Iterable[str] = ()) -> Callable[[str], str]:
    """Return a function that makes anchors of titles, different from all before."""
    used = set(taken)

    def anchor(title: str) -> str:
        words = re.sub("[^a-z0-9]+", "-", title.lower()).strip("-") or "section"
        names = chain([words], (f"{words}-{number}" for number in count(2)))
        name = next(name for name in names if name not in used)
        used.add(name)
        return name

    return anchor


def environment() -> Environment:
    """Return the environment of the templates of pages, which escapes all texts."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def render(page: Page) -> str:
    """Return a page as one self-contained HTML document, with all texts escaped."""
    template = environment().get_template("page.html.j2")
    anchor = anchors(name for name, _ in page.contents)
    parts = chain.from_iterable(section.parts for _, section in page.contents)
    zooms = any(isinstance(part, Figure) and part.charts for part in parts)
    return template.render(page=page, anchor=anchor, zooms=zooms).lstrip()


def write_page(page: Page, folder: Path) -> Path:
    """Write a page to ``report.html`` in a folder, and return its path."""
    path = folder / REPORT
    write_text(path, render(page))
    return path


JOB = {
    "job_id": "int64",
    "submission_time": "float64",
    "requested_number_of_resources": "int64",
    "requested_time": "float64",
    "run_time": "float64",
    "user": "int64",
}
"""Columns of the table of jobs that are the same in all runs of a trace."""

OUTCOME = {
    "final_state": "str",
    "starting_time": "float64",
    "finish_time": "float64",
    "waiting_time": "float64",
}
"""Columns of the table of jobs that a policy decides."""

OWNERS = {"user_name": "user", "account": "account", "qos": "QOS", "partition_name": "partition"}
"""Labels of the columns of names that the table of jobs has if the trace states any."""

NAMES = dict.fromkeys(OWNERS, "str")


def job_table(
    caption: str,
    jobs: Mapping[str, NDArray[Any]],
    shown: NDArray[np.int64],
    more: Mapping[Label, Iterable[Value]] = MappingProxyType({}),
) -> Table:
    """Return a table of some jobs: the columns that say which they are, and more columns.

    A user without a name is shown by number; accounts, QOS and partitions are shown if any of the
    jobs has one.

    `jobs`: the columns `JOB`, and those of `NAMES` that there are, shape (jobs,); `shown`: rows of
    the jobs to show, shape (rows,).
    """
    own = {name: jobs[name][shown].tolist() for name in (*JOB, *NAMES) if name in jobs}
    users = own.pop("user_name", [""] * len(shown))
    named = [name for name in NAMES if any(own.get(name, ()))]
    begin = jobs["submission_time"].min()
    columns: dict[Label, Iterable[Value]] = {
        "job": [Cell(str(number), number) for number in own["job_id"]],
        "user": map(_owner, users, own["user"]),
        **{OWNERS[name]: [one_line(text or "") or None for text in own[name]] for name in named},
        "submitted": [duration(time - begin) for time in own["submission_time"]],
        "processors": own["requested_number_of_resources"],
        "requested time": map(duration, own["requested_time"]),
        "run time": map(duration, own["run_time"]),
        **more,
    }
    rows = list(zip(*columns.values()))
    return Table(f"{caption} Submission since the first one.", [*columns], rows)


def user_cell(jobs: Mapping[str, NDArray[Any]], job: int) -> Value:
    """Return the user of a job, by name or number."""
    names = jobs.get("user_name")
    return _owner(None if names is None else names[job], int(jobs["user"][job]))


def _owner(name: str | None, number: int) -> Value:
    return one_line(name or "") or (Cell(str(number), number) if number >= 0 else None)


ABOUT = {
    Group.WAITS: "Over the finished jobs. A slowdown is the response over the time that the job"
    " ran; bounded, with a divisor of at least 10 s.",
    Group.EVALUATED: "A stretch is the response over that on an empty cluster, run time and a full"
    " load of the file; so it is not the slowdown above.",
}
"""Sentences on groups whose figures would be taken for others."""

MOST_ROWS = 8  # most rows of a table of figures that is not folded


def shown(measure: Measure, value: Any) -> Cell:
    """Return a value with its unit, as a cell that is sorted by the value."""
    key = value if isinstance(value, int | float | None) else str(value)
    return Cell(measure.text(value), key)


def compact(measure: Measure, value: Any) -> Cell:
    """Return a value as the cell of a column of the measure: as short as possible."""
    show: Callable[[Any], Cell] = {"seconds": duration, "share": share}.get(measure.unit, cell)
    return show(value)


def by_group(
    summary: Mapping[str, Any], measures: Mapping[str, Measure], groups: Collection[Group]
) -> list[Part]:
    """Return the figures of some groups, in the order of `Group`, and their definitions, folded.

    Each group has a heading, if there are several. Figures that are None are left out. Mappings
    become tables, one for all with the same kind of keys.
    """
    stated = [
        (measures.get(key) or unstated(key), value)
        for key, value in summary.items()
        if value is not None and value != {}
    ]
    parts: list[Part] = []
    defined: list[tuple[str, Value]] = []
    for group in (group for group in Group if group in groups):
        own = [(measure, value) for measure, value in stated if measure.group == group]
        if own:
            parts += [Heading(group)] if len(groups) > 1 else []
            parts += [ABOUT[group]] if group in ABOUT else []
            parts += _figures(own)
        defined += [(measure.name, measure.meaning) for measure, _ in own if measure.meaning]
    return [*parts, Fold("Definitions of these figures", [Facts(defined, as_text=True)])]


def _figures(measured: Iterable[tuple[Measure, Any]]) -> list[Part]:
    facts: list[tuple[str, Value]] = []
    mappings: dict[str, list[tuple[Measure, Mapping[str, Any]]]] = {}
    meanings: dict[str, str] = {}
    for measure, value in measured:
        if isinstance(value, Mapping):
            mappings.setdefault(measure.by or measure.name, []).append((measure, value))
        else:
            facts.append((measure.name, shown(measure, value)))
            meanings[measure.name] = measure.meaning
    tables = [_table(by, columns) for by, columns in mappings.items()]
    folded = [Fold(one.caption, [one]) if len(one.rows) > MOST_ROWS else one for one in tables]
    return [*([Facts(facts, meanings)] if facts else []), *folded]


def _table(by: str, columns: list[tuple[Measure, Mapping[str, Any]]]) -> Table:
    """Return a table of mappings with the same kind of keys, which label the rows."""
    keys = dict.fromkeys(key for _, values in columns for key in values)
    ordered = sorted(keys, key=float) if all(map(_is_number, keys)) else list(keys)
    rows: list[list[Value]] = [
        [
            Cell(key, float(key)) if _is_number(key) else key,
            *(shown(measure, values.get(key)) for measure, values in columns),
        ]
        for key in ordered
    ]
    names = [measure.name for measure, _ in columns]
    caption = f"{', '.join(names)}, by {by}."
    return Table(f"{caption[:1].upper()}{caption[1:]}", [by, *names], rows)


def _is_number(key: str) -> bool:
    return key.isascii() and key.isdecimal()
