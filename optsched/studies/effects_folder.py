"""Folder and page of effects over units. File formats: ``docs/formats/effects-folder.md``."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy import isfinite

from optsched.files import FolderKind, write_text
from optsched.metrics.jobs import MEASURES
from optsched.numbers import counted
from optsched.report import style
from optsched.report.figure_groups import compact
from optsched.report.folder_files import read_pictures
from optsched.report.page import REPORT, Cell, Figure, Page, Section, Table, cell, write_page
from optsched.simulator.provenance import versions
from optsched.studies.claims import DIGITS, FAILS, HOLDS, MARKS, OPEN, Claim, Region, written
from optsched.studies.effects import ALL, EQUAL, HIGHER, LOWER, Effect, Effects
from optsched.studies.figures import claims_panel
from optsched.studies.intervals import MOST_UNITS, Interval

FOLDER = FolderKind("effects over units", "effects.csv", ("*.svg", REPORT))
PICTURES = ("changes", "changes-narrow")
WORDS = {HOLDS: LOWER, OPEN: OPEN, FAILS: HIGHER}
SHAPES = {LOWER: HOLDS, HIGHER: FAILS, OPEN: OPEN, EQUAL: OPEN}
"""Words for the shapes and colors of verdicts, and the other way round."""

MOST_ROWS = 60
"""Most rows of a panel that shows traces and loads one by one."""


def fill(found: Effects, folder: Path, sweep: Path) -> None:
    """Write the files of the effects in a sweep into an existing folder, always the same."""
    import pandas as pd

    table = pd.DataFrame(records(found), dtype=object)
    write_text(folder / FOLDER.marker, table.to_csv(index=False, lineterminator="\n"))
    with style.applied():
        for name in PICTURES:
            panel = claims_panel(_claims(found), narrow=name == PICTURES[1], words=WORDS)
            style.save_as(panel, folder / f"{name}.svg")
    words = ["optsched", "compare", str(sweep), "--over", found.over, "--baseline", found.baseline]
    pictures = read_pictures(folder, PICTURES)
    write_page(_page(found, pictures, shlex.join([*words, "-o", "DIR"])), folder)


def records(found: Effects) -> list[dict[str, Any]]:
    """Return a row of numbers for each effect."""
    rows = []
    for one in found.effects:
        (mean, low, high), change = one.change[:3], one.change
        numbers = {
            "before": one.before,
            "after": one.after,
            "change": mean,
            "low": low,
            "high": high,
        }
        rows.append(
            {"figure": one.figure, "of": one.of, "run": one.run}
            | {name: float(DIGITS % number) for name, number in numbers.items()}
            | {"unit": one.unit, "interval": change.how, "verdict": one.verdict}
            | {"units_needed": one.needed}
        )
    return rows


def columns(found: Effects) -> list[str]:
    """Return the heads of a table for people."""
    heads = ["figure", "of", "run", "change", "interval", "by", "it is", "units needed"]
    return [*heads, found.baseline, "mean"]


def cells(one: Effect) -> list[Cell]:
    """Return a row of a table for people, below `columns`."""
    change, needed = one.change, _more(one)
    means = (compact(MEASURES[one.figure], value) for value in (one.before, one.after))
    return [
        *map(cell, (one.figure.replace("_", " "), one.of, one.run)),
        Cell(_signed(one), change.mean if isfinite(change.mean) else None),
        cell(_ends(one, change)), cell(change.how),
        cell(f"{MARKS[SHAPES[one.verdict]]} {one.verdict}"), Cell(needed, one.needed), *means,
    ]  # fmt: skip


def lead(found: Effects) -> str:
    """Return how many of the changes over all units are beyond noise."""
    own = [one for one in found.effects if one.of == ALL]
    told = sum(one.verdict in (LOWER, HIGHER) for one in own)
    differences = counted(len(own), "difference")
    over = f"over {found.units:,} units of {found.over}"
    return f"{told} of {differences} from {found.baseline} {over} can be told from noise."


def sentences(found: Effects) -> list[str]:
    """Return for each figure what is known of its changes, and how many units would tell more."""
    said = []
    for figure in dict.fromkeys(one.figure for one in found.effects):
        own = [one for one in found.effects if (one.figure, one.of) == (figure, ALL)]
        known = "; ".join(f"{one.run} {_in_words(one)}" for one in own)
        said.append(f"{_capital(MEASURES[figure].name)}, compared with {found.baseline}: {known}.")
    return said


def _in_words(one: Effect) -> str:
    change = one.change
    if one.verdict == EQUAL:
        return "is equal in every unit"
    if not isfinite(change.mean):
        return "has no change to state, as it is 0 there"
    if one.verdict != OPEN:
        size = change if one.verdict == HIGHER else change * -1
        by = _signed(one._replace(change=size)).removeprefix("+")
        return f"is {by} {one.verdict} ({_ends(one, size)})"
    if change.kind == "range":
        return f"{_signed(one)} ({change.how}: {_ends(one, change)}, too few units to judge)"
    could = f"{_more(one)} units could, in place of {change.n}"
    return f"cannot be told apart, {_signed(one)} ({_ends(one, change)}): {could}"


def _more(one: Effect) -> str:
    """Return about how many units could tell a change; empty if these can, or none is known."""
    if one.needed is None:
        return ""
    return f"about {one.needed:,}" if one.needed < MOST_UNITS else f"over {MOST_UNITS:,}"


def _signed(one: Effect) -> str:
    """Return a change with its sign and unit; empty if it is unknown."""
    sign = "+" if one.change.mean > 0 else ""
    unit = "" if one.unit == "%" else f" {one.unit}"
    known = isfinite(one.change.mean)
    return f"{sign}{written(one.change.mean, one.unit)}{unit}" if known else ""


def _ends(one: Effect, interval: Interval) -> str:
    """Return the ends of an interval of an effect: ``−4.1 to 9.0%``; empty if there is none."""
    known = isfinite([interval.low, interval.high]).all()
    return f"{written(interval.low)} to {written(interval.high, one.unit)}" if known else ""


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _claims(found: Effects) -> dict[str, Claim]:
    """Return the rows of the panel, each with the shape of its verdict."""
    shown = [one for one in found.effects if isfinite(one.change.mean)]
    whole = [one for one in shown if one.of == ALL]
    several = len(whole) < len(shown) <= MOST_ROWS
    if several:  # what it is of below what is compared
        pairs = dict.fromkeys((one.figure, one.run) for one in whole)
        shown = [one for pair in pairs for one in shown if (one.figure, one.run) == pair]
    claims = {}
    for one in shown if several else whole:
        name = _capital(MEASURES[one.figure].name)
        group, text = (f"{name}, {one.run}", one.of) if several else (name, one.run)
        change = one.change._replace(kind="range") if one.verdict == EQUAL else one.change
        key = f"{one.figure} {one.run} {one.of}"
        claims[key] = Claim(key, group, text, Region(high=0.0), None, {"": change}, one.unit)
    return claims


def _page(found: Effects, pictures: Mapping[str, str], repeat: str) -> Page:
    same = ", of the same jobs" if found.over in ("seed", "shake_seed") else ""
    how = (
        f"A unit is a value of {found.over} of a trace, and all that is compared has run the same"
        " jobs of it. The change of a figure is that of its mean, in percent of the baseline or in"
        " percentage points; of several traces or loads, it is the mean of their changes. A 95%"
        f" interval tells of other values of {found.over}{same}, if these were drawn at random;"
        " about one in twenty misses the truth. A change can be told from noise if its whole"
        " interval is above or below 0. If not, the table says about how many units could tell it,"
        " should mean and spread stay as they are."
    )
    kinds = "; ".join(dict.fromkeys(one.change.how for one in found.effects))
    caption = f"Changes from {found.baseline} with their intervals ({kinds})."
    alt = f"{caption} {' '.join(sentences(found))}"
    wide, narrow = (pictures[name] for name in PICTURES)
    heads, rows = columns(found), [cells(one) for one in found.effects]
    whole = [row[:1] + row[2:] for row in rows if row[1].text == ALL]
    tables = [Table(f"{caption} The last columns are the means.", heads[:1] + heads[2:], whole)]
    if single := [row for row in rows if row[1].text != ALL]:
        tables.append(Table("The same of each trace or load.", heads, single))
    return Page(
        title=f"Changes from {found.baseline} over {found.units:,} units of {found.over}",
        lead=lead(found),
        summary=found.notes,
        sections=[
            Section(
                "Changes",
                [Figure(PICTURES[0], wide, alt, caption, narrow=narrow), *sentences(found)],
            ),
            Section("Numbers", tables),
            Section("How to read this", [how]),
        ],
        repeat=repeat,
        versions=versions(),
    )
