"""The integer program of a hold; the room for its job on nodes, and what is short.

All chunks are equal, so how many of them a node has room for is known exactly, and the sum over the
nodes, or over those of a switch or block, is a bound that is reached: the job cannot start if and
only if the bound is less than its chunks, or a licence is short. That is a certificate.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from optsched.arrays import Flags, Ints
from optsched.fields import LARGEST_FIELD
from optsched.models.hold.problem import Hold, Release
from optsched.models.node_placement.fields import is_allowed
from optsched.models.program import Formulation, Program, ProgramBuilder, formulations


class Holding(NamedTuple):
    """What claims hold, a row for each node of each claim."""

    claim: Ints
    node: Ints
    amounts: Ints


def holding(problem: Hold) -> Holding:
    """Return the amounts that the claims of a problem hold."""
    table = np.array([row for rows in problem.held for row in rows], dtype=np.int64).reshape(
        -1, 1 + len(problem.resources)
    )
    claim = np.repeat(np.arange(len(problem.held)), [len(rows) for rows in problem.held])
    return Holding(claim, table[:, 0], table[:, 1:])


def room(problem: Hold, held: Holding, freed: Flags, *, beyond: bool = False) -> Ints:
    """Return how many chunks each node has room for, shape (nodes,).

    `held`: what its claims hold; `freed`: the rows of `held` that are free, as the claim is lifted,
    moved or kept away, shape (rows,); `beyond`: whether more such chunks than the job has count, if
    it has several; otherwise a node counts once.
    """
    free = problem.free.copy()
    np.add.at(free, held.node[freed], held.amounts[freed])
    counts_more = beyond and problem.chunks > 1 and problem.demand.any()
    own = LARGEST_FIELD if counts_more else problem.chunks
    most = np.full(len(free), min(own, problem.most_per_node or own), dtype=np.int64)
    for resource in np.flatnonzero(problem.demand):
        most = np.minimum(most, free[:, resource] // problem.demand[resource])
    most[~is_allowed(problem.kinds, problem.allowed, len(free))] = 0
    if problem.exclusive:
        most[list(problem.busy)] = 0
        most[held.node[~freed]] = 0
    return most


def liftable(problem: Hold) -> Flags:
    """Return which claims may be lifted, shape (claims,)."""
    return ~chosen(problem.fixed, len(problem.costs))


def drainable(problem: Hold, held: Holding) -> Flags:
    """Return which rows are free once their node is drained, shape (rows,)."""
    pending = chosen(problem.pending, len(problem.costs))
    return np.asarray(pending[held.claim] & (problem.drain_costs is not None))


def chosen(numbers: Sequence[int], count: int) -> Flags:
    """Return which of the numbers from 0 to below `count` are listed, shape (count,)."""
    flags = np.zeros(count, dtype=bool)
    flags[[*numbers]] = True
    return flags


def groups(problem: Hold) -> tuple[list[str], Ints]:
    """Return the switches or blocks of which one must hold the job, and that of each node.

    For a job that may be anywhere, all nodes are in one group without a name.
    """
    of_span = {"switch": problem.switches, "block": problem.blocks}.get(problem.span)
    if of_span is None:
        return [""], np.zeros(len(problem.free), dtype=np.int64)
    names, group_of = np.unique(np.array(of_span, dtype=str), return_inverse=True)
    return names.tolist(), group_of.ravel()


class Licence(NamedTuple):
    """A licence that is short: its number from 0, how many are free and how many are needed."""

    number: int
    free: int
    needed: int


class Shortage(NamedTuple):
    """What is short while all claims are kept."""

    # Requirements, each with the number of nodes that meet it and all before it; first all
    # nodes. A requirement that rules out no more nodes is left out.
    filters: tuple[tuple[str, int], ...]
    # The most chunks of this size that fit, or nodes with room for the only chunk of a job: on
    # all nodes, or in one switch or block if one must hold them
    room: int
    group: str  # the switch or block with the most room; empty for a job that may be anywhere
    chunks: int  # the chunks of the job
    licences: tuple[Licence, ...]  # the licences that are short

    @property
    def is_proof(self) -> bool:
        """Whether it proves that the job cannot start; if not, it can."""
        return self.room < self.chunks or bool(self.licences)


def shortage(problem: Hold, kinds: Sequence[tuple[str, Flags]] = ()) -> Shortage:
    """Return the shortage while all claims are kept.

    `kinds`: requirements that together are met by the nodes of the kinds that the job may use, each
    with the nodes that meet it; by default, the kind.

    >>> problem = Hold(["cores"], free=[[4], [1], [0]], chunks=2, demand=[4], costs=[], held=[])
    >>> found = shortage(problem)
    >>> found.filters, found.room, found.chunks, found.is_proof
    ((('nodes', 3), ('with 4 or more cores free', 1)), 1, 2, True)
    """
    held = holding(problem)
    shared = np.zeros(len(problem.free), dtype=bool)
    shared[[*problem.busy, *held.node.tolist()]] = problem.exclusive
    allowed = is_allowed(problem.kinds, problem.allowed, len(problem.free))
    steps = [
        *(kinds or [("of a kind that it may use", allowed)]),
        ("without other jobs", ~shared),
        *(
            (f"with {needed:,} or more {name} free", free >= needed)
            for name, free, needed in sorted(
                zip(problem.resources, problem.free.T, problem.demand.tolist()),
                key=lambda each: ":" not in each[0],  # a type says more than all types together
            )
        ),
    ]
    left = np.ones(len(problem.free), dtype=bool)
    filters = [("nodes", len(left))]
    for text, meets in steps:
        if (left & ~meets).any():
            left &= meets
            filters.append((text, int(left.sum())))
    rooms = room(problem, held, np.zeros(len(held.claim), dtype=bool), beyond=True)
    names, group_of = groups(problem)
    sums = np.bincount(group_of, weights=rooms, minlength=len(names)).astype(np.int64)
    largest = int(sums.argmax()) if names else 0
    short = tuple(
        Licence(number, free, needed)
        for number, (free, needed) in enumerate(
            zip(problem.licences.tolist(), problem.licences_of.tolist())
        )
        if free < needed
    )
    return Shortage(
        tuple(filters),
        int(sums.max(initial=0)),
        "".join(names[largest : largest + 1]),
        problem.chunks,
        short,
    )


class Block(NamedTuple):
    """Variables, and what each of them stands for."""

    variables: Ints
    # The numbers that each stands for, in the order of its name in the program, shape
    # (variables,)
    of: Ints


class Moves(NamedTuple):
    """Chunks of moved claims, and the nodes to which they may go."""

    # The claim of each kind of chunk, and its place among the kinds of the claim, shape (2,
    # kinds)
    of: Ints
    copies: Ints  # how many chunks of the kind there are, shape (kinds,)
    amounts: Ints  # what a chunk needs, shape (kinds, resources)
    # Kinds and nodes that they may go to, shape (pairs,)
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


def moves_of(problem: Hold, held: Holding) -> Moves:
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
    return Moves(table[:, :2].T, table[:, 2], table[:, 3:], kind, node)


@formulations.register("hold")
class HoldFormulation(Formulation[Hold, Release]):
    """Equations (1) to (17) of the model's page.

    ``y[i]`` is 1 if claim i is lifted; ``x[n]`` is the number of chunks on node n, for the nodes
    that have room for some if all is done that may be; ``z[t]`` is 1 if the job is in group t: a
    switch or block if one must hold it, else all nodes; ``u[i, t]`` is 1 if claim i is lifted or
    moved for group t, where there are several. ``b[n]`` is 1 if node n is drained, ``o`` if all
    nodes of the job are, ``r[h]`` if this frees row h of what claims hold; ``v[i]`` is 1 if claim i
    is moved, ``k[s, n]`` if a chunk of kind s, of all kinds that moved claims have, goes to node n.
    """

    @property
    def program(self) -> Program:
        """The program, with the variables y, x, z, b, r, v, k, o and u."""
        return self._built[0]

    @cached_property
    def _held(self) -> Holding:
        return holding(self.problem)

    @cached_property
    def _moves(self) -> Moves:
        return moves_of(self.problem, self._held)

    @cached_property
    def _groups(self) -> tuple[list[str], Ints]:
        return groups(self.problem)

    @cached_property
    def _built(self) -> tuple[Program, dict[str, Block]]:
        """The program, and its blocks of variables by letter."""
        problem, held, moves = self.problem, self._held, self._moves
        entries = (4 + 2 * len(problem.resources)) * (len(held.claim) + len(moves.node))
        self.check_entries(entries, "cheapest-first needs none")
        movable = np.flatnonzero([bool(rows) for rows in problem.moved])
        drains = drainable(problem, held)
        may_go = liftable(problem)
        may_go[movable] = True
        most = room(problem, held, may_go[held.claim] | drains)
        nodes = np.flatnonzero(most)
        most = most[nodes]
        every_claim = np.arange(len(problem.costs))
        drain_costs = np.array([]) if problem.drain_costs is None else problem.drain_costs
        drained = np.arange(len(drain_costs))
        away = np.flatnonzero(drains & (np.isin(held.node, nodes) | np.isin(held.node, moves.node)))

        builder = self._builder = ProgramBuilder("min")
        may_lift = liftable(problem)
        y = builder.variables("y_claim{}", len(may_lift), upper=may_lift, objective=problem.costs)
        x = builder.variables("x_node{}", nodes.tolist(), upper=most)
        z = builder.variables("z_group{}", len(self._groups[0]))
        b = builder.variables("b_node{}", range(len(drained)), objective=drain_costs)
        r = builder.variables("r_{}", _names(held, away))
        cost = problem.move_costs[movable]
        v = builder.variables("v_claim{}", (movable + 1).tolist(), objective=cost)
        k = builder.variables("k_{}", moves.names)
        blocks = self._blocks = {
            "y": Block(y, every_claim),
            "x": Block(x, nodes),
            "z": Block(z, np.arange(len(z))),
            "b": Block(b, drained),
            "r": Block(r, away),
            "v": Block(v, movable),
            "k": Block(k, np.stack([moves.kind, moves.node])),
        }
        chunks = (1, x, self._groups[1][nodes]), (-problem.chunks, z, np.arange(len(z)))
        builder.ragged_rows("chunks_group{}", (len(z),), *chunks, equal=0)
        builder.row("one", (1, z), equal=1)
        if len(drained):
            self._add_drains(most)
        self._add_room(most)
        if len(movable):
            self._add_moves(most)
        for licence, short in enumerate((problem.licences_of - problem.licences).tolist()):
            freed_by = (problem.held_licences[:, licence], y)
            builder.row(f"licence{licence + 1}", freed_by, at_least=short)
        return builder.build(), blocks

    def _add_drains(self, most: Ints) -> None:
        """Add the rows by which all nodes of the job are drained or none, and what that frees."""
        held, builder, blocks = self._held, self._builder, self._blocks
        (r, away), y, (b, nodes) = blocks["r"], blocks["y"].variables, blocks["b"]
        x, in_play = blocks["x"]
        o = builder.variables("o", 1)
        blocks["o"] = Block(o, np.zeros(1, dtype=np.int64))

        rows = builder.paired_rows
        rows("all_node{}", nodes.tolist(), (1, b), (-1, o), at_most=0)
        rows("none_node{}", in_play.tolist(), (1, x), (most, o), (-most, b[in_play]), at_most=most)
        k, (_, to) = blocks["k"]
        served = (1, b, nodes), (-1, x, in_play), (-1, k, to)
        builder.ragged_rows("served_node{}", (len(nodes),), *served, at_most=0)
        rows("away_{}", _names(held, away), (1, r), (-1, b[held.node[away]]), at_most=0)
        rows("kept_{}", _names(held, away), (1, r), (1, y[held.claim[away]]), at_most=1)

    def _add_room(self, most: Ints) -> None:
        """Add the rows by which the chunks fit, at most `most` of them on each node in play.

        If there are several groups, claims are lifted or moved for each of them.
        """
        problem, held, builder, blocks = self.problem, self._held, self._builder, self._blocks
        (x, nodes), (y, every_claim), (r, away) = blocks["x"], blocks["y"], blocks["r"]
        (v, movable), z = blocks["v"], blocks["z"].variables
        rows = np.flatnonzero(np.isin(held.node, nodes))
        claim, place = held.claim[rows], np.arange(len(rows))
        if len(z) > 1:  # a tighter relaxation than with y itself
            keys = np.stack([claim, self._groups[1][held.node[rows]]])
            pairs, pair = np.unique(keys, axis=1, return_inverse=True)
            labels = [f"claim{i + 1}_group{t + 1}" for i, t in pairs.T.tolist()]
            u = builder.variables("u_{}", labels)
            blocks["u"] = Block(u, pairs)
            gone = (1, u, pairs[0]), (-1, y, every_claim), (-1, v, movable)
            builder.ragged_rows("for_claim{}", (len(y),), *gone, at_most=0)
            freeing, freed = u[pair.ravel()], place
        else:
            leaves = place[np.isin(claim, movable)]
            moving = v[np.searchsorted(movable, claim[leaves])]
            freeing, freed = np.concatenate([y[claim], moving]), np.concatenate([place, leaves])
        near = np.isin(away, rows)
        freeing = np.concatenate([freeing, r[near]])  # what frees rows of claims, and which row
        freed = np.concatenate([freed, np.searchsorted(rows, away[near])])
        at, row = z[self._groups[1][nodes]], np.searchsorted(nodes, held.node[rows])
        for resource in np.flatnonzero(problem.demand).tolist():
            demand, free = int(problem.demand[resource]), problem.free[nodes, resource]
            present = np.minimum(free // demand, most)
            missing = demand * (present + 1) - free
            for name, unit, known, stated in (
                ("next", missing, missing * present, present < most),
                ("resource", np.full(len(nodes), demand), free, present + 1 < most),
            ):
                # what a claim frees beyond the room of its node is cut off
                useful = np.minimum(held.amounts[rows, resource], (unit * most - known)[row])
                helps = (stated[row] & (useful > 0))[freed]
                builder.ragged_rows(
                    f"{name}{resource + 1}_node{{}}",
                    (nodes.tolist(),),
                    (unit[stated], x[stated], np.flatnonzero(stated)),
                    (-known[stated], at[stated], np.flatnonzero(stated)),
                    (-useful[freed[helps]], freeing[helps], row[freed[helps]]),
                    at_most=0,
                )
        if problem.exclusive:
            own = (1, x[row], np.arange(len(rows))), (-most[row[freed]], freeing, freed)
            builder.ragged_rows("own_{}", (_names(held, rows),), *own, at_most=0)

    def _add_moves(self, most: Ints) -> None:
        """Add the rows of claims that may be moved; `most` has the most chunks of the job."""
        problem, held, moves = self.problem, self._held, self._moves
        builder, blocks = self._builder, self._blocks
        (y, _), (x, nodes), (v, movable) = blocks["y"], blocks["x"], blocks["v"]
        k, (r, away) = blocks["k"].variables, blocks["r"]
        claim = moves.of[0]
        v_of = np.zeros(len(problem.costs), dtype=np.int64)
        v_of[movable] = v
        once = (1, y[movable], movable), (1, v, movable)
        builder.ragged_rows("once_claim{}", (len(problem.costs),), *once, at_most=1)
        kinds = [f"claim{i + 1}_kind{s + 1}" for i, s in zip(*moves.of)]
        all_chunks = (1, k, moves.kind), (-moves.copies, v_of[claim], np.arange(len(claim)))
        builder.ragged_rows("moved_{}", (kinds,), *all_chunks, equal=0)
        keys = np.stack([claim[moves.kind], moves.node])
        pairs, pair = np.unique(keys, axis=1, return_inverse=True)
        over = ([f"claim{i + 1}_node{n}" for i, n in pairs.T.tolist()],)
        every, pair = np.arange(pairs.shape[1]), pair.ravel()
        builder.ragged_rows("apart_{}", over, (1, k, pair), (-1, v_of[pairs[0]], every), at_most=0)
        chunks = np.zeros(len(problem.free), dtype=np.int64)
        chunks[nodes] = most
        if problem.exclusive:
            with_job = np.flatnonzero(chunks[pairs[1]])
            of_job = 1, x[np.searchsorted(nodes, pairs[1][with_job])], with_job
            others = np.maximum(chunks[moves.node], 1), k, pair
            most_there = np.maximum(chunks[pairs[1]], 1)
            builder.ragged_rows("alone_{}", over, of_job, others, at_most=most_there)
        there = np.isin(nodes, moves.node)
        rows = np.flatnonzero(np.isin(held.node, moves.node))
        near = np.isin(held.node[away], moves.node)
        r, away = r[near], away[near]
        leaving = rows[np.isin(held.claim[rows], movable)]
        running = ~chosen(problem.pending, len(problem.costs))[held.claim[rows]]
        all_free = problem.free.copy()
        np.add.at(all_free, held.node, held.amounts)
        for resource in np.flatnonzero(moves.amounts.any(axis=0)).tolist():
            demand = np.full(len(nodes), problem.demand[resource])
            if problem.exclusive:  # with chunks of the job there is nothing else on the node
                demand = np.maximum(demand, all_free[nodes, resource] // most)
            needed = moves.amounts[moves.kind, resource]
            of_moved = (needed, k, moves.node)
            gone = (-held.amounts[leaving, resource], v_of[held.claim[leaving]], held.node[leaving])
            lifted = (-held.amounts[rows, resource], y[held.claim[rows]], held.node[rows])
            builder.ragged_rows(
                f"start{resource + 1}_node{{}}",
                (len(problem.free),),
                (demand[there], x[there], nodes[there]),
                of_moved,
                lifted,
                gone,
                (-held.amounts[away, resource], r, held.node[away]),
                at_most=problem.free[:, resource],
            )
            builder.ragged_rows(
                f"before{resource + 1}_node{{}}",
                (len(problem.free),),
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
            tuple(on("b").tolist()),
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
        of_job = self._groups[1][list(solution.nodes)]
        groups_used = chosen(of_job.tolist(), len(blocks["z"].of))
        away = blocks["r"].of
        for letter, given in (
            ("y", lifted),
            ("x", counts[blocks["x"].of]),
            ("z", groups_used),
            ("b", drained[blocks["b"].of]),
            ("o", drained.any()),
            ("r", drained[self._held.node[away]] & ~lifted[self._held.claim[away]]),
            ("v", (gone & ~lifted)[blocks["v"].of]),
            ("k", moves.taken(solution)),
        ):
            if letter in blocks:
                values[blocks[letter].variables] = given
        if "u" in blocks:
            u, (claim, group) = blocks["u"]
            values[u] = gone[claim] & groups_used[group]
        return values


def _names(held: Holding, rows: Ints) -> list[str]:
    return [
        f"claim{i + 1}_node{n}" for i, n in zip(held.claim[rows].tolist(), held.node[rows].tolist())
    ]
