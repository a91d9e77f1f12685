"""What a captured state of Slurm does not show of a waiting job.

Where there is any of it, nothing is proven, as Slurm may know better.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from optsched.numbers import counted, short
from optsched.sites.parts import MAGNETIC
from optsched.sites.requests import licences_asked
from optsched.sites.slurm_files import listed
from optsched.slurm.access import (
    admits,
    keeps_parts,
    nodes_of,
    open_partitions,
    partitions_of,
    reservations_of,
    unknown_admission,
    unknown_rules,
)
from optsched.slurm.preemption import unseen_preemption
from optsched.slurm.queue import Queue, QueuedJob
from optsched.slurm.running import held_by, hidden_amounts, hidden_licences, unseen_on_nodes
from optsched.slurm.supply import Supply


def unseen_rules(job: QueuedJob, queue: Queue, supply: Supply) -> tuple[str, ...]:
    """Return in words which rules on the start of a job are not known."""
    found = list(supply.unread)
    if job.exclusive is None:
        found.append("whether it shares its nodes, which the queue does not state")
    own = reservations_of(job, supply)
    for reservation in own:
        found += unknown_admission(job, reservation, supply)
    if job.reservation and not own:
        found.append(f"reservation {job.reservation}, which is not shown")
    for partition in open_partitions(job, supply) or partitions_of(job, supply):
        users = (each.user for each in queue.running if partition.name in each.partitions)
        found += unknown_rules(job, partition, supply, users)
    return tuple(dict.fromkeys(found))


def unseen(job: QueuedJob, queue: Queue, supply: Supply) -> tuple[str, ...]:
    """Return in words what is not known that decides on the start of a job."""
    return (
        *unseen_rules(job, queue, supply),
        *_hidden(job, queue, supply),
        *unseen_on_nodes(job, queue, supply),
        *_beside_reservations(job, supply),
        *unseen_preemption(job, queue, supply),
    )


def _hidden(job: QueuedJob, queue: Queue, supply: Supply) -> Iterator[str]:
    """Yield what no job of the queue holds, though it is in use: of its nodes and licences."""
    usable = np.isin(supply.site.states, ("up", "reserved")) & nodes_of(job, supply)
    held = (held_by(each, supply) for each in queue.running)
    cores = np.where(usable, hidden_amounts(held, supply)[:, 0], 0)
    nodes = [supply.site.nodes[node] for node in np.flatnonzero(cores > 0).tolist()]
    if nodes:
        hidden = counted(int(cores[cores > 0].sum()), "core")
        yield f"which jobs hold {hidden} of {listed(nodes)}: none that the queue shows"
    for name, count in hidden_licences(queue, supply).items():
        if count > 0 and name in licences_asked(job.licences):
            yield f"which jobs hold {count:,} of licence {name}: none that the queue shows"
    if queue.missing.get("allocations.gres") and any((job.per_node, job.per_task, job.per_job)):
        jobs = counted(queue.missing["allocations.gres"], "job")
        yield f"which GPUs and the like {jobs} hold"


def _beside_reservations(job: QueuedJob, supply: Supply) -> Iterator[str]:
    """Yield how Slurm may start a job where reservations that are not its own are in the way."""
    there, asked = nodes_of(job, supply), licences_asked(job.licences).keys()
    own, names = job.reservation.split(","), []
    for each in supply.reservations:
        on_nodes = bool((np.isin(supply.site.nodes, each.nodes) & there).any())
        if (
            each.name in own
            or each.end <= supply.time
            or not (on_nodes or asked & each.licences.keys())
        ):
            continue
        names.append(name := f"reservation {each.name}")
        if on_nodes and keeps_parts(each, supply):
            yield f"what {name} leaves of its nodes to others"
        partitions = job.partitions or ("",)
        admitted = any(admits(job, each, supply, partition) for partition in partitions)
        if MAGNETIC in each.flags and admitted and not job.reservation:
            yield f"whether it starts in the magnetic {name}"
    if names and 0 < job.least_time < (math.inf if job.limit is None else job.limit):
        least = f"to {short(job.least_time)} or more (--time-min)"
        others = " or others" if len(names) > 1 else ""
        yield f"whether Slurm shortens its time limit, {least}, before {names[0]}{others}"
