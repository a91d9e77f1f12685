"""The kinds of jobs, by processors and requested time.

Waiting jobs of one kind are alike but for their place in the queue, and there are few kinds even in
queues of thousands of jobs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Kinds(NamedTuple):
    """The kinds of all jobs of a trace, ascending by processors, then requested time.

    An argument of ``@kernel`` functions, whose cache is sealed with this file too.
    """

    of_job: NDArray[np.int64]
    rank: NDArray[np.int64]  # number of each job among those of its kind
    jobs: NDArray[np.int64]  # jobs[first_job[kind] + rank] is the job
    first_job: NDArray[np.int64]
    processors: NDArray[np.int64]
    duration: NDArray[np.float64]


def kinds_of(processors: NDArray[np.int64], durations: NDArray[np.float64]) -> Kinds:
    """Return the kinds of jobs in order of submission, both arrays of shape (jobs,)."""
    count = len(processors)
    jobs = np.lexsort((durations, processors))
    wide, long = processors[jobs], durations[jobs]
    begins = np.ones(count, dtype=np.bool_)
    begins[1:] = (wide[1:] != wide[:-1]) | (long[1:] != long[:-1])
    first_job = np.flatnonzero(begins)
    kind = begins.cumsum() - 1
    of_job, rank = np.empty((2, count), dtype=np.int64)
    of_job[jobs] = kind
    rank[jobs] = np.arange(count) - first_job[kind]
    return Kinds(of_job, rank, jobs, first_job, wide[first_job], long[first_job])
