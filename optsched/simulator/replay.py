"""Replay of policies by a compiled kernel.

A replay produces the schedule of the engine many times as fast. Policies that only count
processors, on a line of nodes, share the events and nodes of a replay; others bring a replay of the
whole run.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, TypeGuard

import numpy as np

from optsched.machines.machine import Machine
from optsched.machines.nodes import Nodes
from optsched.machines.texts import Texts
from optsched.schedule import Schedule, State
from optsched.simulator.engine import KILL_TOLERANCE, EventOrder
from optsched.simulator.execution import ExecutionModel
from optsched.simulator.policy import Policy
from optsched.simulator.problem_solver import NoProblems, ProblemSolver
from optsched.traces.trace import Trace


def find_replay(
    trace: Trace,
    machine: Machine,
    policy: Policy,
    order: EventOrder,
    problem_solver: ProblemSolver | NoProblems,
    execution: ExecutionModel | None,
    *,
    may_compile: bool = True,
) -> Callable[[Trace], Schedule | None] | None:
    """Return the replay of runs such as that of a trace, with compiled kernels.

    A policy that poses problems is replayed if the events of an instant are batched, and its replay
    covers the execution model and the solvers, which do nothing but solve. Returns None if there is
    no replay, or if its kernels are not on disk and it may not compile them.
    """
    if execution is None and can_replay(machine, policy):
        one = np.ones(1, dtype=np.int64)
        first = Trace(np.arange(1), one * int(trace.submit.min()), one, one, one)
        if not _is_ready(lambda: replay(first, Nodes(1), policy, EventOrder.BATCHED), may_compile):
            return None
        return lambda trace: replay(trace, machine, policy, order)
    run, batched = policy.replay_run, order is EventOrder.BATCHED
    if run is None or not batched or not isinstance(problem_solver, ProblemSolver):
        return None
    if not policy.replays(problem_solver, execution) or not problem_solver.only_solves:
        return None

    def warm_up() -> object:
        first, own = trace.select(slice(1)), ProblemSolver(problem_solver.solvers)
        return run(first, machine.emptied(), own, execution)

    if not _is_ready(warm_up, may_compile):
        return None
    return lambda trace: run(trace, machine, problem_solver, execution)


def _is_ready(warm_up: Callable[[], object], may_compile: bool) -> bool:
    """Load, or compile, the kernels of a replay; return whether they are there."""
    from optsched.kernel_cache import NotOnDiskError, only_loading

    try:
        with nullcontext() if may_compile else only_loading():
            warm_up()
    except NotOnDiskError:
        return False
    return True


def can_replay(machine: Machine, policy: Policy) -> TypeGuard[Nodes]:
    """Return whether `policy` has a compiled implementation on `machine`.

    The machine must extend `Nodes` and, as `Nodes` does, allocate the first free nodes.
    """
    first_free = isinstance(machine, Nodes) and type(machine).allocate is Nodes.allocate
    return first_free and policy.replay is not None


def replay(trace: Trace, machine: Nodes, policy: Policy, order: EventOrder) -> Schedule | None:
    """Return the schedule of a cleaned trace on an empty line of nodes.

    The policy is one for which `can_replay` is True. Its method ``replay(state, nodes)`` processes
    all events by the kernels of ``optsched.simulator._replay`` and returns the runs of nodes that
    the jobs held, or None if it cannot replay these jobs with its settings. Then the schedule is
    None as well.
    """
    from optsched.machines._interval_text import interval_text
    from optsched.simulator._replay import DECISIONS, new_state

    assert policy.replay is not None
    requested = trace.requested_time.astype(np.float64)
    killed = trace.runtime > requested + KILL_TOLERANCE
    runtime = np.where(killed, requested, trace.runtime)
    submit = trace.submit.astype(np.float64)
    one_by_one = order is EventOrder.ONE_BY_ONE
    state = new_state(submit, runtime, requested, trace.processors, machine.size, one_by_one)
    runs: Any = policy.replay(state, machine.size)
    if runs is None:
        return None
    ended = np.array([State.FINISHED, State.KILLED], dtype=object)
    final_state = ended[killed.astype(np.int8)]
    final_state[np.isnan(state.start)] = State.REJECTED
    text, offset = interval_text(state.first_run, state.last_run, runs)
    return Schedule(
        start=state.start,
        end=state.start + runtime,
        state=final_state,
        resources=Texts(text, offset),
        decisions=int(state.tally[DECISIONS]),
    )
