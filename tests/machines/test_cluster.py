"""Nodes of several cores, and the files in their memory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from machines.memory import Memory, Use

from optsched.errors import InputError
from optsched.machines.cluster import Cluster, Cores, residents
from optsched.machines.machine import read_machine


@pytest.mark.parametrize(
    "spec",
    [
        "cluster:486x20",
        "cluster:8x4:memory=64000",
        "cluster:2x62:memory=9:bandwidth=7",
        "cluster:2x4:kept=next",
        "cluster:2x4:bandwidth=7:kept=next",
    ],
)
def test_a_specification_builds_the_machine_again(spec):
    assert read_machine(spec).spec == spec
    assert read_machine(read_machine(spec)).spec == spec


def test_files_stay_with_their_users_if_nothing_else_is_said():
    assert read_machine("cluster:2x4").files.kept == "users"
    assert read_machine("cluster:2x4:kept=users").spec == "cluster:2x4"


def test_defaults_are_those_of_the_paper():
    machine = read_machine("cluster:486x20")
    assert (machine.size, machine.memory, machine.bandwidth) == (9720, 128_000, 100)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("cluster:486", "expected cluster:NODESxCORES"),
        ("cluster:4x20:memory=big", "expected cluster:NODESxCORES"),
        ("cluster:4x20:speed=3", "expected cluster:NODESxCORES"),
        ("cluster:4x20:memory=1:memory=2", "expected cluster:NODESxCORES"),
        ("cluster:4x20:kept=next:kept=next", "expected cluster:NODESxCORES"),
        ("cluster:4x20:kept=", "expected cluster:NODESxCORES"),
        ("cluster:4x20:kept=forever", "kept: 'forever'; expected users or next"),
        ("cluster:0x20", "nodes: 0; expected a whole number from 1"),
        ("cluster:4x63", "cores: 63; expected at most 62"),
        ("cluster:4x20:bandwidth=0", "bandwidth: 0; expected a whole number from 1"),
        ("cluster:8x20:memory=1", "memory: 1 MB; expected at least 100, what the link loads in a"),
        ("cluster:8x20:bandwidth=200000", "memory: 128000 MB; expected at least 200000, what"),
        ("cluster:100000x20", "cluster of 2,000,000 cores; expected at most 1,048,576"),
    ],
)
def test_other_specifications_are_refused(spec, said):
    with pytest.raises(InputError, match=said):
        read_machine(spec)


def test_a_file_describes_it(tmp_path):
    file = tmp_path / "cluster.toml"
    file.write_text('kind = "cluster"\nnodes = 3\ncores = 4\nbandwidth = 50\n')
    assert read_machine(file).spec == "cluster:3x4:bandwidth=50"
    file.write_text('kind = "cluster"\nnodes = 3\ncores = 4\nkept = "next"\n')
    assert read_machine(file).spec == "cluster:3x4:kept=next"
    file.write_text('kind = "cluster"\nnodes = 3\ncores = 4\nkept = 1\n')
    with pytest.raises(InputError, match=r"cluster\.toml.*kept: 1; expected users or next"):
        read_machine(file)
    file.write_text('kind = "cluster"\nnodes = 3\n')
    with pytest.raises(InputError, match="expected nodes, cores, and perhaps memory"):
        read_machine(file)


def test_jobs_hold_cores_of_one_node():
    machine = Cluster(2, 4)
    first = machine.allocate(3)
    second = machine.allocate(2)
    assert (first, second) == (Cores(0, 0b0111), Cores(1, 0b0011))
    assert machine.resources(second) == "4-5"
    assert machine.free == 3
    with pytest.raises(ValueError, match="no node has 3 free cores"):
        machine.allocate(3)
    with pytest.raises(ValueError, match="cores 1 of node 1 are not free"):
        machine.claim(Cores(1, 0b0110), 2)
    with pytest.raises(ValueError, match="a place of 1 cores for a job of 2"):
        machine.claim(Cores(1, 0b0100), 2)
    assert machine.is_free(Cores(1, 0b1100))
    assert not machine.is_free(Cores(1, 0b0110))
    machine.release(second)
    assert machine.violations({0: first}) == []


def test_contiguous_cores_are_one_run():
    machine = Cluster(1, 8)
    runs = [0b1, 0b1110, 0b11111111]
    assert all(machine.is_contiguous(Cores(0, cores)) for cores in runs)
    assert not any(machine.is_contiguous(Cores(0, cores)) for cores in (0b101, 0b10011))


def test_violations_name_what_is_wrong():
    machine = Cluster(2, 4)
    held = machine.allocate(3)
    assert machine.violations({}) == ["cores 0-2 of node 0 are lost"]
    found = machine.violations({0: held, 1: Cores(0, 0b0100), 2: Cores(1, 0b1)})
    assert found[0] == "cores 2 of node 0 are held twice, by job 1 too"
    assert found[1] == "cores 0 of node 1 are held twice, by job 2 too"
    machine.free = 7
    assert machine.violations({0: held}) == ["7 cores counted free, 5 are"]


def test_a_file_is_shared_side_by_side_and_back_to_back():
    memory = Memory(nodes=2, cores=2)
    assert memory.use(0, 7, 60, 0.0, 500.0) == Use(60.0, loads=True)
    assert memory.use(0, 7, 60, 45.0, 90.0) == Use(15.0, loads=False)
    assert memory.use(1, 7, 60, 45.0, 90.0) == Use(60.0, loads=True)
    memory.drop(0, 7, 80.0)
    memory.drop(0, 7, 100.0)
    assert memory.use(0, 7, 60, 100.0, 300.0) == Use(0.0, loads=False)
    memory.drop(0, 7, 110.0)
    assert memory.use(0, 7, 60, 111.0, 300.0) == Use(60.0, loads=True)


def test_residents_are_what_is_used_or_was_until_now():
    memory = Memory(nodes=3, cores=2)
    memory.use(2, 5, 60, 10.0, 400.0)
    memory.use(2, 5, 60, 20.0, 900.0)
    memory.use(0, 6, 30, 20.0, 200.0)
    memory.drop(0, 6, 25.0)
    assert memory.residents(25.0).tolist() == [[0, 6, 30, 25, 0], [2, 5, 60, 45, 875]]
    assert memory.residents(25.5).tolist() == [[2, 5, 60, 45, 875]]
    memory.drop(2, 5, 30.0)  # the limits of all who have used it count, as in the authors' program
    assert memory.residents(30.0).tolist() == [[2, 5, 60, 40, 870]]
    assert memory.residents(80.0).tolist() == [[2, 5, 60, 0, 820]]


SLOTS = st.tuples(
    st.sampled_from([-1.0, 3.0, 4.0]),
    st.just(7.0),
    st.sampled_from([0.0, 4.5, 5.0, 6.25]),
    st.sampled_from([0.0, 3.0, 4.5, 5.0, 9.5]),
    st.sampled_from([0.0, 1.0]),
)


@given(
    st.lists(SLOTS, min_size=4, max_size=4),
    st.lists(st.sampled_from([-np.inf, 3.0, 4.5, 5.0]), min_size=2, max_size=2),
    st.sampled_from([4.5, 5.0, 5.5]),
    st.booleans(),
)
@settings(deadline=None)
def test_the_kernel_of_residents_agrees_with_their_definition(slots, starts, now, until_next):
    table = np.array(slots).T.reshape(5, 2, 2).copy()
    latest = np.array(starts)
    file, load, loaded, until, users = table
    before = np.where(latest >= now, -np.inf, latest)[:, None]
    there = (users > 0) | (until >= now)
    if until_next:
        there |= until > before
    there &= file != -1
    seconds = np.ceil(np.maximum(np.array([loaded, until]) - now, 0.0))
    expected = np.column_stack(
        [np.nonzero(there)[0], *(column[there] for column in (file, load, *seconds))]
    )
    assert np.array_equal(residents(table, latest, now, until_next), expected)


@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.integers(0, 3), st.integers(0, 5), st.integers(1, 9)),
        max_size=30,
    )
)
@settings(deadline=None)
def test_memory_agrees_with_a_log_of_all_uses(events):
    """A job finds its file where another of the node's jobs used it up to that very instant."""
    memory, cores, load = Memory(2, 3), 3, 4
    log = []  # node, file, start, end, when the file is complete
    now = 0.0
    for node, file, gap, length in events:
        now += gap
        for other in sorted(
            (use for use in log if use[3] <= now and not use[5]), key=lambda u: u[3]
        ):
            memory.drop(other[0], other[1], other[3])
            other[5] = True
        if sum(use[0] == node and not use[5] for use in log) == cores:
            continue
        there = [use for use in log if use[:2] == [node, file] and use[3] >= now]
        complete = max((use[4] for use in there), default=now + load)
        assert memory.use(node, file, load, now, now + length) == Use(
            max(0.0, complete - now), loads=not there
        )
        log.append([node, file, now, now + length, complete, False])
