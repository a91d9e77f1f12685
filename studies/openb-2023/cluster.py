"""Problems of pods on a cluster, all at once, in batches or as they come, and of whole nodes."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from optsched.models.node_placement import NodePlacement, Placements
from optsched.models.node_placement.fields import WHOLE

from .trace import RESOURCES, Ints, Nodes, Pods, Table

Answer = Callable[[NodePlacement], Placements]  # in the order of the pods' arrival
Forecast = Callable[[int], Pods]  # pods that ask for so many thousandths of GPUs


class Cluster:
    """Nodes, at first idle, and what is free of them: resources, and thousandths of each GPU."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self.free = nodes.total.copy()
        self.devices = [[WHOLE] * gpus for gpus in nodes.gpus.tolist()]

    @property
    def shares(self) -> int:
        """The free thousandths of all GPUs."""
        return sum(map(sum, self.devices))

    def take(self, pods: Pods, pod: int, node: int, devices: Sequence[int], sign: int = 1) -> None:
        """Place a pod on devices of a node; with the sign -1 remove it."""
        self.free[node] -= sign * pods.demand[pod]
        for device in devices:
            self.devices[node][device] -= sign * min(int(pods.share[pod]), WHOLE)

    def problem(self, pods: Pods, forecast: Pods | None = None) -> NodePlacement:
        """Return the problem to place pods, weighted by the thousandths of GPUs that they need.

        Pods of a `forecast` count half. Models of GPUs that no node has are left out.
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

    Pods of a list arrive on random nodes that can hold them, up to a share `load` of the GPUs; then
    a share `left` of them leaves. The queue is drawn from the same list.
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
        cluster.take(drawn, *running[place], -1)
    waiting = drawn.chosen(range(pod, len(drawn.share)))
    return cluster, waiting.until(cluster.shares)


def in_batches(
    cluster: Cluster, pods: Pods, size: int, answer: Answer, forecast: Forecast | None = None
) -> Placements:
    """Place pods on a cluster, each batch of this size at once; what is placed stays.

    With a forecast, a batch is posed with pods that may come, enough for all free GPUs.
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


def coming_and_going(nodes: Nodes, pods: Pods, answer: Answer) -> tuple[Ints, int]:
    """Run pods, each for the time between its creation and its deletion in the list.

    Whenever pods have arrived or left, all that wait are posed, in the order of their arrival;
    departures of an instant come first. Returns when pods start, and the number of problems.
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
            _, *place = heapq.heappop(running)
            cluster.take(pods, *place, -1)
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
    return started, decisions


LAYERS = ("DSW", "PSW", "ASW")
"""The switches above a host, the leaf switch last."""


def read_leaves(path: Path) -> list[int]:
    """Read the number of hosts of each leaf switch, in the order of the names of the switches."""
    table = Table(path, LAYERS)
    hosts = Counter(zip(*(table.texts[layer] for layer in LAYERS)))
    return [hosts[leaf] for leaf in sorted(hosts)]


def whole_nodes(
    leaves: Sequence[int], seed: int, *, busy: float, jobs: int, sizes: Sequence[int], blocks: int,
    fill: float,
) -> NodePlacement:  # fmt: skip
    """Return the problem of jobs of whole nodes, with most weight and then fewest switches.

    Hosts are busy with a probability; `jobs`, or fewer, of drawn `sizes` ask for a share `fill` of
    the free ones at most. With `blocks` of leaves, one must hold a job, whose weight is its size.
    """
    rng = np.random.default_rng(seed)
    free = [int((rng.random(hosts) > busy).sum()) for hosts in leaves]
    asked: list[int] = []
    while len(asked) < jobs:
        size = int(rng.choice(sizes))
        if sum(asked) + size > fill * sum(free):
            break
        asked.append(size)
    leaf_of = [leaf for leaf, hosts in enumerate(free) for _ in range(hosts)]
    return NodePlacement(
        resources=["nodes"],
        free=np.ones((len(leaf_of), 1), dtype=np.int64),
        chunks=asked,
        demand=np.ones((len(asked), 1), dtype=np.int64),
        weights=asked if blocks else None,
        then=("switches",),
        switches=[str(leaf) for leaf in leaf_of],
        blocks=[str(leaf * blocks // len(leaves)) for leaf in leaf_of] if blocks else None,
        span=["block" if blocks else "anywhere"] * len(asked),
    )
