"""What notebooks show of runs, problems, results and comparisons."""

from __future__ import annotations

import re

import pytest

import optsched
from optsched.extend import Result, Solver, Status
from optsched.models import WindowMKP
from optsched.report.displays import Card
from optsched.report.page import Facts, Table

PROBLEM = WindowMKP(weights=[6, 4, 3, 1, 2], capacities=[3, 6, 6], jobs=["<b>", "b", "c", "d", "e"])
PICTURE = '<img src="data:image/png;base64,'


def facts(html):
    """Return the names and values that a card shows."""
    return dict(re.findall(r"<tr><th[^>]*>(.*?)</th><td[^>]*>(.*?)</td></tr>", html))


class Wrong(Solver):
    def solve(self, problem, *, budget, hint=None, seed=0, on_incumbent=None):
        return Result(self.name, Status.OPTIMAL, (0,) * 5, 16)


def test_a_run_has_names_units_and_its_first_picture(small_run):
    html = small_run._repr_html_()
    found = facts(html)
    assert found["mean wait"].startswith("18.3 s")  # 0, 55 and 0 s
    assert found["utilization"] == "61.25%"  # (240 + 160 + 90) of 10 x 80 processor-seconds
    assert "rejected" not in found
    assert PICTURE in html


def test_a_problem_has_its_data():
    found = facts(PROBLEM._repr_html_())
    assert found["jobs"].startswith("&lt;b&gt; (6) b (4)")
    assert found["objective"] == "to maximize"
    assert repr(PROBLEM) == "<WindowMKP 5x3>"


def test_a_result_has_its_solution_with_a_picture():
    html = optsched.solve(PROBLEM)._repr_html_()
    found = facts(html)
    assert (found["status"], found["objective"], found["gap"]) == ("optimal", "15", "0%")
    assert found["slot 1 (3)"] == "c (3)"
    assert PICTURE in html


def test_a_refused_result_has_its_violations_and_no_picture_nor_has_every_model():
    result = optsched.solve(PROBLEM, Wrong())
    html = result._repr_html_()
    assert "slot 1 of size 3 holds jobs of size 16" in html
    assert PICTURE not in html
    assert "objective" not in facts(html)
    with pytest.raises(optsched.InputError, match="expected a result of optsched"):
        result.plot()
    problem = optsched.load_snapshot("hold/worked-example")
    hold = optsched.solve(problem, "cheapest-first")
    assert PICTURE not in hold._repr_html_()
    with pytest.raises(optsched.InputError, match="no picture of solutions of hold"):
        hold.plot()


def test_a_comparison_has_the_finding_and_its_wrong_answers():
    html = optsched.compare(PROBLEM, ["greedy", Wrong()])._repr_html_()
    assert "1 wrong answer: " in html
    assert "window-mkp: greedy reached the best known objective on the only snapshot." in html
    assert PICTURE in html


def test_texts_of_a_card_are_escaped():
    shown = Table("<i>", ["<b>", ("<u>", "v")], [["<s>", 1]])
    html = Card("<title>", "<lead>", [Facts([("<a>", "<p>")]), shown], Facts([("<q>", 1)])).html()
    given = {"<title>", "<lead>", "<a>", "<i>", "<u>", "<s>", "<q>"}
    assert not given & set(re.findall("<[^>]*>", html))
