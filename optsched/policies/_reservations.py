"""Reservations of conservative backfilling by runs of like jobs, compiled.

`place_again` states what is computed here: at a submission the job gets the earliest
reservation, and after an end every waiting job, in order of submission, is taken out of the profile
and placed again. The schedules are the same; the cost follows the jobs that move in
place of the jobs that wait.

Terms
-----
kind
    Pair of processors and requested time.
width
    Number of processors of a kind.
run
    Waiting jobs that are adjacent in the queue and have the same kind and reservation. A run is one
    entry and moves as one.

Argument
--------
Taking a job out of the profile adds its width from its start s on only. So a job of width w and
duration d can move to t < s if and only if w processors are free on [t, min(t + d, s)), with the
job's own reservation in place (*). By (*), a job that can move either finds a window that is free
as a whole before s, or w processors are free just before s. Two comparisons find the jobs to
examine:

1. The *bound* of a kind: no free window of the kind begins before it. It rises to what a search has
   found, and a rise of the profile through the width of the kind lowers it to the start of the
   hole.
2. The *span* of a width: the hull of the times at which the profile rose through the width since
   the jobs were examined. A job whose reservation begins outside the span has a neighbor before it
   that is still too busy. There are two spans, for this pass and for the next, because a rise
   behind a job's turn concerns it in the next pass only.

Of a run at s that can move to t, with m times w processors free on [t, min(t + d, s)), the first m
jobs move at once: after one of them has moved, by (*) the next can go nowhere else, and nothing
before s has become more free.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optsched.by_reference import Record, by_reference, record
from optsched.compiled import kernel
from optsched.machines._ascending import add, delete, insert, position, remove
from optsched.machines._line_nodes import Log, new_log, note
from optsched.simulator import _core
from optsched.simulator._core import News, Numbers, Times, tell, zeroed

HEAD, STOP = 0, 1
"""Entries of `FreeSteps.ends`: the profile is in the entries from `HEAD` to before `STOP`. Those
before it are earlier times, ascending too."""

SHORT = 1024
"""Number of dropped entries from which the profile moves to the front of its arrays."""


@by_reference
class FreeSteps(NamedTuple):
    """Free processors over time."""

    times: Times
    free: Numbers
    ends: Numbers


def new_profile(free: int, jobs: int) -> FreeSteps:
    """Return the profile of an idle machine, with room for that many jobs."""
    room = 4 * jobs + 2 * SHORT  # untouched pages of zeros take no memory
    times, level = np.zeros(room), np.zeros(room, dtype=np.int64)
    times[0], level[0] = -np.inf, free
    return FreeSteps(times, level, np.array([0, 1]))


@kernel(allocates=False)
def entry_at(profile: FreeSteps, at: float) -> int:
    """Return the last entry whose time is at most `at`, which is not before the profile."""
    return position(profile.times, profile.ends[STOP], at)


@kernel(allocates=False)
def entry_from(profile: FreeSteps, entry: int, at: float) -> int:
    """Return the last entry whose time is at most `at`, which is `entry` or a later one."""
    times, stop = profile.times, profile.ends[STOP]
    step = 1
    while entry + step < stop and times[entry + step] <= at:
        entry += step
        step *= 2
    high = min(stop, entry + step)
    return entry + position(times[entry:high], high - entry, at)


@kernel(allocates=False)
def split(profile: FreeSteps, entry: int, at: float) -> int:
    """Let an entry begin at a time, which lies in `entry`; return it."""
    if profile.times[entry] == at:
        return entry
    insert(profile.times, profile.ends[STOP], entry + 1, at)
    insert(profile.free, profile.ends[STOP], entry + 1, profile.free[entry])
    profile.ends[STOP] += 1
    return entry + 1


@kernel(allocates=False)
def merge(profile: FreeSteps, entry: int) -> int:
    """Merge an entry with an equal one before it; return the entry that holds then."""
    if entry == profile.ends[HEAD] or profile.free[entry] != profile.free[entry - 1]:
        return entry
    delete(profile.times, profile.ends[STOP], entry)
    delete(profile.free, profile.ends[STOP], entry)
    profile.ends[STOP] -= 1
    return entry - 1


@kernel(allocates=False)
def change(profile: FreeSteps, start: float, end: float, processors: int, entry: int) -> int:
    """Add processors from `start`, which lies in `entry`, to `end`; return the entry of `start`."""
    first = split(profile, entry, start)
    last = split(profile, entry_from(profile, first, end), end)
    for each in range(first, last):
        profile.free[each] += processors
    merge(profile, last)
    return merge(profile, first)


@kernel(allocates=False)
def first_window(
    profile: FreeSteps, since: float, processors: int, duration: float
) -> tuple[float, int]:
    """Return the earliest start from `since` of a free window, and its entry."""
    times, free, stop = profile.times, profile.free, profile.ends[STOP]
    entry = entry_at(profile, since)
    start = since
    while True:
        while free[entry] < processors:
            entry += 1
            start = times[entry]
        first = entry
        # a sum, not a difference: a reservation ends at this very sum, so its old hole fits
        end = start + duration
        entry += 1
        while entry < stop and times[entry] < end and free[entry] >= processors:
            entry += 1
        if entry == stop or times[entry] >= end:
            return start, first


@kernel(allocates=False)
def forget(profile: FreeSteps, now: float) -> None:
    """Drop the entries before `now`."""
    here = entry_at(profile, now)
    profile.times[here] = now
    profile.ends[HEAD] = here
    count = profile.ends[STOP] - here
    if here > SHORT and here > count:
        for e in range(count):
            profile.times[e] = profile.times[here + e]
            profile.free[e] = profile.free[here + e]
        profile.ends[HEAD], profile.ends[STOP] = 0, count


@kernel(allocates=False)
def place_again(
    profile: FreeSteps,
    now: float,
    jobs: Numbers,
    processors: Numbers,
    duration: Times,
    start: Times,
) -> bool:
    """Give each of some jobs the earliest reservation, in place of an earlier one if any.

    A job finds at least its old place, so no reservation is ever delayed. Returns whether any start
    has changed, infinite without a reservation: if not, another call changes nothing until further
    processors are freed.
    """
    moved = False
    for job in jobs:
        width, since, end = processors[job], max(start[job], now), start[job] + duration[job]
        if since < end < np.inf:
            change(profile, since, end, width, entry_at(profile, since))
        at, entry = first_window(profile, now, width, duration[job])
        change(profile, at, at + duration[job], -width, entry)
        moved |= at != start[job]
        start[job] = at
    return moved


COUNTS = record("runs side settled widths")
"""Number of runs, side of `Runs` that holds them, whether the last pass moved no job and nothing
was freed since, number of waiting widths."""


@by_reference
class Kinds(NamedTuple):
    """The kinds of all jobs of a trace, ascending by processors, then requested time.

    Waiting jobs of one kind are alike but for their place in the queue, and there are few kinds
    even in queues of thousands of jobs.
    """

    of_job: Numbers
    rank: Numbers  # number of each job among those of its kind
    jobs: Numbers  # jobs[first_job[kind] + rank] is the job
    first_job: Numbers
    processors: Numbers
    duration: Times


def kinds_of(processors: Numbers, durations: Times) -> Kinds:
    """Return the kinds of jobs in order of submission, both arrays of shape (jobs,)."""
    count = len(processors)
    jobs = np.lexsort((durations, processors))
    wide, long = processors[jobs], durations[jobs]
    begins = np.ones(count, dtype=np.bool_)
    begins[1:] = (wide[1:] != wide[:-1]) | (long[1:] != long[:-1])
    first_job = np.flatnonzero(begins)
    kind = begins.cumsum() - 1
    of_job, rank = np.empty((2, count), dtype=np.int64)
    of_job[jobs] = kind
    rank[jobs] = np.arange(count) - first_job[kind]
    return Kinds(of_job, rank, jobs, first_job, wide[first_job], long[first_job])


@by_reference
class Bounds(NamedTuple):
    """What is known of each kind."""

    width: Numbers  # number of the width
    waiting: Numbers  # waiting jobs
    bound: Times


@by_reference
class Widths(NamedTuple):
    """The widths of the kinds, ascending."""

    processors: Numbers
    low: Times  # the span of this pass: above low, to high
    high: Times
    next_low: Times  # the span of the next pass
    next_high: Times
    first_kind: Numbers
    num_kinds: Numbers  # waiting kinds of the width
    kinds: Numbers  # kinds[first_kind[width]:][:num_kinds[width]] are these, by duration
    listed: Numbers  # the waiting widths, ascending


@by_reference
class Runs(NamedTuple):
    """Runs in the order of the queue; two sides, as a pass reads one and writes the other."""

    start: Times
    kind: Numbers
    rank: Numbers  # rank of the first job
    jobs: Numbers


@by_reference
class Reservations(NamedTuple):
    """The reservations of all waiting jobs."""

    profile: FreeSteps
    kinds: Kinds
    bounds: Bounds
    widths: Widths
    runs: Runs
    counts: Record
    soonest: Times  # start of the first reservation
    start: Times  # of each job that has started
    started: Numbers  # jobs that start now, in order of submission
    log: Log


def no_reservations(processors: Numbers, durations: Times, free: int) -> Reservations:
    """Return the table before the first event, for a machine with so many processors."""
    jobs, kinds = len(processors), kinds_of(processors, durations)
    widths, width = np.unique(kinds.processors, return_inverse=True)
    number, counts = len(widths), np.zeros(1, dtype=COUNTS)
    counts["settled"] = 1
    return zeroed(
        Reservations,
        jobs,
        profile=new_profile(free, jobs),
        kinds=kinds,
        bounds=zeroed(Bounds, len(width), width=width),
        widths=zeroed(
            Widths,
            number,
            processors=widths,
            low=np.full(number, np.inf),
            high=np.full(number, -np.inf),
            next_low=np.full(number, np.inf),
            next_high=np.full(number, -np.inf),
            first_kind=np.searchsorted(width, np.arange(number)),
            kinds=np.zeros(len(width), dtype=np.int64),
        ),
        runs=zeroed(Runs, (2, jobs)),
        counts=counts,
        soonest=np.full(1, np.inf),
        start=np.full(jobs, np.inf),
        log=new_log(jobs),
    )


@kernel(allocates=False)
def note_rise(table: Reservations, start: float, end: float, processors: int, first: int) -> None:
    """Lower bounds and widen spans after a rise of the profile from `start`, in `first`, on."""
    profile, kinds, bounds, widths = table.profile, table.kinds, table.bounds, table.widths
    times, free = profile.times, profile.free
    head, stop = profile.ends[HEAD], profile.ends[STOP]
    last = first
    lowest, highest = free[first], free[first]
    while last < stop and times[last] < end:
        lowest = min(lowest, free[last])
        highest = max(highest, free[last])
        last += 1
    lowest -= processors
    for place in range(table.counts[0].widths):
        width = widths.listed[place]
        needed = widths.processors[width]
        if needed <= lowest:
            continue
        if needed > highest:
            break
        begin = widths.first_kind[width]
        behind = begin + widths.num_kinds[width]
        longest = kinds.duration[widths.kinds[behind - 1]]
        low, high = np.inf, -np.inf
        e = first
        while e < last:
            if free[e] < needed:
                e += 1
                continue
            opens = e
            if e == first:
                # a hole that was open for the longest duration had windows of all kinds
                while opens > head and free[opens - 1] >= needed and times[opens] + longest > start:
                    opens -= 1
            crossed = False
            while e < last and free[e] >= needed:
                if free[e] - processors < needed:
                    crossed = True
                    low = min(low, max(times[e], start))
                    high = max(high, times[e + 1] if e + 1 < stop else np.inf)
                e += 1
            if not crossed:
                continue
            since = times[opens]
            closes = e
            while closes < stop and free[closes] >= needed and times[closes] < since + longest:
                closes += 1
            until = times[closes] if closes < stop else np.inf
            for i in range(begin, behind):
                kind = widths.kinds[i]
                if since + kinds.duration[kind] > until:
                    break
                bounds.bound[kind] = min(bounds.bound[kind], since)
        if high > -np.inf:
            widths.low[width] = min(widths.low[width], low)
            widths.high[width] = max(widths.high[width], high)
            widths.next_low[width] = min(widths.next_low[width], low)
            widths.next_high[width] = max(widths.next_high[width], high)


@kernel(allocates=False)
def begin_waiting(table: Reservations, kind: int) -> None:
    """Count a waiting job, and list its kind and width if they did not wait."""
    bounds, widths, counts = table.bounds, table.widths, table.counts[0]
    bounds.waiting[kind] += 1
    if bounds.waiting[kind] > 1:
        return
    width = bounds.width[kind]
    if widths.num_kinds[width] == 0:
        add(widths.listed, counts.widths, width)
        counts.widths += 1
    # kinds of a width are numbered by duration
    add(widths.kinds[widths.first_kind[width] :], widths.num_kinds[width], kind)
    widths.num_kinds[width] += 1


@kernel(allocates=False)
def end_waiting(table: Reservations, kind: int, jobs: int) -> None:
    """Uncount waiting jobs, and unlist their kind and width if no others wait."""
    bounds, widths, counts = table.bounds, table.widths, table.counts[0]
    bounds.waiting[kind] -= jobs
    if bounds.waiting[kind] > 0:
        return
    width = bounds.width[kind]
    remove(widths.kinds[widths.first_kind[width] :], widths.num_kinds[width], kind)
    widths.num_kinds[width] -= 1
    if widths.num_kinds[width] == 0:
        remove(widths.listed, counts.widths, width)
        counts.widths -= 1


@kernel(allocates=False)
def find_move(
    table: Reservations, kind: int, start: float, above: bool, within: bool
) -> tuple[float, int, int]:
    """Return where jobs of a run at `start` can move, its entry, and how many of them can."""
    profile, kinds, bounds = table.profile, table.kinds, table.bounds
    times, free = profile.times, profile.free
    head, stop = profile.ends[HEAD], profile.ends[STOP]
    processors, duration = kinds.processors[kind], kinds.duration[kind]
    target, entry = start, 0
    if within:
        e = entry_at(profile, start)
        if times[e] == start:
            e -= 1
        if free[e] >= processors:
            while e > head and free[e - 1] >= processors:
                e -= 1
            target, entry = times[e], e
    if above and bounds.bound[kind] < target:
        since = max(bounds.bound[kind], times[head])
        found, e = first_window(profile, since, processors, duration)
        bounds.bound[kind] = found
        if found < target:
            target, entry = found, e
    if target == start:
        return start, 0, 0
    until = min(target + duration, start)
    lowest = free[entry]
    e = entry + 1
    while e < stop and times[e] < until:
        lowest = min(lowest, free[e])
        e += 1
    return target, entry, lowest // processors


@kernel(allocates=False)
def move(
    table: Reservations, kind: int, start: float, target: float, entry: int, jobs: int
) -> None:
    """Move the reservations of jobs of a kind from `start` to `target`, in `entry`."""
    profile, kinds = table.profile, table.kinds
    duration, processors = kinds.duration[kind], jobs * kinds.processors[kind]
    entry = change(profile, target, min(target + duration, start), -processors, entry)
    since, end = max(start, target + duration), start + duration
    if since < end:
        entry = entry_from(profile, entry, since)
        entry = change(profile, since, end, processors, entry)
        note_rise(table, since, end, processors, entry)


@kernel(allocates=False)
def append_run(
    runs: Runs, side: int, number: int, start: float, kind: int, rank: int, jobs: int
) -> int:
    """Append a run, or extend the last one by its jobs; return the number of runs."""
    last = number - 1
    if (
        number > 0
        and runs.kind[side, last] == kind
        and runs.start[side, last] == start
        and runs.rank[side, last] + runs.jobs[side, last] == rank
    ):
        runs.jobs[side, last] += jobs
        return number
    runs.start[side, number] = start
    runs.kind[side, number] = kind
    runs.rank[side, number] = rank
    runs.jobs[side, number] = jobs
    return number + 1


@kernel(allocates=False)
def pass_over(table: Reservations, now: float, replaces: bool) -> int:
    """Start due jobs, after moving reservations if `replaces`; return the number in `started`."""
    kinds, bounds, widths = table.kinds, table.bounds, table.widths
    runs, counts = table.runs, table.counts[0]
    if replaces:
        for place in range(counts.widths):
            width = widths.listed[place]
            widths.low[width], widths.high[width] = widths.next_low[width], widths.next_high[width]
            widths.next_low[width], widths.next_high[width] = np.inf, -np.inf
    moved, soonest, count = False, np.inf, 0
    side, number = counts.side, 0
    for run in range(counts.runs):
        start, kind = runs.start[side, run], runs.kind[side, run]
        rank, left = runs.rank[side, run], runs.jobs[side, run]
        width = bounds.width[kind]
        while left > 0:
            target, jobs = start, left
            if replaces and start > now:
                above = start > bounds.bound[kind]
                within = widths.low[width] < start <= widths.high[width]
                if above or within:
                    target, entry, room = find_move(table, kind, start, above, within)
                    if target < start:
                        moved = True
                        jobs = min(room, left)
                        move(table, kind, start, target, entry, jobs)
            if target <= now:
                first = kinds.first_job[kind] + rank
                for place in range(first, first + jobs):
                    table.started[count] = kinds.jobs[place]
                    count += 1
                end_waiting(table, kind, jobs)
            else:
                soonest = min(soonest, target)
                number = append_run(runs, 1 - side, number, target, kind, rank, jobs)
            rank += jobs
            left -= jobs
    counts.runs, counts.side = number, 1 - side
    table.soonest[0] = soonest
    if replaces:
        counts.settled = not moved
    return count


@kernel(allocates=False)
def release(table: Reservations, now: float, ended: Numbers) -> None:
    """Free the processors of ended jobs until their estimated ends."""
    kinds, profile, start = table.kinds, table.profile, table.start
    i = 0
    while i < len(ended):  # those of one estimated end together: the profile rises once
        kind = kinds.of_job[ended[i]]
        end = start[ended[i]] + kinds.duration[kind]
        processors = 0
        while i < len(ended):
            kind = kinds.of_job[ended[i]]
            if start[ended[i]] + kinds.duration[kind] != end:
                break
            processors += kinds.processors[kind]
            i += 1
        if end > now:
            table.counts[0].settled = 0
            first = change(profile, now, end, processors, profile.ends[HEAD])
            note_rise(table, now, end, processors, first)


@kernel(allocates=False)
def submit(table: Reservations, now: float, job: int) -> float:
    """Reserve processors for a submitted job; return the start of the reservation."""
    kinds, bounds, runs, counts = table.kinds, table.bounds, table.runs, table.counts[0]
    kind = kinds.of_job[job]
    processors, duration = kinds.processors[kind], kinds.duration[kind]
    if bounds.waiting[kind] == 0:
        bounds.bound[kind] = now
    since = max(bounds.bound[kind], now)
    start, entry = first_window(table.profile, since, processors, duration)
    bounds.bound[kind] = start
    change(table.profile, start, start + duration, -processors, entry)
    if start > now:
        begin_waiting(table, kind)
        side, rank = counts.side, kinds.rank[job]
        counts.runs = append_run(runs, side, counts.runs, start, kind, rank, 1)
        table.soonest[0] = min(table.soonest[0], start)
    return start


@kernel(allocates=False)
def decide(table: Reservations, news: News) -> int:
    """Update the reservations, and start the jobs whose reservations begin."""
    now, counts, log, started = news.now[0], news.counts, table.log, table.started
    ended = news.ended[: counts[_core.N_ENDED]]
    submitted = news.submitted[: counts[_core.N_SUBMITTED]]
    for job in ended:
        note(log, ~job)
    forget(table.profile, now)
    release(table, now, ended)
    count, replaces = 0, len(ended) > 0 and table.counts[0].settled == 0
    if replaces or table.soonest[0] <= now:
        count = pass_over(table, now, replaces)
    for job in submitted:
        if submit(table, now, job) <= now:
            started[count] = job
            count += 1
    for place in range(count):
        table.start[started[place]] = now
        note(log, started[place])
        tell(news, _core.START, started[place], 0.0)
    return _core.DONE


def reserved_starts(table: Reservations) -> dict[int, float]:
    """Return the start of the reservation of each waiting job, in the order of the queue."""
    runs, kinds, side = table.runs, table.kinds, int(table.counts[0].side)
    found = {}
    for run in range(table.counts[0].runs):
        first = kinds.first_job[runs.kind[side, run]] + runs.rank[side, run]
        for job in kinds.jobs[first : first + runs.jobs[side, run]].tolist():
            found[job] = float(runs.start[side, run])
    return found
