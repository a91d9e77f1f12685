"""Host lists, and amounts of memory, time and resources (TRES, GPUs), as Slurm writes them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from decimal import ROUND_CEILING, Decimal
from itertools import product
from math import prod
from typing import NamedTuple, TypeAlias

from optsched.errors import InputError

MOST_HOSTS = 1_000_000
"""Most hosts of a list."""

LONGEST_NAME = 255
"""Most characters of the name of a host."""

MOST_CHARACTERS = 2**25
"""Most characters of all lists that are read together, with a comma for each host."""

_ENTRY = re.compile(r"(?:[^,\[\]\s]++|\[[^\[\]]*+\])++")
_BRACKET = re.compile(r"\[([^\]]*)\]|([^\[\]]+)")
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
    groups: dict[str, set[str]] = {}
    for name in names:
        prefix, digits = _split(name)
        groups.setdefault(prefix, set()).add(digits)
    return _written(
        (prefix, ranges)
        for prefix in sorted(groups)
        for ranges in ([[""]] if "" in groups[prefix] else [], _ranges(groups[prefix] - {""}))
        if ranges
    )


def host_list_in_order(names: Iterable[str]) -> str:
    """Return a host list of names in their order, which `hosts_of` returns again.

    >>> host_list_in_order(["c09", "c10", "c12", "m1", "c11"])
    'c[09-10,12],m1,c11'
    """
    groups: list[tuple[str, list[list[str]]]] = []  # prefix, and ranges of numbers
    for name in names:
        prefix, digits = _split(name)
        if not (digits and groups and groups[-1][0] == prefix and groups[-1][1][0][0]):
            groups.append((prefix, [[digits]]))
            continue
        ranges = groups[-1][1]
        first, last = ranges[-1][0], ranges[-1][-1]
        if digits == str(int(last) + 1).zfill(len(first)):
            ranges[-1][1:] = [digits]
        else:
            ranges.append([digits])
    return _written(groups)


def _split(name: str) -> tuple[str, str]:
    """Return the digits at the end of a name, and what is before them."""
    match = _NUMBERED.fullmatch(name)
    return (name, "") if match is None else (match[1], match[2])


def _ranges(numbers: set[str]) -> list[list[str]]:
    """Return the first and the last of each range of numbers, or the only one."""
    # 10 continues 09, which is padded to two digits, as well as 9, which is not
    padded = {len(digits) for digits in numbers if digits[0] == "0" and len(digits) > 1}
    runs: list[list[str]] = []
    ending: dict[tuple[int, int], list[str]] = {}  # run by its last number
    for digits in sorted(numbers, key=lambda digits: (int(digits), len(digits))):
        wide, number = len(digits) if len(digits) in padded else 0, int(digits)
        run = ending.pop((wide, number - 1), [])
        if not run:
            runs.append(run)
        run[1:] = [digits]
        ending[wide, number] = run
    return runs


def _written(groups: Iterable[tuple[str, list[list[str]]]]) -> str:
    texts = ((prefix, ",".join(map("-".join, ranges))) for prefix, ranges in groups)
    return ",".join(
        prefix + (text if text.isdigit() or not text else f"[{text}]") for prefix, text in texts
    )


def _entries_of(text: str) -> Iterator[tuple[int, list[str | _Ranges]]]:
    """Yield for each entry its number of hosts, and its texts and brackets in their order."""
    place = total = 0
    while place < len(text):
        entry = _ENTRY.match(text, place)
        if entry is None or entry[0].count("[") > LONGEST_NAME:
            raise _wrong(text)
        parts = [part[2] or _bracket(part[1], text) for part in _BRACKET.finditer(entry[0])]
        brackets = [part for part in parts if not isinstance(part, str)]
        count = prod(sum(last - first + 1 for first, last, _ in each) for each in brackets)
        total += count
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


MEGABYTES = {"": Decimal(1), "K": Decimal(1) / 1024, "M": Decimal(1), "G": Decimal(1024)}
MEGABYTES |= {"T": Decimal(1024) ** 2, "P": Decimal(1024) ** 3}

INFINITE = ("UNLIMITED", "INFINITE", "PARTITION_LIMIT")

_MEMORY = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)([KMGTP]?)B?", re.IGNORECASE)
_TIME = re.compile(r"(?:([0-9]{1,9})-)?([0-9]{1,9})(?::([0-9]{1,2}))?(?::([0-9]{1,2}))?(\.[0-9]+)?")
_GRES = re.compile(
    r"(?:gres[/:])?([^:(,=\s]+)(?:[:=]([^:(,=\s]+))??"
    r"(?:[:=]([0-9]+(?:\.[0-9]+)?(?:[KMGTP](?:I?B)?)?))?(?:\((.*)\))?",
    re.IGNORECASE,
)
_WHOLE = re.compile(r"([0-9]{1,20})(\.[0-9]{1,9}(?=[A-Z]))?(?:([KMGTP])(I?B)?)?", re.IGNORECASE)
_PART = re.compile(r"(?:[^,(]++|\([^()]*+\))++|\(")  # the last one is refused
_ON_DEVICES = re.compile(r"(?:-|[0-9]+)/[0-9]+")

SHARED = ("mps", "shard")
"""Generic resources that are shares of GPUs: a GPU is in use as a whole, or by its shares."""


def megabytes(text: str) -> int:
    """Return an amount of memory in MB (2^20 bytes), rounded up; without a unit it is in MB.

    >>> megabytes("62.50G"), megabytes("2000M"), megabytes("512")
    (64000, 2000, 512)
    """
    found = _MEMORY.fullmatch(text)
    if found is None:
        raise InputError(f"{text!r}; expected an amount of memory such as 2000M or 62.50G")
    exact = Decimal(found[1]) * MEGABYTES[found[2].upper()]
    return int(exact.to_integral_value(ROUND_CEILING))


def seconds(text: str) -> float:
    """Return a time limit or duration in seconds; infinity for an unlimited one.

    Forms: minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes and
    days-hours:minutes:seconds; fractions of seconds are cut off.

    >>> seconds("30"), seconds("01:30:00"), seconds("2-12"), seconds("UNLIMITED")
    (1800, 5400, 216000, inf)
    """
    if text.upper() in INFINITE:
        return math.inf
    found = _TIME.fullmatch(text)
    if found is None:
        expected = "expected a time such as 30, 01:30:00 or 2-12:00:00"
        raise InputError(f"{text!r}; {expected}")
    days, *parts = (None if part is None else int(part) for part in found.groups()[:4])
    given = [part for part in parts if part is not None]
    if days is not None:
        hours, minutes, rest = (*given, 0, 0)[:3]
    elif len(given) == 3:
        hours, minutes, rest = given
    else:
        hours, (minutes, rest) = 0, (*given, 0)[:2]
    return ((((days or 0) * 24 + hours) * 60) + minutes) * 60 + rest


def time_text(amount: float) -> str:
    """Return a time in seconds as text, which `seconds` reads; infinity as ``UNLIMITED``.

    >>> time_text(216000), time_text(5400), time_text(math.inf)
    ('2-12:00:00', '01:30:00', 'UNLIMITED')
    """
    if amount == math.inf:
        return "UNLIMITED"
    minutes, rest = divmod(int(amount), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"{f'{days}-' if days else ''}{hours:02}:{minutes:02}:{rest:02}"


def tres(text: str) -> dict[str, int]:
    """Return the amounts of trackable resources by name; memory in MB.

    >>> tres("cpu=24,mem=62.50G,node=6,gres/gpu:a100=24")
    {'cpu': 24, 'mem': 64000, 'node': 6, 'gres/gpu:a100': 24}
    """
    found: dict[str, int] = {}
    for part in _parts(text):
        name, equals, amount = part.rpartition("=")
        try:
            if not equals or not name:
                raise InputError("")
            found[name] = megabytes(amount) if name in ("mem", "vmem") else whole_amount(amount)
        except InputError:
            expected = "expected names and amounts such as cpu=4,mem=2000M"
            raise InputError(f"{text!r}; {expected}") from None
    return found


def gres(text: str) -> dict[str, int]:
    """Return the counts of generic resources, by ``name`` and by ``name:type``.

    A resource with a type counts for its name too. Slurm writes ``(null)`` for no type.

    >>> gres("gpu:(null):2(IDX:0-1)")
    {'gpu': 2}
    >>> gres("gpu:a100:4(S:0-1),gpu:2"), gres("gres/gpu:h100:3"), gres("gpu:a100:0(IDX:N/A)")
    ({'gpu': 6, 'gpu:a100': 4}, {'gpu': 3, 'gpu:h100': 3}, {'gpu': 0, 'gpu:a100': 0})
    """
    found: dict[str, int] = {}
    for name, kind, many, _ in _gres_parts(text):
        found[name] = found.get(name, 0) + many
        if kind is not None:
            typed = f"{name}:{kind}"
            found[typed] = found.get(typed, 0) + many
    return found


class Shares(NamedTuple):
    """Shares of the GPUs of a node that are in use."""

    kind: str  # type of the GPUs; empty where it is not stated
    many: int  # number of shares in use
    # The GPUs concerned, from 0 among those of the type; None where they are not stated
    gpus: frozenset[int] | None


def shares_in_use(text: str) -> list[Shares]:
    """Return the shares of GPUs in a list of generic resources, those that are in use.

    >>> shares_in_use("gpu:l40:1(IDX:2),shard:l40:4(1/8,3/8,-/8)")
    [Shares(kind='l40', many=4, gpus=frozenset({0, 1}))]
    >>> shares_in_use("shard:3(IDX:1-2),mps:50")
    [Shares(kind='', many=3, gpus=frozenset({1, 2})), Shares(kind='', many=50, gpus=None)]
    """
    return [
        Shares(kind or "", many, _devices(where or ""))
        for name, kind, many, where in _gres_parts(text)
        if name in SHARED and many
    ]


def _devices(where: str) -> frozenset[int] | None:
    """Return the devices that the text in parentheses says are in use, None if it does not."""
    counts = where.split(",")
    if all(map(_ON_DEVICES.fullmatch, counts)):
        return frozenset(place for place, each in enumerate(counts) if each[0] not in "-0")
    if not where.startswith("IDX:"):
        return None
    try:
        return frozenset(map(int, hosts_of(f"[{where[4:]}]")))
    except (InputError, ValueError):
        return None


def _gres_parts(text: str) -> Iterator[tuple[str, str | None, int, str | None]]:
    """Yield name, type, count and the text in parentheses of each generic resource."""
    for part in _parts(text):
        match = _GRES.fullmatch(part.replace(":(null)", "", 1))
        if match is None:
            expected = "expected generic resources such as gpu:a100:4"
            raise InputError(f"{text!r}; {expected}")
        name, kind, count, where = match.groups()
        if count is None and where is not None and where.startswith("CNT:"):  # without devices
            count = where[4:]
        yield name, kind, 1 if count is None else whole_amount(count), where


def licences(text: str) -> dict[str, int]:
    """Return the numbers of licences by name; one where no number is stated.

    >>> licences("matlab:10,abaqus@server:40,lab")
    {'matlab': 10, 'abaqus@server': 40, 'lab': 1}
    """
    found: dict[str, int] = {}
    for part in _parts(text):
        name, _, many = part.partition(":")
        if not name or (":" in part and not many.isdecimal()) or len(many) > 15:
            raise InputError(f"{text!r}; expected names and numbers such as matlab:10")
        found[name] = found.get(name, 0) + int(many or 1)
    return found


def whole_amount(text: str) -> int:
    """Return a whole number below 2^64, rounded up.

    It may have K, M, G, T or P for powers of 1,024 after it, or KB and so on for powers of 1,000.

    >>> whole_amount("12"), whole_amount("4G"), whole_amount("2TB")
    (12, 4294967296, 2000000000000)
    """
    found = _WHOLE.fullmatch(text)
    if found is None:
        raise InputError(f"{text!r}; expected a whole number")
    number, fraction, unit, of_bytes = found.groups()
    factor = (1000 if (of_bytes or "").upper() == "B" else 1024) ** (
        1 + "KMGTP".index(unit.upper()) if unit else 0
    )
    amount = int((Decimal(number + (fraction or "")) * factor).to_integral_value(ROUND_CEILING))
    if amount >= 2**64:
        raise InputError(f"{text!r}; expected a number below 2^64")
    return amount


def _parts(text: str) -> Iterator[str]:
    """Yield the parts between commas that are in no parentheses."""
    for part in _PART.finditer(text):
        if stripped := part[0].strip():
            yield stripped
