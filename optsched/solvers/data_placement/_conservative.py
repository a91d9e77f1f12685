"""A plan that fills every gap before which nobody is delayed: compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel
from optsched.solvers.data_placement._node_files import (
    files_on,
    loading_time,
    reloading_time,
    visit,
)
from optsched.solvers.data_placement._profiles import (
    bits_in,
    first_window,
    free_during,
    lowest_bits,
    notice_earliest,
    profiles_of,
    put,
)
from optsched.solvers.data_placement.rule import Score

Integers = NDArray[np.int64]


@kernel
def plan_conservatively(
    available: Integers,
    reserved: Integers,
    occupied: NDArray[np.bool_],
    jobs: Integers,
    resident: Integers,
    score: Score,
    capacity: int,
    partial: bool,
) -> Integers:
    """Return node, start and cores of each job, shape (jobs, 3); node -1 if it is left out.

    Each job, in the order of the queue, goes where its score is least, at the first time at which
    it finds cores for all of its walltime. A partial plan ends when no core is idle now.

    Parameters
    ----------
    available, reserved, occupied, resident, capacity, partial
        As in the data-placement problem.
    jobs : int64 array, shape (jobs, 4)
        Processors, walltime, file and seconds to load it.
    score : Score
        The rule.
    """
    nodes = len(available)
    profiles = profiles_of(available, reserved, len(jobs))
    files = files_on(nodes, resident, len(jobs))
    placed = np.zeros((len(jobs), 3), dtype=np.int64)
    placed[:, 0] = -1
    running = occupied.sum()
    starts = occupied.copy()
    idle = 0
    for node in range(nodes):
        idle += bits_in(free_during(profiles, node, 0, 1))
    for job in range(len(jobs)):
        if partial and idle == 0:
            break
        processors, walltime, file, load = jobs[job]
        loading, reloading = score.loading, score.reloading
        if running * 100 // nodes < score.threshold:
            loading, reloading = 1, 0
        chosen, start, wait, least = -1, 0, 0, 0
        for node in range(nodes):
            at = profiles.earliest[node, processors]
            if chosen >= 0 and at >= least:
                continue
            at = first_window(profiles, node, processors, walltime)
            if score.opportune and at == 0:
                loading, reloading = 1, 0
            seconds = loading_time(files, node, file, load, at) if loading else 0
            value = at + loading * seconds
            if chosen >= 0 and value >= least:
                continue
            if reloading:
                value += reloading * reloading_time(files, node, file, load, at, capacity)
            if chosen < 0 or value < least:
                chosen, start, wait, least = node, at, seconds, value
                if least == 0:
                    break
        free = free_during(profiles, chosen, start, start + walltime)
        bits = lowest_bits(free, processors)
        put(profiles, chosen, start, start + walltime, bits)
        notice_earliest(profiles, chosen)
        visit(files, chosen, file, load, start, start + wait, start + walltime)
        placed[job] = (chosen, start, bits)
        if start == 0:
            idle -= processors
            if not starts[chosen]:
                starts[chosen] = True
                running += 1
    return placed
