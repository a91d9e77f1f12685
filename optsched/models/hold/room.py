"""How many chunks of the blocked job each node has room for, and what is short for it.

All chunks are equal, so how many of them a node has room for is known exactly, and the sum over the
nodes, or over those of a switch or block, is a bound that is reached: the job cannot start if and
only if the bound is less than its chunks, or a licence is short. That is a certificate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.models.fields import LARGEST_FIELD
from optsched.models.hold.problem import Hold

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Holding(NamedTuple):
    """What claims hold, a row for each node of each claim."""

    claim: Ints
    node: Ints
    amounts: Ints


def holding(problem: Hold) -> Holding:
    """Return the amounts that the claims of a problem hold."""
    table = np.array([row for rows in problem.held for row in rows], dtype=np.int64).reshape(
        -1, 1 + len(problem.resources)
    )
    claim = np.repeat(np.arange(len(problem.held)), [len(rows) for rows in problem.held])
    return Holding(claim, table[:, 0], table[:, 1:])


def room(problem: Hold, held: Holding, freed: Flags, *, beyond: bool = False) -> Ints:
    """Return how many chunks each node has room for, shape (nodes,).

    `held`: what its claims hold; `freed`: the rows of `held` that are free, as the claim is lifted,
    moved or kept away, shape (rows,); `beyond`: whether more such chunks than the job has count; at
    most as many on a node as may be there of a job of several.
    """
    free = problem.free.copy()
    np.add.at(free, held.node[freed], held.amounts[freed])
    own = LARGEST_FIELD if beyond and problem.demand.any() else problem.chunks
    limit = own if beyond and problem.chunks == 1 else min(own, problem.most_per_node or own)
    most = np.full(len(free), limit, dtype=np.int64)
    for resource in np.flatnonzero(problem.demand):
        most = np.minimum(most, free[:, resource] // problem.demand[resource])
    most[~is_allowed(problem.kinds, problem.allowed, len(free))] = 0
    if problem.exclusive:
        most[list(problem.busy)] = 0
        most[held.node[~freed]] = 0
    return most


def liftable(problem: Hold) -> Flags:
    """Return which claims may be lifted, shape (claims,)."""
    return ~chosen(problem.fixed, len(problem.costs))


def drainable(problem: Hold, held: Holding) -> Flags:
    """Return which rows are free once their node is drained, shape (rows,)."""
    pending = chosen(problem.pending, len(problem.costs))
    return np.asarray(pending[held.claim] & (problem.drain_costs is not None))


def chosen(numbers: Sequence[int], count: int) -> Flags:
    """Return which of the numbers from 0 to below `count` are listed, shape (count,)."""
    flags = np.zeros(count, dtype=bool)
    flags[[*numbers]] = True
    return flags


def is_allowed(kinds: Sequence[str] | None, allowed: Sequence[str] | None, nodes: int) -> Flags:
    """Return whether nodes of some kinds may be used, shape (nodes,); None for all."""
    if allowed is None or kinds is None:
        return np.ones(nodes, dtype=bool)
    return np.array([kind in allowed for kind in kinds], dtype=bool)


def groups(problem: Hold) -> tuple[list[str], Ints]:
    """Return the switches or blocks of which one must hold the job, and that of each node.

    For a job that may be anywhere, all nodes are in one group without a name.
    """
    of_span = {"switch": problem.switches, "block": problem.blocks}.get(problem.span)
    if of_span is None:
        return [""], np.zeros(len(problem.free), dtype=np.int64)
    names, group_of = np.unique(np.array(of_span, dtype=str), return_inverse=True)
    return names.tolist(), group_of.ravel()


class Licence(NamedTuple):
    """A licence that is short: its number from 0, how many are free and how many are needed."""

    number: int
    free: int
    needed: int


class Shortage(NamedTuple):
    """What is short while all claims are kept."""

    # Requirements, each with the number of nodes that meet it and all before it; first all
    # nodes. A requirement that rules out no more nodes is left out.
    filters: tuple[tuple[str, int], ...]
    # The most chunks of this size that fit: on all nodes, or in one switch or block if one
    # must hold them
    room: int
    group: str  # the switch or block with the most room; empty for a job that may be anywhere
    chunks: int  # the chunks of the job
    licences: tuple[Licence, ...]  # the licences that are short

    @property
    def is_proof(self) -> bool:
        """Whether it proves that the job cannot start; if not, it can."""
        return self.room < self.chunks or bool(self.licences)


def shortage(problem: Hold, kinds: Sequence[tuple[str, Flags]] = ()) -> Shortage:
    """Return the shortage while all claims are kept.

    `kinds`: requirements that together are met by the nodes of the kinds that the job may use, each
    with the nodes that meet it; by default, the kind.

    >>> problem = Hold(["cores"], free=[[4], [1], [0]], chunks=2, demand=[4], costs=[], held=[])
    >>> found = shortage(problem)
    >>> found.filters, found.room, found.chunks, found.is_proof
    ((('nodes', 3), ('with 4 or more cores free', 1)), 1, 2, True)
    """
    held = holding(problem)
    shared = np.zeros(len(problem.free), dtype=bool)
    shared[[*problem.busy, *held.node.tolist()]] = problem.exclusive
    allowed = is_allowed(problem.kinds, problem.allowed, len(problem.free))
    steps = [
        *(kinds or [("of a kind that it may use", allowed)]),
        ("without other jobs", ~shared),
        *(
            (f"with {needed:,} or more {name} free", free >= needed)
            for name, free, needed in sorted(
                zip(problem.resources, problem.free.T, problem.demand.tolist()),
                key=lambda each: ":" not in each[0],  # a type says more than all types together
            )
        ),
    ]
    left = np.ones(len(problem.free), dtype=bool)
    filters = [("nodes", len(left))]
    for text, meets in steps:
        if (left & ~meets).any():
            left &= meets
            filters.append((text, int(left.sum())))
    rooms = room(problem, held, np.zeros(len(held.claim), dtype=bool), beyond=True)
    names, group_of = groups(problem)
    sums = np.bincount(group_of, weights=rooms, minlength=len(names)).astype(np.int64)
    largest = int(sums.argmax()) if names else 0
    short = tuple(
        Licence(number, free, needed)
        for number, (free, needed) in enumerate(
            zip(problem.licences.tolist(), problem.licences_of.tolist())
        )
        if free < needed
    )
    return Shortage(
        tuple(filters),
        int(sums.max(initial=0)),
        "".join(names[largest : largest + 1]),
        problem.chunks,
        short,
    )
