"""How much room rows can have, and what waiting jobs can make of it at most."""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from typing import TYPE_CHECKING

from optsched.column_sets import loads

if TYPE_CHECKING:
    from optsched.models.gang_packing import GangPacking


class Room:
    """The most columns that waiting jobs can have in so many of so many rows.

    Where running jobs keep their rows, that is what is free in the emptiest rows. Where they may
    change, a column on which l jobs stand is taken in at least l - (k - m) of any m of k rows.

    Parameters
    ----------
    problem : GangPacking
        The problem.

    Attributes
    ----------
    least_rows : int
        Fewest rows that the running jobs can stand in, as far as this tells.
    everywhere : list of int, length rows + 1
        For each number of rows k, the mask of the columns that are taken in each of the k rows,
        wherever running jobs go; 0 where they keep their rows.
    """

    def __init__(self, problem: GangPacking) -> None:
        held = problem.occupied(problem.rows_of_running)
        self._columns = problem.columns
        self._free: list[int] = []
        self._taken: list[int] = []
        self.everywhere = [0] * (problem.rows + 1)
        if problem.rerow:
            levels = loads(held)
            self.least_rows = len(levels)
            self._taken = [mask.bit_count() for mask in levels] + [0] * problem.rows
            for rows, crowded in enumerate(levels, start=1):
                self.everywhere[rows] = crowded
        else:
            free = [problem.columns - mask.bit_count() for mask in held if mask]
            self._free = sorted(free, reverse=True)
            self.least_rows = len(free)

    def of(self, rows: int) -> list[int]:
        """Return the most room in the 0, 1, ... emptiest of `rows` rows; from `least_rows` on."""
        room = [0]
        if self._taken:
            for level in reversed(self._taken[:rows]):
                room.append(room[-1] + self._columns - level)
            return room
        empty = [self._columns] * (rows - self.least_rows)
        for free in empty + self._free:
            room.append(room[-1] + free)
        return room

    def of_each(self, rows: int) -> list[int] | None:
        """Return the room of each row, if running jobs keep theirs; none if they may change."""
        if self._taken:
            return None
        return [self._columns] * (rows - self.least_rows) + self._free


def longest_prefix(sizes: Sequence[int], room: Sequence[int]) -> int:
    """Return how many jobs from the front of the queue may fit, at most.

    The m largest of them stand in m rows at most, for every m; and of one more than there are rows
    two stand in one row.

    Parameters
    ----------
    sizes : sequence of int
        Of the waiting jobs.
    room : sequence of int, length rows + 1
        As `Room.of` returns it.
    """
    rows, total = len(room) - 1, 0
    largest: list[int] = []  # by falling size, negative
    for count, size in enumerate(sizes):
        total += size
        if total > room[-1]:
            return count
        insort(largest, -size)
        del largest[rows + 1 :]
        together = 0
        for size_of_next, most in zip(largest, room[1:]):
            together -= size_of_next
            if together > most:
                return count
        if len(largest) > rows and -largest[rows - 1] - largest[rows] > room[1]:
            return count
    return len(sizes)


def largest_sum(sizes: Sequence[int], room: Sequence[int], each: Sequence[int] | None) -> int:
    """Return the most columns that some of the waiting jobs can take together, at most.

    Of jobs that are larger than half of every row, m stand in m rows. All sums are exact: bit s of
    an integer tells whether some jobs have s columns together.

    Parameters
    ----------
    sizes : sequence of int
        Of the waiting jobs.
    room : sequence of int, length rows + 1
        As `Room.of` returns it.
    each : sequence of int or None
        As `Room.of_each` returns it.
    """
    fitting = [sizes[job] for job in needed(sizes, room)]
    within = [(1 << (most + 1)) - 1 for most in room]
    sums = [1] + [0] * (len(room) - 1)
    everything = 1
    for size in fitting:
        if 2 * size > room[1]:
            for count in range(len(room) - 1, 0, -1):
                sums[count] |= sums[count - 1] << size & within[count]
    for some in sums[1:]:
        everything |= some
    single = 1
    for size in fitting:
        if 2 * size <= room[1]:
            everything |= everything << size & within[-1]
        if each is not None:
            single |= single << size & within[1]
    most = everything.bit_length() - 1
    if each is None:
        return most
    fills = sum((single & ((1 << (free + 1)) - 1)).bit_length() - 1 for free in each)
    return min(most, fills)


def needed(sizes: Sequence[int], room: Sequence[int]) -> list[int]:
    """Return the jobs that fit at all, of equal ones no more than can have room together."""
    together: dict[int, int] = {}
    jobs = []
    for job, size in enumerate(sizes):
        if len(room) > 1 and size <= room[1]:
            together[size] = together.get(size, 0) + size
            if together[size] <= room[-1]:
                jobs.append(job)
    return jobs
