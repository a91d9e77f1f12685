"""The job sets of the greatest weight: a knapsack of jobs in all nodes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def heaviest_set(sizes: Ints, weights: Ints, nodes: int) -> list[int]:
    """Return jobs of the greatest weight that have at most a number of nodes in all.

    Examples
    --------
    >>> heaviest_set(np.array([3, 2, 2]), np.array([4, 3, 3]), nodes=4)
    [1, 2]
    """
    best = np.zeros(nodes + 1, dtype=np.int64)
    taken = []
    for size, weight in zip(sizes.tolist(), weights.tolist()):
        before = best
        best = _with_job(before, size, weight)
        taken.append(best > before)
    jobs = []
    for job in range(len(taken) - 1, -1, -1):
        if taken[job][nodes]:
            jobs.append(job)
            nodes -= int(sizes[job])
    return jobs[::-1]


class Optional(NamedTuple):
    """Jobs of one size and one weight that may be left out.

    Parameters
    ----------
    kind : int
        Place of the size among the sizes.
    weight : int
        Weight of each job, in units.
    jobs : int
        Number of the jobs.
    """

    kind: int
    weight: int
    jobs: int


@dataclass(frozen=True, eq=False)
class PrioritySets:
    """Job sets of at least a weight, as far as the nodes of all jobs together decide that.

    Of jobs of one size, those of more weight come first. So a set is a number of jobs of each size.

    Parameters
    ----------
    sizes : int64 array, shape (sizes,)
        The different sizes of jobs that are in one of the sets, in ascending order.
    most : int64 array, shape (sizes,)
        Most jobs of each size that a set has.
    optional : tuple of Optional
        Those of them that are not in all sets.
    slack : int
        Most weight that all optional jobs left out may have, in units.
    """

    sizes: Ints
    most: Ints
    optional: tuple[Optional, ...]
    slack: int

    @classmethod
    def of(cls, sizes: Ints, weights: Ints, nodes: int, weight: int) -> PrioritySets:
        """Return the sets of jobs that have at least a `weight` and at most a number of `nodes`."""
        by_size = {
            size: np.sort(weights[sizes == size])[::-1].tolist()
            for size in np.unique(sizes).tolist()
        }
        ranges = {
            size: numbers
            for size, numbers in _numbers(by_size, nodes, weight).items()
            if numbers[-1]
        }
        optional: list[Optional] = []
        slack = -weight
        for kind, (size, numbers) in enumerate(ranges.items()):
            slack += sum(by_size[size][: numbers[-1]])
            values, counts = np.unique(by_size[size][numbers[0] : numbers[-1]], return_counts=True)
            optional += map(Optional, [kind] * len(values), values.tolist(), counts.tolist())
        unit = math.gcd(*(one.weight for one in optional)) or 1
        return cls(
            np.array([*ranges], dtype=np.int64),
            np.array([numbers[-1] for numbers in ranges.values()], dtype=np.int64),
            tuple(one._replace(weight=one.weight // unit) for one in optional),
            slack // unit,
        )

    @property
    def always(self) -> Ints:
        """Jobs of each size that are in all sets, int64 array of shape (sizes,)."""
        always = self.most.copy()
        for kind, _, jobs in self.optional:
            always[kind] -= jobs
        return always

    def cheapest(self, prices: Ints) -> tuple[Ints, int]:
        """Return the set of least price, and that price.

        Parameters
        ----------
        prices : int64 array, shape (sizes,)
            Price of a job of each size, from 0.

        Returns
        -------
        jobs : int64 array, shape (sizes,)
            Number of jobs of each size.
        price : int
            Their price.
        """
        jobs = [one for one in self.optional for _ in range(one.jobs)]
        saved = np.zeros(self.slack + 1, dtype=np.int64)
        left_out = []
        for kind, weight, _ in jobs:
            before = saved
            saved = _with_job(before, weight, int(prices[kind]))
            left_out.append(saved > before)
        numbers, slack = self.most.copy(), self.slack
        for (kind, weight, _), out in zip(jobs[::-1], left_out[::-1]):
            if out[slack]:
                numbers[kind] -= 1
                slack -= weight
        return numbers, int(prices @ numbers)


def _numbers(by_size: dict[int, list[int]], nodes: int, weight: int) -> dict[int, list[int]]:
    """Return, for each size, the numbers of jobs with which a set can have the `weight`."""
    nothing = np.zeros(nodes + 1, dtype=np.int64)
    after = [nothing]  # most weight of the larger sizes, by nodes
    for size, weights in list(by_size.items())[:0:-1]:
        after.append(_with_jobs(after[-1], size, weights))
    found: dict[int, list[int]] = {}
    before = nothing
    for size, weights in by_size.items():
        larger = after.pop()
        found[size] = []
        for jobs in range(min(len(weights), nodes // size) + 1):
            rest = nodes - jobs * size
            others = int((before[: rest + 1] + larger[rest::-1]).max())
            if others + sum(weights[:jobs]) >= weight:
                found[size].append(jobs)
        before = _with_jobs(before, size, weights)
    return found


def _with_jobs(best: Ints, size: int, weights: list[int]) -> Ints:
    for weight in weights:
        best = _with_job(best, size, weight)
    return best


def _with_job(best: Ints, size: int, weight: int) -> Ints:
    """Return the table of a knapsack, by capacity, with one more job."""
    more = best.copy()
    if size < len(best):
        more[size:] = np.maximum(more[size:], best[: len(best) - size] + weight)
    return more
