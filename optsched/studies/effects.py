"""Effects over units: what differs between the runs of a sweep, paired over parts, seeds or logs.

A *unit* is a value of the key that the user names, of each trace. What schedules (a policy, its
solver and settings) is compared with a baseline on identical jobs. The change of a figure is that
of its mean over the parts or seeds of a trace, and the mean of these changes over traces and loads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.errors import InputError, optional_module
from optsched.folders import RUN, in_words, planned, read_config, read_summary, speaking, varying
from optsched.metrics.jobs import MEASURES
from optsched.numbers import counted
from optsched.simulator.scenario import OPTIONS
from optsched.studies.claims import NOTHING
from optsched.studies.intervals import (
    Interval,
    mean_of,
    range_of,
    reduction,
    t_quantile,
    units_needed,
)
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

LOWER, HIGHER, EQUAL, OPEN = "lower", "higher", "equal", "not decided"
"""What is known of a change. Equal: it is 0 in every unit."""

SILENT = {"policy": OPTIONS["policy"].default, "load": 1.0, "shake": 0}
SILENT |= {"workload_seed": 0, "shake_seed": 0, "unknown_negative": False}
"""Values of a sweep file that does not state them."""

NAMED = 5
"""Most runs that a message names."""


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
        return units_needed(self.change) if sampled and self.verdict == OPEN else None


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

    Raises
    ------
    InputError
        If the key does not vary or nothing else does that schedules, there are fewer than two
        units or they share jobs, or a file is missing or damaged.
    """
    optional_module("scipy", "an interval", "studies")
    runs = {name: _stated(own) for name, own in planned(folder).items()}
    keys = varying(runs.values())
    if over not in keys:
        vary = ", ".join(keys) or "none"
        raise InputError(f"{over!r} does not vary; keys that do: {vary}", field="--over")
    traces: dict[str, list[Mapping[str, Any]]] = {}
    for own in runs.values():
        traces.setdefault(_source(own), []).append(own)
    inside = [*dict.fromkeys(chain.from_iterable(map(varying, traces.values())))]
    compared = [key for key in inside if key not in (over, "seed", *DRAWN, *SYSTEMS, *SOURCES)]
    sizes = [] if any("trace" in own for own in runs.values()) else ["jobs"]  # of a workload
    machine = ["machine"] if len(compared) > 1 else []  # alone, it is what is compared
    systems = [key for key in inside if key in (*SYSTEMS, *sizes, *machine) and key != over]
    compared = [key for key in compared if key not in systems]
    names = [*dict.fromkeys(speaking(own, compared) for own in runs.values())]
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
        if not (place / RUN.marker).is_file():
            lost.append(speaking(own, keys))
            continue
        summary, jobs, value = read_summary(place), read_config(place)["jobs"], own.get(over)
        rows.append(
            {
                "trace": "" if over in SOURCES else _source(own),
                "unit": in_words(value) if value is not None else ":" if over == "jobs" else None,
                "system": speaking(own, systems) or ALL,
                "draw": speaking(own, draws),
                "name": speaking(own, compared),
                "place": speaking(own, [key for key in keys if key not in compared]),
                "span": tuple(jobs or (1, np.inf)),
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


def _source(own: Mapping[str, Any]) -> str:
    return str(own.get("trace", own.get("workload")))


def _some(names: Sequence[str], noun: str) -> str:
    more = "; ..." if len(names) > NAMED else ""
    return f"{counted(len(names), noun)} ({'; '.join(names[:NAMED])}{more})"


def _paired(
    rows: Sequence[Mapping[str, Any]], names: Sequence[str], over: str, notes: list[str]
) -> dict[str, pd.DataFrame]:
    """Return the means of each trace over draws, units by (figure, name, system).

    Jobs that not all of `names` ran are left out, and units without all systems, with a note.
    """
    import pandas as pd

    frame = pd.DataFrame(rows).astype(dict.fromkeys(FIGURES, float))
    if over not in (*DRAWN, *SYSTEMS, *SOURCES):  # what has no seed is the same under each
        where, idle = ["trace", "system"], frame["unit"].isna()
        units = frame.loc[~idle, [*where, "unit"]].drop_duplicates()
        fixed = frame[idle].drop(columns="unit").merge(units, on=where)
        frame = pd.concat([frame[~idle], fixed], ignore_index=True)
    if over == "jobs":
        _check_apart(frame)
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


def _check_apart(frame: pd.DataFrame) -> None:
    """Refuse parts of a trace that share jobs: they are no units."""
    for _, own in frame.groupby(["trace", "system", "draw"]):
        spans = dict(zip(own["unit"], own["span"]))
        for one, other in pairwise(sorted(spans, key=lambda unit: spans[unit])):
            if spans[other][0] <= spans[one][1]:
                reason = f"{one} and {other} share jobs; expected parts that do not"
                raise InputError(reason, field="jobs")


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
    """Return a figure under some names, each (units, systems), for units where all have it."""
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
                found.append(reduction(before, same, 1 / before.shape[1]) * -100 + 0.0)
            else:
                found.append(mean_of(changes[-1]))
    change, every = average(found), np.concatenate(changes)
    if change.kind == "none" and len(every) > 1 and np.isfinite([change.mean, *every]).all():
        return range_of(every)._replace(mean=change.mean)
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
    errors = (np.array([one.half for one in found]) / t_quantile(n)) ** 2
    if not np.isfinite(errors).all():
        return Interval(mean, np.nan, np.nan, int(n.sum()), "none")
    degrees = errors.sum() ** 2 / (errors**2 / (n - 1)).sum() if errors.any() else 1
    half = float(t_quantile(degrees + 1) * errors.sum() ** 0.5 / count)
    return Interval(mean, mean - half, mean + half, int(n.sum()), "t")
