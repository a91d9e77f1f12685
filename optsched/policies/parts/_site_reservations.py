"""Conservative backfilling on the nodes of a site, compiled.

`optsched.policies.parts.node_reservations` states what is computed here: at a submission a job gets
the earliest place that delays no other, and after an end the waiting jobs are placed again, in
order of submission. The schedules are the same; the cost follows the jobs that can move in place of
the jobs that wait.

Argument
--------
A job that waits for a start s was examined, when it was placed or placed again: for each start t
before s the chunks that have a place were too few, on all nodes together, its own reservation left
aside. What is *missing* is the least number of chunks, over all t, that have no place. Where
something becomes free on a node, as a job ends early or moves, a later examination can find no more
chunks on this node than fit there now, for the best of the starts that would use it. So this number
is taken from what is missing, and a job need not be examined as long as something is missing: it
would stay where it is. What is taken since then, or has passed, can only increase what is missing.
On a node of its own, the job counts as running only until s: behind it, where its reservation is,
its chunks had a place before, and more fit only where they do beside it.
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
    is_full,
    most_on,
)
from optsched.policies.parts._site_lines import (
    NONE,
    Instants,
    Lines,
    best_on,
    book,
    disuse,
    earliest_of,
    forget,
    new_lines,
    no_instants,
    note_peak,
    place_at,
    use,
    with_segments,
)
from optsched.policies.parts._site_log import (
    Log,
    has_room,
    new_log,
    note_node,
    note_start,
    with_runs,
)
from optsched.simulator._core import DONE, N_ENDED, N_SUBMITTED, OPEN, START, News, tell

Times = NDArray[np.float64]

WAITING, PENDING, ENTRIES, CHANGES = range(4)
"""Entries of `Reservations.tally`: waiting jobs, whether the present events are still to be
processed, most nodes of all jobs that wait or run, whether waiting jobs may be able to move."""


@by_reference
class Reservations(NamedTuple):
    """What is reserved for each job that waits or runs."""

    requests: Numbers
    nodes: Numbers  # shape (jobs,): the most nodes that each job can have
    start: Times
    end: Times
    alternative: Numbers
    missing: Numbers
    first: Numbers  # the first entry of the job in the next three
    node: Numbers
    chunks: Numbers
    next: Numbers
    spare: Numbers  # one entry: the first unused one
    order: Numbers  # the waiting jobs, in order of submission
    tally: Numbers


@by_reference
class Search(NamedTuple):
    """Space for searches."""

    change: Numbers  # see `earliest_of`
    before: Numbers  # nodes on which a job was before it moved


@by_reference
class OnNodes(NamedTuple):
    """All of it."""

    asked: Asked
    lines: Lines
    segments: Free
    instants: Instants
    table: Reservations
    search: Search
    place: Place
    peaks: Free
    requested: Times
    log: Log


@kernel(allocates=False)
def keep(table: Reservations, job: int, place: Place, used: int) -> None:
    """Note the place of a job: the first `used` nodes of a place."""
    last = NONE
    for entry in range(used):
        new = table.spare[0]
        table.spare[0] = table.next[new]
        table.node[new], table.chunks[new] = place.node[entry], place.chunks[entry]
        table.next[new] = NONE
        if last == NONE:
            table.first[job] = new
        else:
            table.next[last] = new
        last = new


@kernel(allocates=False)
def let_go(table: Reservations, job: int, nodes: Numbers) -> int:
    """Drop the place of a job, and write its nodes to `nodes`; return how many they are."""
    count, entry = 0, table.first[job]
    while entry != NONE:
        nodes[count] = table.node[entry]
        count += 1
        following = table.next[entry]
        table.next[entry], table.spare[0] = table.spare[0], entry
        entry = following
    return count


@kernel(allocates=False)
def book_all(
    asked: Asked,
    lines: Lines,
    segments: Free,
    table: Reservations,
    job: int,
    start: float,
    now: float,
    sign: int,
) -> None:
    """Take (1) or free (-1) the place of a job from `start`, or now, to its end."""
    entry, one, end = table.first[job], table.alternative[job], table.end[job]
    while entry != NONE:
        node, chunks = table.node[entry], table.chunks[entry]
        book(asked, lines, segments, one, node, chunks, start, end, now, sign)
        entry = table.next[entry]


@kernel(allocates=False)
def ease(
    asked: Asked,
    lines: Lines,
    segments: Free,
    table: Reservations,
    duration: Times,
    nodes: Numbers,
    count: int,
    freed: float,
    until: float,
    peaks: Free,
) -> None:
    """Take what may fit on nodes, as they have become free for a time, from what is missing.

    The nodes ascend, as those of each job do.
    """
    for at in range(count):
        note_peak(lines, segments, nodes[at], freed, until, peaks, at)
    for waiting in range(table.tally[WAITING]):
        job = table.order[waiting]
        if table.missing[job] <= 0 or table.end[job] <= freed:
            continue
        request, most = table.requests[job], 0
        first, stop = asked.first[request], asked.first[request + 1]
        if stop > first + 1 and until > table.start[job]:
            # one alternative may fit only where the job gives up another
            table.missing[job] = 0
            continue
        for one in range(first, stop):
            room, group, own = 0, asked.nodes[one], table.first[job]
            for at in range(count):
                if (
                    room < table.missing[job]
                    and not is_full(asked, peaks, one, at)
                    and asked.belongs[group, nodes[at]]
                    and most_on(asked, peaks, one, at) > 0
                ):
                    node, long, before = nodes[at], duration[job], table.start[job]
                    while own != NONE and table.node[own] < node:
                        own = table.next[own]
                    # from its start on, the job is in its own way
                    is_own = own != NONE and table.node[own] == node
                    horizon = before if is_own else np.inf
                    room += best_on(
                        asked, lines, segments, one, node, freed, until, long, before, horizon
                    )
            most = max(most, room)
        table.missing[job] -= most


@kernel(allocates=False)
def find(
    asked: Asked,
    lines: Lines,
    segments: Free,
    instants: Instants,
    table: Reservations,
    search: Search,
    job: int,
    duration: float,
    before: float,
) -> tuple[float, int]:
    """Return the earliest start of a job before a time, and its alternative or `NOWHERE`.

    Of alternatives that can start at one time the first. What is missing sooner is noted.
    """
    request, start, chosen = table.requests[job], before, NOWHERE
    first, stop = asked.first[request], asked.first[request + 1]
    table.missing[job] = asked.chunks[first]
    for one in range(first, stop):
        at, missing = earliest_of(
            asked, lines, segments, instants, one, duration, start, search.change
        )
        if at < start:
            start, chosen = at, one
        table.missing[job] = min(table.missing[job], missing)
    return start, chosen


@kernel(allocates=False)
def reserve(
    asked: Asked,
    lines: Lines,
    segments: Free,
    instants: Instants,
    table: Reservations,
    job: int,
    one: int,
    start: float,
    duration: float,
    place: Place,
    used: int,
) -> None:
    """Reserve the first `used` nodes of a place for a job."""
    table.start[job], table.end[job] = start, start + duration
    table.alternative[job] = one
    use(instants, start)
    use(instants, table.end[job])
    keep(table, job, place, used)
    book_all(asked, lines, segments, table, job, start, instants.time[0], 1)


@kernel(allocates=False)
def submit(
    asked: Asked,
    lines: Lines,
    segments: Free,
    instants: Instants,
    table: Reservations,
    search: Search,
    job: int,
    duration: float,
    place: Place,
) -> None:
    """Reserve for a submitted job at the earliest time."""
    now, request, used = instants.time[0], table.requests[job], 0
    start, chosen = now, NOWHERE
    for one in range(asked.first[request], asked.first[request + 1]):
        used = place_at(asked, lines, segments, one, now, duration, now, place)
        if used > 0:
            chosen = one
            break
    if chosen == NOWHERE:
        start, chosen = find(asked, lines, segments, instants, table, search, job, duration, np.inf)
        used = place_at(asked, lines, segments, chosen, start, duration, now, place)
    reserve(asked, lines, segments, instants, table, job, chosen, start, duration, place, used)
    at = table.tally[WAITING]
    while at > 0 and table.order[at - 1] > job:  # that job was held
        table.order[at] = table.order[at - 1]
        at -= 1
    table.order[at] = job
    table.tally[WAITING] += 1


@kernel(allocates=False)
def place_again(
    asked: Asked,
    lines: Lines,
    segments: Free,
    instants: Instants,
    table: Reservations,
    search: Search,
    requested: Times,
    job: int,
    place: Place,
    peaks: Free,
) -> bool:
    """Place a job at an earlier time if there is one; return whether it has moved."""
    now, start, end = instants.time[0], table.start[job], table.end[job]
    duration = requested[job]
    book_all(asked, lines, segments, table, job, start, now, -1)
    at, one = find(asked, lines, segments, instants, table, search, job, duration, start)
    if one == NOWHERE:
        book_all(asked, lines, segments, table, job, start, now, 1)
        return False
    disuse(instants, start)
    disuse(instants, end)
    used = place_at(asked, lines, segments, one, at, duration, now, place)
    count = let_go(table, job, search.before)
    reserve(asked, lines, segments, instants, table, job, one, at, duration, place, used)
    nodes = search.before
    ease(asked, lines, segments, table, requested, nodes, count, start, end, peaks)
    return True


@kernel(allocates=False)
def decide(site: OnNodes, news: News) -> int:
    """Update the reservations, and start the jobs whose reservations begin.

    Returns `OPEN` if the tables have to be longer first.
    """
    asked, lines, segments, instants = site.asked, site.lines, site.segments, site.instants
    table, search, place, peaks = site.table, site.search, site.place, site.peaks
    requested, counts, own, now = site.requested, news.counts, site.table.tally, news.now[0]
    if own[PENDING] == 0:
        for at in range(counts[N_SUBMITTED]):
            own[ENTRIES] += table.nodes[news.submitted[at]]
    own[PENDING] = 1
    if has_short_tables(table, lines) or not has_room(site.log, own[ENTRIES]):
        return OPEN
    own[PENDING] = 0
    forget(instants, now)
    for at in range(counts[N_ENDED]):
        job = news.ended[at]
        own[ENTRIES] -= table.nodes[job]
        is_early = table.end[job] > now
        if is_early:
            book_all(asked, lines, segments, table, job, now, now, -1)
            disuse(instants, table.end[job])
            own[CHANGES] = 1
        nodes, count = search.before, let_go(table, job, search.before)
        if is_early:
            end = table.end[job]
            ease(asked, lines, segments, table, requested, nodes, count, now, end, peaks)
    if counts[N_ENDED] and own[CHANGES]:
        own[CHANGES] = 0
        for at in range(own[WAITING]):
            job = table.order[at]
            if table.missing[job] <= 0 and place_again(
                asked, lines, segments, instants, table, search, requested, job, place, peaks
            ):
                own[CHANGES] = 1
    for at in range(counts[N_SUBMITTED]):
        job = news.submitted[at]
        submit(asked, lines, segments, instants, table, search, job, requested[job], place)
    kept = 0
    for at in range(own[WAITING]):
        job = table.order[at]
        if table.start[job] > now:
            table.order[kept] = job
            kept += 1
            continue
        tell(news, START, job, 0.0)
        note_start(site.log, job)
        entry = table.first[job]
        while entry != NONE:
            note_node(site.log, job, table.node[entry])
            entry = table.next[entry]
    own[WAITING] = kept
    return DONE


@kernel(allocates=False)
def has_short_tables(table: Reservations, lines: Lines) -> bool:
    """Return whether the tables are short of entries for the jobs that wait and run.

    A place has two segments on each node, and there are one for each node and one over. A job that
    moves has two places for a moment.
    """
    nodes, entries = len(lines.first), table.tally[ENTRIES]
    return bool(2 * entries + 2 * nodes + 1 > min(len(lines.time), len(table.node)))


def new_reservations(asked: Asked, free: Free, requests: Numbers, requested: Times) -> OnNodes:
    """Return the tables of an idle site."""
    jobs, nodes = len(requests), len(free.jobs)
    set_size = asked.first_member[asked.nodes + 1] - asked.first_member[asked.nodes]
    most = np.minimum(asked.chunks, set_size)
    # of a job that can never start, any
    of_request = np.append(np.maximum.reduceat(np.append(most, 0), asked.first[:-1]), 0)
    number, alternative, missing, first, order = np.zeros((5, jobs), dtype=np.int64)
    number[:] = of_request[np.maximum(requests, -1)]
    size = 4 * nodes + 1
    node, chunks, following = np.zeros((3, size), dtype=np.int64)
    following[:] = np.arange(1, size + 1)
    spare, tally = np.zeros(1, dtype=np.int64), np.zeros(4, dtype=np.int64)
    entries = node, chunks, following, spare
    times = np.zeros(jobs), np.zeros(jobs)
    table = Reservations(
        requests, number, *times, alternative, missing, first, *entries, order, tally
    )
    instants = no_instants(jobs)
    change = np.zeros(len(instants.time) + 1, dtype=np.int64)
    before, *place = np.zeros((3, nodes), dtype=np.int64)
    peaks = Free(np.zeros_like(free.amount), np.zeros_like(free.jobs), free.licences, free.total)
    return OnNodes(
        *(asked, *new_lines(free, size), instants, table, Search(change, before), Place(*place)),
        *(peaks, requested, new_log(jobs)),
    )


def with_entries(site: OnNodes) -> OnNodes:
    """Return the same tables, longer."""
    table, nodes = site.table, len(site.lines.first)
    more = 2 * int(table.tally[ENTRIES]) + 2 * nodes + 1
    lines, segments = with_segments(site.lines, site.segments, more)
    there, none = len(table.next), np.zeros(more, dtype=np.int64)
    following = np.concatenate((table.next, np.arange(there + 1, there + more + 1)))
    following[-1] = table.spare[0]
    node, chunks = (np.concatenate((column, none)) for column in (table.node, table.chunks))
    table = table._replace(node=node, chunks=chunks, next=following, spare=np.array([there]))
    log = with_runs(site.log, more)
    return site._replace(lines=lines, segments=segments, table=table, log=log)
