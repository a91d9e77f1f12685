"""Events and nodes of a replay, compiled.

A replay is a loop over `advance`, `finish` and `begin`, with the decisions of a policy in between.
It takes the place of the engine on a line of nodes, for policies that only count processors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel

Times = NDArray[np.float64]
Numbers = NDArray[np.int64]

Runs = NDArray[np.int64]
"""First node and end of runs of contiguous nodes, shape (runs, 2)."""

FREE, FREE_SLOTS, HELD, STARTED, RUNNING, NEXT, FIRST, DUE, PASSED, ENDED, DECISIONS = range(11)
"""Entries of `State.tally`: free nodes, free slots, runs of nodes held so far, jobs started so far,
running jobs, the next job to be submitted, the first job submitted for this decision, ends due at
this time and those handled of them, jobs that ended for this decision, decisions."""


class Ends(NamedTuple):
    """The ends of the running jobs: a binary heap by time, then order of starting."""

    time: Times  # infinite behind the last
    order: Numbers
    job: Numbers


class State(NamedTuple):
    """State of a replay: the jobs, the free nodes and the events of the present time."""

    one_by_one: bool
    submit: Times
    runtime: Times
    requested: Times
    processors: Numbers
    start: Times
    estimated_end: Times
    tally: Numbers
    now: Times  # one entry
    ends: Ends
    due: Numbers
    ended: Numbers
    free_start: Numbers
    free_stop: Numbers
    runs: Runs
    first_run: Numbers  # runs[first_run[job]:last_run[job]] are the job's
    last_run: Numbers


def new_state(
    submit: Times,
    runtime: Times,
    requested: Times,
    processors: Numbers,
    nodes: int,
    one_by_one: bool,
) -> State:
    """Return the state before the first event; times in seconds, arrays of shape (jobs,)."""
    jobs = len(submit)
    running = min(jobs, nodes) + 1
    state = State(
        one_by_one,
        submit,
        runtime,
        requested,
        processors,
        start=np.full(jobs, np.nan),
        estimated_end=np.full(jobs, np.inf),
        tally=np.zeros(11, dtype=np.int64),
        now=np.full(1, -np.inf),
        ends=Ends(np.full(running, np.inf), *np.zeros((2, running), dtype=np.int64)),
        due=np.zeros(running, dtype=np.int64),
        ended=np.zeros(running, dtype=np.int64),
        free_start=np.zeros(nodes + 1, dtype=np.int64),
        free_stop=np.zeros(nodes + 1, dtype=np.int64),
        runs=np.empty((2 * jobs + nodes + 1, 2), dtype=np.int64),
        first_run=np.zeros(jobs, dtype=np.int64),
        last_run=np.zeros(jobs, dtype=np.int64),
    )
    state.tally[FREE] = nodes
    state.tally[FREE_SLOTS] = 1
    state.free_stop[0] = nodes
    return state


def process(state: State, events: Callable[[State], bool]) -> Runs:
    """Process all events; return the runs of nodes that the jobs held, see `State.first_run`.

    Parameters
    ----------
    state : State
        The state before the first event, changed in place.
    events : callable
        Kernel that processes events while `has_room`, and returns whether it has processed all.
    """
    while not events(state):
        state = state._replace(runs=np.concatenate((state.runs, np.empty_like(state.runs))))
    return state.runs[: state.tally[HELD]]


@kernel(allocates=False)
def has_room(state: State) -> bool:
    """Return whether the runs of all nodes have room."""
    return bool(state.tally[HELD] + len(state.free_start) <= len(state.runs))


@kernel(allocates=False)
def position(times: Times, count: int, time: float) -> int:
    """Return the first of `count` ascending entries that is at least `time`."""
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if times[middle] < time:
            low = middle + 1
        else:
            high = middle
    return low


@kernel(allocates=False)
def push(ends: Ends, count: int, time: float, order: int, job: int) -> None:
    """Add an end to the first `count`; `order` is above those of all others."""
    entry = count
    while entry > 0:
        parent = (entry - 1) >> 1
        if ends.time[parent] <= time:
            break
        ends.time[entry] = ends.time[parent]
        ends.order[entry] = ends.order[parent]
        ends.job[entry] = ends.job[parent]
        entry = parent
    ends.time[entry], ends.order[entry], ends.job[entry] = time, order, job


@kernel(allocates=False)
def pop(ends: Ends, count: int) -> int:
    """Remove the first of the first `count` ends; return its job."""
    found, last = ends.job[0], count - 1
    time, order, job = ends.time[last], ends.order[last], ends.job[last]
    ends.time[last] = np.inf
    entry, child = 0, 1
    while child < last:
        other = child + 1
        if ends.time[other] < ends.time[child] or (
            ends.time[other] == ends.time[child] and ends.order[other] < ends.order[child]
        ):
            child = other
        if ends.time[child] > time or (ends.time[child] == time and ends.order[child] > order):
            break
        ends.time[entry] = ends.time[child]
        ends.order[entry] = ends.order[child]
        ends.job[entry] = ends.job[child]
        entry, child = child, 2 * child + 1
    if last > 0:
        ends.time[entry], ends.order[entry], ends.job[entry] = time, order, job
    return int(found)


@kernel(allocates=False)
def advance(state: State) -> bool:
    """Advance to the next decision; return whether there is one.

    Then the jobs ``state.ended[: tally[ENDED]]`` end, which remain to be passed to `finish`, and
    those from ``tally[FIRST]`` to before ``tally[NEXT]`` are submitted.
    """
    tally, submit, ends = state.tally, state.submit, state.ends
    one_by_one = state.one_by_one
    jobs, now = len(submit), state.now[0]
    tally[ENDED] = 0
    tally[FIRST] = tally[NEXT]
    comes = tally[NEXT] < jobs and submit[tally[NEXT]] == now
    if not (one_by_one and (comes or tally[PASSED] < tally[DUE])):
        now = ends.time[0]
        if tally[NEXT] < jobs:
            now = min(now, submit[tally[NEXT]])
        if now == np.inf:
            return False
        state.now[0] = now
        tally[DUE] = tally[PASSED] = 0
        while ends.time[0] == now:
            job = pop(ends, tally[RUNNING])
            tally[RUNNING] -= 1
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


@kernel(allocates=False)
def insert(array: NDArray[Any], count: int, position: int, value: float) -> None:
    """Insert a value into the first `count` entries.

    Indices are unsigned in loops that shift entries: signed ones can be negative, and what handles
    that keeps the compiler from moving several entries at a time.
    """
    for entry in range(np.uint64(position), np.uint64(count + 1)):
        array[entry], value = value, array[entry]


@kernel(allocates=False)
def delete(array: NDArray[Any], count: int, position: int) -> None:
    """Delete an entry of the first `count`."""
    one = np.uint64(1)
    for entry in range(np.uint64(position), np.uint64(count - 1)):
        array[entry] = array[entry + one]


@kernel(allocates=False)
def start(state: State, job: int) -> None:
    """Start a job, which holds no nodes yet."""
    tally, now = state.tally, state.now[0]
    state.start[job] = now
    state.estimated_end[job] = now + state.requested[job]
    push(state.ends, tally[RUNNING], now + state.runtime[job], tally[STARTED], job)
    tally[STARTED] += 1
    tally[RUNNING] += 1
    state.first_run[job] = state.last_run[job] = tally[HELD]


@kernel(allocates=False)
def hold(state: State, job: int, node: int) -> None:
    """Add a node to the runs of a job that has just started, after those of lower number."""
    tally, runs = state.tally, state.runs
    if state.first_run[job] == tally[HELD] or runs[tally[HELD] - 1, 1] != node:
        runs[tally[HELD], 0] = node
        tally[HELD] += 1
    runs[tally[HELD] - 1, 1] = node + 1
    state.last_run[job] = tally[HELD]


@kernel(allocates=False)
def begin(state: State, job: int) -> None:
    """Start a job on the first free nodes."""
    start(state, job)
    tally, runs = state.tally, state.runs
    needed = state.processors[job]
    tally[FREE] -= needed
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
        shift = np.uint64(emptied)
        for slot in range(np.uint64(tally[FREE_SLOTS])):
            state.free_start[slot] = state.free_start[slot + shift]
            state.free_stop[slot] = state.free_stop[slot + shift]


@kernel(allocates=False)
def finish(state: State, job: int) -> None:
    """End a job: free its nodes, and merge them with adjacent slots."""
    tally = state.tally
    tally[FREE] += state.processors[job]
    for run in range(state.first_run[job], state.last_run[job]):
        first, last = state.runs[run, 0], state.runs[run, 1]
        free_slots = tally[FREE_SLOTS]
        after = position(state.free_start, free_slots, first)
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
