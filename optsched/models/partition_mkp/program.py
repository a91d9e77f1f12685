"""The 0-1 program of a partition knapsack, and its vectors.

Levels as in the two-level packing model of Lodi, Martello and Vigo: the first of the highest jobs
of a shelf leads it, the first of the highest shelves of a layer leads the layer. So no two vectors
differ in the names of shelves or layers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.boxes.layer_shapes import layer_shape
from optsched.models.partition_mkp.problem import PartitionMKP, Place, Placement
from optsched.models.program import UNBOUNDED, Program

WHOLE, SHELF, LAYER = range(3)
"""A job has layers of its own; is on the shelf of its leader; leads a shelf in its leader's layer.
"""


FAMILIES = ("once", "layers", "width", "height", "stands")
ONCE, LAYERS, WIDTH, HEIGHT, STANDS = range(len(FAMILIES))
"""The rows of the program, in this order."""


class Columns(NamedTuple):
    """The variables of a program, each array of shape (variables,).

    Only pairs that can be have one: the job fits into the bin, it comes behind its leader in the
    order of heights, and both fit side by side. They are sorted by bin, kind, leader and job.

    Parameters
    ----------
    bin : int64 array
        The bin.
    kind : int64 array
        `WHOLE`, `SHELF` or `LAYER`.
    leader : int64 array
        The job that leads; the job itself where it leads or shares nothing.
    job : int64 array
        The job.
    """

    bin: NDArray[np.int64]
    kind: NDArray[np.int64]
    leader: NDArray[np.int64]
    job: NDArray[np.int64]

    def places(self, x: NDArray[np.int64], jobs: int) -> Placement:
        """Return the places in a vector.

        Parameters
        ----------
        x : int64 array, shape (variables,)
            The vector.
        jobs : int
            How many jobs there are.
        """
        chosen = np.flatnonzero(x)
        columns = list(zip(*(array[chosen].tolist() for array in self)))
        layer_of = {(b, job): leader for b, kind, leader, job in columns if kind == LAYER}
        places: list[Place | None] = [None] * jobs
        for b, kind, leader, job in columns:
            if kind != LAYER:
                places[job] = Place(b, layer_of.get((b, leader), leader), leader)
        return tuple(places)

    def vector(self, places: Placement) -> NDArray[np.int64]:
        """Return the vector of a feasible placement; the inverse of `places`."""
        jobs = len(places)
        keys = self._keys(jobs)
        wanted = []
        for job, place in enumerate(places):
            if place is not None:
                b, layer, shelf = place
                columns = [(b, SHELF, shelf, job)]
                if shelf == job:
                    columns += [(b, LAYER, layer, job), (b, WHOLE, job, job)]
                wanted += columns
        one = Columns(*np.array(wanted, dtype=np.int64).reshape(-1, 4).T)._keys(jobs)
        x = np.isin(keys, one)
        return x.astype(np.int64)

    def _keys(self, jobs: int) -> NDArray[np.int64]:
        keys: NDArray[np.int64] = ((self.bin * 3 + self.kind) * jobs + self.leader) * jobs
        return keys + self.job


def columns_of(problem: PartitionMKP) -> Columns:
    """Return the variables of the program."""
    parts = [np.empty((4, 0), dtype=np.int64)]
    for number, (box, shapes) in enumerate(zip(problem.bins, _shapes(problem))):
        wide, deep, high = shapes.T
        whole = np.flatnonzero(deep > 1)
        parts.append(_part(number, WHOLE, whole, whole))
        inside = np.flatnonzero(deep == 1)
        inside = inside[np.argsort(-high[inside], kind="stable")]
        for kind, length, longest in ((SHELF, wide[inside], box.nx), (LAYER, high[inside], box.nz)):
            fits = length[:, None] + length[None] <= longest
            ahead, behind = np.nonzero(np.triu(fits, 1) | np.eye(len(inside), dtype=bool))
            leader, job = inside[ahead], inside[behind]
            order = np.lexsort((job, leader))
            parts.append(_part(number, kind, leader[order], job[order]))
    return Columns(*np.concatenate(parts, axis=1))


def _part(
    number: int, kind: int, leader: NDArray[np.int64], job: NDArray[np.int64]
) -> NDArray[np.int64]:
    return np.stack((np.full_like(job, number), np.full_like(job, kind), leader, job))


def _shapes(problem: PartitionMKP) -> NDArray[np.int64]:
    """Return the shape of each job in each bin, 0 where it does not fit, shape (bins, jobs, 3)."""
    shapes = [
        layer_shape(routers, box.extent) or (0, 0, 0)
        for box in problem.bins
        for routers in problem.routers
    ]
    return np.array(shapes, dtype=np.int64).reshape(len(problem.bins), len(problem.routers), 3)


def formulate(problem: PartitionMKP, columns: Columns) -> Program:
    """Return the program of the model's page, equations (1) to (7)."""
    number, kind, leader, job = columns
    jobs, bins = len(problem.waiting), len(problem.bins)
    extents = np.array(problem.bins, dtype=np.int64).reshape(-1, 6)[:, 3:]
    wide, deep, high = _shapes(problem)[number, job].T
    leads = leader == job
    placing, pair = kind != LAYER, number * jobs + leader
    # each family of rows is numbered from its own base: by job, by bin, or by bin and leader
    base = np.cumsum([0, jobs, bins, bins * jobs, bins * jobs])
    entries: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]] = []

    def add(family: int, rows: NDArray[np.int64], where: NDArray[np.bool_], values: Any) -> None:
        chosen = np.flatnonzero(where)
        coefficients = np.broadcast_to(values, where.shape)[chosen]
        entries.append((base[family] + rows[chosen], chosen, coefficients))

    add(ONCE, job, placing, 1)
    add(LAYERS, number, kind == WHOLE, deep)
    add(LAYERS, number, (kind == LAYER) & leads, 1)
    for family, of, size, axis in ((WIDTH, SHELF, wide, 0), (HEIGHT, LAYER, high, 2)):
        beside = (kind == of) & ~leads
        add(family, pair, beside, size)
        led = (kind == of) & leads & np.isin(pair, pair[beside])
        add(family, pair, led, size - extents[number, axis])
    add(STANDS, number * jobs + job, kind == LAYER, 1)
    add(STANDS, pair, (kind == SHELF) & leads, -1)
    rows, of_entry, values = (np.concatenate(parts) for parts in zip(*entries))
    order = np.argsort(rows, kind="stable")
    stated, entries_of = np.unique(rows, return_counts=True)
    family_of = np.searchsorted(base, stated, side="right") - 1
    within = stated - base[family_of]
    row_upper = np.zeros(len(stated), dtype=np.int64)
    row_upper[family_of == ONCE] = 1
    row_upper[family_of == LAYERS] = extents[within[family_of == LAYERS], 1]

    def variable_name(v: int) -> str:
        symbol, of = (("w", ""), ("x", "_shelf"), ("z", "_layer"))[kind[v]]
        led = f"{of}{leader[v] + 1}" if of else ""
        return f"{symbol}_bin{number[v] + 1}{led}_job{job[v] + 1}"

    def row_name(r: int) -> str:
        if family_of[r] == ONCE:
            return f"once_job{within[r] + 1}"
        if family_of[r] == LAYERS:
            return f"layers_bin{within[r] + 1}"
        b, j = divmod(int(within[r]), jobs)
        return f"{FAMILIES[family_of[r]]}_bin{b + 1}_job{j + 1}"

    return Program(
        sense="max",
        objective=np.where(placing, np.array(problem.profits, dtype=np.int64)[job], 0),
        lower=np.zeros(len(job), dtype=np.int64),
        upper=np.ones(len(job), dtype=np.int64),
        row_start=np.concatenate(([0], np.cumsum(entries_of))),
        columns=of_entry[order],
        values=values[order],
        row_lower=np.where(family_of == STANDS, 0, -UNBOUNDED),
        row_upper=row_upper,
        variable_name=variable_name,
        row_name=row_name,
    )
