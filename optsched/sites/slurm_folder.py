"""A site from a folder with captured output of the commands of Slurm."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from optsched.errors import InputError
from optsched.sites.captured import captured_file, captured_time
from optsched.sites.host_lists import read_together
from optsched.sites.notes import Notes
from optsched.sites.reservations import Reservation, read_reservations
from optsched.sites.site import Partition
from optsched.sites.slurm_access import Access
from optsched.sites.slurm_amounts import licences
from optsched.sites.slurm_json import UNSET, is_json, read_dump
from optsched.sites.slurm_lines import Line, check_keys, printed_lines, read_text
from optsched.sites.slurm_nodes import read_nodes
from optsched.sites.slurm_partitions import partitions_of_nodes, shown_partitions
from optsched.sites.slurm_record import RecordFields
from optsched.sites.slurm_site import SlurmSite, slurm_site
from optsched.sites.slurm_topology import read_first_topologies
from optsched.sites.topology import Topology
from optsched.text_files import lines_of

PARTITIONS = ("partitions.txt", "partitions.json")
LICENCES = ("licenses.json", "licenses.txt")
RESERVATIONS = ("reservations.json", "reservations.txt")
TOPOLOGIES = ("topoconf.txt", "topology.yaml", "topology.txt", "topology.conf")
"""Files of each kind, of which the first one that is there counts.

The JSON of partitions does not say in all versions which one is the default, and topology.txt
shows the default topology alone.
"""

VERSION_OF_NODES = 38
"""Version of the data parser whose ``sinfo --json`` has single nodes; later ones have groups."""


@read_together()
def read_shown_site(path: str | Path) -> SlurmSite:
    """Return the site that captured output of Slurm describes.

    `path`: a folder with what commands of Slurm wrote, each file plain or gzip: ``nodes.json`` of
    ``scontrol show nodes --json``, or ``nodes.txt`` with ``-d -o``, or ``sinfo.json`` of Slurm
    22.05; and if there is, ``partitions.txt`` of ``scontrol show partitions -o`` or
    ``partitions.json``, ``licenses.json`` or ``licenses.txt``, likewise reservations,
    ``config.txt`` of ``scontrol show config``, ``topoconf.txt`` of ``scontrol show topoconf``,
    topology.yaml or topology.conf, or ``topology.txt`` of ``scontrol show topology``, and ``now``,
    the seconds since 1970. Or the file of the nodes alone.
    """
    path = Path(path)
    notes = Notes()
    nodes_file = _nodes_file(path) if path.is_dir() else path
    beside = None
    if path.is_dir() and nodes_file.name.startswith("sinfo"):
        beside = captured_file(path, "nodes.txt")
        if beside is None:
            notes.add("no nodes.txt: memory kept for the system (MemSpecLimit) is not known")
    nodes, time = read_nodes(nodes_file, notes, beside)
    index = {each.node.name: place for place, each in enumerate(nodes)}
    settings: Mapping[str, str] = {}
    partitions: list[Partition] = []
    access: dict[str, Access] = {}
    topologies: dict[str, Topology] = {}
    counts: tuple[dict[str, int], ...] = {}, {}, {}
    reservations: tuple[Reservation, ...] = ()
    if path.is_dir():
        now = captured_time(path)
        time = now if time is None else time
        settings = _settings(path)
        _note_missing(path, notes)
        topologies = read_first_topologies(path, TOPOLOGIES, index, notes)
        if shown := captured_file(path, *PARTITIONS):
            partitions, access = shown_partitions(shown, index, settings, notes)
        counts = _licences(path, settings, notes)
        reserved = captured_file(path, *RESERVATIONS)
        reservations = () if reserved is None else read_reservations(reserved)
    partitions = partitions or partitions_of_nodes([each.partitions for each in nodes], notes)
    described = nodes, partitions, access, topologies, settings, counts
    return slurm_site(*described, notes, time, reservations=reservations, file=nodes_file)


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


def _note_missing(folder: Path, notes: Notes) -> None:
    """Note what is not known, for want of a file, of what decides where jobs may be."""
    if captured_file(folder, *TOPOLOGIES) is None:
        notes.add("no topology.txt: switches and blocks are not known, nor what jobs ask of them")
    if captured_file(folder, "config.txt") is None:
        notes.add("no config.txt: taken as giving jobs single cores, and memory")
        if captured_file(folder, *LICENCES) is None:
            notes.add("no licenses.json: licences are not known")


def _settings(folder: Path) -> dict[str, str]:
    """Return what ``scontrol show config`` wrote, by names in small letters."""
    path = captured_file(folder, "config.txt")
    found: dict[str, str] = {}
    if path is not None:
        for number, line in lines_of(read_text(path), path):
            name, _, value = line.partition("=")
            if value.strip() not in UNSET:
                found[name.strip().lower()] = value.strip()
            check_keys(found, path, number)
    return found


def _licences(
    folder: Path, settings: Mapping[str, str], notes: Notes
) -> tuple[dict[str, int], ...]:
    """Return the numbers of all, of the free and of the reserved licences."""
    path = captured_file(folder, *LICENCES)
    if path is None:
        try:
            total = licences(settings.get("licenses", ""))
        except InputError as error:
            message = error.mistakes[0]
            raise InputError(message, file=folder / "config.txt", field="Licenses") from None
        notes.count(list(total), "taken as free, without licenses.txt", "licence")
        return total, total, {}
    keys = ("licensename", "total", "free", "reserved")
    sources: Iterable[Line | RecordFields] = printed_lines(path)
    if is_json(path):
        dump = read_dump(path, "licenses")
        sources = (RecordFields(dump, place) for place in range(len(dump.records)))
        keys = ("LicenseName", "Total", "Free", "Reserved")
    total, left, reserved = {}, {}, {}
    for source in sources:
        name = source.text(keys[0])
        if not name or name in total:
            raise source.wrong(keys[0], "every licence once")
        total[name] = source.count(keys[1])
        left[name] = min(source.count(keys[2]), total[name])
        reserved[name] = source.count(keys[3])
    return total, left, reserved
