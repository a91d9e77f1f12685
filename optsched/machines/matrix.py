"""Ousterhout matrix, whose rows take turns on the processors: ``matrix:N``.

Kernels have sets of columns as rows of words of 64 bits, Python as masks; see
`optsched.column_sets`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.boxes._rows import ones
from optsched.column_sets import ColumnSet, interval_text, lowest
from optsched.compiled import kernel
from optsched.errors import InputError
from optsched.machines.machine import SizedMachine
from optsched.registry import machines

MOST_COLUMNS = 1 << 20
"""Most columns, since a set of columns has a bit for each."""


class Slice(NamedTuple):
    """Allocation of a job in a matrix."""

    row: int  # the time slice, from 0
    columns: ColumnSet  # the set of processors; see `optsched.column_sets`


@machines.register("matrix")
class Matrix(SizedMachine):
    """Identical processors (columns) that are shared in time slices (rows).

    A job holds columns in one row; the jobs of a row run simultaneously, and the rows take turns. A
    row is added when a policy claims it, and the last row always has a job.

    J. Ousterhout, "Scheduling techniques for concurrent systems", ICDCS 1982.

    >>> machine = Matrix(8)
    >>> held = machine.allocate(5), machine.allocate(4), machine.allocate(3)
    >>> [(job.row, machine.resources(job)) for job in held]
    [(0, '0-4'), (1, '0-3'), (0, '5-7')]
    """

    usage = "matrix:NUMBER"
    unit = "processors"
    time_shared = True

    def __init__(self, size: int) -> None:
        if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= MOST_COLUMNS:
            expected = f"expected a whole number from 1 to {MOST_COLUMNS:,}"
            raise InputError(f"matrix of {size!r} columns; {expected}")
        super().__init__(size)
        self.rows: list[ColumnSet] = []  # the set of held columns of each row
        self._all = (1 << size) - 1

    @property
    def free(self) -> int:  # type: ignore[override]  # a property here
        """Number of processors that no job holds in any row."""
        held = 0
        for row in self.rows:
            held |= row
        return self.size - held.bit_count()

    def allocate(self, processors: int) -> Slice:
        """Allocate the first free columns of the first row that has enough, or of a new row."""
        rows = [*self.rows, 0]
        row = next(r for r, held in enumerate(rows) if self.size - held.bit_count() >= processors)
        return self.claim(Slice(row, lowest(self._all & ~rows[row], processors)), processors)

    def claim(self, place: Slice, processors: int) -> Slice:
        """Allocate the row and columns that a policy chose."""
        row, columns = place
        if columns.bit_count() != processors:
            raise ValueError(f"a place of {columns.bit_count()} columns for a job of {processors}")
        if row < 0 or columns & ~self._all:
            raise ValueError(f"no place {self.place_text(place)} in {self.spec}")
        while row >= len(self.rows):
            self.rows.append(0)
        if taken := self.rows[row] & columns:
            raise ValueError(f"columns {interval_text(taken)} of row {row} are not free")
        self.rows[row] |= columns
        return place

    def release(self, allocation: Slice) -> None:
        """Free the allocation of a job, and remove empty rows at the end."""
        self.rows[allocation.row] &= ~allocation.columns
        while self.rows and not self.rows[-1]:
            self.rows.pop()

    def resources(self, allocation: Slice) -> str:
        """Return the columns of an allocation as an interval set."""
        return interval_text(allocation.columns)

    def place_text(self, allocation: Slice) -> str:
        """Return row and columns as text."""
        return f"row {allocation.row}: {interval_text(allocation.columns)}"

    def violations(self, held: Mapping[int, Slice]) -> list[str]:
        """Compare the rows with the slices that the running jobs hold."""
        found = []
        rows: dict[int, ColumnSet] = {}
        for job, (row, columns) in held.items():
            if both := rows.get(row, 0) & columns:
                found.append(f"job {job} shares columns {interval_text(both)} of row {row}")
            rows[row] = rows.get(row, 0) | columns
        for row in range(max(len(self.rows), *(r + 1 for r in rows), 0)):
            kept = self.rows[row] if row < len(self.rows) else 0
            if wrong := kept ^ rows.get(row, 0):
                found.append(f"columns {interval_text(wrong)} of row {row} are lost or invented")
        if self.rows and not self.rows[-1]:
            found.append(f"row {len(self.rows) - 1} behind the last job is kept")
        return found


Numbers = NDArray[np.int64]

Words = NDArray[np.uint64]

WORD = 64
NONE, ONE = np.uint64(0), np.uint64(1)
LAST = np.uint64(63)


def words_of(masks: Iterable[int], words: int) -> Words:
    """Return sets of columns, given as masks, as words, one set in a row."""
    every = bytearray().join([mask.to_bytes(8 * words, "little") for mask in masks])
    return np.frombuffer(every, dtype="<u8").reshape(-1, words)


def masks_of(columns: Words) -> list[int]:
    """Return sets of columns, one in a row, as masks."""
    every, width = columns.astype("<u8", copy=False).tobytes(), 8 * columns.shape[1]
    return [int.from_bytes(every[at : at + width], "little") for at in range(0, len(every), width)]


def runs_of(columns: Words) -> tuple[Numbers, Numbers, Numbers]:
    """Return first, last and runs of `interval_text` for sets of columns, one in a row."""
    before, after = np.zeros_like(columns), np.zeros_like(columns)
    before[:, 1:], after[:, :-1] = columns[:, :-1] >> LAST, columns[:, 1:] << LAST
    starts = _places(columns & ~(columns << ONE | before))
    stops = _places(columns & ~(columns >> ONE | after)) + 1
    row = starts // (WORD * columns.shape[1])
    runs = np.column_stack((starts, stops)) - (WORD * columns.shape[1] * row)[:, np.newaxis]
    number = np.bincount(row, minlength=len(columns))
    last = number.cumsum()
    return last - number, last, runs


def _places(columns: Words) -> Numbers:
    """Return the places of all bits of an array, in order."""
    every = columns.astype("<u8").view(np.uint8).ravel()
    there = np.flatnonzero(every)
    byte, bit = np.nonzero(np.unpackbits(every[there, np.newaxis], axis=1, bitorder="little"))
    found: Numbers = 8 * there[byte] + bit
    return found


@kernel(allocates=False)
def size(columns: Words) -> int:
    """Return the number of columns of a set."""
    total = 0
    for word in range(len(columns)):
        total += ones(columns[word])
    return total


@kernel(allocates=False)
def overlap(one: Words, other: Words) -> bool:
    """Return whether two sets share a column."""
    both = NONE
    for word in range(len(one)):
        both |= one[word] & other[word]
    return bool(both != NONE)


@kernel(allocates=False)
def copy(columns: Words, copied: Words) -> None:
    """Make a set equal to another."""
    for word in range(len(columns)):
        columns[word] = copied[word]


@kernel(allocates=False)
def add(columns: Words, added: Words) -> None:
    """Add the columns of a set to another."""
    for word in range(len(columns)):
        columns[word] |= added[word]


@kernel(allocates=False)
def remove(columns: Words, removed: Words) -> None:
    """Remove the columns of a set from another."""
    for word in range(len(columns)):
        columns[word] &= ~removed[word]


@kernel(allocates=False)
def move_lowest(left: Words, number: int, taken: Words) -> None:
    """Move the lowest columns of a set, at most `number`, to another set."""
    for word in range(len(left)):
        while number > 0 and left[word]:
            first = left[word] & (~left[word] + ONE)
            left[word] ^= first
            taken[word] |= first
            number -= 1
