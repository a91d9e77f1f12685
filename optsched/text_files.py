"""Strict reading of JSON and TOML that people write."""

from __future__ import annotations

import json
import math
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

from optsched.binary_files import read_bytes
from optsched.errors import InputError

MOST_TOML = 2**24
"""Most bytes of a TOML file: 16 MiB."""


def parse_json(data: bytes) -> Any:
    """Return the value of a JSON text.

    Raises
    ------
    InputError
        If the text is not UTF-8 or not JSON, repeats a name in one object, holds ``NaN``, an
        infinite number or one of thousands of digits, or is nested too deeply.
    """
    try:
        return json.loads(
            data.decode("utf-8-sig"),
            object_pairs_hook=_without_repeats,
            parse_constant=_not_finite,
            parse_float=_finite,
        )
    except UnicodeDecodeError:
        raise InputError("not text; expected JSON") from None
    except json.JSONDecodeError as error:
        raise InputError(f"not JSON: {error.msg}", line=error.lineno) from None
    except RecursionError:
        raise InputError("nested too deeply") from None
    except MemoryError:
        raise InputError("does not fit into memory") from None
    except InputError:
        raise
    except ValueError:
        raise InputError("not JSON: a number has too many digits") from None


def read_toml(path: Path) -> dict[str, Any]:
    """Return the tables of a TOML file.

    Raises
    ------
    InputError
        If the file cannot be read, is too large, not UTF-8 or not TOML, or is nested too deeply.
    """
    data, _ = read_bytes(path, MOST_TOML)
    try:
        return tomllib.loads(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise InputError("not text; expected TOML", file=path) from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"not TOML: {error}", file=path) from None
    except RecursionError:
        raise InputError("nested too deeply", file=path) from None
    except ValueError:
        raise InputError("not TOML: a number has too many digits", file=path) from None


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
