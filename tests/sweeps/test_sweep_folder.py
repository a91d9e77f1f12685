"""The finished runs of a sweep, under speaking names."""

from __future__ import annotations

import shutil

import pytest

from optsched.errors import InputError
from optsched.folders import finished_runs
from optsched.sweeps.sweeping import sweep


def test_runs_are_named_by_the_values_that_vary(tiny):
    greedy = {"policy": "window", "solver": "greedy", "settings": {"window": [3, 5]}}
    table = {"trace": "tiny.swf", "machine": "nodes:16", "runs": [{"policy": "fcfs"}, greedy]}
    results = sweep(table, tiny / "out", workers=1)
    found, missing = finished_runs(tiny / "out")
    names = ["fcfs", "window, solver=greedy, window=3", "window, solver=greedy, window=5"]
    assert (list(found), missing) == (names, 0)
    assert [folder.name for folder in found.values()] == results["run"].tolist()
    shutil.rmtree(found["fcfs"])
    found, missing = finished_runs(tiny / "out")
    assert (list(found), missing) == (names[1:], 1)  # those that are finished


def test_runs_that_no_value_tells_apart_have_the_names_of_their_folders(tmp_path):
    (tmp_path / "sweep.json").write_text(
        '{"runs": [{"run": "a1", "config": {"seed": 1}}, {"run": "b2", "config": {"seed": "1"}},'
        ' {"run": "c3", "config": {}}]}'
    )
    for name in ("a1", "b2", "c3"):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "run.json").touch()
    assert list(finished_runs(tmp_path)[0]) == ["a1", "b2", "c3"]


@pytest.mark.parametrize(
    ("text", "told"),
    [("[]", "not an object"), ('{"runs": [{}]}', "runs run: missing"), ("{", "not JSON")],
)
def test_a_damaged_record_is_told(tmp_path, text, told):
    (tmp_path / "sweep.json").write_text(text)
    with pytest.raises(InputError, match=told):
        finished_runs(tmp_path)
