"""Random numbers that do not depend on how many are drawn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

BLOCK = 4096
"""Drawn at once: a block is always drawn whole, so the numbers before it never change."""


class Stream:
    """A sequence of random numbers that grows from its front.

    Parameters
    ----------
    seed : numpy.random.SeedSequence
        Seed of the sequence.
    draw : callable
        Returns as many numbers as asked for, from a generator.
    """

    def __init__(
        self,
        seed: np.random.SeedSequence,
        draw: Callable[[np.random.Generator, int], NDArray[np.float64]],
    ) -> None:
        self._rng = np.random.default_rng(seed)
        self._draw = draw
        self._blocks: list[NDArray[np.float64]] = []

    def first(self, count: int) -> NDArray[np.float64]:
        """Return the first `count` numbers, shape (count,); rows of them if `draw` gives rows."""
        while len(self._blocks) * BLOCK < max(count, 1):
            self._blocks.append(self._draw(self._rng, BLOCK))
        return np.concatenate(self._blocks)[:count]
