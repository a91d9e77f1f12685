"""Policies side by side, as typed, and pages of folders that are there already."""

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from optsched.cli import run


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    """Return a folder with the runs of 60 jobs under two policies."""
    folder = tmp_path_factory.mktemp("simulated")
    for policy in ("easy", "fcfs"):
        words = f"simulate sample-256 --policy {policy} --jobs 1:60 --no-plots -o {folder / policy}"
        assert run(words.split()) == 0
    return folder


@pytest.fixture
def runs(simulated, tmp_path):
    return shutil.copytree(simulated, tmp_path / "runs")


def names(done):
    return [row["run"] for row in json.loads(done.out)["table"]]


def test_runs_are_put_side_by_side_with_charts_of_a_stated_period(optsched, runs):
    words = "compare fcfs easy --days 0.1:0.25 -o"
    done = optsched(words, "out", cwd=runs)
    assert done.err == ""
    lines = done.out.splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["run", "fcfs", "easy"]
    assert lines[-1] == "comparison folder  out"
    page = (runs / "out" / "report.html").read_text()
    assert "2 runs of 60 jobs of sample-256" in page
    assert "easy beside fcfs" in page
    assert f"optsched {words} DIR" in page
    chart = (runs / "out" / "gantt.svg").read_text()
    assert "from 2.4 hours to 6 hours after the first submission" in chart
    done = optsched(words, "out --json", cwd=runs)
    first, second = json.loads(done.out)["table"]
    assert (first["run"], first["paired_equal"], second["run"]) == ("fcfs", 1.0, "easy")
    assert (runs / "out" / "report.html").read_text() == page
    (runs / "out" / "report.html").unlink()
    assert optsched("report out", cwd=runs).out == "out/report.html\n"
    assert (runs / "out" / "report.html").read_text() == page


def test_runs_of_one_name_and_hostile_names_are_told_apart(optsched, runs):
    hostile = "_<b>$x\n\x1b[31m"
    for name in ("x/easy", hostile):
        shutil.copytree(runs / "fcfs", runs / name)
    words = ("compare easy x/easy", Path(hostile), "-o out")
    assert names(optsched(*words, "--json", cwd=runs)) == ["easy", "x/easy", hostile]
    assert "<b>" not in (runs / "out" / "report.html").read_text()
    assert "\x1b" not in optsched(*words, cwd=runs).out


def test_a_sweep_is_put_side_by_side(optsched, tmp_path):
    (tmp_path / "sweep.toml").write_text(
        'trace = "sample-256"\njobs = "1:40"\npolicy = ["fcfs", "easy", "conservative"]\n'
    )
    optsched("sweep sweep.toml -o sweep", cwd=tmp_path)
    done = optsched("compare sweep -o out --json", cwd=tmp_path)
    assert (names(done), done.err) == (["fcfs", "easy", "conservative"], "")
    _, *two = sorted(f"sweep/runs/{run.name}" for run in (tmp_path / "sweep" / "runs").iterdir())
    assert names(optsched("compare", *two, "-o two --json", cwd=tmp_path)) == ["easy", "fcfs"]
    shutil.rmtree(next((tmp_path / "sweep" / "runs").iterdir()))
    done = optsched("compare sweep -o out", cwd=tmp_path)
    assert done.err == "optsched: 1 run of the sweep not finished, left out\n"


def test_a_sweep_is_compared_over_its_parts(optsched, tmp_path):
    (tmp_path / "parts.toml").write_text(
        'trace = "sample-256"\njobs = ["1:200", "201:400", "401:600"]\n'
        'policy = ["easy", "fcfs"]\nkeep = "summary"\n'
    )
    optsched("sweep parts.toml -o parts", cwd=tmp_path)
    done = optsched("compare parts --over jobs -o out", cwd=tmp_path)
    assert done.err == ""
    lines = done.out.splitlines()
    heads = "figure compared change interval verdict from parts needed mean, easy mean, compared"
    assert " ".join(lines[0].split()) == heads
    assert [line.split("  ")[0] for line in lines[1:5]] == [
        *("mean wait", "mean bounded slowdown", "p95 wait", "utilization"),
    ]  # fmt: skip
    assert "of 4 differences from easy over 3 parts can be told from noise." in lines[5]
    page = tmp_path / "out" / "report.html"
    assert "optsched compare parts --over jobs --baseline easy -o DIR" in page.read_text()
    done = optsched("compare parts --over jobs --baseline fcfs -o out --json", cwd=tmp_path)
    found = json.loads(done.out)
    assert found["units"] == 3
    assert {row["compared"] for row in found["effects"]} == {"easy"}
    assert "--baseline fcfs" in page.read_text()


@pytest.mark.long
def test_the_how_to_has_what_three_logs_say(optsched, shared, tmp_path):
    page = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "compare-on-parts.md"
    [text] = re.findall(r"```toml\n(policy.*?)```", page.read_text(), re.DOTALL)
    (tmp_path / "logs.toml").write_text(text)
    env = {"OPTSCHED_TRACES": str(shared("traces"))}
    optsched("sweep logs.toml -o logs", cwd=tmp_path, env=env)
    done = optsched("compare logs --over jobs -o out", cwd=tmp_path, env=env)
    told = [line.rstrip() for line in done.out.splitlines()]
    said = page.with_suffix(".txt").read_text().splitlines()
    assert told[:-1] == said  # the last line names the folder


def test_a_snapshot_with_the_name_of_a_marker_is_a_snapshot(optsched, example, tmp_path):
    for name in ("run.json", "sweep.json"):
        shutil.copy(example, tmp_path / name)
    optsched("compare", tmp_path, "--solvers greedy -o", tmp_path / "out")
    assert (tmp_path / "out" / "comparison.json").exists()


def test_policies_run_side_by_side_and_what_is_finished_is_not_repeated(
    optsched, tmp_path, contents
):
    words = "simulate sample-256 --jobs 1:60 --policy 'fcfs, easy,window' --set window=3"
    words += " --set alpha=0.2 --execution contiguity --solver greedy -o out"
    done = optsched(words, cwd=tmp_path)
    assert done.err == "3 runs, 3 to do\n"
    assert [line.split("  ")[0] for line in done.out.splitlines()[1:]] == [
        *("fcfs", "easy", "window, solver=greedy, window=3"),
        *("run folders", "report"),
    ]
    out = tmp_path / "out"
    assert sorted(folder.name.rpartition("-")[0] for folder in (out / "runs").iterdir()) == [
        *("easy-contiguity-alpha=0.2", "fcfs-contiguity-alpha=0.2"),
        "window-contiguity-greedy-window=3-alpha=0.2",
    ]
    page = (out / "report.html").read_text()
    assert "3 runs of 60 jobs of sample-256" in page
    assert "easy beside fcfs" in page
    for folder in (out / "runs").iterdir():
        assert (folder / "jobs.csv").exists()
        assert not (folder / "report.html").exists()

    before = contents(out)
    shutil.rmtree(next(run for run in (out / "runs").iterdir() if run.name.startswith("easy")))
    (out / "report.html").unlink()
    done = optsched(words, "--json", cwd=tmp_path)
    assert done.err == "3 runs, 1 to do\n"
    assert [row["policy"] for row in json.loads(done.out)["table"]] == ["fcfs", "easy", "window"]
    assert contents(out) == before


def repeated(folder):
    """Return the text of a page under its heading How to repeat this."""
    text = (folder / "report.html").read_text().partition("How to repeat this<")[2]
    [command] = re.findall("<pre>(optsched .*?)</pre>", text, re.DOTALL)
    return command


def test_the_command_of_a_page_repeats_its_policies_and_the_page_can_be_made_later(
    optsched, tmp_path, contents
):
    words = "simulate sample-256 --policy easy,window --solver greedy --set window=3 --jobs 1:30"
    out, again = tmp_path / "out", tmp_path / "again"
    optsched(words, "--no-csv --no-plots -o out", cwd=tmp_path)
    names = {path.name for path in out.iterdir()}
    assert names == {"sweep.json", "runs", "results.csv", "results.parquet"}
    assert optsched("report out", cwd=tmp_path).out == "out/report.html\n"
    assert repeated(out) == f"optsched {words} --no-csv -o DIR"
    optsched(*shlex.split(repeated(out).replace("DIR", "again"))[1:], cwd=tmp_path)
    assert contents(again) == contents(out)


def test_runs_that_differ_in_more_than_the_policy_have_a_command_each(optsched, tmp_path):
    (tmp_path / "sweep.toml").write_text(
        'trace = "sample-256"\njobs = "1:30"\nevent_order = ["batched", "one-by-one"]\n'
        'policy = "easy"\n'
    )
    optsched("sweep sweep.toml -o out", cwd=tmp_path)
    optsched("report out", cwd=tmp_path)
    start = "optsched simulate sample-256 --machine nodes:256 --policy easy --jobs 1:30"
    assert repeated(tmp_path / "out").splitlines() == [
        f"{start} --event-order {order} -o DIR" for order in ("batched", "one-by-one")
    ]


def test_a_run_that_fails_is_left_out_of_the_page(optsched, tmp_path):
    words = "simulate sample-256 --jobs 1:30 --machine nodes:8 --policy fcfs,gang,easy --no-plots"
    done = optsched(words, "-o out", cwd=tmp_path, code=1)
    told = done.err.splitlines()
    assert told[1].startswith("optsched: run gang-")
    assert told[2] == "optsched: 1 run failed; the reasons are in out/failed"
    assert told[3] == "optsched: 1 run of the sweep not finished, left out"
    assert told[4].startswith("optsched: fcfs: ")
    assert told[4].endswith(" jobs rejected")
    assert [line.split()[0] for line in done.out.splitlines()[1:3]] == ["fcfs", "easy"]


def test_pages_of_several_folders_are_written_and_named(optsched, example, runs):
    optsched("compare", example, "--solvers greedy -o compared", cwd=runs)
    pages = [runs / "easy" / "report.html", runs / "compared" / "report.html"]
    assert [page.exists() for page in pages] == [False, True]
    pages[1].unlink()
    done = optsched("report easy compared", cwd=runs)
    assert (done.out, done.err) == ("easy/report.html\ncompared/report.html\n", "")
    assert "60 of 60 jobs finished" in pages[0].read_text()
    assert "1 snapshot" in pages[1].read_text()


def test_a_damaged_folder_gets_one_line(optsched, runs):
    table, summary = runs / "easy" / "jobs.parquet", runs / "easy" / "summary.json"
    whole = table.read_bytes()
    for damaged in (b"PAR1", whole.replace(b"\x15", b"\1")):
        table.write_bytes(damaged)
        told = "optsched: easy/jobs.parquet: damaged; expected a Parquet file\n"
        assert optsched("report easy", cwd=runs, code=1).err == told
    summary.write_text("{")
    [told] = optsched("report easy", cwd=runs, code=1).err.splitlines()
    assert told.startswith("optsched: easy/summary.json, line 1: not JSON")
