"""Plans in strict order: a job is passed over only where no placement has it and those before it.

Weights can state the order of some `AT_ONCE` jobs exactly. So the problem is solved for the first
ones, which then stay, for the next, and so on; in the end, the placed jobs are the first of all in
lexicographic order, as far as each answer is proven.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from optsched.models.node_placement.problem import NodePlacement, Placements
from optsched.models.node_placement.rules import RuledPlacement, with_rules
from optsched.sites.parts import Ints
from optsched.slurm.order import rank
from optsched.slurm.snapshot import SlurmSnapshot
from optsched.slurm.supply import Supply
from optsched.solvers.result import Result, Status

MOST = 2**30
"""Upper limit of the sum of weights, so that solvers reckon with them exactly."""

AT_ONCE = 16
"""Jobs of which weights state the order at once."""


class Strict(NamedTuple):
    """The answer in strict order."""

    placements: Placements | None  # None if the solver found none
    result: Result | None  # the last answer of the solver
    proven: int  # so many jobs, in order, are proven to be the first ones
    of: int  # of so many that fit alone


def strict(
    posed: SlurmSnapshot,
    supply: Supply,
    # Solves a problem, starting from placements of some of its jobs if there are any
    solve: Callable[[NodePlacement, Placements | None], Result],
) -> Strict:
    """Return the placements of jobs in strict order."""
    rows = posed.rows
    fit = [at for at, row in enumerate(rows) if row.request.fits(supply)]
    order = sorted(fit, key=lambda at: rank(rows[at].job, supply))
    placed: list[int] = []
    best: Placements | None = None
    result: Result | None = None
    proven, closed = 0, True
    for first in range(0, len(order), AT_ONCE):
        block = order[first : first + AT_ONCE]
        one = min(2 ** len(block), MOST // (len(placed) + 2))
        weights = np.zeros(len(rows), dtype=np.int64)
        weights[placed] = one
        for place, at in enumerate(block):
            weights[at] = 2 ** (len(block) - 1 - place)
        result = solve(_weighed(posed.problem, weights, ()), best)
        if result.solution is None or not result.verified:
            return Strict(best, result, proven, len(order))
        best = result.solution
        placed = [at for at in (*placed, *block) if best.nodes[at]]
        closed &= result.status is Status.OPTIMAL
        proven = first + len(block) if closed else proven
    if placed and posed.problem.then:
        weights = np.isin(np.arange(len(rows)), placed).astype(np.int64)
        last = solve(_weighed(posed.problem, weights, posed.problem.then), best)
        if last.verified and last.solution and all(last.solution.nodes[at] for at in placed):
            best, result = last.solution, last
    if best is not None:
        best = best.only(placed)
    return Strict(best, result, proven, len(order))


def _weighed(problem: NodePlacement, weights: Ints, then: Sequence[str]) -> NodePlacement:
    """Return a problem with other weights, and its rules."""
    if isinstance(problem, RuledPlacement):
        return with_rules(_weighed(problem.relaxation, weights, then), problem.rules)
    return replace(problem, weights=weights, then=then)
