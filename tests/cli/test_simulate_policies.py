"""Several policies in one ``optsched simulate``, as typed."""

from __future__ import annotations

import json
import re
import shlex
import shutil

import pytest

PICTURES = ("waits", "load", "gantt")


def contents(folder):
    """Return all files below a folder but those that hold times."""
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file() and file.name != "timing.json"
    }


def test_policies_run_side_by_side_and_what_is_finished_is_not_repeated(optsched, sample, tmp_path):
    words = ("simulate", sample, "--jobs", "1:60", "--policy", "fcfs, easy,window")
    words = (*words, "--set", "window=3", "--set", "alpha=0.2", "--execution", "contiguity")
    done = optsched(*words, "--solver", "greedy", "-o", "out", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "3 runs, 3 to do\n")
    lines = done.stdout.splitlines()
    assert [line.split("  ")[0] for line in lines[1:]] == [
        *("fcfs", "easy", "window, solver=greedy, window=3"),
        *("run folders", "report"),
    ]
    out = tmp_path / "out"
    names = sorted(folder.name.rpartition("-")[0] for folder in (out / "runs").iterdir())
    setting = "alpha=0.2"
    assert names == [
        *(f"easy-contiguity-{setting}", f"fcfs-contiguity-{setting}"),
        f"window-contiguity-greedy-window=3-{setting}",
    ]
    page = (out / "report.html").read_text()
    assert "3 runs of 60 jobs of sample-256.swf" in page
    assert "easy beside fcfs" in page
    for run in (out / "runs").iterdir():
        assert (run / "jobs.csv").exists()
        assert not (run / "report.html").exists()

    before = contents(out)
    shutil.rmtree(next(run for run in (out / "runs").iterdir() if run.name.startswith("easy")))
    (out / "report.html").unlink()
    done = optsched(*words, "--solver", "greedy", "-o", "out", "--json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "3 runs, 1 to do\n")
    table = json.loads(done.stdout)["table"]
    assert [row["policy"] for row in table] == ["fcfs", "easy", "window"]
    assert contents(out) == before


def test_a_page_is_made_later(optsched, sample, tmp_path):
    words = ("simulate", sample, "--jobs", "1:40", "--policy", "fcfs,easy", "--no-csv", "-o", "out")
    done = optsched(*words, "--no-plots", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    out = tmp_path / "out"
    made = {
        "report.html",
        "gantt.json",
        *(f"{name}.{kind}" for name in PICTURES for kind in ("svg", "png")),
    }
    without = {"sweep.json", "runs", "results.csv", "results.parquet"}
    assert {path.name for path in out.iterdir()} == without
    done = optsched("report", "out", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "out/report.html\n", "")
    assert {path.name for path in out.iterdir()} == without | made
    page = (out / "report.html").read_bytes()
    assert optsched(*words, cwd=tmp_path).returncode == 0
    assert (out / "report.html").read_bytes() == page
    command = "optsched simulate SAMPLE --policy fcfs,easy --jobs 1:40 --no-csv -o DIR"
    assert command.replace("SAMPLE", str(sample)) in page.decode()


def repeated(folder):
    """Return the text of a page under its heading How to repeat this."""
    page = (folder / "report.html").read_text()
    [text] = re.findall(
        "<pre>(optsched .*?)</pre>", page.partition("How to repeat this<")[2], re.DOTALL
    )
    return text


def test_the_command_of_a_page_repeats_its_policies(optsched, tmp_path):
    words = ("--jobs", "1:30", "--policy", "easy,window", "--set", "window=3", "--solver", "greedy")
    assert optsched("simulate", "sample-256", *words, "-o", "out", cwd=tmp_path).returncode == 0
    command = repeated(tmp_path / "out")
    expected = "optsched simulate sample-256 --policy easy,window --solver greedy --set window=3"
    assert command == f"{expected} --jobs 1:30 -o DIR"
    words = shlex.split(command.replace("DIR", "again"))[1:]
    assert optsched(*words, cwd=tmp_path).returncode == 0
    assert contents(tmp_path / "again") == contents(tmp_path / "out")


def test_runs_that_differ_in_more_than_the_policy_have_a_command_each(optsched, tmp_path):
    (tmp_path / "sweep.toml").write_text(
        'trace = "sample-256"\njobs = "1:30"\nevent_order = ["batched", "one-by-one"]\n'
        'policy = "easy"\n'
    )
    assert optsched("sweep", "sweep.toml", "-o", "out", cwd=tmp_path).returncode == 0
    assert optsched("report", "out", cwd=tmp_path).returncode == 0
    start = "optsched simulate sample-256 --machine nodes:256 --policy easy --jobs 1:30"
    assert repeated(tmp_path / "out").splitlines() == [
        f"{start} --event-order {order} -o DIR" for order in ("batched", "one-by-one")
    ]


def test_a_run_that_fails_is_left_out_of_the_page(optsched, sample, tmp_path):
    words = ("simulate", sample, "--jobs", "1:30", "--machine", "nodes:8", "--no-plots")
    done = optsched(*words, "--policy", "fcfs,gang,easy", "-o", "out", cwd=tmp_path)
    assert done.returncode == 1
    told = done.stderr.splitlines()
    assert told[1].startswith("optsched: run gang-")
    assert told[2] == "optsched: 1 run failed; the reasons are in out/failed"
    assert told[3] == "optsched: 1 run of the sweep not finished, left out"
    assert told[4].startswith("optsched: fcfs: ")
    assert told[4].endswith(" jobs rejected")
    assert [line.split()[0] for line in done.stdout.splitlines()[1:3]] == ["fcfs", "easy"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--policy easy,esay", "unknown policy 'esay'; did you mean easy or saf?"),
        ("--policy easy,fcfs,easy", "--policy: 'easy' is given twice; expected different policies"),
        ("--policy easy,", "--policy: 'easy,'; expected names with single commas between them"),
        (
            "--policy easy,window --set windw=3",
            "unknown setting 'windw' of easy and window; did you mean window?",
        ),
        (
            "--policy easy,window --set window=x",
            "window of policy 'window': 'x'; expected a whole number",
        ),
        (
            "--policy easy,window --solver greedi",
            "unknown solver 'greedi'; did you mean greedy or greedy-colouring?",
        ),
        (
            "--policy easy,fcfs --solver greedy --seed 2",
            "none of the policies poses problems, so they have no use for --solver, --seed",
        ),
        ("--policy easy,window --capture c", "--capture: is for one policy, not for several"),
        ("--policy easy,fcfs --check", "--check: is for one policy, not for several"),
        (
            "--policy easy,fcfs --demands-sha256 0",
            "--demands-sha256: is for one policy, not for several",
        ),
        (
            "--policy easy,fcfs -o other",
            "other: is a folder with other things in it (no sweep.json); give another name",
        ),
    ],
)
def test_what_cannot_be_run_gets_one_line(words, told, optsched, sample, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "run.json").write_text("{}")
    given = words.split() if "-o" in words else [*words.split(), "-o", "out"]
    done = optsched("simulate", sample, *given, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"optsched: {told}\n")
    assert not (tmp_path / "out").exists()


def test_a_trace_that_is_not_there_gets_one_line(optsched, tmp_path):
    done = optsched("simulate", "none.swf", "--policy", "easy,fcfs", "-o", "out", cwd=tmp_path)
    told = "optsched: none.swf: no such file, and no name in `optsched list traces`\n"
    assert (done.returncode, done.stderr) == (1, told)
