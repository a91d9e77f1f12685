"""The verdicts on the claims of the paper, under each variant."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from optsched.studies.franke_1999.evaluation import GANG, compared, keeping_up
from optsched.studies.franke_1999.plan import CONTENT, PUBLISHED, SEEDS, VARIANTS
from optsched.studies.judging import Claim, Judgement, judge, judge_claims

if TYPE_CHECKING:
    import pandas as pd

NEAR = 0.1
"""The highest load is judged by the workloads whose own is no further below it."""


def claims(frame: pd.DataFrame) -> list[Claim]:
    """Judge the claims of the paper, workload by workload: of the first seed, and of all seeds."""
    places: dict[str, int | None] = {"On the 81 workloads of the first seed.": SEEDS[0]}
    if frame["seed"].nunique() > 1:
        places["On all seeds, workloads of the others included."] = None
    return [
        claim
        for where, seed in places.items()
        for claim in judge_claims(
            CONTENT,
            __name__,
            {variant: (compared(frame, variant, seed),) for variant in VARIANTS},
            where,
        )
    ]


def ratio(
    table: pd.DataFrame, one: str, other: str, metrics: Sequence[str], at_most: float
) -> Judgement:
    """Judge whether means are at most `at_most` times those of another strategy."""
    both = keeping_up(table, one, other)
    ratios = [both[metric, one] / both[metric, other] for metric in metrics]
    middles = " and ".join(f"{ratio.median():.2f}" for ratio in ratios)
    cases = [so for ratio in ratios for so in ratio <= at_most]
    return judge(cases, f"{middles} times in the median; at most {at_most:g} in {{so}} of {{of}}")


def falls(table: pd.DataFrame, metric: str) -> Judgement:
    """Judge whether a mean falls from each multiprogramming level to the next."""
    kept = keeping_up(table, *GANG)
    steps = [kept[metric, high] < kept[metric, low] for low, high in pairwise(GANG)]
    low, *_, high = GANG
    middle = (kept[metric, high] / kept[metric, low]).median()
    cases = [so for step in steps for so in step]
    numbers = f"{high} has {middle:.2f} times that of {low} in the median"
    return judge(cases, f"{numbers}; falls in {{so}} of {{of}} steps")


def keeps_up(table: pd.DataFrame, level: str) -> Judgement:
    """Judge whether the machine does what is offered, near the published load."""
    highest = PUBLISHED["highest"]
    offered = table["offered", level]
    near = table[(offered <= highest) & (offered > highest - NEAR)]
    failed = offered[~table["kept_up", level].astype(bool)]
    numbers = f"keeps up in {{so}} of {{of}} workloads with loads of {highest - NEAR:.0%} to "
    numbers += f"{highest:.0%}"
    if len(failed):
        numbers += f"; the lowest load that it does not keep up with is {failed.min():.2f}"
    return judge(near["kept_up", level], numbers)
