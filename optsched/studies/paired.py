"""Improvements of one run over another on the same jobs, with their confidence."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

CONFIDENCE = 0.95
RESAMPLES = 2000
SEED = 0
"""Of the resampling."""

FEWEST = 3
"""Parts that an interval needs; with fewer there is none."""


class Improvement(NamedTuple):
    """How much better something is than what it is compared with.

    Parameters
    ----------
    mean : float
        Mean over the parts of the relative improvement in each: 0.1 is ten percent better.
    low, high : float
        Ends of the confidence interval; nan with fewer than three parts.
    worst, best : float
        The smallest and the largest improvement of a part.
    parts : int
        How many parts.
    pairs : int
        How many pairs of runs, all parts together.
    """

    mean: float
    low: float
    high: float
    worst: float
    best: float
    parts: int
    pairs: int

    def __str__(self) -> str:
        return f"{percent(self.mean)}% {self.interval}".rstrip()

    @property
    def interval(self) -> str:
        """The confidence interval in percent, in brackets; empty if there is none."""
        if not np.isfinite(self.low):
            return ""
        return f"[{percent(self.low)}, {percent(self.high)}]"


def percent(share: float) -> str:
    """Return a share in percent, with one digit behind the point and no minus before zero."""
    return f"{round(100 * share, 1) + 0.0:.1f}"


def improvement(
    before: ArrayLike, after: ArrayLike, parts: ArrayLike, *, more_is_better: bool = False
) -> Improvement:
    """Compare paired values, part by part, by a paired bootstrap over the parts.

    What is drawn at random on the same part of a log (which jobs are sensitive, say) says little
    of other workloads. So each part gives one number, the ratio of the means of its pairs, and the
    parts are what is resampled.

    Parameters
    ----------
    before, after : array_like, shape (pairs,)
        Values of the same jobs without and with what is judged, all above 0.
    parts : array_like, shape (pairs,)
        The part of a log that each pair was run on.
    more_is_better : bool
        Whether an increase is an improvement; otherwise a decrease is.
    """
    before, after = np.asarray(before, dtype=float), np.asarray(after, dtype=float)
    _, part = np.unique(np.asarray(parts), return_inverse=True)
    sign = 1.0 if more_is_better else -1.0
    gains = sign * (np.bincount(part, after) / np.bincount(part, before) - 1.0)
    low = high = float("nan")
    if len(gains) >= FEWEST and np.ptp(gains) > 0:
        from scipy.stats import bootstrap

        interval = bootstrap(
            (gains,),
            np.mean,
            vectorized=True,
            n_resamples=RESAMPLES,
            confidence_level=CONFIDENCE,
            method="percentile",
            rng=np.random.default_rng(SEED),
        ).confidence_interval
        low, high = float(interval.low), float(interval.high)
    elif len(gains) >= FEWEST:
        low = high = float(gains[0])
    return Improvement(
        float(gains.mean()),
        low,
        high,
        float(gains.min()),
        float(gains.max()),
        len(gains),
        len(before),
    )
