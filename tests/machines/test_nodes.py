from __future__ import annotations

import pytest

from optsched.errors import InputError
from optsched.machines.machine import read_machine
from optsched.machines.nodes import Nodes


def test_a_specification_names_the_machine():
    machine = read_machine("nodes:1152")
    assert isinstance(machine, Nodes)
    assert (machine.size, machine.free, machine.spec) == (1152, 1152, "nodes:1152")
    assert read_machine("1152").spec == "nodes:1152"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("nodes:0", "expected a whole number from 1"),
        ("nodes:-4", "expected a whole number from 1"),
        ("nodes:many", "expected nodes:NUMBER"),
        ("nodes:", "expected nodes:NUMBER"),
        ("node:5", "did you mean nodes"),
        ("nodes", ", matrix:NUMBER, nodes:NUMBER, site:PATH.NAME, smp:"),
    ],
)
def test_a_wrong_specification_says_what_was_expected(spec, expected):
    with pytest.raises(InputError, match=expected):
        read_machine(spec)


def test_a_toml_file_describes_a_machine(tmp_path):
    path = tmp_path / "machine.toml"
    path.write_text('kind = "nodes"\nsize = 12\n')
    assert read_machine(path).size == 12
    path.write_text('kind = "nodes"\nnodes = 12\n')
    with pytest.raises(InputError, match=r"machine.toml: keys \['nodes'\]; expected size"):
        read_machine(path)
    path.write_text("size = \n")
    with pytest.raises(InputError, match=r"machine.toml: not TOML"):
        read_machine(path)
    with pytest.raises(InputError, match="No such file"):
        read_machine(tmp_path / "absent.toml")


def test_a_machine_given_again_is_empty():
    machine = Nodes(8)
    machine.allocate(5)
    assert read_machine(machine).free == 8


def test_every_broken_state_is_told():
    machine = Nodes(8)
    held = {1: machine.allocate(3), 2: machine.allocate(2)}
    assert machine.violations(held) == []
    assert machine.violations({1: held[1]}) == ["nodes 3-4 are lost"]
    both = machine.violations({**held, 3: ((2, 4),)})
    assert both == [
        "nodes 2-2 are held by job 1 and by job 3",
        "nodes 3-3 are held by job 3 and by job 2",
    ]
    nobody = machine.violations({**held, 3: ((7, 8),)})
    assert nobody == ["nodes 7-7 are held by nobody and by job 3"]
    outside = machine.violations({**held, 3: ((8, 9),)})
    assert outside == ["nodes from 8 are held by job 3; there are none"]
    machine.free = 4
    assert machine.violations(held) == ["4 nodes counted free, 3 are"]
    machine.free = 3
    machine.slots.starts, machine.slots.stops = [5, 6], [6, 8]
    assert machine.violations(held) == ["free runs touch at node 6"]
