"""One by one: the jobs of the queue, each where it loses least at this moment."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.models.joint_allocation import JointAllocation, JointPlacement
from optsched.models.joint_allocation_nodes import NodeState, nodes_by_state
from optsched.registry import solvers
from optsched.solvers.heuristic import Heuristic

Ints = NDArray[np.int64]


@solvers.register("one-by-one")
@dataclass(frozen=True)
class OneByOne(Heuristic):
    """Start the jobs in the order of the queue, each where its own penalty is least.

    A job takes the processors that cost it the least penalised time, next to holdings and to jobs
    of the set that were placed before; of equal ones those of the node with the lowest number. On
    no node does it take so many that it, or one of those, would lose more than the threshold
    admits. If it cannot have all that it asks, it is left out and the next is tried; where all
    jobs have to start there is no answer then. Work is counted in jobs times nodes.

    References
    ----------
    F. Guim, I. Rodero, J. Corbalan, "The resource usage aware backfilling", JSSPP 2009, places
    one job at a time (section 4).

    Examples
    --------
    >>> machine = {"nodes": 2, "processors": 2, "capacity": [6000], "held": []}
    >>> jobs = {"asked": [2, 2], "walltimes": [60, 90], "demands": [[4000], [2500]]}
    >>> OneByOne().place(JointAllocation(**machine, **jobs, threshold=1100)).processes.tolist()
    [[1, 1], [1, 1]]
    """

    models = frozenset({"joint-allocation"})
    work_unit = "jobs x nodes"
    seconds_per_work = 2e-6

    def place(self, problem: JointAllocation) -> JointPlacement | None:
        """Return the placement; none if a job is left out where all have to start."""
        processes = np.zeros((len(problem.asked), problem.nodes), dtype=np.int64)
        nothing = np.zeros(len(problem.asked), dtype=np.int64)
        groups = [Group(state, nothing, nodes) for state, nodes in nodes_by_state(problem)]
        for job, asked in enumerate(problem.asked.tolist()):
            offers = [_offers(group, job) for group in groups]
            lost, node = np.concatenate(offers, axis=1)
            if len(node) < asked:
                if problem.goal == "penalty":
                    return None
                continue
            chosen = node[np.lexsort((node, lost))[:asked]]
            processes[job] = np.bincount(chosen, minlength=problem.nodes)
            groups = [part for group in groups for part in _parted(group, job, processes[job])]
        return JointPlacement(processes)

    def effort(self, problem: JointAllocation) -> int:
        """Return the number of jobs times that of nodes."""
        return len(problem.asked) * problem.nodes


class Group(NamedTuple):
    """Nodes in one state with the same jobs of the set: so many processes of each."""

    state: NodeState
    placed: Ints
    nodes: Ints


def _offers(group: Group, job: int) -> Ints:
    """Return the processors that a job may have: what it loses with them, and their nodes, (2, n).

    With each process more on a node it loses at least as much as before.
    """
    problem = group.state.problem
    counts = np.arange(1, min(problem.processors, int(problem.asked[job])) + 1)
    configurations = np.tile(group.placed, (len(counts), 1))
    configurations[:, job] = counts
    configurations = configurations[group.state.admits(configurations)]
    lost = group.state.penalised_times(configurations)[:, job]
    return np.stack((np.tile(lost, len(group.nodes)), np.repeat(group.nodes, len(lost))))


def _parted(group: Group, job: int, processes: Ints) -> Iterator[Group]:
    """Yield the groups into which nodes fall that have different numbers of processes now."""
    counts = processes[group.nodes]
    for count in np.unique(counts):
        placed = group.placed.copy()
        placed[job] = count
        yield Group(group.state, placed, group.nodes[counts == count])
