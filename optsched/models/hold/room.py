"""How many chunks of the blocked job each node has room for."""

from __future__ import annotations

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


def room(problem: Hold, held: Holding, is_lifted: Flags, *, beyond: bool = False) -> Ints:
    """Return how many chunks each node has room for, shape (nodes,).

    Parameters
    ----------
    problem : Hold
        The problem.
    held : Holding
        What its claims hold.
    is_lifted : array of bool, shape (claims,)
        The claims that are lifted.
    beyond : bool
        Whether more such chunks than the job has count; at most as many on a node as may be there
        of a job of several.
    """
    lifted = is_lifted[held.claim]
    free = problem.free.copy()
    np.add.at(free, held.node[lifted], held.amounts[lifted])
    own = LARGEST_FIELD if beyond and problem.demand.any() else problem.chunks
    limit = own if beyond and problem.chunks == 1 else min(own, problem.most_per_node or own)
    most = np.full(len(free), limit, dtype=np.int64)
    for resource in np.flatnonzero(problem.demand):
        most = np.minimum(most, free[:, resource] // problem.demand[resource])
    most[~is_allowed(problem)] = 0
    if problem.exclusive:
        most[list(problem.busy)] = 0
        most[held.node[~lifted]] = 0
    return most


def is_allowed(problem: Hold) -> Flags:
    """Return whether the job may use each node by its kind, shape (nodes,)."""
    if problem.allowed is None or problem.kinds is None:
        return np.ones(len(problem.free), dtype=bool)
    return np.array([kind in problem.allowed for kind in problem.kinds], dtype=bool)


def groups(problem: Hold) -> tuple[list[str], Ints]:
    """Return the switches or blocks of which one must hold the job, and that of each node.

    For a job that may be anywhere, all nodes are in one group without a name.
    """
    of_span = {"switch": problem.switches, "block": problem.blocks}.get(problem.span)
    if of_span is None:
        return [""], np.zeros(len(problem.free), dtype=np.int64)
    names, group_of = np.unique(np.array(of_span, dtype=str), return_inverse=True)
    return names.tolist(), group_of.ravel()
