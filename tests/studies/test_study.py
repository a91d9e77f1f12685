"""What all studies have in common: content, discovery, templates, and a study from outside."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from optsched import registry
from optsched.cli import INTERRUPTED
from optsched.cli import run as optsched
from optsched.content import bundled
from optsched.errors import InputError
from optsched.report.page import Table, Verdict
from optsched.studies.content import CLAIMS, PAGE, PLAN
from optsched.studies.judging import Claim, judge, judge_claims, read_claims
from optsched.studies.study import Study
from optsched.studies.study_folder import study
from optsched.studies.template import page_from

ROOT = Path(__file__).resolve().parents[2]
HOW_TO = ROOT / "docs" / "how-to" / "add-a-study.md"


def own_studies():
    return [name for name in registry.studies if (bundled("studies") / name).is_dir()]


def test_every_study_has_its_content_and_every_content_its_study():
    folders = {file.parent.name for file in bundled("studies").glob(f"*/{PAGE}")}
    assert folders == set(own_studies())
    for name in own_studies():
        files = {file.name for file in (bundled("studies") / name).iterdir()}
        assert {PLAN, PAGE} <= files <= {PLAN, PAGE, CLAIMS, "published.toml"}


def test_studies_are_listed_without_their_pages_and_figures():
    code = (
        "import sys; from optsched import registry; list(registry.studies);"
        "print([n for n in ('numba', 'pandas', 'matplotlib', 'jinja2') if n in sys.modules],"
        "sum(n.startswith('optsched.') for n in sys.modules))"
    )
    heavy, modules = subprocess.check_output([sys.executable, "-c", code], text=True).split("] ")
    assert heavy == "["
    assert int(modules) < 40


@pytest.fixture
def theirs(tmp_path):
    """The folder of a distribution with the study of the how-to, found by its entry point."""
    info = tmp_path / "theirs-1.0.dist-info"
    package = tmp_path / "their_package"
    info.mkdir()
    package.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[optsched.studies]\nfcfs-and-easy = their_package.easy\n"
    )
    text = HOW_TO.read_text()
    for language, file in (("toml", PLAN), ("jinja", PAGE), ("python", "easy.py")):
        first = re.search(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        (package / file).write_text(first[1])
    return tmp_path


@pytest.mark.long
def test_a_study_of_another_package_is_run_and_judged(theirs):
    def run(*command):
        done = subprocess.run(
            [sys.executable, *command],
            env={"PYTHONPATH": os.pathsep.join(map(str, (theirs, ROOT)))},
            cwd=theirs,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    code = (
        "import optsched; found = optsched.study('fcfs-and-easy', 'out', workers=1);"
        "print(found.claims.iloc[0].to_json()); print(len(found.tables['runs']), found.page)"
    )
    claim, rest = run("-c", code).splitlines()
    assert json.loads(claim) == {
        "claim": "EASY shortens the mean wait",
        "published": "shorter",
        "where": "",
        "variant": "the sample",
        "verdict": "holds",
        "why": "shorter in 3 of 3 parts",
    }
    assert rest.split() == ["6", str(Path("out") / "report.html")]
    written = {file.name for file in (theirs / "out").iterdir()}
    assert {"claims.csv", "runs.csv", "waits.svg", "report.html", "sweep"} <= written
    page = (theirs / "out" / "report.html").read_text()
    assert ">holds</span>" in page
    assert "optsched study fcfs-and-easy -o DIR" in page
    # the command continues where Python has ended, and makes the same page
    assert "report" in run("-m", "optsched", "study", "fcfs-and-easy", "-o", "out")
    assert (theirs / "out" / "report.html").read_text() == page


@pytest.fixture
def solves(tmp_path, monkeypatch):
    """A study of two cases, registered, with the names of the cases that it has solved."""

    class Solves(Study):
        content = tmp_path / "content"
        simulates = False
        packages = ("numpy",)
        name = "solves"
        seconds = 1.0
        solved: ClassVar[list[str]] = []
        interrupted: ClassVar[set[str]] = set()

        def files(self, folders):
            return [self.content / "data"]

        def cases(self, folders, *, quick):
            sizes = {"three": 3, "five": 5}
            return {name: partial(self.solve, name, size, quick) for name, size in sizes.items()}

        def solve(self, name, placed, quick):
            self.solved.append(name)
            row = {"jobs": placed, "placed": placed * (1 + quick), "share": np.float64(1 / placed)}
            yield row | {"bound": np.nan, "wall_seconds": self.seconds}
            if name in self.interrupted:
                raise KeyboardInterrupt

        def values(self, frame, *, quick):
            return {"placed": int(frame["placed"].sum())}

    Solves.content.mkdir()
    (Solves.content / PLAN).write_text("")
    (Solves.content / "data").write_text("1")
    (Solves.content / PAGE).write_text(
        "# Solved\n\n{{ placed }} of {{ jobs }} jobs in {{ runs }} answers."
    )
    monkeypatch.setitem(registry.studies._classes, "solves", Solves)
    return Solves


def test_a_study_may_solve_problems_in_place_of_a_sweep(solves, tmp_path):
    first = study("solves", tmp_path / "first", quick=True)
    assert "16 of 8 jobs in 2 answers." in (tmp_path / "first" / "README.md").read_text()
    assert first.tables["runs"].columns.tolist() == ["jobs", "placed", "share", "bound"]
    assert first.tables["runs"]["share"].tolist() == [1 / 3, 1 / 5]
    about = json.loads((tmp_path / "first" / "study.json").read_text())
    assert {"optsched", "numpy"} <= about["versions"].keys()
    solves.seconds = 2.0
    study("solves", tmp_path / "second", quick=True)
    made = [files_in(tmp_path / name) for name in ("first", "second")]
    assert [json.loads(files.pop("timing.json")) for files in made] == [
        {"wall_seconds": [seconds] * 2} for seconds in (1.0, 2.0)
    ]
    assert made[0] == made[1]


def files_in(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def test_a_study_of_problems_that_was_stopped_solves_the_others_alone(solves, tmp_path, capsys):
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    study("solves", whole)
    solves.solved.clear()
    solves.interrupted.add("five")
    command = ["study", "solves", "-o", str(stopped)]
    assert optsched(command) == INTERRUPTED
    said = "interrupted with 1 case left; the same command resumes the study"
    assert said in capsys.readouterr().err
    assert [file.name for file in (stopped / "cases").iterdir()] == ["three.json"]
    solves.interrupted.clear()
    assert optsched(command) == 0
    assert solves.solved == ["three", "five", "five"]
    assert files_in(stopped) == files_in(whole)
    assert optsched(command) == 0
    assert "2 cases, 0 to do" in capsys.readouterr().err
    assert solves.solved == ["three", "five", "five"]


def test_a_case_is_solved_again_if_its_file_is_damaged_or_what_it_rests_on_has_changed(
    solves, tmp_path, caplog
):
    study("solves", tmp_path / "out")
    solves.solved.clear()
    file = tmp_path / "out" / "cases" / "five.json"
    os.truncate(file, 20)
    study("solves", tmp_path / "out")
    assert solves.solved == ["five"]
    assert f"{file} is damaged; the case is solved again" in caplog.text
    for changed in (PLAN, "data"):
        solves.solved.clear()
        (solves.content / changed).write_text("# 2")
        study("solves", tmp_path / "out")
        assert solves.solved == ["three", "five"]


def test_cases_of_several_versions_are_told(solves, tmp_path):
    study("solves", tmp_path / "out")
    file = tmp_path / "out" / "cases" / "five.json"
    case = json.loads(file.read_text())
    file.write_text(json.dumps(case | {"versions": case["versions"] | {"numpy": "1.0"}}))
    study("solves", tmp_path / "out")
    about = json.loads((tmp_path / "out" / "study.json").read_text())
    assert about["versions"]["numpy"] == f"1.0 and {case['versions']['numpy']}"


def render(folder, text, pictures=None, **values):
    (folder / PAGE).write_text(text)
    return page_from(folder / PAGE, values, pictures or {}, {}, "again")


def test_a_template_becomes_a_page(tmp_path):
    text = """
# The title

The lead is {{ share|form(".0%") }},
over {{ ["a", "b"]|join(", ") }} .

## Empty

{% call figure("missing") %}
Left out.

Left out.
{% endcall %}

## Full

One
paragraph.

{% call table(records) %}
A caption.
{% endcall %}

{% call figure("there") %}
Shown.

In words.
{% endcall %}
"""
    records = [{"name": "one", ("group", "number"): 1}, {"name": "two", ("group", "number"): 2}]
    page = render(tmp_path, text, {"there": "<svg/>"}, share=0.5, records=records)
    assert (page.title, page.lead, page.repeat) == (
        "The title",
        "The lead is 50%, over a, b.",
        "again",
    )
    [section] = page.sections
    paragraph, table, figure = section.parts
    assert (section.title, paragraph) == ("Full", "One paragraph.")
    assert table == Table("A caption.", ["name", ("group", "number")], [["one", 1], ["two", 2]])
    assert (figure.caption, figure.alt) == ("Shown.", "In words.")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{{ nothing }}", "'nothing' is undefined; expected a Jinja2 template"),
        ("# A\n{% if %}", r"page.md.j2, line 2: .*; expected a Jinja2 template"),
    ],
)
def test_what_is_wrong_with_a_template_is_named(text, words, tmp_path):
    with pytest.raises(InputError, match=words):
        render(tmp_path, text)


def test_a_missing_template_is_named(tmp_path):
    with pytest.raises(InputError, match=r"page\.md\.j2: missing"):
        page_from(tmp_path / PAGE, {}, {}, {}, "")


def test_claims_hold_in_part_from_half_of_the_cases_on():
    def verdict(true, cases):
        return judge([True] * true + [False] * (cases - true), "{so} of {of}")

    assert verdict(9, 10) == (Verdict.HELD, "9 of 10")
    assert verdict(8, 10).verdict == verdict(1, 2).verdict == Verdict.IN_PART
    assert verdict(4, 10).verdict == Verdict.NOT_HELD
    assert Claim("text", "published").judgements == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[claims]]\ntext = 'a'\njudge = 'one'", r"claims\[1\].published: None; expected a text"),
        (
            "[[claims]]\ntext = 'a'\npublished = 'b'\njudge = 'none'",
            "judge: 'none'; expected a function of json",
        ),
    ],
)
def test_what_is_wrong_with_claims_is_named(text, words, tmp_path):
    (tmp_path / CLAIMS).write_text(text)
    with pytest.raises(InputError, match=words):
        judge_claims(tmp_path, "json", {})


@pytest.mark.parametrize(
    ("trace", "found"),
    [("inputs/made.swf", "inputs/made.swf"), ("samples/sample-256.swf", "sample-256.swf")],
)
def test_a_plan_names_the_traces_of_its_study_samples_and_logs(trace, found, tmp_path):
    class Mine(Study):
        name = "mine"
        content = tmp_path

    (tmp_path / PLAN).write_text(f"trace = '{trace}'\n[quick]\njobs = '1:5'\n")
    plan = Mine().plan([], Path("inputs"), quick=True)
    assert plan["trace"][0].endswith(found)
    assert plan["jobs"] == "1:5"
    (tmp_path / PLAN).write_text("[[runs]]\ntrace = ['log.swf']")
    with pytest.raises(InputError, match=r"log\.swf: no folder is named"):
        Mine().plan([], Path("inputs"), quick=False)
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "log.swf").touch()
    plan = Mine().plan([tmp_path / "logs"], Path("inputs"), quick=False)
    assert plan["runs"][0]["trace"] == [str(tmp_path / "logs" / "log.swf")]


@pytest.mark.parametrize("name", own_studies())
def test_every_claim_has_its_judge(name):
    content = bundled("studies") / name
    if not (content / CLAIMS).is_file():
        return
    module = import_module(f"optsched.studies.{name.replace('-', '_')}.claims")
    stated = {claim.judge for claim in read_claims(content) if claim.judge}
    assert stated
    assert all(callable(getattr(module, one)) for one in stated)
