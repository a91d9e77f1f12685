"""Replay of policies by a compiled kernel.

A replay produces the schedule of the engine many times as fast. A policy brings that of a whole
run.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

from optsched.machines.machine import Machine
from optsched.schedule import Schedule
from optsched.simulator.engine import EventOrder
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
