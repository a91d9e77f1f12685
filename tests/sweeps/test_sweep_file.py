"""Runs that a sweep file states, and messages about its mistakes."""

import json
import os
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.content import bundled
from optsched.errors import InputError
from optsched.sweeps.sweep_file import read_sweep


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
