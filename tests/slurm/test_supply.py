from __future__ import annotations

import numpy as np
import pytest

from optsched.errors import InputError
from optsched.slurm.supply import read_supply


def test_columns_of_threads_bind_on_their_nodes_alone(supply):
    there = supply()
    assert there.columns[4:] == ("cores of 2 threads", "memory of 2 threads")
    threads = np.array([2, 2, 2, 2, 1, 2, 2])
    assert (there.amounts[:, 4:] == there.free[:, :2] * threads[:, None]).all()
    assert supply(threads=np.ones(7, dtype=int)).columns == there.site.resources


def test_busy_nodes_are_by_default_those_with_cores_in_use(supply):
    free = supply().site.capacity.copy()
    free[2, 0] -= 1
    assert supply(free=free).busy.tolist() == [False, False, True, False, False, False, False]


def test_groups_name_switches_and_blocks(supply):
    there = supply()
    assert there.switches == (
        *("leaf1", "leaf1", "leaf2", "leaf2", "leaf2", "none of g1", "none of g2"),
    )
    assert there.blocks[4:] == ("none of m1", "b1", "b1")
    assert (there.tree, there.block_topology) == ("tree", "blocks")
    flat = supply(topologies={}, partitions=())
    assert (flat.switches, flat.blocks) == (None, None)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"free": np.ones((6, 4), dtype=int)}, "free"),
        ({"free": -np.ones((7, 4), dtype=int)}, "free"),
        ({"threads": np.ones(6, dtype=int)}, "threads"),
        ({"threads": np.zeros(7, dtype=int)}, "threads"),
        ({"busy": np.ones(6, dtype=bool)}, "busy"),
    ],
)
def test_what_does_not_match_the_site_is_refused(supply, fields, field):
    with pytest.raises(InputError) as error:
        supply(**fields)
    assert error.value.field == field


def test_what_is_read_equals_an_independent_reading_of_the_text(captured, tmp_path):
    folder, queue, oracle = captured
    for path in folder.iterdir():
        # the JSON of the nodes is a second older than the text
        if path.is_file() and not path.name.startswith(("nodes.json", "sinfo.json")):
            (tmp_path / path.name).symlink_to(path)
    there = read_supply(tmp_path, queue.time)
    assert (there.time, there.licences) == (queue.time, oracle.licences)
    assert there.reservations == oracle.reservations
    assert there.columns == oracle.columns
    order = there.site.places(oracle.site.nodes)
    assert sorted(order) == list(range(len(there.site.nodes)))
    for name in ("amounts", "capacity", "threads", "busy"):
        assert np.array_equal(getattr(there, name)[order], getattr(oracle, name)), name
    for name in ("features", "states"):
        ours = getattr(there.site, name)
        assert tuple(ours[place] for place in order) == getattr(oracle.site, name)
    assert [each.name for each in there.site.partitions] == [
        each.name for each in oracle.site.partitions
    ]
    for ours, theirs in zip(there.site.partitions, oracle.site.partitions):
        assert {there.site.nodes[place] for place in ours.nodes} == {
            oracle.site.nodes[place] for place in theirs.nodes
        }
        for name in ("max_time", "max_nodes", "exclusive", "up", "priority_tier", "topology"):
            assert getattr(ours, name) == getattr(theirs, name), (ours.name, name)
    assert list(there.site.topologies) == list(oracle.site.topologies)
    assert there.switches is not None
    assert tuple(there.switches[place] for place in order) == oracle.switches
    if oracle.blocks is not None:
        assert tuple(there.blocks[place] for place in order) == oracle.blocks


def test_what_is_in_use_is_what_the_running_jobs_have(captured):
    folder, queue, _ = captured
    there = read_supply(folder)
    used = np.zeros_like(there.free)
    for job in queue.running:
        for part in job.allocations:
            place = there.site.index[part.node]
            cores = part.cores * there.threads[place]
            for name, many in {"cores": cores, "memory": part.memory, **part.gres}.items():
                used[place, there.columns.index(name)] += many
    expected = np.where(there.site.is_up[:, None], there.site.capacity - used, there.free)
    wrong = np.flatnonzero((there.free != expected).any(axis=1))
    assert [there.site.nodes[place] for place in wrong] == []


def test_the_default_partition_and_memory_per_core_are_read(captured):
    site = read_supply(captured[0]).site
    assert site.name == "scout"
    assert [each.name for each in site.partitions if each.default] == ["batch"]
    assert {each.name: each.memory_per_core for each in site.partitions} == {
        **dict.fromkeys(("batch", "bigmem", "whole", "debug"), 1000),
        "gpu": 4000,
    }


def test_a_file_that_says_the_same_is_not_missed(tmp_path):
    (tmp_path / "nodes.txt").write_text("NodeName=c1 CPUTot=4 RealMemory=10 State=IDLE\n")
    (tmp_path / "config.txt").write_text("Licenses = lab:3\n")
    (tmp_path / "topology.conf").write_text("SwitchName=s1 Nodes=c1\n")
    supply = read_supply(tmp_path, time=7)
    assert supply.notes[0] == "1 licence (lab): taken as free, without licenses.txt"
    assert not any("not known" in note for note in supply.notes)


def test_without_a_time_a_supply_is_refused(tmp_path):
    (tmp_path / "nodes.txt").write_text("NodeName=c1 CPUTot=4 RealMemory=10 State=IDLE\n")
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
