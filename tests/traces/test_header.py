import pytest

from optsched.traces.trace import Header


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("338", 338),
        ("338 (batch partition; 512 total)", 338),
        ("1664 (72, 1368, 224)", 1664),
        ("70  (dual)", 70),
        ("3600\t # deprecated", 3600),
        ("-28800", -28800),
        ("N/A", None),
        ("", None),
        ("1,024", None),
        ("1.5", None),
        ("12x", None),
    ],
)
def test_numbers_are_read_tolerantly_but_never_guessed(value, number):
    assert Header.from_comments([f" TimeZone: {value}"]).number("TimeZone") == number


@pytest.mark.parametrize(("value", "number"), [("1", 1), ("0", None), ("-1", None), ("?", None)])
def test_a_machine_has_a_processor_or_is_not_stated(value, number):
    assert Header.from_comments([f" MaxProcs: {value}"]).max_procs == number


def test_order_and_repeated_keys_are_kept():
    header = Header.from_comments(
        [
            " Version: 2.2",
            "   --- converted ---",
            "Note: one",
            "  goes on",
            "\tand on",
            "",
            "Note: two",
        ]
    )
    assert [key for key, _ in header.lines] == ["Version", "", "Note", "", "", "", "Note"]
    assert header.facts == [
        ("Version", "2.2 --- converted ---"),
        ("Note", "one goes on and on"),
        ("Note", "two"),
    ]
    assert header.values("note") == ["one goes on and on", "two"]


def test_an_empty_line_ends_a_value():
    header = Header.from_comments(["Note: one", "", "  1  2  3"])
    assert header.facts == [("Note", "one")]


def test_what_is_not_a_fact_is_a_plain_line():
    texts = [
        "see: http://example.org/",
        "http://example.org/",
        " 1|  2|",
        "Two words: x",
        "Time:12:00",
    ]
    assert Header.from_comments(texts).lines == tuple(("", text) for text in texts)


def test_of_repeated_keys_the_first_number_counts():
    header = Header.from_comments(["MaxNodes: N/A", "MaxNodes: 57", "MaxNodes: 58"])
    assert header.max_nodes == 57
    assert header.max_procs is None
    assert header.unix_start_time is None
