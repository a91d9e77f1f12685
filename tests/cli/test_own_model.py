"""A decision of the user from end to end: a model and a policy that poses it, in one file."""

from __future__ import annotations

import json
import re

import pytest

from optsched.content import bundled

PAGE = bundled("models").parents[0] / "docs" / "how-to" / "pose-your-own-decision.md"
[CODE] = re.findall(r"```python\n(# capped.py\n.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "capped.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_captured_snapshots_of_a_model_in_a_file_are_read_back(optsched, folder):
    words = "simulate sample-256 --policy capped.py --jobs 1:200 --check --no-plots"
    assert "proven" in optsched(words, "--capture posed --capture-every 10 -o run").out
    first = f"posed/{sorted(file.name for file in (folder / 'posed').glob('decision-*.json'))[0]}"
    origin = json.loads((folder / first).read_text())["origin"]
    assert (origin["model"]["file"], len(origin["model"]["sha256"])) == ("capped.py", 64)

    said = "model 'power-cap' is one of capped.py; expected --model capped.py, which runs it\n"
    assert optsched("solve", first, code=1).err == f"optsched: {first}: {said}"
    own = "--model capped.py"
    answer = json.loads(optsched("solve", first, own, "--solver highs --json").out)
    assert (answer["status"], answer["objective"]) == ("optimal", origin["objective"])
    optsched("compare posed", own, "--solvers cp-sat,in-order -o compared")
    for words in ("show", "export -o a.lp", "convert -o a.json", "check"):
        verb, _, options = words.partition(" ")
        optsched("snapshot", verb, first, options, own)
    assert " power: +" in (folder / "a.lp").read_text()
    schema = json.loads(optsched("snapshot schema capped.py").out)
    assert schema["title"] == "snapshot of power-cap"
    page = optsched("snapshot page capped.py").out
    assert r"| power | $\mathit{watts} \cdot \mathit{start} \le \mathit{cap}$ |" in page


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("model = power_cap", 'model = "power-gap"', "unknown model 'power-gap' of policy"),
        ("    model = power_cap", "", "missing; expected a model or its name"),
        ("watts @ start", "start * start", "a product of the decisions start and start"),
        ("(nodes)", "(nodes) / 0", "ZeroDivisionError"),
        ("Integers(1)", "Intejers(1)", "NameError: name 'Intejers' is not defined"),
        ('"watts": ', '"wats": ', "missing a required argument: 'watts'"),
        ('"start", len(nodes))', '"start", len(nodes), 2)[:, 0]', "first decisions 'start': "),
    ],
)
def test_a_mistake_is_one_line(optsched, folder, old, new, said):
    assert old in CODE
    (folder / "capped.py").write_text(CODE.replace(old, new, 1))
    words = "simulate sample-256 --policy capped.py --jobs 1:20 --no-plots -o run"
    assert said in optsched(words, code=1).err


def test_models_of_files_are_those_that_are_named(optsched, folder):
    (folder / "none.py").write_text("x = 1\n")
    (folder / "other.py").write_text(CODE)
    (folder / "taken.py").write_text(CODE.replace('"power-cap"', '"window-mkp"'))
    for options, said in (
        ("none.py", "none.py: holds no model; expected a function with @optsched.model(\"NAME\")"),
        ("capped.py:Nope", "capped.py: holds no model Nope; expected a function with"),
        ("capped.py --model other.py", "--model: power-cap is a model of two files"),
        ("taken.py", "window-mkp is a model of optsched; expected another name"),
    ):
        [told] = optsched("solve yang-2014-example --model", options, code=1).err.splitlines()
        assert said in told
    optsched("solve yang-2014-example --model capped.py:power_cap")
