"""List scheduling of a queue by a score, compiled."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from optsched.arrays import Flags, Ints
from optsched.compiled import kernel
from optsched.models.data_placement._check import Arrays
from optsched.solvers.data_placement._nodes import (
    ALIKE,
    NODE,
    NodeFiles,
    begin,
    files_on,
    free_now,
    from_holes,
    in_holes,
    kept_time,
    loading_time,
    mark,
    reloading_time,
    sort_cores,
    take_by_number,
    take_first,
    take_from_holes,
    visit,
)


class Score(NamedTuple):
    """Weights of the terms that are added to the start of a job on a node."""

    loading: int  # weight of a second of loading
    reloading: int = 0  # weight of a second of reloading evicted files
    opportune: bool = False  # whether only loading counts, once, on nodes that are free now (LEO)
    # Whether it then does so on all nodes behind the first that is free now, too
    whole_scan: bool = False
    threshold: int = 0  # percentage of nodes with jobs, below which only loading counts, once (LEM)
    # Whether the rest of a load in progress is counted from the start of the job, or from now
    from_start: bool = False
    # Whether all files in memory count as evicted, or those that no job uses any longer
    in_memory: bool = False


NOWHERE = -1
FOREVER = np.iinfo(np.int64).max
NEVER = FOREVER // 2
GROUP = 4
"""Nodes that share a bound of their scores."""


class Options(NamedTuple):
    """The options of a rule."""

    score: Score  # score of the rule
    backfill: bool  # whether jobs may start now in holes
    # Whether a partial plan ends at the first job that requests more than the idle cores
    short: bool
    # Keys of the cores in any order, overwritten by those of a plan, sorted; (nodes, cores)
    sorted_keys: Ints


class Choice(NamedTuple):
    """Node, start and load time of a job, with its number of cores from holes, -1 for no holes."""

    node: int
    start: int
    load: int
    holes: int


class PartialPlan(NamedTuple):
    """Arrays of a partial plan, which grow with its jobs."""

    keys: Ints  # sorted cores of each node, shape (nodes, cores)
    reserved: Ints  # as in the data-placement problem, shape (nodes, cores)
    holes: Ints  # number of cores of each node in holes, shape (nodes,)
    widest: Ints  # cores and node of the widest known hole, shape (2,)
    bounds: Ints  # lower ones of the score on each node, for jobs equal to the last one
    group_bounds: Ints  # the least bound of each group of `GROUP` consecutive nodes
    group_holes: Flags  # whether one of these nodes may have a hole
    # Lower bounds of the time in seconds at which one core, two cores ... of a node of each group
    # are free; valid, as cores only become free later while the plan grows; (cores, groups)
    group_starts: Ints
    # Least walltime of the jobs of at most so many cores that fit into no hole. Once no other
    # core is free, holes only shrink: a job that did not fit never fits again.
    hopeless: Ints
    kept: Ints  # `kept_time` of a node once 1, 2 ... cores are free, or -1; (nodes, cores)
    scratch: Ints  # space for the cores of a node, shape (cores,)


@lru_cache(maxsize=4)
def last_order(nodes: int, cores: int) -> Ints:
    """Return keys of cores as the last plan of so many left them: any order is a beginning."""
    return np.tile(np.arange(cores, dtype=np.int64), (nodes, 1))


@kernel
def plan(arrays: Arrays, options: Options, widest: Ints) -> Ints:
    """Return node, start and cores of each job, shape (jobs, 3); node -1 for an unplaced job."""
    score, backfill, short, sorted_keys = options
    available, jobs = arrays.available, arrays.jobs
    nodes, width = available.shape
    sort_cores(sorted_keys, available)
    keys = sorted_keys.copy()
    reserved = arrays.reserved.copy()
    holes = np.zeros(nodes, dtype=np.int64)
    group_holes = np.zeros((nodes - 1) // GROUP + 1, dtype=np.bool_)
    if backfill:
        for node in range(nodes):
            holes[node] = in_holes(reserved[node], 1)
            group_holes[node // GROUP] |= holes[node] > 0
    files = files_on(arrays)
    placed = np.zeros((len(jobs), 3), dtype=np.int64)
    for job in range(len(jobs)):
        placed[job, 0] = NOWHERE
    state = PartialPlan(
        keys,
        reserved,
        holes,
        widest,
        np.zeros(nodes, dtype=np.int64),
        np.zeros((nodes - 1) // GROUP + 1, dtype=np.int64),
        group_holes,
        starts_of_groups(keys),
        np.full(width + 1, FOREVER),
        np.full((nodes, width), -1),
        np.empty(width, dtype=np.int64),
    )
    place_jobs(placed, state, files, arrays, score, backfill, short)
    return placed


@kernel(allocates=False)
def place_jobs(
    placed: Ints,
    state: PartialPlan,
    files: NodeFiles,
    arrays: Arrays,
    score: Score,
    backfill: bool,
    short: bool,
) -> None:
    """Place the jobs in order; the arguments are those of `plan`."""
    occupied, jobs, capacity = arrays.occupied, arrays.jobs, arrays.capacity
    keys, reserved, holes, widest, bounds, group_bounds, group_holes = state[:7]
    hopeless, kept, scratch = state[8:]
    nodes, width = keys.shape
    running, idle = 0, 0
    for node in range(nodes):
        running += occupied[node]
        idle += free_now(keys[node])
    last_rule = (score, NOWHERE, False, 0, 0, NOWHERE, 0)
    for job in range(len(jobs)):
        processors, walltime, file, load = jobs[job, 0], jobs[job, 1], jobs[job, 2], jobs[job, 3]
        full = arrays.partial and (idle < processors if short else idle == 0)
        if full and not backfill:
            break
        rule = score
        if running * 100 // nodes < score.threshold:
            rule = Score(1, 0, False, False, 0, score.from_start, False)
        turning_node = NOWHERE
        if rule.whole_scan:
            turning_node = 0 if full else first_free(keys, processors)
        # walltimes matter to holes only
        this_rule = (rule, turning_node, full, processors, walltime if backfill else 0, file, load)
        mark(files, file)
        if this_rule != last_rule:
            bounds[:] = 0
            bound_groups(state, files, jobs[job], rule, turning_node, full)
        last_rule = this_rule
        if full:
            if processors > widest[0] or walltime >= hopeless[processors]:
                continue
        else:
            hopeless[:] = FOREVER
        uses = (full, backfill)
        choice = best_node(state, files, jobs[job], rule, turning_node, capacity, uses)
        if choice.node == NOWHERE:
            for wide in range(processors, width + 1):
                hopeless[wide] = min(hopeless[wide], walltime)
            continue
        node, start = choice.node, choice.start
        if not full:
            visit(files, node, file, load, start, start + choice.load, start + walltime)
        begin(files, node, start)
        bounds[node] = group_bounds[node // GROUP] = 0
        if start == 0 and not occupied[node] and keys[node, width - 1] < 64:
            running += 1
        for core in range(width):
            kept[node, core] = -1
        free = free_now(keys[node])
        if choice.holes >= 0:
            bits = take_from_holes(keys[node], reserved[node], processors, choice.holes, walltime)
        elif backfill:
            bits = take_by_number(keys[node], reserved[node], scratch, processors, start, walltime)
        else:
            bits = take_first(keys[node], processors, start + walltime)
        if backfill:
            holes[node] = in_holes(reserved[node], 1)
            group_holes[node // GROUP] |= holes[node] > 0
            if node == widest[1]:
                widest[1] = holes.argmax()
                widest[0] = holes[widest[1]]
        idle -= free - free_now(keys[node])
        placed[job, 0], placed[job, 1], placed[job, 2] = node, start, bits


@kernel
def starts_of_groups(keys: Ints) -> Ints:
    """Return the time at which one core, two cores ... of a node of each group are free."""
    nodes, width = keys.shape
    starts = np.full((width, (nodes - 1) // GROUP + 1), FOREVER)
    for core in range(width):
        for node in range(nodes):
            group = node // GROUP
            starts[core, group] = min(starts[core, group], keys[node, core] >> 6)
    return starts


@kernel(allocates=False)
def bound_groups(
    state: PartialPlan, files: NodeFiles, job: Ints, score: Score, turning_node: int, full: bool
) -> None:
    """Bound the score of a job on each group: a node without the file of the job must load it."""
    group_bounds, group_starts = state.group_bounds, state.group_starts[job[0] - 1]
    file, load = job[2], job[3]
    for group in range(len(group_bounds)):
        start = 0 if state.group_holes[group] else NEVER if full else group_starts[group]
        opportune = 0 <= turning_node < (group + 1) * GROUP or (
            score.opportune and not score.whole_scan and start == 0
        )
        group_bounds[group] = start + (min(score.loading, 1) if opportune else score.loading) * load
    entry = files.buckets[file % len(files.buckets)]
    while entry != NOWHERE:
        group = files.entries[entry, NODE] // GROUP
        start = 0 if state.group_holes[group] else NEVER if full else group_starts[group]
        group_bounds[group] = min(group_bounds[group], start)
        entry = files.entries[entry, ALIKE]


@kernel(allocates=False)
def best_node(
    state: PartialPlan,
    files: NodeFiles,
    job: Ints,
    score: Score,
    turning_node: int,
    capacity: int,
    uses: tuple[bool, bool],
) -> Choice:
    """Return the first node with the least score for a job, or node -1 if the job does not fit.

    From `turning_node` on, only loading counts, once (LEO); -1 for no such node. With LEO that also
    holds where the job starts now. `uses` is whether the job must start now in holes only, and
    whether it may use holes. The bounds of `state` are raised. They stay valid for equal jobs, each
    of which changes the score of one node only. The group with the least bound comes first, so that
    most others are skipped.
    """
    keys, reserved, holes, _, bounds, group_bounds, _, group_starts, _, kept, _ = state
    processors, walltime, load = job[0], job[1], job[3]
    full, backfill = uses
    best = Choice(NOWHERE, 0, 0, -1)
    least: int = NEVER
    first = 0
    for group in range(1, len(group_bounds)):
        if group_bounds[group] < group_bounds[first]:
            first = group
    for turn in range(-1, len(group_bounds)):
        group = first if turn < 0 else turn
        begin_node = group * GROUP
        # of equally good nodes, the first is chosen
        limit = least + (begin_node < best.node)
        if group_bounds[group] >= limit or turn == first:
            continue
        least_bound: int = FOREVER
        earliest: int = FOREVER
        end_node = min(begin_node + GROUP, len(keys))
        promising = begin_node
        for node in range(begin_node + 1, end_node):
            if bounds[node] < bounds[promising]:
                promising = node
        for step in range(end_node - begin_node):
            node = promising + step
            if node >= end_node:
                node -= end_node - begin_node
            limit = least + (node < best.node)
            if bounds[node] < limit:
                bound: int = FOREVER
                at = keys[node, processors - 1] >> 6
                earliest = min(earliest, at)
                for hole in range(1 if full else 0, 2 if backfill else 1):
                    of_holes = -1
                    if hole:
                        if holes[node] == 0:
                            break
                        of_holes = from_holes(keys[node], reserved[node], processors, walltime)
                        if of_holes < (processors if full else 0):
                            break
                        at = 0
                    opportune = 0 <= turning_node <= node or (
                        score.opportune and not score.whole_scan and at == 0
                    )
                    loading = 1 if opportune else score.loading
                    reloading = 0 if opportune else score.reloading
                    value, wait = at, 0
                    if value < limit and loading:
                        wait = loading_time(files, node, load, at, score.from_start)
                        value += loading * wait
                    if value < limit and reloading:
                        seconds = kept[node, processors - 1]
                        if hole or seconds < 0:
                            seconds = kept_time(files, node, at, score.in_memory)
                        if not hole:
                            kept[node, processors - 1] = seconds
                        value += reloading * reloading_time(
                            files, seconds, node, load, at, capacity, score.in_memory
                        )
                    if value < limit:
                        best, least = Choice(node, at, wait, of_holes), value
                        limit = value
                    bound = min(bound, value)
                bounds[node] = bound
            else:
                earliest = min(earliest, group_starts[processors - 1, group])
            least_bound = min(least_bound, bounds[node])
        group_bounds[group] = least_bound
        group_starts[processors - 1, group] = earliest
    return best


@kernel(allocates=False)
def first_free(keys: Ints, processors: int) -> int:
    """Return the first node with enough cores that are free now."""
    for node in range(len(keys)):
        if keys[node, processors - 1] < 64:
            return node
    return NOWHERE
