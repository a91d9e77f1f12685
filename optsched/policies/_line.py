"""Decisions on a line in an order of the queue, with or without EASY backfilling, compiled.

The kernels only count processors; `optsched.machines._line_nodes` tells which nodes each job held.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from optsched.by_reference import Record, by_reference, record
from optsched.compiled import Kernel, kernel
from optsched.kernel_cache import NotOnDiskError, only_loading
from optsched.machines._ascending import delete, enter, insert, place_of
from optsched.machines._line_nodes import Log, new_log, nodes_of, note
from optsched.machines.nodes import Nodes
from optsched.policies._running import leave, shadow_of
from optsched.simulator import _core
from optsched.simulator._core import News, Numbers, Times, tell, zeroed
from optsched.simulator.compiled_decisions import CompiledDecisions, CompiledRun

NOBODY = -1

COUNTS = record("free first last running head extra promised", "shadow promised_start")
"""Free processors; the waiting jobs are ``queue[first:last]``; running jobs; the blocked job with
the reservation, and the processors that it leaves over; the job of which a start was promised.
Shadow time of the blocked job, its earliest since it is blocked."""

MOST = 32
"""Candidates that are sorted at a time."""

BLOCK = 6
"""Binary logarithm of the jobs of a block, neighbours in the order of the queue."""

ANY_WIDTH = 2**62

MARGIN = 1e-9
"""Relative difference of products that is beyond rounding."""


class Rule(NamedTuple):
    """The order of the queue, and what happens behind a blocked job."""

    power: int  # above 0: the score is -(wait / unit)^power * weight; else it does not change
    backfills: bool
    shortest_first: bool  # order of backfilling: by requested time
    keeps: bool  # the reservation, when its time has passed


@by_reference
class Line(NamedTuple):
    """The jobs, those that wait and those that run; equal scores are in order of submission.

    Of the waiting jobs of each block there are a number, and bounds that need not be reached: the
    least of their processors and times, the largest of their slopes and waits.
    """

    processors: Numbers
    requested: Times
    submit: Times
    rank: Numbers  # the queue is in the order of this, which does not change
    score: Times  # the lowest is first: the rank, unless it changes
    unit: Times
    weight: Times
    slope: Times  # scores are in the reverse order of this times the wait
    queue: Numbers
    candidates: Numbers
    waiting: Numbers  # of each block, as the next four
    narrowest: Numbers
    shortest: Times
    steepest: Times
    earliest: Times
    estimated_end: Times
    running: Numbers  # by estimated end
    log: Log
    counts: Record


@kernel(allocates=False)
def enqueue(line: Line, rule: Rule, job: int) -> None:
    """Put a submitted job into the queue."""
    counts, block = line.counts[0], line.rank[job] >> BLOCK
    place = place_of(line.queue, counts.first, counts.last, line.rank, job)
    insert(line.queue, counts.last, place, job)
    counts.last += 1
    if line.waiting[block] == 0:
        line.narrowest[block] = line.processors[job]
        line.shortest[block] = line.earliest[block] = np.inf
        line.steepest[block] = 0.0
    line.waiting[block] += 1
    line.narrowest[block] = min(line.narrowest[block], line.processors[job])
    line.shortest[block] = min(line.shortest[block], line.requested[job])
    if rule.power:
        line.steepest[block] = max(line.steepest[block], line.slope[job])
        line.earliest[block] = min(line.earliest[block], line.submit[job])


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
    line.waiting[line.rank[job] >> BLOCK] -= 1


@kernel(allocates=False)
def begin(line: Line, news: News, job: int) -> None:
    """Start a waiting job."""
    counts = line.counts[0]
    dequeue(line, job)
    line.estimated_end[job] = news.now[0] + line.requested[job]
    enter(line.running, counts.running, line.estimated_end, job)
    counts.running += 1
    counts.free -= line.processors[job]
    note(line.log, job)
    tell(news, _core.START, job, 0.0)


@kernel(allocates=False)
def set_score(line: Line, rule: Rule, job: int, now: float) -> float:
    """Compute the score of a job that changes while it waits."""
    waits = (now - line.submit[job]) / line.unit[job]
    if rule.power == 3:
        waits = waits * waits * waits
    line.score[job] = -waits * line.weight[job]
    return float(line.score[job])


@kernel(allocates=False)
def reserve(line: Line, now: float, job: int) -> None:
    """Find the time at which a blocked job can start at the latest, and what is left over then."""
    counts, processors, end = line.counts[0], line.processors, line.estimated_end
    missing = processors[job] - counts.free
    shadow, extra = shadow_of(line.running, counts.running, end, processors, missing, now)
    counts.shadow, counts.head, counts.extra = shadow, job, extra
    if counts.promised != job or shadow < counts.promised_start:
        counts.promised, counts.promised_start = job, shadow


@kernel(allocates=False)
def select(line: Line, rule: Rule, now: float, most: int, free: int, longest: float) -> int:
    """Find the first waiting jobs that fit, at most `most`, in order; return their number."""
    counts, queue, found, number = line.counts[0], line.queue, line.candidates, 0
    key = line.requested if rule.shortest_first else line.score
    requested, slope, submit, extra = line.requested, line.slope, line.submit, counts.extra
    # jobs are left out by the bounds of their blocks, or by a product without a division
    latest, least = np.inf, -np.inf  # bounds on requested time, and on slope times wait
    at = counts.first
    while at < counts.last:
        block = line.rank[queue[at]] >> BLOCK
        stop, width, seconds = at + line.waiting[block], line.narrowest[block], line.shortest[block]
        is_out = width > free or (width > extra and seconds > longest) or seconds > latest
        if is_out or (rule.power and line.steepest[block] * (now - line.earliest[block]) < least):
            at = stop
        while at < stop:
            job = queue[at]
            at += 1
            if rule.power and slope[job] * (now - submit[job]) < least:
                continue
            width, seconds = line.processors[job], requested[job]
            if width > free or (width > extra and seconds > longest) or seconds > latest:
                continue
            if rule.power:
                set_score(line, rule, job, now)
            if number == most and place_of(found, most - 1, most, key, job) == most:
                continue
            number = min(number + 1, most)
            enter(found, number - 1, key, job)
            if number == most:
                last = found[most - 1]
                if rule.shortest_first:
                    latest = requested[last]
                elif rule.power:
                    ahead = slope[last] * (now - submit[last])
                    least = ahead - MARGIN * abs(ahead)
                else:
                    return most  # the others are behind these
    return number


@kernel(allocates=False)
def first_in_order(line: Line, rule: Rule, now: float) -> int:
    """Return the first waiting job."""
    if not rule.power:
        return int(line.queue[line.counts[0].first])
    select(line, rule, now, 1, ANY_WIDTH, np.inf)
    return int(line.candidates[0])


@kernel(allocates=False)
def pass_head(line: Line, news: News, job: int) -> None:
    """Start a job if it does not delay the blocked one."""
    counts, width = line.counts[0], line.processors[job]
    is_short = line.requested[job] <= counts.shadow - news.now[0]
    if width <= counts.free and (is_short or width <= counts.extra):
        counts.extra -= 0 if is_short else width
        begin(line, news, job)


@kernel(allocates=False)
def decide(line: Line, rule: Rule, news: News) -> int:
    """Start jobs in order while they fit, reserve for the first blocked one, backfill the others.

    As long as no job has ended and the head is the same, a job that could not be backfilled still
    cannot, since its estimated end only moves later. So only new jobs are tried.
    """
    counts, now, count = line.counts[0], news.now[0], news.counts
    for at in range(count[_core.N_ENDED]):
        job = news.ended[at]
        leave(line.running, counts.running, line.estimated_end, job)
        counts.running -= 1
        counts.free += line.processors[job]
        note(line.log, ~job)
    for at in range(count[_core.N_SUBMITTED]):
        enqueue(line, rule, news.submitted[at])
    if counts.first == counts.last or counts.free == 0:
        counts.head = NOBODY
        return _core.DONE
    first = first_in_order(line, rule, now)
    passed = counts.shadow < now and not rule.keeps
    if count[_core.N_ENDED] or passed or first != counts.head:
        while line.processors[first] <= counts.free:
            counts.promised = NOBODY
            begin(line, news, first)
            if counts.first == counts.last:
                return _core.DONE
            first = first_in_order(line, rule, now)
        counts.head = NOBODY
        if counts.last - counts.first < 2 or not rule.backfills or counts.free == 0:
            return _core.DONE
        reserve(line, now, first)
    elif count[_core.N_SUBMITTED] == 1:
        pass_head(line, news, news.submitted[0])
        return _core.DONE
    number = MOST
    while number == MOST and counts.free:  # after a few, hardly any may pass
        number = select(line, rule, now, MOST, counts.free, counts.shadow - now)
        for at in range(number):
            pass_head(line, news, line.candidates[at])
    return _core.DONE


class LineDecisions(CompiledDecisions):
    """The decisions of a kernel that counts processors, and keeps a log of starts and ends."""

    states_places = False

    def __init__(self, run: CompiledRun, decide: Kernel, *state: Any) -> None:
        self._processors, self._size = run.trace.processors.astype(np.int64), run.machine.size
        self._state = state[0]
        with nullcontext() if run.may_compile else only_loading():
            self._bind_kernel(run._replace(may_compile=True), decide, *state)

    @classmethod
    def at_hand(cls, run: CompiledRun, *kernel_and_state: Any) -> Self | None:
        """Bind a kernel to a run; None if it is not on disk and not worth compiling."""
        try:
            return cls(run, *kernel_and_state)
        except NotOnDiskError:
            return None

    def place(self, job: int, value: float) -> Any:
        """Return None: the machine gives the first free nodes."""
        return None

    def resources(self) -> Sequence[str]:
        """Return the nodes that each job held, as interval sets."""
        log = self._state.log
        return nodes_of(log.entries[: log.number[0]], self._processors, self._size)


class QueueDecisions(LineDecisions):
    """The queue of a run as the decision kernel keeps it."""

    @property
    def promised(self) -> Mapping[int, float]:
        """The first shadow time of the blocked job, by job."""
        counts = self._state.counts[0]
        if counts.promised == NOBODY:
            return {}
        return {int(counts.promised): float(counts.promised_start)}


def is_line(run: CompiledRun) -> bool:
    """Return whether the machine gives each job the first free nodes, as `Nodes` does."""
    own = type(run.machine)
    return issubclass(own, Nodes) and own.allocate is Nodes.allocate and own.fits is Nodes.fits


def queue_decisions(
    run: CompiledRun,
    *,
    power: int = 0,
    backfills: bool = False,
    shortest_first: bool = False,
    **order: NDArray[Any],
) -> QueueDecisions | None:
    """Bind the kernel for a queue, see `Rule` and `Line`; None where it cannot decide.

    The order is by default that of submission. Only in that, a job keeps its reservation.
    """
    ordered = all(np.isfinite(one).all() for one in order.values())
    if not is_line(run) or not ordered or not order.get("unit", np.ones(1)).all():
        return None
    jobs, nodes = len(run.trace), run.machine.size
    given = {"rank": np.arange(jobs), "unit": np.ones(1), "weight": np.ones(1)} | order
    rank, unit, weight = (given[name].astype(np.float64) for name in ("rank", "unit", "weight"))
    counts = np.zeros(1, dtype=COUNTS)
    counts["free"], counts["head"], counts["promised"] = nodes, NOBODY, NOBODY
    line = zeroed(
        Line,
        jobs,
        processors=run.trace.processors.astype(np.int64),
        requested=run.core.requested,
        submit=run.core.submit,
        rank=np.argsort(np.argsort(rank, kind="stable")),
        score=rank,
        unit=unit,
        weight=weight,
        slope=(np.cbrt(weight) if power == 3 else weight) / unit,
        queue=np.zeros(2 * jobs, dtype=np.int64),
        candidates=np.zeros(MOST, dtype=np.int64),
        log=new_log(jobs),
        counts=counts,
    )
    rule = Rule(power, backfills, shortest_first, keeps=not order)
    return QueueDecisions.at_hand(run, decide, line, rule)
