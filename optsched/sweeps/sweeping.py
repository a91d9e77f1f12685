"""A sweep: the runs of a study that are not finished yet, executed, then all of them merged.

Folder format: ``docs/formats/sweep-folder.md``.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Generator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optsched.errors import InputError
from optsched.files import (
    TEMPORARY,
    FolderKind,
    check_name,
    check_replaceable,
    remove,
    remove_leftovers,
    write_json,
)
from optsched.sweeps.engines import Engine, EngineName, check_engine, start_engine
from optsched.sweeps.executing import Outcome, Task, is_finished
from optsched.sweeps.merging import merge, versions_used, write_results
from optsched.sweeps.planned_run import PlannedRun
from optsched.sweeps.study_file import SweepPlan, read_study

if TYPE_CHECKING:
    import pandas as pd

FOLDER = FolderKind("a sweep", "sweep.json", ("results.parquet", "results.csv", "runs", "failed"))
RESULTS = ("results.parquet", "results.csv")

log = logging.getLogger("optsched")


class Sweep:
    """A study and the folder of its runs.

    Parameters
    ----------
    study : SweepPlan
        What is run.
    folder : path
        Where to. Runs of the study that are finished there are not done again.
    shard : (int, int)
        Which part of the runs is executed here, and of how many: (1, 1) for all of them.

    Attributes
    ----------
    runs, failed : pathlib.Path
        The folders with a folder for each finished run, and with a file for each that has failed.
    own : tuple of PlannedRun
        The runs of this part.
    pending : tuple of PlannedRun
        Those of them that were not finished when it began.

    Raises
    ------
    InputError
        If the folder holds something else or cannot be written.
    """

    def __init__(self, study: SweepPlan, folder: Path, shard: tuple[int, int] = (1, 1)) -> None:
        self.study = study
        self.folder = folder
        self.runs = folder / "runs"
        self.failed = folder / "failed"
        check_name(folder)
        check_replaceable(folder, FOLDER)
        described = _describe(study)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            remove_leftovers(folder)
            if not _says(folder / FOLDER.marker, described):
                self._forget_results()
                write_json(folder / FOLDER.marker, described)
            self.runs.mkdir(exist_ok=True)  # after the marker: other shards may look by now
            remove_leftovers(self.runs)
        except OSError as error:
            reason = error.strerror or str(error)
            raise InputError(f"cannot be written: {reason}", file=folder) from None
        number, of = shard
        self.own = study.runs[number - 1 :: of]
        self.pending = self._unfinished()
        self._by_name = {run.name: run for run in study.runs}

    @property
    def left(self) -> int:
        """How many runs of this part are not finished at present."""
        return len(self._unfinished())

    def work(self, engine: Engine) -> Generator[Outcome, None, None]:
        """Execute what is pending, and yield the outcomes in the order in which the runs end.

        A run that fails is noted in the folder, and ends no other. Whenever this ends or is
        interrupted, what is finished is on disk as a whole, and nothing else is.
        """
        self._forget_results()
        for run in self.pending:
            remove(self._note_of(run.name))
        folder = self.runs.absolute()
        tasks = [Task(run, str(folder / run.name), self.study.keep) for run in self.pending]
        try:
            with closing(engine.work_off(tasks)) as outcomes:
                for outcome in outcomes:
                    if outcome.error is not None:
                        self._note_failure(outcome)
                    yield outcome
        finally:
            remove_leftovers(self.runs)

    def failures(self) -> dict[str, str]:
        """Return why runs of the study have failed, by name."""
        return {
            run.name: json.loads(self._note_of(run.name).read_bytes())["error"]
            for run in self.study.runs
            if self._note_of(run.name).exists() and not self._is_finished(run)
        }

    def finish(self) -> bool:
        """Merge the results, unless other shards are not ready; return whether it was done."""
        failures = self.failures()
        if not all(run.name in failures or self._is_finished(run) for run in self.study.runs):
            return False
        names = {run.name for run in self.study.runs}
        for entry in self.runs.iterdir():
            # whoever writes there now does again what is finished: a worker that was given up
            found = TEMPORARY.fullmatch(entry.name)
            if found and found["name"] in names:
                remove(entry)
        for name in names - set(failures):
            remove(self._note_of(name))  # a copy of another shard's folder may have brought it
        with suppress(OSError):
            self.failed.rmdir()  # if it is empty
        write_results(merge(self.study, self.runs, failures), self.folder)
        others = [entry.name for entry in self.runs.iterdir() if entry.name not in names]
        if others:
            log.info("%d runs in %s are not of this study; left alone", len(others), self.runs)
        finished = sorted(names - set(failures))
        for package, versions in versions_used(finished, self.runs).items():
            if len(versions) > 1:
                told = " and ".join(versions)
                log.warning("the runs were made with several versions of %s: %s", package, told)
        return True

    def _forget_results(self) -> None:
        for name in RESULTS:
            remove(self.folder / name)

    def _unfinished(self) -> tuple[PlannedRun, ...]:
        return tuple(run for run in self.own if not self._is_finished(run))

    def _is_finished(self, run: PlannedRun) -> bool:
        return is_finished(self.runs / run.name, self.study.keep)

    def _note_of(self, name: str) -> Path:
        return self.failed / f"{name}.json"

    def _note_failure(self, outcome: Outcome) -> None:
        self.failed.mkdir(exist_ok=True)
        run = self._by_name[outcome.name]
        note = {"run": run.name, "config": dict(run.values), "error": outcome.error}
        write_json(self._note_of(run.name), note)


def sweep(
    study: str | Path | Mapping[str, Any],
    output: str | Path,
    *,
    engine: EngineName = "local",
    workers: int | None = None,
    address: str | None = None,
) -> pd.DataFrame:
    """Run a study, or what is left of it, and return its results.

    Parameters
    ----------
    study : path or mapping
        A TOML file, or a mapping of the same form.
    output : path
        The folder of the sweep. Runs that are finished there are not done again.
    engine : {"local", "dask"}
        Processes of this machine, or a Dask cluster.
    workers : int, optional
        How many local processes; as many as there are cores for the solvers' threads if left out.
    address : str, optional
        Of the Dask scheduler.

    Returns
    -------
    pandas.DataFrame
        One row per run: its name, what the study says of it, its metrics, and why it failed if it
        did.

    Raises
    ------
    InputError
        If the study has mistakes, or the folder or the engine cannot be used.
    """
    import pandas as pd

    check_engine(engine, workers, address)
    planned = Sweep(read_study(study), Path(output))
    if planned.pending:
        for outcome in planned.work(start_engine(planned.pending, engine, workers, address)):
            if outcome.error is not None:
                log.warning("run %s failed: %s", outcome.name, outcome.error)
    planned.finish()
    return pd.read_parquet(planned.folder / "results.parquet")


def _describe(study: SweepPlan) -> dict[str, Any]:
    runs = [
        {
            "run": run.name,
            "trace_sha256": run.trace.sha256,
            "demands_sha256": run.trace.demands_sha256,
            "config": dict(run.values),
        }
        for run in study.runs
    ]
    return {"study": dict(study.table), "duplicates": study.duplicates, "runs": runs}


def _says(path: Path, value: Any) -> bool:
    """Return whether a JSON file holds just that."""
    try:
        return bool(json.loads(path.read_bytes()) == value)
    except (OSError, ValueError):
        return False
