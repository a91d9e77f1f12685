"""A decision of the user from end to end: a model and a policy that poses it, in one file."""

from __future__ import annotations

import json
import re

import pytest

from optsched.content import bundled

PAGE = bundled("models").parents[0] / "docs" / "how-to" / "pose-your-own-decision.md"
[CODE] = re.findall(r"```python\n(# capped.py\n.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "capped.py").write_text(CODE)
    return tmp_path


def test_captured_snapshots_of_a_model_in_a_file_are_read_back(optsched, folder):
    words = ("simulate", "sample-256", "--policy", "capped.py", "--jobs", "1:200", "--check")
    words += ("--no-plots", "--capture", "posed", "--capture-every", 10, "-o", "run")
    done = optsched(*words, cwd=folder)
    assert (done.returncode, "proven" in done.stdout) == (0, True), done.stderr
    first = sorted((folder / "posed").glob("decision-*.json"))[0]
    origin = json.loads(first.read_text())["origin"]
    assert (origin["model"]["file"], len(origin["model"]["sha256"])) == ("capped.py", 64)

    done = optsched("solve", first, cwd=folder)
    said = "model 'power-cap' is one of capped.py; expected --model capped.py, which runs it\n"
    assert (done.returncode, done.stderr) == (1, f"optsched: {first}: {said}")
    own = ("--model", "capped.py")
    done = optsched("solve", first, *own, "--solver", "highs", "--json", cwd=folder)
    answer = json.loads(done.stdout)
    assert (answer["status"], answer["objective"]) == ("optimal", origin["objective"])
    table = optsched(
        "compare", "posed", *own, "--solvers", "cp-sat,in-order", "-o", "c", cwd=folder
    )
    assert table.returncode == 0, table.stderr
    for command in (("show",), ("export", "-o", "a.lp"), ("convert", "-o", "a.json"), ("check",)):
        done = optsched("snapshot", command[0], first, *command[1:], *own, cwd=folder)
        assert done.returncode == 0, done.stderr
    assert " power: +" in (folder / "a.lp").read_text()
    schema = json.loads(optsched("snapshot", "schema", "capped.py", cwd=folder).stdout)
    assert schema["title"] == "snapshot of power-cap"
    page = optsched("snapshot", "page", "capped.py", cwd=folder).stdout
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
    words = ("simulate", "sample-256", "--policy", "capped.py", "--jobs", "1:20", "--no-plots")
    done = optsched(*words, "-o", "run", cwd=folder)
    assert (done.returncode, said in done.stderr) == (1, True), done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_without_a_model_is_refused(optsched, tmp_path):
    (tmp_path / "none.py").write_text("x = 1\n")
    done = optsched("solve", "yang-2014-example", "--model", "none.py", cwd=tmp_path)
    said = 'none.py: holds no model; expected a function with @optsched.model("NAME")'
    assert (done.returncode, done.stderr) == (1, f"optsched: {said}\n")


def test_models_of_files_are_those_that_are_named(optsched, folder):
    (folder / "other.py").write_text(CODE)
    (folder / "taken.py").write_text(CODE.replace('"power-cap"', '"window-mkp"'))
    for options, said in (
        (("capped.py:Nope",), "capped.py: holds no model Nope; expected a function with"),
        (("capped.py", "other.py"), "--model: power-cap is a model of two files"),
        (("taken.py",), "window-mkp is a model of optsched; expected another name"),
    ):
        own = [word for place in options for word in ("--model", place)]
        done = optsched("solve", "yang-2014-example", *own, cwd=folder)
        assert (done.returncode, said in done.stderr, done.stderr.count("\n")) == (1, True, 1)
    own = ("--model", "capped.py:power_cap")
    assert optsched("solve", "yang-2014-example", *own, cwd=folder).returncode == 0
