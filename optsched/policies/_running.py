"""Jobs that run, in order of their estimated ends, compiled; `enter` adds a job."""

from __future__ import annotations

from optsched.arrays import Floats, Ints
from optsched.compiled import kernel
from optsched.machines._ascending import delete, place_of


@kernel(allocates=False)
def leave(jobs: Ints, count: int, end: Floats, job: int) -> None:
    """Remove a job."""
    delete(jobs, count, place_of(jobs, 0, count, end, job))


@kernel(allocates=False)
def shadow_of(
    jobs: Ints, count: int, end: Floats, processors: Ints, missing: int, now: float
) -> tuple[float, int]:
    """Return when missing processors are free, and how many others; releases at once are one."""
    shadow = now
    for place in range(count):
        if missing <= 0 and end[jobs[place]] > shadow:
            break
        missing -= processors[jobs[place]]
        shadow = max(shadow, end[jobs[place]])
    return shadow, -missing
