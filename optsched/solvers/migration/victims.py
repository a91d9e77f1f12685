"""Migration victim by victim: Algorithm 3 of Li et al. (2015) as their section 6 applies it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from optsched.boxes._anchors import first_fit
from optsched.boxes.box import Box
from optsched.models.migration import Migration, Plan
from optsched.solvers.migration._packing import fill
from optsched.solvers.migration.questions import Question, Questions

PLACES = 4096
"""How many places of the large job are looked at, the cheapest."""


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
    asked = 0
    for place in _cheapest(questions):
        # a bin whose cheapest place has failed is not asked again
        if place.jobs and not place.jobs & ~asked:
            continue
        asked |= place.jobs
        moves = _hosts(questions, place)
        if moves is not None:
            return problem.plan(moves, Box(*place.place))
    return None


def _cheapest(questions: Questions) -> Iterator[Question]:
    """Yield the cheapest places of the large job, `PLACES` of them."""
    places, looked_at = questions.places(), 0
    while places.cost is not None and looked_at < PLACES:
        portion = places.cheapest(None)[: PLACES - looked_at]
        looked_at += len(portion)
        yield from portion


def _hosts(questions: Questions, place: Question) -> dict[int, Box] | None:
    """Return where the victims of a place go; none if one of them finds no host."""
    free = questions.free.copy()
    box = np.array(place.place)
    fill(free, box, questions.side, False)
    moves = {}
    for job in questions.listed(place.jobs):
        fill(free, questions.boxes[job], questions.side, True)
        fill(free, box, questions.side, False)
        host = first_fit(free, questions.shapes_of(job), questions.side, questions.wrap)
        if host[3] == 0:
            return None
        fill(free, host, questions.side, False)
        moves[job] = Box(*host.tolist())
    return moves
