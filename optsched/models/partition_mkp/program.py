"""The 0-1 program of a partition knapsack.

Levels are those of the two-level packing model of Lodi, Martello and Vigo: the first of the highest
jobs of a shelf leads the shelf, and the first of the highest shelves of a layer leads the layer.
This breaks the symmetry between shelves and between layers.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.boxes.layer_shapes import layer_shape
from optsched.models.partition_mkp.problem import PartitionMKP, Place, Placement
from optsched.models.program import Formulation, Program, ProgramBuilder, formulations

Ints = NDArray[np.int64]

WHOLE, SHELF, LAYER = range(3)
"""Kinds of variables: a job holds whole layers; stands on a leader's shelf; leads a shelf in a
leader's layer."""


class Variables(NamedTuple):
    """The variables of the program, sorted by bin, kind, leader and job.

    There are variables for possible pairs only: the job fits into the bin, follows its leader in
    the order of heights, and both fit side by side. The kind is `WHOLE` (w on the model's page),
    `SHELF` (x) or `LAYER` (z). A job that leads, or holds whole layers, is its own leader.
    """

    bin: Ints
    kind: Ints
    leader: Ints
    job: Ints

    def name(self, variable: int) -> str:
        """Return the name of a variable."""
        of_bin, kind, leader, job = (int(array[variable]) for array in self)
        symbol, of = (("w", ""), ("x", f"_shelf{leader + 1}"), ("z", f"_layer{leader + 1}"))[kind]
        return f"{symbol}_bin{of_bin + 1}{of}_job{job + 1}"

    def keys(self, jobs: int) -> Ints:
        """Return a unique number for each variable, ascending."""
        keys: Ints = ((self.bin * 3 + self.kind) * jobs + self.leader) * jobs + self.job
        return keys


@formulations.register("partition-mkp")
class PartitionFormulation(Formulation[PartitionMKP, Placement]):
    """Equations (1) to (7) of the model's page."""

    @cached_property
    def program(self) -> Program:
        """The program, with variables in the order of `Variables`."""
        problem = self.problem
        of_bin, kind, leader, job = self.variables
        jobs, bins = len(problem.waiting), len(problem.bins)
        extents = np.array(problem.bins, dtype=np.int64).reshape(-1, 6)[:, 3:]
        wide, deep, high = self._shapes[of_bin, job].T
        whole, shelf, layer, leads = kind == WHOLE, kind == SHELF, kind == LAYER, leader == job
        # rows of a bin and a job, which either leads or stands on a shelf
        led, stands = of_bin * jobs + leader, of_bin * jobs + job
        profits = np.array(problem.profits, dtype=np.int64)
        builder = ProgramBuilder("max")
        v = builder.variables(
            self.variables.name, range(len(job)), objective=np.where(layer, 0, profits[job])
        )
        builder.ragged_rows("once_job{}", (jobs,), (1, v[~layer], job[~layer]), at_most=1)
        first = layer & leads
        builder.ragged_rows(
            "layers_bin{}",
            (bins,),
            (deep[whole], v[whole], of_bin[whole]),
            (1, v[first], of_bin[first]),
            at_most=extents[:, 1],
        )
        for name, here, size, most in (
            ("width_bin{}_job{}", shelf, wide, extents[of_bin, 0]),
            ("height_bin{}_job{}", layer, high, extents[of_bin, 2]),
        ):
            beside = here & ~leads
            first = here & leads & np.isin(led, led[beside])
            builder.ragged_rows(
                name,
                (bins, jobs),
                (size[beside], v[beside], led[beside]),
                ((size - most)[first], v[first], led[first]),
                at_most=0,
            )
        first = shelf & leads
        builder.ragged_rows(
            "stands_bin{}_job{}",
            (bins, jobs),
            (1, v[layer], stands[layer]),
            (-1, v[first], led[first]),
            equal=0,
        )
        return builder.build()

    def decode(self, x: Ints) -> Placement:
        """Return the places of a vector."""
        chosen = np.flatnonzero(x)
        rows = list(zip(*(array[chosen].tolist() for array in self.variables)))
        layer_of = {(b, job): leader for b, kind, leader, job in rows if kind == LAYER}
        places: list[Place | None] = [None] * len(self.problem.waiting)
        for b, kind, leader, job in rows:
            if kind != LAYER:
                places[job] = Place(b, layer_of.get((b, leader), leader), leader)
        return tuple(places)

    def encode(self, solution: Placement) -> Ints:
        """Return the 0-1 vector of a placement."""
        wanted = []
        for job, place in enumerate(solution):
            if place is not None:
                b, layer, shelf = place
                wanted.append((b, SHELF, shelf, job))
                if shelf == job:
                    wanted += [(b, LAYER, layer, job), (b, WHOLE, job, job)]
        jobs = len(solution)
        chosen = Variables(*np.array(wanted, dtype=np.int64).reshape(-1, 4).T)
        return np.isin(self.variables.keys(jobs), chosen.keys(jobs)).astype(np.int64)

    @cached_property
    def variables(self) -> Variables:
        """The variables of the program."""
        parts = [np.empty((4, 0), dtype=np.int64)]
        for number, (box, shapes) in enumerate(zip(self.problem.bins, self._shapes)):
            wide, deep, high = shapes.T
            whole = np.flatnonzero(deep > 1)
            parts.append(_part(number, WHOLE, whole, whole))
            inside = np.flatnonzero(deep == 1)
            inside = inside[np.argsort(-high[inside], kind="stable")]
            for kind, length, longest in (
                (SHELF, wide[inside], box.nx),
                (LAYER, high[inside], box.nz),
            ):
                fits = length[:, None] + length[None] <= longest
                ahead, behind = np.nonzero(np.triu(fits, 1) | np.eye(len(inside), dtype=bool))
                leader, job = inside[ahead], inside[behind]
                order = np.lexsort((job, leader))
                parts.append(_part(number, kind, leader[order], job[order]))
        return Variables(*np.concatenate(parts, axis=1))

    @cached_property
    def _shapes(self) -> Ints:
        """The shape of each job in each bin, 0 where it does not fit, shape (bins, jobs, 3)."""
        problem = self.problem
        shapes = [
            layer_shape(routers, box.extent, problem.grid) or (0, 0, 0)
            for box in problem.bins
            for routers in problem.routers
        ]
        return np.array(shapes, dtype=np.int64).reshape(len(problem.bins), len(problem.routers), 3)


def _part(number: int, kind: int, leader: Ints, job: Ints) -> Ints:
    return np.stack((np.full_like(job, number), np.full_like(job, kind), leader, job))
