"""The Ousterhout matrix, whose rows take turns on the processors: ``matrix:N``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from optsched.column_sets import ColumnSet, interval_text, lowest
from optsched.errors import InputError
from optsched.machines.machine import Machine
from optsched.numbers import parse_integer
from optsched.registry import machines

MOST_COLUMNS = 1 << 20
"""More are taken for a mistake: a set of columns has a bit for each."""


class Slice(NamedTuple):
    """What a job holds of a matrix.

    Parameters
    ----------
    row : int
        The time slice, from 0.
    columns : int
        The processors, as a set: see `optsched.column_sets`.
    """

    row: int
    columns: ColumnSet


@machines.register("matrix")
class Matrix(Machine):
    """Identical processors (columns) that are shared in time slices (rows).

    A job holds some columns in one row; the jobs of a row run at the same time, and the rows take
    turns. There is a row more whenever a policy claims one, and no row behind the last job.

    Parameters
    ----------
    size : int
        Number of columns.

    Attributes
    ----------
    rows : list of int
        The columns that are held in each row, as sets.

    Raises
    ------
    InputError
        If there is not at least one column, or more than `MOST_COLUMNS`.

    References
    ----------
    J. Ousterhout, "Scheduling techniques for concurrent systems", ICDCS 1982.

    Examples
    --------
    >>> machine = Matrix(8)
    >>> held = machine.allocate(5), machine.allocate(4), machine.allocate(3)
    >>> [(job.row, machine.resources(job)) for job in held]
    [(0, '0-4'), (1, '0-3'), (0, '5-7')]
    """

    usage = "matrix:NUMBER"
    time_shared = True

    def __init__(self, size: int) -> None:
        if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= MOST_COLUMNS:
            expected = f"expected a whole number from 1 to {MOST_COLUMNS:,}"
            raise InputError(f"matrix of {size!r} columns; {expected}")
        self.size = size
        self.rows: list[ColumnSet] = []
        self._all = (1 << size) - 1

    @classmethod
    def from_spec(cls, text: str) -> Matrix:
        """Build ``matrix:<text>``."""
        try:
            size = parse_integer(text)
        except ValueError:
            raise InputError(f"machine 'matrix:{text}'; expected {cls.usage}") from None
        return cls(size)

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> Matrix:
        """Build the machine from its only key, ``size``."""
        if set(table) != {"size"}:
            raise InputError(f"keys {sorted(table)}; expected size, the number of processors")
        return cls(table["size"])

    @property
    def spec(self) -> str:
        """The specification that builds this machine again."""
        return f"matrix:{self.size}"

    @property
    def free(self) -> int:  # type: ignore[override]  # what no row holds
        """Number of processors that no job holds in any row."""
        held = 0
        for row in self.rows:
            held |= row
        return self.size - held.bit_count()

    def emptied(self) -> Matrix:
        """Return a matrix of as many columns without a row."""
        return Matrix(self.size)

    def allocate(self, processors: int) -> Slice:
        """Give a job the first free columns of the first row that has enough, or of a new row."""
        rows = [*self.rows, 0]
        row = next(r for r, held in enumerate(rows) if self.size - held.bit_count() >= processors)
        return self.claim(Slice(row, lowest(self._all & ~rows[row], processors)), processors)

    def claim(self, place: Slice, processors: int) -> Slice:
        """Give a job the row and columns that a policy chose."""
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
        """Take back what a job held, and the rows behind the last one in use."""
        self.rows[allocation.row] &= ~allocation.columns
        while self.rows and not self.rows[-1]:
            self.rows.pop()

    def is_contiguous(self, allocation: Slice) -> bool:
        """Return whether the columns lie side by side."""
        columns = allocation.columns
        return columns & (columns + (columns & -columns)) == 0

    def resources(self, allocation: Slice) -> str:
        """Return the columns of an allocation as an interval set."""
        return interval_text(allocation.columns)

    def place_text(self, allocation: Slice) -> str:
        """Return row and columns."""
        return f"row {allocation.row}: {interval_text(allocation.columns)}"

    def violations(self, held: Mapping[int, Slice]) -> list[str]:
        """Compare the rows with what the running jobs hold."""
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
