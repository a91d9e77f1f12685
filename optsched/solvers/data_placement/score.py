"""Score by which the published rules choose the node of a job."""

from __future__ import annotations

from typing import NamedTuple


class Score(NamedTuple):
    """Weights of the terms that are added to the start of a job on a node.

    Functions with ``@kernel`` are compiled for these fields.

    Parameters
    ----------
    loading : int
        Weight of a second of loading.
    reloading : int
        Weight of a second of reloading evicted files.
    opportune : bool
        Whether only loading counts, once, from the first node on that is free now (LEO).
    threshold : int
        Percentage of nodes with jobs, below which only loading counts, once (LEM).
    """

    loading: int
    reloading: int = 0
    opportune: bool = False
    threshold: int = 0
