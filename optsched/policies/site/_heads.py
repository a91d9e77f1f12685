"""Shadow times of the blocked jobs of a site, and places beside their reservations, compiled.

The blocked jobs, or *heads*, one for each queue at most, want different nodes: a node has one of
them at most as its *owner*. What is free on a node at the shadow time of its owner is kept in one
table for all heads. A site with reservations has such a table for the jobs of each and one for all
other jobs, as two heads can want a node at different times then.

Of a head, the chunks that fit at its shadow time are counted, node by node: chunks of one job are
alike, so the head fits exactly if these are enough. Its *slack* is the rest. A job that runs
beyond the shadow time may start as long as its nodes cost the head no more chunks than the slack.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optsched.arrays import Flags, Floats, Ints
from optsched.by_reference import by_reference
from optsched.compiled import kernel
from optsched.machines._ascending import place_for
from optsched.machines._site_nodes import (
    NOWHERE,
    Asked,
    Free,
    Place,
    change,
    first_fit,
    hold,
    is_full,
    may_fit,
    most_on,
)
from optsched.policies.site._tables import (
    Closed,
    Running,
    Shortages,
    are_listed,
    copy,
    is_short,
    note_closed,
)
from optsched.simulator._core import zeroed

NO_HEAD = -1


@by_reference
class Heads(NamedTuple):
    """The blocked jobs that have reservations.

    What is free at the shadow time of a head is what is free now and what the jobs hold whose
    estimated ends are not after it. This can be kept up to date as jobs end and are backfilled, so
    that a job that remains a head needs no search from now on. Until it is a head again in the next
    decision, it counts for no other job.
    """

    number: Ints  # one entry, as the next
    kept: Ints  # how many of this decision and the last are up to date, with the present ones
    job: Ints
    # Earliest shadow time since it is a head and no job has come first; infinite where an earlier
    # head asks for the same licence
    promised: Floats
    before: Ints  # heads of the last decision to which a promise was made
    promised_before: Floats
    promises: Ints  # one entry: how many of these
    alternative: Ints
    own: Ints  # number of its reservation, 0 for none
    shadow: Floats
    slack: Ints  # chunks of each head that are over
    left: Ints  # the same, for the search
    licences: Ints  # shape (heads, licences), free at the shadow time of each


@by_reference
class Room(NamedTuple):
    """Room for jobs now, and at the shadow times of heads."""

    asked: Asked
    free: Free
    then: Free  # what is free on each node at the shadow time of its owner, see `owner`
    owner: Ints  # the head of each node, or another number; entry own * nodes + node
    chunks: Ints  # of the owner, which fit there at its shadow time
    heads: Heads
    closed: Closed
    allowed: Flags  # nodes on which the next job may start
    place: Place  # the place that was found
    at_shadow: Free  # for the search


@by_reference
class Candidates(NamedTuple):
    """Jobs to backfill, in order."""

    job: Ints
    requests: Ints  # of each job of the trace
    requested: Floats  # of each job of the trace
    own: Ints  # of each job of the trace: the number of its reservation, 0 for none
    failed: Ints  # shape (reservations and none, heads and edges and 1, requests): when last
    decision: Ints  # one entry: the number of the present one, from 1


def new_room(asked: Asked, free: Free, queues: int, closed: Closed) -> Room:
    """Return the room of a site of which no node has an owner, with tables for so many heads."""
    nodes, kinds = len(free.jobs), len(closed.first) - 1
    at_shadow = Free(*(part.copy() for part in free))
    amount, jobs = np.tile(free.amount, (kinds, 1)), np.zeros(kinds * nodes, dtype=np.int64)
    number, kept, promises = np.zeros((3, 1), dtype=np.int64)
    licences = np.zeros((queues, asked.licences.shape[1]), dtype=np.int64)
    entries = {"number": number, "kept": kept, "promises": promises, "licences": licences}
    return Room(
        asked,
        free,
        then=Free(amount, jobs, free.licences, free.total),
        owner=np.full(kinds * nodes, NO_HEAD),
        chunks=np.zeros(kinds * nodes, dtype=np.int64),
        heads=zeroed(Heads, queues, **entries),
        closed=closed,
        allowed=np.ones(nodes, dtype=bool),
        place=zeroed(Place, nodes),
        at_shadow=at_shadow,
    )


@kernel(allocates=False)
def forget_heads(room: Room) -> None:
    """Let there be no heads; the last ones can be kept unless nodes are closed at times."""
    heads = room.heads
    for head in range(heads.number[0]):
        heads.before[head], heads.promised_before[head] = heads.job[head], heads.promised[head]
    heads.promises[0] = heads.number[0]
    heads.number[0] = 0
    if len(room.closed.start) > 0:
        heads.kept[0] = 0


@kernel(allocates=False)
def start_before(heads: Heads) -> None:
    """Let no other head than the present ones be kept: a job starts that they do not count."""
    heads.kept[0] = heads.number[0]
    heads.promises[0] = 0


@kernel(allocates=False)
def count_late(heads: Heads, end: float) -> int:
    """Return for how many heads a job that runs until `end` is late: beyond the shadow time."""
    late = 0
    for head in range(heads.number[0]):
        if end > heads.shadow[head]:
            late += 1
    return late


@kernel(allocates=False)
def note_allowed(room: Room, own: int, now: float, end: float) -> None:
    """Allow the nodes that are open from now to before a time, where some are closed at times."""
    if len(room.closed.start) > 0:
        note_closed(room.closed, own, now, end)
        for node in range(len(room.allowed)):
            room.allowed[node] = room.closed.open[node]


@kernel(allocates=False)
def room_on_open(asked: Asked, free: Free, one: int, open_nodes: Flags) -> int:
    """Return how many chunks of an alternative fit on the open nodes."""
    room, group = 0, asked.nodes[one]
    for member in range(asked.first_member[group], asked.first_member[group + 1]):
        if open_nodes[asked.member[member]]:
            room += most_on(asked, free, one, asked.member[member])
    return room


@kernel(allocates=False)
def shadow_of(
    room: Room, running: Running, one: int, own: int, duration: float, now: float
) -> tuple[float, int]:
    """Return when an alternative fits, or infinity, and chunks that are over; fill `at_shadow`."""
    asked, then, held, closed = room.asked, room.at_shadow, running.held, room.closed
    copy(room.free, then)
    note_closed(closed, own, now, now + duration)
    chunks = room_on_open(asked, then, one, closed.open)
    at, time, group = 0, now, asked.nodes[one]
    while True:
        while at < running.number[0] and running.end[running.jobs[at]] <= time:
            job = running.jobs[at]
            begin, stop = running.begin[job], running.stop[job]
            for entry in range(begin, stop):
                node = held.node[entry]
                if closed.open[node] and asked.belongs[group, node]:
                    chunks -= most_on(asked, then, one, node)
            hold(asked, then, running.alternative[job], held, begin, stop, 1)
            for entry in range(begin, stop):
                node = held.node[entry]
                if closed.open[node] and asked.belongs[group, node]:
                    chunks += most_on(asked, then, one, node)
            at += 1
        if chunks >= asked.chunks[one] and may_fit(asked, then, one):
            return time, chunks - asked.chunks[one]
        following = running.end[running.jobs[at]] if at < running.number[0] else np.inf
        for window in range(closed.first[own], closed.first[own + 1]):
            if closed.end[window] > time:
                following = min(following, closed.end[window])
        if following == np.inf:
            return np.inf, 0
        time = following
        if note_closed(closed, own, time, time + duration):
            chunks = room_on_open(asked, then, one, closed.open)


@kernel(allocates=False)
def count_as_ended(room: Room, head: int, running: Running, job: int, sign: int) -> None:
    """Count a running job as ended at the shadow time of a head (1), or undo that (-1)."""
    asked, then, heads, held = room.asked, room.then, room.heads, running.held
    reserved, one = heads.alternative[head], running.alternative[job]
    for entry in range(running.begin[job], running.stop[job]):
        node = heads.own[head] * len(room.free.jobs) + held.node[entry]
        if room.owner[node] != head:
            continue
        change(asked, then, one, node, held.chunks[entry], sign)
        chunks = most_on(asked, then, reserved, node)
        heads.slack[head] += chunks - room.chunks[node]
        room.chunks[node] = chunks
    for licence in range(heads.licences.shape[1]):
        heads.licences[head, licence] += sign * asked.licences[one, licence]


@kernel(allocates=False)
def note_end(room: Room, running: Running, job: int) -> None:
    """Keep heads up to date as a job ends: what it held is free now, and at all shadow times."""
    for head in range(room.heads.kept[0]):
        if running.end[job] > room.heads.shadow[head]:
            count_as_ended(room, head, running, job, 1)


@kernel(allocates=False)
def advance_head(room: Room, head: int, running: Running, now: float) -> None:
    """Move the shadow time of a head to the first release at which it fits.

    That is not after the present one, and all releases until then count already. Totals need no
    look: there is room on nodes.
    """
    asked, heads, jobs, ends = room.asked, room.heads, running.jobs, running.end
    stop = place_for(jobs, 0, running.number[0], ends, heads.shadow[head], len(ends))
    heads.shadow[head] = now
    while stop > 0 and ends[jobs[stop - 1]] > now:
        end, at = ends[jobs[stop - 1]], stop
        while at > 0 and ends[jobs[at - 1]] == end:
            at -= 1
            count_as_ended(room, head, running, jobs[at], -1)
        fits = heads.slack[head] >= 0
        for licence in range(heads.licences.shape[1]):
            if asked.licences[heads.alternative[head], licence] > heads.licences[head, licence]:
                fits = False
        if not fits:
            for again in range(at, stop):
                count_as_ended(room, head, running, jobs[again], 1)
            heads.shadow[head] = end
            break
        stop = at


@kernel(allocates=False)
def add_head(room: Room, one: int, own: int, shadow: float, slack: int) -> None:
    """Add a head; it owns the nodes that it may use and that are open to it at its shadow time."""
    asked, then, at_shadow, heads = room.asked, room.then, room.at_shadow, room.heads
    head, owner = heads.number[0], room.owner
    heads.number[0] = heads.kept[0] = head + 1
    heads.own[head] = own
    heads.alternative[head], heads.shadow[head], heads.slack[head] = one, shadow, slack
    for licence in range(len(at_shadow.licences)):
        heads.licences[head, licence] = at_shadow.licences[licence]
    for there in range(len(owner)):
        if owner[there] >= head:  # of a head that is not kept
            owner[there] = NO_HEAD
    group = asked.nodes[one]
    for member in range(asked.first_member[group], asked.first_member[group + 1]):
        node = asked.member[member]
        if room.closed.open[node]:
            there = own * len(at_shadow.jobs) + node
            owner[there] = head
            then.jobs[there] = at_shadow.jobs[node]
            for resource in range(then.amount.shape[1]):
                then.amount[there, resource] = at_shadow.amount[node, resource]
            room.chunks[there] = most_on(asked, then, one, there)


@kernel(allocates=False)
def is_late(heads: Heads, head: int, end: float) -> bool:
    """Return whether a job that runs until `end` is late for the owner of a node."""
    return bool(0 <= head < heads.number[0] and end > heads.shadow[head])


@kernel(allocates=False)
def licensed_beside_heads(asked: Asked, heads: Heads, one: int, end: float) -> bool:
    """Return whether a job takes no licences that a head needs; prepare what is left of slacks."""
    for head in range(heads.number[0]):
        heads.left[head] = heads.slack[head]
        if end > heads.shadow[head]:
            for licence in range(heads.licences.shape[1]):
                needs = asked.licences[one, licence]
                both = needs + asked.licences[heads.alternative[head], licence]
                if needs > 0 and both > heads.licences[head, licence]:
                    return False
    return True


@kernel(allocates=False)
def spare_for_heads(room: Room, one: int, own: int, end: float, place: Place) -> bool:
    """Return whether all heads can do without a place until `end`; if so, it is taken for good."""
    asked, heads = room.asked, room.heads
    if not licensed_beside_heads(asked, heads, one, end):
        return False
    for entry in range(len(place.node)):
        node, base = place.node[entry], own * len(room.free.jobs)
        head = room.owner[base + node]
        if is_late(heads, head, end):
            heads.left[head] -= cost(room, one, head, base + node, place.chunks[entry])
            if heads.left[head] < 0:
                return False
    take_beside(room, one, own, end, place, len(place.node))
    return True


@kernel(allocates=False)
def most_beside(room: Room, one: int, head: int, there: int, slack: int) -> int:
    """Return how many chunks of a job, on a node of a head, cost the head at most its slack."""
    asked, then, most = room.asked, room.then, room.asked.chunks[one]
    reserved, keeps = room.heads.alternative[head], room.chunks[there] - slack
    if keeps <= 0:
        return int(most)
    if asked.exclusive[one] or asked.exclusive[reserved]:
        return 0
    for resource in range(then.amount.shape[1]):
        needs = asked.demand[one, resource]
        left = then.amount[there, resource] - keeps * asked.demand[reserved, resource]
        if most * needs > left:
            most = left // needs
    return int(most)


@kernel(allocates=False)
def cost(room: Room, one: int, head: int, there: int, chunks: int) -> int:
    """Return how many chunks of its head less a node has room for beside chunks of a job."""
    asked, then, before = room.asked, room.then, room.chunks[there]
    reserved = room.heads.alternative[head]
    if asked.exclusive[one] or asked.exclusive[reserved]:
        return int(before)
    most = before
    for resource in range(then.amount.shape[1]):
        left = then.amount[there, resource] - chunks * asked.demand[one, resource]
        if most * asked.demand[reserved, resource] > left:
            most = left // asked.demand[reserved, resource]
    return int(before - most)


@kernel(allocates=False)
def place_beside_heads(room: Room, one: int, own: int, end: float, late: int) -> int:
    """Place an alternative on the first allowed nodes, and take it from heads for which it is late.

    First amounts are tried that cost no head anything, then those within slacks. Returns the number
    of nodes, 0 if it does not fit or would delay a head.
    """
    asked, free, heads = room.asked, room.free, room.heads
    if late == 0:
        return first_fit(asked, free, one, room.allowed, room.place)
    if not may_fit(asked, free, one) or not licensed_beside_heads(asked, heads, one, end):
        return 0
    allowed, owner, place, found = room.allowed, room.owner, room.place, 0
    group, missing, base = asked.nodes[one], asked.chunks[one], own * len(free.jobs)
    for member in range(asked.first_member[group], asked.first_member[group + 1]):
        node = asked.member[member]
        if is_full(asked, free, one, node) or not allowed[node]:
            continue
        most, head = min(most_on(asked, free, one, node), missing), owner[base + node]
        if most > 0:
            place.node[found], place.chunks[found] = node, most
            if is_late(heads, head, end):
                place.chunks[found] = min(most, most_beside(room, one, head, base + node, 0))
            missing -= place.chunks[found]
            found += 1
            if missing == 0:
                break
    for entry in range(found):
        if missing == 0:
            break
        node, before = place.node[entry], place.chunks[entry]
        head = owner[base + node]
        if is_late(heads, head, end) and heads.left[head] > 0:
            most = min(most_on(asked, free, one, node), before + missing)
            most = min(most, most_beside(room, one, head, base + node, heads.left[head]))
            if most > before:
                heads.left[head] -= cost(room, one, head, base + node, most)
                missing -= most - before
                place.chunks[entry] = most
    if missing > 0:
        return 0
    used = 0
    for entry in range(found):
        if place.chunks[entry] > 0:
            place.node[used], place.chunks[used] = place.node[entry], place.chunks[entry]
            used += 1
    take_beside(room, one, own, end, place, used)
    return used


@kernel(allocates=False)
def place_request(room: Room, request: int, own: int, end: float) -> tuple[int, int]:
    """Place a job by its first alternative that can be; return it, or `NOWHERE`, and its nodes."""
    late = count_late(room.heads, end)
    for one in range(room.asked.first[request], room.asked.first[request + 1]):
        used = place_beside_heads(room, one, own, end, late)
        if used > 0:
            return one, used
    return NOWHERE, 0


@kernel(allocates=False)
def next_beside_heads(
    room: Room, shortages: Shortages, candidates: Candidates, first: int, stop: int, now: float
) -> tuple[int, int, int]:
    """Place the next candidate that delays no head; return it, its alternative, and its nodes.

    Requests that do not fit beyond a number of shadow times, and of starts and ends of windows, are
    noted in `failed`. They do not fit later in the decision.
    """
    asked, free, edges = room.asked, room.free, room.closed.edges
    decision = candidates.decision[0]
    for at in range(first, stop):
        if free.total[0] == 0:
            break
        job = candidates.job[at]
        request = candidates.requests[job]
        if are_listed(shortages, asked, request):
            continue
        own, end = candidates.own[job], now + candidates.requested[job]
        late = count_late(room.heads, end)
        failed, beyond = candidates.failed[own], late
        for edge in range(len(edges)):
            beyond += end > edges[edge]
        if failed[0, request] == decision or failed[beyond, request] == decision:
            continue
        note_allowed(room, own, now, end)
        for one in range(asked.first[request], asked.first[request + 1]):
            if is_short(shortages, asked, free, one):
                continue
            used = place_beside_heads(room, one, own, end, late)
            if used > 0:
                return at, one, used
        failed[beyond, request] = decision
    return stop, NOWHERE, 0


@kernel(allocates=False)
def reserve(room: Room, running: Running, candidates: Candidates, job: int, now: float) -> None:
    """Add a blocked job to the heads, with the alternative that fits first, if any ever does."""
    asked, heads, own = room.asked, room.heads, candidates.own[job]
    request, duration = candidates.requests[job], candidates.requested[job]
    first, stop = asked.first[request], asked.first[request + 1]
    head, is_only = heads.number[0], stop == first + 1
    is_kept = head < heads.kept[0] and heads.alternative[head] == first
    if is_only and is_kept and heads.shadow[head] >= now:
        advance_head(room, head, running, now)
        heads.number[0] += 1
    else:
        shadow, slack, chosen = np.inf, 0, NOWHERE
        for one in range(first, stop):
            at, over = shadow_of(room, running, one, own, duration, now)
            if at < shadow:
                shadow, slack, chosen = at, over, one
        if chosen == NOWHERE:
            return
        if chosen != stop - 1:
            shadow_of(room, running, chosen, own, duration, now)
        add_head(room, chosen, own, shadow, slack)
    heads.job[head], heads.promised[head] = job, heads.shadow[head]
    if shares_licence(room, head):
        heads.promised[head] = np.inf  # its shadow time is one without earlier heads
        return
    for earlier in range(heads.promises[0]):
        if heads.before[earlier] == job:
            promised = min(heads.promised[head], heads.promised_before[earlier])
            heads.promised[head] = promised


@kernel(allocates=False)
def shares_licence(room: Room, head: int) -> bool:
    """Return whether an earlier head asks for a licence that a head asks for."""
    licences, asks = room.asked.licences, room.heads.alternative
    for earlier in range(head):
        for licence in range(licences.shape[1]):
            if licences[asks[earlier], licence] > 0 and licences[asks[head], licence] > 0:
                return True
    return False


@kernel(allocates=False)
def take_beside(room: Room, one: int, own: int, end: float, place: Place, used: int) -> None:
    """Take a place from what is free at the shadow times that it lasts beyond."""
    asked, then, heads = room.asked, room.then, room.heads
    for head in range(heads.number[0]):
        heads.slack[head] = heads.left[head]
        if end > heads.shadow[head]:
            for licence in range(heads.licences.shape[1]):
                heads.licences[head, licence] -= asked.licences[one, licence]
    for entry in range(used):
        node = own * len(room.free.jobs) + place.node[entry]
        if is_late(heads, room.owner[node], end):
            change(asked, then, one, node, place.chunks[entry], -1)
            reserved = heads.alternative[room.owner[node]]
            room.chunks[node] = most_on(asked, then, reserved, node)
