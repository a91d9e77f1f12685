"""Planning on a cluster whose nodes keep files."""

from __future__ import annotations

from pathlib import Path

import pytest

from optsched import load_snapshot, read_trace, simulate
from optsched.content import bundled
from optsched.extend import ExecutionModel, InputError
from optsched.policies.locality import Locality
from optsched.simulator.problem_solver import ProblemSolver

SAMPLE = bundled("traces") / "samples" / "sample-8x20.rackham"
DAY = Path(__file__).parents[3] / "shared/traces/rackham/2022-09-10_V10000_anonymous.txt.gz"


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


def test_nothing_starts_before_an_earlier_job_unless_it_is_backfilled(jobs_with_files):
    # job 1 holds one core, job 2 needs both, jobs 3 and 4 fit beside job 1; only 3 is short enough
    jobs = (0, 100, 100, 1, -1), (1, 50, 50, 2, -1), (2, 98, 98, 1, -1), (3, 99, 99, 1, -1)
    for backfill, start in (("none", 150), ("holes", 2), ("conservative", 2)):
        found = run(jobs_with_files(*jobs), backfill=backfill)
        assert found.start.tolist() == [0, 100, start, 150]


def test_what_ended_early_while_nobody_waited_is_planned_for_at_the_next_end(jobs_with_files):
    # as in the authors' program: job 3 is added to a plan that still has job 1 until 100
    trace = jobs_with_files((0, 10, 100, 1, -1), (0, 60, 200, 1, -1), (20, 10, 10, 1, -1))
    assert run(trace).start.tolist() == [0, 0, 60]
    assert run(trace, replan="events").start.tolist() == [0, 0, 20]


@pytest.mark.parametrize("name", ["weight", "threshold", "throttle"])
def test_settings_below_0_are_refused(name):
    with pytest.raises(InputError, match=f"{name} -1; expected .* from 0"):
        Locality(**{name: -1})


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
@pytest.mark.skipif(not DAY.exists(), reason="needs ../shared/traces/rackham")
@pytest.mark.parametrize(
    ("rule", "settings", "stretch", "transfer", "reuse"),
    [("fcfs", {}, 2.293481, 336704, 788), ("lem", {"stop": "short"}, 2.322831, 259456, 993)],
)
def test_the_real_day_is_as_its_authors_computed_it(rule, settings, stretch, transfer, reuse):
    # two of the seven that `optsched study gonthier-2024` compares
    run = simulate(read_trace(DAY), "cluster:486x20", "locality", solver=rule, settings=settings)
    summary = run.summary
    assert summary["mean_stretch"] == pytest.approx(stretch, abs=3e-6)  # they sum in 32 bits
    assert (summary["transfer_time"], summary["data_reuse"]) == (transfer, reuse)
