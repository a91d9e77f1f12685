"""Numbers of the jobs of a run, and rows of running jobs as seen from now, for kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel

Integers = NDArray[np.int64]


class JobNumbers(NamedTuple):
    """The jobs of a run, and the capacity of a node for each resource.

    Of each job: its processors, its walltime in whole seconds, the demand of one process, shape
    (jobs, resources), its thresholds in thousandths (-1 for no limit) and the penalized times
    within them in units, shape (jobs, thresholds).
    """

    processors: Integers
    walltime: Integers
    demand: Integers
    thresholds: Integers
    limits: Integers
    capacity: Integers


@kernel
def held_from_now(
    reserved: Integers, rows: Integers, until: NDArray[np.float64], now: float
) -> Integers:
    """Return the rows of the reservation and of running jobs, which end at `until`.

    A running job holds its processors for at least a second.
    """
    first = len(reserved)
    held = np.empty((first + len(rows), rows.shape[1]), dtype=np.int64)
    for row in range(first):
        for column in range(rows.shape[1]):
            held[row, column] = reserved[row, column]
    for row in range(len(rows)):
        for column in range(rows.shape[1]):
            held[first + row, column] = rows[row, column]
        left: int = int(np.ceil(until[row] - now))
        held[first + row, 3] = max(left, 1)
    return held
