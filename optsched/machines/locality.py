"""How close together the nodes of a job are on a torus."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from optsched.machines.torus import Torus


class Locality(NamedTuple):
    """Locality of allocations, arrays of shape (allocations,).

    A pair of nodes is as many hops apart as their routers on the shortest way; nodes of one router
    are 0 hops apart.

    Parameters
    ----------
    runs : int64 array
        Runs of neighbouring positions; an allocation of one run is contiguous.
    mean_hops : float64 array
        Mean over the pairs of different nodes; 0 for a single node.
    max_hops : int64 array
        The largest number of hops between two nodes.
    dispersal : float64 array
        `mean_hops` over that of all nodes of the machine: 0 on one router, 1 spread like the
        machine. 0 for a single node, and on a machine of one router.
    """

    runs: NDArray[np.int64]
    mean_hops: NDArray[np.float64]
    max_hops: NDArray[np.int64]
    dispersal: NDArray[np.float64]


def locality(torus: Torus, allocations: Sequence[str]) -> Locality:
    """Measure allocations on a torus.

    Parameters
    ----------
    torus : Torus
        The machine.
    allocations : sequence of str
        Positions as interval sets, ``1-3 5 7`` for instance; none of them empty.

    Examples
    --------
    >>> from optsched.machines.torus import Torus
    >>> measured = locality(Torus((4, 4, 4), ordering="row-major"), ["0-3", "0 63"])
    >>> measured.runs.tolist(), measured.max_hops.tolist()
    ([1, 2], [2, 3])
    """
    import pandas as pd

    from optsched.machines._hops import hops_of_allocations
    from optsched.machines._interval_text import interval_runs

    # the jobs of a trace hold the same nodes again and again
    which, texts = pd.factorize(np.array(allocations, dtype=object))
    lines = np.frombuffer("".join(f"{text}\n" for text in texts).encode(), dtype=np.uint8)
    first, last, runs = interval_runs(lines, len(texts))
    # one more: the whole machine, to compare with
    whole = [[0, torus.size]]
    mean, largest = hops_of_allocations(
        torus.coordinates,
        np.array(torus.shape),
        torus.nodes_per_router,
        np.append(first, len(runs)),
        np.append(last, len(runs) + 1),
        np.append(runs, whole, axis=0),
    )
    of_machine = mean[-1] or 1.0
    return Locality(
        runs=(last - first)[which],
        mean_hops=mean[which],
        max_hops=largest[which],
        dispersal=mean[which] / of_machine,
    )
