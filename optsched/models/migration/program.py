"""The 0-1 program of a migration.

Every variable is a box of a job: first the boxes of the large job, then for each movable job its
present box, which stands for staying, and its possible new boxes.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from optsched.boxes.box import Box
from optsched.models.box_variables import BoxVariables, box_variables
from optsched.models.formulation import Formulation, formulations
from optsched.models.migration.problem import Migration, Plan
from optsched.models.program import Program, ProgramBuilder

Ints = NDArray[np.int64]


@formulations.register("migration")
class MigrationFormulation(Formulation[Migration, Plan]):
    """Equations (1) to (5) of the model's page."""

    @cached_property
    def program(self) -> Program:
        """The program, with variables in the order that the module's docstring states."""
        problem, found = self.problem, self.variables
        running = len(problem.running)
        is_place = found.job == running
        moves = ~is_place & ~found.stays
        cost = np.zeros(len(found.job), dtype=np.int64)
        cost[moves] = np.array(problem.costs, dtype=np.int64)[found.job[moves]]
        builder = ProgramBuilder("min")

        def name(variable: int) -> str:
            return found.name(variable, running, "place")

        v = builder.variables(name, range(len(found.job)), objective=cost)
        builder.row("place", (1, v[is_place]), equal=1)
        once = (1, v[~is_place], found.job[~is_place])
        builder.ragged_rows("once_job{}", (running,), once, equal=1)
        found.add_router_rows(builder, v, problem.grid)
        return builder.build()

    def decode(self, x: Ints) -> Plan:
        """Return the moves of a vector, in the order of `Migration.plan`."""
        destinations: dict[int, Box] = {}
        place = None
        running = self.problem.running
        for job, box in reversed(self.variables.chosen(x)):  # the first of several boxes wins
            if job == len(running):
                place = box
            elif box == running[job]:
                destinations.pop(job, None)
            else:
                destinations[job] = box
        return self.problem.plan(destinations, place)

    def encode(self, solution: Plan) -> Ints:
        """Return the 0-1 vector of a plan, which does not state the order of the moves."""
        boxes = dict(enumerate(self.problem.running)) | solution.destinations
        if solution.place is not None:
            boxes[len(self.problem.running)] = solution.place
        return self.variables.vector(boxes.items())

    @cached_property
    def variables(self) -> BoxVariables:
        """The variables of the program."""
        return box_variables(self.problem)
