from __future__ import annotations

import numpy as np
import pytest

from optsched.errors import InputError
from optsched.sites.loading import read_reservations
from optsched.sites.parts import Reservation
from optsched.slurm.supply import read_supply
from slurm.plan_checker import Captured, clock, hosts

from .conftest import supply


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
    (tmp_path / "nodes.txt").write_text("NodeName=c1 CPUTot=4 RealMemory=10 State=IDLE\n")
    with pytest.raises(InputError, match="expected the file now"):
        read_supply(tmp_path)
    (tmp_path / "config.txt").write_text("Licenses = lab:3\n")
    (tmp_path / "topology.conf").write_text("SwitchName=s1 Nodes=c1\n")
    supply = read_supply(tmp_path, time=7)
    assert supply.time == 7
    assert supply.notes[0] == "1 licence (lab): taken as free, without licenses.txt"
    assert not any("not known" in note for note in supply.notes)


def test_captured_reservations_are_the_same_in_all_files(shared):
    """But for the text, which has no times that could be compared."""
    its = {"flags": ("MAINT", "IGNORE_JOBS", "SPEC_NODES"), "admits": {"users": ("root",)}}
    files = ("reservations.json", *(f"parsers/reservations.v{v}.json.gz" for v in (42, 45)))
    for name, *span in (*((file, 1795371019, 1795378219) for file in files), ("reservations.txt",)):
        expected = Reservation("maint", ("c01", "c02", "c03", "c04"), *span, cores=64, **its)
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
