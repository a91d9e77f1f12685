"""Migration victim by victim: Algorithm 3 of Li et al. (2015) as their section 6 applies it."""

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
from optsched.solvers.migration.questions import Questions

PLACES = 4096
"""How many places of the large job are looked at, the cheapest."""


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
    """Return the plan that Algorithm 3 finds, if any.

    The bins are the boxes of running jobs and what is free around them. Each bin stands for the
    cheapest place of the large job that takes routers of it, and bins are asked by increasing cost
    of that place; one without a job in its way costs nothing and comes first. A bin is qualified if
    its victims, the jobs in the way, find other hosts one after the other, the largest first: the
    first free box of their best shapes, beside the place, at that moment. Only a victim's own
    routers and those that others have left are free for it besides; no job makes room for a
    victim, and none that has moved is moved again. The first qualified bin wins.

    Parameters
    ----------
    problem : Migration
        The problem. Of its places the 4,096 cheapest are looked at.
    """
    questions = Questions(problem)
    if not questions.may_fit():
        return None
    family = questions.places()
    places, met = family.met_by(family.boxes(None, PLACES))
    asked = np.zeros(met.shape[1], np.bool_)
    left = met.sum(axis=1)  # bins that a place takes routers of and that were not asked
    left[left == 0] = 1  # what is free is a bin, too
    while left.any():
        place = int((left > 0).argmax())
        moves = _hosts(questions, places[place], met[place])
        if moves is not None:
            return problem.plan(moves, Box(*places[place].tolist()))
        # a bin whose cheapest place has failed is not asked again
        left -= met[:, met[place] & ~asked].sum(axis=1)
        asked |= met[place]
    return None


def _hosts(
    questions: Questions, place: NDArray[np.int64], victims: NDArray[np.bool_]
) -> dict[int, Box] | None:
    """Return where the victims of a place go; none if one of them finds no host."""
    free = questions.free.copy()
    fill(free, place, questions.side, False)
    moves = {}
    for job in questions.in_order:
        if not victims[job]:
            continue
        fill(free, questions.boxes[job], questions.side, True)
        fill(free, place, questions.side, False)
        host = first_fit(free, questions.shapes_of(job), questions.side, questions.wrap)
        if host[3] == 0:
            return None
        fill(free, host, questions.side, False)
        moves[job] = Box(*host.tolist())
    return moves
