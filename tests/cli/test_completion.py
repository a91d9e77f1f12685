"""What Tab offers, asked for as the script of a shell does."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from optsched.cli import build, installer, run


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("simulate --policy win", "window"),
        ("simulate sam", "sample-256"),
        ("simulate LLNL", "LLNL-Atlas-2006-2.1-cln"),
        ("simulate sample-256 --execution mig", "migration"),
        ("simulate sample-256 --solver first", "first-fit"),
        ("solve yang", "yang-2014-example"),
        ("solve node-placement/", "node-placement/limits"),
        ("solve yang-2014-example --solver gre", "greedy"),
        ("compare window", "window-mkp"),
        ("compare window-mkp weighted", "weighted-20x8"),
        ("study fr", "franke-1999"),
        ("simulate sample-256 --policy fcfs,ea", "fcfs,easy"),
        ("simulate sample-256 --policy fcfs,easy,", "fcfs,easy,window"),
        ("simulate sample-256 --machine no", "nodes:"),
        ("simulate sample-256 --policy easy,window --set sca", "scatter="),
        ("slurm explain 290 --actions requeue,ho", "requeue,hold"),
        ("compare window-mkp --solvers greedy,hi", "greedy,highs"),
        ("compare window-mkp --solvers mine.py:Mine,", "mine.py:Mine,highs-quick"),
    ],
)
def test_names_are_completed(words, name, capsys):
    assert run(["__complete", *words.split()]) == 0
    assert name in capsys.readouterr().out.splitlines()


def test_a_name_is_offered_once_in_a_list(capsys):
    assert run(["__complete", "compare", "window-mkp", "--solvers", "greedy,highs,gre"]) == 0
    offered = capsys.readouterr().out.splitlines()
    assert "greedy,highs,greedy-exchange" in offered
    assert {"greedy,highs,greedy", "greedy,highs,highs"}.isdisjoint(offered)


def test_files_are_completed_beside_names(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "decisions").mkdir()
    (tmp_path / "decision.json").touch()
    for command in ("solve", "compare", "simulate"):
        assert run(["__complete", command, "dec"]) == 0
        assert {"decisions/", "decision.json"} <= {*capsys.readouterr().out.splitlines()}


TAB = """
source completion
COMP_WORDS=($0); COMP_CWORD=$((${#COMP_WORDS[@]}-1))
$(complete -p optsched | sed 's/.*-F \\([^ ]*\\).*/\\1/')
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_goes_on_after_a_comma(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    installer(build())(shell="bash", output=tmp_path / "completion", add_to_startup=False)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    words = "optsched simulate sample-256 --policy fcfs,win"
    done = subprocess.run(
        ["bash", "-c", TAB, words],
        env=os.environ | {"PATH": path}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "fcfs,window\n"
