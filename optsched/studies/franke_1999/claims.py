"""What the paper claims, and what becomes of it under each variant."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from optsched.studies.franke_1999.evaluation import (
    BACKFILLING,
    FCFS,
    GANG,
    compared,
    stable,
)
from optsched.studies.franke_1999.plan import SEEDS, VARIANTS
from optsched.studies.franke_1999.published import HIGHEST
from optsched.studies.judging import Claim, Judgement, judge

if TYPE_CHECKING:
    import pandas as pd

BETTER = 0.9
"""An improvement is significant if no more than this share of a time is left."""

FAR = 0.5
"""Far superior is what leaves no more than this share."""

ALIKE = 0.1
"""Two times are alike if they differ by no more than this share."""

KEPT_UP = 0.97
"""A machine keeps up if it does at least this share of the offered work while jobs arrive."""

LOW, MIDDLE, HIGH = GANG
"""The multiprogramming levels."""


def claims(frame: pd.DataFrame, seed: int | None = SEEDS[0]) -> list[Claim]:
    """Judge the claims of the paper, workload by workload.

    Parameters
    ----------
    frame : pandas.DataFrame
        What `evaluation.prepare` returns.
    seed : int or None
        Of the workloads; all if none.
    """
    tables = {variant: stable(compared(frame, variant, seed)) for variant in VARIANTS}
    everything = {variant: compared(frame, variant, seed) for variant in VARIANTS}
    times = {"mean_response": "response time", "mean_wait": "wait time"}
    return [
        _claim(
            tables,
            "Backfilling can be very effective, compared with FCFS",
            "response and wait fall",
            lambda table: _ratios(table, BACKFILLING, FCFS, tuple(times), at_most=BETTER),
        ),
        *(
            _claim(
                tables,
                f"Gang scheduling: the mean {what} falls as the level rises",
                "from MPL 2 to 3 to 5",
                lambda table, metric=metric: _falls(table, metric),
            )
            for metric, what in times.items()
        ),
        *(
            _claim(
                tables,
                f"Even {level} is a significant improvement over FCFS",
                "response falls",
                lambda table, level=level: _ratios(
                    table, level, FCFS, ("mean_response",), at_most=BETTER
                ),
            )
            for level in (LOW, MIDDLE)
        ),
        _claim(
            tables,
            f"Mean response: perfect backfilling is slightly worse than {HIGH}",
            "over a wide range of utilisations",
            lambda table: _ratios(table, HIGH, BACKFILLING, ("mean_response",), at_most=1.0),
        ),
        _claim(
            tables,
            f"Large jobs: perfect backfilling responds only as well as {MIDDLE}",
            "alike, or worse",
            lambda table: _ratios(
                table, MIDDLE, BACKFILLING, ("large_mean_response",), at_most=1 + ALIKE
            ),
        ),
        *(
            _claim(
                tables,
                f"Large jobs: the wait with {level} is far below that of backfilling",
                "far superior",
                lambda table, level=level: _ratios(
                    table, level, BACKFILLING, ("large_mean_wait",), at_most=FAR
                ),
            )
            for level in (MIDDLE, HIGH)
        ),
        *(
            _claim(
                everything,
                f"{level} allows utilisations of up to {HIGHEST:.0%}",
                "up to 0.90",
                lambda table, level=level: _keeps_up(table, level),
            )
            for level in (LOW, MIDDLE)
        ),
    ]


def _claim(tables, text, published, judgement) -> Claim:  # type: ignore[no-untyped-def]
    return Claim(text, published, {name: judgement(table) for name, table in tables.items()})


def _ratios(
    table: pd.DataFrame, one: str, other: str, metrics: tuple[str, ...], *, at_most: float
) -> Judgement:
    """Judge whether means are at most so many times those of another strategy."""
    ratios = [table[metric, one] / table[metric, other] for metric in metrics]
    middles = " and ".join(f"{ratio.median():.2f}" for ratio in ratios)
    cases = [so for ratio in ratios for so in ratio <= at_most]
    return judge(cases, f"{middles} times in the median; at most {at_most:g} in {{so}} of {{of}}")


def _falls(table: pd.DataFrame, metric: str) -> Judgement:
    """Judge whether a mean falls from each multiprogramming level to the next."""
    steps = [table[metric, high] < table[metric, low] for low, high in pairwise(GANG)]
    ratio = (table[metric, HIGH] / table[metric, LOW]).median()
    cases = [so for step in steps for so in step]
    told = f"{HIGH} has {ratio:.2f} times that of {LOW} in the median"
    return judge(cases, f"{told}; falls in {{so}} of {{of}} steps")


def _keeps_up(table: pd.DataFrame, level: str) -> Judgement:
    """Judge whether the machine does what is offered, up to the published load."""
    offered = table["offered", level]
    bearable = table[offered <= HIGHEST]
    done = bearable["utilization", level] / bearable["offered", level]
    highest = bearable["utilization", level].max()
    told = f"keeps up in {{so}} of {{of}} workloads with a load of at most {HIGHEST:.0%}"
    return judge(done >= KEPT_UP, f"{told}; highest utilisation {highest:.2f}")
