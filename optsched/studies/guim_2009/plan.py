"""What is run: two logs with three mixes of demands each, and the policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from optsched.studies.guim_2009.published import (
    BLUE,
    CTC,
    FF,
    LC,
    LCT,
    LCT_15,
    MED,
    PRESSURES,
    RUA,
)


class Scheduler(NamedTuple):
    """What decides.

    Parameters
    ----------
    policy : str
        Its name.
    solver : str
        What selects the processors.
    settings : mapping
        Of the policy.
    """

    policy: str
    solver: str
    settings: Mapping[str, Any] = {}

    def but(self, solver: str = "", **settings: Any) -> Scheduler:
        """Return this scheduler with another solver or other settings."""
        return Scheduler(self.policy, solver or self.solver, {**self.settings, **settings})


PAPER = {
    FF: Scheduler("sjbf", "first-fit"),
    LC: Scheduler("sjbf", "less-consume"),
    **{
        name: Scheduler(
            "sjbf", "less-consume-threshold", {"threshold": float(name.partition("=")[2])}
        )
        for name in LCT
    },
    RUA: Scheduler("rua", "less-consume-threshold"),
}
"""Those of the paper."""

EXACT_SOLVER = "bottleneck-search"
"""What selects processors exactly."""

FOR_ALL = f"{LC}, exact for all"
"""The scheduler that places a job where all jobs on its nodes lose least."""

EXACT = {
    f"{LC}, exact": PAPER[LC].but(EXACT_SOLVER),
    FOR_ALL: PAPER[LC].but(EXACT_SOLVER, goal="everybody"),
    f"{LCT_15}, least penalty": PAPER[LCT_15].but(EXACT_SOLVER, goal="penalty"),
    f"{RUA}, exact": PAPER[RUA].but(EXACT_SOLVER, choice="response"),
}
"""Those with exact selection."""

INSTEAD_OF = {name: name.partition(", ")[0] for name in EXACT}
"""Which policy of the paper each of them stands in for."""

SAME_OBJECTIVE = {
    name: own for name, own in INSTEAD_OF.items() if EXACT[name].settings == PAPER[own].settings
}
"""Those of them that look for the same as the rule of the paper."""

REQUESTED_OF = {name: f"{name}, limits as requested" for name in (FF, LC, RUA)}
"""Those that are run with limits that are not raised, too."""

REQUESTED = {name: PAPER[own].but(limits="requested") for own, name in REQUESTED_OF.items()}

SCHEDULERS = PAPER | EXACT | REQUESTED
"""All of them, in the order of tables."""

VARIANTS: Mapping[str, Mapping[str, str]] = {
    "all limits raised": {name: name for name in PAPER},
    "First Fit's as requested": {name: name for name in PAPER} | {FF: REQUESTED_OF[FF]},
    "all as requested": REQUESTED_OF,
}
"""Which runs are those of a policy of the paper, by whose limits are raised; some have none."""


class Centre(NamedTuple):
    """A log and its machine.

    Parameters
    ----------
    name : str
        As tables name it.
    file : str
        The log.
    machine : str
        Where it is run.
    jobs : int
        How many, from the first of the cleaned log on; the first half fills the machine, the second
        is evaluated.
    """

    name: str
    file: str
    machine: str
    jobs: int


JOBS = 20_000
CENTRES = (
    Centre(CTC, "CTC-SP2-1996-3.1-cln.swf.gz", "smp:108x4", JOBS),
    Centre(BLUE, "SDSC-BLUE-2000-4.2-cln.swf.gz", "smp:288x4", JOBS),
)
SAMPLE = Centre("sample", "samples/sample-256.swf", "smp:64x4", 600)
"""The quick look: a generated log that is at hand everywhere."""

SEEDS = (1, 2, 3)
"""Draws of the demands."""


class Workload(NamedTuple):
    """Jobs of a log with demands that were drawn.

    Parameters
    ----------
    centre : Centre
        The log.
    mix : str
        How many jobs demand much.
    seed : int
        Of the draw.
    """

    centre: Centre
    mix: str
    seed: int

    @property
    def file(self) -> str:
        """The trace, among those that the study makes for itself."""
        return f"{self.centre.name}-{self.mix}-{self.seed}.swf.gz"


def workloads(*, quick: bool) -> list[Workload]:
    """Return the workloads that are run, in the order of tables."""
    if quick:
        return [Workload(SAMPLE, MED, SEEDS[0])]
    return [Workload(one, mix, seed) for one in CENTRES for mix in PRESSURES for seed in SEEDS]


def plan(folders: Sequence[Path], inputs: Path, *, quick: bool) -> dict[str, Any]:
    """Return what is run, as a sweep reads it; the jobs of each run are kept."""
    runs = []
    for workload in workloads(quick=quick):
        for scheduler in SCHEDULERS.values():
            run = {
                "trace": str(inputs / workload.file),
                "machine": workload.centre.machine,
                "policy": scheduler.policy,
                "solver": scheduler.solver,
            }
            runs.append(run | ({"settings": scheduler.settings} if scheduler.settings else {}))
    return {"keep": "jobs", "execution": "resource-sharing", "runs": runs}
