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
        Variables of groups, and the group of each node.
    u, pairs : array of int, shape (pairs,), and shape (2, pairs)
        Variables of claims in groups where there are several groups, and the pairs of both.
    """

    program: Program
    y: Ints
    x: Ints
    nodes: Ints
    z: Ints
    group_of: Ints
    u: Ints
    pairs: Ints


@formulations.register("hold")
class HoldFormulation(Formulation[Hold, Release]):
    """Equations (1) to (9) of the model's page.

    ``y[i]`` is 1 if claim i is lifted; ``x[n]`` is the number of chunks on node n, for the nodes
    that have room for some if all claims are lifted; ``z[t]`` is 1 if the job is in group t: a
    switch or block if one must hold it, else all nodes; ``u[i, t]`` is 1 if claim i is lifted for
    group t, where there are several.
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
        most = most[nodes]
        names, group_of = groups(problem)
        builder = ProgramBuilder("min")
        y = builder.variables("y_claim{}", claims, objective=problem.costs)
        x = builder.variables("x_node{}", nodes.tolist(), upper=most)
        z = builder.variables("z_group{}", len(names))
        at = z[group_of[nodes]]
        builder.ragged_rows(
            "chunks_group{}",
            (len(z),),
            (1, x, group_of[nodes]),
            (-problem.chunks, z, np.arange(len(z))),
            equal=0,
        )
        builder.row("one", (1, z), equal=1)
        there = np.isin(held.node, nodes)
        claim, row = held.claim[there], np.searchsorted(nodes, held.node[there])
        lifted, u, pairs = y[claim], y[:0], np.empty((2, 0), dtype=np.int64)
        if len(z) > 1:  # lifted for the group: a tighter relaxation than with y itself
            keys = np.stack([claim, group_of[nodes[row]]])
            pairs, pair = np.unique(keys, axis=1, return_inverse=True)
            labels = [f"claim{i + 1}_group{t + 1}" for i, t in pairs.T.tolist()]
            u = builder.variables("u_{}", labels)
            lifted = u[pair.ravel()]
            builder.ragged_rows(
                "for_claim{}", (claims,), (1, u, pairs[0]), (-1, y, np.arange(claims)), at_most=0
            )
        for resource in np.flatnonzero(problem.demand).tolist():
            demand, free = int(problem.demand[resource]), problem.free[nodes, resource]
            freed = held.amounts[there, resource]
            present = np.minimum(free // demand, most)
            missing = demand * (present + 1) - free
            for name, unit, known, rows in (
                ("next", missing, missing * present, present < most),
                ("resource", np.full(len(nodes), demand), free, present + 1 < most),
            ):
                # what a claim frees beyond the room of its node is cut off
                useful = np.minimum(freed, (unit * most - known)[row])
                held_there = rows[row] & (useful > 0)
                builder.ragged_rows(
                    f"{name}{resource + 1}_node{{}}",
                    (nodes.tolist(),),
                    (unit[rows], x[rows], np.flatnonzero(rows)),
                    (-known[rows], at[rows], np.flatnonzero(rows)),
                    (-useful[held_there], lifted[held_there], row[held_there]),
                    at_most=0,
                )
        if problem.exclusive:
            builder.rows(
                "own_{}",
                (np.ones((len(row), 1), dtype=np.int64), x[row][:, None]),
                (-most[row][:, None], lifted[:, None]),
                over=([f"claim{i + 1}_node{nodes[n]}" for i, n in zip(claim, row)],),
                at_most=0,
            )
        for licence, needed in enumerate(problem.licences_of.tolist()):
            builder.row(
                f"licence{licence + 1}",
                (problem.held_licences[:, licence], y),
                at_least=needed - int(problem.licences[licence]),
            )
        return Variables(builder.build(), y, x, nodes, z, group_of, u, pairs)

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
        values[found.z[found.group_of[list(solution.nodes)]]] = 1
        claim, group = found.pairs
        values[found.u] = values[found.y[claim]] * values[found.z[group]]
        return values
