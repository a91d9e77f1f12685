from __future__ import annotations

import contextlib
import csv
import gzip
import json
import os
import signal
import subprocess
import sys
import time

import pytest

SUMMARY = {
    "jobs", "finished", "killed", "rejected", "dropped", "utilization", "makespan", "mean_wait",
    "p95_wait", "mean_response", "mean_slowdown", "mean_bounded_slowdown",
    "p95_bounded_slowdown", "decisions", "fallbacks",
}  # fmt: skip


def test_a_trace_is_simulated_and_its_snapshots_compared(optsched, sample, tmp_path):
    run, captured = tmp_path / "run", tmp_path / "captured"
    options = ("--policy", "window", "--jobs", "1:400", "--check", "--json", "-o", run)
    done = optsched("simulate", sample, *options, "--capture", captured, "--capture-every", 40)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert set(summary) >= SUMMARY
    assert summary == json.loads((run / "summary.json").read_text())
    assert (summary["jobs"], summary["finished"]) == (400, 400)
    pictures = {file.name for file in run.iterdir() if file.suffix in (".svg", ".png")}
    assert {"gantt.svg", "utilization.png", "waits.svg"} <= pictures
    folder = tmp_path / "comparison"
    solvers = "branch-and-bound,cp-sat,cbc,greedy"
    done = optsched("compare", captured, "--solvers", solvers, "-o", folder, "--json")
    assert done.returncode == 0, done.stderr
    table = {row["solver"]: row for row in json.loads(done.stdout)["table"]}
    assert set(table) == set(solvers.split(","))
    assert (folder / "comparison.json").exists()


def test_a_small_run_prints_its_summary(optsched, sample, tmp_path):
    done = optsched("simulate", sample, "--jobs", "1:50", "--no-plots", "-o", tmp_path / "run")
    assert done.returncode == 0
    assert "wait              mean 24.9 s, median 0 s" in done.stdout
    assert "jobs/s" in done.stderr


def test_links_of_a_torus_make_nodes_contiguous_on_request(optsched, sample, tmp_path):
    scattered = {}
    for adjacency in ("line", "torus"):
        options = ("--machine", "torus:4x8x8", "--execution", "contiguity", "--jobs", "1:150")
        settings = ("--set", "beta=1", "--set", f"adjacency={adjacency}")
        done = optsched(
            "simulate", sample, *options, *settings, "--no-plots", "--json", "-o", tmp_path / "run"
        )
        assert done.returncode == 0, done.stderr
        scattered[adjacency] = json.loads(done.stdout)["sensitive_scattered"]
    assert 0 < scattered["torus"] < scattered["line"]


def test_the_table_of_jobs_is_left_out_as_csv_on_request(optsched, sample, tmp_path):
    run = tmp_path / "run"
    done = optsched("simulate", sample, "--jobs", "1:50", "--no-csv", "--no-plots", "-o", run)
    assert done.returncode == 0
    names = {file.name for file in run.iterdir()}
    tables = {"jobs.parquet", "decisions.parquet"}
    assert names == {"run.json", "summary.json", "timing.json"} | tables


TRACES = {
    "cut.swf.gz": lambda good: gzip.compress(good)[:-200],
    "empty.swf": lambda good: b"",
    os.fsdecode(b"name\xff.swf"): lambda good: good,
    "headless.swf": lambda good: good.replace(b"MaxProcs: 256", b"MaxProcs: 0"),
    "unsized.swf": lambda good: good.replace(b"MaxProcs", b"Procs").replace(b"MaxNodes", b"Nodes"),
    "columns.swf": lambda good: b"; MaxProcs: 4\n1 0 0 5 1 5 -1 1 5 -1 1 1 1 1 1 1 -1\n",
    "letter.swf": lambda good: b"; MaxProcs: 4\n1 0 0 5x 1 5 -1 1 5 -1 1 1 1 1 1 1 -1 -1\n",
    "negative.swf": lambda good: b"; MaxProcs: 4\n1 0 0 5 -4 5 -1 1 5 -1 1 1 1 1 1 1 -1 -1\n",
}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["{folder}/cut.swf.gz"], ["cut.swf.gz", "gzip"]),
        (["{folder}/empty.swf"], ["empty.swf"]),
        (["{folder}/" + os.fsdecode(b"name\xff.swf")], ["name is not UTF-8"]),
        (["{sample}", "--jobs", "1:9", "-o", os.fsdecode(b"run\xff")], ["name is not UTF-8"]),
        (["/dev/stdin"], ["/dev/stdin: is a pipe or a device"]),
        (["{folder}/columns.swf"], ["columns.swf", "line 2", "17", "18"]),
        (["{folder}/letter.swf"], ["letter.swf", "line 2", "5x"]),
        (["{folder}/negative.swf"], ["negative.swf", "line 2", "-4"]),
        (["{folder}/absent.swf"], ["absent.swf"]),
        (["{folder}"], ["is a folder; expected a trace"]),
        (["{sample}", "--machine", "nodes:0"], ["expected a whole number from 1"]),
        (
            ["{sample}", "--machine", "torus"],
            ["is not a machine; expected cluster:", "matrix:NUMBER, nodes:NUMBER"],
        ),
        (["{sample}", "--machine", "{folder}"], ["did you mean site:/"]),
        (["{sample}", "--policy", "esay"], ["did you mean easy"]),
        (["{sample}", "--policy", "window", "--solver", "branch"], ["branch-and-bound"]),
        (["{sample}", "--policy", "easy", "--solver", "greedy"], ["poses no problems"]),
        (["{sample}", "--set", "window=3"], ["unknown setting", "there is none"]),
        (
            ["{sample}", "--execution", "contiguity", "--set", "adjacency=torus"],
            ["adjacency=torus of execution model 'contiguity'", "torus, not nodes:256"],
        ),
        (["{folder}/headless.swf"], ["(MaxProcs)", "--machine nodes:256 (it states 256 nodes)"]),
        (["{folder}/unsized.swf"], ["(MaxProcs)", "--machine nodes:NUMBER"]),
        (["{sample}", "--policy", "window", "--capture-every", "2"], ["no folder to capture to"]),
        (["{sample}", "--jobs", "x:5"], ["--jobs", "FROM:TO"]),
        (["{sample}", "--jobs", "10:5"], ["FROM <= TO"]),
        (["{sample}", "--jobs", "1:999999"], ["3000"]),
    ],
)
def test_wrong_input_gets_one_clear_line(arguments, words, optsched, sample, tmp_path):
    for name, content in TRACES.items():
        (tmp_path / name).write_bytes(content(sample.read_bytes()))
    arguments = [argument.format(folder=tmp_path, sample=sample) for argument in arguments]
    if "-o" not in arguments:
        arguments += ["-o", tmp_path / "run"]
    done = optsched("simulate", *arguments)
    assert done.returncode == 1, done.stderr
    for word in words:
        assert word in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stdout == ""
    assert not (tmp_path / "run").exists()
    assert [entry for entry in os.listdir(tmp_path) if entry.startswith(".")] == []


def test_a_folder_that_cannot_be_written_is_refused_before_the_work(optsched, sample, tmp_path):
    blocker = tmp_path / "file"
    blocker.write_text("")
    done = optsched("simulate", sample, "-o", blocker / "run")
    assert done.returncode == 1
    assert "cannot be written" in done.stderr
    done = optsched("simulate", sample, "-o", blocker)
    assert "is a file" in done.stderr


def test_progress_is_shown_on_a_terminal(sample, tmp_path):
    import pty

    controller, terminal = pty.openpty()
    command = [sys.executable, "-m", "optsched", "simulate", str(sample), "--no-plots"]
    command += ["-o", str(tmp_path / "run"), "--policy", "conservative"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=terminal, text=True)
    os.close(terminal)
    shown = b""
    with contextlib.suppress(OSError):  # the other end was closed
        while read := os.read(controller, 4096):
            shown += read
    stdout, _ = process.communicate(timeout=60)
    assert process.returncode == 0, shown.decode()
    assert "bounded slowdown" in stdout
    assert "simulating" in shown.decode()


def test_output_folders_may_not_lie_in_each_other(optsched, sample, tmp_path):
    run = tmp_path / "run"
    for capture in (run / "snapshots", run, tmp_path):
        done = optsched("simulate", sample, "--policy", "window", "-o", run, "--capture", capture)
        assert done.returncode == 1
        assert "--capture" in done.stderr
        assert not run.exists()


def interrupted(sample, folder, number):
    """Start a long run, send it a signal once it works, and return it when it has ended."""
    command = [sys.executable, "-m", "optsched", "simulate", str(sample), "-o", str(folder / "run")]
    command += ["--policy", "window", "--solver", "cbc", "--no-plots"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not any(entry.name.startswith(".run.") for entry in folder.iterdir()):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.05)
    time.sleep(1.0)
    process.send_signal(number)
    _, stderr = process.communicate(timeout=60)
    return process.returncode, stderr


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)]
)
def test_an_interrupted_run_leaves_nothing_behind(number, sample, tmp_path):
    code, stderr = interrupted(sample, tmp_path, number)
    assert code == 130, stderr
    assert "interrupted" in stderr
    assert "Traceback" not in stderr
    assert list(tmp_path.iterdir()) == []


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
def test_an_interrupt_that_becomes_another_exception_is_not_lost(name, optsched, sample, tmp_path):
    """Python prints an exception of a destructor, and a module that is loaded raises its own."""
    policy = tmp_path / "dropping.py"
    policy.write_text(DROPPED)
    done = optsched("simulate", sample, "--policy", f"{policy}:{name}", "-o", tmp_path / "run")
    assert done.returncode == 130, done.stderr
    assert "Exception ignored" not in done.stderr
    assert sorted(entry.name for entry in tmp_path.iterdir() if entry != policy) == []


def test_kill_leaves_nothing_that_looks_finished(sample, tmp_path, optsched):
    code, _ = interrupted(sample, tmp_path, signal.SIGKILL)
    assert code == -signal.SIGKILL
    assert not (tmp_path / "run").exists()
    done = optsched("simulate", sample, "--jobs", "1:50", "--no-plots", "-o", tmp_path / "run")
    assert done.returncode == 0
    assert (tmp_path / "run" / "summary.json").exists()
    assert [entry.name for entry in tmp_path.iterdir()] == ["run"]


def test_traces_are_looked_at_cleaned_and_converted(optsched, sample, tmp_path):
    page = optsched("trace", "info", sample)
    assert page.returncode == 0
    assert "offered load" in page.stdout
    facts = json.loads(optsched("trace", "info", sample, "--json").stdout)
    assert facts["jobs"] == 3000
    for verb, name in (("clean", "clean.swf.gz"), ("convert", "converted.json")):
        done = optsched("trace", verb, sample, "-o", tmp_path / name)
        assert done.returncode == 0, done.stderr
        again = json.loads(optsched("trace", "info", tmp_path / name, "--json").stdout)
        assert again["jobs"] == 3000
    assert "SDSC-BLUE" in optsched("trace", "catalogue").stdout
    missing = optsched(
        "trace", "info", "SDSC-BLUE-2000-4.2-cln", env={**os.environ, "OPTSCHED_TRACES": ""}
    )
    assert missing.returncode == 1
    assert "download" in missing.stderr


def test_next_to_nothing_loads_before_the_command_line_has_ctrl_c_in_hand():
    code = (
        "import sys, os, __future__; before = set(sys.modules); import optsched.cli;"
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["optsched", "optsched.cli", "optsched.version"], done.stderr


def test_help_needs_none_of_the_heavy_packages():
    code = (
        "import sys; from optsched.cli import run; run(['--help']); "
        "heavy = {'numpy', 'pandas', 'numba', 'ortools', 'matplotlib'} & set(sys.modules);"
        "sys.exit(', '.join(heavy) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_jobs_that_never_start_are_counted(optsched, tmp_path):
    (tmp_path / "jobs.csv").write_text(
        "job_id,submit,runtime,processors,dependency\n1,0,9,1,afterany:2\n2,0,9,1,afterany:1\n"
        "3,0,9,1,afterany:3\n"
    )
    site = tmp_path / "small.toml"
    site.write_text('kind = "site"\n[[nodes]]\nnames = "n[1-3]"\ncores = 4\nmemory = 1000\n')
    options = ("--machine", site, "--policy", "easy", "--no-plots")
    for jobs, said in (("1:3", "3 jobs never start"), ("3:3", "1 job never starts")):
        done = optsched(
            "simulate", tmp_path / "jobs.csv", *options, "--jobs", jobs, "-o", tmp_path / jobs
        )
        assert f"optsched: {said} under this policy\n" in done.stderr


def test_a_site_says_why_it_rejects_jobs(optsched, tmp_path):
    (tmp_path / "jobs.csv").write_text(
        "submit,runtime,processors,memory_per_node,nodes\n0,9,1,500,1\n1,9,1,2000,1\n2,9,9,10,9\n"
    )
    site = tmp_path / "small.toml"
    site.write_text('kind = "site"\n[[nodes]]\nnames = "n[1-3]"\ncores = 4\nmemory = 1000\n')
    options = ("--machine", site, "--policy", "easy", "--no-plots", "-o", tmp_path / "run")
    done = optsched("simulate", tmp_path / "jobs.csv", *options)
    assert done.returncode == 0, done.stderr
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert (summary["finished"], summary["rejected"]) == (1, 2)
    said = [line for line in done.stderr.splitlines() if "rejected" in line]
    assert said == ["optsched: rejected (2 jobs): it does not fit on the nodes that it may use"]
    table = tmp_path / "run" / "jobs.csv"
    assert f"the column reason of {table} says why each of these jobs never starts" in done.stderr
    with table.open(newline="") as lines:
        reasons = [row["reason"] for row in csv.DictReader(lines)]
    assert reasons == ["", *["it does not fit on the nodes that it may use"] * 2]
