"""What prose says beside what its commands print: figures with units, and marks of what holds.

A mark is a comment of HTML, which readers do not see:

- ``42.6 min<!-- is EXPRESSION -->``: the value of the expression, times in seconds and percentages
  as shares, rounds to the figure, number or number word before the mark;
- ``<!-- holds EXPRESSION -->``: what the sentence before it says is true;
- ``<!-- from FILE -->`` at the end of a paragraph or table: its numbers stand in that file.

The commands or the Python of the page print all other figures with a unit. Numbers are read and
compared as those on the pages of studies.
"""

import importlib
import json
import re
from pathlib import Path
from typing import Any

import pandas as pd

import optsched
from optsched.numbers import WrittenNumber, numbers_in

ROOT = Path(__file__).resolve().parents[1]
MARK = re.compile(r"<!-- (is|holds) (.+?) -->", re.DOTALL)
FROM = re.compile(r"<!-- from (\S+) -->")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
CODE_OR_LINK = re.compile(r"`[^`]+`|<code>.*?</code>|\]\([^)]*\)")
SCALE = {"h": 3600, "min": 60, "%": 0.01}


def figures(text: str) -> list[WrittenNumber]:
    """Return the numbers of a text that have a unit."""
    return [one for one in numbers_in(text) if one.unit]


def missing(said: str, printed: str) -> list[tuple[str, str]]:
    """Return the figures of a text that nothing printed rounds to."""
    known = figures(printed)
    return [
        (one.text, one.unit)
        for one in figures(said)
        if not any(one.unit == of.unit and one.says(of.value) for of in known)
    ]


def unsaid(text: str, printed: str) -> list[tuple[str, str]]:
    """Return the figures of a page that have no mark and that nothing prints."""
    while found := MARK.search(text):  # an is-mark takes the number before it
        before = text[: found.start()]
        if found[1] == "is":
            before = before[: numbers_in(before)[-1].place]
        text = before + text[found.end() :]
    blocks = FENCE.sub("", text).split("\n\n")
    said = "\n\n".join(block for block in blocks if not FROM.search(block))
    return missing(CODE_OR_LINK.sub("", said), printed)


def not_in_files(text: str) -> list[str]:
    """Return the numbers of paragraphs and tables that the files that they name do not state."""
    found = []
    for block in FENCE.sub("", text).split("\n\n"):
        for file in FROM.findall(block):
            known = [one.value for one in numbers_in((ROOT / file).read_text())]
            said = numbers_in(CODE_OR_LINK.sub("", FROM.sub("", block)))
            found += [
                f"{file}: {one.text}"
                for one in said
                if one.half and not any(one.says(value) for value in known)
            ]
    return found


def expressions(text: str) -> list[str]:
    """Return the Python of the marks of a page."""
    return [" ".join(expression.split()) for _, expression in MARK.findall(text)]


def wrong(text: str, values: list[Any]) -> list[str]:
    """Return the marks that do not hold, given the values of their expressions."""
    found = []
    for mark, value in zip(MARK.finditer(text), values, strict=True):
        said = numbers_in(text[: mark.start()].rstrip())[-1:] if mark[1] == "is" else []
        right = [one.says(float(value) / SCALE.get(one.unit, 1)) for one in said]
        if right != [True] and not (mark[1] == "holds" and value == 1):
            found.append(f"{', '.join(one.text for one in said)}: {mark[2]} is {value}")
    return found


def summary(folder: str) -> dict[str, Any]:
    """Return the figures of a run folder that a command of the page wrote."""
    found: dict[str, Any] = json.loads(Path(folder, "summary.json").read_text())
    return found


NAMES = {
    "ROOT": ROOT,
    "optsched": optsched,
    "module": importlib.import_module,
    "summary": summary,
    "table": pd.read_csv,
}
"""What expressions may name, beside the names of the Python of their page."""
