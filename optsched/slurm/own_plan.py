"""Slurm's own plan: where and when it means to start the pending jobs."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np

from optsched.arrays import Ints
from optsched.models.node_placement.problem import Placements
from optsched.numbers import short
from optsched.sites.job_request import UnplaceableError, column
from optsched.slurm.queue import QueuedJob, SlurmQueue
from optsched.slurm.requests import alternatives, licences_of
from optsched.slurm.running import Held
from optsched.slurm.snapshot import SlurmSnapshot
from optsched.slurm.supply import Supply

RESOLUTION = 60
"""Seconds to which Slurm's backfill scheduler rounds times (``bf_resolution``)."""


@dataclass(frozen=True)
class PlannedStart:
    """A start that Slurm plans."""

    label: str  # number of the job
    nodes: tuple[str, ...]
    start: int | None  # time in seconds since 1970, None where Slurm states none


def when(start: int, now: int) -> str:
    """Return in words when Slurm means to start a job that is pending now.

    A start that is not later is the last estimate of Slurm: the job may not fit.
    """
    return "due" if start <= now else f"in {short(start - now)}"


def slurm_plan(queue: SlurmQueue) -> tuple[PlannedStart, ...]:
    """Return the starts of pending jobs that Slurm's backfill scheduler plans, the next first."""
    found = [
        PlannedStart(job.label, job.planned_nodes, job.start)
        for job in queue.pending
        if job.planned_nodes
    ]
    return tuple(sorted(found, key=lambda each: (each.start is None, each.start or 0)))


def started_now(queue: SlurmQueue, snapshot: SlurmSnapshot, supply: Supply) -> Placements:
    """Return the starts that Slurm plans for now as placements of the chunks of requests.

    Of a job whose chunks are not one for each node, each node takes as many as it has room for. A
    job that does not fit like this is left out, and so are jobs that are not in the problem. The
    others may not all fit together: Slurm's plan is from its last cycle.
    """
    now = {
        each.label: each
        for each in slurm_plan(queue)
        if each.start is not None and each.start <= supply.time
    }
    nodes: list[tuple[int, ...]] = []
    for row in snapshot.rows:
        planned = now.pop(row.job.label, None)
        there = np.sort(supply.site.known_places(planned.nodes if planned else ()))
        room = row.request.most(supply)[there].tolist()
        nodes.append(tuple(_spread(row.request.chunks, room, there)))
    return Placements(tuple(nodes), tuple(((),) * len(at) for at in nodes))


def planned_to_run(queue: SlurmQueue, time: int) -> tuple[QueuedJob, ...]:
    """Return the pending jobs that run at a time by Slurm's plan, the next to start first.

    So do those planned within `RESOLUTION` of it, which may start then.
    """
    found = [
        job
        for job in queue.pending
        if job.planned_nodes
        and job.start is not None
        and job.start <= time + RESOLUTION
        and time < planned_end(job)
    ]
    return tuple(sorted(found, key=lambda job: (job.start or 0, job.job_id)))


def planned_end(job: QueuedJob) -> float:
    """Return when a pending job ends by Slurm's plan, in seconds since 1970."""
    start = job.start or 0
    if job.end is not None and job.end > start:
        return job.end
    return math.inf if job.limit is None else start + job.limit


def held_as_planned(job: QueuedJob, supply: Supply) -> Held:
    """Return the amounts that a pending job will hold on the nodes that Slurm plans for it.

    Of a job whose chunks are not one for each node, each node takes as many as it has room for. A
    job that shares no nodes, or of which it is not known what it asks there, holds all of them.
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
        amounts = np.array(
            [
                [
                    counts[node] * request.demand[column(name, int(supply.threads[node]))]
                    for name in site.resources
                ]
                for node in nodes.tolist()
            ]
        )
        return Held(nodes, amounts, licences)
    return Held(nodes, whole, licences)


def _spread(chunks: int, room: list[int], nodes: Ints) -> list[int]:
    """Return a node for each chunk: one on each of the nodes, then as many as there is room for."""
    if not len(nodes) or chunks < len(nodes):
        return []
    counts = np.minimum(room, 1)
    for place, most in enumerate(room):
        counts[place] += min(most - counts[place], chunks - counts.sum())
    return np.repeat(nodes, counts).tolist() if counts.sum() == chunks else []
