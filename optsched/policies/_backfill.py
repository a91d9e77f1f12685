"""The backfilling pass over a long queue, compiled; `reservation.backfill` is its statement."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel


@kernel
def select(
    order: NDArray[np.int64],
    sizes: NDArray[np.float64],
    times: NDArray[np.float64],
    free: int,
    longest: float,
    extra: float,
) -> tuple[NDArray[np.int64], float]:
    """Return the positions that start, in order, and what is left of the extra processors.

    Parameters
    ----------
    order : int64 array, shape (candidates,)
        Positions in the order in which they are tried.
    sizes, times : float64 array, shape (jobs,)
        Processors and requested time of each job.
    free : int
        Processors that are free now.
    longest : float
        Seconds until the shadow time.
    extra : int
        Extra processors at the shadow time.
    """
    chosen = np.empty(len(order), dtype=np.int64)
    count = 0
    for position in order:
        size = sizes[position]
        if size > free:
            continue
        if times[position] > longest:
            if size > extra:
                continue
            extra -= size
        free -= size
        chosen[count] = position
        count += 1
        if free == 0:
            break
    return chosen[:count], extra
