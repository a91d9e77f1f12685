"""Folder of a comparison of runs. File formats: ``docs/formats/runs-folder.md``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from optsched.files import FolderKind, write_json, write_text, written
from optsched.report import runs_page
from optsched.report.gantt_chart import CHARTS
from optsched.report.page import REPORT, write_page
from optsched.report.runs_plots import draw
from optsched.simulator.provenance import versions

if TYPE_CHECKING:
    from optsched.report.run_comparison import RunComparison

FOLDER = FolderKind(
    "a comparison of runs",
    "runs.json",
    ("table.csv", "jobs.parquet", "*.svg", "*.png", CHARTS, REPORT),
)


def fill(
    comparison: RunComparison,
    folder: Path,
    paths: Sequence[str],
    days: tuple[float, float] | None = None,
) -> None:
    """Write the files of a comparison of runs into an existing folder.

    ``runs.json``, ``table.csv``, ``jobs.parquet``, the pictures and the page made of these files.
    `paths` are those that a command names to repeat the comparison, and `days` the period of the
    Gantt charts that it states. All files are the same to the byte when it is repeated.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    runs = [
        {"name": run.name, "path": run.path, "config": run.config, "summary": run.summary}
        for run in comparison.runs
    ]
    about = {"paths": list(paths), "days": days, "runs": runs, "versions": versions()}
    write_json(folder / FOLDER.marker, about)
    table = comparison.table.to_csv(index=False, lineterminator="\n")
    write_text(folder / "table.csv", table)
    columns = dict(comparison.jobs)
    for run in comparison.runs:
        columns[runs_page.wait_column(run.name)] = run.waits
    arrays = {name: pa.array(column, from_pandas=True) for name, column in columns.items()}
    with written(folder / "jobs.parquet") as stream:
        pq.write_table(pa.table(arrays), stream)
    draw(comparison, folder, days)
    report(folder)


def report(folder: Path) -> Path:
    """Write the page of the folder of a comparison of runs, and return the path of the page."""
    return write_page(runs_page.page(folder), folder)
