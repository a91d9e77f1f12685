"""What the files of a captured folder say, read without optsched: nodes, jobs, partitions, rules.

The files are JSON and text of Slurm 22.05 to 26.05, packed or not.
"""

from __future__ import annotations

import calendar
import gzip
import json
import math
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

Kind = tuple[str, str]
"""Name and type of a generic resource; the type may be empty."""

Record = dict[str, Any]

MARKS = {
    "*": "NOT_RESPONDING", "$": "MAINTENANCE", "@": "REBOOT", "#": "POWERING_UP",
    "%": "POWERING_DOWN", "~": "POWERED_DOWN", "!": "POWER_DOWN", "-": "PLANNED",
}  # fmt: skip
UNITS = {"": 1, **{unit: 1024**power for power, unit in enumerate("KMGTP", 1)}}
LIVE = {"RUNNING", "SUSPENDED", "CONFIGURING", "COMPLETING", "STOPPED"}
"""States of jobs that hold nodes; those that ended are listed for some minutes."""

NAMED = {
    "NodeName": "name", "ActiveFeatures": "active_features", "Owner": "owner", "Gres": "gres",
    "CPUEfctv": "effective_cpus", "CPUAlloc": "alloc_cpus",
    "ThreadsPerCore": "threads", "RealMemory": "real_memory", "AllocMem": "alloc_memory",
    "TmpDisk": "temporary_disk", "GresUsed": "gres_used", "Weight": "weight",
}  # fmt: skip
"""The keys of nodes in text, and the same ones in JSON."""

NOT_GRES = {"", "(null)", "cpu", "mem", "node", "billing", "license"}


def number(value: Any) -> Any:
    """Return a number of JSON, whether in a record of its own, None if unset, infinity if so."""
    if not isinstance(value, dict):
        return value
    if value.get("infinite"):
        return math.inf
    return value["number"] if value.get("set") else None


def listed(value: Any) -> list[str]:
    return [] if value is None else [value] if isinstance(value, str) else list(value)


def names(text: str | None) -> set[str]:
    return {word for word in re.split(r"[,\s]+", text or "") if word and word != "(null)"}


def spans(text: str) -> list[tuple[str, str]]:
    """Return both ends of each range of ``01-03,7``."""
    ends = [part.split("-") for part in text.split(",") if part]
    return [(one[0], one[-1]) for one in ends]


def hosts(text: str | None) -> list[str]:
    """Return the names of a host list such as ``c[01-03,7],m1``."""
    found: list[str] = []
    for part in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", text if text and text != "(null)" else ""):
        heads = [""]
        for fixed, ranges in re.findall(r"([^\[]*)(?:\[([^\]]*)\])?", part):
            tails = [
                f"{n:0{len(low)}}"
                for low, high in spans(ranges)
                for n in range(int(low), int(high) + 1)
            ]
            heads = [head + fixed + tail for head in heads for tail in (tails or [""])]
        found += heads
    return found


def amount(text: str) -> int:
    """Return a number with a unit of 1024."""
    return int(float(text.rstrip("KMGTPkmgtp")) * UNITS[text.lstrip("0123456789.").upper()])


def gres(text: str | None) -> Counter[Kind]:
    """Return amounts by name and type of ``gpu:a100:4(S:0-1),scratch:3T`` or ``gres/gpu=2``."""
    found: Counter[Kind] = Counter()
    for part in re.sub(r"\([^)]*\)", "", text or "").split(","):
        words = re.split(r"[:=]", re.sub(r"^gres[/:]", "", part.strip()))
        if words[0] not in NOT_GRES:
            counted = re.fullmatch(r"[\d.]+[KMGTPkmgtp]?", words[-1])
            count = amount(words.pop()) if counted else 1
            found[words[0], ":".join(word for word in words[1:] if word != "no_consume")] += count
    return found


def clock(text: str) -> float:
    """Return the seconds of ``days-hours:minutes:seconds``."""
    if not text[0].isdigit():
        return math.inf
    days, _, rest = text.rpartition("-")
    seconds = int(days or 0) * 86400
    for power, part in enumerate(reversed(rest.split(":"))):
        seconds += int(part) * int(60**power)
    return seconds


def epoch(text: str) -> int:
    return calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))


def text_of(folder: Path, name: str) -> str:
    """Return what a file of a folder says, packed or not; an empty text without one."""
    packed, plain = folder / f"{name}.gz", folder / name
    if packed.exists():
        return gzip.decompress(packed.read_bytes()).decode(errors="replace")
    return plain.read_text(errors="replace") if plain.exists() else ""


def pairs(line: str) -> dict[str, str]:
    return dict(re.findall(r"(?:^|\s)([A-Za-z][\w/:]*)=(\S*)", line))


@dataclass
class Node:
    """A node, and what is left on it while the jobs of a plan start one after the other."""

    name: str
    states: set[str]
    cores: int
    threads: int
    memory: int
    whole_memory: int
    gres: Counter[Kind]
    features: set[str]
    owner: str
    scratch: int
    weight: int
    idle: bool
    shares: int = 0
    """Shares of one GPU, where GPUs can be shared."""
    shared: list[int] = field(default_factory=list)
    """Shares that are left of each GPU that jobs share."""
    users: set[str] = field(default_factory=set)
    users_only: set[str] = field(default_factory=set)
    """Users of its jobs, and those whose jobs share it with their own user's jobs alone."""
    by_partition: Counter[str] = field(default_factory=Counter)
    """CPUs that jobs of a partition have."""
    taken: bool = False
    """Whether a job has the node to itself."""

    def free(self, kind: Kind) -> int:
        name, sort = kind
        if name in ("shard", "mps") and self.shares:
            return max([0, *self.shared, self.shares if self.free(("gpu", "")) else 0])
        return sum(n for (own, its), n in self.gres.items() if own == name and sort in ("", its))

    def take(self, kind: Kind, count: int) -> None:
        name, sort = kind
        if name in ("shard", "mps") and self.shares:
            if not any(left >= count for left in self.shared):
                self.take(("gpu", ""), 1)
                self.shared.append(self.shares)
            self.shared[self.shared.index(min(n for n in self.shared if n >= count))] -= count
            return
        for (own, its), left in self.gres.items():
            if own == name and sort in ("", its):
                used = max(0, min(left, count))
                self.gres[own, its] -= used
                count -= used


class Captured:
    """What the files of a captured folder say."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now = int(self.text("now"))
        self.config = dict(re.findall(r"(?m)^(\w+)\s*=\s*(.*?)\s*$", self.text("config.txt")))
        self.queue: list[Record] = self._json("squeue.json")["jobs"]
        self.partitions = {row["PartitionName"]: row for row in self._rows("partitions.txt")}
        self.nodes = {node.name: node for node in self._nodes()}
        self.running = [job for job in self.queue if LIVE & set(listed(job["job_state"]))]
        for job in self.running:
            self._runs(job)

    def text(self, name: str) -> str:
        return text_of(self.folder, name)

    def _json(self, name: str) -> Any:
        return json.loads(self.text(name) or "{}")

    def _rows(self, name: str) -> list[dict[str, str]]:
        return [row for row in map(pairs, self.text(name).splitlines()) if row]

    def _nodes(self) -> Iterator[Node]:
        """Yield the nodes of JSON, with what text beside it knows better, or those of text."""
        rows = {row["NodeName"]: row for row in self._rows("nodes.txt")}
        records = (self._json("nodes.json") or self._json("sinfo.json")).get("nodes", ())
        for record in records:
            row = rows.get(record["name"], {})
            special = record.get("specialized_memory") or int(row.get("MemSpecLimit", 0))
            found = {key: record.get(name) for key, name in NAMED.items()}
            found["State"] = "+".join(listed(record["state"]) + listed(record.get("state_flags")))
            found["CPUEfctv"] = found["CPUEfctv"] or row.get("CPUEfctv") or record["cpus"]
            yield self._node(found | {"MemSpecLimit": special})
        for row in () if records else rows.values():
            yield self._node({key: None if value == "N/A" else value for key, value in row.items()})

    @staticmethod
    def _node(row: Record) -> Node:
        states = set(re.findall(r"[A-Z_]+", row["State"].upper()))
        states |= {MARKS[mark] for mark in re.sub(r"\w", "", row["State"]) if mark in MARKS}
        threads, used = int(row["ThreadsPerCore"]), int(row["CPUAlloc"])
        whole = "ALLOCATED" in states
        cores = 0 if whole else (int(row.get("CPUEfctv") or row["CPUTot"]) - used) // threads
        memory = int(row["RealMemory"]) - int(row.get("MemSpecLimit") or 0)
        total, busy = gres(row.get("Gres")), gres(row.get("GresUsed"))
        features = row.get("ActiveFeatures")
        node = Node(
            name=row["NodeName"],
            states=states,
            cores=max(0, cores),
            threads=threads,
            memory=memory - int(row["AllocMem"]),
            whole_memory=memory,
            gres=Counter({kind: count - busy[kind] for kind, count in total.items()}),
            features=set(features) if isinstance(features, list) else names(features),
            owner=(row.get("Owner") or "").split("(")[0],
            scratch=int(row.get("TmpDisk") or 0),
            weight=int(row.get("Weight") or 1),
            idle=used == 0 and not whole,
        )
        shares = sum(n for (name, _), n in total.items() if name in ("shard", "mps"))
        devices = sum(n for (name, _), n in total.items() if name == "gpu")
        if shares and devices:
            node.shares = shares // devices
            told = re.search(r"(?:shard|mps)[^,(]*\(([^)]*)\)", row.get("GresUsed") or "")
            each = re.findall(r"(\d+)/(\d+)", told[1]) if told else []
            node.shared = [int(most) - int(now) for now, most in each if int(now)]
            in_use = sum(n for (name, _), n in busy.items() if name in ("shard", "mps"))
            if in_use and not node.shared:  # which devices is not told: the worst case
                node.shared = [0] * min(devices, in_use)
            node.take(("gpu", ""), len(node.shared))
        return node

    def _runs(self, job: Record) -> None:
        cpus = dict(self._allocated(job))
        for node in map(self.nodes.get, hosts(job["nodes"])):
            if node is not None:
                node.users.add(job["user_name"])
                node.by_partition[job["partition"]] += cpus.get(node.name, 0)
                node.taken |= self.exclusive(job, job["partition"])
                if self.only_user(job, job["partition"]):
                    node.users_only.add(job["user_name"])

    @staticmethod
    def _allocated(job: Record) -> Iterator[tuple[str, int]]:
        held = job.get("job_resources") or {}
        for each in held.get("allocated_nodes") or ():
            sockets = each.get("sockets", {}).values()
            yield each["nodename"], sum(len(socket.get("cores", ())) for socket in sockets)
        nodes = held.get("nodes")
        for each in nodes.get("allocation", ()) if isinstance(nodes, dict) else ():
            yield each["name"], each["cpus"]["count"]

    def exclusive(self, job: Record, partition: str) -> bool:
        """Return whether a job has its nodes to itself."""
        row = self.partitions.get(partition, {})
        whole = row.get("OverSubscribe") == "EXCLUSIVE" or row.get("Exclusive") == "NODE"
        return whole or bool(_sharing(job) & {"none", "node", "true"})

    def only_user(self, job: Record, partition: str) -> bool:
        """Return whether a job shares its nodes with jobs of its user alone."""
        row = self.partitions.get(partition, {})
        user = row.get("ExclusiveUser") == "YES" or row.get("Exclusive") == "USER"
        return user or "user" in _sharing(job)

    @cached_property
    def pending(self) -> dict[str, Record]:
        """The pending records by number; tasks of arrays by both of theirs."""
        found = {}
        for job in self.queue:
            if "PENDING" in listed(job["job_state"]):
                found[str(job["job_id"])] = job
                task = number(job.get("array_task_id"))
                if number(job.get("array_job_id")) and task is not None:
                    found[f"{number(job['array_job_id'])}_{task}"] = job
        return found

    @cached_property
    def reservations(self) -> list[Record]:
        """Name, begin, end and nodes of reservations; without nodes of which it has some cores."""
        found = []
        for each in self._json("reservations.json").get("reservations", ()):
            partly = {one["node"] for one in each["core_specializations"]}
            begin, end = number(each["start_time"]), number(each["end_time"])
            found.append((each["name"], begin, end, set(hosts(each["node_list"])) - partly))
        for row in () if found else self._rows("reservations.txt"):
            if "ReservationName" in row:
                begin, end = epoch(row["StartTime"]), epoch(row["EndTime"])
                found.append((row["ReservationName"], begin, end, set(hosts(row["Nodes"]))))
        return [dict(zip(("name", "begin", "end", "nodes"), each)) for each in found]

    @cached_property
    def licences(self) -> Counter[str]:
        """Licences that are neither used nor reserved."""
        rows = self._json("licenses.json").get("licenses") or self._rows("licenses.txt")
        left = {
            row["LicenseName"]: int(row["Total"]) - int(row["Used"]) - int(row["Reserved"])
            for row in rows
            if "LicenseName" in row
        }
        return Counter(left)

    @cached_property
    def leaves(self) -> dict[str, str]:
        """The leaf switch of each node."""
        rows = [row for row in self._rows("topology.txt") if row.get("Level", "0") == "0"]
        low = [row for row in rows if "SwitchName" in row and "Switches" not in row]
        return {name: row["SwitchName"] for row in low for name in hosts(row["Nodes"])}


def _sharing(job: Record) -> set[str]:
    return {*listed(job.get("shared")), *listed(job.get("exclusive"))}
