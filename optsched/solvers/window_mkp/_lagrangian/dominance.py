"""What follows from the choices that are made: room left, choices that are needless or gone."""

from __future__ import annotations

from optsched.compiled import kernel
from optsched.solvers.window_mkp._bands.knapsack import Bools
from optsched.solvers.window_mkp._bands.slots import tighten
from optsched.solvers.window_mkp._reduction import Ints


@kernel
def replaces(better: int, worse: int, weights: Ints, profits: Ints) -> bool:
    """Whether one job is of no more weight and of no less profit than another."""
    return bool(weights[better] <= weights[worse] and profits[better] >= profits[worse])


@kernel
def exchange(domain: Bools, weights: Ints, profits: Ints, where: Ints) -> bool:
    """Drop choices that an exchange shows to be needless, and return whether there were any.

    Where a job of no more weight and no less profit waits, a job that it could replace need not be
    placed; where the other is placed, so can it be. Equal jobs are ranked by number.
    """
    m = domain.shape[0] - 1
    dropped = False
    for worse in range(len(weights)):
        if not domain[m, worse]:
            for better in range(worse):
                if domain[m, better] and replaces(better, worse, weights, profits):
                    domain[m, better] = False
                    dropped = True
        elif where[worse] != m:
            for better in range(worse):
                if where[better] == m and replaces(better, worse, weights, profits):
                    domain[:m, worse] = False
                    dropped = True
                    break
    return dropped


@kernel
def settle(
    domain: Bools,
    weights: Ints,
    profits: Ints,
    capacities: Ints,
    ordered: bool,
    room: Ints,
    where: Ints,
) -> bool:
    """Take stock of a node: the jobs with one choice left, and the room in the slots.

    Choices that no longer fit are removed from `domain` until nothing changes.

    Parameters
    ----------
    domain : bool array, shape (slots + 1, jobs)
        The choices left to each job: the slots, and last not to be placed.
    weights, profits, capacities : arrays
        The instance, jobs by decreasing profit per weight.
    ordered : bool
        Whether larger slots must hold no less weight, see `tighten`.
    room : int64 array, shape (slots,)
        Overwritten by the room that is left and can be filled.
    where : int64 array, shape (jobs,)
        Overwritten by the slot of each settled job, `slots` if it is not placed, -1 if it is free.

    Returns
    -------
    bool
        Whether every job has a choice left and no slot is overfull.
    """
    m = len(capacities)
    changed = True
    while changed:
        changed = False
        room[:] = capacities
        for job in range(len(weights)):
            choices = 0
            where[job] = -1
            for slot in range(m + 1):
                if domain[slot, job]:
                    choices += 1
                    where[job] = slot
            if choices == 0:
                return False
            if choices > 1:
                where[job] = -1
            elif where[job] < m:
                room[where[job]] -= weights[job]
        if room.min() < 0:
            return False
        changed = exchange(domain, weights, profits, where)
        tighten(domain[:m], weights, capacities, where, ordered, room)
        if room.min() < 0:
            return False
        for job in range(len(weights)):
            if where[job] < 0:
                for slot in range(m):
                    if domain[slot, job] and weights[job] > room[slot]:
                        domain[slot, job] = False
                        changed = True
    return True
