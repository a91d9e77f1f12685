"""Folder and page of effects over units. File formats: ``docs/formats/effects-folder.md``."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from math import isfinite, nan
from pathlib import Path
from typing import Any

from optsched.errors import InputError
from optsched.files import FolderKind, write_json, write_text
from optsched.folders import REPORT, Expected, checked, read_object, read_pictures
from optsched.metrics.jobs import MEASURES
from optsched.numbers import counted, on_file, written
from optsched.report import style
from optsched.report.page import Cell, Figure, Page, Section, Table, cell, compact, write_page
from optsched.simulator.provenance import versions
from optsched.studies.claims import FAILS, HOLDS, MARKS, OPEN, Claim, Region
from optsched.studies.effects import (
    ALL,
    EQUAL,
    FIGURES,
    HIGHER,
    LOWER,
    SHARES,
    Effect,
    Effects,
    noun_of,
)
from optsched.studies.figures import claims_panel
from optsched.studies.intervals import Interval

FOLDER = FolderKind("effects", "effects.json", ("effects.csv", "*.svg", REPORT))
PICTURES = ("changes", "changes-narrow")
WORDS = {HOLDS: "better", OPEN: OPEN, FAILS: "worse"}
SIGNS = MARKS | {FAILS: "✕"}
"""Words and shapes for colors of verdicts on claims."""

MOST_NEEDED = 100
"""Most units that are said to be needed by number."""

MOST_ROWS = 60
"""Most rows of a panel that shows traces and loads one by one."""

ABOUT: Expected = {
    "over": str, "units": int, "baseline": str, "sweep": str, "notes": list, "effects": list,
}  # fmt: skip
NUMBERS = ("before", "after", "change", "low", "high")
ROW: Expected = {
    "figure": str, "of": str, "compared": str, "n": int, "interval": str,
    **dict.fromkeys(NUMBERS, (int, float, type(None))),
}  # fmt: skip


def fill(found: Effects, folder: Path, sweep: Path) -> None:
    """Write the files of the effects in a sweep into an existing folder, always the same."""
    import pandas as pd

    about = described(found, sweep)
    write_json(folder / FOLDER.marker, about)
    table = pd.DataFrame(about["effects"], dtype=object)
    write_text(folder / "effects.csv", table.to_csv(index=False, lineterminator="\n"))
    with style.applied():
        for name in PICTURES:
            panel = claims_panel(_claims(found), narrow=name == PICTURES[1], words=WORDS)
            style.save_as(panel, folder / f"{name}.svg")
    report(folder)


def report(folder: Path) -> Path:
    """Write the page of a folder of effects from its files, and return its path."""
    file = folder / FOLDER.marker
    about = read_object(file, ABOUT)
    effects = []
    for place, row in enumerate(about["effects"]):
        one = checked(row, ROW, file, f"effects[{place}]")
        if one["figure"] not in FIGURES:
            expected = f"expected one of {', '.join(FIGURES)}"
            raise InputError(f"{one['figure']!r}; {expected}", file=file, field="figure")
        before, after, *change = [nan if one[key] is None else float(one[key]) for key in NUMBERS]
        interval = Interval(change[0], change[1], change[2], one["n"], one["interval"])
        texts = (one["figure"], one["of"], one["compared"])
        effects.append(Effect(*texts, before, after, interval))
    pictures = read_pictures(folder, PICTURES)
    for name in PICTURES:
        if name not in pictures:
            raise InputError("No such file", file=folder / f"{name}.svg")
    over, baseline = about["over"], about["baseline"]
    words = ["optsched", "compare", about["sweep"], "--over", over, "--baseline", baseline]
    found = Effects(over, about["units"], baseline, effects, [*map(str, about["notes"])])
    return write_page(_page(found, pictures, shlex.join([*words, "-o", "DIR"])), folder)


def described(found: Effects, sweep: Path) -> dict[str, Any]:
    """Return the content of ``effects.json``, with a row of numbers for each effect."""
    rows = []
    for one in found.effects:
        numbers = zip(NUMBERS, (one.before, one.after, *one.change[:3]))
        rows.append(
            {"figure": one.figure, "of": one.of, "compared": one.compared}
            | {name: float(on_file(x)) if isfinite(x) else None for name, x in numbers}
            | {"n": one.change.n, "interval": one.change.kind, "unit": one.unit}
            | {"verdict": one.verdict, "needed": one.needed}
        )
    about = {"over": found.over, "units": found.units, "baseline": found.baseline}
    about |= {"sweep": str(sweep), "notes": [*found.notes]}
    return about | {"sentences": [lead(found), *sentences(found)], "effects": rows}


def columns(found: Effects) -> list[str]:
    """Return the heads of a table for a terminal."""
    means = [f"mean, {found.baseline}", "mean, compared"]
    needed = f"{noun_of(found.over)}s needed"
    return ["figure", "of", "compared", "change", "interval", "verdict", "from", needed, *means]


def cells(one: Effect) -> list[Cell]:
    """Return a row of a table for a terminal, below `columns`."""
    change = Cell(_signed(one), one.change.mean if isfinite(one.change.mean) else None)
    means = (compact(MEASURES[one.figure], value) for value in (one.before, one.after))
    return [
        *map(cell, (one.figure.replace("_", " "), one.of, one.compared)), change, cell(_ends(one)),
        cell(f"{SIGNS[_shape(one)]} {one.verdict}"), cell(one.change.how),
        Cell(_more(one), one.needed), *means,
    ]  # fmt: skip


def _tables(found: Effects) -> list[Table]:
    """Return the tables of the page, of three columns each: a phone shows all of them."""
    heads, tables = columns(found), []
    shapes = ", ".join(f"{SIGNS[verdict]} {word}" for verdict, word in WORDS.items())
    for of in ("", " of each trace or load"):
        changes, means = list[list[Cell]](), list[list[Cell]]()
        for one in (one for one in found.effects if (one.of == ALL) is (not of)):
            figure, part, compared, change, ends, verdict, how, needed, *both = cells(one)
            name = cell(f"{figure.text}: {compared.text}" + (f", {part.text}" if of else ""))
            shown = replace(change, text=f"{verdict.text[0]} {change.text}", note=ends.text)
            changes.append([name, shown, replace(needed, note=how.text)])
            means.append([name, *both])
        if changes:
            caption = f"Changes from {found.baseline}{of} with their intervals: {shapes}."
            tables.append(Table(caption, ["figure", "change", heads[7]], changes))
            tables.append(Table(f"The means{of}.", ["figure", *heads[8:]], means))
    return tables


def lead(found: Effects) -> str:
    """Return how many of the changes over all units can be told from noise."""
    own = [one for one in found.effects if one.of == ALL]
    told = sum(one.verdict in (LOWER, HIGHER) for one in own)
    over = counted(found.units, noun_of(found.over))
    differences = counted(len(own), "difference")
    said = f"{told} of {differences} from {found.baseline} over {over} can be told from noise."
    several = len(own) < len(found.effects)
    return said + " A change of all is the mean of the changes below it." * several


def sentences(found: Effects) -> list[str]:
    """Return for each figure what is known of its changes, and how many units would tell more."""
    said, noun = [], noun_of(found.over)
    for figure in dict.fromkeys(one.figure for one in found.effects):
        own = [one for one in found.effects if (one.figure, one.of) == (figure, ALL)]
        known = "; ".join(f"{one.compared} {_in_words(one, noun)}" for one in own)
        said.append(f"{_capital(MEASURES[figure].name)}, compared with {found.baseline}: {known}.")
    return said


def _in_words(one: Effect, noun: str) -> str:
    if one.verdict == EQUAL:
        return f"is equal in every {noun}"
    if not isfinite(one.change.mean):
        return "has no change to state, as it is 0 there"
    why = f" (too few {noun}s for an interval)" if one.change.kind == "range" else ""
    if one.needed is not None:
        why = f" ({_more(one)} {noun}s would be needed; there are {one.change.n})"
    ends = f" ({_ends(one)})" if _ends(one) else ""
    return f"{_signed(one)}{ends}, {one.verdict}{why}"


def _more(one: Effect) -> str:
    """Return about how many units could tell a change; empty if these can, or none is known."""
    if one.needed is None:
        return ""
    return f"about {one.needed}" if one.needed <= MOST_NEEDED else f"over {MOST_NEEDED}"


def _signed(one: Effect) -> str:
    """Return a change with its sign and unit; empty if it is unknown."""
    if not isfinite(one.change.mean):
        return ""
    unit = "%" if one.unit == "%" else f" {one.unit}"
    return f"{'+' if one.change.mean > 0 else ''}{written(one.change.mean)}{unit}"


def _ends(one: Effect) -> str:
    """Return the ends of an interval: ``−4.1 to 9.0%``; empty if there is none."""
    low, high = one.change[1:3]
    unit = "%" if one.unit == "%" else ""
    return f"{written(low)} to {written(high)}{unit}" if isfinite(low) else ""


def _shape(one: Effect) -> str:
    """Return the verdict on the claim that a figure gets better."""
    better = HIGHER if one.figure in SHARES else LOWER
    return OPEN if one.verdict in (EQUAL, OPEN) else HOLDS if one.verdict == better else FAILS


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _claims(found: Effects) -> dict[str, Claim]:
    """Return the rows of the panel, each as the claim that a figure gets better."""
    shown = [one for one in found.effects if isfinite(one.change.mean)]
    whole = [one for one in shown if one.of == ALL]
    several = len(whole) < len(shown) <= MOST_ROWS
    if several:  # what it is of below what is compared
        pairs = dict.fromkeys((one.figure, one.compared) for one in whole)
        shown = [one for pair in pairs for one in shown if (one.figure, one.compared) == pair]
    claims = {}
    for one in shown if several else whole:
        name = _capital(MEASURES[one.figure].name)
        group, text = (f"{name}, {one.compared}", one.of) if several else (name, one.compared)
        change = one.change._replace(kind="range") if one.verdict == EQUAL else one.change
        key, region = f"{group} {text}", Region(0.0) if one.figure in SHARES else Region(high=0.0)
        claims[key] = Claim(key, group, text, region, None, {"": change}, one.unit)
    return claims


def _page(found: Effects, pictures: Mapping[str, str], repeat: str) -> Page:
    noun = noun_of(found.over)
    same = " of the same jobs" if found.over in ("seed", "shake_seed") else ""
    how = (
        f"All that is compared has run the same jobs in each {noun}. The change of a figure is that"
        " of its mean, in percent of the baseline or in percentage points; of several traces or"
        " loads, it is the mean of their changes, not the change of the means. A 95% interval says"
        f" what other {noun}s{same}"
        " would show if these were drawn at random; about one in twenty misses the truth, more if"
        " they are few and skewed. No interval goes below −100%, as no figure does. A change"
        " can be told from noise if its whole interval is above or below 0. If not, the table says"
        f" about how many {noun}s would be needed, should mean and spread stay as they are."
        " Blue and ● stand for better, orange and ✕ for worse: higher for utilization, lower for"
        " all other figures."
    )
    kinds = "; ".join(dict.fromkeys(one.change.how for one in found.effects))
    caption = f"Changes from {found.baseline} with their intervals ({kinds})."
    alt = f"{caption} {' '.join(sentences(found))}"
    wide, narrow = (pictures[name] for name in PICTURES)
    return Page(
        title=f"Changes from {found.baseline} over {counted(found.units, noun)}",
        lead=lead(found),
        summary=found.notes,
        sections=[
            Section(
                "Changes",
                [Figure(PICTURES[0], wide, alt, caption, narrow=narrow), *sentences(found)],
            ),
            Section("Numbers", _tables(found)),
            Section("How to read this", [how]),
        ],
        repeat=repeat,
        versions=versions(),
    )
