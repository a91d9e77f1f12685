"""Timelines of the nodes of a site: what is free on each of them over time, compiled.

The profile of `_site_profile` by nodes in place of rows: a node has a segment for each time at
which something changes on it, and these are few, whatever happens on other nodes. The segments of
all nodes are entries of one `Free`, as if each were a node, so that `most_on` holds for them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.by_reference import by_reference
from optsched.compiled import kernel
from optsched.machines._site_nodes import Asked, Free, Numbers, Place, is_full, most_on

Times = NDArray[np.float64]

NONE = -1
"""In place of a segment: there is none."""


@by_reference
class Lines(NamedTuple):
    """The segments of each node, in order of time; the last one holds indefinitely."""

    first: Numbers  # shape (nodes,)
    time: Times  # shape (segments,): when each begins
    next: Numbers
    spare: Numbers  # one entry: the first unused segment, of which `next` is the second


@by_reference
class Instants(NamedTuple):
    """Now, and the times at which reservations begin or end later, ascending."""

    time: Times
    uses: Numbers  # how many begin or end at each
    number: Numbers  # one entry: of these times


def new_lines(free: Free, segments: int) -> tuple[Lines, Free]:
    """Return the timelines of an idle site, in tables for that many segments."""
    nodes, resources = free.amount.shape
    following = np.arange(1, segments + 1)
    following[:nodes] = following[-1] = NONE
    lines = Lines(np.arange(nodes), np.full(segments, -np.inf), following, np.array([nodes]))
    amount = np.zeros((segments, resources), dtype=np.int64)
    amount[:nodes] = free.amount
    jobs = np.zeros(segments, dtype=np.int64)
    return lines, Free(amount, jobs, free.licences, free.total)


def with_segments(lines: Lines, segments: Free, more: int) -> tuple[Lines, Free]:
    """Return the same timelines in tables with a number of further segments."""
    there = len(lines.time)
    following = np.concatenate((lines.next, np.arange(there + 1, there + more + 1)))
    following[-1] = lines.spare[0]
    time = np.concatenate((lines.time, np.zeros(more)))
    amount = np.zeros((more, segments.amount.shape[1]), dtype=np.int64)
    jobs = np.concatenate((segments.jobs, np.zeros(more, dtype=np.int64)))
    longer = Free(np.concatenate((segments.amount, amount)), jobs, *segments[2:])
    return Lines(lines.first, time, following, np.array([there])), longer


def no_instants(jobs: int) -> Instants:
    """Return the instants of an idle site, with space for the reservations of that many jobs."""
    number = np.ones(1, dtype=np.int64)
    return Instants(np.zeros(2 * jobs + 2), np.zeros(2 * jobs + 2, dtype=np.int64), number)


@kernel(allocates=False)
def rank(instants: Instants, at: float) -> int:
    """Return the first instant that is not before a time."""
    low, high = 0, instants.number[0]
    while low < high:
        middle = (low + high) >> 1
        if instants.time[middle] < at:
            low = middle + 1
        else:
            high = middle
    return low


@kernel(allocates=False)
def rank_reaching(instants: Instants, duration: float, at: float) -> int:
    """Return the first instant from which a job runs beyond a time."""
    low, high = 0, instants.number[0]
    while low < high:
        middle = (low + high) >> 1
        # a sum, not a difference: a reservation ends at this very sum, so its old hole fits
        if instants.time[middle] + duration <= at:
            low = middle + 1
        else:
            high = middle
    return low


@kernel(allocates=False)
def use(instants: Instants, at: float) -> None:
    """Count a time at which a reservation begins or ends, unless it is past."""
    if at <= instants.time[0]:
        return
    here, count = rank(instants, at), instants.number[0]
    if here == count or instants.time[here] != at:
        for entry in range(count, here, -1):
            instants.time[entry] = instants.time[entry - 1]
            instants.uses[entry] = instants.uses[entry - 1]
        instants.time[here], instants.uses[here] = at, 0
        instants.number[0] = count + 1
    instants.uses[here] += 1


@kernel(allocates=False)
def disuse(instants: Instants, at: float) -> None:
    """Uncount such a time."""
    if at <= instants.time[0]:
        return
    here = rank(instants, at)
    instants.uses[here] -= 1
    if instants.uses[here] == 0:
        instants.number[0] -= 1
        for entry in range(here, instants.number[0]):
            instants.time[entry] = instants.time[entry + 1]
            instants.uses[entry] = instants.uses[entry + 1]


@kernel(allocates=False)
def forget(instants: Instants, now: float) -> None:
    """Let the instants begin now."""
    passed = rank(instants, now)
    if passed == instants.number[0] or instants.time[passed] > now:
        passed -= 1
    if passed > 0:
        instants.number[0] -= passed
        for entry in range(instants.number[0]):
            instants.time[entry] = instants.time[entry + passed]
            instants.uses[entry] = instants.uses[entry + passed]
    instants.time[0] = now


@kernel(allocates=False)
def begin_now(lines: Lines, node: int, now: float) -> int:
    """Let the timeline of a node begin now; return its first segment."""
    segment, following = lines.first[node], lines.next[lines.first[node]]
    while following != NONE and lines.time[following] <= now:
        lines.next[segment], lines.spare[0] = lines.spare[0], segment
        segment, following = following, lines.next[following]
    lines.first[node] = segment
    lines.time[segment] = now
    return int(segment)


@kernel(allocates=False)
def split(lines: Lines, segments: Free, segment: int, at: float) -> int:
    """Split a segment at a time; return the later part."""
    new = lines.spare[0]
    lines.spare[0] = lines.next[new]
    lines.time[new], lines.next[new] = at, lines.next[segment]
    lines.next[segment] = new
    segments.jobs[new] = segments.jobs[segment]
    for resource in range(segments.amount.shape[1]):
        segments.amount[new, resource] = segments.amount[segment, resource]
    return int(new)


@kernel(allocates=False)
def merge(lines: Lines, segments: Free, segment: int) -> None:
    """Merge a segment with the next one if nothing changes between them."""
    following = lines.next[segment]
    if segments.jobs[segment] != segments.jobs[following]:
        return
    for resource in range(segments.amount.shape[1]):
        if segments.amount[segment, resource] != segments.amount[following, resource]:
            return
    lines.next[segment] = lines.next[following]
    lines.next[following], lines.spare[0] = lines.spare[0], following


@kernel(allocates=False)
def book(
    asked: Asked,
    lines: Lines,
    segments: Free,
    one: int,
    node: int,
    chunks: int,
    start: float,
    end: float,
    now: float,
    sign: int,
) -> None:
    """Take (1) or free (-1) chunks on a node from `start`, or from now on, to `end`."""
    before, segment = NONE, begin_now(lines, node, now)
    following = lines.next[segment]
    while following != NONE and lines.time[following] <= start:
        before, segment, following = segment, following, lines.next[following]
    if lines.time[segment] < start:
        before, segment = segment, split(lines, segments, segment, start)
    last = segment
    while True:
        following = lines.next[last]
        if following == NONE or lines.time[following] > end:
            following = split(lines, segments, last, end)
        for resource in range(segments.amount.shape[1]):
            segments.amount[last, resource] -= sign * chunks * asked.demand[one, resource]
        if asked.exclusive[one]:
            segments.jobs[last] = -1 if sign > 0 else 0
        else:
            segments.jobs[last] += sign
        if lines.time[following] == end:
            break
        last = following
    merge(lines, segments, last)
    if before != NONE:
        merge(lines, segments, before)


@kernel(allocates=False)
def chunks_on(asked: Asked, segments: Free, one: int, segment: int) -> int:
    """Return the most chunks of an alternative that fit in a segment."""
    if is_full(asked, segments, one, segment):
        return 0
    return most_on(asked, segments, one, segment)


@kernel(allocates=False)
def lowest(
    asked: Asked, lines: Lines, segments: Free, one: int, segment: int, end: float, most: int
) -> int:
    """Return the chunks, at most `most`, that fit on a node from a segment on until a time."""
    most = min(most, chunks_on(asked, segments, one, segment))
    segment = lines.next[segment]
    while most > 0 and segment != NONE and lines.time[segment] < end:
        most = min(most, chunks_on(asked, segments, one, segment))
        segment = lines.next[segment]
    return most


@kernel(allocates=False)
def place_at(
    asked: Asked,
    lines: Lines,
    segments: Free,
    one: int,
    start: float,
    duration: float,
    now: float,
    place: Place,
) -> int:
    """Place an alternative on the first nodes that have room as long; return how many, or 0."""
    missing, used, group = asked.chunks[one], 0, asked.nodes[one]
    for member in range(asked.first_member[group], asked.first_member[group + 1]):
        node = asked.member[member]
        segment = begin_now(lines, node, now)
        following = lines.next[segment]
        while following != NONE and lines.time[following] <= start:
            segment, following = following, lines.next[following]
        if is_full(asked, segments, one, segment):
            continue
        most = lowest(asked, lines, segments, one, segment, start + duration, missing)
        if most > 0:
            place.node[used], place.chunks[used] = node, most
            used += 1
            missing -= most
            if missing == 0:
                return used
    return 0


@kernel(allocates=False)
def earliest_of(
    asked: Asked,
    lines: Lines,
    segments: Free,
    instants: Instants,
    one: int,
    duration: float,
    before: float,
    change: Numbers,
) -> tuple[float, int]:
    """Return the earliest start of an alternative before a time, and what is missing sooner.

    The start is infinite if there is none. Missing are the fewest chunks that have no place, of all
    starts that are sooner. `change`, zeros, is for the search: by how much the chunks that have a
    place are more for a start at an instant than for one just before it.
    """
    now, count, group = instants.time[0], instants.number[0], asked.nodes[one]
    for member in range(asked.first_member[group], asked.first_member[group + 1]):
        segment = begin_now(lines, asked.member[member], now)
        while segment != NONE and lines.time[segment] < before:
            following = lines.next[segment]
            level, later = chunks_on(asked, segments, one, segment), following
            end = lines.time[segment] + duration
            while level > 0 and later != NONE and lines.time[later] < end:
                level = min(level, chunks_on(asked, segments, one, later))
                later = lines.next[later]
            if level > 0:
                until = np.inf if following == NONE else lines.time[following]
                stop = rank(instants, until)
                change[rank(instants, lines.time[segment])] += level
                horizon = min(until, before) + duration
                while level > 0 and later != NONE and lines.time[later] < horizon:
                    most = chunks_on(asked, segments, one, later)
                    if most < level:
                        reaching = rank_reaching(instants, duration, lines.time[later])
                        if reaching >= stop:
                            break
                        change[reaching] -= level - most
                        level = most
                    later = lines.next[later]
                change[stop] -= level
            segment = following
    start, room, best = np.inf, 0, 0
    for instant in range(count):
        room += change[instant]
        change[instant] = 0
        if start == np.inf and instants.time[instant] < before:
            if room >= asked.chunks[one]:
                start = instants.time[instant]
            else:
                best = max(best, room)
    change[count] = 0
    return start, asked.chunks[one] - best


@kernel(allocates=False)
def best_on(
    asked: Asked,
    lines: Lines,
    segments: Free,
    one: int,
    node: int,
    freed: float,
    until: float,
    duration: float,
    before: float,
    horizon: float,
) -> int:
    """Return the chunks that fit on a node for a job that would use what was freed for a while.

    That is for a start before a time, and for as long as the job may run, up to a horizon.
    """
    best, segment, most = 0, lines.first[node], asked.most_per_node[one]
    while best < most and segment != NONE and lines.time[segment] < min(until, before):
        following = lines.next[segment]
        is_late = following == NONE or lines.time[following] + duration > freed
        if is_late and not is_full(asked, segments, one, segment):
            end = min(lines.time[segment] + duration, horizon)
            best = max(best, lowest(asked, lines, segments, one, segment, end, most))
        segment = following
    return best


@kernel(allocates=False)
def note_peak(
    lines: Lines, segments: Free, node: int, freed: float, until: float, peaks: Free, at: int
) -> None:
    """Note, as if of one node, the most of everything that a node has between two times."""
    segment, following = lines.first[node], lines.next[lines.first[node]]
    while following != NONE and lines.time[following] <= freed:
        segment, following = following, lines.next[following]
    peaks.jobs[at] = segments.jobs[segment]
    for resource in range(segments.amount.shape[1]):
        peaks.amount[at, resource] = segments.amount[segment, resource]
    while following != NONE and lines.time[following] < until:
        segment, following = following, lines.next[following]
        if segments.jobs[segment] == 0 or peaks.jobs[at] < 0:
            peaks.jobs[at] = segments.jobs[segment]
        for resource in range(segments.amount.shape[1]):
            most = max(peaks.amount[at, resource], segments.amount[segment, resource])
            peaks.amount[at, resource] = most
