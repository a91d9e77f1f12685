"""The 0-1 program of a window knapsack."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from optsched.models.program import Formulation, Program, ProgramBuilder, formulations
from optsched.models.window_mkp.problem import NOT_PLACED, Assignment, WindowMKP


@formulations.register("window-mkp")
class WindowFormulation(Formulation[WindowMKP, Assignment]):
    """Equations (1) to (4) of the model's page.

    ``x[j, i]`` is 1 if job j is placed in slot i, and fixed to 0 if the job is larger.
    """

    @cached_property
    def program(self) -> Program:
        """The program, with variables x[j, i] by job."""
        weights, capacities = self.problem.weights, self.problem.capacities
        builder = ProgramBuilder("max")
        x = builder.variables(
            "x_job{}_slot{}",
            len(weights),
            len(capacities),
            upper=weights[:, None] <= capacities,
            objective=self.problem.profits[:, None],
        )
        builder.rows("capacity_slot{}", (weights, x.T), at_most=capacities)
        builder.rows("once_job{}", (1, x), at_most=1)
        return builder.build()

    def decode(self, x: NDArray[np.int64]) -> Assignment:
        """Return the slot of each job."""
        jobs, slots = len(self.problem.weights), len(self.problem.capacities)
        if slots == 0:
            return (NOT_PLACED,) * jobs
        placed = np.asarray(x).reshape(jobs, slots)
        slot = np.where(placed.any(axis=1), placed.argmax(axis=1), NOT_PLACED)
        return tuple(slot.tolist())

    def encode(self, solution: Assignment) -> NDArray[np.int64]:
        """Return the 0-1 vector of an assignment."""
        x = np.zeros((len(self.problem.weights), len(self.problem.capacities)), dtype=np.int64)
        for job, slot in enumerate(solution):
            if slot != NOT_PLACED:
                x[job, slot] = 1
        return x.ravel()
