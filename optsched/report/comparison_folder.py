"""Folder of a comparison. File formats: ``docs/formats/comparison-folder.md``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from optsched.files import FolderKind, write_json, write_text, written
from optsched.json_text import json_text
from optsched.report import comparison_page
from optsched.report.comparison_plots import draw
from optsched.report.page import REPORT, write_page

if TYPE_CHECKING:
    from optsched.solvers.comparison import Comparison

FOLDER = FolderKind(
    "a comparison",
    "comparison.json",
    ("results.csv", "table.csv", "*.parquet", "answers.jsonl", "*.svg", "*.png", REPORT),
)


def fill(comparison: Comparison, folder: Path, *, plots: bool = True) -> None:
    """Write the files of a comparison into an existing folder.

    ``comparison.json``, ``results.csv``, ``results.parquet``, ``table.csv``,
    ``incumbents.parquet``, ``answers.jsonl``, the pictures and the page made of these files.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    write_json(folder / FOLDER.marker, comparison.record)
    for name, frame in (("results", comparison.results), ("table", comparison.table)):
        write_text(folder / f"{name}.csv", frame.to_csv(index=False, lineterminator="\n"))
    for name, frame in (("results", comparison.results), ("incumbents", comparison.incumbents)):
        table = pa.Table.from_pandas(frame, preserve_index=False)
        with written(folder / f"{name}.parquet") as stream:
            pq.write_table(table, stream)
    lines = [json_text(answer) + "\n" for answer in comparison.answers]
    write_text(folder / "answers.jsonl", "".join(lines))
    if plots:
        draw(comparison, folder)
        report(folder)


def report(folder: Path) -> Path:
    """Write the page of a comparison folder from its files, and return the path of the page."""
    return write_page(comparison_page.page(folder), folder)
