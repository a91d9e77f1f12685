"""A site as Slurm describes it, with what the files say beyond the site itself."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from optsched.errors import InputError
from optsched.sites.notes import Notes
from optsched.sites.records import Ints, whole_numbers
from optsched.sites.reservations import Reservation, overlapping
from optsched.sites.site import Node, Partition, Site, described
from optsched.sites.topology import Topology

MOST_THREADS = 1024
"""Most threads of a core."""


class SlurmNode(NamedTuple):
    """A node as Slurm describes it.

    Parameters
    ----------
    node : Node
        The node: cores without those that are kept for the system, likewise memory.
    threads : int
        Threads of each core of the node.
    used : mapping of str to int
        Amounts that jobs have, and GPUs and the like that are drained.
    partitions : tuple of str
        Names of its partitions, where the node names them.
    """

    node: Node
    threads: int
    used: Mapping[str, int]
    partitions: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class SlurmSite:
    """A site as Slurm describes it, and what is free.

    Parameters
    ----------
    site : Site
        The site.
    free : array of int, shape (nodes, resources)
        Free amounts of the resources of the site; all of them for a site from slurm.conf.
    threads : array of int, shape (nodes,)
        Threads of each core of the node: Slurm counts them as CPUs, and so does the site as cores.
    licences : mapping of str to int
        Free licences.
    counts_memory : bool
        Whether Slurm gives memory to jobs, as with ``CR_Core_Memory``; true if no file says it.
    priority : mapping of str to str
        Settings of the priority of jobs, such as ``priorityweightage``, in small letters.
    time : int or None
        When the output was captured, in seconds since 1970; None if no file says it.
    notes : tuple of str
        What was left out or changed, counted.
    """

    site: Site
    free: Ints
    threads: Ints
    licences: Mapping[str, int]
    counts_memory: bool
    priority: Mapping[str, str]
    time: int | None
    notes: tuple[str, ...]


def slurm_site(
    nodes: Sequence[SlurmNode],
    partitions: Iterable[Partition],
    topologies: Mapping[str, Topology],
    settings: Mapping[str, str],
    licences: tuple[Mapping[str, int], Mapping[str, int]],
    notes: Notes,
    time: int | None = None,
    *,
    reservations: Sequence[Reservation] = (),
    file: Path,
) -> SlurmSite:
    """Return the site of nodes, partitions and topologies.

    Parameters
    ----------
    nodes : sequence of SlurmNode
        The nodes.
    partitions : iterable of Partition
        The partitions. A topology that is not among `topologies` is left out and noted.
    topologies : mapping of str to topology
        The topologies, the default one first.
    settings : mapping of str to str
        Settings of slurm.conf, by names in small letters.
    licences : tuple of two mappings
        Numbers of all and of the free licences.
    notes : Notes
        What is left out or changed is added.
    time : int, optional
        When the output was captured.
    reservations : sequence of Reservation
        The reservations. Those of unknown times, and nodes that are not there, are left out and
        noted. Those that overlap are noted.
    file : pathlib.Path
        The file or folder, for messages.

    Raises
    ------
    InputError
        If an amount is out of range, or names are repeated.
    """
    partitions = _known_topologies(partitions, topologies, notes)
    if settings.get("selecttype", "").endswith("linear"):
        notes.add("exclusive partitions, as select/linear gives whole nodes")
        partitions = [replace(each, exclusive=True) for each in partitions]
    total, left = licences
    try:
        threads = whole_numbers([each.threads for each in nodes], "threads", 1, MOST_THREADS)
        resources, capacity = described([each.node for each in nodes])
        site = Site(
            settings.get("clustername", "slurm"),
            tuple(each.node.name for each in nodes),
            resources,
            capacity,
            tuple(each.node.features for each in nodes),
            tuple(each.node.state for each in nodes),
            tuple(each.node.reason for each in nodes),
            tuple(partitions),
            total,
            topologies,
            tuple(_kept(reservations, {each.node.name for each in nodes}, notes)),
        )
    except InputError as error:
        raise error.within(file) from None
    _note_unpartitioned(site, notes)
    return SlurmSite(
        site,
        _free(site, nodes, notes),
        threads,
        left,
        "MEMORY" in settings.get("selecttypeparameters", "CR_CORE_MEMORY").upper(),
        {key: value for key, value in settings.items() if key.startswith("priority")},
        time,
        notes.texts,
    )


def _known_topologies(
    partitions: Iterable[Partition], topologies: Mapping[str, Topology], notes: Notes
) -> list[Partition]:
    found = []
    for each in partitions:
        if each.topology and each.topology not in topologies:
            what = f"topology {each.topology} is in no file; taken as the default one"
            notes.count([each.name], what, "partition")
            each = replace(each, topology="")
        found.append(each)
    return found


def _kept(
    reservations: Iterable[Reservation], there: set[str], notes: Notes
) -> Iterator[Reservation]:
    """Yield the reservations of nodes whose times are known, with the nodes that are there."""
    found: list[Reservation] = []
    for each in reservations:
        strange = [name for name in each.nodes if name not in there]
        notes.count(strange, f"reservation {each.name}: not among the nodes")
        nodes = tuple(name for name in each.nodes if name in there)
        if nodes and math.isinf(each.start):
            what = "times not known; kept at all times in plans, and left out of simulations"
            notes.count([each.name], what, "reservation")
        elif nodes:
            found.append(replace(each, nodes=nodes))
            for other, shared in overlapping(found[-1], found):
                what = f"in reservations {other.name} and {each.name} at the same time, which keep"
                notes.count(shared, f"{what} each other's jobs from them")
            yield found[-1]


def _note_unpartitioned(site: Site, notes: Notes) -> None:
    """Note the nodes that are in no partition: Slurm allows them, but starts no job there."""
    alone = np.ones(len(site.nodes), dtype=bool)
    for each in site.partitions:
        alone[each.nodes] = False
    names = [site.nodes[place] for place in np.flatnonzero(alone).tolist()]
    notes.count(names, "in no partition, so no job starts there")


def _free(site: Site, nodes: Sequence[SlurmNode], notes: Notes) -> Ints:
    used = [[each.used.get(name, 0) for name in site.resources] for each in nodes]
    free = site.capacity - np.array(used, dtype=np.int64).reshape(site.capacity.shape)
    for place, name in enumerate(site.resources):
        short = np.flatnonzero(free[:, place] < 0).tolist()
        what = f"more {name} in use than there are; taken as none free"
        notes.count([site.nodes[node] for node in short], what)
    return np.where(free < 0, 0, free)
