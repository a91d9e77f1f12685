"""The results of a sweep, read from its folder: a row per run, and the runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from optsched.errors import InputError, UnknownNameError
from optsched.metrics.jobs import MEASURES
from optsched.numbers import counted
from optsched.report.card import Card
from optsched.report.folder_files import read_table
from optsched.report.page import Facts, Table, Value
from optsched.report.reading import checked_folder, read_run
from optsched.report.run_folder import FOLDER as RUN
from optsched.simulator.run import Run
from optsched.sweeps.sweep_folder import finished_runs
from optsched.sweeps.sweeping import FOLDER, RESULTS

if TYPE_CHECKING:
    import pandas as pd


FIGURES = (
    *("finished", "mean_wait", "median_wait", "p95_wait", "mean_bounded_slowdown", "utilization"),
)
"""Figures that notebooks show of each run."""

ROWS = 20
"""Most runs that they show."""


class FinishedRuns(Mapping[str, Run]):
    """The finished runs of a sweep by name, each read on use.

    A name states the values in which the runs differ, ``easy, seed=1`` for instance. The name of a
    run's folder, in the column ``run`` of the results, is also understood.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._places, self.unfinished = finished_runs(folder)

    def __getitem__(self, name: str) -> Run:
        place = self._places.get(name, self._folder / "runs" / name)
        if not (place / RUN.marker).is_file():
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
        file = self.folder / RESULTS[0]
        if not file.is_file():
            left = counted(self.runs.unfinished, "run")
            raise InputError(
                f"no such file; {left} of the sweep are not finished, see the others in runs",
                file=file,
            )
        frame: pd.DataFrame = read_table(file, ("run",), None).to_pandas()
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
    return SweepResults(checked_folder(folder, FOLDER))
