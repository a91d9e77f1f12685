"""Planning on a cluster whose nodes keep files: by hand, and its kernel against the textbook."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import settings as limits
from hypothesis import strategies as st
from policies.locality_textbook import TextbookLocality

from optsched import load_snapshot, read_trace, simulate
from optsched.extend import ExecutionModel, InputError
from optsched.policies import _locality
from optsched.policies.locality import Locality
from optsched.simulator.problem_solver import ProblemSolver
from optsched.solvers.data_placement.rules import LocalityAndEvictionAware
from optsched.traces.trace import Trace

SAMPLE = "sample-8x20"
DAY = "traces/rackham/2022-09-10_V10000_anonymous.txt.gz"


def run(trace, solver="fcfs", machine="cluster:1x2", **settings):
    return simulate(trace, machine, "locality", solver=solver, settings=settings, check=True)


@pytest.mark.parametrize("backfill", ["none", "holes", "conservative"])
def test_what_is_posed_without_a_check_would_pass_it(backfill, monkeypatch):
    def pose(self, problem, pose=ProblemSolver.pose):
        values = {one.name: getattr(problem, one.name) for one in problem.schema.fields}
        accepted = problem.schema.validated(values)
        assert all(accepted[name] is value for name, value in values.items())
        return pose(self, problem)

    monkeypatch.setattr(ProblemSolver, "pose", pose)
    settings = {"backfill": backfill}
    found = simulate(SAMPLE, "cluster:8x20", "locality", settings=settings, charge_decisions=True)
    assert found.summary["problems"] > 0
    assert found.timing["solver_seconds"] > 0


def test_files_are_checked_whatever_executes_the_jobs(jobs_with_files):
    trace = jobs_with_files((0, 9, 9, 1, 7), (1, 9, 9, 2, 7))
    with pytest.raises(InputError, match=r"loads\[1\]: 128; expected 64"):
        simulate(trace, "cluster:1x2", "locality", execution=ExecutionModel())


def test_what_ended_early_while_nobody_waited_is_planned_for_at_the_next_end(jobs_with_files):
    # as in the authors' program: job 3 is added to a plan that still has job 1 until 100
    trace = jobs_with_files((0, 10, 100, 1, -1), (0, 60, 200, 1, -1), (20, 10, 10, 1, -1))
    assert run(trace).start.tolist() == [0, 0, 60]
    assert run(trace, replan="events").start.tolist() == [0, 0, 20]


@pytest.mark.parametrize("kept", ["users", "next"])
def test_charged_decisions_delay_what_they_decide(kept):
    machine = f"cluster:8x20:kept={kept}"
    found = simulate(SAMPLE, machine, "locality", charge_decisions=True, check=True)
    assert found.summary["waiting"] == 0
    free = simulate(SAMPLE, machine, "locality")
    assert found.start.sum() > free.start.sum()


def test_captured_plans_are_told_how_long_files_stay(tmp_path):
    simulate(SAMPLE, "cluster:8x20:kept=next", "locality", capture=tmp_path)
    problems = [load_snapshot(file) for file in sorted(tmp_path.glob("*.json"))]
    assert {(one.name, one.partial, one.kept) for one in problems} == {
        ("data-placement", True, "next")
    }
    assert any(problem.started.any() for problem in problems)


@pytest.mark.long
@pytest.mark.parametrize(
    ("rule", "settings", "stretch", "transfer", "reuse"),
    [("fcfs", {}, 2.293481, 336704, 788), ("lem", {"stop": "short"}, 2.322831, 259456, 993)],
)
def test_the_real_day_is_as_its_authors_computed_it(
    rule, settings, stretch, transfer, reuse, shared
):
    # two of the seven that `optsched study gonthier-2024` compares
    summary = run(shared(DAY), rule, "cluster:486x20", **settings).summary
    assert summary["mean_stretch"] == pytest.approx(stretch, abs=3e-6)  # they sum in 32 bits
    assert (summary["transfer_time"], summary["data_reuse"]) == (transfer, reuse)


RULES = ("fcfs", "eft", "lea", "leo", "lem")

jobs = st.tuples(
    st.sampled_from([0, 0, 1, 5, 20]),  # seconds since the job before
    st.integers(1, 30) | st.integers(1, 200),  # run time
    st.integers(-3, 40) | st.integers(0, 400),  # that the job requests beyond it
    st.integers(1, 3),  # cores
    st.integers(-1, 3),  # file
)
workloads = st.lists(jobs, min_size=1, max_size=40)
chosen = st.fixed_dictionaries(
    {
        "backfill": st.sampled_from(["none", "holes", "holes", "conservative"]),
        "weight": st.sampled_from([0, 2, 500]),
        "threshold": st.sampled_from([50, 100]),
        "replan": st.sampled_from(["authors", "events"]),
        "stop": st.sampled_from(["full", "short"]),
        "loads": st.sampled_from(["now", "start"]),
        "evicted": st.sampled_from(["unused", "memory"]),
        "opportune": st.sampled_from(["scan", "node"]),
        "throttle": st.sampled_from([0.0, 0.0, 10.0]),
    }
)
runs = st.fixed_dictionaries(
    {
        "solver": st.sampled_from(RULES),
        "event_order": st.sampled_from(["batched", "batched", "one-by-one"]),
        "charge_decisions": st.sampled_from([False, False, True]),
    }
)


def assert_same(trace, machine, settings=None, **given):
    """Compare a run with one that is followed, and with the textbook.

    The textbook poses each problem, so that the kernel's answers are compared with the solver's.
    """
    settings = settings or {}
    run = simulate(trace, machine, Locality(**settings), **given)
    followed = simulate(trace, machine, Locality(**settings), journal=True, check=True, **given)
    textbook = simulate(trace, machine, TextbookLocality(**settings), **given)
    for other in (followed, textbook):
        assert run.jobs.to_csv() == other.jobs.to_csv()
        pd.testing.assert_frame_equal(run.decisions, other.decisions)
        assert run.summary == other.summary
        assert run.schedule.decisions == other.schedule.decisions


def trace_of(workload, unit=1, **annotations):
    gaps, runtime, more, cores, files = map(np.array, zip(*workload))
    times = np.cumsum(gaps) * unit, 1 + runtime * unit, 1 + np.maximum(runtime + more, 0) * unit
    asked = {"file": files, "file_size": np.maximum(400 * (1 + files), 0)} | annotations
    return Trace(np.arange(len(gaps)), *times, cores, annotations=asked, limits_hold=True)


@limits(max_examples=75, deadline=None)
@given(
    workloads | st.lists(jobs, min_size=20, max_size=60),
    chosen,
    runs,
    st.sampled_from(["1x4", "2x3", "3x3:kept=next", "2x4:kept=next", "5x3"]),
    st.sampled_from([1, 0.7]),
)
@example(  # at 28 * 0.7 s, a load that begins would take longer than it does
    [*[(0, 1, 0, 1, 0)] * 8, (20, 1, 0, 1, 0), (20, 17, 40, 1, 0), (0, 1, 0, 1, 0)],
    {"backfill": "none", "weight": 0, "threshold": 50, "replan": "authors", "stop": "full"}
    | {"loads": "now", "evicted": "unused", "opportune": "scan", "throttle": 0.0},
    {"solver": "fcfs", "event_order": "one-by-one", "charge_decisions": False},
    "1x4",
    0.7,
)
def test_the_kernel_decides_as_the_textbook(workload, settings, given, machine, unit):
    assert_same(trace_of(workload, unit), f"cluster:{machine}", settings, **given)


@limits(max_examples=30, deadline=None)
@given(workloads.filter(lambda jobs: len(jobs) > 5), st.sampled_from(RULES), st.data())
def test_a_run_begins_with_the_history_of_the_cluster(workload, rule, data):
    count = len(workload)
    ran = data.draw(st.integers(0, 4))
    gaps = [0] * ran + [7] + [gap for gap, *_ in workload[ran + 1 :]]
    workload = [(gap, *job[1:]) for gap, job in zip(gaps, workload)]
    category = np.array([-2] * ran + [-1] + [0] * (count - ran - 1))
    numbers = st.lists(st.integers(0, 5), min_size=count, max_size=count)
    before = (np.where(category == -2, data.draw(numbers), -1) for _ in range(2))
    history = dict(zip(("history_start", "history_node"), before))
    assert_same(trace_of(workload, category=category, **history), "cluster:2x3", solver=rule)


@pytest.mark.long
def test_the_kernel_runs_a_part_of_the_real_day_as_the_textbook(shared):
    trace = read_trace(shared(DAY)).jobs(1, 4500)
    assert_same(trace, "cluster:486x20", {"stop": "short"}, solver="lem")


class LikeLea(LocalityAndEvictionAware):
    """Decides as LEA does; what it does beside that no kernel knows."""


@pytest.mark.parametrize(
    ("other", "is_called"),
    [
        ({}, False),
        ({"event_order": "one-by-one"}, False),
        ({"solver": LocalityAndEvictionAware(weight=3)}, False),
        ({"journal": True}, False),
        ({"charge_decisions": True}, True),
        ({"solver": LikeLea()}, True),
        ({"settings": {"backfill": "conservative"}}, True),
    ],
)
def test_a_kernel_answers_for_the_published_rules_alone(other, is_called):
    run = simulate(read_trace(SAMPLE).jobs(1, 50), "cluster:8x20", "locality", **other)
    assert (run.timing["solver_seconds"] > 0) is is_called


@pytest.mark.parametrize("options", [{"weight": 3}, {"backfill": "holes"}])
def test_a_rule_with_options_of_its_own_is_the_same_in_the_kernel(options):
    trace = read_trace(SAMPLE).jobs(1, 100)
    assert_same(trace, "cluster:8x20", solver=LocalityAndEvictionAware(**options))


def test_a_run_stops_at_an_infeasible_plan(monkeypatch):
    class Wrong:
        def bound(self, *given, numbers):
            return lambda arrays: -1

    monkeypatch.setattr(_locality, "plan_by_rule", Wrong())
    with pytest.raises(RuntimeError, match="infeasible plan"):
        simulate(SAMPLE, "cluster:8x20", "locality")
