"""Replay on a site of policies with a queue for each partition, compiled.

As `optsched.policies.parts.partition_queues` decides where no reservation of the site counts, with
the kernels that it uses.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optsched.by_reference import by_reference
from optsched.compiled import kernel
from optsched.machines._site_nodes import Asked, Flags, Free, Numbers, OnSite, Place
from optsched.policies.parts._partition_queues import (
    NO_HEAD,
    Closed,
    Heads,
    Times,
    forget_failed,
    next_beside_heads,
    no_heads,
    place_request,
    reserve,
)
from optsched.policies.parts._site_backfilling import (
    Reservation,
    Running,
    Shortages,
    no_reservation,
    no_shortages,
    nothing_runs,
)
from optsched.policies.parts._site_replay import begin, enter, finish, keep_waiting
from optsched.simulator._replay import (
    ENDED,
    FIRST,
    NEXT,
    STARTED,
    Runs,
    State,
    advance,
    has_room,
    process,
)


@by_reference
class Waiting(NamedTuple):
    """The waiting jobs, and what a decision needs."""

    rank: Times  # order of the jobs
    backfilling: Times  # order in which they are backfilled
    requests: Numbers
    queue: Numbers  # queue of each job
    cells: Flags  # shape (queues, nodes)
    order: Numbers  # the waiting jobs, in order
    number: Numbers  # one entry: of these
    candidates: Numbers
    behind: Numbers
    failed: Flags
    on_node: Numbers


@by_reference
class Stops(NamedTuple):
    """Which nodes and queues the heads stop."""

    open: Flags  # nodes that they do not
    overlaps: Flags  # queues with some of them
    stopped: Flags  # queues with no others


@kernel(allocates=False)
def forget_heads(heads: Heads, owner: Numbers, stops: Stops) -> None:
    """Let there be no heads."""
    heads.number[0] = 0
    owner[:] = NO_HEAD
    stops.open[:] = True
    stops.overlaps[:] = False
    stops.stopped[:] = False


@kernel(allocates=False)
def stop(stops: Stops, cells: Flags, queue: int) -> None:
    """Let a head stop its queue, and those that share nodes with it."""
    for node in range(cells.shape[1]):
        if cells[queue, node]:
            stops.open[node] = False
    for other in range(len(cells)):
        overlaps, stopped = False, True
        for node in range(cells.shape[1]):
            if cells[other, node]:
                if stops.open[node]:
                    stopped = False
                else:
                    overlaps = True
        stops.overlaps[other], stops.stopped[other] = overlaps, stopped


@kernel(allocates=False)
def replay(
    state: State,
    asked: Asked,
    free: Free,
    then: Free,
    at_shadow: Free,
    owner: Numbers,
    shortages: Shortages,
    unused: Reservation,
    running: Running,
    held: Place,
    other: Place,
    closed: Closed,
    heads: Heads,
    stops: Stops,
    waiting: Waiting,
    place: Place,
    backfills: bool,
) -> bool:
    """Process events; return whether these are all, see `process`."""
    tally, candidates, behind = state.tally, waiting.candidates, waiting.behind
    kept, last = False, 0.0
    while has_room(state):
        if not advance(state):
            return True
        now = state.now[0]
        for i in range(tally[ENDED]):
            job = state.ended[i]
            finish(state, asked, free, then, shortages, unused, running, held, job)
        kept = kept and tally[ENDED] == 0
        new = 0
        for job in range(tally[FIRST], tally[NEXT]):
            if waiting.requests[job] < 0:
                continue
            enter(waiting.order, waiting.number[0], waiting.rank, job)
            waiting.number[0] += 1
            enter(candidates, new, waiting.rank, job)
            new += 1
            kept = kept and waiting.rank[job] > last
        if waiting.number[0] == 0 or free.total[0] == 0:
            kept = False
            continue
        starts = tally[STARTED]
        if not kept:
            forget_heads(heads, owner, stops)
            last, new = -1.0, waiting.number[0]
            for at in range(new):
                candidates[at] = waiting.order[at]
        number = 0
        for at in range(new):
            job = candidates[at]
            queue, request = waiting.queue[job], waiting.requests[job]
            if stops.overlaps[queue] if backfills else stops.stopped[queue]:
                if backfills:
                    enter(behind, number, waiting.backfilling, job)
                    number += 1
                continue
            one, used = place_request(
                asked,
                free,
                then,
                owner,
                closed.open if backfills else stops.open,
                heads,
                request,
                now + state.requested[job],
                waiting.on_node,
                place,
            )
            if used > 0:
                begin(state, asked, free, running, held, other, job, one, place, used)
                continue
            stop(stops, waiting.cells, queue)
            last = max(last, waiting.rank[job])
            if backfills:
                reserve(
                    asked,
                    free,
                    then,
                    at_shadow,
                    owner,
                    running,
                    held,
                    closed,
                    heads,
                    request,
                    state.requested[job],
                    now,
                )
        at = 0
        forget_failed(behind, number, waiting.requests, waiting.failed)
        while at < number:
            at, one, used = next_beside_heads(
                asked,
                free,
                then,
                owner,
                closed.open,
                heads,
                shortages,
                behind,
                at,
                number,
                waiting.requests,
                state.requested,
                now,
                waiting.failed,
                waiting.on_node,
                place,
            )
            if used > 0:
                begin(state, asked, free, running, held, other, behind[at], one, place, used)
                at += 1
        kept = free.total[0] > 0
        if tally[STARTED] > starts:
            waiting.number[0] = keep_waiting(state, waiting.order, waiting.number[0])
    return False


def replay_in_queues(
    state: State, site: OnSite, score: Times, *, backfills: bool, shortest_first: bool
) -> Runs:
    """Process all events; return the runs of nodes of the jobs, see `process`.

    Of a tier, the job of lowest score is first, and of equal ones the first submitted.
    """
    asked, free, requests, queues = site.asked, site.free, site.requests, site.queues
    assert queues is not None
    jobs, nodes = len(requests), len(free.jobs)
    then, at_shadow = (Free(*(part.copy() for part in free)) for _ in range(2))
    most = len(state.free_start)  # a job has a core at least on each of its nodes
    running, held = nothing_runs(len(state.due), 2 * most)
    _, other = nothing_runs(1, most)
    numbers, tier = np.arange(jobs), -queues.tier
    first = _rank(numbers, score, tier)
    backfilling = _rank(first, state.requested, tier) if shortest_first else first
    cells = queues.cells
    order, candidates, behind = np.zeros((3, jobs), dtype=np.int64)
    owner, on_node, *place = np.zeros((4, nodes), dtype=np.int64)
    waiting = Waiting(
        first,
        backfilling,
        requests,
        queues.of_job,
        cells,
        order,
        np.zeros(1, dtype=np.int64),
        candidates,
        behind,
        np.zeros((len(cells) + 1, len(asked.first)), dtype=bool),
        on_node,
    )
    no_time, nowhere = np.zeros(0), np.zeros((0, nodes), dtype=bool)
    closed = Closed(no_time, no_time, nowhere, np.zeros(0, bool), np.ones(nodes, dtype=bool))
    stops = Stops(np.ones(nodes, dtype=bool), *np.zeros((2, len(cells)), dtype=bool))
    tables = (
        *(asked, free, then, at_shadow, owner),
        *(no_shortages(len(asked.chunks)), no_reservation(asked, nodes)),
        *(running, held, other, closed, no_heads(len(cells), len(free.licences))),
        *(stops, waiting, Place(*place)),
    )
    return process(state, lambda state: replay(state, *tables, backfills))


def _rank(*keys: Numbers | Times) -> Times:
    """Return the place of each job in the order of some keys, of which the last is the first."""
    order = np.lexsort(keys)
    rank = np.empty(len(order))
    rank[order] = np.arange(len(order), dtype=np.float64)
    return rank
