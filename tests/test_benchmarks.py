"""The benchmarks run, and keep what they measured; what they measure is for an idle machine."""

import csv
import importlib
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from slurm.real_slurm import CORES, NODES, why_not

from optsched import registry
from optsched.simulator.policy import by_kernel

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
CAPTURE = "shared/slurm/fixtures/24.11.5"


def run(script, *arguments, code=0):
    command = [sys.executable, str(BENCHMARKS / script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done.stderr if code else done.stdout


def rows_of(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture
def measure(tmp_path, shared):
    """Return a function: run a benchmark that prints what it keeps, and return its rows."""

    def measure(words):
        words = re.sub(r"shared/(\S+)", lambda found: str(shared(found[1])), words)
        script, *options = shlex.split(words)
        told = run(f"{script}.py", *options, "-o", tmp_path)
        [table] = tmp_path.glob("*.txt")
        assert told == table.read_text()
        return rows_of(table.with_suffix(".csv"))

    return measure


def test_policies_of_the_engines_benchmark_can_decide_as_it_says(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    engine = importlib.import_module("engine")
    for name in engine.POLICIES:
        is_by_kernel = engine.decided(name).decide is by_kernel
        assert name.endswith(engine.COMPILED) or not is_by_kernel


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "column", "count"),
    [
        ("engine --repeats 2 --engine-jobs 500 --policies 'easy,easy (compiled)'", "policy", 2),
        ("commands --repeats 1 --jobs 2000 --only generated", "command", 1),
        ("gang --jobs 200 --workloads 2", "strategy", 8),
        ("detection --side 6 --busy 0.3,0.9 --tori 2 --repeats 1", "busy", 2),
        ("torus_decisions --jobs 300 --load 2 --snapshots 2 --seconds 1", "model", 1),
        ("shared_leaves --families clos --seeds 1 --seconds 1 --traces shared/traces", "case", 3),
        ("data_placement_decisions --most 6 --queues 2 --seconds 1", "load_weight", 2),
        ("locality --jobs 300 --week-rules fcfs,lea --week-backfills none --traces .", "rule", 2),
        ("strategies column-generation --families limited --work 0.1 --shared shared/.", "case", 6),
        ("site --jobs 300 --loads 0.5,1 --policies 'easy,easy (compiled)'", "workload", 4),
        ("sharing_decisions --jobs 100 --problems 2", "goal", 4),
        ("window_mkp windows --snapshots 2 --largest 5 --solvers highs,greedy", "solver", 2),
        (f"slurm_size --nodes 128 --pending 20 --repeats 1 --capture {CAPTURE}", "command", 6),
    ],
)
def test_a_benchmark_keeps_what_it_prints_of_all_that_it_measures(words, column, count, measure):
    assert len({row[column] for row in measure(words)}) == count


MTM = Path(__file__).parents[1] / ".venv-mtm" / "bin" / "python"


@pytest.mark.long
def test_instances_are_checked_against_known_values(measure):
    """Beside Martello and Toth, too, if ``make .venv-mtm/ready`` has installed them."""
    options = f"--every 10 --mtm {MTM}" if MTM.exists() else "--every 60"
    rows = measure(f"window_mkp instances shared/instances/mkp --sets SMALL {options}")
    assert len(rows) >= 3
    assert all(int(row["objective"]) <= float(row["known_upper"]) for row in rows)
    by_mtm = [row for row in rows if row["mtm_value"]]
    assert bool(by_mtm) == MTM.exists()
    assert all(row["mtm_value"] == row["known_lower"] for row in by_mtm)


CLOS = [26, 35, 22, 90, 93, 84, 73, 82, 70, 42, 49, 50, 89, 87, 88, 134, 126, 138]
"""Fewest switches of the cases on the Lingjun cluster, as another program proved them."""


@pytest.mark.long
def test_whole_nodes_are_proven_on_a_real_clos(measure):
    rows = measure("switch_groups --families clos --seconds 60 --traces shared/traces")
    assert [int(row["own_switches"]) for row in rows] == CLOS
    assert {row["status"] for row in rows} == {"optimal"}
    assert all(row["rule_weight"] == row["own_weight"] == row["jobs"] for row in rows)
    assert all(int(row["rule_switches"]) >= int(row["own_switches"]) for row in rows)


@pytest.mark.long
def test_pods_are_packed_on_a_real_cluster(measure):
    words = "node_placement --families busy --nodes 40,150 --seeds 1 --seconds 20"
    _, large = rows = measure(f"{words} --traces shared/traces")
    assert large["value"] == "254.28"
    assert float(large["gap"]) < 0.005
    assert all(float(row["largest"]) < float(row["value"]) <= float(row["bound"]) for row in rows)


@pytest.mark.long
def test_joint_decisions_are_compared_with_two_in_turn(tmp_path):
    words = "--sides 4 --busy 0.7 --states 2 --joint 1 --seconds 60 -o"
    told = run("reconfiguration.py", *words.split(), tmp_path)
    tables = [tmp_path / f"reconfiguration{part}.txt" for part in ("", "-joint")]
    assert told == "".join(table.read_text() for table in tables)
    rows = rows_of(tmp_path / "reconfiguration.csv")
    assert {row["solver"] for row in rows} == {"in turn", "in turn, exact", "migration-based"}
    assert all(int(row["common"]) <= int(row["found"]) <= 2 for row in rows)
    for row in rows_of(tmp_path / "reconfiguration-joint.csv"):
        assert int(row["bound"]) <= int(row["joint"]) <= int(row["migration-based"])


@pytest.mark.long
def test_the_growth_of_cost_is_measured_and_drawn(measure, tmp_path):
    rows = measure("growth --jobs 1000 --queue 100 --limit 0.01")
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
    expected = {"jobs": 5, "never": 1, "within_1s": 0.4, "within_5s": 0.6, "within_30s": 0.6}
    expected |= {"mean_s": (0 + 1 + 5 + 31) / 4, "median_s": 3}
    expected |= {"real_wait_s": 4.2, "wait_s": (0 + 11 + 9 + 31) / 4}
    assert real_slurm.compared(real, other) == expected


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


def write_times(folder, cells):
    """Write the times of (cell, seconds, yardstick in seconds)."""
    folder.mkdir()
    lines = ["cell,seconds,yardstick_s", *(",".join(map(str, cell)) for cell in cells)]
    (folder / "gang.times.csv").write_text("\n".join(lines) + "\n")


def test_what_got_slower_or_faster_than_the_noise_is_named(tmp_path):
    before = [("a", 1.0), ("a", 1.1), ("b", 2), ("c", 1.0), ("c", 2.0), ("d", 5)]
    after = [("a", 1.3), ("a", 1.4), ("b", 1), ("c", 1.9), ("c", 2.1), ("e", 5)]
    write_times(tmp_path / "before", [(*cell, 1) for cell in before])
    # a machine of half the speed
    write_times(tmp_path / "after", [(cell, 2 * seconds, 2) for cell, seconds in after])
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
        write_times(tmp_path / name, [(cell, seconds, 1 + cell / 10) for cell in range(8)])
    lines = run("compare.py", tmp_path / "before", tmp_path / "after").splitlines()
    assert lines[1:] == ["slower: 0", "faster: 0", "within the noise: 8"]


def test_a_folder_without_times_is_refused(tmp_path):
    told = run("compare.py", tmp_path, tmp_path, code=1)
    assert told == f"{tmp_path}: no file *.times.csv\n"
