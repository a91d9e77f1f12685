"""Events and nodes of a replay, compiled.

A replay is a loop over `advance`, `finish` and `begin`, with the decisions of a policy in between.
It takes the place of the engine on a line of nodes, for policies that only count processors.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel

Times = NDArray[np.float64]
Numbers = NDArray[np.int64]

Runs = NDArray[np.int64]
"""First node and end of runs of contiguous nodes, shape (runs, 2)."""

Ends = list[tuple[float, int, int]]
"""Heap of the ends of running jobs: time, order of starting, job. `NO_END` stays in it."""

NO_END = (np.inf, 0, 0)

FREE, FREE_SLOTS, HELD, STARTED, NEXT, FIRST, DUE, PASSED, ENDED, DECISIONS = range(10)
"""Entries of `State.tally`: free nodes, free slots, runs of nodes held so far, jobs started so far,
the next job to be submitted, the first job submitted for this decision, ends due at this time and
those handled of them, jobs that ended for this decision, decisions."""


class State(NamedTuple):
    """State of a replay: the jobs, the free nodes and the events of the present time."""

    submit: Times
    runtime: Times
    requested: Times
    processors: Numbers
    start: Times
    estimated_end: Times
    tally: Numbers
    now: Times  # one entry
    due: Numbers
    ended: Numbers
    free_start: Numbers
    free_stop: Numbers
    first_run: Numbers  # runs[first_run[job]:last_run[job]] are the job's
    last_run: Numbers


def new_state(
    submit: Times, runtime: Times, requested: Times, processors: Numbers, nodes: int
) -> State:
    """Return the state before the first event; times in seconds, arrays of shape (jobs,)."""
    jobs = len(submit)
    running = min(jobs, nodes) + 1
    state = State(
        submit,
        runtime,
        requested,
        processors,
        start=np.full(jobs, np.nan),
        estimated_end=np.full(jobs, np.inf),
        tally=np.zeros(10, dtype=np.int64),
        now=np.full(1, -np.inf),
        due=np.zeros(running, dtype=np.int64),
        ended=np.zeros(running, dtype=np.int64),
        free_start=np.zeros(nodes + 1, dtype=np.int64),
        free_stop=np.zeros(nodes + 1, dtype=np.int64),
        first_run=np.zeros(jobs, dtype=np.int64),
        last_run=np.zeros(jobs, dtype=np.int64),
    )
    state.tally[FREE] = nodes
    state.tally[FREE_SLOTS] = 1
    state.free_stop[0] = nodes
    return state


@kernel
def advance(state: State, ends: Ends, one_by_one: bool) -> bool:
    """Advance to the next decision; return whether there is one.

    Then the jobs ``state.ended[: tally[ENDED]]`` end, which remain to be passed to `finish`, and
    those from ``tally[FIRST]`` to before ``tally[NEXT]`` are submitted.
    """
    tally, submit = state.tally, state.submit
    jobs, now = len(submit), state.now[0]
    tally[ENDED] = 0
    tally[FIRST] = tally[NEXT]
    comes = tally[NEXT] < jobs and submit[tally[NEXT]] == now
    if not (one_by_one and (comes or tally[PASSED] < tally[DUE])):
        now = ends[0][0]
        if tally[NEXT] < jobs:
            now = min(now, submit[tally[NEXT]])
        if now == np.inf:
            return False
        state.now[0] = now
        tally[DUE] = tally[PASSED] = 0
        while ends[0][0] == now:
            job = heapq.heappop(ends)[2]
            state.due[tally[DUE]] = job
            tally[DUE] += 1
            if not one_by_one or state.estimated_end[job] == now:
                state.ended[tally[ENDED]] = job
                tally[ENDED] += 1
        comes = tally[NEXT] < jobs and submit[tally[NEXT]] == now
    tally[DECISIONS] += 1
    if not one_by_one:
        while tally[NEXT] < jobs and submit[tally[NEXT]] == now:
            tally[NEXT] += 1
    elif comes:
        tally[NEXT] += 1
    else:
        job = state.due[tally[PASSED]]
        tally[PASSED] += 1
        if state.estimated_end[job] != now:
            state.ended[tally[ENDED]] = job
            tally[ENDED] += 1
    return True


@kernel
def insert(array: Numbers, count: int, position: int, value: int) -> None:
    """Insert a value into the first `count` entries."""
    for entry in range(count, position, -1):
        array[entry] = array[entry - 1]
    array[position] = value


@kernel
def delete(array: Numbers, count: int, position: int) -> None:
    """Delete an entry of the first `count`."""
    for entry in range(position, count - 1):
        array[entry] = array[entry + 1]


@kernel
def begin(state: State, runs: Runs, ends: Ends, job: int) -> Runs:
    """Start a job on the first free nodes; return the runs, reallocated if they were full."""
    tally, now = state.tally, state.now[0]
    if tally[HELD] + tally[FREE_SLOTS] > len(runs):
        runs = np.concatenate((runs, np.empty((len(runs) + tally[FREE_SLOTS], 2), dtype=np.int64)))
    state.start[job] = now
    state.estimated_end[job] = now + state.requested[job]
    heapq.heappush(ends, (now + state.runtime[job], tally[STARTED], job))
    tally[STARTED] += 1
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
