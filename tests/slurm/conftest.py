"""Captured clusters, and made-up ones."""

import json
import math
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st

from optsched.models.node_placement.problem import Placements
from optsched.sites.parts import Blocks, Torus, Tree
from optsched.sites.site import Partition, Site
from optsched.slurm.queue import Allocation, QueuedJob, SlurmQueue, read_queue
from optsched.slurm.running import held_by
from optsched.slurm.supply import Supply, read_supply

from .real_slurm import AWAKE

VERSIONS = ("22.05.8", "24.11.5", "26.05.5")
SMALL = ["22.05.8", pytest.param("24.11.5", marks=pytest.mark.long), "26.05.5"]
"""All, of which the largest one is for long tests."""

NOW = 1000


@pytest.fixture
def slurm(running):
    """Return the real Slurm of a module, without jobs and with a scheduler awake."""
    yield running
    running.schedule(AWAKE)
    running.cancel()


@cache
def _read(folder: Path) -> tuple[Path, SlurmQueue, Supply]:
    queue = read_queue(folder)
    return folder, queue, read_supply(folder, queue.time)


@pytest.fixture(params=VERSIONS)
def captured(request, shared) -> tuple[Path, SlurmQueue, Supply]:
    """Return the folder of a captured cluster, its queue and what it has free."""
    return _read(shared(f"slurm/fixtures/{request.param}"))


ONE_NODE = "NodeName=c1 CPUTot=8 RealMemory=1000 State=IDLE\n"
"""The text of the nodes of a site."""

NODES = ("c1", "c2", "c3", "c4", "m1", "g1", "g2")


def supply(**fields) -> Supply:
    """Return the free amounts of a site of seven nodes.

    c1 to c4 have 16 cores, m1 has 32 of two threads each, g1 and g2 have 4 GPUs. c1 and c2 are on
    leaf1, c3, c4 and m1 on leaf2, g1 and g2 on none of the tree, but in a block.
    """
    thin, fat, gpus = [16, 64000, 0, 0], [64, 1000000, 0, 0], [32, 256000, 4, 4]
    capacity = np.array([thin] * 4 + [fat] + [gpus] * 2)
    everything = np.arange(7)
    names = dict.fromkeys(("states", "partitions", "topologies", "licences"))
    site = {name: fields.pop(name) for name in names if name in fields}
    partitions = (
        Partition("all", everything),
        Partition("short", np.array([0, 1]), max_time=600.0, max_nodes=2),
        Partition("rest", np.array([2, 3, 4])),
        Partition("own", np.array([0, 1, 2, 3]), exclusive=True),
        Partition("off", everything, up=False),
        Partition("block", np.array([5, 6]), topology="blocks"),
        Partition("torus", np.array([0, 1, 2, 3]), topology="torus"),
    )
    topologies = {
        "tree": Tree(("leaf1", "leaf2", "core"), [2, 2, -1], [0, 0, 1, 1, 1, -1, -1]),
        "blocks": Blocks(("b1",), [-1] * 5 + [0, 0], (2, 4)),
        "torus": Torus((2, 2), np.array([0, 1, 2, 3])),
    }
    built = Site(
        "made",
        NODES,
        ("cores", "memory", "gpu", "gpu:a100"),
        capacity,
        features=(("ib",), ("ib", "old"), ("ib",), (), ("big",), ("a100",), ("a100",)),
        **{"partitions": partitions, "topologies": topologies, "licences": {"lab": 3}} | site,
    )
    usual = {"free": capacity, "time": NOW, "licences": {"lab": 3}}
    return Supply(built, **usual | {"threads": np.array([1, 1, 1, 1, 2, 1, 1])} | fields)


def job(**fields) -> QueuedJob:
    """Return a pending job with what differs from one task on any node."""
    empty = {"per_node": {}, "per_task": {}, "per_job": {}}
    usual = {"job_id": 1, "partitions": ("all",), "limit": 3600.0, "priority": 1}
    return QueuedJob(**empty | usual | fields)


def whole(number: int, nodes: int, **fields) -> QueuedJob:
    """Return a pending job of whole nodes of 16 cores."""
    counts = {"least_nodes": nodes, "most_nodes": nodes, "tasks": nodes, "cores_per_task": 16}
    return job(job_id=number, **counts | fields)


def queue_of(*jobs, **missing):
    return SlurmQueue(jobs, NOW, 42, Path("squeue.json"), missing)


def on(*nodes: tuple[int, ...]) -> Placements:
    """Return jobs on nodes."""
    return Placements(nodes, tuple(((),) * len(each) for each in nodes))


def running(job_id, *nodes, cores=16, **fields) -> QueuedJob:
    """Return a running job with a number of cores on some nodes."""
    there = [Allocation(node=node, cores=cores, memory=1000, gres={}) for node in nodes]
    usual = {"state": "RUNNING", "start": 0, "end": NOW + 60, "requeues": True}
    return job(job_id=job_id, allocations=tuple(there), **usual | fields)


def left_by(*jobs, **fields) -> Supply:
    """Return what a site has free beside running jobs."""
    idle = supply(**fields)
    free, licences = idle.site.capacity.copy(), dict(idle.licences)
    for each in jobs:
        held = held_by(each, idle)
        free[held.nodes] -= held.amounts
        for name, count in held.licences.items():
            licences[name] -= count
    return replace(idle, free=free, licences=licences, busy=None)


NODE, CORES, SECONDS = st.sampled_from(NODES[:4]), st.integers(1, 16), st.integers(1, 60)
RUNS = st.lists(st.tuples(NODE, st.integers(1, 8), SECONDS), max_size=6)
WAITS = st.tuples(st.integers(1, 4), CORES, st.integers(1, 40), st.integers(1, 3))
SITUATIONS = st.tuples(
    RUNS, st.lists(WAITS, min_size=1, max_size=6), st.dictionaries(NODE, SECONDS, max_size=2)
)
"""Nodes, cores and ends of running jobs; nodes, cores, limits and priorities of others; drains."""


def posed(runs, waits, drains) -> tuple[SlurmQueue, Supply]:
    """Return a queue and what it leaves free, on the nodes c1 to c4."""
    four = Partition("four", np.arange(4))
    used, jobs = Counter(), []
    for number, (node, cores, end) in enumerate(runs, 100):
        if used[node] + cores <= 16:
            used[node] += cores
            jobs.append(running(number, node, cores=cores, end=NOW + end, partitions=("four",)))
    supply = left_by(*jobs, partitions=(four,), topologies={}, licences={})
    for number, (nodes, cores, limit, priority) in enumerate(waits, 1):
        its = {"cores_per_task": cores, "limit": float(limit), "priority": priority}
        jobs.append(whole(number, nodes, partitions=("four",), tasks_per_node=1, **its))
    closing = [NOW + drains.get(name, math.inf) for name in NODES]
    return queue_of(*jobs), replace(supply, closing=np.array(closing))


@pytest.fixture
def write_dump(tmp_path):
    """Return a function that writes records as squeue does, by the version of its data parser."""

    def write(version, *records: dict, name="squeue.json", key="jobs", **more) -> Path:
        meta = {"plugin": {"data_parser": f"data_parser/v0.0.{version}"}}
        if version == 38:
            meta = {"plugin": {"type": "openapi/v0.0.38"}}
        path = tmp_path / name
        path.write_text(json.dumps({"meta": meta, key: list(records)} | more))
        return path

    return write
