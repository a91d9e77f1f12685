"""Nodes, contents and what they leave unusable, for the search for the least fragmentation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.models.node_placement.fields import WHOLE
from optsched.models.node_placement.problem import task_types
from optsched.solvers.node_placement._costed_pricing import (
    Costed,
    Mix,
    Scratch,
    Spots,
    price_spots,
    unusable,
)
from optsched.solvers.node_placement._depth_first import contents_found, found_for, way_for
from optsched.solvers.node_placement._effort import Effort
from optsched.solvers.node_placement._relaxation import SECONDS_PER_STEP
from optsched.solvers.node_placement._types import Content, Instance, Ints

Floats = NDArray[np.float64]

CONTENTS, CONTENTS_IF_FEW = 4, 16
"""Contents of a spot that one pricing may add, and those for few spots."""

FEW = 100


class Column(NamedTuple):
    """A content of a spot, and the fragmentation that it leaves."""

    spot: int
    content: Content
    cost: float


class Nodes:
    """The nodes of an instance by spots, and the tasks that count in the fragmentation.

    Nodes of a spot have the same use for all chunks, and the same free resources and devices. Nodes
    on which no chunk fits are left out.

    Attributes
    ----------
    instance : Instance
        Types, classes and kinds.
    mix, spots : Mix, Spots
        Tables of tasks and spots.
    unit : int
        Thousandths of a unit of devices.
    scale : float
        Fragmentation as `NodePlacement.measures` counts it, for a device.
    of_spot : list of list of int
        Nodes of each spot.
    spot_of : dict
        Spot of each node.
    number, kind : int64 arrays, shape (spots,)
        Number of nodes of each spot, and their kind.
    """

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        problem = instance.problem
        mix = task_types(problem)
        jobs = np.array([task.job for task in mix], dtype=np.int64)
        chunks = np.array([task.chunks for task in mix], dtype=np.float64)
        share = problem.share[jobs]
        self.unit = WHOLE // instance.units
        self.scale = WHOLE * float(max(1.0, chunks.sum()))
        self.mix = Mix(
            need=np.ascontiguousarray(problem.demand[jobs]),
            on_one=np.minimum(share, WHOLE),
            whole=share // WHOLE,
            part=chunks / self.scale,
        )
        nodes_of: dict[tuple[object, ...], list[int]] = {}
        devices_of: list[list[int]] = []
        for node in np.flatnonzero(instance.kind_of >= 0).tolist():
            free, order = problem.devices[node], instance.device_order(node)
            others = [share for place, share in enumerate(free) if place not in order]
            devices = [*(free[place] for place in order), *sorted(others)]
            key = instance.kind_of[node], problem.free[node].tobytes(), tuple(devices)
            if key not in nodes_of:
                devices_of.append(devices)
            nodes_of.setdefault(key, []).append(node)
        self.of_spot = list(nodes_of.values())
        self.spot_of = {node: s for s, nodes in enumerate(self.of_spot) for node in nodes}
        self.number = np.array([len(nodes) for nodes in self.of_spot], dtype=np.int64)
        first = [nodes[0] for nodes in self.of_spot]
        self.kind = instance.kind_of[first]
        self.spots = self._spots(first, devices_of, jobs)

    def _spots(self, first: list[int], devices_of: list[list[int]], jobs: Ints) -> Spots:
        instance, mix = self.instance, self.mix
        problem, kinds = instance.problem, instance.kinds
        spots, most = len(first), max(map(len, devices_of), default=0)
        device, room = np.zeros((2, spots, most), dtype=np.int64)
        whole = kinds.whole[self.kind]
        useful = whole + kinds.num_parts[self.kind]
        for spot, devices in enumerate(devices_of):
            device[spot, : len(devices)] = devices
            room[spot, : whole[spot]] = instance.units
            room[spot, whole[spot] : useful[spot]] = kinds.parts[self.kind[spot]][
                : useful[spot] - whole[spot]
            ]
        free = np.ascontiguousarray(problem.free[first])
        fits: NDArray[np.bool_] = np.all(free[:, None, :] >= mix.need[None], axis=2)
        for task, job in enumerate(jobs.tolist()):
            fits[:, task] &= instance.allowed(job)[first]
        sizes = np.unique(mix.on_one)
        never = np.where(fits, 0.0, mix.part).sum(axis=1)[:, None]
        size = np.searchsorted(sizes, np.arange(WHOLE + 1), side="right")
        too_large = np.arange(len(sizes) + 1)[:, None] <= np.searchsorted(sizes, mix.on_one)
        too_many = np.arange(most + 1)[:, None] < mix.whole
        usable = np.where(fits, mix.part, 0.0)
        return Spots(
            free=free,
            device=device,
            whole=whole,
            useful=useful,
            devices=np.array(list(map(len, devices_of)), dtype=np.int64),
            room=room,
            copies=np.ascontiguousarray(kinds.fits[self.kind]),
            enough=np.ascontiguousarray(kinds.room[self.kind] <= instance.types.most),
            fits=fits,
            size=size,
            lost=np.ascontiguousarray(never + usable @ too_large.T),
            lost_whole=np.ascontiguousarray(never + usable @ too_many.T),
        )

    def empty(self, spot: int) -> Column:
        """Return the column of no chunks."""
        nothing = np.zeros(len(self.instance.types.most), dtype=np.int64)
        return self.column(spot, Content(int(self.kind[spot]), nothing, ()))

    def column(self, spot: int, content: Content) -> Column:
        """Return the column of a content."""
        types = self.instance.types
        free, left = self.spots.free[spot].copy(), self.spots.device[spot].copy()
        for number, places in content.chunks:
            free -= types.need[number]
            for place in places:
                left[place] -= types.share[number] * self.unit
        return Column(spot, content, float(unusable(self.mix, self.spots, spot, free, left)))


class Pricing:
    """The best contents of spots at given prices."""

    def __init__(self, nodes: Nodes, effort: Effort) -> None:
        self._nodes, self._effort = nodes, effort
        instance = nodes.instance
        number, resources = instance.types.need.shape
        spots, devices = nodes.spots.device.shape
        contents = CONTENTS_IF_FEW if spots < FEW else CONTENTS

        def ints(*shape: int) -> Ints:
            return np.zeros(shape, dtype=np.int64)

        self._scratch = Scratch(
            items=ints(number),
            net=np.zeros(number),
            order=np.zeros(number),
            best=np.zeros(instance.units + 1),
            item_of=ints(instance.units + 1),
            sizes=ints(instance.units + 1),
            fill=np.zeros((devices + 1, instance.units + 1)),
            last=ints(devices + 1, instance.units + 1),
            group=np.zeros(devices + 1),
            last_group=ints(devices + 1),
            tail=np.zeros(devices + 1),
            rest=np.zeros(devices + 1),
            loose=np.zeros(number + 1),
            used=np.zeros(resources),
            slope=np.zeros(resources),
            nearest=np.zeros(resources),
            left=ints(devices),
            copies=ints(number),
            way=way_for(instance),
        )
        self._costed = Costed(
            value=np.zeros(spots),
            bound=np.zeros(spots),
            found=found_for(instance, spots, contents),
            cost=np.zeros((spots, contents)),
            multipliers=np.zeros((spots, resources)),
        )

    def price(self, prices: Floats, todo: Ints, tolerance: float, limit: int) -> Floats:
        """Price some spots; return bounds of what their best contents are worth."""
        nodes = self._nodes
        steps = price_spots(
            nodes.instance.types, nodes.mix, nodes.spots, todo, prices, nodes.unit,
            tolerance, limit, self._scratch, self._costed,
        )  # fmt: skip
        self._effort.work += SECONDS_PER_STEP * steps
        bounds: Floats = self._costed.bound[todo]
        return bounds

    def columns(self, spot: int) -> Iterator[Column]:
        """Yield the contents found for a spot, the best first."""
        instance, costed = self._nodes.instance, self._costed
        kind = int(self._nodes.kind[spot])
        for place, content in contents_found(instance, costed.found, spot, kind):
            yield Column(spot, content, float(costed.cost[spot, place]))
