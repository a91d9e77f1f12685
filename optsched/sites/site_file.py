"""Site files: a site as TOML that a person writes, docs/formats/site.md."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import numpy as np

from optsched.errors import InputError, UnknownNameError
from optsched.fields import REQUIRED, Kind, Of, Parsed, Table, flag
from optsched.files import write_bytes
from optsched.numbers import LARGEST, MOST_CAPACITY
from optsched.sites.parts import (
    Blocks,
    Places,
    Reservation,
    Topology,
    Torus,
    Tree,
    blocks_of,
    overlapping,
    places_of,
    tree_of,
)
from optsched.sites.site import STATES, Node, Partition, Site, of_nodes, some, typed
from optsched.sites.slurm_notation import (
    host_list_in_order,
    hosts_of,
    megabytes,
    read_together,
    seconds,
    time_text,
)
from optsched.text_files import read_toml

KEYS = (
    *("kind", "name", "nodes", "partitions", "unpartitioned", "licences", "topology"),
    "reservations",
)
KINDS = {
    "tree": ("switches",),
    "blocks": ("sizes", "blocks"),
    "torus": ("dims", "places", "nodes"),
    "flat": (),
}
"""Kinds of topologies, and the keys of each beside kind, name and unconnected."""

LAST_DATE = 253_402_300_799
"""The last second of the year 9999, the last one that a date of TOML can state."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def _refuse() -> NoReturn:
    raise ValueError


def _any_text(value: Any) -> str:
    return value if isinstance(value, str) else _refuse()


def _text(value: Any) -> str:
    return _any_text(value) or _refuse()


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else _refuse()


def _amount(value: Any) -> int:
    return value if type(value) is int and 0 <= value <= MOST_CAPACITY else _refuse()


def _memory(value: Any) -> int:
    return _amount(megabytes(value) if isinstance(value, str) else value)


def _instant(value: Any) -> float:
    """Return seconds since 1970; a time without a zone is in UTC."""
    if isinstance(value, str) and ":" in value:
        value = datetime.fromisoformat(value)
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    return float(value) if type(value) in (int, float) and 0 <= value <= LARGEST else _refuse()


def _amounts(value: Any) -> dict[str, int]:
    given = value if isinstance(value, Mapping) else _refuse()
    return {_text(name): _amount(amount) for name, amount in given.items()}


def _gpus(value: Any) -> dict[str, int]:
    if not isinstance(value, Mapping):
        return {"gpu": _amount(value)}
    return {f"gpu:{name}": amount for name, amount in _amounts(value).items()}


def _one_of(names: Sequence[str], expected: str = "") -> Parsed:
    def convert(value: Any) -> str:
        if _any_text(value) not in names:
            raise UnknownNameError("name", value, names)
        return str(value)

    return Parsed(convert, expected or " or ".join(names))


_HOSTS = Parsed(lambda value: hosts_of(_any_text(value)), 'a host list such as "c[01-40,44]"')
_NAME = Parsed(_text, "a name")
_TEXT = Of(str, expected="a text")
_TEXTS = Parsed(lambda value: tuple(map(_text, _list(value))), "a list of texts")
_POSITIONS = Parsed(
    lambda value: tuple(map(_any_text, _list(value))),
    'a host list such as "c[01-40,44]", or a list of nodes, empty for none',
)
_SWITCH_LIST = Parsed(_TEXTS.convert, "a list of switches")
_NUMBERS = Parsed(_list, "a list of whole numbers")
_DIMS = Parsed(_list, "a list of whole numbers, such as [4, 3, 3]")
_PLACE = Parsed(_list, "a list of whole numbers, such as [2, 1, 1]")
_AMOUNT = Parsed(_amount, f"a whole number from 0 to {MOST_CAPACITY:,}")
_WHOLE = Parsed(_amount, "a whole number from 0")
_AMOUNTS = Parsed(_amounts, f"a whole number from 0 to {MOST_CAPACITY:,} for each name")
_GPUS = Parsed(_gpus, "a number, or one for each type")
_MEMORY = Parsed(_memory, 'MB, or a text such as "64G"')
_TIME = Parsed(lambda value: seconds(_text(value)), 'a time such as "2-00:00:00" or "UNLIMITED"')
_INSTANT = Parsed(_instant, "a date and time such as 2026-12-24T08:00:00Z, or seconds since 1970")
_SWITCHES = "a table of switches, each with a host list of nodes or a list of switches"
_BLOCKS = "a table of blocks, each with a host list of nodes"

_NODE: dict[str, Kind] = {"names": _HOSTS, "cores": _AMOUNT, "memory": _MEMORY}
_NODE |= {"resources": _AMOUNTS, "gpus": _GPUS, "features": _TEXTS}
_NODE |= {"state": _one_of(STATES), "reason": _TEXT}
_PARTITION: dict[str, Kind] = {"default": flag(), "max_time": _TIME, "max_nodes": _WHOLE}
_PARTITION |= {"exclusive": flag(), "exclusive_user": flag(), "up": flag()}
_PARTITION |= {"priority_tier": _WHOLE, "priority_factor": _WHOLE}
_PARTITION |= {"memory_per_core": Parsed(_memory, 'MB, or "4G"'), "name": _NAME}
_RESERVATION = {"start": _INSTANT, "end": _INSTANT, "overlap": flag(), "name": _NAME}
"""Kinds of the keys of each table, whose defaults are those of `Node` and the like."""


_Made = TypeVar("_Made")


class _Table(Table):
    """Table of the file; all tables share the list of mistakes."""

    def values(
        self, kinds: Mapping[str, Kind], usual: Mapping[str, Any], *further: str
    ) -> dict[str, Any]:
        """Return the values of keys, or the usual ones; note mistakes, and keys not known."""
        self.known((*further, *kinds))
        return {key: self.read(key, kind, usual.get(key, REQUIRED)) for key, kind in kinds.items()}

    def made(self, kind: Callable[..., _Made], **values: Any) -> _Made | None:
        """Return an object of a class with values of this table; None after noting a mistake."""
        if any(mistake.startswith(self.place) for mistake in self.mistakes):
            return None
        try:
            return kind(**values)
        except InputError as error:
            self.note(error.field or "name", error.mistakes[0])
            return None

    def hosts(self, key: str, default: Any = REQUIRED) -> list[str]:
        return list(self.read(key, _HOSTS, default, []))

    def members(self, index: Mapping[str, int]) -> list[str]:
        """Return the nodes under ``nodes``: a host list, or ``ALL``; note unknown ones."""
        if self.table.get("nodes") == "ALL":
            return [*index]
        names = self.hosts("nodes")
        _known_nodes(self, "nodes", names, index)
        return names


def read_site_file(path: str | Path) -> Site:
    """Return the site that a TOML file describes."""
    path = Path(path)
    try:
        return site_of_table(read_toml(path), name=path.stem)
    except InputError as error:
        raise error.within(path) from None


@read_together()
def site_of_table(values: Mapping[str, Any], name: str = "site") -> Site:
    """Return the site that the tables of a TOML file describe.

    `name`: name of the site unless the tables have one.
    """
    table = _Table(values)
    table.known(KEYS)
    table.read("kind", _one_of(["site"], '"site"'), "")
    name = table.read("name", _NAME, name, "")
    nodes = _nodes(table)
    table.done()
    index = {node.name: place for place, node in enumerate(nodes)}
    topologies = _topologies(table, index)
    partitions = _partitions(table, index, topologies)
    reservations = tuple(_reservations(table, index))
    licences = table.read("licences", _AMOUNTS, {}, {})
    table.done()
    site = Site(
        name,
        **of_nodes(nodes),
        partitions=tuple(partitions),
        licences=licences,
        topologies=topologies,
        reservations=reservations,
    )
    _check_members(table, site)
    table.done()
    return site


def write_site_file(site: Site, path: str | Path) -> None:
    """Write a site as a TOML file, which `read_site_file` reads."""
    write_bytes(path, site_text(site).encode("utf-8", "replace"))


def site_text(site: Site) -> str:
    """Return the text of the TOML file of a site."""
    return "".join(f"{line}\n" for line in _lines(site))


def _nodes(table: _Table) -> list[Node]:
    nodes: list[Node] = []
    seen: dict[str, str] = {}
    for group in table.parts("nodes", least=1):
        values = group.values(_NODE, Node._field_defaults | {"resources": {}, "gpus": {}})
        amounts = {"cores": values["cores"], "memory": values["memory"]}
        amounts |= _resources(group, values["resources"] or {}, values["gpus"] or {})
        node = Node("", amounts, values["features"], values["state"], values["reason"])
        for name in values["names"] or ():
            if name in seen:
                group.note("names", f"{name}: is in {seen[name]} too; expected once")
                break
            seen[name] = group.place + "names"
            nodes.append(node._replace(name=name))
    return nodes


def _resources(group: _Table, found: dict[str, int], gpus: dict[str, int]) -> dict[str, int]:
    for name in {"cores", "memory"} & set(found):
        group.note(f"resources.{name}", f"expected the key {name} of the table itself")
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
    kinds = {**_PARTITION, "topology": _one_of([*topologies], "a topology")}
    for part in table.parts("partitions"):
        places = {index[node] for node in part.members(index) if node in index}
        fields = part.values(kinds, vars(Partition), "nodes")
        if made := part.made(Partition, nodes=sorted(places), **fields):
            found.append(made)
    _known_nodes(table, "unpartitioned", table.hosts("unpartitioned", []), index)
    return found


def _reservations(table: _Table, index: Mapping[str, int]) -> list[Reservation]:
    found: dict[str, Reservation] = {}
    for part in table.parts("reservations"):
        names = tuple(part.members(index))
        fields = part.values(_RESERVATION, vars(Reservation) | {"overlap": False}, "nodes")
        overlap = fields.pop("overlap")
        made = part.made(Reservation, nodes=names, **fields)
        if made is None:
            continue
        if found.setdefault(made.name, made) is not made:
            part.note("name", f"{made.name!r}: is there twice; expected different names")
        for other, shared in () if overlap else overlapping(made, found.values()):
            message = f"{made.name!r} and {other.name!r} both have {some(shared)} at the same time"
            part.note("nodes", f"{message}; expected other nodes or times, or overlap = true")
            break
    return [*found.values()]


def _check_members(table: _Table, site: Site) -> None:
    """Note nodes in no partition or not in the topology of their jobs, unless the file says so."""
    alone = set(site.unpartitioned) - set(table.hosts("unpartitioned", []))
    if alone and site.partitions:
        expected = "expected them in one, or under unpartitioned"
        table.note("partitions", f"{some(sorted(alone))} in no partition; {expected}")
    for part, name in zip(_topology_tables(table), site.topologies):
        alone = set(_unconnected(site, name)) - set(part.hosts("unconnected", []))
        if alone:
            kind = part.table["kind"]
            where = {"tree": "on no switch", "blocks": "in no block", "torus": "at no position"}
            message = f"{some(sorted(alone))} {where[kind]}; expected it, or them under unconnected"
            part.note(KINDS[kind][-1], message)


def _unconnected(site: Site, name: str) -> list[str]:
    """Return the nodes that are not in a topology, of the partitions that it is for."""
    topology = site.topologies[name]
    default = name == next(iter(site.topologies))
    names = (name, "") if default else (name,)
    meant = site.of_partitions(each for each in site.partitions if each.topology in names)
    meant |= default and not site.partitions
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
    return table.parts("topology")


def _topologies(table: _Table, index: Mapping[str, int]) -> dict[str, Topology]:
    found: dict[str, Topology] = {}
    for part in _topology_tables(table):
        kind = part.read("kind", _one_of([*KINDS]))
        if kind not in KINDS:
            continue
        part.known(("kind", "name", "unconnected", *KINDS[kind]))
        name = part.read("name", _NAME, kind)
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
    switches: list[tuple[str, Sequence[str], Sequence[str]]] = []
    inner = part.part("switches", _SWITCHES) or _Table({})
    for name, value in inner.table.items():
        if isinstance(value, list):
            switches.append((name, [], inner.read(name, _SWITCH_LIST, instead=())))
        else:
            switches.append((name, inner.hosts(name), []))
    return tree_of(switches, index, strange)


def _blocks(part: _Table, index: Mapping[str, int], strange: list[str]) -> Topology:
    inner = part.part("blocks", _BLOCKS) or _Table({})
    sizes = part.read("sizes", _NUMBERS, [], [])
    return blocks_of([(name, inner.hosts(name)) for name in inner.table], sizes, index, strange)


def _torus(part: _Table, index: Mapping[str, int], strange: list[str]) -> Topology:
    dims = part.read("dims", _DIMS)
    names = part.read("nodes", _POSITIONS if isinstance(part.table.get("nodes"), list) else _HOSTS)
    if dims is None or names is None:
        return Torus((1,), np.array([-1]))
    at = places_of(names, index, strange)
    found = []
    for each in part.parts("places"):
        size = each.read("dims", _PLACE)
        if size is not None:
            seed = each.read("seed", _NUMBERS, [0] * len(dims), [])
            spacing = each.read("spacing", _NUMBERS, size, [])
            found.append(Places(tuple(size), tuple(seed), tuple(spacing)))
    return Torus(tuple(dims), at, tuple(found))


_MAKERS: Mapping[str, Callable[[_Table, Mapping[str, int], list[str]], Topology]] = {
    "tree": _tree,
    "blocks": _blocks,
    "torus": _torus,
    "flat": lambda part, index, strange: tree_of([], index, strange),
}


def _known_nodes(part: _Table, key: str, names: Sequence[str], index: Mapping[str, int]) -> None:
    for name in names:
        if name not in index:
            part.note(key, str(UnknownNameError("node", name, index)))
            break


# writing


def _lines(site: Site) -> Iterator[str]:
    yield f"name = {_value(site.name)}"
    if site.partitions and site.unpartitioned:
        yield f"unpartitioned = {_hosts_text(site.unpartitioned)}"
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
        yield from ("", "[[reservations]]", f"name = {_value(reservation.name)}")
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
        yield f"names = {_hosts_text([node for _, node in group])}"
        yield f"cores = {row[0]}"
        yield f"memory = {row[1]}"
        amounts = {
            name: amount
            for name, amount, nowhere in zip(site.resources[2:], row[2:], absent[2:])
            if amount or (nowhere and number == 0)
        }
        yield from _resource_lines(amounts)
        for key, value in (("features", features), ("state", state), ("reason", reason)):
            if value != Node._field_defaults[key]:
                yield f"{key} = {_value(value)}"


def _resource_lines(amounts: dict[str, int]) -> Iterator[str]:
    """Yield GPUs under their own key where that says all, and the others under resources."""
    types = {name[4:]: amounts[name] for name in amounts if name.startswith("gpu:")}
    if "gpu" in amounts and (not types or sum(types.values()) == amounts["gpu"]):
        gpus = _table(types) if types else str(amounts["gpu"])
        yield f"gpus = {gpus}"
        amounts = {name: amounts[name] for name in amounts if name.partition(":")[0] != "gpu"}
    if amounts:
        yield f"resources = {_table(amounts)}"


def _partition_lines(site: Site, partition: Partition) -> Iterator[str]:
    yield from ("", "[[partitions]]")
    yield f"name = {_value(partition.name)}"
    everything = len(partition.nodes) == len(site.nodes)
    names = [site.nodes[place] for place in partition.nodes.tolist()]
    yield f"nodes = {_value('ALL') if everything else _hosts_text(names)}"
    for key, value in list(vars(partition).items())[2:]:  # after the name and the nodes
        if value != getattr(Partition, key):
            value = time_text(value) if key == "max_time" else value
            yield f"{key} = {_value(int(value) if key == 'max_nodes' else value)}"


def _topology_lines(site: Site, name: str) -> Iterator[str]:
    topology = site.topologies[name]
    kind = {Tree: "tree", Blocks: "blocks", Torus: "torus"}[type(topology)]
    if isinstance(topology, Tree) and not topology.switches:
        kind = "flat"
    yield f"kind = {_value(kind)}"
    if name != kind:
        yield f"name = {_value(name)}"
    if alone := _unconnected(site, name):
        yield f"unconnected = {_hosts_text(alone)}"
    if isinstance(topology, Torus):
        yield f"dims = {_value(topology.dims)}"
        names = [site.nodes[place] if place >= 0 else "" for place in topology.nodes.tolist()]
        yield f"nodes = {_hosts_text(names) if all(names) else _value(names)}"
        for places in topology.places:
            yield "[[topology.places]]"
            for key, numbers in zip(places._fields, places):
                yield f"{key} = {_value(numbers)}"
        return
    members: dict[int, list[str]] = {}
    for node, group in zip(site.nodes, topology.group.tolist()):
        members.setdefault(group, []).append(node)
    if isinstance(topology, Blocks):
        if topology.sizes:
            yield f"sizes = {_value(topology.sizes)}"
        yield "[topology.blocks]"
        for number, block in enumerate(topology.names):
            yield f"{_key(block)} = {_hosts_text(members.get(number, []))}"
    elif topology.switches:
        yield "[topology.switches]"
        lower: dict[int, list[str]] = {}
        for switch, parent in zip(topology.switches, topology.parent.tolist()):
            lower.setdefault(parent, []).append(switch)
        for number, switch in enumerate(topology.switches):
            nodes = _hosts_text(members.get(number, []))
            yield f"{_key(switch)} = {_value(lower[number]) if number in lower else nodes}"


def _value(value: Any) -> str:
    # what JSON writes but for objects is TOML, if DEL is escaped
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _instant_text(at: float) -> str:
    """Return a time as a date in whole seconds if that is what it is, else as a number."""
    if at != int(at) or at > LAST_DATE:
        return repr(at)
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _value(name)


def _table(amounts: Mapping[str, int]) -> str:
    return f"{{ {', '.join(f'{_key(name)} = {many}' for name, many in amounts.items())} }}"


def _hosts_text(names: Sequence[str]) -> str:
    return _value(host_list_in_order(names))
