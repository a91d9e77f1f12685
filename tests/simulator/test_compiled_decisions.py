"""Decisions by a kernel: runs that the engine follows, and runs that the core carries out alone."""

from collections import deque
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from policies import workloads

from optsched import simulate
from optsched.extend import CompiledDecisions, ExecutionModel, InputError, Policy, Start
from optsched.simulator import _core


class InOrder(CompiledDecisions):
    """First come, first served; the kernel is a function in Python."""

    def __init__(self, run):
        self.free, self.queue, self.given = run.machine.size, deque(), run

    def decide(self):
        news, processors = self.given.news, self.given.trace.processors
        self.free += int(processors[news.ended[: news.counts[_core.N_ENDED]]].sum())
        self.queue.extend(news.submitted[: news.counts[_core.N_SUBMITTED]].tolist())
        while self.queue and processors[self.queue[0]] <= self.free:
            job = self.queue.popleft()
            self.free -= int(processors[job])
            _core.tell(news, _core.START, job, 0.0)
        return _core.DONE

    def place(self, job, value):
        return None  # the machine chooses

    def resources(self):
        return [""] * len(self.given.trace)


@dataclass
class Compiled(Policy):
    interval: float = 0.0

    def decide(self, system):
        raise AssertionError("the kernel decides")

    def compiled(self, run):
        return InOrder(run)


@dataclass
class Plain(Compiled):
    def decide(self, system):
        while system.queue and system.processors[system.queue[0]] <= system.machine.free:
            yield Start(system.queue[0])


class HalfSpeed(ExecutionModel):
    """Wide jobs begin after 3 s, and others run at half the speed while one runs."""

    def begin(self, system, trace):
        self.running, self.wide, self.calls = set(), trace.processors > 3, 0

    def rule(self, job, started):
        self.running ^= {job}
        slow = any(self.wide[other] for other in self.running)
        return [(o, 0.5 if slow and not self.wide[o] else 1.0) for o in sorted(self.running)]

    def delay(self, job, allocation, system):
        return 3.0 * bool(self.wide[job])

    def started(self, job, allocation, system):
        self.calls += 1
        return self.rule(job, True)

    def ended(self, job, allocation, system):
        return self.rule(job, False)


class CompiledHalfSpeed(HalfSpeed):
    def compiled(self, run, decisions):
        def set_speeds(event):
            job = int(run.core.tally[_core.CHANGED])
            if event == _core.STARTED:
                run.core.works_since[job] += self.delay(job, None, None)
            else:
                assert event == _core.ENDED
                assert run.core.end[job] == run.core.clock[_core.NOW]
            for other, speed in self.rule(job, event == _core.STARTED):
                if other == job:
                    run.core.speed[job] = speed  # its end is predicted next
                else:
                    _core.set_speed(run.core, run.way, other, speed)

        return set_speeds


@given(
    workloads.jobs(9, most=30, slack=st.integers(-9, 9)),
    workloads.units,
    st.sampled_from([0.0, 5.0, 7.5]),
    workloads.orders,
    st.sampled_from([None, HalfSpeed, CompiledHalfSpeed]),
)
def test_who_carries_the_actions_out_changes_nothing(rows, unit, interval, order, model):
    trace = workloads.trace_of(rows, unit)

    def run(policy, **other):
        given = {"event_order": order} | ({"execution": model()} if model else {})
        return simulate(trace, "nodes:8", policy(interval=interval), **given, **other)

    alone, followed, plain = run(Compiled), run(Compiled, journal=True, check=True), run(Plain)
    for other in (followed, plain):
        one, two = alone.schedule, other.schedule
        for name in ("start", "end", "run_time", "state"):
            np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
        assert (one.decisions, one.reasons) == (two.decisions, two.reasons)


@pytest.mark.parametrize(("model", "calls"), [(HalfSpeed, 3), (CompiledHalfSpeed, 0)])
def test_the_kernel_of_an_execution_model_is_used_where_nothing_needs_the_system(
    model, calls, make_trace
):
    trace = make_trace((0, 10, 30, 2), (0, 10, 30, 4), (5, 10, 30, 2))
    for check, expected in ((False, calls), (True, 3)):
        execution = model()
        run = simulate(trace, "nodes:8", Compiled(), execution=execution, check=check)
        # the wide job runs from 3 to 13: the first has done 6.5 s of work until then
        assert run.end.tolist() == [16.5, 13, 19]
        assert execution.calls == expected


def test_decisions_of_a_subclass_or_of_another_class_come_before_the_kernel(make_trace):
    class Never:
        def decide(self, system):
            return ()

    class Mixed(Never, Compiled):
        pass

    class Own(Compiled):
        decide = Never.decide

    for policy in (Mixed(), Own()):
        run = simulate(make_trace((0, 1, 1, 1)), "nodes:1", policy)
        assert run.summary["waiting"] == 1


def test_a_kernel_that_hears_of_held_jobs_hears_of_them_when_they_are_let_go(make_trace):
    class OnSite(Compiled):
        machines: ClassVar = frozenset({"site"})

    trace = make_trace((0, 9, 9, 1), (1, 5, 5, 1), (2, 5, 5, 1))
    trace = trace.changed(texts={"dependency": np.array(["", "afterok:1", ""], dtype=object)})
    run = simulate(trace, "site:sample-site", OnSite())
    assert run.start.tolist() == [0, 9, 2]


def test_a_decision_that_does_not_hold_ends_the_run(make_trace):
    class Wrong(Compiled):
        def compiled(self, run):
            decisions = InOrder(run)
            decisions.decide = lambda: _core.WRONG
            return decisions

    for journal in (False, True):
        with pytest.raises(InputError, match=r"policy Wrong failed at 0 s.*infeasible decision"):
            simulate(make_trace((0, 1, 1, 1)), "nodes:1", Wrong(), journal=journal)
