"""A sweep read from its folder: its results, its runs, and the page that compares them.

Folder format: ``docs/formats/sweep-folder.md``.
"""

from __future__ import annotations

import logging
import shlex
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optsched import folders
from optsched.errors import InputError, UnknownNameError
from optsched.files import remove
from optsched.metrics.jobs import MEASURES
from optsched.numbers import counted
from optsched.report import run_comparison
from optsched.report.displays import Card
from optsched.report.page import Facts, Table, Value, write_page
from optsched.report.run_comparison import RunComparison, read_runs
from optsched.report.runs_plots import draw
from optsched.report.saved import read_run
from optsched.simulator.run import Run
from optsched.simulator.scenario import OPTIONS, versions

if TYPE_CHECKING:
    import pandas as pd


DRAWN = ("jobs", "measure", "workload_seed", "shake_seed")
"""Keys whose values are parts or draws of the same trace or workload."""

SYSTEMS = ("load", "shake", "unknown_negative")  # keys that change the jobs of a trace or workload

log = logging.getLogger("optsched")


def compared(folder: Path) -> RunComparison:
    """Read the finished runs of a sweep side by side; unfinished ones are counted in a message."""
    found, missing = folders.finished_runs(folder)
    if missing:
        log.warning("%s of the sweep not finished, left out", counted(missing, "run"))
    try:
        return read_runs(found)
    except InputError as error:
        keys = folders.varying(folders.planned(folder).values())
        over = next((key for key in (*DRAWN, "trace", "workload", *SYSTEMS) if key in keys), None)
        if over is None:
            raise
        hint = f"over all of them: optsched compare {folder} --over {over} -o DIR"
        raise InputError(f"{error.mistakes[0]}; {hint}", file=error.file) from None


def report(folder: Path) -> Path:
    """Write the page that compares the runs of a sweep, and its pictures, into the folder."""
    return write_comparison(compared(folder), folder)


def write_comparison(comparison: RunComparison, folder: Path) -> Path:
    """Write the page and the pictures of a comparison of a sweep's runs into its folder."""
    for stale in (path for pattern in folders.PICTURES for path in folder.glob(pattern)):
        remove(stale)
    draw(comparison, folder)
    within = [run._replace(path=f"runs/{Path(run.path).name}") for run in comparison.runs]
    inside, repeat = RunComparison(within, comparison.jobs), _repeat(comparison, folder)
    return write_page(run_comparison.page_of(inside, folder, repeat, versions()), folder)


def _repeat(comparison: RunComparison, folder: Path) -> str | None:
    """Return the command that repeats the runs, or the commands; None where there is none."""
    sweep = folders.read_object(folder / folders.SWEEP.marker, {"sweep": dict, "runs": list})
    configs = {run["run"]: dict(run["config"]) for run in sweep["runs"]}
    finished = {Path(run.path).name: run.config for run in comparison.runs}
    policies = [config.pop("policy", "") for config in configs.values()]
    stated: dict[str, Any] = {"settings": {}}
    alike = len({*policies}) == len(policies) > 1
    for config in configs.values():
        for key, value in config.pop("settings", {}).items():
            alike &= stated["settings"].setdefault(key, value) == value
        alike &= all(stated.setdefault(key, value) == value for key, value in config.items())
    for name, config in configs.items():
        # options of solvers are for the policies that pose problems
        poses = "solver" in finished.get(name, {})
        for key in stated.keys() - config.keys() - {"settings"}:
            alike &= bool(OPTIONS[key].needs_problems) and not poses
    if not alike:
        commands = [run.config["repeat"] for run in comparison.runs]
        return None if None in commands else "\n".join(commands)
    stated["policy"] = ",".join(policies)
    first = comparison.runs[0].config  # with paths from the current folder
    words = ["optsched", "simulate"]
    words += [first["trace"]] if stated.pop("trace", None) is not None else []
    stated |= {key: first[key] for key in ("machine",) if key in stated}
    words += [word for key, one in OPTIONS.items() for word in one.words(stated.get(key))]
    files: dict[str, str] = {}
    for done in finished.values():
        files |= done.get("files", {})
    for file, sha256 in files.items():
        words += ["--file-sha256", f"{file}={sha256}"]
    words += ["--no-csv"] * (sweep["sweep"].get("keep") == "jobs")
    return shlex.join([*words, "-o", "DIR"])


FIGURES = (
    *("finished", "mean_wait", "median_wait", "p95_wait", "mean_bounded_slowdown", "utilization"),
)
"""Figures that notebooks show of each run."""

ROWS = 20  # most runs that they show


class FinishedRuns(Mapping[str, Run]):
    """The finished runs of a sweep by name, each read on use.

    A name states the values in which the runs differ, ``easy, seed=1`` for instance. The name of a
    run's folder, in the column ``run`` of the results, is also understood.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._places, self.unfinished = folders.finished_runs(folder)

    def __getitem__(self, name: str) -> Run:
        place = self._places.get(name, self._folder / "runs" / name)
        if not (place / folders.RUN.marker).is_file():
            raise KeyError(str(UnknownNameError("finished run", name, self._places)))
        return read_run(place)

    def name_of(self, folder: str) -> str:
        """Return the name of the run with a folder of that name."""
        return next((name for name, place in self._places.items() if place.name == folder), folder)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __repr__(self) -> str:
        return f"<{counted(len(self), 'finished run')}: {'; '.join(self)}>"


class SweepResults:
    """A sweep that was read from its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs = FinishedRuns(folder)  # the finished runs by name, each read on use

    @cached_property
    def results(self) -> pd.DataFrame:
        """One row per run: name, values in the sweep file, metrics, and the error if it failed."""
        file = self.folder / folders.RESULTS[0]
        if not file.is_file():
            left = f"{counted(self.runs.unfinished, 'run')} of the sweep are not finished"
            raise InputError(f"no such file; {left}, see the others in runs", file=file)
        frame: pd.DataFrame = folders.read_table(file, ("run",), None).to_pandas()
        return frame

    def __repr__(self) -> str:
        return f"<Sweep in {self.folder}: {self._runs_in_words()}>"

    def _repr_html_(self) -> str:
        title, lead = f"Sweep in {self.folder}", self._runs_in_words()
        try:
            return Card(title, lead, [self._table()]).html()
        except InputError:
            names = Facts([(str(number), name) for number, name in enumerate(self.runs, start=1)])
            return Card(title, lead, folded=names).html()

    def _table(self) -> Table:
        """Return the main figures of the runs, of `ROWS` at most."""
        frame = self.results[:ROWS]
        figures = [(MEASURES[key], frame[key].tolist()) for key in FIGURES if key in frame]
        rows: list[list[Value]] = [
            [self.runs.name_of(run), *(measure.text(column[row]) for measure, column in figures)]
            for row, run in enumerate(frame["run"])
        ]
        left = len(self.results) - len(frame)
        caption = f"{left:,} more in results." if left else ""
        return Table(caption, ["run", *(measure.name for measure, _ in figures)], rows)

    def _runs_in_words(self) -> str:
        left = self.runs.unfinished
        return counted(len(self.runs), "finished run") + (f", {left:,} left" if left else "")


def read_sweep(folder: str | Path) -> SweepResults:
    """Read a sweep from its folder.

    Parameters
    ----------
    folder : path
        Folder that `optsched.sweep` or ``optsched sweep -o`` has written.

    Returns
    -------
    SweepResults
        The table ``results``, and the finished ``runs``, which are read on use.

    Raises
    ------
    InputError
        If the folder is not that of a sweep, or ``sweep.json`` is damaged.
    """
    return SweepResults(folders.checked_folder(folder, folders.SWEEP))
