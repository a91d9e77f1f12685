"""Shares of time of the jobs in an Ousterhout matrix, and the turns of its rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from optsched.column_sets import ColumnSet, loads
from optsched.machines.matrix import Slice

Sharing = Callable[[Mapping[int, Slice], Sequence[ColumnSet], float], dict[int, float]]
"""Function from the slice of each job, the columns in use of each row, and the useful part of a
time slice after a context switch, to the share of time of each job."""


def by_rows(
    held: Mapping[int, Slice], rows: Sequence[ColumnSet], useful: float
) -> dict[int, float]:
    """Give rows equal turns; a job runs in its own row, and is switched if there are others."""
    turns = sum(1 for row in rows if row)
    return dict.fromkeys(held, 1.0 if turns <= 1 else useful / turns)


def filled(held: Mapping[int, Slice], rows: Sequence[ColumnSet], useful: float) -> dict[int, float]:
    """Give rows equal turns; a job also runs in rows in which all its columns are idle.

    Jobs fill rows in the order of submission. A job that runs in every row is never switched; any
    other job is switched at each of its turns.
    """
    used = [row for row in rows if row]
    if len(used) <= 1:
        return dict.fromkeys(held, 1.0)
    turns = dict.fromkeys(held, 0)
    for row, busy in enumerate(rows):
        if not busy:
            continue
        for job in sorted(held):
            place = held[job]
            if place.row == row:
                turns[job] += 1
            elif not busy & place.columns:
                busy |= place.columns
                turns[job] += 1
    return {
        job: 1.0 if count == len(used) else useful * count / len(used)
        for job, count in turns.items()
    }


def by_nodes(
    held: Mapping[int, Slice], rows: Sequence[ColumnSet], useful: float
) -> dict[int, float]:
    """Share each processor's time among its jobs; a job has the speed of its busiest processor.

    This is a relaxation: no processor is used more than all the time, but a schedule in which all
    processes of a job run together need not exist. Three jobs that share processors pairwise have
    half of the time each; as gangs, in turn, they would have a third.
    """
    levels = loads(rows)
    shares = {}
    for job, place in held.items():
        load = 1
        while load < len(levels) and levels[load] & place.columns:
            load += 1
        shares[job] = 1.0 if load == 1 else useful / load
    return shares


SHARINGS: Mapping[str, Sharing] = {"rows": by_rows, "fill": filled, "nodes": by_nodes}


class Turns:
    """The turns of the rows in use, one after the other, each for a time slice.

    A row that is alone in use has one turn after the other. If the row on turn becomes empty, the
    turn of the next one begins at once.

    Parameters
    ----------
    time_slice : float
        Length of a turn in seconds.

    Attributes
    ----------
    row : int or None
        The row on turn, None if no row is in use.
    ends : float
        The time at which its turn ends, in seconds.
    """

    def __init__(self, time_slice: float) -> None:
        self.time_slice = time_slice
        self.row: int | None = None
        self.ends = math.inf

    def advance(self, now: float, rows: Sequence[ColumnSet]) -> None:
        """Find the row on turn, by the columns in use of each row; time never goes back."""
        used = [row for row, columns in enumerate(rows) if columns]
        if self.row in used:
            if now < self.ends:
                return
            over = (now - self.ends) % self.time_slice
            if over:  # the row was alone until now
                self.ends = now - over + self.time_slice
                return
        self.ends = now + self.time_slice
        last = -1 if self.row is None else self.row
        self.row = min(used, key=lambda row: (row <= last, row), default=None)
