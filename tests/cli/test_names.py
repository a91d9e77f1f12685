"""Names of bundled traces, sites and snapshots, from an empty folder."""

from __future__ import annotations

import json
import shlex

import pytest

import optsched
from optsched.cli import run as command
from optsched.content import bundled, find_snapshot, reference_snapshots
from optsched.models.snapshot_file import save_snapshot
from optsched.sites.loading import load_site
from optsched.sweeps.sweep_file import read_sweep
from optsched.traces.catalogue import samples

SAMPLE = bundled("traces") / "samples" / "sample-256.swf"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_sample_is_simulated_by_name(folder, capsys):
    words = "simulate sample-256 --policy easy --jobs 1:50 --no-plots -o"
    assert command([*words.split(), "named"]) == 0
    assert str(SAMPLE) not in capsys.readouterr().err
    config = json.loads((folder / "named" / "run.json").read_text())
    assert config["trace"] == "sample-256"
    assert str(bundled("traces")) not in json.dumps(config)
    assert command([*shlex.split(config["repeat"])[1:-1], "again", "--no-plots"]) == 0
    for file in ("run.json", "jobs.csv"):
        assert (folder / "named" / file).read_bytes() == (folder / "again" / file).read_bytes()


def test_a_file_of_the_name_takes_precedence(folder, make_trace):
    (folder / "sample-256").write_bytes(SAMPLE.read_bytes().replace(b"\n3 ", b"\n; 3 "))
    assert len(optsched.read_trace("sample-256")) == 2999
    window = optsched.models.WindowMKP([1], [1])
    save_snapshot(window, "yang-2014-example")
    assert optsched.load_snapshot("yang-2014-example").weights.tolist() == [1]


def test_a_folder_does_not_hide_the_trace_of_its_name(folder, capsys):
    words = "simulate sample-256 --policy fcfs --jobs 1:20 --no-plots -o sample-256"
    assert command(words.split()) == command(words.split()) == 0
    assert command(["trace", "info", "sample-256"]) == 0
    capsys.readouterr()
    (folder / "captured").mkdir()
    for path in ("captured", "./captured", str(folder / "captured")):
        assert command(["trace", "info", path]) == 1
        assert "captured: is a folder; expected a trace" in capsys.readouterr().err


def test_a_sweep_takes_a_sample_by_name(folder):
    [run] = read_sweep({"trace": "sample-256", "policy": "easy"}, folder).runs
    assert (run.trace.path, run.trace.published) == (str(SAMPLE), "sample-256")


def test_a_site_is_a_machine_by_name(folder, capsys):
    words = "simulate sample-256 --machine site:campus --policy easy --jobs 1:50 --no-plots -o out"
    assert command(words.split()) == 0
    config = json.loads((folder / "out" / "run.json").read_text())
    assert config["machine"] == "site:campus"
    assert str(bundled("sites")) not in json.dumps(config)
    (folder / "campus").write_bytes((bundled("sites") / "campus.toml").read_bytes())
    assert command([*words.split()[:-1], "another"]) == 1  # a file of the name takes precedence
    assert "campus: expected a site as TOML" in capsys.readouterr().err


def test_a_sweep_takes_a_site_by_name_and_by_path(folder):
    (folder / "own.toml").write_bytes((bundled("sites") / "sample-site.toml").read_bytes())
    plan = {"trace": "sample-256", "policy": "easy", "machine": ["site:campus", "site:own.toml"]}
    named, own = (run.arguments["machine"] for run in read_sweep(plan, folder).runs)
    assert (named.spec, named.path) == ("site:campus", bundled("sites") / "campus.toml")
    assert (own.spec, own.path) == ("site:own.toml", folder / "own.toml")


def test_every_site_is_listed_and_has_a_name(capsys):
    assert command(["list", "sites", "--json"]) == 0
    listed = [row["site"] for row in json.loads(capsys.readouterr().out)["sites"]]
    assert listed == ["campus", "sample-site", "sample-slurm"]
    assert [load_site(name).name for name in listed] == listed


def test_every_sample_and_every_snapshot_is_listed_and_has_a_name(capsys):
    assert command(["list", "traces", "--json"]) == 0
    listed = [row["trace"] for row in json.loads(capsys.readouterr().out)["traces"]]
    assert {"sample-256", "sample-8x20", "SDSC-SP2-1998-4.2-cln"} <= set(listed)
    assert all(len(optsched.read_trace(name)) > 0 for name in samples())
    assert command(["list", "snapshots", "--json"]) == 0
    rows = {row["snapshot"]: row for row in json.loads(capsys.readouterr().out)["snapshots"]}
    assert rows["window-mkp/yang-2014-example"]["best known"] == 15
    assert rows["hold/no-release"]["best known"] == "infeasible"
    files = {path for path in bundled("models").glob("*/*.json") if path.name != "schema.json"}
    assert {find_snapshot(name) for name in rows} == files == set(reference_snapshots().values())


def test_snapshots_are_solved_and_compared_by_name(folder, capsys):
    for name in ("yang-2014-example", "window-mkp/yang-2014-example"):
        assert command(["solve", name, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["objective"] == 15
    assert command(["compare", "partition-mkp", "--solvers", "direct-placement", "-o", "out"]) == 0
    lines = (folder / "out" / "answers.jsonl").read_text().splitlines()
    own = [name for name in reference_snapshots() if name.startswith("partition-mkp/")]
    assert sorted(json.loads(line)["snapshot"] for line in lines) == sorted(
        name.partition("/")[2] for name in own
    )
    assert command(["snapshot", "check", "hold"]) == 0
    assert "hold/worked-example: good" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            "simulate sample-265 -o out",
            "sample-265: no such file, and no name in `optsched list tr",
        ),
        ("simulate sample-265 -o out", "did you mean sample-256"),
        ("simulate traces/samples/sample-256.swf -o out", "no such file; did you mean sample-256"),
        (
            "solve yang-2014",
            "no name in `optsched list snapshots`; did you mean yang-2014-example?",
        ),
        ("solve models/window-mkp/weighted-20x8.json", "no such file; did you mean weighted-20x8"),
        ("simulate sample-256 --machine site:campsu -o out", "did you mean campus?"),
        ("simulate sample-256 --machine campus -o out", "did you mean site:campus?"),
        ("solve worked-example", "the name of several; expected data-placement/worked-example or "),
        (
            "compare window-mpk -o out",
            "no such file, and no name in `optsched list snapshots`; did",
        ),
    ],
)
def test_a_name_that_is_mistyped(words, told, capsys):
    assert command(words.split()) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert told in line


def test_a_model_is_no_snapshot_but_has_some(capsys):
    assert command(["solve", "window-mkp"]) == 1
    expected = "window-mkp: a model; expected one of its snapshots: window-mkp/sample-busy, "
    told = capsys.readouterr().err
    assert told.startswith(f"optsched: {expected}")
    assert told.endswith("; or `optsched compare window-mkp`\n")


def test_a_comparison_counts_trivial_snapshots_and_judges_the_others(capsys, monkeypatch):
    monkeypatch.setattr("optsched.solvers.comparison.tables.AT_ONCE", 1e9)
    names = ("yang-2014-example", "weighted-20x8")
    words = ["compare", *names, "--solvers", "greedy,branch-and-bound", "-o", "out"]
    assert command(words) == 0
    *_, trivial, rest, _ = capsys.readouterr().out.splitlines()
    assert trivial.startswith("trivial              1 of 2 snapshots: answered optimally by all")
    assert rest == "best on the other 1  greedy 0%, branch-and-bound 100%"
