"""Multipliers of the resources of a node, moved along the slope of the bound they give, compiled.

A slope counts for what is free of each resource, so that resources of all sizes are alike.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

STEPS = 12
"""Most changes of multipliers for each node."""


@kernel(allocates=False)
def find_slope(free: Ints, used: Floats, multipliers: Floats, slope: Floats) -> float:
    """Find the slope of the bound where so much is used; return its square.

    A multiplier of 0 is not lowered.
    """
    square = 0.0
    for resource in range(len(free)):
        slope[resource] = (free[resource] - used[resource]) / max(free[resource], 1)
        if multipliers[resource] <= 0 and slope[resource] > 0:
            slope[resource] = 0.0
        square += slope[resource] * slope[resource]
    return square


@kernel(allocates=False)
def descend(free: Ints, slope: Floats, length: float, multipliers: Floats) -> None:
    """Change multipliers by so many times the slope."""
    for resource in range(len(free)):
        change = length * slope[resource] / max(free[resource], 1)
        multipliers[resource] = max(0.0, multipliers[resource] - change)
