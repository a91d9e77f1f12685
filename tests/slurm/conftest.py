"""Captured clusters, read here from what Slurm prints as text, and made-up ones."""

from __future__ import annotations

import gzip
import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from optsched.sites.loading import read_reservations
from optsched.sites.parts import Blocks, Torus, Tree
from optsched.sites.site import Partition, Site
from optsched.sites.slurm_files import Notes
from optsched.sites.slurm_notation import hosts_of
from optsched.sites.slurm_topology import read_topologies
from optsched.slurm.queue import Allocation, Queue, QueuedJob, read_queue
from optsched.slurm.running import held_by
from optsched.slurm.supply import Supply

VERSIONS = ("22.05.8", "24.11.5", "26.05.5")

NOW = 1000


def text_of(path: Path) -> str:
    packed = path.with_name(f"{path.name}.gz")
    return gzip.decompress(packed.read_bytes()).decode() if packed.exists() else path.read_text()


def pairs(line: str) -> dict[str, str]:
    return dict(re.findall(r"(?:^| )([A-Z][\w/:]*)=(\S*)", line))


def clock(text: str) -> float:
    """Seconds of days-hours:minutes:seconds."""
    if text == "UNLIMITED":
        return math.inf
    days, _, rest = text.rpartition("-")
    hours, minutes, seconds = map(int, rest.split(":"))
    return ((int(days or 0) * 24 + hours) * 60 + minutes) * 60 + seconds


def _supply(folder: Path, time: int) -> Supply:
    lines = [pairs(line) for line in text_of(folder / "nodes.txt").splitlines()]
    names = [line["NodeName"] for line in lines]
    index = {name: place for place, name in enumerate(names)}
    types = ("gpu:a100", "gpu:h100")
    resources = ("cores", "memory", "gpu", *types)

    def amounts(cores: str, memory: str, gres: str) -> list[int]:
        gpus = [sum(map(int, re.findall(rf"{kind}:(\d+)", gres))) for kind in types]
        return [int(cores), int(memory), sum(gpus), *gpus]

    capacity = [amounts(li["CPUTot"], li["RealMemory"], li["Gres"]) for li in lines]
    used = [amounts(li["CPUAlloc"], li["AllocMem"], li.get("GresUsed", "")) for li in lines]
    states = [
        "down" if "DOWN" in li["State"] else "drained" if "DRAIN" in li["State"] else "up"
        for li in lines
    ]
    shown = folder / "topoconf.txt"
    shown = shown if shown.exists() else folder / "topology.conf"
    topologies = read_topologies(shown, index, Notes())
    partitions = []
    for line in map(pairs, text_of(folder / "partitions.txt").splitlines()):
        most = line["MaxNodes"]
        partitions.append(
            Partition(
                line["PartitionName"],
                np.array(sorted(index[name] for name in hosts_of(line["Nodes"]))),
                max_time=clock(line["MaxTime"]),
                max_nodes=math.inf if most == "UNLIMITED" else int(most),
                exclusive=line.get("Exclusive") == "NODE" or line["OverSubscribe"] == "EXCLUSIVE",
                up=line["State"] == "UP",
                priority_tier=int(line["PriorityTier"]),
                topology=line.get("Topology", ""),
            )
        )
    licences = map(pairs, text_of(folder / "licenses.txt").splitlines())
    free = {line["LicenseName"]: (int(line["Total"]), int(line["Free"])) for line in licences}
    site = Site(
        "captured",
        tuple(names),
        resources,
        np.array(capacity),
        features=tuple(tuple(li["AvailableFeatures"].split(",")) for li in lines),
        states=tuple(states),
        partitions=tuple(partitions),
        licences={name: total for name, (total, _) in free.items()},
        topologies=topologies,
    )
    reservations = folder / "reservations.json"
    if not reservations.exists():
        reservations = folder / "reservations.txt"
    return Supply(
        site,
        np.array(capacity) - np.array(used),
        time,
        {name: left for name, (_, left) in free.items()},
        read_reservations(reservations),
        np.array([int(li["ThreadsPerCore"]) for li in lines]),
    )


@pytest.fixture(params=VERSIONS)
def captured(request, shared) -> tuple[Path, Queue, Supply]:
    """Return the folder of a captured cluster, its queue and what it has free."""
    folder = shared(f"slurm/fixtures/{request.param}")
    queue = read_queue(folder)
    return folder, queue, _supply(folder, queue.time)


NODES = ("c1", "c2", "c3", "c4", "m1", "g1", "g2")


@pytest.fixture(scope="session")
def supply():
    """Return a function that makes what a site of seven nodes has free.

    c1 to c4 have 16 cores, m1 has 32 of two threads each, g1 and g2 have 4 GPUs. c1 and c2 are on
    leaf1, c3, c4 and m1 on leaf2, g1 and g2 on none of the tree, but in a block.
    """

    def make(**fields) -> Supply:
        resources = ("cores", "memory", "gpu", "gpu:a100")
        capacity = np.array(
            [[16, 64000, 0, 0]] * 4 + [[64, 1000000, 0, 0]] + [[32, 256000, 4, 4]] * 2
        )
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
        tree = Tree(("leaf1", "leaf2", "core"), [2, 2, -1], [0, 0, 1, 1, 1, -1, -1])
        topologies = {
            "tree": tree,
            "blocks": Blocks(("b1",), [-1] * 5 + [0, 0], (2, 4)),
            "torus": Torus((2, 2), np.array([0, 1, 2, 3])),
        }
        built = Site(
            "made",
            NODES,
            resources,
            capacity,
            features=(("ib",), ("ib", "old"), ("ib",), (), ("big",), ("a100",), ("a100",)),
            **{"partitions": partitions, "topologies": topologies, "licences": {"lab": 3}} | site,
        )
        usual = {
            "free": capacity,
            "time": 1000,
            "licences": {"lab": 3},
            "threads": np.array([1, 1, 1, 1, 2, 1, 1]),
        }
        return Supply(built, **usual | fields)

    return make


@pytest.fixture(scope="session")
def job():
    """Return a function that makes a pending job from what differs from one task on any node."""

    def make(**fields) -> QueuedJob:
        empty = {"per_node": {}, "per_task": {}, "per_job": {}}
        usual = {"job_id": 1, "partitions": ("all",), "limit": 3600.0, "priority": 1}
        return QueuedJob(**empty | usual | fields)

    return make


def queue_of(*jobs):
    return Queue(jobs, NOW, 42, Path("squeue.json"), {})


@pytest.fixture(scope="session")
def running(job):
    """Return a function that makes a running job with a number of cores on some nodes."""

    def make(job_id, *nodes, cores=16, gpus=0, **fields):
        gres = {"gpu": gpus, "gpu:a100": gpus} if gpus else {}
        there = [Allocation(node=node, cores=cores, memory=1000, gres=gres) for node in nodes]
        usual = {"state": "RUNNING", "start": 0, "end": NOW + 60, "requeues": True}
        return job(job_id=job_id, allocations=tuple(there), **usual | fields)

    return make


@pytest.fixture(scope="session")
def left_by(supply):
    """Return a function that makes what a site has free beside running jobs."""

    def make(*jobs, **fields):
        idle = supply(**fields)
        free, licences = idle.site.capacity.copy(), dict(idle.licences)
        for each in jobs:
            held = held_by(each, idle)
            free[held.nodes] -= held.amounts
            for name, count in held.licences.items():
                licences[name] -= count
        return replace(idle, free=free, licences=licences, busy=None)

    return make


@pytest.fixture
def write_dump(tmp_path):
    """Return a function that writes records as squeue does, by the version of its data parser."""

    def write(version: int, *records: dict, name: str = "squeue.json", key: str = "jobs") -> Path:
        meta = {"plugin": {"data_parser": f"data_parser/v0.0.{version}"}}
        if version == 38:
            meta = {"plugin": {"type": "openapi/v0.0.38"}}
        path = tmp_path / name
        path.write_text(json.dumps({"meta": meta, key: list(records)}))
        return path

    return write
