"""The kernel of `window` against a plain statement, and who may decide in its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policies.window_textbook import TextbookWindow

from optsched import simulate
from optsched.content import bundled
from optsched.executions.contiguity import Contiguity
from optsched.models.window_mkp import WindowMKP
from optsched.policies import _window
from optsched.policies.window import Window
from optsched.simulator.policy import Answers
from optsched.solvers.result import Budget
from optsched.solvers.window_mkp.branch_and_bound import BranchAndBound
from optsched.traces.cleaning import clean
from optsched.traces.reading import read_trace
from optsched.traces.trace import Trace

jobs = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 12), st.integers(-6, 8), st.integers(1, 9)),
    min_size=1,
    max_size=40,
)
window_settings = st.fixed_dictionaries(
    {
        "window": st.sampled_from([1, 2, 5, 20]),
        "interval": st.sampled_from([0.0, 4.0, 30.0]),
        "backfill": st.sampled_from(["none", "easy"]),
        "scatter": st.sampled_from(["never", "head"]),
    }
)


class Patient(Window):
    """Jobs may overrun their requested times."""

    enforces_limits = False


class PatientTextbook(TextbookWindow):
    """Jobs may overrun their requested times."""

    enforces_limits = False


@dataclass
class Exchange(Window):
    """The kernel leaves all problems open."""

    models: ClassVar = {"window-mkp": Answers("branch-and-bound", "greedy-exchange")}


def trace_of(workload, unit=1):
    gaps, runtime, slack, processors = (np.array(column) for column in zip(*workload))
    return clean(
        Trace(
            job_id=np.arange(len(gaps)),
            submit=np.cumsum(gaps) * unit,
            runtime=1 + runtime * unit,
            requested_time=1 + np.maximum(runtime + slack, 0) * unit,
            processors=processors,
        )
    )


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
    st.sampled_from([1, 0.7]),
    st.sampled_from(["batched", "one-by-one"]),
    st.booleans(),
)
@settings(max_examples=75, deadline=None)
def test_the_kernel_decides_as_the_textbook_does(
    solver, other, workload, chosen, machine, unit, order, patient
):
    trace = trace_of(workload, unit)  # jobs of nine nodes are rejected
    given = {"solver": solver, "event_order": order, "compiled_from": 0, **other}
    kernel, textbook = (Patient, PatientTextbook) if patient else (Window, TextbookWindow)
    alone = simulate(trace, machine, kernel(**chosen), **given)
    assert_same(alone, simulate(trace, machine, kernel(**chosen), check=True, **given))
    assert_same(alone, simulate(trace, machine, textbook(**chosen), **given))


@given(
    jobs,
    window_settings,
    st.sampled_from(["line", "torus"]),
    st.sampled_from(["scattered", "contiguous"]),
    st.sampled_from(["batched", "one-by-one"]),
)
@settings(max_examples=50, deadline=None)
def test_speeds_are_those_of_runs_that_are_followed(workload, chosen, adjacency, stated, order):
    trace, machine = trace_of(workload), "torus:2x2x2:row-major"
    runs = [
        simulate(
            trace,
            machine,
            policy(**chosen),
            execution=Contiguity(beta=0.7, adjacency=adjacency, stated=stated),
            event_order=order,
            compiled_from=0,
        )
        for policy in (Window, TextbookWindow)
    ]
    assert_same(*runs)


def test_problems_that_the_plain_search_leaves_open_are_searched_for(monkeypatch):
    trace = read_trace(bundled("traces") / "samples" / "sample-256.swf").jobs(1, 500)
    monkeypatch.setattr("optsched.policies.window.quick_nodes", lambda *given: 2)
    given = {"solver": "branch-and-bound", "compiled_from": 0}
    chosen = {"window": 20}
    run = simulate(trace, "nodes:256", Window(**chosen), **given)
    assert run.timing["solver_seconds"] > 0
    assert_same(run, simulate(trace, "nodes:256", TextbookWindow(**chosen), **given))


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
    trace = read_trace(bundled("traces") / "samples" / "sample-256.swf").jobs(1, 50)
    run = simulate(trace, "nodes:256", policy(), compiled_from=0, **other)
    assert run.timing["solver_seconds"] > 0
    assert simulate(trace, "nodes:256", "window").timing["solver_seconds"] == 0


def test_a_subclass_that_decides_does_not_use_the_kernel_of_its_parent():
    class Lazy(Window):
        def decide(self, system):
            return ()

    trace = read_trace(bundled("traces") / "samples" / "sample-256.swf").jobs(1, 10)
    assert simulate(trace, "nodes:256", Lazy()).summary["waiting"] == 10


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
