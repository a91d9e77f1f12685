"""The engine on cases small enough to follow by hand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from optsched import kernel_cache, read_trace, simulate
from optsched.compiled import Kernel
from optsched.kernel_cache import NotOnDiskError
from optsched.policies.fcfs import FCFS
from optsched.simulator import compiled_decisions
from optsched.simulator.execution import ExecutionModel
from optsched.simulator.policy import Policy, Start, Wake


def test_easy_backfills_what_ends_by_the_shadow_time_or_fits_beside_the_head(make_trace):
    # shadow time of job 2 is 100, one node is extra then
    trace = make_trace(
        (0, 100, 100, 3), (1, 50, 50, 4), (2, 90, 90, 2), (3, 500, 500, 1), (4, 500, 500, 1)
    )
    run = simulate(trace, "nodes:5", "easy", check=True)
    # job 3 ends at 92; job 4 takes the extra node when job 3 has gone; job 5 would delay job 2
    assert run.start.tolist() == [0, 100, 2, 92, 150]


def test_a_job_larger_than_the_machine_is_rejected_visibly(make_trace):
    run = simulate(make_trace((0, 10, 10, 5), (1, 10, 10, 4)), "nodes:4", "fcfs", check=True)
    assert run.state.tolist() == ["REJECTED", "COMPLETED_SUCCESSFULLY"]
    assert np.isnan(run.start[0])
    assert run.summary["rejected"] == 1
    assert run.jobs.finish_time.isna().tolist() == [True, False]


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


def test_speeds_change_and_work_is_conserved(make_trace):
    # job 1: 40 s alone, then shares; job 2 joins at 40 with 30 s of work, both at half speed.
    # At 100 job 2 is done; job 1 did 40 + 30 = 70 by then and needs 30 s more.
    trace = make_trace((0, 100, 1000, 1), (40, 30, 1000, 1))
    run = simulate(trace, "nodes:4", FCFS(), execution=EqualShares(), check=True)
    assert run.end.tolist() == [130, 100]


def test_a_slowed_job_is_killed_at_its_limit(make_trace):
    trace = make_trace((0, 100, 100, 1), (0, 100, 400, 1))
    run = simulate(trace, "nodes:4", FCFS(), execution=EqualShares(), check=True)
    assert run.end.tolist() == [100, 150]
    assert run.state.tolist() == ["COMPLETED_WALLTIME_REACHED", "COMPLETED_SUCCESSFULLY"]
    assert run.summary["killed"] == 1


class LoadsForTenSeconds(ExecutionModel):
    def delay(self, job, allocation, system):
        return 10.0


def test_a_start_up_delay_counts_against_the_limit(make_trace):
    trace = make_trace((0, 50, 100, 1), (0, 95, 100, 1))
    run = simulate(trace, "nodes:4", FCFS(), execution=LoadsForTenSeconds(), check=True)
    assert run.end.tolist() == [60, 100]
    assert run.state.tolist() == ["COMPLETED_SUCCESSFULLY", "COMPLETED_WALLTIME_REACHED"]


class StopsFirst(ExecutionModel):
    """The first job stands still while the second runs."""

    def started(self, job, allocation, system):
        return [(0, 0.0)] if job == 1 else []

    def ended(self, job, allocation, system):
        return [(0, 1.0)] if job == 1 and 0 in system.running else []


def test_a_job_may_stand_still(make_trace):
    trace = make_trace((0, 100, 1000, 1), (40, 30, 1000, 1))
    run = simulate(trace, "nodes:4", FCFS(), execution=StopsFirst(), check=True)
    assert run.end.tolist() == [130, 70]


@dataclass
class EveryHundred(StartAtOnce):
    interval: float = 100.0


def test_a_periodic_policy_decides_on_ticks_at_which_something_has_changed(make_trace):
    trace = make_trace((10, 50, 50, 1), (100, 50, 50, 1), (990, 5, 5, 1))
    run = simulate(trace, "nodes:4", EveryHundred(), check=True)
    assert run.start.tolist() == [100, 100, 1000]
    # ticks 100 (submissions), 200 (ends at 150), 1000 (submission), 1100 (end)
    assert run.schedule.decisions == 4


@dataclass
class OneEachTick(Policy):
    """Starts the head of the queue, one job a tick."""

    interval: float = 30.0

    def decide(self, system):
        if system.queue:
            yield Start(system.queue[0])


def test_what_a_periodic_policy_starts_is_a_change_by_the_next_tick(make_trace):
    trace = make_trace((0, 500, 500, 1), (0, 500, 500, 1), (0, 500, 500, 1))
    run = simulate(trace, "nodes:4", OneEachTick(), check=True)
    assert run.start.tolist() == [0, 30, 60]
    # nothing is left to start at 90; the ends at 500, 530 and 560 are decided on at ticks
    assert run.schedule.decisions == 6


class WakesItself(Policy):
    """Starts a job ten seconds after it was submitted."""

    def decide(self, system):
        for job in system.queue[:]:
            if system.now >= system.submit[job] + 10:
                yield Start(job)
            else:
                yield Wake(system.submit[job] + 10)


def test_a_policy_can_ask_to_be_woken(make_trace):
    trace = make_trace((0, 5, 5, 1), (3, 5, 5, 1))
    run = simulate(trace, "nodes:4", WakesItself(), check=True)
    assert run.start.tolist() == [10, 13]


class AsksOnce(Policy):
    """Asks at the first decision to be woken at 100, and starts everything then."""

    def decide(self, system):
        if system.now == 0:
            yield Wake(100)
        if system.now >= 100:
            for job in system.queue[:]:
                yield Start(job)


def test_an_event_in_between_does_not_cancel_a_wake(make_trace):
    trace = make_trace((0, 5, 5, 1), (50, 5, 5, 1))
    run = simulate(trace, "nodes:4", AsksOnce(), check=True)
    assert run.start.tolist() == [100, 100]


def test_ticks_are_never_before_the_event(make_trace):
    trace = make_trace(*((1_000_006 + k, 5, 5, 1) for k in range(40)))
    run = simulate(trace, "nodes:64", EveryHundred(interval=0.7), check=True)
    assert (run.start >= trace.submit).all()


@pytest.mark.parametrize("order", ["batched", "one-by-one"])
def test_rounding_of_shared_speeds_does_not_turn_time_back(order, make_trace):
    generator = np.random.default_rng(3)
    for _ in range(40):
        submit = np.cumsum(generator.integers(0, 9, 12))
        work = generator.integers(1, 30, 12)
        trace = make_trace(*((at, seconds, 10**6, 1) for at, seconds in zip(submit, work)))
        given = {"execution": EqualShares(), "event_order": order, "check": True}
        run = simulate(trace, "nodes:64", FCFS(), **given)
        # one processor that is never idle while there is work, shared or not
        busy_until = 0.0
        for at, seconds in zip(submit, work):
            busy_until = max(busy_until, at) + seconds
        assert run.end.max() == pytest.approx(busy_until)


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
        simulate(make_trace((5, 10, 10, 2)), "nodes:4", Asks())


def test_a_job_that_is_never_started_is_still_waiting(make_trace):
    class DoesNothing(Policy):
        def decide(self, system):
            return ()

    run = simulate(make_trace((0, 10, 10, 1)), "nodes:4", DoesNothing(), check=True)
    assert run.state.tolist() == ["WAITING"]
    assert run.summary["waiting"] == 1


class CountsDecisions(StartAtOnce):
    def begin(self, system):
        self.seen = []

    def decide(self, system):
        self.seen.append((system.now, tuple(system.ended), tuple(system.submitted)))
        return super().decide(system)


def test_batched_order_takes_all_ends_then_all_submissions_then_decides_once(make_trace):
    trace = make_trace((0, 10, 10, 1), (0, 10, 20, 1), (10, 5, 5, 1), (10, 5, 5, 1))
    policy = CountsDecisions()
    simulate(trace, "nodes:4", policy)
    assert policy.seen == [(0, (), (0, 1)), (10, (0, 1), (2, 3)), (15, (2, 3), ())]


def test_one_by_one_order_decides_after_each_event_submissions_first(make_trace):
    trace = make_trace((0, 10, 10, 1), (0, 10, 20, 1), (10, 5, 5, 1))
    policy = CountsDecisions()
    simulate(trace, "nodes:4", policy, event_order="one-by-one")
    # job row 0 ends on its estimate, so it is free before the submission of row 2 is handled;
    # row 1 ends early, so its end is an event of its own
    assert policy.seen == [
        (0, (), (0,)),
        (0, (), (1,)),
        (10, (0,), (2,)),
        (10, (), ()),
        (10, (1,), ()),
        (15, (2,), ()),
    ]


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
