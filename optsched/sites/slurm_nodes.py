"""Nodes of a site, and what jobs use of them, as Slurm shows them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from optsched.errors import InputError
from optsched.sites.notes import Notes
from optsched.sites.site import NODE_NAME, Node
from optsched.sites.slurm_amounts import gres, tres
from optsched.sites.slurm_json import UNSET, is_json, read_dump
from optsched.sites.slurm_lines import Line, printed_lines
from optsched.sites.slurm_record import RecordFields
from optsched.sites.slurm_site import SlurmNode

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

RESERVED = frozenset(("MAINT", "MAINTENANCE", "RESERVED", "RESV"))
"""Words of the state of a node that a reservation holds now."""

UP = frozenset(
    (
        *("ALLOC", "ALLOCATED", "CLOUD", "COMPLETING", "DYNAMIC_FUTURE", "DYNAMIC_NORM", "IDLE"),
        *("MIXED", "PLANNED", "POWERED_DOWN", "POWERING_UP", "POWER_UP", "REBOOT_CANCELED"),
        *("REBOOT_REQUESTED", "RESUME", "UNDRAIN"),
    )
)
"""Words of the state of a node on which jobs start, at once or when Slurm has woken it up."""

ASLEEP = frozenset(("POWERED_DOWN", "POWERING_UP", "POWER_UP"))

_MARKS = {"*": "NOT_RESPONDING", "~": "POWERED_DOWN", "#": "POWERING_UP", "%": "POWERING_DOWN"}
_MARKS |= {"!": "POWER_DOWN", "$": "MAINT", "@": "REBOOT_REQUESTED", "^": "REBOOT_ISSUED"}
_MARKS |= {"-": "PLANNED"}

_BY_WHOM = re.compile(r"\[[^\[\]]*@[0-9T:.-]+\]$")
_NOT_CONSUMED = re.compile(r"(?:^|,)[^,(]*:no_consume\b[^,(]*(?:\([^)]*\))?")


class _Keys(NamedTuple):
    """Names of the fields."""

    name: str
    effective: str
    cores: str
    memory: str
    system_memory: str
    used_cores: str
    used_memory: str
    gres: str
    used_gres: str
    drained_gres: str
    used_tres: str
    active: str
    features: str
    threads: str
    partitions: str
    reason: str
    weight: str


_JSON = _Keys(
    *("name", "effective_cpus", "cpus", "real_memory", "specialized_memory"),
    *("alloc_cpus", "alloc_memory", "gres", "gres_used", "gres_drained", "tres_used"),
    *("active_features", "features", "threads", "partitions", "reason", "weight"),
)
_TEXT = _Keys(
    *("nodename", "cpuefctv", "cputot", "realmemory", "memspeclimit"),
    *("cpualloc", "allocmem", "gres", "gresused", "gresdrain", "alloctres"),
    *("activefeatures", "availablefeatures", "threadspercore", "partitions", "reason", "weight"),
)


def read_nodes(path: Path, notes: Notes) -> tuple[list[SlurmNode], int | None]:
    """Return the nodes in a file, and when it was written in seconds since 1970, if it says so.

    Parameters
    ----------
    path : pathlib.Path
        What ``scontrol show nodes`` wrote, with ``--json`` or with ``-o`` and best with ``-d``, or
        what ``sinfo --json`` of Slurm 22.05 wrote; plain or gzip.
    notes : Notes
        What is left out or changed is added.

    Raises
    ------
    InputError
        If the file cannot be read, a field has another form, or a node is there twice; with file,
        record and field.
    """
    time = None
    sources: Iterator[Line | RecordFields]
    if is_json(path):
        dump = read_dump(path, "nodes")
        time, keys = dump.time, _JSON
        sources = (RecordFields(dump, place) for place in range(len(dump.records)))
    else:
        keys = _TEXT
        sources = printed_lines(path)
    nodes: list[SlurmNode] = []
    seen: set[str] = set()
    for source in sources:
        shown = _node(source, keys, notes)
        if shown.node.name in seen:
            raise source.wrong(keys.name, "every node once")
        seen.add(shown.node.name)
        nodes.append(shown)
    if not nodes:
        raise InputError("no nodes; expected what scontrol show nodes writes", file=path)
    return nodes, time


def state_of(words: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Return the state of a node in a site, and the words that are not known.

    It is the worst that the words say; a node with unknown words counts as drained.

    Examples
    --------
    >>> state_of(("MIXED", "DRAIN")), state_of(("IDLE", "PLANNED")), state_of(("DOWN*",))
    (('drained', ()), ('up', ()), ('down', ()))
    """
    said = set()
    for word in words:
        base = word.upper().rstrip("".join(_MARKS))
        said |= {base, *(_MARKS[mark] for mark in word[len(base) :])}
    unknown = tuple(sorted(said - DOWN - DRAINED - RESERVED - UP))
    if said & DOWN:
        return "down", unknown
    if said & DRAINED or unknown:
        return "drained", unknown
    return ("reserved" if said & RESERVED else "up"), unknown


def consumed(text: str) -> dict[str, int]:
    """Return the generic resources of a list that jobs use up.

    Raises
    ------
    InputError
        If the text is not a list of generic resources.
    """
    return {} if text in UNSET else gres(_NOT_CONSUMED.sub("", text))


def _node(source: Line | RecordFields, keys: _Keys, notes: Notes) -> SlurmNode:
    name = source.text(keys.name)
    if not NODE_NAME.fullmatch(name):
        raise source.wrong(keys.name, "the name of a node")
    words = _state_words(source)
    state, unknown = state_of(words)
    if unknown:
        notes.count([name], f"taken as drained, in the unknown state {'+'.join(unknown)}")
    if state == "up" and not ASLEEP.isdisjoint(words):
        notes.count([name], "powered down; taken as up, as Slurm wakes it up for a job")
    if ":no_consume" in source.text(keys.gres):
        notes.count([name], "left out what jobs do not use up (no_consume)")
    have = source.parsed(keys.gres, consumed)
    memory = source.count(keys.memory)
    system = source.count(keys.system_memory)
    cores = source.count(keys.effective) or source.count(keys.cores)
    if not cores:
        raise source.wrong(keys.cores, "a whole number from 1")
    if not memory:
        raise source.wrong(keys.memory, "MB, a whole number from 1")
    if system > memory:
        raise source.wrong(keys.system_memory, f"at most the memory of {memory}")
    amounts = {"cores": cores, "memory": memory - system}
    used = {"cores": source.count(keys.used_cores), "memory": source.count(keys.used_memory)}
    features = _words(source, keys.active) or _words(source, keys.features)
    return SlurmNode(
        Node(
            name,
            amounts | have,
            features,
            state,
            _BY_WHOM.sub("", source.text(keys.reason)).rstrip(),
        ),
        source.count(keys.threads) or 1,
        used | (_used_gres(source, keys, name, used["cores"], notes) if have else {}),
        _words(source, keys.partitions),
        source.count(keys.weight),
    )


def _state_words(source: Line | RecordFields) -> tuple[str, ...]:
    words = _words(source, "state", "+")
    if isinstance(source, RecordFields):  # version 38 has the further words in a field of their own
        words += source.words("state_flags")
    if not words:
        raise source.wrong("state", "a state such as IDLE")
    return tuple(word.upper() for word in words)


def _used_gres(
    source: Line | RecordFields, keys: _Keys, name: str, cores: int, notes: Notes
) -> dict[str, int]:
    """Return the generic resources that jobs have or that are drained."""
    used = dict(source.parsed(keys.used_gres, consumed))
    if not source.text(keys.used_gres):  # the text has it with --details only
        counted = source.parsed(keys.used_tres, tres)
        used = {key[5:]: many for key, many in counted.items() if key.startswith("gres/")}
        if cores and not used:
            notes.count([name], "no word on GPUs and the like in use; taken as free")
    drained = {key: n for key, n in source.parsed(keys.drained_gres, consumed).items() if n}
    for key, many in drained.items():
        used[key] = used.get(key, 0) + many
    if drained:
        notes.count([name], f"{', '.join(drained)} drained")
    return used


def _words(source: Line | RecordFields, key: str, separator: str = ",") -> tuple[str, ...]:
    texts = source.words(key) if isinstance(source, RecordFields) else (source.text(key),)
    return tuple(word for text in texts for word in text.split(separator) if word)
