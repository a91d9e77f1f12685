"""Replay on a site of policies that order the queue by a fixed score, compiled.

As the policies do, with the kernels that they use: jobs start in order while they fit; then the
first that does not has a reservation, and the others are backfilled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optsched.by_reference import by_reference
from optsched.compiled import kernel
from optsched.machines._site_nodes import (
    Asked,
    Free,
    Numbers,
    OnSite,
    Place,
    first_possible,
    give,
    take,
)
from optsched.policies.parts._site_backfilling import (
    JOBS,
    USED,
    Reservation,
    Running,
    Shortages,
    add,
    doubt,
    drop,
    ease,
    forget,
    next_backfilled,
    no_reservation,
    no_shortages,
    nothing_runs,
    reserve,
    unlist,
)
from optsched.simulator._replay import (
    ENDED,
    FIRST,
    NEXT,
    STARTED,
    Runs,
    State,
    Times,
    advance,
    has_room,
    hold,
    insert,
    position,
    process,
    start,
)

NOBODY = -1

WAITING = 0
"""Entry of `Queue.tally`: number of waiting jobs."""


@by_reference
class Queue(NamedTuple):
    """The waiting jobs, and what a decision needs."""

    score: Times
    requests: Numbers
    order: Numbers  # the waiting jobs by score, then by number
    shortest: Numbers  # the same by requested time, if these are backfilled first
    candidates: Numbers
    failed: Numbers
    on_node: Numbers
    tally: Numbers


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
def compact(running: Running, held: Place, other: Place) -> None:
    """Close the gaps that ended jobs have left in the places of the running ones."""
    used = 0
    for at in range(running.tally[JOBS]):
        begin, stop = running.begin[at], running.stop[at]
        running.begin[at], running.stop[at] = used, used + stop - begin
        for entry in range(begin, stop):
            other.node[used], other.chunks[used] = held.node[entry], held.chunks[entry]
            used += 1
    for entry in range(used):
        held.node[entry], held.chunks[entry] = other.node[entry], other.chunks[entry]
    running.tally[USED] = used


@kernel(allocates=False)
def begin(
    state: State,
    asked: Asked,
    free: Free,
    running: Running,
    held: Place,
    other: Place,
    job: int,
    one: int,
    place: Place,
    used: int,
) -> None:
    """Start a job on the first `used` nodes of a place."""
    take(asked, free, one, place, 0, used)
    start(state, job)
    if not add(running, held, state.estimated_end[job], job, one, place, used):
        compact(running, held, other)
        add(running, held, state.estimated_end[job], job, one, place, used)
    for entry in range(used):
        hold(state, job, place.node[entry])


@kernel(allocates=False)
def finish(
    state: State,
    asked: Asked,
    free: Free,
    then: Free,
    shortages: Shortages,
    reservation: Reservation,
    running: Running,
    held: Place,
    job: int,
) -> None:
    """End a job."""
    at = position(running.end, running.tally[JOBS], state.estimated_end[job])
    while running.job[at] != job:
        at += 1
    first, stop = running.begin[at], running.stop[at]
    ease(shortages, asked, free, held, first, stop, -1)
    give(asked, free, running.alternative[at], held, first, stop)
    ease(shortages, asked, free, held, first, stop, 1)
    drop(running, held, reservation, asked, then, at)


@kernel(allocates=False)
def replay(
    state: State,
    asked: Asked,
    free: Free,
    then: Free,
    shortages: Shortages,
    reservation: Reservation,
    running: Running,
    held: Place,
    other: Place,
    queue: Queue,
    place: Place,
    backfills: bool,
    shortest_first: bool,
) -> bool:
    """Process events; return whether these are all, see `process`."""
    tally, waiting, candidates = state.tally, queue.tally, queue.candidates
    blocked, shadow = NOBODY, 0.0
    while has_room(state):
        if not advance(state):
            return True
        now = state.now[0]
        for i in range(tally[ENDED]):
            job = state.ended[i]
            finish(state, asked, free, then, shortages, reservation, running, held, job)
        if tally[ENDED]:
            blocked = NOBODY
        new = 0
        for job in range(tally[FIRST], tally[NEXT]):
            if queue.requests[job] < 0:
                continue
            enter(queue.order, waiting[WAITING], queue.score, job)
            if shortest_first:
                enter(queue.shortest, waiting[WAITING], state.requested, job)
            waiting[WAITING] += 1
            enter(candidates, new, state.requested if shortest_first else queue.score, job)
            new += 1
            if blocked != NOBODY and queue.score[job] < queue.score[blocked]:
                blocked = NOBODY
        if waiting[WAITING] == 0 or free.total[0] == 0:
            blocked = NOBODY
            continue
        starts = tally[STARTED]
        if blocked == NOBODY:
            for at in range(waiting[WAITING]):
                job = queue.order[at]
                one, used = first_possible(asked, free, queue.requests[job], place)
                if used == 0:
                    blocked = job
                    break
                begin(state, asked, free, running, held, other, job, one, place, used)
                unlist(shortages, one)
                forget(reservation)
            new = 0
            if backfills and blocked != NOBODY and free.total[0] > 0:
                request = queue.requests[blocked]
                shadow = reserve(asked, free, then, running, held, request, now, reservation)
                order = queue.shortest if shortest_first else queue.order
                for at in range(waiting[WAITING]):
                    job = order[at]
                    if job != blocked and np.isnan(state.start[job]):
                        candidates[new] = job
                        new += 1
        if backfills and new > 0:
            for at in range(new):
                request = queue.requests[candidates[at]]
                queue.failed[0, request] = queue.failed[1, request] = 0
            at = 0
            while at < new:
                at, one, used = next_backfilled(
                    asked,
                    free,
                    then,
                    shortages,
                    reservation,
                    candidates,
                    at,
                    new,
                    queue.requests,
                    state.requested,
                    shadow - now,
                    queue.failed,
                    queue.on_node,
                    place,
                )
                if used > 0:
                    job = candidates[at]
                    begin(state, asked, free, running, held, other, job, one, place, used)
                    late = state.requested[job] > shadow - now
                    doubt(reservation, state.estimated_end[job], late)
                    at += 1
        if tally[STARTED] > starts:
            count = waiting[WAITING]
            waiting[WAITING] = keep_waiting(state, queue.order, count)
            if shortest_first:
                keep_waiting(state, queue.shortest, count)
    return False


def replay_on_site(
    state: State, site: OnSite, score: Times, *, backfills: bool, shortest_first: bool
) -> Runs:
    """Process all events; return the runs of nodes of the jobs, see `process`.

    The job of lowest score is first, and of equal ones the first submitted.
    """
    asked, free, requests, *_ = site
    jobs, nodes = len(requests), len(free.jobs)
    then = Free(*(part.copy() for part in free))
    # a job has a core at least on each of its nodes
    most = len(state.free_start)
    running, held = nothing_runs(len(state.due), 2 * most)
    _, other = nothing_runs(1, most)
    order, shortest, candidates = np.zeros((3, jobs), dtype=np.int64)
    failed = np.zeros((2, len(asked.first)), dtype=np.int64)
    on_node, *place = np.zeros((3, nodes), dtype=np.int64)
    tally = np.zeros(1, dtype=np.int64)
    queue = Queue(score, requests, order, shortest, candidates, failed, on_node, tally)
    known = no_shortages(len(asked.chunks)), no_reservation(asked, nodes)
    tables = (asked, free, then, *known, running, held, other, queue, Place(*place))
    return process(state, lambda state: replay(state, *tables, backfills, shortest_first))
