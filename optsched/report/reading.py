"""Runs and comparisons read from their folders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from optsched.boxes.box import box_of_text
from optsched.errors import InputError
from optsched.folders import (
    COMPARISON,
    RUN,
    checked_folder,
    read_columns,
    read_config,
    read_frame,
    read_json_lines,
    read_object,
    read_record,
    read_summary,
    read_table,
)
from optsched.machines.machine import Machine, read_machine
from optsched.machines.torus import Torus
from optsched.report.page import JOB, NAMES
from optsched.report.run_comparison import OUTCOME
from optsched.schedule import Migration, Schedule
from optsched.simulator.job_table import Column, from_pandas
from optsched.simulator.run import Run
from optsched.simulator.system import Journal
from optsched.solvers.comparison import Comparison
from optsched.solvers.comparison.comparing import TOLD
from optsched.solvers.comparison.tables import INCUMBENT_COLUMNS, LATER, RESULT_COLUMNS
from optsched.traces.trace import CleaningReport, Trace

if TYPE_CHECKING:
    import pandas as pd


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
        config, summary = read_config(folder), read_summary(folder)
        vars(self).update(folder=folder, config=config, summary=summary)

    folder: Path

    def __repr__(self) -> str:
        run = f"{self.summary['jobs']:,} jobs, {self.config['policy']} on {self.config['machine']}"
        return f"<Run in {self.folder}: {run}>"

    @cached_property
    def timing(self) -> Mapping[str, float]:
        """Wall-clock figures of the simulation."""
        return read_object(self.folder / "timing.json", {})

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
        return read_columns(self._file("jobs"), JOBS, OPTIONAL)

    def _frame(self, name: str, columns: Iterable[str] = ()) -> pd.DataFrame:
        frame: pd.DataFrame = read_table(self._file(name), columns, None).to_pandas()
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
    return ReadRun(checked_folder(folder, RUN))


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
    place = checked_folder(folder, COMPARISON)
    record = read_record(place)
    return Comparison(
        results=read_frame(place / "results.parquet", RESULT_COLUMNS, LATER),
        incumbents=read_frame(place / "incumbents.parquet", INCUMBENT_COLUMNS),
        answers=tuple(read_json_lines(place / "answers.jsonl")),
        **{name: tuple(record.pop(name, ())) for name in TOLD},
        config=record,
    )
