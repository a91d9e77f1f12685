"""How long jobs will run, from how long like ones have run: shares of their time limits.

The estimate for a job is a share, drawn at random from the last ones of the first of these groups
that has `LEAST`: jobs of its user in its partition with its limit, of its user in its partition, of
its user, of its account in its partition, of its partition, all. For a job that runs, only shares
beyond what it has run count; if there are none, it runs to its limit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from optsched.errors import NoJobsError
from optsched.sites.slurm_files import captured_file
from optsched.slurm.queue import QueuedJob
from optsched.traces.cleaning import clean
from optsched.traces.reading import read_trace
from optsched.traces.trace import Trace

Floats = NDArray[np.float64]

LEAST = 10
"""Least number of jobs of a group that counts."""

LAST = 200
"""Most jobs of a group that count, the last ones."""

FILES = ("sacct.json", "sacct.sacct")
"""Names of a file of jobs that have ended, in a folder with the output of Slurm."""

Key: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class RunTimes:
    """Shares of their limits for which jobs have run."""

    shares: Floats  # in the order of the ends, shape (jobs,)
    groups: tuple[NDArray[np.object_], ...]  # the texts of each job, by kind of group

    @cached_property
    def _by_key(self) -> dict[Key, Floats]:
        """The last shares of each group, ascending."""
        found: dict[Key, list[float]] = {}
        for share, *texts in zip(self.shares.tolist(), *self.groups):
            for kind, text in enumerate(texts):
                found.setdefault((str(kind), text), []).append(share)
        return {key: np.sort(shares[-LAST:]) for key, shares in found.items()}

    def of(self, job: QueuedJob, limit: float) -> tuple[Floats, int]:
        """Return the shares of the first group of a job that has enough, and its number.

        None, and -1, if there is no such group.
        """
        partition = ",".join(job.partitions)
        for kind, text in enumerate(_texts(job.user, job.account, partition, f"{limit:.0f}")):
            shares = self._by_key.get((str(kind), text), np.empty(0))
            if len(shares) >= LEAST:
                return shares, kind
        return np.empty(0), -1

    def draw(
        self, job: QueuedJob, limit: float, ran: float, rng: np.random.Generator, number: int
    ) -> Floats:
        """Return how long a job may run from now on, in seconds, shape (number,).

        `limit` is its whole time limit, and `ran` for how long it has run; both in seconds.
        """
        shares, _ = self.of(job, limit)
        beyond = shares[np.searchsorted(shares, ran / limit, side="right") :]
        if not len(beyond) or math.isinf(limit):
            return np.full(number, limit - ran)
        return rng.choice(beyond, number) * limit - ran


GROUPS = (
    "jobs of its user in its partition with its limit",
    "jobs of its user in its partition",
    "jobs of its user",
    "jobs of its account in its partition",
    "jobs of its partition",
    "all jobs",
)
"""The groups, in order."""


def _texts(user: str, account: str, partition: str, limit: str) -> Iterator[str]:
    """Yield the text that tells each group of a job from others of its kind."""
    yield f"{user}\0{partition}\0{limit}"
    yield f"{user}\0{partition}"
    yield user
    yield f"{account}\0{partition}"
    yield partition
    yield ""


def run_times(trace: Trace) -> RunTimes:
    """Return the shares of the jobs of a trace that have a time limit, in the order of its ends."""
    limit = np.where(trace.stated_time > 0, trace.stated_time, trace.requested_time)
    known = np.flatnonzero((limit > 0) & (trace.runtime > 0))
    ends = trace.submit + np.maximum(trace.wait, 0) + trace.runtime
    rows = known[np.argsort(ends[known], kind="stable")]
    none = np.full(len(trace), "", dtype=object)
    names = ("user_name", "account", "partition_name")
    columns = [trace.texts.get(name, none)[rows].tolist() for name in names]
    columns.append([f"{one:.0f}" for one in limit[rows].tolist()])
    texts = [tuple(_texts(*row)) for row in zip(*columns)]
    groups = tuple(np.array(each, dtype=object) for each in zip(*texts))
    shares = np.minimum(trace.runtime[rows] / limit[rows], 1.0)
    return RunTimes(shares, groups or (np.empty(0, dtype=object),) * len(GROUPS))


def read_history(folder: Path) -> Trace | None:
    """Return the jobs in the output of ``sacct`` in a folder that have ended; None without any."""
    path = captured_file(folder, *FILES)
    if path is None:
        return None
    try:
        trace = read_trace(path, clean=False)
    except NoJobsError:
        return None
    return clean(trace) if (trace.runtime >= 1).any() else None
