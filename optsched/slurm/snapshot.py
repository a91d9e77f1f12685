"""The pending jobs of Slurm and the free nodes of a site as a placement problem."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from optsched.arrays import Flags, Ints
from optsched.errors import InputError
from optsched.models.node_placement.problem import COUNTABLE, NodePlacement
from optsched.sites.job_request import CORES, MEMORY, UnplaceableError, column, limited_cores
from optsched.sites.site import typed
from optsched.slurm.access import exceeded_limit, open_partitions, own_qos_of
from optsched.slurm.limits import Limits
from optsched.slurm.queue import QueuedJob, SlurmQueue
from optsched.slurm.requests import Request, blocked_by_rule, request_of
from optsched.slurm.running import held_by, supply_at
from optsched.slurm.supply import Supply

WEIGHTS = {
    "priority": "the priority that Slurm gives the job; where it tells the order alone, the rank, "
    "and for the first job that fits more than for all others",
    "rank": "the number of jobs of lower priority, and 1",
    "nodes": "the number of nodes, or the fewest that can hold the job",
    "cores": "the number of cores",
    "gpus": "the number of GPUs, and among plans with equally many the number of jobs",
}
"""What the weight of a job may be."""

TELLS_ORDER = 2**31
"""Priorities from which they tell the order alone: ``priority/basic`` counts down from 2^32."""


@dataclass(frozen=True)
class Row:
    """A row of the problem: a job, or one task of a job array."""

    # The number of the job as Slurm writes it: ``17``, or ``17_3`` for a task of an array
    label: str
    job: QueuedJob  # the record of the queue
    request: Request


@dataclass(frozen=True)
class SlurmSnapshot:
    """A placement problem with the jobs behind its rows, and the jobs that are not in it.

    The nodes of the problem are those of the site in the same order; nothing is free on nodes that
    are drained or down.
    """

    # The problem; its `jobs` are the labels of `rows`, its `nodes` the names of the nodes
    problem: NodePlacement
    rows: tuple[Row, ...]  # the job of each row
    # By label, the jobs that cannot start now whatever is free, and the rule that says so
    blocked: Mapping[str, str]
    # By label, the jobs that the model cannot state, and why: Slurm alone decides on them
    left: Mapping[str, str]

    @property
    def tells_order(self) -> bool:
        """Whether the priorities tell the order of the jobs alone."""
        return _tells_order([row.job.priority for row in self.rows])


def placement_problem(
    queue: SlurmQueue,
    supply: Supply,  # the site and what is free
    *,
    # The weight of a job, a name in `WEIGHTS`. Weights are at least 1, and are scaled down
    # where the objective would exceed 2^53, so that jobs of almost the same weight may get
    # equal ones.
    weigh: str = "priority",
    # What is minimized among the placements of greatest weight; see `NodePlacement`.
    # ``switches`` is left out where the site has no tree of switches.
    then: Sequence[str] = ("switches",),
) -> SlurmSnapshot:
    """Return the pending jobs of a queue on what is free, as a problem.

    Slurm fills the first nodes of a job rather than dividing it evenly. So a job is on the fewest
    nodes, with the largest chunks that Slurm may make, or if it does not fit like this, no other
    job of the problem is on its nodes.
    """
    if weigh not in WEIGHTS:
        raise InputError(f"{weigh!r}; expected one of {', '.join(WEIGHTS)}", field="weigh")
    supply = supply_at(supply, queue, supply.time)
    rows: list[Row] = []
    blocked: dict[str, str] = {}
    left: dict[str, str] = {}
    started = Counter(job.array_id for job in queue.running)  # or in the problem, by array
    limits = supply.limits  # with the jobs of the problem, those of high priority first
    places = {job.job_id: place for place, job in enumerate(queue.pending)}
    for job in sorted(queue.pending, key=lambda job: -job.priority if limits.known else 0):
        if rule := blocked_by_rule(job, supply, started[job.array_id]):
            blocked[job.label] = rule
            continue
        try:
            request = request_of(job, supply)
        except UnplaceableError as error:
            left[job.label] = str(error)
            continue
        own = _rows(job, request, supply, started[job.array_id])
        within, limits, rule = _within_limits(own, supply, limits)
        if len(within) < len(own):
            label = job.label if not within else own[len(within)].label
            blocked[label] = rule
        started[job.array_id] += len(within)
        rows += within
    rows.sort(key=lambda row: places[row.job.job_id])
    has_tree = supply.tree is not None
    fields = _without_others(rows, supply) | {
        "then": [name for name in then if name != "switches" or has_tree]
    }
    problem = NodePlacement(**fields)
    fields["columns"] = _columns_of_rules(rows, queue, supply)
    weights = _weights(rows, supply, weigh, COUNTABLE // math.prod(problem.radices))
    problem = NodePlacement(**fields, weights=weights)
    return SlurmSnapshot(problem, tuple(rows), blocked, left)


def _columns_of_rules(rows: Sequence[Row], queue: SlurmQueue, supply: Supply) -> dict[str, Any]:
    """Return the columns of waiting and of running jobs that rules of a site read."""
    held = [(job, held_by(job, supply)) for job in queue.running]
    there = [(job, one) for job, one in held if len(one.nodes)]
    amounts = np.array([one.amounts.sum(axis=0) for _, one in there], dtype=np.int64)
    amounts = amounts.reshape(len(there), len(supply.site.resources))
    return {
        "jobs": _who([row.job for row in rows]),
        "running": {
            "nodes": [one.nodes.tolist() for _, one in there],
            "name": [job.label for job, _ in there],
            **_who([job for job, _ in there]),
            **dict(zip(supply.site.resources, amounts.T.tolist())),
        },
    }


def _who(jobs: Sequence[QueuedJob]) -> dict[str, list[str]]:
    texts = {name: [getattr(job, name) for job in jobs] for name in ("user", "account", "qos")}
    return texts | {"partition": [",".join(job.partitions) for job in jobs]}


def _rows(job: QueuedJob, request: Request, supply: Supply, started: int) -> list[Row]:
    """Return the rows of a job, one for each task of an array that could start now."""
    if not job.array_tasks:
        return [Row(job.label, job, request)]
    tasks = job.array_tasks
    if job.array_limit:
        tasks = tasks[: job.array_limit - started]
    # no more of them than fit if no other job is placed, but one for a message
    tasks = tasks[: max(1, request.room(supply) // request.chunks)]
    return [Row(f"{job.array_id}_{task}", job, request) for task in tasks]


def _without_others(rows: Sequence[Row], supply: Supply) -> dict[str, Any]:
    """Return the fields of the problem, in which all jobs start together as Slurm divides them."""
    posed = []
    for row in rows:
        request = row.request.divided or row.request
        if request is not row.request and not request.fits(supply):  # it joins running jobs alone
            request = replace(row.request, exclusive=True, joins=row.request.nodes)
        posed.append(replace(row, request=request))
    return placement_fields(posed, supply)


def _within_limits(
    rows: list[Row], supply: Supply, limits: Limits
) -> tuple[list[Row], Limits, str]:
    """Return the first of the rows of a job, as many as limits allow together."""
    if not limits.known:
        return rows, limits, ""
    has_room = rows[0].request.room(supply) >= rows[0].request.chunks
    amounts = _most_amounts(rows[0], supply)
    for count, row in enumerate(rows):
        for partition in open_partitions(row.job, supply):
            if reason := exceeded_limit(row.job, partition, supply, limits, amounts):
                alone = exceeded_limit(row.job, partition, supply, supply.limits, amounts)
                where = "on the largest of its nodes" if alone else "beside others of the plan"
                return rows[:count], limits, f"{where}, {reason}"
        if has_room:  # otherwise none of them starts
            own, longest = own_qos_of(row.job, supply), row.job.limit or math.inf
            limits = limits.with_job(row.job, amounts, own, longest)
    return rows, limits, ""


def _most_amounts(row: Row, supply: Supply) -> dict[str, int]:
    """Return the most that Slurm may count of a job against limits."""
    job, request = row.job, row.request
    nodes = max(job.least_nodes, job.tres.get("node", 1))
    nodes = max(nodes, request.chunks) if request.most_per_node == 1 else nodes
    names = [CORES, *(column(CORES, count) for count in supply.thread_counts)]
    cores = request.chunks * max(request.demand[name] for name in names)
    if request.exclusive:
        whole = supply.site.capacity[request.nodes, 0].max(initial=0)
        cores = max(cores, nodes * int(whole))
    return {**job.tres, "cpu": max(cores, job.tres.get("cpu", 0)), "node": nodes}


def placement_fields(rows: Sequence[Row], supply: Supply) -> dict[str, Any]:
    """Return the fields of the problem but its weights and what is minimized."""
    requests = [row.request for row in rows]
    columns = columns_of(requests, supply)
    places = [supply.columns.index(name) for name in columns]
    joined = np.zeros(len(supply.site.nodes), dtype=bool)
    for request in requests:
        if request.exclusive and request.joins is not None:
            joined |= supply.busy & request.joins & request.nodes
    allowed_nodes = [
        request.nodes & ~request.not_joined(joined) if request.exclusive else request.nodes
        for request in requests
    ]
    names, kinds, allowed = kinds_of(allowed_nodes, supply)
    mixed, free, demand = _of_mixed_types(rows, supply)
    licences = sorted({name for request in requests for name in request.licences})
    levels = {limit.level: limit.groups for request in requests for limit in request.limits}
    most = [{limit.level: limit.most for limit in request.limits} for request in requests]
    segments = [{limit.level: limit.segment for limit in request.limits} for request in requests]
    return {
        "resources": [*columns, *mixed],
        "free": np.hstack([supply.amounts[:, places], free]),
        "chunks": np.array([request.chunks for request in requests], dtype=np.int64),
        "demand": np.hstack([table([r.demand for r in requests], columns), demand]),
        "most_per_node": np.array([r.most_per_node for r in requests], dtype=np.int64),
        "kinds": [names[kind] for kind in kinds.tolist()],
        "allowed": allowed,
        "span": tuple(request.span for request in requests),
        "exclusive": tuple(place for place, r in enumerate(requests) if r.exclusive),
        # who may not join the jobs of a joined node is kept from it by its kind
        "busy": tuple(np.flatnonzero(supply.busy & ~joined).tolist()),
        "licences": np.array([supply.licences[name] for name in licences], dtype=np.int64),
        "licences_of": table([request.licences for request in requests], licences),
        "switches": supply.switches and list(supply.switches),
        "blocks": supply.blocks and list(supply.blocks),
        "levels": list(levels),
        "groups": list(levels.values()),
        "most_groups": table(most, list(levels)),
        "segments": table(segments, list(levels)),
        "nodes": list(supply.site.nodes),
        "jobs": [row.label for row in rows],
    }


def _of_mixed_types(rows: Sequence[Row], supply: Supply) -> tuple[list[str], Ints, Ints]:
    """Return resources by which a job that states no type of GPU leaves one for later jobs that do.

    Of nodes with several types, such as MIG slices, Slurm takes any: in the worst case all of one.
    A job of lower priority takes what is left.

    There is a resource for each type and number of free ones that matters, with its free amounts,
    which bind on nodes with several types only, and what a chunk of each row needs.
    """
    resources, amounts = supply.site.resources, supply.amounts
    tiers = supply.tiers
    ranks = [
        (-max((tiers.get(p, 1) for p in row.job.partitions), default=1), -row.job.priority)
        for row in rows
    ]
    names: list[str] = []
    free, demand = [np.empty((len(amounts), 0), dtype=np.int64)], [table([{}] * len(rows), [])]
    for base, types in typed(resources).items():
        mixed = (supply.site.capacity[:, types] > 0).sum(axis=1) > 1
        there = np.array([(row.request.nodes & mixed).any() for row in rows], dtype=bool)
        needs = table([row.request.demand for row in rows], [base, *(resources[t] for t in types)])
        untyped = np.where(there, np.maximum(0, needs[:, 0] - needs[:, 1:].sum(axis=1)), 0)
        for own, kind in zip(needs[:, 1:].T, types):
            last = max((r for r, n in zip(ranks, own * there) if n), default=None)
            before = untyped * [last is not None and rank <= last for rank in ranks]
            left = np.minimum(amounts[:, kind], before.max(initial=0))
            for number in np.unique(left[mixed & (left > 0)]).tolist():
                binds = mixed & (left == number)
                names.append(f"{resources[kind]}, or any {base}, {number}")
                column = np.where(binds, amounts[:, kind], amounts[:, resources.index(base)])
                free.append(column[:, None])
                demand.append((own + np.minimum(before, number))[:, None])
    return names, np.hstack(free), np.hstack(demand)


def columns_of(requests: Sequence[Request], supply: Supply) -> list[str]:
    """Return the resources, and the columns of threads in which some job asks more there."""
    columns = list(supply.site.resources)
    for threads in supply.thread_counts:
        there = supply.threads == threads
        for resource in (CORES, MEMORY):
            name = column(resource, threads)
            if any(
                request.demand[name] > request.demand[resource] and request.nodes[there].any()
                for request in requests
            ):
                columns.append(name)
    limited = map(limited_cores, supply.cores_left)
    return [*columns, *(name for name in limited if any(r.demand[name] for r in requests))]


def table(amounts: Sequence[Mapping[str, int]], names: Sequence[str]) -> Ints:
    """Return named amounts as rows with a column for each name, shape (amounts, names)."""
    rows = [[each.get(name, 0) for name in names] for each in amounts]
    return np.array(rows, dtype=np.int64).reshape(len(amounts), len(names))


def kinds_of(
    sets: Sequence[Flags], supply: Supply
) -> tuple[list[str], Ints, list[tuple[str, ...] | None]]:
    """Return the coarsest kinds of nodes of which all the sets consist.

    A kind has the name of its first node. With them come the kinds of each set; None for all.
    """
    nodes = len(supply.site.nodes)
    everywhere = np.ones(nodes, dtype=bool)
    different = {each.tobytes(): each for each in (everywhere, *sets)}
    member = np.array(list(different.values()), dtype=bool)
    _, first, kinds = np.unique(member, axis=1, return_index=True, return_inverse=True)
    kinds = kinds.ravel()
    names = [supply.site.nodes[place] for place in first.tolist()]
    found: dict[bytes, tuple[str, ...] | None] = {}
    for key, each in different.items():
        inside = each[first]
        chosen = tuple(name for name, is_in in zip(names, inside.tolist()) if is_in)
        found[key] = None if len(chosen) == len(names) else chosen
    return names, kinds, [found[each.tobytes()] for each in sets]


def amounts_to_weigh(rows: Sequence[Row], supply: Supply, weigh: str) -> list[int]:
    """Return of each row what is weighed: a name in `WEIGHTS`, before weights are scaled."""
    priorities = [row.job.priority for row in rows]
    if weigh == "priority" and not _tells_order(priorities):
        return priorities
    if weigh in ("priority", "rank"):
        rank = {priority: place for place, priority in enumerate(sorted(priorities)[::-1])}
        ranks = [len(rows) - rank[priority] for priority in priorities]
        if weigh == "rank":
            return ranks
        fitting = [at for at, row in enumerate(rows) if row.request.fits(supply)]
        if fitting:  # the first one weighs more than all after it
            first = max(fitting, key=ranks.__getitem__)
            ranks[first] = sum(ranks) - ranks[first] + 1
        return ranks
    if weigh == "nodes":
        return [row.request.fewest_nodes(supply) for row in rows]
    name = {"cores": CORES, "gpus": "gpu"}[weigh]
    return [row.request.chunks * row.request.demand.get(name, 0) for row in rows]


def _tells_order(priorities: Sequence[int]) -> bool:
    """Return whether priorities tell the order of jobs alone, but for a few that somebody set."""
    return bool(priorities) and sorted(priorities)[len(priorities) // 2] >= TELLS_ORDER


def _weights(rows: Sequence[Row], supply: Supply, weigh: str, most: int) -> Ints:
    """Return the weights of rows, of which the sum is at most `most`."""
    weights = amounts_to_weigh(rows, supply, weigh)
    if weigh == "gpus":
        weights = [count * (len(rows) + 1) + 1 for count in weights]
    weights = [max(1, weight) for weight in weights]
    total = sum(weights)
    if total > most:
        weights = [max(1, weight * (most - len(rows)) // total) for weight in weights]
    return np.array(weights, dtype=np.int64)
