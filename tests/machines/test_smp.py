"""Nodes of several processors that share resources."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
