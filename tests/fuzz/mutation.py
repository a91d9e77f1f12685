"""Damage: valid input made invalid, in its structure, its text or its bytes."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
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
    kinds: tuple[Callable[[], Any], ...] = (
        lambda: number(rng),
        lambda: word(rng),
        lambda: Token(rng.choice(SPELLINGS)),
        lambda: rng.choice((True, False, None)),
        lambda: rng.choice(([], {}, [[]], [{}], {"": {}}, [None], {"x": 1})),
        lambda: [number(rng) for _ in range(rng.randint(1, 4))],
        lambda: [word(rng) for _ in range(rng.randint(1, 4))],
        lambda: {word(rng): number(rng)},
        lambda: date(1979, 5, 27),
        lambda: Token("[" * 5000 + "]" * 5000),
    )
    return rng.choice(kinds)()


def damaged_tree(rng: Random, tree: Any) -> Any:
    """Return a copy of a tree of dictionaries and lists with some mistakes in it."""
    holder = [deepcopy(tree)]
    for _ in range(1 + int(rng.expovariate(1.5))):
        places = list(_places(holder))
        if not places:  # all of it was dropped
            break
        container, key = rng.choice(places)
        rng.choice(TREE_MISTAKES)(rng, container, key)
    return holder[0] if holder else None


def _places(container: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each container with each of its keys, from the outside to the inside."""
    keys = list(container) if isinstance(container, dict) else range(len(container))
    for key in keys:
        yield container, key
        if isinstance(container[key], dict | list):
            yield from _places(container[key])


def _replace(rng: Random, container: Any, key: Any) -> None:
    container[key] = value(rng)


def _extreme(rng: Random, container: Any, key: Any) -> None:
    container[key] = number(rng)


def _drop(_rng: Random, container: Any, key: Any) -> None:
    del container[key]


def _repeat(rng: Random, container: Any, key: Any) -> None:
    if isinstance(container, list):
        container[key:key] = [container[key]] * rng.choice((1, 1, 1, 50))
    else:
        container[f"{key}{rng.choice(TEXTS)}"] = deepcopy(container[key])


def _add(rng: Random, container: Any, key: Any) -> None:
    if isinstance(container, list):
        container.insert(key, value(rng))
    else:
        container[word(rng)] = value(rng)


def _swap(rng: Random, container: Any, key: Any) -> None:
    other = rng.choice(list(container) if isinstance(container, dict) else range(len(container)))
    container[key], container[other] = container[other], container[key]


def _wrap(rng: Random, container: Any, key: Any) -> None:
    inner = container[key]
    container[key] = rng.choice(([inner], {"x": inner}, str(inner), [inner, inner]))


def _nudge(rng: Random, container: Any, key: Any) -> None:
    old = container[key]
    if isinstance(old, int | float) and not isinstance(old, bool):
        container[key] = rng.choice((old + 1, old - 1, old * 2, -old, old + 0.5, str(old)))
    else:
        container[key] = value(rng)


def _grow(rng: Random, container: Any, key: Any) -> None:
    """Change a number by so little, or to one so large, that it may well be taken."""
    old = container[key]
    if isinstance(old, int | float) and not isinstance(old, bool):
        container[key] = rng.choice(
            (old + 1, old - 1, 0, 1, 2 * old, *(old * 10**n for n in (1, 6, 12)))
        )
    elif isinstance(old, dict | list) and old:
        _grow(rng, old, rng.choice(list(old) if isinstance(old, dict) else range(len(old))))


TREE_MISTAKES = (
    _replace, _extreme, _drop, _repeat, _add, _swap, _wrap, _nudge, _grow, _grow, _grow, _grow,
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
        words[at] = str(
            rng.choice((old + 1, old - 1, -1, 0, 1, old * 10, old * 10**6, old * 10**12))
        )
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
        part = rng.choice(
            (
                b"",
                data[begin:end] * rng.choice((2, 2, 1000)),
                rng.randbytes(end - begin),
                bytes(end - begin),
                rng.choice(BYTES),
                bytes(byte ^ 1 << rng.randrange(8) for byte in data[begin:end]),
            )
        )
        data = data[:begin] + part + data[end:]
        if rng.random() < 0.1:
            data = data[: rng.randint(0, len(data))]
    return data


def damaged(rng: Random, data: bytes) -> bytes:
    """Return a text file with mistakes in its lines and words, or in its bytes."""
    if rng.random() < 0.7:
        return damaged_text(rng, data.decode(errors="replace")).encode("utf-8", "surrogatepass")
    return damaged_bytes(rng, data)
