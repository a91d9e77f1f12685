"""Migrations of fewer jobs, which generic solvers can answer on a large torus."""

from __future__ import annotations

from optsched.models.migration import Migration


def narrowed(problem: Migration, places: int) -> Migration:
    """Return the problem with fewer jobs that may be moved.

    They are those in the way of the large job's cheapest places. So these places stay possible, but
    a plan that moves others besides does not: the optimum may be dearer, or there may be none.

    Parameters
    ----------
    problem : Migration
        The problem.
    places : int
        How many places.
    """
    from optsched.solvers.migration.questions import Questions

    in_the_way = 0
    for place in Questions(problem).places().cheapest(None, places):
        in_the_way |= place.jobs
    given = {field.name: getattr(problem, field.name) for field in problem.schema.fields}
    movable = [job for job in problem.movers if in_the_way >> job & 1]
    return Migration(**given | {"movable": movable})
