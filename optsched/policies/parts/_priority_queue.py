"""Replay of policies that order the queue by a score, with or without EASY backfilling, compiled.

Within a decision free and extra processors only decrease, and of the waiting jobs of one kind the
first submitted has the best score. So only the first of each kind is a candidate, and a decision
costs as many steps as kinds wait, not jobs. If many kinds wait, and scores do not change with time,
a tournament takes the place of these scans.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optsched.compiled import kernel
from optsched.policies.parts._kinds import Kinds, kinds_of
from optsched.policies.parts._tournament import (
    BEHIND,
    Tournament,
    enter,
    new_tournament,
    next_rank,
)
from optsched.simulator._replay import (
    ENDED,
    FIRST,
    FREE,
    NEXT,
    Numbers,
    Runs,
    State,
    Times,
    advance,
    begin,
    delete,
    finish,
    has_room,
    insert,
    position,
    process,
)

ACTIVE, WAITING, RUNNING, IN_TOURNAMENT = range(4)
"""Entries of `Queue.tally`: kinds that wait, jobs that wait, running jobs, whether the kinds that
wait are in the tournaments."""

MANY = 200
"""Number of waiting kinds above which these enter tournaments; they leave them at half of it."""

NOBODY = -1


class Rule(NamedTuple):
    """The order of the queue, and what happens behind a blocked job.

    The score of a waiting job is ``score[job]``, or ``-(wait / unit)^power * weight`` if `power` is
    above 0; the lowest is first, ties by submission.
    """

    score: Times
    unit: Times
    weight: Times
    power: int
    backfills: bool
    shortest_first: bool  # order of backfilling: by requested time
    many: int  # see MANY


class Tournaments(NamedTuple):
    """Tournaments of the kinds that wait, if these are many."""

    order: Tournament
    backfilling: Tournament  # the same, unless the shortest is backfilled first
    narrow: Numbers  # number of kinds of at most so many processors


class Queue(NamedTuple):
    """Waiting and running jobs.

    The kinds that wait are in slots without gaps, in no order, so that scans are fast.
    """

    first: Numbers  # jobs[first[kind]:behind[kind]] of the kinds wait
    behind: Numbers
    slot: Numbers  # slot of each kind that waits
    kind: Numbers  # kind of each slot, and what is known of its first job:
    job: Numbers
    score: Times
    processors: Numbers
    duration: Times
    candidates: Numbers  # kinds that may be backfilled
    end: Times  # estimated ends of the running jobs, ascending
    width: Numbers  # their processors
    tally: Numbers


def new_queue(kinds: Kinds, nodes: int) -> Queue:
    """Return an empty queue."""
    number, jobs = len(kinds.first_job), len(kinds.of_job)
    running = min(jobs, nodes) + 1
    return Queue(
        kinds.first_job.copy(),
        kinds.first_job.copy(),
        slot=np.zeros(number, dtype=np.int64),
        kind=np.zeros(number, dtype=np.int64),
        job=np.zeros(number, dtype=np.int64),
        score=np.zeros(number),
        processors=np.zeros(number, dtype=np.int64),
        duration=np.zeros(number),
        candidates=np.zeros(number, dtype=np.int64),
        end=np.zeros(running),
        width=np.zeros(running, dtype=np.int64),
        tally=np.zeros(4, dtype=np.int64),
    )


@kernel(allocates=False)
def score_of(rule: Rule, submit: Times, now: float, job: int) -> float:
    """Return the score of a waiting job."""
    if rule.power == 0:
        return rule.score[job]
    waits = (now - submit[job]) / rule.unit[job]
    if rule.power == 3:
        waits = waits * waits * waits
    return -waits * rule.weight[job]


@kernel(allocates=False)
def add_running(queue: Queue, end: float, width: int) -> None:
    """Add a running job."""
    running = queue.tally[RUNNING]
    place = position(queue.end, running, end)
    insert(queue.end, running, place, end)
    insert(queue.width, running, place, width)
    queue.tally[RUNNING] += 1


@kernel(allocates=False)
def remove_running(queue: Queue, end: float, width: int) -> None:
    """Remove a running job; jobs of equal end and width are exchangeable."""
    running = queue.tally[RUNNING]
    place = position(queue.end, running, end)
    while queue.width[place] != width:
        place += 1
    delete(queue.end, running, place)
    delete(queue.width, running, place)
    queue.tally[RUNNING] -= 1


@kernel(allocates=False)
def reserve(queue: Queue, now: float, needed: int) -> tuple[float, int]:
    """Return the shadow time and the extra processors of a job that needs `needed` more."""
    shadow = now
    for place in range(queue.tally[RUNNING]):
        end = queue.end[place]
        if needed <= 0 and end > shadow:
            break
        needed -= queue.width[place]
        shadow = max(shadow, end)
    return shadow, -needed


@kernel(allocates=False)
def add_kind(queue: Queue, kinds: Kinds, kind: int, job: int, score: float) -> None:
    """Add a kind that begins to wait with a job."""
    slot = queue.tally[ACTIVE]
    queue.tally[ACTIVE] += 1
    queue.slot[kind] = slot
    queue.kind[slot], queue.job[slot], queue.score[slot] = kind, job, score
    queue.processors[slot], queue.duration[slot] = kinds.processors[kind], kinds.duration[kind]


@kernel(allocates=False)
def remove_kind(queue: Queue, slot: int) -> None:
    """Remove a kind that no longer waits; the last slot takes its place."""
    queue.tally[ACTIVE] -= 1
    last = queue.tally[ACTIVE]
    kind = queue.kind[last]
    queue.slot[kind] = slot
    queue.kind[slot], queue.job[slot], queue.score[slot] = kind, queue.job[last], queue.score[last]
    queue.processors[slot], queue.duration[slot] = queue.processors[last], queue.duration[last]


@kernel(allocates=False)
def enter_first(queue: Queue, tournaments: Tournaments, rule: Rule, kind: int, waits: bool) -> None:
    """Enter the first job of a kind that waits into the tournaments, or remove the kind."""
    order, backfilling = tournaments.order, tournaments.backfilling
    slot = queue.slot[kind]
    job, duration = queue.job[slot], queue.duration[slot] if waits else np.inf
    enter(order, kind, order.rank[job] if waits else BEHIND, duration)
    if rule.shortest_first:
        enter(backfilling, kind, backfilling.rank[job] if waits else BEHIND, duration)


@kernel(allocates=False)
def change_structure(queue: Queue, tournaments: Tournaments, rule: Rule) -> None:
    """Enter all kinds that wait into the tournaments, or remove them."""
    tally = queue.tally
    for slot in range(tally[ACTIVE]):
        enter_first(queue, tournaments, rule, queue.kind[slot], not tally[IN_TOURNAMENT])
    tally[IN_TOURNAMENT] = not tally[IN_TOURNAMENT]


@kernel(allocates=False)
def best_slot(queue: Queue) -> int:
    """Return the slot whose first job has the lowest score; ties by job."""
    best = 0
    for slot in range(1, queue.tally[ACTIVE]):
        score = queue.score[slot]
        if score < queue.score[best] or (
            score == queue.score[best] and queue.job[slot] < queue.job[best]
        ):
            best = slot
    return best


@kernel(allocates=False)
def start_first(state: State, kinds: Kinds, queue: Queue, rule: Rule, slot: int) -> None:
    """Start the first job of a slot."""
    job, kind = queue.job[slot], queue.kind[slot]
    begin(state, job)
    if rule.backfills:
        add_running(queue, state.estimated_end[job], state.processors[job])
    queue.tally[WAITING] -= 1
    queue.first[kind] += 1
    if queue.first[kind] < queue.behind[kind]:
        following = kinds.jobs[queue.first[kind]]
        queue.job[slot] = following
        queue.score[slot] = score_of(rule, state.submit, state.now[0], following)
    else:
        remove_kind(queue, slot)


@kernel(allocates=False)
def backfill(
    state: State,
    kinds: Kinds,
    queue: Queue,
    rule: Rule,
    number: int,
    shadow: float,
    extra: int,
) -> int:
    """Start jobs of the first `number` candidates that do not delay the reservation.

    Returns the remaining extra processors.
    """
    candidates = queue.candidates
    key = queue.duration if rule.shortest_first else queue.score
    longest = shadow - state.now[0]
    while True:
        kept, best, best_job = 0, 0, 0
        least = np.inf
        for i in range(number):
            slot = queue.slot[candidates[i]]
            width = queue.processors[slot]
            if width > state.tally[FREE] or (queue.duration[slot] > longest and width > extra):
                continue
            candidates[kept] = candidates[i]
            if key[slot] < least or (key[slot] == least and queue.job[slot] < best_job):
                best, least, best_job = kept, key[slot], queue.job[slot]
            kept += 1
        if kept == 0:
            return extra
        kind, number = candidates[best], kept
        slot = queue.slot[kind]
        if queue.duration[slot] > longest:
            extra -= queue.processors[slot]
        start_first(state, kinds, queue, rule, slot)
        if queue.first[kind] == queue.behind[kind]:
            number -= 1
            candidates[best] = candidates[number]


@kernel(allocates=False)
def backfill_many(
    state: State,
    kinds: Kinds,
    queue: Queue,
    tournaments: Tournaments,
    rule: Rule,
    shadow: float,
    extra: int,
) -> int:
    """Start jobs of the tournament that do not delay the reservation.

    Returns the remaining extra processors.
    """
    tournament, narrow = tournaments.backfilling, tournaments.narrow
    longest = shadow - state.now[0]
    while True:
        free = state.tally[FREE]
        rank = next_rank(tournament, narrow[min(free, extra)], narrow[free], longest)
        if rank == BEHIND:
            return extra
        job = tournament.jobs[rank]
        kind = kinds.of_job[job]
        if state.requested[job] > longest:
            extra -= state.processors[job]
        start_first(state, kinds, queue, rule, queue.slot[kind])
        enter_first(queue, tournaments, rule, kind, queue.first[kind] < queue.behind[kind])


@kernel(allocates=False)
def fitting(queue: Queue, free: int, longest: float, extra: int) -> int:
    """Fill the candidates with the kinds that do not delay the reservation; return their number."""
    number = 0
    for slot in range(queue.tally[ACTIVE]):
        width = queue.processors[slot]
        if width <= free and (queue.duration[slot] <= longest or width <= extra):
            queue.candidates[number] = queue.kind[slot]
            number += 1
    return number


@kernel(allocates=False)
def replay(
    state: State, kinds: Kinds, queue: Queue, tournaments: Tournaments, rule: Rule, nodes: int
) -> bool:
    """Process events; return whether these are all, see `process`."""
    tally, waiting = state.tally, queue.tally
    blocked, blocked_score, shadow, extra = NOBODY, 0.0, 0.0, 0
    while has_room(state):
        if not advance(state):
            return True
        now = state.now[0]
        for i in range(tally[ENDED]):
            job = state.ended[i]
            finish(state, job)
            if rule.backfills:
                remove_running(queue, state.estimated_end[job], state.processors[job])
        if tally[ENDED] or rule.power:
            blocked = NOBODY
        new = 0  # candidates: the kinds that only now have a waiting job
        for job in range(tally[FIRST], tally[NEXT]):
            if state.processors[job] > nodes:
                continue
            kind = kinds.of_job[job]
            if queue.first[kind] == queue.behind[kind]:
                score = score_of(rule, state.submit, now, job)
                add_kind(queue, kinds, kind, job, score)
                if waiting[IN_TOURNAMENT]:
                    enter_first(queue, tournaments, rule, kind, True)
                queue.candidates[new] = kind
                new += 1
                if score < blocked_score:
                    blocked = NOBODY
            queue.behind[kind] += 1
            waiting[WAITING] += 1
        if waiting[ACTIVE] == 0 or tally[FREE] == 0:
            blocked = NOBODY
            continue
        if rule.power:
            for slot in range(waiting[ACTIVE]):
                queue.score[slot] = score_of(rule, state.submit, now, queue.job[slot])
        elif waiting[IN_TOURNAMENT]:
            if waiting[ACTIVE] <= rule.many // 2:
                change_structure(queue, tournaments, rule)
        elif waiting[ACTIVE] > rule.many:
            change_structure(queue, tournaments, rule)
        if blocked == NOBODY:
            while waiting[ACTIVE]:
                if waiting[IN_TOURNAMENT]:
                    order = tournaments.order
                    best = queue.slot[kinds.of_job[order.jobs[order.first[1]]]]
                else:
                    best = best_slot(queue)
                if state.processors[queue.job[best]] > tally[FREE]:
                    blocked, blocked_score = queue.kind[best], queue.score[best]
                    break
                kind = queue.kind[best]
                start_first(state, kinds, queue, rule, best)
                if waiting[IN_TOURNAMENT]:
                    waits = queue.first[kind] < queue.behind[kind]
                    enter_first(queue, tournaments, rule, kind, waits)
            if blocked == NOBODY or not rule.backfills:
                continue
            if waiting[WAITING] < 2 or tally[FREE] == 0:
                blocked = NOBODY
                continue
            needed = kinds.processors[blocked] - tally[FREE]
            shadow, extra = reserve(queue, now, needed)
            if waiting[IN_TOURNAMENT]:
                new = waiting[ACTIVE]
            else:
                new = fitting(queue, tally[FREE], shadow - now, extra)
        if rule.backfills and new > 0:
            if waiting[IN_TOURNAMENT]:
                extra = backfill_many(state, kinds, queue, tournaments, rule, shadow, extra)
            else:
                extra = backfill(state, kinds, queue, rule, new, shadow, extra)
            if tally[FREE] == 0:
                blocked = NOBODY
    return False


def replay_by_score(
    state: State,
    nodes: int,
    *,
    score: Times | None = None,
    unit: Times | None = None,
    weight: Times | None = None,
    power: int = 0,
    backfills: bool = False,
    shortest_first: bool = False,
) -> Runs | None:
    """Process all events; see `Rule` for the order, by default that of submission.

    Returns
    -------
    int64 array, shape (runs, 2), or None
        The runs of nodes, see `replay`. None, and nothing is done, if of two jobs of a kind the
        first submitted does not have the better score.
    """
    if score is None and not (power or backfills):  # then all jobs that fit are alike
        kinds = kinds_of(np.where(state.processors > nodes, 2, 1), np.ones_like(state.requested))
    else:
        kinds = kinds_of(state.processors, state.requested)
    none = np.empty(0)
    if score is None:
        score = np.arange(len(state.submit), dtype=np.float64)
    elif (np.diff(score[kinds.jobs])[np.diff(kinds.of_job[kinds.jobs]) == 0] < 0).any():
        return None
    rule = Rule(
        score,
        none if unit is None else unit,
        none if weight is None else weight,
        power,
        backfills,
        shortest_first,
        MANY,
    )
    number = 0 if power else len(kinds.first_job)
    order = new_tournament(number, score)
    backfilling = new_tournament(number, state.requested) if shortest_first else order
    narrow = np.searchsorted(kinds.processors, np.arange(nodes + 1), side="right")
    tournaments = Tournaments(order, backfilling, narrow)
    queue = new_queue(kinds, nodes)
    return process(state, lambda state: replay(state, kinds, queue, tournaments, rule, nodes))
