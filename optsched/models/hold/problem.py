"""Hold: the least to do so that a blocked job can start.

Model page: ``models/hold/README.md``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from optsched.arrays import Ints
from optsched.fields import LARGEST_FIELD, Choice, Fields, Integer, Parsed, Table, first_few, flag
from optsched.models.fields import AmountRows, Amounts, Integers, LabelSets, Numbers, Texts, label
from optsched.models.node_placement.fields import beyond_limits
from optsched.models.node_placement.problem import COUNTABLE, SHOWN
from optsched.models.problem import Problem, Violation
from optsched.models.schema import declared, field, labels
from optsched.registry import models


class Release(NamedTuple):
    """What is done, and the nodes that the job then gets.

    Parameters
    ----------
    lifted : tuple of int
        The claims that are lifted, from 0, in ascending order.
    nodes : tuple of int
        The node of each chunk, from 0, in ascending order.
    drained : tuple of int
        The nodes that are drained, from 0, in ascending order.
    moved : tuple of (int, tuple of int)
        The claims that are moved, from 0, in ascending order, and the new node of each of their
        chunks: those of the first row of `Hold.moved` first, ascending in each row.
    """

    lifted: tuple[int, ...]
    nodes: tuple[int, ...]
    drained: tuple[int, ...] = ()
    moved: tuple[tuple[int, tuple[int, ...]], ...] = ()


@models.register("hold")
@declared
class Hold(Problem[Release]):
    """A blocked job, the claims of other jobs, and what may be done so that it can start.

    A claim is what keeps amounts of nodes, or licences, from the job: a running job, which may be
    requeued or moved to other nodes; a pending job that would start there first, which may be held,
    or kept away from a node that is drained; a drained node, which may be resumed.

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
        Texts(), "names of the countable resources of nodes, `cores` and `memory` for instance"
    )
    free: Ints = field(
        Amounts("resources"),
        "amount of each resource of each node that no claim keeps from the job",
        symbol="C_nr",
    )
    chunks: int = field(Integer(1, LARGEST_FIELD), "number of chunks of the job", symbol="c")
    demand: Ints = field(
        Integers(0, like="resources"), "amount of each resource that a chunk needs", symbol="d_r"
    )
    costs: Ints = field(Integers(0), "cost of lifting each claim", symbol="w_i")
    held: tuple[tuple[tuple[int, ...], ...], ...] = field(
        AmountRows("resources", "costs", nodes="free"),
        "nodes of each claim, with the amounts that are free there once it is lifted",
        symbol="h_inr",
    )
    most_per_node: int = field(
        Integer(0, LARGEST_FIELD), "most chunks on a node, 0 for no limit", symbol="u", default=0
    )
    kinds: Sequence[str] | None = labels(
        "free", "kind of each node, which stands for its features and partitions", as_text=True
    )
    allowed: tuple[str, ...] | None = field(
        Texts(), "kinds of nodes that the job may use; null for all", symbol="K", default=None
    )
    switches: Sequence[str] | None = labels("free", "leaf switch of each node", as_text=True)
    blocks: Sequence[str] | None = labels(
        "free", "block, or higher switch, of each node", as_text=True
    )
    span: str = field(
        Choice("anywhere", "switch", "block"),
        "what holds all chunks: the nodes of one `switch`, of one `block`, or `anywhere`",
        default="anywhere",
    )
    exclusive: bool = field(
        flag(), "whether the job shares its nodes with no other job", default=False
    )
    busy: tuple[int, ...] = field(
        Numbers("node", first=0, of="free"),
        "nodes on which jobs run that have no claim here",
        default=(),
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
        each=0,
    )
    held_licences: Ints = field(
        Amounts("licences", like="costs"),
        "number of each licence that is free once the claim is lifted",
        symbol="g_il",
        each=0,
    )
    pending: tuple[int, ...] = field(
        Numbers("claim", of="costs", distinct=True),
        "claims of jobs that have not started: they are away from drained nodes",
        symbol="P",
        default=(),
    )
    fixed: tuple[int, ...] = field(
        Numbers("claim", of="costs", distinct=True),
        "claims that may not be lifted",
        symbol="F",
        default=(),
    )
    drain_costs: Ints | None = field(
        Integers(0, like="free"),
        "cost of draining each node until the job starts; null if no node may be drained",
        symbol="D_n",
        default=None,
    )
    moved: tuple[tuple[tuple[int, ...], ...], ...] = field(
        AmountRows("resources", "costs"),
        "chunks that a claim takes elsewhere if it is moved, each on a node of its own; none for "
        "a claim that may not be moved",
        symbol="q_is, a_isr",
        each=(),
    )
    move_costs: Ints = field(
        Integers(0, like="costs"), "cost of moving each claim", symbol="V_i", each=0
    )
    moved_to: tuple[tuple[str, ...] | None, ...] = field(
        LabelSets("kinds", like="costs"),
        "kinds of nodes to which a claim may be moved; null for all",
        symbol="K_i",
        each=None,
    )
    free_before: Ints = field(
        Amounts("resources", like="free"),
        "amount of each resource of each node that moved claims may take until the job starts; "
        "as `free` if left out",
        symbol="B_nr",
        default=None,
        filled=lambda fields: fields["free"],
    )
    nodes: Sequence[str | int] | None = labels("free", "a name for each node")
    claims: Sequence[str | int] | None = labels("costs", "a name for each claim")
    job: str | int | None = field(label(), "a name for the job", default=None)

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
        for claim in [claim for claim in fields["pending"] if fields["moved"][claim]][:1]:
            found.append(f"moved[{claim}]: expected no chunks, as claim {claim + 1} is pending")
        repeated = [
            f"moved[{claim}]: two rows of the same amounts; expected their chunks in one row"
            for claim, rows in enumerate(fields["moved"])
            if len({tuple(amounts) for _, *amounts in rows}) < len(rows)
        ]
        found += first_few("moved", repeated)
        costs = [fields["costs"], fields["move_costs"], fields["drain_costs"]]
        total = sum(sum(each.tolist()) for each in costs if each is not None)
        if total > COUNTABLE:
            found.append(f"costs: {total} in all; expected at most 2^53")
        return found

    @property
    def size(self) -> str:
        """Chunks, nodes and claims: ``4@64-120``."""
        return f"{self.chunks}@{len(self.free)}-{len(self.costs)}"

    def objective(self, solution: Release) -> int:
        """Return the cost of what is lifted, drained and moved."""
        cost = sum(int(self.costs[claim]) for claim in solution.lifted)
        cost += sum(int(self.move_costs[claim]) for claim, _ in solution.moved)
        if self.drain_costs is not None:
            cost += sum(int(self.drain_costs[node]) for node in solution.drained)
        return cost

    def violations(self, solution: Release) -> list[Violation]:
        """Check claims, chunks, nodes, resources, span, exclusive nodes and licences.

        Resources are checked at the start of the job, and for moved claims also before it.
        """
        found = self._wrong_numbers(solution)
        if found:
            return found
        found = beyond_limits(
            "the job",
            solution.nodes,
            kinds=self.kinds,
            allowed=self.allowed,
            most_per_node=self.most_per_node,
            groups={"switch": self.switches, "block": self.blocks}.get(self.span),
            span=self.span,
        )
        if len(solution.nodes) != self.chunks:
            detail = f"the job has {len(solution.nodes)} nodes for its {self.chunks} chunks"
            found.append(Violation("chunks", detail))
        counts = Counter(solution.nodes)
        taken: dict[int, list[tuple[int, ...]]] = {}  # by moved claims, on each node
        for claim, nodes in solution.moved:
            name, may_be_on = f"claim {claim + 1}", self.moved_to[claim]
            found += beyond_limits(
                name, nodes, kinds=self.kinds, allowed=may_be_on, most_per_node=1
            )
            needs = [amounts for count, *amounts in self.moved[claim] for _ in range(count)]
            for node, amounts in zip(nodes, needs):
                taken.setdefault(node, []).append(tuple(amounts))
        gone = {*solution.lifted, *(claim for claim, _ in solution.moved)}
        there: dict[int, list[tuple[int, tuple[int, ...]]]] = {}
        for claim, rows in enumerate(self.held):
            for node, *amounts in rows:
                there.setdefault(node, []).append((claim, tuple(amounts)))
        for node in sorted({*counts, *taken}):
            held, chunks = there.get(node, []), taken.get(node, [])
            left = gone | {*self.pending} if node in solution.drained else gone
            freed = [amounts for claim, amounts in held if claim in left]
            at_start = [counts[node] * needed for needed in self.demand.tolist()]
            found += self._overuse(node, "", self.free, freed, [at_start, *chunks])
            if chunks:
                freed = [amounts for claim, amounts in held if claim in gone - {*self.pending}]
                found += self._overuse(node, " before", self.free_before, freed, chunks)
            shared = chunks or node in self.busy or any(claim not in left for claim, _ in held)
            if self.exclusive and counts[node] and shared:
                found.append(Violation("exclusive", f"the job shares node {node} with other jobs"))
        lifted = self.held_licences[list(solution.lifted)].sum(axis=0)
        licences = zip((self.licences + lifted).tolist(), self.licences_of.tolist())
        for licence, (free, needed) in enumerate(licences):
            if needed > free:
                detail = f"{needed} of {free} of licence {licence + 1} are used"
                found.append(Violation("licence", detail))
        return found

    def _wrong_numbers(self, solution: Release) -> list[Violation]:
        """Check that claims and nodes exist, and that what is done to them may be done."""
        claims, nodes = range(len(self.costs)), range(len(self.free))
        moved = [claim for claim, _ in solution.moved]
        done = [*solution.lifted, *moved]
        if len({*done}) < len(done) or any(claim not in claims for claim in done):
            detail = f"lifted are {list(solution.lifted)}, of {len(claims)} claims"
            return [Violation("claim", f"{detail}, and moved {moved}" if moved else detail)]
        if outside := [node for node in solution.nodes if node not in nodes]:
            return [Violation("node", f"the job is on node {outside[0]}, of {len(nodes)}")]
        found = [
            Violation("fixed", f"claim {claim + 1} is lifted")
            for claim in sorted({*solution.lifted} & {*self.fixed})
        ]
        if solution.drained and (
            self.drain_costs is None
            or len({*solution.drained}) < len(solution.drained)
            or any(node not in nodes for node in solution.drained)
        ):
            may = 0 if self.drain_costs is None else len(nodes)
            detail = f"drained are {list(solution.drained)}, of {may} nodes that may be"
            found.append(Violation("drain", detail))
        elif solution.drained and (others := {*solution.nodes} - {*solution.drained}):
            detail = f"node {min(others)} of the job is not drained, as others are"
            found.append(Violation("drain", detail))
        else:
            served = {*solution.nodes}.union(*(at for _, at in solution.moved))
            if others := {*solution.drained} - served:
                detail = f"node {min(others)} is drained, where no chunk goes"
                found.append(Violation("drain", detail))
        for claim, at in solution.moved:
            needed = sum(count for count, *_ in self.moved[claim])
            alike = len({*at}) < len(at) or any(node not in nodes for node in at)
            if not needed or len(at) != needed or alike:
                detail = f"claim {claim + 1} is moved to {list(at)}, for {needed} chunks"
                found.append(Violation("move", detail))
        return found

    def _overuse(
        self, node: int, when: str, free: Ints, freed: Iterable[Any], used: Iterable[Any]
    ) -> list[Violation]:
        """Check that what is used of a node is free or freed."""
        has = [sum(amounts) for amounts in zip(free[node].tolist(), *freed)]
        needs = [sum(amounts) for amounts in zip(*used)]
        return [
            Violation("resource", f"{needed} of {one} {name} of node {node} are used{when}")
            for name, one, needed in zip(self.resources, has, needs)
            if needed > one
        ]

    def solution_to_json(self, solution: Release) -> dict[str, Any]:
        """Return the lifted claims, from 1, and the node of each chunk, from 0.

        Where nodes may be drained or claims moved, there are the drained nodes, from 0, and of each
        moved claim its number, from 1, with its new nodes.
        """
        fields: dict[str, Any] = {
            "lifted": [claim + 1 for claim in solution.lifted],
            "nodes": list(solution.nodes),
        }
        if self.drain_costs is not None:
            fields["drained"] = list(solution.drained)
        if any(self.moved):
            fields["moved"] = [[claim + 1, *nodes] for claim, nodes in solution.moved]
        return fields

    def solution_from_json(self, fields: Mapping[str, Any]) -> Release:
        """Return the release written by `solution_to_json`."""
        table = Table(fields)
        lifted = table.read("lifted", Integers(1, as_tuple=True))
        nodes = table.read("nodes", Integers(0, as_tuple=True))
        drained = table.read("drained", Integers(0, as_tuple=True), ())
        moved = table.read("moved", Parsed(_moves, "a list of lists of a claim and its nodes"), ())
        table.done(self.name)
        return Release(tuple(claim - 1 for claim in lifted), nodes, drained, moved)

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
        for claim, nodes in solution.moved[:SHOWN]:
            at = " ".join(str(names[node]) for node in nodes)
            lines.append(
                (f"move {claims[claim]}", f"to {at}, cost {int(self.move_costs[claim]):,}")
            )
        if solution.drained and self.drain_costs is not None:
            cost = int(self.drain_costs[list(solution.drained)].sum())
            at = " ".join(str(names[node]) for node in solution.drained)
            lines.append(("drain", f"{at}, cost {cost:,}"))
        used = " ".join(str(names[node]) for node in dict.fromkeys(solution.nodes))
        return [*lines, ("start on", used or "-")]


def _moves(value: Any) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Return the moves on file, claims from 1 each with nodes from 0, as those of a release."""
    rows = value if isinstance(value, list) else [[]]
    if not all(
        isinstance(row, list)
        and {*map(type, row)} == {int}
        and 0 <= min(row) <= max(row) <= LARGEST_FIELD
        for row in rows
    ):
        raise ValueError
    return tuple((claim - 1, tuple(nodes)) for claim, *nodes in rows)
