"""Docstrings as texts for users, even under ``python -OO``, which drops docstrings."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable
from typing import Any


def docstring(described: Callable[..., Any]) -> str:
    """Return the docstring of a class or function, from its source where Python has dropped it."""
    if sys.flags.optimize < 2:
        return inspect.cleandoc(described.__doc__ or "")
    try:
        source = textwrap.dedent(inspect.getsource(described))
    except (OSError, TypeError):  # no source
        return ""
    statement = ast.parse(source).body[0]
    assert isinstance(statement, ast.ClassDef | ast.FunctionDef)
    return ast.get_docstring(statement) or ""


def first_line(described: Callable[..., Any]) -> str:
    """Return the first line of the docstring of a class or function."""
    return docstring(described).partition("\n")[0]
