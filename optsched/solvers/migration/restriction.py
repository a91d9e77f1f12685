"""Restriction of a migration problem to few movable jobs, for generic solvers on a large torus."""

from __future__ import annotations

from optsched.models.migration import Migration


def restricted(problem: Migration, places: int) -> Migration:
    """Return the problem with only the jobs movable that overlap the cheapest places.

    `places` is the number of these places of the large job. Plans that move further jobs are
    excluded, so the restricted problem may have a worse optimum, or be infeasible.
    """
    from optsched.solvers.migration.subproblems import Subproblems

    obstacles = 0
    for place in Subproblems(problem).places().cheapest(None, places):
        obstacles |= place.jobs
    given = {field.name: getattr(problem, field.name) for field in problem.schema.fields}
    movable = [job for job in problem.movers if obstacles >> job & 1]
    return Migration(**given | {"movable": movable})
