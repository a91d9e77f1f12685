"""Values as strict JSON."""

from __future__ import annotations

import json
import math
from typing import Any


def json_text(value: Any, indent: int | None = None) -> str:
    """Return a value as strict JSON, with null for NaN and infinity.

    Numbers may be numpy scalars.
    """
    try:
        return json.dumps(value, indent=indent, allow_nan=False, default=_of_python)
    except ValueError:
        return json.dumps(_with_nulls(value), indent=indent, allow_nan=False)


def _of_python(value: Any) -> Any:
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{type(value).__name__} is not JSON")


def _with_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_nulls(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_with_nulls(inner) for inner in value]
    if not isinstance(value, str | int | float | None):
        value = _of_python(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value
