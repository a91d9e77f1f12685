"""``optsched sweep`` as a user runs it, interrupts it and kills it."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest
from waiting import await_runs

RUNS = 80


@pytest.fixture
def folder(tiny):
    """Return a folder with a sweep of 80 runs of some milliseconds each."""
    (tiny / "sweep.toml").write_text(
        f"""
        trace = "tiny.swf"
        machine = "nodes:10"
        jobs = "1:12"
        policy = "window"
        solver = ["branch-and-bound", "greedy"]
        seed = {list(range(2))}
        [settings]
        window = {list(range(1, 11))}
        interval = [0, 30]
        """
    )
    return tiny


def start(folder, output, **streams):
    """Start a sweep in a process group of its own."""
    words = ["-m", "optsched", "sweep", "sweep.toml", "-o", output, "--workers", "2"]
    command = [sys.executable, *words]
    return subprocess.Popen(command, cwd=folder, start_new_session=True, text=True, **streams)


def await_end_of_group(group):
    deadline = time.monotonic() + 30
    with contextlib.suppress(ProcessLookupError):
        while time.monotonic() < deadline:
            os.killpg(group, 0)
            time.sleep(0.05)
        pytest.fail("worker processes have outlived the sweep")


@pytest.mark.long
def test_a_sweep_that_is_killed_goes_on_and_gives_the_same_bytes(folder, optsched, contents):
    assert start(folder, "smooth").wait(timeout=200) == 0
    moment = random.Random(3).randrange(1, RUNS - 20)
    process = start(folder, "out")
    runs = folder / "out" / "runs"
    await_runs(process, runs, moment)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    await_end_of_group(process.pid)
    before = {run: run.stat().st_mtime_ns for run in runs.iterdir() if run.name[0] != "."}
    assert moment <= len(before) < RUNS
    told = json.loads(optsched("sweep sweep.toml -o out --json", cwd=folder).out)
    counts = [told[name] for name in ("runs", "done_before", "done")]
    assert counts == [RUNS, len(before), RUNS - len(before)]
    assert {run: run.stat().st_mtime_ns for run in before} == before
    assert contents(folder / "out") == contents(folder / "smooth"), f"killed after {moment} runs"


@pytest.mark.parametrize(
    ("number", "finished"),
    [
        (signal.SIGINT, 5),
        pytest.param(signal.SIGINT, 0, marks=pytest.mark.long),
        pytest.param(signal.SIGTERM, 5, marks=pytest.mark.long),
    ],
)
def test_an_interrupted_sweep_says_that_it_can_go_on(number, finished, folder):
    process = start(folder, "out", stderr=subprocess.PIPE)
    await_runs(process, folder / "out" / "runs", finished)
    if finished == 0:
        time.sleep(0.5)  # in the middle of the workers' imports
    os.killpg(process.pid, number)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    names = [path.name for path in (folder / "out" / "runs").iterdir()]
    assert finished <= len(names) < RUNS
    assert [name for name in names if name.startswith(".")] == []
    assert stderr.splitlines()[1:] == [
        f"optsched: interrupted with {RUNS - len(names)} runs left; the same command executes them"
    ]
    assert not (folder / "out" / "results.parquet").exists()
    await_end_of_group(process.pid)


def small(folder, **keys):
    """Write a sweep file of a few runs."""
    lines = {"trace": "tiny.swf", "machine": "nodes:10", "policy": ["fcfs", "easy", "sjf"]} | keys
    text = "".join(f"{key} = {json.dumps(value)}\n" for key, value in lines.items())
    (folder / "sweep.toml").write_text(text)


def test_the_last_shard_merges_all_and_a_failed_run_is_named(folder, optsched):
    small(folder, jobs=["1:10", "1:99"], policy="easy")
    first, last = (
        optsched(f"sweep sweep.toml --shard {part}/2 -o out --json", cwd=folder, code=part - 1)
        for part in (1, 2)
    )
    told = [json.loads(done.out) for done in (first, last)]
    assert [(one["own"], one["results"]) for one in told] == [(1, None), (1, "out/results.parquet")]
    assert [one["done"] for one in told] == [1, 0]
    [note] = (folder / "out" / "failed").iterdir()
    _, failed, count = last.err.splitlines()
    assert failed.startswith(f"optsched: run {note.stem} failed: ")
    assert count == "optsched: 1 run failed; the reasons are in out/failed"
    assert json.loads(note.read_text())["config"]["jobs"] == "1:99"
    assert len(list((folder / "out" / "runs").iterdir())) == 1
    assert "99" in (folder / "out" / "results.csv").read_text()


def test_wrong_answers_in_runs_are_loud(folder, optsched):
    small(folder, policy="window", solver=["greedy", "best-first"])
    optsched("sweep sweep.toml -o out", cwd=folder)
    summary = next((folder / "out" / "runs").glob("*/summary.json"))
    figures = json.loads(summary.read_text())
    assert figures["wrong_answers"] == 0
    summary.write_text(json.dumps(figures | {"wrong_answers": 3}))
    told = optsched("sweep sweep.toml -o out", cwd=folder, code=1).err
    name = summary.parent.name
    assert f"optsched: run {name}: 3 wrong answers of solvers, not used" in told
