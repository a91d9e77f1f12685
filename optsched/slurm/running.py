"""What running jobs of Slurm hold, and what is free once they have ended or are preempted."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.arrays import Ints
from optsched.numbers import counted
from optsched.sites.job_request import UnplaceableError, unit_of
from optsched.sites.site import some
from optsched.sites.slurm_files import captured_folder
from optsched.sites.slurm_notation import SHARED
from optsched.slurm.access import NO_RULES, nodes_of, open_partitions, own_qos_of, partitions_of
from optsched.slurm.queue import QueuedJob, SlurmQueue, read_factors, read_queue, set_by_operator
from optsched.slurm.requests import licences_of, shares_with_own
from optsched.slurm.supply import Supply, beside, read_supply


class Held(NamedTuple):
    """What a running job holds."""

    nodes: Ints  # its nodes in the site, shape (nodes of the job,)
    # Amounts of the resources of the site on each of them, shape (nodes of the job,
    # resources)
    amounts: Ints
    licences: dict[str, int]  # licences of the site


def held_by(job: QueuedJob, supply: Supply) -> Held:
    """Return the amounts that a running job holds, which are free when it ends.

    A suspended job keeps its memory and its GPUs, but has given its cores back. A GPU of which it
    has shares is not counted: see `held_alone`.
    """
    site = supply.site
    there = [each for each in job.allocations if each.node in site.index]
    nodes = np.array([site.index[each.node] for each in there], dtype=np.int64)
    gres = [(name, unit_of(name, supply.units)) for name in site.resources[2:]]
    rows = [
        [each.cores, each.memory, *(each.gres.get(name, 0) // unit for name, unit in gres)]
        for each in there
    ]
    amounts = np.array(rows, dtype=np.int64).reshape(len(there), len(site.resources))
    # the queue counts physical cores, the site hardware threads
    amounts[:, 0] *= supply.threads[nodes]
    if job.is_suspended:
        amounts[:, 0] = 0
    try:
        licences = licences_of(job, supply)
    except UnplaceableError:  # of another site
        licences = {}
    return Held(nodes, amounts, licences)


def held_alone(jobs: Sequence[QueuedJob], supply: Supply) -> list[Held]:
    """Return the resources of each running job, with the shared GPUs that no other job uses."""
    users = _shared_gpus(jobs, supply)
    found = []
    for job in jobs:
        held = held_by(job, supply)
        if alone := [gpu for gpu in _shared_gpus([job], supply) if users[gpu] == 1]:
            held = held._replace(amounts=held.amounts + _amounts_of(alone, supply)[held.nodes])
        found.append(held)
    return found


def hidden_amounts(held: Iterable[Held], supply: Supply) -> Ints:
    """Return the amounts in use that some jobs do not hold, shape (nodes, resources)."""
    rest: Ints = supply.site.capacity - supply.free
    for each in held:
        np.subtract.at(rest, each.nodes, each.amounts)
    return rest


def _shared_gpus(jobs: Iterable[QueuedJob], supply: Supply) -> Counter[tuple[int, str, int]]:
    """Return of how many jobs GPUs are shared: node, type, and number among those of the type."""
    found: Counter[tuple[int, str, int]] = Counter()
    for job in jobs:
        for each in job.allocations:
            if each.node in supply.site.index:
                node = supply.site.index[each.node]
                for kind, _, gpus in each.shares:  # those not stated are in use at all times
                    found.update((node, kind, gpu) for gpu in gpus or ())
    return found


def _amounts_of(gpus: Iterable[tuple[int, str, int]], supply: Supply) -> Ints:
    """Return GPUs as amounts of the resources of the site, shape (nodes, resources)."""
    site = supply.site
    amounts = np.zeros_like(site.capacity)
    if "gpu" not in site.resources:
        return amounts
    types = [place for place, name in enumerate(site.resources) if name.startswith("gpu:")]
    for node, kind, _ in gpus:
        amounts[node, site.resources.index("gpu")] += 1
        there = [place for place in types if site.capacity[node, place]]
        if kind:
            there = [place for place in there if site.resources[place] == f"gpu:{kind}"]
        if len(there) == 1:
            amounts[node, there[0]] += 1
    return amounts


def read_captured(folder: Path) -> tuple[SlurmQueue, Supply]:
    """Return the queue and what is free, from a folder with captured output of Slurm."""
    queue = read_queue(captured_folder(folder))
    factors = read_factors(folder)
    jobs = (replace(one, priority_by_operator=set_by_operator(one, factors)) for one in queue.jobs)
    queue = replace(queue, jobs=tuple(jobs)) if factors else queue
    supply = read_supply(folder, queue.time)
    used = {
        name: np.zeros(len(supply.site.nodes), dtype=np.int64)
        for name, access in supply.access.items()
        if access.cores_per_node
    }
    licences, in_use = Counter(supply.licences), Counter[str]()
    for job in queue.running:
        held = held_by(job, supply)
        in_use.update(held.licences)
        for name in {*job.partitions} & used.keys():
            used[name][held.nodes] += held.amounts[:, 0]
        for own in supply.reservations:
            if own.name == job.reservation:  # of whose licences it has some
                for name in own.licences.keys() & held.licences.keys():
                    licences[beside(name, own)] += held.licences[name]
    for name in supply.licences.keys() & supply.site.licences.keys():  # Slurm may lag behind
        left = supply.site.licences[name] - in_use[name]
        licences[name] = min(licences[name], max(0, left))
    cores_left = {
        name: np.maximum(0, supply.access[name].cores_per_node - cores)
        for name, cores in used.items()
    }
    return queue, replace(supply, cores_left=cores_left, licences=dict(licences))


def end_of(job: QueuedJob, time: int) -> float:
    """Return when a job ends at the latest: at its time limit, or soon if that is over.

    The time of a suspended job does not run, so that it has no end.
    """
    return math.inf if job.end is None or job.is_suspended else max(job.end, time + 1)


def started_of(job: QueuedJob, queue: SlurmQueue, supply: Supply) -> int:
    """Return how many tasks of the array of a job run at the time of the supply."""
    same = [each for each in queue.running if job.array_id and each.array_id == job.array_id]
    return sum(end_of(each, queue.time or 0) > supply.time for each in same)


def hidden_licences(queue: SlurmQueue, supply: Supply) -> dict[str, int]:
    """Return how many of each licence of the site are in use by no job that the queue shows."""
    held = Counter[str]()
    for each in queue.running:
        held.update(held_by(each, supply).licences)
    totals = supply.site.licences.items()
    return {name: max(0, total - supply.licences[name] - held[name]) for name, total in totals}


class _Running(NamedTuple):
    job: QueuedJob
    held: Held
    end: float  # see `end_of`
    owns: bool  # whether only jobs of its user may be on its nodes
    alone: bool  # whether no other job may


@lru_cache(maxsize=4)
def _running(supply: Supply, queue: SlurmQueue) -> tuple[_Running, ...]:
    found = []
    for job in queue.running:
        owns, alone = shares_with_own(job, supply), is_alone(job, supply)
        found.append(_Running(job, held_by(job, supply), end_of(job, supply.time), owns, alone))
    return tuple(found)


@lru_cache(maxsize=32)
def supply_at(supply: Supply, queue: SlurmQueue, time: int) -> Supply:
    """Return the free amounts at a time, when the running jobs end at their time limits.

    What the jobs that then run forbid to others is obeyed. Jobs that start meanwhile are not
    counted, nodes keep their states; jobs that are being completed now are so no more.
    """
    time, jobs = max(time, supply.time), _running(supply, queue)
    if (closed := supply.closing <= time).any():
        supply = supply.with_states(closed & supply.site.is_usable, "drained")
    ended = [each for each in jobs if each.end <= time]
    found = _after(supply, ended, [each for each in jobs if each.end > time])
    return replace(found, time=time, completing=supply.completing & (time == supply.time))


def _after(supply: Supply, ended: Sequence[_Running], stay: Sequence[_Running]) -> Supply:
    """Return the supply after the end of some running jobs, while the others stay."""
    site, limits = supply.site, supply.limits
    cores_left = {name: left.copy() for name, left in supply.cores_left.items()}
    free, licences, busy = supply.free.copy(), Counter(supply.licences), supply.busy
    for job, held, end, *_ in ended:
        free[held.nodes] += held.amounts
        licences.update(held.licences)
        for name in {*job.partitions} & cores_left.keys():
            cores_left[name][held.nodes] += held.amounts[:, 0]
        rest = max(0, end - supply.time) if end < math.inf else 0
        limits = limits.with_job(job, job.tres, own_qos_of(job, supply), rest, ends=True)
    if ended:
        users = (_shared_gpus((one.job for one in each), supply) for each in (ended, stay))
        shared = next(users).keys() - next(users).keys()
        free = np.minimum(free + _amounts_of(shared, supply), site.capacity)
        busy = free[:, 0] < site.capacity[:, 0]
        for job, held, *_ in stay:
            if not job.is_suspended:
                busy[held.nodes] = True
    owners, taken = supply.owners.copy(), np.zeros(len(site.nodes), dtype=bool)
    for job, held, _, owns, _ in ended:
        if owns:
            owners[held.nodes[owners[held.nodes] == job.user]] = ""
    for job, held, _, owns, alone in stay:
        if owns:
            owners[held.nodes] = job.user
        taken[held.nodes] |= alone
    return replace(
        supply,
        free=free,
        licences=dict(licences),
        busy=busy,
        cores_left=cores_left,
        limits=limits,
        owners=owners,
        taken=taken,
        users=_users(stay, site.capacity[:, 0] - free[:, 0]),
    )


def closes(running: QueuedJob, job: QueuedJob, supply: Supply) -> bool:
    """Return whether a running job closes its nodes to another job."""
    owns = running.user != job.user and shares_with_own(running, supply)
    return owns or is_alone(running, supply)


def unseen_on_nodes(job: QueuedJob, queue: SlurmQueue, supply: Supply) -> tuple[str, ...]:
    """Return in words what keeps nodes or GPUs from a job of which it is not known when it ends."""
    site = supply.site
    inside = site.of_partitions(partitions_of(job, supply))
    owned = (supply.owners != "") & (supply.owners != job.user)
    labelled = (supply.labels != "") & (supply.labels != job.mcs_label)
    reserved = np.zeros(len(site.nodes), dtype=bool)
    hidden = np.array(site.states) == "reserved"
    for one in supply.reservations:
        if one.at(supply.time):
            hidden &= ~np.isin(site.nodes, one.nodes)
        is_own = one.name in job.reservation.split(",")
        if one.ahead is None and math.isinf(one.start) and not is_own:
            reserved |= np.isin(site.nodes, one.nodes)
    for each in queue.running:
        if closes(each, job, supply):
            owned[site.known_places(each.nodes)] = False
    left = np.zeros(len(site.nodes), dtype=np.int64)
    asked = {*job.per_node, *job.per_task, *job.per_job}
    if any(name.startswith("gpu") for name in asked):
        place = site.resources.index("gpu") if "gpu" in site.resources else 0
        shares = [at for at, name in enumerate(site.resources) if name in SHARED]
        left = hidden_amounts(held_alone(queue.running, supply), supply)[:, place]
        left = np.where((site.capacity[:, shares] > supply.free[:, shares]).any(axis=1), left, 0)
    sentences = (
        ("who holds {}, which another user owns: no job that the queue shows", owned),
        ("when no job of another MCS label is on {}", labelled),
        ("when GPUs of {} are free, of which several jobs have shares", left > 0),
        ("when {} are reserved", reserved),
        ("which reservation has {}: none that is shown", hidden),
    )
    return tuple(
        text.format(f"{counted(len(names), 'node')} ({some(names)})")
        for text, which in sentences
        if (names := [site.nodes[node] for node in np.flatnonzero(which & inside)])
    )


def is_alone(job: QueuedJob, supply: Supply) -> bool:
    """Return whether a running job shares its nodes with no other job."""
    is_exclusive = any(each.exclusive for each in partitions_of(job, supply))
    return not job.is_suspended and (job.exclusive == "node" or is_exclusive)


def _users(jobs: Iterable[_Running], in_use: Ints) -> NDArray[np.object_]:
    """Return the only user on each node; none where cores are in use by jobs that are not shown."""
    users: list[set[str]] = [set() for _ in in_use]
    hidden = in_use.copy()
    for job, held, *_ in jobs:
        hidden[held.nodes] -= held.amounts[:, 0]
        for node in held.nodes.tolist():
            users[node].add(job.user)
    only = ("".join(there) if len(there) == 1 else "" for there in users)
    return np.where(hidden > 0, "", np.array([*only], object))


MOST_VIEWS = 8  # most sets of jobs that may be preempted of which each is played by itself
NO_TIME = "00:00:00"  # a ``PreemptExemptTime`` that protects no job

_NUMBER = re.compile(r":([0-9]+)")


def may_preempt(
    job: QueuedJob, others: Iterable[QueuedJob], supply: Supply
) -> tuple[QueuedJob, ...]:
    """Return those of other jobs on its nodes that a job may preempt, by partition or by QOS.

    Those of a partition of a lower tier with a `PreemptMode`; with ``preempt/qos`` those of a QOS
    that its own may preempt, or of all others if ``qos.txt`` is not there; those of its own QOS,
    if that is one of ``WITHIN``, only of a lower priority.
    """
    kind = supply.settings.get("preempttype", "").rpartition("/")[2]
    if kind not in ("partition_prio", "qos"):
        return ()
    there = nodes_of(job, supply)
    tiers, rules = supply.tiers, supply.qos_preempts or {}
    within = "WITHIN" in supply.settings.get("preemptmode", "").upper().split(",")
    own = max((tiers[each.name] for each in open_partitions(job, supply)), default=0)
    found = []
    for each in others:
        if kind == "qos" and each.qos == job.qos:
            may = (within or job.qos in rules.get(job.qos, ())) and each.priority < job.priority
        elif kind == "qos":
            may = supply.qos_preempts is None or each.qos in rules.get(job.qos, ())
        else:
            may = any(
                tiers.get(name, own) < own and supply.access.get(name, NO_RULES).preempted
                for name in each.partitions
            )
        if may:
            its = supply.site.known_places(each.nodes)  # or where a pending one may be
            if there[nodes_of(each, supply) if each.state == "PENDING" else its].any():
                found.append(each)
    return tuple(found)


def unseen_preemption(job: QueuedJob, queue: SlurmQueue, supply: Supply) -> tuple[str, ...]:
    """Return in words which running jobs a job may preempt: Slurm decides; empty if none."""
    jobs = may_preempt(job, queue.running, supply)
    if not jobs:
        return ()
    kind, mode = (supply.settings.get(name, "") for name in ("preempttype", "preemptmode"))
    names = ", ".join(each.label for each in jobs[:3]) + (", ..." if len(jobs) > 3 else "")
    which = f"{counted(len(jobs), 'running job')} ({names})"
    return (f"whether it preempts {which}, PreemptType={kind}, PreemptMode={mode or 'OFF'}",)


class View(NamedTuple):
    """The queue as it is for jobs that may preempt others: these are gone."""

    jobs: frozenset[int]  # numbers of the pending jobs that see it so
    queue: SlurmQueue
    supply: Supply


def views(queue: SlurmQueue, supply: Supply) -> tuple[View, ...]:
    """Return the queue as it is for the pending jobs that may preempt others.

    Slurm takes such a job before all that it may preempt, and starts it as soon as it fits without
    them. There are no views where Slurm suspends jobs, which keep their memory, or lets them run
    for a while, where it is not known whom a QOS may preempt, and of more than `MOST_VIEWS` sets of
    jobs.
    """
    settings, rules = supply.settings, supply.qos_preempts
    if (
        "SUSPEND" in settings.get("preemptmode", "").upper()
        or settings.get("preemptexempttime", NO_TIME).upper() not in (NO_TIME, "NONE", "")
        or (settings.get("preempttype", "").endswith("/qos") and rules is None)
    ):
        return ()
    by_kind: dict[tuple[tuple[str, ...], str, int, str], frozenset[int]] = {}
    seen: dict[frozenset[int], list[QueuedJob]] = {}
    for job in queue.pending:
        kind = job.partitions, job.qos, job.priority, job.reservation
        if kind not in by_kind:
            theirs = may_preempt(job, (*queue.running, *queue.pending), supply)
            by_kind[kind] = frozenset(each.job_id for each in theirs)
        awaited = {int(number) for number in _NUMBER.findall(job.dependency)}
        seen.setdefault(by_kind[kind] - awaited, []).append(job)
    seen.pop(frozenset(), None)
    found = []
    for gone, jobs in seen.items() if len(seen) <= MOST_VIEWS else ():
        left = tuple(each for each in queue.jobs if each.job_id not in gone)
        own = frozenset(each.job_id for each in jobs)
        runs = _running(supply, queue)
        ended = [each for each in runs if each.job.job_id in gone]
        there = _after(supply, ended, [each for each in runs if each.job.job_id not in gone])
        found.append(View(own, replace(queue, jobs=left), there))
    return tuple(found)
