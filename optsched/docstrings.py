"""Docstrings as texts for users, even under ``python -OO``, which drops docstrings."""

from __future__ import annotations

import ast
import inspect
import re
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


def section(described: Callable[..., Any], title: str) -> str:
    """Return a section of a numpydoc docstring, its heading included; empty if there is none."""
    found = re.search(rf"^{title}\n-+\n.*?(?=\n\n\S|\Z)", docstring(described), re.M | re.S)
    return "" if found is None else found[0]


def parameters(described: Callable[..., Any]) -> dict[str, str]:
    """Return the descriptions of parameters in a numpydoc docstring, each in one line."""
    described_ones = re.findall(
        r"^(\w+) : .*\n((?: .*(?:\n|\Z))+)", section(described, "Parameters"), re.M
    )
    return {name: " ".join(text.split()) for name, text in described_ones}
