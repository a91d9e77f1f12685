"""Settings, TOML, lines, and numbers as people write them."""

import math
from dataclasses import dataclass, field
from typing import Literal, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched import registry
from optsched.errors import LONGEST, InputError, one_line
from optsched.fields import Integer, Table
from optsched.machines.machine import read_machine
from optsched.numbers import (
    MOST_PROCESSORS,
    on_file,
    parse_integer,
    parse_number,
    parse_span,
    whole_number,
)
from optsched.settings import configure, has_plain_settings, read_settings
from optsched.sites.slurm_files import lines_of
from optsched.text_files import LONGEST_LINE, MOST_PARTS, read_toml


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("日本 café №3 \u3000.swf", "日本 café №3 \u3000.swf"),
        ("a\nb\r\n", r"a\nb\r\n"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("a\u202eb\u2066", r"a\u202eb\u2066"),
        ("a\u2028b\x85", r"a\u2028b\x85"),
        ("a\ud800", r"a\ud800"),
    ],
)
def test_what_is_not_seen_is_escaped(text, shown):
    assert one_line(text) == shown


def test_an_error_is_one_line_for_each_mistake_and_shows_its_beginning_and_its_end():
    error = InputError("odd\nvalue", file="a\nb", line=3, field="c\x1bd")
    assert str(error) == r"a\nb, line 3, c\x1bd: odd\nvalue"
    error = InputError("one\n", "two", file="a\n")
    assert str(error).split("\n") == [r"a\n: 2 mistakes", r"  - one\n", "  - two"]
    text = str(InputError(f"{'x' * 10**6!r}; expected less", field="y" * 10**6))
    assert text.startswith("yyy")
    assert text.endswith("xxx'; expected less")
    assert len(text) < 2 * LONGEST + 100


NOT_DIGITS = [
    *("", "-", "1_0", "٣", "１", " 1", "1\n", "+1", "0x1", "nan", "inf", "1.5.2"),  # noqa: RUF001
    "9" * 5000,
]


@given(st.integers(), st.floats(allow_nan=False, allow_infinity=False))
def test_digits_with_decimals_and_exponent_are_a_number(integer, number):
    assert (parse_integer(str(integer)), parse_number(str(number))) == (integer, number)


def test_nothing_else_is_a_number_or_a_span():
    for text in NOT_DIGITS:
        for parse in (parse_integer, parse_number):
            with pytest.raises(ValueError, match="expected a"):
                parse(text)
    for text in ("2.0", "1e3"):
        with pytest.raises(ValueError, match="expected a whole number"):
            parse_integer(text)
    with pytest.raises(ValueError, match=r"expected a number of at most 2\^53"):
        parse_number("1e999")
    assert [whole_number(text) for text in ("0", "0123", "9" * 15)] == [0, 123, 10**15 - 1]
    # Python refuses to read more than 4,300 digits
    for text in ("", "-1", "1.0", "1\n", "\u0663", "9" * 16, "9" * 5000):
        assert whole_number(text) is None
    assert parse_span("2:-8") == (2, -8)
    for text in ("", "2", "2:", "2:3:4", "1:1_0"):
        with pytest.raises(ValueError, match="expected a whole number"):
            parse_span(text)


@pytest.mark.parametrize("kind", ["nodes", "matrix"])
def test_a_machine_is_of_a_size_in_digits_that_means_something(kind, tmp_path):
    for text in NOT_DIGITS:
        with pytest.raises(InputError, match=f"expected {kind}:NUMBER"):
            read_machine(f"{kind}:{text}")
    file = tmp_path / "machine.toml"
    file.write_text(f'kind = "{kind}"\nsize = 99999999999999999999\n')
    for machine in (f"{kind}:{MOST_PROCESSORS + 1}", file):
        with pytest.raises(InputError, match="expected a whole number from 1 to 1,0"):
            read_machine(machine)


def test_numbers_on_file_have_no_digits_of_rounding_errors():
    assert [on_file(x) for x in (-3.4e-17, 0.1 + 0.2, -2.5, 1 / 3, 1e15)] == [
        "0", "0.3", "-2.5", "0.333333333333", "1e+15",
    ]  # fmt: skip


@dataclass
class Thing:
    count: int = 1
    share: float = 0.5
    loud: bool = False
    kind: Literal["a", "b"] = "a"
    word: str = ""


@dataclass
class Limited:
    cap: int | None = None
    share: Optional[float] = 0.5  # noqa: UP045 (as older code has it)


@dataclass
class Listed:
    names: list[str] = field(default_factory=list)


def test_settings_are_read_as_the_type_of_their_field():
    given = ["count=3", "share=1e-2", "loud=yes", "kind=b", "word=x=y"]
    thing = configure(Thing, read_settings(given), "thing")
    assert thing == Thing(3, 0.01, True, "b", "x=y")
    assert configure(Thing, {"count": 4, "share": 1}, "thing") == Thing(4, 1.0)
    assert configure(Thing, {"count": 2**53, "share": -(2.0**53)}, "thing").count == 2**53
    assert configure(Limited, {"cap": "5", "share": "None"}, "thing") == Limited(5, None)
    assert configure(Limited, {"cap": None}, "thing") == Limited(None, 0.5)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["count=2.5"], "count of thing: '2.5'; expected a whole number"),
        (["loud=perhaps"], "expected yes or no"),
        (["kind=c"], "expected one of a, b"),
        (["coutn=2"], "did you mean count"),
        (["count"], "expected KEY=VALUE"),
        (["count=1", "count=2"], "given twice"),
        ({"count": 2.5}, "expected a whole number"),
        ({"count": float("nan")}, "expected a whole number"),
        ({"count": "99999999999999999999"}, "count of thing: .*; expected a number of at most"),
    ],
)
def test_wrong_settings_are_named(given, message):
    with pytest.raises(InputError, match=message):
        configure(Thing, read_settings(given) if isinstance(given, list) else given, "thing")


def test_a_setting_that_no_text_states_is_refused_by_name():
    with pytest.raises(InputError, match="cap of thing: 'x'; expected a whole number"):
        configure(Limited, {"cap": "x"}, "thing")
    assert (has_plain_settings(Limited), has_plain_settings(Listed)) == (True, False)
    with pytest.raises(InputError, match=r"names of thing has the type .*; expected int, float,"):
        configure(Listed, {}, "thing")


def test_a_key_that_is_left_out_has_its_default_and_no_mistake():
    table = Table({"a": None})
    assert table.read("b", Integer(0), 7) == 7
    assert table.parts("c") == []
    table.done()
    assert Table(["no", "object"]).table == {}


@pytest.mark.parametrize("key", ["a", "'='", '"="', r'"\"]"', "'a' "])
@pytest.mark.parametrize("form", ["{} = 1", "[{}]", "x = {{ {} = 1 }}"])
def test_keys_of_very_many_parts_are_refused(tmp_path, key, form):
    path = tmp_path / "x.toml"
    path.write_text("# first\n" + form.format(".".join([key] * MOST_PARTS)))
    assert len(read_toml(path)) == 1
    path.write_text("# first\n" + form.format(".".join([key] * 200_000)))
    with pytest.raises(InputError, match=r"x.toml, line 2: many dots; .* 100 parts"):
        read_toml(path)


def test_texts_may_have_dots(tmp_path):
    path = tmp_path / "x.toml"
    text = "Done. " * 50 + "1.2.3. And so on ... " * 500
    path.write_text(f'x = "{text}"')
    assert read_toml(path) == {"x": text}


def test_lines_with_content_are_numbered():
    assert list(lines_of("")) == []
    assert list(lines_of("\n\na\r\n \n\nb")) == [(3, "a"), (4, " "), (6, "b")]
    [(_, line)] = lines_of("x" * LONGEST_LINE)
    with pytest.raises(InputError, match="line 2: is too long; expected lines of at most 1 MiB"):
        list(lines_of(f"a\n{line}x\n"))


REFUSED = {
    "gang": {"mpl": [0], "window": [0], "time_slice": [0, 1e10], "context_switch": [-1, 60]},
    "locality": {"weight": [-1], "threshold": [-1], "throttle": [-1]},
    "placement": {"window": [0], "interval": [-1.0]},
    "rua": {"thresholds": ["", "a", "1.15,", "0.9,1.2", "1e18", "nan"]},
    "sjbf": {"threshold": [0.5, -1, 1001, math.nan, math.inf]},
    "torus": {"depth": [0], "interval": [-1], "moves": [-1], "preparations": [0]}
    | {"large": [0], "worth": [-1, 10**7 + 1]},
    "window": {"window": [0], "interval": [-1]},
}


@pytest.mark.parametrize(
    ("policy", "setting", "value"),
    [
        (policy, setting, value)
        for policy, settings in REFUSED.items()
        for setting, values in settings.items()
        for value in values
    ],
)
def test_a_setting_out_of_range_is_refused_with_what_was_expected(policy, setting, value):
    expected = "expected (a whole number|seconds|a factor|factors) (from|above)"
    with pytest.raises(InputError, match=f"{setting.replace('_', ' ')} .*; {expected}"):
        registry.policies[policy](**{setting: value})
