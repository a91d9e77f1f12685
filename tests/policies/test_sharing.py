"""Backfilling on nodes that share resources."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policies.sharing_textbook import TextbookRUA, TextbookSJBF
from policies.sharing_workloads import crowds, trace_of

from optsched import simulate
from optsched.errors import InputError
from optsched.models.threshold_allocation import Placement
from optsched.models.threshold_allocation.problem import most_penalized
from optsched.models.threshold_allocation.timeline import checked_penalty
from optsched.policies.rua import RUA
from optsched.policies.sjbf import SJBF
from optsched.simulator.execution import ExecutionModel
from optsched.solvers.threshold_allocation import LessConsumeThreshold
from optsched.testing import threshold_allocations
from optsched.traces.cleaning import clean
from optsched.traces.trace import Trace


def jobs_with(*jobs):
    """Return a trace of (submit, run time, requested time, processors, MB/s per process)."""
    submit, runtime, requested, processors, bandwidth = np.array(jobs).T
    numbers = np.arange(1, len(jobs) + 1)
    known = {"bandwidth": bandwidth}
    return clean(Trace(numbers, submit, runtime, requested, processors, annotations=known))


def run(trace, policy, solver, machine="smp:2x4", **settings):
    return simulate(trace, machine, policy, solver=solver, settings=settings, check=True)


def test_first_fit_fills_nodes_and_less_consume_spreads():
    # four processes of 2,000 MB/s on one node of 6,000 lose a third, two on each node nothing
    trace = jobs_with((0, 90, 100, 4, 2000))
    first = run(trace, "sjbf", "first-fit")
    assert first.resources == ["0-3"]
    assert first.end.tolist() == pytest.approx([120])
    spread = run(trace, "sjbf", "less-consume")
    assert spread.resources == ["0-2 4"]
    assert spread.end.tolist() == [90]


def test_limits_are_raised_by_the_promised_factor():
    # 100 s at 3/4 of the speed are 133.3 s, within the raised limit of 134 s, not within 100 s
    trace = jobs_with((0, 100, 100, 4, 2000))
    raised = run(trace, "sjbf", "first-fit", "smp:1x4")
    assert raised.state.tolist() == ["COMPLETED_SUCCESSFULLY"]
    assert raised.end.tolist() == pytest.approx([100 / 0.75])
    kept = run(trace, "sjbf", "first-fit", "smp:1x4", limits="requested")
    assert kept.state.tolist() == ["COMPLETED_WALLTIME_REACHED"]
    assert kept.end.tolist() == [100]


def test_who_was_promised_nothing_is_lost_is_killed_when_others_come():
    trace = jobs_with((0, 100, 100, 3, 2000), (10, 50, 50, 1, 2000))
    found = run(trace, "sjbf", "first-fit", "smp:1x4")
    assert found.state.tolist() == ["COMPLETED_WALLTIME_REACHED", "COMPLETED_SUCCESSFULLY"]
    # the second was promised the factor 4/3: its limit is 67 s
    assert found.end.tolist() == pytest.approx([100, 10 + 50 / 0.75])


def test_a_threshold_makes_a_job_wait_for_bandwidth():
    trace = jobs_with((0, 100, 100, 3, 2000), (10, 50, 50, 1, 2000))
    rule = "less-consume-threshold"
    waits = run(trace, "sjbf", rule, "smp:1x4", threshold=1.1)
    assert waits.start.tolist() == [0, 100]
    starts = run(trace, "sjbf", rule, "smp:1x4", threshold=1.5)
    assert starts.start.tolist() == [0, 10]


def test_a_threshold_that_a_job_never_meets_is_raised():
    # alone on the machine the job has the factor 4/3
    trace = jobs_with((0, 100, 100, 4, 2000))
    found = run(trace, "sjbf", "less-consume-threshold", "smp:1x4", threshold=1.0)
    assert found.start.tolist() == [0]


@pytest.mark.parametrize(
    ("policy", "solver"),
    [
        ("sjbf", "first-fit"),
        ("sjbf", "less-consume"),
        ("rua", "less-consume-threshold"),
        ("rua", "bottleneck-search"),
    ],
)
def test_the_shortest_candidate_is_first_and_keeps_off_the_reservation(policy, solver):
    trace = jobs_with(
        (0, 100, 100, 6, 0), (1, 100, 100, 8, 0), (2, 90, 90, 2, 0), (2, 40, 40, 2, 0),
        (4, 200, 200, 1, 0),
    )  # fmt: skip
    assert run(trace, policy, solver).start.tolist() == [0, 100, 200, 2, 200]


def test_a_raised_limit_does_not_reach_into_the_reservation():
    # the third asks 80 s and would be promised 107 s, the head of the queue is due at 100 s
    trace = jobs_with((0, 100, 100, 2, 2000), (1, 50, 50, 4, 0), (2, 80, 80, 2, 2000))
    found = run(trace, "sjbf", "first-fit", "smp:1x4")
    assert found.start.tolist() == [0, 100, 150]


@pytest.mark.parametrize(("policy", "more"), [("sjbf", {"threshold": 1.15}), ("rua", {})])
def test_a_backfilled_job_does_not_take_the_bandwidth_of_the_reservation(policy, more):
    # for 1,000 s the third would demand so much that the second exceeds its threshold at 100 s
    trace = jobs_with((0, 100, 100, 3, 0), (1, 50, 50, 2, 2000), (2, 1000, 1000, 1, 5900))
    found = run(trace, policy, "less-consume-threshold", "smp:1x4", **more)
    assert found.start[1] == 100


def test_a_promise_is_kept_when_a_job_ends_before_its_limit():
    # at 2 s, when the first ends, the second would lose too much beside the third, at 7 s, when it
    # might have ended, no longer; but then there is no end
    trace = jobs_with((0, 2, 7, 2, 2000), (0, 19, 19, 2, 3000), (1, 18, 18, 2, 500))
    found = run(trace, "sjbf", "less-consume-threshold", "smp:1x4", threshold=1.15)
    assert found.start.tolist() == [0, 7, 1]


def test_rua_starts_a_job_where_and_when_its_slowdown_is_least():
    rule = "less-consume-threshold"
    # next to the first for 20 of 100 s the second loses 20/3 s, less than it would wait
    small = jobs_with((0, 20, 20, 3, 2000), (0, 100, 100, 1, 2000))
    found = run(small, "rua", rule, "smp:1x4", thresholds="1,1.5")
    assert found.start.tolist() == [0, 0]
    # the first has a factor of 2 for itself; next to it for 40 s the second loses 200/3 s
    large = jobs_with((0, 20, 20, 3, 4000), (0, 100, 100, 1, 4000))
    found = run(large, "rua", rule, "smp:1x4", thresholds="1,2.5")
    assert found.start.tolist() == [0, 40]
    found = run(large, "rua", "bottleneck-search", "smp:1x4", thresholds="2.5", choice="response")
    assert found.start.tolist() == [0, 40]
    found = run(large, "rua", rule, "smp:1x4", thresholds="2.5")
    assert found.start.tolist() == [0, 0]


def test_of_equal_slowdowns_rua_takes_that_of_the_least_threshold():
    # next to the first for 20 s the second loses 20 s, as much as it would wait
    trace = jobs_with((0, 20, 20, 3, 2000), (0, 100, 100, 1, 6000))
    found = run(trace, "rua", "less-consume-threshold", "smp:1x4", thresholds="1,1.5")
    assert found.start.tolist() == [0, 20]


def test_rua_backfills_the_job_that_suffers_least_first():
    # two processors are free for 100 s; one of 0 MB/s goes before one of 4,000
    trace = jobs_with(
        (0, 100, 100, 2, 2000), (1, 50, 50, 4, 0), (2, 30, 30, 2, 4000), (2, 60, 60, 2, 0)
    )
    found = run(trace, "rua", "less-consume-threshold", "smp:1x4", thresholds="2.5")
    assert found.start[3] == 2
    assert found.start[2] > 2


workloads = st.lists(
    st.tuples(
        st.integers(0, 6),  # seconds since the job before
        st.integers(1, 12),  # run time
        st.integers(0, 8),  # by how much the request exceeds it
        st.integers(1, 8),
        st.sampled_from([0, 500, 2000, 7000]),
    ),
    min_size=1,
    max_size=20,
)


@pytest.mark.parametrize("limits", ["raised", "requested"])
@pytest.mark.parametrize(
    ("policy", "solver", "more"),
    [
        ("sjbf", "first-fit", {}),
        ("sjbf", "less-consume", {}),
        ("sjbf", "less-consume-threshold", {"threshold": 1.15}),
        ("sjbf", "bottleneck-search", {"threshold": 1.0}),
        ("rua", "less-consume-threshold", {}),
        ("rua", "bottleneck-search", {"choice": "response"}),
    ],
)
def test_every_job_runs_and_none_beyond_its_limit(policy, solver, more, limits):
    @given(workloads, st.sampled_from(["batched", "one-by-one"]))
    @settings(max_examples=15, deadline=None)
    def check(workload, order):
        gaps, runtime, slack, processors, bandwidth = zip(*workload)
        rows = zip(np.cumsum(gaps), runtime, np.add(runtime, slack), processors, bandwidth)
        trace = jobs_with(*rows)
        found = simulate(
            trace, "smp:2x4", policy, solver=solver, settings={"limits": limits, **more},
            event_order=order, check=True,
        )  # fmt: skip
        assert found.summary["finished"] + found.summary["killed"] == len(trace)
        assert found.fallbacks == 0
        done = found.state == "COMPLETED_SUCCESSFULLY"
        took = found.end - found.start
        assert (took[done] >= trace.runtime[done] * (1 - 1e-9)).all()
        if limits == "requested":
            assert (took <= trace.requested_time + 1e-5).all()

    check()


@pytest.mark.parametrize("limits", ["raised", "requested"])
@pytest.mark.parametrize(
    ("policy", "solver", "more"),
    [
        (SJBF, "less-consume", {}),
        (SJBF, "less-consume-threshold", {"threshold": 1.15}),
        (SJBF, "bottleneck-search", {"threshold": 1.05, "goal": "everybody"}),
        (RUA, "less-consume-threshold", {}),
        (RUA, "bottleneck-search", {"choice": "response"}),
    ],
)
def test_no_job_starts_after_the_time_it_was_promised_first(policy, solver, more, limits):
    class Noting(policy):
        def promised(self, system):
            found = super().promised(system)
            for job, start in found.items():
                promised.setdefault(job, start)
            return found

    promised: dict[int, float] = {}

    @given(workloads)
    @settings(max_examples=40, deadline=None)
    def check(workload):
        promised.clear()
        gaps, runtime, slack, processors, bandwidth = zip(*workload)
        rows = zip(np.cumsum(gaps), runtime, np.add(runtime, slack), processors, bandwidth)
        found = simulate(
            jobs_with(*rows), "smp:2x4", Noting(limits=limits, **more), solver=solver, check=True
        )
        for job, start in promised.items():
            assert found.start[job] <= start + 1e-6

    check()


def test_a_reservation_is_kept_at_times_between_seconds():
    """Job 14 is reserved from 24 s; seen from 12.67 s, that is 12 whole seconds ahead."""
    short = [(0, 1, 1, 1, 0)] * 10
    rest = [(0, 9, 9, 3, 0), (0, 4, 5, 2, 7000), (0, 6, 14, 6, 0), (0, 4, 12, 6, 2000)]
    late = [(0, 6, 6, 2, 0), (0, 12, 19, 1, 500)]
    policy = SJBF(limits="requested", threshold=1.05, goal="everybody")
    found = simulate(jobs_with(*short, *rest, *late), "smp:2x4", policy, solver="bottleneck-search")
    assert found.start[13] <= 24
    assert found.start[15] > 12.67


SETTINGS = [
    (SJBF, "first-fit", {}),
    (SJBF, "less-consume", {}),
    (SJBF, "less-consume-threshold", {"threshold": 1.0}),
    (SJBF, "less-consume-threshold", {"threshold": 1.15}),
    (SJBF, "bottleneck-search", {}),
    (SJBF, "bottleneck-search", {"goal": "everybody"}),
    (SJBF, "bottleneck-search", {"threshold": 1.15, "goal": "penalty"}),
    (SJBF, "bottleneck-search", {"threshold": 1.3, "goal": "everybody"}),
    (RUA, "less-consume-threshold", {"thresholds": "1.05,1.15,1.5,2.5"}),
    (RUA, "bottleneck-search", {"thresholds": "1,1.1,2"}),
    (RUA, "bottleneck-search", {"choice": "response"}),
]


@pytest.mark.parametrize(("policy", "solver", "chosen"), SETTINGS)
@given(
    crowds,
    st.sampled_from(["raised", "requested"]),
    st.sampled_from(["smp:2x4", "smp:4x2", "smp:2x4:bandwidth=3000:disk=4", "smp:1x3"]),
    st.sampled_from([1, 0.7]),
    st.sampled_from(["batched", "one-by-one"]),
)
@settings(max_examples=25, deadline=None)
def test_the_journal_is_that_of_the_textbook(
    policy, solver, chosen, workload, limits, machine, unit, order
):
    trace, textbook = trace_of(workload, unit), {SJBF: TextbookSJBF, RUA: TextbookRUA}[policy]
    runs = [
        simulate(
            trace, machine, one(limits=limits, **chosen), solver=solver, event_order=order,
            journal=True,
        )
        for one in (policy, textbook)
    ]  # fmt: skip
    assert runs[0].journal.entries == runs[1].journal.entries
    assert runs[0].schedule.decisions == runs[1].schedule.decisions
    assert len(runs[0].decisions) <= len(runs[1].decisions)


def test_only_decided_decisions_are_left_out():
    few = jobs_with(*((job // 3, 9 + job % 5, 20, 1 + job % 4, 2000) for job in range(40)))
    chosen = {"thresholds": "1.05,1.15,1.5,2.5"}
    quick, thorough = (simulate(few, "smp:2x4", one(**chosen)) for one in (RUA, TextbookRUA))
    assert quick.end.tolist() == thorough.end.tolist()
    assert len(quick.decisions) < len(thorough.decisions) / 2


@pytest.mark.parametrize("policy", [SJBF, RUA])
def test_what_is_posed_without_a_check_would_pass_it(policy):
    class Checking(LessConsumeThreshold):
        def place(self, problem):
            values = {one.name: getattr(problem, one.name) for one in problem.schema.fields}
            accepted = problem.schema.validated(values)
            assert all(accepted[name] is value for name, value in values.items())
            return super().place(problem)

    @given(crowds)
    @settings(max_examples=25, deadline=None)
    def check(workload):
        run = simulate(trace_of(workload), "smp:2x4", policy(), solver=Checking())
        assert run.fallbacks == 0

    check()


@pytest.mark.parametrize(
    ("demand", "said"), [(-1, r"demand\[0\]: -1"), (10**11, "too large together")]
)
@pytest.mark.parametrize("policy", ["sjbf", "rua"])
def test_demands_are_checked_whatever_executes_the_jobs(policy, demand, said):
    trace = jobs_with((0, 90, 10**9, 1, 0), (1, 9, 9, 1, demand))
    with pytest.raises(InputError, match=said):
        simulate(trace, "smp:2x4", policy, execution=ExecutionModel())


@given(st.data())
def test_a_place_at_any_time_is_one_at_which_a_holding_ends_there_in_another_machine(data):
    problem = data.draw(threshold_allocations())
    rows = st.lists(st.integers(0, 2), min_size=problem.nodes, max_size=problem.nodes)
    placement = Placement(data.draw(st.integers(0, 7)), np.array(data.draw(rows)))
    # a node more, held until the start and not used, makes it a time to start at
    ends = [problem.nodes, 1, 0, max(placement.start, 1), *[0] * len(problem.capacity)]
    larger = replace(
        problem, nodes=problem.nodes + 1, held=np.vstack((problem.held, ends)), latest=None
    )
    there = Placement(placement.start, np.append(placement.processes, 0))
    lost = checked_penalty(problem.held, problem.in_kernels, *placement, True)
    is_place = 0 <= lost <= most_penalized(problem)
    assert is_place == (larger.violations(there) == [])


@pytest.mark.parametrize("threshold", [0.5, -1, 1001, float("nan"), float("inf")])
def test_a_threshold_below_1_is_refused(threshold):
    expected = r"threshold .*; expected a factor from 1 to 1000, or 0 for none"
    with pytest.raises(InputError, match=expected):
        SJBF(threshold=threshold)


@pytest.mark.parametrize(
    ("policy", "more"),
    [
        ("sjbf", {"goal": "everybody"}),
        ("sjbf", {"goal": "penalty", "threshold": 1.5}),
        ("rua", {"choice": "response"}),
    ],
)
def test_rules_are_refused_where_they_do_not_look_at_what_is_asked_for(policy, more):
    trace = jobs_with((0, 90, 100, 4, 2000))
    with pytest.raises(InputError, match=r"'less-consume' is a rule, .* such as bottleneck-search"):
        run(trace, policy, "less-consume", **more)
    assert run(trace, policy, None, **more).config["solver"] == "bottleneck-search"


def test_the_least_penalty_at_the_first_start_within_a_threshold():
    trace = jobs_with((0, 90, 100, 4, 2000))
    paper = run(trace, "sjbf", "less-consume-threshold", threshold=1.5)
    assert paper.resources == ["0-3"]
    least = run(trace, "sjbf", "bottleneck-search", threshold=1.5, goal="penalty")
    assert least.end.tolist() == [90]


@pytest.mark.parametrize(
    ("policy", "more"), [("sjbf", {"threshold": 1.15}), ("rua", {"thresholds": "1.15"})]
)
def test_a_rule_that_finds_no_place_is_an_error_in_one_line(policy, more):
    trace = jobs_with((0, 90, 100, 4, 2000))
    expected = r"no place for job 1 within a factor of 1\.15; expected a solver that tries later"
    with pytest.raises(InputError, match=expected):
        run(trace, policy, "first-fit", **more)


def test_a_job_goes_where_it_loses_least_or_where_all_do():
    # the last: on node 0 it and three others lose 0.23 each, on node 1 it and one other 0.33
    trace = jobs_with(
        (0, 10, 10, 4, 500), (1, 90, 90, 1, 3000), (20, 90, 90, 3, 800), (30, 30, 60, 1, 5000)
    )
    alone = run(trace, "sjbf", "bottleneck-search")
    assert alone.resources == ["0-3", "4", "0-2", "3"]
    everybody = run(trace, "sjbf", "bottleneck-search", goal="everybody")
    assert everybody.resources == ["0-3", "4", "0-2", "5"]


@pytest.mark.parametrize("thresholds", ["", "a", "1.15,", "0.9,1.2", "1e18", "nan"])
def test_thresholds_are_factors(thresholds):
    with pytest.raises(InputError, match=r"expected factors from 1 to 1000 such as"):
        RUA(thresholds=thresholds)
