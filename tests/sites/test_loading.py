import json

import pytest

from optsched.errors import InputError
from optsched.sites.loading import load_site
from optsched.sites.parts import Reservation
from optsched.sites.site_file import read_site_file, write_site_file

NODE = {"name": "c1", "cpus": 4, "real_memory": 100, "state": ["IDLE"]}
NODES = {
    "meta": {"plugin": {"data_parser": "data_parser/v0.0.42"}},
    "last_update": {"set": True, "infinite": False, "number": 1795367431},
    "nodes": [NODE],
}
TEXT = "NodeName=c1 CPUTot=4 RealMemory=100 State=IDLE\n"
CONFIGURATION = "NodeName=c1 CPUs=4 RealMemory=100\n"
TOML = '[[nodes]]\nnames = "c1"\ncores = 4\nmemory = 100\n'


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("site.toml", TOML),
        ("slurm.conf.old", CONFIGURATION),
        ("anything", json.dumps(NODES)),
        ("nodes.txt", TEXT),
    ],
)
def test_a_file_says_itself_what_it_is(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    site = load_site(tmp_path / name)
    assert (site.nodes, site.capacity.tolist()) == (("c1",), [[4, 100]])


def test_what_slurm_shows_comes_before_what_it_was_told(tmp_path):
    (tmp_path / "slurm.conf").write_text(CONFIGURATION.replace("4", "8"))
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


def test_reservations_of_known_times_are_those_of_the_site(tmp_path):
    write_reservations(tmp_path, maint=("c[1-2]", 5, 9))
    notes = []
    assert load_site(tmp_path, notes).reservations == (Reservation("maint", ("c1",), 5, 9),)
    assert "1 node (c2): reservation maint: not among the nodes" in notes
    # the text has local times
    (tmp_path / "reservations.json").unlink()
    text = "ReservationName=maint StartTime=2026-11-22T18:10:19 Nodes=c1 NodeCnt=1\n"
    (tmp_path / "reservations.txt").write_text(text)
    assert load_site(tmp_path, notes).reservations == ()
    kept = "times not known; kept at all times in plans, and left out of simulations"
    assert f"1 reservation (maint): {kept}" in notes
    (tmp_path / "reservations.txt").unlink()
    write_reservations(tmp_path, maint=("c[1-2]", 5, 2))
    message = r"end_time: record 1 \(maint\): 1970-\S+:02\+00:00; expected a time after 1970-\S+:05"
    with pytest.raises(InputError, match=message):
        load_site(tmp_path)
