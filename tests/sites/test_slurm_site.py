"""Sites of Slurm: what an administrator configured, and what Slurm shows."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from optsched.errors import InputError
from optsched.sites.loading import read_configuration, read_shown_site
from optsched.sites.parts import Torus
from optsched.sites.slurm_files import Notes
from optsched.sites.slurm_partitions import shown_partitions
from optsched.sites.slurm_site import read_nodes, state_of

NODE = {"name": "g1", "cpus": 64, "effective_cpus": 60, "threads": 2, "alloc_cpus": 8, "weight": 20}
NODE |= {"real_memory": 1000, "specialized_memory": 100, "alloc_memory": 300}
NODE |= {"state": ["MIXED", "PLANNED"], "active_features": ["ib"], "features": ["ib", "off"]}
NODE |= {"partitions": ["batch"], "gres": "gpu:a100:4(S:0-1),gpu:h100:2"}
NODE |= {"gres_used": "gpu:a100:1(IDX:2),gpu:h100:0(IDX:N/A)", "gres_drained": "gpu:a100:2"}
TEXT = (
    "NodeName=g1 CPUAlloc=8 CPUEfctv=60 CPUTot=64 AvailableFeatures=ib,off ActiveFeatures=ib"
    " Gres=gpu:a100:4(S:0-1) GresDrain=N/A GresUsed=gpu:a100:1(IDX:2) OS=Linux #1 SMP @0 "
    " RealMemory=1000 AllocMem=300 State=MIXED+PLANNED ThreadsPerCore=2 MemSpecLimit=100"
    " Partitions=batch Weight=20 AllocTRES=cpu=8,mem=300M,gres/gpu=1"
)


def dump(path: Path, *records: dict, version: int = 42, key: str = "nodes") -> Path:
    meta = {"plugin": {"data_parser": f"data_parser/v0.0.{version}"}}
    path.write_text(json.dumps({"meta": meta, key: list(records)}))
    return path


def amounts_of(site, name):
    place = site.site.index[name]
    amounts = site.site.capacity[place].tolist(), site.free[place].tolist()
    return [dict(zip(site.site.resources, each)) for each in amounts]


def test_a_node_has_what_jobs_may_get_of_it(tmp_path):
    there = read_shown_site(dump(tmp_path / "nodes.json", NODE))
    have, free = amounts_of(there, "g1")
    assert have == {"cores": 60, "memory": 900, "gpu": 6, "gpu:a100": 4, "gpu:h100": 2}
    assert free == {"cores": 52, "memory": 600, "gpu": 3, "gpu:a100": 1, "gpu:h100": 2}
    assert (there.threads.tolist(), there.weights.tolist()) == ([2], [20])
    assert there.site.features == (("ib",),)
    assert there.site.partition("batch").nodes.tolist() == [0]
    assert set(there.notes) == {
        "1 node (g1): gpu, gpu:a100 drained",
        "1 partition (batch): limits not known, without partitions.txt",
    }


def test_the_text_says_the_same_whatever_the_reason_of_a_node_says(tmp_path):
    reason = "State=IDLE CPUEfctv=999 [root@2026-11-22T17:10:19]"
    owned = f"{TEXT} Owner=news(9) MCS_label=secret Reason=broken {reason}\n"
    (tmp_path / "nodes.txt").write_text(owned)
    there = read_shown_site(tmp_path)
    assert (*there.owners, *there.labels) == ("news", "secret")
    have, free = amounts_of(there, "g1")
    assert have == {"cores": 60, "memory": 900, "gpu": 4, "gpu:a100": 4}
    assert free == {"cores": 52, "memory": 600, "gpu": 3, "gpu:a100": 3}
    assert (there.threads.tolist(), there.site.states) == ([2], ("up",))
    assert there.weights.tolist() == [20]
    (tmp_path / "nodes.txt").write_text(f"{TEXT} Owner=N/A MCS_label=N/A\n")
    there = read_shown_site(tmp_path)
    assert (*there.owners, *there.labels) == ("", "")


def test_without_details_the_text_has_gpus_in_use_among_the_tres(tmp_path):
    path = tmp_path / "nodes.txt"
    path.write_text(TEXT.replace("GresUsed=gpu:a100:1(IDX:2)", "") + "\n")
    assert amounts_of(read_shown_site(path), "g1")[1]["gpu"] == 3
    path.write_text(path.read_text().replace(",gres/gpu=1", ""))
    there = read_shown_site(path)
    assert amounts_of(there, "g1")[1]["gpu"] == 4
    assert "1 node (g1): no word on GPUs and the like in use; taken as free" in there.notes


STATES = {
    "up": "IDLE MIXED+PLANNED IDLE+CLOUD+POWERED_DOWN ALLOCATED+COMPLETING MIXED+REBOOT_REQUESTED "
    "IDLE+CLOUD+NOT_RESPONDING+POWERING_UP MIXED+NO_RESPOND+POWER_UP IDLE#*+CLOUD",
    "reserved": "IDLE+RESERVED IDLE+MAINTENANCE",
    "drained": "MIXED+DRAIN IDLE+MAINTENANCE+DRAIN IDLE+FAIL IDLE+BLOCKED "
    "IDLE+DRAIN+NOT_RESPONDING+POWERING_UP",
    "down": "DOWN+DRAIN FUTURE IDLE+INVALID_REG IDLE+NOT_RESPONDING IDLE* IDLE+REBOOT_ISSUED "
    "DOWN+NOT_RESPONDING+POWERING_UP IDLE+POWERING_DOWN+POWERING_UP+NOT_RESPONDING",
}


@pytest.mark.parametrize("state", STATES)
def test_the_worst_word_decides_on_the_state(state):
    for words in STATES[state].split():
        assert state_of(tuple(words.split("+"))) == (state, ()), words


def test_nodes_that_complete_a_job_are_marked_and_allocated_ones_have_no_free_cores(tmp_path):
    states = (["IDLE", "COMPLETING"], ["MIXED"], ["ALLOCATED"])
    nodes = [NODE | {"name": f"g{n}", "state": state} for n, state in enumerate(states)]
    there = read_shown_site(dump(tmp_path / "nodes.json", *nodes))
    assert there.site.states == ("up", "up", "up")
    assert there.completing.tolist() == [True, False, False]
    assert there.free[:, 0].tolist() == [52, 52, 0]


def test_version_38_has_texts_and_flags(tmp_path):
    record = NODE | {"state": "idle", "state_flags": ["DRAIN", "COMPLETING"]}
    record["active_features"] = "ib,fast"
    del record["effective_cpus"], record["specialized_memory"]
    path = dump(tmp_path / "sinfo.json", record, version=38)
    there = read_shown_site(tmp_path)
    assert (there.site.states, there.completing.tolist()) == (("drained",), [True])
    assert there.site.features == (("ib", "fast"),)
    assert there.site.capacity[0, :2].tolist() == [64, 1000]
    dump(path, {}, version=42, key="sinfo")  # groups of nodes
    with pytest.raises(InputError, match=r"no nodes\.json"):
        read_shown_site(tmp_path)


def test_what_slurm_says_of_a_node_and_a_site_does_not_hold_is_noted(tmp_path):
    record = NODE | {"gres": "gpu:2,bandwidth:lustre:no_consume:4G", "gres_used": "gpu:1"}
    record |= {"gres_drained": "N/A", "alloc_memory": 901, "state": ["IDLE", "ODD"]}
    there = read_shown_site(dump(tmp_path / "nodes.json", record))
    assert there.site.states == ("drained",)
    assert "1 node (g1): taken as drained, in the unknown state ODD" in there.notes
    assert there.site.resources == ("cores", "memory", "gpu")
    assert there.free[0, 1] == 0
    assert "1 node (g1): more memory in use than there are; taken as none free" in there.notes
    assert any("no_consume" in note for note in there.notes)


PARTITION = (
    "PartitionName=batch AllowGroups=ALL Default=YES MaxNodes=8 MaxTime=1-00:00:00"
    " Nodes=g[1-2] PriorityJobFactor=3 PriorityTier=10 OverSubscribe=EXCLUSIVE State=DOWN"
    " DefMemPerCPU=50 MaxCPUsPerNode=4 Topology=racks\n"
)


def test_partitions_licences_and_settings_of_a_folder(tmp_path):
    dump(tmp_path / "nodes.json", NODE, NODE | {"name": "x1"})
    (tmp_path / "partitions.txt").write_text(PARTITION)
    (tmp_path / "licenses.txt").write_text("LicenseName=lab Total=10 Used=4 Free=5 Reserved=1\n")
    (tmp_path / "config.txt").write_text(
        "Configuration data as of today\nClusterName             = here\n"
        "SelectTypeParameters    = CR_CORE\nPriorityWeightAge = 7\n"
    )
    there = read_shown_site(tmp_path)
    (batch,) = there.site.partitions
    assert (batch.default, batch.max_nodes, batch.max_time) == (True, 8, 86_400)
    assert (batch.exclusive, batch.up, batch.priority_tier) == (True, False, 10)
    assert (batch.priority_factor, batch.memory_per_core, batch.topology) == (3, 50, "")
    assert (there.site.licences, there.licences) == ({"lab": 10}, {"lab": 5})
    assert there.site.name == "here"
    assert (there.counts_memory, there.settings["priorityweightage"]) == (False, "7")
    assert there.access["batch"].cores_per_node == 4
    assert set(there.notes) == {
        "no topology.txt: switches and blocks are not known, nor what jobs ask of them",
        "2 nodes (g1,x1): gpu, gpu:a100 drained",
        "1 node (g2): left out of partition batch, not among the nodes",
        "1 partition (batch): topology racks is in no file; taken as the default one",
        "1 node (x1): in no partition, so no job starts there",
    }


def index_of(folder):
    nodes, *_ = read_nodes(folder / "nodes.json.gz", Notes())
    return {each.node.name: place for place, each in enumerate(nodes)}


@pytest.mark.parametrize("version", ["24.11.5", "26.05.5"])
def test_partitions_as_json_are_those_of_the_text(shared, version):
    folder = shared(f"slurm/fixtures/{version}")
    index = index_of(folder)
    settings = {"defmempercpu": "1000"}
    notes = Notes()
    texts, access = shown_partitions(folder / "partitions.txt", index, settings, notes)
    assert notes.texts == ()
    found, of_json = shown_partitions(folder / "partitions.json", index, settings, notes)
    for text, json_ in zip(texts, found, strict=True):
        there, json_access = access[text.name], of_json[text.name]
        assert replace(there, unknown=(), preempted=True) == replace(json_access, unknown=())
        names = ("name", "max_time", "max_nodes", "exclusive", "up", "priority_tier")
        for name in (*names, "memory_per_core", "topology"):
            assert getattr(text, name) == getattr(json_, name), (text.name, name)
        assert text.nodes.tolist() == json_.nodes.tolist()
    if version == "26.05.5":
        assert [each.name for each in found if each.default] == ["batch"]
    else:
        assert notes.texts == ("partitions.json does not say which partition is the default",)


def test_all_known_data_parsers_give_the_same_nodes(shared):
    folder = shared("slurm/fixtures/26.05.5/parsers")
    versions = range(42, 46)
    first, *others = (read_nodes(folder / f"nodes.v{v}.json.gz", Notes())[0] for v in versions)
    assert len(first) == 12
    assert all(each == first for each in others)
    index = index_of(folder.parent)
    for version in versions:
        path = folder / f"partitions.v{version}.json.gz"
        partitions, _ = shown_partitions(path, index, {}, Notes())
        assert [each.name for each in partitions if each.exclusive] == ["whole"]


def test_a_node_that_is_down_says_why(shared):
    site = read_shown_site(shared("slurm/fixtures/26.05.5")).site
    drained, down = (site.index[name] for name in ("c20", "g16"))
    assert (site.states[drained], site.reasons[drained]) == ("drained", "disk failing")
    assert (site.states[down], site.reasons[down]) == ("down", "gpu lost")
    assert site.partition("batch").max_nodes == math.inf


CONFIGURATION = """
ClusterName=here
# a comment
Licenses=lab:3,abaqus@server:40
DefMemPerCPU=1000
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityFlags=ACCRUE_ALWAYS
NodeName=DEFAULT RealMemory=64000 State=UNKNOWN
NodeName=DEFAULT Feature=ib
NodeName=c[01-04] Sockets=2 CoresPerSocket=8 CoreSpecCount=2 MemSpecLimit=4000
Include more.conf
DownNodes=c[02-03] State=DRAIN Reason="new disk"
NodeSet=fast Feature=a100
NodeSet=first Nodes=c[01-02]
PartitionName=DEFAULT MaxTime=1-00:00:00 State=UP
PartitionName=batch Nodes=first,c[03-04] Default=YES \\
    MaxTime=2:00:00 PriorityJobFactor=7
PartitionName=gpu Nodes=fast OverSubscribe=EXCLUSIVE DefMemPerCPU=4000
PartitionName=every Nodes=ALL MaxNodes=2 State=INACTIVE
"""
MORE = """
nodename=g[1-2] CPUs=32 ThreadsPerCore=2 CoresPerSocket=8 Sockets=2 gres=gpu:4 feature=a100,ib
NodeName=x1 CPUs=4 State=DOWN Reason=old
"""


@pytest.fixture
def write(tmp_path):
    """Return a function that writes files and returns the folder."""

    def write(**files: str):
        for name, text in files.items():
            (tmp_path / f"{name}.conf").write_text(text)
        return tmp_path

    return write


def test_a_configuration(write):
    there = read_configuration(write(slurm=CONFIGURATION, more=MORE))
    site = there.site
    assert (site.name, site.licences) == ("here", {"lab": 3, "abaqus@server": 40})
    assert site.nodes == ("c01", "c02", "c03", "c04", "g1", "g2", "x1")
    assert amounts_of(there, "c01")[0] == {"cores": 14, "memory": 60_000, "gpu": 0}
    assert amounts_of(there, "g1")[0] == {"cores": 32, "memory": 64_000, "gpu": 4}
    assert there.threads.tolist() == [1, 1, 1, 1, 2, 2, 1]
    assert site.features[0] == ("ib",)
    assert site.features[4] == ("a100", "ib")
    assert site.states == ("up", "drained", "drained", "up", "up", "up", "down")
    assert (site.reasons[1], site.reasons[6]) == ("new disk", "old")
    batch, gpu, every = site.partitions
    assert (batch.name, batch.nodes.tolist(), batch.default) == ("batch", [0, 1, 2, 3], True)
    assert (batch.max_time, batch.priority_factor, batch.memory_per_core) == (7200, 7, 1000)
    assert (gpu.nodes.tolist(), gpu.exclusive, gpu.memory_per_core) == ([4, 5], True, 4000)
    assert (gpu.max_time, gpu.up) == (86_400, True)
    assert (every.nodes.tolist(), every.max_nodes, every.up) == (list(range(7)), 2, False)
    assert {k: v for k, v in there.settings.items() if k.startswith("priority")} == {
        "prioritytype": "priority/multifactor",
        "priorityweightage": "1000",
        "priorityflags": "ACCRUE_ALWAYS",
    }
    assert (there.free == site.capacity).all()
    assert there.notes == ()


def test_gres_conf_has_the_types(write):
    gres = "NodeName=g1 Name=gpu Type=a100 File=/dev/nvidia[0-3]\nName=gpu Type=h100 Count=3\n"
    there = read_configuration(write(slurm=CONFIGURATION, more=MORE, gres=gres))
    assert amounts_of(there, "g1")[0]["gpu:a100"] == 4
    assert amounts_of(there, "g2")[0] == {"cores": 32, "memory": 64_000, "gpu": 4, "gpu:a100": 0}
    assert "gpu:h100" not in there.site.resources
    assert there.notes == ("1 node (g2): gres.conf has 3 gpu, slurm.conf 4; taken from slurm.conf",)


def test_large_amounts_are_counted_in_units(write):
    gres = "NodeName=c1 Name=tmp Type=ssd Count=844G\n"
    text = "NodeName=c1 Gres=tmp:844G,scratch:2TB,few:4\nPartitionName=p Nodes=ALL\n"
    there = read_configuration(write(slurm=text, gres=gres))
    has_now, _ = amounts_of(there, "c1")
    assert has_now["tmp"] == has_now["tmp:ssd"] == 844 * 1024
    assert (has_now["scratch"], has_now["few"]) == (10**6, 4)
    assert {"tmp: counted in units of 1,048,576", "scratch: counted in units of 2,000,000"} <= {
        *there.notes
    }


@pytest.mark.parametrize(
    ("line", "cores", "threads"),
    [
        ("", 1, 1),
        ("CPUs=12", 12, 1),
        ("CPUs=8 Sockets=2 CoresPerSocket=4 ThreadsPerCore=2", 8, 1),
        ("Boards=2 SocketsPerBoard=2 CoresPerSocket=4", 16, 1),
        ("Sockets=2 CoresPerSocket=4 ThreadsPerCore=2 CoreSpecCount=1", 14, 2),
        ("CPUs=8 CpuSpecList=0,2-3", 5, 1),
    ],
)
def test_cores_are_cpus_without_those_of_the_system(write, line, cores, threads):
    there = read_configuration(write(slurm=f"NodeName=c1 {line}\n"))
    assert (there.site.capacity[0].tolist(), there.threads[0]) == ([cores, 1], threads)


def test_what_a_site_does_not_say_as_slurm_does_is_noted(write):
    node = "NodeName=c[1-2] CPUs=5 Sockets=2 CoresPerSocket=4\nPartitionName=p Nodes=c[1-2]\n"
    text = f"SelectType=select/linear\n{node}DownNodes=c[2-3]\n"
    there = read_configuration(write(slurm=text))
    assert there.site.capacity[:, 0].tolist() == [8, 8]
    assert there.site.states == ("up", "down")
    assert there.site.partition("p").exclusive
    down, cpus, exclusive = sorted(there.notes)
    assert down == "1 node (c3): in DownNodes, not among the nodes"
    assert "2 nodes (c[1-2]): CPUs=5" in cpus
    assert exclusive == "exclusive partitions, as select/linear gives whole nodes"


@pytest.mark.parametrize("version", ["22.05.8", "24.11.5", "26.05.5"])
def test_the_configuration_describes_what_slurm_shows(shared, version):
    folder = shared(f"slurm/fixtures/{version}")
    ours, shown = read_configuration(folder), read_shown_site(folder)
    order = ours.site.places(shown.site.nodes)
    assert ours.site.resources == shown.site.resources
    assert np.array_equal(ours.site.capacity[order], shown.site.capacity)
    assert np.array_equal(ours.threads[order], shown.threads)
    assert tuple(ours.site.features[place] for place in order) == shown.site.features
    assert ours.site.licences == shown.site.licences
    for one, other in zip(ours.site.partitions, shown.site.partitions, strict=True):
        assert sorted(order[other.nodes]) == one.nodes.tolist()
        names = ("name", "default", "max_time", "max_nodes", "exclusive", "up", "priority_tier")
        for name in (*names, "priority_factor", "memory_per_core", "topology"):
            assert getattr(one, name) == getattr(other, name), (one.name, name)
    assert list(ours.site.topologies) == list(shown.site.topologies)
    for name, topology in ours.site.topologies.items():
        other = shown.site.topologies[name]
        if isinstance(topology, Torus):
            assert [order[place] for place in other.nodes] == topology.nodes.tolist()
        else:
            assert np.array_equal(topology.group[order], other.group)
