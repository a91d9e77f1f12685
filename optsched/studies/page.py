"""The page of a study: written by hand, and its numbers compared with those that are computed.

A number stands on the page as people write it. The name of its value follows as a comment of HTML,
which no reader sees::

    The mean wait falls by 17%<!--wait-->, or anything from -1 to 35%<!--wait.interval-->.

A value is a number (compared as precisely as it is written), several numbers (the last ones before
the name), a text such as a verdict (the last words before the name), or true: a fact that the words
state. ``abs NAME`` leaves out the sign. ``fixed`` marks a number that is nobody's result. Tables
between ``<!-- begin NAME -->`` and ``<!-- end -->`` are computed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from optsched.errors import UnknownNameError

WORDS = [
    "no", "one", "two", "three", "four", "five", "six",
    "seven", "eight", "nine", "ten", "eleven", "twelve",
]  # fmt: skip
SCALES = {"million": 1e6, "billion": 1e9}

NUMBER = re.compile(
    r"(?<![\w.])(?P<about>(?:about|some|nearly|almost|roughly|around)\s)?(?P<sign>[-+−±]?)"
    r"(?P<digits>\d+(?:,\d{3})*(?:\.\d+)?)"
    r"(?:\s(?P<scale>million|billion)\b|(?P<unit>\s?%|\s(?:min|[hs])\b)?(?![\w%]|[.,]\w))"
    rf"|\b(?P<word>{'|'.join(WORDS)})\b",
    re.IGNORECASE,
)
NAME = re.compile(r"(?<=\S)<!--(?! )(.+?)-->")
BLOCK = re.compile(r"<!-- begin (\S+) -->\n(.*?)<!-- end -->", re.DOTALL)
PICTURE = re.compile(r"""(?:src|srcset)="([^":]+)"|!\[[^\]]*\]\(([^):]+)\)""")
FREE = re.compile(
    r"```.*?```|`[^`\n]*`|<!-- .*?-->|<(?!!--)[^>]*>|\]\([^)]*\)"  # code, tags, links
    r"|\b(?:19|20)\d\d(?:/\d\d)?\b|\b95%"  # years, and the confidence of all intervals
    r"|\b(?:tables?|figures?|sections?|equations?|algorithms?)\s\(?[\dIVX]+\)?"
    r"|^\s*\d+\.\s",  # items of a list
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
"""Text whose numbers are no results, or name what they number."""


class Written(NamedTuple):
    """A number as it is written: its text without the unit, what it says in that unit.

    `half` is half a unit of its last digit: what it says is as precise as that. The unit is one of
    ``%``, ``h``, ``min``, ``s``, or empty; the place is where it begins.
    """

    text: str
    value: float
    half: float
    unit: str
    place: int
    in_digits: bool

    def says(self, value: float, *, signed: bool = True) -> bool:
        """Return whether a value rounds to this number."""
        return abs(self.value - (value if signed else abs(value))) <= self.half * (1 + 1e-9)


def numbers(text: str) -> list[Written]:
    """Find the numbers of a text: digits, also in millions, and words from no to twelve."""
    found = []
    for one in NUMBER.finditer(text):
        if word := one["word"]:
            value = float(WORDS.index(word.lower()))
            found.append(Written(word, value, 0.0, "", one.start(), False))
            continue
        digits = one["digits"].replace(",", "")
        places = len(digits.partition(".")[2])
        if one["about"] and not places:  # about 12,000 is precise to a thousand
            places = len(digits.rstrip("0")) - len(digits)
        scale = SCALES[one["scale"].lower()] if one["scale"] else 1.0
        value = float(digits) * scale * (-1.0 if one["sign"] in {"-", "−"} else 1.0)
        text_of = (one["sign"] + one["digits"] + f" {one['scale'] or ''}").strip()
        unit = (one["unit"] or "").strip()
        half = 0.5 * 10.0**-places * scale
        found.append(Written(text_of, value, half, unit, one.start("digits"), True))
    return found


def difference(text: str, name: str, value: Any, scales: Mapping[str, float] | None = None) -> str:
    """Say in what the end of a text differs from a value; nothing if it says the same.

    Parameters
    ----------
    text : str
        The text up to the name.
    name : str
        The name of the value for the message; after ``abs`` its sign does not matter.
    value : float, sequence of float, str or bool
        What the text should say.
    scales : mapping of str to float
        For values that are not in the unit that is written: how many of theirs that unit has.
    """
    if isinstance(value, bool):
        return "" if value else f"{name} is not true"
    if isinstance(value, str):
        plain = " ".join(text.replace("*", "").lower().split())
        return "" if plain.endswith(value.lower()) else f"expected {value!r} before {name}"
    if value is None:
        return f"{name} has no value"
    wanted = [float(one) for one in (value if isinstance(value, Sequence) else (value,))]
    written = numbers(text)[-len(wanted) :]
    if scales:
        wanted = [one / scales.get(by.unit, 1) for one, by in zip(wanted, written)] or wanted
    signed = not name.startswith("abs ")
    exact = ", ".join("no number" if math.isnan(one) else f"{one:.6g}" for one in wanted)
    if len(written) < len(wanted) or not written:
        return f"no number before {name}, which is {exact}"
    if all(by.says(one, signed=signed) for by, one in zip(written, wanted, strict=True)):
        return ""
    return f"{', '.join(one.text for one in written)}: {name} is {exact}"


def mistakes(page: str, values: Mapping[str, Any], tables: Mapping[str, str]) -> Iterator[str]:
    """Yield what is wrong with a page, each with its line: ``12: 16%: wait is 17.4``.

    Parameters
    ----------
    page : str
        The page in Markdown.
    values : mapping of str to object
        The values by name.
    tables : mapping of str to str
        The computed tables by name, in Markdown.
    """
    for block in BLOCK.finditer(page):
        if block[1] not in tables:
            yield f"{_line(page, block.start())}: {UnknownNameError('table', block[1], tables)}"
        elif block[2].strip() != tables[block[1]].strip():
            yield f"{_line(page, block.start())}: table {block[1]} differs (--write puts it there)"
    page = BLOCK.sub(lambda block: _blank(block[0]), page)
    if unpaired := re.search(r"<!-- (begin \S+|end) -->", page):
        yield f"{_line(page, unpaired.start())}: {unpaired[0]} alone; expected begin NAME and end"
    page = FREE.sub(lambda free: _blank(free[0]), page)
    start = 0
    for name in [*NAME.finditer(page), None]:
        text = page[start : name.start() if name else len(page)]
        known = numbers(text)
        if name:
            key = name[1].removeprefix("abs ")
            value = values.get(key)
            taken = len(value) if isinstance(value, tuple) else 1
            wrong = ""
            if key == "fixed":
                wrong = "" if known else "fixed, but there is no number before it"
            elif key not in values:
                wrong = str(UnknownNameError("value", key, values))
            else:
                wrong = difference(text, name[1], value)
                taken = 0 if isinstance(value, bool | str) else taken
            if wrong:
                yield f"{_line(page, name.start())}: {wrong}"
            known = known[: max(0, len(known) - taken)]
        for one in known:
            if one.in_digits:
                yield f"{_line(page, start + one.place)}: {one.text} has no name"
        start = name.end() if name else len(page)


def names(page: str) -> list[str]:
    """Return the names on a page, in order."""
    page = BLOCK.sub("", page)
    return [name.removeprefix("abs ") for name in NAME.findall(FREE.sub(" ", page))]


def pictures(page: str) -> list[str]:
    """Return the files that a page shows."""
    return [file for pair in PICTURE.findall(page) for file in pair if file]


def with_tables(page: str, tables: Mapping[str, str]) -> str:
    """Return a page with its computed tables between their marks."""

    def block(found: re.Match[str]) -> str:
        if found[1] not in tables:
            return found[0]
        return f"<!-- begin {found[1]} -->\n\n{tables[found[1]].strip()}\n\n<!-- end -->"

    return BLOCK.sub(block, page)


def _blank(text: str) -> str:
    """Blank a text out, so that places and lines of the rest stay as they are."""
    return re.sub(r"\S", " ", text)


def _line(page: str, place: int) -> int:
    return page.count("\n", 0, place) + 1
