"""Effects over units: what differs between the runs of a sweep, paired over parts, seeds or logs.

A *unit* is a value of the key that the user names, of each trace. What schedules (a policy, its
solver and settings) is compared with a baseline on identical jobs. The change of a figure is that
of its mean over the parts or seeds of a trace, and the mean of these changes over traces and loads.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from math import isfinite, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched import folders
from optsched.errors import InputError, optional_module
from optsched.files import FolderKind, write_json, write_text
from optsched.metrics.jobs import MEASURES
from optsched.numbers import counted, on_file, written
from optsched.report import style
from optsched.report.page import Cell, Figure, Page, Section, Table, cell, compact, write_page
from optsched.simulator.scenario import OPTIONS, versions
from optsched.studies import intervals
from optsched.studies.claims import FAILS, HOLDS, MARKS, NOTHING, OPEN, Claim, Region
from optsched.studies.figures import claims_panel
from optsched.studies.intervals import Interval
from optsched.sweeps.sweep_folder import DRAWN, SYSTEMS
from optsched.traces.formats import stem

if TYPE_CHECKING:
    import pandas as pd

NOUNS = {"jobs": "part", "measure": "part", "workload_seed": "seed", "shake_seed": "seed"}
NOUNS |= {name: name for name in ("trace", "workload", "load", "seed")}
"""What a unit is called, by the key that is named; any other is a repetition."""

FIGURES = ("mean_wait", "mean_bounded_slowdown", "p95_wait", "utilization")
SHARES = tuple(figure for figure in FIGURES if MEASURES[figure].unit == "share")
SOURCES = ("trace", "workload")
ALL = "all"

LOWER, HIGHER, EQUAL = "lower", "higher", "equal"
"""What is known of a change, unless it is `OPEN`. Equal: it is 0 in every unit."""

SILENT = {"policy": OPTIONS["policy"].default, "load": 1.0, "shake": 0}
SILENT |= {"workload_seed": 0, "shake_seed": 0, "unknown_negative": False}
"""Values of a sweep file that does not state them."""

NAMED = 5  # most runs that a message names


class Effect(NamedTuple):
    """A figure of what is compared: a key of ``summary.json``, and its change from the baseline.

    It is `of` a trace or load, or of `ALL`. `before` and `after` are the means over the units under
    the baseline and under what is `compared`; the change is in percent, of shares in percentage
    points, and its interval does not go below -100%.
    """

    figure: str
    of: str
    compared: str
    before: float
    after: float
    change: Interval

    @property
    def unit(self) -> str:
        """The unit of the change: ``%`` or ``points``."""
        return "points" if self.figure in SHARES else "%"

    @property
    def verdict(self) -> str:
        """Lower or higher, if the whole interval is."""
        low, high = self.change.low, self.change.high
        if low == high == 0:
            return EQUAL
        open_ = self.change.kind == "range" or not low * high > 0
        return OPEN if open_ else LOWER if high < 0 else HIGHER

    @property
    def needed(self) -> int | None:
        """Number of units that could tell the change from 0; None if these can, or nothing can."""
        sampled = self.change.kind in ("t", "BCa")
        return intervals.units_needed(self.change) if sampled and self.verdict == OPEN else None


class Effects(NamedTuple):
    """All changes from a baseline over the units of a key, with notes on what is left out."""

    over: str
    units: int
    baseline: str
    effects: Sequence[Effect]
    notes: Sequence[str]


def effects_over(folder: Path, over: str, baseline: str | None = None) -> Effects:
    """Compare the finished runs of a sweep, paired over the values of one of its keys.

    The baseline is by default what the sweep has first.
    """
    optional_module("scipy", "an interval", "studies")
    runs = {name: _stated(own) for name, own in folders.planned(folder).items()}
    keys = folders.varying(runs.values())
    if over not in keys:
        vary = ", ".join(keys) or "none"
        raise InputError(f"{over!r} does not vary; keys that do: {vary}", field="--over")
    sources = {run: str(own.get("trace", own.get("workload"))) for run, own in runs.items()}
    traces: dict[str, list[Mapping[str, Any]]] = {}
    for run, own in runs.items():
        traces.setdefault(sources[run], []).append(own)
    inside = [*dict.fromkeys(chain.from_iterable(map(folders.varying, traces.values())))]
    compared = [key for key in inside if key not in (over, "seed", *DRAWN, *SYSTEMS, *SOURCES)]
    sizes = [] if any("trace" in own for own in runs.values()) else ["jobs"]  # of a workload
    machine = ["machine"] if len(compared) > 1 else []  # alone, it is what is compared
    systems = [key for key in inside if key in (*SYSTEMS, *sizes, *machine) and key != over]
    compared = [key for key in compared if key not in systems]
    names = [*dict.fromkeys(folders.speaking(own, compared) for own in runs.values())]
    if len(names) < 2:
        expected = f"expected policies, solvers or settings that vary beside {over}"
        raise InputError(f"has nothing to compare; {expected}", file=folder)
    if baseline is not None and baseline not in names:
        raise InputError(f"{baseline!r}; expected one of {'; '.join(names)}", field="--baseline")
    first = baseline or names[0]
    names = [first, *(name for name in names if name != first)]
    draws = [key for key in DRAWN if key in keys and key not in (over, *systems)]
    rows, lost = [], []
    for run, own in runs.items():
        place = folder / "runs" / run
        if not (place / folders.RUN.marker).is_file():
            lost.append(folders.speaking(own, keys))
            continue
        summary, value = folders.read_summary(place), own.get(over)
        whole = ":" if over == "jobs" else None
        rows.append(
            {
                "trace": "" if over in SOURCES else sources[run],
                "unit": whole if value is None else folders.in_words(value),
                "system": folders.speaking(own, systems) or ALL,
                "draw": folders.speaking(own, draws),
                "name": folders.speaking(own, compared),
                "place": folders.speaking(own, [key for key in keys if key not in compared]),
                "span": tuple(folders.read_config(place)["jobs"] or (1, np.inf)),
                "ran": summary["finished"] + summary["killed"],
            }
            | {figure: summary.get(figure) for figure in FIGURES}
        )
    notes = [f"left out, failed or not finished: {_some(lost, 'run')}"] if lost else []
    tables = _paired(rows, names, over, notes) if rows else {}
    units = sum(own["unit"].nunique() for own in tables.values())
    if units < 2:
        number = "one" if units else "no"
        only = f"{number} {noun_of(over)} with all of {', '.join(names)}"
        raise InputError("; ".join([f"{only}; expected two or more", *notes]), file=folder)
    drawn = over in (*DRAWN, "seed")
    return Effects(over, units, names[0], [*_effects(tables, names, drawn=drawn)], notes)


def noun_of(over: str) -> str:
    """Return the name of a unit."""
    return NOUNS.get(over, "repetition")


def _stated(own: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a run with those that a sweep file leaves out, but for idle seeds."""
    values = {**SILENT, **own}
    idle = [] if values["shake"] else ["shake_seed"]
    idle += [] if "workload" in own else ["workload_seed"]
    return {key: value for key, value in values.items() if key not in idle}


def _some(names: Sequence[str], noun: str) -> str:
    more = "; ..." if len(names) > NAMED else ""
    return f"{counted(len(names), noun)} ({'; '.join(names[:NAMED])}{more})"


def _paired(
    rows: Sequence[Mapping[str, Any]], names: Sequence[str], over: str, notes: list[str]
) -> dict[str, pd.DataFrame]:
    """Return the means of each trace over draws; what not all ran is left out, with a note."""
    import pandas as pd

    frame = pd.DataFrame(rows).astype(dict.fromkeys(FIGURES, float))
    if over not in (*DRAWN, *SYSTEMS, *SOURCES):  # what has no seed is the same under each
        where, idle = ["trace", "system"], frame["unit"].isna()
        units = frame.loc[~idle, [*where, "unit"]].drop_duplicates()
        fixed = frame[idle].drop(columns="unit").merge(units, on=where)
        frame = pd.concat([frame[~idle], fixed], ignore_index=True)
    parts = frame.groupby(["trace", "system", "draw"]) if over == "jobs" else ()
    for _, own in parts:  # those that share jobs are no units
        spans = dict(zip(own["unit"], own["span"]))
        for one, other in pairwise(sorted(spans, key=lambda unit: spans[unit])):
            if spans[other][0] <= spans[one][1]:
                reason = f"{one} and {other} share jobs; expected parts that do not"
                raise InputError(reason, field="jobs")
    jobs = ["trace", "unit", "system", "draw"]
    of_jobs = frame.groupby(jobs, dropna=False)["name"].transform("nunique")
    kept = frame[frame["unit"].notna() & (of_jobs == len(names))]
    of_unit = kept.groupby(["trace", "unit"])["system"].transform("nunique")
    kept = kept[of_unit == kept.groupby("trace")["system"].transform("nunique")]
    if len(kept) < len(frame):
        left = _some([*dict.fromkeys(frame.drop(kept.index)["place"])], noun_of(over))
        notes.append(f"left out, without {over} or one of {', '.join(names)}: {left}")
    ran = kept[kept.groupby(jobs)["ran"].transform("nunique") > 1]
    if different := [*dict.fromkeys(ran["place"])]:
        told = "means are over finished jobs, of which not all compared have the same number"
        notes.append(f"{told}: {_some(different, noun_of(over))}")
    cells = kept.groupby(["trace", "unit", "system", "name"], sort=False)[list(FIGURES)]
    means = cells.mean().where(cells.count().eq(cells.size(), axis=0)).reset_index()
    return {str(trace): own for trace, own in means.groupby("trace", sort=False)}


def _effects(
    tables: Mapping[str, pd.DataFrame], names: Sequence[str], *, drawn: bool
) -> Iterator[Effect]:
    """Yield the changes of each figure: of all, of each trace, and of each load."""
    short = [stem(Path(trace)) for trace in tables]
    labels = short if len({*short}) == len(short) else [*tables]
    systems = [*dict.fromkeys(chain.from_iterable(own["system"] for own in tables.values()))]
    parts = {ALL: ([*tables], systems)}
    parts |= {label: ([trace], systems) for label, trace in zip(labels, tables) if len(tables) > 1}
    parts |= {system: ([*tables], [system]) for system in systems if len(systems) > 1}
    for figure in FIGURES:
        for of, (traces, cells) in parts.items():
            for name in names[1:]:
                pairs = [
                    pair
                    for trace in traces
                    if len((pair := _values(tables[trace], figure, (names[0], name), cells))[0])
                ]
                if pairs:
                    means = [float(np.mean([one.mean() for one in side])) for side in zip(*pairs)]
                    change = _change(pairs, drawn=drawn, points=figure in SHARES)
                    yield Effect(figure, of, name, means[0], means[1], change)


def _values(
    own: pd.DataFrame, figure: str, names: Sequence[str], cells: Sequence[str]
) -> list[NDArray[np.float64]]:
    frames = [
        own[own["name"] == name].pivot(index="unit", columns="system", values=figure)
        for name in names
    ]
    shown = [frame[[cell for cell in cells if cell in frame]].to_numpy() for frame in frames]
    whole = np.isfinite(np.hstack(shown)).all(axis=1)
    return [values[whole] if values.size else values[:0] for values in shown]


def _change(
    pairs: Sequence[Sequence[NDArray[np.float64]]], *, drawn: bool, points: bool
) -> Interval:
    """Return the change of a figure from its values before and after, (units, systems) by trace."""
    found, changes = [], list[NDArray[np.float64]]()
    for before, after in pairs:
        same = np.where(np.isclose(after, before, rtol=1e-12, atol=0), before, after)
        with np.errstate(divide="ignore", invalid="ignore"):
            each = same - before if points else same / before - 1
            changes.append(each.mean(axis=1) * 100)
            if drawn and not points:
                found.append(intervals.reduction(before, same, 1 / before.shape[1]) * -100 + 0.0)
            else:
                found.append(intervals.mean_of(changes[-1]))
    change, every = average(found), np.concatenate(changes)
    if change.kind == "none" and len(every) > 1 and np.isfinite([change.mean, *every]).all():
        return intervals.range_of(every)._replace(mean=change.mean)
    if not np.isfinite(change.mean):
        return NOTHING._replace(n=change.n)
    low = change.low if points else np.fmax(change.low, -100.0)  # nothing falls by more
    return change if np.isnan(change.low) else change._replace(low=float(low))


def average(found: Sequence[Interval]) -> Interval:
    """Return the mean of quantities of other units each, of the parts of several logs for instance.

    The interval is Welch's t: each quantity keeps the deviation of its own units.
    """
    if len(found) == 1:
        return found[0]
    mean = float(np.mean([one.mean for one in found]))
    n, count = np.array([one.n for one in found]), len(found)
    errors = (np.array([one.half for one in found]) / intervals.t_quantile(n)) ** 2
    if not np.isfinite(errors).all():
        return Interval(mean, np.nan, np.nan, int(n.sum()), "none")
    degrees = errors.sum() ** 2 / (errors**2 / (n - 1)).sum() if errors.any() else 1
    half = float(intervals.t_quantile(degrees + 1) * errors.sum() ** 0.5 / count)
    return Interval(mean, mean - half, mean + half, int(n.sum()), "t")


FOLDER = FolderKind("effects", "effects.json", ("effects.csv", "*.svg", folders.REPORT))
PICTURES = ("changes", "changes-narrow")
WORDS = {HOLDS: "better", OPEN: OPEN, FAILS: "worse"}
SIGNS = MARKS | {FAILS: "✕"}  # words and shapes for colors of verdicts on claims
MOST_NEEDED = 100  # most units that are said to be needed by number
MOST_ROWS = 60  # most rows of a panel that shows traces and loads one by one

ABOUT: folders.Expected = {
    "over": str, "units": int, "baseline": str, "sweep": str, "notes": list, "effects": list,
}  # fmt: skip
NUMBERS = ("before", "after", "change", "low", "high")
ROW: folders.Expected = {
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
    about = folders.read_object(file, ABOUT)
    effects = []
    for place, row in enumerate(about["effects"]):
        one = folders.checked(row, ROW, file, f"effects[{place}]")
        if one["figure"] not in FIGURES:
            expected = f"expected one of {', '.join(FIGURES)}"
            raise InputError(f"{one['figure']!r}; {expected}", file=file, field="figure")
        before, after, *change = [nan if one[key] is None else float(one[key]) for key in NUMBERS]
        texts = (one["figure"], one["of"], one["compared"])
        interval = Interval(change[0], change[1], change[2], one["n"], one["interval"])
        effects.append(Effect(*texts, before, after, interval))
    pictures = folders.read_pictures(folder, PICTURES)
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
    better = HIGHER if one.figure in SHARES else LOWER
    shape = {EQUAL: OPEN, OPEN: OPEN, better: HOLDS}.get(one.verdict, FAILS)
    return [
        *map(cell, (one.figure.replace("_", " "), one.of, one.compared)), change, cell(_ends(one)),
        cell(f"{SIGNS[shape]} {one.verdict}"), cell(one.change.how),
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
        name = MEASURES[figure].name.capitalize()
        said.append(f"{name}, compared with {found.baseline}: {known}.")
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
        name = MEASURES[one.figure].name.capitalize()
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
