"""Line of nodes of several processors that share resources: ``smp:NxP``."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from optsched.errors import InputError
from optsched.machines.machine import check_counts
from optsched.machines.nodes import Nodes, Run, merged
from optsched.numbers import MOST_CAPACITY
from optsched.registry import machines

BANDWIDTH = 6_000
"""Memory bandwidth of a node in MB/s (Guim et al. 2009, section 6.2)."""

MOST_SMP_PROCESSORS = 2**20
"""Most processors of a machine."""

MOST_PER_NODE = 64
"""Most processors of a node."""

RESOURCE = re.compile(r"[a-z_]+")
"""Name of a resource."""

SPECIFICATION = re.compile(
    rf"([0-9]{{1,18}})x([0-9]{{1,18}})((?::{RESOURCE.pattern}=[0-9]{{1,18}})*)"
)


@machines.register("smp")
class Smp(Nodes):
    """Identical nodes of several processors each, which share the node's resources.

    A job may hold any processors. Processor p of node n has the number ``n * processors + p``, so
    the machine is also a line of processors. By default a job gets the first free processors.

    F. Guim, I. Rodero, J. Corbalan, "The resource usage aware backfilling", JSSPP 2009, section 3.

    `processors`: number of processors of a node; `capacity`: capacity of a node for each shared
    resource, by the name of the demand in the trace; by default ``bandwidth``, the memory bandwidth
    in MB/s.

    >>> machine = Smp(nodes=3, processors=4)
    >>> machine.resources(machine.claim(machine.place([1, 0, 3]), processors=4))
    '0 8-10'
    >>> machine.free_of.tolist()
    [3, 4, 1]
    """

    usage = "smp:NODESxPROCESSORS[:RESOURCE=CAPACITY]..."

    def __init__(
        self, nodes: int, processors: int, capacity: Mapping[str, int] | None = None
    ) -> None:
        capacity = {"bandwidth": BANDWIDTH} if capacity is None else dict(capacity)
        if not capacity:
            raise InputError("expected one resource at least, or no table", field="capacity")
        for name in capacity:
            if not RESOURCE.fullmatch(name):
                expected = "expected small letters and underscores"
                raise InputError(f"{name!r}; {expected}", field="capacity")
        check_counts({"nodes": nodes, "processors": processors, **capacity})
        for name, number in capacity.items():
            if number > MOST_CAPACITY:
                raise InputError(f"{number}; expected at most {MOST_CAPACITY:,}", field=name)
        if processors > MOST_PER_NODE:
            raise InputError(f"{processors}; expected at most {MOST_PER_NODE}", field="processors")
        if nodes * processors > MOST_SMP_PROCESSORS:
            raise InputError(
                f"{nodes * processors:,} processors; expected at most {MOST_SMP_PROCESSORS:,}"
            )
        super().__init__(nodes * processors)
        self.nodes = nodes
        self.processors = processors
        self.capacity = capacity
        # Number of free processors of each node. Read-only for callers. Shape (nodes,).
        self.free_of: NDArray[np.int64] = np.full(nodes, processors, dtype=np.int64)

    @classmethod
    def from_spec(cls, text: str) -> Self:
        """Build ``smp:<text>``."""
        match = SPECIFICATION.fullmatch(text)
        if match is None:
            raise InputError(f"machine 'smp:{text}'; expected {cls.usage}")
        capacity: dict[str, int] = {}
        for option in match[3].split(":")[1:]:
            name, _, number = option.partition("=")
            if name in capacity:
                raise InputError(f"machine 'smp:{text}'; expected it once", field=name)
            capacity[name] = int(number)
        return cls(int(match[1]), int(match[2]), capacity or None)

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> Self:
        """Build the machine from the keys nodes and processors, and perhaps a table capacity."""
        if not {"nodes", "processors"} <= set(table) <= {"nodes", "processors", "capacity"}:
            expected = "expected nodes, processors, and perhaps a table capacity"
            raise InputError(f"keys {sorted(table)}; {expected}")
        capacity = table.get("capacity")
        if capacity is not None and not isinstance(capacity, Mapping):
            raise InputError(f"{capacity!r}; expected a table", field="capacity")
        return cls(table["nodes"], table["processors"], capacity)

    @property
    def spec(self) -> str:
        """Specification that builds an equal machine."""
        whole = f"smp:{self.nodes}x{self.processors}"
        if self.capacity == {"bandwidth": BANDWIDTH}:
            return whole
        return whole + "".join(f":{name}={number}" for name, number in self.capacity.items())

    def allocate(self, processors: int) -> tuple[Run, ...]:
        """Allocate the first free processors; return their runs."""
        runs = super().allocate(processors)
        self._count(runs, -1)
        return runs

    def claim(self, place: tuple[Run, ...], processors: int) -> tuple[Run, ...]:
        """Allocate the runs of processors that a policy chose."""
        runs = super().claim(place, processors)
        self._count(runs, -1)
        return runs

    def release(self, allocation: tuple[Run, ...]) -> None:
        """Free the runs of a job."""
        super().release(allocation)
        self._count(allocation, +1)

    def place(self, processes: Sequence[int] | NDArray[np.int64]) -> tuple[Run, ...]:
        """Return the runs of the first free processors of each node for the given processes.

        `processes`: processes on each node, shape (nodes,).
        """
        starts, stops = self.slots.starts, self.slots.stops
        runs: list[Run] = []
        for node in np.flatnonzero(processes).tolist():
            missing = int(processes[node])
            if missing > self.free_of[node]:
                raise ValueError(f"{missing} processes for {self.free_of[node]} free processors")
            first = node * self.processors
            at = max(0, bisect_right(starts, first) - 1)
            while missing:
                start = max(first, starts[at])
                stop = min(stops[at], first + self.processors, start + missing)
                at += 1
                if start >= stop:
                    continue
                missing -= stop - start
                runs.append((start, stop))
        return merged(runs)

    def processes(self, allocation: tuple[Run, ...]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the nodes of an allocation, in order, and its processors on each."""
        width = self.processors
        on: dict[int, int] = {}
        for start, stop in sorted(allocation):
            while start < stop:
                node = start // width
                part = min(stop, (node + 1) * width) - start
                on[node] = on.get(node, 0) + part
                start += part
        return np.array([*on], dtype=np.int64), np.array([*on.values()], dtype=np.int64)

    def violations(self, held: Mapping[int, tuple[Run, ...]]) -> list[str]:
        """Compare the free processors, in total and by node, with those that running jobs hold."""
        found = super().violations(held)
        free = np.zeros(self.nodes, dtype=np.int64)
        for start, stop in self.slots:
            np.add.at(free, np.arange(start, stop) // self.processors, 1)
        wrong = np.flatnonzero(free != self.free_of).tolist()
        return found + [
            f"{self.free_of[node]} processors of node {node} counted free, {free[node]} are"
            for node in wrong
        ]

    def _count(self, runs: tuple[Run, ...], sign: int) -> None:
        """Count processors of nodes as held (-1) or free (+1)."""
        width, free_of = self.processors, self.free_of
        for start, stop in runs:
            first, last = start // width, (stop - 1) // width
            if first == last:
                free_of[first] += sign * (stop - start)
                continue
            free_of[first] += sign * ((first + 1) * width - start)
            free_of[last] += sign * (stop - last * width)
            free_of[first + 1 : last] += sign * width
