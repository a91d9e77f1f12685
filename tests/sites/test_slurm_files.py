from __future__ import annotations

import gzip
import json
import math
import tracemalloc

import pytest

from optsched.errors import InputError
from optsched.sites.parts import Blocks, Places, Torus, Tree
from optsched.sites.site import parse_constraint
from optsched.sites.slurm_files import Notes, configuration_lines, number, printed_lines, read_dump
from optsched.sites.slurm_notation import gres, hosts_of, megabytes, seconds, time_text, tres
from optsched.sites.slurm_topology import (
    parse_yaml,
    read_first_topologies,
    read_topologies,
)

NAMES = hosts_of("c[01-40],g[01-16],h[1-4],m[1-4]")
INDEX = {name: place for place, name in enumerate(NAMES)}


@pytest.fixture
def captured(shared):
    return shared("slurm") / "fixtures"


def test_the_tree_is_the_same_in_all_files(captured):
    notes = Notes()
    trees = [
        read_topologies(captured / "22.05.8" / "topology.conf", INDEX, notes)["tree"],
        read_topologies(captured / "24.11.5" / "topology.conf", INDEX, notes)["tree"],
        read_topologies(captured / "22.05.8" / "topology.txt", INDEX, notes)["tree"],
        read_topologies(captured / "26.05.5" / "topology.txt", INDEX, notes)["tree"],
        read_topologies(captured / "26.05.5" / "topology.yaml", INDEX, notes)["fabric"],
        read_topologies(captured / "26.05.5" / "topoconf.txt", INDEX, notes)["fabric"],
    ]
    assert notes.texts == ()
    for tree in trees:
        assert isinstance(tree, Tree)
        leaf = {name: tree.switches[place] for name, place in zip(NAMES, tree.leaf)}
        assert [leaf[name] for name in ("c01", "c28", "c29", "m4", "g08", "g09", "h4")] == [
            *("leaf1", "leaf2", "leaf3", "leaf3", "leaf4", "leaf5", "leaf5")
        ]
        above = {name: tree.parent[place] for place, name in enumerate(tree.switches)}
        assert tree.switches[above["leaf5"]] == "spine2"
        assert tree.switches[above["spine1"]] == "core"
        assert above["core"] == -1


def test_blocks_tori_and_flat_networks_of_a_recent_slurm(captured):
    for file in ("topology.yaml", "topoconf.txt"):
        found = read_topologies(captured / "26.05.5" / file, INDEX, Notes())
        blocks, cube = found["racks"], found["cube"]
        assert isinstance(blocks, Blocks)
        assert blocks.names[blocks.group[INDEX["g16"]]] == "b4"
        assert blocks.group[INDEX["c01"]] == -1
        assert isinstance(cube, Torus)
        assert cube.dims == (4, 3, 3)
        sizes = [(1, 1, 1), (2, 1, 1), (2, 2, 1), (4, 3, 1)]
        assert cube.places == tuple(Places(dims, (0, 0, 0), dims) for dims in sizes)


def test_what_a_recent_slurm_shows_of_topology_conf_is_in_another_file(tmp_path):
    kinds = "".join(f"  {kind}: {{}}\n" for kind in ("block", "flat", "ring", "torus3d", "tree"))
    shown = f"%YAML 1.1\n---\n- topology: default\n  cluster_default: false\n{kinds}...\n"
    (tmp_path / "topoconf.txt").write_text(shown)
    files = ("topoconf.txt", "topology.txt")
    assert read_first_topologies(tmp_path, files, INDEX, Notes()) == {}
    (tmp_path / "topology.txt").write_text("SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=c[01-40]\n")
    found = read_first_topologies(tmp_path, files, INDEX, Notes())
    assert found["tree"].switches == ("leaf1",)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("SwitchName=a Nodes=c[01-", "host list"),
        ("SwitchName=a Switches=b", "b"),
        ("SwitchName=a Nodes=c01\nSwitchName=b Nodes=c01", "c01"),
        ("SwitchName=a Switches=b\nSwitchName=b Switches=a", "itself"),
    ],
)
def test_a_wrong_topology_is_named_with_its_file(tmp_path, line, message):
    path = tmp_path / "topology.conf"
    path.write_text(line + "\n")
    with pytest.raises(InputError, match=message) as raised:
        read_topologies(path, INDEX, Notes())
    assert "topology.conf" in str(raised.value)


def test_lines_continue_and_include(tmp_path):
    (tmp_path / "nodes.conf").write_text("NodeName=c1 CPUs=4 # small\n")
    path = tmp_path / "slurm.conf"
    path.write_text("clustername=here\n# none\nInclude nodes.conf\nNodeName=c2 \\\n  CPUs=8\n")
    lines = list(configuration_lines(path))
    assert [line.values for line in lines] == [
        {"clustername": "here"},
        {"nodename": "c1", "cpus": "4"},
        {"nodename": "c2", "cpus": "8"},
    ]
    path.write_text("Include slurm.conf\n")
    with pytest.raises(InputError, match=r"slurm\.conf"):
        list(configuration_lines(path))


@pytest.mark.parametrize(
    ("function", "text", "expected"),
    [
        (megabytes, "1.5G", 1536),
        (megabytes, "1K", 1),
        (megabytes, "2T", 2_097_152),
        (seconds, "1-00:00:00", 86_400),
        (seconds, "10:30", 630),
        (seconds, "INFINITE", math.inf),
        (tres, "", {}),
        (tres, "cpu=1K", {"cpu": 1024}),
        (gres, "", {}),
        (gres, "gpu", {"gpu": 1}),
        (gres, "gpu:4,license:x:2", {"gpu": 4, "license": 2, "license:x": 2}),
    ],
)
def test_amounts(function, text, expected):
    assert function(text) == expected


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (megabytes, "many"),
        (megabytes, "-1"),
        (seconds, "soon"),
        (seconds, "1:2:3:4"),
        (tres, "cpu"),
        (tres, "cpu=x"),
        (gres, "gpu:a100:4:5:6"),
    ],
)
def test_what_is_no_amount_is_refused(function, text):
    with pytest.raises(InputError, match="expected"):
        function(text)


@pytest.mark.parametrize("amount", [0, 59, 3600, 86_400, 90_061, math.inf])
def test_times_survive_their_text(amount):
    assert seconds(time_text(amount)) == amount


@pytest.mark.parametrize(
    ("text", "features", "holds"),
    [
        ("a", "a", True),
        ("a&b", "a", False),
        ("a|b", "b", True),
        ("a|b&c", "a", False),  # from left to right
        ("a|(b&c)", "a", True),
        ("(a|b)&c", "b c", True),
    ],
)
def test_constraints_on_features(text, features, holds):
    assert parse_constraint(text).holds(features.split()) is holds


@pytest.mark.parametrize("text", ["", "a&", "&a", "a b", "(a", "[a*2&b*1]", "a,b"])
def test_other_constraints_are_refused(text):
    with pytest.raises(InputError):
        parse_constraint(text)


def test_yaml_of_a_topology_and_nothing_beyond():
    assert parse_yaml('- a: 1\n  b: {c: "x,y", d: [1, 2]}\n') == [
        {"a": 1, "b": {"c": "x,y", "d": [1, 2]}}
    ]
    for text in (
        "a: &anchor 1\n",
        "a: !!python/object x\n",
        "a: *b\n",
        "a: 1\na: 2\n",
        "- 1\n---\n- 2\n",
    ):
        with pytest.raises(InputError):
            parse_yaml(text)


VERSION = {"meta": {"plugin": {"data_parser": "data_parser/v0.0.42"}}}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "JSON"),
        ("[]", "a list in JSON"),
        (json.dumps({"jobs": []}), "data parser"),
        (json.dumps(VERSION), "expected jobs"),
        (json.dumps(VERSION | {"jobs": [{}, 3]}), "jobs: record 2: 3; expected an object"),
        (json.dumps({"jobs": [], "meta": {"plugin": {"data_parser": "v0.0.99"}}}), "0.0.45"),
    ],
)
def test_json_that_slurm_did_not_write_is_refused(tmp_path, content, message):
    path = tmp_path / "squeue.json"
    path.write_text(content)
    with pytest.raises(InputError, match=message) as raised:
        read_dump(path, "jobs")
    assert "squeue.json" in str(raised.value)


def test_json_of_all_versions(captured):
    for folder, version, jobs in (("22.05.8", 38, 204), ("24.11.5", 42, 171), ("26.05.5", 45, 125)):
        path = captured / folder / "squeue.json.gz"
        dump = read_dump(path, "jobs")
        assert (dump.version, dump.release, len(dump.records)) == (version, folder, jobs)
        with gzip.open(path) as stream:
            assert dump.records == json.load(stream)["jobs"]


def test_numbers_with_and_without_an_object():
    assert number({"set": False, "infinite": False, "number": 0}) is None
    assert number({"set": False, "infinite": True, "number": 0}) == math.inf
    assert number("7", otherwise=0) == 0


def test_printed_values_end_where_any_key_of_slurm_begins(tmp_path):
    (tmp_path / "jobs.txt").write_text(
        "JobId=7 NumTasks=2 CPUs/Task=4 ReqB:S:C:T=0:0:*:* TRES=cpu=8,mem=1G Socks/Node=* "
        "Comment=as http://x?a=1 says Power="
    )
    [line] = printed_lines(tmp_path / "jobs.txt")
    assert (line.count("numtasks"), line.count("cpus/task")) == (2, 4)
    assert tres(line.text("tres")) == {"cpu": 8, "mem": 1024}
    assert line.text("comment") == "as http://x?a=1 says"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"NodeName=c1 CPUs=4 CPUs=4\n", r"line 1, cpus: is there twice; expected it once"),
        (b"NodeName=c1 CPUS=4 cpus=8\n", r"line 1, cpus: is there twice"),
        (b"# none\nNodeName=c1 Reason=" + b"x" * 2**20, r"line 2: is too long"),
        (b"NodeName=c1 \\\n" * 10**5, r"line 1: is too long"),
        (b"NodeName=c1 " + b" ".join(b"k%d=1" % k for k in range(6000)), "at most 5,000 keys"),
        (b"a=b\n" * 250_001, "at most 250,000 lines"),
        (b"# c\0", "has zero bytes; expected a text file"),
    ],
)
def test_what_no_configuration_has_is_refused(tmp_path, text, message):
    path = tmp_path / "slurm.conf"
    path.write_bytes(text)
    with pytest.raises(InputError, match=message) as raised:
        list(configuration_lines(path))
    assert len(str(raised.value)) < 5000


def test_an_empty_line_ends_one_that_is_continued(tmp_path):
    path = tmp_path / "slurm.conf"
    path.write_text("NodeName=c1 \\\n\nNodeName=c2 \\\n CPUs=2\n\n# c\nNodeName=c3 \\\n")
    found = [(line.values["nodename"], line.number) for line in configuration_lines(path)]
    assert found == [("c1", 1), ("c2", 3), ("c3", 7)]


def test_files_that_include_files_that_include_files_are_read_up_to_a_size(tmp_path):
    for name, inner in (("slurm.conf", "b"), ("b", "c")):
        (tmp_path / name).write_text(f"Include {inner}\n" * 1000)
    (tmp_path / "c").write_text("")
    with pytest.raises(InputError, match="expected at most 256 MiB of all included files"):
        list(configuration_lines(tmp_path / "slurm.conf"))


JUNK = (
    b"- top" + bytes(2 * 10**6), b"-\n" * 10**6, b"- ab\n" * 500_000, b"- " + b"[]," * 700_000,
    b"- [" + b"[]," * 300_000, b"".join(b"a%d: 1\n" % k for k in range(300_000)),
    b"- " + b"'\"" * 10**6, "- é\U0001d54f\n".encode() * 300_000, b"a: {" + b"b: {" * 10**5,
)  # fmt: skip


LONG = (2, 4, 7)
"""Kinds of it that take a second each, and are read as others are."""


@pytest.mark.parametrize(
    "junk",
    [
        pytest.param(junk, id=str(place), marks=pytest.mark.long if place in LONG else ())
        for place, junk in enumerate(JUNK)
    ],
)
def test_junk_in_yaml_takes_no_more_than_ten_times_its_size(tmp_path, junk):
    path = tmp_path / "topology.yaml"
    path.write_bytes(junk)
    read_bytes = 2 * 2**22  # in pieces of this size
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=r"topology\.yaml"):
            read_topologies(path, INDEX, Notes())
        assert tracemalloc.get_traced_memory()[1] < 10 * len(junk) + read_bytes
    finally:
        tracemalloc.stop()


def test_comments_in_yaml_end_values_but_not_words_and_quoted_texts():
    text = "a: b#c # d\nb: 'x # y' # z\nc: it's # this\n# d: 1\n"
    assert parse_yaml(text) == {"a": "b#c", "b": "x # y", "c": "it's"}


def test_a_constraint_may_have_any_number_of_features():
    constraint = parse_constraint("|".join(f"f{k}" for k in range(10_000)) + "&ib")
    assert constraint.holds(["f9999", "ib"])
    assert not constraint.holds(["f9999"])


@pytest.mark.parametrize("text", ["(", "gpu:1,(", "((((gpu:1"])
def test_parentheses_that_do_not_close_are_refused(text):
    for parse in (gres, tres):
        with pytest.raises(InputError, match="expected"):
            parse(text)
