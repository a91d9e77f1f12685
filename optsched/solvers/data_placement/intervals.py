"""Data placement as a CP-SAT model on intervals, with fewer variables than the program.

*Cores of a node are interchangeable* except for the times from which they are free. Core c, free
for good from a_c on, acts like a core with a fixed job from the beginning until a_c. The fixed jobs
start together on one core each. Any jobs that never need more cores than there are can then be
given cores in the order of their starts, like a coloring of an interval graph. So one cumulative
constraint per node suffices. *Holes* have a second cumulative constraint: a job in a hole ends
before the reservation begins, which is the same situation backwards in time. A job may use cores of
both kinds.

*Nodes are interchangeable* if their cores are free at the same times and they have the same files.
No plan needs more such nodes than there are jobs, and the nodes may be used in the order of jobs.

*Jobs are interchangeable* if all of their data agree. Such jobs may start in queue order.

A job finds a resident file that is no longer in use only if no job has started on the node in
between: each other job is on another node, starts before the last use ends, or does not start
before the finder. Each of these reasons is a variable that implies it, shared by pairs of jobs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.arrays import Flags, Ints
from optsched.column_sets import lowest
from optsched.models.data_placement import DataPlacement
from optsched.models.data_placement.fields import LEFT_OUT, NO_FILE, Plan
from optsched.models.data_placement.program import finding_pairs, latest_start, sharing_pairs
from optsched.models.program import Program, ProgramBuilder

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel, IntVar


def lower_bound(problem: DataPlacement) -> int:
    """Return a lower bound of the objective.

    Waiting is bounded by the larger of two bounds. First, each job waits until enough cores of some
    node are free. Second, work in core-seconds is relaxed to a fluid that any free core takes. A
    job that starts at s and runs for w seconds does its work at s + w/2 on average, and the least
    weighted sum of these times has the largest weight per core-second first (Smith's rule).

    Loading is bounded by one load of each file that is not resident anywhere. If a second of
    loading weighs no less than one of waiting, both together are bounded by the time at which a
    node can have the cores and the whole file of the job.

    >>> problem = DataPlacement([[0]], [1, 1], [90, 90], [7, 7], [60, 60])
    >>> lower_bound(problem)
    150
    """
    if not len(problem.processors):
        return 0
    weight, loading = problem.load_weight, _first_loads(problem)
    starts = earliest(problem)
    waiting = max(_fluid_bound(problem), int(problem.priorities @ starts.min(axis=1)))
    if not weight:
        return waiting
    ready = int(problem.priorities @ _first_ready(problem, starts))
    return max(waiting + weight * loading, ready + (weight - 1) * loading)


def earliest(problem: DataPlacement) -> Ints:
    """Return the earliest start of each job on each node in seconds, shape (jobs, nodes)."""
    free = np.maximum(problem.available, 0)
    if problem.reserved is None:
        start = np.sort(free, axis=1)[:, problem.processors - 1].T
    else:
        rows = []
        for size, walltime in zip(problem.processors.tolist(), problem.walltimes.tolist()):
            fits = np.where(problem.reserved >= walltime, 0, free)
            rows.append(np.sort(fits, axis=1)[:, size - 1])
        start = np.array(rows, dtype=np.int64).reshape(-1, len(free))
    return np.minimum(start, problem.horizon) if problem.partial else start


def _fluid_bound(problem: DataPlacement) -> int:
    """Return the least weighted sum of starts in the fluid relaxation, unlimited at the horizon."""
    work = problem.processors * problem.walltimes
    order = np.argsort(-problem.priorities / work, kind="stable")
    times = np.maximum(problem.available, 0).ravel()
    change = np.ones(len(times), dtype=np.int64)
    if problem.reserved is not None:
        holes = problem.reserved[problem.reserved > 0]
        times = np.concatenate((times, np.zeros(len(holes), np.int64), holes))
        change = np.concatenate((change, np.repeat((1, -1), len(holes))))
    end, at = np.unique(times, return_inverse=True)
    rate = np.bincount(at, weights=change).cumsum()
    # capacity in core-seconds, and the integral of time over it, up to each change of the rate
    capacity = np.concatenate(([0.0], np.cumsum(rate[:-1] * np.diff(end))))
    moment = np.concatenate(([0.0], np.cumsum(rate[:-1] * np.diff(end.astype(float) ** 2) / 2)))
    filled = np.concatenate(([0], work[order].cumsum())).astype(float)
    piece = np.searchsorted(capacity, filled, side="right") - 1
    second = end[piece] + (filled - capacity[piece]) / rate[piece]
    over_time = moment[piece] + rate[piece] * (second**2 - end[piece] ** 2.0) / 2
    if problem.partial:
        last = problem.horizon + int(problem.walltimes.min()) / 2
        final = int(np.searchsorted(end, last, side="right")) - 1
        within = capacity[final] + rate[final] * (last - end[final])
        upto = moment[final] + rate[final] * (last**2 - float(end[final]) ** 2) / 2
        over_time = np.where(second > last, upto + (filled - within) * last, over_time)
    middle = np.diff(over_time) / work[order]
    start = float((problem.priorities[order] * (middle - problem.walltimes[order] / 2)).sum())
    slack = 1e-9 * (abs(start) + float(over_time[-1])) + 1e-6  # more than the error of the sums
    return max(0, math.ceil(start - slack))


def _first_loads(problem: DataPlacement) -> int:
    """Return the least weighted load time of one load of each file that is not resident."""
    present = set(problem.resident[:, 1].tolist()) | {NO_FILE}
    least: dict[int, int] = {}
    jobs = zip(problem.files.tolist(), problem.loads.tolist(), problem.priorities.tolist())
    for file, load, priority in jobs:
        if file not in present:
            least[file] = min(least.get(file, load * priority), load * priority)
    return sum(least.values())


def _first_ready(problem: DataPlacement, starts: Ints) -> Ints:
    """Return the least time at which a node can have the cores and the file of each job."""
    # a file that is not resident on a node is there a load after the first start of its jobs
    ready: Ints = starts.min(axis=1)
    node, files, _, loaded, until = problem.resident.T
    for file in np.unique(problem.files[problem.files != NO_FILE]).tolist():
        jobs = problem.files == file
        first = starts[jobs].min(axis=0)
        complete = first + int(problem.loads[jobs][0])
        entries = files == file
        if problem.kept == "users":
            entries &= first[node] <= until
        at = node[entries]
        complete[at] = np.minimum(complete[at], loaded[entries])
        ready[jobs] = np.maximum(starts[jobs], complete).min(axis=1)
    return ready


class ResidentFiles:
    """Constraints of a model on jobs that find a file which is kept until the next start.

    `start` has the start of each job, `on` whether each job is on each node of the model.
    """

    def __init__(
        self,
        model: CpModel,
        problem: DataPlacement,
        start: Sequence[IntVar],
        on: Sequence[Sequence[IntVar]],
    ) -> None:
        self._model = model
        self._problem = problem
        self._walltimes = problem.walltimes.tolist()
        self._start = start
        self._on = on
        self._jobs = range(len(start))
        self._known: dict[tuple[str | int, ...], IntVar] = {}

    def add_user(self, finds: IntVar, i: int, j: int) -> None:
        """Let job j find the file of job i on the same node only until its eviction."""
        model = self._model
        soon = model.new_bool_var("")
        end = self._start[i] + self._walltimes[i]
        model.add(self._start[j] <= end).only_enforce_if(soon)
        for k in self._jobs:
            if k not in (i, j):
                reasons = (
                    self._on_different_nodes(i, k),
                    self._before_end(k, i),
                    self._not_before(k, j),
                )
                model.add_bool_or(soon, *reasons).only_enforce_if(finds)

    def add_entry(self, finds: IntVar, entry: int, job: int, place: int) -> None:
        """Let a job find a file that is resident now only until its eviction."""
        model = self._model
        node, _, _, _, until = self._problem.resident[entry].tolist()
        if until == 0 and self._problem.started[node]:
            model.add(self._start[job] == 0).only_enforce_if(finds)
            return
        soon = model.new_bool_var("")
        model.add(self._start[job] <= until).only_enforce_if(soon)
        for k in self._jobs:
            if k != job:
                early = model.new_bool_var("")
                model.add(self._start[k] < until).only_enforce_if(early)
                reasons = (~self._on[k][place], early, self._not_before(k, job))
                model.add_bool_or(soon, *reasons).only_enforce_if(finds)

    def _on_different_nodes(self, i: int, k: int) -> IntVar:
        """Return a variable that implies that two jobs are on different nodes."""
        one, other = min(i, k), max(i, k)
        if (different := self._known.get(("different nodes", one, other))) is None:
            different = self._new("different nodes", one, other)
            for here, there in zip(self._on[one], self._on[other]):
                self._model.add_bool_or(~here, ~there, ~different)
        return different

    def _before_end(self, k: int, i: int) -> IntVar:
        """Return a variable that implies that job k starts before job i ends."""
        if (before := self._known.get(("before end", k, i))) is None:
            before = self._new("before end", k, i)
            end = self._start[i] + self._walltimes[i]
            self._model.add(self._start[k] < end).only_enforce_if(before)
        return before

    def _not_before(self, k: int, j: int) -> IntVar:
        """Return a variable that implies that job k does not start before job j."""
        if (after := self._known.get(("not before", k, j))) is None:
            after = self._new("not before", k, j)
            self._model.add(self._start[k] >= self._start[j]).only_enforce_if(after)
        return after

    def _new(self, *key: str | int) -> IntVar:
        self._known[key] = self._model.new_bool_var("")
        return self._known[key]


class Intervals:
    """CP-SAT model of a data placement with a bound of the objective, and the translation of plans.

    `hinted`: number of leading variables that determine a plan.
    """

    def __init__(self, problem: DataPlacement, bound: int) -> None:
        from ortools.sat.python import cp_model

        self.problem = problem
        # Model, whose first variables are start, load time and node of each job
        self.model: CpModel = cp_model.CpModel()
        self._jobs = range(len(problem.processors))
        self._latest = latest_start(problem)
        self._groups = alike_nodes(problem)
        self._classes = alike_jobs(problem)
        self._class_of = {job: same[0] for same in self._classes for job in same}
        self._nodes = sorted(
            node for group in self._groups for node in group[: max(1, len(self._jobs))]
        )
        self._place_of = {node: place for place, node in enumerate(self._nodes)}
        self._held = [
            bool(problem.reserved is not None and problem.reserved[node].any())
            for node in self._nodes
        ]
        self._add_starts()
        for place in range(len(self._nodes)):
            self._add_capacity(place)
        self._add_loads()
        self._add_symmetry_breaking()
        if problem.kept == "users":  # otherwise an earlier start may evict a file earlier
            self._add_start_reasons()
        cost = [
            priority * (self._start[job] + problem.load_weight * self._load[job])
            for job, priority in enumerate(problem.priorities.tolist())
        ]
        if cost:
            self.model.add(sum(cost) >= bound)
            self.model.minimize(sum(cost))
        # Variables and objective of the model, without constraints
        self.program = self._objective()

    def _add_starts(self) -> None:
        model, problem = self.model, self.problem
        loads = problem.loads.tolist()
        self._start = [model.new_int_var(0, self._latest, "") for _ in self._jobs]
        self._load = [model.new_int_var(0, loads[job], "") for job in self._jobs]
        self._on = [[model.new_bool_var("") for _ in self._nodes] for _ in self._jobs]
        # number of a job's cores on a node outside of holes
        self._lasting: list[list[Any]] = [
            [model.new_int_var(0, size, "") if held else size for held in self._held]
            for size in problem.processors.tolist()
        ]
        self.hinted = len(model.proto.variables)
        soonest = earliest(problem)[:, self._nodes].tolist()
        for job, on in enumerate(self._on):
            wait: Any = sum(second * here for second, here in zip(soonest[job], on))
            if problem.partial:
                unplaced = model.new_bool_var("")
                model.add_exactly_one(*on, unplaced)
                model.add(self._start[job] == problem.horizon).only_enforce_if(unplaced)
                model.add(self._load[job] == loads[job]).only_enforce_if(unplaced)
                wait += problem.horizon * unplaced
            else:
                model.add_exactly_one(on)
            model.add(self._start[job] >= wait)

    def _add_capacity(self, place: int) -> None:
        model, problem = self.model, self.problem
        node, cores = self._nodes[place], problem.available.shape[1]
        free, counts = np.unique(np.maximum(problem.available[node], 0), return_counts=True)
        walltimes = problem.walltimes.tolist()
        jobs = [
            model.new_optional_fixed_size_interval_var(
                self._start[job], walltimes[job], self._on[job][place], ""
            )
            for job in self._jobs
        ]

        def limit(demands: list[Any], held: Iterable[tuple[int, int, int]], most: int) -> None:
            """Limit the demands of jobs beside cores held from a start for some time."""
            others, counts = [], []
            for begin, length, count in held:
                others.append(model.new_fixed_size_interval_var(begin, length, ""))
                counts.append(count)
            model.add_cumulative([*jobs, *others], [*demands, *counts], most)

        lasting = [of_job[place] for of_job in self._lasting]
        limit(lasting, ((0, t, n) for t, n in zip(free.tolist(), counts.tolist()) if t), cores)
        if not self._held[place]:
            return
        assert problem.reserved is not None
        ends = problem.reserved[node][problem.reserved[node] > 0]
        begins, counts = np.unique(ends, return_counts=True)
        after = self._latest + max(walltimes, default=0) + 1
        in_holes = [size - own for size, own in zip(problem.processors.tolist(), lasting)]
        reserved = zip(begins.tolist(), counts.tolist())
        limit(in_holes, ((t, max(0, after - t), n) for t, n in reserved), len(ends))

    def _add_loads(self) -> None:
        model, problem = self.model, self.problem
        start, load, on = self._start, self._load, self._on
        loads, walltimes = problem.loads.tolist(), problem.walltimes.tolist()
        resident = ResidentFiles(model, problem, start, on) if problem.kept == "next" else None
        ways: list[list[IntVar]] = [[] for _ in self._jobs]
        self._finds: dict[tuple[int, int], IntVar] = {}
        self._found: dict[tuple[int, int], IntVar] = {}
        for one, other in sharing_pairs(problem):
            for i, j in ((one, other), (other, one)):
                if i > j and self._class_of[i] == self._class_of[j]:
                    continue  # interchangeable jobs start in order
                finds = model.new_bool_var("")
                tie = 0 if i < j else 1
                for here, there in zip(on[i], on[j]):
                    model.add_implication(here, there).only_enforce_if(finds)
                    model.add_implication(there, here).only_enforce_if(finds)
                if problem.partial:
                    model.add_bool_or(on[i]).only_enforce_if(finds)
                model.add(start[j] >= start[i] + tie).only_enforce_if(finds)
                if resident is None:
                    model.add(start[j] <= start[i] + walltimes[i]).only_enforce_if(finds)
                else:
                    resident.add_user(finds, i, j)
                model.add(load[j] >= start[i] + load[i] - start[j]).only_enforce_if(finds)
                ways[j].append(finds)
                self._finds[i, j] = finds
        node, _, _, loaded, until = problem.resident.T.tolist()
        for entry, job in finding_pairs(problem):
            if node[entry] not in self._place_of:
                continue
            finds = self._found[entry, job] = model.new_bool_var("")
            model.add_implication(finds, on[job][self._place_of[node[entry]]])
            if resident is None:
                model.add(start[job] <= until[entry]).only_enforce_if(finds)
            else:
                resident.add_entry(finds, entry, job, self._place_of[node[entry]])
            model.add(load[job] >= loaded[entry] - start[job]).only_enforce_if(finds)
            ways[job].append(finds)
        for job in self._jobs:
            alone = model.new_bool_var("")
            model.add_exactly_one(alone, *ways[job])
            model.add(load[job] >= loads[job] * alone)

    def _add_symmetry_breaking(self) -> None:
        for same in self._classes:
            for one, other in pairwise(same):
                self.model.add(self._start[one] <= self._start[other])
        for group in self._groups:
            for before, node in pairwise(group[: len(self._jobs)]):
                for job in self._jobs:
                    earlier = [self._on[i][self._place_of[before]] for i in range(job)]
                    self.model.add_bool_or(*earlier, ~self._on[job][self._place_of[node]])

    def _add_start_reasons(self) -> None:
        """Exclude starts that could be a second earlier at no loss (dominance)."""
        model, problem = self.model, self.problem
        start, on, load = self._start, self._on, self._load
        walltimes = problem.walltimes.tolist()
        reasons: list[list[IntVar]] = [[] for _ in self._jobs]

        def because(job: int, *conditions: Any) -> IntVar:
            reason = model.new_bool_var("")
            for condition in conditions:
                model.add(condition).only_enforce_if(reason)
            reasons[job].append(reason)
            return reason

        for job in self._jobs:
            because(job, start[job] == 0)
            if problem.partial:
                because(job, sum(on[job]) == 0)
            for place, node in enumerate(self._nodes):
                for second in np.unique(problem.available[node]).tolist():
                    if second > 0:
                        because(job, start[job] == second, on[job][place] == 1)
        for i in self._jobs:
            for j in self._jobs:
                if i == j:
                    continue
                together = [here == there for here, there in zip(on[i], on[j])]
                touch = because(j, start[j] == start[i] + walltimes[i], *together)
                if (i, j) in self._finds:
                    finds = self._finds[i, j]
                    reasons[i].append(touch)
                    because(j, finds == 1, start[j] == start[i] + (0 if i < j else 1))
                    if problem.load_weight > 1:
                        because(j, finds == 1, start[j] <= start[i] + load[i])
        if problem.load_weight > 1:
            for (entry, job), found in self._found.items():
                because(job, found == 1, start[job] <= int(problem.resident[entry, 3]))
        for ways in reasons:
            model.add_bool_or(ways)

    def _objective(self) -> Program:
        problem, variables = self.problem, self.model.proto.variables
        jobs = len(self._jobs)
        objective = np.zeros(len(variables), dtype=np.int64)
        objective[:jobs] = problem.priorities
        objective[jobs : 2 * jobs] = problem.priorities * problem.load_weight
        bounds = np.array([list(variable.domain) for variable in variables], dtype=np.int64)
        lower, upper = bounds.reshape(-1, 2).T
        builder = ProgramBuilder("min")
        builder.variables("x_{}", len(variables), lower=lower, upper=upper, objective=objective)
        return builder.build()

    def vector(self, plan: Plan) -> Ints:
        """Return `plan` as a vector, with interchangeable jobs and nodes in canonical order."""
        problem, jobs = self.problem, len(self._jobs)
        plan = self._in_order(plan)
        renamed: dict[int, int] = {}
        for group in self._groups:
            inside = set(group)
            used = dict.fromkeys(node for node in plan.node.tolist() if node in inside)
            renamed |= dict(zip(used, group))
        on = np.zeros((jobs, len(self._nodes)), dtype=np.int64)
        lasting: list[int] = []
        starts = np.where(plan.node == LEFT_OUT, problem.horizon, plan.start)
        for job, node in enumerate(plan.node.tolist()):
            at = LEFT_OUT if node == LEFT_OUT else self._place_of[renamed[node]]
            if at != LEFT_OUT:
                on[job, at] = 1
            for place, held in enumerate(self._held):
                if held:
                    lasting.append(self._lasting_cores(plan, job) if place == at else 0)
        x = np.zeros(self.program.num_variables, dtype=np.int64)
        x[: self.hinted] = np.concatenate((starts, problem.load_times(plan), on.ravel(), lasting))
        return x

    def _in_order(self, plan: Plan) -> Plan:
        """Return the plan with interchangeable jobs in the order of their starts."""
        starts = np.where(plan.node == LEFT_OUT, self.problem.horizon, plan.start)
        source = np.arange(len(starts))
        for same in self._classes:
            source[same] = np.array(same)[np.argsort(starts[same], kind="stable")]
        return Plan(plan.node[source], plan.start[source], plan.cores[source])

    def _lasting_cores(self, plan: Plan, job: int) -> int:
        free = self.problem.available[plan.node[job]] <= plan.start[job]
        return sum(bool(free[core]) for core in cores_of(int(plan.cores[job])))

    def plan(self, x: Ints) -> Plan:
        """Return the plan of a vector, with cores chosen."""
        problem, jobs = self.problem, len(self._jobs)
        start = x[:jobs].copy()
        on = x[2 * jobs : 2 * jobs + jobs * len(self._nodes)].reshape(jobs, len(self._nodes)) != 0
        node = np.full(jobs, LEFT_OUT)
        node[on.any(axis=1)] = np.array(self._nodes)[on.argmax(axis=1)[on.any(axis=1)]]
        start[node == LEFT_OUT] = 0
        lasting = problem.processors.copy()
        column = 2 * jobs + on.size
        for job in self._jobs:
            for place, held in enumerate(self._held):
                if held:
                    if on[job, place]:
                        lasting[job] = x[column]
                    column += 1
        cores = np.zeros(jobs, dtype=np.int64)
        for number in np.unique(node[node != LEFT_OUT]).tolist():
            there = np.flatnonzero(node == number)
            for job, mask in cores_for(problem, number, there, start, lasting).items():
                cores[job] = mask
        return Plan(node, start, cores)


def alike_jobs(problem: DataPlacement) -> Sequence[list[int]]:
    """Return the classes of interchangeable jobs, in order."""
    asked = np.array([problem.processors, problem.walltimes, problem.files, problem.priorities])
    classes: dict[tuple[int, ...], list[int]] = {}
    for job, key in enumerate(asked.T.tolist()):
        classes.setdefault(tuple(key), []).append(job)
    return list(classes.values())


def alike_nodes(problem: DataPlacement) -> Sequence[list[int]]:
    """Return the groups of interchangeable nodes, in order."""
    files = set(problem.files.tolist())
    entries: dict[int, list[tuple[int, ...]]] = {}
    for node, *entry in problem.resident.tolist():
        if entry[0] in files:
            entries.setdefault(node, []).append(tuple(entry))
    groups: dict[Any, list[int]] = {}
    for node, free in enumerate(np.maximum(problem.available, 0).tolist()):
        until = [0] * len(free) if problem.reserved is None else problem.reserved[node].tolist()
        there = tuple(sorted(entries.get(node, [])))
        key = tuple(sorted(zip(free, until))), there, bool(there and problem.started[node])
        groups.setdefault(key, []).append(node)
    return list(groups.values())


def cores_for(
    problem: DataPlacement, node: int, jobs: Ints, start: Ints, lasting: Ints
) -> dict[int, int]:
    """Return bit masks of the cores of jobs on a node that never need more than there are.

    `jobs` are the numbers of the jobs there; `start` in seconds, and `lasting`, the number of cores
    outside of holes, are those of all jobs of the problem.
    """
    masks = dict.fromkeys(jobs.tolist(), 0)
    end = start + problem.walltimes
    free = np.maximum(problem.available[node], 0)
    for job in jobs[np.argsort(start[jobs], kind="stable")].tolist():
        masks[job] = lowest_cores(free <= start[job], int(lasting[job]))
        free[cores_of(masks[job])] = end[job]
    if problem.reserved is not None:
        until = problem.reserved[node].copy()
        for job in jobs[np.argsort(-end[jobs], kind="stable")].tolist():
            mask = lowest_cores(until >= end[job], int(problem.processors[job] - lasting[job]))
            until[cores_of(mask)] = start[job]
            masks[job] |= mask
    return masks


def lowest_cores(free: Flags, count: int) -> int:
    """Return a bit mask of the first cores that are free."""
    return lowest(sum(1 << core for core in np.flatnonzero(free).tolist()), count)


def cores_of(mask: int) -> list[int]:
    """Return the cores of a bit mask."""
    return [core for core in range(mask.bit_length()) if mask >> core & 1]
