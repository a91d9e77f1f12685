"""A site as Slurm describes it, with what the files say beyond the site itself."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.errors import InputError
from optsched.sites.records import Ints, Notes, whole_numbers
from optsched.sites.reservations import Reservation, overlapping
from optsched.sites.site import Node, Partition, Site, described
from optsched.sites.slurm_partitions import Access
from optsched.sites.topology import Topology

MOST_THREADS = 1024
"""Most threads of a core."""

MOST_UNITS = 10**6
"""Most units of a resource on a node, so that solvers reckon with them exactly."""

UNITS = sorted(2**i * 5**j for i in range(64) for j in range(28))
"""Units in which large amounts are counted: of 1,024 bytes, or of 1,000 for instance."""


class SlurmNode(NamedTuple):
    """A node as Slurm describes it."""

    node: Node  # the node: cores without those that are kept for the system, likewise memory
    threads: int  # threads of each core of the node
    used: Mapping[str, int]  # amounts that jobs have, and GPUs and the like that are drained
    partitions: tuple[str, ...] = ()  # names of its partitions, where the node names them
    owner: str = ""  # user whose jobs share it with those of no other user, empty for none
    label: str = ""  # label of multi-category security of its jobs, empty for none
    weight: int = 0  # its weight: Slurm takes nodes of low weight first
    completing: bool = False  # whether a job is being completed there: no job starts until it is


@dataclass(frozen=True, eq=False)
class SlurmSite:
    """A site as Slurm describes it, and what is free."""

    site: Site
    # Free amounts of the resources of the site; all of them for a site from slurm.conf, shape
    # (nodes, resources)
    free: Ints
    # Threads of each core of the node: Slurm counts them as CPUs, and so does the site as
    # cores, shape (nodes,)
    threads: Ints
    weights: Ints  # weight of each node: Slurm takes nodes of low weight first, shape (nodes,)
    # Free licences, and those that reservations keep, which count as free
    licences: Mapping[str, int]
    reserved: Mapping[str, int]
    # Whether Slurm gives memory to jobs, as with ``CR_Core_Memory``; true if no file says it
    counts_memory: bool
    # What an amount of 1 stands for, for resources with amounts that are too large otherwise
    units: Mapping[str, int]
    # Owner and label of each node, see `SlurmNode`
    owners: tuple[str, ...]
    labels: tuple[str, ...]
    # Nodes on which a job is being completed, see `SlurmNode`, shape (nodes,)
    completing: NDArray[np.bool_]
    by_label: bool  # whether jobs with a label share nodes only with jobs of the same one
    reservations: tuple[Reservation, ...]  # all reservations, also those that the site leaves out
    access: Mapping[str, Access]  # by name of the partition, its rules that the site does not have
    settings: Mapping[str, str]  # settings of slurm.conf, by names in small letters
    time: int | None  # when the output was captured, in seconds since 1970; None if no file says it
    notes: tuple[str, ...]


def slurm_site(
    nodes: Sequence[SlurmNode],
    # The partitions. A topology that is not among `topologies` is left out and noted.
    partitions: Iterable[Partition],
    access: Mapping[str, Access],  # by name of the partition, its rules that the site does not have
    topologies: Mapping[str, Topology],  # the topologies, the default one first
    settings: Mapping[str, str],  # settings of slurm.conf, by names in small letters
    # Numbers of all, of the free and of the reserved licences
    licences: Sequence[Mapping[str, int]],
    notes: Notes,
    time: int | None = None,  # when the output was captured
    *,
    # The reservations. Those of unknown times, those that float, and nodes that are not
    # there, are left out of the site and noted. Those that overlap are noted.
    reservations: Sequence[Reservation] = (),
    file: Path,  # the file or folder, for messages
) -> SlurmSite:
    """Return the site of nodes, partitions and topologies."""
    partitions = _known_topologies(partitions, topologies, notes)
    if settings.get("selecttype", "").endswith("linear"):
        notes.add("exclusive partitions, as select/linear gives whole nodes")
        partitions = [replace(each, exclusive=True) for each in partitions]
    total, left, reserved = licences
    nodes = _comparable(nodes, notes)
    units = _units(nodes, notes)
    try:
        threads = whole_numbers([each.threads for each in nodes], "threads", 1, MOST_THREADS)
        resources, capacity = described([_in_units(each.node, units) for each in nodes])
        site = Site(
            settings.get("clustername", "slurm"),
            tuple(each.node.name for each in nodes),
            resources,
            capacity,
            tuple(each.node.features for each in nodes),
            tuple(_states(nodes, reservations)),
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
        _free(site, nodes, units, notes),
        threads,
        np.array([each.weight for each in nodes], dtype=np.int64),
        left,
        reserved,
        "MEMORY" in settings.get("selecttypeparameters", "CR_CORE_MEMORY").upper(),
        units,
        tuple(each.owner for each in nodes),
        tuple(each.label for each in nodes),
        np.array([each.completing for each in nodes], dtype=bool),
        any(each.label for each in nodes)
        or "select" in re.split("[,:]", settings.get("mcsparameters", "").lower()),
        tuple(reservations),
        access,
        settings,
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
        if nodes and each.ahead is not None:
            what = f"left out of simulations, as it is always {each.ahead:,.0f} s ahead"
            notes.count([each.name], what, "reservation")
        elif nodes and math.isinf(each.start):
            what = "times not known; kept at all times in plans, and left out of simulations"
            notes.count([each.name], what, "reservation")
        elif nodes:
            found.append(replace(each, nodes=nodes))
            for other, shared in overlapping(found[-1], found):
                what = f"in reservations {other.name} and {each.name} at the same time, which keep"
                notes.count(shared, f"{what} each other's jobs from them")
            yield found[-1]


def _states(nodes: Sequence[SlurmNode], reservations: Iterable[Reservation]) -> list[str]:
    """Return the states: Slurm marks nodes as reserved that only reservations that float have."""
    floating, others = set[str](), set[str]()
    for each in reservations:
        (others if each.ahead is None else floating).update(each.nodes)
    free = floating - others
    return [
        "up" if each.node.state == "reserved" and each.node.name in free else each.node.state
        for each in nodes
    ]


def _comparable(nodes: Sequence[SlurmNode], notes: Notes) -> Sequence[SlurmNode]:
    """Return the nodes without resources of which what there is has lost its unit.

    Slurm 22.05 shows ``scratch:900`` for 900G, and what is in use in full.
    """
    lost = {
        key.partition(":")[0]
        for each in nodes
        for key, many in each.used.items()
        if many >= 1024 * each.node.amounts.get(key, many) > 0
    } - {"cores", "memory"}
    if not lost:
        return nodes
    notes.add(f"{', '.join(sorted(lost))}: left out, as what there is has no unit, unlike the rest")

    def rest(amounts: Mapping[str, int]) -> dict[str, int]:
        return {key: n for key, n in amounts.items() if key.partition(":")[0] not in lost}

    return [
        each._replace(
            node=each.node._replace(amounts=rest(each.node.amounts)), used=rest(each.used)
        )
        for each in nodes
    ]


def _units(nodes: Sequence[SlurmNode], notes: Notes) -> dict[str, int]:
    """Return a unit for each resource, without its type, of which a node has too much otherwise.

    It divides all amounts if one of 2^i 5^j does.
    """
    amounts: dict[str, set[int]] = {}
    for each in nodes:
        for key, many in (*each.node.amounts.items(), *each.used.items()):
            amounts.setdefault(key.partition(":")[0], set()).add(many)
    found = {}
    for base in sorted(amounts.keys() - {"cores", "memory"}):
        least = -(-max(amounts[base]) // MOST_UNITS)
        if least > 1:
            whole = math.gcd(*amounts[base])
            enough = [unit for unit in UNITS if unit >= least]
            found[base] = next((unit for unit in enough if whole % unit == 0), enough[0])
            notes.add(f"{base}: counted in units of {found[base]:,}")
    return found


def _in_units(node: Node, units: Mapping[str, int]) -> Node:
    """Return a node with its amounts in units, rounded down."""
    amounts = {key: many // unit_of(key, units) for key, many in node.amounts.items()}
    return node._replace(amounts=amounts) if units else node


def unit_of(resource: str, units: Mapping[str, int]) -> int:
    """Return the unit in which amounts of a resource, with or without a type, are counted."""
    return units.get(resource.partition(":")[0], 1)


def _note_unpartitioned(site: Site, notes: Notes) -> None:
    """Note the nodes that are in no partition: Slurm allows them, but starts no job there."""
    alone = np.ones(len(site.nodes), dtype=bool)
    for each in site.partitions:
        alone[each.nodes] = False
    names = [site.nodes[place] for place in np.flatnonzero(alone).tolist()]
    notes.count(names, "in no partition, so no job starts there")


def _free(site: Site, nodes: Sequence[SlurmNode], units: Mapping[str, int], notes: Notes) -> Ints:
    free = np.zeros_like(site.capacity)
    for place, name in enumerate(site.resources):
        unit = unit_of(name, units)
        for node, (each, has) in enumerate(zip(nodes, site.capacity[:, place].tolist())):
            left = each.node.amounts.get(name, has * unit) - each.used.get(name, 0)
            free[node, place] = left // unit
    for place, name in enumerate(site.resources):
        short = np.flatnonzero(free[:, place] < 0).tolist()
        what = f"more {name} in use than there are; taken as none free"
        notes.count([site.nodes[node] for node in short], what)
    return np.where(free < 0, 0, free)
