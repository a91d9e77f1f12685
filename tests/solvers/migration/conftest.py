"""Optima by trying everything."""

from __future__ import annotations

from boxes.trying_boxes import boxes_of, cheapest, choices_of, extents_of, holes_of

from optsched.models import Migration

SWAP = Migration(
    (8, 1, 1),
    ["3x1x1@0,0,0", "2x1x1@5,0,0"],
    sizes=[3, 2],
    elapsed=[20, 10],
    incoming=2,
    holes=["1x1x1@4,0,0"],
    wrap=(False, False, False),
)
"""The large job has room if the others change places; neither can leave before the other."""


def optimum_of(problem):
    """Try every place of the large job, and every box for every job, but for what costs more."""
    holes, choices = holes_of(problem), choices_of(problem)
    best = None
    for _, cells in boxes_of(problem, extents_of(problem, problem.incoming)):
        if not cells & holes:
            best = cheapest(choices, holes | cells, best)
    return best
