"""Sweeps: what their folder holds, whoever did the work, and however often it was begun."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import shlex
import shutil
import signal
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

import optsched
from optsched.cli import run as optsched_command
from optsched.errors import InputError
from optsched.sweeps import engines
from optsched.sweeps.engines import LocalProcesses, Task, check_engine, execute, start_engine
from optsched.sweeps.sweep_file import read_sweep
from optsched.sweeps.sweep_folder import report
from optsched.sweeps.sweeping import Sweep, merge

KEPT = {
    "summary": {"run.json", "summary.json", "timing.json"},
    "jobs": {"run.json", "summary.json", "timing.json", "jobs.parquet", "decisions.parquet"},
}
KEPT["all"] = KEPT["jobs"] | {"jobs.csv"}

SLURM_CONF = "NodeName=n[1-5] CPUs=2\nPartitionName=all Nodes=ALL Default=YES\n"
"""A cluster as large as the machine of ``tiny.swf``."""


class InThisProcess:
    """An engine without processes, for what does not depend on them."""

    slots = 1

    def execute_all(self, tasks):
        for task in tasks:
            yield execute(task)


@pytest.fixture
def sweep_file(tiny):
    """Return a sweep file of eight runs."""
    return {
        "trace": tiny / "tiny.swf",
        "machine": "nodes:10",
        "jobs": ["1:20", "1:30"],
        "runs": [
            {"policy": ["fcfs", "easy"]},
            {"policy": "window", "settings": {"window": [2, 4]}},
        ],
    }


@pytest.fixture
def work():
    """Return the function that does a part of a sweep, and gives its outcomes and the sweep."""

    def do(sweep_file, folder, shard=(1, 1)):
        sweep = Sweep(read_sweep(sweep_file), folder, shard)
        outcomes = list(sweep.work(InThisProcess()))
        return sweep, outcomes, sweep.finish()

    return do


def test_a_sweep_is_the_simulations_that_the_sweep_file_names(sweep_file, tiny, work, contents):
    sweep, outcomes, merged = work(sweep_file, tiny / "out")
    assert (len(outcomes), merged) == (8, True)
    table = pd.read_parquet(tiny / "out" / "results.parquet")
    assert list(table.run) == [run.name for run in sweep.plan.runs]
    assert list(table["config.jobs"]) == ["1:20", "1:20", "1:30", "1:30"] * 2
    assert table["settings.window"].tolist()[4:] == [2, 4, 2, 4]
    assert table.error.isna().all()
    alone = optsched.simulate(
        tiny / "tiny.swf", "nodes:10", "window", settings={"window": 4}, jobs=(1, 20)
    )
    row = table.iloc[5]
    assert {name: row[name] for name in ("jobs", "mean_wait", "problems")} == {
        name: alone.summary[name] for name in ("jobs", "mean_wait", "problems")
    }
    assert row.mean_wait > 0
    folder = tiny / "out" / "runs" / row.run
    assert {file.name for file in folder.iterdir()} == KEPT["jobs"]
    assert json.loads((folder / "summary.json").read_text()) == alone.summary
    config = json.loads((folder / "run.json").read_text())
    assert config == json.loads(json.dumps(alone.config))
    csv = pd.read_csv(tiny / "out" / "results.csv")
    assert csv.mean_wait.tolist() == table.mean_wait.tolist()


def test_the_bytes_do_not_depend_on_how_the_work_is_shared(sweep_file, tiny, work, contents):
    work(sweep_file, tiny / "one")
    results = optsched.sweep(sweep_file, tiny / "two", workers=2)
    assert len(results) == 8
    assert contents(tiny / "one") == contents(tiny / "two")
    for number in (3, 1, 2):
        _, outcomes, merged = work(sweep_file, tiny / "shards", (number, 3))
        assert len(outcomes) == (2 if number == 3 else 3)
        assert merged == (number == 2)
        assert (tiny / "shards" / "results.csv").exists() == merged
    assert contents(tiny / "one") == contents(tiny / "shards")


def test_the_bytes_do_not_depend_on_where_the_sweep_file_lies(tiny, work, contents, monkeypatch):
    text = 'trace = "tiny.swf"\nmachine = "ten.toml"\npolicy = "window"\n'
    text += 'solver = "mine.toml"\n'
    (tiny / "mine.toml").write_text('solver = "highs"\nseed = 4\n[budget]\nwork = 7\n')
    (tiny / "ten.toml").write_text('kind = "nodes"\nsize = 10\n')
    (tiny / "sweep.toml").write_text(text)
    moved = tiny / "moved"
    moved.mkdir()
    for name in ("sweep.toml", "tiny.swf", "mine.toml", "ten.toml"):
        (moved / name).write_bytes((tiny / name).read_bytes())
    work(tiny / "sweep.toml", tiny / "here")
    monkeypatch.chdir(moved)
    work("sweep.toml", tiny / "there")
    assert contents(tiny / "here") == contents(tiny / "there")
    [config] = [json.loads(f.read_text()) for f in (tiny / "here" / "runs").glob("*/run.json")]
    assert (config["trace"], config["machine"]) == ("tiny.swf", "nodes:10")
    assert (config["solver"], config["seed"]) == ("highs", 4)
    assert config["budget"] == {"seconds": None, "work": 7}


@pytest.mark.parametrize(
    "machine",
    [
        "site:small/slurm.conf",
        *(pytest.param(text, marks=pytest.mark.long) for text in ("site:small", "small/site.toml")),
    ],
)
def test_a_site_lies_beside_the_sweep_file(machine, tiny, work, contents, monkeypatch):
    places = tiny / "one", tiny / "two"
    text = f'trace = "tiny.swf"\nmachine = "{machine}"\npolicy = ["easy", "multifactor"]\n'
    for place in places:
        (place / "small").mkdir(parents=True)
        (place / "tiny.swf").write_bytes((tiny / "tiny.swf").read_bytes())
        (place / "sweep.toml").write_text(text)
        (place / "small" / "slurm.conf").write_text(SLURM_CONF)
        (place / "small" / "site.toml").write_text(
            'kind = "site"\n[[nodes]]\nnames = "n[1-5]"\ncores = 2\nmemory = 1\n'
        )
        if place == places[0]:
            optsched.sweep(place / "sweep.toml", place / "results", workers=1)
        else:
            work(place / "sweep.toml", place / "results")
        monkeypatch.chdir(place)
    assert contents(places[0] / "results") == contents(places[1] / "results")
    configs = [json.loads(f.read_text()) for f in (places[0] / "results").glob("runs/*/run.json")]
    assert {config["machine"] for config in configs} == {f"site:{machine.removeprefix('site:')}"}
    monkeypatch.chdir(places[0])  # the folder of the sweep file
    for config in configs:
        words = shlex.split(config["repeat"].replace("DIR", config["policy"]))
        assert optsched_command([*words[1:], "--no-plots"]) == 0
        repeated = json.loads((places[0] / config["policy"] / "run.json").read_text())
        assert repeated["machine"] == config["machine"]


def test_a_run_on_a_site_is_named_by_what_the_site_is(tiny):
    def names():
        runs = read_sweep({"trace": "tiny.swf", "machine": f"site:{folder}"}, tiny).runs
        return [run.name for run in runs]

    found = []
    for name, added in (("one", ""), ("two", ""), ("three", "PriorityWeightAge=9\n")):
        folder = tiny / name
        folder.mkdir()
        (folder / "slurm.conf").write_text(SLURM_CONF + added)
        found += names()
    assert found[0] == found[1] != found[2]


def test_a_worker_sets_its_number_of_threads_before_libraries_ask_for_it():
    code = "import sys; import optsched.sweeps.engines; print({'numpy', 'numba'} & {*sys.modules})"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "set()"


def test_what_is_finished_is_not_done_again(sweep_file, tiny, work, contents):
    smaller = sweep_file | {"jobs": "1:20"}
    work(smaller, tiny / "out")
    before = {path: path.stat().st_mtime_ns for path in (tiny / "out" / "runs").rglob("*")}
    _, outcomes, _ = work(smaller, tiny / "out")
    assert outcomes == []
    _, outcomes, _ = work(sweep_file, tiny / "out")
    assert len(outcomes) == 4
    assert {path: path.stat().st_mtime_ns for path in before} == before
    work(sweep_file, tiny / "at-once")
    assert contents(tiny / "out") == contents(tiny / "at-once")


def test_runs_under_their_former_names_are_not_done_again(sweep_file, tiny, work, contents):
    sweep, _, _ = work(sweep_file, tiny / "out")
    before = contents(tiny / "out")
    for run in sweep.plan.runs:
        (sweep.runs / run.name).rename(sweep.runs / run.former_name)
    _, outcomes, merged = work(sweep_file, tiny / "out")
    assert (outcomes, merged) == ([], True)
    assert contents(tiny / "out") == before


def test_more_is_kept_when_more_is_asked_for(sweep_file, tiny, work, contents):
    for keep, outcomes_due in (("summary", 8), ("all", 8), ("jobs", 0)):
        _, outcomes, _ = work(sweep_file | {"keep": keep}, tiny / "out")
        assert len(outcomes) == outcomes_due
        for folder in (tiny / "out" / "runs").iterdir():
            assert {file.name for file in folder.iterdir()} == KEPT[
                "all" if keep == "jobs" else keep
            ]


def test_a_failed_run_ends_no_other_and_is_tried_again(sweep_file, tiny, work, contents):
    sweep_file["jobs"] = ["1:20", "1:99"]
    sweep, outcomes, merged = work(sweep_file, tiny / "out")
    assert merged
    failed = {outcome.name for outcome in outcomes if outcome.error is not None}
    assert failed == {run.name for run in sweep.plan.runs if run.values["jobs"] == "1:99"}
    assert failed == set(sweep.failures())
    assert {path.stem for path in (tiny / "out" / "failed").iterdir()} == failed
    assert {path.name for path in (tiny / "out" / "runs").iterdir()}.isdisjoint(failed)
    table = pd.read_parquet(tiny / "out" / "results.parquet").set_index("run")
    assert set(table.index[table.error.notna()]) == failed
    assert table.error.dropna().str.contains("99").all()
    assert table.mean_wait.notna().sum() == 4
    _, again, _ = work(sweep_file, tiny / "out")
    assert {outcome.name for outcome in again} == failed


def test_a_run_that_succeeds_at_last_leaves_no_trace_of_its_failure(
    sweep_file, tiny, work, contents
):
    work(sweep_file, tiny / "smooth")
    blocked = tiny / "out" / "runs" / read_sweep(sweep_file).runs[3].name
    blocked.mkdir(parents=True)
    (tiny / "out" / "sweep.json").write_text("{}")
    (blocked / "thesis.tex").write_text("years of work")
    sweep, _, merged = work(sweep_file, tiny / "out")
    assert merged
    assert list(sweep.failures()) == [blocked.name]
    (blocked / "thesis.tex").unlink()
    _, outcomes, _ = work(sweep_file, tiny / "out")
    assert [outcome.name for outcome in outcomes] == [blocked.name]
    assert contents(tiny / "out") == contents(tiny / "smooth")
    assert {p.name for p in (tiny / "out").iterdir()} == {
        p.name for p in (tiny / "smooth").iterdir()
    }


def test_copies_of_shards_are_merged(sweep_file, tiny, work, contents):
    """Nodes without a common file system; on one of them a run has failed that was done again."""
    work(sweep_file, tiny / "smooth")
    for number in (1, 2):
        sweep, _, merged = work(sweep_file, tiny / f"node-{number}", (number, 2))
        assert not merged
    note = tiny / "node-1" / "failed" / f"{sweep.own[0].name}.json"
    note.parent.mkdir()
    note.write_text('{"error": "out of memory"}')
    for number in (1, 2):
        shutil.copytree(tiny / f"node-{number}", tiny / "out", dirs_exist_ok=True)
    _, outcomes, merged = work(sweep_file, tiny / "out")
    assert (outcomes, merged) == ([], True)
    assert contents(tiny / "out") == contents(tiny / "smooth")


def test_results_of_a_former_sweep_file_do_not_stay(sweep_file, tiny, work):
    work(sweep_file | {"jobs": "1:20"}, tiny / "out")
    report(tiny / "out")
    assert {"report.html", "waits.svg"} <= {path.name for path in (tiny / "out").iterdir()}
    sweep, outcomes, merged = work(sweep_file | {"jobs": ["1:20", "1:25"]}, tiny / "out", (1, 8))
    assert (len(sweep.own), outcomes, merged) == (1, [], False)
    assert {path.name for path in (tiny / "out").iterdir()} == {"sweep.json", "runs"}


def test_a_worker_process_that_dies_loses_no_run(sweep_file, tiny, contents, work):
    sweep_file |= {"seed": list(range(3)), "runs": sweep_file["runs"][1:]}  # 12 runs
    sweep = Sweep(read_sweep(sweep_file), tiny / "out")
    names = []
    before = set(multiprocessing.active_children())
    with closing(sweep.work(LocalProcesses(2))) as outcomes:
        for outcome in outcomes:
            assert outcome.error is None
            names.append(outcome.name)
            if len(names) == 3:
                for child in set(multiprocessing.active_children()) - before:
                    os.kill(child.pid, signal.SIGKILL)
    assert sorted(names) == sorted(run.name for run in sweep.plan.runs)
    assert sweep.finish()
    work(sweep_file, tiny / "undisturbed")
    assert contents(tiny / "out") == contents(tiny / "undisturbed")


def test_a_sweep_that_is_given_up_leaves_finished_folders_alone(sweep_file, tiny):
    sweep = Sweep(read_sweep(sweep_file), tiny / "out")
    before = set(multiprocessing.active_children())
    with closing(sweep.work(LocalProcesses(2))) as outcomes:
        done = next(outcomes)
    assert set(multiprocessing.active_children()) == before
    names = {path.name for path in (tiny / "out" / "runs").iterdir()}
    assert done.name in names
    assert names <= {run.name for run in sweep.plan.runs}
    assert not sweep.finish()


def test_what_dead_processes_have_left_is_removed(sweep_file, tiny, work, contents):
    work(sweep_file, tiny / "smooth")
    names = [run.name for run in read_sweep(sweep_file).runs]
    host = os.uname().nodename.partition(".")[0]
    child = subprocess.Popen(["true"])
    child.wait()
    runs = tiny / "out" / "runs"
    runs.mkdir(parents=True)
    (tiny / "out" / "sweep.json").write_text("{}")
    dead = runs / f".{names[0]}.{host}-{child.pid}.partial"
    living = runs / f".{names[1]}.{host}-{os.getppid()}.partial"
    elsewhere = runs / f".{names[2]}.elsewhere-{child.pid}.partial"
    (tiny / "out" / f".results.csv.{host}-{child.pid}.partial").write_text("run,tra")
    for folder in (dead, living, elsewhere):
        folder.mkdir()
        (folder / "run.json").write_text("{")
    Sweep(read_sweep(sweep_file), tiny / "out")
    assert set(runs.iterdir()) == {living, elsewhere}  # they may be at work
    work(sweep_file, tiny / "out")
    assert contents(tiny / "out") == contents(tiny / "smooth")  # all is finished: they are not


def test_a_trace_that_changes_on_the_way_is_noticed(sweep_file, tiny):
    run = read_sweep(sweep_file).runs[0]
    with (tiny / "tiny.swf").open("a") as file:
        file.write("; Note: touched\n")
    outcome = execute(Task(run, str(tiny / "run"), "jobs"))
    assert outcome.error == f"{tiny / 'tiny.swf'}: was changed after the sweep began"
    assert not (tiny / "run").exists()


def test_demands_are_part_of_a_run_and_do_not_change_on_the_way(sweep_file, tiny):
    plain = read_sweep(sweep_file).runs[0]
    assert plain.trace.demands_sha256 is None
    rows = "".join(f"{job},500\n" for job in range(1, 31))
    beside = tiny / "tiny.swf.demands.csv"
    beside.write_text("job_id,bandwidth\n" + rows)
    run = read_sweep(sweep_file).runs[0]
    assert run.name != plain.name
    assert execute(Task(run, str(tiny / "run"), "jobs")).error is None
    config = json.loads((tiny / "run" / "run.json").read_text())
    assert config["demands_sha256"] == run.trace.demands_sha256
    Sweep(read_sweep(sweep_file), tiny / "out")
    [described, *_] = json.loads((tiny / "out" / "sweep.json").read_text())["runs"]
    assert described["demands_sha256"] == run.trace.demands_sha256
    beside.write_text("job_id,bandwidth\n" + rows.replace("500", "600"))
    assert read_sweep(sweep_file).runs[0].name not in (run.name, plain.name)
    outcome = execute(Task(plain, str(tiny / "other"), "jobs"))
    assert outcome.error == f"{beside}: was changed after the sweep began"
    assert not (tiny / "other").exists()


def test_a_folder_with_other_things_is_refused(sweep_file, tiny):
    (tiny / "out").mkdir()
    (tiny / "out" / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match=r"other things in it \(no sweep.json\)"):
        optsched.sweep(sweep_file, tiny / "out")
    with pytest.raises(InputError, match="is a file"):
        optsched.sweep(sweep_file, tiny / "tiny.swf")


def test_runs_of_other_sweep_files_and_of_several_versions_are_told(sweep_file, tiny, work, caplog):
    caplog.set_level("INFO", "optsched")
    sweep, _, _ = work(sweep_file, tiny / "out")
    assert caplog.text == ""
    run = sweep.runs / sweep.plan.runs[0].name / "run.json"
    run.write_text(run.read_text().replace('"optsched": "', '"optsched": "9.'))
    work(sweep_file | {"jobs": "1:30"}, tiny / "out")
    assert "4 runs in" in caplog.text
    assert "several versions" not in caplog.text
    work(sweep_file, tiny / "out")
    assert "several versions of optsched: 1." in caplog.text


def test_solver_threads_and_workers_do_not_exceed_the_cores(sweep_file, monkeypatch, caplog):
    runs = [replace(run, threads=k) for run, k in zip(read_sweep(sweep_file).runs, (1, 3, 2, 1))]
    for available, workers in ((1, 1), (6, 2), (8, 2), (64, 4)):
        monkeypatch.setattr("optsched.compilation.cores", lambda available=available: available)
        assert start_engine(runs, None).slots == workers
    assert [record.getMessage() for record in caplog.records] == [
        "more threads than cores: 1 x 3 solver threads on 1"
    ]
    monkeypatch.setattr("optsched.compilation.cores", lambda: 4)
    assert start_engine(runs, 2).slots == 2
    assert "more threads than cores: 2 x 3 solver threads on 4" in caplog.text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("dask", None, None), "address: missing; expected that of a Dask scheduler"),
        (("dask", 2, "tcp://127.0.0.1:1"), "workers: is of the engine local"),
        (("local", None, "tcp://127.0.0.1:1"), "address: is of the engine dask"),
        (("local", 0, None), "workers: 0; expected a whole number from 1"),
        (("slurm", None, None), "engine: 'slurm'; expected local or dask"),
    ],
)
def test_what_does_not_belong_to_an_engine_is_refused(options, words):
    with pytest.raises(InputError, match=words):
        check_engine(*options)


def test_values_of_several_types_make_a_column_of_text(sweep_file, tiny, work):
    sweep_file["runs"] = [{"policy": "window", "settings": {"window": [2, "3"]}}]
    sweep, _, _ = work(sweep_file, tiny / "out")
    table = merge(sweep.plan, sweep.runs, {}).to_pydict()
    assert table["settings.window"] == ["2", "3", "2", "3"]
    assert table["jobs"] == [20, 20, 30, 30]


def cut(size):
    return lambda path: os.truncate(path, size)


def cut_last_line(path):
    path.write_text(path.read_text().rpartition("\n")[0].rpartition("\n")[0] + "\n")


def say(**fields):
    return lambda path: path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def nest(path):
    path.write_text("[" * 100_000)


@pytest.mark.parametrize(
    ("name", "damage", "told"),
    [
        ("run.json", cut(0), "damaged"),
        ("run.json", lambda path: path.write_text("{}"), "damaged"),
        ("run.json", say(versions=None), "damaged"),
        ("run.json", say(jobs=[1]), "damaged"),
        ("run.json", nest, "damaged"),
        ("summary.json", nest, "damaged"),
        ("summary.json", lambda path: path.write_text("{}"), "damaged"),
        ("summary.json", say(jobs="x"), "damaged"),
        ("summary.json", say(jobs=None), "damaged"),
        ("summary.json", say(cleaning={}), "damaged"),
        ("summary.json", say(makespan=10**30), "damaged"),
        ("summary.json", say(**{'mean "wait"': 1}), "damaged"),
        ("summary.json", say(mean_slots=[1]), "damaged"),
        ("timing.json", nest, "damaged"),
        ("load.svg", Path.touch, "damaged"),
        ("report.html", Path.touch, "damaged"),
        ("run.json", os.remove, "missing"),
        ("summary.json", cut(0), "damaged"),
        ("summary.json", cut(100), "damaged"),
        ("summary.json", lambda path: path.write_text("[]"), "damaged"),
        ("summary.json", lambda path: path.write_bytes(bytes(path.stat().st_size)), "damaged"),
        ("jobs.parquet", cut(100), "damaged"),
        ("jobs.parquet", cut(0), "damaged"),
        ("jobs.parquet", lambda path: path.write_bytes(bytes(path.stat().st_size)), "damaged"),
        ("jobs.parquet", lambda path: path.write_bytes(path.read_bytes() + b"more"), "damaged"),
        ("jobs.parquet", os.remove, "missing"),
        ("decisions.parquet", cut(3), "damaged"),
        ("decisions.parquet", os.remove, "missing"),
        ("jobs.csv", cut(500), "damaged"),
        ("jobs.csv", cut_last_line, "damaged"),
        ("timing.json", os.remove, "missing"),
    ],
)
def test_a_run_that_is_not_whole_is_told_and_done_again(
    name, damage, told, sweep_file, tiny, work, contents, caplog
):
    sweep_file = {key: sweep_file[key] for key in ("trace", "machine")} | {
        "policy": ["fcfs", "easy"]
    }
    sweep_file["keep"] = "all"
    work(sweep_file, tiny / "smooth")
    shutil.copytree(tiny / "smooth", tiny / "out")
    runs = [tiny / "out" / "runs" / run.name for run in read_sweep(sweep_file).runs]
    whole = runs[0].stat().st_ino
    damage(runs[1] / name)
    caplog.clear()
    _, outcomes, merged = work(sweep_file, tiny / "out")
    expected = f"1 run is damaged and is repeated: {runs[1] / name} is {told}"
    assert [record.getMessage() for record in caplog.records] == [expected]
    assert [(outcome.name, outcome.error) for outcome in outcomes] == [(runs[1].name, None)]
    assert merged
    assert runs[0].stat().st_ino == whole
    assert contents(tiny / "out") == contents(tiny / "smooth")


def test_damaged_runs_are_told_in_one_line(sweep_file, tiny, work, caplog):
    sweep, _, _ = work(sweep_file, tiny / "out")
    for run in sweep.plan.runs[:3]:
        (sweep.runs / run.name / "run.json").write_text("")
    (sweep.runs / sweep.plan.runs[4].name / "summary.json").write_text("")
    Sweep(sweep.plan, tiny / "out")
    file = sweep.runs / sweep.plan.runs[0].name / "run.json"
    assert [record.getMessage() for record in caplog.records] == [
        f"4 runs are damaged and are repeated: {file} is damaged, for instance"
    ]
    caplog.clear()
    other = Sweep(sweep.plan, tiny / "out", (6, 8))
    assert other.pending == ()
    assert not other.finish()
    assert [record.getMessage() for record in caplog.records] == [
        f"4 runs of other shards are damaged: {file} is damaged"
    ]


def test_a_damaged_note_of_a_failure_does_not_matter(sweep_file, tiny, work):
    sweep_file["jobs"] = ["1:20", "1:99"]
    sweep, _, _ = work(sweep_file, tiny / "out")
    failed = sorted(sweep.failures())
    for name, text in zip(failed, ("", "{", "{}")):
        (sweep.failed / f"{name}.json").write_text(text)
    sweep, outcomes, merged = work(sweep_file, tiny / "out")
    assert merged
    assert sorted(outcome.name for outcome in outcomes) == failed == sorted(sweep.failures())


def test_results_are_written_both_or_not_at_all(sweep_file, tiny, work, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "Error writing bytes to file")

    monkeypatch.setattr("pyarrow.parquet.write_table", full)
    expected = f"results.parquet: cannot be written: {os.strerror(errno.ENOSPC)}$"
    with pytest.raises(InputError, match=expected):
        work(sweep_file | {"keep": "summary"}, tiny / "out")
    assert {path.name for path in (tiny / "out").iterdir()} == {"sweep.json", "runs"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_is_put_off_while_the_pool_is_locked(number, interruptible):
    done = []

    def interrupted():
        with engines._without_interrupts():
            os.kill(os.getpid(), number)
            done.append(number)

    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            interrupted()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert done == [number]


def test_a_script_without_a_guard_gets_advice_and_no_traceback_of_a_worker(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import optsched\n"
        "plan = {'trace': 'sample-256', 'jobs': '1:5', 'policy': 'fcfs'}\n"
        "try:\n"
        "    optsched.sweep(plan, 'out', workers=1)\n"
        "except optsched.InputError as error:\n"
        "    print(error)\n"
    )
    command = [sys.executable, str(script)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    advice = 'in a script, call optsched.sweep below if __name__ == "__main__":'
    assert done.stdout == f"the worker processes cannot start; {advice}\n"
    assert done.stderr == ""
