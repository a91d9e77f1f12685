"""Pages of models: JSON Schemas and tables of fields, and the page of one statement.

``python -m optsched.models.pages`` writes the first two from the declarations, see `write_pages`.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

from optsched.content import SCHEMA_FILE
from optsched.documentation import between_marks, markdown_row
from optsched.errors import InputError
from optsched.files import json_text, write_text
from optsched.models.snapshot import has_schema, snapshot_schema
from optsched.models.stated import Stated
from optsched.registry import models

WORDS = {"integer": "integers", "binary": "0 or 1", "some": "1 where above 0"}
"""Methods that state decisions, and what these are."""

OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: r"\,", ast.MatMult: r"\cdot", ast.FloorDiv: "/",
    ast.LtE: r"\le", ast.GtE: r"\ge", ast.Eq: "=", ast.Lt: "<", ast.Gt: ">", ast.Mod: r"\bmod",
}  # fmt: skip


def stated_page(name: str) -> str:
    """Return the page of a model, Markdown with equations in LaTeX."""
    model = models[name]
    if not issubclass(model, Stated):
        raise InputError(f"{name} is not stated in one function; see `optsched list models`")
    try:
        source = dedent(inspect.getsource(model.statement))
    except OSError:
        raise InputError(f"the source of {name} is not in a file") from None
    symbols = {f.name: f.symbol for f in model.schema.fields if f.symbol}
    decisions, lines = [], []
    state = ast.parse(source).body[0].args.args[0].arg  # type: ignore[attr-defined]
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        of, called = node.func.value, node.func.attr
        if not isinstance(of, ast.Name) or of.id != state:
            continue
        first, *rest = node.args or [ast.Constant("")]
        if called in WORDS:
            shape = ", ".join(map(ast.unparse, rest)) if called != "some" else ""
            bounds = [f"{one.arg} {ast.unparse(one.value)}" for one in node.keywords]
            about = "; ".join([WORDS[called], *([f"lengths {shape}"] if shape else []), *bounds])
            decisions.append(markdown_row(_text(first), about))
        elif called in ("maximize", "minimize"):
            lines.append((called, equation(first, symbols)))
        elif called == "require" and rest:
            lines.append((_text(first), equation(rest[0], symbols)))
    body = dedent(model.statement.__doc__ or "").strip()
    rows = [markdown_row(one, f"${text}$") for one, text in lines]
    parts = [
        f"# {name}", body,
        "## Data", model.schema.table(),
        "## Decisions", "\n".join(["| decision | values |", "|---|---|", *decisions]),
        "## Statement", f"```python\n{source.strip()}\n```",
        "## Equations", "\n".join(["| name | equation |", "|---|---|", *rows]),
    ]  # fmt: skip
    return "\n\n".join(part for part in parts if part)


def equation(node: ast.AST, symbols: Mapping[str, str]) -> str:
    r"""Return an expression of Python in LaTeX, with the symbols of fields.

    >>> print(equation(ast.parse("(a * x).sum(axis=0) <= b", mode="eval").body, {"b": "b_j"}))
    \sum_{0} (a \, x) \le b_j
    """

    def of(part: Any) -> str:
        return equation(part, symbols)

    if isinstance(node, ast.Compare):
        parts = zip(node.ops, map(of, node.comparators))
        return of(node.left) + "".join(f" {OPERATORS[type(op)]} {text}" for op, text in parts)
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        return (
            f"{_bracketed(node.left, of)} {OPERATORS[type(node.op)]} {_bracketed(node.right, of)}"
        )
    if isinstance(node, ast.Name):
        word = rf"\mathit{{{node.id.replace('_', chr(92) + '_')}}}"
        return symbols.get(node.id) or (node.id if len(node.id) == 1 else word)
    if isinstance(node, ast.Attribute):
        return of(node.value) + (r"^\top" if node.attr == "T" else rf"_\mathrm{{{node.attr}}}")
    if isinstance(node, ast.Subscript):
        return f"{of(node.value)}_{{{ast.unparse(node.slice)}}}".replace(":, None", "").replace(
            "_{}", ""
        )
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        called, inside = node.func.attr, _bracketed(node.func.value, of)
        given = [*node.args, *(one.value for one in node.keywords)]
        if called == "sum":
            return rf"\sum{f'_{{{of(given[0])}}}' if given else ''} {inside}"
        if called == "sum_by":
            return rf"\sum_{{{of(given[0])}}} {inside}"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len":
        return f"|{of(node.args[0])}|"
    return (
        ast.unparse(node) if isinstance(node, ast.Constant) else rf"\texttt{{{ast.unparse(node)}}}"
    )


def _bracketed(node: ast.AST, of: Any) -> str:
    text: str = of(node)
    return f"({text})" if isinstance(node, ast.BinOp | ast.Compare) else text


def _text(node: ast.AST) -> str:
    return str(node.value) if isinstance(node, ast.Constant) else ast.unparse(node)


def with_table(page: str, model: str) -> str:
    """Return a model's page with the table of fields between its marks."""
    return between_marks(page, "fields", models[model].schema.table())


def write_pages(folder: str | Path) -> None:
    """Write the schema and the table of fields of each model to its folder in `folder`."""
    for model in models:
        home = Path(folder) / model
        if not has_schema(model) or not home.is_dir():
            continue
        page = home / "README.md"
        try:
            text = with_table(page.read_text(encoding="utf-8"), model)
        except InputError as error:
            raise error.within(page) from None
        schema = json_text(snapshot_schema(model), indent=1) + "\n"
        for file, content in ((page, text), (home / SCHEMA_FILE, schema)):
            write_text(file, content)


if __name__ == "__main__":
    from optsched.content import bundled

    write_pages(bundled("models"))
