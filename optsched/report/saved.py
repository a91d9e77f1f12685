"""Runs and comparisons that are saved to folders, and read from them.

File formats: ``docs/formats``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from optsched import folders
from optsched.boxes.box import box_of_text
from optsched.compilation import clock
from optsched.errors import InputError, brief, path_of
from optsched.files import json_text, write_json, write_text, written, written_folder
from optsched.machines.machine import Machine, read_machine
from optsched.machines.torus import Torus
from optsched.report.page import JOB, NAMES, OUTCOME, write_page
from optsched.schedule import Migration, Schedule
from optsched.simulator.job_table import Column, empty, from_pandas, to_arrow
from optsched.simulator.run import Run
from optsched.simulator.system import Journal
from optsched.solvers.comparison import Comparison
from optsched.solvers.comparison.comparing import TOLD
from optsched.solvers.comparison.tables import INCUMBENT_COLUMNS, LATER, RESULT_COLUMNS
from optsched.traces.trace import CleaningReport, Trace

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from optsched.report.run_comparison import RunComparison


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
    if not isinstance(result, Run | Comparison):
        expected = "expected a run or a comparison, of optsched.simulate or optsched.compare"
        raise InputError(f"{brief(result)}; {expected}", field="result")
    kind = folders.RUN if isinstance(result, Run) else folders.COMPARISON
    folder = path_of(folder, "folder", "expected the folder to write to")
    with written_folder(folder, kind) as temporary:
        if isinstance(result, Run):
            fill_run(result, temporary, plots=plots)
        else:
            fill_comparison(result, temporary, plots=plots)
    return folder


def fill_run(run: Run, folder: Path, *, plots: bool = True, keep: folders.Keep = "all") -> None:
    """Write the files of a run into an existing folder.

    ``run.json``, ``summary.json``, ``jobs.csv``, ``jobs.parquet``, ``decisions.parquet``, the
    pictures and the page made of these files, ``migrations.parquet`` if there were migrations,
    ``journal.parquet`` if there is a journal, and ``timing.json``. Only ``timing.json`` has
    wall-clock figures: all other files are the same to the byte when the run is repeated.
    """
    began = clock()
    write_json(folder / folders.RUN.marker, dict(run.config))
    write_json(folder / "summary.json", run.summary)
    if keep != "summary":
        _write_tables(run, folder, csv=keep == "all")
    timing = dict(run.timing) | {"write_seconds": clock() - began}
    if plots:
        began = clock()
        from optsched.report import run_page
        from optsched.report.pictures import draw

        draw(run, folder)
        write_page(run_page.page(folder), folder)
        timing["plot_seconds"] = clock() - began
    write_json(folder / "timing.json", timing)


def _write_tables(run: Run, folder: Path, *, csv: bool) -> None:
    import pyarrow.csv as pacsv

    from optsched.simulator.problem_solver import COLUMNS

    jobs = to_arrow(run.job_columns)
    _write_table(jobs, folder / "jobs.parquet")
    if csv:
        plain = pacsv.WriteOptions(quoting_style="needed", quoting_header="none")
        with written(folder / "jobs.csv") as stream:
            pacsv.write_csv(jobs, stream, plain)
    _write_table(
        run.decisions if run.problems["time"] else empty(COLUMNS), folder / "decisions.parquet"
    )
    if run.schedule.migrations:
        _write_table(run.migrations, folder / "migrations.parquet")
    if run.journal is not None:
        _write_table(run.journal.frame, folder / "journal.parquet")


def _write_table(table: pa.Table | pd.DataFrame, file: Path) -> None:
    from pyarrow import Table
    from pyarrow.parquet import write_table

    if not isinstance(table, Table):
        table = Table.from_pandas(table, preserve_index=False)
    with written(file) as stream:
        write_table(table, stream)


def fill_comparison(comparison: Comparison, folder: Path, *, plots: bool = True) -> None:
    """Write the files of a comparison into an existing folder.

    ``comparison.json``, ``results.csv``, ``results.parquet``, ``table.csv``,
    ``incumbents.parquet``, ``answers.jsonl``, the pictures and the page made of these files.
    """
    write_json(folder / folders.COMPARISON.marker, comparison.record)
    for name, frame in (("results", comparison.results), ("table", comparison.table)):
        write_text(folder / f"{name}.csv", frame.to_csv(index=False, lineterminator="\n"))
    for name, frame in (("results", comparison.results), ("incumbents", comparison.incumbents)):
        _write_table(frame, folder / f"{name}.parquet")
    lines = [json_text(answer) + "\n" for answer in comparison.answers]
    write_text(folder / "answers.jsonl", "".join(lines))
    if plots:
        from optsched.report import comparison_page
        from optsched.report.comparison_plots import draw

        draw(comparison, folder)
        write_page(comparison_page.page(folder), folder)


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

    from optsched.report import run_comparison
    from optsched.report.runs_plots import draw
    from optsched.simulator.scenario import versions

    runs = [
        {"name": run.name, "path": run.path, "config": run.config, "summary": run.summary}
        for run in comparison.runs
    ]
    about = {"paths": list(paths), "days": days, "runs": runs, "versions": versions()}
    write_json(folder / folders.RUNS.marker, about)
    table = comparison.table.to_csv(index=False, lineterminator="\n")
    write_text(folder / "table.csv", table)
    columns = dict(comparison.jobs)
    for run in comparison.runs:
        columns[run_comparison.wait_column(run.name)] = run.waits
    arrays = {name: pa.array(column, from_pandas=True) for name, column in columns.items()}
    _write_table(pa.table(arrays), folder / "jobs.parquet")
    draw(comparison, folder, days)
    write_page(run_comparison.page(folder), folder)


JOBS = {**JOB, **OUTCOME, "workload_name": "str", "allocated_resources": "str"}
"""Columns of the table of jobs that the trace and the schedule are made of."""

OPTIONAL = {**NAMES, "paused_time": "float64", "box": "str", "reason": "str"}

MIGRATIONS = ("time", "job_id", "left", "taken", "parked", "delay")

WITHOUT_TABLES = "the run was saved with its summary alone"


class _NotInFolder:
    """Attribute of a run that its folder does not have; says where to look instead."""

    def __init__(self, instead: str) -> None:
        self.instead = instead

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, run: object, owner: type) -> NoReturn:
        raise AttributeError(f"a run folder has no {self.name}; {self.instead}")


class ReadRun(Run):
    """A run that was read from its folder.

    The config, the summary and all tables are those of the folder, which are read on first use. The
    schedule has all that pictures and metrics need. The trace has the columns of the table of jobs,
    the machine is empty, and there are no `execution_report`, `policy_figures`, `compared` and
    `notes`.
    """

    execution_report: Any = _NotInFolder("see its columns in run.jobs, its figures in run.summary")
    policy_figures: Any = _NotInFolder("see run.summary")
    compared: Any = _NotInFolder("see the figures on heuristics in run.summary")
    notes: Any = _NotInFolder("they were shown when the run was made")

    def __init__(self, folder: Path) -> None:
        config, summary = folders.read_config(folder), folders.read_summary(folder)
        vars(self).update(folder=folder, config=config, summary=summary)

    folder: Path

    def __repr__(self) -> str:
        run = f"{self.summary['jobs']:,} jobs, {self.config['policy']} on {self.config['machine']}"
        return f"<Run in {self.folder}: {run}>"

    @cached_property
    def timing(self) -> Mapping[str, float]:
        """Wall-clock figures of the simulation."""
        return folders.read_object(self.folder / "timing.json", {})

    @cached_property
    def trace(self) -> Trace:
        """The jobs, with the columns of the table of jobs."""
        columns, counts = self._columns, self.summary["cleaning"]
        cleaning = counts and CleaningReport.from_json(counts)
        return Trace(
            job_id=columns["job_id"],
            submit=_whole(columns["submission_time"]),
            runtime=_whole(columns["run_time"]),
            requested_time=_whole(columns["requested_time"]),
            processors=columns["requested_number_of_resources"],
            user=columns["user"],
            name=next(iter(columns["workload_name"]), ""),
            sha256=self.config.get("trace_sha256"),
            cleaning=cleaning,
            texts={name: columns[name] for name in NAMES if name in columns},
        )

    @cached_property
    def machine(self) -> Machine:
        """The machine, empty."""
        machine = read_machine(self.config["machine"])
        if "box" in self._columns and isinstance(machine, Torus):
            box = next(filter(None, map(box_of_text, self._columns["box"])), None)
            if box is not None:  # a torus holds boxes once it has held one
                machine.release(machine.claim(box, 1))
        return machine

    @cached_property
    def schedule(self) -> Schedule:
        """When and where each job ran."""
        columns, jobs = self._columns, len(self._columns["job_id"])
        reasons = columns.get("reason", ())
        return Schedule(
            start=columns["starting_time"],
            end=columns["finish_time"],
            state=columns["final_state"],
            resources=columns["allocated_resources"].tolist(),
            decisions=self.summary["decisions"],
            paused=columns.get("paused_time", np.zeros(jobs)),
            migrations=self._migrations(),
            reasons={row: reason for row, reason in enumerate(reasons) if reason},
        )

    @cached_property
    def jobs(self) -> pd.DataFrame:
        """The jobs, one row each, see `Run.jobs`."""
        return self._frame("jobs", JOBS)

    @cached_property
    def decisions(self) -> pd.DataFrame:
        """The posed problems, one row each."""
        return self._frame("decisions")

    @cached_property
    def journal(self) -> Journal | None:
        """Every event and action, if the folder has a journal."""
        if not (self.folder / "journal.parquet").exists():
            return None
        journal = Journal()
        journal.entries = list(self._frame("journal").itertuples(index=False, name=None))
        return journal

    @cached_property
    def problems(self) -> dict[str, list[Any]]:
        """The columns of `decisions`."""
        return {str(name): column.tolist() for name, column in self.decisions.items()}

    @property
    def fallbacks(self) -> int:
        """Number of problems that the fallback decided."""
        return int(self.summary["fallbacks"])

    @property
    def job_columns(self) -> dict[str, Column]:
        """The columns of `jobs`."""
        return from_pandas(self.jobs)

    @cached_property
    def _columns(self) -> dict[str, NDArray[Any]]:
        return folders.read_columns(self._file("jobs"), JOBS, OPTIONAL)

    def _frame(self, name: str, columns: Iterable[str] = ()) -> pd.DataFrame:
        frame: pd.DataFrame = folders.read_table(self._file(name), columns, None).to_pandas()
        return frame

    def _file(self, name: str) -> Path:
        file = self.folder / f"{name}.parquet"
        if not file.exists():
            raise InputError(f"no such file; {WITHOUT_TABLES}", file=file)
        return file

    def _migrations(self) -> Sequence[Migration]:
        """Return the migrations, with interval sets for boxes."""
        if not (self.folder / "migrations.parquet").exists():
            return ()
        machine, frame = self.machine, self._frame("migrations", MIGRATIONS)
        rows: Any = zip(*(frame[name].tolist() for name in MIGRATIONS))
        row_of = {job: row for row, job in enumerate(self._columns["job_id"].tolist())}

        def text(place: str) -> str:
            box = box_of_text(place)
            return machine.nodes_text(box) if isinstance(machine, Torus) and box else place

        return tuple(
            Migration(time, row_of[job], text(left), text(taken), parked, delay)
            for time, job, left, taken, parked, delay in rows
        )


def _whole(times: NDArray[np.float64]) -> NDArray[Any]:
    return times.astype(np.int64) if np.array_equal(times, np.rint(times)) else times


def read_run(folder: str | Path) -> ReadRun:
    """Read a run from its folder, with its summary, tables and pictures.

    Parameters
    ----------
    folder : path
        Folder that `optsched.save` or ``optsched simulate -o`` has written.

    Returns
    -------
    Run
        The run. Its tables are read on first use. Of what it holds besides, a folder has no
        annotations of the trace and no state of the machine; `execution_report`, `policy_figures`,
        `compared` and `notes` raise AttributeError.

    Raises
    ------
    InputError
        If the folder is not that of a run, or a file is missing or damaged.
    """
    return ReadRun(folders.checked_folder(folder, folders.RUN))


def read_comparison(folder: str | Path) -> Comparison:
    """Read a comparison of solvers from its folder.

    Parameters
    ----------
    folder : path
        Folder that `optsched.save` or ``optsched compare -o`` has written.

    Raises
    ------
    InputError
        If the folder is not that of a comparison of solvers, or a file is missing or damaged.
    """
    place = folders.checked_folder(folder, folders.COMPARISON)
    record = folders.read_record(place)
    return Comparison(
        results=folders.read_frame(place / "results.parquet", RESULT_COLUMNS, LATER),
        incumbents=folders.read_frame(place / "incumbents.parquet", INCUMBENT_COLUMNS),
        answers=tuple(folders.read_json_lines(place / "answers.jsonl")),
        **{name: tuple(record.pop(name, ())) for name in TOLD},
        config=record,
    )
