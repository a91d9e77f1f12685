"""What a job asks of a site, and how it becomes equal chunks of the model node-placement.

A job that names its number of nodes, or amounts of each node, becomes as many chunks, each on a
node of its own; any other job a chunk for each task, or for each GPU where it counts these. One
that leaves its number of nodes open and asks for amounts of each node, or of the whole job, is on
the fewest nodes that hold it. Where tasks or GPUs do not divide evenly, all chunks are as large as
the largest, so whatever the model places can start there. Jobs of traces and those in the queue of
Slurm are divided alike.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from optsched.arrays import Flags, Ints
from optsched.errors import InputError
from optsched.numbers import MOST_CAPACITY
from optsched.sites.site import Partition, Site

CORES, MEMORY, GPU = "cores", "memory", "gpu"


class UnplaceableError(Exception):
    """A job that the model cannot place; the text says why."""


@dataclass(frozen=True, kw_only=True)
class JobRequest:
    """What a job asks for. Memory is in MB; a core is what Slurm calls a CPU."""

    # Limits on the number of nodes; a `most_nodes` of 0 stands for no limit
    least_nodes: int = 1
    most_nodes: int = 0
    tasks: int = 1
    cores_per_task: int = 1
    tasks_per_node: int = 0  # most tasks on a node, 0 for no limit
    least_cores: int = 0  # least number of cores on each node
    # Memory on each node, 0 for all of it, or for each core
    memory_per_node: int | None = None
    memory_per_core: int | None = None
    # Generic resources on each node, for each task and of the whole job, by ``gpu`` and by
    # ``gpu:TYPE``. Those that are asked in several ways, as --gpus and --gpus-per-node, are the
    # same ones.
    per_node: Mapping[str, int] = field(default_factory=dict)
    per_task: Mapping[str, int] = field(default_factory=dict)
    per_job: Mapping[str, int] = field(default_factory=dict)
    # Cores and memory for each GPU, 0 where nothing is stated. A job starts where both this
    # and the memory of its nodes or cores are free.
    cores_per_gpu: int = 0
    memory_per_gpu: int = 0
    threads_per_core: int = 0  # threads to use of each physical core, 0 for all
    constraint: str = ""  # features that nodes must have
    # With what the job shares its nodes: empty with all jobs, ``node`` with none, ``user``
    # with those of its user, ``mcs`` or ``topo``; None where that is not known
    exclusive: str | None = ""
    licences: str = ""  # as Slurm writes them

    @property
    def needed_nodes(self) -> int:
        """Least number of nodes, by its own word and by its tasks and GPUs on a node."""
        totals = [(total, self.per_node.get(name, 0)) for name, total in self.per_job.items()]
        totals.append((self.tasks, self.tasks_per_node))
        return max(self.least_nodes, *(-(-total // most) for total, most in totals if most), 1)

    def takes_all_memory(self, columns: Columns) -> bool:
        """Return whether the job takes all memory of its nodes, and so shares none of them."""
        return self.memory_per_node == 0 and columns.counts_memory

    def is_alone(self, partition: Partition, columns: Columns) -> bool:
        """Return whether the job shares its nodes in a partition with no other job."""
        alone = partition.exclusive or self.exclusive == "node"
        return alone or self.takes_all_memory(columns)


class Columns(NamedTuple):
    """The columns in which nodes have amounts, and chunks demands.

    Slurm gives whole physical cores. On nodes of two threads per core a job of three cores, which
    are threads, takes four of them, and memory that is stated per core grows with them. Since a
    job asks other amounts there than elsewhere, each number of threads has columns of its own,
    in which all other nodes have more than enough.
    """

    resources: tuple[str, ...]  # those of the site
    threads: tuple[int, ...] = ()  # numbers of threads per core, from 2, that nodes have
    limited: tuple[str, ...] = ()  # partitions that limit the cores of their jobs on a node
    # What an amount of 1 stands for, for resources that are not counted one by one
    units: Mapping[str, int] = MappingProxyType({})
    # Whether jobs are given memory. Otherwise a request for memory only rules out nodes that have
    # less.
    counts_memory: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        """The resources, cores and memory by threads, then the cores of limited partitions."""
        of_threads = (column(name, n) for n in self.threads for name in (CORES, MEMORY))
        return (*self.resources, *of_threads, *map(limited_cores, self.limited))


def column(resource: str, threads: int) -> str:
    """Return the column that states a resource on nodes of some threads per core."""
    own = threads > 1 and resource in (CORES, MEMORY)
    return f"{resource} of {threads} threads" if own else resource


def resource_of(column: str) -> str:
    """Return the resource of a column, whatever the threads of the nodes."""
    return column.partition(" of ")[0] if column.endswith(" threads") else column


def limited_cores(partition: str) -> str:
    """Return the name of the column of the cores of a partition that limits them."""
    return f"cores of partition {partition}"


def unit_of(resource: str, units: Mapping[str, int]) -> int:
    """Return the unit in which amounts of a resource, with or without a type, are counted."""
    return units.get(resource.partition(":")[0], 1)


class Division(NamedTuple):
    """Equal chunks of a job."""

    chunks: int
    tasks: int  # number of tasks of a chunk, 0 for one that stands for a GPU
    gres: Mapping[str, int]  # what each has of what the job asks for as a whole, such as GPUs
    most_per_node: int  # most chunks on a node, 0 for no limit
    on_nodes: bool  # whether each chunk is all that the job has on a node


def divided(
    job: JobRequest,
    partition: Partition,
    columns: Columns,
    able: Callable[[Mapping[str, int]], int],
    nodes: int,
) -> Division:
    """Divide a job into equal chunks on nodes of a partition; it may be that they never fit.

    `able`: returns the number of nodes that can hold a chunk with some demand when they are idle;
    `nodes`: number of nodes that the job may use. A resource that no node has is an
    `UnplaceableError`.
    """
    least, tasks = job.needed_nodes, job.tasks
    most = min(job.most_nodes or math.inf, partition.max_nodes)
    of_node = bool(job.per_node or job.memory_per_node) or job.takes_all_memory(columns)
    of_node |= job.least_cores > job.cores_per_task
    gpus = _alike(job.per_job) if job.cores_per_gpu and tasks == 1 else 0
    if not of_node and least <= gpus <= most:
        return Division(gpus, 0, dict.fromkeys(job.per_job, 1), spread(gpus, least), False)
    # a node must have room for as many tasks as are on a node, of which the last has fewer perhaps
    if not (of_node or job.per_job) and job.tasks_per_node < 2 and least <= tasks <= most:
        limit = job.tasks_per_node or spread(tasks, least)
        return Division(tasks, 1, {}, limit, least == most == tasks)

    @cache
    def holding(tasks: int, *shares: int) -> int:
        gres = dict(zip(job.per_job, shares))
        return able(demand_of(job, partition, columns, tasks, gres, on_nodes=True))

    for count in range(least, int(min(most, tasks, nodes)) + 1):
        division = on_each(job, count)
        if holding(division.tasks, *division.gres.values()) >= count:
            return division
    return on_each(job, least)


def on_each(job: JobRequest, nodes: int) -> Division:
    """Divide a job into a chunk on each of some nodes."""
    gres = {name: -(-total // nodes) for name, total in job.per_job.items()}
    return Division(nodes, -(-job.tasks // nodes), gres, 1, True)


def spread(chunks: int, least: int) -> int:
    """Return the most chunks on a node with which they are on `least` nodes; 0 for any number."""
    return (chunks - 1) // (least - 1) if least > 1 else 0


def _alike(per_job: Mapping[str, int]) -> int:
    """Return the number of GPUs of a job if they are the only resource, and all of one type."""
    names = {name.partition(":")[0] for name in per_job}
    counts = {*per_job.values()}
    return counts.pop() if names == {GPU} and len(counts) == 1 and len(per_job) <= 2 else 0


def demand_of(
    job: JobRequest,
    partition: Partition,
    columns: Columns,
    tasks: int,
    shares: Mapping[str, int],
    *,
    on_nodes: bool,
) -> dict[str, int]:
    """Return the demand of a chunk of some tasks, in the order of the columns; memory is in MB.

    `shares`: what the chunk has of each total of the job, such as GPUs; `on_nodes`: whether the
    chunk is all that the job has on a node. A resource that no node has is an `UnplaceableError`.
    """
    gres = Counter(shares) | Counter({name: tasks * n for name, n in job.per_task.items()})
    if on_nodes:
        gres |= Counter(job.per_node)
    for name in gres:
        if name not in columns.resources:
            raise UnplaceableError(f"it asks for {name}, which no node has")
    gpus = gres.get(GPU, 0)
    cores = max(tasks * job.cores_per_task, job.cores_per_gpu * gpus)
    if on_nodes:
        cores = max(cores, job.least_cores)
    demand = dict.fromkeys(columns.names, 0)
    demand |= {name: -(-n // unit_of(name, columns.units)) for name, n in gres.items()}
    per_core = job.memory_per_core
    if per_core is None and not job.memory_per_gpu:
        per_core = partition.memory_per_core
    for threads in (1, *columns.threads):
        of_core = min(threads, job.threads_per_core or threads)
        taken = cores if threads == 1 else -(-cores // of_core) * threads
        memory = job.memory_per_node
        memory = (per_core or 0) * taken if memory is None else memory
        # a job that states memory takes it, and starts only where its GPUs' default is free, too
        memory = max(memory, job.memory_per_gpu * gpus)
        demand[column(CORES, threads)], demand[column(MEMORY, threads)] = taken, memory
    if partition.name in columns.limited:
        most = max(demand[column(CORES, threads)] for threads in (1, *columns.threads))
        demand[limited_cores(partition.name)] = most
    # no node has more than the limit, and products of such amounts do not overflow
    return {name: min(amount, MOST_CAPACITY + 1) for name, amount in demand.items()}


def chunks_held(demand: Mapping[str, int], columns: Sequence[str], amounts: Ints) -> Ints:
    """Return how many chunks each node holds by its amounts of the columns, shape (nodes,)."""
    needs = np.array([demand[name] for name in columns], dtype=np.int64)
    some = needs > 0
    if not some.any():
        return np.full(len(amounts), 1)
    held: Ints = (amounts[:, some] // needs[some]).min(axis=1)
    return held


def nodes_with(constraint: str, site: Site) -> Flags:
    """Return the nodes with the features that a job asks for, shape (choices, nodes).

    A constraint that cannot be read, or counts nodes, is an `UnplaceableError`.
    """
    if not constraint:
        return np.ones((1, len(site.nodes)), dtype=bool)
    try:
        return site.matching(constraint)
    except InputError as error:
        raise UnplaceableError(f"constraint {error.mistakes[0]}") from None


def licences_asked(text: str) -> Counter[str]:
    """Return the number of each licence that a job asks for.

    >>> dict(licences_asked("matlab:4,lab;matlab"))
    {'matlab': 5, 'lab': 1}
    """
    found: Counter[str] = Counter()
    for part in filter(None, text.replace(";", ",").split(",")):
        name, colon, count = part.rpartition(":")
        if not colon or not (count.isascii() and count.isdigit()):
            name, count = part, "1"
        found[name] += int(count[:15])
    return found
