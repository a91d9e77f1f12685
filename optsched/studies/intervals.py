"""Means with confidence intervals from a few units, and noise floors.

A *unit* is a part of a log, a seed, or whatever else a repeated study would draw again. Below 20
units an interval is that of Student's t, from there on that of the bias-corrected and accelerated
bootstrap (BCa); below 3 there is none. ``benchmarks/interval_coverage.py`` shows why: a bootstrap
of five units covers the truth in four of five cases, where it promises nineteen of twenty.
"""

from __future__ import annotations

import warnings
from bisect import bisect_left
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

CONFIDENCE = 0.95
Values = NDArray[np.float64]
FEWEST, ENOUGH = 3, 20  # units that an interval needs, and from which on the bootstrap is used
RESAMPLES, SEED = 4000, 0
MOST_UNITS = 100_000  # that are ever said to be needed


class Interval(NamedTuple):
    """A quantity with the ends of its 95% interval, and the number of its units.

    The kind is ``t``, ``BCa``, ``range`` (not an interval of confidence: it decides nothing),
    ``exact`` (not sampled, from 0 units) or ``none``: the ends are nan.
    """

    mean: float
    low: float
    high: float
    n: int = 0
    kind: str = "exact"

    def __mul__(self, factor: float) -> Interval:  # type: ignore[override]
        low, high = sorted((self.low * factor, self.high * factor))
        return Interval(self.mean * factor, low, high, self.n, self.kind)

    def __add__(self, shift: float) -> Interval:  # type: ignore[override]
        return Interval(self.mean + shift, self.low + shift, self.high + shift, self.n, self.kind)

    @property
    def half(self) -> float:
        """Half the width: what it takes for an effect to be seen with these units."""
        return (self.high - self.low) / 2

    @property
    def how(self) -> str:
        """What the interval is, in words: ``t, n = 8`` or ``range of 3``, for instance."""
        named = {"range": f"range of {self.n}", "exact": "exact", "none": f"n = {self.n}"}
        return named.get(self.kind, f"{self.kind}, n = {self.n}")


def exactly(value: float) -> Interval:
    """Return a quantity that is not sampled, such as a count or what is proven."""
    return Interval(float(value), float(value), float(value))


def range_of(units: ArrayLike) -> Interval:
    """Return the mean of a few values with the least and the largest of them."""
    values = np.asarray(units, dtype=float)
    low, high = float(values.min()), float(values.max())
    return Interval(float(values.mean()), low, high, len(values), "range")


def mean_of(units: ArrayLike) -> Interval:
    """Return the mean of a quantity with one value a unit, a paired difference for instance."""
    values = np.asarray(units, dtype=float)
    return _interval(values[:, None], lambda means: means[..., 0], values - values.mean())


def reduction(before: ArrayLike, after: ArrayLike, weights: ArrayLike = 1.0) -> Interval:
    """Return by what share a mean falls, from values of the same units before and after.

    It is the change of the mean over all units, so a unit with long waits counts for more. For t it
    is replaced by its first-order effect, what each unit adds to it (the delta method). Values may
    have the shape (units, cells); then the result is the sum of the changes of the cells times
    `weights`: ``1 / cells`` for their mean, ``[1, -1]`` for the difference of two.
    """
    one, other = (np.asarray(v, dtype=float).reshape(len(v), -1) for v in (before, after))  # type: ignore[arg-type]
    cells = one.shape[1]
    weights = np.broadcast_to(np.asarray(weights, dtype=float), cells)
    old, new = one.mean(axis=0), other.mean(axis=0)

    def of(means: Values) -> Any:
        return (1 - means[..., cells:] / means[..., :cells]) @ weights

    with np.errstate(divide="ignore", invalid="ignore"):  # nothing falls from 0: no interval
        effects = ((one * new / old - other) / old) @ weights
        return _interval(np.hstack([one, other]), of, effects)


def difference(one: Interval, other: Interval) -> Interval:
    """Return one quantity less another of other units (square and add, after Zou and Donner).

    For quantities of the same units, take the difference of each unit first.
    """
    mean = one.mean - other.mean
    low = float(mean - np.hypot(one.mean - one.low, other.high - other.mean))
    high = float(mean + np.hypot(one.high - one.mean, other.mean - other.low))
    kind = "none" if np.isnan(low) else one.kind if one.kind == other.kind else "t"
    return Interval(mean, low, high, min(one.n, other.n), kind)


def units_needed(found: Interval) -> int:
    """Return with how many units t would exclude 0, if mean and deviation stayed as they are."""
    half = max(found.half, found.high - found.mean)  # the lower end may be cut
    deviation = half * found.n**0.5 / t_quantile(found.n)

    def enough(n: int) -> bool:
        return bool(t_quantile(n) * deviation / n**0.5 < abs(found.mean))

    return bisect_left(range(MOST_UNITS), True, lo=FEWEST, key=enough)


class Noise(NamedTuple):
    """A number from `n` runs that differ in nothing that matters, and what it varies by.

    An effect has to be larger than `smallest` to be seen: one more run stays within it in 95%.
    """

    mean: float
    smallest: float
    low: float
    high: float
    n: int


def noise_floor(runs: ArrayLike) -> Noise:
    """Measure a noise floor: the same number from runs that differ in nothing that matters.

    Such runs have submissions that are shaken by up to a minute, or a random choice among equally
    good answers, each with a seed of its own. There have to be two at least.
    """
    mean, low, high, n, _ = range_of(runs)
    smallest = t_quantile(n) * np.std(np.asarray(runs), ddof=1) * (1 + 1 / n) ** 0.5
    return Noise(mean, float(smallest), low, high, n)


def t_quantile(n: Any) -> Any:
    """Return the quantile of Student's t for the mean of n units."""
    from scipy.special import stdtrit

    return stdtrit(np.asarray(n) - 1, (1 + CONFIDENCE) / 2)


def _interval(units: Values, of: Callable[[Values], Any], effects: Values) -> Interval:
    """Return the interval of a function of the means of the columns of `units`."""
    n, value = len(units), float(of(units.mean(axis=0)))
    if n < FEWEST or not np.isfinite(value):
        return Interval(value, np.nan, np.nan, n, "none")
    if np.ptp(effects) == 0 or n < ENOUGH:
        half = float(t_quantile(n) * effects.std(ddof=1) / n**0.5) if np.ptp(effects) else 0.0
        return Interval(value, value - half, value + half, n, "t")
    from scipy.stats import bootstrap

    def statistic(*columns: Values, axis: int) -> Any:
        return of(np.stack([column.mean(axis) for column in columns], axis=-1))

    options: Any = {"paired": True, "n_resamples": RESAMPLES, "method": "BCa"}
    options["random_state"] = np.random.default_rng(SEED)
    with warnings.catch_warnings(action="ignore"):  # no interval, if a resample falls from 0
        low, high = bootstrap(tuple(units.T), statistic, **options).confidence_interval
    return Interval(value, float(low), float(high), n, "none" if np.isnan(low) else "BCa")
