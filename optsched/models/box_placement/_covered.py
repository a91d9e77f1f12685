"""Compiled kernels that find the candidate boxes of each router.

The reference implementation is in ``tests/models/test_box_placement.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optsched.compiled import kernel


@kernel
def covered(sides: Any, several: Any, class_of: Any, shapes: Any, start: Any, at: Any) -> Any:
    """Return the number of boxes that cover each router, and whether the router needs a row.

    A router needs a row if two of its boxes could be chosen together. Parameters are those of
    `Candidates`; `several` is the mask of the classes with more than one job.
    """
    sy, sz = sides[1], sides[2]
    routers = sides[0] * sy * sz
    count = np.zeros(routers, dtype=np.int64)
    first = np.zeros(routers, dtype=np.int64)
    needed = np.zeros(routers, dtype=np.bool_)
    for piece in range(len(class_of)):
        of_class = class_of[piece]
        for box in range(start[piece], start[piece + 1]):
            x, y, z = at[box] // (sy * sz), at[box] // sz % sy, at[box] % sz
            for i in range(x, x + shapes[piece, 0]):
                for j in range(y, y + shapes[piece, 1]):
                    row = (i % sides[0] * sy + j % sy) * sz
                    for k in range(z, z + shapes[piece, 2]):
                        router = row + (k if k < sz else k - sz)
                        if count[router] == 0:
                            first[router] = of_class
                        elif first[router] != of_class or several[of_class]:
                            needed[router] = True
                        count[router] += 1
    return count, needed


@kernel
def listed(
    sides: Any, class_of: Any, shapes: Any, start: Any, at: Any, position: Any, columns: Any
) -> None:
    """Write the boxes that cover each router into `columns`, from its entry of `position` on.

    A negative entry of `position` skips the router.
    """
    sy, sz = sides[1], sides[2]
    for piece in range(len(class_of)):
        for box in range(start[piece], start[piece + 1]):
            x, y, z = at[box] // (sy * sz), at[box] // sz % sy, at[box] % sz
            for i in range(x, x + shapes[piece, 0]):
                for j in range(y, y + shapes[piece, 1]):
                    row = (i % sides[0] * sy + j % sy) * sz
                    for k in range(z, z + shapes[piece, 2]):
                        router = row + (k if k < sz else k - sz)
                        if position[router] >= 0:
                            columns[position[router]] = box
                            position[router] += 1
