"""Compiled kernel that follows through a schedule whether a free box holds the queue head."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optsched.boxes._free_boxes import largest_box
from optsched.boxes._rows import Integers, Sides, Words, Wrap, fill
from optsched.compiled import kernel

Bools = NDArray[np.bool_]


@kernel
def free_box_holds(
    # The routers that are free before the first instant, as rows of bits; overwritten, shape
    # (X, Y)
    words: Words,
    # Boxes that are released or allocated: columns x, y, z, nx, ny, nz, shape (changes, 6)
    boxes: Integers,
    releases: Bools,  # whether the box is released, shape (changes,)
    # The changes of instant i are those from ``changes[i]`` up to ``changes[i + 1]``, shape
    # (instants + 1,)
    changes: Integers,
    # Routers that are needed from each instant on; 0 for no request, shape (instants,)
    needs: Integers,
    side: int,
    wrap: Wrap,  # whether each dimension wraps around
    longest: Sides,  # the longest sides of a box besides whole dimensions
) -> Bools:
    """Return for each instant whether a free box has the ``needs`` routers; False for no need."""
    holds = np.zeros(len(needs), dtype=np.bool_)
    above_all = words.size * side + 1
    # some free box has `has` routers, and no free box has `lacks`
    has, lacks = 0, above_all
    for instant in range(len(needs)):
        for change in range(changes[instant], changes[instant + 1]):
            fill(words, boxes[change], side, releases[change])
            if releases[change]:
                lacks = above_all
            else:
                has = 0
        need = needs[instant]
        if has < need < lacks:
            if largest_box(words, need - 1, need, side, wrap, longest)[3] > 0:
                has = need
            else:
                lacks = need
        holds[instant] = 0 < need <= has
    return holds
