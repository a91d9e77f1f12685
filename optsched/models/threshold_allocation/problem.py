"""Threshold allocation: nodes and start of a job on nodes with shared resources.

Model page: ``models/threshold-allocation/README.md``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from optsched.arrays import Ints
from optsched.fields import LARGEST_FIELD, Choice, Fields, Integer, Limit, Table, first_few
from optsched.models.fields import Integers, Labels, Records, cache_last, label, read_only
from optsched.models.problem import Problem, Violation
from optsched.models.schema import declared, field
from optsched.models.threshold_allocation.timeline import Job, checked_penalty, penalty_within
from optsched.registry import models

__all__ = ["Goal", "Placement", "ThresholdAllocation"]

HELD = ("node", "processes", "start", "end")
"""Columns of the table of allocations before those of the demand."""

MOST_NODES = 10**6

WIDEST = 64
"""Most processors of a node."""

NO_PENALTY = 1000
"""The penalty factor of a job without a penalty, in thousandths."""

COUNTABLE = 2**62
"""Upper limit of the sum of all penalties, in units, so that sums fit into 64 bits."""


class NodeAllocations(Records):
    """A table of allocations on the `nodes`, with a demand for each of `capacity`."""

    in_python = "array_like of int, shape (allocations, 4 + resources)"
    columns: Mapping[str, tuple[int, int]] = {
        name: (int(name == "processes"), LARGEST_FIELD) for name in HELD
    }
    many, of = "demand", "capacity"

    def is_sound(self, value: Any, fields: Fields) -> bool:
        nodes, resources = fields.get("nodes"), fields.count(self.of)
        return nodes is not None and resources is not None and _are_valid(value, nodes, resources)

    def joint(self, row: Sequence[int], fields: Fields, seen: set[Any]) -> Iterable[str]:
        node, _, start, end, *_ = row
        if node >= fields.get("nodes", math.inf):
            yield f".node: {node}; expected a node from 0 to {fields['nodes'] - 1}"
        elif start >= end:
            yield f".end: {end}; expected more than its start, {start}"

    def parts(self) -> Sequence[tuple[str, str]]:
        return (
            ("n_h, m_h", "`node`, from 0, and `processes`, from 1"),
            (
                "s_h, e_h",
                "`start` and `end` in seconds from now; 0 and the estimated end for running jobs",
            ),
            ("D_hr", "`demand` of one process for each resource"),
        )


def default_names(count: int) -> tuple[str, ...]:
    """Return default names of resources."""
    return ("bandwidth",) if count == 1 else tuple(f"resource-{r + 1}" for r in range(count))


@cache_last
def overcommitments(held: Ints, processors: int) -> list[str]:
    """Return a mistake for each allocation at whose start a node has too many processes."""
    rows = np.arange(len(held))
    # quick check: a node is safe if its processes of all times together fit
    total = np.bincount(held[:, 0], weights=held[:, 1])
    if total.max(initial=0) <= processors:
        return []
    rows = rows[total[held[:, 0]] > processors]
    node, processes, start, end = held[rows].T[:4]
    # one time axis for all nodes, one node after the other; every process ends on its part
    line = 2 * node * (end.max() + 1)
    events = np.concatenate((line + 2 * end, line + 2 * start + 1))
    order = events.argsort()
    active = np.concatenate((-processes, processes))[order].cumsum()
    over = order[(active > processors) & (order >= len(rows))]
    wrong = [
        f"held[{row}]: more than {processors} processes on node {held[row, 0]} "
        f"at {held[row, 2]} s; expected at most its {processors} processors"
        for row in rows[np.sort(over) - len(rows)].tolist()
    ]
    return first_few("held", wrong)


@cache_last
def _are_valid(held: Any, nodes: int, resources: int) -> bool:
    """Return whether allocations are an int64 array, each of them without a mistake."""
    if not isinstance(held, np.ndarray) or held.dtype != np.int64 or held.ndim != 2:
        return False
    if held.shape[1] != len(HELD) + resources:
        return False
    if len(held):
        node, processes, start, end = held.T[:4]
        if held.min() < 0 or held.max() > LARGEST_FIELD or node.max() >= nodes:
            return False
        if not processes.min() or (start >= end).any():
            return False
    return True


Goal = Literal["start", "penalty", "response", "everybody"]

GOALS: tuple[str, ...] = get_args(Goal)


class Placement(NamedTuple):
    """Start of a job, and its processes on each node.

    Parameters
    ----------
    start : int
        Start in seconds from now.
    processes : int64 array, shape (nodes,)
        Processes of the job on each node.
    """

    start: int
    processes: Ints


@models.register("threshold-allocation")
@declared
class ThresholdAllocation(Problem[Placement]):
    """Start and nodes of the processes of one job, on nodes whose processors share resources.

    Raises
    ------
    InputError
        If a node has more processes than processors at some time, the job requests more processors
        than there are, lengths do not match, or numbers are so large that penalties cannot be
        counted in 64 bits; the message lists all mistakes.

    Notes
    -----
    Read-only int64 arrays are not copied: a problem of hundreds of nodes is checked in some 30
    microseconds.

    References
    ----------
    F. Guim, I. Rodero, J. Corbalan, "The resource usage aware backfilling", JSSPP 2009,
    sections 3 and 4.

    Examples
    --------
    One of two nodes of four processors is half full. Two more processes on that node would demand
    8,000 of 6,000 MB/s, so that 100 s become 133; one process on each node has no penalty.

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

    nodes: int = field(Integer(1, MOST_NODES), "number of nodes, all alike", symbol="N")
    processors: int = field(Integer(1, WIDEST), "processors of each node", symbol="Q")
    capacity: Ints = field(
        Integers(1),
        "capacity of a node for each shared resource r, in MB/s for instance; empty: nothing is "
        "lost",
        symbol="c_r",
    )
    held: Ints = field(
        NodeAllocations(),
        "*allocations*: running jobs and reservations on nodes, each with these numbers",
    )
    asked: int = field(
        Integer(
            1,
            LARGEST_FIELD,
            limit=Limit(
                ("nodes", "processors"),
                lambda fields: fields["nodes"] * fields["processors"],
                "the {} processors of all nodes",
            ),
        ),
        "processes of the job",
        symbol="a",
    )
    walltime: int = field(Integer(1, LARGEST_FIELD), "walltime of the job in seconds", symbol="d")
    demand: Ints = field(
        Integers(0, like="capacity"), "demand of one process for each resource", symbol="b_r"
    )
    threshold: int | None = field(
        Integer(NO_PENALTY, LARGEST_FIELD),
        "threshold: largest penalty factor in thousandths, 1150 for 1.15; no limit if left out",
        symbol="f",
        default=None,
        always=True,
    )
    goal: Goal = field(
        Choice(*GOALS), "quantity to minimize, see (6)", default="start", always=True
    )
    latest: int | None = field(
        Integer(0, LARGEST_FIELD),
        "latest allowed start; no limit if left out",
        default=None,
        always=True,
    )
    resources: tuple[str, ...] = field(
        Labels("capacity", as_text=True),
        "names of the resources",
        default=None,
        filled=lambda fields: default_names(len(fields["capacity"])),
    )
    job: str | int | None = field(
        label("a label, a text or an integer"), "a label for the job", default=None
    )

    sense = "min"
    default_solver = "bottleneck-search"

    @staticmethod
    def joint_mistakes(fields: Fields, *, on_file: bool) -> list[str]:
        """Return a mistake if penalties cannot be counted, or those of overcommitted nodes."""
        capacities = fields["capacity"].tolist()
        unit = math.lcm(*capacities)
        last, *demands = _most(fields["held"])
        most = map(max, fields["demand"].tolist(), demands)
        each = 1 + sum(one * (unit // capacity) for one, capacity in zip(most, capacities))
        lost = fields["processors"] ** 2 * each * fields["walltime"]
        waiting = (last + fields["walltime"]) * (unit + 2)
        if fields["nodes"] * (lost + waiting) >= COUNTABLE:
            return [
                "capacity: nodes, times, demands and capacities are too large together; "
                "coarser units make penalties that can be counted in 64 bits"
            ]
        return overcommitments(fields["held"], fields["processors"])

    @property
    def size(self) -> str:
        """Processes of the job on nodes x processors."""
        return f"{self.asked} on {self.nodes}x{self.processors}"

    @property
    def unit(self) -> int:
        """L, units of penalized time in a second: the least common multiple of the capacities."""
        return units(self.capacity)[0]

    @property
    def scale(self) -> Ints:
        """Units for a second with an excess demand of 1 for each resource, shape (resources,)."""
        return units(self.capacity)[1]

    @cached_property
    def in_kernels(self) -> Job:
        """The job and the nodes as kernels take them."""
        return Job(
            self.processors, self.asked, self.walltime, self.demand, self.capacity, self.scale
        )

    @cached_property
    def starts(self) -> Ints:
        """The possible starts of the job, ascending, equation (1), shape (starts,)."""
        times = _now_and_ends(self.held)
        return times if self.latest is None else times[: times.searchsorted(self.latest, "right")]

    def penalised_time(self, solution: Placement) -> int:
        """Return P, the penalized time of the job, in units of 1 / `unit` seconds."""
        penalised = self._checked_penalty(solution)
        if penalised < 0:
            return _shared_windows(solution.processes, self, solution.start).penalised
        return penalised

    def factor(self, solution: Placement) -> float:
        """Return the penalty factor of the job, 1 without a penalty."""
        requested = self.walltime * self.unit
        return (requested + self.penalised_time(solution)) / requested

    def objective(self, solution: Placement) -> int:
        """Return the value of the chosen goal, equations (6)."""
        if self.goal == "start":
            return int(solution.start)
        if self.goal == "everybody":
            windows = _shared_windows(solution.processes, self, solution.start)
            own = solution.processes[windows.node]
            with_job = _penalties(self, windows.demand)
            without = _penalties(self, windows.demand - own[:, None] * self.demand)
            added = windows.processes * with_job - (windows.processes - own) * without
            return int(windows.length @ added)
        penalised = self.penalised_time(solution)
        return penalised if self.goal == "penalty" else int(solution.start) * self.unit + penalised

    def passes_quick_check(self, solution: Placement) -> bool:
        """Return True only if no equation is violated."""
        if type(solution) is not Placement or type(solution.start) is not int:
            return False
        if self.latest is not None and solution.start > self.latest:
            return False
        return 0 <= self._checked_penalty(solution) <= most_penalized(self)

    def violations(self, solution: Placement) -> list[Violation]:
        """Check equations (1), (2), (3) and (5): the start, free processors, and the threshold."""
        start, processes = solution
        if processes.shape != (self.nodes,) or (processes.size and processes.min() < 0):
            expected = f"expected a number of processes, 0 or more, for each of {self.nodes} nodes"
            return [Violation("processes", expected)]
        found: list[Violation] = []
        if start != 0 and not (start > 0 and (self.held[:, 3] == start).any()):
            found.append(Violation("start", f"{start} s is neither now nor the end of a holding"))
        if self.latest is not None and start > self.latest:
            found.append(Violation("start", f"{start} s is after the latest, {self.latest} s"))
        total = int(processes.sum())
        if total != self.asked:
            found.append(Violation("asked", f"{total} processes are placed, {self.asked} asked"))
        windows = _shared_windows(processes, self, start)
        for node in np.unique(windows.node[windows.processes > self.processors]).tolist():
            detail = f"more than {self.processors} processes on node {node} at a time"
            found.append(Violation("free", detail))
        if self.threshold is not None:
            requested = self.walltime * self.unit
            if 1000 * (requested + windows.penalised) > self.threshold * requested:
                factor, most = self.factor(solution), self.threshold / 1000
                detail = f"the factor is {factor:.4f}, above {most:.3f}"
                found.append(Violation("threshold", detail))
        return found

    def _checked_penalty(self, solution: Placement) -> int:
        """Return the penalized time of a placement that fits on its nodes, otherwise -1."""
        known: tuple[Placement, int] | None = self.__dict__.get("_known_penalty")
        if known is not None and known[0] is solution:
            return known[1]
        start, processes = solution
        is_array = type(processes) is np.ndarray and processes.dtype == np.int64
        if not (is_array and processes.shape == (self.nodes,) and processes.flags.c_contiguous):
            return -1
        if not 0 <= start <= LARGEST_FIELD:
            return -1
        given = self.held, self.in_kernels, start, read_only(processes)
        penalised: int = checked_penalty(*given, False)
        if not processes.flags.writeable:  # the same placement is checked, valued and weighed
            self.__dict__["_known_penalty"] = (solution, penalised)
        return penalised

    def solution_to_json(self, solution: Placement) -> dict[str, Any]:
        """Return the start, and the processes on each node."""
        return {"start": int(solution.start), "processes": solution.processes.tolist()}

    def solution_from_json(self, fields: Mapping[str, Any]) -> Placement:
        """Return the placement written by `solution_to_json`."""
        table = Table(fields)
        start = table.read("start", Integer(0, LARGEST_FIELD, "expected an integer from 0"))
        processes = table.read("processes", Integers(0))
        table.done(self.name)
        return Placement(start, processes)

    def describe(self, solution: Placement | None = None) -> list[tuple[str, str]]:
        """Return the cluster and the job, or its start, its nodes and its penalty factor."""
        limit = "any" if self.threshold is None else f"at most {self.threshold / 1000:.3f}"
        label = "" if self.job is None else f"{self.job}, "
        job = ("job", f"{label}{self.asked} processes for {self.walltime} s")
        if solution is None:
            running = int(self.held[self.held[:, 2] == 0, 1].sum())
            total = self.nodes * self.processors
            cluster = f"{self.nodes} nodes of {self.processors} processors"
            reserved = int(np.count_nonzero(self.held[:, 2]))
            each = zip(self.resources, self.demand, self.capacity)
            return [
                ("cluster", f"{cluster}, {total - running} of {total} free now"),
                ("reservations", f"{reserved} allocations that start later"),
                job,
                *((name, f"{demand} a process, {most} a node") for name, demand, most in each),
                ("penalty factor", limit),
                ("latest start", "any" if self.latest is None else f"{self.latest} s"),
                ("goal", self.goal),
            ]
        places = [
            f"{count} on node {node}"
            for node, count in enumerate(solution.processes.tolist())
            if count
        ]
        return [
            job,
            ("starts", f"at {solution.start} s"),
            ("places", ", ".join(places) or "-"),
            ("penalty factor", f"{self.factor(solution):.4f}, {limit}"),
        ]


def most_penalized(problem: ThresholdAllocation) -> int:
    """Return the largest penalized time within the threshold in units, equation (5)."""
    return penalty_within(problem.threshold, problem.walltime * problem.unit)


class _SharedWindows(NamedTuple):
    """The shared windows of a job within its walltime, node by node and by time.

    Each window has its node, length in seconds, processes and demand (windows, resources), both
    with those of the job. `penalised` is P, the penalized time of the job on its worst node in
    units, equation (4).
    """

    node: Ints
    length: Ints
    processes: Ints
    demand: Ints
    penalised: int


@cache_last
def _shared_windows(processes: Ints, problem: ThresholdAllocation, start: int) -> _SharedWindows:
    """Return the shared windows of a job with processes on each node.

    A window is the time between two consecutive events on a node: starts and ends of its
    allocations, including the job.
    """
    held, walltime = problem.held, problem.walltime
    is_used = processes != 0
    used = np.flatnonzero(is_used)
    there = (held[:, 2] < start + walltime) & (held[:, 3] > start) & is_used[held[:, 0]]
    own = np.empty((len(used), held.shape[1]), dtype=np.int64)
    own[:, 0], own[:, 1] = used, processes[used]
    own[:, 2], own[:, 3], own[:, 4:] = start, start + walltime, problem.demand
    rows = np.concatenate((own, held[there]))
    # one time axis for all nodes, one walltime after the other; every process ends on its part
    line = (is_used.cumsum() - 1)[rows[:, 0]] * walltime - start
    begins = line + np.maximum(rows[:, 2], start)
    ends = line + np.minimum(rows[:, 3], start + walltime)
    events = np.concatenate((begins, ends))
    order = events.argsort()
    events = events[order]
    # processes in the first column, demands in the others
    change = rows[:, 3:] * rows[:, 1:2]
    change[:, 0] = rows[:, 1]
    active = np.concatenate((change, -change))[order].cumsum(axis=0)
    length = events[1:] - events[:-1]
    inside = length.nonzero()[0]
    length, place = length[inside], events[inside] // walltime
    demand = active[inside, 1:]
    lost = length * _penalties(problem, demand)
    # every node has windows, one after the other
    on_nodes = np.add.reduceat(lost, place.searchsorted(np.arange(len(used))))
    penalised = int(on_nodes.max(initial=0))
    return _SharedWindows(used[place], length, active[inside, 0], demand, penalised)


def _penalties(problem: ThresholdAllocation, demand: Ints) -> Ints:
    """Return the penalties of windows with a demand (windows, resources), in units of 1/L."""
    return np.asarray(np.maximum(demand - problem.capacity, 0) @ problem.scale, dtype=np.int64)


@cache_last
def units(capacity: Ints) -> tuple[int, Ints]:
    """Return `unit` and `scale` of a problem."""
    unit = math.lcm(*capacity.tolist())
    scale = unit // capacity
    scale.flags.writeable = False
    return unit, scale


@cache_last
def _now_and_ends(held: Ints) -> Ints:
    times = np.concatenate((np.zeros(1, dtype=np.int64), np.unique(held[:, 3])))
    times.flags.writeable = False
    return times


@cache_last
def _most(held: Ints) -> list[int]:
    """Return the last end of allocations, and the largest demand for each resource."""
    return [int(most) for most in held[:, 3:].max(axis=0, initial=0)]
