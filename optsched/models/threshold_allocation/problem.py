"""Threshold allocation: where and when a job starts on nodes with shared resources.

Model page: ``models/threshold-allocation/README.md``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optsched.models.fields import LARGEST, FieldChecks, read_fields
from optsched.models.holdings import as_objects, default_names
from optsched.models.problem import Problem, Violation
from optsched.models.read_only import once
from optsched.models.threshold_allocation.fields import (
    Fields,
    check_fields,
    is_fine,
    with_defaults,
)
from optsched.registry import models

if TYPE_CHECKING:
    from optsched.models.program import Program

Goal = Literal["start", "penalty", "response", "everybody"]


class Placement(NamedTuple):
    """When a job starts, and where its processes are.

    Parameters
    ----------
    start : int
        Seconds from now.
    processes : int64 array, shape (nodes,)
        Processes of the job on each node.
    """

    start: int
    processes: NDArray[np.int64]


@models.register("threshold-allocation")
@dataclass(frozen=True, eq=False, init=False, repr=False)
class ThresholdAllocation(Problem[Placement]):
    """Processes of one job onto nodes whose processors share resources: where and when.

    Parameters
    ----------
    nodes : int
        Nodes, all alike, a million at most.
    processors : int
        Of each node, 64 at most.
    capacity : array_like of int, shape (resources,)
        What a node has of each shared resource, in MB/s for instance.
    held : array_like of int, shape (holdings, 4 + resources)
        Running jobs (from 0 to their estimated end) and reservations: the node, processes, start
        and end in seconds from now, and the demand of one process of each resource.
    asked : int
        Processes of the job.
    walltime : int
        Seconds that it asks for.
    demand : array_like of int, shape (resources,)
        What one of its processes demands of each resource.
    threshold : int, optional
        Most penalty factor in thousandths, from 1000; any if left out.
    goal : {"start", "penalty", "response", "everybody"}
        What is minimised: the start in seconds; the job's penalised time in units (see `unit`);
        the start and the penalised time together, in units; the penalised processor-time that the
        job adds for all jobs on its nodes, its own included, in units.
    latest : int, optional
        The latest start allowed; any if left out.
    resources : sequence of str, optional
        Names of the resources, for people.
    job : str or int, optional
        A label, for people.

    Raises
    ------
    InputError
        If more processes than processors are on a node at some time, more are asked than there
        are processors, lengths do not match, or numbers are so large that penalties cannot be
        counted in 64 bits; all mistakes at once.

    Notes
    -----
    Read-only int64 arrays are kept as they are: a problem of hundreds of nodes is checked in some
    30 microseconds.

    References
    ----------
    F. Guim, I. Rodero, J. Corbalan, "The resource usage aware backfilling", JSSPP 2009,
    sections 3 and 4.

    Examples
    --------
    A node of four processors is half full. Two more processes would demand 8,000 of 6,000 MB/s, so
    that 100 s become 133; one on each node loses nothing.

    >>> cluster = {"nodes": 2, "processors": 4, "capacity": [6000]}
    >>> job = {"asked": 2, "walltime": 100, "demand": [2000]}
    >>> problem = ThresholdAllocation(
    ...     **cluster, held=[[0, 2, 0, 300, 2000]], **job, threshold=1150
    ... )
    >>> problem.violations(Placement(0, np.array([2, 0])))
    [Violation(constraint='threshold', detail='the factor is 1.3333, above 1.150')]
    >>> problem.violations(Placement(0, np.array([1, 1])))
    []
    """

    nodes: int
    processors: int
    capacity: NDArray[np.int64]
    held: NDArray[np.int64]
    asked: int
    walltime: int
    demand: NDArray[np.int64]
    threshold: int | None
    goal: Goal
    latest: int | None
    resources: tuple[str, ...]
    job: str | int | None

    sense = "min"
    default_solver = "bottleneck-search"

    def __init__(
        self,
        nodes: int,
        processors: int,
        capacity: ArrayLike,
        held: ArrayLike,
        asked: int,
        walltime: int,
        demand: ArrayLike,
        threshold: int | None = None,
        goal: Goal = "start",
        latest: int | None = None,
        resources: Sequence[str] | None = None,
        job: str | int | None = None,
    ) -> None:
        given = (nodes, processors, capacity, held, asked, walltime, demand)
        fields = Fields(*given, threshold, goal, latest, resources, job)
        if not is_fine(fields):
            check = FieldChecks(self.name)
            fields = check_fields(check, fields)
            check.done()
        # one by one they would each go through the lock of a frozen dataclass
        self.__dict__.update(with_defaults(fields)._asdict())

    def __repr__(self) -> str:
        return f"<ThresholdAllocation {self.size}>"

    @property
    def size(self) -> str:
        """Processes of the job on nodes x processors."""
        return f"{self.asked} on {self.nodes}x{self.processors}"

    @cached_property
    def unit(self) -> int:
        """L, units of penalised time in a second: the least common multiple of the capacities."""
        return math.lcm(*self.capacity.tolist())

    @cached_property
    def scale(self) -> NDArray[np.int64]:
        """Units for a second in which one is demanded beyond the capacity, shape (resources,)."""
        return self.unit // self.capacity

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """The times at which the job may start, ascending: equation (1), shape (starts,)."""
        times = _now_and_ends(self.held)
        return times if self.latest is None else times[: times.searchsorted(self.latest, "right")]

    def formulate(self) -> Program:
        """State the program of the model's page.

        Raises
        ------
        InputError
            If it would have more than `optsched.models.threshold_allocation.program.MOST_ENTRIES`.
        """
        from optsched.models.threshold_allocation.program import formulate

        return formulate(self)

    def decode(self, x: NDArray[np.int64]) -> Placement:
        """Return the start and the processes on each node in a vector."""
        from optsched.models.threshold_allocation.program import placement_of

        return placement_of(self, x)

    def encode(self, solution: Placement) -> NDArray[np.int64]:
        """Return the vector of a placement."""
        from optsched.models.threshold_allocation.program import vector

        return vector(self, solution)

    def penalised_time(self, solution: Placement) -> int:
        """Return P, the penalised time of the job in units: `unit` of them are a second."""
        from optsched.models.threshold_allocation.rules import shared_windows

        return shared_windows(self, solution).penalised

    def factor(self, solution: Placement) -> float:
        """Return the penalty factor of the job: 1 if it loses nothing."""
        requested = self.walltime * self.unit
        return (requested + self.penalised_time(solution)) / requested

    def objective(self, solution: Placement) -> int:
        """Return what the goal says, equations (6)."""
        if self.goal == "start":
            return int(solution.start)
        if self.goal == "everybody":
            from optsched.models.threshold_allocation.rules import added_penalty

            return added_penalty(self, solution)
        penalised = self.penalised_time(solution)
        return penalised if self.goal == "penalty" else int(solution.start) * self.unit + penalised

    def violations(self, solution: Placement) -> list[Violation]:
        """Check that all processes are there, on free processors, and lose little enough."""
        from optsched.models.threshold_allocation.rules import broken

        return broken(self, solution)

    def to_json(self) -> dict[str, Any]:
        """Return the fields; holdings as objects."""
        fields: dict[str, Any] = {
            "nodes": self.nodes,
            "processors": self.processors,
            "capacity": self.capacity.tolist(),
            "held": as_objects(self.held),
            "asked": self.asked,
            "walltime": self.walltime,
            "demand": self.demand.tolist(),
            "threshold": self.threshold,
            "goal": self.goal,
            "latest": self.latest,
        }
        if self.resources != default_names(len(self.capacity)):
            fields["resources"] = list(self.resources)
        if self.job is not None:
            fields["job"] = self.job
        return fields

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> ThresholdAllocation:
        """Build the problem from a snapshot's fields."""
        return cls(*read_fields(cls.name, fields, Fields, check_fields))

    def solution_to_json(self, solution: Placement) -> dict[str, Any]:
        """Return the start, and the processes on each node."""
        return {"start": int(solution.start), "processes": solution.processes.tolist()}

    def solution_from_json(self, fields: Mapping[str, Any]) -> Placement:
        """Return the placement written by `solution_to_json`."""
        check = FieldChecks(self.name)
        start = fields.get("start")
        if type(start) is not int or not 0 <= start <= LARGEST:
            check.mistakes.append(f"start: {start!r}; expected an integer from 0")
        processes = check.integers("processes", fields.get("processes"), at_least=0)
        check.done()
        assert isinstance(start, int)
        return Placement(start, processes)

    def describe(self, solution: Placement | None = None) -> list[tuple[str, str]]:
        """Return the cluster and the job, or where and when it starts and what it loses."""
        limit = "any" if self.threshold is None else f"at most {self.threshold / 1000:.3f}"
        if solution is None:
            running = int(self.held[self.held[:, 2] == 0, 1].sum())
            total = self.nodes * self.processors
            cluster = f"{self.nodes} nodes of {self.processors} processors"
            reserved = int(np.count_nonzero(self.held[:, 2]))
            lines = [
                ("cluster", f"{cluster}, {total - running} of {total} free now"),
                ("reservations", f"{reserved} holdings that start later"),
                ("job", f"{self._label}{self.asked} processes for {self.walltime} s"),
            ]
            lines += [
                (name, f"{demand} a process, {capacity} a node")
                for name, demand, capacity in zip(self.resources, self.demand, self.capacity)
            ]
            latest = "any" if self.latest is None else f"{self.latest} s"
            return [
                *lines,
                ("penalty factor", limit),
                ("latest start", latest),
                ("goal", self.goal),
            ]
        places = [
            f"{count} on node {node}"
            for node, count in enumerate(solution.processes.tolist())
            if count
        ]
        return [
            ("job", f"{self._label}{self.asked} processes for {self.walltime} s"),
            ("starts", f"at {solution.start} s"),
            ("places", ", ".join(places) or "-"),
            ("penalty factor", f"{self.factor(solution):.4f}, {limit}"),
        ]

    @property
    def _label(self) -> str:
        return "" if self.job is None else f"{self.job}, "


@once
def _now_and_ends(held: NDArray[np.int64]) -> NDArray[np.int64]:
    times = np.concatenate((np.zeros(1, dtype=np.int64), np.unique(held[:, 3])))
    times.flags.writeable = False
    return times
