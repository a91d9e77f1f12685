"""The waiting jobs in order of submission."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

LONG = 128
"""From this length on, a compiled pass over the queue is quicker than one in Python."""


class Queue(Sequence[int]):
    """The waiting jobs in order of submission; a job is its row in the trace.

    A long queue keeps the sizes and requested times of its jobs in an array beside the list, for
    compiled passes over thousands of jobs.

    Parameters
    ----------
    processors : list of int
        Processors of each job of the trace.
    requested_time : list of float
        Requested time of each job of the trace, in seconds.
    """

    __slots__ = ("_columns", "_first", "_jobs", "_processors", "_requested_time")

    def __init__(self, processors: list[int], requested_time: list[float]) -> None:
        self._processors = processors
        self._requested_time = requested_time
        self._jobs: list[int] = []
        self._columns: NDArray[np.float64] | None = None
        self._first = 0

    def __len__(self) -> int:
        return len(self._jobs)

    def __iter__(self) -> Iterator[int]:
        return iter(self._jobs)

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> list[int]: ...
    def __getitem__(self, index: int | slice) -> int | list[int]:
        return self._jobs[index]

    def append(self, job: int) -> None:
        """Add a job that was submitted."""
        jobs, columns = self._jobs, self._columns
        jobs.append(job)
        if columns is None:
            if len(jobs) >= LONG:
                self._mirror()
            return
        last = self._first + len(jobs)
        if last > columns.shape[1]:
            self._mirror()
        else:
            columns[0, last - 1] = self._processors[job]
            columns[1, last - 1] = self._requested_time[job]

    def remove(self, job: int) -> None:
        """Remove a job that starts.

        Raises
        ------
        ValueError
            If it does not wait.
        """
        jobs, columns = self._jobs, self._columns
        position = bisect_left(jobs, job)
        if position == len(jobs) or jobs[position] != job:
            raise ValueError(f"job row {job} does not wait")
        del jobs[position]
        if columns is None:
            return
        if len(jobs) < LONG // 2:
            self._columns = None
        elif position == 0:
            self._first += 1
        else:
            here, last = self._first + position, self._first + len(jobs)
            columns[:, here:last] = columns[:, here + 1 : last + 1]

    @property
    def columns(self) -> NDArray[np.float64] | None:
        """Processors and requested times of the jobs, shape (2, jobs); none for a short queue."""
        if self._columns is None:
            return None
        return self._columns[:, self._first : self._first + len(self._jobs)]

    def _mirror(self) -> None:
        """Write the array anew, with room for as many jobs again."""
        jobs = self._jobs
        columns = np.empty((2, 2 * len(jobs)))
        columns[0, : len(jobs)] = [self._processors[job] for job in jobs]
        columns[1, : len(jobs)] = [self._requested_time[job] for job in jobs]
        self._columns = columns
        self._first = 0
