"""Parts of a site: its topologies, and reservations of nodes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from optsched.arrays import Ints
from optsched.errors import InputError
from optsched.numbers import counted


class Record:
    """Base of dataclasses that are equal if all their fields are, arrays included."""

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        names = [field.name for field in fields(self)]  # type: ignore[arg-type]
        pairs = ((getattr(self, name), getattr(other, name)) for name in names)
        return all(np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b for a, b in pairs)

    __hash__ = None  # type: ignore[assignment]  # arrays have no hash


def whole_numbers(values: ArrayLike, name: str, low: int, high: int, dimensions: int = 1) -> Ints:
    """Return a read-only copy of whole numbers from `low` to `high`."""
    try:
        array = np.array(values)
    except (ValueError, OverflowError):  # lists of several lengths
        array = np.array("")
    if not array.size and array.ndim == dimensions:
        array = array.astype(np.int64)
    if array.ndim != dimensions or array.dtype.kind not in "iu":
        form = "a table" if dimensions == 2 else "a list"
        raise InputError(f"expected {form} of whole numbers", field=name)
    if array.size and not (low <= array.min() and array.max() <= high):
        value = array[(array < low) | (array > high)].flat[0]
        raise InputError(f"{value:,}; expected a whole number from {low:,} to {high:,}", field=name)
    array = array.astype(np.int64)
    array.flags.writeable = False
    return array


def repeated(names: Iterable[str]) -> str | None:
    """Return the first name that is there twice, or None."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


MOST_NODES = 1_000_000
"""Most nodes of a site."""


@dataclass(frozen=True, eq=False, repr=False)
class Tree(Record):
    """Tree of switches; nodes are on its leaf switches. One without switches is a flat network."""

    switches: tuple[str, ...]
    # Next higher switch of each switch, -1 for a root. There may be several roots. Shape
    # (switches,).
    parent: Ints
    group: Ints  # leaf switch of each node, -1 for a node on no switch, shape (nodes,)

    def __post_init__(self) -> None:
        assign(self, switches=tuple(self.switches))
        most = len(self.switches) - 1
        assign(self, parent=whole_numbers(self.parent, "parent", -1, most))
        assign(self, group=whole_numbers(self.group, "group", -1, most))
        if len(self.parent) != len(self.switches):
            raise InputError("expected one for each switch", field="parent")
        _check_names(self.switches, "switches")
        above = self.parent
        for _ in range(len(self.switches).bit_length()):  # twice as far up each time
            above = np.where(above < 0, -1, above[above])
        if (above >= 0).any():
            name = self.switches[int(np.flatnonzero(above >= 0)[0])]
            raise InputError(f"{name}: is above itself; expected a tree", field="switches")
        inner = np.intersect1d(self.group, self.parent[self.parent >= 0])
        if inner.size:
            name = self.switches[inner[0]]
            raise InputError(f"{name}: has nodes and switches; expected either", field="switches")

    def __repr__(self) -> str:
        return f"tree of {len(self.switches)} switches" if self.switches else "flat network"


@dataclass(frozen=True, eq=False, repr=False)
class Blocks(Record):
    """Blocks of well connected nodes, Slurm's topology/block."""

    names: tuple[str, ...]
    group: Ints  # block of each node, -1 for a node in no block, shape (nodes,)
    # Numbers of nodes of blocks, and of groups of neighbouring blocks, in which jobs are
    # placed; ascending. Empty if not stated.
    sizes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        assign(self, names=tuple(self.names))
        assign(self, group=whole_numbers(self.group, "group", -1, len(self.names) - 1))
        sizes = tuple(whole_numbers(self.sizes, "sizes", 1, MOST_NODES).tolist())
        assign(self, sizes=sizes)
        _check_names(self.names, "names")
        if any(low >= high for low, high in pairwise(sizes)):
            raise InputError("expected ascending numbers of nodes", field="sizes")

    def __repr__(self) -> str:
        return f"{len(self.names)} blocks"


class Places(NamedTuple):
    """Boxes of one shape on a torus, of which a job may have one; each wraps around."""

    dims: tuple[int, ...]  # number of positions along each dimension
    seed: tuple[int, ...]  # lowest position of the first one
    # Steps along each dimension from one to the next, which wrap around, too
    spacing: tuple[int, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Torus(Record):
    """Torus of any number of dimensions with one node at a position; a ring has one dimension."""

    dims: tuple[int, ...]  # number of positions along each dimension
    # Node at each position, -1 for none. The first coordinate varies fastest: position ``x +
    # X * (y + Y * z)`` is at x, y, z of X x Y x Z. Shape (positions,).
    nodes: Ints
    # Places of jobs, those of Slurm's topology/torus3d. Empty if not stated.
    places: tuple[Places, ...] = ()

    def __post_init__(self) -> None:
        dims = tuple(whole_numbers(self.dims, "dims", 1, MOST_NODES).tolist())
        assign(self, dims=dims, nodes=whole_numbers(self.nodes, "nodes", -1, MOST_NODES))
        if not dims or math.prod(dims) != len(self.nodes):
            size = f"{math.prod(dims):,}, the product of dims" if dims else "dims"
            raise InputError(f"{len(self.nodes):,} positions; expected {size}", field="dims")
        used = self.nodes[self.nodes >= 0]
        if len(np.unique(used)) < len(used):
            raise InputError("a node is at two positions; expected one", field="nodes")
        assign(self, places=tuple(self._checked(each) for each in self.places))

    def _checked(self, places: Places) -> Places:
        for name, low, above in (("dims", 1, 0), ("seed", 0, 1), ("spacing", 1, 0)):
            numbers = getattr(places, name)
            fits = len(numbers) == len(self.dims) and all(
                type(number) is int and low <= number <= most - above
                for number, most in zip(numbers, self.dims)
            )
            if not fits:
                expected = f"expected {low} to {'the torus less 1' if above else 'the torus'}"
                message = f"{name} {list(numbers)}; {expected}, along each dimension"
                raise InputError(message, field="places")
        return Places(*map(tuple, places))

    def __repr__(self) -> str:
        return f"torus {'x'.join(map(str, self.dims))}"


Topology: TypeAlias = Tree | Blocks | Torus

Switch: TypeAlias = tuple[str, Sequence[str], Sequence[str]]
"""A switch: its name, the names of its nodes and those of the next lower switches."""


def tree_of(switches: Sequence[Switch], index: Mapping[str, int], strange: list[str]) -> Tree:
    """Return the tree of switches; names that are not in the `index` are appended to `strange`."""
    names = [name for name, _, _ in switches]
    place = {name: number for number, name in enumerate(names)}
    parent = np.full(len(names), -1)
    leaf = np.full(len(index), -1)
    for number, (name, nodes, lower) in enumerate(switches):
        for child in lower:
            if child not in place:
                raise InputError(f"{child}; expected one of the switches", field=f"switches.{name}")
            if parent[place[child]] >= 0:
                other = names[parent[place[child]]]
                raise InputError(
                    f"{child}: is below {other} too; expected one", field=f"switches.{name}"
                )
            parent[place[child]] = number
        _assign(leaf, number, nodes, names, index, strange, "switches")
    return Tree(tuple(names), parent, leaf)


def blocks_of(
    blocks: Sequence[tuple[str, Sequence[str]]],
    sizes: ArrayLike,
    index: Mapping[str, int],
    strange: list[str],
) -> Blocks:
    """Return the blocks that are given by names: the name and the nodes of each."""
    names = [name for name, _ in blocks]
    block = np.full(len(index), -1)
    for number, (_, nodes) in enumerate(blocks):
        _assign(block, number, nodes, names, index, strange, "blocks")
    return Blocks(tuple(names), block, sizes)  # type: ignore[arg-type]


def places_of(names: Sequence[str], index: Mapping[str, int], strange: list[str]) -> Ints:
    """Return the index of each node, -1 for an empty name and for those appended to `strange`."""
    strange += [name for name in names if name and name not in index]
    return np.array([index.get(name, -1) for name in names], dtype=np.int64)


def _assign(
    group: Ints,
    number: int,
    nodes: Iterable[str],
    names: Sequence[str],
    index: Mapping[str, int],
    strange: list[str],
    kind: str,
) -> None:
    for node in nodes:
        place = index.get(node)
        if place is None:
            strange.append(node)
        elif group[place] >= 0:
            message = f"{node}: is in {names[group[place]]} too; expected one"
            raise InputError(message, field=f"{kind}.{names[number]}")
        else:
            group[place] = number


def assign(record: object, **values: object) -> None:
    """Set fields of a frozen dataclass, while it is made."""
    for name, value in values.items():
        object.__setattr__(record, name, value)


def _check_names(names: Sequence[str], field: str) -> None:
    if (twice := repeated(names)) is not None:
        raise InputError(f"{twice}: is there twice; expected different names", field=field)
    if "" in names:
        raise InputError("an empty name; expected names", field=field)


YEAR = 365 * 86_400
"""Seconds of the year 1970."""

FLOATS = "TIME_FLOAT"
"""Flag of a reservation that is always some time ahead."""

FLEX = "FLEX"
"""Flag of a reservation whose jobs may use other nodes, and start before it begins."""

MAGNETIC = "MAGNETIC"
"""Flag of a reservation that jobs use without asking for it."""

ADMITS = ("users", "accounts", "groups", "qos", "allowed_partitions")
"""Fields of JSON that say who may use a reservation."""


@dataclass(frozen=True)
class Reservation:
    """Nodes that only the jobs of the reservation may use between two times."""

    name: str
    # Names of its nodes. One that reserves only some cores of a node is taken to reserve it.
    nodes: tuple[str, ...]
    # Times in seconds since 1970; minus infinity and infinity where they are not known
    start: float = -math.inf
    end: float = math.inf
    licences: Mapping[str, int] = field(default_factory=dict)  # licences that only its jobs may use
    # Seconds from any time to the start, of a reservation whose start floats
    # (``TIME_FLOAT``): it never holds, but keeps from its nodes the jobs that run for longer
    ahead: float | None = None
    flags: tuple[str, ...] = ()  # further properties, such as `FLEX`
    # By field of `ADMITS`, whom it admits; those with a minus in front it does not
    admits: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    cores: int = 0  # physical cores of its nodes that it reserves, 0 if that is not known
    # Whether it names the cores of its nodes, or reserves generic resources
    has_parts: bool = False

    def __post_init__(self) -> None:
        if not self.name:
            raise InputError("empty; expected a name", field="name")
        if not self.start < self.end:
            raise InputError("expected a time after the start", field="end")

    def at(self, time: float) -> bool:
        """Return whether the reservation holds at a time."""
        return self.ahead is None and self.start <= time < self.end

    @property
    def finite(self) -> list[float]:
        """The start and the end, where there are any."""
        return [at for at in (self.start, self.end) if math.isfinite(at)]

    def overlaps(self, first: float, last: float) -> bool:
        """Return whether the reservation holds at some time from `first` until `last`."""
        if self.ahead is not None:
            return first + self.ahead < last
        return self.start < last and first < self.end


def overlapping(
    one: Reservation, others: Iterable[Reservation]
) -> Iterator[tuple[Reservation, list[str]]]:
    """Yield the other reservations of the same nodes at the same time, with these nodes."""
    for other in others:
        shared = sorted({*one.nodes} & {*other.nodes})
        if other is not one and shared and one.overlaps(other.start, other.end):
            yield other, shared


def untimely(reservations: Sequence[Reservation], first: float, last: float) -> str:
    """Return a note on dates of reservations that have no effect on a trace; empty for none.

    The trace is from `first` to `last`; one from 1970 does not say when it begins.
    """
    if first < YEAR:
        later = [each for each in reservations if max(last, YEAR) < max(each.finite, default=0)]
        if later:
            return (
                f"{counted(len(later), 'reservation')} with dates after the trace, which does not "
                "say when it begins (UnixStartTime in SWF); it is taken to begin in 1970"
            )
    elif reservations and not any(each.overlaps(first, last) for each in reservations):
        return f"none of {len(reservations):,} holds during the trace"
    return ""
