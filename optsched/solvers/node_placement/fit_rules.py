"""Simple rules: first fit, best fit, and packing of devices."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from optsched.models.node_placement import NodePlacement, Placements
from optsched.registry import solvers
from optsched.solvers.heuristic import Heuristic

if TYPE_CHECKING:
    from optsched.solvers.node_placement._node_state import Nodes, NodeState

Ints = NDArray[np.int64]
Scores = NDArray[np.float64] | Ints
Scoring = Callable[["Nodes", Ints], Scores]
"""Returns the scores of the nodes of these numbers."""


@dataclass(frozen=True)
class Rule(Heuristic):
    """Base class of rules that place one job after the other, and take none back.

    A job that does not fit, with all of its chunks, is left out, and the next one is tried.

    Parameters
    ----------
    order : {"queue", "largest"}
        Order of the jobs: that of the queue, or that of their weights, the largest first, and of
        the queue among equal ones.
    """

    order: Literal["queue", "largest"] = "queue"

    models = frozenset({"node-placement"})
    is_rule = True
    work_unit = "jobs times nodes"
    seconds_per_work = 3e-8

    @abstractmethod
    def place_all(self, problem: NodePlacement, state: NodeState, jobs: Ints) -> None:
        """Place jobs, in this order, on the nodes of `state`."""

    def place(self, problem: NodePlacement) -> Placements:
        """Return the placements of the rule."""
        from optsched.solvers.node_placement._node_state import NodeState

        state = NodeState(problem)
        jobs = np.arange(len(problem.chunks))
        if self.order == "largest":
            jobs = np.argsort(-problem.weights, kind="stable")
        self.place_all(problem, state, jobs)
        return state.placements()

    def effort(self, problem: NodePlacement) -> int:
        """Return the number of jobs times the number of nodes."""
        return len(problem.chunks) * len(problem.free)


@dataclass(frozen=True)
class FitRule(Rule):
    """Base class of rules that place a chunk on the node of least score that can hold it."""

    @abstractmethod
    def scoring(self, problem: NodePlacement) -> Scoring:
        """Return the function of scores, of which none may grow as chunks are placed."""

    def place_all(self, problem: NodePlacement, state: NodeState, jobs: Ints) -> None:
        """Place each chunk on the node of least score, the first of equal ones.

        A node stays the best one for a job until it is full, because its score does not grow.
        """
        scores_of = self.scoring(problem)
        scores = scores_of(state.nodes, np.arange(len(problem.free)))
        for job in jobs.tolist():
            room = state.room(job)
            if room is not None:
                used = np.array(state.place(job, room, _by(scores, room)))
                scores[used] = scores_of(state.nodes, used)


def _by(scores: Scores, room: Ints) -> Iterator[int]:
    """Yield the nodes that have room at that moment, the one of least score first."""
    while True:
        nodes = np.flatnonzero(room)
        yield int(nodes[np.argmin(scores[nodes])])


@solvers.register("first-fit")
@dataclass(frozen=True)
class FirstFit(FitRule):
    """Each chunk on the first node that can hold it.

    A share of a device goes to the device with the least free share that suffices, here as in the
    other rules. A job that one switch or block must hold goes to the first one that can hold it.

    Examples
    --------
    >>> problem = NodePlacement(
    ...     resources=["cores"], free=np.array([[4], [6]]), chunks=[1, 2, 1],
    ...     demand=np.array([[5], [4], [1]]))
    >>> FirstFit().place(problem).nodes
    ((1,), (), (0,))
    """

    def scoring(self, problem: NodePlacement) -> Scoring:
        """Return the number of a node as its score."""
        return lambda nodes, at: at


@solvers.register("best-fit")
@dataclass(frozen=True)
class BestFit(FitRule):
    """Each chunk on the node with the least left that can hold it.

    What is left is the sum, over all resources, of the free amount divided by the largest that any
    node had free at first; the free shares of all devices count as one resource more. The chunk
    itself takes the same off each node, so it does not matter whether it is counted. Of equal
    nodes, the first.

    Examples
    --------
    >>> problem = NodePlacement(
    ...     resources=["cores"], free=np.array([[6], [4]]), chunks=[1, 1, 1],
    ...     demand=np.array([[3], [3], [1]]))
    >>> BestFit().place(problem).nodes
    ((1,), (0,), (1,))
    """

    def scoring(self, problem: NodePlacement) -> Scoring:
        """Return what is left on a node as its score."""
        largest = np.maximum(problem.free.max(axis=0, initial=0), 1)
        most_shares = max(map(sum, problem.devices), default=1) or 1

        def on_nodes(nodes: Nodes, at: Ints) -> Scores:
            left: Scores = nodes.devices[at].sum(axis=1) / most_shares
            left += (nodes.free[at] / largest).sum(axis=1)
            return left

        return on_nodes


@solvers.register("device-packing")
@dataclass(frozen=True)
class DevicePacking(FitRule):
    """Each chunk on the node with the least free share of devices that can hold it.

    The free shares of all devices of a node are added up, whether the job needs devices or not. Of
    equal nodes, the first.

    Examples
    --------
    >>> problem = NodePlacement(
    ...     resources=["cores"], free=np.array([[4], [4]]), devices=[[1000, 1000], [500, 900]],
    ...     chunks=[1, 1], demand=np.array([[1], [1]]), share=[600, 600])
    >>> DevicePacking().place(problem)
    Placements(nodes=((1,), (0,)), devices=(((1,),), ((0,),)))
    """

    def scoring(self, problem: NodePlacement) -> Scoring:
        """Return the free thousandths of a node as its score."""
        return lambda nodes, at: nodes.devices[at].sum(axis=1)
