"""Machines as the command line names them and as files describe them, and sites as machines."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched import registry
from optsched.cli import run as optsched
from optsched.content import bundled
from optsched.errors import InputError
from optsched.machines.machine import read_machine
from optsched.machines.site import Held, SiteMachine
from optsched.machines.torus import MOST_TORUS_NODES
from optsched.sites.parts import Tree
from optsched.sites.site import Site


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


SAMPLE = bundled("sites") / "sample-site.toml"


def machine_for(*processors, **columns):
    """Return a machine that expects jobs, and what they ask."""
    capacity = np.array([[4, 900], [4, 900], [8, 900]])
    site = Site("small", tuple("abc"), ("cores", "memory"), capacity, licences={"matlab": 2})
    machine = SiteMachine(site)
    jobs = {"processors": np.array(processors), "requested_time": np.full(len(processors), 60)}
    return machine, machine.demands(jobs | {name: np.array(of) for name, of in columns.items()})


def place(one, *chunks_on):
    nodes, chunks = np.array(chunks_on, dtype=np.int64).reshape(-1, 2).T
    return Held(one, nodes.copy(), chunks.copy())


def test_jobs_get_the_first_nodes_that_hold_chunks():
    machine, (wide, narrow) = machine_for(6, 2)
    first, second = machine.allocate(wide), machine.allocate(narrow)
    assert machine.place_text(first) == "0:4 1:2"
    assert machine.place_text(second) == "1:2"
    assert machine.free == 8
    machine.release(first)
    assert (machine.free, machine.resources(machine.allocate(wide))) == (14, "0-1")


def test_exclusive_jobs_share_no_node_and_licences_are_counted():
    machine, (shared, alone) = machine_for(1, 1, exclusive=[-1, 1])
    held = {1: machine.allocate(shared), 2: machine.allocate(alone)}
    assert [machine.resources(each) for each in held.values()] == ["0", "1"]
    held[3] = machine.allocate(alone)
    assert machine.resources(held[3]) == "2"
    assert not machine.fits(alone)
    assert machine.fits(shared)
    machine.release(held.pop(2))
    assert machine.violations(held) == []
    assert machine.fits(alone)
    machine, (both, one) = machine_for(1, 1, licences=["matlab:2", "matlab"])
    held = machine.allocate(both)
    assert not machine.fits(one)
    machine.release(held)
    assert machine.fits(one)


@pytest.mark.parametrize(
    "wrong",
    [
        place(0, (0, 4)),  # too few chunks
        place(0, (0, 5), (1, 1)),  # more than the node has
        place(0, (1, 4), (0, 2)),
        place(0, (2, 6)),  # in use
        place(0, (1, 4), (3, 2)),
        place(1, (0, 4), (1, 2)),  # an alternative of the other job
        place(0, (0, 6), (1, 0)),
    ],
)
def test_a_place_must_be_free_and_as_asked(wrong):
    machine, (six, alone) = machine_for(6, 8, exclusive=[-1, 1])
    machine.claim(place(1, (2, 8)), alone)
    with pytest.raises(ValueError, match="cannot have nodes"):
        machine.claim(wrong, six)
    assert machine.free == 8
    assert machine.place_text(machine.claim(place(0, (0, 3), (1, 3)), six)) == "0:3 1:3"


@pytest.mark.parametrize(
    ("held", "message"),
    [
        ({1: place(0, (0, 4), (1, 2)), 2: place(0, (0, 2), (1, 4))}, "2 cores of node 0 lack"),
        ({1: place(0, (0, 3), (1, 2))}, "job 1: 5 chunks in place of 6"),
        ({1: place(0, (0, 4), (1, 2), (2, 0))}, "job 1: 6 chunks in place of 6"),
        ({1: place(1, (0, 1)), 2: place(2, (0, 1))}, "job 2 shares node 0"),
        ({1: place(1, (0, 1)), 2: place(1, (1, 1))}, "2 licences matlab lack"),
        ({1: place(3, (0, 2))}, "job 1: more than 1 chunks on a node"),
        ({}, "the free cores are wrongly counted"),
    ],
)
def test_violations_are_told(held, message):
    columns = {"exclusive": [-1, -1, 1, -1], "tasks_per_node": [-1, -1, -1, 2]}
    machine, asked = machine_for(6, 1, 1, 4, licences=["", "matlab:2", "", ""], **columns)
    machine.allocate(asked[0])
    assert message in machine.violations(held)


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=40), st.randoms())
def test_what_is_free_is_counted(steps, random):
    columns = {"memory_per_core": [-1, 100, 300, -1, -1, -1], "nodes": [-1, -1, -1, -1, -1, 2]}
    columns["exclusive"] = [-1, -1, -1, 1, -1, -1]
    columns["licences"] = ["", "", "matlab", "", "matlab:2", ""]
    machine, asked = machine_for(1, 3, 2, 2, 4, 6, **columns)
    held = {}
    for job, (kind, ends) in enumerate(steps):
        if ends and held:
            machine.release(held.pop(random.choice(sorted(held))))
        elif machine.fits(asked[kind]):
            held[job] = machine.allocate(asked[kind])
        else:
            with pytest.raises(ValueError, match="does not fit"):
                machine.allocate(asked[kind])
        assert machine.violations(held) == []


def test_nodes_that_are_not_up_run_no_jobs():
    states = ("down", "up", "drained", "reserved")
    capacity = np.tile([2, 9], (4, 1))
    site = Site("small", tuple("abcd"), ("cores", "memory"), capacity, states=states)
    machine = SiteMachine(site)
    jobs = {"processors": np.array([2, 3]), "requested_time": np.array([9, 9])}
    fits, never = machine.demands(jobs)
    assert (machine.size, machine.free) == (2, 2)
    assert machine.why_never(never) == "it does not fit on the nodes that it may use"
    assert machine.resources(machine.allocate(fits)) == "1"
    with pytest.raises(InputError, match="no node with cores is up"):
        SiteMachine(Site("off", ("a",), ("cores", "memory"), np.array([[2, 9]]), states=("down",)))


def test_the_switches_of_jobs_are_counted():
    tree = {"tree": Tree(("root", "one", "two"), [-1, 0, 0], [1, 1, 2, 2, -1, -1])}
    capacity = np.tile([2, 9], (6, 1))
    site = Site("wired", tuple("abcdef"), ("cores", "memory"), capacity, topologies=tree)
    measures = SiteMachine(site).job_measures(["0-1", "1-2", "0 3", "4-5", "0-5", "0-1"])
    assert measures["switches"].tolist() == [1, 2, 2, 2, 4, 1]
    assert measures["runs"].tolist() == [1, 1, 2, 1, 1, 1]
    assert "switches" not in machine_for(1)[0].job_measures(["0"])


def test_machines_are_read_from_files_and_from_what_slurm_shows(tmp_path):
    (tmp_path / "slurm.conf").write_text("NodeName=c[1-4] CPUs=4 RealMemory=900\n")
    machine = read_machine(f"site:{tmp_path}")
    assert (machine.size, machine.spec) == (16, f"site:{tmp_path}")
    by_file, by_spec = read_machine(SAMPLE), read_machine(f"site:{SAMPLE}")
    assert by_file.spec == by_spec.spec == f"site:{SAMPLE}"
    assert by_file.site == by_spec.site == read_machine(by_file).site
    assert by_file.size == 256
    nameless = tmp_path / "mine.toml"
    nameless.write_text('kind = "site"\n[[nodes]]\nnames = "a"\ncores = 2\nmemory = 9\n')
    assert read_machine(nameless).site.name == "mine"
    nameless.write_text(nameless.read_text().replace("2", '"x"'))
    for spec in (nameless, f"site:{nameless}"):
        with pytest.raises(InputError) as error:
            read_machine(spec)
        assert str(error.value.file) == str(nameless)
