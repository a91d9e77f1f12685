"""Score by which a published rule chooses the node of a job."""

from __future__ import annotations

from typing import NamedTuple


class Score(NamedTuple):
    """What is added to the time at which a job can start on a node; the least sum wins.

    A ``@kernel`` that takes it is compiled for these fields.

    Parameters
    ----------
    loading : int
        Weight of a second of loading.
    reloading : int
        Weight of a second of loading again what is evicted.
    opportune : bool
        Whether, from the first node of a scan on that is free now, only loading counts, once (LEO).
    threshold : int
        Per cent of the nodes; while fewer run a job only loading counts, once (LEM).
    """

    loading: int
    reloading: int = 0
    opportune: bool = False
    threshold: int = 0
