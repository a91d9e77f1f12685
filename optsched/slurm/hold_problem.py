"""What to do so that a pending job of Slurm fits: to other jobs, and to nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched.arrays import Flags, Ints
from optsched.models.fields import LARGEST_FIELD
from optsched.models.hold import Hold
from optsched.models.node_placement.problem import COUNTABLE
from optsched.sites.job_request import MEMORY, UnplaceableError
from optsched.slurm.queue import QueuedJob, SlurmQueue
from optsched.slurm.requests import Request, alternatives, shares_with_own
from optsched.slurm.running import (
    Held,
    closes,
    end_of,
    held_alone,
    held_by,
    hidden_amounts,
    supply_at,
)
from optsched.slurm.snapshot import Row, kinds_of, placement_fields, table
from optsched.slurm.starts import held_as_planned, planned_to_run
from optsched.slurm.supply import Supply

ACTIONS = {
    "requeue": "running jobs are requeued, and held until the job has started",
    "hold": "pending jobs that Slurm plans to start before are held until the job has started",
    "drain": "nodes are drained until the job starts, so that no other job starts there",
    "migrate": "running jobs move to other nodes; Slurm itself cannot do that",
    "resume": "drained nodes are resumed",
}
"""What may be done."""

IN_SERVICE = "in service"  # name of the resource that drained nodes lack

OPEN = "not closed by others"
"""Name, with a number behind it, of the resource that nodes lack while a job closes them."""

STOPPABLE = ("RUNNING", "SUSPENDED", "CONFIGURING", "STOPPED")
"""States of jobs that can be requeued; Slurm runs one again that has ended and is completing."""

ENDING = frozenset(("COMPLETING", "STAGE_OUT", "REVOKED"))
"""Further words of the state of jobs that have ended."""

MIGRATION = 600
"""Seconds that the nodes of a job are taken to lose when it is checkpointed and restarted."""


@dataclass(frozen=True, eq=False)
class Claim:
    """What keeps nodes from the job: a running or pending job, or the drain of a node."""

    # Node time that is lost if the claim is lifted, in microseconds; 0 for a drained node. On
    # each node, it is the largest share of a resource that it holds, times the time from its
    # start, or planned start, until the blocked job starts.
    lost: int
    held: Held
    job: QueuedJob | None = None  # the running or pending job
    node: str = ""  # name of the drained node
    liftable: bool = True  # whether it may be lifted
    # Nodes to which the running job may be moved; None if it may not, shape (nodes,)
    moved_to: Flags | None = None

    @property
    def is_pending(self) -> bool:
        """Whether it is a pending job."""
        return self.job is not None and self.job.state == "PENDING"

    def widened(self, supply: Supply) -> Ints:
        """Return its amounts on its nodes in the columns of a supply."""
        partitions = () if self.job is None else self.job.partitions
        cores = dict.fromkeys(partitions, self.held.amounts[:, 0])
        return supply.widened(self.held.amounts, self.held.nodes, cores=cores)

    @property
    def label(self) -> str:
        """The job or node."""
        return f"drain of {self.node}" if self.job is None else f"job {self.job.label}"

    @property
    def action(self) -> str:
        """What is done to lift it, of `ACTIONS`."""
        if self.job is None:
            return "resume"
        return "hold" if self.is_pending else "requeue"

    @property
    def name(self) -> str:
        """What is done to lift it, and to which job or node."""
        return f"{self.action} {self.node if self.job is None else self.job.label}"


@dataclass(frozen=True, eq=False)
class Question:
    """What to do so that a job fits in one partition and with one choice of features."""

    start: int  # when it fits then, in seconds since 1970
    problem: Hold
    claims: tuple[Claim, ...]  # the claims of the problem
    idle: Ints  # node time that is lost if a node is drained, in microseconds, shape (nodes,)
    migration: Ints  # node time that is lost if a claim is moved, in microseconds, shape (claims,)


def questions(
    job: QueuedJob, queue: SlurmQueue, supply: Supply, *, start: int, actions: Collection[str]
) -> tuple[Question, ...]:
    """Return the problems of making a job fit at a time, one for each alternative.

    Claims are the running jobs that do not end by then, that hold something of use for the job, and
    that Slurm can requeue, or that may be moved. If pending jobs may be held, or nodes be drained,
    they are also the pending jobs that start before and run then by Slurm's plan.

    `supply`: the site and what is free; `start`: the time, in seconds since 1970; `actions`: what
    may be done, of `ACTIONS`.
    """
    then = supply_at(supply, queue, start)
    running = [each for each in queue.running if end_of(each, supply.time) > then.time]
    held = held_alone(running, supply)
    drained = np.array([state == "drained" for state in supply.site.states], dtype=bool)
    drained &= "resume" in actions
    if drained.any():
        then = in_service(then, drained, held)
    planned = planned_to_run(queue, start) if {"hold", "drain"} & {*actions} else ()
    closers = _closers(running, lambda each: closes(each, job, supply), then)
    owners, taken = then.owners.copy(), then.taken.copy()
    owners[[*closers]], taken[[*closers]] = "", False
    then = replace(then, owners=owners, taken=taken)
    rest, waiting = _with_planned(then, [each for each in planned if each.job_id != job.job_id])
    runs = [_running_claim(*each, supply, start, actions) for each in zip(running, held)]
    waits = []
    for each, has in waiting:
        lost = _node_time(has, supply, max(0, start - max(supply.time, each.start or 0)))
        waits.append(Claim(lost, has, each, liftable="hold" in actions and not each.part_of))
    idle = _idle(queue, supply, start) if "drain" in actions and start > supply.time else None
    nothing = np.zeros((1, len(supply.site.resources)), dtype=np.int64)
    found = []
    for request in alternatives(job, then):
        mine = [claim for claim in runs if claim is not None and _is_useful(claim, request)]
        moves = any(claim.moved_to is not None for claim in mine)
        # where pending jobs are to start there is no room for moved ones
        mine += [claim for claim in waits if moves or _is_useful(claim, request)]
        mine += [
            Claim(0, Held(np.array([node]), nothing, {}), node=supply.site.nodes[node])
            for node in np.flatnonzero(drained & request.nodes).tolist()
        ]
        closing = closers
        if request.joins is not None:
            jobs = [*running, *(each for each, _ in waiting)]
            closing = _strangers(job, jobs, closers, then)
        problem = hold_problem(job, rest, request, mine, closing, everywhere=moves)
        found.append(_question(start, problem, request, mine, supply, idle))
    return tuple(found)


def _is_useful(claim: Claim, request: Request) -> bool:
    held = claim.held
    return bool(request.nodes[held.nodes].any() or {*held.licences} & {*request.licences})


def _running_claim(
    job: QueuedJob, held: Held, supply: Supply, by: int, actions: Collection[str]
) -> Claim | None:
    """Return the claim of a running job; None if nothing may be done to it."""
    # of its cores too, which a suspended job has given back
    all_of_it = held_by(replace(job, state="RUNNING"), supply)
    lost = _node_time(all_of_it, supply, job.has_run(by))
    requeues = is_stoppable(job) and job.requeues and "requeue" in actions
    moved_to = None
    if "migrate" in actions and (not requeues or lost > _node_time(held, supply, MIGRATION)):
        moved_to = _other_nodes(job, held, supply)
    if not requeues and moved_to is None:
        return None
    return Claim(lost, held, job, liftable=requeues, moved_to=moved_to)


def is_stoppable(job: QueuedJob) -> bool:
    """Return whether a running job can be stopped alone, and has not ended."""
    # of a heterogeneous job, Slurm stops all parts or none
    return job.state in STOPPABLE and ENDING.isdisjoint(job.flags) and not job.part_of


def _closers(
    jobs: Iterable[QueuedJob], closing: Callable[[QueuedJob], bool], supply: Supply
) -> dict[int, list[int]]:
    """Return by node the numbers of the jobs that close it to another, by a rule."""
    found: dict[int, list[int]] = {}
    for job in filter(closing, jobs):
        names = job.planned_nodes if job.state == "PENDING" else job.nodes
        for node in supply.site.known_places(names).tolist():
            found.setdefault(node, []).append(job.job_id)
    return found


def _strangers(
    job: QueuedJob, jobs: Sequence[QueuedJob], closers: Mapping[int, list[int]], supply: Supply
) -> dict[int, list[int]]:
    """Return the closers of nodes to a job that shares with its user, or its label, alone.

    Job 0 stands for those that use cores of a node and are not shown.
    """
    by_user = shares_with_own(job, supply)

    def is_stranger(each: QueuedJob) -> bool:
        return each.user != job.user if by_user else each.mcs_label != job.mcs_label

    found = _closers(jobs, is_stranger, supply)
    for node, numbers in closers.items():
        found[node] = list(dict.fromkeys([*found.get(node, ()), *numbers]))
    held = (held_by(each, supply) for each in jobs if each.state != "PENDING")
    hidden = hidden_amounts(held, supply)[:, 0]
    for node in np.flatnonzero((hidden > 0) & (supply.owners != job.user)).tolist():
        found.setdefault(node, []).append(0)
    return found


def _with_planned(
    supply: Supply, planned: Sequence[QueuedJob]
) -> tuple[Supply, list[tuple[QueuedJob, Held]]]:
    """Return the free amounts beside pending jobs that Slurm plans to start, and what each has."""
    free, licences = supply.free.copy(), Counter(supply.licences)
    found = []
    for job in planned:
        asks = held_as_planned(job, supply)
        has = Held(  # no more than is free, as Slurm's plan is from its last cycle
            asks.nodes,
            np.minimum(asks.amounts, free[asks.nodes]),
            {name: min(count, licences[name]) for name, count in asks.licences.items()},
        )
        free[has.nodes] -= has.amounts
        licences.subtract(has.licences)
        found.append((job, has))
    return replace(supply, free=free, licences=dict(licences)), found


def _other_nodes(job: QueuedJob, held: Held, supply: Supply) -> Flags | None:
    """Return the nodes to which a running job may be moved; None if there are none."""
    site = supply.site
    if job.state != "RUNNING" or not is_stoppable(job):
        return None
    try:
        found = alternatives(job, supply)
    except UnplaceableError:
        return None
    requests = [each for each in found if each.span == "anywhere" and not each.limits]
    # with whom jobs share nodes that join others is not modelled
    if not requests or any(each.joins is not None for each in requests):
        return None
    nodes: Flags = np.any([each.nodes for each in requests], axis=0) & ~supply.taken
    alike = [supply.threads]
    if any(each.exclusive for each in requests):  # it counts for all cores of its nodes
        alike.append(site.capacity[:, 0])
    for values in alike:
        if len({*values[held.nodes].tolist()}) != 1:
            return None
        nodes = nodes & (values == values[held.nodes[0]])
    return nodes if nodes.any() else None


def in_service(supply: Supply, drained: Flags, held: Sequence[Held]) -> Supply:
    """Return the supply with drained nodes up; `held` has the resources of running jobs."""
    free = supply.site.capacity.copy()
    for each in held:
        free[each.nodes] -= each.amounts
    return supply.with_states(drained, "up", np.where(drained[:, None], free, supply.free))


UNTIL = {
    "drained": "not before nodes that are drained are resumed",
    "down": "not before nodes that are down come back",
}
"""When a job fits at the earliest that lacks nodes in a state."""


def lacks_service(job: QueuedJob, supply: Supply) -> str:
    """Return the state, of `UNTIL`, of the nodes that a job lacks though no job runs; or empty."""
    states = [*UNTIL]
    upto = (states[: place + 1] for place in range(len(states)))
    return next((some[-1] for some in upto if fits_with(job, some, supply.idle, ())), "")


def fits_with(job: QueuedJob, states: Sequence[str], supply: Supply, held: Sequence[Held]) -> bool:
    """Return whether a job would fit if nodes in some states were up, see `in_service`."""
    up = in_service(supply, np.isin(supply.site.states, states), held)
    try:
        return any(each.fits(up) for each in alternatives(job, up))
    except UnplaceableError:
        return False


def _shares(held: Held, supply: Supply) -> NDArray[np.float64]:
    """Return the largest share of a resource that a job holds of each of its nodes."""
    capacity = np.maximum(supply.site.capacity[held.nodes], 1)
    shares: NDArray[np.float64] = (held.amounts / capacity).max(axis=1, initial=0)
    return shares


def _node_time(held: Held, supply: Supply, seconds: float) -> int:
    """Return the node time of what a job holds for some time, in microseconds."""
    return round(1e6 * float(_shares(held, supply).sum()) * seconds)


def _idle(queue: SlurmQueue, supply: Supply, by: int) -> Ints:
    """Return the node time that is idle until a time if no job starts, in microseconds."""
    idle = np.full(len(supply.site.nodes), float(by - supply.time))
    for job in queue.running:
        held = held_by(job, supply)
        runs = min(end_of(job, supply.time), by) - supply.time
        idle[held.nodes] -= runs * _shares(held, supply)
    microseconds: Ints = np.round(1e6 * np.maximum(idle, 0)).astype(np.int64)
    return microseconds


def _question(
    start: int,
    problem: Hold,
    request: Request,
    claims: Sequence[Claim],
    supply: Supply,
    idle: Ints | None,
) -> Question:
    """Return a problem with its costs; `idle` is None where no node may be drained.

    The least node time is lost, in microseconds, or in the finest unit in which a problem may have
    such costs; with equally much the least is done, as each action costs 1 beside.
    """
    moves = any(claim.moved_to is not None for claim in claims)
    names = list(problem.resources)
    migration = [
        0 if claim.moved_to is None else _node_time(claim.held, supply, MIGRATION)
        for claim in claims
    ]
    drained = [0] * len(problem.free) if idle is None else idle.tolist()
    lost = [*(claim.lost for claim in claims), *migration, *drained]
    unit = 1 + max(max(lost, default=0) // (LARGEST_FIELD // 2), sum(lost) // (COUNTABLE // 2))
    costs = [time // unit + 1 for time in lost]
    fields: dict[str, Any] = {
        "costs": costs[: len(claims)],
        "pending": [place for place, claim in enumerate(claims) if claim.is_pending],
        "fixed": [place for place, claim in enumerate(claims) if not claim.liftable],
        "drain_costs": None if idle is None else costs[2 * len(claims) :],
    }
    if moves:
        sets = [request.nodes, *(c.moved_to for c in claims if c.moved_to is not None)]
        kind_names, kinds, allowed = kinds_of(sets, supply)
        others, free = iter(allowed[1:]), supply.widened(supply.free, cores=supply.cores_left)
        fields |= {
            "kinds": [kind_names[kind] for kind in kinds.tolist()],
            "allowed": allowed[0],
            "moved": [_chunks(claim, supply, names) for claim in claims],
            "move_costs": costs[len(claims) : 2 * len(claims)],
            "moved_to": [None if c.moved_to is None else next(others) for c in claims],
            "free_before": _in_columns(free, supply, names),
        }
    return Question(
        start, replace(problem, **fields), tuple(claims), np.array(drained), np.array(migration)
    )


def _in_columns(wide: Ints, supply: Supply, names: Sequence[str]) -> Ints:
    """Return amounts of the columns of a supply in those of a problem.

    What else the problem has, such as being in service, counts for the blocked job alone.
    """
    wide = np.hstack([wide, np.zeros((len(wide), 1), dtype=np.int64)])
    columns = {name: place for place, name in enumerate(supply.columns)}
    return wide[:, [columns.get(name, -1) for name in names]]


def _chunks(claim: Claim, supply: Supply, names: Sequence[str]) -> list[list[int]]:
    """Return the amounts that a running job takes on other nodes if it is moved: the same."""
    if claim.moved_to is None:
        return []
    amounts = _in_columns(claim.widened(supply), supply, names)
    if not supply.counts_memory:
        amounts[:, [name.startswith(MEMORY) for name in names]] = 0
    rows = Counter(map(tuple, amounts.tolist()))
    return [[count, *row] for row, count in sorted(rows.items())]


def hold_problem(
    job: QueuedJob,
    supply: Supply,  # the site and what is free
    request: Request,  # what the job asks for
    claims: Sequence[Claim] = (),
    # By node, the jobs that close it to the job: none of them may stay. By default, a job
    # that may join others joins those of `supply`.
    closers: Mapping[int, Sequence[int]] | None = None,
    *,
    # Whether to state what claims hold of nodes that the job may not use, too
    everywhere: bool = False,
) -> Hold:
    """Return the problem of a request, with claims that may be lifted at no cost."""
    fields = placement_fields([Row(job.label, job, request)], supply)
    # with whom a job shares nodes that joins others the closers say
    exclusive = request.exclusive and (request.joins is None or closers is None)
    closers = closers or {}
    names, free = list(fields["resources"]), fields["free"]
    demand = fields["demand"][0].tolist()
    # an amount for each that is in the way, as lifting one of them on a node is not enough
    barred = {IN_SERVICE: [supply.site.index[each.node] for each in claims if each.job is None]}
    for node, jobs in closers.items():
        for place in range(len(jobs)):
            barred.setdefault(f"{OPEN} {place + 1}", []).append(node)
    for name, nodes in barred.items():
        if nodes:
            bar = np.full((len(free), 1), request.chunks)
            bar[nodes] = 0
            names, free, demand = [*names, name], np.hstack([free, bar]), [*demand, 1]
    rows = []
    busy = np.zeros(len(free), dtype=np.int64)
    for claim in claims:
        held, amounts = claim.held, _in_columns(claim.widened(supply), supply, names)
        busy[held.nodes] += amounts[:, 0]
        there = request.nodes[held.nodes] | everywhere
        if claim.job is None:
            amounts[:, names.index(IN_SERVICE)] = request.chunks
        else:
            for row, node in enumerate(held.nodes.tolist()):
                if claim.job.job_id in (jobs := closers.get(node, ())):
                    place = names.index(f"{OPEN} {jobs.index(claim.job.job_id) + 1}")
                    amounts[row, place] = request.chunks
        rows.append(np.column_stack([held.nodes, amounts])[there].tolist())
    licences = sorted(request.licences)
    first = supply.columns.index(names[0])
    in_use = free[:, 0] + busy < supply.capacity[:, first]
    span, blocks = request.held_in(supply)
    return Hold(
        resources=names,
        free=free,
        chunks=request.chunks,
        demand=np.array(demand, dtype=np.int64),
        costs=[0] * len(claims),
        held=rows,
        most_per_node=request.most_per_node,
        allowed=fields["allowed"][0],
        blocks=blocks,
        span=span,
        exclusive=exclusive,
        busy=tuple(np.flatnonzero(request.not_joined(in_use)).tolist()),
        licences_of=[request.licences[name] for name in licences],
        held_licences=table([claim.held.licences for claim in claims], licences),
        **{name: fields[name] for name in ("kinds", "switches", "licences", "nodes")},
        claims=[claim.label for claim in claims],
        job=job.label,
    )
