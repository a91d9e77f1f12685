"""Policies side by side, as typed."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from optsched.cli import run
from optsched.content import bundled

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = bundled("traces") / "samples" / "sample-256.swf"


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    """Return a folder with the runs of 60 jobs under two policies, and one of 50 jobs."""
    folder = tmp_path_factory.mktemp("simulated")
    for name, policy, jobs in (("easy", "easy", 60), ("fcfs", "fcfs", 60), ("short", "fcfs", 50)):
        words = ("--policy", policy, "--jobs", f"1:{jobs}", "--no-plots", "-o", folder / name)
        assert run(["simulate", *map(str, (SAMPLE, *words))]) == 0
    return folder


@pytest.fixture
def runs(simulated, tmp_path):
    return shutil.copytree(simulated, tmp_path / "runs")


def test_runs_are_put_side_by_side(optsched, runs):
    done = optsched("compare", "fcfs", "easy", "-o", "out", cwd=runs)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["run", "fcfs", "easy"]
    assert lines[-1] == "comparison folder  out"
    page = (runs / "out" / "report.html").read_text()
    assert "2 runs of 60 jobs of sample-256.swf" in page
    assert "easy beside fcfs" in page
    done = optsched("compare", "fcfs", "easy", "-o", "out", "--json", cwd=runs)
    assert (done.returncode, done.stderr) == (0, "")
    first, second = json.loads(done.stdout)["table"]
    assert (first["run"], first["paired_equal"], second["run"]) == ("fcfs", 1.0, "easy")
    assert (runs / "out" / "report.html").read_text() == page
    (runs / "out" / "report.html").unlink()
    assert optsched("report", "out", cwd=runs).stdout == "out/report.html\n"
    assert (runs / "out" / "report.html").read_text() == page


def test_the_period_of_the_charts_is_stated_and_repeated(optsched, runs):
    done = optsched("compare", "fcfs", "easy", "--days", "0.1:0.25", "-o", "out", cwd=runs)
    assert (done.returncode, done.stderr) == (0, "")
    chart = (runs / "out" / "gantt.svg").read_text()
    assert "from 2.4 hours to 6 hours after the first submission" in chart
    page = (runs / "out" / "report.html").read_text()
    assert "optsched compare fcfs easy --days 0.1:0.25 -o DIR" in page
    assert optsched("report", "out", cwd=runs).returncode == 0
    assert (runs / "out" / "report.html").read_text() == page


def test_runs_of_one_name_and_hostile_names_are_told_apart(optsched, runs):
    shutil.copytree(runs / "fcfs", runs / "x" / "easy")
    hostile = "_<b>$x\n\x1b[31m"
    shutil.copytree(runs / "fcfs", runs / hostile)
    done = optsched("compare", "easy", "x/easy", hostile, "-o", "out", "--json", cwd=runs)
    assert (done.returncode, done.stderr) == (0, "")
    assert [row["run"] for row in json.loads(done.stdout)["table"]] == ["easy", "x/easy", hostile]
    assert "<b>" not in (runs / "out" / "report.html").read_text()
    done = optsched("compare", "easy", hostile, "-o", "out", cwd=runs)
    assert "\x1b" not in done.stdout


def test_a_sweep_is_put_side_by_side(optsched, sample, tmp_path):
    (tmp_path / "sweep.toml").write_text(
        f'trace = "{sample}"\njobs = "1:40"\npolicy = ["fcfs", "easy", "conservative"]\n'
    )
    assert optsched("sweep", "sweep.toml", "-o", "sweep", cwd=tmp_path).returncode == 0
    done = optsched("compare", "sweep", "-o", "out", "--json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    names = [row["run"] for row in json.loads(done.stdout)["table"]]
    assert names == ["fcfs", "easy", "conservative"]
    places = sorted(f"sweep/runs/{run.name}" for run in (tmp_path / "sweep" / "runs").iterdir())
    done = optsched("compare", *places[1:], "-o", "two", "--json", cwd=tmp_path)
    assert [row["run"] for row in json.loads(done.stdout)["table"]] == ["easy", "fcfs"]
    shutil.rmtree(next((tmp_path / "sweep" / "runs").iterdir()))
    done = optsched("compare", "sweep", "-o", "out", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr == "optsched: 1 run of the sweep not finished, left out\n"


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """Return the folder of a sweep, ``parts``, of three parts of the sample."""
    folder = tmp_path_factory.mktemp("parts")
    (folder / "parts.toml").write_text(
        f'trace = "{SAMPLE}"\njobs = ["1:200", "201:400", "401:600"]\npolicy = ["easy", "fcfs"]\n'
        'keep = "summary"\n'
    )
    words = ("sweep", folder / "parts.toml", "--workers", 1, "-o", folder / "parts")
    assert run([*map(str, words)]) == 0
    return folder


def test_a_sweep_is_compared_over_its_parts(optsched, parts):
    done = optsched("compare", "parts", "--over", "jobs", "-o", "out", cwd=parts)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    heads = "figure compared change interval verdict from parts needed mean, easy mean, compared"
    assert " ".join(lines[0].split()) == heads
    assert [line.split("  ")[0] for line in lines[1:5]] == [
        *("mean wait", "mean bounded slowdown", "p95 wait", "utilization"),
    ]  # fmt: skip
    assert "of 4 differences from easy over 3 parts can be told from noise." in lines[5]
    assert lines[-1] == "comparison folder  out"
    page = (parts / "out" / "report.html").read_text()
    assert "optsched compare parts --over jobs --baseline easy -o DIR" in page
    words = ("--over", "jobs", "--baseline", "fcfs", "-o", "out", "--json")
    done = optsched("compare", "parts", *words, cwd=parts)
    found = json.loads(done.stdout)
    assert found["units"] == 3
    assert {row["compared"] for row in found["effects"]} == {"easy"}
    assert "--baseline fcfs" in (parts / "out" / "report.html").read_text()


@pytest.mark.long
def test_the_how_to_has_what_three_logs_say(optsched, shared, tmp_path, monkeypatch):
    monkeypatch.setenv("OPTSCHED_TRACES", str(shared("traces")))
    page = ROOT / "docs" / "how-to" / "compare-on-parts.md"
    [text] = re.findall(r"```toml\n(policy.*?)```", page.read_text(), re.DOTALL)
    (tmp_path / "logs.toml").write_text(text)
    assert optsched("sweep", "logs.toml", "-o", "logs", cwd=tmp_path).returncode == 0
    done = optsched("compare", "logs", "--over", "jobs", "-o", "out", cwd=tmp_path)
    told = [line.rstrip() for line in done.stdout.splitlines()]
    said = page.with_suffix(".txt").read_text().splitlines()
    assert told[:-1] == said  # the last line names the folder


@pytest.mark.parametrize("words", ["compare parts -o none", "report parts"])
def test_runs_of_other_jobs_lead_to_what_compares_them(words, optsched, parts):
    done = optsched(*words.split(), cwd=parts)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith("over all of them: optsched compare parts --over jobs -o DIR\n")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--over job", "--over: 'job' does not vary; keys that do: policy, jobs"),
        ("--over jobs --baseline sjf", "--baseline: 'sjf'; expected one of easy; fcfs"),
        ("--over jobs --days 1:2", "--days: is for runs of the same jobs, not for --over"),
        ("--over jobs --seed 1", "--seed: is for solvers on snapshots, not for runs"),
        ("--baseline easy", "--baseline: expected --over KEY, too; otherwise it is the first run"),
    ],
)
def test_what_a_sweep_is_not_compared_over_gets_one_line(words, told, optsched, parts):
    done = optsched("compare", "parts", *words.split(), "-o", "none", cwd=parts)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"optsched: {told}\n")
    assert not (parts / "none").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            "fcfs short",
            "short: is of the jobs 1 to 50 of the trace; expected the jobs 1 to 60, as in fcfs",
        ),
        ("fcfs", "one run to compare; expected 2 to 35"),
        ("fcfs easy fcfs", "fcfs: is given twice; expected different runs"),
        (
            "fcfs a.json",
            "runs and snapshots (fcfs, a.json); expected runs, one sweep, or snapshots",
        ),
        ("s fcfs", "runs and a sweep (fcfs, s); expected runs, one sweep, or snapshots"),
        ("s t", "2 sweeps; expected one sweep, or runs"),
        ("fcfs easy --days 2:1", "--days: '2:1'; expected FROM:TO in days, 10:12 for instance"),
        ("fcfs easy --days 1", "--days: '1'; expected FROM:TO in days, 10:12 for instance"),
        ("fcfs easy --days 90:91", "--days: 90:91; expected a part of 21.8 hours"),
        ("fcfs easy --over jobs", "--over: is for a sweep, not for runs"),
        ("a.json --over jobs", "--over: is for runs, not for solvers on snapshots"),
        ("a.json --days 1:2", "--days: is for runs, not for solvers on snapshots"),
        ("fcfs easy --seed 1", "--seed: is for solvers on snapshots, not for runs"),
        ("fcfs easy --solvers cbc", "--solvers: is for solvers on snapshots, not for runs"),
    ],
)
def test_what_cannot_be_compared_gets_one_line(words, told, optsched, runs):
    for sweep in ("s", "t"):
        (runs / sweep).mkdir()
        (runs / sweep / "sweep.json").write_text('{"runs": []}')
    done = optsched("compare", *words.split(), "-o", "out", cwd=runs)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"optsched: {told}\n")
    assert not (runs / "out").exists()


def test_other_folders_are_not_replaced(optsched, runs):
    done = optsched("compare", "fcfs", "easy", "-o", "short", cwd=runs)
    assert done.returncode == 1
    assert "short: is a folder with other things in it (no runs.json)" in done.stderr
    assert (runs / "short" / "run.json").exists()


def test_a_damaged_run_gets_one_line(optsched, runs):
    (runs / "easy" / "run.json").write_text("{")
    done = optsched("compare", "fcfs", "easy", "-o", "out", cwd=runs)
    assert done.returncode == 1
    assert done.stderr.startswith("optsched: easy/run.json, line 1: not JSON")


def test_a_snapshot_with_the_name_of_a_marker_is_a_snapshot(optsched, example, tmp_path):
    for name in ("run.json", "sweep.json"):
        shutil.copy(example, tmp_path / name)
    done = optsched("compare", tmp_path, "--solvers", "greedy", "-o", tmp_path / "out")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "out" / "comparison.json").exists()
