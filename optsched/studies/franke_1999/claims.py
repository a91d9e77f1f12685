"""The verdicts on the claims of the paper, under each variant.

Claims on means are judged by the mean ratio on the workloads that are run with all seeds, with its
interval over the seeds: the 81 workloads of one seed have the same random numbers, so they are no
independent evidence. Whether a level keeps up is judged seed by seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from optsched.numbers import counted
from optsched.report.page import Verdict
from optsched.studies.franke_1999.evaluation import (
    GANG,
    compared,
    in_words,
    mean_ratio,
    ratios,
)
from optsched.studies.franke_1999.plan import CONTENT, PUBLISHED, SEEDS, VARIANTS
from optsched.studies.judging import (
    Claim,
    Judgement,
    judge_claims,
    judge_interval,
    judge_together,
    verdict,
)
from optsched.studies.paired import Interval

if TYPE_CHECKING:
    import pandas as pd

NEAR = 0.1
"""The highest load is judged by the workloads whose own is no further below it."""


def claims(frame: pd.DataFrame) -> list[Claim]:
    """Judge the claims of the paper."""
    cases = {
        variant: (compared(frame, variant, SEEDS[0]), compared(frame, variant, None))
        for variant in VARIANTS
    }
    return judge_claims(CONTENT, __name__, cases)


def ratio(
    first: pd.DataFrame,
    every: pd.DataFrame,
    one: str,
    other: str,
    metrics: Sequence[str],
    at_most: float,
) -> Judgement:
    """Judge whether means are at most `at_most` times those of another strategy.

    `first` has the workloads of the first seed, `every` those of all seeds.
    """
    limit = np.nextafter(np.log(at_most), np.inf)
    judged = []
    for metric in metrics:
        interval, said = _times(first, every, metric, one, other)
        of_first = ratios(first, metric, one, other)
        why = f"{said}, at most {at_most:g} in {(of_first <= at_most).sum()} of {len(of_first)}"
        judged.append(judge_interval(interval, why, below=limit))
    return judge_together(judged, "; ".join(one.why for one in judged))


def comparable(
    first: pd.DataFrame,
    every: pd.DataFrame,
    one: str,
    other: str,
    metrics: Sequence[str],
    within: float,
) -> Judgement:
    """Judge whether means differ from those of another strategy by no more than a share."""
    judged = []
    for metric in metrics:
        interval, said = _times(first, every, metric, one, other)
        bounds = {"above": np.log(1 - within), "below": np.log(1 + within)}
        judged.append(judge_interval(interval, said, **bounds))
    return judge_together(judged, "; ".join(one.why for one in judged))


def falls(first: pd.DataFrame, every: pd.DataFrame, metric: str) -> Judgement:
    """Judge whether a mean falls from each multiprogramming level to the next."""
    judged = []
    for low, high in pairwise(GANG):
        interval, said = _times(first, every, metric, high, low)
        judged.append(judge_interval(interval, f"from {low} to {high} {said}", below=0.0))
    return judge_together(judged, "; ".join(one.why for one in judged))


def _times(
    first: pd.DataFrame, every: pd.DataFrame, metric: str, one: str, other: str
) -> tuple[Interval, str]:
    """Return the mean logarithm of a ratio, and the ratio in words."""
    interval = mean_ratio(every, metric, one, other)
    middle = ratios(first, metric, one, other).median()
    return interval, f"{in_words(interval)}, of the first seed {middle:.2f} in the median"


def keeps_up(first: pd.DataFrame, every: pd.DataFrame, level: str) -> Judgement:
    """Judge whether the machine does what is offered, near the published load, seed by seed.

    Seeds that disagree decide nothing, nor does a single one.
    """
    highest = PUBLISHED["highest"]
    offered, kept = every["offered", level], every["kept_up", level]
    run = every[kept.notna() & (offered <= highest) & (offered > highest - NEAR)]
    found = set[Verdict]()
    numbers = []
    for seed, near in run.groupby(level="seed"):
        own = near["kept_up", level].astype(bool)
        loads = near["offered", level]
        found.add(verdict(own.mean()))
        numbers.append(
            f"seed {seed:.0f}: keeps up in {own.sum()} of {counted(len(own), 'workload')}, the "
            f"highest load {loads.max():.2f}"
        )
    failed = offered[kept.eq(False)]
    if len(failed):
        numbers.append(f"the lowest load that it does not keep up with is {failed.min():.2f}")
    agreed = len(found) == 1 < run.index.get_level_values("seed").nunique()
    return Judgement(found.pop() if agreed else Verdict.NOT_DECIDED, "; ".join(numbers))
