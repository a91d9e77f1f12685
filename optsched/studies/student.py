"""The mean of a few independent values, with its confidence."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from optsched.studies.paired import CONFIDENCE, FEWEST


class Mean(NamedTuple):
    """A mean.

    Parameters
    ----------
    mean : float
        Of the values; nan if there are none.
    low, high : float
        Ends of the confidence interval; nan with fewer than three values.
    """

    mean: float
    low: float
    high: float


def mean_of(values: ArrayLike) -> Mean:
    """Return the mean of independent values with the interval of Student's t distribution.

    Parameters
    ----------
    values : array_like, shape (values,)
        Those that are nan are left out.
    """
    known = np.asarray(values, dtype=float)
    known = known[~np.isnan(known)]
    if not len(known):
        return Mean(float("nan"), float("nan"), float("nan"))
    mean = float(known.mean())
    if len(known) < FEWEST:
        return Mean(mean, float("nan"), float("nan"))
    from scipy.special import stdtrit

    quantile = float(stdtrit(len(known) - 1, (1 + CONFIDENCE) / 2))
    half = quantile * float(known.std(ddof=1)) / len(known) ** 0.5
    return Mean(mean, mean - half, mean + half)
