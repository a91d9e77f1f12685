"""The integer program of a hold."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.models.formulation import Formulation, formulations
from optsched.models.hold.problem import Hold, Release
from optsched.models.hold.room import groups, holding, room
from optsched.models.program import Program
from optsched.models.program_builder import ProgramBuilder

Ints = NDArray[np.int64]


class Variables(NamedTuple):
    """The program, with its blocks of variables.

    Parameters
    ----------
    program : Program
        The program.
    y : array of int, shape (claims,)
        Variables of the claims.
    x, nodes : array of int, shape (nodes in play,)
        Variables of nodes, and the nodes.
    z, group_of : array of int, shape (groups,), and shape (nodes,)
        Variables of switches or blocks, and the group of each node; empty for a job that may be
        anywhere.
    """

    program: Program
    y: Ints
    x: Ints
    nodes: Ints
    z: Ints
    group_of: Ints


@formulations.register("hold")
class HoldFormulation(Formulation[Hold, Release]):
    """Equations (1) to (8) of the model's page.

    ``y[i]`` is 1 if claim i is lifted; ``x[n]`` is the number of chunks on node n, for the nodes
    that have room for some if all claims are lifted; ``z[t]`` is 1 if the job is in switch or
    block t.
    """

    @property
    def program(self) -> Program:
        """The program, with the variables y, x and z."""
        return self._variables.program

    @cached_property
    def _variables(self) -> Variables:
        problem, held = self.problem, holding(self.problem)
        claims = len(problem.costs)
        most = room(problem, held, np.ones(claims, dtype=bool))
        nodes = np.flatnonzero(most)
        place = np.full(len(most), -1)
        place[nodes] = np.arange(len(nodes))
        builder = ProgramBuilder("min")
        y = builder.variables("y_claim{}", claims, objective=problem.costs)
        x = builder.variables("x_node{}", nodes.tolist(), upper=most[nodes])
        builder.row("chunks", (1, x), equal=problem.chunks)
        there = place[held.node] >= 0
        claim, at = held.claim[there], place[held.node[there]]
        for resource in np.flatnonzero(problem.demand):
            demand = problem.demand[resource]
            free = problem.free[nodes, resource]
            # what a claim frees beyond the room of its node is cut off, for a tighter relaxation
            useful = np.maximum(demand * most[nodes] - free, 0)
            freed = np.minimum(held.amounts[there, resource], useful[at])
            builder.ragged_rows(
                f"resource{resource + 1}_node{{}}",
                (nodes.tolist(),),
                (demand, x, np.arange(len(nodes))),
                (-freed[freed > 0], y[claim[freed > 0]], at[freed > 0]),
                at_most=free,
            )
        if problem.exclusive:
            builder.rows(
                "own_{}",
                (np.ones((len(at), 1), dtype=np.int64), x[at][:, None]),
                (-most[nodes[at]][:, None], y[claim][:, None]),
                over=([f"claim{i + 1}_node{nodes[n]}" for i, n in zip(claim, at)],),
                at_most=0,
            )
        z, group_of = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        if (found := groups(problem)) is not None:
            names, group_of = found
            z = builder.variables("z_group{}", len(names))
            each = np.arange(len(names))
            builder.ragged_rows(
                "span_group{}",
                (len(names),),
                (1, x, group_of[nodes]),
                (-problem.chunks, z, each),
                at_most=0,
            )
            builder.row("one", (1, z), at_most=1)
        for licence, needed in enumerate(problem.licences_of.tolist()):
            builder.row(
                f"licence{licence + 1}",
                (problem.held_licences[:, licence], y),
                at_least=needed - int(problem.licences[licence]),
            )
        return Variables(builder.build(), y, x, nodes, z, group_of)

    def decode(self, x: Ints) -> Release:
        """Return the claims and nodes of a vector."""
        found, values = self._variables, np.asarray(x)
        return Release(
            tuple(np.flatnonzero(values[found.y]).tolist()),
            tuple(np.repeat(found.nodes, values[found.x]).tolist()),
        )

    def encode(self, solution: Release) -> Ints:
        """Return the vector of a release."""
        found = self._variables
        values = np.zeros(found.program.num_variables, dtype=np.int64)
        values[found.y[list(solution.lifted)]] = 1
        counts = np.bincount(solution.nodes, minlength=len(self.problem.free))
        values[found.x] = counts[found.nodes]
        if len(found.z):
            values[found.z[found.group_of[list(solution.nodes)]]] = 1
        return values
