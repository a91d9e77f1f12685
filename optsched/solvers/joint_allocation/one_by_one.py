"""One by one: the jobs of the queue, each where it loses least at this moment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optsched.models.joint_allocation import JointAllocation, JointPlacement
from optsched.models.joint_allocation.nodes import free_nodes
from optsched.registry import solvers
from optsched.solvers.heuristic import Heuristic

NEVER = np.iinfo(np.int64).max
"""More than any job can lose."""


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
    seconds_per_work = 3e-6

    def place(self, problem: JointAllocation) -> JointPlacement | None:
        """Return the placement; none if a job is left out where all have to start."""
        free = free_nodes(problem)
        counts = np.arange(1, problem.processors + 1)
        placed = np.zeros((len(free.nodes), len(problem.asked)), dtype=np.int64)
        for job, asked in enumerate(problem.asked.tolist()):
            # nodes in one state with the same jobs lose the same
            kinds, kind = np.unique(
                np.column_stack((free.state, placed)), axis=0, return_inverse=True
            )
            states = free.states[kinds[:, 0]]
            configurations = np.repeat(kinds[:, None, 1:], len(counts), axis=1)
            configurations[:, :, job] = counts
            lost = states.penalised_times(configurations)
            admitted = states.admits(configurations, lost)[kind.ravel()]
            if admitted.sum() < asked:
                if problem.goal == "penalty":
                    return None
                continue
            # with each process more on a node the job loses at least as much as before
            own = np.where(admitted, lost[kind.ravel(), :, job], NEVER)
            cheapest = np.argsort(own, axis=None, kind="stable")[:asked]
            placed[:, job] = np.bincount(cheapest // len(counts), minlength=len(free.nodes))
        processes = np.zeros((len(problem.asked), problem.nodes), dtype=np.int64)
        processes[:, free.nodes] = placed.T
        return JointPlacement(processes)

    def effort(self, problem: JointAllocation) -> int:
        """Return the number of jobs times that of nodes."""
        return len(problem.asked) * problem.nodes
