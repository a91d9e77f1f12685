"""Policies that only count processors, on a line of nodes: replayed by a compiled kernel.

A replay gives the very schedule that the engine gives, ten times as fast.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from optsched.machines.machine import Machine
from optsched.machines.nodes import Nodes
from optsched.simulator.engine import KILL_TOLERANCE
from optsched.simulator.event_order import EventOrder
from optsched.simulator.policy import Policy
from optsched.simulator.schedule import Schedule, State
from optsched.traces.trace import Trace

REPLAY_FROM = 100_000
"""From this many jobs on a replay is worth loading, or at first compiling, the kernel."""


def find_replay(machine: Machine, policy: Policy) -> Callable[[Trace, EventOrder], Schedule] | None:
    """Return what replays a trace by the compiled statement of `policy`; None if there is none.

    Its kernels are compiled, or loaded where they have been compiled before.
    """
    if not can_replay(machine, policy):
        return None
    one = np.ones(1, dtype=np.int64)
    replay(Trace(one, one, one, one, one), Nodes(1), policy, EventOrder.BATCHED)
    return lambda trace, order: replay(trace, machine, policy, order)


def can_replay(machine: Machine, policy: Policy) -> TypeGuard[Nodes]:
    """Return whether there is a compiled statement of `policy` on `machine`.

    There is for every machine that extends `Nodes` and gives a job the first free ones as it does.
    """
    first_free = isinstance(machine, Nodes) and type(machine).allocate is Nodes.allocate
    return first_free and policy.replay is not None


def replay(trace: Trace, machine: Nodes, policy: Policy, order: EventOrder) -> Schedule:
    """Return the schedule of a cleaned trace on an empty line of nodes.

    Parameters
    ----------
    trace : Trace
        A cleaned trace.
    machine : Nodes
        An empty machine; it is not changed.
    policy : Policy
        One that `can_replay`.
    order : EventOrder
        What happens at one instant.
    """
    from optsched.machines._interval_text import interval_text
    from optsched.simulator import _replay

    assert policy.replay is not None
    requested = trace.requested_time.astype(np.float64)
    killed = trace.runtime > requested + KILL_TOLERANCE
    runtime = np.where(killed, requested, trace.runtime)
    submit = trace.submit.astype(np.float64)
    backfilling = getattr(_replay, policy.replay)
    state = _replay.new_state(submit, runtime, requested, trace.processors, machine.size)
    runs = _replay.replay(state, machine.size, backfilling, order is EventOrder.ONE_BY_ONE)
    became = np.where(killed, State.KILLED, State.FINISHED)
    became[np.isnan(state.start)] = State.REJECTED
    text, offset = interval_text(state.first_run, state.last_run, runs)
    return Schedule(
        start=state.start,
        end=state.start + runtime,
        state=became,
        resources=_strings(text, offset),
        decisions=int(state.tally[_replay.DECISIONS]),
    )


def _strings(text: NDArray[np.uint8], offset: NDArray[np.int64]) -> Sequence[str]:
    """Return texts that stand one behind the other as a sequence, without a copy."""
    import pandas as pd
    import pyarrow as pa

    buffers = [None, pa.py_buffer(offset), pa.py_buffer(text)]
    strings = pa.LargeStringArray.from_buffers(len(offset) - 1, buffers[1], buffers[2])
    texts: Sequence[str] = pd.array(strings, dtype="str")
    return texts
