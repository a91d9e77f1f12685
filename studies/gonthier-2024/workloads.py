"""The schedulers and workloads of plan.toml, the runs, and the traces of weeks of logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from optsched.errors import InputError
from optsched.machines.cluster import BANDWIDTH
from optsched.metrics.stretch import window_sessions
from optsched.text_files import read_toml
from optsched.traces.catalogue import find_log
from optsched.traces.rackham import EVALUATED
from optsched.traces.reading import read_trace
from optsched.traces.trace import SECONDS_PER_DAY, Trace
from optsched.traces.transformations import Sharing, evaluate, infer_files, split_jobs, submitted

TABLE = read_toml(Path(__file__).with_name("plan.toml"))["own"]
LOW, HIGH = LOADS = TABLE["loads"]
CORES: int = TABLE["cores"]
LOGS: Mapping[str, Mapping[str, Any]] = TABLE["logs"]
SHAKEN = TABLE["shaken"]


class Scheduler(NamedTuple):
    """A scheduler: its solver and form, its base, the settings of ``locality``, and the memory.

    It is run on the day, and on the weeks of `logs` at each of `loads`.
    """

    form: str
    solver: str
    base: str
    settings: Mapping[str, Any] = {}
    kept: str = ""
    logs: Sequence[str] = ()
    loads: Sequence[float] = LOADS


SCHEDULERS = {
    form["name"].format(solver.upper()): Scheduler(
        solver=solver, **{k: v for k, v in form.items() if k not in ("name", "solvers")}
    )
    for form in TABLE["forms"]
    for solver in form.get("solvers", TABLE["solvers"])
}
"""All of them, in the order of tables."""


def in_form(*forms: str) -> list[str]:
    """Return the names of the schedulers in these forms."""
    return [name for name, one in SCHEDULERS.items() if one.form in forms]


class Workload(NamedTuple):
    """A trace on a cluster; for a week of a log, a load determines the number of nodes.

    With a `seed` its submissions are shaken.
    """

    name: str
    file: str
    nodes: int
    log: str
    load: float | None = None
    consecutive: bool = False
    sharing: Sharing = "consecutive"
    seed: int | None = None

    @property
    def machine(self) -> str:
        """The spec of the cluster."""
        return f"cluster:{self.nodes}x{CORES}"

    @property
    def schedulers(self) -> Sequence[str]:
        """The schedulers that it is run with."""
        if self.seed is not None:
            return SHAKEN["schedulers"]
        if self.sharing == "interleaved":
            return in_form("no backfilling")
        if self.load is None:
            return [*SCHEDULERS]
        runs = SCHEDULERS.items()
        return [name for name, one in runs if self.log in one.logs and self.load in one.loads]


DAY, SAMPLE = (
    Workload(one["name"], one["trace"], one["nodes"], one["name"], consecutive=one["consecutive"])
    for one in (TABLE["day"], TABLE["sample"])
)


def log_file(log: str, sharing: Sharing = "consecutive") -> str:
    """Return the name of the file with the week of a log, by how its jobs share files."""
    ending = "" if sharing == "consecutive" else f"-{sharing}"
    return f"{log}{ending}.rackham.gz"


def weeks_of(log: str, sharing: Sharing = "consecutive") -> list[Workload]:
    """Return the week of a log at each load."""
    ending = "" if sharing == "consecutive" else f", {sharing}"
    file = log_file(log, sharing)
    return [
        Workload(f"{log}, load {load:g}{ending}", file, nodes, log, load, sharing=sharing)
        for load, nodes in zip(LOADS, LOGS[log]["nodes"])
    ]


OF_LOG = {log: weeks_of(log) for log in LOGS}
INTERLEAVED = {log: weeks_of(log, "interleaved") for log in TABLE["interleaved"]}
WEEKS = [one for own in OF_LOG.values() for one in own]
TO_SHAKE = [one for one in (DAY, *WEEKS) if one.log in SHAKEN["logs"]]


def shaken_of(one: Workload, seed: int) -> Workload:
    """Return a workload with shaken submissions."""
    file = one.file.replace(".", f"-shaken-{seed}.", 1)
    return one._replace(name=f"{one.name}, shaken {seed}", file=file, seed=seed)


SHAKEN_FROM = {shaken_of(one, seed): one for one in TO_SHAKE for seed in SHAKEN["seeds"]}
"""The workloads with shaken submissions, and those that they come from."""

WORKLOADS = {
    one.name: one
    for one in (
        DAY,
        *WEEKS,
        *(one for own in INTERLEAVED.values() for one in own),
        *SHAKEN_FROM,
        SAMPLE,
    )
}
"""In the order of tables."""


def at_hand(plan: Mapping[str, Any], folders: Sequence[Path]) -> list[Workload]:
    """List the workloads whose logs are there; an error if there are none."""
    if plan["own"].get("only"):
        return [WORKLOADS[plan["own"]["only"]]]
    files = {TABLE["day"]["file"]: DAY.log} | {own["file"]: log for log, own in LOGS.items()}
    there = []
    for file, log in files.items():
        with suppress(InputError):
            find_log(file, folders)
            there.append(log)
    if not there:
        find_log(TABLE["day"]["file"], folders)
    return [one for one in WORKLOADS.values() if one.log in there]


def runs(plan: Mapping[str, Any], folders: Sequence[Path]) -> list[dict[str, Any]]:
    """Return a block for each workload and scheduler."""
    return [
        {
            "trace": f"inputs/{one.file}",
            "machine": one.machine + SCHEDULERS[name].kept,
            "solver": SCHEDULERS[name].solver,
            "settings": SCHEDULERS[name].settings,
            "label": {"workload": one.name, "scheduler": name},
        }
        for one in at_hand(plan, folders)
        for name in one.schedulers
    ]


def inputs(plan: Mapping[str, Any], folders: Sequence[Path]) -> dict[str, Trace]:
    """Read the authors' day, and cut the weeks out of the logs that are there."""
    files = {workload.file for workload in at_hand(plan, folders)}
    traces = {}
    for table, day in ((TABLE["sample"], SAMPLE), (TABLE["day"], DAY)):
        if day.file in files:
            traces[day.file] = read_trace(find_log(table["file"], folders), clean=False)
    for name, log in LOGS.items():
        sharings = [one for one in get_args(Sharing) if log_file(name, one) in files]
        if sharings:
            whole = read_trace(find_log(log["file"], folders))
            traces |= {log_file(name, one): week_of(whole, log["week"], one) for one in sharings}
    for one, original in SHAKEN_FROM.items():
        if one.file in files:
            traces[one.file] = shaken(traces[original.file], one)
    return traces


def sessions_of(workload: Workload, user: NDArray[Any], submit: NDArray[Any]) -> NDArray[np.int64]:
    """Return the session of each job."""
    if workload.consecutive:  # users have new names after each job of another user
        return np.unique(user, return_inverse=True)[1]
    return window_sessions(user, submit)


def shaken(trace: Trace, workload: Workload) -> Trace:
    """Put off each session by up to a minute; what is submitted together stays together."""
    session = sessions_of(workload, trace.user, trace.submit)
    draw = np.random.default_rng(workload.seed).integers(0, SHAKEN["shake"] + 1, session.max() + 1)
    return submitted(trace, trace.submit + draw[session])[0]


def week_of(trace: Trace, week: int, sharing: Sharing = "consecutive") -> Trace:
    """Cut out a week of a log and the days around it, as jobs of one node each with input files."""
    first = int(trace.submit.min()) + week * TABLE["days"] * SECONDS_PER_DAY
    last = first + TABLE["days"] * SECONDS_PER_DAY
    around = (trace.submit >= first - TABLE["days_before"] * SECONDS_PER_DAY) & (
        trace.submit < last + TABLE["days_after"] * SECONDS_PER_DAY
    )
    pieces = split_jobs(trace.select(np.flatnonzero(around)), CORES).trace
    return evaluate(infer_files(pieces, sharing=sharing), first, last)


def offered(trace: Trace, nodes: int) -> float:
    """Return the load of the evaluated jobs on a cluster if each of them loads its file.

    It is their core time over that of the cluster in whole days from the first of them to the last.
    """
    counts = trace.annotations["category"] == EVALUATED
    loads = trace.annotations["file_size"][counts] // BANDWIDTH
    held = np.minimum(trace.runtime[counts] + loads, trace.requested_time[counts])
    submit = trace.submit[counts]
    days = np.ceil((submit.max() - submit.min() + 1) / SECONDS_PER_DAY)
    work = float((held * trace.processors[counts]).sum())
    return work / float(nodes * CORES * days * SECONDS_PER_DAY)
