"""Propagation in a search node: fixed jobs, residual capacities and dominance."""

from __future__ import annotations

from optsched.compiled import kernel
from optsched.solvers.window_mkp._lagrangian.knapsack import Bools
from optsched.solvers.window_mkp._lagrangian.slots import tighten
from optsched.solvers.window_mkp._reduction import Ints, assign


@kernel
def replaces(better: int, worse: int, weights: Ints, profits: Ints) -> bool:
    """Return whether a job has at most the weight and at least the profit of another."""
    return bool(weights[better] <= weights[worse] and profits[better] >= profits[worse])


@kernel
def exchange(domain: Bools, weights: Ints, profits: Ints, where: Ints) -> bool:
    """Remove dominated choices, and return whether there were any.

    If a job waits, a job that weighs at least as much for at most the profit need not be placed. If
    that one is placed, the other can be placed, too. Equal jobs are ranked by number.
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
def propagate(
    # Choices of each job: the slots, and the last row for not placed; reduced in place, shape
    # (slots + 1, jobs)
    domain: Bools,
    # Instance, jobs by decreasing profit per weight
    weights: Ints,
    profits: Ints,
    capacities: Ints,
    ordered: bool,  # whether larger slots must hold at least as much weight, see `tighten`
    residual: Ints,  # overwritten by the residual capacities that can be filled, shape (slots,)
    # Overwritten by the slot of each fixed job, `slots` if not placed, -1 if the job is free,
    # shape (jobs,)
    where: Ints,
) -> bool:
    """Remove infeasible and dominated choices of a node until nothing changes.

    Result: whether every job has a choice and no slot is overfull.
    """
    m = len(capacities)
    changed = True
    while changed:
        changed = False
        assign(residual, capacities)
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
                residual[where[job]] -= weights[job]
        for slot in range(m):
            if residual[slot] < 0:
                return False
        changed = exchange(domain, weights, profits, where)
        tighten(domain[:m], weights, capacities, where, ordered, residual)
        for slot in range(m):
            if residual[slot] < 0:
                return False
        for job in range(len(weights)):
            if where[job] < 0:
                for slot in range(m):
                    if domain[slot, job] and weights[job] > residual[slot]:
                        domain[slot, job] = False
                        changed = True
    return True
