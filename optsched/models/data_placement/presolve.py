"""Reductions for exact solvers: pairs of jobs that may share a file, and a latest start.

The program and `interval-search` use these reductions; the verification does not.
"""

from __future__ import annotations

import numpy as np

from optsched.models.data_placement.fields import NO_FILE
from optsched.models.data_placement.problem import DataPlacement


def latest_start(problem: DataPlacement) -> int:
    """Return a second by which every job starts in some optimal plan.

    Once every core is free and every file is complete, an idle second could be cut out of a plan to
    its gain, so some job always runs from then on. A job that finds a file without users may also
    wait, on an idle cluster, for the end of its load.
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
    """Return the pairs of jobs with the same file and a load above 0 s, lower number first."""
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
    """Return the pairs of an entry of `resident` and a job that may find the file."""
    return [
        (entry, job)
        for entry, file in enumerate(problem.resident[:, 1].tolist())
        for job in np.flatnonzero((problem.files == file) & (problem.loads > 0)).tolist()
    ]
