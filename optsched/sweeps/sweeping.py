"""A sweep: those of its runs that are not finished yet, executed, then all of them merged.

Folder format: ``docs/formats/sweep-folder.md``.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optsched.files import (
    TEMPORARY,
    FolderKind,
    check_replaceable,
    make_folder,
    remove,
    remove_leftovers,
    unwritable,
    write_json,
)
from optsched.numbers import counted
from optsched.sweeps.engines import Engine, EngineName, check_engine, start_engine
from optsched.sweeps.executing import Outcome, Task
from optsched.sweeps.finished import fault, is_finished, read_object
from optsched.sweeps.merging import merge, versions_used, write_results
from optsched.sweeps.planned_run import PlannedRun
from optsched.sweeps.sweep_file import SweepPlan, read_sweep

if TYPE_CHECKING:
    import pandas as pd

RESULTS = ("results.parquet", "results.csv")
FOLDER = FolderKind("a sweep", "sweep.json", RESULTS, ("runs", "failed"))

log = logging.getLogger("optsched")


class Sweep:
    """The runs of a sweep and their folder.

    Parameters
    ----------
    plan : SweepPlan
        The runs.
    folder : path
        The folder. Runs of the sweep that are finished there are not done again.
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

    def __init__(self, plan: SweepPlan, folder: Path, shard: tuple[int, int] = (1, 1)) -> None:
        self.plan = plan
        self.folder = folder
        self.runs = folder / "runs"
        self.failed = folder / "failed"
        check_replaceable(folder, FOLDER)
        described = _describe(plan)
        try:
            make_folder(folder)
            remove_leftovers(folder)
            if not _says(folder / FOLDER.marker, described):
                self._forget_results()
                write_json(folder / FOLDER.marker, described)
            make_folder(self.runs)  # after the marker: other shards may look by now
            remove_leftovers(self.runs)
            if self.failed.is_dir():
                remove_leftovers(self.failed)
        except OSError as error:
            raise unwritable(folder, error) from None
        number, of = shard
        self.own = plan.runs[number - 1 :: of]
        self._whole: set[str] = set()
        self.pending = self._unfinished(self.own)
        self._by_name = {run.name: run for run in plan.runs}
        if damaged := self._faults(self.pending):
            told = f"{damaged[0]}{', for instance' if damaged[1:] else ''}"
            runs, are = counted(len(damaged), "run"), "is" if len(damaged) == 1 else "are"
            log.warning("%s %s not whole and %s done again: %s", runs, are, are, told)

    @property
    def left(self) -> int:
        """How many runs of this part are not finished at present."""
        return len(self._unfinished(self.own))

    def work(self, engine: Engine) -> Generator[Outcome, None, None]:
        """Execute what is pending, and yield the outcomes in the order in which the runs end.

        A run that fails is noted in the folder, and ends no other. Whenever this ends or is
        interrupted, what is finished is on disk as a whole, and nothing else is.
        """
        self._forget_results()
        for run in self.pending:
            remove(self._note_of(run.name))
            self._remove_remains(self.runs / run.name)
        folder = self.runs.absolute()
        tasks = [Task(run, str(folder / run.name), self.plan.keep) for run in self.pending]
        try:
            with closing(engine.work_off(tasks)) as outcomes:
                for outcome in outcomes:
                    if outcome.error is not None:
                        self._note_failure(outcome)
                    yield outcome
        finally:
            remove_leftovers(self.runs)

    def failures(self) -> dict[str, str]:
        """Return why runs of the sweep have failed, by name."""
        noted = [run for run in self.plan.runs if self._note_of(run.name).exists()]
        notes = {run.name: read_object(self._note_of(run.name)) for run in self._unfinished(noted)}
        return {name: note["error"] for name, note in notes.items() if note and "error" in note}

    def wrong_answers(self) -> dict[str, int]:
        """Return how many wrong answers solvers gave in finished runs of this part, by run."""
        finished = [run.name for run in self.own if run.name in self._whole]
        summaries = {name: read_object(self.runs / name / "summary.json") for name in finished}
        counts = {name: (found or {}).get("wrong_answers", 0) for name, found in summaries.items()}
        return {name: count for name, count in counts.items() if count}

    def finish(self) -> bool:
        """Merge the results, unless other shards are not ready; return whether it was done."""
        failures = self.failures()
        left = [run for run in self._unfinished(self.plan.runs) if run.name not in failures]
        if left:
            if damaged := self._faults(left):
                runs, are = counted(len(damaged), "run"), "is" if len(damaged) == 1 else "are"
                log.warning("%s of other shards %s not whole: %s", runs, are, damaged[0])
            return False
        names = {run.name for run in self.plan.runs}
        for entry in self.runs.iterdir():
            # whoever writes there now does again what is finished: a worker that was given up
            found = TEMPORARY.fullmatch(entry.name)
            if found and found["name"] in names:
                remove(entry)
        for name in names - set(failures):
            remove(self._note_of(name))  # a copy of another shard's folder may have brought it
        with suppress(OSError):
            self.failed.rmdir()  # if it is empty
        write_results(merge(self.plan, self.runs, failures), self.folder)
        others = [entry.name for entry in self.runs.iterdir() if entry.name not in names]
        if others:
            log.info("%d runs in %s are not of this sweep; left alone", len(others), self.runs)
        finished = sorted(names - set(failures))
        for package, versions in versions_used(finished, self.runs).items():
            if len(versions) > 1:
                told = " and ".join(versions)
                log.warning("the runs were made with several versions of %s: %s", package, told)
        return True

    def _forget_results(self) -> None:
        for name in RESULTS:
            remove(self.folder / name)

    def _unfinished(self, runs: Sequence[PlannedRun]) -> tuple[PlannedRun, ...]:
        """Return those of the runs that are not finished; one that was found whole stays so."""
        left = [run for run in runs if run.name not in self._whole]
        found = [run for run in left if is_finished(self.runs / run.name, self.plan.keep)]
        self._whole.update(run.name for run in found)
        return tuple(run for run in left if run.name not in self._whole)

    def _faults(self, runs: Sequence[PlannedRun]) -> list[str]:
        """Return what is wrong with the folders that are there of runs that are not finished."""
        folders = [self.runs / run.name for run in runs]
        faults = (fault(folder, self.plan.keep) for folder in folders if folder.is_dir())
        return [one for one in faults if one is not None]

    def _remove_remains(self, folder: Path) -> None:
        """Remove files of a run without its marker, which a copy that broke off may leave."""
        from optsched.report.run_folder import FOLDER as RUN

        names = os.listdir(folder) if folder.is_dir() else []
        if RUN.marker not in names and all(map(RUN.has, names)):
            remove(folder)

    def _note_of(self, name: str) -> Path:
        return self.failed / f"{name}.json"

    def _note_failure(self, outcome: Outcome) -> None:
        self.failed.mkdir(exist_ok=True)
        run = self._by_name[outcome.name]
        note = {"run": run.name, "config": dict(run.values), "error": outcome.error}
        write_json(self._note_of(run.name), note)


def sweep(
    file: str | Path | Mapping[str, Any],
    output: str | Path,
    *,
    engine: EngineName = "local",
    workers: int | None = None,
    address: str | None = None,
) -> pd.DataFrame:
    """Run a sweep, or what is left of it, and return its results.

    Parameters
    ----------
    file : path or mapping
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
        One row per run: its name, what the file says of it, its metrics, and why it failed if it
        did.

    Raises
    ------
    InputError
        If the file has mistakes, or the folder or the engine cannot be used.
    """
    import pandas as pd

    check_engine(engine, workers, address)
    planned = Sweep(read_sweep(file), Path(output))
    if planned.pending:
        for outcome in planned.work(start_engine(planned.pending, engine, workers, address)):
            if outcome.error is not None:
                log.warning("run %s failed: %s", outcome.name, outcome.error)
    planned.finish()
    return pd.read_parquet(planned.folder / "results.parquet")


def _describe(plan: SweepPlan) -> dict[str, Any]:
    runs = [
        {
            "run": run.name,
            "trace_sha256": run.trace.sha256,
            "demands_sha256": run.trace.demands_sha256,
            "config": dict(run.values),
        }
        for run in plan.runs
    ]
    return {"sweep": dict(plan.table), "duplicates": plan.duplicates, "runs": runs}


def _says(path: Path, value: Any) -> bool:
    """Return whether a JSON file holds just that."""
    try:
        return bool(read_object(path) == value)
    except OSError:
        return False
