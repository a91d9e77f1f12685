"""The benchmarks run, and keep what they measured; what they measure is for an idle machine."""

from __future__ import annotations

import csv
import importlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from slurm.real_slurm import CORES, NODES, why_not

from optsched import registry
from optsched.simulator.policy import by_kernel

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def run(script, *arguments):
    command = [sys.executable, str(BENCHMARKS / script), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def rows_of(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.long
def test_the_engine_is_measured_by_policy(tmp_path):
    policies = "easy,easy (compiled)"
    told = run(
        "engine.py", "--repeats", 2, "--policies", policies, "--engine-jobs", 500, "-o", tmp_path
    )
    assert told == (tmp_path / "engine.txt").read_text()
    rows = rows_of(tmp_path / "engine.csv")
    assert [row["policy"] for row in rows] == ["easy", "easy (compiled)"]
    assert [float(row["jobs"]) for row in rows] == [500, 3000]
    assert all(float(row["jobs_per_s"]) > 0 for row in rows)
    cells = [row["cell"] for row in rows_of(tmp_path / "engine.times.csv")]
    assert {cells.count(cell) for cell in cells} == {2}


def test_policies_of_the_engines_benchmark_can_decide_as_it_says(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    engine = importlib.import_module("engine")
    for name in engine.POLICIES:
        is_by_kernel = engine.decided(name).decide is by_kernel
        assert name.endswith(engine.COMPILED) or not is_by_kernel


@pytest.mark.long
def test_commands_are_measured_as_processes(tmp_path):
    told = run("commands.py", "--repeats", 1, "--jobs", 2000, "--only", "generated", "-o", tmp_path)
    assert told == (tmp_path / "commands.txt").read_text()
    rows = rows_of(tmp_path / "commands.csv")
    assert [row["command"] for row in rows] == ["simulate generated jobs, EASY"]
    assert all(float(row["cpu_s"]) > 0 and float(row["peak_MB"]) > 10 for row in rows)


@pytest.mark.long
def test_solvers_are_measured_by_size(tmp_path):
    told = run(
        "window_mkp.py", "windows", "--snapshots", 2, "--largest", 5,
        "--solvers", "branch-and-bound,greedy", "-o", tmp_path,
    )  # fmt: skip
    assert told == (tmp_path / "windows.txt").read_text()
    rows = rows_of(tmp_path / "windows.csv")
    assert {row["solver"] for row in rows} == {"branch-and-bound", "greedy"}
    assert all(row["status"] == "optimal" for row in rows if row["solver"] != "greedy")


@pytest.mark.long
def test_instances_are_checked_against_known_bounds(tmp_path, shared):
    folder = shared("instances/mkp")
    run("window_mkp.py", "instances", folder, "--sets", "SMALL", "--every", 60, "-o", tmp_path)
    rows = rows_of(tmp_path / "instances.csv")
    assert len(rows) == 3
    assert all(int(row["objective"]) <= float(row["known_upper"]) for row in rows)


MTM = Path(__file__).parents[1] / ".venv-mtm" / "bin" / "python"


@pytest.mark.long
@pytest.mark.skipif(not MTM.exists(), reason="make .venv-mtm/ready installs mknapsack")
def test_the_optimum_of_martello_and_toth_stands_beside_ours(tmp_path, shared):
    run(
        "window_mkp.py", "instances", shared("instances/mkp"), "--sets", "SMALL", "--every", 10,
        "--mtm", MTM, "-o", tmp_path,
    )  # fmt: skip
    rows = [row for row in rows_of(tmp_path / "instances.csv") if row["mtm_value"]]
    assert rows
    assert all(row["mtm_value"] == row["known_lower"] for row in rows)


@pytest.mark.long
def test_gang_scheduling_is_measured_by_strategy(tmp_path):
    told = run("gang.py", "--jobs", 200, "--workloads", 2, "-o", tmp_path)
    assert told == (tmp_path / "gang.txt").read_text()
    rows = rows_of(tmp_path / "gang.csv")
    gang = {f"gang, MPL {mpl}, {by}" for mpl in (2, 3, 5) for by in ("first-fit", "row-search")}
    assert {row["strategy"] for row in rows} == {"fcfs", "conservative"} | gang
    assert all(int(row["runs"]) == 2 and float(row["jobs_per_s"]) > 0 for row in rows)


@pytest.mark.long
def test_slurm_commands_are_measured_on_a_larger_cluster(tmp_path, shared):
    told = run(
        "slurm_size.py", "--capture", shared("slurm/fixtures/24.11.5"), "--nodes", 128,
        "--pending", 20, "--repeats", 1, "-o", tmp_path,
    )  # fmt: skip
    assert told == (tmp_path / "slurm-size.txt").read_text()
    assert "128 nodes, 68 running and 20 pending jobs" in told
    rows = rows_of(tmp_path / "slurm-size.csv")
    assert {row["command"].partition(" ")[0] for row in rows} == {
        *("plan", "explain", "forecast", "report")
    }
    assert all(float(row["seconds"]) > 0 for row in rows)


@pytest.mark.long
def test_detection_is_measured_by_occupancy(tmp_path):
    told = run(
        "detection.py", "--side", 6, "--busy", "0.3,0.9", "--tori", 2, "--repeats", 1,
        "-o", tmp_path,
    )  # fmt: skip
    assert told == (tmp_path / "detection.txt").read_text()
    rows = rows_of(tmp_path / "detection.csv")
    assert [float(row["busy"]) for row in rows] == [0.3, 0.9]
    assert all(0 < float(row["layered_share"]) <= 1 for row in rows)
    assert all(float(row["bins"]) <= float(row["layered_bins"]) for row in rows)


@pytest.mark.long
def test_decisions_on_a_torus_are_compared_by_model(tmp_path):
    told = run(
        "torus_decisions.py", "--jobs", 300, "--load", 2, "--snapshots", 2, "--seconds", 1,
        "-o", tmp_path,
    )  # fmt: skip
    assert told == (tmp_path / "torus-decisions.txt").read_text()
    rows = rows_of(tmp_path / "torus-decisions.csv")
    assert {row["model"] for row in rows} <= {"partition-mkp", "box-placement", "migration"}
    assert all(int(row["found"]) <= int(row["solvable"]) <= int(row["snapshots"]) for row in rows)


CLOS = [26, 35, 22, 90, 93, 84, 73, 82, 70, 42, 49, 50, 89, 87, 88, 134, 126, 138]
"""Fewest switches of the cases on the Lingjun cluster, as another program proved them."""


@pytest.mark.long
def test_whole_nodes_are_proven_on_a_real_clos(tmp_path, shared):
    told = run(
        "switch_groups.py", "--traces", shared("traces"), "--families", "clos", "--seconds", 60,
        "-o", tmp_path,
    )  # fmt: skip
    assert told == (tmp_path / "switch-groups.txt").read_text()
    rows = rows_of(tmp_path / "switch-groups.csv")
    assert [int(row["own_switches"]) for row in rows] == CLOS
    assert {row["status"] for row in rows} == {"optimal"}
    assert all(row["rule_weight"] == row["own_weight"] == row["jobs"] for row in rows)
    assert all(int(row["rule_switches"]) >= int(row["own_switches"]) for row in rows)


@pytest.mark.long
def test_pods_are_packed_on_a_real_cluster(tmp_path, shared):
    told = run(
        "node_placement.py", "--traces", shared("traces"), "--families", "busy",
        "--nodes", "40,150", "--seeds", 1, "--seconds", 20, "-o", tmp_path,
    )  # fmt: skip
    assert told == (tmp_path / "node-placement.txt").read_text()
    rows = rows_of(tmp_path / "node-placement.csv")
    assert len(rows) == 2
    assert rows[1]["value"] == "254.28"
    assert float(rows[1]["gap"]) < 0.005
    assert all(float(row["largest"]) < float(row["value"]) <= float(row["bound"]) for row in rows)


@pytest.mark.long
def test_jobs_that_share_nodes_span_few_leaves_of_a_real_clos(tmp_path, shared):
    told = run(
        "shared_leaves.py", "--traces", shared("traces"), "--families", "clos", "--seeds", 1,
        "--seconds", 1, "-o", tmp_path,
    )  # fmt: skip
    assert told == (tmp_path / "shared-leaves.txt").read_text()
    rows = rows_of(tmp_path / "shared-leaves.csv")
    assert len(rows) == 3
    assert all(int(row["rule weight"]) <= int(row["own weight"]) for row in rows)
    assert all(0 < int(row["own least"]) <= int(row["own switches"]) for row in rows)


@pytest.mark.long
def test_joint_decisions_are_compared_with_two_in_turn(tmp_path):
    told = run(
        "reconfiguration.py", "--sides", 4, "--busy", 0.7, "--states", 2, "--joint", 1,
        "--seconds", 60, "-o", tmp_path,
    )  # fmt: skip
    tables = [tmp_path / f"reconfiguration{part}.txt" for part in ("", "-joint")]
    assert told == "".join(table.read_text() for table in tables)
    rows = rows_of(tmp_path / "reconfiguration.csv")
    assert {row["solver"] for row in rows} == {"in turn", "in turn, exact", "migration-based"}
    assert all(int(row["common"]) <= int(row["found"]) <= 2 for row in rows)
    for row in rows_of(tmp_path / "reconfiguration-joint.csv"):
        assert int(row["bound"]) <= int(row["joint"]) <= int(row["migration-based"])


@pytest.mark.long
def test_rules_of_data_placement_are_compared_with_the_optimum(tmp_path):
    told = run(
        "data_placement_decisions.py", "--most", 6, "--queues", 2, "--seconds", 1, "-o", tmp_path
    )
    assert told == (tmp_path / "data-placement-decisions.txt").read_text()
    rows = rows_of(tmp_path / "data-placement-decisions.csv")
    assert {row["load_weight"] for row in rows} == {"1", "500"}
    assert all(int(row["optimal"]) <= int(row["best"]) <= int(row["queues"]) == 4 for row in rows)
    assert all(float(row["excess"]) >= 0 and float(row["worst"]) >= 1 for row in rows)


@pytest.mark.long
def test_planning_with_files_is_measured_by_rule(tmp_path):
    told = run(
        "locality.py", "--traces", tmp_path, "--jobs", 300, "--week-rules", "fcfs,lea",
        "--week-backfills", "none,conservative", "-o", tmp_path,
    )  # fmt: skip
    assert told == (tmp_path / "locality.txt").read_text()
    rows = rows_of(tmp_path / "locality.csv")
    assert [row["rule"] for row in rows] == ["fcfs", "lea"] * 2
    assert all(int(row["jobs"]) == 300 and int(row["plans"]) > 0 for row in rows)


@pytest.mark.long
def test_a_site_is_measured_by_policy(tmp_path):
    policies = "easy,easy (compiled)"
    told = run("site.py", "--jobs", 300, "--loads", "0.5,1", "--policies", policies, "-o", tmp_path)
    assert told == (tmp_path / "site.txt").read_text()
    rows = rows_of(tmp_path / "site.csv")
    assert [row["policy"] for row in rows] == policies.split(",") * 4
    assert len({row["workload"] for row in rows}) == 4
    assert rows[0]["mean_wait"] == rows[1]["mean_wait"]


@pytest.mark.long
def test_rules_of_shared_nodes_are_compared_with_the_optimum(tmp_path):
    told = run("sharing_decisions.py", "--jobs", 100, "--problems", 2, "-o", tmp_path)
    assert told == (tmp_path / "sharing-decisions.txt").read_text()
    rows = rows_of(tmp_path / "sharing-decisions.csv")
    goals = {"start", "penalty", "response", "everybody"}
    assert {row["goal"] for row in rows} == goals
    assert all(int(row["optimal"]) <= int(row["problems"]) for row in rows)
    assert all(row["excess"] == "" or float(row["excess"]) >= 0 for row in rows)
    exact = [row for row in rows if row["solver"] in ("bottleneck-search", "cp-sat", "highs")]
    assert all(row["proven"] == row["problems"] == row["optimal"] for row in exact)


@pytest.mark.long
def test_the_growth_of_cost_is_measured_and_drawn(tmp_path):
    told = run("growth.py", "--jobs", 1000, "--queue", 100, "--limit", 0.01, "-o", tmp_path)
    assert told == (tmp_path / "growth.txt").read_text()
    rows = rows_of(tmp_path / "growth.csv")
    names = [row["policy"] for row in rows if row["axis"] == "by jobs"]
    assert {name.removesuffix(" (compiled)") for name in names} == {*registry.policies}
    assert {"easy", "easy (compiled)", "gang (compiled)", "torus"} <= {*names}
    assert "gang" not in names
    assert [row["policy"] for row in rows if row["axis"] == "by queue"] == names
    waiting = {row["policy"]: row["waiting"] for row in rows}
    assert waiting["easy"] == waiting["easy (compiled)"]
    assert all(float(row["jobs_per_s"]) > 0 for row in rows)
    assert (tmp_path / "growth.svg").read_text().count("</svg>") == 1


@pytest.fixture
def real_slurm(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("real_slurm")


def test_waits_of_a_simulation_are_compared_with_real_ones(real_slurm):
    real, other = np.array([0.0, 10, 4, 0, 7]), np.array([0.0, 11, 9, 31, np.nan])
    assert real_slurm.compared(real, other) == {
        "jobs": 5,
        "never": 1,
        "within_1s": 0.4,
        "within_5s": 0.6,
        "within_30s": 0.6,
        "mean_s": (0 + 1 + 5 + 31) / 4,
        "median_s": 3,
        "real_wait_s": 4.2,
        "wait_s": (0 + 11 + 9 + 31) / 4,
    }


def test_the_time_of_completing_is_in_the_log_of_the_controller(real_slurm):
    log = """\
[2026-11-25T12:00:00.250] _job_complete: JobId=7 WEXITSTATUS 0
[2026-11-25T12:00:00.250] _job_complete: JobId=7 done
[2026-11-25T12:00:00.500] _job_complete: JobId=70 done
[2026-11-25T12:00:01.000] TRACE_JOBS: cleanup_completing: JobId=7
"""
    assert real_slurm.completing(log).tolist() == [0.75]


def test_random_jobs_reach_the_load_and_ask_alike_in_both_forms(real_slurm):
    jobs = real_slurm.drawn(seed=3, span=60, load=0.8)
    assert jobs == real_slurm.drawn(seed=3, span=60, load=0.8)
    work = [job.seconds * job.columns["processors"] for job in jobs]
    assert 0 <= sum(work) - 0.8 * 60 * NODES * CORES < 40 * 16 * CORES
    assert 0 <= jobs[0].at <= jobs[-1].at <= 60
    for job in jobs:
        assert f"-t{job.columns['requested_time'] // 60}" in job.options
        assert ("--exclusive" in job.options) == ("exclusive" in job.columns)
        for option, column in (("-N", "nodes"), ("-n", "tasks"), ("-C", "features")):
            asked = [words for words in job.options if words.startswith(option)]
            assert asked in ([], [f"{option}{job.columns.get(column)}"])


@pytest.mark.long
@pytest.mark.skipif(bool(why_not()), reason=f"no real Slurm: {why_not()}")
def test_starts_of_a_real_slurm_are_compared_with_simulated_ones(tmp_path):
    told = run(
        "real_slurm.py", "--seed", 71, "--span", 2, "--load", 0.2, "--cycles", "shortest",
        "--runs", 1, "-o", tmp_path,
    )  # fmt: skip
    assert told == (tmp_path / "real-slurm.txt").read_text()
    assert "jobs with other requests: 0\n" in told
    rows = rows_of(tmp_path / "real-slurm.csv")
    assert [row["policy"] for row in rows] == ["as-logged", "fcfs", "easy", "conservative"]
    assert {(row["jobs"], row["never"]) for row in rows} == {("3", "0")}
    assert rows[0]["within_1s"] == "1.0"


def write_times(folder, yardstick_s, cells):
    folder.mkdir()
    lines = [f"{cell},{seconds * yardstick_s},{yardstick_s}" for cell, seconds in cells]
    (folder / "gang.times.csv").write_text("\n".join(["cell,seconds,yardstick_s", *lines]) + "\n")


def test_what_got_slower_or_faster_than_the_noise_is_named(tmp_path):
    before = [("a", 1.0), ("a", 1.1), ("b", 2), ("c", 1.0), ("c", 2.0), ("d", 5)]
    after = [("a", 1.3), ("a", 1.4), ("b", 1), ("c", 1.9), ("c", 2.1), ("e", 5)]
    write_times(tmp_path / "before", 1, before)
    write_times(tmp_path / "after", 2, after)  # a machine of half the speed
    assert run("compare.py", tmp_path / "before", tmp_path / "after").splitlines() == [
        "after/before  noise  cell",
        "slower: 1",
        "        1.29   1.09  gang: a",
        "faster: 1",
        "        0.50   1.00  gang: b",
        "within the noise: 1",
        "only before: gang: d",
        "only after: gang: e",
    ]


def test_the_yardsticks_of_a_run_are_part_of_its_noise(tmp_path):
    for name, seconds in (("before", 1), ("after", 1.3)):
        (tmp_path / name).mkdir()
        rows = [f"{cell},{seconds},{1 + cell / 10}" for cell in range(8)]
        text = "\n".join(["cell,seconds,yardstick_s", *rows]) + "\n"
        (tmp_path / name / "gang.times.csv").write_text(text)
    lines = run("compare.py", tmp_path / "before", tmp_path / "after").splitlines()
    assert lines[1:] == ["slower: 0", "faster: 0", "within the noise: 8"]


def test_a_folder_without_times_is_refused(tmp_path):
    command = [sys.executable, str(BENCHMARKS / "compare.py"), str(tmp_path), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == f"{tmp_path}: no file *.times.csv\n"
