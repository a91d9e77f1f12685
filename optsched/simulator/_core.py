"""The event core, compiled: what happens between the decisions of a policy.

`advance` carries out the actions of a decision, then processes events until the next decision is
due. A policy hears of them and states its actions in `News` alone, so that the engine can call the
same policy. Where an execution model sets speeds, `advance` also
returns at each start and end. It goes on where it left off.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.by_reference import by_reference
from optsched.compiled import kernel

Times = NDArray[np.float64]
Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]

OVER, DECIDE, STARTED, ENDED = range(4)
"""Results of `advance`; at the last two an execution model may set speeds, see `Core.changed`."""

START, SHARE, WAKE, MOVE = range(4)
"""Kinds of actions. The value is the row or another number of the policy's own, the share of the
time, the time of the timer."""

N_ENDED, N_SUBMITTED, N_ACTIONS, FULL = range(4)
"""Entries of `News.counts`; the last is 1 if there was no room for an action."""

ACTING, PICKING, ENDING, SUBMITTING, WAKING = range(5)
"""Phases of an instant."""

(
    PHASE, AFTER, NEXT, HEAPED, DUE_ENDS, PASSED, HAPPENED, WAKES, WAITING, WAITED, ACTED,
    PREDICTED, DECISIONS, CHANGED,
) = range(14)  # fmt: skip
"""Entries of `Core.tally`: phase, phase after the actions, next job to be submitted, jobs in the
heap, ends that were due at this instant and those handled of them, whether something has happened,
timers, waiting jobs now and at the last decision, actions carried out, predictions, decisions, the
job that has started or ended."""

NOW, DUE, BUSY_UNTIL, CHARGED = range(4)
"""Entries of `Core.clock`: simulated time, time of the next decision, end of the time for which the
last decision was charged, seconds for which this one is charged."""

NO_JOB = -1


class Way(NamedTuple):
    """How events are processed, see `Engine`."""

    one_by_one: bool
    slows: bool  # whether an execution model is to be asked at starts and ends
    enforces: bool  # whether jobs are killed at their limit
    interval: float
    tolerance: float


@by_reference
class News(NamedTuple):
    """What a policy hears of the core, and what it wants done."""

    now: Times  # one entry
    ended: Numbers
    submitted: Numbers
    kind: Numbers  # of each action
    job: Numbers
    value: Times
    counts: Numbers


@by_reference
class Core(NamedTuple):
    """The jobs and the events to come; all arrays but the last two have an entry for each job."""

    submit: Times
    requested: Times
    admitted: Flags
    start: Times
    end: Times
    paused: Times
    work_left: Times
    works_since: Times
    speed: Times
    share: Times
    ends_at: Times
    estimated_end: Times
    untouched: Flags  # has done no work yet
    overruns: Flags
    heap: Numbers  # running jobs by predicted end, then by number of the prediction
    place: Numbers  # of each job in the heap
    number: Numbers  # of its prediction
    due: Numbers
    was_due: Flags  # of `due`: has ended at its estimated end, before the first event
    wakes: Times  # ascending
    clock: Times
    tally: Numbers


def new_core(submit: Times, runtime: Times, requested: Times, admitted: Flags) -> Core:
    """Return the core before the first event; times in seconds, arrays of shape (jobs,)."""
    jobs = len(submit)
    tally = np.zeros(14, dtype=np.int64)
    tally[PHASE] = PICKING
    return Core(
        submit,
        requested,
        admitted,
        start=np.full(jobs, np.nan),
        end=np.full(jobs, np.nan),
        paused=np.zeros(jobs),
        work_left=runtime.copy(),
        works_since=np.zeros(jobs),
        speed=np.ones(jobs),
        share=np.ones(jobs),
        ends_at=np.full(jobs, np.inf),
        estimated_end=np.full(jobs, np.inf),
        untouched=np.ones(jobs, dtype=np.bool_),
        overruns=np.zeros(jobs, dtype=np.bool_),
        heap=np.zeros(jobs, dtype=np.int64),
        place=np.full(jobs, NO_JOB),
        number=np.zeros(jobs, dtype=np.int64),
        due=np.zeros(jobs, dtype=np.int64),
        was_due=np.zeros(jobs, dtype=np.bool_),
        wakes=np.zeros(jobs + 2),
        clock=np.array([-np.inf, np.inf, -np.inf, 0.0]),
        tally=tally,
    )


def new_news(jobs: int) -> News:
    """Return news with room for the actions of a decision."""
    actions = 8 * jobs + 1024
    return News(
        now=np.zeros(1),
        ended=np.zeros(jobs, dtype=np.int64),
        submitted=np.zeros(jobs, dtype=np.int64),
        kind=np.zeros(actions, dtype=np.int64),
        job=np.zeros(actions, dtype=np.int64),
        value=np.zeros(actions),
        counts=np.zeros(4, dtype=np.int64),
    )


@kernel(allocates=False)
def tell(news: News, kind: int, job: int, value: float) -> None:
    """State an action."""
    count = news.counts
    if count[N_ACTIONS] == len(news.kind):
        count[FULL] = 1
        return
    at = count[N_ACTIONS]
    news.kind[at], news.job[at], news.value[at] = kind, job, value
    count[N_ACTIONS] += 1


@kernel(allocates=False)
def is_before(core: Core, one: int, other: int) -> bool:
    """Return whether a job is predicted to end before another."""
    if core.ends_at[one] != core.ends_at[other]:
        return bool(core.ends_at[one] < core.ends_at[other])
    return bool(core.number[one] < core.number[other])


@kernel(allocates=False)
def settle(core: Core, at: int, job: int) -> None:
    """Put a job into the heap in place of the one at a place, which is in the heap no more."""
    heap, place, count = core.heap, core.place, core.tally[HEAPED]
    while at > 0 and is_before(core, job, heap[(at - 1) >> 1]):
        heap[at] = heap[(at - 1) >> 1]
        place[heap[at]] = at
        at = (at - 1) >> 1
    while True:
        below = 2 * at + 1
        if below + 1 < count and is_before(core, heap[below + 1], heap[below]):
            below += 1
        if below >= count or is_before(core, job, heap[below]):
            break
        heap[at] = heap[below]
        place[heap[at]] = at
        at = below
    heap[at] = job
    place[job] = at


@kernel(allocates=False)
def leave(core: Core, job: int) -> None:
    """Take a job out of the heap, if it is there."""
    at = core.place[job]
    if at == NO_JOB:
        return
    core.tally[HEAPED] -= 1
    core.place[job] = NO_JOB
    last = core.heap[core.tally[HEAPED]]
    if last != job:
        settle(core, at, last)


@kernel(allocates=False)
def predict_end(core: Core, way: Way, job: int) -> None:
    """Predict the end of a job from its work left, its speed and its limit."""
    tally, rate = core.tally, core.share[job] * core.speed[job]
    ends_at = np.inf
    if rate > 0.0:
        # rounding may bring the work left below 0: such a job ends now, not earlier
        ends_at = core.works_since[job] + max(0.0, core.work_left[job]) / rate
    limit = core.estimated_end[job]
    core.overruns[job] = way.enforces and ends_at > limit + way.tolerance
    if core.overruns[job]:
        ends_at = limit
    if ends_at == core.ends_at[job]:
        return
    leave(core, job)
    core.ends_at[job] = ends_at
    if ends_at < np.inf:
        tally[PREDICTED] += 1
        core.number[job] = tally[PREDICTED]
        tally[HEAPED] += 1
        settle(core, tally[HEAPED] - 1, job)


@kernel(allocates=False)
def count_work(core: Core, job: int) -> None:
    """Count the work that a job has done up to now: 0 during its start-up delay."""
    now, since, share = core.clock[NOW], core.works_since[job], core.share[job]
    if now > since:
        work = (now - since) * share * core.speed[job]
        core.work_left[job] -= work
        core.untouched[job] = core.untouched[job] and work == 0.0
        if share != 1.0:
            core.paused[job] += (now - since) * (1.0 - share)
        core.works_since[job] = now


@kernel(allocates=False)
def set_speed(core: Core, way: Way, job: int, speed: float) -> None:
    """Change the speed of a running job from now on."""
    count_work(core, job)
    core.speed[job] = speed
    predict_end(core, way, job)


@kernel(allocates=False)
def set_share(core: Core, way: Way, job: int, share: float) -> None:
    """Change a job's share of the time; one whose share has been 0 so far starts now."""
    count_work(core, job)
    if core.share[job] == 0.0 and share > 0.0 and core.untouched[job]:
        core.start[job] = core.works_since[job]
        core.paused[job] = 0.0
    core.share[job] = share
    predict_end(core, way, job)


@kernel(allocates=False)
def begin(core: Core, job: int) -> None:
    """Start a job, whose end remains to be predicted."""
    begins = core.clock[NOW] + core.clock[CHARGED]
    core.start[job] = core.works_since[job] = begins
    core.estimated_end[job] = begins + core.requested[job]
    core.tally[WAITING] -= 1


@kernel(allocates=False)
def finish(core: Core, news: News, job: int) -> None:
    """End a job."""
    leave(core, job)
    count_work(core, job)
    core.ends_at[job] = np.inf
    core.end[job] = core.clock[NOW]
    core.tally[CHANGED] = job
    news.ended[news.counts[N_ENDED]] = job
    news.counts[N_ENDED] += 1


@kernel(allocates=False)
def submit_next(core: Core, news: News) -> None:
    """Submit a job, which the policy hears of unless it can never start."""
    job = core.tally[NEXT]
    core.tally[NEXT] += 1
    if core.admitted[job]:
        core.tally[WAITING] += 1
        news.submitted[news.counts[N_SUBMITTED]] = job
        news.counts[N_SUBMITTED] += 1


@kernel(allocates=False)
def add_timer(core: Core, time: float) -> None:
    """Set a timer."""
    at = core.tally[WAKES]
    while at > 0 and core.wakes[at - 1] > time:
        core.wakes[at] = core.wakes[at - 1]
        at -= 1
    core.wakes[at] = time
    core.tally[WAKES] += 1


@kernel(allocates=False)
def request_decision(core: Core, way: Way, time: float) -> None:
    """Have a decision made when the last one is over, and at a tick if any."""
    time = max(time, core.clock[BUSY_UNTIL])
    if way.interval > 0.0:
        tick = np.ceil(time / way.interval)
        while tick * way.interval < time:  # the quotient was rounded down
            tick += 1.0
        time = tick * way.interval
    core.clock[DUE] = min(core.clock[DUE], time)


@kernel(allocates=False)
def act(core: Core, way: Way, news: News) -> bool:
    """Carry out actions up to a start that an execution model has to hear of, or all."""
    tally = core.tally
    while tally[ACTED] < news.counts[N_ACTIONS]:
        kind, job, value = news.kind[tally[ACTED]], news.job[tally[ACTED]], news.value[tally[ACTED]]
        if kind == START:
            if tally[CHANGED] != job:
                begin(core, job)
                tally[CHANGED] = job
                if way.slows:
                    return False
            predict_end(core, way, job)
        elif kind == SHARE:
            set_share(core, way, job, value)
        elif kind == WAKE:
            add_timer(core, value)
        tally[ACTED] += 1
    return True


@kernel(allocates=False)
def close_decision(core: Core, way: Way, news: News) -> None:
    """Forget what the policy has heard; charge for the decision."""
    tally, clock = core.tally, core.clock
    news.counts[N_ENDED] = news.counts[N_SUBMITTED] = news.counts[N_ACTIONS] = tally[ACTED] = 0
    tally[CHANGED] = NO_JOB
    if clock[CHARGED] > 0.0:
        clock[BUSY_UNTIL] = clock[NOW] + clock[CHARGED]
        clock[CHARGED] = 0.0
    if way.interval > 0.0 and 0 < tally[WAITING] < tally[WAITED]:
        # the jobs just started change the decision at the next tick
        request_decision(core, way, clock[NOW] + way.interval / 2)


@kernel(allocates=False)
def pick_instant(core: Core) -> float:
    """Return the time of the next event or decision."""
    tally, now = core.tally, core.clock[DUE]
    if tally[NEXT] < len(core.submit):
        now = min(now, core.submit[tally[NEXT]])
    if tally[HEAPED]:
        now = min(now, core.ends_at[core.heap[0]])
    if tally[WAKES]:
        now = min(now, core.wakes[0])
    return float(now)


@kernel(allocates=False)
def ask(core: Core, news: News, after: int) -> int:
    """Prepare a decision."""
    tally, clock = core.tally, core.clock
    clock[DUE] = np.inf
    news.now[0] = clock[NOW]
    tally[DECISIONS] += 1
    tally[WAITED] = tally[WAITING]
    tally[CHANGED] = NO_JOB
    tally[PHASE], tally[AFTER] = ACTING, after
    return DECIDE


@kernel(allocates=False)
def advance(core: Core, way: Way, news: News) -> int:
    """Carry out the actions, and process events until something has to be asked."""
    tally, clock = core.tally, core.clock
    while True:
        phase, now = tally[PHASE], clock[NOW]
        if phase == ACTING:
            if not act(core, way, news):
                return STARTED
            close_decision(core, way, news)
            tally[PHASE] = tally[AFTER]
        elif phase == PICKING:
            clock[NOW] = pick_instant(core)
            if clock[NOW] == np.inf:
                return OVER
            tally[DUE_ENDS] = tally[PASSED] = tally[HAPPENED] = 0
            tally[PHASE] = ENDING
        elif phase == ENDING:
            if tally[HEAPED] == 0 or core.ends_at[core.heap[0]] != now:
                tally[PHASE] = SUBMITTING
                continue
            job = core.heap[0]
            on_estimate = core.estimated_end[job] == now
            if way.one_by_one:
                leave(core, job)
                core.due[tally[DUE_ENDS]], core.was_due[tally[DUE_ENDS]] = job, on_estimate
                tally[DUE_ENDS] += 1
            if on_estimate or not way.one_by_one:
                finish(core, news, job)
                tally[HAPPENED] = not way.one_by_one
                if way.slows:
                    return ENDED
        elif phase == SUBMITTING:
            comes = tally[NEXT] < len(core.submit) and core.submit[tally[NEXT]] == now
            if tally[HAPPENED] and (way.one_by_one or not comes):
                tally[HAPPENED] = 0
                request_decision(core, way, now)
                if way.interval == 0.0 and clock[DUE] == now:
                    return int(ask(core, news, SUBMITTING))
            elif comes:
                submit_next(core, news)
                tally[HAPPENED] = 1
            elif tally[PASSED] < tally[DUE_ENDS]:
                job, was_due = core.due[tally[PASSED]], core.was_due[tally[PASSED]]
                tally[PASSED] += 1
                tally[HAPPENED] = was_due or core.ends_at[job] == now
                if tally[HAPPENED] and not was_due:
                    finish(core, news, job)
                    if way.slows:
                        return ENDED
            else:
                tally[PHASE] = WAKING
        else:
            tally[PHASE] = PICKING
            if tally[WAKES] and core.wakes[0] == now:
                tally[WAKES] -= 1
                for at in range(tally[WAKES]):
                    core.wakes[at] = core.wakes[at + 1]
                request_decision(core, way, now)
            if clock[DUE] == now:
                return int(ask(core, news, PICKING))
