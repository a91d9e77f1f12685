"""Compiled kernels of FCFS and EASY on a line of nodes.

The reference implementation is the engine with the policies fcfs, easy and easy-sjbf on the machine
`Nodes`; the tests compare start times, nodes and counts.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel

NO_BACKFILLING, IN_ORDER, SHORTEST_FIRST = 0, 1, 2

FREE, FREE_SLOTS, RUNNING, HEAD, TAIL, NEXT, STARTED, HELD, DECISIONS = range(9)
"""Entries of `State.tally`: free nodes, free slots, running jobs, the positions of the queue head
and after the last job of the queue, the next job to be submitted, jobs started so far, runs of
nodes held so far, decisions."""

Runs = NDArray[np.int64]
"""First node and end of runs of contiguous nodes, shape (runs, 2)."""

STARTED_ALREADY = -1
"""Mark in the queue of a job that was started, until `backfill` closes the gap."""


class State(NamedTuple):
    """State of a replay: the jobs, the queue and the free nodes."""

    submit: NDArray[np.float64]
    runtime: NDArray[np.float64]
    requested: NDArray[np.float64]
    processors: NDArray[np.int64]
    start: NDArray[np.float64]
    estimated_end: NDArray[np.float64]
    tally: NDArray[np.int64]
    free_start: NDArray[np.int64]
    free_stop: NDArray[np.int64]
    running: NDArray[np.int64]  # by estimated end, then job
    queue: NDArray[np.int64]
    started: NDArray[np.int64]  # in order of starting
    first_run: NDArray[np.int64]  # runs[first_run[job]:last_run[job]] are the job's
    last_run: NDArray[np.int64]


def new_state(
    submit: NDArray[np.float64],
    runtime: NDArray[np.float64],
    requested: NDArray[np.float64],
    processors: NDArray[np.int64],
    nodes: int,
) -> State:
    """Return the state before the first event; times in seconds, arrays of shape (jobs,)."""
    jobs = len(submit)
    most_running = min(jobs, nodes) + 1
    state = State(
        submit,
        runtime,
        requested,
        processors,
        start=np.full(jobs, np.nan),
        estimated_end=np.full(jobs, np.inf),
        tally=np.zeros(9, dtype=np.int64),
        free_start=np.zeros(nodes + 1, dtype=np.int64),
        free_stop=np.zeros(nodes + 1, dtype=np.int64),
        running=np.zeros(most_running, dtype=np.int64),
        queue=np.zeros(jobs, dtype=np.int64),
        started=np.zeros(jobs, dtype=np.int64),
        first_run=np.zeros(jobs, dtype=np.int64),
        last_run=np.zeros(jobs, dtype=np.int64),
    )
    state.tally[FREE] = nodes
    state.tally[FREE_SLOTS] = 1
    state.free_stop[0] = nodes
    return state


@kernel
def insert(array: NDArray[np.int64], count: int, position: int, value: int) -> None:
    """Insert a value into the first `count` entries."""
    for entry in range(count, position, -1):
        array[entry] = array[entry - 1]
    array[position] = value


@kernel
def delete(array: NDArray[np.int64], count: int, position: int) -> None:
    """Delete an entry of the first `count`."""
    for entry in range(position, count - 1):
        array[entry] = array[entry + 1]


@kernel
def position_among_running(state: State, job: int) -> int:
    """Return the position of a job in `State.running`, or the position to insert it at."""
    low, high = 0, state.tally[RUNNING]
    end = state.estimated_end[job]
    while low < high:
        middle = (low + high) // 2
        other = state.running[middle]
        if (state.estimated_end[other], other) < (end, job):
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def begin(state: State, runs: Runs, job: int, now: float) -> Runs:
    """Start a job on the first free nodes; return the runs, reallocated if they were full."""
    tally = state.tally
    if tally[HELD] + tally[FREE_SLOTS] > len(runs):
        runs = np.concatenate((runs, np.empty((len(runs) + tally[FREE_SLOTS], 2), dtype=np.int64)))
    state.start[job] = now
    state.started[tally[STARTED]] = job
    tally[STARTED] += 1
    state.estimated_end[job] = now + state.requested[job]
    insert(state.running, tally[RUNNING], position_among_running(state, job), job)
    tally[RUNNING] += 1
    needed = state.processors[job]
    tally[FREE] -= needed
    state.first_run[job] = tally[HELD]
    emptied = 0
    while needed > 0:
        first, last = state.free_start[emptied], state.free_stop[emptied]
        if last - first > needed:
            last = first + needed
            state.free_start[emptied] = last
        else:
            emptied += 1
        runs[tally[HELD], 0] = first
        runs[tally[HELD], 1] = last
        tally[HELD] += 1
        needed -= last - first
    state.last_run[job] = tally[HELD]
    if emptied:
        tally[FREE_SLOTS] -= emptied
        for run in range(tally[FREE_SLOTS]):
            state.free_start[run] = state.free_start[run + emptied]
            state.free_stop[run] = state.free_stop[run + emptied]
    return runs


@kernel
def finish(state: State, runs: Runs, job: int) -> None:
    """End a job: free its nodes, and merge them with adjacent slots."""
    tally = state.tally
    delete(state.running, tally[RUNNING], position_among_running(state, job))
    tally[RUNNING] -= 1
    tally[FREE] += state.processors[job]
    for run in range(state.first_run[job], state.last_run[job]):
        first, last = runs[run]
        free_slots = tally[FREE_SLOTS]
        after = np.searchsorted(state.free_start[:free_slots], first)
        touches_next = after < free_slots and state.free_start[after] == last
        if after > 0 and state.free_stop[after - 1] == first:
            if touches_next:
                state.free_stop[after - 1] = state.free_stop[after]
                delete(state.free_start, free_slots, after)
                delete(state.free_stop, free_slots, after)
                tally[FREE_SLOTS] -= 1
            else:
                state.free_stop[after - 1] = last
        elif touches_next:
            state.free_start[after] = first
        else:
            insert(state.free_start, free_slots, after, first)
            insert(state.free_stop, free_slots, after, last)
            tally[FREE_SLOTS] += 1


@kernel
def reserve(state: State, now: float) -> tuple[float, int]:
    """Return the shadow time and the extra processors of the queue head."""
    needed = state.processors[state.queue[state.tally[HEAD]]] - state.tally[FREE]
    shadow = now
    for entry in range(state.tally[RUNNING]):
        job = state.running[entry]
        end = state.estimated_end[job]
        if needed <= 0 and end > shadow:
            break
        needed -= state.processors[job]
        shadow = max(shadow, end)
    return shadow, -needed


@kernel
def backfill_candidates(
    state: State, longest: float, extra: int, first: int, shortest_first: bool
) -> NDArray[np.int64]:
    """Return the queue positions, from `first` on, of candidates in backfill order."""
    fits = np.empty(state.tally[TAIL] - first, dtype=np.int64)
    number = 0
    for position in range(first, state.tally[TAIL]):
        job = state.queue[position]
        size = state.processors[job]
        if size <= state.tally[FREE] and (state.requested[job] <= longest or size <= extra):
            fits[number] = position
            number += 1
    fits = fits[:number]
    if shortest_first and number > 1:
        times = state.requested[state.queue[fits]]
        fits = fits[np.argsort(times, kind="mergesort")]
    return fits


@kernel
def backfill(
    state: State,
    runs: Runs,
    now: float,
    shadow: float,
    extra: int,
    first: int,
    shortest_first: bool,
) -> tuple[Runs, int]:
    """Start the jobs that do not delay the reservation, from queue position `first` on.

    Return the runs, reallocated if they were full, and the remaining extra processors.
    """
    tally = state.tally
    started = False
    for position in backfill_candidates(state, shadow - now, extra, first, shortest_first):
        job = state.queue[position]
        size = state.processors[job]
        if size > tally[FREE]:
            continue
        if state.requested[job] > shadow - now:
            if size > extra:
                continue
            extra -= size
        runs = begin(state, runs, job, now)
        state.queue[position] = STARTED_ALREADY
        started = True
        if tally[FREE] == 0:
            break
    if started:
        kept = first
        for position in range(first, tally[TAIL]):
            if state.queue[position] != STARTED_ALREADY:
                state.queue[kept] = state.queue[position]
                kept += 1
        tally[TAIL] = kept
    return runs, extra


@kernel
def submit_next(state: State, nodes: int) -> None:
    """Add the next job to the queue, unless it is larger than the machine."""
    tally = state.tally
    job = tally[NEXT]
    tally[NEXT] += 1
    if state.processors[job] <= nodes:
        state.queue[tally[TAIL]] = job
        tally[TAIL] += 1


@kernel
def replay(state: State, nodes: int, backfilling: int, one_by_one: bool) -> Runs:
    """Process all events, from the result of `new_state`, which is changed in place.

    Backfilling is `NO_BACKFILLING`, `IN_ORDER` or `SHORTEST_FIRST`. Return the runs of nodes that
    the jobs held, see `State.first_run`.
    """
    tally, jobs = state.tally, len(state.submit)
    runs = np.empty((2 * jobs, 2), dtype=np.int64)
    ends = [(np.inf, 0, 0)]  # time, order of starting, job; the first entry means "no end"
    due = np.zeros(len(state.running), dtype=np.int64)
    head, shadow, extra = -1, 0.0, 0
    while True:
        now = ends[0][0]
        if tally[NEXT] < jobs:
            now = min(now, state.submit[tally[NEXT]])
        if now == np.inf:
            return runs[: tally[HELD]]
        num_due, passed = 0, 0
        ended = False
        while ends[0][0] == now:
            job = heapq.heappop(ends)[2]
            due[num_due] = job
            num_due += 1
            if not one_by_one or state.estimated_end[job] == now:
                finish(state, runs, job)
                ended = True
        while True:
            first = tally[TAIL]
            if not one_by_one:
                while tally[NEXT] < jobs and state.submit[tally[NEXT]] == now:
                    submit_next(state, nodes)
            elif tally[NEXT] < jobs and state.submit[tally[NEXT]] == now:
                submit_next(state, nodes)
            elif passed < num_due:
                job = due[passed]
                passed += 1
                if state.estimated_end[job] != now:
                    finish(state, runs, job)
                    ended = True
            else:
                break
            tally[DECISIONS] += 1
            started = tally[STARTED]
            while tally[HEAD] < tally[TAIL]:
                job = state.queue[tally[HEAD]]
                if state.processors[job] > tally[FREE]:
                    break
                runs = begin(state, runs, job, now)
                tally[HEAD] += 1
            behind = tally[HEAD] + 1
            if backfilling != NO_BACKFILLING and behind < tally[TAIL] and tally[FREE] > 0:
                if ended or state.queue[tally[HEAD]] != head:
                    head = state.queue[tally[HEAD]]
                    shadow, extra = reserve(state, now)
                    first = behind
                first = max(first, behind)
                runs, extra = backfill(
                    state, runs, now, shadow, extra, first, backfilling == SHORTEST_FIRST
                )
            else:
                head = -1
            ended = False
            for order in range(started, tally[STARTED]):
                job = state.started[order]
                heapq.heappush(ends, (now + state.runtime[job], order, job))
            if not one_by_one:
                break
