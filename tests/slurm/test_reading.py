"""What is read of a captured folder: the queue, the nodes, partitions and reservations."""

import math
import re

import numpy as np
import pytest

from optsched.errors import InputError
from optsched.sites.loading import read_reservations
from optsched.sites.parts import Reservation
from optsched.slurm.queue import read_queue
from optsched.slurm.supply import read_supply
from slurm.plan_checker import Captured, clock, hosts, pairs, text_of

from .conftest import ONE_NODE, supply

TEXTS = {"name": "JobName", "account": "Account", "qos": "QOS", "constraint": "Features"}
TEXTS |= {"licences": "Licenses", "dependency": "Dependency"}
NUMBERS = {"priority": "Priority", "nice": "Nice", "tasks": "NumTasks"}
NUMBERS |= {"cores_per_task": "CPUs/Task", "least_cores": "MinCPUsNode"}
LISTS = {"planned_nodes": "SchedNodeList", "excluded": "ExcNodeList", "required": "ReqNodeList"}


def value(line, key):
    return "" if line.get(key) in (None, "(null)", "None", "N/A", "*") else line[key]


def test_captured_requests_are_those_that_scontrol_prints(captured):
    folder, queue, _ = captured
    texts = text_of(folder, "jobs.txt").splitlines()
    lines = {int(line["JobId"]): (line, text) for line, text in zip(map(pairs, texts), texts)}
    compared = 0
    for job in queue.pending:
        line, text = lines[job.job_id]
        if line["JobState"] != "PENDING":  # started between the captures
            continue
        compared += 1
        most = re.fullmatch(r"\d+-(\d+)", line["NumNodes"])
        asked = line.get("ReqTRES") or line["TRES"]
        if tasks := line.get("ArrayTaskId"):
            label = f"{line['ArrayJobId']}_{tasks.partition('%')[0]}"
            assert job.label.replace("[", "").replace("]", "") == label
        expected = {
            "partitions": tuple(line["Partition"].split(",")),
            "user": line["UserId"].partition("(")[0],
            "limit": clock(line["TimeLimit"]),
            "least_nodes": int(re.search(r"node=(\d+)", asked)[1]),
            "most_nodes": int(most[1]) if most else 0,
            "tasks_per_node": int(line["NtasksPerN:B:S:C"].split(":")[0]),
            **{name: value(line, key) for name, key in TEXTS.items()},
            **{name: int(line[key]) for name, key in NUMBERS.items()},
            **{name: tuple(hosts(value(line, key))) for name, key in LISTS.items()},
        }
        assert {name: getattr(job, name) for name in expected} == expected
        if job.reason not in ("", "Priority", "Resources"):  # which have descriptions in the text
            assert job.reason == line["Reason"]
        whole = "Exclusive=NODE" if "Exclusive" in line else "OverSubscribe=NO"
        assert job.exclusive == ("node" if f" {whole} " in text else "")
        memory = re.search(r"MinMemory(CPU|Node)=([\d.]+)(M|G)", text)
        if memory and not job.memory_per_gpu:
            own = job.memory_per_core if memory[1] == "CPU" else job.memory_per_node
            assert own == float(memory[2]) * (1024 if memory[3] == "G" else 1)
        switches = re.search(r" Switches=(\d+)@(\S+)", text)
        assert job.switches == (int(switches[1]) if switches else 0)
        assert job.switches_wait == (clock(switches[2]) if switches else 0)
        assert bool(job.other) == (line["Contiguous"] == "1")
        for key, own in (("PerNode", job.per_node), ("PerJob", job.per_job)):
            stated = re.search(rf" Tres{key}=gres[:/](\S+)", text)
            name, _, count = stated[1].rpartition(":") if stated else ("", "", "0")
            assert own == ({name.split(":")[0]: int(count), name: int(count)} if name else {})
        assert job.held == line["Reason"].startswith("JobHeld")
    assert compared > 80


@pytest.mark.parametrize("version", [42, 43, 44, 45])
def test_all_versions_of_the_parser_state_the_same_jobs(shared, version):
    folder = shared("slurm/fixtures/26.05.5")
    whole = {job.job_id: job for job in read_queue(folder).jobs}
    queue = read_queue(folder / "parsers" / f"squeue.v{version}.json.gz")
    assert queue.version == version
    assert len(queue.jobs) == 12
    silent = version == 45
    assert queue.missing == ({"exclusive": 12} if silent else {})
    for job in queue.jobs:
        own, other = (vars(each).copy() for each in (job, whole[job.job_id]))
        if silent:
            assert own.pop("exclusive") is None
            other.pop("exclusive")
        if version == 42:
            assert own.pop("segment") is None
            other.pop("segment")
        for name in ("start", "end", "planned_nodes"):  # planned again between the two captures
            if job.state == "PENDING":
                own.pop(name), other.pop(name)
        assert own == other


def a(number, **more):
    return {"set": True, "infinite": False, "number": number} | more


LEAST = {"job_id": 7, "job_state": ["PENDING"], "required_switches": 0}
BY_GPU = {"memory_per_tres": "gpu:30000", "tres_req_str": "cpu=4,mem=600G,node=2,gres/gpu=8"}
BY_GPU_TOO = BY_GPU | {"flags": ["JOB_MEM_SET"]}
EXACT = BY_GPU | {"memory_per_node": a(30000), "flags": ["EXACT_MEMORY_REQUESTED"]}
ARRAY = {"array_job_id": a(7), "array_task_string": "0-6:2,9%2", "array_max_tasks": a(2)}
SEGMENT = {"segment_size": 4}
SPREAD, TOGETHER = SEGMENT | {"flags": ["SPREAD_SEGMENTS"]}, ["CONSOLIDATE_SEGMENTS"]


@pytest.mark.parametrize(
    ("version", "fields", "expected"),
    [
        (42, {"time_limit": a(720)}, {"limit": 43200}),
        (42, {"time_limit": a(0, infinite=True)}, {"limit": math.inf}),
        (42, {"time_limit": a(0, set=False)}, {"limit": None}),
        (38, {"time_limit": "UNLIMITED"}, {"limit": math.inf}),
        (38, {"time_limit": 2**32 - 1}, {"limit": math.inf}),
        (38, {"time_limit": 2**32 - 2}, {"limit": None}),
        (42, {"max_nodes": 2**32 - 2}, {"most_nodes": 0}),  # which stands for no value
        (42, {"max_nodes": 2**64 - 1}, {"most_nodes": 0}),
        (42, {"start_time": a(0), "eligible_time": a(5)}, {"start": None, "eligible": 5}),
        (42, {"core_spec": 2}, {"other": ("it asks for specialized cores",)}),
        (42, {"tasks_per_core": a(0, infinite=True)}, {"other": ()}),
        (42, {"het_job_id": a(7)}, {"other": ("it is part of a heterogeneous job",)}),
        (42, {"cpus": a(2), "tasks": a(4)}, {"other": ("its tasks share cores (--overcommit)",)}),
        (42, {"flags": ["OVERCOMMIT"]}, {"other": ("its tasks share cores (--overcommit)",)}),
        (42, {"contiguous": True}, {"other": ("it asks for adjacent nodes",)}),
        (43, SEGMENT, {"other": ("it asks for segments, perhaps each of another block",)}),
        (42, {}, {"segment": None}),
        (38, {}, {"segment": 0}),
        (44, SEGMENT, {"segment": 4, "segments_together": False, "other": ()}),
        (44, SPREAD, {"segment": 4, "other": ("it asks for each segment of another block",)}),
        (44, SEGMENT | {"flags": TOGETHER}, {"segments_together": True, "other": ()}),
        # the number of nodes of --nodes=1-2, and the estimate of --ntasks
        (42, {"node_count": a(2), "tres_req_str": "cpu=1,mem=62.50G,node=1"}, {"least_nodes": 1}),
        (42, {"node_count": a(2)}, {"least_nodes": 2, "shown_nodes": 2}),
        (38, {"node_count": 25, "tres_req_str": "node=1"}, {"least_nodes": 1, "shown_nodes": 25}),
        (38, {"cpus": 12, "tasks": 3, "cpus_per_task": None}, {"cores_per_task": 4}),
        (42, {"memory_per_node": a(0)}, {"memory_per_node": 0, "memory_per_core": None}),
        # --mem=0, and a job without memory where the site gives none by default
        (38, {"tres_req_str": "cpu=1,mem=62.50G,node=1"}, {"memory_per_node": 0}),
        (42, {}, {"memory_per_node": 0, "memory_per_core": None, "memory_per_gpu": 0}),
        # the default of a partition for each GPU, and --mem-per-gpu
        (38, BY_GPU | {"memory_per_cpu": 2000}, {"memory_per_node": None, "memory_per_gpu": 30000}),
        (42, BY_GPU | {"memory_per_node": a(30000)}, {"memory_per_gpu": 30000}),
        # beside --mem, which is in tres_req_str alone where the default takes its place
        (42, EXACT, {"memory_per_node": 307200, "memory_per_core": None, "memory_per_gpu": 30000}),
        (42, BY_GPU | {"memory_per_node": a(5000)}, {"memory_per_node": 5000}),
        (38, BY_GPU_TOO | {"memory_per_node": 2000}, {"memory_per_node": 2000}),
        (38, BY_GPU_TOO | {"memory_per_cpu": 700}, {"memory_per_core": 700}),
        (42, {"tres_per_task": "cpu=8,gres/gpu:a100=2"}, {"per_task": {"gpu": 2, "gpu:a100": 2}}),
        (42, {"tres_per_node": "gres/gpu:2"}, {"per_node": {"gpu": 2}}),
        (38, {"tres_per_node": "gres:gpu:a100:2"}, {"per_node": {"gpu": 2, "gpu:a100": 2}}),
        (42, {"cpus_per_tres": "gres/gpu:4"}, {"cores_per_gpu": 4}),
        (42, {"shared": ["none"]}, {"exclusive": "node"}),
        (42, {"shared": ["user"]}, {"exclusive": "user"}),
        (42, {"shared": []}, {"exclusive": ""}),
        (38, {"shared": "none"}, {"exclusive": "node"}),
        (45, {"shared": []}, {"exclusive": None}),
        (42, {"hold": True, "priority": a(5)}, {"held": True}),
        (42, {"priority": a(0)}, {"held": True}),
        (42, {"priority": a(9), "nice": -20}, {"held": False, "nice": -20, "priority": 9}),
        (38, {"nice": 2**32 - 50}, {"nice": -50}),  # as Slurm 22.05 writes it
        (42, {"job_state": ["PENDING", "REQUEUED"]}, {"flags": ("REQUEUED",)}),
        (42, ARRAY, {"array_id": 7, "array_tasks": (0, 2, 4, 6, 9), "array_limit": 2}),
        (42, {"array_task_string": "1-2,..."}, {"array_tasks": (1, 2)}),
        (42, {"het_job_id": a(31), "het_job_offset": a(1)}, {"part_of": "31+1"}),
        (42, {"array_job_id": a(7), "array_task_id": a(0)}, {"array_tasks": (0,)}),
        (42, {"array_job_id": a(0), "array_task_id": a(0)}, {"array_id": 0, "array_tasks": ()}),
        (42, {"scheduled_nodes": "c[01-02]"}, {"planned_nodes": ("c01", "c02")}),
    ],
)
def test_values_that_mislead_are_read_as_slurm_means_them(write_dump, version, fields, expected):
    (job,) = read_queue(write_dump(version, LEAST | fields)).jobs
    assert {name: getattr(job, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({"job_id": 6}, "job_id", r"record 2 \(6\): 6; expected every job once"),
        ({"job_id": None}, "job_id", "number of a job"),
        ({"job_state": []}, "job_state", "a state"),
        ({"tasks": a(-1)}, "tasks", "a number from 0"),
        ({"tasks": a(1.5)}, "tasks", "a whole number"),
        ({"tasks": True}, "tasks", "a number"),
        ({"tasks": 2**40}, "tasks", r"below 2\^32"),
        ({"node_count": "many", "tres_req_str": "node=2"}, "node_count", "'many'; expected a num"),
        ({"nice": -(10**30)}, "nice", "of 32 bits"),
        ({"hold": 1}, "hold", "true or false"),
        ({"partition": 3}, "partition", "a text"),
        ({"tres_req_str": "cpu"}, "tres_req_str", "names and amounts"),
        ({"tres_per_node": "gpu:::"}, "tres_per_node", "generic resources"),
        ({"excluded_nodes": "c[1-"}, "excluded_nodes", "a host list"),
        ({"array_task_string": "a-b"}, "array_task_string", "tasks of a job array"),
        ({"array_task_string": "0-999999999"}, "array_task_string", "at most"),
        ({"array_task_string": ",".join(["0-999999"] * 5)}, "array_task_string", "at most"),
        ({"job_resources": {"nodes": {"allocation": [{}]}}}, "job_resources", "nodes with"),
    ],
)
def test_malformed_fields_are_named(write_dump, fields, field, words):
    with pytest.raises(InputError, match=words) as error:
        read_queue(write_dump(42, {"job_id": 6, "job_state": ["PENDING"]}, LEAST | fields))
    assert error.value.field == field
    assert re.fullmatch(r".*squeue\.json.*record 2.*", str(error.value))


def test_the_text_states_what_the_json_does_not(write_dump):
    path = write_dump(38, *({"job_id": number, "job_state": "PENDING"} for number in (7, 8)))
    path.with_name("jobs.txt").write_text(
        "JobId=7 JobName=x Exclusive=NODE Switches=99 NodeList= SchedNodeList=c[1-2] NumNodes=2 "
        "OverSubscribe=NO Contiguous=0 StdOut=/a Switches=1@00:10:00 Power=\n"
    )
    path.with_name("now").write_text("1795367234\n")
    queue = read_queue(path.parent)
    assert queue.time == 1795367234
    assert queue.missing == {"switches": 1, "planned_nodes": 1}
    told, untold = queue.jobs
    assert (told.planned_nodes, told.switches, told.switches_wait) == (("c1", "c2"), 1, 600)
    assert (untold.planned_nodes, untold.switches) == ((), 0)


def test_exclusive_jobs_of_version_45_are_taken_from_the_text(write_dump):
    path = write_dump(45, LEAST)
    for stated, exclusive in (
        ("OverSubscribe=NO Exclusive=NO", ""),  # of Slurm 26.05, where NO stands for all jobs
        ("OverSubscribe=NO Exclusive=NODE", "node"),
        ("OverSubscribe=NO Exclusive=USER", "user"),
        ("OverSubscribe=NO", "node"),
        ("OverSubscribe=OK", ""),
    ):
        path.with_name("jobs.txt").write_text(f"JobId=7 JobName=x {stated} Contiguous=0\n")
        assert read_queue(path.parent).jobs[0].exclusive == exclusive, stated


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("jobs.txt", "\nJobName=7\n", "jobs.txt, line 2, JobId"),
        ("jobs.txt", "JobId=7 SchedNodeList=c[1 NumNodes=1", "line 1, SchedNodeList"),
        ("jobs.txt", "JobId=7 StdOut= Switches=1@soon Power=", "line 1, Switches"),
        ("now", "today", "now: 'today'; expected seconds since 1970"),
    ],
)
def test_malformed_texts_are_named(write_dump, name, text, words):
    path = write_dump(38, {"job_id": 7, "job_state": "PENDING"})
    path.with_name(name).write_text(text)
    with pytest.raises(InputError, match=words):
        read_queue(path.parent)


def test_comments_with_line_breaks_state_nothing_of_jobs(write_dump):
    path = write_dump(38, {"job_id": 7, "job_state": "PENDING"})
    for more, planned in (
        ("and more of it", ("c1",)),
        ("JobId=8 SchedNodeList=c9 NumNodes=1", ("c1",)),
        ("JobId=7 SchedNodeList=c9 NumNodes=1", ()),  # which of the two is Slurm's?
    ):
        lines = ("JobId=7 SchedNodeList=c1 NumNodes=1 Comment=text", more, "StdOut=/a")
        path.with_name("jobs.txt").write_text("\n".join(lines))
        assert read_queue(path.parent).jobs[0].planned_nodes == planned


def test_a_folder_without_a_queue_is_refused(tmp_path):
    with pytest.raises(InputError, match=r": no squeue\.json; expected"):
        read_queue(tmp_path)
    (tmp_path / "squeue.json").touch()
    with pytest.raises(InputError, match=r": squeue\.json is empty; expected"):
        read_queue(tmp_path)


def test_only_jobs_on_their_nodes_are_running(write_dump):
    there = {"nodes": {"allocation": [{"name": "c1", "sockets": [], "memory": {"allocated": 5}}]}}
    states = [["RUNNING"], ["SUSPENDED"], ["COMPLETED", "COMPLETING"], ["COMPLETED"], ["FAILED"]]
    records = [
        {"job_id": number, "job_state": state, "job_resources": there}
        for number, state in enumerate(states, 1)
    ]
    assert [job.job_id for job in read_queue(write_dump(42, *records)).running] == [1, 2, 3]


def test_columns_of_threads_bind_on_their_nodes_alone():
    there = supply()
    threads = np.array([2, 2, 2, 2, 1, 2, 2])
    assert (there.amounts[:, 4:] == there.free[:, :2] * threads[:, None]).all()


def test_nodes_on_no_switch_and_in_no_block_are_alone():
    there = supply()
    assert there.switches == (*("leaf1",) * 2, *("leaf2",) * 3, "none of g1", "none of g2")
    assert there.blocks[4:] == ("none of m1", "b1", "b1")


def test_what_does_not_match_the_site_is_refused():
    for field, value in (
        ("free", np.ones((6, 4), dtype=int)),
        ("free", -np.ones((7, 4), dtype=int)),
        ("threads", np.zeros(7, dtype=int)),
        ("busy", np.ones(6, dtype=bool)),
    ):
        with pytest.raises(InputError) as error:
            supply(**{field: value})
        assert error.value.field == field


def test_what_is_read_equals_an_independent_reading(captured):
    folder, _, there = captured
    told, site = Captured(folder), there.site
    assert {*site.nodes} == told.nodes.keys()
    for place, node in enumerate(map(told.nodes.get, site.nodes)):
        is_down, is_drained = "DOWN" in node.states, "DRAIN" in node.states
        assert site.states[place] == ("down" if is_down else "drained" if is_drained else "up")
        gpus = [node.free(("gpu", kind)) for kind in ("", "a100", "h100")]
        left = [node.cores * node.threads, node.memory, *gpus]
        assert there.free[place].tolist() == [0 if is_down or is_drained else n for n in left]
        assert {*site.features[place]} == node.features
        assert there.threads[place] == node.threads
        assert there.switches[place] == told.leaves.get(node.name, f"none of {node.name}")
    assert [each.name for each in site.partitions] == [*told.partitions]
    for part in site.partitions:
        row = told.partitions[part.name]
        assert {site.nodes[place] for place in part.nodes} == {*hosts(row["Nodes"])}
        assert (part.max_time, part.up) == (clock(row["MaxTime"]), row["State"] == "UP")
        assert part.max_nodes == float(row["MaxNodes"].replace("UNLIMITED", "inf"))
        assert part.priority_tier == int(row["PriorityTier"])
        assert part.exclusive == told.exclusive({}, part.name)
        assert part.topology == row.get("Topology", "")
    assert there.licences == told.licences
    kept = [(each.name, each.start, each.end, {*each.nodes}) for each in there.reservations]
    assert kept == [tuple(each.values()) for each in told.reservations]


def test_without_a_time_a_supply_is_refused_and_a_file_that_says_the_same_is_not_missed(tmp_path):
    (tmp_path / "nodes.txt").write_text(ONE_NODE)
    with pytest.raises(InputError, match="expected the file now"):
        read_supply(tmp_path)
    (tmp_path / "config.txt").write_text("Licenses = lab:3\n")
    (tmp_path / "topology.conf").write_text("SwitchName=s1 Nodes=c1\n")
    supply = read_supply(tmp_path, time=7)
    assert supply.time == 7
    assert supply.notes[0] == "1 licence (lab): taken as free, without licenses.json or .txt"
    assert not any("not known" in note for note in supply.notes)


def test_captured_reservations_are_the_same_in_all_files(shared):
    its = {"flags": ("MAINT", "IGNORE_JOBS", "SPEC_NODES"), "admits": {"users": ("root",)}}
    expected = Reservation(
        "maint", ("c01", "c02", "c03", "c04"), 1795371019, 1795378219, cores=64, **its
    )
    parsers = (f"parsers/reservations.v{version}.json.gz" for version in (42, 45))
    for name in ("reservations.json", "reservations.txt", *parsers):
        assert read_reservations(shared(f"slurm/fixtures/26.05.5/{name}")) == (expected,)
    assert read_reservations(shared("slurm/fixtures/24.11.5/reservations.txt")) == ()


def test_malformed_texts_and_fields_are_named(tmp_path, write_dump):
    path = tmp_path / "reservations.txt"
    for text, words in (
        ("\nNodes=c1", "line 2: expected a line of a reservation"),
        ("ReservationName=a StartTime=x Nodes=c[1 NodeCnt=1", "line 1, Nodes"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=words):
            read_reservations(path)
    path = write_dump(42, {"name": "maint", "node_list": "c[1-"}, key="reservations")
    with pytest.raises(InputError, match=r"node_list: record 1 \(maint\): .*expected a host list"):
        read_reservations(path)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ({"users": "-u1,-u2"}, "Users=-u1,-u2"),
        ({"accounts": "a1", "flags": ["FLEX", "SPEC_NODES"]}, "Flags=FLEX,SPEC_NODES Accounts=a1"),
        ({"groups": "staff"}, "Groups=staff Accounts=(null)"),
        ({"qos": "high", "allowed_partitions": "p,q"}, "AllowedPartitions=p,q QOS=high"),
        ({"core_count": 8}, "CoreCnt=8"),
        ({"licenses": "lab:2"}, "Licenses=lab:2 State=A"),
        ({"core_specializations": [{"node": "c1", "core": "0-7"}]}, "NodeName=c1 CoreIDs=0-7"),
        ({"tres": "cpu=8,gres/gpu=2"}, "TRES=cpu=8,gres/gpu=2"),
    ],
)
def test_json_and_text_say_the_same(write_dump, tmp_path, said, shown):
    record = {"name": "r", "node_list": "c1", **said}
    [read] = read_reservations(write_dump(42, record, name="r.json", key="reservations"))
    text = tmp_path / "reservations.txt"
    text.write_text(f"ReservationName=r StartTime=x Nodes=c1 NodeCnt=1 {shown} Watts=n/a")
    assert read_reservations(text) == (read,)
    assert read != Reservation("r", ("c1",))
