"""Where the chunks of claims may go that are moved."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.models.hold.problem import Hold, Release
from optsched.models.hold.room import Holding, is_allowed

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Moves(NamedTuple):
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
