"""Random numbers that do not depend on the number drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched.errors import optional_module

Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]
"""Function that draws a given count of numbers, or of rows of numbers, from a generator."""

BLOCK = 4096
"""Numbers drawn at once; blocks are always drawn whole, so that earlier numbers never change."""


def special_functions() -> Any:
    """Return the special functions of SciPy, which turn uniform numbers into others."""
    return optional_module("scipy.special", "this workload model", "workloads")


class Stream:
    """Sequence of random numbers that grows on demand.

    Parameters
    ----------
    seed : numpy.random.SeedSequence
        Seed of the stream's own generator.
    draw : callable
        Called with the generator and a count; returns an array of shape (count,), or
        (count, columns) for rows of numbers. The count is always `BLOCK`, 4096, so that earlier
        numbers never depend on the number requested.
    """

    def __init__(self, seed: np.random.SeedSequence, draw: Draw) -> None:
        self._rng = np.random.default_rng(seed)
        self._draw = draw
        self._blocks: list[NDArray[np.float64]] = []

    def first(self, count: int) -> NDArray[np.float64]:
        """Return the first `count` numbers, shape (count,), or rows of numbers."""
        while len(self._blocks) * BLOCK < max(count, 1):
            self._blocks.append(self._draw(self._rng, BLOCK))
        return np.concatenate(self._blocks)[:count]
