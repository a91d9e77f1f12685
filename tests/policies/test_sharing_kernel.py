"""Backfilling on nodes that share resources: by hand, and its kernels against the textbook."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policies.sharing_textbook import TextbookRUA, TextbookSJBF
from policies.workloads import crowds, demanding, jobs_with, noting_promises, orders, units

from optsched import read_trace, simulate
from optsched.executions.resource_sharing import ResourceSharing
from optsched.extend import Budget, ExecutionModel, InputError
from optsched.policies import sharing
from optsched.policies.rua import RUA
from optsched.policies.sjbf import SJBF
from optsched.solvers.threshold_allocation import (
    BottleneckSearch,
    FirstFit,
    LessConsume,
    LessConsumeThreshold,
)


def run(trace, policy, solver, machine="smp:2x4", **settings):
    return simulate(trace, machine, policy, solver=solver, settings=settings, check=True)


def test_limits_are_raised_by_the_promised_factor():
    # 100 s at 3/4 of the speed are 133.3 s, within the raised limit of 134 s, not within 100 s
    trace = jobs_with((0, 100, 100, 4, 2000))
    raised = run(trace, "sjbf", "first-fit", "smp:1x4")
    assert raised.state.tolist() == ["COMPLETED_SUCCESSFULLY"]
    assert raised.end.tolist() == pytest.approx([100 / 0.75])
    kept = run(trace, "sjbf", "first-fit", "smp:1x4", limits="requested")
    assert kept.state.tolist() == ["COMPLETED_WALLTIME_REACHED"]
    assert kept.end.tolist() == [100]


def test_rua_starts_a_job_when_its_slowdown_is_least():
    # the first has a factor of 2 for itself; next to it for 40 s the second loses 200/3 s
    trace = jobs_with((0, 20, 20, 3, 4000), (0, 100, 100, 1, 4000))
    for solver, chosen, start in (
        ("less-consume-threshold", {"thresholds": "1,2.5"}, 40),
        ("less-consume-threshold", {"thresholds": "2.5"}, 0),
        ("bottleneck-search", {"thresholds": "2.5", "choice": "response"}, 40),
    ):
        assert run(trace, "rua", solver, "smp:1x4", **chosen).start.tolist() == [0, start]


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
@given(crowds, st.sampled_from(["raised", "requested"]))
@settings(max_examples=160, deadline=None)
def test_no_job_starts_after_the_time_it_was_promised_first(policy, solver, more, workload, limits):
    one, promised = noting_promises(policy, limits=limits, **more)
    found = simulate(demanding(workload), "smp:2x4", one, solver=solver, check=True)
    for job, start in promised.items():
        assert found.start[job] <= start + 1e-6


def test_a_reservation_is_kept_at_times_between_seconds():
    """Job 14 is reserved from 24 s; seen from 12.67 s, that is 12 whole seconds ahead."""
    short = [(0, 1, 1, 1, 0)] * 10
    rest = [(0, 9, 9, 3, 0), (0, 4, 5, 2, 7000), (0, 6, 14, 6, 0), (0, 4, 12, 6, 2000)]
    late = [(0, 6, 6, 2, 0), (0, 12, 19, 1, 500)]
    policy = SJBF(limits="requested", threshold=1.05, goal="everybody")
    found = simulate(jobs_with(*short, *rest, *late), "smp:2x4", policy, solver="bottleneck-search")
    assert found.start[13] <= 24
    assert found.start[15] > 12.67


@pytest.mark.parametrize("policy", [SJBF, RUA])
@given(crowds)
@settings(max_examples=100, deadline=None)
def test_what_is_posed_without_a_check_would_pass_it(policy, workload):
    class Checking(LessConsumeThreshold):
        def place(self, problem):
            values = {one.name: getattr(problem, one.name) for one in problem.schema.fields}
            accepted = problem.schema.validated(values)
            assert all(accepted[name] is value for name, value in values.items())
            return super().place(problem)

    run = simulate(demanding(workload), "smp:2x4", policy(), solver=Checking())
    assert run.fallbacks == 0


@pytest.mark.parametrize(
    ("demand", "said"), [(-1, r"demand\[0\]: -1"), (10**11, "too large together")]
)
@pytest.mark.parametrize("policy", ["sjbf", "rua"])
def test_demands_are_checked_whatever_executes_the_jobs(policy, demand, said):
    trace = jobs_with((0, 90, 10**9, 1, 0), (1, 9, 9, 1, demand))
    with pytest.raises(InputError, match=said):
        simulate(trace, "smp:2x4", policy, execution=ExecutionModel())


@pytest.mark.parametrize(
    ("policy", "more"), [("sjbf", {"goal": "everybody"}), ("rua", {"choice": "response"})]
)
def test_rules_are_refused_where_they_do_not_look_at_what_is_asked_for(policy, more):
    trace = jobs_with((0, 90, 100, 4, 2000))
    with pytest.raises(InputError, match=r"'less-consume' is a rule, .* such as bottleneck-search"):
        run(trace, policy, "less-consume", **more)
    assert run(trace, policy, None, **more).config["solver"] == "bottleneck-search"


@pytest.mark.parametrize(("policy", "setting"), [("sjbf", "threshold"), ("rua", "thresholds")])
@pytest.mark.parametrize("check", [False, True])
def test_a_rule_that_finds_no_place_is_an_error_in_one_line(policy, setting, check):
    trace, chosen = jobs_with((0, 90, 100, 4, 2000)), {"solver": "first-fit", "check": check}
    expected = r"no place for job 1 within a factor of 1\.15; expected a solver that tries later"
    with pytest.raises(InputError, match=expected):
        simulate(trace, "smp:2x4", policy, settings={setting: "1.15"}, **chosen)


KNOWN = (FirstFit, LessConsume, LessConsumeThreshold, BottleneckSearch)
OWN = {one.name: type(f"Own{one.__name__}", (one,), {}) for one in KNOWN}
"""Subclasses, which the kernel leaves to Python."""

FEW = jobs_with(*((at, 5 + at % 3, 9 + at, 1 + at % 4, 4000) for at in range(20)))
"""Jobs that do not all fit at once."""


class OwnSharing(ResourceSharing):
    """Slows jobs down as resource sharing does; what it does beside that the core does not know."""


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


def assert_same(trace, machine, policy, solver, chosen, budget=None, **given):
    """Compare a run of kernels alone with one that is followed, answered by solvers in Python.

    Without a budget, that one is compared with the textbook, which poses decided problems, too.
    """
    given |= {"budget": budget}
    alone = simulate(trace, machine, policy(**chosen), solver=solver, **given)
    given |= {"solver": OWN[solver](), "journal": True}
    followed = simulate(trace, machine, policy(**chosen), check=True, **given)
    assert alone.jobs.to_csv() == followed.jobs.to_csv()
    rows = [one.decisions.drop(columns="message") for one in (alone, followed)]  # names the solver
    pd.testing.assert_frame_equal(*rows)
    assert alone.schedule.decisions == followed.schedule.decisions
    assert alone.fallbacks == followed.fallbacks
    if budget is None:
        assert alone.fallbacks == 0
        textbook = {SJBF: TextbookSJBF, RUA: TextbookRUA}[policy]
        thorough = simulate(trace, machine, textbook(**chosen), **given)
        assert followed.journal.entries == thorough.journal.entries
        assert followed.schedule.decisions == thorough.schedule.decisions
        assert len(followed.decisions) <= len(thorough.decisions)
    return alone


@pytest.mark.parametrize(("policy", "solver", "chosen"), SETTINGS)
@given(
    crowds,
    st.sampled_from(["raised", "requested"]),
    st.sampled_from(["at-each-instant", "in-all"]),
    st.sampled_from(["smp:2x4", "smp:4x2", "smp:2x4:bandwidth=3000:disk=4", "smp:1x3"]),
    units,
    orders,
)
@settings(max_examples=40, deadline=None)
def test_kernels_alone_decide_as_solvers_and_textbook_do(
    policy, solver, chosen, workload, limits, worst_node, machine, unit, order
):
    trace, other = demanding(workload, unit), {"settings": {"worst_node": worst_node}}
    chosen = chosen | {"limits": limits}
    run = assert_same(trace, machine, policy, solver, chosen, event_order=order, **other)
    assert run.timing["solver_seconds"] == 0
    assert run.summary["waiting"] == 0
    if limits == "requested":
        over = run.end - run.start - np.ceil(trace.requested_time)  # limits are whole seconds
        assert np.nanmax(over, initial=0) <= 1e-5


@given(crowds, st.sampled_from(SETTINGS[4:8] + SETTINGS[9:]), units, st.sampled_from([1, 3]))
@settings(max_examples=50, deadline=None)
def test_a_search_that_is_cut_short_is_so_in_the_kernel(workload, run, unit, work):
    assert_same(demanding(workload, unit), "smp:2x4", *run, Budget(work=work))


@pytest.mark.parametrize(("policy", "solver", "chosen"), [SETTINGS[at] for at in (1, 7, 8, 10)])
def test_a_log_on_shared_nodes_is_the_same_when_it_is_followed(policy, solver, chosen):
    trace = read_trace("sample-256").jobs(1, 150)
    bandwidth = np.random.default_rng(1).choice([500, 1000, 2000], len(trace))
    assert_same(trace.annotated(bandwidth=bandwidth), "smp:64x4", policy, solver, chosen)


@pytest.mark.parametrize("space", [1, 7])
def test_answers_of_the_kernel_are_handed_over_whenever_its_space_is_full(space, monkeypatch):
    monkeypatch.setattr(sharing, "RECORDED", space)
    found = assert_same(FEW, "smp:2x4", RUA, "less-consume-threshold", {})
    assert len(found.decisions) > 3 * space


@pytest.mark.parametrize(
    "other",
    [
        {"charge_decisions": True},
        {"solver": "highs"},
        {"solver": OWN["less-consume"]()},
        {"solver": "bottleneck-search", "budget": Budget(seconds=10)},
    ],
)
def test_other_solvers_and_those_that_are_charged_for_answer_all_problems(other):
    run = simulate(FEW, "smp:2x4", "sjbf", **other)
    assert run.timing["solver_seconds"] > 0


def test_an_execution_model_of_ones_own_hears_of_each_start():
    models = ResourceSharing(), OwnSharing()
    runs = [simulate(FEW, "smp:2x4", "sjbf", execution=one) for one in models]
    assert runs[0].jobs.to_csv() == runs[1].jobs.to_csv()
