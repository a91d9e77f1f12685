"""The event core, compiled: what happens between the decisions of a policy.

`advance` carries out the actions of a decision, then processes events until the next decision is
due. Where Python has to know of more (a policy in Python, an execution model, holds, the journal),
it returns at each event. It goes on where it left off. A decision that is a kernel hears of events
and states its actions in `News` alone, so that it need not know the core. Where nobody else hears
of events, `loop` calls the two by turns.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, TypeVar, get_type_hints

import numpy as np
from numpy.typing import NDArray

from optsched.by_reference import by_reference
from optsched.compiled import kernel
from optsched.machines._ascending import add, delete

Times = NDArray[np.float64]
Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]

OVER, DECIDE, STARTED, ENDED, SUBMITTED, LET_GO, EXPIRED, WOKEN, SETTLED, OPEN, WRONG = range(11)
"""Results of `advance`: no more events; a decision is due; the job in ``tally[CHANGED]`` has
started (by an action), ended, or been submitted; it is time to let a held job go, or to reject one
that can no longer start, or for a timer that is not the core's own; the events of an instant are
over. Results of the decision kernel of a policy: a solver has to answer a problem first, then the
kernel is called again; an answer does not hold."""

DONE = 0
"""Result of the decision kernel of a policy that has decided."""

START, SHARE, WAKE, MOVE, LIMIT = range(5)
"""Kinds of actions. The value is the row or another number of the policy's own, the share of the
time, the time of the timer, and the limit in seconds of a job before its start."""

N_ENDED, N_SUBMITTED, N_ACTIONS, FULL, N_REJECTED = range(5)
"""Entries of `News.counts`; `FULL` is 1 if there was no room for an action."""

ACTING, PICKING, ENDING, SUBMITTING, WAKING, SETTLING = range(6)
"""Phases of an instant."""

(
    PHASE, AFTER, NEXT, HEAPED, DUE_ENDS, PASSED, HAPPENED, WAKES, WAITING, WAITED, ACTED,
    PREDICTED, DECISIONS, CHANGED,
) = range(14)  # fmt: skip
"""Entries of `Core.tally`: phase, phase after the actions, next job to be submitted, jobs in the
heap, ends that were due at this instant and those handled of them, whether something has happened,
timers, waiting jobs now and at the last decision, actions carried out, predictions, decisions, the
job that has started or ended."""

NOW, DUE, BUSY_UNTIL, CHARGED, LETS_GO, EXPIRES, WAKES_AT = range(7)
"""Entries of `Core.clock`: simulated time, time of the next decision, end of the time for which the
last decision was charged, seconds for which this one is charged; the next times of three kinds of
events that are kept outside: `LET_GO`, `EXPIRED`, `WOKEN`."""

NO_JOB = -1


class Way(NamedTuple):
    """How events are processed, see `Engine`."""

    one_by_one: bool
    tells: bool  # of each event
    watched: bool  # tells of the end of each instant
    enforces: bool  # whether jobs are killed at their limit
    interval: float
    tolerance: float


@by_reference
class News(NamedTuple):
    """What a policy hears of the core, and what it wants done."""

    now: Times  # one entry
    ended: Numbers
    submitted: Numbers
    rejected: Numbers  # waiting jobs that can no longer start
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


Named = TypeVar("Named", bound=tuple[Any, ...])


@cache
def _dtypes(kind: type) -> dict[str, Any]:
    dtypes = {Times: np.float64, Numbers: np.int64, Flags: np.bool_}
    return {name: dtypes.get(one) for name, one in get_type_hints(kind).items()}


def zeroed(kind: type[Named], shape: int | tuple[int, int], /, **given: Any) -> Named:
    """Return a named tuple of arrays, of which those that are not given are zeros of a shape."""
    dtypes = _dtypes(kind)
    return kind(**given, **{one: np.zeros(shape, dtypes[one]) for one in dtypes.keys() - given})


def new_core(submit: Times, runtime: Times, requested: Times, admitted: Flags) -> Core:
    """Return the core before the first event; times in seconds, arrays of shape (jobs,)."""
    jobs = len(submit)
    tally = np.zeros(14, dtype=np.int64)
    tally[PHASE] = PICKING
    return zeroed(
        Core,
        jobs,
        submit=submit,
        requested=requested,
        admitted=admitted,
        start=np.full(jobs, np.nan),
        end=np.full(jobs, np.nan),
        work_left=runtime.copy(),
        speed=np.ones(jobs),
        share=np.ones(jobs),
        ends_at=np.full(jobs, np.inf),
        estimated_end=np.full(jobs, np.inf),
        untouched=np.ones(jobs, dtype=np.bool_),
        place=np.full(jobs, NO_JOB),
        wakes=np.zeros(2 * jobs + 2),  # of a policy that sets one for each reservation at most
        clock=np.array([-np.inf, np.inf, -np.inf, 0.0, np.inf, np.inf, np.inf]),
        tally=tally,
    )


def new_news(jobs: int) -> News:
    """Return news with room for the actions of a decision."""
    counts, actions = np.zeros(5, dtype=np.int64), 8 * jobs + 1024
    kind, job = np.zeros((2, actions), dtype=np.int64)
    value = np.zeros(actions)
    return zeroed(News, jobs, now=np.zeros(1), kind=kind, job=job, value=value, counts=counts)


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
def begin(core: Core, job: int, limit: float) -> None:
    """Start a job with a limit in seconds; its end remains to be predicted."""
    begins = core.clock[NOW] + core.clock[CHARGED]
    core.start[job] = core.works_since[job] = begins
    core.estimated_end[job] = begins + limit
    core.tally[WAITING] -= 1


@kernel(allocates=False)
def stop_until(core: Core, way: Way, job: int, time: float, added: float) -> None:
    """Stop a running job, whose work has been counted, up to a time, and put off its limit."""
    core.works_since[job] = time
    core.paused[job] += added
    core.estimated_end[job] += added
    predict_end(core, way, job)


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
    core.tally[CHANGED] = job
    if core.admitted[job]:
        core.tally[WAITING] += 1
        news.submitted[news.counts[N_SUBMITTED]] = job
        news.counts[N_SUBMITTED] += 1


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
                begin(core, job, core.requested[job])
                tally[CHANGED] = job
                if way.tells:
                    return False
            predict_end(core, way, job)
        elif kind == SHARE:
            set_share(core, way, job, value)
        elif kind == WAKE:
            add(core.wakes, tally[WAKES], value)
            tally[WAKES] += 1
        elif kind == LIMIT:
            core.requested[job] = value
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
    """Return the time of the next event or decision, but for what expires."""
    tally, clock = core.tally, core.clock
    now = min(clock[DUE], clock[LETS_GO], clock[WAKES_AT])
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
def end_due(core: Core, way: Way, news: News) -> int:
    """Handle the first predicted end, which is due; return `ENDED` if the job has ended.

    With events one by one, only a job that ends at its estimated end does so before all others.
    """
    tally, job = core.tally, core.heap[0]
    on_estimate = core.estimated_end[job] == core.clock[NOW]
    if way.one_by_one:
        leave(core, job)
        core.due[tally[DUE_ENDS]], core.was_due[tally[DUE_ENDS]] = job, on_estimate
        tally[DUE_ENDS] += 1
        if not on_estimate:
            return OVER
    finish(core, news, job)
    tally[HAPPENED] = not way.one_by_one
    return ENDED


@kernel(allocates=False)
def end_late(core: Core, news: News) -> int:
    """Handle the next of the due ends, one by one; return `ENDED` if the job ends now."""
    tally = core.tally
    job, was_due = core.due[tally[PASSED]], core.was_due[tally[PASSED]]
    tally[PASSED] += 1
    tally[HAPPENED] = was_due or core.ends_at[job] == core.clock[NOW]
    if was_due or not tally[HAPPENED]:
        return OVER
    finish(core, news, job)
    return ENDED


@kernel(allocates=False)
def advance(core: Core, way: Way, news: News) -> int:
    """Carry out the actions, and process events until something has to be asked."""
    tally, clock = core.tally, core.clock
    while True:
        phase, now, event = tally[PHASE], clock[NOW], OVER
        if phase == ACTING:
            if not act(core, way, news):
                return STARTED
            close_decision(core, way, news)
            tally[PHASE] = tally[AFTER]
        elif phase == PICKING:
            next_time = pick_instant(core)
            if clock[EXPIRES] < next_time:
                clock[NOW] = clock[EXPIRES]
                return EXPIRED
            clock[NOW] = next_time
            if next_time == np.inf:
                return OVER
            tally[DUE_ENDS] = tally[PASSED] = tally[HAPPENED] = 0
            tally[PHASE] = ENDING
        elif phase == ENDING:
            if tally[HEAPED] > 0 and core.ends_at[core.heap[0]] == now:
                event = end_due(core, way, news)
            else:
                tally[PHASE] = SUBMITTING
        elif phase == SUBMITTING:
            comes = tally[NEXT] < len(core.submit) and core.submit[tally[NEXT]] == now
            waits = comes or clock[LETS_GO] == now
            if tally[HAPPENED] and (way.one_by_one or not waits):
                tally[HAPPENED] = 0
                request_decision(core, way, now)
                if way.interval == 0.0 and clock[DUE] == now:
                    return int(ask(core, news, SUBMITTING))
            elif comes:
                submit_next(core, news)
                tally[HAPPENED] = 1
                event = SUBMITTED
            elif tally[PASSED] < tally[DUE_ENDS]:
                event = end_late(core, news)
            elif waits:
                event = LET_GO
            else:
                tally[PHASE] = WAKING
        elif phase == WAKING:
            tally[PHASE] = SETTLING
            if tally[WAKES] and core.wakes[0] == now:
                delete(core.wakes, tally[WAKES], 0)
                tally[WAKES] -= 1
                request_decision(core, way, now)
            if clock[WAKES_AT] == now:
                request_decision(core, way, now)
                event = WOKEN
        else:
            if clock[DUE] == now:
                return int(ask(core, news, SETTLING))
            tally[PHASE] = PICKING
            if way.watched:
                return SETTLED
        if event == WOKEN or (event != OVER and way.tells):
            return event


@kernel(allocates=False)
def loop(
    core: Core, way: Way, news: News, decide: Callable[..., int], given: tuple[Any, ...], most: int
) -> int:
    """Advance and decide by turns, see `CompiledDecisions.run`."""
    for _ in range(max(most, 1)):
        event = advance(core, way, news) if most > 0 else DECIDE
        if event != DECIDE:
            return event
        outcome = decide(*given, news)
        if outcome != DONE:
            return outcome
    return DECIDE
