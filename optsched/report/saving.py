"""Saving of runs and comparisons to folders. File formats: ``docs/formats``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from optsched.compilation import clock
from optsched.errors import InputError, brief
from optsched.files import json_text, write_json, write_text, written, written_folder
from optsched.folders import COMPARISON, RUN, RUNS, Keep
from optsched.report.page import write_page
from optsched.simulator.job_table import empty, to_arrow
from optsched.simulator.problem_solver import COLUMNS
from optsched.simulator.run import Run
from optsched.simulator.scenario import versions

if TYPE_CHECKING:
    from optsched.report.run_comparison import RunComparison
    from optsched.solvers.comparison import Comparison


def save(result: Run | Comparison, folder: str | Path, *, plots: bool = True) -> Path:
    """Write a run or a comparison to a folder, completely or not at all, and return the folder.

    Parameters
    ----------
    result : Run or Comparison
        Result of `optsched.simulate` or `optsched.compare`.
    folder : path
        The folder; an earlier result of the same kind is replaced.
    plots : bool
        Whether to draw the pictures and write the page, ``report.html``.

    Raises
    ------
    InputError
        If the result is neither, or the folder cannot be written or holds something else.
    """
    from optsched.solvers.comparison import Comparison

    if not isinstance(result, Run | Comparison):
        expected = "expected a run or a comparison, of optsched.simulate or optsched.compare"
        raise InputError(f"{brief(result)}; {expected}", field="result")
    with written_folder(Path(folder), RUN if isinstance(result, Run) else COMPARISON) as temporary:
        if isinstance(result, Run):
            fill_run(result, temporary, plots=plots)
        else:
            fill_comparison(result, temporary, plots=plots)
    return Path(folder)


def fill_run(run: Run, folder: Path, *, plots: bool = True, keep: Keep = "all") -> None:
    """Write the files of a run into an existing folder.

    ``run.json``, ``summary.json``, ``jobs.csv``, ``jobs.parquet``, ``decisions.parquet``, the
    pictures and the page made of these files, ``migrations.parquet`` if there were migrations,
    ``journal.parquet`` if there is a journal, and ``timing.json``. Only ``timing.json`` has
    wall-clock figures: all other files are the same to the byte when the run is repeated.
    """
    began = clock()
    write_json(folder / RUN.marker, dict(run.config))
    write_json(folder / "summary.json", run.summary)
    if keep != "summary":
        _write_tables(run, folder, csv=keep == "all")
    timing = dict(run.timing) | {"write_seconds": clock() - began}
    if plots:
        began = clock()
        from optsched.report.run_picture import draw

        draw(run, folder)
        report_run(folder)
        timing["plot_seconds"] = clock() - began
    write_json(folder / "timing.json", timing)


def _write_tables(run: Run, folder: Path, *, csv: bool) -> None:
    import pyarrow as pa
    import pyarrow.csv as pacsv
    import pyarrow.parquet as pq

    tables = {"jobs": to_arrow(run.job_columns)}
    frames = {}
    if run.problems["time"]:
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


def report_run(folder: Path) -> Path:
    """Write the page of a run folder from its files, and return the path of the page."""
    from optsched.report import run_page

    return write_page(run_page.page(folder), folder)


def fill_comparison(comparison: Comparison, folder: Path, *, plots: bool = True) -> None:
    """Write the files of a comparison into an existing folder.

    ``comparison.json``, ``results.csv``, ``results.parquet``, ``table.csv``,
    ``incumbents.parquet``, ``answers.jsonl``, the pictures and the page made of these files.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    write_json(folder / COMPARISON.marker, comparison.record)
    for name, frame in (("results", comparison.results), ("table", comparison.table)):
        write_text(folder / f"{name}.csv", frame.to_csv(index=False, lineterminator="\n"))
    for name, frame in (("results", comparison.results), ("incumbents", comparison.incumbents)):
        table = pa.Table.from_pandas(frame, preserve_index=False)
        with written(folder / f"{name}.parquet") as stream:
            pq.write_table(table, stream)
    lines = [json_text(answer) + "\n" for answer in comparison.answers]
    write_text(folder / "answers.jsonl", "".join(lines))
    if plots:
        from optsched.report.comparison_plots import draw

        draw(comparison, folder)
        report_comparison(folder)


def report_comparison(folder: Path) -> Path:
    """Write the page of a comparison folder from its files, and return the path of the page."""
    from optsched.report import comparison_page

    return write_page(comparison_page.page(folder), folder)


def fill_runs(
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

    from optsched.report.runs_page import wait_column
    from optsched.report.runs_plots import draw

    runs = [
        {"name": run.name, "path": run.path, "config": run.config, "summary": run.summary}
        for run in comparison.runs
    ]
    about = {"paths": list(paths), "days": days, "runs": runs, "versions": versions()}
    write_json(folder / RUNS.marker, about)
    table = comparison.table.to_csv(index=False, lineterminator="\n")
    write_text(folder / "table.csv", table)
    columns = dict(comparison.jobs)
    for run in comparison.runs:
        columns[wait_column(run.name)] = run.waits
    arrays = {name: pa.array(column, from_pandas=True) for name, column in columns.items()}
    with written(folder / "jobs.parquet") as stream:
        pq.write_table(pa.table(arrays), stream)
    draw(comparison, folder, days)
    report_runs(folder)


def report_runs(folder: Path) -> Path:
    """Write the page of the folder of a comparison of runs, and return the path of the page."""
    from optsched.report import runs_page

    return write_page(runs_page.page(folder), folder)
