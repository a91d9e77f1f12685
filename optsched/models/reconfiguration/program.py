"""The 0-1 program of a reconfiguration.

Every variable is a box of a job: first the boxes of the waiting jobs, class by class, then for each
movable job its present box, which stands for staying, and its possible new boxes. The jobs of a
class, see `Reconfiguration.alike`, share the variables of its first job.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from optsched.boxes.box import Box
from optsched.models.migration.program import BoxVariables, box_variables
from optsched.models.program import Formulation, Program, ProgramBuilder, formulations
from optsched.models.reconfiguration.problem import Arrangement, Reconfiguration

Ints = NDArray[np.int64]


@formulations.register("reconfiguration")
class ReconfigurationFormulation(Formulation[Reconfiguration, Arrangement]):
    """Equations (1) to (5) of the model's page."""

    @cached_property
    def program(self) -> Program:
        """The program, with variables in the order that the module's docstring states."""
        problem, found = self.problem, self.variables
        running = len(problem.running)
        starts = found.job >= running
        moves = ~starts & ~found.stays
        cost = np.zeros(len(found.job), dtype=np.int64)
        cost[moves] = np.array(problem.costs, dtype=np.int64)[found.job[moves]]
        first = [jobs[0] for jobs in problem.alike]
        most = np.array([len(jobs) for jobs in problem.alike], dtype=np.int64)
        least = np.where([job in problem.required for job in first], most, 0)
        worth = problem.worth * np.array([problem.profits[job] for job in first], dtype=np.int64)
        builder = ProgramBuilder("min")

        def name(variable: int) -> str:
            return found.name(variable, running, "start{}")

        v = builder.variables(name, range(len(found.job)), objective=cost)
        z = builder.variables(
            "started{}", [job + 1 for job in first], lower=least, upper=most, objective=-worth
        )
        for number, job in enumerate(first):
            boxes = v[found.job == running + job]
            builder.row(f"start{job + 1}", (1, boxes), (-1, z[number : number + 1]), equal=0)
        once = (1, v[~starts], found.job[~starts])
        builder.ragged_rows("once_job{}", (running,), once, equal=1)
        found.add_router_rows(builder, v, problem.grid)
        areas = [min(map(math.prod, shapes), default=0) for _, shapes, _ in problem.choices()]
        of_running = sum(areas[len(first) :])
        area = int(np.count_nonzero(problem.place_room())) - of_running
        builder.row("area", (np.array(areas[: len(first)], dtype=np.int64), z), at_most=area)
        return builder.build(offset=int((worth * most).sum()))

    def decode(self, x: Ints) -> Arrangement:
        """Return the arrangement of a vector; of a class, the first jobs start."""
        running = self.problem.running
        destinations: dict[int, Box] = {}
        boxes: list[Box | None] = [None] * len(self.problem.waiting)
        not_placed = {len(running) + jobs[0]: iter(jobs) for jobs in self.problem.alike}
        settled = set()
        for job, box in self.variables.chosen(x[: len(self.variables.job)]):
            if job >= len(running):
                # skip boxes beyond the number of jobs of the class
                if (waiting := next(not_placed[job], None)) is not None:
                    boxes[waiting] = box
            elif job not in settled:
                settled.add(job)  # the first of several boxes wins
                if box != running[job]:
                    destinations[job] = box
        return self.problem.arrangement(destinations, boxes)

    def encode(self, solution: Arrangement) -> Ints:
        """Return the 0-1 vector of an arrangement, which does not distinguish jobs of a class.

        Nor does the vector state the order of the moves.
        """
        problem, running = self.problem, len(self.problem.running)
        first_of = {job: jobs[0] for jobs in problem.alike for job in jobs}
        kept = dict(enumerate(problem.running)) | solution.destinations
        started = [
            (running + first_of[job], box)
            for job, box in enumerate(solution.boxes)
            if box is not None
        ]
        count = {jobs[0]: 0 for jobs in problem.alike}
        for job, _ in started:
            count[job - running] += 1
        boxes = self.variables.vector([*kept.items(), *started])
        return np.concatenate((boxes, np.array([*count.values()], dtype=np.int64)))

    @cached_property
    def variables(self) -> BoxVariables:
        """The variables of the program."""
        return box_variables(self.problem)
