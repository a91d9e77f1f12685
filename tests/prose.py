"""What prose says beside what its commands print: figures with units, and marks of what holds.

A mark is a comment of HTML, which readers do not see:

- ``42.6 min<!-- is EXPRESSION -->``: the value of the expression, times in seconds and percentages
  as shares, rounds to the figure, number or number word before the mark;
- ``<!-- holds EXPRESSION -->``: what the sentence before it says is true;
- ``<!-- from FILE -->`` at the end of a paragraph or table: its numbers stand in that file.

The commands or the Python of the page print all other figures with a unit.
"""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import Any

import pandas as pd

import optsched

ROOT = Path(__file__).resolve().parents[1]
UNIT = r" h| min| s| ?%"
FIGURE = re.compile(rf"(\d[\d,]*\.?\d*)({UNIT})(?![\w%])")
MARK = re.compile(rf"(?:([\d.,]*\d|\w+)({UNIT})?\**)?\s*<!-- (is|holds) (.+?) -->", re.DOTALL)
FROM = re.compile(r"<!-- from (\S+) -->")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
CODE_OR_LINK = re.compile(r"`[^`]+`|<code>.*?</code>|\]\([^)]*\)")
SCALE = {"h": 3600, "min": 60, "%": 0.01}
WORDS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
WORDS += ["eleven", "twelve"]


def rounds_to(value: float, number: str) -> bool:
    decimals = len(number.partition(".")[2])
    return f"{value:.{decimals}f}" == number


def figures(text: str) -> list[tuple[str, str]]:
    return [(number.replace(",", ""), unit.strip()) for number, unit in FIGURE.findall(text)]


def missing(said: str, printed: str) -> list[tuple[str, str]]:
    """Return the figures of a text that nothing printed rounds to."""
    known = figures(printed)
    return [
        (number, unit)
        for number, unit in figures(said)
        if not any(unit == of and rounds_to(float(value), number) for value, of in known)
    ]


def unsaid(text: str, printed: str) -> list[tuple[str, str]]:
    """Return the figures of a page that have no mark and that nothing prints."""
    unmarked = MARK.sub(lambda mark: "" if mark[3] == "is" else mark[1] + (mark[2] or ""), text)
    blocks = FENCE.sub("", unmarked).split("\n\n")
    said = "\n\n".join(block for block in blocks if not FROM.search(block))
    return missing(CODE_OR_LINK.sub("", said), printed)


def not_in_files(text: str) -> list[str]:
    """Return the numbers of paragraphs and tables that the files that they name do not state."""
    found = []
    for block in FENCE.sub("", text).split("\n\n"):
        for file in FROM.findall(block):
            known = re.findall(r"\d+\.?\d*", (ROOT / file).read_text())
            said = re.findall(r"\d+\.?\d*", CODE_OR_LINK.sub("", FROM.sub("", block)))
            found += [
                f"{file}: {number}"
                for number in said
                if not any(rounds_to(float(value), number.strip(".")) for value in known)
            ]
    return found


def expressions(text: str) -> list[str]:
    """Return the Python of the marks of a page."""
    return [" ".join(expression.split()) for *_, expression in MARK.findall(text)]


def wrong(text: str, values: list[Any]) -> list[str]:
    """Return the marks that do not hold, given the values of their expressions."""
    found = []
    for (number, unit, kind, expression), value in zip(MARK.findall(text), values, strict=True):
        holds = value == 1
        if kind == "is":  # and 1 for what holds
            plain = number.lower().replace(",", "")
            stated = str(WORDS.index(plain)) if plain in WORDS else plain
            holds = rounds_to(value / SCALE.get(unit.strip(), 1), stated)
        if not holds:
            found.append(f"{number}{unit} <!-- {kind} {expression} -->: {value}")
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
