"""The integer program of a hold."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.models.formulation import Formulation, check_entries, formulations
from optsched.models.hold.problem import Hold, Release
from optsched.models.hold.room import (
    Holding,
    chosen,
    drainable,
    groups,
    holding,
    is_allowed,
    liftable,
    room,
)
from optsched.models.program import Program
from optsched.models.program_builder import ProgramBuilder

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

MOST_ENTRIES = 20_000_000
"""Largest number of entries of a program."""


class Block(NamedTuple):
    """Variables, and what each of them stands for.

    Parameters
    ----------
    variables : array of int, shape (variables,)
        Numbers of the variables.
    of : array of int, shape (variables,) or (numbers, variables)
        The numbers that each stands for, in the order of its name in the program.
    """

    variables: Ints
    of: Ints


@formulations.register("hold")
class HoldFormulation(Formulation[Hold, Release]):
    """Equations (1) to (15) of the model's page.

    ``y[i]`` is 1 if claim i is lifted; ``x[n]`` is the number of chunks on node n, for the nodes
    that have room for some if all is done that may be; ``z[t]`` is 1 if the job is in group t: a
    switch or block if one must hold it, else all nodes; ``u[i, t]`` is 1 if claim i is lifted or
    moved for group t, where there are several. ``D[n]`` is 1 if node n is drained, ``g[r]`` if this
    frees row r of what claims hold; ``v[i]`` is 1 if claim i is moved, ``k[s, n]`` if a chunk of
    kind s, of all kinds that moved claims have, goes to node n.
    """

    @property
    def program(self) -> Program:
        """The program, with the variables y, x, z, u, D, g, v and k."""
        return self._built[0]

    @cached_property
    def _held(self) -> Holding:
        return holding(self.problem)

    @cached_property
    def _moves(self) -> _Moves:
        return _moves(self.problem, self._held)

    @cached_property
    def _built(self) -> tuple[Program, dict[str, Block]]:
        """The program, and its blocks of variables by letter."""
        problem, held, moves = self.problem, self._held, self._moves
        movable = np.flatnonzero([bool(rows) for rows in problem.moved])
        drains = drainable(problem, held)
        may_go = liftable(problem)
        may_go[movable] = True
        most = room(problem, held, may_go[held.claim] | drains)
        nodes = np.flatnonzero(most)
        most = most[nodes]
        every_claim, every_node = np.arange(len(problem.costs)), np.arange(len(problem.free))
        names, group_of = groups(problem)
        entries = (4 + 2 * len(problem.resources)) * (len(held.claim) + len(moves.node))
        check_entries(entries, MOST_ENTRIES, "cheapest-first needs none")

        builder = ProgramBuilder("min")
        y = builder.variables(
            "y_claim{}",
            len(every_claim),
            upper=liftable(problem).astype(int),
            objective=problem.costs,
        )
        x = builder.variables("x_node{}", nodes.tolist(), upper=most)
        z = builder.variables("z_group{}", len(names))
        v = builder.variables(
            "v_claim{}", (movable + 1).tolist(), objective=problem.move_costs[movable]
        )
        k = builder.variables("k_{}", moves.names)
        d = builder.variables(
            "drain_node{}",
            [] if problem.drain_costs is None else every_node.tolist(),
            objective=0 if problem.drain_costs is None else problem.drain_costs,
        )
        at = z[group_of[nodes]]
        builder.ragged_rows(
            "chunks_group{}",
            (len(z),),
            (1, x, group_of[nodes]),
            (-problem.chunks, z, np.arange(len(z))),
            equal=0,
        )
        builder.row("one", (1, z), equal=1)

        there = np.isin(held.node, nodes) | np.isin(held.node, moves.node)
        away = np.flatnonzero(drains & there)
        rows = _names(held, away)
        g = builder.variables("g_{}", rows)
        if len(away):
            builder.ragged_rows(
                "away_{}",
                (rows,),
                (1, g, np.arange(len(g))),
                (-1, d[held.node[away]], np.arange(len(g))),
                at_most=0,
            )
            builder.ragged_rows(
                "kept_{}",
                (rows,),
                (1, g, np.arange(len(g))),
                (1, y[held.claim[away]], np.arange(len(g))),
                at_most=1,
            )
        in_play = np.flatnonzero(np.isin(held.node, nodes))
        claim, row = held.claim[in_play], np.searchsorted(nodes, held.node[in_play])
        # variables that free a row of a node in play, and the rows, as places in `in_play`
        u, pairs = y[:0], np.empty((2, 0), dtype=np.int64)
        of_claim = np.full(len(every_claim), -1)
        of_claim[movable] = v
        if len(z) > 1:  # lifted for the group: a tighter relaxation than with y itself
            keys = np.stack([claim, group_of[nodes[row]]])
            pairs, pair = np.unique(keys, axis=1, return_inverse=True)
            labels = [f"claim{i + 1}_group{t + 1}" for i, t in pairs.T.tolist()]
            u = builder.variables("u_{}", labels)
            freeing, freed = u[pair.ravel()], np.arange(len(in_play))
            builder.ragged_rows(
                "for_claim{}",
                (len(every_claim),),
                (1, u, pairs[0]),
                (-1, y, every_claim),
                (-1, v, movable),
                at_most=0,
            )
        else:
            is_movable = np.flatnonzero(of_claim[claim] >= 0)
            freeing = np.concatenate([y[claim], of_claim[claim[is_movable]]])
            freed = np.concatenate([np.arange(len(in_play)), is_movable])
        near = np.isin(away, in_play)
        freeing = np.concatenate([freeing, g[near]])
        freed = np.concatenate([freed, np.searchsorted(in_play, away[near])])
        if len(movable):
            builder.ragged_rows(
                "once_claim{}",
                (len(every_claim),),
                (1, y[movable], movable),
                (1, v, movable),
                at_most=1,
            )
        for resource in np.flatnonzero(problem.demand).tolist():
            demand, free = int(problem.demand[resource]), problem.free[nodes, resource]
            amounts = held.amounts[in_play, resource]
            present = np.minimum(free // demand, most)
            missing = demand * (present + 1) - free
            for name, unit, known, stated in (
                ("next", missing, missing * present, present < most),
                ("resource", np.full(len(nodes), demand), free, present + 1 < most),
            ):
                # what a claim frees beyond the room of its node is cut off
                useful = np.minimum(amounts, (unit * most - known)[row])
                helps = (stated[row] & (useful > 0))[freed]
                builder.ragged_rows(
                    f"{name}{resource + 1}_node{{}}",
                    (nodes.tolist(),),
                    (unit[stated], x[stated], np.flatnonzero(stated)),
                    (-known[stated], at[stated], np.flatnonzero(stated)),
                    (-useful[freed[helps]], freeing[helps], row[freed[helps]]),
                    at_most=0,
                )
        if problem.exclusive and len(in_play):
            builder.ragged_rows(
                "own_{}",
                (_names(held, in_play),),
                (1, x[row], np.arange(len(in_play))),
                (-most[row[freed]], freeing, freed),
                at_most=0,
            )
        blocks = {
            "y": Block(y, every_claim),
            "x": Block(x, nodes),
            "z": Block(z, np.arange(len(z))),
            "u": Block(u, pairs),
            "D": Block(d, every_node[: len(d)]),
            "g": Block(g, away),
            "v": Block(v, movable),
            "k": Block(k, np.stack([moves.kind, moves.node])),
        }
        if len(movable):
            self._add_moves(builder, blocks, most)
        for licence, needed in enumerate(problem.licences_of.tolist()):
            builder.row(
                f"licence{licence + 1}",
                (problem.held_licences[:, licence], y),
                at_least=needed - int(problem.licences[licence]),
            )
        return builder.build(), blocks

    def _add_moves(self, builder: ProgramBuilder, blocks: dict[str, Block], most: Ints) -> None:
        """Add the rows of claims that may be moved; `most` has the most chunks of the job."""
        problem, held, moves = self.problem, self._held, self._moves
        (y, _), (x, nodes), (v, movable) = blocks["y"], blocks["x"], blocks["v"]
        k, (g, away) = blocks["k"].variables, blocks["g"]
        kinds = [f"claim{i + 1}_kind{s + 1}" for i, s in zip(*moves.of)]
        claim = moves.of[0]
        v_of = np.zeros(len(problem.costs), dtype=np.int64)
        v_of[movable] = v
        builder.ragged_rows(
            "moved_{}",
            (kinds,),
            (1, k, moves.kind),
            (-moves.copies, v_of[claim], np.arange(len(kinds))),
            equal=0,
        )
        keys = np.stack([claim[moves.kind], moves.node])
        pairs, pair = np.unique(keys, axis=1, return_inverse=True)
        labels = [f"claim{i + 1}_node{n}" for i, n in pairs.T.tolist()]
        every = np.arange(len(labels))
        builder.ragged_rows(
            "apart_{}", (labels,), (1, k, pair.ravel()), (-1, v_of[pairs[0]], every), at_most=0
        )
        there = np.isin(nodes, moves.node)
        if problem.exclusive:
            with_job = np.flatnonzero(np.isin(pairs[1], nodes))
            place = np.searchsorted(nodes, pairs[1][with_job])
            chunks = np.flatnonzero(np.isin(pair.ravel(), with_job))
            own = np.searchsorted(with_job, pair.ravel()[chunks])
            builder.ragged_rows(
                "alone_{}",
                ([labels[each] for each in with_job],),
                (1, x[place], np.arange(len(with_job))),
                (most[place[own]], k[chunks], own),
                at_most=most[place],
            )
        rows = np.flatnonzero(np.isin(held.node, moves.node))
        near = np.isin(held.node[away], moves.node)
        g, away = g[near], away[near]
        leaving = rows[np.isin(held.claim[rows], movable)]
        running = ~chosen(problem.pending, len(problem.costs))[held.claim[rows]]
        over = (len(problem.free),)
        for resource in range(len(problem.resources)):
            needed = moves.amounts[moves.kind, resource]
            if not needed.any():
                continue
            of_moved = (needed, k, moves.node)
            gone = (-held.amounts[leaving, resource], v_of[held.claim[leaving]], held.node[leaving])
            lifted = (-held.amounts[rows, resource], y[held.claim[rows]], held.node[rows])
            builder.ragged_rows(
                f"start{resource + 1}_node{{}}",
                over,
                (problem.demand[resource], x[there], nodes[there]),
                of_moved,
                lifted,
                gone,
                (-held.amounts[away, resource], g, held.node[away]),
                at_most=problem.free[:, resource],
            )
            builder.ragged_rows(
                f"before{resource + 1}_node{{}}",
                over,
                of_moved,
                tuple(each[running] for each in lifted),  # type: ignore[arg-type]
                gone,
                at_most=problem.free_before[:, resource],
            )

    def decode(self, x: Ints) -> Release:
        """Return the release of a vector."""
        values, blocks = np.asarray(x), self._built[1]

        def on(letter: str) -> Ints:
            block = blocks[letter]
            return np.asarray(block.of[..., values[block.variables] > 0])

        at: dict[int, list[int]] = {}
        for kind, node in on("k").T.tolist():
            at.setdefault(int(self._moves.of[0][kind]), []).append(node)
        nodes, chunks = blocks["x"].of, values[blocks["x"].variables]
        return Release(
            tuple(on("y").tolist()),
            tuple(np.repeat(nodes, chunks).tolist()),
            tuple(on("D").tolist()),
            tuple((claim, tuple(at.get(claim, ()))) for claim in on("v").tolist()),
        )

    def encode(self, solution: Release) -> Ints:
        """Return the vector of a release."""
        (program, blocks), moves = self._built, self._moves
        values = np.zeros(program.num_variables, dtype=np.int64)
        lifted = chosen(solution.lifted, len(self.problem.costs))
        gone = lifted | chosen([claim for claim, _ in solution.moved], len(lifted))
        drained = chosen(solution.drained, len(self.problem.free))
        counts = np.bincount(solution.nodes, minlength=len(drained))
        group_of = groups(self.problem)[1]
        groups_used = chosen(group_of[list(solution.nodes)].tolist(), len(blocks["z"].of))
        claim, group = blocks["u"].of
        away = blocks["g"].of
        for letter, given in (
            ("y", lifted),
            ("x", counts[blocks["x"].of]),
            ("z", groups_used),
            ("u", gone[claim] & groups_used[group]),
            ("D", drained[blocks["D"].of]),
            ("g", drained[self._held.node[away]] & ~lifted[self._held.claim[away]]),
            ("v", (gone & ~lifted)[blocks["v"].of]),
            ("k", moves.taken(solution)),
        ):
            values[blocks[letter].variables] = given
        return values


class _Moves(NamedTuple):
    """Chunks of moved claims, and the nodes to which they may go.

    Parameters
    ----------
    of : array of int, shape (2, kinds)
        The claim of each kind of chunk, and its place among the kinds of the claim.
    copies : array of int, shape (kinds,)
        How many chunks of the kind there are.
    amounts : array of int, shape (kinds, resources)
        What a chunk needs.
    kind, node : array of int, shape (pairs,)
        Kinds and nodes that they may go to.
    """

    of: Ints
    copies: Ints
    amounts: Ints
    kind: Ints
    node: Ints

    @property
    def names(self) -> list[str]:
        """Names of the pairs."""
        claim, place = self.of[:, self.kind].tolist()
        return [
            f"claim{i + 1}_kind{s + 1}_node{n}" for i, s, n in zip(claim, place, self.node.tolist())
        ]

    def taken(self, solution: Release) -> Flags:
        """Return which pairs a release uses, shape (pairs,)."""
        used = set()
        for claim, nodes in solution.moved:
            kinds = np.flatnonzero(self.of[0] == claim)
            used |= {*zip(np.repeat(kinds, self.copies[kinds]).tolist(), nodes)}
        pairs = zip(self.kind.tolist(), self.node.tolist())
        return np.array([pair in used for pair in pairs], dtype=bool)


def _moves(problem: Hold, held: Holding) -> _Moves:
    """Return the chunks of moved claims, and the nodes that can hold them if all others go."""
    rows = [(i, s, *row) for i, kinds in enumerate(problem.moved) for s, row in enumerate(kinds)]
    table = np.array(rows, dtype=np.int64).reshape(-1, 3 + len(problem.resources))
    most = [problem.free.copy(), problem.free_before.copy()]
    for amounts in most:
        np.add.at(amounts, held.node, held.amounts)
    least = np.minimum(*most)
    allowed: dict[tuple[str, ...] | None, Flags] = {}
    pairs = []
    for row, (claim, *_), needed in zip(range(len(table)), table.tolist(), table[:, 3:]):
        kinds = problem.moved_to[claim]
        if kinds not in allowed:
            allowed[kinds] = is_allowed(problem.kinds, kinds, len(problem.free))
        fits = np.flatnonzero(allowed[kinds] & (least >= needed).all(axis=1))
        pairs.append(np.stack([np.full(len(fits), row), fits]))
    kind, node = np.hstack(pairs) if pairs else np.empty((2, 0), dtype=np.int64)
    return _Moves(table[:, :2].T, table[:, 2], table[:, 3:], kind, node)


def _names(held: Holding, rows: Ints) -> list[str]:
    """Return names of rows of what claims hold."""
    return [
        f"claim{i + 1}_node{n}" for i, n in zip(held.claim[rows].tolist(), held.node[rows].tolist())
    ]
