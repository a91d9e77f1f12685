"""Assertion of the checks."""

from __future__ import annotations


def expect(condition: object, otherwise: str) -> None:
    """Raise `AssertionError` with the text `otherwise` unless `condition` holds."""
    if not condition:
        raise AssertionError(otherwise)
