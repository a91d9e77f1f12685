"""Writers that are killed at any step: what has its name is whole, and the next one cleans up."""

import os
import random
import signal
import sys
import warnings
from types import SimpleNamespace

import pytest

import optsched
from optsched.files import remove_leftovers
from optsched.sweeps.engines import execute
from optsched.sweeps.sweep_file import read_sweep
from optsched.sweeps.sweeping import Sweep
from optsched.traces.reading import write_trace

STEPS = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "shutil.rmtree"}
"""Events of Python's audit that are steps of writing."""

MOST = 1000
"""Steps, many more than anything here has."""


def is_killed(do, step, folder):
    """Do something in a fork that is killed before a step of its writing; return whether it was.

    Steps, from 0, are what concerns paths below the folder; nobody is killed if there are fewer.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks of threaded processes
        child = os.fork()
    if child == 0:
        passed = 0

        def watch(event, arguments):
            nonlocal passed
            if event in STEPS and str(arguments[0]).startswith(str(folder)):
                if passed == step:
                    os.kill(os.getpid(), signal.SIGKILL)
                passed += 1

        code = 1
        try:
            signal.alarm(60)
            sys.addaudithook(watch)
            do()
            code = 0
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, -signal.SIGKILL)
    return code != 0


@pytest.fixture
def contents(contents):
    """Return the function that gives all files below a folder, without what is hidden."""
    return lambda folder: {
        name: data for name, data in contents(folder).items() if "/." not in f"/{name}"
    }


def hidden(folder):
    return [path.name for path in folder.rglob(".*")]


@pytest.fixture(autouse=True)
def unsynced(monkeypatch):
    """Save time: what a killed process has written is there, synced or not."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def writers(make_trace):
    """Return functions that write two runs, and two traces with demands, into a folder."""
    both = make_trace((0, 10, 20, 1), (5, 10, 20, 2)), make_trace((0, 50, 60, 2), (9, 9, 9, 1))
    both = [one.changed(annotations={"bandwidth": one.processors * 100}) for one in both]
    runs = [optsched.simulate(trace, "nodes:2", "easy") for trace in both]
    save = [lambda at, run=run: optsched.save(run, at / "out", plots=False) for run in runs]
    write = [lambda at, trace=trace: write_trace(trace, at / "a.swf.gz") for trace in both]
    return {"runs": save, "traces": write}


@pytest.mark.parametrize("kind", ["runs", "traces"])
def test_a_writer_that_is_killed_leaves_the_old_or_the_new(kind, writers, contents, tmp_path):
    """At any step; and the next one to the same place leaves nothing but the new."""
    write_old, write_new = writers[kind]
    whole = []
    for name, write in (("old", write_old), ("new", write_new)):
        (tmp_path / name).mkdir()
        write(tmp_path / name)
        whole.append(contents(tmp_path / name))
    old, new = whole
    assert old != new
    remains = 0
    for step in range(MOST):
        folder = tmp_path / str(step)
        folder.mkdir()
        write_old(folder)
        killed = is_killed(lambda folder=folder: write_new(folder), step, folder)
        remains += bool(hidden(folder))
        if not contents(folder):  # a folder moves away before another takes its name
            remove_leftovers(folder)
        left = contents(folder)
        assert left.keys() == old.keys()
        if kind == "runs":
            assert left in (old, new), step
        assert all(left[name] in (old[name], new[name]) for name in left), step
        write_new(folder)
        assert contents(folder) == new
        assert hidden(folder) == []
        if not killed:
            break
    assert step > remains > 2
    assert not killed


def test_a_sweep_that_is_killed_goes_on(tiny, tmp_path, contents):
    study = read_sweep({"trace": "tiny.swf", "policy": ["fcfs", "easy"], "machine": "nodes:10"})
    engine = SimpleNamespace(execute_all=lambda tasks: (execute(task) for task in tasks))

    def sweep(folder):
        one = Sweep(study, folder / "out")
        assert all(outcome.error is None for outcome in one.work(engine))
        assert one.finish()

    (tmp_path / "smooth").mkdir()
    sweep(tmp_path / "smooth")
    names = {run.name for run in study.runs}
    for step in [*sorted(random.Random(19).sample(range(60), 20)), MOST]:
        folder = tmp_path / str(step)
        folder.mkdir()
        assert is_killed(lambda folder=folder: sweep(folder), step, folder) == (step < MOST)
        runs = folder / "out" / "runs"
        done = {path: path.stat().st_ino for path in runs.glob("*") if path.name in names}
        sweep(folder)
        assert {path: path.stat().st_ino for path in done} == done
        assert contents(folder) == contents(tmp_path / "smooth"), step
        assert hidden(folder) == []
