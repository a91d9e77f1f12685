"""The kernel of gang scheduling against the Python solvers, and who may decide in its place."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from optsched import simulate
from optsched.content import bundled
from optsched.errors import InputError
from optsched.models.gang_packing import GangPacking, Packing
from optsched.policies import _gang, gang
from optsched.policies._gang import Rule
from optsched.policies.gang import Gang
from optsched.solvers.gang_packing.fit_rules import FirstFit
from optsched.solvers.result import Budget
from optsched.traces.cleaning import clean
from optsched.traces.reading import read_trace
from optsched.traces.trace import Trace
from optsched.workloads.spec_file import generate_workload

jobs = st.lists(
    st.tuples(st.integers(0, 5), st.integers(1, 12), st.integers(0, 8), st.integers(1, 9)),
    min_size=1,
    max_size=40,
)
gang_settings = st.fixed_dictionaries(
    {
        "mpl": st.integers(1, 4),
        "admission": st.sampled_from(["fcfs", "skip"]),
        "sharing": st.sampled_from(["rows", "fill", "nodes", "turns"]),
        "compact": st.booleans(),
        "window": st.sampled_from([1, 2, 100]),
        "context_switch": st.sampled_from([0.0, 5.0]),
    }
)


def assert_same_gang(trace, columns, settings, **other):
    """Compare a run with one that is followed, and in which the solver answers all problems."""
    given = {"settings": settings, "compiled_from": 0, **other}
    runs = [simulate(trace, f"matrix:{columns}", "gang", **given)]
    with mock.patch.object(gang, "quick_answer", return_value=None):
        runs.append(simulate(trace, f"matrix:{columns}", "gang", journal=True, **given))
    tables = [run.jobs.to_csv() for run in runs]
    assert tables[0] == tables[1]
    pd.testing.assert_frame_equal(runs[0].decisions, runs[1].decisions)
    assert runs[0].summary == runs[1].summary
    assert runs[0].schedule.decisions == runs[1].schedule.decisions
    assert runs[0].fallbacks == runs[1].fallbacks
    assert runs[0].schedule.reasons == runs[1].schedule.reasons
    return runs[0]


@pytest.mark.parametrize(
    ("solver", "budget"),
    [
        ("first-fit", None),
        ("best-fit", None),
        ("row-search", None),
        ("row-search", Budget(work=1)),
        pytest.param("first-fit", Budget(work=1), marks=pytest.mark.long),
        pytest.param("best-fit", Budget(work=1), marks=pytest.mark.long),
    ],
)
@given(
    jobs,
    gang_settings,
    st.sampled_from([5, 8, 64, 70]),
    st.sampled_from([1, 0.7]),
    st.sampled_from(["batched", "one-by-one"]),
)
@settings(max_examples=50, deadline=None)
def test_the_kernel_of_gang_scheduling_answers_as_the_solver_does(
    solver, budget, workload, chosen, columns, unit, order
):
    gaps, runtime, slack, processors = (np.array(column) for column in zip(*workload))
    trace = clean(
        Trace(
            job_id=np.arange(len(gaps)),
            submit=np.cumsum(gaps) * unit,
            runtime=1 + runtime * unit,
            requested_time=1 + (runtime + slack) * unit,
            processors=processors * columns // 8 + 1,  # the widest are rejected
        )
    )
    given = {"solver": solver, "budget": budget, "event_order": order}
    run = assert_same_gang(trace, columns, chosen, **given)
    assert solver == "row-search" or run.timing["solver_seconds"] == 0


@pytest.mark.parametrize("sharing", ["rows", "fill", "nodes"])
@pytest.mark.parametrize("admission", ["fcfs", "skip"])
@pytest.mark.parametrize("solver", ["first-fit", "best-fit", "row-search"])
def test_the_kernel_answers_as_the_solver_does_for_a_modeled_workload(solver, admission, sharing):
    trace = generate_workload("franke-1999", jobs=400, interarrival_factor=0.8, service_factor=1.8)
    settings = {"mpl": 3, "admission": admission, "sharing": sharing, "context_switch": 1.0}
    run = assert_same_gang(trace, 320, settings, solver=solver)
    left_open = (run.decisions["work"] > 0) & (run.decisions["status"] == "optimal")
    assert left_open.any() == (solver == "row-search") == (run.timing["solver_seconds"] > 0)


@pytest.mark.parametrize("compact", [True, False])
@pytest.mark.parametrize("admission", ["fcfs", "skip"])
def test_packings_that_the_kernel_leaves_open_are_searched_for(compact, admission):
    """Some are not found within the budget."""
    trace = generate_workload("franke-1999", jobs=600, interarrival_factor=0.6, service_factor=1.8)
    settings = {"mpl": 4, "admission": admission, "compact": compact, "window": 20}
    run = assert_same_gang(trace, 320, settings, solver="row-search", budget=Budget(work=30))
    assert (run.decisions["work"] == 0).any()
    assert run.timing["solver_seconds"] > 0


class LikeFirstFit(FirstFit):
    """Decides as first fit does; what it does beside that no kernel knows."""


@pytest.mark.parametrize(
    "other",
    [{"charge_decisions": True}, {"solver": "greedy-colouring"}, {"solver": LikeFirstFit()}],
)
def test_in_other_runs_of_gang_scheduling_the_solver_answers_all_problems(other):
    trace = read_trace(bundled("traces") / "samples" / "sample-256.swf").jobs(1, 50)
    run = simulate(trace, "matrix:256", "gang", compiled_from=0, **other)
    assert run.timing["solver_seconds"] > 0


@pytest.mark.parametrize("sharing", ["rows", "turns"])
def test_speeds_of_an_execution_model_are_those_in_the_engine(sharing):
    trace = read_trace(bundled("traces") / "samples" / "sample-256.swf").jobs(1, 300)
    chosen = {"mpl": 4, "sharing": sharing, "node_memory": 200.0, "variation": 1.0}
    run = assert_same_gang(trace, 256, chosen, execution="paging")
    assert run.execution_report.figures["paged_jobs"] > 0


def test_captured_problems_are_those_of_the_engine(tmp_path):
    trace = read_trace(bundled("traces") / "samples" / "sample-256.swf").jobs(1, 50)
    run = simulate(trace, "matrix:256", "gang", compiled_from=0, capture=tmp_path)
    assert len(list(tmp_path.iterdir())) == len(run.decisions) > 0


def test_a_subclass_that_decides_does_not_use_the_kernel_of_its_parent():
    class Lazy(Gang):
        def decide(self, system):
            return ()

    trace = read_trace(bundled("traces") / "samples" / "sample-256.swf").jobs(1, 10)
    run = simulate(trace, "matrix:256", Lazy(), compiled_from=0)
    assert run.summary["waiting"] == 10


def test_a_subclass_that_reads_the_system_finds_it_as_the_kernel_changes_it(make_trace):
    class Reserved(Gang):
        def admits(self, job, system):
            return super().admits(job, system) and len(system.running) < 2

    trace = make_trace((0, 10, 10, 3), (1, 10, 10, 3), (2, 5, 5, 1), (50, 5, 5, 1), (60, 5, 5, 5))
    run = simulate(trace, "matrix:4", Reserved())
    assert [not np.isnan(start) for start in run.start] == [True, True, False, True, False]
    assert simulate(trace, "matrix:4", "gang").start.tolist()[:4] == [0, 1, 2, 50]


def test_a_run_that_nobody_follows_says_how_far_it_is():
    trace = read_trace(bundled("traces") / "samples" / "sample-256.swf").jobs(1, 1200)
    told = {True: [], False: []}
    for followed in told:
        simulate(
            trace,
            "matrix:256",
            "gang",
            journal=followed,
            progress=lambda *given, to=told[followed]: to.append(given),
        )
    for reports in told.values():
        assert len(reports) > 2
        assert reports == sorted(reports)
        assert reports[-1][0] == 1200


@st.composite
def answered_packings(draw):
    """Draw a packing problem and an answer that may break any constraint."""
    columns = draw(st.sampled_from([6, 64, 66]))
    place = st.sampled_from([0, 1, 2, 3, columns - 2, columns - 1])
    masks = st.sets(place, min_size=1, max_size=3).map(lambda bits: sum(1 << bit for bit in bits))
    running = draw(st.lists(masks, max_size=3))
    chosen = draw(st.lists(masks, max_size=3))
    row = st.integers(0, 2)
    present = [draw(row) for _ in running]
    of_running = present if draw(st.booleans()) else [draw(row) for _ in running]
    of_waiting = [draw(st.integers(-1, 3)) for _ in chosen]
    surplus = [draw(st.sampled_from([0, 0, 0, 1])) for _ in chosen]
    try:
        problem = GangPacking(
            columns=columns,
            rows=3,
            running=running,
            rows_of_running=present,
            waiting=[mask.bit_count() + more for mask, more in zip(chosen, surplus)],
            admission=draw(st.sampled_from(["fcfs", "skip"])),
            rerow=draw(st.booleans()),
        )
    except InputError:  # running jobs of a row share a column
        reject()
    return problem, Packing(tuple(of_running), tuple(of_waiting), tuple(chosen))


@given(answered_packings())
def test_the_kernel_verifies_packings_as_their_problem_does(answered):
    problem, packing = answered
    placed = [
        m if r >= 0 else 0 for m, r in zip(packing.columns_of_waiting, packing.rows_of_waiting)
    ]
    packing = packing._replace(columns_of_waiting=tuple(placed))
    masks = [*problem.running, *packing.columns_of_waiting]
    sizes = [*map(int.bit_count, problem.running), *problem.waiting]
    rule = Rule(
        problem.columns, 3, problem.admission == "skip", 0, problem.rerow, 100, 1.0, 60.0, 0
    )
    # three more jobs, so that there are three rows
    state = _gang.new_state(np.array([*sizes, 1, 1, 1]), rule)
    running = len(problem.running)
    state.counts[0].running = running
    state.running[:running] = range(running)
    state.candidates[: len(problem.waiting)] = range(running, len(masks))
    state.row[:running] = problem.rows_of_running
    state.answer[: len(masks)] = [*packing.rows_of_running, *packing.rows_of_waiting]
    for job, mask in enumerate(masks):
        state.columns[job] = [mask >> word & (1 << 64) - 1 for word in (0, 64)][: len(state.left)]
    holds = _gang.is_feasible(state, rule, len(problem.waiting))
    assert holds == (not problem.violations(packing))
