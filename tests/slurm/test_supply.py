from __future__ import annotations

import numpy as np
import pytest

from optsched.errors import InputError
from optsched.slurm.supply import read_supply
from slurm.raw_capture import Captured, clock, hosts

from .conftest import supply

ONE_NODE = "NodeName=c1 CPUTot=4 RealMemory=10 State=IDLE\n"


def test_columns_of_threads_bind_on_their_nodes_alone():
    there = supply()
    assert there.columns[4:] == ("cores of 2 threads", "memory of 2 threads")
    threads = np.array([2, 2, 2, 2, 1, 2, 2])
    assert (there.amounts[:, 4:] == there.free[:, :2] * threads[:, None]).all()
    assert supply(threads=np.ones(7, dtype=int)).columns == there.site.resources


def test_groups_name_switches_and_blocks():
    there = supply()
    assert " ".join(there.switches[:5]) == "leaf1 leaf1 leaf2 leaf2 leaf2"
    assert there.switches[5:] == ("none of g1", "none of g2")
    assert there.blocks[4:] == ("none of m1", "b1", "b1")
    assert (there.tree, there.block_topology) == ("tree", "blocks")
    flat = supply(topologies={}, partitions=())
    assert (flat.switches, flat.blocks) == (None, None)


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


def test_a_file_that_says_the_same_is_not_missed(tmp_path):
    (tmp_path / "nodes.txt").write_text(ONE_NODE)
    (tmp_path / "config.txt").write_text("Licenses = lab:3\n")
    (tmp_path / "topology.conf").write_text("SwitchName=s1 Nodes=c1\n")
    supply = read_supply(tmp_path, time=7)
    assert supply.notes[0] == "1 licence (lab): taken as free, without licenses.txt"
    assert not any("not known" in note for note in supply.notes)


def test_without_a_time_a_supply_is_refused(tmp_path):
    (tmp_path / "nodes.txt").write_text(ONE_NODE)
    with pytest.raises(InputError, match="expected the file now"):
        read_supply(tmp_path)
    supply = read_supply(tmp_path, time=7)
    assert supply.time == 7
    assert supply.notes == (
        "no topology.txt: switches and blocks are not known, nor what jobs ask of them",
        "no config.txt: taken as giving jobs single cores, and memory",
        "no licenses.json: licences are not known",
        "1 node (c1): in no partition, so no job starts there",
        "no reservations.json: taken as none",
    )
