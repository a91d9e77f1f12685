"""The results of full studies in docs/results: pages, data and content belong together."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path

import pytest

from optsched import registry
from optsched.content import bundled
from optsched.report import style
from optsched.studies import page, study_folder
from optsched.studies.content import PLAN
from optsched.studies.folder import StudyFolder
from optsched.studies.pages import HEADING, overall, verdicts, with_verdicts
from optsched.studies.running import check, read_results, rewrite

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "results"
KEPT = sorted(folder.name for folder in RESULTS.iterdir())
FOLDERS = sorted(file.parent.name for file in bundled("studies").glob("*/study.py"))


def test_every_study_has_results():
    own = {folder.name for folder in bundled("studies").iterdir()}
    assert set(KEPT) == own & set(registry.studies)
    assert own - set(KEPT) == set(FOLDERS)


@pytest.mark.long
@pytest.mark.parametrize("name", KEPT)
def test_page_figures_and_verdicts_follow_from_the_results(name, tmp_path, monkeypatch):
    """Otherwise: optsched report docs/results/NAME, and remove report.html and *.png."""
    monkeypatch.delitem(style.METADATA, ".png")  # not kept, and as long in drawing as the others
    kept = RESULTS / name
    shutil.copytree(kept, tmp_path / name)
    study_folder.report(tmp_path / name)
    written = {file.name: file.read_bytes() for file in (tmp_path / name).iterdir()}
    assert written.pop("report.html")
    assert written == {file.name: file.read_bytes() for file in kept.iterdir()}


@pytest.mark.parametrize("name", KEPT)
def test_results_are_those_of_the_present_plan_in_full(name):
    """Otherwise: make results."""
    about = json.loads((RESULTS / name / "study.json").read_text())
    plan = bundled("studies") / name / PLAN
    assert about["plan"] == hashlib.sha256(plan.read_bytes()).hexdigest()
    assert (about["study"], about["quick"]) == (name, False)


@pytest.mark.parametrize("name", KEPT)
def test_every_picture_is_shown_and_every_shown_picture_is_there(name):
    shown = re.findall(r"^!\[.*\]\((\S+)\)$", (RESULTS / name / "README.md").read_text(), re.M)
    assert sorted(shown) == sorted(file.name for file in (RESULTS / name).glob("*.svg"))


@pytest.mark.parametrize("name", FOLDERS)
def test_the_page_of_a_folder_agrees_with_its_results(name, tmp_path):
    """Otherwise: optsched study NAME --check."""
    assert check(StudyFolder(bundled("studies") / name))[0] == []


@pytest.mark.long
@pytest.mark.parametrize("name", FOLDERS)
def test_tables_and_figures_are_those_of_the_results(name, tmp_path):
    """Otherwise: optsched study NAME --write."""
    own = bundled("studies") / name
    shutil.copytree(own, tmp_path / name)
    rewrite(StudyFolder(tmp_path / name))
    for file in own.rglob("*.*"):
        if file.parent.name != "__pycache__":
            assert (tmp_path / name / file.relative_to(own)).read_bytes() == file.read_bytes(), file


@pytest.mark.long
@pytest.mark.parametrize("name", FOLDERS)
def test_every_changed_digit_of_a_page_is_found(name):
    own = bundled("studies") / name
    study = StudyFolder(own)
    found = study.evaluated(read_results(own / "results"))
    text, blocks = (own / "page.md").read_text(), found.blocks()
    prose = page.BLOCK.sub(lambda block: " " * len(block[0]), page.FREE.sub(_blank, text))
    changed = 0
    for name in page.NAME.finditer(prose):
        before = prose[: name.start()].rpartition("-->")[2]
        digit = re.search(r"\d(?=[^\d<>]*$)", before)
        if digit is None or name[1] == "fixed":
            continue
        place = name.start() - len(before) + digit.start()
        other = text[:place] + str((int(text[place]) + 2) % 10) + text[place + 1 :]
        changed += 1
        assert list(page.mistakes(other, found.values, blocks)), name[1]
    assert changed > 40


def _blank(found):
    return " " * len(found[0])


def test_the_readme_counts_the_verdicts(monkeypatch):
    """Otherwise: make pages."""
    monkeypatch.chdir(ROOT)
    text = (ROOT / "README.md").read_text()
    assert with_verdicts(text) == text


def test_verdicts_are_counted_by_claim(tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "claims.csv").write_text(
        "claim,where,variant,verdict\n"
        "A,,all,holds\n"
        "A,,day,does not hold\n"
        "B,,strict,holds\n"
        "B,,free,does not hold\n"
        "C,,strict,does not hold\n"
        "C,,free,does not hold\n"
    )
    (tmp_path / "two" / "results").mkdir(parents=True)
    (tmp_path / "two" / PLAN).write_text('paper = "Two"')
    shutil.copytree(tmp_path / "two", tmp_path / "of no paper")
    (tmp_path / "of no paper" / PLAN).write_text("")
    (tmp_path / "two" / "results" / "claims.csv").write_text(
        "key,reading,verdict\na,main,holds\na,other,not decided\nb,main,does not hold\n"
    )
    link = "[one](docs/results/one/README.md)"
    other = f"[two]({tmp_path}/two/page.md)"
    assert list(verdicts(tmp_path, tmp_path)) == [
        HEADING,
        (link, "3", "1", "1", "1", "0", "0"),
        (other, "2", "1", "0", "1", "0", "0"),
    ]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({("", "all"): "holds", ("", "week"): "does not hold"}, "holds"),
        ({("", "all"): "holds", ("also", "all"): "does not hold"}, "holds in part"),
        ({("", "strict"): "holds in part"}, "holds in part"),
        ({("", "strict"): "holds", ("", "free"): "does not hold"}, "holds in part"),
        ({("one", "strict"): "holds", ("two", "strict"): "does not hold"}, "holds in part"),
        ({("", "strict"): "does not hold", ("", "free"): "not decided"}, "does not hold"),
        ({("", "strict"): "holds", ("", "free"): "not judged"}, "holds"),
    ],
)
def test_a_verdict_over_sets_of_runs_and_variants(given, expected):
    assert overall(given) == expected
