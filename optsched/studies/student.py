"""The mean of a few independent values, with its confidence."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from optsched.studies.paired import CONFIDENCE, FEWEST


class Mean(NamedTuple):
    """A mean and the ends of its confidence interval.

    The mean of no values is nan, and so are the ends with fewer than three values.
    """

    mean: float
    low: float
    high: float


def mean_of(values: ArrayLike) -> Mean:
    """Return the mean of independent values with the interval of Student's t distribution.

    Values that are nan are left out.
    """
    known = np.asarray(values, dtype=float)
    known = known[~np.isnan(known)]
    mean = float(known.mean()) if len(known) else float("nan")
    if len(known) < FEWEST:
        return Mean(mean, float("nan"), float("nan"))
    from scipy.special import stdtrit

    quantile = float(stdtrit(len(known) - 1, (1 + CONFIDENCE) / 2))
    half = quantile * float(known.std(ddof=1)) / len(known) ** 0.5
    return Mean(mean, mean - half, mean + half)
