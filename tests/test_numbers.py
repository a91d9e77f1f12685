"""Numbers as people write them, and those that mean nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.errors import InputError
from optsched.machines.machine import read_machine
from optsched.numbers import (
    MOST_PROCESSORS,
    on_file,
    parse_integer,
    parse_number,
    parse_span,
    whole_number,
)

NOT_DIGITS = [
    "",
    "-",
    "1_0",
    "٣",
    "１",  # noqa: RUF001
    " 1",
    "1\n",
    "+1",
    "0x1",
    "nan",
    "inf",
    "1.5.2",
    "9" * 5000,
]


@given(st.integers())
def test_digits_are_an_integer(number):
    assert parse_integer(str(number)) == number


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_digits_with_decimals_and_exponent_are_a_number(number):
    assert parse_number(str(number)) == number


def test_nothing_else_is_a_number():
    for text in NOT_DIGITS:
        with pytest.raises(ValueError, match="expected a"):
            parse_integer(text)
        with pytest.raises(ValueError, match="expected a"):
            parse_number(text)
    for text in ("2.0", "1e3"):
        with pytest.raises(ValueError, match="expected a whole number"):
            parse_integer(text)
    with pytest.raises(ValueError, match=r"expected a number of at most 2\^53"):
        parse_number("1e999")


def test_a_whole_number_is_of_few_digits():
    assert [whole_number(text) for text in ("0", "0123", "9" * 15)] == [0, 123, 10**15 - 1]
    # Python refuses to read more than 4,300 digits
    for text in ("", "-1", "1.0", "1\n", "\u0663", "9" * 16, "9" * 5000):
        assert whole_number(text) is None


def test_a_span_has_two_ends():
    assert parse_span("2:-8") == (2, -8)
    for text in ("", "2", "2:", "2:3:4", "1:1_0"):
        with pytest.raises(ValueError, match="expected a whole number"):
            parse_span(text)


@pytest.mark.parametrize("kind", ["nodes", "matrix"])
def test_a_machine_is_of_a_size_in_digits_that_means_something(kind, tmp_path):
    assert read_machine(f"{kind}:1024").size == 1024
    for text in NOT_DIGITS:
        with pytest.raises(InputError, match=f"expected {kind}:NUMBER"):
            read_machine(f"{kind}:{text}")
    for size in (MOST_PROCESSORS + 1, 99999999999999999999):
        with pytest.raises(InputError, match="expected a whole number from 1 to 1,0"):
            read_machine(f"{kind}:{size}")
    file = tmp_path / "machine.toml"
    file.write_text(f'kind = "{kind}"\nsize = 99999999999999999999\n')
    with pytest.raises(InputError, match=r"machine.toml: .*expected a whole number from 1 to 1,0"):
        read_machine(file)


def test_numbers_on_file_have_no_digits_of_rounding_errors():
    assert [on_file(x) for x in (-3.4e-17, 0.1 + 0.2, -2.5, 1 / 3, 1e15)] == [
        "0", "0.3", "-2.5", "0.333333333333", "1e+15",
    ]  # fmt: skip
