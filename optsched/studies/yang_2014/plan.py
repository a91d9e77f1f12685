"""What is run: parts of logs, policies and solvers, alpha and beta, draws of the sensitive jobs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from optsched.studies.study import find_log
from optsched.studies.yang_2014.published import SHARES


class Log(NamedTuple):
    """A log, and the parts of it that are run.

    Parameters
    ----------
    name : str
        As in the paper, where it is there.
    file : str
        Name of the file.
    machine : str
        The machine it is run on.
    parts : tuple of (int, int)
        First and last job of each part, in the cleaned log.
    """

    name: str
    file: str
    machine: str
    parts: tuple[tuple[int, int], ...]


def _evenly(jobs: int, length: int, parts: int) -> tuple[tuple[int, int], ...]:
    firsts = (1 + part * (jobs // parts) for part in range(parts))
    return tuple((first, first + length - 1) for first in firsts)


BLUE = Log(
    "SDSC-BLUE",
    "SDSC-BLUE-2000-4.2-cln.swf.gz",
    "torus:8x12x12",
    _evenly(232_536, 4830, 4),
)
INTREPID = Log("ANL-Intrepid", "ANL-Intrepid-2009-1200.swf.gz", "nodes:163840", ((1, 1200),))
MIRA = Log("ALCF-Mira", "ALCF-Mira-2018-AugDec.swf.gz", "nodes:49152", _evenly(22_508, 2612, 3))

LOGS = (BLUE, INTREPID, MIRA)
"""Two logs of the paper, and one of a machine that came after Intrepid.

The paper does not say which 4,830 jobs of SDSC-BLUE it ran: parts of that many, evenly spaced. Of
Intrepid, 2,612 jobs in the paper, 1,200 are public here; Mira stands beside it with parts of 2,612.
"""

QUICK_LOGS = (BLUE._replace(parts=((116_269, 117_068),)), INTREPID._replace(parts=((1, 400),)))

DRAWS = (0, 1, 2)
"""Seeds of the choice of sensitive jobs."""

SOLVERS = ("branch-and-bound", "greedy")

VARIANTS = {
    "strict": {"backfill": "none", "scatter": "never"},
    "backfill": {"backfill": "easy", "scatter": "never"},
    "backfill, scatter": {"backfill": "easy", "scatter": "head"},
}
"""What the paper leaves open: whether jobs behind the window are backfilled, and whether a head of
the queue that no slot holds may be scattered."""

MAIN = "backfill"
"""The variant that the tables show: contiguous always, and backfilled as the Default is."""

WINDOWS = (1, 5, 10, 20, 50)
GENERIC = "cp-sat"
"""The generic solver that stands beside them, on one part."""

CP_SAT_WORK = 0.02
"""Deterministic time of CP-SAT for one decision: some ten milliseconds."""


def plan(folders: Sequence[Path], *, quick: bool) -> dict[str, Any]:
    """Return what is run, as a sweep reads it."""
    logs = QUICK_LOGS if quick else LOGS
    shares = [SHARES[0], SHARES[-1]] if quick else list(SHARES)
    draws = list(DRAWS[:1] if quick else DRAWS)
    runs: list[dict[str, Any]] = []
    for log in logs:
        where = {
            "trace": str(find_log(log.file, folders)),
            "machine": log.machine,
            "jobs": [f"{first}:{last}" for first, last in log.parts],
            "execution": "contiguity",
        }
        sensitive = {"alpha": shares, "beta": shares, "draw": draws}
        runs.append(where | {"policy": "easy", "settings": sensitive})
        window = where | {"policy": "window", "solver": list(SOLVERS)}
        runs += [window | {"settings": sensitive | variant} for variant in VARIANTS.values()]
        if log.name == BLUE.name:
            runs += _windows_and_solvers(where, shares[len(shares) // 2], draws, quick=quick)
    return {"keep": "summary", "runs": runs}


def _windows_and_solvers(
    where: dict[str, Any], middle: float, draws: list[int], *, quick: bool
) -> list[dict[str, Any]]:
    """Return the runs in which the window and the solver are varied, with and without charges."""
    sensitive = {"alpha": middle, "beta": middle}
    windows = [5, 20] if quick else list(WINDOWS)
    varied = where | {"policy": "window", "charge_decisions": [False, True]}
    settings = sensitive | {"window": windows, "draw": draws} | VARIANTS[MAIN]
    own = varied | {"solver": list(SOLVERS), "settings": settings}
    generic = varied | {
        "solver": GENERIC,
        "work_limit": CP_SAT_WORK,
        "jobs": where["jobs"][0],
        "settings": settings | {"window": windows[:2] if quick else [5, 10, 20], "draw": draws[0]},
    }
    return [own, generic]
