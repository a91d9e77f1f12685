"""Decisions on the queues of a site, compiled.

A decision is to `hear` what has happened, to start jobs in order (`start_in_order`), and to
`backfill` others behind the heads. `decide` is all of it.
"""

from __future__ import annotations

from typing import NamedTuple

from optsched.arrays import Flags, Floats, Ints
from optsched.by_reference import by_reference
from optsched.compiled import kernel
from optsched.machines._ascending import enter
from optsched.machines._site_nodes import Log, Place, has_room, hold, note_node, note_start
from optsched.policies.site._heads import (
    Candidates,
    Room,
    forget_heads,
    next_beside_heads,
    note_allowed,
    note_end,
    place_request,
    reserve,
    start_before,
)
from optsched.policies.site._tables import Running, Shortages, add, ask_again, drop, ease
from optsched.simulator import _core
from optsched.simulator._core import News, tell


@by_reference
class Waiting(NamedTuple):
    """The waiting jobs."""

    rank: Floats  # order of the jobs
    backfilling: Floats  # order in which they are backfilled
    queue: Ints  # queue of each job
    waits: Flags  # of each job
    order: Ints  # the waiting jobs, in order
    behind: Ints  # the same in the order of backfilling
    number: Ints  # one entry, as the next two: of these
    gone: Ints  # how many of them wait no longer
    come: Ints  # how many have come since the last decision
    new: Ints  # which these are, in order
    candidates: Candidates


@by_reference
class Stops(NamedTuple):
    """What blocked jobs stop: later jobs of their queues, and of others that share nodes.

    What is blocked stays so until a job ends, a nearer job comes, or nodes are closed or opened.
    """

    cells: Flags  # shape (queues, cells)
    shares: Flags  # shape (queues, queues), whether two share cells
    blocked: Ints  # the blocked job of each queue, or `NO_JOB`
    open: Flags  # cells of no queue of a blocked job
    stopped: Flags  # queues
    is_kept: Flags  # one entry, as the next two: whether all of this still holds
    last: Floats  # the highest rank of a blocked job
    until: Floats  # when nodes are next closed or opened


@by_reference
class Queues(NamedTuple):
    """The jobs of a site, waiting and running."""

    room: Room
    running: Running
    shortages: Shortages
    waiting: Waiting
    stops: Stops
    log: Log  # without entries if Python has the nodes


@kernel(allocates=False)
def stop(stops: Stops, queue: int, job: int, shared: bool) -> None:
    """Let a blocked job stop queues: those that share cells with its own, or have no other ones."""
    stops.blocked[queue] = job
    if shared:
        for other in range(len(stops.cells)):
            stops.stopped[other] |= stops.shares[queue, other]
        return
    for cell in range(len(stops.open)):
        stops.open[cell] &= not stops.cells[queue, cell]
    for other in range(len(stops.cells)):
        is_stopped = True
        for cell in range(len(stops.open)):
            is_stopped &= not (stops.cells[other, cell] and stops.open[cell])
        stops.stopped[other] = is_stopped


@kernel(allocates=False)
def drop_gone(waiting: Waiting, order: Ints) -> int:
    """Remove the jobs that wait no longer; return how many do."""
    kept = 0
    for at in range(waiting.number[0]):
        if waiting.waits[order[at]]:
            order[kept] = order[at]
            kept += 1
    return kept


@kernel(allocates=False)
def run(queues: Queues, job: int, one: int, place: Place, used: int, end: float) -> None:
    """Let a job run on the first `used` nodes of a place, until `end` at most."""
    hold(queues.room.asked, queues.room.free, one, place, 0, used, -1)
    add(queues.running, end, job, one, place, used)
    if queues.waiting.waits[job]:
        queues.waiting.waits[job] = False
        queues.waiting.gone[0] += 1


@kernel(allocates=False)
def start(queues: Queues, news: News, job: int, one: int, used: int) -> None:
    """Start a job on the first `used` nodes of the place that was found."""
    place, log = queues.room.place, queues.log
    run(queues, job, one, place, used, news.now[0] + queues.waiting.candidates.requested[job])
    tell(news, _core.START, job, 0.0)
    if len(log.first) > 0:
        note_start(log, job)
        for entry in range(used):
            note_node(log, job, place.node[entry])


@kernel(allocates=False)
def finish(queues: Queues, job: int) -> None:
    """End a job."""
    room, running, shortages = queues.room, queues.running, queues.shortages
    asked, free = room.asked, room.free
    one, begin, stop = running.alternative[job], running.begin[job], running.stop[job]
    ease(shortages, asked, free, running, job, -1)
    hold(asked, free, one, running.held, begin, stop, 1)
    ease(shortages, asked, free, running, job, 1)
    note_end(room, running, job)
    drop(running, job)


@kernel(allocates=False)
def hear(queues: Queues, news: News) -> None:
    """Note which jobs have ended, have come, or wait no longer."""
    waiting, stops, counts = queues.waiting, queues.stops, news.counts
    for at in range(counts[_core.N_ENDED]):
        finish(queues, news.ended[at])
    for at in range(counts[_core.N_REJECTED]):
        waiting.waits[news.rejected[at]] = False
        waiting.gone[0] += 1
    if counts[_core.N_ENDED] > 0 or counts[_core.N_REJECTED] > 0:
        stops.is_kept[0] = False
    if waiting.gone[0] > 0:
        drop_gone(waiting, waiting.behind)
        waiting.number[0] = drop_gone(waiting, waiting.order)
        waiting.gone[0] = 0
    for new in range(counts[_core.N_SUBMITTED]):
        job = news.submitted[new]
        waiting.waits[job] = True
        enter(waiting.order, waiting.number[0], waiting.rank, job)
        enter(waiting.behind, waiting.number[0], waiting.backfilling, job)
        waiting.number[0] += 1
        enter(waiting.new, new, waiting.rank, job)
        enter(waiting.candidates.job, new, waiting.backfilling, job)
        if waiting.rank[job] < stops.last[0]:
            stops.is_kept[0] = False
    waiting.come[0] = counts[_core.N_SUBMITTED]


@kernel(allocates=False)
def start_in_order(queues: Queues, news: News, backfills: bool) -> int:
    """Start jobs up to the blocked ones, which become heads; return how many to backfill."""
    room, waiting, stops, now = queues.room, queues.waiting, queues.stops, news.now[0]
    candidates = waiting.candidates
    if waiting.number[0] == 0:
        return 0
    ask_again(room.closed, news)
    if room.free.total[0] == 0:
        stops.is_kept[0] = False
        return 0
    jobs, behind, count = waiting.new, candidates.job, waiting.come[0]
    if not stops.is_kept[0] or now >= stops.until[0]:
        forget_heads(room)
        stops.blocked[:] = _core.NO_JOB
        stops.open[:] = True
        stops.stopped[:] = False
        stops.last[0] = -1.0
        jobs, behind, count = waiting.order, waiting.behind, waiting.number[0]
    for at in range(count):
        if stops.stopped.all():
            break
        job = jobs[at]
        queue, own, end = waiting.queue[job], candidates.own[job], now + candidates.requested[job]
        if stops.stopped[queue]:
            continue
        note_allowed(room, own, now, end)
        if own == 0 and not backfills and len(room.closed.start) > 0:
            for node in range(len(room.allowed)):
                room.allowed[node] &= stops.open[node]
        one, used = place_request(room, candidates.requests[job], own, end)
        if used > 0:
            start(queues, news, job, one, used)
            start_before(room.heads)
            continue
        stop(stops, queue, job, backfills)
        stops.last[0] = max(stops.last[0], waiting.rank[job])
        if backfills:
            reserve(room, queues.running, candidates, job, now)
    stops.is_kept[0], stops.until[0] = True, room.closed.woken[0]
    number = 0
    for at in range(count if backfills else 0):
        job = behind[at]
        if waiting.waits[job] and stops.blocked[waiting.queue[job]] != job:
            candidates.job[number] = job
            number += 1
    return number


@kernel(allocates=False)
def backfill(queues: Queues, news: News, number: int) -> None:
    """Start those of the candidates that fit and delay no head, in order."""
    room, candidates, at = queues.room, queues.waiting.candidates, 0
    candidates.decision[0] += 1
    while at < number:
        at, one, used = next_beside_heads(
            room, queues.shortages, candidates, at, number, news.now[0]
        )
        if used > 0:
            start(queues, news, candidates.job[at], one, used)
            at += 1


@kernel(allocates=False)
def decide(queues: Queues, news: News, backfills: bool) -> int:
    """Decide on the jobs that wait; `OPEN` if the log of nodes has to be longer first."""
    if not has_room(queues.log, len(queues.running.held.node)):
        return _core.OPEN
    hear(queues, news)
    backfill(queues, news, start_in_order(queues, news, backfills))
    return _core.DONE


@kernel(allocates=False)
def place_job(queues: Queues, job: int, now: float) -> tuple[int, int]:
    """Place a job that starts now; return its alternative or `NOWHERE`, and its nodes."""
    room, candidates = queues.room, queues.waiting.candidates
    own, end = candidates.own[job], now + candidates.requested[job]
    note_allowed(room, own, now, end)
    return place_request(room, candidates.requests[job], own, end)
