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
        Whether only loading counts, once, on nodes that are free now (LEO).
    whole_scan : bool
        Whether it then does so on all nodes behind the first that is free now, too.
    threshold : int
        Percentage of nodes with jobs, below which only loading counts, once (LEM).
    from_start : bool
        Whether the rest of a load in progress is counted from the start of the job, or from now.
    in_memory : bool
        Whether all files in memory count as evicted, or those that no job uses any longer.
    """

    loading: int
    reloading: int = 0
    opportune: bool = False
    whole_scan: bool = False
    threshold: int = 0
    from_start: bool = False
    in_memory: bool = False
