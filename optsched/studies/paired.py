"""Differences between runs on the same jobs, with their confidence."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

CONFIDENCE = 0.95
RESAMPLES = 2000
SEED = 0
"""Of the resampling."""

FEWEST = 3
"""Parts that an interval needs; with fewer there is none."""


class Interval(NamedTuple):
    """A mean with its confidence interval.

    Parameters
    ----------
    mean : float
    low, high : float
        Ends of the confidence interval; nan with fewer than three parts.
    parts : int
        Number of parts.
    """

    mean: float
    low: float
    high: float
    parts: int


class Improvement(NamedTuple):
    """Relative improvement over a baseline, with its confidence interval.

    Parameters
    ----------
    mean : float
        Relative improvement of the mean over the parts: 0.1 is ten percent better.
    low, high : float
        Ends of the confidence interval; nan with fewer than three parts.
    worst, best : float
        The smallest and the largest improvement of a part.
    parts : int
        Number of parts.
    pairs : int
        Number of pairs of runs, all parts together.
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


def mean_interval(values: ArrayLike, parts: ArrayLike) -> Interval:
    """Return the mean of paired values, such as differences, by a bootstrap over their parts.

    Parameters
    ----------
    values : array_like, shape (pairs,)
        A value of each pair of runs on the same jobs: their difference, or 1 where a claim is true.
    parts : array_like, shape (pairs,)
        The part of a log, or the seed, that each pair was run on. Each part counts once.
    """
    _, part, pairs = np.unique(np.asarray(parts), return_inverse=True, return_counts=True)
    means = np.bincount(part, np.asarray(values, dtype=float)) / pairs
    low, high = _ends((means,), np.mean) if len(means) >= FEWEST else (np.nan, np.nan)
    return Interval(float(means.mean()), low, high, len(means))


def _ends(samples: tuple[NDArray[np.float64], ...], of: Callable[..., Any]) -> tuple[float, float]:
    """Return the ends of the bootstrap interval of a function of paired samples."""
    if all(np.ptp(sample) == 0 for sample in samples):
        return (same := float(of(*samples))), same
    return _resampled(tuple(sample.tobytes() for sample in samples), of)


@lru_cache(maxsize=2**14)
def _resampled(samples: tuple[bytes, ...], of: Callable[..., Any]) -> tuple[float, float]:
    """Return the ends of the bootstrap interval; claims, tables and figures show the same ones."""
    from scipy.stats import bootstrap

    interval = bootstrap(
        tuple(map(np.frombuffer, samples)),
        of,
        paired=True,
        vectorized=True,
        n_resamples=RESAMPLES,
        confidence_level=CONFIDENCE,
        method="percentile",
        rng=np.random.default_rng(SEED),
    ).confidence_interval
    return float(interval.low), float(interval.high)


def percent(share: float) -> str:
    """Return a share in percent, with one digit behind the point and no minus before zero."""
    return f"{round(100 * share, 1) + 0.0:.1f}"


def signed(share: float) -> str:
    """Return a gain in percent, with its sign."""
    text = percent(share)
    return text if text.startswith("-") or text == "0.0" else f"+{text}"


def improvement(
    before: ArrayLike, after: ArrayLike, parts: ArrayLike, *, more_is_better: bool = False
) -> Improvement:
    """Compare paired values by a paired bootstrap over the parts they come from.

    What is drawn at random on the same part of a log (which jobs are sensitive, say) says little
    of other workloads. So each part gives one pair of means, and the parts are what is resampled.

    Parameters
    ----------
    before, after : array_like, shape (pairs,)
        Values of the same jobs without and with what is judged, all above 0.
    parts : array_like, shape (pairs,)
        The part of a log that each pair was run on.
    more_is_better : bool
        Whether an increase is an improvement; otherwise a decrease is.
    """
    _, part, pairs = np.unique(np.asarray(parts), return_inverse=True, return_counts=True)
    sums = [np.bincount(part, np.asarray(values, dtype=float)) for values in (before, after)]
    old, new = (total / pairs for total in sums)
    sign, gain = (1.0, _more) if more_is_better else (-1.0, _less)
    single = sign * (new / old - 1.0)
    low = high = float("nan")
    if len(old) >= FEWEST and np.ptp(single) > 0:
        low, high = _ends((old, new), gain)
    elif len(old) >= FEWEST:
        low = high = float(single[0])
    return Improvement(
        float(gain(old, new)),
        low,
        high,
        float(single.min()),
        float(single.max()),
        len(old),
        int(pairs.sum()),
    )


def _more(old: NDArray[np.float64], new: NDArray[np.float64], axis: int = -1) -> Any:
    return np.mean(new, axis=axis) / np.mean(old, axis=axis) - 1.0


def _less(old: NDArray[np.float64], new: NDArray[np.float64], axis: int = -1) -> Any:
    return -_more(old, new, axis)
