"""Free amounts of the nodes of a site, places of chunks on them, and who held which, compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optsched.arrays import Flags, Ints
from optsched.by_reference import by_reference
from optsched.compiled import kernel
from optsched.machines.texts import Texts, interval_text

NOWHERE = -1
"""In place of an alternative: the job does not fit."""


@by_reference
class Asked(NamedTuple):
    """The requests of jobs, see `optsched.sites.requests`."""

    first: Ints  # alternatives first[request] to before first[request + 1]
    chunks: Ints
    most_per_node: Ints
    exclusive: Flags
    demand: Ints  # shape (alternatives, resources)
    licences: Ints  # shape (alternatives, licences)
    nodes: Ints  # set of nodes of each alternative
    member: Ints  # member[first_member[set]:first_member[set + 1]] are the nodes of a set
    first_member: Ints
    belongs: Flags  # shape (sets, nodes)


@by_reference
class Free(NamedTuple):
    """What is free at one time."""

    amount: Ints  # shape (nodes, resources)
    jobs: Ints  # number of jobs on each node; -1 for a job that shares it with no other
    licences: Ints
    total: Ints  # sum of the amounts of all nodes


@by_reference
class Place(NamedTuple):
    """Ascending nodes, each with a number of chunks, in arrays that may be longer."""

    node: Ints
    chunks: Ints


@by_reference
class Log(NamedTuple):
    """Nodes that each job has held, as runs of contiguous ones."""

    runs: Ints  # shape (runs, 2): first node and end of each
    number: Ints  # one entry: of these
    first: Ints  # runs[first[job]:last[job]] are those of a job
    last: Ints


@kernel(allocates=False)
def may_fit(asked: Asked, free: Free, one: int) -> bool:
    """Return whether licences and totals suffice for an alternative."""
    for licence in range(len(free.licences)):
        if asked.licences[one, licence] > free.licences[licence]:
            return False
    for resource in range(len(free.total)):
        if asked.chunks[one] * asked.demand[one, resource] > free.total[resource]:
            return False
    return True


@kernel(allocates=False)
def is_full(asked: Asked, free: Free, one: int, node: int) -> bool:
    """Return whether a node lacks the cores for a chunk: the quickest test of `most_on`."""
    return bool(free.amount[node, 0] < asked.demand[one, 0])


@kernel(allocates=False)
def most_on(asked: Asked, free: Free, one: int, node: int) -> int:
    """Return the most chunks of an alternative that fit on a node, which it may use."""
    if free.jobs[node] < 0 or (asked.exclusive[one] and free.jobs[node] > 0):
        return 0
    most = asked.most_per_node[one]
    for resource in range(free.amount.shape[1]):
        needs, there = asked.demand[one, resource], free.amount[node, resource]
        if there < needs:
            return 0
        if most * needs > there:
            most = there // needs
    return int(most)


@kernel(allocates=False)
def room_for(asked: Asked, free: Free, one: int, enough: int) -> int:
    """Return how many chunks of an alternative fit on all nodes; stop at `enough` of them."""
    room, group = 0, asked.nodes[one]
    for member in range(asked.first_member[group], asked.first_member[group + 1]):
        node = asked.member[member]
        if not is_full(asked, free, one, node):
            room += most_on(asked, free, one, node)
            if room >= enough:
                break
    return room


@kernel(allocates=False)
def first_fit(asked: Asked, free: Free, one: int, allowed: Flags, place: Place) -> int:
    """Place an alternative on the first allowed nodes with room for chunks; return how many, or 0.

    Nothing is taken yet.
    """
    if not may_fit(asked, free, one):
        return 0
    missing, used = asked.chunks[one], 0
    group = asked.nodes[one]
    for member in range(asked.first_member[group], asked.first_member[group + 1]):
        node = asked.member[member]
        if is_full(asked, free, one, node) or not allowed[node]:
            continue
        most = most_on(asked, free, one, node)
        if most > 0:
            place.node[used], place.chunks[used] = node, min(most, missing)
            used += 1
            missing -= most
            if missing <= 0:
                return used
    return 0


@kernel(allocates=False)
def change(asked: Asked, free: Free, one: int, node: int, chunks: int, sign: int) -> None:
    """Free (1) or take (-1) chunks of an alternative on a node; the totals stay what they are."""
    for resource in range(free.amount.shape[1]):
        free.amount[node, resource] += sign * chunks * asked.demand[one, resource]
    if asked.exclusive[one]:
        free.jobs[node] = 0 if sign > 0 else -1
    else:
        free.jobs[node] -= sign


@kernel(allocates=False)
def hold(asked: Asked, free: Free, one: int, place: Place, begin: int, end: int, sign: int) -> None:
    """Free (1) or take (-1) the amounts of the entries `begin` to before `end` of a place."""
    for entry in range(begin, end):
        chunks = place.chunks[entry]
        change(asked, free, one, place.node[entry], chunks, sign)
        for resource in range(len(free.total)):
            free.total[resource] += sign * chunks * asked.demand[one, resource]
    for licence in range(len(free.licences)):
        free.licences[licence] += sign * asked.licences[one, licence]


@kernel(allocates=False)
def first_possible(
    asked: Asked, free: Free, request: int, allowed: Flags, place: Place
) -> tuple[int, int]:
    """Place a job by the first of its alternatives that fits, as `first_fit` does.

    Returns the alternative, or `NOWHERE`, and the number of nodes.
    """
    for one in range(asked.first[request], asked.first[request + 1]):
        used = first_fit(asked, free, one, allowed, place)
        if used > 0:
            return one, used
    return NOWHERE, 0


@kernel(allocates=False)
def can_take(asked: Asked, free: Free, request: int, one: int, place: Place) -> bool:
    """Return whether a place is one of a job of a request, and free."""
    if not asked.first[request] <= one < asked.first[request + 1]:
        return False
    if not may_fit(asked, free, one):
        return False
    missing, before = asked.chunks[one], -1
    for entry in range(len(place.node)):
        node, count = place.node[entry], place.chunks[entry]
        if not before < node < len(free.jobs) or not asked.belongs[asked.nodes[one], node]:
            return False
        if not 1 <= count <= most_on(asked, free, one, node):
            return False
        missing -= count
        before = node
    return bool(missing == 0)


def new_log(jobs: int) -> Log:
    """Return the log of a site on which no job has run."""
    first, last = np.zeros((2, jobs), dtype=np.int64)
    return Log(np.zeros((2 * jobs, 2), dtype=np.int64), np.zeros(1, dtype=np.int64), first, last)


def with_runs(log: Log, more: int) -> Log:
    """Return the same log with twice the space, and a number of further runs."""
    space = np.zeros((len(log.runs) + more, 2), dtype=np.int64)
    return log._replace(runs=np.concatenate((log.runs, space)))


def log_texts(log: Log) -> Texts:
    """Return the nodes of each job, as interval sets."""
    return Texts(*interval_text(log.first, log.last, log.runs[: log.number[0]]))


@kernel(allocates=False)
def has_room(log: Log, nodes: int) -> bool:
    """Return whether there is room for jobs on so many nodes in all."""
    return bool(log.number[0] + nodes <= len(log.runs))


@kernel(allocates=False)
def note_start(log: Log, job: int) -> None:
    """Note that a job starts."""
    log.first[job] = log.last[job] = log.number[0]


@kernel(allocates=False)
def note_node(log: Log, job: int, node: int) -> None:
    """Note a node of the job that has just started, after those of lower number."""
    at, runs = log.number[0], log.runs
    if log.first[job] == at or runs[at - 1, 1] != node:
        runs[at, 0] = node
        log.number[0] = log.last[job] = at + 1
    runs[log.number[0] - 1, 1] = node + 1
