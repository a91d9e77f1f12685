"""Pages as Markdown."""

from __future__ import annotations

from optsched.report.markdown import markdown
from optsched.report.page import Cell, Facts, Figure, Page, Section, Table, Verdict


def test_a_page_as_markdown():
    table = Table(
        "Caption.",
        ["name", ("wait", "ours"), ("wait", "published")],
        [["a|b", 1234, Cell("2.0%", 2.0, "paper 3%")], [Verdict.IN_PART, None, 3.0]],
    )
    parts = [
        "A *text* of <1%.",
        Facts([("jobs", 12)]),
        Figure("waits", "<svg/>", "Alt.", "Cap."),
        table,
    ]
    page = Page("Title", "Lead.", [Section("First", parts)], "optsched study x", {"numpy": "2"})
    assert markdown(page) == (
        "# Title\n\nLead.\n\n## First\n\n"
        r"A \*text\* of \<1%."
        "\n\n- jobs: 12\n\n![Alt.](waits.svg)\n\n*Cap.*\n\n*Caption.*\n\n"
        "| name | wait: ours | wait: published |\n"
        "| --- | ---: | ---: |\n"
        r"| a\|b | 1,234 | 2.0% (paper 3%) |"
        "\n| **holds in part** | \N{EN DASH} | 3 |\n\n"
        "## How to repeat this\n\n```\noptsched study x\n```\n\nnumpy 2\n"
    )


def test_a_page_that_no_command_repeats():
    assert "No command repeats this." in markdown(Page("Title", "Lead.", [], None, {}))
