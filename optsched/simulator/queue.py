"""The waiting jobs in order of submission."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import overload


class Queue(Sequence[int]):
    """The waiting jobs in order of submission; a job is its row in the trace.

    Rows are in order of submission, so a job is found by bisection.
    """

    __slots__ = ("_jobs",)

    def __init__(self) -> None:
        self._jobs: list[int] = []

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
        self._jobs.append(job)

    def remove(self, job: int) -> None:
        """Remove a job that starts.

        Raises
        ------
        ValueError
            If the job is not waiting.
        """
        position = bisect_left(self._jobs, job)
        if position == len(self._jobs) or self._jobs[position] != job:
            raise ValueError(f"job row {job} does not wait")
        del self._jobs[position]
