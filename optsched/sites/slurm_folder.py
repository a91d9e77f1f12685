"""A site from a folder with captured output of the commands of Slurm."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from optsched.errors import InputError
from optsched.sites.captured import captured_file, captured_time
from optsched.sites.notes import Notes
from optsched.sites.records import Ints
from optsched.sites.site import Partition, Site, described
from optsched.sites.slurm_amounts import licences
from optsched.sites.slurm_json import UNSET, is_json, read_dump
from optsched.sites.slurm_lines import Line, printed_lines, read_text
from optsched.sites.slurm_nodes import ShownNode, read_nodes
from optsched.sites.slurm_partitions import partitions_of_nodes, shown_partitions
from optsched.sites.slurm_record import RecordFields
from optsched.sites.slurm_topology import read_first_topologies
from optsched.sites.topology import Topology

PARTITIONS = ("partitions.txt", "partitions.json")
LICENCES = ("licenses.json", "licenses.txt")
TOPOLOGIES = ("topoconf.txt", "topology.yaml", "topology.txt", "topology.conf")
"""Files of each kind, of which the first one that is there counts.

The JSON of partitions does not say in all versions which one is the default, and topology.txt
shows the default topology alone.
"""

VERSION_OF_NODES = 38
"""Version of the data parser whose ``sinfo --json`` has single nodes; later ones have groups."""

_SETTING = re.compile(r"(\w+)\s*=\s*(.*?)\s*")


@dataclass(frozen=True, eq=False)
class ShownSite:
    """A site as Slurm shows it, and what is free.

    Parameters
    ----------
    site : Site
        The site.
    free : array of int, shape (nodes, resources)
        Free amounts of the resources of the site.
    threads : array of int, shape (nodes,)
        Threads of each physical core of the node.
    licences : mapping of str to int
        Free licences.
    counts_memory : bool
        Whether Slurm gives memory to jobs; true if there is no config.txt.
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


def read_shown_site(path: str | Path) -> ShownSite:
    """Return the site that captured output of Slurm describes.

    Parameters
    ----------
    path : path
        A folder with what commands of Slurm wrote, each file plain or gzip: ``nodes.json`` of
        ``scontrol show nodes --json``, or ``nodes.txt`` with ``-d -o``, or ``sinfo.json`` of Slurm
        22.05; and if there is, ``partitions.txt`` of ``scontrol show partitions -o`` or
        ``partitions.json``, ``licenses.json`` or ``licenses.txt``, ``config.txt`` of ``scontrol
        show config``, ``topoconf.txt`` of ``scontrol show topoconf``, topology.yaml or
        topology.conf, or ``topology.txt`` of ``scontrol show topology``, and ``now``, the seconds
        since 1970. Or the file of the nodes alone.

    Raises
    ------
    InputError
        If a file cannot be read, is of an unknown version, or a field has another form; with file,
        record and field.
    """
    path = Path(path)
    notes = Notes()
    nodes_file = _nodes_file(path) if path.is_dir() else path
    shown, time = read_nodes(nodes_file, notes)
    index = {each.node.name: place for place, each in enumerate(shown)}
    settings: Mapping[str, str] = {}
    partitions: list[Partition] = []
    topologies: dict[str, Topology] = {}
    total: dict[str, int] = {}
    left: dict[str, int] = {}
    if path.is_dir():
        time = captured_time(path) if time is None else time
        settings = _settings(path)
        topologies = read_first_topologies(path, TOPOLOGIES, index, notes)
        partitions = _partitions(path, index, settings, notes)
        total, left = _licences(path, settings, notes)
    partitions = partitions or partitions_of_nodes([each.partitions for each in shown], notes)
    partitions = with_known_topologies(partitions, topologies, notes)
    note_unpartitioned(list(index), partitions, notes)
    site = _site(settings, shown, partitions, total, topologies, nodes_file, path)
    memory = settings.get("selecttypeparameters", "CR_CORE_MEMORY").upper()
    return ShownSite(
        site,
        _free(site, shown, notes),
        np.array([each.threads for each in shown]),
        left,
        "MEMORY" in memory,
        {key: value for key, value in settings.items() if key.startswith("priority")},
        time,
        notes.texts,
    )


def with_known_topologies(
    partitions: Iterable[Partition], topologies: Mapping[str, Topology], notes: Notes
) -> list[Partition]:
    """Return partitions without the topologies that no file describes, which are noted."""
    found = []
    for each in partitions:
        if each.topology and each.topology not in topologies:
            notes.count([each.name], f"topology {each.topology} not described", "partition")
            each = replace(each, topology="")
        found.append(each)
    return found


def note_unpartitioned(nodes: Sequence[str], partitions: Iterable[Partition], notes: Notes) -> None:
    """Note the nodes that are in no partition: Slurm allows them, but starts no job there."""
    alone = np.ones(len(nodes), dtype=bool)
    for each in partitions:
        alone[each.nodes] = False
    notes.count(
        [nodes[place] for place in np.flatnonzero(alone).tolist()], "in no partition, so unused"
    )


def _nodes_file(folder: Path) -> Path:
    """Return the file of the nodes: JSON if it can be, as it was written next to squeue.json."""
    path = captured_file(folder, "nodes.json")
    if path is None and (groups := captured_file(folder, "sinfo.json")):
        dump = read_dump(groups, "nodes", "sinfo")
        path = groups if dump.version == VERSION_OF_NODES else None
    path = path or captured_file(folder, "nodes.txt")
    if path is None:
        expected = "expected what scontrol show nodes --json writes"
        raise InputError(f"no nodes.json and no nodes.txt; {expected}", file=folder)
    return path


def _settings(folder: Path) -> dict[str, str]:
    """Return what ``scontrol show config`` wrote, by names in small letters."""
    path = captured_file(folder, "config.txt")
    lines = [] if path is None else read_text(path).splitlines()
    found = (_SETTING.fullmatch(line) for line in lines)
    return {pair[1].lower(): pair[2] for pair in found if pair and pair[2] not in UNSET}


def _partitions(
    folder: Path, index: Mapping[str, int], settings: Mapping[str, str], notes: Notes
) -> list[Partition]:
    path = captured_file(folder, *PARTITIONS)
    if path is None:
        return []
    memory = settings.get("defmempercpu", "0")
    per_core = int(memory) if memory.isdecimal() and len(memory) < 16 else 0
    return shown_partitions(path, index, per_core, notes)


def _licences(
    folder: Path, settings: Mapping[str, str], notes: Notes
) -> tuple[dict[str, int], dict[str, int]]:
    """Return the numbers of all and of the free licences."""
    path = captured_file(folder, *LICENCES)
    if path is None:
        total = licences(settings.get("licenses", ""))
        notes.count(list(total), "taken as free, without licenses.txt", "licence")
        return total, total
    keys = ("licensename", "total", "free")
    sources: Iterable[Line | RecordFields] = printed_lines(path)
    if is_json(path):
        dump = read_dump(path, "licenses")
        sources = (RecordFields(dump, place) for place in range(len(dump.records)))
        keys = ("LicenseName", "Total", "Free")
    total, left = {}, {}
    for source in sources:
        name = source.text(keys[0])
        if not name or name in total:
            raise source.wrong(keys[0], "every licence once")
        total[name] = source.count(keys[1])
        left[name] = min(source.count(keys[2]), total[name])
    return total, left


def _site(
    settings: Mapping[str, str],
    shown: Sequence[ShownNode],
    partitions: Sequence[Partition],
    total: Mapping[str, int],
    topologies: Mapping[str, Topology],
    nodes_file: Path,
    path: Path,
) -> Site:
    try:
        resources, capacity = described([each.node for each in shown])
    except InputError as error:
        raise error.within(nodes_file) from None
    try:
        return Site(
            settings.get("clustername", "slurm"),
            tuple(each.node.name for each in shown),
            resources,
            capacity,
            tuple(each.node.features for each in shown),
            tuple(each.node.state for each in shown),
            tuple(each.node.reason for each in shown),
            tuple(partitions),
            total,
            topologies,
        )
    except InputError as error:
        raise error.within(path) from None


def _free(site: Site, shown: Sequence[ShownNode], notes: Notes) -> Ints:
    used = np.array(
        [[each.used.get(name, 0) for name in site.resources] for each in shown], dtype=np.int64
    ).reshape(-1, len(site.resources))
    free = site.capacity - used
    for place, name in enumerate(site.resources):
        short = np.flatnonzero(free[:, place] < 0)
        notes.count(
            [site.nodes[node] for node in short.tolist()], f"more {name} in use than there; 0 free"
        )
    return np.where(free < 0, 0, free)
