"""Comparison of runs: policies side by side on one page."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from optsched.cli.terminal import print_json, print_lines, print_table, say
from optsched.errors import InputError
from optsched.files import FolderKind, check_name, check_replaceable, written_folder
from optsched.numbers import counted
from optsched.report import runs_folder
from optsched.report.folder_files import read_object
from optsched.report.page import cell, duration, share
from optsched.report.run_comparison import RunComparison, read_runs
from optsched.report.run_folder import FOLDER as RUN
from optsched.sweeps.sweep_folder import finished_runs
from optsched.sweeps.sweeping import FOLDER as SWEEP

SHOWN = {
    "run": cell,
    "mean_wait": duration,
    "p95_wait": duration,
    "mean_bounded_slowdown": cell,
    "utilization": share,
    "paired_less": share,
    "paired_more": share,
}
"""Columns of the table that are printed, and what shows their values."""

SPARE = ("95%", "wait more", "wait less")
"""Columns that a narrow terminal leaves out, the first one first."""

LABELS = ["run", "mean wait", "95%", "slowdown", "in use", "wait less", "wait more"]


def are_runs(paths: Sequence[Path]) -> bool:
    """Return whether paths are run folders or a sweep folder, and not snapshots.

    Raises
    ------
    InputError
        If some are and others are not, or a sweep is not alone.
    """
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


def compare_runs(paths: Sequence[Path], output: Path, *, json: bool) -> None:
    """Write the folder of a comparison of runs, or of the runs of a sweep, and print its table.

    Raises
    ------
    InputError
        If the runs are not of the same jobs, a file is missing or damaged, or the folder cannot be
        written.
    """
    for path in paths:
        check_name(path)
    check_replaceable(output, runs_folder.FOLDER)
    if _is_a(SWEEP, paths[0]):
        folders, missing = finished_runs(paths[0])
        if missing:
            say(f"optsched: {counted(missing, 'run')} of the sweep not finished, left out")
    else:
        folders = _named(paths)
    comparison = read_runs(folders)
    with written_folder(output, runs_folder.FOLDER) as folder:
        runs_folder.fill(comparison, folder, [str(path) for path in paths])
    _print(comparison, output, json=json)


def _named(paths: Sequence[Path]) -> dict[str, Path]:
    """Return run folders by name: that of the folder, or the whole path if the name is taken."""
    last = [Path(os.path.abspath(path)).name for path in paths]
    uses = Counter(last)
    named = {name if uses[name] == 1 else str(path): path for name, path in zip(last, paths)}
    if len(named) < len(paths):
        twice = next(path for path in paths if list(paths).count(path) > 1)
        raise InputError("is given twice; expected different runs", file=twice)
    return named


def _print(comparison: RunComparison, output: Path, *, json: bool) -> None:
    records = comparison.table.to_dict(orient="records")
    if json:
        print_json({"table": records})
        return
    rows = [[show(record[name]) for name, show in SHOWN.items()] for record in records]
    print_table(LABELS, rows, SPARE)
    print_lines([("comparison folder", output)])
