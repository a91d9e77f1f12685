"""What is run: the authors' day, weeks of logs on two clusters each, and the schedulers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from optsched.errors import InputError
from optsched.studies.gonthier_2024.published import CORES, FINAL, NODES, THROTTLE
from optsched.studies.study import find_log


class Scheduler(NamedTuple):
    """A scheduler that is run.

    Parameters
    ----------
    solver : str
        What places the jobs.
    settings : mapping
        Of the policy ``locality``.
    kept : str
        What is said of the cluster's memory behind its size.
    """

    solver: str
    settings: Mapping[str, Any] = {}
    kept: str = ""

    def but(self, **settings: Any) -> Scheduler:
        """Return this scheduler with other settings."""
        return self._replace(settings={**self.settings, **settings})


SOLVERS = ("fcfs", "eft", "lea", "leo", "lem")
FCFS, EFT, LEA, LEO, LEM = (solver.upper() for solver in SOLVERS)
HOLES, FULL_PROFILE = "-BF", "-CB"
"""What is added to the names with the authors' backfilling, and with a full profile."""

PLAIN = {solver.upper(): Scheduler(solver) for solver in SOLVERS}
BACKFILLED = {f"{name}{HOLES}": one.but(backfill="holes") for name, one in PLAIN.items()}
MAIN = PLAIN | BACKFILLED
"""The ten of the paper."""

EARLIER = 80
"""Per cent of the nodes from which on LEM saved loads in the authors' code of November 2022; the
paper, and the default, say all of them."""

LEM_EARLIER = f"{LEM} ({EARLIER} %)"
EARLIER_LEM = {
    LEM_EARLIER: PLAIN[LEM].but(threshold=EARLIER),
    f"{LEM}{HOLES} ({EARLIER} %)": BACKFILLED[f"{LEM}{HOLES}"].but(threshold=EARLIER),
}
FINAL_CODE = {
    f"{name}{FINAL}": (PLAIN | EARLIER_LEM)[name].but(stop="short")
    for name in (LEA, LEM, LEM_EARLIER)
}
"""Those of which the authors' final program gave results without its throttle."""

THROTTLED = {
    f"{name}, every {THROTTLE} s": one.but(throttle=float(THROTTLE))
    if one.solver == FCFS.lower()
    else one.but(throttle=float(THROTTLE), stop="short")
    for name, one in MAIN.items()
}
"""As the authors' final program, in which FCFS alone goes on until all cores are taken."""
CONSERVATIVE = {
    f"{name}{FULL_PROFILE}": one.but(backfill="conservative") for name, one in PLAIN.items()
}

ANEW = {f"{name}, all anew": one.but(replan="events") for name, one in MAIN.items()}
"""With a new plan at every submission and end, as the paper says."""

UNTIL_NEXT = ":kept=next"
AS_WRITTEN = {
    f"{name}, as written": one._replace(kept=UNTIL_NEXT)
    for name, one in zip(MAIN, ANEW.values(), strict=True)
}
"""With the memory of section III, too: files stay until the next start on the node."""

OF_LOGS = MAIN
OF_DAY = MAIN | EARLIER_LEM | FINAL_CODE | ANEW | AS_WRITTEN | CONSERVATIVE | THROTTLED
"""What is run on the logs, and on the authors' day."""

SCHEDULERS = OF_DAY
"""All of them, in the order of tables."""


def base_of(scheduler: str) -> str:
    """Return what a scheduler is compared with: FCFS with the same backfilling."""
    own = SCHEDULERS[scheduler]

    def alike(one: Scheduler) -> bool:
        compared = ("backfill", "replan", "throttle")
        settings = (one.settings.get(key) == own.settings.get(key) for key in compared)
        return one.kept == own.kept and all(settings)

    fcfs = (name for name, one in SCHEDULERS.items() if one.solver == FCFS.lower() and alike(one))
    return next(fcfs)


class Log(NamedTuple):
    """A log, the week of it that is evaluated, and the clusters it is run on.

    Parameters
    ----------
    name : str
        As tables name it.
    file : str
        Name of the file.
    week : int
        The evaluated week, from 0, counted from the first submission of the log.
    nodes : mapping of float to int
        Nodes of the cluster for each load.
    """

    name: str
    file: str
    week: int
    nodes: Mapping[float, int]


LOW, HIGH = 0.7, 1.1
"""What the evaluated week asks of the cluster if every job loads its file: an underused and a
saturated cluster."""

LOGS = (
    Log("RICC", "RICC-2010-2.swf.gz", 13, {LOW: 553, HIGH: 352}),
    Log("Gaia", "UniLu-Gaia-2014-1.swf.gz", 9, {LOW: 82, HIGH: 52}),
    Log("SDSC-BLUE", "SDSC-BLUE-2000-4.2-cln.swf.gz", 5, {LOW: 76, HIGH: 48}),
    Log("CTC", "CTC-SP2-1996-3.1-cln.swf.gz", 33, {LOW: 25, HIGH: 16}),
)

DAYS_BEFORE, DAYS, DAYS_AFTER = 3, 7, 1
"""The days that are run: those that fill the cluster, those that are evaluated, and one that keeps
it busy."""


class Workload(NamedTuple):
    """A trace on a cluster.

    Parameters
    ----------
    name : str
        As tables name it.
    file : str
        The trace, among those that the study makes for itself.
    nodes : int
        Nodes of the cluster.
    load : float, optional
        The load that the cluster was chosen for.
    consecutive : bool
        Whether a session is what a user submits one after the other, as in the authors' plots, and
        not within a window, as the paper says.
    """

    name: str
    file: str
    nodes: int
    load: float | None = None
    consecutive: bool = False

    @property
    def machine(self) -> str:
        """The cluster, as a run names it."""
        return f"cluster:{self.nodes}x{CORES}"


DAY_FILE = "rackham/2022-09-10_V10000_anonymous.txt.gz"
"""The authors' published input."""

DAY = Workload("Rackham day", "rackham-2022-09-10.rackham.gz", NODES, consecutive=True)
SAMPLE_FILE = "samples/sample-8x20.rackham"
SAMPLE = Workload("sample", "sample-8x20.rackham.gz", 8)
"""The quick look: a generated workload that is at hand everywhere."""


def log_file(log: Log) -> str:
    """Return the name of the file with the part of a log that is run."""
    return f"{log.name}.rackham.gz"


OF_LOG = {
    log.name: [
        Workload(f"{log.name}, load {load:g}", log_file(log), nodes, load)
        for load, nodes in log.nodes.items()
    ]
    for log in LOGS
}
WORKLOADS = (DAY, *(one for log in LOGS for one in OF_LOG[log.name]), SAMPLE)
"""In the order of tables."""


def at_hand(file: str, folders: Sequence[Path]) -> bool:
    """Return whether a log is there."""
    try:
        find_log(file, folders)
    except InputError:
        return False
    return True


def workloads_at_hand(folders: Sequence[Path], *, quick: bool) -> list[Workload]:
    """Return the workloads whose logs are there.

    Raises
    ------
    InputError
        If there are none.
    """
    if quick:
        return [SAMPLE]
    found = [DAY] if at_hand(DAY_FILE, folders) else []
    found += [one for log in LOGS if at_hand(log.file, folders) for one in OF_LOG[log.name]]
    if not found:
        find_log(DAY_FILE, folders)
    return found


def plan(folders: Sequence[Path], inputs: Path, *, quick: bool) -> dict[str, Any]:
    """Return what is run, as a sweep reads it; the jobs of each run are kept."""
    runs = []
    for workload in workloads_at_hand(folders, quick=quick):
        for scheduler in (OF_LOGS if workload.load else OF_DAY).values():
            run = {
                "trace": str(inputs / workload.file),
                "machine": workload.machine + scheduler.kept,
                "policy": "locality",
                "execution": "file-loading",
                "solver": scheduler.solver,
            }
            runs.append(run | ({"settings": scheduler.settings} if scheduler.settings else {}))
    return {"keep": "jobs", "runs": runs}
