"""The daily cycle of arrivals: more jobs at some hours than at others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optsched.traces.trace import SECONDS_PER_DAY


def clock(average: NDArray[np.float64], rates: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return when arrivals come that would come at `average` times if all hours were alike.

    Parameters
    ----------
    average : array of shape (n,)
        Times from the first midnight, in seconds.
    rates : array of shape (k,)
        Rate of arrivals in each of k equal parts of a day from midnight; positive, of mean 1.

    Returns
    -------
    array of shape (n,)
        The times at which as much has passed of a day's cycle as of an average day.
    """
    days, rest = np.divmod(average, SECONDS_PER_DAY)
    passed = np.concatenate([[0.0], np.cumsum(rates)]) / len(rates)
    bounds = np.linspace(0, SECONDS_PER_DAY, len(rates) + 1)
    return days * SECONDS_PER_DAY + np.interp(rest, passed * SECONDS_PER_DAY, bounds)
