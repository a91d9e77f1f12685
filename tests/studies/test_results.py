"""The results of full studies in studies/: pages, data and plans belong together."""

from __future__ import annotations

import re
import shutil

import pytest

from optsched.cli.pages import verdicts
from optsched.content import bundled
from optsched.studies import folder as studies
from optsched.studies.folder import Evaluated, StudyFolder, check_page, evaluate, read_results

FOLDERS = sorted(file.parent.name for file in bundled("studies").glob("*/study.py"))


@pytest.mark.parametrize("name", FOLDERS)
def test_the_page_of_a_folder_agrees_with_its_results(name):
    """Otherwise: optsched study NAME --check."""
    assert check_page(StudyFolder(bundled("studies") / name))[0] == []


@pytest.mark.long
@pytest.mark.parametrize("name", FOLDERS)
def test_tables_and_figures_are_those_of_the_results(name, tmp_path):
    """Otherwise: optsched study NAME --write."""
    own = bundled("studies") / name
    shutil.copytree(own, tmp_path / name)
    evaluate(StudyFolder(tmp_path / name), tmp_path / name)
    for file in own.rglob("*.*"):
        if file.parent.name != "__pycache__":
            assert (tmp_path / name / file.relative_to(own)).read_bytes() == file.read_bytes(), file


@pytest.mark.long
@pytest.mark.parametrize("name", FOLDERS)
def test_every_changed_digit_of_a_page_is_found(name):
    own = bundled("studies") / name
    study = StudyFolder(own)
    found = Evaluated(study, read_results(own / "results"))
    text, blocks = (own / "page.md").read_text(), found.blocks()
    prose = studies.BLOCK.sub(_blank, studies.FREE.sub(_blank, text))
    changed = 0
    for name in studies.NAME.finditer(prose):
        before = prose[: name.start()].rpartition("-->")[2]
        digit = re.search(r"\d(?=[^\d<>]*$)", before)
        if digit is None or name[1] == "fixed":
            continue
        place = name.start() - len(before) + digit.start()
        other = text[:place] + str((int(text[place]) + 2) % 10) + text[place + 1 :]
        changed += 1
        assert list(studies.page_mistakes(other, found.values, blocks)), name[1]
    assert changed > 40


def _blank(found):
    return " " * len(found[0])


def test_verdicts_are_counted_by_claim(tmp_path):
    (tmp_path / "two" / "results").mkdir(parents=True)
    (tmp_path / "two" / studies.PLAN).write_text('paper = "Two"')
    shutil.copytree(tmp_path / "two", tmp_path / "of no paper")
    (tmp_path / "of no paper" / studies.PLAN).write_text("")
    (tmp_path / "two" / "results" / "claims.csv").write_text(
        "key,reading,verdict\na,main,holds\na,other,not decided\nb,main,does not hold\n"
    )
    link = "[two](studies/two/page.md)"
    assert list(verdicts(tmp_path))[1:] == [(link, "2", "1", "1", "0", "0")]
