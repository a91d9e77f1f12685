"""What is run: workloads, strategies, and what is varied."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from optsched.studies.franke_1999.published import LARGE_FROM, LU_MEMORY, LU_NODES, MPLS, NODES

INTERARRIVAL = (1.0, 0.975, 0.95, 0.925, 0.9, 0.875, 0.85, 0.825, 0.8)
SERVICE = (1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8)
"""Factors of the 81 workloads. The paper does not give its own; these lead from its baseline to
loads above 1, as its figures do."""

FEW_INTERARRIVAL = (1.0, 0.9, 0.8)
FEW_SERVICE = (1.0, 1.3, 1.6)
"""Those of the nine workloads on which everything else is varied."""

SEEDS = (1, 2, 3)
"""Of the workloads: the first for all 81, the others for the nine."""

ADMISSIONS = ("fcfs", "skip")
SHARINGS = ("rows", "fill", "nodes")
VARIANTS = {
    f"{admission}, {sharing}": {"admission": admission, "sharing": sharing}
    for admission in ADMISSIONS
    for sharing in SHARINGS
}
"""What the paper leaves open: may jobs behind a blocked one be placed, and who runs when."""

SHOWN, SKIPPED = "fcfs, fill", "skip, fill"
"""The variants of the figures: strictly in order of arrival, and not; the matrix filled. Where one
stands for all it is the first."""

LEVEL = 3
"""The multiprogramming level where one stands for all."""

EXACT = "row-search"
PACKERS = {"best-fit": [LEVEL, 5], "greedy-colouring": [LEVEL], EXACT: [LEVEL, 5]}
"""What stands beside first fit as the solver of the packing, and the levels it is run at; the exact
one on the workloads of all seeds."""

PACKED = ("fcfs, rows", "fcfs, fill", "skip, rows")
"""The variants in which it does."""

GENERIC = "cp-sat"
CP_SAT_WORK = 0.05
"""Deterministic time of CP-SAT for one decision."""

SWITCHES = (1.0, 5.0, 15.0)
"""Seconds of a context switch, in turns of 60 s."""

MEMORIES = (133.0, 300.0, 400.0, 600.0, 800.0)
"""MB of a job on each of its nodes; the first is the mean of the paper's workload."""

REQUESTS = 10.0
"""Requested times are up to this many times the run time where estimates are not perfect."""

NODES_MACHINE, MATRIX = f"nodes:{NODES}", f"matrix:{NODES}"
SPACE_SHARING = ("fcfs", "conservative")

BLUE_FILE = "SDSC-BLUE-2000-4.2-cln.swf.gz"
BLUE_JOBS = 10_000
BLUE_PARTS = tuple(1 + part * 38_756 for part in range(6))
"""The first job of each part of SDSC-BLUE that is fitted, and generated anew."""

BLUE_PROCESSORS = 1152
STANDING_IN = ("trace", "uniform", "observed")
"""The part itself, and what its model generates: sizes uniform in a class, or as observed."""


class Workload(NamedTuple):
    """A workload of the paper's model.

    Parameters
    ----------
    interarrival, service : float
        What the times between arrivals and the run times are multiplied by.
    seed : int
        Of the random numbers.
    requests : float
        Requested times are drawn from one to this many times the run time.
    """

    interarrival: float
    service: float
    seed: int
    requests: float = 1.0

    @property
    def file(self) -> str:
        """The name of its file."""
        asked = "" if self.requests == 1 else f"_requests{self.requests:g}"
        factors = f"interarrival{self.interarrival:g}_service{self.service:g}"
        return f"model_{factors}_seed{self.seed}{asked}.swf.gz"


def grid(*, quick: bool) -> list[Workload]:
    """Return the 81 workloads of the first seed."""
    interarrival = INTERARRIVAL[::8] if quick else INTERARRIVAL
    service = (SERVICE[0], SERVICE[5]) if quick else SERVICE
    return [Workload(i, s, SEEDS[0]) for i in interarrival for s in service]


def few(seed: int, *, quick: bool, requests: float = 1.0) -> list[Workload]:
    """Return the nine workloads on which everything else is varied."""
    service = FEW_SERVICE[:1] if quick else FEW_SERVICE
    interarrival = FEW_INTERARRIVAL[:1] if quick else FEW_INTERARRIVAL
    return [Workload(i, s, seed, requests) for i in interarrival for s in service]


def other_seeds(*, quick: bool) -> list[Workload]:
    """Return the nine workloads of the other seeds."""
    seeds = SEEDS[1:2] if quick else SEEDS[1:]
    return [workload for seed in seeds for workload in few(seed, quick=quick)]


def blue_files(*, quick: bool) -> Iterator[tuple[str, int, str, int]]:
    """Yield file, first job, stand-in and seed of each workload of SDSC-BLUE."""
    trace, *models = STANDING_IN
    for first in BLUE_PARTS[:1] if quick else BLUE_PARTS:
        yield f"blue_from{first}_{trace}.swf.gz", first, trace, 0
        for model in models:
            for seed in SEEDS[:1] if quick else SEEDS:
                yield f"blue_from{first}_{model}_seed{seed}.swf.gz", first, model, seed


def plan(inputs: Path, *, quick: bool) -> dict[str, Any]:
    """Return what is run, as a sweep reads it."""
    mpls = list(MPLS)
    varied = _gang(inputs, few(SEEDS[0], quick=quick))
    others = _gang(inputs, other_seeds(quick=quick))
    shown = VARIANTS[SHOWN]
    runs = [
        *_strategies(inputs, grid(quick=quick)),
        *_strategies(inputs, other_seeds(quick=quick)),
        *(
            packed | {"solver": solver, "settings": VARIANTS[name] | {"mpl": mpls}}
            for solver, mpls in PACKERS.items()
            for name in PACKED
            for packed in ((varied, others) if solver == EXACT else (varied,))
        ),
        varied
        | {
            "trace": [*varied["trace"][:1], *others["trace"][:: len(varied["trace"])]],
            "solver": GENERIC,
            "work_limit": CP_SAT_WORK,
            "settings": VARIANTS["fcfs, rows"] | {"mpl": LEVEL},
        },
        varied | {"settings": {"compact": False, "mpl": mpls} | VARIANTS["fcfs, rows"]},
        varied | {"settings": {"compact": False, "mpl": mpls} | shown},
        varied | {"settings": shown | {"mpl": mpls, "context_switch": list(SWITCHES)}},
        varied
        | {
            "trace": varied["trace"][:1],
            "execution": "paging",
            "settings": shown | {"mpl": mpls, "job_memory": list(MEMORIES)},
        },
        _space(inputs, few(SEEDS[0], quick=quick, requests=REQUESTS)) | {"policy": "conservative"},
        *_figure_9(inputs),
        *_blue(inputs, quick=quick),
    ]
    return {"keep": "summary", "runs": runs}


def _traces(inputs: Path, workloads: Sequence[Workload]) -> list[str]:
    return [str(inputs / workload.file) for workload in workloads]


def _space(inputs: Path, workloads: Sequence[Workload]) -> dict[str, Any]:
    traces = _traces(inputs, workloads)
    return {"trace": traces, "machine": NODES_MACHINE, "large_from": LARGE_FROM}


def _gang(inputs: Path, workloads: Sequence[Workload]) -> dict[str, Any]:
    return _space(inputs, workloads) | {"machine": MATRIX, "policy": "gang"}


def _strategies(inputs: Path, workloads: Sequence[Workload]) -> list[dict[str, Any]]:
    """Return the runs of the paper's three strategies, gang scheduling in all its variants."""
    gang = {"mpl": list(MPLS), "admission": list(ADMISSIONS), "sharing": list(SHARINGS)}
    return [
        _space(inputs, workloads) | {"policy": list(SPACE_SHARING)},
        _gang(inputs, workloads) | {"settings": gang},
    ]


def _figure_9(inputs: Path) -> list[dict[str, Any]]:
    """Return the runs of one to three sequential jobs on one node, with its memory varied."""
    memory = {"node_memory": list(LU_NODES), "job_memory": LU_MEMORY, "mpl": max(MPLS)}
    traces = [str(inputs / instances_file(number)) for number in range(1, LEVEL + 1)]
    return [
        {
            "trace": traces,
            "machine": "matrix:1",
            "policy": "gang",
            "execution": "paging",
            "settings": memory,
        }
    ]


def instances_file(number: int) -> str:
    """Return the name of the file of so many sequential jobs that are submitted together."""
    return f"instances_{number}.swf.gz"


def _blue(inputs: Path, *, quick: bool) -> list[dict[str, Any]]:
    """Return the runs of parts of SDSC-BLUE, and of the workloads that stand in for them."""
    traces = {"trace": [str(inputs / file) for file, *_ in blue_files(quick=quick)]}
    settings: Mapping[str, Any] = VARIANTS[SHOWN] | {"mpl": LEVEL}
    gang = {"machine": f"matrix:{BLUE_PROCESSORS}", "policy": "gang", "settings": settings}
    space = {"machine": f"nodes:{BLUE_PROCESSORS}", "policy": list(SPACE_SHARING)}
    return [traces | space, traces | gang]
