"""Score by which the published rules choose the node of a job."""

from __future__ import annotations

from typing import NamedTuple


class Score(NamedTuple):
    """Weights of the terms that are added to the start of a job on a node.

    Functions with ``@kernel`` are compiled for these fields.
    """

    loading: int  # weight of a second of loading
    reloading: int = 0  # weight of a second of reloading evicted files
    opportune: bool = False  # whether only loading counts, once, on nodes that are free now (LEO)
    # Whether it then does so on all nodes behind the first that is free now, too
    whole_scan: bool = False
    threshold: int = 0  # percentage of nodes with jobs, below which only loading counts, once (LEM)
    # Whether the rest of a load in progress is counted from the start of the job, or from now
    from_start: bool = False
    # Whether all files in memory count as evicted, or those that no job uses any longer
    in_memory: bool = False
