"""The page of a study: written by hand, and its numbers compared with those that are computed.

The name of its value follows a number as a comment of HTML, which no reader sees, and computed
tables stand between marks. ``docs/formats/study-folder.md`` has the rules.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from optsched.errors import UnknownNameError
from optsched.numbers import numbers_in

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


def mistakes(page: str, values: Mapping[str, Any], tables: Mapping[str, str]) -> Iterator[str]:
    """Yield what is wrong with a page, each with its line: ``12: 16%: wait is 17.4``."""

    def at(place: int, wrong: object) -> str:
        return f"{page[:place].count(chr(10)) + 1}: {wrong}"

    for block in BLOCK.finditer(page):
        if block[1] not in tables:
            yield at(block.start(), UnknownNameError("table", block[1], tables))
        elif block[2].strip() != tables[block[1]].strip():
            yield at(block.start(), f"table {block[1]} differs (--write puts it there)")
    prose = BLOCK.sub(_blank, page)
    if unpaired := re.search(r"<!-- (begin \S+|end) -->", prose):
        yield at(unpaired.start(), f"{unpaired[0]} alone; expected begin NAME and end")
    prose, start = FREE.sub(_blank, prose), 0
    for name in [*NAME.finditer(prose), None]:
        text, taken = prose[start : name.start() if name else None], 0
        if name:
            wrong, taken = _compared(text, name[1], values)
            if wrong:
                yield at(name.start(), wrong)
        for one in numbers_in(text)[: -taken or None]:
            if one.half:
                yield at(start + one.place, f"{one.text} has no name")
        start = name.end() if name else 0


def _compared(text: str, name: str, values: Mapping[str, Any]) -> tuple[str, int]:
    """Return in what the end of a text differs from a value, and how many numbers it states."""
    key, said = name.removeprefix("abs "), numbers_in(text)
    if key == "fixed":
        return "" if said else "fixed, but there is no number before it", 1
    if key not in values:
        return str(UnknownNameError("value", key, values)), 1
    value = values[key]
    if value is None:
        return f"{name} has no value", 1
    if isinstance(value, bool):
        return "" if value else f"{name} is not true", 0
    if isinstance(value, str):
        plain = " ".join(text.replace("*", "").lower().split())
        return "" if plain.endswith(value.lower()) else f"expected {value!r} before {name}", 0
    wanted = [float(one) for one in (value if isinstance(value, Sequence) else (value,))]
    exact = ", ".join("no number" if math.isnan(one) else f"{one:.6g}" for one in wanted)
    if len(said) < len(wanted):
        return f"no number before {name}, which is {exact}", len(wanted)
    pairs = [*zip(said[-len(wanted) :], wanted)]
    right = all(by.says(one if key == name else abs(one)) for by, one in pairs)
    wrong = f"{', '.join(by.text for by, _ in pairs)}: {name} is {exact}"
    return "" if right else wrong, len(wanted)


def pictures(page: str) -> list[str]:
    """Return the files that a page shows."""
    return [file for pair in PICTURE.findall(page) for file in pair if file]


def with_tables(page: str, tables: Mapping[str, str]) -> str:
    """Return a page with its computed tables between their marks."""

    def block(found: re.Match[str]) -> str:
        table = tables.get(found[1])
        whole = f"<!-- begin {found[1]} -->\n\n{(table or '').strip()}\n\n<!-- end -->"
        return found[0] if table is None else whole

    return BLOCK.sub(block, page)


def _blank(found: re.Match[str]) -> str:
    """Blank a text out, so that places and lines of the rest stay as they are."""
    return re.sub(r"\S", " ", found[0])
