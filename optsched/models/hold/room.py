"""How many chunks of the blocked job each node has room for."""

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
    """What claims hold, a row for each node of each claim.

    Parameters
    ----------
    claim, node : array of int, shape (rows,)
        The claim and the node of each row.
    amounts : array of int, shape (rows, resources)
        The amounts.
    """

    claim: Ints
    node: Ints
    amounts: Ints


def holding(problem: Hold) -> Holding:
    """Return what the claims of a problem hold."""
    table = np.array([row for rows in problem.held for row in rows], dtype=np.int64).reshape(
        -1, 1 + len(problem.resources)
    )
    claim = np.repeat(np.arange(len(problem.held)), [len(rows) for rows in problem.held])
    return Holding(claim, table[:, 0], table[:, 1:])


def room(problem: Hold, held: Holding, freed: Flags, *, beyond: bool = False) -> Ints:
    """Return how many chunks each node has room for, shape (nodes,).

    Parameters
    ----------
    problem : Hold
        The problem.
    held : Holding
        What its claims hold.
    freed : array of bool, shape (rows,)
        The rows of `held` that are free, as the claim is lifted, moved or kept away.
    beyond : bool
        Whether more such chunks than the job has count; at most as many on a node as may be there
        of a job of several.
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
