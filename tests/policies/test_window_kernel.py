"""The policy window by hand, its kernel against a plain statement, and who may decide instead."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policies import workloads
from policies.window_textbook import TextbookWindow

from optsched import read_trace, simulate
from optsched.executions.contiguity import Contiguity
from optsched.extend import Answers, Budget
from optsched.models.window_mkp import WindowMKP
from optsched.policies import _window
from optsched.policies.window import Window
from optsched.solvers.window_mkp.branch_and_bound import BranchAndBound


def test_the_papers_example_is_scheduled_as_the_paper_says(make_trace):
    # twenty nodes of which 4, 5 and 12 to 14 (from 1) are busy: three jobs hold them all day, and
    # two more hold the nodes between until they free the slots 3, 6 and 6 at one instant
    day = 86_400
    blockers = [(0, 50, 50, 3), (0, day, day, 2), (0, 50, 50, 6), (0, day, day, 3), (0, 50, 50, 6)]
    waiting = [(1, 10, 10, size) for size in (6, 4, 3, 1, 2)]
    run = simulate(make_trace(*blockers, *waiting), "nodes:20", "window", check=True)
    assert run.start[5:].tolist() == [60, 60, 60, 90, 60]
    assert run.resources[5:8] == ["5-10", "14-17", "0-2"]
    assert run.resources[9] == "18-19"
    posed = run.decisions.set_index("time").loc[60]
    assert (posed["size"], posed.objective, posed.status) == ("5x3", 15, "optimal")


jobs = workloads.jobs(9, slack=st.integers(-6, 8))  # the widest are rejected
window_settings = st.fixed_dictionaries(
    {
        "window": st.sampled_from([1, 2, 5, 20]),
        "interval": st.sampled_from([0.0, 4.0, 30.0]),
        "backfill": st.sampled_from(["none", "easy"]),
        "scatter": st.sampled_from(["never", "head"]),
    }
)


@dataclass
class Exchange(Window):
    """The kernel leaves all problems open."""

    models: ClassVar = {"window-mkp": Answers("branch-and-bound", "greedy-exchange")}


def assert_same(one, other):
    assert one.jobs.to_csv() == other.jobs.to_csv()
    pd.testing.assert_frame_equal(one.decisions, other.decisions)
    assert one.schedule.decisions == other.schedule.decisions
    assert one.fallbacks == other.fallbacks
    assert one.schedule.reasons == other.schedule.reasons


@pytest.mark.parametrize(
    ("solver", "other"),
    [
        ("branch-and-bound", {}),
        ("branch-and-bound", {"budget": Budget(work=2)}),
        ("branch-and-bound", {"charge_decisions": True}),
        ("greedy", {}),
        ("greedy-exchange", {}),
    ],
)
@given(
    jobs,
    window_settings,
    st.sampled_from(["nodes:8", "torus:2x2x2:row-major"]),
    workloads.units,
    workloads.orders,
    st.booleans(),
)
@settings(max_examples=75, deadline=None)
def test_the_kernel_decides_as_the_textbook_does(
    solver, other, jobs, chosen, machine, unit, order, patient
):
    trace = workloads.trace_of(jobs, unit, limits_hold=patient)
    given = {"solver": solver, "event_order": order, "compiled_from": 0, **other}
    kernel, textbook = Window(**chosen), TextbookWindow(**chosen)
    kernel.enforces_limits = textbook.enforces_limits = not patient  # or jobs may overrun them
    alone = simulate(trace, machine, kernel, **given)
    assert_same(alone, simulate(trace, machine, kernel, check=True, **given))
    assert_same(alone, simulate(trace, machine, textbook, **given))
    if chosen["scatter"] == "never" and machine == "nodes:8":
        assert all(" " not in held for held in alone.resources)


@given(
    jobs,
    window_settings,
    st.sampled_from(["line", "torus"]),
    st.sampled_from(["scattered", "contiguous"]),
    workloads.orders,
)
@settings(max_examples=50, deadline=None)
def test_speeds_are_those_of_runs_that_are_followed(jobs, chosen, adjacency, stated, order):
    trace, machine = workloads.trace_of(jobs), "torus:2x2x2:row-major"
    given = {"event_order": order, "compiled_from": 0}
    given |= {"execution": Contiguity(beta=0.7, adjacency=adjacency, stated=stated)}
    assert_same(
        *(simulate(trace, machine, one(**chosen), **given) for one in (Window, TextbookWindow))
    )


def test_problems_that_the_plain_search_leaves_open_are_searched_for(monkeypatch):
    trace = read_trace("sample-256").jobs(1, 500)
    monkeypatch.setattr("optsched.policies.window.quick_nodes", lambda *given: 2)
    run, textbook = (
        simulate(trace, "nodes:256", one(window=20), solver="branch-and-bound", compiled_from=0)
        for one in (Window, TextbookWindow)
    )
    assert run.timing["solver_seconds"] > 0
    assert_same(run, textbook)


class OwnSearch(BranchAndBound):
    """Searches as branch and bound does; what it does beside that no kernel knows."""


@pytest.mark.parametrize(
    ("policy", "other"),
    [
        (Window, {"charge_decisions": True}),
        (Window, {"solver": OwnSearch()}),
        (Window, {"ties": "solver"}),
        (Window, {"budget": Budget(seconds=10)}),
        (Exchange, {}),
    ],
)
def test_in_other_runs_the_solver_answers_all_problems(policy, other):
    trace = read_trace("sample-256").jobs(1, 50)
    run = simulate(trace, "nodes:256", policy(), compiled_from=0, **other)
    assert run.timing["solver_seconds"] > 0
    assert simulate(trace, "nodes:256", "window").timing["solver_seconds"] == 0


sizes = st.lists(st.integers(0, 5), min_size=1, max_size=5)


@given(sizes, sizes, st.data())
def test_the_kernel_verifies_placements_as_their_problem_does(weights, capacities, data):
    slot = st.integers(-2, len(capacities))
    answer = data.draw(st.lists(slot, min_size=len(weights), max_size=len(weights)))
    rule = _window.Rule(5, False, False, False, _window.ASK)
    state = _window.new_state(np.array(weights), np.ones(len(weights)), 9, rule, np.ones(6, int))
    state.counts["jobs"], state.counts["slots"] = len(weights), len(capacities)
    state.weights[: len(weights)], state.answer[: len(weights)] = weights, answer
    state.capacities[: len(capacities)] = capacities
    problem = WindowMKP(weights=weights, capacities=capacities)
    assert _window.is_feasible(state) == (not problem.violations(answer))
