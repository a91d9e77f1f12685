"""Shadow times of blocked jobs of several queues, and places beside their reservations, compiled.

The blocked jobs, or *heads*, want different nodes: a node has one of them at most as its *owner*.
What is free on a node at the shadow time of its owner is kept in one table for all heads.
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
    Flags,
    Free,
    Numbers,
    Place,
    give,
    may_fit,
    most_on,
)
from optsched.policies.parts._site_backfilling import (
    JOBS,
    Running,
    Shortages,
    copy,
    cost,
    is_short,
    most_beside,
)

Times = NDArray[np.float64]

NO_HEAD = -1


@by_reference
class Closed(NamedTuple):
    """When nodes are closed to some jobs, see `optsched.sites.queues.Windows`."""

    start: Times
    end: Times
    closed: Flags  # shape (windows, nodes)
    holds: Flags  # which windows count for a job, for the search
    open: Flags  # nodes that are open to a job, for the search


@by_reference
class Heads(NamedTuple):
    """The blocked jobs that have reservations."""

    number: Numbers  # one entry
    alternative: Numbers
    shadow: Times
    slack: Numbers  # chunks of each head that are over
    left: Numbers  # the same, for the search
    licences: Numbers  # shape (heads, licences), free at the shadow time of each


def no_heads(heads: int, licences: int) -> Heads:
    """Return the table of so many heads at most."""
    alternative, slack, left = np.zeros((3, heads), dtype=np.int64)
    number = np.zeros(1, dtype=np.int64)
    table = np.zeros((heads, licences), dtype=np.int64)
    return Heads(number, alternative, np.zeros(heads), slack, left, table)


@kernel(allocates=False)
def note_closed(closed: Closed, start: float, end: float) -> bool:
    """Note which nodes are open from a time to before another; return whether any changed."""
    changed = False
    for window in range(len(closed.start)):
        holds = closed.start[window] < end and start < closed.end[window]
        if holds != closed.holds[window]:
            closed.holds[window] = holds
            changed = True
    if changed:
        for node in range(len(closed.open)):
            closed.open[node] = True
            for window in range(len(closed.start)):
                if closed.holds[window] and closed.closed[window, node]:
                    closed.open[node] = False
    return changed


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
    asked: Asked,
    free: Free,
    then: Free,
    running: Running,
    held: Place,
    closed: Closed,
    one: int,
    duration: float,
    now: float,
) -> tuple[float, int]:
    """Return when an alternative fits by estimated ends, and how many chunks are over; or infinity.

    What is free then is in `then`, and the open nodes in `closed`.
    """
    copy(free, then)
    note_closed(closed, now, now + duration)
    room = room_on_open(asked, then, one, closed.open)
    at, time, group = 0, now, asked.nodes[one]
    while True:
        while at < running.tally[JOBS] and running.end[at] <= time:
            begin, stop = running.begin[at], running.stop[at]
            for entry in range(begin, stop):
                node = held.node[entry]
                if closed.open[node] and asked.belongs[group, node]:
                    room -= most_on(asked, then, one, node)
            give(asked, then, running.alternative[at], held, begin, stop)
            for entry in range(begin, stop):
                node = held.node[entry]
                if closed.open[node] and asked.belongs[group, node]:
                    room += most_on(asked, then, one, node)
            at += 1
        if room >= asked.chunks[one] and may_fit(asked, then, one):
            return time, room - asked.chunks[one]
        following = running.end[at] if at < running.tally[JOBS] else np.inf
        for window in range(len(closed.end)):
            if closed.end[window] > time:
                following = min(following, closed.end[window])
        if following == np.inf:
            return np.inf, 0
        time = following
        if note_closed(closed, time, time + duration):
            room = room_on_open(asked, then, one, closed.open)


@kernel(allocates=False)
def add_head(
    asked: Asked,
    then: Free,
    at_shadow: Free,
    owner: Numbers,
    closed: Closed,
    heads: Heads,
    one: int,
    shadow: float,
    slack: int,
) -> None:
    """Add a head; it owns the nodes that it may use and that are open to it at its shadow time."""
    head = heads.number[0]
    heads.number[0] += 1
    heads.alternative[head], heads.shadow[head], heads.slack[head] = one, shadow, slack
    for licence in range(len(at_shadow.licences)):
        heads.licences[head, licence] = at_shadow.licences[licence]
    group = asked.nodes[one]
    for member in range(asked.first_member[group], asked.first_member[group + 1]):
        node = asked.member[member]
        if closed.open[node]:
            owner[node] = head
            then.jobs[node] = at_shadow.jobs[node]
            for resource in range(then.amount.shape[1]):
                then.amount[node, resource] = at_shadow.amount[node, resource]


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
def spare_for_heads(
    asked: Asked,
    then: Free,
    owner: Numbers,
    heads: Heads,
    one: int,
    end: float,
    place: Place,
) -> bool:
    """Return whether all heads can do without a place until `end`; if so, it is taken for good."""
    if not licensed_beside_heads(asked, heads, one, end):
        return False
    for entry in range(len(place.node)):
        node = place.node[entry]
        head = owner[node]
        if head != NO_HEAD and end > heads.shadow[head]:
            reserved = heads.alternative[head]
            heads.left[head] -= cost(asked, then, one, reserved, node, place.chunks[entry])
            if heads.left[head] < 0:
                return False
    take_beside(asked, then, owner, heads, one, end, place, len(place.node))
    return True


@kernel(allocates=False)
def place_beside_heads(
    asked: Asked,
    free: Free,
    then: Free,
    owner: Numbers,
    open_nodes: Flags,
    heads: Heads,
    one: int,
    end: float,
    on_node: Numbers,
    place: Place,
) -> int:
    """Place an alternative that runs from now until `end` at most on the first open nodes.

    Returns the number of nodes, 0 if it does not fit or would delay a head. It takes first amounts
    that cost no head anything, then within their slack. What it takes beyond the shadow time of a
    head is taken from what is free then, and its cost from the slack.
    """
    if not may_fit(asked, free, one):
        return 0
    if not licensed_beside_heads(asked, heads, one, end):
        return 0
    group, missing = asked.nodes[one], asked.chunks[one]
    first, stop = asked.first_member[group], asked.first_member[group + 1]
    for member in range(first, stop):
        on_node[asked.member[member]] = 0
    for within_slack in range(2):
        for member in range(first, stop):
            node = asked.member[member]
            if not open_nodes[node] or missing == 0:
                continue
            most = most_on(asked, free, one, node)
            if most <= on_node[node]:
                continue
            most = min(most, on_node[node] + missing)
            head = owner[node]
            if head != NO_HEAD and end > heads.shadow[head]:
                reserved, slack = heads.alternative[head], within_slack * heads.left[head]
                most = min(most, most_beside(asked, then, one, reserved, node, slack))
                if within_slack and most > on_node[node]:
                    heads.left[head] -= cost(asked, then, one, reserved, node, most)
            if most > on_node[node]:
                missing -= most - on_node[node]
                on_node[node] = most
        if missing == 0 or heads.number[0] == 0:
            break
    if missing > 0:
        return 0
    used = 0
    for member in range(first, stop):
        node = asked.member[member]
        if on_node[node] > 0:
            place.node[used], place.chunks[used] = node, on_node[node]
            used += 1
    take_beside(asked, then, owner, heads, one, end, place, used)
    return used


@kernel(allocates=False)
def place_request(
    asked: Asked,
    free: Free,
    then: Free,
    owner: Numbers,
    open_nodes: Flags,
    heads: Heads,
    request: int,
    end: float,
    on_node: Numbers,
    place: Place,
) -> tuple[int, int]:
    """Place a job by the first of its alternatives that `place_beside_heads` can place.

    Returns the alternative, or `NOWHERE`, and the number of nodes.
    """
    for one in range(asked.first[request], asked.first[request + 1]):
        used = place_beside_heads(
            asked, free, then, owner, open_nodes, heads, one, end, on_node, place
        )
        if used > 0:
            return one, used
    return NOWHERE, 0


@kernel(allocates=False)
def next_beside_heads(
    asked: Asked,
    free: Free,
    then: Free,
    owner: Numbers,
    open_nodes: Flags,
    heads: Heads,
    shortages: Shortages,
    candidates: Numbers,
    first: int,
    stop: int,
    requests: Numbers,
    requested: Times,
    now: float,
    failed: Flags,
    on_node: Numbers,
    place: Place,
) -> tuple[int, int, int]:
    """Place the next of the candidates from `first` to before `stop` that delays no head.

    Requests that do not fit beyond a number of shadow times are noted in `failed`, shape (heads and
    1, requests). They do not fit later in the decision.

    Returns the number of the candidate, its alternative or `NOWHERE`, and the number of nodes.
    """
    for at in range(first, stop):
        if free.total[0] == 0:
            break
        job = candidates[at]
        request, end, late = requests[job], now + requested[job], 0
        for head in range(heads.number[0]):
            if end > heads.shadow[head]:
                late += 1
        if failed[0, request] or failed[late, request]:
            continue
        for one in range(asked.first[request], asked.first[request + 1]):
            if is_short(shortages, asked, free, one):
                continue
            used = place_beside_heads(
                asked, free, then, owner, open_nodes, heads, one, end, on_node, place
            )
            if used > 0:
                return at, one, used
        failed[late, request] = True
    return stop, NOWHERE, 0


@kernel(allocates=False)
def forget_failed(candidates: Numbers, number: int, requests: Numbers, failed: Flags) -> None:
    """Forget which requests of the first candidates did not fit."""
    for at in range(number):
        for late in range(len(failed)):
            failed[late, requests[candidates[at]]] = False


@kernel(allocates=False)
def reserve(
    asked: Asked,
    free: Free,
    then: Free,
    at_shadow: Free,
    owner: Numbers,
    running: Running,
    held: Place,
    closed: Closed,
    heads: Heads,
    request: int,
    duration: float,
    now: float,
) -> None:
    """Add a blocked job to the heads, with the alternative that fits first by estimated ends."""
    first, stop = asked.first[request], asked.first[request + 1]
    shadow, slack, chosen = np.inf, 0, NOWHERE
    for one in range(first, stop):
        at, over = shadow_of(asked, free, at_shadow, running, held, closed, one, duration, now)
        if at < shadow:
            shadow, slack, chosen = at, over, one
    if chosen == NOWHERE:
        return
    if chosen != stop - 1:
        shadow_of(asked, free, at_shadow, running, held, closed, chosen, duration, now)
    add_head(asked, then, at_shadow, owner, closed, heads, chosen, shadow, slack)


@kernel(allocates=False)
def take_beside(
    asked: Asked,
    then: Free,
    owner: Numbers,
    heads: Heads,
    one: int,
    end: float,
    place: Place,
    used: int,
) -> None:
    """Take a place from what is free at the shadow times that it lasts beyond."""
    for head in range(heads.number[0]):
        heads.slack[head] = heads.left[head]
        if end > heads.shadow[head]:
            for licence in range(heads.licences.shape[1]):
                heads.licences[head, licence] -= asked.licences[one, licence]
    for entry in range(used):
        node = place.node[entry]
        head = owner[node]
        if head != NO_HEAD and end > heads.shadow[head]:
            for resource in range(then.amount.shape[1]):
                amount = place.chunks[entry] * asked.demand[one, resource]
                then.amount[node, resource] -= amount
            then.jobs[node] = -1 if asked.exclusive[one] else then.jobs[node] + 1
