"""A site from a path: TOML, or a folder of Slurm; or from the name of a bundled one."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from optsched.content import bundled_sites
from optsched.errors import InputError, no_such_file
from optsched.files import check_name, read_bytes, read_head
from optsched.numbers import whole_number
from optsched.sites.parts import ADMITS, FLOATS, Reservation, repeated
from optsched.sites.site import NODE_NAME, Node, Partition, Site
from optsched.sites.site_file import read_site_file
from optsched.sites.slurm_files import (
    Line,
    Notes,
    RecordFields,
    captured_file,
    captured_files,
    captured_time,
    check_keys,
    configuration_lines,
    lines_of,
    read_dump,
    read_shown,
    shown_settings,
)
from optsched.sites.slurm_notation import (
    INFINITE,
    hosts,
    hosts_of,
    licences,
    number_of_hosts,
    read_together,
    whole_amount,
)
from optsched.sites.slurm_partitions import (
    Access,
    NodesOf,
    accesses_of,
    left_out,
    partition_of,
    partitions_of_nodes,
    shown_partitions,
)
from optsched.sites.slurm_site import (
    SlurmNode,
    SlurmSite,
    consumed,
    read_nodes,
    slurm_site,
    state_of,
)
from optsched.sites.slurm_topology import read_first_topologies

FILES: Mapping[str, tuple[str, ...]] = {
    "config": ("config.txt",),
    "partitions": ("partitions.txt", "partitions.json"),
    "licences": ("licenses.json", "licenses.txt"),
    "reservations": ("reservations.json", "reservations.txt"),
}
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
    found = {kind: captured_file(path, *names) for kind, names in FILES.items()}
    of_topologies = [*captured_files(path, *TOPOLOGIES)]
    missing = {kind for kind, file in found.items() if file is None}
    now = captured_time(path)
    nodes, time = read_nodes(nodes_file, notes, beside)
    time = now if time is None else time
    index = {each.node.name: place for place, each in enumerate(nodes)}
    settings = {} if found["config"] is None else shown_settings(found["config"])
    if path.is_dir():
        _note_missing(missing if of_topologies else missing | {"topologies"}, notes)
    topologies = read_first_topologies(of_topologies, index, notes)
    partitions, access = list[Partition](), dict[str, Access]()
    if found["partitions"] is not None:
        partitions, access = shown_partitions(found["partitions"], index, settings, notes)
    counts = _licences(found["licences"], found["config"], settings, notes)
    reserved = found["reservations"]
    reservations = () if reserved is None else read_reservations(reserved)
    partitions = partitions or partitions_of_nodes([each.partitions for each in nodes], notes)
    described = nodes, partitions, access, topologies, settings, counts
    return slurm_site(
        *described, notes, time, reservations=reservations, file=nodes_file, missing=missing
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
        is_empty = (folder / "nodes.json").exists()
        what = "nodes.json is empty" if is_empty else "no nodes.json and no nodes.txt"
        raise InputError(f"{what}; {expected}", file=folder)
    return path


def _note_missing(missing: Container[str], notes: Notes) -> None:
    """Note what is not known, for want of a file, of what decides where jobs may be."""
    if "topologies" in missing:
        notes.add("no topology.txt: switches and blocks are not known, nor what jobs ask of them")
    if "config" in missing:
        taken = "Slurm is taken to give jobs cores and memory, and not whole nodes"
        notes.add(f"no config.txt: {taken}")
        if "licences" in missing:
            notes.add("no licenses.json or .txt: licences are not known")


def _licences(
    path: Path | None, config: Path | None, settings: Mapping[str, str], notes: Notes
) -> tuple[dict[str, int], ...]:
    """Return the numbers of all, of the free and of the reserved licences."""
    if path is None:
        try:
            total = licences(settings.get("licenses", ""))
        except InputError as error:
            raise InputError(error.mistakes[0], file=config, field="Licenses") from None
        notes.count(list(total), "taken as free, without licenses.json or .txt", "licence")
        return total, total, {}
    total, left, reserved = {}, {}, {}
    shown = read_shown(path, "licenses", {}, "LicenseName", "scontrol -o show licenses")
    for source in shown:
        name = source.text("LicenseName")
        if not name or name in total:
            raise source.wrong("LicenseName", "every licence once")
        total[name] = source.count("Total")
        left[name] = min(source.count("Free"), total[name])
        reserved[name] = source.count("Reserved")
    return total, left, reserved


_RESERVATION = re.compile(r"ReservationName=(\S+) StartTime=")
_RESERVED_NODES = re.compile(r" Nodes=(\S+) NodeCnt=")
_RESERVED_LICENCES = re.compile(r" Licenses=(\S+) State=")
_PAIRS = re.compile(r" ([A-Za-z]+)=(\S*)")

_IN_TEXT = {"node_list": "Nodes", "licenses": "Licenses", "flags": "Flags", "end_time": "EndTime"}
_IN_TEXT |= {"users": "Users", "accounts": "Accounts", "groups": "Groups", "qos": "QOS"}
_IN_TEXT |= {"allowed_partitions": "AllowedPartitions", "tres": "TRES"}
_IN_TEXT |= {"core_specializations": "CoreIDs"}
"""Keys of the text of a reservation, by the fields of JSON."""


@read_together()
def read_reservations(path: str | Path) -> tuple[Reservation, ...]:
    """Return the reservations in a file.

    `path`: what ``scontrol show reservations`` wrote with ``--json``, or with ``--oneliner`` where
    a version has no JSON; plain or gzip. The text has local times. They are known where
    ``jobs.txt`` and ``squeue.json`` beside it have the same jobs; otherwise the nodes count as
    reserved at all times.
    """
    path = Path(path)
    data, _ = read_bytes(path)
    if data.lstrip().startswith(b"{"):
        found = tuple(map(_from_record, read_dump(path, "reservations").fields))
    else:
        found = tuple(_from_text(data.decode("utf-8", errors="replace"), path))
    if (twice := repeated(each.name for each in found)) is not None:
        raise InputError(f"{twice}: is there twice; expected different names", file=path)
    return found


def _said(source: RecordFields) -> dict[str, Any]:
    """Return the fields of a reservation in a record, but its name, its times and its cores."""
    return {
        "nodes": source.parsed("node_list", hosts),
        "licences": source.parsed("licenses", licences),
        "flags": source.listed("flags"),
        "admits": {key: names for key in ADMITS if (names := source.listed(key))},
        "has_parts": bool(source.value("core_specializations")) or "gres/" in source.text("tres"),
    }


def _from_record(record: RecordFields) -> Reservation:
    begin, end = record.instant("start_time") or -math.inf, record.instant("end_time") or math.inf
    named = {"name": record.text("name"), "start": begin, "end": end}
    said = named | _said(record) | {"cores": record.count("core_count")}
    try:
        return _timed(Reservation(**said), record.dump.time)
    except InputError as error:
        if error.field == "name":
            raise record.wrong("name", "a name") from None
        first, last = (datetime.fromtimestamp(at, UTC).isoformat() for at in (begin, end))
        raise record.error("end_time", f"{last}; expected a time after {first}") from None


def _timed(one: Reservation, now: int | None) -> Reservation:
    """Return a reservation, and if its start floats, for how long it is ahead."""
    if FLOATS in one.flags and now is not None and now <= one.start < math.inf:
        return replace(one, start=-math.inf, end=math.inf, ahead=one.start - now)
    return one


def _from_text(text: str, path: Path) -> Iterator[Reservation]:
    zones: list[ZoneInfo] | None = None
    now = captured_time(path.parent)
    for place, line in lines_of(text, path):
        if not line.strip() or line.startswith("No reservations"):
            continue
        name, nodes = _RESERVATION.match(line), _RESERVED_NODES.search(line)
        if name is None or nodes is None:
            expected = "expected a line of a reservation, as --oneliner writes it"
            raise InputError(expected, file=path, line=place)
        has = _RESERVED_LICENCES.search(line)
        said = dict(reversed(_PAIRS.findall(line)))
        said |= {"Nodes": nodes[1], "Licenses": "" if has is None else has[1]}
        pairs = Line("ReservationName", said, path, place, _IN_TEXT)
        fields = _said(pairs) | {"cores": whole_number(said.get("CoreCnt", "")) or 0}
        zones = _zones(path.parent) if zones is None else zones
        start = min(_instants(said.get("StartTime", ""), zones), default=-math.inf)
        end = max(_instants(said.get("EndTime", ""), zones), default=math.inf)
        if start >= end:
            raise pairs.wrong("end_time", f"a time after {said['StartTime']}")
        yield _timed(Reservation(name[1], start=start, end=end, **fields), now)


_SUBMITTED = re.compile(r"^JobId=([0-9]{1,10})\b.* SubmitTime=(\S+) EligibleTime=", re.MULTILINE)

WEEK = 7 * 86_400  # seconds


def _zones(folder: Path) -> list[ZoneInfo]:
    """Return the time zones in which a text in the folder may have been written.

    In them the text of the jobs has the same times of submission as the JSON. Zones differ in when
    the clocks change, so a later time may be one of several.
    """
    queue, jobs = (captured_file(folder, name) for name in ("squeue.json", "jobs.txt"))
    if queue is None or jobs is None:
        return []
    told = dict(_SUBMITTED.findall(read_bytes(jobs)[0].decode("utf-8", errors="replace")))
    seen: dict[tuple[int, timedelta], datetime] = {}
    for record in read_dump(queue, "jobs").fields:
        local = _local(told.get(str(record.count("job_id")), ""))
        if local is not None and (at := record.instant("submit_time")):
            utc = datetime.fromtimestamp(at, UTC)
            # one time of each week and offset suffices
            seen[at // WEEK, local.replace(tzinfo=UTC) - utc] = utc
    zones = (ZoneInfo(name) for name in sorted(available_timezones())) if seen else ()
    return [
        zone
        for zone in zones
        if all(at.astimezone(zone).utcoffset() == offset for (_, offset), at in seen.items())
    ]


def _local(text: str) -> datetime | None:
    """Return a local time as Slurm prints it; None if it is none."""
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S")
    except ValueError:
        return None


def _instants(text: str, zones: Iterable[ZoneInfo]) -> set[float]:
    """Return the times that a local time may be in some zones, in seconds since 1970."""
    local = _local(text)
    if local is None:
        return set()
    # where clocks are set back, a time is there twice
    return {local.replace(tzinfo=zone, fold=fold).timestamp() for zone in zones for fold in (0, 1)}


TABLES = ("nodename", "partitionname", "downnodes", "nodeset")
"""First keys of lines that describe parts of the cluster; the others are settings."""

NOT_YET = ("", "UNKNOWN")
"""States of nodes in slurm.conf that say nothing: Slurm finds the state out itself."""


@read_together()
def read_configuration(path: str | Path) -> SlurmSite:
    """Return the site that slurm.conf describes, with all its resources free.

    The files that it includes are read too, and those of topologies and gres.conf beside it.
    """
    path = Path(path)
    path = path / "slurm.conf" if path.is_dir() else path
    notes = Notes()
    settings: dict[str, str] = {}
    total: dict[str, int] = {}
    tables: dict[str, list[Line]] = {key: [] for key in TABLES}
    for line in configuration_lines(path):
        if line.first in TABLES:
            tables[line.first].append(line)
            continue
        settings |= line.values
        check_keys(settings, line.file, line.line)
        if "licenses" in line.values:
            total = line.parsed("licenses", licences)
        if line.text("defmempercpu").upper() not in INFINITE:
            line.count("defmempercpu")  # megabytes without a unit
    nodes = _nodes(tables, _types(path.parent, notes), notes)
    if not nodes:
        raise InputError("no nodes; expected lines with NodeName=", file=path)
    index = {each.node.name: place for place, each in enumerate(nodes)}
    nodes_of = _nodes_of(tables["nodeset"], nodes, index)
    lines = list(_with_defaults(tables["partitionname"]))
    partitions = [partition_of(line, nodes_of, index, settings, notes) for line in lines]
    of_topologies = captured_files(path.parent, "topology.yaml", "topology.conf")
    topologies = read_first_topologies(of_topologies, index, notes)
    access, counts = accesses_of(lines), (total, total, dict[str, int]())
    return slurm_site(nodes, partitions, access, topologies, settings, counts, notes, file=path)


def _with_defaults(lines: Iterable[Line]) -> Iterator[Line]:
    """Yield lines with the values of the lines of DEFAULT before them."""
    default: dict[str, str] = {}
    for line in lines:
        if line.values[line.first].upper() == "DEFAULT":
            default |= line.values
        else:
            yield replace(line, values={**default, **line.values})


def _nodes(
    tables: Mapping[str, list[Line]], types: Mapping[str, Mapping[str, int]], notes: Notes
) -> list[SlurmNode]:
    """Return the nodes; `types` has for each node what gres.conf says of its resources by type."""
    down: dict[str, tuple[str, str]] = {}
    for line in tables["downnodes"]:
        state = _state(line) if "state" in line.values else "down"
        down |= dict.fromkeys(line.parsed("downnodes", hosts_of), (state, line.text("reason")))
    found: dict[str, SlurmNode] = {}
    for line in _with_defaults(tables["nodename"]):
        cores, threads = _cores(line, notes)
        memory = line.count("realmemory") or 1  # the default of Slurm
        system = line.count("memspeclimit")
        if system >= memory and system:
            raise line.wrong("memspeclimit", f"less than the memory of {memory} MB")
        amounts = {"cores": cores, "memory": memory - system}
        have = line.parsed("gres", consumed)
        if ":no_consume" in line.text("gres"):
            notes.add("left out what jobs do not use up (no_consume)")
        features = line.text("feature") or line.text("features")
        words = tuple(word for word in (each.strip() for each in features.split(",")) if word)
        stated = _state(line), line.text("reason")
        for name in line.parsed("nodename", hosts_of):
            if not NODE_NAME.fullmatch(name) or name in found:
                raise line.wrong("nodename", "every node once")
            state, reason = down.get(name, stated)
            own = amounts | _typed(name, have, types.get(name, types[""]), notes)
            found[name] = SlurmNode(Node(name, own, words, state, reason), threads, {})
    notes.count([name for name in down if name not in found], "in DownNodes, not among the nodes")
    return list(found.values())


def _state(line: Line) -> str:
    words = line.text("state").upper()
    if words in NOT_YET:
        return "up"
    state, unknown = state_of(tuple(words.split("+")))
    if unknown:
        raise line.wrong("state", "a state such as UNKNOWN, DOWN or DRAIN")
    return state


def _cores(line: Line, notes: Notes) -> tuple[int, int]:
    """Return the CPUs of a node that jobs may have, and how many of them are a physical core."""
    boards = line.count("boards") or 1
    sockets = line.count("sockets") or boards * line.count("socketsperboard")
    per_socket, threads = line.count("corespersocket") or 1, line.count("threadspercore") or 1
    given = line.count("cpus") or line.count("procs")
    physical = (sockets or given // (per_socket * threads) or 1) * per_socket
    total = physical * threads
    if given and given in (physical, sockets):  # Slurm then counts cores, or sockets
        total = given
    elif given not in (0, total):
        text = f"CPUs={given} are not those of sockets, cores and threads; taken as {total}"
        notes.count(line.parsed("nodename", hosts_of), text)
    each = max(1, total // physical)
    listed = line.parsed("cpuspeclist", _listed)
    system = listed or line.count("corespeccount") * each
    if system >= total and system:
        key = "cpuspeclist" if listed else "corespeccount"
        raise line.wrong(key, f"fewer than the {total} CPUs of the node")
    return total - system, each


def _listed(text: str) -> int:
    """Return how many numbers a list such as ``0,2-5`` has."""
    try:
        return number_of_hosts(f"[{text}]") if text else 0
    except InputError:
        raise InputError(f"{text!r}; expected numbers of CPUs such as 0,2-5") from None


def _types(folder: Path, notes: Notes) -> dict[str, dict[str, int]]:
    """Return the counts by type that gres.conf states for each node, under "" for all others."""
    path = captured_file(folder, "gres.conf")
    found: dict[str, dict[str, int]] = {"": {}}
    for line in [] if path is None else configuration_lines(path):
        name, kind = line.text("name"), line.text("type")
        if not name or not kind:
            if "autodetect" in line.values and line.text("autodetect").lower() != "off":
                notes.add("gres.conf: types that nodes detect themselves are not known")
            continue
        if "count" in line.values:
            many = line.parsed("count", whole_amount)
        else:
            many = line.parsed("file", number_of_hosts) or 1
        for node in line.parsed("nodename", hosts_of) if "nodename" in line.values else [""]:
            own = found.setdefault(node, {})
            own[f"{name}:{kind}"] = own.get(f"{name}:{kind}", 0) + many
    return found


def _typed(
    name: str, have: Mapping[str, int], types: Mapping[str, int], notes: Notes
) -> dict[str, int]:
    """Return the resources of a node, with the types of gres.conf where slurm.conf has none."""
    amounts = dict(have)
    for base in [key for key in have if ":" not in key]:
        own = {key: many for key, many in types.items() if key.startswith(f"{base}:")}
        stated = any(key.startswith(f"{base}:") for key in have)
        if own and sum(own.values()) != have[base]:
            text = f"gres.conf has {sum(own.values())} {base}, slurm.conf {have[base]}"
            notes.count([name], f"{text}; taken from slurm.conf")
        elif not stated:
            amounts |= own
    return amounts


def _nodes_of(
    lines: Iterable[Line], nodes: Iterable[SlurmNode], index: Mapping[str, int]
) -> NodesOf:
    """Return the reader of host lists in which names of sets and ALL stand for their nodes."""
    sets: dict[str, list[str]] = {}

    def nodes_of(text: str) -> list[str]:
        found: list[str] = []
        for name in hosts_of(text):
            if name in sets:
                found += sets[name]
            elif name.upper() == "ALL":
                found += index
            elif name in index:
                found.append(name)
            else:
                expected = "expected a node or a set of nodes"
                raise InputError(f"{name}; {expected} of this file")
        return found

    for line in _with_defaults(lines):
        wanted = set(filter(None, line.text("feature").split(",")))
        listed = line.parsed("nodes", nodes_of)
        having = [each.node.name for each in nodes if not wanted.isdisjoint(each.node.features)]
        for name in line.text("nodeset").split(","):
            sets[name] = [*listed, *having]
    return nodes_of


def find_site(path_or_name: str | Path) -> Path:
    """Return the file or folder of a path, or that of the name of a bundled site.

    A file or folder of that name takes precedence.
    """
    check_name(path_or_name)
    path, known = Path(path_or_name), bundled_sites()
    if os.path.lexists(path):
        return path
    if str(path) in known:
        return known[str(path)]
    unnamed = "" if path.suffix else ", and no name in `optsched list sites`"
    raise no_such_file(path, known, f"no such file{unnamed}")


EXPECTED = (
    "expected a site as TOML, slurm.conf, what scontrol show nodes --json writes, "
    "or a folder with nodes.json, nodes.txt or slurm.conf"
)


def load_site(path_or_name: str | Path, notes: list[str] | None = None) -> Site:
    """Return the site that a file or a folder describes.

    `path_or_name`: a TOML file as docs/formats/site.md describes it; slurm.conf; what ``scontrol
    show nodes`` wrote with ``--json`` or ``-d -o``; a folder with captured output of Slurm or with
    slurm.conf; or the name of a bundled site.
    """
    path = find_site(path_or_name)
    if path.suffix == ".toml":
        return read_site_file(path)
    found = (read_shown_site if _is_shown(path) else read_configuration)(path)
    if notes is not None:
        notes += (*found.notes, *left_out(found.access))
    return found.site


def _is_shown(path: Path) -> bool:
    """Return whether the path has what Slurm showed; if not, it has a slurm.conf."""
    if path.is_dir():
        if captured_file(path, "nodes.json", "nodes.txt"):
            return True
        if captured_file(path, "slurm.conf"):
            return False
        if captured_file(path, "sinfo.json"):
            return True
        raise InputError(EXPECTED, file=path)
    head = read_head(path)
    if head.lstrip().startswith(b"{") or b" CPUTot=" in head:
        return True
    if ".conf" in path.suffixes:
        return False
    raise InputError(EXPECTED, file=path)
