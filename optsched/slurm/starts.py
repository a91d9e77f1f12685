"""Starts: the earliest ones, those that are kept for blocked jobs, and those that Slurm plans.

As Slurm's backfill scheduler does, the first jobs that do not fit now have the earliest start and
the nodes that running jobs leave them. A job of the plan that would still run then gets only what
they leave there: each reservation is some more resources of the problem.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from optsched.arrays import Ints
from optsched.models.node_placement.problem import NodePlacement, Placements
from optsched.numbers import short
from optsched.sites.job_request import UnplaceableError, column
from optsched.slurm.access import longest, partitions_of
from optsched.slurm.order import rank
from optsched.slurm.queue import QueuedJob, SlurmQueue
from optsched.slurm.requests import Request, alternatives, blocked_by_rule, licences_of
from optsched.slurm.running import Held, end_of, started_of, supply_at
from optsched.slurm.snapshot import Row, SlurmSnapshot, placement_fields, table
from optsched.slurm.supply import Supply
from optsched.solvers.solving import solve


def earliest_start(job: QueuedJob, queue: SlurmQueue, supply: Supply) -> int | None:
    """Return the earliest time at which a pending job fits, in seconds since 1970.

    Running jobs end at their time limits, and no other job starts meanwhile. None if it never fits,
    or if a rule keeps it from starting of which the end is not known.
    """
    times, of_reservations = changes(job, queue, supply)

    def fits(time: int) -> bool:
        return could_start(job, queue, supply_at(supply, queue, time))

    return first_fit(times, of_reservations, fits)


def could_start(job: QueuedJob, queue: SlurmQueue, supply: Supply) -> bool:
    """Return whether a job fits on what is free, and no rule keeps it from starting then."""
    if blocked_by_rule(job, supply, started_of(job, queue, supply)):
        return False
    try:
        return any(each.fits(supply) for each in alternatives(job, supply))
    except UnplaceableError:
        return False


def first_fit(
    times: Sequence[int], of_reservations: Container[int], fits: Callable[[int], bool]
) -> int | None:
    """Return the first of ascending times that fits; None if none does.

    Whether a job fits changes only at `changes`. Between two of reservations only more is free with
    time, so there the first one is found by bisection.
    """
    first = 0
    for last, time in enumerate(times):
        if last + 1 == len(times) or times[last + 1] in of_reservations:
            if fits(time):
                return times[bisect_left(times, True, first, last, key=fits)]
            first = last + 1
    return None


def changes(job: QueuedJob, queue: SlurmQueue, supply: Supply) -> tuple[list[int], set[int]]:
    """Return the times at which it may change whether a job fits, now first, and some of them.

    These are those of its deadline and of reservations. The others are the ends of running jobs,
    and those of its own begin time and of its wait for fewer switches.
    """
    now = supply.time
    ends = {end for each in queue.running if (end := end_of(each, now)) < math.inf}
    if job.eligible is not None:
        ends |= {job.eligible, job.eligible + job.switches_wait}
    limits = {each.max_time for each in supply.site.partitions if each.name in job.partitions}
    limits = limits if job.limit is None else {job.limit}
    both = {each.end for each in supply.reservations}
    if job.deadline is not None:
        both |= {job.deadline - (job.least_time or limit) for limit in limits}
    both |= {each.start - limit for each in supply.reservations for limit in (0, *limits)}
    both |= {*supply.closing.tolist()}
    # a job that ends when a reservation begins is not in its way, one second later it is
    seconds = {math.floor(at) + late for at in both if abs(at) < math.inf for late in (0, 1)}
    ends |= {now + 1} if supply.completing.any() else set()
    return sorted({now, *(math.ceil(at) for at in {*ends, *seconds} if at > now)}), seconds


PLACED_BY = "tree-best-fit"  # the rule by which a blocked job gets its nodes


@dataclass(frozen=True)
class Reserved:
    """The start of a blocked job that the plan does not delay."""

    row: Row
    start: int  # in seconds since 1970, as the next
    end: float
    request: Request
    at: Mapping[int, int]  # chunks on each of its nodes
    supply: Supply  # what is free then, as running jobs end at their limits

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the nodes."""
        names = self.supply.site.nodes
        return tuple(names[node] for node in sorted(self.at))

    def taken(self, columns: Sequence[str]) -> Ints:
        """Return the amounts of some columns that the job takes, shape (nodes, columns)."""
        demand = np.array([self.request.demand[name] for name in columns], dtype=np.int64)
        found = np.zeros((len(self.supply.site.nodes), len(columns)), dtype=np.int64)
        for node, chunks in self.at.items():
            found[node] = chunks * demand
        return found


def reserved(
    posed: SlurmSnapshot, queue: SlurmQueue, supply: Supply, number: int
) -> tuple[Reserved, ...]:
    """Return the reservations of the first `number` jobs that do not fit now, in their order."""
    found: list[Reserved] = []
    for row in sorted(posed.rows, key=lambda row: rank(row.job, supply)) if number else ():
        if len(found) == number:
            break
        if not row.request.fits(supply) and (one := reserve(row, queue, supply, found)):
            found.append(one)
    return tuple(found)


def starts_now(row: Row, nodes: Sequence[int], supply: Supply) -> Reserved:
    """Return the reservation of a job that starts now; `nodes` has a node for each chunk."""
    end = supply.time + _longest(row.job, supply)
    return Reserved(row, supply.time, end, row.request, Counter(nodes), supply)


def reserve(
    row: Row, queue: SlurmQueue, supply: Supply, before: Sequence[Reserved]
) -> Reserved | None:
    """Return the earliest reservation of a job beside others; None if it is not known."""
    job, now, longest = row.job, supply.time, _longest(row.job, supply)
    times, of_reservations = changes(job, queue, supply)
    for each in before:
        ends = {math.ceil(each.end)} if each.end < math.inf else set()
        if each.start > now and longest < math.inf:
            late = math.floor(each.start - longest)
            of_reservations = of_reservations | ends | {late, late + 1}
            ends |= {late, late + 1}
        times = sorted({*times, *(at for at in ends if at > now)})

    def then(time: int) -> Supply:
        beside = [each for each in before if time < each.end and each.start < time + longest]
        return _beside_them(supply_at(supply, queue, time), beside)

    def fits(time: int) -> bool:
        return could_start(job, queue, then(time))

    start = first_fit(times, of_reservations, fits)
    place = None if start is None else _place(row, then(start))
    if start is None or place is None:
        return None
    return Reserved(row, start, start + longest, *place, supply_at(supply, queue, start))


def _beside_them(then: Supply, others: Sequence[Reserved]) -> Supply:
    """Return the supply without the amounts, nodes and licences of some reservations."""
    free, busy, taken = then.free.copy(), then.busy.copy(), then.taken.copy()
    licences = dict(then.licences)
    for one in others:
        nodes = [*one.at]
        free -= one.taken(then.site.resources)
        busy[nodes] = True
        taken[nodes] |= one.request.exclusive
        for name, count in one.request.licences.items():
            licences[name] -= count
    free = np.maximum(0, free)
    licences = {name: max(0, count) for name, count in licences.items()}
    return replace(then, free=free, busy=busy, taken=taken, licences=licences)


def _place(row: Row, then: Supply) -> tuple[Request, Mapping[int, int]] | None:
    """Return the request of a job and its chunks on nodes, if it fits alone on what is free."""
    try:
        ways = [each for each in alternatives(row.job, then) if each.fits(then)]
    except UnplaceableError:
        return None
    for request in ways:
        problem = NodePlacement(**placement_fields([replace(row, request=request)], then))
        nodes = solve(problem, PLACED_BY, explain=False).solution
        if nodes is not None and nodes.nodes[0]:
            return request, Counter(nodes.nodes[0])
    return None


def with_reserved(posed: SlurmSnapshot, supply: Supply, kept: Sequence[Reserved]) -> SlurmSnapshot:
    """Return a problem in which no job delays those that have reservations."""
    problem = posed.problem
    for one in kept:
        late = np.array([supply.time + _longest(r.job, supply) > one.start for r in posed.rows])
        late &= np.array([row.label != one.row.label for row in posed.rows])
        if late.any():
            problem = _beside(problem, posed.rows, supply, one, late)
    return replace(posed, problem=problem)


def _beside(
    problem: NodePlacement, rows: Sequence[Row], supply: Supply, one: Reserved, late: Ints
) -> NodePlacement:
    """Return a problem in which jobs that run for longer than until a reservation leave it room."""
    named = [name for name in problem.resources if name in supply.columns]
    places = [supply.columns.index(name) for name in named]
    here = np.zeros(len(supply.site.nodes), dtype=bool)
    here[list(one.at)] = True
    left = np.maximum(0, one.supply.amounts[:, places] - one.taken(named))
    if one.request.exclusive:
        left[:] = 0
    most = supply.capacity[:, places].max(axis=0, initial=0)
    free = np.where(here[:, None], left, most)
    demand = table([row.request.demand for row in rows], named) * late[:, None]
    # a job that shares its nodes with none is on none of them
    alone = np.zeros(len(rows), dtype=np.int64)
    alone[list(problem.exclusive)] = 1
    chunks = int(problem.chunks.max(initial=1))
    licences = sorted(one.request.licences)
    rest = [max(0, one.supply.licences[name] - one.request.licences[name]) for name in licences]
    asked = table([row.request.licences for row in rows], licences) * late[:, None]
    more = [f"{name}{beside(one)}" for name in (*named, "nodes")]
    return replace(
        problem,
        resources=(*problem.resources, *more),
        free=np.hstack([problem.free, free, np.where(here, 0, chunks)[:, None]]),
        demand=np.hstack([problem.demand, demand, (alone * late)[:, None]]),
        licences=np.concatenate([problem.licences, np.array(rest, dtype=np.int64)]),
        licences_of=np.hstack([problem.licences_of, asked]),
    )


def beside(one: Reserved) -> str:
    """Return how the names of the resources end that a reservation leaves."""
    return f" beside job {one.row.label}"


def _longest(job: QueuedJob, supply: Supply) -> float:
    return longest(job, partitions_of(job, supply))


RESOLUTION = 60  # seconds to which Slurm's backfill scheduler rounds times (``bf_resolution``)


def when(start: int, now: int) -> str:
    """Return in words when Slurm means to start a job that is pending now.

    A start that is not later is the last estimate of Slurm: the job may not fit.
    """
    return "due" if start <= now else f"in {short(start - now)}"


def started_now(snapshot: SlurmSnapshot, supply: Supply) -> Placements:
    """Return the starts that Slurm plans for now as placements of the chunks of requests.

    A job that does not fit there is left out, and so are jobs that are not in the problem. The
    others may not all fit together: Slurm's plan is from its last cycle.
    """
    nodes: list[tuple[int, ...]] = []
    seen = set[int]()  # Slurm plans the first task of an array
    for row in snapshot.rows:
        job = row.job
        is_due = job.start is not None and job.start <= supply.time and job.job_id not in seen
        seen.add(job.job_id)
        there = np.sort(supply.site.known_places(job.planned_nodes if is_due else ()))
        room = row.request.most(supply)[there].tolist()
        nodes.append(tuple(_spread(row.request.chunks, room, there)))
    return Placements(tuple(nodes), tuple(((),) * len(at) for at in nodes))


def planned_to_run(queue: SlurmQueue, time: int) -> tuple[QueuedJob, ...]:
    """Return the pending jobs that run at a time by Slurm's plan, the next to start first.

    So do those planned within `RESOLUTION` of it, which may start then.
    """
    planned = (job for job in queue.pending if job.planned_nodes and job.start is not None)
    begun = (job for job in planned if (job.start or 0) <= time + RESOLUTION)
    found = (job for job in begun if time < planned_end(job))
    return tuple(sorted(found, key=lambda job: (job.start or 0, job.job_id)))


def planned_end(job: QueuedJob) -> float:
    """Return when a pending job ends by Slurm's plan, in seconds since 1970."""
    start = job.start or 0
    if job.end is not None and job.end > start:
        return job.end
    return math.inf if job.limit is None else start + job.limit


def held_as_planned(job: QueuedJob, supply: Supply) -> Held:
    """Return the amounts that a pending job will hold on the nodes that Slurm plans for it.

    A job that shares no nodes, or of which it is not known what it asks there, holds all of them.
    """
    site, idle = supply.site, supply.idle
    nodes = np.unique(site.known_places(job.planned_nodes))
    whole = site.capacity[nodes]
    try:
        licences, requests = licences_of(job, supply), alternatives(job, idle)
    except UnplaceableError:
        return Held(nodes, whole, {})
    for request in requests:
        counts = Counter(_spread(request.chunks, request.most(idle)[nodes].tolist(), nodes))
        if not counts or request.exclusive:
            continue
        threads, demand = supply.threads[nodes].tolist(), request.demand
        each = [[demand[column(name, n)] for name in site.resources] for n in threads]
        chunks = np.array([counts[node] for node in nodes.tolist()])
        return Held(nodes, chunks[:, None] * np.array(each), licences)
    return Held(nodes, whole, licences)


def _spread(chunks: int, room: list[int], nodes: Ints) -> list[int]:
    """Return a node for each chunk: one on each of the nodes, then as many as there is room for."""
    if not len(nodes) or chunks < len(nodes):
        return []
    counts = np.minimum(room, 1)
    for place, most in enumerate(room):
        counts[place] += min(most - counts[place], chunks - counts.sum())
    return np.repeat(nodes, counts).tolist() if counts.sum() == chunks else []
