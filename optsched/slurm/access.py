"""Why a waiting job may not start in a partition, whatever is free there."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from optsched.arrays import Flags
from optsched.numbers import counted, short, whole_number
from optsched.sites.parts import FLEX, Reservation
from optsched.sites.site import Partition
from optsched.sites.slurm_partitions import Access, of_gpu
from optsched.slurm.limits import Limits
from optsched.slurm.queue import QueuedJob
from optsched.slurm.supply import Supply

FIRST_WITH_SUBACCOUNTS = (23, 2)
"""First version of Slurm in which an account of a partition stands for those below it too."""

NO_RULES = Access()

PASSED = "Resources"
"""Reason that Slurm gives once a job is within the limits of its partition, or is let pass them.

What an operator has set, and jobs of a QOS with certain flags, may be beyond them; neither is
shown. With the reason ``Priority`` a job may not have been looked at.
"""


def partitions_of(job: QueuedJob, supply: Supply) -> list[Partition]:
    """Return the partitions of a job that the site has, in the order of the job."""
    return supply.site.known_partitions(job.partitions)


def longest(job: QueuedJob, partitions: Iterable[Partition]) -> float:
    """Return for how long a job may run in some partitions, in seconds."""
    limits = (each.max_time for each in partitions)
    return max(limits, default=math.inf) if job.limit is None else job.limit


def open_partitions(job: QueuedJob, supply: Supply) -> list[Partition]:
    """Return the partitions in which a job may start, in the order of the job."""
    return [each for each in partitions_of(job, supply) if not why_closed(job, each, supply)]


def why_closed(job: QueuedJob, partition: Partition, supply: Supply) -> str:
    """Return why a job may not start in a partition; empty if it may."""
    return next(_reasons(job, partition, supply), "") or exceeded_limit(
        job, partition, supply, supply.limits
    )


def reservations_of(job: QueuedJob, supply: Supply) -> list[Reservation]:
    """Return the reservations of a job that are known, in its order: it runs in one of them."""
    there = {each.name: each for each in supply.reservations}
    return [there[name] for name in job.reservation.split(",") if name in there]


def why_not_in(job: QueuedJob, reservation: Reservation, supply: Supply) -> str:
    """Return why a job cannot start in a reservation now; empty if it can, as far as is known."""
    before = supply.time < reservation.end and FLEX in reservation.flags
    if not (before or reservation.at(supply.time)):
        return f"reservation {reservation.name} does not hold now"
    if any(admits(job, reservation, supply, name) for name in job.partitions or ("",)):
        return ""
    return f"reservation {reservation.name} does not admit it"


def admits(job: QueuedJob, reservation: Reservation, supply: Supply, partition: str) -> bool:
    """Return whether a reservation admits a job in a partition, as far as is known."""
    if _is_root(job, supply):
        return True
    above = supply.limits.accounts_above(job.account) if _below(supply) else ()
    own = {
        "users": {job.user},
        "accounts": {job.account, *above},
        "qos": {job.qos},
        "allowed_partitions": {partition},
    }
    for kind, names in own.items():
        listed = {*reservation.admits.get(kind, ())}
        positive = {name for name in listed if not name.startswith("-")}
        may_be_below = kind == "accounts" and _below(supply) and not supply.limits.parents
        is_missing = positive and positive.isdisjoint(names) and not may_be_below
        if is_missing or listed & {f"-{name}" for name in names}:
            return False
    return True


def keeps_parts(reservation: Reservation, supply: Supply) -> bool:
    """Return whether a reservation leaves parts of its nodes to other jobs."""
    nodes = supply.site.known_places(reservation.nodes)
    cores = supply.site.capacity[nodes, 0] // supply.threads[nodes]
    return reservation.has_parts or 0 < reservation.cores < int(cores.sum())


def unknown_admission(job: QueuedJob, reservation: Reservation, supply: Supply) -> Iterator[str]:
    """Yield in words what is not known of whether a reservation admits a job."""
    if _is_root(job, supply):
        return
    name = f"reservation {reservation.name}"
    if groups := reservation.admits.get("groups"):
        yield f"whether user {job.user or '-'} is in the groups {','.join(groups)} of {name}"
    accounts = [each.lstrip("-") for each in reservation.admits.get("accounts", ())]
    if accounts and job.account not in accounts and _below(supply) and not supply.limits.parents:
        yield f"which accounts are below {','.join(accounts)} of {name}, without assoc_mgr.txt"


def _below(supply: Supply) -> bool:
    """Return whether an account of a reservation stands for those below it."""
    return supply.settings.get("accountingstorageenforce", "").lower() != "none"


def exceeded_limit(
    job: QueuedJob,
    partition: Partition,
    supply: Supply,
    limits: Limits,
    amounts: Mapping[str, int] | None = None,  # what it takes, by default the least
) -> str:
    """Return the limit of a QOS or an association that a job exceeds; empty if there is none."""
    own = supply.access.get(partition.name, NO_RULES).own_qos
    amounts = amounts or least_amounts(job, partition, supply)
    return next((why for _, why in limits.broken(job, amounts, own)), "")


def users_of_limit(
    job: QueuedJob, running: Iterable[QueuedJob], supply: Supply
) -> tuple[tuple[str, int], ...]:
    """Return who has how much of the first limit that a job exceeds, most first; none without one.

    A limit on the jobs of one user has one.
    """
    limits = supply.limits
    for partition in partitions_of(job, supply):
        own = supply.access.get(partition.name, NO_RULES).own_qos
        broken = limits.broken(job, least_amounts(job, partition, supply), own)
        limit = next((each for each, _ in broken), None)
        if limit is None:
            continue
        found: dict[str, int] = {}
        for each in running:
            rest = math.inf if each.end is None else max(0, each.end - supply.time)
            taken = limits.counted(each, each.tres, own_qos_of(each, supply), rest)
            for other, count in taken.items():
                if other.key == limit.key and count:
                    found[each.user] = found.get(each.user, 0) + count
        return tuple(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))
    return ()


def affordable(
    job: QueuedJob, partition: Partition, supply: Supply, nodes: Flags, count: int
) -> Flags:
    """Return the nodes of which a job may have some number as a whole within its limits."""
    cores = supply.site.capacity[:, 0]
    found = nodes.copy()
    for each in np.unique(cores[nodes]).tolist() if supply.limits.known else ():
        amounts = {**job.tres, "cpu": count * each, "node": count}
        if exceeded_limit(job, partition, supply, supply.limits, amounts):
            found &= cores != each
    return found


def own_qos_of(job: QueuedJob, supply: Supply) -> list[str]:
    """Return the QOS of the partitions of a job, with an empty one for a partition without."""
    return [supply.access.get(name, NO_RULES).own_qos for name in job.partitions]


def least_amounts(job: QueuedJob, partition: Partition, supply: Supply) -> Mapping[str, int]:
    """Return the least amounts of a pending job that Slurm counts against limits.

    A job that shares no nodes counts for all cores of its nodes, others for whole physical cores.
    """
    if not job.tres or not len(partition.nodes):
        return job.tres
    nodes = max(job.least_nodes, job.tres.get("node", 1))
    cores = job.tres.get("cpu", job.tasks * job.cores_per_task)
    threads = int(supply.threads[partition.nodes].min())
    cores = threads * math.ceil(cores / threads)
    if partition.exclusive or job.exclusive == "node":
        cores = max(cores, nodes * int(supply.site.capacity[partition.nodes, 0].min()))
    return {**job.tres, "cpu": cores, "node": nodes}


def _reasons(job: QueuedJob, partition: Partition, supply: Supply) -> Iterator[str]:
    """Yield the rules of a partition on size, time, memory and users that a job breaks."""
    name, access = partition.name, supply.access.get(partition.name, NO_RULES)
    if not partition.up:
        yield f"partition {name} is down"
    is_let = len(job.partitions) == 1 and job.reason == PASSED
    is_free = is_let or job.limit_by_operator
    if job.limit is not None and job.limit > partition.max_time and not is_free:
        limit = short(job.limit) if job.limit < math.inf else "none"
        most_time = f"the {short(partition.max_time)} of partition {name}"
        yield f"its time limit, {limit}, exceeds {most_time}"
    least = job.needed_nodes
    if job.most_nodes and least > job.most_nodes:
        yield f"its tasks need {least:,} nodes, and it may have {job.most_nodes:,}"
    for nodes in (least, job.most_nodes):
        if nodes > partition.max_nodes and not is_let:
            its = f"its {nodes:,} nodes are more than the"
            yield f"{its} {partition.max_nodes:,.0f} of partition {name}"
    asked = f"it asks for {counted(least, 'node')}, and partition {name}"
    if least > len(partition.nodes):
        yield f"{asked} has {len(partition.nodes):,}"
    if least < access.least_nodes and not is_let:
        yield f"{asked} wants {access.least_nodes:,} or more"
    most = _memory_limit(access, supply, "maxmempernode")
    memory = job.memory_per_node
    if memory is None:
        tasks = max(job.tasks_per_node, 1, -(-job.tasks // job.most_nodes) if job.most_nodes else 1)
        memory = (job.memory_per_core or 0) * max(tasks * job.cores_per_task, job.least_cores)
    if 0 < most < memory:
        yield f"it asks for {memory:,} MB of memory on a node, and partition {name} allows {most:,}"
    time = job.least_time or job.limit or 0
    if job.deadline is not None and job.deadline < supply.time + time < math.inf:
        left = short(max(0, job.deadline - supply.time))
        yield f"it could not end before its deadline, in {left}, by its time limit, {short(time)}"
    yield from _shut(job, name, access, supply)


def _memory_limit(access: Access, supply: Supply, key: str) -> int:
    """Return the limit on memory of a partition, or of the site; 0 for none."""
    if access.memory_per_node or access.memory_per_core:
        return access.memory_per_node if key == "maxmempernode" else access.memory_per_core
    return whole_number(supply.settings.get(key, "")) or 0


def with_gpu_defaults(job: QueuedJob, partition: Partition, supply: Supply) -> QueuedJob:
    """Return a job with the cores and memory for each GPU that it has by default in a partition.

    Slurm shows them once it has tried to start the job.
    """
    access = supply.access.get(partition.name, NO_RULES)
    of_site = supply.settings.get("jobdefaults", "")
    cores = access.cores_per_gpu or of_gpu(of_site, "DefCpuPerGPU")
    memory = access.memory_per_gpu or of_gpu(of_site, "DefMemPerGPU")
    return replace(
        job, cores_per_gpu=job.cores_per_gpu or cores, memory_per_gpu=job.memory_per_gpu or memory
    )


def cores_for_memory(job: QueuedJob, partition: Partition, supply: Supply) -> str:
    """Return why Slurm will give a job more cores than it asks for; empty if it will not."""
    access = supply.access.get(partition.name, NO_RULES)
    most = _memory_limit(access, supply, "maxmempercpu")
    asked = job.memory_per_core or 0
    if job.memory_per_node:
        cores = max(job.least_cores, job.tasks_per_node * job.cores_per_task, 1)
        asked = -(-job.memory_per_node // cores)
    if not most or asked <= most:
        return ""
    asks = f"it asks for {asked:,} MB for each core"
    return f"{asks}, and partition {partition.name} gives more cores for more than {most:,}"


def _shut(job: QueuedJob, name: str, access: Access, supply: Supply) -> Iterator[str]:
    """Yield the rules of a partition on who may use it that a job breaks."""
    if access.root_only and not _is_root(job, supply):
        yield f"partition {name} is for root alone"
    if access.reserved_only and not job.reservation:
        yield f"partition {name} is for jobs of a reservation alone"
    if _obeys_accounts(supply):
        accounts, but = {job.account}, ""
        if _version(supply) >= FIRST_WITH_SUBACCOUNTS:
            accounts |= {*supply.limits.accounts_above(job.account)}
            but = "" if supply.limits.knows_above(job.account) else ", as far as is known"
        if access.accounts and accounts.isdisjoint(access.accounts):
            admitted = ",".join(access.accounts)
            refused = f"and not {job.account or '-'}{but}"
            yield f"partition {name} admits the accounts {admitted}, {refused}"
        if not access.accounts and not accounts.isdisjoint(access.denied_accounts):
            yield f"partition {name} denies the account {job.account}"
    if access.qos and job.qos not in access.qos:
        yield f"partition {name} admits the QOS {','.join(access.qos)}, and not {job.qos or '-'}"
    if not access.qos and job.qos in access.denied_qos:
        yield f"partition {name} denies the QOS {job.qos}"


def unknown_rules(
    job: QueuedJob, partition: Partition, supply: Supply, users: Iterable[str]
) -> Iterator[str]:
    """Yield in words what is not known of the rules of a partition for a job.

    `users` have running jobs in the partition, so that its groups admit them.
    """
    access = supply.access.get(partition.name, NO_RULES)
    name = partition.name
    if access.groups and job.user != "root" and job.user not in users:
        groups = ",".join(access.groups)
        yield f"whether user {job.user or '-'} is in the groups {groups} of partition {name}"
    listed = access.accounts or access.denied_accounts
    known = not listed or job.account in listed or supply.limits.knows_above(job.account)
    if not known and _obeys_accounts(supply) and _version(supply) >= FIRST_WITH_SUBACCOUNTS:
        above = f"{','.join(listed)} of partition {name}"
        yield f"which accounts are below {above}, without assoc_mgr.txt"
    for rule in access.unknown:
        yield f"the rule {rule} of partition {name}"
    if access.shares:
        yield f"which cores jobs may share in partition {name}, OverSubscribe={access.shares}"
    yield from supply.limits.unknown(job, access.own_qos)


def _obeys_accounts(supply: Supply) -> bool:
    """Return whether Slurm looks at the accounts of partitions."""
    enforced = supply.settings.get("accountingstorageenforce", "").lower()
    return enforced != "none" or _version(supply) < FIRST_WITH_SUBACCOUNTS


def _version(supply: Supply) -> tuple[int, ...]:
    """Return the first two numbers of the version of Slurm; a high one if it is not known."""
    parts = map(whole_number, supply.settings.get("slurm_version", "").split(".")[:2])
    return tuple(99 if part is None else part for part in parts)


def _is_root(job: QueuedJob, supply: Supply) -> bool:
    return job.user in ("root", supply.settings.get("slurmuser", "root").partition("(")[0])


def nodes_of(job: QueuedJob, supply: Supply) -> Flags:
    """Return the nodes of the partitions in which a job may start."""
    return supply.site.of_partitions(open_partitions(job, supply))
