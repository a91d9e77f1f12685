"""List scheduling with conservative backfilling, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel
from optsched.models.data_placement._check import Arrays
from optsched.solvers.data_placement._node_files import (
    NodeFiles,
    begin,
    files_on,
    kept_time,
    loading_time,
    mark,
    reloading_time,
    unused_loading_time,
    visit,
)
from optsched.solvers.data_placement._profiles import (
    FOREVER,
    NONE,
    Profiles,
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
def plan_conservatively(arrays: Arrays, score: Score) -> Integers:
    """Return node, start and cores of each job, shape (jobs, 3); node -1 for an unplaced job.

    Each job, in the order of the queue, goes to the node with the least score, at the first time
    with enough cores for the whole walltime. A partial plan ends when no core is idle now.
    """
    nodes, jobs = len(arrays.available), arrays.jobs
    profiles = profiles_of(arrays.available, arrays.reserved, len(jobs))
    files = files_on(arrays)
    placed = np.zeros((len(jobs), 3), dtype=np.int64)
    for job in range(len(jobs)):
        placed[job, 0] = NONE
    bounds = np.zeros(nodes, dtype=np.int64)
    place_jobs(placed, profiles, files, arrays.occupied.copy(), bounds, arrays, score)
    return placed


@kernel(allocates=False)
def place_jobs(
    placed: Integers,
    profiles: Profiles,
    files: NodeFiles,
    starts: NDArray[np.bool_],
    bounds: Integers,
    arrays: Arrays,
    score: Score,
) -> None:
    """Place the jobs in order.

    `starts` are the nodes on which a job runs or starts now, `bounds` has space for lower bounds of
    the score on each node.
    """
    nodes, jobs, capacity = len(bounds), arrays.jobs, arrays.capacity
    running = idle = 0
    for node in range(nodes):
        running += starts[node]
        idle += bits_in(free_during(profiles, node, 0, 1))
    last_rule = (0, 0, NONE, 0, NONE, 0)
    for job in range(len(jobs)):
        if arrays.partial and idle == 0:
            break
        processors, walltime, file, load = jobs[job, 0], jobs[job, 1], jobs[job, 2], jobs[job, 3]
        mark(files, file)
        loading, reloading = score.loading, score.reloading
        if running * 100 // nodes < score.threshold:
            loading, reloading = 1, 0
        # bounds of scores remain valid for equal jobs, unless the scan decides on all nodes
        this_rule = (loading, reloading, processors, walltime, file, load)
        if this_rule != last_rule or score.whole_scan:
            for node in range(nodes):
                bounds[node] = profiles.earliest[node, processors]
                if files.marked[node] == NONE and not score.opportune:
                    bounds[node] += loading * load
        last_rule = this_rule
        chosen, start, wait = NONE, 0, 0
        least: int = FOREVER
        promising = 0 if score.whole_scan else int(bounds.argmin())
        for step in range(nodes):
            node = promising + step
            if node >= nodes:
                node -= nodes
            # of equally good nodes, the first is chosen
            limit = least + (node < chosen)
            if bounds[node] >= limit:
                continue
            at = first_window(profiles, node, processors, walltime, limit)
            weight, again = loading, reloading
            if score.opportune and at == 0:
                weight, again = 1, 0
                if score.whole_scan:
                    loading, reloading = 1, 0
            value, seconds = at, 0
            if value < limit and weight:
                seconds = loading_time(files, node, at, score.from_start)
                if seconds < 0:
                    seconds = load
                    if files.until_next:
                        seconds = unused_loading_time(files, node, load, at, score.from_start)
                value += weight * seconds
            if value < limit and again:
                kept = kept_time(files, node, at, score.in_memory)
                value += again * reloading_time(
                    files, kept, node, load, at, capacity, score.in_memory
                )
            bounds[node] = value
            if value < limit:
                chosen, start, wait, least = node, at, seconds, value
        free = free_during(profiles, chosen, start, start + walltime)
        bits = lowest_bits(free, processors)
        put(profiles, chosen, start, start + walltime, bits)
        update_earliest(profiles, chosen)
        bounds[chosen] = 0
        begin(files, chosen, start)
        visit(files, chosen, file, load, start, start + wait, start + walltime)
        placed[job, 0], placed[job, 1], placed[job, 2] = chosen, start, bits
        if start == 0:
            idle -= processors
            if not starts[chosen]:
                starts[chosen] = True
                running += 1
