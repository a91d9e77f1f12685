"""The speeds of jobs that run faster on contiguous nodes of a line, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel
from optsched.machines._line_nodes import Held
from optsched.simulator._core import CHANGED, STARTED, Core, Way, set_speed

Flags = NDArray[np.bool_]


@kernel(allocates=False)
def set_speeds(
    core: Core,
    way: Way,
    held: Held,
    sensitive: Flags,
    contiguous: Flags,
    stated: bool,
    speed: float,
    event: int,
) -> None:
    """Set the speed of a sensitive job that starts on other nodes than those that are stated."""
    job = core.tally[CHANGED]
    if event == STARTED and sensitive[job]:
        contiguous[job] = held.last[job] - held.first[job] == 1
        if contiguous[job] != stated:
            set_speed(core, way, job, speed)
