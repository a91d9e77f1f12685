"""Nodes of several processors that share resources."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.errors import InputError
from optsched.machines.machine import read_machine
from optsched.machines.smp import Smp


def test_a_place_is_the_first_free_processors_of_each_node():
    machine = Smp(3, 4)
    first = machine.claim(machine.place([1, 0, 3]), 4)
    assert machine.resources(first) == "0 8-10"
    second = machine.claim(machine.place([3, 4, 1]), 8)
    assert machine.resources(second) == "1-7 11"
    assert machine.free == 0
    machine.release(first)
    assert machine.free_of.tolist() == [1, 0, 3]
    nodes, processes = machine.processes(second)
    assert nodes.tolist() == [0, 1, 2]
    assert processes.tolist() == [3, 4, 1]


def test_a_place_needs_free_processors():
    machine = Smp(2, 4)
    machine.allocate(3)
    with pytest.raises(ValueError, match="2 processes for 1 free processors"):
        machine.place([2, 0])


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 9)), max_size=30), st.randoms())
def test_free_processors_of_nodes_are_counted(steps, random):
    machine, held = Smp(4, 3), {}
    for job, (first_fit, size) in enumerate(steps):
        if size <= machine.free:
            if first_fit:
                held[job] = machine.allocate(size)
            else:
                free = [node for node in range(4) for _ in range(machine.free_of[node])]
                chosen = random.sample(free, size)
                place = machine.place(np.bincount(chosen, minlength=4))
                held[job] = machine.claim(place, size)
        elif held:
            machine.release(held.pop(random.choice(sorted(held))))
        assert machine.violations(held) == []
    for allocation in held.values():
        machine.release(allocation)
    assert machine.free_of.tolist() == [3] * 4


@pytest.mark.parametrize(
    ("spec", "capacity"),
    [
        ("smp:288x4", {"bandwidth": 6000}),
        ("smp:288x4:bandwidth=5000", {"bandwidth": 5000}),
        ("smp:2x8:bandwidth=6000:network=256", {"bandwidth": 6000, "network": 256}),
    ],
)
def test_a_specification_is_read_and_written(spec, capacity):
    machine = read_machine(spec)
    assert machine.spec == spec
    assert machine.emptied().capacity == capacity
    assert {"smp", "nodes"} <= machine.kinds()


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("smp:288", "machine 'smp:288'; expected smp:NODESxPROCESSORS"),
        ("smp:0x4", "nodes: 0; expected a whole number from 1"),
        ("smp:2x65", "processors: 65; expected at most 64"),
        ("smp:1000000x4", "4,000,000 processors; expected at most"),
        ("smp:2x4:bandwidth=0", "bandwidth: 0; expected a whole number from 1"),
        ("smp:2x4:bandwidth=1000000001", "bandwidth: 1000000001; expected at most 1,000,000,000"),
        ("smp:2x4:bandwidth=5:bandwidth=6", "bandwidth: machine .* expected it once"),
    ],
)
def test_a_wrong_specification_is_refused(spec, said):
    with pytest.raises(InputError, match=said):
        read_machine(spec)


def test_a_file_has_a_table_of_capacities(tmp_path):
    path = tmp_path / "machine.toml"
    path.write_text('kind = "smp"\nnodes = 2\nprocessors = 4\n[capacity]\nmemory_use = 16000\n')
    assert read_machine(path).spec == "smp:2x4:memory_use=16000"
    path.write_text('kind = "smp"\nnodes = 2\nprocessors = 4\ncapacity = 5\n')
    with pytest.raises(InputError, match="expected a table"):
        read_machine(path)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('[capacity]\n"Band w" = 6000\n', "'Band w'; expected small letters and underscores"),
        ('[capacity]\n"" = 6000\n', "''; expected small letters and underscores"),
        ("[capacity]\n", "expected one resource at least, or no table"),
    ],
)
def test_a_file_names_resources_as_a_specification_does(table, said, tmp_path):
    path = tmp_path / "machine.toml"
    path.write_text(f'kind = "smp"\nnodes = 2\nprocessors = 4\n{table}')
    with pytest.raises(InputError) as raised:
        read_machine(path)
    assert str(raised.value) == f"{path}, capacity: {said}"
