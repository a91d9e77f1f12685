"""A site as Slurm shows it: its nodes, and what the files say beyond the site itself."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.arrays import Ints
from optsched.errors import InputError
from optsched.sites.job_request import unit_of
from optsched.sites.parts import Reservation, Topology, assign, overlapping, whole_numbers
from optsched.sites.site import NODE_NAME, Node, Partition, Site, of_nodes, typed
from optsched.sites.slurm_files import (
    UNSET,
    Line,
    Notes,
    RecordFields,
    printed_lines,
    read_shown,
)
from optsched.sites.slurm_notation import SHARED, Shares, gres, shares_in_use, tres
from optsched.sites.slurm_partitions import Access

DOWN = frozenset(
    (
        *("DOWN", "ERROR", "FUTURE", "INVALID", "INVALID_REG", "NOT_RESPONDING", "NO_RESPOND"),
        *("POWERING_DOWN", "REBOOT_ISSUED", "UNKNOWN"),
    )
)
"""Words of the state of a node on which no job runs."""

DRAINED = frozenset(
    ("BLOCKED", "DRAIN", "DRAINED", "DRAINING", "FAIL", "FAILING", "POWER_DOWN", "POWER_DRAIN")
)
"""Words of the state of a node on which no further job starts."""

COMPLETING = "COMPLETING"
"""Word of the state of a node whose last job is not yet completed: none starts until it is."""

RESERVED = frozenset(("MAINT", "MAINTENANCE", "RESERVED", "RESV"))
"""Words of the state of a node that a reservation holds now."""

ALLOCATED = frozenset(("ALLOC", "ALLOCATED"))
"""Words of the state of a node of which jobs have all cores."""

UP = frozenset(
    (
        *("ALLOC", "ALLOCATED", "CLOUD", "COMPLETING", "DYNAMIC_FUTURE", "DYNAMIC_NORM", "IDLE"),
        *("MIXED", "PLANNED", "POWERED_DOWN", "POWERING_UP", "POWER_UP", "REBOOT_CANCELED"),
        *("REBOOT_REQUESTED", "RESUME", "UNDRAIN"),
    )
)
"""Words of the state of a node on which jobs start, at once or when Slurm has woken it up."""

ASLEEP = "POWERED_DOWN"

BOOTING = frozenset(("POWERING_UP", "POWER_UP"))
"""Words of the state of a node that does not respond yet, which is no fault."""

SILENT = frozenset(("NOT_RESPONDING", "NO_RESPOND"))

_MARKS = {"*": "NOT_RESPONDING", "~": "POWERED_DOWN", "#": "POWERING_UP", "%": "POWERING_DOWN"}
_MARKS |= {"!": "POWER_DOWN", "$": "MAINT", "@": "REBOOT_REQUESTED", "^": "REBOOT_ISSUED"}
_MARKS |= {"-": "PLANNED"}

_NUMBERED = re.compile(r"\([0-9]+\)$")
"""The number of a user after its name, in text."""

_BY_WHOM = re.compile(r"\[[^\[\]]*@[0-9T:.-]+\]$")
_NOT_CONSUMED = re.compile(r"(?:^|,)[^,(]*:no_consume\b[^,(]*(?:\([^)]*\))?")


_IN_TEXT = {"name": "nodename", "cpus": "cputot", "effective_cpus": "cpuefctv"}
_IN_TEXT |= {"alloc_cpus": "cpualloc", "real_memory": "realmemory", "alloc_memory": "allocmem"}
_IN_TEXT |= {"specialized_memory": "memspeclimit", "gres_used": "gresused", "tres": "cfgtres"}
_IN_TEXT |= {"gres_drained": "gresdrain", "tres_used": "alloctres", "threads": "threadspercore"}
_IN_TEXT |= {"active_features": "activefeatures", "features": "availablefeatures"}
_IN_TEXT |= {"state_flags": ""}  # which the state itself has
"""Keys of the text where they are not those of JSON."""


def read_nodes(
    path: Path, notes: Notes, beside: Path | None = None
) -> tuple[list[SlurmNode], int | None]:
    """Return the nodes in a file, and when it was written in seconds since 1970, if it says so.

    `path`: what ``scontrol show nodes`` wrote, with ``--json`` or with ``-o`` and best with ``-d``,
    or what ``sinfo --json`` of Slurm 22.05 wrote; plain or gzip; `beside`: what ``scontrol show
    nodes -o`` wrote at the same time, for the cores and the memory that are kept for the system
    where the JSON does not state them, as that of Slurm 22.05.
    """
    nodes: list[SlurmNode] = []
    seen: set[str] = set()
    lines = printed_lines(beside, _IN_TEXT) if beside else ()
    texts: Mapping[str, RecordFields] = {each.text("name"): each for each in lines}
    sources = read_shown(path, "nodes", _IN_TEXT)
    for source in sources:
        each = _node(source, notes, texts)
        if each.node.name in seen:
            raise source.wrong("name", "every node once")
        seen.add(each.node.name)
        nodes.append(each)
    if not nodes:
        raise InputError("no nodes; expected what scontrol show nodes writes", file=path)
    return nodes, None if isinstance(sources[0], Line) else sources[0].dump.time


def state_of(words: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Return the state of a node in a site, and the words that are not known.

    It is the worst that the words say; a node with unknown words counts as drained. A node that
    boots does not respond yet: Slurm sets both words, and starts jobs on it.

    >>> state_of(("MIXED", "DRAIN")), state_of(("IDLE", "PLANNED")), state_of(("DOWN*",))
    (('drained', ()), ('up', ()), ('down', ()))
    >>> state_of(("IDLE", "CLOUD", "NOT_RESPONDING", "POWERING_UP")), state_of(("IDLE*",))
    (('up', ()), ('down', ()))
    """
    said = _said(words)
    if said & BOOTING:
        said -= SILENT
    unknown = tuple(sorted(said - DOWN - DRAINED - RESERVED - UP))
    if said & DOWN:
        return "down", unknown
    if said & DRAINED or unknown:
        return "drained", unknown
    return ("reserved" if said & RESERVED else "up"), unknown


def _said(words: Iterable[str]) -> set[str]:
    said = set()
    for word in words:
        base = word.upper().rstrip("".join(_MARKS))
        said |= {base, *(_MARKS[mark] for mark in word[len(base) :])}
    return said


def consumed(text: str) -> dict[str, int]:
    """Return the generic resources of a list that jobs use up."""
    return {} if text in UNSET else gres(_NOT_CONSUMED.sub("", text))


def _node(source: RecordFields, notes: Notes, texts: Mapping[str, RecordFields]) -> SlurmNode:
    name = source.text("name")
    if not NODE_NAME.fullmatch(name):
        raise source.wrong("name", "the name of a node")
    words = _state_words(source)
    said = _said(words)
    state, unknown = state_of(words)
    if unknown:
        notes.count([name], f"taken as drained, in the unknown state {'+'.join(unknown)}")
    if state == "up" and said & BOOTING:
        notes.count([name], "booting; taken as up, as Slurm starts jobs there once it responds")
    elif state == "up" and ASLEEP in said:
        notes.count([name], "powered down; taken as up, as Slurm wakes it up for a job")
    if ":no_consume" in source.text("gres"):
        notes.count([name], "left out what jobs do not use up (no_consume)")
    have = source.parsed("gres", consumed)
    memory = source.count("real_memory")
    cores, system = _for_jobs(source, texts.get(name))
    if not cores:
        raise source.wrong("cpus", "a whole number from 1")
    if not memory:
        raise source.wrong("real_memory", "MB, a whole number from 1")
    if system > memory:
        raise source.wrong("specialized_memory", f"at most the memory of {memory}")
    amounts = {"cores": cores, "memory": memory - system}
    used = {"cores": source.count("alloc_cpus"), "memory": source.count("alloc_memory")}
    if not said.isdisjoint(ALLOCATED):
        used["cores"] = max(cores, used["cores"])
    features = source.listed("active_features") or source.listed("features")
    reason = _BY_WHOM.sub("", source.text("reason")).rstrip()
    return SlurmNode(
        Node(name, amounts | have, features, state, reason),
        source.count("threads") or 1,
        used | (_used_gres(source, name, have, used["cores"], notes) if have else {}),
        source.listed("partitions"),
        _NUMBERED.sub("", source.text("owner")),
        source.text("mcs_label"),
        source.count("weight"),
        COMPLETING in said,
    )


def _for_jobs(source: RecordFields, text: RecordFields | None) -> tuple[int, int]:
    """Return the cores that jobs may have, and the memory in MB that they may not."""
    effective, system = source.count("effective_cpus"), source.count("specialized_memory")
    if text is not None:
        effective = effective or text.count("effective_cpus")
        system = system or text.count("specialized_memory")
    effective = effective or source.parsed("tres", tres).get("cpu", 0)
    return effective or source.count("cpus"), system


def _state_words(source: RecordFields) -> tuple[str, ...]:
    # version 38 has the further words in a field of their own
    words = source.listed("state", "+") + source.words("state_flags")
    if not words:
        raise source.wrong("state", "a state such as IDLE")
    return tuple(word.upper() for word in words)


def _used_gres(
    source: RecordFields, name: str, have: Mapping[str, int], cores: int, notes: Notes
) -> dict[str, int]:
    """Return the generic resources that jobs have or that are drained."""
    used = dict(source.parsed("gres_used", consumed))
    shares = source.parsed("gres_used", shares_in_use)
    if not source.text("gres_used"):  # the text has it with --details only
        counted = source.parsed("tres_used", tres)
        used = {kind[5:]: many for kind, many in counted.items() if kind.startswith("gres/")}
        shares = [Shares("", used[kind], None) for kind in SHARED if used.get(kind)]
        if cores and not used:
            notes.count([name], "no word on GPUs and the like in use; taken as free")
    drained = {kind: n for kind, n in source.parsed("gres_drained", consumed).items() if n}
    for kind, many in drained.items():
        used[kind] = used.get(kind, 0) + many
    if drained:
        notes.count([name], f"{', '.join(drained)} drained")
    if _of_any_type(used, have):
        notes.count([name], "GPUs and the like of unstated types in use; taken as of every type")
    if shares:
        _use_shared_gpus(used, have, shares)
        notes.count([name], "shares of GPUs in use (mps, shard); these GPUs taken as in use")
    return used


def _of_any_type(used: dict[str, int], have: Mapping[str, int]) -> bool:
    """Count what is in use of no stated type for every type; return whether there are several."""
    found = False
    for base, types in typed(names := tuple(have)).items():
        of_types = sum(used.get(names[place], 0) for place in types)
        unstated = used.get(base, 0) - of_types
        used[base] = max(used.get(base, 0), of_types)
        for kind in (names[place] for place in types) if unstated > 0 else ():
            used[kind] = min(have[kind], used.get(kind, 0) + unstated)
            found |= len(types) > 1
    return found


def _use_shared_gpus(
    used: dict[str, int], have: Mapping[str, int], shares: Iterable[Shares]
) -> None:
    """Count GPUs with shares in use: as many as possible, and of every type, if not stated."""
    for kind, count, gpus in shares:
        many = count if gpus is None else len(gpus)
        own = f"gpu:{kind}"
        types = [own] if own in have else [each for each in have if each.startswith("gpu:")]
        for key in ("gpu", *types):
            used[key] = min(have.get(key, 0), used.get(key, 0) + many)


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


def of_each_node(usual: Any) -> Any:
    """Return a field with a value for each node, the usual one unless others are given."""
    return field(default=None, metadata={"usual": usual})


@dataclass(frozen=True, eq=False)
class SlurmSite:
    """A site as Slurm describes it, and what is free."""

    site: Site
    # Free amounts of the resources of the site; all of them for a site from slurm.conf, shape
    # (nodes, resources)
    free: Ints
    time: int | None  # when the output was captured, in seconds since 1970; None if no file says it
    # Free licences, and those that reservations keep, which count as free
    licences: Mapping[str, int] = field(default_factory=dict)
    reserved: Mapping[str, int] = field(default_factory=dict)
    # All reservations, also those that the site leaves out
    reservations: tuple[Reservation, ...] = ()
    # Threads of each core of the node: Slurm counts them as CPUs, and so does the site as
    # cores, shape (nodes,)
    threads: Ints = of_each_node(1)
    # Weight of each node: Slurm takes nodes of low weight first, shape (nodes,)
    weights: Ints = of_each_node(0)
    # By name of the partition, its rules that the site does not have
    access: Mapping[str, Access] = field(default_factory=dict)
    # Settings of slurm.conf, by names in small letters
    settings: Mapping[str, str] = field(default_factory=dict)
    # Whether Slurm gives memory to jobs, as with ``CR_Core_Memory``; true if no file says it.
    # Otherwise a request for memory only rules out nodes that have less.
    counts_memory: bool = True
    # What an amount of 1 stands for, for resources with amounts that are too large otherwise
    units: Mapping[str, int] = field(default_factory=dict)
    # Owner and label of each node, see `SlurmNode`, shape (nodes,)
    owners: NDArray[np.object_] = of_each_node("")
    labels: NDArray[np.object_] = of_each_node("")
    by_label: bool = False  # whether jobs with a label share nodes only with jobs of the same one
    # Nodes on which a job is being completed, see `SlurmNode`, shape (nodes,)
    completing: NDArray[np.bool_] = of_each_node(False)
    notes: tuple[str, ...] = ()
    # Kinds of files that are not there, of `optsched.sites.loading.FILES`
    missing: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        nodes = len(self.site.nodes)
        for name, usual in usual_of_nodes(self).items():
            given = [usual] * nodes if getattr(self, name) is None else getattr(self, name)
            column = np.asarray(given, object if usual == "" else type(usual))
            if len(column) != nodes:
                raise InputError("expected one for each node of the site", field=name)
            assign(self, **{name: column})
        assign(self, threads=whole_numbers(self.threads, "threads", 1, MOST_THREADS))


def usual_of_nodes(site: SlurmSite) -> dict[str, Any]:
    """Return the usual value of each field that has one for each node."""
    return {one.name: one.metadata["usual"] for one in fields(site) if one.metadata}


def slurm_site(
    nodes: Sequence[SlurmNode],
    partitions: Iterable[Partition],  # with topologies that are not there, which is noted
    access: Mapping[str, Access],
    topologies: Mapping[str, Topology],  # the default one first
    settings: Mapping[str, str],
    licences: Sequence[Mapping[str, int]],  # numbers of all, of the free and of the reserved ones
    notes: Notes,
    time: int | None = None,
    *,
    # Those of unknown times, those that float, and nodes that are not there, are left out of
    # the site and noted. Those that overlap are noted.
    reservations: Sequence[Reservation] = (),
    file: Path,  # the file or folder, for messages
    missing: Iterable[str] = (),
) -> SlurmSite:
    """Return the site of nodes, partitions and topologies; see `SlurmSite`."""
    partitions = _known_topologies(partitions, topologies, notes)
    if settings.get("selecttype", "").endswith("linear"):
        notes.add("exclusive partitions, as select/linear gives whole nodes")
        partitions = [replace(each, exclusive=True) for each in partitions]
    total, left, reserved = licences
    nodes = _comparable(nodes, notes)
    units = _units(nodes, notes)
    names = {each.node.name for each in nodes}
    try:
        site = Site(
            settings.get("clustername", "slurm"),
            **of_nodes([*_described(nodes, reservations, units)]),
            partitions=tuple(partitions),
            licences=total,
            topologies=topologies,
            reservations=tuple(_kept(reservations, names, notes)),
        )
        notes.count(site.unpartitioned, "in no partition, so no job starts there")
        return SlurmSite(
            site,
            _free(site, nodes, units, notes),
            time,
            left,
            reserved,
            tuple(reservations),
            np.array([each.threads for each in nodes]),
            np.array([each.weight for each in nodes]),
            access,
            settings,
            "MEMORY" in settings.get("selecttypeparameters", "CR_CORE_MEMORY").upper(),
            units,
            np.array([each.owner for each in nodes], object),
            np.array([each.label for each in nodes], object),
            any(each.label for each in nodes)
            or "select" in re.split("[,:]", settings.get("mcsparameters", "").lower()),
            np.array([each.completing for each in nodes]),
            notes.texts,
            frozenset(missing),
        )
    except InputError as error:
        raise error.within(file) from None


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
            what = (
                "local times, known only with the same jobs in squeue.json and jobs.txt; kept at "
                "all times in plans, and left out of simulations"
            )
            notes.count([each.name], what, "reservation")
        elif nodes:
            found.append(replace(each, nodes=nodes))
            for other, shared in overlapping(found[-1], found):
                what = f"in reservations {other.name} and {each.name} at the same time, which keep"
                notes.count(shared, f"{what} each other's jobs from them")
            yield found[-1]


def _described(
    nodes: Sequence[SlurmNode], reservations: Iterable[Reservation], units: Mapping[str, int]
) -> Iterator[Node]:
    """Yield the nodes of a site, with amounts in units, rounded down.

    Slurm marks nodes as reserved, too, that only reservations that float have.
    """
    floating, others = set[str](), set[str]()
    for each in reservations:
        (others if each.ahead is None else floating).update(each.nodes)
    free = floating - others
    for node in (each.node for each in nodes):
        is_free = node.state == "reserved" and node.name in free
        amounts = {key: many // unit_of(key, units) for key, many in node.amounts.items()}
        yield node._replace(amounts=amounts, state="up" if is_free else node.state)


def _comparable(nodes: Sequence[SlurmNode], notes: Notes) -> Sequence[SlurmNode]:
    """Return the nodes without resources of which what there is has lost its unit."""
    # Slurm 22.05 shows scratch:900 for 900G, and what is in use in full
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
    """Return a unit for each resource, without its type, of which a node has too much otherwise."""
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
            # one that divides all amounts, if there is any
            found[base] = next((unit for unit in enough if whole % unit == 0), enough[0])
            notes.add(f"{base}: counted in units of {found[base]:,}")
    return found


def _free(site: Site, nodes: Sequence[SlurmNode], units: Mapping[str, int], notes: Notes) -> Ints:
    free = np.zeros_like(site.capacity)
    for place, name in enumerate(site.resources):
        unit = unit_of(name, units)
        for node, (each, has) in enumerate(zip(nodes, site.capacity[:, place].tolist())):
            left = each.node.amounts.get(name, has * unit) - each.used.get(name, 0)
            free[node, place] = left // unit
        short = np.flatnonzero(free[:, place] < 0).tolist()
        what = f"more {name} in use than there are; taken as none free"
        notes.count([site.nodes[node] for node in short], what)
    return np.maximum(free, 0)
