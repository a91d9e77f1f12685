"""What a site has free at one time, in the columns of a placement problem."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched.arrays import Flags, Ints
from optsched.errors import InputError
from optsched.sites.job_request import Columns
from optsched.sites.loading import read_shown_site
from optsched.sites.parts import Blocks, Reservation, Tree, assign, whole_numbers
from optsched.sites.slurm_files import captured_file
from optsched.sites.slurm_site import SlurmSite, of_each_node
from optsched.slurm.limits import Limits, read_limits, read_qos


@dataclass(frozen=True, eq=False)
class Supply(SlurmSite):
    """Free resources of a site, and who else has a claim on its nodes."""

    time: int  # the time, in seconds since 1970
    # Whether jobs run on the node; by default where some cores are not free, shape (nodes,)
    busy: Flags = of_each_node(False)
    # By name of the partition, for those with ``MaxCPUsPerNode``: cores that its jobs may
    # still have on each node, shape (nodes,)
    cores_left: Mapping[str, Ints] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)  # the limits of QOS and associations
    # By QOS, those whose jobs its own may preempt, itself if it is one of PreemptMode=WITHIN;
    # None where that is not known
    qos_preempts: Mapping[str, tuple[str, ...]] | None = None
    # By QOS, how much of the usage of its jobs counts, where that is known
    qos_usage: Mapping[str, float] = field(default_factory=dict)
    unread: tuple[str, ...] = ()  # in words, what is not known for want of a file
    # Nodes of which a running job shares nothing: nothing of them is free, whatever `free`
    # says, shape (nodes,)
    taken: Flags = of_each_node(False)
    # The only user with running jobs on a node; empty where there are none, or others too,
    # shape (nodes,)
    users: NDArray[np.object_] = of_each_node("")
    # From when on no job starts on each node, in seconds since 1970; infinity for never,
    # shape (nodes,)
    closing: NDArray[np.float64] = of_each_node(math.inf)

    def __post_init__(self) -> None:
        most = int(self.site.capacity.max(initial=0))
        free = whole_numbers(self.free, "free", 0, most, dimensions=2)
        if free.shape != self.site.capacity.shape:
            raise InputError("expected a row for each node of the site", field="free")
        usable = np.isin(self.site.states, ("up", "reserved"))
        busy = self.site.capacity[:, 0] > free[:, 0] if self.busy is None else self.busy
        assign(self, free=np.where(usable[:, None], free, 0), busy=busy)
        super().__post_init__()
        licences = {
            beside(name, each): max(0, left - each.licences[name])
            for each in self.reservations
            for name, left in self.licences.items()
            if name in each.licences
        }
        assign(self, licences=licences | dict(self.licences))

    def with_states(self, nodes: Flags, state: str, free: Ints | None = None) -> Supply:
        """Return the supply with some nodes in a state, and perhaps with other free amounts."""
        states = np.where(nodes, state, np.array(self.site.states, dtype=str)).tolist()
        free = self.free if free is None else free
        return replace(self, site=replace(self.site, states=states), free=free)

    @cached_property
    def tiers(self) -> Mapping[str, int]:
        """The tier of each partition: jobs of a higher one come first."""
        return {each.name: each.priority_tier for each in self.site.partitions}

    @cached_property
    def thread_counts(self) -> tuple[int, ...]:
        """The numbers of threads per core, from 2, that nodes have."""
        return tuple(count for count in np.unique(self.threads).tolist() if count > 1)

    @cached_property
    def layout(self) -> Columns:
        """The columns with what counts in them."""
        of_site, limited = self.site.resources, tuple(self.cores_left)
        return Columns(of_site, self.thread_counts, limited, self.units, self.counts_memory)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.layout.names

    @cached_property
    def idle(self) -> Supply:
        """What is free when no job runs."""
        free = {"free": self.site.capacity, "cores_left": self._most_cores}
        names = ("busy", "owners", "labels", "taken", "completing", "users")
        nobody: dict[str, Any] = dict.fromkeys(names)
        return replace(self, licences=self.site.licences, **nobody | free)

    @cached_property
    def _most_cores(self) -> dict[str, Ints]:
        """The cores that jobs of a partition may have on each node."""
        cores = self.site.capacity[:, 0]
        return {
            name: np.minimum(cores, self.access[name].cores_per_node) for name in self.cores_left
        }

    @cached_property
    def amounts(self) -> Ints:
        """Free amounts of the columns, shape (nodes, columns)."""
        return self.widened(np.where(self.taken[:, None], 0, self.free), cores=self.cores_left)

    @cached_property
    def usable(self) -> Flags:
        """Whether jobs of no reservation may start on each node at some time, shape (nodes,).

        The node is up, or reserved by a reservation that is known, which then decides.
        """
        return self.site.usable_with(self.reservations)

    @cached_property
    def capacity(self) -> Ints:
        """Amounts of the columns on idle nodes, shape (nodes, columns)."""
        return self.widened(self.site.capacity, cores=self._most_cores)

    def widened(
        self, amounts: Ints, nodes: Ints | slice = slice(None), *, cores: Mapping[str, Ints]
    ) -> Ints:
        """Return amounts on nodes in the columns; `cores` by partition that limits them, else 0."""
        own = [
            amounts[:, :2] * np.where(self.threads[nodes] == count, 1, count)[:, None]
            for count in self.thread_counts
        ]
        none = np.zeros(len(amounts), dtype=np.int64)
        limited = [cores.get(name, none)[:, None] for name in self.cores_left]
        return np.hstack([amounts, *own, *limited])

    @cached_property
    def tree(self) -> str | None:
        """Name of the first tree of switches; None without one."""
        return self._first(Tree)

    @cached_property
    def block_topology(self) -> str | None:
        """Name of the first topology of blocks; None without one."""
        return self._first(Blocks)

    def _first(self, kind: type[Tree] | type[Blocks]) -> str | None:
        topologies = self.site.topologies.items()
        return next((name for name, each in topologies if isinstance(each, kind)), None)

    @cached_property
    def switches(self) -> tuple[str, ...] | None:
        """Leaf switch of each node in `tree`; for a node on none a name of its own."""
        return self._groups(self.tree)

    @cached_property
    def blocks(self) -> tuple[str, ...] | None:
        """Block of each node in `block_topology`; for a node in none a name of its own."""
        return self._groups(self.block_topology)

    def _groups(self, topology: str | None) -> tuple[str, ...] | None:
        chosen = None if topology is None else self.site.topology(topology)
        if not isinstance(chosen, Tree | Blocks):
            return None
        names = chosen.switches if isinstance(chosen, Tree) else chosen.names
        return tuple(
            names[group] if group >= 0 else f"none of {node}"
            for node, group in zip(self.site.nodes, chosen.group.tolist())
        )


def read_supply(folder: str | Path, time: int | None = None) -> Supply:
    """Return the free amounts of a site, from captured output of the commands of Slurm.

    `folder`: folder of the files that `optsched.sites.loading.read_shown_site` reads, and if
    there is, of ``reservations.json`` or ``reservations.txt``, what ``scontrol show reservations``
    wrote with ``--json`` or ``-o``; `time`: the time, in seconds since 1970; by default when the
    nodes were written, or what the file ``now`` says.
    """
    folder = Path(folder)
    shown = read_shown_site(folder)
    time = shown.time if time is None else time
    if time is None:
        raise InputError("no time; expected the file now, which date +%s writes", file=folder)
    notes = shown.notes
    if "reservations" in shown.missing:
        notes += ("no reservations.json or .txt: taken as none",)
    limits, unread = _limits(captured_file(folder, "assoc_mgr.txt"), shown)
    preempts, usage = read_qos(captured_file(folder, "qos.txt"))
    further = _of_licences(shown.reserved, shown.reservations, time)
    changed = {"time": time, "reservations": (*shown.reservations, *further), "notes": notes}
    of_rules = {"limits": limits, "unread": unread, "qos_preempts": preempts, "qos_usage": usage}
    return Supply(**vars(shown) | changed | of_rules)


def _of_licences(
    reserved: Mapping[str, int], reservations: Sequence[Reservation], time: int
) -> tuple[Reservation, ...]:
    """Return a reservation of the licences that are reserved now by none that is known."""
    known = Counter[str]()
    for each in reservations:
        if each.at(time):
            known.update(each.licences)
    left = {name: count - known[name] for name, count in reserved.items() if count > known[name]}
    return (Reservation("of licences", (), licences=left),) if left else ()


def _limits(path: Path | None, shown: SlurmSite) -> tuple[Limits, tuple[str, ...]]:
    """Return the limits that Slurm enforces, and in words what is not known of rules."""
    kinds = {
        "partitions": "who may use partitions, without partitions.txt",
        "reservations": "reservations, without reservations.json or .txt",
    }
    settings, unread = shown.settings, [kinds[kind] for kind in kinds if kind in shown.missing]
    if not settings:
        unread.append("whether jobs are preempted, without config.txt")
    enforced = settings.get("accountingstorageenforce", "none" if settings else "limits").lower()
    is_safe = "safe" in enforced or "all" in enforced
    if path is None:
        if is_safe or "limits" in enforced:
            unread.append("limits of QOS and associations, without assoc_mgr.txt")
        return Limits(), tuple(unread)
    found = read_limits(path, safe=is_safe)
    if not (is_safe or "limits" in enforced):
        found = replace(found, qos=None)
    return found, tuple(unread)


def beside(licence: str, reservation: Reservation) -> str:
    """Return the name of what a reservation leaves of a licence while it holds."""
    return f"{licence} beside reservation {reservation.name}"
