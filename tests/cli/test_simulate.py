"""``optsched simulate``, as typed, interrupted and killed."""

import csv
import json
import signal
import subprocess
import sys
import time

import pytest
from waiting import await_that

SUMMARY = {
    "jobs", "finished", "killed", "rejected", "dropped", "utilization", "makespan", "mean_wait",
    "p95_wait", "mean_response", "mean_slowdown", "mean_bounded_slowdown",
    "p95_bounded_slowdown", "decisions", "fallbacks",
}  # fmt: skip


def test_a_trace_is_simulated_and_its_snapshots_compared(optsched, tmp_path):
    words = "simulate sample-256 --policy window --jobs 1:400 --check --json -o run"
    done = optsched(words, "--capture captured --capture-every 40", cwd=tmp_path)
    summary = json.loads(done.out)
    assert set(summary) >= SUMMARY
    assert summary == json.loads((tmp_path / "run" / "summary.json").read_text())
    assert (summary["jobs"], summary["finished"]) == (400, 400)
    pictures = {file.name for file in (tmp_path / "run").iterdir()}
    assert {"gantt.svg", "utilization.png", "waits.svg"} <= pictures
    solvers = "branch-and-bound,cp-sat,cbc,greedy"
    done = optsched("compare captured --solvers", solvers, "-o compared --json", cwd=tmp_path)
    assert {row["solver"] for row in json.loads(done.out)["table"]} == {*solvers.split(",")}
    assert (tmp_path / "compared" / "comparison.json").exists()


def test_a_small_run_prints_its_summary_and_leaves_csv_out_on_request(optsched, tmp_path):
    run = tmp_path / "run"
    done = optsched("simulate sample-256 --jobs 1:50 --no-csv --no-plots -o", run)
    assert "wait              mean 24.9 s, median 0 s" in done.out
    assert "jobs/s" in done.err
    tables = {"jobs.parquet", "decisions.parquet"}
    names = {file.name for file in run.iterdir()}
    assert names == {"run.json", "summary.json", "timing.json"} | tables


def started(folder, *words):
    """Start a process that simulates the sample."""
    command = [sys.executable, "-m", "optsched", "simulate", "sample-256", "-o", folder / "run"]
    return subprocess.Popen([*command, *words], stderr=subprocess.PIPE, text=True)


def interrupted(folder, number):
    """Start a long run, send it a signal once it works, and return its exit code and stderr."""
    process = started(folder, "--policy", "window", "--solver", "cbc", "--no-plots")
    await_that(process, lambda: any(folder.glob(".run.*")))
    time.sleep(1.0)
    process.send_signal(number)
    _, stderr = process.communicate(timeout=60)
    return process.returncode, stderr


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)]
)
def test_an_interrupted_run_leaves_nothing_behind(number, tmp_path):
    code, stderr = interrupted(tmp_path, number)
    assert code == 130, stderr
    assert "interrupted" in stderr
    assert "Traceback" not in stderr
    assert list(tmp_path.iterdir()) == []


def test_kill_leaves_nothing_that_looks_finished(tmp_path, optsched):
    code, _ = interrupted(tmp_path, signal.SIGKILL)
    assert code == -signal.SIGKILL
    assert not (tmp_path / "run").exists()
    optsched("simulate sample-256 --jobs 1:50 --no-plots -o", tmp_path / "run")
    assert (tmp_path / "run" / "summary.json").exists()
    assert [entry.name for entry in tmp_path.iterdir()] == ["run"]


DROPPED = """
import signal

from optsched.policies.fcfs import FCFS

class Last:
    def __del__(self):
        signal.raise_signal(signal.SIGTERM)
        sum(range(10))  # the handler runs here

class Dropping(FCFS):
    def decide(self, system):
        Last()
        return super().decide(system)

class Broken(FCFS):
    def decide(self, system):
        try:
            signal.raise_signal(signal.SIGTERM)
        except KeyboardInterrupt:
            raise ImportError("initialization failed") from None
"""


@pytest.mark.parametrize("name", ["Dropping", "Broken"])
def test_an_interrupt_that_becomes_another_exception_is_not_lost(name, tmp_path):
    """Python prints an exception of a destructor, and a module that is loaded raises its own."""
    policy = tmp_path / "dropping.py"
    policy.write_text(DROPPED)
    process = started(tmp_path, "--policy", f"{policy}:{name}")
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert "Exception ignored" not in stderr
    assert list(tmp_path.iterdir()) == [policy]


@pytest.fixture
def site(tmp_path):
    """Return the words that simulate a table of jobs on a small site."""
    (tmp_path / "small.toml").write_text(
        'kind = "site"\n[[nodes]]\nnames = "n[1-3]"\ncores = 4\nmemory = 1000\n'
    )
    return "simulate jobs.csv --machine small.toml --policy easy --no-plots -o run"


def test_jobs_that_never_start_are_counted(optsched, site, tmp_path):
    (tmp_path / "jobs.csv").write_text(
        "job_id,submit,runtime,processors,dependency\n1,0,9,1,afterany:2\n2,0,9,1,afterany:1\n"
        "3,0,9,1,afterany:3\n"
    )
    for jobs, said in (("1:3", "3 jobs never start"), ("3:3", "1 job never starts")):
        done = optsched(site, "--jobs", jobs, cwd=tmp_path)
        assert f"optsched: {said} under this policy\n" in done.err


def test_a_site_says_why_it_rejects_jobs(optsched, site, tmp_path):
    (tmp_path / "jobs.csv").write_text(
        "submit,runtime,processors,memory_per_node,nodes\n0,9,1,500,1\n1,9,1,2000,1\n2,9,9,10,9\n"
    )
    done = optsched(site, cwd=tmp_path)
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert (summary["finished"], summary["rejected"]) == (1, 2)
    said = [line for line in done.err.splitlines() if "rejected" in line]
    assert said == ["optsched: rejected (2 jobs): it does not fit on the nodes that it may use"]
    assert "the column reason of run/jobs.csv says why each of these jobs never starts" in done.err
    with (tmp_path / "run" / "jobs.csv").open(newline="") as lines:
        reasons = [row["reason"] for row in csv.DictReader(lines)]
    assert reasons == ["", *["it does not fit on the nodes that it may use"] * 2]


TWO = "bandwidth\n1,2000\n2,500\n"


@pytest.fixture
def shared_run(optsched, tmp_path):
    """Return the function that runs two jobs with demands on a machine, and returns stderr."""

    def run(machine, demands=TWO, options="", seconds=200, policy="sjbf", code=0):
        jobs = [f"{job} 0 0 100 2 -1 -1 2 {seconds} -1 1 1 1 1 1 1 -1 -1\n" for job in (1, 2)]
        (tmp_path / "jobs.swf").write_text("; MaxProcs: 8\n" + "".join(jobs))
        (tmp_path / "jobs.swf.demands.csv").write_text(f"job_id,{demands}")
        words = f"simulate jobs.swf --machine {machine} --policy {policy} {options} --no-plots"
        return optsched(words, "-o run", cwd=tmp_path, code=code).err

    return run


@pytest.mark.parametrize(
    ("capacity", "demand", "seconds", "said"),
    [
        ("bandwith=6", 5, 200, "of bandwith, which smp:2x4:bandwith=6 has; 'optsched"),
        ("bandwidth=9999999999", 5, 200, "bandwidth: 9999999999; expected at most 1,000"),
        ("bandwidth=6", 5, 2 * 10**9, "jobs.swf, line 2, requested time: 2000000000 s in"),
        ("bandwidth=1", 10**9, 200, "1000000000 and walltimes of up to 200 s make penalties"),
    ],
)
def test_demands_that_a_machine_cannot_share_are_one_line(
    capacity, demand, seconds, said, shared_run, tmp_path
):
    demands = f"bandwidth\n1,5\n2,{demand}\n"
    [told] = shared_run(f"smp:2x4:{capacity}", demands, seconds=seconds, code=1).splitlines()
    assert said in told
    assert not (tmp_path / "run").exists()


def test_resources_that_only_one_side_names_are_told(shared_run):
    both = "bandwidth,network\n1,2000,1\n2,500,0\n"
    machine = "smp:2x4:bandwidth=6000:netwrk=256"
    said = shared_run(machine, both).splitlines()
    assert [line for line in said if "has no" in line] == [
        f"optsched: trace 'jobs' has no demands of netwrk, which {machine} has; "
        "it states bandwidth, network",
        f"optsched: {machine} has no network, which jobs of 'jobs' demand; not shared",
    ]
    assert "has no" not in shared_run("smp:2x4", both.replace(",1\n", ",0\n"))


@pytest.mark.parametrize(
    ("policy", "execution", "told"),
    [("rua", "contiguity", 1), ("rua", "resource-sharing", 0), ("easy", "resource-sharing", 0)],
)
def test_a_policy_that_decides_for_another_execution_is_told(policy, execution, told, shared_run):
    said = shared_run("smp:2x4", options=f"--execution {execution}", policy=policy)
    note = (
        f"optsched: policy '{policy}' decides for execution model 'resource-sharing'; "
        f"the jobs run under '{execution}', so its estimates do not hold\n"
    )
    assert said.count(note) == told


FIRST = (
    "{ id: 1 subtime: 100 delay: 100 walltime: 200 cores: 2 user: ann data: 1 data_size: 12.8 "
    "workload: 0 start_time_from_history: -1 start_node_from_history: 0 }"
)
RUNNING = (
    "{ id: 2 subtime: 40 delay: 100 walltime: 200 cores: 2 user: ann data: 1 data_size: 12.8 "
    "workload: -2 start_time_from_history: 50 start_node_from_history: 99 }"
)
LOCALITY = "simulate jobs.rackham --policy locality --no-plots -o run --machine"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("cores: 2", "cores: 21", "cores: 21 in job 2; expected at most 20"),
        ("1 data_size: 12.8", "2 data_size: 10000000", "data_size: 10000000000 s in job 2"),
    ],
)
def test_jobs_that_a_cluster_cannot_run_are_one_line(old, new, said, optsched, tmp_path):
    (tmp_path / "jobs.rackham").write_text(f"{FIRST}\n{RUNNING.replace(old, new, 1)}\n")
    [told] = optsched(LOCALITY, "cluster:2x20:bandwidth=1", cwd=tmp_path, code=1).err.splitlines()
    assert f"line 2, {said}" in told
    assert not (tmp_path / "run").exists()


def test_a_history_beyond_the_last_node_goes_on_from_the_first(optsched, tmp_path):
    (tmp_path / "jobs.rackham").write_text(f"{FIRST}\n{RUNNING}\n")
    optsched(LOCALITY, "cluster:2x20:kept=next", cwd=tmp_path)
    rows = (tmp_path / "run" / "jobs.csv").read_text().splitlines()
    assert '"0-1"' in next(row for row in rows if row.startswith("2,"))
