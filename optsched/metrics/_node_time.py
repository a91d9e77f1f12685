"""Compiled kernel that follows through a schedule whether a free box holds the queue head."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optsched.boxes._free_boxes import largest
from optsched.boxes._rows import Integers, Sides, Words, Wrap, bounds_of, fill, slices_of
from optsched.compiled import kernel

Bools = NDArray[np.bool_]


@kernel
def free_box_holds(
    words: Words,
    boxes: Integers,
    releases: Bools,
    changes: Integers,
    needs: Integers,
    side: int,
    wrap: Wrap,
    longest: Sides,
) -> Bools:
    """Return for each instant whether a free box has as many routers as are needed.

    Parameters
    ----------
    words : uint64 array, shape (X, Y)
        The routers that are free before the first instant, as rows of bits; overwritten.
    boxes : int64 array, shape (changes, 6)
        Boxes that are released or allocated: columns x, y, z, nx, ny, nz.
    releases : bool array, shape (changes,)
        Whether the box is released.
    changes : int64 array, shape (instants + 1,)
        The changes of instant i are those from ``changes[i]`` up to ``changes[i + 1]``.
    needs : int64 array, shape (instants,)
        Routers that are needed from each instant on; 0 for no request.
    side : int
        Routers along Z.
    wrap : (bool, bool, bool)
        Whether each dimension wraps around.
    longest : (int, int, int)
        The longest sides of a box besides whole dimensions.

    Returns
    -------
    bool array, shape (instants,)
        True if a free box has at least ``needs`` routers; False where nothing is needed.
    """
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
            slices = slices_of(words, wrap[0])
            found = largest(
                slices, bounds_of(slices, longest[0]), need - 1, need, side, wrap, longest
            )
            if found[3] > 0:
                has = need
            else:
                lacks = need
        holds[instant] = 0 < need <= has
    return holds
