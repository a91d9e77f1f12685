"""Sweeps: execute the runs that are not finished, then merge the results of all runs.

Folder format: ``docs/formats/sweep-folder.md``.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optsched import files
from optsched.errors import InputError, path_of
from optsched.folders import RUN, SWEEP
from optsched.numbers import counted
from optsched.sweeps import engines
from optsched.sweeps.sweep_file import PlannedRun, SweepPlan, read_sweep

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

log = logging.getLogger("optsched")


class Sweep:
    """A sweep with its folder.

    `folder`: the folder. Runs that are finished there are not repeated. `shard`: number of the
    shard to execute, and number of shards: (1, 1) for all runs.
    """

    def __init__(self, plan: SweepPlan, folder: Path, shard: tuple[int, int] = (1, 1)) -> None:
        self.plan, self.folder = plan, folder
        # The folders with a folder for each finished run, and with a file for each failed one
        self.runs, self.failed = folder / "runs", folder / "failed"
        files.check_replaceable(folder, SWEEP)
        runs = [
            {
                "run": run.name,
                "trace_sha256": run.trace.sha256,
                "demands_sha256": run.trace.demands_sha256,
                "config": dict(run.values),
            }
            for run in plan.runs
        ]
        described = {"sweep": dict(plan.table), "duplicates": plan.duplicates, "runs": runs}
        try:
            files.begin_folder(folder)
            held = None
            with suppress(OSError):
                held = engines.read_object(folder / SWEEP.marker)
            if held != described:
                self._forget_results()
                files.write_json(folder / SWEEP.marker, described)
            files.begin_folder(self.runs)  # after the marker, which other shards may read by now
            there = set(os.listdir(self.runs))
            for run in plan.runs:
                if run.former_name in there and run.name not in there:
                    with suppress(OSError):  # another shard does the same
                        (self.runs / run.former_name).rename(self.runs / run.name)
            if self.failed.is_dir():
                files.remove_leftovers(self.failed)
        except OSError as error:
            raise files.unwritable(folder, error) from None
        number, of = shard
        self.own = plan.runs[number - 1 :: of]  # the runs of the shard
        self._finished: set[str] = set()
        # Runs of the shard that were not finished at construction
        self.pending = self._unfinished(self.own)
        if faults := self._faults(self.pending):
            example = f"{faults[0]}{', for instance' if faults[1:] else ''}"
            damaged, are = counted(len(faults), "run"), "is" if len(faults) == 1 else "are"
            log.warning("%s %s damaged and %s repeated: %s", damaged, are, are, example)

    @property
    def unfinished(self) -> int:
        """Number of runs of the shard that are not finished at present."""
        return len(self._unfinished(self.own))

    def work(self, engine: engines.Engine) -> Generator[engines.Outcome, None, None]:
        """Execute the pending runs, and yield their outcomes in the order in which the runs end.

        A failure is recorded in the folder, and does not end the other runs. After an interrupt,
        too, the folder holds complete folders of finished runs and no others.
        """
        self._forget_results()
        folder = self.runs.absolute()
        for run in self.pending:
            files.remove(self._note_of(run.name))
            names = os.listdir(folder / run.name) if (folder / run.name).is_dir() else []
            if RUN.marker not in names and all(map(RUN.has, names)):
                files.remove(folder / run.name)  # as an interrupted copy may leave it
        runs = sorted(self.pending, key=lambda run: run.trace.path)  # each trace is read once
        tasks = [engines.Task(run, str(folder / run.name), self.plan.keep) for run in runs]
        values = {run.name: dict(run.values) for run in runs}
        try:
            with closing(engine.execute_all(tasks)) as outcomes:
                for outcome in outcomes:
                    name, error = outcome.name, outcome.error
                    if error is not None:
                        self.failed.mkdir(exist_ok=True)
                        note = {"run": name, "config": values[name], "error": error}
                        files.write_json(self._note_of(name), note)
                    yield outcome
        finally:
            files.remove_leftovers(self.runs)

    def failures(self) -> dict[str, str]:
        """Return the errors of failed runs of the sweep, by name of the run."""
        noted = [run for run in self.plan.runs if self._note_of(run.name).exists()]
        names = [run.name for run in self._unfinished(noted)]
        notes = {name: engines.read_object(self._note_of(name)) for name in names}
        return {name: note["error"] for name, note in notes.items() if note and "error" in note}

    def wrong_answers(self) -> dict[str, int]:
        """Return the positive counts of wrong answers in finished runs of the shard, by run."""
        counts = {}
        for name in (run.name for run in self.own if run.name in self._finished):
            found = engines.read_object(self.runs / name / "summary.json") or {}
            counts[name] = found.get("wrong_answers", 0)
        return {name: count for name, count in counts.items() if count}

    def finish(self) -> bool:
        """Merge the results if all shards are done; return whether they are."""
        failures = self.failures()
        missing = [run for run in self._unfinished(self.plan.runs) if run.name not in failures]
        if missing:
            if faults := self._faults(missing):
                runs, are = counted(len(faults), "run"), "is" if len(faults) == 1 else "are"
                log.warning("%s of other shards %s damaged: %s", runs, are, faults[0])
            return False
        names = {run.name for run in self.plan.runs}
        for entry in self.runs.iterdir():
            # only an aborted worker still writes a temporary folder of a finished run
            found = files.TEMPORARY.fullmatch(entry.name)
            if found and found["name"] in names:
                files.remove(entry)
        for name in names - set(failures):
            files.remove(self._note_of(name))  # left by a copy of another shard's folder
        with suppress(OSError):
            self.failed.rmdir()  # only if empty
        write_results(merge(self.plan, self.runs, failures), self.folder)
        others = [entry.name for entry in self.runs.iterdir() if entry.name not in names]
        if others:
            runs, are = counted(len(others), "run"), "is" if len(others) == 1 else "are"
            log.info("%s in %s %s not of this sweep and %s ignored", runs, self.runs, are, are)
        finished = sorted(names - set(failures))
        for package, versions in versions_used(finished, self.runs).items():
            if len(versions) > 1:
                used = " and ".join(versions)
                log.warning("the runs were made with several versions of %s: %s", package, used)
        return True

    def _forget_results(self) -> None:
        for pattern in SWEEP.files:
            for stale in self.folder.glob(pattern):
                files.remove(stale)

    def _unfinished(self, runs: Sequence[PlannedRun]) -> tuple[PlannedRun, ...]:
        names = [run.name for run in runs if run.name not in self._finished]
        self._finished.update(
            name for name in names if engines.is_finished(self.runs / name, self.plan.keep)
        )
        return tuple(run for run in runs if run.name not in self._finished)

    def _faults(self, runs: Sequence[PlannedRun]) -> list[str]:
        folders = [self.runs / run.name for run in runs]
        faults = (engines.fault(folder, self.plan.keep) for folder in folders if folder.is_dir())
        return [one for one in faults if one is not None]

    def _note_of(self, name: str) -> Path:
        return self.failed / f"{name}.json"


def sweep(
    file: str | Path | Mapping[str, Any],
    output: str | Path,
    *,
    engine: engines.EngineName = "local",
    workers: int | None = None,
    address: str | None = None,
) -> pd.DataFrame:
    """Run the unfinished runs of a sweep, and return the results of all runs.

    Parameters
    ----------
    file : path or mapping
        A TOML file, or a mapping of the same form.
    output : path
        The folder of the sweep. Runs that are finished there are not repeated.
    engine : {"local", "dask"}
        Local processes, or a Dask cluster.
    workers : int, optional
        Number of local processes; by default the number of cores divided by the largest number of
        solver threads.
    address : str, optional
        Address of the Dask scheduler.

    Returns
    -------
    pandas.DataFrame
        One row per run: name, values in the file, metrics, and the error if the run failed.

    Raises
    ------
    InputError
        If the file has mistakes, or the folder or the engine cannot be used.
    """
    import pandas as pd

    engines.check_engine(engine, workers, address)
    folder = path_of(output, "output", "expected the folder to write to")
    planned = Sweep(read_sweep(file), folder)
    if planned.pending:
        for outcome in planned.work(engines.start_engine(planned.pending, workers, address)):
            if outcome.error is not None:
                log.warning("run %s failed: %s", outcome.name, outcome.error)
    planned.finish()
    return pd.read_parquet(planned.folder / "results.parquet")


def merge(plan: SweepPlan, runs: Path, failures: Mapping[str, str]) -> pa.Table:
    """Return the table of results of a sweep, in which every run is finished or has failed.

    The folders of the runs are in `runs`; `failures` has the error of each failed run by name.

    Its columns are ``run``, the values in the sweep file, the metrics, ``error``. A value with the
    name of a metric gets the prefix ``config.``; a metric that is a list or a table is left out.
    """
    import pyarrow as pa

    names, rows = [run.name for run in plan.runs], [run.columns for run in plan.runs]
    read = ({} if name in failures else _read(runs / name / "summary.json") for name in names)
    summaries = [{k: v for k, v in one.items() if not isinstance(v, dict | list)} for one in read]
    metrics = list(dict.fromkeys(chain.from_iterable(summaries)))
    columns: dict[str, pa.Array] = {"run": pa.array(names)}
    for name in plan.columns:
        label = f"config.{name}" if name in metrics else name
        columns[label] = _column([row.get(name) for row in rows])
    for name in metrics:
        columns[name] = _column([summary.get(name) for summary in summaries])
    columns["error"] = pa.array([failures.get(name) for name in names], type=pa.string())
    return pa.table(columns)


def write_results(table: pa.Table, folder: Path) -> None:
    """Write ``results.parquet`` and ``results.csv``, either both or neither."""
    import pyarrow.csv as pacsv
    import pyarrow.parquet as pq

    plain = pacsv.WriteOptions(quoting_style="needed", quoting_header="none")
    with (
        files.written(folder / "results.csv") as csv,
        files.written(folder / "results.parquet") as parquet,
    ):
        pacsv.write_csv(table, csv, plain)
        pq.write_table(table, parquet)


def with_parts(results: pd.DataFrame, metrics: Sequence[str], runs: Path) -> pd.DataFrame:
    """Return the results with a column for each number of metrics that are tables of their own.

    A column is named ``recorded_node_time.running``, for instance. `runs` holds the run folders.
    """
    import pandas as pd

    if not metrics:
        return results
    rows = []
    for run in results["run"]:
        summary = _read(runs / run / "summary.json")
        tables = ((name, summary.get(name) or {}) for name in metrics)
        rows.append({f"{name}.{part}": v for name, table in tables for part, v in table.items()})
    return pd.concat([results, pd.DataFrame(rows, index=results.index, dtype=float)], axis=1)


def versions_used(names: Sequence[str], runs: Path) -> dict[str, list[str]]:
    """Return the versions of each package and solver that the runs with given names used."""
    seen: dict[str, set[str]] = {}
    for name in names:
        config = _read(runs / name / "run.json")
        used = dict(config["versions"])
        for chosen in config.get("solvers", {}).values():
            used[chosen["solver"]] = chosen["version"]
        for package, version in used.items():
            seen.setdefault(package, set()).add(str(version))
    return {package: sorted(found) for package, found in seen.items()}


def _read(path: Path) -> dict[str, Any]:
    read = engines.read_object(path)
    if read is None:
        raise InputError("damaged; start the sweep again to repeat the run", file=path)
    return read


def _column(values: Sequence[Any]) -> pa.Array:
    """Return values as a column of their type, or as text if they have several types."""
    import pyarrow as pa

    types = {type(value) for value in values if value is not None}
    if types <= {int, float} and types != {int}:
        return pa.array(values, type=pa.float64())
    if len(types) > 1:
        return pa.array([v if isinstance(v, str | None) else json.dumps(v) for v in values])
    return pa.array(values)
