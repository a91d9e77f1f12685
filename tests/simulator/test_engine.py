"""The engine on cases small enough to follow by hand."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from policies import workloads

from optsched import kernel_cache, read_trace, simulate
from optsched.compiled import Kernel
from optsched.extend import ExecutionModel, Policy, Start, Wake
from optsched.kernel_cache import NotOnDiskError
from optsched.policies.fcfs import FCFS
from optsched.simulator import compiled_decisions


def run(trace, policy, execution=None, **more):
    return simulate(trace, "nodes:40", policy, execution=execution, check=True, **more)


class StartAtOnce(Policy):
    """Starts what fits, in order, and asks for nothing else."""

    def decide(self, system):
        for job in system.queue[:]:
            if system.processors[job] <= system.machine.free:
                yield Start(job)


class EqualShares(ExecutionModel):
    """All running jobs share one processor equally."""

    def started(self, job, allocation, system):
        yield from ((other, 1 / len(system.running)) for other in system.running)

    ended = started


class LoadsForTenSeconds(ExecutionModel):
    def delay(self, job, allocation, system):
        return 10.0


class StopsFirst(ExecutionModel):
    """The first job stands still while the second runs."""

    def started(self, job, allocation, system):
        return [(0, 0.0)] if job == 1 else []

    def ended(self, job, allocation, system):
        return [(0, 1.0)] if job == 1 and 0 in system.running else []


@pytest.mark.parametrize(
    ("model", "rows", "ends", "killed"),
    [
        # job 1: 40 s alone, then shares; job 2 joins at 40 with 30 s of work, both at half speed.
        # At 100 job 2 is done; job 1 did 40 + 30 = 70 by then and needs 30 s more.
        (EqualShares, [(0, 100, 1000, 1), (40, 30, 1000, 1)], [130, 100], [False, False]),
        (EqualShares, [(0, 100, 100, 1), (0, 100, 400, 1)], [100, 150], [True, False]),
        # a start-up delay counts against the limit
        (LoadsForTenSeconds, [(0, 50, 100, 1), (0, 95, 100, 1)], [60, 100], [False, True]),
        (StopsFirst, [(0, 100, 1000, 1), (40, 30, 1000, 1)], [130, 70], [False, False]),
    ],
)
def test_speeds_and_delays_conserve_work_and_count_against_limits(
    model, rows, ends, killed, make_trace
):
    found = run(make_trace(*rows), FCFS(), model())
    assert found.end.tolist() == ends
    states = {False: "COMPLETED_SUCCESSFULLY", True: "COMPLETED_WALLTIME_REACHED"}
    assert found.state.tolist() == [states[late] for late in killed]
    assert found.summary["killed"] == sum(killed)


@dataclass
class EveryHundred(StartAtOnce):
    interval: float = 100.0


def test_a_periodic_policy_decides_on_ticks_at_which_something_has_changed(make_trace):
    found = run(make_trace((10, 50, 50, 1), (100, 50, 50, 1), (990, 5, 5, 1)), EveryHundred())
    assert found.start.tolist() == [100, 100, 1000]
    # ticks 100 (submissions), 200 (ends at 150), 1000 (submission), 1100 (end)
    assert found.schedule.decisions == 4


def test_what_a_periodic_policy_starts_is_a_change_by_the_next_tick(make_trace):
    @dataclass
    class OneEachTick(Policy):
        interval: float = 30.0

        def decide(self, system):
            yield from map(Start, system.queue[:1])

    found = run(make_trace(*[(0, 500, 500, 1)] * 3), OneEachTick())
    assert found.start.tolist() == [0, 30, 60]
    # nothing is left to start at 90; the ends at 500, 530 and 560 are decided on at ticks
    assert found.schedule.decisions == 6


def test_a_policy_is_woken_when_it_asked_to_be_whatever_happens_in_between(make_trace):
    class AsksOnce(Policy):
        """Asks at the first decision to be woken at 100, and starts everything then."""

        def decide(self, system):
            if system.now == 0:
                yield Wake(100)
            if system.now >= 100:
                yield from map(Start, system.queue[:])

    assert run(make_trace((0, 5, 5, 1), (50, 5, 5, 1)), AsksOnce()).start.tolist() == [100, 100]


def test_ticks_are_never_before_the_event(make_trace):
    trace = make_trace(*((1_000_006 + k, 5, 5, 1) for k in range(40)))
    assert (run(trace, EveryHundred(interval=0.7)).start >= trace.submit).all()


@given(workloads.jobs(1, most=12, slack=st.just(10**6)), workloads.orders)
def test_rounding_of_shared_speeds_does_not_turn_time_back(jobs, order):
    trace = workloads.trace_of(jobs)
    found = run(trace, FCFS(), EqualShares(), event_order=order)
    # one processor that is never idle while there is work, shared or not
    busy_until = 0.0
    for at, seconds in zip(trace.submit, trace.runtime):
        busy_until = max(busy_until, at) + seconds
    assert found.end.max() == pytest.approx(busy_until)


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ([Start(0), Start(0)], "cannot start job 1: it runs"),
        ([Wake(5)], "wake at"),
        ([Start(0, ((0, 1),))], "a place of 1 nodes for a job of 2"),
        (["start"], "'start' is no action"),
    ],
)
def test_a_policy_that_asks_for_the_impossible_is_told(actions, message, make_trace):
    class Asks(Policy):
        def decide(self, system):
            return actions

    with pytest.raises((ValueError, TypeError), match=message):
        simulate(make_trace(*[(5, 10, 10, 2)] * 2), "nodes:4", Asks())


class CountsDecisions(StartAtOnce):
    def begin(self, system):
        self.seen = []

    def decide(self, system):
        self.seen.append((system.now, tuple(system.ended), tuple(system.submitted)))
        return super().decide(system)


def test_ends_and_submissions_of_an_instant_are_batched_or_decided_on_one_by_one(make_trace):
    trace = make_trace((0, 10, 10, 1), (0, 10, 20, 1), (10, 5, 5, 1))
    # job row 0 ends on its estimate, so it is free before the submission of row 2 is handled;
    # row 1 ends early, so its end is an event of its own
    one_by_one = [(0, (), (0,)), (0, (), (1,)), (10, (0,), (2,)), (10, (), ()), (10, (1,), ())]
    batched = [(0, (), (0, 1)), (10, (0, 1), (2,))]
    for order, seen in (("batched", batched), ("one-by-one", one_by_one)):
        policy = CountsDecisions()
        simulate(trace, "nodes:4", policy, event_order=order)
        assert policy.seen == [*seen, (15, (2,), ())]


@pytest.mark.parametrize(
    ("machine", "policy", "other", "patience"),
    [
        ("nodes:256", "easy", {}, 0.0),
        ("nodes:256", "window", {"execution": "contiguity"}, np.inf),
        ("nodes:256", "easy", {"event_order": "one-by-one"}, np.inf),
        ("matrix:256", "gang", {"settings": {"sharing": "turns"}, "execution": "paging"}, 0.0),
        ("torus:8x8x4", "torus", {"settings": {"large": 32, "prepare": "ahead"}}, 0.0),
        ("smp:64x4", "rua", {"execution": "resource-sharing"}, np.inf),
        ("smp:64x4", "sjbf", {"solver": "bottleneck-search"}, 0.0),
        ("cluster:8x20", "locality", {"execution": "file-loading"}, 0.0),
        ("site:sites/sample-site.toml", "easy", {}, np.inf),
        ("site:sites/campus.toml", "conservative", {}, 0.0),
    ],
)
def test_kernels_in_plain_python_are_the_compiled_ones(
    machine, policy, other, patience, monkeypatch
):
    name = "sample-8x20" if policy == "locality" else "sample-256"
    trace = read_trace(name).jobs(1, 150)
    if machine.startswith("smp"):
        bandwidth = np.random.default_rng(1).choice([0, 500, 1000, 2000], len(trace))
        trace = trace.annotated(bandwidth=bandwidth)

    def runs():
        given = ({"check": seen, "journal": seen} | other for seen in (True, False))
        return [simulate(trace, machine, policy, **each) for each in given]

    compiled, bound = runs(), Kernel.bound

    def none_on_disk(self, *given, **numbers):
        if kernel_cache._only_loads:
            raise NotOnDiskError
        return bound(self, *given, **numbers)

    monkeypatch.setattr(compiled_decisions, "PATIENCE", patience)
    monkeypatch.setattr(Kernel, "bound", none_on_disk)
    for one, other_one in zip(compiled, runs()):
        assert one.start.tolist() == other_one.start.tolist()
        assert list(one.resources) == list(other_one.resources)
        if one.journal is not None:
            assert one.journal.entries == other_one.journal.entries
