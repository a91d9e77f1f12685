"""Hold: the claims to lift, at the least cost, so that a blocked job can start.

Model page: ``models/hold/README.md``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.models.fields import LARGEST_FIELD, FieldChecks, first_few
from optsched.models.hold.fields import Holdings
from optsched.models.node_placement.fields import Amounts, Names, NodeNumbers
from optsched.models.node_placement.problem import COUNTABLE, SHOWN
from optsched.models.problem import Problem, Violation
from optsched.models.read_only import read_only
from optsched.models.schema import (
    Choice,
    Fields,
    Flag,
    Integer,
    Integers,
    Label,
    Labels,
    declared,
    field,
    labels,
)
from optsched.registry import models

Ints = NDArray[np.int64]


class Release(NamedTuple):
    """The claims that are lifted, and the nodes that the job then gets.

    Parameters
    ----------
    lifted : tuple of int
        The claims, from 0, in ascending order.
    nodes : tuple of int
        The node of each chunk, from 0, in ascending order.
    """

    lifted: tuple[int, ...]
    nodes: tuple[int, ...]


def _none_needed(fields: Fields) -> Any:
    return read_only(np.zeros(len(fields["licences"]), dtype=np.int64))


def _none_held(fields: Fields) -> Any:
    return read_only(np.zeros((len(fields["costs"]), len(fields["licences"])), dtype=np.int64))


@models.register("hold")
@declared
class Hold(Problem[Release]):
    """A blocked job, and the claims of others of which some may be lifted so that it can start.

    A claim is what keeps amounts of nodes, or licences, from the job: a running job, which may be
    suspended or requeued; a pending job that would be placed there first, which may be held; a
    drained node, which may be resumed.

    Raises
    ------
    InputError
        If lengths do not match, an amount is negative, a label is unknown, or the costs add up to
        more than 2^53; the message lists all mistakes.

    Examples
    --------
    A job of two chunks of 4 cores, on nodes with 4, 1 and 0 free cores:

    >>> problem = Hold(
    ...     resources=["cores"], free=[[4], [1], [0]], chunks=2, demand=[4],
    ...     costs=[50, 30, 40], held=[[[1, 3]], [[2, 2]], [[2, 2]]])
    >>> problem.violations(Release((0,), (0, 1))), problem.objective(Release((0,), (0, 1)))
    ([], 50)
    >>> problem.violations(Release((1,), (0, 2)))
    [Violation(constraint='resource', detail='4 of 2 cores of node 2 are used')]
    """

    resources: tuple[str, ...] = field(
        Names(), "names of the countable resources of nodes, `cores` and `memory` for instance"
    )
    free: Ints = field(
        Amounts("resources"),
        "amount of each resource of each node that no claim keeps from the job",
        symbol="C_nr",
    )
    chunks: int = field(Integer(1, LARGEST_FIELD), "number of chunks of the job", symbol="c")
    demand: Ints = field(
        Integers(0, like="resources"),
        "amount of each resource that a chunk needs",
        symbol="d_r",
    )
    costs: Ints = field(Integers(0), "cost of lifting each claim", symbol="w_i")
    held: tuple[tuple[tuple[int, ...], ...], ...] = field(
        Holdings("free", "resources", "costs"),
        "nodes of each claim, with the amounts that are free there once it is lifted",
        symbol="h_inr",
    )
    most_per_node: int = field(
        Integer(0, LARGEST_FIELD),
        "most chunks on a node, 0 for no limit",
        symbol="u",
        default=0,
    )
    kinds: Sequence[str] | None = field(
        Labels("free", as_text=True),
        "kind of each node, which stands for its features and partitions",
        default=None,
    )
    allowed: tuple[str, ...] | None = field(
        Names(), "kinds of nodes that the job may use; null for all", symbol="K", default=None
    )
    switches: Sequence[str] | None = field(
        Labels("free", as_text=True), "leaf switch of each node", default=None
    )
    blocks: Sequence[str] | None = field(
        Labels("free", as_text=True), "block, or higher switch, of each node", default=None
    )
    span: str = field(
        Choice("anywhere", "switch", "block"),
        "what holds all chunks: the nodes of one `switch`, of one `block`, or `anywhere`",
        default="anywhere",
    )
    exclusive: bool = field(
        Flag(), "whether the job shares its nodes with no other job", default=False
    )
    busy: tuple[int, ...] = field(
        NodeNumbers("free"), "nodes on which jobs run that have no claim here", default=()
    )
    licences: Ints = field(
        Integers(0),
        "number of each licence of the site that no claim keeps from the job",
        symbol="L_l",
        default=(),
    )
    licences_of: Ints = field(
        Integers(0, like="licences"),
        "number of each licence that the job needs",
        symbol="l_l",
        default=None,
        filled=_none_needed,
    )
    held_licences: Ints = field(
        Amounts("licences", like="costs"),
        "number of each licence that is free once the claim is lifted",
        symbol="g_il",
        default=None,
        filled=_none_held,
    )
    nodes: Sequence[str | int] | None = labels("free", "a name for each node")
    claims: Sequence[str | int] | None = labels("costs", "a name for each claim")
    job: str | int | None = field(Label(), "a name for the job", default=None)

    sense = "min"
    default_solver = "highs"

    @staticmethod
    def joint_mistakes(fields: Fields, *, on_file: bool) -> list[str]:
        """Return the mistakes in labels that belong together, and in too large costs."""
        found = []
        if fields["allowed"] is not None:
            known = {*(fields["kinds"] or ())}
            found += first_few(
                "allowed",
                [
                    f"allowed[{place}]: {kind!r}; expected a text in kinds"
                    for place, kind in enumerate(fields["allowed"])
                    if kind not in known
                ],
            )
        needed = {"switch": "switches", "block": "blocks"}.get(fields["span"])
        if needed and fields[needed] is None:
            found.append(f"span: {fields['span']}; expected {needed}, one for each node")
        total = sum(fields["costs"].tolist())
        if total > COUNTABLE:
            found.append(f"costs: {total} in all; expected at most 2^53")
        return found

    @property
    def size(self) -> str:
        """Chunks, nodes and claims: ``4@64-120``."""
        return f"{self.chunks}@{len(self.free)}-{len(self.costs)}"

    def objective(self, solution: Release) -> int:
        """Return the cost of the lifted claims."""
        return sum(int(self.costs[claim]) for claim in solution.lifted)

    def violations(self, solution: Release) -> list[Violation]:
        """Check claims, chunks, nodes, resources, span, exclusive nodes and licences."""
        claims, nodes = len(self.costs), len(self.free)
        lifted = {*solution.lifted}
        if len(lifted) < len(solution.lifted) or not lifted <= {*range(claims)}:
            detail = f"lifted are {list(solution.lifted)}, of {claims} claims"
            return [Violation("claim", detail)]
        if outside := [node for node in solution.nodes if not 0 <= node < nodes]:
            return [Violation("node", f"the job is on node {outside[0]}, of {nodes}")]
        found = []
        if len(solution.nodes) != self.chunks:
            detail = f"the job has {len(solution.nodes)} nodes for its {self.chunks} chunks"
            found.append(Violation("chunks", detail))
        counts = Counter(solution.nodes)
        there: dict[int, list[tuple[int, tuple[int, ...]]]] = {node: [] for node in counts}
        for claim, rows in enumerate(self.held):
            for node, *amounts in rows:
                if node in there:
                    there[node].append((claim, tuple(amounts)))
        for node, count in counts.items():
            kept = [claim for claim, _ in there[node] if claim not in lifted]
            freed = [amounts for claim, amounts in there[node] if claim in lifted]
            found += self._violations_on(node, count, kept, freed)
        groups = {"switch": self.switches, "block": self.blocks}.get(self.span)
        if groups is not None and len(spanned := {groups[n] for n in solution.nodes}) > 1:
            found.append(Violation("span", f"the job is in {len(spanned)} of {self.span}"))
        for licence, needed in enumerate(self.licences_of.tolist()):
            free = int(self.licences[licence])
            free += sum(int(self.held_licences[claim, licence]) for claim in lifted)
            if needed > free:
                detail = f"{needed} of {free} of licence {licence + 1} are used"
                found.append(Violation("licence", detail))
        return found

    def _violations_on(
        self, node: int, count: int, kept: Sequence[int], freed: Sequence[tuple[int, ...]]
    ) -> list[Violation]:
        """Check the chunks on a node, where some claims are kept and others free amounts."""
        found = []
        kind = None if self.kinds is None else self.kinds[node]
        if self.allowed is not None and kind not in self.allowed:
            found.append(Violation("kind", f"the job is on node {node} of kind {kind}"))
        if self.most_per_node and count > self.most_per_node:
            detail = f"the job has {count} chunks on node {node}, more than {self.most_per_node}"
            found.append(Violation("per node", detail))
        free = [sum(amounts) for amounts in zip(self.free[node].tolist(), *freed)]
        for name, one, needed in zip(self.resources, free, self.demand.tolist()):
            if count * needed > one:
                detail = f"{count * needed} of {one} {name} of node {node} are used"
                found.append(Violation("resource", detail))
        if self.exclusive and (kept or node in self.busy):
            found.append(Violation("exclusive", f"the job shares node {node} with other jobs"))
        return found

    def solution_to_json(self, solution: Release) -> dict[str, Any]:
        """Return the lifted claims, from 1, and the node of each chunk, from 0."""
        return {
            "lifted": [claim + 1 for claim in solution.lifted],
            "nodes": list(solution.nodes),
        }

    def solution_from_json(self, fields: Mapping[str, Any]) -> Release:
        """Return the release written by `solution_to_json`.

        Raises
        ------
        InputError
            If `fields` are not of that form.
        """
        given = fields if isinstance(fields, Mapping) else {}
        check = FieldChecks(self.name)
        lifted = check.integers("lifted", given.get("lifted"), at_least=1)
        nodes = check.integers("nodes", given.get("nodes"), at_least=0)
        check.done()
        return Release(tuple((lifted - 1).tolist()), tuple(nodes.tolist()))

    def describe(self, solution: Release | None = None) -> list[tuple[str, str]]:
        """Return the job and what is free, or the lifted claims and the nodes."""
        if solution is None:
            demand = ", ".join(
                f"{n:,} {name}" for n, name in zip(self.demand.tolist(), self.resources) if n
            )
            free = ", ".join(
                f"{n:,} {name}" for n, name in zip(self.free.sum(axis=0), self.resources)
            )
            name = "-" if self.job is None else str(self.job)
            return [
                ("job", name),
                ("chunks", f"{self.chunks:,} of {demand or 'nothing'}"),
                ("free", f"{free or '-'} on {len(self.free):,} nodes"),
                ("claims", f"{len(self.costs):,}, of cost {int(self.costs.sum()):,} in all"),
            ]
        claims = self.claims or range(1, len(self.costs) + 1)
        names = self.nodes or range(len(self.free))
        lines = [
            (f"lift {claims[claim]}", f"cost {int(self.costs[claim]):,}")
            for claim in solution.lifted[:SHOWN]
        ]
        if len(solution.lifted) > SHOWN:
            lines.append(("more", f"{len(solution.lifted) - SHOWN:,} claims"))
        used = " ".join(str(names[node]) for node in dict.fromkeys(solution.nodes))
        return [*lines, ("start on", used or "-")]
