"""The integer program of a data placement, and reductions for exact solvers.

The verification uses no reductions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import combinations, permutations, product
from typing import Any

import numpy as np

from optsched.arrays import Ints
from optsched.models.data_placement.fields import LEFT_OUT, NO_FILE, Plan
from optsched.models.data_placement.problem import DataPlacement
from optsched.models.program import Formulation, Program, ProgramBuilder, formulations


def latest_start(problem: DataPlacement) -> int:
    """Return a second by which every job starts in some optimal plan.

    Once every core is free and every file is complete, an idle second could be cut out of a plan to
    its gain, so some job always runs from then on. A job that finds a file without users may also
    wait, on an idle cluster, for the end of its load.
    """
    _, _, _, loaded, until = problem.resident.T
    lasting = problem.walltimes
    if problem.kept == "users":
        loaded = np.minimum(loaded, until)
    else:
        lasting = np.maximum(lasting, problem.loads)
    busy = max(int(problem.available.max()), int(loaded.max(initial=0)), 0)
    return busy + int(lasting.sum())


def sharing_pairs(problem: DataPlacement) -> list[tuple[int, int]]:
    """Return the pairs of jobs with the same file and a load above 0 s, lower number first."""
    loading = np.flatnonzero((problem.files != NO_FILE) & (problem.loads > 0))
    by_file: dict[int, list[int]] = {}
    for job, file in zip(loading.tolist(), problem.files[loading].tolist()):
        by_file.setdefault(file, []).append(job)
    return [pair for users in by_file.values() for pair in combinations(users, 2)]


def finding_pairs(problem: DataPlacement) -> list[tuple[int, int]]:
    """Return the pairs of an entry of `resident` and a job that may find the file."""
    return [
        (entry, job)
        for entry, file in enumerate(problem.resident[:, 1].tolist())
        for job in np.flatnonzero((problem.files == file) & (problem.loads > 0)).tolist()
    ]


KEEPS, KEEPS_RESIDENT = ("q", "next"), ("found", "still")
"""Symbols of a job that finds the file of another one, and of one that finds a resident file."""

Row = Callable[..., None]
"""The method `ProgramBuilder.row`."""


@formulations.register("data-placement")
class DataFormulation(Formulation[DataPlacement, Plan]):
    """The formulation on the model's page."""

    most_entries = 1_000_000  # generic solvers fail on much smaller programs

    @cached_property
    def variables(self) -> Variables:
        """The variables of the program, to which `program` adds the rows."""
        return Variables(self.problem, ProgramBuilder("min"))

    @cached_property
    def program(self) -> Program:
        """The program, with variables in the order of `Variables`."""
        problem, v = self.problem, self.variables
        parts = [_state_places, _state_order, _state_sharing, _state_found, _state_loads]
        if v.until_next:
            parts += [_state_starts, _state_evictions]
        for state in parts:
            state(problem, v, v.builder.row)
        return v.builder.build()

    def decode(self, x: Ints) -> Plan:
        """Return the first node, the start and the cores of each job."""
        v, x = self.variables, np.asarray(x)
        held = x[v.h].reshape(v.jobs, v.nodes, v.cores) != 0
        on = x[v.x].reshape(v.jobs, v.nodes) != 0
        node = np.where(on.any(axis=1), on.argmax(axis=1), LEFT_OUT)
        placed = node != LEFT_OUT
        start = np.where(placed, x[v.s], 0)
        masks = (held[np.arange(v.jobs), node] << np.arange(v.cores)).sum(axis=1)
        return Plan(node, start, np.where(placed, masks, 0))

    def encode(self, solution: Plan) -> Ints:
        """Return the vector of a plan; a job that is left out starts at the horizon, on no node."""
        problem, v = self.problem, self.variables
        node, start = solution.node, solution.start
        start = np.where(node == LEFT_OUT, problem.horizon, start)
        end, times = start + problem.walltimes, problem.load_times(solution)
        on = np.arange(v.nodes) == node[:, None]
        cores = solution.cores[:, None, None] >> np.arange(v.cores) & 1
        held = (on[..., None] * cores).reshape(v.jobs, v.all_cores)
        early = start[:, None] < problem.available.ravel()
        home, _, _, _, until = problem.resident.T
        is_one: dict[str, Callable[..., Any]] = {
            "before": lambda j, core: held[j, core] and early[j, core],
            "o": lambda i, j: end[i] <= start[j],
            "same": lambda i, j: node[i] == node[j] != LEFT_OUT,
            "first": lambda i, j: start[i] < start[j],
            "between": lambda i, j, k: (
                node[k] == node[i] != LEFT_OUT and end[i] <= start[k] < start[j]
            ),
            "over": lambda entry, k: start[k] >= until[entry],
            "evicts": lambda entry, j, k: (
                node[k] == home[entry] and until[entry] <= start[k] < start[j]
            ),
        }
        x = np.zeros(v.builder.num_variables, dtype=np.int64)
        x[: -len(v) or None] = np.concatenate((held.ravel(), on.ravel(), start, times))
        for (name, *of), number in v.items():
            if name in is_one:
                x[number] = is_one[name](*of)
        ways = dict.fromkeys(v.sharing, 0)
        for one, other in v.pairs:
            if node[one] != node[other] or node[one] == LEFT_OUT:
                x[v["apart", one, other]] = 1
                continue
            i, j = (one, other) if start[one] <= start[other] else (other, one)
            stays = v.until_next and not any(x[[*v.evictors("between", i, j).values()]])
            case = "q" if start[j] <= end[i] else "next" if stays else "gone"
            x[v[case, i, j]] = 1
            ways[j] += case != "gone"
        for entry, job in v.finds:
            if node[job] == home[entry]:
                evictors = [*v.evictors("evicts", entry, job).values()]
                stays = v.may_stay(entry, job) and not any(x[evictors])
                case = "found" if start[job] <= until[entry] else "still" if stays else "late"
                x[v[case, entry, job]] = 1
                ways[job] += case != "late"
        for job in v.sharing:
            x[v["y", job]] = ways[job] == 0
            x[v["z", job]] = times[job] == 0
        return x


class Variables(dict[tuple[Any, ...], int]):
    """Numbers of the variables, in order of addition, with the symbols of the model's page.

    ``h[j][c]``: job j holds core c, numbered over all nodes; ``x[j][n]``: job j is on node n;
    ``s[j]``: start of job j; ``l[j]``: load time of job j. Variables of holes, of pairs of jobs, of
    jobs that share a file, and of files that stay until the next start follow, by their symbol and
    indices.

    `builder`: the program that the variables are added to.
    """

    def __init__(self, problem: DataPlacement, builder: ProgramBuilder) -> None:
        super().__init__()
        self.builder = builder
        self.nodes, self.cores = problem.available.shape
        self.jobs = len(problem.processors)
        self.all_cores = self.nodes * self.cores
        self.pairs = sharing_pairs(problem)
        self.ways = [way for pair in self.pairs for way in (pair, pair[::-1])]
        self.finds = finding_pairs(problem)
        self.until_next = problem.kept == "next" and bool(self.pairs or self.finds)
        entries = 4 * self.all_cores * self.jobs * max(self.jobs - 1, 5) // 2
        entries += (8 * self.nodes + 40) * len(self.pairs) + 30 * len(self.finds)
        if self.until_next:
            entries += 24 * self.jobs * (len(self.pairs) + len(self.finds))
            entries += (4 * self.nodes + 10) * self.jobs * self.jobs
        DataFormulation.check_entries(entries, "interval-search needs none")
        self.latest = latest_start(problem)
        self.sharing = sorted({job for job, _ in self.ways} | {job for _, job in self.finds})
        loads, priorities = problem.loads, problem.priorities
        least = np.where(np.isin(np.arange(self.jobs), self.sharing), 0, loads)
        add, jobs = builder.variables, self.jobs
        self.h = add("h_{}_{}", jobs, self.all_cores).tolist()
        self.x = add("x_{}_{}", jobs, self.nodes).tolist()
        self.s = add("s_{}", jobs, upper=self.latest, objective=priorities).tolist()
        cost = priorities * problem.load_weight
        self.l = add("l_{}", jobs, lower=least, upper=loads, objective=cost).tolist()
        if problem.reserved is not None:
            fits = problem.reserved.ravel() >= problem.walltimes[:, None]
            for job, core in np.argwhere(fits).tolist():
                self._add("before", job, core)
        for pair in self.ordered_pairs():
            self._add("o", *pair)
        for pair in self.pairs:
            for name in ("q", "gone"):
                self._add(name, *pair)
                self._add(name, *pair[::-1])
            self._add("apart", *pair)
        for find in self.finds:
            self._add("found", *find)
            self._add("late", *find)
        for job in self.sharing:
            self._add("y", job)
            self._add("z", job)
        if self.until_next:
            self._add_evictions(problem)

    def _add_evictions(self, problem: DataPlacement) -> None:
        """Add the variables for starts of jobs between two uses of a file."""
        node, _, _, _, until = problem.resident.T.tolist()
        for one, other in self.ordered_pairs():
            if one < other:
                self._add("same", one, other)
            self._add("first", one, other)
        for i, j in self.ways:
            self._add("next", i, j)
            for k in range(self.jobs):
                if k not in (i, j):
                    self._add("between", i, j, k)
        for entry, k in self.entry_pairs():
            self._add("over", entry, k, lower=int(until[entry] == 0))
        self._evicted = {
            entry for entry, _ in self.finds if until[entry] == 0 and problem.started[node[entry]]
        }
        for entry, j in self.finds:
            self._add("still", entry, j, upper=int(entry not in self._evicted))
            for k in range(self.jobs):
                if k != j:
                    self._add("evicts", entry, j, k)

    def _add(self, name: str, *of: int, lower: int = 0, upper: int = 1) -> None:
        text = "_".join((name, *(str(number + 1) for number in of)))
        self[name, *of] = self.builder.variable(text, lower=lower, upper=upper)

    def ordered_pairs(self) -> Iterable[tuple[int, int]]:
        """Return all pairs of two jobs, in both orders."""
        return permutations(range(self.jobs), 2)

    def entry_pairs(self) -> Iterable[tuple[int, int]]:
        """Return all pairs of an entry of `resident` that may be found, and a job."""
        return product(dict.fromkeys(entry for entry, _ in self.finds), range(self.jobs))

    def those(self, names: Sequence[str], *of: int) -> list[int]:
        """Return the variables of several symbols that there are with given indices."""
        return [self[name, *of] for name in names if (name, *of) in self]

    def evictors(self, name: str, *of: int) -> dict[int, int]:
        """Return the variables for a job evicting a file before its next use, by that job.

        These are ``between`` two users of a file; or ``evicts``, a resident file.
        """
        return {k: self[name, *of, k] for k in range(self.jobs) if (name, *of, k) in self}

    def may_stay(self, entry: int, job: int) -> bool:
        """Return whether a job may find a resident file that has no users any more."""
        return ("still", entry, job) in self and entry not in self._evicted


def _state_places(problem: DataPlacement, v: Variables, row: Row) -> None:
    free = problem.available.ravel().tolist()
    until = [] if problem.reserved is None else problem.reserved.ravel().tolist()
    horizon, latest = problem.horizon, v.latest
    for job, (size, walltime) in enumerate(
        zip(problem.processors.tolist(), problem.walltimes.tolist())
    ):
        s, on = v.s[job], v.x[job]
        row(f"once_{job + 1}", (1, on), at_least=int(not problem.partial), at_most=1)
        if problem.partial:
            row(f"left_{job + 1}", (horizon, on), (1, s), at_least=horizon)
            ends = (horizon - latest, on), (1, s)
            row(f"left_not_after_{job + 1}", *ends, at_most=horizon)
        held = np.reshape(v.h[job], (v.nodes, v.cores))
        cores = (1, held), (-size, np.reshape(on, (-1, 1)))
        v.builder.rows(f"cores_{job + 1}_{{}}", *cores, equal=0)
        for core, h in enumerate(v.h[job]):
            name = f"{job + 1}_{core + 1}"
            terms = [(1, s), (-free[core], h)]
            if ("before", job, core) in v:
                before = v["before", job, core]
                row(f"hole_{name}", (1, before), (-1, h), at_most=0)
                slack = max(latest + walltime - until[core], 0)
                row(f"ends_{name}", (1, s), (slack, before), at_most=latest)
                terms.append((free[core], before))
            if free[core] > 0:
                row(f"free_{name}", *terms, at_least=0)


def _state_order(problem: DataPlacement, v: Variables, row: Row) -> None:
    walltimes = problem.walltimes.tolist()
    for one, other in v.ordered_pairs():
        order, pair = v["o", one, other], f"{one + 1}_{other + 1}"
        after = (1, v.s[other]), (-1, v.s[one]), (-(v.latest + walltimes[one]), order)
        row(f"order_{pair}", *after, at_least=-v.latest)
        if one < other:
            either = (-1, order), (-1, v["o", other, one])
            for core, (here, there) in enumerate(zip(v.h[one], v.h[other]), start=1):
                row(f"apart_{pair}_{core}", (1, here), (1, there), *either, at_most=1)


def _state_sharing(problem: DataPlacement, v: Variables, row: Row) -> None:
    walltimes, latest = problem.walltimes.tolist(), v.latest
    for one, other in v.pairs:
        apart, pair = v["apart", one, other], f"{one + 1}_{other + 1}"
        both = v.those(KEEPS, one, other) + v.those(KEEPS, other, one)
        gone = [v["gone", one, other], v["gone", other, one]]
        row(f"case_{pair}", (1, both), (1, gone), (1, apart), equal=1)
        for node, (here, there) in enumerate(zip(v.x[one], v.x[other]), start=1):
            together = (1, both), (1, here), (-1, there)
            row(f"together_{pair}_{node}", *together, at_most=1)
            on_one = (1, here), (1, there), (1, apart)
            row(f"on_one_{pair}_{node}", *on_one, at_most=2)
        if problem.partial:
            row(f"there_{pair}", (1, both), (-1, v.x[one]), at_most=0)
        for i, j in ((one, other), (other, one)):
            tie = 0 if i < j else 1
            (q, *left), name = v.those(KEEPS, i, j), f"{i + 1}_{j + 1}"
            after = (1, v.s[j]), (-1, v.s[i])
            row(f"begins_{name}", *after, (-(latest + tie), q), at_least=-latest)
            row(f"stays_{name}", *after, (latest - walltimes[i], q), at_most=latest)
            late = -(latest + walltimes[i] + 1), [v["gone", i, j], *left]
            row(f"gone_{name}", *after, late, at_least=-latest)


def _state_found(problem: DataPlacement, v: Variables, row: Row) -> None:
    node, _, _, loaded, until = problem.resident.T.tolist()
    for entry, job in v.finds:
        ways, late = v.those(KEEPS_RESIDENT, entry, job), v["late", entry, job]
        found, *left = ways
        on, s, name = v.x[job][node[entry]], v.s[job], f"{entry + 1}_{job + 1}"
        last = min(until[entry], v.latest)
        row(f"finds_{name}", (1, ways), (-1, on), at_most=0)
        row(f"finds_or_late_{name}", (1, [*ways, late]), (-1, on), at_least=0)
        row(f"stays_file_{name}", (1, s), (v.latest - last, found), at_most=v.latest)
        row(f"late_{name}", (1, s), (-(last + 1), [late, *left]), at_least=0)
        most, ends = v.latest + int(problem.loads[job]), ((1, v.l[job]), (1, s))
        row(f"wait_file_{name}", *ends, (-loaded[entry], ways), at_least=0)
        no_more = (most - loaded[entry], ways), (-most, v["z", job])
        row(f"no_more_file_{name}", *ends, *no_more, at_most=most)


def _state_loads(problem: DataPlacement, v: Variables, row: Row) -> None:
    finders: dict[int, list[int]] = {job: [] for job in v.sharing}
    for entry, job in v.finds:
        finders[job] += v.those(KEEPS_RESIDENT, entry, job)
    for i, j in v.ways:
        ways, name = v.those(KEEPS, i, j), f"{i + 1}_{j + 1}"
        finders[j] += ways
        wait = (1, v.l[j]), (1, v.s[j]), (-1, v.l[i]), (-1, v.s[i])
        most = v.latest + int(problem.loads[j])
        row(f"wait_{name}", *wait, (-most, ways), at_least=-most)
        row(f"no_more_{name}", *wait, (most, ways), (-most, v["z", j]), at_most=most)
    for job, found in finders.items():
        load, y, z, seconds = v.l[job], v["y", job], v["z", job], int(problem.loads[job])
        row(f"finds_{job + 1}", (1, found), (1, y), at_least=1)
        for way in found:
            name = f"loads_not_{v.builder.variable_name(way)}_{job + 1}"
            row(name, (1, way), (1, y), at_most=1)
        row(f"loads_{job + 1}", (1, load), (-seconds, y), at_least=0)
        row(f"complete_{job + 1}", (1, load), (seconds, z), at_most=seconds)


def _state_starts(problem: DataPlacement, v: Variables, row: Row) -> None:
    """Add the rows for jobs on the same node and for the order of starts and ends."""
    latest, walltimes = v.latest, problem.walltimes.tolist()
    for one, other in v.ordered_pairs():
        name, after = f"{one + 1}_{other + 1}", ((1, v.s[other]), (-1, v.s[one]))
        first, order = v["first", one, other], v["o", one, other]
        row(f"first_{name}", *after, (-(latest + 1), first), at_least=-latest)
        row(f"not_first_{name}", *after, (-latest, first), at_most=0)
        slack = latest - walltimes[one] + 1
        row(f"no_order_{name}", *after, (-slack, order), at_most=walltimes[one] - 1)
        if one < other:
            same = v["same", one, other]
            row(f"same_{name}", (1, same), (-1, v.x[one]), at_most=0)
            for node, (here, there) in enumerate(zip(v.x[one], v.x[other]), start=1):
                terms = (1, here), (1, there), (-1, same)
                row(f"same_{name}_{node}", *terms, at_most=1)
                terms = (1, here), (-1, there), (1, same)
                row(f"not_same_{name}_{node}", *terms, at_most=1)
    until = problem.resident[:, 4].tolist()
    for entry, job in v.entry_pairs():
        over, s = v["over", entry, job], v.s[job]
        name, end = f"{entry + 1}_{job + 1}", until[entry]
        row(f"over_{name}", (1, s), (-end, over), at_least=0)
        slack = max(latest - end + 1, 0)
        row(f"not_over_{name}", (1, s), (-slack, over), at_most=end - 1)


def _state_evictions(problem: DataPlacement, v: Variables, row: Row) -> None:
    """Add the rows by which a file stays unless a job starts on the node in between."""
    for i, j in v.ways:
        name, evictors = f"{i + 1}_{j + 1}", v.evictors("between", i, j)
        for k, between in evictors.items():
            reasons = [v["same", min(i, k), max(i, k)], v["o", i, k], v["first", k, j]]
            _state_all(row, f"between_{name}_{k + 1}", between, reasons)
        _state_eviction(row, name, v["next", i, j], v["gone", i, j], evictors)
    for entry, j in v.finds:
        node, name = int(problem.resident[entry, 0]), f"file_{entry + 1}_{j + 1}"
        evictors = v.evictors("evicts", entry, j)
        for k, evicts in evictors.items():
            reasons = [v.x[k][node], v["over", entry, k], v["first", k, j]]
            _state_all(row, f"evicts_{name}_{k + 1}", evicts, reasons)
        if v.may_stay(entry, j):
            _state_eviction(row, name, v["still", entry, j], v["late", entry, j], evictors)


def _state_all(row: Row, name: str, both: int, reasons: list[int]) -> None:
    """Add the rows that make one variable the conjunction of others."""
    row(name, (1, reasons), (-1, both), at_most=len(reasons) - 1)
    for number, reason in enumerate(reasons, start=1):
        row(f"{name}_{number}", (1, both), (-1, reason), at_most=0)


def _state_eviction(
    row: Row, name: str, found: int, gone: int, evictors: Mapping[int, int]
) -> None:
    """Add the rows by which a file without users is found unless some job evicts the file."""
    row(f"evicted_{name}", (1, gone), (-1, [*evictors.values()]), at_most=0)
    for k, evicts in evictors.items():
        row(f"still_{name}_{k + 1}", (1, found), (1, evicts), at_most=1)
