"""A site: nodes with countable resources, features and states, partitions and topologies.

Operators of constraints on features have no precedence: Slurm evaluates them from left to right, so
``a|b&c`` is ``(a|b)&c``. Brackets, the matching OR, offer choices, one of which holds for all nodes
of a job.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from optsched.arrays import Ints
from optsched.errors import InputError, UnknownNameError
from optsched.numbers import LONGEST, MOST_CAPACITY
from optsched.sites.parts import (
    MOST_NODES,
    Record,
    Reservation,
    Topology,
    Torus,
    assign,
    repeated,
    whole_numbers,
)
from optsched.sites.slurm_notation import host_list

DEEPEST = 20
"""Most parentheses within each other."""

_TOKEN = re.compile(r"[&|()\[\]]|[^&|()\[\]*,!\s]+")

_Test: TypeAlias = Callable[[frozenset[str], int], bool]
"""Whether features satisfy an expression, given the number of the choice in brackets."""


class Constraint(NamedTuple):
    """Constraint on the features of a node."""

    text: str  # the constraint as it was written
    choices: int  # number of choices in brackets; 1 without brackets
    test: _Test

    def holds(self, features: Iterable[str], choice: int = 0) -> bool:
        """Return whether a node with these features satisfies the constraint under a choice."""
        return self.test(frozenset(features), choice)


def parse_constraint(text: str) -> Constraint:
    """Return the constraint that a text states.

    >>> constraint = parse_constraint("ib&(a100|h100)")
    >>> constraint.holds(["ib", "h100"]), constraint.holds(["a100"])
    (True, False)
    >>> parse_constraint("[rack1|rack2]&ib").choices
    2
    """
    reading = _Reading(text)
    test = reading.expression(0)
    if reading.tokens:
        raise reading.wrong()
    return Constraint(text, reading.choices or 1, test)


class _Reading:
    """Recursive descent over the tokens of a constraint, the next one last."""

    def __init__(self, text: str) -> None:
        self.text = text
        if "*" in text:
            expected = "expected features without node counts (*)"
            raise InputError(f"{text!r}; {expected}", field="constraint")
        self.tokens = _TOKEN.findall(text)[::-1]
        self.choices = 0
        if "".join(self.tokens[::-1]) != text:
            raise self.wrong()

    def wrong(self) -> InputError:
        expected = "expected features with &, | and parentheses, or [a|b] once"
        return InputError(f"{self.text!r}; {expected}", field="constraint")

    def expression(self, depth: int) -> _Test:
        if depth > DEEPEST:
            raise self.wrong()
        first = self.term(depth)
        further: list[tuple[bool, _Test]] = []
        while self.tokens and self.tokens[-1] in "&|":
            both = self.tokens.pop() == "&"
            further.append((both, self.term(depth)))
        return _joined(first, further) if further else first

    def term(self, depth: int) -> _Test:
        token = self.tokens.pop() if self.tokens else ""
        if token == "(":
            test = self.expression(depth + 1)
            self.expect(")")
            return test
        if token == "[" and not self.choices:
            return self.matching_or(depth)
        if not token or token in "&|()[]":
            raise self.wrong()
        return lambda features, choice: token in features

    def matching_or(self, depth: int) -> _Test:
        self.choices = -1  # no brackets within brackets
        tests = [self.term(depth)]
        while self.tokens and self.tokens[-1] == "|":
            self.tokens.pop()
            tests.append(self.term(depth))
        self.expect("]")
        self.choices = len(tests)
        return lambda features, choice: tests[choice](features, choice)

    def expect(self, token: str) -> None:
        if not self.tokens or self.tokens.pop() != token:
            raise self.wrong()


def _joined(first: _Test, further: Sequence[tuple[bool, _Test]]) -> _Test:
    """Return the test of operands from left to right; each further one is joined by AND or OR."""

    def holds(features: frozenset[str], choice: int) -> bool:
        held = first(features, choice)
        for both, test in further:
            if held == both:
                held = test(features, choice)
        return held

    return holds


STATES = ("up", "reserved", "drained", "down")
"""States of a node. Jobs are started on nodes that are up. On reserved ones they are if a
reservation of the site keeps them, and says for which jobs and until when."""

NODE_NAME = re.compile(r"[^,\[\]\s]+")


@dataclass(frozen=True, eq=False, repr=False)
class Partition(Record):
    """Nodes that a job may ask for under one name, with limits."""

    name: str
    nodes: Ints  # indices of the nodes in the site, ascending, shape (nodes of the partition,)
    default: bool = False  # whether jobs that name no partition come here
    max_time: float = math.inf  # longest time limit of a job in seconds; infinity for no limit
    max_nodes: float = math.inf  # most nodes of a job; infinity for no limit
    exclusive: bool = False  # whether jobs share no node
    # Whether jobs share nodes only with jobs of their user. Simulations do not heed it.
    exclusive_user: bool = False
    up: bool = True
    priority_tier: int = 1  # jobs of a higher tier are placed first, whatever their priority
    priority_factor: int = 1  # factor of the partition in the priority of a job
    # Memory in MB for each core of a job that states none; 0 if the site has no such rule
    memory_per_core: int = 0
    topology: str = ""  # name of the topology; empty for the default one of the site

    def __post_init__(self) -> None:
        if not self.name:
            raise InputError("empty; expected a name", field="name")
        nodes = whole_numbers(self.nodes, "nodes", 0, MOST_NODES)
        assign(self, nodes=nodes)
        if (np.diff(nodes) <= 0).any():
            raise InputError("expected ascending indices of nodes", field="nodes")
        for name, low, high in (
            *(("max_time", 0, LONGEST), ("max_nodes", 0, MOST_NODES)),
            *(("priority_tier", 0, 65_535), ("priority_factor", 0, 65_535)),
            ("memory_per_core", 0, MOST_CAPACITY),
        ):
            value = getattr(self, name)
            if not (low <= value <= high or (name.startswith("max_") and value == math.inf)):
                expected = f"expected a number from {low} to {high:,}"
                raise InputError(f"{value}; {expected}", field=name)

    def __repr__(self) -> str:
        return f"<Partition {self.name!r}: {len(self.nodes)} nodes>"


class Node(NamedTuple):
    """Description of a node, as readers of files collect it."""

    name: str
    amounts: Mapping[str, int]  # ``cores`` and ``memory``, and further resources by name
    features: tuple[str, ...] = ()
    state: str = "up"
    reason: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class Site(Record):
    """Nodes of a cluster, what they have, and how they are grouped.

    >>> site = Site("small", ("c1", "g1"), ("cores", "memory", "gpu"),
    ...             np.array([[16, 64000, 0], [32, 256000, 4]]), features=(("ib",), ("ib", "a100")))
    >>> site
    <Site 'small': 2 nodes, 48 cores, 4 gpu>
    >>> site.matching("ib&a100")
    array([[False,  True]])
    """

    name: str
    nodes: tuple[str, ...]
    # ``cores``, ``memory`` (in MB), then further resources in alphabetical order: ``gpu``, or
    # ``gpu:a100`` for a type. One with a type counts in the column without it too: a job that
    # asks for ``gpu`` takes from that column only, one that asks for ``gpu:a100`` from both.
    # Cores are what Slurm calls CPUs: hardware threads, where a node has several for each
    # core.
    resources: tuple[str, ...]
    capacity: Ints  # amount of each resource of each node; read-only, shape (nodes, resources)
    features: tuple[tuple[str, ...], ...] = ()  # features of each node; by default none
    states: tuple[str, ...] = ()  # state of each node, one of `STATES`; by default ``up``
    reasons: tuple[str, ...] = ()  # why a node is in its state; empty if unknown
    partitions: tuple[Partition, ...] = ()
    licences: Mapping[str, int] = field(default_factory=dict)  # number of licences of each kind
    # Topologies by name; the first one is the default
    topologies: Mapping[str, Topology] = field(default_factory=dict)
    reservations: tuple[Reservation, ...] = ()

    def __post_init__(self) -> None:
        number = len(self.nodes)
        capacity = whole_numbers(self.capacity, "capacity", 0, MOST_CAPACITY, dimensions=2)
        shared: dict[tuple[str, ...], tuple[str, ...]] = {}  # equal features are one object
        features = (shared.setdefault(each, each) for each in map(tuple, self.features))
        assign(
            self,
            nodes=tuple(self.nodes),
            resources=tuple(self.resources),
            capacity=capacity,
            features=tuple(features) or ((),) * number,
            states=tuple(self.states) or ("up",) * number,
            reasons=tuple(self.reasons) or ("",) * number,
            partitions=tuple(self.partitions),
            licences=MappingProxyType(dict(self.licences)),
            topologies=MappingProxyType(dict(self.topologies)),
            reservations=tuple(self.reservations),
        )
        self._check_nodes()
        self._check_resources()
        self._check_partitions()
        self._check_reservations()
        for name, total in self.licences.items():
            if type(total) is not int or not 0 <= total <= MOST_CAPACITY or not name:
                expected = f"expected a whole number from 0 to {MOST_CAPACITY:,}"
                raise InputError(f"{total}; {expected}", field=f"licences.{name}")

    def __repr__(self) -> str:
        return f"<Site {self.name!r}: {self.inventory}>"

    @property
    def inventory(self) -> str:
        """What the site has, in a line: the numbers of nodes, cores and partitions, the network."""
        totals = dict(zip(self.resources, self.capacity.sum(axis=0).tolist()))
        parts = [f"{len(self.nodes):,} nodes", f"{totals.pop('cores'):,} cores"]
        parts += [
            f"{total:,} {name}"
            for name, total in totals.items()
            if name != "memory" and ":" not in name
        ]
        if self.partitions:
            parts.append(f"{len(self.partitions)} partitions")
        parts += map(repr, self.topologies.values())
        return ", ".join(parts)

    def __reduce__(self) -> tuple[Callable[[], Site], tuple[()]]:
        """Return how another process builds an equal site: read-only mappings cannot be sent."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        values |= {name: dict(values[name]) for name in ("licences", "topologies")}
        return partial(type(self), **values), ()

    @cached_property
    def index(self) -> Mapping[str, int]:
        """Index of each node by its name."""
        return MappingProxyType({name: place for place, name in enumerate(self.nodes)})

    def places(self, names: Iterable[str]) -> Ints:
        """Return the indices of nodes, shape (names,)."""
        try:
            return np.array([self.index[name] for name in names], dtype=np.int64)
        except KeyError as error:
            raise UnknownNameError("node", error.args[0], self.nodes) from None

    def mask(self, names: Iterable[str]) -> NDArray[np.bool_]:
        """Return which nodes have these names, shape (nodes,)."""
        nodes = np.zeros(len(self.nodes), dtype=bool)
        nodes[self.places(names)] = True
        return nodes

    def known_places(self, names: Iterable[str]) -> Ints:
        """Return the indices of the nodes among some names, shape (nodes of the names,)."""
        there = [self.index[name] for name in names if name in self.index]
        return np.array(there, dtype=np.int64)

    def of_partitions(self, partitions: Iterable[Partition]) -> NDArray[np.bool_]:
        """Return which nodes are in one of some partitions, shape (nodes,)."""
        nodes = np.zeros(len(self.nodes), dtype=bool)
        for partition in partitions:
            nodes[partition.nodes] = True
        return nodes

    @property
    def unpartitioned(self) -> list[str]:
        """Nodes in no partition; Slurm allows them, but starts no job there."""
        placed = self.of_partitions(self.partitions).tolist()
        return [name for name, is_in in zip(self.nodes, placed) if not is_in]

    def partition(self, name: str) -> Partition:
        """Return a partition by its name."""
        if known := self.known_partitions([name]):
            return known[0]
        raise UnknownNameError("partition", name, [each.name for each in self.partitions])

    def known_partitions(self, names: Iterable[str]) -> list[Partition]:
        """Return the partitions among some names, in the order of these."""
        there = {each.name: each for each in self.partitions}
        return [there[name] for name in names if name in there]

    def topology(self, name: str = "") -> Topology | None:
        """Return a topology by its name, or the default one; None if the site has none."""
        if not name:
            return next(iter(self.topologies.values()), None)
        if name not in self.topologies:
            raise UnknownNameError("topology", name, self.topologies)
        return self.topologies[name]

    def leaves(self) -> Ints:
        """Return the leaf switch, or the block, of each node in the default topology.

        They are indices of `Tree.switches` or `Blocks.names`; -1 for a node that is in none, and
        for all nodes in a torus or without a topology. Shape (nodes,).
        """
        chosen = self.topology()
        if chosen is None or isinstance(chosen, Torus):
            return np.full(len(self.nodes), -1)
        return chosen.group

    def matching(self, constraint: str | Constraint) -> NDArray[np.bool_]:
        """Return which nodes satisfy a constraint on features, shape (choices, nodes).

        All nodes of a job satisfy one of the choices. There are several only if the constraint has
        brackets: see `optsched.sites.site`.
        """
        if isinstance(constraint, str):
            constraint = parse_constraint(constraint)
        different = list({id(each): each for each in self.features}.values())
        number = {id(each): place for place, each in enumerate(different)}
        kind = np.array([number[id(each)] for each in self.features], dtype=np.int64)
        holds = [
            [constraint.holds(each, choice) for each in different]
            for choice in range(constraint.choices)
        ]
        return np.array(holds, dtype=bool).reshape(constraint.choices, -1)[:, kind]

    @cached_property
    def is_up(self) -> NDArray[np.bool_]:
        """Whether jobs may start on each node, shape (nodes,); read-only."""
        up = np.array([state == "up" for state in self.states], dtype=bool)
        up.flags.writeable = False
        return up

    @cached_property
    def everywhere(self) -> Partition:
        """All nodes, for jobs that name no partition where none is the default."""
        return Partition("all", np.arange(len(self.nodes)))

    @cached_property
    def is_usable(self) -> NDArray[np.bool_]:
        """Whether jobs may start on each node at some time, shape (nodes,); read-only.

        The node is up, or reserved by a reservation that is known.
        """
        usable = self.usable_with(self.reservations)
        usable.flags.writeable = False
        return usable

    def usable_with(self, reservations: Iterable[Reservation]) -> NDArray[np.bool_]:
        """Return which nodes are up, or reserved by one of some reservations, shape (nodes,)."""
        usable = self.is_up.copy()
        kept = self.known_places(name for each in reservations for name in each.nodes)
        usable[kept] |= np.array(self.states, dtype=str)[kept] == "reserved"
        return usable

    def _check_nodes(self) -> None:
        number = len(self.nodes)
        if number > MOST_NODES:
            raise InputError(f"{number:,}; expected at most {MOST_NODES:,}", field="nodes")
        for name in self.nodes:
            if not NODE_NAME.fullmatch(name):
                expected = "expected a name without commas, brackets and blanks"
                raise InputError(f"{name!r}; {expected}", field="nodes")
        if len(self.index) < number:
            twice = repeated(self.nodes)
            raise InputError(f"{twice}: is there twice; expected different names", field="nodes")
        for name in ("features", "states", "reasons"):
            if len(getattr(self, name)) != number:
                raise InputError("expected one for each node", field=name)
        if strange := set(self.states) - set(STATES):
            expected = f"expected {', '.join(STATES[:-1])} or {STATES[-1]}"
            raise InputError(f"{min(strange)!r}; {expected}", field="states")

    def _check_resources(self) -> None:
        names = self.resources
        if names[:2] != ("cores", "memory") or list(names[2:]) != sorted({*names[2:]}):
            expected = "expected cores, memory, and further ones in alphabetical order"
            raise InputError(f"{', '.join(names)}; {expected}", field="resources")
        if self.capacity.shape != (len(self.nodes), len(names)):
            raise InputError("expected a row for each node", field="capacity")
        for base, types in typed(names).items():
            if base not in names:
                message = f"{names[types[0]]}; expected {base} too, which it counts in"
                raise InputError(message, field="resources")
            least = self.capacity[:, types].sum(axis=1)
            short = np.flatnonzero(self.capacity[:, names.index(base)] < least)
            if short.size:
                node = self.nodes[short[0]]
                message = (
                    f"{base} of node {node}; expected at least the {least[short[0]]} with a type"
                )
                raise InputError(message, field="capacity")

    def _check_partitions(self) -> None:
        if (twice := repeated(each.name for each in self.partitions)) is not None:
            raise InputError(f"{twice}: is there twice", field="partitions")
        if (default := [each.name for each in self.partitions if each.default])[1:]:
            message = f"{' and '.join(default)} are default; expected one at most"
            raise InputError(message, field="partitions")
        for each in self.partitions:
            if each.nodes.size and each.nodes[-1] >= len(self.nodes):
                raise InputError(f"{each.name}: unknown node", field="partitions")
            self.topology(each.topology)
        for name, topology in self.topologies.items():
            if isinstance(topology, Torus):
                fits = topology.nodes.max(initial=-1) < len(self.nodes)
            else:
                fits = len(topology.group) == len(self.nodes)
            if not fits or not name:
                raise InputError("expected the nodes of the site", field=f"topologies.{name}")

    def _check_reservations(self) -> None:
        if (twice := repeated(each.name for each in self.reservations)) is not None:
            raise InputError(f"{twice}: is there twice", field="reservations")
        for each in self.reservations:
            if not self.index.keys() >= {*each.nodes}:
                raise InputError(f"{each.name}: unknown node", field="reservations")


def of_nodes(nodes: Sequence[Node]) -> dict[str, Any]:
    """Return the fields of a site that its nodes describe.

    A resource with a type counts for the one without, unless the description of the node has it.
    """
    rows = [dict(node.amounts) for node in nodes]
    for node, row in zip(nodes, rows):
        for name, amount in row.items():
            if not 0 <= amount <= MOST_CAPACITY:
                expected = f"expected a whole number from 0 to {MOST_CAPACITY:,}"
                raise InputError(f"{amount}; {expected}", field=f"{name} of node {node.name}")
        if any(":" in name for name in row):
            for base, types in typed(names := tuple(row)).items():
                row.setdefault(base, sum(row[names[place]] for place in types))
    further = {name for row in rows for name in row} - {"cores", "memory"}
    resources = ("cores", "memory", *sorted(further))
    amounts = [[row.get(name, 0) for name in resources] for row in rows]
    return {
        "nodes": tuple(node.name for node in nodes),
        "resources": resources,
        "capacity": np.array(amounts, dtype=np.int64).reshape(-1, len(resources)),
        "features": tuple(node.features for node in nodes),
        "states": tuple(node.state for node in nodes),
        "reasons": tuple(node.reason for node in nodes),
    }


def typed(resources: Sequence[str]) -> dict[str, list[int]]:
    """Return the places of the resources with a type, by the name without the type."""
    found: dict[str, list[int]] = {}
    for place, name in enumerate(resources):
        base, colon, _ = name.partition(":")
        if colon:
            found.setdefault(base, []).append(place)
    return found


def some(names: Sequence[str]) -> str:
    """Return the host list of nodes for a message, with their number if it is long.

    >>> some(["c2", "c1"]), some([f"c{number}" for number in range(0, 200, 2)])
    ('c[1-2]', '100 nodes, c0 first')
    """
    text = host_list(names)
    return text if len(text) <= 40 else f"{len(set(names)):,} nodes, {names[0]} first"
