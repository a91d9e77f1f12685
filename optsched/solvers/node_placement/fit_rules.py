"""Rules that place one job after the other: by a score of nodes, leaf by leaf, or by what is left.

The last one is least fragmentation, the rule of Weng et al. (ATC 2023).
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from optsched.arrays import Floats, Ints
from optsched.compiled import kernel
from optsched.errors import InputError
from optsched.models.node_placement import NodePlacement, Placements
from optsched.models.node_placement.fields import WHOLE
from optsched.models.node_placement.problem import first_alike, task_types
from optsched.registry import solvers
from optsched.solvers.node_placement._node_state import (
    Needs,
    Nodes,
    NodeState,
    numbered,
    room_on,
    tightest,
)
from optsched.solvers.solver import Heuristic

Scores = Floats | Ints
Scoring = Callable[["Nodes", Ints], Scores]
"""Returns the scores of the nodes of these numbers."""


@dataclass(frozen=True)
class PlacementRule(Heuristic):
    """Base class of rules that place one job after the other, and take none back.

    A job that does not fit, with all of its chunks, is left out, and the next one is tried.

    Parameters
    ----------
    order : {"queue", "largest"}
        Order of the jobs: that of the queue, or that of their weights, the largest first, and of
        the queue among equal ones.
    """

    order: Literal["queue", "largest"] = "queue"

    models = frozenset({"node-placement"})
    is_rule = True
    work_unit = "jobs times nodes"
    seconds_per_work = 3e-8

    @abstractmethod
    def place_all(self, problem: NodePlacement, state: NodeState, jobs: Ints) -> None:
        """Place jobs, in this order, on the nodes of `state`."""

    def place(self, problem: NodePlacement) -> Placements:
        """Return the placements of the rule."""
        state = NodeState(problem)
        jobs = np.arange(len(problem.chunks))
        if self.order == "largest":
            jobs = np.argsort(-problem.weights, kind="stable")
        self.place_all(problem, state, jobs)
        return state.placements()

    def effort(self, problem: NodePlacement) -> int:
        """Return the number of jobs times the number of nodes."""
        return len(problem.chunks) * len(problem.free)


@dataclass(frozen=True)
class FitRule(PlacementRule):
    """Base class of rules that place a chunk on the node of least score that can hold it."""

    @abstractmethod
    def scoring(self, problem: NodePlacement) -> Scoring:
        """Return the function of scores, of which none may grow as chunks are placed."""

    def place_all(self, problem: NodePlacement, state: NodeState, jobs: Ints) -> None:
        """Place each chunk on the node of least score, the first of equal ones.

        A node stays the best one for a job until it is full, because its score does not grow.
        """
        scores_of = self.scoring(problem)
        scores = scores_of(state.nodes, np.arange(len(problem.free)))
        for job in jobs.tolist():
            room = state.room(job)
            if room is not None:
                used = np.array(state.place(job, room, _by(scores, room)))
                scores[used] = scores_of(state.nodes, used)


def _by(scores: Scores, room: Ints) -> Iterator[int]:
    """Yield the nodes that have room at that moment, the one of least score first."""
    while True:
        nodes = np.flatnonzero(room)
        yield int(nodes[np.argmin(scores[nodes])])


@solvers.register("first-fit")
@dataclass(frozen=True)
class FirstFit(FitRule):
    """Each chunk on the first node that can hold it.

    A share of a device goes to the device with the least free share that suffices, here as in the
    other rules. A job that one switch or block must hold goes to the first one that can hold it.

    Examples
    --------
    >>> problem = NodePlacement(
    ...     resources=["cores"], free=np.array([[4], [6]]), chunks=[1, 2, 1],
    ...     demand=np.array([[5], [4], [1]]))
    >>> FirstFit().place(problem).nodes
    ((1,), (), (0,))
    """

    def scoring(self, problem: NodePlacement) -> Scoring:
        """Return the number of a node as its score."""
        return lambda nodes, at: at


@solvers.register("best-fit")
@dataclass(frozen=True)
class BestFit(FitRule):
    """Each chunk on the node with the least left that can hold it.

    What is left is the sum, over all resources, of the free amount divided by the largest that any
    node had free at first; the free shares of all devices count as one resource more. The chunk
    itself takes the same off each node, so it does not matter whether it is counted. Of equal
    nodes, the first.

    Examples
    --------
    >>> problem = NodePlacement(
    ...     resources=["cores"], free=np.array([[6], [4]]), chunks=[1, 1, 1],
    ...     demand=np.array([[3], [3], [1]]))
    >>> BestFit().place(problem).nodes
    ((1,), (0,), (1,))
    """

    def scoring(self, problem: NodePlacement) -> Scoring:
        """Return what is left on a node as its score."""
        largest = np.maximum(problem.free.max(axis=0, initial=0), 1)
        most_shares = max(map(sum, problem.devices), default=1) or 1

        def on_nodes(nodes: Nodes, at: Ints) -> Scores:
            left: Scores = nodes.devices[at].sum(axis=1) / most_shares
            left += (nodes.free[at] / largest).sum(axis=1)
            return left

        return on_nodes


@solvers.register("device-packing")
@dataclass(frozen=True)
class DevicePacking(FitRule):
    """Each chunk on the node with the least free share of devices that can hold it.

    The free shares of all devices of a node are added up, whether the job needs devices or not. Of
    equal nodes, the first.

    Examples
    --------
    >>> problem = NodePlacement(
    ...     resources=["cores"], free=np.array([[4], [4]]), devices=[[1000, 1000], [500, 900]],
    ...     chunks=[1, 1], demand=np.array([[1], [1]]), share=[600, 600])
    >>> DevicePacking().place(problem)
    Placements(nodes=((1,), (0,)), devices=(((1,),), ((0,),)))
    """

    def scoring(self, problem: NodePlacement) -> Scoring:
        """Return the free thousandths of a node as its score."""
        return lambda nodes, at: nodes.devices[at].sum(axis=1)


SIBLINGS, COUSINS = 2, 4
"""Hops between two leaves of a block, and between leaves of two blocks."""


class Tree(NamedTuple):
    """Leaf switches in the order of their first nodes, each in a block."""

    leaf_of: Ints  # of each node
    parent: Ints  # block of each leaf, from the number of leaves on

    def counts(self, room: Ints) -> tuple[Ints, Ints]:
        """Return the nodes with room in each leaf and block, and their room, in chunks."""
        both = np.zeros((2, 1 + self.parent.max()), dtype=np.int64)
        for counted, values in zip(both, (room > 0, room)):
            np.add.at(counted, self.leaf_of, values)
            np.add.at(counted, self.parent, counted[: len(self.parent)])
        nodes, chunks = both
        return nodes, chunks

    def hops_from(self, leaf: int) -> Ints:
        """Return the hops from a leaf to each other one."""
        hops = np.where(self.parent == self.parent[leaf], SIBLINGS, COUSINS)
        hops[leaf] = 0
        return hops


def tree_of(problem: NodePlacement) -> Tree:
    """Return the tree of a problem: one leaf without switches and blocks."""
    one = ("",) * len(problem.free)
    blocks = problem.blocks or one
    leaf_of = numbered(zip(blocks, problem.switches or one))
    if problem.switches is None:
        blocks = one
    _, first = np.unique(leaf_of, return_index=True)
    return Tree(leaf_of, len(first) + numbered(blocks)[first])


@kernel(allocates=False)
def best_leaf(
    tree: Tree, nodes: Ints, chunks: Ints, nodes_left: int, chunks_left: int, far: Ints
) -> int:
    """Return the best leaf for the chunks that are left, -1 if none has room.

    `nodes` and `chunks` count what leaves and blocks have, `far` adds up hops to leaves in use.
    """
    best = -1
    for leaf in range(len(tree.parent)):
        if nodes[leaf] == 0:
            continue
        if best < 0:
            best = leaf
            continue
        one, other = leaf, best
        one_suffices = nodes[one] >= nodes_left and chunks[one] >= chunks_left
        other_suffices = nodes[other] >= nodes_left and chunks[other] >= chunks_left
        if not (one_suffices or other_suffices) and tree.parent[one] != tree.parent[other]:
            one, other = tree.parent[one], tree.parent[other]
            one_suffices = nodes[one] >= nodes_left and chunks[one] >= chunks_left
            other_suffices = nodes[other] >= nodes_left and chunks[other] >= chunks_left
        better = one_suffices
        if one_suffices == other_suffices:
            better = nodes[one] < nodes[other] if one_suffices else nodes[one] > nodes[other]
        if (far[leaf] < far[best] and one_suffices) or (far[leaf] == far[best] and better):
            best = leaf
    return best


@solvers.register("tree-best-fit")
@dataclass(frozen=True)
class TreeBestFit(PlacementRule):
    """Slurm's best fit over the tree: the lowest switch whose nodes suffice, then leaf by leaf.

    This is what the topology guide of Slurm states and what its plugin ``topology/tree`` does, one
    job after the other. The tree has the leaf switches, the blocks above them and a root; without
    blocks, leaves and root; without switches, the blocks are the leaves. A node counts for a job if
    it can hold a chunk of it now. A switch *suffices* if it has enough such nodes, and room for all
    chunks on them.

    1. Of two leaves, the one that suffices is better; if both do, that with fewer nodes. If neither
       does and they are in different blocks, the same holds for their blocks. Where none suffices,
       the leaf or block with more nodes is better.
    2. The leaves are looked through once, in the order of their first nodes. A leaf replaces the
       best one so far if it is better and equally far from the leaves in use, or if it is nearer
       and it, or its block where blocks are compared, suffices. Distances are hops between
       switches, added up.
    3. Each node of the leaf, in order, gets as many chunks as it can hold. If chunks are left, the
       search begins again for these, with what is left.

    A job that one switch must hold (``--switches=1``) goes to one that suffices or is left out,
    because waiting for another cycle is what Slurm does until the longest wait is over.

    Not modeled: weights of nodes, which come before the topology in Slurm; nodes asked for by name;
    ranges of numbers of nodes; sockets, cores and their distance to GPUs; more levels of switches;
    the order of switches in Slurm's own file; dragonfly networks, contiguous nodes, least loaded
    nodes and ``TopoOptional``; and backfilling. Slurm compares processors where this rule compares
    chunks, and goes on counting those of leaves in use; for jobs of whole nodes that is the same.

    References
    ----------
    SchedMD, "Topology guide", Slurm documentation, https://slurm.schedmd.com/topology.html.

    Examples
    --------
    Leaves with 2 and 3 free nodes. The job of 2 nodes goes to the first, that of 3 to the second:

    >>> problem = NodePlacement(
    ...     resources=["nodes"], free=np.ones((5, 1), int), switches=["b", "b", "b", "a", "a"],
    ...     chunks=[2, 3], demand=np.array([[1], [1]]))
    >>> TreeBestFit().place(problem).nodes
    ((3, 4), (0, 1, 2))
    """

    def place_all(self, problem: NodePlacement, state: NodeState, jobs: Ints) -> None:
        """Place each job leaf by leaf."""
        tree = tree_of(problem)
        for job in jobs.tolist():
            room = state.room(job)
            if room is not None:
                chunks, most = int(problem.chunks[job]), int(problem.most_per_node[job])
                state.place(job, room, _leaf_by_leaf(tree, room, chunks, most or chunks))


def _leaf_by_leaf(tree: Tree, room: Ints, chunks: int, most: int) -> Iterator[int]:
    """Yield nodes of the best leaf, then of the next, while the chunks of a job are placed."""
    far = np.zeros(len(tree.parent), dtype=np.int64)
    while True:
        leaf = best_leaf(tree, *tree.counts(room), -(-chunks // most), chunks, far)
        for node in np.flatnonzero((tree.leaf_of == leaf) & (room > 0)).tolist():
            chunks -= int(room[node])  # too many on the last node, after which nobody asks
            yield node
        far += tree.hops_from(leaf)


class Known(NamedTuple):
    """What a chunk of one type adds on each node."""

    increase: Ints  # of fragmentation, in thousandths of devices times chunks
    device: Ints  # to use for a share, -1 if there is none
    version: Ints  # of the node for which this holds, -1 for none


class Waste(NamedTuple):
    """What tasks cannot use of each node now."""

    nodes: Nodes
    needs: Needs
    types: Ints  # the first job of each type of tasks, and its chunks
    version: Ints  # of each node: more with every change
    unusable: Ints  # thousandths of devices times chunks, on each node
    kept: Ints  # room for the devices of a node


@kernel(allocates=False)
def unusable(waste: Waste, node: int) -> int:
    """Return the thousandths of free devices of a node that tasks cannot use, over all tasks."""
    nodes, needs, types = waste.nodes, waste.needs, waste.types
    free = 0
    for device in range(nodes.devices.shape[1]):
        free += nodes.devices[node, device]
    total = 0
    for one in range(len(types) if free > 0 else 0):
        job = types[one, 0]
        lost = free
        if room_on(nodes, needs, job, node, 1) > 0:
            lost, on_one = 0, min(needs.share[job], WHOLE)
            for device in range(nodes.devices.shape[1]):
                if nodes.devices[node, device] < on_one:
                    lost += nodes.devices[node, device]
        total += types[one, 1] * lost
    return total


@kernel(allocates=False)
def least(waste: Waste, known: Known, job: int, room: Ints) -> int:
    """Return the first node with room where a chunk of a job adds least to what is unusable."""
    best, version = -1, waste.version
    for node in range(len(room)):
        if room[node] == 0:
            continue
        if known.version[node] != version[node]:
            after, device = _after(waste, job, node)
            known.increase[node] = after - waste.unusable[node]
            known.device[node] = device
            known.version[node] = version[node]
        if best < 0 or known.increase[node] < known.increase[best]:
            best = node
    return best


@kernel(allocates=False)
def _after(waste: Waste, job: int, node: int) -> tuple[int, int]:
    """Return what is unusable with one more chunk of a job on a node, and the device of a share."""
    nodes, needs, kept = waste.nodes, waste.needs, waste.kept
    share, devices = needs.share[job], nodes.devices
    taken, owned = nodes.taken[node], nodes.owned[node]
    nodes.taken[node], nodes.owned[node] = True, needs.alone[job]
    for resource in range(nodes.free.shape[1]):
        nodes.free[node, resource] -= needs.demand[job, resource]
    for device in range(devices.shape[1]):
        kept[device] = devices[node, device]
    best = -1
    if 0 < share < WHOLE:
        # devices with equal free shares are alike: those of each share from the least on
        least_after, wanted = 0, share
        device = tightest(devices, node, wanted)
        while device >= 0:
            wanted = devices[node, device] + 1
            devices[node, device] -= share
            after = unusable(waste, node)
            devices[node, device] += share
            if best < 0 or after < least_after:
                best, least_after = device, after
            device = tightest(devices, node, wanted)
    else:
        left = share // WHOLE
        for device in range(devices.shape[1]):
            if left > 0 and devices[node, device] == WHOLE:
                devices[node, device] = 0
                left -= 1
        least_after = unusable(waste, node)
    for device in range(devices.shape[1]):
        devices[node, device] = kept[device]
    for resource in range(nodes.free.shape[1]):
        nodes.free[node, resource] += needs.demand[job, resource]
    nodes.taken[node], nodes.owned[node] = taken, owned
    return least_after, best


@solvers.register("least-fragmentation")
@dataclass(frozen=True)
class LeastFragmentation(PlacementRule):
    """Each chunk on the node and device whose use adds least to the expected fragmentation (FGD).

    The expected fragmentation is that of `optsched.models.node_placement.fragmentation`: the free
    shares of devices that a task of the mix cannot use, where the mix are the jobs of the problem.
    For a share of a device, each device of a node is tried; of equal ones that with the least free
    share is used, then that of lowest number. Of equal nodes, the first is used, so the rule is
    first fit where no job needs devices. The authors' simulator maps the increase to an integer
    score from 0 to 100, so that more nodes are equal there.

    Parameters
    ----------
    order : {"queue", "largest"}
        See `PlacementRule`.
    types : int
        Most types of tasks in the mix, the most frequent ones.

    Raises
    ------
    InputError
        If `types` is less than 1.

    Examples
    --------
    The first job leaves the whole device to the second one:

    >>> problem = NodePlacement(
    ...     resources=["cores"], free=np.array([[8], [8]]), devices=[[1000], [700]],
    ...     chunks=[1, 1], demand=np.array([[1], [1]]), share=[500, 1000])
    >>> LeastFragmentation().place(problem)
    Placements(nodes=((1,), (0,)), devices=(((0,),), ((0,),)))
    """

    types: int = 40

    seconds_per_work = 5e-8

    def __post_init__(self) -> None:
        if self.types < 1:
            raise InputError(f"types {self.types}; expected a whole number from 1")

    def place_all(self, problem: NodePlacement, state: NodeState, jobs: Ints) -> None:
        """Place each chunk where the expected fragmentation grows least."""
        types = np.array(task_types(problem, self.types), dtype=np.int64).reshape(-1, 2)
        count, devices = state.nodes.devices.shape
        version, lost = np.zeros((2, count), dtype=np.int64)
        kept = np.empty(devices, dtype=np.int64)
        waste = Waste(state.nodes, state.needs, types, version, lost, kept)
        for node in range(count):
            lost[node] = unusable(waste, node)
        first = first_alike(problem)
        waiting = Counter(first)
        known: dict[int, Known] = {}  # of the first job of each type
        for job in jobs.tolist():
            one, room, left = first[job], state.room(job), int(problem.chunks[job])
            while room is not None and left:
                if one not in known:
                    known[one] = Known(*np.full((3, count), -1, dtype=np.int64))
                node = int(least(waste, known[one], one, room))
                state.take(job, node, room, 1, int(known[one].device[node]))
                version[node] += 1
                lost[node] = unusable(waste, node)
                left -= 1
            waiting[one] -= 1
            if not waiting[one]:  # it is not asked for again
                known.pop(one, None)
