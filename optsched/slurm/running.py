"""What running jobs of Slurm hold, and what is free once some of them have ended."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from optsched.sites.captured import captured_folder
from optsched.sites.records import Ints
from optsched.slurm.access import with_started
from optsched.slurm.left_to_slurm import LeftToSlurmError
from optsched.slurm.queue import Queue, QueuedJob, read_queue
from optsched.slurm.requests import licences_of
from optsched.slurm.supply import Supply, beside, read_supply


class Held(NamedTuple):
    """What a running job holds.

    Parameters
    ----------
    nodes : array of int, shape (nodes of the job,)
        Its nodes in the site.
    amounts : array of int, shape (nodes of the job, resources)
        Amounts of the resources of the site on each of them.
    licences : dict of str to int
        Licences of the site.
    """

    nodes: Ints
    amounts: Ints
    licences: dict[str, int]


def held_by(job: QueuedJob, supply: Supply) -> Held:
    """Return what a running job holds, and is free when it ends.

    A suspended job keeps its memory and its GPUs, but has given its cores back.
    """
    site = supply.site
    there = [each for each in job.allocations if each.node in site.index]
    nodes = np.array([site.index[each.node] for each in there], dtype=np.int64)
    gres = site.resources[2:]
    rows = [[each.cores, each.memory, *(each.gres.get(name, 0) for name in gres)] for each in there]
    amounts = np.array(rows, dtype=np.int64).reshape(len(there), len(site.resources))
    # the queue counts physical cores, the site hardware threads
    amounts[:, 0] *= supply.threads[nodes]
    if job.state == "SUSPENDED":
        amounts[:, 0] = 0
    try:
        licences = licences_of(job, supply)
    except LeftToSlurmError:  # of another site
        licences = {}
    return Held(nodes, amounts, licences)


def read_captured(folder: Path) -> tuple[Queue, Supply]:
    """Return the queue and what is free, from a folder with captured output of Slurm.

    Raises
    ------
    InputError
        If a file cannot be read or is wrong.
    """
    queue = read_queue(captured_folder(folder))
    supply = read_supply(folder, queue.time)
    used = {
        name: np.zeros(len(supply.site.nodes), dtype=np.int64)
        for name, access in supply.access.items()
        if access.cores_per_node
    }
    licences = Counter(supply.licences)
    for job in queue.running:
        held = held_by(job, supply)
        for name in {*job.partitions} & used.keys():
            used[name][held.nodes] += held.amounts[:, 0]
        for own in supply.reservations:  # of which jobs of the reservation have some
            for name in (
                own.licences.keys() & held.licences.keys() if own.name == job.reservation else ()
            ):
                licences[beside(name, own)] += held.licences[name]
    cores_left = {
        name: np.maximum(0, supply.access[name].cores_per_node - cores)
        for name, cores in used.items()
    }
    return queue, replace(supply, cores_left=cores_left, licences=dict(licences))


def end_of(job: QueuedJob, time: int) -> float:
    """Return when a job ends at the latest: at its time limit, or soon if that is over."""
    return math.inf if job.end is None else max(job.end, time + 1)


def supply_at(supply: Supply, queue: Queue, time: int) -> Supply:
    """Return what is free at a time, when the running jobs end at their time limits.

    Jobs that start meanwhile are not counted, nodes keep their states.
    """
    if time <= supply.time:
        return supply
    free, licences = supply.free.copy(), Counter(supply.licences)
    cores_left = {name: left.copy() for name, left in supply.cores_left.items()}
    limits = supply.limits
    busy = np.zeros(len(supply.site.nodes), dtype=bool)
    for job in queue.running:
        held = held_by(job, supply)
        if end_of(job, supply.time) > time:
            busy[held.nodes] = True
            continue
        free[held.nodes] += held.amounts
        for name in {*job.partitions} & cores_left.keys():
            cores_left[name][held.nodes] += held.amounts[:, 0]
        rest = max(0, end_of(job, supply.time) - supply.time)
        limits = with_started(limits, job, supply, job.tres, rest, ends=True)
        for name, count in held.licences.items():
            licences[name] += count
    free = np.minimum(free, supply.site.capacity)
    busy |= free[:, 0] < supply.site.capacity[:, 0]
    return replace(
        supply,
        free=free,
        licences=dict(licences),
        time=time,
        busy=busy,
        cores_left=cores_left,
        limits=limits,
    )
