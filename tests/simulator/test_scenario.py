"""A run is stated once, in short or in full, and all that states one is a view of its fields."""

import inspect
import shlex
from dataclasses import fields

import numpy as np
import pytest

from optsched import compare, generate_workload, simulate, solve, sweep
from optsched.cli.simulate_command import command
from optsched.content import bundled
from optsched.documentation import parameters
from optsched.extend import Budget, InputError, Policy, Start
from optsched.models import WindowMKP
from optsched.simulator.scenario import OPTIONS, Scenario, workload_sha256
from optsched.simulator.simulate import LIMITS
from optsched.sweeps.sweep_file import KEYS, read_sweep
from optsched.sweeps.sweeping import Sweep

SAMPLE = "sample-256"
MODEL = "lublin-feitelson"
WINDOW = WindowMKP([3, 2], [4])
NAMES = [field.name for field in fields(Scenario)]


def test_simulate_takes_the_fields_and_says_what_they_are():
    signature = inspect.signature(simulate)
    own = [value for name, value in signature.parameters.items() if name not in LIMITS]
    assert signature.replace(parameters=own, return_annotation=None) == inspect.signature(Scenario)
    assert list(signature.parameters) == [*NAMES, *LIMITS]
    assert [*parameters(simulate)] == [*parameters(Scenario)] == NAMES


def test_the_command_line_takes_all_options_and_a_sweep_file_those_that_change_a_run():
    taken = inspect.signature(command).parameters
    own = {"output", "demands_sha256", "file_sha256", "csv", "plots", "json"}
    own |= {"rule"}  # a setting of the policy
    assert set(taken) - own == set(OPTIONS)
    assert set(OPTIONS) - set(KEYS) == {"settings", "capture", "capture_every", "check", "journal"}


def test_a_scenario_is_checked_when_it_is_stated(make_trace):
    trace = make_trace((0, 10, 10, 1))
    wrong = {"large_from": 0, "execution": 3, "check": "no", "journal": 1, "compiled_from": "x"}
    for name, value in wrong.items():
        with pytest.raises(InputError, match=f"{name.replace('_', '.')}: {value!r}; expected"):
            Scenario(trace, **{name: value})


def test_a_policy_sees_whose_a_job_is(make_trace):
    class Watching(Policy):
        def decide(self, system):
            for job in list(system.queue):
                of = system.user_of, system.group_of, system.queue_of, system.partition_of
                seen.append(tuple(one(job) for one in of))
                yield Start(job)

    seen = []
    trace = make_trace((0, 10, 10, 1), (5, 10, 10, 1))
    simulate(trace, "nodes:4", Watching())
    known = {name: [k, -1] for k, name in enumerate(("user", "group", "queue"))}
    simulate(trace.changed(**known), "nodes:4", Watching())
    assert seen == [(None,) * 4, (None,) * 4, (0, 1, 2, None), (None,) * 4]


def test_annotations_are_part_of_what_is_simulated(make_trace):
    plain = make_trace((0, 10, 10, 1), (5, 10, 10, 2))
    one, other = (plain.annotated(file=np.array(files)) for files in ([1, 1], [1, 2]))
    renamed = plain.annotated(size=np.array([1, 1]))
    both = one.annotated(size=np.array([3, 4]))
    again = plain.annotated(size=np.array([3, 4]), file=np.array([1, 1]))
    assert len({workload_sha256(trace) for trace in (plain, one, other, renamed, both)}) == 5
    assert workload_sha256(both) == workload_sha256(again)


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


@pytest.mark.parametrize(
    ("option", "limit"), [("budget", "seconds"), ("time_limit", "seconds"), ("work_limit", "work")]
)
def test_a_number_of_seconds_and_limits_of_the_command_line_are_budgets(option, limit):
    given, budget = {option: 5}, Budget(**{limit: 5})
    assert solve(WINDOW, "depth-first", **given).objective == 3
    [solver] = compare([WINDOW], ["greedy"], **given).config["solvers"]
    assert Budget(**solver["budget"]) == budget
    run = simulate(SAMPLE, policy="window", jobs=50, **given)
    same = simulate(SAMPLE, policy="window", jobs=50, budget=budget)
    assert run.config["repeat"] == same.config["repeat"]
    assert f"--{'work' if limit == 'work' else 'time'}-limit 5" in run.config["repeat"]


@pytest.mark.parametrize(
    "wrong",
    [
        *({"time_limit": -1}, {"time_limit": "5"}, {"work_limit": 0}),
        *({"time_limit": 5, "budget": 5}, {"budget": "5"}, {"budget": True}, {"budget": -1}),
    ],
)
@pytest.mark.parametrize(
    ("function", "given"), [(solve, WINDOW), (compare, [WINDOW]), (simulate, SAMPLE)]
)
def test_wrong_limits_are_refused(function, given, wrong):
    with pytest.raises(InputError, match="expected"):
        function(given, **wrong)


def test_a_workload_is_the_trace_that_is_generated_from_it():
    run = simulate(workload=MODEL, workload_seed=3, jobs="11:60", policy="fcfs")
    trace = generate_workload(MODEL, jobs=60, seed=3)
    same = simulate(trace, jobs="11:60", policy="fcfs")
    assert run.jobs.equals(same.jobs)
    stated = {"workload": MODEL, "workload_seed": 3, "trace": MODEL}
    assert {name: run.config[name] for name in stated} == stated
    assert same.config["repeat"] is None
    words = shlex.split(run.config["repeat"])
    assert words[:3] == ["optsched", "simulate", "--machine"]
    assert words[words.index("--workload") + 1] == MODEL
    assert simulate(workload=MODEL, jobs=9).config["workload_seed"] == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"workload": MODEL, "jobs": "0"}, "jobs: '?0'?; expected"),
        ({"workload": 3, "jobs": "9"}, "workload: 3; expected"),
        ({"workload": "lublin", "jobs": "9"}, "unknown workload 'lublin'; did you mean lublin"),
        ({"trace": SAMPLE, "workload_seed": 1}, "workload.seed: no workload to seed"),
        ({}, "trace: missing; expected a trace"),
        ({"workload": MODEL}, "jobs: missing; expected the number of jobs"),
        ({"workload": MODEL, "jobs": "9", "workload_seed": -1}, "workload.seed: -1; expected a"),
        ({"workload": MODEL, "trace": SAMPLE}, "workload: beside a trace; expected one"),
    ],
)
def test_a_workload_that_cannot_be_is_refused_as_it_is_in_a_sweep(options, said):
    for function in (lambda: simulate(**options), lambda: read_sweep(options)):
        with pytest.raises(InputError, match=said):
            function()


def test_a_sweep_of_workloads(tmp_path):
    spec = bundled("workloads") / f"{MODEL}.toml"
    (tmp_path / "own.toml").write_bytes(spec.read_bytes())
    table = {"workload": "own.toml", "workload_seed": [1, 2], "jobs": "40", "load": [1.0, 1.5]}
    own, bundled_one = read_sweep(table, tmp_path), read_sweep(table | {"workload": MODEL})
    assert [run.columns["workload_seed"] for run in own.runs] == [1, 1, 2, 2]
    assert [run.name for run in own.runs] == [run.name for run in bundled_one.runs]
    (tmp_path / "sweep.toml").write_text(
        'workload = "own.toml"\nworkload_seed = [1, 2]\njobs = "40"\nload = [1.0, 1.5]\n'
    )
    frame = sweep(tmp_path / "sweep.toml", tmp_path / "done", workers=1)
    assert frame["error"].isna().all()
    own = simulate(workload=MODEL, workload_seed=2, jobs=40, load=1.5)
    assert frame["mean_wait"].iloc[3] == own.summary["mean_wait"]
    assert not Sweep(read_sweep(tmp_path / "sweep.toml"), tmp_path / "done").pending
