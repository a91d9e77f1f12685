"""What running jobs of Slurm hold, and what is free once some of them have ended."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from optsched.sites.records import Ints
from optsched.slurm.left_to_slurm import LeftToSlurmError
from optsched.slurm.queue import Queue, QueuedJob
from optsched.slurm.requests import licences_of
from optsched.slurm.supply import Supply


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
    busy = np.zeros(len(supply.site.nodes), dtype=bool)
    for job in queue.running:
        held = held_by(job, supply)
        if end_of(job, supply.time) > time:
            busy[held.nodes] = True
            continue
        free[held.nodes] += held.amounts
        for name, count in held.licences.items():
            licences[name] += count
    free = np.minimum(free, supply.site.capacity)
    busy |= free[:, 0] < supply.site.capacity[:, 0]
    return replace(supply, free=free, licences=dict(licences), time=time, busy=busy)
