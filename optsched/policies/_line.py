"""Decisions on a line in an order of the queue, with or without EASY backfilling, compiled.

They only count processors; `optsched.machines._line_nodes` tells which nodes each job held.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optsched.by_reference import Record, by_reference, record
from optsched.compiled import kernel
from optsched.machines._ascending import delete, insert, is_behind, place_of, position
from optsched.machines._line_nodes import Log, new_log, note
from optsched.simulator._core import (
    DECIDE,
    DONE,
    LAST,
    N_ENDED,
    N_SUBMITTED,
    START,
    Core,
    News,
    Numbers,
    Times,
    Way,
    advance,
    tell,
)

NOBODY = -1

COUNTS = record(
    "free first last running head extra promised front floor", "shadow promised_start sure_until"
)
"""Free processors; the waiting jobs are ``queue[first:last]``; running jobs; the blocked job with
the reservation, and the processors that it leaves over; the job of which a start was promised; jobs
of the front, and the job that others are compared with. Shadow time of the blocked job, its
earliest since it is blocked; until when all jobs behind the front are behind its floor."""

MOST = 32
"""Jobs of the front, and candidates that are sorted at a time."""

MARGIN = 1e-9
"""Relative difference of slopes that is beyond rounding."""


class Rule(NamedTuple):
    """The order of the queue, and what happens behind a blocked job."""

    power: int  # above 0: the score is -(wait / unit)^power * weight; else it does not change
    backfills: bool
    shortest_first: bool  # order of backfilling: by requested time
    keeps: bool  # the reservation, when its time has passed


@by_reference
class Line(NamedTuple):
    """The jobs, those that wait and those that run; equal scores are in order of submission."""

    processors: Numbers
    requested: Times
    submit: Times
    rank: Times  # the queue is in the order of this, which does not change
    score: Times  # the lowest is first: the rank, unless it changes
    unit: Times
    weight: Times
    slope: Times  # scores are in the reverse order of this times the wait
    queue: Numbers
    front: Numbers  # the first waiting jobs if scores change, in any order
    candidates: Numbers
    estimated_end: Times
    end: Times  # estimated ends of the running jobs, ascending
    width: Numbers  # their processors
    log: Log
    counts: Record


def new_line(processors: Numbers, requested: Times, submit: Times, nodes: int) -> Line:
    """Return the state before the first event, with scores in order of submission."""
    jobs = len(processors)
    running = min(jobs, nodes) + 1
    queue, candidates = np.zeros((2, 2 * jobs), dtype=np.int64)
    rank = np.arange(jobs, dtype=np.float64)
    counts = np.zeros(1, dtype=COUNTS)
    counts["free"], counts["head"], counts["promised"], counts["floor"] = nodes, *(NOBODY,) * 3
    return Line(
        processors,
        requested,
        submit,
        rank,
        score=rank,
        unit=np.ones(1),
        weight=np.ones(1),
        slope=np.ones(1),
        queue=queue,
        front=np.zeros(MOST, dtype=np.int64),
        candidates=candidates,
        estimated_end=np.zeros(jobs),
        end=np.zeros(running),
        width=np.zeros(running, dtype=np.int64),
        log=new_log(jobs),
        counts=counts,
    )


@kernel(allocates=False)
def bring_forward(jobs: Numbers, number: int, key: Times) -> int:
    """Move the `MOST` jobs of lowest key to the front, in order; return how many these are."""
    first = 0
    for at in range(number):
        job, place = jobs[at], first
        if first < MOST:
            first += 1
        elif is_behind(key, jobs[MOST - 1], job):
            place = MOST - 1
            jobs[at] = jobs[place]
        else:
            continue
        while place > 0 and is_behind(key, jobs[place - 1], job):
            jobs[place] = jobs[place - 1]
            place -= 1
        jobs[place] = job
    return first


@kernel(allocates=False)
def dequeue(line: Line, job: int) -> None:
    """Remove a job from the queue; of the parts before and behind it, the shorter moves."""
    counts, queue = line.counts[0], line.queue
    first, last = counts.first, counts.last
    at = place_of(queue, first, last, line.rank, job)
    if at - first < last - at:
        insert(queue, at, first, 0)
        counts.first += 1
    else:
        delete(queue, last, at)
        counts.last -= 1


@kernel(allocates=False)
def begin(line: Line, news: News, job: int) -> None:
    """Start a waiting job."""
    counts, width = line.counts[0], line.processors[job]
    dequeue(line, job)
    for at in range(counts.front):
        if line.front[at] == job:
            counts.front -= 1
            line.front[at] = line.front[counts.front]
            break
    end = line.estimated_end[job] = news.now[0] + line.requested[job]
    place = position(line.end, counts.running, end) + 1
    insert(line.end, counts.running, place, end)
    insert(line.width, counts.running, place, width)
    counts.running += 1
    counts.free -= width
    note(line.log, job)
    tell(news, START, job, 0.0)


@kernel(allocates=False)
def end(line: Line, job: int) -> None:
    """Free the processors of a job."""
    counts, width = line.counts[0], line.processors[job]
    place = position(line.end, counts.running, line.estimated_end[job])
    while line.width[place] != width:  # those of equal end and width are exchangeable
        place -= 1
    delete(line.end, counts.running, place)
    delete(line.width, counts.running, place)
    counts.running -= 1
    counts.free += width
    note(line.log, ~job)


@kernel(allocates=False)
def set_score(line: Line, rule: Rule, job: int, now: float) -> float:
    """Compute the score of a job that changes while it waits."""
    waits = (now - line.submit[job]) / line.unit[job]
    if rule.power == 3:
        waits = waits * waits * waits
    line.score[job] = -waits * line.weight[job]
    return float(line.score[job])


@kernel(allocates=False)
def sure_until(line: Line, job: int, now: float) -> float:
    """Return until when a job is behind the floor of the front, whatever is rounded.

    Both are lines over time, which cross once at most.
    """
    submit, slope, floor = line.submit, line.slope, line.counts[0].floor
    own = slope[job] + MARGIN * abs(slope[job])
    other = slope[floor] - MARGIN * abs(slope[floor])
    ahead = other * (now - submit[floor]) - own * (now - submit[job])
    if ahead >= 0.0 and own <= other:
        return np.inf
    is_alike = submit[job] == submit[floor] and line.unit[job] == line.unit[floor]
    if is_alike and line.weight[job] == line.weight[floor]:
        return np.inf
    return now + ahead / (own - other) if ahead >= 0.0 else -np.inf


@kernel(allocates=False)
def find_front(line: Line, rule: Rule, now: float) -> None:
    """Find the first jobs, and until when none of the others can be the first."""
    counts, queue, front, score = line.counts[0], line.queue, line.front, line.score
    number = 0
    for place in range(counts.first, counts.last):
        job = queue[place]
        new = set_score(line, rule, job, now)
        if number == MOST and new >= score[front[MOST - 1]]:
            continue
        at = min(number, MOST - 1)
        while at > 0 and new < score[front[at - 1]]:
            front[at] = front[at - 1]
            at -= 1
        front[at] = job
        number = min(number + 1, MOST)
    counts.front, last, counts.sure_until = number, front[number - 1], np.inf
    counts.floor = front[number // 2]
    for place in range(counts.first, counts.last if number == MOST else 0):
        job = queue[place]
        if is_behind(score, job, last):
            counts.sure_until = min(counts.sure_until, sure_until(line, job, now))


@kernel(allocates=False)
def enter_front(line: Line, job: int, now: float) -> None:
    """Put a submitted job into the front or behind it, before it is in the queue."""
    counts = line.counts[0]
    if counts.front < counts.last - counts.first:
        counts.sure_until = min(counts.sure_until, sure_until(line, job, now))
    elif counts.front < MOST:
        line.front[counts.front] = job
        counts.front += 1
    else:
        counts.sure_until = -np.inf


@kernel(allocates=False)
def first_in_order(line: Line, rule: Rule, now: float) -> int:
    """Return the first waiting job."""
    counts, front, score = line.counts[0], line.front, line.score
    if not rule.power:
        return int(line.queue[counts.first])
    is_all = counts.front == counts.last - counts.first
    if counts.front == 0 or not (is_all or now < counts.sure_until):
        find_front(line, rule, now)
        return int(front[0])
    best = front[0]
    for at in range(counts.front):
        set_score(line, rule, front[at], now)
        if is_behind(score, best, front[at]):
            best = front[at]
    if not is_all and score[best] > set_score(line, rule, counts.floor, now):
        find_front(line, rule, now)
        best = front[0]
    return int(best)


@kernel(allocates=False)
def reserve(line: Line, now: float, job: int) -> None:
    """Find the time at which a blocked job can start at the latest, and what is left over then."""
    counts = line.counts[0]
    needed, shadow = line.processors[job] - counts.free, now
    for place in range(counts.running):
        if needed <= 0 and line.end[place] > shadow:
            break
        needed -= line.width[place]
        shadow = max(shadow, line.end[place])
    counts.shadow, counts.head, counts.extra = shadow, job, -needed
    if counts.promised != job or shadow < counts.promised_start:
        counts.promised, counts.promised_start = job, shadow


@kernel(allocates=False)
def find_candidates(line: Line, now: float) -> int:
    """Fill the candidates with the waiting jobs that may pass the head; return their number."""
    counts, queue, processors, requested = (
        line.counts[0],
        line.queue,
        line.processors,
        line.requested,
    )
    head, free, extra = counts.head, counts.free, counts.extra
    longest, candidates, number = counts.shadow - now, line.candidates, 0
    for place in range(counts.first, counts.last):
        job = queue[place]
        width = processors[job]
        if width <= free and (width <= extra or requested[job] <= longest) and job != head:
            candidates[number] = job
            number += 1
    return number


@kernel(allocates=False)
def may_pass(line: Line, now: float, job: int) -> bool:
    """Return whether a candidate may still pass the head."""
    counts, width = line.counts[0], line.processors[job]
    is_short = line.requested[job] <= counts.shadow - now
    return bool(width <= counts.free and (is_short or width <= counts.extra))


@kernel(allocates=False)
def backfill(line: Line, rule: Rule, news: News, number: int, is_sorted: bool) -> None:
    """Start those of the first candidates that still may pass the head, in order.

    After a few, hardly any may, so only the first ones are sorted.
    """
    counts, candidates, now = line.counts[0], line.candidates, news.now[0]
    key = line.requested if rule.shortest_first else line.score
    while number:
        first = number if is_sorted else bring_forward(candidates, number, key)
        kept = 0
        for at in range(number):
            job = candidates[at]
            if may_pass(line, now, job):
                if at < first:
                    is_short = line.requested[job] <= counts.shadow - now
                    counts.extra -= 0 if is_short else line.processors[job]
                    begin(line, news, job)
                else:
                    candidates[kept] = job
                    kept += 1
        number = kept


@kernel(allocates=False)
def decide(line: Line, rule: Rule, news: News) -> int:
    """Start jobs in order while they fit, reserve for the first blocked one, backfill the others.

    As long as no job has ended and the head is the same, a job that could not be backfilled still
    cannot, since its estimated end only moves later. So only new jobs are tried.
    """
    counts, queue, now, count = line.counts[0], line.queue, news.now[0], news.counts
    for at in range(count[N_ENDED]):
        end(line, news.ended[at])
    number, is_sorted = count[N_SUBMITTED], False
    for at in range(number):
        job = line.candidates[at] = news.submitted[at]
        if rule.power:
            enter_front(line, job, now)
        place = place_of(queue, counts.first, counts.last, line.rank, job)
        insert(queue, counts.last, place, job)
        counts.last += 1
    if counts.first == counts.last or counts.free == 0:
        counts.head = NOBODY
        return DONE
    first = first_in_order(line, rule, now)
    passed = counts.shadow < now and not rule.keeps
    if count[N_ENDED] or passed or first != counts.head:
        while line.processors[first] <= counts.free:
            counts.promised = NOBODY
            begin(line, news, first)
            if counts.first == counts.last:
                return DONE
            first = first_in_order(line, rule, now)
        counts.head = NOBODY
        if counts.last - counts.first < 2 or not rule.backfills or counts.free == 0:
            return DONE
        reserve(line, now, first)
        number = find_candidates(line, now)
        is_sorted = not (rule.shortest_first or rule.power)
    for at in range(number if rule.power else 0):
        set_score(line, rule, line.candidates[at], now)
    backfill(line, rule, news, number, is_sorted)
    return DONE


@kernel(allocates=False)
def run(core: Core, way: Way, news: News, line: Line, rule: Rule, most: int) -> int:
    """Advance and decide, see `CompiledDecisions.run`."""
    for _ in range(most):
        if advance(core, way, news) != DECIDE:
            return LAST
        decide(line, rule, news)
    return DONE
