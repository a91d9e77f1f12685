"""What to lift so that a pending job of Slurm fits: running jobs, or the drain of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from optsched.models.fields import LARGEST_FIELD
from optsched.models.hold import Hold
from optsched.models.node_placement.problem import COUNTABLE
from optsched.sites.records import Ints
from optsched.slurm.queue import Queue, QueuedJob
from optsched.slurm.requests import Request, alternatives
from optsched.slurm.running import Held, end_of, held_by, supply_at
from optsched.slurm.snapshot import Row, placement_fields, table
from optsched.slurm.supply import Flags, Supply

IN_SERVICE = "in service"
"""Name of the resource that drained nodes lack."""


@dataclass(frozen=True)
class Claim:
    """What can be lifted: a running job that is requeued, or a drained node that is resumed.

    Parameters
    ----------
    lost : int
        Work that is lost, in microseconds of node time: on each node, the largest share of a
        resource that the job holds, times the time that it has run. 0 for a drained node.
    job : QueuedJob or None
        The running job.
    node : str
        Name of the drained node.
    """

    lost: int
    job: QueuedJob | None = None
    node: str = ""

    @property
    def name(self) -> str:
        """What is done, and to which job or node."""
        return f"resume {self.node}" if self.job is None else f"requeue {self.job.label}"


@dataclass(frozen=True)
class Question:
    """What to lift so that a job fits in one partition and with one choice of features.

    Parameters
    ----------
    problem : Hold
        The problem.
    claims : tuple of Claim
        The claims of the problem.
    """

    problem: Hold
    claims: tuple[Claim, ...]


def questions(
    job: QueuedJob, queue: Queue, supply: Supply, *, by: int, resume: bool = False
) -> tuple[Question, ...]:
    """Return what to lift so that a job fits by a time, one problem for each alternative.

    Claims are the running jobs that Slurm can requeue, that do not end by then and that hold
    something of use for the job.

    Parameters
    ----------
    job : QueuedJob
        The pending job.
    queue : Queue
        The jobs.
    supply : Supply
        The site and what is free.
    by : int
        The time, in seconds since 1970.
    resume : bool
        Whether drained nodes are claims, too.

    Raises
    ------
    LeftToSlurmError
        If the model cannot state the job.
    """
    then = supply_at(supply, queue, by)
    running = [each for each in queue.running if end_of(each, supply.time) > then.time]
    held = [held_by(each, supply) for each in running]
    drained = np.array([state == "drained" for state in supply.site.states], dtype=bool) & resume
    if drained.any():
        then = _in_service(then, drained, held)
    found = []
    for request in alternatives(job, then):
        claims, theirs = [], []
        for each, has in zip(running, held):
            useful = request.nodes[has.nodes].any() or {*has.licences} & {*request.licences}
            if each.requeues and useful:
                claims.append(Claim(_lost(each, has, supply), each))
                theirs.append(has)
        resumed = np.flatnonzero(drained & request.nodes)
        claims += [Claim(0, node=supply.site.nodes[node]) for node in resumed.tolist()]
        problem = hold_problem(job, then, request, claims, theirs, resumed)
        found.append(Question(problem, tuple(claims)))
    return tuple(found)


def _in_service(supply: Supply, drained: Flags, held: Sequence[Held]) -> Supply:
    """Return what is free if the drained nodes were up."""
    free = supply.site.capacity.copy()
    for each in held:
        free[each.nodes] -= each.amounts
    free = np.where(drained[:, None], free, supply.free)
    states = np.where(drained, "up", np.array(supply.site.states, dtype=str)).tolist()
    return replace(supply, site=replace(supply.site, states=states), free=free)


def _lost(job: QueuedJob, held: Held, supply: Supply) -> int:
    """Return the work of a running job so far, in microseconds of node time."""
    capacity = np.maximum(supply.site.capacity[held.nodes], 1)
    shares = (held.amounts / capacity).max(axis=1, initial=0)
    ran = 0 if job.start is None else max(0, supply.time - job.start)
    return round(1e6 * float(shares.sum()) * ran)


def _costs(claims: Sequence[Claim]) -> list[int]:
    """Return costs by which the least work is lost, and with equally much the fewest are lifted.

    Each claim costs 1 beside its work, which is in microseconds, or in the finest unit in which a
    problem may have such costs.
    """
    lost = [claim.lost for claim in claims]
    unit = 1 + max(max(lost, default=0) // (LARGEST_FIELD // 2), sum(lost) // (COUNTABLE // 2))
    return [work // unit + 1 for work in lost]


def hold_problem(
    job: QueuedJob,
    supply: Supply,
    request: Request,
    claims: Sequence[Claim] = (),
    held: Sequence[Held] = (),
    resumed: Ints | None = None,
) -> Hold:
    """Return the problem of a request, with claims that may be lifted.

    Parameters
    ----------
    job : QueuedJob
        The pending job.
    supply : Supply
        The site and what is free.
    request : Request
        What the job asks.
    claims : sequence of Claim
        Running jobs, then drained nodes.
    held : sequence of Held
        What these running jobs hold.
    resumed : array of int, optional
        These drained nodes.
    """
    fields = placement_fields([Row(job.label, job, request)], supply)
    names, free = fields["resources"], fields["free"]
    demand = fields["demand"][0]
    columns = [supply.columns.index(name) for name in names]
    rows = [
        [
            [node, *amounts]
            for node, amounts in zip(
                each.nodes.tolist(), supply.widened(each.amounts, each.nodes)[:, columns].tolist()
            )
            if request.nodes[node]
        ]
        for each in held
    ]
    cores = free[:, 0].copy()
    for node, more, *_ in (row for each in rows for row in each):
        cores[node] += more
    busy = np.flatnonzero(cores < supply.capacity[:, columns[0]])
    if resumed is not None and len(resumed):
        # an amount of its own, as lifting one of drain and job on a node is not enough
        service = np.full((len(free), 1), request.chunks)
        service[resumed] = 0
        names, free, demand = [*names, IN_SERVICE], np.hstack([free, service]), [*demand, 1]
        rows = [[[*row, 0] for row in each] for each in rows]
        rows += [[[node, *(0 for _ in columns), request.chunks]] for node in resumed.tolist()]
    licences = sorted(request.licences)
    has = [each.licences for each in held] + [{} for _ in range(len(rows) - len(held))]
    span, blocks = request.held_in(supply)
    return Hold(
        resources=names,
        free=free,
        chunks=request.chunks,
        demand=np.array(demand, dtype=np.int64),
        costs=_costs(claims),
        held=rows,
        most_per_node=request.most_per_node,
        kinds=fields["kinds"],
        allowed=fields["allowed"][0],
        switches=fields["switches"],
        blocks=blocks,
        span=span,
        exclusive=request.exclusive,
        busy=tuple(busy.tolist()),
        licences=fields["licences"],
        licences_of=[request.licences[name] for name in licences],
        held_licences=table(has, licences),
        nodes=fields["nodes"],
        claims=[claim.name for claim in claims],
        job=job.label,
    )
