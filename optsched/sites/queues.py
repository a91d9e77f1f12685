"""Queues of a site: the jobs of partitions, and those of reservations, which wait for each other.

Slurm has one list of jobs, but a job that has to wait stops only those that want the same nodes:
the others of its partitions and of partitions that share nodes with these, or those of its
reservation. Some jobs can start only until a time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.sites.requests import BEYOND_RESERVATION, Chunks, Requests, known_partitions
from optsched.sites.reservations import Reservation
from optsched.sites.site import Site

Flags = NDArray[np.bool_]


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
        # Number of the queue of each job; -1 for one whose partitions the site does not have
        self.of_job: list[int] = []
        # Tier of each job, the highest of its partitions. Jobs of a higher tier are
        # before others.
        self.tier: list[int] = []
        # For each queue the number of its reservation in `reservations`; -1 for one of
        # partitions
        self.reservation: list[int] = []
        cells: list[Flags] = []
        seen: dict[tuple[str, int], tuple[int, int]] = {}
        numbers: dict[bytes, int] = {}
        for names, name in zip(partitions, reserved):
            key = names, number.get(name, -1)
            if key not in seen and not (found := known_partitions(names, site)):
                seen[key] = -1, 0
            if key not in seen:
                own = np.zeros(len(site.nodes) + len(number), dtype=bool)
                if key[1] >= 0:
                    own[len(site.nodes) + key[1]] = True
                else:
                    for each in found:
                        own[each.nodes] = True
                queue = numbers.setdefault(own.tobytes(), len(cells))
                if queue == len(cells):
                    cells.append(own)
                    self.reservation.append(key[1])
                seen[key] = queue, max(each.priority_tier for each in found)
            queue, tier = seen[key]
            self.of_job.append(queue)
            self.tier.append(tier)
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
        spans = [(each.start, each.end, self._nodes_of(each)) for each in others]
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

    def _nodes_of(self, reservation: Reservation) -> Flags:
        nodes = np.zeros(len(self.site.nodes), dtype=bool)
        nodes[self.site.places(reservation.nodes)] = True
        return nodes


RESERVED = "its nodes are reserved without end before it could end"


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
        if not any(_fits(requests, one, ~closed) for one in requests.of(number)):
            is_own = reservation >= 0 and closed.all()
            return float(windows.start[place]), BEYOND_RESERVATION if is_own else RESERVED
    return math.inf, ""


def _fits(requests: Requests, one: Chunks, nodes: Flags) -> bool:
    demand = np.array(one.demand)
    asked = demand > 0
    capacity = requests.site.capacity[requests.nodes[one.nodes] & nodes]
    room = (capacity[:, asked] // demand[asked]).min(axis=1, initial=one.most_per_node)
    return int(room.sum()) >= one.chunks
