"""Rules of a site on top of a node placement: functions that are read with symbols and numbers.

A rule sees the jobs of the problem, then the jobs that run, whose chunks do not change. What
running jobs break already holds as far as it is: no start may make it worse.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched.arrays import Ints
from optsched.errors import InputError, UnknownNameError
from optsched.fields import LARGEST_FIELD
from optsched.models.linear import ONE, Block, Entries, Expression, Relation
from optsched.models.node_placement.fields import is_allowed
from optsched.models.node_placement.problem import COUNTABLE, NodePlacement, Placements
from optsched.models.node_placement.program import NodePlacementFormulation
from optsched.models.problem import Violation
from optsched.models.program import Formulation, Program
from optsched.models.stated import Symbols, as_data, read
from optsched.models.verification import Comparison, Numbers, Verification, numbers
from optsched.registry import find_class

Rule = Callable[..., None]

RESOURCES = {"gpus": ("gpu",), "cores": ("cpu", "cpus", "core")}
"""Names of columns that stand for resources of other names, too."""


def rule(statement: Rule) -> Rule:
    """Mark a function as a rule of node placements.

    It is called with a reading, whose methods are ``require``, ``some`` and ``minimize``, the
    columns of jobs and of nodes, whether each job is started, and the chunks of each job on each
    node::

        @optsched.rule
        def at_most_four_of_a_user(state, jobs, nodes, started, chunks):
            state.require("jobs", started.sum_by(jobs.user) <= 4)
    """
    statement.is_rule = True  # type: ignore[attr-defined]
    return statement


class Columns:
    """Columns of jobs or of nodes, as attributes, or by name where that is no identifier."""

    def __init__(self, of: str, count: int, columns: Mapping[str, Any]) -> None:
        self._of, self._count, self._columns = of, count, dict(columns)

    def __len__(self) -> int:
        return self._count

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, name: str) -> Any:
        if name not in self._columns:
            raise UnknownNameError(f"column of {self._of}", name, self._columns)
        return self._columns[name]

    def __contains__(self, name: object) -> bool:
        return name in self._columns


class RuledPlacement(NodePlacement):
    """A node placement with rules, made by `with_rules`.

    Generic solvers take the rules as further rows. Other solvers answer the placement without
    rules, its relaxation; see `optsched.solvers.solver_call`.
    """

    rules: Mapping[str, Rule]

    @property
    def relaxation(self) -> NodePlacement:  # type: ignore[override]
        """The placement without rules."""
        return NodePlacement.trusted(**{f.name: vars(self)[f.name] for f in self.schema.fields})

    def copy(self) -> RuledPlacement:
        """Return a deep copy of the fields, with the same rules."""
        return RuledPlacement.trusted(**vars(super().copy()), rules=self.rules)

    def formulate(self) -> Formulation[Any, Placements]:
        """Return the formulation with the rows of the rules."""
        return RuledFormulation(self)

    def violations(self, solution: Placements) -> list[Violation]:
        """Check the placement, then the rules."""
        return super().violations(solution) or self.verified(solution).found

    def objective(self, solution: Placements) -> int:
        """Return the objective of the placement, then what rules minimize."""
        found = self.verified(solution)
        return super().objective(solution) * found.scale - found.penalty

    def bound(self, bound: float | None) -> int | None:
        """Return the bound of the objective that follows from a bound of the relaxation."""
        return None if bound is None else int(np.floor(bound)) * self.as_it_is.scale

    def restricted(self, solution: Placements) -> Placements:
        """Return those placements of valid ones, of most weight first, that break no rule together.

        Jobs are taken in parts, each as large as the rules admit.
        """
        order = sorted(range(len(self.chunks)), key=lambda job: -int(self.weights[job]))
        left = [job for job in order if solution.nodes[job]]
        taken: list[int] = []
        part = max(1, len(left))
        while left:
            tried = left[:part]
            if not self.violations(solution.only([*taken, *tried])):
                taken += tried
                left, part = left[part:], 2 * part
            elif len(tried) > 1:
                part = len(tried) // 2
            else:
                left = left[1:]
        return solution.only(taken)

    def blocking(self, solution: Placements, job: int) -> str:
        """Return the rule that a further job would break on the room left, empty if none is known.

        Nodes are filled in order; a job that does not fit like this is not answered.
        """
        nodes = [list(at) for at in solution.nodes]
        there = room(self, solution, job)
        nodes[job] = np.repeat(np.arange(len(there)), there)[: self.chunks[job]].tolist()
        devices = [*solution.devices]
        devices[job] = ((),) * len(nodes[job])
        tried = Placements(tuple(map(tuple, nodes)), tuple(devices))
        if len(nodes[job]) < self.chunks[job] or self.relaxation.violations(tried):
            return ""
        found = self.verified(tried).found
        return f"rule {found[0]}" if found else ""

    @cached_property
    def as_it_is(self) -> RuleNumbers:
        """The rules, read with no start."""
        none = ((),) * len(self.chunks)
        return self.verified(Placements(none, none), {})

    def verified(
        self, solution: Placements, excess: Mapping[str, Any] | None = None
    ) -> RuleNumbers:
        """Return the rules, read with a placement that is valid but for them."""
        count = len(self.chunks)
        chunks = np.zeros((count + len(self._held), len(self.free)), dtype=np.int64)
        for job, at in enumerate(solution.nodes):
            for node, number in Counter(at).items():
                chunks[job, node] = number
        chunks[count:] = self._held
        started = np.ones(len(chunks), dtype=np.int64)
        started[:count] = [bool(at) for at in solution.nodes]
        reading = RuleNumbers(self.as_it_is.excess if excess is None else excess)
        self.read(reading, Numbers(started, 1), Numbers(chunks))
        return reading

    def read(self, reading: Any, started: Any, chunks: Any) -> None:
        """Read all rules."""
        for name, statement in self.rules.items():
            reading.rule = name
            read(statement, reading, *self._tables, started, chunks)

    @cached_property
    def _running(self) -> Mapping[str, Any]:
        return (self.columns or {}).get("running", {"nodes": ()})

    @cached_property
    def _held(self) -> Ints:
        """Chunks of running jobs on nodes, one on each of their nodes."""
        held = np.zeros((len(self._running["nodes"]), len(self.free)), dtype=np.int64)
        for job, nodes in enumerate(self._running["nodes"]):
            held[job, list(nodes)] = 1
        return held

    @cached_property
    def _tables(self) -> tuple[Columns, Columns]:
        given, count = self.columns or {}, len(self.chunks)
        running = len(self._held)
        chunk = dict(zip(self.resources, self.demand.T))
        if self.share.any():
            chunk.setdefault("gpus", -(-self.share // 1000))
        of_jobs = {name: amounts * self.chunks for name, amounts in chunk.items()}
        of_jobs |= {"chunks": self.chunks, "weights": self.weights}
        held = _renamed(self._running)
        held |= {"chunks": self._held.sum(axis=1), "weights": [0] * running}
        of_jobs |= given.get("jobs", {})
        jobs = {}
        for name, values in _renamed(of_jobs).items():
            if not running or name in held:
                jobs[name] = _array([*values, *held[name]]) if running else _array(values)
        names = [*(self.jobs or range(1, count + 1)), *held.get("name", range(-running, 0))]
        jobs["name"] = np.array([*map(str, names)])
        jobs["running"] = _array([0] * count + [1] * running)
        per_chunk = {
            name: _array([*values, *(-(-jobs[name][count:] // jobs["chunks"][count:]))])
            for name, values in _renamed(chunk).items()
            if name in jobs
        }
        jobs["chunk"] = Columns("chunks", count + running, per_chunk)
        of_nodes: dict[str, Any] = dict(zip(self.resources, self.free.T))
        one = {"kind": self.kinds, "switch": self.switches, "block": self.blocks}
        of_nodes |= {name: values for name, values in one.items() if values is not None}
        of_nodes |= dict(zip(self.levels, self.groups)) | {
            "name": self.nodes or range(len(self.free))
        }
        idle = np.ones(len(self.free), dtype=np.int64)
        idle[list(self.busy)] = 0
        of_nodes |= {"idle": idle} | dict(given.get("nodes", {}))
        nodes = {name: _array(values) for name, values in _renamed(of_nodes).items()}
        return Columns("jobs", count + running, jobs), Columns("nodes", len(self.free), nodes)


def room(
    problem: NodePlacement,
    solution: Placements,
    job: int,
    without: Container[str] = (),  # names of resources that do not count
) -> Ints:
    """Return how many chunks of a job each node has resources for beside the placed jobs."""
    placed = [(other, list(at)) for other, at in enumerate(solution.nodes) if at]
    free = problem.free.copy()
    for other, at in placed:
        np.subtract.at(free, at, problem.demand[other])
    counts = [name not in without for name in problem.resources]
    needed, most = problem.demand[job] * counts, int(problem.chunks[job])
    found = np.where(needed, free // np.maximum(needed, 1), most).min(axis=1)
    found = np.minimum(found, int(problem.most_per_node[job]) or most)
    found[~is_allowed(problem.kinds, problem.allowed[job], len(found))] = 0
    alone = job in problem.exclusive
    for other, at in placed:
        if alone or other in problem.exclusive:
            found[at] = 0
    if alone:
        found[list(problem.busy)] = 0
    return np.asarray(np.maximum(found, 0), dtype=np.int64)


def _renamed(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return columns with those of cores and GPUs under the names that rules use, too."""
    found = dict(columns)
    for name, others in RESOURCES.items():
        for other in others:
            if other in columns:
                found.setdefault(name, columns[other])
    return found


def _array(values: Any) -> Any:
    return as_data(np.asarray(values))


def with_rules(
    problem: NodePlacement,
    rules: Mapping[str, Rule] | Sequence[Rule],
    *,
    jobs: Mapping[str, Any] | None = None,
    nodes: Mapping[str, Any] | None = None,
    running: Mapping[str, Any] | None = None,
) -> RuledPlacement:
    """Return a node placement with rules.

    Rules read the columns of jobs and of nodes: ``chunks`` and ``weights`` of jobs and the amount
    of each resource that a job asks in all, and that of a chunk as ``jobs.chunk.cores``; of nodes
    the free amounts, ``name``, ``idle``, ``kind``, ``switch``, ``block`` and the levels; and those
    of the field `columns`.

    Parameters
    ----------
    problem : NodePlacement
        The placement.
    rules : mapping or sequence of callable
        The rules, see `rule`, by name.
    jobs, nodes, running : mapping, optional
        Columns beside those of the field `columns`: a value for each job of the problem, node, or
        running job; of these, ``nodes`` are the numbers of their nodes.

    Raises
    ------
    InputError
        If a rule has a mistake, its line is stated; or if columns have, or the objectives of the
        rules are too large.
    """
    if not isinstance(rules, Mapping):
        names = [statement.__name__ for statement in rules]
        for place, name in enumerate(names):
            if name in names[:place]:
                expected = "expected a mapping of names to rules"
                raise InputError(f"two rules are named {name}; {expected}")
        rules = dict(zip(names, rules))
    fields = {f.name: vars(problem)[f.name] for f in problem.schema.fields}
    added = {"jobs": jobs, "nodes": nodes, "running": running}
    columns = {
        name: {**(problem.columns or {}).get(name, {}), **(columns or {})}
        for name, columns in added.items()
    }
    stated = {name: of for name, of in columns.items() if of}
    if any(value is not None for value in added.values()):
        fields["columns"] = NodePlacement(**fields | {"columns": stated}).columns
    made = RuledPlacement.trusted(**fields, rules=dict(rules))
    largest = int(problem.weights.sum()) * int(np.prod(problem.radices, dtype=object))
    if largest * made.as_it_is.scale > COUNTABLE:
        raise InputError(
            "weights and objectives of rules exceed 2^53; expected smaller ones, as of --weigh rank"
        )
    return made


def rules_at(places: Sequence[str], field: str) -> dict[str, Rule]:
    """Return the rules of several places by name; errors name the field.

    A place is a file, ``FILE.py``, with all of its rules, or one of them, ``FILE.py:NAME``.
    """
    found: dict[str, Rule] = {}
    for place in map(find_class, places):
        there = {
            name: value
            for name, value in vars(place.module()).items()
            if getattr(value, "is_rule", False) and not name.startswith("_")
        }
        if not there:
            expected = "expected a function with @optsched.rule, or one of optsched.rules"
            raise InputError(f"holds no rule; {expected}", file=place.file)
        if place.name and place.name not in there:
            raise UnknownNameError("rule", place.name, there).within(place.file)
        for name in [place.name] if place.name else there:
            if name in found:
                raise InputError(f"{name} is the name of two rules", field=field)
            found[name] = there[name]
    return found


class _Reading:
    """What both readings of rules refuse: decisions, as a placement has no values of others."""

    rule = ""
    _require: Callable[[str, Any], None]

    def require(self, name: str, relation: Any) -> None:
        """Take a requirement, which holds as far as it does without a start."""
        # what does not hold anyway cannot relax an equation
        if isinstance(relation, Relation | Comparison) and relation.kind == "==":
            raise TypeError(
                "== in a rule; expected <= or >=, which a plan without a start may keep"
            )
        self._require(f"{self.rule} {name}", relation)

    def integer(self, name: str, *shape: int, lower: Any = 0, upper: Any) -> Any:
        """Refuse decisions."""
        expected = "expected some(...), or started or chunks"
        raise TypeError(f"{name}: a rule has no decisions of its own; {expected}")

    def maximize(self, value: Any) -> None:
        """Refuse to maximize."""
        raise TypeError("a rule may minimize(value, most), which counts after the placement")

    def some(self, name: str, amount: Any) -> Any:
        """Return 1 where an amount is above 0, otherwise 0."""
        return super().some(f"{self.rule} {name}", amount)  # type: ignore[misc]


class RuleNumbers(_Reading, Verification):
    """Reading of rules with numbers."""

    def __init__(self, excess: Mapping[str, Any]) -> None:
        super().__init__({})
        self._allowed = excess
        self.excess: dict[str, NDArray[Any]] = {}  # what does not hold where nothing starts
        # what a unit of the objective of the placement counts, and what the rules minimize
        self.scale, self.penalty = 1, 0

    def _require(self, name: str, relation: Any) -> None:
        relation = self._compared(name, relation)
        if not self._allowed:
            self.excess[name] = relation.excess
        self.found += relation.failures(name, self._allowed.get(name))

    def minimize(self, value: Any, most: int = LARGEST_FIELD) -> None:
        """Note a value from 0 to `most` that is minimized after all else."""
        for name in ("value", "least value"):  # the rows of `RuleSymbols.minimize`
            self._compared(f"{self.rule} {name}", True)
        if numbers(value).shape:
            raise ValueError("a value of several numbers; expected one, as their sum")
        amount = int(numbers(value).values.item())
        if not 0 <= amount <= most:
            self.found.append(Violation(self.rule, f"{amount}; from 0 to {most} to be minimized"))
        self.scale, self.penalty = self.scale * (most + 1), self.penalty * (most + 1) + amount


class RuleSymbols(_Reading, Symbols):
    """Reading of rules with symbols, on top of a program."""

    def __init__(self, base: Program, excess: Mapping[str, Any]) -> None:
        super().__init__(base)
        self._excess = excess
        self._scale, self._penalty = 1, Expression.of(0)

    def _require(self, name: str, relation: Any) -> None:
        if isinstance(relation, Relation) and name in self._excess:
            slack = np.asarray(self._excess[name], dtype=np.int64)
            if slack.any():
                sign = -1 if relation.kind == "<=" else 1
                relation = replace(relation, expression=relation.expression + sign * slack)
        Symbols.require(self, name, relation)

    def minimize(self, value: Any, most: int = LARGEST_FIELD) -> None:
        """Add a value from 0 to `most` that is minimized after all else."""
        self.require("value", value <= most)
        self.require("least value", value >= 0)
        self._scale, self._penalty = self._scale * (most + 1), self._penalty * (most + 1) + value

    def program(self) -> Program:
        """Return the program of the placement, with the rows of the rules."""
        base = self._base
        assert base is not None
        objective, offset = base.objective * self._scale, base.offset * self._scale
        self._base = replace(base, objective=objective, offset=offset)
        self._objective = -self._penalty
        return super().program()


class RuledFormulation(NodePlacementFormulation):
    """The program of a node placement with the rows of its rules behind those of the placement."""

    problem: RuledPlacement

    @cached_property
    def symbols(self) -> RuleSymbols:
        """The rules, read with symbols."""
        problem, (base, blocks) = self.problem, self._built
        reading = RuleSymbols(base, problem.as_it_is.excess)
        x, (job, node) = blocks["x"]
        p, held = blocks["p"].variables, problem._held
        count, nodes = len(p), len(problem.free)
        ones = np.ones(len(x), dtype=np.int64)
        placed = Entries(ones, x, "chunks", job * nodes + node)
        constant = np.concatenate((np.zeros((count, nodes), dtype=np.int64), held))
        chunks = Expression(constant.shape, (placed,), constant)
        if len(held):
            on = Entries(np.ones(count, dtype=np.int64), p, "started", np.arange(count))
            started = Expression((count + len(held),), (on,), np.repeat([0, 1], [count, len(held)]))
        else:
            started = Expression(p.shape, (Block(ONE, p, "started", True),))
        problem.read(reading, started, chunks)
        return reading

    @cached_property
    def program(self) -> Program:
        """The program of the placement, with the variables and rows of the rules added."""
        return self.symbols.program()

    def encode(self, solution: Placements) -> Ints:
        """Return the vector of placements."""
        x = np.zeros(self.program.num_variables, dtype=np.int64)
        base = super().encode(solution)
        x[: len(base)] = base
        self.symbols.complete(x, self.problem.verified(solution).derived)
        return x
