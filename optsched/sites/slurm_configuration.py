"""A site from slurm.conf, and from gres.conf and topology.conf or topology.yaml beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from optsched.errors import InputError
from optsched.sites.captured import captured_file
from optsched.sites.host_lists import hosts_of, number_of_hosts, read_together
from optsched.sites.notes import Notes
from optsched.sites.site import NODE_NAME, Node
from optsched.sites.slurm_access import accesses_of
from optsched.sites.slurm_amounts import INFINITE, licences, whole_amount
from optsched.sites.slurm_lines import Line, check_keys, configuration_lines
from optsched.sites.slurm_nodes import consumed, state_of
from optsched.sites.slurm_partitions import partition_of
from optsched.sites.slurm_site import SlurmNode, SlurmSite, slurm_site
from optsched.sites.slurm_topology import read_first_topologies

TABLES = ("nodename", "partitionname", "downnodes", "nodeset")
"""First keys of lines that describe parts of the cluster; the others are settings."""

NOT_YET = ("", "UNKNOWN")
"""States of nodes in slurm.conf that say nothing: Slurm finds the state out itself."""


@read_together()
def read_configuration(path: str | Path) -> SlurmSite:
    """Return the site that slurm.conf describes, with all its resources free.

    `path`: slurm.conf, or the folder that it is in. The files that it includes are read too, and
    topology.yaml or topology.conf, and gres.conf, if they are beside it.
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
        check_keys(settings, line.file, line.number)
        if "licenses" in line.values:
            total = line.parsed("licenses", licences)
        if line.text("defmempercpu").upper() not in INFINITE:
            line.count("defmempercpu")  # megabytes without a unit
    nodes = _nodes(tables, _types(path.parent, notes), notes)
    if not nodes:
        raise InputError("no nodes; expected lines with NodeName=", file=path)
    index = {each.node.name: place for place, each in enumerate(nodes)}
    sets = _Sets(tables["nodeset"], nodes, index)
    lines = list(_with_defaults(tables["partitionname"]))
    partitions = [partition_of(line, sets.nodes_of, index, settings, notes) for line in lines]
    names = ("topology.yaml", "topology.conf")
    topologies = read_first_topologies(path.parent, names, index, notes)
    access, counts = accesses_of(lines), (total, total, dict[str, int]())
    described = nodes, partitions, access, topologies, settings, counts
    return slurm_site(*described, notes, file=path)


def _with_defaults(lines: Iterable[Line]) -> Iterator[Line]:
    """Yield lines with the values of the lines of DEFAULT before them."""
    default: dict[str, str] = {}
    for line in lines:
        if line.values[line.first].upper() == "DEFAULT":
            default |= line.values
        else:
            yield line._replace(values={**default, **line.values})


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


class _Sets:
    """Sets of nodes by name, for the nodes of partitions."""

    def __init__(
        self, lines: Iterable[Line], nodes: Iterable[SlurmNode], index: Mapping[str, int]
    ) -> None:
        self._index = index
        self._sets: dict[str, list[str]] = {}
        for line in _with_defaults(lines):
            wanted = set(filter(None, line.text("feature").split(",")))
            listed = line.parsed("nodes", self.nodes_of)
            having = [each.node.name for each in nodes if not wanted.isdisjoint(each.node.features)]
            for name in line.text("nodeset").split(","):
                self._sets[name] = [*listed, *having]

    def nodes_of(self, text: str) -> list[str]:
        """Return the nodes of a host list, in which names of sets and ALL stand for theirs."""
        found: list[str] = []
        for name in hosts_of(text):
            if name in self._sets:
                found += self._sets[name]
            elif name.upper() == "ALL":
                found += self._index
            elif name in self._index:
                found.append(name)
            else:
                expected = "expected a node or a set of nodes"
                raise InputError(f"{name}; {expected} of this file")
        return found
