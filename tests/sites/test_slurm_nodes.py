from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from optsched.errors import InputError
from optsched.sites.loading import read_shown_site
from optsched.sites.slurm_files import Notes
from optsched.sites.slurm_partitions import shown_partitions
from optsched.sites.slurm_site import read_nodes, state_of

NODE = {
    "name": "g1",
    "cpus": 64,
    "effective_cpus": 60,
    "real_memory": 1000,
    "specialized_memory": 100,
    "threads": 2,
    "active_features": ["ib"],
    "features": ["ib", "off"],
    "state": ["MIXED", "PLANNED"],
    "alloc_cpus": 8,
    "alloc_memory": 300,
    "gres": "gpu:a100:4(S:0-1),gpu:h100:2",
    "gres_used": "gpu:a100:1(IDX:2),gpu:h100:0(IDX:N/A)",
    "gres_drained": "gpu:a100:2",
    "partitions": ["batch"],
    "weight": 20,
}
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


def amounts(site, name):
    place = site.site.index[name]
    return dict(zip(site.site.resources, site.site.capacity[place].tolist())), dict(
        zip(site.site.resources, site.free[place].tolist())
    )


def test_a_node_has_what_jobs_may_get_of_it(tmp_path):
    there = read_shown_site(dump(tmp_path / "nodes.json", NODE))
    have, free = amounts(there, "g1")
    assert have == {"cores": 60, "memory": 900, "gpu": 6, "gpu:a100": 4, "gpu:h100": 2}
    assert free == {"cores": 52, "memory": 600, "gpu": 3, "gpu:a100": 1, "gpu:h100": 2}
    assert (there.threads.tolist(), there.weights.tolist()) == ([2], [20])
    assert there.site.features == (("ib",),)
    assert there.site.partition("batch").nodes.tolist() == [0]
    assert set(there.notes) == {
        "1 node (g1): gpu, gpu:a100 drained",
        "1 partition (batch): limits not known, without partitions.txt",
    }


def test_the_text_says_the_same(tmp_path):
    (tmp_path / "nodes.txt").write_text(TEXT + "\n")
    there = read_shown_site(tmp_path)
    have, free = amounts(there, "g1")
    assert have == {"cores": 60, "memory": 900, "gpu": 4, "gpu:a100": 4}
    assert free == {"cores": 52, "memory": 600, "gpu": 3, "gpu:a100": 3}
    assert (there.threads.tolist(), there.site.states) == ([2], ("up",))
    assert there.weights.tolist() == [20]


def test_the_text_names_the_owner_with_its_number(tmp_path):
    (tmp_path / "nodes.txt").write_text(f"{TEXT} Owner=news(9) MCS_label=secret\n")
    there = read_shown_site(tmp_path)
    assert (there.owners, there.labels) == (("news",), ("secret",))
    (tmp_path / "nodes.txt").write_text(f"{TEXT} Owner=N/A MCS_label=N/A\n")
    there = read_shown_site(tmp_path)
    assert (there.owners, there.labels) == (("",), ("",))


def test_without_details_the_text_has_gpus_in_use_among_the_tres(tmp_path):
    path = tmp_path / "nodes.txt"
    path.write_text(TEXT.replace("GresUsed=gpu:a100:1(IDX:2)", "") + "\n")
    assert amounts(read_shown_site(path), "g1")[1]["gpu"] == 3
    path.write_text(path.read_text().replace(",gres/gpu=1", ""))
    there = read_shown_site(path)
    assert amounts(there, "g1")[1]["gpu"] == 4
    assert "1 node (g1): no word on GPUs and the like in use; taken as free" in there.notes


def test_reasons_and_comments_change_no_other_field(tmp_path):
    path = tmp_path / "nodes.txt"
    reason = "State=IDLE CPUEfctv=999 [root@2026-11-22T17:10:19]"
    path.write_text(TEXT.replace("MIXED", "DRAIN") + f" Reason=broken {reason}\n")
    there = read_shown_site(path)
    assert (there.site.states, there.site.capacity[0, 0]) == (("drained",), 60)


@pytest.mark.parametrize(
    ("words", "state"),
    [
        ("IDLE", "up"),
        ("MIXED+PLANNED", "up"),
        ("IDLE+CLOUD+POWERED_DOWN", "up"),
        ("ALLOCATED+COMPLETING", "up"),
        ("MIXED+REBOOT_REQUESTED", "up"),
        ("IDLE+RESERVED", "reserved"),
        ("IDLE+MAINTENANCE", "reserved"),
        ("MIXED+DRAIN", "drained"),
        ("IDLE+MAINTENANCE+DRAIN", "drained"),
        ("IDLE+FAIL", "drained"),
        ("IDLE+BLOCKED", "drained"),
        ("DOWN+DRAIN", "down"),
        ("FUTURE", "down"),
        ("IDLE+INVALID_REG", "down"),
        ("IDLE+NOT_RESPONDING", "down"),
        ("IDLE*", "down"),
        ("IDLE+CLOUD+NOT_RESPONDING+POWERING_UP", "up"),
        ("MIXED+NO_RESPOND+POWER_UP", "up"),
        ("IDLE#*+CLOUD", "up"),
        ("DOWN+NOT_RESPONDING+POWERING_UP", "down"),
        ("IDLE+DRAIN+NOT_RESPONDING+POWERING_UP", "drained"),
        ("IDLE+POWERING_DOWN+POWERING_UP+NOT_RESPONDING", "down"),
        ("IDLE+REBOOT_ISSUED", "down"),
        ("IDLE+POWERING_DOWN", "down"),
    ],
)
def test_the_worst_word_decides_on_the_state(words, state):
    assert state_of(tuple(words.split("+"))) == (state, ())


def test_nodes_that_complete_a_job_are_marked(tmp_path):
    states = (["IDLE", "COMPLETING"], ["MIXED"])
    nodes = [NODE | {"name": f"g{n}", "state": state} for n, state in enumerate(states)]
    there = read_shown_site(dump(tmp_path / "nodes.json", *nodes))
    assert there.site.states == ("up", "up")
    assert there.completing.tolist() == [True, False]
    old = NODE | {"state": "mixed", "state_flags": ["COMPLETING"]}
    there = read_shown_site(dump(tmp_path / "sinfo.json", old, version=38))
    assert there.completing.tolist() == [True]


def test_an_unknown_state_is_drained_and_noted(tmp_path):
    there = read_shown_site(dump(tmp_path / "nodes.json", NODE | {"state": ["IDLE", "ODD"]}))
    assert there.site.states == ("drained",)
    assert "1 node (g1): taken as drained, in the unknown state ODD" in there.notes


def test_version_38_has_texts_and_flags(tmp_path):
    record = NODE | {"state": "idle", "state_flags": ["DRAIN"], "active_features": "ib,fast"}
    del record["effective_cpus"], record["specialized_memory"]
    path = dump(tmp_path / "sinfo.json", record, version=38)
    there = read_shown_site(tmp_path)
    assert there.site.states == ("drained",)
    assert there.site.features == (("ib", "fast"),)
    assert there.site.capacity[0, :2].tolist() == [64, 1000]
    dump(path, {}, version=42, key="sinfo")  # groups of nodes
    with pytest.raises(InputError, match=r"no nodes\.json"):
        read_shown_site(tmp_path)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"name": ""}, "name: record 1"),
        ({"name": "a,b"}, "the name of a node"),
        ({"real_memory": "64G"}, r"real_memory: record 1 \(g1\): '64G'; expected a number"),
        ({"effective_cpus": -1}, "effective_cpus"),
        ({"specialized_memory": 1001}, "specialized_memory.*at most the memory of 1000"),
        ({"state": []}, "state.*such as IDLE"),
        ({"gres": "gpu:a:b:c:d"}, "gres: .*generic resources"),
        ({"real_memory": 64 * 2**30}, r"real_memory: .*below 2\^32"),
        ({"real_memory": 2_000_000_000}, "memory of node g1"),
    ],
)
def test_a_mistake_is_one_line_with_file_record_and_field(tmp_path, wrong, message):
    path = dump(tmp_path / "nodes.json", NODE | wrong)
    with pytest.raises(InputError, match=message) as raised:
        read_shown_site(path)
    assert "nodes.json" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_node_is_there_once_and_some_are_there(tmp_path):
    with pytest.raises(InputError, match=r"record 2 \(g1\).*every node once"):
        read_shown_site(dump(tmp_path / "nodes.json", NODE, NODE))
    with pytest.raises(InputError, match="no nodes"):
        read_shown_site(dump(tmp_path / "nodes.json"))
    with pytest.raises(InputError, match=r"v0\.0\.99"):
        read_shown_site(dump(tmp_path / "nodes.json", NODE, version=99))


def test_more_in_use_than_there_is_leaves_nothing_free(tmp_path):
    there = read_shown_site(dump(tmp_path / "nodes.json", NODE | {"alloc_memory": 901}))
    assert there.free[0, 1] == 0
    assert "1 node (g1): more memory in use than there are; taken as none free" in there.notes


def test_what_jobs_do_not_use_up_is_left_out(tmp_path):
    record = NODE | {"gres": "gpu:2,bandwidth:lustre:no_consume:4G", "gres_used": "gpu:1"}
    there = read_shown_site(dump(tmp_path / "nodes.json", record | {"gres_drained": "N/A"}))
    assert there.site.resources == ("cores", "memory", "gpu")
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
    assert (there.site.name, there.site.licences, there.licences) == (
        "here",
        {"lab": 10},
        {"lab": 5},
    )
    assert (there.counts_memory, there.settings["priorityweightage"]) == (False, "7")
    assert there.access["batch"].cores_per_node == 4
    assert set(there.notes) == {
        "no topology.txt: switches and blocks are not known, nor what jobs ask of them",
        "2 nodes (g1,x1): gpu, gpu:a100 drained",
        "1 node (g2): left out of partition batch, not among the nodes",
        "1 partition (batch): topology racks is in no file; taken as the default one",
        "1 node (x1): in no partition, so no job starts there",
    }


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("MaxNodes=8", "MaxNodes=many", "line 1, maxnodes: 'many'; expected a whole number"),
        ("1-00:00:00", "soon", "maxtime: 'soon'; expected a time"),
        ("g[1-2]", "g[1-", "nodes: .*host list"),
        ("DefMemPerCPU=50", "DefMemPerCPU=4G", "defmempercpu: '4G'; expected a whole number"),
        ("PriorityTier=10", "PriorityTier=70000", "priority_tier: batch: 70000"),
    ],
)
def test_a_mistake_in_a_partition_is_one_line(tmp_path, right, wrong, message):
    dump(tmp_path / "nodes.json", NODE)
    (tmp_path / "partitions.txt").write_text(PARTITION.replace(right, wrong))
    with pytest.raises(InputError, match=message) as raised:
        read_shown_site(tmp_path)
    assert "partitions.txt" in str(raised.value)


@pytest.mark.parametrize("version", ["24.11.5", "26.05.5"])
def test_partitions_as_json_are_those_of_the_text(shared, version):
    folder = shared(f"slurm/fixtures/{version}")
    index = {each.node.name: place for place, each in enumerate(_nodes(folder))}
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
    found = [
        read_nodes(folder / f"nodes.v{number}.json.gz", Notes())[0] for number in range(42, 46)
    ]
    assert len(found[0]) == 12
    assert all(each == found[0] for each in found)
    whole = [
        {
            each.name: each.exclusive
            for each in shown_partitions(
                folder / f"partitions.v{number}.json.gz",
                {each.node.name: place for place, each in enumerate(_nodes(folder.parent))},
                {},
                Notes(),
            )[0]
        }
        for number in range(42, 46)
    ]
    assert all(each == whole[0] for each in whole)
    assert [name for name, exclusive in whole[0].items() if exclusive] == ["whole"]


def _nodes(folder):
    return read_nodes(folder / "nodes.json.gz", Notes())[0]


def test_a_node_that_is_down_says_why(shared):
    there = read_shown_site(shared("slurm/fixtures/26.05.5"))
    site = there.site
    said = {
        name: (site.states[site.index[name]], site.reasons[site.index[name]])
        for name in ("c20", "g16")
    }
    assert said == {"c20": ("drained", "disk failing"), "g16": ("down", "gpu lost")}
    assert there.site.partition("batch").max_nodes == math.inf
