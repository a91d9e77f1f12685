"""Shared nodes on the event core alone: as in runs that are followed, and as in the textbook."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policies.sharing_textbook import TextbookRUA, TextbookSJBF
from policies.workloads import crowds, demanding, orders, units, with_bandwidth

from optsched import read_trace, simulate
from optsched.executions.resource_sharing import ResourceSharing
from optsched.extend import Budget
from optsched.policies import sharing
from optsched.policies.rua import RUA
from optsched.policies.sjbf import SJBF
from optsched.solvers.threshold_allocation import (
    BottleneckSearch,
    FirstFit,
    LessConsume,
    LessConsumeThreshold,
)

KNOWN = (FirstFit, LessConsume, LessConsumeThreshold, BottleneckSearch)
OWN = {one.name: type(f"Own{one.__name__}", (one,), {}) for one in KNOWN}
"""Subclasses, which the kernel leaves to Python."""


FEW = with_bandwidth(*((at, 5 + at % 3, 9 + at, 1 + at % 4, 4000) for at in range(20)))
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
