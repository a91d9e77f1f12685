"""Nodes and pods of Alibaba's GPU cluster "openb", from the CSV files of its trace.

The files are those of ``cluster-trace-gpu-v2023`` in ``alibaba/clusterdata``, plain or gzipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.models.node_placement.fields import WHOLE
from optsched.studies.openb_2023.table import Table

Ints = NDArray[np.int64]

RESOURCES = ("cpu_milli", "memory_mib")
"""The countable resources: thousandths of a processor, and MiB."""

NO_MODEL = "none"
"""The model of GPUs of a node that has none."""


class Nodes(NamedTuple):
    """The nodes of a cluster.

    Parameters
    ----------
    total : ndarray of int, shape (nodes, 2)
        Amount of each of the `RESOURCES`.
    gpus : ndarray of int, shape (nodes,)
        Number of GPUs.
    models : tuple of str
        Model of the GPUs of each node.
    """

    total: Ints
    gpus: Ints
    models: tuple[str, ...]

    def chosen(self, rows: Sequence[int] | Ints) -> Nodes:
        """Return the nodes of these numbers, from 0, in this order."""
        return Nodes(self.total[rows], self.gpus[rows], tuple(self.models[row] for row in rows))


class Pods(NamedTuple):
    """Pods in the order of their arrival.

    Parameters
    ----------
    demand : ndarray of int, shape (pods, 2)
        Amount of each of the `RESOURCES`.
    share : ndarray of int, shape (pods,)
        Thousandths of GPUs: below 1000 a share of one, from 1000 a number of whole GPUs.
    models : tuple of frozenset of str
        Models of GPUs that each pod may use; an empty set for all.
    created, deleted : ndarray of int, shape (pods,)
        Seconds.
    """

    demand: Ints
    share: Ints
    models: tuple[frozenset[str], ...]
    created: Ints
    deleted: Ints

    def chosen(self, rows: Sequence[int] | Ints) -> Pods:
        """Return the pods of these numbers, from 0, in this order."""
        models = tuple(self.models[row] for row in rows)
        return Pods(
            self.demand[rows], self.share[rows], models, self.created[rows], self.deleted[rows]
        )

    def joined(self, others: Pods) -> Pods:
        """Return these pods, then others."""
        return Pods(
            np.concatenate((self.demand, others.demand)),
            np.concatenate((self.share, others.share)),
            self.models + others.models,
            np.concatenate((self.created, others.created)),
            np.concatenate((self.deleted, others.deleted)),
        )

    def until(self, shares: int) -> Pods:
        """Return the first pods that together ask for this many thousandths of GPUs, or all."""
        sums = list(accumulate(self.share.tolist()))
        return self.chosen(range(sum(asked < shares for asked in sums[:-1]) + 1))


def read_nodes(path: Path) -> Nodes:
    """Read a list of nodes.

    Raises
    ------
    InputError
        If the file cannot be read, a column is missing, or a value is wrong.
    """
    table = Table(path, (*RESOURCES, "gpu", "model"))
    total = np.stack([table.numbers(name) for name in RESOURCES], axis=1)
    models = tuple(model or NO_MODEL for model in table.texts("model"))
    return Nodes(total, table.numbers("gpu", most=64), models)


def read_pods(path: Path) -> Pods:
    """Read a list of pods.

    Raises
    ------
    InputError
        If the file cannot be read, a column is missing, or a value is wrong.
    """
    needed = (*RESOURCES, "num_gpu", "gpu_milli", "gpu_spec", "creation_time", "deletion_time")
    table = Table(path, needed)
    demand = np.stack([table.numbers(name) for name in RESOURCES], axis=1)
    gpus, milli = table.numbers("num_gpu", most=64), table.numbers("gpu_milli", most=WHOLE)
    whole = np.where(gpus > 1, WHOLE, milli)
    right = (gpus == 0) | ((milli == whole) & (milli > 0))
    table.check("gpu_milli", right, f"1 to {WHOLE}, and {WHOLE} for several GPUs")
    created, deleted = table.numbers("creation_time"), table.numbers("deletion_time")
    table.check("deletion_time", deleted >= created, "a time not before creation_time")
    models = tuple(frozenset(filter(None, text.split("|"))) for text in table.texts("gpu_spec"))
    return Pods(demand, gpus * whole, models, created, deleted)
