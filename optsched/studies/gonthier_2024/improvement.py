"""How much better sessions fare with one scheduler than with another."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

ALIKE = 0.01
"""Stretches no further apart than this, relatively, are equal, as in Figure 2."""

SHARES = (0.125, 0.25, 0.5, 0.75, 0.875)
"""Whiskers, box and median of Figures 8 and 10."""


class Improvement(NamedTuple):
    """The stretches of sessions with a scheduler, compared with those of another.

    An improvement of 2 is a stretch that is half of the other one.

    Parameters
    ----------
    sessions : int
        How many.
    whisker_low, box_low, median, box_high, whisker_high : float
        Quantiles of the improvement, at `SHARES`.
    mean : float
        Its mean.
    better : float
        Share of the sessions whose improvement is above 1, or 1: not worse, as the paper's box
        plots show it.
    faster, slower : float
        Shares of those that are better and worse by more than `ALIKE`.
    speedup, slowdown : float
        Mean improvements of those two; nan if there are none.
    """

    sessions: int
    whisker_low: float
    box_low: float
    median: float
    box_high: float
    whisker_high: float
    mean: float
    better: float
    faster: float
    slower: float
    speedup: float
    slowdown: float

    @property
    def equal(self) -> float:
        """The share of the sessions that are neither faster nor slower."""
        return 1 - self.faster - self.slower


def describe(ratios: NDArray[np.float64]) -> Improvement:
    """Describe improvements, the stretch before over that after, of at least one session."""
    faster, slower = ratios > 1 + ALIKE, ratios < 1 - ALIKE
    speedup, slowdown = (
        float(ratios[which].mean()) if which.any() else float("nan") for which in (faster, slower)
    )
    whisker_low, box_low, median, box_high, whisker_high = np.quantile(ratios, SHARES).tolist()
    return Improvement(
        sessions=len(ratios),
        whisker_low=whisker_low,
        box_low=box_low,
        median=median,
        box_high=box_high,
        whisker_high=whisker_high,
        mean=float(ratios.mean()),
        better=float((ratios >= 1).mean()),
        faster=float(faster.mean()),
        slower=float(slower.mean()),
        speedup=speedup,
        slowdown=slowdown,
    )
