"""Host lists such as ``c[01-40,44],g1``, read and written as Slurm does."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import product

from optsched.errors import InputError

MOST_HOSTS = 1_000_000
"""Most hosts of a list."""

_ENTRY = re.compile(r"(?:[^,\[\]\s]|\[[^\[\]]*\])+")
_PART = re.compile(r"\[([^\]]*)\]|([^\[\]]+)")
_RANGE = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")
_NUMBERED = re.compile(r"(.*?)([0-9]{1,18})", re.DOTALL)


def hosts_of(text: str) -> list[str]:
    """Return the names of the hosts of a list, in its order.

    Several brackets in one name stand for all combinations, the last one fastest.

    Raises
    ------
    InputError
        If the text is not a host list, or has more than `MOST_HOSTS` hosts.

    Examples
    --------
    >>> hosts_of("c[08-10,12],m1,r[1-2]n[1-2]")
    ['c08', 'c09', 'c10', 'c12', 'm1', 'r1n1', 'r1n2', 'r2n1', 'r2n2']
    """
    hosts: list[str] = []
    place = 0
    while place < len(text):
        entry = _ENTRY.match(text, place)
        if entry is None:
            raise _wrong(text)
        parts = []
        count = 1
        for part in _PART.finditer(entry[0]):
            parts.append([part[2]] if part[1] is None else _numbers(part[1], text))
            count *= len(parts[-1])
        if len(hosts) + count > MOST_HOSTS:
            raise InputError(f"{_shown(text)}; expected at most {MOST_HOSTS:,} hosts")
        hosts += map("".join, product(*parts))
        place = entry.end()
        if place < len(text):
            if text[place] != "," or place + 1 == len(text):
                raise _wrong(text)
            place += 1
    return hosts


def host_list(names: Iterable[str]) -> str:
    """Return the host list of names, with brackets for their last numbers.

    The list is sorted by the text before the number and by the number, without repetitions;
    numbers of different widths are in different brackets, and `hosts_of` returns the same names.

    Examples
    --------
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

    Examples
    --------
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


def _numbers(text: str, whole: str) -> list[str]:
    """Return the numbers in a bracket, as padded texts."""
    numbers: list[str] = []
    for part in text.split(","):
        found = _RANGE.fullmatch(part)
        if found is None:
            raise _wrong(whole)
        first, last = int(found[1]), int(found[2] or found[1])
        if last < first:
            raise InputError(f"{_shown(whole)}: {part}; expected an ascending range")
        if last - first >= MOST_HOSTS:
            raise InputError(f"{_shown(whole)}; expected at most {MOST_HOSTS:,} hosts")
        width = len(found[1])
        numbers += [str(number).zfill(width) for number in range(first, last + 1)]
    return numbers


def _wrong(text: str) -> InputError:
    return InputError(f"{_shown(text)}; expected a host list such as c[01-40,44]")


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:60]}...")
