"""Threshold allocation: where and when a job starts on nodes with shared resources.

Model page: ``models/threshold-allocation/README.md``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from optsched.models.fields import LARGEST, FieldChecks
from optsched.models.holdings import (
    COUNTABLE,
    MOST_NODES,
    NO_PENALTY,
    WIDEST,
    Holdings,
    crowds,
    default_names,
)
from optsched.models.problem import Problem, Violation
from optsched.models.read_only import once
from optsched.models.schema import (
    Choice,
    Fields,
    Integer,
    Integers,
    Label,
    Labels,
    Limit,
    declared,
    field,
)
from optsched.registry import models

if TYPE_CHECKING:
    from optsched.models.program import Program

Goal = Literal["start", "penalty", "response", "everybody"]

GOALS: tuple[str, ...] = get_args(Goal)


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
@declared
class ThresholdAllocation(Problem[Placement]):
    """Processes of one job onto nodes whose processors share resources: where and when.

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

    nodes: int = field(Integer(1, MOST_NODES), "nodes, all alike", symbol="N")
    processors: int = field(Integer(1, WIDEST), "processors of each node", symbol="Q")
    capacity: NDArray[np.int64] = field(
        Integers(1),
        "capacity of a node for each shared resource r, in MB/s for instance; empty: nothing is "
        "lost",
        symbol="c_r",
    )
    held: NDArray[np.int64] = field(
        Holdings(), "*holdings*: running jobs and reservations on nodes, each with these numbers"
    )
    asked: int = field(
        Integer(
            1,
            LARGEST,
            limit=Limit(
                ("nodes", "processors"),
                lambda fields: fields["nodes"] * fields["processors"],
                "the {} processors of all nodes",
            ),
        ),
        "processes of the job",
        symbol="a",
    )
    walltime: int = field(Integer(1, LARGEST), "seconds that the job asks for", symbol="d")
    demand: NDArray[np.int64] = field(
        Integers(0, like="capacity"),
        "demand of one of its processes of each resource",
        symbol="b_r",
    )
    threshold: int | None = field(
        Integer(NO_PENALTY, LARGEST),
        "most penalty factor in thousandths, 1150 is 1.15; any if left out",
        symbol="f",
        default=None,
        always=True,
    )
    goal: Goal = field(
        Choice(*GOALS),
        "what is minimised, see (6)",
        default="start",
        always=True,
    )
    latest: int | None = field(
        Integer(0, LARGEST), "the latest start allowed; any if left out", default=None, always=True
    )
    resources: tuple[str, ...] = field(
        Labels("capacity", as_text=True),
        "names of the resources",
        default=None,
        filled=lambda fields: default_names(len(fields["capacity"])),
    )
    job: str | int | None = field(
        Label("expected a label, a text or an integer"), "a label for the job", default=None
    )

    sense = "min"
    default_solver = "bottleneck-search"

    @staticmethod
    def joint_mistakes(fields: Fields, *, on_file: bool) -> list[str]:
        """Return the penalties that cannot be counted, and the holdings of too many processes."""
        if not _are_countable(fields):
            return [
                "capacity: nodes, times, demands and capacities are too large together; "
                "coarser units make penalties that can be counted in 64 bits"
            ]
        return crowds(fields["held"], fields["processors"])

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


@once
def _most(held: NDArray[np.int64]) -> list[int]:
    """Return the last end of holdings, and the largest demand of each resource."""
    return [int(most) for most in held[:, 3:].max(axis=0, initial=0)]


def _are_countable(fields: Fields) -> bool:
    """Return whether no sum of penalties can leave 64 bits."""
    capacities = fields["capacity"].tolist()
    unit = math.lcm(*capacities)
    last, *demands = _most(fields["held"])
    horizon = last + fields["walltime"]
    each = 1
    for capacity, own, held in zip(capacities, fields["demand"].tolist(), demands):
        each += max(own, held) * (unit // capacity)
    worst = fields["processors"] ** 2 * each * fields["walltime"] + horizon * (unit + 2)
    return bool(fields["nodes"] * worst < COUNTABLE)
