"""Site files: a site as TOML that a person writes, docs/formats/site.md."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time
from itertools import groupby
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import numpy as np

from optsched.binary_files import write_bytes
from optsched.errors import InputError, UnknownNameError
from optsched.numbers import LARGEST, MOST_CAPACITY
from optsched.sites.host_lists import host_list_in_order, hosts_of
from optsched.sites.reservations import Reservation, overlapping
from optsched.sites.site import (
    STATES,
    Node,
    Partition,
    Site,
    described,
    some,
    typed,
)
from optsched.sites.slurm_amounts import megabytes, seconds, time_text
from optsched.sites.topology import Blocks, Places, Topology, Torus, Tree, blocks_of, tree_of
from optsched.text_files import read_toml
from optsched.toml_table import TomlTable

KEYS = (
    *("kind", "name", "nodes", "partitions", "unpartitioned", "licences", "topology"),
    "reservations",
)
NODE_KEYS = ("names", "cores", "memory", "gpus", "resources", "features", "state", "reason")
PARTITION_KEYS = (
    *("name", "nodes", "default", "max_time", "max_nodes", "exclusive", "exclusive_user", "up"),
    *("priority_tier", "priority_factor", "memory_per_core", "topology"),
)
RESERVATION_KEYS = ("name", "nodes", "start", "end", "overlap")
KINDS = {
    "tree": ("switches",),
    "blocks": ("sizes", "blocks"),
    "torus": ("dims", "places", "nodes"),
    "flat": (),
}
"""Kinds of topologies, and the keys of each beside kind, name and unconnected."""

LAST_DATE = 253_402_300_799
"""The last second of the year 9999, the last one that a date of TOML can state."""

_T = TypeVar("_T")
_HOSTS = 'a host list such as "c[01-40,44]"'
_AMOUNT = f"a whole number from 0 to {MOST_CAPACITY:,}"
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_REQUIRED: Any = object()


class _Table(TomlTable):
    """Table of the file; all tables share the list of mistakes."""

    def read(
        self, key: str, convert: Callable[[Any], _T], expected: str, default: Any = _REQUIRED
    ) -> _T:
        """Return the converted value of a key, or the default; note a mistake."""
        if key not in self.table:
            if default is _REQUIRED:
                self.note(key, f"missing; expected {expected}")
            return default  # type: ignore[no-any-return]
        value = self.table[key]
        try:
            return convert(value)
        except InputError as error:
            self.note(key, error.mistakes[0])
        except (TypeError, ValueError):
            self.note(key, f"{_shown(value)}; expected {expected}")
        return default  # type: ignore[no-any-return]

    def hosts(self, key: str, default: Any = _REQUIRED) -> list[str]:
        found = self.read(key, _hosts, _HOSTS, default)
        return [] if found is _REQUIRED else found

    def members(self, index: Mapping[str, int]) -> list[str]:
        """Return the nodes under ``nodes``: a host list, or ``ALL``; note unknown ones."""
        if self.table.get("nodes") == "ALL":
            return [*index]
        names = self.hosts("nodes")
        _known_nodes(self, "nodes", names, index)
        return names

    def tables(self, key: str) -> list[_Table]:
        """Return the tables under [[key]]."""
        found = self.read(key, _tables, f"tables, each under the heading [[{key}]]", [])
        return [
            _Table(table, f"{self.place}{key}[{number}].", self.mistakes)
            for number, table in enumerate(found, 1)
        ]


def read_site_file(path: str | Path) -> Site:
    """Return the site that a TOML file describes.

    Raises
    ------
    InputError
        If the file cannot be read or is not such a description; with all mistakes found.
    """
    path = Path(path)
    try:
        return site_of_table(read_toml(path), name=path.stem)
    except InputError as error:
        raise error.within(path) from None


def site_of_table(values: Mapping[str, Any], name: str = "site") -> Site:
    """Return the site that the tables of a TOML file describe.

    Parameters
    ----------
    values : mapping
        The tables.
    name : str
        Name of the site unless the tables have one.

    Raises
    ------
    InputError
        If there are mistakes, with the field of each.
    """
    table = _Table(values)
    table.known(KEYS)
    table.read("kind", _one_of("site"), '"site"', "")
    name = table.read("name", _text, "a name", name)
    nodes = _nodes(table)
    table.done()
    index = {node.name: place for place, node in enumerate(nodes)}
    topologies = _topologies(table, index)
    partitions = _partitions(table, index, topologies)
    reservations = tuple(_reservations(table, index))
    licences = table.read("licences", _amounts, f"{_AMOUNT} for each name", {})
    table.done()
    resources, capacity = described(nodes)
    site = Site(
        name,
        tuple(index),
        resources,
        capacity,
        tuple(node.features for node in nodes),
        tuple(node.state for node in nodes),
        tuple(node.reason for node in nodes),
        tuple(partitions),
        licences,
        topologies,
        reservations,
    )
    _check_members(table, site)
    table.done()
    return site


def write_site_file(site: Site, path: str | Path) -> None:
    """Write a site as a TOML file, which `read_site_file` reads.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    write_bytes(path, site_text(site).encode("utf-8", "replace"))


def site_text(site: Site) -> str:
    """Return the text of the TOML file of a site."""
    return "".join(f"{line}\n" for line in _lines(site))


def _nodes(table: _Table) -> list[Node]:
    nodes: list[Node] = []
    seen: dict[str, str] = {}
    groups = table.tables("nodes")
    if not groups and not table.mistakes:
        table.note("nodes", "expected at least one table, each under the heading [[nodes]]")
    for group in groups:
        group.known(NODE_KEYS)
        names = group.hosts("names")
        amounts = {
            "cores": group.read("cores", _amount, _AMOUNT),
            "memory": group.read("memory", _memory, 'MB, or a text such as "64G"'),
        } | _resources(group)
        node = Node(
            "",
            amounts,
            group.read("features", _texts, "a list of texts", ()),
            group.read("state", _one_of(*STATES), " or ".join(STATES), "up"),
            group.read("reason", _any_text, "a text", ""),
        )
        for name in names:
            if name in seen:
                group.note("names", f"{name}: is in {seen[name]} too; expected once")
                break
            seen[name] = group.place + "names"
            nodes.append(node._replace(name=name))
    return nodes


def _resources(group: _Table) -> dict[str, int]:
    """Return the further resources of the nodes of a group."""
    found = group.read("resources", _amounts, f"{_AMOUNT} for each name", {})
    for name in {"cores", "memory"} & set(found):
        group.note(f"resources.{name}", f"expected the key {name} of the table itself")
    gpus = group.read("gpus", _gpus, "a number, or one for each type", {})
    for name in set(gpus) & set(found):
        group.note(f"resources.{name}", "is in gpus too; expected it once")
    found = found | gpus
    for base, types in typed(names := tuple(found)).items():
        total = sum(found[names[place]] for place in types)
        if found.setdefault(base, total) < total:
            message = f"{found[base]}; expected at least {total}, those with a type"
            group.note(f"resources.{base}", message)
    return found


def _partitions(
    table: _Table, index: Mapping[str, int], topologies: Mapping[str, Topology]
) -> list[Partition]:
    found: list[Partition] = []
    for part in table.tables("partitions"):
        part.known(PARTITION_KEYS)
        before = len(table.mistakes)
        names = part.members(index)
        whole = "a whole number from 0"
        fields: dict[str, Any] = {
            "default": part.read("default", _flag, "true or false", False),
            "max_time": part.read(
                "max_time", _time, 'a time such as "2-00:00:00" or "UNLIMITED"', math.inf
            ),
            "max_nodes": part.read("max_nodes", _amount, whole, math.inf),
            "exclusive": part.read("exclusive", _flag, "true or false", False),
            "exclusive_user": part.read("exclusive_user", _flag, "true or false", False),
            "up": part.read("up", _flag, "true or false", True),
            "priority_tier": part.read("priority_tier", _amount, whole, 1),
            "priority_factor": part.read("priority_factor", _amount, whole, 1),
            "memory_per_core": part.read("memory_per_core", _memory, 'MB, or "4G"', 0),
            "topology": part.read("topology", _one_of(*topologies), "a topology", ""),
        }
        name = part.read("name", _text, "a name")
        if len(table.mistakes) > before:
            continue
        places = np.array(sorted({index[node] for node in names}), dtype=np.int64)
        try:
            found.append(Partition(name, places, **fields))
        except InputError as error:
            part.note(error.field or "name", error.mistakes[0])
    _known_nodes(table, "unpartitioned", table.hosts("unpartitioned", []), index)
    return found


def _reservations(table: _Table, index: Mapping[str, int]) -> list[Reservation]:
    found: dict[str, Reservation] = {}
    expected = "a date and time such as 2026-12-24T08:00:00Z, or seconds since 1970"
    for part in table.tables("reservations"):
        part.known(RESERVATION_KEYS)
        before = len(table.mistakes)
        names = part.members(index)
        start = part.read("start", _instant, expected, -math.inf)
        end = part.read("end", _instant, expected, math.inf)
        overlap = part.read("overlap", _flag, "true or false", False)
        name = part.read("name", _text, "a name")
        if len(table.mistakes) > before:
            continue
        try:
            reservation = Reservation(name, tuple(names), start, end)
        except InputError as error:
            part.note(error.field or "name", error.mistakes[0])
            continue
        if found.setdefault(name, reservation) is not reservation:
            part.note("name", f"{name!r}: is there twice; expected different names")
        for other, shared in () if overlap else overlapping(reservation, found.values()):
            message = f"{name!r} and {other.name!r} both have {some(shared)} at the same time"
            part.note("nodes", f"{message}; expected other nodes or times, or overlap = true")
            break
    return [*found.values()]


def _check_members(table: _Table, site: Site) -> None:
    """Note nodes in no partition or not in the topology of their jobs, unless the file says so."""
    alone = set(_without_partition(site)) - set(table.hosts("unpartitioned", []))
    if alone:
        expected = "expected them in one, or under unpartitioned"
        table.note("partitions", f"{some(sorted(alone))} in no partition; {expected}")
    for part, name in zip(_topology_tables(table), site.topologies):
        alone = set(_unconnected(site, name)) - set(part.hosts("unconnected", []))
        if alone:
            kind = part.table["kind"]
            where = {"tree": "on no switch", "blocks": "in no block", "torus": "at no position"}
            message = f"{some(sorted(alone))} {where[kind]}; expected it, or them under unconnected"
            part.note(KINDS[kind][-1], message)


def _without_partition(site: Site) -> list[str]:
    """Return the nodes in no partition; none if there are no partitions."""
    placed = np.full(len(site.nodes), not site.partitions)
    for partition in site.partitions:
        placed[partition.nodes] = True
    return [site.nodes[place] for place in np.flatnonzero(~placed)]


def _unconnected(site: Site, name: str) -> list[str]:
    """Return the nodes that are not in a topology, of the partitions that it is for."""
    topology = site.topologies[name]
    default = name == next(iter(site.topologies))
    meant = np.full(len(site.nodes), default and not site.partitions)
    for partition in site.partitions:
        if partition.topology == name or (default and not partition.topology):
            meant[partition.nodes] = True
    if isinstance(topology, Torus):
        meant[topology.nodes[topology.nodes >= 0]] = False
    elif not (isinstance(topology, Tree) and not topology.switches):
        meant &= topology.group < 0
    else:
        meant[:] = False
    return [site.nodes[place] for place in np.flatnonzero(meant)]


def _topology_tables(table: _Table) -> list[_Table]:
    """Return the table [topology], or the tables [[topology]]."""
    given = table.table.get("topology")
    if isinstance(given, Mapping):
        return [_Table(given, "topology.", table.mistakes)]
    return table.tables("topology")


def _topologies(table: _Table, index: Mapping[str, int]) -> dict[str, Topology]:
    found: dict[str, Topology] = {}
    for part in _topology_tables(table):
        kind = part.read("kind", _one_of(*KINDS), " or ".join(KINDS))
        if kind not in KINDS:
            continue
        part.known(("kind", "name", "unconnected", *KINDS[kind]))
        name = part.read("name", _text, "a name", kind)
        _known_nodes(part, "unconnected", part.hosts("unconnected", []), index)
        strange: list[str] = []
        before = len(table.mistakes)
        try:
            topology = _MAKERS[kind](part, index, strange)
        except InputError as error:
            part.note(error.field or "kind", error.mistakes[0])
            continue
        if strange:
            part.note(KINDS[kind][-1], str(UnknownNameError("node", strange[0], index)))
        elif name in found:
            part.note("name", f"{name!r}: is there twice; expected different names")
        elif len(table.mistakes) == before:
            found[name] = topology
    return found


def _tree(part: _Table, index: Mapping[str, int], strange: list[str]) -> Topology:
    expected = "a table of switches, each with a host list of nodes or a list of switches"
    given = part.read("switches", _mapping, expected, {})
    if "switches" not in part.table:
        part.note("switches", f"missing; expected {expected}")
    inner = _Table(given, f"{part.place}switches.", part.mistakes)
    switches = []
    for name, value in given.items():
        lower = inner.read(name, _texts, "a list of switches") if isinstance(value, list) else ()
        nodes = [] if isinstance(value, list) else inner.hosts(name)
        switches.append((name, nodes, [] if lower is _REQUIRED else lower))
    return tree_of(switches, index, strange)


def _blocks(part: _Table, index: Mapping[str, int], strange: list[str]) -> Topology:
    expected = "a table of blocks, each with a host list of nodes"
    given = part.read("blocks", _mapping, expected, {})
    if "blocks" not in part.table:
        part.note("blocks", f"missing; expected {expected}")
    inner = _Table(given, f"{part.place}blocks.", part.mistakes)
    sizes = part.read("sizes", _list, "a list of whole numbers", [])
    return blocks_of([(name, inner.hosts(name)) for name in given], sizes, index, strange)


def _torus(part: _Table, index: Mapping[str, int], strange: list[str]) -> Topology:
    dims = part.read("dims", _list, "a list of whole numbers, such as [4, 3, 3]")
    if isinstance(part.table.get("nodes"), list):
        names = part.read("nodes", _positions, f"{_HOSTS}, or a list of nodes, empty for none")
    else:
        names = tuple(part.hosts("nodes"))
    if dims is _REQUIRED or names is _REQUIRED:
        return Torus((1,), np.array([-1]))
    strange += [name for name in names if name and name not in index]
    at = [index.get(name, -1) for name in names]
    found = []
    for each in part.tables("places"):
        size = each.read("dims", _list, "a list of whole numbers, such as [2, 1, 1]")
        if size is not _REQUIRED:
            seed = each.read("seed", _list, "a list of whole numbers", [0] * len(dims))
            spacing = each.read("spacing", _list, "a list of whole numbers", size)
            found.append(Places(tuple(size), tuple(seed), tuple(spacing)))
    return Torus(tuple(dims), np.array(at, dtype=np.int64), tuple(found))


def _flat(part: _Table, index: Mapping[str, int], strange: list[str]) -> Topology:
    return tree_of([], index, strange)


_MAKERS: Mapping[str, Callable[[_Table, Mapping[str, int], list[str]], Topology]] = {
    "tree": _tree,
    "blocks": _blocks,
    "torus": _torus,
    "flat": _flat,
}


def _known_nodes(part: _Table, key: str, names: Sequence[str], index: Mapping[str, int]) -> None:
    for name in names:
        if name not in index:
            part.note(key, str(UnknownNameError("node", name, index)))
            break


# what a value must be: each returns it, or raises TypeError or ValueError


def _refuse() -> NoReturn:
    raise ValueError


def _any_text(value: Any) -> str:
    return value if isinstance(value, str) else _refuse()


def _text(value: Any) -> str:
    return _any_text(value) or _refuse()


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(map(_text, _list(value)))


def _positions(value: Any) -> tuple[str, ...]:
    return tuple(map(_any_text, _list(value)))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else _refuse()


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else _refuse()


def _tables(value: Any) -> list[Mapping[str, Any]]:
    return list(map(_mapping, _list(value)))


def _flag(value: Any) -> bool:
    return value if isinstance(value, bool) else _refuse()


def _amount(value: Any) -> int:
    return value if type(value) is int and 0 <= value <= MOST_CAPACITY else _refuse()


def _memory(value: Any) -> int:
    return _amount(megabytes(value) if isinstance(value, str) else value)


def _time(value: Any) -> float:
    return seconds(_text(value))


def _instant(value: Any) -> float:
    """Return seconds since 1970; a time without a zone is in UTC."""
    if isinstance(value, str) and ":" in value:
        value = datetime.fromisoformat(value)
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    return float(value) if type(value) in (int, float) and 0 <= value <= LARGEST else _refuse()


def _amounts(value: Any) -> dict[str, int]:
    return {_text(name): _amount(amount) for name, amount in _mapping(value).items()}


def _gpus(value: Any) -> dict[str, int]:
    if not isinstance(value, Mapping):
        return {"gpu": _amount(value)}
    return {f"gpu:{_text(name)}": _amount(amount) for name, amount in value.items()}


def _hosts(value: Any) -> list[str]:
    return hosts_of(_any_text(value))


def _one_of(*names: str) -> Callable[[Any], str]:
    def convert(value: Any) -> str:
        if _any_text(value) not in names:
            raise UnknownNameError("name", value, names)
        return str(value)

    return convert


def _shown(value: Any) -> str:
    text = value.isoformat() if isinstance(value, date | time) else repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


# writing


def _lines(site: Site) -> Iterator[str]:
    yield f"name = {_quoted(site.name)}"
    if alone := _without_partition(site):
        yield f"unpartitioned = {_hosts_text(alone)}"
    yield from _node_lines(site)
    for partition in site.partitions:
        yield from _partition_lines(site, partition)
    if site.licences:
        yield from ("", "[licences]")
        yield from (f"{_key(name)} = {total}" for name, total in site.licences.items())
    for name in site.topologies:
        yield from ("", "[topology]" if len(site.topologies) == 1 else "[[topology]]")
        yield from _topology_lines(site, name)
    for place, reservation in enumerate(site.reservations):
        yield from ("", "[[reservations]]", f"name = {_quoted(reservation.name)}")
        yield f"nodes = {_hosts_text(reservation.nodes)}"
        for key, at in (("start", reservation.start), ("end", reservation.end)):
            if math.isfinite(at):
                yield f"{key} = {_instant_text(at)}"
        if any(overlapping(reservation, site.reservations[:place])):
            yield "overlap = true"


def _node_lines(site: Site) -> Iterator[str]:
    rows = site.capacity.tolist()
    absent = [not any(column) for column in zip(*rows)]
    alike = zip(rows, site.features, site.states, site.reasons)
    for number, (alike_here, group) in enumerate(groupby(zip(alike, site.nodes), lambda p: p[0])):
        row, features, state, reason = alike_here
        yield from ("", "[[nodes]]")
        yield f"names = {_quoted(host_list_in_order(node for _, node in group))}"
        yield f"cores = {row[0]}"
        yield f"memory = {row[1]}"
        amounts = {
            name: amount
            for name, amount, nowhere in zip(site.resources[2:], row[2:], absent[2:])
            if amount or (nowhere and number == 0)
        }
        yield from _resource_lines(amounts)
        if features:
            yield f"features = [{', '.join(map(_quoted, features))}]"
        if state != "up":
            yield f"state = {_quoted(state)}"
        if reason:
            yield f"reason = {_quoted(reason)}"


def _resource_lines(amounts: dict[str, int]) -> Iterator[str]:
    """Yield GPUs under their own key where that says all, and the others under resources."""
    types = {name[4:]: amounts[name] for name in amounts if name.startswith("gpu:")}
    if "gpu" in amounts and (not types or sum(types.values()) == amounts["gpu"]):
        gpus = _table(types) if types else str(amounts["gpu"])
        yield f"gpus = {gpus}"
        amounts = {name: many for name, many in amounts.items() if not _is_gpu(name)}
    if amounts:
        yield f"resources = {_table(amounts)}"


def _is_gpu(name: str) -> bool:
    return name.partition(":")[0] == "gpu"


def _partition_lines(site: Site, partition: Partition) -> Iterator[str]:
    yield from ("", "[[partitions]]")
    yield f"name = {_quoted(partition.name)}"
    everything = len(partition.nodes) == len(site.nodes)
    names = [site.nodes[place] for place in partition.nodes.tolist()]
    yield f"nodes = {_quoted('ALL') if everything else _hosts_text(names)}"
    if partition.default:
        yield "default = true"
    if partition.max_time < math.inf:
        yield f"max_time = {_quoted(time_text(partition.max_time))}"
    if partition.max_nodes < math.inf:
        yield f"max_nodes = {int(partition.max_nodes)}"
    if partition.exclusive:
        yield "exclusive = true"
    if partition.exclusive_user:
        yield "exclusive_user = true"
    if not partition.up:
        yield "up = false"
    for name, usual in (("priority_tier", 1), ("priority_factor", 1), ("memory_per_core", 0)):
        if (value := getattr(partition, name)) != usual:
            yield f"{name} = {value}"
    if partition.topology:
        yield f"topology = {_quoted(partition.topology)}"


def _topology_lines(site: Site, name: str) -> Iterator[str]:
    topology = site.topologies[name]
    kind = {Tree: "tree", Blocks: "blocks", Torus: "torus"}[type(topology)]
    if isinstance(topology, Tree) and not topology.switches:
        kind = "flat"
    yield f"kind = {_quoted(kind)}"
    if name != kind:
        yield f"name = {_quoted(name)}"
    if alone := _unconnected(site, name):
        yield f"unconnected = {_hosts_text(alone)}"
    if isinstance(topology, Torus):
        yield f"dims = [{', '.join(map(str, topology.dims))}]"
        names = [site.nodes[place] if place >= 0 else "" for place in topology.nodes.tolist()]
        listed = f"[{', '.join(map(_quoted, names))}]"
        yield f"nodes = {_hosts_text(names) if all(names) else listed}"
        for places in topology.places:
            yield "[[topology.places]]"
            for key, numbers in zip(places._fields, places):
                yield f"{key} = [{', '.join(map(str, numbers))}]"
        return
    members: dict[int, list[str]] = {}
    for node, group in zip(site.nodes, topology.group.tolist()):
        members.setdefault(group, []).append(node)
    if isinstance(topology, Blocks):
        if topology.sizes:
            yield f"sizes = [{', '.join(map(str, topology.sizes))}]"
        yield "[topology.blocks]"
        for number, block in enumerate(topology.names):
            yield f"{_key(block)} = {_hosts_text(members.get(number, []))}"
    elif topology.switches:
        yield "[topology.switches]"
        lower: dict[int, list[str]] = {}
        for switch, parent in zip(topology.switches, topology.parent.tolist()):
            lower.setdefault(parent, []).append(switch)
        for number, switch in enumerate(topology.switches):
            inner = ", ".join(map(_quoted, lower.get(number, [])))
            nodes = _hosts_text(members.get(number, []))
            yield f"{_key(switch)} = {f'[{inner}]' if inner else nodes}"


def _quoted(text: str) -> str:
    # a JSON text is a TOML one, but for DEL, which TOML has escaped
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _instant_text(at: float) -> str:
    """Return a time as a date in whole seconds if that is what it is, else as a number."""
    if at != int(at) or at > LAST_DATE:
        return repr(at)
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _quoted(name)


def _table(amounts: Mapping[str, int]) -> str:
    return f"{{ {', '.join(f'{_key(name)} = {many}' for name, many in amounts.items())} }}"


def _hosts_text(names: Sequence[str]) -> str:
    return _quoted(host_list_in_order(names))
