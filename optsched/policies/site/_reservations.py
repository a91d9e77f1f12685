"""Conservative backfilling on the nodes of a site, compiled.

At a submission a job gets the earliest place that delays no other: the first nodes that have room
for as long as it may run. After an end, where something has become free, the waiting jobs are
placed again one by one, those of a higher tier first, then by rank, which is the order of
submission; each starts earlier, or stays where it is. A job without any time at which it could
start within a reservation of the site is placed once there is one. Jobs of the same tier that are
submitted at once are placed in the order in which the news has them. Where `replans` says so, all
waiting jobs are placed again as if none had a place: others may start later than was reserved for
them. So they are as long as one has no place because of `Turns`.

Only jobs that can move are examined.

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

Licences are as if on a node more, where they count for `LICENSED` chunks: so many are missing for a
start without them, and as many are taken from what is missing when any become free. Reservations of
the site are there from the beginning, as nodes that are closed; s is infinite for a job that has no
place.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optsched.arrays import Floats, Ints
from optsched.by_reference import by_reference
from optsched.compiled import kernel
from optsched.machines._ascending import enter
from optsched.machines._site_nodes import (
    NOWHERE,
    Asked,
    Free,
    Log,
    Place,
    has_room,
    hold,
    is_full,
    may_fit,
    most_on,
    new_log,
    note_node,
    note_start,
    with_runs,
)
from optsched.policies.site._lines import (
    LICENSED,
    NONE,
    Lines,
    best_on,
    book,
    close,
    disuse,
    earliest_of,
    forget,
    licences_of,
    new_lines,
    note_peak,
    place_at,
    use,
    with_segments,
)
from optsched.policies.site._tables import (
    Closed,
    Turns,
    ahead_of,
    ask_again,
    begin_turns,
    note_wait,
)
from optsched.simulator import _core
from optsched.simulator._core import News, tell, zeroed

NEVER, IF_LATE, NOW = range(3)
"""When all waiting jobs are placed as if none had a place: never, where one comes late and has to
wait, or at the next decision, and after that where one comes late."""


@by_reference
class Reservations(NamedTuple):
    """What is reserved for each job that waits or runs.

    The nodes of jobs are entries of common tables, which are longer than all jobs need.
    """

    lines: Lines
    free: Free  # now, without the jobs that run
    closed: Closed
    log: Log
    requests: Ints  # of each job, as the next ten
    requested: Floats
    own: Ints  # number of its reservation of the site, 0 for none
    tier: Ints  # 0 for the highest
    rank: Floats  # the lowest is first in its tier
    most: Ints  # entries that it can have
    start: Floats  # infinite for a job that waits and has no place
    end: Floats
    alternative: Ints
    missing: Ints
    first: Ints  # its first entry
    order: Ints  # the waiting jobs by rank
    node: Ints  # of each entry, as the next two
    chunks: Ints
    next: Ints
    spare: Ints  # one entry, as the next seven: the first unused one
    room: Ints  # for so many entries of jobs there is room
    entries: Ints  # of the jobs that wait or run
    tiers: Ints
    waiting: Ints  # jobs that wait
    is_heard: Ints  # whether the present submissions are in `entries`
    changes: Ints  # whether waiting jobs may be able to move
    replans: Ints  # `NEVER`, `IF_LATE` or `NOW`
    turns: Turns
    gains: Ints  # for the search, see `earliest_of`; as the next three
    place: Place
    before: Place  # of a job that has just given it up
    peaks: Free


@kernel(allocates=False)
def copy_place(table: Reservations, job: int, place: Place) -> int:
    """Write the place of a job to `place`; return how many nodes it has."""
    used, entry = 0, table.first[job]
    while entry != NONE:
        place.node[used], place.chunks[used] = table.node[entry], table.chunks[entry]
        used += 1
        entry = table.next[entry]
    return used


@kernel(allocates=False)
def keep(table: Reservations, job: int, used: int) -> None:
    """Note the place of a job: the first `used` nodes of the one that was found."""
    last = NONE
    for entry in range(used):
        new = table.spare[0]
        table.spare[0] = table.next[new]
        table.node[new], table.chunks[new] = table.place.node[entry], table.place.chunks[entry]
        table.next[new] = NONE
        if last == NONE:
            table.first[job] = new
        else:
            table.next[last] = new
        last = new


@kernel(allocates=False)
def let_go(table: Reservations, job: int) -> int:
    """Drop the place of a job, which is in `before` then; return how many nodes it has."""
    entry = table.first[job]
    used = copy_place(table, job, table.before)
    for _ in range(used):
        following = table.next[entry]
        table.next[entry], table.spare[0] = table.spare[0], entry
        entry = following
    table.first[job] = NONE
    return used


@kernel(allocates=False)
def book_all(table: Reservations, job: int, sign: int) -> None:
    """Take (1) or free (-1) the place of a job from its start, or now, to its end."""
    lines, one, entry = table.lines, table.alternative[job], table.first[job]
    start, end, base = table.start[job], table.end[job], table.own[job] * len(table.free.jobs)
    while entry != NONE:
        book(lines, one, base + table.node[entry], table.chunks[entry], start, end, sign)
        entry = table.next[entry]
    licences = licences_of(lines, one)
    if licences != NONE:
        book(lines, licences, len(lines.first) - 1, 1, start, end, sign)


@kernel(allocates=False)
def ease(table: Reservations, own: int, used: int, freed: float, until: float) -> None:
    """Take what may fit on the first `used` nodes of `before`, now free, from what is missing."""
    lines, nodes, peaks = table.lines, table.before.node, table.peaks
    asked, base = lines.asked, own * len(table.free.jobs)
    for at in range(used):
        note_peak(lines, base + nodes[at], freed, until, peaks, at)
    for waiting in range(table.waiting[0]):
        job = table.order[waiting]
        if table.missing[job] <= 0 or table.end[job] <= freed or table.own[job] != own:
            continue
        request, most = table.requests[job], 0
        first, stop = asked.first[request], asked.first[request + 1]
        if stop > first + 1 and until > table.start[job]:
            # one alternative may fit only where the job gives up another
            table.missing[job] = 0
            continue
        for one in range(first, stop):
            room, group, entry = 0, asked.nodes[one], table.first[job]
            for at in range(used):
                node = nodes[at]
                if (
                    room < table.missing[job]
                    and not is_full(asked, peaks, one, at)
                    and asked.belongs[group, node]
                    and most_on(asked, peaks, one, at) > 0
                ):
                    long, before = table.requested[job], table.start[job]
                    while entry != NONE and table.node[entry] < node:
                        entry = table.next[entry]
                    # from its start on, the job is in its own way
                    is_own = entry != NONE and table.node[entry] == node
                    horizon = before if is_own else np.inf
                    room += best_on(lines, one, base + node, freed, until, long, before, horizon)
            most = max(most, room)
        table.missing[job] -= most


@kernel(allocates=False)
def ease_licences(table: Reservations) -> None:
    """Take licences that have become free from what jobs that ask for some are missing."""
    first = table.lines.asked.first
    for waiting in range(table.waiting[0]):
        job = table.order[waiting]
        for one in range(first[table.requests[job]], first[table.requests[job] + 1]):
            if table.missing[job] > 0 and licences_of(table.lines, one) != NONE:
                table.missing[job] -= LICENSED


@kernel(allocates=False)
def give_up(table: Reservations, job: int) -> None:
    """Free what is reserved for a job from now on; the waiting jobs may be able to move."""
    lines, end, one = table.lines, table.end[job], table.alternative[job]
    freed = max(table.start[job], lines.instant[0])
    if end <= freed:
        let_go(table, job)
        return
    book_all(table, job, -1)
    disuse(lines, freed)
    disuse(lines, end)
    table.changes[0] = 1
    ease(table, table.own[job], let_go(table, job), freed, end)
    if licences_of(lines, one) != NONE:
        ease_licences(table)


@kernel(allocates=False)
def find(table: Reservations, job: int, before: float) -> tuple[float, int]:
    """Return the earliest start of a job before a time, and its alternative; note what misses."""
    lines, request, start, chosen = table.lines, table.requests[job], before, NOWHERE
    duration, base = table.requested[job], table.own[job] * len(table.free.jobs)
    table.missing[job] = 2 * LICENSED
    for one in range(lines.asked.first[request], lines.asked.first[request + 1]):
        at, missing = earliest_of(lines, one, base, duration, start, table.gains)
        if at < start:
            start, chosen = at, one
        table.missing[job] = min(table.missing[job], missing)
    return start, chosen


@kernel(allocates=False)
def reserve(table: Reservations, job: int, one: int, start: float, used: int) -> None:
    """Reserve the first `used` nodes of the place that was found for a job."""
    table.start[job], table.end[job] = start, start + table.requested[job]
    table.alternative[job] = one
    use(table.lines, start)
    use(table.lines, table.end[job])
    keep(table, job, used)
    book_all(table, job, 1)


@kernel(allocates=False)
def place_job(table: Reservations, job: int, one: int, start: float) -> int:
    """Find a place for an alternative of a job from a time on; return how many nodes it has."""
    base = table.own[job] * len(table.free.jobs)
    return place_at(table.lines, one, base, start, table.requested[job], table.place)


@kernel(allocates=False)
def place_first(table: Reservations, job: int, ahead: float) -> None:
    """Reserve for a job without a place at the earliest time, if that is not too far ahead."""
    asked, now, request = table.lines.asked, table.lines.instant[0], table.requests[job]
    start, chosen, used = now, NOWHERE, 0
    table.first[job] = NONE
    if ahead >= 0:
        for one in range(asked.first[request], asked.first[request + 1]):
            used = place_job(table, job, one, now)
            if used > 0:
                chosen = one
                break
    if chosen == NOWHERE and ahead > 0:
        start, chosen = find(table, job, np.inf)
        if chosen != NOWHERE and start <= now + ahead:
            used = place_job(table, job, chosen, start)
    if used > 0:
        reserve(table, job, chosen, start, used)
        return
    table.start[job] = table.end[job] = np.inf
    if ahead <= 0 or chosen != NOWHERE:
        table.replans[0] = NOW


@kernel(allocates=False)
def place_again(table: Reservations, job: int) -> bool:
    """Place a job at an earlier time if there is one; return whether it has moved."""
    lines, start, end = table.lines, table.start[job], table.end[job]
    before, is_placed = table.alternative[job], start < np.inf
    if is_placed:
        book_all(table, job, -1)
    at, one = find(table, job, start)
    if one == NOWHERE:
        if is_placed:
            book_all(table, job, 1)
        return False
    used = place_job(table, job, one, at)
    if not is_placed:
        reserve(table, job, one, at, used)
        return True
    disuse(lines, start)
    disuse(lines, end)
    count = let_go(table, job)
    reserve(table, job, one, at, used)
    ease(table, table.own[job], count, start, end)
    if licences_of(lines, before) != NONE:
        ease_licences(table)
    return True


@kernel(allocates=False)
def place_all_again(table: Reservations) -> None:
    """Place those of the waiting jobs again that may be able to move."""
    now = table.lines.instant[0]
    table.changes[0] = 0
    for tier in range(table.tiers[0]):
        for at in range(table.waiting[0]):
            job = table.order[at]
            may_move = table.missing[job] <= 0 and table.start[job] > now
            if may_move and table.tier[job] == tier and place_again(table, job):
                table.changes[0] = 1


@kernel(allocates=False)
def replan(table: Reservations) -> None:
    """Place all waiting jobs one by one, as if none had a place."""
    now = table.lines.instant[0]
    begin_turns(table.turns)
    for at in range(table.waiting[0]):
        job = table.order[at]
        if table.start[job] < np.inf:
            book_all(table, job, -1)
            disuse(table.lines, table.start[job])
            disuse(table.lines, table.end[job])
            let_go(table, job)
    for tier in range(table.tiers[0]):
        for at in range(table.waiting[0]):
            job = table.order[at]
            if table.tier[job] == tier:
                ahead = ahead_of(table.turns, job)
                place_first(table, job, ahead)
                if table.start[job] > now:
                    note_wait(table.turns, job, ahead, table.start[job] < np.inf)


@kernel(allocates=False)
def is_free(table: Reservations, job: int, used: int) -> bool:
    """Return whether the first nodes of `place` are free: a job may run beyond its estimate."""
    asked, place, one = table.lines.asked, table.place, table.alternative[job]
    for entry in range(used):
        if most_on(asked, table.free, one, place.node[entry]) < place.chunks[entry]:
            return False
    return may_fit(asked, table.free, one)


@kernel(allocates=False)
def start_due(table: Reservations, news: News) -> None:
    """Start the jobs whose reservations have begun."""
    asked, place, log, kept = table.lines.asked, table.place, table.log, 0
    for at in range(table.waiting[0]):
        job, used = table.order[at], 0
        if table.start[job] <= news.now[0]:
            used = copy_place(table, job, place)
        if used == 0 or not is_free(table, job, used):
            table.order[kept] = job
            kept += 1
            continue
        hold(asked, table.free, table.alternative[job], place, 0, used, -1)
        tell(news, _core.START, job, 0.0)
        note_start(log, job)
        for entry in range(used):
            note_node(log, job, place.node[entry])
    table.waiting[0] = kept


@kernel(allocates=False)
def reject(table: Reservations, job: int) -> bool:
    """Forget a waiting job; return whether it had a place."""
    kept = 0
    for at in range(table.waiting[0]):
        if table.order[at] != job:
            table.order[kept] = table.order[at]
            kept += 1
    if kept == table.waiting[0]:  # it was rejected as soon as it was submitted
        return False
    table.waiting[0] = kept
    table.entries[0] -= table.most[job]
    if table.start[job] == np.inf:
        return False
    give_up(table, job)
    return True


@kernel(allocates=False)
def decide(table: Reservations, news: News) -> int:
    """Start the jobs whose reservations begin; `OPEN` if the tables have to be longer first."""
    lines, counts, has_changed = table.lines, news.counts, False
    if not table.is_heard[0]:
        for at in range(counts[_core.N_SUBMITTED]):
            table.entries[0] += table.most[news.submitted[at]]
        table.is_heard[0] = 1
    if table.entries[0] > table.room[0] or not has_room(table.log, table.entries[0]):
        return _core.OPEN
    table.is_heard[0] = 0
    if lines.instant[0] == -np.inf:
        close(lines, table.closed)
    forget(lines, news.now[0])
    for at in range(counts[_core.N_ENDED]):
        job, has_changed = news.ended[at], True
        used = copy_place(table, job, table.place)
        hold(lines.asked, table.free, table.alternative[job], table.place, 0, used, 1)
        table.entries[0] -= table.most[job]
        give_up(table, job)
    for at in range(counts[_core.N_REJECTED]):
        has_changed |= reject(table, news.rejected[at])
    is_late = table.replans[0] == NOW
    if has_changed and table.changes[0] and not is_late:
        place_all_again(table)
    for tier in range(table.tiers[0]):
        for at in range(counts[_core.N_SUBMITTED]):
            job = news.submitted[at]
            if table.tier[job] == tier:
                place_first(table, job, table.turns.ahead[job])
                enter(table.order, table.waiting[0], table.rank, job)
                table.waiting[0] += 1
    has_quotas = table.turns.quota.shape[1] > 0
    if table.replans[0] != NEVER and (table.waiting[0] > counts[_core.N_SUBMITTED] or has_quotas):
        for at in range(counts[_core.N_SUBMITTED]):
            is_late |= table.start[news.submitted[at]] > news.now[0]
    if is_late:
        table.replans[0] = IF_LATE
        replan(table)
    start_due(table, news)
    if table.waiting[0] > 0:
        ask_again(table.closed, news)
    return _core.DONE


def new_reservations(
    asked: Asked,
    free: Free,
    closed: Closed,
    requests: Ints,
    requested: Floats,
    own: Ints,
    tier: Ints,
    turns: Turns,
) -> Reservations:
    """Return the tables of an idle site; `tier` of each job, its higher ones first."""
    jobs, nodes = len(requests), len(free.jobs)
    set_size = asked.first_member[asked.nodes + 1] - asked.first_member[asked.nodes]
    most = np.minimum(asked.chunks, set_size) + asked.licences.any(axis=1)
    # of a job that can never start, any
    of_request = np.append(np.maximum.reduceat(np.append(most, 0), asked.first[:-1]), 0)
    lines = new_lines(asked, free, closed, jobs)
    different, tiers = np.unique(-tier, return_inverse=True)
    single = ("spare", "room", "entries", "waiting", "is_heard", "changes", "replans")
    following = np.arange(1, nodes + 1)
    peaks = np.zeros((nodes, lines.free.amount.shape[1]), dtype=np.int64)
    return zeroed(
        Reservations,
        jobs,
        lines=lines,
        free=Free(*(part.copy() for part in free)),
        closed=closed,
        log=new_log(jobs),
        requests=requests,
        requested=requested,
        own=own,
        tier=tiers,
        rank=np.arange(jobs, dtype=np.float64),
        most=of_request[np.maximum(requests, -1)],
        start=np.full(jobs, np.inf),
        end=np.full(jobs, np.inf),
        node=np.zeros(nodes, dtype=np.int64),
        chunks=np.zeros(nodes, dtype=np.int64),
        next=following,
        **dict(zip(single, np.zeros((len(single), 1), dtype=np.int64))),
        tiers=np.array([len(different)]),
        turns=turns,
        gains=np.zeros(len(lines.instant) + 1, dtype=np.int64),
        place=zeroed(Place, nodes),
        before=zeroed(Place, nodes),
        peaks=Free(peaks, np.zeros(nodes, dtype=np.int64), *free[2:]),
    )


def with_room(table: Reservations) -> Reservations:
    """Return the same tables with room for more entries; a job that moves has two for a moment."""
    more = 2 * int(table.entries[0]) + len(table.free.jobs)
    there, none = len(table.next), np.zeros(more, dtype=np.int64)
    following = np.concatenate((table.next, np.arange(there + 1, there + more + 1)))
    following[-1] = table.spare[0]
    return table._replace(
        lines=with_segments(table.lines, 2 * more),
        log=with_runs(table.log, more),
        node=np.concatenate((table.node, none)),
        chunks=np.concatenate((table.chunks, none)),
        next=following,
        spare=np.array([there]),
        room=table.room + more,
    )
