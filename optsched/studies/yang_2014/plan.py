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
    _evenly(232_536, 4830, 8),
)
INTREPID = Log(
    "ANL-Intrepid", "ANL-Intrepid-2009-1200.swf.gz", "nodes:163840", _evenly(1200, 400, 3)
)
MIRA = Log("ALCF-Mira", "ALCF-Mira-2018-AugDec.swf.gz", "nodes:49152", _evenly(22_508, 2612, 6))

LOGS = (BLUE, INTREPID, MIRA)
"""Two logs of the paper, and one of a machine that came after Intrepid.

The paper does not say which 4,830 jobs of SDSC-BLUE it ran: parts of that many, evenly spaced. Of
Intrepid, 2,612 jobs in the paper, 1,200 are public here, in three parts; Mira stands beside it with
parts of 2,612.
"""

QUICK_LOGS = (BLUE._replace(parts=((116_269, 117_068),)), INTREPID._replace(parts=((1, 400),)))

DRAWS = (0, 1)
"""Seeds of the choice of sensitive jobs."""

EXACT, GREEDY = "branch-and-bound", "greedy"
SOLVERS = (EXACT, GREEDY)
"""The paper's two algorithms."""

OTHERS = ("best-first", "greedy-exchange")
"""Another exact solver, which differs by ties alone, and Greedy with the exchange of Martello and
Toth that the paper describes in section III.B; both where alpha and beta are in the middle."""

GENERIC = "cp-sat"
"""The generic solver that stands beside them, on one part."""

CP_SAT_WORK = 0.02
"""Deterministic time of CP-SAT for one decision: some ten milliseconds."""

VARIANTS = {
    "strict": {"backfill": "none", "scatter": "never"},
    "backfill": {"backfill": "easy", "scatter": "never"},
    "backfill, scatter": {"backfill": "easy", "scatter": "head"},
}
"""What the paper leaves open: whether jobs behind the window are backfilled, and whether a head of
the queue that no slot holds may be scattered."""

SHOWN = "backfill"
"""The variant that the tables show: contiguous always, and backfilled as the Default is."""

WINDOW, INTERVAL = 5, 30.0
"""Jobs of the window, and seconds between two decisions (section V)."""

WINDOWS = (1, 5, 10, 20, 50)


def plan(folders: Sequence[Path], *, quick: bool) -> dict[str, Any]:
    """Return what is run, as a sweep reads it."""
    shares = [SHARES[0], SHARES[-1]] if quick else list(SHARES)
    draws = list(DRAWS[:1] if quick else DRAWS)
    nobody = {"alpha": 0.0, "beta": 0.0, "draw": DRAWS[0]}
    runs: list[dict[str, Any]] = []
    for log in QUICK_LOGS if quick else LOGS:
        where = {
            "trace": str(find_log(log.file, folders)),
            "machine": log.machine,
            "jobs": [f"{first}:{last}" for first, last in log.parts],
            "execution": "contiguity",
        }
        for sensitive in ({"alpha": shares, "beta": shares, "draw": draws}, nobody):
            runs.append(where | {"policy": "easy", "settings": sensitive})
            solvers = list(SOLVERS) if sensitive is not nobody else EXACT
            window = where | {"policy": "window", "solver": solvers}
            runs += [window | {"settings": sensitive | variant} for variant in VARIANTS.values()]
        if log.name == BLUE.name:
            runs += _varied(where, shares[len(shares) // 2], draws, quick=quick)
    return {"keep": "summary", "runs": runs}


def _varied(
    where: dict[str, Any], middle: float, draws: list[int], *, quick: bool
) -> list[dict[str, Any]]:
    """Return the runs in which window, solver, interval and charges are varied."""
    windows = [WINDOW, 20] if quick else list(WINDOWS)
    sensitive = {"alpha": middle, "beta": middle, "draw": draws} | VARIANTS[SHOWN]
    of_window = where | {"policy": "window"}
    generic = sensitive | {"window": windows if quick else list(WINDOWS[1:]), "draw": draws[0]}
    return [
        of_window
        | {
            "solver": list(SOLVERS),
            "charge_decisions": [False, True],
            "settings": sensitive | {"window": windows},
        },
        of_window | {"solver": list(OTHERS), "settings": sensitive},
        of_window | {"solver": EXACT, "settings": sensitive | {"interval": 0.0}},
        of_window
        | {
            "solver": GENERIC,
            "work_limit": CP_SAT_WORK,
            "charge_decisions": [False, True],
            "jobs": where["jobs"][0],
            "settings": generic,
        },
    ]
