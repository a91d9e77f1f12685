"""Improvements of one run over another on the same jobs, with their confidence."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

CONFIDENCE = 0.95
RESAMPLES = 2000
SEED = 0
"""Of the resampling."""


class Improvement(NamedTuple):
    """How much better something is than what it is compared with.

    Parameters
    ----------
    mean : float
        Relative improvement of the mean: 0.1 is ten percent better.
    low, high : float
        Ends of the confidence interval; nan with fewer than two pairs.
    worst, best : float
        The smallest and the largest improvement of a single pair.
    pairs : int
        How many pairs.
    """

    mean: float
    low: float
    high: float
    worst: float
    best: float
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
    before: ArrayLike, after: ArrayLike, *, more_is_better: bool = False
) -> Improvement:
    """Compare paired values by a paired bootstrap of the ratio of their means.

    Parameters
    ----------
    before, after : array_like, shape (pairs,)
        Values of the same jobs without and with what is judged, all above 0.
    more_is_better : bool
        Whether an increase is an improvement; otherwise a decrease is.
    """
    before, after = np.asarray(before, dtype=float), np.asarray(after, dtype=float)
    sign = 1.0 if more_is_better else -1.0

    def gain(a: NDArray[np.float64], b: NDArray[np.float64], axis: int = -1) -> Any:
        return sign * (np.mean(b, axis=axis) / np.mean(a, axis=axis) - 1.0)

    single = sign * (after / before - 1.0)
    low = high = float("nan")
    if len(before) > 1 and np.ptp(single) > 0:
        from scipy.stats import bootstrap

        interval = bootstrap(
            (before, after),
            gain,
            paired=True,
            vectorized=True,
            n_resamples=RESAMPLES,
            confidence_level=CONFIDENCE,
            method="percentile",
            rng=np.random.default_rng(SEED),
        ).confidence_interval
        low, high = float(interval.low), float(interval.high)
    elif len(before) > 1:
        low = high = float(gain(before, after))
    return Improvement(
        float(gain(before, after)), low, high, float(single.min()), float(single.max()), len(before)
    )
