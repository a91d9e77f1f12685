"""A three-dimensional torus of routers: ``torus:XxYxZ``."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

from optsched.errors import InputError, UnknownNameError
from optsched.machines.locality import locality
from optsched.machines.nodes import Nodes
from optsched.machines.orderings import ORDERINGS, Coordinates, ordering
from optsched.registry import machines

LARGEST = 2**20
"""Nodes; some ten times those of the largest torus that was built."""

SPECIFICATION = re.compile(r"([0-9]{1,18}(?:x[0-9]{1,18}){2,3})(?::(.*))?")

KEYS = frozenset({"shape", "nodes_per_router", "ordering"})


@machines.register("torus")
class Torus(Nodes):
    """A 3-D torus of routers, its nodes on a line in a processor ordering.

    Node ``p`` of the line is on the router at position ``p // nodes_per_router`` of the ordering.

    Parameters
    ----------
    shape : (int, int, int)
        Routers in each dimension.
    nodes_per_router : int
        Nodes on each router.
    ordering : {"hilbert", "row-major", "snake"}
        Processor ordering of the routers.

    Raises
    ------
    InputError
        If a number is not a whole one from 1, there is no such ordering, or the machine is too
        large.

    Examples
    --------
    >>> machine = Torus((8, 12, 12))
    >>> machine.size, machine.spec
    (1152, 'torus:8x12x12:hilbert')
    >>> machine.coordinates[:4].tolist()
    [[0, 0, 0], [0, 0, 1], [0, 1, 1], [0, 1, 0]]
    """

    usage = "torus:XxYxZ[xNODES][:ORDERING]"

    def __init__(
        self, shape: Sequence[int], nodes_per_router: int = 1, ordering: str = "hilbert"
    ) -> None:
        if not isinstance(shape, list | tuple) or len(shape) != 3 or not _are_counts(shape):
            raise InputError(f"{shape!r}; expected three whole numbers from 1", field="shape")
        if not _are_counts([nodes_per_router]):
            expected = "expected a whole number from 1"
            raise InputError(f"{nodes_per_router!r}; {expected}", field="nodes_per_router")
        if not isinstance(ordering, str) or ordering not in ORDERINGS:
            raise UnknownNameError("ordering", str(ordering), ORDERINGS)
        size = math.prod(shape) * nodes_per_router
        if size > LARGEST:
            raise InputError(f"torus of {size:,} nodes; expected at most {LARGEST:,}")
        super().__init__(size)
        self.shape = tuple(shape)
        self.nodes_per_router = nodes_per_router
        self.ordering = ordering

    @classmethod
    def from_spec(cls, text: str) -> Torus:
        """Build ``torus:<text>``."""
        match = SPECIFICATION.fullmatch(text)
        if match is None:
            raise InputError(f"machine 'torus:{text}'; expected {cls.usage}")
        numbers, ordering = match.groups(default="hilbert")
        *shape, nodes_per_router = [int(number) for number in f"{numbers}x1".split("x")][:4]
        return cls(shape, nodes_per_router, ordering)

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> Torus:
        """Build the machine from ``shape`` and, if given, ``nodes_per_router`` and ``ordering``."""
        if "shape" not in table or not KEYS.issuperset(table):
            expected = "expected shape and, if you like, nodes_per_router and ordering"
            raise InputError(f"keys {sorted(table)}; {expected}")
        return cls(**table)

    @property
    def spec(self) -> str:
        """The specification that builds this machine again."""
        numbers = [*self.shape, self.nodes_per_router][: 3 + (self.nodes_per_router > 1)]
        return f"torus:{'x'.join(map(str, numbers))}:{self.ordering}"

    @cached_property
    def coordinates(self) -> Coordinates:
        """Coordinates of the routers by position in the ordering, shape (routers, 3)."""
        return ordering(self.ordering, self.shape)

    def emptied(self) -> Torus:
        """Return a torus of the same form that no job holds."""
        return Torus(self.shape, self.nodes_per_router, self.ordering)

    def job_measures(self, resources: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Return the fields of `Locality` for each allocation."""
        return locality(self, resources)._asdict()


def _are_counts(numbers: Sequence[Any]) -> bool:
    return all(type(number) is int and number >= 1 for number in numbers)
