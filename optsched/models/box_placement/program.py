"""The 0-1 program of a box placement: set packing over its candidates."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from optsched.boxes.box import Box
from optsched.models.box_placement.problem import BoxPlacement, Placement
from optsched.models.program import UNBOUNDED, Formulation, Program, formulations


@formulations.register("box-placement")
class BoxFormulation(Formulation[BoxPlacement, Placement]):
    """Equations (1) to (4) of the model's page, with a variable for each candidate.

    A kernel writes the rows of routers, which may have tens of millions of entries.
    """

    @cached_property
    def program(self) -> Program:
        """The program, with a variable for each candidate in the order of `Candidates`."""
        from optsched.models.box_placement.candidates import covered, listed

        boxes = self.problem.candidates
        arrays = sides, _, class_of, _, start, at = boxes.as_arrays()
        count, needed = covered(*arrays)
        routers = np.flatnonzero(needed)
        classes, in_router_rows = len(boxes.jobs), int(count[routers].sum())
        row_start = np.zeros(classes + len(routers) + 1, dtype=np.int64)
        class_of_box = np.repeat(class_of, np.diff(start))
        row_start[1 : classes + 1] = np.bincount(class_of_box, minlength=classes)
        row_start[classes + 1 :] = count[routers]
        row_start = row_start.cumsum()
        columns = np.arange(len(at) + in_router_rows)  # candidates are listed class by class
        position = np.full(len(needed), -1, dtype=np.int64)
        position[routers] = row_start[classes:-1]
        listed(sides, class_of, boxes.shapes, start, at, position, columns)
        profits = np.array([self.problem.profits[jobs[0]] for jobs in boxes.jobs], dtype=np.int64)
        row_upper = np.ones(classes + len(routers), dtype=np.int64)
        row_upper[:classes] = [len(jobs) for jobs in boxes.jobs]

        def variable_name(candidate: int) -> str:
            job = boxes.jobs[int(class_of[boxes.piece(candidate)])][0] + 1
            box = boxes.box(candidate)
            return f"x_job{job}_{box.nx}x{box.ny}x{box.nz}_at_{box.x}_{box.y}_{box.z}"

        def row_name(row: int) -> str:
            if row < classes:
                return f"once_job{boxes.jobs[row][0] + 1}"
            x, y, z = np.unravel_index(int(routers[row - classes]), boxes.grid.shape)
            return f"router_{x}_{y}_{z}"

        return Program(
            sense="max",
            objective=profits[class_of_box],
            lower=np.zeros(len(at), dtype=np.int64),
            upper=np.ones(len(at), dtype=np.int64),
            row_start=row_start,
            columns=columns,
            values=np.ones(len(columns), dtype=np.int64),
            row_lower=np.full(len(row_upper), -UNBOUNDED),
            row_upper=row_upper,
            variable_name=variable_name,
            row_name=row_name,
        )

    def decode(self, x: NDArray[np.int64]) -> Placement:
        """Return the box of each job; of equal jobs the first are placed, in the order of boxes."""
        found = self.problem.candidates
        boxes: list[Box | None] = [None] * len(self.problem.waiting)
        unplaced = [iter(jobs) for jobs in found.jobs]
        for candidate in np.flatnonzero(x).tolist():
            job = next(unplaced[found.class_of[found.piece(candidate)]], None)
            if job is not None:  # skip boxes beyond the number of jobs of the class
                boxes[job] = found.box(candidate)
        return tuple(boxes)

    def encode(self, solution: Placement) -> NDArray[np.int64]:
        """Return the 0-1 vector of a placement, which does not distinguish equal jobs."""
        found = self.problem.candidates
        class_of_job = {job: number for number, jobs in enumerate(found.jobs) for job in jobs}
        x = np.zeros(len(found.at), dtype=np.int64)
        for job, box in enumerate(solution):
            if box is not None:
                x[found.number(class_of_job[job], box)] = 1
        return x
