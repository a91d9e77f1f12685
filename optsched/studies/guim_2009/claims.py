"""What the paper claims, and what becomes of it by whose limits are raised."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from optsched.studies.guim_2009.evaluation import by_draw
from optsched.studies.guim_2009.plan import VARIANTS
from optsched.studies.guim_2009.published import (
    BLUE,
    CTC,
    FF,
    HIGH,
    KILLED,
    LC,
    LCT,
    LCT_1,
    LCT_25,
    LCT_50,
    MED,
    RUA,
    TABULATED,
)
from optsched.studies.judging import Claim, Judgement, judge

if TYPE_CHECKING:
    import pandas as pd

REACHED = 0.8
"""A factor by which something falls counts as reached from this share of it on."""

SMALL = 0.05
"""What RUA may lose."""

SIMILAR = 0.1
"""Numbers that differ by no more are similar."""

AROUND_A_FIFTH = (0.7, 0.9)
"""What is left where something falls by around 20 %."""

SLOWDOWN = ("p95_bounded_slowdown", "mean_bounded_slowdown")
WAIT = ("p95_wait", "mean_wait")
PENALISED = ("p95_penalised_percent", "mean_penalised_percent")

CONSUMING = (LC, *LCT)
"""LessConsume in all its forms."""

Pairs = Sequence[tuple[str, str]]


def claims(frame: pd.DataFrame) -> list[Claim]:
    """Judge the claims of the paper, draw by draw.

    Parameters
    ----------
    frame : pandas.DataFrame
        What `evaluation.prepare` returns.
    """
    against_ff = [(name, FF) for name in CONSUMING]
    steps = [(high, low) for low, high in pairwise(LCT)]
    high = frame[frame["mix"] == HIGH]
    pressed = frame[frame["mix"].isin([HIGH, MED])]
    blue, ctc = high[high["centre"] == BLUE], high[high["centre"] == CTC]
    blue_med = frame[(frame["mix"] == MED) & (frame["centre"] == BLUE)]
    return [
        _falls_to(
            pressed,
            "LessConsume cuts the killed jobs by about four, HIGH and MED (section 8.1)",
            "by 4",
            (LC, FF),
            KILLED,
            4,
        ),
        _claim(
            frame,
            "A threshold of 1 has the fewest killed jobs (section 8.1)",
            "fewest",
            [(LCT_1, name) for name in TABULATED if name != LCT_1],
            (KILLED,),
            lambda ratio: ratio <= 1,
        ),
        _claim(
            frame,
            "The other thresholds halve the killed jobs of First Fit (section 8.1)",
            "halved",
            [(name, FF) for name in LCT if name != LCT_1],
            (KILLED,),
            lambda ratio: ratio <= 1 / (2 * REACHED),
        ),
        _claim(
            frame,
            "The bounded slowdown falls from each threshold to the next (section 8.1)",
            "falls",
            steps,
            SLOWDOWN,
            lambda ratio: ratio < 1,
        ),
        _claim(
            frame,
            "From threshold 1 to 1.5 it falls by around a fifth (section 8.1)",
            "20 %",
            [(LCT_50, LCT_1)],
            SLOWDOWN,
            lambda ratio: AROUND_A_FIFTH[0] <= ratio <= AROUND_A_FIFTH[1],
        ),
        _claim(
            frame,
            "The penalised runtime grows from each threshold to the next (section 8.1)",
            "grows",
            steps,
            PENALISED,
            lambda ratio: ratio > 1,
        ),
        _claim(
            frame,
            "LessConsume has a lower bounded slowdown than a threshold of 1 (section 8.1)",
            "lower",
            [(LC, LCT_1)],
            SLOWDOWN,
            lambda ratio: ratio < 1,
        ),
        _claim(
            frame,
            "Jobs wait less with LessConsume than with a threshold of 1 (section 8.1)",
            "less",
            [(LC, LCT_1)],
            WAIT,
            lambda ratio: ratio < 1,
        ),
        _claim(
            frame,
            "LessConsume, with any threshold or none, lowers the penalised runtime of First Fit "
            "(section 8.1)",
            "lower",
            against_ff,
            PENALISED,
            lambda ratio: ratio < 1,
        ),
        _claim(
            frame,
            "LessConsume, with any threshold or none, has a higher bounded slowdown than First Fit "
            "(section 8.1)",
            "a small increment",
            against_ff,
            SLOWDOWN,
            lambda ratio: ratio > 1,
        ),
        _claim(
            frame,
            "Jobs wait longer with LessConsume, with any threshold or none, than with First Fit "
            "(Tables 3 and 4)",
            "mostly longer",
            against_ff,
            WAIT,
            lambda ratio: ratio > 1,
        ),
        _claim(
            frame,
            "LessConsume performs like thresholds of 1.25 and 1.5 (section 8.1)",
            "similar",
            [(LC, LCT_25), (LC, LCT_50)],
            SLOWDOWN,
            lambda ratio: abs(ratio - 1) <= SIMILAR,
        ),
        _claim(
            frame,
            "RUA: the 95th percentile of the bounded slowdown is less than 5 % above that of First "
            "Fit (section 8.3)",
            "less than 5 %",
            [(RUA, FF)],
            SLOWDOWN[:1],
            lambda ratio: ratio <= 1 + SMALL,
        ),
        _falls_to(
            blue,
            "RUA: a fifth of First Fit's killed jobs, SDSC, HIGH (section 8.3)",
            "by 5",
            (RUA, FF),
            KILLED,
            5,
        ),
        _falls_to(
            ctc,
            "RUA: a third of First Fit's killed jobs, CTC, HIGH (section 8.3)",
            "by 3",
            (RUA, FF),
            KILLED,
            3,
        ),
        _falls_to(
            blue_med,
            "RUA: half of First Fit's penalised runtime, SDSC, MED, 95th percentile (section 8.3)",
            "by half",
            (RUA, FF),
            PENALISED[0],
            2,
        ),
        _claim(
            frame,
            "RUA: a lower penalised runtime than First Fit, 95th percentile (section 8.3)",
            "lower",
            [(RUA, FF)],
            PENALISED[:1],
            lambda ratio: ratio < 1,
        ),
        _claim(
            frame,
            "RUA: a lower bounded slowdown than LessConsume, 95th percentile (section 8.3)",
            "lower",
            [(RUA, LC)],
            SLOWDOWN[:1],
            lambda ratio: ratio < 1,
        ),
        _claim(
            frame,
            "RUA: jobs wait less than with LessConsume, 95th percentile (section 8.3)",
            "CTC, HIGH: 4,000 to 5,000 s against 7,000 s",
            [(RUA, LC)],
            WAIT[:1],
            lambda ratio: ratio < 1,
        ),
        _claim(
            frame,
            "RUA: fewer killed jobs and less penalised runtime than LessConsume (section 8.3)",
            "substantial",
            [(RUA, LC)],
            (KILLED, PENALISED[0]),
            lambda ratio: ratio < 1,
        ),
    ]


def _falls_to(
    own: pd.DataFrame, text: str, published: str, pair: tuple[str, str], metric: str, times: int
) -> Claim:
    """Judge whether a metric of one policy is that of another over so many times."""
    return _claim(
        own, text, published, [pair], (metric,), lambda ratio: ratio <= 1 / (times * REACHED)
    )


def _claim(
    own: pd.DataFrame,
    text: str,
    published: str,
    pairs: Pairs,
    metrics: Iterable[str],
    so: Callable[[float], bool],
) -> Claim:
    """Judge a claim on the ratio of metrics of two policies, in every draw of these runs.

    There is no judgement of a variant in which one of the policies was not run, or in which both
    metrics are 0 in all draws.
    """
    judgements: dict[str, Judgement] = {}
    for variant, names in VARIANTS.items():
        if not {name for pair in pairs for name in pair} <= names.keys():
            continue
        found = np.concatenate(
            [
                _ratios(own, names[one], names[other], metric)
                for metric in metrics
                for one, other in pairs
            ]
        )
        if len(found):
            middle = float(np.median(found))
            told = f"{middle:.3g} times in the median" if middle < np.inf else "where was none"
            judgements[variant] = judge(map(so, found.tolist()), told + "; so in {so} of {of}")
    return Claim(text, published, judgements)


def _ratios(own: pd.DataFrame, one: str, other: str, metric: str) -> np.ndarray:
    """Return one policy's metric over another's, draw by draw, where they are not both 0."""
    above, below = (by_draw(own, name, metric).to_numpy() for name in (one, other))
    compared = (above != 0) | (below != 0)
    with np.errstate(divide="ignore"):
        found: np.ndarray = above[compared] / below[compared]
    return found
