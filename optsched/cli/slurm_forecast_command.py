"""``optsched slurm forecast``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from optsched.cli import DONE
from optsched.cli.options import Captured, ForecastWhatIf, Integer, Json
from optsched.cli.terminal import (
    labelled,
    print_json,
    print_line,
    print_lines,
    print_table,
    say_note,
)
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
from optsched.slurm.what_if import Change, Present, changed, read_changes

DRAWS = 100  # default number of draws of run times

MOST_DRAWS = 10_000

SHOWN = 30  # most jobs of a table; all of them are in the JSON object
MOST_SOONER = 5  # most of the named jobs for which it is tried what would bring them forward
NEVER = "-"  # what a table shows for a job that never starts, or for an unknown time

BY_LIMITS, BY_DRAWS = "by the limits", "median"

COLUMNS = (
    *("job", "user", "partition", "priority", "jobs before it", "by Slurm", BY_LIMITS),
    *(BY_DRAWS, "80 % from", "to"),
)

SPARE = ("priority", "partition", "jobs before it", "by Slurm", BY_LIMITS)
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
        queue, supply = read_captured(folder)
        history = read_history(folder)
        times = None if history is None else run_times(history)
    present = Present(without_pins(queue), supply)
    there = changed(present, changes)
    notes = (*there.supply.notes, *present.queue.notes)
    say_note(*(f"optsched: {note}" for note in notes))
    now = _forecast(present, times, draws, seed)
    then = _forecast(there, times, draws, seed) if changes else None
    named = _labels(jobs, now, then)
    new = [job.label for job in there.queue.pending if job.name == SUBMITTED]
    if json:
        print_json(_described(now, then, named, new))
    elif then is None:
        _print(now, named)
    else:
        _print_shifts(now, then, changes, named, new)
    return DONE


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
    lines += labelled("notes", found.notes(jobs))
    late = [one for one in chosen if not one.by_limits <= now] if jobs else []
    for one in late[:MOST_SOONER]:
        ways = [f"{way}: {_at(at)}" for way, at in sooner(found.future, one.label)]
        none = "neither a higher priority nor a shorter limit brings it forward"
        lines += labelled(f"job {one.label} sooner", ways or [none])
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
    return NEVER if math.isnan(seconds) else moment(seconds, is_short=True)


def _print_shifts(
    now: Forecast,
    then: Forecast,
    changes: Sequence[Change],
    jobs: Sequence[str],
    new: Sequence[str],
) -> None:
    """Print which jobs start earlier or later if something is different."""
    moved = [one for one in shifts(now, then) if not jobs or one.label in jobs]
    print_lines(labelled("what if", (each.dated(now.future.supply.time) for each in changes)))
    print()
    if starts := [one for one in then.starts if one.label in new]:
        print_table(COLUMNS, [_row(one, then.future.supply.time) for one in starts], SPARE)
        print()
    others = {*_known_labels(now), *_known_labels(then)}.difference(new)
    print_line(_sentence(moved, len(jobs or others)))
    for name in ("user", "partitions"):
        groups = by(moved, name)
        if len(groups) > 1:
            rows = [[group, *_sums(its)] for group, its in sorted(groups.items())]
            print()
            heads = ("earlier", "by", "later", "by", "only then", "no more")
            print_table([name.rstrip("s"), *heads], rows)
    if moved:
        print()
        rows = [
            [one.label, one.job.user, _at(one.before), _at(one.after), _shift(one)]
            for one in moved[:SHOWN]
        ]
        start = BY_DRAWS if len(now.drawn) else BY_LIMITS
        print_table(["job", "user", start, "then", "shift"], rows)
    if len(moved) > SHOWN:
        print_line(f"{counted(len(moved) - SHOWN, 'more job')}, see --json")
    before, after = ({**each.never, **each.future.left} for each in (now, then))
    shown = [*jobs, *new] if jobs else ()
    known = now.notes(jobs)
    # those left out are not told task by task
    numbers = {label.partition("_")[0] for label in shown}
    lines = [note for note in then.notes(shown) if note not in known]
    lines += [
        f"job {label}: {why}"
        for label, why in after.items()
        if before.get(label) != why and (not shown or label.partition("_")[0] in numbers)
    ]
    if lines:
        print()
        print_lines(labelled("then", lines[:SHOWN]))


def _sentence(moved: Sequence[Shift], jobs: int) -> str:
    if not moved:
        return f"none of {counted(jobs, 'job')} starts at another time"
    earlier, gain, later, loss, new, never = _sums(moved)
    first, *others = (
        (many, f"{'starts' if many == 1 else 'start'} {how}")
        for many, how in (
            (earlier, f"earlier, by {gain} on average"),
            (later, f"later, by {loss} on average"),
            (new, "only then"),
            (never, "no more"),
        )
        if many
    )
    parts = [f"{first[0]:,} of {counted(jobs, 'job')} {first[1]}"]
    return "; ".join([*parts, *(f"{many:,} {what}" for many, what in others)])


def _sums(moved: Sequence[Shift]) -> list[Any]:
    """Return how many jobs start earlier and later, by how much, only then, and no more."""
    found: list[Any] = []
    for sign in (-1, 1):
        seconds = [abs(one.seconds) for one in moved if 0 < one.seconds * sign < math.inf]
        found += [len(seconds), short(sum(seconds) / len(seconds)) if seconds else NEVER]
    return [*found, *(sum(one.seconds == at for one in moved) for at in (-math.inf, math.inf))]


def _shift(one: Shift) -> str:
    if math.isinf(one.seconds):
        return "starts no more" if one.seconds > 0 else "starts only then"
    return f"{short(abs(one.seconds))} {'later' if one.seconds > 0 else 'earlier'}"


def _described(
    now: Forecast, then: Forecast | None, jobs: Sequence[str], new: Sequence[str]
) -> dict[str, Any]:
    found = now.to_json(jobs)
    if then is not None:
        notes = now.future.supply.notes
        assumed = [note for note in then.future.supply.notes if note not in notes]
        found["what_if"] = then.to_json([*jobs, *new] if jobs else ()) | {"assumed": assumed}
        found["shifts"] = [
            {"job": one.label, "seconds": one.seconds if math.isfinite(one.seconds) else None}
            for one in shifts(now, then)
            if not jobs or one.label in jobs
        ]
    return found
