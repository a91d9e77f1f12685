"""Which waiting jobs may start or reserve as their turn comes: quotas and limits, compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optsched.by_reference import by_reference
from optsched.compiled import kernel
from optsched.machines._site_nodes import Flags, Numbers
from optsched.simulator._core import Times


@by_reference
class Turns(NamedTuple):
    """How far ahead each job may reserve, and quotas of jobs that wait.

    A job is not examined where a quota of its own is used up, unless no job before it waits for
    nodes of its queue. Of the first kind of quota only reservations count: where it is used up, a
    job may start now.
    """

    ahead: Times  # of each job: within how many seconds its reservation has to begin
    quota: Numbers  # of each job and kind
    most: Numbers  # of each quota
    left: Numbers
    queue: Numbers  # of each job
    shares: Flags  # shape (queues, queues): whether both have a node
    is_awaited: Flags  # of each queue: whether a job waits for nodes of it


@kernel(allocates=False)
def begin_turns(turns: Turns) -> None:
    """Forget the jobs whose turn has come."""
    for quota in range(len(turns.most)):
        turns.left[quota] = turns.most[quota]
    for queue in range(len(turns.is_awaited)):
        turns.is_awaited[queue] = False


@kernel(allocates=False)
def ahead_of(turns: Turns, job: int) -> float:
    """Return how far ahead a job may reserve: 0 for now alone, negative if it is not examined."""
    ahead = turns.ahead[job]
    for kind in range(turns.quota.shape[1]):
        if turns.left[turns.quota[job, kind]] <= 0:
            ahead = 0.0
            if kind > 0 and turns.is_awaited[turns.queue[job]]:
                return -1.0
    return float(ahead)


@kernel(allocates=False)
def note_wait(turns: Turns, job: int, ahead: float, is_reserved: bool) -> None:
    """Note that a job waits, which might reserve so far ahead, for those after it."""
    for kind in range(turns.quota.shape[1]):
        if ahead >= 0 and (kind > 0 or is_reserved):
            turns.left[turns.quota[job, kind]] -= 1
    for queue in range(len(turns.is_awaited)):
        if turns.ahead[job] > 0 and turns.shares[turns.queue[job], queue]:
            turns.is_awaited[queue] = True


def all_turns(cells: Flags, of_job: Numbers) -> Turns:
    """Return turns without quotas; `cells` has a row for each queue, `of_job` that of each job."""
    none = np.zeros(0, dtype=np.int64)
    return Turns(
        np.full(len(of_job), np.inf),
        np.zeros((len(of_job), 0), dtype=np.int64),
        *(none, none.copy(), of_job, cells @ cells.T, np.zeros(len(cells), dtype=bool)),
    )


@by_reference
class Limited(NamedTuple):
    """How much jobs take of limits, and how much these have left."""

    first: Numbers  # entries first[job] to before first[job + 1] are those of a job
    limit: Numbers
    amount: Numbers
    binds: Flags  # whether the job has to keep the limit; otherwise it only counts
    left: Numbers  # of each limit, negative where more is in use than allowed


@kernel(allocates=False)
def give_back(limited: Limited, jobs: Numbers, number: int) -> None:
    """Give back what the first `number` jobs have taken, which have ended."""
    for at in range(number):
        for entry in range(limited.first[jobs[at]], limited.first[jobs[at] + 1]):
            limited.left[limited.limit[entry]] += limited.amount[entry]


@kernel(allocates=False)
def admit(limited: Limited, jobs: Numbers, number: int) -> int:
    """Move those of the first `number` jobs to the front that limits admit; return how many."""
    admitted = 0
    for at in range(number):
        job, fits = jobs[at], True
        for entry in range(limited.first[job], limited.first[job + 1]):
            if limited.binds[entry] and limited.amount[entry] > limited.left[limited.limit[entry]]:
                fits = False
        if not fits:
            continue
        for entry in range(limited.first[job], limited.first[job + 1]):
            limited.left[limited.limit[entry]] -= limited.amount[entry]
        for place in range(at, admitted, -1):
            jobs[place] = jobs[place - 1]
        jobs[admitted] = job
        admitted += 1
    return admitted
