"""Lower bound of data placement: by area, by loads, and by when files can be complete."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from optsched.models.data_placement import DataPlacement
from optsched.models.data_placement.fields import NO_FILE

ROUNDING = 1e-9
"""Relative error of floating-point sums."""


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


def earliest(problem: DataPlacement) -> NDArray[np.int64]:
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
    """Return the least weighted sum of starts in the fluid relaxation.

    An unplaced job counts as starting at the horizon, where capacity is unlimited.
    """
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
    slack = ROUNDING * (abs(start) + float(over_time[-1])) + 1e-6
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


def _first_ready(problem: DataPlacement, starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the least time at which a node can have the cores and the file of each job.

    `starts` are the earliest starts of the jobs on the nodes. A file that is not resident on a node
    is complete there a load after the earliest start of one of its jobs.
    """
    ready: NDArray[np.int64] = starts.min(axis=1)
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
