"""Pods that arrive one after the other: in batches that are placed at once, or coming and going."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.models.node_placement import NodePlacement, Placements
from optsched.studies.openb_2023.cluster import Cluster
from optsched.studies.openb_2023.openb import Nodes, Pods

Answer = Callable[[NodePlacement], Placements]
"""Places the pods of a problem, in the order of their arrival."""

Forecast = Callable[[int], Pods]
"""Draws pods that ask for this many thousandths of GPUs."""


def in_batches(
    cluster: Cluster, pods: Pods, size: int, answer: Answer, forecast: Forecast | None = None
) -> Placements:
    """Place pods on a cluster, each batch of this size at once; what is placed stays.

    With a forecast, each batch is posed together with pods that may come after it, as many as ask
    for the GPUs that it leaves free. These are not placed.

    Returns
    -------
    Placements
        Those of all pods.
    """
    at: list[tuple[int, ...]] = []
    on: list[tuple[tuple[int, ...], ...]] = []
    for first in range(0, len(pods.share), size):
        batch = range(first, min(first + size, len(pods.share)))
        own = pods.chosen(batch)
        left = cluster.shares - int(own.share.sum())
        ahead = forecast(left) if forecast is not None and left > 0 else None
        found = answer(cluster.problem(own, ahead))
        for pod, nodes, devices in zip(batch, *found):
            if nodes:
                cluster.take(pods, pod, nodes[0], devices[0])
        at += found.nodes[: len(batch)]
        on += found.devices[: len(batch)]
    return Placements(tuple(at), tuple(on))


class Stay(NamedTuple):
    """When pods that come and go have run.

    Parameters
    ----------
    started : ndarray of int, shape (pods,)
        Seconds.
    decisions : int
        Number of problems that were posed.
    """

    started: NDArray[np.int64]
    decisions: int


def coming_and_going(nodes: Nodes, pods: Pods, answer: Answer) -> Stay:
    """Run pods, each for the time between its creation and its deletion in the list.

    An idle node can hold each of them. Pods that cannot be placed wait. Whenever pods have arrived
    or left, all that wait are posed, in the order of their arrival; departures of an instant come
    before arrivals.
    """
    cluster = Cluster(nodes)
    number = len(pods.share)
    started = np.full(number, -1, dtype=np.int64)
    running: list[tuple[int, int, int, tuple[int, ...]]] = []  # end, pod, node, devices
    waiting: list[int] = []
    next_pod = decisions = 0
    while next_pod < number or waiting:
        now = min([end for end, *_ in running[:1]] + pods.created[next_pod : next_pod + 1].tolist())
        while running and running[0][0] == now:
            _, pod, node, devices = heapq.heappop(running)
            cluster.release(pods, pod, node, devices)
        while next_pod < number and pods.created[next_pod] == now:
            waiting.append(next_pod)
            next_pod += 1
        if not waiting:
            continue
        decisions += 1
        found = answer(cluster.problem(pods.chosen(waiting)))
        for pod, at, on in zip(waiting, *found):
            if at:
                cluster.take(pods, pod, at[0], on[0])
                started[pod] = now
                end = now + int(pods.deleted[pod] - pods.created[pod])
                heapq.heappush(running, (end, pod, at[0], on[0]))
        waiting = [pod for pod in waiting if started[pod] < 0]
    return Stay(started, decisions)
