"""Header of a trace file, which describes the machine and the log."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from optsched.errors import InputError
from optsched.numbers import LARGEST, MOST_PROCESSORS

_FACT = re.compile(r"\s*([A-Z]\w*):(?:\s+(.*))?$")
_NUMBER = re.compile(r"-?[0-9]{1,1000}(?=$|[\s;(])")

HIGHEST = {
    "MaxProcs": MOST_PROCESSORS,
    "MaxNodes": MOST_PROCESSORS,
    "UnixStartTime": LARGEST,
}
"""Keys whose numbers are used, each with the highest plausible number."""


@dataclass(frozen=True, slots=True)
class Header:
    """Lines of a header, in order; keys may repeat."""

    # Key and value of each line. A line without a key (the second line of a long value, a
    # table, an empty line) has the key ``""`` and its whole text as value.
    lines: tuple[tuple[str, str], ...] = ()

    @classmethod
    def from_comments(cls, comments: Iterable[str]) -> Header:
        """Build a header from the text of comment lines, without the comment sign.

        ``MaxProcs: 1152`` is a line with a key; a key is one word that starts with a capital.
        """
        lines = []
        for comment in comments:
            fact = _FACT.match(comment)
            if fact:
                lines.append((fact[1], (fact[2] or "").strip()))
            else:
                lines.append(("", comment.rstrip()))
        return cls(tuple(lines))

    def comments(self, path: Path) -> list[str]:
        """Return the text of each comment line for a file, the inverse of `from_comments`."""
        comments = [f" {key}: {value}" if key else value for key, value in self.lines]
        if any("\n" in comment for comment in comments):
            raise InputError("a header line with a line break cannot be written", file=path)
        return comments

    def noted(self, text: str) -> Header:
        """Return the header with a further line: ``Note: `` and the text."""
        return Header((*self.lines, ("Note", text)))

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Key and value of each fact, with the lines that continue a value joined to it."""
        return [(key, value) for _, key, value in self._placed_facts()]

    def _placed_facts(self) -> list[tuple[int, str, str]]:
        """Return the facts, each with the index of its first line."""
        facts: list[tuple[int, str, str]] = []
        continues = False
        for place, (key, value) in enumerate(self.lines):
            if key:
                facts.append((place, key, value))
                continues = True
            elif continues and value.strip():
                first, key, begun = facts[-1]
                facts[-1] = (first, key, f"{begun} {value.strip()}".lstrip())
            else:
                continues = False
        return facts

    def values(self, key: str) -> list[str]:
        """Return the values of every fact with a key; case does not matter."""
        return [value for name, value in self.facts if name.lower() == key.lower()]

    def number(self, key: str) -> int | None:
        """Return the integer at the beginning of the value of `key`, or None without one.

        ``338 (batch partition; 512 total)`` gives 338, ``N/A`` and ``1,024`` give None. If a key
        repeats, its first value with a number counts.
        """
        for value in self.values(key):
            number = _NUMBER.match(value)
            if number:
                return int(number[0])
        return None

    def check_numbers(self, line_numbers: Sequence[int]) -> None:
        """Refuse numbers that are too high to be plausible; lines have the given line numbers."""
        highest = {key.lower(): number for key, number in HIGHEST.items()}
        for place, key, value in self._placed_facts():
            number = _NUMBER.match(value)
            most = highest.get(key.lower())
            if number and most is not None and int(number[0]) > most:
                raise InputError(
                    f"{number[0]}; expected at most {most:,}", line=line_numbers[place], field=key
                )

    @property
    def max_procs(self) -> int | None:
        """Processors of the machine, from ``MaxProcs``; None if that is less than 1."""
        stated = self.number("MaxProcs")
        return stated if stated is not None and stated >= 1 else None

    @property
    def max_nodes(self) -> int | None:
        """Nodes of the machine, from ``MaxNodes``."""
        return self.number("MaxNodes")

    @property
    def unix_start_time(self) -> int | None:
        """Unix time of submit time 0, from ``UnixStartTime``."""
        return self.number("UnixStartTime")
