"""Waiting jobs that limits on running jobs together let start, compiled."""

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
    binds: Flags  # whether the job has to keep the limit; otherwise it only counts
    left: Numbers  # of each limit, negative where more is in use than allowed


@kernel(allocates=False)
def give_back(limited: Limited, jobs: Numbers, number: int) -> None:
    """Give back what the first `number` jobs have taken, which have ended."""
    for at in range(number):
        for entry in range(limited.first[jobs[at]], limited.first[jobs[at] + 1]):
            limited.left[limited.limit[entry]] += limited.amount[entry]


@kernel(allocates=False)
def admit(limited: Limited, jobs: Numbers, number: int) -> int:
    """Move those of the first `number` jobs to the front that limits admit, in order.

    They take their amounts at once. The others follow, in order, too. Returns how many are
    admitted.
    """
    admitted = 0
    for at in range(number):
        job, fits = jobs[at], True
        for entry in range(limited.first[job], limited.first[job + 1]):
            if limited.binds[entry] and limited.amount[entry] > limited.left[limited.limit[entry]]:
                fits = False
        if not fits:
            continue
        for entry in range(limited.first[job], limited.first[job + 1]):
            limited.left[limited.limit[entry]] -= limited.amount[entry]
        for place in range(at, admitted, -1):
            jobs[place] = jobs[place - 1]
        jobs[admitted] = job
        admitted += 1
    return admitted
