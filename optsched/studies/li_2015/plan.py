"""What is run: workloads, the paper's system and its parts, EASY on boxes, single changes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from optsched.errors import InputError
from optsched.studies.li_2015.published import (
    LARGE,
    LINKS,
    NODES_PER_ROUTER,
    TORUS,
    WINDOWS,
)
from optsched.studies.study import find_log


class Machine(NamedTuple):
    """A torus, and from how many nodes on jobs are large on it.

    Parameters
    ----------
    torus : (int, int, int)
        Routers in each dimension.
    large : int
        Jobs of more nodes are large.
    """

    torus: tuple[int, int, int]
    large: int

    @property
    def nodes(self) -> int:
        """How many nodes it has."""
        x, y, z = self.torus
        return x * y * z * NODES_PER_ROUTER

    @property
    def spec(self) -> str:
        """As a run names it."""
        links = ",".join(map(str, LINKS))
        return f"torus:{'x'.join(map(str, (*self.torus, NODES_PER_ROUTER)))}:hilbert:links={links}"


FULL = Machine(TORUS, LARGE)
SMALL = Machine((8, 8, 8), 38)
"""The machine of the paper, and one of the quick look with large jobs in proportion."""

MODEL = "blue-waters-like"
"""The workload spec of the modelled workloads."""

LOADS = (0.9, 1.1)
"""Offered by the modelled workloads: one that a machine should keep up with, and one under which
the queue grows, so that the scheduler always has something to place."""

SEEDS = (1, 2, 3)
JOBS = 8000
QUICK_JOBS = 200
QUICK_FROM = 129
"""Nodes from which on jobs of the model are generated for the quick look: few jobs, much work."""

LOAD = 0.95
"""That real workloads are brought to."""


class Log(NamedTuple):
    """A log, and the part of it that is run.

    Parameters
    ----------
    name : str
        As tables name it.
    file : str
        Name of the file.
    first, last : int
        Jobs of the cleaned log, from 1, both included.
    """

    name: str
    file: str
    first: int
    last: int


LOGS = (
    Log("Mira", "ALCF-Mira-2018-AugDec.swf.gz", 9_755, 12_754),
    Log("Trinity", "LANL-Trinity-2017-w4.swf.gz", 1, 4_261),
    Log("Curie", "CEA-Curie-2011-2.1-cln.swf.gz", 145_271, 150_270),
)
"""The middle 3,000 and 5,000 jobs of two logs, and all jobs of the window of Trinity that offers
the highest load."""


class Variant(NamedTuple):
    """A scheduler that is run.

    Parameters
    ----------
    settings : mapping
        Of the policy ``torus`` and of the migrations.
    solver : str, optional
        For models that do not get the paper's heuristics.
    work : float, optional
        The budget of one problem, in the solver's deterministic unit.
    """

    settings: Mapping[str, Any]
    solver: str | None = None
    work: float | None = None

    def but(self, solver: str | None = None, work: float | None = None, **changed: Any) -> Variant:
        """Return the variant with something changed."""
        return Variant(dict(self.settings) | changed, solver, work)


PLACEMENT = "partition-mkp=cp-sat"
PLACEMENT_WORK = 0.05
"""The generic solver of the multiple knapsack, and its deterministic time for one problem: some
50 ms."""

MIGRATION = "migration=position-search"
MIGRATION_WORK = 2000.0
"""The exact solver of migrations, and the boxes that it may try for one problem: some
200 ms."""

FREE: Mapping[str, Any] = {"restart": 0.0, "per_node": 0.0}
"""What migration costs where it is free."""

PAPER = Variant(
    {
        "depth": 100,
        "detect": "layered",
        "place": "bins",
        "migrate": True,
        "backfill": "shadow",
        "pause": True,
    }
)
"""The paper's system."""

BOXES = Variant(
    {
        "depth": 1000,
        "detect": "exact",
        "place": "bins",
        "migrate": False,
        "backfill": "easy",
        "pause": False,
    }
)
"""EASY backfilling with boxes in the place of nodes."""

OWN = {f"paper, window {depth}": PAPER.but(depth=depth) for depth in WINDOWS}
SYSTEM, *LONGER = OWN
"""The paper's system with its scan windows; the first stands for all."""

ONLY_BACKFILLING, ONLY_MIGRATION = "paper, no migration", "paper, no backfilling"
NEITHER, NO_PAUSE = "paper, neither", "paper, no pause point"
EASY, EASY_MIGRATION = "EASY on boxes", "EASY on boxes, migration"
CEILING = "EASY on nodes"
"""EASY that counts nodes: no boxes, so nothing is fragmented."""

MAIN: Mapping[str, Variant] = {
    **OWN,
    ONLY_BACKFILLING: PAPER.but(migrate=False),
    ONLY_MIGRATION: PAPER.but(backfill="none"),
    NEITHER: PAPER.but(migrate=False, backfill="none"),
    NO_PAUSE: PAPER.but(pause=False),
    EASY: BOXES,
    EASY_MIGRATION: BOXES.but(migrate=True),
}
"""Those of the comparison, run on all workloads."""

FROM_SYSTEM: Mapping[str, Variant] = {
    "paper, exact detection": PAPER.but(detect="exact"),
    "paper, any free box": PAPER.but(place="boxes"),
    "paper, exact placement": PAPER.but(PLACEMENT, PLACEMENT_WORK),
    "paper, exact migration": PAPER.but(MIGRATION, MIGRATION_WORK),
    "paper, free migration": PAPER.but(**FREE),
}
FROM_EASY: Mapping[str, Variant] = {
    "EASY, layered detection": BOXES.but(detect="layered"),
    "EASY, any free box": BOXES.but(place="boxes"),
    "EASY, exact placement": BOXES.but(PLACEMENT, PLACEMENT_WORK),
    "EASY, pause point": BOXES.but(pause=True),
    "EASY, shadow backfilling": BOXES.but(backfill="shadow"),
    "EASY, window 100": BOXES.but(depth=100),
}
FROM_EASY_MIGRATION: Mapping[str, Variant] = {
    "EASY, exact migration": BOXES.but(MIGRATION, MIGRATION_WORK, migrate=True),
    "EASY, free migration": BOXES.but(migrate=True, **FREE),
}
ABLATIONS = {
    SYSTEM: {name: MAIN[name] for name in (ONLY_BACKFILLING, ONLY_MIGRATION, NO_PAUSE)}
    | dict(FROM_SYSTEM),
    EASY: {EASY_MIGRATION: MAIN[EASY_MIGRATION]} | dict(FROM_EASY),
    EASY_MIGRATION: FROM_EASY_MIGRATION,
}
"""Single changes, by what is changed."""

SINGLE = {**FROM_SYSTEM, **FROM_EASY, **FROM_EASY_MIGRATION}
"""Those that are not part of the comparison; at the lower load they are run on one seed only."""

VARIANTS: Mapping[str, Variant] = {**MAIN, **SINGLE}

EXACT = {
    "paper, exact detection": SYSTEM,
    "paper, exact placement": SYSTEM,
    "paper, exact migration": SYSTEM,
    "EASY, exact placement": EASY,
    "EASY, exact migration": EASY_MIGRATION,
}
"""What is exact, and what it stands in the place of."""


class Modelled(NamedTuple):
    """A modelled workload: the load that it offers, and the seed."""

    load: float
    seed: int

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"modelled_load{self.load:g}_seed{self.seed}.swf.gz"


MODELLED_FILE = re.compile(r"modelled_load([\d.]+)_seed(\d+)\.swf\.gz")


def modelled(*, quick: bool) -> list[Modelled]:
    """Return the modelled workloads."""
    if quick:
        return [Modelled(LOADS[-1], SEEDS[0])]
    return [Modelled(load, seed) for load in LOADS for seed in SEEDS]


def logs_at_hand(folders: Sequence[Path], *, quick: bool) -> list[Log]:
    """Return the logs that are there."""
    found = []
    for log in LOGS[:1] if quick else LOGS:
        try:
            find_log(log.file, folders)
        except InputError:
            continue
        found.append(log)
    return found


def log_file(log: Log) -> str:
    """Return the name of the file with the part of a log that is run."""
    return f"{log.name}.swf.gz"


def jobs_of(file: str) -> str:
    """Return whose jobs are in a file: those of a seed are the same at all loads."""
    own = MODELLED_FILE.fullmatch(file)
    return f"seed {own.group(2)}" if own else file


def workload_of(file: str) -> str:
    """Return the workload that a file is of; those of one differ in their seeds."""
    if own := MODELLED_FILE.fullmatch(file):
        return f"modelled, load {own.group(1)}"
    return file.removesuffix(".swf.gz")


WORKLOADS = (*(f"modelled, load {load:g}" for load in LOADS), *(log.name for log in LOGS))
"""In the order of tables."""


def plan(folders: Sequence[Path], inputs: Path, *, quick: bool) -> dict[str, Any]:
    """Return what is run, as a sweep reads it."""
    machine = SMALL if quick else FULL
    workloads = modelled(quick=quick)
    real = [log_file(log) for log in logs_at_hand(folders, quick=quick)]
    every = [*(workload.file for workload in workloads), *real]
    few = [
        workload.file
        for workload in workloads
        if workload.load == LOADS[-1] or workload.seed == SEEDS[0]
    ]
    large = {"large_from": machine.large + 1}
    runs: list[dict[str, Any]] = []
    for name, variant in VARIANTS.items():
        run: dict[str, Any] = large | {
            "trace": _paths(inputs, every if name in MAIN else [*few, *real]),
            "machine": machine.spec,
            "policy": "torus",
            "execution": "migration",
            "settings": dict(variant.settings) | {"large": machine.large},
        }
        if variant.solver is not None:
            run["solver"] = variant.solver
        if variant.work is not None:
            run["work_limit"] = variant.work
        runs.append(run)
    nodes = {"machine": f"nodes:{machine.nodes}", "policy": "easy"}
    runs.append(large | nodes | {"trace": _paths(inputs, every)})
    return {"keep": "summary", "runs": runs}


def _paths(inputs: Path, files: Sequence[str]) -> list[str]:
    return [str(inputs / file) for file in files]
