"""The integer program of a data placement, and its vectors.

Variables, in this order: h[j, c], job j holds core c (cores are numbered through all nodes);
x[j, n], it is on node n; s[j], its start; l[j], its load time; then those of holes, of pairs of
jobs, and of jobs that share a file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from optsched.errors import InputError
from optsched.models.data_placement_fields import NO_FILE
from optsched.models.data_placement_plan import LEFT_OUT, Plan
from optsched.models.program import Program
from optsched.models.statement import Statement

if TYPE_CHECKING:
    from optsched.models.data_placement import DataPlacement

Ints = NDArray[np.int64]

MOST_ENTRIES = 1_000_000
"""A larger program is refused: generic solvers are lost long before."""


def latest_start(problem: DataPlacement) -> int:
    """Return a second by which every job starts in some optimal plan.

    Once every core is free and every file complete, a second in which nothing runs could be cut out
    of a plan to its gain; so from then on one job or another always runs.
    """
    resident = problem.resident
    quiet = np.minimum(resident[:, 3], resident[:, 4]).max(initial=0)
    busy = max(int(problem.available.max()), int(quiet), 0)
    return busy + int(problem.walltimes.sum())


def sharing_pairs(problem: DataPlacement) -> list[tuple[int, int]]:
    """Return the pairs of jobs, the one of lower number first, with one file that takes time."""
    loading = np.flatnonzero((problem.files != NO_FILE) & (problem.loads > 0)).tolist()
    files = problem.files.tolist()
    by_file: dict[int, list[int]] = {}
    for job in loading:
        by_file.setdefault(files[job], []).append(job)
    return [
        (one, other)
        for users in by_file.values()
        for place, one in enumerate(users)
        for other in users[place + 1 :]
    ]


def finding_pairs(problem: DataPlacement) -> list[tuple[int, int]]:
    """Return the pairs of an entry of `resident` and a job that may find its file there."""
    return [
        (entry, job)
        for entry, file in enumerate(problem.resident[:, 1].tolist())
        for job in np.flatnonzero((problem.files == file) & (problem.loads > 0)).tolist()
    ]


class _Layout:
    """Where the variables are, and what they are called; symbols as on the model's page."""

    def __init__(self, problem: DataPlacement) -> None:
        self.nodes, self.cores = problem.available.shape
        self.jobs = len(problem.processors)
        self.all_cores = self.nodes * self.cores
        entries = 4 * self.all_cores * self.jobs * max(self.jobs - 1, 5) // 2
        self.pairs = sharing_pairs(problem)
        self.finds = finding_pairs(problem)
        entries += (8 * self.nodes + 40) * len(self.pairs) + 30 * len(self.finds)
        if entries > MOST_ENTRIES:
            raise InputError(
                f"the program would have some {entries} entries, more than {MOST_ENTRIES}; "
                "interval-search needs none"
            )
        self.names: list[str] = []
        self._number: dict[tuple[object, ...], int] = {}
        self.lower: list[int] = []
        self.upper: list[int] = []
        self.latest = latest_start(problem)
        loads = problem.loads.tolist()
        sharing = {job for pair in self.pairs for job in pair} | {job for _, job in self.finds}
        self.sharing = sorted(sharing)
        jobs = range(self.jobs)
        for job in jobs:
            for core in range(self.all_cores):
                self._new("h", job, core)
        for job in jobs:
            for node in range(self.nodes):
                self._new("x", job, node)
        for job in jobs:
            self._new("s", job, upper=self.latest)
        for job in jobs:
            self._new("l", job, lower=0 if job in sharing else loads[job], upper=loads[job])
        if problem.reserved is not None:
            until = problem.reserved.ravel().tolist()
            for job, walltime in enumerate(problem.walltimes.tolist()):
                for core in range(self.all_cores):
                    if until[core] >= walltime:
                        self._new("before", job, core)
        for one in jobs:
            for other in jobs:
                if one != other:
                    self._new("o", one, other)
        for one, other in self.pairs:
            for name, first, second in (
                ("q", one, other),
                ("q", other, one),
                ("gone", one, other),
                ("gone", other, one),
                ("apart", one, other),
            ):
                self._new(name, first, second)
        for entry, job in self.finds:
            self._new("found", entry, job)
            self._new("late", entry, job)
        for job in self.sharing:
            self._new("y", job)
            self._new("z", job)

    def __getitem__(self, key: tuple[object, ...]) -> int:
        return self._number[key]

    def __contains__(self, key: tuple[object, ...]) -> bool:
        return key in self._number

    def __len__(self) -> int:
        return len(self.lower)

    def _new(self, name: str, *of: int, lower: int = 0, upper: int = 1) -> None:
        self._number[(name, *of)] = len(self.lower)
        self.names.append("_".join((name, *(str(number + 1) for number in of))))
        self.lower.append(lower)
        self.upper.append(upper)


def formulate(problem: DataPlacement) -> Program:
    """Return the program of the model's page, equations (8) to (27)."""
    at = _Layout(problem)
    state = Statement()
    _state_places(problem, at, state)
    _state_order(problem, at, state)
    _state_sharing(problem, at, state)
    _state_found(problem, at, state)
    _state_loads(problem, at, state)
    objective = np.zeros(len(at), dtype=np.int64)
    for job, priority in enumerate(problem.priorities.tolist()):
        objective[at["s", job]] = priority
        objective[at["l", job]] = priority * problem.load_weight
    return Program(
        sense="min",
        objective=objective,
        lower=np.array(at.lower, dtype=np.int64),
        upper=np.array(at.upper, dtype=np.int64),
        **state.rows(),
        variable_name=at.names.__getitem__,
        row_name=state.names.__getitem__,
    )


def _state_places(problem: DataPlacement, at: _Layout, state: Statement) -> None:
    free = problem.available.ravel().tolist()
    until = None if problem.reserved is None else problem.reserved.ravel().tolist()
    horizon, latest = problem.horizon, at.latest
    for job, (size, walltime) in enumerate(
        zip(problem.processors.tolist(), problem.walltimes.tolist())
    ):
        s, on = at["s", job], [at["x", job, node] for node in range(at.nodes)]
        state.add(f"once_{job + 1}", dict.fromkeys(on, 1), 1, 0 if problem.partial else 1)
        if problem.partial:
            state.add(f"left_{job + 1}", dict.fromkeys(on, horizon) | {s: 1}, lower=horizon)
            ends = dict.fromkeys(on, horizon - latest) | {s: 1}
            state.add(f"left_not_after_{job + 1}", ends, horizon)
        for node in range(at.nodes):
            cores = range(node * at.cores, (node + 1) * at.cores)
            held = {at["h", job, core]: 1 for core in cores}
            state.add(f"cores_{job + 1}_{node + 1}", held | {on[node]: -size}, 0, 0)
        for core in range(at.all_cores):
            h, name = at["h", job, core], f"{job + 1}_{core + 1}"
            terms = {s: 1, h: -free[core]}
            if until is not None and ("before", job, core) in at:
                before = at["before", job, core]
                state.add(f"hole_{name}", {before: 1, h: -1}, 0)
                slack = latest + walltime - until[core]
                state.add(f"ends_{name}", {s: 1, before: max(slack, 0)}, latest)
                terms[before] = free[core]
            if free[core] > 0:
                state.add(f"free_{name}", terms, lower=0)


def _state_order(problem: DataPlacement, at: _Layout, state: Statement) -> None:
    walltimes = problem.walltimes.tolist()
    for one in range(at.jobs):
        for other in range(at.jobs):
            if one == other:
                continue
            order, pair = at["o", one, other], f"{one + 1}_{other + 1}"
            terms = {at["s", other]: 1, at["s", one]: -1, order: -(at.latest + walltimes[one])}
            state.add(f"order_{pair}", terms, lower=-at.latest)
            if one < other:
                either = {order: -1, at["o", other, one]: -1}
                for core in range(at.all_cores):
                    terms = {at["h", one, core]: 1, at["h", other, core]: 1}
                    state.add(f"apart_{pair}_{core + 1}", terms | either, 1)


def _state_sharing(problem: DataPlacement, at: _Layout, state: Statement) -> None:
    walltimes, latest = problem.walltimes.tolist(), at.latest
    for one, other in at.pairs:
        apart, pair = at["apart", one, other], f"{one + 1}_{other + 1}"
        both = {at["q", one, other]: 1, at["q", other, one]: 1}
        cases = both | {at["gone", one, other]: 1, at["gone", other, one]: 1, apart: 1}
        state.add(f"case_{pair}", cases, 1, 1)
        for node in range(at.nodes):
            here, there = at["x", one, node], at["x", other, node]
            state.add(f"together_{pair}_{node + 1}", both | {here: 1, there: -1}, 1)
            state.add(f"on_one_{pair}_{node + 1}", {here: 1, there: 1, apart: 1}, 2)
        if problem.partial:
            on = {at["x", one, node]: -1 for node in range(at.nodes)}
            state.add(f"there_{pair}", both | on, 0)
        for i, j in ((one, other), (other, one)):
            tie = 0 if i < j else 1
            q, gone, name = at["q", i, j], at["gone", i, j], f"{i + 1}_{j + 1}"
            after = {at["s", j]: 1, at["s", i]: -1}
            state.add(f"begins_{name}", after | {q: -(latest + tie)}, lower=-latest)
            state.add(f"stays_{name}", after | {q: latest - walltimes[i]}, latest)
            state.add(f"gone_{name}", after | {gone: -(latest + walltimes[i] + 1)}, lower=-latest)


def _state_found(problem: DataPlacement, at: _Layout, state: Statement) -> None:
    node, _, _, loaded, until = problem.resident.T.tolist()
    for entry, job in at.finds:
        found, late = at["found", entry, job], at["late", entry, job]
        on, s, name = at["x", job, node[entry]], at["s", job], f"{entry + 1}_{job + 1}"
        last = min(until[entry], at.latest)
        state.add(f"finds_{name}", {found: 1, on: -1}, 0)
        state.add(f"finds_or_late_{name}", {found: 1, late: 1, on: -1}, lower=0)
        state.add(f"stays_file_{name}", {s: 1, found: at.latest - last}, at.latest)
        state.add(f"late_{name}", {s: 1, late: -(last + 1)}, lower=0)
        most, load = at.latest + int(problem.loads[job]), at["l", job]
        state.add(f"wait_file_{name}", {load: 1, s: 1, found: -loaded[entry]}, lower=0)
        terms = {load: 1, s: 1, found: most - loaded[entry], at["z", job]: -most}
        state.add(f"no_more_file_{name}", terms, most)


def _state_loads(problem: DataPlacement, at: _Layout, state: Statement) -> None:
    finders: dict[int, list[int]] = {job: [] for job in at.sharing}
    for entry, job in at.finds:
        finders[job].append(at["found", entry, job])
    for one, other in at.pairs:
        for i, j in ((one, other), (other, one)):
            q, name = at["q", i, j], f"{i + 1}_{j + 1}"
            finders[j].append(q)
            wait = {at["l", j]: 1, at["s", j]: 1, at["l", i]: -1, at["s", i]: -1}
            most = at.latest + int(problem.loads[j])
            state.add(f"wait_{name}", wait | {q: -most}, lower=-most)
            state.add(f"no_more_{name}", wait | {q: most, at["z", j]: -most}, most)
    for job, ways in finders.items():
        load, y, z, seconds = at["l", job], at["y", job], at["z", job], int(problem.loads[job])
        state.add(f"finds_{job + 1}", dict.fromkeys(ways, 1) | {y: 1}, lower=1)
        for way in ways:
            state.add(f"loads_not_{at.names[way]}_{job + 1}", {way: 1, y: 1}, 1)
        state.add(f"loads_{job + 1}", {load: 1, y: -seconds}, lower=0)
        state.add(f"complete_{job + 1}", {load: 1, z: seconds}, seconds)


def plan_of(problem: DataPlacement, x: Ints) -> Plan:
    """Return the plan of a vector; of several nodes the first counts."""
    x = np.asarray(x)
    nodes, cores = problem.available.shape
    jobs, all_cores = len(problem.processors), nodes * cores
    held = x[: jobs * all_cores].reshape(jobs, nodes, cores) != 0
    after = jobs * all_cores
    on = x[after : after + jobs * nodes].reshape(jobs, nodes) != 0
    after += jobs * nodes
    node = np.where(on.any(axis=1), on.argmax(axis=1), LEFT_OUT)
    placed = node != LEFT_OUT
    start = np.where(placed, x[after : after + jobs], 0)
    masks = (held[np.arange(jobs), node] << np.arange(cores)).sum(axis=1)
    return Plan(node, start, np.where(placed, masks, 0))


def vector(problem: DataPlacement, plan: Plan) -> Ints:
    """Return the vector of a plan; the inverse of `plan_of`."""
    at = _Layout(problem)
    x = np.zeros(len(at), dtype=np.int64)
    node, mask = plan.node.tolist(), plan.cores.tolist()
    start = np.where(plan.node == LEFT_OUT, problem.horizon, plan.start).tolist()
    end = (np.array(start, dtype=np.int64) + problem.walltimes).tolist()
    times = problem.load_times(plan).tolist()
    for job in range(at.jobs):
        x[at["s", job]], x[at["l", job]] = start[job], times[job]
        if node[job] == LEFT_OUT:
            continue
        x[at["x", job, node[job]]] = 1
        for core in range(at.cores):
            if mask[job] >> core & 1:
                number = node[job] * at.cores + core
                x[at["h", job, number]] = 1
                if start[job] < problem.available[node[job], core]:
                    x[at["before", job, number]] = 1
    for one in range(at.jobs):
        for other in range(at.jobs):
            if one != other and end[one] <= start[other]:
                x[at["o", one, other]] = 1
    ways = dict.fromkeys(at.sharing, 0)
    for one, other in at.pairs:
        if node[one] != node[other] or node[one] == LEFT_OUT:
            x[at["apart", one, other]] = 1
            continue
        i, j = (one, other) if start[one] <= start[other] else (other, one)
        finds = start[j] <= end[i]
        x[at["q" if finds else "gone", i, j]] = 1
        ways[j] += finds
    for entry, job in at.finds:
        if node[job] == problem.resident[entry, 0]:
            finds = start[job] <= problem.resident[entry, 4]
            x[at["found" if finds else "late", entry, job]] = 1
            ways[job] += finds
    for job in at.sharing:
        x[at["y", job]] = ways[job] == 0
        x[at["z", job]] = times[job] == 0
    return x
