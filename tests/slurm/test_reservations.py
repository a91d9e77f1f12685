from __future__ import annotations

import pytest

from optsched.errors import InputError
from optsched.sites.loading import read_reservations
from optsched.sites.parts import Reservation

MAINT = {"flags": ("MAINT", "IGNORE_JOBS", "SPEC_NODES"), "admits": {"users": ("root",)}}


@pytest.mark.parametrize(
    ("name", "span"),
    [
        ("reservations.json", (1795371019, 1795378219)),
        *((f"parsers/reservations.v{v}.json.gz", (1795371019, 1795378219)) for v in (42, 45)),
        ("reservations.txt", ()),  # has no times that could be compared
    ],
)
def test_captured_reservations(shared, name, span):
    nodes = ("c01", "c02", "c03", "c04")
    expected = Reservation("maint", nodes, *span, cores=64, **MAINT)
    assert read_reservations(shared(f"slurm/fixtures/26.05.5/{name}")) == (expected,)
    assert read_reservations(shared("slurm/fixtures/24.11.5/reservations.txt")) == ()


def test_times():
    kept = Reservation("x", (), 100, 200)
    assert [kept.at(time) for time in (99, 100, 199, 200)] == [False, True, True, False]
    spans = [(0, 100), (0, 101), (150, 160), (199, 300), (200, 300)]
    assert [kept.overlaps(*span) for span in spans] == [False, True, True, True, False]


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
