"""Sites from files: what Slurm shows, files as people write them, and damaged ones."""

import json
import math
from dataclasses import replace
from datetime import datetime
from random import Random

import numpy as np
import pytest
from fuzz.captures import CAPTURES, CONFIGURATION, TOPOLOGIES
from fuzz.mutation import damaged, damaged_tree, to_json
from hypothesis import given
from hypothesis import strategies as st

from optsched.content import bundled
from optsched.errors import InputError
from optsched.sites.loading import load_site
from optsched.sites.parts import Blocks, Places, Reservation, Torus, Tree
from optsched.sites.site import Partition, Site
from optsched.sites.site_file import read_site_file, write_site_file

NODE = {"name": "c1", "cpus": 4, "real_memory": 100, "state": ["IDLE"]}
NODES = {
    "meta": {"plugin": {"data_parser": "data_parser/v0.0.42"}},
    "last_update": {"set": True, "infinite": False, "number": 1795367431},
    "nodes": [NODE],
}
TEXT = "NodeName=c1 CPUTot=4 RealMemory=100 State=IDLE\n"
WRITTEN = "NodeName=c1 CPUs=4 RealMemory=100\n"
TOML = '[[nodes]]\nnames = "c1"\ncores = 4\nmemory = 100\n'


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *(("site.toml", TOML), ("slurm.conf.old", WRITTEN)),
        *(("anything", json.dumps(NODES)), ("nodes.txt", TEXT)),
    ],
)
def test_a_file_says_itself_what_it_is(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    site = load_site(tmp_path / name)
    assert (site.nodes, site.capacity.tolist()) == (("c1",), [[4, 100]])


def test_what_slurm_shows_comes_before_what_it_was_told(tmp_path):
    (tmp_path / "slurm.conf").write_text(WRITTEN.replace("4", "8"))
    (tmp_path / "nodes.txt").write_text(TEXT)
    notes = []
    assert load_site(tmp_path, notes).capacity[0, 0] == 4
    assert "1 node (c1): in no partition, so no job starts there" in notes
    (tmp_path / "nodes.txt").write_text("")  # a command that Slurm refused
    assert load_site(tmp_path).capacity[0, 0] == 8


def test_anything_else_is_refused_with_what_was_expected(tmp_path):
    (tmp_path / "trace.swf").write_text("; Version: 2.2\n")
    for name, said in (
        ("", r"expected a site as TOML, slurm\.conf"),
        ("trace.swf", r"trace\.swf: expected a site as TOML"),
        ("none.json", r"none\.json: no such file"),
    ):
        with pytest.raises(InputError, match=said):
            load_site(tmp_path / name)


def nodes(*records):
    return json.dumps(NODES | {"nodes": records})


PARTITION = "PartitionName={} Default=YES Nodes=c1 State=UP\n"
RESERVATION = "ReservationName=r StartTime=a Nodes=c1 NodeCnt=1\n"
SWITCH = "SwitchName={} Level={} LinkSpeed=1\n"


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("slurm.conf", "NodeName=c1 RealMemory=64G", "line 1, realmemory: '64G'; expected a whole"),
        ("slurm.conf", "NodeName=c1 RealMemory=10 MemSpecLimit=10", "less than the memory of 10"),
        ("slurm.conf", "NodeName=c1 CPUs=4 CoreSpecCount=4", "corespeccount: .*fewer than"),
        ("slurm.conf", "NodeName=c1 Gres=gpu:a:b:c", "gres: .*generic resources"),
        ("slurm.conf", "NodeName=c[1-", "nodename: .*host list"),
        ("slurm.conf", "NodeName=c1\nNodeName=c[1-2]", "line 2, nodename: .*every node once"),
        ("slurm.conf", "NodeName=c1\nPartitionName=p Nodes=c2", "line 2, nodes: c2; expected"),
        ("slurm.conf", "NodeName=c1 CPUs=4 CpuSpecList=first", "cpuspeclist: 'first'; exp"),
        ("slurm.conf", "ClusterName=here", "no nodes"),
        ("slurm.conf", "NodeName=c1 what", "line 1: 'what'; expected Key=Value"),
        ("nodes.json", nodes(NODE | {"name": "a,b"}), "the name of a node"),
        ("nodes.json", nodes(NODE | {"real_memory": "64G"}), r"memory: record 1 \(c1\): '64G';"),
        ("nodes.json", nodes(NODE | {"specialized_memory": 101}), "at most the memory of 100"),
        ("nodes.json", nodes(NODE | {"real_memory": 2**36}), r"real_memory: .*below 2\^32"),
        ("nodes.json", nodes(NODE | {"real_memory": 2_000_000_000}), "memory of node c1"),
        ("nodes.json", nodes(NODE, NODE), r"record 2 \(c1\).*every node once"),
        ("partitions.txt", "PartitionName=p PriorityTier=70000", "priority_tier: p: 70000"),
        ("partitions.txt", PARTITION.format("a") + PARTITION.format("b"), "Default: a and b are"),
        ("partitions.txt", PARTITION.format("a") * 2, "PartitionName: a: is there twice"),
        ("partitions.txt", "\nno such cluster\n", "line 2: 'no such cluster'; expected Partition"),
        ("reservations.txt", RESERVATION * 2, "r: is there twice"),
        ("now", "x", ": 'x'; expected seconds since 1970"),
        ("nodes.json", '{"nodes": [\n{"name": "c', "line 2: not JSON"),
        ("licenses.json", '{"licenses": [', "line 2: not JSON"),
        ("licenses.txt", "No licenses\nLicence", "line 2: 'Licence'; expected LicenseName="),
        ("topology.txt", "garbage", "line 1: 'garbage'; expected SwitchName="),
        ("topology.txt", SWITCH.format("a", 0) + SWITCH.format("b", 1), "line 2, sw.*: is cut"),
        ("topology.txt", f"{SWITCH.format('a', 0)}SwitchName=b ", "line 2, sw.*: is cut"),
        ("topology.txt", "BlockName=b BlockIndex=0", "line 1, blockname: is cut off; exp"),
        ("config.txt", "a = 1\n\nClusterN", "line 3: 'ClusterN'; expected Key = Value, as"),
        ("config.txt", "Configuration data as of today", "no settings; expected Key = Value"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_with_its_file_and_place(tmp_path, file, text, message):
    if file != "slurm.conf":
        (tmp_path / "nodes.json").write_text(json.dumps(NODES))
        (tmp_path / "partitions.txt").write_text("No partitions in the system\n")
        load_site(tmp_path)
    (tmp_path / file).write_text(f"{text}\n")
    with pytest.raises(InputError, match=message) as raised:
        load_site(tmp_path)
    assert str(raised.value).startswith(str(tmp_path / file))
    assert "\n" not in str(raised.value)


def write_reservations(folder, **spans):
    (folder / "nodes.json").write_text(json.dumps(NODES))
    records = [
        {"name": name, "node_list": nodes, "start_time": start, "end_time": end}
        for name, (nodes, start, end) in spans.items()
    ]
    dump = json.dumps(NODES | {"reservations": records})
    (folder / "reservations.json").write_text(dump)


def test_reservations_of_slurm_that_overlap_are_noted(tmp_path):
    write_reservations(tmp_path, maint=("c1", 5, 9), course=("c1", 8, 12), later=("c1", 12, 13))
    notes = []
    site = load_site(tmp_path, notes)
    assert len(site.reservations) == 3
    what = "in reservations maint and course at the same time, which keep each other's jobs from"
    assert [note for note in notes if "same time" in note] == [f"1 node (c1): {what} them"]
    write_site_file(site, tmp_path / "site.toml")
    assert (tmp_path / "site.toml").read_text().count("overlap = true") == 1
    assert read_site_file(tmp_path / "site.toml").reservations == site.reservations


def test_local_times_of_reservations_are_known_from_those_of_jobs(tmp_path):
    (tmp_path / "nodes.json").write_text(json.dumps(NODES))
    summer, winter = "2026-07-22T18:00:00", "2026-11-22T18:00:00"
    said = f"ReservationName=maint StartTime={summer} EndTime={winter} Nodes=c1 NodeCnt=1\n"
    (tmp_path / "reservations.txt").write_text(said)
    begin, end = (datetime.fromisoformat(f"{each}Z").timestamp() for each in (summer, winter))
    berlin, lagos = (begin - 7200, end - 3600), (begin - 3600, end - 3600)
    for jobs, spans in (
        ([], []),
        ([(winter, 3600), (winter, 3540)], []),
        ([(winter, 3600)], [berlin]),  # or Lagos: the earliest start of both
        ([(summer, 7200), (winter, 3600)], [berlin]),
        ([(summer, 3600), (winter, 3600)], [lagos]),
    ):
        queue, text = [], ""
        for job, (local, ahead) in enumerate(jobs, 1):
            at = int(datetime.fromisoformat(f"{local}Z").timestamp()) - ahead
            queue.append({"job_id": job, "submit_time": at})
            text += f"JobId={job} JobName=a b SubmitTime={local} EligibleTime={local}\n"
        (tmp_path / "squeue.json").write_text(json.dumps(NODES | {"jobs": queue}))
        (tmp_path / "jobs.txt").write_text(text)
        notes = []
        found = load_site(tmp_path, notes).reservations
        assert [(each.start, each.end) for each in found] == spans
        assert any("1 reservation (maint): local times" in note for note in notes) == (not spans)
    (tmp_path / "reservations.txt").write_text(said.replace(winter, summer))
    with pytest.raises(InputError, match=r"line 1, EndTime: '2026-07-\S+; expected a time after"):
        load_site(tmp_path)


def test_reservations_of_known_times_are_those_of_the_site(tmp_path):
    write_reservations(tmp_path, maint=("c[1-2]", 5, 9))
    notes = []
    assert load_site(tmp_path, notes).reservations == (Reservation("maint", ("c1",), 5, 9),)
    assert "1 node (c2): reservation maint: not among the nodes" in notes
    write_reservations(tmp_path, maint=("c[1-2]", 5, 2))
    message = r"end_time: record 1 \(maint\): 1970-\S+:02\+00:00; expected a time after 1970-\S+:05"
    with pytest.raises(InputError, match=message):
        load_site(tmp_path)


DEPARTMENT = """
name = "department"

[[nodes]]
names = "c[01-40]"
cores = 16
memory = "64G"
features = ["ib", "skylake"]

[[nodes]]
names = "g[1-4]"
cores = 32
memory = 256000
gpus = {a100 = 4}
features = ["ib", "a100"]

[[partitions]]
name = "batch"
nodes = "c[01-40]"
default = true
max_time = "2-00:00:00"

[[partitions]]
name = "gpu"
nodes = "g[1-4]"

[licences]
matlab = 10

[topology]
kind = "tree"
switches = {leaf1 = "c[01-20]", leaf2 = "c[21-40],g[1-4]", spine = ["leaf1", "leaf2"]}
"""


@pytest.fixture
def department(tmp_path):
    path = tmp_path / "department.toml"
    path.write_text(DEPARTMENT)
    return path


RESERVED = """
[[reservations]]
name = "maint"
nodes = "c[01-02]"
start = 2026-12-24T08:00:00Z
end = 2026-12-24T12:00:00

[[reservations]]
name = "course"
nodes = "g1"
start = 3600
"""


def test_reservations(tmp_path):
    path = tmp_path / "site.toml"
    path.write_text(DEPARTMENT + RESERVED)
    site = read_site_file(path)
    maint = Reservation("maint", ("c01", "c02"), 1_798_099_200, 1_798_113_600)
    assert site.reservations == (maint, Reservation("course", ("g1",), 3600))
    write_site_file(site, path)
    assert "start = 2026-12-24T08:00:00Z" in path.read_text()
    assert read_site_file(path) == site
    stated = RESERVED.replace('"g1"', '"ALL"').replace("3600", '"2026-12-24T13:00:00+01:00"')
    path.write_text(DEPARTMENT + stated)
    # of all nodes; it begins when the other ends, so they do not overlap
    assert read_site_file(path).reservations[1] == Reservation("course", site.nodes, 1_798_113_600)


def test_reserved_nodes_are_usable_if_their_reservation_is_known(department):
    site = replace(read_site_file(department), states=("reserved",) * 3 + ("up",) * 41)
    site = replace(site, reservations=(Reservation("maint", ("c01", "c02", "c05"), 5, 9),))
    assert site.is_usable[:6].tolist() == [True, True, False, True, True, True]
    assert not site.is_up[0]


def test_a_file_as_a_person_writes_it(department):
    site = read_site_file(department)
    assert (site.name, len(site.nodes)) == ("department", 44)
    assert site.resources == ("cores", "memory", "gpu", "gpu:a100")
    assert site.capacity[0].tolist() == [16, 65_536, 0, 0]
    assert site.capacity[-1].tolist() == [32, 256_000, 4, 4]
    assert site.partition("batch").max_time == 2 * 86_400
    assert site.partition("gpu").nodes.tolist() == [40, 41, 42, 43]
    assert site.licences == {"matlab": 10}
    tree = site.topology()
    leaves = [tree.switches[leaf] for leaf in site.leaves()[[0, 20, 43]]]
    assert leaves == ["leaf1", "leaf2", "leaf2"]
    assert site.matching("ib&a100").sum() == 4
    assert site.is_up.all()


@pytest.mark.parametrize(
    ("wrong", "right", "message"),
    [
        ('cores = 16\nmemory = "64G"', 'cores = 16\nmemory = "64 elephants"', "memory"),
        ("cores = 16", "cors = 16", "cors"),
        ('names = "g[1-4]"', 'names = "c[01-04]"', "c01"),
        ('nodes = "g[1-4]"', 'nodes = "g[1-3]"', "g4"),
        ("c[21-40],g[1-4]", "c[21-40]", "on no switch"),
        ('"2-00:00:00"', '"two days"', "max_time"),
        ("matlab = 10", 'matlab = "many"', "matlab"),
        ("12:00:00", "07:00:00", r"reservations\[1\]\.end: expected a time after the start"),
        ("c[01-02]", "c[01-99]", r"reservations\[1\]\.nodes: unknown node 'c41'"),
        ("3600", '"soon"', r"reservations\[2\]\.start: 'soon'; expected a date and time such as"),
        ('"g1"', '"c[02-03]"', r"reservations\[2\]\.nodes: 'course' and 'maint' both have c02 at"),
        ('"course"', '"maint"', r"reservations\[2\]\.name: 'maint': is there twice"),
        ('"tree"', '"torus"\nnodes = "c[1-4]"\ndims = [[4], [2, 2]]', r"topology\.dims"),
        ('"tree"', '"torus"\nnodes = "c[1-4]"\ndims = [1.5]', r"topology\.dims"),
    ],
)
def test_a_mistake_is_one_line_with_file_and_place(department, wrong, right, message):
    assert wrong in DEPARTMENT + RESERVED
    department.write_text((DEPARTMENT + RESERVED).replace(wrong, right, 1))
    with pytest.raises(InputError, match=message) as raised:
        read_site_file(department)
    assert "department.toml" in str(raised.value)
    assert "expected" in str(raised.value) or "known" in str(raised.value)


TEXTS = st.text(max_size=8)
NAMES = st.text(min_size=1, max_size=8)


@st.composite
def sites(draw):
    number = draw(st.integers(1, 12))
    width = draw(st.integers(1, 3))
    nodes = tuple(f"n{place:0{width}}" for place in range(number))
    rows = [[8, 1000, 0, 0, 0], [16, 2000, 4, 4, 0], [32, 3000, 3, 2, 1]]
    kinds = draw(st.lists(st.integers(0, 2), min_size=number, max_size=number))
    members = draw(st.lists(st.booleans(), min_size=number, max_size=number))
    groups = np.array(draw(st.lists(st.integers(-1, 1), min_size=number, max_size=number)))
    places = (Places((1,), (0,), (1,)), Places((number,), (0,), (1,)))
    ring = np.where(groups < 0, -1, np.arange(number))
    topologies = {
        draw(NAMES): Blocks(("a", "b"), groups, (2, 4)),
        "net": Tree(("a", "b", "top"), np.array([2, 2, -1]), groups),
        "ring": Torus((number,), ring, draw(st.sampled_from([(), places]))),
        "flat network": Tree((), np.array([], dtype=int), np.full(number, -1)),
    }
    chosen = draw(st.permutations(list(topologies)))[: draw(st.integers(0, 4))]
    partitions = tuple(
        Partition(
            name,
            np.flatnonzero(members) if draw(st.booleans()) else np.arange(number),
            default=place == 0 and draw(st.booleans()),
            max_time=draw(st.sampled_from([math.inf, 0.0, 59.0, 86_400.0])),
            max_nodes=draw(st.sampled_from([math.inf, 0.0, 7.0])),
            exclusive=draw(st.booleans()),
            exclusive_user=draw(st.booleans()),
            up=draw(st.booleans()),
            priority_tier=draw(st.integers(0, 65_535)),
            priority_factor=draw(st.integers(0, 65_535)),
            memory_per_core=draw(st.integers(0, 5)),
            topology=draw(st.sampled_from(["", *chosen])),
        )
        for place, name in enumerate(draw(st.lists(NAMES, max_size=3, unique=True)))
    )
    return Site(
        draw(NAMES),
        nodes,
        ("cores", "memory", "gpu", "gpu:a100", f"x{draw(NAMES).replace(':', '')}"),
        np.array([rows[kind] for kind in kinds]),
        features=tuple(tuple(draw(st.lists(NAMES, max_size=2))) for _ in nodes),
        states=tuple(draw(st.sampled_from(["up", "down", "drained", "reserved"])) for _ in nodes),
        reasons=tuple(draw(TEXTS) for _ in nodes),
        partitions=partitions,
        licences=draw(st.dictionaries(NAMES, st.integers(0, 5), max_size=2)),
        topologies={name: topologies[name] for name in chosen},
    )


@given(site=sites())
def test_every_site_survives_its_file(site, tmp_path_factory):
    path = tmp_path_factory.mktemp("site") / "site.toml"
    write_site_file(site, path)
    assert read_site_file(path) == site


@pytest.mark.parametrize("path", sorted(bundled("sites").glob("*.toml")), ids=lambda p: p.stem)
def test_bundled_sites_are_read_and_stand_in_their_table(path):
    site = read_site_file(path)
    assert site.name == path.stem
    page = (bundled("sites") / "README.md").read_text()
    assert f"| `{path.name}` | {len(site.nodes)} nodes" in page


MINUTE, SEVEN = ({"set": True, "infinite": False, "number": number} for number in (60, 7))
BATCH = {"name": "batch", "nodes": {"configured": "c[1-4]"}, "topology": ""}
BATCH |= {"priority": {"tier": 3, "job_factor": 1}, "partition": {"state": ["UP"]}}
BATCH |= {"maximums": {"time": MINUTE, "nodes": MINUTE | {"infinite": True}, "shares": 0}}
BATCH |= {"defaults": {"partition_memory_per_cpu": SEVEN}}
META = {"plugin": {"data_parser": "data_parser/v0.0.42"}}
LEFT_OUT = ("squeue.json", "jobs.txt", "now", "reservations.json")
"""Of a queue, or with what a file of a site does not hold."""

JSON, SHOWN = (
    {name: data for name, data in files.items() if name not in LEFT_OUT}
    for files in (CAPTURES[0], CAPTURES[2])
)
JSON["partitions.json"] = to_json({"meta": META, "partitions": [BATCH]})
del JSON["partitions.txt"]
DAMAGED = {
    "shown as JSON": JSON,
    "shown as text": SHOWN,
    "configured": CONFIGURATION | {"topology.yaml": TOPOLOGIES},
    "written": {"campus.toml": (bundled("sites") / "campus.toml").read_bytes()},
}


@pytest.mark.parametrize("files", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_is_a_site_or_one_line(files, tmp_path):
    errors = []
    for seed in range(100):
        rng = Random(seed)
        chosen = rng.choice(sorted(files))
        for name, data in files.items():
            if name == chosen:
                as_tree = name.endswith(".json") and rng.random() < 0.6
                tree = damaged_tree(rng, json.loads(data)) if as_tree else None
                data = to_json(tree) if as_tree else damaged(rng, data)
            (tmp_path / name).write_bytes(data)
        try:
            site = load_site(tmp_path / chosen if len(files) == 1 else tmp_path)
        except InputError as error:
            errors.append(error)
            continue
        write_site_file(site, tmp_path / "again.toml")
        assert read_site_file(tmp_path / "again.toml") == site
    assert 0 < len(errors) < 100
    assert all(error.file for error in errors)
    assert not [line for error in errors for line in error.lines() if "\n" in line]
