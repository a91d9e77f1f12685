"""The part of YAML that topology.yaml needs, read strictly.

Block and flow mappings and lists, plain and quoted texts, whole numbers, booleans, null, comments.
Anything else (anchors, tags, texts of several lines, ...) is refused with its line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from optsched.errors import InputError
from optsched.text_files import lines_of

DEEPEST = 50
"""Most values within each other."""

MOST_VALUES = 100_000
"""Most values of a document, those within others included."""

_KEY = re.compile(r"""(?:"([^"\\]*)"|'([^']*)'|([\w.-]+))\s*:(?:\s+|$)""")
_FLOW_PLAIN = re.compile(r"[^\s,\[\]{}:#&*!|>'\"%@`][^,\[\]{}:#]*")
_QUOTED = re.compile(r"""\"([^"\\]*)\"|'([^']*)'""")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}
_TOKEN = re.compile(r"""[^"'#]++|"[^"]*+"|'[^']*+'|(?<=\S)#|(#)|["']""")


class _Row(NamedTuple):
    indent: int
    text: str
    number: int


def parse_yaml(text: str) -> Any:
    r"""Return the value of a YAML document: dicts, lists, texts, whole numbers, booleans, None.

    >>> parse_yaml("- topology: fabric\n  tree:\n    - {switch: s1, nodes: 'c[1-4]'}\n- 3")
    [{'topology': 'fabric', 'tree': [{'switch': 's1', 'nodes': 'c[1-4]'}]}, 3]
    """
    reading = _Reading(text)
    value = reading.block(-1, 0)
    if reading.row:
        raise reading.wrong("expected an end, or the indentation of the lines above")
    return value


def _rows(text: str) -> Iterator[_Row]:
    """Yield the lines with content."""
    begun = False
    for number, line in lines_of(text):
        line = line.rstrip()
        if line == "...":
            break
        if (line.startswith("%") or line == "---") and not begun:
            continue
        if content := _without_comment(line):
            bare = content.lstrip(" ")
            yield _Row(len(content) - len(bare), bare, number)
            begun = True


def _without_comment(line: str) -> str:
    comment = "#" in line and next((one for one in _TOKEN.finditer(line) if one[1]), None)
    return line[: comment.start()].rstrip() if comment else line


class _Reading:
    """The rows that are left: the next one, and those behind it."""

    def __init__(self, text: str) -> None:
        self._rest = _rows(text)
        self.row = next(self._rest, None)
        self.number = 0
        self.values = 0

    def wrong(self, expected: str) -> InputError:
        number = self.row.number if self.row else self.number
        shown = repr(self.row.text[:40]) if self.row else "the end"
        return InputError(f"{shown}; {expected}", line=number)

    def next_row(self) -> None:
        self.row = next(self._rest, None)

    def count(self) -> None:
        """Count a value, before it is read."""
        self.values += 1
        if self.values > MOST_VALUES:
            raise self.wrong(f"expected at most {MOST_VALUES:,} values")

    def block(self, above: int, depth: int, *, list_at: bool = False) -> Any:
        """Return the value on the next rows, which are indented by more than `above`.

        A list may have the indentation of the key above it, if `list_at` is True.
        """
        if depth > DEEPEST:
            raise self.wrong(f"expected at most {DEEPEST} values within each other")
        self.count()
        row = self.row
        if row is None:
            return None
        is_list = row.text == "-" or row.text.startswith("- ")
        if row.indent <= above and not (list_at and is_list and row.indent == above):
            return None
        if is_list:
            return self.sequence(row.indent, depth)
        if _KEY.match(row.text):
            return self.mapping(row.indent, depth)
        self.next_row()
        return self.value(row, row.text)

    def sequence(self, indent: int, depth: int) -> list[Any]:
        values = []
        while self.row and self.row.indent == indent:
            row = self.row
            if not (row.text == "-" or row.text.startswith("- ")):
                break
            rest = row.text[1:].lstrip(" ")
            if rest:
                self.row = _Row(indent + len(row.text) - len(rest), rest, row.number)
            else:
                self.next_row()
            values.append(self.block(indent, depth + 1))
        return values

    def mapping(self, indent: int, depth: int) -> dict[str, Any]:
        values: dict[str, Any] = {}
        while self.row and self.row.indent == indent:
            row = self.row
            found = _KEY.match(row.text)
            if found is None:
                break
            key = next(name for name in found.groups() if name is not None)
            if key in values:
                raise self.wrong("expected each key once")
            rest = row.text[found.end() :]
            self.next_row()
            self.number = row.number
            if rest:
                self.count()
            values[key] = (
                self.value(row, rest) if rest else self.block(indent, depth + 1, list_at=True)
            )
        return values

    def value(self, row: _Row, text: str) -> Any:
        """Return the value of a text that is all of the rest of a row."""
        flow = _Flow(text, row.number, self)
        if text[0] in "{[\"'":
            value = flow.value(0)
            if flow.text[flow.place :].strip():
                raise flow.wrong()
            return value
        if text[0] in "&*!|>%@`?" or ": " in text or text.endswith(":"):
            raise flow.wrong()
        return _plain(text)


class _Flow:
    """Reading of a value in braces, brackets or quotation marks, which ends on its line."""

    def __init__(self, text: str, number: int, whole: _Reading) -> None:
        self.text = text
        self.number = number
        self.whole = whole
        self.place = 0

    def wrong(self) -> InputError:
        shown = repr(self.text[:40])
        expected = "expected a value on one line, without anchors, tags and escapes"
        return InputError(f"{shown}; {expected}", line=self.number)

    def value(self, depth: int) -> Any:
        if depth > DEEPEST:
            raise self.wrong()
        self.whole.count()
        if self.take("{"):
            return self.mapping(depth)
        if self.take("["):
            values = []
            while not self.take("]"):
                values.append(self.value(depth + 1))
                if not self.take(",") and not self.ahead("]"):
                    raise self.wrong()
            return values
        if quoted := _QUOTED.match(self.text, self.place):
            self.place = quoted.end()
            return quoted[1] if quoted[1] is not None else quoted[2]
        if plain := _FLOW_PLAIN.match(self.text, self.place):
            self.place = plain.end()
            return _plain(plain[0].strip())
        raise self.wrong()

    def mapping(self, depth: int) -> dict[str, Any]:
        values: dict[str, Any] = {}
        while not self.take("}"):
            key = _KEY.match(self.text, self.place)
            if key is None:
                raise self.wrong()
            name = next(name for name in key.groups() if name is not None)
            if name in values:
                raise self.wrong()
            self.place = key.end()
            values[name] = self.value(depth + 1)
            if not self.take(",") and not self.ahead("}"):
                raise self.wrong()
        return values

    def ahead(self, sign: str) -> bool:
        while self.text[self.place : self.place + 1] == " ":
            self.place += 1
        return self.text[self.place : self.place + 1] == sign

    def take(self, sign: str) -> bool:
        if self.ahead(sign):
            self.place += 1
            return True
        return False


def _plain(text: str) -> Any:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    return int(text) if _NUMBER.fullmatch(text) else text
