from __future__ import annotations

import json

import pytest

from optsched.errors import InputError
from optsched.sites.loading import load_site
from optsched.sites.parts import Reservation
from optsched.sites.site_file import read_site_file, write_site_file

NODES = {
    "meta": {"plugin": {"data_parser": "data_parser/v0.0.42"}},
    "nodes": [{"name": "c1", "cpus": 4, "real_memory": 100, "state": ["IDLE"]}],
}
TEXT = "NodeName=c1 CPUTot=4 RealMemory=100 State=IDLE\n"
CONFIGURATION = "NodeName=c1 CPUs=4 RealMemory=100\n"
TOML = '[[nodes]]\nnames = "c1"\ncores = 4\nmemory = 100\n'


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("site.toml", TOML),
        ("slurm.conf", CONFIGURATION),
        ("slurm.conf.old", CONFIGURATION),
        ("nodes.json", json.dumps(NODES)),
        ("anything", json.dumps(NODES)),
        ("nodes.txt", TEXT),
    ],
)
def test_a_file_says_itself_what_it_is(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    site = load_site(tmp_path / name)
    assert (site.nodes, site.capacity.tolist()) == (("c1",), [[4, 100]])
    if name in ("slurm.conf", "nodes.json", "nodes.txt"):
        assert load_site(tmp_path).nodes == ("c1",)


def test_what_slurm_shows_comes_before_what_it_was_told(tmp_path):
    (tmp_path / "slurm.conf").write_text(CONFIGURATION.replace("4", "8"))
    (tmp_path / "nodes.txt").write_text(TEXT)
    notes = []
    assert load_site(tmp_path, notes).capacity[0, 0] == 4
    assert "1 node (c1): in no partition, so no job starts there" in notes
    (tmp_path / "nodes.txt").write_text("")  # a command that Slurm refused
    assert load_site(tmp_path).capacity[0, 0] == 8


def test_anything_else_is_refused_with_what_was_expected(tmp_path):
    with pytest.raises(InputError, match=r"expected a site as TOML, slurm\.conf"):
        load_site(tmp_path)
    (tmp_path / "trace.swf").write_text("; Version: 2.2\n")
    with pytest.raises(InputError, match=r"trace\.swf: expected a site as TOML"):
        load_site(tmp_path / "trace.swf")
    with pytest.raises(InputError, match=r"none\.json: no such file"):
        load_site(tmp_path / "none.json")


def test_reservations_of_slurm_that_overlap_are_noted(tmp_path):
    (tmp_path / "nodes.json").write_text(json.dumps(NODES))
    spans = {"maint": (5, 9), "course": (8, 12), "later": (12, 13)}
    dump = NODES | {
        "reservations": [
            {"name": name, "node_list": "c1", "start_time": start, "end_time": end}
            for name, (start, end) in spans.items()
        ]
    }
    (tmp_path / "reservations.json").write_text(json.dumps(dump))
    notes = []
    site = load_site(tmp_path, notes)
    assert len(site.reservations) == 3
    what = "in reservations maint and course at the same time, which keep each other's jobs from"
    assert [note for note in notes if "same time" in note] == [f"1 node (c1): {what} them"]
    write_site_file(site, tmp_path / "site.toml")
    assert (tmp_path / "site.toml").read_text().count("overlap = true") == 1
    assert read_site_file(tmp_path / "site.toml").reservations == site.reservations


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("partitions.txt", "\nno such cluster\n", "line 2: 'no such cluster'; expected Partition"),
        ("now", "x", "now: 'x'; expected seconds since 1970"),
    ],
)
def test_garbage_is_named_and_not_taken_as_a_missing_file(tmp_path, name, text, words):
    nodes = NODES | {"last_update": {"set": True, "infinite": False, "number": 1795367431}}
    (tmp_path / "nodes.json").write_text(json.dumps(nodes))
    (tmp_path / "partitions.txt").write_text("No partitions in the system\n")
    load_site(tmp_path)
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=words):
        load_site(tmp_path)


def test_reservations_of_known_times_are_those_of_the_site(tmp_path):
    (tmp_path / "nodes.json").write_text(json.dumps(NODES))
    record = {"name": "maint", "node_list": "c[1-2]", "start_time": 5, "end_time": 9}
    dump = NODES | {"reservations": [record]}
    (tmp_path / "reservations.json").write_text(json.dumps(dump))
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
    record["end_time"] = 2
    (tmp_path / "reservations.txt").unlink()
    (tmp_path / "reservations.json").write_text(json.dumps(dump))
    message = r"end_time: record 1 \(maint\): 1970-\S+:02\+00:00; expected a time after 1970-\S+:05"
    with pytest.raises(InputError, match=message):
        load_site(tmp_path)
