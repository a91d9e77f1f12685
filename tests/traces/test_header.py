import pytest

from optsched.traces.trace import Header


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("338 (batch partition; 512 total)", 338),
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


def test_order_and_repeated_keys_are_kept():
    comments = [" Version: 2.2", "   --- converted ---", "Note: one", "  goes on", "\tand on", ""]
    header = Header.from_comments([*comments, "  1  2  3", "Note: two"])
    assert [key for key, _ in header.lines] == ["Version", "", "Note", "", "", "", "", "Note"]
    version, *notes = header.facts  # an empty line ends a value
    assert version == ("Version", "2.2 --- converted ---")
    assert notes == [("Note", "one goes on and on"), ("Note", "two")]
    assert header.values("note") == ["one goes on and on", "two"]


def test_what_is_not_a_fact_is_a_plain_line():
    texts = ["see: http://example.org/", "http://example.org/", " 1|  2|", "Two words: x"]
    texts += ["Time:12:00"]
    assert Header.from_comments(texts).lines == tuple(("", text) for text in texts)


def test_of_repeated_keys_the_first_number_counts():
    header = Header.from_comments(["MaxNodes: N/A", "MaxNodes: 57", "MaxNodes: 58"])
    assert (header.max_nodes, header.max_procs, header.unix_start_time) == (57, None, None)
    assert Header.from_comments(["MaxProcs: 0"]).max_procs is None  # a machine has a processor
