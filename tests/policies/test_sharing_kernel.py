"""Shared nodes on the event core alone: as in runs that are followed, by the answers of solvers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policies.sharing_workloads import crowds, trace_of

from optsched import simulate
from optsched.content import bundled
from optsched.errors import InputError
from optsched.executions.resource_sharing import ResourceSharing
from optsched.policies import sharing
from optsched.policies.sjbf import SJBF
from optsched.solvers.result import Budget
from optsched.solvers.threshold_allocation import (
    BottleneckSearch,
    FirstFit,
    LessConsume,
    LessConsumeThreshold,
)
from optsched.traces.cleaning import clean
from optsched.traces.reading import read_trace
from optsched.traces.trace import Trace


class OwnFirstFit(FirstFit):
    """First fit, which the kernel leaves to Python."""


class OwnLessConsume(LessConsume):
    """Less-consume, which the kernel leaves to Python."""


class OwnThreshold(LessConsumeThreshold):
    """Less-consume-threshold, which the kernel leaves to Python."""


class OwnSearch(BottleneckSearch):
    """The bottleneck search, which the kernel leaves to Python."""


class OwnSharing(ResourceSharing):
    """Slows jobs down as resource sharing does; what it does beside that the core does not know."""


SOLVERS = {
    "first-fit": OwnFirstFit,
    "less-consume": OwnLessConsume,
    "less-consume-threshold": OwnThreshold,
    "bottleneck-search": OwnSearch,
}

SETTINGS = [
    ("sjbf", "first-fit", {}),
    ("sjbf", "less-consume", {}),
    ("sjbf", "less-consume", {"limits": "requested"}),
    ("sjbf", "less-consume-threshold", {"threshold": 1.0}),
    ("sjbf", "less-consume-threshold", {"threshold": 1.15}),
    ("sjbf", "bottleneck-search", {}),
    ("sjbf", "bottleneck-search", {"goal": "everybody"}),
    ("sjbf", "bottleneck-search", {"threshold": 1.15, "goal": "penalty"}),
    ("sjbf", "bottleneck-search", {"threshold": 1.3, "goal": "everybody"}),
    ("rua", "less-consume-threshold", {}),
    ("rua", "less-consume-threshold", {"limits": "requested", "thresholds": "1,1.1,2"}),
    ("rua", "bottleneck-search", {}),
    ("rua", "bottleneck-search", {"choice": "response"}),
    ("sjbf", "first-fit", {"limits": "requested", "worst_node": "in-all"}),
    ("rua", "less-consume-threshold", {"worst_node": "in-all"}),
]


def assert_same(trace, machine, policy, solver, chosen, budget=None):
    """Compare a run of kernels alone with one that is followed, answered by solvers in Python."""
    given = {"settings": chosen, "budget": budget}
    alone = simulate(trace, machine, policy, solver=solver, **given)
    followed = simulate(trace, machine, policy, solver=SOLVERS[solver](), check=True, **given)
    assert alone.jobs.to_csv() == followed.jobs.to_csv()
    rows = [one.decisions.drop(columns="message") for one in (alone, followed)]  # names the solver
    pd.testing.assert_frame_equal(*rows)
    assert alone.schedule.decisions == followed.schedule.decisions
    assert alone.fallbacks == followed.fallbacks
    return alone


@given(
    crowds,
    st.sampled_from(SETTINGS),
    st.sampled_from(["smp:2x4", "smp:4x2", "smp:2x4:bandwidth=3000:disk=4", "smp:1x3"]),
    st.sampled_from([1, 0.7]),
    st.sampled_from([None, 1, 3]),
)
@settings(max_examples=75, deadline=None)
def test_a_run_of_kernels_alone_is_one_that_is_followed(workload, run, machine, unit, work):
    budget = Budget(work=work) if work and run[1] == "bottleneck-search" else None
    found = assert_same(trace_of(workload, unit), machine, *run, budget)
    assert budget is not None or found.timing["solver_seconds"] == 0


@pytest.mark.parametrize(("policy", "solver", "chosen"), SETTINGS)
def test_a_log_on_shared_nodes_is_the_same_when_it_is_followed(policy, solver, chosen):
    trace = read_trace(bundled("traces") / "samples" / "sample-256.swf").jobs(1, 150)
    demands = {"bandwidth": np.random.default_rng(1).choice([500, 1000, 2000], len(trace))}
    assert_same(replace(trace, annotations=demands), "smp:64x4", policy, solver, chosen)


@pytest.mark.parametrize("space", [1, 7])
def test_answers_of_the_kernel_are_handed_over_whenever_its_space_is_full(space, monkeypatch):
    monkeypatch.setattr(sharing, "RECORDED", space)
    found = assert_same(few_jobs(), "smp:2x4", "rua", "less-consume-threshold", {})
    assert len(found.decisions) > 3 * space


@pytest.mark.parametrize(
    "other",
    [
        {"charge_decisions": True},
        {"solver": "highs"},
        {"solver": OwnLessConsume()},
        {"solver": "bottleneck-search", "budget": Budget(seconds=10)},
    ],
)
def test_other_solvers_and_those_that_are_charged_for_answer_all_problems(other):
    run = simulate(few_jobs(), "smp:2x4", "sjbf", **other)
    assert run.timing["solver_seconds"] > 0


def test_an_execution_model_of_ones_own_hears_of_each_start():
    runs = [simulate(few_jobs(), "smp:2x4", "sjbf", execution=one()) for one in (
        ResourceSharing, OwnSharing
    )]  # fmt: skip
    assert runs[0].jobs.to_csv() == runs[1].jobs.to_csv()


def test_a_run_reports_what_the_solver_cannot_place():
    one = np.ones(1, dtype=np.int64)
    known = {"bandwidth": 2000 * one}
    trace = clean(Trace(one, one, 90 * one, 100 * one, 4 * one, annotations=known))
    given = {"solver": "first-fit", "settings": {"threshold": 1.15}, "check": False}
    with pytest.raises(InputError, match=r"no place for job 1 within a factor of 1\.15;"):
        simulate(trace, "smp:2x4", "sjbf", **given)


def test_a_policy_with_decisions_of_its_own_makes_them():
    class Lazy(SJBF):
        def decide(self, system):
            return ()

    run = simulate(few_jobs(), "smp:2x4", Lazy())
    assert run.summary["waiting"] == 20


def few_jobs():
    """Return a trace of 20 jobs that do not all fit at once."""
    numbers = np.arange(20)
    known = {"bandwidth": np.full(20, 4000)}
    return clean(
        Trace(numbers, numbers, 5 + numbers % 3, 9 + numbers, 1 + numbers % 4, annotations=known)
    )
