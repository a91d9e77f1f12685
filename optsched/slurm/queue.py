"""The queue of Slurm, as ``squeue --json`` writes it, and the factors of its priorities."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, TypeAlias

from optsched.errors import InputError
from optsched.files import MOST, read_bytes
from optsched.numbers import counted, whole_number
from optsched.sites.job_request import JobRequest
from optsched.sites.slurm_files import (
    NO_VALUE,
    RecordFields,
    captured_file,
    captured_time,
    lines_of,
    on_several_lines,
    read_dump,
    read_text,
)
from optsched.sites.slurm_notation import (
    Shares,
    gres,
    hosts,
    read_together,
    seconds,
    shares_in_use,
    tres,
)

LAST_WITH_SHARED = 44
"""Last version of the data parser that says which jobs are exclusive; version 45 is silent."""

VERSION_OF_FIELDS = 38  # version of Slurm 22.05, whose fields of memory are never those of the GPUs

MEMORY_STATED = ("JOB_MEM_SET", "EXACT_MEMORY_REQUESTED")
"""Flags of a job that states its memory, of each node or of each core."""

WITH_UNSTATED_SEGMENTS = range(40, 43)
"""Versions of the data parser that do not state segments, of releases that have them."""

FIRST_WITH_SPREAD = 44
"""First version that says whether a job asks each of its segments of another block."""

SAME_NODE = ("node", "none")  # what Slurm writes for jobs that share their nodes with no other job

MOST_TASKS = 4_000_001
"""Most tasks of a job array that Slurm can be configured for; of all arrays of a queue, too."""

UNSTATED = {
    "exclusive": "whether {} {} exclusive",
    "switches": "the switches of {}",
    "planned_nodes": "the planned nodes of {}",
    "allocations.gres": "the allocated GPUs and other generic resources of {}",
}
"""What a dump may not state of jobs, by field of `QueuedJob`."""

ENDED = frozenset(
    (
        *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL"),
        *("OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "TIMEOUT"),
    )
)
"""States of jobs that have ended."""

# parts of a line of a job, with their neighbours: names and paths of users may hold anything
_JOB = re.compile(r"JobId=([0-9]{1,10})\b")
_SHARING = re.compile(
    r" OverSubscribe=(?P<shared>\S+)(?: Exclusive=(?P<exclusive>\S+))? Contiguous="
)
_SWITCHES = re.compile(r" Switches=([0-9]{1,9})(?:@(\S+))?(?!\S)")
_PLANNED = re.compile(r" SchedNodeList=(\S+) NumNodes=")

_PARTS = re.compile("[^,]+|(?<![^,])(?![^,])")
_TASKS = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9})(?::([0-9]{1,9}))?)?")


@dataclass(frozen=True, kw_only=True)
class Allocation:
    """What a running job has on one node."""

    node: str
    cores: int  # physical cores, of one or more threads each
    memory: int
    gres: Mapping[str, int]  # generic resources, by ``gpu`` and by ``gpu:TYPE``
    shares: tuple[Shares, ...] = ()


@dataclass(frozen=True, kw_only=True)
class QueuedJob(JobRequest):
    """A record of the queue: a job, or the tasks of a job array that are still pending together.

    Texts are empty and times are None where Slurm states nothing. Times are in seconds since 1970,
    memory is in MB, and a core is what Slurm calls a CPU: a hardware thread of the node.
    """

    job_id: int
    array_id: int = 0  # number of the job array, 0 for a job of no array
    # Indices of the tasks that the record stands for, empty for a job of no array
    array_tasks: tuple[int, ...] = ()
    array_limit: int = 0  # most tasks of the array that may run at once, 0 for no limit
    # Numbers of the heterogeneous job and of this part, ``31+1``; empty for a job of its own
    part_of: str = ""
    name: str = ""
    user: str = ""
    account: str = ""
    qos: str = ""
    association: int = 0  # number of the association of user and account, 0 where none is stated
    # Partitions in which the job may run, in the order in which Slurm tries them
    partitions: tuple[str, ...] = ()
    state: str = "PENDING"  # state, such as ``PENDING``
    flags: tuple[str, ...] = ()  # further words of the state, such as ``REQUEUED``
    reason: str = ""  # why the job waits, such as ``Priority``
    held: bool = False  # whether the job is held
    # Times of submission, from which the job may start (``--begin``), of the start and of the
    # end at the time limit; the last two are planned ones for a pending job
    submit: int | None = None
    eligible: int | None = None
    start: int | None = None
    end: int | None = None
    # When the job was last suspended or resumed, in seconds since 1970
    suspended: int | None = None
    ran: int = 0  # seconds for which the job ran before it was last suspended
    # Time limit in seconds, infinity for none; None for that of the partition
    limit: float | None = None
    least_time: int = 0  # seconds that suffice in place of the time limit, 0 for none
    deadline: int | None = None  # when the job must have ended
    shown_nodes: int = 1  # the number that squeue shows, an estimate where the job leaves it open
    preferred: str = ""  # features that nodes should have
    # Nodes that the job must and must not have
    required: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    mcs_label: str = ""  # label of multi-category security (MCS), by which jobs may share nodes
    # As Slurm writes them
    dependency: str = ""
    reservation: str = ""
    switches: int = 0  # most leaf switches, 0 for no limit
    switches_wait: float = 0  # for how many seconds the job waits for nodes on so few switches
    # Number of nodes of each segment, which one block holds, 0 for no segments; None where
    # the dump does not say it
    segment: int | None = 0
    segments_together: bool = False  # whether one larger block holds all segments
    other: tuple[str, ...] = ()  # in words, what the job asks for beside these fields
    # What Slurm counts of a running job, or expects of a pending one, against limits:
    # ``cpu``, ``mem`` in MB, ``node``, ``gres/gpu`` and others
    tres: Mapping[str, int] = field(default_factory=dict)
    priority: int = 0
    # Whether an operator has set the priority, which then grows with no age and heeds no nice,
    # or the time limit, which is then bound by none of its partition
    priority_by_operator: bool = False
    limit_by_operator: bool = False
    nice: int = 0  # what the user takes off the priority
    comment: str = ""
    # Whether Slurm can requeue the job: a batch job of a user who does not mind
    requeues: bool = False
    planned_nodes: tuple[str, ...] = ()  # nodes on which Slurm plans to start the job at `start`
    allocations: tuple[Allocation, ...] = ()  # what a running job has on each of its nodes

    @property
    def has_nodes(self) -> bool:
        """Whether the job is on its nodes; those of an ended job are kept until it is completed."""
        if "COMPLETING" in (self.state, *self.flags):
            return True
        return self.state != "PENDING" and self.state not in ENDED

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the nodes of a running job."""
        return tuple(each.node for each in self.allocations)

    @property
    def is_suspended(self) -> bool:
        """Whether the job is suspended: it has memory and GPUs, but no cores and no end."""
        return self.state == "SUSPENDED"

    def has_run(self, time: int) -> int:
        """Return for how many seconds the job has run until a time, unless it is suspended."""
        since = self.suspended or self.start
        if self.is_suspended or since is None:
            return self.ran
        return self.ran + max(0, time - since)

    @property
    def label(self) -> str:
        """The number as Slurm writes it: ``17``, or ``17_[0-3]`` for tasks of an array."""
        if not self.array_id:
            return str(self.job_id)
        if len(self.array_tasks) == 1:
            return f"{self.array_id}_{self.array_tasks[0]}"
        return f"{self.array_id}_[{_ranges(self.array_tasks)}]"


@dataclass(frozen=True, eq=False)
class SlurmQueue:
    """The jobs of a cluster at one time."""

    jobs: tuple[QueuedJob, ...]  # the records, in the order of the file
    time: int | None  # when the queue was written, in seconds since 1970
    version: int  # version of the data parser
    path: Path
    # For each field of `QueuedJob` that the dump does not state, the number of jobs concerned
    missing: Mapping[str, int]

    @cached_property
    def pending(self) -> tuple[QueuedJob, ...]:
        """The jobs that wait."""
        return tuple(job for job in self.jobs if job.state == "PENDING")

    @property
    def notes(self) -> tuple[str, ...]:
        """What the dump does not state, counted."""
        found = []
        for name, number in self.missing.items():
            text = UNSTATED[name].format(counted(number, "job"), "is" if number == 1 else "are")
            found.append(f"the queue does not state {text}")
        return tuple(found)

    @cached_property
    def running(self) -> tuple[QueuedJob, ...]:
        """The jobs that have nodes, suspended and completing ones included."""
        return tuple(job for job in self.jobs if job.allocations and job.has_nodes)


@read_together()
def read_queue(path: str | Path) -> SlurmQueue:
    """Return the queue that a file or a folder holds.

    `path`: what ``squeue --json`` wrote, plain or gzip; or a folder with ``squeue.json``, and
    perhaps with ``jobs.txt``, what ``scontrol show jobs --oneliner --detail`` wrote, which states
    what the JSON of some versions does not: the switches and the planned nodes of version 38, the
    exclusive jobs of version 45.
    """
    path = Path(path)
    folder = path if path.is_dir() else None
    file = captured_file(folder, "squeue.json") if folder else path
    if file is None:
        is_empty = (path / "squeue.json").exists()
        what = "squeue.json is empty" if is_empty else "no squeue.json"
        raise InputError(f"{what}; expected what squeue --json writes", file=path)
    dump = read_dump(file, "jobs", written_by="squeue")
    texts_file = captured_file(folder, "jobs.txt") if folder else None
    complete = dump.version <= LAST_WITH_SHARED and all(
        "required_switches" in record for record in dump.records
    )
    texts = {} if texts_file is None or complete else _texts(texts_file)
    missing: Counter[str] = Counter()
    jobs: dict[int, QueuedJob] = {}
    tasks = 0
    for record in dump.fields:
        job = _job(record, texts, missing)
        if job.job_id in jobs:
            raise record.wrong("job_id", "every job once")
        jobs[job.job_id] = job
        tasks += len(job.array_tasks)
        if tasks > MOST_TASKS:
            expected = f"at most {MOST_TASKS:,} tasks of all job arrays"
            raise record.wrong("array_task_string", expected)
    time = dump.time
    if time is None and folder:
        time = captured_time(folder)
    return SlurmQueue(tuple(jobs.values()), time, dump.version, file, dict(missing))


class _Text(NamedTuple):
    """What the text of a job says and the JSON of some versions does not."""

    exclusive: str | None = None
    switches: int = 0
    switches_wait: float = 0
    planned_nodes: tuple[str, ...] = ()


def _job(record: RecordFields, texts: Mapping[int, _Text], missing: Counter[str]) -> QueuedJob:
    job_id = record.count("job_id")
    if not job_id:
        raise record.wrong("job_id", "the number of a job")
    state, *flags = record.words("job_state") or ("",)
    if not state:
        raise record.wrong("job_state", "a state such as PENDING")
    tasks, per_task = record.count("tasks") or 1, record.count("cpus_per_task", short=True)
    asked = record.parsed("tres_req_str", tres)
    cores, count = record.count("cpus"), record.count("node_count")
    least_nodes = asked.get("node") or count or 1  # of a range, node_count is the upper limit
    memory_per_node, memory_per_core, memory_per_gpu = _memory(record, asked, least_nodes)
    array_id, array_tasks = _array(record, job_id)
    stated = _stated(record, texts.get(job_id), missing)
    priority, whole = record.count("priority"), record.count("het_job_id")
    limit = record.number("time_limit")
    is_silent = record.dump.version in WITH_UNSTATED_SEGMENTS
    states_segment = "segment_size" in record.fields or not is_silent
    return QueuedJob(
        job_id=job_id,
        array_id=array_id,
        array_tasks=array_tasks,
        array_limit=record.count("array_max_tasks"),
        part_of=f"{whole}+{record.count('het_job_offset')}" if whole else "",
        name=record.text("name"),
        user=record.text("user_name"),
        account=record.text("account"),
        qos=record.text("qos"),
        association=record.count("association_id"),
        partitions=tuple(part for part in record.text("partition").split(",") if part),
        state=state,
        flags=tuple(flags),
        reason=record.text("state_reason"),
        held=record.flag("hold") or (state == "PENDING" and not priority),
        submit=record.instant("submit_time"),
        eligible=record.instant("eligible_time"),
        start=record.instant("start_time"),
        end=record.instant("end_time"),
        suspended=record.instant("suspend_time"),
        ran=record.count("pre_sus_time"),
        limit=None if limit is None else 60 * limit,
        least_time=60 * record.count("time_minimum"),
        deadline=record.instant("deadline"),
        least_nodes=least_nodes,
        shown_nodes=count,
        most_nodes=record.count("max_nodes"),
        tasks=tasks,
        # version 38 never states the cores of a task
        cores_per_task=per_task or max(1, -(-cores // tasks)),
        tasks_per_node=record.count("tasks_per_node", short=True),
        least_cores=record.count("minimum_cpus_per_node"),
        memory_per_node=memory_per_node,
        memory_per_core=memory_per_core,
        per_node=record.parsed("tres_per_node", _gres),
        per_task=record.parsed("tres_per_task", _gres),
        per_job=record.parsed("tres_per_job", _gres),
        cores_per_gpu=record.parsed("cpus_per_tres", gres).get("gpu", 0),
        memory_per_gpu=memory_per_gpu,
        threads_per_core=record.count("threads_per_core", short=True),
        constraint=record.text("features"),
        preferred=record.text("prefer"),
        required=record.parsed("required_nodes", hosts),
        excluded=record.parsed("excluded_nodes", hosts),
        mcs_label=record.text("mcs_label"),
        licences=record.text("licenses"),
        dependency=record.text("dependency"),
        reservation=record.text("resv_name"),
        segment=record.count("segment_size", short=True) if states_segment else None,
        segments_together="CONSOLIDATE_SEGMENTS" in record.words("flags"),
        other=tuple(_other(record)),
        tres=record.parsed("tres_alloc_str", tres) or asked,
        priority=priority,
        # version 38 writes it without its sign
        nice=nice - 2**32 if 2**31 <= (nice := record.integer("nice")) < 2**32 else nice,
        comment=record.text("comment"),
        requeues=record.flag("requeue") and record.flag("batch_flag"),
        allocations=_allocations(record, missing),
        **stated._asdict(),
    )


def _stated(record: RecordFields, text: _Text | None, missing: Counter[str]) -> _Text:
    """Return the values of fields in the JSON of a job, or in its text."""
    exclusive = text.exclusive if text else None
    if record.dump.version <= LAST_WITH_SHARED:
        words = record.words("shared")
        exclusive = _exclusive(words[0]) if words else ""
    if exclusive is None:
        missing["exclusive"] += 1
    if "required_switches" in record.fields:
        return _Text(
            exclusive,
            record.count("required_switches"),
            record.count("maximum_switch_wait_time"),
            record.parsed("scheduled_nodes", hosts),
        )
    if text is None:
        missing["switches"] += 1
        missing["planned_nodes"] += 1
    return (text or _Text())._replace(exclusive=exclusive)


def _exclusive(word: str) -> str:
    """Return with what a job shares its nodes, from a word of ``shared`` or ``Exclusive``."""
    word = word.lower()
    if word in SAME_NODE:
        return "node"
    return word if word in ("user", "mcs", "topo") else ""


def _memory(
    record: RecordFields, asked: Mapping[str, int], nodes: int
) -> tuple[int | None, int | None, int]:
    """Return the memory of each node, or of each core, and of each GPU."""
    of_node, of_core = _optional(record, "memory_per_node"), _optional(record, "memory_per_cpu")
    of_gpu = record.parsed("memory_per_tres", gres).get("gpu", 0)
    stated = not {*record.words("flags")}.isdisjoint(MEMORY_STATED)
    stated |= record.dump.version > VERSION_OF_FIELDS and of_node not in (None, 0, of_gpu)
    if of_gpu and not stated:
        return None, None, of_gpu
    if of_gpu and of_node == of_gpu and "mem" in asked:  # shown in the place of what the job states
        of_node = -(-asked["mem"] // nodes)
    if of_node is None and of_core is None and not of_gpu:
        of_node = 0  # which version 38 does not state
    return of_node, of_core, of_gpu


def _optional(record: RecordFields, field: str) -> int | None:
    return None if record.number(field) in (None, math.inf) else record.count(field)


def _gres(text: str) -> dict[str, int]:
    """Return the generic resources of a request, without the cores that it may name too."""
    found = gres(text)
    return {name: count for name, count in found.items() if name not in ("cpu", "mem") and count}


def _array(record: RecordFields, job_id: int) -> tuple[int, tuple[int, ...]]:
    """Return the number of the job array and the tasks of the record."""
    pending = record.parsed("array_task_string", _tasks)
    task = record.number("array_task_id")
    array_id = record.count("array_job_id")
    if pending:
        return array_id or job_id, pending
    return (array_id, (int(task),)) if array_id and task is not None else (0, ())


def _tasks(text: str) -> tuple[int, ...]:
    """Return the tasks of ``0-7:2,9%4``; of a list that Slurm cut short, those that it names."""
    listed = text.partition("%")[0].strip("[]")
    tasks: list[int] = []
    for part in _PARTS.finditer(listed) if listed else ():
        if part[0] == "...":
            break
        found = _TASKS.fullmatch(part[0])
        if found is None:
            raise InputError(f"{text!r}; expected tasks of a job array such as 0-7%2")
        first, last, step = int(found[1]), int(found[2] or found[1]), int(found[3] or 1)
        tasks_of_part = range(first, last + 1, step or 1)
        if not step or len(tasks) + len(tasks_of_part) > MOST_TASKS:
            raise InputError(f"{text!r}; expected at most {MOST_TASKS:,} tasks")
        tasks += tasks_of_part
    return tuple(tasks)


def _ranges(tasks: tuple[int, ...]) -> str:
    """Return ascending numbers as ``0-3,7``."""
    runs: list[list[int]] = []
    for task in tasks:
        if runs and runs[-1][1] == task - 1:
            runs[-1][1] = task
        else:
            runs.append([task, task])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def _other(record: RecordFields) -> Iterator[str]:
    """Yield in words what a job asks beyond the fields of `QueuedJob`."""
    counted = {
        "het_job_id": "it is part of a heterogeneous job",
        "minimum_tmp_disk_per_node": "it asks for temporary disk space",
        "sockets_per_node": "it asks for a number of sockets",
        "cores_per_socket": "it asks for a number of cores of a socket",
        "tasks_per_socket": "it limits the tasks on a socket",
        "tasks_per_core": "it limits the tasks on a core",
        "core_spec": "it asks for specialized cores",
        "thread_spec": "it asks for specialized threads",
    }
    stated = {
        "tres_per_socket": "it asks for resources of each socket",
        "burst_buffer": "it asks for a burst buffer",
        "batch_features": "it asks for features of the node of its script",
        "cluster_features": "it asks for features of a cluster",
        "network": "it asks for resources of the network",
    }
    true = {
        "contiguous": "it asks for adjacent nodes",
        "reboot": "it asks for a reboot of its nodes",
    }
    yield from (words for field, words in counted.items() if record.count(field, short=True))
    yield from (words for field, words in stated.items() if record.text(field))
    yield from (words for field, words in true.items() if record.flag(field))
    flags = record.words("flags")
    if record.count("segment_size", short=True):
        if record.dump.version < FIRST_WITH_SPREAD:
            yield "it asks for segments, perhaps each of another block"
        elif "SPREAD_SEGMENTS" in flags:
            yield "it asks for each segment of another block"
    if 0 < record.count("cpus") < (record.count("tasks") or 1) or "OVERCOMMIT" in flags:
        yield "its tasks share cores (--overcommit)"


def _allocations(record: RecordFields, missing: Counter[str]) -> tuple[Allocation, ...]:
    resources = record.fields.get("job_resources")
    if not resources:
        return ()
    expected = "nodes with their cores and memory"
    try:
        if "allocated_nodes" in resources:
            nodes = resources["allocated_nodes"]
            names = [node["nodename"] for node in nodes]
            memory = [node["memory_allocated"] for node in nodes]
            sockets = [node["sockets"].values() for node in nodes]
            cores = [sum(len(one["cores"]) for one in its) for its in sockets]
        else:
            nodes = resources["nodes"]["allocation"]
            names = [node["name"] for node in nodes]
            memory = [node["memory"]["allocated"] for node in nodes]
            stated = [
                [core["status"] for one in node["sockets"] for core in one["cores"]]
                for node in nodes
            ]
            cores = [sum("ALLOCATED" in status for status in its) for its in stated]
    except (KeyError, TypeError, AttributeError):
        raise record.wrong("job_resources", expected) from None
    if not all(type(name) is str for name in names) or not all(
        type(each) is int and 0 <= each < NO_VALUE for each in memory
    ):
        raise record.wrong("job_resources", expected)
    try:
        texts = record.words("gres_detail")
        there = [(gres(text), tuple(shares_in_use(text))) for text in texts]
    except InputError:
        raise record.wrong("gres_detail", "a list such as gpu:a100:2(IDX:0-1)") from None
    if there and len(there) != len(names):
        missing["allocations.gres"] += 1
        there = []
    there = there or [({}, ())] * len(names)
    return tuple(
        Allocation(node=node, cores=count, memory=most, gres=has, shares=shares)
        for node, count, most, (has, shares) in zip(names, cores, memory, there)
    )


def _texts(path: Path) -> dict[int, _Text]:
    """Return the fields on the line of each job, by the number of the job.

    Comments may have line breaks: lines that do not begin like a job continue the one before, and
    if a number is there twice, neither is believed, as one is the text of a user.
    """
    found: dict[int, _Text] = {}
    twice = set()
    text = read_bytes(path)[0].decode("utf-8", errors="replace")
    before = ""
    for place, line in lines_of(text, path, MOST):
        if said := on_several_lines(before, line):
            raise InputError(said, file=path, line=place)
        before = line
        if not line.strip() or (found and not _JOB.match(line)):
            continue
        try:
            job_id, stated = _line(line)
        except InputError as error:
            raise InputError(*error.mistakes, file=path, line=place, field=error.field) from None
        if job_id in found:
            twice.add(job_id)
        found[job_id] = stated
    return {job_id: stated for job_id, stated in found.items() if job_id not in twice}


def _line(line: str) -> tuple[int, _Text]:
    """Return the number of a job, and what its line states."""
    job_id = _JOB.match(line)
    if job_id is None:
        raise InputError("expected a line of a job", field="JobId")
    sharing = _SHARING.search(line)
    stated = (sharing["exclusive"] or sharing["shared"]) if sharing else ""
    # OverSubscribe=NO means an exclusive job, unless Exclusive is stated beside it
    exclusive = None if sharing is None else _exclusive(stated)
    if sharing and stated == "NO" and not sharing["exclusive"]:
        exclusive = "node"
    switches = _SWITCHES.findall(line)[-1:]
    planned = _PLANNED.search(line)
    field = "SchedNodeList"
    try:
        nodes = hosts(planned[1]) if planned else ()
        field = "Switches"
        wait = seconds(switches[0][1]) if switches and switches[0][1] else 0
    except InputError as error:
        raise InputError(*error.mistakes, field=field) from None
    return int(job_id[1]), _Text(exclusive, int(switches[0][0]) if switches else 0, wait, nodes)


FACTORS = {
    "SITE": "site",
    "AGE": "age",
    "ASSOC": "association",
    "FAIRSHARE": "fair share",
    "JOBSIZE": "job size",
    "PARTITION": "partition",
    "QOS": "QOS",
    "NICE": "nice",
    "TRES": "TRES",
}
"""Words for the columns of ``sprio``, all of which are weighted."""

_OF_TRES = re.compile(r"=([0-9]{1,15}(?:\.[0-9]{1,9})?)(?=,|$)")

Factors: TypeAlias = Mapping[int, Mapping[str, int]]
"""The weighted factors of each pending job by its number."""


def read_factors(folder: Path) -> Factors:
    """Return the factors in a folder with captured output of Slurm; none without ``sprio.txt``."""
    path = captured_file(folder, "sprio.txt")
    if path is None:
        return {}
    header, *lines = read_text(path).splitlines() or [""]
    names = header.split()
    if "JOBID" not in names or "PRIORITY" not in names:
        raise InputError("no JOBID and PRIORITY; expected what sprio -l writes", file=path, line=1)
    # the partition has a name and a factor, and the last columns may be empty
    numbers = [place for place, name in enumerate(names) if name in FACTORS]
    first = names.index("PRIORITY")
    found: dict[int, Mapping[str, int]] = {}
    for number, line in enumerate(lines, 2):
        words = line.split()
        if not words:
            continue
        job = whole_number(words[0])
        if job is None:
            mistake = f"{words[0]!r}; expected the number of a job"
            raise InputError(mistake, file=path, line=number, field="JOBID")
        factors: dict[str, int] = {}
        for place in numbers:
            word = words[place] if first < place < len(words) else ""
            if (value := whole_number(word.lstrip("-"))) is not None:
                sign = -1 if names[place] == "NICE" else 1
                factors[FACTORS[names[place]]] = sign * value
            elif each := _OF_TRES.findall(word):
                factors[FACTORS[names[place]]] = round(sum(map(float, each)))
        found[job] = factors
    return found


def behind_by(
    job: QueuedJob, others: Iterable[QueuedJob], factors: Factors
) -> list[tuple[str, int]]:
    """Return by how much jobs before another are ahead in each factor on average, most first."""
    own = factors.get(job.job_id)
    there = [factors[each.job_id] for each in others if each.job_id in factors]
    if own is None or not there:
        return []
    mean = {
        name: sum(each.get(name, 0) for each in there) / len(there) - own.get(name, 0)
        for name in FACTORS.values()
    }
    found = [(name, round(ahead)) for name, ahead in mean.items() if round(ahead) > 0]
    return sorted(found, key=lambda pair: -pair[1])


def set_by_operator(job: QueuedJob, factors: Factors) -> bool:
    """Return whether an operator has set the priority of a job: Slurm then shows no factors."""
    own = factors.get(job.job_id)
    return own is not None and job.priority > 1 and not any(own.values())
