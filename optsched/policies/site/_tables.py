"""Tables of a site, compiled: closed nodes, running jobs, shortages, turns and limits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optsched.arrays import Flags, Floats, Ints
from optsched.by_reference import by_reference
from optsched.compiled import kernel
from optsched.machines._ascending import enter
from optsched.machines._site_nodes import Asked, Free, Place, is_full, may_fit, most_on, room_for
from optsched.policies._running import leave
from optsched.simulator._core import NO_JOB, WAKE, News, tell, zeroed
from optsched.sites.requests import Queues


@by_reference
class Closed(NamedTuple):
    """When nodes are closed to jobs of none of the reservations, or to those of each.

    See `optsched.sites.requests.Windows`.
    """

    of_queue: Ints  # for each queue the number of its reservation, 0 for none
    first: Ints  # windows first[own] to before first[own + 1] count for the jobs of one
    start: Floats
    end: Floats
    of_starts: Flags
    closed: Flags  # shape (windows, nodes)
    edges: Floats  # finite starts and ends, ascending
    woken: Floats  # one entry: for which of these a decision was asked for
    holds: Flags  # which windows count for a job, for the search
    open: Flags  # nodes that are open to a job, for the search
    own: Ints  # one entry: for the jobs of which


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


@by_reference
class Running(NamedTuple):
    """The running jobs, in order of their estimated ends.

    The nodes of a job are the entries ``begin`` to before ``stop`` of `held`.
    """

    number: Ints  # one entry, as the next
    used: Ints  # entries of `held`
    jobs: Ints
    end: Floats  # of each of these, as the next three
    alternative: Ints
    begin: Ints
    stop: Ints
    held: Place
    other: Place  # for `compact`


@by_reference
class Shortages(NamedTuple):
    """Alternatives for which there is too little room on the nodes, as far as is known.

    A job of such an alternative is not tried again until enough room may have been freed.
    """

    room: Ints  # of each of them, at most so many chunks fit
    position: Ints  # of each alternative in `short`; -1 for those that are not in it
    short: Ints
    number: Ints  # one entry: of these


def no_shortages(alternatives: int) -> Shortages:
    """Return the shortages of an idle site."""
    position, number = np.full(alternatives, -1), np.zeros(1, dtype=np.int64)
    return zeroed(Shortages, alternatives, position=position, number=number)


@kernel(allocates=False)
def ease(
    shortages: Shortages, asked: Asked, free: Free, running: Running, job: int, sign: int
) -> None:
    """Count the room on the nodes of a running job that ends.

    It counts once its nodes are free (1). Room that was there before counts twice, unless it is
    discounted (-1) just before they become free.
    """
    begin, stop, held, most_cores = running.begin[job], running.stop[job], running.held, 0
    for entry in range(begin, stop):
        most_cores = max(most_cores, free.amount[held.node[entry], 0])
    for listed in range(shortages.number[0] - 1, -1, -1):
        one = shortages.short[listed]
        if asked.demand[one, 0] > most_cores:
            continue
        group, room = asked.nodes[one], 0
        for entry in range(begin, stop):
            node = held.node[entry]
            if not is_full(asked, free, one, node) and asked.belongs[group, node]:
                room += most_on(asked, free, one, node)
        shortages.room[one] += sign * room
        if shortages.room[one] >= asked.chunks[one]:
            shortages.number[0] -= 1
            last = shortages.short[shortages.number[0]]
            shortages.short[listed], shortages.position[last] = last, listed
            shortages.position[one] = -1


@kernel(allocates=False)
def are_listed(shortages: Shortages, asked: Asked, request: int) -> bool:
    """Return whether no alternative of a request fits, as far as is known."""
    for one in range(asked.first[request], asked.first[request + 1]):
        if shortages.position[one] < 0:
            return False
    return True


@kernel(allocates=False)
def is_short(shortages: Shortages, asked: Asked, free: Free, one: int) -> bool:
    """Return whether an alternative does not fit, at once if that is known; note a new shortage."""
    if shortages.position[one] >= 0:
        return True
    if not may_fit(asked, free, one):
        return True
    room = room_for(asked, free, one, asked.chunks[one])
    if room >= asked.chunks[one]:
        return False
    shortages.room[one] = room
    shortages.position[one] = shortages.number[0]
    shortages.short[shortages.number[0]] = one
    shortages.number[0] += 1
    return True


def nothing_runs(jobs: int, cores: int) -> Running:
    """Return tables for the jobs of a trace, which have a core at least on each of their nodes."""
    number, used = np.zeros((2, 1), dtype=np.int64)
    held, other = zeroed(Place, 2 * cores), zeroed(Place, cores)
    return zeroed(Running, jobs, number=number, used=used, held=held, other=other)


@kernel(allocates=False)
def compact(running: Running) -> None:
    """Close the gaps that ended jobs have left in the places of the running ones."""
    used, held, other = 0, running.held, running.other
    for at in range(running.number[0]):
        job = running.jobs[at]
        begin, stop = running.begin[job], running.stop[job]
        running.begin[job], running.stop[job] = used, used + stop - begin
        for entry in range(begin, stop):
            other.node[used], other.chunks[used] = held.node[entry], held.chunks[entry]
            used += 1
    for entry in range(used):
        held.node[entry], held.chunks[entry] = other.node[entry], other.chunks[entry]
    running.used[0] = used


@kernel(allocates=False)
def add(running: Running, end: float, job: int, alternative: int, place: Place, nodes: int) -> None:
    """Add a job that runs on the first `nodes` of a place."""
    held = running.held
    if running.used[0] + nodes > len(held.node):
        compact(running)
    used = running.used[0]
    running.end[job], running.alternative[job] = end, alternative
    running.begin[job], running.stop[job] = used, used + nodes
    enter(running.jobs, running.number[0], running.end, job)
    running.number[0] += 1
    for entry in range(nodes):
        held.node[used + entry] = place.node[entry]
        held.chunks[used + entry] = place.chunks[entry]
    running.used[0] += nodes


@kernel(allocates=False)
def put_off(running: Running, job: int, end: float) -> None:
    """Put off the estimated end of a job."""
    drop(running, job)
    running.end[job] = end
    enter(running.jobs, running.number[0], running.end, job)
    running.number[0] += 1


@kernel(allocates=False)
def drop(running: Running, job: int) -> None:
    """Remove a running job."""
    leave(running.jobs, running.number[0], running.end, job)
    running.number[0] -= 1


@kernel(allocates=False)
def copy(free: Free, to: Free) -> None:
    """Copy what is free."""
    for node in range(len(free.jobs)):
        to.jobs[node] = free.jobs[node]
        for resource in range(len(free.total)):
            to.amount[node, resource] = free.amount[node, resource]
    for resource in range(len(free.total)):
        to.total[resource] = free.total[resource]
    for licence in range(len(free.licences)):
        to.licences[licence] = free.licences[licence]


@by_reference
class Turns(NamedTuple):
    """How far ahead each job may reserve, and quotas of jobs that wait.

    A job is not examined where a quota of its own is used up, unless no job before it waits for
    nodes of its queue. Of the first kind of quota only reservations count: where it is used up, a
    job may start now.
    """

    ahead: Floats  # of each job: within how many seconds its reservation has to begin
    quota: Ints  # of each job and kind
    most: Ints  # of each quota
    left: Ints
    queue: Ints  # of each job
    shares: Flags  # shape (queues, queues): whether both have a node
    is_awaited: Flags  # of each queue: whether a job waits for nodes of it


@kernel(allocates=False)
def begin_turns(turns: Turns) -> None:
    """Forget the jobs whose turn has come."""
    for quota in range(len(turns.most)):
        turns.left[quota] = turns.most[quota]
    for queue in range(len(turns.is_awaited)):
        turns.is_awaited[queue] = False


@kernel(allocates=False)
def ahead_of(turns: Turns, job: int) -> float:
    """Return how far ahead a job may reserve: 0 for now alone, negative if it is not examined."""
    ahead = turns.ahead[job]
    for kind in range(turns.quota.shape[1]):
        if turns.left[turns.quota[job, kind]] <= 0:
            ahead = 0.0
            if kind > 0 and turns.is_awaited[turns.queue[job]]:
                return -1.0
    return float(ahead)


@kernel(allocates=False)
def note_wait(turns: Turns, job: int, ahead: float, is_reserved: bool) -> None:
    """Note that a job waits, which might reserve so far ahead, for those after it."""
    for kind in range(turns.quota.shape[1]):
        if ahead >= 0 and (kind > 0 or is_reserved):
            turns.left[turns.quota[job, kind]] -= 1
    for queue in range(len(turns.is_awaited)):
        if turns.ahead[job] > 0 and turns.shares[turns.queue[job], queue]:
            turns.is_awaited[queue] = True


def all_turns(cells: Flags, of_job: Ints) -> Turns:
    """Return turns without quotas; `cells` has a row for each queue, `of_job` that of each job."""
    none = np.zeros(0, dtype=np.int64)
    return Turns(
        np.full(len(of_job), np.inf),
        np.zeros((len(of_job), 0), dtype=np.int64),
        *(none, none.copy(), of_job, cells @ cells.T, np.zeros(len(cells), dtype=bool)),
    )


@by_reference
class Limited(NamedTuple):
    """How much jobs take of limits, and how much these have left."""

    first: Ints  # entries first[job] to before first[job + 1] are those of a job
    limit: Ints
    amount: Ints
    binds: Flags  # whether the job has to keep the limit; otherwise it only counts
    left: Ints  # of each limit, negative where more is in use than allowed


@kernel(allocates=False)
def give_back(limited: Limited, jobs: Ints, number: int) -> None:
    """Give back what the first `number` jobs have taken, which have ended."""
    for at in range(number):
        for entry in range(limited.first[jobs[at]], limited.first[jobs[at] + 1]):
            limited.left[limited.limit[entry]] += limited.amount[entry]


@kernel(allocates=False)
def admit(limited: Limited, jobs: Ints, number: int) -> int:
    """Move those of the first `number` jobs to the front that limits admit; return how many."""
    admitted = 0
    for at in range(number):
        job, fits = jobs[at], True
        for entry in range(limited.first[job], limited.first[job + 1]):
            if limited.binds[entry] and limited.amount[entry] > limited.left[limited.limit[entry]]:
                fits = False
        if not fits:
            continue
        for entry in range(limited.first[job], limited.first[job + 1]):
            limited.left[limited.limit[entry]] -= limited.amount[entry]
        for place in range(at, admitted, -1):
            jobs[place] = jobs[place - 1]
        jobs[admitted] = job
        admitted += 1
    return admitted
