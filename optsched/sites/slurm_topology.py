"""Topologies of a site from Slurm: topology.conf, topology.yaml and what scontrol shows of them.

Slurm ignores nodes in them that it does not know; here they are left out too, and named in notes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from optsched.errors import InputError
from optsched.sites.captured import captured_file
from optsched.sites.host_lists import hosts_of
from optsched.sites.notes import Notes
from optsched.sites.site import some
from optsched.sites.slurm_lines import Line, configuration_lines, printed_lines, read_text
from optsched.sites.slurm_yaml import parse_yaml
from optsched.sites.topology import (
    MOST_NODES,
    Blocks,
    Places,
    Topology,
    Torus,
    Tree,
    blocks_of,
    tree_of,
)

KINDS = ("tree", "block", "ring", "torus3d", "flat")

_NAMES: Mapping[type[Topology], str] = {Tree: "tree", Blocks: "blocks", Torus: "torus"}


def read_topology_conf(path: Path, index: Mapping[str, int], notes: list[str]) -> Topology:
    """Return the topology of topology.conf: a tree of switches, or blocks.

    Parameters
    ----------
    path : pathlib.Path
        The file.
    index : mapping of str to int
        Index of each node of the site.
    notes : list of str
        What is left out is appended.

    Raises
    ------
    InputError
        If the file cannot be read, or is no such topology.
    """
    return _of_lines(path, configuration_lines(path), index, notes)


def read_shown_topology(path: Path, index: Mapping[str, int], notes: list[str]) -> Topology | None:
    """Return the topology that ``scontrol show topology`` printed; None if it has none.

    The parameters are those of `read_topology_conf`.

    Raises
    ------
    InputError
        If the file cannot be read, or is no such topology.
    """
    lines = list(printed_lines(path))
    return _of_lines(path, lines, index, notes) if lines else None


def read_topologies(path: Path, index: Mapping[str, int], notes: list[str]) -> dict[str, Topology]:
    """Return the topologies of topology.yaml or of ``scontrol show topoconf``, the default first.

    The parameters are those of `read_topology_conf`.

    Raises
    ------
    InputError
        If the file cannot be read, or describes no topologies.
    """
    strange: list[str] = []
    found: dict[str, Topology] = {}
    default = None
    try:
        document = _Part(parse_yaml(read_text(path)), "")
        for part in document.parts():
            name = part.text("topology")
            given = [kind for kind in KINDS if part.value.get(kind)]
            part.only(("topology", "cluster_default", *KINDS))
            if all(part.value.get(kind) == {} for kind in KINDS):
                continue  # it is described in topology.conf, and shown in topology.txt alone
            if name in found or len(given) != 1:
                kinds = f"exactly one of {', '.join(KINDS)}"
                expected = "another name" if name in found else kinds
                raise InputError(f"{name}; expected {expected}", field=part.place)
            if part.value.get("cluster_default") is True and default is None:
                default = name
            found[name] = _MAKERS[given[0]](part.part(given[0]), index, strange)
    except InputError as error:
        raise error.within(path) from None
    _note_strange(strange, path, notes)
    first = [default] if default else []
    return {name: found[name] for name in (*first, *found)}


def read_first_topologies(
    folder: Path, names: Iterable[str], index: Mapping[str, int], notes: Notes
) -> dict[str, Topology]:
    """Return the topologies in the first of these files that has any, the default one first.

    Parameters
    ----------
    folder : pathlib.Path
        The folder.
    names : iterable of str
        Names of files: topology.yaml, topology.conf, or what scontrol showed, topoconf.txt and
        topology.txt.
    index : mapping of str to int
        Index of each node of the site.
    notes : Notes
        What is left out is added.

    Raises
    ------
    InputError
        If the file cannot be read, or is no such topology.
    """
    found: dict[str, Topology] = {}
    texts: list[str] = []
    for path in filter(None, (captured_file(folder, name) for name in names)):
        if path.name.startswith(("topology.yaml", "topoconf.txt")):
            found = read_topologies(path, index, texts)
        else:
            reader = read_topology_conf if "conf" in path.name else read_shown_topology
            topology = reader(path, index, texts)
            found = {} if topology is None else {_NAMES[type(topology)]: topology}
        if found:
            break
    for text in texts:
        notes.add(text)
    return found


def _of_lines(
    path: Path, lines: Iterable[Line], index: Mapping[str, int], notes: list[str]
) -> Topology:
    switches, blocks = [], []
    sizes: set[int] = set()
    for line in lines:
        try:
            nodes = hosts_of(line.values.get("nodes", ""))
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
    strange: list[str] = []
    try:
        if blocks and switches:
            raise InputError("has switches and blocks; expected either")
        topology: Topology = (
            blocks_of(blocks, sorted(sizes), index, strange)
            if blocks
            else tree_of(switches, index, strange)
        )
    except InputError as error:
        raise error.within(path) from None
    _note_strange(strange, path, notes)
    return topology


def _sizes(text: str) -> set[int]:
    found = [size.strip() for size in text.split(",") if size.strip()]
    if not all(size.isdecimal() and len(size) < 10 for size in found):
        raise InputError(f"{text!r}; expected numbers of nodes", field="blocksizes")
    return set(map(int, found))


def _note_strange(strange: Sequence[str], path: Path, notes: list[str]) -> None:
    if strange:
        notes.append(f"{path.name}: left out {some(strange)}, not in the site")


class _Part:
    """Value of a YAML file, with its place for messages."""

    def __init__(self, value: Any, place: str) -> None:
        self.value = value
        self.place = place

    def wrong(self, expected: str) -> InputError:
        shown = repr(self.value)
        shown = shown if len(shown) <= 60 else f"{shown[:60]}..."
        return InputError(f"{shown}; expected {expected}", field=self.place)

    def only(self, keys: Sequence[str]) -> None:
        if not isinstance(self.value, dict):
            raise self.wrong("keys and values")
        for key in self.value:
            if key not in keys:
                raise InputError(
                    f"unknown key; expected {', '.join(keys)}", field=f"{self.place}{key}"
                )

    def part(self, key: str) -> _Part:
        if not isinstance(self.value, dict):
            raise self.wrong("keys and values")
        return _Part(self.value.get(key), f"{self.place}.{key}" if self.place else key)

    def parts(self) -> Iterator[_Part]:
        if not isinstance(self.value, list):
            raise self.wrong("a list")
        for number, value in enumerate(self.value, 1):
            part = _Part(value, f"{self.place}[{number}]")
            if not isinstance(value, dict):
                raise part.wrong("keys and values")
            yield part

    def text(self, key: str) -> str:
        part = self.part(key)
        if type(part.value) not in (str, int) or part.value == "":
            raise part.wrong("a text")
        return str(part.value)

    def hosts(self, key: str) -> list[str]:
        part = self.part(key)
        if part.value is None:
            return []
        try:
            return hosts_of(self.text(key))
        except InputError as error:
            raise InputError(*error.mistakes, field=part.place) from None

    def numbers(self, key: str, names: Sequence[str]) -> list[int]:
        part = self.part(key)
        values = [part.part(name).value for name in names]
        if not all(type(value) is int and value >= 0 for value in values):
            raise part.wrong(f"whole numbers {', '.join(names)}")
        return values


def _tree(part: _Part, index: Mapping[str, int], strange: list[str]) -> Topology:
    part.only(("switches",))
    switches = []
    for each in part.part("switches").parts():
        each.only(("switch", "nodes", "children"))
        switches.append((each.text("switch"), each.hosts("nodes"), each.hosts("children")))
    return tree_of(switches, index, strange)


def _block(part: _Part, index: Mapping[str, int], strange: list[str]) -> Topology:
    part.only(("blocks", "block_sizes"))
    blocks = []
    for each in part.part("blocks").parts():
        each.only(("block", "nodes"))
        blocks.append((each.text("block"), each.hosts("nodes")))
    sizes = part.part("block_sizes")
    given = [] if sizes.value is None else sizes.value
    if not isinstance(given, list) or not all(type(size) is int for size in given):
        raise sizes.wrong("a list of whole numbers")
    return blocks_of(blocks, given, index, strange)


def _ring(part: _Part, index: Mapping[str, int], strange: list[str]) -> Topology:
    part.only(("rings",))
    ring = _only_one(part.part("rings"), "ring")
    ring.only(("ring", "nodes"))
    names = ring.hosts("nodes")
    return Torus((len(names),), _places(names, index, strange))


def _torus(part: _Part, index: Mapping[str, int], strange: list[str]) -> Topology:
    part.only(("toruses",))
    torus = _only_one(part.part("toruses"), "torus")
    torus.only(("name", "dims", "nodes", "regions", "placements"))
    dims = torus.numbers("dims", "xyz")
    if math.prod(dims) > MOST_NODES:
        raise torus.part("dims").wrong(f"at most {MOST_NODES:,} positions")
    places = _job_places(torus)
    if not torus.value.get("regions"):
        return Torus(tuple(dims), _places(torus.hosts("nodes"), index, strange), places)
    nodes = np.full(dims[::-1], -1)
    for region in torus.part("regions").parts():
        region.only(("anchor", "dims", "nodes"))
        names = region.hosts("nodes")
        extent = region.numbers("dims", "xyz")
        anchor = region.numbers("anchor", "xyz")
        box = tuple(slice(low, low + size) for low, size in zip(anchor[::-1], extent[::-1]))
        fits = all(low + size <= most for low, size, most in zip(anchor, extent, dims))
        if not fits or len(names) != np.prod(extent) or (nodes[box] >= 0).any():
            raise region.wrong("a free box of the torus with one node at each position")
        nodes[box] = _places(names, index, strange).reshape(extent[::-1])
    return Torus(tuple(dims), nodes.ravel(), places)


def _job_places(torus: _Part) -> tuple[Places, ...]:
    """Return the boxes that jobs may have, which are next to each other if nothing else is said."""
    if not torus.value.get("placements"):
        return ()
    found = []
    for part in torus.part("placements").parts():
        part.only(("dims", "anchor_seed", "anchor_spacing"))
        dims = part.numbers("dims", "xyz")
        seed = part.numbers("anchor_seed", "xyz") if part.value.get("anchor_seed") else [0, 0, 0]
        spacing = part.numbers("anchor_spacing", "xyz") if part.value.get("anchor_spacing") else []
        spacing = spacing if any(spacing) else dims
        found.append(Places(tuple(dims), tuple(seed), tuple(spacing)))
    return tuple(found)


def _flat(part: _Part, index: Mapping[str, int], strange: list[str]) -> Topology:
    return tree_of([], index, strange)


def _only_one(part: _Part, kind: str) -> _Part:
    found = list(part.parts())
    if len(found) != 1:
        raise InputError(f"{len(found)} of them; expected one {kind}", field=part.place)
    return found[0]


def _places(
    names: Sequence[str], index: Mapping[str, int], strange: list[str]
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the index of each node, -1 for one that the site does not have."""
    strange += [name for name in names if name not in index]
    return np.array([index.get(name, -1) for name in names], dtype=np.int64)


_Maker = Callable[[_Part, Mapping[str, int], list[str]], Topology]
_MAKERS: Mapping[str, _Maker] = {
    "tree": _tree,
    "block": _block,
    "ring": _ring,
    "torus3d": _torus,
    "flat": _flat,
}
