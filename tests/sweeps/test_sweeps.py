"""Sweeps: the runs that a file states, and what their folder holds, whoever did the work."""

import errno
import json
import multiprocessing
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from contextlib import chdir, closing
from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import optsched
from optsched.cli import run as optsched_command
from optsched.content import bundled
from optsched.errors import InputError
from optsched.folders import finished_runs
from optsched.sweeps import engines
from optsched.sweeps.engines import LocalProcesses, Task, check_engine, execute, fault, start_engine
from optsched.sweeps.sweep_file import read_sweep
from optsched.sweeps.sweep_folder import report
from optsched.sweeps.sweeping import Sweep, merge


@pytest.fixture
def read(tiny):
    """Return the function that reads a sweep file from text; its file lies beside ``tiny.swf``."""
    os.mkfifo(tiny / "pipe.swf")

    def from_text(text):
        (tiny / "sweep.toml").write_text(text)
        return read_sweep(tiny / "sweep.toml")

    return from_text


def stated(sweep_file, *names):
    return [tuple(run.columns.get(name) for name in names) for run in sweep_file.runs]


NAMES = {
    "0713bb78db9d1460": "fcfs-0713bb78db9d",
    "de57272eaab8eba6": "fcfs-de57272eaab8",
    "e643015eb89280e1": "easy-e643015eb892",
    "7f7bd5cfd12ce6d2": "easy-7f7bd5cfd12c",
    "02039c7539d31bec": "window-greedy-window=4-backfill=none-02039c7539d3",
    "c6428b154625da70": "window-backfill=none-c6428b154625",
    "6a95387ed7e08714": "easy-contiguity-6a95387ed7e0",
}
"""Of the runs of a sweep: as version 0.1.0 named them, and since."""

HEAD = 'trace = "tiny.swf"\nmachine = "nodes:10"\n'
WINDOW = HEAD + 'policy = "window"\n'


def test_lists_are_combined_in_the_order_of_the_file(read):
    lists = 'jobs = ["1:5", "1:9"]\npolicy = ["fcfs", "easy", "sjf"]\n'
    product = read(HEAD + lists)
    assert stated(product, "jobs", "policy") == [
        (jobs, policy) for jobs in ("1:5", "1:9") for policy in ("fcfs", "easy", "sjf")
    ]
    assert product.varying == ["jobs", "policy"]
    zipped = read(HEAD + 'combine = "zip"\njobs = ["1:5", "1:9"]\npolicy = ["fcfs", "easy"]')
    assert stated(zipped, "jobs", "policy") == [("1:5", "fcfs"), ("1:9", "easy")]


def test_blocks_inherit_what_they_do_not_say(read):
    first = '[[runs]]\npolicy = "window"\nsettings.window = [3, 4]\n'
    second = '[[runs]]\npolicy = "window"\njobs = "2:6"\nsettings.interval = 60\n'
    sweep_file = read(HEAD + 'jobs = ["1:5", "1:9"]\nsettings.interval = 10\n' + first + second)
    product = [(jobs, window, 10) for jobs in ("1:5", "1:9") for window in (3, 4)]
    columns = ("jobs", "settings.window", "settings.interval")
    assert stated(sweep_file, *columns) == [*product, ("2:6", None, 60)]


@given(st.lists(st.integers(1, 4), min_size=1, max_size=6), st.integers(1, 5))
def test_a_product_is_complete_and_each_of_its_runs_is_there_once(tmp_path_factory, windows, seeds):
    trace = tmp_path_factory.getbasetemp() / "any.swf"
    trace.write_text("; MaxProcs: 4\n1 0 0 5 1 5 -1 1 5 -1 1 1 1 1 1 1 -1 -1\n")
    sweep_file = read_sweep(
        {"trace": trace, "policy": "window", "seed": range(seeds), "settings": {"window": windows}}
    )
    expected = {(seed, window) for seed in range(seeds) for window in windows}
    assert len(sweep_file.runs) == len(expected)
    assert set(stated(sweep_file, "seed", "settings.window")) == expected
    assert sweep_file.duplicates == seeds * len(windows) - len(expected)
    assert len({run.name for run in sweep_file.runs}) == len(expected)


def test_what_is_the_same_run_has_the_same_name(read, tiny):
    """However it is written: what counts is what is simulated."""
    profile = tiny / "mine.toml"
    profile.write_text('solver = "highs"\n[budget]\nwork = 7\n')
    (tiny / "ten.toml").write_text('kind = "nodes"\nsize = 10\n')
    (tiny / "copy.swf").write_bytes((tiny / "tiny.swf").read_bytes())
    ways = [
        ('policy = "easy"', 'event_order = "batched"'),
        ('trace = "copy.swf"', f"trace = {json.dumps(str(tiny / 'tiny.swf'))}"),
        ('machine = "ten.toml"', 'machine = "nodes:10"'),
        ('jobs = "1:30"', 'jobs = "01:030"'),
        ('policy = "window"', 'policy = "window"\nsettings.window = "5"'),
        ('policy = "window"', 'policy = "window"\nsolver = "branch-and-bound"'),
    ]
    base = {"trace": 'trace = "tiny.swf"', "machine": 'machine = "nodes:10"'}
    for two in ways:
        texts = ["\n".join((base | {way.partition(" ")[0]: way}).values()) for way in two]
        [one], [other] = (read(text).runs for text in texts)
        assert one.name == other.name, two
    different = ["", 'policy = "window"', 'policy = "window"\nseed = 3', 'jobs = "1:30"']
    different += ['policy = "window"\nsolver = "mine.toml"', 'event_order = "one-by-one"']
    assert len({read(HEAD + way).runs[0].name for way in different}) == len(different)
    before = read(HEAD + different[4]).runs[0].name
    profile.write_text('solver = "highs"\n[budget]\nwork = 8\n')
    assert read(HEAD + different[4]).runs[0].name != before


def test_the_threads_of_a_run_are_those_of_its_solver(read):
    for solver, number in (("cp-sat-2-workers", 2), ("cp-sat", 1), ("highs", 1)):
        [run] = read(WINDOW + f'solver = "{solver}"').runs
        assert run.threads == number


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('trace = "tinny.swf"', ["trace: ", "no such file", "did you mean tiny.swf?"]),
        ('trace = "pipe.swf"', ["trace: ", "pipe.swf: is a pipe or a device"]),
        (HEAD + 'policy = ["easy", "esay"]', ["policy: unknown policy 'esay'; did you mean easy"]),
        (HEAD + "policy = []", ["policy: an empty list; expected at least one value"]),
        (HEAD + 'solver = "absent.toml"', ["solver: ", "absent.toml: No such file"]),
        (HEAD + "time_limit = nan", ["time_limit: nan; expected seconds above 0"]),
        (HEAD + 'event_order = "singly"', ["event_order: 'singly'; expected batched or one"]),
        (HEAD + 'combine = "sum"', ["combine: 'sum'; expected one of product, zip"]),
        (HEAD + "settings = 5", ["settings: 5; expected a table"]),
        (HEAD + "settings.windw = 5", ["settings.windw: unknown setting 'windw' of policy 'easy'"]),
        (WINDOW + "settings.window = 0", ["settings.window: window 0; expected"]),
        (WINDOW + "settings.window = inf", ["inf; expected a number, a text"]),
        (WINDOW + "settings.window = [5, 99999999999999999999]", ["of at most 2"]),
        (HEAD + "runs = 3", ["runs: expected tables, each under the heading [[runs]]"]),
        (HEAD + '[[runs]]\nkeep = "all"', ["runs[1].keep: unknown key 'keep'"]),
        (HEAD + "[[runs]]\n[[runs]]\nseed = [1, 2]", ["runs[2].seed: policy 'easy' poses no"]),
        (HEAD + 'combine = "zip"\nseed = [1, 2, 3]\nload = [1, 2]', ["seed has 3, load has 2"]),
        (HEAD + f"seed = {[*range(1001)]}\nwork_limit = {[*range(1, 1001)]}", ["1,001,000 runs"]),
        (HEAD + 'load = [1, "x"]', ["load: 'x'; expected a factor, 0.8 for instance"]),
        (HEAD + "load = 0", ["load: 0; expected a factor from 1e-06 to 1e+06"]),
        (HEAD + "shake_seed = 1", ["shake_seed: nothing to shake"]),
        (HEAD + 'solver = "greedy"\nwork_limit = 5', ["so it has no use for a solver, a limit"]),
        ("trace = ", ["not TOML"]),
    ],
)
def test_a_mistake_is_told_with_its_file_and_field(text, words, read):
    with pytest.raises(InputError) as caught:
        read(text)
    for word in words:
        assert word in str(caught.value)
    assert caught.value.file.endswith("sweep.toml")


def test_all_mistakes_are_told_at_once(read):
    with pytest.raises(InputError) as caught:
        read('polcy = 1\nmachine = "node"\n[[runs]]\nseed = "a"\n[[runs]]\njobs = 3\n')
    fields = [mistake.partition(":")[0] for mistake in caught.value.mistakes]
    assert sorted(fields) == ["machine", "polcy", "runs[1].seed", "runs[2].jobs", "trace"]
    with pytest.raises(InputError, match="sweep file: 5; expected a TOML file or a mapping"):
        read_sweep(5)


def test_the_file_of_a_profile_may_have_any_name(read, tiny):
    (tiny / "a=b.toml").write_text("solver = 'greedy'\n")
    [run] = read(WINDOW + 'solver = "a=b.toml"').runs
    [named] = read(WINDOW + 'solver = "window-mkp=greedy"').runs
    assert run.arguments["solver"].name == "greedy"
    assert named.arguments["solver"] == "window-mkp=greedy"


def test_runs_keep_their_names():
    """Names of runs are folders of old sweeps: they may not change with a version."""
    sample = bundled("traces") / "samples" / "sample-256.swf"
    table = {"trace": sample, "machine": "nodes:256", "jobs": "1:20"}
    greedy = {"policy": "window", "solver": "greedy", "work_limit": 3}
    charged = {"policy": "window", "seed": 2, "charge_decisions": True, "time_limit": 3}
    table["runs"] = [
        {"policy": ["fcfs", "easy"], "event_order": ["batched", "one-by-one"], "large_from": 5},
        greedy | {"settings": {"window": 4, "backfill": "none"}},
        charged | {"settings": {"backfill": "none"}},
        {"execution": "contiguity", "settings": {"alpha": 0.3}},
    ]
    assert {run.former_name: run.name for run in read_sweep(table).runs} == NAMES


def test_a_name_is_portable_and_not_too_long(tiny):
    (tiny / "mine.py").write_text(
        "from dataclasses import dataclass\nfrom optsched.extend import Policy\n\n\n@dataclass\n"
        "class Mine(Policy):\n    text: str = ''\n\n    def decide(self, system):\n        pass\n"
    )
    table = {"trace": "tiny.swf", "machine": "nodes:10", "policy": "mine.py:Mine"}
    [plain] = read_sweep(table).runs
    assert re.fullmatch("Mine-[0-9a-f]{12}", plain.name)
    [odd] = read_sweep(table | {"settings": {"text": "../ü b/" + 99 * "x"}}).runs
    assert re.fullmatch("Mine-text=.._b_x{45}-[0-9a-f]{12}", odd.name)


def test_a_setting_that_came_later_names_a_run_if_it_is_not_at_its_default(tiny):
    def names(**settings):
        table = {"trace": "tiny.swf", "machine": "nodes:10", "execution": "contiguity"}
        return [run.name for run in read_sweep(table | {"settings": settings}).runs]

    assert names(stated="scattered") == names() != names(stated="contiguous")


def test_loads_and_shakes_without_effect_are_one_run(read):
    lists = "load = [1, 0.8]\nshake = [0, 60]\nshake_seed = [1, 2]\n"
    planned = read(HEAD + lists)
    assert (len(planned.runs), planned.duplicates) == (6, 2)
    assert {run.name for run in read(HEAD).runs} <= {run.name for run in planned.runs}


KEPT = {
    "summary": {"run.json", "summary.json", "timing.json"},
    "jobs": {"run.json", "summary.json", "timing.json", "jobs.parquet", "decisions.parquet"},
}
KEPT["all"] = KEPT["jobs"] | {"jobs.csv"}

SLURM_CONF = "NodeName=n[1-5] CPUs=2\nPartitionName=all Nodes=ALL Default=YES\n"
"""A cluster as large as the machine of ``tiny.swf``."""


IN_THIS_PROCESS = SimpleNamespace(execute_all=lambda tasks: (execute(task) for task in tasks))
"""An engine without processes, for what does not depend on them."""

EIGHT_RUNS = {
    "trace": "tiny.swf",
    "machine": "nodes:10",
    "jobs": ["1:20", "1:30"],
    "runs": [{"policy": ["fcfs", "easy"]}, {"policy": "window", "settings": {"window": [2, 4]}}],
}


def work(sweep_file, folder, shard=(1, 1)):
    """Do a part of a sweep; return the sweep, its outcomes, and whether all is merged."""
    sweep = Sweep(read_sweep(sweep_file), folder, shard)
    outcomes = list(sweep.work(IN_THIS_PROCESS))
    return sweep, outcomes, sweep.finish()


@pytest.fixture(scope="module")
def finished(write_tiny, tmp_path_factory):
    """Return the folder of the sweep of eight runs, beside its trace; it is only read."""
    folder = tmp_path_factory.mktemp("finished")
    write_tiny(folder)
    with chdir(folder):
        _, outcomes, merged = work(EIGHT_RUNS, folder / "out")
    assert (len(outcomes), merged) == (8, True)
    return folder / "out"


@pytest.fixture
def out(finished, tiny):
    """Return a copy of the folder of the sweep of eight runs."""
    shutil.copytree(finished, tiny / "out")
    return tiny / "out"


def names_in(folder):
    return {path.name for path in folder.iterdir()}


def test_a_sweep_is_the_simulations_that_the_sweep_file_names(finished, tiny):
    table = pd.read_parquet(finished / "results.parquet")
    assert list(table.run) == [run.name for run in read_sweep(EIGHT_RUNS).runs]
    assert list(table["config.jobs"]) == ["1:20", "1:20", "1:30", "1:30"] * 2
    assert table["settings.window"].tolist()[4:] == [2, 4, 2, 4]
    assert table.error.isna().all()
    settings = {"window": 4}
    alone = optsched.simulate("tiny.swf", "nodes:10", "window", settings=settings, jobs=(1, 20))
    row = table.iloc[5]
    figures = ("jobs", "mean_wait", "problems")
    assert [row[name] for name in figures] == [alone.summary[name] for name in figures]
    assert row.mean_wait > 0
    folder = finished / "runs" / row.run
    assert names_in(folder) == KEPT["jobs"]
    assert json.loads((folder / "summary.json").read_text()) == alone.summary
    config = json.loads((folder / "run.json").read_text())
    assert config == json.loads(json.dumps(alone.config))
    csv = pd.read_csv(finished / "results.csv")
    assert csv.mean_wait.tolist() == table.mean_wait.tolist()


def test_the_bytes_do_not_depend_on_how_the_work_is_shared(tiny, finished, contents):
    assert len(optsched.sweep(EIGHT_RUNS, tiny / "two", workers=2)) == 8
    assert contents(finished) == contents(tiny / "two")
    for number in (3, 1, 2):
        _, outcomes, merged = work(EIGHT_RUNS, tiny / "shards", (number, 3))
        assert len(outcomes) == (2 if number == 3 else 3)
        assert merged == (number == 2)
        assert (tiny / "shards" / "results.csv").exists() == merged
    assert contents(finished) == contents(tiny / "shards")


def test_the_bytes_do_not_depend_on_where_the_sweep_file_lies(tiny, contents, monkeypatch):
    text = 'trace = "tiny.swf"\nmachine = "ten.toml"\npolicy = "window"\nsolver = "mine.toml"\n'
    (tiny / "mine.toml").write_text('solver = "highs"\nseed = 4\n[budget]\nwork = 7\n')
    (tiny / "ten.toml").write_text('kind = "nodes"\nsize = 10\n')
    (tiny / "sweep.toml").write_text(text)
    shutil.copytree(tiny, tiny / "moved")
    work(tiny / "sweep.toml", tiny / "here")
    monkeypatch.chdir(tiny / "moved")
    work("sweep.toml", tiny / "there")
    assert contents(tiny / "here") == contents(tiny / "there")
    [config] = [json.loads(f.read_text()) for f in (tiny / "here" / "runs").glob("*/run.json")]
    assert (config["trace"], config["machine"]) == ("tiny.swf", "nodes:10")
    assert (config["solver"], config["seed"]) == ("highs", 4)
    assert config["budget"] == {"seconds": None, "work": 7}


@pytest.mark.parametrize(
    "machine", ["site:small/slurm.conf", pytest.param("site:small", marks=pytest.mark.long)]
)
def test_a_site_lies_beside_the_sweep_file(machine, tiny, contents, monkeypatch):
    places = tiny / "one", tiny / "two"
    text = f'trace = "tiny.swf"\nmachine = "{machine}"\npolicy = ["easy", "multifactor"]\n'
    for place in places:
        (place / "small").mkdir(parents=True)
        shutil.copy("tiny.swf", place)
        (place / "sweep.toml").write_text(text)
        (place / "small" / "slurm.conf").write_text(SLURM_CONF)
    optsched.sweep(places[0] / "sweep.toml", places[0] / "results", workers=1)
    work(places[1] / "sweep.toml", places[1] / "results")
    assert contents(places[0] / "results") == contents(places[1] / "results")
    configs = [json.loads(f.read_text()) for f in (places[0] / "results").glob("runs/*/run.json")]
    assert {config["machine"] for config in configs} == {machine}
    monkeypatch.chdir(places[0])  # the folder of the sweep file
    for config in configs:
        words = shlex.split(config["repeat"].replace("DIR", config["policy"]))
        assert optsched_command([*words[1:], "--no-plots"]) == 0
        repeated = json.loads((places[0] / config["policy"] / "run.json").read_text())
        assert repeated["machine"] == config["machine"]


def test_a_run_on_a_site_is_named_by_what_the_site_is(tiny):
    names = []
    for folder, added in (("one", ""), ("two", ""), ("three", "PriorityWeightAge=9\n")):
        (tiny / folder).mkdir()
        (tiny / folder / "slurm.conf").write_text(SLURM_CONF + added)
        [run] = read_sweep({"trace": "tiny.swf", "machine": f"site:{folder}"}).runs
        names.append(run.name)
    assert names[0] == names[1] != names[2]


def test_a_worker_sets_its_number_of_threads_before_libraries_ask_for_it():
    code = "import sys; import optsched.sweeps.engines; print({'numpy', 'numba'} & {*sys.modules})"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "set()"


def test_runs_under_their_former_names_are_not_done_again(out, finished, contents):
    for run in read_sweep(EIGHT_RUNS).runs:
        (out / "runs" / run.name).rename(out / "runs" / run.former_name)
    _, outcomes, merged = work(EIGHT_RUNS, out)
    assert (outcomes, merged) == ([], True)
    assert contents(out) == contents(finished)


def test_more_is_kept_when_more_is_asked_for(tiny):
    for keep, due, kept in (("summary", 8, "summary"), ("all", 8, "all"), ("jobs", 0, "all")):
        _, outcomes, _ = work(EIGHT_RUNS | {"keep": keep}, tiny / "out")
        assert len(outcomes) == due
        for folder in (tiny / "out" / "runs").iterdir():
            assert names_in(folder) == KEPT[kept]


def test_a_failed_run_ends_no_other_and_is_tried_again(tiny):
    sweep_file = EIGHT_RUNS | {"jobs": ["1:20", "1:99"]}
    sweep, outcomes, merged = work(sweep_file, tiny / "out")
    assert merged
    failed = {outcome.name for outcome in outcomes if outcome.error is not None}
    assert failed == {run.name for run in sweep.plan.runs if run.values["jobs"] == "1:99"}
    assert failed == set(sweep.failures())
    assert names_in(tiny / "out" / "failed") == {f"{name}.json" for name in failed}
    assert names_in(tiny / "out" / "runs").isdisjoint(failed)
    table = pd.read_parquet(tiny / "out" / "results.parquet").set_index("run")
    assert set(table.index[table.error.notna()]) == failed
    assert table.error.dropna().str.contains("99").all()
    assert table.mean_wait.notna().sum() == 4
    for name, text in zip(sorted(failed), ("", "{", "{}")):  # damaged notes do not matter
        (sweep.failed / f"{name}.json").write_text(text)
    sweep, again, merged = work(sweep_file, tiny / "out")
    assert {outcome.name for outcome in again} == failed == set(sweep.failures())
    assert merged


def test_a_run_that_succeeds_at_last_leaves_no_trace_of_its_failure(out, finished, contents):
    blocked = out / "runs" / read_sweep(EIGHT_RUNS).runs[3].name
    shutil.rmtree(blocked)
    blocked.mkdir()
    (blocked / "thesis.tex").write_text("years of work")
    sweep, _, merged = work(EIGHT_RUNS, out)
    assert merged
    assert list(sweep.failures()) == [blocked.name]
    (blocked / "thesis.tex").unlink()
    _, outcomes, _ = work(EIGHT_RUNS, out)
    assert [outcome.name for outcome in outcomes] == [blocked.name]
    assert contents(out) == contents(finished)
    assert names_in(out) == names_in(finished)


def test_copies_of_shards_are_merged(tiny, finished, contents):
    """Nodes without a common file system; on one of them a run has failed that was done again."""
    for number in (1, 2):
        sweep, _, merged = work(EIGHT_RUNS, tiny / f"node-{number}", (number, 2))
        assert not merged
    note = tiny / "node-1" / "failed" / f"{sweep.own[0].name}.json"
    note.parent.mkdir()
    note.write_text('{"error": "out of memory"}')
    for number in (1, 2):
        shutil.copytree(tiny / f"node-{number}", tiny / "out", dirs_exist_ok=True)
    _, outcomes, merged = work(EIGHT_RUNS, tiny / "out")
    assert (outcomes, merged) == ([], True)
    assert contents(tiny / "out") == contents(finished)


def test_results_of_a_former_sweep_file_do_not_stay(tiny):
    out = tiny / "out"
    work(EIGHT_RUNS | {"jobs": "1:20"}, out)
    report(out)
    assert {"report.html", "waits.svg"} <= names_in(out)
    changed = EIGHT_RUNS | {"jobs": ["1:20", "1:25"]}
    sweep, outcomes, merged = work(changed, out, (1, 8))
    assert (len(sweep.own), outcomes, merged) == (1, [], False)
    assert names_in(out) == {"sweep.json", "runs"}


def test_a_worker_process_that_dies_loses_no_run(tiny, contents):
    sweep_file = EIGHT_RUNS | {"seed": list(range(3)), "runs": EIGHT_RUNS["runs"][1:]}  # 12 runs
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


def test_what_dead_processes_have_left_is_removed(out, finished, contents):
    names = [run.name for run in read_sweep(EIGHT_RUNS).runs]
    host = os.uname().nodename.partition(".")[0]
    child = subprocess.Popen(["true"])
    child.wait()
    processes = (f"{host}-{child.pid}", f"{host}-{os.getppid()}", f"elsewhere-{child.pid}")
    (out / f".results.csv.{processes[0]}.partial").write_text("run,tra")
    partial = [out / "runs" / f".{name}.{one}.partial" for name, one in zip(names, processes)]
    for name, folder in zip(names, partial):
        (out / "runs" / name).rename(folder)
        (folder / "run.json").write_text("{")
    Sweep(read_sweep(EIGHT_RUNS), out)
    assert set((out / "runs").glob(".*")) == {*partial[1:]}  # they may be at work
    work(EIGHT_RUNS, out)
    assert contents(out) == contents(finished)  # all is finished: they are not


def test_demands_are_part_of_a_run_and_neither_they_nor_the_trace_change_on_the_way(tiny):
    trace, beside = tiny / "tiny.swf", tiny / "tiny.swf.demands.csv"
    plain = read_sweep(EIGHT_RUNS).runs[0]
    beside.write_text("job_id,bandwidth\n" + "".join(f"{job},500\n" for job in range(1, 31)))
    run = read_sweep(EIGHT_RUNS).runs[0]
    assert execute(Task(run, str(tiny / "run"), "jobs")).error is None
    Sweep(read_sweep(EIGHT_RUNS), tiny / "out")
    config = json.loads((tiny / "run" / "run.json").read_text())
    described = json.loads((tiny / "out" / "sweep.json").read_text())["runs"][0]
    for one in (config, described):
        assert one["demands_sha256"] == run.trace.demands_sha256
    beside.write_text(beside.read_text().replace("500", "600"))
    other = read_sweep(EIGHT_RUNS).runs[0]
    assert len({plain.name, run.name, other.name}) == 3
    outcomes = [execute(Task(plain, str(tiny / "other"), "jobs"))]
    with trace.open("a") as file:
        file.write("; Note: touched\n")
    outcomes.append(execute(Task(other, str(tiny / "other"), "jobs")))
    told = [f"{changed}: was changed after the sweep began" for changed in (beside, trace)]
    assert [outcome.error for outcome in outcomes] == told
    assert not (tiny / "other").exists()


def test_runs_of_other_sweep_files_and_of_several_versions_are_told(out, caplog):
    caplog.set_level("INFO", "optsched")
    run = out / "runs" / read_sweep(EIGHT_RUNS).runs[0].name / "run.json"
    run.write_text(run.read_text().replace('"optsched": "', '"optsched": "9.'))
    work(EIGHT_RUNS | {"jobs": "1:30"}, out)
    assert "4 runs in" in caplog.text
    assert "several versions" not in caplog.text
    work(EIGHT_RUNS, out)
    assert "several versions of optsched: 1." in caplog.text


def test_solver_threads_and_workers_do_not_exceed_the_cores(tiny, monkeypatch, caplog):
    runs = [replace(run, threads=k) for run, k in zip(read_sweep(EIGHT_RUNS).runs, (1, 3, 2, 1))]
    for available, workers in ((1, 1), (6, 2), (8, 2), (64, 4)):
        monkeypatch.setattr("optsched.compilation.cores", lambda available=available: available)
        assert start_engine(runs, None).slots == workers
    assert caplog.messages == ["more threads than cores: 1 x 3 solver threads on 1"]
    monkeypatch.setattr("optsched.compilation.cores", lambda: 4)
    assert start_engine(runs, 2).slots == 2
    assert "more threads than cores: 2 x 3 solver threads on 4" in caplog.text


def test_an_engine_that_is_not_there_is_refused():
    with pytest.raises(InputError, match="engine: 'slurm'; expected local or dask"):
        check_engine("slurm", None, None)


def test_values_of_several_types_make_a_column_of_text(tiny):
    runs = [{"policy": "window", "settings": {"window": [2, "3"]}}]
    sweep, _, _ = work(EIGHT_RUNS | {"runs": runs}, tiny / "out")
    table = merge(sweep.plan, sweep.runs, {}).to_pydict()
    assert table["settings.window"] == ["2", "3", "2", "3"]
    assert table["jobs"] == [20, 20, 30, 30]


NESTED = b"[" * 100_000
DAMAGES = {
    "run.json": (0, b"{}", {"versions": None}, {"jobs": [1]}, NESTED),
    "summary.json": (
        *(0, 100, b"{}", b"[]", NESTED, lambda data: bytes(len(data))),
        *({"jobs": "x"}, {"jobs": None}, {"cleaning": {}}, {"makespan": 10**30}),
        *({'mean "wait"': 1}, {"mean_slots": [1]}),
    ),
    "timing.json": (NESTED,),
    "load.svg": (0,),
    "report.html": (0,),
    "jobs.parquet": (100, 0, lambda data: bytes(len(data)), lambda data: data + b"more"),
    "decisions.parquet": (3,),
    "jobs.csv": (500, lambda data: data[:-1].rpartition(b"\n")[0] + b"\n"),
}
"""What is done to files: they are cut at a size, replaced, say something else, or are changed."""


def damaged(data, damage):
    if isinstance(damage, dict):
        return json.dumps(json.loads(data) | damage).encode()
    if callable(damage):
        return damage(data)
    return data[:damage] if isinstance(damage, int) else damage


def test_a_run_that_is_not_whole_is_noticed(tiny):
    work({"trace": "tiny.swf", "machine": "nodes:10", "keep": "all"}, tiny / "out")
    [run] = (tiny / "out" / "runs").iterdir()
    assert fault(run, "all") is None
    for name, damages in DAMAGES.items():
        whole = (run / name).read_bytes() if name in KEPT["all"] else None
        for damage in damages:
            (run / name).write_bytes(damaged(whole or b"", damage))
            assert fault(run, "all") == f"{run / name} is damaged"
        (run / name).unlink()
        assert fault(run, "all") == (None if whole is None else f"{run / name} is missing")
        if whole is not None:
            (run / name).write_bytes(whole)


def test_a_damaged_run_is_told_and_done_again(out, finished, contents, caplog):
    runs = [out / "runs" / run.name for run in read_sweep(EIGHT_RUNS).runs]
    whole = runs[0].stat().st_ino
    os.truncate(runs[1] / "jobs.parquet", 100)
    _, outcomes, merged = work(EIGHT_RUNS, out)
    expected = f"1 run is damaged and is repeated: {runs[1] / 'jobs.parquet'} is damaged"
    assert caplog.messages == [expected]
    assert [(outcome.name, outcome.error) for outcome in outcomes] == [(runs[1].name, None)]
    assert merged
    assert runs[0].stat().st_ino == whole
    assert contents(out) == contents(finished)


def test_damaged_runs_are_told_in_one_line(out, caplog):
    plan = read_sweep(EIGHT_RUNS)
    for number in (0, 1, 2, 4):
        os.truncate(out / "runs" / plan.runs[number].name / "run.json", 0)
    Sweep(plan, out)
    file = out / "runs" / plan.runs[0].name / "run.json"
    assert caplog.messages == [
        f"4 runs are damaged and are repeated: {file} is damaged, for instance"
    ]
    caplog.clear()
    other = Sweep(plan, out, (6, 8))
    assert other.pending == ()
    assert not other.finish()
    assert caplog.messages == [f"4 runs of other shards are damaged: {file} is damaged"]


def test_results_are_written_both_or_not_at_all(tiny, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "Error writing bytes to file")

    monkeypatch.setattr("pyarrow.parquet.write_table", full)
    expected = f"results.parquet: cannot be written: {os.strerror(errno.ENOSPC)}$"
    with pytest.raises(InputError, match=expected):
        work(EIGHT_RUNS | {"keep": "summary", "jobs": "1:20"}, tiny / "out")
    assert names_in(tiny / "out") == {"sweep.json", "runs"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_is_put_off_while_the_pool_is_locked(number, interruptible):
    done = []

    def interrupted():
        with engines._without_interrupts():
            os.kill(os.getpid(), number)
            done.append(number)

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert done == [number]


def test_a_script_without_a_guard_gets_advice_and_no_traceback_of_a_worker(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import optsched\nplan = {'trace': 'sample-256', 'jobs': '1:5', 'policy': 'fcfs'}\n"
        "try:\n    optsched.sweep(plan, 'out', workers=1)\n"
        "except optsched.InputError as error:\n    print(error)\n"
    )
    command = [sys.executable, str(script)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    advice = 'in a script, call optsched.sweep below if __name__ == "__main__":'
    assert done.stdout == f"the worker processes cannot start; {advice}\n"
    assert done.stderr == ""


def test_runs_that_no_value_tells_apart_have_the_names_of_their_folders(tmp_path):
    configs = {"a1": {"seed": 1}, "b2": {"seed": "1"}, "c3": {}}
    runs = [{"run": name, "config": config} for name, config in configs.items()]
    (tmp_path / "sweep.json").write_text(json.dumps({"runs": runs}))
    for name in configs:
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "run.json").touch()
    assert list(finished_runs(tmp_path)[0]) == ["a1", "b2", "c3"]


def test_a_damaged_record_is_told(tmp_path):
    cases = {"[]": "not an object", '{"runs": [{}]}': "runs run: missing", "{": "not JSON"}
    for text, told in cases.items():
        (tmp_path / "sweep.json").write_text(text)
        with pytest.raises(InputError, match=told):
            finished_runs(tmp_path)
