"""Migration of victims one by one: Algorithm 3 of Li et al. (2015), as applied in section 6."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optsched.boxes._anchors import first_fit
from optsched.boxes._rows import fill
from optsched.boxes.box import Box
from optsched.models.migration import Migration, Plan
from optsched.registry import solvers
from optsched.solvers.heuristic import Heuristic
from optsched.solvers.migration._cheapest_boxes import mark_overlaps, next_to_examine
from optsched.solvers.migration.subproblems import Subproblems

PLACES = 4096
"""Number of cheapest places of the large job that are examined."""


@solvers.register("migration-based")
@dataclass(frozen=True)
class MigrationBased(Heuristic):
    """Move the jobs in the way of the large one, the first of its places where all find hosts.

    Algorithm 3 of Li et al. 2015 as their section 6 applies it, see `find_plan`. Work is counted in
    jobs.

    References
    ----------
    K. Li, M. Malawski, J. Nabrzyski, "Topology-aware scheduling on Blue Waters with proactive
    queue scanning and migration-based job placement", JSSPP 2015.
    """

    models = frozenset({"migration"})
    work_unit = "jobs"
    seconds_per_work = 5e-5

    def place(self, problem: Migration) -> Plan | None:
        """Return the plan, if there is one, by Algorithm 3."""
        return find_plan(problem)

    def effort(self, problem: Migration) -> int:
        """Return the number of jobs that may be migrated."""
        return len(problem.running)


def find_plan(problem: Migration) -> Plan | None:
    """Return the plan of Algorithm 3, or None if the algorithm fails.

    The bins are the boxes of running jobs and the free routers around them. Each bin is represented
    by the cheapest place of the large job that takes routers of the bin. Bins are examined by
    increasing cost of that place, which is 0 if it overlaps no job. A bin is qualified if its
    victims, the jobs that overlap the place, find hosts one by one, largest first: the first free
    box of their best shapes outside the place. A victim may use its own routers and those of
    victims that have moved; no job is moved twice or on behalf of a victim. The first qualified bin
    is chosen. Only the 4,096 cheapest places are examined.
    """
    subproblems = Subproblems(problem)
    if not subproblems.may_fit():
        return None
    family = subproblems.places()
    places = family.places_of(family.boxes(None, PLACES))
    boxes, sides = subproblems.boxes, subproblems.sides
    movers = np.array(problem.movers, dtype=np.int64)
    examined, victims = np.zeros((2, len(boxes)), np.bool_)
    number = next_to_examine(places, 0, boxes, movers, sides, examined)
    while number < len(places):
        place = places[number]
        mark_overlaps(place[np.newaxis], boxes, sides, victims[np.newaxis])
        moves = _hosts(subproblems, place, victims)
        if moves is not None:
            return problem.plan(moves, Box(*place.tolist()))
        examined |= victims  # a bin is examined only with its cheapest place
        number = next_to_examine(places, number + 1, boxes, movers, sides, examined)
    return None


def _hosts(
    subproblems: Subproblems, place: NDArray[np.int64], victims: NDArray[np.bool_]
) -> dict[int, Box] | None:
    """Return the new boxes of the victims of a place, or None if a victim finds no host."""
    free = subproblems.free.copy()
    fill(free, place, subproblems.side, False)
    moves = {}
    for job in subproblems.in_order:
        if not victims[job]:
            continue
        fill(free, subproblems.boxes[job], subproblems.side, True)
        fill(free, place, subproblems.side, False)
        host = first_fit(free, subproblems.shapes_of(job), subproblems.side, subproblems.wrap)
        if host[3] == 0:
            return None
        fill(free, host, subproblems.side, False)
        moves[job] = Box(*host.tolist())
    return moves
