"""Admission of waiting jobs one by one: a stage of a reconfiguration is a migration problem."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from optsched.boxes.box import Box
from optsched.models.migration import Migration, Plan
from optsched.models.reconfiguration import Arrangement, Reconfiguration


class Stage:
    """State of a reconfiguration after some waiting jobs have got a box.

    A waiting job with a box can be moved free of charge, as it has not started yet, and so can a
    running job that moves in any case. A waiting job that takes routers of an ending job stays,
    since a migration moves jobs at once.
    """

    def __init__(self, problem: Reconfiguration) -> None:
        self.problem = problem
        # Present box of each job that has one, by its number: running jobs from 0, then
        # waiting ones
        self.boxes: dict[int, Box] = dict(enumerate(problem.running))

    def migration(self, job: int) -> Migration:
        """Return the problem of admitting a waiting job by moving jobs that have a box."""
        old = self.problem.running
        changed = [(at, box) for at, box in self.boxes.items() if at >= len(old) or box != old[at]]
        return _migration(self.problem, job, tuple(changed))

    def carry_out(self, job: int, plan: Plan) -> None:
        """Move jobs as in a plan of `migration`, and give the waiting job its box."""
        assert plan.place is not None
        jobs = list(self.boxes)
        for at, box in plan.destinations.items():
            self.boxes[jobs[at]] = box
        self.boxes[len(self.problem.running) + job] = plan.place

    def arrangement(self) -> Arrangement:
        """Return the arrangement in which all jobs have their present boxes."""
        running = self.problem.running
        moved = {job: self.boxes[job] for job, box in enumerate(running) if self.boxes[job] != box}
        waiting = range(len(running), len(running) + len(self.problem.waiting))
        return self.problem.arrangement(moved, [self.boxes.get(job) for job in waiting])


@lru_cache
def _migration(
    problem: Reconfiguration, job: int, changed: tuple[tuple[int, Box], ...]
) -> Migration:
    # cached, because a solver and its fallback begin with one stage, which then is solved once
    running, state = len(problem.running), dict(enumerate(problem.running)) | dict(changed)
    boxes = [*state.values()]
    admitted = [problem.waiting[at - running] for at in [*state][running:]]
    further = [
        at
        for at, box in enumerate(boxes[running:], running)
        if _beside_ending(problem)[problem.grid.routers_of(box)].all()
    ]
    own = zip(problem.elapsed, boxes, problem.running)
    return Migration.trusted(
        **problem.torus_fields,
        running=tuple(boxes),
        sizes=(*problem.sizes, *admitted),
        elapsed=(*[time if box == old else 0 for time, box, old in own], *[0] * len(admitted)),
        movable=(*sorted(problem.movers), *further),
        shapes=problem.shapes,
        running_jobs=None,
        incoming=problem.waiting[job],
        incoming_job=None,
        ending=problem.ending,  # a waiting job that takes a part of them stays
    )


@lru_cache
def _beside_ending(problem: Reconfiguration) -> NDArray[np.bool_]:
    return problem.grid.free_of(problem.ending)
