"""``optsched slurm forecast``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from optsched.cli import DONE
from optsched.cli.options import Captured, ForecastWhatIf, Integer, Json
from optsched.cli.terminal import print_json, print_line, print_lines, print_table, say_note
from optsched.errors import InputError
from optsched.numbers import check_seed, counted, moment, short
from optsched.slurm.capture import captured
from optsched.slurm.explain import pending_job
from optsched.slurm.forecast import (
    SUBMITTED,
    Forecast,
    RunTimes,
    Shift,
    Start,
    by,
    read_history,
    run_times,
    shifts,
    sooner,
)
from optsched.slurm.forecast import forecast as forecasts
from optsched.slurm.future import Future
from optsched.slurm.pins import without_pins
from optsched.slurm.running import read_captured
from optsched.slurm.what_if import Present, changed, read_changes

DRAWS = 100
"""Default number of draws of run times."""

MOST_DRAWS = 10_000

SHOWN = 30
"""Most jobs of a table; all of them are in the JSON object."""

MOST_SOONER = 5
"""Most of the named jobs for which it is tried what would bring them forward."""

NEVER = "-"
"""What a table shows for a job that never starts, or for an unknown time."""

COLUMNS = (
    *("job", "user", "partition", "priority", "jobs before it", "by Slurm", "by the limits"),
    *("median", "80 % from", "to"),
)

SPARE = ("priority", "partition", "jobs before it", "by Slurm", "by the limits")
"""Columns that a narrow terminal leaves out, the first one first."""


def forecast(
    *jobs: str,
    source: Captured = None,
    draws: Integer = DRAWS,
    seed: Integer = 0,
    what_if: ForecastWhatIf = None,
    json: Json = False,
) -> int:
    """Say when pending jobs start: by the time limits, and by how long like jobs have run.

    The queue is played on from now under the order, the limits and the reservations of the site, as
    if no job was submitted meanwhile.

    Parameters
    ----------
    jobs
        Numbers of pending jobs, 17 or 17_3 for instance; by default all.
    draws
        How often run times are drawn; 0 for the time limits alone.
    seed
        Seed of the draws.
    """
    if not 0 <= draws <= MOST_DRAWS:
        raise InputError(f"{draws}; expected a number from 0 to {MOST_DRAWS:,}", field="--draws")
    check_seed(seed, "--seed")
    changes = read_changes(what_if or (), is_forecast=True)
    with captured(source, history=True) as folder:
        present, times = _read(folder)
    there = changed(present, changes)
    for note in (*there.supply.notes, *present.queue.notes):
        say_note(f"optsched: {note}")
    now = _forecast(present, times, draws, seed)
    then = _forecast(there, times, draws, seed) if changes else None
    named = _labels(jobs, now, then)
    if json:
        print_json(_described(now, then, named))
    elif then is None:
        _print(now, named)
    else:
        _print_shifts(now, then, changes, named)
    return DONE


def _read(folder: Path) -> tuple[Present, RunTimes | None]:
    queue, supply = read_captured(folder)
    history = read_history(folder)
    times = None if history is None else run_times(history)
    return Present(without_pins(queue), supply), times


def _forecast(present: Present, times: RunTimes | None, draws: int, seed: int) -> Forecast:
    future = Future(present.queue, present.supply, present.policy)
    return forecasts(future, times, draws=draws, seed=seed)


def _labels(jobs: Sequence[str], *forecasts: Forecast | None) -> list[str]:
    """Return the labels of some jobs; an array stands for its tasks."""
    found: dict[str, None] = {}
    given = [each for each in forecasts if each is not None]
    known = [label for each in given for label in _known_labels(each)]
    for job in jobs:
        own = [label for label in known if job in (label, label.partition("_")[0])]
        if not own:
            pending_job(given[-1].future.queue, job)  # says what is wrong
            raise InputError(f"{job} is not one of its tasks", field="job")
        found |= dict.fromkeys(own)
    return [*found]


def _known_labels(found: Forecast) -> list[str]:
    return [*(one.label for one in found.starts), *found.future.left]


def _print(found: Forecast, jobs: Sequence[str]) -> None:
    """Print a table of the starts, and what is left out."""
    chosen = [one for one in found.starts if not jobs or one.label in jobs]
    now = found.future.supply.time
    columns = [name for name in COLUMNS if len(found.drawn) or name in COLUMNS[:7]]
    rows = [_row(one, now)[: len(columns)] for one in chosen[:SHOWN]]
    if rows:
        print_table(columns, rows, SPARE)
        print()
    if len(chosen) > SHOWN:
        print_line(f"{counted(len(chosen) - SHOWN, 'more job')}, see --json")
    lines: list[tuple[str, Any]] = [("now", _at(now)), ("draws", f"{len(found.drawn):,}")]
    for name, reasons in (("never", found.never), ("no forecast", found.future.left)):
        chosen_reasons = {label: why for label, why in reasons.items() if not jobs or label in jobs}
        if chosen_reasons or name != "never":
            lines.append((name, counted(len(chosen_reasons), "job")))
        lines += [("", f"job {label}: {why}") for label, why in [*chosen_reasons.items()][:SHOWN]]
    lines += [("" if place else "notes", note) for place, note in enumerate(found.notes)]
    late = [one for one in chosen if not one.by_limits <= now] if jobs else []
    for one in late[:MOST_SOONER]:
        ways = sooner(found.future, one.label)
        lines += [
            ("" if place else f"job {one.label} sooner", f"{way}: {_at(at)}")
            for place, (way, at) in enumerate(ways)
        ]
        if not ways:
            none = "neither a higher priority nor a shorter limit brings it forward"
            lines.append((f"job {one.label} sooner", none))
    print_lines(lines)


def _row(one: Start, now: int) -> list[str]:
    return [
        one.label,
        one.job.user,
        ",".join(one.job.partitions),
        f"{one.job.priority:,}",
        f"{one.ahead:,}",
        NEVER if one.job.start is None else _at(one.job.start),
        *(_at(at) for at in (one.by_limits, one.median, one.low, one.high)),
    ]


def _at(seconds: float) -> str:
    """Return a time in seconds since 1970 as a table has it."""
    return NEVER if math.isnan(seconds) else moment(seconds, is_short=True)


def _print_shifts(
    now: Forecast, then: Forecast, changes: Sequence[str], jobs: Sequence[str]
) -> None:
    """Print which jobs start earlier or later if something is different."""
    moved = [one for one in shifts(now, then) if not jobs or one.label in jobs]
    print_lines([("what if" if not place else "", line) for place, line in enumerate(changes)])
    print()
    if new := [one for one in then.starts if one.job.name == SUBMITTED]:
        print_table(COLUMNS, [_row(one, then.future.supply.time) for one in new], SPARE)
        print()
    print_line(_sentence(moved, len(jobs or {*_known_labels(now), *_known_labels(then)})))
    for name in ("user", "partitions"):
        groups = by(moved, name)
        if len(groups) > 1:
            rows = [[group, *_sums(its)] for group, its in sorted(groups.items())]
            print()
            print_table([name.rstrip("s"), "earlier", "by", "later", "by"], rows)
    if moved:
        print()
        rows = [
            [one.label, one.job.user, _at(one.before), _at(one.after), _shift(one)]
            for one in moved[:SHOWN]
        ]
        print_table(["job", "user", "start", "then", "shift"], rows)
    if len(moved) > SHOWN:
        print_line(f"{counted(len(moved) - SHOWN, 'more job')}, see --json")
    before, after = ({**each.never, **each.future.left} for each in (now, then))
    lines = [note for note in then.notes if note not in now.notes]
    lines += [f"job {label}: {why}" for label, why in after.items() if before.get(label) != why]
    if lines:
        print()
        print_lines([("" if place else "then", line) for place, line in enumerate(lines[:SHOWN])])


def _sentence(moved: Sequence[Shift], jobs: int) -> str:
    if not moved:
        return f"none of {counted(jobs, 'job')} starts at another time"
    earlier, gain, later, loss = _sums(moved)
    new = sum(one.seconds == -math.inf for one in moved)
    never = sum(one.seconds == math.inf for one in moved)
    parts = [
        f"{many} {word}{of}"
        for many, word, of in (
            (earlier - new, "earlier", f", by {gain} on average"),
            (later - never, "later", f", by {loss} on average"),
            (new, "only then", ""),
            (never, "no more", ""),
        )
        if many
    ]
    return f"of {counted(jobs, 'job')} start: {'; '.join(parts)}"


def _sums(moved: Sequence[Shift]) -> list[Any]:
    """Return how many jobs start earlier and later, and by how much on average."""
    found: list[Any] = []
    for sign in (-1, 1):
        seconds = [abs(one.seconds) for one in moved if one.seconds * sign > 0]
        known = [each for each in seconds if math.isfinite(each)]
        found += [len(seconds), short(sum(known) / len(known)) if known else NEVER]
    return found


def _shift(one: Shift) -> str:
    if math.isinf(one.seconds):
        return "starts no more" if one.seconds > 0 else "starts only then"
    return f"{short(abs(one.seconds))} {'later' if one.seconds > 0 else 'earlier'}"


def _described(now: Forecast, then: Forecast | None, jobs: Sequence[str]) -> dict[str, Any]:
    found = now.to_json()
    if jobs:
        found["jobs"] = [each for each in found["jobs"] if each["job"] in jobs]
    if then is not None:
        notes = now.future.supply.notes
        assumed = [note for note in then.future.supply.notes if note not in notes]
        found["what_if"] = then.to_json() | {"assumed": assumed}
        if jobs:
            its = found["what_if"]["jobs"]
            found["what_if"]["jobs"] = [each for each in its if each["job"] in jobs]
        found["shifts"] = [
            {"job": one.label, "seconds": one.seconds if math.isfinite(one.seconds) else None}
            for one in shifts(now, then)
            if not jobs or one.label in jobs
        ]
    return found
