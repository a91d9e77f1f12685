"""The figures of a summary by group: names and units, small tables, and definitions to unfold."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from optsched.metrics.catalogue import unstated
from optsched.metrics.measure import Group, Measure
from optsched.report.page import (
    Cell,
    Facts,
    Fold,
    Heading,
    Part,
    Table,
    Value,
    cell,
    duration,
    share,
)

ABOUT = {
    Group.WAITS: "Over the finished jobs. A slowdown is the response over the time that the job"
    " ran; bounded, with a divisor of at least 10 s.",
    Group.EVALUATED: "A stretch is the response over that on an empty cluster, run time and a full"
    " load of the file; so it is not the slowdown above.",
}
"""Sentences on groups whose figures would be taken for others."""

MOST_ROWS = 8
"""Most rows of a table of figures that is not folded."""


def shown(measure: Measure, value: Any) -> Cell:
    """Return a value with its unit, as a cell that is sorted by the value."""
    if value is None:
        return Cell(measure.text(None))
    return Cell(measure.text(value), value if isinstance(value, int | float) else str(value))


def compact(measure: Measure, value: Any) -> Cell:
    """Return a value as the cell of a column of the measure: as short as possible."""
    show: Callable[[Any], Cell] = _SHORT.get(measure.unit, cell)
    return show(value)


_SHORT: Mapping[str, Callable[[Any], Cell]] = {"seconds": duration, "share": share}


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
    """Return figures as facts, and mappings as tables."""
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
    return [*([Facts(facts, meanings)] if facts else []), *map(_folded, tables)]


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


def _folded(table: Table) -> Part:
    return Fold(table.caption, [table]) if len(table.rows) > MOST_ROWS else table


def _is_number(key: str) -> bool:
    return key.isascii() and key.isdecimal()
