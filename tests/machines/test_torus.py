from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from optsched import registry, simulate
from optsched.cli import run as optsched
from optsched.content import bundled
from optsched.errors import InputError
from optsched.machines.machine import read_machine
from optsched.machines.nodes import Nodes
from optsched.machines.torus import MOST_TORUS_NODES, Torus
from optsched.traces.reading import read_trace


@pytest.mark.parametrize(
    ("spec", "shape", "per_router", "ordering"),
    [
        ("torus:8x12x12", (8, 12, 12), 1, "hilbert"),
        ("torus:24x24x24x2:hilbert", (24, 24, 24), 2, "hilbert"),
        ("torus:2x3x4:snake", (2, 3, 4), 1, "snake"),
        ("torus:1x1x5x3:row-major", (1, 1, 5), 3, "row-major"),
    ],
)
def test_a_specification_names_the_torus_and_comes_back(spec, shape, per_router, ordering):
    machine = read_machine(spec)
    assert isinstance(machine, Torus)
    assert (machine.shape, machine.nodes_per_router) == (shape, per_router)
    assert machine.ordering == ordering
    assert machine.size == machine.free == np.prod(shape) * per_router
    machine.allocate(2)
    for again in (read_machine(machine.spec), machine.emptied()):
        assert (again.shape, again.nodes_per_router) == (shape, per_router)
        assert (again.ordering, again.free, again.spec) == (ordering, again.size, machine.spec)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("torus:", "expected torus:XxYxZ"),
        ("torus:8x12", "expected torus:XxYxZ"),
        ("torus:8x12x12x2x2", "expected torus:XxYxZ"),
        ("torus:8x12x12:", "unknown ordering ''"),
        ("torus:8x12x12:hilber", "unknown ordering 'hilber'; did you mean hilbert"),
        ("torus:8x-12x12", "expected torus:XxYxZ"),
        ("torus:8x12x1.5", "expected torus:XxYxZ"),
        ("torus:8x0x12", "shape: .*; expected three whole numbers from 1"),
        ("torus:8x12x12x0", "nodes_per_router: 0; expected a whole number from 1"),
        (
            f"torus:1x1x{MOST_TORUS_NODES + 1}",
            "torus of 1,048,577 nodes; expected at most 1,048,576",
        ),
        (f"torus:{'9' * 18}x{'9' * 18}x9", "expected at most 1,048,576"),
        (f"torus:{'9' * 5000}x1x1", "expected torus:XxYxZ"),
    ],
)
def test_a_wrong_specification_says_what_was_expected(spec, expected):
    with pytest.raises(InputError, match=expected):
        read_machine(spec)


def test_the_list_of_machines_shows_the_form_of_a_specification(capsys):
    assert optsched(["list", "machines"]) == 0
    shown = capsys.readouterr().out
    assert Torus.usage in shown
    assert Nodes.usage in shown


def test_the_largest_torus_can_be_used():
    machine = Torus((1, 1, MOST_TORUS_NODES))
    assert machine.size == MOST_TORUS_NODES
    assert machine.coordinates[-1].tolist() == [0, 0, MOST_TORUS_NODES - 1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("shape = [8, 12]", r"shape: \[8, 12\]; expected three whole numbers"),
        ("shape = [8, 12, true]", "expected three whole numbers"),
        ("shape = [8, 12, 1.5]", "expected three whole numbers"),
        ('shape = "8x12x12"', "expected three whole numbers"),
        ("shape = 8", "expected three whole numbers"),
        ("shape = [8, 12, 12]\nnodes_per_router = 0", "nodes_per_router: 0; expected"),
        ("shape = [8, 12, 12]\nordering = 3", "unknown ordering '3'"),
        ("shape = [8, 12, 12]\nordering = [3]", "unknown ordering"),
        ("shape = [8, 12, 12]\nnodes = 2", r"keys \['nodes', 'shape'\]; expected shape, and"),
        ("ordering = 'snake'", r"keys \['ordering'\]; expected shape, and"),
    ],
)
def test_a_wrong_toml_file_says_what_was_expected(text, expected, tmp_path):
    path = tmp_path / "machine.toml"
    path.write_text(f'kind = "torus"\n{text}\n')
    with pytest.raises(InputError, match=f"machine.toml.*{expected}"):
        read_machine(path)


def test_a_toml_file_describes_a_torus(tmp_path):
    path = tmp_path / "machine.toml"
    path.write_text('kind = "torus"\nshape = [8, 12, 12]\n')
    assert read_machine(path).spec == "torus:8x12x12:hilbert"
    path.write_text('kind = "torus"\nshape = [4, 4, 4]\nnodes_per_router = 2\nordering = "snake"\n')
    assert read_machine(path).spec == "torus:4x4x4x2:snake"


@pytest.fixture(scope="module")
def sample():
    return read_trace(bundled("traces") / "samples" / "sample-256.swf").jobs(1, 600)


def assert_same_schedule(one, other):
    assert np.array_equal(one.start, other.start, equal_nan=True)
    assert np.array_equal(one.end, other.end, equal_nan=True)
    assert one.state.tolist() == other.state.tolist()
    assert one.resources == other.resources


@pytest.mark.parametrize(
    "policy", [n for n in registry.policies if "nodes" in registry.policies[n].machines]
)
def test_policies_for_a_line_of_nodes_run_on_a_torus(policy, sample):
    """They see the line alone: whatever the ordering, the schedule is that of as many nodes."""
    numbers = np.arange(len(sample))
    logged = replace(sample, wait=numbers % 600)  # as-logged needs waits, priority priorities
    logged = logged.annotated(priority=numbers % 7)
    line = simulate(logged, "nodes:256", policy, check=True)
    for spec in ("torus:4x4x8x2", "torus:8x8x4:snake"):
        assert_same_schedule(simulate(logged, spec, policy, check=True), line)


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "wfp3"])
@pytest.mark.parametrize("order", ["batched", "one-by-one"])
def test_kernels_on_a_torus_decide_as_python_does(policy, order, sample):
    class InPython(registry.policies[policy]):
        def decide(self, system):
            return super().decide(system)

    machine = "torus:3x4x5x2"  # some jobs are larger: they are rejected
    runs = [
        simulate(sample, machine, one, event_order=order, compiled_from=0)
        for one in (policy, InPython())
    ]
    assert_same_schedule(*runs)
    assert runs[0].jobs.equals(runs[1].jobs)
    assert runs[0].summary["rejected"] > 0


def test_a_policy_for_a_torus_does_not_run_on_a_line_of_nodes(sample):
    class Geometric(registry.policies["fcfs"]):
        machines = frozenset({"torus"})

    assert simulate(sample, "torus:4x8x8", Geometric()).summary["jobs"] == 600
    with pytest.raises(InputError, match="'Geometric' runs on torus, not on nodes:256"):
        simulate(sample, "nodes:256", Geometric())


def test_runs_of_a_claim_that_touch_are_merged():
    machine = Torus((2, 2, 2))
    place = ((4, 6), (2, 4), (0, 1))
    assert machine.claim(place, 5) == ((0, 1), (2, 6))
    assert machine.resources(((0, 1), (2, 6))) == "0 2-5"
    assert machine.violations({1: ((0, 1), (2, 6))}) == []
