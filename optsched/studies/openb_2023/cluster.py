"""A cluster while pods come and go, and the problems that are posed on it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from optsched.models.node_placement import NodePlacement
from optsched.models.node_placement.fields import WHOLE
from optsched.studies.openb_2023.openb import RESOURCES, Nodes, Pods


class Cluster:
    """Nodes and what is free on them.

    Parameters
    ----------
    nodes : Nodes
        The nodes, all idle.

    Attributes
    ----------
    free : ndarray of int, shape (nodes, 2)
        Free amount of each resource.
    devices : list of list of int
        Free thousandths of each GPU of each node.
    """

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self.free = nodes.total.copy()
        self.devices = [[WHOLE] * gpus for gpus in nodes.gpus.tolist()]

    @property
    def shares(self) -> int:
        """The free thousandths of all GPUs."""
        return sum(map(sum, self.devices))

    def take(self, pods: Pods, pod: int, node: int, devices: Sequence[int]) -> None:
        """Place a pod on devices of a node."""
        self._change(pods, pod, node, devices, 1)

    def release(self, pods: Pods, pod: int, node: int, devices: Sequence[int]) -> None:
        """Remove a pod that was placed."""
        self._change(pods, pod, node, devices, -1)

    def _change(self, pods: Pods, pod: int, node: int, devices: Sequence[int], sign: int) -> None:
        self.free[node] -= sign * pods.demand[pod]
        for device in devices:
            self.devices[node][device] -= sign * min(int(pods.share[pod]), WHOLE)

    def problem(self, pods: Pods, forecast: Pods | None = None) -> NodePlacement:
        """Return the problem to place pods.

        Their weights are the thousandths of GPUs that they need. A `forecast` stands for pods that
        will come: these are placed, too, but each thousandth counts half as much. A model of GPUs
        that no node has is left out of what a pod may use.
        """
        weights = pods.share
        if forecast is not None:
            pods, weights = pods.joined(forecast), np.concatenate((2 * weights, forecast.share))
        known = {*self.nodes.models}
        return NodePlacement(
            resources=RESOURCES,
            free=self.free,
            chunks=np.ones(len(weights), dtype=np.int64),
            demand=pods.demand,
            weights=weights,
            devices=self.devices,
            share=pods.share,
            kinds=self.nodes.models,
            allowed=[tuple(sorted(models & known)) if models else None for models in pods.models],
        )


def devices_for(cluster: Cluster, pods: Pods, pod: int, node: int) -> list[int] | None:
    """Return the devices that a pod gets on a node, or None if it does not fit.

    A share goes to the device with the least free share that suffices.
    """
    if (cluster.free[node] < pods.demand[pod]).any():
        return None
    if pods.models[pod] and cluster.nodes.models[node] not in pods.models[pod]:
        return None
    share, free = int(pods.share[pod]), cluster.devices[node]
    if share < WHOLE:
        fitting = sorted((left, device) for device, left in enumerate(free) if left >= share)
        if share and not fitting:
            return None
        return [fitting[0][1]] if share else []
    whole = [device for device, left in enumerate(free) if left == WHOLE]
    return whole[: share // WHOLE] if len(whole) >= share // WHOLE else None


def partly_busy(
    nodes: Nodes, pods: Pods, load: float, left: float, seed: int
) -> tuple[Cluster, Pods]:
    """Return a cluster on which pods run, and a queue that asks for all its free GPUs.

    Pods drawn from a list arrive one after the other on random nodes that can hold them, until
    they have a share `load` of the GPUs or the list is drawn once. Then a share `left` of them
    leaves again, at random. The queue is drawn from the same list.
    """
    rng = np.random.default_rng(seed)
    cluster = Cluster(nodes)
    capacity = cluster.shares
    drawn = pods.chosen(rng.integers(len(pods.share), size=2 * len(pods.share)))
    running: list[tuple[int, int, list[int]]] = []
    pod = 0
    while capacity - cluster.shares < load * capacity and pod < len(pods.share):
        for node in rng.permutation(len(nodes.gpus)).tolist():
            devices = devices_for(cluster, drawn, pod, node)
            if devices is not None:
                cluster.take(drawn, pod, node, devices)
                running.append((pod, node, devices))
                break
        pod += 1
    for place in rng.permutation(len(running))[: int(left * len(running))].tolist():
        cluster.release(drawn, *running[place])
    waiting = drawn.chosen(range(pod, len(drawn.share)))
    return cluster, waiting.until(cluster.shares)
