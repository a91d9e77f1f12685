"""Gang scheduling by hand, and its kernel against textbook and solvers."""

from dataclasses import replace
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policies import workloads
from policies.gang_textbook import TextbookGang

from optsched import read_trace, simulate
from optsched.models.gang_packing import Packing
from optsched.policies import _gang, gang
from optsched.policies._gang import Rule
from optsched.policies.gang import Gang
from optsched.solvers.gang_packing.fit_rules import FirstFit
from optsched.solvers.result import Budget
from optsched.testing import gang_packings
from optsched.workloads.spec_file import generate_workload


def run(trace, columns=4, **settings):
    return simulate(trace, f"matrix:{columns}", "gang", settings=settings, check=True, journal=True)


def test_rounding_of_times_in_the_far_future_loses_no_work(make_trace):
    rows = [(86, 19, 38, 2), (107, 106, 212, 1), (113, 70, 140, 2), (153, 3, 6, 4)]
    trace = make_trace(*((2**36 + at, *row) for at, *row in rows), (2**36 + 164, 124, 248, 1))
    found = run(trace, mpl=5, context_switch=0.1)  # and checks it
    assert found.summary["finished"] == 5


def test_the_matrix_has_no_more_rows_than_the_multiprogramming_level(make_trace):
    trace = make_trace((0, 100, 100, 3), (10, 20, 20, 3), (11, 20, 20, 3), (12, 5, 5, 1))
    found = run(trace, mpl=2)
    # job 3 waits for the end of job 2, and job 4 behind it though it would fit
    assert found.start.tolist() == [0, 10, 50, 50]
    assert run(trace, mpl=2, admission="skip").start.tolist() == [0, 10, 50, 12]
    assert run(trace, mpl=3).start.tolist() == [0, 10, 11, 12]


def test_a_context_switch_costs_its_part_of_every_turn(make_trace):
    trace = make_trace((0, 90, 90, 4), (0, 90, 90, 4), (1000, 50, 50, 4))
    found = run(trace, mpl=2, time_slice=60, context_switch=6)
    assert found.end.tolist() == pytest.approx([200, 200, 1050])  # alone a job is never switched
    assert found.summary["utilization"] == pytest.approx(230 / 1050)


def test_jobs_wait_for_the_first_turn_of_their_row(make_trace):
    # job 2 gets the second row at 10; when it ends, job 3 has that row, and the rest of the turn
    trace = make_trace((0, 100, 100, 3), (10, 20, 20, 3), (70, 90, 90, 3))
    found = run(trace, mpl=2, sharing="turns")
    assert found.start.tolist() == [0, 60, 80]
    assert found.end.tolist() == [160, 80, 210]
    assert found.jobs["paused_time"].tolist() == [60, 0, 40]


gang_settings = st.fixed_dictionaries(
    {
        "mpl": st.integers(1, 4),
        "admission": st.sampled_from(["fcfs", "skip"]),
        "sharing": st.sampled_from(["rows", "fill", "nodes", "turns"]),
        "compact": st.booleans(),
        "window": st.sampled_from([1, 2, 100]),
        "context_switch": st.sampled_from([0.0, 5.0]),
        "time_slice": st.sampled_from([7.0, 60.0]),
    }
)


def assert_same_gang(trace, columns, chosen, **other):
    """Compare a run with one that is followed, and in which the solver answers all problems.

    What that one does is what the textbook does.
    """
    given = {"compiled_from": 0, **other}
    machine = f"matrix:{columns}"
    run = simulate(trace, machine, Gang(**chosen), **given)
    with mock.patch.object(gang, "quick_answer", return_value=None):
        followed = simulate(trace, machine, Gang(**chosen), journal=True, check=True, **given)
    textbook = simulate(trace, machine, TextbookGang(**chosen), journal=True, **given)
    assert followed.journal.entries == textbook.journal.entries
    assert followed.schedule.decisions == textbook.schedule.decisions
    assert run.jobs.to_csv() == followed.jobs.to_csv()
    pd.testing.assert_frame_equal(run.decisions, followed.decisions)
    assert run.summary == followed.summary
    assert run.schedule.decisions == followed.schedule.decisions
    assert run.fallbacks == followed.fallbacks
    assert run.schedule.reasons == followed.schedule.reasons
    return run


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
    workloads.jobs(9),
    gang_settings,
    st.sampled_from([5, 8, 64, 70]),
    workloads.units,
    workloads.orders,
    st.booleans(),
)
@settings(max_examples=50, deadline=None)
def test_the_kernel_of_gang_scheduling_answers_as_solver_and_textbook_do(
    solver, budget, jobs, chosen, columns, unit, order, charged
):
    wider = [(*times, size * columns // 8 + 1) for *times, size in jobs]  # the widest are rejected
    given = {"solver": solver, "budget": budget, "event_order": order, "charge_decisions": charged}
    run = assert_same_gang(workloads.trace_of(wider, unit), columns, chosen, **given)
    assert charged or solver == "row-search" or run.timing["solver_seconds"] == 0


@pytest.mark.parametrize(
    ("solver", "admission", "sharing", "work"),
    [
        ("first-fit", "fcfs", "rows", None),
        ("best-fit", "skip", "fill", None),
        ("row-search", "fcfs", "nodes", None),
        ("row-search", "skip", "turns", 30),  # some packings are not found within the budget
    ],
)
def test_the_kernel_leaves_packings_of_a_modeled_workload_to_an_exact_solver_alone(
    solver, admission, sharing, work
):
    trace = generate_workload("franke-1999", jobs=400, interarrival_factor=0.8, service_factor=1.8)
    settings = {"mpl": 3, "admission": admission, "sharing": sharing, "context_switch": 1.0}
    budget = None if work is None else Budget(work=work)
    run = assert_same_gang(trace, 320, settings, solver=solver, budget=budget)
    left_open = (run.decisions["work"] > 0) & (run.decisions["status"] == "optimal")
    assert left_open.any() == (solver == "row-search") == (run.timing["solver_seconds"] > 0)


class LikeFirstFit(FirstFit):
    """Decides as first fit does; what it does beside that no kernel knows."""


@pytest.mark.parametrize(
    "other",
    [{"charge_decisions": True}, {"solver": "greedy-colouring"}, {"solver": LikeFirstFit()}],
)
def test_in_other_runs_of_gang_scheduling_the_solver_answers_all_problems(other):
    trace = read_trace("sample-256").jobs(1, 50)
    run = simulate(trace, "matrix:256", "gang", compiled_from=0, **other)
    assert run.timing["solver_seconds"] > 0


@pytest.mark.parametrize("sharing", ["rows", "turns"])
def test_speeds_of_an_execution_model_are_those_in_the_engine(sharing):
    trace = read_trace("sample-256").jobs(1, 300)
    paging = {"execution": "paging", "settings": {"node_memory": 200.0, "variation": 1.0}}
    run = assert_same_gang(trace, 256, {"mpl": 4, "sharing": sharing}, **paging)
    assert run.execution_report.figures["paged_jobs"] > 0


def test_captured_problems_are_those_of_the_engine(tmp_path):
    trace = read_trace("sample-256").jobs(1, 50)
    run = simulate(trace, "matrix:256", "gang", compiled_from=0, capture=tmp_path)
    assert len(list(tmp_path.iterdir())) == len(run.decisions) > 0


def test_a_subclass_that_reads_the_system_finds_it_as_the_kernel_changes_it(make_trace):
    class Reserved(Gang):
        def admits(self, job, system):
            return super().admits(job, system) and len(system.running) < 2

    trace = make_trace((0, 10, 10, 3), (1, 10, 10, 3), (2, 5, 5, 1), (50, 5, 5, 1), (60, 5, 5, 5))
    run = simulate(trace, "matrix:4", Reserved())
    assert [not np.isnan(start) for start in run.start] == [True, True, False, True, False]
    assert simulate(trace, "matrix:4", "gang").start.tolist()[:4] == [0, 1, 2, 50]


@pytest.mark.parametrize("followed", [True, False])
def test_a_run_says_how_far_it_is_even_if_nobody_follows(followed):
    reports, trace = [], read_trace("sample-256").jobs(1, 1200)
    tell = {"journal": followed, "progress": lambda *given: reports.append(given)}
    simulate(trace, "matrix:256", "gang", **tell)
    assert len(reports) > 2
    assert reports == sorted(reports)
    assert reports[-1][0] == 1200


@given(gang_packings(), st.sampled_from([1, 9]), st.data())
def test_the_kernel_verifies_packings_as_their_problem_does(problem, apart, data):
    def spread(mask):  # over words of 64 columns
        return sum(1 << apart * column for column in range(12) if mask >> column & 1)

    masks = [*map(spread, problem.running)]
    problem = replace(problem, columns=apart * problem.columns, running=masks)
    places = [data.draw(st.tuples(st.integers(-1, 3), st.integers(0, 2))) for _ in problem.waiting]
    more = data.draw(st.sampled_from([0, 0, 0, 1]))
    chosen = [
        spread((1 << size + more) - 1 << first) if row >= 0 else 0
        for (row, first), size in zip(places, problem.waiting)
    ]
    rows = st.lists(st.integers(0, 2), min_size=len(masks), max_size=len(masks))
    of_running = data.draw(st.just(list(problem.rows_of_running)) | rows)
    of_waiting = [row for row, _ in places]
    packing = Packing(tuple(of_running), tuple(of_waiting), tuple(chosen))

    sizes = [*map(int.bit_count, masks), *problem.waiting]
    skips, rerow = problem.admission == "skip", problem.rerow
    rule = Rule(problem.columns, problem.rows, skips, 0, rerow, 100, 1.0, 60.0, 0)
    # more jobs, so that there are as many rows
    state = _gang.new_state(np.array([*sizes, *[1] * problem.rows]), rule)
    state.counts[0].running = running = len(masks)
    state.running[:running] = range(running)
    state.candidates[: len(chosen)] = range(running, len(sizes))
    state.row[:running] = problem.rows_of_running
    state.answer[: len(sizes)] = [*of_running, *of_waiting]
    for job, mask in enumerate([*masks, *chosen]):
        state.columns[job] = [mask >> word & (1 << 64) - 1 for word in (0, 64)][: len(state.left)]
    holds = _gang.is_feasible(state, rule, len(chosen))
    assert holds == (not problem.violations(packing))
