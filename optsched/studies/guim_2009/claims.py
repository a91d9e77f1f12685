"""The verdicts on the claims of the paper, by whose limits are raised."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from optsched.studies.guim_2009.evaluation import by_draw
from optsched.studies.guim_2009.plan import CONTENT, VARIANTS
from optsched.studies.judging import Claim, Judgement, judge, judge_claims

if TYPE_CHECKING:
    import pandas as pd

REACHED = 0.8
"""A factor by which something falls counts as reached from this share of it on."""


def claims(frame: pd.DataFrame) -> list[Claim]:
    """Judge the claims of the paper, draw by draw."""
    return judge_claims(CONTENT, __name__, {variant: (frame, variant) for variant in VARIANTS})


def ratio(
    frame: pd.DataFrame,
    variant: str,
    pairs: Sequence[tuple[str, str]],
    metrics: Sequence[str],
    centres: Sequence[str] = (),
    mixes: Sequence[str] = (),
    **wanted: Any,
) -> Judgement | None:
    """Judge a claim on the ratio of metrics of two policies.

    A variant is not judged in which one of the policies was not run, or in which both metrics are
    0 in all draws.
    """
    names = VARIANTS[variant]
    if not {name for pair in pairs for name in pair} <= names.keys():
        return None
    own = frame[frame["centre"].isin(centres)] if centres else frame
    own = own[own["mix"].isin(mixes)] if mixes else own
    draws = by_draw(own)
    found = np.concatenate(
        [
            _ratios(draws[metric, names[a]], draws[metric, names[b]])
            for metric in metrics
            for a, b in pairs
        ]
    )
    if not len(found):
        return None
    middle = float(np.median(found))
    numbers = f"{middle:.3g} times in the median" if middle < np.inf else "where was none"
    return judge(_as(found, **wanted), numbers + "; so in {so} of {of}")


def _as(
    ratios: NDArray[np.float64],
    *,
    below: float = np.inf,
    above: float = -np.inf,
    at_most: float = np.inf,
    between: tuple[float, float] = (-np.inf, np.inf),
    within: float = np.inf,
    times: float = 0.0,
) -> NDArray[np.bool_]:
    """Return a mask of the ratios that are as claimed."""
    limit = 1 / (times * REACHED) if times else at_most
    low, high = between
    known = (ratios < below) | (below == np.inf)
    near = (np.abs(ratios - 1) <= within) | (within == np.inf)
    true: NDArray[np.bool_] = known & (ratios > above) & (ratios <= limit)
    return true & (low <= ratios) & (ratios <= high) & near


def _ratios(one: pd.Series[float], other: pd.Series[float]) -> NDArray[np.float64]:
    """Return one policy's metric over another's, draw by draw, where they are not both 0."""
    above, below = one.to_numpy(), other.to_numpy()
    compared = (above != 0) | (below != 0)
    with np.errstate(divide="ignore"):
        found: NDArray[np.float64] = above[compared] / below[compared]
    return found
