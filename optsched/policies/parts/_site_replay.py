"""Replay on a site of policies that order the queue by a fixed score, compiled.

As `optsched.policies.parts.partition_queues` decides where no reservation of the site counts, with
the kernels that it uses.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optsched.by_reference import by_reference
from optsched.compiled import kernel
from optsched.machines._site_nodes import Flags, Numbers, OnSite, give, take
from optsched.policies.parts._partition_queues import (
    Candidates,
    Closed,
    Room,
    Times,
    forget_failed,
    forget_heads,
    keep_no_others,
    new_room,
    next_beside_heads,
    no_heads,
    note_end,
    place_request,
    reserve,
)
from optsched.policies.parts._site_backfilling import (
    Running,
    Shortages,
    add,
    drop,
    ease,
    no_shortages,
    nothing_runs,
)
from optsched.simulator._replay import (
    ENDED,
    FIRST,
    NEXT,
    STARTED,
    Runs,
    State,
    advance,
    has_room,
    hold,
    insert,
    position,
    process,
    start,
)

NOBODY = -1


@by_reference
class Waiting(NamedTuple):
    """The waiting jobs."""

    rank: Times  # order of the jobs
    backfilling: Times  # order in which they are backfilled
    queue: Numbers  # queue of each job
    order: Numbers  # the waiting jobs, in order
    behind: Numbers  # the same in the order of backfilling
    number: Numbers  # one entry: of these
    new: Numbers  # jobs that come, in order
    candidates: Candidates


@by_reference
class Stops(NamedTuple):
    """What blocked jobs stop: later jobs of their queues, and of others that share nodes."""

    cells: Flags  # shape (queues, nodes)
    shares: Flags  # shape (queues, queues), whether two share nodes
    blocked: Numbers  # the blocked job of each queue, or `NOBODY`
    open: Flags  # nodes of no queue of a blocked job
    stopped: Flags  # queues


@kernel(allocates=False)
def forget_stops(stops: Stops) -> None:
    """Let no job be blocked."""
    stops.blocked[:] = NOBODY
    stops.open[:] = True
    stops.stopped[:] = False


@kernel(allocates=False)
def stop(stops: Stops, queue: int, job: int, shared: bool) -> None:
    """Let a blocked job stop its queue and others: with `shared`, all that share nodes with it.

    Otherwise, those of which all nodes are of queues of blocked jobs.
    """
    stops.blocked[queue] = job
    if shared:
        for other in range(len(stops.cells)):
            stops.stopped[other] |= stops.shares[queue, other]
        return
    for node in range(len(stops.open)):
        stops.open[node] &= not stops.cells[queue, node]
    for other in range(len(stops.cells)):
        is_stopped = True
        for node in range(len(stops.open)):
            is_stopped &= not (stops.cells[other, node] and stops.open[node])
        stops.stopped[other] = is_stopped


@kernel(allocates=False)
def enter(order: Numbers, count: int, key: Times, job: int) -> None:
    """Insert a job, the last by number, into jobs in order of a key."""
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if key[order[middle]] <= key[job]:
            low = middle + 1
        else:
            high = middle
    insert(order, count, low, job)


@kernel(allocates=False)
def keep_waiting(state: State, order: Numbers, count: int) -> int:
    """Remove the jobs that have started; return how many wait."""
    kept = 0
    for at in range(count):
        if np.isnan(state.start[order[at]]):
            order[kept] = order[at]
            kept += 1
    return kept


@kernel(allocates=False)
def begin(state: State, room: Room, running: Running, job: int, one: int, used: int) -> None:
    """Start a job on the first `used` nodes of the place that was found."""
    take(room.asked, room.free, one, room.place, 0, used)
    start(state, job)
    add(running, state.estimated_end[job], job, one, room.place, used)
    for entry in range(used):
        hold(state, job, room.place.node[entry])


@kernel(allocates=False)
def finish(state: State, room: Room, running: Running, shortages: Shortages, job: int) -> None:
    """End a job."""
    at = position(running.end, running.number[0], state.estimated_end[job])
    while running.job[at] != job:
        at += 1
    asked, free = room.asked, room.free
    ease(shortages, asked, free, running, at, -1)
    give(asked, free, running.alternative[at], running.held, running.begin[at], running.stop[at])
    ease(shortages, asked, free, running, at, 1)
    note_end(room, running, at)
    drop(running, at)


@kernel(allocates=False)
def replay(
    state: State,
    room: Room,
    running: Running,
    shortages: Shortages,
    stops: Stops,
    waiting: Waiting,
    backfills: bool,
) -> bool:
    """Process events; return whether these are all, see `process`."""
    tally, heads, candidates = state.tally, room.heads, waiting.candidates
    kept, last = False, 0.0
    while has_room(state):
        if not advance(state):
            return True
        now = state.now[0]
        for i in range(tally[ENDED]):
            finish(state, room, running, shortages, state.ended[i])
        kept = kept and tally[ENDED] == 0
        new = 0
        for job in range(tally[FIRST], tally[NEXT]):
            if candidates.requests[job] < 0:
                continue
            enter(waiting.order, waiting.number[0], waiting.rank, job)
            enter(waiting.behind, waiting.number[0], waiting.backfilling, job)
            waiting.number[0] += 1
            enter(waiting.new, new, waiting.rank, job)
            enter(candidates.job, new, waiting.backfilling, job)
            new += 1
            kept = kept and waiting.rank[job] > last
        if waiting.number[0] == 0 or room.free.total[0] == 0:
            kept = False
            continue
        starts = tally[STARTED]
        jobs, behind = waiting.new, candidates.job
        if not kept:
            forget_heads(heads)
            forget_stops(stops)
            last, new = -1.0, waiting.number[0]
            jobs, behind = waiting.order, waiting.behind
        for at in range(new):
            if stops.stopped.all():
                break
            job = jobs[at]
            queue, request = waiting.queue[job], candidates.requests[job]
            if stops.stopped[queue]:
                continue
            one, used = place_request(room, request, now + state.requested[job])
            if used > 0:
                begin(state, room, running, job, one, used)
                keep_no_others(heads)
                continue
            stop(stops, queue, job, backfills)
            last = max(last, waiting.rank[job])
            if backfills:
                reserve(room, running, request, state.requested[job], now)
        number = 0
        for at in range(new if backfills else 0):
            job = behind[at]
            if np.isnan(state.start[job]) and stops.blocked[waiting.queue[job]] != job:
                candidates.job[number] = job
                number += 1
        at = 0
        forget_failed(heads, candidates, number)
        while at < number:
            at, one, used = next_beside_heads(room, shortages, candidates, at, number, now)
            if used > 0:
                begin(state, room, running, candidates.job[at], one, used)
                at += 1
        kept = room.free.total[0] > 0
        if tally[STARTED] > starts:
            keep_waiting(state, waiting.behind, waiting.number[0])
            waiting.number[0] = keep_waiting(state, waiting.order, waiting.number[0])
    return False


def replay_on_site(
    state: State, site: OnSite, score: Times, *, backfills: bool, shortest_first: bool
) -> Runs:
    """Process all events; return the runs of nodes of the jobs, see `process`.

    Of a tier, the job of lowest score is first, and of equal ones the first submitted.
    """
    asked, free, requests, queues = site.asked, site.free, site.requests, site.queues
    jobs, nodes, cells = len(requests), len(free.jobs), queues.cells
    most = len(state.free_start)  # a job has a core at least on each of its nodes
    numbers, tier = np.arange(jobs), -queues.tier
    first = _rank(numbers, score, tier)
    backfilling = _rank(first, state.requested, tier) if shortest_first else first
    order, behind, new, candidates = np.zeros((4, jobs), dtype=np.int64)
    waiting = Waiting(
        *(first, backfilling, queues.of_job, order, behind, np.zeros(1, dtype=np.int64), new),
        candidates=Candidates(
            *(candidates, requests, state.requested),
            failed=np.zeros((len(cells) + 1, len(asked.first)), dtype=bool),
        ),
    )
    no_time, nowhere = np.zeros(0), np.zeros((0, nodes), dtype=bool)
    closed = Closed(no_time, no_time, nowhere, np.zeros(0, bool), np.ones(nodes, dtype=bool))
    room = new_room(asked, free, no_heads(asked, len(cells)), closed)
    blocked, stopped = np.zeros(len(cells), dtype=np.int64), np.zeros(len(cells), dtype=bool)
    stops = Stops(cells, cells @ cells.T, blocked, np.ones(nodes, dtype=bool), stopped)
    if not backfills:
        room = room._replace(allowed=stops.open)
    running = nothing_runs(len(state.due), most)
    tables = room, running, no_shortages(len(asked.chunks)), stops, waiting
    return process(state, lambda state: replay(state, *tables, backfills))


def _rank(*keys: Numbers | Times) -> Times:
    """Return the place of each job in the order of some keys, of which the last is the first."""
    order = np.lexsort(keys)
    rank = np.empty(len(order))
    rank[order] = np.arange(len(order), dtype=np.float64)
    return rank
