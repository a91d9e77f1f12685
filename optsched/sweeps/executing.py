"""Execution of one run of a sweep: simulate, and write its folder."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optsched.compilation import clock
from optsched.errors import InputError
from optsched.sweeps.run_check import is_finished

if TYPE_CHECKING:
    from optsched.report.run_folder import Keep
    from optsched.sweeps.planned_run import PlannedRun, TraceFile
    from optsched.traces.trace import Trace

TRACES_KEPT = 4
"""Number of traces that a process keeps in memory for later runs."""

_one_at_a_time = threading.Lock()


@dataclass(frozen=True)
class Task:
    """A run to execute, the absolute path of its folder, and the files of the run to keep."""

    run: PlannedRun
    folder: str
    keep: Keep


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run: metrics or the reason of a failure, and the wall-clock time."""

    name: str
    summary: dict[str, Any] | None
    error: str | None = None
    seconds: float = 0.0


def execute(task: Task) -> Outcome:
    """Simulate a run and write its folder, unless the folder is finished already.

    An error, be it in the config of the run or in the program, is returned as an outcome, so that
    it does not end the other runs.
    """
    began = clock()
    folder, summary, failure = Path(task.folder), None, None
    try:
        with _one_at_a_time:  # a second thread of a Dask worker would gain nothing
            if not is_finished(folder, task.keep):
                _simulate(task, folder)
        summary = json.loads((folder / "summary.json").read_bytes())
    except InputError as error:
        failure = str(error)
    except Exception as error:
        failure = f"{type(error).__name__}: {error}"
    return Outcome(task.run.name, summary, failure, clock() - began)


def _simulate(task: Task, folder: Path) -> None:
    from optsched.files import written_folder
    from optsched.report.run_folder import FOLDER, fill
    from optsched.simulator.simulate import simulate

    file, arguments = task.run.trace, task.run.arguments
    if "workload" in arguments:
        trace = _generated(file, arguments["jobs"][1], arguments.get("workload_seed", 0))
    else:
        trace = _read(file, arguments.get("unknown_negative", False))
        # record the path that the sweep file states: the same bytes wherever the file is
        trace = replace(trace, path=Path(task.run.values["trace"]), published=file.published)
    run = simulate(trace, **arguments)
    with written_folder(folder, FOLDER) as temporary:
        fill(run, temporary, plots=False, keep=task.keep)


@lru_cache(maxsize=TRACES_KEPT)
def _read(file: TraceFile, unknown_negative: bool) -> Trace:
    from optsched.traces.demands import demands_file
    from optsched.traces.reading import read_trace

    trace = read_trace(file.path, unknown_negative=unknown_negative)
    for path, before, now in (
        (file.path, file.sha256, trace.sha256),
        (demands_file(file.path), file.demands_sha256, trace.demands_sha256),
    ):
        if before != now:
            raise InputError("was changed after the sweep began", file=path)
    return trace


@lru_cache(maxsize=TRACES_KEPT)
def _generated(spec: TraceFile, jobs: int, seed: int) -> Trace:
    from optsched.binary_files import sha256_of
    from optsched.workloads.generating import generate_workload

    trace = generate_workload(Path(spec.path), jobs=jobs, seed=seed)
    if sha256_of(Path(spec.path)) != spec.sha256:
        raise InputError("was changed after the sweep began", file=spec.path)
    return trace
