"""Short forms of arguments: a number of nodes, of jobs, of seconds."""

from __future__ import annotations

import pytest

from optsched import Budget, compare, simulate, solve
from optsched.errors import InputError
from optsched.models import WindowMKP
from optsched.simulator.scenario import Scenario

SAMPLE = "sample-256"
WINDOW = WindowMKP([3, 2], [4])


@pytest.mark.parametrize(
    ("jobs", "span"),
    [
        *((100, (1, 100)), ("100", (1, 100)), (":100", (1, 100)), ("2901:", (2901, None))),
        *(((2901, None), (2901, None)), ("5:9", (5, 9)), ((5, 9), (5, 9)), (":", (1, None))),
    ],
)
def test_jobs_may_have_open_ends(jobs, span):
    assert Scenario(SAMPLE, jobs=jobs).span == span


@pytest.mark.parametrize("jobs", ["", "x", "1:x", "1:2:3", 1.5, (1, 2, 3), ("a", 2)])
def test_other_jobs_are_refused(jobs):
    with pytest.raises(InputError, match=r"jobs: .*expected"):
        Scenario(SAMPLE, jobs=jobs)


def test_a_run_records_the_jobs_and_the_machine_in_full():
    run = simulate(SAMPLE, machine=256, jobs="2901:")
    assert (run.config["machine"], run.config["jobs"]) == ("nodes:256", [2901, 3000])
    assert "--jobs 2901:3000" in run.config["repeat"]
    assert len(run.trace) == 100


def test_a_number_is_a_budget_of_seconds():
    assert Scenario(SAMPLE, budget=5).budget == Budget(seconds=5)
    assert solve(WINDOW, "depth-first", budget=5).objective == 3
    [solver] = compare([WINDOW], ["greedy"], budget=5).config["solvers"]
    assert solver["budget"]["seconds"] == 5
    for wrong in ("5", True, -1):
        with pytest.raises(InputError):
            solve(WINDOW, budget=wrong)


@pytest.mark.parametrize(("option", "limit"), [("time_limit", "seconds"), ("work_limit", "work")])
def test_limits_of_the_command_line_take_the_place_of_a_budget(option, limit):
    given, budget = {option: 5}, Budget(**{limit: 5})
    assert solve(WINDOW, "depth-first", **given).objective == 3
    [solver] = compare([WINDOW], ["greedy"], **given).config["solvers"]
    assert Budget(**solver["budget"]) == budget
    run = simulate(SAMPLE, policy="window", jobs=50, **given)
    same = simulate(SAMPLE, policy="window", jobs=50, budget=budget)
    assert run.config["repeat"] == same.config["repeat"]
    assert f"--{option.replace('_', '-')} 5" in run.config["repeat"]


@pytest.mark.parametrize(
    "wrong",
    [{"time_limit": -1}, {"time_limit": "5"}, {"work_limit": 0}, {"time_limit": 5, "budget": 5}],
)
@pytest.mark.parametrize(
    ("function", "given"), [(solve, WINDOW), (compare, [WINDOW]), (simulate, SAMPLE)]
)
def test_wrong_limits_are_refused(function, given, wrong):
    with pytest.raises(InputError, match="expected"):
        function(given, **wrong)
