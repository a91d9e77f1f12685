"""Host lists such as ``c[01-40,44],g1``, read and written as Slurm does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import product
from math import prod
from typing import TypeAlias

from optsched.errors import InputError

MOST_HOSTS = 1_000_000
"""Most hosts of a list."""

LONGEST_NAME = 255
"""Most characters of the name of a host."""

MOST_CHARACTERS = 2**25
"""Most characters of all lists that are read together, with a comma for each host."""

_ENTRY = re.compile(r"(?:[^,\[\]\s]++|\[[^\[\]]*+\])++")
_PART = re.compile(r"\[([^\]]*)\]|([^\[\]]+)")
_RANGE = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")
_BETWEEN = re.compile(r"[^,]+|(?<![^,])(?![^,])")
_NUMBERED = re.compile(r"(.*?)([0-9]{1,18})", re.DOTALL)

_Ranges: TypeAlias = list[tuple[int, int, int]]
"""First number, last number and width of each range in a bracket."""


class _Read:
    """What was read together so far: the characters that are left, and lists by their text."""

    def __init__(self) -> None:
        self.left = MOST_CHARACTERS
        self.known: dict[str, tuple[str, ...]] = {}


_reading: ContextVar[_Read | None] = ContextVar("_reading", default=None)


@contextmanager
def read_together() -> Iterator[None]:
    """Bound the characters of all host lists that are read in the context, those within it too."""
    if _reading.get() is not None:
        yield
        return
    token = _reading.set(_Read())
    try:
        yield
    finally:
        _reading.reset(token)


def hosts_of(text: str) -> list[str]:
    """Return the names of the hosts of a list, in its order.

    Several brackets in one name stand for all combinations, the last one fastest.

    >>> hosts_of("c[08-10,12],m1,r[1-2]n[1-2]")
    ['c08', 'c09', 'c10', 'c12', 'm1', 'r1n1', 'r1n2', 'r2n1', 'r2n2']
    """
    reading = _reading.get() or _Read()
    hosts: list[str] = []
    for count, parts in _entries_of(text):
        longest = sum(len(part) if isinstance(part, str) else _longest(part) for part in parts)
        if longest > LONGEST_NAME:
            expected = f"expected names of at most {LONGEST_NAME} characters"
            raise InputError(f"{_shown(text)}: a name has {longest:,}; {expected}")
        reading.left -= count * (longest + 1)
        if reading.left < 0:
            most = f"expected at most {MOST_CHARACTERS:,} characters of all host lists together"
            raise InputError(f"{_shown(text)}; {most}")
        hosts += map("".join, product(*map(_texts, parts)))
    return hosts


def hosts(text: str) -> tuple[str, ...]:
    """Return the hosts of a list; of equal lists that are read together, the same tuple."""
    reading = _reading.get()
    if reading is None:
        return tuple(hosts_of(text))
    if text not in reading.known:
        reading.known[text] = tuple(hosts_of(text))
    return reading.known[text]


def number_of_hosts(text: str) -> int:
    """Return how many hosts a list has, which may be names of any length."""
    return sum(count for count, _ in _entries_of(text))


def host_list(names: Iterable[str]) -> str:
    """Return the host list of names, with brackets for their last numbers.

    The list is sorted by the text before the number and by the number, without repetitions;
    numbers of different widths are in different brackets, and `hosts_of` returns the same names.

    >>> host_list(["c10", "c09", "c12", "login", "c9", "g1"])
    'c[9,09-10,12],g1,login'
    """
    groups: dict[str, set[tuple[int, int]]] = {}
    for name in names:
        match = _NUMBERED.fullmatch(name)
        if match is None:
            groups.setdefault(name, set()).add((-1, -1))
        else:
            number = int(match[2])
            # as wide as padding demands; without padding, numbers of all widths make one range
            width = len(match[2]) if match[2][0] == "0" and len(match[2]) > 1 else 0
            groups.setdefault(match[1], set()).add((width, number))
    return ",".join(text for prefix in sorted(groups) for text in _entries(prefix, groups[prefix]))


def host_list_in_order(names: Iterable[str]) -> str:
    """Return a host list of names in their order, which `hosts_of` returns again.

    >>> host_list_in_order(["c09", "c10", "c12", "m1", "c11"])
    'c[09-10,12],m1,c11'
    """
    groups: list[tuple[str, list[list[str]]]] = []  # prefix, and ranges of numbers
    for name in names:
        match = _NUMBERED.fullmatch(name)
        prefix, digits = (name, "") if match is None else (match[1], match[2])
        if not (digits and groups and groups[-1][0] == prefix and groups[-1][1][0][0]):
            groups.append((prefix, [[digits]]))
            continue
        ranges = groups[-1][1]
        first, last = ranges[-1][0], ranges[-1][-1]
        if digits == str(int(last) + 1).zfill(len(first)):
            ranges[-1][1:] = [digits]
        else:
            ranges.append([digits])
    return ",".join(
        prefix + (text if text.isdigit() or not text else f"[{text}]")
        for prefix, ranges in groups
        for text in [",".join("-".join(each) for each in ranges)]
    )


def _entries(prefix: str, numbers: set[tuple[int, int]]) -> list[str]:
    """Return the entries of the names with a prefix, given the width and number of each."""
    entries = [prefix] if (-1, -1) in numbers else []
    ranges = _ranges(numbers - {(-1, -1)})
    if len(ranges) == 1 and "-" not in ranges[0]:
        entries.append(prefix + ranges[0])
    elif ranges:
        entries.append(f"{prefix}[{','.join(ranges)}]")
    return entries


def _ranges(numbers: set[tuple[int, int]]) -> list[str]:
    """Return the ranges of numbers of given widths, 0 for one without padding."""
    # 10 continues 09, which is padded to two digits, as well as 9, which is not
    padded = {width for width, _ in numbers if width}
    runs: list[list[tuple[int, int]]] = []
    ending: dict[tuple[int, int], list[tuple[int, int]]] = {}  # run by its last number
    for width, number in sorted(numbers, key=lambda pair: (pair[1], pair[0])):
        wide = width or (len(str(number)) if len(str(number)) in padded else 0)
        run = ending.pop((wide, number - 1), None)
        if run is None:
            run = []
            runs.append(run)
        run.append((wide, number))
        ending[wide, number] = run
    return [
        _digits(*run[0]) if len(run) == 1 else f"{_digits(*run[0])}-{_digits(*run[-1])}"
        for run in runs
    ]


def _digits(width: int, number: int) -> str:
    return str(number).zfill(width)


def _entries_of(text: str) -> Iterator[tuple[int, list[str | _Ranges]]]:
    """Yield for each entry its number of hosts, and its texts and brackets in their order."""
    place = total = 0
    while place < len(text):
        entry = _ENTRY.match(text, place)
        if entry is None or entry[0].count("[") > LONGEST_NAME:
            raise _wrong(text)
        parts = [part[2] or _bracket(part[1], text) for part in _PART.finditer(entry[0])]
        counts = (_count(part) for part in parts if not isinstance(part, str))
        total += (count := prod(counts))
        if total > MOST_HOSTS:
            raise _too_many(text)
        yield count, parts
        place = entry.end()
        if place < len(text):
            if text[place] != "," or place + 1 == len(text):
                raise _wrong(text)
            place += 1


def _bracket(text: str, whole: str) -> _Ranges:
    ranges: _Ranges = []
    for part in _BETWEEN.finditer(text):
        found = _RANGE.fullmatch(part[0])
        if found is None:
            raise _wrong(whole)
        first, last = int(found[1]), int(found[2] or found[1])
        if last < first:
            raise InputError(f"{_shown(whole)}: {part[0]}; expected an ascending range")
        if last - first >= MOST_HOSTS or len(ranges) >= MOST_HOSTS:
            raise _too_many(whole)
        ranges.append((first, last, len(found[1])))
    return ranges


def _count(ranges: _Ranges) -> int:
    return sum(last - first + 1 for first, last, _ in ranges)


def _longest(ranges: _Ranges) -> int:
    return max(max(width, len(str(last))) for _, last, width in ranges)


def _texts(part: str | _Ranges) -> list[str]:
    """Return the texts that a part of an entry stands for; numbers are padded."""
    if isinstance(part, str):
        return [part]
    return [
        str(number).zfill(width) for first, last, width in part for number in range(first, last + 1)
    ]


def _too_many(text: str) -> InputError:
    return InputError(f"{_shown(text)}; expected at most {MOST_HOSTS:,} hosts")


def _wrong(text: str) -> InputError:
    return InputError(f"{_shown(text)}; expected a host list such as c[01-40,44]")


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:60]}...")
