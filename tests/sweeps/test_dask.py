"""The Dask engine, with a scheduler and workers as users start them."""

import json
import os
import signal
import subprocess
import sys

import pytest
from waiting import await_runs, await_that

from optsched.content import bundled
from optsched.errors import InputError
from optsched.sweeps import engines as engine
from optsched.sweeps.engines import Task
from optsched.sweeps.sweep_file import read_sweep

pytest.importorskip("distributed", reason="distributed is not installed")


@pytest.fixture
def start(tmp_path):
    """Return the function that starts a part of a cluster; all are ended after the test.

    It returns the process and its log, in which `await_text` finds when the part is ready.
    """
    processes = []

    def run(*arguments):
        log = tmp_path / f"{len(processes)}.log"
        command = [sys.executable, "-m", "dask", *arguments, "--no-dashboard"]
        with log.open("w") as output:
            streams = {"stdout": output, "stderr": subprocess.STDOUT}
            process = subprocess.Popen(command, **streams, cwd=tmp_path, start_new_session=True)
        processes.append(process)
        return process, log

    yield run
    for process in processes:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture
def scheduler(start, tmp_path):
    """Start a scheduler, and return its process and its address."""
    file = tmp_path / "scheduler.json"
    process, _ = start("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", file)
    await_text(process, file, "}")
    return process, json.loads(file.read_text())["address"]


@pytest.fixture
def start_worker(start, scheduler, tmp_path):
    """Return the function that starts a worker, and waits until the scheduler knows it."""
    _, address = scheduler

    def run(threads=1):
        options = ("--nthreads", str(threads), "--no-nanny", "--local-directory", tmp_path)
        process, log = start("worker", address, *options)
        await_text(process, log, "Registered to")
        return process

    return run


@pytest.fixture
def sweep(tmp_path):
    """Return the function that starts a sweep of 24 runs, of a policy in a file.

    A run takes a fraction of a second with the policy's own solver, a few seconds with ``cp-sat``.
    """
    sweep_file = tmp_path / "sweep.toml"
    sample = bundled("traces") / "samples" / "sample-256.swf"
    policy = "from optsched.policies.window import Window\nclass Mine(Window):\n    pass\n"
    (tmp_path / "mine.py").write_text(policy)

    def run(output, *options, solver="branch-and-bound"):
        sweep_file.write_text(
            f"""
            trace = {json.dumps(str(sample))}
            policy = "mine.py:Mine"
            solver = "{solver}"
            jobs = ["1:600", "601:1200"]
            settings.window = {list(range(1, 13))}
            """
        )
        command = [sys.executable, "-m", "optsched", "sweep", sweep_file, "-o", tmp_path / output]
        return subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True)

    return run


def await_text(process, file, text):
    await_that(process, lambda: file.exists() and text in file.read_text())


AWAIT_IDLE = """
import sys, time
from distributed import Client

with Client(sys.argv[1]) as client:
    while any(client.run(lambda dask_worker: len(dask_worker.state.tasks)).values()):
        time.sleep(0.1)
"""


def await_idle(address):
    """Wait until no worker has a task, neither begun nor to begin.

    In a process of its own: a client does not start beside the event loop of a browser.
    """
    subprocess.run([sys.executable, "-c", AWAIT_IDLE, address], check=True, timeout=60)


@pytest.mark.long
def test_a_killed_dask_worker_loses_nothing(start_worker, scheduler, sweep, tmp_path, contents):
    _, address = scheduler
    workers = [start_worker() for _ in range(3)]
    process = sweep("dask", "--engine", "dask", "--address", address)
    await_runs(process, tmp_path / "dask" / "runs", 5)
    workers[0].kill()
    _, stderr = process.communicate(timeout=200)
    assert process.returncode == 0, stderr
    assert stderr == "24 runs; 0 done before, 24 to do\n"
    undisturbed = sweep("local", "--workers", "1")
    _, stderr = undisturbed.communicate(timeout=200)
    assert undisturbed.returncode == 0, stderr
    assert contents(tmp_path / "dask") == contents(tmp_path / "local")
    assert len(contents(tmp_path / "dask")) > 24


@pytest.mark.long
def test_a_scheduler_that_is_lost_is_told(start_worker, scheduler, sweep, tmp_path):
    process, address = scheduler
    start_worker(threads=2)
    lost = sweep("out", "--engine", "dask", "--address", address)
    await_runs(lost, tmp_path / "out" / "runs", 3)
    process.kill()
    _, stderr = lost.communicate(timeout=200)
    assert lost.returncode == 1, stderr
    assert "dask worker --nthreads 1" in stderr
    assert f"optsched: {address}: the Dask scheduler was lost; the same command" in stderr
    assert "Traceback" not in stderr, stderr
    assert len(list((tmp_path / "out" / "runs").iterdir())) < 24


def test_where_no_scheduler_answers_that_is_told(monkeypatch):
    monkeypatch.setattr(engine, "CONNECT_SECONDS", 1)
    for address in ("tcp://127.0.0.1:9", "localhost:what"):
        with pytest.raises(InputError, match="no Dask scheduler answers"):
            engine.DaskCluster(address)


def test_a_folder_that_is_not_shared_is_told(tiny, monkeypatch):
    monkeypatch.setattr(engine, "VISIBLE_SECONDS", 0.1)
    [run] = read_sweep({"trace": tiny / "tiny.swf", "machine": "nodes:10"}).runs
    with pytest.raises(InputError, match="expected an output folder that this machine and all"):
        engine._await_folder(Task(run, str(tiny / "elsewhere"), "jobs"))


def test_without_dask_its_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"pip install 'optsched\[dask\]'"):
        engine.DaskCluster("tcp://127.0.0.1:9")


@pytest.mark.long
def test_ctrl_c_gives_back_what_dask_has_not_begun(start_worker, scheduler, sweep, tmp_path):
    _, address = scheduler
    start_worker()
    process = sweep("out", "--engine", "dask", "--address", address, solver="cp-sat")
    runs = tmp_path / "out" / "runs"
    await_runs(process, runs, 1)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert "runs left; the same command executes them" in stderr
    assert "Traceback" not in stderr, stderr
    done = len(list(runs.glob("*/run.json")))
    await_idle(address)
    assert len(list(runs.glob("*/run.json"))) <= done + 1 < 24  # one had begun
