"""What the paper claims, and what becomes of it under each variant."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from optsched.studies.franke_1999.evaluation import (
    BACKFILLING,
    FCFS,
    GANG,
    compared,
    keeping_up,
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

NEAR = 0.1
"""The highest load is judged by the workloads whose own is no further below it."""

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
    tables = {variant: compared(frame, variant, seed) for variant in VARIANTS}
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
            f"Mean response: {HIGH} is better than perfect backfilling",
            "slightly, over a wide range of utilisations",
            lambda table: _ratios(table, HIGH, BACKFILLING, ("mean_response",), at_most=1.0),
        ),
        _claim(
            tables,
            f"Large jobs: {MIDDLE} responds at least as well as perfect backfilling",
            "alike",
            lambda table: _ratios(
                table, MIDDLE, BACKFILLING, ("large_mean_response",), at_most=1.0
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
                tables,
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
    both = keeping_up(table, one, other)
    ratios = [both[metric, one] / both[metric, other] for metric in metrics]
    middles = " and ".join(f"{ratio.median():.2f}" for ratio in ratios)
    cases = [so for ratio in ratios for so in ratio <= at_most]
    return judge(cases, f"{middles} times in the median; at most {at_most:g} in {{so}} of {{of}}")


def _falls(table: pd.DataFrame, metric: str) -> Judgement:
    """Judge whether a mean falls from each multiprogramming level to the next."""
    kept = keeping_up(table, *GANG)
    steps = [kept[metric, high] < kept[metric, low] for low, high in pairwise(GANG)]
    ratio = (kept[metric, HIGH] / kept[metric, LOW]).median()
    cases = [so for step in steps for so in step]
    told = f"{HIGH} has {ratio:.2f} times that of {LOW} in the median"
    return judge(cases, f"{told}; falls in {{so}} of {{of}} steps")


def _keeps_up(table: pd.DataFrame, level: str) -> Judgement:
    """Judge whether the machine does what is offered, near the published load."""
    offered = table["offered", level]
    near = table[(offered <= HIGHEST) & (offered > HIGHEST - NEAR)]
    failed = offered[~table["kept_up", level].astype(bool)]
    told = f"keeps up in {{so}} of {{of}} workloads with loads of {HIGHEST - NEAR:.0%} to "
    told += f"{HIGHEST:.0%}"
    if len(failed):
        told += f"; the lowest load that it does not keep up with is {failed.min():.2f}"
    return judge(near["kept_up", level], told)
