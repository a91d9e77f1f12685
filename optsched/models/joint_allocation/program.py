"""The integer program of a joint allocation, and its vectors.

Variables are u[j], job j starts, and behind them those of the classes of nodes: how many nodes of
class c have configuration k.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.errors import InputError
from optsched.models.joint_allocation.nodes import NodeStates, free_nodes
from optsched.models.program import Program
from optsched.models.statement import Statement

if TYPE_CHECKING:
    from optsched.models.joint_allocation.problem import JointAllocation

Ints = NDArray[np.int64]

MOST_ENTRIES = 1_000_000
"""A larger program is refused: generic solvers are lost long before."""


class NodeClass(NamedTuple):
    """Nodes that admit the same configurations at the same cost.

    Parameters
    ----------
    nodes : int64 array, shape (nodes,)
        Their numbers, ascending.
    configurations : int64 array, shape (configurations, jobs)
        Processes of each job on such a node, not all 0.
    cost : int64 array, shape (configurations,)
        What each adds to the objective; 0 where only processors count.
    """

    nodes: Ints
    configurations: Ints
    cost: Ints


class Layout:
    """Where the variables of a problem are.

    Raises
    ------
    InputError
        If there would be more than `MOST_ENTRIES` in the rows.
    """

    def __init__(self, problem: JointAllocation) -> None:
        self.problem = problem
        self.classes = _classes(problem)
        sizes = [len(found.cost) for found in self.classes]
        self.first = len(problem.asked) + np.cumsum([0, *sizes])

    def formulate(self) -> Program:
        """Return the program of the model's page, equations (11) to (14)."""
        problem, jobs = self.problem, len(self.problem.asked)
        asked = problem.asked
        all_start = problem.goal == "penalty"
        lower = np.zeros(self.first[-1], dtype=np.int64)
        upper = np.ones(self.first[-1], dtype=np.int64)
        objective = np.zeros(self.first[-1], dtype=np.int64)
        lower[:jobs] = all_start
        if not all_start:
            objective[:jobs] = -asked
        placed: list[dict[int, int]] = [{job: -int(asked[job])} for job in range(jobs)]
        state = Statement()
        for number, (found, first) in enumerate(zip(self.classes, self.first), start=1):
            here = range(first, first + len(found.cost))
            upper[here] = len(found.nodes)
            objective[here] = found.cost
            state.add(f"nodes_class{number}", dict.fromkeys(here, 1), len(found.nodes))
            for at, job in zip(*np.nonzero(found.configurations)):
                placed[job][first + int(at)] = int(found.configurations[at, job])
        for job, terms in enumerate(placed, start=1):
            state.add(f"asked_job{job}", terms, 0, 0)
        return Program(
            sense="min",
            objective=objective,
            lower=lower,
            upper=upper,
            **state.rows(),
            offset=0 if all_start else int(asked.sum()),
            variable_name=self._name,
            row_name=state.names.__getitem__,
        )

    def _name(self, variable: int) -> str:
        jobs = len(self.problem.asked)
        if variable < jobs:
            return f"start_job{variable + 1}"
        number = int(np.searchsorted(self.first, variable, side="right"))
        row = self.classes[number - 1].configurations[variable - self.first[number - 1]]
        return "_".join((f"class{number}", *map(str, row.tolist())))

    def processes(self, x: Ints) -> Ints:
        """Return the processes of each job on each node, shape (jobs, nodes)."""
        placed = np.zeros((len(self.problem.asked), self.problem.nodes), dtype=np.int64)
        for found, first in zip(self.classes, self.first):
            chosen = np.repeat(found.configurations, x[first : first + len(found.cost)], axis=0)
            nodes = found.nodes[: len(chosen)]
            placed[:, nodes] = chosen[: len(nodes)].T
        return placed

    def vector(self, processes: Ints) -> Ints:
        """Return the vector of a feasible placement."""
        x = np.zeros(self.first[-1], dtype=np.int64)
        x[: len(processes)] = processes.any(axis=1)
        for found, first in zip(self.classes, self.first):
            number = {row.tobytes(): at for at, row in enumerate(found.configurations)}
            for row in processes.T[found.nodes]:
                if row.any():
                    x[first + number[row.tobytes()]] += 1
        return x


def _classes(problem: JointAllocation) -> list[NodeClass]:
    """Return the classes of the nodes on which anything may start."""
    alike: dict[tuple[bytes, bytes], tuple[Ints, Ints, list[Ints]]] = {}
    entries = 0
    free = free_nodes(problem)
    for number in range(len(free.states.length)):
        state = free.states[number]
        configurations = _configurations(problem, state, MOST_ENTRIES - entries)
        cost = np.zeros(len(configurations), dtype=np.int64)
        if problem.goal == "penalty":
            cost = state.added(configurations)
        if not len(cost):
            continue
        key = (configurations.tobytes(), cost.tobytes())
        if key not in alike:
            alike[key] = (configurations, cost, [])
            entries += _entries(configurations)
        alike[key][2].append(free.nodes[free.state == number])
    return [
        NodeClass(np.sort(np.concatenate(nodes)), configurations, cost)
        for configurations, cost, nodes in alike.values()
    ]


def _configurations(problem: JointAllocation, state: NodeStates, most: int) -> Ints:
    """Return what a node in this state admits, but for nothing, the first jobs' most at first.

    Job by job and process by process: what is not admitted is not with more processes either.

    Raises
    ------
    InputError
        If they would bring more than `most` entries.
    """
    found = np.zeros((1, len(problem.asked)), dtype=np.int64)
    for job, asked in enumerate(problem.asked.tolist()):
        longer = found
        for _ in range(min(asked, problem.processors)):
            longer = longer.copy()
            longer[:, job] += 1
            longer = longer[state.admits(longer, state.penalised_times(longer))]
            found = np.concatenate((found, longer))
            if _entries(found) > most:
                raise InputError(
                    f"the program would have more than {MOST_ENTRIES} entries; "
                    "one-by-one needs none"
                )
    found = found[found.any(axis=1)]
    return found[np.lexsort(found.T[::-1])[::-1]] if found.size else found


def _entries(configurations: Ints) -> int:
    return len(configurations) + int(np.count_nonzero(configurations))
