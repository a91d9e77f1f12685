"""Joint allocation: which waiting jobs start now on nodes with shared resources, and where.

Model page: ``models/joint-allocation/README.md``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optsched.errors import InputError
from optsched.models.fields import FieldChecks, read_fields
from optsched.models.holdings import as_objects, default_names
from optsched.models.joint_allocation.fields import Fields, check_fields
from optsched.models.problem import Problem, Violation
from optsched.registry import models

if TYPE_CHECKING:
    from optsched.models.joint_allocation.program import Layout
    from optsched.models.program import Program

Goal = Literal["processors", "penalty"]


class JointPlacement(NamedTuple):
    """Where the processes of the jobs are that start now.

    Parameters
    ----------
    processes : int64 array, shape (jobs, nodes)
        Processes of each job on each node; a job that is left out has none.
    """

    processes: NDArray[np.int64]


@models.register("joint-allocation")
@dataclass(frozen=True, eq=False, init=False, repr=False)
class JointAllocation(Problem[JointPlacement]):
    """Which jobs of a set start now, and on which nodes, whose processors share resources.

    Parameters
    ----------
    nodes : int
        Nodes, all alike.
    processors : int
        Of each node, 64 at most.
    capacity : array_like of int, shape (resources,)
        What a node has of each shared resource, in MB/s for instance.
    held : array_like of int, shape (holdings, 4 + resources)
        Running jobs (from 0 to their estimated end) and reservations: the node, processes, start
        and end in seconds from now, and the demand of one process of each resource.
    asked : array_like of int, shape (jobs,)
        Processes of each job, in the order of the queue.
    walltimes : array_like of int, shape (jobs,)
        Seconds that each asks for.
    demands : array_like of int, shape (jobs, resources)
        What a process of each job demands of each resource.
    threshold : int, optional
        Most penalty factor of a started job in thousandths, from 1000; any if left out.
    goal : {"processors", "penalty"}
        What is minimised: the processors that jobs ask which stay waiting; or, when all jobs have
        to start, the penalised processor-time that they add for everybody, in units (see `unit`).
    resources : sequence of str, optional
        Names of the resources, for people.
    jobs : sequence, optional
        A label for each job, for people.

    Raises
    ------
    InputError
        If more processes than processors are on a node at some time, a job asks more than there
        are processors, lengths do not match, or numbers are so large that penalties cannot be
        counted in 64 bits; all mistakes at once.

    References
    ----------
    F. Guim, I. Rodero, J. Corbalan, "The resource usage aware backfilling", JSSPP 2009, section 3
    (shared windows and penalties).

    Examples
    --------
    On two nodes of two processors two jobs demand more than the 6,000 MB/s of a node if they have
    one each. Side by side they lose nothing.

    >>> machine = {"nodes": 2, "processors": 2, "capacity": [6000], "held": []}
    >>> jobs = {"asked": [2, 2], "walltimes": [60, 90], "demands": [[4000], [2500]]}
    >>> problem = JointAllocation(**machine, **jobs, threshold=1000)
    >>> problem.violations(JointPlacement(np.array([[1, 1], [1, 1]])))[0].detail
    'the factor of job 1 is 1.0833, above 1.000'
    >>> problem.objective(JointPlacement(np.array([[0, 0], [1, 1]])))
    2
    """

    nodes: int
    processors: int
    capacity: NDArray[np.int64]
    held: NDArray[np.int64]
    asked: NDArray[np.int64]
    walltimes: NDArray[np.int64]
    demands: NDArray[np.int64]
    threshold: int | None
    goal: Goal
    resources: tuple[str, ...]
    jobs: tuple[str | int, ...] | None

    sense = "min"
    default_solver = "cbc"

    def __init__(
        self,
        nodes: int,
        processors: int,
        capacity: ArrayLike,
        held: ArrayLike,
        asked: ArrayLike,
        walltimes: ArrayLike,
        demands: ArrayLike,
        threshold: int | None = None,
        goal: Goal = "processors",
        resources: Sequence[str] | None = None,
        jobs: Sequence[str | int] | None = None,
    ) -> None:
        check = FieldChecks(self.name)
        given = (nodes, processors, capacity, held, asked, walltimes, demands)
        fields = check_fields(check, Fields(*given, threshold, goal, resources, jobs))
        check.done()
        # one by one they would each go through the lock of a frozen dataclass
        self.__dict__.update(fields._asdict())

    def __repr__(self) -> str:
        return f"<JointAllocation {self.size}>"

    @property
    def size(self) -> str:
        """Jobs on nodes x processors."""
        return f"{len(self.asked)} on {self.nodes}x{self.processors}"

    @cached_property
    def unit(self) -> int:
        """L, units of penalised time in a second: the least common multiple of the capacities."""
        return math.lcm(*self.capacity.tolist())

    def formulate(self) -> Program:
        """State the program of the model's page.

        Raises
        ------
        InputError
            If it would have more than `optsched.models.joint_allocation.program.MOST_ENTRIES`.
        """
        return self._layout.formulate()

    def decode(self, x: NDArray[np.int64]) -> JointPlacement:
        """Return the processes on each node; nodes take configurations in their order."""
        return JointPlacement(self._layout.processes(np.asarray(x)))

    def encode(self, solution: JointPlacement) -> NDArray[np.int64]:
        """Return the vector of a placement; which of alike nodes has what is lost."""
        return self._layout.vector(solution.processes)

    @cached_property
    def _layout(self) -> Layout:
        from optsched.models.joint_allocation.program import Layout

        return Layout(self)

    def penalised_times(self, solution: JointPlacement) -> NDArray[np.int64]:
        """Return the penalised time of each job in units, shape (jobs,); 0 if it is left out."""
        from optsched.models.joint_allocation.rules import penalised_times

        return penalised_times(self, solution)

    def factors(self, solution: JointPlacement) -> NDArray[np.float64]:
        """Return the penalty factor of each job, shape (jobs,); 1 if it loses nothing."""
        requested = self.walltimes * self.unit
        return np.asarray((requested + self.penalised_times(solution)) / requested)

    def objective(self, solution: JointPlacement) -> int:
        """Return what the goal says, equation (9) or (10) of the model's page."""
        if self.goal == "processors":
            waiting = ~solution.processes.any(axis=1)
            return int(self.asked[waiting].sum())
        from optsched.models.joint_allocation.rules import added_penalty

        return added_penalty(self, solution)

    def violations(self, solution: JointPlacement) -> list[Violation]:
        """Check that jobs are whole, on free processors, and lose little enough."""
        from optsched.models.joint_allocation.rules import broken

        return broken(self, solution)

    def to_json(self) -> dict[str, Any]:
        """Return the fields; holdings as objects."""
        fields: dict[str, Any] = {
            "nodes": self.nodes,
            "processors": self.processors,
            "capacity": self.capacity.tolist(),
            "held": as_objects(self.held),
            "asked": self.asked.tolist(),
            "walltimes": self.walltimes.tolist(),
            "demands": self.demands.tolist(),
            "threshold": self.threshold,
            "goal": self.goal,
        }
        if self.resources != default_names(len(self.capacity)):
            fields["resources"] = list(self.resources)
        if self.jobs is not None:
            fields["jobs"] = list(self.jobs)
        return fields

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> JointAllocation:
        """Build the problem from a snapshot's fields."""
        return cls(*read_fields(cls.name, fields, Fields, check_fields))

    def solution_to_json(self, solution: JointPlacement) -> dict[str, Any]:
        """Return the nodes of each job and its processes there; null for one that is left out."""
        return {
            "places_of_job": [
                [
                    {"node": node, "processes": count}
                    for node, count in enumerate(row.tolist())
                    if count
                ]
                or None
                for row in solution.processes
            ]
        }

    def solution_from_json(self, fields: Mapping[str, Any]) -> JointPlacement:
        """Return the placement written by `solution_to_json`."""
        places = fields.get("places_of_job") if isinstance(fields, Mapping) else None
        if not isinstance(places, list) or len(places) != len(self.asked):
            expected = f"expected a list of places, or null, for each of {len(self.asked)} jobs"
            raise InputError(expected, field="places_of_job")
        processes = np.zeros((len(places), self.nodes), dtype=np.int64)
        for job, nodes in enumerate(places):
            for place in nodes if isinstance(nodes, list) else [] if nodes is None else [nodes]:
                if not self._is_place(place):
                    raise InputError(
                        'expected null or a list of objects such as {"node": 0, "processes": 2}, '
                        f"nodes from 0 to {self.nodes - 1}",
                        field=f"places_of_job[{job}]",
                    )
                processes[job, place["node"]] = place["processes"]
        return JointPlacement(processes)

    def _is_place(self, place: Any) -> bool:
        return (
            isinstance(place, Mapping)
            and set(place) == {"node", "processes"}
            and all(type(number) is int for number in place.values())
            and 0 <= place["node"] < self.nodes
            and 0 < place["processes"] <= self.nodes * self.processors
        )

    def describe(self, solution: JointPlacement | None = None) -> list[tuple[str, str]]:
        """Return the cluster and the jobs, or where those that start are and what they lose."""
        names = [str(job) for job in self.jobs or range(1, len(self.asked) + 1)]
        named = [f"{name} ({count})" for name, count in zip(names, self.asked)]
        running = int(self.held[self.held[:, 2] == 0, 1].sum())
        total = self.nodes * self.processors
        cluster = f"{self.nodes} nodes of {self.processors} processors"
        lines = [("cluster", f"{cluster}, {total - running} of {total} free now")]
        limit = "any" if self.threshold is None else f"at most {self.threshold / 1000:.3f}"
        if solution is None:
            lines += [("waiting", " ".join(named) or "-")]
            lines += [(name, f"{most} a node") for name, most in zip(self.resources, self.capacity)]
            return [*lines, ("penalty factor", limit), ("goal", self.goal)]
        factors = self.factors(solution)
        left = []
        for job, row in enumerate(solution.processes):
            if not row.any():
                left.append(named[job])
                continue
            places = [f"{row[node]} on node {node}" for node in np.flatnonzero(row)]
            lines.append((f"job {named[job]}", f"{', '.join(places)}; factor {factors[job]:.4f}"))
        return [*lines, ("left out", " ".join(left) or "-"), ("penalty factor", limit)]
