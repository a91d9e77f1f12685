"""Timelines of the nodes of a site: what is free on each of them over time, compiled.

A timeline has a segment for each time at which something changes on it, and these are few, whatever
happens on other nodes. The segments of all lines are entries of one `Free`, as if each were a node,
so that `most_on` holds for them.

A node has a line for the jobs of none of the reservations of the site, and one for those of each:
the entry ``own * nodes + node``. On each it is closed at the times of `Closed`, as by a job that
shares it with no other. Licences have one line, the last, as if they were resources of one more
node: what an alternative asks of them is an alternative too, see `licences_of`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optsched.arrays import Floats, Ints
from optsched.by_reference import by_reference
from optsched.compiled import kernel
from optsched.machines._ascending import insert, position
from optsched.machines._site_nodes import Asked, Free, Place, change, is_full, most_on
from optsched.policies.site._tables import Closed

NONE = -1
"""In place of a segment: there is none."""

LICENSED = 1 << 40
"""What the licences of a job count for, in chunks: more than there are on all nodes."""


@by_reference
class Lines(NamedTuple):
    """The segments of each line, in order of time; the last one holds indefinitely.

    And the instants: now, and the times at which reservations begin or end later, or closed nodes
    are opened.
    """

    asked: Asked
    free: Free  # in each segment
    first: Ints  # the first segment of each line
    closing: Floats  # from when on no job starts on each line
    time: Floats  # when each segment begins
    next: Ints
    spare: Ints  # one entry: the first unused segment, of which `next` is the second
    instant: Floats  # ascending
    uses: Ints  # how many reservations begin or end at each
    instants: Ints  # one entry: of these


def new_lines(asked: Asked, free: Free, closed: Closed, jobs: int) -> Lines:
    """Return the lines of an idle site before the first event, without segments for jobs."""
    asked, (nodes, resources) = with_licences(asked), free.amount.shape
    kinds = len(closed.first) - 1
    lines = kinds * nodes + 1
    segments = lines + 2 * int(closed.closed.sum()) + 2  # for a moment
    amount = np.zeros((segments, asked.demand.shape[1]), dtype=np.int64)
    amount[: lines - 1, :resources] = np.tile(free.amount, (kinds, 1))
    amount[lines - 1, : len(free.licences)] = free.licences
    following = np.arange(1, segments + 1)
    following[:lines] = following[-1] = NONE
    instants = 2 * jobs + 2 + len(closed.end)
    closing = np.full(lines, np.inf)
    for own in range(kinds):
        there = closing[own * nodes : (own + 1) * nodes]
        for window in range(closed.first[own], closed.first[own + 1]):
            if closed.of_starts[window]:
                there[closed.closed[window]] = closed.start[window]
    return Lines(
        asked,
        Free(amount, np.zeros(segments, dtype=np.int64), free.licences, free.total),
        np.arange(lines),
        closing,
        np.full(segments, -np.inf),
        following,
        np.array([lines]),
        instant=np.full(instants, -np.inf),
        uses=np.zeros(instants, dtype=np.int64),
        instants=np.ones(1, dtype=np.int64),
    )


def with_licences(asked: Asked) -> Asked:
    """Return requests with an alternative for the licences of each, and one for closed nodes."""
    count, resources = asked.demand.shape
    licences = asked.licences.shape[1]
    demand = np.zeros((2 * count + 1, max(resources, licences)), dtype=np.int64)
    demand[:count, :resources], demand[count:-1, :licences] = asked.demand, asked.licences
    asks = asked.licences.any(axis=1).astype(np.int64)
    return asked._replace(
        chunks=np.concatenate((asked.chunks, asks, [0])),
        most_per_node=np.concatenate((asked.most_per_node, asks, [0])),
        exclusive=np.concatenate((asked.exclusive, asks < 0, [True])),
        demand=demand,
    )


def with_segments(lines: Lines, more: int) -> Lines:
    """Return the same timelines in tables with a number of further segments."""
    there, free = len(lines.time), lines.free
    following = np.concatenate((lines.next, np.arange(there + 1, there + more + 1)))
    following[-1] = lines.spare[0]
    none = np.zeros((more, free.amount.shape[1]), dtype=np.int64)
    amount, jobs = np.concatenate((free.amount, none)), np.concatenate((free.jobs, none[:, 0]))
    return lines._replace(
        free=free._replace(amount=amount, jobs=jobs),
        time=np.concatenate((lines.time, np.zeros(more))),
        next=following,
        spare=np.array([there]),
    )


@kernel(allocates=False)
def licences_of(lines: Lines, one: int) -> int:
    """Return the alternative that stands for the licences of another, or `NONE`."""
    licences = len(lines.asked.chunks) // 2 + one
    return licences if lines.asked.chunks[licences] > 0 else NONE


@kernel(allocates=False)
def rank(lines: Lines, at: float) -> int:
    """Return the first instant that is not before a time."""
    here = position(lines.instant, lines.instants[0], at)
    return here if lines.instant[here] == at else here + 1


@kernel(allocates=False)
def use(lines: Lines, at: float) -> None:
    """Count a time at which a reservation begins or ends, unless it is past."""
    instant, uses, count = lines.instant, lines.uses, lines.instants[0]
    if at <= instant[0]:
        return
    here = rank(lines, at)
    if here == count or instant[here] != at:
        insert(instant, count, here, at)
        insert(uses, count, here, 0)
        lines.instants[0] = count + 1
    uses[here] += 1


@kernel(allocates=False)
def disuse(lines: Lines, at: float) -> None:
    """Uncount such a time."""
    if at <= lines.instant[0]:
        return
    here = rank(lines, at)
    lines.uses[here] -= 1
    if lines.uses[here] == 0:
        drop_instants(lines, here, 1)


@kernel(allocates=False)
def drop_instants(lines: Lines, first: int, count: int) -> None:
    """Remove a number of instants."""
    instant, uses, kept = lines.instant, lines.uses, lines.instants[0] - count
    for entry in range(first, kept):
        instant[entry], uses[entry] = instant[entry + count], uses[entry + count]
    lines.instants[0] = kept


@kernel(allocates=False)
def forget(lines: Lines, now: float) -> None:
    """Let the instants begin now."""
    drop_instants(lines, 0, position(lines.instant, lines.instants[0], now))
    lines.instant[0] = now


@kernel(allocates=False)
def begin_now(lines: Lines, line: int) -> int:
    """Let a line begin now; return its first segment."""
    segment, now = lines.first[line], lines.instant[0]
    following = lines.next[segment]
    while following != NONE and lines.time[following] <= now:
        lines.next[segment], lines.spare[0] = lines.spare[0], segment
        segment, following = following, lines.next[following]
    lines.first[line] = segment
    lines.time[segment] = now
    return int(segment)


@kernel(allocates=False)
def segment_at(lines: Lines, line: int, at: float) -> int:
    """Let a line begin now; return its segment that holds at a time, the first if that is past."""
    segment = begin_now(lines, line)
    following = lines.next[segment]
    while following != NONE and lines.time[following] <= at:
        segment, following = following, lines.next[following]
    return int(segment)


@kernel(allocates=False)
def split(lines: Lines, segment: int, at: float) -> int:
    """Split a segment at a time; return the later part."""
    free, new = lines.free, lines.spare[0]
    lines.spare[0] = lines.next[new]
    lines.time[new], lines.next[new] = at, lines.next[segment]
    lines.next[segment] = new
    free.jobs[new] = free.jobs[segment]
    for resource in range(free.amount.shape[1]):
        free.amount[new, resource] = free.amount[segment, resource]
    return int(new)


@kernel(allocates=False)
def merge(lines: Lines, segment: int) -> None:
    """Merge a segment with the next one if nothing changes between them."""
    free, following = lines.free, lines.next[segment]
    if free.jobs[segment] != free.jobs[following]:
        return
    for resource in range(free.amount.shape[1]):
        if free.amount[segment, resource] != free.amount[following, resource]:
            return
    lines.next[segment] = lines.next[following]
    lines.next[following], lines.spare[0] = lines.spare[0], following


@kernel(allocates=False)
def book(
    lines: Lines, one: int, line: int, chunks: int, start: float, end: float, sign: int
) -> None:
    """Take (1) or free (-1) chunks on a line from `start`, or from now on, to `end`."""
    before, segment = NONE, begin_now(lines, line)
    following = lines.next[segment]
    while following != NONE and lines.time[following] <= start:
        before, segment, following = segment, following, lines.next[following]
    if lines.time[segment] < start:
        before, segment = segment, split(lines, segment, start)
    last = segment
    while True:
        following = lines.next[last]
        if following == NONE or lines.time[following] > end:
            following = split(lines, last, end)
        change(lines.asked, lines.free, one, last, chunks, -sign)
        if lines.time[following] == end:
            break
        last = following
    merge(lines, last)
    if before != NONE:
        merge(lines, before)


@kernel(allocates=False)
def close(lines: Lines, closed: Closed) -> None:
    """Close nodes at the times at which they are, before the first event."""
    nobody, nodes = len(lines.asked.chunks) - 1, closed.closed.shape[1]
    for own in range(len(closed.first) - 1):
        for window in range(closed.first[own], closed.first[own + 1]):
            start, end = closed.start[window], closed.end[window]
            for node in range(nodes):
                if closed.closed[window, node] and not closed.of_starts[window]:
                    book(lines, nobody, own * nodes + node, 0, start, end, 1)
            if end < np.inf:
                use(lines, end)


@kernel(allocates=False)
def chunks_on(asked: Asked, free: Free, one: int, segment: int) -> int:
    """Return the most chunks of an alternative that fit in a segment."""
    return 0 if is_full(asked, free, one, segment) else most_on(asked, free, one, segment)


@kernel(allocates=False)
def lowest(lines: Lines, one: int, segment: int, end: float, most: int) -> int:
    """Return the chunks, at most `most`, that fit on a line from a segment on until a time."""
    asked, free = lines.asked, lines.free
    most = min(most, chunks_on(asked, free, one, segment))
    segment = lines.next[segment]
    while most > 0 and segment != NONE and lines.time[segment] < end:
        most = min(most, chunks_on(asked, free, one, segment))
        segment = lines.next[segment]
    return most


@kernel(allocates=False)
def is_licensed(lines: Lines, one: int, start: float, end: float) -> bool:
    """Return whether there are the licences of an alternative from one time to another."""
    licences, pool = licences_of(lines, one), len(lines.first) - 1
    if licences == NONE:
        return True
    return lowest(lines, licences, segment_at(lines, pool, start), end, 1) > 0


@kernel(allocates=False)
def place_at(lines: Lines, one: int, base: int, start: float, duration: float, place: Place) -> int:
    """Place an alternative on the first nodes that have room as long; return how many, or 0."""
    asked, free, used = lines.asked, lines.free, 0
    missing, group = asked.chunks[one], asked.nodes[one]
    if not is_licensed(lines, one, start, start + duration):
        return 0
    for member in range(asked.first_member[group], asked.first_member[group + 1]):
        node = asked.member[member]
        if start >= lines.closing[base + node]:
            continue
        segment = segment_at(lines, base + node, start)
        if is_full(asked, free, one, segment):
            continue
        most = lowest(lines, one, segment, start + duration, missing)
        if most > 0:
            place.node[used], place.chunks[used] = node, most
            used += 1
            missing -= most
            if missing == 0:
                return used
    return 0


@kernel(allocates=False)
def earliest_of(
    lines: Lines, one: int, base: int, duration: float, before: float, gains: Ints
) -> tuple[float, int]:
    """Return the earliest start of an alternative before a time, and what is missing sooner.

    The start is infinite if there is none. Missing are the fewest chunks that have no place, of all
    starts that are sooner; without the licences, `LICENSED` more. `gains`, zeros, is for the
    search: by how much the chunks that have a place are more for a start at an instant than for one
    just before it.
    """
    asked, free, licences = lines.asked, lines.free, licences_of(lines, one)
    count, wanted, group = lines.instants[0], asked.chunks[one], asked.nodes[one]
    stop, what, each = asked.first_member[group + 1], one, 1
    for member in range(asked.first_member[group], stop + (licences != NONE)):
        line = base + asked.member[member] if member < stop else len(lines.first) - 1
        if member == stop:
            what, each = licences, LICENSED
            wanted += LICENSED
        segment = begin_now(lines, line)
        last_start = min(before, lines.closing[line])
        while segment != NONE and lines.time[segment] < last_start:
            following = lines.next[segment]
            level, later = chunks_on(asked, free, what, segment), following
            end = lines.time[segment] + duration
            while level > 0 and later != NONE and lines.time[later] < end:
                level = min(level, chunks_on(asked, free, what, later))
                later = lines.next[later]
            if level > 0:
                until = np.inf if following == NONE else lines.time[following]
                until = min(until, lines.closing[line])
                last = rank(lines, until)
                gains[rank(lines, lines.time[segment])] += each * level
                horizon = min(until, before) + duration
                while level > 0 and later != NONE and lines.time[later] < horizon:
                    most = chunks_on(asked, free, what, later)
                    if most < level:
                        # a sum, not a difference: a reservation ends at this very sum
                        at = lines.time[later]
                        reaching = position(lines.instant, count, at, duration) + 1
                        if reaching >= last:
                            break
                        gains[reaching] -= each * (level - most)
                        level = most
                    later = lines.next[later]
                gains[last] -= each * level
            segment = following
    start, room, best = np.inf, 0, 0
    for instant in range(count):
        room += gains[instant]
        gains[instant] = 0
        if start == np.inf and lines.instant[instant] < before:
            if room >= wanted:
                start = lines.instant[instant]
            else:
                best = max(best, room)
    gains[count] = 0
    return start, wanted - best


@kernel(allocates=False)
def best_on(
    lines: Lines,
    one: int,
    line: int,
    freed: float,
    until: float,
    duration: float,
    before: float,
    horizon: float,
) -> int:
    """Return the most chunks on a line for a job that starts in time to use what is freed."""
    asked, free = lines.asked, lines.free
    best, segment, most = 0, lines.first[line], asked.most_per_node[one]
    last_start = min(until, before, lines.closing[line])
    while best < most and segment != NONE and lines.time[segment] < last_start:
        following = lines.next[segment]
        is_late = following == NONE or lines.time[following] + duration > freed
        if is_late and not is_full(asked, free, one, segment):
            end = min(lines.time[segment] + duration, horizon)
            best = max(best, lowest(lines, one, segment, end, most))
        segment = following
    return best


@kernel(allocates=False)
def note_peak(lines: Lines, line: int, freed: float, until: float, peaks: Free, at: int) -> None:
    """Note, as if of one node, the most of everything that a line has between two times."""
    free, segment = lines.free, segment_at(lines, line, freed)
    following = lines.next[segment]
    peaks.jobs[at] = free.jobs[segment]
    for resource in range(free.amount.shape[1]):
        peaks.amount[at, resource] = free.amount[segment, resource]
    while following != NONE and lines.time[following] < until:
        segment, following = following, lines.next[following]
        if free.jobs[segment] == 0 or peaks.jobs[at] < 0:
            peaks.jobs[at] = free.jobs[segment]
        for resource in range(free.amount.shape[1]):
            most = max(peaks.amount[at, resource], free.amount[segment, resource])
            peaks.amount[at, resource] = most
