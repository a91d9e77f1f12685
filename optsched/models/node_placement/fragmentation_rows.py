"""Fragmentation as variables and rows of the integer program of a node placement."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from optsched.arrays import Ints
from optsched.models.node_placement.fields import WHOLE
from optsched.models.node_placement.problem import NodePlacement, task_types
from optsched.models.program import ProgramBuilder


class DeviceList(NamedTuple):
    """All devices of all nodes: free thousandths, node, and number on the node."""

    free: Ints
    node: Ints
    number: Ints
    first: Ints  # device of each node, shape (nodes + 1,)


def devices_of(problem: NodePlacement) -> DeviceList:
    """Return the devices of a problem in one list."""
    first = np.cumsum([0, *map(len, problem.devices)])
    free = np.array([share for row in problem.devices for share in row], dtype=np.int64)
    node = np.repeat(np.arange(len(problem.free)), np.diff(first))
    return DeviceList(free, node, np.arange(len(free)) - first[node], first)


class Terms(NamedTuple):
    """Entries of rows: coefficients, variables, and the row of each."""

    amount: Ints
    variables: Ints
    row: Ints

    def sums(self, x: Ints, rows: int) -> Ints:
        """Return the sum of each row."""
        total = np.zeros(rows, dtype=np.int64)
        np.add.at(total, self.row, self.amount * x[self.variables])
        return total


class FragmentationRows:
    """Variables and rows (20) to (27) of the model's page.

    ``f[n, g]`` and ``l[n, r]`` are what is left of device g and of resource r of node n. ``a``,
    ``h`` and ``k`` are 1 if a device, a resource and the number of whole devices suffice, and
    ``c[n]`` if the node has a chunk; ``t[i, n]`` is 1 if a chunk of type i fits there. ``q`` is
    what is left of a device that suffices, ``q_all[i, n]`` what a chunk of type i can use of node
    n.

    `price`: what a free thousandth of a device costs for each chunk of the mix that cannot use it;
    `jobs`, `nodes`: the pairs of a job and a node on which one of its chunks fits.
    """

    def __init__(self, problem: NodePlacement, price: int, jobs: Ints, nodes: Ints) -> None:
        self._problem, self._price = problem, price
        self._devices, self._mix = devices_of(problem), task_types(problem)
        self._jobs = np.array([task.job for task in self._mix], dtype=np.int64)
        possible = np.zeros((len(problem.chunks), len(problem.free)), dtype=np.bool_)
        possible[jobs, nodes] = True
        self._types, self._nodes = np.nonzero(possible[self._jobs])
        self._values: list[tuple[Ints, Callable[[Ints], Any]]] = []  # of variables, in a vector

    @property
    def entries(self) -> int:
        """Number of entries in rows, approximately."""
        per_node = np.diff(self._devices.first) + len(self._problem.resources)
        return 12 * int(per_node[self._nodes].sum())

    def add(
        self, builder: ProgramBuilder, x: Terms, jobs: Ints, on_devices: Terms, own: Terms
    ) -> None:
        """Add variables and rows.

        `x`: chunks of jobs on nodes; the rows are the nodes; `on_devices`: thousandths that are
        taken of devices; the rows are the devices; `own`: variables of jobs that have nodes to
        themselves; the rows are the nodes.
        """
        self._builder = builder
        types, devices = self._types, self._devices
        names = [f"type{i + 1}_node{n}" for i, n in zip(types.tolist(), self._nodes.tolist())]
        chunks = np.array([task.chunks for task in self._mix], dtype=np.int64)
        numbers = zip(devices.node.tolist(), devices.number.tolist())
        of_device = [f"node{n}_device{g}" for n, g in numbers]
        cost = -self._price * int(chunks.sum())
        f = self._left("f", of_device, devices.free, on_devices, cost)

        size = np.minimum(self._problem.share[self._jobs], WHOLE)[types]
        first = devices.first
        pair, at = joined(np.arange(len(types)), first[self._nodes], first[self._nodes + 1])
        enough = devices.free[at] >= size[pair]
        pair, at = pair[enough], at[enough]
        (device, sizes), use = _distinct(at, size[pair])
        of_size = [f"{of_device[g]}_share{s}" for g, s in zip(device.tolist(), sizes.tolist())]
        left = _each(f[device])
        a = self._at_least("a", of_size, left, sizes, devices.free[device])
        q = self._products("q", of_size, left, a, devices.free[device])

        whole = sizes == WHOLE
        fits = [
            *self._resources_suffice(x, jobs),
            self._whole_devices_suffice(a[whole], devices.node[device[whole]]),
        ]
        owner, owned = _matches(own.row, self._nodes)
        hinders = [self._chunks_there(x, jobs), (owned, own.variables[owner])]
        t = self._all_of(names, fits, hinders)
        usable = Terms(np.ones_like(pair), q[use], pair)
        most = np.zeros(len(t), dtype=np.int64)
        np.add.at(most, pair, devices.free[at])
        self._products("q_all", names, usable, t, most, self._price * chunks[types])

    def complete(self, x: Ints) -> None:
        """Set the variables in a vector that has all others."""
        for variables, values in self._values:
            x[variables] = values(x)

    def _resources_suffice(self, x: Terms, jobs: Ints) -> Iterator[tuple[Ints, Ints]]:
        """Add what is left of resources; yield pairs, and variables of what must suffice."""
        problem = self._problem
        for resource in range(len(problem.resources)):
            need = problem.demand[self._jobs, resource][self._types]
            needing = np.flatnonzero(need)
            (node, amount), which = _distinct(self._nodes[needing], need[needing])
            places, place = np.unique(node, return_inverse=True)
            taken = problem.demand[jobs, resource] * np.isin(x.row, places)
            taking = np.flatnonzero(taken)
            used = Terms(taken[taking], x.variables[taking], np.searchsorted(places, x.row[taking]))
            room = problem.free[:, resource]
            names = [f"resource{resource + 1}_node{n}" for n in places.tolist()]
            left = self._left("l", names, room[places], used, 0)
            names = [f"{names[i]}_{d}" for i, d in zip(place.tolist(), amount.tolist())]
            yield needing, self._at_least("h", names, _each(left[place]), amount, room[node])[which]

    def _whole_devices_suffice(self, a: Ints, node_of: Ints) -> tuple[Ints, Ints]:
        """Return pairs of types of several devices, and whether enough are wholly free."""
        share = self._problem.share[self._jobs][self._types]
        several = np.flatnonzero(share > WHOLE)
        (node, number), which = _distinct(self._nodes[several], share[several] // WHOLE)
        device, row = _matches(node_of, node)
        names = [f"node{n}_whole{k}" for n, k in zip(node.tolist(), number.tolist())]
        whole = Terms(np.ones_like(device), a[device], row)
        most = np.bincount(row, minlength=len(node))
        return several, self._at_least("k", names, whole, number, most)[which]

    def _chunks_there(self, x: Terms, jobs: Ints) -> tuple[Ints, Ints]:
        """Return pairs of types that share no node, and whether the node has a chunk."""
        alone = np.flatnonzero(np.isin(self._jobs, self._problem.exclusive)[self._types])
        node, which = np.unique(self._nodes[alone], return_inverse=True)
        chunk, row = _matches(x.row, node)
        most = np.zeros(len(node), dtype=np.int64)
        np.add.at(most, row, self._problem.chunks[jobs[chunk]])
        chunks = Terms(np.ones_like(chunk), x.variables[chunk], row)
        names = [f"node{n}" for n in node.tolist()]
        one = np.ones_like(node)
        return alone, self._at_least("c", names, chunks, one, np.maximum(most, 1))[which]

    def _left(self, letter: str, names: list[str], room: Ints, used: Terms, cost: int) -> Ints:
        """Add what is left of some room."""
        left = self._builder.variables(f"{letter}_{{}}", names, upper=room, objective=cost)
        self._builder.ragged_rows(f"{letter}_left_{{}}", (names,), used, _each(left), equal=room)
        self._values.append((left, lambda x: room - used.sums(x, len(room))))
        return left

    def _at_least(
        self, letter: str, names: list[str], sums: Terms, bound: Ints, most: Ints
    ) -> Ints:
        """Add variables that are 1 if and only if sums, of at most `most`, reach a bound."""
        reached = self._builder.variables(f"{letter}_{{}}", names)
        rows, less = np.arange(len(names)), (-sums.amount, sums.variables, sums.row)
        add = self._builder.ragged_rows
        add(f"{letter}_if_{{}}", (names,), less, (bound, reached, rows), at_most=0)
        above = -np.maximum(most - bound + 1, 0), reached, rows
        add(f"{letter}_only_{{}}", (names,), sums, above, at_most=bound - 1)
        self._values.append((reached, lambda x: sums.sums(x, len(rows)) >= bound))
        return reached

    def _products(
        self,
        letter: str,
        names: list[str],
        sums: Terms,
        switch: Ints,
        most: Ints,
        objective: ArrayLike = 0,
    ) -> Ints:
        """Add the sums where a variable is 1, and 0 where it is 0."""
        product = self._builder.variables(f"{letter}_{{}}", names, upper=most, objective=objective)
        rows, less = np.arange(len(names)), (-sums.amount, sums.variables, sums.row)
        off = (1, product), (-most, switch)
        self._builder.paired_rows(f"{letter}_off_{{}}", names, *off, at_most=0)
        add = self._builder.ragged_rows
        add(f"{letter}_most_{{}}", (names,), less, (1, product, rows), at_most=0)
        on = (-1, product, rows), (most, switch, rows)
        add(f"{letter}_on_{{}}", (names,), sums, *on, at_most=most)
        self._values.append((product, lambda x: x[switch] * sums.sums(x, len(rows))))
        return product

    def _all_of(
        self,
        names: list[str],
        fits: Sequence[tuple[Ints, Ints]],
        hinders: Sequence[tuple[Ints, Ints]],
    ) -> Ints:
        """Add variables that are 1 if and only if all that must be is 1, and all else 0.

        Both are given by the numbers of the variables to add, and a variable of each.
        """
        t = self._builder.variables("t_{}", names)
        of_fit, fit = (np.concatenate(parts) for parts in zip(*fits))
        of_hindrance, hindrance = (np.concatenate(parts) for parts in zip(*hinders))
        rows = np.arange(len(names))
        needed = np.bincount(of_fit, minlength=len(names))
        limits = [(-1, group) for group in fits] + [(1, group) for group in hinders]
        add = self._builder.ragged_rows
        for number, (sign, (which, variable)) in enumerate(limits):
            there = np.unique(which)
            terms = (1, t[there], there), (sign, variable, which)
            add(f"fits{number + 1}_{{}}", (names,), *terms, at_most=max(sign, 0))
        every = (1, t, rows), (-1, fit, of_fit), (1, hindrance, of_hindrance)
        add("fits_{}", (names,), *every, at_least=1 - needed)

        def all_are(x: Ints) -> Any:
            missing = needed.copy()
            np.subtract.at(missing, of_fit, x[fit])
            np.add.at(missing, of_hindrance, x[hindrance])
            return missing == 0

        self._values.append((t, all_are))
        return t


def joined(keys: Ints, first: Ints, last: Ints) -> tuple[Ints, Ints]:
    """Return each key as often as its interval is long, and the numbers of the intervals."""
    lengths = last - first
    starts = np.repeat(first - np.cumsum(lengths) + lengths, lengths)
    return np.repeat(keys, lengths), starts + np.arange(lengths.sum())


def _matches(some: Ints, keys: Ints) -> tuple[Ints, Ints]:
    """Return the places in `some` and in `keys` of all pairs of equal values."""
    order = np.argsort(some, kind="stable")
    ordered = some[order]
    first, last = (np.searchsorted(ordered, keys, side) for side in ("left", "right"))
    at, places = joined(np.arange(len(keys)), first, last)
    return order[places], at


def _distinct(one: Ints, other: Ints) -> tuple[Ints, Ints]:
    """Return the distinct pairs of values, in two rows, and the number of each pair given."""
    pairs, which = np.unique(np.stack([one, other]), axis=1, return_inverse=True)
    return pairs, which.ravel()


def _each(variables: Ints) -> Terms:
    return Terms(np.ones_like(variables), variables, np.arange(len(variables)))
