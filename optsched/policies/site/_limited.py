"""Which waiting jobs limits on running jobs together let start, compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.by_reference import by_reference
from optsched.compiled import kernel

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]


@by_reference
class Limited(NamedTuple):
    """How much jobs take of limits, and how much these have left."""

    first: Numbers  # entries first[job] to before first[job + 1] are those of a job
    limit: Numbers
    amount: Numbers
    binds: Flags  # whether the job has to keep the limit; otherwise it counts alone
    left: Numbers  # of each limit, which is negative where more is in use than allowed
    rest: Numbers  # the same, for the search


@kernel(allocates=False)
def count(limited: Limited, job: int, sign: int) -> None:
    """Count a job that starts (1) or ends (-1)."""
    for entry in range(limited.first[job], limited.first[job + 1]):
        limited.left[limited.limit[entry]] -= sign * limited.amount[entry]


@kernel(allocates=False)
def within(limited: Limited, jobs: Numbers, number: int, tried: Flags) -> int:
    """Keep those of the first `number` jobs that the limits let start together, in order.

    Jobs that were tried, and have not started, stay and do not count. Returns how many are kept.
    """
    rest, kept = limited.rest, 0
    for limit in range(len(rest)):
        rest[limit] = limited.left[limit]
    for at in range(number):
        job, fits = jobs[at], True
        for entry in range(limited.first[job], limited.first[job + 1]):
            if limited.binds[entry] and limited.amount[entry] > rest[limited.limit[entry]]:
                fits = False
        if not fits:
            continue
        jobs[kept] = job
        kept += 1
        if not tried[job]:
            for entry in range(limited.first[job], limited.first[job + 1]):
                rest[limited.limit[entry]] -= limited.amount[entry]
    return kept
