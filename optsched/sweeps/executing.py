"""One run of a sweep, in whatever process: simulate, and leave a finished folder behind."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optsched.errors import InputError
from optsched.sweeps.finished import is_finished

if TYPE_CHECKING:
    from optsched.report.run_folder import Keep
    from optsched.sweeps.planned_run import PlannedRun, TraceFile
    from optsched.traces.trace import Trace

TRACES_KEPT = 4
"""How many traces a process keeps in memory for the runs to come."""

_one_at_a_time = threading.Lock()


@dataclass(frozen=True)
class Task:
    """A run, and where its folder goes.

    Parameters
    ----------
    run : PlannedRun
        The run.
    folder : str
        Absolute path of its folder.
    keep : {"summary", "jobs", "all"}
        How much of it is kept.
    """

    run: PlannedRun
    folder: str
    keep: Keep


@dataclass(frozen=True)
class Outcome:
    """What became of a run.

    Parameters
    ----------
    name : str
        Name of the run.
    summary : dict or None
        Its metrics; none if it failed.
    error : str or None
        Why it failed.
    seconds : float
        Wall-clock time that it took.
    """

    name: str
    summary: dict[str, Any] | None
    error: str | None = None
    seconds: float = 0.0


def execute(task: Task) -> Outcome:
    """Simulate a run and write its folder, unless that is there already.

    A mistake in the config of a run, or of the program, is an outcome and no exception: it must
    not end the other runs.
    """
    began = time.perf_counter()
    folder = Path(task.folder)
    try:
        with _one_at_a_time:  # threads of a Dask worker would only wait for each other
            if not is_finished(folder, task.keep):
                _simulate(task, folder)
        summary = json.loads((folder / "summary.json").read_bytes())
    except InputError as error:
        return Outcome(task.run.name, None, str(error), time.perf_counter() - began)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        return Outcome(task.run.name, None, reason, time.perf_counter() - began)
    return Outcome(task.run.name, summary, None, time.perf_counter() - began)


def _simulate(task: Task, folder: Path) -> None:
    from optsched.files import written_folder
    from optsched.report.run_folder import FOLDER, fill
    from optsched.simulator.simulate import simulate

    file = task.run.trace
    trace = _read(file)
    # recorded as the sweep file names it: the same bytes wherever that lies
    trace = replace(trace, path=Path(task.run.values["trace"]), published=file.published)
    run = simulate(trace, **task.run.arguments)
    with written_folder(folder, FOLDER) as temporary:
        fill(run, temporary, plots=False, keep=task.keep)


@lru_cache(maxsize=TRACES_KEPT)
def _read(file: TraceFile) -> Trace:
    from optsched.traces.demands import demands_file
    from optsched.traces.reading import read_trace

    trace = read_trace(file.path)
    for path, before, now in (
        (file.path, file.sha256, trace.sha256),
        (demands_file(file.path), file.demands_sha256, trace.demands_sha256),
    ):
        if before != now:
            raise InputError("was changed after the sweep began", file=path)
    return trace
