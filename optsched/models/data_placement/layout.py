"""The variables of the integer program of a data placement.

In this order: h[j, c], job j holds core c (cores are numbered through all nodes); x[j, n], it is on
node n; s[j], its start; l[j], its load time; then those of holes, of pairs of jobs, of jobs that
share a file, and of files that stay until the next start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.errors import InputError
from optsched.models.data_placement.fields import NO_FILE

if TYPE_CHECKING:
    from optsched.models.data_placement.problem import DataPlacement

MOST_ENTRIES = 1_000_000
"""A larger program is refused: generic solvers are lost long before."""


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


class Layout:
    """Where the variables are, and what they are called; symbols as on the model's page.

    Raises
    ------
    InputError
        If the program would have more entries than `MOST_ENTRIES`.
    """

    def __init__(self, problem: DataPlacement) -> None:
        self.nodes, self.cores = problem.available.shape
        self.jobs = len(problem.processors)
        self.all_cores = self.nodes * self.cores
        entries = 4 * self.all_cores * self.jobs * max(self.jobs - 1, 5) // 2
        self.pairs = sharing_pairs(problem)
        self.finds = finding_pairs(problem)
        entries += (8 * self.nodes + 40) * len(self.pairs) + 30 * len(self.finds)
        self.until_next = problem.kept == "next" and bool(self.pairs or self.finds)
        if self.until_next:
            entries += 24 * self.jobs * (len(self.pairs) + len(self.finds))
            entries += (4 * self.nodes + 10) * self.jobs * self.jobs
        if entries > MOST_ENTRIES:
            raise InputError(
                f"the program would have some {entries} entries, more than {MOST_ENTRIES}; "
                "interval-search needs none"
            )
        self.names: list[str] = []
        self._number: dict[tuple[object, ...], int] = {}
        self.lower: list[int] = []
        self.upper: list[int] = []
        self.latest = latest_start(problem)
        loads = problem.loads.tolist()
        sharing = {job for pair in self.pairs for job in pair} | {job for _, job in self.finds}
        self.sharing = sorted(sharing)
        jobs = range(self.jobs)
        for job in jobs:
            for core in range(self.all_cores):
                self._new("h", job, core)
        for job in jobs:
            for node in range(self.nodes):
                self._new("x", job, node)
        for job in jobs:
            self._new("s", job, upper=self.latest)
        for job in jobs:
            self._new("l", job, lower=0 if job in sharing else loads[job], upper=loads[job])
        if problem.reserved is not None:
            until = problem.reserved.ravel().tolist()
            for job, walltime in enumerate(problem.walltimes.tolist()):
                for core in range(self.all_cores):
                    if until[core] >= walltime:
                        self._new("before", job, core)
        for one in jobs:
            for other in jobs:
                if one != other:
                    self._new("o", one, other)
        for one, other in self.pairs:
            for name, first, second in (
                ("q", one, other),
                ("q", other, one),
                ("gone", one, other),
                ("gone", other, one),
                ("apart", one, other),
            ):
                self._new(name, first, second)
        for entry, job in self.finds:
            self._new("found", entry, job)
            self._new("late", entry, job)
        for job in self.sharing:
            self._new("y", job)
            self._new("z", job)
        if self.until_next:
            self._add_left(problem)

    def _add_left(self, problem: DataPlacement) -> None:
        """Add what says whether a job starts between the last use of a file and the next one."""
        jobs = range(self.jobs)
        node, until = problem.resident[:, 0].tolist(), problem.resident[:, 4].tolist()
        for one in jobs:
            for other in jobs:
                if one < other:
                    self._new("same", one, other)
                if one != other:
                    self._new("first", one, other)
        for pair in self.pairs:
            for i, j in (pair, pair[::-1]):
                self._new("next", i, j)
                for k in jobs:
                    if k not in (i, j):
                        self._new("between", i, j, k)
        for entry in dict.fromkeys(entry for entry, _ in self.finds):
            for k in jobs:
                self._new("over", entry, k, lower=until[entry] == 0)
        for entry, j in self.finds:
            evicted = until[entry] == 0 and problem.started[node[entry]]
            self._new("still", entry, j, upper=0 if evicted else 1)
            for k in jobs:
                if k != j:
                    self._new("evicts", entry, j, k)

    def __getitem__(self, key: tuple[object, ...]) -> int:
        return self._number[key]

    def __contains__(self, key: tuple[object, ...]) -> bool:
        return key in self._number

    def __len__(self) -> int:
        return len(self.lower)

    def ways(self, i: int, j: int) -> list[int]:
        """Return the variables that say that job j finds what job i uses, or has used."""
        named = (("q", i, j), ("next", i, j))
        return [self[key] for key in named if key in self]

    def entry_ways(self, entry: int, job: int) -> list[int]:
        """Return the variables that say that a job finds a resident file, in use or left."""
        named = (("found", entry, job), ("still", entry, job))
        return [self[key] for key in named if key in self]

    def between(self, i: int, j: int) -> list[tuple[int, int]]:
        """Return the other jobs, and what says that each starts between the end of i and j."""
        return [(k, self["between", i, j, k]) for k in range(self.jobs) if k not in (i, j)]

    def evictors(self, entry: int, j: int) -> list[tuple[int, int]]:
        """Return the other jobs, and what says that each evicts a resident file before j."""
        return [(k, self["evicts", entry, j, k]) for k in range(self.jobs) if k != j]

    def _new(self, name: str, *of: int, lower: int = 0, upper: int = 1) -> None:
        self._number[(name, *of)] = len(self.lower)
        self.names.append("_".join((name, *(str(number + 1) for number in of))))
        self.lower.append(lower)
        self.upper.append(upper)
