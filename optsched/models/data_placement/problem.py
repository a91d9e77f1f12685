"""Data placement: nodes, cores and starts for queued jobs, near their input files.

Model page: ``models/data-placement/README.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from optsched.arrays import Flags, Ints
from optsched.column_sets import columns_on_file, interval_text
from optsched.errors import InputError
from optsched.fields import LARGEST_FIELD, Choice, Fields, Integer, Limit, flag
from optsched.models.data_placement.fields import (
    HEAVIEST,
    LEFT_OUT,
    NO_FILE,
    NO_RESIDENTS,
    Cores,
    Holes,
    JobFiles,
    NodeFlags,
    Plan,
    Residents,
    WidestHole,
    wrong_sizes,
)
from optsched.models.fields import Integers, Labels, read_only
from optsched.models.problem import Problem, Violation
from optsched.models.schema import declared, field
from optsched.registry import models

if TYPE_CHECKING:
    from optsched.models.data_placement._check import Arrays

Kept = Literal["users", "next"]


@models.register("data-placement")
@declared
class DataPlacement(Problem[Plan]):
    """Nodes, cores and starts for a queue of jobs whose input files are loaded or resident.

    Raises
    ------
    InputError
        If a job requests more cores than a node has, a walltime is below 1, a file has two loads, a
        resident file is on an unknown node, or lengths do not match; the message lists all
        mistakes.

    Notes
    -----
    Read-only int64 arrays are not copied: a problem of thousands of jobs on hundreds of nodes is
    checked in a tenth of a millisecond.

    References
    ----------
    M. Gonthier, E. Larsson, L. Marchal, C. Nettelblad, S. Thibault, "Data-driven locality-aware
    batch scheduling", APDCM 2024, sections III and IV.

    Examples
    --------
    Two jobs with one file: on two nodes both jobs load for 60 s; on one node the second job waits.

    >>> problem = DataPlacement([[0], [0]], [1, 1], [90, 90], [7, 7], [60, 60])
    >>> problem.objective(Plan([0, 1], [0, 0], [1, 1]))
    120
    >>> problem.objective(Plan([0, 0], [0, 90], [1, 1]))
    150
    >>> problem.violations(Plan([0, 0], [0, 60], [1, 1]))
    [Violation(constraint='overlap', detail='jobs 1 and 2 hold cores 0 of node 0 at 60 s')]
    """

    available: Ints = field(
        Cores(),
        "seconds from now from which each core is free for good; 0 or less: it is free now",
        symbol="a_nc",
    )
    processors: Ints = field(
        Integers(
            1,
            limit=Limit(
                ("available",),
                lambda fields: fields["available"].shape[1],
                "the {} cores of a node",
            ),
        ),
        "cores that each job requests, all on one node; jobs in the order of the queue",
        symbol="P_j",
    )
    walltimes: Ints = field(
        Integers(1, like="processors"),
        "seconds for which each job holds its cores; loading is part of that",
        symbol="W_j",
    )
    files: Ints = field(
        JobFiles("processors"),
        "number of the input file of each job; null (-1 in Python) for a job without one",
        symbol="f_j",
    )
    loads: Ints = field(
        Integers(0, like="processors", limit=Limit((), lambda fields: HEAVIEST, "{} s")),
        "seconds to load the file from shared storage, equal for equal files; 0 without a file",
        symbol="L_j",
    )
    resident: Ints = field(
        Residents(),
        "resident files of nodes, each with these numbers",
        default=None,
        filled=lambda fields: NO_RESIDENTS,
    )
    reserved: Ints | None = field(
        Holes(),
        "if above 0, end of a *hole*: the core is also free from now to then, before a reservation",
        symbol="r_nc",
        default=None,
    )
    occupied: Flags = field(
        NodeFlags(),
        "whether each node runs a job now; if left out, whether one of its cores is not free now",
        default=None,
        filled=lambda fields: read_only((fields["available"] > 0).any(axis=1)),
    )
    priorities: Ints = field(
        Integers(1, like="processors"),
        "weight of each job in the objective; 1 if left out",
        symbol="p_j",
        default=None,
        filled=lambda fields: read_only(np.ones(len(fields["processors"]), np.int64)),
    )
    load_weight: int = field(
        Integer(0, HEAVIEST),
        "weight of a second of loading relative to a second of waiting",
        symbol="v",
        default=1,
        always=True,
    )
    capacity: int = field(
        Integer(1, LARGEST_FIELD),
        "seconds to load the whole memory of a node; heuristics weigh evictions by it",
        default=1280,
        always=True,
    )
    partial: bool = field(
        flag(),
        "whether jobs may be left out of the plan, for a later decision",
        default=False,
        always=True,
    )
    noticed: tuple[int, int] | None = field(
        WidestHole(),
        "widest hole that heuristics with `holes` know, which only an event on its node updates; "
        "only jobs that fit into it are tried; the actual widest hole if left out",
        default=None,
    )
    kept: Kept = field(
        Choice("users", "next"),
        "how long a file stays resident: `users`, until the end of its last user; `next`, until "
        "the next start of a job on the node after that",
        default="users",
    )
    started: Flags = field(
        NodeFlags(),
        "whether a job has started on each node in this second; on no node if left out. With "
        "`next`, only jobs that also start now find files without users there",
        symbol="σ_n",  # noqa: RUF001
        default=None,
        filled=lambda fields: read_only(np.zeros(len(fields["available"]), np.bool_)),
    )
    jobs: Sequence[str | int] | None = field(
        Labels("processors"), "a label for each job", default=None
    )

    sense = "min"
    default_solver = "interval-search"
    former_options: ClassVar[tuple[str, ...]] = ("backfill", "stop", "weight", "threshold")

    @staticmethod
    def joint_mistakes(fields: Fields, *, on_file: bool) -> list[str]:
        """Return a mistake for each load that differs from that of the same file."""
        return wrong_sizes(fields["files"], fields["loads"], fields["resident"])

    @property
    def size(self) -> str:
        """Jobs x nodes x cores."""
        nodes, cores = self.available.shape
        return f"{len(self.processors)}x{nodes}x{cores}"

    @cached_property
    def horizon(self) -> int:
        """The second that counts as the start of a job that is left out."""
        return max(int(self.available.max()), 0) + int(self.walltimes.max(initial=0))

    @cached_property
    def arrays(self) -> Arrays:
        """The fields that kernels read."""
        from optsched.models.data_placement._check import Arrays

        jobs = np.array([self.processors, self.walltimes, self.files, self.loads])
        return Arrays(
            self.available,
            _no_holes(*self.available.shape) if self.reserved is None else self.reserved,
            self.occupied,
            np.ascontiguousarray(jobs.T),
            self.resident,
            self.started,
            self.kept == "next",
            self.partial,
            self.capacity,
        )

    def load_times(self, solution: Plan) -> Ints:
        """Return the seconds that each job loads or waits for a load, shape (jobs,).

        A job that is left out counts with the whole load of its file.
        """
        known = self._known_of(solution)
        if "load_times" not in known:
            if self.passes_quick_check(solution):
                from optsched.models.data_placement._check import load_times

                times: Ints = load_times(self.arrays, solution.rows)
            else:
                times = _load_times(self, solution)
            known["load_times"] = read_only(times)
        return np.asarray(known["load_times"])

    def objective(self, solution: Plan) -> int:
        """Return the weighted sum of waiting and loading, equation (1)."""
        known = self._known_of(solution)
        if "objective" not in known:
            from optsched.models.data_placement._check import weighed

            given = (self.load_times(solution), self.priorities, self.load_weight)
            known["objective"] = weighed(self.arrays, solution.rows, *given)
        return int(known["objective"])

    def passes_quick_check(self, solution: Plan) -> bool:
        """Return True only if equations (2) to (5) hold."""
        if type(solution) is not Plan or not _has_length(solution, len(self.processors)):
            return False
        known = self._known_of(solution)
        if "is_sound" not in known:
            from optsched.models.data_placement._check import is_sound

            known["is_sound"] = is_sound(self.arrays, LARGEST_FIELD, solution.rows)
        return bool(known["is_sound"])

    def _known_of(self, solution: Plan) -> dict[str, Any]:
        """Return the cached figures of an immutable plan; only those of the last are kept."""
        last: tuple[Plan, dict[str, Any]] | None = self.__dict__.get("_known")
        if last is None or last[0] is not solution:
            last = self.__dict__["_known"] = (solution, {})
        return last[1]

    def violations(self, solution: Plan) -> list[Violation]:
        """Check equations (2) to (5): each job has the cores that it requests, free and its own."""
        jobs = len(self.processors)
        if not _has_length(solution, jobs):
            expected = f"expected a node, a start and cores for each of {jobs} jobs"
            return [Violation("once", expected)]
        nodes, cores = self.available.shape
        found: list[Violation] = []

        def note(name: str, wrong: Flags, detail: Callable[[int], str]) -> None:
            for job in np.flatnonzero(wrong).tolist():
                found.append(Violation(name, f"job {job + 1} {detail(job)}"))

        out = solution.node == LEFT_OUT
        if not self.partial:
            note("once", out, lambda _: "is not placed")
        remnant = out & ((solution.start != 0) | (solution.cores != 0))
        note("once", remnant, lambda _: "is left out, but has a start or cores")
        nowhere = ~out & ((solution.node < 0) | (solution.node >= nodes))
        note("node", nowhere, lambda job: f"is on node {solution.node[job]}; there are {nodes}")
        never = ~out & ((solution.start < 0) | (solution.start > LARGEST_FIELD))
        note("start", never, lambda job: f"starts after {solution.start[job]} s")
        placed = np.flatnonzero(~(out | nowhere | never))
        mask = solution.cores[placed]
        held = (mask[:, None] >> np.arange(cores)) & 1 == 1
        wrong = np.zeros(jobs, dtype=bool)
        wrong[placed] = (mask < 0) | (mask >> cores != 0)
        note("cores", wrong, lambda _: f"has cores that are not among the {cores} of a node")
        wrong[placed] = ~wrong[placed] & (held.sum(axis=1) != self.processors[placed])
        note(
            "cores",
            wrong,
            lambda job: (
                f"requests {self.processors[job]} cores "
                f"and has {int(solution.cores[job]).bit_count()}"
            ),
        )
        node, start = solution.node[placed], solution.start[placed]
        end = start + self.walltimes[placed]
        busy = held & (start[:, None] < self.available[node])
        if self.reserved is not None:
            busy &= end[:, None] > self.reserved[node]
        wrong[:] = False
        wrong[placed] = busy.any(axis=1)
        taken = dict(zip(placed.tolist(), busy))
        note(
            "free",
            wrong,
            lambda job: f"holds {_cores(taken[job], solution, job)} before they are free",
        )
        found += _overlaps(placed, node, start, end, held)
        return found

    def solution_to_json(self, solution: Plan) -> dict[str, Any]:
        """Return the node, the cores as intervals and the start of each job; null if left out."""
        arrays = solution.node.tolist(), solution.start.tolist(), solution.cores.tolist()
        places = [
            None if node == LEFT_OUT else {"node": node, "cores": interval_text(mask), "start": at}
            for node, at, mask in zip(*arrays)
        ]
        return {"place_of_job": places}

    def solution_from_json(self, fields: Mapping[str, Any]) -> Plan:
        """Return the plan written by `solution_to_json`."""
        places = fields.get("place_of_job") if isinstance(fields, Mapping) else None
        if not isinstance(places, list):
            raise InputError("expected a list of places, or null", field="place_of_job")
        cores, rows = self.available.shape[1], []
        for job, place in enumerate(places):
            row = (LEFT_OUT, 0, 0) if place is None else _row(place, cores)
            if row is None:
                raise InputError(
                    'expected null or an object such as {"node": 0, "cores": "0-3 5", "start": 60}'
                    f", nodes from 0 and cores within 0-{cores - 1}",
                    field=f"place_of_job[{job}]",
                )
            rows.append(row)
        return Plan(*np.array(rows, dtype=np.int64).reshape(-1, 3).T)

    def describe(self, solution: Plan | None = None) -> list[tuple[str, str]]:
        """Return nodes, jobs and files, or the placements of jobs in the order of their starts."""
        names = [str(job) for job in self.jobs or range(1, len(self.processors) + 1)]
        nodes, cores = self.available.shape
        free = int(np.count_nonzero(self.available <= 0))
        lines = [("cluster", f"{nodes} nodes of {cores} cores, {free} of {nodes * cores} free now")]
        if solution is None:
            queued = [f"{name} ({count})" for name, count in zip(names, self.processors)]
            files = self.files[self.files != NO_FILE]
            return [
                *lines,
                ("waiting", " ".join(queued) or "-"),
                ("files", f"{len(np.unique(files))} of {len(files)} jobs"),
                ("in memory", f"{len(self.resident)} files, or being loaded"),
            ]
        times = self.load_times(solution)
        placed = np.flatnonzero(solution.node != LEFT_OUT)
        for job in placed[np.argsort(solution.start[placed], kind="stable")].tolist():
            where = f"node {solution.node[job]}, cores {interval_text(int(solution.cores[job]))}"
            text = f"at {solution.start[job]} s on {where}{self._loading(job, int(times[job]))}"
            lines.append((f"job {names[job]} ({self.processors[job]})", text))
        left = [names[job] for job in np.flatnonzero(solution.node == LEFT_OUT).tolist()]
        waiting, loading = solution.start[placed].sum(), times[placed].sum()
        return [
            *lines,
            ("left out", " ".join(left) or "-"),
            ("waiting", f"{waiting} s in all"),
            ("loading", f"{loading} s in all"),
        ]

    def _loading(self, job: int, seconds: int) -> str:
        file = self.files[job]
        if file == NO_FILE:
            return ""
        if seconds == 0:
            return f", finds file {file}"
        verb = "loads" if seconds == self.loads[job] else "waits for"
        return f", {verb} file {file}, {seconds} s"


def _row(place: Any, cores: int) -> tuple[int, int, int] | None:
    if not isinstance(place, Mapping) or set(place) != {"node", "cores", "start"}:
        return None
    node, text, start = place["node"], place["cores"], place["start"]
    if not all(type(number) is int and 0 <= number <= LARGEST_FIELD for number in (node, start)):
        return None
    mask = columns_on_file(text, cores) if isinstance(text, str) and text else None
    if text == "":
        mask = 0
    return None if mask is None else (node, start, mask)


def _has_length(plan: Plan, jobs: int) -> bool:
    return {array.shape for array in (plan.node, plan.start, plan.cores)} == {(jobs,)}


@cache
def _no_holes(nodes: int, cores: int) -> Ints:
    return read_only(np.zeros((nodes, cores), dtype=np.int64))


def _load_times(problem: DataPlacement, plan: Plan) -> Ints:
    """Return the seconds that each job loads or waits for a load, shape (jobs,).

    Equations (6) to (8) of the model's page. On each node, the users of a file are ordered by start
    and number, after the entry of the file if the file is resident. A user finds the file if an
    earlier user keeps the file until then, or with ``next`` if no job has started on the node
    between the end of the last of these and then. Otherwise the user loads the file, and later
    users wait for that load.
    """
    times = problem.loads.copy()
    users = np.flatnonzero((plan.node >= 0) & (problem.files != NO_FILE))
    if not len(users):
        return times
    resident = problem.resident
    node = np.concatenate((resident[:, 0], plan.node[users]))
    file = np.concatenate((resident[:, 1], problem.files[users]))
    start = np.concatenate((np.full(len(resident), -1), plan.start[users]))
    until = np.concatenate((resident[:, 4], plan.start[users] + problem.walltimes[users]))
    loaded = np.concatenate((resident[:, 3], plan.start[users] + problem.loads[users]))
    order = np.lexsort((start, file, node))
    node, file, start, until, loaded = (a[order] for a in (node, file, start, until, loaded))
    first = np.ones(len(order), dtype=bool)
    first[1:] = (node[1:] != node[:-1]) | (file[1:] != file[:-1])
    # latest end so far in each group: an offset lifts each group above the one before
    lift = first.cumsum() * (until.max() + 2)
    last_end = np.maximum.accumulate(until + lift) - lift
    finds = np.zeros(len(order), dtype=bool)
    finds[1:] = ~first[1:] & (start[1:] <= last_end[:-1])
    if problem.kept == "next":
        late = np.flatnonzero(~first & ~finds)
        finds[late] = _quiet(problem, plan, node[late], last_end[late - 1], start[late])
    loader = np.maximum.accumulate(np.where(finds, 0, np.arange(len(order))))
    wait = np.where(finds, np.maximum(loaded[loader] - start, 0), loaded - start)
    job = order - len(resident)
    times[users[job[job >= 0]]] = wait[job >= 0]
    return times


def _quiet(problem: DataPlacement, plan: Plan, node: Ints, since: Ints, until: Ints) -> Flags:
    """Return whether no job starts on a node from `since` to before `until`, shape (spans,)."""
    placed = plan.node >= 0
    began = np.flatnonzero(problem.started)
    where = np.concatenate((plan.node[placed], began))
    start = np.concatenate((plan.start[placed], np.zeros_like(began)))
    span = max(start.max(initial=0), until.max(initial=0)) + 1
    starts = np.sort(where * span + start)
    before = np.searchsorted(starts, node * span + until)
    return np.asarray(before == np.searchsorted(starts, node * span + since))


def _overlaps(jobs: Ints, node: Ints, start: Ints, end: Ints, held: Flags) -> Iterator[Violation]:
    """Yield the overlaps of consecutive jobs, by start, on each core."""
    by_start = np.argsort(start, kind="stable")
    row, core = np.nonzero(held[by_start])
    of_core = node[by_start][row] * held.shape[1] + core
    # numpy sorts 16-bit numbers by radix sort, several times as fast
    narrow = of_core.astype(np.uint16) if of_core.max(initial=0) < 2**16 else of_core
    order = np.argsort(narrow, kind="stable")
    user, of_core = by_start[row[order]], of_core[order]
    clash = (of_core[1:] == of_core[:-1]) & (end[user[:-1]] > start[user[1:]])
    pairs: dict[tuple[int, int], int] = {}
    for place in np.flatnonzero(clash).tolist():
        pair = int(user[place]), int(user[place + 1])
        pairs[pair] = pairs.get(pair, 0) | 1 << int(of_core[place]) % held.shape[1]
    for (one, other), shared in pairs.items():
        yield Violation(
            "overlap",
            f"jobs {jobs[one] + 1} and {jobs[other] + 1} hold cores {interval_text(shared)} of "
            f"node {node[one]} at {start[other]} s",
        )


def _cores(held: Flags, plan: Plan, job: int) -> str:
    mask = sum(1 << core for core in np.flatnonzero(held).tolist())
    return f"cores {interval_text(mask)} of node {plan.node[job]}"
