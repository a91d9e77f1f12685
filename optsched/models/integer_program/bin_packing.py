"""Bin packing, and its integer program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple


class BinPacking(NamedTuple):
    """Items that go into as few bins as possible."""

    sizes: Sequence[int]  # size of each item, from 0
    capacity: int
    bins: int  # number of bins that there are

    def fields(self) -> dict[str, Any]:
        """Return the fields of its integer program, names aside.

        Variables tell for each item in turn whether it is in each bin, and then which bins are
        used. Rows are the capacities of bins, one bin for each item, and the order of used bins.
        """
        items, bins = len(self.sizes), self.bins
        used = range(items * bins, items * bins + bins)
        rows = [
            {j * bins + i: size for j, size in enumerate(self.sizes) if size}
            | ({used[i]: -self.capacity} if self.capacity else {})
            for i in range(bins)
        ]
        rows += [{j * bins + i: 1 for i in range(bins)} for j in range(items)]
        rows += [{one: 1, one + 1: -1} for one in used[:-1]]
        order = max(0, bins - 1)
        return {
            "sense": "min",
            "coefficients": [0] * (items * bins) + [1] * bins,
            "rows": rows,
            "at_least": [None] * bins + [1] * items + [0] * order,
            "at_most": [0] * bins + [1] * items + [None] * order,
        }

    def names(self) -> dict[str, list[str]]:
        """Return the names of the variables and rows of the program."""
        bins, items = range(1, self.bins + 1), range(1, len(self.sizes) + 1)
        used = [f"used_bin{i}" for i in bins]
        rows = [f"capacity_bin{i}" for i in bins] + [f"once_item{j}" for j in items]
        return {
            "variable_names": [f"x_item{j}_bin{i}" for j in items for i in bins] + used,
            "row_names": rows + [f"order_bin{i}" for i in bins[:-1]],
        }

    def values(self, bin_of_item: Sequence[int]) -> tuple[int, ...]:
        """Return the vector of the program that puts each item into a bin, used in order from 0."""
        x = [0] * ((len(self.sizes) + 1) * self.bins)
        for item, (b, size) in enumerate(zip(bin_of_item, self.sizes)):
            x[item * self.bins + b] = 1
            if size:
                x[len(self.sizes) * self.bins + b] = 1
        return tuple(x)

    def bin_of_item(self, values: Sequence[int]) -> list[int]:
        """Return the bin of each item in a feasible vector of the program, from 0."""
        bins = self.bins
        return [values[j * bins : (j + 1) * bins].index(1) for j in range(len(self.sizes))]

    def describe(self, values: Sequence[int]) -> list[tuple[str, str]]:
        """Return the items in each bin, with their sizes, of a feasible vector of the program."""
        inside: list[list[str]] = [[] for _ in range(self.bins)]
        for item, b in enumerate(self.bin_of_item(values)):
            inside[b].append(f"item{item + 1} ({self.sizes[item]})")
        return [(f"bin {i}", " ".join(items)) for i, items in enumerate(inside, 1) if items]
