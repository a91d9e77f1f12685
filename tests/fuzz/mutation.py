"""Damage: valid input made invalid, in its structure, its text or its bytes."""

import json
import math
import re
from collections.abc import Iterator
from copy import deepcopy
from datetime import date
from random import Random
from typing import Any

INTEGERS = (
    0, 1, -1, 2, 7, 2**31 - 1, 2**31, 2**32, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64,
    -(2**31), -(2**63), -(2**63) - 1, 10**20, -(10**20),
)  # fmt: skip

DECIMALS = (
    0.5, 1.5, -0.5, -0.0, 2.0**53, 1e-9, 1e-300, 5e-324, 1e15, 1e30, -1e30, 1.7e308,
    math.nan, math.inf, -math.inf,
)  # fmt: skip

SPELLINGS = (
    "1_0", "\u0663", "\uff11", "½", "²", "0x10", "0b1", "1e2", "1.0", "1.", ".5", "+1", "007", "-0",
    " 1 ",     "1,5", "1 0", "--1", "1e400", "1e-400", "1e", "NaN", "-Infinity", "Inf", "9" * 5000,
)  # fmt: skip
"""Numbers as nobody should spell them."""

TEXTS = (
    "", " ", "x", "none", "true", "null", "[]", "{}", "-", "--", ":", "=", ",", ";", "#", "%s",
    "{0}", "a" * 300, "long " * 2000, "a:b:c", "a=b", "a,b,,c", "1:2:3", "5:1", "0:0", "1x2", "8x",
    "日本", "é", "e\u0301", "\U0001d54f", "\u202eabc", "\u200b", "\ufeff", "\x1b]0;title\x07",
    "\x1b[31mred", "a\nb", "a\r\nb", "\t", "\x7f", "\x85", "\u2028", "'", '"',
    "<script>alert(1)</script>", "&amp;", "__class__", "$HOME", "~", "*", "1; 2",
)  # fmt: skip
"""Words that no reader expects; none names a file."""


BYTES = (b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\xc3", b"\xed\xa0\x80", b"\x1a")
"""Bytes that no text has, and a byte order mark."""


class Token(str):
    """What is written into JSON or TOML as it is, without quotes."""


def number(rng: Random) -> int | float:
    """Return a number at the edge of something."""
    return rng.choice(INTEGERS) if rng.random() < 0.6 else rng.choice(DECIMALS)


def number_text(rng: Random) -> str:
    """Return a number as text, at the edge of something or spelled strangely."""
    return str(number(rng)) if rng.random() < 0.6 else rng.choice(SPELLINGS)


def word(rng: Random) -> str:
    """Return a text that no reader expects."""
    return rng.choice(TEXTS) if rng.random() < 0.6 else number_text(rng)


def value(rng: Random) -> Any:
    """Return a value of any type that JSON or TOML can hold, and some that they cannot."""
    several = range(rng.randint(1, 4))
    kinds = (
        number(rng), word(rng), Token(rng.choice(SPELLINGS)), rng.choice((True, False, None)),
        rng.choice(([], {}, [[]], [{}], {"": {}}, [None], {"x": 1})), {word(rng): number(rng)},
        [number(rng) for _ in several], [word(rng) for _ in several], date(1979, 5, 27),
        Token("[" * 5000 + "]" * 5000),
    )  # fmt: skip
    return rng.choice(kinds)


def damaged_tree(rng: Random, tree: Any) -> Any:
    """Return a copy of a tree of dictionaries and lists with some mistakes in it."""
    holder = [deepcopy(tree)]
    for _ in range(1 + int(rng.expovariate(1.5))):
        places = list(_places(holder))
        if not places:  # all of it was dropped
            break
        _mistake(rng, *rng.choice(places))
    return holder[0] if holder else None


def _places(container: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each container with each of its keys, from the outside to the inside."""
    for key in _keys(container):
        yield container, key
        if isinstance(container[key], dict | list):
            yield from _places(container[key])


def _keys(container: Any) -> list[Any]:
    return list(container) if isinstance(container, dict) else list(range(len(container)))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _mistake(rng: Random, container: Any, key: Any) -> None:
    """Make a mistake at a place of a tree."""
    old, listed = container[key], isinstance(container, list)
    mistake = rng.choice(MISTAKES)
    if mistake == "drop":
        del container[key]
    elif mistake == "repeat" and listed:
        container[key:key] = [old] * rng.choice((1, 1, 1, 50))
    elif mistake == "repeat":
        container[f"{key}{rng.choice(TEXTS)}"] = deepcopy(old)
    elif mistake == "add" and listed:
        container.insert(key, value(rng))
    elif mistake == "add":
        container[word(rng)] = value(rng)
    elif mistake == "swap":
        other = rng.choice(_keys(container))
        container[key], container[other] = container[other], old
    elif mistake == "wrap":
        container[key] = rng.choice(([old], {"x": old}, str(old), [old, old]))
    elif mistake == "grow":  # by so little, or to one so large, that it may well be taken
        while isinstance(old, dict | list) and old:
            container, key = old, rng.choice(_keys(old))
            old = container[key]
        if _is_number(old):
            larger = (2 * old, *(old * 10**n for n in (1, 6, 12)))
            container[key] = rng.choice((old + 1, old - 1, 0, 1, *larger))
    elif mistake == "nudge" and _is_number(old):
        container[key] = rng.choice((old + 1, old - 1, old * 2, -old, old + 0.5, str(old)))
    elif mistake == "extreme":
        container[key] = number(rng)
    elif mistake in ("replace", "nudge"):
        container[key] = value(rng)


MISTAKES = (
    "replace", "extreme", "drop", "repeat", "add", "swap", "wrap", "nudge", *["grow"] * 4,
)  # fmt: skip


def to_json(tree: Any) -> bytes:
    """Write a tree as JSON; tokens as they are, what JSON does not have as Python writes it."""
    return _json(tree).encode("utf-8", "surrogatepass")


def _json(tree: Any) -> str:
    if isinstance(tree, dict):
        return "{" + ", ".join(f"{_json(str(k))}: {_json(v)}" for k, v in tree.items()) + "}"
    if isinstance(tree, list):
        return "[" + ", ".join(map(_json, tree)) + "]"
    if isinstance(tree, Token):
        return tree
    return json.dumps(tree, default=str, ensure_ascii=False)


def to_toml(tree: Any) -> bytes:
    """Write a tree as TOML: a line for each key of the outermost table."""
    if isinstance(tree, dict):
        text = "".join(f"{_json(str(key))} = {_toml(held)}\n" for key, held in tree.items())
    else:
        text = _toml(tree)
    return text.encode("utf-8", "surrogatepass")


def _toml(tree: Any) -> str:
    if isinstance(tree, dict):
        return "{" + ", ".join(f"{_json(str(k))} = {_toml(v)}" for k, v in tree.items()) + "}"
    if isinstance(tree, list):
        return "[" + ", ".join(map(_toml, tree)) + "]"
    if isinstance(tree, date):
        return tree.isoformat()
    if isinstance(tree, float) and not math.isfinite(tree):
        return str(tree)
    return _json(tree).replace("\x7f", "\\u007f")


def damaged_text(rng: Random, text: str) -> str:
    """Return a text with some of its lines and words damaged."""
    lines = text.split("\n")
    for _ in range(1 + int(rng.expovariate(1.5))):
        if not lines:
            break
        at = rng.randrange(len(lines))
        mistake = rng.randrange(7)
        if mistake == 0:
            del lines[at]
        elif mistake == 1:
            lines[at:at] = [lines[at]] * rng.choice((1, 1, 1, 100))
        elif mistake == 2:
            other = rng.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        elif mistake == 3:
            lines.insert(at, word(rng))
        else:
            lines[at] = _damaged_line(rng, lines[at])
    return rng.choice(("\n",) * 9 + ("\r\n", "\r")).join(lines)


def _damaged_line(rng: Random, line: str) -> str:
    words = line.split(" ")
    at = rng.randrange(len(words))
    mistake = rng.randrange(9)
    if mistake == 0:
        del words[at]
    elif mistake == 1:
        words.insert(at, words[at])
    elif mistake == 2:
        words[at] = word(rng)
    elif mistake == 3:
        words[at] = number_text(rng)
    elif mistake in (6, 7, 8) and re.fullmatch(r"-?[0-9]{1,100}", words[at]):
        old = int(words[at])
        nearby = (old + 1, old - 1, -1, 0, 1, old * 10, old * 10**6, old * 10**12)
        words[at] = str(rng.choice(nearby))
    elif mistake == 4:
        place = rng.randint(0, len(words[at]))
        words[at] = words[at][:place] + rng.choice(TEXTS) + words[at][place:]
    elif mistake == 5:
        words = words[:at]
    return rng.choice((" ",) * 9 + ("\t", "  ", ",")).join(words)


def damaged_bytes(rng: Random, data: bytes) -> bytes:
    """Return bytes of which some are missing, changed, repeated or new."""
    for _ in range(1 + int(rng.expovariate(1))):
        begin = rng.randint(0, len(data))
        end = min(len(data), begin + int(rng.expovariate(0.05)))
        flipped = bytes(byte ^ 1 << rng.randrange(8) for byte in data[begin:end])
        repeated = data[begin:end] * rng.choice((2, 2, 1000))
        others = (rng.randbytes(end - begin), bytes(end - begin), rng.choice(BYTES))
        data = data[:begin] + rng.choice((b"", repeated, flipped, *others)) + data[end:]
        if rng.random() < 0.1:
            data = data[: rng.randint(0, len(data))]
    return data


def damaged(rng: Random, data: bytes, between: str = "") -> bytes:
    """Return a text file with mistakes in its lines and words, or in its bytes.

    Words are what stands between spaces, or between separators of values, which are words too.
    """
    if rng.random() < 0.3:
        return damaged_bytes(rng, data)
    text = data.decode(errors="replace")
    if not between:
        return damaged_text(rng, text).encode("utf-8", "surrogatepass")
    space = rng.choice((" ", f" {between} "))
    text = damaged_text(rng, text.replace(between, space))
    return text.replace(" ", "" if between in space else between).encode("utf-8", "surrogatepass")
