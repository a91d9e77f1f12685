"""Why a job cannot start while all claims are kept: a certificate.

All chunks are equal, so how many of them a node has room for is known exactly, and the sum over the
nodes, or over those of a switch or block, is a bound that is reached: the job cannot start if and
only if the bound is less than its chunks, or a licence is short.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.models.hold.problem import Hold
from optsched.models.hold.room import groups, holding, is_allowed, room

Flags = NDArray[np.bool_]


class Licence(NamedTuple):
    """A licence that is short: its number from 0, how many are free and how many are needed."""

    number: int
    free: int
    needed: int


class Shortage(NamedTuple):
    """What is short while all claims are kept.

    Parameters
    ----------
    filters : tuple of (str, int)
        Requirements, each with the number of nodes that meet it and all before it; first all nodes.
        A requirement that rules out no more nodes is left out.
    room : int
        The most chunks of this size that fit: on all nodes, or in one switch or block if one must
        hold them.
    group : str
        The switch or block with the most room; empty for a job that may be anywhere.
    chunks : int
        The chunks of the job.
    licences : tuple of Licence
        The licences that are short.
    """

    filters: tuple[tuple[str, int], ...]
    room: int
    group: str
    chunks: int
    licences: tuple[Licence, ...]

    @property
    def is_proof(self) -> bool:
        """Whether it proves that the job cannot start; if not, it can."""
        return self.room < self.chunks or bool(self.licences)


def shortage(problem: Hold, kinds: Sequence[tuple[str, Flags]] = ()) -> Shortage:
    """Return what is short while all claims are kept.

    Parameters
    ----------
    problem : Hold
        The problem.
    kinds : sequence of (str, array of bool), optional
        Requirements that together are met by the nodes of the kinds that the job may use, each with
        the nodes that meet it; by default, the kind.

    Examples
    --------
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
