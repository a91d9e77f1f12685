"""Partitions of a site from Slurm, with the rules of access that a site does not have.

They are lines of slurm.conf, or what scontrol shows of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from optsched.errors import InputError
from optsched.sites.parts import repeated
from optsched.sites.site import Partition
from optsched.sites.slurm_files import Line, Notes, RecordFields, number, read_shown
from optsched.sites.slurm_notation import INFINITE, hosts_of, megabytes, seconds, time_text

USUAL: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("allowgroups", "allowaccounts", "allowqos", "allocnodes"), ("ALL",)),
    **dict.fromkeys(("denyaccounts", "denyqos", "qos", "alternate"), ()),
    **dict.fromkeys(("rootonly", "reqresv", "exclusiveuser", "exclusivetopo"), ("NO",)),
    **dict.fromkeys(("maxcpuspernode", "maxcpuspersocket"), INFINITE),
    **dict.fromkeys(("maxmempernode", "maxmempercpu", "defmempernode"), ("0", *INFINITE)),
    "minnodes": ("0", "1"),
}
"""Rules of a partition that a site does not have, and their values without effect."""

UNKNOWN = {
    **{key: USUAL[key] for key in ("exclusivetopo", "maxcpuspersocket")},
    "exclusive": ("NO", "NODE", "USER"),
    "selecttypeparameters": ("NONE",),
}
"""Rules of which plans do not know either whether a job keeps to them."""

WITHOUT_EFFECT = frozenset(
    (
        *("partitionname", "nodes", "nodesets", "totalnodes", "totalcpus", "tres", "default"),
        *("state", "maxtime", "maxnodes", "priority", "prioritytier", "priorityjobfactor"),
        *("oversubscribe", "shared", "topology", "hidden", "lln", "cpubind", "disablerootjobs"),
        *("defaulttime", "defmempercpu", "jobdefaults", "overtimelimit", "tresbillingweights"),
        *("preemptmode", "gracetime", "resumetimeout", "suspendtimeout", "suspendtime"),
        "powerdownonidle",
    )
)
"""Keys of a partition that `Partition` has, or that keep no waiting job from starting."""


@dataclass(frozen=True, kw_only=True)
class Access:
    """Rules of a partition of Slurm that a site does not have."""

    # Accounts whose jobs may start, empty for all, and those whose jobs may not
    accounts: tuple[str, ...] = ()
    denied_accounts: tuple[str, ...] = ()
    # The same for QOS
    qos: tuple[str, ...] = ()
    denied_qos: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()  # groups whose users may start jobs, empty for all
    # Whether only jobs of root, or jobs of a reservation, start
    root_only: bool = False
    reserved_only: bool = False
    least_nodes: int = 0  # least number of nodes of a job
    # Most cores that jobs of the partition have on a node together, 0 for no limit
    cores_per_node: int = 0
    # Most memory of a job in MB on a node, or for each core; 0 for no limit
    memory_per_node: int = 0
    memory_per_core: int = 0
    # Cores, and memory in MB, that a job has for each of its GPUs if it states none; 0 for
    # none
    cores_per_gpu: int = 0
    memory_per_gpu: int = 0
    # Time limit in seconds of a job that states none, if it is below the longest one
    default_time: float = math.inf
    own_qos: str = ""  # QOS of which the limits hold for all jobs of the partition
    # Whether running jobs of the partition may be preempted, if the site has preemption
    preempted: bool = False
    shares: str = ""  # how jobs may share cores, such as ``FORCE:2``; empty if they do not
    # Further rules in force, such as ``MaxCPUsPerSocket=8``: whether a job keeps to them is
    # not known
    unknown: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()  # keys of the rules that have an effect


def access_of(line: Line) -> Access:
    """Return the rules that the line of a partition states."""

    def names(key: str) -> tuple[str, ...]:
        return () if line.text(key).upper() == "ALL" else line.listed(key)

    def most(key: str) -> int:
        if line.text(key).upper() in ("", *INFINITE):
            return 0
        return line.parsed(key, megabytes) if "mem" in key else line.count(key)

    shared = _sharing(line)
    return Access(
        accounts=names("allowaccounts"),
        denied_accounts=names("denyaccounts"),
        qos=names("allowqos"),
        denied_qos=names("denyqos"),
        groups=names("allowgroups"),
        root_only=line.text("rootonly").upper() == "YES",
        reserved_only=line.text("reqresv").upper() == "YES",
        least_nodes=line.count("minnodes"),
        cores_per_node=most("maxcpuspernode"),
        memory_per_node=most("maxmempernode"),
        memory_per_core=most("maxmempercpu"),
        cores_per_gpu=of_gpu(line.text("jobdefaults"), "DefCpuPerGPU"),
        memory_per_gpu=of_gpu(line.text("jobdefaults"), "DefMemPerGPU"),
        default_time=line.parsed("defaulttime", lambda t: _limit("" if t.upper() == "NONE" else t)),
        own_qos=line.text("qos"),
        preempted=line.text("preemptmode").upper() != "OFF",
        shares=shared if shared.startswith(("YES", "FORCE")) and shared[-2:] != ":1" else "",
        unknown=tuple(
            f"{key}={line.text(key)}"
            for key in sorted(line.values)
            if key not in WITHOUT_EFFECT
            and (key not in USUAL or key in UNKNOWN)
            and line.text(key).upper() not in ("", *UNKNOWN.get(key, ()))
        ),
        left_out=tuple(
            key
            for key, usual in (*USUAL.items(), ("exclusive", ("NO", "NODE")))
            if line.text(key) and line.text(key).upper() not in usual
        ),
    )


def of_gpu(defaults: str, name: str) -> int:
    """Return a default of jobs for each of their GPUs, 0 for none.

    >>> of_gpu("DefCpuPerGPU=4,DefMemPerGPU=30000", "DefMemPerGPU")
    30000
    """
    found = re.search(rf"\b{name}=([0-9]{{1,15}})\b", defaults, re.IGNORECASE)
    return int(found[1]) if found else 0


def left_out(access: Mapping[str, Access]) -> tuple[str, ...]:
    """Return notes on the rules of partitions that a simulation does not have."""
    notes = Notes()
    for name, each in access.items():
        for key in each.left_out:
            notes.count([name], f"{key} left out", "partition")
        if each.shares:
            what = "cores that jobs may share are taken as not shared"
            notes.count([name], what, "partition")
    return notes.texts


def accesses_of(lines: Iterable[Line]) -> dict[str, Access]:
    """Return the rules of partitions by name."""
    return {line.text("partitionname"): access_of(line) for line in lines}


LAST_WITHOUT_DEFAULT = 44
"""Last version of the data parser that does not say which partition is the default."""

UP = ("UP", "DRAIN")
"""States in which jobs start; of a partition in DRAIN those that wait there already."""

_TEXTS = {"partitionname": "name", "nodes": "nodes.configured", "topology": "topology"}
_TEXTS |= {"exclusive": "partition.exclusive", "oversubscribe": "partition.oversubscribe"}
_TEXTS |= {"allowaccounts": "accounts.allowed", "denyaccounts": "accounts.deny"}
_TEXTS |= {"allowqos": "qos.allowed", "denyqos": "qos.deny", "qos": "qos.assigned"}
_TEXTS |= {"allowgroups": "groups.allowed"}
_TIMES = {"maxtime": "maximums.time", "defaulttime": "defaults.time"}
_NUMBERS = {"maxnodes": ("maximums.nodes", math.inf), "minnodes": ("minimums.nodes", 0)}
_NUMBERS |= {"prioritytier": ("priority.tier", 1), "priorityjobfactor": ("priority.job_factor", 1)}
_NUMBERS |= {"maxcpuspernode": ("maximums.cpus_per_node", math.inf)}
_NUMBERS |= {"maxcpuspersocket": ("maximums.cpus_per_socket", math.inf)}
_NUMBERS |= {"maxmempernode": ("maximums.partition_memory_per_node", 0)}
_NUMBERS |= {"maxmempercpu": ("maximums.partition_memory_per_cpu", 0)}
_NUMBERS |= {"defmempercpu": ("defaults.partition_memory_per_cpu", 0)}
_FLAGS = {"default": "DEFAULT", "rootonly": "ROOT_ONLY", "reqresv": "REQ_RESV"}
_FLAGS |= {"exclusiveuser": "EXCLUSIVE_USER"}
"""Fields of a partition in JSON by the key of the text, numbers with the usual one; its flags."""

NodesOf: TypeAlias = Callable[[str], list[str]]


def shown_partitions(
    path: Path, index: Mapping[str, int], settings: Mapping[str, str], notes: Notes
) -> tuple[list[Partition], dict[str, Access]]:
    """Return the partitions that ``scontrol show partitions`` wrote, as ``-o`` text or JSON.

    The second result is the rules that a site does not have, by name of the partition.
    """
    command = "scontrol -o show partitions"
    lines = [
        each if isinstance(each, Line) else _of_record(each, notes)
        for each in read_shown(path, "partitions", {}, "PartitionName", command)
    ]
    partitions = [partition_of(line, hosts_of, index, settings, notes) for line in lines]
    names = [each.name for each in partitions]
    if (twice := repeated(names)) is not None:
        raise InputError(f"{twice}: is there twice", file=path, field="PartitionName")
    if (default := [each.name for each in partitions if each.default])[1:]:
        message = f"{' and '.join(default)} are default; expected one at most"
        raise InputError(message, file=path, field="Default")
    return partitions, accesses_of(lines)


def partition_of(
    line: Line,
    nodes_of: NodesOf,
    index: Mapping[str, int],
    settings: Mapping[str, str],
    notes: Notes,
) -> Partition:
    """Return the partition that a line describes; `nodes_of` turns its list of nodes into names."""
    name = line.text("partitionname")
    if not name:
        raise line.wrong("partitionname", "the name of a partition")
    names = line.parsed("nodes", nodes_of)
    strange = [node for node in names if node not in index]
    if strange:  # Slurm does not show nodes that are in the state FUTURE
        notes.count(strange, f"left out of partition {name}, not among the nodes")
    state, exclusive = line.text("state").upper() or "UP", line.text("exclusive").upper()
    try:
        return Partition(
            name,
            np.array(sorted({index[node] for node in names if node in index}), dtype=np.int64),
            default=line.text("default").upper() == "YES",
            max_time=line.parsed("maxtime", _limit),
            max_nodes=float(line.count("maxnodes")) if _limited(line, "maxnodes") else math.inf,
            exclusive=_sharing(line) == "EXCLUSIVE" or exclusive == "NODE",
            exclusive_user=line.text("exclusiveuser").upper() == "YES" or exclusive == "USER",
            up=state in UP,
            priority_tier=_priority(line, "prioritytier"),
            priority_factor=_priority(line, "priorityjobfactor"),
            memory_per_core=_memory_per_core(line, settings),
            topology=line.text("topology"),
        )
    except InputError as error:
        if error.file:
            raise
        raise line.error(error.field or "partitionname", f"{name}: {error.mistakes[0]}") from None


def partitions_of_nodes(members: Sequence[Iterable[str]], notes: Notes) -> list[Partition]:
    """Return the partitions that nodes are in, given those of each node; without limits."""
    found: dict[str, list[int]] = {}
    for place, names in enumerate(members):
        for name in names:
            found.setdefault(name, []).append(place)
    notes.count(list(found), "limits not known, without partitions.txt", "partition")
    return [Partition(name, np.array(places)) for name, places in found.items()]


def _limit(text: str) -> float:
    return seconds(text) if text else math.inf


def _sharing(line: Line) -> str:
    return (line.text("oversubscribe") or line.text("shared")).upper()


def _limited(line: Line, key: str) -> bool:
    return line.text(key).upper() not in ("", "0", *INFINITE)


def _priority(line: Line, key: str) -> int:
    """Return the tier or the factor; ``Priority`` of old versions stands for both."""
    given = key if key in line.values else "priority"
    return line.count(given) if given in line.values else 1


def _memory_per_core(line: Line, settings: Mapping[str, str]) -> int:
    if _limited(line, "defmempercpu"):
        return line.count("defmempercpu")
    whole = settings.get("defmempercpu", "")
    if _limited(line, "defmempernode") or not whole.isdecimal() or len(whole) > 15:
        return 0
    return int(whole)


def _of_record(record: RecordFields, notes: Notes) -> Line:
    """Return a record that scontrol wrote as JSON under the keys of the text."""
    dump = record.dump
    if dump.version <= LAST_WITHOUT_DEFAULT:
        notes.add(f"{dump.path.name} does not say which partition is the default")
    try:
        return Line("partitionname", _texts(record.fields, dump.version), dump.path, None)
    except InputError as error:
        message = f"{dump.name(record.place)}: {error.mistakes[0]}"
        raise InputError(message, file=dump.path, field=error.field) from None


def _texts(record: Mapping[str, Any], version: int) -> dict[str, str]:
    shares = number(_at(record, "maximums.shares"))
    states, flags = _at(record, "partition.state"), _at(record, "flags")
    values = {key: _at(record, path) for key, path in _TEXTS.items()}
    for key, (path, usual) in _NUMBERS.items():
        values[key] = _whole(number(_at(record, path), usual))
    values |= {key: _minutes(number(_at(record, path))) for key, path in _TIMES.items()}
    values["state"] = states[0] if isinstance(states, list) and states else None
    for key, flag in _FLAGS.items():
        values[key] = "YES" if isinstance(flags, list) and flag in flags else "NO"
    if not isinstance(flags, list):
        values["flags"] = "not stated"
    if values["defmempercpu"] == "0":
        del values["defmempercpu"]
    if version <= LAST_WITHOUT_DEFAULT and shares == 0:  # version 45 has 0 for all partitions
        values["oversubscribe"] = "EXCLUSIVE"
    return {key: value for key, value in values.items() if isinstance(value, str)}


def _at(record: Any, path: str) -> Any:
    """Return the value at a path of keys, one within the other; None where there is none."""
    first, *_ = keys = path.split(".")
    for key in keys:
        if not isinstance(record, Mapping):
            raise InputError(f"{record!r:.60}; expected an object with {key}", field=first)
        record = record.get(key, {})
    return record


def _minutes(amount: float | None) -> str:
    return time_text(60 * amount) if amount is not None and amount >= 0 else "UNLIMITED"


def _whole(amount: float) -> str:
    return "UNLIMITED" if amount == math.inf else f"{amount:.0f}"
