"""Decisions on a line of processors: the kernels against the policies in Python."""

import os
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policies import workloads

from optsched import read_trace, registry, simulate
from optsched.extend import ExecutionModel, Trace
from optsched.machines._line_nodes import nodes_of
from optsched.machines.nodes import Nodes
from optsched.machines.torus import Torus
from optsched.policies import _line
from optsched.policies._line import is_line
from optsched.policies.conservative import Conservative
from optsched.policies.easy import Easy
from optsched.policies.priority import FixedOrder
from optsched.simulator import compiled_decisions

ONE_OF_EACH = ["fcfs", "easy", "easy-sjbf", "conservative", "sjf", "wfp3"]
ONE_OF_EACH += ["sjf, easy", "wfp3, easy", "unicef, easy"]
"""Policies that the kernels treat in their own way; the others differ in their scores alone."""

OTHERS = ["saf", "unicef", "f1", "f2", "f3", "f4"]
OTHERS += [f"{name}, easy" for name in OTHERS if name != "unicef"]
RANDOMLY = ONE_OF_EACH + [pytest.param(policy, marks=pytest.mark.long) for policy in OTHERS]


class HalfSpeed(ExecutionModel):
    """All jobs run at half the speed, so that estimated ends pass."""

    def started(self, job, allocation, system):
        return [(job, 0.5)]


def policies_of(name):
    """Return a policy with its kernel, and a subclass that decides in Python."""
    name, _, backfill = name.partition(", ")
    given, kind = {"backfill": backfill} if backfill else {}, registry.policies[name]

    class InPython(kind):
        def decide(self, system):
            return super().decide(system)

    assert InPython.compiled is None
    return kind(**given), InPython(**given)


def assert_same(trace, machine, policy, order, **options):
    """Compare a run of the kernel alone, one with a journal, and one in Python."""
    by_kernel, in_python = policies_of(policy)
    given = {"event_order": order, "compiled_from": 0, **options}
    fast = simulate(trace, machine, by_kernel, **given)
    seen = simulate(trace, machine, by_kernel, journal=True, check=True, **given)
    slow = simulate(trace, machine, in_python, journal=True, **given)
    for one in (seen, slow):
        assert np.array_equal(fast.start, one.start, equal_nan=True)
        assert np.array_equal(fast.end, one.end, equal_nan=True)
        assert fast.state.tolist() == one.state.tolist()
        assert list(fast.resources) == list(one.resources)
        assert fast.schedule.decisions == one.schedule.decisions
    assert seen.journal.digest() == slow.journal.digest()
    return fast


jobs = workloads.jobs(9, slack=st.integers(-9, 8))


@pytest.mark.parametrize("policy", RANDOMLY)
@given(jobs, workloads.orders, st.booleans())
@settings(max_examples=200, deadline=None)
def test_kernel_and_python_decide_alike(policy, jobs, order, limits_hold):
    trace = workloads.trace_of(jobs, limits_hold=limits_hold)
    run = assert_same(trace, "nodes:8", policy, order)
    beyond = (trace.runtime > trace.requested_time) & (trace.processors <= 8)
    assert run.summary["killed"] == beyond.sum()
    assert np.array_equal((run.end - run.start)[beyond], trace.requested_time[beyond])


@pytest.mark.parametrize("policy", ["easy", "easy-sjbf", "sjf, easy", "wfp3, easy", "conservative"])
@given(jobs, workloads.orders)
@settings(max_examples=100, deadline=None)
def test_jobs_that_run_beyond_their_estimated_end_are_treated_alike(policy, jobs, order):
    given = {"event_order": order, "execution": HalfSpeed(), "journal": True, "compiled_from": 0}
    runs = []
    for one in policies_of(policy):
        one.enforces_limits = False
        runs.append(simulate(workloads.trace_of(jobs), "nodes:8", one, **given))
    assert runs[0].journal.digest() == runs[1].journal.digest()


LONG = ["easy", "easy-sjbf", "sjf", "f4, easy", "wfp3, easy", "wfp3", "unicef, easy"]


@pytest.mark.parametrize("step", [1, 500])
@pytest.mark.parametrize("policy", LONG)
def test_a_long_queue_is_treated_alike(policy, step):
    random = np.random.default_rng(1)
    requested = random.integers(10, 5000, size=600) // step * step + 10  # many are equal, or few
    submit = np.sort(random.integers(0, 2000, size=600)) // step * step
    runtime = np.maximum(1, requested * random.random(600)).astype(np.int64)
    sizes = random.integers(1, 40, size=600)
    trace = Trace(np.arange(600), submit, runtime, requested, sizes)
    run = assert_same(trace, "nodes:64", policy, "batched")
    assert (run.start > 2000).sum() > 300


@pytest.mark.parametrize("policy", ["easy", "easy-sjbf", "f4, easy", "wfp3, easy"])
def test_more_jobs_pass_the_head_at_once_than_are_sorted_at_a_time(policy):
    # at 100 half of the nodes become free beside a job that the head has to wait for, and of 300
    # small jobs those that are first in order fill them
    random = np.random.default_rng(1)
    small = zip(3 + np.arange(300) // 4, 100 * random.integers(1, 9, size=300), np.ones(300, int))
    submit, runtime, sizes = np.array([(0, 100, 256), (1, 1000, 128), (2, 500, 256), *small]).T
    trace = Trace(np.arange(303), submit, runtime, runtime, sizes)
    run = assert_same(trace, "nodes:256", policy, "batched")
    assert np.unique(run.start, return_counts=True)[1].max() > 2 * _line.MOST


@pytest.mark.parametrize(
    ("policy", "starts"), [("easy", [0, 0, 20, 30, 130]), ("sjf, easy", [0, 0, 24, 213, 13])]
)
def test_a_reservation_whose_time_has_passed(policy, starts, make_trace):
    """By hand, on 8 processors: estimated ends at 10 and 12 pass, the jobs end at 20 and 24.

    Job 2 (6 processors) is blocked from 1 on, with nothing to spare at 10; job 3 waits behind it.
    At 13 both ends are overdue, so that 2 processors are to spare for job 4. EASY looks again only
    when a job has ended.
    """
    trace = make_trace(
        (0, 10, 10, 4), (0, 12, 12, 2), (1, 5, 5, 6), (2, 50, 50, 8), (13, 100, 100, 2)
    )
    for one in policies_of(policy):
        one.enforces_limits = False
        run = simulate(trace, "nodes:8", one, execution=HalfSpeed(), compiled_from=0)
        assert run.start.tolist() == starts


def test_the_room_for_runs_of_nodes_grows():
    """Each second job ends, so that one of 50 nodes holds 50 runs, time and again."""
    processors = np.array([1] * 100 + [50] * 20)
    machine, held, log = Nodes(100), {}, [*range(100)]
    log += [~job for job in range(0, 100, 2)]
    for wide in range(100, 120):
        log += [wide, ~wide]
    found, expected = nodes_of(np.array(log), processors, 100), [""] * 120
    for entry in log:
        if entry >= 0:
            held[entry] = machine.allocate(processors[entry].item())
            expected[entry] = machine.resources(held[entry])
        else:
            machine.release(held.pop(~entry))
    assert [*found] == expected


@pytest.mark.parametrize("of", ["processors", "submit"])
def test_scores_of_a_subclass_are_those_of_the_kernel(of, monkeypatch):
    class LargestFirst(FixedOrder):
        def scores(self, jobs):
            return -getattr(jobs, of)

    class InPython(LargestFirst):
        def decide(self, system):
            return FixedOrder.decide(self, system)

    trace = read_trace("sample-256").jobs(1, 500)
    in_python = simulate(trace, "nodes:128", InPython())
    monkeypatch.setattr(LargestFirst, "decide", None, raising=False)  # the engine would call it
    by_kernel = simulate(trace, "nodes:128", LargestFirst(), compiled_from=0)
    assert by_kernel.start.tolist() == in_python.start.tolist()


def test_a_subclass_is_asked_for_its_own_rule():
    class LongestFirst(Easy):
        def in_order(self, jobs, system):
            return sorted(jobs, key=lambda job: -system.requested_time[job])

    trace = read_trace("sample-256").jobs(1, 600)
    policies = LongestFirst(), Easy()
    own, easy = (simulate(trace, "nodes:128", one, compiled_from=0) for one in policies)
    assert own.start.tolist() != easy.start.tolist()


def test_kernels_are_for_machines_that_give_the_first_free_nodes():
    class FromTheTop(Nodes):
        def allocate(self, processors):
            stop = self.slots.stops[-1]
            return self.claim(((stop - processors, stop),), processors)

    machines = Nodes(8), FromTheTop(8), Torus((2, 2, 2))
    assert [is_line(SimpleNamespace(machine=one)) for one in machines] == [True, False, True]


@pytest.mark.long
def test_few_jobs_are_decided_in_python_until_the_kernels_are_on_disk(tmp_path):
    """In processes of their own, with a cache of their own."""
    code = """
import numpy as np
from optsched.policies.fcfs import FCFS
from optsched.simulator.simulate import simulate
from optsched.traces.trace import Trace
asked, decide = [], FCFS.decide
FCFS.decide = lambda *given: asked.append(given) or decide(*given)
trace = Trace(*[np.arange(1, 50)] * 5)
run = simulate(trace, "nodes:50", "fcfs", **{given})
print(len(asked) > 0, *run.start.tolist())
"""

    def started(given: str) -> list[str]:
        command = [sys.executable, "-c", code.replace("{given}", given)]
        env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    in_python = started("{}")
    assert in_python[0] == "True"
    assert started("{'compiled_from': 0}") == ["False", *in_python[1:]]
    assert started("{}") == ["False", *in_python[1:]]


def test_the_jobs_of_all_runs_decide_whether_kernels_are_compiled(monkeypatch):
    asked = []

    class Own(Easy):
        def compiled(self, run):
            asked.append(run.may_compile)

    monkeypatch.setattr(compiled_decisions, "COMPILED_FROM", 250)
    monkeypatch.setattr(compiled_decisions, "_jobs_of_runs", [])
    trace = Trace(*[np.arange(1, 101)] * 5)
    for _ in range(3):
        simulate(trace, "nodes:100", Own())
    assert asked == [False, False, True]


class Plain(Conservative):
    """Conservative backfilling that places every job again from the first event on."""

    def begin(self, system):
        super().begin(system)
        self._leave_runs([])


def of_kinds(jobs, kinds):
    """Return jobs whose requests and sizes are multiples of so many."""
    return [
        (gap, runtime, -(-(runtime + slack) // kinds) * kinds - runtime, -(-size // kinds) * kinds)
        for gap, runtime, slack, size in jobs
    ]


@given(workloads.jobs(8, most=60), st.integers(1, 8), workloads.orders, workloads.units)
@settings(max_examples=600, deadline=None)
def test_runs_of_like_jobs_move_as_the_jobs_do_one_by_one(jobs, kinds, order, unit):
    """Few kinds make long runs."""
    trace = workloads.trace_of(of_kinds(jobs, kinds), unit)
    by_runs, plain = (
        simulate(trace, "nodes:16", one(), event_order=order, check=True)
        for one in (Conservative, Plain)
    )
    assert by_runs.start.tolist() == plain.start.tolist()
    assert by_runs.resources == plain.resources


def test_reservations_that_are_not_kept_end_the_runs(make_trace, monkeypatch):
    """A run time within the tolerance above the request: processors are held a little longer."""
    refused, original = [], Conservative._leave_runs

    def noting(self, jobs):
        refused.append(list(jobs))
        original(self, jobs)

    monkeypatch.setattr(Conservative, "_leave_runs", noting)
    trace = make_trace((0, 10 + 5e-7, 10, 4), (1, 9, 10, 4), (2, 5, 10, 4), (10, 10, 10, 4))
    trace = replace(trace, requested_time=np.full(4, 10.0))
    run = simulate(trace, "nodes:4", Conservative(), check=True, compiled_from=0)
    assert refused == [[1]]  # at 10 s, when job 4 is submitted
    plain = simulate(trace, "nodes:4", Plain())
    alone = simulate(trace, "nodes:4", "conservative", compiled_from=0)
    assert run.start.tolist() == plain.start.tolist() == alone.start.tolist()
