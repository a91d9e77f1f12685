"""Tournament of the kinds of waiting jobs by an order that does not change, compiled.

A binary tree whose leaves are the kinds, ascending by processors, then requested time. The kinds of
at most some width are a prefix of the leaves, and a node without short enough jobs is not entered,
so the next job to be backfilled is found without a look at the others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel

Times = NDArray[np.float64]
Numbers = NDArray[np.int64]

BEHIND = np.iinfo(np.int64).max
"""Rank behind those of all jobs: that of kinds of which no job waits."""


class Tournament(NamedTuple):
    """The order of all jobs, and the first waiting job of each kind.

    The children of node i are 2 i and 2 i + 1, the root is 1; the leaves are the second half.
    """

    rank: Numbers  # place of each job in the order
    jobs: Numbers  # the jobs in order
    first: Numbers  # lowest rank of the kinds below each node
    shortest: Times  # least requested time of those that wait
    stack: Numbers  # nodes that remain to be searched


def new_tournament(number: int, score: Times) -> Tournament:
    """Return a tournament of a number of kinds, without waiting jobs.

    The job of the lowest score, shape (jobs,), is the first in order; ties by job.
    """
    jobs = np.argsort(score, kind="stable")
    rank = np.empty_like(jobs)
    rank[jobs] = np.arange(len(jobs))
    return Tournament(
        rank,
        jobs,
        first=np.full(2 * number, BEHIND),
        shortest=np.full(2 * number, np.inf),
        stack=np.zeros(4 * number.bit_length() + 4, dtype=np.int64),
    )


@kernel(allocates=False)
def enter(tournament: Tournament, kind: int, rank: int, duration: float) -> None:
    """Change the first waiting job of a kind; BEHIND and inf if it no longer waits."""
    first, shortest = tournament.first, tournament.shortest
    node = (len(first) >> 1) + kind
    first[node], shortest[node] = rank, duration
    while node > 1:
        other, parent = node ^ 1, node >> 1
        rank = min(first[node], first[other])
        duration = min(shortest[node], shortest[other])
        if first[parent] == rank and shortest[parent] == duration:
            break
        first[parent], shortest[parent] = rank, duration
        node = parent


@kernel(allocates=False)
def next_rank(tournament: Tournament, narrow: int, fitting: int, longest: float) -> int:
    """Return the lowest rank of the `narrow` first kinds, and of short ones of the first `fitting`.

    Short ones request at most `longest`.
    """
    first, shortest, stack = tournament.first, tournament.shortest, tournament.stack
    leaves = len(first) >> 1
    best = BEHIND
    low, high = leaves, leaves + narrow
    while low < high:
        if low & 1:
            best = min(best, first[low])
            low += 1
        if high & 1:
            high -= 1
            best = min(best, first[high])
        low, high = low >> 1, high >> 1
    count = 0
    low, high = leaves + narrow, leaves + fitting
    while low < high:
        if low & 1:
            stack[count] = low
            count += 1
            low += 1
        if high & 1:
            high -= 1
            stack[count] = high
            count += 1
        low, high = low >> 1, high >> 1
    while count > 0:
        count -= 1
        node = stack[count]
        if first[node] >= best or shortest[node] > longest:
            continue
        if node >= leaves:
            best = first[node]
            continue
        child = 2 * node
        stack[count] = child + (first[child] < first[child + 1])  # the better one is searched first
        stack[count + 1] = child + (first[child] >= first[child + 1])
        count += 2
    return int(best)
