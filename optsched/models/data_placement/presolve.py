"""Reductions for exact solvers: which jobs may share a file, and by when all of them start.

The program and `interval-search` build on them; the verification does not.
"""

from __future__ import annotations

import numpy as np

from optsched.models.data_placement.fields import NO_FILE
from optsched.models.data_placement.problem import DataPlacement


def latest_start(problem: DataPlacement) -> int:
    """Return a second by which every job starts in some optimal plan.

    Once every core is free and every file complete, a second in which nothing runs could be cut out
    of a plan to its gain; so from then on one job or another always runs. Who finds a file that was
    left may also wait for the end of its loading, while nothing runs.
    """
    _, _, _, loaded, until = problem.resident.T
    lasting = problem.walltimes
    if problem.kept == "users":
        loaded = np.minimum(loaded, until)
    else:
        lasting = np.maximum(lasting, problem.loads)
    busy = max(int(problem.available.max()), int(loaded.max(initial=0)), 0)
    return busy + int(lasting.sum())


def sharing_pairs(problem: DataPlacement) -> list[tuple[int, int]]:
    """Return the pairs of jobs, the one of lower number first, with one file that takes time."""
    loading = np.flatnonzero((problem.files != NO_FILE) & (problem.loads > 0)).tolist()
    files = problem.files.tolist()
    by_file: dict[int, list[int]] = {}
    for job in loading:
        by_file.setdefault(files[job], []).append(job)
    return [
        (one, other)
        for users in by_file.values()
        for place, one in enumerate(users)
        for other in users[place + 1 :]
    ]


def finding_pairs(problem: DataPlacement) -> list[tuple[int, int]]:
    """Return the pairs of an entry of `resident` and a job that may find its file there."""
    return [
        (entry, job)
        for entry, file in enumerate(problem.resident[:, 1].tolist())
        for job in np.flatnonzero((problem.files == file) & (problem.loads > 0)).tolist()
    ]
