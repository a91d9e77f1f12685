"""The decisions of locality-aware scheduling, compiled; the planning is left open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from optsched.arrays import Flags, Floats, Ints
from optsched.by_reference import Record, by_reference, record
from optsched.compiled import kernel
from optsched.machines.cluster import Cluster, Cores
from optsched.machines.matrix import runs_of
from optsched.machines.texts import Texts, interval_text
from optsched.models.data_placement import DataPlacement
from optsched.models.data_placement._check import (
    PROCESSORS,
    WALLTIME,
    Arrays,
    is_sound,
    load_times,
    weighed,
)
from optsched.models.fields import LARGEST_FIELD
from optsched.simulator import _core
from optsched.simulator._core import News, tell, zeroed
from optsched.simulator.compiled_decisions import CompiledDecisions, CompiledRun
from optsched.simulator.problem_solver import ProblemSolver
from optsched.solvers.data_placement._nodes import update_widest
from optsched.solvers.data_placement._plan import Options, plan
from optsched.solvers.data_placement.rules import is_published
from optsched.solvers.result import Status

NOWHERE = -1
NOBODY = -1

COUNTS = record("waiting added planned running opened plans", "next_start wakes_at")
"""Jobs in `State.waiting`, `State.added` and `State.planned`, running jobs, whether decisions have
begun, what is to be planned; earliest start of the planned jobs, last timer."""

NOTHING, SUBMITTED, ALL = range(3)
"""Values of ``counts.plans``: the added jobs, beside the plan of the others; all jobs."""


class Rule(NamedTuple):
    """The settings of the policy."""

    backfills: bool  # in holes
    at_every_event: bool
    throttle: float
    opens_at: float


@by_reference
class State(NamedTuple):
    """What the policy knows: queue, plan, and cores of the nodes as bit masks."""

    jobs: Ints  # processors, walltime, file and load time of each job
    estimated_end: Floats  # of the core
    ran_before: Ints  # jobs that run at the first decision
    waiting: Ints  # in the order of planning
    added: Ints  # to be added to the plan
    planned: Ints  # in the order of planning
    due: Ints  # scratch
    start: Floats  # planned, of each job
    node: Ints
    cores: Ints
    begun: Flags
    free: Ints  # of each node
    holder: Ints  # of each core, shape (nodes, cores)
    available: Floats  # from which each core is free, if running jobs end at their limits
    reserved: Floats  # until which a core is free, if free now and reserved for later; else 0
    widest: Ints  # cores and node of the widest hole, as the authors' program tracks it
    plan: Ints  # node, start and cores of each job of the queue
    counts: Record


def new_state(jobs: Ints, estimated_end: Floats, ran_before: Ints, shape: tuple[int, int]) -> State:
    """Return the state before the first event, of nodes and cores of a shape."""
    count, (nodes, width) = len(jobs), shape
    return zeroed(
        State,
        count,
        jobs=jobs,
        estimated_end=estimated_end,
        ran_before=ran_before,
        node=np.full(count, NOWHERE),
        free=np.full(nodes, (1 << width) - 1),
        holder=np.full(shape, NOBODY),
        available=np.full(shape, -np.inf),
        reserved=np.zeros(shape),
        widest=np.zeros(2, dtype=np.int64),
        plan=np.zeros((3, count), dtype=np.int64),
        counts=np.array([(0, 0, 0, 0, 0, NOTHING, np.inf, np.inf)], dtype=COUNTS),
    )


@kernel(allocates=False)
def hold(state: State, job: int, holder: int) -> None:
    """Let a job have its cores, or nobody."""
    node = state.node[job]
    for core in range(state.holder.shape[1]):
        if state.cores[job] >> core & 1:
            state.holder[node, core] = holder


@kernel(allocates=False)
def hear(state: State, news: News) -> None:
    """Free the cores of ended jobs, and queue the submitted jobs."""
    counts, ended = state.counts[0], news.counts[_core.N_ENDED]
    for at in range(ended):
        job = news.ended[at]
        state.free[state.node[job]] |= state.cores[job]
        hold(state, job, NOBODY)
    counts.running -= ended
    for at in range(news.counts[_core.N_SUBMITTED]):
        if ended > 0:
            state.waiting[counts.waiting] = news.submitted[at]
            counts.waiting += 1
        else:
            state.added[counts.added] = news.submitted[at]
            counts.added += 1


@kernel(allocates=False)
def open_history(state: State) -> None:
    """Let the jobs that ran before the first decision be the first of the waiting ones."""
    counts, left = state.counts[0], 0
    counts.opened = 1
    for job in state.ran_before:
        state.waiting[counts.waiting] = job
        counts.waiting += 1
    for entry in range(counts.added):
        job = state.added[entry]
        state.added[left] = job
        left += state.node[job] == NOWHERE
    counts.added = left


@kernel(allocates=False)
def add_planned(state: State, job: int) -> None:
    """Add a job to the planned ones."""
    state.planned[state.counts[0].planned] = job
    state.counts[0].planned += 1
    state.counts[0].next_start = min(state.counts[0].next_start, state.start[job])


@kernel(allocates=False)
def start_due(state: State, news: News) -> None:
    """Start the jobs whose planned start has come, in planned order, if their cores are free."""
    counts, planned, due = state.counts[0], state.planned, state.due
    if news.now[0] < state.counts[0].next_start:
        return
    last, late = counts.planned, 0
    counts.planned = 0
    state.counts[0].next_start = np.inf
    for entry in range(last):
        job = planned[entry]
        if state.start[job] <= news.now[0]:
            due[late] = job
            late += 1
        else:
            add_planned(state, job)
    for entry in range(late):
        job = due[entry]
        node, cores = state.node[job], state.cores[job]
        if cores & ~state.free[node]:  # an earlier job started late, as a decision was charged
            add_planned(state, job)
            continue
        state.free[node] &= ~cores
        hold(state, job, job)
        state.begun[job] = True
        counts.running += 1
        tell(news, _core.START, job, 0.0)
    left = 0
    for entry in range(counts.waiting):
        job = state.waiting[entry]
        state.waiting[left] = job
        left += not state.begun[job]
    counts.waiting = left


@kernel(allocates=False)
def take_added(state: State) -> None:
    """Append the added jobs to the waiting ones."""
    counts = state.counts[0]
    for entry in range(counts.added):
        state.waiting[counts.waiting + entry] = state.added[entry]
    counts.waiting += counts.added
    counts.added = 0


@kernel(allocates=False)
def what_to_plan(state: State, rule: Rule, news: News) -> int:
    """Return whether to replan all waiting jobs, or to add the submitted jobs to the plan."""
    counts, since = state.counts[0], news.now[0] - rule.opens_at
    if rule.throttle > 0.0 and (since == 0.0 or since % rule.throttle != 0.0):
        return NOTHING
    # if no job runs, no end would cause a replan
    if counts.added > 0 and (rule.at_every_event or counts.running == 0):
        take_added(state)
        return ALL
    if counts.waiting > 0 and news.counts[_core.N_ENDED] > 0:
        return ALL
    return SUBMITTED if news.counts[_core.N_SUBMITTED] > 0 else NOTHING


@kernel(allocates=False)
def forget_plans(state: State) -> None:
    """Drop all plans, so that only running jobs hold cores."""
    available, reserved, holder = state.available, state.reserved, state.holder
    state.widest[0] = state.counts[0].planned = 0
    state.counts[0].next_start = np.inf
    for node in range(holder.shape[0]):
        for core in range(holder.shape[1]):
            job = holder[node, core]
            available[node, core] = -np.inf if job == NOBODY else state.estimated_end[job]
            reserved[node, core] = 0.0


@kernel(allocates=False)
def state_seconds(times: Floats, now: float, seconds: Ints) -> None:
    """State times as whole seconds from now, at least 0; arrays of shape (nodes, cores)."""
    for node in range(times.shape[0]):
        for core in range(times.shape[1]):
            seconds[node, core] = np.ceil(max(times[node, core] - now, 0.0))


@kernel(allocates=False)
def state_problem(state: State, rule: Rule, arrays: Arrays, now: float) -> int:
    """State the planning of the queue on the cores that are not planned yet; return its length."""
    queue, count, jobs, rows = state.added, state.counts[0].added, state.jobs, arrays.jobs
    if state.counts[0].plans == ALL:
        forget_plans(state)
        queue, count = state.waiting, state.counts[0].waiting
    for row in range(count):
        for column in range(4):
            rows[row, column] = jobs[queue[row], column]
    state_seconds(state.available, now, arrays.available)
    if rule.backfills:
        state_seconds(state.reserved, now, arrays.reserved)
    for node in range(len(state.free)):
        arrays.occupied[node] = state.free[node] != (1 << state.holder.shape[1]) - 1
    return int(count)


@kernel
def plan_by_rule(state: State, options: Options, latest: int, arrays: Arrays) -> int:
    """Plan the queue by a rule; return the objective of the plan, or -1 for an infeasible one."""
    widest = state.widest.copy()
    placed = plan(arrays, options, widest)
    given = np.empty((3, len(placed)), dtype=np.int64)
    for row in range(len(placed)):
        for column in range(3):
            given[column, row] = state.plan[column, row] = placed[row, column]
    if not is_sound(arrays, latest, given):
        return -1
    ones = np.ones(len(placed), dtype=np.int64)
    return int(weighed(arrays, given, load_times(arrays, given), ones, 1))


@kernel(allocates=False)
def book(state: State, job: int, now: float, start: int) -> None:
    """Book the cores of a job of a plan."""
    begins, available = now + start, state.available[state.node[job]]
    reserved = state.reserved[state.node[job]]
    for core in range(len(available)):
        if not state.cores[job] >> core & 1:
            continue
        if begins < available[core]:  # in a hole, which the job uses up
            reserved[core] = 0.0
            continue
        if start > 0 and available[core] <= now:
            reserved[core] = begins
        available[core] = begins + state.jobs[job, WALLTIME]
    if state.node[job] == state.widest[1]:
        update_widest(state.reserved, state.widest)


@kernel(allocates=False)
def follow_plan(state: State, now: float) -> None:
    """Book the cores of the jobs of the plan, in order, except for jobs without a place."""
    counts, plans_all = state.counts[0], state.counts[0].plans == ALL
    for row in range(counts.waiting if plans_all else counts.added):
        job = state.waiting[row] if plans_all else state.added[row]
        if state.plan[0, row] == NOWHERE:
            continue
        state.node[job], state.cores[job] = state.plan[0, row], state.plan[2, row]
        state.start[job] = now + state.plan[1, row]
        book(state, job, now, state.plan[1, row])
        add_planned(state, job)
    if not plans_all:
        take_added(state)
    counts.plans = NOTHING


@kernel(allocates=False)
def decide(state: State, rule: Rule, news: News) -> int:
    """Start jobs that are due; after `OPEN`, follow `State.plan` first."""
    counts, now = state.counts[0], news.now[0]
    if counts.plans == NOTHING:
        hear(state, news)
        if now < rule.opens_at:
            return _core.DONE
        if not counts.opened:
            open_history(state)
        start_due(state, news)
        counts.plans = what_to_plan(state, rule, news)
        if counts.plans != NOTHING:
            return _core.OPEN
    else:
        follow_plan(state, now)
        start_due(state, news)
    if now < counts.next_start < np.inf and counts.next_start != counts.wakes_at:
        counts.wakes_at = counts.next_start
        tell(news, _core.WAKE, 0, counts.next_start)
    return _core.DONE


class LocalityDecisions(CompiledDecisions):
    """The plan of a run as the decision kernel keeps it."""

    def __init__(self, run: CompiledRun, rule: Rule, history: dict[int, int]) -> None:
        machine, trace, solver = run.machine, run.trace, run.problem_solver
        assert isinstance(machine, Cluster)
        self._run, self._rule, self._memory = run, rule, machine.files
        shape = (machine.nodes, machine.cores)
        unknown = np.full(len(trace), NOWHERE)
        sizes = trace.annotations.get("file_size", np.zeros_like(unknown))
        columns = (
            trace.processors.astype(np.int64),
            np.ceil(trace.requested_time).astype(np.int64),
            trace.annotations.get("file", unknown),
            sizes // machine.bandwidth,
        )
        # the columns of all jobs are checked here, in place of those of every plan
        idle = np.zeros(shape, dtype=np.int64)
        capacity = machine.memory // machine.bandwidth
        DataPlacement(idle, *columns, capacity=capacity)
        jobs, ran_before = np.array(columns).T.copy(), np.array([*history], dtype=np.int64)
        self._state = new_state(jobs, run.core.estimated_end, ran_before, shape)
        for job, node in history.items():
            self._plan_history(job, node % machine.nodes, trace.requested_time[job])
        self.node = self._state.node
        written = (idle, idle.copy(), np.zeros(machine.nodes, dtype=np.bool_), jobs.copy())
        now = self._memory.residents(0.0), self._memory.started(0.0)
        until_next = self._memory.kept == "next"
        arrays = Arrays(*written, *now, until_next, True, capacity)
        self.decide = run.bind(decide, self._state, rule, run.news)
        given = state_problem, self._state, rule, arrays
        self._state_problem = run.bind(*given, numbers=(0.0,))
        self._arrays = Arrays._make(map(read, arrays))
        self._plan_by_rule: Callable[[Arrays], int] | None = None
        self._answered: list[tuple[float, int, int, int]] = []
        chosen = solver.solvers["data-placement"].solver
        if solver.only_solves and is_published(chosen) and chosen.backfill != "conservative":
            options = chosen.options(*shape)
            numbers = (self._arrays,)
            self.answers = True
            self._plan_by_rule = run.bind(
                plan_by_rule, self._state, options, LARGEST_FIELD, numbers=numbers
            )
        self.resources()  # loads the kernels

    def _plan_history(self, job: int, node: int, requested: float) -> None:
        """Plan a job that ran before the first decision on the first free cores of its node."""
        state = self._state
        order = np.argsort(state.available[node], kind="stable")[: state.jobs[job, PROCESSORS]]
        start = max(self._rule.opens_at, state.available[node, order[-1]])
        state.available[node, order] = start + requested
        state.node[job], state.start[job] = node, start
        state.cores[job] = sum(1 << core for core in order.tolist())
        add_planned.plain()(state, job)

    def answer(self, problem_solver: ProblemSolver) -> None:
        """Have the queue planned by the kernel, or pose the problem."""
        now, memory = self._run.news.now.item(), self._memory
        count = self._state_problem(now)
        jobs, resident = self._arrays.jobs[:count], read(memory.residents(now))
        started = read(memory.started(now))
        arrays = self._arrays._replace(jobs=jobs, resident=resident, started=started)
        if self._plan_by_rule is None:
            plan = problem_solver.pose(self._problem(arrays))
            self._state.plan[:, :count] = plan.rows
            return
        objective = self._plan_by_rule(arrays)
        if objective < 0:
            raise RuntimeError("a published rule has made an infeasible plan")
        decision = self._run.core.tally.item(_core.DECISIONS)
        self._answered.append((now, decision, count, objective))

    def _problem(self, arrays: Arrays) -> DataPlacement:
        available, reserved, occupied, jobs = (read(one.copy()) for one in arrays[:4])
        processors, walltimes, files, loads = (read(column.copy()) for column in jobs.T)
        state, backfills = self._state, self._rule.backfills
        queue = state.waiting if state.counts[0].plans == ALL else state.added
        return DataPlacement.trusted(
            available=available,
            processors=processors,
            walltimes=walltimes,
            files=files,
            loads=loads,
            resident=arrays.resident,
            reserved=reserved if reserved.any() else None,
            occupied=occupied,
            priorities=read(np.ones_like(walltimes)),
            load_weight=1,
            capacity=arrays.capacity,
            partial=True,
            noticed=tuple(state.widest.tolist()) if backfills else None,
            kept=self._memory.kept,
            started=arrays.started,
            jobs=tuple(self._run.trace.job_id[queue[: len(jobs)]].tolist()),
        )

    def record(self, problem_solver: ProblemSolver) -> None:
        """Record the problems that the kernel has answered."""
        if not self._answered:
            return
        nodes, cores = self._state.holder.shape
        times, decisions, counts, objectives = zip(*self._answered)
        problem_solver.record(
            "data-placement",
            {
                "time": times,
                "decision": decisions,
                "size": [f"{count}x{nodes}x{cores}" for count in counts],
                "status": [Status.FEASIBLE.value] * len(times),
                "objective": objectives,
                "work": [nodes * count for count in counts],
            },
        )
        self._answered.clear()

    def place(self, job: int, value: float) -> Cores:
        """Return the node and the cores of a job."""
        return Cores(int(self._state.node[job]), int(self._state.cores[job]))

    def resources(self) -> Sequence[str]:
        """Return the cores that each job held, as interval sets."""
        state = self._state
        held = np.where(state.begun, state.cores, 0).astype(np.uint64)
        first, last, runs = runs_of(held[:, np.newaxis])
        runs += np.repeat(state.node * state.holder.shape[1], last - first)[:, np.newaxis]
        return Texts(*interval_text(first, last, runs))


def read(given: Any) -> Any:
    """Return a view of an array through which it can only be read, or what is no array."""
    if isinstance(given, np.ndarray):
        given = given.view()
        given.flags.writeable = False
    return given
