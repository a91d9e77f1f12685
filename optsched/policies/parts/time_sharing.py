"""How the jobs of an Ousterhout matrix share the time: the part of it that each job runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from optsched.column_sets import ColumnSet, loads
from optsched.machines.matrix import Slice

Sharing = Callable[[Mapping[int, Slice], Sequence[ColumnSet], float], dict[int, float]]
"""From what each job holds, the columns in use of each row, and the part of a turn that is left
after a context switch, to the share of the time of each job."""


def by_rows(
    held: Mapping[int, Slice], rows: Sequence[ColumnSet], useful: float
) -> dict[int, float]:
    """Let the rows take equal turns; a job runs in its own, and is switched if there are more."""
    turns = sum(1 for row in rows if row)
    return dict.fromkeys(held, 1.0 if turns <= 1 else useful / turns)


def filled(held: Mapping[int, Slice], rows: Sequence[ColumnSet], useful: float) -> dict[int, float]:
    """Let the rows take equal turns; a job also runs in rows where all its columns are idle.

    The jobs that were submitted first fill first. A job that runs in every row is never switched;
    any other is in each of its turns.
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
    """Let each processor's time be shared by the jobs on it; a job goes as its busiest processor.

    A relaxation: no processor gives away more than all its time, but there need not be a schedule
    in which all processes of a job run together. Of three jobs that share a processor pairwise,
    each has half of the time here; one after the other, as a gang, each would have a third.
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
