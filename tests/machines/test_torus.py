from dataclasses import replace

import numpy as np
import pytest

from optsched import registry, simulate
from optsched.content import bundled
from optsched.errors import InputError
from optsched.machines.torus import Torus
from optsched.traces.reading import read_trace


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

    with pytest.raises(InputError, match="'Geometric' runs on torus, not on nodes:256"):
        simulate(sample, "nodes:256", Geometric())


def test_runs_of_a_claim_that_touch_are_merged():
    machine = Torus((2, 2, 2))
    place = ((4, 6), (2, 4), (0, 1))
    assert machine.claim(place, 5) == ((0, 1), (2, 6))
    assert machine.resources(((0, 1), (2, 6))) == "0 2-5"
    assert machine.violations({1: ((0, 1), (2, 6))}) == []
