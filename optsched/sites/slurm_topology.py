"""Topologies of a site from Slurm: topology.conf, topology.yaml and what scontrol shows of them.

Slurm ignores nodes in them that it does not know; here they are left out too, and named in notes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count, takewhile
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np

from optsched.errors import InputError
from optsched.fields import REQUIRED, Kind, Parsed, Table
from optsched.sites.parts import MOST_NODES, Places, Topology, Torus, blocks_of, places_of, tree_of
from optsched.sites.site import some
from optsched.sites.slurm_files import Notes, configuration_lines, only_lines, read_text
from optsched.sites.slurm_notation import hosts_of

DEEPEST, MOST_VALUES = 50, 100_000
"""Most values of a YAML document within each other, and most in all."""

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}


def read_first_topologies(
    paths: Iterable[Path], index: Mapping[str, int], notes: Notes
) -> dict[str, Topology]:
    """Return the topologies in the first of these files that has any, the default one first."""
    for path in paths:
        if found := read_topologies(path, index, notes):
            return found
    return {}


def read_topologies(path: Path, index: Mapping[str, int], notes: Notes) -> dict[str, Topology]:
    """Return the topologies of a file, the default one first; none if Slurm has shown none.

    `path`: topology.yaml, topology.conf, or what ``scontrol show topoconf`` wrote as topoconf.txt
    and ``scontrol show topology`` as topology.txt; `index`: index of each node of the site.
    """
    strange: list[str] = []
    of_file = _of_yaml if path.name.startswith(("topology.yaml", "topoconf.txt")) else _of_lines
    found = of_file(path, index, strange)
    if strange:
        notes.add(f"{path.name}: left out {some(strange)}, not in the site")
    return found


def _of_yaml(path: Path, index: Mapping[str, int], strange: list[str]) -> dict[str, Topology]:
    found: dict[str, Topology] = {}
    default = None
    try:
        document = parse_yaml(read_text(path))
        known = ("topology", "cluster_default", *_MAKERS)
        for part in _Part({"": document}).rows("", *known):
            name = part.read("topology", _TEXT)
            given = [kind for kind in _MAKERS if part.table.get(kind)]
            if all(part.table.get(kind) == {} for kind in _MAKERS):
                continue  # it is described in topology.conf, and shown in topology.txt alone
            if name in found or len(given) != 1:
                kinds = f"exactly one of {', '.join(_MAKERS)}"
                expected = "another name" if name in found else kinds
                raise part.refused("topology", f"{name}; expected {expected}")
            if part.table.get("cluster_default") is True and default is None:
                default = name
            inner = _Part(part.table[given[0]], f"{part.place}{given[0]}.")
            found[name] = _MAKERS[given[0]](inner, index, strange)
    except InputError as error:
        raise error.within(path) from None
    first = [default] if default else []
    return {name: found[name] for name in (*first, *found)}


def _of_lines(path: Path, index: Mapping[str, int], strange: list[str]) -> dict[str, Topology]:
    """Return the tree of switches, or the blocks, of lines; nothing if nothing is shown."""
    switches, blocks = [], []
    sizes: set[int] = set()
    is_conf = "conf" in path.name
    command = "scontrol show topology"
    lines = (
        [*configuration_lines(path)]
        if is_conf
        else only_lines(read_text(path), path, "SwitchName", command)
    )
    for line in lines:
        try:
            nodes = hosts_of(line.values.get("nodes", ""))
            if not (is_conf or nodes or _is_whole(line.values)):
                raise InputError("is cut off; expected its nodes or switches")
            if line.first == "switchname":
                lower = hosts_of(line.values.get("switches", ""))
                # scontrol shows all nodes below a switch
                switches.append((line.values["switchname"], [] if lower else nodes, lower))
            elif line.first == "blockname":
                blocks.append((line.values["blockname"], nodes))
            elif line.first not in ("blocksizes", "aggregatedblock"):
                expected = "expected SwitchName, BlockName or BlockSizes"
                raise InputError(f"unknown topology; {expected}", field=line.first)
            sizes |= _sizes(line.values.get("blocksizes", line.values.get("blocksize", "")))
        except InputError as error:
            raise line.error(error.field or line.first, error.mistakes[0]) from None
    try:
        if blocks and switches:
            raise InputError("has switches and blocks; expected either")
        if blocks:
            return {"blocks": blocks_of(blocks, sorted(sizes), index, strange)}
        return {"tree": tree_of(switches, index, strange)} if lines or is_conf else {}
    except InputError as error:
        raise error.within(path) from None


def _is_whole(values: Mapping[str, str]) -> bool:
    """Return whether a line without nodes is whole: a leaf switch or a block may have none yet."""
    is_leaf = values.get("level") == "0" and "linkspeed" in values
    return is_leaf or not {"switches", "blocksize", "blocksizes"}.isdisjoint(values)


def _sizes(text: str) -> set[int]:
    found = [size.strip() for size in text.split(",") if size.strip()]
    if not all(size.isdecimal() and len(size) < 10 for size in found):
        raise InputError(f"{text!r}; expected numbers of nodes", field="blocksizes")
    return set(map(int, found))


def _objects(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise ValueError
    return value


def _text(value: Any) -> str:
    if type(value) not in (str, int) or value == "":
        raise ValueError
    return str(value)


def _xyz(value: Any) -> list[int]:
    numbers: list[Any] = [value.get(axis) for axis in "xyz"] if isinstance(value, dict) else [None]
    if not all(type(number) is int and number >= 0 for number in numbers):
        raise ValueError
    return numbers


def _sizes_of_blocks(value: Any) -> list[int]:
    if not isinstance(value, list | NoneType) or not all(type(size) is int for size in value or ()):
        raise ValueError
    return value or []


_OBJECTS = Parsed(_objects, "a list of keys and values")
_TEXT = Parsed(_text, "a text")
_HOSTS = Parsed(lambda value: [] if value is None else hosts_of(_text(value)), "a host list")
_XYZ = Parsed(_xyz, "whole numbers x, y, z")
_BLOCK_SIZES = Parsed(_sizes_of_blocks, "a list of whole numbers")


class _Part(Table):
    """Object of a YAML file, whose first mistake ends the reading."""

    def read(self, key: str, kind: Kind, default: Any = REQUIRED, instead: Any = None) -> Any:
        value = super().read(key, kind, default, instead)
        self.done()
        return value

    def known(self, keys: Iterable[str]) -> None:
        super().known(keys)
        self.done()

    def rows(self, key: str, *keys: str) -> list[_Part]:
        """Return the objects in a list, which may have no other keys."""
        found = enumerate(self.read(key, _OBJECTS), 1)
        rows = [_Part(one, f"{self.place}{key}[{number}].") for number, one in found]
        for row in rows:
            row.known(keys)
        return rows

    def row(self, key: str, *keys: str) -> _Part:
        """Return the only object in the list of the only key."""
        self.known([key])
        found = self.rows(key, *keys)
        if len(found) != 1:
            raise self.refused(key, f"{len(found)} of them; expected one")
        return found[0]

    def hosts(self) -> list[str]:
        return list(self.read("nodes", _HOSTS, []))

    def refused(self, key: str, mistake: str) -> InputError:
        return InputError(mistake, field=f"{self.place}{key}")


def _tree(part: _Part, index: Mapping[str, int], strange: list[str]) -> Topology:
    part.known(["switches"])
    switches = [
        (each.read("switch", _TEXT), each.hosts(), each.read("children", _HOSTS, []))
        for each in part.rows("switches", "switch", "nodes", "children")
    ]
    return tree_of(switches, index, strange)


def _block(part: _Part, index: Mapping[str, int], strange: list[str]) -> Topology:
    part.known(["blocks", "block_sizes"])
    rows = part.rows("blocks", "block", "nodes")
    blocks = [(each.read("block", _TEXT), each.hosts()) for each in rows]
    return blocks_of(blocks, part.read("block_sizes", _BLOCK_SIZES, []), index, strange)


def _ring(part: _Part, index: Mapping[str, int], strange: list[str]) -> Topology:
    names = part.row("rings", "ring", "nodes").hosts()
    return Torus((len(names),), places_of(names, index, strange))


def _torus(part: _Part, index: Mapping[str, int], strange: list[str]) -> Topology:
    torus = part.row("toruses", "name", "dims", "nodes", "regions", "placements")
    dims = torus.read("dims", _XYZ)
    if math.prod(dims) > MOST_NODES:
        raise torus.refused("dims", f"{dims}; expected at most {MOST_NODES:,} positions")
    places = _job_places(torus)
    if not torus.table.get("regions"):
        return Torus(tuple(dims), places_of(torus.hosts(), index, strange), places)
    nodes = np.full(dims[::-1], -1)
    for region in torus.rows("regions", "anchor", "dims", "nodes"):
        names = region.hosts()
        extent, anchor = (region.read(key, _XYZ) for key in ("dims", "anchor"))
        box = tuple(slice(low, low + size) for low, size in zip(anchor[::-1], extent[::-1]))
        fits = all(low + size <= most for low, size, most in zip(anchor, extent, dims))
        if not fits or len(names) != np.prod(extent) or (nodes[box] >= 0).any():
            expected = "expected a free box of the torus with one node at each position"
            raise region.refused("dims", f"{extent} at {anchor}, {len(names)} nodes; {expected}")
        nodes[box] = places_of(names, index, strange).reshape(extent[::-1])
    return Torus(tuple(dims), nodes.ravel(), places)


def _job_places(torus: _Part) -> tuple[Places, ...]:
    """Return the boxes that jobs may have, which are next to each other if nothing else is said."""
    if not torus.table.get("placements"):
        return ()
    found = []
    for part in torus.rows("placements", "dims", "anchor_seed", "anchor_spacing"):
        dims = part.read("dims", _XYZ)
        seed = part.read("anchor_seed", _XYZ) if part.table.get("anchor_seed") else [0, 0, 0]
        spacing = part.read("anchor_spacing", _XYZ) if part.table.get("anchor_spacing") else []
        spacing = spacing if any(spacing) else dims
        found.append(Places(tuple(dims), tuple(seed), tuple(spacing)))
    return tuple(found)


_MAKERS: Mapping[str, Callable[[_Part, Mapping[str, int], list[str]], Topology]] = {
    "tree": _tree,
    "block": _block,
    "ring": _ring,
    "torus3d": _torus,
    "flat": lambda part, index, strange: tree_of([], index, strange),
}


def parse_yaml(text: str) -> Any:
    r"""Return the value of a YAML document: dicts, lists, texts, whole numbers, booleans, None.

    >>> parse_yaml("- topology: fabric\n  tree:\n    - {switch: s1, nodes: 'c[1-4]'}\n- 3")
    [{'topology': 'fabric', 'tree': [{'switch': 's1', 'nodes': 'c[1-4]'}]}, 3]
    """
    import yaml

    events = yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    try:
        _, begin = next(events), next(events)
        is_empty = type(begin).__name__ == "StreamEndEvent"
        value = None if is_empty else _value(next(events), events, count(1), 0)
        for event in events:
            if type(event).__name__ == "DocumentStartEvent":
                raise _refused(event, "expected one document")
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "not text"
        raise InputError(f"{problem}; expected YAML", line=mark and mark.line + 1) from None
    return value


def _refused(event: Any, expected: str) -> InputError:
    return InputError(expected, line=event.start_mark.line + 1)


def _value(event: Any, events: Iterator[Any], numbers: Iterator[int], depth: int) -> Any:
    """Return the value that begins with an event, within limits that attacks do not pass."""
    if next(numbers) > MOST_VALUES:
        raise _refused(event, f"expected at most {MOST_VALUES:,} values")
    if depth > DEEPEST:
        raise _refused(event, f"expected at most {DEEPEST} values within each other")
    if event.anchor is not None or event.tag is not None:
        raise _refused(event, "expected a value without anchors and tags")
    kind = type(event).__name__
    if kind == "ScalarEvent":
        return _scalar(event.value) if event.implicit[0] else event.value
    end = kind.replace("Start", "End")
    inside = takewhile(lambda one: type(one).__name__ != end, events)
    if kind == "SequenceStartEvent":
        return [_value(one, events, numbers, depth + 1) for one in inside]
    values: dict[str, Any] = {}
    for key in inside:
        if type(key).__name__ != "ScalarEvent" or key.anchor is not None or key.value in values:
            raise _refused(key, "expected each key once, a text")
        values[key.value] = _value(next(events), events, numbers, depth + 1)
    return values


def _scalar(text: str) -> Any:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    return int(text) if _NUMBER.fullmatch(text) else text
