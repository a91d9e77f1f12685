"""How Slurm divides a job: into chunks that are alike, and unevenly, as it fills the first nodes.

Each node gets one task or GPU at least; then nodes take all they can, one after the other. No
setting says which is the first, and so each of them may have the most.

Slurm numbers the blocks of a topology in the order of its file, and joins each 2, 4, 8 or more of
them, from the first on, to larger blocks; ``block_sizes`` says which of these there are. So it is
with blocks of 4 nodes and the sizes 4, 8 and 16: the third pair of blocks may be a block alone.

A set of nodes is placed in one block of the smallest size that is large enough. If not every
power of two is among the sizes, it has the fewest blocks of the largest size below half of what it
needs, rounded up to a power of two; so in the whole topology if no size is large enough. The set is
the job, or each of its segments (``--segment``). Segments may share blocks, and the number of
nodes is a multiple of theirs; one larger than the job is ignored.

On a torus, the set has exactly one of the places of its size.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from optsched.models.node_placement.fields import Limit
from optsched.numbers import MOST_CAPACITY
from optsched.sites.parts import Blocks, Ints, Places, Torus, Tree
from optsched.sites.requests import divided, spread
from optsched.sites.site import Partition
from optsched.sites.slurm_notation import host_list
from optsched.sites.slurm_site import unit_of
from optsched.slurm.queue import LeftToSlurmError, QueuedJob
from optsched.slurm.supply import CORES, MEMORY, Flags, Supply, column, limited_cores


class Shape(NamedTuple):
    """Number of chunks, with what each of them has."""

    chunks: int
    tasks: int
    gres: Mapping[str, int]  # what each has of what the job asks for as a whole, such as GPUs
    most_per_node: int  # most chunks on a node, 0 for no limit
    on_nodes: bool  # whether each chunk is all that the job has on a node
    notes: tuple[str, ...] = ()


def shape_of(job: QueuedJob, supply: Supply, partition: Partition, nodes: Flags) -> Shape:
    """Divide a job into equal chunks."""
    least, tasks = job.needed_nodes, job.tasks
    limit = min(job.most_nodes or math.inf, partition.max_nodes)
    of_node = bool(job.per_node) or job.least_cores > job.cores_per_task
    of_node |= bool(job.memory_per_node) or (job.memory_per_node == 0 and supply.counts_memory)
    gpus = _alike(job.per_job) if job.cores_per_gpu and tasks == 1 else 0
    if not of_node and least <= gpus <= limit:
        each = dict.fromkeys(job.per_job, 1)
        return Shape(gpus, 0, each, spread(gpus, least), False)
    capacity = supply.capacity[nodes]

    def able(shares: tuple[int, ...]) -> int:
        gres = dict(zip(job.per_job, shares[1:]))
        demand = demand_of(job, supply, partition, shares[0], gres, on_nodes=True)
        return int((chunks_held(demand, supply.columns, capacity) > 0).sum())

    count, (of_chunk, *others), most_per_node, on_nodes = divided(
        (tasks, *job.per_job.values()),
        least,
        limit,
        able,
        nodes=len(capacity),
        tasks_per_node=job.tasks_per_node,
        of_nodes=of_node or bool(job.per_job),
    )
    shares = dict(zip(job.per_job, others))
    notes = []
    if on_nodes and least < min(limit, tasks):
        notes.append(f"it is taken on the fewest nodes that can hold it, {count:,}")
    if tasks % count:
        notes.append(f"its {tasks:,} tasks count as {of_chunk:,} on each node")
    for name, total in job.per_job.items():
        if total % count:
            notes.append(f"its {total:,} {name} count as {shares[name]:,} on each node")
    return Shape(count, of_chunk, shares, most_per_node, on_nodes, tuple(notes))


def most_of_a_node(
    job: QueuedJob,
    supply: Supply,
    partition: Partition,
    nodes: Flags,
    shape: Shape,
    demand: Mapping[str, int],
) -> tuple[int, Mapping[str, int]]:
    """Return the fewest nodes of a job, and the most that Slurm may take of each column there.

    `demand` is that of an equal chunk, and what it has none of is not counted. No chunk of a job of
    a fixed number of nodes is larger than a node.
    """
    count, least = shape.chunks, job.needed_nodes
    if count == 1:
        return 1, demand
    if shape.on_nodes:
        tasks = min(job.tasks_per_node or math.inf, max(1, job.tasks - count + 1))
        if job.tasks == count * job.tasks_per_node:
            tasks = shape.tasks
        others = {name: n for name, n in job.per_job.items() if name not in job.per_task}
        gres = {name: job.per_node.get(name, n - count + 1) for name, n in others.items()}
        most = demand_of(job, supply, partition, int(tasks), gres, on_nodes=True)
        most = {name: min(each, _largest(name, nodes, supply)) for name, each in most.items()}
    else:
        count, each = least, count - least + 1
        gres = dict.fromkeys(shape.gres, each)
        most = demand_of(job, supply, partition, each * shape.tasks, gres, on_nodes=True)
    return count, {name: max(one, most[name]) if one else 0 for name, one in demand.items()}


def _largest(name: str, nodes: Flags, supply: Supply) -> int:
    """Return the most of a column that one of some nodes has."""
    threads = [each for each in supply.thread_counts if name.endswith(f"of {each} threads")]
    there = nodes & (supply.threads == threads[0]) if threads else nodes
    return int(supply.capacity[there, supply.columns.index(name)].max(initial=0))


def _alike(per_job: Mapping[str, int]) -> int:
    """Return the number of GPUs of a job if they are the only resource, and all of one type."""
    names = {name.partition(":")[0] for name in per_job}
    counts = {*per_job.values()}
    return counts.pop() if names == {"gpu"} and len(counts) == 1 and len(per_job) <= 2 else 0


def demand_of(
    job: QueuedJob,
    supply: Supply,
    partition: Partition,
    tasks: int,
    shares: Mapping[str, int],
    *,
    on_nodes: bool,
) -> dict[str, int]:
    """Return the needs of a chunk of some tasks, by column."""
    of_tasks = {name: tasks * count for name, count in job.per_task.items()}
    # of a resource that is asked in several ways they tell the same, as --gpus and --gpus-per-node
    gres = Counter(shares) | Counter(of_tasks) | Counter(job.per_node if on_nodes else {})
    for name in gres:
        if name not in supply.site.resources:
            raise LeftToSlurmError(f"it asks for {name}, which no node has")
    gpus = gres.get("gpu", 0)
    cores = max(tasks * job.cores_per_task, job.cores_per_gpu * gpus)
    if on_nodes:
        cores = max(cores, job.least_cores)
    # no node has more than the limit of amounts
    gres = Counter(
        {
            name: min(-(-count // unit_of(name, supply.units)), MOST_CAPACITY + 1)
            for name, count in gres.items()
        }
    )
    demand = dict.fromkeys(supply.columns, 0) | gres
    demand |= {CORES: cores, MEMORY: _memory(job, cores, gpus)}
    for threads in supply.thread_counts:
        used = min(threads, job.threads_per_core or threads)
        taken = -(-cores // used) * threads
        demand[column(CORES, threads)] = taken
        demand[column(MEMORY, threads)] = _memory(job, taken, gpus)
    if partition.name in supply.cores_left:
        counts = [demand[column(CORES, threads)] for threads in supply.thread_counts]
        demand[limited_cores(partition.name)] = max(cores, *counts, 0)
    return demand


def _memory(job: QueuedJob, cores: int, gpus: int) -> int:
    """Return the memory in MB of a chunk of some cores and GPUs."""
    # a job that states memory takes it, and starts only where its GPUs' default is free, too
    stated = job.memory_per_node
    if stated is None:
        stated = (job.memory_per_core or 0) * cores
    return max(stated, job.memory_per_gpu * gpus)


def chunks_held(demand: Mapping[str, int], columns: tuple[str, ...], amounts: Ints) -> Ints:
    """Return how many chunks each node holds by its amounts."""
    needs = np.array([demand[name] for name in columns], dtype=np.int64)
    some = needs > 0
    if not some.any():
        return np.full(len(amounts), 1)
    held: Ints = (amounts[:, some] // needs[some]).min(axis=1)
    return held


LEVELS = 5
"""Number of block sizes where the file states none, each twice the one before."""


class GroupLimit(NamedTuple):
    """A limit on the groups of nodes that a job may have."""

    level: str
    # Group of each node of the site, empty for none, where the job has no nodes
    groups: tuple[str, ...]
    most: int = 0  # most groups, 0 for any number
    segment: int = 0  # the number of nodes in each group is a multiple of this, 0 for any number

    @property
    def numbered(self) -> Limit:
        """The limit with numbers of the groups."""
        _, group_of = np.unique(np.array(self.groups, dtype=str), return_inverse=True)
        return Limit(group_of.ravel(), self.most, max(1, self.segment))


def block_limits(
    blocks: Blocks, name: str, nodes: int, segment: int = 0, *, together: bool = False
) -> tuple[GroupLimit, ...]:
    """Return the limits of a job in a topology of blocks, the one of the largest blocks first.

    `nodes`: least number of nodes of the job; `segment`: number of nodes of each segment, 0 for no
    segments; `together`: whether one block of a size that is large enough for the job has all its
    segments.
    """
    if not 0 < segment < nodes:
        return _one_set(blocks, name, nodes)
    _divided(nodes, segment)
    of_segment = _one_set(blocks, name, segment)
    if len(of_segment) != 1 or of_segment[0].most != 1:
        raise LeftToSlurmError(f"its segments of {segment:,} nodes need several blocks")
    within = of_segment[0]._replace(most=0, segment=segment)
    if not together:
        return (within,)
    of_job = _one_set(blocks, name, nodes)
    if of_job and of_job[0].level == within.level:
        return of_job
    return (*(limit for limit in of_job if limit.most == 1), within)


def torus_limit(
    torus: Torus, name: str, nodes: int, segment: int = 0, *, names: Sequence[str]
) -> GroupLimit:
    """Return the limit of a job on a torus: it has one place, or one for each segment.

    `nodes`: number of nodes of the job; `segment`: number of nodes of each segment, 0 for no
    segments; `names`: names of the nodes of the site.
    """
    size = nodes
    if 0 < segment < nodes:
        _divided(nodes, segment)
        size = segment
    groups = [""] * len(names)
    for places in torus.places:
        if math.prod(places.dims) != size:
            continue
        for there in _places(torus, places):
            if (there < 0).any():  # Slurm gives no place that lacks a node
                continue
            place = host_list(names[node] for node in there.tolist())
            for node in there.tolist():
                if groups[node]:
                    raise LeftToSlurmError(f"the places of {size:,} nodes on its torus overlap")
                groups[node] = place
    if not any(groups):
        raise LeftToSlurmError(f"its torus has no place of {size:,} nodes")
    level = f"places of {size:,} nodes of {name}"
    if size < nodes:
        return GroupLimit(level, tuple(groups), segment=size)
    return GroupLimit(level, tuple(groups), most=1)


def switch_limit(tree: Tree, name: str, most: int) -> GroupLimit:
    """Return the limit of a job that has at most some leaf switches of a tree."""
    return GroupLimit(f"leaf switches of {name}", _labels(tree.switches, tree.group), most)


def _divided(nodes: int, segment: int) -> None:
    if nodes % segment:
        raise LeftToSlurmError(
            f"its {nodes:,} nodes are no multiple of its segments of {segment:,}"
        )


def _one_set(blocks: Blocks, name: str, nodes: int) -> tuple[GroupLimit, ...]:
    """Return the limits of nodes that are placed in one block that is large enough."""
    first = int((blocks.group == 0).sum())
    sizes = blocks.sizes or [first << level for level in range(LEVELS)]
    base = max(1, sizes[0])
    joined = [size // base for size in sizes]  # base blocks of a block of each size
    needed = -(-nodes // base)
    enough = [number for number in joined if number >= needed]
    found = [_limit(blocks, name, base, enough[0], 1)] if enough else []
    if needed > 1:
        half = (1 << (needed - 1).bit_length()) // 2
        part = max(number for number in joined if number <= half)
        most = -(-nodes // (base * part))
        if not enough or enough[0] > part * most:
            found.append(_limit(blocks, name, base, part, most))
    return tuple(found)


def _limit(blocks: Blocks, name: str, base: int, joined: int, most: int) -> GroupLimit:
    """Return the limit on blocks that are each made of some neighbouring base blocks."""
    places = range(0, len(blocks.names), joined)
    names = [host_list(blocks.names[place : place + joined]) for place in places]
    group = np.where(blocks.group < 0, -1, blocks.group // joined)
    return GroupLimit(f"blocks of {base * joined:,} nodes of {name}", _labels(names, group), most)


def _labels(names: Sequence[str], group: Ints) -> tuple[str, ...]:
    return tuple(names[place] if place >= 0 else "" for place in group.tolist())


def _places(torus: Torus, places: Places) -> list[Ints]:
    """Return the nodes at each place, -1 for a position without a node."""
    grid = torus.nodes.reshape(torus.dims[::-1])
    anchors = [
        dict.fromkeys((seed + step * spacing) % size for step in range(size))
        for seed, spacing, size in zip(places.seed, places.spacing, torus.dims)
    ]
    found = []
    for anchor in product(*anchors):
        sides = zip(anchor, places.dims, torus.dims)
        box = [(low + np.arange(size)) % most for low, size, most in sides]
        found.append(grid[np.ix_(*box[::-1])].ravel())
    return found
