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
from optsched.studies import study_folder
from optsched.studies.content import PLAN
from optsched.studies.pages import HEADING, overall, verdicts, with_verdicts

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "results"
KEPT = sorted(folder.name for folder in RESULTS.iterdir())


def test_every_study_has_results():
    own = {folder.name for folder in bundled("studies").iterdir()}
    assert set(KEPT) == own & set(registry.studies)


CHEAPEST = "openb-2023"


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name == CHEAPEST else pytest.mark.long) for name in KEPT],
)
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


def test_the_readme_counts_the_verdicts():
    """Otherwise: make pages."""
    text = (ROOT / "README.md").read_text()
    assert with_verdicts(text, RESULTS) == text


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
    link = "[one](docs/results/one/README.md)"
    assert list(verdicts(tmp_path)) == [HEADING, (link, "3", "1", "1", "1", "0", "0")]


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
