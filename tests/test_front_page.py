"""`make demo` prints the figures beside it, and the front page has those of the benchmarks."""

from __future__ import annotations

import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from prose import missing

from optsched.cli import run
from optsched.content import bundled

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def one_worker(monkeypatch):
    """Start one worker and not two: importing takes longer than the runs."""
    monkeypatch.setattr("optsched.compilation.cores", lambda: 1)


def test_the_pictures_of_the_front_page_are_what_their_commands_say(tmp_path):
    """Otherwise: make pages."""
    runpy.run_path(str(ROOT / "docs" / "pictures.py"))["main"](str(tmp_path))
    drawn = {file.name: file.read_text() for file in tmp_path.iterdir()}
    assert drawn == {file.name: file.read_text() for file in (ROOT / "docs").glob("front-*.svg")}
    said = {re.findall('aria-label="(.*?)"', picture)[0] for picture in drawn.values()}
    for page in ("README.md", "docs/index.md"):
        assert set(re.findall(r"!\[(.*?)\]", (ROOT / page).read_text())) == said


def recipe() -> list[str]:
    """Return the lines of the demo, those that are continued as one."""
    text = (ROOT / "Makefile").read_text().replace("\\\n", " ")
    return text.split("\ndemo: .venv/usable\n")[1].split("\n\n")[0].splitlines()


def test_the_demo_prints_the_figures_that_it_explains(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    printed, commands = "", 0
    for line in recipe():
        if line.startswith("\t$(OPTSCHED) "):
            commands += 1
            assert run(shlex.split(line)[1:]) == 0
            printed += capsys.readouterr().out
        else:
            assert line.startswith("\t@echo")
            assert missing(line, printed) == []
    assert commands == 4
    placed = re.findall(r"^objective +(\d+)$", printed, re.MULTILINE)
    explained = next(line for line in recipe() if "Best fit fills" in line)
    assert placed == re.findall(r"fills (\d+)", explained)
    assert re.findall(r"^not placed +(\S+)$", printed, re.MULTILINE) == ["8", "-"]
    for file in re.findall(r"demo/[\w./-]+\w", "".join(recipe()[-5:])):
        assert (tmp_path / file).is_file()
    assert [line == "\t@echo" for line in recipe()[-6:]] == [True, *[False] * 5]


def test_a_bundled_capture_is_found_by_name(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["slurm", "explain", "290", "--from"]
    assert run([*words, "sample-slurm"]) == 0
    assert "partition gpu" in capsys.readouterr().out
    (tmp_path / "sample-slurm").mkdir()
    for name in ("campus", "sample-slurm"):  # a site that is no capture, and an empty folder
        assert run([*words, name]) == 1
        assert f"optsched: {name}" in capsys.readouterr().err
    folder = bundled("sites") / "sample-slurm"
    assert sum(file.stat().st_size for file in folder.iterdir()) < 40_000


BLOCKED = """
import sys
for name in ("distributed", "pulp", "pyscipopt", "scipy"):
    sys.modules[name] = None
import optsched.compilation
optsched.compilation.cores = lambda: 1
from optsched.cli import run
print([run(words) for words in eval(sys.argv[1])])
"""


def test_main_uses_need_no_optional_package_and_others_name_their_extra(tmp_path):
    commands = [
        "simulate sample-256 --policy easy,window --jobs 1:300 -o policies",
        "simulate sample-256 --machine site:sample-site --policy placement --jobs 1:300 -o placed",
        "slurm plan --from sample-slurm --time-limit 1 --json",
        "slurm explain 290 --from sample-slurm --json",
        "solve gpu-queue --json",
        "list workloads",
        "trace generate lublin-feitelson --jobs 10 -o generated.swf",
        "study yang-2014 -o study",
    ]
    words = repr([one.split() for one in commands])
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED, words],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    said = done.stderr
    assert done.stdout.splitlines()[-1] == "[0, 0, 0, 0, 0, 0, 1, 1]", said
    assert "lublin-feitelson.toml: this workload model needs" in said
    generated, study = said.splitlines()[-2:]
    assert generated.endswith("'scipy', which is not installed; pip install 'optsched[workloads]'")
    assert study.endswith("'scipy', which is not installed; pip install 'optsched[studies]'")
    assert {path.name for path in tmp_path.iterdir()} == {"policies", "placed"}


def test_the_table_of_speeds_has_the_figures_of_the_benchmarks():
    text = (ROOT / "README.md").read_text().split("## How fast it is")[1].split("\n\n")[1]
    results = ROOT / "benchmarks" / "results"
    known = "".join((results / name).read_text() for name in ("peers.txt", "windows.txt"))
    rows = [row.strip("| ").split("|") for row in text.splitlines()[2:]]
    assert len(rows) == 4
    for task, ours, other, *ratio in rows:
        counted = re.findall(r"\d+,\d+", task)
        assert all(number in (ROOT / "benchmarks" / "README.md").read_text() for number in counted)
        measured = [re.findall(r"\d[\d.]*(?= s| ms|%)", side) for side in (ours, other)]
        assert all(number in known for numbers in measured for number in numbers)
        [[one], [two]] = measured
        for stated in map(str.strip, ratio):
            decimals = len(stated.partition(".")[2])
            assert f"{float(two) / float(one):.{decimals}f}" == stated
