"""Decisions on a line in an order of the queue, with or without EASY backfilling, compiled.

They only count processors; `optsched.machines._line_nodes` tells which nodes each job held.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optsched.by_reference import by_reference
from optsched.compiled import kernel
from optsched.machines._ascending import delete, insert, is_behind, place_of, position
from optsched.machines._line_nodes import Log, new_log, note
from optsched.simulator._core import (
    DECIDE,
    DONE,
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

FREE, FIRST, LAST, RUNNING, HEAD, EXTRA, PROMISED, FRONT, FLOOR = range(9)
"""Entries of `Line.tally`: free processors; the waiting jobs are ``queue[FIRST:LAST]``; running
jobs; the blocked job with the reservation, and the processors that it leaves over; the job of which
a start was promised; jobs of the front, and the job that others are compared
with."""

SHADOW, PROMISED_START, SURE_UNTIL = range(3)
"""Entries of `Line.times`: shadow time of the blocked job, its earliest since it is blocked; until
when all jobs behind the front are behind its floor."""

MOST = 32
"""Jobs of the front."""

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
    times: Times
    tally: Numbers


def new_line(processors: Numbers, requested: Times, submit: Times, nodes: int) -> Line:
    """Return the state before the first event, with scores in order of submission."""
    jobs = len(processors)
    running = min(jobs, nodes) + 1
    queue, candidates = np.zeros((2, 2 * jobs), dtype=np.int64)
    rank = np.arange(jobs, dtype=np.float64)
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
        times=np.zeros(3),
        tally=np.array([nodes, 0, 0, 0, NOBODY, 0, NOBODY, 0, NOBODY]),
    )


@kernel(allocates=False)
def sort(jobs: Numbers, number: int, key: Times) -> None:
    """Sort by a key: the fewer jobs are out of place, the fewer passes (Shell's method)."""
    descents, gap = 0, 1
    for place in range(1, number):
        descents += is_behind(key, jobs[place - 1], jobs[place])
    while gap < descents:
        gap = 3 * gap + 1
    while gap and descents:
        for place in range(gap, number):
            job, at = jobs[place], place
            while at >= gap and is_behind(key, jobs[at - gap], job):
                jobs[at] = jobs[at - gap]
                at -= gap
            jobs[at] = job
        gap //= 3


@kernel(allocates=False)
def dequeue(line: Line, job: int) -> None:
    """Remove a job from the queue; of the parts before and behind it, the shorter moves."""
    tally, queue = line.tally, line.queue
    first, last = tally[FIRST], tally[LAST]
    at = place_of(queue, first, last, line.rank, job)
    if at - first < last - at:
        insert(queue, at, first, 0)
        tally[FIRST] += 1
    else:
        delete(queue, last, at)
        tally[LAST] -= 1


@kernel(allocates=False)
def begin(line: Line, news: News, job: int) -> None:
    """Start a waiting job."""
    tally, width = line.tally, line.processors[job]
    dequeue(line, job)
    for at in range(tally[FRONT]):
        if line.front[at] == job:
            tally[FRONT] -= 1
            line.front[at] = line.front[tally[FRONT]]
            break
    end = line.estimated_end[job] = news.now[0] + line.requested[job]
    place = position(line.end, tally[RUNNING], end) + 1
    insert(line.end, tally[RUNNING], place, end)
    insert(line.width, tally[RUNNING], place, width)
    tally[RUNNING] += 1
    tally[FREE] -= width
    note(line.log, job)
    tell(news, START, job, 0.0)


@kernel(allocates=False)
def end(line: Line, job: int) -> None:
    """Free the processors of a job."""
    tally, width = line.tally, line.processors[job]
    place = position(line.end, tally[RUNNING], line.estimated_end[job])
    while line.width[place] != width:  # those of equal end and width are exchangeable
        place -= 1
    delete(line.end, tally[RUNNING], place)
    delete(line.width, tally[RUNNING], place)
    tally[RUNNING] -= 1
    tally[FREE] += width
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
    submit, slope, floor = line.submit, line.slope, line.tally[FLOOR]
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
    tally, queue, front, score = line.tally, line.queue, line.front, line.score
    number = 0
    for place in range(tally[FIRST], tally[LAST]):
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
    tally[FRONT], last, line.times[SURE_UNTIL] = number, front[number - 1], np.inf
    tally[FLOOR] = front[number // 2]
    for place in range(tally[FIRST], tally[LAST] if number == MOST else 0):
        job = queue[place]
        if is_behind(score, job, last):
            line.times[SURE_UNTIL] = min(line.times[SURE_UNTIL], sure_until(line, job, now))


@kernel(allocates=False)
def enter_front(line: Line, job: int, now: float) -> None:
    """Put a submitted job into the front or behind it, before it is in the queue."""
    tally, times = line.tally, line.times
    if tally[FRONT] < tally[LAST] - tally[FIRST]:
        times[SURE_UNTIL] = min(times[SURE_UNTIL], sure_until(line, job, now))
    elif tally[FRONT] < MOST:
        line.front[tally[FRONT]] = job
        tally[FRONT] += 1
    else:
        times[SURE_UNTIL] = -np.inf


@kernel(allocates=False)
def first_in_order(line: Line, rule: Rule, now: float) -> int:
    """Return the first waiting job."""
    tally, front, score = line.tally, line.front, line.score
    if not rule.power:
        return int(line.queue[tally[FIRST]])
    is_all = tally[FRONT] == tally[LAST] - tally[FIRST]
    if tally[FRONT] == 0 or not (is_all or now < line.times[SURE_UNTIL]):
        find_front(line, rule, now)
        return int(front[0])
    best = front[0]
    for at in range(tally[FRONT]):
        set_score(line, rule, front[at], now)
        if is_behind(score, best, front[at]):
            best = front[at]
    if not is_all and score[best] > set_score(line, rule, tally[FLOOR], now):
        find_front(line, rule, now)
        best = front[0]
    return int(best)


@kernel(allocates=False)
def reserve(line: Line, now: float, job: int) -> None:
    """Find the time at which a blocked job can start at the latest, and what is left over then."""
    tally, times = line.tally, line.times
    needed, shadow = line.processors[job] - tally[FREE], now
    for place in range(tally[RUNNING]):
        if needed <= 0 and line.end[place] > shadow:
            break
        needed -= line.width[place]
        shadow = max(shadow, line.end[place])
    times[SHADOW], tally[HEAD], tally[EXTRA] = shadow, job, -needed
    if tally[PROMISED] != job or shadow < times[PROMISED_START]:
        tally[PROMISED], times[PROMISED_START] = job, shadow


@kernel(allocates=False)
def find_candidates(line: Line, now: float) -> int:
    """Fill the candidates with the waiting jobs that may pass the head; return their number."""
    queue, processors, requested, tally = line.queue, line.processors, line.requested, line.tally
    head, free, extra = tally[HEAD], tally[FREE], tally[EXTRA]
    longest, candidates, number = line.times[SHADOW] - now, line.candidates, 0
    for place in range(tally[FIRST], tally[LAST]):
        job = queue[place]
        width = processors[job]
        if width <= free and (width <= extra or requested[job] <= longest) and job != head:
            candidates[number] = job
            number += 1
    return number


@kernel(allocates=False)
def backfill(line: Line, news: News, number: int) -> None:
    """Start those of the first candidates that still may pass the head, in order."""
    tally, longest = line.tally, line.times[SHADOW] - news.now[0]
    for at in range(number):
        job = line.candidates[at]
        width, is_short = line.processors[job], line.requested[job] <= longest
        if width <= tally[FREE] and (is_short or width <= tally[EXTRA]):
            tally[EXTRA] -= 0 if is_short else width
            begin(line, news, job)


@kernel(allocates=False)
def decide(line: Line, rule: Rule, news: News) -> int:
    """Start jobs in order while they fit, reserve for the first blocked one, backfill the others.

    As long as no job has ended and the head is the same, a job that could not be backfilled still
    cannot, since its estimated end only moves later. So only new jobs are tried.
    """
    tally, queue, now, count = line.tally, line.queue, news.now[0], news.counts
    for at in range(count[N_ENDED]):
        end(line, news.ended[at])
    number = count[N_SUBMITTED]
    for at in range(number):
        job = line.candidates[at] = news.submitted[at]
        if rule.power:
            enter_front(line, job, now)
        place = place_of(queue, tally[FIRST], tally[LAST], line.rank, job)
        insert(queue, tally[LAST], place, job)
        tally[LAST] += 1
    if tally[FIRST] == tally[LAST] or tally[FREE] == 0:
        tally[HEAD] = NOBODY
        return DONE
    first = first_in_order(line, rule, now)
    passed = line.times[SHADOW] < now and not rule.keeps
    if count[N_ENDED] or passed or first != tally[HEAD]:
        while line.processors[first] <= tally[FREE]:
            tally[PROMISED] = NOBODY
            begin(line, news, first)
            if tally[FIRST] == tally[LAST]:
                return DONE
            first = first_in_order(line, rule, now)
        tally[HEAD] = NOBODY
        if tally[LAST] - tally[FIRST] < 2 or not rule.backfills or tally[FREE] == 0:
            return DONE
        reserve(line, now, first)
        number = find_candidates(line, now)
    for at in range(number if rule.power else 0):
        set_score(line, rule, line.candidates[at], now)
    sort(line.candidates, number, line.requested if rule.shortest_first else line.score)
    backfill(line, news, number)
    return DONE


@kernel(allocates=False)
def run(core: Core, way: Way, news: News, line: Line, rule: Rule, most: int) -> int:
    """Advance and decide; return 0 after the last event, and 1 after the most decisions before."""
    for _ in range(most):
        if advance(core, way, news) != DECIDE:
            return 0
        decide(line, rule, news)
    return 1
