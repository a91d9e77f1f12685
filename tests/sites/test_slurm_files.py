"""Files and notations of Slurm, as they are read; what nearly is one is named for what it is."""

import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.errors import InputError
from optsched.sites import slurm_notation as notation
from optsched.sites.parts import Places
from optsched.sites.site import parse_constraint
from optsched.sites.slurm_files import (
    Notes,
    configuration_lines,
    near_miss,
    printed_lines,
    read_dump,
)
from optsched.sites.slurm_notation import gres, host_list, hosts, hosts_of, megabytes, seconds, tres
from optsched.sites.slurm_topology import parse_yaml, read_first_topologies, read_topologies
from optsched.slurm.queue import read_queue

NAMES = hosts_of("c[01-40],g[01-16],h[1-4],m[1-4]")
INDEX = {name: place for place, name in enumerate(NAMES)}


@pytest.mark.parametrize(
    ("file", "name"),
    [
        *(("22.05.8/topology.conf", "tree"), ("24.11.5/topology.conf", "tree")),
        *(("22.05.8/topology.txt", "tree"), ("26.05.5/topology.txt", "tree")),
        *(("26.05.5/topology.yaml", "fabric"), ("26.05.5/topoconf.txt", "fabric")),
    ],
)
def test_the_tree_is_the_same_in_all_files(shared, file, name):
    notes = Notes()
    tree = read_topologies(shared(f"slurm/fixtures/{file}"), INDEX, notes)[name]
    assert notes.texts == ()
    leaf = {name: tree.switches[place] for name, place in zip(NAMES, tree.group)}
    leaves = {"c01": 1, "c28": 2, "c29": 3, "m4": 3, "g08": 4, "g09": 5, "h4": 5}
    assert {name: leaf[name] for name in leaves} == {k: f"leaf{v}" for k, v in leaves.items()}
    above = {name: tree.parent[place] for place, name in enumerate(tree.switches)}
    assert tree.switches[above["leaf5"]] == "spine2"
    assert tree.switches[above["spine1"]] == "core"
    assert above["core"] == -1


def test_blocks_and_tori_of_a_recent_slurm(shared):
    for file in ("topology.yaml", "topoconf.txt"):
        found = read_topologies(shared(f"slurm/fixtures/26.05.5/{file}"), INDEX, Notes())
        blocks, cube = found["racks"], found["cube"]
        assert blocks.names[blocks.group[INDEX["g16"]]] == "b4"
        assert blocks.group[INDEX["c01"]] == -1
        assert cube.dims == (4, 3, 3)
        sizes = [(1, 1, 1), (2, 1, 1), (2, 2, 1), (4, 3, 1)]
        assert cube.places == tuple(Places(dims, (0, 0, 0), dims) for dims in sizes)


def test_what_a_recent_slurm_shows_of_topology_conf_is_in_another_file(tmp_path):
    kinds = "".join(f"  {kind}: {{}}\n" for kind in ("block", "flat", "ring", "torus3d", "tree"))
    shown = f"%YAML 1.1\n---\n- topology: default\n  cluster_default: false\n{kinds}...\n"
    (tmp_path / "topoconf.txt").write_text(shown)
    files = [tmp_path / name for name in ("topoconf.txt", "topology.txt")]
    assert read_first_topologies(files[:1], INDEX, Notes()) == {}
    (tmp_path / "topology.txt").write_text("SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=c[01-40]\n")
    found = read_first_topologies(files, INDEX, Notes())
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


def test_lines_continue_up_to_an_empty_one_and_include(tmp_path):
    (tmp_path / "nodes.conf").write_text("NodeName=c1 CPUs=4 # small\n")
    path = tmp_path / "slurm.conf"
    path.write_text(
        "clustername=here\nInclude nodes.conf\nNodeName=c2 \\\n\n"
        "NodeName=c3 \\\n CPUs=2\n\n# c\nNodeName=c4 \\\n"
    )
    assert [(line.values, line.line) for line in configuration_lines(path)] == [
        ({"clustername": "here"}, 1),
        ({"nodename": "c1", "cpus": "4"}, 1),
        ({"nodename": "c2"}, 3),
        ({"nodename": "c3", "cpus": "2"}, 5),
        ({"nodename": "c4"}, 9),
    ]
    path.write_text("Include slurm.conf\n")
    with pytest.raises(InputError, match=r"slurm\.conf"):
        list(configuration_lines(path))


@pytest.mark.parametrize(
    ("function", "text", "expected"),
    [
        *((seconds, "10:30", 630), (tres, "", {}), (tres, "cpu=1K", {"cpu": 1024})),
        (gres, "gpu:4,license:x:2", {"gpu": 4, "license": 2, "license:x": 2}),
    ],
)
def test_amounts(function, text, expected):
    assert function(text) == expected


@pytest.mark.parametrize(
    ("function", "text"),
    [
        *((megabytes, "many"), (seconds, "soon"), (tres, "cpu=x")),
        *((gres, "gpu:a100:4:5:6"), (gres, "gpu:1,("), (tres, "((((gpu:1")),
    ],
)
def test_what_is_no_amount_is_refused(function, text):
    with pytest.raises(InputError, match="expected"):
        function(text)


@pytest.mark.parametrize(
    ("text", "features", "holds"),
    [
        *(("a", "a", True), ("a|b", "b", True)),
        ("a|b&c", "a", False),  # from left to right
        *(("a|(b&c)", "a", True), ("(a|b)&c", "b c", True)),
    ],
)
def test_constraints_on_features(text, features, holds):
    assert parse_constraint(text).holds(features.split()) is holds


@pytest.mark.parametrize("text", ["", "a&", "a b", "(a", "[a*2&b*1]", "a,b"])
def test_other_constraints_are_refused(text):
    with pytest.raises(InputError):
        parse_constraint(text)


def test_yaml_of_a_topology_and_nothing_beyond():
    text = '- a: 1\n  b: {c: "x,y", d: [1, 2]}\n'
    assert parse_yaml(text) == [{"a": 1, "b": {"c": "x,y", "d": [1, 2]}}]
    text = "a: b#c # d\nb: 'x # y' # z\nc: it's # this\n# d: 1\n"
    assert parse_yaml(text) == {"a": "b#c", "b": "x # y", "c": "it's"}
    tagged = "a: !!python/object x\n"
    for text in ("a: &anchor 1\n", tagged, "a: *b\n", "a: 1\na: 2\n", "- 1\n---\n- 2\n"):
        with pytest.raises(InputError):
            parse_yaml(text)


META = {"meta": {"plugin": {"data_parser": "data_parser/v0.0.42"}}}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "JSON"),
        (json.dumps(META), "expected jobs"),
        (json.dumps(META | {"jobs": [{}, 3]}), "jobs: record 2: 3; expected an object"),
        (json.dumps({"jobs": [], "meta": {"plugin": {"data_parser": "v0.0.99"}}}), "0.0.45"),
    ],
)
def test_json_that_slurm_did_not_write_is_refused(tmp_path, content, message):
    path = tmp_path / "squeue.json"
    path.write_text(content)
    with pytest.raises(InputError, match=message) as raised:
        read_dump(path, "jobs")
    assert "squeue.json" in str(raised.value)


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


def test_files_that_include_files_that_include_files_are_read_up_to_a_size(tmp_path):
    for name, inner in (("slurm.conf", "b"), ("b", "c")):
        (tmp_path / name).write_text(f"Include {inner}\n" * 1000)
    (tmp_path / "c").write_text("")
    with pytest.raises(InputError, match="expected at most 256 MiB of all included files"):
        list(configuration_lines(tmp_path / "slurm.conf"))


JUNK = {
    "zeros": b"- top" + bytes(2 * 10**6),
    "dashes": b"-\n" * 10**6,
    "lists": b"- " + b"[]," * 700_000,
    "keys": b"".join(b"a%d: 1\n" % k for k in range(300_000)),
    "quotes": b"- " + b"'\"" * 10**6,
    "depth": b"a: {" + b"b: {" * 10**5,
}


@pytest.mark.parametrize(
    "junk",
    [
        pytest.param(junk, id=name, marks=pytest.mark.long if name == "keys" else ())
        for name, junk in JUNK.items()
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


def test_a_constraint_may_have_any_number_of_features():
    constraint = parse_constraint("|".join(f"f{k}" for k in range(10_000)) + "&ib")
    assert constraint.holds(["f9999", "ib"])
    assert not constraint.holds(["f9999"])


HOSTS = st.builds(
    lambda prefix, number, width: f"{prefix}{str(number).zfill(width) if width else ''}",
    st.sampled_from(["c", "gpu-", "r1n", "login", "é"]),
    st.integers(0, 30),
    st.integers(0, 4),
)


@given(st.lists(HOSTS, max_size=40))
def test_host_lists_that_are_written_and_read_again_are_the_same(names):
    assert sorted(hosts_of(host_list(names))) == sorted(set(names))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        *(("", []), ("c[1-3]", ["c1", "c2", "c3"]), ("c[08-10,12]", ["c08", "c09", "c10", "c12"])),
        *(("c[098-101]", ["c098", "c099", "c100", "c101"]), ("c[9-10]", ["c9", "c10"])),
        ("login,m1", ["login", "m1"]),
    ],
)
def test_host_lists_are_those_that_slurm_reads_and_writes(text, names):
    assert hosts_of(text) == names
    assert host_list([*reversed(names), *names]) == text


@pytest.mark.parametrize("text", ["c[1-", "c[a-b]", "c]", ",c", "c,", "c[2-1]", "c[]", "c d"])
def test_what_is_no_host_list_is_refused(text):
    with pytest.raises(InputError, match="expected"):
        hosts_of(text)


def test_a_list_of_too_many_hosts_is_refused_before_it_is_made():
    for text in ("c[1-999999999999999]", "c[1-2000]x[1-2000]"):
        with pytest.raises(InputError, match="at most 1,000,000 hosts"):
            hosts_of(text)


def test_names_have_a_longest_length_and_need_not_be_written_out_to_be_counted():
    fits = "n[1-9]" + "x" * (notation.LONGEST_NAME - 2)
    assert len(hosts_of(fits)) == 9
    with pytest.raises(
        InputError, match=rf"a name has 256; expected .* {notation.LONGEST_NAME} characters"
    ):
        hosts_of(fits.replace("9", "10"))
    long = "/dev/[0-9]" + "x" * 10**6
    assert notation.number_of_hosts(f"{long},b[1-3][1-3]") == 19


@pytest.mark.parametrize(
    "text",
    [
        "a" + "[1]" * 1000,
        pytest.param("a[" + "1," * 10**6 + "1]", marks=pytest.mark.long),
        pytest.param("a," * 10**6 + "a", marks=pytest.mark.long),
    ],
)
def test_host_lists_of_many_parts_are_refused(text):
    for read in (hosts_of, notation.number_of_hosts):
        with pytest.raises(InputError, match="expected"):
            read(text)


def test_the_characters_of_all_lists_that_are_read_together_are_bounded():
    text = "n[0000001-1000000]"
    lists = notation.MOST_CHARACTERS // (9 * 10**6)
    with notation.read_together():
        for _ in range(lists):
            hosts_of(text)
        with pytest.raises(InputError, match=r"at most 33,554,432 characters of all host lists"):
            hosts_of(text)
    with notation.read_together():
        assert hosts("c[1-2],b") == ("c1", "c2", "b")
        with notation.read_together():  # within another reading, it counts towards that
            assert hosts("c[1-2]") is hosts("c[1-2]")
    assert len(hosts_of(text)) == 10**6


JOB = {"job_id": 4, "steps": []}
ERROR = {"description": "No access"}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b" \r\n", "is empty"),
        (b"<!DOCTYPE html><html>", "a page of HTML"),
        (b"\xfd7zXZ\0", "compressed with xz"),
        ("JobID|Submit\n".encode("utf-16"), "UTF-16"),
        (b'[{"job_id": 4}]', "a list in JSON"),
        (b'{"job_id": 4}\n{"job_id": 5}\n', "several objects in JSON"),
        (b"JobID    JobName\n-------- -------\n4        a\n", "sacct without -P"),
        (b"JobID Submit Start End\n4 1 2 3\n", "with blanks between them"),
        (b"774|u1|2022-11-01T12:50:00|None|COMPLETED|2\n", "without -n"),
        (b"774        wrap   batch    acc     1 COMPLETED    0:0\n", "without -n"),
        (b"  JOBID PARTITION     NAME     USER ST\n", "the text of squeue"),
        (b"PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n", "the text of sinfo"),
        (b'{"sinfo": []}', "what sinfo or scontrol writes"),
        (b"JobId=4 JobName=a\n", "scontrol show jobs"),
        (b"sacct: error: Problem talking to the database\n", "an error of Slurm: sacct: error"),
    ],
)  # fmt: skip
def test_what_a_file_is(content, said):
    assert said in (near_miss(content) or "")


@pytest.mark.parametrize(
    "content",
    [
        b"JobID|Submit|Start\n4|1|2\n",
        b"JOBID,SUBMIT,RUNTIME\n4,1,2\n",
        b'{"jobs": [], "meta": {}}',
        b"{ id: 1 delay: 0 }\n{ id: 2 delay: 0 }\n",
        b"submit,runtime,processors\n0,10,1\n",
        b"No reservations in the system\n",
    ],
)
def test_what_is_of_a_form_is_no_near_miss(content):
    assert near_miss(content) is None


@pytest.mark.parametrize(
    ("record", "command"),
    [
        ("NodeName=c1 Arch=x86_64\n   CPUAlloc=0 CPUTot=8\n   State=IDLE\n", "nodes"),
        ("PartitionName=a\n   AllowGroups=ALL\n   State=UP\n", "partitions"),
        ("LicenseName=a\n    Total=10 Used=0\n", "licenses"),
        ("JobId=4 JobName=a\n   UserId=b(1) Priority=1\n", "jobs"),
    ],
)
def test_records_on_several_lines_are_named(tmp_path, record, command):
    path = tmp_path / "a.txt"
    path.write_text(record + "\n" + record)
    with pytest.raises(InputError, match=rf"line 2: a record on several.*-o show {command}"):
        list(printed_lines(path))


def test_a_comment_with_line_breaks_is_no_record_on_several_lines(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("NodeName=c1 State=DOWN Reason=see\n   ticket=4 [root]\nNodeName=c2 State=UP\n")
    names = [line.text("nodename") for line in printed_lines(path)]
    assert names == ["c1", "", "c2"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("   JOBID PARTITION NAME\n", "squeue.json: the text of squeue; expected squeue --json"),
        (json.dumps(META | {"jobs": [JOB]}), "jobs of sacct --json; expected those of squeue"),
        (json.dumps(META | {"jobs": [], "errors": [ERROR]}), "no jobs, and an error of Slurm: No"),
        (json.dumps(META | {"nodes": [{}]}), "jobs: no list, but of nodes; expected jobs"),
    ],
)
def test_what_is_no_queue_is_named(tmp_path, content, said):
    (tmp_path / "squeue.json").write_text(content)
    with pytest.raises(InputError, match=said):
        read_queue(tmp_path / "squeue.json")
