"""Until when jobs can start on a site, because of its reservations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from optsched.sites.queues import Flags, Queues
from optsched.sites.requests import BEYOND_RESERVATION, Chunks, Requests

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
        if windows.end[place] < math.inf:
            continue
        closed |= windows.closed[place]
        if not any(_fits(requests, one, ~closed) for one in requests.of(number)):
            is_own = reservation >= 0 and closed.all()
            return float(windows.start[place]), BEYOND_RESERVATION if is_own else RESERVED
    return math.inf, ""


def _fits(requests: Requests, one: Chunks, nodes: Flags) -> bool:
    """Return whether an alternative fits on some idle nodes."""
    demand = np.array(one.demand)
    asked = demand > 0
    capacity = requests.site.capacity[requests.nodes[one.nodes] & nodes]
    room = (capacity[:, asked] // demand[asked]).min(axis=1, initial=one.most_per_node)
    return int(room.sum()) >= one.chunks
