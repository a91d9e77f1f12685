"""Resident input files in the memory of nodes, and nodes of several cores: ``cluster:NxC``."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Self, get_args

import numpy as np

from optsched.arrays import Flags, Floats, Ints
from optsched.column_sets import interval_text, lowest, runs_of, runs_text
from optsched.compiled import kernel
from optsched.errors import InputError
from optsched.machines.machine import Machine, check_counts
from optsched.registry import machines

FILE, LOAD, LOADED, UNTIL, USERS = range(5)
FREE = -1


@kernel(allocates=False)
def use(
    table: Floats,
    latest_start: Floats,
    until_next: bool,
    node: int,
    file: int,
    load: int,
    now: float,
    until: float,
) -> tuple[float, bool]:
    """Begin the use of a file by a job, with a load if the file is not resident.

    The load takes `load` seconds; `now` and `until` are the job's start and estimated end. Returns
    the seconds that the job waits for its file, and whether it loads the file itself.
    """
    forget(table, latest_start, until_next, node, now)
    slot = vacant = FREE
    for each in range(table.shape[2]):
        held = table[FILE, node, each]
        if held == file:
            slot = each
        elif held == FREE and vacant == FREE:
            vacant = each
    loads = slot == FREE
    if loads:
        slot = vacant
        table[FILE, node, slot] = file
        table[LOAD, node, slot] = load
        table[LOADED, node, slot] = now + load
        table[UNTIL, node, slot] = until
        table[USERS, node, slot] = 0
    table[USERS, node, slot] += 1
    table[UNTIL, node, slot] = max(table[UNTIL, node, slot], until)
    return max(0.0, table[LOADED, node, slot] - now), loads


@kernel(allocates=False)
def drop(table: Floats, node: int, file: int, now: float) -> None:
    """End the use of a file by a job."""
    for slot in range(table.shape[2]):
        if table[FILE, node, slot] == file:
            table[USERS, node, slot] -= 1
            if table[USERS, node, slot] == 0:
                table[UNTIL, node, slot] = now
            break


@kernel(allocates=False)
def forget(table: Floats, latest_start: Floats, until_next: bool, node: int, now: float) -> None:
    """Evict the files that a job that starts now does not find."""
    latest = latest_start[node]
    if until_next:
        if latest == now:
            return  # starts of one instant do not evict for each other
        latest_start[node] = now
    for slot in range(table.shape[2]):
        if table[FILE, node, slot] == FREE or table[USERS, node, slot] > 0:
            continue
        until = table[UNTIL, node, slot]
        # with charged decisions, the previous start may even be later than this one
        if until <= latest if until_next else until < now:
            table[FILE, node, slot] = FREE


@kernel
def residents(table: Floats, latest_start: Floats, now: float, until_next: bool) -> Ints:
    """Return the table of `NodeMemory.residents`; the arguments are its state."""
    _, nodes, slots = table.shape
    rows = np.empty((nodes * slots, 5), dtype=np.int64)
    count = 0
    for node in range(nodes):
        latest = -math.inf if latest_start[node] >= now else latest_start[node]
        for slot in range(slots):
            if table[FILE, node, slot] == FREE:
                continue
            until = table[UNTIL, node, slot]
            if table[USERS, node, slot] > 0 or until >= now or (until_next and until > latest):
                rows[count, 0] = node
                rows[count, 1] = int(table[FILE, node, slot])
                load = rows[count, 2] = int(table[LOAD, node, slot])
                left = math.ceil(max(table[LOADED, node, slot] - now, 0.0))
                rows[count, 3] = min(left, load)  # a sum less one of its terms may be rounded up
                rows[count, 4] = math.ceil(max(until - now, 0.0))
                count += 1
    return rows[:count].copy()


Kept = Literal["users", "next"]
"""Period for which a file stays: while a job uses it, or until the next start on the node."""


class NodeMemory:
    """Input files of jobs in the memory of nodes.

    A file is resident from the start of its load until its last user ends, including that instant:
    a job that starts then finds the file. `kept` is the rule from then on. With ``users``, the rule
    of the authors' program, later jobs do not find the file. With ``next`` they do if no job was
    started on the node in between (Gonthier et al. 2024, section III, case 2): a job that starts at
    t finds a file whose last user ended at e if no job, with or without a file, started at a time
    s, e <= s < t. Memory is large enough for the files of all jobs that a node can run, at most one
    for each core, so nothing else evicts a file.

    M. Gonthier, E. Larsson, L. Marchal, C. Nettelblad, S. Thibault, "Data-driven locality-aware
    batch scheduling", APDCM 2024.
    """

    def __init__(self, nodes: int, cores: int, kept: Kept = "users") -> None:
        self.cores = cores
        self.kept = kept
        self.latest_start = np.full(nodes, -np.inf)  # on each node; ``next`` only
        # rows `FILE` to `USERS`; half of the slots are for files that stay without a user
        self.table = np.zeros((5, nodes, 2 * cores))
        self.table[FILE] = FREE

    def residents(self, now: float) -> Ints:
        """Return the resident files, in order of the nodes.

        Result: the node, the file, the seconds to load it from the shared storage, and the whole
        seconds from now, at least 0, until it is loaded, and until which it is planned to stay.
        While jobs use the file, the latter is the latest limit of all its users, including those
        that have ended, as in the authors' program. Afterwards it is 0, also if files stay until
        the next start.
        """
        rows: Ints
        rows = residents(self.table, self.latest_start, now, self.kept == "next")
        return rows

    def started(self, now: float) -> Flags:
        """Return a mask of the nodes with a start at `now`, shape (nodes,); ``next`` only."""
        return self.latest_start >= now


MOST_CORES = 62
"""Most cores of a node, whose sets of cores are bits of a 64-bit number."""

MOST_CLUSTER_CORES = 2**20
"""Most cores of a cluster."""

SPECIFICATION = re.compile(r"([0-9]{1,18})x([0-9]{1,18})((?::[a-z]+=[0-9a-z]{1,18})*)")

MEMORY = 128_000
BANDWIDTH = 100


class Cores(NamedTuple):
    """Cores of one node."""

    node: int  # the node, from 0
    cores: int  # set of cores: bit c stands for core c


@machines.register("cluster")
class Cluster(Machine):
    """Identical nodes of several cores each, with a memory for input files.

    Every job runs on cores of one node. Its input file is loaded from shared storage over the
    link of the node, unless the file is resident there. Core c of node n is processor
    ``n * cores + c``.

    >>> machine = Cluster(nodes=2, cores=4)
    >>> machine.resources(machine.claim(Cores(1, 0b0110), processors=2))
    '5-6'
    """

    usage = "cluster:NODESxCORES[:memory=MB][:bandwidth=MB/s][:kept=users|next]"

    def __init__(
        self,
        nodes: int,
        cores: int,  # number of cores of a node
        # Memory of a node, in MB; at least the MB that its link loads in a second
        memory: int = MEMORY,
        bandwidth: int = BANDWIDTH,  # bandwidth of a node's link to the storage, in MB/s
        # Period for which a file stays resident: while a job uses the file, or until the
        # next job starts on the node; see `NodeMemory`
        kept: Kept = "users",
    ) -> None:
        check_counts({"nodes": nodes, "cores": cores, "memory": memory, "bandwidth": bandwidth})
        if cores > MOST_CORES:
            raise InputError(f"{cores}; expected at most {MOST_CORES}", field="cores")
        if memory < bandwidth:
            expected = f"expected at least {bandwidth}, what the link loads in a second (bandwidth)"
            raise InputError(f"{memory} MB; {expected}", field="memory")
        if nodes * cores > MOST_CLUSTER_CORES:
            raise InputError(
                f"cluster of {nodes * cores:,} cores; expected at most {MOST_CLUSTER_CORES:,}"
            )
        if kept not in get_args(Kept):
            raise InputError(f"{kept!r}; expected {' or '.join(get_args(Kept))}", field="kept")
        self.nodes = nodes
        self.cores = cores
        self.memory = memory
        self.bandwidth = bandwidth
        self.size = self.free = nodes * cores
        self.files = NodeMemory(nodes, cores, kept)  # resident files of the nodes
        self._free = [(1 << cores) - 1] * nodes

    @classmethod
    def from_spec(cls, text: str) -> Self:
        """Build ``cluster:<text>``."""
        match = SPECIFICATION.fullmatch(text)
        if match is None:
            raise InputError(f"machine 'cluster:{text}'; expected {cls.usage}")
        options: dict[str, Any] = {}
        for option in match[3].split(":")[1:]:
            name, _, value = option.partition("=")
            fits = name == "kept" or (name in ("memory", "bandwidth") and value.isdecimal())
            if not fits or name in options:
                raise InputError(f"machine 'cluster:{text}'; expected {cls.usage}", field=name)
            options[name] = value if name == "kept" else int(value)
        return cls(int(match[1]), int(match[2]), **options)

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> Self:
        """Build a cluster from the keys nodes and cores, and perhaps memory, bandwidth, kept."""
        known = {"nodes", "cores", "memory", "bandwidth", "kept"}
        if not {"nodes", "cores"} <= set(table) <= known:
            expected = "expected nodes, cores, and perhaps memory, bandwidth and kept"
            raise InputError(f"keys {sorted(table)}; {expected}")
        return cls(**table)

    @property
    def spec(self) -> str:
        """Specification that builds an equal machine."""
        memory = "" if self.memory == MEMORY else f":memory={self.memory}"
        bandwidth = "" if self.bandwidth == BANDWIDTH else f":bandwidth={self.bandwidth}"
        kept = "" if self.files.kept == "users" else f":kept={self.files.kept}"
        return f"cluster:{self.nodes}x{self.cores}{memory}{bandwidth}{kept}"

    def allocate(self, processors: int) -> Cores:
        """Give a job the first free cores of the first node that has enough."""
        for node, free in enumerate(self._free):
            if free.bit_count() >= processors:
                return self.claim(Cores(node, lowest(free, processors)), processors)
        raise ValueError(f"no node has {processors} free cores")

    def claim(self, place: Cores, processors: int) -> Cores:
        """Give a job the cores that a policy chose."""
        node, cores = int(place[0]), int(place[1])
        if cores.bit_count() != processors:
            raise ValueError(f"a place of {cores.bit_count()} cores for a job of {processors}")
        if taken := cores & ~self._free[node]:
            raise ValueError(f"cores {interval_text(taken)} of node {node} are not free")
        self._free[node] &= ~cores
        self.free -= processors
        return Cores(node, cores)

    def release(self, allocation: Cores) -> None:
        """Take back the cores of a job."""
        self._free[allocation.node] |= allocation.cores
        self.free += allocation.cores.bit_count()

    def resources(self, allocation: Cores) -> str:
        """Return the processors of an allocation as an interval set."""
        first = allocation.node * self.cores
        return runs_text([(first + a, first + b) for a, b in runs_of(allocation.cores)])

    def violations(self, held: Mapping[int, Cores]) -> list[str]:
        """Compare the free cores with those that the running jobs hold."""
        everything = (1 << self.cores) - 1
        covered = list(self._free)
        found = []
        for job, (node, cores) in held.items():
            if covered[node] & cores:
                twice = interval_text(covered[node] & cores)
                found.append(f"cores {twice} of node {node} are held twice, by job {job} too")
            covered[node] |= cores
        for node, cores in enumerate(covered):
            if cores != everything:
                found.append(f"cores {interval_text(everything & ~cores)} of node {node} are lost")
        if (free := sum(free.bit_count() for free in self._free)) != self.free:
            found.append(f"{self.free} cores counted free, {free} are")
        return found

    def is_free(self, place: Cores) -> bool:
        """Return whether all cores of a place are free."""
        return not place.cores & ~self._free[place.node]
