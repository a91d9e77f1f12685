"""Replay of policies that only count processors, on a line of nodes, by a compiled kernel.

A replay produces the schedule of the engine ten times as fast.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from optsched.machines.machine import Machine
from optsched.machines.nodes import Nodes
from optsched.schedule import Schedule, State
from optsched.simulator.engine import KILL_TOLERANCE, EventOrder
from optsched.simulator.policy import Policy
from optsched.traces.trace import Trace

REPLAY_FROM = 100_000
"""Number of jobs from which a replay outweighs loading, or first compiling, its kernel."""


def find_replay(
    machine: Machine, policy: Policy
) -> Callable[[Trace, EventOrder], Schedule | None] | None:
    """Return the replay of `policy` on `machine`, with compiled kernels; None if it has none."""
    if not can_replay(machine, policy):
        return None
    one = np.ones(1, dtype=np.int64)
    replay(Trace(one, one, one, one, one), Nodes(1), policy, EventOrder.BATCHED)
    return lambda trace, order: replay(trace, machine, policy, order)


def can_replay(machine: Machine, policy: Policy) -> TypeGuard[Nodes]:
    """Return whether `policy` has a compiled implementation on `machine`.

    The machine must extend `Nodes` and, as `Nodes` does, allocate the first free nodes.
    """
    first_free = isinstance(machine, Nodes) and type(machine).allocate is Nodes.allocate
    return first_free and policy.replay is not None


def replay(trace: Trace, machine: Nodes, policy: Policy, order: EventOrder) -> Schedule | None:
    """Return the schedule of a cleaned trace on an empty line of nodes, which does not change.

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
    runs = policy.replay(state, machine.size)
    if runs is None:
        return None
    final_state = np.where(killed, State.KILLED, State.FINISHED)
    final_state[np.isnan(state.start)] = State.REJECTED
    text, offset = interval_text(state.first_run, state.last_run, runs)
    return Schedule(
        start=state.start,
        end=state.start + runtime,
        state=final_state,
        resources=_strings(text, offset),
        decisions=int(state.tally[DECISIONS]),
    )


def _strings(text: NDArray[np.uint8], offset: NDArray[np.int64]) -> Sequence[str]:
    """Return a view of concatenated texts as a sequence of strings."""
    import pandas as pd
    import pyarrow as pa

    buffers = pa.py_buffer(offset), pa.py_buffer(text)
    strings = pa.LargeStringArray.from_buffers(len(offset) - 1, *buffers)
    texts: Sequence[str] = pd.array(strings, dtype="str")
    return texts
