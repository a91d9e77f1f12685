"""Strict reading of texts, JSON and TOML that people write."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from optsched.errors import InputError
from optsched.files import read_bytes

MOST_TOML = 2**24
"""Most bytes of a TOML file: 16 MiB."""

MOST_PARTS = 100
"""Most parts of a key of a TOML file with dots, for which Python's parser needs their square."""

LONGEST_LINE = 2**20
"""Most bytes of a line of a trace, and most characters of one of a text of Slurm."""

_DOTTED = re.compile(
    rb"""(?<![\w.-])(?:(?:"(?:[^"\\\n]|\\.){0,64}+"|'[^'\n]{0,64}+'|[\w-]++)"""
    rb"""[ \t]*+\.[ \t]*+){%d}""" % MOST_PARTS
)
SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
"""Start of a character that JSON writes as a pair of escapes."""


def parse_json(data: bytes) -> Any:
    """Return the value of a JSON text."""
    with _expected("JSON"):
        value = json.loads(
            data.decode("utf-8-sig"),
            object_pairs_hook=_without_repeats,
            parse_constant=_not_finite,
            parse_float=_finite,
        )
        if SURROGATE.search(data):
            json.dumps(value, ensure_ascii=False).encode()  # refuses those without their other half
        return value


def text_of(data: bytes, path: Path, form: str) -> str:
    """Return the text of a file, which may begin with a mark of its encoding."""
    with _expected(form, path):
        return data.decode("utf-8-sig")


def read_toml(path: Path) -> dict[str, Any]:
    """Return the tables of a TOML file."""
    data, _ = read_bytes(path, MOST_TOML)
    if found := _DOTTED.search(data):
        line = 1 + data.count(b"\n", 0, found.start())
        mistake = f"many dots; expected keys of at most {MOST_PARTS} parts"
        raise InputError(mistake, file=path, line=line)
    with _expected("TOML", path):
        return tomllib.loads(data.decode("utf-8"))


def merged(table: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table with changes, which go into its tables."""
    found = dict(table)
    for key, value in changes.items():
        inner = found.get(key)
        both = isinstance(inner, Mapping) and isinstance(value, Mapping)
        found[key] = merged(inner, value) if both else value  # type: ignore[arg-type]
    return found


@contextmanager
def _expected(form: str, file: Path | None = None) -> Iterator[None]:
    """Turn the errors of a parser in the context into input errors."""
    try:
        yield
    except UnicodeDecodeError:
        raise InputError(f"not text; expected {form}", file=file) from None
    except UnicodeEncodeError as error:
        half = ascii(error.object[error.start])
        raise InputError(f"{half}: half of a surrogate pair; expected whole characters") from None
    except json.JSONDecodeError as error:
        raise InputError(f"not JSON: {error.msg}", line=error.lineno) from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"not TOML: {error}", file=file) from None
    except RecursionError:
        raise InputError("nested too deeply", file=file) from None
    except MemoryError:
        raise InputError("does not fit into memory", file=file) from None
    except InputError:
        raise
    except ValueError:
        raise InputError(f"not {form}: a number has too many digits", file=file) from None


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = sorted(name for name, count in counts.items() if count > 1)
        raise InputError(*(f"{name}: given more than once" for name in twice))
    return fields


def _finite(literal: str) -> float:
    number = float(literal)
    return number if math.isfinite(number) else _not_finite(literal)


def _not_finite(literal: str) -> Any:
    raise InputError(f"{literal}; expected a finite number")


def too_long(path: Path | None, line: int) -> InputError:
    """Return the error of a line that is longer than `LONGEST_LINE`."""
    most = f"expected lines of at most {LONGEST_LINE >> 20} MiB"
    return InputError(f"is too long; {most}", file=path, line=line)
