"""Published rules for data placement: list scheduling, each by its own score."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, fields
from typing import Literal, NamedTuple, TypeGuard

import numpy as np

from optsched.arrays import Flags, Ints
from optsched.compiled import kernel
from optsched.errors import InputError
from optsched.models.data_placement import DataPlacement
from optsched.models.data_placement._check import Arrays
from optsched.models.data_placement.fields import HEAVIEST, Plan
from optsched.registry import solvers
from optsched.solvers.data_placement._nodes import (
    NodeFiles,
    begin,
    files_on,
    kept_time,
    loading_time,
    mark,
    reloading_time,
    visit,
)
from optsched.solvers.data_placement._plan import Options, Score, last_order, plan
from optsched.solvers.solver import Heuristic, Solver

START, END, BITS, NEXT = range(4)
NONE = -1
FOREVER = np.iinfo(np.int64).max


class Profiles(NamedTuple):
    """Allocations of running and planned jobs on each node."""

    head: Ints  # first allocation of each node, shape (nodes,)
    held: Ints  # start, end, cores and next allocation of the node, shape (allocations, 4)
    used: Ints
    earliest: Ints  # first time at which so many cores of a node are free at once


@kernel
def profiles_of(available: Ints, reserved: Ints, jobs: int) -> Profiles:
    """Return the allocations of running jobs, with space for `jobs` more."""
    nodes, width = available.shape
    profiles = Profiles(
        np.full(nodes, NONE, dtype=np.int64),
        np.empty((nodes * width + jobs, 4), dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.zeros((nodes, width + 1), dtype=np.int64),
    )
    for node in range(nodes):
        for core in range(width):
            if available[node, core] > 0:
                put(profiles, node, reserved[node, core], available[node, core], 1 << core)
        update_earliest(profiles, node)
    return profiles


@kernel(allocates=False)
def put(profiles: Profiles, node: int, start: int, end: int, bits: int) -> None:
    """Add an allocation, merged into one with the same start and end if possible."""
    row = profiles.head[node]
    while row != NONE:
        if profiles.held[row, START] == start and profiles.held[row, END] == end:
            profiles.held[row, BITS] |= bits
            return
        row = profiles.held[row, NEXT]
    row = profiles.used[0]
    profiles.used[0] += 1
    profiles.held[row] = (start, end, bits, profiles.head[node])
    profiles.head[node] = row


@kernel(allocates=False)
def free_during(profiles: Profiles, node: int, start: int, end: int) -> int:
    """Return a bit mask of the cores that are free from `start` to before `end`."""
    width = profiles.earliest.shape[1] - 1
    bits: int = (1 << width) - 1
    row = profiles.head[node]
    while row != NONE:
        if profiles.held[row, START] < end and start < profiles.held[row, END]:
            bits &= ~profiles.held[row, BITS]
        row = profiles.held[row, NEXT]
    return bits


@kernel(allocates=False)
def bits_in(bits: int) -> int:
    """Return the number of set bits."""
    count = 0
    while bits:
        bits &= bits - 1
        count += 1
    return count


@kernel(allocates=False)
def first_window(profiles: Profiles, node: int, processors: int, walltime: int, limit: int) -> int:
    """Return the first time, 0 or below `limit`, from which enough cores are free; else `limit`."""
    if bits_in(free_during(profiles, node, 0, walltime)) >= processors:
        return 0
    best: int = limit
    row = profiles.head[node]
    while row != NONE:
        at = profiles.held[row, END]
        if (
            profiles.earliest[node, processors] <= at < best
            and bits_in(free_during(profiles, node, at, at + walltime)) >= processors
        ):
            best = at
        row = profiles.held[row, NEXT]
    return best


@kernel(allocates=False)
def update_earliest(profiles: Profiles, node: int) -> None:
    """Recompute the first time at which each number of cores of a node is free at once."""
    earliest = profiles.earliest[node]
    count = bits_in(free_during(profiles, node, 0, 1))
    for cores in range(len(earliest)):
        earliest[cores] = 0 if cores <= count else FOREVER
    row = profiles.head[node]
    while row != NONE:
        at = profiles.held[row, END]
        count = bits_in(free_during(profiles, node, at, at + 1))
        for cores in range(count, 0, -1):
            if earliest[cores] <= at:
                break
            earliest[cores] = at
        row = profiles.held[row, NEXT]


@kernel(allocates=False)
def lowest_bits(bits: int, count: int) -> int:
    """Return the `count` lowest set bits."""
    taken = 0
    for _ in range(count):
        lowest = bits & -bits
        taken |= lowest
        bits &= ~lowest
    return taken


@kernel
def plan_conservatively(arrays: Arrays, score: Score) -> Ints:
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
    placed: Ints,
    profiles: Profiles,
    files: NodeFiles,
    starts: Flags,
    bounds: Ints,
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
                seconds = loading_time(files, node, load, at, score.from_start)
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


@dataclass(frozen=True)
class ListRule(Heuristic):
    """List scheduling in queue order, each job on the node with the least score.

    Work is counted in jobs times nodes.

    M. Gonthier, E. Larsson, L. Marchal, C. Nettelblad, S. Thibault, "Data-driven locality-aware
    batch scheduling", APDCM 2024.
    """

    # Whether a job may start before one that is ahead of it: ``holes``, only now, on cores
    # that are reserved for the job ahead; ``conservative``, at any time, without delay of
    # that job
    backfill: Literal["none", "holes", "conservative"] = "none"
    # End of a partial plan: ``full``, when every core that is free now is reserved;
    # ``short``, when fewer unreserved cores are free now than the next job requests
    stop: Literal["full", "short"] = "full"
    # Time from which the rest of a load in progress is counted: ``now``, that of the
    # decision, as in the authors' program; ``start``, the start t_k of the job, as in section
    # IV.A, case 3
    loads: Literal["now", "start"] = "now"

    models = frozenset({"data-placement"})
    work_unit = "jobs times nodes"
    seconds_per_work = 5e-9
    is_rule = True

    def __post_init__(self) -> None:
        for name in [option.name for option in fields(self) if option.type == "int"]:
            if not 0 <= (value := getattr(self, name)) <= HEAVIEST:
                raise InputError(f"{name} {value}; expected a whole number from 0 to {HEAVIEST}")

    @abstractmethod
    def score(self) -> Score:
        """Return the score of the rule."""

    def place(self, problem: DataPlacement) -> Plan:
        """Return the plan of the rule."""
        if self.backfill == "conservative":
            return Plan(*plan_conservatively(problem.arrays, self.score()).T)
        options = self.options(*problem.available.shape)
        return Plan(*plan(problem.arrays, options, widest_noticed(problem)).T)

    def options(self, nodes: int, cores: int) -> Options:
        """Return the options for the kernel, with space for a number of nodes of so many cores."""
        backfill, short = self.backfill == "holes", self.stop == "short"
        return Options(self.score(), backfill, short, last_order(nodes, cores))

    def effort(self, problem: DataPlacement) -> int:
        """Return the number of jobs times the number of nodes."""
        return len(problem.available) * len(problem.processors)


@solvers.register("fcfs")
@dataclass(frozen=True)
class FirstComeFirstServed(ListRule):
    """The node that has enough cores first (Algorithm 1 of Gonthier et al. 2024)."""

    def score(self) -> Score:
        """Return a score that does not see files."""
        return Score(loading=0)


@solvers.register("eft")
@dataclass(frozen=True)
class EarliestFinishTime(ListRule):
    """The node where the job has cores and its file first (Algorithm 2 of Gonthier et al. 2024)."""

    def score(self) -> Score:
        """Return a score in which a second of loading is one of waiting."""
        return Score(loading=1, from_start=self.loads == "start")


@solvers.register("lea")
@dataclass(frozen=True)
class LocalityAndEvictionAware(ListRule):
    """Loading counts W times, reloading the evicted once (Algorithm 3 of Gonthier et al. 2024)."""

    weight: int = 500  # w, the weight of a second of loading relative to one of waiting
    # Files of a node of which a job evicts a part: ``unused``, those that no job uses any
    # longer at its start, as in the authors' program; ``memory``, all that are in memory
    # then, in use or not, as in line 6 of Algorithm 3
    evicted: Literal["unused", "memory"] = "unused"

    def score(self) -> Score:
        """Return the score of Algorithm 3."""
        return Score(
            self.weight,
            reloading=1,
            from_start=self.loads == "start",
            in_memory=self.evicted == "memory",
        )


@solvers.register("leo")
@dataclass(frozen=True)
class LocalityAndEvictionOpportunistic(LocalityAndEvictionAware):
    """As LEA, unless the job can start now (Algorithm 4 of Gonthier et al. 2024)."""

    # Nodes that are scored as by EFT: ``node``, those on which the job can start now, as in
    # Algorithm 4; ``scan``, the first of them and all behind it, as in the authors' program
    opportune: Literal["scan", "node"] = "scan"

    def score(self) -> Score:
        """Return the score of Algorithm 4."""
        return super().score()._replace(opportune=True, whole_scan=self.opportune == "scan")


@solvers.register("lem")
@dataclass(frozen=True)
class LocalityAndEvictionMixed(LocalityAndEvictionAware):
    """As LEA while enough nodes run a job, else as EFT (Algorithm 5 of Gonthier et al. 2024)."""

    threshold: int = 100  # percentage of nodes that run a job, from which the rule is LEA

    def score(self) -> Score:
        """Return the score of Algorithm 5."""
        return super().score()._replace(threshold=self.threshold)


def is_published(solver: Solver) -> TypeGuard[ListRule]:
    """Return whether a solver is one of these rules, and not a subclass."""
    return isinstance(solver, ListRule) and type(solver).__module__ == __name__


def widest_noticed(problem: DataPlacement) -> Ints:
    """Return the cores and the node of the widest known hole."""
    if problem.noticed is not None:
        return np.array(problem.noticed)
    if problem.reserved is None:
        return np.zeros(2, dtype=np.int64)
    cores = np.count_nonzero(problem.reserved, axis=1)
    return np.array([cores.max(), cores.argmax()])
