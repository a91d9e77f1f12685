"""Machines as the command line names them and as files describe them."""

import pytest

from optsched import registry
from optsched.cli import run as optsched
from optsched.errors import InputError
from optsched.machines.machine import read_machine
from optsched.machines.torus import MOST_TORUS_NODES


@pytest.mark.parametrize(
    ("spec", "size"),
    [
        *(("nodes:1152", 1152), ("matrix:320", 320)),
        *(("cluster:486x20", 9720), ("cluster:2x62:memory=9:bandwidth=7", 124)),
        *(("cluster:2x4:bandwidth=7:kept=next", 8), ("smp:2x8:bandwidth=6000:network=256", 16)),
        *(("torus:24x24x24x2:hilbert", 27_648), ("torus:1x1x5x3:row-major", 15)),
        ("torus:4x4x4:hilbert:wrap=xz:convex=true", 64),
        ("torus:4x4x4x2:snake:wrap=none:links=2,1,2", 128),
    ],
)
def test_a_specification_builds_the_machine_again(spec, size):
    machine = read_machine(spec)
    assert (machine.spec, machine.size, machine.free) == (spec, size, size)
    assert machine.name == spec.partition(":")[0]
    machine.allocate(2)
    again = read_machine(machine)
    assert (again.spec, again.free) == (spec, size)


def test_what_a_specification_leaves_out_is_as_documented():
    assert read_machine("1152").spec == read_machine(1152).spec == "nodes:1152"
    assert read_machine("torus:8x12x12").spec == "torus:8x12x12:hilbert"
    holes = "torus:4x4x4:hilbert:holes=1x1x4@0,3,0+2x2x1@1,1,3"
    assert (read_machine(holes).spec, read_machine(holes).free) == (holes, 64 - 4 - 4)
    cluster = read_machine("cluster:486x20:kept=users")
    assert (cluster.spec, cluster.memory, cluster.bandwidth) == ("cluster:486x20", 128_000, 100)
    smp = read_machine("smp:288x4")
    assert smp.capacity == {"bandwidth": 6000}
    assert {"smp", "nodes"} <= smp.kinds()


WRONG = ("8x12", "8x-12x12", "4x4x4:wrap=xx", "4x4x4:hilbert:snake", "4x4x4:convex=yes")
WRONG += ("4x4x4:convex=true:convex=true", f"{'9' * 5000}x1x1")


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("nodes:0", "expected a whole number from 1"),
        ("nodes:many", "expected nodes:NUMBER"),
        ("node:5", "did you mean nodes"),
        ("nodes", ", matrix:NUMBER, nodes:NUMBER, site:PATH.NAME, smp:"),
        ("cluster:486", "expected cluster:NODESxCORES"),
        ("cluster:4x20:speed=3", "expected cluster:NODESxCORES"),
        ("cluster:4x20:kept=forever", "kept: 'forever'; expected users or next"),
        ("cluster:0x20", "nodes: 0; expected a whole number from 1"),
        ("cluster:4x63", "cores: 63; expected at most 62"),
        ("cluster:8x20:memory=1", "memory: 1 MB; expected at least 100, what the link loads in a"),
        ("cluster:100000x20", "cluster of 2,000,000 cores; expected at most 1,048,576"),
        ("smp:288", "machine 'smp:288'; expected smp:NODESxPROCESSORS"),
        ("smp:2x65", "processors: 65; expected at most 64"),
        ("smp:2x4:bandwidth=5:bandwidth=6", "bandwidth: machine .* expected it once"),
        ("torus:8x12x12:hilber", "unknown ordering 'hilber'; did you mean hilbert"),
        ("torus:8x0x12", "shape: .*; expected three whole numbers from 1"),
        (f"torus:1x1x{MOST_TORUS_NODES + 1}", "torus of 1,048,577 nodes; expected at most 1,048"),
        *((f"torus:{text}", "expected torus:XxYxZ") for text in WRONG),
        ("torus:4x4x4:links=2,1", r"links: \(2, 1\); expected three whole numbers from 1"),
        ("torus:4x4x4:holes=1x1x9@0,0,0", "holes: '1x1x9@0,0,0'; 9 routers along z; expected 1"),
        ("torus:4x4x4:holes=all", "holes: 'all'; expected a box such as 1x1x4@0,3,0"),
        ("torus:2x2x2:holes=2x2x2@0,0,0", "holes: no router is left"),
    ],
)
def test_a_wrong_specification_says_what_was_expected(spec, said):
    with pytest.raises(InputError, match=said):
        read_machine(spec)


SHAPE = "shape = [4, 4, 4]\n"
SMP = 'kind = "smp"\nnodes = 2\nprocessors = 4\n'
THREE = 'kind = "cluster"\nnodes = 3\ncores = 4\n'
OPTIONS = 'wrap = [true, false, true]\nlinks = [2, 1, 2]\nholes = ["1x1x4@0,3,0"]\nconvex = true\n'


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ('kind = "nodes"\nsize = 12\n', "nodes:12"),
        ('kind = "matrix"\nsize = 12\n', "matrix:12"),
        (f"{THREE}bandwidth = 50\n", "cluster:3x4:bandwidth=50"),
        (f'{THREE}kept = "next"\n', "cluster:3x4:kept=next"),
        (f"{SMP}[capacity]\nmemory_use = 16000\n", "smp:2x4:memory_use=16000"),
        (f'kind = "torus"\n{SHAPE}', "torus:4x4x4:hilbert"),
        (
            f'kind = "torus"\n{SHAPE}nodes_per_router = 2\nordering = "snake"\n{OPTIONS}',
            "torus:4x4x4x2:snake:wrap=xz:links=2,1,2:holes=1x1x4@0,3,0:convex=true",
        ),
    ],
)
def test_a_file_describes_a_machine(tmp_path, text, spec):
    (tmp_path / "machine.toml").write_text(text)
    assert read_machine(tmp_path / "machine.toml").spec == spec


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('kind = "nodes"\nnodes = 12\n', r": keys \['nodes'\]; expected size"),
        ("size = \n", ": not TOML"),
        (f"{THREE}kept = 1\n", "kept: 1; expected users or next"),
        ('kind = "cluster"\nnodes = 3\n', "expected nodes, cores, and perhaps memory"),
        (f"{SMP}capacity = 5\n", "expected a table"),
        (f'{SMP}[capacity]\n"Band w" = 6\n', ", capacity: 'Band w'; expected small letters and un"),
        (f"{SMP}[capacity]\n", ", capacity: expected one resource at least, or no table"),
        ('kind = "torus"\nshape = [8, 12]', r"shape: \[8, 12\]; expected three whole numbers"),
        ('kind = "torus"\nshape = [8, 12, true]', "expected three whole numbers"),
        (f'kind = "torus"\n{SHAPE}nodes_per_router = 0', "nodes_per_router: 0; expected"),
        (f'kind = "torus"\n{SHAPE}ordering = [3]', "unknown ordering"),
        (f'kind = "torus"\n{SHAPE}nodes = 2', r"keys \['nodes', 'shape'\]; expected shape, and"),
        (f'kind = "torus"\n{SHAPE}holes = "1x1x1@0,0,0"', "holes: .* expected a list of"),
        (f'kind = "torus"\n{SHAPE}convex = "yes"', "convex: 'yes'; expected true or false"),
    ],
)
def test_a_wrong_file_says_what_was_expected(tmp_path, text, said):
    (tmp_path / "machine.toml").write_text(text)
    with pytest.raises(InputError, match=f"machine.toml.*{said}"):
        read_machine(tmp_path / "machine.toml")


def test_the_list_of_machines_shows_the_forms_of_specifications(capsys):
    assert optsched(["list", "machines"]) == 0
    shown = capsys.readouterr().out
    assert all(registry.machines[name].usage in shown for name in registry.machines)
