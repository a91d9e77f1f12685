"""What pending jobs ask for, as equal chunks of the model node-placement.

Jobs are divided as `optsched.sites.job_request` says. Chunks are as large as the largest, so that
whatever the model places Slurm can start there, and a note says that a job may fit elsewhere too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from optsched.arrays import Flags, Ints
from optsched.models.fields import read_only
from optsched.models.node_placement.fields import most_chunks
from optsched.numbers import counted, short
from optsched.sites.job_request import (
    CORES,
    MEMORY,
    Division,
    UnplaceableError,
    chunks_held,
    column,
    demand_of,
    divided,
    licences_asked,
    nodes_with,
    resource_of,
)
from optsched.sites.parts import FLEX, Blocks, Reservation, Torus, Tree
from optsched.sites.site import Partition
from optsched.sites.slurm_notation import SHARED
from optsched.slurm import access
from optsched.slurm.group_limits import GroupLimit, block_limits, switch_limit, torus_limit
from optsched.slurm.queue import QueuedJob
from optsched.slurm.supply import Supply, beside

WAITING = frozenset(
    (
        *("", "Priority", "Resources", "Licenses", "ReqNodeNotAvail", "NodeDown"),
        *("BeginTime", "Dependency", "JobArrayTaskLimit", "Reservation"),
    )
)
"""Reasons of Slurm that are no rule: for want of resources, or checked here from other fields."""

OF_PARTITION = "Partition"  # start of the reasons that concern one partition, of several perhaps
OF_LIMITS = ("Assoc", "QOS")  # starts of the reasons that name a limit of an association or a QOS

HELD = ("REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD")
"""States of jobs that wait for someone to release them."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Request:
    """Equal chunks of which a job is made."""

    chunks: int
    # What a chunk stands for, as Slurm calls it: ``node`` if no two are on a node, ``task``,
    # or ``GPU``
    unit: str
    demand: Mapping[str, int]  # what a chunk needs of each column of `Supply`
    most_per_node: int  # most chunks on a node, 0 for no limit
    nodes: Flags  # nodes that the job may use, shape (nodes,)
    span: str = "anywhere"  # what holds all chunks: ``switch``, ``block`` or ``anywhere``
    # Limits on groups of nodes beyond that, the largest groups first; each chunk is on a node
    # of its own if they have segments
    limits: tuple[GroupLimit, ...] = ()
    exclusive: bool = False  # whether the job shares its nodes with no other job
    # Nodes that an exclusive job may share with the jobs that run there, all of its user,
    # shape (nodes,)
    joins: Flags | None = None
    # Whether a GPU stands for shares of one; other GPUs may have as many left
    has_shares: bool = False
    licences: Mapping[str, int]  # licences that the job needs
    notes: tuple[str, ...] = ()
    # The request with one chunk for each node, the fewest nodes that the job may have, and
    # the most that Slurm may take of one; None where a chunk can only be what it is
    divided: Request | None = None

    def most(self, supply: Supply) -> Ints:
        """Return the most chunks on each node if no other job is placed, shape (nodes,)."""
        most = np.where(self.nodes, chunks_held(self.demand, supply.columns, supply.amounts), 0)
        if self.most_per_node:
            most = np.minimum(most, self.most_per_node)
        return np.where(self.not_joined(supply.busy), 0, most) if self.exclusive else most

    def not_joined(self, busy: Flags) -> Flags:
        """Return the busy nodes without those whose jobs it may join, shape (nodes,)."""
        return busy if self.joins is None else busy & ~self.joins

    def room(self, supply: Supply) -> int:
        """Return how many chunks fit at most if no other job is placed."""
        groups = {"switch": supply.switches, "block": supply.blocks}.get(self.span)
        limits = self.limits if groups is None else (GroupLimit(self.span, groups, 1),)
        most = self.most(supply)
        return most_chunks([limit.numbered for limit in limits], np.flatnonzero(most), most)

    def fits(self, supply: Supply) -> bool:
        """Return whether the job fits if no other job is placed."""
        enough = all(supply.licences[name] >= count for name, count in self.licences.items())
        return enough and self.room(supply) >= self.chunks

    def held_in(self, supply: Supply) -> tuple[str, tuple[str, ...] | None]:
        """Return the groups that hold all chunks, and the blocks if it is one of them."""
        if self.has_shares:
            what = "it asks for shares of a GPU, and what it lacks of them"
            raise UnplaceableError(f"{what} is not modelled")
        if not self.limits:
            return self.span, supply.blocks
        limit = self.limits[0]
        if len(self.limits) > 1 or limit.most != 1:
            what = f"it may be in several of the {limit.level}, and what it lacks there"
            raise UnplaceableError(f"{what} is not modelled")
        return "block", limit.groups

    def fewest_nodes(self, supply: Supply) -> int:
        """Return the fewest nodes that can hold all chunks when they are idle."""
        return -(-self.chunks // max(1, int(self.most(supply.idle).max(initial=0))))


def released(job: QueuedJob, priority: int) -> QueuedJob:
    """Return a held job as it is once it is released, with a priority unless it has one."""
    flags = tuple(flag for flag in job.flags if flag not in HELD)
    return replace(job, held=False, flags=flags, reason="", priority=job.priority or priority)


def lacking(request: Request, supply: Supply) -> str:
    """Return which resource keeps a job from starting alone, and its amounts; empty if it fits."""
    for name, needed in request.licences.items():
        if needed > supply.licences[name]:
            return f"{supply.licences[name]:,} free of licence {name}, and {needed:,} needed"
    room = min(request.room(supply), request.chunks)
    if room == request.chunks:
        return ""
    if not request.nodes.any():
        return "no node on which jobs may start now meets what it asks for"
    nodes = request.nodes & ~supply.busy if request.exclusive else request.nodes
    most = request.most_per_node or request.chunks
    lacks: list[str] = []
    for place, name in enumerate(supply.columns):
        if needed := request.demand[name]:
            each = np.minimum(supply.amounts[nodes, place] // needed, most)
            if each.sum() < request.chunks:
                base = resource_of(name)
                lacks = [each for each in lacks if not base.startswith(f"{each}:")] + [base]
    if request.exclusive and nodes.sum() * most < request.chunks:
        lacks = ["empty nodes"]
    where = f"room {'on' if request.unit == 'node' else 'for'}"
    text = f"{where} {room:,} of {counted(request.chunks, request.unit)}"
    return f"{text}, short of {', '.join(dict.fromkeys(lacks))}" if lacks else text


def blocked_by_rule(job: QueuedJob, supply: Supply, started: int = 0) -> str:
    """Return the rule that keeps a pending job from starting now at all; empty if there is none.

    `supply`: the site and the time; `started`: tasks of the same job array that run or are to be
    started.
    """
    if job.held or set(HELD) & set(job.flags):
        return "it is held"
    if "COMPLETING" in job.flags:
        return "its last run is not yet completed"
    if job.eligible is not None and job.eligible > supply.time:
        return f"it may begin in {short(job.eligible - supply.time)}"
    if job.dependency:
        return f"it depends on {job.dependency}"
    if job.array_limit and started >= job.array_limit:
        return f"its array has reached its limit of {counted(job.array_limit, 'running task')}"
    if job.reservation:
        why = [access.why_not_in(job, each, supply) for each in access.reservations_of(job, supply)]
        if not why:
            return f"there is no reservation {job.reservation} that is shown"
        if all(why):
            return "; ".join(why)
    partitions = access.partitions_of(job, supply)
    if partitions and not access.open_partitions(job, supply):
        return _no_partition(job, supply)
    if job.reason.startswith(OF_LIMITS) and supply.limits.has_changed(
        job, access.own_qos_of(job, supply)
    ):
        return ""  # they are known, and others than when Slurm named them
    if job.reason in WAITING or (job.reason.startswith(OF_PARTITION) and len(partitions) > 1):
        return ""
    return f"Slurm names the reason {job.reason}"


def request_of(job: QueuedJob, supply: Supply) -> Request:
    """Return the request of a pending job.

    A job that names several partitions uses nodes of one of them: the one where most of its
    chunks fit now, of these the one with the lightest nodes, the first of these. So does one whose
    constraint has choices. A job of one chunk may use the nodes of all.
    """
    found = alternatives(job, supply)
    if len(found) == 1:
        return found[0]

    def fits_best(each: Request) -> tuple[int, int]:
        weights = supply.weights[each.most(supply) > 0].tolist()
        return min(each.room(supply), each.chunks), -min(weights, default=0)

    return max(found, key=fits_best)


def alternatives(job: QueuedJob, supply: Supply) -> tuple[Request, ...]:
    """Return the request of a pending job in each partition and with each choice of features.

    Those of a job of one chunk are one request if they differ in nothing but their nodes.
    """
    if job.other:
        raise UnplaceableError("; ".join(job.other))
    if job.exclusive in ("mcs", "topo"):
        raise UnplaceableError(f"it shares its nodes by the rule {job.exclusive}")
    asked, (job, with_shards) = job, _with_gpu(job, supply)
    found: list[Request] = []
    refusals = []
    for own in _in_each_reservation(job, supply):
        if (binding := _binding(own, supply)) and access.keeps_parts(binding, supply):
            name = binding.name
            refusals.append(UnplaceableError(f"reservation {name} has parts of its nodes alone"))
            continue
        licences = licences_of(own, supply)
        for partition in access.open_partitions(own, supply):
            permitted = _permitted(own, supply, partition)
            asks = own if job is not asked else access.with_gpu_defaults(own, partition, supply)
            for nodes in nodes_with(own.constraint, supply.site) & permitted & with_shards:
                try:
                    found.append(_within(asks, supply, partition, nodes, licences))
                except UnplaceableError as error:
                    refusals.append(error)
    if not found:
        raise refusals[0] if refusals else UnplaceableError(_no_partition(job, supply))
    if job is not asked:
        note = "its shards count as a GPU of their own"
        found = [replace(r, has_shares=True, notes=(*r.notes, note)) for r in found]
    if together := _together(found):
        return (together,)
    if together := _together([each.divided or each for each in found]):
        return tuple(replace(each, divided=together) for each in found)
    return tuple(found)


def _together(found: list[Request]) -> Request | None:
    """Return the request for one chunk that differs in nothing but its nodes; None if it does."""
    kinds = [(r.chunks, r.demand, r.exclusive, r.joins is None, r.licences) for r in found]
    if found[0].chunks > 1 or kinds.count(kinds[0]) < len(kinds):
        return None
    return replace(found[0], nodes=np.any([each.nodes for each in found], axis=0))


def requirements(job: QueuedJob, supply: Supply, request: Request) -> list[tuple[str, Flags]]:
    """Return in words what a job requires of nodes, each with the nodes that meet it.

    Together they are met by the nodes of `request`, one of the `alternatives` of the job.
    """
    site = supply.site
    partitions = access.open_partitions(job, supply)
    inside = site.of_partitions(partitions)
    names = " or ".join(partition.name for partition in partitions)
    found: list[tuple[str, Flags]] = [(f"in partition {names}", inside)]
    if job.constraint:
        features: Flags = np.any(nodes_with(job.constraint, site), axis=0)
        found.append((f"with the features {job.constraint}", features))
    if job.excluded:
        found.append(("not excluded by the job", ~_marked(job.excluded, supply)))
    if job.required:
        found.append(("of the nodes that the job requires", _marked(job.required, supply)))
    states = np.array(site.states, dtype=str)
    found += [(f"not {state}", states != state) for state in ("down", "drained")]
    if supply.completing.any():
        found.append(("not completing a job", ~supply.completing))
    limit = min((access.longest(job, [each]) for each in partitions), default=math.inf)
    runs_in = _in_each_reservation(job, supply)
    unreserved: Flags = np.any([_unreserved(each, supply, limit) for each in runs_in], axis=0)
    own = [binding for each in runs_in if (binding := _binding(each, supply))]
    if len(own) == len(runs_in):
        names = " or ".join(each.name for each in own)
        inside = np.any([_marked(each.nodes, supply) for each in own], axis=0)
        found.append((f"in reservation {names}", inside))
    else:
        unreserved &= supply.usable | (states != "reserved")
    found += _open(job, supply)
    found.append(("not reserved for others before its time limit ends", unreserved))
    return [*found, ("in one topology, partition and choice of features", request.nodes)]


def _no_partition(job: QueuedJob, supply: Supply) -> str:
    """Return why no partition is open to a job."""
    if partitions := access.partitions_of(job, supply):
        reasons = (access.why_closed(job, partition, supply) for partition in partitions)
        return "; ".join(dict.fromkeys(reasons))
    return f"the site has no partition {' or '.join(job.partitions) or 'for it'}"


def _in_each_reservation(job: QueuedJob, supply: Supply) -> list[QueuedJob]:
    """Return a job as it would be in each of its reservations in which it may start."""
    there = access.reservations_of(job, supply)
    there = [each for each in there if not access.why_not_in(job, each, supply)] or there
    return [replace(job, reservation=each.name) for each in there] or [job]


def _binding(job: QueuedJob, supply: Supply) -> Reservation | None:
    """Return the reservation whose nodes alone a job may use; None if there is none."""
    own = next(iter(access.reservations_of(job, supply)), None)
    return own if own is not None and own.nodes and FLEX not in own.flags else None


def licences_of(job: QueuedJob, supply: Supply) -> dict[str, int]:
    """Return the licences of a job by name.

    They count again beside each reservation of such licences that is not the job's own and holds
    before its time limit is over; those of a running job beside all, as they become free for all.
    """
    if "|" in job.licences:
        raise UnplaceableError(f"it asks for one of several licences, {job.licences}")
    found = dict(licences_asked(job.licences))
    for name in found:
        if not supply.licences:
            raise UnplaceableError(f"it needs licence {name}, and those of the site are not known")
        if name not in supply.licences:
            raise UnplaceableError(f"licence {name} is not one of the site")
    if not found:
        return {}
    last = supply.time + access.longest(job, access.partitions_of(job, supply))
    own = job.reservation.split(",")
    others = [each for each in supply.reservations if each.name not in own]
    return found | {
        beside(name, each): count
        for each in others
        if job.allocations or each.overlaps(supply.time, last)
        for name, count in found.items()
        if name in each.licences
    }


def licences_from(job: QueuedJob, supply: Supply, start: float, limit: float) -> float:
    """Return from when on, of a start and later, reservations leave a job its licences.

    What others use of these does not count.
    """
    idle, own = supply.idle.licences, job.reservation.split(",")
    for each in sorted(supply.reservations, key=lambda each: each.end):
        if each.name in own or each.ahead is not None or not each.overlaps(start, start + limit):
            continue
        asked = licences_asked(job.licences).items()
        if any(count > idle.get(beside(name, each), count) for name, count in asked):
            start = each.end
    return start


def _permitted(job: QueuedJob, supply: Supply, partition: Partition) -> Flags:
    """Return the nodes of a partition on which a job may start now and run to its limit."""
    permitted = supply.site.of_partitions([partition])
    for each in access.reservations_of(job, supply):
        if not access.admits(job, each, supply, partition.name):
            return np.zeros_like(permitted)
    own = _binding(job, supply)
    if own is not None:
        usable = np.isin(supply.site.states, ("up", "reserved"))
        permitted &= usable & _marked(own.nodes, supply)
    else:
        permitted &= supply.usable
    permitted &= _unreserved(job, supply, access.longest(job, [partition]))
    for _, nodes in _open(job, supply):
        permitted &= nodes
    return permitted & ~supply.completing & ~_marked(job.excluded, supply)


def _open(job: QueuedJob, supply: Supply) -> list[tuple[str, Flags]]:
    """Return in words what others forbid on their nodes, each with the nodes where nobody does."""
    rules = (
        ("not owned by another user", supply.owners, job.user),
        ("not with jobs of another MCS label", supply.labels, job.mcs_label),
    )
    found = ((text, (there == "") | (there == own)) for text, there, own in rules)
    return [(text, nodes) for text, nodes in found if not nodes.all()]


def shares_with_own(job: QueuedJob, supply: Supply) -> bool:
    """Return whether a job shares its nodes only with jobs of its user."""
    return job.exclusive == "user" or any(
        p.exclusive_user for p in access.partitions_of(job, supply)
    )


def _with_gpu(job: QueuedJob, supply: Supply) -> tuple[QueuedJob, Flags]:
    """Return a job with a GPU in place of shards, which Slurm takes of one, and where it may be."""
    asked = {*job.per_node, *job.per_task, *job.per_job}
    everywhere = np.ones(len(supply.site.nodes), dtype=bool)
    shares = {name for name in asked if name.partition(":")[0] in SHARED}
    if not shares:
        return job, everywhere
    of_node = {name: job.per_node.get(name, 0) for name in shares}
    kinds = [name[6:] for name in shares if name.startswith("shard:")]
    if (
        not {*job.per_node} >= shares
        or any(name.partition(":")[0] in ("mps", "gpu") for name in asked)
        or len(kinds) > 1
    ):
        names = " and ".join(sorted(shares))
        raise UnplaceableError(f"it asks for {names}, and only Slurm knows of which GPUs")
    site, gpu = supply.site, "gpu"
    for name, count in of_node.items():
        kind = name[5:]
        if name not in site.resources or gpu + kind not in site.resources:
            raise UnplaceableError(f"it asks for {name}, which no node has with GPUs of its type")
        shards, gpus = (site.capacity[:, site.resources.index(r)] for r in (name, gpu + kind))
        everywhere &= (gpus > 0) & (count * gpus <= shards) & (shards % np.maximum(gpus, 1) == 0)
    rest = {name: count for name, count in job.per_node.items() if name not in shares}
    gpus_asked = dict.fromkeys([gpu, *(f"gpu:{kind}" for kind in kinds)], 1)
    return (replace(job, per_node=rest | gpus_asked, cores_per_gpu=0, memory_per_gpu=0), everywhere)


def _unreserved(job: QueuedJob, supply: Supply, limit: float) -> Flags:
    """Return the nodes that no reservation but the job's own has until its time limit ends."""
    unreserved = np.ones(len(supply.site.nodes), dtype=bool)
    for each in supply.reservations:
        if each.name != job.reservation and each.overlaps(supply.time, supply.time + limit):
            unreserved &= ~_marked(each.nodes, supply)
    return unreserved


@lru_cache(maxsize=8)  # the lists of many jobs are the same, and may be long
def _marked(names: tuple[str, ...], supply: Supply) -> Flags:
    marked = np.zeros(len(supply.site.nodes), dtype=bool)
    marked[supply.site.known_places(names)] = True
    return read_only(marked)


def _within(
    job: QueuedJob, supply: Supply, partition: Partition, nodes: Flags, licences: dict[str, int]
) -> Request:
    """Return the request of a job for some nodes of a partition."""
    if reason := access.cores_for_memory(job, partition, supply):
        raise UnplaceableError(reason)
    columns, capacity = supply.layout, supply.capacity[nodes]

    def able(demand: Mapping[str, int]) -> int:
        return int((chunks_held(demand, supply.columns, capacity) > 0).sum())

    division = divided(job, partition, columns, able, len(capacity))
    tasks, gres, on_nodes = division.tasks, division.gres, division.on_nodes
    demand = demand_of(job, partition, columns, tasks, gres, on_nodes=on_nodes)
    unit = "node" if division.most_per_node == 1 or division.chunks == 1 else "task"
    if unit == "task" and not division.tasks:
        unit = "GPU"
    notes = _unevenly(job, partition, division)
    exclusive = job.is_alone(partition, columns)
    joins = None
    if not exclusive and (job.exclusive == "user" or partition.exclusive_user):
        joins = (supply.owners == job.user) | (supply.users == job.user)
        exclusive, joins = True, joins & bool(job.user)
        notes.append("of the jobs of its user it joins those that run, not other pending ones")
    elif not exclusive and job.mcs_label and supply.by_label:
        exclusive, joins = True, supply.labels == job.mcs_label
        notes.append("of the jobs of its MCS label it joins those that run, not other pending ones")
    if job.takes_all_memory(columns):
        notes.append("it asks for all memory of its nodes and so shares none of them")
    if (
        division.chunks > 1
        and not division.on_nodes
        and any(
            demand[column(CORES, threads)] > demand[CORES]
            and (nodes & (supply.threads == threads)).any()
            for threads in supply.thread_counts
        )
    ):
        notes.append(f"each {unit} counts as whole cores on nodes of several threads per core")
    if not supply.counts_memory:
        nodes = nodes & (supply.capacity[:, 1] >= demand[MEMORY])
        demand = {name: 0 if name.startswith(MEMORY) else n for name, n in demand.items()}
    if exclusive:
        count = division.chunks if division.most_per_node == 1 else job.least_nodes
        nodes = access.affordable(job, partition, supply, nodes, count)
    if exclusive and partition.name in supply.cores_left:
        nodes = nodes & (supply.site.capacity[:, 0] <= supply.access[partition.name].cores_per_node)
    span = "anywhere"
    limits: tuple[GroupLimit, ...] = ()
    if division.chunks > 1:
        span, limits, nodes, more = _span(job, supply, partition, nodes, division)
        notes += more
    found = Request(
        chunks=division.chunks,
        unit=unit,
        demand=demand,
        most_per_node=division.most_per_node,
        nodes=_required(job, supply, nodes, division),
        span=span,
        limits=limits,
        exclusive=exclusive,
        joins=joins,
        licences=licences,
        notes=tuple(notes),
    )
    count, most = _most_of_a_node(job, supply, partition, nodes, division, demand)
    if exclusive or (count, most) == (division.chunks, demand):
        return found
    of_nodes = replace(found, chunks=count, unit="node", demand=most, most_per_node=1)
    return replace(found, divided=of_nodes)


def _unevenly(job: QueuedJob, partition: Partition, division: Division) -> list[str]:
    """Return what the chunks have that Slurm does not ask for, in words."""
    notes = []
    count, tasks = division.chunks, job.tasks
    most = min(job.most_nodes or math.inf, partition.max_nodes, tasks)
    if division.on_nodes and job.needed_nodes < most:
        notes.append(f"it is taken on the fewest nodes that can hold it, {count:,}")
    shares = {"tasks": (tasks, division.tasks)} if division.tasks else {}
    shares |= {name: (total, division.gres.get(name, 0)) for name, total in job.per_job.items()}
    for name, (total, share) in shares.items():
        if total % count:
            notes.append(f"its {total:,} {name} count as {share:,} on each node")
    return notes


def _most_of_a_node(
    job: QueuedJob,
    supply: Supply,
    partition: Partition,
    nodes: Flags,
    division: Division,
    demand: Mapping[str, int],
) -> tuple[int, Mapping[str, int]]:
    """Return the fewest nodes of a job, and the most that Slurm may take of each column there.

    `demand` is that of an equal chunk, and what it has none of is not counted. No chunk of a job of
    a fixed number of nodes is larger than a node.
    """
    count, least = division.chunks, job.needed_nodes
    if count == 1:
        return 1, demand
    if division.on_nodes:
        tasks = min(job.tasks_per_node or math.inf, max(1, job.tasks - count + 1))
        if job.tasks == count * job.tasks_per_node:
            tasks = division.tasks
        others = {name: n for name, n in job.per_job.items() if name not in job.per_task}
        gres = {name: job.per_node.get(name, n - count + 1) for name, n in others.items()}
        most = demand_of(job, partition, supply.layout, int(tasks), gres, on_nodes=True)
        most = {name: min(each, _largest(name, nodes, supply)) for name, each in most.items()}
    else:
        count, each = least, count - least + 1
        gres = dict.fromkeys(division.gres, each)
        most = demand_of(job, partition, supply.layout, each * division.tasks, gres, on_nodes=True)
    return count, {name: max(one, most[name]) if one else 0 for name, one in demand.items()}


def _largest(name: str, nodes: Flags, supply: Supply) -> int:
    """Return the most of a column that one of some nodes has."""
    threads = [each for each in supply.thread_counts if name.endswith(f"of {each} threads")]
    there = nodes & (supply.threads == threads[0]) if threads else nodes
    return int(supply.capacity[there, supply.columns.index(name)].max(initial=0))


def _span(
    job: QueuedJob, supply: Supply, partition: Partition, nodes: Flags, division: Division
) -> tuple[str, tuple[GroupLimit, ...], Flags, list[str]]:
    """Return the group that must hold all chunks, limits of groups, nodes in it, and notes."""
    site = supply.site
    topology = site.topology(partition.topology)
    name = partition.topology or next(iter(site.topologies), "")
    if isinstance(topology, Torus):
        if not topology.places:
            where = f"the torus of partition {partition.name}"
            raise UnplaceableError(f"placement on {where} is not modelled")
        if not _has_fixed_nodes(job, division):
            raise UnplaceableError("it asks for a place on a torus and any number of nodes")
        limit = torus_limit(topology, name, division.chunks, job.segment or 0, names=site.nodes)
        return "anywhere", (limit,), nodes & (np.array(limit.groups) != ""), []
    if isinstance(topology, Blocks):
        segment = job.segment or 0
        if 0 < segment < job.least_nodes and not _has_fixed_nodes(job, division):
            raise UnplaceableError("it asks for segments and any number of nodes")
        # Slurm counts on the least number of nodes when it looks for a block
        limits = block_limits(
            topology, name, job.least_nodes, segment, together=job.segments_together
        )
        notes = [] if job.segment is not None else ["whether it asks for segments is not known"]
        nodes = nodes & (topology.group >= 0)
        of_one = len(limits) == 1 and limits[0].most == 1
        is_base = of_one and {*limits[0].groups} <= {"", *topology.names}
        if is_base and name == supply.block_topology:
            return "block", (), nodes, notes
        return "anywhere", limits, nodes, notes
    if not isinstance(topology, Tree) or not topology.switches:
        return "anywhere", (), nodes, []
    nodes = nodes & (topology.group >= 0)
    if not job.switches or (division.on_nodes and division.chunks <= job.switches):
        return "anywhere", (), nodes, []
    if job.eligible is not None and job.eligible + job.switches_wait <= supply.time:
        return "anywhere", (), nodes, ["it has waited for fewer switches as long as it wants"]
    if job.switches == 1 and name == supply.tree:
        return "switch", (), nodes, []
    return "anywhere", (switch_limit(topology, name, job.switches),), nodes, []


def _has_fixed_nodes(job: QueuedJob, division: Division) -> bool:
    """Return whether a job has as many nodes as chunks, and has resources on each of them alone."""
    return division.on_nodes and division.chunks == job.least_nodes and not job.per_job


def _required(job: QueuedJob, supply: Supply, nodes: Flags, division: Division) -> Flags:
    """Return the nodes that a job may use, which are those that it requires if it requires all."""
    if not job.required:
        return nodes
    count = len({*job.required})
    if count != division.chunks or (division.most_per_node != 1 and division.chunks > 1):
        raise UnplaceableError("it requires some nodes and leaves others open")
    if not nodes[marked := _marked(job.required, supply)].sum() == count == marked.sum():
        return np.zeros_like(nodes)
    return marked
