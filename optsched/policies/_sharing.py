"""The decisions of `sjbf` and `rua`, on nodes that share resources, compiled.

A decision seeks places for jobs one after the other; a place is the best answer to one or several
problems. Those that are not answered as the solver would are left open.
"""

from __future__ import annotations

from optsched.compiled import kernel
from optsched.executions._shared_nodes import Places
from optsched.machines._ascending import delete, insert, position, remove
from optsched.models.threshold_allocation.timeline import (
    NEVER,
    NO_LIMIT,
    RESPONSE,
    checked_penalty,
    least_limit,
    value,
)
from optsched.policies._sharing_table import (
    NO_JOB,
    NO_LATEST,
    Rule,
    State,
    breaks_reservation,
    copy,
    first_room,
    hear,
    job_of,
    keep_promise,
    limit_of,
    list_held,
    look,
    start,
)
from optsched.simulator import _core
from optsched.simulator._core import News, tell
from optsched.solvers.threshold_allocation import (
    LESS_CONSUME_THRESHOLD,
    best_placement,
    place_by_rule,
)

BOTTLENECK_SEARCH, ASK = 3, 4
"""Further values of `Rule.answer` beside the numbers of the rules: the search, compared with
less-consume-threshold, and one with which all problems are left open."""

NOTHING, ROOM, ANSWER, PLACE = range(4)
"""What the kernel asks for with `OPEN`: room to record problems, the answer to the present problem,
a place for the queue head, for which the solver has found none."""


@kernel(allocates=False)
def seek(state: State, rule: Rule, job: int, number: int, latest: int) -> None:
    """Begin to seek the place of a job, which can start now from a threshold on."""
    search = state.search[0]
    search.job, search.posed, search.start = job, 0, -1
    search.goal, search.earliest, search.latest = rule.goal, 0, latest
    search.number = search.first = number
    search.last, search.place = state.limits.shape[1], 1


@kernel(allocates=False)
def find_offer(state: State, latest: int) -> bool:
    """Find the first start, up to a latest one, within thresholds below those of the last one."""
    search, counts = state.search[0], state.counts[0]
    job, search.last = search.job, search.first
    while search.place < counts.starts and state.starts[search.place] <= latest:
        at, free = state.starts[search.place], state.free_at[search.place]
        search.place += 1
        if free < state.asked[job]:
            continue
        limits = state.limits[job, : search.last]
        number = least_limit(state.events, at, free, job_of(state, job), limits, state.space)
        if number < search.last:
            search.earliest, search.first, search.number = at, number, number
            return True
    return False


@kernel(allocates=False)
def seek_head(state: State, rule: Rule, now: float) -> None:
    """Begin to seek the place of the queue head; before its earliest start it has none."""
    head, search = state.queue[0], state.search[0]
    if not rule.by_slowdown and state.limits[head, 0] == NO_LIMIT:
        seek(state, rule, head, 0, first_room(state, now, head))
        return
    seek(state, rule, head, state.limits.shape[1], NO_LATEST)
    search.place = 0
    find_offer(state, NO_LATEST)


@kernel(allocates=False)
def next_problem(state: State, rule: Rule) -> bool:
    """State the next problem of the job that is sought; return whether there is one.

    `sjbf` and the goal of least response pose one, and perhaps a second one of least cost at the
    start found. Otherwise the least end is sought over the thresholds, from the last one down. Of
    thresholds with the same first start, larger ones do not offer less penalty, so they are tried
    only if the solver finds no place.
    """
    search = state.search[0]
    if not rule.by_slowdown or rule.goal == RESPONSE:
        if search.posed == 1 and rule.second_goal >= 0 and search.start >= 0:
            search.goal = rule.second_goal
            search.earliest = search.latest = search.start
            return True
        return bool(search.posed == 0)
    if search.number < search.last:
        return True
    latest = NO_LATEST if search.start < 0 else search.ends - state.walltime[search.job]
    return search.first > 0 and find_offer(state, latest)


@kernel(allocates=False)
def take(state: State, rule: Rule) -> None:
    """Take the answer to the present problem for the place of the job, if it is the best so far."""
    search = state.search[0]
    search.posed += 1
    if search.answer < 0:
        search.number += 1
        return
    ends = search.answer + state.walltime[search.job] - -search.penalty // state.nodes.unit
    if search.start < 0 or not rule.by_slowdown or ends <= search.ends:
        search.start, search.lost, search.ends = search.answer, search.penalty, ends
        search.at = search.number
        copy(state.offered, state.placed)
    if rule.by_slowdown:
        search.number = search.last


@kernel(allocates=False)
def is_verified(state: State, now: float) -> bool:
    """Return whether the answer of a solver holds, and note its penalized time."""
    counts, search = state.counts[0], state.search[0]
    if search.answer < 0:
        return True
    list_held(state, now, state.placed)
    held, job = state.held[: counts.rows], job_of(state, search.job)
    search.penalty = checked_penalty(held, job, search.answer, state.placed, True)
    return bool(
        search.answer <= search.latest
        and state.starts[position(state.starts, counts.starts, search.answer)] == search.answer
        and 0 <= search.penalty <= state.limits[search.job, search.number]
    )


@kernel(allocates=False)
def answer_value(state: State) -> int:
    """Return the objective of the answer that was verified last."""
    search, held = state.search[0], state.held[: state.counts[0].rows]
    wanted = (search.goal, state.nodes.unit, search.answer, state.placed, search.penalty)
    return int(value(held, job_of(state, search.job), *wanted))


@kernel(allocates=False)
def find_answer(state: State, rule: Rule, now: float) -> bool:
    """Answer the present problem as the solver does; return False if the solver has to."""
    if rule.answer == ASK:
        return False
    counts, search, problems = state.counts[0], state.search[0], state.problems
    at, limit = counts.problems, state.limits[search.job, search.number]
    events, job = state.events, job_of(state, search.job)
    which = min(rule.answer, LESS_CONSUME_THRESHOLD)
    found, skipped = position(state.starts, counts.starts, search.latest) + 1, 0
    if which == LESS_CONSUME_THRESHOLD:
        skipped = min(found, position(state.starts, counts.starts, search.earliest - 1) + 1)
    while skipped < found and state.free_at[skipped] < job.asked:
        skipped += 1
    starts = state.starts[skipped:found]
    begin = search.answer = place_by_rule(which, events, job, limit, starts, state.placed)
    objective = 0
    if begin >= 0:
        if not is_verified(state, now):
            return False
        objective = answer_value(state)
    problems.heuristic[at], problems.bound[at] = objective, 0
    problems.work[at] = len(state.reserved)
    if rule.answer == BOTTLENECK_SEARCH:  # used if it is better
        given = (search.goal, state.nodes.unit, limit, starts)
        best, own, tried, _ = best_placement(events, job, *given, NEVER, state.searched)
        tried += skipped
        if tried >= rule.most_work or (own < 0) != (begin < 0) or (best > objective and own >= 0):
            return False
        problems.work[at] = tried
        if own >= 0:
            problems.bound[at] = best
        if own >= 0 and best < objective:
            objective, search.answer = best, own
            copy(state.placed, state.searched)
            if not is_verified(state, now) or best != answer_value(state):
                return False
    problems.time[at], problems.decision[at] = now, counts.decisions
    problems.job[at], problems.answered[at] = search.job, begin >= 0
    problems.objective[at] = objective
    counts.problems += 1
    return True


@kernel(allocates=False)
def settle_head(state: State, places: Places, rule: Rule, news: News) -> bool:
    """Start or reserve for the queue head; return whether a place is sought for another job."""
    counts, search, reservation = state.counts[0], state.search[0], state.reservation[0]
    head, now = search.job, news.now[0]
    kept = keep_promise(state, now)
    if search.start == 0:
        start(state, places, rule, news, head, state.offered, search.lost)
        if counts.queued == 0:
            return False
        seek_head(state, rule, now)
        return True
    at = now + search.start
    if reservation.job == head:
        at = min(at, reservation.start)
    if not kept:
        reservation.job, reservation.number, reservation.start = head, search.at, at
        copy(state.reserved, state.offered)
    elif at != reservation.wakes_at:
        reservation.wakes_at = at
        tell(news, _core.WAKE, 0, at)
    if counts.queued == 1 or counts.free == 0:
        return False
    reservation.begin = search.start
    reservation.until = search.start + limit_of(state, rule, head, search.lost)
    counts.backfills = 1
    begin_to_backfill(state, rule, now)
    return True


@kernel(allocates=False)
def begin_to_backfill(state: State, rule: Rule, now: float) -> None:
    """Begin the first round of backfilling."""
    counts, turn = state.counts[0], state.round[0]
    look(state, now, state.reserved)
    turn.hopeless = turn.place = 0  # starts leave no room that was not there before
    turn.tried, turn.best = counts.queued, NO_JOB
    state.search[0].start = -1
    if rule.by_slowdown:
        for place in range(turn.tried):
            state.tried[place] = state.candidates[place]
            state.bound[state.tried[place]] = 0
        remove(state.tried, turn.tried, state.reservation[0].job)
        turn.tried -= 1


@kernel(allocates=False)
def placeable_now(state: State, job: int) -> bool:
    """Return whether a job has a place now, the number of its least threshold in `State.bound`."""
    counts, turn = state.counts[0], state.round[0]
    if state.asked[job] > counts.free:
        return False
    for place in range(turn.hopeless):
        if asks_as_much(state, job, state.hopeless[place]):
            return False
    given = (job_of(state, job), state.limits[job], state.space)
    number = least_limit(state.events, 0, counts.free, *given)
    state.bound[job] = number
    if number == state.limits.shape[1]:
        state.hopeless[turn.hopeless] = job
        turn.hopeless += 1
        return False
    return True


@kernel(allocates=False)
def asks_as_much(state: State, job: int, other: int) -> bool:
    """Return whether a job has no place now if another has none: it asks at least as much.

    What a node takes of a job within a limit shrinks with the walltime and the demand.
    """
    last = state.limits.shape[1] - 1
    asks = state.asked[job] >= state.asked[other] and state.walltime[job] >= state.walltime[other]
    asks = asks and state.limits[job, last] <= state.limits[other, last]
    for r in range(len(state.nodes.capacity)):
        asks = asks and state.demand[job, r] >= state.demand[other, r]
    return asks


@kernel(allocates=False)
def backfill_in_order(state: State, places: Places, rule: Rule, news: News) -> bool:
    """Start the job that is sought if it breaks nothing; return whether another is sought now."""
    counts, search, turn, now = state.counts[0], state.search[0], state.round[0], news.now[0]
    if search.start >= 0 and not breaks_reservation(state, rule, now):
        start(state, places, rule, news, search.job, state.offered, search.lost)
        turn.place -= 1
    while turn.place < counts.queued and counts.free > 0:  # each once: starts make no room
        job = state.candidates[turn.place]
        turn.place += 1
        if job != state.reservation[0].job and placeable_now(state, job):
            seek(state, rule, job, state.bound[job], 0)
            return True
    return False


@kernel(allocates=False)
def factor_above(state: State, job: int) -> float:
    """Return a lower bound of the penalty factor of a job that starts now."""
    number = state.bound[job]
    return state.thresholds[job, number - 1] / 1000 if number > 0 else 1.0


@kernel(allocates=False)
def is_below(state: State, factor: float, job: int, other_factor: float, other: int) -> bool:
    """Return whether a rank, by penalty factor, requested time and submission, is below another."""
    if factor != other_factor:
        return factor < other_factor
    if state.order[job] != state.order[other]:
        return bool(state.order[job] < state.order[other])
    return job < other


@kernel(allocates=False)
def find_bound(state: State, job: int) -> None:
    """Find the least rank of the next job as of now; bounds from before starts hold still."""
    turn, tried = state.round[0], state.tried
    place = turn.place
    delete(tried, turn.tried, place)
    turn.tried -= 1
    if not placeable_now(state, job):
        return
    state.bound_at[job] = state.counts[0].looks
    bound = factor_above(state, job)
    while place < turn.tried and is_below(
        state, factor_above(state, tried[place]), tried[place], bound, job
    ):
        place += 1
    insert(tried, turn.tried, place, job)
    turn.tried += 1


@kernel(allocates=False)
def backfill_by_penalty(state: State, places: Places, rule: Rule, news: News) -> bool:
    """Note the job that is sought if its rank is the least; return whether another is sought."""
    counts, search, turn, now = state.counts[0], state.search[0], state.round[0], news.now[0]
    if search.start == 0 and not breaks_reservation(state, rule, now):
        requested = state.walltime[search.job] * state.nodes.unit
        factor = (requested + search.lost) / requested
        if turn.best == NO_JOB or is_below(state, factor, search.job, turn.factor, turn.best):
            turn.best, turn.factor, turn.lost = search.job, factor, search.lost
            copy(state.chosen, state.offered)
    while True:
        if turn.place < turn.tried:
            job = state.tried[turn.place]
            bound = factor_above(state, job)
            if turn.best == NO_JOB or is_below(state, bound, job, turn.factor, turn.best):
                if state.bound_at[job] != counts.looks:
                    find_bound(state, job)
                    continue
                turn.place += 1
                seek(state, rule, job, state.bound[job], NO_LATEST)
                return True
        if turn.best == NO_JOB:
            return False
        # no other has a lower rank: the best one starts, and all others are tried again
        start(state, places, rule, news, turn.best, state.chosen, turn.lost)
        if counts.free == 0:
            return False
        remove(state.tried, turn.tried, turn.best)
        turn.tried -= 1
        turn.place, turn.best = 0, NO_JOB


@kernel(allocates=False)
def decide(state: State, places: Places, rule: Rule, news: News) -> int:
    """Start queue heads, reserve for the first that has to wait, backfill later jobs.

    Called again after `OPEN`, it takes the start in ``State.search[0].answer``, -1 for none, and
    the processes in `State.placed` for the answer to the open problem, if it has asked for one.
    """
    counts, now = state.counts[0], news.now[0]
    if counts.asks == NOTHING:
        hear(state, places, news)
        if counts.queued == 0:
            return _core.DONE
        look(state, now, state.everywhere)
        seek_head(state, rule, now)
    elif counts.asks == ANSWER and not is_verified(state, now):
        return _core.WRONG
    more = True
    while more:
        while counts.asks == ANSWER or next_problem(state, rule):
            if counts.asks != ANSWER:
                counts.asks = NOTHING
                if counts.problems == len(state.problems.time):
                    counts.asks = ROOM
                    return _core.OPEN
                if not find_answer(state, rule, now):
                    counts.asks = ANSWER
                    list_held(state, now, state.everywhere)
                    return _core.OPEN
            counts.asks = NOTHING
            take(state, rule)
        if not counts.backfills:
            if state.search[0].start < 0:
                counts.asks = PLACE
                return _core.OPEN
            more = settle_head(state, places, rule, news)
            if not (more and counts.backfills):
                continue
        if rule.by_slowdown:
            more = backfill_by_penalty(state, places, rule, news)
        else:
            more = backfill_in_order(state, places, rule, news)
    return _core.DONE
