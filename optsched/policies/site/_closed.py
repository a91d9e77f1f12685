"""Nodes that the reservations of a site close to jobs at times, compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.by_reference import by_reference
from optsched.compiled import kernel
from optsched.machines._site_nodes import Flags, Numbers
from optsched.simulator._core import NO_JOB, WAKE, News, tell
from optsched.sites.requests import Queues

Times = NDArray[np.float64]


@by_reference
class Closed(NamedTuple):
    """When nodes are closed to jobs of none of the reservations, or to those of each.

    See `optsched.sites.requests.Windows`.
    """

    of_queue: Numbers  # for each queue the number of its reservation, 0 for none
    first: Numbers  # windows first[own] to before first[own + 1] count for the jobs of one
    start: Times
    end: Times
    of_starts: Flags
    closed: Flags  # shape (windows, nodes)
    edges: Times  # finite starts and ends, ascending
    woken: Times  # one entry: for which of these a decision was asked for
    holds: Flags  # which windows count for a job, for the search
    open: Flags  # nodes that are open to a job, for the search
    own: Numbers  # one entry: for the jobs of which


def closed_nodes(queues: Queues, submit: float) -> Closed:
    """Return when the nodes of a site are closed; `submit`: the first submission, in seconds."""
    there = sorted({-1, *queues.reservation})
    windows = [queues.windows(each, queues.first - submit) for each in there]
    start, end, of_starts, closed = (np.concatenate(parts) for parts in zip(*windows))
    edges = np.unique(np.concatenate((start, end)))
    own = [there.index(each) for each in (*queues.reservation, -1)]  # of no queue: none
    return Closed(
        np.array(own),
        np.cumsum([0, *(len(each.start) for each in windows)]),
        *(start, end, of_starts, closed, edges[np.isfinite(edges)], np.full(1, -np.inf)),
        holds=np.zeros(len(start), dtype=bool),
        open=np.ones(closed.shape[1], dtype=bool),
        own=np.zeros(1, dtype=np.int64),
    )


@kernel(allocates=False)
def note_closed(closed: Closed, own: int, start: float, end: float) -> bool:
    """Note which nodes are open from a time to before another; return whether any changed."""
    first, stop, changed = closed.first[own], closed.first[own + 1], closed.own[0] != own
    closed.own[0] = own
    for window in range(first, stop):
        began = closed.start[window] < end
        if closed.of_starts[window]:
            began = closed.start[window] <= start
        holds = began and start < closed.end[window]
        if holds != closed.holds[window]:
            closed.holds[window] = holds
            changed = True
    if changed:
        for node in range(len(closed.open)):
            closed.open[node] = True
            for window in range(first, stop):
                if closed.holds[window] and closed.closed[window, node]:
                    closed.open[node] = False
    return bool(changed)


@kernel(allocates=False)
def ask_again(closed: Closed, news: News) -> None:
    """Ask for a decision when nodes are next closed or opened."""
    following, edges = np.inf, closed.edges
    for edge in range(len(edges)):
        if edges[edge] > news.now[0]:
            following = min(following, edges[edge])
    if following != closed.woken[0]:
        closed.woken[0] = following
        if following < np.inf:
            tell(news, WAKE, NO_JOB, following)
