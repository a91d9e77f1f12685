"""EASY backfilling on the nodes of a site, compiled.

Of a blocked job, the chunks that fit at the shadow time are counted, node by node: chunks of one
job are alike, so the job fits exactly if these are enough. The *slack* is what is over. A job that
runs beyond the shadow time may start as long as its nodes cost no more chunks than the slack.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.by_reference import by_reference
from optsched.compiled import kernel
from optsched.machines._site_nodes import (
    NOWHERE,
    Asked,
    Free,
    Numbers,
    Place,
    first_fit,
    first_possible,
    give,
    is_full,
    may_fit,
    most_on,
    room_for,
    take,
)
from optsched.policies.parts._profile import position

Times = NDArray[np.float64]

JOBS, USED = range(2)
"""Entries of `Running.tally`: running jobs, and entries of their places in use."""

RESERVED, SLACK, OPEN = range(3)
"""Entries of `Reservation.tally`: alternative of the reserved job, or `NOWHERE` without one; chunks
of it that are over; number of open nodes, or `UNKNOWN`."""

UNKNOWN = -1

ALL = 2**62
"""More chunks than fit on any site."""


@by_reference
class Running(NamedTuple):
    """The running jobs, in order of their estimated ends.

    Entries ``begin`` to before ``stop`` of a `Place` of all running jobs are the nodes of a job.
    """

    end: Times
    job: Numbers
    alternative: Numbers
    begin: Numbers
    stop: Numbers
    tally: Numbers


@by_reference
class Shortages(NamedTuple):
    """Alternatives for which there is too little room on the nodes, as far as is known.

    A job of such an alternative is not tried again until enough room may have been freed.
    """

    room: Numbers  # of each of them, at most so many chunks fit
    position: Numbers  # of each alternative in `short`; -1 for those that are not in it
    short: Numbers
    tally: Numbers  # one entry: number of these


@by_reference
class Reservation(NamedTuple):
    """The reservation of the blocked job.

    What is free at the shadow time is what is free now and what the jobs hold whose estimated ends
    are not after it. This is kept up to date as jobs end and are backfilled, so that a job that
    remains blocked needs no search from now on.

    A node is *open* if a job that runs beyond the shadow time may perhaps have a chunk on it. No
    node becomes open until a job ends.
    """

    tally: Numbers
    shadow: Times  # one entry
    open: Numbers  # ascending nodes
    least: Numbers  # the least of each resource that any chunk needs


def no_reservation(asked: Asked, nodes: int) -> Reservation:
    """Return a reservation that is to be set, on a site of a number of nodes."""
    least = asked.demand.min(axis=0) if len(asked.demand) else asked.demand.sum(axis=0)
    tally = np.array([NOWHERE, 0, UNKNOWN])
    return Reservation(tally, np.zeros(1), np.zeros(nodes, dtype=np.int64), least)


def no_shortages(alternatives: int) -> Shortages:
    """Return the shortages of an idle site."""
    room, position, short = np.zeros((3, alternatives), dtype=np.int64)
    position[:] = -1
    return Shortages(room, position, short, np.zeros(1, dtype=np.int64))


@kernel(allocates=False)
def ease(
    shortages: Shortages, asked: Asked, free: Free, held: Place, begin: int, stop: int, sign: int
) -> None:
    """Count the room on nodes of a job that ends, the entries `begin` to before `stop`.

    It counts once its nodes are free (1). Room that was there before counts twice, unless it is
    discounted (-1) just before they become free.
    """
    most_cores = 0
    for entry in range(begin, stop):
        most_cores = max(most_cores, free.amount[held.node[entry], 0])
    for at in range(shortages.tally[0]):
        one = shortages.short[at]
        if asked.demand[one, 0] > most_cores or shortages.room[one] >= asked.chunks[one]:
            continue
        group, room = asked.nodes[one], 0
        for entry in range(begin, stop):
            node = held.node[entry]
            if not is_full(asked, free, one, node) and asked.belongs[group, node]:
                room += most_on(asked, free, one, node)
        shortages.room[one] += sign * room


@kernel(allocates=False)
def unlist(shortages: Shortages, one: int) -> None:
    """Forget the shortage of an alternative, if there is one."""
    position = shortages.position[one]
    if position >= 0:
        shortages.tally[0] -= 1
        last = shortages.short[shortages.tally[0]]
        shortages.short[position], shortages.position[last] = last, position
        shortages.position[one] = -1


@kernel(allocates=False)
def is_short(shortages: Shortages, asked: Asked, free: Free, one: int) -> bool:
    """Return whether an alternative does not fit, at once if that is known; note a new shortage."""
    position = shortages.position[one]
    if position >= 0 and shortages.room[one] < asked.chunks[one]:
        return True
    if not may_fit(asked, free, one):
        return True
    room = room_for(asked, free, one, asked.chunks[one])
    shortages.room[one] = room
    if room < asked.chunks[one]:
        if position < 0:
            shortages.position[one] = shortages.tally[0]
            shortages.short[shortages.tally[0]] = one
            shortages.tally[0] += 1
        return True
    unlist(shortages, one)
    return False


def nothing_runs(jobs: int = 64, nodes: int = 1024) -> tuple[Running, Place]:
    """Return tables for that many running jobs and nodes of them."""
    job, alternative, begin, stop = np.zeros((4, jobs), dtype=np.int64)
    tally = np.zeros(2, dtype=np.int64)
    running = Running(np.zeros(jobs), job, alternative, begin, stop, tally)
    return running, Place(*np.zeros((2, nodes), dtype=np.int64))


def with_room(running: Running, held: Place, nodes: int) -> tuple[Running, Place]:
    """Return the same running jobs in tables with room for one more of a number of nodes."""
    jobs = int(running.tally[JOBS])
    wanted = int((running.stop - running.begin)[:jobs].sum()) + nodes
    larger, place = nothing_runs(2 * (jobs + 1), 2 * wanted)
    for at in range(jobs):
        old = slice(running.begin[at], running.stop[at])
        one = Place(held.node[old], held.chunks[old])
        entry = running.end[at], running.job[at], running.alternative[at]
        add(larger, place, *entry, one, len(one.node))
    return larger, place


@kernel(allocates=False)
def add(
    running: Running,
    held: Place,
    end: float,
    job: int,
    alternative: int,
    place: Place,
    nodes: int,
) -> bool:
    """Add a job that runs on the first `nodes` of a place; return whether there was room."""
    jobs, used = running.tally[JOBS], running.tally[USED]
    if jobs == len(running.end) or used + nodes > len(held.node):
        return False
    at = position(running.end, jobs, end) + 1
    for entry in range(jobs, at, -1):
        move(running, entry - 1, entry)
    running.end[at], running.job[at], running.alternative[at] = end, job, alternative
    running.begin[at], running.stop[at] = used, used + nodes
    for entry in range(nodes):
        held.node[used + entry] = place.node[entry]
        held.chunks[used + entry] = place.chunks[entry]
    running.tally[JOBS] += 1
    running.tally[USED] += nodes
    return True


@kernel(allocates=False)
def move(running: Running, source: int, target: int) -> None:
    """Move an entry of the running jobs."""
    running.end[target] = running.end[source]
    running.job[target] = running.job[source]
    running.alternative[target] = running.alternative[source]
    running.begin[target] = running.begin[source]
    running.stop[target] = running.stop[source]


@kernel(allocates=False)
def remove(
    running: Running,
    held: Place,
    shortages: Shortages,
    reservation: Reservation,
    asked: Asked,
    free: Free,
    then: Free,
    job: int,
) -> None:
    """Remove a job that has ended, if it is among the running ones, and ease shortages."""
    at = 0
    while at < running.tally[JOBS] and running.job[at] != job:
        at += 1
    if at < running.tally[JOBS]:
        ease(shortages, asked, free, held, running.begin[at], running.stop[at], 1)
        drop(running, held, reservation, asked, then, at)


@kernel(allocates=False)
def drop(
    running: Running, held: Place, reservation: Reservation, asked: Asked, then: Free, at: int
) -> None:
    """Remove an entry of the running jobs; at the shadow time, what it held is free now."""
    tally = reservation.tally
    if tally[RESERVED] != NOWHERE and running.end[at] > reservation.shadow[0]:
        tally[SLACK] += gain(asked, then, running, held, at, tally[RESERVED], 1)
    tally[OPEN] = UNKNOWN
    for entry in range(at, running.tally[JOBS] - 1):
        move(running, entry + 1, entry)
    running.tally[JOBS] -= 1


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


@kernel(allocates=False)
def reserve(
    asked: Asked,
    free: Free,
    then: Free,
    running: Running,
    held: Place,
    request: int,
    now: float,
    reservation: Reservation,
) -> float:
    """Return the shadow time of a blocked job; set what is free then, and the reservation.

    The job takes the alternative that is possible first.
    """
    first, stop = asked.first[request], asked.first[request + 1]
    if stop == first + 1 and reservation.tally[RESERVED] == first and reservation.shadow[0] >= now:
        advance(asked, then, running, held, now, reservation)
        return float(reservation.shadow[0])
    shadow, chosen = np.inf, first
    for one in range(first, stop):
        at = release(asked, free, then, running, held, one, now, reservation)
        if at < shadow:
            shadow, chosen = at, one
    if chosen != stop - 1:
        release(asked, free, then, running, held, chosen, now, reservation)
    reservation.tally[RESERVED], reservation.tally[OPEN] = chosen, UNKNOWN
    reservation.shadow[0] = shadow
    return shadow


@kernel(allocates=False)
def forget(reservation: Reservation) -> None:
    """Forget the reservation, as a job starts that is not backfilled."""
    reservation.tally[RESERVED] = NOWHERE


@kernel(allocates=False)
def doubt(reservation: Reservation, end: float, late: bool) -> None:
    """Forget the reservation if the estimated end of a backfilled job belies what was assumed.

    A start can be delayed, and a sum of times is rounded.
    """
    if (end > reservation.shadow[0]) != late:
        forget(reservation)


@kernel(allocates=False)
def gain(
    asked: Asked, then: Free, running: Running, held: Place, at: int, one: int, sign: int
) -> int:
    """Release a running job (1), or undo that (-1); return by how much the room for `one` grows."""
    group, room = asked.nodes[one], 0
    begin, end = running.begin[at], running.stop[at]
    for entry in range(begin, end):
        if asked.belongs[group, held.node[entry]]:
            room -= most_on(asked, then, one, held.node[entry])
    if sign > 0:
        give(asked, then, running.alternative[at], held, begin, end)
    else:
        take(asked, then, running.alternative[at], held, begin, end)
    for entry in range(begin, end):
        if asked.belongs[group, held.node[entry]]:
            room += most_on(asked, then, one, held.node[entry])
    return room


@kernel(allocates=False)
def advance(
    asked: Asked, then: Free, running: Running, held: Place, now: float, reservation: Reservation
) -> None:
    """Move the shadow time to the first release at which the reserved job fits.

    That is not after the present one, and all releases until then count already.
    """
    one = reservation.tally[RESERVED]
    room = reservation.tally[SLACK] + asked.chunks[one]
    stop = position(running.end, running.tally[JOBS], reservation.shadow[0]) + 1
    reservation.shadow[0] = now
    while stop > 0 and running.end[stop - 1] > now:
        end, at = running.end[stop - 1], stop
        while at > 0 and running.end[at - 1] == end:
            at -= 1
            room += gain(asked, then, running, held, at, one, -1)
        if room < asked.chunks[one] or not may_fit(asked, then, one):
            for again in range(at, stop):
                room += gain(asked, then, running, held, again, one, 1)
            reservation.shadow[0] = end
            break
        stop = at
    reservation.tally[SLACK] = room - asked.chunks[one]


@kernel(allocates=False)
def note_open(asked: Asked, free: Free, then: Free, reservation: Reservation) -> None:
    """Note which nodes are open."""
    head, found = reservation.tally[RESERVED], 0
    for node in range(len(free.jobs)):
        kept = 0  # chunks of the reserved job that no slack makes up for
        if asked.belongs[asked.nodes[head], node]:
            kept = max(0, most_on(asked, then, head, node) - reservation.tally[SLACK])
        is_open = free.jobs[node] >= 0 and not (kept > 0 and asked.exclusive[head])
        for resource in range(len(free.total)):
            least = reservation.least[resource]
            left = then.amount[node, resource] - kept * asked.demand[head, resource]
            if free.amount[node, resource] < least or (kept > 0 and left < least):
                is_open = False
        if is_open:
            reservation.open[found] = node
            found += 1
    reservation.tally[OPEN] = found


@kernel(allocates=False)
def release(
    asked: Asked,
    free: Free,
    then: Free,
    running: Running,
    held: Place,
    one: int,
    now: float,
    reservation: Reservation,
) -> float:
    """Release running jobs until an alternative fits; return when, and set the slack.

    All releases of one instant count together. A job whose estimated end has come counts as
    released, even if its end event of this instant is still to follow.
    """
    copy(free, then)
    room = room_for(asked, then, one, ALL)
    at, shadow = 0, now
    while at < running.tally[JOBS]:
        fits = room >= asked.chunks[one] and may_fit(asked, then, one)
        if fits and running.end[at] > shadow and running.end[at] > now:
            break
        if not fits:
            shadow = running.end[at]
        room += gain(asked, then, running, held, at, one, 1)
        at += 1
    reservation.tally[SLACK] = room - asked.chunks[one]
    return max(shadow, now)


@kernel(allocates=False)
def next_backfilled(
    asked: Asked,
    free: Free,
    then: Free,
    shortages: Shortages,
    reservation: Reservation,
    candidates: Numbers,
    first: int,
    stop: int,
    requests: Numbers,
    requested: Times,
    longest: float,
    failed: Numbers,
    on_node: Numbers,
    place: Place,
) -> tuple[int, int, int]:
    """Place the next of the candidates from `first` to before `stop` that may be backfilled.

    Requests that do not fit are noted in `failed`, shape (2, requests): 1 if jobs that end by the
    shadow time do not either, for jobs that end later. They do not fit later in the decision.

    Returns the number of the candidate, its alternative or `NOWHERE`, and the number of nodes.
    """
    for at in range(first, stop):
        if free.total[0] == 0:
            break
        job = candidates[at]
        request = requests[job]
        late = 1 if requested[job] > longest else 0
        if failed[0, request] or failed[late, request]:
            continue
        for one in range(asked.first[request], asked.first[request + 1]):
            if is_short(shortages, asked, free, one):
                continue
            if late:
                used = place_beside(asked, free, then, one, reservation, on_node, place)
            else:
                used = first_fit(asked, free, one, place)
            if used > 0:
                return at, one, used
        failed[late, request] = 1
    return stop, NOWHERE, 0


@kernel(allocates=False)
def place_beside(
    asked: Asked,
    free: Free,
    then: Free,
    one: int,
    reservation: Reservation,
    on_node: Numbers,
    place: Place,
) -> int:
    """Place an alternative that fits now and runs beyond the shadow time.

    Returns the number of nodes, 0 if that would delay the reserved job. First on amounts that cost
    the reserved job nothing, then within its slack. What the job takes is taken from what is free
    at the shadow time, and its cost from the slack.
    """
    head, slack = reservation.tally[RESERVED], reservation.tally[SLACK]
    if not licensed_beside(asked, then, one, head):
        return 0
    group, missing = asked.nodes[one], asked.chunks[one]
    if reservation.tally[OPEN] == UNKNOWN:
        note_open(asked, free, then, reservation)
    nodes = reservation.tally[OPEN]
    for entry in range(nodes):
        on_node[reservation.open[entry]] = 0
    for within_slack in range(2):
        if within_slack and slack == 0:
            break
        for entry in range(nodes):
            node = reservation.open[entry]
            if is_full(asked, free, one, node) or not asked.belongs[group, node]:
                continue
            most = most_on(asked, free, one, node)
            if most <= on_node[node]:
                continue
            most = min(most, on_node[node] + missing)
            most = min(most, most_beside(asked, then, one, head, node, within_slack * slack))
            if most > on_node[node]:
                if within_slack:
                    slack -= cost(asked, then, one, head, node, most)
                missing -= most - on_node[node]
                on_node[node] = most
            if missing == 0:
                break
        if missing == 0:
            break
    if missing > 0:
        return 0
    used = 0
    for entry in range(nodes):
        node = reservation.open[entry]
        if on_node[node] > 0:
            place.node[used], place.chunks[used] = node, on_node[node]
            used += 1
    take(asked, then, one, place, 0, used)
    reservation.tally[SLACK] = slack
    return used


@kernel(allocates=False)
def spare(asked: Asked, then: Free, one: int, reservation: Reservation, place: Place) -> bool:
    """Return whether the reserved job can do without a place; if so, it is taken for good."""
    head, slack = reservation.tally[RESERVED], reservation.tally[SLACK]
    if not licensed_beside(asked, then, one, head):
        return False
    for entry in range(len(place.node)):
        slack -= cost(asked, then, one, head, place.node[entry], place.chunks[entry])
    if slack < 0:
        return False
    take(asked, then, one, place, 0, len(place.node))
    reservation.tally[SLACK] = slack
    return True


@kernel(allocates=False)
def licensed_beside(asked: Asked, then: Free, one: int, head: int) -> bool:
    """Return whether a job takes no licences that `head` needs at the shadow time."""
    for licence in range(len(then.licences)):
        both = asked.licences[one, licence] + asked.licences[head, licence]
        if asked.licences[one, licence] > 0 and both > then.licences[licence]:
            return False
    return True


@kernel(allocates=False)
def most_beside(asked: Asked, then: Free, one: int, head: int, node: int, slack: int) -> int:
    """Return the most chunks of a job on a node at a cost of at most `slack` chunks of `head`.

    It may be more than the node holds.
    """
    most = asked.chunks[one]
    if not asked.belongs[asked.nodes[head], node]:
        return int(most)
    keeps = most_on(asked, then, head, node) - slack
    if keeps <= 0:
        return int(most)
    if asked.exclusive[one] or asked.exclusive[head]:
        return 0
    for resource in range(len(then.total)):
        needs = asked.demand[one, resource]
        left = then.amount[node, resource] - keeps * asked.demand[head, resource]
        if most * needs > left:
            most = left // needs
    return int(most)


@kernel(allocates=False)
def cost(asked: Asked, then: Free, one: int, head: int, node: int, chunks: int) -> int:
    """Return how many chunks of `head` less a node has room for beside chunks of a job."""
    if not asked.belongs[asked.nodes[head], node]:
        return 0
    before = most_on(asked, then, head, node)
    if asked.exclusive[one] or asked.exclusive[head]:
        return before
    most = before
    for resource in range(len(then.total)):
        left = then.amount[node, resource] - chunks * asked.demand[one, resource]
        if most * asked.demand[head, resource] > left:
            most = left // asked.demand[head, resource]
    return before - most


@kernel(allocates=False)
def survey(
    asked: Asked, free: Free, left: Free, requests: Numbers, chosen: Numbers, place: Place
) -> int:
    """Choose an alternative for each job, the first one that fits now; else `NOWHERE`.

    Returns how many of the first jobs fit together, one placed after the other. They have the
    alternatives that they get there. `left` is for the search.
    """
    copy(free, left)
    together = 0
    for at in range(len(requests)):
        if together == at:
            one, used = first_possible(asked, left, requests[at], place)
            if used > 0:
                take(asked, left, one, place, 0, used)
                chosen[at] = one
                together += 1
                continue
        chosen[at], _ = first_possible(asked, free, requests[at], place)
    return together
