"""Strict reading of JSON and TOML that people write."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from optsched.binary_files import read_bytes
from optsched.errors import InputError

MOST_TOML = 2**24
"""Most bytes of a TOML file: 16 MiB."""

SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
"""Start of a character that JSON writes as a pair of escapes."""


def parse_json(data: bytes) -> Any:
    """Return the value of a JSON text.

    Raises
    ------
    InputError
        If the text is not UTF-8 or not JSON, repeats a name in one object, holds ``NaN``, an
        infinite number, one of thousands of digits or half of a surrogate pair, or is nested too
        deeply.
    """
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


def read_toml(path: Path) -> dict[str, Any]:
    """Return the tables of a TOML file.

    Raises
    ------
    InputError
        If the file cannot be read, is too large, not UTF-8 or not TOML, or is nested too deeply.
    """
    data, _ = read_bytes(path, MOST_TOML)
    with _expected("TOML", path):
        return tomllib.loads(data.decode("utf-8"))


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
