"""Simulation of a scenario: `simulate`, its steps, and the invariants that ``--check`` checks."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec

import numpy as np
from numpy.typing import NDArray

from optsched import registry
from optsched.compilation import clock
from optsched.documentation import section
from optsched.errors import InputError, brief
from optsched.machines.machine import Machine, read_machine
from optsched.numbers import LARGEST
from optsched.schedule import State
from optsched.simulator._core import DUE
from optsched.simulator.engine import Engine, EventOrder
from optsched.simulator.policy import Policy
from optsched.simulator.problem_solver import ProblemSolver, Ties, choose_solvers
from optsched.simulator.run import Run
from optsched.simulator.scenario import BUDGET, Scenario, check_use, configure, describe
from optsched.simulator.system import Journal
from optsched.simulator.user_code import execution_report, explaining, policy_report
from optsched.solvers.solving import as_budget
from optsched.traces.cleaning import numbers_in
from optsched.traces.reading import read_trace
from optsched.traces.tables import is_frame, trace_from_frame
from optsched.traces.trace import Trace
from optsched.traces.transformations import shaken, stretched, submitted
from optsched.workloads.spec_file import generate_workload

if TYPE_CHECKING:
    import pandas as pd


def run_scenario(scenario: Scenario) -> Run:
    """Run a trace on a machine under a policy.

    Returns
    -------
    Run
        Schedule, metrics, and the config that repeats the run.

    Raises
    ------
    InputError
        If a name, a file, a setting or a combination of these cannot be used.
    """
    policy, execution = configure(scenario.policy, scenario.execution, scenario.settings or {})
    began = clock()
    source = prepared(scenario)
    scenario, trace, measured = _jobs_to_run(scenario, source)
    read_seconds = clock() - began
    machine = _machine(scenario, trace, policy)
    scenario = replace(scenario, large_from=_large_from(scenario, machine, policy))
    began = clock()
    problem_solver = _problem_solver(scenario, trace, machine, policy)
    prepare_seconds = clock() - began
    config = describe(scenario, source, trace, machine, policy, execution, problem_solver)
    journal = Journal() if scenario.journal else None
    began = clock()
    checker = InvariantChecker() if scenario.check else None
    engine = Engine(
        trace,
        machine,
        policy,
        problem_solver,
        execution,
        order=EventOrder(scenario.event_order),
        journal=journal,
        observe=None if checker is None else checker.check,
        progress=scenario.progress,
        compiled_from=scenario.compiled_from,
    )
    with explaining(policy, execution, engine.system):
        engine.prepare()
        prepared_seconds = clock() - began
        prepare_seconds += prepared_seconds
        began += prepared_seconds
        engine.run()
    with explaining(policy, None):
        figures, notes = policy_report(policy, engine.system)
    if checker is not None:
        checker.check_end(engine)
    schedule = engine.schedule()
    seconds = clock() - began
    with explaining(policy, execution):
        report = None if execution is None else execution_report(execution, trace, schedule)
        if report is not None and execution is not None and measured is not None:
            of_measured = execution_report(execution, trace, schedule.only(measured))
            report = report._replace(figures=of_measured.figures)
    return Run(
        config=config,
        trace=trace,
        machine=machine,
        schedule=schedule,
        problems=problem_solver.problems,
        fallbacks=problem_solver.fallbacks,
        execution_report=report,
        policy_figures=figures,
        notes=(
            *config.get("ignored", ()),
            *machine.notes,
            *engine.notes,
            *notes,
            *(() if report is None else report.notes),
        ),
        timing={
            "read_seconds": read_seconds,
            "prepare_seconds": prepare_seconds,
            "simulation_seconds": seconds,
            "solver_seconds": problem_solver.solver_seconds,
            "jobs_per_second": len(trace) / seconds,
        },
        compared=problem_solver.compared,
        journal=journal,
        measured=measured,
    )


Arguments = ParamSpec("Arguments")

LIMITS = tuple(option.name for option in BUDGET)
"""Arguments of `simulate` in place of a budget."""


def _from_fields(scenario: Callable[Arguments, Scenario]) -> Callable[Arguments, Run]:
    """Return `run_scenario` as a function of the fields of a scenario, and of limits."""

    def simulate(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Run:
        given = dict(kwargs)
        limits = [given.pop(name, None) for name in LIMITS]
        if limits != [None, None]:
            given["budget"] = as_budget(given.get("budget"), *limits)
        return run_scenario(scenario(*args, **given))  # type: ignore[arg-type]

    signature = inspect.signature(scenario)
    limits = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation="float | None"
        )
        for name in LIMITS
    ]
    simulate.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*signature.parameters.values(), *limits], return_annotation="Run"
    )
    simulate.__qualname__ = "simulate"
    if run_scenario.__doc__ is not None:
        summary, rest = inspect.cleandoc(run_scenario.__doc__).split("\n\n", 1)
        simulate.__doc__ = f"{summary}\n\n{section(scenario, 'Parameters')}\n\n{rest}"
    return simulate


simulate = _from_fields(Scenario)


def prepare_trace(
    trace: Trace | str | Path | pd.DataFrame, unknown_negative: bool = False
) -> Trace:
    """Return a cleaned trace from a trace, a file, a name or a DataFrame.

    In a file, negative times may count as unknown, as in `optsched.read_trace`.
    """
    if is_frame(trace):
        trace = trace_from_frame(trace)
    if isinstance(trace, str | Path):
        trace = read_trace(trace, unknown_negative=unknown_negative)
    elif not isinstance(trace, Trace):
        expected = "expected a trace, a file, a name or a DataFrame"
        raise InputError(f"{brief(trace)}; {expected}", field="trace")
    elif trace.cleaning is None:
        from optsched.traces.cleaning import clean

        trace = clean(trace)
    if len(trace) == 0:
        raise InputError(f"trace {trace.name!r} has no job to run")
    _check_times(trace)
    return trace


def prepared(scenario: Scenario) -> Trace:
    """Return the cleaned trace of a scenario, or the one that its workload model generates."""
    if scenario.workload is None or scenario.trace is not None:
        assert scenario.trace is not None
        return prepare_trace(scenario.trace, scenario.unknown_negative)
    assert scenario.span is not None
    jobs, seed = scenario.span[1], scenario.workload_seed or 0
    assert isinstance(jobs, int)
    return prepare_trace(generate_workload(scenario.workload, jobs=jobs, seed=seed))


def _jobs_to_run(
    scenario: Scenario, trace: Trace
) -> tuple[Scenario, Trace, NDArray[np.bool_] | None]:
    """Return the scenario with numbers of jobs, the jobs that run, and which are measured."""
    if scenario.jobs is not None:
        first, last = numbers_in(scenario.jobs, trace)
        trace, scenario = trace.jobs(first, last), replace(scenario, jobs=(first, last))
    measured = None
    if scenario.measure is not None:
        first, last = numbers_in(scenario.measure, trace, "measure")
        scenario = replace(scenario, measure=(first, last))
        measured = np.zeros(len(trace), dtype=np.bool_)
        measured[first - 1 : last] = True
    if scenario.load is not None:
        trace, _ = submitted(trace, stretched(trace, scenario.load))
    if scenario.shake is not None:
        trace, rows = submitted(trace, shaken(trace, scenario.shake, scenario.shake_seed or 0))
        measured = None if measured is None else measured[rows]
    _check_times(trace)
    return scenario, trace, measured


def _check_times(trace: Trace) -> None:
    """Refuse times that may be rounded."""
    # latest possible end: one job after the other, then the longest walltime
    seconds = (trace.submit.max(), trace.runtime.sum(dtype=float), trace.requested_time.max())
    if sum(map(float, seconds)) > LARGEST:
        raise InputError(
            "the times add up to more than 2^53 s, and would be rounded", file=trace.path
        )


def _machine(scenario: Scenario, trace: Trace, policy: Policy) -> Machine:
    """Return the empty machine, after checking that `policy` runs on it."""
    stated = scenario.machine
    machine = read_machine(stated if stated is not None else _stated_machine(trace, policy))
    if policy.machines.isdisjoint(machine.kinds()):
        kinds = ", ".join(sorted(policy.machines))
        raise InputError(f"policy {policy.name!r} runs on {kinds}, not on {machine.spec}")
    return machine


def _stated_machine(trace: Trace, policy: Policy) -> str:
    kind = "nodes" if "nodes" in policy.machines else min(policy.machines)
    usage = registry.machines[kind].usage
    if usage != f"{kind}:NUMBER":
        raise InputError(f"policy {policy.name!r} runs on {usage}; name a machine with --machine")
    if trace.header.max_procs is None:
        nodes = trace.header.max_nodes or 0
        example = f"{kind}:{nodes} (it states {nodes:,} nodes)" if nodes >= 1 else f"{kind}:NUMBER"
        unread = trace.header.values("MaxProcs")
        says = (
            f"states MaxProcs: {unread[0]}, which is no number of processors"
            if unread
            else "does not say how many processors the machine has (MaxProcs)"
        )
        raise InputError(
            f"the header of trace {trace.name!r} {says}; name a machine, --machine {example} for "
            "instance"
        )
    return f"{kind}:{trace.header.max_procs}"


def _large_from(scenario: Scenario, machine: Machine, policy: Policy) -> int | None:
    """Return the number of processors from which a job is large, None for the largest tenth."""
    stated = scenario.large_from
    if stated is None:
        own = policy.large_from()
        return own if own and own <= machine.size else None
    if stated > machine.size:
        expected = f"expected at most the {machine.size:,} processors of the machine"
        raise InputError(f"{stated:,}; {expected}", field="large from")
    return stated


def _problem_solver(
    scenario: Scenario, trace: Trace, machine: Machine, policy: Policy
) -> ProblemSolver:
    """Return the problem solver of a run, without solvers for a policy that poses no problems."""
    check_use(policy, scenario.for_problems())
    return ProblemSolver(
        choose_solvers(
            policy.posed(), scenario.solver, budget=as_budget(scenario.budget), seed=scenario.seed
        ),
        charge=scenario.charge_decisions,
        ties=Ties(scenario.ties),
        capture=scenario.capture,
        capture_every=scenario.capture_every,
        origin={"trace": trace.name, "machine": machine.spec, "policy": policy.name},
    )


ROUNDING = 1e-6
"""Relative rounding error allowed in the conservation of work."""

STEPS = 64
"""Least differences of times, at the end of a job, that its work may be off by in addition."""


class InvariantError(AssertionError):
    """The simulator, a policy or an execution model broke an invariant: a bug, never bad input."""


class InvariantChecker:
    """Checks that nothing is held twice, no work or job is lost, and promises hold.

    A job with a reservation starts by the time that `Policy.promised` states, at the first tick
    from then on if the policy has ticks. All promises of the moment are void when a job runs beyond
    its estimated end or a decision is charged for: then others start later than the policy assumes.
    """

    def __init__(self) -> None:
        self.checks = 0
        self._last = -math.inf
        self._next_end = math.inf  # the first estimated end of the jobs that ran at the last check
        self._promised: dict[int, float] = {}  # at the last check
        self._void: set[int] = set()

    def check(self, engine: Engine) -> None:
        """Check the state of `engine` between two events; one error lists what is broken."""
        self.checks += 1
        system = engine.system
        found = system.machine.violations(engine.held)
        if system.now < self._last:
            found.append(f"time runs backwards, from {self._last:.15g} to {system.now:.15g}")
        self._last = system.now
        if sorted(system.running) != sorted(engine.held):
            found.append("the running jobs are not those that hold processors")
        if system.queue != sorted(set(system.queue)):
            found.append("the queue is out of order or holds a job twice")
        both = set(system.queue) & set(engine.held)
        found += [f"job row {job} waits and runs" for job in both]
        found += [
            f"job row {job} has {engine.core.work_left[job]} s of work left"
            for job in engine.held
            if engine.core.work_left[job] < -ROUNDING * engine.trace.runtime[job]
        ]
        found += self._broken_promises(engine)
        if found:
            raise InvariantError(f"at {system.now:.15g} s: " + "; ".join(found))

    def _broken_promises(self, engine: Engine) -> list[str]:
        system, policy, found = engine.system, engine.policy, []
        promised = policy.promised(system)
        estimates = system.running.by_estimated_end
        following = estimates[0][0] if estimates else math.inf
        if self._next_end < system.now or following <= system.now or engine.problem_solver.charged:
            self._void.update(self._promised, promised)
        self._next_end = following
        for job, at in {**self._promised, **promised}.items():
            start = system.start[job]
            if job in self._void:
                continue
            if start is not None and start > at + policy.interval:
                found.append(f"job row {job} started at {start:.15g}, but was promised {at:.15g}")
            is_waiting = engine.state[job] is State.WAITING and job in promised
            if is_waiting and at <= system.now and engine.core.clock[DUE] == math.inf:
                found.append(f"job row {job} waits, but was promised to start by {at:.15g}")
        self._promised = {job: at for job, at in promised.items() if system.start[job] is None}
        return found

    def check_end(self, engine: Engine) -> None:
        """Check, after the last event, that every job is accounted for and its work conserved."""
        found = []
        for job, state in enumerate(engine.state):
            if state in (State.UNSUBMITTED, State.RUNNING):
                found.append(f"job row {job} is {state.name.lower()} after the last event")
            if state is State.FINISHED:
                left = engine.core.work_left[job]
                coarse = STEPS * math.ulp(engine.core.end[job])
                if abs(left) > ROUNDING * max(1.0, engine.trace.runtime[job]) + coarse:
                    found.append(f"job row {job} finished with {left} s of work left")
        if found:
            raise InvariantError("at the end: " + "; ".join(found))
