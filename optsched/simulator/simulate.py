"""Run a trace on a machine under a policy."""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optsched import registry
from optsched.errors import InputError
from optsched.machines.machine import Machine, read_machine
from optsched.numbers import LARGEST
from optsched.settings import configure_parts
from optsched.simulator.chosen_solvers import Asked, choose_solvers
from optsched.simulator.engine import Engine
from optsched.simulator.event_order import EventOrder
from optsched.simulator.invariants import InvariantChecker
from optsched.simulator.journal import Journal
from optsched.simulator.policy import Policy
from optsched.simulator.posing import NothingPosed, Posing
from optsched.simulator.provenance import describe
from optsched.simulator.replay import REPLAY_FROM, can_replay, replay
from optsched.simulator.replay import prepare as prepare_replay
from optsched.simulator.run import Run
from optsched.solvers.result import Budget
from optsched.solvers.solving import check_budget, checked_seed
from optsched.traces.reading import read_trace
from optsched.traces.trace import Trace

if TYPE_CHECKING:
    from optsched.simulator.execution import ExecutionModel


def simulate(
    trace: Trace | str | Path,
    machine: Machine | str | Path | None = None,
    policy: Policy | str = "easy",
    *,
    settings: Mapping[str, Any] | None = None,
    solver: Asked = None,
    budget: Budget | None = None,
    seed: int | None = None,
    jobs: tuple[int, int] | None = None,
    event_order: EventOrder | str = EventOrder.BATCHED,
    execution: ExecutionModel | str | None = None,
    charge_decisions: bool = False,
    capture: str | Path | None = None,
    capture_every: int = 1,
    large_from: int | None = None,
    check: bool = False,
    journal: bool = False,
    compiled_from: int = REPLAY_FROM,
    progress: Callable[[int, float], None] | None = None,
) -> Run:
    """Run a trace on a machine under a policy.

    Parameters
    ----------
    trace : Trace, path or str
        A trace, a file, or a name from the catalogue. A raw trace is cleaned first.
    machine : Machine, path or str, optional
        A machine, a specification such as ``nodes:1152``, or a TOML file. If left out, as many
        nodes (or whatever the policy runs on) as the header of the trace states processors.
    policy : Policy or str
        A policy or the name of one.
    settings : mapping, optional
        Settings of the policy and of the execution model, where these are given by name.
    solver : str, Solver or mapping, optional
        Solver, or name of a solver or profile, that answers the policy's problems; the policy's
        own choice if left out. Where the policy poses problems of several models, it answers those
        that it can, and a mapping (as text ``MODEL=NAME,MODEL=NAME``) names one for each.
    budget : Budget, optional
        What a solver may spend on one problem; its default work if left out.
    seed : int, optional
        Seed of the solver's random choices; the profile's own if left out.
    jobs : (int, int), optional
        First and last job to run, counted in the cleaned trace from 1, both included.
    event_order : {"batched", "one-by-one"}
        What happens at one instant; see `EventOrder`.
    execution : ExecutionModel or str, optional
        Gives the jobs their speeds, or the name of a model that does; the policy's own if left out.
        Under most policies that is none, and every job runs for its run time.
    charge_decisions : bool
        Let what is decided wait for as long as the solver's work nominally takes.
    capture : path, optional
        Folder that the posed problems are written to, as snapshots; one that is there and empty.
    capture_every : int
        Write every so-manieth problem.
    large_from : int, optional
        Jobs of so many processors count as large in the summary; if left out those that the policy
        takes for large, or the tenth that needs most.
    check : bool
        Check the invariants after every event (slow).
    journal : bool
        Keep every event and action.
    compiled_from : int
        From this many jobs on, use the compiled statement of the policy where there is one. The
        run is the same; a kernel takes longer to load than the engine takes for a small trace.
    progress : callable, optional
        Called now and then with the number of jobs that wait no more (started or rejected), and the
        simulated time.

    Returns
    -------
    Run
        Schedule, metrics and how to repeat it.

    Raises
    ------
    InputError
        If a name, a file, a setting or a combination of them cannot be used.
    """
    policy, execution = _configured(policy, execution, settings)
    _check_capture(capture, capture_every)
    order = _event_order(event_order)
    check_budget(budget)
    seed = checked_seed(seed)
    span = _checked_span(jobs)
    if large_from is not None and not _is_count(large_from):
        raise InputError(f"{large_from!r}; expected a whole number from 1", field="large from")
    began = time.perf_counter()
    source = prepare_trace(trace)
    trace = source if span is None else source.jobs(*span)
    read_seconds = time.perf_counter() - began
    machine = read_machine(machine if machine is not None else _stated_machine(trace, policy))
    if policy.machines.isdisjoint(machine.kinds()):
        kinds = ", ".join(sorted(policy.machines))
        raise InputError(f"policy {policy.name!r} runs on {kinds}, not on {machine.spec}")
    if large_from is None and (policy.large_from() or LARGEST) <= machine.size:
        large_from = policy.large_from()
    if large_from is not None and large_from > machine.size:
        expected = f"expected at most the {machine.size:,} processors of the machine"
        raise InputError(f"{large_from:,}; {expected}", field="large from")
    general = execution is not None or check or journal or len(trace) < compiled_from
    began = time.perf_counter()
    posing = _posing(
        policy,
        solver,
        budget,
        seed,
        charge=charge_decisions,
        capture=capture,
        capture_every=capture_every,
        origin={"trace": trace.name, "machine": machine.spec, "policy": policy.name},
    )
    if not general and can_replay(machine, policy):
        prepare_replay(policy)
    prepare_seconds = time.perf_counter() - began
    options = {
        "jobs": None if span is None else list(span),
        "event_order": order.value,
        "capture_every": None if capture is None else capture_every,
        "large_from": large_from,
        "budget": None if budget is None else asdict(budget),
        "seed": seed,
        "journal": journal,
    }
    config = describe(source, trace, machine, policy, execution, posing.config, options)
    recorded = Journal() if journal else None
    began = time.perf_counter()
    if not general and can_replay(machine, policy):
        schedule = replay(trace, machine, policy, order)
    else:
        checker = InvariantChecker() if check else None
        observe = None if checker is None else checker.check
        engine = Engine(
            trace, machine, policy, posing, execution, order, recorded, observe, progress
        )
        engine.run()
        if checker is not None:
            checker.check_end(engine)
        schedule = engine.schedule()
    seconds = time.perf_counter() - began
    report = None if execution is None else execution.report(trace, schedule)
    return Run(
        config=config,
        trace=trace,
        machine=machine,
        schedule=schedule,
        decisions=posing.frame,
        fallbacks=posing.fallbacks,
        execution_report=report,
        notes=(*_odd_pair(policy, execution), *(() if report is None else report.notes)),
        timing={
            "read_seconds": read_seconds,
            "prepare_seconds": prepare_seconds,
            "simulation_seconds": seconds,
            "solver_seconds": posing.solver_seconds,
            "jobs_per_second": len(trace) / seconds,
        },
        compared=posing.compared,
        journal=recorded,
    )


def prepare_trace(trace: Trace | str | Path) -> Trace:
    """Return a cleaned trace, read if it is a file or a name.

    Raises
    ------
    InputError
        If it cannot be read, no job is left, or simulated times may be rounded.
    """
    if isinstance(trace, str | Path):
        trace = read_trace(trace)
    elif not isinstance(trace, Trace):
        expected = "expected a trace, a file or a name from the catalogue"
        raise InputError(f"{trace!r}; {expected}", field="trace")
    elif trace.cleaning is None:
        from optsched.traces.cleaning import clean

        trace = clean(trace)
    if len(trace) == 0:
        raise InputError(f"trace {trace.name!r} has no job to run")
    # one job after the other, and the longest request behind them
    seconds = (trace.submit.max(), trace.runtime.sum(dtype=float), trace.requested_time.max())
    if sum(map(float, seconds)) > LARGEST:
        raise InputError(
            "the times add up to more than 2^53 s, and would be rounded", file=trace.path
        )
    return trace


def _configured(
    policy: Policy | str, execution: ExecutionModel | str | None, settings: Any
) -> tuple[Policy, ExecutionModel | None]:
    """Return the policy and the execution model, each with its own of the settings."""
    if not isinstance(policy, Policy | str):
        raise InputError(f"{policy!r}; expected a policy or the name of one", field="policy")
    if not isinstance(settings, Mapping | None):
        raise InputError(f"{settings!r}; expected a mapping of names to values", field="settings")
    parts: dict[str, type[Any]] = {}
    if isinstance(policy, str):
        parts[f"policy {policy!r}"] = registry.policies[policy]
    if execution is None:
        execution = (registry.policies[policy] if isinstance(policy, str) else policy).execution
    if isinstance(execution, str):
        parts[f"execution model {execution!r}"] = registry.executions[execution]
    if settings and not parts:
        raise InputError("settings belong to a policy that is given by name")
    built = configure_parts(parts, settings or {})
    chosen: Policy = built.pop(0) if isinstance(policy, str) else policy
    model: ExecutionModel | None = built.pop() if isinstance(execution, str) else execution
    chosen.check_interval()
    return chosen, model


def _odd_pair(policy: Policy, execution: ExecutionModel | None) -> tuple[str, ...]:
    """Say if the jobs run under another execution model than the policy decides for."""
    decided_for = policy.execution
    if decided_for is None or execution is None:
        return ()
    if isinstance(execution, registry.executions[decided_for]):
        return ()
    said = f"policy {policy.name!r} decides for execution model {decided_for!r}"
    return (f"{said}; the jobs run under {execution.name!r}, so its estimates do not hold",)


def _event_order(name: EventOrder | str) -> EventOrder:
    try:
        return EventOrder(name)
    except ValueError:
        choices = " or ".join(EventOrder)
        raise InputError(f"{name!r}; expected {choices}", field="event order") from None


def _checked_span(jobs: Any) -> tuple[int, int] | None:
    if jobs is None:
        return None
    try:
        first, last = map(operator.index, jobs)
    except (TypeError, ValueError):
        expected = "expected the first and the last job, (1, 5000) for instance"
        raise InputError(f"{jobs!r}; {expected}", field="jobs") from None
    return first, last


def _check_capture(folder: str | Path | None, every: int) -> None:
    if not _is_count(every):
        raise InputError(f"{every!r}; expected a whole number from 1", field="capture every")
    if folder is None:
        if every != 1:
            raise InputError("no folder to capture to", field="capture every")
    elif not Path(folder).is_dir():
        raise InputError("no such folder; expected an empty one to capture to", file=folder)
    elif any(Path(folder).iterdir()):
        raise InputError("is not empty; expected an empty folder to capture to", file=folder)


def _is_count(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number >= 1


def _stated_machine(trace: Trace, policy: Policy) -> str:
    kind = "nodes" if "nodes" in policy.machines else min(policy.machines)
    usage = registry.machines[kind].usage
    if usage != f"{kind}:NUMBER":
        raise InputError(f"policy {policy.name!r} runs on {usage}; say on which, with --machine")
    if trace.header.max_procs is None:
        nodes = trace.header.max_nodes or 0
        example = f"{kind}:{nodes} (it states {nodes:,} nodes)" if nodes >= 1 else f"{kind}:NUMBER"
        raise InputError(
            f"the header of trace {trace.name!r} does not say how many processors the machine has "
            f"(MaxProcs); say so, --machine {example} for instance"
        )
    return f"{kind}:{trace.header.max_procs}"


def _posing(
    policy: Policy,
    solver: Asked,
    budget: Budget | None,
    seed: int | None,
    *,
    charge: bool,
    capture: str | Path | None,
    capture_every: int,
    origin: Mapping[str, Any],
) -> Posing | NothingPosed:
    if posed := policy.posed():
        chosen = choose_solvers(posed, solver, budget=budget, seed=seed)
        folder = None if capture is None else Path(capture)
        return Posing(
            chosen, charge=charge, capture=folder, capture_every=capture_every, origin=origin
        )
    of_no_use = {
        "a solver": solver,
        "a limit": budget,
        "a seed": seed,
        "a capture folder": capture,
        "charging decisions": charge or None,
    }
    given = [name for name, value in of_no_use.items() if value is not None]
    if given:
        reason = f"so it has no use for {', '.join(given)}"
        raise InputError(f"policy {policy.name!r} poses no problems, {reason}")
    return NothingPosed()
