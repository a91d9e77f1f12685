"""Who may use a partition of Slurm, and what it limits beyond the limits of a site."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from optsched.sites.notes import Notes
from optsched.sites.slurm_amounts import INFINITE, megabytes
from optsched.sites.slurm_lines import Line

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
        text = line.text(key)
        return () if text.upper() == "ALL" else tuple(name for name in text.split(",") if name)

    def most(key: str) -> int:
        if line.text(key).upper() in ("", *INFINITE):
            return 0
        return line.parsed(key, megabytes) if "mem" in key else line.count(key)

    shared = (line.text("oversubscribe") or line.text("shared")).upper()
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
