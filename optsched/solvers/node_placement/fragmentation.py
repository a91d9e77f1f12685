"""Least fragmentation: the rule of Weng et al. (ATC 2023)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from optsched.errors import InputError
from optsched.models.node_placement import NodePlacement
from optsched.models.node_placement.problem import first_alike, task_types
from optsched.registry import solvers
from optsched.solvers.node_placement.fit_rules import Rule

if TYPE_CHECKING:
    from optsched.solvers.node_placement._node_state import NodeState

Ints = NDArray[np.int64]


@solvers.register("least-fragmentation")
@dataclass(frozen=True)
class LeastFragmentation(Rule):
    """Each chunk on the node and device whose use adds least to the expected fragmentation (FGD).

    The expected fragmentation is that of `optsched.models.node_placement.fragmentation`: the free
    shares of devices that a task of the mix cannot use, where the mix are the jobs of the problem.
    For a share of a device, each device of a node is tried; of equal ones that with the least free
    share is used, then that of lowest number. Of equal nodes, the first is used, so the rule is
    first fit where no job needs devices. The authors' simulator maps the increase to an integer
    score from 0 to 100, so that more nodes are equal there.

    Parameters
    ----------
    order : {"queue", "largest"}
        See `Rule`.
    types : int
        Most types of tasks in the mix, the most frequent ones.

    Raises
    ------
    InputError
        If `types` is less than 1.

    Examples
    --------
    The first job leaves the whole device to the second one:

    >>> problem = NodePlacement(
    ...     resources=["cores"], free=np.array([[8], [8]]), devices=[[1000], [700]],
    ...     chunks=[1, 1], demand=np.array([[1], [1]]), share=[500, 1000])
    >>> LeastFragmentation().place(problem)
    Placements(nodes=((1,), (0,)), devices=(((0,),), ((0,),)))
    """

    types: int = 40

    seconds_per_work = 5e-8

    def __post_init__(self) -> None:
        if self.types < 1:
            raise InputError(f"types {self.types}; expected a whole number from 1")

    def place_all(self, problem: NodePlacement, state: NodeState, jobs: Ints) -> None:
        """Place each chunk where the expected fragmentation grows least."""
        from optsched.solvers.node_placement._increases import Increases

        types = np.array(task_types(problem, self.types), dtype=np.int64).reshape(-1, 2)
        increases = Increases(state.nodes, state.needs, types)
        first = first_alike(problem)
        waiting = Counter(first)
        for job in jobs.tolist():
            room, left = state.room(job), int(problem.chunks[job])
            while room is not None and left:
                node, device = increases.least(first[job], room)
                state.take(job, node, room, 1, device)
                increases.update(node)
                left -= 1
            waiting[first[job]] -= 1
            if not waiting[first[job]]:
                increases.forget(first[job])
