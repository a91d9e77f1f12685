"""Sites as machines."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.content import bundled
from optsched.errors import InputError
from optsched.machines.machine import read_machine
from optsched.machines.site import Held, SiteMachine
from optsched.sites.parts import Tree
from optsched.sites.site import Site

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
