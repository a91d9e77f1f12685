"""What Tab offers, asked for as the script of a shell does."""

from __future__ import annotations

import pytest

from optsched.cli import run


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
    ],
)
def test_names_are_completed(words, name, capsys):
    assert run(["__complete", *words.split()]) == 0
    assert name in capsys.readouterr().out.splitlines()


def test_files_are_completed_beside_names(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "decisions").mkdir()
    (tmp_path / "decision.json").touch()
    for command in ("solve", "compare", "simulate"):
        assert run(["__complete", command, "dec"]) == 0
        assert {"decisions/", "decision.json"} <= {*capsys.readouterr().out.splitlines()}
