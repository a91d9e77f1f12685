"""Nodes of several cores."""

import pytest

from optsched.machines.cluster import Cluster, Cores


def test_jobs_hold_cores_of_one_node():
    machine = Cluster(2, 4)
    first = machine.allocate(3)
    second = machine.allocate(2)
    assert (first, second) == (Cores(0, 0b0111), Cores(1, 0b0011))
    assert machine.resources(second) == "4-5"
    assert machine.free == 3
    with pytest.raises(ValueError, match="no node has 3 free cores"):
        machine.allocate(3)
    for cores, said in ((0b0110, "cores 1 of node 1 are not free"), (0b0100, "a place of 1 cores")):
        with pytest.raises(ValueError, match=said):
            machine.claim(Cores(1, cores), 2)
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
