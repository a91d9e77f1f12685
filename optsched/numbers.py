"""Parsing and formatting of numbers, durations and moments, and limits of plausible numbers."""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta
from numbers import Integral
from typing import Any, NamedTuple

from optsched.errors import InputError

LARGEST = 2**53
"""Largest number of any kind; float64, JSON and tables hold every smaller integer exactly."""

MOST_PROCESSORS = 10**9
"""Most processors of a machine, so that products of two such numbers fit into 64 bits."""

LONGEST = 10**9
"""Longest time in seconds in settings and files with whole seconds: 30 years, so that sums of
millions of such times stay below `LARGEST`."""

MOST_CAPACITY = 10**9
"""Largest capacity of a node, and largest demand of a process, for a resource."""

MISSING = "\N{EN DASH}"
"""What is shown in place of a number that is unknown."""

SMALLEST = 1e-6
"""Shares that are closer to 0 are not written in full."""

_INTEGER = re.compile(r"-?[0-9]{1,1000}")
_NUMBER = re.compile(r"-?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")

_WORDS = ["no", "one", "two", "three", "four", "five", "six"]
_WORDS += ["seven", "eight", "nine", "ten", "eleven", "twelve"]
_SCALES = {"": 1.0, "million": 1e6, "billion": 1e9}

_IN_PROSE = re.compile(
    r"(?<![\w.])(?P<about>(?:about|some|nearly|almost|roughly|around)\s)?(?P<sign>[-+−±]?)"
    r"(?P<digits>\d+(?:,\d{3})*(?:\.\d+)?)"
    r"(?:\s(?P<scale>million|billion)\b|(?P<unit>\s?%|\s(?:min|[hs])\b)?(?![\w%]|[.,]\w))"
    rf"|\b(?P<word>{'|'.join(_WORDS)})\b",
    re.IGNORECASE,
)


def parse_integer(text: str) -> int:
    """Return the integer of a text of decimal digits, with an optional minus sign."""
    if not _INTEGER.fullmatch(text):
        raise ValueError(f"{text!r}; expected a whole number")
    return int(text)


def whole_number(text: str) -> int | None:
    """Return the number of a text of at most 15 decimal digits, and of any other text None."""
    return int(text) if re.fullmatch("[0-9]{1,15}", text) else None


def parse_number(text: str) -> float:
    """Return the number of a text of decimal digits, with an optional exponent."""
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{text!r}; expected a number")
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text!r}; expected a number of at most 2^53")
    return number


def parse_span(text: str) -> tuple[int, int]:
    """Return both ends of ``FROM:TO``, integers."""
    first, _, last = text.partition(":")
    return parse_integer(first), parse_integer(last)


class WrittenNumber(NamedTuple):
    """A number as it is written: its text without the unit, and what it says in that unit.

    `half` is half a unit of its last digit, which is how precise it is, and 0 for words. The unit
    is one of ``%``, ``h``, ``min``, ``s``, or empty; the place is where the number begins.
    """

    text: str
    value: float
    half: float
    unit: str
    place: int

    def says(self, value: float) -> bool:
        """Return whether a value rounds to this number."""
        return abs(self.value - value) <= self.half * (1 + 1e-9)


def numbers_in(text: str) -> list[WrittenNumber]:
    """Find the numbers of a text: digits, also in millions, and words from no to twelve."""
    found = []
    for one in _IN_PROSE.finditer(text):
        if word := one["word"]:
            found.append(
                WrittenNumber(word, float(_WORDS.index(word.lower())), 0.0, "", one.start())
            )
            continue
        digits = one["digits"].replace(",", "")
        places = len(digits.partition(".")[2])
        if one["about"] and not places:  # about 12,000 is precise to a thousand
            places = len(digits.rstrip("0")) - len(digits)
        scale = _SCALES[(one["scale"] or "").lower()]
        value = float(digits) * scale * (-1.0 if one["sign"] in {"-", "−"} else 1.0)
        as_text = (one["sign"] + one["digits"] + f" {one['scale'] or ''}").strip()
        unit, half = (one["unit"] or "").strip(), 0.5 * 10.0**-places * scale
        found.append(WrittenNumber(as_text, value, half, unit, one.start("digits")))
    return found


def counted(number: int, noun: str) -> str:
    """Return a number of things: ``1 job``, ``2,000 jobs``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def percent(share: float) -> str:
    """Return a share in percent with four digits, from 10,000% on in full.

    >>> percent(0.41834), percent(0.999999), percent(100)
    ('41.83%', '> 99.99%', '10,000%')
    """
    if 0 < abs(share) < SMALLEST:
        return f"{'< ' if share > 0 else '> -'}{100 * SMALLEST:.4f}%"
    text = f"{100 * share:.4g}%" if abs(share) < 99.995 else f"{100 * share:,.0f}%"
    return "> 99.99%" if text == "100%" and share < 1 else text


def on_file(number: Any) -> str:
    """Return a number with twelve digits, and none beyond the twelfth decimal.

    Rounding errors beyond these differ between processors.
    """
    return f"{round(number, 12) + 0.0:.12g}"


def digits(number: float) -> str:
    """Return a number with thousands grouped, an integer in full and others with four digits."""
    if isinstance(number, Integral):
        return f"{number:,}"
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.4g}"


def written(value: float | None, unit: str = "", digits: int | None = None) -> str:
    """Write a number for figures and tables: two digits that count or more, a true minus sign.

    Only ``%`` is written behind it of the units, also of ``% of the sessions``.
    """
    if value is None or math.isnan(value):
        return MISSING
    digits = decimals(value) if digits is None else digits
    text = f"{round(value, digits) + 0.0:,.{digits}f}{unit[:1] if unit[:1] == '%' else ''}"
    return text.replace("-", "−")


def decimals(value: float, unit: str = "") -> int:
    """Return with how many decimals a number is written, with a unit above the noise only."""
    size = 0.0 if abs(value) < 1e-9 else abs(value)
    if unit == "times" and 0 < size < 9.995:
        return 2
    if size >= 9.95 or not size:
        return 0
    return 1 if size >= 0.995 or unit else 1 - math.floor(math.log10(size))


def check_seed(seed: object, field: str = "seed") -> None:
    """Refuse a seed that is not a whole number from 0 to `LARGEST`."""
    if type(seed) is not int or not 0 <= seed <= LARGEST:
        raise InputError(f"{seed!r}; expected a whole number from 0 to 2^53", field=field)


MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0

UNITS = ((1.0, "second"), (MINUTE, "minute"), (HOUR, "hour"), (DAY, "day"))
"""Units in words, in seconds and by name."""

_SHORT = ((1e-6, "µs"), (1e-3, "ms"), (1.0, "s"), (MINUTE, "min"), (HOUR, "h"), (DAY, "d"))


def spoken(seconds: float) -> str:
    """Return a duration in its largest unit, ``90.0`` as ``1.5 minutes`` for instance."""
    if 0 < seconds < 0.01:
        return short(seconds)
    unit, name = next((u for u in reversed(UNITS) if seconds >= u[0]), UNITS[0])
    amount = _three_digits(seconds / unit)
    return f"{amount} {name}" if amount == "1" else f"{amount} {name}s"


def short(seconds: float) -> str:
    """Return a duration with three digits in a suitable unit, from µs to d: ``1.5 min``."""
    unit, name = next((u for u in reversed(_SHORT) if seconds >= u[0]), _SHORT[0])
    amount = seconds / unit
    return "0 s" if amount == 0 else f"{_three_digits(amount)} {name}"


def _three_digits(amount: float) -> str:
    return f"{amount:,.0f}" if amount >= 99.95 else f"{amount:.3g}"


def parse_moment(text: str, now: float) -> int:
    """Return the seconds since 1970 of a time of this machine; of a clock time the next one.

    Forms: ``18:00``, ``2026-11-25T18:00``, also with an offset, and seconds since 1970.
    """
    try:
        if text.isascii() and text.isdigit():
            return round(datetime.fromtimestamp(int(text)).timestamp())
        if re.fullmatch(r"[0-9]{1,2}:[0-9]{2}", text):
            there = datetime.fromtimestamp(now)
            hour, minute = map(int, text.split(":"))
            then = there.replace(hour=hour, minute=minute, second=0, microsecond=0)
            return round((then + timedelta(days=int(then < there))).timestamp())
        return round(datetime.fromisoformat(text).timestamp())
    except (ValueError, OverflowError, OSError):
        expected = "expected a time such as 18:00 or 2026-11-25T18:00, or seconds since 1970"
        raise InputError(f"{text!r}; {expected}") from None


def moment(seconds: float, *, is_short: bool = False) -> str:
    """Return a time since 1970 in the zone of this machine, in short ``2026-11-22 17:15+01:00``."""
    then = datetime.fromtimestamp(round(seconds)).astimezone()
    return then.isoformat(" ", "minutes") if is_short else then.isoformat()
