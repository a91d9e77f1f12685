"""Requests of the jobs of a trace to a site, as equal chunks.

They are divided as `optsched.sites.job_request` says, and where a trace states neither tasks nor
nodes into a chunk for each processor. So is a job that cannot be on as few nodes as it names, or
has been on more in the log: Slurm states one node at least for a job that names only tasks. One
with GPUs or memory of each node is then on the fewest nodes possible, or on as many as in the log.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.arrays import Flags
from optsched.sites.job_request import (
    CORES,
    GPU,
    Columns,
    JobRequest,
    UnplaceableError,
    demand_of,
    divided,
    licences_asked,
    nodes_with,
    on_each,
)
from optsched.sites.site import Partition, Site

BEYOND_RESERVATION = "it cannot end within its reservation"


class Chunks(NamedTuple):
    """One way to run a job: equal chunks on some nodes."""

    chunks: int
    most_per_node: int  # most chunks on a node; at most `chunks`
    demand: tuple[int, ...]  # amount of each resource of the site that a chunk needs
    nodes: int  # number of the set of nodes in `Requests.nodes` that the job may use
    exclusive: bool  # whether the job shares its nodes with no other job
    licences: tuple[int, ...]  # number of each licence of the site that the job needs


class Requests:
    """The requests of the jobs of a trace; equal ones have the same number.

    A request is one or more alternatives, of which a job takes the first that is possible: one for
    each partition that it names, for each choice of features, and for each number of nodes.

    `jobs`: columns of a trace by name: ``processors``, ``requested_time``, and any of `NUMBERS` and
    `TEXTS`; where there are reservations ``unix_time`` too, the submission in seconds since 1970. A
    reservation that the site does not have counts as none. Shape (jobs,).

    >>> site = Site("small", ("c1", "c2"), ("cores", "memory"), np.array([[4, 900], [8, 900]]))
    >>> requests = Requests(site, {
    ...     "processors": np.array([6, 6, 99]), "requested_time": np.array([60, 60, 60]),
    ...     "nodes": np.array([2, -1, -1])})
    >>> requests.numbers
    [0, 1, -1]
    >>> requests.alternatives[0].chunks, requests.alternatives[0].demand
    (2, (3, 0))
    >>> requests.why_never(-1)
    'it does not fit on the nodes that it may use'
    """

    def __init__(self, site: Site, jobs: Mapping[str, NDArray[Any]]) -> None:
        self.site = site
        self.alternatives: list[Chunks] = []
        self.first = [0]  # ``alternatives[first[number]:first[number + 1]]`` are those of a request
        # Sets of nodes that jobs may use; only usable nodes, shape (nodes,)
        self.nodes: list[Flags] = []
        self._sets: dict[bytes, int] = {}
        self._allowed: dict[tuple[int, bytes, str], _Allowed] = {}
        self._reasons: list[str] = []
        self._reservations = {each.name: each for each in site.reservations}
        limits = sorted({each.max_time for each in site.partitions})
        classes = np.searchsorted(limits, jobs["requested_time"])
        too_late = self._too_late(jobs)
        columns: list[list[Any]] = [
            jobs[name].tolist() if name in jobs else [unknown] * len(classes)
            for names, unknown in ((NUMBERS, -1), (TEXTS, ""))
            for name in names
        ]
        known: dict[tuple[Any, ...], int] = {}
        self._known: dict[tuple[Chunks, ...] | str, int] = {}
        # Number of the request of each job. It is negative for one that can never start.
        self.numbers: list[int] = []
        for row in zip(*columns, too_late, classes.tolist()):
            if row not in known:
                *asked, limit = row
                known[row] = self._number(self._request(_Asked(*asked), [*limits, math.inf][limit]))
            self.numbers.append(known[row])

    def add(self, ways: Sequence[tuple[Chunks, Flags]]) -> None:
        """Add a job of which the chunks are known, in each way with the nodes that it may use."""
        request = tuple(chunks._replace(nodes=self._set(nodes)) for chunks, nodes in ways)
        self.numbers.append(self._number(request))

    def of(self, number: int) -> list[Chunks]:
        """Return the alternatives of a request."""
        return self.alternatives[self.first[number] : self.first[number + 1]]

    @property
    def only_cores(self) -> bool:
        """Whether jobs ask for nothing but single cores, on any usable nodes."""
        core = tuple(int(name == CORES) for name in self.site.resources)
        return all(
            one.demand == core
            and one.most_per_node == one.chunks
            and not (one.exclusive or any(one.licences))
            and bool(self.nodes[one.nodes].sum() == self.site.is_usable.sum())
            for one in self.alternatives
        )

    def why_never(self, number: int) -> str:
        """Return why the jobs of a negative number can never start."""
        return self._reasons[-1 - number]

    def _too_late(self, jobs: Mapping[str, NDArray[Any]]) -> list[bool]:
        """Return which jobs are in a reservation that ends before they could."""
        if not self._reservations or "reservation" not in jobs:
            return [False] * len(jobs["processors"])
        spans = {name: (each.start, each.end) for name, each in self._reservations.items()}
        own = [spans.get(name, (-math.inf, math.inf)) for name in jobs["reservation"].tolist()]
        first, last = np.array(own).reshape(-1, 2).T
        ends = np.maximum(jobs["unix_time"], first) + jobs["requested_time"]
        late: list[bool] = (ends > last).tolist()
        return late

    def _request(self, asked: _Asked, limit: float) -> tuple[Chunks, ...] | str:
        """Return the request of jobs of at most `limit` seconds, or why they never start."""
        request: tuple[Chunks, ...] | str = ""
        for shape in asked.shapes:
            try:
                return self._alternatives(shape, limit)
            except UnplaceableError as error:
                request = request or str(error)
        return request

    def _number(self, request: tuple[Chunks, ...] | str) -> int:
        """Return the number of a request, a new one if there is no equal one."""
        found = self._known
        if request not in found:
            if isinstance(request, str):
                self._reasons.append(request)
                found[request] = -len(self._reasons)
            else:
                found[request] = len(self.first) - 1
                self.alternatives += request
                self.first.append(len(self.alternatives))
        return found[request]

    def _alternatives(self, asked: _Asked, limit: float) -> tuple[Chunks, ...]:
        site = self.site
        if asked.too_late:
            raise UnplaceableError(BEYOND_RESERVATION)
        job = asked.request
        licences = _licences(job.licences, site.licences)
        found: list[Chunks] = []
        refusals = []
        partitions = known_partitions(asked.partition_name, site)
        if not partitions:
            raise UnplaceableError("the site has none of its partitions")
        for partition in partitions:
            for features in nodes_with(job.constraint, site):
                try:
                    found += self._within(asked, job, limit, partition, features, licences)
                except UnplaceableError as error:
                    refusals.append(error)
        if not found:
            raise refusals[0]
        return tuple(dict.fromkeys(found))

    def _within(
        self,
        asked: _Asked,
        job: JobRequest,
        limit: float,
        partition: Partition,
        features: Flags,
        licences: tuple[int, ...],
    ) -> list[Chunks]:
        """Return the ways to run a job on nodes of a partition with some features."""
        if not partition.up:
            raise UnplaceableError("its partition is down")
        if limit > partition.max_time:
            raise UnplaceableError("its requested time is over the limit of its partition")
        if job.needed_nodes > partition.max_nodes:
            raise UnplaceableError("it asks for more nodes than its partition allows")
        if job.constraint and not (features & self.site.is_usable)[partition.nodes].any():
            raise UnplaceableError("no node that it may use has its features")
        allowed = self._allowed_nodes(partition, features, asked.reservation)
        columns = Columns(self.site.resources)
        division = divided(job, partition, columns, allowed.room, allowed.alike.total())
        divisions, seen = [division], asked.allocated_nodes
        if division.chunks < seen <= min(partition.max_nodes, job.tasks):
            divisions.append(on_each(job, seen))
        exclusive = job.is_alone(partition, columns)
        found = []
        for count, tasks, gres, limit, on_nodes in divisions:
            most = min(limit or count, count)
            demand = demand_of(job, partition, columns, tasks, gres, on_nodes=on_nodes)
            if allowed.room(demand, most) >= count:
                nodes, amounts = self._set(allowed.nodes), tuple(demand.values())
                found.append(Chunks(count, most, amounts, nodes, exclusive, licences))
        if not found:
            is_kept = asked.reservation in self._reservations
            where = "in its reservation" if is_kept else "on the nodes that it may use"
            raise UnplaceableError(f"it does not fit {where}")
        return found

    def _allowed_nodes(self, partition: Partition, features: Flags, kept: str) -> _Allowed:
        key = id(partition), features.tobytes(), kept  # the partitions stay
        if key not in self._allowed:
            nodes = self.site.of_partitions([partition])
            nodes &= features & self.site.is_usable & self._kept(kept)
            alike = Counter(map(tuple, self.site.capacity[nodes].tolist()))
            self._allowed[key] = _Allowed(nodes, alike)
        return self._allowed[key]

    def _kept(self, reservation: str) -> Flags:
        """Return the nodes of a reservation, or those that none keeps at all times."""
        if reservation in self._reservations:
            return self.site.mask(self._reservations[reservation].nodes)
        others = (each for each in self._reservations.values() if not each.finite)
        return ~self.site.mask(name for each in others for name in each.nodes)

    def _set(self, allowed: Flags) -> int:
        key = allowed.tobytes()
        if key not in self._sets:
            self._sets[key] = len(self.nodes)
            self.nodes.append(allowed)
        return self._sets[key]


class _Allowed(NamedTuple):
    """Nodes that jobs may use, and how many of them have the same capacity."""

    nodes: Flags
    alike: Counter[tuple[int, ...]]

    def room(self, demand: Mapping[str, int], most: int = 1) -> int:
        """Return how many chunks the nodes hold when they are idle, each of them at most some."""
        found = 0
        for capacity, nodes in self.alike.items():
            held = (there // needs for there, needs in zip(capacity, demand.values()) if needs)
            found += nodes * min([most, *held])
        return found


class _Asked(NamedTuple):
    """What jobs ask for, in columns of numbers and of texts, and whether that is too late."""

    processors: int
    nodes: int
    tasks: int
    cores_per_task: int
    tasks_per_node: int
    memory_per_node: int
    memory_per_core: int
    gpus: int
    gpus_per_node: int
    gpus_per_task: int
    exclusive: int
    allocated_nodes: int
    partition_name: str
    gpu_type: str
    features: str
    licences: str
    reservation: str
    too_late: bool

    @property
    def shapes(self) -> list[_Asked]:
        """The job as it may be divided: by nodes, or if that is not possible, by processors."""
        if self.nodes < 1 or self.tasks > 0 or self.cores_per_task > 0:
            return [self]
        by_processor = self._replace(tasks=self.processors)
        return [by_processor] if self.allocated_nodes > self.nodes else [self, by_processor]

    @property
    def request(self) -> JobRequest:
        """What the job asks for; one that states nodes and no tasks has one task on each node."""
        tasks, nodes, cores = (max(0, n) for n in (self.tasks, self.nodes, self.cores_per_task))
        if not tasks:
            tasks = -(-self.processors // cores) if cores else nodes or self.processors
        resources = [GPU, *([f"{GPU}:{self.gpu_type}"] if self.gpu_type else [])]
        per_node, per_task, per_job = (
            dict.fromkeys(resources, count) if count > 0 else {}
            for count in (self.gpus_per_node, self.gpus_per_task, self.gpus)
        )
        return JobRequest(
            least_nodes=max(1, nodes),
            tasks=tasks,
            cores_per_task=cores or -(-self.processors // tasks),
            tasks_per_node=max(0, self.tasks_per_node),
            memory_per_node=None if self.memory_per_node < 0 else self.memory_per_node,
            memory_per_core=None if self.memory_per_core < 0 else self.memory_per_core,
            per_node=per_node,
            per_task=per_task,
            per_job=per_job,
            constraint=self.features,
            exclusive="node" if self.exclusive > 0 else "",
            licences=self.licences,
        )


_FIRST_TEXT = _Asked._fields.index("partition_name")

NUMBERS, TEXTS = _Asked._fields[:_FIRST_TEXT], _Asked._fields[_FIRST_TEXT:-1]
"""Columns of numbers and of texts that are read, where a trace has them; -1 and "" are unknown."""


def known_partitions(names: str, site: Site) -> list[Partition]:
    """Return the partitions of a job: those that it names, or the default one, or all nodes."""
    if names:
        return site.known_partitions(names.split(","))
    for each in site.partitions:
        if each.default:
            return [each]
    return [site.everywhere]


def _licences(text: str, there: Mapping[str, int]) -> tuple[int, ...]:
    found = licences_asked(text)
    if strange := found.keys() - there.keys():
        lacks = "the site does not have all of its licences"
        is_readable = not any(":" in name for name in strange)
        raise UnplaceableError(lacks if is_readable else "its licences cannot be read")
    if any(found[name] > total for name, total in there.items()):
        raise UnplaceableError("it asks for more licences than the site has")
    return tuple(found[name] for name in there)


class Windows(NamedTuple):
    """Times at which nodes are closed to jobs; in seconds, in order of the ends."""

    # The nodes are closed from `start` to before `end`, shape (windows,)
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    # Whether only starts are ruled out then, as by a drain; jobs that run go on, shape (windows,)
    of_starts: Flags
    closed: Flags  # whether each node is closed, shape (windows, nodes)


class Queues:
    """The queues of the jobs of a trace.

    Jobs of a reservation are a queue. All others are in the queue of the nodes of their partitions;
    a *cell* is a node, or a reservation, and two queues that share a cell stop each other.

    `jobs`: columns of a trace by name: ``partition_name`` and ``reservation``, where it has them,
    and ``unix_time``, the submission in seconds since 1970, shape (jobs,).
    """

    def __init__(self, site: Site, jobs: Mapping[str, NDArray[Any]]) -> None:
        self.site = site
        times = jobs.get("unix_time", np.empty(0))
        # The first submission, in seconds since 1970
        self.first = float(times[0]) if len(times) else -math.inf
        # Those that have not ended before the first submission
        self.reservations = [each for each in site.reservations if each.end > self.first]
        number = {each.name: place for place, each in enumerate(self.reservations)}
        known = {each.name for each in site.reservations}
        count = len(jobs["processors"])
        partitions = jobs.get("partition_name", np.full(count, "")).tolist()
        reserved = jobs.get("reservation", np.full(count, "")).tolist()
        # Number of jobs in reservations that the site does not have; they count as in none
        self.unknown = sum(bool(name) and name not in known for name in reserved)
        # For each queue the number of its reservation in `reservations`; -1 for one of
        # partitions
        self.reservation: list[int] = []
        cells: list[Flags] = []
        seen: dict[tuple[str, int], tuple[int, int]] = {}
        numbers: dict[bytes, int] = {}
        keys = [(names, number.get(name, -1)) for names, name in zip(partitions, reserved)]
        for names, reservation in dict.fromkeys(keys):
            found = known_partitions(names, site)
            own = np.zeros(len(site.nodes) + len(number), dtype=bool)
            if reservation >= 0:
                own[len(site.nodes) + reservation] = True
            else:
                own[: len(site.nodes)] = site.of_partitions(found)
            queue = numbers.setdefault(own.tobytes(), len(cells)) if found else -1
            if queue == len(cells):
                cells.append(own)
                self.reservation.append(reservation)
            tier = max((each.priority_tier for each in found), default=0)
            seen[names, reservation] = queue, tier
        # Number of the queue of each job; -1 for one whose partitions the site does not have
        self.of_job = [seen[key][0] for key in keys]
        # Tier of each job, the highest of its partitions. Jobs of a higher tier are before others.
        self.tier = [seen[key][1] for key in keys]
        kinds = {kind for kind in seen.values() if kind[0] >= 0}
        self._several = len(kinds) > 1
        self.has_tiers = len({tier for _, tier in kinds}) > 1  # whether jobs are of different tiers
        # The cells of each queue: the nodes, then the reservations, shape (queues, cells)
        self.cells = np.array(cells, dtype=bool).reshape(-1, len(site.nodes) + len(number))

    @property
    def is_one(self) -> bool:
        """Whether all jobs are in one queue, of one tier, and no reservation counts."""
        return not (self._several or self.reservations)

    def windows(self, reservation: int, origin: float) -> Windows:
        """Return when nodes are closed to the jobs of a reservation, or of none (-1).

        Times count from `origin`, in seconds since 1970.
        """
        site = self.site
        others = [each for place, each in enumerate(self.reservations) if place != reservation]
        spans = [(each.start, each.end, site.mask(each.nodes)) for each in others]
        if reservation >= 0:
            own = self.reservations[reservation]
            everywhere = np.ones(len(site.nodes), dtype=bool)
            spans += [(-math.inf, own.start, everywhere), (own.end, math.inf, everywhere)]
        spans.sort(key=lambda span: span[1])
        return Windows(
            np.array([start - origin for start, _, _ in spans], dtype=np.float64),
            np.array([end - origin for _, end, _ in spans], dtype=np.float64),
            np.zeros(len(spans), dtype=bool),
            np.array([nodes for _, _, nodes in spans], dtype=bool).reshape(-1, len(site.nodes)),
        )


RESERVED = "its nodes are reserved without a known end before it could end"


class LastStart(NamedTuple):
    """The last time at which a job can start, in seconds, and why it cannot start later."""

    at: float
    reason: str


def last_starts(
    requests: Requests, queues: Queues, submit: Sequence[float], requested: Sequence[float]
) -> dict[int, LastStart]:
    """Return until when jobs can start, by their rows in the trace.

    That is because the reservation of the job ends, or because others keep so many nodes without
    end that the job does not fit on the rest. Jobs that can start at any time are not included.

    `requests`: requests of the jobs; `submit` and `requested`: submission and requested time of
    each job in seconds, shape (jobs,); the times returned have the same origin.
    """
    if not queues.reservations:
        return {}
    origin = queues.first - submit[0]
    ends: dict[tuple[int, int], tuple[float, str]] = {}
    found = {}
    for job, (number, queue) in enumerate(zip(requests.numbers, queues.of_job)):
        if number < 0:
            continue
        key = number, queues.reservation[queue]
        if key not in ends:
            ends[key] = _last_end(requests, queues, *key, origin)
        end, reason = ends[key]
        if end < math.inf:
            found[job] = LastStart(end - requested[job], reason)
    return found


def _last_end(
    requests: Requests, queues: Queues, number: int, reservation: int, origin: float
) -> tuple[float, str]:
    """Return until when jobs of a request can run, and why no longer."""
    windows = queues.windows(reservation, origin)
    closed = np.zeros(len(queues.site.nodes), dtype=bool)
    for place in np.argsort(windows.start, kind="stable").tolist():
        if windows.end[place] < math.inf or windows.of_starts[place]:
            continue
        closed |= windows.closed[place]
        if not any(_fit_on(requests, one, ~closed) for one in requests.of(number)):
            is_own = reservation >= 0 and closed.all()
            return float(windows.start[place]), BEYOND_RESERVATION if is_own else RESERVED
    return math.inf, ""


def _fit_on(requests: Requests, one: Chunks, nodes: Flags) -> bool:
    demand = np.array(one.demand)
    asked = demand > 0
    capacity = requests.site.capacity[requests.nodes[one.nodes] & nodes]
    room = (capacity[:, asked] // demand[asked]).min(axis=1, initial=one.most_per_node)
    return int(room.sum()) >= one.chunks
