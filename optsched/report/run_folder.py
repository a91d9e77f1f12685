"""Folder of a run. File formats: ``docs/formats/run-folder.md``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from optsched.compilation import clock
from optsched.files import FolderKind, write_json, written
from optsched.report.page import REPORT, write_page
from optsched.simulator.job_table import empty, to_arrow
from optsched.simulator.problem_solver import COLUMNS

if TYPE_CHECKING:
    from optsched.simulator.run import Run

FOLDER = FolderKind(
    "a run",
    "run.json",
    ("summary.json", "timing.json", "jobs.csv", "*.parquet", "*.svg", "*.png", REPORT),
)

Keep = Literal["summary", "jobs", "all"]
"""Tables of a run to write: no table, the tables as Parquet, or the jobs as CSV too."""


def fill(run: Run, folder: Path, *, plots: bool = True, keep: Keep = "all") -> None:
    """Write the files of a run into an existing folder.

    ``run.json``, ``summary.json``, ``jobs.csv``, ``jobs.parquet``, ``decisions.parquet``, the
    pictures and the page made of these files, ``migrations.parquet`` if there were migrations,
    ``journal.parquet`` if there is a journal, and ``timing.json``. Only ``timing.json`` has
    wall-clock figures: all other files are the same to the byte when the run is repeated.
    """
    began = clock()
    write_json(folder / FOLDER.marker, dict(run.config))
    write_json(folder / "summary.json", run.summary)
    if keep != "summary":
        _write_tables(run, folder, csv=keep == "all")
    timing = dict(run.timing) | {"write_seconds": clock() - began}
    if plots:
        began = clock()
        from optsched.report.run_picture import draw

        draw(run, folder)
        report(folder)
        timing["plot_seconds"] = clock() - began
    write_json(folder / "timing.json", timing)


def _write_tables(run: Run, folder: Path, *, csv: bool) -> None:
    import pyarrow as pa
    import pyarrow.csv as pacsv
    import pyarrow.parquet as pq

    tables = {"jobs": to_arrow(run.job_columns)}
    frames = {}
    if run.problems:
        frames["decisions"] = run.decisions
    else:
        tables["decisions"] = empty(COLUMNS)
    if run.schedule.migrations:
        frames["migrations"] = run.migrations
    if run.journal is not None:
        frames["journal"] = run.journal.frame
    for name, frame in frames.items():
        tables[name] = pa.Table.from_pandas(frame, preserve_index=False)
    for name, table in tables.items():
        with written(folder / f"{name}.parquet") as stream:
            pq.write_table(table, stream)
        if csv and name == "jobs":
            plain = pacsv.WriteOptions(quoting_style="needed", quoting_header="none")
            with written(folder / "jobs.csv") as stream:
                pacsv.write_csv(table, stream, plain)


def report(folder: Path) -> Path:
    """Write the page of a run folder from its files, and return the path of the page."""
    from optsched.report import run_page

    return write_page(run_page.page(folder), folder)
