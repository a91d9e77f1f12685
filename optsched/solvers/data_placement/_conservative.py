"""List scheduling with conservative backfilling, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel
from optsched.solvers.data_placement._node_files import (
    begin,
    files_on,
    loading_time,
    mark,
    reloading_time,
    unused_loading_time,
    visit,
)
from optsched.solvers.data_placement._profiles import (
    NONE,
    bits_in,
    first_window,
    free_during,
    lowest_bits,
    profiles_of,
    put,
    update_earliest,
)
from optsched.solvers.data_placement.score import Score

Integers = NDArray[np.int64]


@kernel
def plan_conservatively(
    available: Integers,
    reserved: Integers,
    occupied: NDArray[np.bool_],
    jobs: Integers,
    resident: Integers,
    started: NDArray[np.bool_],
    until_next: bool,
    score: Score,
    capacity: int,
    partial: bool,
) -> Integers:
    """Return node, start and cores of each job, shape (jobs, 3); node -1 for an unplaced job.

    Each job, in the order of the queue, goes to the node with the least score, at the first time
    with enough cores for the whole walltime. A partial plan ends when no core is idle now.

    A job is a row of processors, walltime, file and load time, in seconds; `until_next` is
    whether files are kept until the next start. The other arguments are fields of the problem.
    """
    nodes = len(available)
    profiles = profiles_of(available, reserved, len(jobs))
    files = files_on(resident, started, until_next, len(jobs))
    placed = np.zeros((len(jobs), 3), dtype=np.int64)
    placed[:, 0] = NONE
    running = occupied.sum()
    starts = occupied.copy()
    bounds = np.zeros(nodes, dtype=np.int64)
    last_rule = (score.loading, score.reloading)
    idle = 0
    for node in range(nodes):
        idle += bits_in(free_during(profiles, node, 0, 1))
    for job in range(len(jobs)):
        if partial and idle == 0:
            break
        processors, walltime, file, load = jobs[job]
        mark(files, file)
        loading, reloading = score.loading, score.reloading
        if running * 100 // nodes < score.threshold:
            loading, reloading = 1, 0
        # bounds of scores remain valid for equal jobs, except under LEO
        this_rule = (loading, reloading)
        alike = this_rule == last_rule and not score.opportune
        if not alike or job == 0 or (jobs[job] != jobs[job - 1]).any():
            for node in range(nodes):
                bounds[node] = profiles.earliest[node, processors]
        last_rule = this_rule
        chosen, start, wait = NONE, 0, 0
        least: int = np.iinfo(np.int64).max
        for node in range(nodes):
            if bounds[node] >= least:
                continue
            at = first_window(profiles, node, processors, walltime)
            if score.opportune and at == 0:
                loading, reloading = 1, 0
            value, seconds = at, 0
            if value < least and loading:
                seconds = loading_time(files, node, at)
                if seconds < 0:
                    seconds = (
                        unused_loading_time(files, node, load, at) if files.until_next else load
                    )
                value += loading * seconds
            if value < least and reloading:
                value += reloading * reloading_time(files, node, file, load, at, capacity)
            bounds[node] = value
            if value < least:
                chosen, start, wait, least = node, at, seconds, value
                if least == 0:
                    break
        free = free_during(profiles, chosen, start, start + walltime)
        bits = lowest_bits(free, processors)
        put(profiles, chosen, start, start + walltime, bits)
        update_earliest(profiles, chosen)
        bounds[chosen] = 0
        begin(files, chosen, start)
        visit(files, chosen, file, load, start, start + wait, start + walltime)
        placed[job] = (chosen, start, bits)
        if start == 0:
            idle -= processors
            if not starts[chosen]:
                starts[chosen] = True
                running += 1
    return placed
