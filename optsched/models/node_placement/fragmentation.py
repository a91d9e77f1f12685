"""Fragmentation of free devices, as Weng et al. (ATC 2023) measure it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.models.node_placement.fields import WHOLE

if TYPE_CHECKING:
    from optsched.models.node_placement.problem import NodePlacement, Placements


class TaskType(NamedTuple):
    """Chunks that need the same.

    Parameters
    ----------
    job : int
        The first job that has such chunks, from 0.
    chunks : int
        Number of such chunks of all jobs.
    """

    job: int
    chunks: int


def first_alike(problem: NodePlacement) -> list[int]:
    """Return for each job the first job, from 0, whose chunks are of the same type.

    Chunks are of one type if they need the same resources, the same share of devices and nodes of
    the same kinds, and if neither or both share their nodes with other jobs.
    """
    exclusive = {*problem.exclusive}
    first: dict[object, int] = {}
    needs = zip(problem.demand.tolist(), problem.share.tolist(), problem.allowed)
    return [
        first.setdefault((*demand, share, allowed, job in exclusive), job)
        for job, (demand, share, allowed) in enumerate(needs)
    ]


def task_types(problem: NodePlacement, most: int | None = None) -> list[TaskType]:
    """Return the types of chunks that need devices, the most frequent first.

    Of equally frequent types, the first in the queue comes first.

    Parameters
    ----------
    problem : NodePlacement
        The problem, whose jobs are taken for those that will come.
    most : int, optional
        Most types to return; by default, all.
    """
    chunks: Counter[int] = Counter()
    for job, first in enumerate(first_alike(problem)):
        if problem.share[job]:
            chunks[first] += int(problem.chunks[job])
    return [TaskType(*entry) for entry in chunks.most_common(most)]


def fragmentation(
    problem: NodePlacement, solution: Placements | None = None, types: int | None = None
) -> float:
    """Return the expected number of free devices that a task drawn from the mix cannot use.

    The mix are the types of chunks of all jobs that need devices, each as probable as it is
    frequent. If a chunk of the type fits on a node, it cannot use the free shares of devices that
    have less free than it needs of one; if it does not, for lack of a resource or of devices, or
    because it may not run there, it cannot use any free share of that node. The sum over nodes is
    the measure.

    Parameters
    ----------
    problem : NodePlacement
        The problem.
    solution : Placements, optional
        Valid placements, after which devices are free; by default, before any.
    types : int, optional
        Number of types that count, the most frequent ones; by default, all.

    Returns
    -------
    float
        Free devices that cannot be used, 0 if no job needs devices.

    References
    ----------
    Q. Weng, L. Yang, Y. Yu, W. Wang, X. Tang, G. Yang, L. Zhang, "Beware of fragmentation:
    scheduling GPU-sharing workloads with fragmentation gradient descent", USENIX ATC 2023.

    Examples
    --------
    Half a device is free on node 0, two on node 1. The first job can use the two only, the second
    one all:

    >>> from optsched.models import NodePlacement
    >>> problem = NodePlacement(
    ...     resources=["cores"], free=np.array([[8], [8]]), devices=[[500], [1000, 1000]],
    ...     chunks=[1, 1], demand=np.array([[1], [1]]), share=[1000, 300])
    >>> fragmentation(problem)
    0.25
    """
    mix = task_types(problem, types)
    return unusable(problem, solution, mix) / (WHOLE * max(1, sum(task.chunks for task in mix)))


def unusable(problem: NodePlacement, solution: Placements | None, mix: Sequence[TaskType]) -> int:
    """Return the free thousandths of devices that tasks cannot use, over all chunks of a mix."""
    free, devices, others, owned = _left(problem, solution)
    whole = (devices == WHOLE).sum(axis=1)
    total = 0
    for job, chunks in mix:
        share = int(problem.share[job])
        small = devices < min(share, WHOLE)
        fits = (free >= problem.demand[job]).all(axis=1) & ~owned
        fits &= whole >= share // WHOLE if share >= WHOLE else ~small.all(axis=1)
        if (allowed := problem.allowed[job]) is not None and problem.kinds is not None:
            fits &= np.array([kind in allowed for kind in problem.kinds], dtype=np.bool_)
        if job in problem.exclusive:
            fits &= ~others
        total += chunks * int(devices[small | ~fits[:, None]].sum())
    return total


def _left(
    problem: NodePlacement, solution: Placements | None
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]:
    """Return what is free, which nodes have jobs, and which belong to one that does not share."""
    free = problem.free.copy()
    devices = np.zeros((len(free), max(map(len, problem.devices), default=0)), dtype=np.int64)
    for node, row in enumerate(problem.devices):
        devices[node, : len(row)] = row
    others, owned = np.zeros((2, len(free)), dtype=bool)
    others[list(problem.busy)] = True
    if solution is not None:
        for job, (nodes, chosen) in enumerate(zip(solution.nodes, solution.devices)):
            for node, on in zip(nodes, chosen):
                free[node] -= problem.demand[job]
                devices[node, list(on)] -= min(int(problem.share[job]), WHOLE)
                others[node] = True
                owned[node] |= job in problem.exclusive
    return free, devices, others, owned
