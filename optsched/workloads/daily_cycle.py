"""Daily cycle of the arrival rate."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optsched.traces.trace import SECONDS_PER_DAY


def clock(average: NDArray[np.float64], rates: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return arrival times under a daily cycle, from those at a constant rate.

    `average`: arrival times at a constant rate, in seconds from the first midnight, shape (n,);
    `rates`: arrival rate in each of k equal parts of a day from midnight; positive, of mean 1,
    shape (k,). At the result, in seconds, the integral of the rates equals the `average` times.
    """
    days, rest = np.divmod(average, SECONDS_PER_DAY)
    passed = np.concatenate([[0.0], np.cumsum(rates)]) / len(rates)
    bounds = np.linspace(0, SECONDS_PER_DAY, len(rates) + 1)
    return days * SECONDS_PER_DAY + np.interp(rest, passed * SECONDS_PER_DAY, bounds)
