"""Compiled parser of SWF job lines, in one pass over the bytes.

A number is an optional ``-`` and decimal digits; where decimals are allowed, also with a decimal
point. Blanks, tabs and carriage returns separate columns; a line whose first other character is
``;`` is a comment.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel

COLUMNS = 18

WELL_FORMED = 0
TOO_FEW = 1
TOO_MANY = 2
NOT_A_NUMBER = 3
NOT_AN_INTEGER = 4
TOO_LARGE = 5
TOO_LOW = 6

INEXACT = 127
"""Number of decimals of a number whose digits do not fit; its value is the offset of its text."""

_NEWLINE, _SEMICOLON, _MINUS, _POINT, _ZERO, _NINE = 10, 59, 45, 46, 48, 57
_LARGEST = np.iinfo(np.int64).max

# facts of float64 and no limits of `optsched.numbers`: digits and power of ten that are exact
_EXACT = 2**53
_EXACT_PLACES = 22


@kernel(allocates=False)
def _is_blank(character: int) -> bool:
    return character == 32 or character == 9 or character == 13


@kernel(allocates=False)
def _skip_blanks(data: NDArray[np.uint8], at: int) -> int:
    while at < len(data) and _is_blank(data[at]):
        at += 1
    return at


@kernel(allocates=False)
def _skip_line(data: NDArray[np.uint8], at: int) -> int:
    while at < len(data) and data[at] != _NEWLINE:
        at += 1
    return at


@kernel(allocates=False)
def count_jobs(data: NDArray[np.uint8]) -> tuple[int, int]:
    """Return the number of job lines, and the offset of the first one.

    A job line is neither blank nor a comment. Without one, the offset is the end of the text.
    """
    jobs, first = 0, len(data)
    at = 0
    while at < len(data):
        line_start = at
        at = _skip_blanks(data, at)
        if at < len(data) and data[at] != _NEWLINE:
            if data[at] != _SEMICOLON:
                if jobs == 0:
                    first = line_start
                jobs += 1
            at = _skip_line(data, at)
        at += 1
    return jobs, first


@kernel(allocates=False)
def _number(
    data: NDArray[np.uint8], at: int, with_decimals: bool, lowest: int, highest: int
) -> tuple[int, int, np.int64, int]:
    """Read the number at `at`; return (verdict, end of the text, digits as one integer, decimals).

    The digits divided by ``10**decimals`` are the number, correctly rounded, since both are exact
    in float64.
    """
    start = at
    negative = data[at] == _MINUS
    if negative:
        at += 1
    value = whole = np.int64(0)
    decimals = -1
    any_digit = fraction = False
    exact = True
    while at < len(data):
        digit = np.int64(data[at]) - _ZERO
        if 0 <= digit <= 9:
            any_digit = True
            if decimals < 0:
                if value > (_LARGEST - digit) // 10:
                    return TOO_LARGE, at, value, decimals
                value = whole = 10 * value + digit
            else:
                if digit > 0:
                    fraction = True
                if value <= (_EXACT - digit) // 10 and decimals < _EXACT_PLACES:
                    value = 10 * value + digit
                    decimals += 1
                else:
                    exact = False
        elif data[at] == _POINT and decimals < 0:
            if not with_decimals:
                return NOT_AN_INTEGER, at, value, decimals
            decimals = 0
            exact = bool(value <= _EXACT)
        else:
            break
        at += 1
    if not any_digit or (at < len(data) and not (_is_blank(data[at]) or data[at] == _NEWLINE)):
        return NOT_A_NUMBER, at, value, decimals
    if negative and lowest >= -1 and (fraction or whole > -lowest):
        return TOO_LOW, at, value, decimals
    if whole > highest or (whole == highest and fraction):
        return TOO_LARGE, at, value, decimals
    if not exact:
        return WELL_FORMED, at, np.int64(start), INEXACT
    return WELL_FORMED, at, -value if negative else value, decimals


@kernel(allocates=False)
def parse(
    data: NDArray[np.uint8],
    with_decimals: NDArray[np.bool_],
    lowest: NDArray[np.int64],
    highest: NDArray[np.int64],
    after_jobs: bool,
    values: NDArray[np.int64],
    decimals: NDArray[np.int8],
) -> tuple[int, int, int, int, int, int]:
    """Parse the job lines of an SWF text.

    The columns `with_decimals` may have a decimal point. The `lowest` number of a column is 0 or -1
    (and nothing between -1 and 0), where a lower value allows any number; the `highest` is that of
    either sign. The digits of each number, without their point, go to `values`, shape (18,
    capacity), and the number of those after the point, -1 without a point, or `INEXACT` to
    `decimals`.

    Returns the numbers of job lines, of comment lines after the first job line (of the file,
    `after_jobs` if it is before this text) and of line breaks passed; `WELL_FORMED` or the mistake;
    and the offset of the line with the mistake, and its column, from 0.
    """
    at = rows = comments = lines = 0
    while at < len(data):
        line_start = at
        column = 0
        at = _skip_blanks(data, at)
        if at < len(data) and data[at] == _SEMICOLON:
            if after_jobs or rows > 0:
                comments += 1
            at = _skip_line(data, at)
        while at < len(data) and data[at] != _NEWLINE:
            if column == COLUMNS:
                return rows, comments, lines, TOO_MANY, line_start, column
            verdict, at, values[column, rows], decimals[column, rows] = _number(
                data, at, with_decimals[column], lowest[column], highest[column]
            )
            if verdict != WELL_FORMED:
                return rows, comments, lines, verdict, line_start, column
            at = _skip_blanks(data, at)
            column += 1
        if column == COLUMNS:
            rows += 1
        elif column > 0:
            return rows, comments, lines, TOO_FEW, line_start, column
        at += 1
        lines += 1
    return rows, comments, lines, WELL_FORMED, at, 0
