"""A lower bound of data placements of any size: room on all cores, and files not loaded yet."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from optsched.models.data_placement import DataPlacement
from optsched.models.data_placement.fields import NO_FILE

ROUNDING = 1e-9
"""Relative; what floating point may be wrong by."""


def room_bound(problem: DataPlacement) -> int:
    """Return what no plan costs less than.

    Waiting is bounded twice. Each job waits until enough cores of some node are free. And think of
    the work of jobs, core-seconds, as a fluid that any free core takes: a job that starts at s and
    runs for w seconds has its work done at s + w/2 on average, and the least weighted sum of such
    times has the fluid of the largest weight per core-second come first (Smith's rule).

    Loading: for each file that is in no memory, one of its jobs loads it.

    Examples
    --------
    >>> problem = DataPlacement([[0]], [1, 1], [90, 90], [7, 7], [60, 60])
    >>> room_bound(problem)
    150
    """
    if not len(problem.processors):
        return 0
    waiting = max(_by_room(problem), int(problem.priorities @ earliest(problem).min(axis=1)))
    return waiting + problem.load_weight * _first_loads(problem)


def earliest(problem: DataPlacement) -> NDArray[np.int64]:
    """Return the first second at which each job may start on each node, shape (jobs, nodes)."""
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


def _by_room(problem: DataPlacement) -> int:
    """Return the least weighted sum of starts if work were a fluid.

    A job that is left out counts as starting at the horizon; room is taken to be unlimited there.
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
    # room, and the integral of time over it, up to each second at which the rate changes
    room = np.concatenate(([0.0], np.cumsum(rate[:-1] * np.diff(end))))
    moment = np.concatenate(([0.0], np.cumsum(rate[:-1] * np.diff(end.astype(float) ** 2) / 2)))
    filled = np.concatenate(([0], work[order].cumsum())).astype(float)
    piece = np.searchsorted(room, filled, side="right") - 1
    second = end[piece] + (filled - room[piece]) / rate[piece]
    over_time = moment[piece] + rate[piece] * (second**2 - end[piece] ** 2.0) / 2
    if problem.partial:
        last = problem.horizon + int(problem.walltimes.min()) / 2
        final = int(np.searchsorted(end, last, side="right")) - 1
        within = room[final] + rate[final] * (last - end[final])
        upto = moment[final] + rate[final] * (last**2 - float(end[final]) ** 2) / 2
        over_time = np.where(second > last, upto + (filled - within) * last, over_time)
    middle = np.diff(over_time) / work[order]
    start = float(problem.priorities[order] @ (middle - problem.walltimes[order] / 2))
    slack = ROUNDING * (abs(start) + float(over_time[-1])) + 1e-6
    return max(0, math.ceil(start - slack))


def _first_loads(problem: DataPlacement) -> int:
    """Return the least weighted seconds in which files that are in no memory are loaded once."""
    present = set(problem.resident[:, 1].tolist()) | {NO_FILE}
    least: dict[int, int] = {}
    jobs = zip(problem.files.tolist(), problem.loads.tolist(), problem.priorities.tolist())
    for file, load, priority in jobs:
        if file not in present:
            least[file] = min(least.get(file, load * priority), load * priority)
    return sum(least.values())
