"""Loading of the input files of jobs, compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.by_reference import by_reference
from optsched.compiled import kernel
from optsched.machines._node_memory import drop, forget, use
from optsched.simulator._core import CHANGED, NOW, STARTED, Core

Times = NDArray[np.float64]
Numbers = NDArray[np.int64]


@by_reference
class Loading(NamedTuple):
    """The files of the jobs, and the memory of the nodes as in `NodeMemory`."""

    files: Numbers
    loads: Numbers
    transfer: Times
    waiting: Times
    table: Times
    latest_start: Times
    until_next: bool


@kernel(allocates=False)
def load(loading: Loading, job: int, node: int, start: float, until: float) -> float:
    """Begin the use of the file of a job that starts; return the seconds until it is there."""
    file = loading.files[job]
    table, latest_start, until_next = loading.table, loading.latest_start, loading.until_next
    if file < 0:
        if until_next:
            forget(table, latest_start, True, node, start)
        return 0.0
    seconds: float
    seconds, loads = use(
        table, latest_start, until_next, node, file, loading.loads[job], start, until
    )
    if loads:
        loading.transfer[job] = seconds
    else:
        loading.waiting[job] = seconds
    return seconds


@kernel(allocates=False)
def release(loading: Loading, job: int, node: int, now: float) -> None:
    """End the use of the file of a job."""
    if loading.files[job] >= 0:
        drop(loading.table, node, loading.files[job], now)


@kernel(allocates=False)
def follow(core: Core, loading: Loading, node: Numbers, event: int) -> None:
    """Delay the job that starts, or end the use of its file; `node` has the node of each job."""
    job = core.tally[CHANGED]
    if event == STARTED:
        until = core.estimated_end[job]
        start = until - core.requested[job]  # rounded as in the engine
        core.works_since[job] += load(loading, job, node[job], start, until)
    else:
        release(loading, job, node[job], core.clock[NOW])
