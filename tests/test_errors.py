"""What is wrong is told in one line, whatever stands in names and files."""

from __future__ import annotations

import pytest

from optsched.errors import LONGEST, InputError, one_line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("日本 café №3 \u3000.swf", "日本 café №3 \u3000.swf"),
        ("a\nb\r\n", r"a\nb\r\n"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("a\tb", r"a\tb"),
        ("a\u202eb\u2066", r"a\u202eb\u2066"),
        ("a\u2028b\x85", r"a\u2028b\x85"),
        ("a\ud800", r"a\ud800"),
    ],
)
def test_what_is_not_seen_is_escaped(text, shown):
    assert one_line(text) == shown


def test_an_error_is_one_line_for_each_mistake():
    error = InputError("odd\nvalue", file="a\nb", line=3, field="c\x1bd")
    assert str(error) == r"a\nb, line 3, c\x1bd: odd\nvalue"
    error = InputError("one\n", "two", file="a\n")
    assert str(error).split("\n") == [r"a\n: 2 mistakes", r"  - one\n", "  - two"]


def test_a_message_of_any_length_shows_its_beginning_and_its_end():
    text = str(InputError(f"{'x' * 10**6!r}; expected less", field="y" * 10**6))
    assert text.startswith("yyy")
    assert text.endswith("xxx'; expected less")
    assert len(text) < 2 * LONGEST + 100
