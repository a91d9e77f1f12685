"""The runs: logs with drawn demands, under the schedulers of ``plan.toml``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from optsched.studies.content import PLAN, content_of
from optsched.studies.study import find_log
from optsched.text_files import read_toml
from optsched.traces.bandwidth import drawn
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

PAPER = [name for name in SCHEDULERS if name not in {*INSTEAD_OF, *REQUESTED_OF.values()}]
"""The schedulers of the paper."""

SAME_OBJECTIVE = [
    name
    for name, own in INSTEAD_OF.items()
    if SCHEDULERS[name].get("settings") == SCHEDULERS[own].get("settings")
]
"""The schedulers with exact selection that have the objective of the paper's rule."""

VARIANTS: Mapping[str, Mapping[str, str]] = {
    "all limits raised": {name: name for name in PAPER},
    "First Fit's as requested": {name: name for name in PAPER} | {"FF": REQUESTED_OF["FF"]},
    "all as requested": REQUESTED_OF,
}
"""By whose limits are raised: the runs of each policy of the paper. Some policies have none."""


class Workload(NamedTuple):
    """Jobs of a centre's log with demands drawn by a mix and a seed."""

    centre: str
    mix: str
    seed: int

    @property
    def file(self) -> str:
        """The name of the trace."""
        return f"{self.centre}-{self.mix}-{self.seed}.swf.gz"


def workloads(*, quick: bool) -> list[Workload]:
    """List the workloads, in the order of tables."""
    return [
        Workload(name, mix, seed)
        for name, centre in (QUICK if quick else CENTRES).items()
        for mix in centre["mixes"]
        for seed in centre["seeds"]
    ]


def runs(*, quick: bool) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Return the runs by centre, mix, seed and scheduler."""
    centres = CENTRES | QUICK  # type: ignore[operator]
    return {
        (*one, name): {"trace": one.file, "machine": centres[one.centre]["machine"], **scheduler}
        for one in workloads(quick=quick)
        for name, scheduler in SCHEDULERS.items()
    }


def plan(folders: Sequence[Path], inputs: Path, *, quick: bool) -> dict[str, Any]:
    """State the sweep."""
    blocks = [run | {"trace": str(inputs / run["trace"])} for run in runs(quick=quick).values()]
    return {"keep": TABLE["keep"], "execution": TABLE["execution"], "runs": blocks}


def inputs(folders: Sequence[Path], *, quick: bool) -> Mapping[str, Trace]:
    """Draw the demands of the first jobs of each log."""
    jobs = {
        name: read_trace(find_log(centre["file"], folders)).jobs(1, centre["jobs"])
        for name, centre in (QUICK if quick else CENTRES).items()
    }
    return {one.file: drawn(jobs[one.centre], one.mix, one.seed) for one in workloads(quick=quick)}
