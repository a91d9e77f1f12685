"""Pages of parts and cards in notebooks: escaping, tables, anchors, and nothing from outside."""

import re
from html.parser import HTMLParser

import pytest

import optsched
from optsched.extend import Result, Solver, Status
from optsched.models import WindowMKP
from optsched.report import page as pages
from optsched.report.displays import Card
from optsched.report.page import Cell, Facts, Figure, Heading, Page, Section, Table, render

NASTY = "<script>alert('x')</script>\" onload=\"alert(1)"
SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 2 1"><script>bad()</script></svg>'
PICTURE = Figure("picture", SVG, "alt", "caption")


class Document(HTMLParser):
    """The tags of a page, and the texts of its cells by row."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.rows, self._in_cell = [], [], False
        self.feed(text)

    def attributes(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        self._in_cell = tag in ("td", "th") or (self._in_cell and tag in ("span", "small"))

    def handle_endtag(self, tag):
        self._in_cell &= tag not in ("td", "th")

    def handle_data(self, data):
        if self._in_cell:
            self.rows[-1][-1] += data


def page_of(*parts, **fields):
    given = {"title": "A title", "lead": "A finding.", "repeat": None, "versions": {"made": "1"}}
    return Page(sections=[Section("Part", parts)], **(given | fields))


def test_every_text_is_escaped():
    table = Table(NASTY, [NASTY, (NASTY, NASTY)], [[NASTY, Cell(NASTY, NASTY, NASTY)]])
    parts = [NASTY, Facts([(NASTY, NASTY)]), table, Figure("picture", SVG, NASTY, NASTY)]
    page = Page(NASTY, NASTY, [Section(NASTY, parts)], NASTY, {NASTY: NASTY})
    document = Document(render(page))
    assert len(document.attributes("script")) == 1
    assert not any("onload" in attributes for _, attributes in document.tags)
    assert document.attributes("img")[0]["alt"] == NASTY
    assert document.attributes("td")[0]["data-value"] == NASTY
    assert NASTY in document.rows[-1][0]


def test_nothing_outside_is_referred_to():
    text = render(page_of(PICTURE, Table("t", ["a"], [["b"]])))
    document = Document(text)
    names = ("src", "href", "srcset", "action", "data")
    addresses = [tag[name] for _, tag in document.tags for name in names if name in tag]
    [address] = [address for address in addresses if not address.startswith("#")]
    assert address.startswith("data:image/svg+xml;base64,")
    assert document.attributes("link") == []
    assert re.findall(r"https?://|@import|url\(", text) == []
    policy = document.attributes("meta")[-1]["content"]
    assert policy.startswith("default-src 'none'")


@pytest.mark.parametrize(
    ("show", "value", "text"),
    [
        (pages.cell, 1234567, "1,234,567"), (pages.cell, 0.123456, "0.1235"),
        (pages.cell, 12345.6, "12,346"), (pages.cell, "text", "text"),
        (pages.duration, 90.0, "1.5 min"), (pages.share, 0.125, "12.5%"),
        (pages.share, 3.7e-7, "< 0.0001%"), (pages.share, -3.4e-7, "> -0.0001%"),
        (pages.share, 0.0, "0%"), (pages.share, 0.9999, "99.99%"),
        (pages.share, 0.99996, "> 99.99%"), (pages.share, 1.0, "100%"),
    ],
)  # fmt: skip
def test_numbers_are_shown_for_people_and_sorted_as_numbers(show, value, text):
    assert (show(value).text, show(value).key) == (text, value)


def test_numbers_that_are_not_known_are_missing_and_a_column_is_numeric_when_all_others_are():
    for make in (pages.cell, pages.duration, pages.share):
        assert make(float("nan")) == make(None) == Cell(pages.MISSING)
    assert pages.cell(float("inf")) == pages.duration(float("inf")) == Cell(pages.MISSING)
    assert pages.cell(True).key == "yes"
    rows = [["a", 1, None, 2, "holds"], ["b", 2.5, None, "x", None]]
    table = Table("", ["name", "number", "nothing", "mixed", "verdict"], rows)
    assert table.numeric == [False, True, False, False, False]
    assert Table("", ["name", "number"], []).numeric == [False, False]


def test_columns_of_one_group_share_a_header():
    columns = ["metric", ("5%", "measured"), ("5%", "published"), ("10%", "measured"), "verdict"]
    table = Table("t", columns, [["wait", 1, 2, 3, "holds in part"]])
    document = Document(render(page_of(table)))
    assert document.rows == [
        ["metric", "5%", "10%", "verdict"],
        ["measured", "published", "measured"],
        ["wait", "1", "2", "3", "holds in part"],
    ]
    headers = document.attributes("th")
    assert [h.get("rowspan") for h in headers[:4]] == ["2", None, None, "2"]
    assert [h.get("colspan") for h in headers[:4]] == [None, "2", "1", None]
    assert sorted(h["data-column"] for h in headers if "data-column" in h) == list("01234")


def test_a_note_stands_beside_its_value_and_the_foot_says_how_to_repeat_it_or_that_nothing_does():
    table = Table("t", ["metric", "value"], [["wait", Cell("12%", 0.12, note="published 11%")]])
    text = render(page_of(table))
    document = Document(text)
    assert document.rows[1] == ["wait", "12% published 11%"]
    assert document.attributes("td")[0]["data-value"] == "0.12"
    assert "No command repeats this" in text
    assert "<pre>optsched simulate x</pre>" in render(page_of(repeat="optsched simulate x"))


def test_every_section_and_heading_has_an_anchor_of_its_own():
    parts = [Heading("Part"), Heading("How to repeat this"), Heading("\N{SNOWMAN}")]
    page = Page("A", "B", [Section("Part", parts)], None, {}, appendix=[Section("Part", ["c"])])
    document = Document(render(page))
    headings = [attributes["id"] for tag, attributes in document.tags if tag in ("h2", "h3")]
    assert headings == [
        *("part", "part-3", "how-to-repeat-this-2", "section", "how-to-repeat-this", "part-2")
    ]
    links = [attributes["href"] for attributes in document.attributes("a")]
    assert links[:3] == ["#part", "#how-to-repeat-this", "#part-2"]


def test_a_fold_holds_parts_and_a_long_table_is_one():
    rows = [[k] for k in range(pages.LONG + 1)]
    text = render(page_of(pages.Fold("more", ["inside", Facts([("a", 1)], {"a": "what it is"})])))
    assert text.index("<summary>more</summary>") < text.index("<p>inside</p>")
    assert '<dt title="what it is">a</dt>' in text
    assert "<details>" in render(page_of(Table("t", ["a"], rows)))
    assert "<details>" not in render(page_of(Table("t", ["a"], rows[1:])))


def test_only_pages_with_charts_have_their_script_and_no_data_end_it():
    assert "GanttChart" not in render(page_of(PICTURE))
    text = render(page_of(Figure("picture", SVG, "alt", "caption", [{"about": "</script>"}])))
    assert "GanttChart" in text
    assert text.count("</script>") == 2


PROBLEM = WindowMKP(weights=[6, 4, 3, 1, 2], capacities=[3, 6, 6], jobs=["<b>", "b", "c", "d", "e"])
IMAGE = '<img src="data:image/png;base64,'


def facts(html):
    """Return the names and values that a card shows."""
    return dict(re.findall(r"<tr><th[^>]*>(.*?)</th><td[^>]*>(.*?)</td></tr>", html))


class Wrong(Solver):
    def solve(self, problem, *, budget, hint=None, seed=0, on_incumbent=None):
        return Result(self.name, Status.OPTIMAL, (0,) * 5, 16)


def test_the_card_of_a_run_has_names_units_and_its_first_picture(small_run):
    html = small_run._repr_html_()
    found = facts(html)
    assert found["mean wait"].startswith("18.3 s")  # 0, 55 and 0 s
    assert found["utilization"] == "61.25%"  # (240 + 160 + 90) of 10 x 80 processor-seconds
    assert "rejected" not in found
    assert IMAGE in html


def test_the_card_of_a_problem_has_its_data_and_that_of_a_result_its_solution_with_a_picture():
    found = facts(PROBLEM._repr_html_())
    assert found["jobs"].startswith("&lt;b&gt; (6) b (4)")
    assert found["objective"] == "to maximize"
    assert repr(PROBLEM) == "<WindowMKP 5x3>"
    html = optsched.solve(PROBLEM)._repr_html_()
    found = facts(html)
    assert (found["status"], found["objective"], found["gap"]) == ("optimal", "15", "0%")
    assert found["slot 1 (3)"] == "c (3)"
    assert IMAGE in html


def test_the_card_of_a_refused_result_has_its_violations_and_no_picture_nor_has_every_model():
    result = optsched.solve(PROBLEM, Wrong())
    html = result._repr_html_()
    assert "slot 1 of size 3 holds jobs of size 16" in html
    assert IMAGE not in html
    assert "objective" not in facts(html)
    with pytest.raises(optsched.InputError, match="expected a result of optsched"):
        result.plot()
    problem = optsched.load_snapshot("hold/worked-example")
    hold = optsched.solve(problem, "cheapest-first")
    assert IMAGE not in hold._repr_html_()
    with pytest.raises(optsched.InputError, match="no picture of solutions of hold"):
        hold.plot()


def test_the_card_of_a_comparison_has_the_finding_and_its_wrong_answers():
    html = optsched.compare(PROBLEM, ["greedy", Wrong()])._repr_html_()
    assert "1 wrong answer: " in html
    assert "window-mkp: greedy reached the best known objective on the only snapshot." in html
    assert IMAGE in html


def test_texts_of_a_card_are_escaped():
    shown = Table("<i>", ["<b>", ("<u>", "v")], [["<s>", 1]])
    html = Card("<title>", "<lead>", [Facts([("<a>", "<p>")]), shown], Facts([("<q>", 1)])).html()
    given = {"<title>", "<lead>", "<a>", "<i>", "<u>", "<s>", "<q>"}
    assert not given & set(re.findall("<[^>]*>", html))
