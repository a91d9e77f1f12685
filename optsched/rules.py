"""Rules that sites ask for most, for node placements; see `optsched.rule` for rules of one's own.

Each function returns a rule. In a file, a rule has the name of its variable::

    from optsched.rules import limit, nodes_free

    gpus_of_a_user = limit("gpus", 4, by="user")
    night = nodes_free(2)
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from optsched.errors import InputError, UnknownNameError
from optsched.models.node_placement.rules import Rule, rule

F = TypeVar("F", bound=Callable[..., Rule])


def _made_where_called(make: F) -> F:
    """Mark what is made as a rule, whose mistakes name the line of the user's file that made it."""

    @functools.wraps(make)
    def made(*values: Any, **named: Any) -> Rule:
        found = rule(make(*values, **named))
        caller = sys._getframe(1)
        found.place = caller.f_code.co_filename, caller.f_lineno  # type: ignore[attr-defined]
        return found

    return made  # type: ignore[return-value]


def _count(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise InputError(f"{name}: {value!r}; expected an integer from 0")
    return int(value)


@_made_where_called
def limit(what: str, most: int, *, by: str) -> Rule:
    """Return a limit on what the jobs of a user, account, QOS or partition hold together.

    Parameters
    ----------
    what : str
        ``jobs``, ``nodes``, or a column of jobs: ``cores``, ``gpus``.
    most : int
        The limit.
    by : str
        Column of jobs: ``user``, ``account``, ``qos``, ``partition``.
    """
    most = _count("most", most)

    def limit(state: Any, jobs: Any, nodes: Any, started: Any, chunks: Any) -> None:
        if what == "nodes":
            amount = state.some("nodes", chunks).sum(axis=1)
        else:
            amount = started if what == "jobs" else jobs[what] * started
        state.require(what, amount.sum_by(jobs[by]) <= most)

    return limit


@_made_where_called
def nodes_free(count: int, *, where: Mapping[str, Any] | None = None) -> Rule:
    """Return the rule that so many nodes stay without a job, of those `where` columns have values.

    Parameters
    ----------
    count : int
        Number of nodes, in a rack for instance: ``nodes_free(18, where={"racks": "r3"})``.
    where : mapping, optional
        Values of columns of the nodes.
    """
    count = _count("count", count)

    def nodes_free(state: Any, jobs: Any, nodes: Any, started: Any, chunks: Any) -> None:
        there = _where(nodes, where) & (nodes.idle > 0)
        used = state.some("used", chunks[:, there].sum(axis=0))
        state.require("nodes", used.sum() <= int(there.sum()) - count)

    return nodes_free


@_made_where_called
def power_cap(watts: int, *, of: str = "watts", idle: str = "") -> Rule:
    """Return a cap on the power of all nodes that are used.

    Parameters
    ----------
    watts : int
        The cap.
    of, idle : str
        Columns of nodes: the power of a node with jobs, and of an idle one, 0 by default.
    """
    watts = _count("watts", watts)

    def power_cap(state: Any, jobs: Any, nodes: Any, started: Any, chunks: Any) -> None:
        used = state.some("used", chunks.sum(axis=0))
        base = np.where(nodes.idle, nodes[idle] if idle else 0, nodes[of])
        state.require("watts", ((nodes[of] - base) * used).sum() + int(base.sum()) <= watts)

    return power_cap


@_made_where_called
def spread(most: int, *, over: str = "switch", jobs: Sequence[str | int] = ()) -> Rule:
    """Return the rule that at most so many chunks of a job are in one group of nodes.

    Parameters
    ----------
    most : int
        The limit.
    over : str
        Column of nodes: ``switch``, ``block``, or a level such as ``racks``.
    jobs : sequence
        Names of the jobs; all of them by default.
    """
    named = [*map(str, jobs)]

    most = _count("most", most)

    def spread(state: Any, jobs: Any, nodes: Any, started: Any, chunks: Any) -> None:
        which = np.isin(jobs.name.astype(str), named) if named else jobs.chunks > most
        state.require("chunks", chunks[which & (jobs.running == 0)].T.sum_by(nodes[over]) <= most)

    return spread


@_made_where_called
def never_together(by: str = "user") -> Rule:
    """Return the rule that jobs of different users, or values of a column, share no node."""

    def never_together(state: Any, jobs: Any, nodes: Any, started: Any, chunks: Any) -> None:
        there = state.some("there", chunks.sum_by(jobs[by]))
        state.require(by, there.sum(axis=0) <= 1)

    return never_together


@_made_where_called
def together(by: str, values: Sequence[str | int]) -> Rule:
    """Return the rule that the jobs of each of some values of a column are on one node."""

    def together(state: Any, jobs: Any, nodes: Any, started: Any, chunks: Any) -> None:
        for number, value in enumerate(values):
            there = state.some(f"on{number}", chunks[jobs[by] == value].sum(axis=0))
            state.require(f"of{number}", there.sum() <= 1)

    return together


@_made_where_called
def reserve(what: str, amount: int, *, where: Mapping[str, Any] | None = None) -> Rule:
    """Return the rule that an amount of a resource stays free for a job that comes.

    Parameters
    ----------
    what : str
        A resource: ``cores``, ``gpus``.
    amount : int
        The amount.
    where : mapping, optional
        Values of columns of the nodes that count.
    """
    amount = _count("amount", amount)

    def reserve(state: Any, jobs: Any, nodes: Any, started: Any, chunks: Any) -> None:
        there, new = _where(nodes, where), jobs.running == 0
        taken = jobs.chunk[what][new] @ chunks[new][:, there].sum(axis=1)
        state.require(what, taken <= int(nodes[what][there].sum()) - amount)

    return reserve


@_made_where_called
def few_moves(before: Mapping[str, Sequence[str]], most: int) -> Rule:
    """Return the rule that at most so many jobs start on nodes other than planned before.

    Parameters
    ----------
    before : mapping
        Names of the nodes of each job, by its name.
    most : int
        The limit.
    """
    most = _count("most", most)

    def few_moves(state: Any, jobs: Any, nodes: Any, started: Any, chunks: Any) -> None:
        names = jobs.name.astype(str).tolist()
        there = np.array([np.isin(nodes.name, before.get(name, nodes.name)) for name in names])
        moved = state.some("moved", (chunks * ~there).sum(axis=1))
        state.require("jobs", moved.sum() <= most)

    return few_moves


@_made_where_called
def balance(what: str, *, over: str = "switch", steps: int = 10) -> Rule:
    """Return the objective that groups of nodes take equal amounts of a resource, after all else.

    For each group, the parts of its free amount that are taken count 1, 2, and so on.

    Parameters
    ----------
    what : str
        A resource: ``cores``, ``gpus``.
    over : str
        Column of nodes: ``switch``, ``block``, or a level such as ``racks``.
    steps : int
        Number of equal parts into which the free amount of a group is divided.
    """

    def balance(state: Any, jobs: Any, nodes: Any, started: Any, chunks: Any) -> None:
        new = jobs.running == 0
        taken = (jobs.chunk[what][new] @ chunks[new]).sum_by(nodes[over])
        _, of = np.unique(nodes[over], return_inverse=True)
        room = np.bincount(of, weights=nodes[what]).astype(np.int64)
        above = np.arange(steps) * room[:, None] // steps
        level = np.arange(1, steps + 1)
        reached = state.some("reached", taken[:, None] - above)
        state.minimize((reached * level).sum(), most=len(room) * int(level.sum()))

    return balance


@_made_where_called
def few_users_on_nodes(by: str = "user") -> Rule:
    """Return the objective that few users, or values of a column, share a node, after all else."""

    def few_users_on_nodes(state: Any, jobs: Any, nodes: Any, started: Any, chunks: Any) -> None:
        there = state.some("there", chunks.sum_by(jobs[by]))
        state.minimize(there.sum(), most=len(np.unique(jobs[by])) * len(nodes))

    return few_users_on_nodes


def _where(nodes: Any, where: Mapping[str, Any] | None) -> Any:
    there = np.ones(len(nodes), dtype=bool)
    for column, value in (where or {}).items():
        if value not in (known := nodes[column].tolist()):
            raise UnknownNameError(f"value of {column}", str(value), {*map(str, known)})
        there &= nodes[column] == value
    return there
