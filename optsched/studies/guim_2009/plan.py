"""The runs: logs with drawn demands, under the schedulers of ``plan.toml``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from optsched.studies.content import PLAN, content_of
from optsched.studies.plan import find_log
from optsched.text_files import read_toml
from optsched.traces.bandwidth import LEVELS, drawn
from optsched.traces.reading import read_trace
from optsched.traces.trace import Trace

CONTENT = content_of("guim-2009")
TABLE = read_toml(CONTENT / PLAN)

CENTRES: Mapping[str, Any] = TABLE["centres"]
QUICK: Mapping[str, Any] = TABLE["quick"]

SCHEDULERS: Mapping[str, Mapping[str, Any]] = TABLE["schedulers"]
"""All of them, in the order of tables."""

INSTEAD_OF: Mapping[str, str] = TABLE["instead_of"]
"""The scheduler of the paper that each one with exact selection stands for."""

REQUESTED_OF: Mapping[str, str] = TABLE["requested"]
"""The schedulers that are also run with limits that are not raised, and the names of those runs."""

OTHER_TIES = ("LC, other ties", "LC, exact")
"""Schedulers that differ in which of equally good placements is used."""

PAPER = [
    name for name in SCHEDULERS if name not in {*INSTEAD_OF, *REQUESTED_OF.values(), OTHER_TIES[0]}
]
"""The schedulers of the paper."""

SAME_OBJECTIVE = [
    name
    for name, own in INSTEAD_OF.items()
    if SCHEDULERS[name].get("settings") == SCHEDULERS[own].get("settings")
]
"""The schedulers with exact selection that have the objective of the paper's rule."""

VARIANTS: Mapping[str, Mapping[str, str]] = {
    "RUA's limits raised": {**REQUESTED_OF, "RUA": "RUA"},
    "all but First Fit's raised": {name: name for name in PAPER} | {"FF": REQUESTED_OF["FF"]},
    "all limits raised": {name: name for name in PAPER},
    "no limit raised": REQUESTED_OF,
}
"""By whose limits are raised: the runs of each policy of the paper."""

STATED = next(iter(VARIANTS))
"""The variant that the paper states: RUA raises limits, and nothing is said of other policies."""

READINGS: Mapping[str, Mapping[str, Any]] = TABLE["readings"]
"""Readings of what the paper leaves open, each with what it changes."""

HIGH = LEVELS["high"]


class Workload(NamedTuple):
    """A part of a centre's log, with demands drawn by a mix, and the machine that it runs on."""

    centre: str
    mix: str
    part: int
    machine: str
    high: int = HIGH

    @property
    def file(self) -> str:
        """The name of the trace."""
        level = f"-high{self.high}" if self.high != HIGH else ""
        return f"{self.centre}-{self.mix}-{self.part}{level}.swf.gz"


def workloads(*, quick: bool, reading: str = "") -> list[Workload]:
    """List the workloads in the order of tables; for a reading, those that it changes."""
    changed = READINGS[reading] if reading else {}
    machines = changed.get("machines", {})
    return [
        Workload(name, mix, part, machines.get(name, centre["machine"]), changed.get("high", HIGH))
        for name, centre in (QUICK if quick else CENTRES).items()
        if not reading or "high" in changed or name in machines
        for mix in centre["mixes"]
        for part in centre["parts"]
    ]


def runs(*, quick: bool) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Return the runs by reading, centre, mix, part and scheduler.

    Readings are run with the schedulers of `STATED`, and not in a quick look.
    """
    schedulers: dict[str, Collection[str]] = {"": SCHEDULERS}
    if not quick:
        schedulers |= dict.fromkeys(READINGS, VARIANTS[STATED].values())
    return {
        (reading, *one[:3], name): {"trace": one.file, "machine": one.machine, **SCHEDULERS[name]}
        for reading, names in schedulers.items()
        for one in workloads(quick=quick, reading=reading)
        for name in names
    }


def plan(folders: Sequence[Path], inputs: Path, *, quick: bool) -> dict[str, Any]:
    """State the sweep."""
    blocks = [run | {"trace": str(inputs / run["trace"])} for run in runs(quick=quick).values()]
    return {"keep": TABLE["keep"], "execution": TABLE["execution"], "runs": blocks}


def inputs(folders: Sequence[Path], *, quick: bool) -> Mapping[str, Trace]:
    """Draw the demands of the jobs of each part of each log."""
    parts = {}
    for name, centre in (QUICK if quick else CENTRES).items():
        log, jobs = read_trace(find_log(centre["file"], folders)), centre["jobs"]
        for part in centre["parts"]:
            parts[name, part] = log.jobs((part - 1) * jobs + 1, part * jobs)
    needed = {
        one.file: one
        for reading in ("", *(() if quick else READINGS))
        for one in workloads(quick=quick, reading=reading)
    }
    return {
        file: drawn(parts[one.centre, one.part], one.mix, one.part, {"high": one.high})
        for file, one in needed.items()
    }
