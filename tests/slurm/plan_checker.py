"""A checker of plans that shares no code with optsched, written from what Slurm's pages say.

`Captured` has what the files of a captured folder say: nodes, jobs, partitions and rules, as JSON
or text of Slurm 22.05 to 26.05, packed or not. `illegal_starts` reads that and the JSON of
``optsched slurm plan``, and names each planned start that Slurm would not make: a rule of the
partition, of the node or of the job that is broken, or resources that are not there once the jobs
that start before it have taken theirs, divided as Slurm does. `needless_weights` names the starts
that a node of less weight could hold.
"""

import calendar
import gzip
import json
import math
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
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


def hosts(text: str | None) -> list[str]:
    """Return the names of a host list such as ``c[01-03,7],m1``."""
    found: list[str] = []
    for part in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", text if text and text != "(null)" else ""):
        heads = [""]
        for fixed, ranges in re.findall(r"([^\[]*)(?:\[([^\]]*)\])?", part):
            ends = [each.split("-") for each in ranges.split(",") if each]
            tails = [f"{n:0{len(e[0])}}" for e in ends for n in range(int(e[0]), int(e[-1]) + 1)]
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
    """Return the text of a file in a folder, packed or not; an empty text without one."""
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


OPEN = {
    *("IDLE", "MIXED", "ALLOCATED", "ALLOC", "PLANNED", "RESERVED", "MAINTENANCE", "RESUME"),
    *("MAINT", "RESV", "CLOUD", "POWERED_DOWN", "POWERING_UP", "POWER_UP", "NOT_RESPONDING"),
    *("DYNAMIC_NORM", "DYNAMIC_FUTURE", "REBOOT_REQUESTED", "REBOOT_CANCELED", "UNDRAIN"),
}
"""States in which nodes that respond start jobs; in a state that is not known they do not."""
PIN = re.compile(r"JobId=(\S+) .*ReqNodeList=")


def illegal_starts(folder: Path, plan: Record, *, in_any_order: bool = False) -> list[str]:
    """Return each planned start that Slurm would not make, with the reason.

    Slurm fills the nodes of a job in the order of their names, or `in_any_order`: then each of them
    may be the first, and others are on it beside the most that the job may take there.
    """
    return Check(folder, plan, in_any_order=in_any_order).wrong


def needless_weights(folder: Path, plan: Record) -> list[str]:
    """Return starts of which a node of less weight, on a switch of the job, could hold its part.

    Left out are nodes of a job that has several and is not pinned, and those that are reserved now,
    as it is not known what is left, and all of reservations in text, which has no zone of times.
    """
    check = Check(folder, plan, in_any_order=True)
    leaves, found = check.cluster.leaves, []
    loose = [at for label, at in check.started.items() if label not in check.pinned]
    uncertain = {node.name for at in loose if len(at) > 1 for node in at}
    uncertain |= {node.name for node in check.cluster.nodes.values() if "RESERVED" in node.states}
    if not check.cluster.text("reservations.json"):
        uncertain = uncertain.union(*(each["nodes"] for each in check.cluster.reservations))
    for label, at in check.started.items():
        own = {leaves.get(node.name) for node in at} if len(at) > 1 else None
        for node in check.cluster.nodes.values():
            heavy = max(at, key=lambda each: each.weight)
            near = own is None or leaves.get(node.name) in own
            if node in at or node.weight >= heavy.weight or not near or node.name in uncertain:
                continue
            others = [node if each is heavy else each for each in at]
            job = check.record(label)
            if job and not check.broken(label, job, others):
                found.append(f"job {label} on {heavy.name} of weight {heavy.weight}: {node.name}")
                break
    return found


class Check:
    """The jobs of a plan, started one after the other as Slurm would."""

    def __init__(self, folder: Path, plan: Record, *, in_any_order: bool = False) -> None:
        self.cluster = Captured(folder)
        self.in_any_order = in_any_order
        self.licences = Counter(self.cluster.licences)
        self.tasks: Counter[str] = Counter()
        self.started: dict[str, list[Node]] = {}
        self.wrong: list[str] = []
        # what is not pinned starts where Slurm likes, and must find room beside what is pinned
        self.pinned = {found[1] for found in map(PIN.search, plan["lines"]) if found}
        planned = [each for each in plan["jobs"] if each["nodes"]]
        for each in sorted(planned, key=lambda each: self._rank(each["job"])):
            label, job = each["job"], self.record(each["job"])
            nodes = self.cluster.nodes
            if job is None or not set(each["nodes"]) <= set(nodes):
                self.wrong.append(f"job {label}: no such pending job, or nodes {each['nodes']}")
                continue
            at = [nodes[name] for name in sorted(set(each["nodes"]))]
            reasons = self.broken(label, job, at)
            if not reasons:
                self._start(label, job, at)
            self.wrong += [f"job {label} of {job['user_name']}: {each}" for each in reasons]

    def record(self, label: str) -> Record | None:
        pending = self.cluster.pending
        return pending.get(label) or pending.get(label.split("_")[0])

    def _rank(self, label: str) -> tuple[bool, int, int, str]:
        job = self.record(label) or {}
        rows = [self.cluster.partitions.get(name, {}) for name in names(job.get("partition"))]
        tier = max((int(row.get("PriorityTier", 1)) for row in rows), default=1)
        return label not in self.pinned, -tier, -(number(job.get("priority")) or 0), label

    def broken(self, label: str, job: Record, at: list[Node]) -> list[str]:
        """Return why a job does not start on nodes beside what has been started."""
        reasons = [*_of_job(self.cluster, job, at), *_of_nodes(self.cluster, job, at)]
        if label in self.pinned and not has_features(job.get("prefer"), at):  # Slurm then holds it
            reasons.append(f"pinned to nodes without {job['prefer']}")
        most, array = number(job.get("array_max_tasks")) or 0, number(job.get("array_job_id"))
        live = [number(each.get("array_job_id")) for each in self.cluster.running]
        running = live.count(array)
        if label not in self.started and most and running + self.tasks[str(array)] >= most:
            reasons.append(f"more than {most} tasks of the array")
        asked = {} if label in self.started else _licences(job)
        reasons += [f"licence {name}" for name in asked if self.licences[name] < asked[name]]
        tried = [list(self._in_partition(name, job, at)) for name in job["partition"].split(",")]
        return reasons + min(tried, key=len)

    def _in_partition(self, name: str, job: Record, at: list[Node]) -> Iterator[str]:
        cluster, user = self.cluster, job["user_name"]
        broken = list(_of_partition(cluster, name, job, at))
        yield from broken
        for node in at:
            if node.taken or (cluster.exclusive(job, name) and not node.idle):
                yield f"{node.name} is not shared"
            if cluster.only_user(job, name) and node.users - {user}:
                yield f"{node.name} has jobs of {min(node.users - {user})}"
            if node.users_only - {user}:
                yield f"{node.name} is shared with jobs of {min(node.users_only - {user})} alone"
        shares = {} if broken else Division(cluster, job, name).divide(at)
        if isinstance(shares, str):
            yield shares
            return
        most = cluster.partitions.get(name, {}).get("MaxCPUsPerNode", "UNLIMITED")
        for node in at if shares and most.isdigit() else ():
            cpus = node.by_partition[name] + shares[node.name].cores * node.threads
            if cpus > int(most):
                yield f"{cpus} CPUs on {node.name}; MaxCPUsPerNode={most}"

    def _start(self, label: str, job: Record, at: list[Node]) -> None:
        tried = job["partition"].split(",")
        name = next(each for each in tried if not [*self._in_partition(each, job, at)])
        divide = Division(self.cluster, job, name).divide
        shares = divide(at)
        if self.in_any_order:  # the most that Slurm may take of each node, if it is filled first
            orders = [[node, *(each for each in at if each is not node)] for node in at]
            shares = {first.name: divide([first, *rest])[first.name] for first, *rest in orders}
        self.licences.subtract(_licences(job))
        self.tasks[str(number(job.get("array_job_id")))] += 1
        self.started[label] = at
        for node in at:
            share = shares[node.name]
            node.cores -= share.cores
            node.memory -= share.memory
            for kind, count in share.gres.items():
                node.take(kind, count)
            node.idle = False
            node.taken |= self.cluster.exclusive(job, name)
            node.users.add(job["user_name"])
            node.by_partition[name] += share.cores * node.threads
            if self.cluster.only_user(job, name):
                node.users_only.add(job["user_name"])


def _licences(job: Record) -> Counter[str]:
    words = [word for word in re.split(r"[,;]", job.get("licenses") or "") if word]
    parts = [word.partition(":") for word in words if "|" not in word]
    return Counter({name: int(count or 1) for name, _, count in parts})


def _of_job(cluster: Captured, job: Record, at: list[Node]) -> list[str]:
    """Return the rules of a job that a start breaks."""
    limit = (number(job["time_limit"]) or 0) * 60
    shortest = (number(job.get("time_minimum")) or 0) * 60 or limit
    begin, deadline = number(job.get("eligible_time")), number(job.get("deadline"))
    most, own = number(job["max_nodes"]) or 0, {node.name for node in at}
    pinned = "optsched" in (job.get("comment") or "")
    required, excluded = (set(hosts(job[f"{name}_nodes"])) for name in ("required", "excluded"))
    switches = number(job.get("required_switches")) or 0
    leaves = {cluster.leaves.get(node.name) for node in at}
    wait = re.search(r"max_switch_wait=(\d+)", cluster.config.get("SchedulerParameters", ""))
    waits = cluster.now - (begin or 0) < (int(wait[1]) if wait else 300)
    wide = switches and len(leaves) > switches and waits
    rules = {
        "it is held": number(job["priority"]) == 0,
        "it may not begin yet": begin and begin > cluster.now,
        f"it depends on {job.get('dependency')}": job.get("dependency"),
        "it is a part of a heterogeneous job": number(job.get("het_job_id")),
        "its last run is not completed": "COMPLETING" in listed(job["job_state"]),
        "it cannot end before its deadline": deadline and cluster.now + shortest > deadline,
        f"it asks for at most {most} nodes, and has {len(at)}": most and len(at) > most,
        f"it requires {job['required_nodes']}": not pinned and not required <= own,
        f"it excludes {job['excluded_nodes']}": excluded & own,
        f"features {job.get('features')}": not has_features(job.get("features"), at),
        f"{len(leaves)} switches, and it still waits for {switches}": wide,
    }
    return [rule for rule, is_broken in rules.items() if is_broken]


def _of_nodes(cluster: Captured, job: Record, at: list[Node]) -> Iterator[str]:
    """Yield what closes nodes to a job: their states, their owners, reservations."""
    for node in at:
        booting = node.states & {"POWERING_UP", "POWER_UP"}
        if node.states - OPEN or ("NOT_RESPONDING" in node.states and not booting):
            yield f"{node.name} is {'+'.join(sorted(node.states))}"
        if node.owner not in ("", job["user_name"]):
            yield f"{node.name} belongs to {node.owner}"
        if node.scratch < (number(job.get("minimum_tmp_disk_per_node")) or 0):
            yield f"{node.name} has too little scratch space"
    own, known = job.get("resv_name") or "", {each["name"] for each in cluster.reservations}
    if own and own not in known:
        yield f"reservation {own} is not known"
    end = cluster.now + (number(job["time_limit"]) or 0) * 60
    for each in cluster.reservations:
        inside = {node.name for node in at} & each["nodes"]
        if each["name"] == own:
            if len(inside) < len(at) or not each["begin"] <= cluster.now < each["end"]:
                yield f"it is outside its reservation {own}"
        elif inside and each["begin"] < end and each["end"] > cluster.now:
            yield f"{min(inside)} is reserved by {each['name']}"


def _of_partition(cluster: Captured, name: str, job: Record, at: list[Node]) -> Iterator[str]:
    """Yield the rules of a partition that a start breaks."""
    row = cluster.partitions.get(name)
    if row is None:
        yield f"no partition {name}"
        return
    if not {node.name for node in at} <= set(hosts(row.get("Nodes"))):
        yield f"nodes outside partition {name}"
    if row.get("State", "UP") != "UP":
        yield f"partition {name} is {row['State']}"
    if (number(job["time_limit"]) or 0) * 60 > clock(row.get("MaxTime", "UNLIMITED")):
        yield f"longer than MaxTime={row['MaxTime']} of {name}"
    fewest, most = row.get("MinNodes", "0"), row.get("MaxNodes", "UNLIMITED")
    asked = max(len(at), number(job["max_nodes"]) or 0)  # Slurm takes -N 2-4 for 4 here
    if len(at) < int(fewest) or (most.isdigit() and asked > int(most)):
        yield f"{len(at)} nodes; {name} takes {fewest} to {most}"
    for key, mine in (("Accounts", job["account"]), ("Qos", job["qos"])):
        allowed, denied = row.get(f"Allow{key}", "ALL"), row.get(f"Deny{key}", "")
        if mine in names(denied) or (allowed != "ALL" and mine not in names(allowed)):
            yield f"{name} is not open to {mine}"
    if row.get("ReqResv") == "YES" and not job.get("resv_name"):
        yield f"{name} asks for a reservation"


def has_features(text: str | None, nodes: list[Node]) -> bool:
    """Return whether nodes have the features of ``a&(b|c)``, or of ``[a|b]`` or ``[a*2&b*1]``."""
    text = (text or "").strip()
    if text.startswith("[") and text.endswith("]"):
        parts = text[1:-1]
        if "*" in parts:
            counted = [part.split("*") for part in parts.split("&")]
            return all(sum(n in node.features for node in nodes) >= int(k) for n, k in counted)
        return any(all(one in node.features for node in nodes) for one in parts.split("|"))
    code = {"&": " and ", ",": " and ", "|": " or ", "!": " not ", "(": "(", ")": ")"}
    words = re.findall(r"[^&|()!,\s]+|[&|()!,]", text)
    said = ["".join(code.get(w) or str(w in node.features) for w in words) for node in nodes]
    return all(eval(each or "True", {"__builtins__": {}}) for each in said)


@dataclass(frozen=True)
class Share:
    """What a job takes of one node."""

    cores: int
    memory: int
    gres: Counter[Kind]

    def __str__(self) -> str:
        kinds = [f"{count} {_name(kind)}" for kind, count in self.gres.items()]
        return ", ".join((f"{self.cores} cores", f"{self.memory} MB", *kinds))


def _name(kind: Kind) -> str:
    return ":".join(filter(None, kind))


class Division:
    """The way Slurm divides a job: the least to each node, then all that the first ones hold."""

    def __init__(self, cluster: Captured, job: Record, partition: str) -> None:
        row = cluster.partitions[partition]
        self.job = job
        self.tasks = number(job["tasks"]) or 1
        self.per_node = number(job.get("tasks_per_node")) or 0
        # 22.05 has no CPUs of a task, but those of all
        all_cpus = number(job.get("cpus")) or 1
        self.cpus = number(job.get("cpus_per_task")) or max(1, all_cpus // self.tasks)
        self.least_cpus = number(job.get("minimum_cpus_per_node")) or 1
        self.of_node = gres(job.get("tres_per_node"))
        self.of_task = gres(job.get("tres_per_task"))
        of_job = gres(job.get("tres_per_job"))
        self.of_job = Counter({kind: n for kind, n in of_job.items() if kind not in self.of_node})
        self.exclusive = cluster.exclusive(job, partition)
        self.cores_alone = number(job.get("threads_per_core")) == 1
        self.core_each = number(job.get("tasks_per_core")) == 1
        self.cpus_per_gpu = gres(job.get("cpus_per_tres")).total() or _default(row, "DefCpuPerGPU")
        self.counted = "MEMORY" in cluster.config.get("SelectTypeParameters", "MEMORY").upper()
        self._memory(row)

    def _memory(self, row: dict[str, str]) -> None:
        """Set the memory per CPU or per node, and the default per GPU, which must be free, too."""
        job = self.job
        self.per_cpu, self.fixed = number(job["memory_per_cpu"]), number(job["memory_per_node"])
        gpus = {name for part in (self.of_node, self.of_task, self.of_job) for name, _ in part}
        asked = gres(job.get("memory_per_tres")).total()
        self.per_gpu = asked or ("gpu" in gpus and _default(row, "DefMemPerGPU")) or 0
        stated = {"JOB_MEM_SET", "EXACT_MEMORY_REQUESTED"} & set(listed(job.get("flags")))
        whole = re.search(r"mem=([\d.]+[A-Z]?)", job.get("tres_req_str") or "")
        if self.per_gpu and stated:  # --mem beside a default per GPU, which JSON shows instead
            if self.fixed and whole:
                self.fixed = amount(whole[1]) // amount("1M") // (number(job["node_count"]) or 1)
        elif self.per_gpu:
            self.per_cpu = self.fixed = None
        self.all_memory = not (self.per_cpu or self.fixed or self.per_gpu)

    def share(self, node: Node, tasks: int, own: Counter[Kind]) -> Share:
        """Return the share of a node that some tasks and GPUs of the job take."""
        taken = Counter(self.of_node) + own
        taken += Counter({kind: count * tasks for kind, count in self.of_task.items()})
        gpus = sum(count for (name, _), count in taken.items() if name == "gpu")
        cpus = max(tasks * self.cpus, gpus * self.cpus_per_gpu, self.least_cpus)
        cores = cpus if self.cores_alone else -(-cpus // node.threads)
        cores = max(cores, tasks if self.core_each else 0, node.cores if self.exclusive else 0)
        whole_cores = max(cpus, -(-cpus // node.threads) * node.threads)
        memory = max(self.fixed or (self.per_cpu or 0) * whole_cores, gpus * self.per_gpu)
        memory = node.whole_memory if self.all_memory else memory
        return Share(cores, memory if self.counted else 0, taken)

    def divide(self, at: list[Node]) -> dict[str, Share] | str:
        """Return the share of each node, or in words the shortage."""
        least = min(self.per_node or 1, max(1, self.tasks // len(at)))
        tasks = {node.name: least for node in at}
        own = {node.name: Counter(dict.fromkeys(self.of_job, 1)) for node in at}

        def holds(node: Node) -> bool:
            share = self.share(node, tasks[node.name], own[node.name])
            room = share.cores <= node.cores and share.memory <= node.memory
            return room and all(n <= node.free(kind) for kind, n in share.gres.items())

        for node in at:
            if not holds(node):
                share = self.share(node, tasks[node.name], own[node.name])
                left = Share(node.cores, node.memory, node.gres)
                return f"{node.name} has {left}; {share} needed"
        for kind, count in self.of_job.items():
            lacking = _fill(at, count - len(at), lambda node: own[node.name], kind, holds)
            if lacking > 0:
                return f"its nodes lack {lacking} {_name(kind)}"
        wide = [node for node in at if not self.per_node or tasks[node.name] < self.per_node]
        lacking = _fill(
            *(wide, self.tasks - least * len(at), lambda _: tasks, "", holds), most=self.per_node
        )
        if lacking > 0:
            return f"its nodes lack room for {lacking} tasks"
        shares = {node.name: self.share(node, tasks[node.name], own[node.name]) for node in at}
        return self._with_surplus(shares, at) if self.of_job and self.cpus_per_gpu else shares

    def _with_surplus(self, shares: dict[str, Share], at: list[Node]) -> dict[str, Share]:
        """Return shares with the CPUs that Slurm takes beside those of the GPUs, if they are free.

        Version 24.11 gives each node as many as the one with most GPUs, 22.05 the first the rest.
        """
        most, total = max(s.cores for s in shares.values()), sum(s.cores for s in shares.values())
        if isinstance(self.job["job_state"], str):
            first = at[0].name
            rest = max(most, total - (len(at) - 1) * self.cpus_per_gpu // at[0].threads)
            wanted = {name: rest if name == first else s.cores for name, s in shares.items()}
        else:
            wanted = dict.fromkeys(shares, most)
        free = {node.name: node.cores for node in at}
        return {
            name: replace(share, cores=max(share.cores, min(wanted[name], free[name])))
            for name, share in shares.items()
        }


def _fill(
    at: list[Node], rest: int, given: Callable, kind: Kind | str, holds: Callable, most: int = 0
) -> int:
    """Give nodes all they hold, one after the other, and return what is left over."""
    for node in at:
        amounts, key = given(node), kind or node.name
        while rest > 0 and (not most or amounts[key] < most):
            amounts[key] += 1
            if not holds(node):
                amounts[key] -= 1
                break
            rest -= 1
    return rest


def _default(row: dict[str, str], name: str) -> int:
    found = re.search(rf"{name}=(\d+)", row.get("JobDefaults", ""))
    return int(found[1]) if found else 0
