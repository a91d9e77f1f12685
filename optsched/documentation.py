"""Texts of the documentation: docstrings, and tables in Markdown and their places on pages."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import TYPE_CHECKING, Any

from optsched.errors import InputError
from optsched.numbers import written

if TYPE_CHECKING:
    import pandas as pd


def docstring(described: Callable[..., Any]) -> str:
    """Return the docstring of a class or function, from its source where Python has dropped it."""
    if sys.flags.optimize < 2:  # -OO drops docstrings
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
    every = section(described, "Parameters")
    found = re.findall(r"^(\w+) : .*\n((?: .*(?:\n|\Z))+)", every, re.M)
    return {name: " ".join(text.split()) for name, text in found}


def markdown_row(*cells: str) -> str:
    """Return a row of a Markdown table."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def markdown_table(rows: Iterable[Sequence[str]]) -> str:
    """Return a table of texts, the first row of which is its heading."""
    heading, *rest = (tuple(row) for row in rows)
    lines = [markdown_row(*heading), "|---" * len(heading) + "|"]
    return "\n".join([*lines, *(markdown_row(*row) for row in rest)])


def markdown(frame: pd.DataFrame, digits: int | None = None) -> str:
    """Return a data frame as a table, with its index first where that has a name."""
    frame = frame.reset_index() if frame.index.names != [None] else frame
    numeric = [kind.kind in "iuf" for kind in frame.dtypes]
    rows: list[Iterable[Any]] = [frame.columns, ["---:" if one else "---" for one in numeric]]
    rows += [[_cell(value, digits) for value in row] for row in frame.itertuples(index=False)]
    return "\n".join(markdown_row(*map(str, row)) for row in rows)


def _cell(value: Any, digits: int | None) -> str:
    if isinstance(value, str):
        return value
    if value is None or value != value:
        return ""
    return written(value, digits=0 if abs(value) < inf and int(value) == value else digits)


def between_marks(page: str, name: str, table: str) -> str:
    """Return a page with a table between the marks of its name."""
    begin, end = f"<!-- {name}: make pages -->", f"<!-- end of {name} -->"
    between = re.compile(rf"(?<={begin}\n).*?(?={end})", re.DOTALL)
    if len(between.findall(page)) != 1:
        raise InputError(f"expected {begin} and {end} once")
    return between.sub(lambda _: table + "\n", page)
