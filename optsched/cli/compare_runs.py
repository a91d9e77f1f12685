"""Comparison of runs: policies side by side on one page, or over the values of a key."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from optsched.cli.options import as_options
from optsched.cli.terminal import print_hanging, print_json, print_lines, print_table, say
from optsched.errors import InputError
from optsched.files import FolderKind, check_name, check_replaceable, written_folder
from optsched.numbers import LARGEST, counted, parse_number
from optsched.report import runs_folder
from optsched.report.folder_files import read_object
from optsched.report.page import cell, duration, share
from optsched.report.run_comparison import RunComparison, read_runs
from optsched.report.run_folder import FOLDER as RUN
from optsched.studies import effects_folder
from optsched.studies.effects import ALL, effects_over
from optsched.sweeps.sweep_folder import compared, finished_runs
from optsched.sweeps.sweeping import FOLDER as SWEEP

SHOWN = {
    "run": ("run", cell),
    "mean_wait": ("mean wait", duration),
    "p95_wait": ("95%", duration),
    "mean_bounded_slowdown": ("slowdown", cell),
    "utilization": ("in use", share),
    "paired_less": ("wait less", share),
    "paired_more": ("wait more", share),
}
"""Columns of the table that are printed: their labels, and what shows their values."""

SPARE = ("95%", "wait more", "wait less")
"""Columns that a narrow terminal leaves out, the first one first."""


def are_runs(paths: Sequence[Path]) -> bool:
    """Return whether paths are run folders or a sweep folder, and not snapshots."""
    sweeps = [path for path in paths if _is_a(SWEEP, path)]
    runs = [path for path in paths if path not in sweeps and _is_a(RUN, path)]
    found = {"runs": runs, "a sweep": sweeps}
    found["snapshots"] = [path for path in paths if path not in (*runs, *sweeps)]
    kinds = [name for name, own in found.items() if own]
    if len(kinds) > 1:
        several = f"{' and '.join(kinds)} ({', '.join(str(found[kind][0]) for kind in kinds)})"
        raise InputError(f"{several}; expected runs, one sweep, or snapshots")
    if len(sweeps) > 1:
        raise InputError(f"{counted(len(sweeps), 'sweep')}; expected one sweep, or runs")
    return kinds != ["snapshots"]


def _is_a(kind: FolderKind, path: Path) -> bool:
    """Return whether a folder has the marker of a kind, and not a snapshot of that name."""
    marker = path / kind.marker
    if not marker.is_file():
        return False
    try:
        read_object(marker, {"kind": str})
    except InputError:
        return True
    return False


def compare_runs(paths: Sequence[Path], output: Path, days: str | None, *, json: bool) -> None:
    """Write the folder of a comparison of runs, or of the runs of a sweep, and print its table.

    The Gantt charts show a period of days, FROM:TO, or one in which the schedules differ.
    """
    for path in paths:
        check_name(path)
    check_replaceable(output, runs_folder.FOLDER)
    period = None if days is None else _period(days)
    of_sweep = _is_a(SWEEP, paths[0])
    comparison = compared(paths[0]) if of_sweep else read_runs(_named(paths))
    with written_folder(output, runs_folder.FOLDER) as folder, as_options(("days",)):
        runs_folder.fill(comparison, folder, [str(path) for path in paths], period)
    print_comparison(comparison, json=json)
    if not json:
        print_lines([("comparison folder", output)])


def compare_over(path: Path, output: Path, over: str, baseline: str | None, *, json: bool) -> None:
    """Write the folder of the changes in a sweep over the values of a key, and print them."""
    check_name(path)
    if not _is_a(SWEEP, path):
        raise InputError("is for a sweep, not for runs", field="--over")
    check_replaceable(output, effects_folder.FOLDER)
    found = effects_over(path, over, baseline)
    with written_folder(output, effects_folder.FOLDER) as folder:
        effects_folder.fill(found, folder, path)
    for note in found.notes:
        say(f"optsched: {note}")
    if json:
        print_json(effects_folder.described(found, path))
        return
    first = 1 if any(one.of != ALL for one in found.effects) else 2
    heads = effects_folder.columns(found)
    spare = ("from", *heads[8:], heads[7])  # for a narrow terminal
    rows = [effects_folder.cells(one) for one in found.effects]
    print_table(heads[:1] + heads[first:], [row[:1] + row[first:] for row in rows], spare)
    for sentence in (effects_folder.lead(found), *effects_folder.sentences(found)):
        print_hanging(sentence, 2)
    print_lines([("comparison folder", output)])


def _period(text: str) -> tuple[float, float]:
    """Return the begin and end of a period, from text."""
    begin, _, end = text.partition(":")
    with suppress(ValueError):
        period = parse_number(begin), parse_number(end)
        if 0 <= period[0] < period[1] <= LARGEST:
            return period
    raise InputError(f"{text!r}; expected FROM:TO in days, 10:12 for instance", field="--days")


def _named(paths: Sequence[Path]) -> dict[str, Path]:
    """Return run folders by name; by the whole path if the name is taken."""
    last = [_name(Path(os.path.abspath(path))) for path in paths]
    uses = Counter(last)
    named = {name if uses[name] == 1 else str(path): path for name, path in zip(last, paths)}
    if len(named) < len(paths):
        twice = next(path for path in paths if list(paths).count(path) > 1)
        raise InputError("is given twice; expected different runs", file=twice)
    return named


def _name(path: Path) -> str:
    """Return the name of a run: that of its folder, in a sweep the one that it has there."""
    sweep = path.parent.parent
    if path.parent.name == "runs" and _is_a(SWEEP, sweep):
        found, _ = finished_runs(sweep)
        return next((name for name, place in found.items() if place.name == path.name), path.name)
    return path.name


def print_comparison(comparison: RunComparison, *, json: bool) -> None:
    """Print the table of a comparison, or all its columns as one JSON object."""
    records = comparison.table.to_dict(orient="records")
    if json:
        print_json({"table": records})
        return
    rows = [[show(record[name]) for name, (_, show) in SHOWN.items()] for record in records]
    print_table([label for label, _ in SHOWN.values()], rows, SPARE)
